"""From a table to named blocks of numbers and back: the only place that knows tables.

A block is a set of columns of one family, handed to one leaf as an array (n, columns), or (n,) for a single column.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

FAMILIES = ("gaussian", "bernoulli", "categorical", "poisson", "multinomial")
_RESERVED = "classes"


@dataclass(frozen=True)
class Block:
    """Columns that share a leaf.

    Attributes
    ----------
    name : str
        The leaf's name in the model.
    columns : tuple of str
        Its columns, in order.
    single : bool
        Whether the leaf takes (n,) rather than (n, columns).
    leaf : Model or str
        The leaf the user gave, or the family to make one of.
    categories : tuple or None
        Labels in the order of their codes, where the leaf is categorical.
    """

    name: str
    columns: tuple[str, ...]
    single: bool
    leaf: Any
    categories: tuple | None = None


class Table:
    """A uniform view of a DataFrame (pandas, polars, pyarrow: by narwhals) or an array: columns by name."""

    def __init__(self, X):
        if hasattr(X, "__dataframe__") or hasattr(X, "__arrow_c_stream__"):
            import narwhals as nw

            self._frame = nw.from_native(X, eager_only=True)
            self.columns = tuple(str(c) for c in self._frame.columns)
            self._names = dict(zip(self.columns, self._frame.columns, strict=True))
            self._array = None
        else:
            from sklearn.utils import check_array

            kind = getattr(np.asarray(X), "dtype", np.dtype(object)).kind
            X = np.ma.filled(np.ma.asarray(X, float), np.nan) if np.ma.isMaskedArray(X) else X
            X = check_array(X, dtype=None if kind in "OUSb" else "numeric", ensure_all_finite=False)
            self._frame, self._array = None, X
            self.columns = tuple(f"x{j}" for j in range(X.shape[1]))
        if len(set(self.columns)) < len(self.columns):
            twice = sorted({c for c in self.columns if self.columns.count(c) > 1})
            raise ValueError(f"column names must be distinct; {twice} appear more than once")

    def __len__(self):
        return len(self._frame) if self._frame is not None else len(self._array)

    def _series(self, column: str):
        assert self._frame is not None
        return self._frame.get_column(self._names[column])

    def family(self, column: str) -> str:
        """Family that the column's type suggests."""
        if self._array is not None:
            kind = self._array.dtype.kind
            if kind == "O":
                kind = _object_kind(self._array[:, self.columns.index(column)])
            return {"b": "bernoulli", "f": "gaussian", "i": "gaussian", "u": "gaussian"}.get(kind, "categorical")
        import narwhals as nw

        dtype = self._series(column).dtype
        if dtype == nw.Boolean:
            return "bernoulli"
        if dtype.is_numeric():
            return "gaussian"
        if dtype.is_temporal() or dtype.is_nested() or dtype == nw.Binary:
            raise TypeError(
                f"column {column!r} holds {dtype}, which no feature model takes; convert it to numbers or "
                "to categories, or drop it"
            )
        return "categorical"

    def numbers(self, columns) -> np.ndarray:
        """Float (or integer, or bool) array (n, columns), NaN where missing."""
        if self._array is not None:
            whole = tuple(columns) == self.columns
            block = self._array if whole else self._array[:, [self.columns.index(c) for c in columns]]
            if block.dtype.kind not in "OUS":
                return block
            return np.stack([_to_float(block[:, j], c) for j, c in enumerate(columns)], axis=1)
        return np.stack([self._number(c) for c in columns], axis=1)

    def _number(self, column) -> np.ndarray:
        import narwhals as nw

        series = self._series(column)
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            return series.cast(nw.Float64).to_numpy().astype(float)
        return _to_float(self.labels(column), column)

    def labels(self, column: str) -> np.ndarray:
        """The column's values as they are: an array (n,), None or NaN where missing."""
        if self._array is not None:
            return self._array[:, self.columns.index(column)]
        series = self._series(column)
        return np.asarray(series.to_list(), dtype=object) if not series.dtype.is_numeric() else series.to_numpy()

    def categories(self, column: str) -> tuple:
        """Declared levels of a categorical column, unused ones too; else its distinct values, sorted."""
        if self._frame is not None:
            import narwhals as nw

            series = self._series(column)
            if hasattr(series.dtype, "categories"):
                return tuple(series.dtype.categories)
            if series.dtype == nw.Categorical and hasattr(series.to_native(), "cat"):
                levels = getattr(series.to_native().cat, "categories", None)  # pandas knows the unused ones too
                if levels is not None:
                    return tuple(levels.tolist())
        values = self.labels(column)
        if values.dtype.kind in "biuf":
            found = np.unique(values[values == values]).tolist()
            return tuple(int(v) if isinstance(v, float) and v.is_integer() else v for v in found)
        distinct = {v for v in values.tolist() if not _is_missing(v)}
        try:
            return tuple(sorted(distinct))
        except TypeError:
            return tuple(sorted(distinct, key=lambda v: (type(v).__name__, str(v))))

    def codes(self, column: str, categories: tuple, unseen: str) -> np.ndarray:
        """Position of each value among ``categories``, NaN where missing; ``unseen`` says what a new value is."""
        values = self.labels(column)
        position = {label: float(code) for code, label in enumerate(categories)}
        if values.dtype.kind in "biuf":
            distinct, inverse = np.unique(values, return_inverse=True)
            values, spread = distinct, inverse
        else:
            spread = slice(None)
        result = np.array([np.nan if _is_missing(v) else position.get(v, -1.0) for v in values.tolist()], dtype=float)
        result = result[spread]
        if (result < 0).any():
            if unseen != "missing":
                row = int(np.argmax(result < 0))
                raise ValueError(
                    f"column {column!r}: {self.labels(column)[row]!r} in row {row} is not one of the "
                    f"categories {list(categories)}; give unseen='missing' to treat it as missing, or "
                    "declare the category at fit"
                )
            result[result < 0] = np.nan
        return result


