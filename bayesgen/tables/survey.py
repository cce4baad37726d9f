"""What a schema needs to know of columns, found piece by piece and merged: types, categories, classes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bayesgen.core.errors import listed
from bayesgen.tables.columns import FAMILY, refuse, sorted_levels
from bayesgen.tables.labels import declared_classes
from bayesgen.tables.rows import arrow_of, distinct_labels, split
from bayesgen.tables.table import Table

_KINDS = {"b": "True and False", "f": "numbers", "O": "text or categories"}


@dataclass
class Survey:
    """What is known of some rows' columns; ``a + b`` is what is known of both.

    It has the questions that `Schema.learn` asks of a table, so that a schema is learned of it as of one.

    Attributes
    ----------
    kinds : dict
        What each column holds: "b" bools, "f" numbers, "O" labels, "" where nothing was observed; else the name of
        its type, which no model takes.
    levels : dict
        Distinct values of the columns of categories; declared ones, unused ones among them, where a type declares them.
    labels : set
        Classes found.
    """

    kinds: dict[str, str]
    levels: dict[str, tuple] = field(default_factory=dict)
    labels: frozenset = frozenset()

    sparse = False
    library = "pandas"

    @classmethod
    def of(cls, batch, target, weight, wanted: Iterable[str] = ()) -> "Survey | None":
        """What one batch says: types of its columns, levels of those ``wanted``, classes; None where it has no row.

        Where not all columns are numbers, objects are looked at value by value.
        """
        X, labels, _ = split(batch, target, weight)
        if not len(labels):
            return None
        classes = frozenset(distinct_labels(labels)[0].tolist())
        if getattr(X, "shape", (1, 1))[1] == 0:  # classes alone were read
            return cls({}, {}, classes)
        table = Table(X)
        if table.sparse:
            return SparseSurvey(dict.fromkeys(table.columns, "f"), {}, classes)
        kinds = {c: _kind(table, c) for c in table.columns}
        levels = {c: _levels(batch, table, c) for c in wanted if kinds.get(c)}
        return cls(kinds, levels, classes)

    def __add__(self, other: "Survey") -> "Survey":
        if self.kinds.keys() != other.kinds.keys():
            here, there = (sorted(a.kinds.keys() - b.kinds.keys()) for a, b in ((self, other), (other, self)))
            raise ValueError(
                f"its columns are not those of what was read before: it lacks {listed(here)} and has {listed(there)}"
            )
        kinds = {}
        for column, mine in self.kinds.items():
            theirs = other.kinds[column]
            if mine and theirs and mine != theirs:
                raise ValueError(
                    f"column {column!r} holds {_KINDS.get(theirs, theirs)}, where it held {_KINDS.get(mine, mine)} "
                    "before; convert it to one type"
                )
            kinds[column] = mine or theirs
        levels = {c: _merged(self.levels.get(c, ()), other.levels.get(c, ())) for c in self.levels | other.levels}
        return type(self)(kinds, levels, self.labels | other.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.kinds)

    @property
    def place(self) -> dict[str, int]:
        """Position of each column."""
        return {column: j for j, column in enumerate(self.kinds)}

    @property
    def classes(self):
        """Classes found, in order."""
        return declared_classes(list(self.labels))

    def family(self, column: str) -> str:
        """Family that the column's type suggests."""
        kind = self.kinds[column] or "O"
        if kind not in FAMILY:
            refuse(column, kind)
        return FAMILY[kind]

    def doubt(self, column: str) -> str:
        """Nothing: what names or numbers the rows is told where all rows are in one table."""
        return ""

    def bools(self, columns) -> tuple[str, ...]:
        """Those of some columns that hold True and False."""
        return tuple(c for c in columns if self.kinds[c] == "b")

    def common(self, features: str) -> None:
        """Nothing: each column has a kind of its own."""

    def categories(self, column: str) -> tuple:
        """Levels of a categorical column."""
        return self.levels.get(column, ())


@dataclass
class SparseSurvey(Survey):
    """Of sparse matrices, whose entries are counts or bits."""

    sparse = True

    def family(self, column: str) -> str:
        """Its type does not tell."""
        raise TypeError(
            "X is sparse, and its type does not tell its features: give features= one family for all columns"
        )


class Wanted(Survey):
    """Asked for categories, remembers of which columns: those that a pass over the rows has to look for."""

    def __init__(self, survey: Survey):
        super().__init__(survey.kinds)
        self.wanted: list[str] = []

    def categories(self, column: str) -> tuple:
        """Something, so that the asking goes on."""
        self.wanted.append(column)
        return ("",)


def _kind(table: Table, column: str) -> str:
    """What a column of one batch holds, "" where nothing: a column of gaps may be of any kind."""
    try:
        family = table.family(column)
    except TypeError as error:
        return str(error).removeprefix(f"column {column!r} holds ").partition(",")[0]
    if family == "categorical" and not _some(table, column):
        return ""
    return {family: kind for kind, family in FAMILY.items()}[family]


def _some(table: Table, column: str) -> bool:
    import pandas as pd

    return bool((~pd.isna(table.labels(column))).any())


def _levels(batch, table: Table, column: str) -> tuple:
    """Levels of a column, in order: those its type declares, else those it holds."""
    import pyarrow as pa

    arrow: Any = arrow_of(batch)
    if arrow is None:
        return table.categories(column)
    values = arrow.column(column)
    if pa.types.is_dictionary(values.type):
        found: tuple = ()
        for chunk in values.chunks:
            found = _merged(found, tuple(v for v in chunk.dictionary.to_pylist() if v is not None))
        return found
    return table.categories(column)


def _merged(a: tuple, b: tuple) -> tuple:
    """Levels of both: in their own order where one has all of the other's, else sorted."""
    if len(a) < len(b):
        a, b = b, a
    both = set(a).union(b)
    return a if len(both) == len(a) else sorted_levels(both)


def kind_of_type(kind) -> str:
    """What a column of a type of pyarrow holds, as in `Survey.kinds`."""
    import pyarrow as pa

    types = pa.types
    if types.is_boolean(kind):
        return "b"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "f"
    if types.is_null(kind):
        return ""
    text = (types.is_string, types.is_large_string, types.is_string_view, types.is_dictionary)
    return "O" if any(is_a(kind) for is_a in text) else str(kind)
