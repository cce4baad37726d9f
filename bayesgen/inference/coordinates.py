r"""Conjugate models as NUTS samples them: in real coordinates, in which their densities need no logarithm.

A Gamma of shape a is below e^(-708), which is 0 in float64, with probability e^(-708 a), and a Beta draw is 1 where its
other shape is as small. So rates, variances and odds are sampled as logarithms z, and a density never takes log exp z.
All densities are up to constants.

**Counts.** The rate λ ~ Gamma(a, b) has the density a z - b eᶻ; the odds of Beta(a, b) have a log σ(z) + b log σ(-z), σ
the logistic function.

**Categories.** θ ~ Dirichlet(α) is sampled as logarithms g of V independent gammas, θ = eᵍ/T, T = Σ eᵍ. The total T is
ours to choose: with T ~ Gamma(A + N), N the counts, the g are independent a posteriori as well. With L = log T

.. math:: \log p(g) = \sum_v \alpha_v (g_v - L) + (A + N) L - T, \qquad \log p(x \mid g) = \sum_v n_v (g_v - L)

**Gaussian features.** The variance σ² ~ InvGamma(α, β) has the density -α z - β e⁻ᶻ. The mean is sampled as
u = (μ - m_n) sqrt(κ_n)/σ, which a posteriori is N(0, 1) and independent of z. Rows are moved and scaled, so that m_n is
0 and β_n is α_n. About a known mean 1/σ² is a rate: that of n/2 events in as many rows as half the sum of squares.

**Gaussian vectors** move in a factor of the precision. With Σ⁻¹ = U'U, U lower triangular, U_jj = exp r_jj and
U_ij = r_ij below the diagonal,

.. math:: \log p(r) = \sum_j (\nu - D + j)\, r_{jj} - \tfrac12 \mathrm{tr}(U \Psi U'), \quad
   \log p(u \mid r) = - \tfrac{\kappa}{2} |u/\sqrt{\kappa_n} - Um|^2, \quad j = 1, \dots, D,

where u = sqrt(κ_n) U μ, of rows whose posterior mean is 0, is N(0, I) a posteriori and independent of r: however little
is known of a covariance, it makes no funnel of the means. Σ⁻¹ is Wishart(nu, Ψ⁻¹), |dΣ⁻¹/dU| = 2^D Π U_jj^j and
dU_jj/dr_jj = U_jj (Muirhead 1982, *Aspects of Multivariate Statistical Theory*, theorem 2.1.9, with the columns in
reverse order). There are products and nothing to solve, so XLA can make one kernel of the leapfrog steps
(`bayesgen.posterior.compiled.one_kernel`): of 4 columns a step takes a quarter of the time that it takes in the factor
of Σ, where NumPyro solves triangular systems, of 10 a third.

**Lines with normal weights** have z = log(σ²/s²), and weights w = m + σ^c F u, where c is 1 if their prior scales with
the noise and 0 if it does not, and m and F are location and root of the posterior (`NormalWeights.solve`). Both squares
are of lines in u:

.. math:: |F_0^{-1} (w - m_0)|^2/\sigma^{2c} = |a\, e^{-cz/2} + A u|^2, \qquad
   |t - Zw|^2/\sigma^2 = |b\, e^{-z/2} - B u\, e^{(c - 1)z/2}|^2

of the prior N(m_0, σ^{2c} F_0 F_0'), and of the rows. Where c is 1, u is N(0, I) a posteriori and independent of z;
where it is 0, F is the root at the mode of σ, and u is close to that.
"""

import abc
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.core import program
from bayesgen.core.program import static
from bayesgen.core.statistics import Statistics
from bayesgen.models.gaussian import tie
from bayesgen.models.model import Hyperparameter, Hyperparameters, Params, hyperparameter, of_part, revised
from bayesgen.numerics.draws import log_gammas
from bayesgen.numerics.special import namespace
from bayesgen.numerics.student import triangular_inverse

_SMALL = 20  # columns


