r"""Heads in N tosses: a binomial feature under a Beta prior.

.. math:: \theta \sim \mathrm{Beta}(a, b), \qquad x_i \mid \theta \sim \mathrm{Binomial}(N_i, \theta), \;
   x_i \in \{0, \dots, N_i\}

After s heads and f tails in all rows: posterior Beta(a + s, b + f); predictive beta-binomial
p(x) = C(N, x) B(a + x, b + N - x) / B(a, b); evidence of the sequence ∏ C(N_i, x_i) B(a + s, b + f) / B(a, b); MAP
(a + s - 1) / (a + b + s + f - 2); ML s / (s + f). With N = 1 it is the coin. All is conditional on the N_i: how often
one tosses says nothing of θ, nor of the class. (Murphy 2012, section 3.3.)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen import program
from bayesgen.errors import DataError
from bayesgen.hyperparameters import Hyperparameter, hyperparameter
from bayesgen.leaf import over_rows
from bayesgen.models.beta import BetaPrior
from bayesgen.numerics.beta import log_beta_binomial
from bayesgen.numerics.counts import distinct
from bayesgen.numerics.entries import refuse_first
from bayesgen.numerics.special import log_multichoose
from bayesgen.program import static


@dataclass(frozen=True, eq=False)
class BetaBinomial(BetaPrior):
    """Binomial feature with a Beta(a, b) prior on the probability of heads.

    Parameters
    ----------
    a, b : float or array, shape (features...)
        Prior counts of heads and tails, > 0.
    trials : int, sequence of int (one a feature), or None
        Tosses in a row. None: they are a column, and an observation is the pair (heads, tosses), along a last axis of
        length 2; among the features of a classifier ``{("heads", "tosses"): BetaBinomial(1, 1)}``. Heads may be missing
        alone, for all is conditional on the tosses; tosses may not.

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
        """Of the heads; given the tosses, where these are a column."""
        return "probability" if self.trials is not None else "probability given the tosses"

    @property
    def event_dim(self):  # type: ignore[override]
        """Axes of one observation: 1, the pair, where tosses are a column."""
        return int(self.trials is None)

    @property
    def batch_shape(self):
        """Shape of a, b and trials together."""
        return np.broadcast_shapes(np.shape(self.a), np.shape(self.b), np.shape(self.trials or 0))

    def likelihood(self, params):
        """Binomial(trials, probability); where tosses are a column, ``params`` hold them as "trials", (..., 1)."""
        if self.trials is not None:
            return program.dist.Binomial(program.jnp.asarray(self.trials), params["probability"])
        if "trials" not in params:
            self._need_trials("rows cannot be drawn")
        return program.dist.Binomial(params["trials"], params["probability"][..., None]).to_event(1)

    def draw(self, params, rng):
        """Draw how many of the fixed number of trials succeed."""
        self._need_trials("rows cannot be drawn")
        return rng.binomial(np.asarray(self.trials), params["probability"])

    def cardinality(self, feature):
        """Return how many values there are: 0 to the number of trials."""
        return None if self.trials is None else int(np.broadcast_to(self.trials, self.features or (1,))[feature]) + 1

    def predictive(self):
        """Beta-binomial, for fixed trials."""
        self._need_trials("its predictive is no one distribution")
        return program.dist.BetaBinomial(self.a, self.b, np.asarray(self.trials))

    def observe(self, site, params, x, size, features, name=""):
        """Sample or observe the heads; where tosses are a column they are given, never drawn."""
        if self.trials is None:
            if x is None:
                self._need_trials("rows cannot be drawn")
            x = program.jnp.asarray(x)
            tosses = program.jnp.nan_to_num(x[..., 1:])
            params, x = {**params, "trials": tosses}, x[..., :1]
        return super().observe(site, params, x, size, features, name)

    def _need_trials(self, why):
        if self.trials is None:
            raise TypeError(f"BetaBinomial: trials are a column here, so {why}; give trials=")

    def _tosses(self, x):
        """Heads and tosses of each entry, (n, features...) both, as floats."""
        if self.trials is None:
            return x[..., 0].astype(float), x[..., 1].astype(float)
        return x.astype(float), np.asarray(self.trials, float)

    def sufficient_statistic(self, x, about=0.0):
        """(tails, heads)."""
        heads, tosses = self._tosses(x)
        return np.stack([tosses - heads, heads], axis=-1)

    def log_base_measure(self, x):
        """Log of the binomial coefficient C(N, x)."""
        heads, tosses = self._tosses(x)
        return log_multichoose(tosses - heads + 1, heads)

    def missing(self, x):
        """Return which entries lack the number of successes."""
        return np.isnan(x[..., 0] if self.trials is None else x)

    def check(self, x):
        """Heads are 0, 1, ..., trials, or NaN where missing; tosses are 0, 1, 2, ...."""
        x = super().check(x)
        if self.trials is None and x.shape[-1] != 2:
            raise DataError(f"expected pairs (heads, tosses), got {x.shape[-1]} columns; or give trials=")
        bad = (x == x) & ((x < 0) | (x != np.floor(x)))
        if bad.any():
            refuse_first(x, bad, "is not a count: heads and tosses are whole numbers >= 0")
        heads, tosses = self._tosses(x)
        alone = np.isnan(tosses) & (heads == heads)
        if alone.any():
            raise DataError(f"row {np.argwhere(alone)[0][0]} has heads but no number of tosses", feature=1)
        bad = heads > tosses
        if bad.any():
            bad = bad if self.trials is not None else np.stack([bad, np.zeros_like(bad)], axis=-1)
            refuse_first(x, bad, "is more than the tosses")
        return x

    def log_predictive(self, x):
        """Log probability of the beta-binomial."""
        if not self.concrete:
            return super().log_predictive(x)
        x = self.check(x)
        gone, (heads, tosses) = self.missing(x), self._tosses(x)
        groups = self.batch_shape[: max(len(self.batch_shape) - heads.ndim + 1, 0)]
        a, b = (over_rows(value, groups, heads) for value in (self.a, self.b))
        counts = (np.where(gone, 0.0, value).reshape(len(x), a.shape[1]).T for value in (heads, tosses))
        # Counts repeat: each that occurs in a column is worked out once.
        (column, heads, tosses), place = distinct(np.arange(float(a.shape[1]))[:, None], *counts)
        column = column.astype(np.intp)
        terms = log_beta_binomial(a[:, column], b[:, column], heads, tosses - heads)
        seen, result = ~gone.reshape(len(x), a.shape[1]).T, np.empty((len(x), len(a)))
        for k in range(len(a)):
            result[:, k] = (terms[k][place] * seen).sum(0)
        return result.reshape(len(x), *groups)
