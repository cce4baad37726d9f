"""Rows that models are given: as arrays of numbers or canonical CSR, and the entries that a model cannot take."""

import math
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.errors import DataError
from bayesgen.numerics.pieces import pieces


def dense_rows(x: Any, owner: str, axes: int) -> np.ndarray:
    """Return dense rows with ``axes`` axes or more as an array of numbers, NaN where missing."""
    x = np.asarray(np.ma.filled(x.astype(float), np.nan) if np.ma.isMaskedArray(x) else x)
    if x.dtype.kind not in "biuf":
        try:
            if x.dtype.kind != "O":  # strings, dates and complex numbers would convert, to something else
                raise TypeError
            x = x.astype(float)
        except (TypeError, ValueError):
            raise TypeError(f"{owner} takes numbers, got {x.dtype} values") from None
    if x.dtype.itemsize > 8:  # no linear algebra takes long doubles
        x = x.astype(float)
    if x.ndim < axes:
        raise DataError(f"expected an array of rows with {axes} axes or more, got shape {x.shape}")
    return x


def sparse_rows(x: Any, owner: str, taken: bool) -> sparse.csr_array:
    """Return sparse rows in canonical CSR, without a copy where they are that already, if sparse ones are ``taken``."""
    if not taken:
        raise TypeError(
            f"{owner} takes dense rows, got a sparse {type(x).__name__}; give it x.toarray(), or model counts and bits "
            "by GammaPoisson, DirichletMultinomial or BetaBernoulli, which take sparse rows"
        )
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise TypeError(f"{owner} takes sparse rows (n, columns) of numbers, got {x.dtype} {x.shape}")
    rows = x if isinstance(x, sparse.csr_array) else sparse.csr_array(x)  # which remembers that it is canonical
    if not rows.has_canonical_format:  # an entry stored in parts
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def require(x, good, problem: str) -> None:
    """Raise for the first entry that is neither ``good`` nor NaN, looking at a piece of the rows at a time."""
    values = x.data if sparse.issparse(x) else x
    for piece in pieces(len(values), math.prod(values.shape[1:]), 1 << 17, 1 << 17):
        right = good(values[piece])
        if right.all():
            continue
        right |= np.isnan(values[piece])
        if right.all():
            continue
        if not sparse.issparse(x):
            refuse_first(x[piece], ~right, problem, piece.start)
        i = piece.start + int(right.argmin())
        row, place = int(np.searchsorted(x.indptr, i, "right")) - 1, int(x.indices[i])
        raise DataError(f"value {values[i]:g} in row {row} {problem}", feature=place)


def refuse_first(x, bad, problem: str, start: int = 0) -> None:
    """Raise for the first entry where ``bad``; ``x`` begins with row ``start``."""
    row, *place = np.argwhere(bad)[0]
    value = x[row, *place]
    raise DataError(f"value {value:g} in row {start + row} {problem}", feature=place[-1] if place else None)