class Coordinates(Hyperparameters, abc.ABC):
    """A conjugate model in coordinates for a sampler: the half of a `Model` that NUTS needs."""

    conjugate: ClassVar[bool] = True
    smooth: ClassVar[bool] = True

    @abc.abstractmethod
    def latents(self, groups: int | None = None, name: str = "") -> Params:
        """Sample the coordinates, and add the log density of their prior to the program."""

    @abc.abstractmethod
    def log_likelihood(self, params: Params, statistics) -> Any:
        """Return log p(all rows | coordinates), from their statistics, up to a constant. JAX."""

    @abc.abstractmethod
    def start_from(self, statistics) -> Self | None:
        """Return the record whose draws start chains: the posterior, or one close to it; None where there is none."""

    @abc.abstractmethod
    def sample_parameters(self, rng: np.random.Generator, size: tuple[int, ...] = ()) -> Params:
        """Draw the coordinates."""

    def starting_draws(self, statistics, rng: np.random.Generator, size: tuple[int, ...]) -> Params:
        """Draw the coordinates: beside a leaf without a start of its own, as where rows have gaps."""
        return self.sample_parameters(rng, size)


@dataclass(frozen=True, eq=False)
class LeafCoordinates(Coordinates):
    """Coordinates of a conjugate leaf; in a classifier they stand where the leaf stood."""

    # the leaf whose parameters are sampled, with hyperparameters for every class and feature of the posterior
    leaf: Any

    per_class: ClassVar[bool] = True  # hyperparameters have the axes of the posterior, so they lead with the classes

    def has_closed_form(self, statistics) -> bool:
        """Tell if `update` takes these statistics, which it does."""
        return True

    def update(self, statistics) -> Self:
        """Return the coordinates of the leaf's posterior."""
        return revised(self, leaf=self.leaf.update(statistics))

    def start_from(self, statistics) -> Self:
        return self.update(statistics)


def real(site: str, shape: tuple[int, ...]) -> Any:
    """Sample an array of real numbers, whose density is a factor of the program."""
    support = program.dist.constraints.independent(program.dist.constraints.real, len(shape))
    return program.numpyro.sample(site, program.dist.ImproperUniform(support, (), shape))


def prior(density) -> None:
    """Add the log density of a prior, an array, to the program."""
    program.numpyro.factor("prior", density.sum())


# -- counts and categories -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LogRate(LeafCoordinates):
    """A `GammaPoisson` whose program has the site "log_mean", z of every class and feature."""

    def latents(self, groups=None, name=""):
        z = real("log_mean", self.leaf.batch_shape)
        prior(self.leaf.concentration * z - self.leaf.rate * program.jnp.exp(z))
        return {"log_mean": z}

    def log_likelihood(self, params, statistics):
        (rows, events), z = np.moveaxis(statistics.total(), -1, 0), params["log_mean"]
        return (events * z - rows * program.jnp.exp(z)).sum()

    def sample_parameters(self, rng, size=()):
        shape = (*size, *self.leaf.batch_shape)
        return {"log_mean": log_gammas(rng, self.leaf.concentration, shape) - np.log(self.leaf.rate)}


@dataclass(frozen=True, eq=False)
class LogOdds(LeafCoordinates):
    """A Beta prior on successes; the program has the site "log_odds", z of every class and feature."""

    def latents(self, groups=None, name=""):
        z, log_sigmoid = real("log_odds", self.leaf.batch_shape), program.jax.nn.log_sigmoid
        prior(self.leaf.a * log_sigmoid(z) + self.leaf.b * log_sigmoid(-z))
        return {"log_odds": z}

    def log_likelihood(self, params, statistics):
        (failures, successes), z = np.moveaxis(statistics.total(), -1, 0), params["log_odds"]
        log_sigmoid = program.jax.nn.log_sigmoid
        return (successes * log_sigmoid(z) + failures * log_sigmoid(-z)).sum()

    def sample_parameters(self, rng, size=()):
        shape = (*size, *self.leaf.batch_shape)
        return {"log_odds": log_gammas(rng, self.leaf.a, shape) - log_gammas(rng, self.leaf.b, shape)}


@dataclass(frozen=True, eq=False)
class LogGammas(LeafCoordinates):
    """A Dirichlet prior on categories; the program has the site "log_gamma", g of every class and feature."""

    total: Hyperparameter = hyperparameter(positive=True)  # shape A + N of the gamma distribution of T

    categories = of_part("leaf", "categories")

    def latents(self, groups=None, name=""):
        alpha = self.leaf.alpha
        g = real("log_gamma", alpha.shape)
        level = program.jax.nn.logsumexp(g, axis=-1)
        shares = (alpha * (g - level[..., None])).sum(-1)
        prior(shares + self.total * level - program.jnp.exp(level))
        return {"log_gamma": g, "log_share": g - level[..., None]}

    def log_likelihood(self, params, statistics):
        return (statistics.total() * params["log_share"]).sum()

    def sample_parameters(self, rng, size=()):
        return {"log_gamma": log_gammas(rng, self.leaf.alpha, (*size, *self.leaf.alpha.shape))}


