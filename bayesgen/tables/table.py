"""Rows as users bring them: tables, arrays, sparse matrices, and their columns; the only place that knows tables."""

import copy
import datetime
import functools
from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from bayesgen.numerics.pieces import pieces

SPARSE_FAMILIES = ("bernoulli", "poisson", "multinomial")  # those to which a 0 that is not written is a 0
_REFUSED = (complex, datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


class Table:
    """Rows as users bring them, their columns by name; nothing is converted before it is asked for.

    Parameters
    ----------
    X : table
        A DataFrame of pandas, polars or pyarrow (by narwhals), an array or what NumPy makes one of, a masked array
        (masked is missing), a 2-D xarray DataArray, or a SciPy sparse matrix.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns; x0, x1, ... where they have none.
    place : dict
        Position of each column.
    native : DataFrame, array or csr_array
        The rows.
    """

    def __init__(self, X):
        self.native, self._frame = X, None
        if sparse.issparse(X):
            self.native = sparse.csr_array(check_array(X, accept_sparse="csr", ensure_all_finite=False))
            if not self.native.has_canonical_format:  # an entry written in parts is their sum
                self.native = self.native.copy()
                self.native.sum_duplicates()
        elif (frame := _frame(X)) is None:
            self.native = _array(X)
        else:
            self._frame, self.native = frame, frame.to_native()
        names = [f"x{j}" for j in range(self.native.shape[1])] if self._frame is None else self._frame.columns
        self._names = names  # the frame's own, which need not be strings
        self.place = {str(name): j for j, name in enumerate(names)}
        self.columns = tuple(self.place)
        if len(self.columns) < len(names):
            twice = sorted(name for name, count in Counter(map(str, names)).items() if count > 1)
            raise ValueError(f"column names must be distinct; {twice} appear more than once")
        if not names or not len(self):
            what = "samples" if names else "features"
            raise ValueError(f"X has 0 {what}: at least one row and one column are needed, got {self.native.shape}")

    def __len__(self):
        return self.native.shape[0]

    @property
    def sparse(self) -> bool:
        """Whether the rows are a sparse matrix."""
        return sparse.issparse(self.native)

    def renamed(self, columns) -> "Table":
        """The same rows under other names of the columns, one for each."""
        if len(columns) != len(self.columns):
            raise ValueError(f"X has {len(self.columns)} columns where {len(columns)} were learned from")
        if columns != self.columns and set(columns) == self.place.keys():  # scikit-learn knows names of strings only
            raise ValueError(f"X has the columns {list(self.columns)}; those of fit came in the order {list(columns)}")
        result = copy.copy(self)
        result.columns, result.place = tuple(columns), {name: j for j, name in enumerate(columns)}
        return result

    def rows(self, chosen: np.ndarray) -> "Table":
        """The rows where ``chosen`` (n,) is true."""
        return Table(self.native[chosen] if self._frame is None else self._frame[np.flatnonzero(chosen)].to_native())

    def _series(self, column: str):
        assert self._frame is not None
        return self._frame.get_column(self._names[self.place[column]])

    def _dtype(self, column: str) -> str:
        """What the column holds: "b" bools, "f" numbers, "O" labels; TypeError where no model takes it."""
        if self._frame is None:
            kind = self.native.dtype.kind
        else:
            import narwhals as nw

            dtype = self._series(column).dtype
            if dtype == nw.Boolean or dtype.is_numeric():
                return "b" if dtype == nw.Boolean else "f"
            if dtype not in (nw.String, nw.Categorical, nw.Enum, nw.Object):
                _refuse(column, dtype if dtype != nw.Unknown else self._series(column).to_native().dtype)
            kind = "O" if dtype == nw.Object else "U"
        if kind == "O":
            return _object_kind(self.labels(column), column)
        return {"b": "b", "f": "f", "i": "f", "u": "f"}.get(kind, "O")

    def family(self, column: str) -> str:
        """Family that the column's type suggests."""
        if self.sparse:
            raise TypeError(
                f"X is sparse, and its type does not tell its features: give features= one of {list(SPARSE_FAMILIES)}, "
                "or a mapping from every column (or tuple of columns) to one"
            )
        return {"b": "bernoulli", "f": "gaussian", "O": "categorical"}[self._dtype(column)]

    def numbers(self, columns) -> Any:
        """Array (n, columns) of floats (or integers, or bools), NaN where missing; csr_array of a sparse matrix."""
        places = [self.place[c] for c in columns]
        if self._frame is None and self.native.dtype.kind in "biuf":
            if places == list(range(places[0], places[0] + len(places))):
                return self.native[:, places[0] : places[0] + len(places)]  # of an array a view, no copy
            return self.native[:, places]
        result = np.empty((len(self), len(columns)))
        for j, column in enumerate(columns):
            result[:, j] = self._number(column)
        return result

    def _number(self, column) -> np.ndarray:
        if self._dtype(column) != "O" and self._frame is not None:
            import narwhals as nw

            series = self._series(column)
            if series.dtype != nw.Object:
                return (series if series.dtype == nw.Float64 else series.cast(nw.Float64)).to_numpy()
        return _to_float(self.labels(column), column)

    def labels(self, column: str) -> np.ndarray:
        """The column's values as they are: an array (n,), None, NaN or NA where missing."""
        if self.sparse:
            raise TypeError(f"X is sparse, and column {column!r} is categorical: give X.toarray()")
        if self._frame is None:
            values = self.native[:, self.place[column]]
            return values.astype(object) if values.dtype.kind in "US" else values
        series = self._series(column)
        if series.dtype.is_numeric() or not series.implementation.is_pyarrow():
            return series.to_numpy()
        return np.array(series.to_list(), dtype=object)

    def categories(self, column: str) -> tuple:
        """Declared levels of a categorical column, unused ones too; else its distinct values, sorted."""
        self._dtype(column)
        if self._frame is not None:
            series = self._series(column)
            if hasattr(series.dtype, "categories"):
                return tuple(series.dtype.categories)
            if series.implementation.is_pandas() and hasattr(series.to_native(), "cat"):
                return tuple(series.to_native().cat.categories.tolist())
        if (levels := self._levels) is not None:
            return levels.categories(self.place[column])
        distinct = _factorize(self.labels(column), column)[1]
        try:
            return tuple(sorted(distinct))
        except TypeError:
            return tuple(sorted(distinct, key=lambda v: (type(v).__name__, str(v))))

    @functools.cached_property
    def _levels(self) -> "_Levels | None":
        """How to look up the values of an array of whole numbers, where they lie close enough together."""
        if self._frame is None and self.native.dtype.kind in "iu" and not self.sparse:
            levels = _Levels(self.native)
            return levels if levels.width.max() <= _Levels.WIDEST else None
        return None

    def codes(self, columns: tuple[str, ...], categories: tuple, unseen: str) -> np.ndarray:
        """Position of each value among ``categories``, (n, columns), NaN where missing.

        ``unseen`` says what a new value is.
        """
        if self._levels is not None:
            found = self._levels.codes([self.place[c] for c in columns], categories)
            if found is not None:
                return found
        return np.stack([self._codes(column, categories, unseen) for column in columns], axis=1)

    def _codes(self, column: str, categories: tuple, unseen: str) -> np.ndarray:
        self._dtype(column)
        position = {label: float(code) for code, label in enumerate(categories)}
        codes, distinct = _factorize(self.labels(column), column)
        new = [value not in position for value in distinct]
        if any(new) and unseen != "missing":
            row = int(np.argmax(np.append(new, False)[codes]))
            raise ValueError(
                f"column {column!r}: {distinct[codes[row]]!r} in row {row} is not one of the categories "
                f"{list(categories)}; declare it at the first fit, by a pandas category or DirichletCategorical(1.0, "
                "categories=[...]), or give unseen='missing' to predict as if it were missing"
            )
        return np.array([*(position.get(value, np.nan) for value in distinct), np.nan])[codes]


def _frame(X):
    """A narwhals DataFrame, or None for what is no DataFrame; a single column is refused."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    if hasattr(X, "to_pandas") and hasattr(X, "dims"):  # an xarray DataArray; its last coordinate names the columns
        X = X.to_pandas() if X.ndim == 2 else X.to_numpy()
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.Series):
        raise ValueError(
            f"X is a single column, a {type(X).__name__}, where a table is expected. Reshape your data: X.to_frame() "
            "is a table of one column"
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _array(X) -> np.ndarray:
    """A 2-D array, None or NaN where something is missing; numbers stay numbers beside strings."""
    if np.ma.isMaskedArray(X):
        numbers = X.dtype.kind in "iuf"
        X = np.where(np.ma.getmaskarray(X), np.nan if numbers else None, X.data if numbers else X.data.astype(object))
    elif not isinstance(X, np.ndarray):
        array = np.asarray(X)
        X = np.asarray(X, dtype=object) if array.dtype.kind in "US" and isinstance(X, list | tuple) else array
    X = check_array(X, dtype=None, ensure_all_finite=False)
    if X.dtype.kind in "mMV":
        raise TypeError(f"X holds {X.dtype}, which no feature model takes; convert it to numbers or to categories")
    return X


def _refuse(column, kind):
    raise TypeError(
        f"column {column!r} holds {kind}, which no feature model takes; convert it to numbers or to categories, or "
        "drop it"
    )


def _observed(values) -> np.ndarray:
    """The values of an array of objects that are not missing."""
    import pandas as pd

    return values[~pd.isna(values)]


def _object_kind(values, column) -> str:
    kinds = set(map(type, _observed(values)))
    for kind in kinds:
        if issubclass(kind, _REFUSED) and not issubclass(kind, float):
            _refuse(column, f"{kind.__name__} values")
    if kinds and all(issubclass(k, bool | np.bool_) for k in kinds):
        return "b"
    return "f" if kinds and all(issubclass(k, int | float | np.number) for k in kinds) else "O"


def _to_float(values, column) -> np.ndarray:
    """Objects that are numbers, as floats."""
    import pandas as pd

    missing = pd.isna(values)
    result = np.full(len(values), np.nan)
    text = next((v for v in values[~missing] if isinstance(v, str | bytes)), None)
    try:
        if text is not None:
            raise ValueError
        result[~missing] = values[~missing].astype(float)
    except ValueError:
        raise ValueError(
            f"column {column!r} holds {text!r}, which is not a number; declare it categorical, convert it, or drop it"
        ) from None
    except TypeError as error:
        raise TypeError(f"column {column!r}: {error}") from None
    return result


def _factorize(values, column) -> tuple[np.ndarray, list]:
    """Code of each value, -1 where missing, and the distinct values in the order of their codes."""
    import pandas as pd

    try:
        codes, distinct = pd.factorize(values)
    except TypeError as error:
        raise TypeError(f"column {column!r} holds values that cannot be categories: {error}") from None
    if distinct.dtype.kind == "f":
        if np.isinf(distinct).any():
            raise ValueError(f"column {column!r} holds an infinite value; give NaN where it is missing")
        if (distinct == np.floor(distinct)).all():  # 1.0 beside a gap is the category 1
            distinct = distinct.astype(int)
    return codes, distinct.tolist()


def _over_rows(function, values):
    """Reduce (n, D) over rows; 64 rows side by side, for NumPy is slow along short ones."""
    whole = len(values) // 64 * 64 if values.flags.c_contiguous else 0
    wide = values[:whole].reshape(-1, 64 * values.shape[1])
    first = [function.reduce(wide, 0).reshape(64, -1)] if whole else []
    return function.reduce(np.concatenate([*first, values[whole:]]), 0)


class _Levels:
    """Values of an array (n, D) of whole numbers, looked up in a table instead of hashed: a few passes for all columns.

    A cell stands for each number between the least and the largest of a column; columns have their cells in a row.
    """

    WIDEST = 1 << 12  # between the least and the largest number of a column

    def __init__(self, values):
        self.values, self.low = values, _over_rows(np.minimum, values)
        width = (
            _over_rows(np.maximum, values).astype(object) - self.low.astype(object) + 1
        )  # which 64 bits may not hold
        self.width = np.minimum(width, self.WIDEST + 1).astype(np.intp)
        self.first = np.cumsum(self.width) - self.width

    def _cells(self, places):
        """Yield the rows of a piece, and the cells of their values."""
        shift = (self.first - self.low.astype(np.intp))[places]
        every = len(places) == self.values.shape[1]
        for piece in pieces(len(self.values), len(places), 1 << 16):
            part = self.values[piece] if every else self.values[piece, places]
            yield piece, part + shift

    @functools.cached_property
    def present(self) -> np.ndarray:
        """Which cells hold a value."""
        total = int(self.width.sum())
        counts = np.zeros(total, np.intp)
        for _, cells in self._cells(np.arange(len(self.low))):
            counts += np.bincount(cells.ravel(), minlength=total)
        return counts > 0

    def categories(self, place: int) -> tuple:
        """Distinct values of a column, in order."""
        own = self.present[self.first[place] : self.first[place] + self.width[place]]
        return tuple((np.flatnonzero(own) + int(self.low[place])).tolist())

    def _within(self, places, top: int) -> bool:
        """Whether all values of some columns lie in 0, ..., top - 1."""
        return bool((self.low[places] >= 0).all() and (self.low[places] + self.width[places] <= top).all())

    def codes(self, places, categories) -> np.ndarray | None:
        """Code of each value, (n, columns), in few bytes; None where some value is no category."""
        if categories == tuple(range(len(categories))) and self._within(places, len(categories)):
            return self.values if len(places) == self.values.shape[1] else self.values[:, places]
        table = np.full(int(self.width.sum()), len(categories), np.min_scalar_type(len(categories)))
        for place in places:
            for code, label in enumerate(categories):
                cell = label - int(self.low[place]) if isinstance(label, int) else -1
                if 0 <= cell < self.width[place]:
                    table[self.first[place] + cell] = code
        result = np.empty((len(self.values), len(places)), table.dtype)
        for piece, cells in self._cells(places):
            result[piece] = table[cells]
        return None if result.max(initial=0) == len(categories) else result
