"""Arguments that are indexed by classes, categories or columns: matched by name, or refused."""

import pickle
import sys
import unicodedata

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refuses
from sklearn.base import clone
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen import decision, evaluation
from bayesgen.core.errors import quoted
from bayesgen.inspection import next_measurement
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    KnownCategorical,
    LinearRegression,
    LogisticRegression,
    NormalInverseGamma,
    NormalInverseWishart,
    SeparationPrior,
)
from bayesgen.tables.text import alike

RNG = np.random.default_rng(0)
Y = np.repeat(["low", "mid", "high"], [70, 20, 10])
X = pd.DataFrame(RNG.normal(size=(100, 2)) + (Y == "mid")[:, None], columns=["b", "a"])
SHARE = pd.Series(Y).value_counts(normalize=True)  # low .7, mid .2, high .1
BY_CLASS = [0.1, 0.7, 0.2]  # in the order of classes_: high, low, mid
GAP = pd.DataFrame({"b": [np.nan], "a": [np.nan]})
CLASSIFIERS = [
    bg.NaiveBayesClassifier(),
    bg.GaussianDiscriminantClassifier(),
    bg.AveragedClassifier(members=["gaussian", "softmax"]),
]
by_classifier = pytest.mark.parametrize(
    "classifier",
    [*CLASSIFIERS[:2], pytest.param(CLASSIFIERS[2], marks=pytest.mark.compiles)],
    ids=lambda own: type(own).__name__,
)


# -- class probabilities


@by_classifier
@pytest.mark.parametrize("named", [SHARE, dict(SHARE)], ids=["series", "dict"])
def test_priors_are_matched_by_name(classifier, named, tmp_path):
    fitted = clone(classifier).set_params(priors=named).fit(X, Y)
    np.testing.assert_allclose(fitted.predict_proba(GAP), [BY_CLASS], rtol=1e-12)
    later = clone(classifier).fit(X, Y).predict_proba(X, priors=named)
    np.testing.assert_allclose(later, clone(classifier).fit(X, Y).predict_proba(X, priors=BY_CLASS), rtol=1e-12)
    fitted.save(tmp_path / "fitted.bayesgen")
    again = bg.load(tmp_path / "fitted.bayesgen")
    np.testing.assert_allclose(again.fit(X, Y).predict_proba(GAP), [BY_CLASS], rtol=1e-12)


@by_classifier
def test_names_too_many_too_few_or_wrong_are_refused(classifier):
    fitted = clone(classifier).fit(X, Y)
    for named, words in (
        (SHARE.drop("mid"), r"lacks \['mid'\]"),
        (SHARE.rename({"mid": "medium"}), r"lacks \['mid'\] and has \['medium'\] besides"),
        ({**SHARE, "none": 0.0}, r"has \['none'\] besides"),
    ):
        with pytest.raises(ValueError, match=f"priors must have one probability for each of the classes.*{words}"):
            fitted.predict_proba(X, priors=named)
        with pytest.raises(ValueError, match=f"priors must have.*{words}"):
            clone(classifier).set_params(priors=named).fit(X, Y)
        with pytest.raises(ValueError, match=f"class_concentration.*must have.*{words}"):
            clone(classifier).set_params(class_concentration=dict(named)).fit(X, Y)


@by_classifier
def test_concentrations_of_the_classes_are_matched_by_name(classifier):
    named = pd.Series({"mid": 1e6, "low": 1.0, "high": 1.0})
    fitted = clone(classifier).set_params(class_concentration=named).fit(X, Y)
    np.testing.assert_allclose(fitted.predict_proba(GAP), [np.array([11, 71, 1e6 + 20]) / (1e6 + 102)], rtol=1e-9)


@by_classifier
def test_shares_that_sum_to_one_within_their_type_are_normalised(classifier):
    fitted = clone(classifier).fit(X, Y)
    draws = RNG.dirichlet(np.ones(3), 200).astype(np.float32)
    assert (np.abs(draws.astype(float).sum(1) - 1) > 1e-8).sum() > 50
    for share in [*draws[:20], np.array(BY_CLASS, np.float16), [0.1, 0.7, 0.2000005]]:
        wanted = np.asarray(share, float) / np.sum(share, dtype=float)
        np.testing.assert_allclose(fitted.predict_proba(GAP, priors=share), [wanted], rtol=1e-9)
    for share, said in (([0.1, 0.7, 0.1], "they sum to 0.9"), ([-0.1, 0.7, 0.4], r"one is -0\.1")):
        with pytest.raises(ValueError, match=f"priors must hold finite probabilities >= 0 that sum to 1; {said}"):
            fitted.predict_proba(X, priors=share)
    for share in draws:
        assert KnownCategorical(share).probability.sum() == pytest.approx(1, abs=1e-12)


