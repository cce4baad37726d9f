"""Naive Bayes of counts: the estimator, of bags of words and of mixed tables."""

import functools

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import stats
from scipy.special import softmax
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer
from test_counts import NAN

from bayesgen import NaiveBayesClassifier
from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    NaiveBayes,
    NormalInverseGamma,
)


@functools.cache
def mixed():
    """A naive Bayes model of all the counts and a Gaussian, with rows that have gaps."""
    rng = np.random.default_rng(5)
    t = np.repeat([0, 1], [14, 30])
    tosses = rng.integers(0, 9, len(t))
    x = {
        "calls": rng.poisson(np.array([[1.0, 5.0], [3.0, 4.0]])[t]).astype(float),
        "days": rng.binomial(7, np.array([0.3, 0.6])[t]).astype(float),
        "coin": np.stack([rng.binomial(tosses, np.array([0.8, 0.4])[t]), tosses], -1).astype(float),
        "words": rng.multinomial(tosses, np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])[t]).astype(float),
        "height": rng.normal(t),
    }
    for rows in x.values():
        rows[rng.random(len(t)) < 0.2] = NAN
    model = NaiveBayes(
        DirichletCategorical(1.0, ["ham", "spam"]),
        {
            "calls": GammaPoisson([1.0, 2.0], 0.5),
            "days": BetaBinomial(1.0, 2.0, trials=7),
            "coin": BetaBinomial(1.0, 1.0),
            "words": DirichletMultinomial(1.0, ["cheap", "now", "meeting"]),
            "height": NormalInverseGamma(0.0, 0.1, 1.0, 1.0),
        },
        columns={"calls": ("calls", "texts"), "words": ("cheap", "now", "meeting")},
    )
    return model, x, t


@pytest.fixture
def documents():
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1, 2], [12, 20, 9])
    topics = rng.dirichlet(np.ones(6), 3)
    return np.stack([rng.multinomial(rng.integers(0, 15), topics[k]) for k in y]), y


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_smoothing_of_multinomial_nb_is_map(documents, alpha):
    X, y = documents
    theirs = MultinomialNB(alpha=alpha).fit(X, y)
    bag = {tuple(range(6)): DirichletMultinomial(1 + alpha, 6)}
    ours = NaiveBayesClassifier(bag, priors=np.exp(theirs.class_log_prior_), inference="map").fit(X, y)
    (site,) = (s for s in ours.posterior_.params if s != "classes.probability")
    np.testing.assert_allclose(np.log(ours.posterior_.params[site]), theirs.feature_log_prob_, rtol=1e-10)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-10)


def test_multinomial_for_all_columns(documents):
    X, y = documents
    names = [f"w{j}" for j in range(6)]
    table = pd.DataFrame(X, columns=names)
    whole = NaiveBayesClassifier("multinomial").fit(table, y)
    (bag,) = whole.model_.leaves.values()
    assert bag == DirichletMultinomial(1.0, names)
    for features in ({tuple(names): "multinomial"}, {tuple(names): DirichletMultinomial(1.0, names)}):
        same = NaiveBayesClassifier(features).fit(table, y)
        np.testing.assert_allclose(whole.predict_proba(table), same.predict_proba(table), rtol=1e-12)
        assert whole.log_evidence_ == pytest.approx(same.log_evidence_)
    # the exact predictive of each class by SciPy
    words = [[stats.dirichlet_multinomial(1 + X[y == k].sum(0), x.sum()).logpmf(x) for k in range(3)] for x in X]
    expected = softmax(np.log(np.bincount(y) + 1) + words, axis=1)
    np.testing.assert_allclose(whole.predict_proba(table), expected, rtol=1e-10)
    with pytest.raises(ValueError, match="column 'w0': a bag of one word says nothing"):
        NaiveBayesClassifier({"w0": "multinomial"}).fit(table, y)


def test_laplace_smoothing_is_the_exact_predictive():
    rng = np.random.default_rng(8)
    y = np.repeat([0, 1], [9, 14])
    X = rng.integers(0, 4, (23, 5))
    theirs = CategoricalNB(alpha=1.0, min_categories=4).fit(X, y)
    features = {tuple(range(5)): DirichletCategorical(np.ones((5, 4)))}
    ours = NaiveBayesClassifier(features, priors=np.exp(theirs.class_log_prior_)).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-10)
    X = X > 1
    theirs = BernoulliNB(alpha=1.0).fit(X, y)
    ours = NaiveBayesClassifier(priors=np.exp(theirs.class_log_prior_)).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-10)
    # the class probabilities smoothed too: MAP under Dirichlet(2) is the mean under Dirichlet(1)
    smooth = NaiveBayesClassifier(
        features={tuple(range(5)): BetaBernoulli(2, 2)}, class_concentration=2.0, inference="map"
    ).fit(X, y)
    np.testing.assert_allclose(smooth.predict_proba(X), NaiveBayesClassifier().fit(X, y).predict_proba(X), rtol=1e-10)


