"""Registry of the classes that a saved file may name; a file finds a class by its name alone.

Each class registers where it is defined. Records need not: `bayesgen.core.program.Record` knows its subclasses.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from bayesgen.core.program import Record, records

_Class = TypeVar("_Class", bound=type)

_parts: dict[str, type] = {}
_estimators: dict[str, type] = {}
_earlier: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {}


def saveable(cls: _Class) -> _Class:
    """Register a class that is part of a fitted estimator, such as a posterior or a schema; a decorator."""
    _parts[cls.__name__] = cls
    return cls


def estimator(cls: _Class) -> _Class:
    """Register an estimator; a decorator."""
    _estimators[cls.__name__] = cls
    return cls


def earlier(name: str):
    """Register a function from the fields of a class in an earlier version to today's; a decorator.

    An estimator has two fields, "parameters" and "fitted", which are mappings.
    """

    def add(function: Callable[[Mapping[str, Any]], Mapping[str, Any]]):
        _earlier[name] = function
        return function

    return add


def renewed(cls: type, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a class of this package as today's version has them."""
    return _earlier[cls.__name__](fields) if cls.__name__ in _earlier else fields


def estimators() -> dict[str, type]:
    """Return the estimators by name."""
    return _estimators


def classes() -> dict[str, type]:
    """Return the classes of this package that a fitted estimator may hold, by name: records and registered parts."""
    return {cls.__name__: cls for cls in filter(ours, records())} | _parts


def may_be_saved(cls: type) -> bool:
    """Return True if a file may name ``cls``: a class of this package, or a record that the user gives the reader."""
    return classes().get(cls.__name__) is cls or (issubclass(cls, Record) and not ours(cls))


def ours(cls: type) -> bool:
    """Return True if ``cls`` belongs to this package."""
    return cls.__module__.split(".")[0] == "bayesgen"
