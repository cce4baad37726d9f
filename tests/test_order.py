"""Rows in the order of time: each is predicted from earlier ones alone."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from commands import run
from matplotlib.figure import Figure
from refusals import refuses
from sklearn.dummy import DummyClassifier

from bayesgen import AveragedClassifier, GaussianDiscriminantClassifier, NaiveBayesClassifier, plot
from bayesgen.comparison import compare, compare_models, held_out_importance, over_time, results, splits
from bayesgen.inspection import importance, predict_in_order
from bayesgen.models import NormalInverseWishart
from bayesgen.tables.dates import as_text

FEW = AveragedClassifier(members=["gaussian", "category"])
COINS = NaiveBayesClassifier("bernoulli")  # its prior follows no rows


def coins(rows, seed, times=None):
    """Rows of four coins, in no order, and their times."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    X = (rng.random((rows, 4)) < np.where(y, 0.7, 0.3)[:, None]).astype(float)
    return X, y, rng.permutation(rows) if times is None else rng.integers(0, times, rows)


def drifting(rows, seed):
    """Two classes whose first column is exchanged in the last third."""
    rng = np.random.default_rng(seed)
    time, y = np.arange(rows), rng.integers(0, 2, rows)
    X = rng.normal(size=(rows, 2))
    X[:, 0] += 2.0 * np.where(time < 2 * rows / 3, y, 1 - y)
    return X, y, time


# -- exact, in one pass


def test_scores_in_order_add_to_the_evidence():
    X, y, time = coins(60, 0)
    order = np.argsort(time)
    first, whole = COINS.fit(X[order[:5]], y[order[:5]]).log_evidence_, COINS.fit(X, y).log_evidence_
    fitted, later = NaiveBayesClassifier("bernoulli").fit(X[order[:5]], y[order[:5]]), np.sort(order[5:])
    found = predict_in_order(fitted, X[later], y[later], time[later])
    assert found[np.arange(55), y[later]].sum() == pytest.approx(whole - first, rel=1e-10)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    gauss = GaussianDiscriminantClassifier(prior=NormalInverseWishart(np.zeros(3), 0.1, 6.0, np.eye(3)))
    first, whole = (gauss.fit(X[:n], y[:n]).log_evidence_ for n in (6, 40))
    found = predict_in_order(gauss.fit(X[:6], y[:6]), X[6:], y[6:40], pd.date_range("2020-01-01", periods=34))
    assert found[np.arange(34), y[6:40]].sum() == pytest.approx(whole - first, rel=1e-10)


def test_each_row_is_predicted_from_earlier_ones():
    X, y, time = coins(60, 0, times=25)
    found = compare_models(X, y, {"coins": COINS}, order=time).probability["coins"]
    for row in range(60):
        past = time < time[row]
        if min(np.bincount(y[past], minlength=2)) < 2:
            assert np.isnan(found[row]).all()
        else:
            expected = NaiveBayesClassifier("bernoulli").fit(X[past], y[past]).predict_proba(X[[row]])[0]
            np.testing.assert_allclose(found[row], expected, rtol=1e-10)


def test_each_row_is_predicted_from_what_came_before_its_group():
    X, y, time = coins(60, 0, times=40)
    group = np.random.default_rng(2).integers(0, 20, 60)
    found = compare_models(X, y, {"coins": COINS}, order=time, groups=group)
    begin = np.array([time[group == own].min() for own in group])
    for row in np.flatnonzero(found.learned("coins")):
        past = time < begin[row]
        expected = NaiveBayesClassifier("bernoulli").fit(X[past], y[past]).predict_proba(X[[row]])[0]
        np.testing.assert_allclose(found.probability["coins"][row], expected, rtol=1e-10)
    assert found.learned("coins").sum() > 20


# -- blocks


