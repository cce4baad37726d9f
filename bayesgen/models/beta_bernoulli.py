r"""The coin: a Bernoulli feature under a Beta prior.

.. math:: \theta \sim \mathrm{Beta}(a, b), \qquad x_i \mid \theta \sim \mathrm{Bernoulli}(\theta), \; x_i \in \{0, 1\}

After s ones and f zeros: posterior Beta(a + s, b + f); predictive p(x = 1) = (a + s) / (a + b + s + f); evidence of the
sequence B(a + s, b + f) / B(a, b); MAP (a + s - 1) / (a + b + s + f - 2); ML s / (s + f).
(Murphy 2012, *Machine Learning: A Probabilistic Perspective*, section 3.3.)
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import betaln

from bayesgen import program
from bayesgen.model import Conjugate, DataError, first, hyperparameter, log_or_floor, over_rows
from bayesgen.numerics.checks import check_weight
from bayesgen.numerics.pieces import pieces, product_rows
from bayesgen.numerics.sums import finite, grouping, membership, sparse_sum, weights_of, with_data
from bayesgen.statistics import Statistics, SumStatistics

_BINARY = "is not 0 or 1; a Bernoulli feature is binary"


@dataclass(frozen=True, eq=False)
class BetaBernoulli(Conjugate):
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

    takes_sparse = True

    a: np.ndarray = hyperparameter(1.0, positive=True)
    b: np.ndarray = hyperparameter(1.0, positive=True)

    density_kind = "probability"

    def parameters(self):
        """Sample the probability of a one."""
        return {"probability": program.numpyro.sample("probability", program.dist.Beta(self.a, self.b))}

    def likelihood(self, params):
        """Bernoulli(probability)."""
        return program.dist.Bernoulli(params["probability"])

    def predictive(self):
        """Bernoulli(a / (a + b))."""
        return program.dist.Bernoulli(self.mean)

    @property
    def mean(self):
        """Mean of the probability of a one, a / (a + b)."""
        return self.a / (self.a + self.b)

    def sufficient_statistic(self, x, about=0.0):
        """(1 - x, x)."""
        return np.stack([1.0 - x, x], axis=-1)

    def natural_parameters(self, params, about=0.0):
        """(log(1 - probability), log probability)."""
        p = params["probability"]
        return p.__array_namespace__().stack([log_or_floor(1 - p), log_or_floor(p)], axis=-1)

    def check(self, x):
        """Entries are 0, 1, or NaN where missing."""
        x = self.shaped(x)
        if x.dtype != bool and not (sparse.issparse(x) and _ones(x)):
            self._require(x, lambda part: (part == 0) | (part == 1), _BINARY)
        elif not sparse.issparse(x):
            x = x.view(np.int8)
        return x

    def statistics(self, x, group=None, groups=None, weight=None) -> Statistics:
        """Count zeros and ones by group; see `ExponentialFamily.statistics`. Bits are summed as 16-bit integers."""
        x = self.shaped(x)
        weight, (codes, count, lead) = check_weight(weight, x.shape[0]), grouping(x.shape[0], group, groups)
        if sparse.issparse(x):
            seen = weights_of(codes, count, weight)[:, None]
            bits = None
            if not _ones(x):
                self.check(x)
                bits = (x.data == 1).astype(float)
            ones = sparse_sum(x, codes, count, weight, bits)
            if not finite(x.data):
                seen = seen - sparse_sum(x, codes, count, weight, np.isnan(x.data).astype(float))
            return SumStatistics(
                np.stack([np.maximum(seen - ones, 0.0), ones], axis=-1).reshape(*lead, -1, 2), np.float64(0)
            )
        flat = x.reshape(len(x), math.prod(x.shape[1:]))
        zeros, ones = np.zeros((2, count, flat.shape[1]))
        for piece in pieces(len(flat), flat.shape[1]):
            part, own, w = flat[piece], codes[piece], None if weight is None else weight[piece]
            one, zero = part == 1, part == 0
            whole = np.count_nonzero(one) + np.count_nonzero(zero) == part.size
            if not whole and not (one | zero | np.isnan(part)).all():
                self._require(x, lambda part: (part == 0) | (part == 1), _BINARY)
            dtype = np.uint16 if w is None else float  # a piece is too short to overflow
            member = membership(own, count, w, dtype)
            new = member @ one.astype(dtype)
            ones += new
            whole = whole and w is None
            zeros += weights_of(own, count)[:, None] - new if whole else member @ zero.astype(dtype)
        return SumStatistics(np.stack([zeros, ones], axis=-1).reshape(*lead, *x.shape[1:], 2), np.float64(0))

    def update(self, statistics):
        """Add the counts."""
        zeros, ones = np.moveaxis(statistics.total(), -1, 0)
        return BetaBernoulli(self.a + ones, self.b + zeros)

    def log_evidence(self, statistics):
        """Log B(a + s, b + f) - log B(a, b)."""
        posterior = self.update(statistics)
        return float((betaln(posterior.a, posterior.b) - betaln(self.a, self.b)).sum())

    def log_predictive(self, x):
        """Log p(x); for one trial the plug-in of the mean is exact."""
        x = self.check(x)
        total = np.log(self.a + self.b)
        result, groups = self._product(np.log(self.b) - total, np.log(self.a) - total, x, x.ndim - 1)
        return result.T.reshape(x.shape[0], *groups)

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

    def mode(self):
        """(a - 1) / (a + b - 2); 1/2 under the flat Beta(1, 1); none where a or b is below 1."""
        bad = (self.a < 1) | (self.b < 1)
        if bad.any():
            raise DataError(
                "the Beta density has no mode where a or b is below 1; use exact or NUTS, or a prior >= 1", **first(bad)
            )
        flat = (self.a == 1) & (self.b == 1)
        return {"probability": np.where(flat, 0.5, (self.a - 1) / np.where(flat, 1, self.a + self.b - 2))}

    def ml(self, statistics):
        """Share of ones; 0 or 1 is legitimate, no row at all is not."""
        zeros, ones = np.moveaxis(statistics.total(), -1, 0)
        empty = zeros + ones == 0
        if empty.any():
            raise DataError("maximum likelihood does not exist: no observed value", **first(empty))
        return {"probability": ones / (zeros + ones)}

    def sample_parameters(self, rng, size=()):
        """Exact Beta draws."""
        return {"probability": rng.beta(self.a, self.b, (*size, *self.batch_shape))}


def _ones(x) -> bool:
    """Whether all that sparse rows store is 1."""
    return all((x.data[piece] == 1).all() for piece in pieces(x.nnz, 1))
