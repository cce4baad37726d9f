"""Missing entries under the untempered members: their density along a column, and draws of them.

An average is no one family, so the density of a missing number is worked out on a grid: coarse over the range of all
groups, then fine where the mass is. A draw is of a member and its parameters first, one for all rows; then each row's
class, group, numbers and categories are drawn given what is seen of it.
"""

import numpy as np
from scipy.special import softmax

from bayesgen.averaging import draws
from bayesgen.models.conditional import fill_normal
from bayesgen.numerics.pieces import pieces

_COARSE, _FINE = 32, 32  # nodes
_REACH = 8.0  # standard deviations of a group's column that the grid reaches out
_CELLS = 1 << 16  # entries of rows filled in at a time


def grid(average, x, c, column: int):
    """Nodes of a missing number, and log p(y, k | ...) there, y the bent column.

    Parameters
    ----------
    average : Average
    x, c : array, shape (n, D) and (n, F)
        Rows whose entry is missing.
    column : int
        Of the numbers.

    Returns
    -------
    values, y : array, shape (n, Q)
        Nodes in the units of the column, and of the bent column, ascending.
    log_joint : array, shape (n, Q, K)
        Log p(x_o, y, t = k).
    """
    low, high = np.inf, -np.inf
    for view in average.numeric:
        m = view.statistics
        spread = np.sqrt((np.diagonal(m.scatter, axis1=1, axis2=2)[:, column].sum() + 1) / (m.n.sum() + 1))
        low = min(low, (m.mean[:, column] - _REACH * spread).min())
        high = max(high, (m.mean[:, column] + _REACH * spread).max())
    y = np.broadcast_to(np.linspace(low, high, _COARSE), (len(x), _COARSE))
    coarse = _along(average, x, c, column, y)
    density = np.exp(coarse - coarse.max((1, 2), keepdims=True)).sum(2) + 1e-300
    share = np.cumsum(density, axis=1)
    share = (share - share[:, :1]) / (share[:, -1:] - share[:, :1])
    wanted = (np.arange(_FINE) + 0.5) / _FINE
    fine = np.stack([np.interp(wanted, own, nodes) for own, nodes in zip(share, y, strict=True)])
    both = np.concatenate([y, fine], axis=1)
    order = np.argsort(both, axis=1)
    log_joint = np.concatenate([coarse, _along(average, x, c, column, fine)], axis=1)
    both = np.take_along_axis(both, order, 1)
    return _back(average, column, both), both, np.take_along_axis(log_joint, order[..., None], 1)


def _warp(average, column):
    warp = average.numeric[0].view.warp
    return type(warp)(*(getattr(warp, name)[column : column + 1] for name in ("location", "scale", "power")))


def _back(average, column, y):
    return _warp(average, column).back(y.reshape(-1, 1)).reshape(y.shape)


def _along(average, x, c, column, y):
    """Log p(x_o, y, k) with the entry filled in, (n, Q, K)."""
    values, result = _back(average, column, y), np.empty((*y.shape, len(average.class_weight)))
    slope = _warp(average, column).log_slope(values.reshape(-1, 1)).reshape(y.shape)
    for part in pieces(len(x), y.shape[1] * (x.shape[1] + c.shape[1]), _CELLS):
        rows, codes = filled(x[part], c[part], column, values[part])
        result[part] = average.log_joint(rows, codes).reshape(*y[part].shape, -1) - slope[part][..., None]
    return result


def filled(x, c, column: int, values):
    """Rows with each of some values (n, Q) in a column, of the numbers or behind them of the categories: (n Q, ...)."""
    x, c = (np.repeat(rows, values.shape[1], axis=0) for rows in (x, c))
    if column < x.shape[1]:
        x[:, column] = values.ravel()
    else:
        c[:, column - x.shape[1]] = values.ravel()
    return x, c


