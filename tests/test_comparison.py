import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from refusals import refuses
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB

from bayesgen import NUTS, Exact, compare_models, data, evaluation, plot
from bayesgen.comparison import compare
from bayesgen.comparison.candidates import CANDIDATES, GAPS
from bayesgen.comparison.cross_validation import usable_folds
from bayesgen.sheets.cleaning import prepare


def mixed(n=60):
    """A column of every kind; x is constant within class a but for row 10, so ML fails where that is held out."""
    rng = np.random.default_rng(0)
    t = np.array(["a", "b"])[np.arange(n) % 2]
    x = np.where(t == "a", 1.0, rng.normal(size=n))
    x[10] = 2.0
    frame = {
        "x": x,
        "z": rng.normal(size=n) + (t == "a"),
        "colour": rng.choice(["red", "green"], n),
        "flag": rng.random(n) < 0.5,
        "score": [str(i % 7) if i != 3 else "?" for i in range(n)],
        "level": pd.array([None if i == 4 else i % 5 for i in range(n)], dtype="Int64"),
        "size": pd.Categorical(rng.choice(["s", "l"], n), categories=["s", "m", "l"]),
        "row": np.arange(n),
        "name": [f"k{i}" for i in range(n)],
        "day": pd.date_range("2020-01-01", periods=n),
        "void": np.nan,
        "same": 7,
        "t": t,
    }
    return pd.DataFrame(frame)


def test_prepare_says_what_it_leaves_out_and_what_is_ambiguous():
    table = mixed()
    table.loc[5, "t"] = None
    nb = prepare(table, "t")
    assert list(nb.X.columns) == ["x", "z", "colour", "flag", "score", "level", "size"]
    assert nb.rows.tolist() == [i for i in range(60) if i != 5]
    assert (nb.y == table["t"].drop(5)).all()
    assert {*nb.notes, *nb.suspicions} == {
        "1 row left out: no t",
        "score ambiguous: numbers but for '?', taken as categories",
        "level ambiguous: few distinct whole numbers; categorical= makes categories",
        "row left out: a row number, it seems: it counts the rows; number= keeps it",
        "name left out: an identifier, it seems: 59 distinct values in 59 rows",
        "day left out: dates; date= makes numbers of them",
        "void left out: no observed value",
        "same left out: constant, always 7",
        "1 missing value integrated out",
    }
    gda = prepare(table, "t", "gda")
    assert list(gda.X.columns) == ["x", "z", "level"]
    assert 4 not in gda.rows
    assert "colour, flag, score, size left out: not numbers, and gda takes numbers only" in gda.notes
    assert "1 row left out: gda compares on rows without gaps" in gda.notes


@pytest.mark.parametrize(
    ("t", "labels"),
    [
        ([1.0, 0.0, np.nan, 1.0], [1, 0, 1]),
        ([True, False, None, True], [True, False, True]),
        (pd.array([3, 4, None, 3], dtype="Int64"), [3, 4, 3]),
        (pd.Categorical(["u", "v", None, "u"]), ["u", "v", "u"]),
        (["u", 1, None, "u"], ["u", "1", "u"]),
    ],
)
def test_class_labels_of_every_kind(t, labels):
    y = prepare(pd.DataFrame({"x": [0.5, 1.5, 2.5, 3.5], "t": t}), "t").y
    assert y.tolist() == labels
    assert y.dtype.kind != "O"


def test_scores_are_those_of_the_held_out_rows():
    table = mixed()
    table["x"] = table["z"] ** 2
    ready = prepare(table, "t")
    result = compare(ready.X, ready.y, inferences=["ml", "exact"], folds=3)
    assert result.folds == 3
    assert result.classes.tolist() == ["a", "b"]
    assert sorted(np.bincount(result.fold)[1:]) == [20, 20, 20]
    for name, p in result.probability.items():
        np.testing.assert_allclose(p.sum(1), 1)
        s = result.scores(name)
        assert s.folds == 3
        assert s.accuracy == evaluation.accuracy(result.y_true, p)
        assert s.log_loss == evaluation.log_loss(result.y_true, p)
        assert s.brier_score == evaluation.brier_score(result.y_true, p)
        assert s.calibration_error == evaluation.expected_calibration_error(result.y_true, p)
        assert result.seconds[name] > 0
    again = compare(ready.X, ready.y, inferences={"exact": Exact()}, folds=3)
    np.testing.assert_array_equal(again.probability["exact"], result.probability["exact"])


