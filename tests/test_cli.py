import base64
import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from pyarrow import parquet as pq
from test_comparison import mixed
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen import data, plot
from bayesgen.cli import app
from bayesgen.comparison import candidates, compare
from bayesgen.comparison.candidates import CANDIDATES
from bayesgen.tables import files


def run(*arguments, command="compare"):
    """Exit code, and standard output and error with runs of blanks made one."""
    result = CliRunner().invoke(app, [command, *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output
    return result.exit_code, " ".join(result.stdout.split()), " ".join(result.stderr.split())


def test_compare_prints_a_table_and_writes_its_files(tmp_path):
    table = data.load("penguins").iloc[::3]
    table.to_csv(tmp_path / "few.csv", index=False)
    folder = tmp_path / "deep" / "report"
    arguments = ("--target", "species", "--model", "nb", "--inference", "ml,map,exact", "--folds", 4)
    code, out, err = run(tmp_path / "few.csv", *arguments, "--output", folder)
    assert (code, err) == (0, "")
    assert f"few.csv: {len(table)} rows, 8 columns; {len(table)} rows used" in out
    assert "species, 3 classes: Adelie 51, Chinstrap 23, Gentoo 41" in out
    assert "categorical: island (Biscoe, Dream, Torgersen), sex (female, male)" in out
    assert "gaussian: bill_length_mm, bill_depth_mm, flipper_length_mm, body_mass_g, year" in out
    assert "year ambiguous: few distinct whole numbers" in out
    for word in ("ml 4 of 4", "map 4 of 4", "exact 4 of 4", "accuracy", "loss", "Brier", "calib.", "seconds"):
        assert word in out
    for file in ("calibration.png", "probabilities.png"):
        assert (folder / file).read_bytes().startswith(b"\x89PNG")

    predictions = pd.read_csv(folder / "predictions.csv")
    assert predictions["row"].tolist() == list(range(len(table)))
    assert set(predictions["fold"]) == {1, 2, 3, 4}
    assert predictions["truth"].tolist() == table["species"].tolist()
    p = predictions[[f"exact_p_{label}" for label in ("Adelie", "Chinstrap", "Gentoo")]].to_numpy()
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-14)
    labels = np.array(["Adelie", "Chinstrap", "Gentoo"])
    assert (predictions["exact_class"] == labels[p.argmax(1)]).all()

    with xr.open_datatree(folder / "posterior.nc", engine="h5netcdf") as tree:
        mean = tree["posterior"]["gaussian.mean"]
        assert mean.dims == ("chain", "draw", "class", "feature")
        assert mean.sizes["chain"] == 4
        assert mean["class"].values.tolist() == labels.tolist()
        assert mean["feature"].values.tolist()[-1] == "year"


def test_all_models_stand_below_the_inferences_and_in_the_files(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    table = data.load("penguins").iloc[::6]
    table.to_csv(tmp_path / "few.csv", index=False)
    arguments = ["few.csv", "--target", "species", "--inference", "exact", "--folds", "2", "--output", "report"]
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["compare", *arguments])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    first = [line.split("  ")[0].strip() for line in lines]
    assert first.index("exact") < min(first.index(name) for name in CANDIDATES)
    assert "Written to report: report.html, calibration.png, probabilities.png, models.png, columns.png" in lines[-1]
    assert max(map(len, lines[:-1])) <= 80
    assert "shared, full: numbers only, island, sex left out" in lines
    assert (tmp_path / "report" / "models.png").read_bytes().startswith(b"\x89PNG")
    predictions = pd.read_csv(tmp_path / "report" / "predictions.csv")
    names = [f"{name.replace(' ', '_')}_p_Gentoo" for name in CANDIDATES]
    assert set(names) <= set(predictions.columns)
    np.testing.assert_allclose(predictions["naive_Bayes_p_Gentoo"], predictions["exact_p_Gentoo"], rtol=1e-12)
    # without the models, a picture of an earlier run goes
    assert CliRunner().invoke(app, ["compare", *arguments, "--model", "nb"]).exit_code == 0
    assert not (tmp_path / "report" / "models.png").exists()


class Page(HTMLParser):
    """The text of a page, its tags, and the attributes of its pictures."""

    def __init__(self, path):
        super().__init__()
        self.words, self.tags, self.images = [], [], []
        self.feed(path.read_text(encoding="utf-8"))
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))

    def handle_data(self, data):
        if "style" not in self.tags[-1:]:
            self.words.append(data)


@pytest.fixture
def quick(monkeypatch):
    """The candidates without the one that takes seconds."""
    monkeypatch.setattr(candidates, "CANDIDATES", {n: c for n, c in CANDIDATES.items() if n != "averaged"})


