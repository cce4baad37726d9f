"""The contracts: `Model`, and `Conjugate` for models whose posterior has a closed form.

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
    3. `statistics`, which reduces rows, and `check`, which validates them;
    4. `log_likelihood` of statistics and `log_likelihood_rows` of rows, given parameters;
    5. `dims` and `coords`, names and labels of the axes of its parameters.

    It may write `ml` and `map`, where there is a formula; `log_abs_det_jacobian`, where parameters are not sampled in
    the coordinates in which MAP finds the mode; and `row_density`, where some work does not depend on the rows. A model
    with an exact posterior derives from `Conjugate`.
    """

    conjugate: ClassVar[bool] = False  # True if the posterior has a closed form
    proper: ClassVar[bool] = True  # True if the prior is a distribution; an improper one has no draws and no evidence
    smooth: ClassVar[bool] = True  # True if the density is twice differentiable in the parameters

    @abc.abstractmethod
    def __call__(self, *data: Any, **options: Any) -> Any:
        """Run the program row by row: parameters from the prior, rows given the parameters."""

    @abc.abstractmethod
    def latents(self) -> Params:
        """Sample the parameters inside their plates: the prior half of the program."""

    @abc.abstractmethod
    def statistics(self, *data: Any, **options: Any) -> Any:
        """Return the `Statistics` of rows, of a kind that the model knows; they add over pieces of the data."""

    @abc.abstractmethod
    def check(self, x) -> Any:
        """Return rows as `log_likelihood_rows` takes them, or raise."""

    @abc.abstractmethod
    def log_likelihood(self, params: Params, statistics) -> Any:
        """Return log p(all rows | params), from their statistics. NumPy or JAX."""

    @abc.abstractmethod
    def log_likelihood_rows(self, params: Params, x) -> np.ndarray:
        """Return log p(row | params) for every leading index of ``params`` and every row of `check`."""

    @abc.abstractmethod
    def dims(self, site: str) -> tuple[str, ...]:
        """Return the names of the axes of a parameter, after the axes of the draws."""

    @abc.abstractmethod
    def coords(self) -> dict[str, list]:
        """Return the known labels along the axes that `dims` names."""

    def statistics_program(self, statistics) -> None:
        """Run the program on the statistics: parameters from the prior, the likelihood of all rows as one factor."""
        params = self.latents()
        program.numpyro.factor("log_likelihood", self.log_likelihood(params, statistics))

    def row_density(self, params: Params) -> Callable[[Any], np.ndarray]:
        """Return `log_likelihood_rows` of ``params`` as a function of rows alone, for many pieces of rows."""
        return lambda x: self.log_likelihood_rows(params, x)

    def start_from(self, statistics) -> "Conjugate | None":
        """Return a conjugate model whose draws start chains and searches: the posterior, or one close to it.

        Return None where there is none: they start at draws of the prior, and look for the mode from there.
        """
        return None

    def starting_draws(self, statistics, rng: np.random.Generator, size: tuple[int, ...]) -> Params:
        """Draw some sites to start at, where no model is `start_from`; the other sites are drawn from the program."""
        return {}

    def log_abs_det_jacobian(self, params: Params) -> Any:
        """Return log |d(sampled sites)/d(parameters)|, from the density of the sites to the one MAP maximises."""
        return 0.0

    def ml(self, statistics) -> Params:
        """Return the maximum-likelihood parameters, by group; raise ValueError where they do not exist."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for maximum likelihood")

    def map(self, statistics) -> Params:
        """Return the mode of the posterior density in the parameters as the model writes them, by group."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for the posterior mode")

    def _traced(self) -> Self:
        """Return the same model on JAX arrays: a NumPy float64 array would leak into a float32 program.

        The arrays are copied, since JAX remembers the conversion of a read-only array and would hand a later float64
        run the float32 one.
        """
        return program.jax.tree_util.tree_map(lambda a: program.jnp.asarray(a.copy()), self)


class Conjugate(Model):
    """A model that is closed under updating: its posterior is the same class with new hyperparameters.

    ``prior.update(prior.statistics(x))`` is Bayes' rule. The algebra runs on NumPy hyperparameters and on JAX ones,
    traced or not; statistics and rows are NumPy. In addition to the methods of a `Model`, a subclass must write
    `update`, `log_evidence`, `log_predictive` and `sample_parameters`; it may write `predictive`, `mode` and
    `expected`, and `has_closed_form`, where `update` does not take all its statistics.
    """

    conjugate: ClassVar[bool] = True

    @abc.abstractmethod
    def update(self, statistics) -> Self:
        """Return the posterior, with the groups of ``statistics`` as leading axis."""

    @abc.abstractmethod
    def log_evidence(self, statistics) -> Any:
        """Return log p(rows as a sequence) under this prior, every constant kept: a scalar array."""

    @abc.abstractmethod
    def log_predictive(self, x) -> Any:
        """Return log p(row) with the parameters integrated out, (n, groups...); missing entries are left out.

        The caller may write to the array.
        """

    def has_closed_form(self, statistics) -> bool:
        """Tell if `update` takes these statistics: not with gaps under a full covariance, nor with unknown classes."""
        return True

    def start_from(self, statistics) -> "Conjugate | None":
        """Return the posterior, where it has a closed form."""
        return self.update(statistics) if self.has_closed_form(statistics) else None

    def starting_draws(self, statistics, rng: np.random.Generator, size: tuple[int, ...]) -> Params:
        """Draw exactly from the prior."""
        return self.sample_parameters(rng, size)

    @abc.abstractmethod
    def sample_parameters(self, rng: np.random.Generator, size: tuple[int, ...] = ()) -> Params:
        """Draw exactly from the parameters' distribution: arrays (size..., groups..., features..., event...)."""

    def predictive(self, *columns: Any, **options: Any) -> Any:
        """Return the predictive as a NumPyro distribution, for a user's program; a regression takes ``columns``."""
        raise NoClosedForm(f"{type(self).__name__} has no predictive that is one NumPyro distribution")

    def mode(self) -> Params:
        """Return the joint mode of the parameters as they are written here; of a posterior, the MAP estimate."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for the mode")

    def expected(self) -> Params:
        """Return the mean of every parameter."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for the means of its parameters")

    def map(self, statistics) -> Params:
        """Return the mode of the posterior."""
        return self.update(statistics).mode()


def is_conjugate(model: Model) -> TypeGuard[Conjugate]:
    """Tell if a model has an exact posterior; a classifier has one where each of its leaves does."""
    return model.conjugate
