"""Exported classifiers at length: any table, another engine, and matrices of which float64 holds ten digits alone.

`python -m pytest -m slow -rP tests/test_export*.py` runs them and every kind on 10,000 rows, and prints how far each is
from Python; half an hour.
"""

import json
import shutil
import subprocess
import warnings

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scorers import assert_equal, hard, records, scorer

import bayesgen as bg

pytestmark = pytest.mark.slow
COLUMNS = st.lists(st.sampled_from(["number", "large", "category", "bool", "count", "log"]), min_size=1, max_size=6)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    kinds=COLUMNS,
    classes=st.integers(2, 30),
    rows=st.integers(30, 120),
    seed=st.integers(0, 10**6),
    inference=st.sampled_from(["exact", "map"]),
    exponent=st.sampled_from([1.0, 0.4]),
)
def test_any_table_is_scored_as_in_python(kinds, classes, rows, seed, inference, exponent):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, rows)])
    X, features = {}, {}
    for j, kind in enumerate(kinds):
        number = rng.normal(y * rng.normal(), 1.0 + rng.random())
        name = f"{kind} {j}'\"<&"
        made = {
            "number": number,
            "large": 1e6 * number + 1e8,
            "category": np.array(["a", "it's", "</script>", "é"])[rng.integers(0, 4, len(y))],
            "bool": rng.random(len(y)) < 0.5,
            "count": rng.poisson(1 + y % 5),
            "log": np.exp(number),
        }
        X[name] = made[kind]
        features |= {name: {"count": "poisson", "log": "log"}[kind]} if kind in ("count", "log") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = pd.DataFrame(X)
        classifier = bg.NaiveBayesClassifier(features, inference=inference, exponent=exponent)
        classifier.set_params(features=features or "auto", class_concentration=1.5).fit(frame, y)
        asked = hard(frame, 40, rng, far=(1e-300, 1e300, 3.0))  # what every column of numbers takes
        with scorer(classifier) as made:
            assert_equal(classifier, made, asked)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("name", ["naive Bayes", "discriminant", "softmax"])
def test_node_answers_as_python_does(name, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = pd.DataFrame({f"x{j}": rng.normal(y * (j + 1) * 0.7, 1 + j) for j in range(4)})
    made = {
        "naive Bayes": bg.NaiveBayesClassifier(),
        "discriminant": bg.GaussianDiscriminantClassifier(),
        "softmax": bg.LogisticClassifier(inference="map"),
    }
    classifier = made[name].fit(X, y)
    rows = X if name == "softmax" else hard(X, 10_000, rng)
    classifier.export(tmp_path / "model.mjs")
    (tmp_path / "rows.json").write_text(json.dumps(records(rows)))
    program = (
        "import { predictProba } from './model.mjs'; import { readFileSync } from 'node:fs';"
        "console.log(JSON.stringify(JSON.parse(readFileSync('rows.json')).map((row) => predictProba(row))));"
    )
    (tmp_path / "ask.mjs").write_text(program)
    ran = subprocess.run(["node", "ask.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300)
    apart = np.abs(np.array(json.loads(ran.stdout)) - classifier.predict_proba(rows)).max()
    assert apart <= (1e-9 if name == "discriminant" else 1e-12)


def log_student(x, location, scale, dof):
    """Return the log density of a Student's t vector, with 60 digits."""
    with mpmath.workdps(60):
        d = len(x)
        matrix = mpmath.matrix(scale.tolist())
        away = mpmath.matrix(
            [mpmath.mpf(a) - mpmath.mpf(b) for a, b in zip(x.tolist(), location.tolist(), strict=True)]
        )
        square = (away.T * mpmath.lu_solve(matrix, away))[0]
        nu = mpmath.mpf(float(dof))
        gammas = mpmath.loggamma((nu + d) / 2) - mpmath.loggamma(nu / 2)
        return (
            gammas
            - (d * mpmath.log(mpmath.pi * nu) + mpmath.log(mpmath.det(matrix)) + (nu + d) * mpmath.log1p(square / nu))
            / 2
        )


@pytest.mark.parametrize("condition", [1e2, 1e6, 1e10])
def test_full_covariances_are_as_near_to_sixty_digits_as_python(condition):
    """Within ten times Python's distance, and the tolerance of densities up to the condition 1e6."""
    rng, dim = np.random.default_rng(0), 6
    turn = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    y = rng.integers(0, 2, 400)
    z = rng.normal(size=(400, dim)) * np.geomspace(1, condition**-0.5, dim)
    X = z @ turn + 0.1 * y[:, None]
    classifier = bg.GaussianDiscriminantClassifier(prior="reference").fit(X, y)
    (leaf,) = classifier.posterior_.model.leaves.values()
    said = leaf.predicted.arrays()
    assert np.linalg.cond(said["scale"][0]) > condition / 30
    rows = X[:20].copy()
    rows[rng.random(rows.shape) < 0.2] = np.nan
    exact = np.empty((len(rows), 2))
    for row, place in zip(rows, exact, strict=True):
        seen = np.flatnonzero(~np.isnan(row))
        joint = []
        for k in range(2):
            scale, dof = said["scale"][k][np.ix_(seen, seen)], np.broadcast_to(said["dof"], (2,))[k]
            prior = mpmath.log(mpmath.mpf(float(classifier.posterior_.model.classes.mean[k])))
            joint.append(prior + log_student(row[seen], said["location"][k][seen], scale, dof))
        total = mpmath.log(sum(mpmath.exp(term) for term in joint))
        place[:] = [float(term - total) for term in joint]
    python = np.abs(classifier.predict_log_proba(rows) - exact).max()
    with scorer(classifier) as made:
        found = np.abs(made.proba(rows, log=True) - exact).max()
    assert found <= max(10 * python, 1e-12)
    if condition <= 1e6:
        assert found <= 1e-9 * (1 + np.abs(classifier.predict_joint_log_proba(rows)).max())
