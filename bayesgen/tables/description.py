"""The description of columns that a schema is learned from, and verdicts on columns that may be no features.

A column may hold names or numbers of the rows, or dates and decimal numbers written as text.
"""

import abc
import functools
import itertools
import re
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bayesgen.core.errors import InputTypeError
from bayesgen.models.column_families import sparse_families
from bayesgen.tables.columns import FAMILY, refuse
from bayesgen.tables.dates import written
from bayesgen.tables.groups import NAMES
from bayesgen.tables.numerals import FEW, Unread, almost_plain, unread
from bayesgen.tables.reading import Reading

_NAMES = 0.9  # share of distinct values from which labels name the rows
_INDEX = re.compile(r"(|unnamed: ?[0-9]+|id|index|level_0|__index_level_0__)$", re.I)  # as programs name rows
_SPARSE = 10  # row numbers of a sample, by their name: their range is up to so many times their number
_NUMBERED, _DENSE = 20, 2  # rows from which numbers may number them, by their values, and the same for these


@dataclass(frozen=True)
class Verdict:
    """A finding on a column: dates or numbers as text; hardly a text twice; it counts rows, or may; it names people."""

    kind: Literal["dates", "durations", "numbers", "names", "counts", "numbered", "ids"]
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
    count: Any = None  # function (column, category) -> number of rows, where rows can be counted
    sparse: bool = False  # the rows are a sparse matrix
    library: str = "pandas"  # of the DataFrame: "pandas", "polars" or "pyarrow"
    reading: Reading = Reading()  # how they were written, where they come with an account of it
    changed: Any = ()  # tuple of columns that hold values which were not read with that account
    durations: Any = frozenset()  # set of columns that hold durations

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
            either = f"one of {sparse_families()}, or a mapping from every column (or tuple of columns) to one"
            raise InputTypeError(f"X is sparse, and its type does not tell its features: give features= {either}")
        kind = self.kind(column) or "O"
        if kind not in FAMILY:
            refuse(column, kind)
        return FAMILY[kind]

    def bools(self, columns) -> tuple[str, ...]:
        """Return the columns that hold True and False, not 1 and 0."""
        return tuple(c for c in columns if self.kind(c) == "b")

    def common(self, features: str) -> str | None:
        """Return the one family of all columns, where their common type tells it without a look at each; else None."""
        return None

    def date_form(self, column: str) -> str | None:
        """Return the format of dates: "" where they are no text, None for days; "" too while it is to be looked up."""
        return None if self.kind(column) == "f" else ""

    def doubt(self, column: str) -> Verdict | None:
        """Return the verdict on a column that may be no feature, else None."""
        return None


def of_labels(distinct: Any, seen: int | None = None) -> Verdict | None:
    """Return the verdict on a column by its distinct labels and the number of rows that have one; None for categories.

    Where the number of rows is not known, nothing tells that labels are names.

    >>> of_labels(["2024-01-31", "2024-02-01"], 40)
    Verdict(kind='dates', distinct=2, seen=40)
    >>> of_labels(["red", "blue"], 40)
    >>> of_labels([*map(str, range(20)), "?"], 3000).unread.words
    ('?',)
    """
    count = len(distinct)
    names = seen is not None and count >= _NAMES * seen
    texts = [isinstance(value, str) for value in itertools.islice(distinct, 1000)]
    if all(texts) and count and written(distinct):
        return Verdict("dates", count, seen or 0)
    if any(texts) and (found := unread(distinct, None if names else FEW) or almost_plain(distinct, not names)):
        return Verdict("numbers", count, seen or 0, found)
    return Verdict("names", count, seen) if names and seen else None


def of_whole(values: np.ndarray, rows: np.ndarray | None = None, name: str | None = None) -> Verdict | None:
    """Return the verdict on whole numbers (n,) of the ``rows`` (n,), by default of all; None if they may be a feature.

    They count the rows from 0 or 1, in order or in any; they may number them in equal steps, as years and ranks do as
    well; or they name people, some of whom have several rows, as the name of the column or the order of ``rows`` says.

    >>> of_whole(np.array([1, 2, 3]))
    Verdict(kind='counts', distinct=0, seen=0)
    >>> of_whole(np.arange(40) * 7 % 40).kind, of_whole(np.arange(1980, 2020)).kind
    ('counts', 'numbered')
    """
    before = values - (np.arange(len(values)) if rows is None else rows)
    if before[0] in (0, 1) and (before == before[0]).all():
        return Verdict("counts")
    low, high, most = float(values.min()), float(values.max()), len(values)
    indexed = name is not None and bool(_INDEX.match(name))
    step = np.gcd.reduce((values[:100] - values[0]).astype(np.int64)) if high - low < 2**62 else 0
    if most >= _NUMBERED and high - low < (_SPARSE if indexed else _DENSE) * most * int(step):
        steps = (values - low).astype(np.int64) // np.gcd.reduce((values - low).astype(np.int64))
        if steps.max() < (_SPARSE if indexed else _DENSE) * most and len(np.unique(steps)) == most:
            return Verdict("counts" if indexed or (low in (0, 1) and steps.max() == high - low) else "numbered")
    moves = np.diff(values[:100] if rows is None or (np.diff(values[:100]) < 0).any() else values)
    up = moves[moves != 0]
    if rows is not None and len(moves) == most - 1 and len(up) > max(FEW, most // 10) and (up == up[0]).all():
        return Verdict("ids", len(up) + 1, most)
    if name is None or not (indexed or NAMES.search(name)):
        return None
    count = len(np.unique(values))
    return Verdict("ids", count, most) if count > max(most // 2, 2 * FEW) else None
