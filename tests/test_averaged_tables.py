"""The averaged classifier on any table, and what it refuses or warns of."""

import numpy as np
import pytest
from refusals import refuses
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss
from test_averaged import FEW, FIT, IRIS, ONE, SPECIES, TEST, mixed

from bayesgen import AveragedClassifier
from bayesgen.averaging import fitted_view, learning, softmax


@pytest.mark.compiles
def test_gaps_at_fit_and_prediction():
    rng = np.random.default_rng(0)
    X = IRIS.copy()
    X[rng.random(X.shape) < 0.3] = np.nan
    classifier = AveragedClassifier().fit(X[FIT], SPECIES[FIT])
    assert log_loss(SPECIES[TEST], classifier.predict_proba(X[TEST])) < 0.6


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (IRIS[FIT][:, :1], SPECIES[FIT]),
        (load_wine().data[::12], load_wine().target[::12]),
        (IRIS[[0, 1, 2, 3, *range(50, 80)]], SPECIES[[0, 1, 2, 3, *range(50, 80)]]),
        (IRIS[[0, 60, 61, 120]], SPECIES[[0, 60, 61, 120]]),
        (mixed()[0][["leaf", "soil"]], mixed()[1]),
        (mixed()[0][["sick"]], mixed()[1]),
        (np.array([["a", 1.0], ["b", 2.0], ["a", 1.5], ["b", 2.5]] * 4, object), np.array([0, 1, 1, 1] * 4)),
    ],
    ids=["one column", "more columns than rows", "unequal classes", "a row a class", "categories", "bools", "objects"],
)
@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")
def test_any_table(X, y):
    probability = AveragedClassifier().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(probability.sum(1), 1)
    assert (probability > 0).all()


@pytest.mark.compiles
def test_wide_tables():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 120)) + 0.4 * y[:, None]
    X[rng.random(X.shape) < 0.05] = np.nan
    with pytest.warns(UserWarning, match="columns are many and have gaps"):
        classifier = AveragedClassifier().fit(X[:30], y[:30])
    numbers = {own.factors[0] for own in classifier.members_ if own.blocks == ("numbers",)}
    assert {own.structure for own in numbers} == {"full", "shared", "diagonal", "shared diagonal"}
    assert {own.components for own in numbers} == {1}
    assert log_loss(y[30:], classifier.predict_proba(X[30:])) < 0.6


def test_fifty_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(50), 5)
    X = rng.normal(size=(50, 4))[y] * 5 + rng.normal(size=(250, 4))
    classifier = AveragedClassifier(members=FEW).fit(X[::2], y[::2])
    assert classifier.scores_["average"] > classifier.scores_["base_rate"] + 2
    assert classifier.score(X[1::2], y[1::2]) > 0.6


def test_weights_from_a_sample_of_many_rows(monkeypatch):
    rng = np.random.default_rng(0)
    y = (rng.random(3000) < 0.15).astype(int)
    X = rng.normal(size=(3000, 3)) + y[:, None]
    whole = AveragedClassifier(members=[*FEW, "softmax"]).fit(X, y)
    monkeypatch.setattr(learning, "_LEARN", 600)
    monkeypatch.setattr(learning, "_MOST", 300)
    part = AveragedClassifier(members=[*FEW, "softmax"]).fit(X, y)
    assert part.scores_["rows"] == 300
    np.testing.assert_allclose(part.average_.class_weight, np.bincount(y))
    assert part.scores_["base_rate"] == pytest.approx(whole.scores_["base_rate"], rel=1e-3)
    assert np.abs(part.predict_proba(X) - whole.predict_proba(X)).mean() < 0.04


@pytest.mark.parametrize("learn", [5000, 150])
def test_softmax_members_learn_from_all_rows_though_few_are_left_out(monkeypatch, learn):
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X = rng.normal(size=(600, 2)) + y[:, None]
    monkeypatch.setattr(learning, "_MOST", 100)
    monkeypatch.setattr(learning, "_LEARN", learn)
    classifier = AveragedClassifier(members=[*FEW, "softmax"], bend=False).fit(X, y)
    assert classifier.scores_["rows"] == 100
    np.testing.assert_allclose(classifier.average_.parts[-1].warp.location, X.mean(0))
    monkeypatch.setattr(softmax, "_CELLS", 6 * 200)  # two classes of three coefficients
    part = clone(classifier).fit(X, y).average_.parts[-1]
    assert 0 < np.abs(part.warp.location - X.mean(0)).max() < 0.2


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"weights": "best"}, ValueError, "weights must be one of"),
        ({"unseen": "no"}, ValueError, "unseen must be one of"),
        ({"class_concentration": 0.0}, ValueError, "class_concentration: .*alpha must be positive"),
        ({"class_concentration": [1.0, 2.0]}, ValueError, "class_concentration: .*2 entries for 3 categories"),
        ({"class_concentration": "x"}, TypeError, "class_concentration: .*alpha must be a number or an array"),
        ({"class_concentration": [1.0, "x", [2.0]]}, TypeError, "class_concentration: .*alpha must be a number"),
        ({"priors": "x"}, ValueError, "priors must hold one probability .* got 'x'"),
        ({"priors": [0.5, 0.5]}, ValueError, "priors must hold one probability for each of the 3 classes"),
        ({"priors": [0.5, 0.5, 0.5]}, ValueError, "sum to 1"),
    ],
)
def test_bad_parameters_are_named(change, error, words):
    refuses(lambda: AveragedClassifier(**change).fit(IRIS[FIT], SPECIES[FIT]), words, error)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X.assign(height=np.inf), "column 'height': value inf in row 0 is infinite"),
        (lambda X: X.assign(width=1e200), "column 'width': value 1e\\+200 in row 0 is too large"),
        (lambda X: X.assign(soil=None).astype({"soil": object}), "column 'soil' has no observed value"),
    ],
)
def test_bad_values_are_named_with_column_and_row(change, words):
    X, y = mixed()
    refuses(lambda: AveragedClassifier().fit(change(X), y), words)