@dataclass(frozen=True, eq=False)
class Collapsed(Coordinates):
    """A pooled leaf whose program has the sites of the population alone: its inner leaf is integrated out."""

    pooled: Any  # the leaf

    conjugate: ClassVar[bool] = False
    per_class: ClassVar[bool] = True

    def latents(self, groups=None, name=""):
        return self.pooled.sample_population(groups, name)

    def log_likelihood(self, params, statistics):
        """Return log p(all rows | population), a sum of evidences of the leaf."""
        return self.pooled.given(params, 1).log_evidence(statistics)

    def start_from(self, statistics):
        """Return None: chains start at draws of the prior, and look for the mode from there."""

    def sample_parameters(self, rng, size=()):
        return {}


# -- Gaussian features -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Standardised(LeafCoordinates):
    """A `NormalInverseGamma` of rows with posterior mean 0; the program has the sites "log_variance" and "offset"."""

    kappa_n: Hyperparameter = hyperparameter(positive=True)  # number of rows that the posterior mean is worth

    def latents(self, groups=None, name=""):
        """Sample z, once for all that share a variance, and u."""
        leaf = self.leaf
        params = {"log_variance": real("log_variance", leaf.alpha.shape), "offset": real("offset", leaf.batch_shape)}
        z = params["log_variance"]
        prior(-leaf.alpha * z - leaf.beta * program.jnp.exp(-z))
        program.numpyro.factor("prior_mean", -0.5 * (leaf.kappa * self._squares(params, leaf.mean)).sum())
        return params

    def _squares(self, params, point):
        """Return ((μ - point)/σ)²."""
        return (params["offset"] / self.kappa_n**0.5 - point * program.jnp.exp(-params["log_variance"] / 2)) ** 2

    def log_likelihood(self, params, statistics):
        z, rows = params["log_variance"], tie(statistics.n, self.leaf.tied)
        spread = rows * z + tie(statistics.scatter, self.leaf.tied) * program.jnp.exp(-z)
        return -0.5 * (spread.sum() + (statistics.n * self._squares(params, statistics.mean)).sum())

    def sample_parameters(self, rng, size=()):
        alpha = self.leaf.alpha
        z = np.log(self.leaf.beta) - log_gammas(rng, alpha, (*size, *alpha.shape))
        return {"log_variance": z, "offset": rng.standard_normal((*size, *self.leaf.batch_shape))}


# -- Gaussian vectors ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PrecisionFactor(LeafCoordinates):
    """A `NormalInverseWishart` whose program has the sites "factor", the vectors of r, and "offset", u."""

    kappa_n: Hyperparameter = hyperparameter(positive=True)  # number of rows that the posterior mean is worth

    def latents(self, groups=None, name=""):
        """Sample r, of every class or once for all, and u; "inverse" is U, "log_diagonal" the r_jj."""
        leaf, dim = self.leaf, self.leaf.mean.shape[-1]
        entries = dim * (dim + 1) // 2
        factor = real("factor", (entries,))[None] if leaf.shared else real("factor", (*leaf.batch_shape, entries))
        params = {"offset": real("offset", (*leaf.batch_shape, dim)), **_unfolded(factor, dim)}
        powers = leaf.nu[..., None] - dim + np.arange(1.0, dim + 1)
        density = (params["log_diagonal"] * powers).sum() - 0.5 * _traces(params, leaf.scale).sum()
        prior(density - 0.5 * (leaf.kappa * self._squares(params, leaf.mean)).sum())
        return params

    def log_likelihood(self, params, statistics):
        rows = statistics.n * (params["log_diagonal"].sum(-1) - 0.5 * self._squares(params, statistics.mean))
        scatter = statistics.scatter.sum(-3, keepdims=True) if self.leaf.shared else statistics.scatter
        return rows.sum() - 0.5 * _traces(params, scatter).sum()

    def _squares(self, params, point):
        """Return |U(mean - point)|² of every mean."""
        z = params["offset"] / self.kappa_n[..., None] ** 0.5 - (params["inverse"] @ point[..., None])[..., 0]
        return (z * z).sum(-1)

    def sample_parameters(self, rng, size=()):
        params = self.leaf.sample_parameters(rng, size)
        inverse = triangular_inverse(params["cholesky"])
        every = inverse[..., None, :, :] if self.leaf.shared else inverse
        offset = self.kappa_n[..., None] ** 0.5 * (every @ params["mean"][..., None])[..., 0]
        return {"offset": offset, "factor": _folded(inverse)}

    def factors(self, params):
        """Return Cholesky factors of the covariance, from draws of the sites."""
        return triangular_inverse(_unfolded(params["factor"], self.leaf.mean.shape[-1])["inverse"])


