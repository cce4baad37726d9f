"""Shared functions of the models of counts: factorials, gammas and sums over rows of counts, dense or CSR."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import gammaln

from bayesgen.numerics.checks import LARGEST_COUNT
from bayesgen.numerics.special import log_multichoose
from bayesgen.numerics.sums import finite, with_data

_LEVELS = 24  # counts up to here have their terms in a table


def whole(x):
    """Return True where an entry is a count 0, 1, 2, ...."""
    return (x >= 0) & (x == np.floor(x)) if x.dtype.kind == "f" else x >= 0


def others(counts):
    """Return indices and values of the entries of a vector that are not 1; most counts of words are 1."""
    places = np.flatnonzero(counts != 1)
    return places, counts[places]


def spectrum(counts, apart=None):
    """Return how often each count below 4096 occurs in a vector, or None if an entry is not such a count.

    ``apart`` holds the values of its `others`, if they are known.
    """
    values = others(counts)[1] if apart is None else apart
    with np.errstate(invalid="ignore"):
        known = values.astype(np.intp)
    if known.min(initial=0) < 0 or known.max(initial=0) >= 1 << 12 or not (known == values).all():
        return None
    result = np.bincount(known, minlength=1 << 12)
    result[1] += len(counts) - len(values)
    return result


def distinct(*counts):
    """Return the distinct tuples of counts, one array per member of a tuple, and the index of each entry among them.

    Parameters
    ----------
    counts : float arrays that broadcast
        Whole numbers >= 0.
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
        kinds, part = np.divmod(kinds, width)
        parts.insert(0, part)
    return parts, place.reshape(np.shape(key))


def log_factorials(x, weight=None):
    """Return the weighted sum of log x! over rows of counts, dense or CSR; NaN adds nothing."""
    counts = x.data if sparse.issparse(x) else x
    values = log_factorial(counts if finite(counts) else np.nan_to_num(counts))
    if weight is None:
        return values.sum()
    return weight @ (with_data(x, values) if sparse.issparse(x) else values).sum(1)


def stored_gaps(x):
    """Return a CSR array of ones where the CSR rows ``x`` hold a NaN."""
    if finite(x.data):
        return sparse.csr_array(x.shape)
    place = np.isnan(x.data)
    indptr = np.concatenate([[0], np.cumsum(place)])[x.indptr]
    return sparse.csr_array((np.ones(indptr[-1]), x.indices[place], indptr), shape=x.shape)


def log_ways(a, slope: ArrayLike = 0.0):
    """Return a function of counts in CSR, and of their `others`: Σ log Γ(a + x)/(Γ(a) x!) + x slope, (n, groups).

    A count of 1 gives log a, so the product of the rows with log a + slope lacks only a term for each count above 1:
    log Γ(a + x)/(Γ(a) x! a^x) = Σ_{0<i<x} log(1 + i/a) - log x!, from a table for counts up to 24.

    Parameters
    ----------
    a, slope : array, shape (groups, columns)
        Hyperparameters.
    """
    a, groups = a.T, len(a)
    log_a, slope = np.log(a), np.transpose(slope)
    linear = np.ascontiguousarray(log_a + slope)

    def ways(x, found=None):
        above, count = others(x.data) if found is None else found
        column = x.indices[above]
        several = np.zeros(len(a), bool)
        several[column] = True
        place, own = np.cumsum(several) - 1, a[several]
        levels = int(min(count.max(initial=1), _LEVELS))
        table = np.zeros((levels + 1, *own.shape))
        for i in range(2, levels + 1):
            table[i] = table[i - 1] + np.log1p((i - 1) / own) - np.log(i)
        many = count > levels  # their terms would cancel against x log a
        cell = np.where(many, 0, count).astype(np.intp) * len(own) + place[column]
        terms = np.zeros((len(above) + 1, groups))  # one extra, so that no row begins beyond them
        table.reshape(-1, groups).take(cell, 0, out=terms[:-1], mode="clip")
        if many.any():
            times, of = count[many][:, None], column[many]
            terms[:-1][many] = log_multichoose(a[of], times) + times * np.broadcast_to(slope, a.shape)[of]
            small = x.data.copy()
            small[above[many]] = 0
            x = with_data(x, small)
        ends = np.searchsorted(above, x.indptr)
        result = np.add.reduceat(terms, ends[:-1])
        result[ends[1:] == ends[:-1]] = 0.0
        result += x @ linear
        return result

    return ways


def log_factorial(x):
    """Return log x! of every count, from a table if all counts are small."""
    top = float(x.max(initial=0))  # as a uint8, 255 + 2 would be 1
    if not top < 1 << 12:
        return gammaln(x + 1.0)
    return gammaln(np.arange(1.0, top + 2))[x.astype(np.intp)]


def filled(x):
    """Return counts, dense or CSR, as CSR with 0 for a missing one, which then adds nothing to a sum of gammas."""
    rows = x if sparse.issparse(x) else sparse.csr_array(x)
    return rows if finite(rows.data) else with_data(rows, np.nan_to_num(rows.data))
