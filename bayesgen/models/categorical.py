r"""Categories under a Dirichlet prior: a categorical feature, and the class prior of every classifier.

.. math:: \theta \sim \mathrm{Dirichlet}(\alpha), \qquad x_i \mid \theta \sim \mathrm{Categorical}(\theta),
   \quad x_i \in \{0, \dots, V-1\}

After counts n_v: posterior Dirichlet(alpha + n); predictive (alpha_v + n_v) / sum; evidence of the sequence
Γ(A)/Γ(A + N) ∏ Γ(alpha_v + n_v)/Γ(alpha_v), A = sum alpha; MAP (alpha_v + n_v - 1) / (A + N - V); ML n_v / N.
Laplace smoothing is the predictive (the posterior mean) under alpha = 1. (Murphy 2012, section 3.4.)

`DirichletPrior` also serves bags of words (`bayesgen.models.multinomial`).
"""

import functools
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import digamma

from bayesgen.core import program
from bayesgen.core.errors import MOST, refuse_where
from bayesgen.core.names import by_name, names_along
from bayesgen.core.program import static
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.kinds import Values
from bayesgen.models.leaf import ConjugateFamily, ExponentialFamily, count_and_mean, log_or_floor
from bayesgen.models.model import Hyperparameter, check_total, hyperparameter, revised
from bayesgen.numerics.checks import check_shares, refuse_first, require
from bayesgen.numerics.draws import log_gammas
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.special import log_gamma_ratio, namespace, xlogy

_known: deque[tuple] = deque(maxlen=8)  # checked labels, so that a hundred thousand words are checked once


class Categories(ExponentialFamily):
    """A leaf whose parameter is the "probability" of each of V categories, under any prior; T(x) counts categories."""

    site_dims = {"probability": ("category",)}
    categories: Any

    def coords(self):
        return {"category": list(self.categories)}

    def natural_parameters(self, params, about=0.0):
        return log_or_floor(params["probability"])

    def ml(self, statistics):
        """Return the shares of the categories, which may be 0; raise where there is no row."""
        counts = statistics.total()
        refuse_where(counts.sum(-1) == 0, "maximum likelihood does not exist: no observed value")
        return {"probability": shares(counts)}


class Dice(Categories, ConjugateFamily):
    """Category probabilities with Dirichlet(alpha) priors, of one die or of one for each context."""

    alpha: Hyperparameter

    @property
    def mean(self):
        """Mean of the category probabilities, alpha / sum(alpha)."""
        return self.alpha / self.alpha.sum(-1, keepdims=True)

    def expected(self):
        return {"probability": self.mean}

    def mode(self):
        """Return (alpha - 1) / (A - V), uniform under a flat prior; raise where an alpha is below 1."""
        axes = tuple(range(-len(self.site_dims["probability"]), 0))
        problem = (
            "the Dirichlet density has no mode where alpha plus count is below 1; use exact or NUTS, or alpha >= 1"
        )
        refuse_where((self.alpha < 1).any(axes), problem)
        return {"probability": shares(self.alpha - 1)}

    @np.errstate(under="ignore")
    def sample_parameters(self, rng, size=()):
        """Draw normalised gammas, in log space so that a tiny alpha does not underflow to 0/0."""
        log_gamma = log_gammas(rng, self.alpha, (*size, *self.alpha.shape))
        weights = np.exp(log_gamma - log_gamma.max(-1, keepdims=True))
        return {"probability": weights / weights.sum(-1, keepdims=True)}


def shares(counts):
    """Return counts as shares of their sum over the last axis, equal ones where it is 0."""
    total = counts.sum(-1, keepdims=True)
    return np.where(total == 0, 1 / counts.shape[-1], counts / np.where(total == 0, 1, total))


def log_evidence_of_counts(alpha, counts):
    """Return log Γ(A)/Γ(A + N) ∏ Γ(alpha_v + n_v)/Γ(alpha_v), over the last axis."""
    return log_gamma_ratio(alpha, counts).sum(-1) - log_gamma_ratio(alpha.sum(-1), counts.sum(-1))


