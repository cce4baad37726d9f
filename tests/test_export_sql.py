"""A classifier exported as SQL gives the probabilities of Python in DuckDB."""

import duckdb
import numpy as np
import pandas as pd
import pytest
from refusals import refuses

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
    X = X.assign(day=pd.Timestamp("2024-01-31") + pd.to_timedelta(X.n, "D"))
    classifier = bg.NaiveBayesClassifier({"n": "poisson", "day": "date"}, inference=inference, exponent=0.8).fit(X, y)
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
    logs = bg.NaiveBayesClassifier("log").fit(np.exp(X[["x"]]), y)
    with pytest.raises(ValueError, match="NaiveBayesClassifier of logarithms cannot be written in SQL"):
        logs.export(tmp_path / "model.sql", dialect="duckdb")
    refuses(lambda: full.export(tmp_path / "model.sql", dialect="oracle"), "dialect must be")
    assert not (tmp_path / "model.sql").exists()


@pytest.mark.parametrize("cls", [bg.LogisticClassifier, bg.OrderedClassifier])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("missing", ["error", "mean"])
def test_regressions_at_a_point(table, tmp_path, cls, classes, missing):
    X, y = table
    keep = np.isin(y, sorted(set(y))[:classes])
    options = {} if cls is bg.LogisticClassifier else {"order": sorted(set(y[keep]))}
    classifier = cls(inference="map", missing=missing, unseen="missing", **options).fit(X[keep], y[keep])
    rng = np.random.default_rng(1)
    rows = X.iloc[rng.integers(0, len(X), 500)].reset_index(drop=True)
    rows["x"] = rows["x"].mask(rng.random(500) < 0.05, rng.choice([1e-300, 1e6, -1e6], 500))
    rows["yes"] = rows["yes"].astype("boolean")
    gaps = rows.mask(pd.DataFrame(rng.random(rows.shape) < 0.1, columns=rows.columns))
    found = answers(classifier, gaps, tmp_path / "model.sql")
    whole = gaps.notna().all(axis=1) if missing == "error" else np.full(500, True)
    assert np.abs(found[whole] - classifier.predict_proba(gaps[whole])).max() < 1e-12
    assert np.isnan(found[~whole].astype(float)).all()


def test_the_probit_link_is_refused_in_sql(table, tmp_path):
    X, y = table
    classifier = bg.ProbitClassifier(inference="map").fit(X, y == "a")
    with pytest.raises(
        ValueError, match=r"ProbitClassifier of \['probit'\] cannot be written in SQL; export it to Java"
    ):
        classifier.export(tmp_path / "model.sql", dialect="duckdb")


@pytest.mark.parametrize("cls", [bg.NaiveBayesClassifier, bg.LogisticClassifier])
def test_a_number_that_is_no_bit_is_refused(table, tmp_path, cls):
    X, y = table
    classifier = cls(inference="map").fit(X[["x", "yes"]], y)
    rows = pd.DataFrame({"x": [0.1, 0.2], "yes": [1, 2]})
    with pytest.raises(duckdb.InvalidInputException, match="column yes: a value that was not there at fit"):
        answers(classifier, rows, tmp_path / "model.sql")
    assert len(answers(classifier, rows[:1], tmp_path / "model.sql")) == 1