@pytest.mark.parametrize("grouped", [False, True])
def test_blocks_follow_each_other(grouped):
    _, y, time = coins(200, 0, times=80)
    group = np.random.default_rng(1).integers(0, 50, 200) if grouped else None
    begin = np.array([time[group == own].min() for own in group]) if grouped else time
    places = splits(y, 6, 0, group, time)
    assert len(places) == 6
    for past, block in places:
        assert time[past].max() < begin[block].min()
        assert set(np.flatnonzero(time < begin[block].min())) == set(past)
        assert not grouped or not set(group[past]) & set(group[block])
    held = np.concatenate([block for _, block in places])
    assert len(set(held)) == len(held) and set(held) == set(np.flatnonzero(begin >= begin[places[0][1]].min()))
    first = places[0][0]  # the shortest past that has two rows of each class
    assert min(np.bincount(y[first])) >= 2
    if not grouped:
        assert min(np.bincount(y[first][time[first] < time[first].max()], minlength=2)) < 2
        growth = np.diff(np.sqrt([len(past) for past, _ in places]))
        assert growth.max() < 1.5 * growth.min()


def test_later_rows_change_nothing():
    X, y, time = drifting(90, 0)
    group = np.arange(90) // 3
    before = compare_models(X, y, {"a": FEW, "n": NaiveBayesClassifier()}, folds=3, order=time, groups=group)
    end = np.flatnonzero(before.fold == 3)[0]
    other, flipped = X.copy(), y.copy()
    other[end:], flipped[end:] = 7.0, 1 - y[end:]
    after = compare_models(other, flipped, {"a": FEW, "n": NaiveBayesClassifier()}, folds=3, order=time, groups=group)
    for name in "an":
        np.testing.assert_array_equal(after.probability[name][:end], before.probability[name][:end])
    assert not np.array_equal(after.probability["n"][end:], before.probability["n"][end:])


def test_inferences_and_columns_are_judged_on_the_same_blocks():
    X, y, time = drifting(90, 0)
    found = compare(X, y, inferences=["map", "exact"], folds=3, order=time, return_estimators=True)
    models = compare_models(X, y, ["naive Bayes"], folds=3, order=time)
    np.testing.assert_array_equal(found.fold, models.fold)
    worth = held_out_importance(found, "exact")
    assert len(worth) == (found.fold > 0).sum()
    past, block = splits(y, 3, 0, None, time)[1]
    expected = importance(NaiveBayesClassifier().fit(X[past], y[past]), X[block], y[block])
    np.testing.assert_allclose(worth.to_numpy()[found.fold[found.fold > 0] == 2], expected.to_numpy())


# -- times as users have them


@pytest.mark.compiles
def test_times_come_in_many_forms():
    X, y, time = coins(60, 0, times=25)
    table = pd.DataFrame(X, columns=list("abcd"))
    expected = compare_models(table, y, {"coins": COINS}, order=time)
    days = pd.Timestamp("2023-12-20") + pd.to_timedelta(time, "D")
    forms = [
        days,
        days.to_series(),
        days.tz_localize("Europe/Berlin"),
        days.to_period("D"),
        days.to_series().dt.to_period("D"),
        days - days.min(),
        days.strftime("%Y-%m-%d"),
        days.strftime("%d.%m.%Y").to_numpy(),
        np.array([day.date() for day in days], dtype=object),
        np.array([datetime.datetime.fromisoformat(f"{day}") for day in days], dtype=object),
        [str(number) for number in time],
        pd.Series(time).astype("Int64"),
        pl.Series(time),
        time / 7,
    ]
    for order in forms:
        found = compare_models(table, y, {"coins": COINS}, order=order)
        np.testing.assert_array_equal(found.probability["coins"], expected.probability["coins"])
    assert compare_models(table, y, {"coins": COINS}, order=days).time.dtype.kind == "M"
    for own in (table.assign(day=days), pl.from_pandas(table.assign(day=days))):
        found = compare_models(own, y, {"coins": COINS}, order="day")
        np.testing.assert_array_equal(found.probability["coins"], expected.probability["coins"])


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        (np.arange(59), "order must hold one time for each of the 60 rows"),
        (np.zeros((60, 2)), "order must hold one time for each of the 60 rows"),
        (np.where(np.arange(60) < 58, np.arange(60), np.nan), "order has no time in 2 rows, the first of them row 58"),
        (np.where(np.arange(60) < 58, np.arange(60), np.inf), "order has no time in 2 rows"),
        ([*pd.date_range("2020-01-01", periods=59), pd.NaT], "order has no time in 1 row, the first of them row 59"),
        ([None] * 60, "order has no time in 60 rows"),
        (["2020-01-01"] * 59 + ["soon"], "'order' is to hold dates, and 'soon' in row 59 is none"),
        (np.arange(60) > 30, "order holds True and False, which are no times"),
        (np.full(60, 3.0), "order has one time only, 3.0"),
        ("day", "names no column"),
    ],
)
def test_times_that_are_none_are_refused(order, problem):
    X, y, _ = coins(60, 0)
    refuses(lambda: compare_models(X, y, {"coins": COINS}, order=order), problem)


