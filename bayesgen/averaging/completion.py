"""Entries that are wild, completed: their conditional expectations stand for them while the average is learned.

They are given the class and the row's other numbers, as of gaps at fit (`view.Filling`), once and for all members. As a
gap a wild entry would move other rows about as much (.039 in the median of 58 entries, .032 completed), and every fold
would have to complete it anew (`docs/mathematics/averaged.md`, "Wild entries").
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.view import Training
from bayesgen.numerics.folds import sample
from bayesgen.tables.wild import Wild

_LEARN = 5000  # rows that what completes an entry is learned from
_FARTHEST = 1e50  # times the spread of a column: bent columns square it, and densities square that


def completed(rows: Rows, wild: Wild, bend: bool) -> Rows:
    """Return the rows with the conditional expectations of wild entries in their places."""
    x = rows.x.copy()
    x[wild.row, wild.column] = np.nan
    few = np.union1d(sample(rows.codes, _LEARN, np.random.default_rng(0)), wild.row)
    learn = replace(rows, x=x).take(few)
    training = Training(learn, learn, bend)
    x[wild.row, wild.column] = training.warp.back(training.complete)[np.searchsorted(few, wild.row), wild.column]
    return replace(rows, x=x)


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
