"""What the commands say where input is wrong: in words of the command line, with what is wrong and what to do."""

import re

import numpy as np
import pandas as pd
import pytest
from commands import run

from bayesgen import load

PYTHON = r"fit_batches|partial_fit|to_numpy|an array|DirichletCategorical|Errno|schema=|classes=|\bNone\b|read_table"


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """Return a folder of tables and models, some of which do not go together."""
    folder, rng = tmp_path_factory.mktemp("room"), np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=30).round(2), "colour": np.resize(["red", "blue"], 30)})
    table["grade"] = np.resize(["low", "mid", "high"], 30)
    other = table.replace({"grade": {"mid": "huge"}})
    tables = {
        "a": table,
        "other": other,
        "wide": table.assign(age=3.5 + np.arange(30)),
        "coded": table.assign(colour=np.arange(30) * 1.5),
        "unseen": table.replace({"colour": {"red": "violet"}}),
        "gaps": table.assign(size=table["size"].where(table.index > 3), age=np.arange(30) * 0.5),
        "none": table[:0],
    }
    for name, rows in tables.items():
        rows.to_csv(folder / f"{name}.csv", index=False)
        if name in ("a", "other", "wide", "coded"):
            given = (folder / f"{name}.csv", "--target", "grade", "--model", "nb", "--output", folder / f"{name}.model")
            assert run(*given, command="fit")[0] == 0
    for name, lines in {
        "lacks": "grade,go,stop\nlow,0,1\nmid,1,0\n",
        "text": "grade,go,stop\nlow,0,one\nmid,1,0\nhigh,1,0\n",
        "gap": "grade,go,stop\nlow,0,\nmid,1,0\nhigh,1,0\n",
        "alone": "grade\nlow\nmid\nhigh\n",
    }.items():
        (folder / f"loss-{name}.csv").write_text(lines)
    (folder / "ragged.csv").write_text("size,colour\n1,red\n2,red,3\n")
    return folder


SAID = {
    "compare penguins --target species --folds 2.5": "Invalid value",
    "compare penguins": "--target",
    "divine": "No such command",
    "merge a.model other.model": r"the classes are \['high', 'low', 'mid'\] and \['high', 'huge', 'low'\]; .* a folder",
    "merge a.model wide.model": r"the columns are \['size', 'colour'\] and \['size', 'colour', 'age'\]",
    "merge a.model coded.model": r"column 'colour' has the categories \['blue', 'red'\] and numbers",
    "merge absent.model a.model": "absent.model: no such file",
    "merge a.model a.model": "a.model and a.model have learned from the same rows.*merge one of them",
    "predict a.model unseen.csv --unseen error": "'violet' in row 0.*fit anew.*`bayesgen predict --unseen missing`",
    "predict a.model none.csv": "none.csv: it has columns, but no rows",
    "predict a.model ragged.csv": "ragged.csv.*line 3 has 3 fields, where the header has 2",
    "predict a.model a.csv --loss loss-lacks.csv": r"--loss must have .*lacks \['high'\]. Name them so\.$",
    "predict a.model a.csv --loss loss-text.csv": "--loss loss-text.csv: the cost of stop under low is 'one'",
    "predict a.model a.csv --loss loss-gap.csv": "--loss loss-gap.csv: the cost of stop under low is missing",
    "predict a.model a.csv --loss loss-alone.csv": "--loss loss-alone.csv: there are no costs in it",
    "update a.model other.csv --target grade": r"the column of classes holds the labels \['huge'\].*fit anew",
    "update a.model unseen.csv --target grade": "'violet' in row 0 is not one of .*fit anew, with rows",
    "explain a.model none.csv": "none.csv: it has columns, but no rows",
    "explain a.model a.csv --output told.txt": "--output told.txt: a picture ends in .png, .svg or .pdf",
    "plot a.model a.csv --of decision_regions --target grade --columns size,colour": "of numbers, and colour has",
    "fit a.csv --target grade --group who": "--group: no column 'who'",
    "fit a.csv --target grade --model nb --log size": "has no logarithm, which --log takes",
    "fit gaps.csv --target grade --model full --inference exact": "use --inference map or --inference nuts$",
    "compare a.csv --target grade --order when": "--order: no column 'when'",
    "compare a.csv --target grade --order colour": "column 'colour' is to hold dates, and 'red' in row 0",
    "compare a.csv --target grade --inference ,": "--inference must name at least one",
    "compare a.csv --target grade --loss loss-lacks.csv": r"--loss must have one row",
}


@pytest.mark.parametrize("given", SAID)
def test_an_error_is_told_in_words_of_the_command_line(room, monkeypatch, given):
    monkeypatch.chdir(room)
    command, *words = given.split()
    there = sorted(room.iterdir())
    code, _, err = run(*words, command=command)
    assert sorted(room.iterdir()) == there
    assert code == 2 and re.search(SAID[given], " ".join(err.split()).removesuffix(" "))
    assert not re.search(PYTHON, err)


def test_a_category_that_is_new_is_told_once_for_the_row_that_is_explained(room, monkeypatch):
    monkeypatch.chdir(room)
    code, out, _ = run("a.model", "unseen.csv", "--row", "2", command="explain")
    assert code == 0 and out.count("taken as missing") == out.count("['violet'] in 1 row.") == 1


@pytest.mark.compiles
def test_fit_says_how_well_it_predicts_and_compare_how_to_keep_the_best(room, monkeypatch):
    monkeypatch.chdir(room)
    code, out, _ = run("a.csv", "--target", "grade", "--output", "averaged.model", command="fit")
    scores = load("averaged.model").scores_ if code == 0 else {}
    told = f"{-scores['nested']:.4f}, give or take {scores['nested_error']:.4f}; by the frequencies"
    assert f"left out while it learned: {told}" in out
    code, out, _ = run("a.csv", "--target", "grade", "--inference", "exact", "--folds", "2", "--no-importance")
    names = "averaged|'naive Bayes'|shared|full|logistic"
    told = re.search(f"To save .* all rows: bayesgen fit a.csv --target grade --model ({names})$", out)
    best = min(("averaged", "naive Bayes", "shared", "full", "logistic", "base rate"), key=lambda n: loss_of(out, n))
    assert code == 0 and (told[1].strip("'") == best if told else best == "base rate")


def loss_of(out, name):
    """Return the log loss of a model in the last table that has it."""
    return float(re.findall(rf" {name} ([0-9.]+)", out)[-1])


@pytest.mark.compiles
def test_the_notes_of_a_comparison_name_options(tmp_path, monkeypatch):
    """Here a column names patients, which the average warns of in every fold."""
    rng = np.random.default_rng(0)
    ward = np.repeat(np.arange(30), 4)
    table = pd.DataFrame(
        {"ward": ward, "x": rng.normal(size=120), "t": np.where(rng.permutation(30) < 15, "a", "b")[ward]}
    )
    table.to_csv(tmp_path / "ward.csv", index=False)
    monkeypatch.chdir(tmp_path)
    given = ("--target", "t", "--inference", "exact", "--folds", "2", "--no-importance", "--json")
    code, out, _ = run("ward.csv", *given)
    assert code == 0 and "drop the column and fit with `--group ward`: scores" in out and "groups=" not in out
