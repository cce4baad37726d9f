r"""Scalar Gaussian features: the family under any prior, and the normal-inverse-gamma prior of naive Bayes.

**The family.** T(x), natural parameters, moments and maximum likelihood. The variance may be tied: one for all classes
(a shared covariance), one for all features (isotropic), or both. Parameters hold it once, without the tied axes: shape
(draws..., K if free over classes, D if free over features).

**Unknown mean and variance.** The diagonal Gaussian of naive Bayes:

.. math:: \sigma^2 \sim \mathrm{InvGamma}(\alpha, \beta), \quad \mu \mid \sigma^2 \sim N(m, \sigma^2/\kappa), \quad
   x_i \mid \mu, \sigma^2 \sim N(\mu, \sigma^2)

With n rows of mean x̄ and scatter S: kappa_n = kappa + n, mean_n = (kappa m + n x̄)/kappa_n, alpha_n = alpha + n/2,
beta_n = beta + S/2 + kappa n (x̄ - m)²/(2 kappa_n). Predictive: Student-t with 2 alpha_n degrees of freedom and squared
scale beta_n (kappa_n + 1)/(alpha_n kappa_n). Joint mode: mean_n and beta_n/(alpha_n + 3/2). The marginal mode of the
variance is beta_n/(alpha_n + 1), since the mean is integrated out and not maximised. (Murphy 2007, section 6.)

Where classes or features share one variance, alpha_n and beta_n sum over all that share it, and the mode's 3/2 becomes
1 + (number of means tied to it)/2. Features that share it are a joint Student-t: integrating the variance couples them.
"""

import abc
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import DataError, first, refuse_where
from bayesgen.core.program import static
from bayesgen.models.kinds import Numbers
from bayesgen.models.leaf import ConjugateFamily, ExponentialFamily, Hyperparameter, hyperparameter, over_rows, untied
from bayesgen.models.model import revised, unchecked
from bayesgen.models.moments import grouped_moments
from bayesgen.numerics.pieces import as_columns, pieces, scratch
from bayesgen.numerics.special import log1p_sum_squares, log_gamma_ratio, namespace
from bayesgen.numerics.student_gaps import tail_with_gaps
from bayesgen.numerics.sums import finite

LOG_2PI = math.log(2 * math.pi)
_LARGE = 1e6  # powers of 1 + u
_CELLS = 1 << 18  # entries of all groups that are worked on at a time


class Gaussian(ExponentialFamily):
    """Scalar Gaussian features; ``params`` hold "mean" and "variance"."""

    tied: ClassVar[tuple[str, ...]] = ()  # axes that share one variance: "class", "feature"

    def _expand(self, params):
        """Give the variance its tied axes back, so that it broadcasts against the mean."""
        mean, variance = params["mean"], params["variance"]
        if variance.ndim < mean.ndim:
            variance = variance[..., None] if "feature" in self.tied else variance
            variance = variance[..., None, :] if "class" in self.tied else variance
        return {"mean": mean, "variance": namespace(mean).broadcast_to(variance, mean.shape)}

    def dims(self, site, *, grouped=False):
        dims = super().dims(site, grouped=grouped)
        return tuple(d for d in dims if site != "variance" or d not in self.tied)

    def likelihood(self, params):
        return program.dist.Normal(params["mean"], params["variance"] ** 0.5)

    def density(self, params=None):
        params = self._expand(params)
        return Numbers(params["mean"], np.sqrt(params["variance"]))

    def sufficient_statistic(self, x, about=0.0):
        """Return (1, z, z²), z = x - about."""
        z = x - about
        return np.stack([np.ones_like(z), z, z * z], axis=-1)

    def natural_parameters(self, params, about=0.0):
        """Return (-log(2πσ²)/2 - d²/2σ², d/σ², -1/2σ²) with d = mean - about."""
        params = self._expand(params)
        d, variance = params["mean"] - about, params["variance"]
        xp = namespace(d)
        log_partition = -0.5 * (LOG_2PI + xp.log(variance) + d * d / variance)
        return xp.stack([log_partition, d / variance, -0.5 / variance], axis=-1)

    def log_likelihood_rows(self, params, x):
        """Return log p(row | params), about each class's mean over the draws, so that an offset costs no digits."""
        params = self._expand(params)
        mean = params["mean"]
        if mean.ndim == x.ndim:  # draws of one class
            return self._product(params, x, mean.mean(0))
        result = np.empty((*mean.shape[:2], len(x)))
        for k in range(mean.shape[1]):
            result[:, k] = self._product({site: v[:, k] for site, v in params.items()}, x, mean[:, k].mean(0))
        return result

    def sum_rows(self, x, rows):
        """Return the `Moments` of the rows, by group, free of hyperparameters."""
        result = grouped_moments(x, rows)
        if not np.isfinite(result.mean).all():  # infinite values come through, so a pass to find them is saved
            self.check(x)
        return result

    def ml(self, statistics):
        """Return sample means, and variances with divisor n; raise where the values of a variance show no spread."""
        n, scatter = statistics.n, statistics.scatter
        refuse_where(n <= 0, "maximum likelihood does not exist: no observed value")
        total, count, noise = tie(scatter, self.tied), tie(n, self.tied), tie(n * statistics.resolution(), self.tied)
        if (total <= noise).any():
            place = {key: v for key, v in first(total <= noise).items() if key not in self.tied}
            place = {key: v for key, v in place.items() if key != "group" or "class" not in self.tied}
            raise DataError("maximum likelihood does not exist: fewer than two distinct values", **place)
        return {"mean": statistics.mean, "variance": squeeze(total / count, self.tied)}


