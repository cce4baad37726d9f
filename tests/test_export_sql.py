"""A classifier exported as SQL gives the probabilities of Python in DuckDB."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import bayesgen as bg


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = pd.DataFrame({"x": rng.normal(y, 1.0), 'say "it\'s"': np.array(["it's", "b", "c"])[rng.integers(0, 3, 300)]})
    X["n"], X["yes"] = rng.poisson(1.0 + 3 * y).astype(float), rng.random(300) < (y + 1) / 4
    return X, np.array(["a", "b'c", 'd"e'])[y]


def answers(classifier, rows, path):
    classifier.export(path, dialect="duckdb")
    with duckdb.connect() as database:
        database.register("rows", rows)
        found = database.execute(path.read_text()).df()
    return found[[f"p_{label}" for label in classifier.classes_]].to_numpy()


@pytest.mark.parametrize("inference", ["exact", "map"])
def test_naive_bayes_with_gaps(table, tmp_path, inference):
    X, y = table
    classifier = bg.NaiveBayesClassifier({"n": "poisson"}, inference=inference, exponent=0.8).fit(X, y)
    rng = np.random.default_rng(1)
    rows = X.iloc[rng.integers(0, len(X), 2000)].reset_index(drop=True)
    rows["x"] = rows["x"].mask(rng.random(2000) < 0.02, rng.choice([1e-300, 1e6, -1e6], 2000))
    rows["yes"] = rows["yes"].astype("boolean")
    rows = rows.mask(pd.DataFrame(rng.random(rows.shape) < 0.15, columns=rows.columns))
    assert np.abs(answers(classifier, rows, tmp_path / "model.sql") - classifier.predict_proba(rows)).max() < 1e-12


def test_a_diagonal_discriminant(table, tmp_path):
    X, y = table
    X = X[["x", "n"]]
    classifier = bg.GaussianDiscriminantClassifier(covariance="diagonal", shared=True).fit(X, y)
    assert np.abs(answers(classifier, X, tmp_path / "model.sql") - classifier.predict_proba(X)).max() < 1e-12


def test_others_are_refused_by_name(table, tmp_path):
    X, y = table
    full = bg.GaussianDiscriminantClassifier().fit(X[["x", "n"]], y)
    with pytest.raises(ValueError, match="cannot be written in SQL; export it to JavaScript"):
        full.export(tmp_path / "model.sql", dialect="duckdb")
    with pytest.raises(ValueError, match="dialect must be"):
        full.export(tmp_path / "model.sql", dialect="oracle")
    assert not (tmp_path / "model.sql").exists()
