r"""Members composed of members of other families, on a table that is made of the table of the fit.

The table has fewer columns (screened members), or columns of other kinds (coded members). A member is the product of
a member of the numbers and one of the categories of that table, or a softmax regression on it.

**Screened members** take the columns that separate the classes best, those of the largest log Bayes factor of their
entries by class against all in one. Columns that say nothing of the class cost every member that takes them: a full
covariance, or a softmax regression, learns noise from each. They are chosen anew from the rows that a member is fitted
to: the choice is left out with its rows, by folds. Of the other columns it has no density.

**Coded members** take numbers of few values as categories: they have a mass of the coded columns where other members
have a density. Neither takes part where a density of a whole row is needed. `docs/mathematics/averaged.md` has the
formulas of both.
"""

import abc
import functools
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from bayesgen.averaging.categories import CategoryMember, CategoryMembers, few_pairs
from bayesgen.averaging.fitted_view import FittedView
from bayesgen.averaging.gaussians import GaussianMember
from bayesgen.averaging.member import FittedMembers, Member, Written, table_sizes
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.softmax import LogisticMembers, SoftmaxMember
from bayesgen.averaging.view import WIDE, Training
from bayesgen.core.shapes import require_fit, shaped
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.models.gaussian import NormalInverseGamma
from bayesgen.models.model import unchecked
from bayesgen.models.moments import grouped_moments
from bayesgen.numerics.content_order import level_counts
from bayesgen.numerics.sums import Grouping
from bayesgen.numerics.tempering import expected_exponent

_LEARN = 5000  # rows to learn from
CATEGORIES = CategoryMember("independent", 1.0), CategoryMember("one parent", 1.0)
SOFTMAX = SoftmaxMember(0.3)
_KINDS = ("gaussian", "category", "softmax")
_FEWEST = 6  # columns of a table; of fewer, members on all of them do as well
_POWERS = (0.8, 0.6, 0.4, 0.25)  # widths are powers of the number of columns: 11, 6, 3 and 2 of 20
_KAPPA, _RHO = 0.1, 2.0  # rows that the prior mean and variance are worth
_DIGITS = 9  # sums over classes depend on their order in the last digits
_WIDEST = 100  # columns of a full covariance
_GAUSSIANS = (
    GaussianMember("full", 8.0, 0.1, 0.4),
    GaussianMember("shared", 8.0, 0.1),
    GaussianMember("diagonal", 8.0, 0.1),
)
_MOST = 10  # values of a column that is coded
_ROWS = 2  # for each value: the columns of ten rows have ten values each, and are no codes
_WITH_CODES = GaussianMember("full", 8.0, 0.1, 0.4), GaussianMember("diagonal", 8.0, 0.1)


@dataclass(frozen=True, eq=False)
class ComposedMember(Member):
    """A product of a member of the numbers and one of the categories, or a softmax regression."""

    gaussian: GaussianMember | None
    category: CategoryMember | None
    softmax: SoftmaxMember | None

    @classmethod
    def most_rows(cls, rows):
        """Return 5,000: more rows would hardly change which columns are chosen, or which values they have."""
        return _LEARN

    def settings(self):
        members = (member for member in (self.gaussian, self.category, self.softmax) if member is not None)
        return {name: value for member in members for name, value in member.settings().items()} | {"kind": self.family}


