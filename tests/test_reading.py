"""What was decided when a table was first read is kept with the fit, and everything later is read by it."""

import datetime
import warnings
from types import SimpleNamespace

import fuzz_offices
import numpy as np
import pandas as pd
import pytest
from commands import fitted, predicted, run
from refusals import refuses

import bayesgen as bg
from bayesgen.models import BetaBernoulli, DirichletCategorical, MarkovChain, PooledGroups
from bayesgen.sheets.files import read
from bayesgen.tables.reading import Reading
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import Table

pytestmark = pytest.mark.usefixtures("few_members")

NB = bg.NaiveBayesClassifier
WHEN = NB({"when": "date"})
ROWS = 60


def german(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def office(rows=ROWS, seed=0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table with plain numbers, and with its numbers as a German office writes them."""
    rng = np.random.default_rng(seed)
    rich = np.arange(rows) % 2 == 1
    plain = pd.DataFrame(
        {
            "income": np.where(rich, 46_458, 9_120) + rng.integers(-900, 900, rows),
            "size": (rng.normal(2, 0.5, rows) + rich).round(2),
            "rate": (rng.uniform(10, 90, rows) + 5 * rich).round(1),
            "when": pd.to_datetime(19_500 + rng.integers(0, 300, rows) + 200 * rich, unit="D"),
            "kind": np.where(rich, "rich", "poor"),
        }
    )
    written = plain.assign(
        income=[german(v, 0) for v in plain["income"]],
        size=[german(v, 2) for v in plain["size"]],
        rate=[german(v, 1) + "%" for v in plain["rate"]],
        when=plain["when"].dt.strftime("%d.%m.%Y"),
    )
    return plain, written


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    office()[1].to_csv("de.csv", sep=";", index=False)
    office(20, 1)[1].to_csv("new.csv", sep=";", index=False)
    return tmp_path


GERMAN = ["--sep", ";", "--decimal", ",", "--thousands", "."]
SAID = ["--target", "kind", "--model", "nb", "--date", "when"]
COLUMNS = ["income", "size", "rate", "when"]


def want(classifier, plain):
    days = (plain["when"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return classifier.predict_proba(plain[COLUMNS].assign(when=days))


def test_a_later_file_is_read_as_that_of_the_fit(folder):
    """Without an option: thousands with points, percent, commas, dates; by every command, at once and in batches."""
    _, classifier = fitted(folder, "de.csv", *SAID, *GERMAN)
    plain, _ = office(20, 1)
    out, got = predicted(folder, "new.csv")
    np.testing.assert_allclose(got.filter(like="p_"), want(classifier, plain), rtol=1e-9)
    assert "%" not in out and "ambiguous" not in out
    saved = folder / "deep" / "er" / "m.safetensors"
    assert "46" in run(saved, "new.csv", "--row", "1", command="explain")[1]
    assert run(saved, "new.csv", "--target", "kind", "--of", "confusion", command="plot")[0] == 0
    batches = pd.concat(classifier.predict_batches("new.csv", progress=False))
    np.testing.assert_allclose(batches.filter(like="p_"), want(classifier, plain), rtol=1e-9)
    plain.to_parquet("new.parquet")
    out, got = predicted(folder, "new.parquet")
    np.testing.assert_allclose(got.filter(like="p_"), want(classifier, plain), rtol=1e-9)
    assert "Parquet, whose columns" not in out
    assert run(saved, "new.csv", "--target", "kind", "--output", "more.safetensors", command="update")[0] == 0
    both = pd.concat([office()[1], office(20, 1)[1]])
    both.to_csv("both.csv", sep=";", index=False)
    whole = fitted(folder, "both.csv", *SAID, *GERMAN)[1]
    np.testing.assert_allclose(want(bg.load("more.safetensors"), plain), want(whole, plain), rtol=1e-9)


def test_what_read_table_knows_reaches_the_file_of_the_fit(folder):
    table, account = bg.read_table("de.csv", "kind", date="when", sep=";", decimal=",", thousands=".")
    X = table.drop(columns="kind")
    NB(account.features).fit(X, table["kind"]).save("m.safetensors")
    classifier = bg.load("m.safetensors")
    assert classifier.schema_.reading == Reading(
        ";", ",", ".", percent=("rate",), fractions={"income": False, "size": True, "rate": True},
        dates={"when": "%d.%m.%Y"}, days=("when",),
    )  # fmt: skip
    batches = pd.concat(classifier.predict_batches("new.csv", progress=False))
    np.testing.assert_allclose(batches.filter(like="p_"), want(classifier, office(20, 1)[0]), rtol=1e-9)
    code, _, err = run("m.safetensors", "new.csv", "--output", "p.csv", command="predict")
    assert (code, err) == (0, "")
    again = NB({"when": "date"}).fit_batches("new.csv", "kind", schema=classifier.schema_, progress=False)
    X = office(20, 1)[0]
    own = NB({"when": "date"}).fit(X[COLUMNS], X["kind"])
    np.testing.assert_allclose(want(again, X), own.predict_proba(X[COLUMNS]), rtol=1e-9)


def test_read_table_reads_later_files_as_that_of_the_fit(folder):
    table, account = bg.read_table("de.csv", "kind", date="when", sep=";", decimal=",", thousands=".")
    classifier = NB(account.features).fit(table[COLUMNS], table["kind"])
    later, told = bg.read_table("new.csv", like=classifier)
    plain, written = office(20, 1)
    np.testing.assert_allclose(classifier.predict_proba(later), want(classifier, plain), rtol=1e-9)
    assert told.notes == () and list(later) == list(table[COLUMNS]) and told.rows.tolist() == list(range(20))
    plain.assign(rate=plain["rate"].astype(str) + "%").to_csv("plain.csv", index=False)
    for options in ({"decimal": "."}, {"sep": ",", "decimal": ".", "thousands": ""}):
        later, told = bg.read_table("plain.csv", "kind", like=classifier, id="kind", **options)
        np.testing.assert_allclose(classifier.predict_proba(later[COLUMNS]), want(classifier, plain), rtol=1e-9)
        assert later["kind"].tolist() == told.ids["kind"].tolist() == plain["kind"].tolist()
    written.assign(rate=written["rate"].str.strip("%")).to_csv("bare.csv", sep=";", index=False)
    with pytest.raises(
        ValueError, match=r"column 'rate': '.*' in row 0 has no percent sign, which the numbers of the fit"
    ):
        bg.read_table("bare.csv", like=classifier)
    refuses(lambda: bg.read_table("new.csv", like=classifier, drop="rate"), "drop= is of a fit")
    bare, _ = bg.read_table("bare.csv", date="when", drop="kind", sep=";", decimal=",", thousands=".")
    with pytest.raises(
        ValueError, match="column 'rate': the fit had percent signs, and this table has no; write all in"
    ):
        classifier.predict_proba(bare[list(later[COLUMNS])])


CONTRADICTIONS = {  # a column of the later file: written how; and the words of the refusal
    "no percent": ("rate", lambda v: german(v / 100, 4), "column 'rate': '0,.*' in row 0 has no percent sign"),
    "percent": ("size", lambda v: f"{german(v, 2)}%", "column 'size': '.*%' in row 0 has a percent sign"),
    "another sign": ("size", lambda v: f"{v:,.2f} kg", "column 'size'"),
    "a date": ("income", lambda v: "2024-01-31", "column 'income': '2024-01-31' in row 0 is no number"),
    "True": ("income", lambda v: "True", "column 'income': 'True' in row 0 is no number"),
    "a serial number": ("when", lambda v: "45321", "column 'when' is to hold dates, and '45321' in row 0 is none"),
    "two digits": ("when", lambda v: f"{v:%d.%m.%y}", "'..\\...\\...' in row 0 has a year of two digits"),
    "months first": ("when", lambda v: f"{v:%m.%d.%Y}", "column 'when': '.*' in row .* does not begin with the day"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_later_file_that_contradicts_the_fit_is_refused(folder, case):
    fitted(folder, "de.csv", *SAID, *GERMAN)
    column, write, words = CONTRADICTIONS[case]
    plain, written = office(20, 1)
    written[column] = list(map(write, plain[column]))
    written.to_csv("other.csv", sep=";", index=False)
    code, _, err = run(folder / "deep" / "er" / "m.safetensors", "other.csv", "--output", "p.csv", command="predict")
    assert code == 2
    assert pd.Series([err]).str.contains(words).all(), err
    classifier = bg.load(folder / "deep" / "er" / "m.safetensors")
    refuses(lambda: list(classifier.predict_batches("other.csv", progress=False)), f"column '{column}'")


def test_points_that_may_be_of_thousands_or_of_fractions(folder):
    """A fit of plain whole numbers; a later file writes 46.458: refused, until an option says what it is."""
    plain, _ = office()
    plain.drop(columns="when").to_csv("us.csv", index=False)
    _, classifier = fitted(folder, "us.csv", "--target", "kind", "--model", "nb")
    later = office(20, 1)[0].drop(columns=["when", "kind"])
    later.assign(income=[german(v, 0) for v in later["income"]]).to_csv("points.csv", index=False)
    model = folder / "deep" / "er" / "m.safetensors"
    code, _, err = run(model, "points.csv", command="predict")
    assert code == 2 and "column 'income': " in err and "seems a fraction, and the fit had whole numbers: give" in err
    assert '--thousands "." for thousands, --decimal "." for a fraction' in err
    refuses(lambda: list(classifier.predict_batches("points.csv", progress=False)), "seems a fraction")
    later.assign(income=[german(v, 0) for v in later["income"]], size=[german(v, 2) for v in later["size"]],
                 rate=[german(v, 1) for v in later["rate"]]).to_csv("all.csv", index=False)  # fmt: skip
    _, got = predicted(folder, "all.csv", "--thousands", ".")
    np.testing.assert_allclose(got.filter(like="p_"), classifier.predict_proba(later), rtol=1e-9)


def test_thousands_where_the_fit_had_fractions_are_told(folder):
    table = pd.DataFrame({"x": ["1.234,5", "0,7", "3,25", "2.000,0"] * 10, "kind": ["a", "b"] * 20})
    table.to_csv("fit.csv", sep=";", index=False)
    fitted(folder, "fit.csv", "--target", "kind", "--model", "nb", *GERMAN)
    pd.DataFrame({"x": ["1.234", "2.500"]}).to_csv("new2.csv", sep=";", index=False)
    out, _ = predicted(folder, "new2.csv")
    assert "x ambiguous: '1.234' was read as thousands, and the fit had fractions there" in out
    pd.DataFrame({"x": ["1.234", "2,5"]}).to_csv("new3.csv", sep=";", index=False)
    assert "ambiguous" not in predicted(folder, "new3.csv")[0]


def test_notes_of_the_reader_are_printed_by_every_command(folder):
    plain, _ = office()
    classifier = NB().fit(plain[["income", "size", "rate"]], plain["kind"])
    classifier.save("m.safetensors")
    new = office(20, 1)[0].drop(columns="when")
    new.assign(rate=new["rate"].astype(str) + "%").to_csv("percent.csv", index=False)
    for command, more in (("predict", ["--output", "p.csv"]), ("explain", []), ("update", ["--target", "kind"]),
                          ("plot", ["--of", "confusion", "--target", "kind"])):  # fmt: skip
        code, out, _ = run("m.safetensors", "percent.csv", *more, command=command)
        assert code == 0 and "rate: % dropped, as in" in out, command


def test_percent_signs_in_some_rows_alone_are_refused(folder):
    table = pd.DataFrame({"rate": ["5%", "0%", "0", "", "0.05", "7%"] * 5, "kind": ["a", "b"] * 15})
    table.to_csv("mixed.csv", index=False)
    words = "column 'rate': '0.05' in row 4 has no percent sign, and '5%' has one"
    refuses(lambda: bg.read_table("mixed.csv", "kind"), words)
    refuses(lambda: NB().fit_batches("mixed.csv", "kind", progress=False), words)
    bg.read_table("mixed.csv", drop="kind", categorical="rate")
    table.assign(rate=table["rate"].replace("0.05", "0.0")).to_csv("zero.csv", index=False)
    assert bg.read_table("zero.csv", "kind")[0]["rate"].max() == 7


def test_a_limit_below_zero_is_taken_itself(folder):
    pd.DataFrame({"x": ["<-1.5", "<0.5", "2", ">-3"], "z": [1, 2, 3, 4]}).to_csv("limits.csv", index=False)
    found = read("limits.csv", reading=Reading(limits=True))
    assert found.table["x"].tolist() == [-1.5, 0.25, 2.0, -3.0]
    assert any("below a limit > 0 as half of it" in note for note in found.notes)


# -- dates

TWO_WAYS = [
    ["13/05/2024", "05/13/2024", "03/04/2024"],
    ["13.9.2016", "9.14.2016", "10.8.2016"],
    ["2024-01-31", "31.01.2024", "2024-02-01"],
    ["13/05/2024", "13.05.2024", "14/05/2024"],
]


@pytest.mark.parametrize("dates", TWO_WAYS, ids=lambda dates: dates[0])
def test_dates_that_contradict_each_other_are_refused_with_both_rows(folder, dates):
    frame = pd.DataFrame({"when": dates * 4, "x": np.arange(12) % 5 * 1.5})
    y = ["a", "b"] * 6
    words = f"writes dates in two ways: '{dates[0]}' in row 0 and '{dates[1]}' in row 1"
    refuses(lambda: WHEN.fit(frame, y), "column 'when' " + words)
    refuses(lambda: bg.compare_models(frame[["x"]], y, order=frame["when"].to_numpy()), "column 'order' " + words)
    frame.assign(kind=y).to_csv("dates.csv", index=False)
    refuses(lambda: bg.read_table("dates.csv", "kind", date="when"), "column 'when' " + words)
    code, _, err = run("dates.csv", "--target", "kind", "--model", "nb", "--date", "when", command="fit")
    assert code == 2 and words in err


def days_of(dates) -> list[float]:
    """The days of a column of dates, as a fit and its predictions know them."""
    frame = pd.DataFrame({"when": dates})
    return WHEN.fit(frame, np.resize(["a", "b"], len(frame))).schema_.read(Table(frame))["date"].ravel().tolist()


def test_one_date_tells_the_order_of_all(folder):
    may = [(datetime.date(2024, 5, day) - datetime.date(1970, 1, 1)).days for day in (13, 4)]
    assert days_of(["13/05/2024", "04/05/2024"] * 3) == may * 3
    assert days_of(["05/13/2024", "05/04/2024"] * 3) == may * 3
    assert days_of(["5.13.2024", "5.4.2024"] * 3) == may * 3
    assert days_of(["13.5.2024", "4.5.2024"] * 3) == may * 3
    assert days_of(["13-05-2024 12:00", "04-05-2024"] * 3) == [may[0] + 0.5, may[1]] * 3


@pytest.mark.filterwarnings("ignore:columns .* are constant")
def test_every_year_of_the_calendar_is_a_date():
    dates = ["0001-01-01", "1676-03-01", "1900-02-28", "2024-02-29", "9999-12-31"]
    truth = [datetime.date.fromisoformat(date).toordinal() - datetime.date(1970, 1, 1).toordinal() for date in dates]
    assert days_of(dates) == truth
    assert days_of([datetime.date.fromisoformat(date) for date in dates]) == truth
    assert days_of(np.array(dates, dtype="datetime64[s]")) == truth
    aware = datetime.datetime(2024, 1, 31, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    assert days_of([aware, "2024-01-31T01:00:00+01:00", "2024-01-31 00:00Z"]) == [19753.0] * 3
    for wrong in ("2023-02-29", "0000-01-01", "2024-13-01", "2024-01-31 25:00", "31.12.24", "31/12/24"):
        with pytest.raises(
            ValueError, match=f"column 'when' is to hold dates, and '{wrong}' in row 1 .*; write dates as"
        ):
            days_of(["2024-01-01", wrong])
    with pytest.raises(ValueError, match="in row 1 is none of the calendar, which has the years 1 to 9999"):
        days_of(np.array(["2024-01-01", "12024-01-01"], dtype="datetime64[s]"))


@pytest.mark.parametrize("way", ["memory", "batches", "partial"])
def test_the_order_of_the_dates_is_kept_by_the_fit(folder, way):
    dates, kinds = ["13/1/2016", "25/2/2016", "10/8/2016", "28/9/2016"], ["a", "a", "b", "b"]
    fit = pd.DataFrame({"when": dates * 3, "kind": kinds * 3})
    fit.to_csv("fit.csv", index=False)
    if way == "memory":
        classifier = WHEN.fit(fit[["when"]], fit["kind"])
    elif way == "batches":
        classifier = NB({"when": "date"}).fit_batches("fit.csv", "kind", progress=False)
    else:
        classifier = NB({"when": "date"}).partial_fit(fit[["when"]], fit["kind"], classes=["a", "b"])
    assert classifier.schema_.reading.dates == {"when": "%d/%m/%Y"}
    january = classifier.predict_proba(pd.DataFrame({"when": ["2016-01-05"]}))
    for same in ("5/1/2016", pd.Timestamp("2016-01-05"), "05.01.2016"):
        np.testing.assert_array_equal(classifier.predict_proba(pd.DataFrame({"when": [same]})), january)
    for question in (classifier.predict_proba, lambda X: classifier.explain(X, 1)):
        with pytest.raises(ValueError, match="column 'when': '5/14/2016' in row 1 does not begin with the day, as"):
            question(pd.DataFrame({"when": ["5/1/2016", "5/14/2016"]}))
    assert classifier.explain(pd.DataFrame({"when": ["5/1/2016"]}), 0).values["when"] == "2016-01-05"
    with pytest.raises(ValueError, match=r"45321\.0 in row 0 is a number, where the fit had dates"):
        classifier.predict_proba(pd.DataFrame({"when": [45321]}))
    refuses(lambda: classifier.partial_fit(pd.DataFrame({"when": ["5/14/2016"]}), ["a"]), "does not begin with the day")
    with pytest.raises(ValueError, match="nothing tells whether dates such as 5-1-2016"):
        classifier.predict_proba(pd.DataFrame({"when": ["5-1-2016"]}))


def test_two_files_of_two_orders_are_not_summed_together(folder):
    (folder / "parts").mkdir()
    for name, dates in (("a", ["13/1/2016", "2/3/2016"]), ("b", ["1/13/2016", "2/3/2016"])):
        pd.DataFrame({"when": dates * 5, "kind": ["a", "b"] * 5}).to_csv(f"parts/{name}.csv", index=False)
    with pytest.raises(ValueError, match="column 'when' writes dates in two ways, first as %d/%m/%Y and then as %m/%d"):
        NB({"when": "date"}).fit_batches("parts", "kind", progress=False)
    pd.DataFrame({"when": ["3/4/2016", "2/3/2016"] * 5, "kind": ["a", "b"] * 5}).to_csv("parts/b.csv", index=False)
    found = NB({"when": "date"}).fit_batches("parts", "kind", progress=False)  # the one file tells for the other
    assert found.schema_.reading.dates == {"when": "%d/%m/%Y"}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.compiles) for seed in (1, 2, 3))])
def test_tables_in_the_styles_of_offices(folder, seed):
    """A few of the seeds of `fuzz_offices`: in the style of the fit all are right, and in another none is wrong."""
    found = fuzz_offices.one(seed, folder)
    assert list(found) == fuzz_offices.WAYS
    assert [result for result, _ in found.values()][:2] == ["right", "right"], found
    assert "wrong" not in [result for result, _ in found.values()], found


@pytest.mark.slow
def test_many_tables_in_the_styles_of_offices(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz_offices, "TABLE", tmp_path / "offices.csv")
    assert not fuzz_offices.main(100)
    counts = pd.read_csv(tmp_path / "offices.csv", index_col=0)
    assert (counts.loc[fuzz_offices.WAYS[:2], "right"] == 100).all()
    assert counts.loc[fuzz_offices.WAYS[2], "right"] >= 50


def test_numbers_below_zero_in_brackets_are_told_once(folder):
    table = pd.DataFrame({"x": ["(7.5)", "3.5", "2.25", "(1.5)"] * 5, "kind": ["a", "b"] * 10})
    table.to_csv("fit.csv", index=False)
    out, classifier = fitted(folder, "fit.csv", "--target", "kind", "--model", "nb")
    assert "x: read as numbers below 0" in out and classifier.schema_.reading.minus == ("x",)
    table[["x"]].to_csv("later.csv", index=False)
    assert "below 0" not in predicted(folder, "later.csv")[0]
    plain = NB().fit(pd.DataFrame({"x": [-7.5, 3.5, 2.25, -1.5] * 5}), table["kind"])
    with pytest.warns(UserWarning, match="column 'x': read as a number below 0"):
        NB().fit_batches("fit.csv", "kind", progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = pd.concat(classifier.predict_batches("later.csv", progress=False)).filter(like="p_")
    want = plain.predict_proba(pd.DataFrame({"x": [-7.5, 3.5, 2.25, -1.5] * 5}))
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_sequences_bits_and_groups_are_read_from_files(folder):
    """Each leaf says how its columns stand in a file: what is read from there is what the table in memory holds."""
    rng, n = np.random.default_rng(0), 40
    table = pd.DataFrame(
        {
            "dna": ["".join(rng.choice(list("ACGT"), 6)) for _ in range(n)],
            "ill": rng.random(n) < 0.5,
            "kind": ["red", "blue"] * (n // 2),
            "patient": [f"p{i % 5}" for i in range(n)],
        }
    )
    table.to_csv("later.csv", index=False)
    features = {
        "dna": MarkovChain("ACGT"),
        ("ill", "patient"): PooledGroups(BetaBernoulli(1.0, 1.0)),
        ("kind", "patient"): PooledGroups(DirichletCategorical(1.0, ["red", "blue"])),
    }
    schema = Schema.learn(Table(table), features)
    found, _ = bg.read_table("later.csv", like=SimpleNamespace(schema_=schema))
    want, got = schema.read(Table(table)), schema.read(Table(found))
    for name, rows in want.items():
        np.testing.assert_array_equal(got[name], rows)
    pd.testing.assert_frame_equal(pd.DataFrame(schema.write(want)), table, check_dtype=False)
    chain = NB({"dna": features["dna"]}).fit(table[["dna"]], rng.permutation(["a", "b"] * (n // 2)))
    (folder / "deep" / "er").mkdir(parents=True)
    chain.save(folder / "deep" / "er" / "m.safetensors")
    want = chain.predict_proba(table[["dna"]])
    for got in (predicted(folder, "later.csv")[1], pd.concat(chain.predict_batches("later.csv", progress=False))):
        np.testing.assert_allclose(got.filter(like="p_"), want, rtol=1e-9)
