"""Arguments whose entries have names, of classes, categories or columns: matched by name, or refused.

A mapping, a Series, and a DataFrame of pandas, polars or pyarrow name their entries. The names 0, 1, ... in this order,
those of a table made without any, are none. Names match by value, else by their text, since a file holds nothing else.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesgen.core.errors import Argument, InputError, listed


def names_along(values) -> tuple[list | None, ...]:
    """Return the names of the entries along each axis, None where they have none; () for values without names.

    >>> names_along({"a": 0.4, "b": 0.6}), names_along([0.4, 0.6])
    ((['a', 'b'],), ())
    """
    if isinstance(values, Mapping):
        return (list(values),)
    index = getattr(values, "index", None)
    rows = None if callable(index) else index  # a list has a method of this name
    columns = getattr(values, "column_names", getattr(values, "columns", None))
    if columns is None:
        return () if rows is None else (_named(rows),)
    return None if rows is None else _named(rows), _named(columns)


def _named(names) -> list | None:
    names = list(names)
    return None if names == list(range(len(names))) else names


def places(argument: str, names: Sequence, wanted: Sequence, expected: str) -> list[int]:
    """Return the place of each wanted name among an argument's own, or raise: one too many, too few, or twice.

    >>> places("loss", ["well", "ill"], ["ill", "well"], "one row for each of the classes")
    [1, 0]
    """
    asked = list(wanted)
    if set(names) != set(asked):
        names, asked = [str(name) for name in names], [str(name) for name in asked]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        more = f" must have {expected}, of distinct names; it has {listed(twice)} more than once"
        raise InputError(Argument(argument, names, argument), more, value=twice)
    found = {name: place for place, name in enumerate(names)}
    lacks, more = [name for name in asked if name not in found], [name for name in names if name not in set(asked)]
    if lacks or more:
        faults = [f"lacks {listed(lacks)}"] * bool(lacks) + [f"has {listed(more)} besides"] * bool(more)
        raise InputError(
            Argument(argument, names, argument),
            f" must have {expected} {listed(wanted)}; it {' and '.join(faults)}. Name them so",
            Argument("array", None, ", or give an array in this order"),
            ".",
            value=[*lacks, *more],
        )
    return [found[name] for name in asked]


def by_name(argument: str, values: Any, *wanted: Sequence | None, expected: str) -> Any:
    """Return values whose entries have names as an array in the order that is wanted along its last axes.

    Values without names, and axes without names or with None as the names wanted, stay as they are.

    >>> by_name(
    ...     "priors", {"ill": 0.1, "well": 0.9}, ["well", "ill"], expected="one probability for each of the classes"
    ... )
    array([0.9, 0.1])
    """
    if not (axes := names_along(values)):
        return values
    array = np.asarray(list(values.values()) if isinstance(values, Mapping) else values)
    for back, (found, names) in enumerate(zip(reversed(axes), reversed(wanted), strict=False), 1):
        if found is not None and names is not None:
            array = np.take(array, places(argument, found, names, expected), axis=-back)
    return array
