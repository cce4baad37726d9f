r"""The average: members of numbers and of categories, their products, exponents and weights.

A member of a table is a pair: one of the numeric columns (or none) and one of the categorical columns (or none), with
density the product of the two. The pair of none and none says nothing of x: it is the base rate. With q_m of `temper`,

.. math:: p(k \mid x) = \sum_m w_m q_m(k \mid x), \qquad q_m(k \mid x) \propto \pi_k\, p_m(x \mid k)^{\tau_m}

Other class priors multiply the average by their ratio to π. This is no joint density of x and t. What needs one
(typicality, samples, imputation) takes the members as they are, untempered, under weights of their own: v_m, stacked on
log p(x, t).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from bayesgen.averaging.categories import CategoryMembers
from bayesgen.averaging.logistic import STRENGTHS, LogisticMembers
from bayesgen.averaging.numbers import FittedView
from bayesgen.averaging.stack import BASE_RATE, SOFTMAX
from bayesgen.averaging.temper import log_probability
from bayesgen.core.program import Record
from bayesgen.numerics.pieces import pieces

_CELLS = 1 << 22  # densities held at a time: 32 MB


@dataclass(frozen=True, eq=False)
class Average(Record):
    """Members with their exponents and weights.

    Attributes
    ----------
    numeric : tuple of FittedView
        Of the numeric columns; empty where there are none.
    categorical : CategoryMembers or None
        Of the categorical columns.
    discriminative : LogisticMembers or None
        Of all columns.
    class_weight : array, shape (K,)
        Weight of the rows of each class.
    concentration : array, shape (K,)
        Dirichlet prior of the class probabilities.
    exponents, weights, density_weights : array, shape (M,)
        τ, w and v of each member; see `names` for their order.
    """

    numeric: tuple[FittedView, ...]
    categorical: CategoryMembers | None
    discriminative: LogisticMembers | None
    class_weight: np.ndarray
    concentration: np.ndarray
    exponents: np.ndarray
    weights: np.ndarray
    density_weights: np.ndarray

    @property
    def log_class_prior(self) -> np.ndarray:
        """Log of the class probabilities, (K,)."""
        return np.log(self.class_weight + self.concentration) - np.log((self.class_weight + self.concentration).sum())

    @property
    def names(self) -> list[tuple]:
        """What each member is made of, see `members_of`."""
        return members_of(self.numeric, self.categorical, self.discriminative)

    @np.errstate(under="ignore")
    def log_density(self, x, c, used=None) -> np.ndarray:
        """Log p(x | k) of rows under the members, (M, n, K), bends' Jacobian left out: it is the same for all.

        Parameters
        ----------
        x : array, shape (n, D)
            Numbers, NaN where missing.
        c : int array, shape (n, F)
            Categories, -1 where missing.
        used : bool array, shape (M,), optional
            The members to return, in order; without, all.
        """
        used = np.ones(len(self.weights), bool) if used is None else used
        numbers, start = [], 0
        pairs = 1 if self.categorical is None else 1 + len(self.categorical.members)
        for view in self.numeric:
            stop = start + pairs * len(view.members)
            numbers.append(view.log_density(x, used[start:stop].reshape(-1, pairs).any(1)))
            start = stop
        categories = [] if self.categorical is None else [self.categorical.log_density(c)]
        density = products(numbers, categories, len(x), len(self.class_weight))
        if self.discriminative is not None:
            density = np.concatenate([density, self.discriminative.log_density(x, c)])
        return density[used]

    @np.errstate(under="ignore")
    def probability(self, x, c, priors=None) -> np.ndarray:
        """p(k | x) of rows, (n, K)."""
        result, used = np.empty((len(x), len(self.class_weight))), self.weights > 0
        for part in self.pieces(len(x)):
            density = self.log_density(x[part], c[part], used)
            q = np.exp(log_probability(density, self.log_class_prior, self.exponents[used]))
            result[part] = np.tensordot(self.weights[used], q, 1)
        if priors is not None:
            result *= priors / np.exp(self.log_class_prior)
        return result / result.sum(1, keepdims=True)

    @np.errstate(under="ignore")
    def log_joint(self, x, c) -> np.ndarray:
        """Log p(x, k) under the untempered members, (n, K), in the units of the columns."""
        result = np.empty((len(x), len(self.class_weight)))
        used = self.density_weights > 0
        for part in self.pieces(len(x)):
            density = self.log_density(x[part], c[part], used)
            result[part] = mixed(density, self.density_weights[used])
        result += self.log_class_prior
        if self.numeric:
            result += self.numeric[0].view.warp.log_slope(x)[:, None]
        return result

    def pieces(self, rows: int):
        """Slices of rows whose densities fit into memory."""
        return pieces(rows, len(self.weights) * len(self.class_weight), _CELLS, rows)


def mixed(log_terms, weights) -> np.ndarray:
    """Log of the sum over members of weights (M,) times terms, which are given by their logarithms (M, ...).

    ``logsumexp(b=)`` divides by the weight of the largest term: where that is 1e-310 it overflows, and the sum is -inf.
    """
    with np.errstate(divide="ignore"):  # a weight of 0
        return np.asarray(logsumexp((log_terms.T + np.log(weights)).T, axis=0))


def members_of(numbers, categories, discriminative) -> list[tuple]:
    """Every member, a pair: one of the numbers with one of the categories; then the discriminative ones.

    Of numbers (components a class, `GaussianMember`) or None, of categories (structure, strength) or None; the
    discriminative ones are pairs of "softmax" and their strength.
    """
    first = [(view.count, member) for view in numbers for member in view.members]
    second = [] if categories is None else list(categories.members)
    pairs: list[tuple] = [(a, b) for a in [*first, None] for b in [*second, None]]
    return pairs if discriminative is None else [*pairs, *((SOFTMAX, strength) for strength in STRENGTHS)]


def families(members) -> list[str]:
    """The family of each member: its structure, whatever the strengths; of several components their number."""

    def name(a, b):
        if a == SOFTMAX:
            return a
        if a is None and b is None:
            return BASE_RATE
        numbers = a and (a[1].structure if a[0] == 1 else f"{a[0]} components")
        return " x ".join(part for part in (numbers, b and b[0]) if part)

    return [name(*member) for member in members]


def generative(members, numbers, categories) -> np.ndarray:
    """Which members have a density of all columns, (M,)."""
    some = [(a is not None or not numbers) and (b is not None or categories is None) for a, b in members]
    return np.array([flag and a != SOFTMAX for flag, (a, _) in zip(some, members, strict=True)])


def products(numbers, categories, rows: int, classes: int) -> np.ndarray:
    """Log densities of every pair, (M, n, K), from those of its parts."""
    nothing = np.zeros((1, rows, classes))
    first, second = np.concatenate([*numbers, nothing]), np.concatenate([*categories, nothing])
    return (first[:, None] + second[None]).reshape(-1, rows, classes)