def squeeze(variance, tied: tuple[str, ...]):
    """Drop the tied axes of a variance (draws..., K, D)."""
    if "class" in tied:
        variance = variance[..., 0, :]
    return variance[..., 0] if "feature" in tied else variance


def tie(increments, tied: tuple[str, ...]):
    """Sum over the tied axes, kept with length 1: all increments of one variance."""
    axes = tuple({"class": -2, "feature": -1}[name] for name in tied)
    return increments.sum(axes, keepdims=True) if axes else increments


class NormalInverseGammaPrior(Gaussian, ConjugateFamily):
    """Features that are Gaussian, or whose logarithm is, with a normal-inverse-gamma prior on mean and variance."""

    mean: Hyperparameter
    kappa: Hyperparameter
    alpha: Hyperparameter
    beta: Hyperparameter

    @classmethod
    @abc.abstractmethod
    def from_guess(cls, *guess: Any, **more: Any) -> Self:
        """Return the prior of an expert who guesses."""

    def parameters(self):
        variance = program.numpyro.sample("variance", program.dist.InverseGamma(self.alpha, self.beta))
        mean = program.numpyro.sample("mean", program.dist.Normal(self.mean, (variance / self.kappa) ** 0.5))
        return {"mean": mean, "variance": variance}

    @property
    def squared_scale(self):
        """Squared scale of the predictive Student-t."""
        return self.beta / self.alpha * (1 + 1 / self.kappa)

    def density(self, params=None):
        if params is not None:
            return super().density(params)
        joint = "feature" in self.tied and self.features != (1,)
        parts = self.mean, self.squared_scale**0.5, 2 * self.alpha, self.kappa
        return Numbers(*parts, tied="class" in self.tied, joint=joint)

    def predictive(self):
        return program.dist.StudentT(2 * self.alpha, self.mean, self.squared_scale**0.5)

    def _steps(self, statistics):
        """Return the steps of alpha, beta and mean from prior to posterior; as steps, nothing cancels."""
        n, delta = statistics.n, statistics.mean - self.mean
        share = n / (self.kappa + n)
        rows, squares = n / 2, 0.5 * statistics.scatter + 0.5 * n / (1 + n / self.kappa) * delta**2
        if self.tied:
            rows, squares = tie(rows, self.tied), tie(squares, self.tied)
        return rows, squares, share * delta

    def update(self, statistics) -> Self:
        rows, squares, move = self._steps(statistics)
        kappa = self.kappa + statistics.n
        return revised(self, mean=self.mean + move, kappa=kappa, alpha=self.alpha + rows, beta=self.beta + squares)

    def log_evidence_terms(self, statistics):
        """Return the log of (2π)^(-n/2) (kappa/kappa_n)^½ beta^alpha/beta_n^alpha_n Γ(alpha_n)/Γ(alpha)."""
        rows, squares, _ = self._steps(statistics)
        xp = namespace(squares, self.alpha)
        means = -0.5 * (statistics.n * LOG_2PI + xp.log1p(statistics.n / self.kappa))
        scales = self.alpha * xp.log1p(squares / self.beta) + rows * xp.log(self.beta + squares)
        return tie(means, self.tied) + log_gamma_ratio(self.alpha, rows) - scales

    def expected(self):
        """Return the means of mean and variance, the latter beta / (alpha - 1), infinite where alpha <= 1."""
        has_mean = self.alpha > 1
        variance = np.where(has_mean, self.beta / np.where(has_mean, self.alpha - 1, 1.0), np.inf)
        return self._beside_mean(variance)

    def mode(self):
        """Return the joint mode of (means, variance): beta / (alpha + 1 + (means tied to the variance)/2)."""
        return self._beside_mean(self.beta / (self.alpha + 1 + tie(np.ones(self.batch_shape), self.tied) / 2))

    def marginal_mode(self):
        """Return the modes of the marginal densities: with the means integrated out, variance beta / (alpha + 1)."""
        return self._beside_mean(self.beta / (self.alpha + 1))

    def _beside_mean(self, variance):
        mean, variance = (np.broadcast_to(value, self.batch_shape) for value in (self.mean, variance))
        return {"mean": mean, "variance": squeeze(variance, self.tied)}

    def sample_parameters(self, rng, size=()):
        shape, once = (*size, *self.batch_shape), list(self.batch_shape)
        for axis, name in ((-2, "class"), (-1, "feature")):
            if name in self.tied:
                once[axis] = 1
        variance = np.broadcast_to(self.beta / rng.gamma(self.alpha, size=(*size, *once)), shape)
        mean = rng.normal(self.mean, (variance / self.kappa) ** 0.5, shape)
        return {"mean": mean, "variance": squeeze(variance, self.tied)}


