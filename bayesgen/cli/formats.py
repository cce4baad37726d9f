"""Formats of the files that commands write: pictures, and predictions as the name of their file says."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

from bayesgen.estimators import streaming
from bayesgen.files import disk


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
    if str(output) == "-":
        return streaming.write(frames, typer.get_binary_stream("stdout"), Path("-.csv"))
    check_ending(output, "a file of predictions", (".txt", *streaming.ENDINGS))
    with writing(output) as file:
        return streaming.write(frames, file, output)


def named(found, names, place: int = 0):
    """Insert the columns that name the rows at a place: a name stands behind "id_" where another column has it."""
    for j, name in enumerate(names, place):
        heading = name
        while heading in ("row", *found.columns):
            heading = f"id_{heading}"
        found.insert(j, heading, names[name].to_numpy())
    return found
