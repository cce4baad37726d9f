"""The comparison of probabilities: its splits, and its tables of the kept lines."""

import sys

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from sklearn.ensemble import RandomForestClassifier

quality = pytest.importorskip("benchmarks.quality")  # a source distribution has the tests alone
quality_report = pytest.importorskip("benchmarks.quality_report")
yardsticks = pytest.importorskip("benchmarks.yardsticks")
order = pytest.importorskip("benchmarks.order")
tabpfn_v1 = pytest.importorskip("benchmarks.tabpfn_v1")


def lines(loss, *, rows=("5", "20"), removed=(0.0,), noise=("0",), splits=3):
    """Return the log loss of each model, a little different in every split."""
    return pd.DataFrame(
        {
            "data": data,
            "rows": size,
            "removed": part,
            "noise": added,
            "split": split,
            "model": model,
            "classes": {"one": 2, "two": 3}[data],
            "log_loss": value + 0.01 * split + part,
            "brier": value / 2,
            "calibration": value / 10,
            "accuracy": 1 - value / 2,
            "auc_error": value / 3,
            "cpu": 0.1,
        }
        for data in ("one", "two")
        for size in rows
        for part in removed
        for added in noise
        for split in range(splits)
        for model, value in loss.items()
    )


LOSS = {quality_report.OURS: 0.4, "bayesgen full": 0.3, "forest": 0.5, "logistic": 0.6, "GaussianNB, calibrated": 0.7}


@pytest.mark.parametrize("rows", ["5", "all", "n72", "3-fold"])
def test_rows_of_fit_and_of_test_are_apart(rows):
    y = np.repeat([0, 1, 2], [40, 30, 20])
    fit, test = quality.split(y, rows, 0)
    assert not set(fit) & set(test)
    assert len(fit) + len(test) == 90
    if rows == "5":
        assert np.bincount(y[fit]).tolist() == [5, 5, 5]
    assert quality.split(y, "20", 0) is None  # the smallest class needs a fifth more rows than that
    assert quality.split(y, "n73", 0) is None  # a fifth of the rows is for the test


def test_the_folds_of_three_splits_are_all_rows():
    y = np.repeat([0, 1, 2], [40, 30, 20])
    folds = [
        np.concatenate([quality.split(y, "3-fold", 3 * repeat + fold)[1] for fold in range(3)]) for repeat in (0, 1)
    ]
    assert all(sorted(places) == list(range(90)) for places in folds)
    assert folds[0].tolist() != folds[1].tolist()


def test_noise_is_added_beside_the_columns_and_labels_are_permuted():
    X, y = pd.DataFrame({"x": np.arange(60.0)}), np.repeat([0, 1], [40, 20])
    Z, t = quality.spoiled(X, y, 0.0, "10", 0)
    assert Z.shape == (60, 11) and Z["x"].equals(X["x"]) and t is y
    noise = Z.drop(columns="x").to_numpy()
    assert abs(noise.mean()) < 5 / np.sqrt(600) and abs((noise**2).mean() - 1) < 5 * np.sqrt(2 / 600)
    Z, t = quality.spoiled(X, y, 0.0, "labels", 0)
    assert Z.equals(X) and (t != y).any() and np.bincount(t).tolist() == [40, 20]
    assert quality.spoiled(X, y, 0.5, "10", 0)[0].isna().to_numpy()[:, 1:].any()


def test_differences_are_paired_and_what_is_missed_is_named():
    frame = lines(LOSS)
    table = quality_report.summary(frame).set_index("model")
    assert table.loc["forest", "ours less it"] == "-0.100 ± 0.000"
    assert table.loc["bayesgen full", "ours less it"] == "+0.100 ± 0.000"
    assert table.loc["forest", "cells"] == "4"
    promises = quality_report.promises(frame).set_index("goal")
    assert promises["met"].tolist() == ["yes", "yes", "**no**", "**no**", "**no**", "**no**", "yes"]
    assert (promises["came out"] == "not measured").sum() == 3  # of the rivals that a cell is judged by
    assert promises.loc["0", "came out"].startswith("4 of 4: one 20 (full), one 5 (full)")


