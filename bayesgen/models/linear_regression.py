r"""Linear regression with a normal prior on the weights: conjugate, with known noise, and semi-conjugate.

Let z = (1, x) be a row of D columns and w = (intercept, coefficients) the weights; without an intercept z = x, and w
are the coefficients. The prior covariance is given by a triangular root, V = F F'. The rows enter as `LineStatistics`.
Given the noise, the posterior of the weights is least squares by a QR factorisation of F⁻¹ above the triangular factor
of the rows, so that no matrix is squared.

**Unknown noise: the conjugate model.** `LinearRegression` has

.. math:: \sigma^2 \sim \mathrm{InvGamma}(a, b), \quad w \mid \sigma^2 \sim N(m, \sigma^2 V), \quad
   t_i \mid x_i, w, \sigma^2 \sim N(z_i^\top w, \sigma^2)

V_n⁻¹ = V⁻¹ + Z'Z, m_n = V_n (V⁻¹ m + Z't), a_n = a + n/2, b_n = b + (|t - Z m_n|² + (m_n - m)' V⁻¹ (m_n - m))/2.
Predictive: Student-t with 2 a_n degrees of freedom, location z'm_n, squared scale (b_n/a_n)(1 + z'V_n z).
Evidence: log p(t | x), since the columns have no distribution here. Joint mode: m_n and b_n/(a_n + 1 + p/2), p weights.
With V = s² I the mode of the coefficients is ridge regression with penalty 1/s². (Bishop 2006, section 3.3; Murphy
2012, *Machine Learning*, section 7.6.)

**Known noise.** `LinearRegressionKnownVariance` has w ~ N(m, V), with V in squared units of the weights.

**Independent priors: the semi-conjugate model.** `SemiConjugateLinearRegression` has

.. math:: \sigma^2 \sim \mathrm{InvGamma}(a, b), \quad w \sim N(m, V), \quad
   t_i \mid x_i, w, \sigma^2 \sim N(z_i^\top w, \sigma^2)

with V in units of t², where `LinearRegression` has it in units of the noise variance. Weights and noise have each a
closed form given the other, and none together: NUTS samples them.

Its mode: given σ² the mode of the weights is w(σ²) = m_n of `LinearRegressionKnownVariance`, and given the weights σ²
is (b + |t - Zw|²/2)/(a + 1 + n/2). The residuals at a mode lie between the residuals of least squares and those at m,
so the σ² of every mode lies between two known ends. There the density at (w(σ²), σ²), a function of σ² alone, is
searched on a grid of its logarithm, and then about the best point. (Hoff 2009, *A First Course in Bayesian Statistical
Methods*, section 9.2.)
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.optimize import minimize_scalar

from bayesgen.core import program
from bayesgen.core.program import is_abstract, static
from bayesgen.models.gaussian import LOG_2PI
from bayesgen.models.linear_model import GaussianLine, LineStatistics
from bayesgen.models.model import Conjugate, Hyperparameter, hyperparameter
from bayesgen.numerics.special import log1p_sum_squares, log_gamma_ratio, namespace

_GRID = 60  # points of the search for the mode of the semi-conjugate model


@dataclass(frozen=True, eq=False)
class NormalWeights(GaussianLine):
    """A line whose weights are N(mean, F F'), in units of the noise or of the target."""

    mean: Hyperparameter = hyperparameter(rank=1)
    factor: Hyperparameter = hyperparameter(rank=2)

    def __post_init__(self):
        super().__post_init__()
        size, owner, factor = len(self.mean), type(self).__name__, self.factor
        if self.mean.ndim != 1 or size < 1 + self.intercept:
            each = "that of the intercept and of each coefficient" if self.intercept else "that of each coefficient"
            raise ValueError(f"{owner}: mean must hold {each}, got {self.mean}")
        known = factor.shape == (size, size) and not is_abstract(factor)
        wrong = known and (np.triu(factor, 1).any() or not (np.diagonal(factor) > 0).all())
        if factor.shape != (size, size) or wrong:
            raise ValueError(
                f"{owner}: factor must be lower triangular ({size}, {size}) with a positive diagonal: "
                "np.diag of standard deviations, or np.linalg.cholesky of a covariance matrix"
            )

    @property
    def features(self) -> int:
        return self.mean.shape[-1] - self.intercept

    def weights(self, variance):
        """Sample the intercept, then the coefficients given it, from N(mean, variance F F')."""
        numpyro, dist, mean, factor = program.numpyro, program.dist, self.mean, self.factor
        sd = variance**0.5
        if self.intercept:
            intercept = numpyro.sample("intercept", dist.Normal(mean[0], sd * factor[0, 0]))
            mean = mean[1:] + factor[1:, 0] * (intercept - mean[0]) / factor[0, 0]
            factor = factor[1:, 1:]
        else:
            intercept = numpyro.deterministic("intercept", program.jnp.zeros(()))
        coefficients = numpyro.sample("coefficients", dist.MultivariateNormal(mean, scale_tril=sd * factor))
        return {"intercept": intercept, "coefficients": coefficients}

    def solve(self, statistics: LineStatistics, noise: Any = 1.0):
        """Return by one QR posterior mean m_n, root of V, and |t - Z m_n|²/noise² + (m_n - m)' V⁻¹ (m_n - m)."""
        xp, size, rows = namespace(self.mean, self.factor, noise), len(self.mean), self.rows_of(statistics)
        z = xp.concatenate([_invert(self.factor, lower=True), rows[:, :-1] / noise])
        step = rows[:, -1] - rows[:, :-1] @ self.mean  # from the prior mean, so that offsets do not cancel
        t = xp.concatenate([xp.zeros(size), step / noise])
        q, r = xp.linalg.qr(z[:, ::-1])  # reversed columns, so that the root is lower triangular
        inverse = _invert(r)
        factor = xp.tril(inverse[::-1, ::-1])
        factor = factor * xp.sign(factor.diagonal())[None]
        step = _solve_triangular(r, q.T @ t)[::-1]
        residual = t - z @ step
        return self.mean + step, factor, residual @ residual


def _solve_triangular(matrix, right, lower=False):
    library = linalg if namespace(matrix, right) is np else program.jax.scipy.linalg
    return library.solve_triangular(matrix, right, lower=lower)


def _invert(matrix, lower=False):
    return _solve_triangular(matrix, np.eye(len(matrix), dtype=matrix.dtype), lower)


class _ConjugateLine(NormalWeights, Conjugate):
    """The algebra of weights ~ N(mean, F F'), in units of the noise where its variance is unknown."""

    _noise: Any = 1.0  # standard deviation of the noise in the units of F

    def locate(self, x):
        """Return the predictive's location z'm at rows x (n, D), and log(1 + z'Vz/noise²), which no row overflows."""
        z = self.design(x)
        return z @ self.mean, log1p_sum_squares(z @ self.factor / self._noise)

    def predictive_moments(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the target at rows x (n, D); the variance is infinite where alpha <= 1."""
        location, level = self.locate(self.check_columns(x))
        return location, self.expected()["variance"] * np.exp(level)


@dataclass(frozen=True, eq=False)
class LinearRegression(_ConjugateLine):
    """Linear regression with a normal-inverse-gamma prior on weights and noise variance.

    The model adds the column of ones: the first weight is the intercept, with a prior variance of its own. Without an
    intercept (``intercept=False``) ``mean`` and ``factor`` belong to the D coefficients alone.

    Parameters
    ----------
    mean : array, shape (1 + D,)
        Prior mean m of intercept and coefficients, in units of t and of t per unit of x.
    factor : array, shape (1 + D, 1 + D)
        Lower triangular root F of V = F F', the prior covariance of the weights in units of the noise variance:
        ``np.diag`` of their standard deviations, or ``np.linalg.cholesky(V)``.
    alpha, beta : float
        Shape, and scale in squared units of t, of the inverse-gamma prior on the noise variance, > 0.
    columns : tuple of str, optional
        Names of the columns.
    intercept : bool, keyword, default True
        If False, the line goes through 0.

    Examples
    --------
    >>> prior = LinearRegression(mean=[0, 0], factor=np.diag([10.0, 10.0]), alpha=1, beta=1)
    >>> statistics = prior.statistics(x=[[0.0], [1.0], [2.0]], t=[1.0, 3.1, 4.9])
    >>> posterior = prior.update(statistics)
    >>> posterior.mean.round(2), float(posterior.alpha)
    (array([1.05, 1.95]), 2.5)
    >>> round(float(prior.log_evidence(statistics)), 2)
    -8.06
    """

    alpha: Hyperparameter = hyperparameter(1.0, positive=True)
    beta: Hyperparameter = hyperparameter(1.0, positive=True)
    columns: tuple[str, ...] = static(default=())

    def latents(self):
        variance = program.numpyro.sample("variance", program.dist.InverseGamma(self.alpha, self.beta))
        return self.weights(variance) | {"variance": variance}

    def update(self, statistics: LineStatistics) -> "LinearRegression":
        mean, factor, squares = self.solve(statistics)
        alpha, beta = self.alpha + statistics.n / 2, self.beta + squares / 2
        return replace(self, mean=mean, factor=factor, alpha=alpha, beta=beta)

    def log_evidence(self, statistics: LineStatistics):
        """Return log p(t | x).

        It is -n log(2π)/2 + log|V_n|/2 - log|V|/2 + a log b - a_n log b_n + log Γ(a_n) - log Γ(a).
        """
        _, factor, squares = self.solve(statistics)
        half, loss, xp = statistics.n / 2, squares / 2, namespace(squares, self.alpha, self.beta)
        determinants = xp.log(factor.diagonal() / self.factor.diagonal()).sum()
        scales = self.alpha * xp.log1p(loss / self.beta) + half * xp.log(self.beta + loss)
        return determinants + log_gamma_ratio(self.alpha, half) - half * LOG_2PI - scales

    def predictive(self, x):
        location, level = self.locate(self.check_columns(x))
        scale = (self.beta / self.alpha) ** 0.5 * namespace(level).exp(level / 2)
        return program.dist.StudentT(2 * self.alpha, location, scale)

    def log_predictive(self, x):
        rows = self.check(x)
        location, level = self.locate(rows["x"])
        xp = namespace(location, level, self.alpha, self.beta)
        distance = (rows["t"] - location) * xp.exp(-level / 2) / (2 * self.beta) ** 0.5
        constant = log_gamma_ratio(self.alpha, 0.5) - 0.5 * (LOG_2PI + xp.log(self.beta) + level)
        return constant - (self.alpha + 0.5) * log1p_sum_squares(distance, ())

    def expected(self):
        """Return the means of the parameters; the variance's is infinite where alpha <= 1."""
        return self.params(self.mean, self.beta / (self.alpha - 1) if self.alpha > 1 else np.inf)

    def mode(self):
        """Return the joint mode of (weights, variance): m and b / (a + 1 + p/2), p weights."""
        return self.params(self.mean, self.beta / (self.alpha + 1 + len(self.mean) / 2))

    def sample_parameters(self, rng, size=()):
        variance = self.beta / rng.gamma(self.alpha, size=size)
        normal = rng.normal(size=(*size, len(self.mean))) @ self.factor.T
        return self.params(self.mean + np.sqrt(variance)[..., None] * normal, variance)


@dataclass(frozen=True, eq=False)
class LinearRegressionKnownVariance(_ConjugateLine):
    """Linear regression with weights ~ N(mean, F F') and known noise.

    Parameters
    ----------
    mean, columns, intercept
        As of `LinearRegression`.
    factor : array, shape (1 + D, 1 + D)
        Lower triangular root F of the prior covariance, in units of t and of t per unit of x: ``np.diag`` of standard
        deviations, or ``np.linalg.cholesky`` of the covariance matrix.
    noise_sd : float
        Known standard deviation of the noise, in units of t.

    Notes
    -----
    The posterior is Normal with V_n⁻¹ = V⁻¹ + Z'Z/σ² and m_n = V_n (V⁻¹ m + Z't/σ²), its mode m_n; the predictive is
    N(z'm_n, σ² + z'V_n z). (Bishop 2006, section 3.3.)

    Examples
    --------
    >>> prior = LinearRegressionKnownVariance(mean=[0, 0], factor=np.diag([10.0, 10.0]), noise_sd=0.1)
    >>> posterior = prior.update(prior.statistics(x=[[0.0], [1.0], [2.0]], t=[1.0, 3.1, 4.9]))
    >>> posterior.mean.round(2), np.sqrt(np.diagonal(posterior.covariance)).round(3)
    (array([1.05, 1.95]), array([0.091, 0.071]))
    """

    noise_sd: Hyperparameter = hyperparameter(1.0, positive=True)
    columns: tuple[str, ...] = static(default=())

    _noise = property(lambda self: self.noise_sd)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance matrix of the weights."""
        return self.factor @ self.factor.T

    def latents(self):
        variance = program.numpyro.deterministic("variance", program.jnp.asarray(self.noise_sd**2))
        return self.weights(1.0) | {"variance": variance}

    def update(self, statistics: LineStatistics) -> "LinearRegressionKnownVariance":
        mean, factor, _ = self.solve(statistics, self.noise_sd)
        return replace(self, mean=mean, factor=factor)

    def log_evidence(self, statistics: LineStatistics):
        """Return log p(t | x).

        It is -n log(2πσ²)/2 + log|V_n|/2 - log|V|/2 - (|t - Z m_n|²/σ² + |F⁻¹(m_n - m)|²)/2.
        """
        _, factor, squares = self.solve(statistics, self.noise_sd)
        xp = namespace(factor, self.noise_sd)
        determinants = xp.log(factor.diagonal() / self.factor.diagonal()).sum()
        return determinants - 0.5 * (statistics.n * (LOG_2PI + 2 * xp.log(self.noise_sd)) + squares)

    def predictive(self, x):
        location, level = self.locate(self.check_columns(x))
        return program.dist.Normal(location, self.noise_sd * namespace(level).exp(level / 2))

    def log_predictive(self, x):
        rows = self.check(x)
        location, level = self.locate(rows["x"])
        xp = namespace(location, level, self.noise_sd)
        distance = (rows["t"] - location) * xp.exp(-level / 2) / self.noise_sd
        return -0.5 * (LOG_2PI + 2 * xp.log(self.noise_sd) + level + distance**2)

    def ml(self, statistics):
        return self.params(self.least_squares(statistics)[0], self.noise_sd**2)

    def expected(self):
        return self.params(self.mean, self.noise_sd**2)

    def mode(self):
        return self.expected()

    def sample_parameters(self, rng, size=()):
        weights = self.mean + rng.normal(size=(*size, len(self.mean))) @ self.factor.T
        return self.params(weights, np.broadcast_to(self.noise_sd**2, size))


@dataclass(frozen=True, eq=False)
class SemiConjugateLinearRegression(NormalWeights):
    """Linear regression whose prior on the weights does not scale with the noise; by NUTS, MAP and Laplace.

    Parameters
    ----------
    mean, alpha, beta, columns, intercept
        As of `LinearRegression`.
    factor : array, shape (1 + D, 1 + D), or (D, D)
        Lower triangular root F of the prior covariance, as of `LinearRegressionKnownVariance`.

    Examples
    --------
    >>> from bayesgen import fit
    >>> model = SemiConjugateLinearRegression(mean=[0.0], factor=[[10.0]], intercept=False)
    >>> mode = fit(model, ([[1.0], [2.0], [3.0]], [2.1, 3.9, 6.0]), "map").params
    >>> mode["coefficients"].round(2), float(mode["variance"].round(2))
    (array([1.99]), 0.29)
    """

    alpha: Hyperparameter = hyperparameter(1.0, positive=True)
    beta: Hyperparameter = hyperparameter(1.0, positive=True)
    columns: tuple[str, ...] = static(default=())

    def latents(self):
        variance = program.numpyro.sample("variance", program.dist.InverseGamma(self.alpha, self.beta))
        return self.weights(1.0) | {"variance": variance}

    def start_from(self, statistics):
        """Return the posterior of the `LinearRegression` whose prior is the same at the mode of the variance."""
        factor, options = self.factor / self.noise_at_mode(statistics), {"intercept": self.intercept}
        return LinearRegression(self.mean, factor, self.alpha, self.beta, self.columns, **options).update(statistics)

    def noise_at_mode(self, statistics) -> float:
        """Return the standard deviation of the noise at the mode."""
        return float(self.map(statistics)["variance"]) ** 0.5

    def map(self, statistics):
        rows, power = self.rows_of(statistics), self.alpha + 1 + statistics.n / 2

        def scale(weights):
            """Return b + |t - Zw|²/2, the factor of -1/σ² in the log density."""
            return self.beta + ((rows[:, -1] - rows[:, :-1] @ weights) ** 2).sum() / 2

        def energy(u):
            squares = self.solve(statistics, np.exp(u / 2))[2]
            return power * u + self.beta * np.exp(-u) + squares / 2

        least = np.linalg.lstsq(rows[:, :-1], rows[:, -1])[0]
        low, high = np.log([scale(least) / power, scale(self.mean) / power])
        grid = np.linspace(low - 0.01, high + 0.01, _GRID)
        best = int(np.argmin([energy(u) for u in grid]))
        around = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
        least: Any = minimize_scalar(energy, bounds=around, method="bounded", options={"xatol": 1e-12})
        u = least.x
        return self.params(self.solve(statistics, np.exp(u / 2))[0], np.exp(u))
