"""Hyperparameters: fields that take numbers or arrays and give arrays, checked where their values are known."""

import dataclasses
import functools
import sys
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesgen.core import program
from bayesgen.core.program import Record, is_abstract
from bayesgen.numerics.special import namespace

LARGEST_TOTAL = 1e300  # largest sum of counts: beyond it sums and log-gammas leave float64

if TYPE_CHECKING:

    class Hyperparameter:
        """Type of a hyperparameter: read as an array, given to the constructor as anything array-like."""

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
        for field in _fields(type(self)):
            if field.name in ranks:
                object.__setattr__(self, field.name, _checked(self, field))
        if len(ranks) > 1:
            try:
                self.batch_shape  # noqa: B018 - raises if the shapes do not broadcast
            except ValueError:
                shapes = ", ".join(f"{name} {np.shape(getattr(self, name))}" for name in ranks)
                raise ValueError(f"{type(self).__name__}: the shapes of {shapes} do not fit together") from None

    @classmethod
    def _unchecked(cls, **values) -> Self:
        """Return a record of hyperparameters, arrays of floats that are right by construction."""
        result = object.__new__(cls)
        vars(result).update(_defaults(cls), **values)
        return result

    def _revised(self, **values) -> Self:
        """Return the same record with other hyperparameters, `_unchecked` too."""
        result, own = object.__new__(type(self)), vars(self)
        names = _defaults(type(self))
        vars(result).update(zip(names, map(own.__getitem__, names), strict=True), **values)
        return result

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
