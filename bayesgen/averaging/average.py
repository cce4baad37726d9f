r"""The average: members of numbers and of categories, their products, exponents and weights.

A member is either a product of factors, such as one of the numeric columns (or none) and one of the categorical columns
(or none), or a scorer, which has no density. The product of no factors ignores x: it is the base rate. Where columns
have leaves of their own, these are one more factor of every product, also alone; the base rate is without them.

Members are tempered and mixed, and the average sharpened, as `docs/mathematics/averaged.md` says; it is no joint
density of x and t. Typicality, samples and imputation need one, and take the members untempered, under weights v_m
stacked on log p(x, t).
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from bayesgen.averaging.leaves import ColumnModels
from bayesgen.averaging.member import CATEGORIES, NOTHING, NUMBERS, FittedMembers, Product
from bayesgen.averaging.member_rows import without_entries
from bayesgen.core.registry import saveable
from bayesgen.core.shapes import shaped
from bayesgen.numerics import tempering
from bayesgen.numerics.draws import generator
from bayesgen.numerics.pieces import one_blas_thread, pieces, split_rows, taken
from bayesgen.numerics.special import log_mixture
from bayesgen.posterior.predictive import Predictive

_CELLS = 1 << 20  # densities held at a time, so many that threads seldom wait for each other between products


@saveable
@dataclass(frozen=True, eq=False)
class Average(Predictive):
    """Members with their exponents and weights, which predict classes and rows.

    Rows are a mapping of "numbers" (n, D), NaN where missing, "categories" (n, F), -1 where missing, and "leaves"
    (n, E), NaN where missing, if columns have leaves of their own.
    """

    parts: tuple[FittedMembers, ...]  # the members, grouped by family and fit
    class_weight: np.ndarray = field(metadata=shaped("classes", least=0))  # weight of the rows of each class
    concentration: np.ndarray = field(metadata=shaped("classes", least=0))  # Dirichlet prior of the class probabilities
    # τ, w and v of each member; see `members_of` for their order
    exponents: np.ndarray = field(metadata=shaped("averaged", least=0))
    weights: np.ndarray = field(metadata=shaped("averaged", least=0))
    density_weights: np.ndarray = field(metadata=shaped("averaged", least=0))
    # β, the exponent of the average; see `tempering`
    sharpening: float = field(default=1.0, metadata=shaped("", positive=True))
    # class probabilities in place of the learned ones
    given: np.ndarray | None = field(default=None, metadata=shaped("classes"))
    leaves: ColumnModels | None = None  # leaves of columns that belong to no other member
    # standard deviations of log p(x | k) of members whose parameters cannot be drawn, and of log τ; see `with_spread`
    spread: np.ndarray | None = field(default=None, metadata=shaped("averaged", least=0))
    looseness: np.ndarray | None = field(default=None, metadata=shaped("averaged", least=0))

    kind = "average"

    @functools.cached_property
    def log_class_prior(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]  # kept once worked out
        """Log of the learned class probabilities, (K,)."""
        return np.log(self.class_weight + self.concentration) - np.log((self.class_weight + self.concentration).sum())

    @functools.cached_property
    def roster(self) -> "Roster":
        """All members, and where their factors stand."""
        return Roster.of(self.parts, self.leaves)

    @property
    def members(self) -> list:
        """Every member: products of factors, the base rate, then products of the whole table and scorers."""
        return self.roster.members

    def modelling(self, block: str) -> list[Any]:
        """Return the parts with a density of a block, "numbers" or "categories"."""
        return [fitted for fitted in self.parts if block in fitted.members[0].blocks]

    @functools.cached_property
    def bend(self) -> Any:
        """The bends of the numbers, the same for all members; None if no member takes numbers."""
        return next((fitted.bend for fitted in self.parts if fitted.bend is not None), None)

    def places(self, member) -> list[tuple[Any, int]]:
        """Return the parts and places of the factors of a member, without its leaves."""
        return [self.place_of[factor] for factor in member.factors]

    @functools.cached_property
    def place_of(self) -> dict[Any, tuple[Any, int]]:
        """The part and the place in it of each member of a part."""
        return {member: (fitted, place) for fitted in self.parts for place, member in enumerate(fitted.members)}

    @property
    def keeps_rows(self) -> bool:
        """True if rows of the fit stand among the members."""
        return any(fitted.keeps_rows for fitted in self.parts)

    def drawn(self, member) -> bool:
        """Return True if the parameters of a member can be drawn; Gaussians of many columns have too many."""
        return all(fitted.drawn for fitted, _ in self.places(member))

    @one_blas_thread()
    @np.errstate(under="ignore")
    def log_density(self, x, c, used=None, e=None) -> np.ndarray:
        """Return log p(x | k) of rows under the members, (M, n, K), without the Jacobian of the bends, shared by all.

        Rows are numbers x (n, D), NaN where missing, and categories c (n, F), -1 where missing. Of the members those
        ``used``, True in (M,), are returned in order, by default all; ``e`` (n, E) are the entries of the columns with
        leaves, NaN where missing, by default all missing.
        """
        used, roster = np.arange(len(self.weights)) if used is None else np.flatnonzero(used), self.roster
        shape = len(self.class_weight), len(x)
        first, *others = roster.slots
        result = np.empty((len(used), *shape)).swapaxes(1, 2)
        _write(result, first.parts, first.place[used], x, c)
        for slot in others:
            having = np.flatnonzero(slot.place[used] >= 0)
            places, turn = np.unique(slot.place[used[having]], return_inverse=True)
            density = np.empty((len(places), *shape)).swapaxes(1, 2)
            _write(density, slot.parts, places, x, c)
            for m, place in zip(having, turn, strict=True):
                result[m] += density[place]
        if self.leaves is not None and e is not None:
            result[roster.carries[used]] += self.leaves.log_density(e)
        return result

    @one_blas_thread()
    @np.errstate(under="ignore")
    def probability(self, x, c, e=None) -> np.ndarray:
        """Return p(k | x) of rows, shape (n, K)."""
        result, used = np.empty((len(x), len(self.class_weight))), self.weights > 0
        for batch in self.pieces(len(x), used):
            density = self.log_density(x[batch], c[batch], used, taken(e, batch))
            result[batch] = self._of_density(density.swapaxes(1, 2), used).T  # over few classes of many rows
        return result

    @np.errstate(under="ignore")
    def of_density(self, density, members) -> np.ndarray:
        """Return p(k | x), (K, ...), from log p(x | k), (m, K, ...), under members that have nearly all weight."""
        return self._of_density(density.reshape(*density.shape[:2], -1).copy(), members).reshape(density.shape[1:])

    def _of_density(self, density, members) -> np.ndarray:
        """Return `of_density` of rows, (K, n), from (m, K, n), which is written over."""
        log_prior = self.log_class_prior[:, None]
        prior, of_members = np.exp(log_prior), (self.exponents, self.weights, self.roster.least)
        result = tempering.mixture(density, log_prior, *(values[members] for values in of_members))
        result = tempering.sharpened(result, prior, self.sharpening)
        if self.given is not None:
            result *= self.given[:, None] / prior
        return result / result.sum(0)

    @one_blas_thread()
    @np.errstate(under="ignore")
    def log_joint(self, x, c, e=None) -> np.ndarray:
        """Return log p(x, k) under the untempered members, (n, K), in the units of the columns, with learned priors."""
        result = np.empty((len(x), len(self.class_weight)))
        used = self.density_weights > 0
        for batch in self.pieces(len(x), used):
            density = self.log_density(x[batch], c[batch], used, taken(e, batch))
            result[batch] = log_mixture(density, self.density_weights[used])
        result += self.log_class_prior
        if self.bend is not None:
            result += self.bend.log_slope(x)[:, None]
        return result

    # -- as a predictive ---------------------------------------------------------------------------------------------

    def log_predictive(self, x) -> np.ndarray:
        """Return log p(x, t = k | data), (n, K), under the untempered members, with class probabilities ``given``."""
        joint = self.log_joint(x["numbers"], x["categories"], x.get("leaves"))
        if self.given is None:
            return joint
        with np.errstate(divide="ignore"):
            return joint - self.log_class_prior + np.log(self.given)

    def label_draws(self, x, size: int, step: int, seed=None) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield log p(t = k | x, m, θ), members m drawn by weight, θ and exponents from their posteriors."""
        seed = int(generator(seed).integers(1 << 31))  # the same draws for every piece
        prior = np.exp(self.log_class_prior)
        ratio = 1.0 if self.given is None else self.given / prior
        params = {"classes.probability": np.broadcast_to(prior * ratio, (size, len(prior)))}
        for rows in split_rows(x, step):
            arrays = rows["numbers"], rows["categories"], rows.get("leaves")
            probability = self._drawn_probability(*arrays, size, np.random.default_rng(seed))
            with np.errstate(divide="ignore"):
                yield np.log(probability * ratio).swapaxes(1, 2), params

    @np.errstate(under="ignore")
    def _drawn_probability(self, x, c, e, size: int, rng) -> np.ndarray:
        """Return p(k | x, θ), (size, n, K), under members drawn by weight and parameters from their posteriors."""
        result = np.zeros((size, len(x), len(self.class_weight)))
        chosen = rng.choice(len(self.members), size, p=self.weights)
        none = np.zeros(len(self.members))  # of files that were written before there were these
        spread, looseness = (none if values is None else values for values in (self.spread, self.looseness))
        for m in np.unique(chosen):
            member, times = self.members[m], np.flatnonzero(chosen == m)
            if not self.drawn(member):
                noise = spread[m] * rng.normal(size=(len(times), 1, result.shape[2]))  # the same for all rows
                result[times] += np.where(without_entries(x, c)[:, None], 0.0, noise)
                result[times] += self.log_density(x, c, np.arange(len(self.members)) == m, e)
            else:
                for fitted, place in self.places(member):
                    result[times] += fitted.density_of_draws(place, x, c, len(times), rng)
                if member.leaves:
                    leaves: Any = self.leaves
                    result[times] += leaves.density_under(leaves.draws(rng, (len(times),)), e)
        log_prior = np.log(rng.dirichlet(self.class_weight + self.concentration, size))[:, :, None]
        exponents = self.exponents[chosen] * np.exp(looseness[chosen] * rng.normal(size=size))
        result = np.exp(tempering.log_probability(result.swapaxes(1, 2), log_prior, exponents))
        least, prior = self.roster.least[chosen, None, None], np.exp(self.log_class_prior)
        result = (result.swapaxes(1, 2) + least * prior) / (1 + least)
        result = tempering.sharpened(result, prior, self.sharpening)
        return result / result.sum(2, keepdims=True)

    def with_spread(self, predicted) -> "Average":
        """Return the average with `spread`, by rows left out (`LeftOut`) and what they score where they are not.

        It is derived in `docs/mathematics/averaged.md`, "Intervals of its probabilities". The 1 of V is a row told all
        wrong, as residuals say little where all are told well.
        """
        rows, weight, spread = predicted.rows, predicted.share * predicted.count, np.zeros(len(self.weights))
        points = (self.weights > 0) & [not self.drawn(member) for member in self.members]
        fitted = self.log_density(rows.x, rows.c, points, rows.e)
        for m, inside in zip(np.flatnonzero(points), fitted, strict=True) if len(rows) else ():
            density = np.maximum(predicted.density[m], -1e100)
            apart = np.eye(density.shape[1])[rows.codes]
            apart = apart - softmax(predicted.log_prior + self.exponents[m] * density, axis=1)
            gain, square = ((values * apart).sum(1) @ weight for values in (inside - density, apart))
            spread[m] = max((gain + 1) / (square + 1), 0.0) ** 0.5
        return replace(self, spread=spread)

    def with_looseness(self, predicted, tempered: bool) -> "Average":
        """Return the average with the `looseness` of ``tempered`` members, by rows left out (`LeftOut`)."""
        weight, looseness = predicted.share * predicted.count, np.zeros(len(self.weights))
        for m in np.flatnonzero(self.weights) if tempered and len(weight) else ():
            density, tau = np.maximum(predicted.density[m], -1e100), self.exponents[m]  # -inf leaves no variance
            q = softmax(predicted.log_prior + tau * density, axis=1)
            variance = (q * (density - (q * density).sum(1, keepdims=True)) ** 2).sum(1)
            looseness[m] = (tau**2 * weight @ variance + tempering.SPREAD**-2) ** -0.5
        return replace(self, looseness=looseness)

    def parameters(self, member: Product, size: tuple[int, ...], rng) -> dict[str, Any]:
        """Draw the parameters of one member, in units of the bent columns: dims and values (*size, ...) by name."""
        drawn = rng.dirichlet(self.class_weight + self.concentration, size)
        result: dict[str, Any] = {"class_probability": (("class",), drawn)}
        for fitted, place in self.places(member):
            result |= fitted.parameters(place, size, rng)
        if member.leaves:
            leaves: Any = self.leaves
            result |= {site: (leaves.posterior.dims(site), v) for site, v in leaves.draws(rng, size).items()}
        return result

    def with_class_prior(self, classes) -> "Average":
        return replace(self, given=np.asarray(classes.probability))

    def pieces(self, rows: int, used):
        """Return slices of rows whose densities under some members fit into memory."""
        return pieces(rows, int(used.sum()) * len(self.class_weight), _CELLS, rows)


