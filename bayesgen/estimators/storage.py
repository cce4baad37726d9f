"""Fitted estimators in a file: netCDF, with a version, that runs no code when it is read.

Arrays are variables of the file; what holds them together is one string of JSON, in which a class goes by its name
alone. A name is looked up among the classes of this package (and those leaves the reader hands over), and the object
is made by its constructor, so hyperparameters are checked as ever. Nothing is imported, evaluated or unpickled. A
checksum over everything tells a damaged file.
"""

import dataclasses
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen import inference, posterior, program
from bayesgen.estimators.generative import GaussianDiscriminantClassifier, NaiveBayesClassifier
from bayesgen.estimators.regression import LinearRegressor, LogisticClassifier, ProbitClassifier
from bayesgen.tables.schema import Block, Schema

VERSION = 2
_ESTIMATORS = {
    cls.__name__: cls
    for cls in (
        NaiveBayesClassifier,
        GaussianDiscriminantClassifier,
        LinearRegressor,
        LogisticClassifier,
        ProbitClassifier,
    )
}
_PARTS = (
    posterior.ExactPosterior,
    posterior.ParameterDraws,
    posterior.PointEstimate,
    inference.ML,
    inference.MAP,
    inference.Exact,
    inference.NUTS,
    Schema,
    Block,
)
_HDF5 = b"\x89HDF\r\n\x1a\n"


def save(estimator, path) -> None:
    """Write a fitted estimator; see `load`.

    Parameters
    ----------
    estimator : estimator
        One of this package, fitted. Its ``random_state`` must be an int or None.
    path : str or Path
        The file; one of that name is replaced, at once and as a whole.
    """
    import xarray

    if _ESTIMATORS.get(type(estimator).__name__) is not type(estimator):
        raise TypeError(f"{type(estimator).__name__} is not an estimator of bayesgen: {', '.join(_ESTIMATORS)}")
    check_is_fitted(estimator)
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_") and name[0] != "_"}
    writer = _Writer()
    parts = {"parameters": estimator.get_params(deep=False), "fitted": fitted}
    text = json.dumps(
        {"estimator": type(estimator).__name__}
        | {part: {name: writer.write(value, name) for name, value in values.items()} for part, values in parts.items()}
    )
    variables: dict[str, Any] = {
        name: ([f"{name}_{i}" for i in range(array.ndim)], array) for name, array in writer.arrays.items()
    }
    attributes = {
        "format": "bayesgen",
        "format_version": VERSION,
        "library_version": _version(),
        "checksum": _checksum(text, writer.arrays),
    }
    path = Path(path)
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        xarray.Dataset(variables | {"specification": ((), text)}, attrs=attributes).to_netcdf(
            unfinished, engine="h5netcdf", encoding={name: {"_FillValue": None} for name in writer.arrays}
        )
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def load(path, leaves: Iterable[type] = ()):
    """Read an estimator that ``save`` wrote; no code of the file is run.

    Parameters
    ----------
    path : str or Path
        The file.
    leaves : iterable of classes, optional
        Your own leaves, where the estimator has any.

    Returns
    -------
    estimator
        As it was when saved: its predictions are equal to the bit.

    Raises
    ------
    ValueError
        If the file is damaged, was not written by ``save``, was written by a later version, or holds a leaf that is
        neither of this package nor among ``leaves``.

    Examples
    --------
    >>> import os, tempfile
    >>> classifier = NaiveBayesClassifier().fit([[1.0], [1.2], [3.1], [2.9]], ["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     classifier.save(os.path.join(folder, "model.nc"))
    ...     again = load(os.path.join(folder, "model.nc"))
    >>> again.predict([[3.0]])
    array(['b'], dtype='<U1')
    """
    path = Path(path)
    with path.open("rb") as file:
        start = file.read(len(_HDF5))
    if start != _HDF5:
        raise ValueError(f"{path}: not a file that an estimator of bayesgen was saved to")
    text, arrays = _read(path)
    read = _Reader(arrays, {cls.__name__: cls for cls in leaves}, path).read
    try:
        specification = json.loads(text)
        parts = ({name: read(v) for name, v in specification[part].items()} for part in ("parameters", "fitted"))
        parameters, fitted = parts
        estimator = _ESTIMATORS[specification["estimator"]](**parameters)
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"{path}: the file says what no estimator of bayesgen does: {error!r}") from error
    vars(estimator).update(fitted)
    return estimator


