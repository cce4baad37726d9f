"""Sufficient statistics, which a model keeps in place of the rows, and their addition.

The log likelihood of a data set under an exponential family is ``natural_parameters(params, about) . total()``,
whatever the number of rows, so maximum likelihood, MAP, the exact posterior and NUTS all start here. The statistics of
a data set are the sum over its pieces. Arrays have an optional leading axis of groups (the classes).
"""

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from bayesgen.core.program import Record, static

NOT_THERE = "the rows to forget are not among those of the fit"
ROUNDED = 64 * float(np.finfo(float).eps)  # part of a weight or sum that is only the rounding error of a subtraction
_FEW = 64  # parts, for each of which the other rows are summed anew; to sum a single row takes almost as long


class Statistics(Record):
    """Sufficient statistics of some rows; ``a + b`` has the rows of both, ``a - b`` the rows of ``a`` without ``b``."""

    keeps_rows: ClassVar[bool] = False  # True: only its owner may read a file of them

    def __add__(self, other) -> Self:
        return self._with(other, 1)

    def __radd__(self, other: Any) -> Self:
        if isinstance(other, int) and other == 0:  # where `sum` begins
            return self
        return NotImplemented

    def __sub__(self, other) -> Self:
        return self._with(other, -1)

    def without(self, part, signed: Any = False) -> Self:
        """Return the statistics without the rows of ``part``: ``self - part``, checked.

        Parameters
        ----------
        part : Statistics
            Statistics of some of the rows.
        signed : bool
            True if plain sums may be negative; False if they are counts. For `ClassStatistics`: the names of the leaves
            whose sums may be negative.

        Raises
        ------
        ValueError
            If it shows that the rows are not among these, or if the subtraction loses the digits of what is left.
        """
        return self - part

    def scaled(self, factor: float) -> Self:
        """Return the statistics with the weight of every row multiplied by ``factor``."""
        raise TypeError(f"{type(self).__name__} cannot be scaled: it has no method scaled(factor)")

    def _with(self, other, sign: int) -> Any:
        """Return statistics with the rows of ``other`` added (``sign`` 1), or removed (-1) if they are among these."""
        return NotImplemented  # the other operand may know how; else Python names the two types


class LocationScale(NamedTuple):
    """Location and within-class scale of columns, over groups of rows.

    Attributes
    ----------
    mean, variance : array, shape (features...)
        Pooled mean; pooled within-group variance with divisor N - K, K the number of groups with a row. Where it is 0
        or N <= K it is the total variance, or 1 where this is 0 too.
    constant : bool array, shape (features...)
        True for the columns whose variance is 0 in total, and so is set to 1.
    """

    mean: np.ndarray
    variance: np.ndarray
    constant: np.ndarray


@dataclass(frozen=True, eq=False)
class SumStatistics(Statistics):
    """Plain sums, for families whose T(x) needs no centre.

    Attributes
    ----------
    sums : array, shape (groups..., features..., dim T)
        Weighted sum of T(x); missing entries add nothing.
    base : array, shape ()
        Weighted sum of log h(x), the part of the log likelihood free of parameters.
    """

    sums: np.ndarray
    base: np.ndarray | np.float64

    @property
    def centre(self):
        """The point about which T was taken: the origin."""
        return 0.0

    def total(self):
        """Return the sum of T(x)."""
        return self.sums

    def _with(self, other, sign):
        if not isinstance(other, SumStatistics) or self.sums.shape != other.sums.shape:
            return super()._with(other, sign)
        return SumStatistics(self.sums + sign * other.sums, self.base + sign * other.base)

    def without(self, part, signed=False):
        """Return the sums without the rows of ``part``; a rounding error in place of 0 becomes 0."""
        left = self - part
        sums = np.where(np.abs(left.sums) <= ROUNDED * np.abs(self.sums), 0.0, left.sums)
        if not signed and (sums < 0).any():
            raise ValueError(f"{NOT_THERE}: a count would be {sums.min():.3g}")
        return SumStatistics(sums, left.base)

    def scaled(self, factor):
        return SumStatistics(self.sums * factor, self.base * factor)


@dataclass(frozen=True, eq=False)
class Rows(Statistics):
    """The rows themselves, for models that have no smaller sufficient statistic; addition appends rows.

    Attributes
    ----------
    data : dict from name to array (n, ...)
        Checked arrays that the model's `log_likelihood` reads, with "weight" (n,) among them if rows are weighted.
    """

    keeps_rows = True

    data: dict[str, np.ndarray]

    def __add__(self, other):
        if not isinstance(other, Rows) or self.data.keys() != other.data.keys():
            return super().__add__(other)
        return Rows({name: np.concatenate([a, other.data[name]]) for name, a in self.data.items()})

    dear = False  # True: reading the rows costs more than computing with them

    def over(self, function, add=operator.add):
        """Return ``function(data)``, which must add over pieces of the rows."""
        return function(self.data)


