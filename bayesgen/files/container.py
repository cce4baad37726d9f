"""Named arrays and a text as netCDF, packed in memory, and unpacked within limits.

The text is JSON, whose "arrays" declare the type and shape of every array; HDF5 is asked only for those, and only where
what it holds is as declared, plain (in one piece, not compressed, not linked from elsewhere) and no larger than the
file. HDF5 itself is C, and what it does with a crafted file before it answers nobody can promise. Run as a script, this
file unpacks what it reads, under limits of memory and time: see `unpack_apart`. It imports nothing of bayesgen, so that
the limited process starts fast.
"""

import contextlib
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

TEXT = "specification"
_BYTES, _VALUES = 1 << 26, 1 << 23  # of JSON: 64 MiB and eight million values are a million columns
_MEMORY, _SECONDS = 1 << 30, 20  # of a limited process, beside three times the file


def declared(arrays: Mapping[str, np.ndarray]) -> dict[str, list]:
    """Return type and shape of arrays, as JSON has them."""
    return {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}


def pack(text: str, arrays: Mapping[str, np.ndarray], attributes: Mapping[str, Any]) -> bytes:
    """Return the bytes of a netCDF file; `checked` takes its text, which declares the arrays."""
    import h5netcdf

    content, letters = io.BytesIO(), np.frombuffer(text.encode("ascii"), "S1")
    checked(letters.tobytes())
    with h5netcdf.File(content, "w") as file:
        file.attrs.update(attributes)
        for name, array in {TEXT: letters, **arrays}.items():
            if array.size:  # an axis of length 0 would be one that can grow
                dims = [f"axis{axis}_{name}" for axis in range(array.ndim)]
                file.dimensions.update(zip(dims, array.shape, strict=True))
                file.create_variable(name, dims, data=array)
    return content.getvalue()


def checked(text: bytes) -> dict:
    """Read a text as JSON; raise a ValueError where it is too long, or no JSON object."""
    if len(text) > _BYTES or sum(map(text.count, (b",", b"[", b"{"))) > _VALUES:
        raise ValueError(f"the specification has more than {_BYTES >> 20} MiB, or {_VALUES} values")
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the specification is no JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("arrays"), dict):
        raise ValueError("the specification declares no arrays")
    return found


def _refuse(word):
    raise ValueError(f"{word} is no JSON")


def unpack(content: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the specification and the arrays of a netCDF file in memory, or raise a ValueError."""
    return _unpack(content)[1:]


def _unpack(content: bytes) -> tuple[bytes, dict, dict[str, np.ndarray]]:
    """Return the text, the specification that it holds, and the arrays."""
    import h5py

    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            left, letters = len(content), _dataset(file, TEXT)
            if letters.dtype != "S1" or len(letters.shape) != 1 or letters.shape[0] > min(left, _BYTES):
                raise ValueError("its specification is no text")
            text, arrays = _values(letters).tobytes(), {}
            specification = checked(text)
            for name, declaration in specification["arrays"].items():
                dtype, shape = _declaration(name, declaration)
                if not math.prod(shape):
                    arrays[name] = np.empty(shape, dtype)
                    continue
                found = _dataset(file, name)
                left -= dtype.itemsize * math.prod(shape)
                if found.dtype != dtype or found.shape != shape or left < 0:
                    raise ValueError(f"the array {name} is not of the type and shape that the specification declares")
                arrays[name] = _values(found)
    except Exception as error:  # HDF5 raises whatever it stumbles over in a damaged file
        raise ValueError(f"the file is damaged: {error}") from error
    return text, specification, arrays


def _declaration(name, declaration) -> tuple[np.dtype, tuple[int, ...]]:
    """Return the type and shape that JSON declares, or raise a ValueError where they are none of ours."""
    kind, shape = declaration if isinstance(declaration, list) and len(declaration) == 2 else (None, None)
    right = isinstance(kind, str) and re.fullmatch(r"[<>|][biuf]\d{1,2}", kind) and re.fullmatch(r"\w+", name)
    if not right or not isinstance(shape, list) or len(shape) > 32:
        raise ValueError(f"the array {name!r} is declared as {declaration!r:.100}")
    if any(type(n) is not int or not 0 <= n < 1 << 48 for n in shape):
        raise ValueError(f"the array {name!r} is declared with the shape {shape!r:.100}")
    return np.dtype(kind), tuple(shape)


def _dataset(file, name: str) -> Any:
    """Return a dataset that stands in the file itself, in one piece; as HDF5's own object, which is fast."""
    from h5py import h5d, h5l  # pyright: ignore[reportAttributeAccessIssue]  # compiled, without stubs

    place, found = name.encode(), None
    if place in file.id and file.id.links.get_info(place).type == h5l.TYPE_HARD:
        with contextlib.suppress(KeyError, TypeError, ValueError):  # it is no dataset
            found = h5d.open(file.id, place)
    how = None if found is None else found.get_create_plist()
    if how is None or how.get_layout() not in (h5d.CONTIGUOUS, h5d.COMPACT) or how.get_external_count():
        raise ValueError(f"the array {name} is missing, or not in one piece")
    return found


def _values(dataset) -> np.ndarray:
    """Return the values of a dataset."""
    from h5py import h5s

    result = np.empty(dataset.shape, dataset.dtype)
    dataset.read(h5s.ALL, h5s.ALL, result)
    return result


def unpack_apart(content: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """Do `unpack` in a process of its own, limited in memory and time; this process never shows HDF5 the bytes."""
    if os.name != "posix":
        raise OSError("a process with limits of memory and time needs a POSIX system, such as Linux")
    with tempfile.TemporaryFile() as results:
        try:
            done = subprocess.run(
                [sys.executable, "-P", __file__],
                input=content,
                stdout=results,
                stderr=subprocess.PIPE,
                timeout=_SECONDS,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # every thread asks for memory
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"HDF5 did not finish reading it within {_SECONDS} s") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise ValueError(said.removeprefix("ValueError: ") or f"HDF5 ended with the signal {-done.returncode}")
        results.seek(0)
        found = results.read()
    start = int.from_bytes(found[:8], "little") + 8
    specification, arrays = checked(found[8:start]), {}
    for name, declaration in specification["arrays"].items():
        dtype, shape = _declaration(name, declaration)
        end = start + dtype.itemsize * math.prod(shape)
        arrays[name] = np.frombuffer(found[start:end], dtype).reshape(shape).copy()
        start = end
    return specification, arrays


def _limit(size: int) -> None:
    """Limit this process for a file of a size."""
    import resource

    limits = {
        resource.RLIMIT_AS: _MEMORY + 3 * size,
        resource.RLIMIT_CPU: _SECONDS,
        resource.RLIMIT_FSIZE: 2 * size + (1 << 20),
        resource.RLIMIT_CORE: 0,
    }
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, limit))


def _main() -> None:
    import h5py  # noqa: F401  (before the limits, which are for the file)

    content = sys.stdin.buffer.read()
    _limit(len(content))
    sys.tracebacklimit = 0
    text, _, arrays = _unpack(content)
    out = sys.stdout.buffer
    out.write(len(text).to_bytes(8, "little") + text)
    for array in arrays.values():
        out.write(np.ascontiguousarray(array).tobytes())


if __name__ == "__main__":
    _main()
