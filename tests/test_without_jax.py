"""What works without JAX and NumPyro, as in a browser; cells of notebooks are run by `pytest -m notebook`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "notebooks" / "source"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```$", re.MULTILINE | re.DOTALL)
HIDDEN = """
import contextlib, io, json, sys, warnings
from importlib.machinery import PathFinder


class Hide(PathFinder):  # finds what is installed, but for some packages
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {packages} else super().find_spec(name, path, target)


sys.meta_path[:] = [Hide if one is PathFinder else one for one in sys.meta_path]
warnings.simplefilter("ignore")
"""
CELLS = """
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
# Cells that run without JAX and NumPyro; these numbers may only grow.
LEAST = {
    "1-coin": 22,
    "2-gaussian-mean": 17,
    "3-spam": 20,
    "4-voters": 24,
    "5-gda": 30,
    "6-generative-discriminative": 20,
    "7-workflow": 10,
    "8-own-leaf": 9,
    "9-averaging": 16,
    "10-from-lecture-to-workflow": 14,
    "11-unnamed-classes": 15,
}
CALLS = """
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import bayesgen as bg
from bayesgen import AveragedClassifier, GaussianDiscriminantClassifier, LogisticClassifier, NaiveBayesClassifier
from bayesgen import decision, evaluation, inspection

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
y = np.where(X[:, 0] + 0.5 * rng.normal(size=90) > 0, "a", "b")
table = pd.DataFrame(X, columns=list("pqr")).assign(s=np.where(rng.random(90) < 0.3, "u", "v"))
folder, space = Path(tempfile.mkdtemp()), {}
naive = lambda **given: NaiveBayesClassifier(**given).fit(X, y)
calls = {
    "naive Bayes of a table": lambda: space.setdefault("nb", NaiveBayesClassifier().fit(table, y)),
    "predict_proba": lambda: space["nb"].predict_proba(table[:5]),
    "predict_proba_interval": lambda: space["nb"].predict_proba_interval(table[:5]),
    "explain": lambda: space["nb"].explain(table[:2]),
    "leave_one_out": lambda: space["nb"].leave_one_out(table, y),
    "summary": lambda: space["nb"].summary(),
    "partial_fit": lambda: NaiveBayesClassifier().partial_fit(X, y, classes=["a", "b"]),
    "forget": lambda: naive().forget(X[:3], y[:3]),
    "discriminant": lambda: space.setdefault("gda", GaussianDiscriminantClassifier().fit(X, y)),
    "discriminant: predict_proba": lambda: space["gda"].predict_proba(X[:5]),
    "discriminant: sample": lambda: space["gda"].sample(4),
    "save": lambda: space["nb"].save(folder / "m.safetensors"),
    "load": lambda: bg.load(folder / "m.safetensors").predict_proba(table[:3]),
    "next_measurement": lambda: inspection.next_measurement(space["nb"], table[:1]),
    "impute": lambda: inspection.impute(space["nb"], table[:2]),
    "typicality": lambda: inspection.typicality(space["nb"], table[:2]),
    "importance": lambda: inspection.importance(space["nb"], table, y),
    "next_labels": lambda: inspection.next_labels(space["nb"], table[:9], 2),
    "boundary": lambda: inspection.boundary.discriminant(space["gda"].posterior_),
    "estimate_class_prior": lambda: inspection.estimate_class_prior(space["nb"], table),
    "decide": lambda: decision.decide(space["nb"].predict_proba(table[:3]), [[0, 1], [5, 0]]),
    "log_loss": lambda: evaluation.log_loss((y == "b").astype(int), space["nb"].predict_proba(table)),
    "logistic": lambda: LogisticClassifier().fit(X, y),
    "logistic, map": lambda: LogisticClassifier(inference="map").fit(X, y),
    "logistic, ml": lambda: LogisticClassifier(inference="ml").fit(X, y),
    "logistic, laplace": lambda: LogisticClassifier(inference="laplace").fit(X, y),
    "naive Bayes, map": lambda: naive(inference="map"),
    "naive Bayes, ml": lambda: naive(inference="ml"),
    "a line": lambda: bg.LinearRegressor().fit(X, X[:, 1]).predict(X[:2]),
    "naive Bayes, nuts": lambda: naive(inference="nuts"),
    "average": lambda: space.setdefault("average", AveragedClassifier(random_state=0).fit(table, y)),
    "average: predict_proba": lambda: space["average"].predict_proba(table[:4]),
    "average: explain": lambda: space["average"].explain(table[:1]),
    "average: save": lambda: space["average"].save(folder / "a.safetensors"),
    "average: load": lambda: bg.load(folder / "a.safetensors").predict_proba(table[:3]),
    "latent classes": lambda: bg.LatentClassClassifier(classes=2).fit(table[["s"]]),
    "compare_models": lambda: bg.compare_models(X, y, ["naive Bayes", "full"]),
    "compare_evidence": lambda: bg.compare_evidence({"nb": naive(), "gda": space["gda"]}),
    "plot": lambda: __import__("bayesgen.plot"),
    "command line": lambda: __import__("bayesgen.cli").cli.app,
    "read_table": lambda: (table.to_csv(folder / "t.csv", index=False), bg.read_table(folder / "t.csv")),
}
failed = {}
for name, call in calls.items():
    try:
        call()
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}"
print(json.dumps([len(calls), failed]))
"""


def run(code, packages, given=""):
    """Return what a Python prints that lacks these packages."""
    command = [sys.executable, "-c", HIDDEN.replace("{packages}", repr(packages)) + code]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.parametrize("name", LEAST)
def test_cells_that_run(name):
    cells = json.dumps(CELL.findall((SOURCES / f"{name}.md").read_text(encoding="utf-8")))
    count = int(run(CELLS, ("jax", "jaxlib", "numpyro"), cells))
    assert count >= LEAST[name], f"{count} of {len(json.loads(cells))} cells run"


def test_the_goal_of_cells():
    assert sum(LEAST.values()) >= 160
    assert sorted(LEAST) == sorted(path.stem for path in SOURCES.glob("*.md"))


@pytest.mark.compiles
def test_calls_that_work_without_arviz_too():
    arviz = ("arviz", "arviz_base", "arviz_stats", "arviz_plots")
    count, failed = json.loads(run(CALLS, ("jax", "jaxlib", "numpyro", *arviz)))
    assert (count, sorted(failed)) == (41, ["logistic", "logistic, laplace", "naive Bayes, nuts"])
    assert all("pip install jax numpyro" in message for message in failed.values())
