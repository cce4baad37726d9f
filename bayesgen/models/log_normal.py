r"""Log-normal features: positive and skewed, such as money, durations or concentrations, with a Gaussian logarithm.

.. math:: \sigma^2 \sim \mathrm{InvGamma}(\alpha, \beta), \quad \mu \mid \sigma^2 \sim N(m, \sigma^2/\kappa), \quad
   z_i = \log(x_i + s) \mid \mu, \sigma^2 \sim N(\mu, \sigma^2)

The density of x is the density of z divided by x + s, the Jacobian of the logarithm: log p(x) = log N(z | μ, σ²) - z.
So the posterior is the one of `NormalInverseGamma` on z; log evidence and log predictive are its own less the sum of z.
The shift s is a constant: 0 for values > 0, and 1 where zeros occur, for then z = log(1 + x). (Aitchison and Brown
1957, *The Lognormal Distribution*, chapter 2.)
"""

import functools
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import Argument
from bayesgen.core.program import static
from bayesgen.models.gaussian import Gaussian, NormalInverseGamma, NormalInverseGammaPrior
from bayesgen.models.leaf import Hyperparameter, hyperparameter
from bayesgen.numerics.checks import require
from bayesgen.numerics.special import namespace

_LOG1P = Argument("features", "log1p", "; with zeros among the values take shift=1 ('log1p')")


@dataclass(frozen=True, eq=False)
class LogGaussian(Gaussian):
    """Features whose shifted logarithm is Gaussian, under any prior; ``params`` describe the logarithm."""

    shift: float = static(default=0.0, kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        if not np.isfinite(self.shift) or self.shift < 0:
            raise ValueError(f"{type(self).__name__}: shift must be a finite number >= 0, got {self.shift!r}")

    @property
    def _no_logarithm(self) -> list:
        if self.shift:
            return [f"is not above -{self.shift:g}, so it has no shifted logarithm"]
        return ["is not above 0, so it has no logarithm", _LOG1P]

    def check(self, x):
        x = super().check(x)
        require(x, lambda entries: entries > -self.shift, *self._no_logarithm)
        return x

    def density(self, params=None):
        about = {"above": -self.shift, "words": "".join(map(str, self._no_logarithm))}
        return replace(super().density(params), shift=self.shift, about=about)

    def quantities(self, params, column, labels=None):
        return {f"{name} of log": values for name, values in super().quantities(params, column).items()}

    def _logarithm(self, x):
        """Return log(x + shift), exact near 0 for a shift of 1."""
        xp = namespace(x)
        if isinstance(x, np.ndarray):  # NumPy's log1p of a uint8 is a float16
            x = x.astype(float, copy=False)
        return xp.log1p(x) if self.shift == 1 else xp.log(x + self.shift)

    def likelihood(self, params):
        return self._exponential(super().likelihood(params))

    def _exponential(self, of_logarithm):
        """Return the distribution of x from the distribution of its logarithm."""
        dist = program.dist
        shift = dist.transforms.AffineTransform(-self.shift, 1.0, domain=dist.constraints.positive)
        transforms = [dist.transforms.ExpTransform(), *([shift] if self.shift else [])]
        return dist.TransformedDistribution(of_logarithm, transforms)

    def draw(self, params, rng):
        return self.back(super().draw(params, rng))

    def back(self, z):
        return np.expm1(z) if self.shift == 1 else np.exp(z) - self.shift

    def sufficient_statistic(self, x, about=0.0):
        """Return (1, d, d²), d = log(x + shift) - about."""
        return super().sufficient_statistic(self._logarithm(x), about)

    def natural_parameters(self, params, about=0.0):
        """Return the logarithm's natural parameters, plus -z = -about - d of the Jacobian."""
        eta = super().natural_parameters(params, about)
        xp = namespace(eta)
        about, slope = xp.broadcast_to(about, eta.shape[:-1]), xp.ones(eta.shape[:-1])
        return eta - xp.stack([about, slope, xp.zeros(eta.shape[:-1])], axis=-1)

    def sum_rows(self, x, rows):
        return super().sum_rows(self._logarithm(self.check(x)), rows)


@dataclass(frozen=True, eq=False)
class LogNormal(LogGaussian, NormalInverseGammaPrior):
    """Positive, skewed feature: the logarithm of x + shift is Gaussian, with a normal-inverse-gamma prior.

    Parameters
    ----------
    mean : float or array, shape (features...)
        Prior mean of the mean of log(x + shift).
    kappa : float or array
        Number of rows that the prior mean is worth, > 0.
    alpha, beta : float or array
        Shape and scale of the inverse-gamma prior on the variance of the logarithm, > 0.
    shift : float, keyword
        Number added before the logarithm is taken, >= 0, in the units of x: 0, or 1 where there are zeros.

    Examples
    --------
    >>> prior = LogNormal(mean=0.0, kappa=1.0, alpha=2.0, beta=2.0)
    >>> posterior = prior.update(prior.statistics(np.exp([1.0, 3.0])))
    >>> round(float(posterior.beta), 3), float(posterior.alpha)
    (4.333, 3.0)
    """

    mean: Hyperparameter = hyperparameter()
    kappa: Hyperparameter = hyperparameter(positive=True)
    alpha: Hyperparameter = hyperparameter(positive=True)
    beta: Hyperparameter = hyperparameter(positive=True)

    @functools.cached_property
    def of_logarithm(self) -> NormalInverseGamma:
        """The model of the logarithm."""
        return NormalInverseGamma(self.mean, self.kappa, self.alpha, self.beta, per_class=self.per_class)

    @classmethod
    def from_guess(cls, median: float, factor: float, rows: float, shift: float = 0.0) -> Self:
        """Return the prior of an expert who guesses the median, and the factor of it that covers two thirds of values.

        The guess is worth ``rows`` > 0 rows.

        >>> LogNormal.from_guess(median=1000, factor=3, rows=10)
        LogNormal(mean=6.908, kappa=10, alpha=6, beta=6.035)
        """
        prior = NormalInverseGamma.from_guess(float(np.log(median + shift)), float(np.log(factor)), rows)
        return cls(prior.mean, prior.kappa, prior.alpha, prior.beta, shift=shift)

    @classmethod
    def weak(cls, statistics, shift: float = 0.0) -> Self:
        """Return the default prior, that of the logarithms."""
        prior = NormalInverseGamma.weak(statistics)
        return cls(prior.mean, prior.kappa, prior.alpha, prior.beta, shift=shift)

    def predictive(self):
        return self._exponential(super().predictive())

    def log_evidence_terms(self, statistics):
        """Return the evidence terms of the logarithms, less the sum of the logarithms."""
        return super().log_evidence_terms(statistics) - statistics.n * statistics.mean

    def _fast_predictive(self, x):
        z = self._logarithm(self.check(x))
        density = self.of_logarithm.log_predictive(z)
        jacobian = np.nansum(z.reshape(len(z), -1), axis=1)
        return density - jacobian.reshape(-1, *[1] * (density.ndim - 1))
