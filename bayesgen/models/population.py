r"""Partial pooling: classes, or groups of rows, whose parameters are drawn from one population, learned with them.

A conjugate prior of a parameter can be written by a centre c and the number κ of rows that it is worth. `Pooled`, over
classes, and `PooledGroups`, over groups of rows within each class, give both a prior of their own. The leaf π that the
user gives is the prior of the centre, and the spread s = κ^(-1/2) is half-Cauchy:

.. math:: c \sim \pi, \qquad s \sim \mathrm{HalfCauchy}(s_0), \qquad \theta_k \mid c, s \sim p(\theta \mid c, s^{-2}),
   \qquad x_i \mid t_i = k, \theta \sim p(x \mid \theta_k)

The priors of centre, spread and θ of each leaf, the units of s, the limits and the posterior of (c, s), in which every
θ is integrated out, are in `docs/mathematics/pooling.md`. A variance has a spread of its own, u = λ^(-1/2) ~
HalfNormal(s_0): 1/σ² is then of mean 1/v and squared coefficient of variation 2 u². Its tail is short, since float64
does not hold the variances of larger u. NUTS samples (c, s) alone, and draws each θ_k exactly; the joint density of (c,
s, θ) has no mode.

(Gelman et al. 2013, *Bayesian Data Analysis*, chapter 5; Morris 1983, *Natural exponential families with quadratic
variance functions: statistical theory*, for κ; Gelman 2006, *Bayesian Analysis* 1, for half-Cauchy priors; Carvalho,
Polson and Scott 2010, *Biometrika* 97, for B.)
"""

import abc
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import Argument, InputError
from bayesgen.models.bernoulli import BetaPrior
from bayesgen.models.categorical import DirichletPrior
from bayesgen.models.gaussian import NormalInverseGammaPrior
from bayesgen.models.gaussian_known import NormalKnownMean, NormalKnownVariance
from bayesgen.models.leaf import ConjugateFamily, Leaf
from bayesgen.models.model import Hyperparameter, Params, of_part, revised
from bayesgen.models.poisson import GammaPoisson

CENTRE = "centre_"  # before the names of the leaf's own sites
_ONE = ("spread",)


class Population(NamedTuple):
    """The way in which a family's prior follows from a centre and spreads."""

    spreads: tuple[str, ...]  # sites of the spreads: "spread", "variance_spread"
    # returns the hyperparameters of the leaf from the sites of the centre and, by spread, the number of rows that the
    # prior is worth
    given: Callable[[Any, Params, Params], Mapping[str, Any]]


def _variance(leaf, c, n):
    return {"mean": c["mean"], "alpha": n["variance_spread"] / 2, "beta": n["variance_spread"] / 2 * c["variance"]}


_POPULATIONS: dict[type, Population] = {  # c is the centre by site, n the rows by spread
    BetaPrior: Population(
        _ONE, lambda leaf, c, n: {"a": n["spread"] * c["probability"], "b": n["spread"] * (1 - c["probability"])}
    ),
    DirichletPrior: Population(_ONE, lambda leaf, c, n: {"alpha": n["spread"][..., None] * c["probability"]}),
    GammaPoisson: Population(_ONE, lambda leaf, c, n: {"concentration": n["spread"] * c["mean"], "rate": n["spread"]}),
    NormalKnownVariance: Population(
        _ONE, lambda leaf, c, n: {"mean": c["mean"], "sd": leaf.noise_sd * n["spread"] ** -0.5}
    ),
    NormalKnownMean: Population(("variance_spread",), _variance),
    NormalInverseGammaPrior: Population(
        ("spread", "variance_spread"), lambda leaf, c, n: _variance(leaf, c, n) | {"kappa": n["spread"]}
    ),
}


def population(leaf: ConjugateFamily, owner: str) -> Population:
    """Return the population of a leaf, or raise where it has none."""
    for kind in type(leaf).__mro__:
        if kind in _POPULATIONS and not getattr(leaf, "tied", ()):
            if leaf.per_class:
                raise ValueError(f"{owner}: leaf is a posterior, with a prior for each class; give the prior")
            return _POPULATIONS[kind]
    names = "BetaBernoulli, BetaBinomial, DirichletCategorical, DirichletMultinomial, GammaPoisson, LogNormal, "
    names += "NormalInverseGamma, NormalKnownMean or NormalKnownVariance"
    raise TypeError(f"{owner}: leaf must be a {names}, got {leaf!r:.100}")


