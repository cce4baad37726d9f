import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from refusals import refuses
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen import decision, evaluation, plot

MEDICAL = [[0, 1], [10, 0]]


def random_problem(seed, n=200, n_classes=3, n_actions=4):
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.full(n_classes, 0.7), size=n)
    return rng, probability, rng.normal(size=(n_classes, n_actions))


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (4, 2), (1, 1)])
def test_decide_is_brute_force_minimisation(shape):
    _, probability, loss = random_problem(0, 200, *shape)
    losses = decision.expected_loss(probability, loss)
    actions = decision.decide(probability, loss)
    for p, row, action in zip(probability, losses, actions, strict=True):
        by_hand = [sum(p[i] * loss[i, j] for i in range(shape[0])) for j in range(shape[1])]
        np.testing.assert_allclose(row, by_hand, atol=1e-14)
        assert by_hand[action] <= min(by_hand) + 1e-14


def test_rows_of_the_loss_are_truths_and_columns_actions():
    # sick with probability 0.2: sending home costs 0.2 * 10, treating costs 0.8 * 1
    np.testing.assert_allclose(decision.expected_loss([[0.8, 0.2]], MEDICAL), [[2.0, 0.8]])
    assert decision.decide([[0.8, 0.2]], MEDICAL) == [1]
    assert decision.decide([[0.8, 0.2]], np.transpose(MEDICAL)) == [0]


def test_without_a_loss_every_mistake_costs_one():
    _, probability, _ = random_problem(1)
    np.testing.assert_array_equal(decision.decide(probability), probability.argmax(axis=1))
    np.testing.assert_array_equal(
        decision.decide(probability, reject_cost=0.4),
        decision.decide(probability, decision.zero_one(3), reject_cost=0.4),
    )
    np.testing.assert_allclose(decision.expected_loss(probability, decision.zero_one(3)), 1 - probability)


def test_ties_go_to_the_lowest_code():
    assert decision.decide([[0.25, 0.375, 0.375]]) == [1]
    assert decision.decide([[0.5, 0.5]], [[2, 1, 1], [2, 1, 1]]) == [1]
    # 1 - p rounds these two to one number; the most probable class must still win
    low, high = 0.375, np.nextafter(0.375, 1)
    assert 1 - low == 1 - high
    assert decision.decide([[low, high, 0.25]]) == [1]


def test_rejection_is_one_more_action_that_loses_ties():
    _, probability, loss = random_problem(2)
    cost = 0.1
    with_column = decision.decide(probability, np.column_stack([loss, np.full(3, cost)]))
    rejecting = decision.decide(probability, loss, reject_cost=cost)
    np.testing.assert_array_equal(np.where(with_column == 4, -1, with_column), rejecting)
    assert 0 < (rejecting == decision.REJECT).sum() < len(rejecting)
    assert decision.decide([[0.75, 0.25]], reject_cost=0.25) == [0]
    assert decision.decide([[0.75, 0.25]], reject_cost=np.nextafter(0.25, 0)) == [-1]


@pytest.mark.parametrize("loss", [MEDICAL, [[0, 1], [1, 0]], [[-2, 5], [3, 1]], [[1, 1.5], [8, 1]], [[0, 0], [1, 0]]])
def test_threshold_separates_the_decisions(loss):
    p = np.linspace(0, 1, 1002)
    at = decision.threshold(loss)
    clear = np.abs(p - at) > 1e-9
    decided = decision.decide(np.column_stack([1 - p, p]), loss)
    np.testing.assert_array_equal(decided[clear], p[clear] > at)


def test_threshold_of_simple_losses():
    assert decision.threshold(MEDICAL) == pytest.approx(1 / 11)
    for loss, at in [(decision.zero_one(2), 0.5), ([[0, 0], [1, 0]], 0), ([[0, 1], [0, 0]], 1)]:
        assert decision.threshold(loss) == at
        assert decision.decide([[1 - at, at]], loss) == [0]


def test_risk_by_hand():
    truth, action = [0, 0, 1, 1, 1], [0, 1, 0, 1, -1]
    risk = decision.risk(truth, action, MEDICAL, reject_cost=2)
    assert risk == pytest.approx((0 + 1 + 10 + 0 + 2) / 5)
    weighted = decision.risk(truth, action, MEDICAL, reject_cost=2, sample_weight=[1, 2, 0, 1, 4])
    assert weighted == pytest.approx((0 + 2 + 0 + 8) / 8)
    named = np.array(["well", "ill"])[truth], np.array(["home", "bed"])[action[:4]]
    by_name = decision.risk(named[0][:4], named[1], MEDICAL, labels=["well", "ill"], actions=["home", "bed"])
    assert by_name == decision.risk(truth[:4], action[:4], MEDICAL)
    assert decision.risk(truth, action, MEDICAL, reject_cost=2, actions=["home", "bed"]) == risk  # codes all the same


