"""Refusals of models, by argument and row; where maximum likelihood and the mode do not exist."""

import numpy as np
import pytest

from bayesgen import fit
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    KnownCategorical,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownVariance,
)

NAN, INF = np.nan, np.inf
EYE, TWO = np.eye(2), DirichletCategorical(1.0, 2)
HYPERPARAMETERS = [
    (BetaBernoulli, (-1, 1), ValueError, "BetaBernoulli: a must be positive, got -1"),
    (BetaBernoulli, (1, 0), ValueError, "b must be positive, got 0"),
    (BetaBernoulli, (NAN, 1), ValueError, "a must be finite"),
    (BetaBernoulli, (INF, 1), ValueError, "a must be finite"),
    (BetaBernoulli, ("x", 1), TypeError, "a must be a number"),
    (BetaBernoulli, (None, 1), ValueError, "a must be finite"),
    (BetaBernoulli, ([1, 2], [1, 2, 3]), ValueError, "BetaBernoulli: the shapes of"),
    (DirichletCategorical, (1.0,), ValueError, "give categories="),
    (DirichletCategorical, ([1, 0],), ValueError, "alpha must be positive"),
    (DirichletCategorical, ([1, NAN],), ValueError, "alpha must be finite"),
    (DirichletCategorical, ([1, 1], 3), ValueError, "2 entries for 3 categories"),
    (DirichletCategorical, (1.0, ["a", "a"]), ValueError, "distinct"),
    (DirichletCategorical, (1.0, []), ValueError, "one or more"),
    (DirichletCategorical, (1.0, 0), ValueError, "one or more"),
    (KnownCategorical, ([0.5, 0.6],), ValueError, "sum to 1"),
    (KnownCategorical, ([1.5, -0.5],), ValueError, ">= 0"),
    (KnownCategorical, ([0.5, 0.5], ["a"]), ValueError, "categories"),
    (KnownCategorical, (0.5,), ValueError, "at least 1 axes"),
    (NormalKnownVariance, (0, 0, 1), ValueError, "sd must be positive"),
    (NormalKnownVariance, (0, 1, -1), ValueError, "noise_sd must be positive"),
    (NormalKnownVariance, (INF, 1, 1), ValueError, "mean must be finite"),
    (NormalInverseGamma, (0, 0, 1, 1), ValueError, "kappa must be positive"),
    (NormalInverseGamma, (0, 1, -2, 1), ValueError, "alpha must be positive, got -2"),
    (NormalInverseGamma, (0, 1, 1, 0), ValueError, "beta must be positive"),
    (NormalInverseGamma, ([0, 0], 1, 1, [1, 1, 1]), ValueError, "NormalInverseGamma: the shapes of"),
    (NormalInverseWishart, (0.0, 1, 3, EYE), ValueError, "mean must have at least 1 axes"),
    (NormalInverseWishart, ([0, 0], -1, 3, EYE), ValueError, "kappa must be positive"),
    (NormalInverseWishart, ([0, 0], 1, 1, EYE), ValueError, "nu must exceed D - 1 = 1, got 1"),
    (NormalInverseWishart, ([0, 0], 1, 3, np.eye(3)), ValueError, r"scale must end in shape \(2, 2\)"),
    (NormalInverseWishart, ([0, 0], 1, 3, [1, 1]), ValueError, "scale must have at least 2 axes"),
    (NormalInverseWishart, ([0, 0], 1, 3, [[1, 2], [2, 1]]), ValueError, "positive definite"),
    (NormalInverseWishart, ([0, 0], 1, 3, [[1, 1], [1, 1]]), ValueError, "positive definite"),
    (NormalInverseWishart, ([0, 0], 1, 3, [[1, 0.5], [0, 1]]), ValueError, "symmetric"),
    (NormalInverseWishart, ([0, 0], 1, 3, [[1, NAN], [NAN, 1]]), ValueError, "scale must be finite"),
    (NaiveBayes, (BetaBernoulli(), {}), TypeError, "classes must be"),
    (NaiveBayes, (TWO, {"x": 3}), TypeError, "'x' must be a model of a feature"),
    (NaiveBayes, (TWO, {"classes": BetaBernoulli()}), ValueError, "names the class prior"),
    (GaussianDiscriminant, (TWO, BetaBernoulli()), TypeError, "takes a NormalInverseWishart"),
    (
        GaussianDiscriminant,
        (TWO, NormalInverseWishart([0.0], 1, 2, [[1]]), "round"),
        ValueError,
        "covariance must be one",
    ),
]


