"""The priors and densities of models in the words of NumPyro, a line for each site.

In these texts ``$alpha`` is a hyperparameter of the model, ``{mean}`` the value of a site, ``{x}`` the rows, and
``seen`` the mask of their entries. A site is drawn from the distribution that stands beside it; one that begins with
"=" is worked out from the others, one with ":" is a name alone, and one with "+" a factor.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from scipy.linalg import helmert

from bayesgen import models
from bayesgen.core.errors import InputError
from bayesgen.models.linear_model import Discriminative
from bayesgen.models.population import CENTRE
from bayesgen.models.separation import SeparationDiagonal, SeparationFull


@dataclass(frozen=True)
class Text:
    """A leaf or a regression as text, and the rows that it is of."""

    sites: dict[str, str]  # the distribution of each site, in the order in which they are drawn
    likelihood: str  # the distribution of an observation
    rows: str = "rng.normal(size=({shape}))"  # rows to try the program with
    entry: str = "{x}"  # what is observed of the rows
    mask: str = "seen"  # mask of the observations that are there; "" where a part of one may be missing
    vector: str = ""  # the distribution of a vector with gaps
    plates: Mapping[str, int] = field(default_factory=dict)  # those of a regression, by size; a leaf's follow from it
    leaf: Any = None
    features: tuple[int, ...] = ()  # shape of the features of a leaf
    source: str = "x"  # the rows
    gaps: bool = False  # True if entries may be missing


_COIN = {"probability": "dist.Beta($a, $b)"}
_DIE = {"probability": "dist.Dirichlet($alpha)"}
_CONTEXTS = {"probability": "dist.Dirichlet($alpha).to_event(1)"}
_GAMMA = {"mean": "dist.Gamma($concentration, $rate)"}
_VARIANCE = {"variance": "dist.InverseGamma($alpha, $beta)"}
_CONJUGATE = _VARIANCE | {"mean": "dist.Normal($mean, ({variance} / $kappa) ** 0.5)"}
_KNOWN_MEAN = _VARIANCE | {"mean": "=jnp.full_like({variance}, $mean)"}
_KNOWN_VARIANCE = {"mean": "dist.Normal($mean, $sd)", "variance": "=jnp.full_like({mean}, $noise_sd ** 2)"}
_APART = {"sd": "dist.HalfNormal($scale)", "variance": "={sd} ** 2", "mean": "dist.Normal($mean, $mean_sd)"}
_WISHART = {
    "cholesky": "dist.InverseWishartCholesky($nu, scale_tril=jnp.linalg.cholesky($scale))",
    "mean": "dist.MultivariateNormal($mean, scale_tril={cholesky} / $kappa:matrix ** 0.5)",
    "covariance": "={cholesky} @ {cholesky}.mT",
}
_APART_VECTOR = {
    "sd": "dist.HalfNormal($scale).to_event(1)",
    "correlation_cholesky": "dist.LKJCholesky($D, $eta)",
    "cholesky": "={sd}[..., None] * {correlation_cholesky}",
    "covariance": "={cholesky} @ {cholesky}.mT",
    "mean": "dist.Normal($mean, $mean_sd).to_event(1)",
}
_DOF = "dist.TransformedDistribution(dist.Gamma($dof_shape, $dof_rate), dist.transforms.AffineTransform(1.0, 1.0))"
_NORMAL = "dist.Normal({mean}, {variance} ** 0.5)"
_PAIRS = "np.stack([rng.integers(0, 4, ({shape})), np.full(({shape}), 5)], -1)"
_WORDS = "rng.multinomial(9, np.full($V, 1 / $V), ({shape}))"
_CODES = "dist.Categorical(probs={probability})", "rng.integers(0, $V, ({shape}))", "{x}.astype(int)"
_BAG = "dist.Multinomial({x}.sum(-1).astype(int), probs={probability})"
_CHAIN = "dist.Categorical(probs=contexts({x}, $V, $order) @ {probability}).mask({x} >= 0).to_event(1)"
_GAPS = "dist.MultivariateNormal(jnp.where(seen, {mean}, 1.0), marginal({covariance}, seen))"
_VECTOR: dict[str, Any] = {"mask": "", "vector": _GAPS, "rows": "rng.normal(size=({shape}, $D))"}
_WHOLE = "dist.MultivariateNormal({mean}, scale_tril={cholesky})"


def _binomial(leaf) -> Text:
    if leaf.trials is not None:
        return Text(_COIN, "dist.Binomial($trials, {probability})", "rng.binomial($trials, 0.5, ({shape}))")
    density = "dist.Binomial({x}[..., 1].astype(int), {probability})"
    return Text(_COIN, density, _PAIRS, entry="{x}[..., 0]", mask="seen[..., 0]")


def _log_normal(leaf) -> Text:
    shift = f", dist.transforms.AffineTransform({-leaf.shift!r}, 1.0)" * bool(leaf.shift)
    density = f"dist.TransformedDistribution({_NORMAL}, [dist.transforms.ExpTransform(){shift}])"
    return Text(_CONJUGATE, density, "rng.exponential(size=({shape}))")


def _student(leaf) -> Text:
    inner, dof = text_of(leaf.gaussian), {"dof": _DOF} if leaf.dof is None else {}
    known, spread = "{dof}" if dof else "$dof", "{cholesky}" if leaf.event_dim else "{variance} ** 0.5"
    density = f"dist.{'Multivariate' * leaf.event_dim}StudentT({known}, {{mean}}, {spread})"
    gaps = f"student(rows, seen, {known}, {{mean}}, marginal({{covariance}}, seen))" * leaf.event_dim
    return replace(inner, sites=inner.sites | dof, likelihood=density, vector=gaps)


# Priors of a class that is drawn from a population; see `bayesgen.models.population`.
_OF_MEMBER = {
    _COIN["probability"]: "dist.Beta({centre_probability} / {spread} ** 2, (1 - {centre_probability}) / {spread} ** 2)",
    _DIE["probability"]: "dist.Dirichlet({centre_probability} / {spread}[..., None] ** 2)",
    _GAMMA["mean"]: "dist.Gamma({centre_mean} / {spread} ** 2, 1 / {spread} ** 2)",
    _KNOWN_VARIANCE["mean"]: "dist.Normal({centre_mean}, $noise_sd * {spread})",
    _KNOWN_MEAN["mean"]: "=jnp.full_like({variance}, {centre_mean})",
    _CONJUGATE["mean"]: "dist.Normal({centre_mean}, {variance} ** 0.5 * {spread})",
    _VARIANCE["variance"]: (
        "dist.InverseGamma(0.5 / {variance_spread} ** 2, 0.5 * {centre_variance} / {variance_spread} ** 2)"
    ),
}


def _pooled(leaf) -> Text:
    inner = text_of(leaf.leaf)
    sites = {CENTRE + site: prior.replace("{", "{" + CENTRE) for site, prior in inner.sites.items()}
    for spread in leaf.population.spreads:
        sites[spread] = f"dist.Half{'Cauchy' if spread == 'spread' else 'Normal'}($scale)"
    return replace(inner, sites=sites | {site: _OF_MEMBER.get(prior, prior) for site, prior in inner.sites.items()})


_THROUGH_0 = "=jnp.zeros(())"
_INTERCEPT, _COEFFICIENTS = "dist.Normal(0.0, $intercept_scale)", "dist.Normal(0.0, $prior_scale).to_event(1)"
_SCORES = {"intercept": _INTERCEPT, "coefficients": _COEFFICIENTS}
_SCORE = "intercept + x @ coefficients"
_LINE = f"dist.Normal({_SCORE}, variance ** 0.5)"
_TAILS = "jnp.stack([jax.scipy.special.log_ndtr(-score), jax.scipy.special.log_ndtr(score)], axis=-1)"
_LINKS = {"logistic": "jax.nn.sigmoid", "probit": "jax.scipy.special.ndtr"}


def _regression(sites: dict[str, str], likelihood: str, **plates: int) -> Text:
    return Text(sites, likelihood, "rng.normal(size=({shape}, $features))", entry="t", plates=plates)


def _weights(variance: str, unit: str = "") -> Callable[[Any], Text]:
    """Write N(mean, F F') of the weights as the intercept, then the coefficients given it."""
    start = {"variance": variance, "mean": ":$mean", "factor": ":$factor"}
    normal = f"dist.MultivariateNormal(%s, scale_tril={unit}factor%s)"
    through_0 = start | {"intercept": _THROUGH_0, "coefficients": normal % ("mean", "")}
    intercept = start | {
        "intercept": f"dist.Normal(mean[0], {unit}factor[0, 0])",
        "location": ":mean[1:] + factor[1:, 0] * (intercept - mean[0]) / factor[0, 0]",
        "coefficients": normal % ("location", "[1:, 1:]"),
    }
    return lambda model: _regression(intercept if model.intercept else through_0, _LINE)


def _laplace(model) -> Text:
    intercept = "dist.Normal($intercept_mean, $intercept_scale * sd)"
    family = "Laplace" if model.prior == "laplace" else "Normal"
    sites = _VARIANCE | {
        "sd": ":variance ** 0.5",
        "intercept": intercept if model.intercept else _THROUGH_0,
        "coefficients": f"dist.{family}(0.0, $prior_scale * sd).to_event(1)",
    }
    noise = f"dist.Laplace({_SCORE}, (variance / 2) ** 0.5)"
    return _regression(sites, noise if model.noise == "laplace" else _LINE)


def _softmax(model) -> Text:
    count = len(model.classes)
    if count == 2:
        return _regression(_SCORES, f"dist.Bernoulli(logits={_SCORE})")
    if len(model.scored) < count:
        scores = f"jnp.pad({_SCORE}.T, ((0, 0), (0, 1)))"  # the last class has the score 0
        return _regression(_SCORES, f"dist.Categorical(logits={scores})", **{"class": count - 1})
    sites = {
        "basis": f":jnp.array({helmert(count, full=True).tolist()})",
        "intercept_contrasts": _INTERCEPT,
        "coefficient_contrasts": _COEFFICIENTS,
        "intercept": "=basis.T @ intercept_contrasts",
        "coefficients": "=basis.T @ coefficient_contrasts",
    }
    return _regression(sites, f"dist.Categorical(logits={_SCORE}.T)", contrast=count)


def _ordered(model) -> Text:
    count = len(model.classes) - 1
    sites = {  # the density of sorted independent normals is count! times theirs
        "cuts": f"dist.ImproperUniform(dist.constraints.ordered_vector, (), ({count},))",
        "normal": ":dist.Normal(0.0, $intercept_scale)",
        "sorted_normals": f"+normal.log_prob(cuts).sum() + {math.lgamma(count + 1)!r}",
        "coefficients": _COEFFICIENTS,
        "below": f":{_LINKS[model.link]}(cuts - (x @ coefficients)[:, None])",
    }
    return _regression(sites, "dist.Categorical(probs=jnp.diff(below, prepend=0.0, append=1.0))")


_TEXTS: dict[type, Callable[[Any], Text] | Text] = {
    models.BetaBernoulli: Text(_COIN, "dist.Bernoulli({probability})", "rng.integers(0, 2, ({shape}))"),
    models.BetaBinomial: _binomial,
    models.DirichletCategorical: Text(_DIE, *_CODES),
    models.KnownCategorical: Text({"probability": "=$probability"}, *_CODES),
    models.DirichletMultinomial: Text(_DIE, _BAG, _WORDS, mask="seen.all(-1)"),
    models.MarkovChain: Text(
        _CONTEXTS, _CHAIN, "rng.integers(0, $V, ({shape}, 4))", "jnp.maximum({x}, 0).astype(int)", mask=""
    ),
    models.GammaPoisson: Text(_GAMMA, "dist.Poisson({mean})", "rng.poisson(3.0, ({shape}))"),
    models.NormalKnownMean: Text(_KNOWN_MEAN, _NORMAL),
    models.NormalKnownVariance: Text(_KNOWN_VARIANCE, _NORMAL),
    models.NormalInverseGamma: Text(_CONJUGATE, _NORMAL),
    models.LogNormal: _log_normal,
    models.NormalInverseWishart: Text(_WISHART, _WHOLE, **_VECTOR),
    models.StudentT: _student,
    models.Pooled: _pooled,
    SeparationDiagonal: Text(_APART, _NORMAL),
    SeparationFull: Text(_APART_VECTOR, _WHOLE, **_VECTOR),
    models.LinearRegression: _weights(_VARIANCE["variance"], "variance ** 0.5 * "),
    models.LinearRegressionKnownVariance: _weights("=jnp.square($noise_sd)"),
    models.SemiConjugateLinearRegression: _weights(_VARIANCE["variance"]),
    models.LaplaceLinearRegression: _laplace,
    models.LogisticRegression: _softmax,
    models.ProbitRegression: _regression(_SCORES | {"score": f":{_SCORE}"}, f"dist.Categorical(logits={_TAILS})"),
    models.OrderedRegression: _ordered,
}


def text_of(model: Any, source: str = "x", gaps: bool = False) -> Text:
    """Return a leaf or a regression of some rows as text, or raise."""
    kind, features = type(model), () if isinstance(model, Discriminative) else model.features
    if kind not in _TEXTS or len(features) > 1:
        shape = " of features in rows and columns" * (kind in _TEXTS)
        raise InputError(f"a {kind.__name__}{shape} is not written as a plain program: give NUTS the model itself")
    text = _TEXTS[kind]
    text = text if isinstance(text, Text) else text(model)
    return replace(text, leaf=model, features=features, source=source, gaps=gaps)


def value_of(leaf: Any, name: str) -> tuple[Any, int]:
    """Return a hyperparameter, or "D" or "V", the length of a vector or of categories, and its axes of one feature."""
    found = {each.name: each.metadata.get("rank", 0) for each in fields(leaf)}
    if name == "V":
        return np.asarray(len(leaf.categories)), 0
    if name == "D" and "mean" in found:
        return np.asarray(leaf.mean.shape[-1]), 0
    if name not in found and name != "features":
        return value_of(getattr(leaf, "leaf", None) or leaf.gaussian, name)
    return np.asarray(getattr(leaf, name)), max(found.get(name, 0), name == "alpha" and "categories" in found)
