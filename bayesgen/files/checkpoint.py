"""What was read of a long source, kept for the next time; written and read like a saved estimator, no code in it."""

import json
from typing import Any

from bayesgen.files import atomic, container, known, seal
from bayesgen.files.values import Reader, Writer


def write(path, values: dict[str, Any]) -> None:
    """Write named values, at once and as a whole, for their owner only.

    Parameters
    ----------
    path : str or Path
        The file; one of that name is replaced.
    values : dict
        Numbers, strings, arrays, and records of bayesgen.
    """
    writer = Writer(known.may_be_saved)
    written = {name: writer.write(value, name) for name, value in values.items()}
    text = json.dumps({"values": written, "arrays": container.declared(writer.arrays)})
    content = container.pack(text, writer.arrays, {"format": "bayesgen checkpoint", "format_version": seal.VERSION})
    atomic.write(path, (content, seal.seal(content)), private=True)


def read(path) -> dict[str, Any]:
    """Read what `write` wrote; a ValueError where it is anything else."""
    content = seal.unsealed(path)
    try:
        specification, arrays = container.unpack(content)
        read = Reader(arrays, known.classes(), {}).read
        return {name: read(value) for name, value in specification["values"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: this is no checkpoint of bayesgen: {error}") from error
