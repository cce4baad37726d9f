"""Registry of the classes that a saved file may name; a file finds a class by its name alone.

Each class registers where it is defined. Records need not: `bayesgen.core.program.Record` knows its subclasses.
"""

from typing import Any, TypeVar

from bayesgen.core.program import Record, records

_Class = TypeVar("_Class", bound=type)

_parts: dict[str, type] = {}
_estimators: dict[str, type] = {}


def saveable(cls: _Class) -> _Class:
    """Register a class that is part of a fitted estimator, such as a posterior or a schema; a decorator."""
    _parts[cls.__name__] = cls
    return cls


def estimator(cls: _Class) -> _Class:
    """Register an estimator; a decorator."""
    _estimators[cls.__name__] = cls
    return cls


def estimators() -> dict[str, type]:
    """Return the estimators by name."""
    return _estimators


def fitted_of(given) -> Any:
    """Return the record of what an estimator of this package has learned, its ``fitted_``; a record is its own."""
    if not hasattr(type(given), "fitted_"):
        raise TypeError(f"expected a fitted estimator of bayesgen, got a {type(given).__name__}")
    return given.fitted_


def classes() -> dict[str, type]:
    """Return the classes of this package that a fitted estimator may hold, by name: records and registered parts."""
    return {cls.__name__: cls for cls in filter(ours, records())} | _parts


def may_be_saved(cls: type) -> bool:
    """Return True if a file may name ``cls``: a class of this package, or a record that the user gives the reader."""
    return classes().get(cls.__name__) is cls or (issubclass(cls, Record) and not ours(cls))


def ours(cls: type) -> bool:
    """Return True if ``cls`` belongs to this package."""
    return cls.__module__.split(".")[0] == "bayesgen"
