r"""Mixtures of products: the density of rows and classes, and of entries that rows lack, under any generative fit.

A **factor** is the density of some blocks of columns under groups g, each of one class. It may come in several
alternatives: the members of one structure, or the draws of a sampler. A member m of a mixture takes one alternative of
each factor, or leaves it out, and is the product of these:

.. math:: p(x, t = k) = \sum_m w_m\, \pi_{mk} \prod_f f_{m}(x \mid k), \qquad
   f_m(x \mid k) = \sum_{g \in G(f, m, k)} s_g\, p_f(x \mid g)

with weights w of the members, class probabilities π and shares s of the groups, which sum to 1 within a class. So an
exact posterior of naive Bayes is one member, whose factors are its leaves with the parameters integrated out; a sampled
one has a member for each draw; and an average has the products of its members. The products are never expanded: each
factor is worked out once for all members.

Missing entries are integrated out of every factor. Given the observed entries x_o of a row, the components (m, k, g of
each factor) have the probabilities p(m, k, g | x_o), and given a component a missing entry has a `Conditional`.
"""

import abc
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from bayesgen.numerics.draws import choose
from bayesgen.numerics.pieces import count_rows, select_rows
from bayesgen.numerics.special import log_sum_groups
from bayesgen.posterior.conditional import Conditional, pieces_of_line, summed_by_class

Rows = Mapping[str, np.ndarray]  # name of a block -> its entries (n, ...) as floats, NaN where missing


class Gap(NamedTuple):
    """A column with missing entries."""

    block: str  # its block
    place: int  # its place among the columns of the block
    rows: np.ndarray  # rows in which it is missing


class Entry(NamedTuple):
    """The missing entries of one column, with what is known of them."""

    gap: Gap
    conditional: Conditional  # their distributions under each of G groups
    log_weight: np.ndarray  # (G, E): log p(x_o, k, g) of their rows
    owner: np.ndarray  # (G,): class of each group
    cutting: np.ndarray  # (G,): True for groups at whose quantiles a line is cut
    # places of the factors of the block; the G groups are those of the first, then of the next, and so on
    used: list[int]

    def expected(self) -> np.ndarray:
        """Return the values to fill in, (E,)."""
        return self.conditional.expected(softmax(self.log_weight, axis=0))

    def along(self) -> "Along":
        """Return the joint density along the entries."""
        pieces = pieces_of_line(self.cutting, int(self.owner.max()) + 1)
        values, z, log_width = self.conditional.nodes(self.cutting, pieces)
        log_density = self.conditional.log_density(z)
        log_joint = summed_by_class(log_density + self.log_weight[..., None], self.owner)
        return Along(values, log_joint, log_width, log_density)


class Along(NamedTuple):
    """The joint density of rows and classes at Q values of E entries."""

    values: np.ndarray  # (E, Q) or (Q,)
    log_joint: np.ndarray  # (K, E, Q): log p(x_o, v, t = k), v in the units of bent columns
    log_width: Any  # (E, Q), or 0: log of the width of the piece of a line for which a node stands
    log_density: np.ndarray  # (G, E, Q) or (G, 1, Q): log density of the values under each group


