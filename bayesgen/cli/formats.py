"""Formats of the files that commands write: pictures, and predictions as the name of their file says."""

import bz2
import contextlib
import gzip
import itertools
import lzma
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from bayesgen.estimators.streaming import parquet_writer
from bayesgen.files import disk
from bayesgen.sheets.files import PARQUET
from bayesgen.tables.arrow import pa

# Of each of these formats several members, one after the other, are one file.
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
_COMPRESS[".zst"] = lambda data: pa.compress(data, codec="zstd", asbytes=True)


def writing(output: Path):
    """Make the folder of an output, and give a file to write to that is there as a whole when all is written."""
    output.parent.mkdir(parents=True, exist_ok=True)
    return disk.writing(output)


def check_ending(output: Path, what: str, endings: Sequence[str], option: str = "--output") -> None:
    """Raise ValueError, before anything is read, unless the name of an output ends as ``what`` it will hold does."""
    try:
        disk.check_ending(output, what, endings)
    except ValueError as error:
        raise ValueError(f"{option} {error}") from None


def check_picture(output: Path) -> None:
    """Raise ValueError, before anything is drawn, unless the name of a picture ends as a format that can be drawn."""
    from matplotlib.backend_bases import FigureCanvasBase

    if output.suffix.lower().lstrip(".") not in FigureCanvasBase.filetypes:
        check_ending(output, "a picture", (".png", ".svg", ".pdf"))


def write(frames: Iterable[Any], output: Path) -> tuple[int, list[str]]:
    """Write tables below each other, with a column of row numbers before; return the number of rows, and the columns.

    The file is there as a whole or not at all: Parquet or CSV by its name, compressed where the name says so; "-" is
    the standard output, as CSV.
    """
    count, columns = 0, []
    with _writer(output) as write_one:
        for frame in frames:
            frame.insert(0, "row", np.arange(count, count + len(frame)))
            write_one(frame)
            count, columns = count + len(frame), list(frame.columns)
    return count, columns


def named(found, names, place: int = 0):
    """Insert the columns that name the rows at a place: a name stands behind "id_" where another column has it."""
    for j, name in enumerate(names, place):
        heading = name
        while heading in ("row", *found.columns):
            heading = f"id_{heading}"
        found.insert(j, heading, names[name].to_numpy())
    return found


@contextlib.contextmanager
def _writer(output: Path) -> Iterator[Callable[[Any], object]]:
    """Give the function that writes one table of several."""
    header = itertools.chain([True], itertools.repeat(False))  # of the first table alone

    def text(frame) -> bytes:
        return frame.to_csv(index=False, header=next(header)).encode()

    suffix = output.suffix.lower()
    if str(output) == "-":
        yield lambda frame: typer.echo(text(frame), nl=False)
        return
    check_ending(output, "a file of predictions", (".csv", ".txt", *PARQUET, *_COMPRESS, ".zip"))
    with writing(output) as file:
        if suffix in PARQUET:
            with parquet_writer(file) as write_one:
                yield write_one
        elif suffix == ".zip":
            inside: Any = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED)  # a stream is enough, says its documentation
            with inside, inside.open(output.stem, "w", force_zip64=True) as member:
                yield lambda frame: member.write(text(frame))
        else:
            compress = _COMPRESS.get(suffix, bytes)
            yield lambda frame: file.write(compress(text(frame)))
