"""Who has what: `python notebooks/grade.py FOLDER` runs returned copies of notebooks/student and writes grades.csv.

It runs code of strangers, with your rights: take a machine or a container that holds nothing of value. Each copy has a
process and an empty folder of its own, and a time limit. What its cells give to `check` comes back as values, and the
checks of the notebook in this folder judge them, so a changed check in a copy changes nothing. In the table a text that
a spreadsheet could take for a formula begins with an apostrophe.
"""

import argparse
import contextlib
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

STUDENT = {path.stem: path for path in (Path(__file__).resolve().parent / "student").glob("*.ipynb")}
CHILD = """import ast, asyncio, inspect, json, sys
cells, kept = json.load(sys.stdin), open(sys.argv[1], "a", encoding="utf-8", buffering=1)
def check(number, *values):
    plain = [value.tolist() if hasattr(value, "tolist") else value for value in values]
    print(json.dumps([number, plain], default=str), file=kept)
space = {"__name__": "__main__"}
for cell in cells:
    space["check"] = check
    try:
        done = eval(compile(cell, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), space)
        inspect.iscoroutine(done) and asyncio.run(done)
    except (Exception, SystemExit) as error:  # the cells below may still have answers
        print(json.dumps(f"{type(error).__name__}: {error}"[:200]), file=kept)
"""


def code(path):
    """Return the code cells of a notebook, without lines for the shell and the notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return ["\n".join(line for line in text.split("\n") if not line.startswith(("%", "!"))) for text in texts]


def run(cells, seconds):
    """Run cells in a process of their own; return what they gave to `check`, and the last thing that went wrong."""
    with tempfile.TemporaryDirectory() as kept, tempfile.TemporaryDirectory() as room:
        told = Path(kept, "told")
        told.touch()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.PIPE}
        command, environment = [sys.executable, "-c", CHILD, str(told)], os.environ | {"MPLBACKEND": "Agg"}
        process = subprocess.Popen(command, cwd=room, env=environment, text=True, start_new_session=True, **quiet)
        late = ""
        try:
            process.communicate(json.dumps(cells), timeout=seconds)
        except subprocess.TimeoutExpired:
            late = f"not done after {seconds:g} s"
        with contextlib.suppress(ProcessLookupError, AttributeError):  # what it started ends with it
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        lines = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
    wrong = [line for line in lines if isinstance(line, str)]
    return [line for line in lines if isinstance(line, list)], late or (wrong or [""])[-1]


def grade(path, seconds):
    """Return notebook, for each exercise that has a check "right", "not yet" or "", and a remark."""
    cells = code(path)
    name = next(iter(re.findall(r"^SALT = '(.+)'$", "\n".join(cells), re.MULTILINE)), None)
    if name not in STUDENT:
        return "", {}, "no copy of a notebook for students: its cell of checks is missing"
    checker: dict = {}
    exec(next(cell for cell in code(STUDENT[name]) if "def check(" in cell), checker)
    given, remark = run(cells, seconds)
    found = dict.fromkeys(checker["CHECKS"], "")
    for number, values in given:
        if found.get(number, "right") == "right" or all(value is None for value in values):
            continue
        said = io.StringIO()
        if not re.search(r"e[+-]?\d{4}", str(values), re.IGNORECASE):  # a number that would take for ever
            with contextlib.redirect_stdout(said):
                checker["check"](number, *values)
        found[number] = "right" if said.getvalue().endswith(": right.\n") else "not yet"
    return name, found, remark


def guarded(text):
    """Put an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{text}" if str(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def main(folder, output, seconds):
    """Grade every notebook below a folder; the path of a copy says whose it is."""
    print("This runs the code of every copy, with your rights.", file=sys.stderr)
    rows, numbers = [], sorted({number for path in STUDENT.values() for number in _numbers(path)})
    for path in sorted(one for one in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in one.parts):
        try:
            name, found, remark = grade(path, seconds)
        except Exception as error:  # a damaged file is a line of the table, too
            name, found, remark = "", {}, f"cannot be graded: {type(error).__name__}"
        right = sum(one == "right" for one in found.values())
        copy = str(path.relative_to(folder))
        rows.append({"copy": copy, "notebook": name, "right": right, "of": len(found), **found, "remark": remark})
        print(f"{copy}: {right} of {len(found)}. {remark}", file=sys.stderr)
    with output.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, ["copy", "notebook", "right", "of", *numbers, "remark"], restval="")
        table.writeheader()
        table.writerows({column: guarded(text) for column, text in row.items()} for row in rows)


def _numbers(path):
    return map(int, re.findall(r"^check\((\d+)", "\n".join(code(path)), re.MULTILINE))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=Path("grades.csv"))
    parser.add_argument("--seconds", type=float, default=300, help="time limit of one copy")
    main(**vars(parser.parse_args()))
