r"""Rows that repeat another, class and all: their number, how many chance makes, and which are copies.

**By chance** columns are independent within each class, with the values that they have there. So the values of every
column are shuffled within the class: a shuffled table has as many repeats as chance makes, and their mean over shuffles
is unbiased. In tables of few categories chance makes nearly all of them, and rows that agree are rows like any other.

**Copies** are repeats of which chance explains almost none (a twentieth at most), whatever columns depend on each
other. If row i is drawn anew, and h is the probability that it agrees with row i' in column j where both agree in all
others, chance makes h/(1 - h) pairs that agree in all columns for each pair that differs in column j alone. Copies come
without such near twins; coarse columns that depend on each other do not: rows that agree in all but one column, or but
the class, are many there. So near twins have to be few too. Copies of less than a twentieth of the rows, or of a
class that is one row and its copies, are told and move no fold.

**Where to look.** A fit of one model takes no longer than its sums, and few tables have such repeats. Equal rows have
equal sums s_i = Σ_j x_ij sin j, and others do not but by chance; of many rows those are looked at whose s_i lies in
narrow stripes, where all copies of a row lie too (`warn_of_repeats`). In tables of few categories rows agree by
chance, and counting these would take ten times as long as the fit. Two rows of a class agree in column j with a
probability a_j, and in all columns with about Π_j a_j; so chance makes about n/2 · P(same class) Π_j a_j repeats for
each of n rows, by pairs that are drawn. Where that is not next to none, no copies can be told from chance.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from bayesgen.core.errors import InputWarning, counted, warn
from bayesgen.tables.marks import hash_array
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import Table

REPEATS = "repeats"  # kind of the warning of a fit of one model
_SHUFFLES, _ROWS = 20, 50_000  # of a table, and fewer from so many rows together on
_FEW = 0.05  # of the rows, and of the repeats: fewer are almost none
_VALUES = 20  # of a column; where all have fewer, rows may agree for want of values
_LEAST, _MOST, _LOOK = 20, 100_000, 1000  # rows of the fit of one model, and those whose sums are compared
_PAIRS, _AGREE = 2000, 0.01  # of rows that are drawn; repeats by chance for each row, above which there is no telling
_TIMES = 20  # as often as rows are, on average, up to which weights are times


@dataclass(frozen=True)
class Repeats:
    """Rows that repeat another, class and all."""

    rows: int  # all rows, each as often as its weight says
    count: int  # those that repeat one before
    weighted: bool = False  # a weight says how often a row is there
    chance: float = 0.0  # as many would by chance
    unlikely: bool = False  # they are not few, chance explains almost none, and they are no want of values
    copies: np.ndarray | None = None  # (n,), or None: which of the distinct rows each is; None if they are no copies

    def __bool__(self):
        """Return True if more rows repeat another than chance makes, by three standard deviations."""
        return bool(self.count > self.chance + 3 * np.sqrt(self.chance))

    def __str__(self):
        verb, chance = ("repeats" if self.count == 1 else "repeat"), f"{self.chance:.1f}".removesuffix(".0")
        rows = counted(self.rows, "row") + " by weight" * self.weighted
        return f"{self.count} of {rows} {verb} another, class and all; by chance {chance} would"

    def told(self, groups: str, split: str = "") -> str:
        """Return the sentence that tells it, and how to give ``groups``, or what splits the rows already, ``split``."""
        text = str(self)
        if split and self.unlikely:
            return f"{text}: copies of one measurement that are not held out together by {split} make scores too good"
        if self.copies is not None:
            return f"{text}: taken for copies, which are held out together unless {groups} says what rows belong to"
        if self.count < _FEW * self.rows:
            return text
        return f"{text}: if they are copies of one measurement, scores are too good; {groups} holds them out together"


def warn_of_repeats(schema: Schema, blocks, codes) -> None:
    """Warn of rows that repeat another, if they are not few and chance explains almost none, in a fit of one model.

    ``blocks`` are rows as the schema reads them, ``codes`` (n,) their classes. Not looked at are tables of so few
    categories that rows agree for want of values, fewer than 20 rows, which show it themselves, and more than 100,000:
    whether rows that agree have near twins takes a pass over the rows for each column, and several times the fit.
    """
    coarse = all(block.categories is not None or block.leaf == "bernoulli" for block in schema.blocks)
    if not _LEAST <= len(codes) <= _MOST or (coarse and _agreeing(blocks.values(), codes) > _AGREE):
        return
    if not _may_repeat(blocks.values()):
        return
    each = (rows.toarray() if sparse.issparse(rows) else rows.reshape(len(codes), -1) for rows in blocks.values())
    found = repeats((column for rows in each for column in rows.T), codes)
    if found.unlikely:
        cure = "X.drop_duplicates() leaves one of each"
        text = f"{found}: if they are copies of one measurement, its probabilities are too sure; {cure}"
        warn(InputWarning(text, kind=REPEATS))


def _agreeing(blocks, codes) -> float:
    """Return about how many repeats chance makes for each row, by pairs of rows that are drawn; see the module."""
    one, other = np.random.default_rng(0).integers(0, len(codes), (2, _PAIRS))
    same = (codes[one] == codes[other]) & (one != other)
    result = len(codes) / 2 * same.mean()
    for rows in blocks if same.any() else ():
        if not sparse.issparse(rows):
            first, second = rows[one[same]], rows[other[same]]
            result *= np.prod(((first == second) | (first != first) & (second != second)).mean(0))
    return float(result)


def _may_repeat(blocks) -> bool:
    """Return False if hardly any rows repeat another, by one sum of each."""
    total: Any = 0.0
    for number, rows in enumerate(blocks):
        if not sparse.issparse(rows) and rows.dtype.kind not in "fiub":
            return False
        wave = np.sin(np.arange(1.0, 1 + math.prod(rows.shape[1:])) + 100 * number)
        total = total + (rows if sparse.issparse(rows) else rows.reshape(len(rows), -1)) @ wave
    if np.isnan(total @ total):
        return True
    size = np.abs(total).max()
    if len(total) > 2 * _LOOK and size > 0:
        stripe = total * (1e7 / size)
        total = total[stripe - np.floor(stripe) < _LOOK / len(total)]
    total.sort()
    same = np.count_nonzero(total[1:] - total[:-1] <= 1e-12 * size)
    return bool(2 * same >= _FEW * len(total))


def columns_of(X) -> Iterator[np.ndarray]:
    """Yield the columns (n,) of rows as users bring them, as numbers or codes of values; none of a sparse matrix."""
    table = Table(X)
    for column in () if table.sparse else table.columns:
        numbers = table.kind(column) in ("b", "f")
        yield table.numbers((column,))[:, 0] if numbers else pd.factorize(table.labels(column))[0]


def repeats(columns: Iterable[np.ndarray], codes, weight=None) -> Repeats:
    """Return the repeats among rows of some columns (n,), numbers or codes, of classes with ``codes`` (n,).

    A ``weight`` (n,) of whole numbers, 20 at most on average, says how often a row is there; other weights do not.

    >>> x = np.array([0.5, 1.5, 2.5, 3.5, 4.5, 0.5, 1.5])
    >>> repeats([x, 10 - x], np.array([0, 0, 1, 1, 1, 0, 0])).told("groups=")[:43]
    '2 of 7 rows repeat another, class and all; '
    """
    whole = weight is not None and bool((weight % 1 == 0).all()) and weight.mean() <= _TIMES
    times = np.asarray(weight).astype(np.intp) if whole else np.ones(len(codes), np.intp)
    total, salt, one = int(times.sum()), np.random.default_rng(0), np.uint64(1)
    hashes, sums = [], np.zeros(len(codes), np.uint64)
    for number, column in enumerate(itertools.chain([codes], columns)):
        hashes.append(hash_array(np.asarray(column, float) + 0.0) * (salt.integers(1 << 64, dtype=np.uint64) | one))
        sums = sums + hashes[-1]
        if number & (number - 1) == 0 and len(codes) == total and len(pd.unique(sums)) == total:
            return Repeats(total, 0)  # a few columns tell most tables of numbers
    which, found = pd.factorize(sums)
    if total == len(found):
        return Repeats(total, 0)
    count, cells = total - len(found), np.stack(hashes, 1)
    chance = _by_chance(cells if (times == 1).all() else cells.repeat(times, 0), salt)
    told = Repeats(total, count, total > len(codes), chance)
    if chance > _FEW * count or count < _FEW * total:
        return told
    first = np.unique(which, return_index=True)[1]
    several = np.unique(np.asarray(codes)[first], return_counts=True)[1].min() > 1
    if several and _near_twins(cells[first], np.bincount(which, times)) <= _FEW * count:
        return replace(told, unlikely=True, copies=which)
    return replace(told, unlikely=any(len(pd.unique(column)) > _VALUES for column in cells.T[1:]))


def _by_chance(cells, rng) -> float:
    """Return the mean number of repeats among rows (n, 1 + C), classes first, shuffled within the class by column."""
    cells = cells[np.lexsort((cells.sum(1), cells[:, 0]))]  # whatever the order of the rows
    ends = np.flatnonzero(np.diff(cells[:, 0])) + 1
    found = []
    for _ in range(max(1, min(_SHUFFLES, _ROWS // len(cells)))):
        mixed = np.concatenate([rng.permuted(rows, axis=0) for rows in np.split(cells, ends)])
        found.append(len(cells) - len(pd.unique(mixed.sum(1))))
    return float(np.mean(found))


def _near_twins(cells, times) -> int:
    """Return how many rows, by the times of the distinct ones (m, 1 + C), differ from another in one column alone."""
    whole, near = cells.sum(1), np.zeros(len(cells), bool)
    for column in cells.T:
        near |= pd.Series(whole - column).duplicated(keep=False).to_numpy()
    return int(times[near].sum())
