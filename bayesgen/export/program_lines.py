"""The regressions in the words of NumPyro: the statements of their parameters, and the distribution of the target.

In these texts ``$alpha`` is a hyperparameter.
"""

import math
import re
from collections.abc import Callable
from typing import Any

from scipy.linalg import helmert

from bayesgen import models
from bayesgen.core.errors import InputError


def _drawn(site: str, prior: str) -> str:
    return f'{site} = numpyro.sample("{site}", {prior})'


_VARIANCE = _drawn("variance", "dist.InverseGamma($alpha, $beta)")
_KNOWN = 'variance = numpyro.deterministic("variance", jnp.square($noise_sd))'
_THROUGH_0 = 'intercept = numpyro.deterministic("intercept", jnp.zeros(()))'
_NORMAL = "dist.Normal(intercept + x @ coefficients, variance ** 0.5)"
_INTERCEPT = _drawn("intercept", "dist.Normal(0.0, $intercept_scale)")
_SCORE = "score = intercept + x @ coefficients"
_TAILS = "jnp.stack([jax.scipy.special.log_ndtr(-score), jax.scipy.special.log_ndtr(score)], axis=-1)"
_COEFFICIENTS = _drawn("coefficients", "dist.Normal(0.0, $prior_scale).to_event(1)")


def text_of_line(model) -> tuple[list[str], str]:
    """Return the statements of a regression and the distribution of its target, or raise."""
    if type(model) not in _TEXTS:
        raise InputError(f"a {type(model).__name__} is not written as a plain program")
    return _TEXTS[type(model)](model)


def _weights(variance: str, unit: str = "") -> Callable[[Any], tuple[list[str], str]]:
    """Write N(mean, F F') of the weights as the intercept, then the coefficients given it."""
    start = [variance, "mean = $mean", "factor = $factor"]
    through_0 = [*start, _THROUGH_0, _drawn("coefficients", f"dist.MultivariateNormal(mean, scale_tril={unit}factor)")]
    intercept = [
        *start,
        _drawn("intercept", f"dist.Normal(mean[0], {unit}factor[0, 0])"),
        "location = mean[1:] + factor[1:, 0] * (intercept - mean[0]) / factor[0, 0]",
        _drawn("coefficients", f"dist.MultivariateNormal(location, scale_tril={unit}factor[1:, 1:])"),
    ]
    return lambda model: (intercept if model.intercept else through_0, _NORMAL)


def _laplace(model) -> tuple[list[str], str]:
    family = "Laplace" if model.prior == "laplace" else "Normal"
    intercept = _drawn("intercept", "dist.Normal($intercept_mean, $intercept_scale * sd)")
    weights = _drawn("coefficients", f"dist.{family}(0.0, $prior_scale * sd).to_event(1)")
    noise = "dist.Laplace(intercept + x @ coefficients, (variance / 2) ** 0.5)"
    lines = [_VARIANCE, "sd = variance ** 0.5", intercept if model.intercept else _THROUGH_0, weights]
    return lines, noise if model.noise == "laplace" else _NORMAL


def _softmax(model) -> tuple[list[str], str]:
    count, both = len(model.classes), [_INTERCEPT, _COEFFICIENTS]
    if count == 2:
        return both, "dist.Bernoulli(logits=intercept + x @ coefficients)"
    if len(model.scored) < count:
        scores = "jnp.pad(intercept + x @ coefficients.T, ((0, 0), (0, 1)))"  # the last class has the score 0
        plate = f'with numpyro.plate("class", {count - 1}):'
        return [plate, *(f"    {line}" for line in both)], f"dist.Categorical(logits={scores})"
    contrasts = [re.sub(r"\b(intercept|coefficient)s?\b", r"\1_contrasts", line) for line in both]
    lines = [
        f"basis = jnp.array({helmert(count, full=True).tolist()})",
        f'with numpyro.plate("contrast", {count}):',
        *(f"    {line}" for line in contrasts),
        'intercept = numpyro.deterministic("intercept", basis.T @ intercept_contrasts)',
        'coefficients = numpyro.deterministic("coefficients", basis.T @ coefficient_contrasts)',
    ]
    return lines, "dist.Categorical(logits=intercept + x @ coefficients.T)"


def _ordered(model) -> tuple[list[str], str]:
    count = len(model.classes) - 1
    link = "jax.nn.sigmoid" if model.link == "logistic" else "jax.scipy.special.ndtr"
    lines = [  # the density of sorted independent normals is count! times theirs
        _drawn("cuts", f"dist.ImproperUniform(dist.constraints.ordered_vector, (), ({count},))"),
        "normal = dist.Normal(0.0, $intercept_scale)",
        f'numpyro.factor("sorted_normals", normal.log_prob(cuts).sum() + {math.lgamma(count + 1)!r})',
        _COEFFICIENTS,
        f"below = {link}(cuts - (x @ coefficients)[:, None])",
    ]
    return lines, "dist.Categorical(probs=jnp.diff(below, prepend=0.0, append=1.0))"


_TEXTS: dict[type, Callable[[Any], tuple[list[str], str]]] = {
    models.LinearRegression: _weights(_VARIANCE, "variance ** 0.5 * "),
    models.LinearRegressionKnownVariance: _weights(_KNOWN),
    models.SemiConjugateLinearRegression: _weights(_VARIANCE),
    models.LaplaceLinearRegression: _laplace,
    models.LogisticRegression: _softmax,
    models.ProbitRegression: lambda model: ([_INTERCEPT, _COEFFICIENTS, _SCORE], f"dist.Categorical(logits={_TAILS})"),
    models.OrderedRegression: _ordered,
}
