r"""Training data of the members, and views of its numeric columns: bends, completion of gaps, and groups.

A `Training` has rows to learn from and rows to sum, and keeps the bent rows to learn from that families share. A `View`
holds all that is learned from rows and cannot be subtracted: bends, centres of components, means and covariance to
complete gaps. What can be subtracted is in `fitted_view.FittedView`.

Components are found by k-means within each class, and the conjugate members take them as groups. The centres are
learned, and a row belongs to the nearest centre of its class. So the centres are learned without the rows that are left
out, and the statistics of the groups subtract these rows.

**Gaps at fit** are completed as `docs/mathematics/averaged.md` says, by a few steps of EM under the prior of
`GaussianMember("shared", rho=D)` and the conditionals of `bayesgen.numerics.student_gaps`. A completed entry counts as
an observed one in the degrees of freedom. Means and covariance are learned without the rows that are left out.
"""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesgen.averaging.member_rows import HeldOut, Rows, weighted_back
from bayesgen.averaging.students import Reference
from bayesgen.core.memory import check_memory
from bayesgen.core.program import Record
from bayesgen.core.shapes import require_fit, shaped
from bayesgen.models.moments import Moments, moments
from bayesgen.numerics.components import fit_components, nearest_group
from bayesgen.numerics.folds import sample
from bayesgen.numerics.pieces import pieces, taken
from bayesgen.numerics.student_gaps import complete
from bayesgen.numerics.sums import finite
from bayesgen.numerics.yeo_johnson import YeoJohnson

_COPIES, _BY_CLASS = 40, 60  # numbers that a fit holds at most, for each of a wide table, and of a mean of a class
_STEPS = 6
WIDE = 100  # columns; of more each entry is completed by the mean of its class


@dataclass(frozen=True, eq=False)
class Filling(Record):
    """Class means and a pooled covariance, from which missing entries are completed."""

    mean: np.ndarray = field(metadata=shaped("classes columns"))  # mean of each class
    # pooled covariance within the classes; its diagonal of more than `WIDE` columns
    covariance: np.ndarray = field(metadata=shaped("columns or columns columns"))

    @classmethod
    def learn(cls, x, seen, codes, classes: int, weight) -> "Filling":
        """Estimate means and covariance by EM, started from the moments of each column alone."""
        w = np.where(seen, weight[:, None], 0.0)
        x = np.where(seen, x, 0.0)
        total = w.sum(0)
        overall = np.divide((w * x).sum(0), total, out=np.zeros(x.shape[1]), where=total > 0)
        member = np.zeros((classes, len(x)))
        member[codes, np.arange(len(x))] = 1.0
        mean = (member @ (w * (x - overall))) / (member @ w + 0.01) + overall
        squares = (w * (x - mean[codes]) ** 2).sum(0)
        variance = np.divide(squares, total, out=np.ones_like(squares), where=squares > 0)
        if x.shape[1] > WIDE:
            return cls(mean, variance)
        filling = cls(mean, np.diag(variance))
        for _ in range(1 if seen.all() else _STEPS):
            filling = filling._step(x, seen, codes, classes, weight)
        return filling

    def _step(self, x, seen, codes, classes, weight):
        statistics = moments(x[:0], codes[:0], classes, vector=True)
        for batch in pieces(len(x), cells(seen)):
            complete, missing = self.complete(x[batch], seen[batch], codes[batch])
            statistics = statistics + missing.moments(complete, codes[batch], classes, weight[batch])
        reference, dim = Reference.of(statistics), x.shape[1]
        freedom = max(statistics.n.sum() - (statistics.n > 0).sum(), 0.0) + dim
        covariance = (reference.within[0] + dim * np.diag(np.diag(reference.covariance[0]))) / freedom
        return Filling(reference.mean[0], covariance)

    def complete(self, x, seen, codes) -> "tuple[np.ndarray, Missing]":
        """Return the rows x (n, D) completed where they are not ``seen`` (n, D), and these entries' covariances."""
        dim, mean = x.shape[1], self.mean[codes]
        if dim > WIDE:
            rows, columns = np.nonzero(~seen)
            return np.where(seen, x, mean), Missing(rows, columns, self.covariance[columns], (dim,))
        away = np.where(seen, x - mean, 0.0)
        entries = [(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))]
        for rows, columns, covariance in complete(away, seen, np.linalg.inv(self.covariance)):
            places = columns[:, :, None] * dim + columns[:, None]
            entries.append((np.repeat(rows, columns.shape[1] ** 2), places.ravel(), covariance.ravel()))
        rows, places, covariance = map(np.concatenate, zip(*entries, strict=True))
        return np.where(seen, x, mean + away), Missing(rows, places, covariance, (dim, dim))