def test_the_page_tells_all_and_needs_nothing_else(tmp_path, quick):
    folder = tmp_path / "deep" / "report"
    table = data.load("penguins").iloc[::6]
    table.to_csv(tmp_path / "few birds.csv", index=False)
    given = (tmp_path / "few birds.csv", "--target", "species", "--inference", "ml,exact", "--folds", "2")
    code, out, _ = run(*given, "--drop", "year", "--drop", "sex", "--output", folder)
    assert code == 0 and "Written to" in out and "report.html, calibration.png" in out
    page = Page(folder / "report.html")
    assert f"few birds.csv: {len(table)} rows, 8 columns; {len(table)} rows used" in page.text
    assert "categorical: island (Biscoe, Dream, Torgersen)" in page.text
    for heading in ("In short", "The data", "Models", "Inferences", "Calibration", "What matters", "To repeat it"):
        assert heading in page.text
    for name in (*candidates.CANDIDATES, "ml", "exact"):
        assert name in page.words
    assert f"bayesgen compare '{given[0]}' --target species --inference ml,exact --folds 2" in page.text
    assert "--drop year --drop sex" in page.text
    assert "numpyro 0." in page.text and "Python 3." in page.text
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "http:" not in text and "https:" not in text
    # the pictures are those of the folder, and their texts tell what is seen
    names = ("models", "probabilities", "calibration", "columns")
    for name, image in zip(names, page.images, strict=True):
        inside = base64.b64decode(image["src"].removeprefix("data:image/png;base64,"))
        assert inside == (folder / f"{name}.png").read_bytes()
        assert len(image["alt"]) > 60
    assert "calibration errors" in page.images[2]["alt"] and "bill_length_mm" in page.images[3]["alt"]


def test_the_page_escapes_what_a_file_holds(tmp_path):
    bad = "<script>alert(1)</script>"
    rows = pd.DataFrame({bad: ["<b>", "&amp;"] * 8, "x": range(16), '"><img src=x>': [bad, "b"] * 8})
    rows.to_csv(tmp_path / "odd.csv", index=False)
    given = ("--target", '"><img src=x>', "--model", "nb", "--inference", "exact", "--folds", 2)
    code, *_ = run(tmp_path / "odd.csv", *given, "--output", tmp_path)
    assert code == 0
    page = Page(tmp_path / "report.html")
    assert "script" not in page.tags and "b" not in page.tags[: page.tags.index("img")]
    assert bad in page.text and "&amp;" in page.text
    assert [set(image) for image in page.images] == [{"src", "alt"}] * len(page.images)


def test_how_to_cite_is_what_the_repository_says():
    from bayesgen.report.page import _citation

    stated = (Path(__file__).parent.parent / "CITATION.cff").read_text()
    said = _citation()
    for field in ("title", "version", "name"):
        value = re.search(rf'^[ -]*{field}: "?([^"\n]+)"?$', stated, re.M)[1]
        assert value in said


def test_json_is_the_whole_of_standard_output(tmp_path, quick):
    table = data.load("penguins").iloc[::6]
    table.to_csv(tmp_path / "few.csv", index=False)
    given = ["compare", str(tmp_path / "few.csv"), "--target", "species", "--folds", "2", "--inference", "ml,exact"]
    result = CliRunner().invoke(app, [*given, "--json", "--output", str(tmp_path / "report")])
    assert result.exit_code == 0
    assert "Written to" in result.stderr
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    whole = bg.compare_models(table.drop(columns="species"), table["species"], folds=2)
    assert found["best"] == whole.best
    for name, row in found["models"].items():
        assert row["log_loss"] == pytest.approx(whole.table.loc[name, "log_loss"])
    assert found["inferences"]["exact"]["log_loss"] == pytest.approx(found["models"]["naive Bayes"]["log_loss"])
    assert found["data"]["classes"] == table["species"].value_counts().to_dict()
    assert set(found["importance"]) == set(table.columns) - {"species"}
    assert found["command"].startswith("bayesgen compare ")


def test_a_table_of_80_columns_is_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(
        app, ["compare", "anes96", "--target", "vote", "--model", "nb", "--inference", "ml,exact"]
    )
    assert "…" not in result.stdout
    assert max(map(len, result.stdout.splitlines()[5:])) <= 80
    assert "0 551, 1 393" in result.stdout