def test_only_splits_that_ours_was_measured_on_count():
    frame = lines(LOSS)
    late = (frame.split == 2) & (frame.model == quality_report.OURS) & (frame.rows == "20")
    text = quality_report.Section(frame[~late], 20).markdown()
    assert "of 20 planned: 3 at 5, 2 at 20" in text
    assert "| one | 20 | 0.405 | 0.305 (full) | 0.505 (forest) | 0.505 | 0.605 |" in text


def test_gaps_are_compared_where_every_data_set_has_every_part():
    frame = lines(LOSS, removed=(0.0, 0.1, 0.3))
    table, which = quality_report.by_gaps(frame[(frame.removed == 0) | (frame.rows == "20") & (frame.split < 2)])
    assert which == "20 rows per class (splits: 2)"
    assert table.columns.tolist() == ["model", "0% removed", "10% removed", "30% removed"]
    assert table.iloc[0].tolist() == ["bayesgen full", "0.305", "0.405", "0.605"]
    assert quality_report.by_gaps(frame[(frame.removed == 0) | (frame.data == "one")])[1] == ""


def test_what_is_kept_is_not_measured_again(tmp_path, monkeypatch):
    X, y = pd.DataFrame({"x": np.arange(40.0)}), np.repeat([0, 1], 20)
    monkeypatch.setattr(quality, "table", lambda name: (X, y))
    called = []

    def one(estimator, X, y, fit, test):
        called.append(estimator)
        return {"error": "not tried"}

    monkeypatch.setattr(quality, "_one", one)
    part = quality.Part(("any",), ("5",), models=("forest", "logistic"))
    for splits in (1, 2, 2):
        quality.measure(quality.results(tmp_path / "kept.csv"), part._replace(splits=splits))
    kept = quality.results(tmp_path / "kept.csv")
    frame = quality.read(kept)
    assert len(called) == len(frame) == 4
    assert frame.columns.tolist() == quality.COLUMNS and (frame.rows == "5").all() and (frame.removed == 0).all()
    assert quality.measure(kept, part._replace(splits=3), until=0.0) == 0  # no time is left
    kept.forget(["forest"])
    assert quality.read(kept).model.tolist() == ["logistic"] * 2
    assert quality.measure(kept, part._replace(splits=2)) == 2


def test_a_fit_that_fails_is_kept_as_such():
    class Broken:
        def fit(self, X, y):
            raise RuntimeError("first\n\nsecond")

    X, y = pd.DataFrame({"x": np.arange(40.0)}), np.repeat([0, 1], 20)
    assert quality._one(Broken(), X, y, [0, 30], [1, 31]) == {"error": "RuntimeError: first second"}


def test_a_page_is_renewed_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- quality -->\nold\n<!-- end of quality -->\nbelow\n")
    for _ in range(2):
        quality_report.put(page, "new\n")
    assert page.read_text() == "above\n<!-- quality -->\nnew\n<!-- end of quality -->\nbelow\n"


def test_the_picture_is_drawn_of_the_sizes_that_every_data_set_has(tmp_path):
    loss = dict.fromkeys(quality_report.SHOWN, 0.5) | LOSS
    quality_report.picture(lines(loss, rows=("5", "10", "20", "50", "100")), tmp_path / "q.png")
    assert (tmp_path / "q.png").read_bytes().startswith(b"\x89PNG")


