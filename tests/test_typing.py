"""The code of users in `tests/typing/`, which type checkers read, is README's and that of a page, and runs."""

import re
import runpy
from importlib import resources
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def code(text: str) -> list[str]:
    """Lines that are not empty, without what the copy says to a type checker."""
    return [line.split("  # pyright: ")[0] for line in text.splitlines() if line.strip()]


def test_the_readme_that_is_checked_is_the_readme():
    pages = [HERE.parent / "README.md", HERE.parent / "docs" / "howto" / "write-models.md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    blocks = re.findall(r"```(?:python|\{code-cell\})\n(.*?)```", text, re.DOTALL)
    checked = (
        (HERE / "typing" / "readme.py").read_text(encoding="utf-8").partition("# ruff: noqa")[2].partition("\n")[2]
    )
    assert code("\n".join(blocks)) == code(checked), "copy the blocks of both to tests/typing/readme.py"


@pytest.mark.parametrize("name", ["own_leaf", "priors", "use"])
def test_it_runs(name):
    runpy.run_path(str(HERE / "typing" / f"{name}.py"))


def test_the_package_says_that_it_has_types():
    assert resources.files("bayesgen").joinpath("py.typed").is_file()
