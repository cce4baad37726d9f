r"""The average: members of numbers and of categories, their products, exponents and weights.

A member of a table is either a product of a member of the numeric columns (or none) and one of the categorical columns
(or none), whose densities are multiplied, or a member that takes the whole table. The product of none and none ignores
x: it is the base rate. Where columns have leaves of their own, these are one more factor of every product, that of none
and none too, and of every other member that has a density; the base rate, without them, comes after the products. With
q_m of `tempering`,

.. math:: p(k \mid x) = \sum_m w_m q_m(k \mid x), \qquad q_m(k \mid x) \propto \pi_k\, p_m(x \mid k)^{\tau_m}

The average is then sharpened by one exponent more, see `tempering`. Other class priors multiply it by their ratio to π.
It is no joint density of x and t. Typicality, samples and imputation need one, and take the members untempered, under
weights v_m stacked on log p(x, t).
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bayesgen.averaging import draws
from bayesgen.averaging.leaves import ColumnModels
from bayesgen.averaging.member import FittedMembers, Member, Product
from bayesgen.averaging.views import FittedView
from bayesgen.core.registry import saveable
from bayesgen.numerics.pieces import grouped_patterns, one_blas_thread, pieces, split_rows, taken
from bayesgen.numerics.special import log_mixture
from bayesgen.numerics.tempering import sharpened
from bayesgen.posterior.posterior import generator
from bayesgen.posterior.predictive import Predictive

_CELLS = 1 << 20  # densities held at a time, so many that threads seldom wait for each other between products


@saveable
@dataclass(frozen=True, eq=False)
class Average(Predictive):
    """Members with their exponents and weights, which predict classes and rows.

    Rows are a mapping of "numbers" (n, D), NaN where missing, "categories" (n, F), -1 where missing, and "leaves"
    (n, E), NaN where missing, if columns have leaves of their own.

    Attributes
    ----------
    parts : tuple of FittedMembers
        The members, grouped by family and fit.
    class_weight : array, shape (K,)
        Weight of the rows of each class.
    concentration : array, shape (K,)
        Dirichlet prior of the class probabilities.
    exponents, weights, density_weights : array, shape (M,)
        τ, w and v of each member; see `members_of` for their order.
    sharpening : float
        β, the exponent of the average; see `tempering`.
    given : array, shape (K,), optional
        Class probabilities in place of the learned ones.
    leaves : ColumnModels, optional
        Leaves of columns that belong to no other member.
    """

    parts: tuple[FittedMembers, ...]
    class_weight: np.ndarray
    concentration: np.ndarray
    exponents: np.ndarray
    weights: np.ndarray
    density_weights: np.ndarray
    sharpening: float = 1.0
    given: np.ndarray | None = None
    leaves: ColumnModels | None = None

    kind = "average"

    @functools.cached_property
    def log_class_prior(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]  # kept once worked out
        """Log of the learned class probabilities, (K,)."""
        return np.log(self.class_weight + self.concentration) - np.log((self.class_weight + self.concentration).sum())

    @functools.cached_property
    def products(self) -> int:
        """Number of members that are products, which come first."""
        return sum(isinstance(member, Product) for member in self.members)

    @functools.cached_property
    def members(self) -> list:
        """Every member; see `members_of`."""
        return members_of(self.parts, self.leaves)

    @functools.cached_property
    def carries(self) -> np.ndarray:
        """True for each member with the leaves among its factors, (M,)."""
        return carries(self.members, self.leaves)

    @functools.cached_property
    def least(self) -> np.ndarray:
        """The s of each member, (M,); see `tempering.log_probability`."""
        return least(self.parts, self.leaves)

    def taking(self, columns: str) -> tuple[Any, ...]:
        """Return the parts that take "numbers", "categories", or the whole "table"."""
        return taking(self.parts, columns)

    @functools.cached_property
    def bend(self) -> Any:
        """The bends of the numbers, which all members see that see any; None without such."""
        return next((part.bend for part in self.parts if part.bend is not None), None)

    def place(self, member) -> tuple[Any, int]:
        """Return the part to which a member that is no product belongs, and its place there."""
        return self._places[member]

    def places(self, member) -> list[tuple[Any, int]]:
        """Return the parts and places of the factors of a member, without its leaves."""
        own = [one for one in member[:2] if one is not None] if isinstance(member, Product) else [member]
        return [self.place(one) for one in own]

    @functools.cached_property
    def _places(self) -> dict[Any, tuple[Any, int]]:
        parts = (*self.taking("numbers"), *self.taking("categories"), *self.taking("table"))
        return {member: (part, place) for part in parts for place, member in enumerate(part.members)}

    @property
    def keeps_rows(self) -> bool:
        """True if rows of the fit stand among the members."""
        return any(part.keeps_rows for part in self.parts)

    def drawn(self, member) -> bool:
        """Return True for a member whose parameters can be drawn, as those of many numbers in their span cannot."""
        return all(part.drawn for part, _ in self.places(member))

    @one_blas_thread()
    @np.errstate(under="ignore")
    def log_density(self, x, c, used=None, e=None) -> np.ndarray:
        """Return log p(x | k) of rows under the members, (M, n, K), without the Jacobian of the bends, shared by all.

        Parameters
        ----------
        x : array, shape (n, D)
            Numbers, NaN where missing.
        c : int array, shape (n, F)
            Categories, -1 where missing.
        used : bool array, shape (M,), optional
            True for the members to return, in order; by default all.
        e : array, shape (n, E), optional
            Entries of the columns with leaves, NaN where missing; by default all are missing.
        """
        used = np.arange(len(self.weights)) if used is None else np.flatnonzero(used)
        numbers, categories, others = (self.taking(columns) for columns in ("numbers", "categories", "table"))
        first, second = product_parts(_count(numbers), _count(categories), used[used < self.products])
        result = np.empty((len(used), len(self.class_weight), len(x))).swapaxes(1, 2)
        _write(result[: len(first)], numbers, first, x, c)
        if categories:
            some = np.unique(second)
            density = np.empty((len(some), len(self.class_weight), len(x))).swapaxes(1, 2)
            _write(density, categories, some, x, c)
            result[: len(second)] += density[np.searchsorted(some, second)]
        _write(result[len(first) :], others, used[len(first) :] - self.products, x, c)
        if self.leaves is not None and e is not None:
            result[self.carries[used]] += self.leaves.log_density(e)
        return result

    @one_blas_thread()
    @np.errstate(under="ignore")
    def probability(self, x, c, e=None) -> np.ndarray:
        """Return p(k | x) of rows, shape (n, K)."""
        result, used = np.empty((len(x), len(self.class_weight))), self.weights > 0
        least, exponents = self.least[used], self.exponents[used, None, None]
        weights, prior = self.weights[used] / (1 + least), np.exp(self.log_class_prior)
        for part in self._batches(x, used):
            density = self.log_density(x[part], c[part], used, taken(e, part))
            q = density.swapaxes(1, 2)  # (M, K, n): over few classes of many rows
            q *= exponents
            q += self.log_class_prior[:, None]
            q -= q.max(1, keepdims=True)
            np.exp(q, out=q)
            result[part] = np.einsum("mkn,mn->nk", q, weights[:, None] / q.sum(1)) + weights @ least * prior
        result = sharpened(result, prior, self.sharpening)
        if self.given is not None:
            result *= self.given / prior
        return result / result.sum(1, keepdims=True)

    @np.errstate(under="ignore")
    def of_density(self, density, members) -> np.ndarray:
        """Return p(k | x), (K, ...), from log p(x | k), (m, K, ...), under members that have all of the weight."""
        least, prior = self.least[members], np.exp(self.log_class_prior)
        weights, axes = self.weights[members] / (1 + least), (1,) * (density.ndim - 2)
        q = density * self.exponents[members].reshape(-1, 1, *axes)
        q += self.log_class_prior.reshape(-1, *axes)
        q -= q.max(1, keepdims=True)
        np.exp(q, out=q)
        q /= q.sum(1, keepdims=True)
        prior = prior.reshape(-1, *axes)
        result = sharpened(np.tensordot(weights, q, 1) + weights @ least * prior, prior, self.sharpening)
        if self.given is not None:
            result *= self.given.reshape(-1, *axes) / prior
        return result / result.sum(0)

    @one_blas_thread()
    @np.errstate(under="ignore")
    def log_joint(self, x, c, e=None) -> np.ndarray:
        """Return log p(x, k) under the untempered members, (n, K), in the units of the columns, with learned priors."""
        result = np.empty((len(x), len(self.class_weight)))
        used = self.density_weights > 0
        for part in self._batches(x, used):
            density = self.log_density(x[part], c[part], used, taken(e, part))
            result[part] = log_mixture(density, self.density_weights[used])
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
        """Yield log p(t = k | x, m, θ), members m drawn by weight and θ from their posteriors."""
        seed = int(generator(seed).integers(1 << 31))  # the same draws for every piece
        prior = np.exp(self.log_class_prior)
        ratio = 1.0 if self.given is None else self.given / prior
        params = {"classes.probability": np.broadcast_to(prior * ratio, (size, len(prior)))}
        for rows in split_rows(x, step):
            arrays = rows["numbers"], rows["categories"], rows.get("leaves")
            own = draws.probabilities(self, *arrays, size, np.random.default_rng(seed))
            with np.errstate(divide="ignore"):
                yield np.log(own * ratio).swapaxes(1, 2), params

    def with_class_prior(self, classes) -> "Average":
        """Return the average under given class probabilities, which change no exponent or weight."""
        return replace(self, given=np.asarray(classes.probability))

    def pieces(self, rows: int, used):
        """Return slices of rows whose densities under some members fit into memory."""
        return pieces(rows, int(used.sum()) * len(self.class_weight), _CELLS, rows)

    def _batches(self, x, used):
        """Return slices of rows (n, D) as `pieces` does; or indices, rows that lack the same entries together."""
        parts, seen = self.pieces(len(x), used), ~np.isnan(x)
        if seen.all():
            return parts
        _, order, _ = grouped_patterns(seen)
        return (order[part] for part in parts)

    def __getstate__(self):
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without cached properties


def _write(result, parts, places, x, c) -> None:
    """Write densities of members (m, n, K) by place, ascending, among those of some parts; beyond the last is none.

    Rows are read once for all views that share their bends, as those of one fit mostly do.
    """
    start = done = 0
    warp, read = None, ()
    for part in parts:
        first, start = start, start + len(part.members)
        end = done + np.count_nonzero(places[done:] < start)
        if done < end:
            some, place = places[done:end] - first, slice(None)
            if not (some[1:] > some[:-1]).all():
                some, place = np.unique(some, return_inverse=True)
            if not isinstance(part, FittedView):
                density = part.log_density(x, c, some)
            else:
                own = part.view.warp
                if warp is None or not (own is warp or own == warp):
                    warp, read = own, part.view.read_near(x)
                density = part.of_read(x, read, some)
            result[done:end] = density[place]
        done = end
    result[done:] = 0.0


def taking(parts, columns: str) -> tuple[Any, ...]:
    """Return the parts whose members take "numbers", "categories", or the whole "table"."""
    return tuple(part for part in parts if part.members[0].takes == columns)


def _count(parts) -> int:
    return sum(len(part.members) for part in parts)


def product_parts(numbers: int, categories: int, used) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the parts of some products among so many members of numbers and of categories.

    The last of each is none. The base rate, which comes after the products with leaves, is that of none and none.
    """
    pairs = (1 + numbers) * (1 + categories)
    return np.divmod(np.minimum(used, pairs - 1), 1 + categories)


