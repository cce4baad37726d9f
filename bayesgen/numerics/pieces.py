"""Rows in pieces that stay in the cache, scratch memory, patterns of missing entries, and threads of the BLAS.

The size of a piece is set here alone. Scratch memory is reused, since fresh arrays of a megabyte cost more in page
faults than the work that fills them. Rows with the same entries missing are worked on together. The BLAS gets one
thread where matrices are small.
"""

import contextlib
import functools
import math
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

CELLS = 1 << 19  # entries worked on at a time: 4 MB, which stay in the cache
ROWS = 8192  # rows worked on at a time, at most
DENSITIES = 1 << 20  # log densities held at a time: 8 MB
_LARGEST = 1 << 23  # floats of scratch memory kept for a name, at most: 64 MB
_NARROW, _WIDE = 16, 64  # columns; below, pieces are small enough for one thread; above, a second gains on idle cores

_kept = threading.local()
_lock = threading.Lock()
_inside, _limits = 0, None

# the libraries of a kind that are loaded when they are first asked for: finding them takes longer than small work
_libraries = functools.cache(lambda api: ThreadpoolController().select(user_api=api))


def scratch(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an uninitialised array, which the next call of this name on this thread overwrites; fresh beyond 64 MB."""
    size = math.prod(shape)
    if size > _LARGEST:
        return np.empty(shape)
    memory = vars(_kept).get(name)
    if memory is None or memory.size < size:
        memory = vars(_kept)[name] = np.empty(size)
    return np.ndarray(shape, float, memory)


def pieces(count: int, width: int, cells: int = CELLS, rows: int = ROWS):
    """Return slices that divide ``count`` rows of ``width`` entries so that a piece stays in the cache."""
    step = max(16, min(rows, cells // max(width, 1)))
    starts = range(0, count, step)
    return map(slice, starts, (*starts[1:], count))


def as_columns(rows) -> np.ndarray:
    """Return rows (n, D) as floats (D, n), each column contiguous: a view if they are so already, else scratch."""
    columns = rows.T
    if columns.dtype == float and columns.strides[-1] == columns.itemsize:
        return columns
    result = scratch("columns", columns.shape)
    result[...] = columns
    return result


def product_rows(width: int) -> int:
    """Return the number of rows of a piece in a matrix product of ``width`` multiplications a row.

    OpenBLAS shares a product among threads from 2^18 multiplications on. With short rows it then waits for its threads
    longer than it computes (tenfold on busy cores), so a piece stays below that.
    """
    rows = (1 << 18) // max(width, 1)
    return rows if rows >= 1024 else ROWS


def row_pieces(x):
    """Yield a slice of rows and the rows themselves; CSR, which is small, in one piece."""
    if sparse.issparse(x):
        yield slice(None), x
        return
    for piece in pieces(len(x), math.prod(x.shape[1:])):
        yield piece, x[piece]


def count_rows(x) -> int:
    """Return the number of rows of an array, of CSR, or of a mapping to them."""
    return (next(iter(x.values())) if isinstance(x, Mapping) else x).shape[0]


def select_rows(x, rows) -> Any:
    """Return the rows of a slice or of indices from an array, CSR, or a mapping to them; all rows are x itself."""
    if isinstance(rows, slice) and rows == slice(None):  # of which CSR would make a copy
        return x
    return {name: a[rows] for name, a in x.items()} if isinstance(x, Mapping) else x[rows]


def taken(values, rows):
    """Return some rows of values (n, ...), or None where there are no values."""
    return None if values is None else values[rows]


def split_rows(x, size: int):
    """Yield ``size`` rows at a time of an array, of CSR, or of a mapping to them; anything else stays whole."""
    if not isinstance(x, Mapping) and not hasattr(x, "shape"):
        yield x  # the arguments of a function of the user's own are not rows
        return
    n = count_rows(x)
    for start in range(0, max(n, 1), size):
        yield select_rows(x, slice(start, start + size))


def patterns(observed):
    """Group rows by the entries they have: yield (column indices, row indices) for each pattern in ``observed``."""
    kinds, order, bounds = grouped_patterns(observed)
    for i, kind in enumerate(kinds):
        yield np.flatnonzero(kind), order[bounds[i] : bounds[i + 1]]


def grouped_patterns(observed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the patterns of ``observed`` (n, D) as bools (P, D), rows in their order (n,), and starts (P + 1,)."""
    place = np.zeros(len(observed), np.uint16)
    for first in range(0, observed.shape[1], 16):  # the bits of 16 columns make a number that float32 represents
        bits = observed[:, first : first + 16].astype(np.float32)
        number = (bits @ (2.0 ** np.arange(bits.shape[1], dtype=np.float32))).astype(np.uint16)
        place = number if first == 0 else np.unique((place.astype(np.intp) << 16) + number, return_inverse=True)[1]
    sizes = np.bincount(place)
    order = np.argsort(place.astype(np.min_scalar_type(len(sizes) - 1)), kind="stable")  # 16 bits sort by digits
    bounds = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
    return observed[order[bounds[:-1]]], order, bounds


def blas_threads(dim: int):
    """Return a context for products of pieces of rows with square matrices of ``dim`` columns: one thread, or any.

    At 20 columns and 1e5 rows on busy cores two threads took twelve times the CPU time, and three times as long.
    """
    return one_blas_thread() if _NARROW < dim <= _WIDE else contextlib.nullcontext()


@contextlib.contextmanager
def one_blas_thread():
    """Limit the BLAS of NumPy and SciPy to one thread inside; any number of threads may enter.

    Two BLAS threads wait for each other in a loop: on busy cores a search for a mode of 197 latents took 24 s with them
    (8 of CPU time), and 1.2 s with one. The limit holds for the process, so it is lifted when the last user has left.
    """
    global _inside, _limits
    with _lock:
        if not _inside:
            _limits = _libraries("blas").limit(limits=1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _limits is not None:
                _limits.restore_original_limits()


def one_openmp_thread():
    """Return a context that limits OpenMP, by which scikit-learn boosts trees, to one thread."""
    return _libraries("openmp").limit(limits=1)
