"""Fitted estimators and watches in files: safetensors, with a version, that run no code when they are read.

Arrays lie in the file as they are; one text of JSON in its header holds them together, see `bayesgen.files.values`. A
checksum tells a damaged file, see `bayesgen.files.container`.
"""

import json
import warnings
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from bayesgen.core import registry
from bayesgen.core.errors import InputWarning
from bayesgen.files import container, disk
from bayesgen.files.values import Reader, Writer

_LATER = {"keep_rows"}  # parameters that files from before lack
_SUMS = "schema_", "statistics_", "classes_"  # what `bayesgen.export.learning_page` saves, from which all else follows
_STRANGE = (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError, StopIteration)


def save(estimator, path) -> None:
    """Write a fitted estimator; see `load`.

    The file is there at once and as a whole: a full disk or an interrupt leaves what was there before, and of several
    processes that save to one path one is last. A link is followed, and an existing file keeps its mode. A new file of
    an estimator that keeps its rows (logistic, probit, linear with Laplace noise or prior, averaged of more than 100
    numeric columns) is for its owner only.

    Parameters
    ----------
    estimator : estimator
        One of this package, fitted. Its ``random_state`` must be an int or None.
    path : str or Path
        The file; a regular file of that name is replaced, anything else there is an error.
    """
    cls = type(estimator)
    if registry.estimators().get(cls.__name__) is not cls:
        raise TypeError(f"{cls.__name__} is not an estimator of bayesgen: {', '.join(registry.estimators())}")
    registry.fitted_of(estimator)  # or raise
    disk.regular(path)
    fitted = _fitted(estimator)
    _check_names(estimator, fitted)
    parts = {"parameters": estimator.get_params(deep=False), "fitted": fitted}
    private = any(getattr(value, "keeps_rows", False) for value in fitted.values())
    writer = Writer(registry.may_be_saved)
    written = {section: {name: writer.write(v, name) for name, v in held.items()} for section, held in parts.items()}
    content = container.pack({"estimator": cls.__name__, **written}, writer.arrays)
    with disk.writing(path, private=private) as file:
        file.write(content)


def _fitted(estimator) -> dict[str, Any]:
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and name[0] != "_"}


def fingerprint(estimator) -> str:
    """Return the digest of what a fitted estimator has learned: the same for one that was saved and loaded."""
    writer = Writer(registry.may_be_saved, apart=True)
    return container.digest(json.dumps(writer.write(_fitted(estimator), "fitted")), writer.arrays).hex()


def load(path, leaves: Iterable[type] = ()):
    """Read an estimator that ``save`` or a page that learns wrote; no code of the file is run.

    A checksum shows accidental damage. Anyone can compute it, so every field, which may be crafted, is checked too: its
    type, its size, whether it fits the others. The numbers are whatever the author chose.

    Parameters
    ----------
    path : str or Path
        The file.
    leaves : iterable of classes, optional
        Your own leaves, where the estimator has any.

    Returns
    -------
    estimator
        As it was when saved: its predictions are equal to the bit. A page that learns saves sums of the rows alone, and
        prior and posterior are made of them anew.

    Raises
    ------
    ValueError
        If the file is damaged, was not written by ``save``, was written in another version of the format, or holds a
        leaf that is neither of this package nor among ``leaves``.

    Examples
    --------
    >>> import os, tempfile
    >>> from bayesgen import NaiveBayesClassifier
    >>> classifier = NaiveBayesClassifier().fit([[1.0], [1.2], [3.1], [2.9]], ["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     classifier.save(os.path.join(folder, "model.safetensors"))
    ...     again = load(os.path.join(folder, "model.safetensors"))
    >>> again.predict([[3.0]])
    array(['b'], dtype='<U1')
    """
    disk.regular(path)
    try:
        specification, arrays = container.unpack(container.read(path))
        read = Reader(arrays, registry.classes(), {cls.__name__: cls for cls in leaves}).read
        estimator = registry.estimators()[specification["estimator"]]()
        parts = (specification[section].items() for section in ("parameters", "fitted"))
        parameters, fitted = ({name: read(value) for name, value in part} for part in parts)
        parameters.pop("n_jobs", None)  # which averages of before had
        if parameters.keys() | _LATER != estimator.get_params(deep=False).keys() | _LATER:
            raise ValueError(f"no estimator of bayesgen has these parameters: {list(parameters)!r:.300}")
        if fitted.keys() == {*_SUMS} and parameters["inference"] == "exact":  # so that no file makes `load` sample
            with warnings.catch_warnings(action="ignore", category=InputWarning):  # which were told with the rows
                estimator.set_params(**parameters).fit_statistics(*map(fitted.get, _SUMS))
        else:
            _check_names(estimator, fitted)
            vars(estimator).update({**parameters, **fitted})
        type(estimator).fitted_.check(estimator)
        return estimator
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    except _STRANGE as error:
        raise ValueError(f"{path}: the file says what no estimator of bayesgen does: {error!r:.300}") from error


def _check_names(estimator, names) -> None:
    """Raise an error if the attributes of a fitted estimator are not those that fitting sets."""
    held = type(estimator).fitted_
    strange = sorted(set(names) - {*held.names, *held.optional})
    absent = [name for name in held.names if name not in names]
    if strange or absent:
        problem = f"has no attribute {strange[0]!r:.100}" if strange else f"needs the attribute {absent[0]!r}"
        raise ValueError(f"a fitted {type(estimator).__name__} {problem}")


def write_state(path, kind: str, values: dict[str, Any], version: int, replaces: str | None) -> str:
    """Write named values (numbers, strings, arrays, records) as a file of a ``kind``, whole, for its owner only.

    A file that is there must have the digest ``replaces``, of when it was read or written last, or a ValueError is
    raised: of two processes that go on with one file the second would lose what the first wrote. Returns the digest.
    """
    writer = Writer(registry.may_be_saved)
    content = container.pack({"values": writer.write(values, "values"), "state": version}, writer.arrays, kind)
    with disk.alone(path):
        if disk.regular(path) and sha256(Path(path).read_bytes()).hexdigest() != replaces:
            why = f"this file was written since it was loaded, as by another process, or is another {kind}"
            cure = "load it and take up the rows again, or save to another name"
            raise ValueError(f"{path}: {why}; what it knows would be lost: {cure}")
        with disk.writing(path, private=True) as file:
            file.write(content)
    return sha256(content).hexdigest()


def read_state(path, kind: str, version: int) -> tuple[dict[str, Any], str]:
    """Read the values that `write_state` wrote, and the digest of the file; raise a ValueError where it is no such."""
    disk.regular(path)
    try:
        content = container.read(path)
        specification, arrays = container.unpack(content, kind)
        if specification.get("state", 1) != version:
            wrote = f"an older or newer bayesgen wrote it, by version {specification.get('state', 1)!r:.9} of its rules"
            raise ValueError(f"{wrote}, where this one goes on by version {version}")
        return Reader(arrays, registry.classes(), {}).read(specification["values"]), sha256(content).hexdigest()
    except (ValueError, *_STRANGE) as error:
        problem = f"this is no {kind} that bayesgen goes on with: {error!s:.300}"
        raise ValueError(f"{path}: {problem}; delete it to begin anew") from error
