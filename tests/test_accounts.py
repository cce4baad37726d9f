"""The account of how a file was read, which a table keeps."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from sklearn.model_selection import cross_val_score, train_test_split
from test_reading import NB, office

import bayesgen as bg
from bayesgen.tables import marks
from bayesgen.tables.reading import Reading


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_tables_of_numbers_keep_no_account():
    X = np.random.default_rng(0).normal(size=(30, 3))
    for rows in (X, pd.DataFrame(X)):
        assert NB().fit(rows, np.arange(30) % 2).schema_.reading == Reading()


def test_a_crafted_account_is_refused():
    refuses(lambda: Reading(dates={"when": "%Y; rm"}), "dates are written in one of")
    refuses(lambda: Reading(decimal="x"), "stands a point or a comma")


def test_the_table_of_read_table_is_written_and_read_back_with_its_account(folder):
    office()[1].to_csv("de.csv", sep=";", index=False)
    table, _ = bg.read_table("de.csv", "kind", date="when", sep=";", decimal=",", thousands=".")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.to_parquet("table.parquet")
    again = pd.read_parquet("table.parquet")
    assert Reading.of(again) == Reading.of(table) != Reading()


PARTS = {  # of a table, or two of them
    "the whole": lambda table, other: table.copy(),
    "a split": lambda table, other: train_test_split(table, random_state=0)[0],
    "joined again": lambda table, other: pd.concat(train_test_split(table, random_state=0)),
    "without gaps": lambda table, other: table.dropna(),
    "a sample": lambda table, other: table.sample(20, random_state=1),
    "some rows": lambda table, other: table[table["rate"] > 40],
    "half precision": lambda table, other: table.astype({"rate": "float32"}),
    "two files": lambda table, other: pd.concat([table, other]),
}

CHANGES = {
    "divided": lambda rate: rate / 100,
    "logarithm": np.log,
    "standardised": lambda rate: (rate - rate.mean()) / rate.std(),
    "classes": lambda rate: pd.cut(rate, 5),
}


def percents(rows=80, seed=0):
    """A table from a file with percent signs, read anew."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["u", "v"], rows)
    rate = [f"{v:.{seed}f}%" for v in rng.uniform(20, 60, rows) + 15 * (y == "u")]
    path = Path(f"rates{seed}.csv")
    pd.DataFrame({"rate": rate, "z": rng.normal(size=rows).round(2), "kind": y}).to_csv(path, index=False)
    return bg.read_table(path, "kind")[0]


@pytest.mark.parametrize("part", PARTS)
def test_any_part_of_a_table_keeps_its_account(folder, part):
    rows = PARTS[part](percents(), percents(seed=1))
    schema = NB().fit(rows[["rate", "z"]], rows["kind"]).schema_
    assert schema.reading.percent == ("rate",) and not schema.reading.changed


def test_folds_of_a_table_are_fitted_without_a_word(folder):
    table = percents()
    assert len(cross_val_score(NB(), table[["rate", "z"]], table["kind"])) == 5


@pytest.mark.parametrize("change", CHANGES)
def test_a_column_that_was_changed_loses_its_line(folder, change):
    table = percents()
    table["rate"] = CHANGES[change](table["rate"])
    with pytest.warns(UserWarning, match=r"the columns \['rate'\] hold values that their file had not"):
        classifier = NB().fit(table[["rate", "z"]], table["kind"])
    reading = classifier.schema_.reading
    assert reading.percent == () and reading.changed == ("rate",) and "z" in reading.fractions
    if change != "classes":
        _, account = bg.read_table("rates0.csv", like=classifier)
        assert "rate: read as it stands; the fit had other values than its file" in str(account)
        with pytest.warns(UserWarning, match="column 'rate': read as it stands"):
            pd.concat(classifier.predict_batches("rates0.csv", progress=False))


def test_a_large_column_is_known_by_a_sample_of_its_values():
    rng = np.random.default_rng(0)
    column = pd.Series(rng.normal(size=20_000))
    known = marks.marks_of(column)
    assert len(known) == 16_000 and marks.holds(known, column.sample(5000, random_state=0))
    assert not marks.holds(known, column + 1)
    more = pd.Series(rng.normal(size=20_000))
    both = marks.joined(known, marks.marks_of(more))
    assert marks.holds(both, column) and marks.holds(both, more) and not marks.holds(known, more)


@pytest.mark.parametrize(
    "odd", [5, None, "x", [1], {"foo": 1}, {"decimal": 3}, {"percent": 3}, {"dates": {"rate": 7}}, {"marks": 3}]
)
def test_attributes_of_another_shape_are_no_account(folder, odd):
    table = percents()
    table.attrs["bayesgen.reading"] = odd
    assert NB().fit(table[["rate", "z"]], table["kind"]).schema_.reading == Reading()


@pytest.mark.parametrize("seed", range(8))
def test_numbers_but_for_a_hundredth_of_the_entries_or_three_are_numbers_with_gaps(tmp_path, seed):
    """In every style of an office, with words and limits in any rows; one word more and nothing is taken."""
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([40, 290, 700]))
    most = max(3, rows // 100)
    decimal, thousands, sep = [(".", "", ","), (",", "", ";"), (",", ".", ";"), (".", ",", "\t")][seed % 4]
    values = rng.normal(2000, 900, rows).round(2)
    unit = " kg" if seed % 3 == 1 else ""
    texts = [f"{value:,.2f}".translate({44: thousands, 46: decimal}) + unit for value in values]
    label = np.resize(["a", "b"], rows)
    for count in (1, most, most + 1):
        places, limit = rng.choice(rows, count, replace=False), "<" if count == most and not unit else ""
        entries = dict(zip(places.tolist(), [limit + texts[places[0]], *["oops", "n. b."] * count], strict=False))
        entries = entries if limit else dict(zip(entries, ["oops", "n. b."] * count, strict=False))
        column = [entries.get(i, text) for i, text in enumerate(texts)]
        (tmp_path / "t.csv").write_text(
            pd.DataFrame({"v": column, "w": 1.5 + label.argsort(), "y": label}).to_csv(sep=sep)
        )
        table, account = bg.read_table(tmp_path / "t.csv", "y")
        words = [i for i, entry in entries.items() if not entry.startswith("<")]
        if count > most:
            assert "v" not in table or table["v"].dtype.kind not in "iuf"
            assert "oops" in str(account)
            continue
        assert np.flatnonzero(table["v"].isna()).tolist() == sorted(words)
        known = np.setdiff1d(np.arange(rows), list(entries))
        assert table["v"].to_numpy()[known].tolist() == values[known].tolist()
        assert not words or "taken as missing" in str(account)
        if limit:
            assert table["v"][places[0]] == values[places[0]] / 2 and np.flatnonzero(table["v_limit"]) == places[0]
        classifier = bg.NaiveBayesClassifier().fit(table.drop(columns="y"), table["y"])
        later, _ = bg.read_table(tmp_path / "t.csv", like=classifier)
        assert later.equals(table.drop(columns="y"))
