"""Every notebook runs from its first cell to its last: `pytest -m notebook`."""

import ast
import re
import sys
import types
import warnings
from pathlib import Path

import jupytext
import matplotlib as mpl
import nbformat
import numpy as np
import pandas as pd
import pytest

from docs import browser, downloads, lectures

DOCS = Path(__file__).parent.parent / "docs"
NOTEBOOKS = sorted((DOCS.parent / "notebooks" / "source").glob("*.md"), key=lambda path: int(path.stem.split("-")[0]))
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_its_solutions_pass_the_checks(path, monkeypatch, capsys):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    main = types.ModuleType("__main__")  # as in a kernel, where what a cell defines can be pickled
    monkeypatch.setitem(sys.modules, "__main__", main)
    text = path.read_text(encoding="utf-8")
    page = jupytext.reads(text, "md:myst")
    cells = [cell for cell in page.cells if cell.cell_type == "code"]
    assert len(cells) == len(CELL.findall(text)) == text.count("```{code-cell}") > 0
    downloads.ask(page)
    student = nbformat.read(path.parent.parent / "student" / f"{path.stem}.ipynb", as_version=4)
    checker: dict = {}
    for cell in student.cells:
        if "def check(" in cell.source:
            exec(cell.source, checker)
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # a notebook may show a warning on purpose
        for number, cell in enumerate((one for one in page.cells if one.cell_type == "code"), 1):
            capsys.readouterr()
            exec(compile(cell.source, f"{path.name}[{number}]", "exec"), vars(main))
            plt.close("all")
            if "check" in cell.metadata:
                answer = ast.literal_eval(capsys.readouterr().out)
                checker["check"](cell.metadata.check, *answer)
                assert capsys.readouterr().out == f"Exercise {cell.metadata.check}: right.\n"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_begins_with_the_question_and_ends_with_exercises(path):
    text = path.read_text(encoding="utf-8")
    assert text.index("**The question.**") < text.index("```{code-cell}")
    assert text.rindex("\n## Exercises\n") == text.rindex("\n## ")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_says_its_goal_and_what_is_needed_before(path):
    text = path.read_text(encoding="utf-8")
    assert text.index("**After this page**") < text.index("**Needed before:**") < text.index("**The question.**")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_exercise_has_a_solution(path):
    exercises = path.read_text(encoding="utf-8").split("\n## Exercises\n")[1]
    asked, *_ = exercises.partition("<details>")
    numbers = re.findall(r"^(\d+)\. ", asked, re.MULTILINE)
    assert numbers == re.findall(r"^<details>\n<summary>Solution of (\d+)</summary>\n\n", exercises, re.MULTILINE)
    assert len(numbers) == exercises.count("\n\n</details>\n") >= 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_is_that_of_its_source(path):
    """Outputs are renewed by `python docs/downloads.py`; words and code must be those of the source at any time."""
    target = path.parent.parent / f"{path.stem}.ipynb"
    committed = nbformat.read(target, as_version=4)
    nbformat.validate(committed)
    written = [(cell.cell_type, downloads.without_outputs(cell.source)) for cell in committed.cells]
    assert written == [(cell.cell_type, cell.source) for cell in downloads.notebook(path.read_text("utf-8")).cells], (
        f"write it again: python docs/downloads.py {path.stem}"
    )
    shown = [cell.source.strip() for cell in committed.cells if cell.cell_type == "code"][1:]
    folded = re.findall(r"^```python\n(.*?)\n```$", "\n".join(source for _, source in written), re.M | re.S)
    assert sorted(shown + folded) == sorted(cell.strip() for cell in CELL.findall(path.read_text("utf-8")))
    assert np.mean([len(cell.outputs) > 0 for cell in committed.cells if cell.cell_type == "code"]) > 0.5
    pictures = [
        one for cell in committed.cells for one in cell.get("outputs", []) if "image/png" in one.get("data", {})
    ]
    assert all(picture.metadata["image/png"]["alt"] for picture in pictures)
    words = "".join(cell.source for cell in committed.cells)
    assert "{doc}`" not in words and target.stat().st_size < 400_000
    for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", words):
        assert (target.parent / link).exists(), link


def test_the_first_notebook_says_what_begins_a_slide():
    source = NOTEBOOKS[0]
    made = downloads.notebook(source.read_text("utf-8"), slides=True)
    kinds = [cell.metadata["slideshow"]["slide_type"] for cell in made.cells]
    committed = nbformat.read(source.parent.parent / f"{source.stem}.ipynb", as_version=4)
    assert [cell.metadata["slideshow"]["slide_type"] for cell in committed.cells] == kinds
    headings = [cell.source.startswith("#") and "Exercises" not in cell.source for cell in made.cells]
    of_code = [cell.cell_type == "code" for cell in made.cells]
    assert [kind == "slide" for kind in kinds] == [h and not c for h, c in zip(headings, of_code, strict=True)]
    assert all(kind == "skip" for cell, kind in zip(made.cells, kinds, strict=True) if "<summary>" in cell.source)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_for_students_gives_nothing_away(path):
    text, made = path.read_text("utf-8"), downloads.notebook(path.read_text("utf-8"))
    asked = {int(number): [0.0] for number, *_ in downloads.CHECKED.findall(text)}
    expected = downloads.student(made, text, asked, path.stem)
    committed = nbformat.read(path.parent.parent / "student" / f"{path.stem}.ipynb", as_version=4)
    assert len(committed.cells) == len(expected.cells)
    for cell, other in zip(committed.cells, expected.cells, strict=True):
        assert not cell.get("outputs")
        if not cell.source.startswith(("from fractions", "check(")):  # digests, and the number of values, need a run
            assert downloads.without_outputs(cell.source) == other.source
        assert not any(f"<summary>Solution of {number}<" in cell.source for number in asked)


