"""Training data of the members: rows to learn from, rows to sum, and the bent and completed rows that members share."""

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesgen.averaging.gaps import Filling, Missing, cells
from bayesgen.averaging.given import Given
from bayesgen.averaging.rows import Rows, weighted_back
from bayesgen.averaging.warp import YeoJohnson
from bayesgen.numerics.folds import sample
from bayesgen.numerics.pieces import pieces, taken
from bayesgen.numerics.sums import finite

_KEPT = 1 << 24  # entries of bent rows that are kept for the next family


@dataclass(frozen=True)
class Setting:
    """The user's choices.

    Attributes
    ----------
    evidence : bool
        Whether weights come from evidences, which only some members have.
    pairs : tuple of (str, estimator)
        Classifiers of the user's that are members, with their names.
    """

    evidence: bool = False
    pairs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Bent:
    """Bent and completed rows to sum.

    Attributes
    ----------
    y : array, shape (n, D)
        Rows, sorted by class.
    codes, weight : array, shape (n,)
        Classes of the rows, and weights, or None where all are 1.
    missing : Missing or None
        Covariances of the completed entries; None where no row has gaps.
    """

    y: np.ndarray
    codes: np.ndarray
    weight: np.ndarray | None
    missing: Missing | None


@dataclass(frozen=True)
class Training:
    """Rows of one fit; derived quantities are worked out once for all families.

    Attributes
    ----------
    rows : Rows
        Rows to learn from: bends, centres of components, means and covariance to complete gaps.
    summed : Rows
        Rows to sum; rows left out are subtracted from these sums.
    bend : bool
        Whether columns are bent.
    seed : int
        Seed of random draws.
    given : Given, optional
        The rows to learn from as the user gave them, each of those that are identical.
    bends : dict
        Bends that were learned from these rows, or some of them, by their places: families share folds.
    places : tuple of bytes
        The places of the rows to learn from among all; () for all of them.
    jobs : int, optional
        Classifiers of the user's that are fitted side by side, as joblib counts them; default one.
    """

    rows: Rows
    summed: Rows
    bend: bool = True
    seed: int = 0
    given: Given | None = None
    bends: dict[tuple[bytes, ...], YeoJohnson] = field(default_factory=dict)
    places: tuple[bytes, ...] = ()
    jobs: int | None = None

    def on(self, places, seed: int) -> "Training":
        """Return the training that learns from some rows, and sums all."""
        own = (*self.places, places.tobytes())
        return Training(self.rows.take(places), self.summed, self.bend, seed, None, self.bends, own)

    def without(self, places) -> "Training":
        """Return the training on all rows but some, and but the rows of their groups; of few rows the same each time.

        Families that are fitted without the same rows then share what is derived from the rest.
        """
        key = np.asarray(places).tobytes()
        if key in self._rests:
            return self._rests[key]
        gone, group = np.isin(np.arange(len(self.rows)), places), self.rows.group
        rest = np.flatnonzero(~gone if group is None else ~np.isin(group, group[gone]))
        rows, given = self.rows.take(rest), None if self.given is None else self.given.rows(rest)
        result = Training(rows, rows, self.bend, self.seed, given, self.bends, (*self.places, rest.tobytes()))
        if (1 + len(self._rests)) * rows.x.size <= _KEPT:
            self._rests[key] = result
        return result

    @functools.cached_property
    def _rests(self) -> "dict[bytes, Training]":
        return {}

    def narrowed(self, columns) -> "Training":
        """Return the training on some columns, without leaves; those of categories are counted from D."""
        dim = self.rows.x.shape[1]
        numbers, categories = columns[columns < dim], columns[columns >= dim] - dim
        return self.changed(lambda rows: rows.columns(numbers, categories), numbers)

    def changed(self, change: Callable[[Rows], Rows], numbers) -> "Training":
        """Return the training on a table that ``change`` makes of the rows, which keeps the numbers at some places."""
        rows = change(self.rows)
        summed = rows if self.summed is self.rows else change(self.summed)
        return Training(rows, summed, self.bend, self.seed, bends={(): self.warp.take(numbers)})

    def at_most(self, count: int, out) -> "tuple[Training, np.ndarray]":
        """Return the training on a stratified sample with the rows at some places, and their places in it."""
        if len(self.rows) <= max(count, len(out)):
            return self, out
        places = np.union1d(sample(self.rows.ranks, count, np.random.default_rng(self.seed)), out)
        rows = self.rows.take(places)
        rows = rows.take(slice(None), weighted_back(rows, self.rows))
        return Training(rows, rows, self.bend, self.seed), np.searchsorted(places, out)

    @functools.cached_property
    def warp(self) -> YeoJohnson:
        """The bends of the columns."""
        rows = self.rows
        if self.places not in self.bends:
            self.bends[self.places] = YeoJohnson.learn(rows.x, rows.codes, rows.classes, rows.weight, self.bend)
        return self.bends[self.places]

    @functools.cached_property
    def filling(self) -> Filling | None:
        """Means and covariance to complete gaps from; None where no row to sum has any."""
        rows = self.rows
        if finite(self.summed.x):
            return None
        return Filling.learn(self.bent, ~np.isnan(rows.x), rows.codes, rows.classes, rows.weight)

    @functools.cached_property
    def bent(self) -> np.ndarray:
        """The rows to learn from, bent, (n, D), NaN where missing."""
        return self.warp.forward(self.rows.x)

    @functools.cached_property
    def complete(self) -> np.ndarray:
        """The rows to learn from, bent and completed, (n, D)."""
        if self.filling is None:
            return self.bent
        return self.filling.complete(self.bent, ~np.isnan(self.rows.x), self.rows.codes)[0]

    @functools.cached_property
    def halves(self) -> dict:
        """Halves of the completed rows that were found for some number of components, for other numbers."""
        return {}

    @property
    def parts(self) -> Iterable[Bent]:
        """The rows to sum, bent, in pieces."""
        small = len(self.summed) * _cells(self.summed, self.filling) <= _KEPT
        return self._parts if small else bent(self.summed, self.warp, self.filling)

    @functools.cached_property
    def _parts(self) -> list[Bent]:
        return list(bent(self.summed, self.warp, self.filling))


def bent(rows: Rows, warp: YeoJohnson, filling: Filling | None) -> Iterator[Bent]:
    """Yield rows bent and completed, in pieces."""
    kind, weight = np.min_scalar_type(rows.classes - 1), None if (rows.weight == 1).all() else rows.weight
    for part in pieces(len(rows), _cells(rows, filling)):
        order = np.argsort(rows.codes[part].astype(kind), kind="stable") + part.start  # for `assign`
        y, own, missing = warp.forward(rows.x[order]), rows.codes[order], None
        if filling is not None:
            y, missing = filling.complete(y, ~np.isnan(y), own)
        yield Bent(y, own, taken(weight, order), missing)


def _cells(rows: Rows, filling: Filling | None) -> int:
    """Return the entries that a bent row takes, with the covariances of its gaps."""
    return rows.x.shape[1] if filling is None else cells(~np.isnan(rows.x))
