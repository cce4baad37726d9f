"""Transformations of the numeric columns that members share: bends, completion of gaps, and groups.

A `View` holds all that is learned from rows and cannot be subtracted: bends, centres of components, means and
covariance to complete gaps. What can be subtracted is in `views.FittedView`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.averaging import components
from bayesgen.averaging.gaps import WIDE, Filling, Missing
from bayesgen.averaging.rows import HeldOut, Rows
from bayesgen.averaging.training import Bent, Training, bent
from bayesgen.averaging.warp import Warp, far_rows
from bayesgen.core.program import Record
from bayesgen.models.moments import Moments, moments


@dataclass(frozen=True, eq=False)
class View(Record):
    """The transformation of rows for some members: bends, completion of gaps, and groups.

    Attributes
    ----------
    warp : Warp
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

    warp: Warp
    filling: Filling | None
    centres: np.ndarray
    owner: np.ndarray
    by_column: bool = False

    @classmethod
    def learn(cls, training: Training, count: int) -> "View":
        """Learn a view with ``count`` components per class."""
        rows = training.rows
        own = training.complete, rows.codes, rows.classes, rows.weight
        groups = components.fit_components(*own, count, training.halves)
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
        return components.assign(y, codes, self.centres, self.owner)

    def _moments(self, y, missing: Missing | None, weight, place, size: int) -> Moments:
        """Return the moments of completed rows by a place for each, of ``size`` places."""
        if missing is None:
            return moments(y, place, size, weight, vector=not self.by_column)
        return missing.moments(y, place, size, weight)

    def claims(self, dim: int, classes: int):
        """Yield the conditions on bends and completion of ``dim`` columns; see `Together.claims`."""
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
