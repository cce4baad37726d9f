"""The exponent of the average: against SciPy, on a mean of calibrated probabilities, and what it leaves as it is."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax
from scipy.stats import loggamma
from sklearn.datasets import load_wine

import bayesgen as bg
from bayesgen import AveragedClassifier
from bayesgen.numerics import tempering

RNG = np.random.default_rng
X, Y = load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def fitted():
    return AveragedClassifier(members="generative").fit(X[::3], Y[::3])


def test_the_exponent_is_the_mode_of_its_posterior():
    rng = RNG(0)
    probability, codes = rng.dirichlet([1.0, 2.0, 1.0], 80), rng.integers(3, size=80)
    weight, prior = rng.integers(1, 4, 80).astype(float), rng.dirichlet([9.0, 9.0, 9.0], 80)
    shape = 1 / 0.1**2

    def negative(u):
        log_p = log_softmax(np.log(prior) + np.exp(u) * np.log(probability / prior), axis=1)
        # a log-gamma density with this shape has its mode at log(shape), and there the curvature -shape
        return -(weight @ log_p[np.arange(80), codes]) - loggamma.logpdf(u - np.log(1.05) + np.log(shape), shape)

    best = minimize_scalar(negative, bounds=(-2, 1), method="bounded", options={"xatol": 1e-10})
    found = tempering.sharpening(probability, np.log(prior), codes, weight)
    assert np.log(found) == pytest.approx(best.x, abs=1e-6)


def test_a_mean_of_calibrated_probabilities_is_too_careful():
    def signs(seed):
        """Two members, each of which knows one of two independent signs, and is calibrated alone."""
        rng = RNG(seed)
        t = rng.integers(2, size=20_000)
        p = expit(2 * rng.normal(2 * t - 1, 1.0, (2, len(t))))  # log odds of N(1, 1) against N(-1, 1) at z: 2 z
        return t, np.stack([1 - p.mean(0), p.mean(0)], axis=1)

    def score(t, probability):
        return np.log(probability[np.arange(len(t)), t] / probability.sum(1)).mean()

    (t, mean), (later, new) = signs(0), signs(1)
    beta = tempering.sharpening(mean, np.full_like(mean, np.log(0.5)), t, np.ones(len(t)))
    sharp = tempering.sharpened(new, np.array([0.5, 0.5]), beta)
    assert beta > 1.2
    assert score(later, sharp) > score(later, new) + 0.01

    def error(probability):
        return bg.evaluation.expected_calibration_error(later, probability / probability.sum(1, keepdims=True))

    assert error(sharp) < 0.5 * error(new)


def test_it_acts_on_the_average_and_not_on_the_class_prior(fitted):
    average = fitted.average_
    plain = replace(average, sharpening=1.0).probability(X, np.empty((len(X), 0), int))
    prior = np.exp(average.log_class_prior)
    expected = prior * (plain / prior) ** average.sharpening
    np.testing.assert_allclose(fitted.predict_proba(X), expected / expected.sum(1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(fitted.predict_proba(np.full((1, 13), np.nan))[0], prior, rtol=1e-9)
    given = np.array([0.6, 0.3, 0.1])
    expected *= given / prior
    np.testing.assert_allclose(fitted.predict_proba(X, given), expected / expected.sum(1, keepdims=True), rtol=1e-12)


@pytest.mark.compiles
def test_intervals_and_terms_are_of_the_sharpened_average(fitted):
    strong, weak = (clone_of(fitted, beta) for beta in (2.0, 1.0))
    rows = X[1::17]
    (low, high), (below, above) = (
        np.moveaxis(one.predict_proba_interval(rows, level=0.9), -1, 0) for one in (strong, weak)
    )
    best = strong.predict_proba(rows).argmax(1)
    here = np.arange(len(rows)), best
    assert (high[here] >= above[here] - 1e-9).all()  # the likeliest class becomes likelier, in every draw
    assert (high - low >= 0).all() and (below <= above).all()
    terms = strong.explain(rows)
    log_p = np.log(strong.predict_proba(rows))
    np.testing.assert_allclose(terms.sum("term"), log_p - log_p.mean(1, keepdims=True), atol=1e-8)


def clone_of(classifier, beta):
    """A copy under another exponent, with the same draws."""
    import copy

    result = copy.copy(classifier)
    result.average_, result.random_state = replace(classifier.average_, sharpening=beta), 0
    return result


def test_weights_by_evidence_are_not_sharpened_and_files_keep_the_exponent(fitted, tmp_path):
    assert AveragedClassifier(weights="evidence").fit(X[::3], Y[::3]).average_.sharpening == 1
    fitted.save(tmp_path / "wine.safetensors")
    assert bg.load(tmp_path / "wine.safetensors").average_.sharpening == fitted.average_.sharpening != 1
    for wrong in (0.0, -1.0, np.nan, np.inf):
        broken = clone_of(fitted, wrong)
        broken.save(tmp_path / "wrong.safetensors")
        with pytest.raises(ValueError, match=r"Average\.sharpening (are not finite|have entries that are too small)"):
            bg.load(tmp_path / "wrong.safetensors")
