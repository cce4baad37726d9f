"""Prediction where JAX, NumPyro, ArviZ, Arrow and Matplotlib are absent: that of docs/serve/prediction.txt."""

import json
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import numpy as np
import pytest

import bayesgen as bg

ROOT = Path(__file__).parent.parent
ASK = """
import json, os, sys
from pathlib import Path
import bayesgen as bg
folder, answers = Path(sys.argv[1]), {}
X = bg.data.load("penguins").drop(columns="species")[:20]
numbers = X[["bill_length_mm", "body_mass_g"]].fillna(0.0)
for path in sorted(folder.glob("*.safetensors")):
    classifier = bg.load(path)
    answers[path.stem] = classifier.predict_proba(numbers if path.stem in ("nuts", "logistic") else X).tolist()
answers["terms"] = bg.load(folder / "average.safetensors").explain(X, 3).terms
os.environ |= {"MODEL": str(folder / "bayes.safetensors"), "COSTS": str(folder / "costs.csv")}
import app
row = app.Row.model_validate(json.loads(X[:1].to_json(orient="records"))[0])
answers["app"] = app.predict([row])[0]["probability"]
absent = ("jax", "numpyro", "arviz", "xarray", "pyarrow", "matplotlib", "rich", "typer")
import importlib.util
answers["there"] = [name for name in absent if importlib.util.find_spec(name)]
print(json.dumps(answers))
"""


@pytest.mark.slow
def test_what_only_predicts_needs_half_of_the_packages(tmp_path):
    table = bg.data.load("penguins")
    X, y = table.drop(columns="species"), table["species"]
    numbers = X[["bill_length_mm", "body_mass_g"]].dropna()
    fitted = {
        "bayes": bg.NaiveBayesClassifier().fit(X, y),
        "average": bg.AveragedClassifier(progress=False).fit(X[::4], y[::4]),
        "nuts": bg.GaussianDiscriminantClassifier(inference=bg.NUTS(50, 50, 2)).fit(numbers, y[numbers.index]),
        "logistic": bg.LogisticClassifier(inference="map").fit(numbers, y[numbers.index]),
    }
    for name, classifier in fitted.items():
        classifier.save(tmp_path / f"{name}.safetensors")
    (tmp_path / "costs.csv").write_text(",act\nAdelie,1\nChinstrap,1\nGentoo,0\n")
    venv.create(tmp_path / "alone", with_pip=True)
    python = tmp_path / "alone" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "-r", ROOT / "docs" / "serve" / "prediction.txt"], check=True)
    paths = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'docs' / 'serve')]!r}\n"
    done = subprocess.run([python, "-c", paths + ASK, tmp_path], check=True, capture_output=True, text=True)
    answers = json.loads(done.stdout)
    assert answers.pop("there") == []
    row = X[:20]
    for name, classifier in fitted.items():
        asked = numbers.reindex(row.index).fillna(0.0) if name in ("nuts", "logistic") else row
        np.testing.assert_allclose(answers[name], classifier.predict_proba(asked), rtol=1e-9, atol=1e-12)
    assert answers["terms"] == pytest.approx(fitted["average"].explain(row, 3).terms, abs=1e-9)
    assert list(answers["app"].values()) == pytest.approx(answers["bayes"][0], abs=1e-12)


def test_the_packages_of_prediction_are_those_of_the_package():
    """One list of versions: docs/serve/prediction.txt repeats lines of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = {*project["dependencies"], *project["optional-dependencies"]["serve"]}
    lines = (ROOT / "docs" / "serve" / "prediction.txt").read_text().splitlines()
    assert {line for line in lines if line and not line.startswith("#")} <= known


READ = "files and streams are read by pyarrow, which is not installed: pip install pyarrow"
ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "{absent}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


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
    ],
)
def test_what_is_absent_is_said_in_one_line(absent, code, words):
    program = f"{ABSENT.format(absent=absent)}import bayesgen; {code}"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and done.stderr.splitlines()[-1] == words
    assert "read_table" in code or len(done.stderr.splitlines()) == 1