def levels(average, x, c, column: int) -> np.ndarray:
    """Log p(x_o, c_j = a, k) at each level of a missing category, (n, V, K); ``column`` counts behind the numbers."""
    count = average.categorical.levels[column - x.shape[1]]
    values = np.broadcast_to(np.arange(count), (len(x), count))
    rows = filled(x, c, column, values)
    return average.log_joint(*rows).reshape(len(x), count, -1)


def mass(y, log_joint) -> np.ndarray:
    """Trapezoids of a grid: log_joint as weights of its nodes, (n, Q, K), which sum to 1 in each row."""
    width = np.zeros(y.shape)
    step = np.diff(y, axis=1) / 2
    width[:, 1:] += step
    width[:, :-1] += step
    weight = np.exp(log_joint - log_joint.max((1, 2), keepdims=True)) * width[..., None]
    return weight / weight.sum((1, 2), keepdims=True)


def median(average, x, c, column: int, codes=None) -> np.ndarray:
    """Median of a missing number, (n,), given the rows' classes where they are known."""
    _, y, log_joint = grid(average, x, c, column)
    if codes is not None:
        log_joint = log_joint[np.arange(len(x)), :, codes][..., None]
    share = np.cumsum(mass(y, log_joint).sum(2), axis=1)
    share -= 0.5 * np.diff(share, axis=1, prepend=0.0)
    middle = np.array([np.interp(0.5, own, nodes) for own, nodes in zip(share, y, strict=True)])
    return _back(average, column, middle[:, None])[:, 0]


def draw(average, x, c, rng, codes=None):
    """Rows without gaps, of one member and one draw of its parameters.

    Parameters
    ----------
    average : Average
    x, c : array, shape (n, D) and (n, F)
    rng : Generator
    codes : int array, shape (n,), optional
        Classes of the rows, where they are known.
    """
    a, b = average.names[rng.choice(len(average.names), p=average.density_weights)]
    score = np.tile(np.log(rng.dirichlet(average.class_weight + average.concentration)), (len(x), 1))
    numbers = None if a is None else _Numbers(next(v for v in average.numeric if v.count == a[0]), a[1], x, rng)
    tables = None if b is None else draws.tables(average.categorical, b, rng)
    if numbers is not None:
        score += numbers.log_density()
    if tables is not None:
        score += average.categorical.density(c, *tables)
    t = draws.choose(softmax(score, axis=1), rng) if codes is None else codes
    x = x if numbers is None else numbers.fill(t, rng)
    if tables is not None:
        (level, table), c = tables, c.copy()
        for i in np.flatnonzero((c < 0).any(1)):
            c[i] = average.categorical.fill(c[i], level[t[i]], None if table is None else table[t[i]], rng)
    return x, c


class _Numbers:
    """Rows of numbers under one draw of the parameters of a view's member."""

    def __init__(self, view, member, x, rng):
        self.view, self.x, (self.y, self.seen) = view, x, view.read(x)
        self.mean, self.root = (drawn[0] for drawn in draws.gaussians(view, member, (1,), rng))
        self.log_share = np.log(draws.shares(view, (), rng))
        self.groups = draws.group_density(self.mean, self.root, self.y, self.seen)

    def log_density(self):
        """Log p(x | k) up to a number of each row, (n, K)."""
        return self.view.mix(self.groups, self.log_share)

    def fill(self, codes, rng):
        """Rows without gaps, given their classes: each of a group of its class."""
        own = np.where(self.view.view.owner == codes[:, None], self.groups + self.log_share, -np.inf)
        group = draws.choose(softmax(own, axis=1), rng)
        y = self.y.copy() if self.seen is None else np.where(self.seen, self.y, np.nan)
        for g in np.unique(group):
            at, root = np.flatnonzero(group == g), self.root[g if len(self.root) > 1 else 0]
            y[at] = fill_normal(y[at], self.mean[g], np.diag(root) if root.ndim == 1 else root, rng)
        return np.where(np.isnan(self.x), self.view.view.warp.back(y), self.x)
