"""What pages, notebooks and the service import is in the extra that README.md and the pages name for them."""

import ast
import functools
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n|---\n.*?---\n)*(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULES = {  # that another package's module imports when it is imported or called
    "numpyro.contrib.funsor": "funsor",
    "render_model": "graphviz",
    "to_netcdf": "h5netcdf",
    "to_zarr": "zarr",
}
SOURCES = {
    "docs": [*(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks" / "source").glob("*.md"), ROOT / "docs" / "conf.py"],
    "notebooks": [*(ROOT / "notebooks" / "source").glob("*.md")],
    "serve": [ROOT / "docs" / "serve" / "app.py"],
}
pytestmark = pytest.mark.skipif(not (ROOT / "docs" / "conf.py").exists(), reason="an installed package has no pages")


@functools.cache
def distributions():
    """Return the distributions that have each module, which takes a second to find out."""
    return {name: {d.lower() for d in found} for name, found in packages_distributions().items()}


def requirements(extra, project):
    """Return the distributions that the package with an extra asks for by name."""
    found = set()
    for line in [*project["dependencies"], *(project["optional-dependencies"][extra] if extra else ())]:
        name, inner = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", line).groups()
        found |= requirements(inner, project) if name == "bayesgen" else {name.lower()}
    return found


def imported(path):
    """Return the distributions whose modules the code of a file imports, sets of which one is enough."""
    text = path.read_text(encoding="utf-8")
    code = text if path.suffix == ".py" else "\n".join(CELL.findall(text))
    code = re.sub(r"^[%!].*$", "", code, flags=re.MULTILINE)
    modules = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    names = {m.partition(".")[0] for m in modules} - {"bayesgen", "docs", *sys.stdlib_module_names}
    names -= {beside.stem for beside in path.parent.glob("*.py")}
    asked = {needs for module, needs in MODULES.items() if module in modules or f".{module}(" in code}
    return {frozenset(distributions().get(name, {name.lower()})) for name in names} | {
        frozenset([one]) for one in asked
    }


@pytest.mark.compiles
@pytest.mark.parametrize("extra", SOURCES)
def test_what_pages_import_is_in_their_extra(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    there = requirements(extra, project)
    # Of the direct requirements these install the others, and say so in their metadata.
    there |= {"numpy", "pydantic", "sphinx", "docutils", "pillow", "ipython"}
    lacking = {path.name: [*map(sorted, imported(path))] for path in SOURCES[extra]}
    lacking = {name: [n for n in found if not there & set(n)] for name, found in lacking.items()}
    assert {name: found for name, found in lacking.items() if found} == {}


def test_readme_names_these_extras():
    named = set(re.findall(r"pip install -q -e \"\.\[(\w+)\]\"", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert {"docs", "notebooks", "test"} <= named
    serve = (ROOT / "docs" / "howto" / "serve.md").read_text(encoding="utf-8")
    assert 'pip install "bayesgen[serve]"' in serve
