"""`bayesgen fit`, `update` and `predict`."""

import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import fitted, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq
from test_comparison import mixed
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen import data
from bayesgen.cli import app
from bayesgen.comparison import compare

pytestmark = pytest.mark.usefixtures("few_members")  # commands do to the average of all what they do to this one


@pytest.mark.parametrize("model", ["averaged", "nb", "gda", "logistic"])
def test_fit_and_predict(tmp_path, model):
    table = data.load("penguins").iloc[::3]
    table.to_csv(tmp_path / "few.csv", index=False)
    saved, written = tmp_path / "model.safetensors", tmp_path / "predictions.csv"
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
    columns = list(classifier.schema_.columns)
    want = classifier.predict_proba(pd.read_csv(tmp_path / "new.csv")[columns])
    np.testing.assert_allclose(predictions.filter(like="p_"), want, rtol=1e-12)
    assert predictions["class"].tolist() == classifier.classes_[want.argmax(1)].tolist()


@pytest.mark.compiles
def test_what_is_fitted_without_a_word_is_what_compare_puts_first(tmp_path):
    """The averaged classifier, as in Python; then asked in every way."""
    table = data.load("penguins").iloc[::3]
    table.to_csv(tmp_path / "few.csv", index=False)
    saved = tmp_path / "m.safetensors"
    assert run(tmp_path / "few.csv", "--target", "species", "--output", saved, command="fit")[0] == 0
    X = table.drop(columns="species")
    mine = bg.AveragedClassifier().fit(X, table["species"])
    np.testing.assert_allclose(bg.load(saved).predict_proba(X), mine.predict_proba(X), rtol=1e-9)
    code, out, _ = run(saved, tmp_path / "few.csv", "--row", 1, "--json", command="explain")
    assert code == 0 and json.loads(out)["probability"] == pytest.approx(mine.predict_proba(X)[1].max())
    (tmp_path / "costs.csv").write_text("species,count,leave\nGentoo,5,1\nAdelie,0,1\nChinstrap,1,2\n")
    given = (saved, tmp_path / "few.csv", "--loss", tmp_path / "costs.csv", "--output", "-")
    code, out, _ = run(*given, command="predict")
    assert code == 0 and {"count", "leave"} <= set(re.split("[ ,]", out))


def test_logistic_regression_is_explained_and_fills_gaps_with_means(tmp_path):
    table = data.load("penguins").iloc[::3]
    table.to_csv(tmp_path / "few.csv", index=False)
    given = ("--target", "species", "--model", "logistic", "--output", tmp_path / "m.safetensors")
    code, out, err = run(tmp_path / "few.csv", *given, command="fit")
    assert (code, err) == (0, "") and "missing values filled with the means of their columns" in out
    classifier, X = bg.load(tmp_path / "m.safetensors"), table.drop(columns="species")
    code, out, _ = run(tmp_path / "m.safetensors", tmp_path / "few.csv", "--row", 3, "--json", command="explain")
    told = json.loads(out)
    p = classifier.predict_proba(X)[3].max()
    total = told["prior_log_odds"] + sum(own["log_odds"] for own in told["columns"].values())
    assert code == 0 and told["probability"] == pytest.approx(p) and total == pytest.approx(np.log(p / (1 - p)))
    code, out, _ = run(tmp_path / "m.safetensors", tmp_path / "few.csv", "--row", 3, command="explain")
    assert code == 0 and "prior stands for those at the means of all columns" in out
    code, _, err = run(tmp_path / "m.safetensors", "--output", tmp_path / "a.png", command="plot")
    assert code == 2 and "LogisticClassifier learns nothing of how its columns are distributed" in err
    given = ("--of", "confusion", "--target", "species", "--output", tmp_path / "a.png")
    assert run(tmp_path / "m.safetensors", tmp_path / "few.csv", *given, command="plot")[0] == 0
    X["island"] = "Elsewhere"
    X.to_csv(tmp_path / "new.csv", index=False)
    call = (tmp_path / "m.safetensors", tmp_path / "new.csv", "--output", tmp_path / "p.csv")
    code, out, _ = run(*call, command="predict")
    assert code == 0 and "that were not there at fit: column 'island': ['Elsewhere'] in 115 rows" in out
    code, _, err = run(*call, "--unseen", "error", command="predict")
    assert code == 2 and "column 'island': 'Elsewhere' in row 0 is not one of the categories" in err


