"""Rows in pieces that stay in the cache: the one place that says how large a piece is."""

import math
from collections.abc import Mapping

import numpy as np
from scipy import sparse

from bayesgen.numerics.scratch import scratch

CELLS = 1 << 19  # entries worked on at a time: 4 MB, which stay in the cache
ROWS = 8192  # and rows at most
DENSITIES = 1 << 20  # log densities held at a time: 8 MB


def pieces(count: int, width: int, cells: int = CELLS, rows: int = ROWS):
    """Yield slices that divide ``count`` rows of ``width`` entries so that a piece stays in the cache."""
    step = max(16, min(rows, cells // max(width, 1)))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def as_columns(rows) -> np.ndarray:
    """Rows (n, D) as (D, n) floats, each column a run in memory: a view where they are that already, else scratch."""
    columns = rows.T
    if columns.dtype == float and columns.strides[-1] == columns.itemsize:
        return columns
    result = scratch("columns", columns.shape)
    result[...] = columns
    return result


def product_rows(width: int) -> int:
    """How many rows a piece has in a matrix product of ``width`` multiplications a row.

    OpenBLAS shares a product among threads from 2^18 multiplications on. Where rows are short it then waits for its
    threads longer than it computes (tenfold where the cores are busy), so a piece stays below that.
    """
    rows = (1 << 18) // max(width, 1)
    return rows if rows >= 1024 else ROWS


def sparse_pieces(x, cells: int = 1 << 16):
    """Yield slices of CSR rows with some 2^16 entries each."""
    return pieces(x.shape[0], max(1, x.nnz // max(x.shape[0], 1)), cells, x.shape[0])


def row_pieces(x):
    """Yield a slice of rows and the rows themselves; CSR, which is small, in one piece."""
    if sparse.issparse(x):
        yield slice(None), x
        return
    for piece in pieces(len(x), math.prod(x.shape[1:])):
        yield piece, x[piece]


def count_rows(x) -> int:
    """Count the rows of an array, of CSR, or of a mapping to them."""
    return (next(iter(x.values())) if isinstance(x, Mapping) else x).shape[0]


def select_rows(x, rows):
    """Select rows, by a slice or by places, of an array, of CSR, or of a mapping to them."""
    return {name: a[rows] for name, a in x.items()} if isinstance(x, Mapping) else x[rows]


def split_rows(x, size: int):
    """Yield ``size`` rows at a time of an array, of CSR, or of a mapping to them; what is neither stays whole."""
    if not isinstance(x, Mapping) and not hasattr(x, "shape"):
        yield x  # the arguments of a function of the user's own are not rows
        return
    n = count_rows(x)
    for start in range(0, max(n, 1), size):
        yield select_rows(x, slice(start, start + size))
