from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from sklearn import metrics
from sklearn.calibration import calibration_curve

from bayesgen import evaluation


def simulate(seed, n=400, n_classes=3, weighted=True):
    """Truths, miscalibrated probabilities and integer weights, some of them zero."""
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.full(n_classes, 0.8), size=n)
    chance = 0.7 * probability + 0.3 * rng.dirichlet(np.ones(n_classes), size=n)
    truth = np.minimum((chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), n_classes - 1)
    return truth, probability, rng.integers(0, 4, size=n) if weighted else None


def decomposed(truth, probability, *args, **kwargs):
    return np.array(astuple(evaluation.brier_decomposition(truth, probability, *args, **kwargs)))


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


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_table_agrees_with_scikit_learn(strategy):
    truth, p, _ = simulate(1, weighted=False)
    table = evaluation.reliability_table(truth, p, 10, strategy)
    for k in range(3):
        frequency, mean = calibration_curve(truth == k, p[:, k], n_bins=10, strategy=strategy)
        occupied = table.count[k] > 0
        np.testing.assert_allclose(table.frequency[k][occupied], frequency)
        np.testing.assert_allclose(table.probability[k][occupied], mean)
    if strategy == "quantile":
        np.testing.assert_array_equal(table.count, 40)


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
    classes = [calibration_error_by_loops(truth == k, p[:, k], bins) for k in range(3)]
    error = evaluation.expected_calibration_error
    assert error(truth, p, bins) == pytest.approx(top)
    assert error(truth, p, bins, kind="classwise") == pytest.approx(np.mean(classes))
    assert top != pytest.approx(np.mean(classes), rel=0.05)


def test_calibration_error_of_certain_forecasts_is_their_error_rate():
    p = np.eye(2)[[0, 0, 0, 1]]
    assert evaluation.expected_calibration_error([0, 0, 1, 1], p) == 0.25


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    n_classes=st.integers(1, 4),
    bins=st.integers(1, 12),
    strategy=st.sampled_from(["uniform", "quantile"]),
    weighted=st.booleans(),
    digits=st.integers(1, 3),
)
def test_brier_terms_always_sum_to_the_score(seed, n, n_classes, bins, strategy, weighted, digits):
    truth, p, _ = simulate(seed, n, n_classes, weighted=False)
    p = np.round(p, digits)  # ties, and probabilities on the edges of bins
    p[:, 0] += 1 - p.sum(axis=1)
    p = np.abs(p) / np.abs(p).sum(axis=1, keepdims=True)
    weight = np.random.default_rng(seed).exponential(size=n) if weighted else None
    terms = decomposed(truth, p, bins, strategy, sample_weight=weight)
    total = terms @ [1, -1, 1, 1, -1]
    assert total == pytest.approx(evaluation.brier_score(truth, p, sample_weight=weight), abs=1e-12)
    assert (terms[:4] >= 0).all()


def test_brier_terms_of_grouped_forecasts_are_murphys():
    # two forecasts, 0.2 (4 rows, 1 hit) and 0.9 (6 rows, 5 hits), each in a bin of its own
    p = np.repeat([0.2, 0.9], [4, 6])
    truth = np.array([1, 0, 0, 0, 1, 1, 1, 1, 1, 0])
    terms = decomposed(truth, np.column_stack([1 - p, p]))
    reliability = 0.4 * (0.2 - 1 / 4) ** 2 + 0.6 * (0.9 - 5 / 6) ** 2
    resolution = 0.4 * (1 / 4 - 0.6) ** 2 + 0.6 * (5 / 6 - 0.6) ** 2
    by_hand = 2 * np.array([reliability, resolution, 0.6 * 0.4, 0, 0])  # both classes alike
    np.testing.assert_allclose(terms, by_hand, atol=1e-15)


def test_brier_terms_of_one_bin_are_a_variance_and_a_covariance():
    truth, p, _ = simulate(3, n_classes=2)
    terms = decomposed(truth, p, 1)
    covariance = np.cov(p[:, 1], truth, bias=True)
    np.testing.assert_allclose(terms[1], 0, atol=1e-15)
    np.testing.assert_allclose(terms[3:], 2 * np.array([covariance[0, 0], 2 * covariance[0, 1]]))


def every_number(truth, p, weight=None):
    tables = [
        np.column_stack(astuple(evaluation.reliability_table(truth, p, 10, s, sample_weight=weight)))
        for s in ("uniform", "quantile")
    ]
    errors = [
        evaluation.expected_calibration_error(truth, p, kind=kind, sample_weight=weight)
        for kind in ("confidence", "classwise")
    ]
    scores = [
        score(truth, p, sample_weight=weight)
        for score in (evaluation.accuracy, evaluation.log_loss, evaluation.brier_score)
    ]
    terms = decomposed(truth, p, strategy="quantile", sample_weight=weight)
    return np.concatenate([np.ravel(tables), errors, scores, terms])


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


P = [[0.5, 0.5], [0.2, 0.8]]
ERRORS = [
    (([0, 2], P), {}, ValueError, "y_true must be codes from 0 to 1"),
    (([0.0, 1.0], P), {}, TypeError, "y_true must be integer codes"),
    (([0], P), {}, ValueError, r"y_true must have shape \(2,\)"),
    (([0, 1], [0.5, 0.8]), {}, ValueError, "y_proba must have shape"),
    (([0, 1], [[0.5, 0.5], [0.2, 0.2]]), {}, ValueError, "in 1 rows, first row 1"),
    (([0, 1], P), {"sample_weight": [1, -1]}, ValueError, "sample_weight must be finite and nonnegative"),
    (([0, 1], P), {"sample_weight": [1, np.nan]}, ValueError, "sample_weight must be finite and nonnegative"),
    (([0, 1], P), {"sample_weight": [1]}, ValueError, r"sample_weight must have shape \(2,\)"),
    (([0, 1], P), {"sample_weight": [0, 0]}, ValueError, "sample_weight must be positive"),
    (([0, 1], P), {"sample_weight": ["a", "b"]}, TypeError, "sample_weight must be an array of numbers"),
    ((np.zeros(0, int), np.zeros((0, 2))), {}, ValueError, "none to average"),
]
FUNCTIONS = [
    evaluation.accuracy,
    evaluation.log_loss,
    evaluation.brier_score,
    evaluation.reliability_table,
    evaluation.expected_calibration_error,
    evaluation.brier_decomposition,
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("args", "kwargs", "kind", "message"), ERRORS)
def test_errors_name_the_argument(function, args, kwargs, kind, message):
    with pytest.raises(kind, match=message):
        function(*args, **kwargs)


@pytest.mark.parametrize("function", FUNCTIONS[3:])
@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"bins": 0}, "bins must be an integer of at least 1"),
        ({"bins": 2.5}, "bins must be an integer"),
        ({"strategy": "kmeans"}, "strategy must be"),
    ],
)
def test_errors_name_the_option(function, kwargs, message):
    with pytest.raises(ValueError, match=message):
        function([0, 1], P, **kwargs)


def test_unknown_kind_of_calibration_error():
    with pytest.raises(ValueError, match="kind must be"):
        evaluation.expected_calibration_error([0, 1], P, kind="top")
