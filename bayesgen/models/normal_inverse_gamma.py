r"""A Gaussian feature with unknown mean and variance: the diagonal Gaussian of naive Bayes.

.. math:: \sigma^2 \sim \mathrm{InvGamma}(\alpha, \beta), \quad \mu \mid \sigma^2 \sim N(m, \sigma^2/\kappa), \quad
   x_i \mid \mu, \sigma^2 \sim N(\mu, \sigma^2)

With n rows of mean x̄ and scatter S: kappa_n = kappa + n, mean_n = (kappa m + n x̄)/kappa_n, alpha_n = alpha + n/2,
beta_n = beta + S/2 + kappa n (x̄ - m)²/(2 kappa_n). Predictive: Student-t with 2 alpha_n degrees of freedom and squared
scale beta_n (kappa_n + 1)/(alpha_n kappa_n). Joint mode: mean_n and beta_n/(alpha_n + 3/2). (Murphy 2007, section 6.)
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaln

from bayesgen import program
from bayesgen.model import hyperparameter
from bayesgen.models.gaussian import LOG_2PI, Gaussian


@dataclass(frozen=True, eq=False)
class NormalInverseGamma(Gaussian):
    """Gaussian feature with a normal-inverse-gamma prior on mean and variance.

    Parameters
    ----------
    mean : float or array, shape (features...)
        Prior mean of the feature's mean, in the units of x.
    kappa : float or array
        Rows the prior mean is worth, > 0.
    alpha, beta : float or array
        Shape, and scale in squared units of x, of the inverse-gamma prior on the variance, > 0.

    Examples
    --------
    >>> prior = NormalInverseGamma(mean=0.0, kappa=1.0, alpha=2.0, beta=2.0)
    >>> posterior = prior.update(prior.statistics([1.0, 3.0]))
    >>> float(posterior.beta), float(posterior.alpha)
    (4.333333333333333, 3.0)
    """

    mean: np.ndarray = hyperparameter()
    kappa: np.ndarray = hyperparameter(positive=True)
    alpha: np.ndarray = hyperparameter(positive=True)
    beta: np.ndarray = hyperparameter(positive=True)

    @classmethod
    def weak(cls, statistics) -> Self:
        """The default prior: the data's own location and within-class scale, worth a hundredth of a row and one row."""
        mean, variance, _ = statistics.pooled()
        return cls(mean, 0.01, 1.0, variance)

    def parameters(self):
        """Sample the variance, and the mean given it."""
        variance = program.numpyro.sample("variance", program.dist.InverseGamma(self.alpha, self.beta))
        mean = program.numpyro.sample("mean", program.dist.Normal(self.mean, (variance / self.kappa) ** 0.5))
        return {"mean": mean, "variance": variance}

    @property
    def squared_scale(self):
        """Squared scale of the predictive Student-t."""
        return self.beta * (self.kappa + 1) / (self.alpha * self.kappa)

    def predictive(self):
        """Student-t with 2 alpha degrees of freedom."""
        return program.dist.StudentT(2 * self.alpha, self.mean, self.squared_scale**0.5)

    def update(self, statistics):
        """The posterior, written as steps from the prior so that offsets do not cancel."""
        n, delta = statistics.n, statistics.mean - self.mean
        kappa = self.kappa + n
        beta = self.beta + 0.5 * statistics.scatter + 0.5 * self.kappa * n / kappa * delta**2
        return NormalInverseGamma(self.mean + n / kappa * delta, kappa, self.alpha + n / 2, beta)

    def log_evidence(self, statistics):
        """Log of (2π)^(-n/2) (kappa/kappa_n)^½ beta^alpha/beta_n^alpha_n Γ(alpha_n)/Γ(alpha), summed over features."""
        p = self.update(statistics)
        terms = (
            -0.5 * statistics.n * LOG_2PI
            + 0.5 * np.log(self.kappa / p.kappa)
            + self.alpha * np.log(self.beta)
            - p.alpha * np.log(p.beta)
            + gammaln(p.alpha)
            - gammaln(self.alpha)
        )
        return float(terms.sum())

    def log_predictive(self, x):
        """Log density of the predictive Student-t."""
        x = self.check(x)
        dof, s2, mean = 2 * self.alpha, self.squared_scale, self.beside(self.mean, x)
        constant = gammaln((dof + 1) / 2) - gammaln(dof / 2) - 0.5 * (np.log(np.pi * dof) + np.log(s2))
        dof, s2, constant = (self.beside(np.asarray(a), x) for a in (dof, s2, constant))
        return self.over_features(constant - (dof + 1) / 2 * np.log1p((x - mean) ** 2 / (dof * s2)), x)

    def mode(self):
        """Joint mode of (mean, variance): beta / (alpha + 3/2)."""
        variance = np.broadcast_to(self.beta / (self.alpha + 1.5), self.batch_shape)
        return {"mean": np.broadcast_to(self.mean, self.batch_shape), "variance": variance}

    def ml(self, statistics):
        """Sample mean, and variance with divisor n."""
        return {"mean": statistics.mean, "variance": self.ml_variance(statistics)}

    def draw(self, rng, size=()):
        """Exact draws: inverse gamma, then normal."""
        shape = (*size, *self.batch_shape)
        variance = self.beta / rng.gamma(self.alpha, size=shape)
        return {"mean": rng.normal(self.mean, (variance / self.kappa) ** 0.5, shape), "variance": variance}
