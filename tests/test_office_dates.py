"""Dates, months, quarters, weeks and durations as offices write them, in files and in tables in memory."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refuses

import bayesgen as bg
from bayesgen.models import MarkovChain

NB = bg.NaiveBayesClassifier
Y = np.resize(["u", "v", "v"], 60)


def written(tmp_path, texts, name="t.csv"):
    """Write a column of texts, repeated to 60 rows, beside a number and a class; return the path."""
    w = np.random.default_rng(0).normal(size=60).round(3)
    pd.DataFrame({"v": np.resize(np.array(texts, object), 60), "w": w, "y": Y}).to_csv(tmp_path / name, index=False)
    return tmp_path / name


PERIODS = {  # as they are written, and their first days
    "months": (["2024-01", "2023/12"], ["2024-01-01", "2023-12-01"]),
    "names of months": (["Jan 2024", "Sept. 2023", "december 2022"], ["2024-01-01", "2023-09-01", "2022-12-01"]),
    "months before years": (["01/2024", "12.2023"], ["2024-01-01", "2023-12-01"]),
    "quarters": (["2024-Q1", "2023Q4"], ["2024-01-01", "2023-10-01"]),
    "quarters before years": (["Q3 2021", "Q1 2020"], ["2021-07-01", "2020-01-01"]),
    "weeks": (["2024-W05", "2020W53"], ["2024-01-29", "2020-12-28"]),
    "days without signs": (["20240131", "20231201"], ["2024-01-31", "2023-12-01"]),
}


@pytest.mark.parametrize("way", PERIODS)
def test_months_quarters_and_weeks_are_their_first_day(way, tmp_path):
    texts, days = PERIODS[way]
    path = written(tmp_path, texts)
    assert ("dates; date= makes numbers of them" in str(bg.read_table(path)[1])) == (way != "days without signs")
    table, account = bg.read_table(path, "y", date="v")
    want = np.resize(np.array(days, "datetime64[D]").astype(int), 60)
    np.testing.assert_array_equal(table["v"], want)
    model = NB(account.features).fit(table[["v", "w"]], table["y"])
    np.testing.assert_array_equal(bg.read_table(path, like=model)[0]["v"], want)
    batches = pd.concat(model.predict_batches(path, progress=False)).filter(like="p_")
    np.testing.assert_allclose(batches, model.predict_proba(table[["v", "w"]]), rtol=1e-9)


@pytest.mark.parametrize("odd", ["2024-13", "2024-Q5", "2021-W53", "Mai 2024", "Ju 2024", "20241301"])
def test_what_is_no_month_quarter_or_week_is_refused(odd, tmp_path):
    with pytest.raises(ValueError, match=f"'{odd}' in row 3"):
        bg.read_table(written(tmp_path, ["2024-01", "2024-01", "2024-01", odd]), "y", date="v")


def test_the_order_of_days_and_months_is_said_once(tmp_path):
    path = written(tmp_path, ["03/03/2024", "03/04/2024", "05/06/2024"])
    refuses(lambda: bg.read_table(path, "y", date="v"), r"dates such as 03/04/2024 begin .*date_order='dmy'")
    first = {"dmy": "2024-04-03", "mdy": "2024-03-04"}
    for order, day in first.items():
        table, account = bg.read_table(path, "y", date="v", date_order=order)
        assert table["v"][1] == np.datetime64(day).astype(int)
        model = NB(account.features).fit(table[["v", "w"]], table["y"])
        np.testing.assert_array_equal(bg.read_table(path, like=model)[0]["v"], table["v"])
        other = bg.read_table(path, like=model, date_order="mdy" if order == "dmy" else "dmy")[0]
        assert other["v"][1] != table["v"][1] and other["v"][0] == table["v"][0]
    with pytest.raises(ValueError, match="'03/03/2024' in row 0 is not written in the order ymd"):
        bg.read_table(path, "y", date="v", date_order="ymd")
    with pytest.raises(ValueError, match="'13/04/2024' in row 1 is not written in the order mdy"):
        bg.read_table(written(tmp_path, ["03/04/2024", "13/04/2024"]), "y", date="v", date_order="mdy")
    refuses(lambda: bg.read_table(path, "y", date="v", date_order="dym"), "one of dmy, mdy and ymd, not 'dym'")


def test_days_whose_two_readings_agree_need_no_order(tmp_path):
    table, _ = bg.read_table(written(tmp_path, ["03/03/2024", "5-5-2024".replace("-", "/")]), "y", date="v")
    assert table["v"][:2].tolist() == [19785, 19848]


def test_durations_in_a_file_are_days(tmp_path):
    path = written(tmp_path, ["1:30", "0:45", "-2:15:30", "10:00"])
    table, account = bg.read_table(path, "y")
    want = np.array([90, 45, -135.5, 600]) / 1440
    np.testing.assert_allclose(table["v"][:4], want, rtol=1e-15)
    assert "v: durations read as days, hours before the colon, as in '1:30'" in account.notes
    model = NB().fit(table[["v", "w"]], table["y"])
    np.testing.assert_array_equal(bg.read_table(path, like=model)[0]["v"], table["v"])
    refuses(lambda: bg.read_table(written(tmp_path, ["90", "45"]), like=model), "'v'")


def test_durations_in_tables_are_days_and_told(tmp_path):
    X = pd.DataFrame({"v": pd.to_timedelta([36, 90, 120, None] * 15, unit="h"), "w": np.arange(60.0) % 7})
    days = X.assign(v=X["v"] / pd.Timedelta(days=1))
    want = NB().fit(days, Y).predict_proba(days)
    for table in (X, pl.from_pandas(X)):
        with pytest.warns(UserWarning, match="'v' holds durations, which are taken as numbers of days"):
            model = NB().fit(table, Y)
        np.testing.assert_allclose(model.predict_proba(table), want, rtol=1e-12)
    X.assign(y=Y).to_parquet(tmp_path / "t.parquet")
    table, account = bg.read_table(tmp_path / "t.parquet", "y")
    assert "v: durations taken as numbers of days" in account.notes
    np.testing.assert_array_equal(table["v"], days["v"])
    model = NB().fit_batches(tmp_path / "t.parquet", "y", progress=False)
    np.testing.assert_allclose(model.predict_proba(X), want, rtol=1e-12)
    X.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_allclose(bg.read_table(tmp_path / "t.csv", "y")[0]["v"], days["v"], rtol=1e-15)


def test_sparse_columns_of_pandas_are_columns_like_others():
    rng = np.random.default_rng(0)
    count, flag = rng.poisson(0.3, 60).astype(float), rng.random(60) < 0.3
    dense = pd.DataFrame({"count": count, "flag": flag, "w": rng.normal(size=60)})
    sparse = dense.astype({"count": pd.SparseDtype(float, 0.0), "flag": pd.SparseDtype(bool, False)})
    want = NB().fit(dense, Y)
    np.testing.assert_array_equal(NB().fit(sparse, Y).predict_proba(sparse), want.predict_proba(dense))
    batches = NB().fit_batches(sparse.assign(y=Y), "y", progress=False)
    np.testing.assert_allclose(batches.predict_proba(sparse), want.predict_proba(dense), rtol=1e-12)


@pytest.mark.parametrize(
    "make", [pd.Series, pd.array, lambda row: np.array(row, np.int16)], ids=["Series", "pandas array", "NumPy array"]
)
def test_a_series_in_each_cell_is_a_sequence(make):
    rows, y = [[7, 8], [9, 7, 8], [8], [8, 8]], list("uuvv")
    models = [
        NB({"s": MarkovChain([7, 8, 9])}).fit(pd.DataFrame({"s": cells}), y) for cells in (rows, [*map(make, rows)])
    ]
    new = pd.DataFrame({"s": [make([7, 8]), make([9])]})
    np.testing.assert_array_equal(models[0].predict_proba(new), models[1].predict_proba(new))
