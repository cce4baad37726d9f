r"""Conditional distributions of missing entries under each group of a mixture: a Student-t, or values one can list.

Given its observed entries x_o, a row has the density p(x_o, t = k, g) under group g of class k. A missing entry v has
the conditional p(v | g, x_o). Then

.. math:: p(x_o, v, t = k) = \sum_{g : k_g = k} p(x_o, k, g)\, p(v \mid g, x_o)

is worked out where the integral over v needs it: at each value of a list; or, where v is a number, at nodes. The line
is cut at quantiles of every group, and each piece gets two points of Gauss and Legendre.
"""

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special, stats

from bayesgen.numerics.special import log_gamma_ratio, log_sum_groups

_SQUARE = 1e300  # largest square of a distance: a node that is farther from every group still has class probabilities
_LEVELS = np.array([1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.12, 0.22, 0.35])
_CUTS = np.concatenate([_LEVELS, [0.5], 1 - _LEVELS[::-1]])  # quantiles of a group at which the line is cut
PIECES = 32  # of a line that several members cut


class Conditional(abc.ABC):
    """Distributions of E missing entries of one column under each of G groups, given the other entries of a row."""

    @classmethod
    @abc.abstractmethod
    def joined(cls, parts: "Sequence[Self]") -> Self:
        """Return the distributions of the same entries under the groups of all parts, in order."""

    @abc.abstractmethod
    def expected(self, weight) -> np.ndarray:
        """Return the value to fill in for each entry, (E,), from the probabilities of the groups, (G, E)."""

    @abc.abstractmethod
    def nodes(self, cutting, pieces: int) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return values of the entries, the numbers z that `back` maps to them, and how much a value stands for.

        Values and z are (E, Q) or (Q,); beside them stands the log of the width (E, Q) of the piece of the line for
        which a node stands, or 0. A line is cut into ``pieces`` at most, at the quantiles of the groups ``cutting``
        (G,).
        """

    @abc.abstractmethod
    def log_density(self, z) -> np.ndarray:
        """Return log p(z | g, x_o) at nodes that `nodes` returned, (G, E, Q); of a list (G, 1, Q) may do."""


@dataclass(frozen=True)
class Listed(Conditional):
    """Values of a category or a count, and their probabilities."""

    values: np.ndarray  # (Q,)
    log_mass: np.ndarray  # (G, E, Q) or (G, 1, Q)
    label: bool  # True for categories and bits, which have no mean: the most probable one is expected

    @classmethod
    def joined(cls, parts):
        """Join the groups of lists with the same values."""
        entries = max(one.log_mass.shape[1] for one in parts)
        mass = [np.broadcast_to(m := one.log_mass, (len(m), entries, m.shape[2])) for one in parts]
        return cls(parts[0].values, np.concatenate(mass), parts[0].label)

    def expected(self, weight):
        """Return the mode of labels, and the mean of counts."""
        mass = np.exp(self.log_mass)
        several = mass.shape[1] > 1
        chance = np.einsum("ge,geq->eq", weight, mass) if several else weight.T @ mass[:, 0]
        return self.values[chance.argmax(1)] if self.label else chance @ self.values / chance.sum(1)

    def nodes(self, cutting, pieces):
        return self.values, self.values, 0.0

    def log_density(self, z):
        return self.log_mass


@dataclass(frozen=True)
class Line(Conditional):
    """A Student-t for each entry, or for the number that `back` maps to it; a Gaussian where ``dof`` is infinite."""

    location: np.ndarray  # (G, E)
    spread: np.ndarray  # (G, E)
    dof: np.ndarray  # (G, E)
    back: Callable[[np.ndarray], np.ndarray]  # map from numbers z to entries, the same for all groups
    # True if the median is expected, which maps to a median; by default it is the mean of z that is mapped
    bent: bool = False

    @classmethod
    def joined(cls, parts):
        location, spread, dof = (np.concatenate([getattr(p, n) for p in parts]) for n in ("location", "spread", "dof"))
        return cls(location, spread, dof, parts[0].back, parts[0].bent)

    def expected(self, weight):
        """Map the mean or the median of the mixture."""
        return self.back(self._median(weight) if self.bent else (weight * self.location).sum(0))

    def _median(self, weight):
        """Return the median of each mixture, (E,), which lies between the medians of its groups."""
        from scipy.optimize.elementwise import find_root  # not before a median is asked for

        counts = weight > 1e-12
        ends = np.where(counts, self.location, np.inf).min(0), np.where(counts, self.location, -np.inf).max(0)

        def excess(middle, entry):
            below = special.stdtr(self.dof[:, entry], (middle - self.location[:, entry]) / self.spread[:, entry])
            return (weight[:, entry] * (below - 0.5)).sum(0, where=counts[:, entry])

        return find_root(excess, ends, args=(np.arange(weight.shape[1]),)).x

    def nodes(self, cutting, pieces):
        kinds, place = np.unique(self.dof[cutting], return_inverse=True)
        quantiles = stats.t.ppf(_CUTS, kinds[:, None])[place.reshape(-1, self.dof.shape[1])]
        cuts = self.location[cutting][..., None] + self.spread[cutting][..., None] * quantiles
        cuts = np.sort(np.moveaxis(cuts, 1, 0).reshape(self.dof.shape[-1], -1), axis=1)
        if cuts.shape[1] > pieces + 1:
            cuts = cuts[:, np.linspace(0, cuts.shape[1] - 1, pieces + 1).round().astype(int)]
        half, middle = np.diff(cuts, axis=1) / 2, (cuts[:, 1:] + cuts[:, :-1]) / 2
        z = np.concatenate([middle - half / np.sqrt(3), middle + half / np.sqrt(3)], axis=1)
        with np.errstate(divide="ignore"):
            log_width = np.log(np.concatenate([half, half], axis=1))
        return self.back(z), z, log_width

    def log_density(self, z):
        """Return the log densities of the Student-t's."""
        dof, z = self.dof, (z - self.location[..., None]) / self.spread[..., None]
        with np.errstate(over="ignore"):
            z *= z
        np.minimum(z, _SQUARE, out=z)
        gaussian = np.isinf(dof)[..., None]
        if gaussian.all():
            z *= -0.5
        else:
            nu, half_square = np.where(gaussian, 1.0, dof[..., None]), -0.5 * z if gaussian.any() else 0.0
            z /= nu
            np.log1p(z, out=z)
            z *= -0.5 * (nu + 1)
            np.copyto(z, half_square, where=gaussian)
        z += (_log_level(dof) - np.log(self.spread))[..., None]
        return z


def _log_level(dof) -> np.ndarray:
    """Return the log density of a Student-t, or of a Gaussian where ``dof`` is infinite, at its location."""
    kinds, place = np.unique(dof, return_inverse=True)
    finite, gauss = np.where(np.isinf(kinds), 1.0, kinds), -0.5 * np.log(2 * np.pi)
    level = np.where(np.isinf(kinds), gauss, log_gamma_ratio(finite / 2, 0.5) - 0.5 * np.log(np.pi * finite))
    return level[place].reshape(dof.shape)


def pieces_of_line(cutting, classes: int) -> int:
    """Return the most pieces of a line: all that one member cuts, and `PIECES` where several do."""
    groups = int(cutting.sum())
    return len(_CUTS) * groups - 1 if groups <= classes else PIECES


def summed_by_class(log_terms, owner) -> np.ndarray:
    """Return the log of the sum over the groups of each class, (K, ...), from the logs of terms of groups, (G, ...)."""
    classes = np.arange(int(owner.max()) + 1)
    if np.array_equal(owner, classes):
        return log_terms
    order = np.argsort(owner, kind="stable")
    return log_sum_groups(log_terms[order], np.searchsorted(owner[order], classes))
