r"""Counts: a Poisson feature under a Gamma prior.

.. math:: \lambda \sim \mathrm{Gamma}(a, b), \qquad x_i \mid \lambda \sim \mathrm{Poisson}(\lambda), \;
   x_i \in \{0, 1, 2, \dots\}

After n rows with s events in all: posterior Gamma(a + s, b + n), whose mean (a + s) / (b + n) is in counts per row;
predictive negative binomial p(x) = Γ(a + x)/(Γ(a) x!) (b/(b + 1))^a (1/(b + 1))^x, wider than a Poisson of the same
mean; evidence of the sequence b^a/(b + n)^(a + s) Γ(a + s)/Γ(a) ∏ 1/x_i!; MAP (a + s - 1) / (b + n); ML s / n.
(Gelman et al. 2013, *Bayesian Data Analysis*, section 2.6.)
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from bayesgen.core import program
from bayesgen.core.errors import refuse_where
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.kinds import Counts
from bayesgen.models.leaf import LOG_ZERO, ConjugateFamily, ExponentialFamily, count_and_mean, log_or_floor, over_rows
from bayesgen.models.model import Hyperparameter, hyperparameter, revised
from bayesgen.numerics.checks import require
from bayesgen.numerics.counts import LogWays, filled, gaps, log_factorials, small, whole
from bayesgen.numerics.newton import gamma_of_interval
from bayesgen.numerics.pieces import row_pieces
from bayesgen.numerics.special import log_gamma_ratio, namespace
from bayesgen.numerics.sums import finite

_NO_COUNT = "is not a count: a Poisson feature is a whole number >= 0"


class Poisson(ExponentialFamily):
    """Poisson features under any prior; ``params`` hold the "mean" count of a row."""

    _takes_sparse = True
    density_kind = "probability"

    def likelihood(self, params):
        return program.dist.Poisson(params["mean"])

    def density(self, params=None):
        return Counts(params["mean"], about={"kind": "count", "words": _NO_COUNT})

    def summaries(self, total):
        return count_and_mean(total[..., 0], total[..., 1])

    def quantities(self, params, column, labels=None):
        return {f"{name} count": values for name, values in super().quantities(params, column).items()}

    def sufficient_statistic(self, x, about=0.0):
        return np.stack([np.ones(x.shape), x], axis=-1)

    def natural_parameters(self, params, about=0.0):
        mean = params["mean"]
        return namespace(mean).stack([-mean, log_or_floor(mean)], axis=-1)

    def log_base_measure(self, x):
        return -gammaln(x + 1.0)

    def check(self, x):
        x = self._shaped(x)
        if sparse.issparse(x) and small(x.data) is not None:  # small counts, none missing
            return x
        x = super().check(x)
        require(x, whole, _NO_COUNT)
        return x

    def sum_rows(self, x, rows):
        x = self.check(x)
        features, base = x.shape[1:], 0.0
        seen = np.broadcast_to(rows.sizes()[:, None], (rows.count, math.prod(features)))
        events = np.zeros(seen.shape)
        for piece, entries in row_pieces(x):
            entries, grouping = _flat(entries), rows[piece]
            if not finite(entries):
                seen = seen - grouping.sum(gaps(entries))
                entries = filled(entries)
            events += grouping.sum(entries)
            base += grouping.total(log_factorials(entries))
        sums = np.stack([np.maximum(seen, 0.0), events], axis=-1)
        return SumStatistics(sums.reshape(*rows.lead, *features, 2), np.float64(-base))

    def log_likelihood_rows(self, params, x):
        if not sparse.issparse(x):
            return super().log_likelihood_rows(params, x)
        eta, counts = self.natural_parameters(params), filled(x)
        lead = eta.shape[: max(eta.ndim - 2, 0)]
        none, slope = np.moveaxis(np.broadcast_to(eta, (*lead, x.shape[1], 2)).reshape(-1, x.shape[1], 2), -1, 0)
        result = (counts @ slope.T - gaps(x) @ none.T).T + none.sum(1)[:, None] - log_factorials(counts)
        result[result < LOG_ZERO / 2] = -np.inf
        return result.reshape(*lead, x.shape[0])

    def ml(self, statistics):
        """Return events per row, which may be 0; raise where there is no row."""
        rows, events = np.moveaxis(statistics.total(), -1, 0)
        refuse_where(rows == 0, "maximum likelihood does not exist: no observed value")
        return {"mean": events / rows}


def _flat(x):
    """Return rows (n, features...) as (n, columns); CSR is so."""
    return x if x.ndim == 2 else x.reshape(len(x), math.prod(x.shape[1:]))


@dataclass(frozen=True, eq=False)
class GammaPoisson(Poisson, ConjugateFamily):
    """Poisson feature with a Gamma(concentration, rate) prior on its mean; ``params`` hold the "mean" count of a row.

    Parameters
    ----------
    concentration : float or array, shape (features...)
        Shape of the Gamma density: prior count of events, > 0.
    rate : float or array, shape (features...)
        Rate (inverse scale) of the Gamma density: prior count of rows, in which these events occurred, > 0.

    Examples
    --------
    >>> prior = GammaPoisson(concentration=2, rate=1)
    >>> posterior = prior.update(prior.statistics([3, 5, 0]))
    >>> float(posterior.mean), float(posterior.mode()["mean"])
    (2.5, 2.25)
    """

    concentration: Hyperparameter = hyperparameter(positive=True)
    rate: Hyperparameter = hyperparameter(positive=True)

    @classmethod
    def from_guess(cls, mean: float, rows: float) -> Self:
        """Return the prior of an expert who guesses the mean count, worth ``rows`` > 0 rows.

        >>> GammaPoisson.from_guess(mean=3, rows=2)
        GammaPoisson(concentration=6, rate=2)
        """
        return cls(mean * rows, rows)

    @classmethod
    def from_interval(cls, low: float, high: float, mass: float = 0.9) -> Self:
        """Return the prior that puts ``mass`` on a mean count between low and high.

        The rest of the mass is split equally below and above.

        >>> GammaPoisson.from_interval(1, 5)
        GammaPoisson(concentration=4.59, rate=1.717)
        """
        return cls(*gamma_of_interval(low, high, mass))

    @classmethod
    def weak(cls, statistics) -> Self:
        """Return the default prior Gamma(1, 1/m), m the pooled mean count of one event at least."""
        rows, events = np.moveaxis(statistics.total().sum(0), -1, 0)
        return cls(np.ones_like(rows), np.maximum(rows, 1) / np.maximum(events, 1))

    def parameters(self):
        return {"mean": program.numpyro.sample("mean", program.dist.Gamma(self.concentration, self.rate))}

    def predictive(self):
        """Return the negative binomial, as a mixture of Poissons."""
        return program.dist.GammaPoisson(self.concentration, self.rate)

    @property
    def mean(self):
        """Mean of the mean count, concentration / rate."""
        return self.concentration / self.rate

    def density(self, params=None):
        if params is not None:
            return super().density(params)
        return replace(self.density({"mean": self.mean}), rate=self.rate)

    def expected(self):
        return {"mean": np.broadcast_to(self.mean, self.batch_shape)}

    def update(self, statistics) -> Self:
        """Return Gamma(concentration + Σ x, rate + n)."""
        rows, events = np.moveaxis(statistics.total(), -1, 0)
        return revised(self, concentration=self.concentration + events, rate=self.rate + rows)

    def log_evidence_terms(self, statistics):
        """Return the log of b^a/(b + n)^(a + s) Γ(a + s)/Γ(a)."""
        rows, events = np.moveaxis(statistics.total(), -1, 0)
        xp, a, b = namespace(self.concentration, self.rate), self.concentration, self.rate
        return log_gamma_ratio(a, events) - a * xp.log1p(rows / b) - events * xp.log(b + rows)

    def _fast_predictive(self, x):
        """Return the log probability of the negative binomial, with gammas where x > 0 alone."""
        x = self.check(x)
        groups = self._groups(x)
        a, b = (over_rows(v, groups, x) for v in (self.concentration, self.rate))
        none = (a * np.log1p(1 / b)).T
        result = np.empty((x.shape[0], len(a)))
        ways = self._kept(x.shape[1:], lambda: LogWays(a, -np.log1p(b)))
        for piece, entries in row_pieces(x):
            entries = _flat(entries)
            result[piece] = ways(sparse.csr_array(filled(entries))) - none.sum(0)
            if not finite(entries):
                result[piece] += gaps(entries) @ none
        return result.reshape(x.shape[0], *groups)

    def mode(self):
        """Return (concentration - 1) / rate; raise where the concentration is below 1."""
        problem = "the Gamma density has no mode where its concentration is below 1; use exact or NUTS, or a prior >= 1"
        refuse_where(np.broadcast_to(self.concentration < 1, self.batch_shape), problem)
        return {"mean": (self.concentration - 1) / self.rate}

    def sample_parameters(self, rng, size=()):
        return {"mean": rng.gamma(self.concentration, 1 / self.rate, (*size, *self.batch_shape))}