def test_a_check_takes_the_answer_and_its_neighbours_alone(capsys):
    text = "% check 2, 2 digits: x\n% hint 2: Count again.\n% check 3, label: y\n% hint 3: Who else?\n"
    text += "% check 4, 0 digits: z\n% hint 4: A count has no neighbours.\n"
    text += (
        "% check 5, 3 digits: u\n% hint 5: Nor has an exact answer.\n% check 6, 1 digit: v\n% hint 6: Or a short one.\n"
    )
    kept = downloads.checks(text, {2: [0.6667, -0.111], 3: ["Trump"], 4: [3], 5: [0.375, -0.5], 6: [0.097]}, "a page")
    space: dict = {}
    exec(downloads.CHECK.format(salt="a page", checks=repr(kept)), space)
    right = [
        (2, 2 / 3, -0.11),
        (2, 0.66, -0.12),
        (2, "2/3", "-1 / 9"),
        (3, " trump"),
        (3, ["Trump"]),
        (4, np.array([3])),
    ]
    right += [(5, "3/8", "-1/2"), (5, np.float64(0.375), [-0.5]), (6, 0.1), (3, pd.Series(["Trump"], index=["most"]))]
    wrong = [(2, 0.65, -0.11), (2, 0.67), (2, None, None), (3, "Clinton"), (3, ["Trump", "Clinton"]), (3, []), (4, 4)]
    wrong += [(4, np.zeros(3)), (5, 0.374, -0.5), (5, 0.375, "1/0"), (6, 0.0), (6, 0.2)]
    for number, *answer in right + wrong:
        space["check"](number, *answer)
    said = capsys.readouterr().out.splitlines()
    assert ["right" in line for line in said] == [True] * len(right) + [False] * len(wrong)
    assert said[len(right)] == "Exercise 2: not yet. Count again."


def test_each_exercise_has_a_check_or_a_model_answer_as_the_page_for_teachers_counts():
    texts = [path.read_text("utf-8") for path in NOTEBOOKS]
    exercises = sum(text.count("<summary>Solution of ") for text in texts)
    checked = sum(len(downloads.CHECKED.findall(text)) for text in texts)
    within = sum(len(re.findall(r"^\*\*Exercise, with a pencil\.\*\*", text, re.MULTILINE)) for text in texts)
    students = [nbformat.read(DOCS.parent / "notebooks/student" / f"{path.stem}.ipynb", 4) for path in NOTEBOOKS]
    cells = [cell.source for student in students for cell in student.cells]
    assert sum(cell.startswith("check(") for cell in cells) == checked
    assert sum(cell.startswith("<details>\n<summary>Model answer to") for cell in cells) == exercises - checked
    assert sum(cell.startswith("<details>\n<summary>Answer<") for cell in cells) >= within
    words = " ".join((DOCS / "teachers.md").read_text("utf-8").split())
    assert f"{checked} of the {exercises} exercises at their ends" in words
    assert f"The other {exercises - checked} have a model answer" in words
    assert f"The {within} exercises within the sections" in words


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_line_of_code_is_cut_by_the_page(path):
    lines = [line for cell in CELL.findall(path.read_text("utf-8")) for line in cell.splitlines()]
    assert [line for line in lines if len(line) > 79] == []


def test_all_notebooks_are_small():
    notebooks = list((DOCS.parent / "notebooks").glob("*.ipynb"))
    assert sorted(path.stem for path in NOTEBOOKS) == sorted(path.stem for path in notebooks)
    assert sum(path.stat().st_size for path in notebooks) < 4_000_000


def test_each_subject_of_the_slides_is_taught_and_its_numbers_are_computed_there():
    taught = lectures.lines()
    assert len(taught) == 79
    for line in taught:
        title, *shown = line.found()
        assert title and len(shown) == len({one for number in line.numbers for one in shown if number in one})


def test_the_anchors_of_the_lectures_exist():
    text = (DOCS / "lectures.md").read_text("utf-8")
    links = re.findall(r"\]\(([\w/-]+\.md)(?:#([\w-]+))?\)", text)
    assert len(links) > 150
    for page, anchor in links:
        words = (DOCS / page).read_text("utf-8")
        assert not anchor or anchor in lectures.anchors(words), f"{page}#{anchor}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_a_notebook_lead_to_anchors(path):
    for page, anchor in re.findall(r"\]\(([\w./-]+\.md)#([\w-]+)\)", path.read_text("utf-8")):
        there = DOCS / "tutorials" / page if "/" not in page else DOCS / page.removeprefix("../")
        assert anchor in lectures.anchors(there.read_text("utf-8")), f"{page}#{anchor}"


def test_what_opens_in_the_browser_has_the_files_that_notebooks_link_to(tmp_path):
    folder = browser.contents(tmp_path)
    made = sorted((folder / "notebooks").rglob("*.ipynb"))
    assert len(made) == 2 * len(NOTEBOOKS)
    for path in made:
        words = "".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        for link in re.findall(r'(?:href|src)="([\w./-]+)"', words):
            assert (path.parent / link).is_file(), link
