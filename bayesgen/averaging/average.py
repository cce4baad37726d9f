r"""The average: members of numbers and of categories, their products, exponents and weights.

A member of a table is a pair: one of the numeric columns (or none) and one of the categorical columns (or none), with density the product
of the two. The pair of none and none says nothing of x: it is the base rate. With q_m of `temper`,

.. math:: p(k \mid x) = \sum_m w_m q_m(k \mid x), \qquad q_m(k \mid x) \propto \pi_k\, p_m(x \mid k)^{\tau_m}

Other class priors multiply the average by their ratio to π. This is no joint density of x and t. What needs one (typicality, samples, imputation)
takes the members as they are, untempered, under weights of their own: v_m, stacked on log p(x, t).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from bayesgen.averaging.categories import CategoryMembers
from bayesgen.averaging.numbers import FittedView
from bayesgen.averaging.temper import log_probability
from bayesgen.program import Record

_CELLS = 1 << 22  # densities held at a time: 32 MB


@dataclass(frozen=True, eq=False)
class Average(Record):
    """Members with their exponents and weights.

    Attributes
    ----------
    numbers : tuple of FittedView
        Of the numeric columns; empty where there are none.
    categories : CategoryMembers or None
        Of the categorical columns.
    class_weight : array, shape (K,)
        Weight of the rows of each class.
    concentration : array, shape (K,)
        Dirichlet prior of the class probabilities.
    exponents, weights, density_weights : array, shape (M,)
        τ, w and v of each member; see `names` for their order.
    """

    numbers: tuple[FittedView, ...]
    categories: CategoryMembers | None
    class_weight: np.ndarray
    concentration: np.ndarray
    exponents: np.ndarray
    weights: np.ndarray
    density_weights: np.ndarray

    @property
    def log_class_prior(self) -> np.ndarray:
        """Log of the class probabilities, (K,)."""
        return np.log(self.class_weight + self.concentration) - np.log(
            (self.class_weight + self.concentration).sum()
        )

    @property
    def names(self) -> list[tuple]:
        """What each member is made of: (view and its `GaussianMember`, or None; structure and strength, or None)."""
        return pairs(self.numbers, self.categories)

    def log_density(self, x, c) -> np.ndarray:
        """Log p(x | k) of rows under every member, (M, n, K), bends' Jacobian left out: it is the same for all.

        Parameters
        ----------
        x : array, shape (n, D)
            Numbers, NaN where missing.
        c : int array, shape (n, F)
            Categories, -1 where missing.
        """
        numbers = [view.log_density(x) for view in self.numbers]
        categories = [] if self.categories is None else [self.categories.log_density(c)]
        return products(numbers, categories, len(x), len(self.class_weight))

    def probability(self, x, c, priors=None) -> np.ndarray:
        """p(k | x) of rows, (n, K)."""
        result = np.empty((len(x), len(self.class_weight)))
        for part in self.pieces(len(x)):
            q = np.exp(log_probability(self.log_density(x[part], c[part]), self.log_class_prior, self.exponents))
            result[part] = np.tensordot(self.weights, q, 1)
        if priors is not None:
            result *= priors / np.exp(self.log_class_prior)
        return result / result.sum(1, keepdims=True)

    def log_joint(self, x, c) -> np.ndarray:
        """Log p(x, k) under the untempered members, (n, K), in the units of the columns."""
        result = np.empty((len(x), len(self.class_weight)))
        used = self.density_weights > 0
        for part in self.pieces(len(x)):
            density = self.log_density(x[part], c[part])[used]
            result[part] = logsumexp(density, axis=0, b=self.density_weights[used, None, None])
        result += self.log_class_prior
        if self.numbers:
            result += self.numbers[0].view.warp.log_slope(x)[:, None]
        return result

    def pieces(self, rows: int):
        """Yield slices of rows whose densities fit into memory."""
        step = max(1, _CELLS // (len(self.weights) * len(self.class_weight)))
        for start in range(0, rows, step):
            yield slice(start, min(start + step, rows))


def pairs(numbers, categories) -> list[tuple]:
    """Every member: one of the numbers or None, with one of the categories or None."""
    first = [(view.count, member) for view in numbers for member in view.members]
    second = [] if categories is None else list(categories.members)
    return [(a, b) for a in [*first, None] for b in [*second, None]]


def families(members) -> list[str]:
    """The family of each member: its structure, whatever the strengths; of several components their number."""
    numbers = [a and (a[1].structure if a[0] == 1 else f"{a[0]} components") for a, _ in members]
    return [f"{first}, {b and b[0]}" for first, (_, b) in zip(numbers, members, strict=True)]


def products(numbers, categories, rows: int, classes: int) -> np.ndarray:
    """Log densities of every pair, (M, n, K), from those of its parts."""
    nothing = np.zeros((1, rows, classes))
    first, second = np.concatenate([*numbers, nothing]), np.concatenate([*categories, nothing])
    return (first[:, None] + second[None]).reshape(-1, rows, classes)
