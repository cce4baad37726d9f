r"""Gaussian features with one known parameter: the mean, or the variance.

**Known mean.** The error of an instrument that reads a standard of known size:

.. math:: \sigma^2 \sim \mathrm{InvGamma}(\alpha, \beta), \qquad x_i \mid \sigma^2 \sim N(m, \sigma^2), \quad
   m \text{ given}

With n rows whose squared deviations from m sum to Q: alpha_n = alpha + n/2, beta_n = beta + Q/2. Predictive: Student-t
about m with 2 alpha_n degrees of freedom and squared scale beta_n/alpha_n. Mode of the variance beta_n/(alpha_n + 1);
ML Q/n, with no row spent on the mean. Evidence (2π)^(-n/2) beta^alpha/beta_n^alpha_n Γ(alpha_n)/Γ(alpha). All of it is
the normal-inverse-gamma prior of infinite kappa but for the joint mode, since no mean is maximised.
(Gelman et al. 2013, *Bayesian Data Analysis*, section 2.6.)

**Known variance.** The temperature of Toronto, read with known noise:

.. math:: \mu \sim N(m, s^2), \qquad x_i \mid \mu \sim N(\mu, \sigma^2), \quad \sigma \text{ given}

With n rows of mean x̄: posterior precision 1/s_n² = 1/s² + n/σ², mean m_n = s_n² (m/s² + n x̄/σ²). The predictive is
N(m_n, σ² + s_n²), wider than the posterior by the noise of one day. MAP m_n; ML x̄. All units are those of x.
(Murphy 2007, *Conjugate Bayesian analysis of the Gaussian distribution*, section 2.)
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import refuse_where
from bayesgen.models.gaussian import LOG_2PI, Gaussian, UnknownVariance
from bayesgen.models.kinds import Numbers
from bayesgen.models.leaf import ConjugateFamily, Hyperparameter, hyperparameter, over_rows
from bayesgen.models.model import revised
from bayesgen.numerics.special import namespace


@dataclass(frozen=True, eq=False)
class NormalKnownMean(UnknownVariance):
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

    kappa = np.inf  # type: ignore[assignment]  # rows that the mean is worth

    @classmethod
    def from_guess(cls, mean: float, sd: float, rows: float) -> Self:
        """Return the prior of an expert who knows the column's mean and guesses its sd, worth ``rows`` rows.

        The mean of the variance is sd².

        >>> NormalKnownMean.from_guess(mean=20, sd=4, rows=10)
        NormalKnownMean(mean=20, alpha=6, beta=80)
        """
        return cls(mean, 1 + rows / 2, sd**2 * rows / 2)

    def parameters(self):
        variance = program.numpyro.sample("variance", program.dist.InverseGamma(self.alpha, self.beta))
        mean = program.jnp.broadcast_to(self.mean, variance.shape)  # pyright: ignore[reportAttributeAccessIssue]
        return {"mean": program.numpyro.deterministic("mean", mean), "variance": variance}

    def update(self, statistics) -> Self:
        """Add half the rows to alpha, and half the squares about the known mean to beta."""
        rows, squares, _ = self._steps(statistics)
        alpha = self.alpha + rows
        mean = namespace(alpha).broadcast_to(self.mean, alpha.shape)
        return revised(self, mean=mean, alpha=alpha, beta=self.beta + squares)

    def mode(self):
        return self.marginal_mode()

    def ml(self, statistics):
        refuse_where(statistics.n <= 0, "maximum likelihood does not exist: no observed value")
        rows, squares, _ = self._steps(statistics)
        none = squares <= rows * statistics.resolution()
        refuse_where(none, "maximum likelihood does not exist: every value is the known mean")
        return {"mean": np.broadcast_to(self.mean, np.shape(squares)), "variance": squares / rows}


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
        """Return the prior of an expert who knows the column's sd and guesses its mean, worth ``rows`` rows.

        >>> NormalKnownVariance.from_guess(mean=20, sd=4, rows=4)
        NormalKnownVariance(mean=20, sd=2, noise_sd=4)
        """
        return cls(mean, sd / np.sqrt(rows), sd)

    def parameters(self):
        mean: Any = program.numpyro.sample("mean", program.dist.Normal(self.mean, self.sd))
        variance = program.jnp.broadcast_to(self.noise_sd**2, mean.shape)
        return {"mean": mean, "variance": program.numpyro.deterministic("variance", variance)}

    def predictive(self):
        return program.dist.Normal(self.mean, (self.sd**2 + self.noise_sd**2) ** 0.5)

    def expected(self):
        return self._with_variance(np.broadcast_to(self.mean, self.batch_shape))

    def update(self, statistics) -> Self:
        """Add precisions, and average the means by them, written as a step from the prior mean."""
        precision = 1 / self.sd**2 + statistics.n / self.noise_sd**2
        gain = statistics.n / self.noise_sd**2 / precision
        mean = self.mean + gain * (statistics.mean - self.mean)
        noise_sd = namespace(mean).broadcast_to(self.noise_sd, mean.shape)
        return revised(self, mean=mean, sd=precision**-0.5, noise_sd=noise_sd)

    def log_evidence_terms(self, statistics):
        """Return -n log(2πσ²)/2 - S/2σ² + log(σ²/v)/2 - n (x̄ - m)²/2v, v = σ² + n sd²."""
        n, noise = statistics.n, self.noise_sd**2
        v, xp = noise + n * self.sd**2, namespace(self.mean, self.sd, self.noise_sd)
        spread = n * (statistics.mean - self.mean) ** 2 / v
        return -0.5 * (n * (LOG_2PI + xp.log(noise)) + statistics.scatter / noise + xp.log(v / noise) + spread)

    def _fast_predictive(self, x):
        x = self.check(x)
        groups = self._groups(x)
        mean, variance = (over_rows(v, groups, x)[:, None] for v in (self.mean, self.sd**2 + self.noise_sd**2))
        terms = -0.5 * (LOG_2PI + np.log(variance) + (x.reshape(len(x), -1) - mean) ** 2 / variance)
        return np.nansum(terms, axis=2).T.reshape(len(x), *groups)

    def density(self, params=None):
        if params is not None:
            return super().density(params)
        return Numbers(self.mean, (self.sd**2 + self.noise_sd**2) ** 0.5, kappa=(self.noise_sd / self.sd) ** 2)

    def mode(self):
        return self._with_variance(self.mean)

    def ml(self, statistics):
        refuse_where(statistics.n <= 0, "maximum likelihood does not exist: no observed value")
        return self._with_variance(statistics.mean)

    def sample_parameters(self, rng, size=()):
        return self._with_variance(rng.normal(self.mean, self.sd, (*size, *self.batch_shape)))

    def _with_variance(self, mean):
        return {"mean": mean, "variance": np.broadcast_to(self.noise_sd**2, np.shape(mean))}
