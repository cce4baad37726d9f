"""Frequencies of events in cells, with intervals for independent rows, or for rows that belong to groups."""

import numpy as np
from scipy.special import betaincinv

from bayesgen.numerics.pieces import pieces

_LEVELS = (0.025, 0.975)
_DRAWS = 2000  # of weights of the groups
_CELLS = 1 << 20  # entries of a table of groups and cells that is held at a time


def frequencies(event, cell, cells: int, weight, group=None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the weight of the rows in each cell, the frequency of the event, and both ends of its 95 % interval.

    Rows that are independent have the interval of Jeffreys: quantiles of Beta(hits + 1/2, misses + 1/2), which is the
    distribution of the frequency where each row has an exponential weight, and half a hit and half a miss have gammas
    of shape 1/2 (the Bayesian bootstrap, Rubin 1981, *Annals of Statistics* 9, with Jeffreys' prior). Rows that belong
    together share one exponential weight, and the half hit and the half miss are of the mean size of the groups in the
    cell. An interval reaches to 0 where the event never happened, and to 1 where it always did; an empty cell has NaN.

    Parameters
    ----------
    event : bool array, shape (n,)
        True where the event happened.
    cell : int array, shape (n,)
        Cell of each row.
    cells : int
        Their number, m.
    weight : array, shape (n,)
        Weights of the rows.
    group : int array, shape (n,), optional
        Group of each row.
    """
    count, hits = (np.bincount(cell, weights=v, minlength=cells) for v in (weight, weight * event))
    occupied = np.where(count > 0, count, np.nan)
    frequency = hits / occupied
    if group is None:
        low, high = (betaincinv(hits + 0.5, occupied - hits + 0.5, level) for level in _LEVELS)
    else:
        low, high = _of_groups(event, cell, cells, weight, group)
    return count, frequency, np.where(frequency == 0, 0.0, low), np.where(frequency == 1, 1.0, high)


def _of_groups(event, cell, cells, weight, group):
    """Return quantiles of the frequency in each cell under random weights of the groups."""
    rng = np.random.default_rng(0)
    seen = weight > 0
    _, place = np.unique(group[seen], return_inverse=True)
    cell, mine, right = cell[seen], weight[seen], event[seen]
    pairs, which = np.unique(place * np.int64(cells) + cell, return_inverse=True)  # the cells that each group meets
    owner, where = np.divmod(pairs, cells)
    size, own = np.bincount(which, weights=mine), np.bincount(which, weights=mine * right)
    met = np.bincount(where, minlength=cells)
    mean = np.bincount(where, weights=size, minlength=cells) / met.clip(1)
    hits, misses = (mean * rng.standard_gamma(0.5, (_DRAWS, cells)) for _ in range(2))
    for piece in pieces(int(place.max(initial=-1)) + 1, max(cells, _DRAWS), _CELLS):
        drawn = rng.standard_exponential((_DRAWS, piece.stop - piece.start))
        here = (owner >= piece.start) & (owner < piece.stop)
        table = np.zeros((2, piece.stop - piece.start, cells))
        table[:, owner[here] - piece.start, where[here]] = own[here], size[here] - own[here]
        hits, misses = hits + drawn @ table[0], misses + drawn @ table[1]
    with np.errstate(invalid="ignore"):  # an empty cell
        share = hits / (hits + misses)
    return [np.where(met > 0, np.quantile(np.where(met > 0, share, 0.0), level, axis=0), np.nan) for level in _LEVELS]
