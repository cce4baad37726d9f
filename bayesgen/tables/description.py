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
from bayesgen.tables.numerals import Unread, unread

SPARSE_FAMILIES = ("bernoulli", "poisson", "multinomial")  # those to which a 0 that is not written is a 0
_NAMES = 0.9  # share of distinct values from which labels name the rows


@dataclass(frozen=True)
class Verdict:
    """A finding on a column.

    Attributes
    ----------
    kind : {"dates", "numbers", "names", "counts"}
        Dates as text; numbers as text; text with hardly a value twice; whole numbers that count the rows.
    distinct, seen : int
        Number of distinct values of text, and of rows that have one.
    unread : Unread or None
        How the numbers would be read.
    """

    kind: Literal["dates", "numbers", "names", "counts"]
    distinct: int = 0
    seen: int = 0
    unread: Unread | None = field(default=None, repr=False)

    @property
    def hardly_twice(self) -> bool:
        """True if the column has hardly a value twice, so that its values are no categories."""
        return self.distinct >= _NAMES * self.seen


class Columns(abc.ABC):
    """The columns that a schema is learned from: of a table in memory, or of a source that is read piece by piece.

    Attributes
    ----------
    columns : tuple of str
        Their names, in order.
    sparse : bool
        True if the rows are a sparse matrix.
    library : str
        The library of the DataFrame, "pandas", "polars" or "pyarrow".
    """

    columns: tuple[str, ...]
    sparse: bool = False
    library: str = "pandas"

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
    """Return the verdict on a column of labels, None if they are categories.

    Parameters
    ----------
    distinct : sequence
        Distinct values of the column, text or other labels.
    seen : int
        Number of rows that have a value.

    Examples
    --------
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
    return Verdict("names", count, seen) if count >= _NAMES * seen else None


def of_whole(values: np.ndarray, rows: np.ndarray | None = None) -> Verdict | None:
    """Return the verdict on whole numbers (n,) at some rows (n,), by default all; None if they do not count the rows.

    Examples
    --------
    >>> of_whole(np.array([7, 8, 9]))
    Verdict(kind='counts', distinct=0, seen=0)
    """
    rows = np.arange(len(values)) if rows is None else rows
    parts = (slice(100), slice(None))  # the first hundred mostly tell that they do not count
    counts = all((values[part] - values[0] == rows[part] - rows[0]).all() for part in parts)
    return Verdict("counts") if counts else None