# -- hyperparameters

MEAN = {"a": 1.0, "b": -2.0}
SCALE = pd.DataFrame([[3.0, 0.5], [0.5, 8.0]], index=["a", "b"], columns=["a", "b"])
PLAIN = NormalInverseWishart([-2.0, 1.0], 1.0, 5.0, [[8.0, 0.5], [0.5, 3.0]])  # of the columns b, a


def test_categories_are_matched_by_name():
    named = {"b": 1.0, "c": 5.0, "a": 2.0}
    for given in (pd.Series(named), named):
        die = DirichletCategorical(given, categories=["a", "b", "c"])
        assert die.alpha.tolist() == [2.0, 1.0, 5.0] and die.categories == ("a", "b", "c")
        assert DirichletCategorical(given).categories == ("b", "c", "a")
        with pytest.raises(ValueError, match=r"DirichletCategorical: alpha must have one entry for each of the categ"):
            DirichletCategorical(given, categories=["a", "b"])
    known = KnownCategorical(pd.Series({"b": 0.9, "a": 0.1}), ["a", "b"])
    assert known.probability.tolist() == [0.1, 0.9]


@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
def test_hyperparameters_of_columns_are_matched_by_name(order):
    mean = pd.Series(MEAN)[order]
    prior = NormalInverseWishart(mean, 1.0, 5.0, SCALE)
    turned = NormalInverseWishart(mean, 1.0, 5.0, SCALE.loc[["b", "a"], ["a", "b"]])
    assert prior == turned == pickle.loads(pickle.dumps(prior)) and prior.names == tuple(order)
    plain = bg.GaussianDiscriminantClassifier(prior=PLAIN).fit(X, Y).predict_proba(X)
    found = clone(bg.GaussianDiscriminantClassifier(prior=prior)).fit(X, Y)
    np.testing.assert_allclose(found.predict_proba(X), plain, rtol=1e-12)
    block = bg.NaiveBayesClassifier({("b", "a"): prior}).fit(X, Y)
    np.testing.assert_allclose(block.predict_proba(X), plain, rtol=1e-12)
    apart = SeparationPrior(mean=MEAN, mean_sd=pd.Series({"b": 3.0, "a": 1.0}), scale=2.0).for_columns(order)
    assert apart.mean.tolist() == [MEAN[name] for name in order]
    assert apart.mean_sd.tolist() == [{"a": 1.0, "b": 3.0}[name] for name in order]


def test_a_refit_after_a_file_still_knows_the_names(tmp_path):
    prior = NormalInverseWishart(pd.Series(MEAN), 1.0, 5.0, SCALE)
    fitted = bg.GaussianDiscriminantClassifier(prior=prior).fit(X, Y)
    fitted.save(tmp_path / "fitted.bayesgen")
    again = bg.load(tmp_path / "fitted.bayesgen").fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_guesses_of_columns_are_matched_by_name():
    plain = NormalInverseWishart.from_guess([1.0, -2.0], [3.0, 4.0], 9.0, [[1.0, 0.5], [0.5, 1.0]])
    correlation = pd.DataFrame([[1.0, 0.5], [0.5, 1.0]], ["b", "a"], ["b", "a"])
    named = NormalInverseWishart.from_guess(pd.Series(MEAN), {"b": 4.0, "a": 3.0}, 9.0, correlation)
    assert named.names == ("a", "b")
    np.testing.assert_array_equal(named.scale, plain.scale)
    assert DirichletCategorical.from_guess(pd.Series({"u": 0.4, "v": 0.6}), 10.0).categories == ("u", "v")


def test_columns_with_shares_of_their_own_categories_are_matched_both_ways():
    rows = pd.DataFrame({"u": ["x", "y"] * 20, "v": ["y"] * 30 + ["x"] * 10})
    y = np.arange(40) % 4 > 1
    alpha = pd.DataFrame([[1.0, 2.0], [30.0, 40.0]], index=["v", "u"], columns=["y", "x"])
    named = bg.NaiveBayesClassifier({("u", "v"): DirichletCategorical(alpha, categories=["x", "y"])}).fit(rows, y)
    plain = DirichletCategorical([[40.0, 30.0], [2.0, 1.0]], categories=["x", "y"])
    expected = bg.NaiveBayesClassifier({("u", "v"): plain}).fit(rows, y).predict_proba(rows)
    np.testing.assert_allclose(named.predict_proba(rows), expected, rtol=1e-12)


