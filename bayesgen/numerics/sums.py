"""Sums of rows by group, dense or sparse: what every model's statistics are made of."""

import numpy as np
from scipy import sparse


def finite(x) -> bool:
    """Whether all is finite, in one read without a copy: a sum keeps any NaN or infinity. May err towards False."""
    with np.errstate(over="ignore", invalid="ignore"):
        return x.dtype.kind != "f" or bool(np.isfinite(x.sum()))


def membership(group, groups: int, weight=None, dtype=float):
    """Sparse matrix (groups, n) of weights at each row's group; times rows it is their sum by group, in one pass."""
    data = np.ones(len(group), dtype) if weight is None else weight
    return sparse.csc_array((data, group, np.arange(len(group) + 1)), shape=(groups, len(group)))


def grouping(count: int, group, groups) -> tuple[np.ndarray, int, tuple[int, ...]]:
    """Codes and number of groups, where no groups are one group; the shape in front of the result."""
    if group is None:
        return np.zeros(count, np.intp), 1, ()
    codes = np.asarray(group)
    if groups is None:
        raise ValueError("give groups=, the number of groups, with group=")
    if codes.shape != (count,) or (
        count and (codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= groups)
    ):
        raise ValueError(f"group must hold one whole number from 0 to {groups - 1} for each of the {count} rows")
    return codes, groups, (groups,)


def weights_of(codes, groups: int, weight=None):
    """Sum of weights (without: number of rows) of each group."""
    return np.bincount(codes, weight, groups).astype(float)


def with_data(x, data):
    """Sparse rows with the entries of ``x`` and other values."""
    return sparse.csr_array((data, x.indices, x.indptr), shape=x.shape)


def sparse_sum(x, codes, groups: int, weight=None, values=None, cells: int = 1 << 21):
    """Sum CSR rows (n, columns) by group: a dense (groups, columns), in one pass over what is stored.

    ``values`` replace the stored ones. A few groups are a product with their members; many would touch too much memory
    at every entry, so there each entry adds to its own cell.
    """
    x = x if values is None else with_data(x, values)
    total, step = np.zeros((groups, x.shape[1])), max(1, cells // groups)
    if groups > 4:
        step = max(1, int(cells * x.shape[0] / max(x.nnz, 1)))
    for start in range(0, x.shape[0], step):
        rows = slice(start, min(start + step, x.shape[0]))
        w = np.ones(rows.stop - start) if weight is None else weight[rows]
        if groups > 4:
            stored, length = slice(x.indptr[start], x.indptr[rows.stop]), np.diff(x.indptr[start : rows.stop + 1])
            cell = np.repeat(codes[rows] * x.shape[1], length)
            cell += x.indices[stored]
            data = x.data[stored] if weight is None else x.data[stored] * np.repeat(w, length)
            total += np.bincount(cell, data, total.size).reshape(total.shape)
        else:
            member = np.zeros((len(w), groups))
            member[np.arange(len(w)), codes[rows]] = w
            total += ((x if len(w) == x.shape[0] else x[rows]).T @ member).T
    return total
