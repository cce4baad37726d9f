"""Files of tables, known by their first bytes: Parquet, or text that is compressed or not, in UTF-8 or UTF-16.

The name of a file says nothing that its content does not say better. What cannot be read is named, with a way to make a
table of it. What can be read once, such as a named pipe, is read once.
"""

import contextlib
import io
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bayesgen.core.errors import listed

_HEAD = 1 << 12  # bytes that tell what a file is
PARQUET_HEAD = b"PAR1\x15"  # of files with a footer in the clear; a header of CSV may begin with PAR1
_STREAMS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # decompressed while they are read
_STREAMS |= {b"BZh%d1AY&SY" % size: "bz2" for size in range(1, 10)}
_WHOLE = {b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip", b"PK\x05\x06": "zip"}  # decompressed at once
ENDINGS = {"gzip": ".gz", "bz2": ".bz2", "zstd": ".zst", "xz": ".xz", "zip": ".zip"}  # of names, by compression
_MARKS = {b"\xff\xfe\x00\x00": "utf-32", b"\x00\x00\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_EXCEL = "open it there and save it as 'CSV UTF-8', or pandas.read_excel(path).to_csv(...)"
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": ("an old Excel file (xls)", _EXCEL),
    b"ARROW1\x00": ("a Feather file", "pandas.read_feather(path).to_parquet('table.parquet')"),
    b"SQLite format 3\x00": ("a SQLite database", "sqlite3 -header -csv FILE 'select * from TABLE' > table.csv"),
    b"\x89HDF": ("an HDF5 or netCDF file", "where it is a saved model, name the table beside it; else export a CSV"),
    b"Obj\x01": ("an Avro file", "export it as CSV or Parquet"),
    b"%PDF-": ("a PDF document", "ask for the table itself, as CSV"),
    b"$FL2@(#)": ("an SPSS file", "pandas.read_spss(path).to_csv('table.csv', index=False)"),
    b"7z\xbc\xaf": ("a 7-zip archive", "unpack it"),
    b"Rar!\x1a": ("a RAR archive", "unpack it"),
}
_OFFICE = {"xl/": ("an Excel file (xlsx)", _EXCEL), "content.xml": ("an OpenDocument file (ods)", _EXCEL)}


@dataclass(frozen=True)
class Opened:
    """A file that can be read from its beginning as often as one likes.

    Attributes
    ----------
    parquet : bool
        True for Parquet, False for text.
    open : callable () -> file of bytes
        Begins to read it: Parquet as it is, text decompressed and in UTF-8.
    compressed : str
        How it is compressed, "" where it is not.
    """

    parquet: bool
    open: Callable[[], Any]
    compressed: str = ""


def opened(path: str | Path, content: bytes | None = None) -> Opened:
    """Tell what a file is by its first bytes, and how to read it.

    Parameters
    ----------
    path : str or Path
        The file, or a named pipe, which is read to its end at once.
    content : bytes, optional
        What was read already, in place of the file.

    Raises
    ------
    ValueError
        If it is a folder, or a kind of file that is not read; if it is compressed and damaged.
    OSError
        If it cannot be read.
    """
    if content is None and not stat.S_ISREG((found := os.stat(path)).st_mode):
        if stat.S_ISDIR(found.st_mode):
            raise ValueError("this is a folder, where a file is expected")
        content = Path(path).read_bytes()  # a pipe gives its bytes once
    if content is None:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    else:
        head = content[:_HEAD]

    def raw() -> Any:
        return pa.OSFile(os.fspath(path)) if content is None else pa.BufferReader(content)

    if head.startswith(PARQUET_HEAD):
        return Opened(True, raw)
    if foreign := _sign(head, _FOREIGN):
        raise ValueError(_named(foreign))
    if how := _sign(head, _STREAMS):
        with _damage(how), pa.CompressedInputStream(raw(), how) as stream:
            head = stream.read(_HEAD)
        return _text(head, lambda: pa.CompressedInputStream(raw(), how), how)
    if how := _sign(head, _WHOLE):

        def whole() -> Any:  # anew each time: of a folder of files at most one is in memory
            with raw() as file:
                return pa.BufferReader(_unpacked(file, how))

        with whole() as file:
            head = file.read(_HEAD)
        return _text(head, whole, how)
    return _text(head, raw)


def _text(head: bytes, raw: Callable[[], Any], compressed: str = "") -> Opened:
    """Return text in UTF-8 as it is, and text with the mark of another encoding decoded by it."""
    if code := _sign(head, _MARKS):

        def decoded() -> Any:
            with _damage(compressed), raw() as file:
                content = file.read()
            try:
                return pa.BufferReader(content.decode(code).encode())
            except UnicodeDecodeError as error:
                text = f"it begins as text in {code.upper()} does, and byte {error.start} is none"
                raise ValueError(text) from None

        return Opened(False, decoded, compressed)
    if foreign := _sign(head, _FOREIGN | {PARQUET_HEAD: ("a compressed Parquet file", "unpack it")}):
        raise ValueError(_named(foreign))
    if b"\x00" in head:
        raise ValueError(
            "it is no text, or text in UTF-16 without the mark that says so: iconv -f utf-16le -t utf-8 converts that"
        )
    return Opened(False, raw, compressed)


def _unpacked(file, how: str) -> bytes:
    """Return the content of a file that is decompressed at once."""
    with _damage(how):
        if how == "xz":
            import lzma

            return lzma.decompress(file.read())
        import zipfile

        with zipfile.ZipFile(io.BytesIO(file.read())) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
            for beginning, foreign in _OFFICE.items():
                if any(name.startswith(beginning) for name in names):
                    raise ValueError(_named(foreign))
            if len(names) != 1:
                raise ValueError(f"a zip archive of {len(names)} files, {listed(names)}: unpack it, and name one")
            return archive.read(names[0])


@contextlib.contextmanager
def _damage(how: str) -> Iterator[None]:
    """Turn whatever a decompressor raises over damaged bytes into one error; ValueErrors are errors already."""
    import lzma
    import zipfile
    import zlib

    broken = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)
    try:
        yield
    except broken as error:  # RuntimeError: a password, or a method of compression that Python has not
        if not how:
            raise
        raise ValueError(damaged(how, error)) from error


def damaged(how: str, error) -> str:
    """Return the message on a file that cannot be decompressed."""
    return f"compressed by {how}, and damaged, or cut off before its end: {error}"


def _named(foreign: tuple[str, str]) -> str:
    what, cure = foreign
    return f"this is {what} by its first bytes, neither CSV nor Parquet: {cure}"


def _sign(head: bytes, signs: dict[bytes, Any]) -> Any:
    return next((value for sign, value in signs.items() if head.startswith(sign)), None)
