"""`bayesgen compare`: the table, the files it writes, and errors in one line."""

import functools
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from commands import run
from sklearn import metrics
from test_comparison import mixed
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen import data
from bayesgen.cli import app
from bayesgen.comparison import candidates
from bayesgen.comparison.candidates import CANDIDATES
from bayesgen.inference import INFERENCES, MAP, NUTS

pytestmark = pytest.mark.usefixtures("few_members")  # commands do to the average of all what they do to this one


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


@pytest.mark.compiles
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
    assert "Written to report: report.html, calibration.png, probabilities.png, models.png, columns.png" in lines[-3]
    assert max(map(len, lines[:-3])) <= 80 and lines[-1].startswith("  bayesgen fit few.csv --target species --model")
    assert "shared, full: numbers only, island, sex left out" in lines
    assert (tmp_path / "report" / "models.png").read_bytes().startswith(b"\x89PNG")
    predictions = pd.read_csv(tmp_path / "report" / "predictions.csv")
    names = [f"{name.replace(' ', '_')}_p_Gentoo" for name in CANDIDATES]
    assert set(names) <= set(predictions.columns)
    np.testing.assert_allclose(predictions["naive_Bayes_p_Gentoo"], predictions["exact_p_Gentoo"], rtol=1e-12)
    # without the models, a picture of an earlier run goes
    assert CliRunner().invoke(app, ["compare", *arguments, "--model", "nb"]).exit_code == 0
    assert not (tmp_path / "report" / "models.png").exists()


@pytest.mark.compiles
def test_the_demonstration_compares_penguins_and_writes_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(candidates, "CANDIDATES", {name: CANDIDATES[name] for name in ("naive Bayes", "logistic")})
    monkeypatch.setitem(INFERENCES, "nuts", functools.partial(NUTS, num_warmup=20, num_samples=20, num_chains=2))
    code, out, err = run("--output", tmp_path / "demo", command="demo")
    assert code == 0 and "344 rows" in out and "exact 3 of 3" in out and "logistic" in out
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "bayesgen demo --output" in page and "report.html in a browser" in err
    calculator = (tmp_path / "demo" / "calculator.html").read_text(encoding="utf-8")
    assert "Which penguin is it?" in calculator and "// LogisticClassifier, a classifier of bayesgen" in calculator


@pytest.mark.compiles
def test_costs_are_met_by_actions_and_classes_have_scores(tmp_path):
    """A file of costs of any separator; scores by class agree with scikit-learn."""
    rng = np.random.default_rng(0)
    ill = rng.random(400) < 0.05
    frame = pd.DataFrame({"x": rng.normal(size=400) + 2 * ill, "t": np.where(ill, "ill", "well")})
    frame.to_csv(tmp_path / "rare.csv", index=False)
    given = (tmp_path / "rare.csv", "--target", "t", "--model", "nb", "--inference", "exact", "--folds", 3)
    for text in ("t;treat;wait\nwell;0,5;0\nill;0;10\n", "t,treat,wait\nwell,0.5,0\nill,0,10\n"):
        (tmp_path / "costs.csv").write_text(text)
        output = ("--output", tmp_path / "report")
        code, out, err = run(*given, "--loss", tmp_path / "costs.csv", *output, "--json")
        assert code == 0
        found, told = json.loads(out)["by_class"], pd.read_csv(tmp_path / "report" / "predictions.csv")
        p, true = told["exact_p_ill"].to_numpy(), (told["truth"] == "ill").to_numpy()
        treated = 0.5 * (1 - p) < 10 * p
        assert found["actions"]["ill"] == {"treat": (treated & true).sum(), "wait": (~treated & true).sum()}
        assert found["cost"] == pytest.approx((0.5 * (treated & ~true) + 10 * (~treated & true)).mean())
        assert found["least_cost_of_one_action"] == pytest.approx(min(0.5 * (~true).mean(), 10 * true.mean()))
    own = found["scores"]["ill"]
    assert own["ROC-AUC"] == pytest.approx(metrics.roc_auc_score(true, p)) and own["base rate"] == true.mean()
    assert own["sensitivity"] == pytest.approx(metrics.recall_score(true, p > 0.5))
    code, out, _ = run(*given)
    base = json.loads(run(*given, "--json")[1])["base_rate"]
    assert code == 0 and f"base rate 3 of 3 {base['accuracy']:.4f} {base['log_loss']:.4f}" in out
    assert base["accuracy"] == pytest.approx((~true).mean()) and "the best single action for all rows costs" in out
    (tmp_path / "costs.csv").write_text("t,treat\nsick,1\nwell,0\n")
    code, _, err = run(*given, "--loss", tmp_path / "costs.csv")
    assert code == 2 and "sick" in err


def test_a_table_of_80_columns_is_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(
        app, ["compare", "anes96", "--target", "vote", "--model", "nb", "--inference", "ml,exact"]
    )
    assert "…" not in result.stdout
    assert max(map(len, result.stdout.splitlines()[5:])) <= 80
    assert "0 551, 1 393" in result.stdout


@pytest.mark.compiles
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


@pytest.mark.compiles
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


def test_few_rows_of_a_class_make_fewer_folds(tmp_path):
    table = data.load("penguins").iloc[::5]
    table.to_csv(tmp_path / "few.csv", index=False)
    given = ("--target", "island", "--drop", "species", "--model", "nb", "--inference", "map", "--folds", 60)
    code, out, _ = run(tmp_path / "few.csv", *given)
    assert code == 0
    few = table["island"].value_counts().min()
    assert f"{few} folds, not 60: the smallest class has no more rows" in out


