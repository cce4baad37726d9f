"""Views of the numeric columns that are fitted: the Gaussian members that see rows through one `View`.

A `FittedView` adds to a `View` the statistics of its groups, which can be subtracted. Its members are conjugate models
of the bent columns, whose priors follow these statistics. The posteriors are worked out at first use. Densities of rows
are worked out by `bayesgen.averaging.engines`. Rows of the fit that are left out go through `students`, where one
factorisation serves every kappa; complete rows of large fits leave by `log_density_without`.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bayesgen.averaging import students
from bayesgen.averaging.densities import MATRICES
from bayesgen.averaging.engines import Engines
from bayesgen.averaging.member import NUMBERS, FittedFactors, Written, adding, bent_entries
from bayesgen.averaging.member_rows import HeldOut
from bayesgen.averaging.view import Training, View
from bayesgen.core.errors import DataError
from bayesgen.core.shapes import check_array, require_fit
from bayesgen.models.moments import Moments, moments
from bayesgen.numerics.pieces import pieces, taken
from bayesgen.numerics.special import log_sum_groups
from bayesgen.numerics.yeo_johnson import FAR, far_rows
from bayesgen.posterior.leaf_factor import LeafFactor

_CELLS = 1 << 21  # densities worked on at a time
_SETTLED = 50  # times the columns: rows of all groups together beyond which priors keep the row that is left out
_LARGE = 4000  # times the columns: weight of a group whose rows are not left out
_FEW = 1 << 14  # entries of rows under all groups up to which those of several folds are worked out together


@dataclass(frozen=True, eq=False)
class FittedView(FittedFactors):
    """A view with the statistics of its groups and the members that share them."""

    view: View
    members: tuple[Any, ...]  # members that differ in kappa alone stand side by side
    statistics: Moments  # moments of the groups; see `View.sum_rows`

    @classmethod
    def fit(cls, members, training: Training, count: int) -> "FittedView":
        """Learn the view and sum the rows."""
        view = View.learn(training, count)
        return cls(view, members, view.sum_rows(training.summed)).near()

    def near(self) -> "FittedView":
        """Return the view, or raise where squares of the rows that were summed leave float64."""
        sums = self.statistics
        if not ((np.abs(sums.mean) <= FAR).all() and (students.squares(sums) <= FAR**2).all()):
            raise DataError(
                "numeric columns hold values that are too far from all others of their column to be squared"
            )
        return self

    @property
    def kept(self):
        return (self.statistics,)

    def sum_more(self, rows):
        return (self.view.sum_rows(rows),)

    def of_sums(self, sums):
        return replace(self, statistics=sums[0]).near()

    @property
    def n(self) -> np.ndarray:
        """Weight of each group, (G,)."""
        return students.weights(self.statistics)

    @functools.cached_property
    def reference(self) -> students.Reference:
        """The reference that the priors of all members follow."""
        return students.Reference.of(self.statistics)

    @functools.cached_property
    def _first_groups(self) -> tuple[np.ndarray, bool]:
        """The first group of each class, (K,), and whether all classes have as many groups."""
        sizes = np.bincount(self.view.owner)
        return np.cumsum(sizes) - sizes, bool((sizes == sizes[0]).all())

    @functools.cached_property
    def log_share(self) -> np.ndarray:
        """Log probability of each group within its class, (G,)."""
        n = self.n + 1
        return np.log(n / np.bincount(self.view.owner, n)[self.view.owner])

    def fits(self, sizes):
        """Require moments of the groups of the view; see `check_shapes`."""
        each, square = ("groups columns",) * 2 if self.view.by_column else ("groups", "groups columns columns")
        sizes = sizes | {"groups": len(self.view.owner)}
        for name, axes in {"n": each, "mean": "groups columns", "scatter": square}.items():
            check_array(f"the moments' {name}", getattr(self.statistics, name), axes, sizes)
        require_fit((self.statistics.n >= 0).all(), "the groups have weights below 0")
        require_fit(all(member.proper for member in self.members), "a member is none")
        return sizes

    def posterior(self, place: int):
        """Return the posterior of a member, a model of the bent rows of the groups."""
        return self.members[place].posterior(self.statistics, self.reference)

    drawn: ClassVar = True

    def leaves(self, place, categories):
        mixture = len(self.view.owner) > self.view.classes
        return {} if mixture else {NUMBERS: self.members[place].prior(self.reference)}

    @property
    def bend(self):
        return self.view.warp

    def factor(self, place):
        return self._leaf_factor(place, None, self.log_share)

    def drawn_factor(self, place, rng):
        posterior = self.posterior(place)
        drawn = posterior.select_class(posterior.sample_parameters(rng, ()), ...)
        return self._leaf_factor(place, {site: v[None] for site, v in drawn.items()}, np.log(self._shares((), rng)))

    def written(self, numbers, categories):
        """Return a factor for each structure of the members."""
        reference, moments_ = self.reference, self.statistics
        low = np.tril_indices(len(numbers))
        triangles = [m[..., *low] if moments_.vector else m for m in (moments_.scatter, reference.covariance[0])]
        view = {
            "owner": self.view.owner.tolist(),
            "n": self.n.tolist(),
            "mean": reference.mean[0],
            "scatter": triangles[0],
            "centre": reference.centre[0].tolist(),
            "covariance": triangles[1],
            "width": triangles[1].shape[-1],
        }
        result = []
        for structure in dict.fromkeys(member.structure for member in self.members):
            alike = np.array([member.structure == structure for member in self.members])
            chosen = [self.members[m] for m in np.flatnonzero(alike)]
            said = {
                "kind": "gaussian" if chosen[0].diagonal else "vector",
                "columns": bent_entries(numbers, self.view.warp),
                "view": view,
                "tied": chosen[0].shared,
                "strengths": [[member.rho, member.kappa, member.shrinkage] for member in chosen],
            }
            result.append(Written.of(said, alike))
        return result

    def _leaf_factor(self, place, params, shares) -> LeafFactor:
        posterior, warp = self.posterior(place), self.view.warp
        return LeafFactor(NUMBERS, (), posterior, self.view.owner, params, shares=shares, bend=warp)

    def parameters(self, place, size, rng):
        result, owner = {}, self.view.owner
        group = ("class",) if len(owner) == self.view.classes else ("group",)
        for site, values in self.posterior(place).sample_parameters(rng, size).items():
            if site != "cholesky":
                axes = () if site != "mean" and self.members[place].shared else group
                result[site] = ((*axes, *("feature", "feature2")[: values.ndim - len(size) - len(axes)]), values)
        if group == ("group",):
            result["share"] = (group, self._shares(size, rng))
        return result

    def density_of_draws(self, place, x, c, size, rng):
        """Draw the parameters of the groups and their shares; the density is up to a constant for each row."""
        posterior = self.posterior(place)
        params = posterior.sample_parameters(rng, (size,))
        density = posterior.log_likelihood_rows(params, self.view.warp.forward(x)).swapaxes(1, 2)
        return self.mix(density, np.log(self._shares((size,), rng))[:, None], 2)

    def _shares(self, size, rng) -> np.ndarray:
        """Draw the probability of each group within its class, (*size, G)."""
        owner = self.view.owner
        drawn = rng.standard_gamma(self.n + 1, (*size, len(owner)))
        return drawn / (drawn @ (owner[:, None] == np.arange(owner[-1] + 1)))[..., owner]

    def learned(self, rows, group, added):
        y = self.view.warp.forward(rows["numbers"])
        summed = moments(y, group, len(self.view.owner), vector=not self.view.by_column)
        return replace(self, statistics=self.statistics + summed if added else summed)

    def log_evidence(self) -> np.ndarray:
        return np.array([member.log_evidence(self.statistics, self.reference) for member in self.members])

    @functools.cached_property
    def engines(self) -> Engines:
        """The ways in which densities of rows are worked out."""
        return Engines(self.members, self.statistics, self.reference, self.posterior)

    def log_density(self, x, c, used) -> np.ndarray:
        y, seen = self.view.read(x)
        far = far_rows(y)
        y[far] = 0.0  # they stay among the others, whose sums keep their order
        result = self.of_bent(y, seen, used)
        members = [self.members[m] for m in used]
        for batch in self._pieces(len(far)):
            places = far[batch]
            density = students.log_density_far(
                members, self.reference, *self.view.warp.polar(x[places]), taken(seen, places)
            )
            result[:, places] = self.mix(density, self.log_share, 2)
        return result

    def of_bent(self, y, seen, used) -> np.ndarray:
        """Return `log_density` of rows as `View.read` returns them."""
        result = np.zeros((len(used), self.view.classes, len(y)))
        for rows, engines in self.engines.plan(seen, len(y), used):
            density = np.empty((*result.shape[:2], len(y[rows])))
            for places, tries in engines:
                self._write(density, y[rows], taken(seen, rows), places, tries)
            result[:, :, rows] = density
        return result.swapaxes(1, 2)

    def _write(self, result, y, seen, places, engines):
        """Write densities, (m, K, n), of members at some places: each row by the first engine that serves it."""
        groups, classes, remaining = len(self.view.owner), np.arange(self.view.classes), np.arange(len(y))
        for engine in engines:
            others = [remaining[:0]]
            for batch in pieces(len(remaining), len(places) * groups, _CELLS):
                rows = remaining[batch]
                served, density = engine.log_density(y[rows], taken(seen, rows))
                if served is not None:
                    others.append(rows[~served])
                    rows = rows[served]
                density = density.reshape(len(places), groups, len(rows))
                result[np.ix_(places, classes, rows)] = self.mix(density, self.log_share, 1)
            remaining = np.concatenate(others)
            if not len(remaining):
                return

    def loo_log_density(self, held: HeldOut) -> np.ndarray:
        result, together = np.zeros((len(self.members), len(held), self.view.classes)), students.Together()
        self.leave_out(held, adding(result, np.arange(len(held))), together)
        together.finish()
        return result

    def leave_out(self, held, write, together):
        """Hand over log p(x_i | k) of rows held out, each without the rows that leave with it.

        Without one row, the log density of that row in its own group of n_g rows falls by about D/2n_g. Where what
        leaves moves it by less than 1/2000, it stays in: one factorisation then serves all such rows. Where a row is
        little of all rows, it leaves its group, and the priors of members with a covariance matrix keep it.
        """
        y, seen = self.view.read(held.rows.x)
        gone, missing = self.view.completed(held.gone)
        group = self.view.assign(gone, held.gone.codes)
        weight = held.sums(held.gone.weight[:, None] * (group[:, None] == np.arange(len(self.view.owner))))
        large = (self.n >= _LARGE * y.shape[1] * weight).all(1)[held.without]
        others, used, statistics = np.flatnonzero(~large), np.arange(len(self.members)), self.statistics
        if large.any():
            seen_large = None if seen is None or seen[large].all() else seen[large]
            write(self.of_bent(y[large], seen_large, used), np.flatnonzero(large))

        def put(density, n, rows, places):
            result = np.zeros((len(self.members), len(rows), self.view.classes))
            result[places] = self._mixed_without(density, n)
            write(result, rows)

        many = self.n.sum() >= _SETTLED * y.shape[1] * weight.sum(1).max(initial=0)
        if held.single and seen is None and many and not self.view.by_column:
            used = np.flatnonzero([member.diagonal for member in self.members])
            statistics = students.by_column(statistics)
            for shared in (False, True):
                alike = [m for m, member in enumerate(self.members) if not member.diagonal and member.shared is shared]
                if alike and len(others):
                    leaving = group[others], held.gone.weight[others]
                    density = students.log_density_without([self.posterior(m) for m in alike], y[others], *leaving)
                    put(density, self.n - weight[others], others, alike)
        members, size = [self.members[m] for m in used], np.bincount(held.without[others])
        departures = np.flatnonzero(size) if members else np.empty(0, np.intp)
        departures = departures[np.argsort(size[departures], kind="stable")]  # those of as many rows stand together
        for batch in self._pieces(len(departures), 1 if seen is None else int(size.max(initial=0))):
            predicted = others[np.isin(held.without[others], departures[batch])]
            chosen = held.take(predicted)

            def others_of(b, chosen=chosen):
                summed = self.view.sum_rows(chosen.others(b))
                return summed if statistics.vector else students.by_column(summed)

            gone_now = np.flatnonzero(np.isin(held.gone_with, departures[batch]))
            lacked = None if held.single or missing is None else missing.take(gone_now)
            leaves = self.view.sum_departures(chosen, gone[gone_now], lacked, group[gone_now])
            leaves = leaves if statistics.vector else students.by_column(leaves)
            reference = students.Reference.without(statistics, leaves, others_of)
            write_now = functools.partial(put, rows=predicted, places=used)
            if seen is None:
                together.add(members, reference, y[predicted], chosen.without, write_now)
            else:
                reference = reference if held.single else reference.take(chosen.without)
                write_now(students.log_density(members, reference, y[predicted], seen[predicted]), reference.n)

    def log_density_later(self, x, c, write, together):
        """Let complete rows wait, if they are few: they then need no posteriors of their own."""
        y, seen = self.view.read(x)
        if seen is not None or len(far_rows(y)) or y.size * len(self.n) > _FEW:
            write(self.log_density(x, c, np.arange(len(self.members))), slice(None))
        else:
            every = np.zeros(len(x), np.intp)
            together.add(
                self.members,
                self.reference,
                y,
                every,
                lambda density, n: write(self.mix(density, self.log_share, 2), slice(None)),
            )

    def _mixed_without(self, density, n) -> np.ndarray:
        """Return log densities of classes (m, n, K) from those of groups that have weights (n, G)."""
        owner, n = self.view.owner, np.maximum(n, 0.0)
        member = owner == np.arange(owner[-1] + 1)[:, None]
        return self.mix(density, np.log((n + 1) / (n @ member.T + member.sum(1))[:, owner]), 2)

    def _pieces(self, count: int, rows: int = 1) -> Iterator[slice]:
        """Yield slices of departures of so many rows, whose matrices of all groups, or squares of columns, are few."""
        groups, dim = self.statistics.mean.shape
        step = max(1, MATRICES // (max(rows, 1) * groups * (dim if self.view.by_column else (dim + 2) ** 2)))
        return (slice(first, first + step) for first in range(0, count, step))

    def mix(self, density, log_share, axis: int) -> np.ndarray:
        """Return the log densities of classes, which are mixtures, from those of their groups along an axis."""
        first, alike = self._first_groups
        if len(self.view.owner) == len(first):
            return density
        density = density + (log_share[:, None] if axis < density.ndim - 1 else log_share)
        if axis == 1 and alike:
            density = density.reshape(len(density), len(first), len(self.view.owner) // len(first), *density.shape[2:])
            top = density.max(2)
            density -= top[:, :, None]
            return top + np.log(np.exp(density, out=density).sum(2))
        return log_sum_groups(density, first, axis)
