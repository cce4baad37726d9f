"""The classes that a saved file may name: each registers where it is defined, and a file finds it by its name alone.

Records need not register: `bayesgen.core.program.Record` knows its subclasses.
"""

from typing import TypeVar

from bayesgen.core.program import Record, records

_Class = TypeVar("_Class", bound=type)

_parts: dict[str, type] = {}
_estimators: dict[str, type] = {}


def saveable(cls: _Class) -> _Class:
    """Register a class that is part of a fitted estimator: a posterior, an inference, a schema. A decorator."""
    _parts[cls.__name__] = cls
    return cls


def estimator(cls: _Class) -> _Class:
    """Register an estimator. A decorator."""
    _estimators[cls.__name__] = cls
    return cls


def estimators() -> dict[str, type]:
    """Return the estimators by name."""
    return _estimators


def classes() -> dict[str, type]:
    """Return the classes of this package that stand within an estimator, by name: its records, and what holds them."""
    return {cls.__name__: cls for cls in filter(ours, records())} | _parts


def may_be_saved(cls: type) -> bool:
    """Tell if a file may name a class: one of this package, or a record of the user, which the reader hands over."""
    return classes().get(cls.__name__) is cls or (issubclass(cls, Record) and not ours(cls))


def ours(cls: type) -> bool:
    """Tell if a class is of this package."""
    return cls.__module__.split(".")[0] == "bayesgen"