def test_bayes_decisions_have_the_least_risk():
    rng, probability, loss = random_problem(3, n=20_000)
    truth = (probability.cumsum(axis=1) < rng.random((len(probability), 1))).sum(axis=1)
    actions = decision.decide(probability, loss)
    least = decision.risk(truth, actions, loss)
    expected = decision.expected_loss(probability, loss).min(axis=1)
    assert least == pytest.approx(expected.mean(), abs=5 * loss.std() / np.sqrt(len(truth)))
    shuffled = decision.risk(truth, rng.permutation(actions), loss)
    always = [decision.risk(truth, np.full(len(truth), j), loss) for j in range(4)]
    assert least < min(shuffled, *always)


LOSSES = {
    "squared": (decision.squared_loss, lambda p: (p * (1 - p)).sum()),
    "cross entropy": (decision.cross_entropy, lambda p: -(p * np.log(p)).sum()),
    "ranked": (decision.ranked_loss, lambda p: (p.cumsum() * (1 - p.cumsum())).sum() / 2),
}


@pytest.mark.parametrize(("loss", "at_best"), LOSSES.values(), ids=LOSSES)
def test_the_best_report_is_the_posterior(loss, at_best):
    belief = np.array([0.15, 0.6, 0.25])

    def expected(logits):
        return belief @ loss([0, 1, 2], np.tile(softmax(logits), (3, 1)))

    found = minimize(expected, x0=np.zeros(3), method="Nelder-Mead", options={"fatol": 1e-12})
    assert found.fun == pytest.approx(at_best(belief), abs=1e-9)
    np.testing.assert_allclose(softmax(found.x), belief, atol=1e-4)


@pytest.mark.parametrize(("loss", "at_best"), LOSSES.values(), ids=LOSSES)
def test_the_posterior_is_the_best_report_on_simulated_truths(loss, at_best):
    belief, n = np.array([0.15, 0.6, 0.25]), 50_000
    truth = np.random.default_rng(4).choice(3, size=n, p=belief)

    def simulated(report):
        return loss(truth, np.tile(report, (n, 1))).mean()

    assert simulated(belief) == pytest.approx(at_best(belief), rel=0.02)
    for other in ([0.1, 0.7, 0.2], [0.2, 0.5, 0.3], [0.0, 1.0, 0.0]):
        assert simulated(other) > simulated(belief)


def test_proper_losses_by_hand():
    truth, report = [2, 0], [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]
    np.testing.assert_allclose(decision.squared_loss(truth, report), [0.04 + 0.09 + 0.25, 0])
    entropy = decision.cross_entropy(truth, report)
    np.testing.assert_allclose(entropy, [np.log(2), 0])
    assert not np.signbit(entropy).any()
    assert decision.cross_entropy([1], [[1, 0]]) == [np.inf]


def test_ranked_loss_is_one_less_the_score_of_epstein():
    """Epstein 1969: 3/2 - Σ_i [(p_1 + .. + p_i)² + (p_{i+1} + .. + p_K)²]/2(K - 1) - Σ_i |i - t| p_i/(K - 1)."""
    rng = np.random.default_rng(0)
    p, truth = rng.dirichlet(np.ones(5), 20), rng.integers(5, size=20)
    for row, t in zip(p, truth, strict=True):
        squares = sum(row[:i].sum() ** 2 + row[i:].sum() ** 2 for i in range(1, 5))
        epstein = 1.5 - squares / 8 - np.abs(np.arange(5) - t) @ row / 4
        np.testing.assert_allclose(decision.ranked_loss([t], [row]), 1 - epstein, atol=1e-14)
    weighed = decision.ranked_loss([0, 1], p[:2, :2] / p[:2, :2].sum(1, keepdims=True))
    np.testing.assert_allclose(weighed, decision.squared_loss([0, 1], p[:2, :2] / p[:2, :2].sum(1, keepdims=True)) / 2)


CLASSES = np.array(["ash", "fir", "oak"])
COSTS = pd.DataFrame([[0, 1, 4, 2], [9, 0, 1, 2], [3, 5, 0, 2]], CLASSES, ["fell", "prune", "leave", "ask on"], float)
SHUFFLED = COSTS.iloc[[2, 0, 1], [1, 3, 0, 2]]


