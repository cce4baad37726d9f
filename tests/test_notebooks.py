"""Every notebook runs from its first cell to its last: `pytest -m notebook`."""

import importlib.util
import re
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.md"))
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    text, names = path.read_text(encoding="utf-8"), {"__name__": "__main__"}
    cells = CELL.findall(text)
    assert len(cells) == text.count("```{code-cell}") > 0
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # a notebook may show a warning on purpose
        for number, cell in enumerate(cells, 1):
            exec(compile(cell, f"{path.name}[{number}]", "exec"), names)
            plt.close("all")


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
def test_is_a_jupyter_notebook_with_the_same_cells(path):
    jupytext, nbformat = pytest.importorskip("jupytext"), pytest.importorskip("nbformat")
    notebook = nbformat.reads(jupytext.writes(jupytext.read(path), "ipynb"), as_version=4)
    nbformat.validate(notebook)
    code = [cell["source"].strip() for cell in notebook.cells if cell["cell_type"] == "code"]
    assert code == [cell.strip() for cell in CELL.findall(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_download_folds_solutions(path):
    """Beyond the exercises Jupyter shows summaries alone: words are folded, code and output are hidden."""
    pytest.importorskip("jupytext")
    nbformat = pytest.importorskip("nbformat")
    specification = importlib.util.spec_from_file_location("downloads", path.parent.parent / "docs" / "downloads.py")
    downloads = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(downloads)
    text = path.read_text(encoding="utf-8")
    notebook = downloads.notebook(text)
    nbformat.validate(notebook)
    begun = next(i for i, cell in enumerate(notebook.cells) if "## Exercises\n" in cell.source)
    assert not any(cell.metadata.get("jupyter") for cell in notebook.cells[:begun])
    for cell in notebook.cells[begun + 1 :]:
        if cell.cell_type == "code":
            assert cell.metadata["jupyter"] == {"source_hidden": True, "outputs_hidden": True}
        else:
            folded = cell.source.startswith("<details>\n<summary>Solution of ") and cell.source.endswith("</details>")
            assert folded or re.fullmatch(r"\*\*Solution of \d\*\*, in the hidden cell below", cell.source)
    code = [cell.source.strip() for cell in notebook.cells if cell.cell_type == "code"]
    assert code == [cell.strip() for cell in CELL.findall(text)]
    words = "".join(cell.source for cell in notebook.cells)
    assert "{doc}`" not in words and "](../" not in words  # a link leads to another notebook


def test_there_are_nine():
    assert len(NOTEBOOKS) == 9
