"""Linear classifiers on tables: categories as columns of 0 and 1, gaps filled with means."""

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen import data
from bayesgen.comparison.encoded import EncodedClassifier


@pytest.fixture
def birds():
    X = data.load("penguins")[::3].reset_index(drop=True)
    return X, X.pop("species")


def test_it_is_the_classifier_of_columns_encoded_by_hand(birds):
    X, y = birds
    found = EncodedClassifier(bg.LogisticClassifier(inference="map")).fit(X, y)
    by_hand = pd.get_dummies(X, columns=["island", "sex"], dtype=float)
    by_hand.loc[X["sex"].isna(), ["sex_female", "sex_male"]] = np.nan
    by_hand = by_hand.astype(float).fillna(by_hand.mean())
    want = bg.LogisticClassifier(inference="map").fit(by_hand, y).predict_proba(by_hand)
    np.testing.assert_allclose(found.predict_proba(X), want, atol=1e-6)
    assert set(found.classifier_.model_.columns) == {
        name.replace("_", " == ") if name.startswith(("island_", "sex_")) else name for name in by_hand
    }


def test_the_saved_classifier_takes_the_same_tables(birds, tmp_path):
    X, y = birds
    X["heavy"] = X["body_mass_g"] > 4000
    found = EncodedClassifier(bg.LogisticClassifier(inference="map")).fit(X, y)
    found.classifier_.save(tmp_path / "m.nc")
    again = EncodedClassifier.of(bg.load(tmp_path / "m.nc"))
    np.testing.assert_array_equal(again.predict_proba(X), found.predict_proba(X))
    with pytest.warns(UserWarning, match="not there at fit"):
        new = again.predict_proba(X.assign(island="Elsewhere"))
    np.testing.assert_array_equal(new, again.predict_proba(X.assign(island=None)))


def test_names_that_would_be_two_things_are_refused(birds):
    X, y = birds
    with pytest.raises(ValueError, match="which stands before a category: rename it"):
        EncodedClassifier(bg.LogisticClassifier(inference="map")).fit(X.rename(columns={"sex": "sex == male"}), y)
    with pytest.raises(ValueError, match="two columns would be called 'sex == male'"):
        EncodedClassifier(bg.LogisticClassifier(inference="map")).fit(X.assign(**{"sex == male": 1.5}), y)
