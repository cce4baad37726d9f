r"""Members of the categorical columns: naive Bayes, and the average of one-dependence estimators.

Each category of each of F columns is a level (L levels in all). Let n_ka be the weight of class k at level a, n_kab its
weight at levels a and b of two columns, and n_kj its weight in rows that have column j. "independent" is naive Bayes, a
`DirichletCategorical` (α) for each column,

.. math:: p(a \mid k) = \frac{n_{ka} + \alpha}{n_{kj} + \alpha L_j}

and "one parent" averages over the column j that all others depend on, with a proper density for each j,

.. math:: p(x \mid k) = \frac1F \sum_j p(x_j \mid k) \prod_{i \ne j} p(x_i \mid k, x_j), \qquad
   p(b \mid k, a) = \frac{n_{kab} + s\, p(b \mid k)}{n_{kai} + s}

where the levels b fall back on naive Bayes if a is rare (n_kai is the weight at level a in rows that have column i). A
missing child drops out of the product, a missing parent is summed over. (Webb, Boughton and Wang 2005, *Machine
Learning* 58, 5-24.)

A row is left out by subtracting its weight r, in its own class, from n_ka at its levels and from n_kab at their pairs.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from bayesgen.averaging.member import CATEGORIES, FittedFactors, Member, Written
from bayesgen.averaging.member_rows import HeldOut, Rows, indicated
from bayesgen.core.shapes import shaped
from bayesgen.core.statistics import SumStatistics, added
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.numerics.pieces import pieces, taken
from bayesgen.posterior.component import Factor, Gap, gaps
from bayesgen.posterior.component import Rows as Blocks
from bayesgen.posterior.conditional import Listed

_PAIRS = 1 << 24  # entries of n_kab: above, only naive Bayes is a member
_CELLS = 1 << 20
ALPHAS, STRENGTHS = (0.25, 1.0), (1.0, 4.0)


@dataclass(frozen=True, eq=False)
class CategoryMember(Member):
    """One choice of structure and strength."""

    blocks: ClassVar = (CATEGORIES,)
    subtracts: ClassVar = True
    folds: ClassVar = False

    structure: str  # dependence of the columns given the class
    strength: float  # α of independent columns, s of those with a parent

    @property
    def family(self) -> str:
        return self.structure

    @classmethod
    def propose(cls, rows: Rows, setting):
        """Propose naive Bayes, and one parent where there are several columns and not too many pairs of levels."""
        if not rows.levels:
            return []
        return [_members(few_pairs(rows.levels, rows.classes))]

    @classmethod
    def fit(cls, groups, training):
        """Count levels and pairs of them."""
        rows = training.summed
        return [CategoryMembers.of(rows.c, rows.levels, rows.codes, rows.classes, rows.weight) for _ in groups]

    def settings(self):
        return {"kind": "generative", "categories": self.structure, "strength": self.strength}


def _members(parents: bool) -> tuple[CategoryMember, ...]:
    kinds = {"independent": ALPHAS, "one parent": STRENGTHS if parents else ()}
    return tuple(CategoryMember(name, strength) for name, strengths in kinds.items() for strength in strengths)


def few_pairs(levels, classes: int) -> bool:
    """Return True if there are several columns, and pairs of levels few enough to count."""
    return len(levels) > 1 and classes * sum(levels) ** 2 <= _PAIRS


@dataclass(frozen=True, eq=False)
class CategoryMembers(FittedFactors):
    """Counts of levels and of pairs of them, by class."""

    levels: np.ndarray = field(metadata=shaped("categories", same="levels of each"))  # categories of each column
    single: np.ndarray = field(metadata=shaped("classes levels"))  # n_ka
    # n_kab; None where these would be too many, or there is one column
    pairs: np.ndarray | None = field(metadata=shaped("classes levels levels"))

    @classmethod
    def of(cls, x, levels, codes, classes: int, weight) -> "CategoryMembers":
        """Count rows x (n, F), categories of so many ``levels`` (F,), -1 where missing, by class code, with weights."""
        few, levels = few_pairs(levels, classes), np.asarray(levels)
        total, hot = int(levels.sum()), indicated(x, levels)
        single, pairs = np.zeros((classes, total)), np.zeros((classes, total, total)) if few else None
        for k in range(classes):
            of_class = hot[codes == k]
            weighted = of_class.multiply(weight[codes == k][:, None]).tocsr()
            single[k] = np.asarray(weighted.sum(0)).ravel()
            if pairs is not None:
                pairs[k] = (of_class.T @ weighted).toarray()
        return cls(levels, single, pairs)

    @property
    def members(self) -> tuple[CategoryMember, ...]:  # type: ignore[override]  # it follows from the counts
        """Structure and strength of each member."""
        return _members(self.pairs is not None)

    @functools.cached_property
    def column(self):
        """The column of each level, (L,)."""
        return np.repeat(np.arange(len(self.levels)), self.levels)

    @functools.cached_property
    def by_column(self):
        """Matrix (L, F) that sums levels by column."""
        return (self.column[:, None] == np.arange(len(self.levels))).astype(float)

    def dice(self, member: CategoryMember) -> list[DirichletCategorical]:
        """Return the posterior of the levels of each column by itself, by class."""
        alpha = member.strength if member.structure == "independent" else ALPHAS[0]
        return [prior.update(counts) for prior, counts in self._learned_from(alpha)]

    def _learned_from(self, alpha: float) -> Iterator[tuple[DirichletCategorical, SumStatistics]]:
        for size, counts in zip(self.levels, np.split(self.single, np.cumsum(self.levels)[:-1], axis=1), strict=True):
            yield DirichletCategorical(alpha, int(size)), SumStatistics(counts, np.float64(0))

    drawn: ClassVar = True

    def leaves(self, place, categories):
        priors = (prior for prior, _ in self._learned_from(self.members[place].strength))
        return dict(zip(categories, priors, strict=True)) if self.members[place].structure == "independent" else {}

    def factor(self, place):
        return CategoryFactor(self, *self.tables(self.members[place]))

    def written(self, numbers, categories):
        """Return a factor for independent columns, and one for those with a parent."""
        alone = np.array([member.structure == "independent" for member in self.members])
        level = np.stack([self.tables(member)[0] for member in self.members])
        each = np.stack([[die.alpha.sum(-1) for die in self.dice(member)] for member in self.members]).swapaxes(1, 2)
        common = {"columns": list(categories), "sizes": self.levels.tolist()}
        lists = {"kind": "list", "mass": level[alone], "total": each[alone], "groups": level[alone, :, 0].size}
        result = [Written.of(common | lists, alone)]
        if self.pairs is not None:
            strengths = [member.strength for member in self.members if member.structure != "independent"]
            parents = {"kind": "parents", "pairs": self.pairs, "strengths": strengths, "level": level[~alone][0]}
            parents |= {"total": each[~alone][0], "groups": level[~alone, :, 0].size}
            result.append(Written.of(common | parents, ~alone))
        return result

    def drawn_factor(self, place, rng):
        return CategoryFactor(self, *next(self._drawn_tables(place, 1, rng)))

    def parameters(self, place, size, rng):
        dice = (die.sample_parameters(rng, size)["probability"] for die in self.dice(self.members[place]))
        return {"level_probability": (("class", "level"), np.concatenate(list(dice), -1))}

    def density_of_draws(self, place, x, c, size, rng):
        return np.stack([self.density(c, *tables) for tables in self._drawn_tables(place, size, rng)])

    def _drawn_tables(self, place: int, size: int, rng) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield draws of p(a | k), (K, L), with None for "independent" or p(b | k, a), (K, L, L), for "one parent"."""
        member, pairs = self.members[place], self.pairs
        drawn = [die.sample_parameters(rng, (size,))["probability"] for die in self.dice(member)]
        for level in np.concatenate(drawn, -1):
            if member.structure == "independent" or pairs is None:
                yield level, None
            else:
                table = np.maximum(rng.standard_gamma(pairs + member.strength * level[:, None]), 1e-300)
                yield level, table / (table @ self.by_column)[..., self.column]

    @property
    def kept(self):
        return tuple(SumStatistics(v, np.float64(0)) for v in (self.single, self.pairs) if v is not None)

    def sum_more(self, rows):
        return CategoryMembers.of(rows.c, self.levels, rows.codes, rows.classes, rows.weight).kept

    def of_sums(self, sums):
        single, *pairs = (each.sums for each in sums)
        return replace(self, single=single, pairs=pairs[0] if pairs else None)

    def learned(self, rows, group, added):
        c, each = codes_of(rows), np.ones(len(group))
        counted = CategoryMembers.of(c, self.levels, group, len(self.single), each)
        names = ["single"] if self.pairs is None else ["single", "pairs"]
        return replace(self, **{name: getattr(counted, name) + added * getattr(self, name) for name in names})

    def log_evidence(self) -> np.ndarray:
        """Return log p(x | t) of all rows under every member, (M,); -inf with a parent, where there is no evidence."""
        result = np.full(len(self.members), -np.inf)
        for place, member in enumerate(self.members):
            if member.structure == "independent":
                result[place] = sum(prior.log_evidence(counts) for prior, counts in self._learned_from(member.strength))
        return result

    @functools.cached_property
    def _logs_of(self) -> list[tuple[np.ndarray, Any]]:
        """The `_logs` of each member."""
        return [self._logs(*self.tables(member)) for member in self.members]

    def log_density(self, x, c, used) -> np.ndarray:
        seen = self._seen(c)
        return np.stack([self._density(*seen, *self._logs_of[m]) for m in used])

    def density(self, x, level, table=None) -> np.ndarray:
        """Return log p(x | k) of rows, (n, K), under p(a | k) (K, L), and p(b | k, a) (K, L, L) with one parent."""
        return self._density(*self._seen(x), *self._logs(level, table))

    def _density(self, hot, allowed, level, table) -> np.ndarray:
        """Do `density` from what `_seen` and `_logs` return."""
        if table is None:
            return hot @ level.T
        result, table = np.empty((len(allowed), len(level))), table.reshape(len(table), -1)
        for batch in pieces(len(allowed), table.shape[1], _CELLS):
            score = (hot[batch] @ table).reshape(-1, *level.shape) + level
            result[batch] = self._average(score, allowed[batch][:, None])
        return result

    def _seen(self, x) -> tuple[Any, Any]:
        """Return the levels of rows as a sparse matrix (n, L), and the levels that a parent may have, or None."""
        hot = indicated(x, self.levels)
        return hot, None if self.pairs is None else self._allowed(x, hot.toarray())

    def _logs(self, level, table) -> tuple[np.ndarray, Any]:
        """Return log p(a | k), (K, L), and log p(b | k, a) by b, k and a, (L, K, L), 0 where they share a column."""
        if table is None:
            return np.log(level), None
        children = np.where(self.column[:, None] == self.column, 0.0, np.log(table))
        return np.log(level), np.ascontiguousarray(np.moveaxis(children, -1, 0))

    def fill(self, x, level, table, rng) -> np.ndarray:
        """Draw the missing categories of one row (F,) given those seen, under the tables of its class."""
        result, starts = x.copy(), np.cumsum(self.levels) - self.levels
        chances = level
        if table is not None:  # a parent and its level first, in proportion to the probability of the row under them
            (hot, allowed), (log_level, children) = self._seen(x[None]), self._logs(level, table)
            score = np.where(allowed[0], (hot @ children)[0] + log_level, -np.inf)
            parent = rng.choice(len(score), p=np.exp(score - logsumexp(score)))
            chances, result[self.column[parent]] = table[parent], parent - starts[self.column[parent]]
        for j in np.flatnonzero(result < 0):
            chance = chances[starts[j] : starts[j] + self.levels[j]]
            result[j] = rng.choice(len(chance), p=chance / chance.sum())
        return result

    def tables(self, member: CategoryMember):
        """Return the predictive p(a | k), and p(b | k, a) with one parent."""
        level = np.concatenate([die.mean for die in self.dice(member)], axis=1)
        if member.structure == "independent":
            return level, None
        pairs: Any = self.pairs
        seen = (pairs @ self.by_column)[..., self.column]  # n_kai at each level of column i, (K, L, L)
        return level, (pairs + member.strength * level[:, None]) / (seen + member.strength)

    def loo_log_density(self, held: HeldOut) -> np.ndarray:
        rows, every = held.rows, np.arange(len(self.members))
        if not held.single:
            result = np.empty((len(every), len(rows), len(self.single)))
            for departure in range(int(held.without.max(initial=-1)) + 1):
                predicted = held.without == departure
                result[:, predicted] = self._without(held.gone.take(held.gone_with == departure)).log_density(
                    rows.x[predicted], rows.c[predicted], every
                )
            return result
        x, codes, removed = rows.c, rows.codes, held.gone.weight
        result = self.log_density(rows.x, x, every)
        for batch in pieces(len(x), int(self.levels.sum()) * len(self.levels), _CELLS):
            density = self._own(x[batch], codes[batch], removed[batch])
            result[:, np.arange(len(x))[batch], codes[batch]] = density
        return result

    def _without(self, gone: Rows) -> "CategoryMembers":
        less = CategoryMembers.of(gone.c, self.levels, gone.codes, gone.classes, gone.weight)
        pairs = None if self.pairs is None else added(self.pairs, less.pairs, -1)
        return CategoryMembers(self.levels, added(self.single, less.single, -1), pairs)

    def _own(self, x, codes, removed):
        """Return log p(x_i | t_i) without the row itself, (M, B)."""
        seen, column = x >= 0, self.column
        place = np.where(seen, x + np.cumsum(self.levels) - self.levels, 0)
        hot = indicated(x, self.levels).toarray()
        gone = removed[:, None] * hot
        single, result = (self.single[codes] - gone).clip(0), np.empty((len(self.members), len(x)))
        for row, alpha in enumerate(ALPHAS):
            level = self._level(alpha, single)
            result[row] = (np.log(np.take_along_axis(level, place, 1)) * seen).sum(1)
        if self.pairs is not None:
            level = self._level(ALPHAS[0], single)
            child = np.take_along_axis(level, place, 1)  # p(x_j | k), (B, F)
            levels, allowed = np.arange(len(column)), self._allowed(x, hot)
            both = self.pairs[codes[:, None, None], levels[None, :, None], place[:, None]] - gone[:, :, None]
            total = (self.pairs @ self.by_column)[codes] - gone[:, :, None] * seen[:, None]
            both, total = both.clip(0), total.clip(0)
            counts = seen[:, None] & (column[:, None] != np.arange(len(self.levels)))
            for row, s in enumerate(STRENGTHS, len(ALPHAS)):
                score = np.log((both + s * child[:, None]) / (total + s), out=np.zeros_like(both), where=counts)
                result[row] = self._average(score.sum(2) + np.log(level), allowed)
        return result

    def _level(self, alpha, single):
        return (single + alpha) / ((single @ self.by_column)[..., self.column] + alpha * self.levels[self.column])

    def _allowed(self, x, hot):
        """Return True for the levels a parent may have in a row, (n, L): the row's own, or all of a missing column."""
        return hot.astype(bool) | (x < 0)[:, self.column]

    def _average(self, score, allowed):
        """Average p(x, parent | k) over the columns that may be the parent, (...), from its logarithm (..., L)."""
        score = np.where(allowed, score, -np.inf)
        top = score.max(-1)
        score -= top[..., None]
        return top + np.log(np.exp(score, out=score).sum(-1)) - np.log(len(self.levels))


def codes_of(rows: Blocks) -> np.ndarray:
    """Return the codes of categories, -1 where missing, as members take them."""
    c = rows[CATEGORIES]
    return np.where(np.isnan(c), -1, c).astype(np.intp)


@dataclass(frozen=True, eq=False)
class CategoryFactor(Factor):
    """The categories under one member, and one table of probabilities."""

    counts: Any
    level: np.ndarray  # (K, L): p(a | k)
    table: np.ndarray | None  # (K, L, L), or None: p(b | k, a), where the categories have one parent

    blocks = (CATEGORIES,)

    @property
    def owner(self) -> np.ndarray:  # type: ignore[override]
        """The classes."""
        return np.arange(len(self.level))

    def log_density(self, rows):
        return self.counts.density(codes_of(rows), self.level, self.table).T

    def fill(self, rows, group, rng):
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
