"""Refusals of classifiers at fit, whatever the inference; a fit that fails leaves the fit before."""

import copy

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import COUNTS, GD, INF, NAN, NB, X, Y, put, refuses
from scipy import sparse

from bayesgen import models

pytestmark = pytest.mark.usefixtures("no_sampling")

BITS = (X > 3).astype(float)
PERIODS = pd.Series(pd.period_range("2020", periods=2, freq="Y").take([0, 1] * 4))
CODES = X.assign(v=np.arange(8.0) % 3)
NINE = models.DirichletCategorical(1.0, 9)
# classifier, X, y, weight, error, words
FIT = {
    # values
    "infinite": (NB(), put(INF), Y, None, ValueError, "column 'v': value inf in row 3 is infinite"),
    "minus infinite": (NB(), put(-INF), Y, None, ValueError, "column 'v'.*-inf in row 3"),
    "infinite vector": (GD(), put(INF), Y, None, ValueError, "column 'v'.*inf in row 3"),
    "infinite shared": (GD(shared=True), put(INF), Y, None, ValueError, "column 'v'.*inf in row 3"),
    "infinite isotropic": (GD("isotropic"), put(INF), Y, None, ValueError, "column 'v'.*inf in row 3"),
    "infinite diagonal": (GD("diagonal"), put(-INF, "u"), Y, None, ValueError, "column 'u'.*-inf in row 3"),
    "half a bit": (
        NB("bernoulli"),
        BITS.assign(v=0.5),
        Y,
        None,
        ValueError,
        "column 'v': value 0.5 in row 0 is not 0 or 1",
    ),
    "negative bit": (NB("bernoulli"), BITS - 1, Y, None, ValueError, "value -1 .*not 0 or 1"),
    "infinite bit": (NB("bernoulli"), BITS.assign(v=INF), Y, None, ValueError, "column 'v'.*value inf.*not 0 or 1"),
    "negative count": (NB("poisson"), COUNTS - 2, Y, None, ValueError, "value -2 in row 0 is not a count"),
    "fraction of a count": (NB("poisson"), X, Y, None, ValueError, "column 'u'.*2.29.* in row 2 is not a count"),
    "infinite count": (NB("poisson"), COUNTS.assign(v=INF), Y, None, ValueError, "column 'v'.*inf"),
    "negative word": (NB("multinomial"), COUNTS - 2, Y, None, ValueError, "-2"),
    "half a word": (NB("multinomial"), X, Y, None, ValueError, "2.29"),
    "half a bag": (NB("multinomial"), COUNTS.assign(v=[NAN, *COUNTS["v"][1:]]), Y, None, ValueError, "row 0"),
    "unknown category": (
        NB({"v": NINE}),
        CODES.assign(v=9.0),
        Y,
        None,
        ValueError,
        "column 'v': 9.* in row 0 is not one",
    ),
    "huge code": (NB({"v": NINE}), CODES.assign(v=1e15), Y, None, ValueError, "column 'v': 1000000000000000"),
    "negative code": (NB({"v": NINE}), CODES.assign(v=-1.0), Y, None, ValueError, "column 'v': -1"),
    "infinite category": (NB("categorical"), CODES.assign(v=INF), Y, None, ValueError, "column 'v' holds an infinite"),
    "word for a number": (
        NB({"v": "gaussian"}),
        put("x"),
        Y,
        None,
        ValueError,
        "column 'v' holds 'x', which is not a number",
    ),
    "words for numbers": (GD(), X.assign(v="x"), Y, None, ValueError, "column 'v' holds 'x', which is not a number"),
    "word for a count": (NB("poisson"), COUNTS.assign(v="many"), Y, None, ValueError, "column 'v' holds 'many'"),
    "complex": (NB(), X.assign(v=1j), Y, None, TypeError, "column 'v' holds complex128"),
    "complex array": (NB(), X.to_numpy() * 1j, Y, None, ValueError, "Complex data not supported"),
    "complex object": (GD(), put(1j), Y, None, TypeError, "complex"),
    "date": (NB(), X.assign(v=pd.Timestamp("2020-01-01")), Y, None, TypeError, "column 'v' holds Datetime"),
    "dates for numbers": (
        GD(),
        X.assign(v=pd.Timestamp("2020-01-01")),
        Y,
        None,
        TypeError,
        "column 'v' holds Datetime",
    ),
    "duration": (NB(), X.assign(v=pd.Timedelta("1h")), Y, None, TypeError, "column 'v' holds Duration"),
    "array of dates": (NB(), np.full((8, 1), np.datetime64("2020")), Y, None, TypeError, "X holds datetime64"),
    "list in a cell": (NB(), X.assign(v=[[1, 2]] * 8), Y, None, TypeError, "column 'v' holds"),
    "dict in a cell": (NB(), X.assign(v=[{}] * 8), Y, None, TypeError, "column 'v' holds .*dict"),
    "nothing in a column of pyarrow": (
        NB(),
        pa.table({"u": X["u"], "v": pa.nulls(8)}),
        Y,
        None,
        ValueError,
        "column 'v' has no observed value",
    ),
    "nothing in a column of polars": (
        NB(),
        pl.DataFrame({"u": X["u"], "v": [None] * 8}),
        Y,
        None,
        ValueError,
        "column 'v' has no observed value",
    ),
    "a table not read yet": (
        NB(),
        pl.LazyFrame({"u": X["u"]}),
        Y,
        None,
        TypeError,
        r"X is a polars LazyFrame, not read yet: collect\(\) it",
    ),
    "a relation of DuckDB": (
        NB(),
        duckdb.connect().from_arrow(pa.table({"u": X["u"]})),
        Y,
        None,
        TypeError,
        r"X is a DuckDBPyRelation of DuckDB, .* X.df\(\) reads it; fit_batches\(X, target\) and predict_batches\(X\)",
    ),
    "nothing in a column": (NB(), X.assign(v=None), Y, None, ValueError, "column 'v' has no observed value"),
    # shapes and containers
    "one axis": (NB(), np.arange(8.0), Y, None, ValueError, "Reshape your data"),
    "three axes": (GD(), np.zeros((8, 2, 2)), Y, None, ValueError, "dim 3"),
    "a number": (NB(), 3.0, Y, None, ValueError, "scalar array"),
    "None": (NB(), None, Y, None, ValueError, "scalar array|None"),
    "a string": (NB(), "table.csv", Y, None, ValueError, "scalar array|string"),
    "a series": (NB(), X["u"], Y, None, ValueError, "a Series, where a table is expected"),
    "ragged": (NB(), [[1.0, 2.0], [3.0]] * 4, Y, None, ValueError, "rows differ in length"),
    "no rows": (NB(), X.iloc[:0], Y[:0], None, ValueError, "X has 0 samples"),
    "no columns": (GD(), X[[]], Y, None, ValueError, "X has 0 features"),
    "columns of one name": (NB(), X[["u", "u"]], Y, None, ValueError, "must be distinct"),
    "columns of one written name": (NB(), X.set_axis([0, "0"], axis=1), Y, None, ValueError, "must be distinct"),
    "sparse numbers": (NB(), sparse.csr_array(X), Y, None, TypeError, "X is sparse"),
    "sparse vectors": (GD(), sparse.csr_array(X), Y, None, TypeError, "X is sparse"),
    "fewer labels": (NB(), X, Y[:5], None, ValueError, "8 rows and y has 5"),
    "more labels": (GD(), X.iloc[:5], Y, None, ValueError, "5 rows and y has 8"),
    # labels
    "no labels": (NB(), X, None, None, ValueError, "y"),
    "missing label": (NB(), X, [None, *Y[1:]], None, ValueError, "missing labels"),
    "NaN label": (GD(), X, [NAN, *range(7)], None, ValueError, "missing labels"),
    "masked label": (
        NB(),
        X,
        np.ma.masked_array(np.arange(8) % 2, mask=[1] + [0] * 7),
        None,
        ValueError,
        "missing labels",
    ),
    "infinite label": (NB(), X, [INF, *np.arange(7.0)], None, ValueError, "infinity"),
    "continuous labels": (NB(), X, np.linspace(0, 1, 8), None, ValueError, "continuous"),
    "mixed labels": (
        NB(),
        X,
        np.array(["a", 1] * 4, dtype=object),
        None,
        TypeError,
        r"y mixes labels of the types \['int', 'str'\]",
    ),
    "bytes for labels": (NB(), X, Y.astype("S"), None, TypeError, "y holds bytes, .*label.decode()"),
    "bytes among labels": (GD(), X, list(Y.astype("S")), None, TypeError, "y holds bytes"),
    "periods for labels": (NB(), X, PERIODS, None, TypeError, r"y holds Period values, .*list\(map\(str, y\)\)"),
    "tuples for labels": (NB(), X, pd.Series([(1, 2), (3, 4)] * 4), None, TypeError, "y holds tuple values"),
    "two columns of labels": (NB(), X, np.array([Y, Y]).T, None, ValueError, "1d array"),
    "complex labels": (NB(), X, np.arange(8) * 1j, None, (TypeError, ValueError), "[Cc]omplex|Unknown label"),
    # weights
    "fewer weights": (NB(), X, Y, np.ones(5), ValueError, "sample_weight"),
    "negative weight": (GD(), X, Y, -np.ones(8), ValueError, "Negative values"),
    "NaN weight": (NB(), X, Y, np.full(8, NAN), ValueError, "sample_weight.*NaN|NaN"),
    "masked weight": (NB(), X, Y, np.ma.masked_array(np.ones(8), mask=[1] + [0] * 7), ValueError, "masked entries"),
    "weights beyond counting": (NB(), X, Y, np.full(8, 1e300), ValueError, "more than float64 counts"),
    "squares that overflow": (GD(), X * 1e200, Y, None, ValueError, "column 'u': squares .* larger units"),
    "squares that overflow, by column": (NB(), X * 1e200, Y, None, ValueError, "column 'u': squares .* larger units"),
    "squares and sums that overflow": (GD("isotropic"), X * 1e307, Y, None, ValueError, "column 'u': .* larger units"),
    "squares that overflow in one column": (
        GD(shared=True),
        X.assign(v=X["v"] * 1e307),
        Y,
        None,
        ValueError,
        "column 'v': .* larger units",
    ),
    "squares that vanish": (GD(), X * 1e-170, Y, None, ValueError, r"\['u', 'v'\]: squares .* smaller units"),
    "squares that lose their digits": (
        NB(),
        X.assign(v=X["v"] * 1e-160),
        Y,
        None,
        ValueError,
        r"\['v'\]: squares .* smaller units",
    ),
    "alpha beyond sums": (NB(class_concentration=1e308), X, Y, None, ValueError, "alpha must sum to 1e.300 at most"),
    "shared a word": (GD(shared="yes"), X, Y, None, TypeError, "shared must be True or False, got 'yes'"),
    "infinite weight": (GD(), X, Y, np.full(8, INF), ValueError, "infinity"),
    "no weight at all": (NB(), X, Y, np.zeros(8), ValueError, "0|weight"),
    "words for weights": (NB(), X, Y, list("abcdefgh"), TypeError, "sample_weight must hold numbers"),
    # settings of estimators
    "unknown family": (NB("gauss"), X, Y, None, ValueError, "features must be 'auto'"),
    "families in an array": (
        NB(np.array(["gaussian"] * 2)),
        X,
        Y,
        None,
        ValueError,
        "features must be .*got a ndarray",
    ),
    "families in a table": (NB(X), X, Y, None, ValueError, "features must be .*got a DataFrame"),
    "unknown column": (NB({"w": "gaussian"}), X, Y, None, ValueError, r"names the columns \['w'\]"),
    "column twice": (
        NB({"u": "gaussian", ("u", "v"): "gaussian"}),
        X,
        Y,
        None,
        ValueError,
        "names the column 'u' twice",
    ),
    "no leaf": (NB({"u": 3}), X, Y, None, TypeError, "'u' must be a model of a feature"),
    "class of a leaf": (NB({"u": models.BetaBernoulli}), X, Y, None, TypeError, "'u' must be a model of a feature"),
    "bag of one word": (NB({"u": "multinomial"}), COUNTS, Y, None, ValueError, "bag of one word"),
    "unknown covariance": (GD("round"), X, Y, None, ValueError, "covariance must be one of"),
    "unknown prior": (GD(prior="strong"), X, Y, None, ValueError, "prior must be 'weak', 'reference' or a model"),
    "prior of another kind": (
        GD("diagonal", prior=models.NormalInverseWishart([0, 0], 1, 4, np.eye(2))),
        X,
        Y,
        None,
        TypeError,
        "takes a NormalInverseGamma",
    ),
    "prior of another width": (
        GD(prior=models.NormalInverseWishart(np.zeros(3), 1, 4, np.eye(3))),
        X,
        Y,
        None,
        ValueError,
        "2 entries where the prior mean has 3",
    ),
    "gamma prior of another width": (
        GD("diagonal", prior=models.NormalInverseGamma(np.zeros(3), 1, 4, 1)),
        X,
        Y,
        None,
        ValueError,
        r"rows have \(2,\) features where the model has \(3,\)",
    ),
    "alpha negative": (NB(class_concentration=-1.0), X, Y, None, ValueError, "alpha must be positive"),
    "alpha NaN": (GD(class_concentration=NAN), X, Y, None, ValueError, "alpha must be finite"),
    "alpha a word": (NB(class_concentration="one"), X, Y, None, TypeError, "alpha must be a number"),
    "alpha of another length": (
        NB(class_concentration=[1.0, 1.0, 1.0]),
        X,
        Y,
        None,
        ValueError,
        "3 entries for 2 categories",
    ),
    "priors of another length": (GD(priors=[1.0]), X, Y, None, ValueError, "priors must hold one probability"),
    "priors not of sum 1": (NB(priors=[0.5, 0.6]), X, Y, None, ValueError, "sum to 1"),
    "priors negative": (NB(priors=[-0.5, 1.5]), X, Y, None, ValueError, ">= 0"),
    "priors NaN": (GD(priors=[NAN, 1.0]), X, Y, None, ValueError, "finite"),
    "unseen": (NB(unseen="drop"), X, Y, None, ValueError, "unseen must be"),
}


@pytest.mark.parametrize("kind", FIT)
def test_fit_refuses_before_any_inference(kind):
    """So one inference stands for all: the slowest, which would show a refusal that comes too late."""
    estimator, table, y, weight, error, words = FIT[kind]
    estimator = copy.deepcopy(estimator).set_params(inference="nuts")
    refuses(lambda: estimator.fit(table, y, weight), error, words)
    assert not hasattr(estimator, "classes_")


@pytest.mark.parametrize(
    "kind", ["infinite", "fewer labels", "missing label", "negative weight", "priors not of sum 1"]
)
@pytest.mark.parametrize("step", ["fit", "partial_fit"])
def test_a_failed_fit_leaves_the_fit_before(kind, step):
    bad, table, y, weight, error, words = FIT[kind]
    estimator = GD().fit(X, Y)
    before, want = dict(vars(estimator)), estimator.predict_proba(X)
    estimator.set_params(priors=getattr(bad, "priors", None))
    refuses(lambda: getattr(estimator, step)(table, y, sample_weight=weight), error, words.replace("class 'b', ", ""))
    estimator.set_params(priors=None)
    assert vars(estimator).keys() == before.keys()
    np.testing.assert_array_equal(estimator.predict_proba(X), want)
