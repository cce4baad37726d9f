"""Bad input of every kind: an error of the right type whose message says what is wrong, before any sampling."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen import decision, evaluation, inspection, models
from bayesgen.cli import app
from bayesgen.inference import nuts

NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
LINE, LOGIT, PROBIT = bg.LinearRegressor, bg.LogisticClassifier, bg.ProbitClassifier
NAN, INF = np.nan, np.inf
INFERENCES = ("ml", "map", "exact", "nuts")


@pytest.fixture(autouse=True)
def no_sampling(monkeypatch):
    """Nothing here may get as far as a sampler."""
    monkeypatch.setattr(nuts, "blocks", lambda *args: pytest.fail("sampling began"))


def refuses(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    # Errors of linear algebra, HDF5 or JAX are ValueErrors too, and say nothing to a user.
    assert type(caught.value).__module__.split(".")[0] in ("builtins", "bayesgen", "sklearn", "narwhals")


# -- what estimators refuse at fit, whatever the inference

X = pd.DataFrame({"u": np.arange(8.0) ** 1.2, "v": [1.0, 3.0, 2.0, 5.0, 4.0, 7.0, 6.0, 9.0]})
Y = np.array(["a", "b"] * 4)


def put(value, column="v", row=3, dtype=None):
    """The table with one bad entry."""
    table = X.astype({column: dtype or object})
    table.loc[row, column] = value
    return table.astype({column: dtype or (float if isinstance(value, float) else object)})


BITS = (X > 3).astype(float)
COUNTS = X.round()
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
    "words for weights": (NB(), X, Y, list("abcdefgh"), ValueError, "could not convert|string|dtype"),
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
    "unknown prior": (
        GD(prior="strong"),
        X,
        Y,
        None,
        ValueError,
        "prior must be 'weak', 'loo', 'reference' or a model",
    ),
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


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("kind", FIT)
def test_fit_refuses_whatever_the_inference(kind, inference):
    estimator, table, y, weight, error, words = FIT[kind]
    estimator = copy.deepcopy(estimator).set_params(inference=inference)
    refuses(lambda: estimator.fit(table, y, weight), error, words)
    assert not hasattr(estimator, "classes_")


DISCRIMINATIVE = {
    "gap": (put(NAN), Y, ValueError, "column 'v': the value in row 3 is NaN"),
    "infinite": (put(INF), Y, ValueError, "column 'v': the value in row 3 is infinite"),
    "complex": (X * 1j, Y, TypeError, "complex128"),
    "date": (X.assign(v=pd.Timestamp("2020-01-01")), Y, TypeError, "column 'v' holds Datetime"),
    "words": (X.assign(v="x"), Y, ValueError, "column 'v' holds 'x'"),
    "sparse": (sparse.csr_array(X), Y, TypeError, "X is sparse"),
    "fewer labels": (X, Y[:5], ValueError, "8 rows and y has 5"),
    "one class": (X, ["a"] * 8, ValueError, "class"),
    "missing label": (X, [None, *Y[1:]], ValueError, "missing"),
    "continuous labels": (X, np.linspace(0, 1, 8), ValueError, "continuous"),
}


@pytest.mark.parametrize("inference", ["ml", "map", "nuts"])
@pytest.mark.parametrize("make", [LOGIT, PROBIT])
@pytest.mark.parametrize("kind", DISCRIMINATIVE)
def test_discriminative_fit_refuses(kind, make, inference):
    table, y, error, words = DISCRIMINATIVE[kind]
    refuses(lambda: make(inference=inference).fit(table, y), error, words)


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


# -- what models refuse

NIG = models.NormalInverseGamma(0.0, 1.0, 2.0, 2.0)
NIW = models.NormalInverseWishart([0.0, 0.0], 1.0, 4.0, np.eye(2))
TWO = models.DirichletCategorical(1.0, 2)
NAIVE = models.NaiveBayes(TWO, {"u": NIG})
REGRESS = models.LinearRegression([0, 0, 0], np.eye(3))
MODELS = {
    # hyperparameters
    "a of no size": (lambda: models.BetaBernoulli(0.0, 1.0), ValueError, "BetaBernoulli: a must be positive, got 0"),
    "a and b beyond sums": (lambda: models.BetaBernoulli(1e308, 1e308), ValueError, "a and b must sum to 1e.300"),
    "b NaN": (lambda: models.BetaBernoulli(1.0, NAN), ValueError, "BetaBernoulli: b must be finite"),
    "a infinite": (lambda: models.BetaBernoulli(INF, 1.0), ValueError, "a must be finite"),
    "a a word": (lambda: models.BetaBernoulli("two", 1.0), TypeError, "a must be a number"),
    "a complex": (lambda: models.BetaBernoulli(1j, 1.0), TypeError, "a must be a number"),
    "a None": (lambda: models.BetaBernoulli(None, 1.0), (TypeError, ValueError), "a must be"),
    "shapes that do not fit": (lambda: models.BetaBernoulli([1.0, 1.0], [1.0] * 3), ValueError, "do not fit together"),
    "trials of no size": (lambda: models.BetaBinomial(1, 1, trials=0), ValueError, "whole numbers >= 1"),
    "trials a fraction": (lambda: models.BetaBinomial(1, 1, trials=2.5), ValueError, "whole numbers >= 1"),
    "rate negative": (lambda: models.GammaPoisson(1.0, -1.0), ValueError, "rate must be positive, got -1"),
    "concentration NaN": (lambda: models.GammaPoisson(NAN, 1.0), ValueError, "concentration must be finite"),
    "alpha without categories": (lambda: models.DirichletCategorical(1.0), ValueError, "give categories="),
    "no category": (lambda: models.DirichletCategorical(1.0, 0), ValueError, "one or more distinct"),
    "a category twice": (lambda: models.DirichletCategorical(1.0, ["a", "a"]), ValueError, "distinct labels"),
    "alpha for other categories": (lambda: models.DirichletCategorical([1.0, 1.0], 3), ValueError, "2 entries for 3"),
    "an alpha of no size": (lambda: models.DirichletCategorical([1.0, 0.0]), ValueError, "alpha must be positive"),
    "length negative": (lambda: models.DirichletMultinomial(1.0, 3, length=-1), ValueError, "length must be a whole"),
    "probabilities of sum 2": (lambda: models.KnownCategorical([1.0, 1.0]), ValueError, "sum to 1"),
    "noise of no size": (lambda: models.NormalKnownVariance(0.0, 1.0, 0.0), ValueError, "noise_sd must be positive"),
    "variance of no rows": (
        lambda: bg.fit(models.NormalKnownMean(), [NAN], "ml"),
        ValueError,
        "maximum likelihood does not exist: no observed value",
    ),
    "variance of rows that are the known mean": (
        lambda: bg.fit(models.NormalKnownMean(2.0), [2.0, 2.0], "ml"),
        ValueError,
        "every value is the known mean",
    ),
    "alpha of no size": (lambda: models.NormalKnownMean(0.0, 0.0), ValueError, "alpha must be positive"),
    "sd negative": (lambda: models.NormalKnownVariance(0.0, -1.0), ValueError, "sd must be positive"),
    "kappa of no size": (lambda: models.NormalInverseGamma(0, 0, 1, 1), ValueError, "kappa must be positive"),
    "alpha of a gamma negative": (lambda: models.NormalInverseGamma(0, 1, -1, 1), ValueError, "alpha must be positive"),
    "beta NaN": (lambda: models.NormalInverseGamma(0, 1, 1, NAN), ValueError, "beta must be finite"),
    "mean infinite": (lambda: models.NormalInverseGamma(INF, 1, 1, 1), ValueError, "mean must be finite"),
    "nu too small": (
        lambda: models.NormalInverseWishart([0, 0], 1, 1, np.eye(2)),
        ValueError,
        "nu must exceed D - 1 = 1, got 1",
    ),
    "scale not symmetric": (
        lambda: models.NormalInverseWishart([0, 0], 1, 4, [[1, 0.5], [0, 1]]),
        ValueError,
        "scale must be symmetric",
    ),
    "scale not definite": (
        lambda: models.NormalInverseWishart([0, 0], 1, 4, [[1, 2], [2, 1]]),
        ValueError,
        "positive definite",
    ),
    "scale of another size": (
        lambda: models.NormalInverseWishart([0, 0], 1, 4, np.eye(3)),
        ValueError,
        r"shape \(2, 2\)",
    ),
    "scale a number": (lambda: models.NormalInverseWishart([0, 0], 1, 4, 1.0), ValueError, "at least 2 axes"),
    "mean a number": (lambda: models.NormalInverseWishart(0.0, 1, 4, [[1.0]]), ValueError, "at least 1 axes"),
    "eta of no size": (lambda: models.SeparationPrior(eta=0.0), ValueError, "eta must be positive"),
    "separate scale negative": (lambda: models.SeparationPrior(scale=-1.0), ValueError, "scale must be positive"),
    "factor not triangular": (lambda: models.LinearRegression([0, 0], np.ones((2, 2))), ValueError, "lower triangular"),
    "factor of another size": (lambda: models.LinearRegression([0, 0], np.eye(3)), ValueError, "lower triangular"),
    "no coefficient": (lambda: models.LinearRegression([0], np.eye(1)), ValueError, "each coefficient"),
    "probit of three": (lambda: models.ProbitRegression([1.0], classes=(0, 1, 2)), ValueError, "two classes"),
    "noise of no kind": (
        lambda: models.LaplaceLinearRegression([1.0], noise="cauchy"),
        ValueError,
        "noise must be one of",
    ),
    "no class prior": (lambda: models.NaiveBayes(NIG, {"u": NIG}), TypeError, "classes must be a DirichletCategorical"),
    "reserved name": (lambda: models.NaiveBayes(TWO, {"classes": NIG}), ValueError, "names the class prior"),
    "isotropic with two betas": (
        lambda: models.GaussianDiscriminant(TWO, models.NormalInverseGamma([0, 0], 1, 1, [1, 2]), "isotropic"),
        ValueError,
        "one variance",
    ),
    "isotropic separation": (
        lambda: models.GaussianDiscriminant(TWO, models.SeparationPrior(), "isotropic"),
        TypeError,
        "NormalInverseGamma or ReferenceGaussian prior",
    ),
    "vector prior with one mean": (
        lambda: models.GaussianDiscriminant(TWO, NIG, "diagonal"),
        ValueError,
        "one entry for each column",
    ),
    # rows
    "complex rows": (lambda: bg.fit(NIG, np.array([1j])), TypeError, "takes numbers, got complex128"),
    "dates": (lambda: bg.fit(NIG, np.array(["2020"], "datetime64[Y]")), TypeError, "takes numbers, got datetime64"),
    "words": (lambda: bg.fit(NIG, ["1", "2"]), TypeError, "takes numbers, got <U1"),
    "objects": (lambda: bg.fit(NIG, [{}, 1]), TypeError, "takes numbers"),
    "ragged rows": (lambda: bg.fit(NIG, [[1.0], [1.0, 2.0]]), ValueError, "inhomogeneous"),
    "a number for rows": (lambda: bg.fit(NIG, 3.0), ValueError, "array of rows"),
    "vector for rows of vectors": (lambda: bg.fit(NIW, [1.0, 2.0]), ValueError, "2 axes or more"),
    "wide rows": (lambda: bg.fit(NIW, np.zeros((3, 4))), ValueError, "4 entries where the prior mean has 2"),
    "wide block": (
        lambda: bg.fit(models.NormalInverseGamma([0.0, 0.0], 1, 1, 1), np.zeros((3, 3))),
        ValueError,
        r"rows have \(3,\) features where the model has \(2,\)",
    ),
    "partly missing vector": (
        lambda: bg.fit(NIW, [[NAN, 1.0], [1.0, 2.0]]),
        ValueError,
        "partly missing.*'map' or 'nuts'",
    ),
    "sparse rows": (lambda: bg.fit(NIG, sparse.csr_array([[1.0]])), TypeError, "takes dense rows"),
    "infinite row": (lambda: bg.fit(NIG, [1.0, INF]), ValueError, "value inf in row 1 is infinite"),
    "code beyond": (lambda: bg.fit(TWO, [0, 2]), ValueError, r"value 2 in row 1 is not a category code 0..1"),
    "huge code": (lambda: bg.fit(TWO, [0, 10**15]), ValueError, "value 1e.15 in row 1 is not a category code"),
    "code beyond any integer": (lambda: bg.fit(TWO, [0.0, 1e300]), ValueError, "is not a category code"),
    "negative code": (lambda: bg.fit(TWO, [0, -1]), ValueError, "value -1 in row 1"),
    "half a code": (lambda: bg.fit(TWO, [0.5]), ValueError, "value 0.5 in row 0"),
    "more heads than tosses": (lambda: bg.fit(models.BetaBinomial(1, 1, trials=3), [4]), ValueError, "4"),
    "more heads than tosses in a pair": (lambda: bg.fit(models.BetaBinomial(1, 1), [[4, 3]]), ValueError, "row 0"),
    "masked regression rows": (
        lambda: REGRESS.statistics(np.ma.masked_array(np.ones((2, 2)), mask=[[1, 0], [0, 0]]), [1.0, 2.0]),
        ValueError,
        "the value in row 0 is NaN",
    ),
    "masked regression target": (
        lambda: REGRESS.statistics(np.ones((2, 2)), np.ma.masked_array([1.0, 2.0], mask=[0, 1])),
        ValueError,
        "the target has masked entries",
    ),
    "group beyond": (lambda: NIG.statistics([1.0, 2.0], [0, 5], 2), ValueError, "whole number from 0 to 1"),
    "group below": (lambda: NIW.statistics(np.eye(2), [0, -1], 2), ValueError, "whole number from 0 to 1"),
    "half a group": (
        lambda: models.BetaBernoulli().statistics([1, 0], [0.5, 1], 2),
        ValueError,
        "whole number from 0 to 1",
    ),
    "fewer groups": (lambda: TWO.statistics([1, 0], [0], 2), ValueError, "each of the 2 rows"),
    "groups without their number": (
        lambda: models.GammaPoisson(1, 1).statistics([1, 0], [0, 1]),
        ValueError,
        "groups=",
    ),
    "group of a bag beyond": (
        lambda: models.DirichletMultinomial(1.0, 2).statistics([[1, 0]], [1], 1),
        ValueError,
        "from 0 to 0",
    ),
    "masked weight": (
        lambda: NIG.statistics([1.0, 2.0], weight=np.ma.masked_array([1, 1], mask=[0, 1])),
        ValueError,
        "masked entries",
    ),
    "negative weight": (lambda: NIG.statistics([1.0], weight=[-1.0]), ValueError, "finite number >= 0"),
    "NaN weight": (lambda: NIG.statistics([1.0], weight=[NAN]), ValueError, "finite number >= 0"),
    "one weight for all": (lambda: NIG.statistics([1.0, 2.0], weight=[1.0]), ValueError, "each of the 2 rows"),
    "class beyond": (
        lambda: NAIVE.statistics({"u": [1.0]}, [2]),
        ValueError,
        "value 2 in row 0 is not a category code",
    ),
    "missing class": (lambda: NAIVE.statistics({"u": [1.0]}, [NAN]), ValueError, "t is missing in row 0"),
    "fewer classes": (lambda: NAIVE.statistics({"u": [1.0, 2.0]}, [0]), ValueError, "one length"),
    "no such feature": (lambda: NAIVE.statistics({"w": [1.0]}, [0]), ValueError, r"lacks the features \['u'\]"),
    "array for a mapping": (lambda: NAIVE.statistics(np.ones((1, 1)), [0]), TypeError, "as a mapping"),
    "wide prediction": (lambda: bg.fit(NIW, np.eye(2)).log_predictive(np.zeros((1, 3))), ValueError, "3 entries where"),
    "infinite prediction": (lambda: bg.fit(NIG, [1.0, 2.0]).log_predictive([INF]), ValueError, "infinite"),
    "unknown inference": (lambda: bg.fit(NIG, [1.0], "vb"), ValueError, "inference must be one of"),
    "class of an inference": (lambda: bg.fit(NIG, [1.0], bg.NUTS), ValueError, r"such as NUTS\(num_samples=500\)"),
    "model as a word": (lambda: bg.fit("coin", [1.0]), TypeError, "model must be a model"),
    "class of a model": (lambda: bg.fit(models.BetaBernoulli, [1.0]), TypeError, "model must be a model"),
    "no exact separation": (
        lambda: bg.fit(models.GaussianDiscriminant(TWO, models.SeparationPrior([0.0, 0.0])), (np.eye(2), [0, 1])),
        TypeError,
        "no exact posterior",
    ),
    "ml of nothing": (lambda: bg.fit(NIG, [NAN], "ml"), ValueError, "no observed value"),
    "ml of one value": (lambda: bg.fit(NIG, [1.0, 1.0], "ml"), ValueError, "fewer than two distinct values"),
    "ml of an empty class": (
        lambda: bg.fit(NAIVE, ({"u": [1.0, 2.0]}, [0, 0]), "ml"),
        ValueError,
        "class 1.*no observed",
    ),
    "ml of few vectors": (lambda: bg.fit(NIW, [[1.0, 2.0]], "ml"), ValueError, "degrees of freedom"),
    "ml on a line": (lambda: bg.fit(NIW, np.outer(np.arange(6.0), [1, 2]), "ml"), ValueError, "linearly dependent"),
    "no mode of a coin": (
        lambda: bg.fit(models.BetaBernoulli(0.5, 0.5), [1], "map"),
        ValueError,
        "no mode where a or b",
    ),
    "no mode of a die": (lambda: bg.fit(models.DirichletCategorical(0.5, 3), [1], "map"), ValueError, "no mode where"),
    "statistics that do not add": (
        lambda: NIG.statistics([1.0]) + TWO.statistics([1]),
        TypeError,
        "unsupported operand",
    ),
    "statistics of other columns": (
        lambda: NIW.statistics(np.eye(2)) + NIG.statistics([1.0]),
        TypeError,
        "unsupported operand",
    ),
    # samplers
    "no draw": (lambda: bg.NUTS(num_samples=0), ValueError, "num_samples must be an integer >= 1, got 0"),
    "warmup negative": (lambda: bg.NUTS(num_warmup=-1), ValueError, "num_warmup must be an integer >= 0"),
    "half a chain": (lambda: bg.NUTS(num_chains=0.5), ValueError, "num_chains must be an integer >= 1"),
    "acceptance of 1": (lambda: bg.NUTS(target_accept=1.0), ValueError, "target_accept must lie between 0 and 1"),
    "acceptance NaN": (lambda: bg.NUTS(target_accept=NAN), ValueError, "target_accept must lie between 0 and 1"),
    "draws in words": (lambda: bg.NUTS(num_samples="many"), ValueError, "num_samples must be an integer"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_models_refuse(kind):
    refuses(*MODELS[kind])


# -- what decisions and scores refuse

P = [[0.5, 0.5], [0.2, 0.8]]
CLASSIFIER = GD().fit(X, Y)


def sets(classifier, new=X, y=Y, **options):
    return bg.inspection.predict_set(classifier, new, X, y, **options)


SCORES = {
    "percent": (lambda: decision.decide([[50, 50]]), ValueError, "every row summing to 1"),
    "one column": (lambda: decision.decide([0.5, 0.5]), ValueError, "both columns"),
    "NaN probability": (lambda: decision.decide([[NAN, 1.0]]), ValueError, "finite and in"),
    "masked probabilities": (
        lambda: decision.decide(np.ma.masked_array(P, mask=np.eye(2))),
        ValueError,
        "masked entries",
    ),
    "masked truth": (
        lambda: evaluation.accuracy(np.ma.masked_array([0, 1], mask=[0, 1]), P),
        ValueError,
        "y_true contains missing labels",
    ),
    "negative probability": (lambda: evaluation.log_loss([0], [[-0.5, 1.5]]), ValueError, r"in \[0, 1\]"),
    "words for probabilities": (lambda: evaluation.accuracy([0], [["a", "b"]]), TypeError, "array of numbers"),
    "complex probability": (lambda: decision.decide([[1j, 1 - 1j]]), TypeError, "array of numbers"),
    "one label of two": (
        lambda: evaluation.accuracy(["a", "a"], P),
        ValueError,
        r"y_true holds 1 distinct values \['a'\]",
    ),
    "numbers for labels": (lambda: evaluation.brier_score([0.3, 1.2], P), ValueError, "continuous"),
    "code beyond": (lambda: evaluation.log_loss([2, 2], P), ValueError, r"y_true holds 1 distinct values \[2\]"),
    "label beyond": (
        lambda: evaluation.log_loss([1, 3], P, labels=[1, 2]),
        ValueError,
        r"y_true holds \[3\], not among",
    ),
    "fewer truths": (lambda: evaluation.log_loss([0], P), ValueError, r"y_true must have shape \(2,\)"),
    "loss of another width": (
        lambda: decision.decide(P, np.eye(3)),
        ValueError,
        r"loss must have shape \(2, actions\)",
    ),
    "infinite loss": (lambda: decision.expected_loss(P, [[0, INF], [1, 0]]), ValueError, "loss must be finite"),
    "reject at NaN": (lambda: decision.decide(P, reject_cost=NAN), ValueError, "reject_cost must be finite"),
    "rejected without cost": (lambda: decision.risk([0], [-1], np.eye(2)), ValueError, "reject_cost is needed"),
    "action beyond": (lambda: decision.risk([0], [2], np.eye(2)), ValueError, "action must be codes"),
    "threshold of gains": (lambda: decision.threshold(np.eye(2)), ValueError, "dearer than correct"),
    "threshold of three": (lambda: decision.threshold(np.eye(3)), ValueError, "loss must have shape"),
    "no bins": (lambda: evaluation.reliability_table([0, 1], P, bins=0), ValueError, "bins must be"),
    "bins of no kind": (
        lambda: evaluation.reliability_table([0, 1], P, strategy="log"),
        ValueError,
        "strategy must be",
    ),
    "error of no kind": (
        lambda: evaluation.expected_calibration_error([0, 1], P, kind="mean"),
        ValueError,
        "kind must be",
    ),
    "negative weights": (
        lambda: evaluation.accuracy([0, 1], P, sample_weight=[-1, 2]),
        ValueError,
        "finite and nonnegative",
    ),
    "weights of 0": (lambda: evaluation.accuracy([0, 1], P, sample_weight=[0, 0]), ValueError, "at least one row"),
    "nothing to compare": (lambda: bg.compare_evidence({}), ValueError, "mapping from name to fitted"),
    "evidences of other rows": (
        lambda: bg.compare_evidence({"one": CLASSIFIER, "two": GD().fit(X[1:], Y[1:])}),
        ValueError,
        "do not compare",
    ),
    "evidences of rescaled rows": (
        lambda: bg.compare_evidence({"one": CLASSIFIER, "two": NB().fit(2 * X, Y)}),
        ValueError,
        "of different rows; column 'u' has means by class of",
    ),
    "evidences of other gaps": (
        lambda: bg.compare_evidence({"one": CLASSIFIER, "two": NB().fit(X.mask(X > 8), Y)}),
        ValueError,
        r"column 'u' has observed values by class of \[4.0, 4.0\] and \[3.0, 3.0\]",
    ),
    "evidences of other counts": (
        lambda: bg.compare_evidence({"one": NB("poisson").fit(COUNTS, Y), "two": NB("categorical").fit(COUNTS + 1, Y)}),
        ValueError,
        "column 'u' has means by class",
    ),
    "left out of moved rows": (lambda: CLASSIFIER.leave_one_out(X + 0.5, Y), ValueError, "rows of the fit: column 'u'"),
    "left out of other labels": (
        lambda: CLASSIFIER.leave_one_out(X, np.roll(Y, 1)),
        ValueError,
        "rows of the fit: column 'u'",
    ),
    "draws beyond memory": (
        lambda: CLASSIFIER.predict_proba_draws(X, 10**12),
        MemoryError,
        "of 8 rows' probabilities of 2 classes would take 128000 GB of memory, and there are .*: take fewer draws",
    ),
    "reference prior of too few rows": (
        lambda: GD(prior="reference").fit(X[:4], Y[:4]),
        ValueError,
        "class 'a'.*2 columns need more rows than 2 in each class",
    ),
    "shared reference prior of too few rows": (
        lambda: GD(prior="reference", shared=True).fit(X[:3], Y[:3]),
        ValueError,
        "class 'a'.*as many rows beyond one in each class",
    ),
    "reference prior of a constant column": (
        lambda: GD(prior="reference").fit(X.assign(v=1.0), Y),
        ValueError,
        "class 'a', column 'v': .*stays improper here: no two distinct values",
    ),
    "reference prior of dependent columns": (
        lambda: GD(prior="reference", shared=True).fit(X.assign(v=2 * X["u"]), Y),
        ValueError,
        "linearly dependent",
    ),
    "reference prior of one value": (
        lambda: NB(prior="reference").fit(X.assign(u=[1.0, 2.0] * 4), Y),
        ValueError,
        "class 'a', column 'u': .*fewer than two distinct values",
    ),
    "reference prior of rows with gaps": (
        lambda: GD(prior="reference").fit(put(NAN), Y),
        ValueError,
        "column 'v': rows are partly missing: the reference prior",
    ),
    "evidence of a reference prior": (
        lambda: GD(prior="reference").fit(X, Y).log_evidence_,
        AttributeError,
        "improper: it has no evidence",
    ),
    "NUTS under a reference prior": (
        lambda: GD(prior="reference", inference="nuts").fit(X, Y),
        ValueError,
        "an improper prior has none: use 'exact' or 'map'",
    ),
    "a prior of naive Bayes by another name": (
        lambda: NB(prior="jeffreys").fit(X, Y),
        ValueError,
        "prior must be 'weak' or 'reference'",
    ),
    "draws of an improper prior": (
        lambda: models.HaldaneBernoulli().sample_parameters(np.random.default_rng(0)),
        ValueError,
        "HaldaneBernoulli is improper: it has no draws",
    ),
    "evidence of an improper prior": (
        lambda: bg.fit(models.ReferenceGaussian(), [1.0, 2.0]).log_evidence,
        ValueError,
        "ReferenceGaussian is improper: it has no evidence",
    ),
    "a coin that fell on one side": (
        lambda: bg.fit(models.HaldaneBernoulli(), [1, 1]),
        ValueError,
        "Haldane's prior needs a one and a zero",
    ),
    "a query of a point": (
        lambda: bg.inspection.query(GD(inference="ml").fit(X, Y), X),
        ValueError,
        "it needs inference='exact' or 'nuts'",
    ),
    "a query of no rows": (lambda: bg.inspection.query(CLASSIFIER, X, 0), ValueError, "n must be a whole number >= 1"),
    "a query of more rows than there are": (
        lambda: bg.inspection.query(CLASSIFIER, X, 9),
        ValueError,
        "n must be at most the 8 rows of X, got 9",
    ),
    "a query of half a draw": (
        lambda: bg.inspection.query(CLASSIFIER, X, size=0.5),
        ValueError,
        "size must be a whole",
    ),
    "a query before a fit": (lambda: bg.inspection.query(GD(), X), ValueError, "not fitted"),
    "no label, exactly": (
        lambda: GD(unlabelled=-1).fit(X, [0, 1, 0, 1, 0, 1, 0, -1]),
        ValueError,
        "1 rows have no label: their posterior .* use inference='map', 'ml' or 'nuts'",
    ),
    "no label, unannounced": (
        lambda: GD(inference="map").fit(X, [*Y[:7], None]),
        ValueError,
        "y contains missing labels",
    ),
    "no label at all": (
        lambda: GD(inference="map", unlabelled=-1).fit(X, [-1] * 8),
        ValueError,
        "y holds no label at all",
    ),
    "no label that is NaN beside a marker": (
        lambda: GD(inference="map", unlabelled=-1).fit(X, [0, 1, 0, 1, 0, 1, NAN, -1]),
        ValueError,
        "y contains missing labels",
    ),
    "two markers": (lambda: GD(unlabelled=[-1, 9]).fit(X, Y), ValueError, "the value that stands for no label"),
    "no label, in pieces": (
        lambda: GD(inference="map", unlabelled=-1).partial_fit(X, Y, classes=["a", "b"]),
        AttributeError,
        "partial_fit",
    ),
    "no label and a gap": (
        lambda: GD(inference="map", unlabelled=-1).fit(put(NAN), [0, 1, 0, -1, 0, 1, 0, 1]),
        ValueError,
        "rows without a label have gaps",
    ),
    "the weight of rows that all have a label": (
        lambda: bg.inspection.unlabelled_weight(GD(inference="map", unlabelled=-1), X, Y),
        ValueError,
        "every row of y has a label",
    ),
    "the weight beside one label": (
        lambda: bg.inspection.unlabelled_weight(GD(inference="map", unlabelled=-1), X, [0, 1, 0, 0, -1, 0, 0, 0]),
        ValueError,
        "a class has one label only",
    ),
    "a negative weight of rows without a label": (
        lambda: bg.inspection.unlabelled_weight(GD(inference="map", unlabelled=-1), X, [0, 1, 0, 1, -1, 0, 1, 0], [-1]),
        ValueError,
        "weights must hold one finite number >= 0",
    ),
    "sets of level 1": (lambda: sets(CLASSIFIER, level=1), ValueError, "level must lie between 0 and 1, got 1"),
    "sets of many levels": (lambda: sets(CLASSIFIER, level=[0.8, 0.9]), ValueError, "level must lie between 0 and 1"),
    "sets by some class": (lambda: sets(CLASSIFIER, by_class="a"), TypeError, "by_class must be True or False"),
    "sets by other rows": (lambda: sets(CLASSIFIER, y=Y[::-1]), ValueError, "must be the rows of the fit"),
    "sets of weighted rows": (
        lambda: sets(GD().fit(X, Y, np.arange(1.0, 9.0))),
        ValueError,
        "Rows with weights are not exchangeable",
    ),
    "sets by a prior that rows chose": (lambda: sets(GD(prior="loo").fit(X, Y)), ValueError, "prior='loo' was chosen"),
    "sets by an exponent that rows chose": (
        lambda: sets(NB(exponent="loo").fit(X, Y)),
        ValueError,
        "exponent='loo' was chosen",
    ),
    "sets of a row with gaps": (lambda: sets(CLASSIFIER, put(NAN)), ValueError, "a full covariance has no exact"),
    "sets by maximum likelihood of its own rows": (
        lambda: sets(GD(inference="ml").fit(X, Y)),
        ValueError,
        "are the rows of the fit, which is not exact",
    ),
    "sets by labels of another length": (
        lambda: bg.inspection.predict_set(GD(inference="ml").fit(X, Y), X, X[:4], Y),
        ValueError,
        "X_known has 4 rows and y_known has 8",
    ),
    "sets before a fit": (lambda: sets(GD()), ValueError, "not fitted"),
    "reliability of no draws": (lambda: bg.inspection.draw_reliability(CLASSIFIER, X), ValueError, "inference='nuts'"),
    "evidence without prior": (lambda: bg.compare_evidence({"one": CLASSIFIER}, prior=[-1.0]), ValueError, ">= 0"),
}


@pytest.mark.parametrize("kind", SCORES)
def test_scores_refuse(kind):
    refuses(*SCORES[kind])


# -- the life of an estimator

NAMED = NB().fit(X.assign(c=list("pqpqpqpq")), Y)
TABLE = X.assign(c=list("pqpqpqpq"))
MANY = models.DirichletCategorical(1.0, range(10000))
WIDE = pd.DataFrame(np.zeros((8, 10000)))
LIFE = {
    "not fitted": (lambda: NB().predict(X), ValueError, "not fitted"),
    "not fitted, probabilities": (lambda: GD().predict_proba(X), ValueError, "not fitted"),
    "not fitted, evidence": (lambda: GD().log_evidence_, (ValueError, AttributeError), "not fitted|log_evidence_"),
    "not fitted, sample": (lambda: NB().sample(3), ValueError, "not fitted"),
    "not fitted, save": (lambda: NB().save("nowhere.nc"), ValueError, "not fitted"),
    "not fitted, ArviZ": (lambda: NB().to_arviz(), ValueError, "not fitted"),
    "columns in another order": (lambda: NAMED.predict(TABLE[["v", "u", "c"]]), ValueError, "same order"),
    "a column less": (lambda: NAMED.predict(TABLE[["u", "v"]]), ValueError, "now missing:\n- c"),
    "a column more": (lambda: NAMED.predict(TABLE.assign(w=1)), ValueError, "unseen at fit time:\n- w"),
    "another width": (
        lambda: GD().fit(X.to_numpy(), Y).predict(np.zeros((1, 3))),
        ValueError,
        "3 features, but .* expecting 2",
    ),
    "new category": (
        lambda: NB(unseen="error").fit(TABLE, Y).predict(TABLE.assign(c="r")),
        ValueError,
        "column 'c': 'r' in row 0 is not one",
    ),
    "one category beside ten thousand": (
        lambda: NB({"c": MANY}, unseen="error").fit(TABLE.assign(c=1), Y).predict(TABLE.assign(c="r")),
        ValueError,
        r"'r' in row 0 is not one of the categories \[0, 1, 2, 3, 4, 5\] and 9994 more; declare",
    ),
    "one class beside ten thousand": (
        lambda: GD().partial_fit(X, Y, classes=[f"k{i:04}" for i in range(10000)]),
        ValueError,
        r"labels \['a', 'b'\], .* classes \['k0000', .*'k0005'\] and 9994 more: declare",
    ),
    "priors of ten thousand classes": (
        lambda: NB(priors=[1.0]).partial_fit(X, [0] * 8, classes=range(10000)),
        ValueError,
        r"classes \[0, 1, 2, 3, 4, 5\] and 9994 more$",
    ),
    "a column of ten thousand": (
        lambda: NB({"w": "gaussian"}).fit(WIDE, Y),
        ValueError,
        r"does not have; it has \['0', '1', '2', '3', '4', '5'\] and 9994 more$",
    ),
    "infinite at prediction": (lambda: NAMED.predict(TABLE.assign(u=INF)), ValueError, "column 'u'.*infinite"),
    "infinite vector at prediction": (lambda: CLASSIFIER.predict(X.assign(u=-INF)), ValueError, "column 'u'.*infinite"),
    "word at prediction": (lambda: CLASSIFIER.predict(X.assign(u="x")), ValueError, "column 'u' holds 'x'"),
    "no rows at prediction": (lambda: CLASSIFIER.predict(X[:0]), ValueError, "0 samples"),
    "other priors of another length": (
        lambda: CLASSIFIER.predict_proba(X, priors=[1.0]),
        ValueError,
        "one probability for each",
    ),
    "other priors of sum 2": (lambda: CLASSIFIER.predict_proba(X, priors=[1.0, 1.0]), ValueError, "sum to 1"),
    "no sample": (lambda: CLASSIFIER.sample(0), ValueError, "n_samples must be a whole number"),
    "half a sample": (lambda: CLASSIFIER.sample(1.5), ValueError, "n_samples must be a whole number"),
    "classes not declared": (lambda: GD().partial_fit(X, Y), ValueError, "classes must be given at the first call"),
    "a class that was not declared": (
        lambda: GD().partial_fit(X, Y, classes=["a", "c"]),
        ValueError,
        r"labels \['b'\]",
    ),
    "declared classes with a gap": (lambda: GD().partial_fit(X, Y, classes=["a", "b", None]), ValueError, "missing"),
    "declared classes of two types": (
        lambda: GD().partial_fit(X, Y, classes=np.array(["a", "b", 1], object)),
        TypeError,
        "mixes labels",
    ),
    "declared classes in a table": (
        lambda: GD().partial_fit(X, Y, classes=[["a", "b"], ["a", "b"]]),
        ValueError,
        "1d array",
    ),
    "other classes later": (
        lambda: GD().partial_fit(X, Y, classes=["a", "b"]).partial_fit(X, Y, classes=["a"]),
        ValueError,
        "since the first call",
    ),
    "a new class later": (
        lambda: GD().partial_fit(X, Y, classes=["a", "b"]).partial_fit(X[:1], ["z"]),
        ValueError,
        r"\['z'\]",
    ),
    "a new column later": (
        lambda: GD().partial_fit(X, Y, classes=["a", "b"]).partial_fit(TABLE, Y),
        ValueError,
        "unseen at fit time",
    ),
    "evidence of a separation": (
        lambda: GD(prior=models.SeparationPrior(), covariance="diagonal", inference="map").fit(X, Y).log_evidence_,
        AttributeError,
        "no closed form here",
    ),
    "a leaf in grid search": (lambda: NB().set_params(depth=3), ValueError, "has no parameter 'depth'"),
}


@pytest.mark.parametrize("kind", LIFE)
def test_life_refuses(kind):
    refuses(*LIFE[kind])


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


# -- what is odd but right

ODD = {
    "big-endian": X.to_numpy().astype(">f8"),
    "read-only": np.lib.stride_tricks.as_strided(X.to_numpy(), writeable=False),
    "negative strides": X.to_numpy()[::-1][::-1],
    "Fortran order": np.asfortranarray(X.to_numpy()),
    "masked, nothing masked": np.ma.masked_array(X.to_numpy()),
    "single precision": X.to_numpy().astype(np.float32).astype(np.float64),
    "objects": X.to_numpy().astype(object),
    "nested lists": X.to_numpy().tolist(),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("make", [GD, NB])
def test_odd_containers_are_read(kind, make):
    want = make().fit(X.to_numpy(), Y).predict_proba(X.to_numpy())
    table = ODD[kind]
    tolerance = 1e-6 if kind == "single precision" else 1e-13
    np.testing.assert_allclose(make().fit(table, Y).predict_proba(table), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int64, np.float32])
def test_small_integers_do_not_wrap_around(dtype):
    """Of a uint8, 255 + 2 is 1."""
    top = np.full((20, 2), min(255, np.iinfo(dtype).max) if np.dtype(dtype).kind in "iu" else 255, dtype)
    for leaf in (
        models.GammaPoisson(1.0, 1.0),
        models.DirichletMultinomial(1.0, 2),
        models.BetaBinomial(1, 1, trials=255),
    ):
        x = top if leaf.event_dim else top[:, 0]
        narrow, wide = (bg.fit(leaf, rows) for rows in (x, x.astype(float)))
        assert narrow.log_evidence == wide.log_evidence
        np.testing.assert_array_equal(narrow.log_predictive(x), wide.log_predictive(x.astype(float)))


@pytest.mark.parametrize("covariance", ["full", "diagonal", "isotropic"])
def test_rows_beyond_any_density_get_the_class_prior(covariance):
    """Under a plug-in Gaussian squares of 1e200 overflow: log p(x | class) is -inf for all, and a warning says so."""
    classifier = GD(covariance, inference="map", class_concentration=2.0).fit(X, Y)
    with pytest.warns(UserWarning, match="8 rows have probability 0 under every class"):
        np.testing.assert_allclose(classifier.predict_proba(1e200 * (1 + X)), 0.5)


@pytest.mark.parametrize("size", [1e153, 1e200, 1e300])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "isotropic"])
def test_rows_far_out_keep_their_student_t(covariance, size):
    """A t falls like a power of the distance, so its ratios have a limit: those at 1e153 are those at 1e100."""
    classifier, direction = GD(covariance).fit(X, Y), np.ones_like(X) + X / np.abs(X).max()
    np.testing.assert_allclose(
        classifier.predict_proba(size * direction), classifier.predict_proba(1e100 * direction), rtol=1e-9
    )


def test_one_class_is_certain():
    np.testing.assert_array_equal(GD().fit(X, ["a"] * 8).predict_proba(X), 1.0)


# -- questions to a fitted classifier


def fitted(make=GD):
    return make().fit(X, Y)


def discriminative():
    return LOGIT(inference="map").fit(X, Y)


QUESTIONS = {
    "shares before a fit": (lambda: inspection.estimate_class_prior(GD(), X), ValueError, "not fitted"),
    "shares by a discriminative model": (
        lambda: inspection.estimate_class_prior(discriminative(), X),
        ValueError,
        "needs a generative classifier",
    ),
    "no prior of shares": (
        lambda: inspection.estimate_class_prior(fitted(), X, concentration=0.0),
        ValueError,
        "concentration must be a finite number > 0",
    ),
    "no draws of shares": (lambda: inspection.estimate_class_prior(fitted(), X, draws=0), ValueError, "draws must be"),
    "shares of no rows": (
        lambda: inspection.estimate_class_prior(fitted(), X[:0]),
        ValueError,
        "0 row|0 sample|no row",
    ),
    "next measurement of a discriminative model": (
        lambda: inspection.next_measurement(discriminative(), X),
        ValueError,
        "needs a generative classifier",
    ),
    "cost of a column that is not there": (
        lambda: inspection.next_measurement(fitted(), X, cost={"w": 1.0}),
        ValueError,
        "cost names the columns 'w'.*it has 'u', 'v'|cost names the columns",
    ),
    "cost of three columns": (
        lambda: inspection.next_measurement(fitted(), X, cost=[1.0, 1.0, 1.0]),
        ValueError,
        "one for each of the 2 columns",
    ),
    "typicality as it is returned": (
        lambda: decision.decide(
            fitted().predict_proba(X), typicality=inspection.typicality(fitted(), X), none_of_these=0.01
        ),
        TypeError,
        "give .overall",
    ),
    "squares of the average below float64": (
        lambda: bg.AveragedClassifier().fit(X * 1e-170, Y),
        ValueError,
        r"columns \['u', 'v'\]: squares of values below 1e-150",
    ),
    "cost below zero": (lambda: inspection.next_measurement(fitted(), X, cost=-1.0), ValueError, "finite and >= 0"),
    "cost of NaN": (lambda: inspection.next_measurement(fitted(), X, cost={"u": NAN}), ValueError, "finite and >= 0"),
    "cost in words": (
        lambda: inspection.next_measurement(fitted(), X, cost="much"),
        TypeError,
        "cost must be a number",
    ),
    "loss of three classes": (
        lambda: inspection.next_measurement(fitted(), X, loss=np.eye(3)),
        ValueError,
        "a row for each true class",
    ),
    "budget below zero": (lambda: inspection.acquire(fitted(), X, X, -1), ValueError, "budget must be a number >= 0"),
    "values of other rows": (lambda: inspection.acquire(fitted(), X, X[:3], 1.0), ValueError, "of the same rows"),
    "a bag to measure": (
        lambda: inspection.next_measurement(NB("multinomial").fit(COUNTS, Y), COUNTS.mask(COUNTS >= 0)),
        ValueError,
        "columns such as 'u'.*entries are missing",
    ),
    "gaps of a discriminative model": (
        lambda: inspection.impute(discriminative(), X),
        ValueError,
        "needs a generative classifier",
    ),
    "half a table of draws": (lambda: inspection.impute(fitted(), X, draws=0.5), ValueError, "draws must be"),
    "classes of other rows": (lambda: inspection.impute(fitted(), X, Y[:3]), ValueError, "X has 8 rows and y has 3"),
    "classes not of the fit": (lambda: inspection.impute(fitted(), X, ["c"] * 8), ValueError, "'c'"),
    "a missing bag": (
        lambda: inspection.impute(NB("multinomial").fit(COUNTS, Y), COUNTS.mask(COUNTS >= 0)),
        ValueError,
        "columns such as 'u'.*probability given the total, and entries are missing",
    ),
    "an imputer half on": (lambda: bg.Imputer(draw="yes").fit(X, Y), TypeError, "draw must be True or False"),
    "typicality by a discriminative model": (
        lambda: inspection.typicality(discriminative(), X),
        ValueError,
        "needs a generative classifier",
    ),
    "typicality without draws": (lambda: inspection.typicality(fitted(), X, 0), ValueError, "draws must be"),
    "typicality of a bag": (
        lambda: inspection.typicality(NB("multinomial").fit(COUNTS, Y), COUNTS),
        ValueError,
        "columns such as 'u'.*probability given the total",
    ),
    "none of these without typicality": (
        lambda: decision.decide([[0.5, 0.5]], none_of_these=0.1),
        ValueError,
        "typicality and none_of_these go together",
    ),
    "typicality of classes": (
        lambda: decision.decide([[0.5, 0.5]], typicality=[[0.5, 0.5]], none_of_these=0.1),
        ValueError,
        "give .overall",
    ),
    "a level of nothing": (
        lambda: decision.decide([[0.5, 0.5]], typicality=[0.5], none_of_these=0.0),
        ValueError,
        "none_of_these must lie between 0 and 1",
    ),
    "a level of all": (
        lambda: decision.decide([[0.5, 0.5]], typicality=[0.5], none_of_these=1),
        ValueError,
        "none_of_these must lie between 0 and 1",
    ),
    "interval beyond certainty": (
        lambda: inspection.estimate_class_prior(fitted(), X, draws=5).interval(1.0),
        ValueError,
        "level must lie between 0 and 1",
    ),
}


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.filterwarnings("ignore:.*rows without labels")
def test_a_question_is_refused(kind):
    refuses(*QUESTIONS[kind])


# -- files


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "not a file that"), (b"PK\x03\x04", "not a file that"), (b"\x89HDF\r\n\x1a\n", "damaged"),
     (b"\x89HDF\r\n\x1a\n" + b"\0" * 4000, "damaged"), (b"\x80\x04K\x01.", "not a file that")],
)  # fmt: skip
def test_load_refuses_foreign_files(content, words, tmp_path):
    (tmp_path / "model.nc").write_bytes(content)
    refuses(lambda: bg.load(tmp_path / "model.nc"), ValueError, words)


def test_load_refuses_a_file_of_another_library(tmp_path):
    pd.DataFrame({"x": [1.0]}).to_xarray().to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    refuses(lambda: bg.load(tmp_path / "other.nc"), ValueError, "not a file that an estimator of bayesgen was saved to")


def test_load_refuses_a_file_that_is_not_there(tmp_path):
    refuses(lambda: bg.load(tmp_path / "none.nc"), FileNotFoundError, "none.nc")


def test_load_refuses_a_file_with_one_changed_byte(tmp_path):
    """Or reads it as it was, where the byte is one that HDF5 does not look at."""
    fitted = GD().fit(X, Y)
    fitted.save(tmp_path / "model.nc")
    content, refused = (tmp_path / "model.nc").read_bytes(), 0
    for place in np.random.default_rng(0).integers(len(content), size=60):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        (tmp_path / "model.nc").write_bytes(changed)
        try:
            again = bg.load(tmp_path / "model.nc")
        except ValueError as error:
            assert "model.nc" in str(error)
            refused += 1
        else:
            np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert refused > 5


# -- the command line

COMMANDS = {
    "no such file": (["compare", "none.csv", "--target", "y"], "no such file, nor a built-in data set"),
    "no such column": (["compare", "penguins", "--target", "y"], "y"),
    "no such inference": (["compare", "penguins", "--target", "species", "--inference", "vb"], "no inference 'vb'"),
    "no such model": (["compare", "penguins", "--target", "species", "--model", "svm"], "svm"),
    "one fold": (["compare", "penguins", "--target", "species", "--inference", "ml", "--folds", "1"], "fold"),
    "half a fold": (["compare", "penguins", "--target", "species", "--folds", "2.5"], "Invalid value"),
    "a measured target": (
        ["compare", "penguins", "--target", "body_mass_g", "--inference", "ml"],
        "too few rows: class 2700 has 1",
    ),
    "no target": (["compare", "penguins"], "--target"),
    "fit of nothing": (["fit", "none.csv", "--target", "y"], "no such file"),
    "fit of no inference": (["fit", "penguins", "--target", "species", "--inference", "vb"], "no inference 'vb'"),
    "predict with no model": (["predict", "none.nc", "penguins"], "none.nc"),
    "no such command": (["divine"], "No such command"),
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_command_line_refuses(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, words = COMMANDS[kind]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert words in " ".join(result.output.split()) and "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []
