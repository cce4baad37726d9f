"""Rows that repeat another, class and all: their number, how many chance makes, and which are copies.

Rows that agree are rows like any other: four answers of yes and no agree in hundreds of people. Copies, which stand
twice in a table though they were measured once, are told from these by three signs. Pairs that agree in all columns are
hardly ever of different classes. Pairs that agree in a fine column of numbers agree in all others five times as often
as pairs at its neighbouring values do; or, where no column is fine, hardly a row differs from another in one column
alone, and hardly one repeats another in a table whose columns are shuffled within the class. "Copies are one row" in
`docs/mathematics/averaged.md` derives these, and where a fit of one model, which takes no longer than its sums, looks
for repeats (`likely_copies`).

Rows without a rare value in any fine column are not joined. Copies of less than a twentieth of the rows, or of a class
that is one row and its copies, are told and move no fold.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from bayesgen.core.errors import Argument, Note, counted
from bayesgen.tables.marks import hash_array
from bayesgen.tables.table import Table

_SHUFFLES, _ROWS = 20, 50_000  # of a table, and fewer from so many rows together on
_FEW = 0.05  # of the rows, of the repeats, of pairs: fewer are almost none
_VALUES = 20  # of a column of numbers, beyond which it may be fine
_OFTEN = 0.1  # of the rows: a value of more, such as no income, is a place where rows agree
_NEAR = 0.2  # share of the pairs that agree which neighbours may explain
_ODD = np.uint64(0x9E3779B97F4A7C15)  # hashes one step apart
_SAME, _SAME_ROWS = 1e-5, 5000  # standard deviations by which numbers that agree differ, up to so many rows
_LEAST, _MOST = 20, 100_000  # rows of the fit of one model
_LOOK, _DRAWN = 300, 10  # rows up to which all are summed; of more, times the root of their number, that are drawn
_PAIRS, _AGREE = 2000, 0.01  # of rows that are drawn; repeats by chance for each row, above which there is no telling


@dataclass(frozen=True)
class Repeats:
    """Rows that repeat another, class and all."""

    rows: int  # all rows
    count: int  # those that repeat one before
    chance: float = 0.0  # as many would if columns were independent within the classes
    beyond: bool = False  # there are more than chance, other classes and neighbours explain
    copies: np.ndarray | None = None  # (n,), or None: which of the distinct rows each is; None if they are no copies

    def __bool__(self):
        return self.beyond

    @property
    def unlikely(self) -> bool:
        """True if rows beyond chance are not few."""
        return self.beyond and self.count >= _FEW * self.rows

    def __str__(self):
        verb, chance = ("repeats" if self.count == 1 else "repeat"), f"{self.chance:.1f}".removesuffix(".0")
        return f"{self.count} of {counted(self.rows, 'row')} {verb} another, class and all; by chance {chance} would"

    def told(self, groups: Argument | None = None, split: Sequence[str] = ()) -> Note:
        """Return the sentence that tells it, and how to give ``groups``, or what splits the rows already, ``split``."""
        text, groups = str(self), groups or Argument("groups")
        if split and self.unlikely:
            apart = f"{text}: copies of one measurement that are not held out together by "
            return Note(apart, Note(*map(Argument, split), between=" and "), " make scores too good")
        if self.copies is not None:
            taken = f"{text}: taken for copies, which are held out together unless "
            return Note(taken, groups, " says what rows belong to")
        if not self.unlikely:
            return Note(text)
        together = ": if they are copies of one measurement, scores are too good; ", groups, " holds them out together"
        return Note(text, *together)


def likely_copies(schema, blocks, codes) -> Repeats | None:
    """Return the rows that repeat another, if they are not few and chance explains almost none, in a fit of one model.

    ``blocks`` are rows as the schema reads them, ``codes`` (n,) their classes. Not looked at are tables of so few
    categories that rows agree for want of values, fewer than 20 rows, which show it themselves, and more than 100,000:
    whether rows that agree have near twins takes a pass over the rows for each column, and several times the fit.
    """
    coarse = all([block.categories is not None or block.leaf == "bernoulli" for block in schema.blocks])
    if not _LEAST <= len(codes) <= _MOST or (coarse and _agreeing(blocks.values(), codes) > _AGREE):
        return None
    if not _may_repeat(blocks.values()):
        return None
    found = repeats(_columns(schema, blocks, len(codes)), codes)
    return found if found.unlikely else None


def _columns(schema, blocks, rows: int) -> Iterator[np.ndarray]:
    """Yield the columns (n,) of blocks, those of categories as whole numbers."""
    coded = {block.name for block in schema.blocks if block.categories is not None}
    for name, block in blocks.items():
        for column in (block.toarray() if sparse.issparse(block) else block.reshape(rows, -1)).T:
            yield np.nan_to_num(column, nan=-1.0).astype(np.intp) if name in coded else column


def _agreeing(blocks, codes) -> float:
    """Return about how many repeats chance makes for each row, by pairs of rows that are drawn."""
    one, other = np.random.default_rng(0).integers(0, len(codes), (2, _PAIRS))
    same = (codes[one] == codes[other]) & (one != other)
    result = len(codes) / 2 * same.mean()
    for rows in blocks if same.any() else ():
        if not sparse.issparse(rows):
            first, second = rows[one[same]], rows[other[same]]
            result *= np.prod(((first == second) | (first != first) & (second != second)).mean(0))
    return float(result)


def _may_repeat(blocks) -> bool:
    """Return False if hardly any rows repeat another, by one sum of each of them, or of many that are drawn."""
    total: Any = 0.0
    blocks = [*blocks]
    places = _drawn(count := blocks[0].shape[0])
    for number, rows in enumerate(blocks):
        if not sparse.issparse(rows) and rows.dtype.kind not in "fiub":
            return False
        wave, rows = _wave(math.prod(rows.shape[1:]), number), rows[places]
        total = total + (rows if sparse.issparse(rows) else rows.reshape(len(rows), -1)) @ wave
    total.sort()  # NaN, of a gap, to the end
    same = np.count_nonzero(total[1:] - total[:-1] <= 1e-12 * max(-total[0], total[-1]))
    return np.isnan(total[-1]) or 4 * same >= _FEW * len(places) ** 2 / count


@functools.lru_cache(4)
def _wave(columns: int, number: int) -> np.ndarray:
    """Return weights of the columns of a block, by which rows that differ have different sums."""
    return np.sin(np.arange(1.0, 1 + columns) + 100 * number)


@functools.lru_cache(4)
def _drawn(count: int) -> np.ndarray:
    """Return the places of some of so many rows, drawn at random; of few rows those of all."""
    return np.random.default_rng(0).choice(count, min(count, max(_LOOK, _DRAWN * math.isqrt(count))), replace=False)


def columns_of(X) -> Iterator[np.ndarray]:
    """Yield the columns (n,) of rows as users bring them, as numbers or codes of values; none of a sparse matrix."""
    table = Table(X)
    for column in () if table.sparse else table.columns:
        numbers = table.kind(column) in ("b", "f")
        yield table.numbers((column,))[:, 0] if numbers else pd.factorize(table.labels(column))[0]


def repeats(columns: Iterable[np.ndarray], codes) -> Repeats:
    """Return the repeats among rows of some columns (n,), floats if numbers and ints if codes, of classes ``codes``.

    >>> x = np.array([0.5, 1.5, 2.5, 3.5, 4.5, 0.5, 1.5])
    >>> repeats([x, 10 - x], np.array([0, 0, 1, 1, 1, 0, 0])).told()[:43]
    '2 of 7 rows repeat another, class and all; '
    """
    total, salt, one = len(codes), np.random.default_rng(0), np.uint64(1)
    hashes, sums, measures = [], np.zeros(total, np.uint64), {}
    for number, column in enumerate(itertools.chain([codes], columns)):
        column, rare = _rare(np.asarray(column)) if number else (np.asarray(column, float), None)
        if rare is not None:
            measures[number] = column, rare
        hashes.append(hash_array(column) * (salt.integers(1 << 64, dtype=np.uint64) | one))
        sums = sums + hashes[-1]
        if number & (number - 1) == 0 and len(pd.unique(sums)) == total:
            return Repeats(total, 0)  # a few columns tell most tables of numbers
    which, found = pd.factorize(sums)
    if not (count := total - len(found)):
        return Repeats(total, 0)
    cells = np.stack(hashes, 1)
    told = Repeats(total, count, _by_chance(cells, salt))
    if _pairs(sums - hashes[0]) > (1 + _FEW) * _pairs(sums):
        return told
    first = np.unique(which, return_index=True)[1]
    if measures:
        fine = max(measures, key=lambda number: len(np.unique(measures[number][0])))
        told = replace(told, beyond=_by_neighbours(cells, measures, fine) <= _NEAR)
        rare = np.any([rare for _, rare in measures.values()], axis=0)
        which = np.where(rare, which, len(found) + np.arange(total))
    else:
        near = 1 + _near_twins(cells[first], np.bincount(which))
        told = replace(told, beyond=max(told.chance, near) <= _FEW * count)
    alone = np.unique(np.asarray(codes)[first], return_counts=True)[1].min() == 1
    return replace(told, copies=which) if told.unlikely and not alone else told


def _rare(column) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a column as floats, equal where they hardly differ, and True for the rare ones of a fine one, or None."""
    if column.dtype.kind != "f":
        return column.astype(float), None
    values, place, times = np.unique(column + 0.0, return_inverse=True, return_counts=True)  # -0 is 0
    if len(values) <= _VALUES:
        return values[place], None
    step = _SAME * min(1.0, _SAME_ROWS / len(column)) * np.nanstd(column)
    new = np.append(True, ~(np.diff(values) <= step))
    group = np.cumsum(new) - 1
    rare = np.bincount(group, times) <= max(1, _OFTEN * len(column))
    return values[new][group][place], rare[group][place] if rare.sum() > _VALUES else None


