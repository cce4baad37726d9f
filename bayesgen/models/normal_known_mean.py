r"""A Gaussian variance under a known mean: the error of an instrument that reads a standard of known size.

.. math:: \sigma^2 \sim \mathrm{InvGamma}(\alpha, \beta), \qquad x_i \mid \sigma^2 \sim N(m, \sigma^2), \quad
   m \text{ given}

With n rows whose squared deviations from m sum to Q: alpha_n = alpha + n/2, beta_n = beta + Q/2. Predictive: Student-t
about m with 2 alpha_n degrees of freedom and squared scale beta_n/alpha_n. Mode of the variance beta_n/(alpha_n + 1);
ML Q/n, with no row spent on the mean. Evidence (2π)^(-n/2) beta^alpha/beta_n^alpha_n Γ(alpha_n)/Γ(alpha).
(Gelman et al. 2013, *Bayesian Data Analysis*, section 2.6.)
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bayesgen import program
from bayesgen.errors import DataError, first
from bayesgen.hyperparameters import Hyperparameter, hyperparameter
from bayesgen.leaf import ConjugateFamily
from bayesgen.models.gaussian import LOG_2PI, Gaussian, beside_rows, mean_variance
from bayesgen.numerics.scaled import log1p_sum_squares
from bayesgen.numerics.special import log_gamma_ratio, namespace


@dataclass(frozen=True, eq=False)
class NormalKnownMean(Gaussian, ConjugateFamily):
    """Gaussian feature with known mean and an inverse-gamma prior on its variance.

    Parameters
    ----------
    mean : float or array, shape (features...)
        Known mean, in the units of x.
    alpha, beta : float or array, shape (features...)
        Shape, and scale in squared units of x, of the inverse-gamma prior on the variance, > 0.

    Examples
    --------
    >>> prior = NormalKnownMean(mean=10.0, alpha=1.0, beta=1.0)
    >>> posterior = prior.update(prior.statistics([9.0, 12.0, 10.0]))
    >>> float(posterior.alpha), round(float(posterior.beta), 12), round(float(posterior.mode()["variance"]), 12)
    (2.5, 3.5, 1.0)
    """

    mean: Hyperparameter = hyperparameter(0.0)
    alpha: Hyperparameter = hyperparameter(1.0, positive=True)
    beta: Hyperparameter = hyperparameter(1.0, positive=True)

    @classmethod
    def from_guess(cls, mean: float, sd: float, rows: float) -> Self:
        """The prior of an expert who knows the column's mean and guesses its sd; ``rows`` is what the guess is worth.

        The mean of the variance is sd².

        >>> NormalKnownMean.from_guess(mean=20, sd=4, rows=10)
        NormalKnownMean(mean=20, alpha=6, beta=80)
        """
        return cls(mean, 1 + rows / 2, sd**2 * rows / 2)

    def parameters(self):
        """Sample the variance; the known mean is recorded beside it."""
        variance = program.numpyro.sample("variance", program.dist.InverseGamma(self.alpha, self.beta))
        mean = program.jnp.broadcast_to(self.mean, variance.shape)  # pyright: ignore[reportAttributeAccessIssue]
        return {"mean": program.numpyro.deterministic("mean", mean), "variance": variance}

    def predictive(self):
        """Student-t with 2 alpha degrees of freedom."""
        return program.dist.StudentT(2 * self.alpha, self.mean, (self.beta / self.alpha) ** 0.5)

    def _squares(self, statistics):
        """Half the sum of squared deviations from the known mean."""
        return 0.5 * (statistics.scatter + statistics.n * (statistics.mean - self.mean) ** 2)

    def expected(self):
        """The known mean, and the mean of the variance."""
        parts = {"mean": self.mean, "variance": mean_variance(self.alpha, self.beta)}
        return {site: np.broadcast_to(value, self.batch_shape) for site, value in parts.items()}

    def update(self, statistics) -> Self:
        """Add half the rows and half the squares."""
        alpha = self.alpha + 0.5 * statistics.n
        mean = namespace(alpha).broadcast_to(self.mean, alpha.shape)
        return self.revised(mean=mean, alpha=alpha, beta=self.beta + self._squares(statistics))

    def whitened(self, statistics):
        """The same posterior of rows of variance 1, in the logarithm of the variance."""
        from bayesgen.models.coordinates import log_variance

        return log_variance(self, statistics)

    def log_evidence_terms(self, statistics):
        """Log of (2π)^(-n/2) beta^alpha/beta_n^alpha_n Γ(alpha_n)/Γ(alpha)."""
        rows, squares = 0.5 * statistics.n, self._squares(statistics)
        xp = namespace(squares, self.alpha)
        scales = self.alpha * xp.log1p(squares / self.beta) + rows * xp.log(self.beta + squares)
        return log_gamma_ratio(self.alpha, rows) - rows * LOG_2PI - scales

    def log_predictive(self, x):
        """Log density of the Student-t."""
        if not self.concrete:
            return super().log_predictive(x)
        x = self.check(x)
        alpha, spread = self.beside(self.alpha, x), 2 * self.beside(self.beta, x)
        z = (x - self.beside(self.mean, x)) / np.sqrt(spread)
        level = log_gamma_ratio(alpha, 0.5) - 0.5 * np.log(np.pi * spread)
        return self.over_features(level - (alpha + 0.5) * log1p_sum_squares(np.nan_to_num(z), ()), x)

    def student(self, x, params=None):
        """Of the predictive, a Student-t about the known mean."""
        if params is not None:
            return super().student(x, params)
        mean, width, dof = np.broadcast_arrays(self.mean, np.sqrt(self.beta / self.alpha), 2 * self.alpha)
        return beside_rows(mean, x), beside_rows(width, x), beside_rows(dof, x)

    def mode(self):
        """The mode of the variance, beta / (alpha + 1)."""
        return self._with_mean(self.beta / (self.alpha + 1))

    def ml(self, statistics):
        """Mean squared deviation from the known mean."""
        if (statistics.n <= 0).any():
            raise DataError("maximum likelihood does not exist: no observed value", **first(statistics.n <= 0))
        variance = 2 * self._squares(statistics) / statistics.n
        if (variance <= statistics.resolution()).any():
            none = variance <= statistics.resolution()
            raise DataError("maximum likelihood does not exist: every value is the known mean", **first(none))
        return self._with_mean(variance)

    def sample_parameters(self, rng, size=()):
        """Exact inverse-gamma draws."""
        return self._with_mean(self.beta / rng.gamma(self.alpha, size=(*size, *self.batch_shape)))

    def _with_mean(self, variance):
        return {"mean": np.broadcast_to(self.mean, np.shape(variance)), "variance": variance}
