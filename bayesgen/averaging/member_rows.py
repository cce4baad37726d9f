"""Rows as members take them: in order of content, in folds, and held out.

Each of the rows that agree leaves, is dealt to a fold and is drawn by trees (`docs/mathematics/averaged.md`). Folds are
dealt, and trees drawn, over the rows in sorted order, so that neither the order of the rows or columns, nor the names
of classes and categories, nor the units and signs of the columns changes a fit. What two columns, classes or categories
share, and beyond 5,000 rows the order of the rows, may still move which rows a fold holds.
"""

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bayesgen.numerics.content_order import Order, by_content, sorted_rows
from bayesgen.numerics.folds import folds
from bayesgen.numerics.pieces import taken

_ORDER = 5000  # rows, and up to twice as many, from which the order of columns and classes is found


@dataclass(frozen=True)
class Rows:
    """A table with its classes."""

    x: np.ndarray  # (n, D): numbers, NaN where missing
    c: np.ndarray  # int (n, F): categories, -1 where missing
    codes: np.ndarray  # int (n,): classes
    weight: np.ndarray  # (n,): weights > 0
    levels: tuple[int, ...]  # number of categories of each of the F columns
    classes: int
    group: np.ndarray | None = None  # int (n,): the group of each row; None where every row stands for itself
    # (n, E): entries of the columns that have a leaf of their own, NaN where missing; None if there are none
    e: np.ndarray | None = None
    shared: bool = False  # True if the rows of a group are the classes that share one row
    counted: bool = False  # True if a weight says how often a row is there; else a row leaves whole, whatever it weighs
    # rows that each is worth, (Σ w)²/Σ w² over their number: of copies by what was measured, of shares by rows
    each: float = 1.0

    def __len__(self):
        return len(self.codes)

    @functools.cached_property
    def order(self) -> Order:
        """Order of columns, classes, signs and levels by content."""
        sample = slice(None, None, max(1, len(self) // _ORDER))  # more rows hardly tell two columns apart better
        table = self.x[sample], self.c[sample], self.codes[sample], self.weight[sample]
        return by_content(*table, self.classes, self.levels)

    @property
    def ranks(self) -> np.ndarray:
        """Places of the classes of the rows in the order by content, (n,)."""
        return self.order.classes[self.codes]

    @property
    def worth(self) -> float:
        """The number of rows that these are worth."""
        return self.each * len(self)

    @property
    def count(self) -> np.ndarray:
        """Weight of each class, (K,)."""
        return np.bincount(self.codes, self.weight, self.classes)

    def ungrouped(self) -> "Rows":
        """Return the rows without groups if each is alone in its group."""
        alone = self.group is not None and len(np.unique(self.group)) == len(self)
        return replace(self, group=None, shared=False) if alone else self

    def by_content(self) -> np.ndarray:
        """Return the places of the rows in order of content, (n,): by class, entries, leaves, group and weight."""
        columns = numbered(*self.order.applied(self.x, self.c))[:, self.order.columns]
        more = [column for column in (self.e, self.group, self.weight) if column is not None]
        return sorted_rows(np.column_stack([columns, *more]), self.ranks)

    def take(self, places, weight=None) -> "Rows":
        """Return some of the rows."""
        weight = self.weight[places] if weight is None else weight
        arrays = {name: getattr(self, name) for name in ("x", "c", "codes", "group", "e")}
        return replace(self, weight=weight, **{name: taken(v, places) for name, v in arrays.items()})

    def units(self, places) -> "Rows":
        """Return the rows at some places; of rows that are there several times by their weights, one of these each."""
        return self.take(places, np.ones(len(places)) if self.counted else None)

    def columns(self, numbers, categories) -> "Rows":
        """Return some columns of numbers and of categories, without entries of leaves."""
        levels = tuple(self.levels[j] for j in categories)
        return replace(self, x=self.x[:, numbers], c=self.c[:, categories], levels=levels, e=None)

    def departing(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the place of each row, (n,), among the rows or groups in order, and the class of each of these.

        Groups come in the order of their first rows: their names have no part in it. They have the class of that row,
        and rows that classes share that of the largest share.
        """
        if self.group is None:
            return np.arange(len(self)), self.codes
        _, first, place = np.unique(self.group, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(first), np.intp)
        rank[order] = np.arange(len(first))
        if self.shared:
            largest = np.argsort(self.weight, kind="stable")
            first[place[largest]] = largest
        return rank[place], self.codes[first[order]]

    def without(self, places) -> np.ndarray:
        """Return the places of the rows that are neither at some places nor in a group that has a row there."""
        gone = np.isin(np.arange(len(self)), places)
        return np.flatnonzero(~gone if self.group is None else ~np.isin(self.group, self.group[gone]))

    def joined(self, places, fold) -> np.ndarray:
        """Return the folds of the rows at some places, joined until each has the share of all rows that a fold should.

        The model of a fold then learns from as many rows as if all were in folds, and fewer models are learned.
        """
        share = 1 - len(self.without(places)) / max(1, len(self))
        names, place = np.unique(fold, return_inverse=True)
        return place * max(1, math.ceil(share * len(names))) // max(1, len(names))

    def folds(self, count: int) -> np.ndarray:
        """Return the fold of each row, (n,); see `folds`. A group is dealt as a whole, by its first row."""
        place, codes = self.departing()
        return folds(self.order.classes[codes], count)[place]


@dataclass(frozen=True)
class HeldOut:
    """Rows to predict from all others: a row leaves by itself, with one row of each other class, or with its group."""

    data: Rows  # all rows
    rows: Rows  # the n rows to predict
    # the m rows that leave, each with the weight that leaves. They are ``rows`` where each leaves by itself.
    gone: Rows
    places: np.ndarray  # (m,): their places in the data
    gone_with: np.ndarray  # (m,): the departure 0, ..., B - 1 with which each of them leaves
    without: np.ndarray  # (n,): the departure without which each row is predicted
    single: bool  # True if each row leaves by itself

    @classmethod
    def of(cls, data: Rows, places) -> "HeldOut":
        """Hold out the rows at some places: each whole, or one of as many as its weight counts, or its whole group."""
        rows = data.units(places)
        if data.group is None:
            alone = np.arange(len(rows))
            return cls(data, rows, rows, np.asarray(places), alone, alone, True)
        groups, without = np.unique(data.group[places], return_inverse=True)
        leaving = np.flatnonzero(np.isin(data.group, groups))
        gone_with = np.searchsorted(groups, data.group[leaving])
        return cls(data, rows, data.take(leaving), leaving, gone_with, without, False)

    @classmethod
    def balanced(cls, data: Rows, places, fold=None) -> "HeldOut":
        """Hold out the rows at some places, each with one row of every other class.

        If a row left by itself, members could tell its class by what is missing (`docs/mathematics/averaged.md`). A
        class of one row leaves only when that row is predicted. Rows come by their folds, if they have any: those of
        equal classes then leave with rows of their own fold, which is predicted at once. A row that classes share
        leaves with all its shares, and is of the class of the largest.
        """
        rows, places = data.units(places), np.asarray(places)
        unit, codes = rows.departing()
        dealt = np.zeros(len(codes))
        dealt[unit] = 0.0 if fold is None else fold
        shuffled = np.random.default_rng(0).permutation(len(codes))
        order, count = np.lexsort((shuffled, dealt, codes)), np.bincount(codes, minlength=data.classes)
        first, largest = np.cumsum(count) - count, np.zeros(data.classes)
        np.maximum.at(largest, rows.codes, rows.weight)
        several = data.count > largest * (1 + 1e-9)  # a class keeps something
        without = np.empty(len(codes), np.intp)
        without[order] = np.arange(len(codes)) - first[codes[order]]
        most = int(count.max(initial=0))
        turns = {k: np.arange(most if several[k] else 1) for k in np.flatnonzero(count)}
        gone = np.concatenate([order[first[k] + turn % count[k]] for k, turn in turns.items()] or [without])
        gone_with = np.concatenate([*turns.values()] or [without])
        leaving, unit_of = places, unit
        if data.group is not None and rows.group is not None:
            leaving = np.flatnonzero(np.isin(data.group, rows.group))
            group, place = np.unique(rows.group, return_index=True)
            unit_of = unit[place[np.searchsorted(group, data.group[leaving])]]
        by_unit, size = np.argsort(unit_of, kind="stable"), np.bincount(unit_of, minlength=len(codes))
        last = np.cumsum(size[gone])  # all rows of each unit that leaves, one after the other
        shift = np.repeat((np.cumsum(size) - size)[gone] - last + size[gone], size[gone])
        gone_rows, gone_with = by_unit[shift + np.arange(len(shift))], gone_with.repeat(size[gone])
        leaves = rows if data.group is None else data.take(leaving)
        return cls(data, rows, leaves.take(gone_rows), leaving[gone_rows], gone_with, without[unit], False)

    def __len__(self):
        return len(self.rows)

    def take(self, places) -> "HeldOut":
        """Return some of the rows to predict, with what leaves with them."""
        departures, without = np.unique(self.without[places], return_inverse=True)
        kept = np.flatnonzero(np.isin(self.gone_with, departures))
        gone_with = np.searchsorted(departures, self.gone_with[kept])
        return replace(
            self,
            rows=self.rows.take(places),
            gone=self.gone.take(kept),
            places=self.places[kept],
            gone_with=gone_with,
            without=without,
        )

    def others(self, departure: int) -> Rows:
        """Return all rows but those of a departure."""
        weight, gone = self.data.weight.copy(), self.gone_with == departure
        weight[self.places[gone]] -= self.gone.weight[gone]
        return self.data.take(weight > 0, weight[weight > 0])

    def log_class_prior(self, concentration) -> np.ndarray:
        """Return the log class probabilities without each row and what leaves with it, (n, K), under a Dirichlet."""
        data = self.data
        leaving = self.sums(self.gone.weight[:, None] * np.eye(data.classes)[self.gone.codes])
        remaining = (data.count - leaving[self.without]).clip(0) + concentration
        return np.log(remaining / remaining.sum(1, keepdims=True))

    def sums(self, values) -> np.ndarray:
        """Return the sums of values (m, ...) of the rows that leave, by departure, (B, ...)."""
        result = np.zeros((int(self.gone_with.max(initial=-1)) + 1, *values.shape[1:]))
        np.add.at(result, self.gone_with, values)
        return result


def numbered(x, c) -> np.ndarray:
    """Return numbers (n, D) and the codes of categories (n, F) as one matrix, NaN where missing."""
    return np.concatenate([x, np.where(c < 0, np.nan, c)], axis=1)


def indicated(c, levels):
    """Return a sparse matrix (n, L) with ones at the levels of each row, of categories (n, F)."""
    seen = c >= 0
    place = (c + np.cumsum(levels) - levels)[seen]  # row by row, in order
    ends = np.concatenate([[0], seen.sum(1).cumsum()])
    return sparse.csr_array((np.ones(len(place)), place, ends), shape=(len(c), int(levels.sum())))


def without_entries(x, c) -> np.ndarray:
    """Return True for the rows whose numbers (n, D) and categories (n, F) are all missing."""
    return np.isnan(x).all(1) & (c < 0).all(1)


def log_frequencies(codes, weight, classes: int) -> np.ndarray:
    """Return the log class frequencies of rows, (K,), each class with one row more than it has."""
    count = np.bincount(codes, weight, classes) + 1.0
    return np.log(count / count.sum())


def weighted_back(sample: Rows, data: Rows) -> np.ndarray:
    """Return weights of a sample under which each class has its share of all rows."""
    sampled = sample.count
    weight = sample.weight * (data.count / np.where(sampled > 0, sampled, 1.0))[sample.codes]
    return weight * (sample.weight.sum() / weight.sum())
