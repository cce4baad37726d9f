"""Pages of saved models in a real Chromium, which `.ci/page.mjs` uses as a person does.

`npm install --no-save playwright-core axe-core && python -m pytest -m slow tests/test_page_in_browser.py`.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import bayesgen as bg
from bayesgen.export import to_page

ROOT = Path(__file__).parent.parent
BROWSER = os.environ.get("CHROMIUM", "/usr/bin/chromium")
MODULES = ["node", "-e", "require.resolve('playwright-core'), require.resolve('axe-core')"]


def ready():
    there = shutil.which("node") and Path(BROWSER).exists()
    return there and subprocess.run(MODULES, cwd=ROOT / ".ci", capture_output=True, check=False).returncode == 0


ATTACK = "</script><img src=x onerror=alert(1)>{name}"


def penguins():
    X = bg.data.load("penguins").sample(frac=1, random_state=0)
    y = X.pop("species")
    return X.rename(columns={"island": ATTACK}), y


def naive_bayes():
    X, y = penguins()
    return bg.NaiveBayesClassifier(random_state=0).fit(X, y.replace("Gentoo", ATTACK)), X


def by_laplace():
    X, y = penguins()
    return bg.NaiveBayesClassifier(inference=bg.Laplace(300), random_state=0).fit(X, y), X


def point():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X["__proto__"] = np.arange(len(X)) % 3 == 0
    return bg.NaiveBayesClassifier(inference="map").fit(X, y), X.sample(frac=1, random_state=0)


def discriminant():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :10]
    return bg.GaussianDiscriminantClassifier(random_state=0).fit(X, y), X.sample(frac=1, random_state=0)


def regression():
    X, y = penguins()
    seen = X.notna().all(axis=1)
    return bg.LogisticClassifier(inference="map").fit(X[seen], y[seen]), X


def plain(rows):
    """The rows as JSON has them: None for a gap."""
    return [{c: None if v != v else getattr(v, "item", lambda v=v: v)() for c, v in row.items()} for row in rows]


def average():
    X, y = penguins()
    return bg.AveragedClassifier(random_state=0).fit(X, y), X


MODELS = {made.__name__: made for made in (naive_bayes, by_laplace, point, discriminant, regression, average)}


@pytest.mark.slow
@pytest.mark.skipif(not ready(), reason="needs node, Chromium and `npm install --no-save playwright-core axe-core`")
@pytest.mark.parametrize("name", MODELS)
def test_a_page_answers_as_python_does_in_chromium(tmp_path, name):
    rng = np.random.default_rng(0)
    classifier, X = MODELS[name]()
    generative = name != "regression"  # which needs every entry
    seen = rng.random((50, X.shape[1])) < (0.7 if generative else 1.0)
    seen[-1] = True  # which answers the best questions
    rows = X.dropna()[:50].astype(object).where(seen, None)
    moved = None
    if generative:
        base = classifier.predict_proba(rows[:1].map(lambda value: None))[0]
        share = 1 / (1 + np.exp(-1))
        priors = np.where(np.arange(len(base)) == 0, share, base / (1 - base[0]) * (1 - share))
        moved = classifier.predict_proba(rows[:1], priors=priors)[0].tolist()
    to_page(classifier, tmp_path / f"{name}.html")
    case = {
        "page": f"{name}.html",
        "classes": [str(label) for label in classifier.classes_],
        "rows": plain(rows.to_dict("records")),
        "answers": classifier.predict_proba(rows).tolist(),
        "priors": generative,
        "moved": moved,
    }
    (tmp_path / "cases.json").write_text(json.dumps([case]))
    command = ["node", ROOT / ".ci/page.mjs", tmp_path, *([os.environ["PICTURES"]] if "PICTURES" in os.environ else [])]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    print(ran.stdout)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("cases: 50, ") and f"keys that end above 95 %: {int(generative)}," in ran.stdout
