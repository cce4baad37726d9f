r"""Partial pooling: classes whose parameters are drawn from one population, which is learned with them.

A conjugate prior of a parameter can be written by a centre c and the number κ of rows that it is worth. `Pooled` gives
both a prior of their own. The leaf π that the user gives is the prior of the centre, and the spread s = κ^(-1/2) is
half-Cauchy:

.. math:: c \sim \pi, \qquad s \sim \mathrm{HalfCauchy}(s_0), \qquad \theta_k \mid c, s \sim p(\theta \mid c, s^{-2}),
   \qquad x_i \mid t_i = k, \theta \sim p(x \mid \theta_k)

For coins, dice, counts and means s² is the variance of θ between classes over the mean variance of a row within a
class, whatever the units. So B = κ/(κ + 1) = 1/(1 + s²) is the share by which the predictive of a class of one row is
drawn to the centre, and s ~ HalfCauchy(1) is B ~ Beta(1/2, 1/2): much weight on no pooling and on full pooling.

================== ================================================== =================================
leaf               centre                                             θ given centre and spread
================== ================================================== =================================
Beta               p ~ Beta(a, b)                                     Beta(κ p, κ (1 - p))
Dirichlet          p ~ Dirichlet(alpha)                               Dirichlet(κ p)
Gamma              m ~ Gamma(concentration, rate)                     Gamma(κ m, κ)
normal mean        m ~ N(mean, sd²)                                   N(m, σ²/κ), σ the known noise
normal variance    v ~ InvGamma(alpha, beta)                          InvGamma(λ/2, v λ/2)
normal both        v ~ InvGamma(alpha, beta), m ~ N(mean, v/kappa)    InvGamma(λ/2, v λ/2), N(m, σ²/κ)
================== ================================================== =================================

A variance has a spread of its own, u = λ^(-1/2) ~ HalfNormal(s_0): 1/σ² is then of mean 1/v and squared coefficient of
variation 2 u². Its tail is short, since float64 does not hold the variances of larger u.

**Limits.** As s → 0 all classes share θ = c, and the model is π on the rows of all classes. As s → ∞ each class keeps
to its own rows.

**Inference.** Given c and s the classes are independent and conjugate, so θ is integrated out:

.. math:: p(c, s \mid x) \propto p(c)\, p(s) \prod_k \frac{Z_k(c, s)}{Z(c, s)}, \qquad
   \theta_k \mid c, s, x \sim \text{the leaf's own posterior},

each quotient the leaf's evidence of the rows of class k. NUTS samples (c, s) alone, and draws each θ_k exactly. The
joint density of (c, s, θ) has no mode: it grows without bound as s → 0, θ → c.

(Gelman et al. 2013, *Bayesian Data Analysis*, chapter 5; Morris 1983, *Natural exponential families with quadratic
variance functions: statistical theory*, for κ; Gelman 2006, *Bayesian Analysis* 1, for half-Cauchy priors; Carvalho,
Polson and Scott 2010, *Biometrika* 97, for B.)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import Argument, InputError
from bayesgen.models.bernoulli import BetaPrior
from bayesgen.models.categorical import DirichletPrior
from bayesgen.models.gaussian import NormalInverseGammaPrior
from bayesgen.models.gaussian_known import NormalKnownMean, NormalKnownVariance
from bayesgen.models.leaf import ConjugateFamily, ExponentialFamily
from bayesgen.models.model import Hyperparameter, Params, hyperparameter
from bayesgen.models.poisson import GammaPoisson

CENTRE = "centre_"  # before the names of the leaf's own sites


class Population(NamedTuple):
    """The way in which a family's prior follows from a centre and spreads.

    Attributes
    ----------
    spreads : tuple of str
        Sites of the spreads: "spread", "variance_spread".
    given : callable (leaf, centre, rows) -> mapping
        Returns the hyperparameters of the leaf from the sites of the centre and, by spread, the number of rows that the
        prior is worth.
    """

    spreads: tuple[str, ...]
    given: Callable[[Any, Params, Params], Mapping[str, Any]]


def _beta(leaf, centre, rows):
    p, count = centre["probability"], rows["spread"]
    return {"a": count * p, "b": count * (1 - p)}


def _dirichlet(leaf, centre, rows):
    return {"alpha": rows["spread"][..., None] * centre["probability"]}


def _gamma(leaf, centre, rows):
    return {"concentration": rows["spread"] * centre["mean"], "rate": rows["spread"]}


def _mean(leaf, centre, rows):
    return {"mean": centre["mean"], "sd": leaf.noise_sd * rows["spread"] ** -0.5}


def _variance(leaf, centre, rows):
    half = rows["variance_spread"] / 2
    return {"mean": centre["mean"], "alpha": half, "beta": half * centre["variance"]}


def _both(leaf, centre, rows):
    return {**_variance(leaf, centre, rows), "kappa": rows["spread"]}


_POPULATIONS: dict[type, Population] = {
    BetaPrior: Population(("spread",), _beta),
    DirichletPrior: Population(("spread",), _dirichlet),
    GammaPoisson: Population(("spread",), _gamma),
    NormalKnownVariance: Population(("spread",), _mean),
    NormalKnownMean: Population(("variance_spread",), _variance),
    NormalInverseGammaPrior: Population(("spread", "variance_spread"), _both),
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


@dataclass(frozen=True, eq=False)
class Pooled(ExponentialFamily):
    """A leaf whose classes are drawn from one population: each class is shrunk to the others as far as they are alike.

    A posterior comes by ``inference="nuts"`` or "laplace".

    Parameters
    ----------
    leaf : conjugate leaf
        Model of the feature. Its prior is that of the centre of the population: what the classes have in common. One of
        `BetaBernoulli`, `BetaBinomial`, `DirichletCategorical`, `DirichletMultinomial`, `GammaPoisson`, `LogNormal`,
        `NormalInverseGamma`, `NormalKnownMean`, `NormalKnownVariance`.
    scale : float or array, shape (features...)
        Scale s_0 > 0 of the prior of the spread, without units: a population of spread s is worth 1/s² rows in each
        class. A large one makes the prior of the spread flat.

    Examples
    --------
    >>> import bayesgen as bg
    >>> from bayesgen.models import BetaBernoulli, DirichletCategorical, NaiveBayes, Pooled
    >>> x, t = [1, 1, 1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 1, 1, 1, 2]  # of the third class there is one row
    >>> model = NaiveBayes(DirichletCategorical(1.0, 3), {"x": Pooled(BetaBernoulli(1, 1))})
    >>> posterior = bg.fit(model, ({"x": x}, t), bg.NUTS(num_samples=500, num_warmup=500), seed=0)
    >>> bool(0.6 < posterior.mean()["x.probability"][2] < 0.9)
    True
    """

    leaf: Any
    scale: Hyperparameter = hyperparameter(1.0, positive=True)

    def __post_init__(self):
        super().__post_init__()
        population(self.leaf, type(self).__name__)
        try:
            self.batch_shape  # noqa: B018 - raises if the shapes do not broadcast
        except ValueError:
            raise ValueError(
                f"{type(self).__name__}: scale has the shape {np.shape(self.scale)}, the leaf {self.leaf.batch_shape}"
            ) from None

    # -- the population ----------------------------------------------------------------------------------------------

    @property
    def population(self) -> Population:
        """The population of the leaf's family."""
        return population(self.leaf, type(self).__name__)

    def sample_population(self, groups: int | None = None, name: str = "") -> Params:
        """Sample centre and spreads, one for each feature, whatever the number of classes."""
        with self.plates(None, name):
            return self._population()

    def _population(self) -> Params:
        with program.scope("centre", "_", hide_types=["plate"]):
            centre = self.leaf.parameters()
        numpyro, dist, params = program.numpyro, program.dist, {CENTRE + site: v for site, v in centre.items()}
        for site in self.population.spreads:
            prior = dist.HalfNormal(self.scale) if site == "variance_spread" else dist.HalfCauchy(self.scale)
            params[site] = numpyro.sample(site, prior)
        return params

    def given(self, params: Params, axes: int = 0) -> Any:
        """Return the leaf with the prior of a class given centre and spreads, with new ``axes`` before the features."""
        own = {site: self._before_features(site, v, axes) for site, v in params.items() if not self._by_class(site)}
        centre = {site.removeprefix(CENTRE): v for site, v in own.items() if site.startswith(CENTRE)}
        rows = {site: own[site] ** -2.0 for site in self.population.spreads}
        return self.leaf._revised(**self.population.given(self.leaf, centre, rows))

    def given_rows(self, params: Params, statistics) -> Any:
        """Return the leaf's posterior in each class given draws of the population and the statistics of rows."""
        classes = len(self.leaf.update(statistics).batch_shape) - len(self.features)
        return self.given(params, classes).update(statistics)

    def _before_features(self, site, value, axes):
        place = value.ndim - len(self.features) - len(self.site_dims.get(site, ()))
        return value.reshape((*value.shape[:place], *[1] * axes, *value.shape[place:]))

    def _by_class(self, site: str) -> bool:
        """Return True for a site of the classes, not of their population."""
        return not (site.startswith(CENTRE) or site in self.population.spreads)

    def of_classes(self, params: Params) -> Params:
        """Return the parameters of the classes alone, which are the leaf's own."""
        return {site: value for site, value in params.items() if self._by_class(site)}

    # -- the program -------------------------------------------------------------------------------------------------

    def parameters(self):
        """Sample the population, and the parameters given it, as of a single class."""
        params = self._population()
        return {**params, **self.given(params).parameters()}

    def latents(self, groups=None, name=""):
        """Sample the population once, and the parameters of each class given it."""
        if groups is None:
            return super().latents(None, name)
        params = self.sample_population(groups, name)
        with self.plates(groups, name):
            return {**params, **self.given(params, 1).parameters()}

    def likelihood(self, params):
        """Return the leaf's likelihood."""
        return self.leaf.likelihood(self.of_classes(params))

    def density_of(self, params, x=None):
        """Return the leaf's density of the entries that are there."""
        return self.leaf.density_of(self.of_classes(params), x)

    def select_class(self, params, group):
        """Return the parameters of each row's class, without those of the population."""
        return self.leaf.select_class(self.of_classes(params), group)

    # -- names and shapes --------------------------------------------------------------------------------------------

    @property
    def batch_shape(self):  # type: ignore[override]
        """Shape of the features."""
        return np.broadcast_shapes(self.leaf.batch_shape, np.shape(self.scale))

    event_dim = property(lambda self: self.leaf.event_dim)  # type: ignore[assignment]
    density_kind = property(lambda self: self.leaf.density_kind)  # type: ignore[assignment]
    takes_sparse = property(lambda self: self.leaf.takes_sparse)  # type: ignore[assignment]
    categories = property(lambda self: getattr(self.leaf, "categories", None), doc="Labels of the leaf's categories.")

    @property
    def site_dims(self):  # type: ignore[override]
        """Trailing axes of each parameter."""
        dims = self.leaf.site_dims
        return {**dims, **{CENTRE + site: own for site, own in dims.items()}}

    def dims(self, site, *, grouped=False):
        """Return the names of the axes of a parameter; the population has no axis of classes."""
        return super().dims(site, grouped=grouped and self._by_class(site))

    def for_columns(self, columns):
        """Return the model with its hyperparameters in the order of ``columns``."""
        own = super().for_columns(columns)
        return own._revised(leaf=self.leaf.for_columns(columns))

    def _for_classes(self, groups):
        """Return itself: the classes have one population."""
        return self

    def _repeated(self, columns):
        """Return the prior of one feature as the prior of several columns, each with a population of its own."""
        return replace(self, leaf=self.leaf._repeated(columns))

    # -- rows, as of the leaf ----------------------------------------------------------------------------------------

    def check(self, x):
        """Return the rows as the leaf checks them."""
        return self.leaf.check(x)

    def _shaped(self, x):
        return self.leaf._shaped(x)

    def missing(self, x):
        """Return a mask of missing entries."""
        return self.leaf.missing(x)

    def sum_rows(self, x, rows):
        """Return the leaf's statistics, by class."""
        return self.leaf.sum_rows(x, rows)

    def sufficient_statistic(self, x, about=0.0):
        """Return the leaf's T(x)."""
        return self.leaf.sufficient_statistic(x, about)

    def natural_parameters(self, params, about=0.0):
        """Return the leaf's natural parameters."""
        return self.leaf.natural_parameters(self.of_classes(params), about)

    def log_base_measure(self, x):
        """Return the leaf's log h(x)."""
        return self.leaf.log_base_measure(x)

    def log_likelihood_rows(self, params, x):
        """Return log p(row | params) of each class."""
        return self.leaf.log_likelihood_rows(self.of_classes(params), x)

    def draw(self, params, rng):
        """Draw rows of the classes."""
        return self.leaf.draw(self.of_classes(params), rng)

    def fill(self, x, group, rng, params=None):
        """Draw the missing entries under parameters."""
        if params is None:
            return super().fill(x, group, rng)
        return self.leaf.fill(x, group, rng, self.of_classes(params))

    def cardinality(self, feature):
        """Return the number of values of a feature."""
        return self.leaf.cardinality(feature)

    def student(self, x, params=None):
        """Return location, scale and degrees of freedom of missing numbers under parameters."""
        return super().student(x) if params is None else self.leaf.student(x, self.of_classes(params))

    def back(self, z):
        """Map numbers on the scale of `student` to the scale of the feature."""
        return self.leaf.back(z)

    # -- points ------------------------------------------------------------------------------------------------------

    def ml(self, statistics):
        """Return the leaf's maximum-likelihood parameters: a likelihood does not pool."""
        return self.leaf.ml(statistics)

    def map(self, statistics):
        """Raise: the joint density has no mode."""
        raise no_mode(self)

    def with_prior(self, statistics):
        """Return the leaf with a prior of the centre that follows the rows, where it waits for them."""
        leaf = self.leaf.with_prior(statistics)
        return self if leaf is self.leaf else replace(self, leaf=leaf)


def no_mode(leaf) -> InputError:
    """Return the error for a mode of a pooled leaf."""
    return InputError(
        f"{type(leaf).__name__}({type(leaf.leaf).__name__}) has no posterior mode: the density grows without bound as "
        "the spread goes to 0; use ",
        Argument("inference", "nuts"),
        " or 'laplace'",
    )
