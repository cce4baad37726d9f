"""Named arrays and a text as safetensors: packed in memory, and unpacked within limits.

A file of safetensors is a header in JSON, and behind it the arrays. The library checks that every array has the type,
the shape and the place that the header says, and that together they fill the file; so no header asks for more memory
than a multiple of the file's size. Our text, which is JSON too, is the one word of metadata with which the header
begins, and a digest is one of the arrays. The digest is over text and arrays, not over the bytes of the file, so the
library may write them anew. It stops accidents, not malice: anyone can compute it.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayesgen.core import __version__

VERSION = 5  # of the format of saved files and of pickles
_TEXT, _DIGEST = "bayesgen", "sha256"  # names of the text and of the array
_BEGINNING = f'{{"__metadata__":{{"{_TEXT}":'
_HEADER, _VALUES = 10**8, 1 << 23  # bytes and values in a header: a table of a million columns takes fewer
_ARRAYS = 1 << 17  # in a file: 10,000 leaves of the user's take half of them
_LARGEST = 1 << 34  # bytes of a file: 16 GiB; a sparse file can be of any size and take no room on the disk
_TOO_LARGE = f"a file of {{:.0f}} GB, where at most {_LARGEST / 1e9:.0f} GB are saved"
_HDF5 = b"\x89HDF\r\n\x1a\n"


def pack(values: Mapping[str, Any], arrays: Mapping[str, np.ndarray], kind: str = "estimator") -> bytes:
    """Return the bytes of a file of a ``kind`` with values of JSON and contiguous, little-endian arrays."""
    from safetensors import numpy

    text = json.dumps({"format": kind, "version": VERSION, "library": __version__, **values})
    seal = np.frombuffer(digest(text, arrays), np.uint8)
    content = numpy.save({**arrays, _DIGEST: seal}, {_TEXT: text})
    if len(content) > _LARGEST:
        raise ValueError(f"{_TOO_LARGE.format(len(content) / 1e9)}; keep fewer draws or fewer rows")
    _text(content)
    return content


def digest(text: str, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the digest of a text and of arrays, whatever their order."""
    found = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        raw: Any = array.reshape(-1).view(np.uint8)
        found.update(raw)
    return found.digest()


def read(path) -> bytes:
    """Return the bytes of a file, or raise a ValueError where its length or its beginning is not as `pack` has them."""
    with Path(path).open("rb") as file:
        length = os.fstat(file.fileno()).st_size
        start = file.read(9)
        size = int.from_bytes(start[:8], "little")  # of the header
        if start.startswith(_HDF5):
            cure = "read it with the version that wrote it, or fit the estimator anew"
            raise ValueError(f"an HDF5 file, as bayesgen 0.2.0 and older saved estimators: {cure}")
        if start[8:] != b"{" or size > _HEADER:
            raise ValueError("not a file that bayesgen has saved")
        if length > _LARGEST:
            raise ValueError(f"{_TOO_LARGE.format(length / 1e9)}: bayesgen has not written it")
        if size > length - 8:
            raise ValueError("the file is damaged: its end is missing; take a copy, or fit anew")
        file.seek(0)
        try:
            return file.read(length)
        except MemoryError:
            raise ValueError(f"its {length / 1e9:.2g} GB do not fit into memory") from None


def unpack(content: bytes, kind: str = "estimator") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the values and the arrays of a file of a ``kind``, or raise a ValueError."""
    from safetensors import SafetensorError, numpy

    text = _text(content)
    try:
        arrays = numpy.load(content)
    except (SafetensorError, KeyError, ValueError) as error:
        raise ValueError(f"the file is damaged: {error!s:.300}; take a copy, or fit anew") from error
    if _DIGEST not in arrays:
        raise ValueError("not a file that bayesgen has saved")
    if arrays.pop(_DIGEST).tobytes() != digest(text, arrays):
        raise ValueError("the file is damaged: what it says does not fit its checksum; take a copy, or fit anew")
    _bounded(text.encode())
    try:
        values = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its text is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise ValueError("its text is no JSON object")
    if values.get("version") != VERSION:
        found = f"written in format {values.get('version')!r:.20} by bayesgen {values.get('library')!s:.20}"
        raise ValueError(f"{found}; this version reads format {VERSION}: read it with that version")
    if values.get("format") != kind:
        raise ValueError(f"this file holds no {kind}: its format is {values.get('format')!r:.100}")
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise ValueError(f"the array {name!r:.100} is of {array.dtype} numbers")
        if array.dtype == bool:  # of any byte, where NumPy counts on 0 and 1
            arrays[name] = array.view(np.uint8) != 0
    return values, arrays


def _text(content: bytes) -> str:
    """Return the text in the header of a file, or raise a ValueError where it would make too many objects."""
    header = content[8 : 8 + int.from_bytes(content[:8], "little")]
    _bounded(header)
    try:
        whole = header.decode("ascii")
        text, end = json.JSONDecoder().raw_decode(whole, len(_BEGINNING)) if whole.startswith(_BEGINNING) else (None, 0)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the file is damaged: {error!s:.300}; take a copy, or fit anew") from error
    if not isinstance(text, str):
        raise ValueError("not a file that bayesgen has saved")
    if whole.count("{", end) > _ARRAYS:
        raise ValueError(f"it has more than {_ARRAYS} arrays")
    return text


def _refuse(word):
    raise ValueError(f"{word} is no JSON")


def _bounded(text: bytes) -> None:
    """Raise a ValueError where a text of JSON is too long, or would make too many objects."""
    if len(text) > _HEADER or sum(map(text.count, (b",", b"[", b"{"))) > _VALUES:
        raise ValueError(f"its header has more than {_HEADER // 10**6} MB, or {_VALUES} values")