def test_ml_that_fails_in_a_fold_is_told_and_the_rest_goes_on(tmp_path):
    mixed().to_parquet(tmp_path / "mixed.parquet")
    code, out, _ = run(
        tmp_path / "mixed.parquet", "--target", "t", "--model", "nb", "--inference", "ml,exact", "--output", tmp_path
    )
    assert code == 0
    assert "ml 4 of 5" in out
    assert "exact 5 of 5" in out
    assert "class 'a', column 'x': maximum likelihood does not exist" in out
    assert "The scores of ml are means over the rows of the other folds only" in out
    assert "bernoulli: flag" in out
    assert "name left out: an identifier" in out
    assert pd.read_csv(tmp_path / "predictions.csv")["ml_class"].isna().sum() == 12


def test_gda_takes_the_numbers_and_says_what_it_leaves_out(tmp_path):
    code, out, _ = run(
        "penguins", "--target", "species", "--model", "gda", "--inference", "exact", "--folds", 2, "--output", tmp_path
    )
    assert code == 0
    assert "344 rows, 8 columns; 342 rows used" in out
    assert "gaussian: bill_length_mm, bill_depth_mm, flipper_length_mm, body_mass_g, year" in out
    assert "island, sex left out: not numbers" in out
    assert "2 rows left out: gda compares on rows without gaps" in out
    assert (tmp_path / "posterior.nc").exists()


def test_few_rows_of_a_class_make_fewer_folds():
    code, out, _ = run("penguins", "--target", "island", "--model", "nb", "--inference", "ml", "--folds", 60)
    assert code == 0
    assert "52 folds, not 60: the smallest class has no more rows" in out


def test_a_file_wins_over_a_built_in_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mixed().to_csv("penguins", index=False)
    code, out, _ = run("penguins", "--target", "t", "--model", "nb", "--inference", "exact", "--folds", 2)
    assert code == 0
    assert "penguins: 60 rows" in out


def test_classes_and_names_of_any_kind(tmp_path):
    table = mixed().rename(columns={"colour": "[bold]a/b", "z": "größe"})
    table.to_csv(tmp_path / "odd.csv", index=False)
    code, out, err = run(
        tmp_path / "odd.csv", "--target", "flag", "--inference", "exact", "--folds", 2, "--output", tmp_path
    )
    assert (code, err) == (0, "")
    assert "False" in out
    assert "[bold]a/b" in out


