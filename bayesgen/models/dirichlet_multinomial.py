r"""A bag of words: word counts of a document, given its length, under a Dirichlet prior.

.. math:: \theta \sim \mathrm{Dirichlet}(\alpha), \qquad x_i \mid \theta \sim \mathrm{Multinomial}(N_i, \theta), \quad
   x_i \in \{0, 1, \dots\}^V, \; N_i = \sum_v x_{iv}

After counts n_v in all documents: posterior Dirichlet(alpha + n); predictive Dirichlet-multinomial
p(x) = N! Γ(A)/Γ(A + N) ∏ Γ(alpha_v + x_v)/(Γ(alpha_v) x_v!), A = sum alpha: a word once used is likelier to come again,
which the plug-in of the mean misses; an empty document has probability 1. Evidence of the sequence, n = sum n_v:
∏ N_i!/∏ x_iv! Γ(A)/Γ(A + n) ∏ Γ(alpha_v + n_v)/Γ(alpha_v), the multinomial coefficients (log h) in it, though they
cancel between classes; MAP (alpha_v + n_v - 1) / (A + n - V); ML n_v / n. (Murphy 2012, sections 3.4 and 3.5.)
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from bayesgen import program
from bayesgen.model import Conjugate, DataError
from bayesgen.models.dirichlet_categorical import DirichletCategorical
from bayesgen.models.gamma_poisson import log_ways, over_rows
from bayesgen.program import static


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(DirichletCategorical):
    """Counts of V words with a Dirichlet(alpha) prior on the word probabilities; a row is a vector of V counts.

    Parameters
    ----------
    alpha : float or array, shape (..., V)
        Prior count of each word, > 0; a number holds for every word.
    categories : int or sequence, optional
        The number of words V, or the words. Needed where ``alpha`` is a number.
    length : int, default 100
        Length of the documents that the program draws; those observed have their own.

    Examples
    --------
    >>> bag = DirichletMultinomial(alpha=1.0, categories=["cheap", "meeting", "now"])
    >>> posterior = bag.update(bag.statistics([[2, 0, 1], [1, 1, 1]]))
    >>> posterior.mean.round(3)
    array([0.444, 0.222, 0.333])
    >>> np.exp(posterior.log_predictive([[2, 0, 0], [0, 0, 0]])).round(3)
    array([0.222, 1.   ])
    """

    length: int = static(default=100)

    event_dim = 1

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.length, (int, np.integer)) or self.length < 0:
            raise ValueError(f"DirichletMultinomial: length must be a whole number >= 0, got {self.length!r}")

    def for_classes(self, groups):
        """Return the model with alpha repeated along a leading axis of classes."""
        return replace(self, alpha=np.broadcast_to(self.alpha, (groups, *self.alpha.shape)))

    def likelihood(self, params):
        """Multinomial(length, probability), of the lengths in ``params`` where it has them."""
        return program.dist.Multinomial(params.get("length", self.length), probs=params["probability"])

    def predictive(self):
        """Dirichlet-multinomial, of the documents that the program draws."""
        return program.dist.DirichletMultinomial(self.alpha, self.length)

    def observe(self, site, params, x, size, features, name=""):
        """Sample or observe documents; those observed are conditional on their lengths."""
        if x is not None:
            x = program.jnp.asarray(x)
            params = {**params, "length": program.jnp.nansum(x, -1).astype(int)}
        return super().observe(site, params, x, size, features, name)

    def T(self, x, about=0.0):
        """The counts."""
        return x.astype(float)

    def log_base(self, x):
        """Log of the multinomial coefficient N! / ∏ x_v!."""
        return gammaln(x.sum(-1) + 1.0) - gammaln(x + 1.0).sum(-1)

    def check(self, x):
        """Entries are 0, 1, 2, ...; a document is missing as a whole, NaN in every entry."""
        x = Conjugate.check(self, x)
        count = len(self.categories)
        if x.shape[-1] != count:
            raise DataError(f"expected documents of {count} words, got {x.shape[-1]} columns")
        bad = (x == x) & ((x < 0) | (x != np.floor(x)))
        if bad.any():
            self._refuse(x, bad, "is not a count: a bag of words holds whole numbers >= 0")
        gone = np.isnan(x)
        gone &= ~gone.all(-1, keepdims=True)
        if gone.any():
            row, *_, word = np.argwhere(gone)[0]
            raise DataError(
                f"row {row} is partly missing: a bag of words is missing as a whole; give 0 for a word not in it",
                feature=int(word),
            )
        return x

    def update(self, statistics):
        """Add the counts."""
        return replace(self, alpha=self.alpha + statistics.total())

    def log_evidence(self, statistics):
        """Log of ∏ N_i!/∏ x_iv! Γ(A)/Γ(A + n) ∏ Γ(alpha_v + n_v)/Γ(alpha_v)."""
        return float(super().log_evidence(statistics) + statistics.base)

    def log_predictive(self, x):
        """Log probability of the Dirichlet-multinomial; a term per word that occurs, so a missing document has none."""
        x = self.check(x)
        groups = self.batch_shape[: max(len(self.batch_shape) - x.ndim + 2, 0)]
        counts = np.nan_to_num(x)
        lengths = counts.sum(-1)
        words = log_ways(over_rows(self.alpha, groups, x), counts.reshape(len(x), math.prod(x.shape[1:])))
        total = over_rows(self.alpha.sum(-1), groups, lengths)
        return (words - log_ways(total, lengths.reshape(len(x), total.shape[1]))).reshape(len(x), *groups)
