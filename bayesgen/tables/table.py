"""Rows as users bring them: tables, arrays, sparse matrices, and their columns; the only place that knows tables."""

import copy
import functools
from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from bayesgen.tables.columns import array_of, block_of, factorize, frame_of, object_kind, refuse, to_float
from bayesgen.tables.dates import written
from bayesgen.tables.levels import Levels
from bayesgen.tables.messages import listed

SPARSE_FAMILIES = ("bernoulli", "poisson", "multinomial")  # those to which a 0 that is not written is a 0


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
        self._frame: Any = None  # narwhals' DataFrame, where there is one
        self.native: Any = X
        if sparse.issparse(X):
            rows = check_array(X, accept_sparse="csr", ensure_all_finite=False)  # pyright: ignore[reportArgumentType]  # no stubs
            self.native = sparse.csr_array(rows)
            if not self.native.has_canonical_format:  # an entry written in parts is their sum
                self.native = self.native.copy()
                self.native.sum_duplicates()
        elif (frame := frame_of(X)) is None:
            self.native = array_of(X)
        else:
            self._frame, self.native = frame, frame.to_native()
        self._numbers = self.native if self._frame is None else block_of(self._frame)
        names = [f"x{j}" for j in range(self.native.shape[1])] if self._frame is None else self._frame.columns
        self._names = names  # the frame's own, which need not be strings
        self.place = {str(name): j for j, name in enumerate(names)}
        self.columns = tuple(self.place)
        if len(self.columns) < len(names):
            twice = sorted(name for name, count in Counter(map(str, names)).items() if count > 1)
            raise ValueError(f"column names must be distinct; {listed(twice)} appear more than once")
        if not names or not len(self):
            what = "samples" if names else "features"
            raise ValueError(f"X has 0 {what}: at least one row and one column are needed, got {self.native.shape}")

    def __len__(self):
        return self.native.shape[0]

    @property
    def sparse(self) -> bool:
        """Whether the rows are a sparse matrix."""
        return sparse.issparse(self.native)

    @property
    def library(self) -> str:
        """Whose DataFrame the rows are; of an array that of pandas, which rows with names become."""
        return "pandas" if self._frame is None else self._frame.implementation.value

    def renamed(self, columns) -> "Table":
        """The same rows under other names of the columns, one for each."""
        if len(columns) != len(self.columns):
            raise ValueError(f"X has {len(self.columns)} columns where {len(columns)} were learned from")
        if columns != self.columns and set(columns) == self.place.keys():  # scikit-learn knows names of strings only
            raise ValueError(
                f"X has the columns {listed(self.columns)}; those of fit came in the order {listed(columns)}"
            )
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
        if self._numbers is not None:
            kind = self._numbers.dtype.kind
        else:
            import narwhals as nw

            dtype = self._series(column).dtype
            if dtype == nw.Boolean or dtype.is_numeric():
                return "b" if dtype == nw.Boolean else "f"
            if _nothing(self._series(column)):
                return "O"
            if dtype not in (nw.String, nw.Categorical, nw.Enum, nw.Object):
                refuse(column, dtype if dtype != nw.Unknown else self._series(column).to_native().dtype)
            kind = "O" if dtype == nw.Object else "U"
        if kind == "O":
            return object_kind(self.labels(column), column)
        return {"b": "b", "f": "f", "i": "f", "u": "f"}.get(kind, "O")

    def family(self, column: str) -> str:
        """Family that the column's type suggests."""
        if self.sparse:
            raise TypeError(
                f"X is sparse, and its type does not tell its features: give features= one of {list(SPARSE_FAMILIES)}, "
                "or a mapping from every column (or tuple of columns) to one"
            )
        return {"b": "bernoulli", "f": "gaussian", "O": "categorical"}[self._dtype(column)]

    def doubt(self, column: str) -> str:
        """What a column of a DataFrame seems to be, where that is nothing to learn from as it is; else "".

        A name of the row, which is text with hardly a value twice or whole numbers that count the rows; or a date that
        is written as text. Ten rows do not tell.
        """
        if self._frame is None or len(self) <= 10:
            return ""
        series, kind = self._series(column), self._dtype(column)
        whole = series.dtype.is_integer() and not series.null_count()
        if whole and series[1] == series[0] + 1:
            counts = bool(((series - series[0]).to_numpy() == np.arange(len(self))).all())
            return "seems to number the rows, which says nothing of new rows" if counts else ""
        if kind != "O" or hasattr(series.dtype, "categories") or hasattr(series.to_native(), "cat"):
            return ""
        distinct, seen = series.drop_nulls().unique(), len(self) - series.null_count()
        if isinstance(distinct[0] if len(distinct) else None, str) and written(distinct):
            return "holds dates as text, which would be categories"
        if seen > 10 and len(distinct) >= 0.9 * seen:
            return f"seems to name the rows, with {len(distinct)} distinct values in {seen} rows; names say nothing"
        return ""

    def is_bool(self, column: str) -> bool:
        """Whether a column holds True and False, not 1 and 0."""
        return self.native.dtype.kind == "b" if self.sparse else self._dtype(column) == "b"

    def numbers(self, columns) -> Any:
        """Array (n, columns) of floats (or integers, or bools), NaN where missing; csr_array of a sparse matrix."""
        places = [self.place[c] for c in columns]
        if self._numbers is not None and self._numbers.dtype.kind in "biuf":
            if places == list(range(places[0], places[0] + len(places))):
                return self._numbers[:, places[0] : places[0] + len(places)]  # a view, no copy
            return self._numbers[:, places]
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
        return to_float(self.labels(column), column)

    def labels(self, column: str) -> np.ndarray:
        """The column's values as they are: an array (n,), None, NaN or NA where missing."""
        if self.sparse:
            raise TypeError(f"X is sparse, and column {column!r} is categorical: give X.toarray()")
        if self._frame is None:
            values = self.native[:, self.place[column]]
            return values.astype(object) if values.dtype.kind in "US" else values
        series = self._series(column)
        if _nothing(series):
            return np.full(len(self), None)
        whole = series.dtype.is_integer() and series.null_count() > 0  # NumPy would make floats of them
        if whole or (series.implementation.is_pyarrow() and not series.dtype.is_numeric()):
            return np.array(series.to_list(), dtype=object)
        return series.to_numpy()

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
        distinct = factorize(self.labels(column), column)[1]
        try:
            return tuple(sorted(distinct))
        except TypeError:
            return tuple(sorted(distinct, key=lambda v: (type(v).__name__, str(v))))

    @functools.cached_property
    def _levels(self) -> "Levels | None":
        """How to look up the values of an array of whole numbers, where they lie close enough together."""
        if self._frame is None and self.native.dtype.kind in "iu" and not self.sparse:
            levels = Levels(self.native)
            return levels if levels.width.max() <= Levels.WIDEST else None
        return None

    def codes(self, columns: tuple[str, ...], categories: tuple, new: dict | None = None) -> np.ndarray:
        """Position of each value among ``categories``, (n, columns), NaN where missing.

        A value that is not among them is an error; or missing, where ``new`` is given: it then maps the column to such
        values and how many rows hold them.
        """
        if self._levels is not None:
            found = self._levels.codes([self.place[c] for c in columns], categories)
            if found is not None:
                return found
        return np.stack([self._codes(column, categories, new) for column in columns], axis=1)

    def _codes(self, column: str, categories: tuple, found: dict | None) -> np.ndarray:
        self._dtype(column)
        position = {label: float(code) for code, label in enumerate(categories)}
        codes, distinct = factorize(self.labels(column), column)
        new = [value not in position for value in distinct]
        if any(new) and found is not None:
            counts = np.bincount(codes[codes >= 0], minlength=len(distinct)).tolist()
            found[column] = {value: counts[code] for code, value in enumerate(distinct) if new[code]}
        elif any(new):
            row = int(np.argmax(np.append(new, False)[codes]))
            raise ValueError(
                f"column {column!r}: {distinct[codes[row]]!r} in row {row} is not one of the categories "
                f"{listed(categories)}; declare it at the first fit, by a pandas category or DirichletCategorical(1.0, "
                "categories=[...]), or give unseen='missing' to predict as if it were missing"
            )
        return np.array([*(position.get(value, np.nan) for value in distinct), np.nan])[codes]


def _nothing(series) -> bool:
    """Whether a column is of a type that holds nothing but nulls."""
    import narwhals as nw

    return series.dtype == nw.Unknown and series.null_count() == len(series)