def test_hyperparameters_with_other_names_are_refused():
    with pytest.raises(
        ValueError, match=r"NormalInverseWishart: scale must have one entry for each of the columns.*'c'"
    ):
        NormalInverseWishart(pd.Series(MEAN), 1.0, 5.0, SCALE.rename(columns={"b": "c"}))
    prior = NormalInverseWishart(pd.Series({"a": 0.0, "c": 0.0}), 1.0, 5.0, np.eye(2))
    with pytest.raises(ValueError, match=r"for each of the columns \['b', 'a'\]; it lacks \['b'\] and has \['c'\]"):
        bg.GaussianDiscriminantClassifier(prior=prior).fit(X, Y)
    coins = BetaBernoulli(a=pd.Series({"p": 2.0, "q": 3.0}), b={"q": 5.0, "p": 4.0})
    assert coins.b.tolist() == [4.0, 5.0]
    with pytest.raises(ValueError, match=r"lacks \['r'\]"):
        bg.NaiveBayesClassifier({("q", "r"): coins}).fit(pd.DataFrame({"q": [0, 1] * 9, "r": [0, 1, 1] * 6}), Y[60:78])


def test_models_of_a_target_take_the_order_of_their_columns():
    scale = {"b": 2.0, "a": 1.0}
    assert LogisticRegression(pd.Series(scale), columns=("a", "b")).prior_scale.tolist() == [1.0, 2.0]
    mean = pd.Series({"b": 2.0, "intercept": 9.0, "a": 1.0})
    assert LinearRegression(mean, np.eye(3), columns=("a", "b")).mean.tolist() == [9.0, 1.0, 2.0]
    refuses(lambda: LogisticRegression(scale), r"LogisticRegression: prior_scale names \['b', 'a'\]: give columns= too")
    with pytest.raises(ValueError, match=r"LinearRegression: mean must have.*lacks \['c'\]"):
        LinearRegression(mean, np.eye(3), columns=("a", "c"))


def test_costs_of_columns_are_matched_by_name():
    rows, y = load_iris(return_X_y=True, as_frame=True)
    fitted = bg.GaussianDiscriminantClassifier().fit(rows, y)
    one = rows.iloc[[75]].astype(float) * np.nan
    cost = pd.Series([0.4, 0.3, 0.2, 0.1], index=rows.columns)
    by_place = next_measurement(fitted, one, cost=cost.to_numpy())
    pd.testing.assert_frame_equal(next_measurement(fitted, one, cost=cost[::-1]), by_place)


# -- scores

TRUE = ["low", "high", "low"]
PROBABILITY = {"low": [0.9, 0.1, 0.6], "high": [0.1, 0.9, 0.4]}
SCORES = {
    "accuracy": evaluation.accuracy,
    "log_loss": evaluation.log_loss,
    "brier_score": evaluation.brier_score,
    "squared_loss": decision.squared_loss,
    "cross_entropy": decision.cross_entropy,
    "ranked_loss": decision.ranked_loss,
    "expected_calibration_error": evaluation.expected_calibration_error,
    "realised_loss": lambda y, p, **k: evaluation.realised_loss(
        y, p, pd.DataFrame({"go": [0, 5], "stay": [1, 0]}, index=["low", "high"]), **k
    ),
}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_scores_look_at_the_names_of_the_columns(score, frame):
    named, by_code = frame(PROBABILITY), np.column_stack([PROBABILITY["high"], PROBABILITY["low"]])
    expected = score(TRUE, by_code, labels=["high", "low"])
    np.testing.assert_allclose(score(TRUE, named), expected, rtol=1e-12)
    np.testing.assert_allclose(score(TRUE, named, labels=["low", "high"]), expected, rtol=1e-12)
    for labels in (["high", "low"], ["low", "mid"]):
        with pytest.raises(ValueError, match="labels must be in the order of the columns of y_proba"):
            score(TRUE, named, labels=labels)
    refuses(lambda: score(["low", "mid", "low"], named), r"y_true holds \['mid'\], not among \['low', 'high'\]")


def test_the_reliability_table_has_the_classes_in_the_order_of_the_columns():
    assert evaluation.accuracy(TRUE, pd.DataFrame(PROBABILITY)) == 1.0
    table = evaluation.reliability_table(TRUE, pl.DataFrame(PROBABILITY), bins=2)
    assert table.count.tolist() == [[1.0, 2.0], [2.0, 1.0]] and table.frequency.tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_numbers_as_labels_are_matched_by_their_text():
    frame = pl.DataFrame({"2": [0.1, 0.8], "1": [0.9, 0.2]})
    assert evaluation.accuracy([1, 2], frame) == 1.0 == evaluation.accuracy([1, 2], frame, labels=[2, 1])
    assert evaluation.accuracy([1, 0], pd.DataFrame({1: [0.9, 0.2], 0: [0.1, 0.8]})) == 1.0
    assert evaluation.accuracy([True, False], pd.DataFrame({True: [0.9, 0.2], False: [0.1, 0.8]})) == 1.0
    with pytest.raises(ValueError, match=r"y_proba names its columns.*and y_true holds codes"):
        evaluation.accuracy([0, 1, 1], pd.DataFrame(PROBABILITY))


