from dataclasses import astuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refuses
from scipy.stats import beta
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB

from bayesgen import decision, evaluation


def simulate(seed, n=400, n_classes=3, weighted=True):
    """Truths, miscalibrated probabilities and integer weights, some of them zero."""
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.full(n_classes, 0.8), size=n)
    chance = 0.7 * probability + 0.3 * rng.dirichlet(np.ones(n_classes), size=n)
    truth = np.minimum((chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), n_classes - 1)
    return truth, probability, rng.integers(0, 4, size=n) if weighted else None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_agree_with_scikit_learn(n_classes, weighted):
    truth, p, weight = simulate(0, n_classes=n_classes, weighted=weighted)
    classes = np.arange(n_classes)
    assert evaluation.accuracy(truth, p, sample_weight=weight) == pytest.approx(
        metrics.accuracy_score(truth, classes[p.argmax(axis=1)], sample_weight=weight)
    )
    assert evaluation.log_loss(truth, p, sample_weight=weight) == pytest.approx(
        metrics.log_loss(truth, p, labels=classes, sample_weight=weight)
    )
    by_class = [metrics.brier_score_loss(truth == k, p[:, k], sample_weight=weight) for k in classes]
    assert evaluation.brier_score(truth, p, sample_weight=weight) == pytest.approx(sum(by_class))


def test_extreme_forecasts():
    certain = [[1, 0], [0, 1]]
    assert evaluation.log_loss([0, 1], certain) == 0
    assert evaluation.log_loss([0, 0], certain) == np.inf
    assert evaluation.log_loss([0, 0], certain, sample_weight=[1, 0]) == 0  # an absent row costs nothing
    assert evaluation.brier_score([0, 1], certain) == 0
    assert evaluation.brier_score([1, 0], certain) == 2


def test_table_agrees_with_scikit_learn():
    truth, p, _ = simulate(1, weighted=False)
    table = evaluation.reliability_table(truth, p, 10)
    for k in range(3):
        frequency, mean = calibration_curve(truth == k, p[:, k], n_bins=10)
        occupied = table.count[k] > 0
        np.testing.assert_allclose(table.frequency[k][occupied], frequency)
        np.testing.assert_allclose(table.probability[k][occupied], mean)