def test_ml_that_fails_in_a_fold_is_noted_and_the_rest_goes_on():
    ready = prepare(mixed(), "t")
    said = []
    result = compare(
        ready.X, ready.y, inferences=["ml", "exact"], progress=lambda done, total, text: said.append((done, total))
    )
    assert said == [(i, 10) for i in range(11)]
    (failure,) = [note for note in result.notes if note.failed]
    assert failure.inference == "ml"
    assert "class 'a', column 'x'" in failure.text
    assert failure.fold == result.fold[10]  # the row without which x is constant
    assert (result.learned("ml") == (result.fold != failure.fold)).all()
    assert result.scores("ml").folds == 4
    assert result.scores("exact").folds == 5
    assert result.difference("ml", "exact").shape == (result.learned("ml").sum(), 2)


def test_ml_that_exists_nowhere_has_no_scores():
    ready = prepare(data.load("penguins"), "species", "gda")
    few = np.concatenate([np.flatnonzero(ready.y == label)[:5] for label in np.unique(ready.y)])
    result = compare(ready.X.iloc[few], ready.y[few], "gda", ["ml", "exact"])
    assert result.scores("ml").folds == 0
    assert np.isnan(result.scores("ml").log_loss)
    assert result.scores("exact").folds == 5
    assert not result.difference("ml", "exact").size


def test_a_zero_probability_costs_an_infinite_log_loss_and_a_warning_is_noted():
    n = 20
    t = np.array(["a", "b"])[np.arange(n) % 2]
    colour = np.where(t == "a", "red", "green")
    colour[0], colour[1] = "green", "blue"  # never seen in class a, or in any, when row 0, or 1, is held out
    result = compare(pd.DataFrame({"colour": colour}), t, inferences=["ml", "exact"])
    assert result.scores("ml").log_loss == np.inf
    assert np.isfinite(result.scores("exact").log_loss)
    (note,) = result.notes
    assert (note.inference, note.fold, note.failed) == ("ml", result.fold[1], False)
    assert "1 rows have probability 0 under every class" in note.text


def test_folds_are_as_many_as_the_smallest_class_has_rows():
    y = ["a"] * 10 + ["b"] * 3
    assert usable_folds(y, 5) == 3
    x = np.random.default_rng(0).normal(size=(13, 2))
    assert compare(x, y, inferences=["exact"]).folds == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": ["a"] * 4}, "at least two classes"),
        ({"y": ["a", "b", "b", "b"]}, "class a has 1"),
        ({"folds": 1}, "folds must be a whole number >= 2, got 1"),
        ({"inferences": ["vb"]}, "inference must be one of"),
        ({"inferences": []}, "at least one of ml, map, exact, nuts"),
        ({"model": "lda"}, "model must be one of nb, gda, full, shared; got 'lda'"),
    ],
)
def test_errors(change, words):
    arguments = {"X": [[0.0], [1.0], [2.0], [3.5]], "y": ["a", "b", "a", "b"], "inferences": ["exact"]} | change
    refuses(lambda: compare(**arguments), words)


@pytest.mark.compiles
def test_nuts_comes_close_to_exact():
    table = data.load("penguins")[["bill_length_mm", "species"]].iloc[::3]
    ready = prepare(table, "species")
    nuts = NUTS(num_samples=50, num_warmup=100, num_chains=2)  # a warm-up is part of a program: one for two tests
    result = compare(ready.X, ready.y, inferences={"exact": Exact(), "nuts": nuts}, folds=2)
    assert result.learned("nuts").all()
    assert result.difference().mean() < 0.02
    assert result.scores("nuts").log_loss == pytest.approx(result.scores("exact").log_loss, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["nb", "gda"])
def test_nuts_agrees_with_exact_on_penguins(model):
    ready = prepare(data.load("penguins"), "species", model)
    difference = compare(ready.X, ready.y, model, ["exact", "nuts"]).difference()
    assert difference.mean() < 0.005
    assert difference.max() < 0.05


@pytest.mark.usefixtures("few_members")
def test_models_of_a_mixed_table_with_gaps_are_compared_on_the_same_rows():
    ready = prepare(mixed(), "t")
    result = compare_models(ready.X, ready.y, folds=3)
    table = result.table
    assert set(table.index) == set(CANDIDATES) == set(result.probability)
    assert table["folds"].eq(3).all()
    assert table["log_loss"].is_monotonic_increasing
    assert result.best == table.index[0]
    assert table["difference"].iloc[0] == table["difference_error"].iloc[0] == 0
    for name, p in result.probability.items():
        np.testing.assert_allclose(p.sum(1), 1)
        own, best = result.log_losses(name), result.log_losses(result.best)
        assert table["log_loss"][name] == pytest.approx(evaluation.log_loss(result.y_true, p))
        assert table["standard_error"][name] == pytest.approx(own.std(ddof=1) / 60**0.5)
        assert table["difference"][name] == pytest.approx((own - best).mean())
        assert table["difference_error"][name] == pytest.approx((own - best).std(ddof=1) / 60**0.5)
        assert table["brier_score"][name] == pytest.approx(evaluation.brier_score(result.y_true, p))
    numbers = f"numbers only, colour, flag, score, size left out; {GAPS}"
    assert result.remarks == {
        "shared": numbers,
        "full": numbers,
        "logistic": "gaps filled with the means of the columns",
    }
    exact = compare(ready.X, ready.y, inferences=["exact"], folds=3)  # the same model on the same folds
    np.testing.assert_array_equal(result.fold, exact.fold)
    np.testing.assert_allclose(result.probability["naive Bayes"], exact.probability["exact"], rtol=1e-13)
    half = [(result.y_true[result.fold != k] == 1).mean() for k in result.fold]
    np.testing.assert_allclose(result.probability["base rate"][:, 1], half)


def test_prepare_doubts_a_copy_of_the_classes():
    table = mixed().assign(code=lambda rows: rows["t"].map({"a": 1.5, "b": 2.5}), near=lambda rows: rows["code"])
    table.loc[7, "near"] = 1.5 if table.loc[7, "t"] == "b" else 2.5
    (note,) = [note for note in prepare(table, "t").suspicions if "copied" in note]
    assert note == "code one value for each class, as if copied from t: drop=, if it was"


def test_a_comparison_prints_its_table():
    X, y = np.arange(20.0)[:, None] ** 0.5, np.arange(20) % 2
    result = compare_models(X, y, ["base rate", "naive Bayes"], folds=2)
    lines = repr(result).splitlines()
    assert lines[0] == "ModelComparison on 20 held-out rows in 2 folds" and len(repr(result)) < 1000
    assert "log_loss" in lines[1] and {line.split("  ")[0] for line in lines[3:]} == {"base rate", "naive Bayes"}
    assert "<td>" in result._repr_html_() and "naive Bayes" in result._repr_html_()


@pytest.mark.usefixtures("few_members")
def test_of_categories_alone_the_discriminants_are_left_out_unless_asked_for():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(["u", "v", "w"], (24, 2)), columns=["a", "b"])
    X.loc[3, "a"] = None
    y = np.arange(24) % 2
    result = compare_models(X, y, folds=2)
    assert list(result.probability) == ["base rate", "naive Bayes", "averaged", "logistic"]
    assert result.remarks == {
        "shared": "left out: it takes numbers only, and there are none",
        "full": "left out: it takes numbers only, and there are none",
        "logistic": "gaps filled with the means of the columns",
    }
    refuses(lambda: compare_models(X, y, ["full"]), "full: it takes numbers only")