def test_logistic_regression_keeps_dates_and_words_for_gaps(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=40), "x": rng.normal(size=40).round(2)})
    table = table.assign(x=table["x"].astype(str), kind=rng.choice(["u", "v"], 40), y=rng.choice(["a", "b"], 40))
    table.loc[3, "x"] = "?"
    table.to_csv(tmp_path / "rows.csv", index=False)
    given = ("--target", "y", "--model", "logistic", "--date", "when", "--missing", "?")
    given += ("--output", tmp_path / "m.safetensors")
    assert run(tmp_path / "rows.csv", *given, command="fit")[0] == 0
    given = (tmp_path / "m.safetensors", tmp_path / "rows.csv", "--output", tmp_path / "p.csv")
    assert run(*given, command="predict")[0] == 0
    X = table.drop(columns="y").assign(x=pd.to_numeric(table["x"], errors="coerce"))
    found = pd.read_csv(tmp_path / "p.csv").filter(like="p_")
    np.testing.assert_allclose(found, bg.load(tmp_path / "m.safetensors").predict_proba(X), rtol=1e-9)


def test_labels_that_look_like_numbers_stay_text(tmp_path):
    rows = pd.DataFrame({"code": ["1", "2", "x"] * 6, "t": ["a", "b", "b"] * 6})
    rows.to_csv(tmp_path / "train.csv", index=False)
    assert run(tmp_path / "train.csv", "--target", "t", "--output", tmp_path / "m.safetensors", command="fit")[0] == 0
    (tmp_path / "new.csv").write_text("code,note\n1,p\n,q\n2,r\n")  # pandas alone would read 1.0, NaN, 2.0
    code, _, err = run(
        tmp_path / "m.safetensors", tmp_path / "new.csv", "--output", tmp_path / "p.csv", command="predict"
    )
    assert (code, err) == (0, "")
    assert pd.read_csv(tmp_path / "p.csv")["class"].tolist() == ["a", "b", "b"]


def test_an_unseen_category_is_an_error_or_missing(tmp_path):
    mixed().to_csv(tmp_path / "train.csv", index=False)
    assert run(tmp_path / "train.csv", "--target", "t", "--output", tmp_path / "m.safetensors", command="fit")[0] == 0
    mixed().assign(colour="mauve").to_csv(tmp_path / "new.csv", index=False)
    call = (tmp_path / "m.safetensors", tmp_path / "new.csv", "--output", tmp_path / "p.csv")
    code, _, err = run(*call, "--unseen", "error", command="predict")
    assert code == 2 and "column 'colour': 'mauve' in row 0 is not one of the categories" in err
    assert not (tmp_path / "p.csv").exists()
    code, out, err = run(*call, command="predict")
    assert (code, err) == (0, "")
    assert "60 values taken as missing, of categories that were not there at fit: column 'colour': ['mauve']" in out
    assert "`bayesgen predict --unseen error` refuses them" in out


def test_only_what_a_message_advises_is_put_in_options(tmp_path):
    """Data that read like an argument of the library stay as they are."""
    mixed().to_csv(tmp_path / "train.csv", index=False)
    assert run(tmp_path / "train.csv", "--target", "t", "--output", tmp_path / "m.safetensors", command="fit")[0] == 0
    mixed().assign(colour="shared=True").to_csv(tmp_path / "new.csv", index=False)
    code, out, _ = run(
        tmp_path / "m.safetensors", tmp_path / "new.csv", "--output", tmp_path / "p.csv", command="predict"
    )
    assert (
        code == 0
        and "column 'colour': ['shared=True'] in 60 rows. `bayesgen predict --unseen error` refuses them" in out
    )


