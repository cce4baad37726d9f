"""Columns as users bring them: how they form a table, and the kinds of their values.

Categories of whole numbers that lie close together are looked up in a table instead of hashed.
"""

import datetime
import decimal
import difflib
import functools
import itertools
import numbers
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.utils import check_array

from bayesgen.core.errors import Argument, InputError, InputTypeError, listed, named
from bayesgen.numerics.checks import LARGEST_COUNT
from bayesgen.numerics.pieces import pieces

FAMILY = {"b": "bernoulli", "f": "gaussian", "O": "categorical"}  # by what a column holds: bools, numbers, labels
_NUMBERS = (numbers.Real, decimal.Decimal, np.number)
_REFUSED = (complex, datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def first_texts(values) -> list[str]:
    """Return the first thousand distinct values of a column as stripped text: enough to tell their kind."""
    return [str(value).strip() for value in itertools.islice(values, 1000)]


def frame_of(X):
    """Return a narwhals DataFrame, or None if X is no DataFrame; refuse a single column."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    if hasattr(X, "to_pandas") and hasattr(X, "dims"):  # an xarray DataArray; its last coordinate names the columns
        X = X.to_pandas() if X.ndim == 2 else X.to_numpy()
    try:
        frame = nw.from_native(X, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        check_distinct(getattr(X, "column_names", X.columns))  # those of pyarrow, and of pandas
        raise
    if isinstance(frame, nw.LazyFrame) and hasattr(X, "collect"):
        raise TypeError(f"X is a {type(X).__module__.split('.')[0]} {type(X).__name__}, not read yet: collect() it")
    if isinstance(frame, nw.LazyFrame) and frame.implementation is nw.Implementation.DUCKDB:
        what = f"a {type(X).__name__} of DuckDB, a query that has not run, whose rows have no order of their own"
        cure = "X.df() reads it; fit_batches(X, target) and predict_batches(X) take it as it is"
        raise TypeError(f"X is {what}: {cure}")
    if isinstance(frame, nw.Series):
        cure = "Reshape your data: X.to_frame() is a table of one column"
        raise ValueError(f"X is a single column, a {type(X).__name__}, where a table is expected. {cure}")
    return frame if isinstance(frame, nw.DataFrame) else None


def check_distinct(names) -> None:
    """Raise an error if two columns have the same name, as it is written."""
    twice = sorted(name for name, count in Counter(map(str, names)).items() if count > 1)
    if twice:
        raise ValueError(f"column names must be distinct; {listed(twice)} appear more than once: rename all but one")


def check_same(names: Iterable[str], first: Iterable[str], source) -> None:
    """Raise an error unless rows have the columns of the first rows, which came from a ``source``."""
    present, wanted = set(names), set(first)
    if present != wanted:
        lacks, more = sorted(wanted - present), sorted(present - wanted)
        faults = [f"lacks {listed(lacks)}"] * bool(lacks) + [f"has besides {listed(more)}"] * bool(more)
        raise ValueError(f"its columns are not those of {source}: it {' and '.join(faults)}")


def nearest_first(name: str, names: Iterable[str]) -> list[str]:
    """Return names in their order, but for the three that are spelled most as ``name``, which come first.

    >>> nearest_first("Cens", ["age", "cens", "time"])
    ['cens', 'age', 'time']
    """
    names = list(names)
    near = difflib.get_close_matches(name.casefold(), [str(one).casefold() for one in names])
    return sorted(names, key=lambda one: near.index(low) if (low := str(one).casefold()) in near else len(near))


def check_named(column: str, columns, *option: str | Argument) -> None:
    """Raise an error if a column that the user names, in an ``option``, is not among the columns of a table."""
    if column not in columns:
        raise InputError(*option, f"no column {column!r}; there are: {named(nearest_first(column, columns))}")


def check_present(names, there) -> None:
    """Raise an error if a table lacks one of the columns ``names``; ``there`` are those that it has."""
    if absent := [name for name in names if name not in there]:
        raise ValueError(f"lacks the columns {listed(absent)}; it has {listed(there)}")


def dense(X):
    """Return a DataFrame of pandas with its sparse columns, whose zeros are values like others, written out."""
    if type(X) is not pd.DataFrame or not any([isinstance(dtype, pd.SparseDtype) for dtype in X.dtypes.array]):
        return X
    return X.astype({c: d.subtype for c, d in X.dtypes.items() if isinstance(d, pd.SparseDtype)})


def block_of(X) -> np.ndarray | None:
    """Return the rows of a pandas DataFrame of NumPy numbers of one type, mostly as a view; else None."""
    if not isinstance(X, pd.DataFrame) or not X.size or not X.columns.is_unique:
        return None
    first, *others = set(X.dtypes.array)
    same = not others and isinstance(first, np.dtype) and first.kind in "biuf"
    return X.to_numpy() if same else None


def array_of(X: Any) -> np.ndarray:
    """Return a 2-D array, None or NaN where something is missing; numbers stay numbers beside strings."""
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf" and X.size:
        return X  # nothing of it is left to check
    if np.ma.isMaskedArray(X):
        numbers = X.dtype.kind == "f" or (X.dtype.kind in "iu" and bool((abs(X.astype(float)) < LARGEST_COUNT).all()))
        gap: Any = np.nan if numbers else None
        X = np.where(np.ma.getmaskarray(X), gap, X.data if numbers else X.data.astype(object))
    elif not isinstance(X, np.ndarray):
        try:
            array = np.asarray(X)
        except ValueError:
            raise ValueError("X is no table: its rows differ in length, or some of its entries are lists") from None
        if array.dtype == object and isinstance(array.flat[0] if array.size else None, Mapping):
            raise TypeError("X holds mappings from names to values; pandas.DataFrame(X) makes a table of it")
        X = np.asarray(X, dtype=object) if array.dtype.kind in "US" and isinstance(X, list | tuple) else array
    if X.dtype.names is not None:
        raise TypeError("X is a structured array; pandas.DataFrame(X) makes a table of it")
    X = check_array(X, dtype=None, ensure_all_finite=False)  # pyright: ignore[reportArgumentType]  # no stubs
    if X.dtype.kind in "mMV":
        raise TypeError(f"X holds {X.dtype}, which no feature model takes; convert it to numbers or to categories")
    return X


def refused(column, row: int, value, *text: str | Argument) -> InputError:
    """Return the error on an entry of a column, whose text begins with both and the row."""
    return InputError(f"column {column!r}: {value!r} in row {row} ", *text, column=column, row=row, value=value)


def refuse(column, kind) -> NoReturn:
    """Raise an error for a column whose type is neither a number nor a category."""
    # in words that scikit-learn's checks ask for: "argument must be a string or a number"
    wanted = "each entry of this argument must be a string, a number or a bool: convert the column, or drop it"
    cure = f"naive Bayes takes features={{{column!r}: 'date'}} for dates, and 'drop'"
    text = f"column {column!r} holds {kind}, which no feature model takes; {wanted}; {cure}"
    raise InputTypeError(text, column=column, kind=str(kind))


def object_kind(values) -> str:
    """Return the kind of an array of objects: "b" bools, "f" numbers, "O" labels, else the type that no model takes."""
    kinds = set(map(type, values[~pd.isna(values)]))
    for kind in kinds:
        if kind.__hash__ is None or (issubclass(kind, _REFUSED) and not issubclass(kind, float)):
            return f"{kind.__name__} values"
    if kinds and all(issubclass(k, bool | np.bool_) for k in kinds):
        return "b"
    return "f" if kinds and all(issubclass(k, _NUMBERS) for k in kinds) else "O"


def to_float(values, column) -> np.ndarray:
    """Convert an array of objects to floats; raise an error where one is no number."""
    missing = pd.isna(values)
    result = np.full(len(values), np.nan)
    text = a_word(values[~missing])
    try:
        if text is not None:
            raise ValueError
        result[~missing] = values[~missing].astype(float)
    except ValueError:
        problem = f"column {column!r} holds {text!r}, which is not a number; convert it or drop it, or take "
        cure = Argument("features", "categorical", "declare it categorical")
        raise InputError(problem, "naive Bayes and ", cure, column=column, value=text) from None
    except OverflowError:  # an int of Python
        raise InputError(f"column {column!r} holds a number beyond 1.8e308: mend it", column=column) from None
    except TypeError as error:
        raise InputTypeError(f"column {column!r}: {error}", column=column) from None
    return result


def a_word(values) -> Any:
    """Return the first text among values that is no number, else the first text; None where there is none."""
    texts = (v for v in values if isinstance(v, str | bytes))
    first = next(texts, None)
    return first if first is None or not is_number(first) else next((v for v in texts if not is_number(v)), first)


def is_number(text) -> bool:
    """Return True if Python reads some text as a float, of the digits 0 to 9 alone: 1_000 is text."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in str(text)


def joined_levels(a: tuple, b: tuple) -> tuple:
    """Merge two tuples of levels: in their own order where one has all of the other's, else sorted."""
    if len(a) < len(b):
        a, b = b, a
    both = set(a).union(b)
    return a if len(both) == len(a) else sorted_levels(both)


def declared_levels(series) -> tuple | None:
    """Return the levels that the type of a narwhals Series declares, unused ones too; None where it declares none."""
    if hasattr(series.dtype, "categories"):
        return tuple(series.dtype.categories)
    native = series.to_native()
    if series.implementation.is_pandas() and hasattr(native, "cat"):
        return tuple(native.cat.categories.tolist())
    arrow: Any = native
    if hasattr(getattr(native, "dtype", None), "pyarrow_dtype"):  # a pandas Series of an Arrow type
        arrow = native.array.__arrow_array__()
    if not hasattr(getattr(arrow, "type", None), "index_type"):  # that of a dictionary
        return None
    found: tuple = ()
    for chunk in arrow.chunks:
        found = joined_levels(found, tuple(v for v in chunk.dictionary.to_pylist() if v is not None))
    return found


def sorted_levels(levels) -> tuple:
    """Sort distinct values, each code once, grouped by type where the types have no order among them.

    >>> sorted_levels({"2", "1", "1.0", "01"})
    ('01', '1', '2')
    """
    levels = list(levels)
    try:
        result = tuple(sorted(levels))
    except TypeError:
        result = tuple(sorted(levels, key=lambda v: (type(v).__name__, str(v))))
    if not any(isinstance(level, str) and level[-1:].isdecimal() for level in result):
        return result
    first: dict[Any, Any] = {}
    for level in result:
        first.setdefault(code_of(level), level)
    return tuple(first.values())


_CODE = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?$")


def code_of(label) -> Any:
    """Return the number that a code stands for, the same for 1, 1.0, "1" and "1.0"; "01", "+1" and "1e0" stay text."""
    if isinstance(label, bool | np.bool_):
        return str(label)
    if isinstance(label, str):
        if not _CODE.match(label):
            return label
        whole, _, fraction = label.partition(".")
        return float(label) if fraction.strip("0") else int(whole)
    return label


def twins(categories, values) -> dict[Any, float]:
    """Return the place of the values that are one code with a category, and with one alone, by another spelling.

    >>> twins(("1", "01", "b"), [1, "1.0", "001"])
    {1: 0.0, '1.0': 0.0}
    """
    places: dict[Any, list[float]] = {}
    for place, label in enumerate(categories):
        places.setdefault(code_of(label), []).append(float(place))
    known = set(categories)
    found = ((value, places.get(code_of(value), ())) for value in values if value not in known)
    return {value: place[0] for value, place in found if len(place) == 1}


def factorize(values, column) -> tuple[np.ndarray, list]:
    """Return the code of each value, -1 where missing, and the distinct values in the order of their codes."""
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        levels = values.array.categories.tolist()
        if all(type(level) is str for level in levels):
            codes, there = values.array.codes.astype(np.intp), np.zeros(len(levels) + 1, bool)
            there[codes] = True  # the last where some are missing
            place = np.append(np.cumsum(there[:-1]) - 1, -1)  # among the levels that some value has
            return codes if there[:-1].all() else place[codes], [*itertools.compress(levels, there)]
    try:
        codes, found = pd.factorize(values)
    except TypeError as error:
        raise InputTypeError(
            f"column {column!r} holds values that cannot be categories: {error}", column=column
        ) from None
    distinct = np.asarray(found)
    if distinct.dtype.kind == "f":
        if np.isinf(distinct).any():
            text = f"column {column!r} holds an infinite value; give NaN where it is missing"
            raise InputError(text, column=column, value=np.inf)
        if (distinct == np.floor(distinct)).all():  # 1.0 beside a gap is the category 1; no int64 holds 1e19
            return codes, [int(v) if abs(v) <= LARGEST_COUNT else v for v in distinct.tolist()]
    return codes, distinct.tolist()


def over_rows(function, values) -> np.ndarray:
    """Reduce an array (n, D) over its rows; of contiguous rows many are taken side by side, as NumPy is fast at."""
    count = max(1, 1024 // values.shape[1])
    whole = len(values) // count * count
    if not whole or not values.flags.c_contiguous:
        return function.reduce(values, 0)
    many = function.reduce(values[:whole].reshape(-1, count * values.shape[1]), 0)
    return function.reduce(np.concatenate([many.reshape(count, -1), values[whole:]]), 0)


def edges_of(values) -> np.ndarray:
    """Return the least and the greatest entry of each column of numbers (n, D), as (2, D); NaN where there is none."""
    if not len(values):
        return np.full((2, values.shape[1]), np.nan)
    return np.array([over_rows(np.fmin, values), over_rows(np.fmax, values)])


class Levels:
    """Values of an array (n, D) of whole numbers, looked up in a table instead of hashed: a few passes for all columns.

    A cell stands for each number between the least and the largest of a column; columns have their cells in a row.
    """

    WIDEST = 1 << 12  # between the least and the largest number of a column

    def __init__(self, values):
        self.values, self.low, high = values, over_rows(np.minimum, values), over_rows(np.maximum, values)
        high = high.astype(object)  # their distance may be more than 64 bits hold
        self.width = np.minimum(high - self.low.astype(object) + 1, self.WIDEST + 1).astype(np.intp)
        self.first = np.cumsum(self.width) - self.width

    def _cells(self, places):
        """Yield the rows of a piece, and the cells of their values."""
        wide = np.uint64 if self.values.dtype.kind == "u" and self.values.dtype.itemsize == 8 else np.intp
        shift = (self.first.astype(wide) - self.low.astype(wide))[places]
        every = len(places) == self.values.shape[1]
        for piece in pieces(len(self.values), len(places), 1 << 16):
            rows = self.values[piece] if every else self.values[piece, places]
            yield piece, (rows + shift).view(np.intp)  # of 64 bits without a sign the sum wraps around to the cell

    @functools.cached_property
    def present(self) -> np.ndarray:
        """Mask of the cells that hold a value; the search ends once every cell does."""
        present = np.zeros(int(self.width.sum()), bool)
        for _, cells in self._cells(np.arange(len(self.low))):
            present |= np.bincount(cells.ravel("K"), minlength=len(present)) > 0
            if present.all():
                break
        return present

    def categories(self, place: int) -> tuple:
        """Return the distinct values of a column, in order."""
        cells = self.present[self.first[place] : self.first[place] + self.width[place]]
        low = int(self.low[place])  # one of Python, for the sum may lie beyond 2^63
        return tuple(low + cell for cell in np.flatnonzero(cells).tolist())

    def codes(self, places, categories) -> np.ndarray | None:
        """Return the code of each value, (n, columns), in few bytes; None where some value is no category."""
        within = (self.low[places] >= 0) & (self.low[places] + self.width[places] <= len(categories))
        if categories == tuple(range(len(categories))) and within.all():
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
