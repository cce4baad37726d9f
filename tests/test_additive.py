"""Merging, forgetting and decay: the algebra of statistics, as laws of every family."""

import functools
import operator

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from sklearn.base import clone
from test_fit_statistics import CASES, WEIGHT, Y, rows

import bayesgen as bg
from bayesgen.models import BetaBinomial, NormalInverseGamma

NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
ORDER = np.random.default_rng(1).permutation(60)
KEPT, GONE = ORDER[:40], ORDER[40:]


def learned(case, chosen=slice(None), weight=None):
    """A classifier that knows all categories and classes, and has learned from some rows."""
    estimator, X = CASES[case]
    whole = clone(estimator).fit(X, Y)
    own = None if weight is None else weight[chosen]
    pieces = whole.row_schema([(X, Y)], schema=whole.schema_, classes=whole.classes_)
    statistics = pieces.sum((rows(X, chosen), Y[chosen], own))
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


@pytest.mark.parametrize("case", CASES)
def test_statistics_without_some_rows_are_those_of_the_others(case):
    whole, X = learned(case), CASES[case][1]
    gone, left = (whole._sum_rows(rows(X, own), Y[own], WEIGHT[own]) for own in (GONE, KEPT))
    signed = [name for name, leaf in whole.model_.leaves.items() if leaf.density_kind == "density"]
    found = (gone + left).without(gone, signed)
    np.testing.assert_allclose(found.classes.sums, left.classes.sums)
    assert found.leaves.keys() == left.leaves.keys()
    for name, own in left.leaves.items():
        for field in ("sums", "n", "mean", "scatter"):
            if hasattr(own, field):
                np.testing.assert_allclose(
                    *(getattr(s.leaves[name], field) for s in (found, left)), rtol=1e-9, atol=1e-9
                )
    refuses(lambda: gone.without(left, signed), "not among those of the fit")


def test_a_difference_of_moments_has_no_dust_and_refuses_rows_of_others():
    leaf, x, weight = NormalInverseGamma(0.0, 1.0, 1.0, 1.0), [1.0, 2.0, 3.0], [0.1, 0.2, 0.3]
    parts = [leaf.statistics([value], weight=[w]) for value, w in zip(x, weight, strict=True)]
    assert (leaf.statistics(x, weight=weight) - parts[0] - parts[1] - parts[2]).n == 0  # not 1.1e-16
    refuses(lambda: parts[0] - parts[1], "not among those of the fit")


def refused(fitted, act, message, kind=ValueError):
    before = vars(fitted).copy()
    refuses(act, message, kind)
    assert vars(fitted) == before


@pytest.mark.filterwarnings("ignore:column 'x0'. value 1e.12 in row 5 is:UserWarning")
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
    words = NB("multinomial").fit([[3, 1], [0, 2]], [0, 1])
    refused(words, lambda: words.forget([[4, 0]], [0]), "a count would be -1")
    tosses = NB({(0, 1): BetaBinomial(1, 1)}).fit([[3, 4], [0, 2], [1, 1]], [0, 1, 0])
    refused(tosses, lambda: tosses.forget([[0, 2]], [0]), "a count would be -1")
    gaps = GD(inference="map").fit([[0.0, np.nan], *np.random.default_rng(0).normal(size=(8, 2))], [0] * 5 + [1] * 4)
    refused(gaps, lambda: gaps.forget([[np.nan, 0.0]], [0]), "no row has the gaps")
    line = np.random.default_rng(0).normal(size=(20, 2))
    line[:-1, 1] = line[:-1, 0] + 1e-9 * line[:-1, 1]  # one row alone tells the two columns apart
    full = GD(inference="map").fit(1e6 * line, [0] * 10 + [1] * 10)
    assert full.forget(1e6 * line[:1], [0]) is full