def test_classifiers_of_ones_own_and_what_fails_is_noted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    X[0, 0] = np.nan
    result = compare_models(X, y, {"mine": GaussianNB(), "prior": DummyClassifier()}, folds=3)
    assert result.best == "prior"
    failed = [note for note in result.notes if note.failed]  # one fold fails to predict the gap, two to learn from it
    assert [note.inference for note in failed] == ["mine"] * 3
    assert "NaN" in failed[0].text
    assert result.table["folds"].to_dict() == {"prior": 3, "mine": 0}


def test_a_probability_of_zero_has_no_standard_error():
    y = np.arange(12) % 2

    class Sure(DummyClassifier):
        def predict_proba(self, X):
            return np.tile([1.0, 0.0], (len(X), 1))

    result = compare_models(np.zeros((12, 1)), y, {"sure": Sure(), "prior": DummyClassifier()}, folds=2)
    row = result.table.loc["sure"]
    assert row["log_loss"] == row["difference"] == np.inf
    assert np.isnan(row["standard_error"])
    ax = plot.models(result, ax=Figure().subplots())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["prior  0.693"]


def test_the_picture_of_models_has_them_from_best_to_worst():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    X[:, 0] += 3 * y
    result = compare_models(X, y, ["base rate", "full", "shared", "naive Bayes"], folds=2)
    ax = plot.models(result, ax=Figure().subplots())
    names = [label.get_text().split("  ")[0] for label in ax.get_yticklabels()]
    assert names == [name for name in result.table.index if name != "base rate"]
    assert ax.yaxis_inverted()
    assert ax.get_xlim()[0] <= 0


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (["lda"], "no model 'lda'; there are: base rate, naive Bayes, shared, full, averaged, logistic"),
        ([], "at least one model"),
        ({}, "at least one model"),
        ({"one": 1}, "'one' is no scikit-learn estimator, but 1"),
    ],
)
def test_errors_of_models(models, words):
    refuses(lambda: compare_models([[0.0], [1.0], [2.0], [3.5]], ["a", "b", "a", "b"], models), words)


@pytest.mark.compiles
def test_rows_that_rest_on_few_draws_are_counted_and_reported():
    from rich.console import Console

    from bayesgen.cli.report import terminal

    table = data.load("penguins")[["bill_length_mm", "species"]].iloc[::30]
    ready = prepare(table, "species")
    nuts = NUTS(num_samples=200, num_warmup=100, num_chains=2)
    result = compare(ready.X, ready.y, inferences={"exact": Exact(), "nuts": nuts}, folds=2)
    count = int(result.doubtful["nuts"].sum())
    assert 0 < count <= len(ready.y) and not result.doubtful["exact"].any()
    assert not any("rest on fewer" in note.text for note in result.notes)  # said once, not by fold
    out = Console(record=True, width=120, file=io.StringIO())
    terminal.tell_result(out, result, 2, "naive Bayes")
    assert f"nuts: {count} row" in out.export_text()


def test_what_every_model_says_of_the_table_is_warned_of_once_at_the_users_line():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "id": np.arange(60), "bit": rng.integers(0, 2, 60)})
    y = rng.integers(0, 2, 60)
    with pytest.warns(UserWarning, match="column 'id' seems to number the rows") as told:
        found = compare(X, y, inferences=["ml", "map", "exact"], folds=2)
    assert [Path(warning.filename).name for warning in told] == ["test_comparison.py"]
    assert sum("numbers 0 and 1 alone" in note.text for note in found.notes) == 6  # each inference, each fold
    with pytest.raises(ValueError, match="y holds 60 numbers, and a class is meant to be one of few"):
        compare_models(X, X["id"], ["base rate"])