FILES = {
    "empty.csv": "",
    "header.csv": "x,t\n",
    "one.csv": "x,t\n0.5,a\n1.5,a\n2.5,\n",
    "unlabelled.csv": "x,t\n0.5,\n1.5,\n",
    "few.csv": "x,t\n0.5,a\n1.5,b\n2.5,b\n",
    "real.csv": "x,t\n0.5,0.1\n1.5,0.2\n2.5,0.4\n",
    "constant.csv": "x,t\n1,a\n1,b\n1,a\n1,b\n",
    "infinite.csv": "x,t\ninf,a\n1.5,b\n2.5,a\n3.5,b\n",
    "ragged.csv": "x,t\n1,a\n1,a,b\n",
    "junk.parquet": "not Parquet",
    "good.csv": "x,t\n0.5,a\n1.5,b\n2.0,a\n3.5,b\n",
}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            "nowhere.csv --target t",
            "nowhere.csv: no such file, nor a built-in data set; built in are: anes96, penguins",
        ),
        ("pinguins --target t", "pinguins: no such file, nor a built-in data set; built in are: anes96, penguins"),
        (". --target t", "not readable as CSV"),
        ("empty.csv --target t", "empty.csv: the file is empty"),
        ("header.csv --target t", "columns, but no rows"),
        ("one.csv --target t", "one class only, a, in the 2 rows"),
        ("unlabelled.csv --target t", "no row is left: all lack t"),
        ("few.csv --target t", "too few rows: class a has 1, and every class needs at least 2"),
        ("real.csv --target t", "t holds 3 distinct real numbers, not classes"),
        ("constant.csv --target t", "no column is left to learn from; x left out: constant"),
        ("infinite.csv --target t", "column 'x': value inf in row 0 is infinite"),
        ("ragged.csv --target t", "ragged.csv: not readable as CSV"),
        ("junk.parquet --target t", "junk.parquet: not readable as Parquet"),
        ("good.csv --target y", "no column 'y'; there are: x, t"),
        ("good.csv --target t --model lda", "--model must be one of all, nb, gda; got 'lda'"),
        ("good.csv --target t --inference ml,vb", "no inference 'vb'; there are: exact, laplace, map, ml, nuts"),
        ("good.csv --target t --folds 1", "folds must be an integer >= 2, got 1"),
        ("good.csv --target t --output empty.csv", "empty.csv: it is a file, not a folder"),
        ("good.csv --target t --model gda --inference ml", "nothing could be learned in any fold"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    result = CliRunner().invoke(app, ["compare", *arguments.split()])
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


# -- fit and predict


@pytest.mark.parametrize("model", ["nb", "gda"])
def test_fit_and_predict(tmp_path, model):
    table = data.load("penguins").iloc[::3]
    table.to_csv(tmp_path / "few.csv", index=False)
    saved, written = tmp_path / "model.nc", tmp_path / "predictions.csv"
    code, out, err = run(
        tmp_path / "few.csv", "--target", "species", "--model", model, "--output", saved, command="fit"
    )
    assert (code, err) == (0, "")
    assert "species, 3 classes: Adelie 5" in out and f"Written to {saved}" in out
    classifier = bg.load(saved)
    # columns in another order, one more, none of the target
    table = table.drop(columns="species").assign(extra=1)[::-1]
    table[table.columns[::-1]].to_csv(tmp_path / "new.csv", index=False)
    code, out, err = run(saved, tmp_path / "new.csv", "--output", written, command="predict")
    assert (code, err) == (0, "")
    assert f"{len(table)} rows; written to {written}: row, class, p_Adelie, p_Chinstrap, p_Gentoo" in out
    predictions = pd.read_csv(written)
    columns = list(classifier.feature_names_in_)
    want = classifier.predict_proba(pd.read_csv(tmp_path / "new.csv")[columns])
    np.testing.assert_allclose(predictions.filter(like="p_"), want, rtol=1e-12)
    assert predictions["class"].tolist() == classifier.classes_[want.argmax(1)].tolist()


def test_labels_that_look_like_numbers_stay_text(tmp_path):
    rows = pd.DataFrame({"code": ["1", "2", "x"] * 6, "t": ["a", "b", "b"] * 6})
    rows.to_csv(tmp_path / "train.csv", index=False)
    assert run(tmp_path / "train.csv", "--target", "t", "--output", tmp_path / "m.nc", command="fit")[0] == 0
    (tmp_path / "new.csv").write_text("code,note\n1,p\n,q\n2,r\n")  # pandas alone would read 1.0, NaN, 2.0
    code, _, err = run(tmp_path / "m.nc", tmp_path / "new.csv", "--output", tmp_path / "p.csv", command="predict")
    assert (code, err) == (0, "")
    assert pd.read_csv(tmp_path / "p.csv")["class"].tolist() == ["a", "b", "b"]


def test_an_unseen_category_is_an_error_or_missing(tmp_path):
    mixed().to_csv(tmp_path / "train.csv", index=False)
    assert run(tmp_path / "train.csv", "--target", "t", "--output", tmp_path / "m.nc", command="fit")[0] == 0
    mixed().assign(colour="mauve").to_csv(tmp_path / "new.csv", index=False)
    call = (tmp_path / "m.nc", tmp_path / "new.csv", "--output", tmp_path / "p.csv")
    code, _, err = run(*call, "--unseen", "error", command="predict")
    assert code == 2 and "column 'colour': 'mauve' in row 0 is not one of the categories" in err
    assert not (tmp_path / "p.csv").exists()
    code, out, err = run(*call, command="predict")
    assert (code, err) == (0, "")
    assert "60 values taken as missing, of categories that were not there at fit: column 'colour': ['mauve']" in out


def fitted(tmp_path, *arguments):
    """What `fit` prints, and the classifier it saves in a folder that was not there."""
    code, out, err = run(*arguments, "--output", tmp_path / "deep" / "er" / "m.nc", command="fit")
    assert (code, err) == (0, "")
    return out, bg.load(tmp_path / "deep" / "er" / "m.nc")


def predicted(tmp_path, *arguments):
    """What `predict` prints, and its table."""
    file = tmp_path / "deeper" / "p.csv"
    code, out, err = run(tmp_path / "deep" / "er" / "m.nc", *arguments, "--output", file, command="predict")
    assert (code, err) == (0, "")
    return out, pd.read_csv(file, dtype={"class": str}, keep_default_na=False)


def table(tmp_path, text, name="table.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


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
    assert set(categories["c"]) == {*labels, "word"}
    assert "left out" not in out and "missing value" not in out
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
    assert "c ambiguous: ['NA'] in 1 row, taken as text like any other; --missing makes it missing" in out
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
            "number": pd.array([None, *range(n - 1)], dtype="Int64"),
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


@pytest.mark.parametrize("width", [20, 40, 60])
def test_no_terminal_is_too_narrow_for_a_number(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    result = CliRunner().invoke(
        app, ["compare", "anes96", "--target", "vote", "--model", "nb", "--inference", "ml,map,exact"]
    )
    assert "…" not in result.stdout
    below = result.stdout.split("\nml\n")[1]
    assert below.count("accuracy") == 3 and below.count("log loss") == 3 and below.count("5 of 5") == 3
    ready = data.load("anes96")
    want = compare(ready.drop(columns="vote"), ready["vote"], inferences=["exact"]).scores("exact")
    assert f"{want.log_loss:.4f}" in below and f"{want.calibration_error:.4f}" in below


@pytest.mark.slow  # a process of its own that draws every picture
def test_signs_that_the_terminal_lacks_are_escaped(tmp_path):
    mixed().rename(columns={"z": "größe", "t": "классы"}).to_csv(tmp_path / "odd.csv", index=False)
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": "80"}

    def ask(*arguments):
        call = [sys.executable, "-c", "from bayesgen.cli import app; app()", *arguments]
        return subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, check=False)

    result = ask("compare", "odd.csv", "--target", "классы", "--model", "nb", "--inference", "exact")
    assert (result.returncode, result.stderr) == (0, b"")
    assert rb"gr\xf6\xdfe" in result.stdout and b"accuracy" in result.stdout
    for arguments in (["compare", "odd.csv", "--target", "größe?"], ["fit", "--größe"]):
        result = ask(*arguments)
        assert result.returncode == 2 and b"Traceback" not in result.stderr and rb"\xf6" in result.stderr
    environment["COLUMNS"] = "40"
    assert ask("compare", "--help").returncode == 0


def test_names_with_blanks_are_quoted_and_many_are_counted(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 9)), columns=[f"bill {i}" for i in range(9)])
    frame["a kind"] = [f"k{i % 12:02}" for i in range(30)]
    frame["the class"] = ["one bird", "two"] * 15
    frame.to_csv(tmp_path / "table.csv", index=False)
    out, _ = fitted(tmp_path, tmp_path / "table.csv", "--target", "the class")
    assert "'the class', 2 classes: 'one bird' 15, two 15" in out
    assert "gaussian: 'bill 0', 'bill 1', 'bill 2', 'bill 3', 'bill 4', 'bill 5' and 3 more" in out
    assert "'a kind' (k00, k01, k02, k03, k04, k05 and 6 more)" in out


