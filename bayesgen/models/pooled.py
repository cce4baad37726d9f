"""A leaf that is pooled over the classes; the mathematics is that of `bayesgen.models.population`."""

from dataclasses import dataclass, replace
from typing import Any

from bayesgen.models.leaf import ExponentialFamily
from bayesgen.models.model import Hyperparameter, hyperparameter, of_part
from bayesgen.models.population import Populated


@dataclass(frozen=True, eq=False)
class Pooled(Populated, ExponentialFamily):  # pyright: ignore[reportIncompatibleVariableOverride]
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
    >>> from bayesgen.models import KnownCategorical, NaiveBayes, NormalKnownVariance, Pooled
    >>> x, t = [4.1, 4.9, 5.3, 5.8, 6.1, 9.0], [0, 0, 0, 1, 1, 2]  # of the third class there is one row
    >>> leaf = Pooled(NormalKnownVariance(mean=0.0, sd=10.0, noise_sd=1.0))
    >>> model = NaiveBayes(KnownCategorical([0.4, 0.4, 0.2]), {"x": leaf})
    >>> posterior = bg.fit(model, ({"x": x}, t), "laplace", seed=0)
    >>> bool(7.5 < posterior.mean()["x.mean"][2] < 8.8)  # drawn from 9 towards the other classes
    True
    """

    leaf: Any
    scale: Hyperparameter = hyperparameter(1.0, positive=True)

    def sample_population(self, groups=None, name=""):
        """Sample centre and spreads of each feature, one for all classes."""
        with self.plates(None, name):
            return self._population()

    def given_rows(self, params, statistics):
        classes = len(self.leaf.update(statistics).batch_shape) - len(self.features)
        return self.given(params, classes).update(statistics)

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
        return self.leaf.likelihood(self.members(params))

    def _density_of(self, params, x=None):
        return self.leaf._density_of(self.members(params), x)

    def select_class(self, params, group):
        return self.leaf.select_class(self.members(params), group)

    batch_shape = Populated.columns_of_leaf  # type: ignore[assignment]  # of all features
    event_dim = of_part("leaf", "event_dim")
    _column_kind = of_part("leaf", "_column_kind")
    _takes_sparse = of_part("leaf", "_takes_sparse")
    check = of_part("leaf", "check")
    _shaped = of_part("leaf", "_shaped")
    _missing = of_part("leaf", "_missing")
    sum_rows = of_part("leaf", "sum_rows")
    sufficient_statistic = of_part("leaf", "sufficient_statistic")
    log_base_measure = of_part("leaf", "log_base_measure")
    cardinality = of_part("leaf", "cardinality")
    back = of_part("leaf", "back")
    ml = of_part("leaf", "ml")  # a likelihood does not pool

    def dims(self, site, *, grouped=False):
        return super().dims(site, grouped=grouped and self.of_member(site))

    def repeated(self, columns):
        """Return the prior of one feature as the prior of several columns, each with a population of its own."""
        return replace(self, leaf=self.leaf.repeated(columns))

    def natural_parameters(self, params, about=0.0):
        return self.leaf.natural_parameters(self.members(params), about)

    def log_likelihood_rows(self, params, x):
        return self.leaf.log_likelihood_rows(self.members(params), x)

    def draw(self, params, rng):
        return self.leaf.draw(self.members(params), rng)

    def density(self, params=None):
        return super().density() if params is None else self.leaf.density(self.members(params))
