"""Refusals at fit, whatever the inference; a fit that fails leaves the fit before."""

import copy

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from refusals import COUNTS, GD, INF, LINE, LOGIT, NAN, NB, PROBIT, X, Y, case, put, refuses
from scipy import sparse

import bayesgen as bg
from bayesgen import models

pytestmark = pytest.mark.usefixtures("no_sampling")

BITS = (X > 3).astype(float)
PERIODS = pd.Series(pd.period_range("2020", periods=2, freq="Y").take([0, 1] * 4))
CODES = X.assign(v=np.arange(8.0) % 3)
DATED = X.assign(v=pd.Timestamp("2020-01-01"))
THIN = sparse.csr_array(COUNTS)
NINE = models.DirichletCategorical(1.0, 9)
FIT = {
    # values
    "infinite": case(NB(), put(INF), "column 'v': value inf in row 3 is infinite"),
    "minus infinite": case(NB(), put(-INF), "column 'v'.*-inf in row 3"),
    "an int beyond float64": case(NB(), put(10**400, dtype=object), "column 'v' holds a number beyond 1.8e308"),
    "infinite vector": case(GD(), put(INF), "column 'v'.*inf in row 3"),
    "infinite shared": case(GD(shared=True), put(INF), "column 'v'.*inf in row 3"),
    "infinite isotropic": case(GD("isotropic"), put(INF), "column 'v'.*inf in row 3"),
    "infinite diagonal": case(GD("diagonal"), put(-INF, "u"), "column 'u'.*-inf in row 3"),
    "half a bit": case(NB("bernoulli"), BITS.assign(v=0.5), "column 'v': value 0.5 in row 0 is not 0 or 1"),
    "no bit under a leaf": case(
        NB({"u": models.BetaBernoulli()}), X, "column 'u': value 2.29.* in row 2 is not 0 or 1"
    ),
    "negative bit": case(NB("bernoulli"), BITS - 1, "value -1 .*not 0 or 1"),
    "infinite bit": case(NB("bernoulli"), BITS.assign(v=INF), "column 'v'.*value inf.*not 0 or 1"),
    "negative count": case(NB("poisson"), COUNTS - 2, "value -2 in row 0 is not a count"),
    "fraction of a count": case(NB("poisson"), X, "column 'u'.*2.29.* in row 2 is not a count"),
    "infinite count": case(NB("poisson"), COUNTS.assign(v=INF), "column 'v'.*inf"),
    "negative word": case(NB("multinomial"), COUNTS - 2, "-2"),
    "half a word": case(NB("multinomial"), X, "2.29"),
    "half a bag": case(NB("multinomial"), COUNTS.assign(v=[NAN, *COUNTS["v"][1:]]), "row 0"),
    "unknown category": case(NB({"v": NINE}), CODES.assign(v=9.0), "column 'v': 9.* in row 0 is not one"),
    "huge code": case(NB({"v": NINE}), CODES.assign(v=1e15), "column 'v': 1000000000000000"),
    "negative code": case(NB({"v": NINE}), CODES.assign(v=-1.0), "column 'v': -1"),
    "infinite category": case(NB("categorical"), CODES.assign(v=INF), "column 'v' holds an infinite"),
    "word for a number": case(NB({"v": "gaussian"}), put("x"), "column 'v' holds 'x', which is not a number"),
    "words for numbers": case(GD(), X.assign(v="x"), "column 'v' holds 'x', which is not a number"),
    "an array of words": case(GD(), np.array([["p", "q"]] * 8), "column 'x0' holds 'p', which is not a number"),
    "word for a count": case(NB("poisson"), COUNTS.assign(v="many"), "column 'v' holds 'many'"),
    "complex": case(NB(), X.assign(v=1j), "column 'v' holds complex128", error=TypeError),
    "complex array": case(NB(), X.to_numpy() * 1j, "Complex data not supported"),
    "complex object": case(GD(), put(1j), "complex", error=TypeError),
    "complex objects": case(
        NB(), (X * 1j).astype(object), "column 'v' holds complex values|'u' holds", error=TypeError
    ),
    "complex counts": case(NB("poisson"), sparse.csr_array(COUNTS) * 1j, "Complex data not supported"),
    "date": case(NB(), DATED, "column 'v' holds Datetime", error=TypeError),
    "dates for numbers": case(GD(), DATED, "column 'v' holds Datetime", error=TypeError),
    "array of dates": case(NB(), np.full((8, 1), np.datetime64("2020")), "X holds datetime64", error=TypeError),
    "date for a category": case(NB({"v": "categorical"}), DATED, "column 'v' holds Datetime", error=TypeError),
    "date as an object": case(NB(), DATED.astype(object), "column 'v' holds", error=TypeError),
    "list in a cell": case(NB(), X.assign(v=[[1, 2]] * 8), "column 'v' holds", error=TypeError),
    "dict in a cell": case(NB(), X.assign(v=[{}] * 8), "column 'v' holds .*dict", error=TypeError),
    "a list in many cells": case(NB(), pd.concat([X.assign(v=[[1]] * 8)] * 2), "holds list", [*Y, *Y], error=TypeError),
    "nothing in a column of pyarrow": case(
        NB(), pa.table({"u": X["u"], "v": pa.nulls(8)}), "column 'v' has no observed value"
    ),
    "nothing in a column of polars": case(
        NB(), pl.DataFrame({"u": X["u"], "v": [None] * 8}), "column 'v' has no observed value"
    ),
    "a table not read yet": case(
        NB(), pl.LazyFrame({"u": X["u"]}), r"X is a polars LazyFrame, not read yet: collect\(\) it", error=TypeError
    ),
    "a relation of DuckDB": case(
        NB(),
        duckdb.connect().from_arrow(pa.table({"u": X["u"]})),
        r"X is a DuckDBPyRelation of DuckDB, .* X.df\(\) reads it; fit_batches\(X, target\) and predict_batches\(X\)",
        error=TypeError,
    ),
    "nothing in a column": case(NB(), X.assign(v=None), "column 'v' has no observed value"),
    # shapes and containers
    "one axis": case(NB(), np.arange(8.0), "Reshape your data"),
    "three axes": case(GD(), np.zeros((8, 2, 2)), "dim 3"),
    "a number": case(NB(), 3.0, "scalar array"),
    "None": case(NB(), None, "scalar array|None"),
    "a string": case(NB(), "table.csv", "scalar array|string"),
    "a series": case(NB(), X["u"], "a Series, where a table is expected. Reshape your data"),
    "a column of pyarrow": case(NB(), pa.chunked_array([np.arange(8.0)]), "Reshape your data"),
    "one axis of xarray": case(NB(), xr.DataArray(np.zeros(8)), "Reshape your data"),
    "a mapping": case(NB(), X.to_dict("list"), "X holds mappings.*pandas.DataFrame", error=TypeError),
    "mappings": case(NB(), X.to_dict("records"), "X holds mappings.*pandas.DataFrame", error=TypeError),
    "structured": case(NB(), X.to_records(), "X is a structured array.*pandas.DataFrame", error=TypeError),
    "ragged": case(NB(), [[1.0, 2.0], [3.0]] * 4, "rows differ in length"),
    "no rows": case(NB(), X.iloc[:0], "X has 0 samples", Y[:0]),
    "no columns": case(GD(), X[[]], "X has 0 features"),
    "no rows of an array": case(NB(), np.empty((0, 2)), r"0 sample\(s\)", []),
    "no columns of an array": case(NB(), np.empty((8, 0)), r"0 feature\(s\)"),
    "columns of one name": case(NB(), X[["u", "u"]], "must be distinct"),
    "columns of one name in pyarrow": case(NB(), pa.table([Y, Y], names=["u", "u"]), r"distinct; \['u'\] appear"),
    "columns of one written name": case(NB(), X.set_axis([0, "0"], axis=1), "must be distinct"),
    "sparse numbers": case(NB(), THIN, r"X is sparse.*features= one of \['bernoulli', 'poisson'", error=TypeError),
    "sparse vectors": case(GD(), THIN, "X is sparse", error=TypeError),
    "sparse numbers by name": case(NB("gaussian"), THIN, "X is sparse, which 'gaussian' features", error=TypeError),
    "a sparse column": case(NB({0: "poisson"}), THIN, "X is sparse", error=TypeError),
    "sparse categories": case(NB({0: NINE, 1: "poisson"}), THIN, "X is sparse", error=TypeError),
    "fewer labels": case(NB(), X, "8 rows and y has 5", Y[:5]),
    "more labels": case(GD(), X.iloc[:5], "5 rows and y has 8"),
    # labels
    "no labels": case(NB(), X, "y", None),
    "missing label": case(NB(), X, "missing labels", [None, *Y[1:]]),
    "missing number of a class": case(NB(), X, "missing labels", pd.Series([pd.NA, *[0, 1] * 3, 1], dtype="Int64")),
    "missing text of a class": case(NB(), X, "missing labels", pd.Series([pd.NA, *Y[1:]], dtype="string")),
    "NaN label": case(GD(), X, "missing labels", [NAN, *range(7)]),
    "masked label": case(NB(), X, "missing labels", np.ma.masked_array(np.arange(8) % 2, mask=[1] + [0] * 7)),
    "infinite label": case(NB(), X, "infinity", [INF, *np.arange(7.0)]),
    "continuous labels": case(NB(), X, "continuous", np.linspace(0, 1, 8)),
    "mixed labels": case(
        NB(), X, r"y mixes labels of the types \['int', 'str'\]", np.array(["a", 1] * 4, dtype=object), error=TypeError
    ),
    "bytes for labels": case(NB(), X, "y holds bytes, .*label.decode()", Y.astype("S"), error=TypeError),
    "bytes among labels": case(GD(), X, "y holds bytes", list(Y.astype("S")), error=TypeError),
    "periods for labels": case(NB(), X, r"y holds Period values, .*list\(map\(str, y\)\)", PERIODS, error=TypeError),
    "tuples for labels": case(NB(), X, "y holds tuple values", pd.Series([(1, 2), (3, 4)] * 4), error=TypeError),
    "two columns of labels": case(NB(), X, "1d array", np.array([Y, Y]).T),
    "complex labels": case(NB(), X, "[Cc]omplex|Unknown label", np.arange(8) * 1j, error=(TypeError, ValueError)),
    # weights
    "fewer weights": case(NB(), X, "sample_weight", weight=np.ones(5)),
    "negative weight": case(GD(), X, "sample_weight must hold one finite number >= 0", weight=-np.ones(8)),
    "NaN weight": case(NB(), X, "sample_weight must hold one finite number >= 0", weight=np.full(8, NAN)),
    "complex weight": case(NB(), X, "must hold numbers", weight=np.arange(8) * 1j, error=TypeError),
    "masked weight": case(NB(), X, "masked entries", weight=np.ma.masked_array(np.ones(8), mask=[1] + [0] * 7)),
    "weights beyond counting": case(NB(), X, "more than float64 counts", weight=np.full(8, 1e300)),
    "squares that overflow": case(GD(), X * 1e200, "column 'u': squares .* larger units"),
    "squares that overflow, by column": case(NB(), X * 1e200, "column 'u': squares .* larger units"),
    "squares and sums that overflow": case(GD("isotropic"), X * 1e307, "column 'u': .* larger units"),
    "squares that overflow in one column": case(
        GD(shared=True), X.assign(v=X["v"] * 1e307), "column 'v': .* larger units"
    ),
    "squares that vanish": case(GD(), X * 1e-170, r"\['u', 'v'\]: squares .* smaller units"),
    "squares that lose their digits": case(NB(), X.assign(v=X["v"] * 1e-160), r"\['v'\]: squares .* smaller units"),
    "alpha beyond sums": case(NB(class_concentration=1e308), X, "alpha must sum to 1e.300 at most"),
    "shared a word": case(GD(shared="yes"), X, "shared must be True or False, got 'yes'", error=TypeError),
    "infinite weight": case(GD(), X, "sample_weight must hold one finite number >= 0", weight=np.full(8, INF)),
    "no weight at all": case(NB(), X, "0|weight", weight=np.zeros(8)),
    "words for weights": case(NB(), X, "sample_weight must hold numbers", weight=list("abcdefgh"), error=TypeError),
    "words for weights of a line": case(
        LOGIT(), X, "sample_weight must hold numbers", weight=list("abcdefgh"), error=TypeError
    ),
    # settings of estimators
    "unknown family": case(NB("gauss"), X, "features must be 'auto'"),
    "families in an array": case(NB(np.array(["gaussian"] * 2)), X, "features must be .*got a ndarray"),
    "families in a table": case(NB(X), X, "features must be .*got a DataFrame"),
    "families in a list": case(NB(["gaussian"]), X, "features must be 'auto'"),
    "unknown family of a column": case(NB({"u": "gauss"}), X, "column 'u': features must give a leaf"),
    "unknown column": case(NB({"w": "gaussian"}), X, r"names the columns \['w'\]"),
    "unknown place of a column": case(NB({5: "gaussian"}), X, r"names the columns \['5'\]"),
    "column twice": case(NB({"u": "gaussian", ("u", "v"): "gaussian"}), X, "names the column 'u' twice"),
    "no leaf": case(NB({"u": 3}), X, "'u' must be a model of a feature", error=TypeError),
    "class of a leaf": case(NB({"u": models.BetaBernoulli}), X, "'u' must be a model of a feature", error=TypeError),
    "bag of one word": case(NB({"u": "multinomial"}), COUNTS, "bag of one word"),
    "unknown covariance": case(GD("round"), X, "covariance must be one of"),
    "unknown prior": case(GD(prior="strong"), X, "prior must be 'weak', 'reference' or a model"),
    "no prior": case(GD(prior=None), X, "takes a NormalInverseWishart", error=TypeError),
    "prior of another kind": case(
        GD("diagonal", prior=models.NormalInverseWishart([0, 0], 1, 4, np.eye(2))),
        X,
        "takes a NormalInverseGamma",
        error=TypeError,
    ),
    "prior of another width": case(
        GD(prior=models.NormalInverseWishart(np.zeros(3), 1, 4, np.eye(3))), X, "2 entries where the prior mean has 3"
    ),
    "gamma prior of another width": case(
        GD("diagonal", prior=models.NormalInverseGamma(np.zeros(3), 1, 4, 1)),
        X,
        r"rows have \(2,\) features where the model has \(3,\)",
    ),
    "alpha negative": case(NB(class_concentration=-1.0), X, "alpha must be positive"),
    "alpha NaN": case(GD(class_concentration=NAN), X, "alpha must be finite"),
    "alpha a word": case(NB(class_concentration="one"), X, "alpha must be a number", error=TypeError),
    "alpha of another length": case(NB(class_concentration=[1.0, 1.0, 1.0]), X, "3 entries for 2 categories"),
    "priors of another length": case(GD(priors=[1.0]), X, "priors must hold one probability"),
    "priors not of sum 1": case(NB(priors=[0.5, 0.6]), X, "sum to 1"),
    "priors negative": case(NB(priors=[-0.5, 1.5]), X, ">= 0"),
    "priors NaN": case(GD(priors=[NAN, 1.0]), X, "finite"),
    "priors a word": case(NB(priors="uniform"), X, "priors must hold"),
    "unseen": case(NB(unseen="drop"), X, "unseen must be"),
}


@pytest.mark.parametrize("kind", FIT)
def test_fit_refuses_before_any_inference(kind):
    """So one inference stands for all: the slowest, which would show a refusal that comes too late."""
    estimator, table, y, weight, error, words = FIT[kind]
    estimator = copy.deepcopy(estimator).set_params(inference="nuts")
    refuses(lambda: estimator.fit(table, y, weight), words, error)
    assert not hasattr(estimator, "classes_")


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