def test_what_cannot_be_scored_is_told():
    X, _, time = coins(60, 0)
    with pytest.raises(ValueError, match=r"the classes \['b'\] do not have two rows each"):
        compare_models(X, np.where(time > 57, "b", "a"), {"coins": COINS}, order=time)
    with pytest.raises(ValueError, match=r"the classes \[1\] do not have rows of two groups each"):
        compare_models(X, np.arange(60) % 2, {"c": COINS}, order=time, groups=np.where(np.arange(60) % 2, 0, time + 1))
    refuses(lambda: compare_models(X, np.zeros(60), {"coins": COINS}, order=time), "at least two classes")
    for folds in (0, 2.5, [([0], [1])]):
        with pytest.raises(ValueError, match="folds must be the number of blocks"):
            compare_models(X, np.arange(60) % 2, {"coins": COINS}, folds, order=time)
    refuses(lambda: over_time(compare_models(X, np.arange(60) % 2, {"coins": COINS}), "coins"), "no times: give order=")
    fitted = NaiveBayesClassifier("bernoulli", inference="map").fit(X, np.arange(60) % 2)
    refuses(lambda: predict_in_order(fitted, X, np.arange(60) % 2, time), "inference='exact'")


# -- drift


def test_rows_to_predict_in_order_have_a_label_each():
    fitted = NaiveBayesClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "a"])
    refuses(lambda: predict_in_order(fitted, [[1.0], [2.0]], ["a"], order=[1]), "X has 2 rows and y has 1")


def test_a_period_of_one_group_has_no_standard_error():
    values = np.array([0.1, 0.4, 0.2])
    assert np.isnan(results.mean_of_rows(values, np.zeros(3))[1]) and results.mean_of_rows(values)[1] > 0


@pytest.mark.compiles
def test_drift_is_seen():
    X, y, time = drifting(900, 0)
    found = compare_models(X, y, {"n": NaiveBayesClassifier(), "rate": DummyClassifier(strategy="prior")}, order=time)
    table = over_time(found, "n", periods=9)
    assert (table["rows"] > 80).all() and table["rows"].sum() == found.learned("n").sum()
    fine = table["probability"].between(table["lower"], table["upper"])
    assert fine[:6].sum() >= 5 and not fine[6:8].any()
    assert table["log_loss"][6] > table["log_loss"][:6].max() + 5 * table["standard_error"][6]
    losses = found.log_losses("n")[np.isfinite(found.log_losses("n"))]
    assert (table["log_loss"] * table["rows"]).sum() / table["rows"].sum() == pytest.approx(losses.mean())