class Populated(Leaf):
    """A leaf with the parameters of a conjugate leaf, drawn from a population of classes, or of groups of rows."""

    bounded = False

    leaf: Any
    scale: Hyperparameter

    def __post_init__(self):
        super().__post_init__()
        population(self.leaf, type(self).__name__)
        try:
            self.columns_of_leaf  # noqa: B018 - raises if the shapes do not broadcast
        except ValueError:
            raise ValueError(
                f"{type(self).__name__}: scale has the shape {np.shape(self.scale)}, the leaf {self.leaf.batch_shape}"
            ) from None

    @property
    def columns_of_leaf(self) -> tuple[int, ...]:
        """Shape of the features of the conjugate leaf, each of which has a population of its own."""
        return np.broadcast_shapes(self.leaf.batch_shape, np.shape(self.scale))

    @property
    def population(self) -> Population:
        """The population of the leaf's family."""
        return population(self.leaf, type(self).__name__)

    @property
    def site_dims(self):  # type: ignore[override]
        """Trailing axes of each parameter."""
        dims = self.leaf.site_dims
        return {**dims, **{CENTRE + site: axes for site, axes in dims.items()}}

    categories = property(lambda self: getattr(self.leaf, "categories", None), doc="Labels of the leaf's categories.")
    density_kind = of_part("leaf", "density_kind")
    coords = of_part("leaf", "coords")

    @abc.abstractmethod
    def sample_population(self, groups: int | None = None, name: str = "") -> Params:
        """Sample centres and spreads in their plates, for ``groups`` classes; ``name`` is put before plates."""

    @abc.abstractmethod
    def given_rows(self, params: Params, statistics) -> Any:
        """Return the leaf's posterior in each member, given draws of the population and the statistics of rows."""

    def _population(self) -> Params:
        """Sample centre and spreads, plates already open."""
        with program.scope("centre", "_", hide_types=["plate"]):
            centre = self.leaf.parameters()
        numpyro, dist, params = program.numpyro, program.dist, {CENTRE + site: v for site, v in centre.items()}
        for site in self.population.spreads:
            prior = dist.HalfNormal(self.scale) if site == "variance_spread" else dist.HalfCauchy(self.scale)
            params[site] = numpyro.sample(site, prior)
        return params

    def given(self, params: Params, axes: int = 0) -> Any:
        """Return the leaf with the prior of a member given the population, with new ``axes`` before the features."""
        shared = {site: self._with_axes(site, v, axes) for site, v in params.items() if not self.of_member(site)}
        centre = self.centre(shared)
        rows = {site: shared[site] ** -2.0 for site in self.population.spreads}
        return revised(self.leaf, **self.population.given(self.leaf, centre, rows))

    def _with_axes(self, site, value, axes):
        place = value.ndim - len(self.columns_of_leaf) - len(self.site_dims.get(site, ()))
        return value.reshape((*value.shape[:place], *[1] * axes, *value.shape[place:]))

    def of_member(self, site: str) -> bool:
        """Return True for a site of the members, not of their population."""
        return not (site.startswith(CENTRE) or site in self.population.spreads)

    def members(self, params: Params) -> Params:
        """Return the parameters of the members alone, which are the leaf's own."""
        return {site: value for site, value in params.items() if self.of_member(site)}

    def centre(self, params: Params) -> Params:
        """Return the centre of the population, by the leaf's own sites."""
        return {site.removeprefix(CENTRE): value for site, value in params.items() if site.startswith(CENTRE)}

    def shown(self, params: Params) -> Params:
        """Return what a summary shows of the parameters, by the leaf's own sites: those of the members."""
        return self.members(params)

    def for_classes(self, groups):
        """Return itself: all classes have one population, or populations of their own under the same prior."""
        return self

    def for_columns(self, columns):
        ordered = super().for_columns(columns)
        return revised(ordered, leaf=self.leaf.for_columns(columns))

    def map(self, statistics):
        """Raise: the joint density has no mode."""
        raise InputError(
            f"{type(self).__name__}({type(self.leaf).__name__}) has no posterior mode: the density grows without bound "
            "as the spread goes to 0; use ",
            Argument("inference", "nuts"),
            " or 'laplace'",
        )
