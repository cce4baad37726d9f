"""Sufficient statistics: what a model keeps of the rows, and how it adds.

The log likelihood of a data set under an exponential family is ``natural_parameters(params, about) . total()``,
whatever the number of rows, so maximum likelihood, MAP, the exact posterior and NUTS all start here. Statistics of two
pieces of a data set add to those of the whole; arrays carry an optional leading axis of groups (the classes).
"""

import contextlib
import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np

from bayesgen.errors import DataError
from bayesgen.numerics.pieces import ROWS, pieces, product_rows
from bayesgen.numerics.scratch import scratch
from bayesgen.numerics.sums import Grouping, finite
from bayesgen.program import Record, static

_SEGMENTS = 32  # groups at most whose rows are worth bringing side by side
_RUN = 4096  # rows of a group that are taken about their mean at a time: ten columns are a third of a megabyte
_FEW = 32  # columns
_AT_ONCE = 1 << 15  # rows times groups times columns that are one product


class Statistics(Record):
    """Sufficient statistics of some rows; ``a + b`` are those of both, and ``a - b`` of what is left without ``b``."""

    def __add__(self, other) -> Self:
        return self._with(other, 1)

    def __radd__(self, other: Any) -> Self:
        if isinstance(other, int) and other == 0:  # where `sum` begins
            return self
        return NotImplemented

    def __sub__(self, other) -> Self:
        return self._with(other, -1)

    def scaled(self, factor: float) -> Self:
        """Statistics in which every row counts ``factor`` times what it did."""
        raise TypeError(f"{type(self).__name__} cannot be scaled: it has no method scaled(factor)")

    def _with(self, other, sign: int) -> Any:
        """Statistics with the rows of ``other`` put in (``sign`` 1), or taken out (-1), where they are among these."""
        return NotImplemented  # the other side may know; else Python says which two types do not add


@dataclass(frozen=True, eq=False)
class SumStatistics(Statistics):
    """Plain sums, for families whose T(x) needs no centre.

    Attributes
    ----------
    sums : array, shape (groups..., features..., dim T)
        Weighted sum of T(x); missing entries count nothing.
    base : array, shape ()
        Weighted sum of log h(x), the part of the log likelihood free of parameters.
    """

    sums: np.ndarray
    base: np.ndarray | np.float64

    @property
    def centre(self):
        """The point T was taken about: the origin."""
        return 0.0

    def total(self):
        """Sum of T(x)."""
        return self.sums

    def _with(self, other, sign):
        if not isinstance(other, SumStatistics) or self.sums.shape != other.sums.shape:
            return super()._with(other, sign)
        return SumStatistics(self.sums + sign * other.sums, self.base + sign * other.base)

    def scaled(self, factor):
        """Return the sums times a factor, as if every row counted so much."""
        return SumStatistics(self.sums * factor, self.base * factor)


class Pooled(NamedTuple):
    """Location and within-class scale of columns, over groups of rows.

    Attributes
    ----------
    mean, variance : array, shape (features...)
        Pooled mean; pooled within-group variance with divisor N - K, or the total variance where that is 0 or N <= K,
        or 1 where that is 0 too. K counts the groups with a row.
    constant : bool array, shape (features...)
        The columns of that last kind.
    """

    mean: np.ndarray
    variance: np.ndarray
    constant: np.ndarray