def _write(result, parts, places, x, c) -> None:
    """Write densities of members (m, n, K) by their places among those of some parts; 0 where the place is below 0.

    The members of a part stand side by side.
    """
    result[places < 0] = 0.0
    start = 0
    for fitted in parts:
        wanted = np.flatnonzero((places >= start) & (places < start + len(fitted.members)))
        if len(wanted):
            members: Any = places[wanted] - start
            several = bool((members[1:] <= members[:-1]).any())
            members, turn = np.unique(members, return_inverse=True) if several else (members, None)
            density = fitted.log_density(x, c, members)
            result[wanted[0] : wanted[-1] + 1] = density[turn] if several else density
        start += len(fitted.members)


class Slot(NamedTuple):
    """Parts of which each member of an average has one factor at most."""

    parts: list[Any]
    place: np.ndarray  # (M,): place of the factor of each member among the members of these parts, -1 without one

    def of_members(self, values, without) -> np.ndarray:
        """Return for each member what stands at its place in values of all parts, or the value ``without`` a factor."""
        return np.array([*chain.from_iterable(values), without])[self.place]


@dataclass(frozen=True)
class Roster:
    """All members of an average, and where their densities stand among those of its parts."""

    # products of each member of the numbers, then none, with each of the categories, then none; the base rate, if it is
    # not the last of these; then products of members of the whole table, and scorers
    members: list[Any]
    slots: list[Slot]  # of the numbers, and of what is multiplied with no other member; and of the categories
    carries: np.ndarray  # (M,): True for products with leaves

    @classmethod
    def of(cls, parts, leaves: ColumnModels | None) -> "Roster":
        """Combine the members of the parts."""
        blocks = (NUMBERS,), (CATEGORIES,)
        slots = [[fitted for fitted in parts if fitted.members[0].blocks == block] for block in blocks]
        every = [[member for fitted in slot for member in fitted.members] for slot in slots]
        places = list(product(*([*range(len(factors)), -1] for factors in every)))
        names = () if leaves is None else leaves.names
        chosen = ((factors[i] for factors, i in zip(every, place, strict=True) if i >= 0) for place in places)
        members: list[Any] = [Product(tuple(factors), names) for factors in chosen]
        carries = [bool(names)] * len(members)
        if names:
            members, places, carries = [*members, NOTHING], [*places, (-1,) * len(slots)], [*carries, False]
        alone = [fitted for fitted in parts if fitted.members[0].blocks not in blocks]
        for i, member in enumerate((member for fitted in alone for member in fitted.members), len(every[0])):
            members.append(Product((member,), names) if member.blocks else member)
            places.append((i, *(-1,) * (len(slots) - 1)))
            carries.append(bool(names and member.blocks))
        slots[0] += alone
        return cls(members, list(map(Slot, slots, np.array(places, np.intp).T)), np.array(carries))

    @functools.cached_property
    def least(self) -> np.ndarray:
        """The s of each member, (M,); see `tempering.log_probability`."""
        first = self.slots[0]
        return first.of_members(([fitted.least] * len(fitted.members) for fitted in first.parts), 0.0)

    @functools.cached_property
    def generates(self) -> np.ndarray:
        """True for each member all of whose factors have a density, (M,)."""
        each = (slot.of_members(([p.generates] * len(p.members) for p in slot.parts), True) for slot in self.slots)
        return np.all([*each], axis=0)

    def combined(self, shape: tuple[int, int], density_of, leaf=None) -> np.ndarray:
        """Return the log densities of all members, (M, n, K), of the ``shape`` (n, K).

        They are made of ``density_of(fitted)``, those of the members of a part, (m, n, K), and the log density of the
        leaves (n, K), if any.
        """
        result = np.zeros((len(self.members), *shape))
        for slot in self.slots:
            each = [values for fitted in slot.parts for values in density_of(fitted)]
            for m in np.flatnonzero(slot.place >= 0):
                result[m] += each[slot.place[m]]
        if leaf is not None:
            result[self.carries] += leaf
        return result

    def dense(self, blocks) -> np.ndarray:
        """Return True for each member with a density of these blocks, and of the leaves if there are any, (M,)."""
        whole = self.generates & [all(block in member.blocks for block in blocks) for member in self.members]
        return whole & self.carries if self.carries.any() else whole

    def log_evidence(self, dense) -> np.ndarray:
        """Return log p(x | t) of all rows under every member, (M,); -inf without one, or if it is not ``dense``."""
        each = (slot.of_members((fitted.log_evidence() for fitted in slot.parts), 0.0) for slot in self.slots)
        return np.where(dense, sum(each), -np.inf)
