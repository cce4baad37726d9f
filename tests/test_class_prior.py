"""The class probabilities of another population, from its rows alone."""

import warnings

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.inspection import estimate_class_prior


def rows(rng, n, share, apart):
    y = rng.choice(len(share), n, p=share)
    return rng.normal(size=(n, 1)) + apart * y[:, None], y


def fitted(make=bg.GaussianDiscriminantClassifier, classes=2, apart=1.0, **options):
    X, y = rows(np.random.default_rng(0), 600, np.full(classes, 1 / classes), apart)
    return make(random_state=0, **options).fit(X, y)


def on_a_grid(classifier, X):
    """Posterior mean and sd of the second class's share under a flat prior, and the mode, by quadrature."""
    density = (
        np.exp(classifier.posterior_.log_predictive(classifier.fitted_.read(X)))
        / classifier.posterior_.model.classes.mean
    )
    p = np.linspace(0, 1, 4001)[1:-1]
    score = np.log(density[:, :1] * (1 - p) + density[:, 1:] * p).sum(0)
    weight = np.exp(score - score.max())
    weight /= weight.sum()
    mean = weight @ p
    return mean, np.sqrt(weight @ (p - mean) ** 2), p[score.argmax()]


@pytest.mark.parametrize("apart", [1.0, 3.0])
def test_posterior_is_that_of_a_quadrature(apart):
    classifier = fitted(apart=apart)
    X, y = rows(np.random.default_rng(1), 250, [0.8, 0.2], apart)
    found, (mean, sd, mode) = estimate_class_prior(classifier, X, draws=1000), on_a_grid(classifier, X)
    assert found.effective > 400
    assert found.mean[1] == pytest.approx(mean, abs=5 * sd / np.sqrt(found.effective))
    assert found.sd[1] == pytest.approx(sd, rel=5 / np.sqrt(2 * found.effective))
    assert found.ml[1] == pytest.approx(mode, abs=3e-4)
    soft = classifier.predict_proba(X, priors=found.mean)[:, 1]
    narrow = np.sqrt(found.mean.prod() / (len(X) + 3))  # a Dirichlet of the summed probabilities
    assert sd > (1.5 if apart == 1 else 1.0) * narrow and soft.mean() == pytest.approx(mean, abs=0.02)
    assert y.mean() == pytest.approx(found.mean[1], abs=3 * sd + 0.02)


@pytest.mark.compiles
def test_intervals_hold_the_true_share():
    classifier, inside = fitted(classes=3, apart=3.0), []
    rng = np.random.default_rng(2)
    for _ in range(25):
        share = rng.dirichlet(np.ones(3))
        low, high = estimate_class_prior(classifier, rows(rng, 150, share, 3.0)[0], draws=100).interval(0.9).T
        inside += ((low <= share) & (share <= high)).tolist()
    assert 0.78 < np.mean(inside) < 0.99  # of 75, about 50 of them independent: 0.9 within 3 standard errors


@pytest.mark.parametrize(
    "make",
    [
        lambda: fitted(bg.NaiveBayesClassifier, apart=3.0),
        lambda: fitted(bg.NaiveBayesClassifier, apart=3.0, inference="ml"),
        lambda: fitted(bg.NaiveBayesClassifier, apart=3.0, exponent=0.5),
        lambda: fitted(bg.GaussianDiscriminantClassifier, apart=3.0, shared=True, inference="map"),
        lambda: fitted(bg.AveragedClassifier, apart=3.0, members=["gaussian", "category", "softmax"]),
    ],
)
def test_every_generative_classifier_is_asked(make):
    X, y = rows(np.random.default_rng(3), 400, [0.9, 0.1], 3.0)
    found = estimate_class_prior(make(), X, draws=100)
    assert found.mean[1] == pytest.approx(y.mean(), abs=0.04) and found.mean.sum() == pytest.approx(1)
    assert 0 < found.labelled_rows <= 400


def test_classes_known_for_sure_are_counted():
    X, y = rows(np.random.default_rng(4), 90, [0.7, 0.3], 60.0)
    found = estimate_class_prior(fitted(apart=60.0), X, draws=2000)
    np.testing.assert_allclose(found.ml[1], y.mean(), atol=1e-6)
    np.testing.assert_allclose(found.mean[1], (y.sum() + 1) / 92, atol=5 * 0.05 / np.sqrt(8000))
    assert found.labelled_rows == pytest.approx(90, rel=0.15)


def test_a_warning_where_classes_overlap():
    classifier = fitted(apart=0.1)
    with pytest.warns(UserWarning, match="60 rows without labels say as much about the class probabilities as"):
        estimate_class_prior(classifier, rows(np.random.default_rng(5), 60, [0.5, 0.5], 0.1)[0], draws=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate_class_prior(fitted(apart=3.0), rows(np.random.default_rng(5), 60, [0.5, 0.5], 3.0)[0], draws=100)


def test_the_same_seed_gives_the_same_draws():
    X, _ = rows(np.random.default_rng(6), 50, [0.5, 0.5], 3.0)
    one, two = (estimate_class_prior(fitted(apart=3.0), X, draws=50).draws for _ in range(2))
    np.testing.assert_array_equal(one, two)