class Factor(abc.ABC):
    """The density of some blocks of columns under groups, by which missing entries are known and rows can be drawn.

    A subclass must write `blocks`, `owner`, `log_density`, `conditionals` and `fill`. It may write two arrays (G,), by
    default 0, as where each class is a group: ``alternative``, the alternative to which each group belongs, and
    ``log_share``, its log probability within its alternative and class. The groups stand in the order of alternatives,
    then of classes, and every alternative has a group of every class.
    """

    blocks: tuple[str, ...]  # names of the blocks
    owner: Any  # (G,): class of each group

    @functools.cached_property
    def alternative(self) -> np.ndarray:
        """The only alternative, for every group."""
        return np.zeros(len(self.owner), np.intp)

    @functools.cached_property
    def log_share(self) -> np.ndarray:
        """0, where each class is a group."""
        return np.zeros(len(self.owner))

    @abc.abstractmethod
    def log_density(self, rows: Rows) -> np.ndarray:
        """Return log p(x | g) of rows, (G, n), missing entries integrated out; 0 for a row without entries.

        All factors of one block have it in the same units.
        """

    @property
    def classes(self) -> int:
        """Number of classes, K."""
        return int(self.owner[-1]) + 1

    @property
    def alternatives(self) -> int:
        """Number of alternatives, A."""
        return int(self.alternative[-1]) + 1

    @functools.cached_property
    def first(self) -> np.ndarray:
        """Place of the first group of each alternative and class, (A K,)."""
        cell = self.alternative * self.classes + self.owner
        return np.searchsorted(cell, np.arange(self.alternatives * self.classes))

    def by_class(self, density) -> np.ndarray:
        """Return log p(x | k) under each alternative, (A, K, n), from log p(x | g), (G, n)."""
        shape = self.alternatives, self.classes, density.shape[1]
        if len(density) == shape[0] * shape[1]:
            return density.reshape(shape)
        return log_sum_groups(density + self.log_share[:, None], self.first).reshape(shape)

    @abc.abstractmethod
    def conditionals(self, rows: Rows, block: str) -> Iterator[tuple[Gap, Conditional]]:
        """Yield the columns of a block that have missing entries, and the distributions of these given their rows."""

    @abc.abstractmethod
    def fill(self, rows: Rows, group, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw the missing entries of the blocks (n, ...) given the observed ones; all of a row without entries.

        ``group`` (n,) is the group of each row. The blocks of the factor come back, whole.
        """


@dataclass(frozen=True)
class Components:
    """A mixture of products of factors."""

    log_member: np.ndarray  # (M,): log w_m
    log_class: np.ndarray  # (M, K): log π_mk
    factors: Sequence[Factor]  # between them they have every block, under every member
    # (M, F): alternative that a member takes of each factor, -1 for none: several factors may model one block
    choice: np.ndarray

    @property
    def classes(self) -> int:
        """Number of classes, K."""
        return self.log_class.shape[1]

    @property
    def groups(self) -> int:
        """The most numbers that `given` holds for a row in one array: groups of a factor, or members times classes."""
        return max(self.log_class.size, *(len(factor.owner) for factor in self.factors))

    @property
    def nodes(self) -> int:
        """The most numbers that `Entry.along` holds for an entry in one array: groups times nodes."""
        cutting = (self.cutting(block) for block in {name for factor in self.factors for name in factor.blocks})
        return max(len(groups) * 2 * pieces_of_line(groups, self.classes) for groups in cutting)

    def used(self, block: str) -> list[int]:
        """Return the places of the factors of a block."""
        return [f for f, factor in enumerate(self.factors) if block in factor.blocks]

    def cutting(self, block: str) -> np.ndarray:
        """Return True for the groups of a block at whose quantiles a line is cut, (G,).

        They are those of five alternatives at most: the heaviest, and others at even steps down the order of weight.
        What no member with a weight takes cuts no line.
        """
        share, heavy, place, start = np.exp(self.log_member), [], [], 0
        for f in self.used(block):
            factor, takes = self.factors[f], self.choice[:, f] >= 0
            heavy.append(np.bincount(self.choice[takes, f], share[takes], factor.alternatives))
            place.append(start + factor.alternative)
            start += factor.alternatives
        weight = np.concatenate(heavy)
        order = np.argsort(-weight, kind="stable")[: np.count_nonzero(weight)]
        return np.isin(np.concatenate(place), order[:: max(1, len(order) // 3)])

    def given(self, rows: Rows, codes=None) -> "Given":
        """Return the components given the observed entries of rows, and their classes (n,) where they are known."""
        return self._given(rows, [factor.log_density(rows) for factor in self.factors], codes)

    def _given(self, rows: Rows, densities, codes=None) -> "Given":
        by_class = [factor.by_class(density) for factor, density in zip(self.factors, densities, strict=True)]
        joint = np.repeat((self.log_member[:, None] + self.log_class)[..., None], count_rows(rows), axis=-1)
        for density, choice in zip(by_class, self.choice.T, strict=True):
            joint[choice >= 0] += density[choice[choice >= 0]]
        if codes is not None:
            joint = np.where(np.arange(self.classes)[:, None] == codes, joint, -np.inf)
        lost = np.isneginf(joint).all((0, 1))
        if lost.any():  # as under a plug-in estimate
            prior = np.logaddexp.reduce(self.log_member[:, None] + self.log_class)[:, None]
            instead = prior if codes is None else np.where(np.arange(self.classes)[:, None] == codes, 0.0, -np.inf)
            joint[..., lost] = np.broadcast_to(instead, joint.shape[1:])[:, lost]
        return Given(self, rows, densities, by_class, joint)

    def log_total(self, rows: Rows, codes=None) -> np.ndarray:
        """Return log p(x_1, ..., x_n | m), each row given the parameters of the member: (M,)."""
        joint = self.given(rows, codes).log_joint - self.log_member[:, None, None]
        return np.logaddexp.reduce(joint, axis=1).sum(-1)

    def fill(self, rows: Rows, groups, rng) -> dict[str, np.ndarray]:
        """Draw the missing entries of rows, whose groups (n,) in each factor are -1 where a member leaves it out."""
        result = {block: entries.copy() for block, entries in rows.items()}
        for factor, group in zip(self.factors, groups, strict=True):
            used = slice(None) if (group >= 0).all() else np.flatnonzero(group >= 0)
            entries_of = {block: rows[block][used] for block in factor.blocks}
            for block, entries in factor.fill(entries_of, group[used], rng).items() if group[used].size else ():
                result[block][used] = entries
        return result

    def complete(self, rows: Rows, codes, rng) -> tuple[dict[str, np.ndarray], np.ndarray, list[np.ndarray]]:
        """Draw missing entries, and unknown classes; return the rows, their codes (n,), and groups (n,) by factor."""
        if codes is not None and len(self.log_member) == 1 and all(len(f.owner) == self.classes for f in self.factors):
            groups = [codes for _ in self.factors]
        else:
            codes, groups = self.given(rows, codes).choose(rng)
        return self.fill(rows, groups, rng), codes, groups

    def draw(self, nothing: Rows, codes, rng) -> dict[str, np.ndarray]:
        """Draw rows of given classes (n,), each from a member of its own; ``nothing`` is one row without entries."""
        if not self.factors:
            return select_rows(nothing, 0 * codes)
        groups = np.empty((len(self.factors), len(codes)), np.intp)
        prior = self._given(nothing, [np.zeros((len(factor.owner), 1)) for factor in self.factors])
        for k in np.unique(codes):
            rows, joint = np.flatnonzero(codes == k), np.full_like(prior.log_joint, -np.inf)
            joint[:, k] = prior.log_joint[:, k]
            _, chosen = replace(prior, log_joint=joint).choose(rng, (len(rows),))
            groups[:, rows] = [group[:, 0] for group in chosen]
        return self.fill(select_rows(nothing, 0 * codes), groups, rng)


@dataclass(frozen=True)
class Given:
    """The components of a mixture given the observed entries of n rows."""

    components: Components
    rows: Rows
    densities: list[np.ndarray]  # (G, n): log p(x_o | g) of each factor
    by_class: list[np.ndarray]  # (A, K, n): log p(x_o | k) of each factor
    # (M, K, n): log p(x_o, t = k, m); where a row is impossible under every member, the class prior
    log_joint: np.ndarray

    @property
    def chance(self) -> np.ndarray:
        """p(m, t = k | x_o), shape (M, K, n)."""
        return softmax(self.log_joint, axis=(0, 1))

    def choose(self, rng, size: tuple[int, ...] = ()) -> tuple[np.ndarray, list[np.ndarray]]:
        """Draw a component for each row: its class, (*size, n), and its group in each factor, -1 for none."""
        _, classes, count = self.log_joint.shape
        place = choose(self.chance.reshape(-1, count).T, rng, size)
        member, code = np.divmod(place, classes)
        groups = []
        for f, factor in enumerate(self.components.factors):
            alternative = self.components.choice[member, f]
            first = factor.first
            group = np.where(alternative >= 0, first[np.maximum(alternative, 0) * classes + code], -1)
            if len(first) < len(factor.owner):
                group = self._choose_group(f, group, rng)
            groups.append(group)
        return code, groups

    def _choose_group(self, f: int, group, rng) -> np.ndarray:
        """Draw one of the groups of an alternative and class, whose first is given, by the entries that a row has."""
        factor, result = self.components.factors[f], group.copy()
        last = np.append(factor.first, len(factor.owner))
        row = np.broadcast_to(np.arange(group.shape[-1]), group.shape)
        for cell, start in enumerate(last[:-1]):
            chosen = group == start
            if last[cell + 1] > start + 1 and chosen.any():
                cells = slice(start, last[cell + 1])
                score = (self.densities[f][cells] + factor.log_share[cells, None])[:, row[chosen]]
                result[chosen] = start + choose(softmax(score, axis=0).T, rng)
        return result

    def _log_groups(self, f: int) -> np.ndarray:
        """Return log p(x_o, alternative, g) of a factor, (G, n)."""
        factor, choice = self.components.factors[f], self.components.choice[:, f]
        single = len(factor.owner) == factor.alternatives * factor.classes
        if single and np.array_equal(choice, np.arange(factor.alternatives)):
            return self.log_joint.reshape(len(factor.owner), -1)
        result = np.full((factor.alternatives, *self.log_joint.shape[1:]), -np.inf)
        for a in np.unique(choice[choice >= 0]):
            result[a] = np.logaddexp.reduce(self.log_joint[choice == a], axis=0)
        if single:
            return result.reshape(len(factor.owner), -1)
        with np.errstate(invalid="ignore"):
            others = np.where(np.isneginf(result), -np.inf, result - self.by_class[f])
        others = others.reshape(-1, others.shape[-1])[factor.alternative * factor.classes + factor.owner]
        return others + factor.log_share[:, None] + self.densities[f]

    def by_member(self, entry: Entry | None = None, along: "Along | None" = None) -> np.ndarray:
        """Return log p(x_o | m, k) of rows, (M, K, n); with an entry log p(x_o, v | m, k), v along it, (M, K, E, Q)."""
        members, classes, count = self.log_joint.shape
        shape = (count,) if entry is None or along is None else (len(entry.gap.rows), along.log_density.shape[2])
        result, start = np.zeros((members, classes, *shape)), 0
        for f, (factor, choice) in enumerate(zip(self.components.factors, self.components.choice.T, strict=True)):
            density = self.by_class[f]
            if entry is not None and along is not None:
                density = density[..., entry.gap.rows, None]
                if f in entry.used:
                    start, first = start + len(factor.owner), start
                    each = self.densities[f][:, entry.gap.rows, None] + along.log_density[first:start]
                    density = factor.by_class(each.reshape(len(each), -1)).reshape(-1, classes, *shape)
            result[choice >= 0] += density[choice[choice >= 0]]
        return result

    def entries(self) -> Iterator[Entry]:
        """Yield the columns with missing entries, block by block."""
        factors = self.components.factors
        for block, entries in self.rows.items():
            if not np.isnan(entries).any():
                continue
            used, cutting = self.components.used(block), self.components.cutting(block)
            log_weight = np.concatenate([self._log_groups(f) for f in used])
            owner = np.concatenate([factors[f].owner for f in used])
            every = (factors[f].conditionals(self.rows, block) for f in used)
            for (gap, first), *others in zip(*every, strict=True):
                joined = type(first).joined([first, *(line for _, line in others)]) if others else first
                yield Entry(gap, joined, log_weight[:, gap.rows], owner, cutting, used)


def gaps(block: str, entries) -> Iterator[Gap]:
    """Yield the columns of a block (n, ...) that have missing entries."""
    missing = np.isnan(entries.reshape(len(entries), -1))
    for place in np.flatnonzero(missing.any(0)):
        yield Gap(block, int(place), np.flatnonzero(missing[:, place]))
