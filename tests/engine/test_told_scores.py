"""The score that an averaged classifier tells of new rows, where classes were drawn with the rows or chosen."""

import numpy as np
import pytest
from scipy.stats import chi2

from bayesgen import AveragedClassifier
from bayesgen.averaging.learning import as_drawn

ROWS = {2: 60, 10: 100, 30: 240, 100: 600}


def fitted(classes, drawn, signal, seed):
    """Return a classifier of three columns, its log score of new rows, and their standard error."""
    rng = np.random.default_rng(seed)
    centres = signal * rng.normal(size=(classes, 3))
    n, new = ROWS[classes], 2000
    y = rng.integers(0, classes, n) if drawn else np.arange(n) % classes
    u = rng.integers(0, classes, new)
    u = u[np.isin(u, y)]
    classifier = AveragedClassifier(members=["gaussian"]).fit(rng.normal(size=(n, 3)) + centres[y], y)
    p = classifier.predict_log_proba(rng.normal(size=(len(u), 3)) + centres[u])
    score = p[np.arange(len(u)), np.searchsorted(classifier.classes_, u)]
    return classifier, score.mean(), score.std() / np.sqrt(len(u))


@pytest.mark.filterwarnings("ignore:no member predicts")
@pytest.mark.parametrize(("classes", "drawn"), [(30, True), (30, False)])
def test_noise_promises_no_more_than_new_rows_bear_out(classes, drawn):
    classifier, score, error = fitted(classes, drawn, 0.0, 0)
    told, count = classifier.scores_, classifier.average_.class_weight
    assert told["classes"] == ("drawn" if drawn else "chosen")
    # under Dirichlet(1, ..., 1): a row leaves alone where classes were drawn, else with one row of every other class
    n = count.sum() - (1 if drawn else classes)
    assert told["base_rate"] == pytest.approx(count @ np.log(count / (n + classes)) / count.sum())
    assert abs(told["nested"] - score) < 2 * np.hypot(told["nested_error"], error)


def test_classes_are_drawn_unless_they_are_more_equal_than_that():
    rng = np.random.default_rng(0)
    equal = [not as_drawn(np.bincount(rng.integers(0, 10, 200), minlength=10)) for _ in range(2000)]
    assert 0.003 < np.mean(equal) < 0.02  # 1 %, give or take five errors and the steps of counts
    assert not as_drawn(np.full(10, 20.0)) and as_drawn(np.array([190.0, 10.0])) and as_drawn(np.array([7.0]))
    edge = np.sqrt(chi2.ppf(0.01, 1) * 100 / 2)
    assert as_drawn(np.array([100 + 1.01 * edge, 100 - 1.01 * edge]))
    assert not as_drawn(np.array([100 + 0.99 * edge, 100 - 0.99 * edge]))


@pytest.mark.slow
@pytest.mark.parametrize("signal", [0.0, 1.5])
@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("classes", ROWS)
@pytest.mark.filterwarnings("ignore")  # of noise the classifier warns
def test_the_error_that_is_told_covers_the_score_of_new_rows(classes, drawn, signal):
    fits = [fitted(classes, drawn, signal, seed) for seed in range(200)]
    difference = np.array([classifier.scores_["nested"] - score for classifier, score, _ in fits])
    told = np.array([classifier.scores_["nested_error"] for classifier, _, _ in fits])
    within = np.abs(difference) <= 1.64 * np.hypot(told, [error for *_, error in fits])
    assert within.mean() >= 0.85
    # where classes were chosen their part of the variance of scores is no error, which the error ignores
    assert told.mean() <= (1.5 if drawn else 2.2) * difference.std()
