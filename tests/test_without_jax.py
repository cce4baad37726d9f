"""Cells of notebooks that run where JAX, NumPyro and ArviZ are refused, as in a browser: `pytest -m notebook`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "notebooks" / "source"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = """
import contextlib, io, json, sys, warnings
from importlib.abc import MetaPathFinder


class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib", "numpyro", "arviz", "arviz_base", "arviz_stats", "arviz_plots"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refuse())
warnings.simplefilter("ignore")
import matplotlib
matplotlib.use("Agg")
space, count = {"__name__": "__main__"}, 0
for cell in json.load(sys.stdin):
    printed = io.StringIO()
    with contextlib.suppress(Exception), contextlib.redirect_stdout(printed):
        exec(cell, space)
        count += "pip install" not in printed.getvalue()
print(count)
"""
LEAST = {"1-coin": 22, "5-gda": 29}  # cells that run; they may only grow


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.parametrize("name", LEAST)
def test_cells_that_run(name):
    cells = json.dumps(CELL.findall((SOURCES / f"{name}.md").read_text(encoding="utf-8")))
    done = subprocess.run([sys.executable, "-c", RUN], input=cells, capture_output=True, text=True, check=True)
    assert int(done.stdout) >= LEAST[name], f"{done.stdout.strip()} of {len(json.loads(cells))} cells run"