def test_predict_with_a_regression_fitted_in_python(tmp_path):
    X = pd.DataFrame({"u": np.arange(9.0), "v": np.arange(9.0) ** 2})
    line = bg.LinearRegressor().fit(X, X["u"] + np.sin(X["v"]))
    line.save(tmp_path / "line.nc")
    X.to_parquet(tmp_path / "new.parquet")
    code, _, _ = run(tmp_path / "line.nc", tmp_path / "new.parquet", "--output", tmp_path / "p.csv", command="predict")
    mean, sd = line.predict(X, return_std=True)
    predictions = pd.read_csv(tmp_path / "p.csv")
    assert code == 0
    np.testing.assert_allclose(predictions[["prediction", "sd"]], np.column_stack([mean, sd]), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fit nowhere.csv --target t", "nowhere.csv: no such file"),
        ("fit good.csv --target y", "no column 'y'"),
        ("fit good.csv --target t --inference vb", "no inference 'vb'"),
        ("fit one.csv --target t --inference ml", "class 'b', column 'x': maximum likelihood does not exist"),
        ("fit good.csv --target t --output good.csv", "--output good.csv: it is the file that is read, good.csv"),
        ("fit good.csv --target t --output ./sub/../good.csv", "it is the file that is read, good.csv"),
        ("fit good.csv --target t --output link.nc", "--output link.nc: it is the file that is read, good.csv"),
        ("fit link.csv --target t --output good.csv", "--output good.csv: it is the file that is read, link.csv"),
        ("predict model.nc good.csv --output good.csv", "--output good.csv: it is the file that is read"),
        ("predict model.nc good.csv --output model.nc", "--output model.nc: it is the file that is read, model.nc"),
        ("compare link2 --target t --inference exact --output report", "report/predictions.csv: it is the file"),
        ("fit good.csv --target t --output sub", "--output sub: it is a folder, not a file"),
        ("fit good.csv --target t --output good.csv/deep/m.nc", "--output good.csv: it is a file, not a folder"),
        ("fit twice.csv --target t", "twice.csv: the column 'x' is there twice; rename one"),
        ("fit twice.parquet --target t", "twice.parquet: the column 'x' is there twice; rename one"),
        ("fit long.csv --target t", "long.csv: not readable as CSV"),
        ("fit spaces.csv --target t", "no column 't'; there are: 'bill length', 'a,b', 'the class'"),
        ("fit wide.csv --target t", "no column 't'; there are: c0, c1, c2, c3, c4, c5 and 4 more"),
        ("fit good.csv --target t --categorical z", "--categorical: no column 'z'; there are: x"),
        ("predict nowhere.nc good.csv", "nowhere.nc"),
        ("predict good.csv good.csv", "good.csv: not a file that an estimator of bayesgen was saved to"),
        ("predict model.nc nowhere.csv", "nowhere.csv: no such file"),
        ("predict model.nc other.csv", "other.csv: lacks the columns x of the fit; it has z"),
        ("predict model.nc good.csv --unseen drop", "--unseen must be error or missing"),
        ("predict model.nc words.csv", "column 'x' holds 'p', which is not a number"),
    ],
)
def test_what_is_wrong_with_fit_and_predict_is_one_line(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(FILES["good.csv"])
    (tmp_path / "one.csv").write_text("x,t\n1,a\n2,a\n2.5,b\n")
    (tmp_path / "other.csv").write_text("z\n1\n")
    (tmp_path / "words.csv").write_text("x\np\n")
    (tmp_path / "twice.csv").write_text("x,x,t\n1,2,a\n2,3,b\n")
    (tmp_path / "long.csv").write_text("x,t\n1,2,a\n2,3,b\n")  # pandas alone takes the first column for names of rows
    (tmp_path / "spaces.csv").write_text('bill length,"a,b",the class\n1,2,a\n')
    (tmp_path / "wide.csv").write_text(",".join(f"c{i}" for i in range(10)) + "\n")
    pq.write_table(pa.Table.from_arrays([pa.array([1, 2]), pa.array([1, 3])], ["x", "x"]), "twice.parquet")
    for link in ("link.nc", "link.csv"):
        (tmp_path / link).symlink_to("good.csv")
    for folder in ("sub", "report"):
        (tmp_path / folder).mkdir()
    (tmp_path / "report" / "predictions.csv").write_text(FILES["good.csv"])
    (tmp_path / "link2").symlink_to("report/predictions.csv")
    bg.NaiveBayesClassifier().fit(pd.DataFrame({"x": [1.0, 2.0, 4.0]}), [0, 1, 1]).save("model.nc")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    code, _, err = run(*arguments.split()[1:], command=arguments.split()[0])
    assert code == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert err.startswith("Error: ") and words in err
    assert not (tmp_path / "predictions.csv").exists()


OWN = """patient;row;seen;born;income;smoker;visits;zone;result
""" + "\n".join(
    f"P{i:03};{i};{1 + i % 28}.{1 + i % 12}.2024;{1950 + i % 40}-01-11;{2.0 ** (i % 12):.1f};{i % 2};{i % 5};{i % 3};"
    f"{'good' if i % 3 else 'bad'}"
    for i in range(60)
)


def test_own_data_said_by_options(tmp_path):
    """A table as offices write it: semicolons, names of rows, local dates, skewed sums, codes."""
    file = table(tmp_path, OWN)
    assert "whose name holds ';': give --sep ';'" in run(file, "--target", "result", command="fit")[2]
    out, _ = fitted(tmp_path, file, "--target", "result", "--sep", ";")
    assert "patient left out: an identifier" in out and "row left out: a row number" in out
    assert "seen, born left out: dates; --date makes numbers of them" in out
    assert "income skewed, mostly small with few large values: --log takes the logarithm" in out
    said = ["--id", "patient", "--drop", "row", "--date", "born,seen", "--log", "income", "--count", "visits"]
    said += ["--categorical", "zone", "--bernoulli", "smoker", "--target", "result"]
    out, classifier = fitted(tmp_path, file, *said, "--sep", ";")
    assert "left out" not in out and "ambiguous" not in out and "skewed" not in out
    families = {column: block.leaf for block in classifier.schema_.blocks for column in block.columns}
    assert {families.pop("zone").categories, *families.values()} == {
        ("0", "1", "2"),
        "log",
        "poisson",
        "gaussian",
        "bernoulli",
    }
    new = table(tmp_path, OWN.replace("good", "").replace("bad", "").replace(";", ","), "new.csv")
    _, got = predicted(tmp_path, new, "--id", "patient")
    assert got["patient"].tolist()[:2] == ["P000", "P001"] and got.columns[1] == "patient"
    born = float((pd.Timestamp("1950-01-11") - pd.Timestamp(0)).days)
    rows = pd.DataFrame(
        {"seen": [19723.0], "born": [born], "income": [1.0], "smoker": [0], "visits": [0], "zone": ["0"]}
    )
    np.testing.assert_allclose(got.filter(like="p_").iloc[:1], classifier.predict_proba(rows), rtol=1e-9)


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
    saved = tmp_path / "deep" / "er" / "m.nc"
    code, out, err = run(saved, tmp_path / "rows.csv", "--json", command="explain")
    assert (code, err) == (0, "") and json.loads(out)["columns"]["seen"]["value"] == seen[0]
    assert f"seen {seen[0]} " in run(saved, tmp_path / "rows.csv", command="explain")[1]
    mean = pd.to_datetime(days[:30].mean().round(), unit="D").strftime("%Y-%m-%d")
    assert f"{mean} ± " in repr(classifier.summary()) and " days" in repr(classifier.summary())
    picture = ["--of", "regions", "--columns", "seen,dose", "--target", "kind", "--output", tmp_path / "a.svg"]
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
        assert bg.inspection.evidence(own, rows[["seen", "dose"]].iloc[[5]]).values["seen"] == seen[5]
        ax = plot.column(own, "seen", ax=Figure().subplots())
        moments = rows[["seen", "dose"]].assign(seen=pd.to_datetime(rows["seen"]))
        by_text, by_moment = (
            plot.decision_regions(own, X, rows["kind"], draws=0, ax=Figure().subplots()).collections[-1].get_offsets()
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
        ("--date when", "column 'when': nothing tells whether '03/04/2024' begins with the day or with the month"),
        ("--date place", "column 'place' is to hold dates, and 'u' is none; write it as 2024-01-31"),
        ("--drop place --id place", "--id: the column 'place' is named by --drop already"),
    ],
)
def test_roles_that_do_not_fit_are_refused(tmp_path, arguments, words):
    rows = "\n".join(f"{i + 0.5},{i % 3},u,03/04/2024,{'ab'[i % 2]}" for i in range(12))
    file = table(tmp_path, f"income,visits,place,when,t\n{rows}\n")
    code, _, err = run(file, "--target", "t", "--output", tmp_path / "m.nc", *arguments.split(), command="fit")
    assert code == 2 and words in err


