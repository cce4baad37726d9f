"""`bayesgen look`: what it advises reads the file when it is typed, and nothing is read otherwise than it was meant.

``python -m pytest -m slow -s tests/test_look.py`` looks at 2,000 tables, types every option that is advised on 2,000
others, and 20 whole commands.
"""

import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import run
from typer.main import get_command

import bayesgen as bg
from bayesgen.cli import app, inputs, shell
from bayesgen.cli.look import recipe
from bayesgen.cli.report import words
from bayesgen.core.errors import Argument, Note

WORDS = ["k. A.", "unknown", "#DIV/0!", "n/b", "?", "zu spät", "a;b", 'say "no"', "50%", "it's", "`x`", "$HOME", "a=b"]
NAMES = ["x", "Fieber (°C)", "a b", "len/m", "p%", "n.", "it's", "a=b", "-k", "Größe"]
LEVELS = [
    ["m", "M", "w"],
    ["ja", "Ja ", "nein"],
    ["New York", "new york", "Rome"],
    ["a,b", "A,b", "c"],
    ["rot", "blau"],
]


def dirty(rng):
    """Return a table of texts as an office may write it, its separator, and its numbers by column, NaN for a gap."""
    rows = int(rng.choice([40, 90, 160]))
    decimal, thousands, sep = [(".", "", ","), (",", "", ";"), (",", ".", ";"), (".", ",", "\t"), (",", " ", ";")][
        rng.integers(5)
    ]
    label = np.where(rng.random(rows) < 0.5, "ill", "well")
    label[:4] = ["ill", "ill", "well", "well"]
    table, truth = {}, {}
    for name in rng.choice(NAMES, int(rng.integers(2, 5)), replace=False).tolist():
        if rng.random() < 0.3:
            table[name] = rng.choice(LEVELS[rng.integers(len(LEVELS))], rows)
            continue
        if rng.random() < 0.1:
            table[name] = np.where(rng.random(rows) < 0.4, "x", "")
            continue
        places = int(rng.integers(0, 3))
        values = rng.normal(*[(40, 9), (1500, 600), (0, 1), (250_000, 9e4)][rng.integers(4)], rows).round(places)
        texts = [f"{value:,.{places}f}".translate({44: thousands, 46: decimal}) for value in values]
        unit = str(rng.choice(["", "", "", " kg", " Stk", "€"]))
        texts, truth[name] = [text + unit for text in texts], values + 0.0
        share = rng.choice([0, 0, 0.02, 0.2])
        for i in np.flatnonzero(rng.random(rows) < share):
            kind = rng.integers(3)
            if kind == 0:
                texts[i], truth[name][i] = str(rng.choice(WORDS[: rng.integers(1, len(WORDS))])), np.nan
            elif kind == 1 and not unit and values[i] > 0:
                texts[i], truth[name][i] = f"<{texts[i]}", values[i] / 2
            else:
                texts[i], truth[name][i] = "", np.nan
        table[name] = texts
    return pd.DataFrame(table).assign(y=label), sep, truth


def unkind(rng):
    """Return a table that `dirty` makes, with a code for a gap, a slip, merged cells and units of two powers of ten."""
    table, sep, truth = dirty(rng)
    rows, comma = len(table), "," if sep == ";" else "."
    if rng.random() < 0.4:
        truth["code"] = np.where(rng.random(rows) < 0.05, np.nan, rng.normal(50, 9, rows).round())
        table["code"] = ["-999" if np.isnan(v) else f"{v:.0f}" for v in truth["code"]]
    if rng.random() < 0.4:
        table["slip"] = rng.choice(["negativ", "positiv"], rows)
        table.loc[7, "slip"] = str(rng.choice(["negatv", "psoitiv", "positif"]))
    if rng.random() < 0.4:
        table["ward"] = [f"ward {i // 20}" if i % 20 == 0 else "" for i in range(rows)]
    if rng.random() < 0.4:
        units = rng.choice(["mm", "cm", "m"], rows, p=[0.2, 0.7, 0.1])
        truth["size"] = rng.integers(50, 200, rows) / 1.0
        factor = {"mm": 0.1, "cm": 1, "m": 100}
        cells = (f"{v / factor[u]:.10g} {u}" for v, u in zip(truth["size"], units, strict=True))
        table["size"] = [cell.replace(".", comma) for cell in cells]
    columns = [*rng.permutation(table.columns.drop("y"))]
    return table[[*columns, "y"]], sep, truth


