"""The covariance structures of a Gaussian discriminant, and leaves whose weak prior follows the rows.

`WeakPrior` is a family that can sum rows but has no prior yet; from their statistics it makes the leaf to learn with.

A `Structure` holds the leaf that each prior makes, the weak prior, and the number of parameters of a covariance; the
leaf itself knows which parameters the classes share. A new structure is a file that adds a `Structure` to `STRUCTURES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bayesgen.core.errors import NoClosedForm
from bayesgen.core.program import static
from bayesgen.models.bernoulli import Bernoulli
from bayesgen.models.beside_constants import BesideConstants
from bayesgen.models.categorical import Categorical
from bayesgen.models.gaussian import Gaussian, NormalInverseGamma
from bayesgen.models.gaussian_vector import GaussianVector
from bayesgen.models.leaf import Leaf
from bayesgen.models.log_normal import LogGaussian
from bayesgen.models.model import revised
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart
from bayesgen.models.poisson import Poisson
from bayesgen.models.reference import ReferenceGaussian, ReferenceVector
from bayesgen.models.row_leaf import RowLeaf
from bayesgen.models.separation import SeparationDiagonal, SeparationFull, SeparationPrior
from bayesgen.models.student_t import StudentT


@dataclass(frozen=True, eq=False)
class WeakPrior(Leaf):
    """A family that has no prior yet."""

    needs_scale: ClassVar[bool] = True  # a constant column has none, and is left out

    # returns the leaf, with a prior at the location and scale of the statistics that is worth a few rows. None in the
    # family that a `BesideConstants` keeps.
    make: Callable[[Any], Leaf] | None = static()

    def parameters(self):
        """Raise NoClosedForm: there is no prior to sample from."""
        raise NoClosedForm("a weak prior follows the rows: sum them, and take `with_prior`")

    def with_prior(self, statistics):
        """Return the leaf whose prior follows ``statistics``, beside the columns that are constant in them."""
        assert self.make is not None
        if not self.needs_scale:
            return self.make(statistics)
        return BesideConstants.of(replace(self, make=None), self.make, statistics)


class WeakGaussian(WeakPrior, Gaussian):
    """Gaussian features whose prior follows the rows."""


class WeakGaussianVector(WeakPrior, GaussianVector):
    """Gaussian vectors whose prior follows the rows."""


class WeakPoisson(WeakPrior, Poisson):
    """Counts whose prior follows the rows: their mean alone, which is their scale."""

    needs_scale = False


class WeakBernoulli(WeakPrior, Bernoulli):
    """Bits that may all be alike, and tell nothing then."""


@dataclass(frozen=True, eq=False)
class WeakCategorical(WeakPrior, Categorical):
    """Categories of which one may be in all rows, and tells nothing then."""

    categories: Any = static(default=())


@dataclass(frozen=True, eq=False)
class WeakLogGaussian(WeakPrior, LogGaussian):
    """Log-normal features whose prior follows the rows."""


class _Rows(RowLeaf):
    """A leaf that keeps its rows, and has no density before it has a prior."""

    takes_gaps = learns_unlabelled = True

    def likelihood(self, params):
        return self.parameters()

    def log_density(self, params, x):
        return self.parameters()


class WeakStudentT(WeakPrior, _Rows):
    """Numbers with outliers whose prior follows the rows."""


class WeakStudentVector(WeakPrior, _Rows):
    """Vectors with outliers whose prior follows the rows."""

    event_dim = 1


@dataclass(frozen=True)
class Structure:
    """A structure of the covariance matrix.

    Attributes
    ----------
    name : str
        Name that users give.
    family : class of `WeakPrior`
        Family that sums the rows before there is a prior.
    weak : callable (statistics) -> leaf
        Weak prior.
    leaves : mapping from class of prior to callable (prior, shared) -> leaf
        The accepted priors, and the leaf that each makes, with a covariance shared by the classes or not.
    count : callable (D) -> int
        Number of free parameters of one covariance matrix of D columns.
    reference : leaf, optional
        Reference prior.
    made : tuple of classes
        Leaves that a prior has made before, as those of a posterior; `leaf` returns them as they are.
    """

    name: str
    family: type[WeakPrior]
    weak: Callable[[Any], Leaf]
    leaves: Mapping[type, Callable[[Any, bool], Leaf]]
    count: Callable[[int], int]
    reference: Leaf | None = None
    made: tuple[type[Leaf], ...] = ()

    def template(self, shared: bool) -> WeakPrior:
        """Return the family that sums the rows which the weak prior follows."""
        return self.family(lambda statistics: self.leaf(self.weak(statistics), shared))

    def reference_leaf(self, shared: bool) -> Leaf:
        """Return the leaf of the reference prior, or raise where there is none."""
        if self.reference is None:
            raise ValueError(f"covariance={self.name!r} has no reference prior: give a prior")
        return self.leaf(self.reference, shared)

    def leaf(self, prior, shared: bool) -> Leaf:
        """Return the leaf that a prior makes."""
        if type(prior) in self.leaves:
            return self.leaves[type(prior)](prior, shared)
        if isinstance(prior, (self.family, BesideConstants, *self.made)):
            return prior
        names = " or ".join(kind.__name__ for kind in self.leaves if kind is not self.family)
        raise TypeError(f"covariance={self.name!r} takes a {names} prior, got {type(prior).__name__}")


def _tied(*features: str):
    """Return a maker of leaves whose features share a variance over ``features``, and over classes if shared."""

    def leaf(prior: NormalInverseGamma | ReferenceGaussian, shared: bool):
        if prior.per_class:
            return prior  # the leaf of a posterior
        if isinstance(prior, NormalInverseGamma):
            if prior.mean.ndim == 0:
                raise ValueError("GaussianDiscriminant: the prior mean must have one entry for each column")
            if features and prior.alpha.size * prior.beta.size != 1:
                raise ValueError("covariance='isotropic' has one variance: alpha and beta of its prior must be numbers")
        tied = ("class",) * shared + features
        return prior if prior.tied == tied else revised(prior, tied=tied)

    return leaf


def _full(prior: NormalInverseWishart | ReferenceVector, shared: bool):
    return prior if prior.per_class or prior.shared == shared else revised(prior, shared=shared)


def _student(prior: StudentT, shared: bool):
    if not prior.event_dim:
        raise TypeError("covariance='student' takes a StudentT of a NormalInverseWishart, which has one of numbers")
    return replace(prior, gaussian=_full(prior.gaussian, shared))


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
                SeparationPrior: lambda p, shared: SeparationFull(*p.over_columns(), eta=p.eta, shared=shared),
                ReferenceVector: _full,
            },
            lambda dim: dim * (dim + 1) // 2,
            ReferenceVector(),
            (SeparationFull,),
        ),
        Structure(
            "diagonal",
            WeakGaussian,
            NormalInverseGamma.weak,
            {
                NormalInverseGamma: _tied(),
                SeparationPrior: lambda p, shared: SeparationDiagonal(*p.over_columns(), tied=("class",) * shared),
                ReferenceGaussian: _tied(),
            },
            lambda dim: dim,
            ReferenceGaussian(),
            (SeparationDiagonal,),
        ),
        Structure(
            "isotropic",
            WeakGaussian,
            _weak_isotropic,
            {NormalInverseGamma: _tied("feature"), ReferenceGaussian: _tied("feature")},
            lambda dim: 1,
            ReferenceGaussian(),
        ),
        Structure(
            "student",
            WeakStudentVector,
            StudentT.weak_vector,
            {StudentT: _student},
            lambda dim: dim * (dim + 1) // 2 + 1,  # and the degrees of freedom
        ),
    )
}


def structure(name: str) -> Structure:
    """Return the structure of a name, or raise."""
    if name not in STRUCTURES:
        raise ValueError(f"covariance must be one of {list(STRUCTURES)}, got {name!r}")
    return STRUCTURES[name]
