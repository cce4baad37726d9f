r"""Screened members: Gaussians, categories and a softmax regression on the columns that separate the classes best.

Columns that say nothing of the class cost every member that takes them: a full covariance, or a softmax regression,
learns noise from each. A screened member takes as many columns as it says, those of the largest log Bayes factor of
their entries by class against all in one, which are chosen anew from the rows that it is fitted to: the choice is left
out with its rows, by folds. Of the other columns it has no density, so it takes no part where one of a whole row is
needed.

With prior p(θ) of a column's parameters, its entries x_i that are there, and those of class k,

.. math:: \log B = \log \prod_k \int p(\theta) \prod_{t_i = k} p(x_i \mid \theta)\, d\theta
   - \log \int p(\theta) \prod_i p(x_i \mid \theta)\, d\theta

A bent number is Gaussian under `NormalInverseGamma`, with one variance for all classes or with one for each, and B is
the mean of the two: classes may differ in mean, or in spread alone, which no F statistic sees. A category has the prior
`DirichletCategorical` (1). Numbers and categories stand on one scale, and gaps and weights need no rule of their own.
"""

from dataclasses import dataclass

import numpy as np

from bayesgen.averaging.composed import CATEGORIES, SOFTMAX, ComposedMember, ComposedMembers
from bayesgen.averaging.gaussian import GaussianMember
from bayesgen.averaging.rows import Rows
from bayesgen.averaging.training import Training
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.models.gaussian import NormalInverseGamma
from bayesgen.models.moments import grouped_moments
from bayesgen.numerics.sums import Grouping
from bayesgen.numerics.tempering import expected_exponent

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


@dataclass(frozen=True, eq=False)
class ScreenedMember(ComposedMember):
    """A product of a member of the numbers and one of the categories, or a softmax regression, on some columns.

    Attributes
    ----------
    columns : int
        How many columns it takes.
    """

    columns: int

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
    """Members on the same columns.

    Attributes
    ----------
    chosen : int array, shape (C,)
        Places of the columns, ascending; those of categories counted from D.
    dim : int
        D, the numbers of the table.
    """

    chosen: np.ndarray
    dim: int

    @classmethod
    def of(cls, members, chosen, training: Training) -> "ScreenedMembers":
        """Fit members to the chosen columns."""
        return cls.on(members, training.narrowed(chosen), chosen, training.rows.x.shape[1])

    def made(self, x, c):
        return x[:, self.chosen[self.chosen < self.dim]], c[:, self.chosen[self.chosen >= self.dim] - self.dim]

    def claims(self, dim, levels, classes):
        chosen, total = self.chosen, dim + len(levels)
        yield "the screened members are of another table", self.dim == dim and self.classes == classes, None
        right = chosen.ndim == 1 and chosen.dtype.kind == "i" and len(chosen) > 0 and (np.diff(chosen) > 0).all()
        yield "the screened members take no columns of this table", right and 0 <= chosen[0] <= chosen[-1] < total, None
        own = tuple(levels[j - dim] for j in chosen if j >= dim)
        yield from self.claims_of_parts(int((chosen < dim).sum()), own, classes)


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
    own = grouped_moments(y, Grouping.of(len(rows), rows.codes, rows.classes, rows.weight))
    whole = own.sum_groups()
    variance = np.divide(whole.scatter, whole.n, out=np.zeros_like(whole.n), where=whole.n > 0)
    variance = np.where(variance > 1e-14, variance, 1.0)
    shape = {"kappa": np.array(_KAPPA), "alpha": np.array(1 + _RHO / 2), "beta": _RHO * variance / 2}
    free = NormalInverseGamma._unchecked(mean=whole.mean, **shape)
    tied = NormalInverseGamma._unchecked(mean=whole.mean, tied=("class",), **shape)
    split = np.logaddexp(*(prior.log_evidence_terms(own).sum(0) for prior in (free, tied))) - np.log(2)
    return np.where(whole.n > 0, split - free.log_evidence_terms(whole), -np.inf)


def _categories(rows) -> np.ndarray:
    """Return log B of the columns of categories, (F,)."""
    result = np.empty(len(rows.levels))
    for j, levels in enumerate(rows.levels):
        seen = rows.c[:, j] >= 0
        place = rows.codes[seen] * levels + rows.c[seen, j]
        count = np.bincount(place, rows.weight[seen], rows.classes * levels).reshape(-1, levels)
        prior = DirichletCategorical(1.0, levels)
        split, whole = (prior.log_evidence_terms(SumStatistics(own, np.float64(0.0))) for own in (count, count.sum(0)))
        result[j] = split.sum() - whole if seen.any() else -np.inf
    return result
