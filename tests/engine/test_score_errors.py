"""The standard error of the score that an averaged classifier expects of new rows."""

from dataclasses import replace

import numpy as np
import pytest

from bayesgen import AveragedClassifier
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.weights import LeftOut
from bayesgen.numerics import folds

FACTOR = np.sqrt(1 + 5 / 4)  # five folds


def left_out(codes, classes, group=None) -> LeftOut:
    n = len(codes)
    rows = Rows(np.zeros((n, 1)), np.zeros((n, 0), int), codes, np.ones(n), (), classes, group)
    return LeftOut(np.zeros((1, n, classes)), np.full((n, classes), -np.log(classes)), rows, rows.weight, np.zeros(1))


def drawn(seed, n=40):
    """Return log probabilities, and classes that follow them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), n).clip(0.01)
    p /= p.sum(1, keepdims=True)
    return np.log(p), (rng.random((n, 1)) > p.cumsum(1)).sum(1).clip(max=2)


def test_it_is_the_deviation_of_the_mean_over_many_tables_times_that_of_shared_rows():
    draws = [drawn(seed) for seed in range(1000)]
    means = [log_p[np.arange(len(codes)), codes].mean() for log_p, codes in draws]
    errors = [left_out(codes, 3).standard_error(log_p) for log_p, codes in draws]
    deviation = FACTOR * np.std(means)
    # the larger of two estimates of a variance is 1 to 12 % above it in deviation; 5 errors of a deviation are 11 %
    assert 0.9 * deviation < np.mean(errors) < 1.25 * deviation


def chosen(seed, each=20):
    """Return calibrated log probabilities of as many rows of each of two classes, of which one is easier to tell."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([4.0, 1.0], 20 * each).clip(0.001)
    codes = (rng.random(len(p)) > p[:, 0]).astype(int)
    taken = np.concatenate([np.flatnonzero(codes == k)[:each] for k in (0, 1)])
    p = p[taken] / [0.8, 0.2]
    return np.log(p / p.sum(1, keepdims=True)), codes[taken]


def test_where_classes_were_chosen_it_is_that_of_a_stratified_sample():
    draws = [chosen(seed) for seed in range(1000)]
    deviation = FACTOR * np.std([log_p[np.arange(40), codes].mean() for log_p, codes in draws])
    errors = [replace(left_out(codes, 2), chosen=True).standard_error(log_p) for log_p, codes in draws]
    assert 0.9 * deviation < np.mean(errors) < 1.15 * deviation
    codes = np.repeat([0, 1, 2], 10)  # one class is told for certain, and two not from each other: none varies
    log_p = np.log(np.array([[1.0, 1e-300, 1e-300], [1e-300, 0.5, 0.5], [1e-300, 0.5, 0.5]])[codes])
    assert replace(left_out(codes, 3), chosen=True).standard_error(log_p) < 1e-6
    assert left_out(codes, 3).standard_error(log_p) == pytest.approx(FACTOR * np.log(2) * np.sqrt(2 / 9 / 29))


def test_rows_that_are_all_predicted_well_still_have_the_error_that_their_probabilities_expect():
    codes = np.zeros(10, int)
    p = np.array([0.9, 0.1])
    variance = p @ np.log(p) ** 2 - (p @ np.log(p)) ** 2
    error = left_out(codes, 2).standard_error(np.log(np.tile(p, (10, 1))))
    assert error == pytest.approx(FACTOR * np.sqrt(variance / 9))


def test_rows_of_a_group_count_as_one():
    log_p, codes = drawn(0)
    twice = np.arange(40).repeat(2)
    alone = left_out(codes, 3).standard_error(log_p)
    grouped = left_out(codes[twice], 3, twice)
    assert folds.effective(grouped.weight, grouped.rows.group) == 40
    assert grouped.standard_error(log_p[twice]) == pytest.approx(alone)
    apart = replace(grouped, rows=replace(grouped.rows, group=None))
    assert apart.standard_error(log_p[twice]) == pytest.approx(alone * np.sqrt(39 / 79))


def test_a_classifier_tells_it():
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    classifier = AveragedClassifier(members=["gaussian"]).fit(rng.normal(size=(60, 2)) + y[:, None], y)
    attrs, scores = classifier.summary().attrs, classifier.scores_
    told = {"log loss": -scores["nested"], "standard error": scores["nested_error"], "left out": "rows"}
    assert attrs == told
    assert 0.02 < scores["nested_error"] < 0.2
