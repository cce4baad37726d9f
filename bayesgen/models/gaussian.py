"""What the scalar Gaussian features share: T(x), natural parameters, moments, likelihood."""

import math

import numpy as np

from bayesgen import program
from bayesgen.model import Conjugate, DataError, first
from bayesgen.statistics import moments

LOG_2PI = math.log(2 * math.pi)


class Gaussian(Conjugate):
    """Scalar Gaussian features; ``params`` hold "mean" and "variance"."""

    def likelihood(self, params):
        """Normal(mean, sqrt(variance))."""
        return program.dist.Normal(params["mean"], params["variance"] ** 0.5)

    def T(self, x, about=0.0):
        """(1, z, z²), z = x - about."""
        z = x - about
        return np.stack([np.ones_like(z), z, z * z], axis=-1)

    def natural(self, params, about=0.0):
        """(-log(2πσ²)/2 - d²/2σ², d/σ², -1/2σ²) with d = mean - about."""
        d = params["mean"] - about
        xp = d.__array_namespace__()
        variance = xp.broadcast_to(params["variance"], d.shape)
        log_partition = -0.5 * (LOG_2PI + xp.log(variance) + d * d / variance)
        return xp.stack([log_partition, d / variance, -0.5 / variance], axis=-1)

    def log_likelihood_rows(self, params, x):
        """Log p(row | params), taken about each class's own mean over the draws, so that an offset costs no digits."""
        mean = params["mean"]
        if mean.ndim == x.ndim:  # draws of one class
            return self.product(params, x, mean.mean(0))
        result = np.empty((*mean.shape[:2], len(x)))
        for k in range(mean.shape[1]):
            result[:, k] = self.product({site: v[:, k] for site, v in params.items()}, x, mean[:, k].mean(0))
        return result

    @classmethod
    def statistics(cls, x, group=None, groups=None, weight=None):
        """`Moments` of the rows, by group; see `ExponentialFamily.statistics`. Free of hyperparameters."""
        return moments(cls.check(cls, x), group, groups, weight)  # type: ignore[arg-type]

    def ml_variance(self, statistics):
        """Scatter / n, or an error where a class has one row or no spread in a feature."""
        n, scatter = statistics.n, statistics.scatter
        flat = (n <= 0) | (scatter <= n * statistics.resolution())
        if flat.any():
            raise DataError("maximum likelihood does not exist: fewer than two distinct values", **first(flat))
        return scatter / n
