"""The contracts: `Model`, and `Conjugate` for models whose posterior has a closed form; and their hyperparameters.

A hyperparameter is a field that takes numbers or arrays and gives an array, checked where its values are known. A model
of a single feature, or of a block of features of one kind, is a leaf: `bayesgen.models.leaf` has its base.
"""

import abc
import dataclasses
import functools
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesgen.core import program
from bayesgen.core.errors import NoClosedForm, listed
from bayesgen.core.names import by_name, names_along, places
from bayesgen.core.program import Record, is_abstract
from bayesgen.core.statistics import Statistics
from bayesgen.numerics.special import namespace

Params = Mapping[str, Any]  # name of a site -> array (draws..., groups..., features..., event...)
R = TypeVar("R")
LARGEST_TOTAL = 1e300  # largest sum of counts: beyond it sums and log-gammas leave float64

if TYPE_CHECKING:

    class Hyperparameter:
        """Type of a hyperparameter: read as an array, given to the constructor as anything array-like.

        Each final class declares its own: mypy does not know what an inherited field of a dataclass gives.
        """

        @overload
        def __get__(self, instance: None, owner: Any) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: Any) -> NDArray[np.float64]: ...
        def __get__(self, instance: Any, owner: Any) -> Any: ...
        def __set__(self, instance: Any, value: ArrayLike) -> None: ...

    def hyperparameter(default: ArrayLike = ..., *, rank: int = 0, positive: bool = False) -> Hyperparameter:
        """Declare a hyperparameter; see below."""
        ...

else:
    Hyperparameter = np.ndarray

    def hyperparameter(default=dataclasses.MISSING, *, rank=0, positive=False):
        """Declare a hyperparameter: an array of floats whose last ``rank`` axes belong to one feature or vector."""
        return dataclasses.field(default=default, metadata={"rank": rank, "positive": positive})


_fields = functools.cache(dataclasses.fields)  # the fields of a class, in order
_PLAIN = {float, int, list, tuple, np.ndarray}  # types of hyperparameters without names


@functools.cache
def _ranks(cls) -> dict[str, int]:
    """Return the hyperparameters of a class by name, with the number of last axes that belong to one feature."""
    return {field.name: field.metadata["rank"] for field in _fields(cls) if "rank" in field.metadata}


@functools.cache
def _defaults(cls) -> dict[str, Any]:
    """Return the fields of a class by name, with their defaults or dataclasses.MISSING."""
    return {field.name: field.default for field in _fields(cls)}


