"""Weight, mean and scatter of rows by group, in one pass.

Rows are taken about the running mean of their group, which follows them: sums of squares then cancel by no more than
the rows of one piece, whatever the offset. The first entry of a group is its first mean, so a constant column is
exactly 0 throughout.
"""

import numpy as np

from bayesgen.numerics.pieces import ROWS, pieces, product_rows
from bayesgen.numerics.scratch import scratch
from bayesgen.numerics.sums import Grouping, finite

_SEGMENTS = 32  # groups at most whose rows are worth bringing side by side
_RUN = 4096  # rows of a group that are taken about their mean at a time: ten columns are a third of a megabyte
_FEW = 32  # columns
_AT_ONCE = 1 << 15  # rows times groups times columns that are one product


@np.errstate(invalid="ignore", over="ignore", under="ignore")
def mean_and_scatter(x, rows: Grouping, *, vector: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weight, mean and scatter of rows by group.

    Parameters
    ----------
    x : array, shape (n, D)
        NaN is missing: an entry, or with ``vector`` a whole row.
    rows : Grouping
        Group and weight of each row.
    vector : bool
        Whether the scatter is a matrix, of all columns with each other.

    Returns
    -------
    n : array, shape (groups, D), or (groups,) with ``vector``
        Sum of weights of what is observed.
    mean : array, shape (groups, D)
        0 where nothing is.
    scatter : array, shape (groups, D), or (groups, D, D) with ``vector``
        Not finite where squares leave float64.
    """
    few = len(x) * rows.count * max(x.shape[1], 8) <= _AT_ONCE
    return (_at_once(x, rows, vector) if few else None) or _by_pieces(x, rows, vector)


def _at_once(x, rows: Grouping, vector: bool):
    """Moments of few rows (n, columns), all groups in one product; None where a group is empty or an entry missing."""
    member = rows.membership()
    n = member.sum(1)
    if not n.all():
        return None
    mean = x.take(member.argmax(1), 0).astype(float, copy=False)  # about a row of their own a constant column is 0
    z = x - mean.take(rows.codes, 0)
    total = member @ z
    step = total / n[:, None]
    mean += step
    if vector:
        scatter = (member[:, None] * z.T) @ z - total[:, :, None] * step[:, None]
    else:
        n = n[:, None].repeat(x.shape[1], 1)
        scatter = np.maximum(member @ (z * z) - total * step, 0.0)
    return (n, mean, scatter) if np.isfinite(scatter).all() else None


def _by_pieces(x, rows: Grouping, vector: bool):
    """Moments of rows (n, columns), piece by piece."""
    count, dim = rows.count, x.shape[1]
    n = np.zeros(count if vector else (count, dim))
    mean = np.zeros((count, dim))
    scatter = np.zeros((count, dim, dim) if vector else (count, dim))
    add = _add_vectors if vector else _add_scalars
    beside = rows.bounds is not None
    columns = (vector or beside) and count <= _SEGMENTS and dim > 1 and x.strides[0] == x.itemsize
    whole = columns and beside and finite(x)
    size = len(x) if whole else min(ROWS, count * product_rows(dim * dim)) if vector else ROWS
    for piece in pieces(len(x), 1 if whole else dim, rows=size):
        part, own = x[piece], rows[piece]
        if own.weight is not None and not own.weight.all():  # what is written in a row of weight 0 is not read
            part, own = part[own.weight > 0], own[own.weight > 0]
        if whole or (columns and finite(part)):
            _add_columns(n, mean, scatter, part.T, own)
        else:
            add(n, mean, scatter, part, own)
    return n, mean, scatter


def _add_scalars(n, mean, scatter, x, rows: Grouping):
    """Add rows to the moments (groups, columns), in place."""
    member = rows.membership()
    size = member @ np.ones(len(x))
    new = np.flatnonzero((size > 0) & (n == 0).any(1))
    if len(new):
        _start(n, mean, x, rows.codes, new)
    if x.strides[0] >= x.strides[1]:
        z = np.take(mean, rows.codes, 0, out=scratch("centred", x.shape), mode="clip")
    elif isinstance(member, np.ndarray) and rows.weight is None:  # columns are runs in memory, and stay so
        z = np.matmul(mean.T, member, out=scratch("centred", x.shape[::-1])).T
    else:
        z = np.take(mean.T, rows.codes, 1, out=scratch("centred", x.shape[::-1]), mode="clip").T
    np.subtract(x, z, out=z)
    total, size = member @ z, size[:, None]
    if np.isnan(total).any():
        missing = np.isnan(x)
        z[missing] = 0.0
        total, size = member @ z, member @ (~missing).astype(float)
    n += size
    step = np.divide(total, n, out=np.zeros_like(total), where=n > 0)
    mean += step
    z *= z
    scatter += np.maximum(member @ z - total * step, 0.0)


def _start(n, mean, x, codes, groups):
    """Make the first entry seen the mean of what is empty in some groups."""
    first = np.empty(len(n), np.intp)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    for k in groups:
        entry = x[first[k]].astype(float)
        if np.isnan(entry).any():
            own = x[codes == k]
            entry = np.take_along_axis(own, (~np.isnan(own)).argmax(0)[None], 0)[0]
        np.copyto(mean[k], entry, where=(n[k] == 0) & ~np.isnan(entry))


def _add_columns(n, mean, scatter, columns, rows: Grouping):
    """Add finite rows that stand in memory column by column, (D, n), to moments of scalars or vectors, in place.

    Rows of a group are brought side by side: then each column of a group is one run, and its sums are products.
    """
    if rows.bounds is None:
        order, rows = rows.side_by_side()
        # No place is beyond the rows, so nothing is clipped; without NumPy's check it is three times faster.
        columns = np.take(columns, order, axis=1, out=scratch("ordered", columns.shape, columns.dtype), mode="clip")
    dim, vector, bounds = len(columns), scatter.ndim > mean.ndim, rows.bounds
    assert bounds is not None
    step = product_rows(dim * dim) if vector else _RUN
    for k in np.flatnonzero(np.diff(bounds)):
        for start in range(bounds[k], bounds[k + 1], step):
            run = slice(start, min(start + step, bounds[k + 1]))
            w = None if rows.weight is None else rows.weight[run]
            np.copyto(mean[k], columns[:, start], where=n[k] == 0)  # the first entry is the first mean
            beside = scratch("centred", (dim + 1, run.stop - start))
            z = beside[:-1]
            z[:] = columns[:, run]  # as floats; to convert while subtracting takes twice as long
            z -= mean[k][:, None]
            n[k] += run.stop - start if w is None else w.sum()
            if vector:
                beside[-1] = 1.0
                if w is not None:
                    beside *= np.sqrt(w)
                total, squares = _products(z, beside)
                scatter[k] += squares - total[:, None] * (total / n[k])
            else:
                total = z.sum(1) if w is None else z @ w
                squares = np.vecdot(z, z) if w is None else np.vecdot(z * w, z)
                scatter[k] += np.maximum(squares - total * (total / n[k]), 0.0)
            mean[k] += total / n[k]


def _products(z, beside) -> tuple[np.ndarray, np.ndarray]:
    """Sums of rows (D, n), and of their outer products; ``beside`` has a row of ones below them.

    Of few columns a general product takes half the time of a symmetric one, which BLAS chooses for z z'.
    """
    if len(z) > _FEW:
        return z @ beside[-1], z @ z.T
    both = z @ beside.T
    return both[:, -1], both[:, :-1]


def _add_vectors(n, mean, scatter, x, rows: Grouping):
    """Add rows to the moments (groups, D, D), in place; a row with a missing entry counts nothing."""
    if not finite(x):
        seen = ~np.isnan(x).any(1)
        x, rows = x[seen], rows[seen]
    order, rows = rows.side_by_side()
    sorted_rows, bounds = x.take(order, 0).astype(float, copy=False), rows.bounds
    assert bounds is not None
    for k in np.flatnonzero(np.diff(bounds)):
        segment = slice(bounds[k], bounds[k + 1])
        z, w = sorted_rows[segment], None if rows.weight is None else rows.weight[segment]
        if n[k] == 0:
            mean[k] = z[0]
        z -= mean[k]
        total = (np.ones(len(z)) if w is None else w) @ z  # of short rows eight times faster than a sum
        n[k] += len(z) if w is None else w.sum()
        if w is not None:
            z *= np.sqrt(w)[:, None]
        mean[k] += total / n[k]
        scatter[k] += z.T @ z - total[:, None] * (total / n[k])
