"""Shared functions of the models of counts: factorials, gammas and sums over rows of counts, dense or CSR."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import gammaln

from bayesgen.numerics.checks import LARGEST_COUNT
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.special import log_multichoose
from bayesgen.numerics.sums import finite, with_data

LARGEST_TABLE = 1 << 25  # bytes of a table of terms
LARGEST_INDEX = 1 << 31  # indices up to here are of 32 bits
_AT_ONCE = 1 << 15  # counts looked at at a time, which stay in the cache
_GAMMA = 64  # entries of a table that take as long as one log-gamma ratio in each of some predictions


def whole(x):
    """Return True where an entry is a count 0, 1, 2, ...."""
    return (x >= 0) & (x == np.floor(x)) if x.dtype.kind == "f" else x >= 0


def small(counts) -> np.ndarray | None:
    """Return a vector as int32, or None if an entry is not a whole number from 0 to 2^31 - 1."""
    result = np.empty(len(counts), np.int32)
    with np.errstate(invalid="ignore"):
        for piece in pieces(len(counts), 1, rows=_AT_ONCE):
            converted, values = result[piece], counts[piece]
            np.copyto(converted, values, casting="unsafe")
            if not (converted == values).all() or converted.min() < 0:
                return None
    return result


def distinct(*counts):
    """Return the distinct tuples of counts, an array for each member, and the index of each entry among them.

    Counts are float arrays that broadcast, of whole numbers >= 0.
    """
    key, widths = 0.0, [float(value.max(initial=0)) + 1 for value in counts]
    if math.prod(widths) > LARGEST_COUNT:  # no float64 can encode a tuple: all are taken as distinct
        every = np.broadcast_arrays(*counts)
        return [value.ravel() for value in every], np.arange(every[0].size).reshape(every[0].shape)
    for value, width in zip(counts, widths, strict=True):
        key = key * width + value
    kinds, place = np.unique(key, return_inverse=True)
    parts = []
    for width in reversed(widths):
        kinds, digit = np.divmod(kinds, width)
        parts.insert(0, digit)
    return parts, place.reshape(np.shape(key))


def log_factorials(x):
    """Return the sum of log x! over the last axis of counts, dense or CSR; NaN adds nothing."""
    counts = filled(x)
    return lengths(with_data(x, log_factorial(counts.data)) if sparse.issparse(x) else log_factorial(counts))


def gaps(x):
    """Return a mask of NaN in dense rows, or a CSR array of ones where CSR rows hold one."""
    if not sparse.issparse(x):
        return np.isnan(x)
    if finite(x):
        return sparse.csr_array(x.shape)
    place = np.isnan(x.data)
    indptr = np.concatenate([[0], np.cumsum(place)])[x.indptr]
    return sparse.csr_array((np.ones(indptr[-1]), x.indices[place], indptr), shape=x.shape)


class LogWays:
    """Sums over the entries of rows of counts of log Γ(a + x)/(Γ(a) x!) + x slope, without a gamma where x is small.

    The ratio of gammas is a rising factorial, a (a + 1) ... (a + x - 1). The logs for x = 1, 2, ... of all columns are
    one table, in which count x of column j has row j + columns (x - 1); so the sums of rows are one product of a sparse
    matrix of ones and the table. It grows to counts that are frequent in a prediction, to 32 MB at most; other
    counts take gammas. Counts of 1 are in the table whatever its size. ``a`` and ``slope`` are (groups, columns).
    """

    def __init__(self, a, slope: ArrayLike = 0.0):
        self.a = np.ascontiguousarray(a.T)
        self.slope = np.broadcast_to(np.transpose(slope), self.a.shape)
        nothing = np.zeros((1, self.a.shape[1]))  # the row of entries that the table lacks
        self.table = np.vstack([np.log(self.a) + self.slope, nothing])
        self.most = max(1, LARGEST_TABLE // self.a.nbytes) if self.a.size else 1

    def __call__(self, x) -> np.ndarray:
        """Return the sums of CSR rows, (n, groups); entries are whole numbers >= 0, each written once."""
        place, columns = small(x.data), len(self.a)
        if place is None:  # some are too large for a table
            place = np.minimum(x.data, np.iinfo(np.int32).max).astype(np.int32)
        place -= 1
        table = self.table  # another thread may put a larger one in its place
        table, aside = self._grown(table, place, np.flatnonzero(place.view(np.uint32) >= (len(table) - 1) // columns))
        many = aside[place[aside] >= 0]
        cells = len(table)
        cell = place if cells < LARGEST_INDEX else place.astype(np.int64)
        for piece in pieces(len(cell), 1, rows=_AT_ONCE):
            run = cell[piece]
            run *= columns
            run += x.indices[piece].astype(cell.dtype, copy=False)
        cell[aside] = cells - 1
        indptr = x.indptr.astype(cell.dtype, copy=False)
        result = sparse.csr_array((np.ones(len(cell)), cell, indptr), shape=(x.shape[0], cells)) @ table
        if len(many):
            times, of = x.data[many].astype(float)[:, None], x.indices[many]
            terms = log_multichoose(self.a[of], times) + times * self.slope[of]
            ends = np.searchsorted(many, x.indptr)
            result += sparse.csr_array((np.ones(len(many)), np.arange(len(many)), ends)) @ terms
        return result

    def _grown(self, table, place, aside) -> tuple[np.ndarray, np.ndarray]:
        """Return the table, larger if that pays off and kept for later, and which entries it lacks.

        ``table`` (columns * levels + 1, groups) ends in a row of zeros; ``place`` are counts less 1, so that 0 is -1,
        the largest as an unsigned number; ``aside`` are the places of entries that the table lacks.
        """
        columns = len(self.a)
        levels, above = (len(table) - 1) // columns, place[aside]
        known = np.bincount(above[(above >= 0) & (above < self.most)] - levels)
        gain = np.cumsum(_GAMMA * known - columns)
        if gain.max(initial=0) <= 0:
            return table, aside
        parts = [table[:-1]]
        for x in range(levels + 1, levels + 2 + int(gain.argmax())):
            parts.append(parts[-1][-columns:] + np.log((self.a + (x - 1)) / x) + self.slope)
        self.table = table = np.concatenate([*parts, table[-1:]])
        return table, aside[above.view(np.uint32) >= (len(table) - 1) // columns]


def log_factorial(x):
    """Return log x! of every count, from a table if all counts are small."""
    top = float(x.max(initial=0))  # as a uint8, 255 + 2 would be 1
    if not top < 1 << 12:
        return gammaln(x.astype(float, copy=False) + 1.0)  # float32 has too few digits
    return gammaln(np.arange(1.0, top + 2)).take(x.astype(np.intp))


def lengths(x):
    """Return the sums of counts over the last axis, dense or CSR, exact up to 2**53 also where they are float32.

    >>> lengths(np.array([[1 << 24, 1]], np.float32))
    array([16777217.])
    """
    if sparse.issparse(x):
        return x @ np.ones(x.shape[-1])  # faster than SciPy's sum, which is in the type of the entries
    return x.sum(-1, dtype=float if x.dtype == np.float32 else None)


def filled(x):
    """Return rows, dense or CSR, with 0 for a missing entry, which then adds nothing to a sum."""
    if finite(x):
        return x
    return with_data(x, np.nan_to_num(x.data)) if sparse.issparse(x) else np.nan_to_num(x)