def test_update_learns_what_all_rows_together_teach(tmp_path):
    whole = data.load("penguins")
    for name, part in (("first", whole[::2]), ("second", whole[1::2]), ("all", whole)):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
        target = ["--target", "species", "--output", tmp_path / f"{name}.nc"]
        if name != "second":
            assert run(tmp_path / f"{name}.csv", *target, command="fit")[0] == 0
    code, out, err = run(
        tmp_path / "first.nc",
        tmp_path / "second.csv",
        "--target",
        "species",
        "--output",
        tmp_path / "both.nc",
        command="update",
    )
    assert (code, err) == (0, "") and "172 rows more, 344 in all" in out
    X = whole.drop(columns="species")
    both, once = bg.load(tmp_path / "both.nc"), bg.load(tmp_path / "all.nc")
    np.testing.assert_allclose(both.predict_proba(X), once.predict_proba(X), rtol=1e-9)


def test_pipes_and_the_module(tmp_path):
    mixed().to_csv(tmp_path / "train.csv", index=False)
    environment = os.environ | {"NO_COLOR": "1"}

    def ask(*arguments, given=None):
        call = [sys.executable, "-m", "bayesgen", *arguments]
        return subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, check=False, input=given)

    assert ask("--version").stdout.decode().strip() == f"bayesgen {bg.__version__}"
    content = (tmp_path / "train.csv").read_bytes()
    result = ask("fit", "-", "--target", "t", "--output", "m.nc", given=content)
    assert (result.returncode, result.stderr) == (0, b"") and b"the standard input: 60 rows" in result.stdout
    result = ask("predict", "m.nc", "-", "--output", "-", given=content)
    assert result.returncode == 0 and b"\x1b" not in result.stdout + result.stderr
    assert len(pd.read_csv(io.BytesIO(result.stdout))) == 60


