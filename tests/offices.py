"""Files as offices write them, and the commands that read them."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesgen.cli import app


def written(tmp_path, columns, sep=";", name="t.csv"):
    """Write columns of text, repeated to 60 rows, beside a number and a class; return the path."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: np.resize(np.array(texts, object), 60) for name, texts in columns.items()})
    frame = frame.assign(w=rng.normal(size=60).round(3), y=np.resize(["u", "v", "v"], 60))
    frame.to_csv(tmp_path / name, index=False, sep=sep)
    return tmp_path / name


def excel(path, **sheets):
    """Write sheets of rows, each a list of cells, to an Excel file; return its path."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def run(*arguments):
    result = CliRunner().invoke(app, [str(word) for word in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())
