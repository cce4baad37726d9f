"""The members of an average that have a density, as factors; their mixture; and members under drawn parameters.

Only the untempered members take part, in proportion to the weights v stacked on log p(x, t); see `average`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen.averaging.draws import shares as drawn_shares
from bayesgen.averaging.leaves import ColumnModels
from bayesgen.numerics.pieces import taken
from bayesgen.posterior.component import Components, Factor, Gap, Rows, gaps
from bayesgen.posterior.conditional import Listed
from bayesgen.posterior.leaf_factor import LeafFactor, leaf_factors

NUMBERS, CATEGORIES = "numbers", "categories"  # names of the blocks
LEAF = "leaf."  # stands before the name of a leaf's block


def codes_of(rows: Rows) -> np.ndarray:
    """Return the codes of categories, -1 where missing, as members take them."""
    c = rows[CATEGORIES]
    return np.where(np.isnan(c), -1, c).astype(np.intp)


def leaf_blocks(leaves: ColumnModels, e) -> dict[str, np.ndarray]:
    """Return the blocks of the leaves from their columns side by side, (n, E)."""
    return {LEAF + name: entries for name, entries in leaves.blocks(e).items()}


def joined_leaves(leaves: ColumnModels, rows: Rows) -> np.ndarray:
    """Return the columns of the leaves side by side, (n, E)."""
    return leaves.joined({name.removeprefix(LEAF): entries for name, entries in rows.items()})


@dataclass(frozen=True, eq=False)
class CategoryFactor(Factor):
    """The categories under one member, and one table of probabilities.

    Attributes
    ----------
    counts : CategoryMembers
    level : array, shape (K, L)
        p(a | k).
    table : array, shape (K, L, L), or None
        p(b | k, a), where the categories have one parent.
    """

    counts: Any
    level: np.ndarray
    table: np.ndarray | None

    blocks = (CATEGORIES,)

    @property
    def owner(self) -> np.ndarray:  # type: ignore[override]
        """The classes."""
        return np.arange(len(self.level))

    def log_density(self, rows):
        """Return the log probability of the categories."""
        return self.counts.density(codes_of(rows), self.level, self.table).T

    def fill(self, rows, group, rng):
        """Draw row by row."""
        c = codes_of(rows)
        for i in np.flatnonzero((c < 0).any(1)):
            c[i] = self.counts.fill(c[i], self.level[group[i]], taken(self.table, group[i]), rng)
        return {CATEGORIES: c.astype(float)}

    def conditionals(self, rows, block) -> Iterator[tuple[Gap, Listed]]:
        """Yield the levels of each column, which the other categories of a row move where they have one parent."""
        c, stops = codes_of(rows), np.cumsum(self.counts.levels)
        for gap in gaps(block, rows[block]):
            size = int(self.counts.levels[gap.place])
            if self.table is None:
                log_mass = np.log(self.level[:, None, stops[gap.place] - size : stops[gap.place]])
            else:
                every = np.repeat(c[gap.rows], size, axis=0)
                every[:, gap.place] = np.tile(np.arange(size), len(gap.rows))
                without = self.counts.density(c[gap.rows], self.level, self.table).T
                joint = self.counts.density(every, self.level, self.table).T.reshape(*without.shape, size)
                log_mass = joint - without[..., None]
            yield gap, Listed(np.arange(size, dtype=float), log_mass, label=True)


def view_factor(view, place: int, rng=None) -> LeafFactor:
    """Return a member of a view of the numbers; with ``rng`` under a draw of its parameters."""
    posterior, params, shares = view.posterior(place), None, view.log_share
    if rng is not None:
        drawn = posterior._expand(posterior.sample_parameters(rng, ()))
        params, shares = {site: v[None] for site, v in drawn.items()}, np.log(drawn_shares(view, (), rng))
    return LeafFactor(NUMBERS, (), posterior, view.view.owner, params, shares=shares, bend=view.view.warp)


def places_of(average, weights, besides=None) -> np.ndarray:
    """Return the places of the members of a mixture under some weights; see `components_of`."""
    used = weights > 0
    if besides is not None:
        used = used | (besides > 0)
    factors = [all(part.generates for part, _ in average.places(member)) for member in average.members]
    return np.flatnonzero(used & np.array(factors))


def components_of(average, labels, weights, besides=None) -> Components:
    """Return the mixture of untempered members.

    Parameters
    ----------
    average : Average
    labels : collection of str
        Names of the leaves of columns that model categories.
    weights : array, shape (M,)
        Weights of the members, which sum to 1: members of weight 0 are left out.
    besides : array, shape (M,), optional
        Members for which this is above 0 are in the mixture with the weight 0, if all their factors are known.
    """
    used, made = places_of(average, weights, besides), {}
    for m in used[np.argsort(-weights[used], kind="stable")]:  # the heaviest first, which cut a line
        for part, place in average.places(average.members[m]):
            if (id(part), place) not in made:
                made[id(part), place] = part.factor(place)
    order, choice = list(made), np.full((len(used), len(made)), -1)
    for row, m in enumerate(used):
        choice[row, [order.index((id(part), place)) for part, place in average.places(average.members[m])]] = 0
    leaves = [] if average.leaves is None else leaf_factors(average.leaves.posterior, labels, before=LEAF)
    carried = np.where(average.carries[used, None], 0, -1) + np.zeros((1, len(leaves)), int)
    log_class = np.broadcast_to(average.log_class_prior, (len(used), len(average.class_weight)))
    with np.errstate(divide="ignore"):
        log_member = np.log(weights[used])
    return Components(log_member, log_class, [*made.values(), *leaves], np.concatenate([choice, carried], axis=1))


def heaviest(weights, share: float) -> np.ndarray:
    """Return the largest weights, which have at least this share of the sum, scaled to the sum 1; 0 for the others."""
    if share == 1:
        return weights
    order = np.argsort(-weights, kind="stable")
    kept = order[: 1 + np.searchsorted(np.cumsum(weights[order]), share)]
    result = np.zeros_like(weights)
    result[kept] = weights[kept]
    return result / result.sum()


@dataclass(frozen=True)
class MemberSums:
    """Sums of the rows, which the parameters of one member follow.

    Attributes
    ----------
    classes : array, shape (K,)
        Weight of each class, with its concentration.
    parts : tuple of (FittedMembers, int)
        The fits that its factors are members of, and its places there.
    leaves : ColumnModels or None
        The leaves of other columns.
    labels : collection of str
        Names of the leaves that model categories.
    """

    classes: np.ndarray
    parts: tuple[tuple[Any, int], ...]
    leaves: ColumnModels | None
    labels: Any

    @classmethod
    def of(cls, average, member, labels) -> "MemberSums":
        """Return the sums of the fit."""
        classes = average.class_weight + average.concentration
        return cls(classes, tuple(average.places(member)), average.leaves, labels)

    def learned(self, rows: Rows, codes, groups, added: bool) -> "MemberSums":
        """Return the sums of completed rows and their groups in each factor, ``added`` to these or in their place."""
        weight = np.bincount(codes, minlength=len(self.classes))
        known = zip(self.parts, groups[: len(self.parts)], strict=True)
        parts = ((part.learned(rows, group, added), place) for (part, place), group in known)
        leaves = self.leaves
        if leaves is not None:
            other = leaves.of_rows(joined_leaves(leaves, rows), codes)
            leaves = replace(other, statistics=leaves.statistics + other.statistics) if added else other
        return replace(self, classes=self.classes + added * weight, parts=tuple(parts), leaves=leaves)

    def drawn(self, rng) -> Components:
        """Return the member under a draw of its parameters."""
        factors: list[Factor] = [part.drawn_factor(place, rng) for part, place in self.parts]
        if self.leaves is not None:
            params = {site: v[None] for site, v in self.leaves.draws(rng, ()).items()}
            factors += leaf_factors(self.leaves.posterior, self.labels, params, LEAF)
        log_class = np.log(rng.dirichlet(self.classes))[None]
        return Components(np.zeros(1), log_class, factors, np.zeros((1, len(factors)), np.intp))


@np.errstate(over="ignore", invalid="ignore")
def knows(average, x, c, e, codes) -> bool:
    """Return True if these are the rows of the fit, as the sums of their classes and columns show."""
    classes = len(average.class_weight)
    pairs = [(np.bincount(codes, minlength=classes), average.class_weight)]
    for kind in ("numbers", "categories"):
        every = [part.sums(x, c, codes) for part in average.taking(kind)]
        known = [own for own in every if own is not None]
        if every and not known:
            return False
        pairs += known[0] if known else []
    if average.leaves is not None:
        if not average.leaves.has_closed_form(e):
            return False
        own = average.leaves.of_rows(e, codes)
        pairs += zip(own.hyperparameters(), average.leaves.hyperparameters(), strict=True)
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in pairs)