@pytest.mark.parametrize(("model", "arguments", "kind", "words"), HYPERPARAMETERS)
def test_hyperparameter_errors(model, arguments, kind, words):
    with pytest.raises(kind, match=words):
        model(*arguments)


COIN, DIE, LINE = BetaBernoulli(), DirichletCategorical(1.0, 3), NormalInverseGamma(0.0, 1.0, 1.0, 1.0)
PLANE = NormalInverseWishart([0.0, 0.0], 1.0, 3.0, EYE)
BAYES = NaiveBayes(TWO, {"bit": COIN, "line": LINE})
DISCRIMINANT = GaussianDiscriminant(TWO, PLANE)
ROWS = [
    (COIN, ([0, 2],), ValueError, "value 2 in row 1 is not 0 or 1"),
    (COIN, ([0.5],), ValueError, "not 0 or 1"),
    (COIN, (["a"],), TypeError, "takes numbers"),
    (COIN, (1.0,), ValueError, "array of rows"),
    (DIE, ([0, 3],), ValueError, r"value 3 in row 1 is not a category code 0\.\.2"),
    (DIE, ([-1],), ValueError, "not a category code"),
    (DIE, ([0.5],), ValueError, "not a category code"),
    (LINE, ([1.0, INF],), ValueError, "value inf in row 1 is infinite"),
    (LINE, ([1j],), TypeError, "takes numbers"),
    (PLANE, ([[1.0, -INF]],), ValueError, "feature 1: value -inf in row 0 is infinite"),
    (PLANE, ([[1.0, 2.0, 3.0]],), ValueError, "3 entries where the prior mean has 2"),
    (PLANE, ([1.0, 2.0],), ValueError, "array of rows"),
    (
        BAYES,
        ({"bit": [0, 1], "line": [0.0, 1.0]}, [0, 2]),
        ValueError,
        r"value 2 in row 1 is not a category code 0\.\.1",
    ),
    (BAYES, ({"bit": [0, 1], "line": [0.0]}, [0, 1]), ValueError, "one length"),
    (BAYES, ({"bit": [0, 1]}, [0, 1]), ValueError, r"lacks the features \['line'\]"),
    (BAYES, ([[0, 1]], [0, 1]), TypeError, "mapping from feature to array"),
    (BAYES, ({"bit": [0, 5], "line": [0.0, 1.0]}, [0, 1]), ValueError, "'bit'.*value 5 in row 1"),
    (BAYES, ({"bit": [0, 1], "line": [0.0, 1.0]}, [0, NAN]), ValueError, "t is missing in row 1"),
    (LINE, (np.array(["2020-01-01"], "datetime64[D]"),), TypeError, "takes numbers"),
    (LINE, (["1.5"],), TypeError, "takes numbers"),
    (DISCRIMINANT, ([[1.0, INF]], [0]), ValueError, "column 'gaussian', feature 1: value inf in row 0 is infinite"),
]


@pytest.mark.parametrize(("model", "rows", "kind", "words"), ROWS)
def test_row_errors(model, rows, kind, words):
    with pytest.raises(kind, match=words):
        model.statistics(*rows)


