r"""Training data of the members, and views of its numeric columns: bends, completion of gaps, and groups.

A `Training` has rows to learn from and rows to sum, and keeps the bent and completed rows that families share. A `View`
holds all that is learned from rows and cannot be subtracted: bends, centres of components, means and covariance to
complete gaps. What can be subtracted is in `fitted_view.FittedView`.

Components are found by k-means within each class, and the conjugate members take them as groups. The centres are
learned, and a row belongs to the nearest centre of its class. So the centres are learned without the rows that are left
out, and the statistics of the groups subtract these rows.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesgen.averaging.member_rows import HeldOut, Rows, weighted_back
from bayesgen.averaging.preparation import WIDE, Filling, Missing, YeoJohnson, cells, far_rows
from bayesgen.core.program import Record
from bayesgen.models.moments import Moments, moments
from bayesgen.numerics.checks import check_memory
from bayesgen.numerics.components import fit_components, nearest_group
from bayesgen.numerics.folds import sample
from bayesgen.numerics.pieces import pieces, taken
from bayesgen.numerics.sums import finite

_COPIES, _BY_CLASS = 40, 60  # numbers that a fit holds at most, for each of a wide table, and of a mean of a class
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
    given: Any = None
    bends: dict[tuple[bytes, ...], YeoJohnson] = field(default_factory=dict)
    places: tuple[bytes, ...] = ()
    jobs: int | None = None

    def on(self, places, seed: int) -> "Training":
        """Return the training that learns from some rows, and sums all."""
        key = (*self.places, places.tobytes())
        return Training(self.rows.take(places), self.summed, self.bend, seed, None, self.bends, key)

    def without(self, places) -> "Training":
        """Return the training on all rows but some, and but the rows of their groups; of few rows the same each time.

        Families that are fitted without the same rows then share what is derived from the rest.
        """
        key = np.asarray(places).tobytes()
        if key in self._rests:
            return self._rests[key]
        others = self.rows.without(places)
        rows, given = self.rows.take(others), None if self.given is None else self.given.rows(others)
        result = Training(rows, rows, self.bend, self.seed, given, self.bends, (*self.places, others.tobytes()))
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
    for batch in pieces(len(rows), _cells(rows, filling)):
        order = np.argsort(rows.codes[batch].astype(kind), kind="stable") + batch.start  # for `assign`
        y, codes, missing = warp.forward(rows.x[order]), rows.codes[order], None
        if filling is not None:
            y, missing = filling.complete(y, ~np.isnan(y), codes)
        yield Bent(y, codes, taken(weight, order), missing)


def _cells(rows: Rows, filling: Filling | None) -> int:
    """Return the entries that a bent row takes, with the covariances of its gaps."""
    return rows.x.shape[1] if filling is None else cells(~np.isnan(rows.x))


@dataclass(frozen=True, eq=False)
class View(Record):
    """The transformation of rows for some members: bends, completion of gaps, and groups.

    Attributes
    ----------
    warp : YeoJohnson
        The transformation of the columns.
    filling : Filling or None
        Means and covariance to complete gaps from; None where no row has any.
    centres : array, shape (G, D)
        Centres of the groups, in bent columns.
    owner : int array, shape (G,)
        The class of each group, in order.
    by_column : bool
        True if all members take the columns as independent.
    """

    warp: YeoJohnson
    filling: Filling | None
    centres: np.ndarray
    owner: np.ndarray
    by_column: bool = False

    @classmethod
    def learn(cls, training: Training, count: int) -> "View":
        """Learn a view with ``count`` components per class."""
        rows = training.rows
        labelled = training.complete, rows.codes, rows.classes, rows.weight
        groups = fit_components(*labelled, count, training.halves)
        return cls(training.warp, training.filling, *groups, rows.x.shape[1] > WIDE)

    @property
    def classes(self) -> int:
        """Number of classes, K."""
        return int(self.owner[-1]) + 1

    @property
    def count(self) -> int:
        """Largest number of components in a class."""
        return int(np.bincount(self.owner).max())

    def sum_rows(self, rows: Rows, parts: Iterable[Bent] | None = None) -> Moments:
        """Return the moments of the groups; ``parts`` holds the rows already bent, if at hand.

        They are matrices, (G, D, D), or sums by column, (G, D).
        """
        groups = len(self.owner)
        if self.filling is None and self.warp.straight and groups == self.classes:
            weight = None if (rows.weight == 1).all() else rows.weight
            return self.warp.moments(self._moments(rows.x, None, weight, rows.codes, groups))
        result: Any = None
        for batch in bent(rows, self.warp, self.filling) if parts is None else parts:
            place = self.assign(batch.y, batch.codes)
            more = self._moments(batch.y, batch.missing, batch.weight, place, groups)
            result = more if result is None else result + more
        return result

    def sum_departures(self, held: HeldOut, y, missing: Missing | None, group) -> Moments:
        """Return the moments of the rows that leave, completed and assigned, by departure and group, (B, G, D, D)."""
        shape = int(held.gone_with.max()) + 1, len(self.owner)
        flat = self._moments(y, missing, held.gone.weight, held.gone_with * shape[1] + group, shape[0] * shape[1])
        return Moments(*(a.reshape(*shape, *a.shape[1:]) for a in (flat.n, flat.mean, flat.scatter)))

    def assign(self, y, codes) -> np.ndarray:
        """Return the group of each completed row, the nearest of its class."""
        return nearest_group(y, codes, self.centres, self.owner)

    def _moments(self, y, missing: Missing | None, weight, place, size: int) -> Moments:
        """Return the moments of completed rows by a place for each, of ``size`` places."""
        if missing is None:
            return moments(y, place, size, weight, vector=not self.by_column)
        return missing.moments(y, place, size, weight)

    def claims(self, dim: int, classes: int):
        """Yield the conditions on bends and completion of ``dim`` columns; see `FittedMembers.claims`."""
        yield from self.warp.claims(dim)
        if self.filling is not None:
            covariance = self.filling.covariance
            yield "the means that gaps are completed from", self.filling.mean, (classes, dim)
            yield (
                "the covariance that gaps are completed from",
                covariance,
                (dim,) if covariance.ndim == 1 else (dim, dim),
            )

    def completed(self, rows: Rows):
        """Return bent rows, completed, and the covariances of what was missing, or None."""
        y, seen = self.read(rows.x)
        if self.filling is None or seen is None:  # there is a filling if a row of the fit has a gap
            return y, None
        return self.filling.complete(y, seen, rows.codes)

    def read(self, x):
        """Return the bent rows, 0 where missing, and a mask of the entries that are not, or None if none is missing."""
        seen, y = ~np.isnan(x), self.warp.forward(x)
        return (y, None) if seen.all() else (np.where(seen, y, 0.0), seen)

    def read_near(self, x):
        """Return rows as `read` does, 0 where an entry is beyond `FAR`, and the places of these rows."""
        y, seen = self.read(x)
        far = far_rows(y)
        y[far] = 0.0  # they stay among the others, whose sums keep their order
        return y, seen, far


def refuse_large(rows: int, dim: int, classes: int) -> None:
    """Raise before anything is learned if so many rows and columns take more memory than there is."""
    if dim <= WIDE:
        return
    size = 8 * dim * (_COPIES * rows + _BY_CLASS * classes)
    cure = "choose columns by sklearn.feature_selection, project them by PCA, or give fewer rows"
    try:
        check_memory(f"a fit to X with {rows} rows of {dim} numeric columns", size, cure)
    except MemoryError as error:
        raise ValueError(str(error)) from None