def test_help_names_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert all(command in result.stdout for command in ("compare", "fit", "predict"))


CELLS = ["", "a", "b", "1", "2.5", "-3", "nan", "inf", "1e999", "ä", '"', "True", "2020-01-01", "a,b", "0x1f", "  "]
TEXT = st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=5), max_size=8).map(
    lambda rows: "\n".join(["y,a,b,c,d"] + [",".join(row) for row in rows]).encode()
)


@pytest.mark.filterwarnings("ignore")  # a table may have constant columns
@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=200) | TEXT, way=st.sampled_from(["nb", "gda"]))
def test_any_file_is_fitted_or_refused(tmp_path, content, way):
    (tmp_path / "table.csv").write_bytes(content)
    model = tmp_path / "model.nc"
    model.unlink(missing_ok=True)
    code, _, err = run(tmp_path / "table.csv", "--target", "y", "--model", way, "--output", model, command="fit")
    assert (code == 0) == model.exists()
    assert code == 0 or err


# -- plot -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    """A folder with a saved classifier and rows that it did not see."""
    folder, table = tmp_path_factory.mktemp("birds"), data.load("penguins").sample(frac=1, random_state=0)
    y = table["species"][:200]
    bg.NaiveBayesClassifier(random_state=0).fit(table[:200].drop(columns="species"), y).save(folder / "birds.nc")
    table[200:].to_csv(folder / "rows.csv", index=False)
    (folder / "costs.csv").write_text("species,count,leave\nGentoo,5,1\nAdelie,0,1\nChinstrap,1,2\n")
    return folder


