r"""The coin: a Bernoulli feature under a Beta prior.

.. math:: \theta \sim \mathrm{Beta}(a, b), \qquad x_i \mid \theta \sim \mathrm{Bernoulli}(\theta), \; x_i \in \{0, 1\}

After s ones and f zeros: posterior Beta(a + s, b + f); predictive p(x = 1) = (a + s) / (a + b + s + f); evidence of the
sequence B(a + s, b + f) / B(a, b); MAP (a + s - 1) / (a + b + s + f - 2); ML s / (s + f).
(Murphy 2012, *Machine Learning: A Probabilistic Perspective*, section 3.3.)
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln

from bayesgen import program
from bayesgen.model import Conjugate, DataError, first, hyperparameter, log_or_floor


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

    a: np.ndarray = hyperparameter(1.0, positive=True)
    b: np.ndarray = hyperparameter(1.0, positive=True)

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

    def T(self, x, about=0.0):
        """(1 - x, x)."""
        return np.stack([1.0 - x, x], axis=-1)

    def natural(self, params, about=0.0):
        """(log(1 - probability), log probability)."""
        p = params["probability"]
        return p.__array_namespace__().stack([log_or_floor(1 - p), log_or_floor(p)], axis=-1)

    def check(self, x):
        """Entries are 0, 1, or NaN where missing."""
        x = super().check(x)
        bad = (x != 0) & (x != 1) & (x == x)
        if bad.any():
            self._refuse(x, bad, "is not 0 or 1; a Bernoulli feature is binary")
        return x.astype(np.int8) if x.dtype == bool else x

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
        return self.log_likelihood_rows({"probability": self.mean}, self.check(x)).T

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

    def draw(self, rng, size=()):
        """Exact Beta draws."""
        return {"probability": rng.beta(self.a, self.b, (*size, *self.batch_shape))}
