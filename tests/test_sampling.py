"""Rows drawn from the posterior predictive, and class probabilities given for deciding."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import stats
from scipy.special import softmax
from sklearn.datasets import load_iris

import bayesgen as bg

X, Y = load_iris(return_X_y=True)
FEW = np.r_[0:4, 50:54, 100:104]  # so few that the predictive is far from the plug-in


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    y = rng.choice(["ham", "spam"], 40)
    spam = y == "spam"
    table = pd.DataFrame(
        {
            "links": rng.poisson(1 + 3 * spam),
            "length": rng.normal(5 + spam, 1.0),
            "sender": np.where(rng.random(40) < 0.3 + 0.4 * spam, "new", "known"),
        }
    )
    return bg.NaiveBayesClassifier({"links": "poisson"}, random_state=1).fit(table, y), table


def z_of_share(share, probability, n):
    return (share - probability) / np.sqrt(probability * (1 - probability) / n)


def test_sampled_rows_follow_the_closed_predictives(mixed):
    classifier, table = mixed
    n = 20_000
    drawn, y = classifier.sample(n)
    assert list(drawn.columns) == list(table.columns) and set(drawn["sender"]) == {"new", "known"}
    posterior = classifier.posterior_.model
    assert abs(z_of_share((y == "spam").mean(), posterior.classes.mean[1], n)) < 5
    for k, name in enumerate(["ham", "spam"]):
        rows = drawn[y == name]
        leaf = posterior.features["gaussian"]
        a, b, m, kappa = (np.broadcast_to(v, (2, 1))[k, 0] for v in (leaf.alpha, leaf.beta, leaf.mean, leaf.kappa))
        t = stats.t(2 * a, m, np.sqrt(b * (kappa + 1) / (a * kappa)))
        assert stats.kstest(rows["length"], t.cdf).pvalue > 1e-6
        zero = np.exp(posterior.features["poisson"].log_predictive(np.array([[0]])))[0, k]
        assert abs(z_of_share((rows["links"] == 0).mean(), zero, len(rows))) < 5
        new = posterior.features["sender"].mean[k, posterior.features["sender"].categories.index("new")]
        assert abs(z_of_share((rows["sender"] == "new").mean(), new, len(rows))) < 5


@pytest.mark.parametrize("covariance", ["full", "diagonal", "isotropic"])
@pytest.mark.parametrize("shared", [False, True])
def test_sampled_vectors_have_the_predictive_density(covariance, shared):
    classifier = bg.GaussianDiscriminantClassifier(covariance, shared, random_state=2).fit(X[FEW], Y[FEW])
    n = 4000
    rows, y = classifier.sample(n)
    assert rows.shape == (n, 4)
    # The mean of 1/p over draws from p within a box is the volume of the box over its probability, whatever p is.
    joint = classifier.posterior_.log_predictive(rows)[np.arange(n), y]
    low, high = np.quantile(X[FEW[:4]], [0.0, 1.0], axis=0) + np.array([[-0.3], [0.3]])
    inside = ((rows > low) & (rows < high)).all(1) & (y == 0)
    weights = np.where(inside, np.exp(-joint), 0.0)
    volume = np.prod(high - low)
    assert inside.sum() > 50
    assert abs(weights.mean() - volume) < 5 * weights.std() / np.sqrt(n)


def test_a_point_estimate_samples_from_its_plug_in():
    classifier = bg.GaussianDiscriminantClassifier(inference="ml", random_state=0).fit(X, Y)
    rows, y = classifier.sample(6000)
    theta = classifier.posterior_.params
    for k in range(3):
        spread = np.sqrt(np.diagonal(theta["gaussian.covariance"][k]))
        error = rows[y == k].mean(0) - theta["gaussian.mean"][k]
        assert (np.abs(error) < 5 * spread / np.sqrt((y == k).sum())).all()


def test_sampling_is_reproducible_and_refuses_nonsense(mixed):
    classifier, _ = mixed
    pd.testing.assert_frame_equal(classifier.sample(5)[0], classifier.sample(5)[0])
    for bad in (0, -1, 2.5):
        with pytest.raises(ValueError, match="n_samples"):
            classifier.sample(bad)


def test_heads_in_a_column_of_tosses_cannot_be_drawn():
    table = pd.DataFrame({"heads": [1, 2, 3, 4], "tosses": [5, 5, 6, 6]})
    leaf = bg.models.BetaBinomial(1.0, 1.0)
    classifier = bg.NaiveBayesClassifier({("heads", "tosses"): leaf}).fit(table, [0, 0, 1, 1])
    refuses(lambda: classifier.sample(3), "trials are a column", TypeError)


PRIORS = np.array([0.7, 0.2, 0.1])


@pytest.mark.parametrize("inference", ["exact", "ml", "map"])
def test_priors_for_deciding_reweight_the_classes(inference):
    classifier = bg.GaussianDiscriminantClassifier(inference=inference).fit(X, Y)
    before = classifier.predict_proba(X)
    weighted = before * PRIORS / (1 / 3)  # 50 rows each: every estimate of the class probabilities is 1/3
    weighted /= weighted.sum(1, keepdims=True)
    np.testing.assert_allclose(classifier.predict_proba(X, priors=PRIORS), weighted, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(classifier.predict_proba(X), before)  # the fit is as it was


def test_priors_for_deciding_equal_priors_given_at_fit(mixed):
    classifier, table = mixed
    y = classifier.predict(table)
    late = bg.NaiveBayesClassifier({"links": "poisson"}).fit(table, y).predict_proba(table, priors=[0.9, 0.1])
    early = bg.NaiveBayesClassifier({"links": "poisson"}, priors=[0.9, 0.1]).fit(table, y).predict_proba(table)
    np.testing.assert_allclose(late, early, rtol=1e-12)


def test_priors_for_deciding_under_draws():
    closed = bg.GaussianDiscriminantClassifier().fit(X, Y).posterior_
    draws = bg.inference.ParameterDraws(closed.model, closed.draws(0, (1, 4000)))
    known = bg.models.KnownCategorical(PRIORS, [0, 1, 2])
    exact, sampled = (softmax(p.with_class_prior(known).log_predictive(X), axis=1) for p in (closed, draws))
    assert np.abs(exact - sampled).max() < 0.01 < np.abs(exact - softmax(closed.log_predictive(X), axis=1)).max()
    no_class = bg.models.KnownCategorical([1.0, 0.0, 0.0], [0, 1, 2])
    with np.errstate(divide="ignore"):
        assert np.isneginf(draws.with_class_prior(no_class).log_predictive(X)[:, 1:]).all()


def test_wrong_priors_are_named():
    classifier = bg.GaussianDiscriminantClassifier().fit(X, Y)
    for bad in ([0.5, 0.5], [0.5, 0.5, 0.5], [1.5, -0.5, 0.0]):
        with pytest.raises(ValueError, match=r"priors must|probability must"):
            classifier.predict_proba(X, priors=bad)