def test_table_by_hand():
    p = np.array([0.0, 0.5, 0.5, 0.75, 1.0])
    table = evaluation.reliability_table([0, 1, 0, 1, 1], np.column_stack([1 - p, p]), bins=4)
    np.testing.assert_array_equal(table.edges[1], [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_array_equal(table.count[1], [1, 2, 1, 1])  # upper edges belong to the bin
    np.testing.assert_array_equal(table.frequency[1], [0, 0.5, 1, 1])
    np.testing.assert_array_equal(table.probability[1], [0, 0.5, 0.75, 1])


def test_interval_is_jeffreys():
    truth = np.repeat([0, 1], [7, 3])
    table = evaluation.reliability_table(truth, np.tile([0.6, 0.4], (10, 1)), bins=2)
    assert table.lower[1, 0] == pytest.approx(beta(3.5, 7.5).ppf(0.025))
    assert table.upper[1, 0] == pytest.approx(beta(3.5, 7.5).ppf(0.975))
    certain = evaluation.reliability_table(np.zeros(10, int), np.tile([0.6, 0.4], (10, 1)), bins=2)
    assert (certain.lower[1, 0], certain.upper[0, 1]) == (0, 1)
    assert certain.upper[1, 0] == pytest.approx(beta(0.5, 10.5).ppf(0.975))


def test_empty_bins_have_count_zero_and_nan_otherwise():
    table = evaluation.reliability_table([0, 1, 1], np.tile([0.75, 0.25], (3, 1)), bins=2)
    np.testing.assert_array_equal(table.count, [[0, 3], [3, 0]])
    for column in (table.probability, table.frequency, table.lower, table.upper):
        np.testing.assert_array_equal(np.isnan(column), table.count == 0)


def calibration_error_by_loops(event, p, bins):
    error = 0.0
    for b in range(bins):
        inside = (p <= (b + 1) / bins) & ((p > b / bins) | (b == 0))
        if inside.any():
            error += inside.mean() * abs(event[inside].mean() - p[inside].mean())
    return error


@pytest.mark.parametrize("bins", [1, 7, 10])
def test_calibration_error_by_loops(bins):
    truth, p, _ = simulate(2)
    top = calibration_error_by_loops(p.argmax(axis=1) == truth, p.max(axis=1), bins)
    assert evaluation.expected_calibration_error(truth, p, bins) == pytest.approx(top)


def test_calibration_error_of_certain_forecasts_is_their_error_rate():
    p = np.eye(2)[[0, 0, 0, 1]]
    assert evaluation.expected_calibration_error([0, 0, 1, 1], p) == 0.25


def every_number(truth, p, weight=None):
    table = np.column_stack(astuple(evaluation.reliability_table(truth, p, 10, sample_weight=weight)))
    metrics = (evaluation.expected_calibration_error, evaluation.accuracy, evaluation.log_loss, evaluation.brier_score)
    scores = [score(truth, p, sample_weight=weight) for score in metrics]
    return np.concatenate([np.ravel(table), scores])


def test_an_integer_weight_is_a_row_repeated_and_zero_a_row_absent():
    truth, p, weight = simulate(4)
    rows = np.repeat(np.arange(len(truth)), weight)
    np.testing.assert_allclose(every_number(truth, p, weight), every_number(truth[rows], p[rows]), atol=1e-14)


def test_order_of_rows_does_not_matter():
    truth, p, weight = simulate(5)
    rows = np.random.default_rng(5).permutation(len(truth))
    np.testing.assert_allclose(
        every_number(truth[rows], p[rows], weight[rows]), every_number(truth, p, weight), atol=1e-14
    )


def test_float32_probabilities_are_welcome():
    truth, p, _ = simulate(6)
    assert evaluation.log_loss(truth, p.astype(np.float32)) == pytest.approx(evaluation.log_loss(truth, p), rel=1e-5)


# -- labels as they are, one column of two classes, scikit-learn's scorers

NAMES = np.array(["ash", "birch", "oak"])
AS_THEY_COME = {
    "text": NAMES,
    "objects": NAMES.astype(object),
    "numbers": np.array([10, 20, 30]),
    "floats": np.array([1.0, 2.0, 3.0]),
    "codes": np.arange(3),
}


@pytest.mark.parametrize("labels", AS_THEY_COME.values(), ids=AS_THEY_COME)
def test_labels_are_taken_as_they_are(labels):
    truth, p, weight = simulate(7)
    np.testing.assert_array_equal(every_number(labels[truth], p, weight), every_number(truth, p, weight))
    for container in (list, pd.Series, lambda y: pd.Series(y).astype("category"), pl.Series):
        assert evaluation.log_loss(container(labels[truth]), p) == evaluation.log_loss(truth, p)
    order = [2, 0, 1]  # columns in another order than the sorted one
    again = evaluation.log_loss(labels[truth], p[:, order], labels=labels[order])
    assert again == pytest.approx(evaluation.log_loss(truth, p), rel=1e-14)


def test_labels_that_are_not_in_the_truth():
    rows = [[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]]
    few = evaluation.accuracy(["oak", "ash"], rows, labels=NAMES)
    assert few == 1 == evaluation.accuracy([2, 0], rows) == evaluation.accuracy([2, 0], rows, labels=NAMES)


def test_bools_and_one_column_are_two_classes():
    truth, p, weight = simulate(8, n_classes=2)
    np.testing.assert_allclose(every_number(truth == 1, p[:, 1], weight), every_number(truth, p, weight), atol=1e-14)
    assert evaluation.log_loss(truth == 1, p[:, 1]) == pytest.approx(metrics.log_loss(truth == 1, p[:, 1]))


@pytest.mark.parametrize("labels", [None, NAMES], ids=["codes", "labels"])
def test_scores_are_those_of_scikit_learn_with_its_arguments(labels):
    truth, p, weight = simulate(9)
    y = truth if labels is None else labels[truth]
    for own, theirs in ((evaluation.log_loss, metrics.log_loss), (evaluation.brier_score, metrics.brier_score_loss)):
        given = {"sample_weight": weight, "labels": np.unique(y)}
        scale = {"scale_by_half": False} if own is evaluation.brier_score else {}
        assert own(y, p, **given) == pytest.approx(theirs(y, p, **given, **scale), rel=1e-13)


METRICS = {
    "accuracy": (evaluation.accuracy, {}),
    "log loss": (evaluation.log_loss, {}),
    "Brier": (evaluation.brier_score, {}),
    "calibration error": (evaluation.expected_calibration_error, {}),
    "loss": (evaluation.realised_loss, {"loss": 1 - np.eye(3)}),
}


@pytest.mark.parametrize(("metric", "options"), METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("classes", [2, 3])
def test_metrics_make_scorers(metric, options, classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes, 2:] + np.random.default_rng(0).normal(size=(50 * classes, 2)), NAMES[y[y < classes]]
    options = {k: v[:classes, :classes] for k, v in options.items()}
    scorer = metrics.make_scorer(metric, response_method="predict_proba", greater_is_better=False, **options)
    scores = cross_val_score(GaussianNB(), X, y, cv=4, scoring=scorer, error_score="raise")
    p = cross_val_predict(GaussianNB(), X, y, cv=4, method="predict_proba")
    want = [-metric(y[rows], p[rows], **options) for _, rows in StratifiedKFold(4).split(X, y)]
    np.testing.assert_allclose(scores, want, rtol=1e-13)


def test_scorers_choose_what_is_best_under_the_loss():
    X, y = load_iris(return_X_y=True)
    X, y = X + np.random.default_rng(0).normal(size=X.shape), NAMES[y]
    loss = [[0, 1, 1], [1, 0, 20], [1, 1, 0]]
    how = {"response_method": "predict_proba", "greater_is_better": False, "labels": NAMES}
    scoring = {
        "loss": metrics.make_scorer(evaluation.realised_loss, loss=loss, **how),
        "reject": metrics.make_scorer(evaluation.realised_loss, loss=loss, reject_cost=0.1, **how),
        "calibration": metrics.make_scorer(evaluation.expected_calibration_error, bins=5, **how),
    }
    grid = {"var_smoothing": [1e-9, 10.0]}
    search = GridSearchCV(GaussianNB(), grid, scoring=scoring, refit="loss", error_score="raise", cv=3).fit(X, y)
    results = search.cv_results_
    assert search.best_params_ == {"var_smoothing": 1e-9} and (results["mean_test_reject"] >= -0.1).all()
    held = GaussianNB().fit(X[::2], y[::2])
    p, rest = held.predict_proba(X[1::2]), y[1::2]
    action = decision.decide(p, loss)
    by_hand = decision.risk(rest, NAMES[action], loss, labels=NAMES, actions=NAMES)
    assert scoring["loss"](held, X[1::2], rest) == -by_hand
    weight = np.arange(len(rest)) % 3
    weighed = scoring["calibration"](held, X[1::2], rest, sample_weight=weight)
    assert weighed == -evaluation.expected_calibration_error(rest, p, 5, sample_weight=weight)
    one = rest == "ash"  # rows of a single class
    assert scoring["loss"](held, X[1::2][one], rest[one]) <= 0


P = [[0.5, 0.5], [0.2, 0.8]]
ERRORS = [
    (([0, 1, 2], 3 * [0.5]), {}, ValueError, "y_true holds 3 distinct values .* there are 2 classes: give labels="),
    ((["a", "a"], P), {}, ValueError, r"y_true holds 1 distinct values \['a'\].* such as classifier.classes_"),
    (([0.5, 1.5], P), {}, ValueError, "Unknown label type: continuous"),
    (([None, "a"], P), {}, ValueError, "y_true contains missing labels"),
    (([b"a", b"b"], P), {}, TypeError, "y_true holds bytes"),
    (([0], P), {}, ValueError, r"y_true must have shape \(2,\)"),
    (([0, 1], [0.5, 1.8]), {}, ValueError, r"y_proba must be finite and in \[0, 1\]"),
    (([0, 1], [[P]]), {}, ValueError, "y_proba must have shape"),
    ((["a", "b"], P), {"labels": ["a", "c"]}, ValueError, r"y_true holds \['b'\], not among \['a', 'c'\]"),
    ((["a", "b"], P), {"labels": ["a", "b", "c"]}, ValueError, "y_true needs 2 distinct labels, in the order"),
    ((["a", "b"], P), {"labels": ["a", "a"]}, ValueError, "y_true needs 2 distinct labels"),
    (([0, 1], [[0.5, 0.5], [0.2, 0.2]]), {}, ValueError, "in 1 rows, first row 1"),
    (([0, 1], P), {"sample_weight": [1, -1]}, ValueError, "sample_weight must hold one finite number >= 0"),
    (([0, 1], P), {"sample_weight": [1, np.nan]}, ValueError, "sample_weight must hold one finite number >= 0"),
    (([0, 1], P), {"sample_weight": [1]}, ValueError, "one finite number >= 0 for each of the 2 rows"),
    (([0, 1], P), {"sample_weight": [0, 0]}, ValueError, "sample_weight must be positive"),
    (([0, 1], P), {"sample_weight": ["a", "b"]}, TypeError, "sample_weight must hold numbers"),
    ((np.zeros(0, int), np.zeros((0, 2))), {}, ValueError, "no row to average"),
]
FUNCTIONS = [evaluation.accuracy, evaluation.log_loss, evaluation.brier_score, evaluation.ranked_probability_score]
FUNCTIONS += [evaluation.reliability_table, evaluation.expected_calibration_error]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("args", "kwargs", "kind", "message"), ERRORS)
def test_errors_name_the_argument(function, args, kwargs, kind, message):
    refuses(lambda: function(*args, **kwargs), message, kind)


@pytest.mark.parametrize("function", FUNCTIONS[4:])
@pytest.mark.parametrize(
    ("kwargs", "message"),
    [({"bins": 0}, "bins must be a whole number >= 1"), ({"bins": 2.5}, "bins must be a whole number")],
)
def test_errors_name_the_option(function, kwargs, message):
    refuses(lambda: function([0, 1], P, **kwargs), message)