@pytest.mark.parametrize("width", [20, *(pytest.param(width, marks=pytest.mark.compiles) for width in (40, 60))])
def test_no_terminal_is_too_narrow_for_a_number(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    result = CliRunner().invoke(
        app, ["compare", "anes96", "--target", "vote", "--model", "nb", "--inference", "ml,map,exact"]
    )
    assert "…" not in result.stdout
    below = result.stdout.split("\nml\n")[1]
    assert below.count("log loss") == 4 and below.count("5 of 5") == 4  # those of the base rate too
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
    line.save(tmp_path / "line.safetensors")
    X.to_parquet(tmp_path / "new.parquet")
    code, _, _ = run(
        tmp_path / "line.safetensors", tmp_path / "new.parquet", "--output", tmp_path / "p.csv", command="predict"
    )
    mean, sd = line.predict(X, return_std=True)
    predictions = pd.read_csv(tmp_path / "p.csv")
    assert code == 0
    np.testing.assert_allclose(predictions[["prediction", "sd"]], np.column_stack([mean, sd]), rtol=1e-12)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of tables, links and a model, of which hardly any go together."""
    folder = tmp_path_factory.mktemp("place")
    good = "x,t\n0.5,a\n1.5,b\n2.0,a\n3.5,b\n"
    tables = {
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
        "good.csv": good,
        "alone.csv": "x,t\n1,a\n2,a\n2.5,b\n",
        "other.csv": "z\n1\n",
        "words.csv": "x\np\n",
        "twice.csv": "x,x,t\n1,2,a\n2,3,b\n",
        "long.csv": "x,t\n1,2,a\n2,3,b\n",  # pandas alone takes the first column for names of rows
        "spaces.csv": 'bill length,"a,b",the class\n1,2,a\n',
        "wide.csv": ",".join(f"c{i}" for i in range(10)) + "\n",
    }
    for name in ("sub", "report"):
        (folder / name).mkdir()
    for name, text in (tables | {"report/predictions.csv": good}).items():
        (folder / name).write_text(text)
    pq.write_table(pa.Table.from_arrays([pa.array([1, 2]), pa.array([1, 3])], ["x", "x"]), folder / "twice.parquet")
    for link in ("link.safetensors", "link.csv"):
        (folder / link).symlink_to("good.csv")
    (folder / "link2").symlink_to("report/predictions.csv")
    bg.NaiveBayesClassifier().fit(pd.DataFrame({"x": [1.0, 2.0, 4.0]}), [0, 1, 1]).save(folder / "model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fit nowhere.csv --target t", "nowhere.csv: no such file"),
        ("fit good.csv --target y", "no column 'y'"),
        ("fit good.csv --target t --model nb --inference vb", "no inference 'vb'"),
        ("fit good.csv --target t --model lda", "one of averaged, nb, shared, full, logistic, naive Bayes, gda; got"),
        ("fit good.csv --target t --inference map", "is not for --model averaged; these take it: nb, shared, full"),
        (
            "fit good.csv --target t --model logistic --count x",
            "--count is not for --model logistic; these take it: averaged, nb",
        ),
        ("fit good.csv --target t --model gda --categorical x", "these take it: averaged, nb, logistic"),
        (
            "compare good.csv --target t --model gda --log x",
            "--log is not for --model gda; these take it: averaged, nb",
        ),
        ("fit good.csv --target t --model logistic --inference exact", "no exact posterior"),
        (
            "fit alone.csv --target t --model nb --inference ml",
            "class 'b', column 'x': maximum likelihood does not exist",
        ),
        ("fit good.csv --target t --output good.csv", "--output good.csv: it is the file that is read, good.csv"),
        ("fit good.csv --target t --output ./sub/../good.csv", "it is the file that is read, good.csv"),
        (
            "fit good.csv --target t --output link.safetensors",
            "--output link.safetensors: it is the file that is read, good.csv",
        ),
        ("fit link.csv --target t --output good.csv", "--output good.csv: it is the file that is read, link.csv"),
        ("predict model.safetensors good.csv --output good.csv", "--output good.csv: it is the file that is read"),
        (
            "predict model.safetensors good.csv --output model.safetensors",
            "--output model.safetensors: it is the file that is read, model.safetensors",
        ),
        ("compare link2 --target t --inference exact --output report", "report/predictions.csv: it is the file"),
        ("fit good.csv --target t --output sub", "--output sub: this is a folder; expected a regular file"),
        (
            "fit good.csv --target t --output good.csv/deep/m.safetensors",
            "--output good.csv: it is a file, not a folder",
        ),
        ("fit twice.csv --target t", "twice.csv: column names must be distinct; ['x'] appear more than once"),
        ("fit twice.parquet --target t", "twice.parquet: column names must be distinct; ['x'] appear more than once"),
        ("fit long.csv --target t", "long.csv: not readable as CSV"),
        ("fit spaces.csv --target t", "no column 't'; there are: 'bill length', 'a,b', 'the class'"),
        ("fit wide.csv --target t", "no column 't'; there are: c0, c1, c2, c3, c4, c5 and 4 more"),
        ("fit good.csv --target t --categorical z", "--categorical: no column 'z'; there are: x"),
        ("predict nowhere.safetensors good.csv", "nowhere.safetensors"),
        ("predict good.csv good.csv", "good.csv: not a file that bayesgen has saved"),
        ("predict model.safetensors nowhere.csv", "nowhere.csv: no such file"),
        ("predict model.safetensors other.csv", "other.csv: lacks the columns x of the fit; it has z"),
        ("predict model.safetensors good.csv --unseen drop", "--unseen must be error or missing"),
        ("predict model.safetensors words.csv", "column 'x': 'p' in row 0 is no number, and the fit had numbers"),
        (
            "compare nowhere.csv --target t",
            "nowhere.csv: no such file, nor a built-in data set; built in are: anes96, penguins",
        ),
        (
            "compare pinguins --target t",
            "pinguins: no such file, nor a built-in data set; built in are: anes96, penguins",
        ),
        ("compare . --target t", "not a parquet file"),
        ("compare empty.csv --target t", "empty.csv: not readable as CSV: the file is empty"),
        ("compare header.csv --target t", "columns, but no rows"),
        ("compare one.csv --target t", "one class only, a, in the 2 rows"),
        ("compare unlabelled.csv --target t", "no row is left: all lack t"),
        ("compare few.csv --target t", "too few rows: class a has 1, and every class needs at least 2"),
        ("compare real.csv --target t", "t holds 3 numbers, and a class is meant to be one of few: cut them"),
        ("compare constant.csv --target t", "no column is left to learn from; x left out: constant"),
        ("compare infinite.csv --target t", "no column is left to learn from; x left out"),
        ("compare ragged.csv --target t", "ragged.csv: not readable as CSV"),
        ("compare junk.parquet --target t", "junk.parquet: not readable as Parquet"),
        ("compare good.csv --target y", "no column 'y'; there are: x, t"),
        ("compare good.csv --target t --model lda", "--model must be one of all, nb, gda; got 'lda'"),
        (
            "compare good.csv --target t --inference ml,vb",
            "no inference 'vb'; there are: exact, laplace, map, memberships, ml, nuts",
        ),
        ("compare good.csv --target t --folds 1", "--folds must be a number of folds, 2 or more; got 1"),
        ("compare good.csv --target t --output empty.csv", "empty.csv: it is a file, not a folder"),
        ("compare good.csv --target t --model gda --inference ml", "nothing could be learned in any fold"),
    ],
)
def test_what_is_wrong_is_one_line_and_changes_no_file(place, monkeypatch, arguments, words):
    monkeypatch.chdir(place)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    result = CliRunner().invoke(app, arguments.split())
    assert result.exit_code == 2 and isinstance(result.exception, SystemExit)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1 and words in result.stderr
    assert not (place / "predictions.csv").exists()


def test_update_learns_what_all_rows_together_teach(tmp_path):
    whole = data.load("penguins")
    for name, part in (("first", whole[::2]), ("second", whole[1::2]), ("all", whole)):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
        target = ["--target", "species", "--model", "nb", "--output", tmp_path / f"{name}.safetensors"]
        if name != "second":
            assert run(tmp_path / f"{name}.csv", *target, command="fit")[0] == 0
    more = (tmp_path / "first.safetensors", tmp_path / "second.csv", "--target", "species")
    code, out, err = run(*more, "--output", tmp_path / "both.safetensors", command="update")
    assert (code, err) == (0, "") and "172 rows more, 344 in all" in out
    new = whole[:4].assign(species="king").to_csv(tmp_path / "new.csv", index=False) or tmp_path / "new.csv"
    code, _, err = run(tmp_path / "first.safetensors", new, "--target", "species", command="update")
    assert code == 2 and "['king'], which are not among the classes" in err and "fit anew, with rows of every" in err
    X = whole.drop(columns="species")
    both, once = bg.load(tmp_path / "both.safetensors"), bg.load(tmp_path / "all.safetensors")
    np.testing.assert_allclose(both.predict_proba(X), once.predict_proba(X), rtol=1e-9)


@pytest.mark.compiles
def test_averages_update_and_merge_as_copies_of_one_fit(tmp_path):
    whole, target = data.load("penguins").dropna(), ("--target", "species")
    parts = {"first": whole[::3], "a": whole[1::3], "b": whole[2::3]}
    for name, part in parts.items():
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    first = tmp_path / "first.safetensors"
    assert run(tmp_path / "first.csv", *target, "--output", first, command="fit")[0] == 0
    for name in "ab":
        saved = tmp_path / f"{name}.safetensors"
        code, out, err = run(first, tmp_path / f"{name}.csv", *target, "--output", saved, command="update")
        assert (code, err) == (0, "") and "111 rows more, 222 in all" in out
    merged = tmp_path / "merged.safetensors"
    a, b = (tmp_path / f"{name}.safetensors" for name in "ab")
    code, out, err = run(a, b, "--output", merged, command="merge")
    assert (code, err) == (0, "") and "rows of total weight 333" in out
    X = whole.drop(columns="species")
    both = bg.load(a) + bg.load(b)
    np.testing.assert_array_equal(bg.load(merged).predict_proba(X), both.predict_proba(X))
    assert (both.predict(X) == whole["species"]).mean() > 0.95
    code, _, err = run(a, a, "--output", merged, command="merge")
    assert code == 2 and "have learned from the same rows" in err
    other = tmp_path / "other.safetensors"
    assert run(tmp_path / "a.csv", *target, "--output", other, command="fit")[0] == 0
    code, _, err = run(a, other, "--output", merged, command="merge")
    assert code == 2 and "were fitted apart" in err


@pytest.mark.compiles
def test_pipes_and_the_module(tmp_path):
    mixed().to_csv(tmp_path / "train.csv", index=False)
    assert run(command="--version")[1] == f"bayesgen {bg.__version__}"
    content, saved = (tmp_path / "train.csv").read_bytes(), tmp_path / "m.safetensors"
    result = CliRunner().invoke(app, f"fit - --target t --model nb --output {saved}", input=content)
    assert (result.exit_code, result.stderr) == (0, "") and "the standard input: 60 rows" in result.stdout
    call = [sys.executable, "-m", "bayesgen", "predict", saved, "-", "--output", "-"]
    result = subprocess.run(call, env=os.environ | {"NO_COLOR": "1"}, capture_output=True, check=False, input=content)
    assert result.returncode == 0 and b"\x1b" not in result.stdout + result.stderr
    assert len(pd.read_csv(io.BytesIO(result.stdout))) == 60


@pytest.mark.compiles
def test_an_interrupted_command_ends_at_once():
    """Python's own end would wait for what XLA still runs, or crash in it; `abort` stands for that."""
    command = "@cli.app.command()\ndef sampling():\n    raise KeyboardInterrupt"
    code = f"import atexit, os\nfrom bayesgen import cli\natexit.register(os.abort)\n{command}\ncli.app(['sampling'])"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 130


def test_without_arguments_it_says_what_to_do_next():
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0 and max(map(len, result.stdout.splitlines())) <= 120
    named = re.findall(r"^  bayesgen (\w+)", result.stdout, re.M)
    first, last = named[:8], named[8:]
    assert first == ["demo", "look", "compare", "fit", "predict", "explain", "classes", "watch"]
    assert last == ["page", "page", "export", "program"]


def test_help_names_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert all(command in result.stdout for command in ("compare", "fit", "predict"))


CELLS = ["", "a", "b", "1", "2.5", "-3", "nan", "inf", "1e999", "ä", '"', "True", "2020-01-01", "a,b", "0x1f", "  "]
TEXT = st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=5), max_size=8).map(
    lambda rows: "\n".join(["y,a,b,c,d"] + [",".join(row) for row in rows]).encode()
)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")  # a table may have constant columns
@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=200) | TEXT, way=st.sampled_from(["averaged", "nb", "gda", "logistic"]))
def test_any_file_is_fitted_or_refused(tmp_path, content, way):
    (tmp_path / "table.csv").write_bytes(content)
    model = tmp_path / "model.safetensors"
    model.unlink(missing_ok=True)
    code, _, err = run(tmp_path / "table.csv", "--target", "y", "--model", way, "--output", model, command="fit")
    assert (code == 0) == model.exists()
    assert code == 0 or err