class Hyperparameters(Record):
    """A record whose constructor turns hyperparameters into arrays and checks them.

    A NumPy value becomes a read-only float64 array. A JAX value keeps its type and precision: a record may be made
    inside a traced function, so that a prior may have a prior. A value that JAX does not know yet is not checked.
    """

    def __post_init__(self):
        if type(self) not in program.registered and hasattr(sys.modules.get("jax"), "tree_util"):
            program.register()  # the user has imported JAX
        ranks = _ranks(type(self))
        if ranks:
            _align(self, ranks)
        for field in _fields(type(self)):
            if field.name in ranks:
                object.__setattr__(self, field.name, _checked(self, field))
        if len(ranks) > 1:
            try:
                self.batch_shape  # noqa: B018 - raises if the shapes do not broadcast
            except ValueError:
                shapes = ", ".join(f"{name} {np.shape(getattr(self, name))}" for name in ranks)
                raise ValueError(f"{type(self).__name__}: the shapes of {shapes} do not fit together") from None

    _inner: ClassVar[int] = 0  # last axes of a hyperparameter that are no columns

    def for_columns(self, columns: Sequence[str]) -> Self:
        """Return the model with hyperparameters that name their columns in the order of ``columns``, or raise."""
        names = getattr(self, "names", None)
        if names is None or names == tuple(columns):
            return self
        owner = type(self).__name__
        order, changed = places(owner, names, columns, "hyperparameters for each of the columns"), {}
        for name, rank in _ranks(type(self)).items():
            value = getattr(self, name)
            for axis in range(1 + self._inner, 1 + self._inner + max(rank, 1)):
                if value.ndim >= axis and value.shape[-axis] == len(order):
                    value = changed[name] = namespace(value).take(value, np.array(order), axis=-axis)
        return dataclasses.replace(self, **changed, names=tuple(columns))

    @functools.cached_property
    def _concrete(self) -> bool:
        """True if every hyperparameter is a NumPy array."""
        return namespace(*(getattr(self, name) for name in _ranks(type(self)))) is np

    @functools.cached_property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the hyperparameters in front of the axes that belong to one feature."""
        ranks = _ranks(type(self))
        shapes = {np.shape(getattr(self, name))[: -rank or None] for name, rank in ranks.items()} - {()}
        return shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)


def unchecked(cls: type[R], **values) -> R:
    """Return a record of hyperparameters, arrays of floats that are right by construction."""
    result = object.__new__(cls)
    vars(result).update(_defaults(cls), **values)
    return result


def revised(record: R, **changed) -> R:
    """Return the same record with other hyperparameters, `unchecked` too."""
    result, values = object.__new__(type(record)), vars(record)
    names = _defaults(type(record))
    vars(result).update(zip(names, map(values.__getitem__, names), strict=True), **changed)
    return result


def on_jax(model: R) -> R:
    """Return the same model on JAX arrays: a NumPy float64 array would leak into a float32 program.

    The arrays are copied, since JAX remembers the conversion of a read-only array and would hand a later float64 run
    the float32 one.
    """
    return program.jax.tree_util.tree_map(lambda a: program.jnp.asarray(a.copy()), model)


def in_full(record: Hyperparameters, *lead: int) -> dict[str, Any]:
    """Return the hyperparameters by name, with axes ``lead``, then those of the batch shape, then their last ones."""
    shape, result = (*lead, *record.batch_shape), {}
    for name, rank in _ranks(type(record)).items():
        value = getattr(record, name)
        result[name] = namespace(value).broadcast_to(value, shape + value.shape[value.ndim - rank :])
    return result


def _align(record: Hyperparameters, ranks) -> None:
    """Put the hyperparameters whose entries are named by columns in one order, and keep the names.

    A model of a target knows its columns; an intercept comes before them under a name of its own.
    """
    order, columns = getattr(record, "names", None), getattr(record, "columns", None)
    for name in ranks:
        given = getattr(record, name)
        if type(given) in _PLAIN or not (axes := names_along(given)):
            continue
        what, names = f"{type(record).__name__}: {name}", next((names for names in axes if names is not None), None)
        if names is not None and columns == ():
            raise ValueError(f"{what} names {listed(names)}: give columns= too, their names in the order of the rows")
        if names is not None and columns:
            others = [other for other in names if other not in columns]
            order = [*others, *columns] if len(others) == 1 and len(names) == 1 + len(columns) else columns
        order = order or names
        value = by_name(what, given, *[order] * len(axes), expected="one entry for each of the columns")
        object.__setattr__(record, name, value)
    if order is not None and hasattr(record, "names"):
        object.__setattr__(record, "names", tuple(order))


def check_total(record: Hyperparameters, names: str, total) -> None:
    """Raise where the counts of a prior add to more than float64 can work with: their log-gamma overflows."""
    if not is_abstract(total) and not (np.asarray(total) <= LARGEST_TOTAL).all():
        raise ValueError(
            f"{type(record).__name__}: {names} must sum to {LARGEST_TOTAL:g} at most; so strong a prior is a known "
            "probability"
        )


def _checked(record: Hyperparameters, field: dataclasses.Field):
    owner, name, rank = type(record).__name__, field.name, field.metadata["rank"]
    given = getattr(record, name)
    jax_parts = isinstance(given, list | tuple) and namespace(*given) is not np
    value: Any = program.jnp.asarray(given) if jax_parts else given
    if namespace(value) is np:
        try:
            value = np.array(value, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(f"{owner}: {name} must be a number or an array of numbers") from None
        except OverflowError:  # an int of Python
            raise ValueError(f"{owner}: {name} must be finite, and is beyond 1.8e308") from None
        value.flags.writeable = False
    elif value.dtype.kind != "f":
        value = value.astype(program.jnp.result_type(float))
    if value.ndim < rank:
        raise ValueError(f"{owner}: {name} must have at least {rank} axes, got shape {value.shape}")
    if not isinstance(value, np.ndarray) and is_abstract(value):
        return value
    if not np.isfinite(value).all():
        raise ValueError(f"{owner}: {name} must be finite")
    if field.metadata["positive"] and not (np.asarray(value) > 0).all():
        raise ValueError(f"{owner}: {name} must be positive, got {float(value.min()):g}")
    return value


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
    bounded: ClassVar[bool] = True  # True if the posterior density has a mode, where the prior is a distribution

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "latents" in vars(cls):
            cls.latents = _listed_sites(cls.latents)

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


def _listed_sites(latents):
    """Return the method with `program.Sites` in place of the dict that it returns."""

    @functools.wraps(latents)
    def listed_sites(self, *args, **options):
        return program.Sites(latents(self, *args, **options))

    return listed_sites


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
        """Return True if `update` takes these statistics: no gaps under a full covariance, no unknown classes."""
        return True

    def start_from(self, statistics) -> "Conjugate | None":
        return self.update(statistics) if self.has_closed_form(statistics) else None

    def starting_draws(self, statistics, rng: np.random.Generator, size: tuple[int, ...]) -> Params:
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
        return self.update(statistics).mode()


def of_part(part: str, name: str) -> Any:
    """Return a property: an attribute or a method that a record takes from one of its parts as it is."""
    return property(operator.attrgetter(f"{part}.{name}"), doc=f"``{name}`` of ``{part}``.")


def is_conjugate(model: Model) -> TypeGuard[Conjugate]:
    """Return True if a model has an exact posterior; a classifier has one where each of its leaves does."""
    return model.conjugate


def summarise(model: Model, data: Any) -> Any:
    """Return the statistics of ``data``, which are rows or statistics already."""
    if isinstance(data, Statistics):
        return data
    return model.statistics(*data) if isinstance(data, tuple) else model.statistics(data)
