"""The value of the next measurement, against Monte Carlo and integration by other means."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_iris
from test_imputation import Drawn

import bayesgen as bg
from bayesgen.inspection import next_measurement
from bayesgen.models import BetaBinomial

X, Y = load_iris(return_X_y=True)
LOSS = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
ROWS = np.array([[6.0, np.nan, np.nan, np.nan], [np.nan, 2.8, 4.9, np.nan], [5.9, 2.9, np.nan, 1.6]])
STRUCTURES = [(c, s) for c in ("full", "diagonal", "isotropic") for s in (False, True)]


def saved(now, then, weight, loss):
    """The definition: the loss then of the action chosen now, less the least loss then."""
    if loss is None:
        return weight @ np.where(then > 0, then * np.log(np.maximum(then, 1e-300) / now), 0.0).sum(1)
    action = (now @ loss).argmin()
    return weight @ ((then @ loss)[:, action] - (then @ loss).min(1))


def brute(classifier, row, column, values, loss, width=1.0):
    """The value from `predict_proba` and the joint density alone, at many values of the entry."""
    rows = pd.DataFrame([row] * len(values)) if isinstance(row, dict) else np.repeat(row[None], len(values), axis=0)
    if isinstance(row, dict):
        rows[column] = values
        one = pd.DataFrame([row])
    else:
        rows[:, column], one = values, row[None]
    if hasattr(classifier, "average_"):
        density = classifier.score_samples(rows)
    else:
        density = logsumexp(classifier.posterior_.log_predictive(classifier.fitted_.read(rows)), axis=1)
    return saved(
        classifier.predict_proba(one)[0], classifier.predict_proba(rows), softmax(density + np.log(width)), loss
    )


def line(low=-300.0, high=300.0, scale=2.0, count=20_001):
    """Values that are close where the densities are, and reach into the tails, and their widths."""
    s = np.linspace(np.arcsinh((low - 4) / scale), np.arcsinh((high - 4) / scale), count)
    return 4 + scale * np.sinh(s), np.cosh(s)


@pytest.mark.parametrize("loss", [None, LOSS], ids=["entropy", "loss"])
@pytest.mark.parametrize(("covariance", "shared"), STRUCTURES)
def test_value_of_numbers_is_an_integral(covariance, shared, loss):
    classifier = bg.GaussianDiscriminantClassifier(covariance, shared).fit(X[::4], Y[::4])
    found, (values, width) = next_measurement(classifier, ROWS, loss), line()
    np.testing.assert_array_equal(np.isnan(found), ~np.isnan(ROWS))
    for i, j in np.argwhere(np.isnan(ROWS)):
        assert found[i, j] == pytest.approx(brute(classifier, ROWS[i], j, values, loss, width), abs=1e-3)


@pytest.mark.parametrize("loss", [None, LOSS], ids=["entropy", "loss"])
def test_value_against_monte_carlo(loss):
    """Entries drawn from p(x_j | x_o): of each class a t, stratified, weighted by the probability of the class."""
    classifier = bg.GaussianDiscriminantClassifier("diagonal").fit(X[::4], Y[::4])
    leaf, row, rng, count = classifier.posterior_.model.gaussian, ROWS[0], np.random.default_rng(0), 20_000
    now = classifier.predict_proba(row[None])[0]
    for j in (1, 2, 3):
        t = stats.t(2 * leaf.alpha[:, None, j], leaf.mean[:, None, j], np.sqrt(leaf.squared_scale[:, None, j]))
        rows = np.repeat(row[None], 3 * count, axis=0)
        rows[:, j] = t.ppf((np.arange(count) + rng.random((3, count))) / count).ravel()
        wanted = saved(now, classifier.predict_proba(rows), np.repeat(now / count, count), loss)
        assert next_measurement(classifier, row[None], loss)[0, j] == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("exponent", [1.0, 0.4])
@pytest.mark.parametrize("loss", [None, [[0, 1], [4, 0]]], ids=["entropy", "loss"])
def test_value_of_categories_bits_and_counts(loss, exponent):
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=300)
    table = pd.DataFrame({
        "colour": np.where(rng.random(300) < 0.5, np.where(y, "red", "blue"), "green"),
        "bit": rng.random(300) < 0.3 + 0.3 * y,
        "visits": rng.poisson(2 + 2 * y),
        "heads": rng.binomial(6, 0.3 + 0.3 * y),
        "size": rng.normal(y),
    })  # fmt: skip
    features = {"visits": "poisson", "heads": BetaBinomial(1, 1, trials=6)}
    classifier = bg.NaiveBayesClassifier(features, exponent=exponent).fit(table, y)
    row = {"colour": None, "bit": None, "visits": np.nan, "heads": np.nan, "size": 0.2}
    found = next_measurement(classifier, pd.DataFrame([row]), None if loss is None else np.array(loss, float))
    support = {"colour": ["red", "blue", "green"], "bit": [False, True], "visits": range(60), "heads": range(7)}
    for column, values in support.items():
        wanted = brute(classifier, row, column, list(values), None if loss is None else np.array(loss, float))
        assert found[column][0] == pytest.approx(wanted, abs=1e-6)
    assert np.isnan(found["size"][0])


@pytest.mark.parametrize("loss", [None, LOSS], ids=["entropy", "loss"])
@pytest.mark.parametrize("inference", ["ml", "map", Drawn()])
def test_value_under_points_and_draws(inference, loss):
    classifier = bg.GaussianDiscriminantClassifier(inference=inference, random_state=0).fit(X[:, 1:3], Y)
    found, (values, width) = next_measurement(classifier, [[2.8, np.nan]], loss), line(-40, 50, 2.0, 1001)
    tolerance = 0.03 if isinstance(inference, Drawn) else 1e-3  # 100 of the 2,000 draws
    wanted = brute(classifier, np.array([2.8, np.nan]), 1, values, loss, width)
    assert found[0, 1] == pytest.approx(wanted, abs=tolerance)


def test_value_by_the_average():
    classifier = bg.AveragedClassifier(members=["gaussian", "category", "softmax"]).fit(X[::3], Y[::3])
    for loss in (None, LOSS):
        found, (values, width) = next_measurement(classifier, ROWS[:2], loss), line(-40, 50, 2.0, 401)
        for i, j in ((0, 2), (1, 3)):
            wanted = brute(classifier, ROWS[i], j, values, loss, width)
            assert found[i, j] == pytest.approx(wanted, abs=0.01)  # members of 0.5 % of the weight are not asked
        assert np.nanmin(found) >= 0


@pytest.mark.slow
def test_value_by_the_average_of_a_mixed_table():
    table = bg.data.load("penguins")[::3].drop(columns="year")
    y = table.pop("species")
    classifier = bg.AveragedClassifier(members=["gaussian", "category"]).fit(table, y)
    row = {"island": None, "bill_length_mm": 40.0, "bill_depth_mm": np.nan, "flipper_length_mm": np.nan,
           "body_mass_g": np.nan, "sex": None}  # fmt: skip
    found = next_measurement(classifier, pd.DataFrame([row]))
    wanted = brute(classifier, row, "island", ["Biscoe", "Dream", "Torgersen"], None)
    assert found["island"][0] == pytest.approx(wanted, abs=0.02) and found["sex"][0] < 0.02 < found["island"][0]


@pytest.mark.parametrize("covariance", ["full", "isotropic"])
@pytest.mark.parametrize("inference", ["exact", "map"])
def test_a_known_entry_may_be_as_far_out_as_float64_goes(inference, covariance):
    classifier = bg.GaussianDiscriminantClassifier(covariance, inference=inference).fit(X, Y)
    rows = np.array([[10.0**k, np.nan, 1.0, 1.0] for k in (140, 200, 300)])
    near, *far = next_measurement(classifier, rows)[:, 1]  # the squares of 1e140 are within float64
    if inference == "exact":
        np.testing.assert_allclose(far, near, rtol=1e-6, atol=1e-12)
    assert np.isfinite(far).all()  # a Gaussian has no density there, and the classes their prior
    filled = bg.inspection.impute(classifier, rows)[:, 1]
    drawn = bg.inspection.impute(classifier, rows, draws=20)
    assert np.isfinite(filled).all() and np.isfinite(np.stack(list(drawn))).all()
    if (covariance, inference) == ("full", "exact"):
        np.testing.assert_allclose(filled / rows[:, 0], filled[0] / rows[0, 0], rtol=1e-12)


def test_values_are_never_negative_before_costs():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((60, 4)) < 0.5, np.nan, rng.uniform(-5, 15, (60, 4)))
    for classifier in (
        bg.NaiveBayesClassifier(exponent=0.3),
        bg.NaiveBayesClassifier(exponent=2.0),
        bg.GaussianDiscriminantClassifier(inference="ml"),
    ):
        classifier.fit(X[::3], Y[::3])
        for loss in (None, -LOSS):
            found = next_measurement(classifier, rows, loss)
            assert np.nanmin(found) >= 0 and np.isfinite(found[np.isnan(rows)]).all()


def test_costs_are_taken_off_and_named():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"], index=np.arange(150) + 7)
    classifier = bg.GaussianDiscriminantClassifier().fit(frame, Y)
    rows = frame.iloc[:2].assign(b=np.nan, d=np.nan)
    free, dear = next_measurement(classifier, rows), next_measurement(classifier, rows, cost={"d": 0.25})
    np.testing.assert_allclose(free["b"], dear["b"])
    np.testing.assert_allclose(free["d"] - 0.25, dear["d"])
    assert dear.index.tolist() == [7, 8] and dear[["a", "c"]].isna().all(axis=None)
    assert next_measurement(classifier, frame.iloc[:2]).isna().all(axis=None)
    nothing = pd.DataFrame(np.nan, index=[0], columns=frame.columns)
    assert next_measurement(classifier, nothing).iloc[0].idxmax() in ("c", "d")


def test_two_entries_may_be_worth_something_only_together():
    """The class is whether two bits are equal: each alone is uninformative, and a greedy search finds neither."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 2))
    y = (x.prod(1) > 0).astype(int)
    classifier = bg.GaussianDiscriminantClassifier().fit(x, y)
    assert np.nanmax(next_measurement(classifier, [[np.nan, np.nan]])) < 0.01
    assert next_measurement(classifier, [[1.5, np.nan]])[0, 1] > 0.1


def measured(classifier, truth, steps, value=next_measurement):
    """Take the most valuable measurement of every row, so many times, and return the rows as far as they are known."""
    X = np.full_like(truth, np.nan)
    for _ in range(steps):
        places = np.arange(len(X)), np.nanargmax(np.where(np.isnan(X), value(classifier, X), np.nan), axis=1)
        X[places] = truth[places]
    return X


def test_measuring_what_is_worth_most_saves_more_than_chance():
    classifier = bg.NaiveBayesClassifier().fit(X[::2], Y[::2])
    truth, codes, rng = X[1::2], Y[1::2], np.random.default_rng(0)
    ways = next_measurement, lambda classifier, X: rng.random(X.shape)
    runs = (classifier.predict_proba(measured(classifier, truth, 1, value)) for value in ways)
    best, chance = (bg.evaluation.log_loss(codes, p) for p in runs)
    assert best < 0.7 * chance
    np.testing.assert_array_equal(measured(classifier, truth[:5], 4), truth[:5])
