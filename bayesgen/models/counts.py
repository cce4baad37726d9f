"""What the models of counts share: factorials, gammas and sums over rows of counts, dense or CSR."""

import math

import numpy as np
from scipy import sparse
from scipy.special import betaln, gammaln

from bayesgen.statistics import finite, pieces, sparse_pieces, with_data

_LEVELS = 8  # counts up to here are looked up, in a table of
_CELLS = 1 << 23  # at most so many cells, where that is more than one count


def whole(x):
    """Which entries are counts 0, 1, 2, ...."""
    return (x >= 0) & (x == np.floor(x)) if x.dtype.kind == "f" else x >= 0


def rows_of(x):
    """Slices of rows, dense or CSR."""
    return sparse_pieces(x) if sparse.issparse(x) else pieces(len(x), math.prod(x.shape[1:]))


def spectrum(counts):
    """How often each count below 4096 occurs in a vector; None where an entry is not such a count."""
    result = np.zeros(1 << 12, np.intp)
    for piece in pieces(len(counts), 1, rows=1 << 15):
        with np.errstate(invalid="ignore"):
            whole_part = counts[piece].astype(np.intp)
        right = whole_part.min() >= 0 and whole_part.max() < len(result)
        if not right or not (counts.dtype.kind != "f" or (whole_part == counts[piece]).all()):
            return None
        result += np.bincount(whole_part, minlength=len(result))
    return result


def log_factorials(x, weight=None):
    """Weighted sum of log x! over rows of counts, dense or CSR; NaN counts nothing."""
    values = log_factorial(np.nan_to_num(x.data if sparse.issparse(x) else x))
    if weight is None:
        return values.sum()
    return weight @ (with_data(x, values) if sparse.issparse(x) else values).sum(1)


def missing(x):
    """Where CSR rows hold a NaN, as ones in CSR."""
    if finite(x.data):
        return sparse.csr_array(x.shape)
    place = np.isnan(x.data)
    indptr = np.concatenate([[0], np.cumsum(place)])[x.indptr]
    return sparse.csr_array((np.ones(indptr[-1]), x.indices[place], indptr), shape=x.shape)


def log_ways(a, rows, slope=0.0):
    """Return a function of counts in CSR, all > 0: Σ log Γ(a + x)/(Γ(a) x!) + x slope over a row, (n, groups).

    Where there are many, counts up to 8 are looked up in a table of every column and count, (8 columns, groups): one
    sparse product, with the place in the table as column.

    Parameters
    ----------
    a, slope : array, shape (groups, columns)
        Hyperparameters.
    rows : array or CSR
        All the rows whose counts the function will be given.
    """
    groups, columns = a.shape
    values = rows.data if sparse.issparse(rows) else rows
    levels = 0
    if values.size * groups > a.size:
        levels = int(min(_LEVELS, np.fmax.reduce(values, axis=None, initial=0), max(1, _CELLS // a.size)))
    table, total = np.empty((levels, columns, groups)), np.zeros((columns, groups))
    for i in range(levels):
        total += np.log(a.T + i)
        total += np.transpose(slope) - np.log(i + 1)
        table[i] = total
    table, slope = table.reshape(-1, groups), np.broadcast_to(slope, a.shape)

    def ways(x):
        many = x.data > levels
        found, result = np.ones(x.nnz), np.zeros((x.shape[0], groups))
        if levels:
            place = x.data.astype(x.indices.dtype)
            place -= 1
            if many.any():
                place[many], found[many] = 0, 0.0
            place *= columns
            place += x.indices
            result += sparse.csr_array((found, place, x.indptr), (x.shape[0], len(table))) @ table
        if many.any():
            row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))[many]
            times, column = x.data[many], x.indices[many]
            for k in range(groups):
                terms = log_multichoose(a[k, column], times) + times * slope[k, column]
                result[:, k] += np.bincount(row, terms, x.shape[0])
        return result

    return ways


def log_factorial(x):
    """Log x! of every count; looked up where counts are small."""
    top = float(x.max(initial=0))  # of a uint8 255 + 2 would be 1
    if not top < 1 << 12:
        return gammaln(x + 1.0)
    return gammaln(np.arange(1.0, top + 2))[x.astype(np.intp)]


def positive(x):
    """Counts in CSR without what is missing or 0, which have no part in a sum of gammas; ``x`` dense or CSR."""
    rows = sparse.csr_array(x)
    if all((rows.data[piece] > 0).all() for piece in pieces(rows.nnz, 1)):
        return rows
    rows = with_data(rows, np.nan_to_num(rows.data)).copy()
    rows.eliminate_zeros()
    return rows


def log_multichoose(a, x):
    """Log of Γ(a + x)/(Γ(a) x!), the coefficient of every counting predictive; by B(a, x + 1), which cancels less."""
    return -np.log(a + x) - betaln(a, x + 1.0)
