"""Naive Bayes whose features are tempered: the exponent against brute force, and what it changes."""

import numpy as np
import pytest
from refusals import refuses
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

import bayesgen as bg
from bayesgen.estimators import naive_bayes
from bayesgen.models import DirichletCategorical
from bayesgen.numerics import tempering

NB = bg.NaiveBayesClassifier
IRIS, SPECIES = load_iris(return_X_y=True)
X, Y = IRIS[::6], SPECIES[::6]


def pieces_of(classifier, rows):
    """Log class prior and log p(x | k) of rows."""
    posterior = classifier.posterior_
    prior = posterior.log_predictive(classifier.schema_.nothing())
    return prior, posterior.log_predictive(classifier.schema_.read(classifier.fitted_.table(rows))) - prior


def test_the_exponent_is_that_of_refits_without_each_row():
    prior, density = np.empty((2, len(X), 3))
    for i in range(len(X)):
        rest = NB().fit(np.delete(X, i, 0), np.delete(Y, i))
        prior[i], density[i] = (part[0] for part in pieces_of(rest, X[i : i + 1]))

    mode = tempering.expected_exponent(4, len(X))

    def loss(tau):
        score = log_softmax(prior + tau * density, axis=1)[np.arange(len(X)), Y].sum()
        return -(score + (np.log(tau) - tau / mode) / 0.25)

    best = minimize_scalar(loss, bounds=(1e-3, 10), method="bounded", options={"xatol": 1e-10}).x
    assert NB(exponent="loo").fit(X, Y).exponent_ == pytest.approx(best, rel=1e-5)


def test_features_alone_are_tempered():
    plain, half = NB().fit(X, Y), NB(exponent=0.5).fit(X, Y)
    prior, density = pieces_of(plain, IRIS)
    np.testing.assert_allclose(half.predict_proba(IRIS), softmax(prior + 0.5 * density, axis=1), rtol=1e-10)
    np.testing.assert_allclose(
        half.predict_proba(np.full((1, 4), np.nan)), plain.predict_proba(np.full((1, 4), np.nan))
    )
    given = np.array([0.7, 0.2, 0.1])
    expected = softmax(np.log(given) + 0.5 * density, axis=1)
    np.testing.assert_allclose(half.predict_proba(IRIS, priors=given), expected, rtol=1e-9)
    assert half.posterior_ == plain.posterior_ and half.log_evidence_ == plain.log_evidence_
    np.testing.assert_array_equal(half.score_samples(IRIS), plain.score_samples(IRIS))
    np.testing.assert_array_equal(NB(exponent=1.0).fit(X, Y).predict_proba(IRIS), plain.predict_proba(IRIS))


def test_explanations_and_intervals_are_those_of_the_tempered_probability():
    half = NB(exponent=0.5, random_state=0).fit(X, Y)
    np.testing.assert_allclose(softmax(half.explain(IRIS[::30]).sum("term"), axis=1), half.predict_proba(IRIS[::30]))
    drawn, plain = (c.predict_proba_draws(IRIS[::30], 50) for c in (half, NB(random_state=0).fit(X, Y)))
    prior = half.posterior_.draws(0, (50,))["classes.probability"][:, None]
    expected = softmax(np.log(prior) + 0.5 * (np.log(plain) - np.log(prior)), axis=2)
    np.testing.assert_allclose(drawn, expected, rtol=1e-9)


def test_correlated_columns_are_counted_once():
    wine, kinds = load_wine(return_X_y=True)
    fit, test = np.arange(178) % 3 == 0, np.arange(178) % 3 > 0
    twice = np.tile(wine, (1, 4))
    loss = {}
    for exponent in (1.0, "loo"):
        classifier = NB(exponent=exponent).fit(twice[fit], kinds[fit])
        loss[exponent] = bg.evaluation.log_loss(kinds[test], classifier.predict_proba(twice[test]))
    assert classifier.exponent_ < 0.7 and loss["loo"] < loss[1.0]


@pytest.mark.compiles
def test_many_rows_are_sampled(monkeypatch):
    rng = np.random.default_rng(0)
    y = (rng.random(1500) < 0.2).astype(int)
    x = np.tile(rng.normal(size=(1500, 1)) + y[:, None], (1, 3))
    part = NB(exponent="loo").fit(x, y).exponent_
    monkeypatch.setattr(naive_bayes, "_MOST", 10**6)
    assert part == pytest.approx(NB(exponent="loo").fit(x, y).exponent_, rel=0.1)


def test_a_plug_in_that_rules_classes_out_is_tempered_too():
    classifier = NB({"x0": DirichletCategorical(1.0, ["a", "b"])}, inference="ml", exponent=0.5)
    classifier.fit(np.array([["a"], ["a"], ["b"], ["a"]], object), [0, 0, 1, 1])
    np.testing.assert_allclose(classifier.predict_proba(np.array([["b"]], object)), [[0, 1]])


def test_where_rows_are_not_there_they_cannot_be_left_out():
    refuses(lambda: NB(exponent="loo").partial_fit(X, Y, classes=[0, 1, 2]), "partial_fit", AttributeError)
    refuses(lambda: NB(exponent="loo", inference="map").fit(X, Y), "needs inference='exact'")
    stream = clone(NB(exponent=0.5)).partial_fit(X, Y, classes=[0, 1, 2])
    np.testing.assert_allclose(stream.predict_proba(IRIS), NB(exponent=0.5).fit(X, Y).predict_proba(IRIS), rtol=1e-9)