@pytest.mark.parametrize("costs", [COSTS, COSTS.iloc[[1, 2, 0]], SHUFFLED], ids=["own", "rows", "both"])
def test_a_loss_is_found_by_its_labels_in_whatever_order(costs):
    rng, probability, _ = random_problem(3, n=300)
    actions = COSTS.columns.to_numpy()
    codes = decision.decide(probability, COSTS.to_numpy(), reject_cost=1.0)
    want = np.where(codes < 0, "ask", actions[codes])
    truth = CLASSES[rng.integers(3, size=300)]
    named = pd.DataFrame(probability, columns=CLASSES, index=np.arange(300) + 7)
    for found in (
        decision.decide(probability, costs, reject_cost=1.0, labels=CLASSES),
        decision.decide(named, costs, reject_cost=1.0),
        decision.decide(named[["oak", "ash", "fir"]], costs, reject_cost=1.0),
        decision.act(probability, costs, CLASSES, reject_cost=1.0)["action"],
    ):
        np.testing.assert_array_equal(found, want)
        by_hand = decision.risk(np.searchsorted(CLASSES, truth), codes, COSTS.to_numpy(), reject_cost=1.0)
        assert decision.risk(truth, found, costs, reject_cost=1.0) == by_hand
    assert (want == "ask").any()
    expected = decision.expected_loss(named, costs)
    pd.testing.assert_frame_equal(expected[actions], pd.DataFrame(probability @ COSTS.to_numpy(), named.index, actions))
    coded = np.searchsorted(CLASSES, truth)
    assert decision.risk(coded, codes, costs, reject_cost=1.0, labels=CLASSES, actions=actions) == by_hand
    for y, p, labels in ((truth, probability, None), (truth, named, None), (coded, probability, CLASSES)):
        assert evaluation.realised_loss(y, p, costs, reject_cost=1.0, labels=labels) == by_hand
    ax = plot.confusion(truth, want, costs, classes=CLASSES, reject_cost=1.0, ax=Figure().subplots())
    assert [label.get_text() for label in ax.get_yticklabels()] == list(CLASSES)


def test_a_measurement_is_worth_the_same_for_a_loss_in_another_order():
    X, y = load_iris(return_X_y=True)
    classifier = bg.GaussianDiscriminantClassifier().fit(X, CLASSES[y])
    row = [[6.0, np.nan, np.nan, np.nan]]
    worth = bg.inspection.next_measurement(classifier, row, COSTS.to_numpy())
    np.testing.assert_array_equal(bg.inspection.next_measurement(classifier, row, COSTS.iloc[[2, 0, 1]]), worth)
    with pytest.raises(ValueError, match="one row for each of the classes"):
        bg.inspection.next_measurement(classifier, row, COSTS.rename(index={"oak": "elm"}))


def test_names_of_a_loss_that_are_numbers():
    loss = pd.DataFrame([[0, 1], [10, 0]], index=[2, 1], columns=[2, 1])
    probability = np.array([[0.95, 0.05], [0.04, 0.96], [0.5, 0.5]])  # of classes 1 and 2
    found = decision.decide(probability, loss, labels=[1, 2], reject_cost=0.41)
    assert found.tolist() == [1, 2, "ask"]
    assert decision.risk([1, 1, 2], found, loss, reject_cost=0.41) == pytest.approx((0 + 10 + 0.41) / 3)
    plain = pd.DataFrame([[0, 1], [10, 0]])  # labels that nobody gave are no names
    assert decision.decide(probability, plain, reject_cost=0.41).tolist() == [-1, 1, -1]
    assert decision.threshold(loss, labels=[1, 2]) == pytest.approx(10 / 11)
    tail = decision.decide(probability, loss, labels=[1, 2], typicality=[0.5, 0.001, 0.5], none_of_these=0.01)
    assert tail[1] == "none of these"


