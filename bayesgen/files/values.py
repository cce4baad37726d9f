"""Values as JSON and back: numbers, strings, arrays and records; a class goes by its name alone.

A name is looked up among classes that are handed over, and the object is made by its constructor, so hyperparameters
are checked as ever. Nothing is imported, evaluated or unpickled. A text may be crafted, so it is checked before
anything is made of it: fields against the types that the class declares, sizes against limits.
"""

import dataclasses
import functools
import math
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from bayesgen.core.registry import ours

_DEPTH = 64  # of values within values; a posterior of a classifier takes a dozen
_CELLS = 1 << 27  # that small hyperparameters may broadcast to, and letters of labels: a GB of float64
_hints = functools.cache(get_type_hints)


class Writer:
    """Writer of values as JSON; arrays are put aside, each named after its place. A file may name ``known`` classes."""

    def __init__(self, known: Callable[[type], bool], apart: bool = False):
        self.arrays: dict[str, np.ndarray] = {}
        # apart: values share arrays, but hyperparameters none, as where their records were read from a file
        self._known, self._apart, self._names = known, apart, {}

    def write(self, value, place: str) -> Any:
        """Return the JSON of a value; everything but None, bool, int, str and finite float is a tagged object."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.write(v, f"{place}.{i}") for i, v in enumerate(value)]}
        if type(value).__name__ == "Series" and hasattr(value, "to_dict"):
            value = value.to_dict()  # what it says by name, it says as a mapping
        if isinstance(value, Mapping):
            return {"dict": [[self.write(k, place), self.write(v, f"{place}.{k}")] for k, v in value.items()]}
        if isinstance(value, np.ndarray):
            return self._array(value, place)
        cls = type(value)
        if dataclasses.is_dataclass(value) and self._known(cls):
            fields = {}
            for field in dataclasses.fields(value):
                held = getattr(value, field.name)
                alone = self._apart and "rank" in field.metadata and isinstance(held, np.ndarray)
                fields[field.name] = self.write(held.copy() if alone else held, f"{place}.{field.name}")
            return {"object": cls.__name__, "own": not ours(cls), "fields": fields}
        can = "Numbers, strings, arrays, the models and inferences of bayesgen and your own leaves can"
        problem = f"{value!r} ({cls.__name__}) cannot be saved"
        raise TypeError(f"{place}: {problem}. {can}; a random_state must be an int or None")

    def _array(self, value, place):
        if value.dtype.kind not in "biuf":
            kind = value.dtype.str if value.dtype.kind == "U" else "O"
            items = [self.write(v, place) for v in value.ravel().tolist()]
            return {"labels": items, "dtype": kind, "shape": list(value.shape)}
        if id(value) not in self._names:  # model and posterior share arrays: each is written once
            name = wanted = re.sub(r"[^\w.]", "_", place, flags=re.ASCII)
            while name in self.arrays:
                name = f"{wanted}_{len(self.arrays)}"
            self._names[id(value)] = name
            self.arrays[name] = np.asarray(value, value.dtype.newbyteorder("<"), order="C")
        return {"array": self._names[id(value)]}


class Reader:
    """Reader of what `Writer` wrote, else ValueError: a file may name ``known`` classes of bayesgen and ``theirs``."""

    def __init__(self, arrays: Mapping[str, np.ndarray], known: Mapping[str, type], theirs: Mapping[str, type]):
        self._arrays, self._known, self._own, self._names = arrays, known, theirs, {}

    def read(self, value, depth: int = 0) -> Any:
        """Return the value that some JSON stands for."""
        if depth > _DEPTH:
            raise ValueError(f"values are nested more than {_DEPTH} deep")
        if not isinstance(value, dict):
            return value
        if value.keys() == {"float"}:
            return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[value["float"]]
        if value.keys() == {"list"} or value.keys() == {"tuple"}:
            ((kind, items),) = value.items()
            return {"list": list, "tuple": tuple}[kind](self._items(items, depth))
        if value.keys() == {"dict"}:
            return dict(self._items(pair, depth) for pair in value["dict"])
        if value.keys() == {"array"}:
            return self._arrays[value["array"]]
        if value.keys() == {"labels", "dtype", "shape"}:
            return self._labels(value, depth)
        if value.keys() == {"object", "own", "fields"}:
            return self._object(value, depth)
        raise ValueError(f"nothing is written as {sorted(value)!r:.100}")

    def _items(self, items, depth) -> list[Any]:
        if not isinstance(items, list):
            raise ValueError(f"expected a list of values, got {items!r:.100}")
        kinds = set(map(type, items))
        if kinds == {str}:  # names, a million of them at times and in several places: those are one list again
            known = self._names.setdefault((len(items), items[0], items[-1]), items)
            return known if known == items else items
        if kinds <= {str, int, bool}:
            return items
        return [self.read(item, depth + 1) for item in items]

    def _labels(self, value, depth):
        items, shape = self._items(value["labels"], depth), tuple(value["shape"])
        width = re.fullmatch(r"O|[<>]U(\d{1,9})", value["dtype"])
        if not width or any(type(n) is not int or n < 0 for n in shape) or math.prod(shape) != len(items):
            raise ValueError(f"{len(items)} labels are declared as {value['dtype']!r:.100} of shape {shape!r:.100}")
        if int(width[1] or 0) * len(items) > _CELLS:
            raise ValueError(f"{len(items)} labels of {width[1]} letters each are too large")
        array = np.empty(len(items), dtype=value["dtype"])
        array[:] = items
        return array.reshape(shape)

    def _object(self, value, depth):
        name, foreign = value["object"], value["own"]
        cls = (self._own if foreign else self._known).get(name)
        if cls is None:
            hint = f"give it as load(path, leaves=[{name}])" if foreign else "was it saved by another version?"
            raise ValueError(f"holds the class {name}, which is not one of bayesgen; {hint}")
        if not isinstance(value["fields"], dict):
            raise ValueError(f"{name} without fields")
        fields = {field: self.read(v, depth + 1) for field, v in value["fields"].items()}
        if name == "NUTS" and not foreign:
            fields.pop("shard_rows", None)  # of files from before; it moved rows between devices, and changed no draw
        _check_fields(cls, fields)
        return cls(**fields)


def _check_fields(cls: type, fields: Mapping[str, Any]) -> None:
    """Raise an error if fields are not as their class declares them, by name, type or size."""
    declared = {field.name: field for field in dataclasses.fields(cls)}
    later = {name for name, one in declared.items() if one.default in (None, ())}  # files from before may lack them
    if not declared.keys() - later <= fields.keys() <= declared.keys():
        raise ValueError(f"{cls.__name__} has the fields {list(declared)}, the file gives it {list(fields)!r:.200}")
    hints = _hints(cls) if ours(cls) else {}  # what a user's own class promises is the user's
    shapes = []
    for name, value in fields.items():
        if "rank" in declared[name].metadata:  # a hyperparameter
            right = _fits(value, np.ndarray)
            shapes.append(np.shape(value)[: -declared[name].metadata["rank"] or None] if right else ())
        elif name == "categories" and hints:  # a number would stand for as many of them
            right = value is None or isinstance(value, tuple)
            hash(value)  # a TypeError where a label cannot be looked up
        else:
            right = _fits(value, hints.get(name, Any))
        if not right:
            raise ValueError(f"{cls.__name__}: the file gives {name} a value of the wrong type: {value!r:.100}")
    sizes = [np.broadcast_shapes(*shapes)]
    if hints and isinstance(labels := fields.get("categories"), tuple):  # a hyperparameter is repeated for each
        sizes += [np.broadcast_shapes(np.shape(v), (len(labels),)) for v in fields.values() if not isinstance(v, tuple)]
    if max(map(math.prod, sizes)) > _CELLS:
        raise ValueError(f"{cls.__name__}: the shapes {sizes!r:.100} make more than {_CELLS} parameters")


def _fits(value, hint) -> bool:
    """Return True if a value fits a type hint of a record."""
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, kind) for kind in parts)
    if origin in (float, np.ndarray) and isinstance(value, int | float):
        return not isinstance(value, bool)  # an array () is written as a number
    if origin is float:
        return isinstance(value, np.ndarray) and value.ndim == 0
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    if origin is tuple and isinstance(value, tuple) and parts[1:] == (...,):  # of names, a million of them at times
        return set(map(type, value)) <= {parts[0]} or all(_fits(one, parts[0]) for one in value)
    if origin is tuple:
        return isinstance(value, tuple) and (not parts or (len(parts) == len(value) and all(map(_fits, value, parts))))
    if isinstance(origin, type) and issubclass(origin, Mapping):  # which some records keep as a tuple of pairs
        pairs = value.items() if isinstance(value, dict) else value
        return isinstance(value, dict | tuple) and all(_fits(tuple(pair), tuple[parts]) for pair in pairs)
    return isinstance(value, origin)
