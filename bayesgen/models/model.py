"""The contracts: what a model is, and what it is besides where its posterior has a closed form.

A model of a single feature, or of a block of features of one kind, is a leaf: `bayesgen.models.leaf` has its base.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import NoClosedForm
from bayesgen.models.hyperparameters import Hyperparameters

Params = Mapping[str, Any]  # name of a site -> array (draws..., groups..., features..., event...)


class Model(Hyperparameters, abc.ABC):
    """A probabilistic model: an immutable record of hyperparameters that is itself a NumPyro model function.

    A subclass is declared ``@dataclass(frozen=True, eq=False)``. It must write, in this order,

    1. ``__call__(*data)``, the program row by row in NumPyro's `sample` statements;
    2. `latents`, the prior half of that program, in its plates;
    3. `statistics`, what is kept of the rows, and `check`, what rows it takes;
    4. `log_likelihood` of statistics and `log_likelihood_rows` of rows, given parameters;
    5. `dims` and `coords`, names and labels of the axes of its parameters.

    It may write `ml` and `map`, where there is a formula; `log_abs_det_jacobian`, where parameters are sampled in other
    coordinates than those that MAP speaks of; and `row_density`, where some work does not depend on the rows. A model
    with an exact posterior is a `Conjugate` one.
    """

    conjugate: ClassVar[bool] = False  # whether the posterior has a closed form
    proper: ClassVar[bool] = True  # whether the prior is a distribution: an improper one has no draws, no evidence
    smooth: ClassVar[bool] = True  # whether the density is twice differentiable in the parameters

    @abc.abstractmethod
    def __call__(self, *data: Any, **options: Any) -> Any:
        """Run the program row by row: parameters from the prior, rows given the parameters."""

    @abc.abstractmethod
    def latents(self) -> Params:
        """Sample the parameters inside their plates: the prior half of the program."""

    @abc.abstractmethod
    def statistics(self, *data: Any, **options: Any) -> Any:
        """What is kept of rows, `Statistics` of a kind that the model knows: they add over pieces of the data."""

    @abc.abstractmethod
    def check(self, x) -> Any:
        """Return rows as `log_likelihood_rows` takes them, or raise what is wrong with them."""

    @abc.abstractmethod
    def log_likelihood(self, params: Params, statistics) -> Any:
        """Log p(all rows | params), from their statistics. NumPy or JAX."""

    @abc.abstractmethod
    def log_likelihood_rows(self, params: Params, x) -> np.ndarray:
        """Log p(row | params) for every leading index of ``params`` and every row that `check` returned."""

    @abc.abstractmethod
    def dims(self, site: str) -> tuple[str, ...]:
        """Names of the axes of a parameter, behind those of the draws."""

    @abc.abstractmethod
    def coords(self) -> dict[str, list]:
        """Labels along the axes that `dims` names, where they are known."""

    def statistics_program(self, statistics) -> None:
        """Run the program on the statistics: parameters from the prior, the likelihood of all rows as one factor."""
        params = self.latents()
        program.numpyro.factor("log_likelihood", self.log_likelihood(params, statistics))

    def row_density(self, params: Params) -> Callable[[Any], np.ndarray]:
        """Return `log_likelihood_rows` of ``params`` as a function of rows alone, for many pieces of rows."""
        return lambda x: self.log_likelihood_rows(params, x)

    def whitened(self, statistics) -> tuple["Model", Any, Callable[[Params], Params]]:
        """The same posterior in coordinates that suit a sampler: a model, statistics, and the way back for its draws.

        Where priors are closed under affine maps of the rows, of location 0, scale 1 and no correlation.
        """
        return self, statistics, lambda params: params

    def near(self, statistics) -> "Conjugate | None":
        """A conjugate model whose draws are where chains and searches begin: the posterior, or close to it.

        None where there is none: they begin at draws of the prior, and look for the mode from there.
        """
        return None

    def starting_draws(self, statistics, rng: np.random.Generator, size: tuple[int, ...]) -> Params:
        """Draws of some sites to begin at, where no model is `near`; the other sites are drawn from the program."""
        return {}

    def log_abs_det_jacobian(self, params: Params) -> Any:
        """Log of d(sampled sites)/d(parameters): turns the sites' density into that of the parameters MAP speaks of."""
        return 0.0

    def ml(self, statistics) -> Params:
        """Maximum-likelihood parameters, by group; a ValueError where they do not exist."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for maximum likelihood")

    def map(self, statistics) -> Params:
        """Mode of the posterior density in the parameters as the model writes them, by group."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for the posterior mode")

    def traced(self) -> Self:
        """Return the same model on JAX arrays: a NumPy float64 array would leak into a float32 program.

        Of a copy: JAX remembers the conversion of a read-only array and would hand a later float64 run the float32 one.
        """
        return program.jax.tree_util.tree_map(lambda a: program.jnp.asarray(a.copy()), self)


class Conjugate(Model):
    """A model that is closed under updating: its posterior is the same class with new hyperparameters.

    ``prior.update(prior.statistics(x))`` is Bayes' rule. The algebra runs on NumPy hyperparameters and on JAX ones,
    traced too; statistics and rows are NumPy. Besides what a `Model` writes a subclass must write `update`,
    `log_evidence`, `log_predictive` and `sample_parameters`; it may write `predictive`, `mode` and
    `expected`.
    """

    conjugate: ClassVar[bool] = True

    @abc.abstractmethod
    def update(self, statistics) -> Self:
        """Return the posterior, with the groups of ``statistics`` as leading axis."""

    @abc.abstractmethod
    def log_evidence(self, statistics) -> Any:
        """Log p(rows as a sequence) under this prior, every constant kept: a scalar array."""

    @abc.abstractmethod
    def log_predictive(self, x) -> Any:
        """Log p(row) with the parameters integrated out, (n, groups...); what is missing is left out.

        The array is the caller's, who may write to it.
        """

    def near(self, statistics) -> "Conjugate | None":
        """The posterior; None of gaps under a full covariance, or classes that are not known."""
        try:
            return self.update(statistics)
        except ValueError:
            return None

    def starting_draws(self, statistics, rng: np.random.Generator, size: tuple[int, ...]) -> Params:
        """Exact draws of the prior."""
        return self.sample_parameters(rng, size)

    @abc.abstractmethod
    def sample_parameters(self, rng: np.random.Generator, size: tuple[int, ...] = ()) -> Params:
        """Draw parameters exactly: arrays (size..., groups..., features..., event...)."""

    def predictive(self, *columns: Any, **options: Any) -> Any:
        """Return the predictive as a NumPyro distribution, for a user's own program; a regression's at ``columns``."""
        raise NoClosedForm(f"{type(self).__name__} has no predictive that is one NumPyro distribution")

    def mode(self) -> Params:
        """Joint mode of the parameters' density (of a posterior: the MAP estimate), as they are written here."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for the mode")

    def expected(self) -> Params:
        """Mean of every parameter."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for the means of its parameters")

    def map(self, statistics) -> Params:
        """Mode of the posterior."""
        return self.update(statistics).mode()


def is_conjugate(model: Model) -> TypeGuard[Conjugate]:
    """Whether a model has an exact posterior; a classifier has one where each of its leaves does."""
    return model.conjugate