def test_a_polars_frame_of_losses_names_its_actions():
    loss = pl.DataFrame({"treat": [0, 1], "wait": [10, 0]})
    assert decision.decide([[0.95, 0.05], [0.05, 0.95]], loss, labels=["ill", "well"]).tolist() == ["treat", "wait"]


# -- names of draws, labels


@pytest.mark.compiles
def test_two_columns_that_differ_in_a_slash_stay_two():
    rows = pd.DataFrame({"km/h": RNG.normal(100, 1, 40), "km_h": RNG.normal(0, 1, 40)})
    y = np.arange(40) % 2
    leaves = {name: NormalInverseGamma(0.0, kappa, 2.0, 2.0) for name, kappa in (("km/h", 0.1), ("km_h", 0.2))}
    fitted = bg.NaiveBayesClassifier(leaves, random_state=0).fit(rows, y)
    tree = fitted.to_arviz(rows, y, columns=True, groups=["log_likelihood"])
    mean = tree["posterior"].mean(("chain", "draw"))
    assert {"km__h.mean", "km_h.mean", "km__h.variance", "km_h.variance"} <= {*mean.data_vars}
    assert abs(mean["km__h.mean"] - 100).max() < 3 and abs(mean["km_h.mean"]).max() < 3
    np.testing.assert_array_equal(tree["observed_data"]["km__h"], rows["km/h"])
    np.testing.assert_array_equal(tree["observed_data"]["km_h"], rows["km_h"])
    line = bg.LogisticClassifier(inference="map").fit(rows, y).to_arviz(rows, y, groups=["log_likelihood"])
    assert {"km__h", "km_h"} <= {*line["constant_data"].data_vars}
    alone = bg.NaiveBayesClassifier({"km/h": leaves["km/h"]}, random_state=0).fit(rows[["km/h"]], y)
    assert "km_h.mean" in alone.to_arviz()["posterior"]


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([True, None, False] * 6).dropna(),
        pd.Series([1, 2, 3] * 4, dtype=object),
        np.array([1, 2] * 6, dtype=object),
        np.array([2**60 + 1, 2**60] * 6, dtype=object),
    ],
)
def test_bools_and_whole_numbers_as_objects_are_labels(y):
    rows = np.arange(12.0)[:, None] % 4
    fitted, listed = (bg.NaiveBayesClassifier().fit(rows, own) for own in (y, list(y)))
    np.testing.assert_array_equal(fitted.classes_, listed.classes_)
    assert fitted.classes_.dtype == listed.classes_.dtype and set(fitted.classes_.tolist()) == set(y)
    np.testing.assert_array_equal(fitted.predict(rows), listed.predict(rows))


@pytest.mark.parametrize("classifier", [*CLASSIFIERS, bg.LogisticClassifier(inference="map")])
def test_a_class_whose_rows_all_have_weight_0_is_told(classifier):
    weight = np.where(Y == "high", 0.0, 1.0)
    with pytest.warns(UserWarning, match=r"all rows of the labels \['high'\] in y have weight 0: they are no classes"):
        fitted = clone(classifier).fit(X, Y, weight)
    assert fitted.classes_.tolist() == ["low", "mid"]


def test_what_unicode_does_not_show_is_told_in_labels_and_names():
    """Every character of the category Cf, such as a soft hyphen, a mark of direction or a tag."""
    unseen = [chr(n) for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)) == "Cf"]
    assert len(unseen) > 150
    assert [sign for sign in unseen if alike(["ab", f"a{sign}b", "abc"]) != [["ab", f"a{sign}b"]]] == []
    assert [sign for sign in unseen if not quoted(f"a{sign}b").isprintable()] == []
    assert [quoted(name) for name in ("größe", "e\u0301", "名前")] == ["größe", "e\u0301", "名前"]
    assert [quoted(name) for name in ("a b", "a,b", "")] == ["'a b'", "'a,b'", "''"]
    x = np.arange(4.0)[:, None]
    with pytest.warns(UserWarning, match=r"'yes' in 2 rows and 'yes\\u200e' in 1 row differ only by"):
        bg.NaiveBayesClassifier().fit(x, ["yes", "no", "yes\u200e", "yes"])
