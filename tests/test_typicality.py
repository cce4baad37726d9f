"""Like anything seen: tail probabilities under the model's own predictive."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_iris
from test_imputation import Drawn

import bayesgen as bg
from bayesgen.decision import NONE_OF_THESE, decide
from bayesgen.inspection import typicality
from bayesgen.models import DirichletCategorical, NormalInverseWishart

X, Y = load_iris(return_X_y=True)
TABLE = bg.data.load("penguins")
SPECIES = TABLE.pop("species")
STRUCTURES = [(c, s) for c in ("full", "diagonal", "isotropic") for s in (False, True)]
GAPS = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [0, 0, 1, 0]], bool)


def own_rows(classifier, n, gaps=False):
    """Rows of the classifier's own predictive, and their class codes."""
    rows, labels = classifier.set_params(random_state=8).sample(n)
    classifier.set_params(random_state=3)
    rows = np.where(GAPS[np.arange(n) % 3], rows, np.nan) if gaps else rows
    return rows, np.searchsorted(classifier.classes_, labels)


def assert_uniform(classifier, n, gaps=False):
    rows, codes = own_rows(classifier, n, gaps)
    found = typicality(classifier, rows)
    for tail in (found.by_class[np.arange(n), codes], found.overall):
        assert stats.kstest(tail, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(("covariance", "shared"), STRUCTURES)
def test_uniform_under_the_own_predictive_of_gaussians(covariance, shared, gaps):
    assert_uniform(bg.GaussianDiscriminantClassifier(covariance, shared).fit(X[::5], Y[::5]), 500, gaps)


@pytest.mark.parametrize("inference", ["exact", "ml"])
def test_uniform_under_the_own_predictive_of_mixed_columns(inference):
    features = {"island": DirichletCategorical(1.0, sorted(TABLE["island"].unique())), "year": "poisson"}
    assert_uniform(bg.NaiveBayesClassifier(features, inference=inference).fit(TABLE, SPECIES), 500)


def test_uniform_where_all_columns_are_discrete():
    """Few distinct rows: without ties broken at random the tail would take few values."""
    classifier = bg.NaiveBayesClassifier("categorical").fit((X > X.mean(0)).astype(int), Y)
    assert_uniform(classifier, 500)
    assert len(np.unique(typicality(classifier, own_rows(classifier, 500)[0]).overall)) > 200


def test_uniform_under_draws():
    assert_uniform(bg.GaussianDiscriminantClassifier(inference=Drawn(400)).fit(X[:, :2], Y), 500)


@pytest.mark.parametrize("gaps", [False, True])
def test_uniform_under_the_untempered_members_of_an_average(gaps):
    assert_uniform(bg.AveragedClassifier(members=["gaussian", "category"]).fit(X[::3], Y[::3]), 300, gaps)


@pytest.mark.parametrize(("covariance", "shared"), [s for s in STRUCTURES if s[0] != "diagonal"])
def test_the_formula_is_the_rank_among_draws(covariance, shared):
    """P(p(X | k) <= p(x | k)), counted among rows of the predictive, which are drawn from draws of the posterior."""
    classifier = bg.GaussianDiscriminantClassifier(covariance, shared, random_state=0).fit(X[::5], Y[::5])
    rows = np.where(GAPS[np.arange(4) % 3], X[::40], np.nan)
    found, model = typicality(classifier, rows, 50).by_class, classifier.posterior_.model
    rng, count = np.random.default_rng(0), 10_000
    drawn = model.gaussian.draw(model.site(classifier.posterior_.draws(rng, (count,)), "gaussian"), rng)
    for i, k in ((i, k) for i in range(len(rows)) for k in range(3)):
        own = np.where(np.isnan(rows[i]), np.nan, drawn[:, k])
        density = model.log_predictive(own)[:, k]
        share = (density <= model.log_predictive(rows[[i]])[0, k]).mean()
        assert abs(share - found[i, k]) < 5 * np.sqrt(max(found[i, k], 1 / count) / count)


def test_one_column_is_the_tail_of_a_student():
    classifier = bg.GaussianDiscriminantClassifier("diagonal").fit(X[:, :1], Y)
    leaf = classifier.posterior_.model.gaussian
    t = stats.t(2 * leaf.alpha[:, 0], leaf.mean[:, 0], np.sqrt(leaf.squared_scale[:, 0]))
    for x in (4.0, 5.1, 9.0):
        both = 2 * t.sf(leaf.mean[:, 0] + np.abs(x - leaf.mean[:, 0]))
        np.testing.assert_allclose(typicality(classifier, [[x]]).by_class[0], both, rtol=1e-9)


def test_rows_far_out_and_rows_of_nothing():
    for classifier in (bg.GaussianDiscriminantClassifier(), bg.GaussianDiscriminantClassifier("diagonal")):
        found = typicality(classifier.fit(X, Y), [[1e200] * 4, [np.nan] * 4, X[0]], 500)
        assert found.overall[0] < 0.01 and (found.by_class[0] < 0.01).all()
        assert found.overall[1] == 1 and (found.by_class[1] == 1).all()
        assert found.by_class[2, 0] > 0.3 and (found.by_class[2, 1:] < 0.01).all()


def test_a_class_that_was_never_seen_is_none_of_these():
    known = Y < 2
    classifier = bg.GaussianDiscriminantClassifier(random_state=0).fit(X[known], Y[known])
    probability, tail = classifier.predict_proba(X), typicality(classifier, X).overall
    action = decide(probability, typicality=tail, none_of_these=0.01)
    assert (action[~known] == NONE_OF_THESE).mean() > 0.7 > 0.05 > (action[known] == NONE_OF_THESE).mean()
    kept = action != NONE_OF_THESE
    np.testing.assert_array_equal(action[kept], probability[kept].argmax(1))


def test_a_class_of_no_probability_has_a_typicality():
    classifier = bg.GaussianDiscriminantClassifier(priors=[0.5, 0.5, 0.0], random_state=0).fit(X, Y)
    found = typicality(classifier, X[100:110])
    assert np.isfinite(found.by_class).all() and (found.by_class[:, 2] > 0.01).all()
    assert np.median(found.overall) < 0.05  # of no class that has a probability


def test_a_leaf_of_several_kinds_in_naive_bayes():
    vector = NormalInverseWishart(np.zeros(2), 0.1, 5.0, np.eye(2))
    classifier = bg.NaiveBayesClassifier({("x0", "x1"): vector}, random_state=0)
    assert_uniform(classifier.fit(pd.DataFrame(X[:, :3], columns=["x0", "x1", "x2"]), Y), 500)