class DirichletPrior(Dice):
    """Category probabilities with a Dirichlet(alpha) prior."""

    _inner = 1

    def __post_init__(self):
        if axes := names_along(self.alpha):
            _match(self, "alpha", axes)
            if axes[0] is not None and len(axes) > 1:
                object.__setattr__(self, "names", tuple(axes[0]))
        super().__post_init__()
        owner, categories = type(self).__name__, self.categories
        if categories is None:
            if self.alpha.ndim == 0:
                raise ValueError(f"{owner}: give categories=, their number or their labels")
            categories = self.alpha.shape[-1]
        categories = labels(owner, categories)
        if self.alpha.ndim and self.alpha.shape[-1] not in (1, len(categories)):
            raise ValueError(f"{owner}: alpha has {self.alpha.shape[-1]} entries for {len(categories)} categories")
        shape = (*self.alpha.shape[:-1], len(categories))
        object.__setattr__(self, "alpha", namespace(self.alpha).broadcast_to(self.alpha, shape))
        object.__setattr__(self, "categories", categories)
        with np.errstate(over="ignore"):
            check_total(self, "the entries of alpha", self.alpha.sum(-1))

    @classmethod
    def from_guess(cls, probability: Mapping, rows: float) -> Self:
        """Return the prior of an expert who guesses the probability of each category, worth ``rows`` rows.

        >>> from bayesgen.models import DirichletCategorical
        >>> DirichletCategorical.from_guess({"A": 0.4, "B": 0.1, "0": 0.5}, rows=10).alpha
        array([4., 1., 5.])
        """
        probability = dict(probability)  # of a Series, too
        guess = np.array(list(probability.values()), dtype=float)
        if not np.isclose(guess.sum(), 1):
            raise ValueError(f"{cls.__name__}: the guessed probabilities must add up to 1, not {guess.sum():g}")
        made: Any = cls  # a subclass, which declares alpha and categories
        return made(alpha=guess * rows, categories=list(probability))

    @functools.cached_property
    def batch_shape(self):
        return self.alpha.shape[:-1]

    def for_classes(self, groups):
        alpha = namespace(self.alpha).broadcast_to(self.alpha, (groups, *self.alpha.shape))
        return replace(self, alpha=alpha, per_class=True)

    @property
    def mean_log(self):
        """Mean of the log probabilities, ψ(alpha) - ψ(sum(alpha)), with ψ the digamma function."""
        return digamma(self.alpha) - digamma(self.alpha.sum(-1, keepdims=True))

    def density(self, params=None):
        if params is not None:
            return super().density(params)
        return replace(self.density(self.expected()), total=self.alpha.sum(-1))

    def parameters(self):
        return {"probability": program.numpyro.sample("probability", program.dist.Dirichlet(self.alpha))}

    def update(self, statistics) -> Self:
        """Add the counts of the categories to alpha."""
        return revised(self, alpha=self.alpha + statistics.total())

    def log_evidence_terms(self, statistics):
        return log_evidence_of_counts(self.alpha, statistics.total())


def _match(record, name: str, axes) -> None:
    """Put a hyperparameter whose last axis is named in the order of the categories; it names them if nobody does."""
    owner = type(record).__name__
    if record.categories is None:
        object.__setattr__(record, "categories", axes[-1])
    wanted = None if record.categories is None else labels(owner, record.categories)
    value = by_name(f"{owner}: {name}", getattr(record, name), wanted, expected="one entry for each of the categories")
    object.__setattr__(record, name, value)


