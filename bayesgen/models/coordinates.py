r"""Conjugate leaves as NUTS samples them: real coordinates, in which their densities are written without a logarithm.

A Gamma of shape a is below e^(-708), which is 0 in float64, with probability e^(-708 a), and a Beta draw is 1 where its
other shape is as small. So rates, variances and odds are sampled as logarithms z, and a density never takes log exp z:

- rate λ ~ Gamma(a, b): a z - b eᶻ. Odds of Beta(a, b): a log σ(z) + b log σ(-z), σ the logistic function.
- variance σ² ~ InvGamma(α, β): -α z - β e⁻ᶻ, and the mean as u = (μ - m_n) sqrt(κ_n)/σ, which a posteriori is N(0, 1)
  and independent of z. Rows are moved and scaled, so that m_n is 0 and β_n is α_n (`Model.whitened`).
- θ ~ Dirichlet(α) as logarithms g of V independent gammas, θ = eᵍ/T, T = Σ eᵍ. The total T is ours to choose: with
  T ~ Gamma(A + N), N the counts, the g are independent a posteriori as well. With L = log T

  .. math:: \log p(g) = \sum_v \alpha_v (g_v - L) + (A + N) L - T, \qquad \log p(x \mid g) = \sum_v n_v (g_v - L)

All are up to constants. A posterior whose shape is below `SMALLEST` is refused: there is next to no data, and what the
draws are the logarithms of is 0 in float64 for many.

Lines with normal weights as NUTS samples them: the logarithm of the noise variance, and uncorrelated weights.

With z = log(σ²/s²), and weights w = m + σ^c F u, where c is 1 if their prior scales with the noise and 0 if it does
not, and m and F are location and root of the posterior (`NormalWeights.solve`), both squares are of lines in u:

.. math:: |F_0^{-1} (w - m_0)|^2/\sigma^{2c} = |a\, e^{-cz/2} + A u|^2, \qquad
   |t - Zw|^2/\sigma^2 = |b\, e^{-z/2} - B u\, e^{(c - 1)z/2}|^2

of the prior N(m_0, σ^{2c} F_0 F_0'), and of the rows. Where c is 1, u is N(0, I) a posteriori and independent of z;
where it is 0, F is the root at the mode of σ, and u is close to that.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit, softmax

from bayesgen.core import program
from bayesgen.core.errors import DataError, first
from bayesgen.core.program import static
from bayesgen.core.statistics import Statistics
from bayesgen.models.bernoulli import BetaBernoulli
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.models.gaussian import NormalInverseGamma
from bayesgen.models.gaussian_known import NormalKnownMean
from bayesgen.models.hyperparameters import Hyperparameter, hyperparameter
from bayesgen.models.linear_model import LineStatistics
from bayesgen.models.linear_regression import NormalWeights
from bayesgen.models.moments import Moments
from bayesgen.models.poisson import GammaPoisson
from bayesgen.numerics.gammas import log_gammas

SMALLEST = 0.02  # shape of a gamma, of which one draw in a million is 0 in float64


def require_shape(site: str, shape, shared: tuple[str, ...] = ()) -> None:
    """Raise where a posterior's gamma ``shape`` (groups, features...) is too small for float64."""
    small = np.asarray(shape) < SMALLEST
    if small.any():
        place = {key: v for key, v in first(small).items() if {"group": "class"}.get(key, key) not in shared}
        raise DataError(
            f"NUTS cannot sample {site!r}: its posterior has a gamma shape of {np.min(shape):.2g}, below "
            f"{SMALLEST:g}, whose draws float64 does not hold. There is next to no data on it: use 'exact', or a "
            "stronger prior",
            **(place if np.ndim(shape) else {}),
        )


def real(site: str, shape: tuple[int, ...]) -> Any:
    """Sample an array of real numbers, whose density is a factor of the program."""
    support = program.dist.constraints.independent(program.dist.constraints.real, len(shape))
    return program.numpyro.sample(site, program.dist.ImproperUniform(support, (), shape))


