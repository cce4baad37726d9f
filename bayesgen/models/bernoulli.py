r"""Coins and counts of heads: a probability of success under a Beta prior.

**Coins.** A Bernoulli feature:

.. math:: \theta \sim \mathrm{Beta}(a, b), \qquad x_i \mid \theta \sim \mathrm{Bernoulli}(\theta), \; x_i \in \{0, 1\}

After s ones and f zeros: posterior Beta(a + s, b + f); predictive p(x = 1) = (a + s) / (a + b + s + f); evidence of the
sequence B(a + s, b + f) / B(a, b); MAP (a + s - 1) / (a + b + s + f - 2); ML s / (s + f).

**Heads in N tosses.** A binomial feature:

.. math:: \theta \sim \mathrm{Beta}(a, b), \qquad x_i \mid \theta \sim \mathrm{Binomial}(N_i, \theta), \;
   x_i \in \{0, \dots, N_i\}

After s heads and f tails in all rows, posterior, MAP and ML are the coin's. The predictive is beta-binomial,
p(x) = C(N, x) B(a + x, b + N - x) / B(a, b); the evidence of the sequence is ∏ C(N_i, x_i) B(a + s, b + f) / B(a, b).
With N = 1 it is the coin. Everything is conditional on the N_i: the number of tosses carries no information about θ,
nor about the class.

(Murphy 2012, *Machine Learning: A Probabilistic Perspective*, section 3.3.)
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from bayesgen.core import program
from bayesgen.core.errors import DataError, refuse_where
from bayesgen.core.program import static
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.kinds import Heads, Values
from bayesgen.models.leaf import ConjugateFamily, ExponentialFamily, count_and_mean, log_or_floor, over_rows
from bayesgen.models.model import Hyperparameter, check_total, hyperparameter, revised
from bayesgen.numerics.checks import refuse_first, require
from bayesgen.numerics.counts import distinct, filled, gaps
from bayesgen.numerics.newton import beta_of_interval
from bayesgen.numerics.pieces import pieces, product_rows
from bayesgen.numerics.special import log_beta_binomial, log_beta_ratio, log_multichoose, namespace
from bayesgen.numerics.sums import finite

_NO_COUNTS = "is not a count: heads and tosses are whole numbers >= 0"
BINARY = "is not 0 or 1; a Bernoulli feature is binary"


class Successes(ExponentialFamily):
    """A leaf whose parameter is the "probability" of a success, under any prior; T(x) is (failures, successes)."""

    def natural_parameters(self, params, about=0.0):
        p = params["probability"]
        return namespace(p).stack([log_or_floor(1 - p), log_or_floor(p)], axis=-1)

    def ml(self, statistics):
        """Return the share of successes, which may be 0 or 1; raise where there is no trial."""
        failures, successes = np.moveaxis(statistics.total(), -1, 0)
        refuse_where(failures + successes == 0, "maximum likelihood does not exist: no observed value")
        return {"probability": successes / (failures + successes)}


class BetaPrior(Successes, ConjugateFamily):
    """Successes whose probability has a Beta(a, b) prior."""

    a: Hyperparameter
    b: Hyperparameter

    def __post_init__(self):
        super().__post_init__()
        with np.errstate(over="ignore"):
            check_total(self, "a and b", self.a + self.b)

    @classmethod
    def from_guess(cls, probability: float, rows: float) -> Self:
        """Return the prior of an expert who guesses the probability of a success, worth ``rows`` > 0 trials.

        >>> from bayesgen.models import BetaBernoulli
        >>> BetaBernoulli.from_guess(0.2, rows=10)
        BetaBernoulli(a=2, b=8)
        """
        made: Any = cls  # a subclass, which declares a and b
        return made(a=probability * rows, b=(1 - probability) * rows)

    @classmethod
    def from_interval(cls, low: float, high: float, mass: float = 0.9) -> Self:
        """Return the prior that puts ``mass`` on a probability of success between low and high.

        The rest of the mass is split equally below and above.

        >>> from bayesgen.models import BetaBernoulli
        >>> BetaBernoulli.from_interval(0.1, 0.3)
        BetaBernoulli(a=7.72, b=32.65)
        """
        made: Any = cls
        return made(*beta_of_interval(low, high, mass))

    def parameters(self):
        return {"probability": program.numpyro.sample("probability", program.dist.Beta(self.a, self.b))}

    @property
    def mean(self):
        """Mean of the probability of a success, a / (a + b)."""
        return self.a / (self.a + self.b)

    def update(self, statistics) -> Self:
        """Add the counts of successes and failures to a and b."""
        failures, successes = np.moveaxis(statistics.total(), -1, 0)
        return revised(self, a=self.a + successes, b=self.b + failures)

    def log_evidence_terms(self, statistics):
        """Return log B(a + s, b + f) - log B(a, b)."""
        failures, successes = np.moveaxis(statistics.total(), -1, 0)
        return log_beta_ratio(self.a, self.b, successes, failures)

    def expected(self):
        return {"probability": np.broadcast_to(self.mean, self.batch_shape)}

    def density(self, params=None):
        if params is not None:
            return super().density(params)
        return replace(self.density(self.expected()), total=self.a + self.b)

    def mode(self):
        """Return (a - 1) / (a + b - 2), or 1/2 under the flat Beta(1, 1); raise where a or b is below 1."""
        problem = "the Beta density has no mode where a or b is below 1; use exact or NUTS, or a prior >= 1"
        refuse_where((self.a < 1) | (self.b < 1), problem)
        flat, up, down = (self.a == 1) & (self.b == 1), self.a - 1, self.b - 1
        return {"probability": np.where(flat, 0.5, up / np.where(flat, 1, up + down))}  # a + b - 2 might be below a - 1

    def sample_parameters(self, rng, size=()):
        return {"probability": rng.beta(self.a, self.b, (*size, *self.batch_shape))}


class Bernoulli(Successes):
    """Bernoulli features under any prior; ``params`` hold the "probability" of a one."""

    _takes_sparse = True
    _column_kind = "b"
    density_kind = "probability"

    def likelihood(self, params):
        return program.dist.Bernoulli(params["probability"])

    def cardinality(self, feature):
        return 2

    def summaries(self, total):
        return count_and_mean(total.sum(-1), total[..., 1])

    def density(self, params=None) -> Any:
        p = params["probability"]
        return Values(np.stack([1 - p, p], axis=-1), about={"words": BINARY})

    def sufficient_statistic(self, x, about=0.0):
        return np.stack([1.0 - x, x], axis=-1)

    def check(self, x):
        x = self._shaped(x)
        if x.dtype != bool and not (sparse.issparse(x) and (x.data == 1).all()):
            require(x, lambda bits: (bits == 0) | (bits == 1), BINARY)
        elif not sparse.issparse(x):
            x = x.view(np.int8)
        return x

    def sum_rows(self, x, rows):
        """Count zeros and ones by group; sum bits as 16-bit integers."""
        if sparse.issparse(x):
            x, seen = self.check(x), rows.sizes()[:, None]
            ones = rows.sum(filled(x))
            if not finite(x):
                seen = seen - rows.sum(gaps(x))
            sums = np.stack([np.maximum(seen - ones, 0.0), ones], axis=-1)
            return SumStatistics(sums.reshape(*rows.lead, -1, 2), np.float64(0))
        flat = x.reshape(len(x), math.prod(x.shape[1:]))
        zeros, ones = np.zeros((2, rows.count, flat.shape[1]))
        for piece in pieces(len(flat), flat.shape[1]):
            bits, grouping = flat[piece], rows[piece]
            one, zero = bits == 1, bits == 0
            whole = np.count_nonzero(one) + np.count_nonzero(zero) == bits.size
            if not whole and not (one | zero | np.isnan(bits)).all():
                require(x, lambda bits: (bits == 0) | (bits == 1), BINARY)
            new = grouping.sum(one)
            ones += new
            zeros += grouping.sizes()[:, None] - new if whole and grouping.weight is None else grouping.sum(zero)
        return SumStatistics(np.stack([zeros, ones], axis=-1).reshape(*rows.lead, *x.shape[1:], 2), np.float64(0))

    def log_likelihood_rows(self, params, x):
        p = params["probability"]
        never, always = p == 0, p == 1
        result, lead = self._row_product(np.log(1 - p + always), np.log(p + never), x, x.ndim - 1)
        if never.any() or always.any():  # count bits against a certainty: log 0 would swallow the rest of its sum
            result[self._row_product(always * 1.0, never * 1.0, x, x.ndim - 1)[0] > 0.5] = -np.inf
        return result.reshape(*lead, x.shape[0])

    def _row_product(self, log_zero, log_one, x, features):
        """Sum log p(bit) over features, (groups, n); also return the shape of groups in front of ``features`` axes."""
        log_zero, log_one = np.broadcast_arrays(log_zero, log_one)
        groups = log_zero.shape[: max(log_zero.ndim - features, 0)]
        log_zero, log_one = (over_rows(a, groups, x) for a in (log_zero, log_one))
        slope, constant = log_one - log_zero, log_zero.sum(1)[:, None]
        if sparse.issparse(x):
            result = (filled(x) @ np.ascontiguousarray(slope.T) + constant.T).T
            return result if finite(x) else result - (gaps(x) @ log_zero.T).T, groups
        flat, result = x.reshape(len(x), slope.shape[1]), np.empty((len(slope), len(x)))
        for piece in pieces(len(flat), flat.shape[1], rows=product_rows(slope.size)):
            bits = flat[piece].astype(float, copy=False)
            result[:, piece] = slope @ bits.T + constant
            if np.isnan(result[0, piece]).any():
                missing = np.isnan(bits)
                result[:, piece] = slope @ np.where(missing, 0.0, bits).T + log_zero @ (~missing).T
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
        """Return Bernoulli(a / (a + b))."""
        return program.dist.Bernoulli(self.mean)

    def _fast_predictive(self, x):
        """Return log p(x): for one trial the plug-in of the mean is exact."""
        x = self.check(x)
        result, groups = self._row_product(*self._logs, x, x.ndim - 1)
        return result.T.reshape(x.shape[0], *groups)

    @functools.cached_property
    def _logs(self):
        """Log probabilities of a zero and of a one."""
        total = np.log(self.a + self.b)
        return np.log(self.b) - total, np.log(self.a) - total


@dataclass(frozen=True, eq=False)
class BetaBinomial(BetaPrior):
    """Binomial feature with a Beta(a, b) prior on the probability of heads.

    Parameters
    ----------
    a, b : float or array, shape (features...)
        Prior counts of heads and tails, > 0.
    trials : int, sequence of int (one a feature), or None
        Tosses in a row. With None they are a column, and an observation is the pair (heads, tosses) along a last axis
        of length 2; among the features of a classifier ``{("heads", "tosses"): BetaBinomial(1, 1)}``. Heads may be
        missing where tosses are known, since everything is conditional on the tosses; tosses may not.

    Examples
    --------
    >>> coin = BetaBinomial(a=1, b=1, trials=10)
    >>> float(coin.update(coin.statistics([7, 8])).mean.round(3))
    0.727
    >>> coin = BetaBinomial(a=1, b=1)
    >>> float(coin.update(coin.statistics([[7, 10], [1, 2]])).mean.round(3))
    0.643
    """

    a: Hyperparameter = hyperparameter(1.0, positive=True)
    b: Hyperparameter = hyperparameter(1.0, positive=True)
    trials: Any = static(default=None)

    def __post_init__(self):
        super().__post_init__()
        if self.trials is not None:
            trials = np.asarray(self.trials)
            if trials.dtype.kind not in "iuf" or not (trials >= 1).all() or (trials != np.floor(trials)).any():
                raise ValueError(f"BetaBinomial: trials must be whole numbers >= 1, or None, got {self.trials!r}")
            if trials.ndim > 1:
                raise ValueError(f"BetaBinomial: trials must be a number or one number a feature, got {trials.shape}")
            fixed = tuple(int(n) for n in trials) if trials.ndim else int(trials)
            object.__setattr__(self, "trials", fixed)

    @property
    def density_kind(self):  # type: ignore[override]
        """Probability of the heads, conditional on the tosses where these are a column."""
        return "probability" if self.trials is not None else "probability given the tosses"

    @property
    def event_dim(self):  # type: ignore[override]
        """Number of axes of one observation: 1, for the pair, where tosses are a column, else 0."""
        return int(self.trials is None)

    @functools.cached_property
    def batch_shape(self):
        return np.broadcast_shapes(np.shape(self.a), np.shape(self.b), np.shape(self.trials))

    def likelihood(self, params):
        """Return Binomial(trials, probability), with ``params["trials"]``, (..., 1), where tosses are a column."""
        if self.trials is not None:
            return program.dist.Binomial(program.jnp.asarray(self.trials), params["probability"])
        if "trials" not in params:
            self._need_trials("rows cannot be drawn")
        return program.dist.Binomial(params["trials"], params["probability"][..., None]).to_event(1)

    def density(self, params=None):
        if params is None:
            return super().density()
        trials = self.trials and tuple(np.broadcast_to(self.trials, self.features or (1,)).tolist())
        return Heads(params["probability"], trials=trials, about={"kind": "count", "words": _NO_COUNTS})

    def draw(self, params, rng):
        self._need_trials("rows cannot be drawn")
        return rng.binomial(np.asarray(self.trials), params["probability"])

    def cardinality(self, feature):
        """Return the number of values 0 to ``trials``; None where tosses are a column."""
        return None if self.trials is None else int(np.broadcast_to(self.trials, self.features or (1,))[feature]) + 1

    def predictive(self):
        """Return the beta-binomial; the trials must be fixed."""
        self._need_trials("its predictive is no one distribution")
        return program.dist.BetaBinomial(self.a, self.b, np.asarray(self.trials))

    def _density_of(self, params, x=None):
        """Return the density of the heads; tosses in a column are given, never drawn."""
        if self.trials is None:
            if x is None:
                return self._need_trials("rows cannot be drawn")
            params, x = {**params, "trials": program.jnp.nan_to_num(x[..., 1:])}, x[..., :1]
        return super()._density_of(params, x)

    def _need_trials(self, why) -> Any:
        if self.trials is None:
            raise TypeError(f"BetaBinomial: trials are a column here, so {why}; give trials=")

    def _tosses(self, x):
        """Return heads and tosses of each entry as floats, both (n, features...)."""
        if self.trials is None:
            return x[..., 0].astype(float), x[..., 1].astype(float)
        return x.astype(float), np.asarray(self.trials, float)

    def sufficient_statistic(self, x, about=0.0):
        heads, tosses = self._tosses(x)
        return np.stack([tosses - heads, heads], axis=-1)

    def log_base_measure(self, x):
        """Return the log of the binomial coefficient C(N, x)."""
        heads, tosses = self._tosses(x)
        return log_multichoose(tosses - heads + 1, heads)

    def _missing(self, x):
        return np.isnan(x[..., 0] if self.trials is None else x)

    def check(self, x):
        """Return heads of 0, 1, ..., trials, or NaN where missing, and tosses of 0, 1, 2, ..., or raise."""
        x = super().check(x)
        if self.trials is None and x.shape[-1] != 2:
            raise DataError(f"expected pairs (heads, tosses), got {x.shape[-1]} columns; or give trials=")
        bad = (x == x) & ((x < 0) | (x != np.floor(x)))
        if bad.any():
            refuse_first(x, bad, _NO_COUNTS)
        heads, tosses = self._tosses(x)
        alone = np.isnan(tosses) & (heads == heads)
        if alone.any():
            raise DataError(f"row {np.argwhere(alone)[0][0]} has heads but no number of tosses", feature=1)
        bad = heads > tosses
        if bad.any():
            bad = bad if self.trials is not None else np.stack([bad, np.zeros_like(bad)], axis=-1)
            refuse_first(x, bad, "is more than the tosses")
        return x

    def _fast_predictive(self, x):
        x = self.check(x)
        gone, (heads, tosses) = self._missing(x), self._tosses(x)
        groups = self._groups(x)
        a, b = (over_rows(value, groups, heads) for value in (self.a, self.b))
        counts = (np.where(gone, 0.0, value).reshape(len(x), a.shape[1]).T for value in (heads, tosses))
        # Counts repeat, so each distinct count of a column is computed once.
        (column, heads, tosses), place = distinct(np.arange(float(a.shape[1]))[:, None], *counts)
        column = column.astype(np.intp)
        terms = log_beta_binomial(a[:, column], b[:, column], heads, tosses - heads)
        seen, result = ~gone.reshape(len(x), a.shape[1]).T, np.empty((len(x), len(a)))
        for k in range(len(a)):
            result[:, k] = (terms[k][place] * seen).sum(0)
        return result.reshape(len(x), *groups)
