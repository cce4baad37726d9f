"""The comparison of probabilities: its splits, and what its tables say of lines that are kept."""

import numpy as np
import pandas as pd
import pytest

quality = pytest.importorskip("benchmarks.quality")  # a source distribution has the tests alone
quality_report = pytest.importorskip("benchmarks.quality_report")


def lines(loss, *, rows=("5", "20"), removed=(0.0,), splits=3):
    """What a run keeps: the log loss of each model, a little different in every split."""
    return pd.DataFrame(
        {
            "data": data,
            "rows": size,
            "removed": part,
            "split": split,
            "model": model,
            "log_loss": value + 0.01 * split + part,
            "brier": value / 2,
            "calibration": value / 10,
            "accuracy": 1 - value / 2,
            "cpu": 0.1,
        }
        for data in ("one", "two")
        for size in rows
        for part in removed
        for split in range(splits)
        for model, value in loss.items()
    )


LOSS = {quality_report.OURS: 0.4, "bayesgen full": 0.3, "forest": 0.5, "logistic": 0.6, "GaussianNB, calibrated": 0.7}


@pytest.mark.parametrize("rows", [5, "all"])
def test_rows_of_fit_and_of_test_are_apart(rows):
    y = np.repeat([0, 1, 2], [40, 30, 20])
    fit, test = quality.split(y, rows, 0)
    assert not set(fit) & set(test)
    assert len(fit) + len(test) == 90
    if rows == 5:
        assert np.bincount(y[fit]).tolist() == [5, 5, 5]
    assert quality.split(y, 20, 0) is None  # a fifth more than that is asked of the smallest class


def test_differences_are_paired_and_what_is_missed_is_named():
    frame = lines(LOSS)
    table = quality_report.summary(frame).set_index("model")
    assert table.loc["forest", "ours less it"] == "-0.100 ± 0.000"
    assert table.loc["bayesgen full", "ours less it"] == "+0.100 ± 0.000"
    assert table.loc["forest", "cells"] == "4"
    promises = quality_report.promises(frame).set_index("goal")
    assert promises["met"].tolist() == ["yes", "yes", "yes", "**no**", "yes"]
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
    for splits in (1, 2, 2):
        quality.measure(tmp_path / "kept.csv", ["any"], [5], [0.0], splits, ["forest", "logistic"])
    kept = quality.read(tmp_path / "kept.csv")
    assert len(called) == len(kept) == 4
    assert kept.columns.tolist() == quality.COLUMNS and (kept.rows == "5").all() and (kept.removed == 0).all()


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
