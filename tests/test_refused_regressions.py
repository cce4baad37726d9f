"""Refusals of logistic, probit and linear regressions at fit."""

import numpy as np
import pandas as pd
import pytest
from refusals import INF, LINE, LOGIT, NAN, PROBIT, X, Y, case, put, refuses
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
    refuses(lambda: make(inference="nuts").fit(table, y), words, error)


T = np.arange(8.0)
REGRESSION = {
    "gap": case(LINE(), put(NAN), "column 'v': the value in row 3 is NaN", T),
    "missing target": case(LINE(), X, "NaN", [NAN, *T[1:]]),
    "infinite target": case(LINE(), X, "infinit", [INF, *T[1:]]),
    "words for targets": case(LINE(), X, "could not convert|number|string"),
    "complex target": case(LINE(), X, "[Cc]omplex", T * 1j, error=(TypeError, ValueError)),
    "masked target": case(LINE(), X, "y has masked entries", np.ma.masked_array(T, mask=[1] + [0] * 7)),
    "dates for targets": case(
        LINE(), X, "y must hold numbers, got datetime64", np.full(8, np.datetime64("2020")), error=TypeError
    ),
    "squares of the target that overflow": case(LINE(), X, "y: squares .* larger units", T * 1e200),
    "squares of the target that vanish": case(LINE(), X, "y: squares .* smaller units", T * 1e-200),
    "logistic squares that overflow": case(
        LOGIT(inference="map", standardize=False),
        X * 1e200,
        "column 'u': squares .* larger units|column 'v': squares .* larger units",
    ),
    "logistic scale too small to square": case(
        LOGIT(inference="map", prior_scale=1e-200), X, "prior_scale must be 1e-150 at least, got 1e-200"
    ),
    "standardize a word": case(
        LINE(standardize="false"), X, "standardize must be True or False, got 'false'", T, error=TypeError
    ),
    "standardize no word": case(LOGIT(standardize=1), X, "standardize must be True or False, got 1", error=TypeError),
    "symmetric a word": case(LOGIT(symmetric="no"), X, "symmetric must be True or False, got 'no'", error=TypeError),
    "scale a word": case(LINE(prior_scale="one"), X, "prior_scale must be a number, got 'one'", T, error=TypeError),
    "scale nothing": case(
        PROBIT(intercept_scale=None), X, "intercept_scale must be a number, got None", error=TypeError
    ),
    "fewer targets": case(LINE(), X, "8 rows and y has 3", T[:3]),
    "unknown noise": case(LINE(noise="cauchy"), X, "noise must be one of", T),
    "unknown prior": case(LINE(prior="horseshoe"), X, "prior", T),
    "unknown inference": case(LINE(inference="vb"), X, "inference must be one of", T),
    "scale of another length": case(LINE(prior_scale=[1.0] * 3), X, "prior_scale|shape|broadcast", T),
}


@pytest.mark.parametrize("kind", REGRESSION)
def test_regression_refuses(kind):
    estimator, table, y, _, error, words = REGRESSION[kind]
    refuses(lambda: estimator.fit(table, y), words, error)


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