def _read(path) -> tuple[str, dict[str, np.ndarray]]:
    """Specification and arrays of a file, or a ValueError that names it."""
    import h5py

    text, arrays = "", {}
    try:
        with h5py.File(path, "r") as file:
            attributes = dict(file.attrs)
            if ours := attributes.get("format") == "bayesgen":
                text = str(file["specification"].asstr()[()])
                variables = {n: v for n, v in file.items() if v.attrs.get("CLASS") != b"DIMENSION_SCALE"}
                arrays = {name: np.asarray(v[()]) for name, v in variables.items() if name != "specification"}
    except Exception as error:  # HDF5 raises whatever it stumbles over in a damaged file
        raise ValueError(f"{path}: the file is damaged: {error}") from error
    if not ours:
        raise ValueError(f"{path}: not a file that an estimator of bayesgen was saved to")
    version = np.asarray(attributes.get("format_version")).item()
    if version != VERSION:
        raise ValueError(
            f"{path}: written in format {version} by bayesgen {attributes.get('library_version')}; this is bayesgen "
            f"{_version()}, which reads format {VERSION}: read it with that version"
        )
    if _checksum(text, arrays) != attributes.get("checksum"):
        raise ValueError(f"{path}: the file is damaged: its content does not fit its checksum")
    return text, arrays


def _version() -> str:
    import bayesgen

    return bayesgen.__version__


def _checksum(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    checksum = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        checksum.update(f"{name} {array.dtype.name} {array.shape}".encode())
        checksum.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    return checksum.hexdigest()


def _classes() -> dict[str, type]:
    """Classes that a file may name: the records of this package and what holds them."""
    records = [cls for cls in program.records() if _ours(cls)]
    return {cls.__name__: cls for cls in (*records, *_PARTS)}


def _ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == "bayesgen"


class _Writer:
    """Turns values into what JSON can say; arrays are put aside under names that tell where they were."""

    def __init__(self):
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[int, str] = {}

    def write(self, value, place: str) -> Any:
        """What stands for a value; everything but None, bool, int, str and finite float is a tagged object."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.write(v, f"{place}.{i}") for i, v in enumerate(value)]}
        if isinstance(value, Mapping):
            return {"dict": [[self.write(k, place), self.write(v, f"{place}.{k}")] for k, v in value.items()]}
        if isinstance(value, np.ndarray):
            return self._array(value, place)
        cls = type(value)
        if dataclasses.is_dataclass(value) and (
            _classes().get(cls.__name__) is cls or isinstance(value, program.Record)
        ):
            fields = {
                f.name: self.write(getattr(value, f.name), f"{place}.{f.name}") for f in dataclasses.fields(value)
            }
            return {"object": cls.__name__, "own": not _ours(cls), "fields": fields}
        raise TypeError(
            f"{place}: {value!r} ({cls.__name__}) cannot be saved. Numbers, strings, arrays, the models and inferences "
            "of bayesgen and your own leaves can; a random_state must be an int or None"
        )

    def _array(self, value, place):
        if value.dtype.kind not in "biuf":
            kind = value.dtype.str if value.dtype.kind == "U" else "O"
            items = [self.write(v, place) for v in value.ravel().tolist()]
            return {"labels": items, "dtype": kind, "shape": list(value.shape)}
        if id(value) not in self._names:  # model and posterior share arrays: each is written once
            name = wanted = re.sub(r"\W", "_", place, flags=re.ASCII)
            while name in self.arrays or name == "specification":
                name = f"{wanted}_{len(self.arrays)}"
            self._names[id(value)] = name
            self.arrays[name] = value.astype(np.uint8) if value.dtype == bool else value
        return {"array": self._names[id(value)], "bool": value.dtype == bool}


class _Reader:
    """The way back from `_Writer`."""

    def __init__(self, arrays, leaves: Mapping[str, type], path):
        self._arrays, self._leaves, self._known, self._path = arrays, leaves, _classes(), path

    def read(self, value) -> Any:
        """The value that stands in the file."""
        if not isinstance(value, dict):
            return value
        if "float" in value:
            return float(value["float"])
        for kind in (list, tuple):
            if kind.__name__ in value:
                return kind(self.read(v) for v in value[kind.__name__])
        if "dict" in value:
            return {self.read(k): self.read(v) for k, v in value["dict"]}
        if "array" in value:
            array = self._arrays[value["array"]]
            return array.astype(bool) if value["bool"] else array
        if "labels" in value:
            array = np.empty(math.prod(value["shape"]), dtype=value["dtype"])
            array[:] = [self.read(v) for v in value["labels"]]
            return array.reshape(value["shape"])
        name = value["object"]
        cls = (self._leaves if value["own"] else self._known).get(name)
        if cls is None:
            hint = f"give it as load(path, leaves=[{name}])" if value["own"] else "was it saved by another version?"
            raise ValueError(f"{self._path}: holds the class {name}, which is not one of bayesgen; {hint}")
        return cls(**{field: self.read(v) for field, v in value["fields"].items()})
