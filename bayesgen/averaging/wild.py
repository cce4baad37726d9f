r"""Wild entries of numbers: slips of the decimal point or of the unit, which would own the scale of their column.

One entry at a thousand times the others makes up nearly all of a column's variance: standardised, the others are one
value. So it is found, told, and its conditional expectation stands in its place while the average is learned.

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

**Completed** by the conditional expectation given the class and the row's other numbers, as gaps are at fit
(`view.Filling`), once and for all members. As a gap it would move other rows about as much (in the median of 58
entries by .039 at most, completed by .032, as it stands by .26: `python -m benchmarks wild`), and every fold would have
to complete it anew. What is left is what one entry says: with few rows the weights of the members hang on it.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.view import Training
from bayesgen.core.errors import InputWarning, listed, several, warn
from bayesgen.numerics.folds import sample
from bayesgen.tables.dates import moments

_RATIO = 300  # of the distances from the median on both sides of the gap
_OTHERS = 5  # entries on the near side that differ from the median, at least
_FEW, _SHARE = 3, 100  # entries beyond the gap, at most: so many, or one in so many rows
_LEARN = 5000  # rows that the median, and what completes an entry, are learned from
_FARTHEST = 1e50  # times the spread of a column: bent columns square it, and densities square that


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
    if x.size:
        few = x[:: max(1, len(x) // _LEARN)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # columns without a value
            middle = np.nanmedian(few, 0)
            usual = np.nanmedian(np.abs(few - middle), 0)
        farthest = np.fmax(np.fmax.reduce(x, 0) - middle, middle - np.fmin.reduce(x, 0))
        found += [_beyond(x, codes, j, middle[j]) for j in np.flatnonzero(farthest > _RATIO * usual)]
    return Wild(*map(np.concatenate, zip(*found, strict=True)))


def _beyond(x, codes, column, middle) -> Wild:
    """Return the wild entries of a column."""
    away = np.abs(x[:, column] - middle)
    order = np.argsort(away)[: np.count_nonzero(~np.isnan(away))]
    away, size = away[order], np.bincount(codes[order])
    least = np.searchsorted(away, 0.0, side="right") + _OTHERS
    for first in np.flatnonzero(away[1:] > _RATIO * away[:-1]) + 1:
        row = order[first:]
        half = 2 * np.bincount(codes[row], minlength=len(size)) >= size
        if first >= least and len(row) <= max(_FEW, len(x) // _SHARE) and not half[codes[row]].any():
            return Wild(row, np.full(len(row), column), away[first:] / away[first - 1])
    return Wild(order[:0], order[:0], away[:0])


def completed(rows: Rows, wild: Wild, bend: bool) -> Rows:
    """Return the rows with the conditional expectations of wild entries in their places."""
    x = rows.x.copy()
    x[wild.row, wild.column] = np.nan
    few = np.union1d(sample(rows.codes, _LEARN, np.random.default_rng(0)), wild.row)
    learn = replace(rows, x=x).take(few)
    training = Training(learn, learn, bend)
    x[wild.row, wild.column] = training.warp.back(training.complete)[np.searchsorted(few, wild.row), wild.column]
    return replace(rows, x=x)


def tell(
    wild: Wild,
    x,
    names: Sequence[str],
    places,
    dates: Sequence[str] = (),
    given: Sequence[str] = (),
    *,
    kept: bool = False,
) -> None:
    """Warn of wild entries of numbers (n, D).

    Parameters
    ----------
    wild : Wild
    x : array, shape (n, D)
        The numbers.
    names : sequence of str
        Names of the columns.
    places : int array, shape (n,)
        Places of the rows in the user's table.
    dates : sequence of str, optional
        Columns that are days since 1970-01-01.
    given : sequence of str, optional
        Names of classifiers of the user's, which learn from the rows as they are.
    kept : bool, default False
        True where all members do.
    """
    entries = [(names[j], x[i, j], int(places[i]), times) for i, j, times in zip(*wild, strict=True)]
    shown = [str(moments([value])[0])[:10] if name in dates else f"{value:g}" for name, value, _, _ in entries]
    text = several(
        f"column {name!r}: value {value} in row {row} is {times:.3g} times as far from the middle as its others"
        for (name, _, row, times), value in zip(entries, shown, strict=True)
    )
    name, value, row, _ = entries[0]
    facts = {"column": name, "row": row, "value": float(value)}
    if kept:
        warn(InputWarning(f"{text}: it is learned from as it is, as wild='keep' asks", **facts))
        return
    text = f"{text}: it is taken as missing, and what its class and row let expect stands for it"
    text += f" (members={listed(given)}, classifiers of your own, learn from it as it is)" if given else ""
    cure = "" if name in dates else "; if it is right, give wild='keep', or the logarithm or the ranks of the column"
    warn(InputWarning(f"{text}. Mend it or give NaN{cure}", **facts))


def refuse_far(x, names: Sequence[str], places) -> None:
    """Raise if a value lies so far from the others of its column that its square hides them."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns without a value
        away = np.abs(x - np.nanmedian(x, 0))
        times = np.nan_to_num(away / np.nanmedian(np.where(away > 0, away, np.nan), 0))
    if times.max(initial=0) > _FARTHEST:
        row, place = np.unravel_index(times.argmax(), times.shape)
        raise ValueError(
            f"column {names[place]!r}: value {x[row, place]:g} in row {places[row]} is {times[row, place]:.0e} times "
            "as far from the middle of the column as most others, which its square hides: mend it, or leave the row out"
        )
