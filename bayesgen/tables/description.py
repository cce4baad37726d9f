"""The description of columns that a schema is learned from, and verdicts on columns that may be no features.

A column may hold names or numbers of the rows, or dates and decimal numbers written as text.
"""

import abc
import functools
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bayesgen.core.errors import InputTypeError
from bayesgen.tables.columns import FAMILY, refuse
from bayesgen.tables.dates import written
from bayesgen.tables.numerals import Unread, almost_plain, unread

SPARSE_FAMILIES = ("bernoulli", "poisson", "multinomial")  # those to which a 0 that is not written is a 0
_NAMES = 0.9  # share of distinct values from which labels name the rows


@dataclass(frozen=True)
class Verdict:
    """A finding on a column: dates or numbers as text; text with hardly a value twice; or it counts the rows."""

    kind: Literal["dates", "numbers", "names", "counts"]
    distinct: int = 0  # number of distinct values of text
    seen: int = 0  # and of rows that have one
    unread: Unread | None = field(default=None, repr=False)  # how the numbers would be read

    @property
    def hardly_twice(self) -> bool:
        """True if the column has hardly a value twice, so that its values are no categories."""
        return self.distinct >= _NAMES * self.seen


class Columns(abc.ABC):
    """The columns that a schema is learned from: of a table in memory, or of a source that is read piece by piece."""

    columns: tuple[str, ...]  # their names, in order
    sparse: bool = False  # the rows are a sparse matrix
    library: str = "pandas"  # of the DataFrame: "pandas", "polars" or "pyarrow"

    @abc.abstractmethod
    def kind(self, column: str) -> str:
        """Return "b" for bools, "f" for numbers, "O" for labels, "" for gaps alone, else the name of the type."""

    @abc.abstractmethod
    def categories(self, column: str) -> tuple | None:
        """Return the levels of a categorical column, in order; None where they are still to be looked up."""

    @functools.cached_property
    def place(self) -> dict[str, int]:
        """Position of each column."""
        return {name: j for j, name in enumerate(self.columns)}

    def family(self, column: str) -> str:
        """Return the family that the column's type suggests, or raise where no model takes the type."""
        if self.sparse:
            raise InputTypeError(
                f"X is sparse, and its type does not tell its features: give features= one of {list(SPARSE_FAMILIES)}, "
                "or a mapping from every column (or tuple of columns) to one"
            )
        kind = self.kind(column) or "O"
        if kind not in FAMILY:
            refuse(column, kind)
        return FAMILY[kind]

    def bools(self, columns) -> tuple[str, ...]:
        """Return the columns that hold True and False, not 1 and 0."""
        return tuple(c for c in columns if self.kind(c) == "b")

    def common(self, features: str) -> str | None:
        """Return the family of every column if it is known without a look at each, else None."""
        return None

    def doubt(self, column: str) -> Verdict | None:
        """Return the verdict on a column that may be no feature, else None; only a table in memory can tell."""
        return None


def of_labels(distinct: Any, seen: int) -> Verdict | None:
    """Return the verdict on a column by its distinct labels and the number of rows that have one; None for categories.

    >>> of_labels(["2024-01-31", "2024-02-01"], 40)
    Verdict(kind='dates', distinct=2, seen=40)
    >>> of_labels(["red", "blue"], 40)
    """
    count = len(distinct)
    text = count > 0 and isinstance(distinct[0], str)
    if text and written(distinct):
        return Verdict("dates", count, seen)
    if text and (found := unread(distinct)):
        return Verdict("numbers", count, seen, found)
    if count < _NAMES * seen:
        return None
    if text and (found := almost_plain(distinct)):
        return Verdict("numbers", count, seen, found)
    return Verdict("names", count, seen)


def of_whole(values: np.ndarray, rows: np.ndarray | None = None) -> Verdict | None:
    """Return the verdict on whole numbers (n,) at some rows (n,), by default all; None if they do not count the rows.

    >>> of_whole(np.array([7, 8, 9]))
    Verdict(kind='counts', distinct=0, seen=0)
    """
    for part in (slice(100), slice(None)):  # the first hundred mostly tell that they do not count
        own = values[part]
        places = np.arange(len(own)) if rows is None else rows[part] - rows[0]
        if not (own - own[:1] == places).all():
            return None
    return Verdict("counts")