def members_of(parts, leaves: ColumnModels | None = None) -> list[Product | Member]:
    """List all members: products of each of the numbers, then none, with each of the categories, then none; others."""
    first, second, others = (
        [member for part in taking(parts, columns) for member in part.members]
        for columns in ("numbers", "categories", "table")
    )
    names, base = ((), []) if leaves is None else (leaves.names, [Product(None, None)])
    return [*(Product(a, b, names) for a in [*first, None] for b in [*second, None]), *base, *others]


def carries(members, leaves: ColumnModels | None) -> np.ndarray:
    """Return True for each member with the leaves among its factors, shape (M,): all that have a density."""
    own = [bool(m.leaves) if isinstance(m, Product) else m.generative for m in members]
    return np.array(own) & (leaves is not None)


def least(parts, leaves: ColumnModels | None = None) -> np.ndarray:
    """Return the s of every member, (M,): that of its part for a member of the table, and 0 for a product."""
    numbers, categories, others = (taking(parts, columns) for columns in ("numbers", "categories", "table"))
    pairs = (1 + _count(numbers)) * (1 + _count(categories)) + (leaves is not None)
    return np.concatenate([np.zeros(pairs), *(np.full(len(part.members), part.least) for part in others)])


def generative(members, parts, numbers: int, categories: int) -> np.ndarray:
    """Return True for each member that has a density of all columns, so many numbers and categories, shape (M,).

    Members that are no factors of the density of rows take no part.
    """
    missing, still = (
        [not numbers, not categories],
        {id(m) for part in parts if not part.generates for m in part.members},
    )

    def dense(member):
        if not isinstance(member, Product):
            return member.generative and id(member) not in still
        parts = zip(member[:2], missing, strict=True)
        whole = all(none or (part is not None and id(part) not in still) for part, none in parts)
        return whole and member.leaves == members[0].leaves

    return np.array([dense(member) for member in members])