@dataclass(frozen=True, eq=False)
class Moments(Statistics):
    """Weight, mean and scatter of Gaussian features: never raw second moments, which cancel.

    Attributes
    ----------
    n : array, shape (groups..., features...), or (groups...) for vectors
        Sum of weights of the observed entries.
    mean : array, shape (groups..., features...), or (groups..., D)
        Their mean; 0 where nothing was observed.
    scatter : array, shape (groups..., features...), or (groups..., D, D)
        Sum of (weighted) squared deviations, or outer products of deviations, from the mean.
    """

    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray

    base = 0.0

    @property
    def vector(self) -> bool:
        """Whether one observation is a vector with a full scatter matrix."""
        return self.scatter.ndim > self.mean.ndim

    @property
    def centre(self):
        """The mean: about it the sum of x vanishes, so natural_parameters . total loses no digits to an offset."""
        return self.mean

    def total(self):
        """Sum of T(x) about the mean: (n, 0, scatter)."""
        xp = self.n.__array_namespace__()
        if not self.vector:
            return xp.stack([self.n, xp.zeros_like(self.n), self.scatter], axis=-1)
        rows, cols = np.triu_indices(self.mean.shape[-1])
        return xp.concatenate([self.n[..., None], xp.zeros_like(self.mean), self.scatter[..., rows, cols]], axis=-1)

    def _with(self, other, sign):
        """Merge by Chan, Golub and LeVeque (1983): S = S1 + S2 + n1 n2/n d d', d = mean2 - mean1; or solve for S1."""
        if not isinstance(other, Moments) or self.scatter.shape != other.scatter.shape:
            return super()._with(other, sign)
        n = self.n + sign * other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        delta = sign * (other.mean - self.mean)
        between, some = self.n * share, n > 0
        if self.vector:
            share, between, some = share[..., None], between[..., None, None], some[..., None]
            square = delta[..., :, None] * delta[..., None, :]
        else:
            square = delta * delta
        # Where one side is empty its mean is a meaningless 0; between is 0 there, and share picks the other side.
        scatter = self.scatter + sign * other.scatter + sign * between * square
        scatter = np.where(some[..., None] if self.vector else some, scatter, 0.0)
        return Moments(n, np.where(some, self.mean + share * delta, 0.0), scatter)

    def scaled(self, factor):
        """Weight and scatter in proportion; the mean stays."""
        return Moments(self.n * factor, self.mean, self.scatter * factor)

    def sum_groups(self) -> "Moments":
        """Merge the leading axis of groups: S = Σ_k (S_k + n_k d_k d_k'), d_k = mean_k - mean."""
        mean, apart, _ = self._apart()
        n = self.n[..., None] if self.vector else self.n
        square = (n * apart)[..., :, None] * apart[..., None, :] if self.vector else n * apart * apart
        return Moments(self.n.sum(0), mean, self.scatter.sum(0) + square.sum(0))

    def _apart(self):
        """Mean over the leading axis of groups, how far each group's is from it, and the weight of all."""
        n = self.n[..., None] if self.vector else self.n
        total, origin = n.sum(0), self.mean[0]  # of equal means the distances are exactly 0
        if not n[0].all():
            origin = np.take_along_axis(self.mean, n.argmax(0)[None], 0)[0]
        apart = self.mean - origin
        move = (n / np.where(total > 0, total, 1.0) * apart).sum(0)
        apart -= move
        return origin + move, apart, total

    @functools.cached_property
    def pooled(self) -> "Pooled":
        """Location and within-class scale of each column, over the groups: what the weak priors follow."""
        n, squares = self.n, self.scatter
        if self.vector:
            n, squares = n[..., None], squares.diagonal(axis1=-2, axis2=-1)
        (mean, apart, total), within = self._apart(), squares.sum(0)
        freedom, noise = total - (n > 0).sum(0), _resolution(mean)
        variance = within / np.where(freedom > 0, freedom, np.inf)
        constant = variance <= noise
        if constant.any():  # within the groups, or all over
            overall = (within + (n * apart * apart).sum(0)) / np.where(total > 0, total, np.inf)
            variance = np.where(constant, overall, variance)
            constant &= overall <= noise
            variance[constant] = 1.0
        _require_finite(variance)
        return Pooled(mean, variance, constant)

    def resolution(self):
        """The smallest variance float64 can tell from zero at these means: (8 eps mean)²."""
        return _resolution(self.mean)


_EPS = float(np.finfo(float).eps)


def _resolution(mean):
    return (8 * _EPS * mean) ** 2


def _require_finite(squares) -> None:
    """Raise where sums of squares of columns (features...) have left float64."""
    good = np.isfinite(squares)
    if not good.all():
        where = int(np.argwhere(~good)[0][-1]) if good.ndim else None
        raise DataError("squares of the rows are too large for float64; give it in larger units", feature=where)