def prior(density) -> None:
    """Add the log density of a prior, an array, to the program."""
    program.numpyro.factor("prior", density.sum())


# -- counts and categories -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LogRate(GammaPoisson):
    """A Poisson feature whose program has the site "log_mean"."""

    def latents(self, groups=None, name=""):
        """Sample z, of every class and feature."""
        z = real("log_mean", self.batch_shape)
        prior(self.concentration * z - self.rate * program.jnp.exp(z))
        return {"log_mean": z}

    def log_likelihood(self, params, statistics):
        """Log p(all rows | z), but for the factorials."""
        (rows, events), z = np.moveaxis(statistics.total(), -1, 0), params["log_mean"]
        return (events * z - rows * program.jnp.exp(z)).sum()

    def sample_parameters(self, rng, size=()):
        """Exact draws of z."""
        shape = (*size, *self.batch_shape)
        return {"log_mean": log_gammas(rng, self.concentration, shape) - np.log(self.rate)}


def log_rate(model: GammaPoisson, statistics):
    """Coordinates of a Poisson feature; see `Model.whitened`."""
    posterior = model.update(statistics)
    require_shape("mean", posterior.concentration)
    sampled = LogRate(*_alike(posterior.batch_shape, model.concentration, model.rate))
    return sampled, statistics, lambda params: {"mean": np.exp(params["log_mean"])}


@dataclass(frozen=True, eq=False)
class LogOdds(BetaBernoulli):
    """Successes and failures; the program has the site "log_odds"."""

    def latents(self, groups=None, name=""):
        """Sample z, of every class and feature."""
        z, log_sigmoid = real("log_odds", self.batch_shape), program.jax.nn.log_sigmoid
        prior(self.a * log_sigmoid(z) + self.b * log_sigmoid(-z))
        return {"log_odds": z}

    def log_likelihood(self, params, statistics):
        """Log p(all rows | z), but for the ways to order them."""
        (failures, successes), z = np.moveaxis(statistics.total(), -1, 0), params["log_odds"]
        log_sigmoid = program.jax.nn.log_sigmoid
        return (successes * log_sigmoid(z) + failures * log_sigmoid(-z)).sum()

    def sample_parameters(self, rng, size=()):
        """Exact draws of z, differences of two log-gammas."""
        shape = (*size, *self.batch_shape)
        return {"log_odds": log_gammas(rng, self.a, shape) - log_gammas(rng, self.b, shape)}


def log_odds(model, statistics):
    """Coordinates of a coin or of tosses; see `Model.whitened`."""
    posterior = model.update(statistics)
    require_shape("probability", np.minimum(posterior.a, posterior.b))
    sampled = LogOdds(*_alike(posterior.batch_shape, model.a, model.b))
    return sampled, statistics, lambda params: {"probability": expit(params["log_odds"])}


@dataclass(frozen=True, eq=False)
class LogGammas(DirichletCategorical):
    """Counts of categories; the program has the site "log_gamma", and ``total`` is the shape A + N of T."""

    total: Hyperparameter = hyperparameter(1.0, positive=True)

    def latents(self, groups=None, name=""):
        """Sample g, of every class and feature."""
        return self.parameters()

    def parameters(self):
        """Sample g."""
        g = real("log_gamma", self.alpha.shape)
        level = program.jax.nn.logsumexp(g, axis=-1)
        shares = (self.alpha * (g - level[..., None])).sum(-1)
        prior(shares + self.total * level - program.jnp.exp(level))
        return {"log_gamma": g, "log_share": g - level[..., None]}

    def log_likelihood(self, params, statistics):
        """Log p(all rows | g), but for the ways to order them."""
        return (statistics.total() * params["log_share"]).sum()

    def sample_parameters(self, rng, size=()):
        """Exact draws of g."""
        return {"log_gamma": log_gammas(rng, self.alpha, (*size, *self.alpha.shape))}