@dataclass(frozen=True, eq=False)
class ComposedMembers(FittedMembers):
    """Composed members on the same table."""

    members: tuple[Any, ...]
    classes: int  # K
    gaussian: FittedView | None  # the members of the numbers, if the table has any
    category: CategoryMembers | None  # those of the categories, likewise
    softmax: LogisticMembers | None  # the softmax regressions

    @classmethod
    def on(cls, members, table: Training, *made) -> Self:
        """Fit members to the table that is made, and keep what makes it."""
        kinds = ([getattr(member, name) for member in members] for name in _KINDS)
        numbers, categories, softmax = (tuple(dict.fromkeys(m for m in chosen if m is not None)) for chosen in kinds)
        view: Any = None
        counts = regressions = None
        if numbers and table.rows.x.shape[1]:
            (view,) = GaussianMember.fit([numbers], table)
        if categories and table.rows.levels:
            (counts,) = CategoryMember.fit([categories], table)
        if softmax:
            (regressions,) = SoftmaxMember.fit([softmax], table)
        return cls(members, table.rows.classes, view, counts, regressions, *made)

    @abc.abstractmethod
    def made(self, x, c) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers and categories that rows have in the table that is made."""

    @abc.abstractmethod
    def entries_made(self, numbers, categories) -> tuple[list[Any], list[Any]]:
        """Return the entries of the numbers and categories of the table that is made; see `FittedMembers.written`."""

    def written(self, numbers, categories):
        made = self.entries_made(numbers, categories)
        return [
            Written(factor.said, np.where(places >= 0, factor.takes[places], -1))
            for fitted, places in self._parts
            for factor in fitted.written(*made)
        ]

    def log_density(self, x, c, used) -> np.ndarray:
        """Return log p(row | k) on the table that is made, under some members, in the units of the bent columns."""
        x, c = self.made(x, c)
        result = np.zeros((len(used), len(x), self.classes))
        for fitted, places in self._parts:
            wanted = places[used]
            if (wanted >= 0).any():
                places_used, turn = np.unique(wanted[wanted >= 0], return_inverse=True)
                result[wanted >= 0] += fitted.log_density(x, c, places_used)[turn]
        return result

    def log_density_later(self, x, c, write, together):
        made = self.made(x, c)
        for fitted, places in self._parts:

            def of_composed(density, rows, places=places):
                write(np.where((places >= 0)[:, None, None], density[places], 0.0), rows)

            fitted.log_density_later(*made, of_composed, together)

    @functools.cached_property
    def _parts(self) -> list[tuple[FittedMembers, np.ndarray]]:
        """The fits of each kind, with the place there of the part of each composed member, or -1 if it has none."""
        result = []
        for name in _KINDS:
            if (fitted := getattr(self, name)) is not None:
                known = list(fitted.members)
                wanted = [getattr(member, name) for member in self.members]
                result.append((fitted, np.array([known.index(m) if m in known else -1 for m in wanted])))
        return result

    @property
    def kept(self):
        return tuple(sums for fitted, _ in self._parts for sums in fitted.kept)

    @property
    def stays(self):
        return np.array([member.softmax is not None for member in self.members])

    def sum_more(self, rows):
        x, c = self.made(rows.x, rows.c)
        levels = () if self.category is None else tuple(self.category.levels.tolist())
        table = replace(rows, x=x, c=c, levels=levels, e=None)
        return tuple(sums for fitted, _ in self._parts for sums in fitted.sum_more(table))

    def of_sums(self, sums):
        sums, parts = iter(sums), {name: getattr(self, name) for name in _KINDS}
        learned = {name: part.of_sums([next(sums) for _ in part.kept]) for name, part in parts.items() if part}
        return replace(self, **learned)

    def fits(self, sizes):
        """Return the sizes of the table that is made; see `check_shapes`."""
        require_fit(self.classes == sizes["classes"], "the composed members are of other classes")
        require_fit(all(len(fitted.members) > at.max() for fitted, at in self._parts), "a composed member is none")
        return table_sizes(*self.table_made(sizes["columns"], sizes["levels of each"]), self.classes)

    @abc.abstractmethod
    def table_made(self, dim: int, levels) -> tuple[int, tuple[int, ...]]:
        """Return numbers and levels of the table that is made of one, or raise where it cannot be made."""


@dataclass(frozen=True, eq=False)
class ScreenedMember(ComposedMember):
    """A product of a member of the numbers and one of the categories, or a softmax regression, on some columns."""

    columns: int  # how many columns it takes

    @property
    def family(self) -> str:
        return "screened"

    @classmethod
    def propose(cls, rows: Rows, setting):
        """Propose some widths, where there are columns to choose from."""
        dim, total = rows.x.shape[1], rows.x.shape[1] + len(rows.levels)
        if total < _FEWEST:
            return []
        numbers = _GAUSSIANS if dim else (None,)
        categories = CATEGORIES[: 1 if dim else 2] if rows.levels else (None,)
        widths = sorted({min(_WIDEST, round(total**power)) for power in _POWERS})
        return [
            (*(cls(a, b, None, w) for a in numbers for b in categories), cls(None, None, SOFTMAX, w)) for w in widths
        ]

    @classmethod
    def fit(cls, groups, training: Training):
        """Choose the columns of each width, and fit the members to them."""
        order = best_first(training)
        return [ScreenedMembers.of(group, np.sort(order[: group[0].columns]), training) for group in groups]

    def expected_exponent(self, columns: int, rows: float) -> float:
        """Return the exponent to expect, by the columns that it takes."""
        return 1.0 if self.softmax is not None else expected_exponent(self.columns, rows)

    def settings(self):
        return {**super().settings(), "columns": self.columns}


@dataclass(frozen=True, eq=False)
class ScreenedMembers(ComposedMembers):
    """Members on the same columns."""

    # places of columns, ascending; categories are counted from D
    chosen: np.ndarray = field(metadata=shaped("chosen", "i"))
    dim: int  # D, the numbers of the table

    @classmethod
    def of(cls, members, chosen, training: Training) -> "ScreenedMembers":
        """Fit members to the chosen columns."""
        return cls.on(members, training.narrowed(chosen), chosen, training.rows.x.shape[1])

    def made(self, x, c):
        return x[:, self.chosen[self.chosen < self.dim]], c[:, self.chosen[self.chosen >= self.dim] - self.dim]

    def entries_made(self, numbers, categories):
        chosen, every = self.chosen, [*numbers, *categories]
        return [every[j] for j in chosen if j < self.dim], [every[j] for j in chosen if j >= self.dim]

    def table_made(self, dim, levels):
        chosen = self.chosen
        require_fit(self.dim == dim, "the screened members are of another table")
        right = len(chosen) and (np.diff(chosen) > 0).all() and 0 <= chosen[0] <= chosen[-1] < dim + len(levels)
        require_fit(right, "the screened members take no columns of this table")
        return int((chosen < dim).sum()), tuple(levels[j - dim] for j in chosen if j >= dim)


def best_first(training: Training) -> np.ndarray:
    """Return the places of the columns, those of categories counted from D, in the order of their log B."""
    return np.lexsort([np.argsort(training.rows.order.columns), -np.round(evidence(training), _DIGITS)])


def evidence(training: Training) -> np.ndarray:
    """Return log B of every column, those of numbers first, (D + F,); -inf for a column without entries."""
    return np.concatenate([_numbers(training), _categories(training.rows)])


def _numbers(training: Training) -> np.ndarray:
    """Return log B of the columns of numbers, (D,)."""
    rows, y = training.rows, training.bent
    if not y.shape[1]:
        return np.empty(0)
    by_class = grouped_moments(y, Grouping.of(len(rows), rows.codes, rows.classes, rows.weight))
    whole = by_class.sum_groups()
    variance = np.divide(whole.scatter, whole.n, out=np.zeros_like(whole.n), where=whole.n > 0)
    variance = np.where(variance > 1e-14, variance, 1.0)
    shape = {"kappa": np.array(_KAPPA), "alpha": np.array(1 + _RHO / 2), "beta": _RHO * variance / 2}
    free = unchecked(NormalInverseGamma, mean=whole.mean, **shape)
    tied = unchecked(NormalInverseGamma, mean=whole.mean, tied=("class",), **shape)
    split = np.logaddexp(*(prior.log_evidence_terms(by_class).sum(0) for prior in (free, tied))) - np.log(2)
    return np.where(whole.n > 0, split - free.log_evidence_terms(whole), -np.inf)


def _categories(rows) -> np.ndarray:
    """Return log B of the columns of categories, (F,)."""
    result = np.empty(len(rows.levels))
    for j, levels in enumerate(rows.levels):
        count = level_counts(rows.codes, rows.c[:, j], rows.weight, rows.classes, levels)
        prior = DirichletCategorical(1.0, levels)
        sums = (SumStatistics(n, np.float64(0.0)) for n in (count, count.sum(0)))
        split, whole = (prior.log_evidence_terms(n).sum() for n in sums)
        result[j] = split - whole if count.any() else -np.inf
    return result


@dataclass(frozen=True, eq=False)
class CodedMember(ComposedMember):
    """A product of a member of the numbers and one of the categories, or a softmax regression, with codes."""

    columns: tuple[int, ...]  # places of the numbers that are coded, ascending

    @property
    def family(self) -> str:
        return "coded"

    @classmethod
    def propose(cls, rows: Rows, setting):
        """Propose codes where a number has few values, each of them in some rows."""
        most = min(_MOST, rows.worth // _ROWS)
        values = [_values(column) for column in rows.x.T] if rows.x.shape[1] <= WIDE else []
        columns = tuple(j for j, distinct in enumerate(values) if 2 < len(distinct) <= most)
        if not columns:
            return []
        levels = *rows.levels, *(len(values[j]) for j in columns)
        numbers = _WITH_CODES if len(columns) < rows.x.shape[1] else (None,)
        categories = CATEGORIES[: 2 if few_pairs(levels, rows.classes) else 1]
        products = (cls(a, b, None, columns) for a in numbers for b in categories)
        return [(*products, cls(None, None, SOFTMAX, columns))]

    @classmethod
    def fit(cls, groups, training: Training):
        """Find the values of the columns, and fit the members to the codes."""
        return [CodedMembers.of(group, training) for group in groups]

    def expected_exponent(self, columns: int, rows: float) -> float:
        return 1.0 if self.softmax is not None else expected_exponent(columns, rows)

    def settings(self):
        return {**super().settings(), "columns": len(self.columns)}


@dataclass(frozen=True, eq=False)
class CodedMembers(ComposedMembers):
    """Members on the same codes."""

    # places of the numbers that are coded, ascending
    columns: np.ndarray = field(metadata=shaped("coded", places="columns"))
    values: tuple[np.ndarray, ...]  # the values of each, ascending: its codes are their places

    @classmethod
    def of(cls, members, training: Training) -> "CodedMembers":
        """Fit members to the codes of the values that the rows have."""
        columns = np.array(members[0].columns)
        values = tuple(_values(column) for column in training.rows.x[:, columns].T)
        numbers, levels = _others(columns, training.rows.x.shape[1]), tuple(map(len, values))

        def change(rows: Rows) -> Rows:
            x, c = _coded(rows.x, rows.c, columns, values)
            return replace(rows, x=x, c=c, levels=(*rows.levels, *levels), e=None)

        return cls.on(members, training.changed(change, numbers), columns, values)

    def made(self, x, c):
        return _coded(x, c, self.columns, self.values)

    def entries_made(self, numbers, categories):
        codes = [{"of": numbers[j], "values": v.tolist()} for j, v in zip(self.columns, self.values, strict=True)]
        return [numbers[j] for j in _others(self.columns, len(numbers))], [*categories, *codes]

    def table_made(self, dim, levels):
        right = len(self.columns) and (np.diff(self.columns) > 0).all()
        require_fit(right, "the coded members take no columns of this table")
        right = len(self.values) == len(self.columns)
        right = right and all(v.ndim == 1 and (np.diff(v) > 0).all() for v in self.values)
        require_fit(right, "the coded members have no values of their columns")
        return dim - len(self.columns), (*levels, *map(len, self.values))


def _values(column) -> np.ndarray:
    return np.unique(column[~np.isnan(column)])


def _others(columns, dim: int) -> np.ndarray:
    return np.setdiff1d(np.arange(dim), columns)


def _coded(x, c, columns, values) -> tuple[np.ndarray, np.ndarray]:
    """Return the other numbers, (n, D - C), and the categories with the codes after them, (n, F + C)."""
    codes = np.full((len(x), len(columns)), -1)
    for code, distinct, column in zip(codes.T, values, x[:, columns].T, strict=True):
        place = np.searchsorted(distinct, column).clip(max=len(distinct) - 1)
        known = distinct[place] == column
        code[known] = place[known]
    return x[:, _others(columns, x.shape[1])], np.concatenate([c, codes], axis=1)