def labels(owner: str, categories) -> tuple:
    """Return the labels of categories, given as labels or as their number, as plain Python values, or raise."""
    for known in tuple(_known):
        if categories is known:
            return categories
    categories = tuple(range(categories) if isinstance(categories, int | np.integer) else categories)
    if any(issubclass(kind, np.generic) for kind in set(map(type, categories))):
        categories = tuple(c.item() if isinstance(c, np.generic) else c for c in categories)
    if not categories or len(set(categories)) < len(categories):
        raise ValueError(f"{owner}: categories must be one or more distinct labels")
    _known.append(categories)
    return categories


def label_array(categories: tuple) -> np.ndarray:
    """Return categories as an array that keeps their types: text stays beside numbers, and 2^53 + 1 beside 0.5."""
    array, objects = np.asarray(categories), np.empty(len(categories), dtype=object)
    objects[:] = categories
    return array if array.tolist() == list(categories) else objects


class Categorical(Categories):
    """Categorical features under any prior: codes 0..V-1 and their likelihood."""

    density_kind = "probability"
    mean: Any  # mean of the category probabilities, (..., V)

    def likelihood(self, params):
        return program.dist.Categorical(probs=params["probability"])

    def cardinality(self, feature):
        return len(self.categories)

    def summaries(self, total):
        if all(isinstance(label, int | float) for label in self.categories):
            return count_and_mean(total.sum(-1), total @ np.array(self.categories, float))
        return {"count": total.sum(-1)}

    def quantities(self, params, column, labels=None):
        p = np.asarray(params["probability"])
        p = p[:, column] if p.ndim == 3 else p
        return {f"P({label})": p[:, c] for c, label in enumerate((labels or self.categories)[:MOST])}

    def predictive(self):
        """Return Categorical(mean)."""
        return program.dist.Categorical(probs=self.mean)

    def density(self, params=None) -> Any:
        return Values(params["probability"])

    def sufficient_statistic(self, x, about=0.0):
        """Return the one-hot code, whose entries sum to 1."""
        return (x[..., None] == np.arange(len(self.categories))).astype(float)

    def check(self, x):
        x, count = self._shaped(x), len(self.categories)
        if x.dtype.kind == "f" or not x.size:
            require(x, lambda c: (c >= 0) & (c < count) & (c == np.floor(c)), self._not_a_code)
        elif x.min() < 0 or x.max() >= count:
            refuse_first(x, (x < 0) | (x >= count), self._not_a_code)
        return x

    @property
    def _not_a_code(self):
        return f"is not a category code 0..{len(self.categories) - 1}"

    def _cells(self, x, entries):
        """Yield slices of rows (n, entries), and the places of codes in a table (entries, V), its end where missing."""
        count = len(self.categories)
        offset = np.arange(entries) * count
        for piece in pieces(len(x), entries, 1 << 16):
            values = x[piece].reshape(-1, entries)
            with np.errstate(invalid="ignore"):
                codes = values.astype(np.intp, copy=False)
            right = codes.view(np.uintp).max(initial=0) < count  # a negative code is a huge unsigned one
            missing = None
            if not right or (values.dtype.kind == "f" and not (codes == values).all()):
                missing = np.isnan(values)
                if not (missing | ((codes == values) & (codes >= 0) & (codes < count))).all():
                    self.check(x)  # raises, and names the place
            cells = codes + offset
            if missing is not None:
                cells[missing] = entries * count
            yield piece, cells

    def sum_rows(self, x, rows):
        """Count categories by group, all in one `bincount`."""
        entries, size = math.prod(x.shape[1:]), len(self.categories)
        width = entries * size + 1
        total = np.zeros(rows.count * width)
        for piece, cells in self._cells(x, entries):
            grouping, order = rows[piece], "F" if cells.flags.f_contiguous else "C"  # their order in memory
            if rows.count > 1:
                cells += (grouping.codes * width)[:, None]
            w = None if grouping.weight is None else np.broadcast_to(grouping.weight[:, None], cells.shape).ravel(order)
            total += np.bincount(cells.ravel(order), w, len(total))
        total = total.reshape(rows.count, width)[:, :-1]
        return SumStatistics(total.reshape(*rows.lead, *x.shape[1:], size), np.float64(0))

    def _fast_predictive(self, x):
        """Return log p(x), looked up in a table: for one trial the plug-in of the mean is exact."""
        x = self._shaped(x)
        with np.errstate(divide="ignore"):
            table = np.log(self.mean)
        entries, size, groups = math.prod(x.shape[1:]), len(self.categories), self._groups(x)
        table = np.broadcast_to(table, (*groups, *x.shape[1:], size)).reshape(math.prod(groups), entries * size)
        by_cell, result = np.pad(table, [(0, 0), (0, 1)]).T.copy(), np.empty((len(table), len(x)))
        for piece, cells in self._cells(x, entries):  # ones at the cells, times the table: a look-up and sum for all
            rows = np.arange(0, cells.size + 1, entries)
            look = sparse.csr_array((np.ones(cells.size), cells.ravel(), rows), (len(cells), len(by_cell)))
            result[:, piece] = (look @ by_cell).T
        return result.T.reshape(len(x), *groups)


