r"""Counts: a Poisson feature under a Gamma prior.

.. math:: \lambda \sim \mathrm{Gamma}(a, b), \qquad x_i \mid \lambda \sim \mathrm{Poisson}(\lambda), \;
   x_i \in \{0, 1, 2, \dots\}

After n rows with s events in all: posterior Gamma(a + s, b + n), whose mean (a + s) / (b + n) is in counts per row;
predictive negative binomial p(x) = Γ(a + x)/(Γ(a) x!) (b/(b + 1))^a (1/(b + 1))^x, wider than a Poisson of the same
mean; evidence of the sequence b^a/(b + n)^(a + s) Γ(a + s)/Γ(a) ∏ 1/x_i!; MAP (a + s - 1) / (b + n); ML s / n.
(Gelman et al. 2013, *Bayesian Data Analysis*, section 2.6.)
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betaln, gammaln

from bayesgen import program
from bayesgen.model import Conjugate, DataError, first, hyperparameter, log_or_floor


@dataclass(frozen=True, eq=False)
class GammaPoisson(Conjugate):
    """Poisson feature with a Gamma(concentration, rate) prior on its mean; ``params`` hold the "mean" count of a row.

    Parameters
    ----------
    concentration : float or array, shape (features...)
        Shape of the Gamma density: prior count of events, > 0.
    rate : float or array, shape (features...)
        Rate (inverse scale) of the Gamma density: the number of rows those events were seen in, > 0.

    Examples
    --------
    >>> prior = GammaPoisson(concentration=2, rate=1)
    >>> posterior = prior.update(prior.statistics([3, 5, 0]))
    >>> float(posterior.mean), float(posterior.mode()["mean"])
    (2.5, 2.25)
    """

    concentration: np.ndarray = hyperparameter(positive=True)
    rate: np.ndarray = hyperparameter(positive=True)

    @classmethod
    def weak(cls, statistics) -> Self:
        """The default prior: Gamma(1, 1/m), m the pooled mean count; where no event was seen, as if one was."""
        rows, events = np.moveaxis(statistics.total().sum(0), -1, 0)
        return cls(np.ones_like(rows), np.maximum(rows, 1) / np.maximum(events, 1))

    def parameters(self):
        """Sample the mean count."""
        return {"mean": program.numpyro.sample("mean", program.dist.Gamma(self.concentration, self.rate))}

    def likelihood(self, params):
        """Poisson(mean)."""
        return program.dist.Poisson(params["mean"])

    def predictive(self):
        """Negative binomial, as a mixture of Poissons."""
        return program.dist.GammaPoisson(self.concentration, self.rate)

    @property
    def mean(self):
        """Mean of the mean count, concentration / rate."""
        return self.concentration / self.rate

    def T(self, x, about=0.0):
        """(1, x)."""
        return np.stack([np.ones(x.shape), x], axis=-1)

    def natural(self, params, about=0.0):
        """(-mean, log mean)."""
        mean = params["mean"]
        return mean.__array_namespace__().stack([-mean, log_or_floor(mean)], axis=-1)

    def log_base(self, x):
        """-log x!."""
        return -gammaln(x + 1.0)

    def check(self, x):
        """Entries are 0, 1, 2, ..., or NaN where missing."""
        x = super().check(x)
        bad = (x == x) & ((x < 0) | (x != np.floor(x)))
        if bad.any():
            self._refuse(x, bad, "is not a count: a Poisson feature is a whole number >= 0")
        return x

    def update(self, statistics):
        """Add events and rows."""
        rows, events = np.moveaxis(statistics.total(), -1, 0)
        return GammaPoisson(self.concentration + events, self.rate + rows)

    def log_evidence(self, statistics):
        """Log of b^a/(b + n)^(a + s) Γ(a + s)/Γ(a) ∏ 1/x_i!."""
        p = self.update(statistics)
        terms = (
            gammaln(p.concentration)
            - gammaln(self.concentration)
            + self.concentration * np.log(self.rate)
            - p.concentration * np.log(p.rate)
        )
        return float(terms.sum() + statistics.base)

    def log_predictive(self, x):
        """Log probability of the negative binomial: what is linear in x as a matrix product, the gammas where x > 0."""
        x = self.check(x)
        groups = self.batch_shape[: max(len(self.batch_shape) - x.ndim + 1, 0)]
        a, b = (over_rows(v, groups, x) for v in (self.concentration, self.rate))
        x = x.reshape(len(x), a.shape[1])
        counts, seen = np.nan_to_num(x), 1.0 - np.isnan(x)
        linear = seen @ (a * np.log1p(1 / b)).T + counts @ np.log1p(b).T
        return (log_ways(a, counts) - linear).reshape(len(x), *groups)

    def mode(self):
        """(concentration - 1) / rate; none where the concentration is below 1."""
        bad = np.broadcast_to(self.concentration < 1, self.batch_shape)
        if bad.any():
            raise DataError(
                "the Gamma density has no mode where its concentration is below 1; use exact or NUTS, or a prior >= 1",
                **first(bad),
            )
        return {"mean": (self.concentration - 1) / self.rate}

    def ml(self, statistics):
        """Events per row; 0 is legitimate, no row at all is not."""
        rows, events = np.moveaxis(statistics.total(), -1, 0)
        if (rows == 0).any():
            raise DataError("maximum likelihood does not exist: no observed value", **first(rows == 0))
        return {"mean": events / rows}

    def draw(self, rng, size=()):
        """Exact Gamma draws."""
        return {"mean": rng.gamma(self.concentration, 1 / self.rate, (*size, *self.batch_shape))}


def over_rows(value, groups, x):
    """A hyperparameter for every group and every entry of a row of ``x``, (groups, entries)."""
    return np.broadcast_to(value, (*groups, *x.shape[1:])).reshape(math.prod(groups), math.prod(x.shape[1:]))


def log_ways(a, counts):
    """Sum of `log_multichoose` over the nonzero entries of each row, (n, groups), for ``a`` (groups, entries)."""
    row, entry = np.nonzero(counts)
    times = counts[row, entry]
    ways = [np.bincount(row, log_multichoose(own[entry], times), len(counts)) for own in a]
    return np.stack(ways, axis=1)


def log_multichoose(a, x):
    """Log of Γ(a + x)/(Γ(a) x!), the coefficient of every counting predictive; by B(a, x + 1), which cancels less."""
    return -np.log(a + x) - betaln(a, x + 1.0)
