r"""The Toronto temperature: a Gaussian mean under known noise.

.. math:: \mu \sim N(m, s^2), \qquad x_i \mid \mu \sim N(\mu, \sigma^2), \quad \sigma \text{ given}

With n rows of mean x̄: posterior precision 1/s_n² = 1/s² + n/σ², mean m_n = s_n² (m/s² + n x̄/σ²); predictive
N(m_n, σ² + s_n²): wider than the posterior by the noise of one day. MAP m_n; ML x̄. The units are those of x.
(Murphy 2007, *Conjugate Bayesian analysis of the Gaussian distribution*, section 2.)
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayesgen import program
from bayesgen.errors import DataError, first
from bayesgen.hyperparameters import Hyperparameter, hyperparameter
from bayesgen.leaf import ConjugateFamily
from bayesgen.models.gaussian import LOG_2PI, Gaussian, beside_rows
from bayesgen.numerics.special import namespace


@dataclass(frozen=True, eq=False)
class NormalKnownVariance(Gaussian, ConjugateFamily):
    """Gaussian feature with unknown mean ~ N(mean, sd²) and known noise.

    Parameters
    ----------
    mean, sd : float or array, shape (features...)
        Prior mean and standard deviation of the feature's mean, in the units of x.
    noise_sd : float or array, shape (features...)
        Known standard deviation of one observation.

    Examples
    --------
    >>> prior = NormalKnownVariance(mean=0, sd=10, noise_sd=1)
    >>> posterior = prior.update(prior.statistics([20.0, 22.0]))
    >>> round(float(posterior.mean), 3), round(float(posterior.sd), 3)
    (20.896, 0.705)
    """

    mean: Hyperparameter = hyperparameter(0.0)
    sd: Hyperparameter = hyperparameter(10.0, positive=True)
    noise_sd: Hyperparameter = hyperparameter(1.0, positive=True)

    @classmethod
    def from_guess(cls, mean: float, sd: float, rows: float) -> Self:
        """The prior of an expert who knows the column's sd and guesses its mean; ``rows`` is what the guess is worth.

        >>> NormalKnownVariance.from_guess(mean=20, sd=4, rows=4)
        NormalKnownVariance(mean=20, sd=2, noise_sd=4)
        """
        return cls(mean, sd / np.sqrt(rows), sd)

    def parameters(self):
        """Sample the mean; the known variance is recorded beside it."""
        mean: Any = program.numpyro.sample("mean", program.dist.Normal(self.mean, self.sd))
        variance = program.jnp.broadcast_to(self.noise_sd**2, mean.shape)
        return {"mean": mean, "variance": program.numpyro.deterministic("variance", variance)}

    def predictive(self):
        """Normal(mean, sqrt(sd² + noise_sd²))."""
        return program.dist.Normal(self.mean, (self.sd**2 + self.noise_sd**2) ** 0.5)

    def expected(self):
        """The mean of the mean, and the known variance."""
        mean = np.broadcast_to(self.mean, self.batch_shape)
        return {"mean": mean, "variance": np.broadcast_to(self.noise_sd**2, self.batch_shape)}

    def update(self, statistics) -> Self:
        """Add precisions; the mean is their weighted average, written as a step from the prior mean."""
        precision = 1 / self.sd**2 + statistics.n / self.noise_sd**2
        gain = statistics.n / self.noise_sd**2 / precision
        mean = self.mean + gain * (statistics.mean - self.mean)
        noise_sd = namespace(mean).broadcast_to(self.noise_sd, mean.shape)
        return self.revised(mean=mean, sd=precision**-0.5, noise_sd=noise_sd)

    def log_evidence_terms(self, statistics):
        """-n log(2πσ²)/2 - S/2σ² + log(σ²/v)/2 - n (x̄ - m)²/2v, v = σ² + n sd²."""
        n, noise = statistics.n, self.noise_sd**2
        v, xp = noise + n * self.sd**2, namespace(self.mean, self.sd, self.noise_sd)
        spread = n * (statistics.mean - self.mean) ** 2 / v
        return -0.5 * (n * (LOG_2PI + xp.log(noise)) + statistics.scatter / noise + xp.log(v / noise) + spread)

    def log_predictive(self, x):
        """Log N(x | mean, sd² + noise_sd²)."""
        if not self.concrete:
            return super().log_predictive(x)
        x = self.check(x)
        variance = self.beside(self.sd**2 + self.noise_sd**2, x)
        terms = -0.5 * (LOG_2PI + np.log(variance) + (x - self.beside(self.mean, x)) ** 2 / variance)
        return self.over_features(terms, x)

    def student(self, x, params=None):
        """Return the predictive of the next value, a Gaussian, as a Student-t of infinite degrees of freedom."""
        if params is not None:
            return super().student(x, params)
        sd = np.sqrt(self.sd**2 + self.noise_sd**2)
        mean, sd = np.broadcast_arrays(self.mean, sd)
        return beside_rows(mean, x), beside_rows(sd, x), np.full((1, 1), np.inf)

    def mode(self):
        """The mean of the Gaussian."""
        return self._with_variance(self.mean)

    def ml(self, statistics):
        """The sample mean."""
        if (statistics.n <= 0).any():
            raise DataError("maximum likelihood does not exist: no observed value", **first(statistics.n <= 0))
        return self._with_variance(statistics.mean)

    def sample_parameters(self, rng, size=()):
        """Exact Gaussian draws."""
        return self._with_variance(rng.normal(self.mean, self.sd, (*size, *self.batch_shape)))

    def _with_variance(self, mean):
        return {"mean": mean, "variance": np.broadcast_to(self.noise_sd**2, np.shape(mean))}