@dataclass(frozen=True, eq=False)
class DirichletCategorical(DirichletPrior, Categorical):
    """Categorical feature with a Dirichlet(alpha) prior on the category probabilities.

    Parameters
    ----------
    alpha : float or array, shape (features..., V), or mapping or Series from category to float
        Prior count of each category, > 0; a number holds for every category. A DataFrame names columns in its index and
        categories in its columns.
    categories : int or sequence, optional
        The number of categories V or their labels, in the order of the codes. Needed where ``alpha`` is a number.

    Examples
    --------
    >>> die = DirichletCategorical(alpha=1.0, categories=3)
    >>> die.update(die.statistics([0, 0, 2])).mean.round(3)
    array([0.5  , 0.167, 0.333])
    """

    alpha: Hyperparameter = hyperparameter(1.0, positive=True)
    categories: Any = static(default=None)

    def prior_of(self, column):
        return f"Dirichlet({program.short(self.alpha if self.alpha.ndim == 1 else self.alpha[column])})"


@dataclass(frozen=True, eq=False)
class KnownCategorical(Categorical, ConjugateFamily):
    """Categorical with given probabilities, so nothing to learn: the class prior that a user fixes by ``priors=``.

    Parameters
    ----------
    probability : array, shape (V,)
        Category probabilities, >= 0 with sum 1.
    categories : int or sequence, optional
        Their labels.
    """

    probability: Hyperparameter = hyperparameter(rank=1)
    categories: Any = static(default=None)

    def __post_init__(self):
        if axes := names_along(self.probability):
            _match(self, "probability", axes)
        kind = getattr(self.probability, "dtype", float)
        super().__post_init__()
        if self._concrete:
            object.__setattr__(
                self, "probability", check_shares("KnownCategorical: probability", self.probability, kind)
            )
            self.probability.flags.writeable = False
        count = self.probability.shape[-1]
        names = labels("KnownCategorical", count if self.categories is None else self.categories)
        if len(names) != count:
            raise ValueError(f"KnownCategorical: categories must be {count} distinct labels, one for each probability")
        object.__setattr__(self, "categories", names)

    @property
    def mean(self):
        """The given probabilities."""
        return self.probability

    @property
    def mean_log(self):
        """Logarithms of the given probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.probability)

    def expected(self):
        return {"probability": self.probability}

    def parameters(self):
        """Record the given probabilities as a deterministic site."""
        return {"probability": program.numpyro.deterministic("probability", self.probability)}

    def update(self, statistics) -> Self:
        """Return the same model: there is nothing to learn."""
        return self

    def log_evidence_terms(self, statistics):
        return xlogy(statistics.total(), self.probability).sum(-1)

    def mode(self):
        return {"probability": self.probability}

    def ml(self, statistics):
        return self.mode()

    def sample_parameters(self, rng, size=()):
        return {"probability": np.broadcast_to(self.probability, (*size, *self.probability.shape))}
