"""Rows as users bring them: tables, arrays, sparse matrices, and their columns; the only place that knows tables."""

import copy
import functools
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_array

from bayesgen.core.errors import Argument, listed
from bayesgen.tables import columns as cols
from bayesgen.tables.dates import form_of
from bayesgen.tables.description import Columns, Verdict, of_labels, of_whole
from bayesgen.tables.reading import Reading, changed_after

_FIRST = 1000  # rows of a column that mostly tell that its numbers are not whole
_TEXT = (nw.String, nw.Categorical, nw.Enum)
_WORDS = (pd.StringDtype, pd.CategoricalDtype)  # what pandas calls the same
DECLARE = (
    "declare it at the first fit, by a pandas category or DirichletCategorical(1.0, categories=[...]), or give "
    "unseen='missing' to a classifier, to predict as if it were missing"
)
_KINDS = {"b": "b", "f": "f", "i": "f", "u": "f"}


class Table(Columns):
    """Rows as users bring them, their columns by name; nothing is converted before it is asked for.

    They may be a DataFrame of pandas, polars or pyarrow (by narwhals), an array or what NumPy makes one of, a masked
    array (masked is missing), a 2-D xarray DataArray, or a SciPy sparse matrix. ``native`` are the rows as a DataFrame,
    an array or a csr_array; ``names`` a DataFrame's own names of its columns, which need not be strings, else None, and
    the columns are called x0, x1, ....
    """

    def __init__(self, X):
        self._mixed = False  # whether columns may differ in type
        self.edges: dict[str, Any] = {}  # least and greatest number (2,) of each column: values of people
        self._array: Any = None  # the rows where they do not: mostly a view, which nobody writes to
        self._known: dict[Any, Any] = {}  # by column: the series, kind of values, codes and distinct values
        self._dates: Reading | None = None  # the account of a fit that had dates
        X = cols.dense(X)
        if sparse.issparse(X):
            checked = X.format == "csr" and X.dtype.kind in "biuf" and X.ndim == 2 and min(X.shape) > 0
            rows = X if checked else check_array(X, accept_sparse="csr", ensure_all_finite=False)  # pyright: ignore[reportArgumentType]  # no stubs
            rows = rows if isinstance(rows, sparse.csr_array) else sparse.csr_array(rows)
            if not rows.has_canonical_format:  # an entry written in parts is their sum
                rows = rows.copy()
                rows.sum_duplicates()
            self.native: Any = rows
            self._array, names = rows, None
        elif (block := cols.block_of(X)) is not None:
            self.native, self._array, names = X, block, X.columns
        elif type(X) is pd.DataFrame and X.columns.is_unique:
            self._mixed, self.native, names, self.library = True, X, X.columns.tolist(), "pandas"
        elif (frame := cols.frame_of(X)) is None:
            self.native = self._array = cols.array_of(X)
            names = None
        else:
            self._mixed, self._frame, self.native, names = True, frame, frame.to_native(), frame.columns
            self.library = frame.implementation.value
        self.sparse = sparse.issparse(self.native)
        self.reading = Reading.of(self.native)
        self.names: list[Any] | None = None if names is None else list(names)
        self.columns = numbered(self.native.shape[1]) if self.names is None else tuple(map(str, self.names))
        if names is not None and len(set(self.columns)) < len(self.columns):
            cols.check_distinct(self.columns)
        if not self.columns or not self.native.shape[0]:
            what = "samples" if self.columns else "features"
            raise ValueError(f"X has 0 {what}: at least one row and one column are needed, got {self.native.shape}")

    def __len__(self):
        return self.native.shape[0]

    @functools.cached_property
    def changed(self) -> tuple[str, ...]:
        return changed_after(self.native)

    @functools.cached_property
    def _frame(self) -> Any:
        """The DataFrame of narwhals, where columns may differ in type; of pandas many rows are read without it."""
        return cols.frame_of(self.native) if self._mixed else None

    def renamed(self, columns, reading: Reading | None = None) -> "Table":
        """Return the same rows under other names of the columns, one for each, and with the dates of a fit."""
        if reading is not None and reading.dates:
            result = copy.copy(self.renamed(columns))
            result._dates = reading
            return result
        if columns is self.columns or columns == self.columns:
            return self
        if len(columns) != len(self.columns):
            raise ValueError(f"X has {len(self.columns)} columns where {len(columns)} were learned from")
        if set(columns) == self.place.keys():  # scikit-learn knows names of strings only
            order = f"those of fit came in the order {listed(columns)}"
            raise ValueError(f"X has the columns {listed(self.columns)}; {order}")
        result = copy.copy(self)
        result.columns, result._known, result.edges = tuple(columns), {}, {}
        for known in ("place", "durations"):
            vars(result).pop(known, None)
        return result

    def rows(self, chosen: np.ndarray) -> "Table":
        """Select the rows at some places, or where ``chosen`` (n,) is true."""
        places = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        if self._mixed:
            return Table(self._frame[places].to_native())
        return Table(self.native[places] if self.names is None else self.native.iloc[places])

    def _series(self, column: str):
        if (column, "series") not in self._known:
            assert self._mixed and self.names is not None
            self._known[column, "series"] = self._frame.get_column(self.names[self.place[column]])
        return self._known[column, "series"]

    def kind(self, column: str) -> str:
        if self._array is not None and self._array.dtype.kind != "O":
            return _KINDS.get(self._array.dtype.kind, "O")
        kind = self._known.get(column)
        if kind is None:
            kind = self._known[column] = self._look(column)
        return kind

    @functools.cached_property
    def _plain(self) -> list[str | None]:
        """The kind of each column that pandas keeps as NumPy's numbers or bools, as text or categories; else None."""
        if not self._mixed or self.library != "pandas":
            return [None] * len(self.columns)
        return [
            "O" if isinstance(dtype, _WORDS) else _KINDS.get(dtype.kind) if isinstance(dtype, np.dtype) else None
            for dtype in self.native.dtypes.array
        ]

    @functools.cached_property
    def durations(self) -> frozenset[str]:
        if not self._mixed:
            return frozenset()
        typed = zip(self.columns, self._plain, strict=True)
        return frozenset(c for c, plain in typed if plain is None and self._series(c).dtype == nw.Duration)

    def _look(self, column: str) -> str:
        if not self._mixed:
            return cols.object_kind(self.labels(column))
        if (plain := self._plain[self.place[column]]) is not None:
            return plain
        series = self._series(column)
        dtype = series.dtype
        if dtype == nw.Boolean or dtype.is_numeric() or dtype == nw.Duration:
            return "b" if dtype == nw.Boolean else "f"
        if dtype in _TEXT or _nothing(series):
            return "O"
        if dtype != nw.Object:
            return str(dtype if dtype != nw.Unknown else series.to_native().dtype)
        return cols.object_kind(self.labels(column))

    def _taken(self, column: str) -> str:
        """Return the kind of a column, or raise where no model takes it."""
        kind = self.kind(column)
        if kind not in cols.FAMILY:
            cols.refuse(column, kind)
        return kind

    def date_form(self, column: str) -> str | None:
        if self.kind(column) == "f":
            return None
        values = self.labels(column)
        return "" if values.dtype.kind == "M" else form_of(values, column)

    def doubt(self, column: str) -> Verdict | None:
        """Return the verdict on a column of a DataFrame that may be no feature, else None; ten rows do not tell."""
        if column in self.durations:
            return Verdict("durations")
        if self.names is None or len(self) <= 10:
            return None
        if not self._mixed:  # numbers of one type
            values = self._array[:, self.place[column]]
            return of_whole(values, name=column) if values.dtype.kind in "iu" else None
        series, kind = self._series(column), self._taken(column)
        if series.dtype.is_integer() and not series.null_count():
            return of_whole(series.to_numpy(), name=column)
        if kind != "O" or cols.declared_levels(series) is not None:
            return None
        seen = len(self) - series.null_count()
        found = of_labels(series.drop_nulls().unique(), seen)
        return None if found and found.kind == "names" and seen <= 10 else found

    def count(self, column: str, category) -> int:
        codes, distinct = self._distinct(column)
        return int((codes == distinct.index(category)).sum()) if category in distinct else 0

    def common(self, features: str) -> str | None:
        """Return the family of every column for rows of one type, but for whole numbers with names; else None."""
        if self._array is None or (self.names is not None and self._array.dtype.kind not in "fb"):
            return None
        if features == "auto":
            return None if self.sparse else cols.FAMILY[_KINDS.get(self._array.dtype.kind, "O")]
        return features

    def numbers(self, columns) -> Any:
        """Return (n, columns) of floats (or integers, or bools), NaN where missing; a csr_array of sparse rows.

        Columns of dates, by the account of a fit, are days since 1970-01-01.
        """
        if (known := self._dates) is not None and not known.dates.keys().isdisjoint(columns):
            dated = (known.days_of(self.labels(c), c) if c in known.dates else self.numbers((c,)) for c in columns)
            return np.column_stack([*dated])
        if self._array is not None and self._array.dtype.kind in "biuf":
            if columns is self.columns or columns == self.columns:
                return self._array
            places = [self.place[c] for c in columns]
            if places == list(range(places[0], places[0] + len(places))):
                return self._array[:, places[0] : places[0] + len(places)]  # a view, no copy
            return self._array[:, places]
        result = np.empty((len(columns), len(self))).T  # a column is a run in memory, as it comes: .6 of the time
        for j, column in enumerate(columns):
            result[:, j] = self._number(column)
        return result

    def held(self, columns: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the columns of numbers that hold whole ones alone, and those that hold none below 0; keep `edges`."""
        whole, unsigned = list[str](), list[str]()
        together = self._array is not None and self._array.dtype.kind in "iuf"
        columns = columns if together else tuple([column for column in columns if self.kind(column) == "f"])
        for names in [columns] if together and columns else [(column,) for column in columns]:
            x: Any = self.numbers(names) if together else self._number(names[0])[:, None]
            edges = cols.edges_of(x)
            self.edges |= dict(zip(names, edges.T, strict=True))
            unsigned += [names[j] for j in np.flatnonzero(edges[0] >= 0)]
            may = np.flatnonzero(_are_whole(x[:_FIRST]).all(0))
            whole += [names[j] for j in may if _are_whole(x[:, j]).all()]
        return tuple(whole), tuple(unsigned)

    def _number(self, column) -> np.ndarray:
        place = self.place[column]
        if self._plain[place] in ("b", "f"):
            return self.native.iloc[:, place].to_numpy()
        if self._taken(column) != "O" and self._mixed:
            series = self._series(column)
            dtype = series.dtype
            if dtype == nw.Duration:
                return series.to_numpy() / np.timedelta64(1, "D")
            if dtype != nw.Object:
                return (series if dtype == nw.Float64 else series.cast(nw.Float64)).to_numpy()
        return cols.to_float(self.labels(column), column)

    def labels(self, column: str) -> np.ndarray:
        """Return the column's values unchanged: an array (n,), None, NaN or NA where missing."""
        if self.sparse:
            raise TypeError(f"X is sparse, and column {column!r} is categorical: give X.toarray()")
        if not self._mixed:
            values = self._array[:, self.place[column]]
            return values.astype(object) if values.dtype.kind in "US" else values
        series = self._series(column)
        if _nothing(series):
            return np.full(len(self), None)
        whole = series.dtype.is_integer() and series.null_count() > 0  # NumPy would make floats of them
        if whole or (series.implementation.is_pyarrow() and not series.dtype.is_numeric()):
            return np.array(series.to_list(), dtype=object)
        return series.to_numpy()

    def _distinct(self, column: str) -> tuple[np.ndarray, list]:
        """Return the code of each value of a column, -1 where missing, and the distinct values; looked up once."""
        self._taken(column)
        if (column, "codes") not in self._known:
            self._known[column, "codes"] = cols.factorize(self._coded(column), column)
        return self._known[column, "codes"]

    def _coded(self, column: str) -> Any:
        """Return a column in the form that `factorize` codes fastest: text and categories as pandas holds them."""
        if self._plain[self.place[column]] == "O":
            return self.native.iloc[:, self.place[column]]
        if self._mixed and self.library == "pandas":  # text of Arrow's types
            series = self._series(column)
            if series.dtype in _TEXT:
                return series.to_native()
        return self.labels(column)

    def categories(self, column: str) -> tuple:
        """Return the declared levels of a categorical column, unused ones too; else its distinct values, sorted."""
        self._taken(column)
        if self._mixed and (declared := cols.declared_levels(self._series(column))) is not None:
            return declared
        if (levels := self._levels) is not None:
            return levels.categories(self.place[column])
        return cols.sorted_levels(self._distinct(column)[1])

    @functools.cached_property
    def _levels(self) -> cols.Levels | None:
        """Look-up table of an array of whole numbers that lie close together, else None."""
        if self._array is not None and self._array.dtype.kind in "iu" and not self.sparse:
            levels = cols.Levels(self._array)
            return levels if levels.width.max() <= cols.Levels.WIDEST else None
        return None

    def codes(self, columns: tuple[str, ...], categories: tuple, new: dict | None = None) -> np.ndarray:
        """Return the position of each value among ``categories``, (n, columns), NaN where missing.

        A value that is not among them is an error; or missing, where ``new`` is given: it then maps the column to such
        values and how many rows hold them.
        """
        if self._levels is not None:
            found = self._levels.codes(np.array([self.place[c] for c in columns]), categories)
            if found is not None:
                return found
        return np.stack([self._codes(column, categories, new) for column in columns], axis=1)

    def _codes(self, column: str, categories: tuple, found: dict | None) -> np.ndarray:
        self._taken(column)
        position = {label: float(code) for code, label in enumerate(categories)}
        codes, distinct = self._distinct(column)
        if any(value not in position for value in distinct):
            position |= cols.twins(categories, distinct)
        new = [value not in position for value in distinct]
        if any(new) and found is not None:
            counts = np.bincount(codes[codes >= 0], minlength=len(distinct)).tolist()
            found[column] = {value: counts[code] for code, value in enumerate(distinct) if new[code]}
        elif any(new):
            row = int(np.argmax(np.append(new, False)[codes]))
            value = distinct[codes[row]]
            text = f"is not one of the categories {listed(categories)}; "
            raise cols.refused(column, row, value, text, Argument("categories", value, DECLARE))
        return np.array([*(position.get(value, np.nan) for value in distinct), np.nan])[codes]


def _are_whole(x) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # of infinite ones
        return (x == np.floor(x)) | np.isnan(x)


@functools.lru_cache(8)
def numbered(count: int) -> tuple[str, ...]:
    """Return names for columns that have none: x0, x1, ...; equal counts share one tuple."""
    return tuple([f"x{j}" for j in range(count)])


def _nothing(series) -> bool:
    """Return True if a column is of a type that holds nothing but nulls."""
    return series.dtype == nw.Unknown and series.null_count() == len(series)