@dataclass(frozen=True, eq=False)
class RowsByGroup(Statistics):
    """The rows of each group, for leaves that have no smaller sufficient statistic; addition appends rows.

    Groups are padded to the length M of the largest, so that the parameters of a group meet its rows by broadcasting.

    Attributes
    ----------
    x : array, shape (groups..., M, features..., event...)
        Rows, 0 where an entry is missing, and where there is no row.
    seen : bool array, shape of ``x``
        True where there is an entry.
    weight : array, shape (groups..., M)
        Weights, 0 where there is no row.
    patterns : bool array, shape (P, D)
        Of vectors: the distinct rows of ``seen``; the last is of rows that lack nothing. Else D is 0.
    pattern : int array, shape (groups..., M)
        The pattern of each row.
    """

    keeps_rows = True

    x: np.ndarray
    seen: np.ndarray
    weight: np.ndarray
    patterns: np.ndarray
    pattern: np.ndarray

    @classmethod
    def of(cls, x, codes, weight, lead: tuple[int, ...], vector: bool = False) -> Self:
        """Return rows (n, ...) by group; those without weight or entries are left out.

        Parameters
        ----------
        x : array, shape (n, features..., event...)
            NaN where missing.
        codes : int array, shape (n,)
            Group of each row.
        weight : array, shape (n,), or None
            Weight of each row.
        lead : tuple of int
            (number of groups,), or () where all rows are of one.
        vector : bool
            True if a row (n, D) is one observation, for which patterns are kept.
        """
        weight = np.ones(len(x)) if weight is None else weight
        kept = (weight > 0) & ~np.isnan(x).all(tuple(range(1, x.ndim)))
        order = np.flatnonzero(kept)[np.argsort(codes[kept], kind="stable")]
        x, codes, weight = x[order], codes[order], weight[order]
        sizes = np.bincount(codes, minlength=lead[0] if lead else 1)
        place = np.arange(len(x)) - (np.cumsum(sizes) - sizes)[codes]

        def padded(rows, filler):
            result = np.full((len(sizes), int(sizes.max(initial=0)), *rows.shape[1:]), filler, rows.dtype)
            result[codes, place] = rows
            return result.reshape(*lead, *result.shape[1:])

        seen = ~np.isnan(x)
        rows = padded(np.where(seen, x, 0.0), 0.0), padded(seen, False), padded(weight, 0.0)
        seen = seen if vector else np.ones((len(x), 0), bool)
        whole = np.ones((1, seen.shape[1]), bool)
        patterns, own = np.unique(np.concatenate([seen, whole]), axis=0, return_inverse=True)
        return cls(*rows, patterns, padded(own.ravel()[:-1], len(patterns) - 1))

    @property
    def lead(self) -> tuple[int, ...]:
        """Shape of the groups."""
        return self.weight.shape[:-1]

    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows (n, ...), codes of their groups (n,) and weights (n,)."""
        there = self.weight.reshape(math.prod(self.lead), -1 if self.weight.size else 0) > 0
        x = self.x.reshape(*there.shape, *self.x.shape[self.weight.ndim :])
        seen = self.seen.reshape(x.shape)[there]
        return np.where(seen, x[there], np.nan), np.nonzero(there)[0], self.weight.reshape(there.shape)[there]

    @functools.cached_property
    def medians(self) -> tuple[np.ndarray, np.ndarray]:
        """Weighted median of each column, and spread about it, by group: (groups..., D); NaN where nothing is seen.

        The spread is the median distance over .6745, its value for a Gaussian of standard deviation 1; where it is 0 it
        is the mean distance over .7979.
        """
        x, weight = self._columns()
        centre = _median(x, weight)
        distance = np.abs(x - centre[:, None])
        spread = _spread(distance, weight)
        shape = (*self.lead, *self.x.shape[self.weight.ndim :])
        return centre.reshape(shape), spread.reshape(shape)

    @functools.cached_property
    def pooled(self) -> LocationScale:
        """Location and within-class scale of each column, by medians over all rows."""
        x, weight = self._columns()
        every, (_, _, width) = weight.reshape(1, -1, weight.shape[2]), x.shape
        with np.errstate(invalid="ignore"):
            within = np.nan_to_num(np.abs(x - _median(x, weight)[:, None])).reshape(1, -1, width)
        flat = x.reshape(1, -1, width)
        centre = np.nan_to_num(_median(flat, every))
        spread, total = _spread(within, every)[0], _spread(np.abs(flat - centre[:, None]), every)[0]
        spread = np.where(spread > 0, spread, total)
        constant = ~(spread > 8 * float(np.finfo(float).eps) * np.abs(centre[0]))
        shape = self.x.shape[self.weight.ndim :]
        parts = centre[0], np.where(constant, 1.0, spread) ** 2, constant
        return LocationScale(*(part.reshape(shape) for part in parts))

    def _columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return entries and their weights, (groups, M, columns)."""
        shape = math.prod(self.lead), self.weight.shape[-1], math.prod(self.x.shape[self.weight.ndim :])
        return self.x.reshape(shape), self.seen.reshape(shape) * self.weight.reshape(*shape[:2], 1)

    def _with(self, other, sign):
        if not isinstance(other, RowsByGroup) or self.lead != other.lead:
            return super()._with(other, sign)
        if sign < 0:
            raise ValueError("a leaf that keeps its rows cannot forget some of them: fit the rows that stay instead")
        x, codes, weight = (np.concatenate(parts) for parts in zip(self.flat(), other.flat(), strict=True))
        return RowsByGroup.of(x, codes, weight, self.lead, self.patterns.shape[1] > 0)

    def scaled(self, factor):
        return replace(self, weight=self.weight * factor)


