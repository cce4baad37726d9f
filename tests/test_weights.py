"""Weights: an integer weight is a row repeated, and a row of weight 0 does not exist; fits keep copies of all of it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from test_sklearn import GD, IRIS, LINE, LOGIT, NB, PROBIT, SPECIES, answer

WEIGHED = [
    *(NB(inference=how) for how in ("exact", "map", "ml")),
    *(GD(c, s, inference=i) for c in ("full", "diagonal", "isotropic") for s in (False, True) for i in ("exact", "ml")),
    LINE(),
    LOGIT(inference="map"),
    PROBIT(inference="map"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.* rows repeat another")
@pytest.mark.parametrize("estimator", WEIGHED, ids=str)
def test_weights_repeat_rows_and_zero_removes_them(estimator):
    X, y = IRIS[50:].copy(), SPECIES[50:]
    weight = np.random.default_rng(0).integers(0, 4, 100)
    repeated = clone(estimator).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    rows = X.copy()
    X[weight == 0] = np.inf  # their values are not read
    weighted = clone(estimator).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(answer(weighted, rows), answer(repeated, rows), rtol=1e-8, atol=1e-12)
    if hasattr(repeated, "log_evidence_"):
        assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-12)


def test_classes_and_categories_of_rows_without_weight_do_not_exist():
    X = pd.DataFrame({"soil": ["clay", "sand", "clay", "sand", "peat", "clay"], "x": np.arange(6.0)})
    y = np.array(["a", "a", "b", "b", "a", "c"])
    weight = np.array([1, 1, 2, 1, 0, 0])
    lost = r"all rows of the labels \['c'\] in y have weight 0: they are no classes of this fit"
    with pytest.warns(UserWarning, match=lost):
        classifier = NB().fit(X, y, sample_weight=weight)
    assert list(classifier.classes_) == ["a", "b"]
    assert classifier.schema_.blocks[0].categories == ("clay", "sand")
    less = NB().fit(X[:4], y[:4], sample_weight=weight[:4])
    np.testing.assert_array_equal(classifier.predict_proba(X[:4]), less.predict_proba(X[:4]))
    for make in (LOGIT(inference="map"), PROBIT(inference="map")):
        with pytest.warns(UserWarning, match=lost):
            assert list(make.fit(X[["x"]], y, sample_weight=weight).classes_) == ["a", "b"]
    declared = NB().partial_fit(X, y, classes=["a", "b", "c"], sample_weight=weight)
    assert list(declared.classes_) == ["a", "b", "c"]
    np.testing.assert_allclose(
        declared.predict_proba(pd.DataFrame({"soil": [None], "x": [np.nan]})), [[3 / 8, 4 / 8, 1 / 8]]
    )


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("make", [LINE, LOGIT, PROBIT, GD, NB])
def test_what_the_user_changes_after_a_fit_changes_nothing(make, standardize):
    how = {"standardize": standardize} if make in (LINE, LOGIT, PROBIT) else {}
    for inference in ("map",) if make in (LOGIT, PROBIT) else ("exact", "map"):
        X, y, weight = IRIS[50:].copy(), SPECIES[50:] - 1, np.ones(100)
        fitted = make(inference=inference, **how).fit(X, y.astype(float) if make is LINE else y, weight)
        before = pickle.dumps((fitted.statistics_, fitted.posterior_))
        for theirs in (X, y, weight):
            theirs[:] = 0
        assert pickle.dumps((fitted.statistics_, fitted.posterior_)) == before
