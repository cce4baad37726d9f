"""Columns of a file, as read or as options declare them: labels, numbers, dates, gaps, decimal commas."""

import ast
import io
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from commands import fitted, predicted, run, table
from matplotlib.figure import Figure

import bayesgen as bg
from bayesgen import plot
from bayesgen.sheets import files

pytestmark = pytest.mark.usefixtures("few_members")  # commands do to the average of all what they do to this one

LABELS = {
    "padded": ["01", "1", "01", "1"],
    "beyond 2^53": [str(2**53), str(2**53 + 1)] * 2,
    "words of gaps": ["None", "NA", "nan", "null"],
    "numbers of two spellings": ["1.0", "1", "1.0", "1"],
    "bools": ["True", "true", "False", "True"],
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_and_categories_are_the_text_that_stands_there(tmp_path, kind):
    labels = LABELS[kind]
    rows = "\n".join(f"{label},{x * x},{'word' if x > 10 else label}" for x, label in enumerate(labels * 3))
    out, classifier = fitted(tmp_path, table(tmp_path, f"t,x,c\n{rows}\n"), "--target", "t")
    assert classifier.classes_.tolist() == sorted(set(labels))
    categories = {c: b.categories for b in classifier.schema_.blocks if b.categories for c in b.columns}
    one = kind == "numbers of two spellings"  # codes 1 and 1.0 are one category; of classes both stay
    assert set(categories["c"]) == {*(["1"] if one else labels), "word"}
    assert "left out:" not in out and "missing value" not in out
    if kind == "words of gaps":
        assert "t ambiguous: ['NA', 'None', 'nan', 'null'] in 12 rows, taken as text like any other" in out
    if kind in ("padded", "numbers of two spellings"):
        assert f"t ambiguous: {sorted(set(labels))} stand for one value, taken as classes apart" in out
    _, got = predicted(tmp_path, table(tmp_path, "c,x\n" + "\n".join(f"{label},3" for label in labels), "new.csv"))
    frame = pd.DataFrame({"x": 3.0, "c": labels})[["x", "c"]]
    np.testing.assert_allclose(got.filter(like="p_"), classifier.predict_proba(frame), rtol=1e-12)


def test_gaps_are_counted_by_their_spelling(tmp_path):
    text = "x,c,t\n1,u,a\nNA,,b\n2.5,v,\nnull,NA,a\n,u,b\nNaN,?,?\n4,v,a\n-999,u,b\n7,v,b\n"
    out, classifier = fitted(tmp_path, table(tmp_path, text), "--target", "t", "--missing", "?,-999")
    assert "9 rows, 3 columns; 7 rows used" in out
    assert "2 rows left out: no t (1 empty, 1 '?')" in out
    assert "5 missing values integrated out (2 empty, 1 'NA', 1 'null', 1 '-999')" in out
    assert "c ambiguous: ['NA'] in 1 row, taken as text like any other; --missing \"NA\" makes it missing" in out
    (block,) = [b for b in classifier.schema_.blocks if b.categories]
    assert block.categories == ("NA", "u", "v")
    new = table(tmp_path, "x,c\n-999,?\n,\nNA,NA\n", "new.csv")
    out, got = predicted(tmp_path, new)  # `fit` wrote down what --missing said
    assert "5 missing values: 2 empty, 1 '-999', 1 'NA', 1 '?'" in out
    assert got.iloc[0, 1:].tolist() == got.iloc[1, 1:].tolist() != got.iloc[2, 1:].tolist()
    out, got = predicted(tmp_path, new, "--missing", "NA")
    assert "6 missing values" in out and got.iloc[0, 1:].tolist() == got.iloc[2, 1:].tolist()


def test_prediction_reads_numbers_as_numbers_whatever_else_the_file_holds(tmp_path):
    _, classifier = fitted(tmp_path, table(tmp_path, "x,y,t\n1,3,a\n2,5,a\n4,6,b\n5,9,b\n"), "--target", "t")
    _, got = predicted(tmp_path, table(tmp_path, "y,x\n,007\nNA,\n", "new.csv"))
    want = classifier.predict_proba(pd.DataFrame({"x": [7.0, np.nan], "y": [np.nan, np.nan]}))
    np.testing.assert_allclose(got.filter(like="p_"), want, rtol=1e-12)


def test_a_long_file_is_read_to_the_last_digit(tmp_path):
    """pandas reads it in pieces, and floats fast: one in some thousand is a digit off."""
    x = np.random.default_rng(0).normal(size=100_000) * 10.0 ** np.arange(-50, 50).repeat(1000)
    frame = pd.DataFrame({"x": x, "n": np.arange(100_000) - 7, "t": ["01", "1"] * 50_000})
    frame.to_csv(tmp_path / "long.csv", index=False)
    got = files.read(str(tmp_path / "long.csv"), kinds={"t": "label"}).table
    np.testing.assert_array_equal(got["x"], x)
    np.testing.assert_array_equal(got["n"], frame["n"])
    assert got["t"].tolist() == frame["t"].tolist()


def test_a_blank_line_of_a_single_column_is_a_row(tmp_path):
    fitted(tmp_path, table(tmp_path, "x,t\n1,a\n2,a\n4,b\n5,b\n6,b\n"), "--target", "t")
    _, got = predicted(tmp_path, table(tmp_path, "x\n1\n\n5\n", "new.csv"))
    assert got["class"].tolist() == ["a", "b", "b"]


def test_declared_categories_of_parquet_stay(tmp_path):
    n = 24
    frame = pd.DataFrame(
        {
            "word": pd.Categorical(["u", "v"] * 12, categories=["w", "v", "u"]),
            "code": pd.Categorical([1, 2, None] * 8, categories=[1, 2]),
            "wide": pd.Categorical([2**53, 2**53 + 1, None] * 8, categories=[2**53, 2**53 + 1, 9]),
            "name": pd.Categorical([f"k{i}" for i in range(n)]),
            "number": pd.array([None, *(k * k % 17 for k in range(n - 1))], dtype="Int64"),
            "kind": [1, 2, 3, 4] * 6,
            "t": ["NA", "None"] * 12,
        }
    )
    frame.to_parquet(tmp_path / "table.parquet")
    out, classifier = fitted(tmp_path, tmp_path / "table.parquet", "--target", "t", "--categorical", "kind")
    categories = {c: b.categories for b in classifier.schema_.blocks if b.categories for c in b.columns}
    assert categories["word"] == ("w", "v", "u")
    assert set(categories["name"]) == {f"k{i}" for i in range(n)}
    assert categories["code"] == (1, 2) and categories["kind"] == (1, 2, 3, 4)
    assert categories["wide"] == (2**53, 2**53 + 1)
    assert "wide: 1 declared level not in the file" in out
    assert classifier.classes_.tolist() == ["NA", "None"]
    frame = frame.drop(columns="t")
    frame.to_csv(tmp_path / "new.csv", index=False)
    for file in ("new.csv", "table.parquet"):
        _, got = predicted(tmp_path, tmp_path / file)
        np.testing.assert_allclose(got.filter(like="p_"), classifier.predict_proba(frame), rtol=1e-12)


def test_numbers_that_are_categories(tmp_path):
    rows = "zone,x,t\n" + "\n".join(f"{i % 3:02},{i * i},{'ab'[i % 2]}" for i in range(20))
    out, classifier = fitted(tmp_path, table(tmp_path, rows), "--target", "t")
    assert {b.name: b.categories for b in classifier.schema_.blocks}["zone"] == ("00", "01", "02")
    assert "zone ambiguous: numbers written as text" in out
    rows = "zone,x,t\n" + "\n".join(f"{i % 3},{i * i},{'ab'[i % 2]}" for i in range(20))
    _, classifier = fitted(tmp_path, table(tmp_path, rows), "--target", "t", "--categorical", "zone")
    blocks = classifier.schema_.blocks
    assert {c: b.categories for b in blocks for c in b.columns} == {"zone": ("0", "1", "2"), "x": None}


OWN = """patient;row;seen;born;income;smoker;visits;zone;result
""" + "\n".join(
    f"P{i:03};{i};{1 + i % 28}.{1 + i % 12}.2024;{1950 + i % 40}-01-11;{2.0 ** (i % 12):.1f};{i % 2};{i % 5};{i % 3};"
    f"{'good' if i % 3 else 'bad'}"
    for i in range(60)
)


def test_all_columns_of_0_and_1_are_named_in_an_option_that_can_be_given(tmp_path):
    rng = np.random.default_rng(0)
    names = [*(f"d{i}" for i in range(9)), "chest pain", "it's"]
    for more in ([], ["heart, left"]):  # a name with a comma needs an option of its own
        columns = [*names, *more]
        data = pd.DataFrame({name: rng.integers(0, 2, 40) for name in columns}).assign(t=["a", "b"] * 20)
        data.to_csv(tmp_path / "t.csv", index=False)
        arguments = tmp_path / "t.csv", "--target", "t", "--model", "nb"
        said, _ = fitted(tmp_path, *arguments)
        option = re.search(r"taken as numbers: (.+?) has them as True and False", said)
        assert option and "more" not in option[0]
        _, model = fitted(tmp_path, *arguments, *shlex.split(option[1]))
        assert set(model.schema_.bools) == set(columns)
        told = re.search(r"bernoulli=(.+) has them as", str(bg.read_table(tmp_path / "t.csv", "t")[1]))
        assert told
        X, account = bg.read_table(tmp_path / "t.csv", "t", bernoulli=ast.literal_eval(told[1]))
        assert {kind.kind for kind in X[columns].dtypes} == {"b"} and not account.notes


def test_own_data_said_by_options(tmp_path):
    """A table as offices write it: semicolons, names of rows, local dates, skewed sums, codes."""
    file = table(tmp_path, OWN)
    assert "whose name holds ';': give --sep \";\"" in run(file, "--target", "result", "--sep", ",", command="fit")[2]
    out, _ = fitted(tmp_path, file, "--target", "result", "--sep", ";", "--model", "nb")
    assert "patient left out: an identifier" in out and "row left out: a row number" in out
    assert "seen, born left out: dates; --date makes numbers of them" in out
    assert "income skewed, mostly small with few large values: --log takes the logarithm" in out
    said = ["--id", "patient", "--drop", "row", "--date", "born,seen", "--log", "income", "--count", "visits"]
    said += ["--categorical", "zone", "--bernoulli", "smoker", "--target", "result", "--model", "nb"]
    out, classifier = fitted(tmp_path, file, *said, "--sep", ";")
    assert "left out" not in out and "ambiguous" not in out and "skewed" not in out
    families = {column: block.leaf for block in classifier.schema_.blocks for column in block.columns}
    leaves = {"log", "poisson", "gaussian", "bernoulli"}
    assert {families.pop("zone").categories, *families.values()} == leaves | {("0", "1", "2")}
    new = table(tmp_path, OWN.replace("good", "").replace("bad", "").replace(";", ","), "new.csv")
    _, got = predicted(tmp_path, new, "--id", "patient")
    assert got["patient"].tolist()[:2] == ["P000", "P001"] and got.columns[1] == "patient"
    born = float((pd.Timestamp("1950-01-11") - pd.Timestamp(0)).days)
    rows = pd.DataFrame(
        {"seen": [19723.0], "born": [born], "income": [1.0], "smoker": [0], "visits": [0], "zone": ["0"]}
    )
    np.testing.assert_allclose(got.filter(like="p_").iloc[:1], classifier.predict_proba(rows), rtol=1e-9)


@pytest.mark.compiles
@pytest.mark.parametrize("model", ["nb", "gda"])
def test_dates_are_told_as_dates(tmp_path, model):
    """A --date column is a number of days to the model, and a date to whoever reads the answer."""
    rng = np.random.default_rng(0)
    days = np.concatenate([rng.normal(19000, 40, 30), rng.normal(19300, 40, 30)]).round()
    seen = pd.to_datetime(days, unit="D").strftime("%Y-%m-%d")
    rows = pd.DataFrame({"seen": seen, "dose": rng.normal(size=60), "kind": np.repeat(["old", "new"], 30)})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    said = ["--target", "kind", "--date", "seen", "--model", model]
    out, classifier = fitted(tmp_path, tmp_path / "rows.csv", *said)
    assert "date: seen" in out and classifier.schema_.dates == ("seen",)
    saved = tmp_path / "deep" / "er" / "m.safetensors"
    code, out, err = run(saved, tmp_path / "rows.csv", "--json", command="explain")
    assert (code, err) == (0, "") and json.loads(out)["columns"]["seen"]["value"] == seen[0]
    assert f"seen {seen[0]} " in run(saved, tmp_path / "rows.csv", command="explain")[1]
    mean = pd.to_datetime(days[:30].mean().round(), unit="D").strftime("%Y-%m-%d")
    assert f"{mean} ± " in repr(classifier.summary()) and " days" in repr(classifier.summary())
    picture = ["--of", "decision_regions", "--columns", "seen,dose", "--target", "kind", "--output", tmp_path / "a.svg"]
    assert run(saved, tmp_path / "rows.csv", *picture, command="plot")[::2] == (0, "")
    assert "<!-- 2022" in (tmp_path / "a.svg").read_text()  # a label of the axis

    # In batches, in a table, and by naive Bayes told in Python, the same dates give the same probabilities.
    _, got = predicted(tmp_path, tmp_path / "rows.csv")
    run(saved, tmp_path / "rows.csv", "--output", tmp_path / "p.parquet", command="predict")
    p = pd.read_parquet(tmp_path / "p.parquet")
    np.testing.assert_allclose(p.filter(like="p_"), got.filter(like="p_"), rtol=1e-9)
    np.testing.assert_allclose(classifier.predict_proba(rows[["seen", "dose"]]), got.filter(like="p_"), rtol=1e-9)
    if model == "nb":
        own = bg.NaiveBayesClassifier({"seen": "date"}).fit(rows[["seen", "dose"]], rows["kind"])
        np.testing.assert_allclose(own.predict_proba(rows[["seen", "dose"]]), got.filter(like="p_"), rtol=1e-9)
        assert own.explain(rows[["seen", "dose"]], row=5).values["seen"] == seen[5]
        ax = plot.column(own, "seen", ax=Figure().subplots())
        moments = rows[["seen", "dose"]].assign(seen=pd.to_datetime(rows["seen"]))
        by_text, by_moment = (
            plot.decision_regions(own, X, rows["kind"], ax=Figure().subplots()).collections[-1].get_offsets()
            for X in (rows[["seen", "dose"]], moments)
        )
        np.testing.assert_array_equal(by_text, by_moment)
        ax.figure.savefig(io.BytesIO())
        assert any("2022" in label.get_text() for label in ax.get_xticklabels())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--count income", "value 0.5 in row 0 is not a count"),
        ("--bernoulli visits", "column 'visits' is to hold 0 and 1, and holds 2"),
        ("--log place", "column 'place' is to hold numbers, and holds 'u'"),
        ("--date when", "column 'when': nothing tells whether dates such as 03/04/2024 begin with the day or with"),
        ("--date place", "column 'place' is to hold dates, and 'u' in row 0 is none; write dates as 2024-01-31"),
        ("--drop place --id place", "--id: the column 'place' is named by --drop already"),
    ],
)
def test_roles_that_do_not_fit_are_refused(tmp_path, arguments, words):
    rows = "\n".join(f"{i + 0.5},{i % 3},u,03/04/2024,{'ab'[i % 2]}" for i in range(12))
    file = table(tmp_path, f"income,visits,place,when,t\n{rows}\n")
    given = ("--target", "t", "--model", "nb", "--output", tmp_path / "m.safetensors", *arguments.split())
    code, _, err = run(file, *given, command="fit")
    assert code == 2 and words in err


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A folder with one table in the ways of offices: semicolons, decimal commas, CRLF and a byte order mark; tabs."""
    folder, rng = tmp_path_factory.mktemp("office"), np.random.default_rng(0)
    late = rng.random(60) < 0.4
    table = pd.DataFrame({"Grösse": rng.normal(10 + 3 * late, 1).round(2), "Art": rng.choice(["a", "1,5"], 60)})
    table["spät"] = np.where(late, "ja", "nein")
    table.loc[::9, "Grösse"] = np.nan
    text = table.to_csv(index=False, sep=";", decimal=",", lineterminator="\r\n")
    (folder / "office.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (folder / "old.csv").write_bytes(text.encode("latin-1"))
    table.to_csv(folder / "tabs.tsv", index=False, sep="\t")
    return folder


def test_decimal_commas_are_read_where_they_are_said(office, tmp_path, monkeypatch):
    monkeypatch.chdir(office)
    given = ("office.csv", "--target", "spät", "--sep", ";")
    code, out, err = run(*given, "--decimal", ".", "--output", tmp_path / "a.safetensors", command="fit")
    assert code == 0 and "Grösse left out: numbers as text, such as '11,83'; --decimal \",\" reads them" in out
    code, out, err = run(*given, "--decimal", ",", "--output", tmp_path / "b.safetensors", command="fit")
    assert code == 0 and "gaussian: Grösse" in out and "categorical: Art (1,5, a)" in out.replace("'", "")
    assert "7 missing values integrated out (7 empty)" in out
    tabs = ("tabs.tsv", "--sep", "tab", "--output", tmp_path / "p.csv")
    found = []
    for rows in (tabs, ("office.csv", "--sep", ";", "--decimal", ",", "--output", tmp_path / "p.csv")):
        assert run(tmp_path / "b.safetensors", *rows, command="predict")[0] == 0
        found.append(pd.read_csv(tmp_path / "p.csv")["p_ja"])
    assert (found[0] == found[1]).all()
    code, _, err = run(tmp_path / "b.safetensors", "office.csv", "--decimal", ".", command="predict")
    assert code == 2 and "column 'Grösse' holds numbers as text, such as '11,83'; --decimal \",\" reads them" in err
    assert run(tmp_path / "b.safetensors", "office.csv", "--output", tmp_path / "p.csv", command="predict")[0] == 0
    assert (pd.read_csv(tmp_path / "p.csv")["p_ja"] == found[0]).all()  # as the fit was told


@pytest.mark.parametrize(
    "given, message",
    [
        ("office.csv --sep ,", "whose name holds ';': give --sep \";\""),
        ("tabs.tsv --sep ,", "give --sep tab"),
        ("old.csv --sep ;", "its text is not UTF-8 (byte 2), but perhaps that of an older Windows"),
        ("office.csv --sep ; --decimal x", "stands a point or a comma, not 'x'"),
    ],
)
def test_how_else_a_file_is_written(office, monkeypatch, given, message):
    monkeypatch.chdir(office)
    code, _, err = run(*given.split(), "--target", "spät", command="fit")
    assert code == 2 and message in err


def test_decimal_commas_of_a_data_frame_are_told(office):
    table = pd.read_csv(office / "office.csv", sep=";")
    with pytest.warns(
        UserWarning,
        match=r"'Grösse' holds numbers as text, such as '.*': bayesgen.read_table\(path, decimal=','\) reads",
    ):
        bg.NaiveBayesClassifier().fit(table[["Grösse", "Art"]], table["spät"])