@pytest.mark.parametrize("weight", [[1.0], [1.0, -1.0], [1.0, NAN], [1.0, INF], [[1.0], [1.0]]])
@pytest.mark.parametrize("model", [BAYES, COIN], ids=["classifier", "leaf"])
def test_weight_errors(model, weight):
    rows = ({"bit": [0, 1], "line": [0.0, 1.0]}, [0, 1]) if model is BAYES else ([0, 1],)
    with pytest.raises(ValueError, match="weight"):
        model.statistics(*rows, weight=np.array(weight))


NO_ML = [
    (COIN, ([NAN, NAN],), "no observed value"),
    (DIE, ([NAN],), "no observed value"),
    (LINE, ([1.0],), "fewer than two distinct values"),
    (LINE, ([1e8, 1e8, 1e8],), "fewer than two distinct values"),
    (LINE, ([NAN],), "no observed value"),
    (PLANE, ([[0.0, 0.0], [1.0, 2.0]],), "1 degrees of freedom .* for 2 columns"),
    (PLANE, ([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]],), "feature 1.*no two distinct values"),
    (PLANE, ([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 6.0]],), "linearly dependent"),
    (GaussianDiscriminant(TWO, PLANE), ([[0.0, 1.0], [1.0, 1.5], [2.0, 0.0], [5.0, 5.0]], [0, 0, 0, 1]), "class 1"),
    (GaussianDiscriminant(TWO, PLANE, shared=True), ([[0.0, 1.0], [1.0, 1.5], [5.0, 5.0]], [0, 0, 1]),
     "maximum likelihood"),
    (GaussianDiscriminant(
        DirichletCategorical(1.0, ["a", "b"]), NormalInverseGamma([0.0, 0.0], 1.0, 1.0, 1.0), "diagonal",
        columns={"gaussian": ["u", "v"]}),
     ([[0.0, 1.0], [1.0, 1.5], [2.0, 7.0], [5.0, 7.0]], [0, 0, 1, 1]), "class 'b', column 'v'"),
    (BAYES, ({"bit": [0, 1], "line": [0.0, 1.0]}, [0, 1]), "class 0, column 'line'"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "rows", "words"), NO_ML)
def test_where_maximum_likelihood_does_not_exist(model, rows, words):
    with pytest.raises(ValueError, match=words):
        fit(model, rows, "ml")


def test_where_it_does_exist_at_the_edge():
    """Sharing lends what one class lacks: one row in a class is enough once the variance is pooled."""
    x, t = np.array([[0.0, 1.0], [1.0, 1.5], [0.2, 3.0], [5.0, 5.0]]), [0, 0, 0, 1]
    for prior, covariance in ((PLANE, "full"), (NormalInverseGamma([0.0, 0.0], 1.0, 1.0, 1.0), "diagonal")):
        point = fit(GaussianDiscriminant(TWO, prior, covariance, shared=True), (x, t), "ml").params
        np.testing.assert_allclose(point["gaussian.mean"][1], [5, 5])
    round_prior = NormalInverseGamma([0.0, 0.0], 1.0, 1.0, 1.0)
    point = fit(
        GaussianDiscriminant(TWO, round_prior, "isotropic"),
        ([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0], [5.0, 6.0]], [0, 0, 1, 1]),
        "ml",
    )
    np.testing.assert_allclose(point.params["gaussian.variance"], [0.5, 0.125])  # sum of squares / (n D)
    point = fit(BAYES, ({"bit": [0, 1, 1, 1], "line": [0.0, 1.0, 2.0, 5.0]}, [0, 0, 1, 1]), "ml").params
    np.testing.assert_allclose(point["bit.probability"], [0.5, 1.0])  # an unsmoothed 1 is legitimate


@pytest.mark.parametrize(
    ("model", "rows"),
    [(BetaBernoulli(0.5, 2.0), [0, 0]), (DirichletCategorical([0.5, 1.0]), [1]), (BetaBernoulli(0.5, 0.5), [1])],
)
def test_where_map_does_not_exist(model, rows):
    with pytest.raises(ValueError, match="no mode"):
        fit(model, rows, "map")
    fit(model, rows, "exact")
