r"""Wild entries of numbers: slips of the decimal point or of the unit, which would own the scale of their column.

One entry at a thousand times the others makes up nearly all of a column's variance: standardised, the others are one
value, and the class of the entry's row is the class of a spread of its own. So it is found and told.

**Found** by the largest ratio of distances that lie next to each other. Let d_1 <= ... <= d_n be the distances of a
column's entries from their median, and P(d > t) fall as t^-α. Then the logarithms of the ratios of the farthest are
independent and exponential (Rényi 1953, *Acta Mathematica Academiae Scientiarum Hungaricae* 4, 191-231, who gives it
for exponential variables, of which these are exponentials; Hill 1975, *Annals of Statistics* 3, 1163-1174),

.. math:: k \log \frac{d_{n-k+1}}{d_{n-k}} \sim \text{Exponential}(\alpha), \qquad
   P\Big(\frac{d_{n-k+1}}{d_{n-k}} > r\Big) = r^{-k \alpha}

With r = 300 a column of Cauchy's law (α = 1) has a false alarm once in 300, and one with a variance (α > 2) less than
once in 90,000, however many rows there are. A multiple of the median distance, by which outliers are commonly told
(Hampel 1974), fires on heavy tails, and the more often the more rows. An entry of a thousand times the largest size m
of the others is always found: with c the median its ratio is at least (1000 m - |c|)/(m + |c|) > 499. The entries
beyond the gap must be few, three or a hundredth of the rows, for a value that many share is a code; and less than half
of a class, for a class that lies there differs so. Five entries on this side must differ from the median, since fewer
show no tail.

**By chance of one class.** Slips fall on rows at random. That E of them fall on rows of one class, whichever, among n
rows of which n_k have class k, has then the probability

.. math:: \sum_k \binom{n_k}{E} \Big/ \binom{n}{E}

Where it is below .01 the entries are no slips but what a few rows of that class have in common, and say of it: of 1,000
rows ten, of two classes of 500, and of 100 rows three, of a class of 20.

**Where to look.** Most columns cannot have such entries, which three sums show. Let b be the most entries beyond the
gap, M the farthest distance from the median, and a <= M/r the nearest on its other side. The mean lies within
M (1/r + b/n) of the median, so the farthest distance from the mean is D >= M (1 - 1/r - b/n); and the sum of squares
about the mean is at most that about the median,

.. math:: S \le n a^2 + b M^2 \le \frac{D^2 (n / r^2 + b)}{(1 - 1/r - b/n)^2}
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from bayesgen.core.errors import InputWarning, several, warn
from bayesgen.tables import arrays
from bayesgen.tables.columns import over_rows
from bayesgen.tables.dates import moments
from bayesgen.tables.schema import Schema

_RATIO = 300  # of the distances from the median on both sides of the gap
_OTHERS = 5  # entries on the near side that differ from the median, at least
_FEW, _SHARE = 3, 100  # entries beyond the gap, at most: so many, or one in so many rows
_LOOK = 5000  # rows that the median is learned from
_CHANCE = 0.01  # that slips fall on rows of one class alone


class Wild(NamedTuple):
    """Wild entries."""

    row: np.ndarray  # row, column: (E,): their places in the table
    column: np.ndarray
    # (E,): their distances from the middle of the column, in multiples of the farthest that is not wild
    times: np.ndarray


def find(x, codes) -> Wild:
    """Return the wild entries of numbers (n, D), NaN where missing, of rows with their classes."""
    nothing = np.empty(0, np.intp)
    found = [Wild(nothing, nothing, np.empty(0))]
    for column in _suspects(x) if x.size else ():
        entries = x[:, column]
        middle = np.nanmedian(entries[:: max(1, len(x) // _LOOK)])
        if not np.isnan(middle):
            found.append(_beyond(entries, codes, column, middle))
    return Wild(*map(np.concatenate, zip(*found, strict=True)))


@np.errstate(over="ignore", invalid="ignore")  # sums beyond float64 make a column one to look at; its fit refuses it
def _suspects(x) -> np.ndarray:
    """Return the columns of numbers (n, D) that may have wild entries, by their sums."""
    n, known, ones = len(x), x, np.ones(len(x))
    if np.isnan(total := ones @ x).any():
        n = np.maximum(np.count_nonzero(x == x, 0), 1)
        known = np.nan_to_num(x, nan=0.0)
        total = ones @ known
    squares, mean, few = ones @ (known * known), total / n, max(_FEW, len(x) // _SHARE)
    farthest = np.fmax(over_rows(np.fmax, x) - mean, mean - over_rows(np.fmin, x))
    scatter = squares - n * mean**2 - 1e-12 * squares  # at least so much, whatever cancels
    near = np.maximum(1 - 1 / _RATIO - few / n, 0.0)
    return np.flatnonzero(~(scatter * near**2 > farthest**2 * (n / _RATIO**2 + few)))


def _beyond(entries, codes, column, middle) -> Wild:
    """Return the wild entries among those (n,) of a column."""
    away = np.abs(entries - middle)
    order = np.argsort(away)[: np.count_nonzero(~np.isnan(away))]
    away, size = away[order], np.bincount(codes[order])
    least = np.searchsorted(away, 0.0, side="right") + _OTHERS
    for first in np.flatnonzero(away[1:] > _RATIO * away[:-1]) + 1:
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


def warn_of_wild(schema: Schema, blocks, codes, places) -> None:
    """Warn of wild entries in columns of Gaussians, which learn from them as they are.

    ``blocks`` are rows as the schema reads them, ``codes`` (n,) their classes, and ``places`` (n,) where they
    stand in the table.
    """
    for block in arrays.numeric(schema):
        if not sparse.issparse(x := blocks[block.name]):
            x = x.reshape(len(codes), -1)
            tell(find(x, codes), x, block.columns, places, schema.dates)


def tell(
    wild: Wild,
    x,
    names: Sequence[str],
    places,
    dates: Sequence[str] = (),
    done: str = "it is learned from as it is, and moves what is said of other rows. Mend it or give NaN",
    cure: str = "; if it is right, give the logarithm or the ranks of the column",
) -> None:
    """Warn of wild entries of numbers x (n, D) of columns ``names``, if there are any: what is ``done`` with them.

    Rows stand at ``places`` (n,) in the user's table; the ``cure`` of an entry that is right is not said of ``dates``.
    """
    if not len(wild.row):
        return
    entries = [(names[j], x[i, j], int(places[i]), times) for i, j, times in zip(*wild, strict=True)]
    shown = [str(moments([value])[0])[:10] if name in dates else f"{value:g}" for name, value, _, _ in entries]
    text = several(
        f"column {name!r}: value {value} in row {row} is {times:.3g} times as far from the middle as its others"
        for (name, _, row, times), value in zip(entries, shown, strict=True)
    )
    name, value, row, _ = entries[0]
    cure = "" if name in dates else cure
    warn(InputWarning(f"{text}: {done}{cure}", column=name, row=row, value=float(value)))