def advised(notes):
    """Yield each option, or the options of one way, that notes advise with a value, as one types them, and its note."""
    for note in notes:
        ways, parts = [], []
        for part in getattr(note, "parts", ()):
            parts += part.value.parts if isinstance(part, Argument) and not part.name else [part]
        for before, part in zip(["", *parts], parts, strict=False):
            if isinstance(part, Argument) and part.value is not None:
                ways += [[]] if before != " " or not ways else []
                ways[-1].append(part)
        yield from ((note, words.in_options(Note(*way, between=" "))) for way in ways)


def prepared_by(line):
    """Return the notes on a table, and its columns, as `bayesgen fit` reads it by the words of its command."""
    params = get_command(app).commands["fit"].make_context("fit", shlex.split(line)).params
    roles, csv = ({f.name: params[f.name] for f in fields(group)} for group in (shell.Roles, shell.Csv))
    read, prepared, _ = inputs.prepared(params["file"], params["target"], "nb", shell.Csv(**csv).first(), roles, 0)
    return (*read.notes, *prepared.notes, *prepared.suspicions), prepared.X


@pytest.mark.parametrize(
    ("count", "piece"),
    [(6, 0), pytest.param(60, 1, marks=pytest.mark.compiles)]
    + [pytest.param(50, piece, marks=pytest.mark.slow) for piece in range(40)],
)
def test_every_option_that_the_reading_advises_does_what_it_says(tmp_path, monkeypatch, count, piece):
    monkeypatch.chdir(tmp_path)
    rng, typed, refused = np.random.default_rng([count, piece]), Counter(), 0
    for number in range(count):
        table, sep, _ = unkind(rng)
        table.to_csv(file := f"t{number}.csv", sep=sep, index=False)
        try:
            notes, _ = prepared_by(line := f"{file} --target y")
        except ValueError as error:
            assert "no column is left" in str(error) or "no percent sign" in str(error), error
            notes, refused = [error], refused + 1
        for note, options in advised(notes):
            again, X = prepared_by(f"{line} {options}")
            assert str(note) not in map(str, again) and X.shape[1], (number, note, options)
            typed[options.split()[0]] += 1
        Path(file).unlink()
    print(f"{count} tables, {refused} refused; typed:", dict(sorted(typed.items())))
    assert count < 50 or len(typed) > 5


def by_cmd(line):
    """Return the words of a command as the C runtime of Windows splits it, where no quote or backslash is inside."""
    words, word, inside = [], "", False
    for sign in line + " ":
        inside ^= sign == '"'
        if sign == " " and not inside:
            words, word = [*words, word], ""
        elif sign != '"':
            word += sign
    return words


@pytest.mark.parametrize(
    "count", [8, pytest.param(200, marks=pytest.mark.compiles), pytest.param(2000, marks=pytest.mark.slow)]
)
def test_no_advice_fails_when_it_is_typed_and_no_number_is_read_as_another(tmp_path, monkeypatch, count):
    monkeypatch.chdir(tmp_path)
    rng, whole, of, unread = np.random.default_rng(count), 0, 0, 0
    for number in range(count):
        table, sep, truth = unkind(rng)
        table.to_csv(file := f"t {number}.csv", sep=sep, index=False)
        try:
            found, _ = recipe(file, "y", shell.Roles(), shell.Csv())
        except ValueError as error:  # nothing is in it but columns of two readings, or % beside other numbers
            assert "no column is left" in str(error) or "no percent sign" in str(error), error
            unread += 1
            continue
        said = shlex.split(found.command)
        assert "'" in found.command or by_cmd(found.command) == said
        code, again, err = run(*said[2:], command="look")
        assert (code, err) == (0, "") and again.endswith(found.command), (number, found.command, again[-200:], err)
        for name, values in truth.items():
            of += 1
            if name in (X := found.prepared[1].X) and X[name].dtype.kind in "iuf":
                whole += 1
                values = np.where(np.isnan(values) & (name == "code"), -999, values)  # a code is a question
                wrong = ~np.isclose(X[name].to_numpy(float, na_value=np.nan), values, equal_nan=True)
                assert not wrong.any(), (number, name, table[name][wrong].tolist()[:3], found.command)
    print(f"{count} tables, {unread} refused: {whole} of {of} columns of numbers read, none otherwise than meant")
    assert (count < 100 or whole > 0.7 * of) and unread < max(2, count / 20)


