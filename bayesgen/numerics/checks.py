"""Checks of arguments, and of the rows that models take.

Rows become arrays of numbers or canonical CSR, and the first entry that a model cannot take is refused by its place.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesgen.core.errors import Argument, DataError, shortened
from bayesgen.numerics.pieces import pieces

_OFF, _EXACT = 1e-6, 1e-12  # by which a sum of shares may miss 1, and does where it is 1
LARGEST_COUNT = 2.0**53  # up to here float64 represents every whole number


def check_count(name: str, value, least: int = 1) -> None:
    """Raise ValueError unless ``value`` is a whole number, ``least`` or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    if value >= 2**63:
        raise ValueError(f"{name} must be a whole number below 2^63, got {shortened(repr(value))}")


def check_flag(name: str, value) -> None:
    """Raise TypeError unless ``value`` is a bool, since the text "false" is true to Python."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_kind(name: str, value, kind: type | tuple[type, ...], words: str) -> None:
    """Raise TypeError unless ``value`` is of a kind, or one of several, which ``words`` call by name."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {words}, got a {type(value).__name__}")


def check_level(name: str, value) -> None:
    """Raise ValueError unless ``value`` is one probability strictly between 0 and 1."""
    if isinstance(value, bool | str) or np.ndim(value) or not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")


def check_positive(name: str, value) -> None:
    """Raise TypeError or ValueError unless ``value`` is one finite number > 0."""
    if isinstance(value, str | bytes | bool | None) or np.asarray(value).dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number, got {value!r}")
    if np.ndim(value) or not 0 < value < np.inf:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")


def check_shares(name: str, values, kind: Any = None) -> NDArray[np.float64]:
    """Return probabilities that sum to 1 along the last axis; raise unless they do within the rounding of their type.

    ``kind`` is the type in which they were given, by default that of ``values``: a sum of float16 may miss 1 by 1e-3,
    others 1e-6.
    """
    array = np.asarray(values)
    kind = np.dtype(array.dtype if kind is None else kind)
    off = max(_OFF, float(np.finfo(kind).eps)) if kind.kind == "f" else _OFF
    try:
        array = array.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must hold numbers, got {array.dtype} values") from None
    total = array.sum(-1, keepdims=True)
    if not (array >= 0).all() or not (np.abs(total - 1) <= off).all():
        wrong = total[np.abs(total - 1) > off] if (array >= 0).all() else array[~(array >= 0)]
        what = f"they sum to {wrong[0]:.6g}" if (array >= 0).all() else f"one is {wrong[0]:g}"
        raise ValueError(f"{name} must hold finite probabilities >= 0 that sum to 1; {what}")
    return array / total if (np.abs(total - 1) > _EXACT).any() else array


def check_weight(weight, count: int, name: str = "weight") -> NDArray[np.float64] | None:
    """Return the weights of ``count`` rows as floats (None stays None); raise unless all are finite and >= 0."""
    if weight is None:
        return None
    if np.ma.is_masked(weight):
        raise ValueError(f"{name} has masked entries; give a row that does not count the weight 0")
    try:
        found = np.asarray(weight)
        weight = found.astype(float, casting="safe" if found.dtype.kind in "cM" else "unsafe", copy=False)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must hold numbers, got {np.asarray(weight).dtype} values") from None
    if weight.shape != (count,) or not (weight >= 0).all() or not np.isfinite(weight).all():
        raise ValueError(f"{name} must hold one finite number >= 0 for each of the {count} rows")
    if weight.sum() > LARGEST_COUNT:
        raise ValueError(f"{name} sums to {weight.sum():.3g} rows, more than float64 counts (2^53); scale it down")
    return weight


def dense_rows(x: Any, owner: str, axes: int) -> np.ndarray:
    """Return dense rows with ``axes`` axes or more as an array of numbers, NaN where missing."""
    x = np.asarray(np.ma.filled(x.astype(float), np.nan) if np.ma.isMaskedArray(x) else x)
    if x.dtype.kind not in "biuf":
        try:
            if x.dtype.kind != "O":  # strings, dates and complex numbers would convert, but to other values
                raise TypeError
            x = x.astype(float)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{owner} takes numbers, got {x.dtype} values") from None
    if x.dtype.itemsize > 8:  # no linear algebra takes long doubles
        x = x.astype(float)
    if x.ndim < axes:
        raise DataError(f"expected an array of rows with {axes} axes or more, got shape {x.shape}")
    return x


def sparse_rows(x: Any, owner: str, taken: bool) -> sparse.csr_array:
    """Return sparse rows in canonical CSR, copied only if need be; raise TypeError unless they are ``taken``."""
    if not taken:
        raise TypeError(
            f"{owner} takes dense rows, got a sparse {type(x).__name__}; give it x.toarray(), or model counts and bits "
            "by GammaPoisson, DirichletMultinomial or BetaBernoulli, which take sparse rows"
        )
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise TypeError(f"{owner} takes sparse rows (n, columns) of numbers, got {x.dtype} {x.shape}")
    rows = x if isinstance(x, sparse.csr_array) else sparse.csr_array(x)  # a csr_array remembers that it is canonical
    if not rows.has_canonical_format:  # some entry is stored in parts
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def require(x, good, *problem: str | Argument) -> None:
    """Raise a `DataError` for the first entry that is neither ``good`` nor NaN, piece by piece of the rows."""
    values = x.data if sparse.issparse(x) else x
    for piece in pieces(len(values), math.prod(values.shape[1:]), 1 << 17, 1 << 17):
        right = good(values[piece])
        if right.all():
            continue
        right |= np.isnan(values[piece])
        if right.all():
            continue
        if not sparse.issparse(x):
            refuse_first(x[piece], ~right, *problem, start=piece.start)
        i = piece.start + int(right.argmin())
        row, place = int(np.searchsorted(x.indptr, i, "right")) - 1, int(x.indices[i])
        raise DataError(f"value {values[i]:g} in row {row} ", *problem, feature=place, row=row, value=values[i])


def refuse_first(x, bad, *problem: str | Argument, start: int = 0) -> None:
    """Raise a `DataError` for the first entry where ``bad`` is true; ``x`` begins with row ``start``."""
    row, *place = np.argwhere(bad)[0]
    value = x[row, *place]
    row, feature = int(start + row), place[-1] if place else None
    raise DataError(f"value {value:g} in row {row} ", *problem, feature=feature, row=row, value=value)
