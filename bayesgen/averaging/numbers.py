"""The members of numeric columns: views of the rows (bent, in components), each with its Gaussian structures.

A `View` is what is learned from rows and cannot be subtracted: bends, centres of components, what gaps are completed
from. A `FittedView` has besides the statistics of its groups, which can.
"""

from dataclasses import dataclass, replace

import numpy as np

from bayesgen.averaging import components
from bayesgen.averaging.gaps import Filling
from bayesgen.averaging.gaussian import GaussianMember, log_density, log_density_far
from bayesgen.averaging.reference import Reference
from bayesgen.averaging.warp import FAR, Warp, far_rows
from bayesgen.core.program import Record
from bayesgen.models.moments import Moments, moments
from bayesgen.numerics.pieces import pieces

_CELLS = 1 << 21  # entries of matrices worked on at a time
_LARGE = 1000  # times the columns: weight of a group whose rows are not left out


@dataclass(frozen=True, eq=False)
class View(Record):
    """How rows are seen: bent, completed, and in groups.

    Attributes
    ----------
    warp : Warp
        The transformation of the columns.
    filling : Filling or None
        What gaps are completed from; None where no row has any.
    centres : array, shape (G, D)
        Of the groups, among bent columns.
    owner : int array, shape (G,)
        The class of each group, in order.
    """

    warp: Warp
    filling: Filling | None
    centres: np.ndarray
    owner: np.ndarray


@dataclass(frozen=True, eq=False)
class FittedView(Record):
    """A view with the statistics of its groups and the members that share them.

    Attributes
    ----------
    view : View
    members : tuple of GaussianMember
    statistics : Moments
        Of the groups, (G, D, D).
    """

    view: View
    members: tuple[GaussianMember, ...]
    statistics: Moments

    @property
    def near(self) -> bool:
        """Whether the squares of all rows that were summed stay within float64."""
        squares = np.diagonal(self.statistics.scatter, axis1=1, axis2=2)
        return bool((np.abs(self.statistics.mean) <= FAR).all() and (squares <= FAR**2).all())

    @property
    def count(self) -> int:
        """Components of the class that has most."""
        return int(np.bincount(self.view.owner).max())

    def log_density(self, x, used=None) -> np.ndarray:
        """Log p(x | k) of rows under every member, (M, n, K), in the units of the bent columns; 0 if not ``used``."""
        used = np.arange(len(self.members)) if used is None else np.flatnonzero(used)
        result = np.zeros((len(self.members), len(x), self.view.owner[-1] + 1))
        known = ~np.isnan(x).all(0)
        if not len(used) or not known.any():
            return result
        if not known.all():
            return self.marginal(known).log_density(x[:, known], np.isin(np.arange(len(self.members)), used))
        members = [self.members[m] for m in used]
        reference = Reference.of(self.statistics)
        groups = len(self.view.owner)
        cells = x.shape[1] * groups if not np.isnan(x).any() else (x.shape[1] + groups) ** 2
        for part in pieces(len(x), cells, _CELLS):
            y, seen = self.read(x[part])
            far = far_rows(y)
            y[far] = 0.0  # they stay among the others, whose sums keep their order
            result[used, part] = self._classes(reference, log_density(members, reference, y, seen))
            if len(far):
                own = None if seen is None else seen[far]
                density = log_density_far(members, reference, *self.view.warp.polar(x[part][far]), own)
                result[used[:, None], part.start + far] = self._classes(reference, density)
        return result

    def marginal(self, known) -> "FittedView":
        """The same of some of the columns: the members' priors are such that this is the marginal, see `gaussian`."""
        warp, m = self.view.warp, self.statistics
        view = replace(
            self.view,
            warp=replace(warp, location=warp.location[known], scale=warp.scale[known], power=warp.power[known]),
            filling=None,
            centres=self.view.centres[:, known],
        )
        return replace(self, view=view, statistics=Moments(m.n, m.mean[:, known], m.scatter[:, known][:, :, known]))

    def leave_out(self, x, codes, removed, anew) -> np.ndarray:
        """Log p(x_i | k) of rows of the fit without themselves, (M, n, K).

        The density of a row in its own group of n_g rows falls by about D/2n_g for want of it. Where that is less than
        1/2000 the row is left in: one factorisation then serves all such rows.

        Parameters
        ----------
        x : array, shape (n, D)
            The rows, NaN where missing.
        codes : int array, shape (n,)
            Their classes.
        removed : array, shape (n,)
            The weight to take out of each.
        anew : callable
            ``anew(i)`` gives all rows but row i, (x, codes, weight).
        """
        y, seen = self.read(x)
        filling = self.view.filling  # there wherever a row of the fit has a gap
        whole = y if filling is None or seen is None else filling.complete(y, seen, codes)[0]
        group = components.assign(whole, codes, self.view.centres, self.view.owner)
        result = np.empty((len(self.members), len(x), self.view.owner[-1] + 1))
        large = self.statistics.n[group] > _LARGE * x.shape[1] * removed
        whole_reference = Reference.of(self.statistics)
        for part in pieces(int(large.sum()), (x.shape[1] + len(self.view.owner)) ** 2, _CELLS):
            here = np.flatnonzero(large)[part]
            rows = y[here], None if seen is None or seen[here].all() else seen[here]
            result[:, here] = self._classes(whole_reference, log_density(self.members, whole_reference, *rows))
        others = np.flatnonzero(~large)
        for part in pieces(len(others), (x.shape[1] + len(self.view.owner)) ** 2, _CELLS):
            here = others[part]

            def rest(b, here=here):
                return statistics([self.view], *anew(here[b]))[0]

            reference = Reference.without(self.statistics, whole[here], group[here], removed[here], rest)
            density = log_density(self.members, reference, y[here], None if seen is None else seen[here])
            result[:, here] = self._classes(reference, density)
        return result

    def read(self, x):
        """Bent rows, 0 where missing, and what is seen; None where all is."""
        seen, y = ~np.isnan(x), self.view.warp.forward(x)
        return (y, None) if seen.all() else (np.where(seen, y, 0.0), seen)

    def _classes(self, reference, density):
        """From log densities of groups to those of classes."""
        owner, n = self.view.owner, reference.n
        member = owner == np.arange(owner[-1] + 1)[:, None]
        return self.mix(density, np.log((n + 1) / (n @ member.T + member.sum(1))[:, owner]))

    def mix(self, density, log_share):
        """From log densities of groups, (..., G), to those of classes, (..., K), which are their mixtures."""
        owner = self.view.owner
        classes = owner[-1] + 1
        if len(owner) == classes:
            return density
        density = density + log_share
        first = np.searchsorted(owner, np.arange(classes))
        top = np.maximum.reduceat(density, first, axis=-1)
        density -= top[..., owner]
        return top + np.log(np.add.reduceat(np.exp(density), first, axis=-1))


