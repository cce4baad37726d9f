"""Rows as the user gave them, for the user's own members: at fit as they came, later rebuilt from their entries.

Entries are float64 and codes of categories. A rebuilt column has its type at fit where that holds every value, else it
stays float64: 2.5 reaches the classifier as 2.5 though the fit saw whole numbers. What entries cannot give back is
refused (`refuse_changed`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.averaging import columns
from bayesgen.core.errors import listed
from bayesgen.numerics.pieces import taken
from bayesgen.tables.schema import Schema, side_by_side
from bayesgen.tables.table import Table

_EXACT = 2.0**53  # up to it, every whole number is a float64


@dataclass(frozen=True)
class Given:
    """Rows of a fit as they came.

    Attributes
    ----------
    table : Table
        The rows.
    labels : array, shape (n,)
        Their classes, as the user names them.
    classes : array, shape (K,)
        All classes, in order.
    weight : array, shape (n,), or None
        Their weights, where the user gave any.
    schema : Schema
        Types and categories of the columns.
    constant : tuple of str
        Numeric columns that the other members do not see.
    which : int array, shape (n,), optional
        The place of each row among the distinct rows, or -1 for a row that takes no part.
    """

    table: Table
    labels: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None
    schema: Schema
    constant: tuple[str, ...]
    which: Any = None

    def rows(self, places) -> "Given":
        """Return the rows that are at some places among the distinct ones."""
        own = np.isin(self.which, places)
        table, weight = self.table.rows(own), taken(self.weight, own)
        return replace(self, table=table, labels=self.labels[own], weight=weight, which=self.which[own])

    def shape(self) -> "Shape":
        """Return what other rows are rebuilt by."""
        x, _ = columns.arrays(self.schema, self.schema.read(self.table))
        held = dict(zip(columns.numbers(self.schema), np.fmax.reduce(x, 0), strict=True))
        first = self.table.rows(np.arange(len(self.table)) < 1).native
        return Shape(self.schema, {name: float(held[name]) for name in self.constant}, first)


@dataclass(frozen=True)
class Shape:
    """The types and names by which entries, as members take them, become rows of the kind that the user gave.

    Attributes
    ----------
    schema : Schema
        Types and categories of the columns.
    constant : mapping from str to float
        Columns that the entries lack, and what they always held.
    first : DataFrame or array
        The first row of the fit.
    """

    schema: Schema
    constant: Mapping[str, float]
    first: Any

    def rebuilt(self, x, c) -> Any:
        """Return rows (n, D) and (n, F) as a table or array, in the types of the fit where these hold the values."""
        blocks = columns.blocks(self.schema, x, c, left_out=tuple(self.constant))
        whole = {name: own if own.dtype.kind == "f" else own.clip(0) for name, own in blocks.items()}
        result, first = self.schema.write(whole), Table(self.first)
        result |= {name: np.full(len(x), value) for name, value in self.constant.items()}
        for name, codes in zip(columns.categories(self.schema), c.T, strict=True):
            if (codes < 0).any():
                result[name] = result[name].astype(object)
                result[name][codes < 0] = None
        if first.names is None:
            return _cast(side_by_side(result.values()), self.first.dtype)
        if self.schema.library != "pandas":
            import narwhals as nw

            library: Any = self.schema.library
            return nw.from_dict({name: own.tolist() for name, own in result.items()}, backend=library).to_native()
        frame = pd.DataFrame(result)
        frame.columns = self.first.columns
        for name, kind in self.first.dtypes.items():
            frame[name] = _cast(frame[name], kind)
        return frame


def _cast(values: Any, kind) -> Any:
    """Return an array or column as another type if that holds every value and gap, else unchanged."""
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            result = values.astype(kind)
        seen = ~pd.isna(values)
        same = (pd.isna(result) == ~seen).all() and (result[seen].astype(values.dtype) == values[seen]).all()
    except (TypeError, ValueError, OverflowError):  # whole numbers of pandas' own types refuse a fraction
        return values
    return result if same else values


def refuse_changed(names, table: Table, schema: Schema) -> None:
    """Raise if later rows of a table would reach classifiers of the user's, of these names, otherwise than at fit."""
    refuse_long(names, table, schema)
    if dropped := [column for column in schema.columns if column not in schema.used().columns]:
        raise ValueError(
            f"features drops the columns {listed(dropped)}, which members={listed(names)}, classifiers of your own, "
            "would see at the fit and never again: leave them out of X instead"
        )
    if text := [c for c in schema.dates if any(isinstance(value, str) for value in table.labels(c))]:
        raise ValueError(
            f"columns {listed(text)} hold dates as text, and members={listed(names)}, classifiers of your own, would "
            "get dates later: give them as dates, by pandas.to_datetime(format=...)"
        )


def refuse_long(names, table: Table, schema: Schema) -> None:
    """Raise if a whole number beyond 2^53 is no float64, by which classifiers of the user's see later rows."""
    for column in columns.numbers(schema) if table.names is not None else table.columns:
        values = table.labels(column)
        if values.dtype.kind not in "iuO" or (values.dtype.kind == "O" and column in schema.dates):
            continue
        numbers: Any = pd.to_numeric(values, errors="coerce")
        for row in np.flatnonzero(np.abs(numbers.astype(float)) >= _EXACT):
            if isinstance(values[row], int | np.integer) and int(float(values[row])) != values[row]:
                raise ValueError(
                    f"column {column!r}: {values[row]} in row {row} is a whole number beyond 2^53 that no float64 "
                    f"holds, by which members={listed(names)}, classifiers of your own, see later rows: give it as "
                    "text, or leave the column out of X"
                )