def test_drift_is_drawn():
    X, y, time = drifting(300, 0)
    models = {"n": NaiveBayesClassifier(), "rate": DummyClassifier(strategy="prior")}
    found = compare_models(X, y, models, order=pd.Timestamp("2024-01-01") + pd.to_timedelta(time, "D"))
    ax = plot.running_score(found, ax=Figure().subplots())
    assert [line.get_label() for line in ax.get_lines()[:2]] == ["rate", "n"]
    table = over_time(found, "n")
    np.testing.assert_allclose(ax.get_lines()[1].get_ydata(), table["log_loss"])
    ax = plot.calibration_over_time(found, "n", ax=Figure().subplots())
    np.testing.assert_allclose(ax.get_lines()[1].get_ydata(), table["probability"])
    assert ax.get_ylabel() == "n"


def test_times_that_are_large_stay_apart():
    assert as_text(np.int64(1_700_000_001)) == "1700000001" and as_text(2.5) == "2.5"
    assert (
        as_text(np.datetime64("2024-01-31T12:30", "ms"))
        == as_text(pd.Timestamp("2024-01-31 12:30"))
        == "2024-01-31 12:30"
    )


# -- the command line


@pytest.fixture
def visits(tmp_path, monkeypatch):
    """A file of patients who come on some days, in no order."""
    monkeypatch.chdir(tmp_path)
    X, y, time = drifting(150, 0)
    table = pd.DataFrame(X, columns=["a", "b"]).assign(
        ill=np.array(["no", "yes"])[y],
        admitted=(pd.Timestamp("2023-11-20") + pd.to_timedelta(time // 2, "D")).strftime("%d.%m.%Y"),
        patient=time // 4,
    )
    table.sample(frac=1, random_state=0).to_csv("visits.csv", index=False)
    return table


def test_the_command_line_predicts_from_earlier_rows(visits):
    arguments = ["visits.csv", "--target", "ill", "--order", "admitted", "--model", "nb", "--inference", "exact"]
    code, out, err = run(*arguments, "--drop", "patient", "--folds", "4", "--json", command="compare")
    assert code == 0, err
    found = json.loads(out)
    y = (visits["ill"] == "yes").to_numpy()
    expected = compare(visits[["a", "b"]], y, inferences=["exact"], folds=4, order=visits["admitted"])
    assert found["inferences"]["exact"]["log_loss"] == pytest.approx(expected.scores("exact").log_loss)
    assert found["folds"] == 4 and found["order"]["column"] == "admitted"
    periods = found["order"]["periods"]
    assert periods[0]["begin"].startswith("2023-11-2") and periods[-1]["end"].startswith("2024-02-02")
    assert sum(period["rows"] for period in periods) == (expected.fold > 0).sum()
    rates = np.array([y[expected.time < expected.time[expected.fold == fold].min()].mean() for fold in (1, 2, 3, 4)])
    p = rates[expected.fold[expected.fold > 0] - 1]
    truth = y[expected.fold > 0]
    assert found["base_rate"]["log_loss"] == pytest.approx(-np.log(np.where(truth, p, 1 - p)).mean())


@pytest.mark.compiles
@pytest.mark.usefixtures("few_members")
def test_the_page_shows_the_order(visits, tmp_path):
    arguments = ["visits.csv", "--target", "ill", "--order", "admitted", "--group", "patient", "--inference", "exact"]
    code, out, err = run(*arguments, "--folds", "3", "--output", "report", command="compare")
    assert code == 0, err
    assert "those that came before it by the column admitted, from" in " ".join(out.split()) and "2024-02-0" in out
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Over time" in page and "learned from earlier" in page and "Standard errors are over groups" in page
    assert (tmp_path / "report" / "time.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_line_names_what_is_no_time(visits):
    code, _, err = run("visits.csv", "--target", "ill", "--order", "came", command="compare")
    assert code == 2 and "no column 'came'" in err
    visits.assign(admitted=visits["admitted"].where(visits.index != 3)).to_csv("gaps.csv", index=False)
    code, _, err = run("gaps.csv", "--target", "ill", "--order", "admitted", "--model", "nb", command="compare")
    assert code == 2 and "order has no time in 1 row, the first of them row 3" in err
