r"""The coin: a Bernoulli feature under a Beta prior.

.. math:: \theta \sim \mathrm{Beta}(a, b), \qquad x_i \mid \theta \sim \mathrm{Bernoulli}(\theta), \; x_i \in \{0, 1\}

After s ones and f zeros: posterior Beta(a + s, b + f); predictive p(x = 1) = (a + s) / (a + b + s + f); evidence of the
sequence B(a + s, b + f) / B(a, b); MAP (a + s - 1) / (a + b + s + f - 2); ML s / (s + f).
(Murphy 2012, *Machine Learning: A Probabilistic Perspective*, section 3.3.)
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bayesgen import program
from bayesgen.hyperparameters import Hyperparameter, hyperparameter
from bayesgen.leaf import over_rows
from bayesgen.models.beta import BetaPrior, Successes
from bayesgen.numerics.entries import require
from bayesgen.numerics.pieces import pieces, product_rows
from bayesgen.numerics.sums import finite, sparse_sum, with_data
from bayesgen.statistics import SumStatistics

_BINARY = "is not 0 or 1; a Bernoulli feature is binary"


class Bernoulli(Successes):
    """Bernoulli features, whatever their prior; ``params`` hold the "probability" of a one."""

    takes_sparse = True
    density_kind = "probability"

    def likelihood(self, params):
        """Bernoulli(probability)."""
        return program.dist.Bernoulli(params["probability"])

    def draw(self, params, rng):
        """Draw ones and zeros."""
        return (rng.random(np.shape(params["probability"])) < params["probability"]).astype(int)

    def cardinality(self, feature):
        """Return how many values there are, two: 0 and 1."""
        return 2

    def sufficient_statistic(self, x, about=0.0):
        """(1 - x, x)."""
        return np.stack([1.0 - x, x], axis=-1)

    def check(self, x):
        """Entries are 0, 1, or NaN where missing."""
        x = self.shaped(x)
        if x.dtype != bool and not (sparse.issparse(x) and _ones(x)):
            require(x, lambda part: (part == 0) | (part == 1), _BINARY)
        elif not sparse.issparse(x):
            x = x.view(np.int8)
        return x

    def sum_rows(self, x, rows):
        """Count zeros and ones by group; bits are summed as 16-bit integers."""
        if sparse.issparse(x):
            seen, bits = rows.sizes()[:, None], None
            if not _ones(x):
                self.check(x)
                bits = (x.data == 1).astype(float)
            ones = sparse_sum(x, rows, bits)
            if not finite(x.data):
                seen = seen - sparse_sum(x, rows, np.isnan(x.data).astype(float))
            sums = np.stack([np.maximum(seen - ones, 0.0), ones], axis=-1)
            return SumStatistics(sums.reshape(*rows.lead, -1, 2), np.float64(0))
        flat = x.reshape(len(x), math.prod(x.shape[1:]))
        zeros, ones = np.zeros((2, rows.count, flat.shape[1]))
        for piece in pieces(len(flat), flat.shape[1]):
            part, own = flat[piece], rows[piece]
            one, zero = part == 1, part == 0
            whole = np.count_nonzero(one) + np.count_nonzero(zero) == part.size
            if not whole and not (one | zero | np.isnan(part)).all():
                require(x, lambda part: (part == 0) | (part == 1), _BINARY)
            new = own.sum(one)
            ones += new
            zeros += own.sizes()[:, None] - new if whole and own.weight is None else own.sum(zero)
        return SumStatistics(np.stack([zeros, ones], axis=-1).reshape(*rows.lead, *x.shape[1:], 2), np.float64(0))

    def log_likelihood_rows(self, params, x):
        """Log p(row | params), as a product with the bits alone; see `ExponentialFamily.log_likelihood_rows`."""
        p = params["probability"]
        never, always = p == 0, p == 1
        result, lead = self._product(np.log(1 - p + always), np.log(p + never), x, x.ndim - 1)
        if never.any() or always.any():  # bits against a certainty, counted: log 0 would swallow the rest of its sum
            result[self._product(always * 1.0, never * 1.0, x, x.ndim - 1)[0] > 0.5] = -np.inf
        return result.reshape(*lead, x.shape[0])

    def _product(self, log_zero, log_one, x, features):
        """Sum of log p(bit) over features, (groups, n), and the shape of groups in front of ``features`` axes."""
        log_zero, log_one = np.broadcast_arrays(log_zero, log_one)
        groups = log_zero.shape[: max(log_zero.ndim - features, 0)]
        log_zero, log_one = (over_rows(a, groups, x) for a in (log_zero, log_one))
        slope, constant = log_one - log_zero, log_zero.sum(1)[:, None]
        if sparse.issparse(x):
            if finite(x.data):
                return (x @ np.ascontiguousarray(slope.T) + constant.T).T, groups
            missing = np.isnan(x.data)
            filled, gaps = with_data(x, np.where(missing, 0.0, x.data)), with_data(x, missing.astype(float))
            return (filled @ slope.T - gaps @ log_zero.T).T + constant, groups
        flat, result = x.reshape(len(x), slope.shape[1]), np.empty((len(slope), len(x)))
        for piece in pieces(len(flat), flat.shape[1], rows=product_rows(slope.size)):
            part = flat[piece].astype(float, copy=False)
            result[:, piece] = slope @ part.T + constant
            if np.isnan(result[0, piece]).any():
                missing = np.isnan(part)
                result[:, piece] = slope @ np.where(missing, 0.0, part).T + log_zero @ (~missing).T
        return result, groups


@dataclass(frozen=True, eq=False)
class BetaBernoulli(BetaPrior, Bernoulli):
    """Bernoulli feature with a Beta(a, b) prior on the probability of a one.

    Parameters
    ----------
    a, b : float or array, shape (features...)
        Prior counts of ones and zeros, > 0.

    Examples
    --------
    >>> coin = BetaBernoulli(a=2, b=2)
    >>> posterior = coin.update(coin.statistics([1, 1]))  # two heads
    >>> float(posterior.mean), float(posterior.mode()["probability"])
    (0.6666666666666666, 0.75)
    """

    a: Hyperparameter = hyperparameter(1.0, positive=True)
    b: Hyperparameter = hyperparameter(1.0, positive=True)

    def predictive(self):
        """Bernoulli(a / (a + b))."""
        return program.dist.Bernoulli(self.mean)

    def log_predictive(self, x):
        """Log p(x); for one trial the plug-in of the mean is exact."""
        if not self.concrete:
            return super().log_predictive(x)
        x = self.check(x)
        result, groups = self._product(*self._logs, x, x.ndim - 1)
        return result.T.reshape(x.shape[0], *groups)

    @functools.cached_property
    def _logs(self):
        """Log probability of a zero, and of a one."""
        total = np.log(self.a + self.b)
        return np.log(self.b) - total, np.log(self.a) - total


def _ones(x) -> bool:
    """Whether all that sparse rows store is 1."""
    return all((x.data[piece] == 1).all() for piece in pieces(x.nnz, 1, rows=1 << 15))