@dataclass(frozen=True, eq=False)
class Rows(Statistics):
    """The rows themselves, for models that have no smaller sufficient statistic; adding appends.

    Attributes
    ----------
    data : dict from name to array (n, ...)
        What the model's `log_likelihood` reads, checked; a "weight" (n,) among them where rows are weighted.
    """

    data: dict[str, np.ndarray]

    def __add__(self, other):
        if not isinstance(other, Rows) or self.data.keys() != other.data.keys():
            return super().__add__(other)
        return Rows({name: np.concatenate([a, other.data[name]]) for name, a in self.data.items()})

    dear = False  # whether to read the rows costs more than to compute with them

    def over(self, function, add=operator.add):
        """``function(data)``, which adds over pieces of the rows."""
        return function(self.data)


@dataclass(frozen=True, eq=False)
class DistantRows(Statistics):
    """Rows that are read anew whenever they are asked for: in files, or on other machines.

    Attributes
    ----------
    read : callable (function, add)
        Sum of ``function(data)`` over all pieces of the rows, ``data`` as in `Rows`.
    """

    read: Callable[[Callable, Callable], Any] = static()

    dear = True

    def over(self, function, add=operator.add):
        """Sum of ``function(data)`` over all pieces of the rows."""
        return self.read(function, add)


def moments(x, group=None, groups=None, weight=None, *, vector=False) -> Moments:
    """Accumulate `Moments` of the rows of ``x`` in one pass.

    Rows are taken about the running mean of their group, which follows them: sums of squares then cancel by no more
    than the rows of one piece, whatever the offset. The first entry of a group is its first mean, so a constant column
    is exactly 0 throughout.

    Parameters
    ----------
    x : array, shape (n, features...), or (n, D) with ``vector``
        NaN is missing: an entry where features are scalars, a whole row where they are vectors.
    group : int array, shape (n,), optional
        Class code of each row.
    groups : int, optional
        Number of groups; needed with ``group``.
    weight : array, shape (n,), optional
        Row weights >= 0.
    vector : bool
        Keep the full scatter matrix.
    """
    return grouped_moments(x, Grouping.of(len(x), group, groups, weight), vector=vector)


def about_zero(mean, deviation) -> tuple[np.ndarray, np.ndarray]:
    """0 and the root mean square of each column, by its mean and standard deviation; 1 where it is 0 throughout."""
    size = np.hypot(mean, deviation)
    return np.zeros_like(size), np.where(size > 0, size, 1.0)


