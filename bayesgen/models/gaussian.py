r"""Scalar Gaussian features, whatever their prior: T(x), natural parameters, moments, maximum likelihood.

The variance may be tied: one for all classes (a shared covariance), one for all features (isotropic), or both.
Parameters hold it once, without the tied axes: shape (draws..., K if free over classes, D if free over features).
"""

import math
from typing import ClassVar

import numpy as np

from bayesgen import program
from bayesgen.errors import DataError, first
from bayesgen.leaf import ExponentialFamily
from bayesgen.moments import grouped_moments
from bayesgen.numerics.special import namespace

LOG_2PI = math.log(2 * math.pi)


def mean_variance(alpha, beta):
    """Mean of InvGamma(alpha, beta), beta / (alpha - 1): infinite where alpha <= 1."""
    return np.where(alpha > 1, beta / np.where(alpha > 1, alpha - 1, 1.0), np.inf)


class Gaussian(ExponentialFamily):
    """Scalar Gaussian features; ``params`` hold "mean" and "variance"."""

    tied: ClassVar[tuple[str, ...]] = ()  # of "class" and "feature": the axes that share one variance

    def expand(self, params):
        """Give the variance its tied axes back, so that it broadcasts against the mean."""
        mean, variance = params["mean"], params["variance"]
        if variance.ndim < mean.ndim:
            variance = variance[..., None] if "feature" in self.tied else variance
            variance = variance[..., None, :] if "class" in self.tied else variance
        return {"mean": mean, "variance": namespace(mean).broadcast_to(variance, mean.shape)}

    def squeeze(self, variance):
        """Drop the tied axes of a variance (draws..., K, D)."""
        if "class" in self.tied:
            variance = variance[..., 0, :]
        return variance[..., 0] if "feature" in self.tied else variance

    def tie(self, increments):
        """Sum over the tied axes, kept with length 1: what the rows say of one variance."""
        axes = tuple({"class": 0, "feature": -1}[name] for name in self.tied)
        return increments.sum(axes, keepdims=True) if axes else increments

    def dims(self, site, *, grouped=False):
        """Names of the axes of a parameter."""
        dims = super().dims(site, grouped=grouped)
        return tuple(d for d in dims if site != "variance" or d not in self.tied)

    def select_class(self, params, group):
        """Parameters of the class of each row."""
        return super().select_class(self.expand(params), group)

    def likelihood(self, params):
        """Normal(mean, sqrt(variance))."""
        return program.dist.Normal(params["mean"], params["variance"] ** 0.5)

    def draw(self, params, rng):
        """Normal draws."""
        params = self.expand(params)
        return rng.normal(params["mean"], np.sqrt(params["variance"]))

    def student(self, x, params=None):
        """A Gaussian that no other entry moves."""
        if params is None:
            return super().student(x)
        params = self.expand(params)
        mean, sd = params["mean"], np.sqrt(params["variance"])
        return beside_rows(mean, x), beside_rows(sd, x), np.full((1, 1), np.inf)

    def sufficient_statistic(self, x, about=0.0):
        """(1, z, z²), z = x - about."""
        z = x - about
        return np.stack([np.ones_like(z), z, z * z], axis=-1)

    def natural_parameters(self, params, about=0.0):
        """(-log(2πσ²)/2 - d²/2σ², d/σ², -1/2σ²) with d = mean - about."""
        params = self.expand(params)
        d, variance = params["mean"] - about, params["variance"]
        xp = namespace(d)
        log_partition = -0.5 * (LOG_2PI + xp.log(variance) + d * d / variance)
        return xp.stack([log_partition, d / variance, -0.5 / variance], axis=-1)

    def log_likelihood_rows(self, params, x):
        """Log p(row | params), taken about each class's own mean over the draws, so that an offset costs no digits."""
        params = self.expand(params)
        mean = params["mean"]
        if mean.ndim == x.ndim:  # draws of one class
            return self.product(params, x, mean.mean(0))
        result = np.empty((*mean.shape[:2], len(x)))
        for k in range(mean.shape[1]):
            result[:, k] = self.product({site: v[:, k] for site, v in params.items()}, x, mean[:, k].mean(0))
        return result

    def precision(self, params):
        """Precision matrices (draws..., K, D, D) and log-determinants of the covariances (draws..., K)."""
        variance = self.expand(params)["variance"]
        return np.eye(variance.shape[-1]) / variance[..., None], np.log(variance).sum(-1)

    def sum_rows(self, x, rows):
        """`Moments` of the rows, by group. Free of hyperparameters."""
        result = grouped_moments(x, rows)
        if not np.isfinite(result.mean).all():  # what is infinite comes through, so a pass to look for it is saved
            self.check(x)
        return result

    def ml(self, statistics):
        """Sample means, and variances with divisor n; none where what shares a variance shows no spread."""
        n, scatter = statistics.n, statistics.scatter
        if (n <= 0).any():
            raise DataError("maximum likelihood does not exist: no observed value", **first(n <= 0))
        total, count, noise = self.tie(scatter), self.tie(n), self.tie(n * statistics.resolution())
        if (total <= noise).any():
            place = {key: v for key, v in first(total <= noise).items() if key not in self.tied}
            place = {key: v for key, v in place.items() if key != "group" or "class" not in self.tied}
            raise DataError("maximum likelihood does not exist: fewer than two distinct values", **place)
        return {"mean": statistics.mean, "variance": self.squeeze(total / count)}


def beside_rows(value, x):
    """A parameter (lead..., features...) with an axis for the rows ``x``, (lead..., 1, D)."""
    lead = value.shape[: value.ndim - x.ndim + 1]
    return value.reshape(*lead, 1, -1)
