r"""Linear regression: the conjugate discriminative model, with unknown and with known noise.

With a row z = (1, x), x of D columns, and weights w = (intercept, coefficients); without an intercept z = x, and w are
the coefficients:

.. math:: \sigma^2 \sim \mathrm{InvGamma}(a, b), \quad w \mid \sigma^2 \sim N(m, \sigma^2 V), \quad
   t_i \mid x_i, w, \sigma^2 \sim N(z_i^\top w, \sigma^2)

V_n⁻¹ = V⁻¹ + Z'Z, m_n = V_n (V⁻¹ m + Z't), a_n = a + n/2, b_n = b + (|t - Z m_n|² + (m_n - m)' V⁻¹ (m_n - m))/2.
Predictive: Student-t with 2 a_n degrees of freedom, location z'm_n, squared scale (b_n/a_n)(1 + z'V_n z).
Evidence: log p(t | x), for the columns have no distribution here. Joint mode: m_n and b_n/(a_n + 1 + p/2), p weights.
With V = s² I the mode of the coefficients is ridge regression with penalty 1/s². (Bishop 2006, section 3.3; Murphy
2012, *Machine Learning*, section 7.6.)

The rows enter as `LineStatistics`, a triangular factor, and V as a triangular root, V = F F'; see
`bayesgen.models.normal_weights`. A prior of the weights that does not scale with the noise is in
`bayesgen.models.semi_conjugate_regression`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen import program
from bayesgen.hyperparameters import Hyperparameter, hyperparameter
from bayesgen.model import Conjugate
from bayesgen.models.gaussian import LOG_2PI
from bayesgen.models.line_statistics import LineStatistics
from bayesgen.models.normal_weights import NormalWeights
from bayesgen.numerics.scaled import log1p_sum_squares
from bayesgen.numerics.special import log_gamma_ratio, namespace
from bayesgen.program import static


class _ConjugateLine(NormalWeights, Conjugate):
    """The algebra of weights ~ N(mean, F F'), times the variance where it is unknown."""

    def map(self, statistics):
        """Mode of the posterior."""
        return self.update(statistics).mode()

    def locate(self, x, noise: Any = 1.0):
        """Location z'm of the predictive at rows x (n, D), and log(1 + z'Vz/noise²), which no row overflows."""
        z = self.design(x)
        return z @ self.mean, log1p_sum_squares(z @ self.factor / noise)


@dataclass(frozen=True, eq=False)
class LinearRegression(_ConjugateLine):
    """Linear regression with a normal-inverse-gamma prior on weights and noise variance.

    The model puts the column of ones in: the first weight is the intercept, with a prior variance of its own. Without
    an intercept (``intercept=False``) ``mean`` and ``factor`` are those of the D coefficients.

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
        Whether there is one.

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

    mean: Hyperparameter = hyperparameter(rank=1)
    factor: Hyperparameter = hyperparameter(rank=2)
    alpha: Hyperparameter = hyperparameter(1.0, positive=True)
    beta: Hyperparameter = hyperparameter(1.0, positive=True)
    columns: tuple[str, ...] = static(default=())
    intercept: bool = static(default=True, kw_only=True)

    def latents(self):
        """Sample the noise variance, and the weights given it."""
        variance = program.numpyro.sample("variance", program.dist.InverseGamma(self.alpha, self.beta))
        return self.weights(variance) | {"variance": variance}

    def update(self, statistics: LineStatistics) -> "LinearRegression":
        """Return the posterior."""
        mean, factor, squares = self.solve(statistics)
        alpha, beta = self.alpha + statistics.n / 2, self.beta + squares / 2
        return replace(self, mean=mean, factor=factor, alpha=alpha, beta=beta)

    def whitened(self, statistics: LineStatistics):
        """The same posterior in the logarithm of the variance, and in weights that do not correlate."""
        from bayesgen.models.line_coordinates import straightened

        return straightened(self, statistics)

    def log_evidence(self, statistics: LineStatistics):
        """Log p(t | x) = -n log(2π)/2 + log|V_n|/2 - log|V|/2 + a log b - a_n log b_n + log Γ(a_n) - log Γ(a)."""
        _, factor, squares = self.solve(statistics)
        half, rest, xp = statistics.n / 2, squares / 2, namespace(squares, self.alpha, self.beta)
        determinants = xp.log(factor.diagonal() / self.factor.diagonal()).sum()
        scales = self.alpha * xp.log1p(rest / self.beta) + half * xp.log(self.beta + rest)
        return determinants + log_gamma_ratio(self.alpha, half) - half * LOG_2PI - scales

    def predictive(self, x):
        """Student-t of the target at each row of x (n, D), as a NumPyro distribution."""
        location, level = self.locate(self.check_columns(x))
        scale = (self.beta / self.alpha) ** 0.5 * namespace(level).exp(level / 2)
        return program.dist.StudentT(2 * self.alpha, location, scale)

    def log_predictive(self, x):
        """Log p(t_i | x_i) of rows (x, t), a pair or a mapping, with the weights and the noise integrated out; (n,)."""
        rows = self.check(x)
        location, level = self.locate(rows["x"])
        xp = namespace(location, level, self.alpha, self.beta)
        distance = (rows["t"] - location) * xp.exp(-level / 2) / (2 * self.beta) ** 0.5
        constant = log_gamma_ratio(self.alpha, 0.5) - 0.5 * (LOG_2PI + xp.log(self.beta) + level)
        return constant - (self.alpha + 0.5) * log1p_sum_squares(distance, ())

    def predictive_moments(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the target at each row of x (n, D); the variance is infinite where alpha <= 1."""
        location, level = self.locate(self.check_columns(x))
        return location, self.expected()["variance"] * np.exp(level)

    def expected(self):
        """Means of the parameters; that of the variance is infinite where alpha <= 1."""
        return self.params(self.mean, self.beta / (self.alpha - 1) if self.alpha > 1 else np.inf)

    def mode(self):
        """Joint mode of (weights, variance): m and b / (a + 1 + p/2), p weights."""
        return self.params(self.mean, self.beta / (self.alpha + 1 + len(self.mean) / 2))

    def sample_parameters(self, rng, size=()):
        """Exact draws: inverse gamma, then normal."""
        variance = self.beta / rng.gamma(self.alpha, size=size)
        normal = rng.normal(size=(*size, len(self.mean))) @ self.factor.T
        return self.params(self.mean + np.sqrt(variance)[..., None] * normal, variance)


@dataclass(frozen=True, eq=False)
class LinearRegressionKnownVariance(_ConjugateLine):
    """Linear regression with weights ~ N(mean, F F') and known noise.

    Parameters
    ----------
    mean : array, shape (1 + D,)
        Prior mean of intercept and coefficients, in units of t and of t per unit of x.
    factor : array, shape (1 + D, 1 + D)
        Lower triangular root F of the prior covariance, in the same units: ``np.diag`` of standard deviations, or
        ``np.linalg.cholesky`` of the covariance matrix.
    noise_sd : float
        Known standard deviation of the noise, in units of t.
    columns : tuple of str, optional
        Names of the columns.
    intercept : bool, keyword, default True
        Whether there is one.

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

    mean: Hyperparameter = hyperparameter(rank=1)
    factor: Hyperparameter = hyperparameter(rank=2)
    noise_sd: Hyperparameter = hyperparameter(1.0, positive=True)
    columns: tuple[str, ...] = static(default=())
    intercept: bool = static(default=True, kw_only=True)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance matrix of the weights."""
        return self.factor @ self.factor.T

    def latents(self):
        """Sample the weights; the known variance is recorded beside them."""
        variance = program.numpyro.deterministic("variance", program.jnp.asarray(self.noise_sd**2))
        return self.weights(1.0) | {"variance": variance}

    def update(self, statistics: LineStatistics) -> "LinearRegressionKnownVariance":
        """Return the posterior."""
        mean, factor, _ = self.solve(statistics, self.noise_sd)
        return replace(self, mean=mean, factor=factor)

    def log_evidence(self, statistics: LineStatistics):
        """Log p(t | x) = -n log(2πσ²)/2 + log|V_n|/2 - log|V|/2 - (|t - Z m_n|²/σ² + |F⁻¹(m_n - m)|²)/2."""
        _, factor, squares = self.solve(statistics, self.noise_sd)
        xp = namespace(factor, self.noise_sd)
        determinants = xp.log(factor.diagonal() / self.factor.diagonal()).sum()
        return determinants - 0.5 * (statistics.n * (LOG_2PI + 2 * xp.log(self.noise_sd)) + squares)

    def predictive(self, x):
        """Normal of the target at each row of x (n, D), as a NumPyro distribution."""
        location, level = self.locate(self.check_columns(x), self.noise_sd)
        return program.dist.Normal(location, self.noise_sd * namespace(level).exp(level / 2))

    def log_predictive(self, x):
        """Log p(t_i | x_i) of rows (x, t), a pair or a mapping, with the weights integrated out; (n,)."""
        rows = self.check(x)
        location, level = self.locate(rows["x"], self.noise_sd)
        xp = namespace(location, level, self.noise_sd)
        distance = (rows["t"] - location) * xp.exp(-level / 2) / self.noise_sd
        return -0.5 * (LOG_2PI + 2 * xp.log(self.noise_sd) + level + distance**2)

    def predictive_moments(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the target at each row of x (n, D)."""
        location, level = self.locate(self.check_columns(x), self.noise_sd)
        return location, self.noise_sd**2 * np.exp(level)

    def ml(self, statistics):
        """Return the estimate by least squares."""
        return self.params(self.least_squares(statistics)[0], self.noise_sd**2)

    def expected(self):
        """Means of the parameters."""
        return self.params(self.mean, self.noise_sd**2)

    def mode(self):
        """The mean."""
        return self.expected()

    def sample_parameters(self, rng, size=()):
        """Draw the weights exactly; the variance is known."""
        weights = self.mean + rng.normal(size=(*size, len(self.mean))) @ self.factor.T
        return self.params(weights, np.broadcast_to(self.noise_sd**2, size))