GOOD = [[0.5, 0.5]]
NAMED = pd.DataFrame(MEDICAL, index=["well", "ill"], columns=["home", "bed"])
TWICE = NAMED.rename(index={"ill": "well"})
COLUMNS = pd.DataFrame(GOOD, columns=["ill", "well"])
ERRORS = [
    (decision.expected_loss, ([0.5, 0.5], MEDICAL), {}, ValueError, "column_stack"),
    (decision.expected_loss, ([["a", "b"]], MEDICAL), {}, TypeError, "y_proba must be an arr"),
    (decision.expected_loss, ([[0.5, 0.4]], MEDICAL), {}, ValueError, "in 1 rows, first row 0"),
    (decision.expected_loss, ([[1.5, -0.5]], MEDICAL), {}, ValueError, r"in \[0, 1\]"),
    (decision.expected_loss, ([[np.nan, 1]], MEDICAL), {}, ValueError, "finite"),
    (decision.expected_loss, ([[np.inf, 0]], MEDICAL), {}, ValueError, "finite"),
    (decision.expected_loss, (GOOD, np.zeros((3, 2))), {}, ValueError, r"\(2, actions\)"),
    (decision.expected_loss, (GOOD, [0, 1]), {}, ValueError, "loss must have shape"),
    (decision.expected_loss, (GOOD, [[0, np.inf], [1, 0]]), {}, ValueError, "loss must be finite"),
    (decision.decide, (GOOD,), {"reject_cost": np.nan}, ValueError, "reject_cost must be finite"),
    (decision.decide, (GOOD, NAMED), {}, ValueError, "nothing says which column .* give labels="),
    (decision.expected_loss, (GOOD, NAMED), {}, ValueError, "nothing says which column .* give labels="),
    (decision.decide, (GOOD, NAMED), {"labels": ["well", "dead"]}, ValueError, "one row for each of the classes"),
    (decision.decide, (GOOD, TWICE), {"labels": ["well", "ill"]}, ValueError, "of distinct names"),
    (decision.decide, (COLUMNS, NAMED), {"labels": ["well", "ill"]}, ValueError, "labels must be in the order of"),
    (
        decision.decide,
        (GOOD, NAMED.rename(columns={"bed": "ask"})),
        {"labels": ["well", "ill"], "reject_cost": 0.1},
        ValueError,
        "loss has the action 'ask'",
    ),
    (decision.act, (GOOD, MEDICAL, ["well", "ill"]), {}, TypeError, "loss must be a DataFrame"),
    (decision.threshold, (NAMED,), {}, ValueError, "loss names its rows or columns: give labels="),
    (decision.risk, ([0], ["bed"], NAMED), {}, ValueError, "y_true holds codes: name the classes"),
    (decision.risk, (["ill"], ["bed"], NAMED), {"actions": ["bed", "go"]}, ValueError, "one column for each"),
    (evaluation.realised_loss, ([0, 1], 2 * GOOD, NAMED), {}, ValueError, "one row for each of the classes"),
    (decision.threshold, ([[0, 1, 2], [1, 0, 2]],), {}, ValueError, r"shape \(2, 2\)"),
    (decision.threshold, ([[1, 0], [0, 5]],), {}, ValueError, "wrong minus correct is -1"),
    (decision.threshold, ([[1, 1], [2, 2]],), {}, ValueError, "is 0 for class 0 and 0"),
    (decision.risk, ([0], [-1], MEDICAL), {}, ValueError, "reject_cost is needed"),
    (decision.risk, ([0], [2], MEDICAL), {}, ValueError, "action must be codes from -1 to 1"),
    (decision.risk, ([-1], [0], MEDICAL), {}, ValueError, "y_true holds 1 distinct values .* give labels="),
    (decision.risk, ([0], ["go"], MEDICAL), {}, TypeError, "names of actions as actions="),
    (decision.risk, ([0], ["go"], MEDICAL), {"actions": ["stay", "run"]}, ValueError, r"action holds \['go'\]"),
    (decision.risk, (["a"], [0], MEDICAL), {"labels": "abc"}, ValueError, "y_true needs 2 distinct labels"),
    (decision.risk, ([0], [0, 1], MEDICAL), {}, ValueError, r"action must have shape \(1,\)"),
    (decision.risk, ([], [], MEDICAL), {}, TypeError, "integer codes; got dtype float64"),
    (decision.risk, ([[0, 1]], [0], MEDICAL), {}, ValueError, "1d array"),
    (decision.squared_loss, (["a"], GOOD), {}, ValueError, "such as classifier.classes_"),
    (decision.cross_entropy, ([0, 1], GOOD), {}, ValueError, r"y_true must have shape \(1,\)"),
    (decision.ranked_loss, (list("abc"), np.eye(3)), {}, ValueError, "nothing says in which order the classes are"),
    (decision.ranked_loss, ([0], [[1.0]]), {}, ValueError, "two columns at least"),
]


@pytest.mark.parametrize(("function", "args", "kwargs", "kind", "message"), ERRORS)
def test_errors_name_the_argument(function, args, kwargs, kind, message):
    refuses(lambda: function(*args, **kwargs), message, kind)