def centre_and_scale(x, weight=None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column, the latter 1 where it is constant, in whatever units.

    Squares of what is beyond 1e154 or within 1e-154 leave float64. Where they do columns are taken in units of a power
    of two, which rounds nothing.

    Parameters
    ----------
    x : array, shape (n, D)
        Finite rows.
    weight : array, shape (n,), optional
        Row weights > 0.

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


def grouped_moments(x, rows: Grouping, *, vector=False) -> Moments:
    """Do `moments` under a grouping that is checked already."""
    features, lead, count = x.shape[1:], rows.lead, rows.count
    flat = x.reshape(len(x), math.prod(features))
    dim = flat.shape[1]
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        few = _at_once(flat, rows, vector) if len(flat) * count * max(dim, 8) <= _AT_ONCE else None
        n, mean, scatter = few or _by_pieces(flat, rows, vector)
    if not np.isfinite(scatter).all() and not np.isinf(flat).any():  # what is infinite is told where rows are checked
        squares = np.diagonal(scatter, axis1=1, axis2=2) if vector else scatter
        _require_finite(squares.sum(0).reshape(features))
    if vector:
        return Moments(n.reshape(lead), mean.reshape(lead + features), scatter.reshape(*lead, dim, dim))
    return Moments(*(a.reshape(lead + features) for a in (n, mean, scatter)))


def _at_once(x, rows: Grouping, vector: bool):
    """Moments of few rows (n, columns), all groups in one product; None where a group is empty or an entry missing."""
    member = rows.membership()
    n = member.sum(1)
    if not n.all():
        return None
    mean = x.take(member.argmax(1), 0).astype(float, copy=False)  # about a row of their own a constant column is 0
    z = x - mean.take(rows.codes, 0)
    total = member @ z
    step = total / n[:, None]
    mean += step
    if vector:
        scatter = (member[:, None] * z.T) @ z - total[:, :, None] * step[:, None]
    else:
        n = n[:, None].repeat(x.shape[1], 1)
        scatter = np.maximum(member @ (z * z) - total * step, 0.0)
    return (n, mean, scatter) if np.isfinite(scatter).all() else None


def _by_pieces(x, rows: Grouping, vector: bool):
    """Moments of rows (n, columns), piece by piece."""
    count, dim = rows.count, x.shape[1]
    n = np.zeros(count if vector else (count, dim))
    mean = np.zeros((count, dim))
    scatter = np.zeros((count, dim, dim) if vector else (count, dim))
    add = _add_vectors if vector else _add_scalars
    beside = rows.bounds is not None
    columns = (vector or beside) and count <= _SEGMENTS and dim > 1 and x.strides[0] == x.itemsize
    whole = columns and beside and finite(x)
    size = len(x) if whole else min(ROWS, count * product_rows(dim * dim)) if vector else ROWS
    for piece in pieces(len(x), 1 if whole else dim, rows=size):
        part, own = x[piece], rows[piece]
        if own.weight is not None and not own.weight.all():  # what is written in a row of weight 0 is not read
            part, own = part[own.weight > 0], own[own.weight > 0]
        if whole or (columns and finite(part)):
            _add_columns(n, mean, scatter, part.T, own)
        else:
            add(n, mean, scatter, part, own)
    return n, mean, scatter


def _add_scalars(n, mean, scatter, x, rows: Grouping):
    """Add rows to the moments (groups, columns), in place."""
    member = rows.membership()
    size = member @ np.ones(len(x))
    new = np.flatnonzero((size > 0) & (n == 0).any(1))
    if len(new):
        _start(n, mean, x, rows.codes, new)
    if x.strides[0] >= x.strides[1]:
        z = np.take(mean, rows.codes, 0, out=scratch("centred", x.shape), mode="clip")
    elif isinstance(member, np.ndarray) and rows.weight is None:  # columns are runs in memory, and stay so
        z = np.matmul(mean.T, member, out=scratch("centred", x.shape[::-1])).T
    else:
        z = np.take(mean.T, rows.codes, 1, out=scratch("centred", x.shape[::-1]), mode="clip").T
    np.subtract(x, z, out=z)
    total, size = member @ z, size[:, None]
    if np.isnan(total).any():
        missing = np.isnan(x)
        z[missing] = 0.0
        total, size = member @ z, member @ (~missing).astype(float)
    n += size
    step = np.divide(total, n, out=np.zeros_like(total), where=n > 0)
    mean += step
    z *= z
    scatter += np.maximum(member @ z - total * step, 0.0)


def _start(n, mean, x, codes, groups):
    """Make the first entry seen the mean of what is empty in some groups."""
    first = np.empty(len(n), np.intp)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    for k in groups:
        entry = x[first[k]].astype(float)
        if np.isnan(entry).any():
            own = x[codes == k]
            entry = np.take_along_axis(own, (~np.isnan(own)).argmax(0)[None], 0)[0]
        np.copyto(mean[k], entry, where=(n[k] == 0) & ~np.isnan(entry))


def _add_columns(n, mean, scatter, columns, rows: Grouping):
    """Add finite rows that stand in memory column by column, (D, n), to moments of scalars or vectors, in place.

    Rows of a group are brought side by side: then each column of a group is one run, and its sums are products.
    """
    if rows.bounds is None:
        order, rows = rows.side_by_side()
        # No place is beyond the rows, so nothing is clipped; without NumPy's check it is three times faster.
        columns = np.take(columns, order, axis=1, out=scratch("ordered", columns.shape, columns.dtype), mode="clip")
    dim, vector, bounds = len(columns), scatter.ndim > mean.ndim, rows.bounds
    assert bounds is not None
    step = product_rows(dim * dim) if vector else _RUN
    for k in np.flatnonzero(np.diff(bounds)):
        for start in range(bounds[k], bounds[k + 1], step):
            run = slice(start, min(start + step, bounds[k + 1]))
            w = None if rows.weight is None else rows.weight[run]
            np.copyto(mean[k], columns[:, start], where=n[k] == 0)  # the first entry is the first mean
            beside = scratch("centred", (dim + 1, run.stop - start))
            z = beside[:-1]
            z[:] = columns[:, run]  # as floats; to convert while subtracting takes twice as long
            z -= mean[k][:, None]
            n[k] += run.stop - start if w is None else w.sum()
            if vector:
                beside[-1] = 1.0
                if w is not None:
                    beside *= np.sqrt(w)
                total, squares = _products(z, beside)
                scatter[k] += squares - total[:, None] * (total / n[k])
            else:
                total = z.sum(1) if w is None else z @ w
                squares = np.vecdot(z, z) if w is None else np.vecdot(z * w, z)
                scatter[k] += np.maximum(squares - total * (total / n[k]), 0.0)
            mean[k] += total / n[k]


def _products(z, beside) -> tuple[np.ndarray, np.ndarray]:
    """Sums of rows (D, n), and of their outer products; ``beside`` has a row of ones below them.

    Of few columns a general product takes half the time of a symmetric one, which BLAS chooses for z z'.
    """
    if len(z) > _FEW:
        return z @ beside[-1], z @ z.T
    both = z @ beside.T
    return both[:, -1], both[:, :-1]


def _add_vectors(n, mean, scatter, x, rows: Grouping):
    """Add rows to the moments (groups, D, D), in place; a row with a missing entry counts nothing."""
    if not finite(x):
        seen = ~np.isnan(x).any(1)
        x, rows = x[seen], rows[seen]
    order, rows = rows.side_by_side()
    sorted_rows, bounds = x.take(order, 0).astype(float, copy=False), rows.bounds
    assert bounds is not None
    for k in np.flatnonzero(np.diff(bounds)):
        segment = slice(bounds[k], bounds[k + 1])
        z, w = sorted_rows[segment], None if rows.weight is None else rows.weight[segment]
        if n[k] == 0:
            mean[k] = z[0]
        z -= mean[k]
        total = (np.ones(len(z)) if w is None else w) @ z  # of short rows eight times faster than a sum
        n[k] += len(z) if w is None else w.sum()
        if w is not None:
            z *= np.sqrt(w)[:, None]
        mean[k] += total / n[k]
        scatter[k] += z.T @ z - total[:, None] * (total / n[k])


def with_axes(statistics: "SumStatistics | Moments", count: int):
    """The same statistics with ``count`` axes of length 1 behind the first, to broadcast against groups."""
    arrays = {f.name: getattr(statistics, f.name) for f in fields(statistics)}
    wide = {name: a.reshape(a.shape[0], *[1] * count, *a.shape[1:]) for name, a in arrays.items() if np.ndim(a)}
    return replace(statistics, **wide)


def patterns(observed):
    """Group rows by which entries they have: yields (column indices, row indices) for each pattern in ``observed``."""
    if observed.all():
        yield np.arange(observed.shape[1]), np.arange(len(observed))
        return
    kinds, order, bounds = grouped_patterns(observed)
    for i, kind in enumerate(kinds):
        yield np.flatnonzero(kind), order[bounds[i] : bounds[i + 1]]


def grouped_patterns(observed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The patterns of ``observed`` (n, D) as bools (P, D), rows in their order (n,), and where each begins (P + 1,)."""
    place, count = np.zeros(len(observed), np.intp), 1
    for first in range(0, observed.shape[1], 16):  # 16 columns are a small number, which float32 has
        bits = observed[:, first : first + 16].astype(np.float32)
        place *= 1 << 16
        place += (bits @ (2.0 ** np.arange(bits.shape[1], dtype=np.float32))).astype(np.intp)
        if first == 0:
            there = np.bincount(place, minlength=1 << 16) > 0
            place = (np.cumsum(there) - 1)[place]
            count = int(there.sum())
        else:
            both, place = np.unique(place, return_inverse=True)
            count = len(both)
    order = np.argsort(place.astype(np.min_scalar_type(count)), kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=count))])
    return observed[order[bounds[:-1]]], order, bounds