def log_shares(model, statistics):
    """Coordinates of categories or of a bag of words; see `Model.whitened`."""
    posterior = model.update(statistics)
    require_shape("probability", posterior.alpha.min(-1))
    alpha = np.broadcast_to(model.alpha, posterior.alpha.shape)
    sampled = LogGammas(alpha, model.categories, total=posterior.alpha.sum(-1))
    return sampled, statistics, lambda params: {"probability": softmax(params["log_gamma"], axis=-1)}


# -- Gaussian features -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Standardised(NormalInverseGamma):
    """A Gaussian feature of rows whose posterior mean is 0; the program has the sites "log_variance" and "offset"."""

    kappa_n: Hyperparameter = hyperparameter(1.0, positive=True)

    def latents(self, groups=None, name=""):
        """Sample z, once for what shares a variance, and u."""
        params = {"log_variance": real("log_variance", self.alpha.shape), "offset": real("offset", self.batch_shape)}
        z = params["log_variance"]
        prior(-self.alpha * z - self.beta * program.jnp.exp(-z))
        program.numpyro.factor("prior_mean", -0.5 * (self.kappa * self._squares(params, self.mean)).sum())
        return params

    def _squares(self, params, point):
        """((μ - point)/σ)²."""
        return (params["offset"] / self.kappa_n**0.5 - point * program.jnp.exp(-params["log_variance"] / 2)) ** 2

    def log_likelihood(self, params, statistics):
        """Log p(all rows | z, u), but for the constant (2π)^(-n/2)."""
        z, rows = params["log_variance"], self.tie(statistics.n)
        spread = rows * z + self.tie(statistics.scatter) * program.jnp.exp(-z)
        return -0.5 * (spread.sum() + (statistics.n * self._squares(params, statistics.mean)).sum())

    def sample_parameters(self, rng, size=()):
        """Exact draws of z and u."""
        z = np.log(self.beta) - log_gammas(rng, self.alpha, (*size, *self.alpha.shape))
        return {"log_variance": z, "offset": rng.standard_normal((*size, *self.batch_shape))}


def standardised(model: NormalInverseGamma, statistics: Moments):
    """Coordinates of a Gaussian feature; see `Model.whitened`."""
    posterior = model.update(statistics)
    require_shape("variance", posterior.alpha, posterior.tied)
    centre, kappa, variance = posterior.mean, posterior.kappa, posterior.beta / posterior.alpha
    scale = variance**0.5

    def restore(params):
        spread = scale * np.exp(params["log_variance"] / 2)
        return {"mean": centre + spread * params["offset"] / kappa**0.5, "variance": posterior.squeeze(spread**2)}

    alpha, beta = _alike(posterior.alpha.shape, model.alpha, model.beta / variance)
    mean, own = _alike(posterior.batch_shape, (model.mean - centre) / scale, model.kappa)
    sampled = Standardised(mean, own, alpha, beta, tied=posterior.tied, kappa_n=kappa)
    return sampled, _scaled(statistics, centre, scale), restore


@dataclass(frozen=True, eq=False)
class LogVariance(NormalKnownMean):
    """A Gaussian feature of known mean 0; the program has the site "log_variance"."""

    def latents(self, groups=None, name=""):
        """Sample z, of every class and feature."""
        z = real("log_variance", self.batch_shape)
        prior(-self.alpha * z - self.beta * program.jnp.exp(-z))
        return {"log_variance": z}

    def log_likelihood(self, params, statistics):
        """Log p(all rows | z), but for the constant (2π)^(-n/2)."""
        z = params["log_variance"]
        squares = statistics.scatter + statistics.n * statistics.mean**2
        return -0.5 * (statistics.n * z + squares * program.jnp.exp(-z)).sum()

    def sample_parameters(self, rng, size=()):
        """Exact draws of z."""
        return {"log_variance": np.log(self.beta) - log_gammas(rng, self.alpha, (*size, *self.batch_shape))}


def log_variance(model: NormalKnownMean, statistics: Moments):
    """Coordinates of a Gaussian feature of known mean; see `Model.whitened`."""
    posterior = model.update(statistics)
    require_shape("variance", posterior.alpha)
    centre, variance = posterior.mean, posterior.beta / posterior.alpha

    def restore(params):
        spread = variance * np.exp(params["log_variance"])
        return {"mean": np.broadcast_to(centre, spread.shape), "variance": spread}

    mean, alpha, beta = _alike(posterior.batch_shape, 0.0, model.alpha, model.beta / variance)
    return LogVariance(mean, alpha, beta), _scaled(statistics, centre, variance**0.5), restore