def test_a_cell_is_near_where_no_rival_is_ahead_by_more_than_a_twentieth_or_a_hundredth():
    frame = lines({yardsticks.OURS: 0.42, "forest": 0.405, "CatBoost": 0.409, "LightGBM": 0.5, yardsticks.BASE: 0.1})
    frame.loc[(frame.data == "one") & (frame.model == "forest") & (frame.rows == "20"), "log_loss"] -= 0.02
    near = yardsticks.near(frame)
    assert list(near) == ["CatBoost", "LightGBM", "forest"]  # the base rate learns nothing
    assert near["forest"].tolist() == [False, True, True, True]
    rows = [row[2:] for row in yardsticks.shares(frame)]
    assert rows == [("75% of 4", True), ("50% of 2", False), ("50% of 2", False)]
    assert "CatBoost and LightGBM among them (splits: 3 or more): all" in yardsticks.shares(frame)[0][0]
    unjudged = frame[(frame.model != "CatBoost") | (frame.data == "two")]
    assert [row[2] for row in yardsticks.shares(unjudged)] == ["100% of 2", "not measured", "100% of 1"]


def test_near_compares_the_splits_that_both_have():
    frame = lines({yardsticks.OURS: 0.4, "forest": 0.3})
    late = frame.model.eq("forest") & frame.split.ne(2)
    frame.loc[frame.split.eq(2) & frame.model.eq(yardsticks.OURS), "log_loss"] = 0.3
    assert not yardsticks.near(frame)["forest"].any()
    assert yardsticks.near(frame[~late])["forest"].all()


def test_noise_is_compared_where_every_level_was_measured():
    frame = lines({yardsticks.OURS: 0.4, "forest": 0.6}, noise=("0", "10", "50"))
    frame.loc[frame.noise == "50", "log_loss"] += 0.1
    gone = (frame.noise == "10") & (frame.data == "two") & (frame.model == "forest")
    table = yardsticks.by_level(frame[~gone], "noise", ("0", "10", "50"))
    assert table.to_numpy().tolist() == [["forest", 2, "0.610 (0.410)", "0.610 (0.410)", "0.710 (0.510)"]]


def test_permuted_labels_cost_what_is_above_the_base_rate():
    frame = lines({yardsticks.OURS: 0.75, yardsticks.BASE: 0.7}, rows=("20", "5"), noise=("labels",))
    frame.loc[(frame.data == "two") & (frame.model == yardsticks.OURS), "log_loss"] += 0.02
    table = yardsticks.excess(frame)
    assert table["rows per class"].tolist() == ["5", "20"]
    assert table["mean excess"].tolist() == ["+0.060"] * 2 and table["worst data set"].tolist() == ["+0.070 (two)"] * 2


def test_published_figures_stand_beside_ours_on_folds():
    frame = lines({yardsticks.OURS: 0.1, "forest": 0.3}, rows=("3-fold",)).replace({"one": "splice", "two": "pima"})
    frame[yardsticks.AUC] = 0.16
    table = yardsticks.published(frame).set_index(["data", "method"])
    assert table.loc[("splice", yardsticks.OURS), ["measure", "value", "splits"]].tolist() == ["log loss", "0.110", 3]
    assert table.loc[("pima", yardsticks.OURS), ["measure", "value", "splits"]].tolist() == ["1 - AUC", "0.160", 3]
    assert table["source"].isin(["here", "TabArena"]).all()


@pytest.mark.compiles
def test_sections_of_other_parts_leave_the_curves_alone():
    frame = lines(LOSS)
    more = pd.concat([frame, lines(LOSS, rows=("n500",)), lines(LOSS, noise=("10", "labels"))], ignore_index=True)
    before, after = (quality_report.Section(own, 20) for own in (frame, more))
    assert before.cells() == after.cells()
    assert "Log loss by the rows" not in before.page() and "Log loss by the rows" in after.page()


