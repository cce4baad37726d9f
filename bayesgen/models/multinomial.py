r"""Bags of words: the word counts of a document, given its length, under a Dirichlet prior.

.. math:: \theta \sim \mathrm{Dirichlet}(\alpha), \qquad x_i \mid \theta \sim \mathrm{Multinomial}(N_i, \theta), \quad
   x_i \in \{0, 1, \dots\}^V, \; N_i = \sum_v x_{iv}

After counts n_v in all documents, with A = sum alpha and n = sum n_v: posterior Dirichlet(alpha + n); MAP (alpha_v +
n_v - 1) / (A + n - V); ML n_v / n. The predictive is Dirichlet-multinomial, p(x) = N! Γ(A)/Γ(A + N) ∏ Γ(alpha_v +
x_v)/(Γ(alpha_v) x_v!): a word once used is likelier to come again, which the plug-in of the mean misses; an empty
document has probability 1. The evidence of the sequence is ∏ N_i!/∏ x_iv! Γ(A)/Γ(A + n) ∏ Γ(alpha_v + n_v)/Γ(alpha_v).
It keeps the multinomial coefficients (log h), though they cancel between classes. (Murphy 2012, sections 3.4 and 3.5.)
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.core import program
from bayesgen.core.errors import DataError
from bayesgen.core.program import static
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.categorical import DirichletPrior
from bayesgen.models.kinds import Bag
from bayesgen.models.leaf import LOG_ZERO, Hyperparameter, hyperparameter
from bayesgen.numerics.checks import check_count, require
from bayesgen.numerics.counts import LogWays, filled, gaps, lengths, log_factorial, log_factorials, small, whole
from bayesgen.numerics.pieces import row_pieces
from bayesgen.numerics.special import log_multichoose
from bayesgen.numerics.sums import finite

_NO_COUNT = "is not a count: a bag of words holds whole numbers >= 0"


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(DirichletPrior):
    """Counts of V words with a Dirichlet(alpha) prior on the word probabilities; a row is a vector of V counts.

    Parameters
    ----------
    alpha : float or array, shape (..., V)
        Prior count of each word, > 0; a number holds for every word.
    categories : int or sequence, optional
        The number of words V, or the words. Needed where ``alpha`` is a number.
    length : int, default 100
        Number of words in the documents that the program draws; observed documents have their own lengths.

    Examples
    --------
    >>> bag = DirichletMultinomial(alpha=1.0, categories=["cheap", "meeting", "now"])
    >>> posterior = bag.update(bag.statistics([[2, 0, 1], [1, 1, 1]]))
    >>> posterior.mean.round(3)
    array([0.444, 0.222, 0.333])
    >>> np.exp(posterior.log_predictive([[2, 0, 0], [0, 0, 0]])).round(3)
    array([0.222, 1.   ])
    """

    alpha: Hyperparameter = hyperparameter(1.0, positive=True)
    categories: Any = static(default=None)
    length: int = static(default=100)

    _takes_sparse = True
    event_dim = 1
    density_kind = "probability given the total"

    def __post_init__(self):
        super().__post_init__()
        check_count("DirichletMultinomial: length", self.length, 0)

    def likelihood(self, params):
        return program.dist.Multinomial(params.get("length", self.length), probs=params["probability"])

    def density(self, params=None):
        if params is None:
            return super().density()
        return Bag(params["probability"], about={"kind": "count", "words": _NO_COUNT, "word": True})

    def summaries(self, total):
        return {"sum": total[:, 0]}

    def quantities(self, params, column, labels=None):
        return {"share of words": np.asarray(params["probability"])[:, column]}

    def draw(self, params, rng):
        p = np.asarray(params["probability"])
        return rng.multinomial(self.length, p / p.sum(-1, keepdims=True))

    def predictive(self):
        return program.dist.DirichletMultinomial(self.alpha, self.length)

    def _density_of(self, params, x=None):
        if x is None:
            return self.likelihood(params), None
        jnp, gone = program.jnp, x != x
        partly = gone.any(-1) & ~gone.all(-1)
        if not program.is_abstract(x) and partly.any():
            place = np.argwhere(gone & partly[..., None])[0]
            raise self._partly(place[-2 - len(self.features)], place[-1])
        counts = jnp.where(gone.any(-1, keepdims=True), 0, x).astype(int)
        return self.likelihood({**params, "length": counts.sum(-1)}), counts

    def sufficient_statistic(self, x, about=0.0):
        return x.astype(float)

    def log_base_measure(self, x):
        """Return the log of the multinomial coefficient N! / ∏ x_v!."""
        return log_factorial(lengths(x)) - log_factorials(x)

    def check(self, x):
        x = self._shaped(x)
        if sparse.issparse(x) and small(x.data) is not None:  # small counts, none missing
            return x
        x, count = super().check(x), len(self.categories)
        require(x, whole, _NO_COUNT)
        if sparse.issparse(x):
            gone = gaps(x)
            times = np.diff(gone.indptr)
            partly = np.flatnonzero((times > 0) & (times < count))
            if len(partly):
                raise self._partly(partly[0], gone.indices[gone.indptr[partly[0]]])
        elif not finite(x):
            gone = np.isnan(x)
            gone &= ~gone.all(-1, keepdims=True)
            if gone.any():
                row, *_, word = np.argwhere(gone)[0]
                raise self._partly(row, word)
        return x

    def _shaped(self, x):
        x = super()._shaped(x)
        if x.shape[-1] != len(self.categories):
            raise DataError(f"expected documents of {len(self.categories)} words, got {x.shape[-1]} columns")
        return x

    @staticmethod
    def _partly(row, word):
        problem = f"row {row} is partly missing: a bag of words is missing as a whole; give 0 for a word not in it"
        return DataError(problem, feature=int(word))

    def sum_rows(self, x, rows):
        x = self.check(x)
        sums, base = np.zeros((rows.count, math.prod(x.shape[1:]))), 0.0
        for piece, words in row_pieces(x):
            words, grouping = filled(words), rows[piece]
            sums += grouping.sum(words if words.ndim == 2 else words.reshape(len(words), -1))
            base += grouping.total(self.log_base_measure(words))
        return SumStatistics(sums.reshape(*rows.lead, *x.shape[1:]), np.float64(base))

    def log_likelihood_rows(self, params, x):
        if not sparse.issparse(x):
            return super().log_likelihood_rows(params, x)
        eta, counts = self.natural_parameters(params), filled(x)
        result = (counts @ eta.reshape(-1, x.shape[1]).T).T + self.log_base_measure(counts)
        result[result < LOG_ZERO / 2] = -np.inf
        return result.reshape(*eta.shape[:-1], x.shape[0])

    def _fast_predictive(self, x):
        """Return the log probability of the Dirichlet-multinomial, with a term for each word that occurs."""
        x = self.check(x)
        groups = self._groups(x)
        alpha = np.broadcast_to(self.alpha, (*groups, *x.shape[1:])).reshape(-1, *x.shape[1:])
        result = np.zeros((x.shape[0], len(alpha)))
        for bag in np.ndindex(x.shape[1:-1]):  # one bag, or several side by side
            prior = alpha[:, *bag]
            ways = self._kept((x.shape[1:], bag), lambda prior=prior: LogWays(prior))
            for piece, words in row_pieces(x):
                rows = sparse.csr_array(filled(words[:, *bag] if bag else words))
                result[piece] += ways(rows) - _of_lengths(prior.sum(1), lengths(rows))
        return result.reshape(x.shape[0], *groups)


def _of_lengths(total, length):
    """Return log Γ(A + N)/(Γ(A) N!) of documents of N words, (n, groups), computed once where many N are equal."""
    if not length.max(initial=0) < len(length):
        return log_multichoose(total, length[:, None])
    return log_multichoose(total, np.arange(length.max(initial=0) + 1)[:, None])[length.astype(np.intp)]
