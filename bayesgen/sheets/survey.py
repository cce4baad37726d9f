"""Surveys of columns, found piece by piece and merged: their types, categories and classes."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pandas as pd

from bayesgen.core.errors import InputError, named
from bayesgen.sheets.rows import distinct_labels, split
from bayesgen.tables.arrow import pa
from bayesgen.tables.columns import a_word, check_same, joined_levels
from bayesgen.tables.dates import format_of, formats_of
from bayesgen.tables.description import Columns, Verdict, of_labels
from bayesgen.tables.labels import declared_classes
from bayesgen.tables.numerals import FEW
from bayesgen.tables.reading import Reading
from bayesgen.tables.table import Table

_KINDS = {"b": "True and False", "f": "numbers", "O": "text or categories"}


@dataclass
class Survey(Columns):
    """Types, levels and classes found in some rows; ``a + b`` is the survey of both.

    Levels are the distinct values of the columns in which they were looked up, or those that a type declares, unused
    ones among them.
    """

    kinds: dict[str, str]  # of each column, as `Columns.kind` has it
    levels: dict[str, tuple] = field(default_factory=dict)
    labels: frozenset = frozenset()  # classes found
    sparse: bool = False
    words: dict[str, str] = field(default_factory=dict)  # a text of each column that holds some, best one no number
    forms: dict[str, frozenset] = field(default_factory=dict)  # formats in which the dates of a column may be written
    reading: Reading = field(default_factory=Reading)
    durations: frozenset[str] = frozenset()

    def __post_init__(self):
        self.columns = tuple(self.kinds)

    @classmethod
    def of(
        cls, batch, target, weight, wanted: Iterable[str] = (), labelled: bool = True, dates: Iterable[str] = ()
    ) -> "Survey | None":
        """Return the survey of a batch, None of no row, with the levels of columns ``wanted`` and formats of ``dates``.

        Where not all columns are numbers, objects are looked at value by value. A target that is not ``labelled`` is a
        number, and not looked at.
        """
        X, labels, _ = split(batch, target, weight)
        if not len(labels):
            return None
        classes = frozenset(distinct_labels(labels)[0].tolist() if labelled else ())
        if getattr(X, "shape", (1, 1))[1] == 0:  # classes alone were read
            return cls({}, {}, classes)
        table = Table(X)
        if table.sparse:
            return cls(dict.fromkeys(table.columns, "f"), {}, classes, True)
        kinds = {c: table.kind(c) for c in table.columns}
        kinds |= {c: "" for c, kind in kinds.items() if kind == "O" and pd.isna(table.labels(c)).all()}  # gaps alone
        levels = {c: table.categories(c) if kinds.get(c) else () for c in wanted}
        words = {c: word for c, kind in kinds.items() if kind == "O" and (word := a_word(table.labels(c))) is not None}
        forms = {c: formats_of(table.labels(c), c) for c in dates}
        return cls(kinds, levels, classes, words=words, forms=forms, durations=table.durations)

    def __add__(self, other: "Survey") -> "Survey":
        check_same(other.kinds, self.kinds, "what was read before")
        kinds = {}
        for column, mine in self.kinds.items():
            theirs = other.kinds[column]
            if mine and theirs and (mine != theirs or (column in self.durations) != (column in other.durations)):
                held = f"holds {other._content(column)}, where it held {self._content(column)} before"
                text = f"column {column!r} {held}; convert it to one type"
                raise InputError(text, column=column, kind=theirs, value=(self.words | other.words).get(column))
            kinds[column] = mine or theirs
        levels = {c: joined_levels(self.levels.get(c, ()), other.levels.get(c, ())) for c in self.levels | other.levels}
        forms = {c: one & other.forms[c] for c, one in self.forms.items()}
        if against := [c for c, both in forms.items() if not both]:
            before, then = (named(sorted(survey.forms[against[0]])) for survey in (self, other))
            text = f"column {against[0]!r} writes dates in two ways, first as {before} and then as {then}"
            raise InputError(f"{text}; write all of them as 2024-01-31", column=against[0])
        found = levels, self.labels | other.labels, self.sparse, other.words | self.words, forms
        return Survey(kinds, *found, durations=self.durations | other.durations)

    def doubt(self, column: str) -> Verdict | None:
        levels = self.levels.get(column, ()) if self.kinds[column] == "O" else ()
        return of_labels(levels) if len(levels) > FEW else None

    def _content(self, column: str) -> str:
        kind = "durations" if column in self.durations else self.kinds[column]
        return _KINDS.get(kind, kind) + (f" ({self.words[column]!r})" if column in self.words else "")

    @property
    def classes(self):
        """Classes found, in order."""
        return declared_classes(list(self.labels))

    def kind(self, column: str) -> str:
        return self.kinds[column]

    def date_form(self, column: str) -> str | None:
        """Return the format of dates; "" as well while no pass over the rows has looked it up."""
        if column not in self.forms:
            return super().date_form(column)
        return format_of(self.forms[column], column, self.words.get(column, ""))

    def categories(self, column: str) -> tuple | None:
        return self.levels.get(column)


def kind_of_type(kind) -> str:
    """Return the kind of a column of a type of pyarrow, as in `Survey.kinds`."""
    types = pa.types
    if types.is_boolean(kind):
        return "b"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_duration(kind):
        return "f"
    if types.is_null(kind):
        return ""
    text = (types.is_string, types.is_large_string, types.is_string_view, types.is_dictionary)
    return "O" if any(is_a(kind) for is_a in text) else str(kind)


def kind_of_values(values) -> str:
    """Return the kind of the values of a column that was read, as in `Survey.kinds`."""
    kind = values.dtype.kind
    return "b" if kind == "b" else "f" if kind in "iuf" else "O"
