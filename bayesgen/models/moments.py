"""Weight, mean and scatter of rows: the sufficient statistics of Gaussian features, and how they add.

Raw second moments cancel. So moments are kept about the mean, and merge by the formula of Chan, Golub and LeVeque.
"""

import contextlib
import functools
import math
from dataclasses import dataclass

import numpy as np

from bayesgen.core.errors import DataError
from bayesgen.core.statistics import NOT_THERE, LocationScale, Statistics, added
from bayesgen.numerics.sums import Grouping, mean_and_scatter

_EPS = float(np.finfo(float).eps)
_DIGITS = 1e-8  # largest relative error of a scatter after taking rows out
_LOST = (
    "forgetting these rows would lose the digits of what is left: they hold nearly all of the spread of a column, or "
    "are not among the rows of the fit; fit the rows that stay instead"
)


@dataclass(frozen=True, eq=False)
class Moments(Statistics):
    """Weight, mean and scatter of Gaussian features: never raw second moments, which cancel."""

    n: np.ndarray  # (groups..., features...), or (groups...) for vectors: sum of weights of the observed entries
    mean: np.ndarray  # (groups..., features...), or (groups..., D): their mean; 0 where nothing was observed
    # (groups..., features...), or (groups..., D, D): sum of (weighted) squared deviations, or outer products of
    # deviations, from the mean
    scatter: np.ndarray

    base = 0.0

    @property
    def vector(self) -> bool:
        """True if one observation is a vector with a full scatter matrix."""
        return self.scatter.ndim > self.mean.ndim

    @property
    def centre(self):
        """The mean: about it the sum of x vanishes, so natural_parameters . total loses no digits to an offset."""
        return self.mean

    def total(self):
        """Return the sum of T(x) about the mean: (n, 0, scatter)."""
        xp = self.n.__array_namespace__()
        if not self.vector:
            return xp.stack([self.n, xp.zeros_like(self.n), self.scatter], axis=-1)
        rows, cols = np.triu_indices(self.mean.shape[-1])
        return xp.concatenate([self.n[..., None], xp.zeros_like(self.mean), self.scatter[..., rows, cols]], axis=-1)

    def total_about(self, centre):
        """Return the sum of T(x) about another point, (groups..., [features...,] dim T)."""
        d = self.mean - centre
        if not self.vector:
            return np.stack([self.n, self.n * d, self.scatter + self.n * d * d], axis=-1)
        rows, cols = np.triu_indices(d.shape[-1])
        n = self.n[..., None]
        return np.concatenate([n, n * d, self.scatter[..., rows, cols] + n * d[..., rows] * d[..., cols]], axis=-1)

    def of_total(self, total, centre) -> "Moments":
        """Return the moments of other rows, in any groups, from their sums of T(x) about a point."""
        dim = self.mean.shape[-1] if self.vector else 1
        n = total[..., 0]
        shift = total[..., 1 : 1 + dim] / np.where(n > 0, n, 1.0)[..., None]
        if not self.vector:
            shift = shift[..., 0]
            return Moments(n, centre + shift, total[..., 2] - n * shift * shift)
        rows, cols = np.triu_indices(dim)
        scatter = np.empty((*n.shape, dim, dim))
        scatter[..., rows, cols] = scatter[..., cols, rows] = total[..., 1 + dim :]
        return Moments(n, centre + shift, scatter - (n[..., None] * shift)[..., :, None] * shift[..., None, :])

    def _with(self, other, sign):
        """Add other moments, or subtract them.

        Chan, Golub and LeVeque (1983): S = S1 + S2 + n1 n2/n d d', d = mean2 - mean1; subtraction solves it for S1.
        """
        if not isinstance(other, Moments) or self.scatter.shape != other.scatter.shape:
            return super()._with(other, sign)
        n = added(self.n, other.n, sign)
        if (n < 0).any():
            raise ValueError(f"{NOT_THERE}: the weight of a class would be {n.min():.3g}")
        there = n > 0
        share = np.divide(other.n, n, out=np.zeros_like(n), where=there)
        delta = sign * (other.mean - self.mean)
        between = sign * self.n * share
        if self.vector:
            share, between, there = share[..., None], between[..., None, None], there[..., None]
            square = delta[..., :, None] * delta[..., None, :]
        else:
            square = delta * delta
        square *= between  # in place, as the sum below: these are the largest arrays of a leave-one-out
        scatter = self.scatter + other.scatter if sign > 0 else self.scatter - other.scatter
        scatter += square
        # The mean of an empty side is a meaningless 0; there between is 0, and share picks the other side.
        if not there.all():
            scatter = np.where(there[..., None] if self.vector else there, scatter, 0.0)
        return Moments(n, np.where(there, self.mean + share * delta, 0.0), scatter)

    def without(self, gone, signed=False):
        """Return the moments without the rows of ``gone``, or raise where the scatter would lose its digits."""
        kept = self - gone
        kept.check_digits(self, kept.pooled.variance)
        return kept

    def check_digits(self, whole: "Moments", variance) -> None:
        """Raise ValueError if these moments, ``whole`` less some rows, have lost digits.

        The error of a scatter is some eps of the scatter of the whole, plus the error that eps of the means makes in
        their distance. It must be less than 1e-8 of the scatter left plus the ``variance`` of one row (features...),
        in every direction: the posterior rests on this sum.
        """
        squares = np.diagonal(whole.scatter, axis1=-2, axis2=-1) if whole.vector else whole.scatter
        size = (whole.n[..., None] if whole.vector else whole.n) * squares
        doubt = 8 * _EPS * (squares + np.abs(whole.mean) * np.sqrt(size))
        if whole.vector:
            base = self.scatter + np.diag(variance)
            unit = np.diagonal(base, axis1=-2, axis2=-1)
            root = np.sqrt(np.maximum(unit, variance * _DIGITS))
            least = np.linalg.eigvalsh(base / root[..., :, None] / root[..., None, :])[..., 0]
            lost = (doubt / root**2).sum(-1) > _DIGITS * least
        else:
            lost = (doubt > _DIGITS * (self.scatter + variance)) | (self.scatter < -doubt)
        if lost.any():
            raise ValueError(_LOST)

    @property
    def observed(self) -> np.ndarray:
        """True for each column that has an entry, (features...)."""
        there = self.n.sum(0) > 0
        return np.full(self.mean.shape[1:], there) if self.vector else there

    def select(self, columns: np.ndarray) -> "Moments":
        """Return the moments of some columns, by their places; `take` leaves them in the order of memory of a file."""
        scatter = self.scatter.take(columns, -1)
        if self.vector:
            return Moments(self.n, self.mean.take(columns, -1), scatter.take(columns, -2))
        return Moments(self.n.take(columns, -1), self.mean.take(columns, -1), scatter)

    def scaled(self, factor):
        return Moments(self.n * factor, self.mean, self.scatter * factor)

    def sum_groups(self) -> "Moments":
        """Merge the leading axis of groups: S = Σ_k (S_k + n_k d_k d_k'), d_k = mean_k - mean."""
        n = self.n[..., None] if self.vector else self.n
        mean, apart, _ = self._apart(n)
        square = (n * apart)[..., :, None] * apart[..., None, :] if self.vector else n * apart * apart
        return Moments(self.n.sum(0), mean, self.scatter.sum(0) + square.sum(0))

    def _apart(self, n):
        """Return the mean of groups by weights n (groups..., features...), distances from it, and total weight."""
        total, origin = n.sum(0), self.mean[0]  # between equal means the distances are exactly 0
        if not n[0].all():
            origin = np.take_along_axis(self.mean, n.argmax(0)[None], 0)[0]
        apart = self.mean - origin
        move = (n / np.where(total > 0, total, 1.0) * apart).sum(0)
        apart -= move
        return origin + move, apart, total

    @functools.cached_property
    def pooled(self) -> LocationScale:
        """Location and within-class scale of each column, over the groups, which the weak priors follow."""
        n, squares = self.n, self.scatter
        if self.vector:
            n, squares = n[..., None], squares.diagonal(axis1=-2, axis2=-1)
        (mean, apart, total), within = self._apart(n), squares.sum(0)
        freedom, noise = total - (n > 0).sum(0), (8 * _EPS * mean) ** 2
        variance = within / np.where(freedom > 0, freedom, np.inf)
        constant = variance <= noise
        if constant.any():  # within the groups, or in total
            overall = (within + (n * apart * apart).sum(0)) / np.where(total > 0, total, np.inf)
            variance = np.where(constant, overall, variance)
            constant &= overall <= noise
            variance[constant] = 1.0
        if not np.isfinite(variance).all():
            _require_finite(variance)
        return LocationScale(mean, variance, constant)

    def resolution(self):
        """Return the smallest variance that float64 distinguishes from zero at these means: (8 eps mean)²."""
        return (8 * _EPS * self.mean) ** 2


