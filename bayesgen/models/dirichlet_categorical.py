r"""A categorical feature under a Dirichlet prior; also the class prior of every classifier.

.. math:: \theta \sim \mathrm{Dirichlet}(\alpha), \qquad x_i \mid \theta \sim \mathrm{Categorical}(\theta),
   \quad x_i \in \{0, \dots, V-1\}

After counts n_v: posterior Dirichlet(alpha + n); predictive (alpha_v + n_v) / sum; evidence of the sequence
Γ(A)/Γ(A + N) ∏ Γ(alpha_v + n_v)/Γ(alpha_v), A = sum alpha; MAP (alpha_v + n_v - 1) / (A + N - V); ML n_v / N.
Laplace smoothing is the predictive (the posterior mean) under alpha = 1. (Murphy 2012, section 3.4.)
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import gammaln, xlogy

from bayesgen import program
from bayesgen.model import Conjugate, DataError, first, hyperparameter, log_or_floor
from bayesgen.numerics.checks import check_weight
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.sums import grouping
from bayesgen.program import static
from bayesgen.statistics import SumStatistics


class _Categorical(Conjugate):
    """What categorical features share, whatever their prior: codes 0..V-1 and their likelihood."""

    site_dims = {"probability": ("category",)}
    density_kind = "probability"
    categories: Any

    def likelihood(self, params):
        """Categorical(probability)."""
        return program.dist.Categorical(probs=params["probability"])

    def predictive(self):
        """Categorical(mean)."""
        return program.dist.Categorical(probs=self.mean)

    @property
    def mean(self):
        """Mean of the category probabilities, (..., V)."""
        raise NotImplementedError

    def sufficient_statistic(self, x, about=0.0):
        """One-hot code; its entries sum to 1."""
        return (x[..., None] == np.arange(len(self.categories))).astype(float)

    def natural_parameters(self, params, about=0.0):
        """Log probability of each category."""
        return log_or_floor(params["probability"])

    def check(self, x):
        """Entries are codes 0..V-1, or NaN where missing."""
        x, count = self.shaped(x), len(self.categories)
        if x.dtype.kind == "f" or not x.size:
            self._require(x, lambda c: (c >= 0) & (c < count) & (c == np.floor(c)), self._not_a_code)
        elif x.min() < 0 or x.max() >= count:
            self._refuse(x, (x < 0) | (x >= count), self._not_a_code)
        return x

    @property
    def _not_a_code(self):
        return f"is not a category code 0..{len(self.categories) - 1}"

    def _cells(self, x, entries):
        """Yield pieces of rows (n, entries): the slice, each code's place in a table (entries, V), what is missing.

        A missing entry is at the end of the table, entries V.
        """
        count = len(self.categories)
        offset = np.arange(entries) * count
        for piece in pieces(len(x), entries, 1 << 16):
            part = x[piece].reshape(-1, entries)
            with np.errstate(invalid="ignore"):
                cells = part.astype(np.intp)
            right = cells.view(np.uintp).max(initial=0) < count  # a negative code is a huge unsigned one
            missing = None
            if not right or (part.dtype.kind == "f" and not (cells == part).all()):
                missing = np.isnan(part)
                if not (missing | ((cells == part) & (cells >= 0) & (cells < count))).all():
                    self.check(x)  # which raises, and says where
            cells += offset
            if missing is not None:
                cells[missing] = entries * count
            yield piece, cells

    def statistics(self, x, group=None, groups=None, weight=None):
        """Count categories by group, all in one `bincount`; see `ExponentialFamily.statistics`."""
        x = self.shaped(x)
        weight, (codes, count, lead) = check_weight(weight, len(x)), grouping(len(x), group, groups)
        entries, size = math.prod(x.shape[1:]), len(self.categories)
        width = entries * size + 1
        total = np.zeros(count * width)
        for piece, cells in self._cells(x, entries):
            if count > 1:
                cells += (codes[piece] * width)[:, None]
            w = None if weight is None else np.repeat(weight[piece], entries)
            total += np.bincount(cells.ravel(), w, len(total))
        total = total.reshape(count, width)[:, :-1]
        return SumStatistics(total.reshape(*lead, *x.shape[1:], size), np.float64(0))

    def log_predictive(self, x):
        """Log p(x); for one trial the plug-in of the mean is exact. A sum of entries looked up in a table."""
        x = self.shaped(x)
        with np.errstate(divide="ignore"):
            table = np.log(self.mean)
        entries, size = math.prod(x.shape[1:]), len(self.categories)
        groups = table.shape[: max(table.ndim - x.ndim, 0)]
        table = np.broadcast_to(table, (*groups, *x.shape[1:], size)).reshape(math.prod(groups), entries * size)
        table = np.ascontiguousarray(np.pad(table, [(0, 0), (0, 1)]).T)
        result = np.empty((len(x), table.shape[1]))
        for piece, cells in self._cells(x, entries):
            rows = np.arange(0, cells.size + 1, entries)
            # A row of ones at the cells, times the table: a compiled look-up and sum.
            result[piece] = (
                sparse.csr_array((np.ones(cells.size), cells.ravel(), rows), (len(cells), len(table))) @ table
            )
        return result.reshape(len(x), *groups)


@dataclass(frozen=True, eq=False)
class DirichletCategorical(_Categorical):
    """Categorical feature with a Dirichlet(alpha) prior on the category probabilities.

    Parameters
    ----------
    alpha : float or array, shape (features..., V)
        Prior count of each category, > 0; a number holds for every category.
    categories : int or sequence, optional
        The number of categories V or their labels, in the order of the codes. Needed where ``alpha`` is a number.

    Examples
    --------
    >>> die = DirichletCategorical(alpha=1.0, categories=3)
    >>> die.update(die.statistics([0, 0, 2])).mean.round(3)
    array([0.5  , 0.167, 0.333])
    """

    alpha: np.ndarray = hyperparameter(1.0, positive=True)
    categories: Any = static(default=None)

    def __post_init__(self):
        super().__post_init__()
        categories = self.categories
        if categories is None:
            if self.alpha.ndim == 0:
                raise ValueError(f"{type(self).__name__}: give categories=, their number or their labels")
            categories = self.alpha.shape[-1]
        if isinstance(categories, (int, np.integer)):
            categories = range(categories)
        categories = tuple(categories)
        if any(issubclass(kind, np.generic) for kind in set(map(type, categories))):
            categories = tuple(c.item() if isinstance(c, np.generic) else c for c in categories)
        if not categories or len(set(categories)) < len(categories):
            raise ValueError(f"{type(self).__name__}: categories must be one or more distinct labels")
        if self.alpha.ndim and self.alpha.shape[-1] not in (1, len(categories)):
            raise ValueError(
                f"DirichletCategorical: alpha has {self.alpha.shape[-1]} entries for {len(categories)} categories"
            )
        shape = (*self.alpha.shape[:-1], len(categories))
        object.__setattr__(self, "alpha", np.broadcast_to(self.alpha, shape))
        object.__setattr__(self, "categories", categories)

    @property
    def batch_shape(self):
        """Shape in front of the category axis."""
        return self.alpha.shape[:-1]

    def for_classes(self, groups):
        """Return the model with alpha repeated along a leading axis of classes."""
        return DirichletCategorical(np.broadcast_to(self.alpha, (groups, *self.alpha.shape)), self.categories)

    @property
    def mean(self):
        """Mean of the category probabilities, alpha / sum(alpha)."""
        return self.alpha / self.alpha.sum(-1, keepdims=True)

    def parameters(self):
        """Sample the category probabilities."""
        return {"probability": program.numpyro.sample("probability", program.dist.Dirichlet(self.alpha))}

    def update(self, statistics):
        """Add the counts."""
        return DirichletCategorical(self.alpha + statistics.total(), self.categories)

    def log_evidence(self, statistics):
        """Log of Γ(A)/Γ(A + N) ∏ Γ(alpha_v + n_v)/Γ(alpha_v)."""
        counts = statistics.total()
        rising = gammaln(self.alpha + counts) - gammaln(self.alpha)
        total = self.alpha.sum(-1)
        return float(rising.sum() - (gammaln(total + counts.sum(-1)) - gammaln(total)).sum())

    def mode(self):
        """(alpha - 1) / (A - V); uniform under a flat prior; none where an alpha is below 1."""
        bad = (self.alpha < 1).any(-1)
        if bad.any():
            raise DataError(
                "the Dirichlet density has no mode where alpha plus count is below 1; use exact or NUTS, or alpha >= 1",
                **first(bad),
            )
        excess = self.alpha - 1
        total = excess.sum(-1, keepdims=True)
        flat = total == 0
        return {"probability": np.where(flat, 1 / len(self.categories), excess / np.where(flat, 1, total))}

    def ml(self, statistics):
        """Shares of the categories; 0 is legitimate, no row at all is not."""
        counts = statistics.total()
        total = counts.sum(-1, keepdims=True)
        if (total == 0).any():
            raise DataError("maximum likelihood does not exist: no observed value", **first(total[..., 0] == 0))
        return {"probability": counts / total}

    def sample_parameters(self, rng, size=()):
        """Exact Dirichlet draws: normalised gammas, in log space so that a tiny alpha does not underflow to 0/0."""
        shape = (*size, *self.alpha.shape)
        # Marsaglia and Tsang's boost: G(alpha) = G(alpha + 1) U^(1/alpha)
        log_gamma = np.log(rng.standard_gamma(self.alpha + 1, shape)) + np.log1p(-rng.random(shape)) / self.alpha
        weights = np.exp(log_gamma - log_gamma.max(-1, keepdims=True))
        return {"probability": weights / weights.sum(-1, keepdims=True)}


@dataclass(frozen=True, eq=False)
class KnownCategorical(_Categorical):
    """Categorical with given probabilities: nothing to learn. The class prior that a user fixes by ``priors=``.

    Parameters
    ----------
    probability : array, shape (V,)
        Category probabilities, >= 0 with sum 1.
    categories : int or sequence, optional
        Their labels.
    """

    probability: np.ndarray = hyperparameter(rank=1)
    categories: Any = static(default=None)

    def __post_init__(self):
        super().__post_init__()
        if (self.probability < 0).any() or not np.allclose(self.probability.sum(-1), 1, rtol=0, atol=1e-8):
            raise ValueError("KnownCategorical: probability must be >= 0 and sum to 1")
        count, labels = self.probability.shape[-1], self.categories
        labels = tuple(range(count) if labels is None or isinstance(labels, (int, np.integer)) else labels)
        if len(set(labels)) != count:
            raise ValueError(f"KnownCategorical: categories must be {count} distinct labels, one for each probability")
        object.__setattr__(self, "categories", labels)

    @property
    def mean(self):
        """The given probabilities."""
        return self.probability

    def parameters(self):
        """Record the given probabilities as a deterministic site."""
        return {"probability": program.numpyro.deterministic("probability", self.probability)}

    def update(self, statistics):
        """Return itself."""
        return self

    def log_evidence(self, statistics):
        """Log likelihood of the counts."""
        return float(xlogy(statistics.total(), self.probability).sum())

    def mode(self):
        """The given probabilities."""
        return {"probability": self.probability}

    def ml(self, statistics):
        """The given probabilities."""
        return self.mode()

    def sample_parameters(self, rng, size=()):
        """The given probabilities, repeated."""
        return {"probability": np.broadcast_to(self.probability, (*size, *self.probability.shape))}
