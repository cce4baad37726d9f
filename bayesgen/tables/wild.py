"""Wild entries of numbers: slips of the decimal point or of the unit, which would own the scale of their column.

One entry at a thousand times the others makes up nearly all of a column's variance: standardised, the others are one
value, and the class of the entry's row is the class of a spread of its own. So it is found and told.

They lie beyond a gap: of the distances d_1 <= ... <= d_n of a column's entries from their median, one is more than r =
300 times the one before it. The entries beyond the gap must be few, three or a hundredth of the rows, for a value that
many share is a code; and less than half of a class, for a class that lies there differs so. Five entries on this side
must differ from the median, since fewer show no tail. Slips fall on rows at random: where chance puts as many on rows
of one class with a probability below .01, they are what a few rows of that class have in common, and say of it.

"Wild entries" in `docs/mathematics/averaged.md` derives how often such a gap is a false alarm, whatever the number of
rows; by which moments and edges, which a fit has, most columns cannot have one; and where one, two or three entries lie
if moments by class alone are left of rows that came in pieces. More, or such as lie apart, are so not known.
"""

import math
from typing import NamedTuple

import numpy as np

from bayesgen.core.errors import DataError
from bayesgen.models.moments import Moments, moments
from bayesgen.tables.columns import edges_of

_RATIO = 300  # of the distances from the median on both sides of the gap
_OTHERS = 5  # entries on the near side that differ from the median, at least
_FEW, _SHARE = 3, 100  # entries beyond the gap, at most: so many, or one in so many rows
_LOOK = 5000  # rows that the median is learned from
_CHANCE = 0.01  # that slips fall on rows of one class alone
_USUAL, _OFF = 3, 0.05  # standard deviations within which others lie; part by which moments miss those of one entry


class Wild(NamedTuple):
    """Wild entries."""

    row: np.ndarray  # row, column: (E,): their places in the table
    column: np.ndarray
    # (E,): their distances from the middle of the column, in multiples of the farthest that is not wild
    times: np.ndarray


_NOTHING = Wild(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))


def find(x, codes, sums: Moments | None = None, edges=None) -> Wild:
    """Return the wild entries of numbers (n, D), NaN where missing, of rows with their classes.

    The moments of the rows by class, without weights, and their ``edges`` (2, D) save passes over them.
    """
    found = []
    for column in _suspects(x, codes, sums, edges_of(x) if edges is None else edges) if x.size else ():
        entries = x[:, column]
        middle = np.nanmedian(entries[:: max(1, len(x) // _LOOK)])
        if not np.isnan(middle):
            found.append(_beyond(entries, codes, column, middle))
    return Wild(*map(np.concatenate, zip(*found, strict=True))) if found else _NOTHING


def _suspects(x, codes, sums: Moments | None, edges) -> np.ndarray:
    """Return the columns of numbers (n, D) that may have wild entries, by their moments and edges."""
    try:
        sums = moments(x, codes, int(codes.max()) + 1) if sums is None else sums
    except DataError:  # squares beyond float64: columns to look at; their fit refuses them
        return np.arange(x.shape[1])
    n, few = np.maximum(sums.n.sum(0) - len(sums.n), 1), max(_FEW, len(x) // _SHARE)
    mean, scatter = sums.pooled.mean, n * sums.pooled.variance  # about the means of classes: at most that in all
    farthest = np.maximum(edges[1] - mean, mean - edges[0])
    near, most = np.maximum(1 - 1 / _RATIO - few / n, 0.0), farthest**2 * (n / _RATIO**2 + few)
    may = ~(scatter * near**2 > most)
    if may.any():  # where classes lie far apart, the scatter about the mean of all tells more
        with np.errstate(over="ignore", invalid="ignore"):
            may &= ~(by_column(sums).sum_groups().scatter * near**2 > most)
    return may.nonzero()[0]


def _beyond(entries, codes, column, middle) -> Wild:
    away = np.abs(entries - middle)
    order = np.argsort(away)[: np.count_nonzero(~np.isnan(away))]
    away, size = away[order], np.bincount(codes[order])
    least = np.searchsorted(away, 0.0, side="right") + _OTHERS
    for first in np.flatnonzero(away[1:] / _RATIO > away[:-1]) + 1:
        row = order[first:]
        beyond = np.bincount(codes[row], minlength=len(size))
        half = (2 * beyond >= size)[codes[row]].any()
        few = first >= least and len(row) <= max(_FEW, len(entries) // _SHARE)
        if few and not half and (beyond.max() < len(row) or _chance(size, len(row)) > _CHANCE):
            return Wild(row, np.full(len(row), column), away[first:] / away[first - 1])
    return Wild(order[:0], order[:0], away[:0])


def _chance(size, count: int) -> float:
    """Return how probable it is that so many of the rows, drawn at random, are of one class."""
    return sum(math.comb(int(n), count) for n in size) / math.comb(int(size.sum()), count)


def by_moments(sums: Moments) -> list[tuple[int, int, float, float]]:
    """Return column, class, value and distance of the entries that moments by class show, as the docs derive it."""
    sums, result = by_column(sums), []
    for k in range(len(sums.n)):
        usual = Moments(*(np.delete(v, k, 0) for v in (sums.n, sums.mean, sums.scatter))).sum_groups()
        n, d = sums.n[k], sums.mean[k] - usual.mean
        with np.errstate(all="ignore"):  # of classes without a row, and columns without a spread
            count = n**2 * d**2 / (sums.scatter[k] + n * d**2)
            few = np.round(count).clip(1, _FEW)
            distance, spread = n * d / few, np.sqrt(usual.scatter / usual.n)
            far = (np.abs(count - few) <= _OFF * few) & (np.abs(distance) > _USUAL * _RATIO * spread) & (spread > 0)
        for j in np.flatnonzero(far & (np.minimum(n, usual.n) >= _OTHERS)):
            result.append((j, k, usual.mean[j] + distance[j], np.abs(distance[j]) / spread[j]))
    return result


def by_column(sums: Moments) -> Moments:
    """Return the moments of each column alone, of those of vectors too."""
    if not sums.vector:
        return sums
    return Moments(np.repeat(sums.n[:, None], sums.mean.shape[1], 1), sums.mean, sums.scatter.diagonal(0, 1, 2))
