"""Transformations of the numeric columns that members share: bends, completion of gaps, and groups.

A `View` holds all that is learned from rows and cannot be subtracted: bends, centres of components, means and
covariance to complete gaps. What can be subtracted is in `views.FittedView`.

Components are found by k-means within each class, and the conjugate members take them as groups. The centres are
learned, and a row belongs to the nearest centre of its class. So the centres are learned without the rows that are left
out, and the statistics of the groups subtract these rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.averaging.gaps import WIDE, Filling, Missing
from bayesgen.averaging.rows import HeldOut, Rows
from bayesgen.averaging.training import Bent, Training, bent
from bayesgen.averaging.warp import YeoJohnson, far_rows
from bayesgen.core.program import Record
from bayesgen.models.moments import Moments, moments


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
        own = training.complete, rows.codes, rows.classes, rows.weight
        groups = fit_components(*own, count, training.halves)
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
        for part in bent(rows, self.warp, self.filling) if parts is None else parts:
            place = self.assign(part.y, part.codes)
            more = self._moments(part.y, part.missing, part.weight, place, groups)
            result = more if result is None else result + more
        return result

    def sum_departures(self, held: HeldOut, y, missing: Missing | None, group) -> Moments:
        """Return the moments of the rows that leave, completed and assigned, by departure and group, (B, G, D, D)."""
        shape = int(held.leaves.max()) + 1, len(self.owner)
        flat = self._moments(y, missing, held.gone.weight, held.leaves * shape[1] + group, shape[0] * shape[1])
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
            own = self.filling.covariance
            yield "the means that gaps are completed from", self.filling.mean, (classes, dim)
            yield "the covariance that gaps are completed from", own, (dim,) if own.ndim == 1 else (dim, dim)

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


def fit_components(
    x, codes, classes: int, weight, count: int, halves: dict | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Find the centres of the components of every class.

    Parameters
    ----------
    x : array, shape (n, D)
        Complete rows, in comparable units.
    codes : int array, shape (n,)
        Classes.
    classes : int
        K.
    weight : array, shape (n,)
        Weights.
    count : int
        Components per class; fewer where it has fewer than three rows, or one distinct row, for each.
    halves : dict, optional
        The halves of parts that were found for other counts of the same rows, to which new ones are added.

    Returns
    -------
    centres : array, shape (G, D)
    owner : int array, shape (G,)
        The class of each, in order.
    """
    centres, halves = [], {} if halves is None else halves
    for k in range(classes):
        own, known = codes == k, halves.setdefault(k, {})
        centres.append(_centres(x[own], weight[own], max(1, min(count, int(own.sum()) // 3)), known))
    return np.concatenate(centres), np.repeat(range(classes), [len(own) for own in centres])


def nearest_group(x, codes, centres, owner) -> np.ndarray:
    """Return the nearest component of each row among the components of its class."""
    if len(owner) == owner[-1] + 1:
        return codes
    result = np.empty(len(x), np.intp)
    ends = np.searchsorted(codes, np.arange(owner[-1] + 2)) if (codes[1:] >= codes[:-1]).all() else None
    first = np.searchsorted(owner, np.arange(owner[-1] + 2))
    for k in range(owner[-1] + 1):
        own = np.flatnonzero(codes == k) if ends is None else slice(ends[k], ends[k + 1])
        result[own] = _nearest(x[own], centres[first[k] : first[k + 1]]) + first[k]
    return result


def _nearest(x, centres):
    """Return the nearest centre of each row, the first in a tie; for few centres, one by one is faster than argmin."""
    result = np.zeros(len(x), np.intp)
    if len(centres) > 1:
        least, *others = (-2 * centres) @ x.T + (centres**2).sum(1)[:, None]
        for j, square in enumerate(others, 1):
            nearer = square < least
            result[nearer] = j
            np.minimum(least, square, out=least)
    return result


def _centres(x, weight, count, known, steps: int = 30):
    """Return the centres to which Lloyd's algorithm comes from the components of `_halved`."""
    if count == 1:
        return (weight @ x / weight.sum() if len(x) else np.zeros(x.shape[1]))[None]
    near = _halved(x, weight, count, known)
    centres = np.zeros((near.max() + 1, x.shape[1]))
    for _ in range(steps):
        member = np.zeros((len(centres), len(x)))
        member[near, np.arange(len(x))] = weight
        size = member.sum(1, keepdims=True)
        centres = np.where(size > 0, (member @ x) / np.maximum(size, 1e-300), centres)
        last, near = near, _nearest(x, centres)
        if (last == near).all():
            break
    return centres


def _halved(x, weight, count, known):
    """Return the component of each row: the one of the largest sum of squares is cut in two until there are ``count``.

    Nothing is drawn, so folds, which share most rows, share the components too, where k-means from random starts would
    end in others. (Su and Dy 2007, *Intelligent Data Analysis* 11, 319-338, cut at the mean.) More components begin
    with the cuts of fewer, so the halves of a part are ``known`` from then.
    """
    near = np.zeros(len(x), np.intp)
    for k in range(1, count):
        halves = []
        for j in range(k):
            own = near == j
            key = own.tobytes()
            if key not in known:
                known[key] = _halves(x[own], weight[own])
            halves.append(known[key])
        widest = max(range(k), key=lambda j: halves[j][0])
        squares, above = halves[widest]
        if not squares > 0:
            break
        near[np.flatnonzero(near == widest)[above]] = k
    return near


def _halves(x, weight):
    """Return the sum of squares of rows about their mean, and which rows to cut off.

    They are cut by their projections on the first principal component, where the sum of squares of the projections
    within the two parts is least.
    """
    centred = x - weight @ x / weight.sum()
    scaled = np.sqrt(weight)[:, None] * centred
    tall = len(x) > x.shape[1]
    vector = np.linalg.eigh(scaled.T @ scaled if tall else scaled @ scaled.T)[1][:, -1]
    along = centred @ (vector if tall else scaled.T @ vector)
    order = np.argsort(along, kind="stable")
    apart = np.diff(along[order]) > 0
    if not apart.any():
        return 0.0, None
    total, moved = np.cumsum(weight[order]), np.cumsum((weight * along)[order])
    between = moved[:-1] ** 2 / (total[:-1] * (total[-1] - total[:-1]))
    return float((scaled**2).sum()), along > along[order[np.where(apart, between, -1.0).argmax()]]