class UnknownVariance(NormalInverseGammaPrior):
    """Features that are Gaussian themselves, whose mean is unknown or known: ``kappa`` is then infinite."""

    def _constants(self, x):
        """Return the constants of `log_predictive` for each entry of rows of one shape."""
        groups, square = self._groups(x), 2 * self.beta * (1 + 1 / self.kappa)
        level = (0.0 if "feature" in self.tied else log_gamma_ratio(self.alpha, 0.5)) - 0.5 * np.log(np.pi * square)
        mean, width, alpha, level = (over_rows(a, groups, x).T for a in (self.mean, square**-0.5, self.alpha, level))
        power = ((alpha + 0.5) / (alpha[0] + 0.5)).T[:, None]  # over that of the first column
        return groups, mean, width, alpha, level, bool((power == 1).all() and (alpha < _LARGE).all()), power

    def _fast_predictive(self, x):
        """Return the log density of the Student-t, joint over the observed features where they share a variance."""
        x, joint = self._shaped(x), "feature" in self.tied
        groups, mean, width, alpha, level, alike, power = self._kept(x.shape[1:], lambda: self._constants(x))
        rows, result = x.reshape(len(x), len(mean)), np.empty((mean.shape[1], len(x)))

        def away(columns, seen):
            """Return distances of columns (D, m) from the means in units of the scale, (D, groups, m), 0 for gaps."""
            room = scratch("away", (*mean.shape, columns.shape[1]))
            z = np.subtract(columns[:, None], mean[:, :, None], out=room)
            z *= width[:, :, None]
            if seen is not None:
                np.copyto(z, 0.0, where=~seen[:, None])
            return z

        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            for piece in pieces(len(rows), mean.size, _CELLS):
                columns, seen = as_columns(rows[piece]), None
                if not finite(columns):  # some entry is missing or infinite
                    self.check(rows[piece].reshape(-1, *x.shape[1:]))
                    seen = ~np.isnan(columns)
                top = level.sum(0)[:, None] if seen is None else level.T @ seen
                z, half, step = away(columns, seen), alpha[0, :, None], 0.5
                z *= z
                if joint:
                    step = (len(z) if seen is None else seen.sum(0)) / 2
                    top, far = top + log_gamma_ratio(half, step), np.log1p(z.sum(0))
                elif alike:  # one logarithm for all columns
                    z += 1.0
                    far = np.log(np.multiply.reduce(z))
                else:
                    far = (power @ np.log1p(z, out=z).swapaxes(0, 1))[:, 0]
                if not finite(far):  # some entry is very far away
                    far = log1p_sum_squares(away(columns, seen), 0 if joint else ())
                    far = far if joint else (power @ far.swapaxes(0, 1))[:, 0]
                np.subtract(top, (half + step) * far, out=result[:, piece])
        return result.T.reshape(len(x), *groups)

    def tail_probability(self, x):
        """Return the tail of one feature, or of d observed with one variance: δ²/d ~ F(d, 2 alpha); 1 if d = 0."""
        x = self.check(x)
        groups, rows = self._groups(x), x.reshape(len(x), -1)
        if rows.shape[1] > 1 and "feature" not in self.tied:
            return super().tail_probability(x)
        mean, square, dof = (over_rows(a, groups, x) for a in (self.mean, self.squared_scale, 2 * self.alpha))
        tail = tail_with_gaps(rows, mean, square[..., None] * np.eye(rows.shape[1]), dof[:, 0])
        return tail.T.reshape(len(x), *groups)