def _median(x, weight):
    """Return the weighted median of each column, (groups, columns), from arrays (groups, M, columns), or NaN."""
    order = np.argsort(np.where(weight > 0, x, np.inf), axis=1)
    x, weight = np.take_along_axis(x, order, 1), np.take_along_axis(weight, order, 1)
    if not x.shape[1]:
        return np.full((x.shape[0], x.shape[2]), np.nan)
    share = np.cumsum(weight, axis=1)
    half = share[:, -1:] / 2
    low, high = (share >= half * (1 - 1e-12)).argmax(1)[:, None], (share > half * (1 + 1e-12)).argmax(1)[:, None]
    middle = (np.take_along_axis(x, low, 1) + np.take_along_axis(x, high, 1))[:, 0] / 2
    return np.where(half[:, 0] > 0, middle, np.nan)


def _spread(distance, weight):
    """Return the spread of each column from distances, see `RowsByGroup.medians`."""
    total = weight.sum(1)
    with np.errstate(invalid="ignore"):
        mean = (weight * np.where(weight > 0, distance, 0.0)).sum(1) / np.where(total > 0, total, np.nan)
    median = _median(distance, weight) / 0.6745
    return np.where(median > 0, median, mean / 0.7979)


@dataclass(frozen=True, eq=False)
class DistantRows(Statistics):
    """Rows that are read anew for every pass over them, from files or from other machines.

    Attributes
    ----------
    read : callable (function, add)
        Returns the sum of ``function(data)`` over all pieces of the rows, with ``data`` as in `Rows`.
    """

    read: Callable[[Callable, Callable], Any] = static()

    dear = True

    def over(self, function, add=operator.add):
        """Return the sum of ``function(data)`` over all pieces of the rows."""
        return self.read(function, add)


def departures(rows: int, group=None) -> list[np.ndarray]:
    """Return the places of the rows that leave together: each row by itself, or the rows of each group (n,)."""
    if group is None:
        return np.split(np.arange(rows), rows)[:rows]
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def all_but_one(summed, parts, outside):
    """Yield, for each of ``parts``, the statistics of all rows but its own.

    Each of n rows is summed log2 n times. To subtract a part from the sum of all would be as fast, and loses the whole
    answer if that part has most of the scatter.

    Parameters
    ----------
    summed : callable
        ``summed(places)`` returns the statistics of some rows.
    parts : list of int array
        Places of the rows of each part; see `departures`.
    outside : Statistics, or 0
        Statistics of all other rows.
    """
    if len(parts) <= _FEW:
        rows, ends = np.concatenate([*parts, []]).astype(np.intp), np.cumsum([len(part) for part in parts])
        for part, end in zip(parts, ends, strict=True):
            yield outside + summed(np.delete(rows, slice(end - len(part), end)))
        return
    half = (len(parts) + 1) // 2
    left, right = parts[:half], parts[half:]
    yield from all_but_one(summed, left, outside + summed(np.concatenate(right)))
    yield from all_but_one(summed, right, outside + summed(np.concatenate(left)))


def with_axes(statistics: Any, count: int):
    """Return the statistics with ``count`` axes of length 1 after the first, to broadcast against groups."""
    arrays = {f.name: getattr(statistics, f.name) for f in fields(statistics)}
    wide = {name: a.reshape(a.shape[0], *[1] * count, *a.shape[1:]) for name, a in arrays.items() if np.ndim(a)}
    return replace(statistics, **wide)
