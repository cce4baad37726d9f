"""Missing entries under the untempered members: their density along a column, medians and modes.

An average belongs to no single family, so the density of a missing number is worked out on a grid: coarse over the
range of all groups, then fine where the mass is.
"""

import numpy as np
from scipy.special import softmax

from bayesgen.averaging.given_the_rest import Members, Rows
from bayesgen.numerics.pieces import patterns, pieces, taken

_COARSE, _FINE = 32, 32  # nodes
_REACH = 8.0  # standard deviations of a column within a group by which the grid reaches beyond the means
_DENSITIES = 1 << 18  # worked on at a time


def entries(members: Members, x, c, e=None):
    """Yield pieces of rows with the same pattern of gaps, and the missing numbers of each piece.

    Yields
    ------
    own : int array, shape (n,)
        Places of the rows.
    rows : Rows
    missing : list of (row, column)
        Int arrays of some entries each, the rows by their places in ``own``.
    """
    seen = ~np.isnan(x)
    width = 1 if members.students is None else len(members.students.mean)
    for known, at in patterns(seen):
        gone = np.setdiff1d(np.arange(x.shape[1]), known)
        for piece in pieces(len(at), width * x.shape[1]):
            own = at[piece]
            row, column = (grid.ravel() for grid in np.meshgrid(np.arange(len(own)), gone, indexing="ij"))
            step = max(1, _DENSITIES // (width * _FINE))
            parts = [(row[i : i + step], column[i : i + step]) for i in range(0, len(row), step)]
            yield own, Rows(members, x[own], c[own], taken(e, own)), parts


def reach(average) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the grids of the bent columns, (D,) each."""
    low, high = np.array(np.inf), np.array(-np.inf)
    for view in average.taking("numbers"):
        if not view.drawn:
            continue
        m = view.statistics
        spread = np.sqrt((view.squares.sum(0) + 1) / (view.n.sum() + 1))
        low = np.minimum(low, (m.mean - _REACH * spread).min(0))
        high = np.maximum(high, (m.mean + _REACH * spread).max(0))
    return low, high


def grid(rows: Rows, row, column, ends):
    """Return nodes of some missing numbers, and log p(y, k | ...) there, y the bent column.

    Parameters
    ----------
    rows : Rows
    row, column : int array, shape (E,)
        The entries.
    ends : tuple of array, shape (D,)
        Ends of the grids, from `reach`.

    Returns
    -------
    values, y : array, shape (E, Q)
        Nodes in the units of the column, and of the bent column, ascending.
    log_joint : array, shape (K, E, Q)
        Log p(x_o, y, t = k), up to a constant for each row.
    """
    warp = rows.members.warp.take(column)

    def along(y):
        values = warp.back(y.T).T
        return values, rows.members.log_joint(rows.along(row, column, values, y))

    y = np.linspace(ends[0][column], ends[1][column], _COARSE, axis=1)
    values, coarse = along(y)
    density = np.exp(coarse - coarse.max((0, 2))[:, None]).sum(0) + 1e-300
    share = np.cumsum(density, axis=1)
    share = (share - share[:, :1]) / (share[:, -1:] - share[:, :1])
    wanted = (np.arange(_FINE) + 0.5) / _FINE
    fine = np.stack([np.interp(wanted, own, nodes) for own, nodes in zip(share, y, strict=True)])
    more, log_joint = along(fine)
    order = np.argsort(np.concatenate([y, fine], axis=1), axis=1)

    def merged(a, b):
        return np.take_along_axis(np.concatenate([a, b], axis=-1), order.reshape(*[1] * (a.ndim - 2), *order.shape), -1)

    return merged(values, more), merged(y, fine), merged(coarse, log_joint)


def mass(y, log_joint) -> np.ndarray:
    """Return trapezoidal weights of the nodes of a grid from log_joint, (K, E, Q); they sum to 1 in each entry."""
    width = np.zeros(y.shape)
    step = np.diff(y, axis=1) / 2
    width[:, 1:] += step
    width[:, :-1] += step
    weight = np.exp(log_joint - log_joint.max((0, 2))[:, None]) * width
    return weight / weight.sum((0, 2))[:, None]


@np.errstate(under="ignore")
def expected(average, x, c, e=None, codes=None):
    """Fill in the median of each missing number and the mode of each missing category, given the observed entries.

    Parameters
    ----------
    average : Average
    x, c : array, shape (n, D) and (n, F)
    e : array, shape (n, E), optional
        Entries of the columns with leaves, which stay as they are.
    codes : int array, shape (n,), optional
        Classes of the rows, where they are known.
    """
    members, filled_x, filled_c = Members(average, average.density_weights > 0), x.copy(), c.copy()
    ends = reach(average)
    for own, rows, missing in entries(members, x, c, e):
        for row, column in missing:
            _, y, log_joint = grid(rows, row, column, ends)
            if codes is not None:
                log_joint = log_joint[codes[own[row]], np.arange(len(row))][None]
            share = np.cumsum(mass(y, log_joint).sum(0), axis=1)
            share -= 0.5 * np.diff(share, axis=1, prepend=0.0)
            middle = np.array([np.interp(0.5, a, b) for a, b in zip(share, y, strict=True)])
            filled_x[own[row], column] = members.warp.take(column).back(middle[None])[0]
        for j in range(c.shape[1]):
            row = np.flatnonzero(c[own, j] < 0)
            if len(row):
                joint = members.log_joint(rows.levels(row, j))
                chance = softmax(joint, axis=(0, 2))
                chance = chance.sum(0) if codes is None else chance[codes[own[row]], np.arange(len(row))]
                filled_c[own[row], j] = chance.argmax(1)
    return filled_x, filled_c