def learn(x, codes, classes: int, weight, *, bend: bool, counts, gaps: bool, seed) -> list[View]:
    """Learn views of rows, NaN where missing, for several numbers of components a class."""
    warp = Warp.learn(x, codes, classes, weight, bend)
    y, seen = warp.forward(x), ~np.isnan(x)
    filling = Filling.learn(y, seen, codes, classes, weight) if gaps else None
    if filling is not None:
        y, _ = filling.complete(y, seen, codes)
    rng = np.random.default_rng(seed)
    return [View(warp, filling, *components.learn(y, codes, classes, weight, count, rng)) for count in counts]


def statistics(views, x, codes, weight) -> list[Moments]:
    """Moments of the groups of rows, for every one of some views that were learned together."""
    warp, filling = views[0].warp, views[0].filling
    weight = None if (weight == 1).all() else weight
    if len(views) == 1 and filling is None and warp.straight and len(views[0].owner) == views[0].owner[-1] + 1:
        return [warp.moments(moments(x, codes, len(views[0].owner), weight, vector=True))]
    result: list = [None] * len(views)
    kind = np.min_scalar_type(views[0].owner[-1])
    for part in pieces(len(x), x.shape[1] ** (1 if filling is None else 2)):
        order = np.argsort(codes[part].astype(kind), kind="stable") + part.start  # by class, which `assign` wants
        y, own, w = warp.forward(x[order]), codes[order], None if weight is None else weight[order]
        missing = None
        if filling is not None:
            y, missing = filling.complete(y, ~np.isnan(y), own)
        for place, view in enumerate(views):
            group, groups = components.assign(y, own, view.centres, view.owner), len(view.owner)
            more = (
                moments(y, group, groups, w, vector=True) if missing is None else missing.moments(y, group, groups, w)
            )
            result[place] = more if result[place] is None else result[place] + more
    return result
