"""Refusals of logistic, probit and linear regressions at fit."""

import numpy as np
import pandas as pd
import pytest
from refusals import INF, LINE, LOGIT, NAN, PROBIT, X, Y, put, refuses
from scipy import sparse

import bayesgen as bg

pytestmark = pytest.mark.usefixtures("no_sampling")

DISCRIMINATIVE = {
    "gap": (put(NAN), Y, ValueError, "column 'v': the value in row 3 is NaN"),
    "infinite": (put(INF), Y, ValueError, "column 'v': the value in row 3 is infinite"),
    "complex": (X * 1j, Y, TypeError, "complex128"),
    "date": (X.assign(v=pd.Timestamp("2020-01-01")), Y, TypeError, "column 'v' holds Datetime"),
    "nothing": (X.assign(v=None), Y, ValueError, "column 'v' has no observed value to learn its categories from"),
    "sparse": (sparse.csr_array(X), Y, TypeError, "X is sparse"),
    "fewer labels": (X, Y[:5], ValueError, "8 rows and y has 5"),
    "one class": (X, ["a"] * 8, ValueError, "class"),
    "missing label": (X, [None, *Y[1:]], ValueError, "missing"),
    "continuous labels": (X, np.linspace(0, 1, 8), ValueError, "continuous"),
}


@pytest.mark.parametrize("make", [LOGIT, PROBIT])
@pytest.mark.parametrize("kind", DISCRIMINATIVE)
def test_discriminative_fit_refuses_before_any_inference(kind, make):
    table, y, error, words = DISCRIMINATIVE[kind]
    refuses(lambda: make(inference="nuts").fit(table, y), error, words)


T = np.arange(8.0)
REGRESSION = {
    "gap": (LINE(), put(NAN), T, ValueError, "column 'v': the value in row 3 is NaN"),
    "missing target": (LINE(), X, [NAN, *T[1:]], ValueError, "NaN"),
    "infinite target": (LINE(), X, [INF, *T[1:]], ValueError, "infinit"),
    "words for targets": (LINE(), X, Y, ValueError, "could not convert|number|string"),
    "complex target": (LINE(), X, T * 1j, (TypeError, ValueError), "[Cc]omplex"),
    "masked target": (LINE(), X, np.ma.masked_array(T, mask=[1] + [0] * 7), ValueError, "y has masked entries"),
    "dates for targets": (
        LINE(),
        X,
        np.full(8, np.datetime64("2020")),
        TypeError,
        "y must hold numbers, got datetime64",
    ),
    "squares of the target that overflow": (LINE(), X, T * 1e200, ValueError, "y: squares .* larger units"),
    "squares of the target that vanish": (LINE(), X, T * 1e-200, ValueError, "y: squares .* smaller units"),
    "logistic squares that overflow": (
        LOGIT(inference="map", standardize=False),
        X * 1e200,
        Y,
        ValueError,
        "column 'u': squares .* larger units|column 'v': squares .* larger units",
    ),
    "logistic scale too small to square": (
        LOGIT(inference="map", prior_scale=1e-200),
        X,
        Y,
        ValueError,
        "prior_scale must be 1e-150 at least, got 1e-200",
    ),
    "one class": (LOGIT(inference="map"), X, ["a"] * 8, ValueError, r"one class only, \['a'\].*classes=\[...\]"),
    "standardize a word": (
        LINE(standardize="false"),
        X,
        T,
        TypeError,
        "standardize must be True or False, got 'false'",
    ),
    "standardize no word": (LOGIT(standardize=1), X, Y, TypeError, "standardize must be True or False, got 1"),
    "symmetric a word": (LOGIT(symmetric="no"), X, Y, TypeError, "symmetric must be True or False, got 'no'"),
    "scale a word": (LINE(prior_scale="one"), X, T, TypeError, "prior_scale must be a number, got 'one'"),
    "scale nothing": (PROBIT(intercept_scale=None), X, Y, TypeError, "intercept_scale must be a number, got None"),
    "fewer targets": (LINE(), X, T[:3], ValueError, "8 rows and y has 3"),
    "unknown noise": (LINE(noise="cauchy"), X, T, ValueError, "noise must be one of"),
    "unknown prior": (LINE(prior="horseshoe"), X, T, ValueError, "prior"),
    "unknown inference": (LINE(inference="vb"), X, T, ValueError, "inference must be one of"),
    "scale of no size": (LINE(prior_scale=0.0), X, T, ValueError, "positive|prior_scale"),
    "scale of another length": (LINE(prior_scale=[1.0] * 3), X, T, ValueError, "prior_scale|shape|broadcast"),
    "probit of three": (
        PROBIT(inference="map"),
        X,
        list("abcabcab"),
        ValueError,
        "y holds 3 classes; use LogisticClassifier",
    ),
    "logistic scale negative": (
        LOGIT(prior_scale=-1.0, inference="map"),
        X,
        Y,
        ValueError,
        "prior_scale must be a finite number > 0",
    ),
    "no exact logistic": (LOGIT(inference="exact"), X, Y, TypeError, "no exact posterior"),
    "no exact Laplace": (LINE(noise="laplace", inference="exact"), X, T, TypeError, "no exact posterior"),
}


@pytest.mark.parametrize("kind", REGRESSION)
def test_regression_refuses(kind):
    estimator, table, y, error, words = REGRESSION[kind]
    refuses(lambda: estimator.fit(table, y), error, words)


@pytest.mark.parametrize("value", [2.0, 0.5, -1])
@pytest.mark.parametrize("make", [bg.LinearRegressor, lambda: bg.LogisticClassifier(inference="map")])
@pytest.mark.parametrize("beside", [True, False])
def test_what_is_no_bit_in_a_column_of_bools_is_refused(make, value, beside):
    X = pd.DataFrame({"smoker": np.resize([True, False, False], 40)} | ({"z": np.arange(40) % 7 / 2} if beside else {}))
    regression = make().fit(X, np.resize([1, 0, 1, 1, 0], 40))
    new = X[:3].assign(smoker=[1.0, 0.0, value])
    with pytest.raises(ValueError, match=rf"column 'smoker': {value:g} in row 2 is neither True nor False") as found:
        regression.predict(new)
    assert (found.value.column, found.value.row, found.value.value) == ("smoker", 2, value)
    np.testing.assert_array_equal(regression.predict(X[:3].assign(smoker=[1.0, 0.0, 0])), regression.predict(X[:3]))