def products(numbers, categories, rows: int, classes: int) -> np.ndarray:
    """Return the log densities of all products, (M, n, K), from the log densities of their parts."""
    nothing = np.zeros((1, rows, classes))
    first, second = np.concatenate([*numbers, nothing]), np.concatenate([*categories, nothing])
    return (first[:, None] + second[None]).reshape(-1, rows, classes)


def with_leaves(density, leaf, members, leaves: ColumnModels) -> np.ndarray:
    """Return the log densities of all members, (M, n, K), from those without leaves, and without the base rate.

    Parameters
    ----------
    density : array, shape (M - 1, n, K)
    leaf : array, shape (n, K)
        Log density of the leaves.
    members : list
        All members.
    leaves : ColumnModels
    """
    result = np.insert(density, sum(isinstance(member, Product) for member in members) - 1, 0.0, axis=0)
    result[carries(members, leaves)] += leaf
    return result


def log_evidence(members, parts, whole) -> np.ndarray:
    """Return log p(x | t) of all rows under every member, (M,); -inf without an evidence or if it is not ``whole``."""
    first, second = (
        np.concatenate([*(part.log_evidence() for part in own), [-np.inf if own else 0.0]])
        for own in (taking(parts, "numbers"), taking(parts, "categories"))
    )
    result = np.full(len(members), -np.inf)
    pairs = first[:, None] + second
    result[: pairs.size] = pairs.ravel()
    return np.where(whole, result, -np.inf)
