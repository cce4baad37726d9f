"""Where maximum likelihood and the mode do not exist; bad arguments and rows are in `test_refused_models`."""

import numpy as np
import pytest
from refusals import refuses

from bayesgen import fit
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
)

NAN = np.nan
EYE, TWO = np.eye(2), DirichletCategorical(1.0, 2)
COIN, DIE, LINE = BetaBernoulli(), DirichletCategorical(1.0, 3), NormalInverseGamma(0.0, 1.0, 1.0, 1.0)
PLANE = NormalInverseWishart([0.0, 0.0], 1.0, 3.0, EYE)
BAYES = NaiveBayes(TWO, {"bit": COIN, "line": LINE})
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
    refuses(lambda: fit(model, rows, "ml"), words)


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
    refuses(lambda: fit(model, rows, "map"), "no mode")
    fit(model, rows, "exact")
