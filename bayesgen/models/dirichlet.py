"""What categories and bags of words share: probabilities under a Dirichlet prior, counts of each category."""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import digamma

from bayesgen import program
from bayesgen.errors import DataError, first
from bayesgen.hyperparameters import Hyperparameter, check_total
from bayesgen.leaf import ConjugateFamily, log_or_floor
from bayesgen.numerics.gammas import log_gammas
from bayesgen.numerics.special import log_gamma_ratio, namespace


class DirichletPrior(ConjugateFamily):
    """A leaf whose parameter is the "probability" of each of V categories, Dirichlet(alpha); T counts them."""

    site_dims = {"probability": ("category",)}

    alpha: Hyperparameter
    categories: Any

    def __post_init__(self):
        super().__post_init__()
        owner, categories = type(self).__name__, self.categories
        if categories is None:
            if self.alpha.ndim == 0:
                raise ValueError(f"{owner}: give categories=, their number or their labels")
            categories = self.alpha.shape[-1]
        categories = labels(owner, categories)
        if self.alpha.ndim and self.alpha.shape[-1] not in (1, len(categories)):
            raise ValueError(f"{owner}: alpha has {self.alpha.shape[-1]} entries for {len(categories)} categories")
        shape = (*self.alpha.shape[:-1], len(categories))
        object.__setattr__(self, "alpha", namespace(self.alpha).broadcast_to(self.alpha, shape))
        object.__setattr__(self, "categories", categories)
        with np.errstate(over="ignore"):
            check_total(self, "the entries of alpha", self.alpha.sum(-1))

    @classmethod
    def from_guess(cls, probability: Mapping, rows: float) -> Self:
        """The prior of an expert who guesses the probability of each category; ``rows`` is what the guess is worth.

        >>> from bayesgen.models import DirichletCategorical
        >>> DirichletCategorical.from_guess({"A": 0.4, "B": 0.1, "0": 0.5}, rows=10).alpha
        array([4., 1., 5.])
        """
        guess = np.array(list(probability.values()), dtype=float)
        if not np.isclose(guess.sum(), 1):
            raise ValueError(f"{cls.__name__}: the guessed probabilities must add up to 1, not {guess.sum():g}")
        made: Any = cls  # which has the two fields
        return made(alpha=guess * rows, categories=list(probability))

    @property
    def batch_shape(self):
        """Shape in front of the category axis."""
        return self.alpha.shape[:-1]

    def for_classes(self, groups):
        """Return the model with alpha repeated along a leading axis of classes."""
        alpha = namespace(self.alpha).broadcast_to(self.alpha, (groups, *self.alpha.shape))
        return replace(self, alpha=alpha, per_class=True)

    @property
    def mean(self):
        """Mean of the category probabilities, alpha / sum(alpha)."""
        return self.alpha / self.alpha.sum(-1, keepdims=True)

    @property
    def mean_log(self):
        """Mean of the log probabilities, ψ(alpha) - ψ(sum(alpha)); ψ is the digamma function."""
        return digamma(self.alpha) - digamma(self.alpha.sum(-1, keepdims=True))

    def expected(self):
        """The mean."""
        return {"probability": self.mean}

    def parameters(self):
        """Sample the category probabilities."""
        return {"probability": program.numpyro.sample("probability", program.dist.Dirichlet(self.alpha))}

    def natural_parameters(self, params, about=0.0):
        """Log probability of each category."""
        return log_or_floor(params["probability"])

    def update(self, statistics) -> Self:
        """Add the counts of the categories to alpha."""
        return self.revised(alpha=self.alpha + statistics.total())

    def log_evidence_terms(self, statistics):
        """Log of Γ(A)/Γ(A + N) ∏ Γ(alpha_v + n_v)/Γ(alpha_v)."""
        counts = statistics.total()
        rising = log_gamma_ratio(self.alpha, counts).sum(-1)
        return rising - log_gamma_ratio(self.alpha.sum(-1), counts.sum(-1))

    def whitened(self, statistics):
        """The same posterior in logarithms of gammas."""
        from bayesgen.models.coordinates import log_shares

        return log_shares(self, statistics)

    def mode(self):
        """(alpha - 1) / (A - V); uniform under a flat prior; none where an alpha is below 1."""
        bad = (self.alpha < 1).any(-1)
        if bad.any():
            raise DataError(
                "the Dirichlet density has no mode where alpha plus count is below 1; use exact or NUTS, or alpha >= 1",
                **first(bad),
            )
        excess = self.alpha - 1
        total = excess.sum(-1, keepdims=True)
        flat = total == 0
        return {"probability": np.where(flat, 1 / len(self.categories), excess / np.where(flat, 1, total))}

    def ml(self, statistics):
        """Shares of the categories; 0 is legitimate, no row at all is not."""
        counts = statistics.total()
        total = counts.sum(-1, keepdims=True)
        if (total == 0).any():
            raise DataError("maximum likelihood does not exist: no observed value", **first(total[..., 0] == 0))
        return {"probability": counts / total}

    @np.errstate(under="ignore")
    def sample_parameters(self, rng, size=()):
        """Exact Dirichlet draws: normalised gammas, in log space so that a tiny alpha does not underflow to 0/0."""
        log_gamma = log_gammas(rng, self.alpha, (*size, *self.alpha.shape))
        weights = np.exp(log_gamma - log_gamma.max(-1, keepdims=True))
        return {"probability": weights / weights.sum(-1, keepdims=True)}


def labels(owner: str, categories) -> tuple:
    """Return the labels of categories from themselves or their number, as plain Python values, or raise."""
    if any(categories is one for one in tuple(_known)):
        return categories
    categories = tuple(range(categories) if isinstance(categories, int | np.integer) else categories)
    if any(issubclass(kind, np.generic) for kind in set(map(type, categories))):
        categories = tuple(c.item() if isinstance(c, np.generic) else c for c in categories)
    if not categories or len(set(categories)) < len(categories):
        raise ValueError(f"{owner}: categories must be one or more distinct labels")
    _known.append(categories)
    return categories


_known: deque[tuple] = deque(maxlen=8)  # labels that are right: a hundred thousand words are looked at once
