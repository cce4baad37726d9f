"""A column of numbers becomes categories, and a code or a row number a number, only where somebody is told."""

import copy
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from commands import fitted, predicted
from refusals import refuses

import bayesgen as bg
from bayesgen.tables.columns import sorted_levels, twins
from bayesgen.tables.description import of_labels, of_whole

NB = bg.NaiveBayesClassifier


def ages(word="?", rows=3000):
    """A table whose ages are text, since one of them is a word; and its classes."""
    rng = np.random.default_rng(52)
    age = rng.integers(18, 90, rows).astype(str).astype(object)
    age[rows // 2] = word
    return pd.DataFrame({"age": age, "x": rng.normal(size=rows)}), np.resize(["a", "b"], rows)


def told(call):
    """Return the texts of the warnings of a call."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in seen]


def notes(tmp_path, columns, **how):
    """Return the table that is read from some columns, classes beside them, and the account of it."""
    frame = pd.DataFrame(columns)
    rows = len(frame)
    frame = frame.assign(z=np.arange(rows) * 7 % 11 + 0.5, y=np.resize(["a", "b"], rows))
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    return bg.read_table(tmp_path / "t.csv", "y", sep=";", **how)


WORD = (
    r"column 'age' holds numbers as text, such as '\d+' \(72 of 73 distinct values\), but for '\?': .*missing='age=\?'"
)


def test_one_word_among_thousands_of_numbers_is_warned_of(tmp_path):
    X, y = ages()
    path = tmp_path / "t.csv"
    X.assign(y=y).to_csv(path, index=False)
    mixed = X.assign(age=[age if age == "?" else int(age) for age in X["age"]])
    calls = {
        "fit": lambda: NB().fit(X, y),
        "objects": lambda: NB().fit(mixed, y),
        "regression": lambda: bg.LinearRegressor().fit(
            X[:200].assign(age=X["age"][1400:1600].to_numpy()), X["x"][:200]
        ),
        "batches of a file": lambda: NB().fit_batches(path, "y"),
        "batches in memory": lambda: NB().fit_batches([X.assign(y=y)], "y"),
    }
    for name, call in calls.items():
        pattern = WORD.replace(r"72 of 73", r"\d+ of \d+") if name == "regression" else WORD
        if name == "batches of a file":  # as a file that is read whole
            pattern = r"column 'age': \['\?'\] in 1 row taken as missing among numbers"
        assert any(re.match(pattern, text) for text in told(call)), (name, told(call))
    _, account = bg.read_table(path, "y")
    assert "age: ['?'] in 1 row taken as missing among numbers; categorical=['age'] keeps them" in str(account)
    assert not told(lambda: NB({"x": "gaussian"}).fit(X.assign(age=pd.Categorical(X["age"])), y))  # it is meant


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_a_word_in_many_rows_is_told_as_one_in_few(tmp_path, share):
    rng = np.random.default_rng(1)
    values = np.where(rng.random(300) < share, "<LOD", rng.lognormal(size=300).round(2).astype(str))
    table, account = notes(tmp_path, {"crp": values})
    assert re.search(r"crp ambiguous: numbers as text, .*but for '<LOD'; missing='crp=<LOD' reads them", str(account))
    assert any("but for '<LOD'" in text for text in told(lambda: NB().fit(table[["crp"]], table["y"])))


def test_several_words_are_all_named_and_no_number_is_said_to_be_a_gap():
    found = of_labels([*map(str, range(40)), "n.d.", "?", "7 8"]).unread
    assert found.words == ("n.d.", "?", "7 8") and found.share == (40, 43)
    assert found.cures("x") == []  # "7 8" may be a number
    found = of_labels([*map(str, range(40)), "n.d.", "?"]).unread
    assert [str(argument) for argument in found.cures("x")[0]] == ["missing='x=n.d.,?'"]
    late = of_labels([*(f"{i}.5" for i in range(1500)), "late"]).unread  # beyond the first thousand values
    assert late.words == ("late",)
    assert of_labels([*map(str, range(5)), "red", "blue", "green"]) is None  # few
    assert of_labels([f"{code:03}" for code in range(60)], 200) is None  # codes


SIGNS = {
    "U+2212": (lambda v: f"{v:.1f}".replace("-", "\u2212"), None),
    "dash": (lambda v: f"{v:.1f}".replace("-", "\u2013"), None),
    "brackets": (lambda v: f"{v:.1f}" if v >= 0 else f"({-v:.1f})", r"price: read as numbers below 0, such as '\("),
    "behind": (lambda v: f"{v:.1f}" if v >= 0 else f"{-v:.1f}-", "price: read as numbers below 0, such as '"),
}


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_a_minus_is_a_minus_however_it_is_written(tmp_path, sign, share):
    rng = np.random.default_rng(2)
    values = rng.normal(0, 20, 300).round(1) * np.where(rng.random(300) < share, 1, np.nan)
    spelled, note = SIGNS[sign]
    table, account = notes(tmp_path, {"price": ["" if np.isnan(v) else spelled(v) for v in values]})
    np.testing.assert_array_equal(table["price"], values)
    assert (note is None and "price" not in str(account)) or re.search(note, str(account))
    new = table.drop(columns="y")
    memory = NB().fit(new, table["y"])
    batches = bg.NaiveBayesClassifier()
    batches_told = told(lambda: batches.fit_batches(bg_source(tmp_path), "y"))
    np.testing.assert_allclose(memory.predict_proba(new), batches.predict_proba(new), rtol=1e-9)
    assert note is None or any("price" in text and "below 0" in text for text in batches_told)


def bg_source(tmp_path):
    """Return the path of the table, with commas between its fields."""
    pd.read_csv(tmp_path / "t.csv", sep=";", dtype=str).to_csv(tmp_path / "commas.csv", index=False)
    return tmp_path / "commas.csv"


def test_prices_without_a_fraction_have_no_minus(tmp_path):
    for way in ("{}.-", "{},-", "{}.\u2013"):
        table, _ = notes(tmp_path, {"price": [way.format(i % 23) for i in range(60)]}, decimal=",")
        assert "price" not in table or table["price"].dtype.kind != "f"


UNITS = ["${}", "{} kg", "EUR {}", "{}\u00b0C", "{} mg/l"]


@pytest.mark.parametrize("unit", UNITS)
def test_numbers_with_a_unit_are_told(tmp_path, unit):
    values = np.random.default_rng(3).lognormal(size=300).round(1)
    table = pd.DataFrame({"price": [unit.format(v) for v in values], "y": np.resize(["u", "v"], 300)})
    assert any("take the unit away" in text for text in told(lambda: NB().fit(table[["price"]], table["y"])))
    found, account = notes(tmp_path, {"price": table["price"]})
    assert re.search("price: the unit dropped, as in '.*'", str(account))
    np.testing.assert_array_equal(found["price"], values)


def test_codes_and_seats_have_no_unit():
    for codes in (
        [f"A{i}" for i in range(60)],
        [f"{i}{seat}" for i in range(30) for seat in "ABCDEF"],
        ["5 mg", "10 mg"],
    ):
        assert of_labels(codes, 3000) is None


def test_figure_spaces_between_thousands(tmp_path):
    values = np.random.default_rng(4).integers(1000, 9_000_000, 60)
    columns = {"price": [f"{v:,}".replace(",", "\u2007") for v in values]}
    _, account = notes(tmp_path, columns, decimal=".")
    assert "thousands=' ' reads them" in str(account)
    for how in ({"thousands": " "}, {}):
        table, _ = notes(tmp_path, columns, **how)
        np.testing.assert_array_equal(table["price"], values)


# -- row numbers, and names of people


def test_a_row_number_that_is_no_longer_in_order_is_left_out_and_told(tmp_path):
    data = bg.data.load("penguins").sample(frac=0.7, random_state=1)
    data.to_csv(tmp_path / "train.csv")  # pandas' index, under no name
    table, account = bg.read_table(tmp_path / "train.csv", "species")
    assert "Unnamed: 0" not in table and "Unnamed: 0' left out: a row number" in str(account)
    _, account = notes(tmp_path, {"id": np.random.default_rng(0).permutation(60) + 1.0})  # as 1.0, 2.0, ...
    assert "id left out: a row number" in str(account)
    frame = pd.read_csv(tmp_path / "train.csv")
    X, y = frame.drop(columns="species"), frame["species"]
    assert any("'Unnamed: 0' seems to number the rows" in text for text in told(lambda: NB().fit(X, y)))
    for name in ("id", "index", "Index"):
        assert of_whole(X["Unnamed: 0"].to_numpy(), name=name).kind == "counts"
    assert of_whole(X["Unnamed: 0"].to_numpy(), name="x").kind == "counts"
    assert of_whole(np.arange(40) % 13, name="id") is None


ROW_NUMBERS = ("X", "rownames", "Nr", "No.", "case", "obs", "record", "pidnum", "specimen")


@pytest.mark.parametrize("first", [0, 1])
def test_row_numbers_of_any_name_are_left_out_and_told(tmp_path, first):
    rng = np.random.default_rng(3)
    columns = {name: rng.permutation(60) + first for name in ROW_NUMBERS}
    table, account = notes(tmp_path, columns)
    assert [*table] == ["z", "y"]
    (note,) = (note for note in account.notes if "left out: a row number" in note)
    assert "number= keeps it" in note
    table, account = notes(tmp_path, columns, number=ROW_NUMBERS)
    assert [*table] == [*ROW_NUMBERS, "z", "y"] and not account.notes
    (text,) = told(lambda: NB().fit(pd.DataFrame({"X": columns["X"]}), np.resize(["a", "b"], 60)))
    assert "column 'X' seems to number the rows" in text


def test_years_ranks_ages_prices_and_temperatures_stay(tmp_path):
    rng = np.random.default_rng(4)
    doubtful = {"year": np.arange(1980, 2040), "rank": rng.permutation(np.arange(3, 103))[:60]}  # 60 of 100 ranked
    doubtful["place"] = np.r_[1:60, 59]  # two share one, as two visits of a person would
    plain = {
        "age": rng.integers(18, 90, 60),
        "price": rng.choice(np.arange(10, 9000), 60, replace=False),
        "temperature": rng.integers(-9, 30, 60),
    }
    table, account = notes(tmp_path, doubtful | plain)
    assert [*table] == [*doubtful, *plain, "z", "y"]
    numbered, people = account.notes
    assert numbered.startswith("year, rank ambiguous: no whole number twice")
    assert people.startswith("place ambiguous: 59 distinct whole numbers in 60 rows, which may name people")


def test_numbers_of_people_are_named_as_doubtful(tmp_path):
    rng = np.random.default_rng(5)
    people = rng.choice(np.arange(60_000, 14_000_000), 645, replace=False)
    values = np.concatenate([people, rng.choice(people, 54)])
    for name in ("id", "patient_id", "Sample code number"):
        skewed = np.where(name == "Sample code number", 1000 * np.exp(values / 1.5e6), values).astype(int)
        _, account = notes(tmp_path, {name: skewed})
        assert "--group" in str(account) or "groups=" in str(account), str(account)
    frame = pd.DataFrame({"patient_id": values, "z": rng.normal(size=699)})
    (text,) = told(lambda: NB().fit(frame, np.resize(["a", "b"], 699)))
    assert "'patient_id' seems to name people or things, by 645 distinct whole numbers in 699 rows: groups=" in text


# -- codes


def test_a_code_is_one_category_however_a_program_writes_it():
    assert sorted_levels({"1", "1.0", "01", 2, "2", "x"}) == (2, "01", "1", "x")
    assert twins(("1", "01", "7"), [1, 1.0, "1.0", "007", "+1", "1e0", "7.00"]) == {1: 0.0, "1.0": 0.0, "7.00": 2.0}
    assert twins((1, 2), ["1", "2.0", "01", True]) == {"1": 0.0, "2.0": 1.0}
    y = np.resize(["a", "b", "b"], 60)
    codes = np.resize([1, 2, 3, 3, 1], 60)
    floats = codes.astype(float)
    forms = [codes, floats, codes.astype(str), floats.astype(str), codes.astype(object), pd.array(codes, "Int64")]
    expected = None
    for fit in forms:
        classifier = NB({"c": "categorical"}, unseen="error").fit(pd.DataFrame({"c": fit}), y)
        for new in forms:
            found = classifier.predict_proba(pd.DataFrame({"c": new}))
            expected = found if expected is None else expected
            np.testing.assert_array_equal(found, expected)
    both = NB(unseen="error").fit(pd.DataFrame({"c": np.resize(["1", "01", "b"], 60)}), y)
    assert both.model_.leaves["c"].categories == ("01", "1", "b")
    refuses(lambda: both.predict(pd.DataFrame({"c": ["001"]})), "'001' in row 0 is not one of")


@pytest.mark.parametrize(("sep", "decimal"), [(",", "."), (";", ",")])
def test_codes_with_a_gap_are_found_again_in_a_file(tmp_path, sep, decimal):
    codes = np.resize([1, 2, 3, 3, 1, 2, 2], 84)
    frame = pd.DataFrame({"c": codes, "x": np.arange(84) % 11 + 0.5, "y": np.where(codes == 1, "a", "b")})
    frame.to_csv(tmp_path / "t.csv", index=False, sep=sep, decimal=decimal)
    how = ("--sep", sep, "--decimal", decimal)
    fitted(tmp_path, tmp_path / "t.csv", "--target", "y", "--model", "nb", "--categorical", "c", *how)
    frame.drop(columns="y").to_csv(tmp_path / "whole.csv", index=False, sep=sep, decimal=decimal)
    gap = frame.drop(columns="y").assign(c=frame["c"].where(np.arange(84) != 80))
    gap.to_csv(tmp_path / "gap.csv", index=False, sep=sep, decimal=decimal)
    assert f"1{decimal}0" in (tmp_path / "gap.csv").read_text()
    _, whole = predicted(tmp_path, tmp_path / "whole.csv", *how)
    out, with_gap = predicted(tmp_path, tmp_path / "gap.csv", *how)
    pd.testing.assert_frame_equal(whole[:80], with_gap[:80])
    assert "taken as missing" not in out


# -- labels and categories that are one to a reader


def test_texts_that_look_alike_are_named_and_counted(tmp_path):
    y = np.resize(["yes", "yes ", "no"], 60)
    c = np.resize(["Z\u00fcrich", "Zu\u0308rich", "Bern", "B\u00e2le\u00a0Ville", "b\u00e2le ville"], 60)
    frame = pd.DataFrame({"c": c, "z": np.arange(60) % 7 + 0.5, "y": y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    table, account = bg.read_table(tmp_path / "t.csv", "y")
    texts = told(lambda: NB().fit(table.drop(columns="y"), table["y"]))
    for found in (str(account), " ".join(texts)):
        assert re.search("'yes' in 20 rows and 'yes ' in 20 rows differ only by blanks, case", found)
        assert "'Zu\\u0308rich' in 12 rows" in found and "b\u00e2le ville' in 12 rows" in found
    assert any("column 'c'" in text for text in told(lambda: NB().fit_batches(tmp_path / "t.csv", "y")))
    assert any("'yes' and 'yes '" in text for text in told(lambda: NB().fit_batches(tmp_path / "t.csv", "y")))
    assert not told(lambda: NB().fit(frame[["z"]], np.resize(["yes", "no"], 60)))


# -- first lines


@pytest.mark.parametrize("first", ["sep=;\n", "sep=;\r\n", '"sep=;"\n', "\ufeffsep=;\n", "SEP=;\n"])
@pytest.mark.parametrize("columns", [1, 3])
def test_a_first_line_that_tells_the_separator_is_read(tmp_path, first, columns):
    frame = pd.DataFrame({name: np.arange(20) * k % 7 + 0.5 for k, name in enumerate("abc"[:columns], 2)})
    text = frame.assign(y=np.resize(["u", "v"], 20)).to_csv(index=False, sep=";")
    (tmp_path / "t.csv").write_bytes((first + text).encode())
    table, _ = bg.read_table(tmp_path / "t.csv", "y")
    pd.testing.assert_frame_equal(table.drop(columns="y"), frame)
    classifier = NB().fit_batches(tmp_path / "t.csv", "y")
    assert classifier.total_weight_ == 20
    assert sum(map(len, classifier.predict_batches(tmp_path / "t.csv"))) == 20


def test_a_line_that_may_be_a_header_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("exported; by us\na;b;y\n" + "1;2;u\n3;4;v\n" * 10)
    words = "line 2 has 3 fields, where the header has 2: exported, ' by us'"
    refuses(lambda: bg.read_table(tmp_path / "t.csv", "y", sep=";"), words)


def test_a_column_that_new_rows_lack_is_named(tmp_path):
    X = pd.DataFrame({"a": np.arange(20.0) % 7, "weight": np.arange(20.0) % 3})
    classifier = NB().fit(X, np.resize(["p", "q"], 20))
    X[["a"]].to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(ValueError, match=r"new.csv: lacks the columns \['weight'\]; it has \['a'\]"):
        list(classifier.predict_batches(tmp_path / "new.csv"))


# -- wide tables


@pytest.mark.compiles
def test_a_wide_table_is_never_copied_for_a_column(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    makers = [
        lambda: rng.normal(size=40).round(3).astype(str),
        lambda: rng.integers(-50, 50, 40).astype(str),
        lambda: np.where(rng.random(40) < 0.5, "1.0", "2"),
        lambda: np.full(40, "3.50"),  # constant: left out
        lambda: np.full(40, "7"),
        lambda: np.where(rng.random(40) < 0.1, "", rng.normal(size=40).round(2).astype(str)),
        lambda: np.where(rng.random(40) < 0.1, "NA", rng.normal(size=40).round(2).astype(str)),
        lambda: rng.choice(["01", "1", "x"], 40),
        lambda: rng.choice(["1.5", "+2", "1e-3", "-0.25", ".5", "5.", "0x1"], 40),
        lambda: rng.choice(["1.5", "inf", "-2.0"], 40),
        lambda: rng.choice(["1", "2", "12345678901234567890", "123456789012345678901"], 40),
        lambda: rng.choice(["True", "false"], 40),
        lambda: rng.choice(["1.5 ", " 2.25"], 40),
        lambda: np.exp(rng.normal(size=40) * 3).round(2).astype(str),
    ]
    frame = pd.DataFrame({f"x{i}": makers[i % len(makers)]() for i in range(30 * len(makers))})
    frame.assign(y=np.resize(["a", "b"], 40)).to_csv(tmp_path / "t.csv", index=False)
    copied, drop = [], pd.DataFrame.drop
    monkeypatch.setattr(pd.DataFrame, "drop", lambda *a, **k: (copied.append(0), drop(*a, **k))[1])
    wide, told_of_wide = bg.read_table(tmp_path / "t.csv", "y")
    assert "left out: constant" in str(told_of_wide) and len(copied) < 5
    (account,) = wide.attrs.values()
    assert copy.deepcopy(account) is account  # else each column that is taken out would copy what is known of all


def test_large_numbers_that_lie_close_together_are_read_in_silence(tmp_path):
    path = tmp_path / "accounts.csv"
    pd.DataFrame(
        {"account": 4 * 10**15 + np.random.default_rng(0).integers(0, 15, 200), "t": np.arange(200) % 2}
    ).to_csv(path, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        bg.read_table(path)