def _require_finite(squares) -> None:
    """Raise where sums of squares of columns (features...) have left float64."""
    good = np.isfinite(squares)
    if not good.all():
        where = int(np.argwhere(~good)[0][-1]) if good.ndim else None
        raise DataError("squares of the rows are too large for float64; give it in larger units", feature=where)


def moments(x, group=None, groups=None, weight=None, *, vector=False) -> Moments:
    """Sum rows (n, features...) to their `Moments`, in one pass; with ``vector`` rows (n, D), with a scatter matrix.

    NaN is missing: an entry where features are scalars, a whole row where they are vectors. ``group`` and ``weight``
    are as of `Grouping.of`.
    """
    return grouped_moments(x, Grouping.of(len(x), group, groups, weight), vector=vector)


def grouped_moments(x, rows: Grouping, *, vector=False) -> Moments:
    """Do `moments` under a grouping that is already checked."""
    features, lead = x.shape[1:], rows.lead
    flat = x.reshape(len(x), math.prod(features))
    n, mean, scatter = mean_and_scatter(flat, rows, vector=vector)
    if not np.isfinite(scatter).all() and not np.isinf(flat).any():  # `check` reports infinite entries
        squares = np.diagonal(scatter, axis1=1, axis2=2) if vector else scatter
        _require_finite(squares.sum(0).reshape(features))
    shape = lead + features
    n = n.reshape(lead if vector else shape)
    return Moments(n, mean.reshape(shape), scatter.reshape(shape + features * vector))


