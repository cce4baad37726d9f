"""Regressions on rows in batches: the answer of the rows in memory."""

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from refusals import refuses
from sklearn.base import clone

import bayesgen as bg

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal([0.0, 1e4, -3.0], [1.0, 50.0, 0.1], (300, 3)), columns=list("abc"))
X["bit"] = RNG.random(300) < 0.1
X["bit"] = X["bit"].astype(float)
SCORE = X["a"] + (X["b"] - 1e4) / 50 + RNG.logistic(size=300)
THREE = np.array(["low", "mid", "top"])[np.digitize(SCORE, [-1, 1])]
WEIGHT = RNG.uniform(0.2, 2.0, 300) * (RNG.random(300) < 0.9)
CASES = {
    "logistic": (bg.LogisticClassifier(inference="map"), np.where(SCORE > 0, "yes", "no")),
    "logistic ml": (bg.LogisticClassifier(inference="ml"), np.where(SCORE > 0, "yes", "no")),
    "softmax": (bg.LogisticClassifier(inference="map"), THREE),
    "softmax ml": (bg.LogisticClassifier(inference="ml"), THREE),
    "pinned": (bg.LogisticClassifier(inference="map", symmetric=False), THREE),
    "probit": (bg.ProbitClassifier(inference="map"), (SCORE > 0).to_numpy().astype(int)),
    "as they are": (bg.LogisticClassifier(inference="map", standardize=False), np.where(SCORE > 0, "yes", "no")),
    "line": (bg.LinearRegressor(), SCORE.to_numpy()),
    "line ml": (bg.LinearRegressor(inference="ml"), SCORE.to_numpy()),
}


def equal(a, b):
    own = X if hasattr(a, "feature_names_in_") else X.to_numpy()
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-7, atol=1e-9)
    if hasattr(a, "predict_proba"):
        np.testing.assert_allclose(a.predict_proba(own), b.predict_proba(X), rtol=1e-9, atol=1e-10)
    else:
        np.testing.assert_allclose(a.predict(own, return_std=True), b.predict(X, return_std=True), rtol=1e-10)


REPEATED = ("softmax ml", "as they are", "line ml")  # by the sums and programs of others


@pytest.mark.compiles
@pytest.mark.parametrize("case", [pytest.param(c, marks=[pytest.mark.slow] * (c in REPEATED)) for c in CASES])
def test_batches_and_partitions_teach_what_the_rows_would(case, tmp_path):
    estimator, y = CASES[case]
    table = X.assign(y=y, w=WEIGHT)
    whole = clone(estimator).fit(X, y, WEIGHT)
    parquet.write_table(pa.Table.from_pandas(table), tmp_path / "a.parquet", row_group_size=90)
    equal(clone(estimator).fit_batches(tmp_path / "a.parquet", "y", sample_weight="w"), whole)
    numbers = X.to_numpy()
    pieces = [(numbers[own], y[own], WEIGHT[own]) for own in (slice(0, 7), slice(7, 7), slice(7, 300))]
    equal(clone(estimator).fit_batches(pieces), whole)
    with dask.config.set(scheduler="synchronous"):
        parts = [dask.delayed(table[:100]), dask.delayed(table[100:])]
        again = clone(estimator).fit_batches(parts, "y", sample_weight="w")
    equal(again, whole)
    again.save(tmp_path / "model.safetensors")
    equal(bg.load(tmp_path / "model.safetensors"), whole)


def test_what_batches_cannot_do_is_told():
    y = CASES["logistic"][1]
    table = X.assign(y=y)
    fitted = bg.LogisticClassifier(inference="map").fit(X, y)
    before = vars(fitted).copy()
    with pytest.raises(ValueError, match="batch 1: column 'a': the value in row 0 is NaN"):
        fitted.fit_batches([table[:150], table[150:].assign(a=np.nan).set_index(np.arange(150))], "y")
    refuses(lambda: fitted.fit_batches([table[table.y == "no"]], "y"), "holds one class only")
    refuses(lambda: fitted.fit_batches(iter([table]), "y"), "read once")
    assert vars(fitted) == before
    refuses(lambda: bg.LogisticClassifier().fit_batches([table], "y"), "no small statistics")
    with pytest.raises(ValueError, match="Laplace noise or prior has no small statistics"):
        bg.LinearRegressor(noise="laplace", inference="map").fit_batches([table], "y")
    sure = table.assign(y=table.a > 0)
    refuses(lambda: bg.LogisticClassifier(inference="ml").fit_batches([sure], "y"), "may separate the classes")
    with pytest.raises(ValueError, match=r"columns \['[ad]'\] are linear combinations"):
        bg.LogisticClassifier(inference="ml").fit_batches([table.assign(d=2 * table.a)], "y")
