r"""Ranks columns by how they separate the classes: the log Bayes factor of their entries by class against all in one.

With prior p(θ) of a column's parameters, its entries x_i that are there, and those of class k,

.. math:: \log B = \log \prod_k \int p(\theta) \prod_{t_i = k} p(x_i \mid \theta)\, d\theta
   - \log \int p(\theta) \prod_i p(x_i \mid \theta)\, d\theta

A bent number is Gaussian under `NormalInverseGamma`, with one variance for all classes or with one for each, and B is
the mean of the two: classes may differ in mean, or in spread alone, which no F statistic sees. A category has the prior
`DirichletCategorical` (1). Numbers and categories stand on one scale, and gaps and weights need no rule of their own.
"""

import numpy as np

from bayesgen.averaging.training import Training
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.models.gaussian import NormalInverseGamma
from bayesgen.models.moments import grouped_moments
from bayesgen.numerics.sums import Grouping

_KAPPA, _RHO = 0.1, 2.0  # rows that the prior mean and variance are worth
_DIGITS = 9  # sums over classes depend on their order in the last digits


def best_first(training: Training) -> np.ndarray:
    """Return the places of the columns, those of categories counted from D, in the order of their log B."""
    return np.lexsort([np.argsort(training.rows.order[0]), -np.round(evidence(training), _DIGITS)])


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
