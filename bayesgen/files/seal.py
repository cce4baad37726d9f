"""The seal behind the bytes of a file, which is checked before anything reads them.

A flipped bit can hang HDF5, or let it ask for any amount of memory. The last 56 bytes of a saved file are therefore
these: "bayesgen end", the version of the format, the length of what stands before, and the SHA-256 of all of that. HDF5
has the length of a file in its own header and leaves what follows alone, so netCDF tools read a sealed file as it is; a
tool that changes it breaks the seal. A seal stops accidents, not malice: anyone can compute it.
"""

import hashlib
import os
import struct
from pathlib import Path

from bayesgen.files.disk import regular

VERSION = 2  # of the format of saved files and of pickles
_END = struct.Struct("<12sIQ")
_MAGIC = b"bayesgen end"
_SIZE = _END.size + 32
_HDF5 = b"\x89HDF\r\n\x1a\n"


def seal(content: bytes, version: int = VERSION) -> bytes:
    """The bytes to write behind a content."""
    end = _END.pack(_MAGIC, version, len(content))
    digest = hashlib.sha256(content)
    digest.update(end)
    return end + digest.digest()


def unsealed(path) -> bytes:
    """Content of a file whose seal is whole.

    Raises
    ------
    ValueError
        If the file is damaged, is in another format, or was never sealed.
    """
    path = Path(path)
    regular(path)
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _SIZE, 0))
        end = file.read(_SIZE)
        magic, version, length = _END.unpack_from(end) if len(end) == _SIZE else (b"", 0, 0)
        file.seek(0)
        if magic != _MAGIC:
            raise ValueError(f"{path}: {_unknown(file)}")
        if length != size - _SIZE:
            raise ValueError(f"{path}: the file is damaged: {size - _SIZE} bytes where {length} were written")
        content = file.read(length)
    if seal(content, version) != end:
        raise ValueError(f"{path}: the file is damaged: its bytes do not fit their checksum; take a copy, or fit anew")
    if version != VERSION:
        raise ValueError(
            f"{path}: written in format {version} by a later version of bayesgen; this one reads format {VERSION}: "
            "update bayesgen"
        )
    return content


def _unknown(file) -> str:
    """What is wrong with a file that has no seal."""
    foreign = "not a file that an estimator of bayesgen was saved to"
    if file.read(len(_HDF5)) != _HDF5:
        return foreign
    content = file.read(1 << 26)
    if b"format_version" in content and b"checksum" in content:  # attributes of the first format
        return "written in format 1 by bayesgen 0.1.0: read it with that version, or fit the estimator anew"
    if b"bayesgen" in content:
        return "the file is damaged: its end is missing, or another program has changed it; take a copy, or fit anew"
    return f"the file is damaged, or {foreign}"