def test_poisson_for_all_columns():
    rng = np.random.default_rng(9)
    y = np.repeat(["a", "b"], [6, 11])
    X = rng.poisson(np.where(y == "a", 2.0, 6.0)[:, None], (17, 3)).astype(float)
    X[rng.random(X.shape) < 0.15] = NAN
    classifier = NaiveBayesClassifier("poisson").fit(X, y)
    joint = np.tile(np.log([7.0, 12.0]), (17, 1))
    for j in range(3):
        m = np.nanmean(X[:, j])
        for k, label in enumerate("ab"):
            own = X[(y == label) & ~np.isnan(X[:, j]), j]
            b = 1 / m + len(own)
            joint[:, k] += np.nan_to_num(stats.nbinom(1 + own.sum(), b / (b + 1)).logpmf(X[:, j]))
    expected = softmax(joint, axis=1)
    np.testing.assert_allclose(classifier.predict_proba(X), expected, rtol=1e-10)
    pieces = classifier._template(classifier.schema_)
    codes = (y == "b").astype(int)
    whole = pieces.statistics({"poisson": X[:5]}, codes[:5]) + pieces.statistics({"poisson": X[5:]}, codes[5:])
    assert pieces.with_prior(whole) == classifier.model_


def test_mixed_table():
    model, x, t = mixed()
    table = pd.DataFrame(
        {
            "calls": x["calls"][:, 0],
            "texts": x["calls"][:, 1],
            "days": x["days"],
            "heads": x["coin"][:, 0],
            "tosses": x["coin"][:, 1],
            **{word: x["words"][:, j] for j, word in enumerate(("cheap", "now", "meeting"))},
            "height": x["height"],
        }
    )
    features = {
        ("calls", "texts"): GammaPoisson([1.0, 2.0], 0.5),
        "days": BetaBinomial(1, 2, trials=7),
        ("heads", "tosses"): BetaBinomial(1, 1),
        ("cheap", "now", "meeting"): "multinomial",
        "height": NormalInverseGamma(0.0, 0.1, 1.0, 1.0),
    }
    y = np.array(["ham", "spam"])[t]
    classifier = NaiveBayesClassifier(features).fit(table, y)
    posterior = model.update(model.statistics(x, t))
    np.testing.assert_allclose(
        classifier.posterior_.log_predictive(classifier.schema_.read(_table(table))),
        posterior.log_predictive(x),
        rtol=1e-12,
    )
    labels = [v.values.tolist() for v in classifier.posterior_.to_arviz(0).posterior.coords.values()]
    assert ["cheap", "now", "meeting"] in labels
    nothing = table.iloc[:1] * NAN
    np.testing.assert_allclose(classifier.predict_proba(nothing), [posterior.classes.mean])
    for column, value, message in [
        ("calls", 0.5, "column 'calls': value 0.5 in row 3 is not a count"),
        ("heads", 99, "column 'heads': value 99 in row 3 is more than the tosses"),
        ("days", 8, "column 'days': value 8 in row 3 is more than the tosses"),
        ("now", NAN, "column 'now': row 3 is partly missing"),
    ]:
        wrong = table.fillna(0)
        wrong.loc[3, column] = value
        with pytest.raises(ValueError, match=message):
            classifier.fit(wrong, y)


def _table(frame):
    from bayesgen.tables.table import Table

    return Table(frame)


def test_one_prior_holds_for_every_column_of_a_tuple():
    X, y = np.array([[0, 3], [1, 2], [4, 0], [6, 1]]), [0, 0, 1, 1]
    scalar = NaiveBayesClassifier({(0, 1): GammaPoisson(1.0, 0.5)}).fit(X, y)
    arrays = NaiveBayesClassifier({(0, 1): GammaPoisson(np.ones(2), 0.5)}).fit(X, y)
    assert scalar.posterior_.model == arrays.posterior_.model
    assert scalar.model_.leaves["x0+x1"].batch_shape == (2,)


def test_discretised_continuous_features():
    rng = np.random.default_rng(11)
    y = np.repeat([0, 1], 60)
    X = np.where(y[:, None] == 0, rng.normal(size=(120, 2)), rng.normal(size=(120, 2)) ** 2 * 2)
    bins = KBinsDiscretizer(6, encode="ordinal", strategy="uniform")
    declared = {(0, 1): DirichletCategorical(np.ones((2, 6)))}
    pipeline = make_pipeline(bins, NaiveBayesClassifier(declared)).fit(X, y)
    assert pipeline.score(X, y) > 0.7
    inside = np.array([[X[:, 0].min(), X[:, 1].max()]])
    assert pipeline.predict_proba(inside).sum() == pytest.approx(1)
    # bins nobody fell into at fit: declared above, unknown to the categories learned from the rows
    gap = np.array([[0.0], [0.1], [0.9], [1.0]])
    learned = make_pipeline(bins, NaiveBayesClassifier("categorical", unseen="error")).fit(gap, [0, 0, 1, 1])
    refuses(lambda: learned.predict([[0.5]]), "is not one of the categories")
    learned.set_params(naivebayesclassifier__unseen="missing")
    with pytest.warns(UserWarning, match="1 value taken as missing"):
        np.testing.assert_allclose(learned.predict_proba([[0.5]]), [[0.5, 0.5]])
