"""Sufficient statistics, which a model keeps in place of the rows, and their addition.

The log likelihood of a data set under an exponential family is ``natural_parameters(params, about) . total()``,
whatever the number of rows, so maximum likelihood, MAP, the exact posterior and NUTS all start here. The statistics of
a data set are the sum over its pieces. Arrays have an optional leading axis of groups (the classes).
"""

import operator
from collections import Counter
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

    def without(self, gone, signed: Any = False) -> Self:
        """Return the statistics without the rows of ``gone``: ``self - gone``, checked.

        Parameters
        ----------
        gone : Statistics
            Statistics of some of the rows.
        signed : bool
            True if plain sums may be negative; False if they are counts. For `ClassStatistics`: the names of the leaves
            whose sums may be negative.

        Raises
        ------
        ValueError
            If it shows that the rows are not among these, or if the subtraction loses the digits of what is left.
        """
        return self - gone

    def scaled(self, factor: float) -> Self:
        """Return the statistics with the weight of every row multiplied by ``factor``."""
        raise TypeError(f"{type(self).__name__} cannot be scaled: it has no method scaled(factor)")

    def _with(self, other, sign: int) -> Any:
        """Return statistics with the rows of ``other`` added (``sign`` 1), or removed (-1) if they are among these."""
        return NotImplemented  # the other operand may know how; else Python names the two types


def added(sums, others, sign: int):
    """Return ``sums`` with others added, or taken out (``sign`` -1): a rounding error in place of 0 is then 0."""
    total = sums + sign * others
    return total if sign > 0 else np.where(np.abs(total) <= ROUNDED * np.abs(sums), 0.0, total)


class LocationScale(NamedTuple):
    """Location and within-class scale of columns, over groups of rows."""

    # mean, variance: (features...): pooled mean; pooled within-group variance with divisor N - K, K the number of
    # groups with a row. Where it is 0 or N <= K it is the total variance, or 1 where this is 0 too.
    mean: np.ndarray
    variance: np.ndarray
    constant: np.ndarray  # (features...): True for the columns whose variance is 0 in total, and so is set to 1


class PlainSums(Statistics):
    """Sums of a T(x) that needs no centre: it is taken about the origin."""

    sums: np.ndarray  # (groups..., features..., dim T): weighted sum of T(x); missing entries add nothing
    centre = 0.0

    def total(self):
        """Return the sum of T(x)."""
        return self.sums

    def total_about(self, centre):
        """Return the sum of T(x), whatever the centre."""
        return self.sums


@dataclass(frozen=True, eq=False)
class SumStatistics(PlainSums):
    """Plain sums, and no more."""

    sums: np.ndarray
    base: np.ndarray | np.float64  # (): weighted sum of log h(x), the part of the log likelihood free of parameters

    def of_total(self, total, centre) -> "SumStatistics":
        """Return the statistics of other rows, in any groups, from their sums of T(x)."""
        return SumStatistics(total, np.float64(0))

    def _with(self, other, sign):
        if not isinstance(other, SumStatistics) or self.sums.shape != other.sums.shape:
            return super()._with(other, sign)
        return SumStatistics(added(self.sums, other.sums, sign), self.base + sign * other.base)

    def without(self, gone, signed=False):
        kept = self - gone
        if not signed and (kept.sums < 0).any():
            raise ValueError(f"{NOT_THERE}: a count would be {kept.sums.min():.3g}")
        return kept

    def scaled(self, factor):
        return SumStatistics(self.sums * factor, self.base * factor)

    def select(self, features) -> "SumStatistics":
        """Return the statistics of some features, whose base measure is 1."""
        return SumStatistics(self.sums[..., features, :], self.base)


@dataclass(frozen=True, eq=False)
class Rows(Statistics):
    """The rows themselves, for models that have no smaller sufficient statistic; addition appends rows."""

    keeps_rows = True

    # checked arrays (n, ...) that the model's `log_likelihood` reads, "weight" (n,) among them if rows are weighted
    data: dict[str, np.ndarray]
    decayed: bool = static(default=False)  # True if rows stand in several classes, by shares

    def __add__(self, other):
        if not isinstance(other, Rows) or self.data.keys() != other.data.keys():
            return super().__add__(other)
        data = {name: np.concatenate([a, other.data[name]]) for name, a in self.data.items()}
        return Rows(data, self.decayed or other.decayed)

    def __len__(self):
        return len(next(iter(self.data.values())))

    def take(self, places) -> "Rows":
        """Return some of the rows."""
        return replace(self, data={name: values[places] for name, values in self.data.items()})

    def less(self, gone: "Rows", besides) -> "Rows":
        """Return the rows without others, each once, or raise where one is none of them, whatever is named besides."""
        leaving, stay = Counter(gone._keys(besides)), list[int]()
        for place, key in enumerate(self._keys(besides)):
            stay += [] if leaving[key] else [place]
            leaving[key] -= leaving[key] > 0
        if leaving.total():
            raise ValueError(NOT_THERE)
        return self.take(stay)

    def _keys(self, besides) -> list[bytes]:
        every = [values.reshape(len(values), -1) for name, values in self.data.items() if name not in besides]
        table = np.column_stack(every) + 0.0
        return [row.tobytes() for row in np.where(np.isnan(table), np.nan, table)]

    dear = False  # True: reading the rows costs more than computing with them

    def over(self, function, add=operator.add):
        """Return ``function(data)``, which must add over pieces of the rows."""
        return function(self.data)


@dataclass(frozen=True, eq=False)
class DistantRows(Statistics):
    """Rows that are read anew for every pass over them, from files or from other machines."""

    # returns the sum of ``function(data)`` over all pieces of the rows, with ``data`` as in `Rows`
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

    ``summed(places)`` returns the statistics of some rows, ``parts`` are places as of `departures`, and ``outside`` the
    statistics of all other rows, or 0.
    """
    if len(parts) <= _FEW:
        rows, ends = np.concatenate([*parts, []]).astype(np.intp), np.cumsum([len(held) for held in parts])
        for held, end in zip(parts, ends, strict=True):
            yield outside + summed(np.delete(rows, slice(end - len(held), end)))
        return
    half = (len(parts) + 1) // 2
    first, second = parts[:half], parts[half:]
    yield from all_but_one(summed, first, outside + summed(np.concatenate(second)))
    yield from all_but_one(summed, second, outside + summed(np.concatenate(first)))


def with_axes(statistics: Any, count: int):
    """Return the statistics with ``count`` axes of length 1 after the first, to broadcast against groups."""
    arrays = {f.name: getattr(statistics, f.name) for f in fields(statistics)}
    wide = {name: a.reshape(a.shape[0], *[1] * count, *a.shape[1:]) for name, a in arrays.items() if np.ndim(a)}
    return replace(statistics, **wide)
