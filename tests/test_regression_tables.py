"""Regressions on tables: categories as columns of 0 and 1, bools as numbers, gaps refused or filled with means."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from refusals import refuses
from sklearn.base import clone

import bayesgen as bg
from bayesgen import data, inspection

LOGIT, PROBIT, LINE = bg.LogisticClassifier(inference="map"), bg.ProbitClassifier(inference="map"), bg.LinearRegressor()
FILLS = bg.LogisticClassifier(inference="map", missing="mean")
NAMES = ("island == Biscoe", "island == Dream", "island == Torgersen", "bill_length_mm", "bill_depth_mm")
NAMES += ("flipper_length_mm", "body_mass_g", "sex == female", "sex == male", "year", "heavy")


@pytest.fixture
def birds():
    X = data.load("penguins")[::3].reset_index(drop=True).astype({"island": object, "sex": object})
    X["heavy"] = X["body_mass_g"] > 4000
    return X, X.pop("species")


@pytest.fixture
def complete(birds):
    X, y = birds
    seen = X.notna().all(axis=1)
    return X[seen].reset_index(drop=True), y[seen].reset_index(drop=True)


def target(estimator, X, y):
    """Classes of three species, of two kinds, or a number."""
    return (
        3 * np.sin(X["bill_length_mm"]) + X["heavy"]
        if estimator is LINE
        else y
        if estimator is LOGIT
        else y == "Gentoo"
    )


def predicted(estimator, X):
    return estimator.predict_proba(X) if hasattr(estimator, "classes_") else estimator.predict(X)


def by_hand(X):
    """Numbers alone, NaN where something is missing."""
    found = pd.get_dummies(X, columns=["island", "sex"], dtype=float).astype(float)
    found.loc[X["sex"].isna(), ["sex_female", "sex_male"]] = np.nan
    return found.rename(columns=lambda name: name.replace("_", " == ") if name.startswith(("island", "sex")) else name)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "array"])
@pytest.mark.parametrize("estimator", [LOGIT, PROBIT, LINE], ids=lambda e: type(e).__name__)
def test_a_table_is_its_columns_encoded_by_hand(complete, estimator, library):
    X, y = complete
    t, numbers = target(estimator, X, y), by_hand(X)[list(NAMES)]
    convert = {"pandas": lambda X: X, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas, "array": np.asarray}
    table = convert[library](X)
    found, want = clone(estimator).fit(table, t), clone(estimator).fit(numbers, t)
    np.testing.assert_allclose(predicted(found, table), predicted(want, numbers), rtol=1e-9)
    np.testing.assert_allclose(found.coef_, want.coef_, rtol=1e-7, atol=1e-12)
    named = [*map("x{}".format, range(8))] if library == "array" else list(X)
    assert found.n_features_in_ == 8 and list(found.schema_.columns) == named
    if library != "array":
        assert found.model_.columns == NAMES and list(found.feature_names_in_) == list(X)
        assert found.to_arviz()["posterior"]["feature"].to_numpy().tolist() == list(NAMES)


def test_gaps_are_filled_with_the_weighted_means_of_the_fit(birds):
    X, y = birds
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    found, numbers = clone(FILLS).fit(X, y, weight), by_hand(X)
    repeated = numbers.loc[np.repeat(X.index, weight)]
    filled = numbers.fillna(repeated.mean())
    want = clone(LOGIT).fit(filled, y, weight)
    np.testing.assert_allclose(found.predict_proba(X), want.predict_proba(filled), atol=1e-6)
    assert inspection.importance(found, X, y)["bill_length_mm"].mean() > 0.01  # without it: at its mean


@pytest.mark.parametrize("estimator", [LOGIT, LINE], ids=lambda e: type(e).__name__)
def test_gaps_and_categories_that_are_new_are_refused(birds, complete, estimator):
    X, y = complete
    fitted = clone(estimator).fit(X, target(estimator, X, y))
    island = X["island"].where(X.index != 2)
    with pytest.raises(ValueError, match=r"column 'island': the value in row 2 is NaN: .*missing='mean'") as e:
        fitted.predict(X.assign(island=island))
    assert (e.value.column, e.value.row) == ("island", 2)
    new = r"column 'island': 'Elsewhere' in row 2 is not one of the categories .*unseen='missing' to a classifier"
    refuses(lambda: fitted.predict(X.assign(island=island.fillna("Elsewhere"))), new)
    refuses(lambda: fitted.predict(X.assign(heavy="yes")), "column 'heavy' holds 'yes', which is not a number")
    refuses(lambda: fitted.predict(X.drop(columns="sex")), r"Feature names seen at fit time, yet now missing|lacks")
    X, y = birds
    with pytest.raises(ValueError, match="column 'bill_length_mm': the value in row 1 is NaN"):
        clone(estimator).fit(X, target(estimator, X.fillna({"bill_length_mm": 0.0}), y))


def test_a_new_category_is_missing_where_that_is_wanted(birds):
    X, y = birds
    fitted = clone(FILLS).set_params(unseen="missing").fit(X, y)
    with pytest.warns(UserWarning, match=r"not there at fit: column 'island': \['Elsewhere'\] in 115 rows") as caught:
        new = fitted.predict_proba(X.assign(island="Elsewhere"))
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(new, fitted.predict_proba(X.assign(island=None)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"missing": "median"}, "missing must be one of .'error', 'mean'., got 'median'"),
        ({"unseen": "new"}, "unseen must be one of .'error', 'missing'., got 'new'"),
        ({"missing": "mean", "standardize": False}, "missing='mean' needs standardize=True"),
    ],
)
def test_settings_that_are_none(birds, settings, words):
    refuses(lambda: clone(LOGIT).set_params(**settings).fit(*birds), words)


def test_names_that_would_be_two_things_and_columns_that_name_the_rows(complete):
    X, y = complete
    refuses(lambda: clone(LOGIT).fit(X.assign(**{"sex == male": 1.5}), y), "two columns would be called 'sex == male'")
    with pytest.warns(UserWarning, match="column 'name' seems to name the rows"):
        clone(LOGIT).fit(X.assign(name=[f"bird {i}" for i in X.index], number=X.index), y)


# -- rows in pieces ----------------------------------------------------------------------------------------------------


@pytest.mark.compiles
@pytest.mark.parametrize("source", ["parquet", "csv", "frames", "tuples", "once"])
@pytest.mark.parametrize("estimator", [FILLS, LOGIT, LINE], ids=["fills", "logistic", "line"])
def test_batches_teach_what_the_table_would(birds, complete, estimator, source, tmp_path):
    X, y = birds if estimator is FILLS else complete
    X, t = X.assign(heavy=X["heavy"].astype(float)), target(LOGIT if estimator is FILLS else estimator, X, y)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, len(X))
    whole, table = clone(estimator).fit(X, t, weight), X.assign(t=t, w=weight)
    parts = [table[:40], table[40:40], table[40:]]
    named, declared = {"target": "t", "sample_weight": "w"}, {}
    if source == "parquet":
        rows = tmp_path / "rows.parquet"
        parquet.write_table(pa.Table.from_pandas(table), rows, row_group_size=40)
    elif source == "csv":
        table.to_csv(rows := tmp_path / "rows.csv", index=False)
    elif source == "tuples":
        rows, named = [(part[list(X)], part["t"].to_numpy(), part["w"].to_numpy()) for part in parts], {}
    else:
        rows = parts if source == "frames" else iter(parts)
    if source == "once":
        if estimator is not LINE:
            refuses(lambda: clone(estimator).fit_batches(rows, **named), "read once")
            return
        refuses(lambda: clone(estimator).fit_batches(iter(parts), **named), "categories of 'island'")
        declared = {"schema": whole.schema_}
    again = clone(estimator).fit_batches(rows, **named, **declared)
    assert again.model_.columns == whole.model_.columns
    np.testing.assert_allclose(again.coef_, whole.coef_, rtol=1e-5, atol=1e-8)
    ask = np.asarray(X) if source == "tuples" else X
    np.testing.assert_allclose(predicted(again, ask), predicted(whole, X), rtol=1e-6, atol=1e-9)


def test_lines_of_tables_add(complete):
    X, y = complete
    X = X.assign(island=pd.Categorical(X["island"]), sex=pd.Categorical(X["sex"]))
    t = target(LINE, X, y)
    whole = clone(LINE).fit(X, t)
    first, rest = clone(LINE).partial_fit(X[:50], t[:50]), clone(LINE).fit(X[50:], t[50:])
    for same in (first + rest, clone(first).fit(X[:50], t[:50]).partial_fit(X[50:], t[50:])):
        np.testing.assert_allclose(same.predict(X), whole.predict(X), rtol=1e-9)
        assert list(same.feature_names_in_) == list(X)
    np.testing.assert_allclose(whole.forget(X[50:], t[50:]).predict(X), first.predict(X), rtol=1e-7)
    np.testing.assert_allclose(first.decay(0.5).partial_fit(X[50:], t[50:]).total_weight_, len(X) - 25)
    refuses(lambda: first + clone(LINE).fit(X[50:].astype({"island": str}), t[50:]), "different columns")


# -- files -------------------------------------------------------------------------------------------------------------


def test_the_saved_classifier_takes_the_same_tables(birds, tmp_path):
    X, y = birds
    fitted = clone(FILLS).fit(X, y)
    fitted.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(bg.load(tmp_path / "m.safetensors").predict_proba(X), fitted.predict_proba(X))
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    found = pd.concat(fitted.predict_batches(tmp_path / "rows.parquet"))
    np.testing.assert_allclose(found.filter(like="p_"), fitted.predict_proba(X), rtol=1e-12)
