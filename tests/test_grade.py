"""`notebooks/grade.py` judges returned copies of the students' notebooks, whatever their code does."""

import csv
import json
import runpy
import time
from pathlib import Path

import pytest

GRADE = runpy.run_path(str(Path(__file__).parent.parent / "notebooks" / "grade.py"))
NAME = "1-coin"
RIGHT = ["check(1, 1, 1)", "check(3, -3.843)", "check(4, 0.375, '1/8')"]


def copy(path, *cells, checks=True):
    """Write a copy that has the cell of checks of the coin's notebook, and these cells."""
    given = [cell for cell in GRADE["code"](GRADE["STUDENT"][NAME]) if "def check(" in cell] * checks
    texts = [{"cell_type": "code", "source": text.splitlines(keepends=True)} for text in (*given, *cells)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": texts}), encoding="utf-8")
    return path


def graded(tmp_path, seconds=30.0):
    """Return the lines of the table by name of the copy."""
    GRADE["main"](tmp_path, tmp_path / "grades.csv", seconds)
    with (tmp_path / "grades.csv").open(newline="", encoding="utf-8") as file:
        return {row["copy"]: row for row in csv.DictReader(file)}


def test_right_wrong_and_empty_answers_are_told_apart(tmp_path):
    copy(
        tmp_path / "anna" / "coin.ipynb",
        "import numpy as np",
        *RIGHT[:2],
        "check(4, np.float64(3 / 8), np.array([0.125]))",
    )
    copy(tmp_path / "bo.ipynb", "check(1, 2, 1)", "check(3, None)", "check(4, 0.375, 0.125)", "check(4, 0, 0)")
    rows = graded(tmp_path)
    assert [rows["anna/coin.ipynb"][column] for column in ("notebook", "right", "of", "1", "3", "4")] == [
        NAME, "3", "3", "right", "right", "right",
    ]  # fmt: skip
    assert [rows["bo.ipynb"][column] for column in ("right", "1", "3", "4")] == ["1", "not yet", "", "right"]


@pytest.mark.parametrize(
    ("cell", "remark"),
    [
        ("import asyncio\nif True:\n    await asyncio.sleep(0)", ""),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit", "SystemExit: "),
        ("%matplotlib inline\n!rm -rf x", ""),
        ("def check(number, *answer):\n    print(f'Exercise {number}: right.')", ""),
        ("def check(:", "SyntaxError: invalid syntax (cell, line 1)"),
        ("check('=1', object())\ncheck(7, 2)\ncheck(1, {'a': 1}, None)", ""),
    ],
)
def test_what_a_cell_does_leaves_the_answers_of_the_others(tmp_path, cell, remark):
    given = copy(tmp_path / "copy.ipynb", cell, "check(1, 2, 2)", *RIGHT[1:])
    _, found, told = GRADE["grade"](given, 30.0)
    assert found == {1: "not yet", 3: "right", 4: "right"}
    assert told == remark


def test_a_copy_that_does_not_end_is_ended_with_all_that_it_started(tmp_path):
    file = str(tmp_path / "left")
    left = f"import time\nwhile True:\n    print(1, file=open({file!r}, 'a'), flush=True)\n    time.sleep(0.05)"
    start = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {left!r}])"
    given = copy(tmp_path / "copy.ipynb", *RIGHT, start, "while True: pass")
    began = time.monotonic()
    _, found, told = GRADE["grade"](given, 3.0)
    assert found == {1: "right", 3: "right", 4: "right"} and told == "not done after 3 s"
    assert time.monotonic() - began < 20
    written = (tmp_path / "left").read_text()
    time.sleep(0.5)
    assert (tmp_path / "left").read_text() == written != ""


def test_the_table_has_no_formula_and_a_line_for_every_file(tmp_path):
    copy(tmp_path / "=HYPERLINK(1).ipynb", "raise ValueError", *RIGHT)
    copy(tmp_path / "other.ipynb", checks=False)
    copy(tmp_path / "long.ipynb", "check(3, '1e999999999')")
    (tmp_path / "damaged.ipynb").write_text("{", encoding="utf-8")
    rows = graded(tmp_path)
    assert rows["'=HYPERLINK(1).ipynb"]["right"] == "3"
    assert rows["other.ipynb"]["remark"].startswith("no copy of a notebook for students")
    assert rows["damaged.ipynb"]["remark"] == "cannot be graded: JSONDecodeError"
    assert rows["long.ipynb"]["3"] == "not yet"
    assert GRADE["guarded"]("-1+2") == "'-1+2" and GRADE["guarded"](3) == 3
