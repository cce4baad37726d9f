"""What was read of a long source, kept for the next time; written and read like a saved estimator, no code in it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from bayesgen.core import registry
from bayesgen.files import container, disk, seal
from bayesgen.files.values import Reader, Writer

_WRONG = (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError, MemoryError)


def write(path, values: dict[str, Any]) -> None:
    """Write named values, at once and as a whole, for their owner only.

    Parameters
    ----------
    path : str or Path
        The file; one of that name is replaced.
    values : dict
        Numbers, strings, arrays, and records of bayesgen.
    """
    writer = Writer(registry.may_be_saved)
    written = {name: writer.write(value, name) for name, value in values.items()}
    text = json.dumps({"values": written, "arrays": container.declared(writer.arrays)})
    content = container.pack(text, writer.arrays, {"format": "bayesgen checkpoint", "format_version": seal.VERSION})
    disk.write(path, (content, seal.seal(content)), private=True)


def read(path, leaves: Mapping[str, type]) -> dict[str, Any]:
    """Read what `write` wrote; a ValueError where it is anything else.

    Parameters
    ----------
    path : str or Path
        The file.
    leaves : mapping from name to class
        The user's own leaves, where the fit has any.
    """
    content = seal.unsealed(path)
    try:
        specification, arrays = container.unpack(content)
        read = Reader(arrays, registry.classes(), leaves).read
        return {name: read(value) for name, value in specification["values"].items()}
    except _WRONG as error:
        raise ValueError(
            f"{path}: this is no checkpoint of bayesgen: {error!s:.300}; delete it to begin anew"
        ) from error


def digest(value, place: str) -> str:
    """Digest of a value as it would be written: equal values have one, and no others in practice."""
    writer = Writer(registry.may_be_saved)
    found = hashlib.sha256(json.dumps(writer.write(value, place)).encode())
    for name, array in writer.arrays.items():
        found.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()