def _is_missing(value) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be a truth value
        return True


def _object_kind(values) -> str:
    kinds = {type(v) for v in values.tolist() if not _is_missing(v)}
    if kinds and all(issubclass(k, bool | np.bool_) for k in kinds):
        return "b"
    return "f" if kinds and all(issubclass(k, int | float | np.number) for k in kinds) else "O"


def _to_float(values, column) -> np.ndarray:
    try:
        if any(isinstance(v, str) for v in values.tolist()):
            raise ValueError
        return np.array([np.nan if _is_missing(v) else float(v) for v in values.tolist()])
    except (TypeError, ValueError):
        sample = next(v for v in values.tolist() if isinstance(v, str) or not _is_missing(v))
        raise ValueError(
            f"column {column!r} holds {sample!r}, which is not a number; declare it categorical, convert it, or drop it"
        ) from None


@dataclass(frozen=True)
class Schema:
    """What was learned of the columns at fit: their order, and the blocks they form."""

    columns: tuple[str, ...]
    blocks: tuple[Block, ...]

    @classmethod
    def learn(cls, table: Table, features) -> "Schema":
        """Divide the columns into blocks.

        Parameters
        ----------
        table : Table
            The rows of fit.
        features : "auto", a family's name, or a mapping
            A mapping goes from column (or tuple of columns: one block) to a leaf or a family's name; columns it does
            not name are "auto". "multinomial" is one bag of words: all columns, or those of a tuple.
        """
        chosen: dict[tuple[str, ...], Any] = {}
        if isinstance(features, Mapping):
            for key, leaf in features.items():
                chosen[_column_names(key, table.columns)] = leaf
        elif features != "auto" and features not in FAMILIES:
            raise ValueError(
                f"features must be 'auto', one of {list(FAMILIES)}, or a mapping from column to leaf; got {features!r}"
            )
        if features == "multinomial":  # one bag of all words
            chosen[table.columns] = features
        named = [c for key in chosen for c in key]
        taken = set(named)
        if len(taken) < len(named):
            raise ValueError("features names a column twice")
        for column in table.columns:
            if column not in taken:
                family = features if features in FAMILIES else table.family(column)
                chosen[(column,)] = family
        return cls(table.columns, tuple(_blocks(chosen, table)))

    def read(self, table: Table, unseen: str = "error") -> dict[str, np.ndarray]:
        """Rows as one array a block, NaN where missing."""
        result = {}
        for block in self.blocks:
            if block.categories is not None:
                columns = [table.codes(c, block.categories, unseen) for c in block.columns]
                rows = np.stack(columns, axis=1)
            else:
                rows = table.numbers(block.columns)
            result[block.name] = rows[:, 0] if block.single else rows
        return result

    def nothing(self) -> dict[str, np.ndarray]:
        """One row with every entry missing."""
        return {b.name: np.full((1,) if b.single else (1, len(b.columns)), np.nan) for b in self.blocks}


def _column_names(key, columns) -> tuple[str, ...]:
    names = tuple(
        columns[k] if isinstance(k, int) and -len(columns) <= k < len(columns) else str(k)
        for k in (key if isinstance(key, tuple) else (key,))
    )
    absent = [name for name in names if name not in columns]
    if absent:
        raise ValueError(f"features names the columns {absent}, which X does not have; it has {list(columns)}")
    return names


def _blocks(chosen, table):
    """Yield blocks: a leaf the user gave stands alone; columns of one family (and one set of categories) share one."""
    shared: dict[tuple, list[str]] = {}
    taken = {_RESERVED}

    def name(wanted: str) -> str:
        while wanted in taken:
            wanted += "_"
        taken.add(wanted)
        return wanted

    for key, leaf in chosen.items():
        if not isinstance(leaf, str):
            vector = getattr(leaf, "event_dim", 0) > 0
            categories = None if vector else getattr(leaf, "categories", None)
            yield Block(name("+".join(key)), key, len(key) == 1 and not vector, leaf, categories)
        elif leaf not in FAMILIES:
            raise ValueError(f"column {key[0]!r}: features must give a leaf or one of {list(FAMILIES)}, got {leaf!r}")
        elif leaf == "multinomial":
            if len(key) == 1 and len(table.columns) > 1:
                raise ValueError(
                    f"column {key[0]!r}: a bag of one word says nothing; give 'multinomial' to a tuple of columns"
                )
            yield Block(name(leaf), key, False, leaf)
        else:
            for column in key:
                categories = table.categories(column) if leaf == "categorical" else None
                if categories == ():
                    raise ValueError(
                        f"column {column!r} has no observed value to learn its categories from; drop it or "
                        "declare DirichletCategorical(alpha, categories=[...])"
                    )
                shared.setdefault((leaf, categories), []).append(column)
    for (family, categories), columns in shared.items():
        alone = family == "categorical" and len(columns) == 1
        yield Block(name(columns[0] if alone else family), tuple(columns), alone, family, categories)
