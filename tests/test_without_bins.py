"""Calibration without bins: the line in log odds, the curve that rises, the scaled Brier score."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from bayesgen.evaluation import calibration_line, log_loss, net_benefit, reliability_curve, scaled_brier_score

RNG = np.random.default_rng(0)
SAID = RNG.uniform(0.05, 0.95, 300)
HAPPENED = (RNG.random(300) < expit(-0.4 + 0.6 * logit(SAID))).astype(int)


def test_the_line_is_a_logistic_regression():
    line = calibration_line(HAPPENED, SAID)
    peer = LogisticRegression(C=np.inf, tol=1e-10).fit(logit(SAID)[:, None], HAPPENED)
    assert np.isclose(line.slope.value, peer.coef_[0, 0], rtol=1e-5)
    assert np.isclose(line.intercept.value, peer.intercept_[0], rtol=1e-5)
    moved = expit(logit(SAID) + line.in_the_large.value)
    assert np.isclose(moved.mean(), HAPPENED.mean(), atol=1e-9)
    named = calibration_line(np.where(HAPPENED, "ill", "well"), SAID, positive="ill")
    assert np.allclose(named.slope, line.slope, atol=1e-9)


@pytest.mark.parametrize("names", [("ill", "well"), ("well", "ill"), (0, 1), (1, 0), (True, False), (7, 3)], ids=str)
def test_one_column_is_the_probability_of_the_class_that_positive_names(names):
    case, other = names
    y = np.where(HAPPENED, *map(np.array, names))
    whole = np.stack([SAID, 1 - SAID] if sorted(names)[0] == case else [1 - SAID, SAID], axis=1)
    for p in (SAID, SAID.tolist(), pd.Series(SAID)):
        assert calibration_line(y, p, positive=case) == calibration_line(y, whole, positive=case)
        one, both = (net_benefit(y, q, [0.2, 0.5], positive=case).model for q in (p, whole))
        np.testing.assert_array_equal(one, both)
        one, both = (reliability_curve(y, q, positive=case) for q in (p, whole))
        np.testing.assert_array_equal(one.probability, both.probability)
        np.testing.assert_allclose(one.frequency, both.frequency, rtol=1e-12)
    mirrored = calibration_line(y, 1 - SAID, positive=other)
    assert np.allclose(mirrored.slope, calibration_line(y, SAID, positive=case).slope, atol=1e-6)


def test_shares_without_names_of_classes_ask_for_labels():
    shares = RNG.dirichlet(np.ones(3), 5)
    refuses(lambda: log_loss(shares, shares), "say which class each column is: by labels=, or by the columns")
    assert np.isclose(log_loss(shares, shares, labels=list("abc")), -(shares * np.log(shares)).sum(1).mean())


def test_a_row_repeated_within_its_group_tells_nothing_new():
    once = calibration_line(HAPPENED, SAID)
    again = calibration_line(np.repeat(HAPPENED, 4), np.repeat(SAID, 4), groups=np.repeat(np.arange(300), 4))
    assert np.allclose(once.slope, again.slope, atol=1e-9) and np.allclose(once.intercept, again.intercept, atol=1e-9)
    weight = RNG.integers(0, 3, 300)
    weighted = calibration_line(HAPPENED, SAID, weights=weight)
    repeated = calibration_line(np.repeat(HAPPENED, weight), np.repeat(SAID, weight))
    assert np.isclose(weighted.in_the_large.value, repeated.in_the_large.value, atol=1e-9)


@pytest.mark.compiles
def test_the_intervals_hold_the_truth_in_19_of_20_cases():
    held = []
    for _ in range(400):
        happened = RNG.random(300) < expit(-0.4 + 0.6 * logit(SAID))
        line = calibration_line(happened.astype(int), SAID)
        held.append([line.slope.lower < 0.6 < line.slope.upper, line.intercept.lower < -0.4 < line.intercept.upper])
    assert np.abs(np.mean(held, 0) - 0.95).max() < 0.04  # 3.7 standard errors


def test_the_curve_is_the_largest_mean_from_below_of_the_least_from_above():
    p = np.sort(SAID[:60]).round(1)
    curve, values = reliability_curve(HAPPENED[:60], p), np.unique(p)
    mean = np.array([[HAPPENED[:60][(p >= a) & (p <= b)].mean() if a <= b else np.inf for b in values] for a in values])
    by_hand = [max(mean[i, j:].min() for i in range(j + 1)) for j in range(len(values))]
    assert np.allclose(curve.frequency, by_hand, atol=1e-12) and np.array_equal(curve.probability, values)


@pytest.mark.parametrize("groups", [1, pytest.param(5, marks=pytest.mark.compiles)])
def test_nine_of_ten_curves_of_right_probabilities_are_in_the_band(groups):
    inside = []
    said = SAID[:150].round(1)
    for _ in range(40):
        happened = np.repeat((RNG.random(150) < said).astype(int), groups)
        group = np.repeat(np.arange(150), groups) if groups > 1 else None
        curve = reliability_curve(happened, np.repeat(said, groups), groups=group)
        inside.append(((curve.lower <= curve.frequency) & (curve.frequency <= curve.upper)).mean())
    assert np.abs(np.mean(inside) - 0.9) < 0.06


def test_the_scaled_brier_score_is_one_less_the_share_of_the_base_rate():
    p = np.column_stack([1 - SAID, SAID])
    base = HAPPENED.mean()
    assert np.isclose(
        scaled_brier_score(HAPPENED, p), 1 - np.mean((HAPPENED - SAID) ** 2) / (base * (1 - base)), atol=1e-12
    )
    assert np.isclose(scaled_brier_score(HAPPENED, np.full(300, base)), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibration_line([0, 1], [0.0, 0.7]), "1 rows do not, first row 0"),
        (lambda: calibration_line([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4]), "separate the cases from the others"),
        (lambda: calibration_line([0, 1, 0, 1], [0.4] * 4), "separate the cases"),
        (lambda: reliability_curve([0, 1, 2], np.eye(3)), "positive must name the class"),
        (lambda: scaled_brier_score([1, 1], [0.2, 0.7]), "one class alone"),
    ],
)
def test_bad_input_is_refused(call, message):
    refuses(call, message)
