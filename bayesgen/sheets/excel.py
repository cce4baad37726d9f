"""Sheets of Excel files as text, a row a line, so that they are read as CSV is; pandas opens them with openpyxl."""

import csv
import datetime
import io
import re
import zipfile
from typing import Any

import pandas as pd

from bayesgen.core.errors import Argument, InputError, listed

_COMMA = re.compile(r"^([<>\u2264\u2265]?=?\s*-?\d+),(\d{1,2}|\d{4,})$")  # 1,234 may be of thousands


def sheet_as_csv(content: bytes, sheet: str) -> bytes:
    """Return a sheet of an Excel file, by default the one that is not empty, as CSV with commas between fields.

    Numbers are written as programs write them, dates as 2024-01-31, durations as 1:30:00. Raise ValueError without
    openpyxl, of a damaged file, and where the sheet is not there or nothing tells which is meant.
    """
    try:
        how: dict = {"sheet_name": None, "header": None, "dtype": object, "na_filter": False}
        sheets: dict = pd.read_excel(io.BytesIO(content), engine="openpyxl", **how)
    except ImportError:
        raise ValueError("this is an Excel file (xlsx): pip install 'bayesgen[excel]' lets pandas read it") from None
    except (ValueError, TypeError, KeyError, OSError, SyntaxError, zipfile.BadZipFile) as error:  # of XML: SyntaxError
        raise ValueError(f"an Excel file that is damaged: {error}") from error
    if sheet and sheet not in sheets:
        raise ValueError(f"an Excel file without a sheet {sheet!r}; it has {listed(sheets)}")
    filled = [sheet] if sheet else [name for name, cells in sheets.items() if cells.size]
    if len(filled) > 1:
        several = f"an Excel file with several sheets, {listed(filled)}: give "
        raise InputError(several, Argument("sheet", filled[0]), " or another")
    text = io.StringIO("sep=,\n")
    text.seek(0, io.SEEK_END)
    columns = [_fields(cells.tolist()) for name in filled for _, cells in sheets[name].items()]
    csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
    return text.getvalue().encode()


def _fields(cells: list) -> list[str]:
    """Return the cells of a column as text, <0,5 beside numbers as <0.5: only text has the signs of the office."""
    numbers = any(isinstance(cell, int | float) for cell in cells)
    return [_COMMA.sub(r"\1.\2", text) if numbers else text for text in map(_field, cells)]


def _field(cell: Any) -> str:
    if isinstance(cell, float):
        return str(int(cell)) if cell % 1 == 0 and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime.timedelta):
        hours, seconds = divmod(abs(cell).total_seconds(), 3600)
        return f"{'-' * (cell.days < 0)}{int(hours)}:{int(seconds // 60):02}:{seconds % 60:02.0f}"
    return str(cell).removesuffix(" 00:00:00")