def cells(seen) -> int:
    """Return the entries that one completed row takes with the covariances of its gaps, at most."""
    dim = seen.shape[1]
    return dim if dim > WIDE else dim + int((~seen).sum(1).max(initial=0)) ** 2


@dataclass(frozen=True)
class Missing:
    """Conditional covariances C of the missing entries of rows, one by one."""

    rows: np.ndarray  # (E,): the row of each entry of C
    # (E,): its place in a matrix (D, D), row by row; its column, of the diagonals of more than `WIDE` columns
    places: np.ndarray
    covariance: np.ndarray  # (E,): the entry
    shape: tuple[int, ...]  # (D, D), or (D,) of diagonals

    def take(self, rows) -> "Missing":
        """Return the covariances of some rows, at increasing places, which are numbered anew."""
        place = np.searchsorted(rows, self.rows)
        kept = np.flatnonzero(np.take(rows, place, mode="clip") == self.rows) if len(rows) else np.empty(0, np.intp)
        return Missing(place[kept], self.places[kept], self.covariance[kept], self.shape)

    def moments(self, complete, group, groups: int, weight) -> Moments:
        """Return the expected moments of the rows by group."""
        result, size = moments(complete, group, groups, weight, vector=len(self.shape) == 2), math.prod(self.shape)
        covariance = self.covariance if weight is None else self.covariance * weight[self.rows]
        extra = np.bincount(group[self.rows] * size + self.places, covariance, groups * size)
        return Moments(result.n, result.mean, result.scatter + extra.reshape(result.scatter.shape))


@dataclass(frozen=True)
class Bent:
    """Bent and completed rows to sum."""

    y: np.ndarray  # (n, D): rows, sorted by class
    codes: np.ndarray  # codes, weight: (n,): classes of the rows, and weights, or None where all are 1
    weight: np.ndarray | None
    missing: Missing | None  # covariances of the completed entries; None where no row has gaps


@dataclass(frozen=True)
class Training:
    """Rows of one fit; derived quantities are worked out once for all families."""

    rows: Rows  # rows to learn from: bends, centres of components, means and covariance to complete gaps
    summed: Rows  # rows to sum; rows left out are subtracted from these sums
    bend: bool = True  # whether columns are bent
    seed: int = 0  # seed of random draws
    given: Any = None  # the rows to learn from as the user gave them, each of those that are identical
    # bends that were learned from these rows, or some of them, by their places: families share folds
    bends: dict[tuple[bytes, ...], YeoJohnson] = field(default_factory=dict)
    places: tuple[bytes, ...] = ()  # the places of the rows to learn from among all; () for all of them

    def on(self, places, seed: int) -> "Training":
        """Return the training that learns from some rows, and sums all."""
        key = (*self.places, places.tobytes())
        return Training(self.rows.take(places), self.summed, self.bend, seed, None, self.bends, key)

    def without(self, places) -> "Training":
        """Return the training without the rows at some places and in their groups."""
        others = self.rows.without(places)
        rows, given = self.rows.take(others), None if self.given is None else self.given.rows(others)
        return Training(rows, rows, self.bend, self.seed, given, self.bends, (*self.places, others.tobytes()))

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
        return None if finite(self.summed.x) else self.filling_of_more

    @functools.cached_property
    def filling_of_more(self) -> Filling:
        """Means and covariance to complete gaps from, those of rows that come later among them."""
        rows = self.rows
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