def about_zero(mean, deviation) -> tuple[np.ndarray, np.ndarray]:
    """Return 0 and the root mean square of each column from its mean and sd, or 1 where the column is all 0."""
    size = np.hypot(mean, deviation)
    return np.zeros_like(size), np.where(size > 0, size, 1.0)


def centre_and_scale(x, weight=None) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column in any units, the latter 1 where the column is constant.

    Squares of numbers beyond 1e154 or within 1e-154 leave float64. Where they do, columns are taken in units of a power
    of two, which rounds nothing. Rows (n, D) are finite, and their weights > 0.

    Examples
    --------
    >>> centre, scale = centre_and_scale(np.array([[1e-200], [3e-200]]))
    >>> centre, scale
    (array([2.e-200]), array([1.e-200]))
    """
    unit = np.ones(x.shape[1])
    columns = None
    with contextlib.suppress(DataError):
        columns = moments(x, weight=weight)
    if columns is None or not (columns.scatter > 1e-250).all():
        largest = np.abs(x).max(0, initial=0.0)
        unit = np.ldexp(1.0, np.frexp(np.where(largest > 0, largest, 1.0))[1] - 1)  # largest / unit is in [1, 2)
        columns = moments(x / unit, weight=weight)
    variance = columns.scatter / columns.n
    spread = np.where(variance > columns.resolution(), np.sqrt(variance) * unit, 1.0)
    return columns.mean * unit, spread
