"""Weights of a line with a normal prior: the program of the prior, and the posterior given the noise, by one QR.

The algebra is least squares by a QR factorisation of F⁻¹, V = F F' the prior covariance, above the triangular factor of
the rows, so that no matrix is squared.
"""

from typing import Any

import numpy as np
from scipy import linalg

from bayesgen import program
from bayesgen.hyperparameters import Hyperparameter
from bayesgen.models.gaussian_line import GaussianLine
from bayesgen.models.line_statistics import LineStatistics
from bayesgen.numerics.checks import check_flag
from bayesgen.numerics.special import namespace
from bayesgen.program import is_abstract


class NormalWeights(GaussianLine):
    """A line whose weights are N(mean, F F'), in units of the noise or of the target."""

    mean: Hyperparameter
    factor: Hyperparameter

    def __post_init__(self):
        check_flag(f"{type(self).__name__}: intercept", self.intercept)
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
        """Number of columns D."""
        return self.mean.shape[-1] - self.intercept

    def weights(self, variance):
        """Sample intercept and coefficients from N(mean, variance F F'): the intercept, then the others given it."""
        numpyro, dist, mean, factor = program.numpyro, program.dist, self.mean, self.factor
        sd = variance**0.5
        if not self.intercept:
            intercept = numpyro.deterministic("intercept", program.jnp.zeros(()))
            coefficients = numpyro.sample("coefficients", dist.MultivariateNormal(mean, scale_tril=sd * factor))
            return {"intercept": intercept, "coefficients": coefficients}
        intercept = numpyro.sample("intercept", dist.Normal(mean[0], sd * factor[0, 0]))
        location = mean[1:] + factor[1:, 0] * (intercept - mean[0]) / factor[0, 0]
        coefficients = numpyro.sample("coefficients", dist.MultivariateNormal(location, scale_tril=sd * factor[1:, 1:]))
        return {"intercept": intercept, "coefficients": coefficients}

    def solve(self, statistics: LineStatistics, noise: Any = 1.0):
        """Posterior mean and root of V, and the squares |t - Z m_n|²/noise² + (m_n - m)' V⁻¹ (m_n - m), by one QR."""
        xp, size, rows = namespace(self.mean, self.factor, noise), len(self.mean), self.rows_of(statistics)
        z = xp.concatenate([_invert(self.factor, lower=True), rows[:, :-1] / noise])
        step = rows[:, -1] - rows[:, :-1] @ self.mean  # from the prior mean, so that offsets do not cancel
        t = xp.concatenate([xp.zeros(size), step / noise])
        q, r = xp.linalg.qr(z[:, ::-1])  # columns turned round, so that the root comes out lower triangular
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
