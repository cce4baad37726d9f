"""Leaves whose prior is to follow the rows: they sum these, and then give the leaf to learn with.

The structures that the covariance of a Gaussian discriminant may have: one value each, in one registry.

A structure says which leaf a prior makes, which prior is weak, and how many parameters a covariance has; what the
classes share is the leaf's own knowledge. A new structure is a file that makes a `Structure` and puts it into
`STRUCTURES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bayesgen.core.errors import NoClosedForm
from bayesgen.core.program import static
from bayesgen.models.gaussian import Gaussian, NormalInverseGamma
from bayesgen.models.gaussian_vector import GaussianVector
from bayesgen.models.leaf import ExponentialFamily
from bayesgen.models.log_normal import LogGaussian
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart
from bayesgen.models.poisson import Poisson
from bayesgen.models.reference import ReferenceGaussian, ReferenceVector
from bayesgen.models.separation import SeparationDiagonal, SeparationFull, SeparationPrior


@dataclass(frozen=True, eq=False)
class WeakPrior(ExponentialFamily):
    """A family without a prior yet.

    Parameters
    ----------
    make : callable (statistics) -> leaf
        Gives the leaf, its prior that of the statistics' own location and scale, worth a few rows.
    """

    make: Callable[[Any], ExponentialFamily] = static()

    def parameters(self):
        """There is nothing to sample them from."""
        raise NoClosedForm("a weak prior follows the rows: sum them, and take `settled`")

    def settled(self, statistics):
        """Return the leaf whose prior follows ``statistics``."""
        return self.make(statistics)


class WeakGaussian(WeakPrior, Gaussian):
    """Gaussian features whose prior follows the data."""


class WeakGaussianVector(WeakPrior, GaussianVector):
    """Gaussian vectors whose prior follows the data."""


class WeakPoisson(WeakPrior, Poisson):
    """Counts whose prior follows the data."""


@dataclass(frozen=True, eq=False)
class WeakLogGaussian(WeakPrior, LogGaussian):
    """Features whose shifted logarithm is Gaussian."""


@dataclass(frozen=True)
class Structure:
    """A structure of the covariance matrix.

    Attributes
    ----------
    name : str
        What users call it.
    family : class of `WeakPrior`
        Sums the rows before there is a prior.
    weak : callable (statistics) -> leaf
        The weak prior.
    leaves : mapping from class of prior to callable (prior, shared) -> leaf
        The priors it takes, and the leaf that each makes, the covariance shared by the classes or not.
    count : callable (D) -> int
        Free parameters of one covariance matrix of D columns.
    reference : leaf, optional
        The reference prior.
    """

    name: str
    family: type[WeakPrior]
    weak: Callable[[Any], ExponentialFamily]
    leaves: Mapping[type, Callable[[Any, bool], ExponentialFamily]]
    count: Callable[[int], int]
    reference: ExponentialFamily | None = None

    def template(self, shared: bool) -> WeakPrior:
        """Return what sums the rows that the weak prior follows."""
        return self.family(lambda statistics: self.leaf(self.weak(statistics), shared))

    def reference_leaf(self, shared: bool) -> ExponentialFamily:
        """Return the leaf of the reference prior, or raise where there is none."""
        if self.reference is None:
            raise ValueError(f"covariance={self.name!r} has no reference prior: give a prior")
        return self.leaf(self.reference, shared)

    def leaf(self, prior, shared: bool) -> ExponentialFamily:
        """Return the leaf that a prior makes."""
        made = self.leaves.get(type(prior))
        if made is None:
            names = " or ".join(kind.__name__ for kind in self.leaves if kind not in (self.family, *_MADE))
            raise TypeError(f"covariance={self.name!r} takes a {names} prior, got {type(prior).__name__}")
        return made(prior, shared)


_MADE = (SeparationFull, SeparationDiagonal)  # leaves that a prior made: those of a posterior


def _tied(*features: str):
    """A leaf of scalar features that share a variance over ``features``, and over classes where it is shared."""

    def leaf(prior: NormalInverseGamma, shared: bool):
        if prior.per_class:
            return prior  # of a posterior, which is made already
        if prior.mean.ndim == 0:
            raise ValueError("GaussianDiscriminant: the prior mean must have one entry for each column")
        if features and prior.alpha.size * prior.beta.size != 1:
            raise ValueError("covariance='isotropic' has one variance: alpha and beta of its prior must be numbers")
        tied = (("class",) if shared else ()) + features
        return prior if prior.tied == tied else prior.revised(tied=tied)

    return leaf


def _reference(*features: str):
    def leaf(prior: ReferenceGaussian, shared: bool):
        return replace(prior, tied=(("class",) if shared else ()) + features)

    return leaf


def _full(prior: NormalInverseWishart | ReferenceVector, shared: bool):
    return prior if prior.per_class or prior.shared == shared else prior.revised(shared=shared)


def _separation_full(prior: SeparationPrior, shared: bool):
    mean, mean_sd, scale = prior.over_columns()
    return SeparationFull(mean, mean_sd, scale, prior.eta, shared=shared)


def _separation_diagonal(prior: SeparationPrior, shared: bool):
    mean, mean_sd, scale = prior.over_columns()
    return SeparationDiagonal(mean, mean_sd, scale, tied=("class",) if shared else ())


def _as_it_is(leaf: ExponentialFamily, shared: bool):
    return leaf


def _weak_isotropic(statistics) -> NormalInverseGamma:
    prior = NormalInverseGamma.weak(statistics)
    return replace(prior, beta=prior.beta.mean())


STRUCTURES = {
    structure.name: structure
    for structure in (
        Structure(
            "full",
            WeakGaussianVector,
            NormalInverseWishart.weak,
            {
                NormalInverseWishart: _full,
                SeparationPrior: _separation_full,
                SeparationFull: _as_it_is,
                ReferenceVector: _full,
                WeakGaussianVector: _as_it_is,
            },
            lambda dim: dim * (dim + 1) // 2,
            ReferenceVector(),
        ),
        Structure(
            "diagonal",
            WeakGaussian,
            NormalInverseGamma.weak,
            {
                NormalInverseGamma: _tied(),
                SeparationPrior: _separation_diagonal,
                SeparationDiagonal: _as_it_is,
                ReferenceGaussian: _reference(),
                WeakGaussian: _as_it_is,
            },
            lambda dim: dim,
            ReferenceGaussian(),
        ),
        Structure(
            "isotropic",
            WeakGaussian,
            _weak_isotropic,
            {NormalInverseGamma: _tied("feature"), ReferenceGaussian: _reference("feature"), WeakGaussian: _as_it_is},
            lambda dim: 1,
            ReferenceGaussian(),
        ),
    )
}


def structure(name: str) -> Structure:
    """Return the structure of a name, or raise."""
    if name not in STRUCTURES:
        raise ValueError(f"covariance must be one of {list(STRUCTURES)}, got {name!r}")
    return STRUCTURES[name]