@pytest.mark.parametrize(("columns", "value"), [(8, 1e140), (2, -1e140), (1, 1e148)])  # NaN, no factor, an overflow
def test_a_value_that_hides_all_others_is_named(columns, value):
    X, y = np.random.default_rng(1).normal(size=(12, columns)), np.arange(12) % 2
    X[y == 1] += 1
    X[1, 0], y[1:3] = value, 2  # half of a class, so not taken as a slip
    with pytest.raises(ValueError, match=r"column 'x0': value .* in row 1 is .* times as far from the middle"):
        AveragedClassifier(members=[*FEW, "softmax"], random_state=0).fit(X, y)


def test_a_failed_fit_leaves_the_fit_before():
    classifier = clone(ONE).fit(IRIS[FIT], SPECIES[FIT])
    before = classifier.predict_proba(IRIS[TEST])
    refuses(lambda: classifier.fit(np.where(IRIS > 7, np.inf, IRIS), SPECIES), "infinite")
    np.testing.assert_array_equal(classifier.predict_proba(IRIS[TEST]), before)


def test_columns_that_say_nothing_are_left_out_with_a_warning():
    X = np.column_stack([IRIS[FIT], np.full(30, 3.0), np.full(30, np.nan)])
    with pytest.warns(UserWarning, match=r"columns \['x4', 'x5'\] are constant"):
        classifier = clone(ONE).fit(X, SPECIES[FIT])
    expected = clone(ONE).fit(IRIS[FIT], SPECIES[FIT]).predict_proba(IRIS[TEST])
    more = np.column_stack([IRIS[TEST], np.zeros((30, 2))])
    np.testing.assert_allclose(classifier.predict_proba(more), expected)
    assert classifier.sample(2)[0].shape == (2, 6)


def test_a_warning_where_no_member_beats_the_class_prior():
    rng = np.random.default_rng(3)
    with pytest.warns(UserWarning, match="no member predicts rows left out better"):
        clone(ONE).fit(rng.normal(size=(20, 3)), np.arange(20) % 2)


def test_a_row_of_a_large_group_may_stay_where_it_would_hardly_be_missed(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(18_000) % 2
    X = rng.normal(size=(18_000, 2)) + y[:, None]
    fast = AveragedClassifier(members=[*FEW, "softmax"], bend=False).fit(X, y)
    monkeypatch.setattr(fitted_view, "_LARGE", np.inf)
    exact = AveragedClassifier(members=[*FEW, "softmax"], bend=False).fit(X, y)
    np.testing.assert_allclose(fast.scores_["members"], exact.scores_["members"], atol=1e-3)
    # Scores of 1e-3 apart leave the weights of members that predict alike apart too, and with them probabilities.
    apart = np.abs(fast.predict_proba(X[:500]) - exact.predict_proba(X[:500]))
    assert apart.max() < 0.01 and apart.mean() < 0.002


@pytest.mark.filterwarnings("ignore:no member predicts")
def test_where_columns_are_noise_no_member_seems_to_know_the_class():
    """In balanced classes of fewer rows than columns no class may stand out as the one that lacks a row."""
    gain = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(40, 60)), np.arange(40) % 2
        scores = AveragedClassifier(members=["gaussian"], bend=False).fit(x, y).scores_
        gain.append(scores["nested"] - scores["base_rate"])
    assert np.mean(gain) < 0.05


def test_evidence_leaves_out_what_has_none():
    classifier = AveragedClassifier("evidence").fit(*mixed())
    for member, weight in zip(classifier.members_, classifier.weights_, strict=True):
        if len(member.factors) < 2 or member.factors[1].structure == "one parent":
            assert weight == 0
    assert classifier.weights_.sum() == pytest.approx(1)
