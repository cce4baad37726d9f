"""Every notebook runs from its first cell to its last: `pytest -m notebook`."""

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


def test_there_are_nine():
    assert len(NOTEBOOKS) == 9