def test_what_cannot_be_merged_or_scaled_is_refused(tmp_path):
    one = NB().fit([[1.0], [2.0]], ["a", "b"])
    refuses(lambda: one + NB().fit([[1.0], [2.0]], ["a", "c"]), "different columns, categories or classes")
    with pytest.raises(ValueError, match=r"differ in \['class_concentration'\]"):
        one + NB(class_concentration=2.0).fit([[1.0], [2.0]], ["a", "b"])
    refuses(lambda: one + GD("diagonal").fit([[1.0], [2.0]], ["a", "b"]), "unsupported operand", TypeError)
    one.save(tmp_path / "m")
    for other in (one, clone(one).fit([[1.0], [2.0]], ["a", "b"]), bg.load(tmp_path / "m")):
        with pytest.raises(ValueError, match="the first and the second have learned from the same rows"):
            one + other
    assert (one + clone(one).fit([[1.0], [2.5]], ["a", "b"])).total_weight_ == 4
    for factor in (0.0, 1.5, np.nan, "half", True, 10**400):
        refused(one, lambda factor=factor: one.decay(factor), "factor must be a number > 0 and <= 1")
    for factor in (1e-200, 5e-324):
        refused(one, lambda factor=factor: one.decay(factor), "factor must leave something of the rows")
    assert clone(one).fit([[1.0], [2.0]], ["a", "b"]).decay(1e-150).effective_rows_ == pytest.approx(2)


# -- linear regression -------------------------------------------------------------------------------------------------

LINE_X = np.random.default_rng(2).normal([0.0, 1e4, -3.0], [1.0, 50.0, 0.1], (60, 3))
LINE_Y = LINE_X @ [1.0, 0.02, 5.0] + np.random.default_rng(3).normal(size=60)
LINES = {"standardised": bg.LinearRegressor(), "as given": bg.LinearRegressor(standardize=False, inference="map")}


def line(case, chosen=slice(None), weight=WEIGHT, factor=1.0):
    return clone(LINES[case]).fit(LINE_X[chosen], LINE_Y[chosen], None if weight is None else factor * weight[chosen])


def same_line(a, b, rtol=1e-9):
    predictions = (one.predict(LINE_X, return_std=True) for one in (a, b))
    np.testing.assert_allclose(*predictions, rtol=rtol)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=rtol)
    assert (a.total_weight_, a.effective_rows_) == pytest.approx((b.total_weight_, b.effective_rows_))


@pytest.mark.parametrize("case", LINES)
def test_regressions_merge_learn_on_and_forget(case, tmp_path):
    whole = line(case)
    parts = [line(case, own) for own in np.split(ORDER, [18, 40])]
    same_line(sum(parts), whole)
    same_line(parts[0].partial_fit(LINE_X[ORDER[18:]], LINE_Y[ORDER[18:]], WEIGHT[ORDER[18:]]), whole)
    assert whole.log_evidence_ == pytest.approx(sum(parts[1:], parts[0].forget(*_rows(ORDER[18:]))).log_evidence_)
    whole.forget(*_rows(GONE))
    same_line(whole, line(case, KEPT), 1e-8)
    whole.save(tmp_path / "line.safetensors")
    same_line(bg.load(tmp_path / "line.safetensors") + line(case, GONE), line(case), 1e-8)


def _rows(chosen):
    return LINE_X[chosen], LINE_Y[chosen], WEIGHT[chosen]


@pytest.mark.parametrize("case", LINES)
def test_decay_of_a_regression_is_a_weight_of_the_rows_before(case):
    decayed = line(case, KEPT).decay(0.5).decay(0.5)
    same_line(decayed, line(case, KEPT, factor=0.25))
    weight = np.where(np.isin(np.arange(60), KEPT), 0.25, 1.0) * WEIGHT
    same_line(decayed.partial_fit(*_rows(GONE)), line(case, weight=weight))
    with pytest.raises(AttributeError, match="made to count less by decay"):
        _ = decayed.log_evidence_


def test_what_a_regression_cannot_amend_is_refused_and_the_fit_kept():
    whole, before = line("standardised", KEPT), line("standardised", KEPT)
    for wrong, words in (
        (lambda: whole.forget(LINE_X[KEPT], LINE_Y[KEPT], WEIGHT[KEPT]), "no row would be left"),
        (lambda: whole.forget(LINE_X, LINE_Y, 10 * WEIGHT), "cannot be taken out of"),
        (lambda: whole.forget(LINE_X[:1] + 1e3, LINE_Y[:1]), "would lose the digits"),
        (lambda: whole.decay(0), "factor must be a number > 0"),
        (lambda: whole + bg.LinearRegressor(prior_scale=1.0).fit(LINE_X, LINE_Y), "differ in .'prior_scale'"),
        (lambda: whole + bg.LinearRegressor().fit(LINE_X[:, :2], LINE_Y), "different columns"),
        (lambda: bg.LinearRegressor(noise="laplace", inference="map").fit(LINE_X, LINE_Y).decay(0.5), "small statist"),
    ):
        refuses(wrong, words)
    same_line(whole, before, 1e-14)
