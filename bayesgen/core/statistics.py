"""Sufficient statistics: what a model keeps of the rows, and how it adds.

The log likelihood of a data set under an exponential family is ``natural_parameters(params, about) . total()``,
whatever the number of rows, so maximum likelihood, MAP, the exact posterior and NUTS all start here. Statistics of two
pieces of a data set add to those of the whole; arrays carry an optional leading axis of groups (the classes).
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.core.program import Record, static


class Statistics(Record):
    """Sufficient statistics of some rows; ``a + b`` are those of both, and ``a - b`` of what is left without ``b``."""

    keeps_rows: ClassVar[bool] = False  # a file of them is for its owner only where they do

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


@dataclass(frozen=True, eq=False)
class Rows(Statistics):
    """The rows themselves, for models that have no smaller sufficient statistic; adding appends.

    Attributes
    ----------
    data : dict from name to array (n, ...)
        What the model's `log_likelihood` reads, checked; a "weight" (n,) among them where rows are weighted.
    """

    keeps_rows = True

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


def with_axes(statistics: Any, count: int):
    """The same statistics with ``count`` axes of length 1 behind the first, to broadcast against groups."""
    arrays = {f.name: getattr(statistics, f.name) for f in fields(statistics)}
    wide = {name: a.reshape(a.shape[0], *[1] * count, *a.shape[1:]) for name, a in arrays.items() if np.ndim(a)}
    return replace(statistics, **wide)