def _scaled(statistics: Moments, centre, scale) -> Moments:
    """Moments of (x - centre)/scale."""
    mean = np.where(statistics.n > 0, (statistics.mean - centre) / scale, 0.0)
    return Moments(statistics.n, mean, statistics.scatter / scale**2)


def _alike(shape, *values):
    """Hyperparameters of every class, as they are in the posterior."""
    return [np.broadcast_to(value, shape) for value in values]


@dataclass(frozen=True, eq=False)
class LineRows(Statistics):
    """Rows as u sees them: their weight n, b = ``target`` and B = ``rows``."""

    n: np.ndarray
    target: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class LineCoordinates(NormalWeights):
    """A line whose program has the sites "log_variance", z, and "offset", u; ``mean`` and ``factor`` are a and A."""

    mean: Hyperparameter = hyperparameter(rank=1)
    factor: Hyperparameter = hyperparameter(rank=2)
    alpha: Hyperparameter = hyperparameter(1.0, positive=True)
    beta: Hyperparameter = hyperparameter(1.0, positive=True)
    columns: tuple[str, ...] = static(default=())
    intercept: bool = static(default=False, kw_only=True)
    scaled: bool = static(default=True, kw_only=True)

    def latents(self):
        """Sample z and u."""
        z, u = real("log_variance", ()), real("offset", self.mean.shape)
        noise = program.jnp.exp(-z / 2) if self.scaled else 1.0
        prior(
            -self.alpha * z - self.beta * program.jnp.exp(-z) - 0.5 * ((self.mean * noise + self.factor @ u) ** 2).sum()
        )
        return {"log_variance": z, "offset": u}

    def log_likelihood(self, params, statistics):
        """Log p(t | x) of all rows, but for the constant (2π)^(-n/2)."""
        z, u = params["log_variance"], params["offset"]
        noise = program.jnp.exp(-z / 2)
        residual = statistics.target * noise - statistics.rows @ u * (1.0 if self.scaled else noise)
        return -0.5 * (statistics.n * z + (residual**2).sum())

    def near(self, statistics) -> Any:
        """The posterior, or close to it where the prior of the weights does not scale with the noise."""
        return self.revised(alpha=self.alpha + statistics.n / 2)

    def sample_parameters(self, rng, size=()):
        """Draws of z and u, of a record that `near` made."""
        z = np.log(self.alpha) - log_gammas(rng, self.alpha, size)
        return {"log_variance": z, "offset": rng.standard_normal((*size, len(self.mean)))}


def straightened(model: Any, statistics: LineStatistics, noise: float | None = None):
    """Coordinates of a line; of one whose prior does not scale with the noise, at the standard deviation ``noise``."""
    scaled, rows = noise is None, model.rows_of(statistics)
    require_shape("variance", model.alpha + statistics.n / 2)
    centre, root, squares = model.solve(statistics, 1.0 if scaled else noise)
    left = rows[:, -1] - rows[:, :-1] @ centre
    squares = squares if scaled else left @ left
    variance = (model.beta + squares / 2) / (model.alpha + statistics.n / 2)
    scale = variance**0.5
    apart = solve_triangular(model.factor, centre - model.mean, lower=True)
    turned = np.tril(solve_triangular(model.factor, root, lower=True))
    unit = 1.0 if scaled else scale

    def restore(params):
        spread = scale * np.exp(params["log_variance"] / 2)
        step = params["offset"] @ root.T
        return model.params(centre + (spread[..., None] * step if scaled else step), spread**2)

    own = LineCoordinates(apart * unit / scale, turned, model.alpha, model.beta / variance, scaled=scaled)
    return own, LineRows(statistics.n, left / scale, rows[:, :-1] @ root / unit), restore
