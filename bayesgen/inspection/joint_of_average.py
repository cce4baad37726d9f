"""The joint density of an averaged classifier: a mixture of the untempered members whose factors are known.

They take part in proportion to the weights v stacked on log p(x, t); see `bayesgen.averaging.average`.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bayesgen.averaging import member_rows
from bayesgen.averaging.categories import codes_of
from bayesgen.averaging.leaves import ColumnModels
from bayesgen.averaging.member import CATEGORIES, NUMBERS
from bayesgen.inspection.missing import SHARE, Joint, gibbs
from bayesgen.inspection.one_model import labels_of, totals_of
from bayesgen.numerics.pieces import select_rows
from bayesgen.numerics.yeo_johnson import far_rows
from bayesgen.posterior.component import Components, Factor, Rows
from bayesgen.posterior.leaf_factor import joined, leaf_factors
from bayesgen.tables import arrays

LEAF = "leaf."  # stands before the name of a leaf's block
CONSTANT = "constant"  # the block of the columns that were constant at the fit


class JointOfAverage(Joint):
    """The joint density of columns and class under the untempered members of an average."""

    def __init__(self, classifier):
        self.classifier, self.average = classifier, classifier.average_
        self.log_prior = self.average.log_class_prior
        self.leaves: Any = self.average.leaves
        self.labels = labels_of(classifier.schema_)
        self.constants = {name: value for name, value in classifier.constant_.items() if value == value}

    def read(self, X):
        """Return the numbers of the rows, the codes of their categories, and a block for each leaf.

        The columns that were constant, and are left out, are a block without gaps: a missing entry is the constant.
        """
        rows, classifier = dict(self.classifier.read(X)), self.classifier
        rows["categories"] = np.where(rows["categories"] < 0, np.nan, rows["categories"])
        if self.leaves is not None:
            rows |= leaf_blocks(self.leaves, rows.pop("leaves"))
        if self.constants:
            blocks = classifier.schema_.read(classifier.table(X), classifier.unseen)
            given = arrays.columns(classifier.schema_, blocks, self.constants)
            rows[CONSTANT] = np.where(np.isnan(given), [*self.constants.values()], given)
        return rows

    def nothing(self):
        schema, constant = self.classifier.schema_, self.classifier.constant_
        names = {"numbers": arrays.numbers(schema, constant), "categories": arrays.categories(schema, constant)}
        rows = {name: np.full((1, len(columns)), np.nan) for name, columns in names.items()}
        if self.leaves is not None:
            rows |= leaf_blocks(self.leaves, np.full((1, self.leaves.width), np.nan))
        return rows | ({CONSTANT: np.array([[*self.constants.values()]])} if self.constants else {})

    def arrays(self, rows) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return numbers, codes of categories, -1 where missing, and entries of leaves, as the average takes them."""
        return rows["numbers"], codes_of(rows), None if self.leaves is None else joined_leaves(self.leaves, rows)

    def blocks(self, rows):
        """Return the entries by block of the schema; NaN in a column that had no entry at the fit."""
        x, _, e = self.arrays(rows)
        others = dict(zip(self.constants, rows[CONSTANT].T, strict=True)) if self.constants else None
        return arrays.blocks(self.classifier.schema_, x, rows["categories"], e, self.classifier.constant_, others)

    def column(self, gap):
        schema, constant = self.classifier.schema_, self.classifier.constant_
        names: dict[str, Any] = {LEAF + block.name: block.columns for block in arrays.leaves(schema)}
        names |= {"numbers": arrays.numbers(schema, constant), "categories": arrays.categories(schema, constant)}
        return schema.columns.index(names[gap.block][gap.place])

    def totals(self):
        return {} if self.leaves is None else totals_of(self.leaves.model)

    def check(self, rows, question):
        """Refuse numbers that are too far out, too."""
        super().check(rows, question)
        refuse_far(self.classifier, rows["numbers"], question)

    def log_density(self, rows):
        """Return the log density under the members, in the units of the columns; -inf at another constant."""
        density = self.average.log_joint(*self.arrays(rows)) - self.log_prior
        if self.constants:
            density[(rows[CONSTANT] != [*self.constants.values()]).any(1)] = -np.inf
        return density

    def components(self, draws=None, even=False):
        """Return the members that have a density; class probabilities are the same in all."""
        make = functools.partial(components_of, self.average, self.labels, self.average.density_weights)
        return self.average.mixture("density", make)

    def valued(self):
        """Return the heaviest members that have a density, and besides the heaviest that predict the class by one."""
        make = functools.partial(components_of, self.average, self.labels, *self.heaviest)
        return self.average.mixture("valued", make)

    def log_probability(self, given, entry=None, along=None):
        """Ask the tempered members that have nearly all of the weight; those that are no factors by whole rows."""
        density, rows = given.by_member(entry, along), given.rows
        if entry is not None and along is not None:
            rows = select_rows(rows, np.repeat(entry.gap.rows, density.shape[3]))
            values = np.broadcast_to(along.values, density.shape[2:]).ravel()
            rows[entry.gap.block].reshape(len(values), -1)[:, entry.gap.place] = values
        known, answers = places_of(self.average, *self.heaviest), self.heaviest[1] > 0
        density, members = density[answers[known]], known[answers[known]]
        answers[members] = False
        if answers.any():
            x, c, e = self.arrays(rows)
            more = self.average.log_density(x, c, answers, e).swapaxes(1, 2)
            density = np.concatenate([density, more.reshape(*more.shape[:2], *density.shape[2:])])
        with np.errstate(divide="ignore"):
            return np.log(self.classifier.posterior_.of_density(density, np.append(members, np.flatnonzero(answers))))

    @functools.cached_property
    def heaviest(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest of the weights of densities, and of those of predictions."""
        return heaviest(self.average.density_weights), heaviest(self.average.weights)

    def measured(self, rows):
        """Yield the columns, too, that were left out of the fit: they tell nothing about the class."""
        yield from super().measured(rows)
        nothing = np.zeros((len(self.log_prior), len(rows["numbers"])))
        for name in self.classifier.constant_:
            place = slice(None), self.classifier.schema_.columns.index(name)
            yield place, nothing, nothing[..., None], np.ones((nothing.shape[1], 1))

    def knows(self, rows, codes):
        return knows(self.average, *self.arrays(rows), codes)

    def drawn(self, rows, codes, fitted, rng):
        """Draw a member by what all rows say of it, and its parameters by Gibbs' sampler."""
        components, members = self.components(), np.flatnonzero(self.average.density_weights)
        weight = np.exp(components.log_member) if fitted is not None else self.member_chances(components, rows, codes)
        chains: dict[int, Iterator[Components]] = {}
        while True:
            m = int(rng.choice(len(members), p=weight / weight.sum()))
            if m not in chains:
                known = codes if fitted is None else fitted
                chains[m] = self._gibbs(self.average.members[members[m]], rows, known, rng, fitted is None)
            yield next(chains[m])

    def _gibbs(self, member, rows, codes, rng, added: bool) -> Iterator[Components]:
        """Alternate rows and parameters of one member; sums are ``added`` to those of the fit, or take their place."""
        sums = MemberSums.of(self.average, member, self.labels)
        given = {name: entries for name, entries in rows.items() if name.startswith(LEAF)}
        closed = self.leaves is not None and self.leaves.has_closed_form(joined_leaves(self.leaves, rows))

        def learned(completed, t, groups):
            return sums.learned(completed | given if closed else completed, t, groups, added).drawn(rng)

        seen = [
            ~np.isnan(entries.reshape(len(entries), -1)) | (closed and name in given) for name, entries in rows.items()
        ]
        return gibbs(sums.drawn(rng), learned, rows, codes, rng, np.hstack(seen), added * sums.classes)


def refuse_far(classifier, x, question: str) -> None:
    """Raise if a number of rows (n, D) is so far out that only limits of densities are left, useless for a question."""
    bend = classifier.average_.bend
    if bend is None:
        return
    y = bend.forward(x)
    for row in far_rows(np.where(np.isnan(y), 0.0, y))[:1]:
        place = np.nanargmax(np.abs(y[row]))
        name = arrays.numbers(classifier.schema_, classifier.constant_)[place]
        raise ValueError(
            f"column {name!r}: value {x[row, place]:g} in row {row} is too far from the rows of the fit for "
            f"{question}: give NaN in its place, or leave the row out"
        )


def leaf_blocks(leaves: ColumnModels, e) -> dict[str, np.ndarray]:
    """Return the blocks of the leaves from their columns side by side, (n, E)."""
    return {LEAF + name: entries for name, entries in leaves.blocks(e).items()}


def joined_leaves(leaves: ColumnModels, rows: Rows) -> np.ndarray:
    """Return the columns of the leaves side by side, (n, E)."""
    return leaves.joined({name.removeprefix(LEAF): entries for name, entries in rows.items()})


def places_of(average, weights, besides=None) -> np.ndarray:
    """Return the places of the members of a mixture under some weights; see `components_of`."""
    used = weights > 0 if besides is None else (weights > 0) | (besides > 0)
    return np.flatnonzero(used & average.roster.generates)


def components_of(average, labels, weights, besides=None) -> Components:
    """Return the mixture of untempered members under ``weights`` (M,), which sum to 1; those of weight 0 are left out.

    Members for which ``besides`` (M,) is above 0 are there with the weight 0, if all their factors are known.
    The leaves named by ``labels`` model categories.
    """
    used, made = places_of(average, weights, besides), {}
    for m in used:
        for member in average.members[m].factors:
            if member not in made:
                fit, place = average.place_of[member]
                made[member] = fit.factor(place)
    order, choice = list(made), np.full((len(used), len(made)), -1)
    for row, m in enumerate(used):
        choice[row, [order.index(member) for member in average.members[m].factors]] = 0
    leaves = [] if average.leaves is None else leaf_factors(average.leaves.posterior, labels, before=LEAF)
    carried = np.where(average.roster.carries[used, None], 0, -1) + np.zeros((1, len(leaves)), int)
    log_class = np.broadcast_to(average.log_class_prior, (len(used), len(average.class_weight)))
    with np.errstate(divide="ignore"):
        log_member = np.log(weights[used])
    factors, choice = joined([*made.values(), *leaves], np.concatenate([choice, carried], axis=1))
    return Components(log_member, log_class, factors, choice)


def heaviest(weights) -> np.ndarray:
    """Return the largest weights, which have at least `SHARE` of the sum, scaled to the sum 1; 0 for the others."""
    order = np.argsort(-weights, kind="stable")
    kept = order[: 1 + np.searchsorted(np.cumsum(weights[order]), SHARE)]
    result = np.zeros_like(weights)
    result[kept] = weights[kept]
    return result / result.sum()


@dataclass(frozen=True)
class MemberSums:
    """Sums of the rows, which the parameters of one member follow."""

    classes: np.ndarray  # (K,): weight of each class, with its concentration
    parts: tuple[tuple[Any, int], ...]  # the fits that its factors are members of, and its places there
    leaves: ColumnModels | None  # the leaves of other columns
    labels: Any  # names of the leaves that model categories

    @classmethod
    def of(cls, average, member, labels) -> "MemberSums":
        """Return the sums of the fit."""
        classes = average.class_weight + average.concentration
        return cls(classes, tuple(average.places(member)), average.leaves, labels)

    def learned(self, rows: Rows, codes, groups, added: bool) -> "MemberSums":
        """Return the sums of completed rows and their groups in each factor, ``added`` to these or in their place."""
        weight = np.bincount(codes, minlength=len(self.classes))
        known = zip(self.parts, groups[: len(self.parts)], strict=True)
        parts = ((fit.learned(rows, group, added), place) for (fit, place), group in known)
        leaves = self.leaves
        if leaves is not None:
            other = leaves.of_rows(joined_leaves(leaves, rows), codes)
            leaves = replace(other, statistics=leaves.statistics + other.statistics) if added else other
        return replace(self, classes=self.classes + added * weight, parts=tuple(parts), leaves=leaves)

    def drawn(self, rng) -> Components:
        """Return the member under a draw of its parameters."""
        factors: list[Factor] = [fit.drawn_factor(place, rng) for fit, place in self.parts]
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
    for block in (NUMBERS, CATEGORIES):
        for fit in [fit for fit in average.modelling(block) if fit.kept][:1]:
            again = fit.sum_more(member_rows.Rows(x, c, codes, np.ones(len(x)), (), classes))
            sums = ([getattr(one, field.name) for one in kept for field in fields(one)] for kept in (again, fit.kept))
            pairs += zip(*sums, strict=True)
    if average.leaves is not None:
        if not average.leaves.has_closed_form(e):
            return False
        again = average.leaves.of_rows(e, codes)
        pairs += zip(again.hyperparameters(), average.leaves.hyperparameters(), strict=True)
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in pairs)