def ward(rows=120):
    """Return the text of a file with what offices do to one."""
    rng = np.random.default_rng(0)
    sick = rng.random(rows) < 0.5
    label = np.where(sick, rng.choice(["ja", "Ja"], rows), "nein")
    lines = ["Nr;Fieber;CRP;Kost;Gewicht;Tick;sex;Alter;y"]
    for i in range(rows):
        crp = f"{rng.gamma(2, 3):.1f}".replace(".", ",") if rng.random() < 0.8 else "<0,5"
        weight = rng.choice(["#NV", "k. A."]) if rng.random() < 0.1 else f"{rng.normal(70, 9):.1f}".replace(".", ",")
        age = 999 if rng.random() < 0.1 else round(rng.normal(50, 9))
        heat, cost, sex = f"{rng.normal(38 + sick[i], 1):.1f}", rng.integers(10, 90), rng.choice(["m", "M", "w ", "w"])
        tick = "x" if rng.random() < 0.4 else ""
        lines.append(f"P{i:03};{heat.replace('.', ',')};{crp};{cost} Stk;{weight};{tick};{sex};{age};{label[i]}")
    return "\n".join(lines) + "\n"


def test_one_command_reads_a_file_of_an_office_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ward.csv").write_text(ward())
    code, out, err = run("ward.csv", "--target", "y", command="look")
    assert (code, err) == (0, "") and "Nr left out: an identifier" in out and '--missing "Alter=999"' in out
    typed = out[out.index("bayesgen fit") :]
    assert typed.startswith("bayesgen fit ward.csv --target y --missing") and "--limits" in typed
    code, first, err = run("ward.csv", "--target", "y", "--model", "nb", command="fit")
    assert code == 0 and first.endswith("bayesgen look ward.csv --target y")
    code, out, err = run(*shlex.split(typed)[2:], "--model", "nb", "--missing", "Alter=999", command="fit")
    assert (code, err) == (0, "") and "bayesgen look" not in out
    model = bg.load("model.safetensors")
    assert set(model.schema_.columns) == {*["Fieber", "CRP", "CRP_limit", "Kost", "Gewicht", "Tick", "sex", "Alter"]}
    assert model.classes_.tolist() == ["Ja", "nein"] and model.schema_.target == "y"
    code, out, err = run("model.safetensors", "ward.csv", command="predict")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("far", ["1e999", "-inf", "1e300"])
def test_numbers_that_no_model_takes_are_gaps_of_any_file(tmp_path, monkeypatch, far):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(9, 2, 40).round(2), "y": np.where(rng.random(40) < 0.5, "ja", "nein")})
    table.loc[[3, 7], "a"] = float(far)
    table.to_parquet("t.parquet")
    table.to_excel("t.xlsx", index=False)
    table.assign(a=table["a"].map(repr).replace(repr(float(far)), far)).to_csv("t.csv", index=False)
    for file in ("t.csv", "t.xlsx", "t.parquet"):
        code, out, err = run(file, "--target", "y", command="look")
        assert (
            (code, err) == (0, "")
            and "2 gaps" in out
            and "taken as missing" in out
            and out.endswith(f"fit {file} --target y")
        )
        code, out, err = run(*shlex.split(out[out.rindex("bayesgen fit") :])[2:], "--model", "nb", command="fit")
        assert (code, err) == (0, "") and "2 missing values" in out
        code, out, err = run("model.safetensors", file, command="predict")
        assert (code, err) == (0, "") and "2 missing values" in out


def test_what_cannot_be_read_is_refused_with_what_is_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("n;y\n" + "".join(f"{1 + i % 9}.{100 + i};{'ab'[i % 2]}\n" for i in range(40)))
    code, _, err = run("t.csv", "--target", "y", command="look")
    assert code == 2 and "may be read in two ways" in err
    Path("t.csv").write_text("n;y\n" + "".join(f"{1 + i % 9}.{100 + i} Stk;{'ab'[i % 2]}\n" for i in range(40)))
    code, _, err = run("t.csv", "--target", "y", command="look")
    assert code == 2 and '--decimal "," --thousands "." --unit n=Stk or as 1.100 by --decimal "." --unit n=Stk' in err
    for signs in (["--decimal", "."], ["--decimal", ",", "--thousands", "."]):  # one of the two is advised, not --unit
        _, X = prepared_by(shlex.join(["t.csv", "--target", "y", *signs, "--unit", "n=Stk"]))
        assert X["n"].max() == (9.135 if len(signs) == 2 else 9135)
    code, _, err = run("t.csv", "--target", "z", command="look")
    assert code == 2 and "'z'" in err
    code, _, err = run("-", "--target", "y", command="look")
    assert code == 2 and "read once" in err


@pytest.mark.slow
def test_whole_commands_fit_as_they_are_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, done = np.random.default_rng(7), 0
    while done < 20:
        table, sep, _ = unkind(rng)
        table.to_csv("t.csv", sep=sep, index=False)
        code, out, _ = run("t.csv", "--target", "y", command="look")
        if code == 0:
            typed = f"{sys.executable} -m {out[out.rindex('bayesgen fit') :]} --model nb"
            subprocess.run(["bash", "-c", typed], check=True, capture_output=True)
            done += 1
