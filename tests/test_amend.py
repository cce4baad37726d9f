"""Merging, forgetting and decay: the algebra of statistics, as laws of every family."""

import functools
import operator

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from test_fit_statistics import CASES, WEIGHT, Y, rows

import bayesgen as bg

NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
ORDER = np.random.default_rng(1).permutation(60)
KEPT, GONE = ORDER[:40], ORDER[40:]


def learned(case, chosen=slice(None), weight=None):
    """A classifier that knows all categories and classes, and has learned from some rows."""
    estimator, X = CASES[case]
    whole = clone(estimator).fit(X, Y)
    own = None if weight is None else weight[chosen]
    statistics = whole.summarise(rows(X, chosen), Y[chosen], own)
    return clone(estimator).fit_statistics(whole.schema_, statistics, whole.classes_)


def equal(a, b, case, rtol=1e-10):
    X = CASES[case][1]
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("case", CASES)
def test_merged_classifiers_know_what_the_rows_of_all_say(case):
    parts = [learned(case, own, WEIGHT) for own in np.split(ORDER, [18, 40])]
    whole = learned(case, weight=WEIGHT)
    equal(sum(parts), whole, case)
    equal(functools.reduce(operator.add, reversed(parts)), whole, case)
    assert sum(parts).effective_rows_ == pytest.approx(WEIGHT.sum() ** 2 / (WEIGHT**2).sum())


@pytest.mark.parametrize("case", CASES)
def test_forgotten_rows_were_never_there(case):
    whole, X = learned(case, weight=WEIGHT), CASES[case][1]
    whole.forget(rows(X, GONE), Y[GONE], WEIGHT[GONE])
    left = learned(case, KEPT, WEIGHT)
    equal(whole, left, case, 1e-8)
    assert whole.effective_rows_ == pytest.approx(left.effective_rows_)


@pytest.mark.parametrize("case", CASES)
def test_decay_is_a_weight_of_the_rows_before(case):
    factor, X = 0.25, CASES[case][1]
    decayed = learned(case, KEPT).decay(0.5).decay(0.5)
    weight = np.where(np.isin(np.arange(60), KEPT), factor, 1.0)
    equal(decayed, learned(case, KEPT, weight), case)
    decayed.partial_fit(rows(X, GONE), Y[GONE])
    equal(decayed, learned(case, weight=weight), case)
    assert decayed.total_weight_ == pytest.approx(weight.sum())
    assert decayed.effective_rows_ == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert not hasattr(decayed, "log_evidence_")
    if case != "words":
        equal(learned(case).decay(1.0), learned(case), case)


def refused(fitted, act, message, kind=ValueError):
    before = vars(fitted).copy()
    with pytest.raises(kind, match=message):
        act()
    assert vars(fitted) == before


def test_what_cannot_be_forgotten_is_refused_and_the_fit_kept():
    X = np.array([[1.0], [1.4], [3.1], [2.9], [2.5]])
    y = np.array([0, 0, 1, 1, 1])
    fitted = NB().fit(X, y)
    refused(fitted, lambda: fitted.forget(X[[0, 0, 0]], [0, 0, 0]), "a count would be -1")
    refused(fitted, lambda: fitted.forget(X, y), "no row would be left")
    refused(fitted, lambda: fitted.forget([[1e6]], [1]), "would lose the digits")
    far = NB().fit([*X, [1e12]], [*y, 1])
    refused(far, lambda: far.forget([[1e12]], [1]), "would lose the digits")
    table = pd.DataFrame({"c": ["u", "v", "u", "u"]})
    kinds = NB().fit(table, [0, 1, 0, 1])
    refused(kinds, lambda: kinds.forget(table[1:2], [0]), "a count would be -1")
    gaps = GD(inference="map").fit([[0.0, np.nan], *np.random.default_rng(0).normal(size=(8, 2))], [0] * 5 + [1] * 4)
    refused(gaps, lambda: gaps.forget([[np.nan, 0.0]], [0]), "no row has the gaps")
    line = np.random.default_rng(0).normal(size=(20, 2))
    line[:-1, 1] = line[:-1, 0] + 1e-9 * line[:-1, 1]  # one row alone tells the two columns apart
    full = GD(inference="map").fit(1e6 * line, [0] * 10 + [1] * 10)
    assert full.forget(1e6 * line[:1], [0]) is full


def test_what_cannot_be_merged_or_scaled_is_refused():
    one = NB().fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(ValueError, match="different columns, categories or classes"):
        one + NB().fit([[1.0], [2.0]], ["a", "c"])
    with pytest.raises(ValueError, match=r"differ in \['class_concentration'\]"):
        one + NB(class_concentration=2.0).fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(TypeError, match="unsupported operand"):
        one + GD("diagonal").fit([[1.0], [2.0]], ["a", "b"])
    for factor in (0.0, 1.5, np.nan, "half", True):
        refused(one, lambda factor=factor: one.decay(factor), "factor must be a number > 0 and <= 1")