def test_a_file_wins_over_a_built_in_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mixed().to_csv("penguins", index=False)
    code, out, _ = run("penguins", "--target", "t", "--model", "nb", "--inference", "exact", "--folds", 2)
    assert code == 0
    assert "penguins: 60 rows" in out


@pytest.mark.compiles
def test_classes_and_names_of_any_kind(tmp_path):
    table = mixed().rename(columns={"colour": "[bold]a/b", "z": "größe"})
    table.to_csv(tmp_path / "odd.csv", index=False)
    code, out, err = run(
        tmp_path / "odd.csv", "--target", "flag", "--inference", "exact", "--folds", 2, "--output", tmp_path
    )
    assert (code, err) == (0, "")
    assert "False" in out
    assert "[bold]a/b" in out


@pytest.mark.compiles
def test_what_a_terminal_would_obey_is_printed_as_text(tmp_path):
    """`run` fails where an escape sequence is printed."""
    turn = chr(0x202E)
    table = mixed().rename(columns={"colour": "\x1b[31mred", "z": f"a{turn}b"}).replace({"t": {"a": "\x1b]0;mine\x07"}})
    table.to_csv(tmp_path / "odd.csv", index=False)
    code, out, err = run(tmp_path / "odd.csv", "--target", "t", "--model", "nb", "--inference", "exact", "--folds", 2)
    assert (code, err) == (0, "") and r"\x1b[31mred" in out and r"a\u202eb" in out and r"\x1b]0;mine\x07" in out
    code, _, err = run(tmp_path / "odd.csv", "--target", "\x1b[2J")
    assert code == 2 and r"no column '\x1b[2J'; there are: x, 'a" in err and r"\x1b[31mred" in err
    given = ("--target", "t", "--model", "nb", "--output", tmp_path / "m.safetensors")
    assert run(tmp_path / "odd.csv", *given, command="fit")[0] == 0
    code, out, _ = run(tmp_path / "m.safetensors", tmp_path / "odd.csv", command="explain")
    assert code == 0 and r"\x1b[31mred" in out


@pytest.mark.compiles
def test_columns_are_named_for_what_predicts_best_and_for_nothing_that_does_not(tmp_path):
    """Naive Bayes counts the copies of a column that says little again and again, and would name it."""
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b"], 40)
    vague = rng.normal(size=80) + 0.7 * (y == "b")
    frame = pd.DataFrame({f"copy{j}": vague + rng.normal(scale=0.01, size=80) for j in range(6)})
    frame["clear"] = rng.normal(size=80) + 2 * (y == "b")
    frame.assign(t=y).to_csv(tmp_path / "copies.csv", index=False)
    rng.shuffle(y)
    frame.assign(t=y).to_csv(tmp_path / "noise.csv", index=False)
    given = ("--target", "t", "--inference", "exact", "--folds", 2)
    code, out, _ = run(tmp_path / "copies.csv", *given, "--json")
    told = json.loads(out)
    assert code == 0 and told["best"] == told["importance_of"] != "naive Bayes"
    worth = {name: one["importance"] for name, one in told["importance"].items()}
    assert max(worth, key=worth.__getitem__) == "clear"
    code, out, _ = run(tmp_path / "copies.csv", *given, "--no-importance", "--json")
    assert code == 0 and json.loads(out)["importance"] == {}
    code, out, _ = run(tmp_path / "noise.csv", *given, "--model", "nb")
    assert code == 0 and "so no column is said to matter" in out


def test_a_discriminant_keeps_rows_with_gaps(tmp_path):
    table = data.load("penguins").drop(columns=["year"])
    table.to_csv(tmp_path / "penguins.csv", index=False)
    for name, shared in (("full", False), ("shared", True)):
        path = tmp_path / f"{name}.safetensors"
        code, out, _ = run(
            tmp_path / "penguins.csv", "--target", "species", "--model", name, "--output", path, command="fit"
        )
        assert code == 0 and "344 rows used" in out and "at the mode of the posterior (map)" in out
        fitted = bg.load(path)
        assert fitted.total_weight_ == 344 and fitted.shared is shared and fitted.inference == MAP()


def test_doubts_of_a_table_are_told_once_by_the_account_and_by_the_notes(tmp_path):
    """Columns of 0 and 1, row numbers that were asked for and a wild entry, in every fold and model; no raw warning."""
    rng = np.random.default_rng(1)
    y = rng.choice(["u", "v"], 90)
    table = pd.DataFrame({"a": rng.normal(size=90) + (y == "u"), "id": np.arange(90), "bit": rng.integers(0, 2, 90)})
    table.loc[40, "a"] = 1e6
    table.assign(t=y).to_csv(tmp_path / "doubts.csv", index=False)
    given = ("--target", "t", "--number", "id", "--inference", "ml,exact", "--folds", 3)
    code, out, err = run(tmp_path / "doubts.csv", *given)
    assert (code, err) == (0, "")
    told = " ".join(out.split())
    assert told.count("bit ambiguous: only 0 and 1") == 1 and "0 and 1 alone" not in told
    inferences, models = told.split("Above best")[0].split(" model loss ")
    for part, first in ((inferences, "ml, exact warned in"), (models, "naive Bayes warned in")):
        assert part.count(f"{first} folds 1, 2, 3: column 'id' seems to number the rows") == 1
    assert inferences.count("value 1e+06 in row 40") == 1
    assert models.count("value 1e+06 in row 40") == 2  # the averaged classifier takes it as missing, others as it is


def test_a_target_of_numbers_is_told_to_be_none():
    code, _, err = run("penguins", "--target", "body_mass_g")
    assert code == 2 and err.startswith("Error: the column of classes holds 94 numbers, and a class is meant to be one")
    assert "LinearRegressor" in err
