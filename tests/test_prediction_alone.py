"""Prediction where JAX, NumPyro, ArviZ, Arrow and Matplotlib are absent: that of docs/serve/prediction.txt."""

import json
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import numpy as np
import pytest

import bayesgen as bg

ROOT = Path(__file__).parent.parent
LEFT_OUT = ("jax", "numpyro", "arviz", "xarray", "pyarrow", "matplotlib", "rich", "typer")
ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
ASK = """
import json, os, sys
from pathlib import Path
import bayesgen as bg
folder, answers = Path(sys.argv[1]), {}
X = bg.data.load("penguins").drop(columns="species")[:20]
numbers = X[["bill_length_mm", "body_mass_g"]].fillna(0.0)
asked = {"nuts": numbers, "logistic": numbers, "arrays": numbers.to_numpy()}
for path in sorted(folder.glob("*.safetensors")):
    classifier, rows = bg.load(path), asked.get(path.stem, X)
    answers[path.stem] = classifier.predict_proba(rows).tolist()
    assert abs(classifier.predict_proba(rows[:1]) - answers[path.stem][0]).max() < 1e-12
answers["terms"] = bg.load(folder / "average.safetensors").explain(X, 3).terms
os.environ |= {"MODEL": str(folder / "bayes.safetensors"), "COSTS": str(folder / "costs.csv")}
import app
row = app.Row.model_validate(json.loads(X[:1].to_json(orient="records"))[0])
answers["app"] = app.predict([row])[0]["probability"]
print(json.dumps(answers))
"""


def alone(folder):
    """Install docs/serve/prediction.txt beside nothing, as the image does, and return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "-r", ROOT / "docs" / "serve" / "prediction.txt"], check=True)
    for tests in [path for path in folder.rglob("tests") if path.is_dir()]:
        shutil.rmtree(tests, ignore_errors=True)  # one may be inside another
    there = f"import importlib.util as of; assert not [name for name in {LEFT_OUT} if of.find_spec(name)]"
    subprocess.run([python, "-c", there], check=True)
    assert sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) < 320e6
    return python


@pytest.mark.parametrize(
    "installed", [pytest.param(True, marks=pytest.mark.slow), pytest.param(False, marks=pytest.mark.compiles)]
)
def test_what_only_predicts_needs_half_of_the_packages(installed, tmp_path):
    """In an environment of these packages, and in this one with the others refused."""
    table = bg.data.load("penguins")
    X, y = table.drop(columns="species"), table["species"]
    numbers = X[["bill_length_mm", "body_mass_g"]].dropna()
    of_numbers = y[numbers.index]
    fitted = {
        "bayes": bg.NaiveBayesClassifier().fit(X, y),
        "average": bg.AveragedClassifier(progress=False).fit(X[::4], y[::4]),
        "nuts": bg.GaussianDiscriminantClassifier(inference=bg.NUTS(50, 50, 2)).fit(numbers, of_numbers),
        "logistic": bg.LogisticClassifier(inference="map").fit(numbers, of_numbers),
        "arrays": bg.GaussianDiscriminantClassifier(shared=True).fit(numbers.to_numpy(), of_numbers),
    }
    for name, classifier in fitted.items():
        classifier.save(tmp_path / f"{name}.safetensors")
    (tmp_path / "costs.csv").write_text(",act\nAdelie,1\nChinstrap,1\nGentoo,0\n")
    python, refused = (alone(tmp_path / "alone"), "") if installed else (sys.executable, ABSENT.format(absent=LEFT_OUT))
    paths = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'docs' / 'serve')]!r}\n"
    done = subprocess.run([python, "-c", refused + paths + ASK, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers, rows, some = json.loads(done.stdout), X[:20], numbers.reindex(X.index[:20]).fillna(0.0)
    asked = {"nuts": some, "logistic": some, "arrays": some.to_numpy()}
    for name, classifier in fitted.items():
        p = classifier.predict_proba(asked.get(name, rows))
        np.testing.assert_allclose(answers[name], p, rtol=1e-9, atol=1e-12)
    assert answers["terms"] == pytest.approx(fitted["average"].explain(rows, 3).terms, abs=1e-9)
    assert list(answers["app"].values()) == pytest.approx(answers["bayes"][0], abs=1e-12)


def test_the_packages_of_prediction_are_those_of_the_package():
    """One list of versions: docs/serve/prediction.txt repeats lines of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = {*project["dependencies"], *project["optional-dependencies"]["serve"]}
    lines = (ROOT / "docs" / "serve" / "prediction.txt").read_text().splitlines()
    assert {line for line in lines if line and not line.startswith("#")} <= known


READ = "files and streams are read by pyarrow, which is not installed: pip install pyarrow"


@pytest.mark.parametrize(
    ("absent", "code", "words"),
    [
        (
            "typer",
            "import bayesgen.cli",
            "bayesgen: the commands need typer, which is not installed: pip install typer",
        ),
        (
            "pyarrow",
            "import bayesgen.cli; bayesgen.cli.app(['compare', 'penguins', '--target', 'species'])",
            f"Error: {READ}",
        ),
        ("pyarrow", "bayesgen.read_table(bayesgen.data.path('penguins'), 'species')", f"ModuleNotFoundError: {READ}"),
        pytest.param(
            "pyarrow",
            "X = bayesgen.data.load('penguins'); bayesgen.NaiveBayesClassifier().fit_batches([X], 'species')",
            f"ModuleNotFoundError: {READ}",
            marks=pytest.mark.compiles,
        ),
        pytest.param(
            "pyarrow",
            "bayesgen.NaiveBayesClassifier().fit_batches('bayesgen/data/*.csv', 'species')",
            f"ModuleNotFoundError: {READ}",
            marks=pytest.mark.compiles,
        ),
    ],
)
def test_what_is_absent_is_said_in_one_line(absent, code, words):
    program = f"{ABSENT.format(absent=(absent,))}import bayesgen; {code}"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and done.stderr.splitlines()[-1] == words
    assert "bayesgen.cli" not in code or len(done.stderr.splitlines()) == 1