def _places(r, dim):
    """Place entries (..., D (D + 1)/2) in a square (..., D, D), each once on or below the diagonal. No scatter."""
    both = namespace(r).concatenate([r[..., dim:], r[..., ::-1]], axis=-1)
    return both.reshape(*r.shape[:-1], dim, dim)


def _unfolded(r, dim):
    """Return U and the logs of its diagonal."""
    square, eye = _places(r, dim), np.eye(dim)
    log_diagonal = (square * eye).sum(-1)
    diagonal = namespace(r).exp(log_diagonal)[..., None] * eye
    return {"inverse": square * np.tri(dim, k=-1) + diagonal, "log_diagonal": log_diagonal}


def _folded(inverse):
    """Return the vectors r of U."""
    dim = inverse.shape[-1]
    rows, columns = np.tril_indices(dim)
    raw, diagonal = inverse.copy(), np.arange(dim)
    raw[..., diagonal, diagonal] = np.log(raw[..., diagonal, diagonal])
    r = np.empty((*raw.shape[:-2], len(rows)))
    r[..., _places(np.arange(len(rows)), dim)[rows, columns]] = raw[..., rows, columns]
    return r


def _traces(params, matrix):
    """Return the traces of U A U', A a symmetric matrix; their derivative along dU is 2 tr(UA dU'), from the same UA.

    Without that rule the gradient has two products more: a step of 10 columns then takes a fifth longer.
    """

    def trace(inverse):
        return (_product(inverse, matrix) * inverse).sum((-2, -1))

    def rule(primals, tangents):
        (inverse,), (along,) = primals, tangents
        product = _product(inverse, matrix)
        return (product * inverse).sum((-2, -1)), 2 * (product * along).sum((-2, -1))

    result = program.jax.custom_jvp(trace)
    result.defjvp(rule)
    return result(params["inverse"])


def _product(inverse, matrix):
    """Return UA; in one kernel a small product takes half the time written out."""
    if inverse.shape[-1] <= _SMALL:
        return (inverse[..., None] * matrix[..., None, :, :]).sum(-2)
    return inverse @ matrix


@dataclass(frozen=True, eq=False)
class LineRows(Statistics):
    """The rows of a line: their weight n, b = ``target`` and B = ``rows``."""

    n: np.ndarray
    target: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class LineCoordinates(Coordinates):
    """A line whose program has the sites "log_variance", z, and "offset", u."""

    mean: Hyperparameter = hyperparameter(rank=1)  # mean, factor: (P,) and (P, P): the prior of the P weights: a and A
    factor: Hyperparameter = hyperparameter(rank=2)
    # alpha, beta: (): shape and scale of the prior on the noise variance, in units of s²
    alpha: Hyperparameter = hyperparameter(positive=True)
    beta: Hyperparameter = hyperparameter(positive=True)
    scaled: bool = static(kw_only=True)  # True if the prior of the weights scales with the noise: c is 1

    def latents(self, groups=None, name=""):
        z, u = real("log_variance", ()), real("offset", self.mean.shape)
        noise = program.jnp.exp(-z / 2) if self.scaled else 1.0
        squares = ((self.mean * noise + self.factor @ u) ** 2).sum()
        prior(-self.alpha * z - self.beta * program.jnp.exp(-z) - 0.5 * squares)
        return {"log_variance": z, "offset": u}

    def log_likelihood(self, params, statistics):
        z, u = params["log_variance"], params["offset"]
        noise = program.jnp.exp(-z / 2)
        residual = statistics.target * noise - statistics.rows @ u * (1.0 if self.scaled else noise)
        return -0.5 * (statistics.n * z + (residual**2).sum())

    def start_from(self, statistics):
        """Return the posterior, or one close to it where the prior of the weights does not scale with the noise."""
        return revised(self, alpha=self.alpha + statistics.n / 2)

    def sample_parameters(self, rng, size=()):
        """Draw z and u, of a record that `start_from` made."""
        z = np.log(self.alpha) - log_gammas(rng, self.alpha, size)
        return {"log_variance": z, "offset": rng.standard_normal((*size, len(self.mean)))}
