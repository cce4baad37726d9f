"""Rows as the user gave them, for the user's own members: at fit as they came, later rebuilt from their entries."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen.averaging import columns
from bayesgen.numerics.pieces import taken
from bayesgen.tables.schema import Schema, side_by_side
from bayesgen.tables.table import Table


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
        """Return rows (n, D) and (n, F) as a table or array, in the types of the fit as far as gaps allow."""
        blocks = columns.blocks(self.schema, x, c, left_out=tuple(self.constant))
        whole = {name: own if own.dtype.kind == "f" else own.clip(0) for name, own in blocks.items()}
        result, first = self.schema.write(whole), Table(self.first)
        result |= {name: np.full(len(x), value) for name, value in self.constant.items()}
        for name, codes in zip(columns.categories(self.schema), c.T, strict=True):
            if (codes < 0).any():
                result[name] = result[name].astype(object)
                result[name][codes < 0] = None
        if first.names is None:
            array = side_by_side(result.values())
            return array.astype(self.first.dtype) if self.first.dtype.kind != "O" and not _gaps(array) else array
        if self.schema.library != "pandas":
            import narwhals as nw

            library: Any = self.schema.library
            return nw.from_dict({name: own.tolist() for name, own in result.items()}, backend=library).to_native()
        import pandas as pd

        frame = pd.DataFrame(result)
        frame.columns = self.first.columns
        for name, kind in self.first.dtypes.items():
            if isinstance(kind, pd.CategoricalDtype) or not bool(frame[name].isna().to_numpy().any()):
                frame[name] = frame[name].astype(kind)
        return frame


def _gaps(array) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())