def test_the_first_screen_shows_rivals_with_enough_splits_and_means_over_splits_of_all():
    loss = dict.fromkeys(["bayesgen naive Bayes", "logistic", "forest", "boosting", "LDA, shrinkage"], 0.5)
    frame = lines(loss | {yardsticks.OURS: 0.4, "CatBoost": 0.5}, rows=("5", "10", "20", "50", "100"), splits=5)
    few = frame.model.eq("CatBoost") & frame.split.ge(2)
    models, shown = quality_report.shared(frame[~few])
    assert "CatBoost" not in models and shown.split.nunique() == 5
    models, shown = quality_report.shared(frame[~(few & frame.split.eq(4))])
    assert "CatBoost" in models and shown.split.nunique() == 4
    assert "| CatBoost | 0.52 |" in quality_report.first_screen(frame[~(few & frame.split.eq(4))], 20, "x.png")


class ByPlace:
    """Probabilities that follow the first column and the first row of the fit, and the random state."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def get_params(self, deep=True):
        return {"random_state": self.random_state}

    def set_params(self, random_state):
        self.random_state = random_state
        return self

    def fit(self, X, y):
        self.first = X.iloc[0, 0]
        return self

    def predict_proba(self, X):
        p = 0.1 + 0.05 * (X.columns[0] == "a") + 0.2 * (self.first == 0) + 0.4 * self.random_state + np.zeros(len(X))
        return np.column_stack([p, 1 - p])


def test_changes_of_order_are_measured(tmp_path, monkeypatch):
    X, y = pd.DataFrame({name: np.arange(40.0) for name in "abcdef"}), np.repeat([0, 1], 20)
    monkeypatch.setattr(order, "table", lambda name: (X, y))
    monkeypatch.setattr(order, "contenders", lambda X, y: {"it": ByPlace()})
    monkeypatch.setattr(order, "split", lambda y, rows, seed: (np.arange(30), np.arange(30, 40)))
    kept = order.results(tmp_path / "order.csv")
    order.measure(kept, ("any",), ("5",), 1, ("it",))
    largest = kept.read().set_index("change")["largest"].to_dict()
    assert largest == pytest.approx({"columns": 0.05, "classes": 0.3, "rows": 0.2, "seed": 0.4})
    text = order.Section(kept.read()).markdown()
    assert "| it | seed | 1 | 1 | 0.4000 | 100.0% | 0.40 (any 5) |" in text


def test_names_of_classes_and_order_do_not_move_a_model_that_obeys():
    X, y = pd.DataFrame({"a": [0.0, 0.0, 1.0, 1.0] * 5}), np.repeat([0, 1, 0, 2], 5)
    tree = RandomForestClassifier(5, random_state=0, bootstrap=False)
    before = order.changed(tree, X, y, np.arange(20), np.arange(20), "nothing")
    for change in order.CHANGES:
        np.testing.assert_allclose(order.changed(tree, X, y, np.arange(20), np.arange(20), change), before)


@pytest.mark.compiles
def test_a_network_in_another_environment_is_asked_through_a_process(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("def set_num_threads(count): print('no message')")
    (tmp_path / "tabpfn.py").write_text(
        "import numpy as np\n"
        "class TabPFNClassifier:\n"
        "    def __init__(self, **how): pass\n"
        "    def fit(self, X, y, overwrite_warning): self.share = np.bincount(y) / len(y)\n"
        "    def predict_proba(self, X): return np.tile(self.share, (len(X), 1)) / (X[0, 0] != 9)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(tabpfn_v1, "PYTHON", sys.executable)
    tabpfn_v1._process.cache_clear()
    network = tabpfn_v1.TabPFN().fit(np.zeros((4, 1)), [0, 0, 0, 1])
    for _ in range(2):  # one process answers twice
        assert network.predict_proba(np.zeros((2, 1))).tolist() == [[0.75, 0.25]] * 2
    assert network.cpu_elsewhere_ >= 0
    refuses(lambda: network.predict_proba(np.zeros((0, 1))), "IndexError", RuntimeError)
    with tabpfn_v1._process() as process:  # closes its input, on which it ends
        pass
    assert process.returncode == 0
    tabpfn_v1._process.cache_clear()
    refuses(lambda: network.fit(np.zeros((5001, 1)), np.zeros(5001)), "5000 rows at most")