def bent(rows: Rows, warp: YeoJohnson, filling: Filling | None) -> Iterator[Bent]:
    """Yield rows bent and completed, in pieces."""
    kind, weight = np.min_scalar_type(rows.classes - 1), None if (rows.weight == 1).all() else rows.weight
    for batch in pieces(len(rows), rows.x.shape[1] if filling is None else cells(~np.isnan(rows.x))):
        order = np.argsort(rows.codes[batch].astype(kind), kind="stable") + batch.start  # for `assign`
        y, codes, missing = warp.forward(rows.x[order]), rows.codes[order], None
        if filling is not None and np.isnan(y).any():
            y, missing = filling.complete(y, ~np.isnan(y), codes)
        yield Bent(y, codes, taken(weight, order), missing)


@dataclass(frozen=True, eq=False)
class View(Record):
    """The transformation of rows for some members: bends, completion of gaps, and groups."""

    warp: YeoJohnson  # the transformation of the columns
    filling: Filling | None  # means and covariance to complete gaps from; None of a wide view where no row has any
    centres: np.ndarray = field(metadata=shaped("groups columns"))  # centres of the groups, in bent columns
    owner: np.ndarray = field(metadata=shaped("groups", places="classes"))  # the class of each group, in order
    by_column: bool = False  # True if all members take the columns as independent

    @classmethod
    def learn(cls, training: Training, count: int) -> "View":
        """Learn a view with ``count`` components per class."""
        rows = training.rows
        groups = fit_components(training.complete, rows.codes, rows.classes, rows.weight, count)
        return cls(training.warp, training.filling_of_more, *groups, rows.x.shape[1] > WIDE)

    @property
    def classes(self) -> int:
        """Number of classes, K."""
        return int(self.owner[-1]) + 1

    @property
    def count(self) -> int:
        """Largest number of components in a class."""
        return int(np.bincount(self.owner).max())

    def sum_rows(self, rows: Rows) -> Moments:
        """Return the moments of the groups: matrices, (G, D, D), or sums by column, (G, D)."""
        result: Any = None
        for batch in bent(rows, self.warp, self.filling):
            place = self.assign(batch.y, batch.codes)
            more = self._moments(batch.y, batch.missing, batch.weight, place, len(self.owner))
            result = more if result is None else result + more
        return self._moments(rows.x, None, rows.weight, rows.codes, len(self.owner)) if result is None else result

    def sum_departures(self, held: HeldOut, y, missing: Missing | None, group) -> Moments:
        """Return the moments of the rows that leave, completed and assigned, by departure and group, (B, G, D, D)."""
        shape = int(held.gone_with.max()) + 1, len(self.owner)
        flat = self._moments(y, missing, held.gone.weight, held.gone_with * shape[1] + group, shape[0] * shape[1])
        return Moments(*(a.reshape(*shape, *a.shape[1:]) for a in (flat.n, flat.mean, flat.scatter)))

    def assign(self, y, codes) -> np.ndarray:
        """Return the group of each completed row, the nearest of its class."""
        return nearest_group(y, codes, self.centres, self.owner)

    def _moments(self, y, missing: Missing | None, weight, place, size: int) -> Moments:
        if missing is None:
            return moments(y, place, size, weight, vector=not self.by_column)
        return missing.moments(y, place, size, weight)

    def fits(self, sizes):
        """Require groups of every class, in order; see `check_shapes`."""
        every = np.array_equal(np.unique(self.owner), np.arange(sizes["classes"]))
        require_fit(every and (np.diff(self.owner) >= 0).all(), "a class has no group")
        return sizes

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