@pytest.mark.parametrize(
    "given",
    [
        "--of reliability",
        "--of probabilities",
        "--of confusion",
        "--of confusion --loss costs.csv --reject-cost 0.5",
        "--of importance",
        "--of regions --columns bill_length_mm,body_mass_g",
    ],
)
def test_plot_draws_how_a_classifier_does_on_rows(birds, tmp_path, monkeypatch, given):
    monkeypatch.chdir(birds)
    code, out, err = run(
        "birds.nc", "rows.csv", *given.split(), "--target", "species", "--output", tmp_path / "a.svg", command="plot"
    )
    assert (code, err) == (0, "")
    assert "144 rows; written to" in out and "missing values" in out
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


def test_plot_draws_what_was_learned(birds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(birds / "birds.nc", command="plot")
    assert (code, out, err) == (0, "Written to picture.png", "")
    whole = (tmp_path / "picture.png").read_bytes()
    assert whole.startswith(b"\x89PNG")
    run(birds / "birds.nc", "--columns", "island", command="plot")
    assert (tmp_path / "picture.png").read_bytes() != whole


@pytest.mark.parametrize(
    "given, message",
    [
        ("--of pie", "--of must be one of columns, members, reliability"),
        ("--of members", "averaged classifiers alone have members"),
        ("--of reliability", "--of reliability needs FILE"),
        ("rows.csv", "--of columns takes no FILE"),
        ("rows.csv --of reliability", "needs --target, the column of rows.csv that holds the classes"),
        ("rows.csv --of reliability --target sex", "it holds ['male', 'female']; the classes are ['Adelie'"),
        ("rows.csv --of regions --target species", "name them by --columns"),
        ("--columns bill", "no column 'bill' in the fit; there are: island, bill_length_mm"),
        ("--output birds.nc", "it is the file that is read"),
        ("--output picture.doc", "Format 'doc' is not supported"),
    ],
)
def test_plot_says_what_it_needs(birds, monkeypatch, given, message):
    monkeypatch.chdir(birds)
    code, _, err = run("birds.nc", *given.split(), command="plot")
    assert code == 2 and message in err


# -- files as offices write them --------------------------------------------------------------------------------------


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
    code, out, err = run(*given, "--output", tmp_path / "a.nc", command="fit")
    assert code == 0 and "Grösse left out: numbers with a decimal comma; --decimal ',' reads them" in out
    code, out, err = run(*given, "--decimal", ",", "--output", tmp_path / "b.nc", command="fit")
    assert code == 0 and "gaussian: Grösse" in out and "categorical: Art (1,5, a)" in out.replace("'", "")
    assert "7 missing values integrated out (7 empty)" in out
    tabs = ("tabs.tsv", "--sep", "tab", "--output", tmp_path / "p.csv")
    found = []
    for rows in (tabs, ("office.csv", "--sep", ";", "--decimal", ",", "--output", tmp_path / "p.csv")):
        assert run(tmp_path / "b.nc", *rows, command="predict")[0] == 0
        found.append(pd.read_csv(tmp_path / "p.csv")["p_ja"])
    assert (found[0] == found[1]).all()
    code, _, err = run(tmp_path / "b.nc", "office.csv", "--sep", ";", command="predict")
    assert code == 2 and "column 'Grösse' holds numbers with a decimal comma: give --decimal ','" in err


@pytest.mark.parametrize(
    "given, message",
    [
        ("office.csv", "whose name holds ';': give --sep ';'"),
        ("tabs.tsv", "give --sep tab"),
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
    with pytest.warns(UserWarning, match=r"'Grösse' holds numbers with a decimal comma as text, which pandas.read_csv"):
        bg.NaiveBayesClassifier().fit(table[["Grösse", "Art"]], table["spät"])