def _pairs(keys) -> float:
    times = np.unique(keys, return_counts=True)[1].astype(float)
    return float((times * (times - 1)).sum() / 2)


def _by_neighbours(cells, measures, fine: int) -> float:
    """Return the share of the pairs that agree in all columns, T a/A over t, that neighbours in a fine one explain.

    ``cells`` (n, 1 + C) are hashes of rows, classes first; ``measures`` are the columns of numbers and their rare
    entries, by place, and ``fine`` is the place of one of them.
    """
    value, rare = measures[fine]
    order = np.argsort(value[rare], kind="stable")
    steps = {number: np.diff(column[rare][order]) for number, (column, _) in measures.items()}
    same = [number for number, step in steps.items() if not ((step < 0).any() and (step > 0).any())]
    others = np.delete(cells, same, axis=1).sum(1)[rare]
    code, rank = (np.unique(v, return_inverse=True)[1] for v in (cells[rare, 0], value[rare]))
    block, place = np.unique(code * (rank.max() + 1) + rank, return_inverse=True)
    step = np.arange(len(block)) + block // (rank.max() + 1)  # no value of a class is next to one of another
    keys, times = np.unique(others + step[place].astype(np.uint64) * _ODD, return_counts=True)
    agree, pairs = _of_neighbours(keys, times), _of_neighbours(step.astype(np.uint64) * _ODD, np.bincount(place))
    (near, equal), (every, tied) = agree, pairs
    return (near + 2) / (every + 2) * tied / equal if equal else np.inf


def _of_neighbours(keys, times) -> tuple[float, float]:
    """Return the number of pairs of rows whose keys are one step apart, and equal, from keys (m,) and their times."""
    order = np.argsort(keys)
    keys, times = keys[order], times[order].astype(float)
    after = np.searchsorted(keys, keys + _ODD) % len(keys)
    near = (times * times[after])[keys[after] == keys + _ODD].sum()
    return float(near), float((times * (times - 1)).sum() / 2)


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