@dataclass(frozen=True, eq=False)
class NormalInverseGamma(UnknownVariance):
    """Gaussian feature with a normal-inverse-gamma prior on mean and variance.

    Parameters
    ----------
    mean : float or array, shape (features...)
        Prior mean of the feature's mean, in the units of x.
    kappa : float or array
        Number of rows that the prior mean is worth, > 0.
    alpha, beta : float or array
        Shape, and scale in squared units of x, of the inverse-gamma prior on the variance, > 0.
    tied : tuple of {"class", "feature"}, keyword
        Axes that share one variance; a `GaussianDiscriminant` sets them. Posterior alpha and beta keep these axes, with
        length 1.

    Examples
    --------
    >>> prior = NormalInverseGamma(mean=0.0, kappa=1.0, alpha=2.0, beta=2.0)
    >>> posterior = prior.update(prior.statistics([1.0, 3.0]))
    >>> round(float(posterior.beta), 3), float(posterior.alpha)
    (4.333, 3.0)
    """

    mean: Hyperparameter = hyperparameter()
    kappa: Hyperparameter = hyperparameter(positive=True)
    alpha: Hyperparameter = hyperparameter(positive=True)
    beta: Hyperparameter = hyperparameter(positive=True)
    tied: tuple[str, ...] = static(default=(), kw_only=True)  # type: ignore[misc]  # a field, not a class variable

    @classmethod
    def from_guess(cls, mean: float, sd: float, rows: float) -> Self:
        """Return the prior of an expert who guesses mean and sd of the column, both worth ``rows`` > 0 rows.

        The mean of the variance is sd².

        >>> NormalInverseGamma.from_guess(mean=120, sd=10, rows=20)
        NormalInverseGamma(mean=120, kappa=20, alpha=11, beta=1000)
        """
        return cls(mean, rows, 1 + rows / 2, sd**2 * rows / 2)

    @classmethod
    def weak(cls, statistics) -> Self:
        """Return the default prior: the data's location, worth 0.01 row, and within-class scale, worth two rows."""
        mean, variance, _ = statistics.pooled
        return unchecked(cls, mean=mean, kappa=np.array(0.01), alpha=np.array(1.0), beta=variance)

    def marginal(self, columns) -> Self:
        """Return the model of some of the features, along the last axis."""
        every = self.batch_shape[-1:]
        values = {name: getattr(self, name) for name in ("mean", "kappa", "alpha", "beta")}
        return revised(self, **{name: a[..., columns] if a.shape[-1:] == every else a for name, a in values.items()})

    # -- where classes or features share one variance ----------------------------------------------------------------

    def for_classes(self, groups):
        """Return the prior with a mean for every class, and tied alpha and beta once."""
        full = super().for_classes(groups)
        once = tuple(slice(1) if name in self.tied else slice(None) for name in ("class", "feature"))
        return replace(full, alpha=full.alpha[once], beta=full.beta[once]) if self.tied else full

    def latents(self, groups=None, name=""):
        """Sample each variance once, outside the plates that share it, and the means given it."""
        if not self.tied:
            return super().latents(groups, name)
        numpyro, jnp = program.numpyro, program.jnp
        shape = (groups, *self.features)
        alpha, beta = (squeeze(jnp.broadcast_to(a, shape), self.tied) for a in (self.alpha, self.beta))
        labels: Any = {"class": ("class", groups), "feature": (f"{name}feature", shape[1])}
        with program.axes([label for axis, label in labels.items() if axis not in self.tied]):
            variance: Any = numpyro.sample("variance", program.dist.InverseGamma(alpha, beta))
        lead = variance.shape[: variance.ndim - alpha.ndim]  # of plates of the user
        with self.plates(groups, name):
            spread = self._expand({"mean": jnp.zeros((*lead, *shape)), "variance": variance})["variance"]
            mean = numpyro.sample("mean", program.dist.Normal(self.mean, (spread / self.kappa) ** 0.5))
        return {"mean": mean, "variance": variance}


@untied.register
def _(leaf: NormalInverseGamma) -> NormalInverseGamma:
    return revised(leaf, tied=tuple(name for name in leaf.tied if name != "class"))
