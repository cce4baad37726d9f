"""`bayesgen look`: what it advises reads the file when it is typed, and nothing is read otherwise than it was meant.

``python -m pytest -m slow tests/test_look.py`` looks at 2,000 tables, and types 20 whole commands.
"""

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import run

import bayesgen as bg
from bayesgen.cli import shell
from bayesgen.cli.look import recipe

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
        table, sep, truth = dirty(rng)
        table.to_csv(file := f"t {number}.csv", sep=sep, index=False)
        try:
            found, _ = recipe(file, "y", shell.Roles(), shell.Csv())
        except ValueError as error:  # nothing is in it but columns of two readings, or % beside other numbers
            assert "no column is left" in str(error) or "no percent sign" in str(error), error
            unread += 1
            continue
        words = shlex.split(found.command)
        assert "'" in found.command or by_cmd(found.command) == words
        code, again, err = run(*words[2:], command="look")
        assert (code, err) == (0, "") and again.endswith(found.command), (number, found.command, again[-200:], err)
        for name, values in truth.items():
            of += 1
            if name in (X := found.prepared[1].X) and X[name].dtype.kind in "iuf":
                whole += 1
                wrong = ~np.isclose(X[name].to_numpy(float, na_value=np.nan), values, equal_nan=True)
                assert not wrong.any(), (number, name, table[name][wrong].tolist()[:3], found.command)
    print(f"{count} tables, {unread} refused: {whole} of {of} columns of numbers read, none otherwise than meant")
    assert whole > 0.7 * of and unread < max(2, count / 20)


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
    assert (code, err) == (0, "") and "Nr left out: an identifier" in out and "--missing 'Alter=999'" in out
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


def test_what_cannot_be_read_is_refused_with_what_is_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("n;y\n" + "".join(f"{1 + i % 9}.{100 + i};{'ab'[i % 2]}\n" for i in range(40)))
    code, _, err = run("t.csv", "--target", "y", command="look")
    assert code == 2 and "may be read in two ways" in err
    code, _, err = run("t.csv", "--target", "z", command="look")
    assert code == 2 and "'z'" in err
    code, _, err = run("-", "--target", "y", command="look")
    assert code == 2 and "read once" in err


@pytest.mark.slow
def test_whole_commands_fit_as_they_are_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, done = np.random.default_rng(7), 0
    while done < 20:
        table, sep, _ = dirty(rng)
        table.to_csv("t.csv", sep=sep, index=False)
        code, out, _ = run("t.csv", "--target", "y", command="look")
        if code == 0:
            typed = f"{sys.executable} -m {out[out.rindex('bayesgen fit') :]} --model nb"
            subprocess.run(["bash", "-c", typed], check=True, capture_output=True)
            done += 1
