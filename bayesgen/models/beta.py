"""What the coin and the tosses share: a probability of success, counts of both outcomes, and a Beta prior."""

from typing import Any, Self

import numpy as np

from bayesgen import program
from bayesgen.errors import DataError, first
from bayesgen.hyperparameters import Hyperparameter, check_total
from bayesgen.leaf import ConjugateFamily, ExponentialFamily, log_or_floor
from bayesgen.numerics.beta import log_beta_ratio
from bayesgen.numerics.intervals import beta_of_interval
from bayesgen.numerics.special import namespace


class Successes(ExponentialFamily):
    """A leaf whose parameter is the "probability" of a success, whatever its prior; T counts (failures, successes)."""

    def natural_parameters(self, params, about=0.0):
        """(log(1 - probability), log probability)."""
        p = params["probability"]
        return namespace(p).stack([log_or_floor(1 - p), log_or_floor(p)], axis=-1)

    def ml(self, statistics):
        """Share of successes; 0 or 1 is legitimate, no trial at all is not."""
        failures, successes = np.moveaxis(statistics.total(), -1, 0)
        empty = failures + successes == 0
        if empty.any():
            raise DataError("maximum likelihood does not exist: no observed value", **first(empty))
        return {"probability": successes / (failures + successes)}


class BetaPrior(Successes, ConjugateFamily):
    """Successes whose probability is Beta(a, b)."""

    a: Hyperparameter
    b: Hyperparameter

    def __post_init__(self):
        super().__post_init__()
        with np.errstate(over="ignore"):
            check_total(self, "a and b", self.a + self.b)

    @classmethod
    def from_guess(cls, probability: float, rows: float) -> Self:
        """The prior of an expert who guesses the probability of a success, and how many trials the guess is worth, > 0.

        >>> from bayesgen.models import BetaBernoulli
        >>> BetaBernoulli.from_guess(0.2, rows=10)
        BetaBernoulli(a=2, b=8)
        """
        made: Any = cls  # which has the two fields
        return made(a=probability * rows, b=(1 - probability) * rows)

    @classmethod
    def from_interval(cls, low: float, high: float, mass: float = 0.9) -> Self:
        """The prior of an expert who is as sure as ``mass`` that the probability of a success is from low to high.

        It is as probable that it is lower than that it is higher.

        >>> from bayesgen.models import BetaBernoulli
        >>> BetaBernoulli.from_interval(0.1, 0.3)
        BetaBernoulli(a=7.72, b=32.65)
        """
        made: Any = cls
        return made(*beta_of_interval(low, high, mass))

    def parameters(self):
        """Sample the probability of a success."""
        return {"probability": program.numpyro.sample("probability", program.dist.Beta(self.a, self.b))}

    @property
    def mean(self):
        """Mean of the probability of a success, a / (a + b)."""
        return self.a / (self.a + self.b)

    def update(self, statistics) -> Self:
        """Add the counts of successes and failures to a and b."""
        failures, successes = np.moveaxis(statistics.total(), -1, 0)
        return self.revised(a=self.a + successes, b=self.b + failures)

    def log_evidence_terms(self, statistics):
        """Log B(a + s, b + f) - log B(a, b)."""
        failures, successes = np.moveaxis(statistics.total(), -1, 0)
        return log_beta_ratio(self.a, self.b, successes, failures)

    def whitened(self, statistics):
        """The same posterior in log odds."""
        from bayesgen.models.coordinates import log_odds

        return log_odds(self, statistics)

    def expected(self):
        """The mean."""
        return {"probability": np.broadcast_to(self.mean, self.batch_shape)}

    def mode(self):
        """(a - 1) / (a + b - 2); 1/2 under the flat Beta(1, 1); none where a or b is below 1."""
        bad = (self.a < 1) | (self.b < 1)
        if bad.any():
            raise DataError(
                "the Beta density has no mode where a or b is below 1; use exact or NUTS, or a prior >= 1", **first(bad)
            )
        flat = (self.a == 1) & (self.b == 1)
        return {"probability": np.where(flat, 0.5, (self.a - 1) / np.where(flat, 1, self.a + self.b - 2))}

    def sample_parameters(self, rng, size=()):
        """Exact Beta draws."""
        return {"probability": rng.beta(self.a, self.b, (*size, *self.batch_shape))}
