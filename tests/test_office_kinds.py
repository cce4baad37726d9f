"""Sixteen kinds of files of offices and more, each right after `bayesgen look` and the one command that it prints.

Every file has besides a code for a missing answer, dates with names of months and a slip of the keyboard: these are
questions, which look asks with the option filled in, and they are right once it is given too.
"""

import io
import re
import shlex
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import run
from typer.main import get_command

import bayesgen as bg
from bayesgen.cli import app, inputs, shell

ROWS = 90
MONTHS = ["Jan.", "Februar", "März", "Apr."]


def table(rng):
    """Return the numbers and words themselves."""
    ill = rng.random(ROWS) < 0.5
    age = rng.normal(52, 9, ROWS).round()
    age[[4, 40]] = np.nan
    y = np.where(ill, "krank", "gesund")
    return pd.DataFrame(
        {
            "Alter": age,
            "Größe": (rng.normal(1700, 90, ROWS)).round(),
            "Wert": rng.normal(7 + ill, 1, ROWS).round(1),
            "Tag": pd.to_datetime(rng.integers(20_454, 20_574, ROWS), unit="D"),
            "Befund": np.where(rng.random(ROWS) < 0.3 + 0.4 * ill, "positiv", "negativ"),
            "y": y,
        }
    )


def written(truth, decimal=","):
    """Return the table as an office writes it: texts, with a code for a gap, names of months and a slip."""
    texts = pd.DataFrame(index=truth.index)
    texts["Alter"] = [f"{value:.0f}" if value == value else "-999" for value in truth["Alter"]]
    texts["Größe"] = [f"{value:.0f}" for value in truth["Größe"]]
    texts["Wert"] = [f"{value:.1f}".replace(".", decimal) for value in truth["Wert"]]
    texts["Tag"] = [f"{day.day:02}. {MONTHS[day.month - 1]} {day.year}" for day in truth["Tag"]]
    texts["Befund"] = truth["Befund"].to_numpy()
    texts.loc[texts.index[texts["Befund"] == "negativ"][5], "Befund"] = "negatv"
    return texts.assign(y=truth["y"])


def text_of(texts, sep=";"):
    return texts.to_csv(sep=sep, index=False)


def title(truth, texts):
    return "Auswertung der Station 3\n\n" + text_of(texts)


def two_headers(truth, texts):
    return "Person;;Messung;;;\n" + text_of(texts)


def units_below(truth, texts):
    head, rows = text_of(texts).split("\n", 1)
    return f"{head}\nJahre;mm;mg/l;;;\n{rows}"


def semicolon(truth, texts):
    return text_of(texts)


def thousands(truth, texts):
    big = np.arange(ROWS) * 7919 % 1_000_000 + 0.5
    truth["Kosten"] = big
    return text_of(texts.assign(Kosten=[f"{v:,.2f}".translate({44: ".", 46: ","}) for v in big]))


def units(truth, texts):
    truth["Gewicht"] = 50 + np.arange(ROWS) * 37 % 51
    return text_of(texts.assign(Gewicht=[f"{v} kg" for v in truth["Gewicht"]]))


def mixed_units(truth, texts):
    size = 1500 + np.arange(ROWS) * 37 % 501
    truth["Länge"] = size / 10
    cells = [f"{v / 10:.1f} cm" if i % 6 else f"{v} mm" for i, v in enumerate(size)]
    return text_of(texts.assign(Länge=[cell.replace(".", ",") for cell in cells]))


def sum_line(truth, texts):
    return text_of(texts) + f"Summe;{truth['Größe'].sum():.0f};{truth['Wert'].sum():.0f}\n"


def repeated_head(truth, texts):
    lines = text_of(texts).splitlines()
    return "\n".join([*lines[:31], lines[0], *lines[31:61], lines[0], *lines[61:]]) + "\n"


def bom(truth, texts):
    return text_of(texts).encode("utf-8-sig")


def cp1252(truth, texts):
    return text_of(texts).encode("cp1252")


def utf16(truth, texts):
    return text_of(texts, "\t").encode("utf-16")


def merged(truth, texts):
    ward = np.repeat(["Innere", "Chirurgie", "Pädiatrie"], ROWS // 3)
    truth["Station"] = ward
    return text_of(texts.assign(Station=np.where(np.arange(ROWS) % (ROWS // 3) == 0, ward, "")))


def ticks(truth, texts):
    there = np.arange(ROWS) * 7 % 5 < 2
    truth["Raucher"] = np.where(there, "x", "no")
    return text_of(texts.assign(Raucher=np.where(there, "x", "")))


def spellings(truth, texts):
    ways = ["männlich", "Männlich", "männlich ", "weiblich"]
    said = [ways[i * 7 % 4] for i in range(ROWS)]
    truth["Geschlecht"] = [word.strip().lower() for word in said]
    return text_of(texts.assign(Geschlecht=said))


def leak(truth, texts):
    truth["Diagnose"] = np.where(truth["y"] == "krank", "A41", "Z00")
    return text_of(texts.assign(Diagnose=truth["Diagnose"]))


def errors(truth, texts):
    rate = pd.Series(np.arange(ROWS) * 31 % 97 / 10)
    rate[::11] = np.nan
    truth["Quote"] = rate
    cells = ["#DIV/0!" if v != v else f"{v:.1f}".replace(".", ",") for v in rate]
    return text_of(texts.assign(Quote=cells))


def infinite(truth, texts):
    truth["Rate"] = pd.Series(np.arange(ROWS) * 31 % 97 / 10).replace(1.6, np.nan)
    return text_of(texts.assign(Rate=["-inf" if v != v else f"{v:.1f}".replace(".", ",") for v in truth["Rate"]]))


def formulas(truth, texts):
    truth["Kennung"] = [f"0{i % 7}" for i in range(ROWS)]
    texts = texts.assign(Kennung=truth["Kennung"])
    return "\n".join(";".join(f'="{cell}"' for cell in line.split(";")) for line in text_of(texts).splitlines())


def dos(truth, texts):
    return text_of(texts).encode("cp1252") + b"\x1a"


def excel(truth, texts):
    low = np.arange(ROWS) % 4 == 1
    crp = (np.arange(ROWS) * 37 % 101) / 10 + 0.6
    truth["CRP"] = np.where(low, 0.25, crp)
    cells = pd.DataFrame(
        {
            "Alter": truth["Alter"].fillna(-999),
            "Größe": truth["Größe"],
            "Wert": truth["Wert"],
            "Tag": texts["Tag"],
            "Befund": texts["Befund"],
            "CRP": [("<0,5" if is_low else float(v)) for is_low, v in zip(low, crp, strict=True)],
            "y": truth["y"],
        }
    )
    file = io.BytesIO()
    cells.to_excel(file, index=False)
    return file.getvalue()


KINDS = [title, two_headers, units_below, semicolon, thousands, units, mixed_units, sum_line, repeated_head, bom]
KINDS += [cp1252, utf16, merged, ticks, spellings, leak, errors, infinite, formulas, dos, excel]


def typed(words):
    """Return what `bayesgen fit` learns from by the words of its command."""
    params = get_command(app).commands["fit"].make_context("fit", list(words)).params
    roles, csv = ({f.name: params[f.name] for f in fields(group)} for group in (shell.Roles, shell.Csv))
    return inputs.prepared(params["file"], params["target"], "nb", shell.Csv(**csv).first(), roles, 0)[1]


def wrong(prepared, truth):
    """Return the columns that hold others than the numbers and words themselves."""
    found = []
    for name, values in truth.drop(columns=["Tag", "y"]).items():
        if values.dtype.kind in "iuf":
            same = name in prepared.X and prepared.X[name].dtype.kind in "iuf"
            same = same and np.allclose(prepared.X[name].to_numpy(float, na_value=np.nan), values, equal_nan=True)
        else:
            same = name in prepared.X and [text.strip() for text in prepared.X[name]] == values.tolist()
        found += [] if same else [name]
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_file_is_right_after_look_and_one_pasted_command(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    truth = table(np.random.default_rng(3))
    content = kind(truth, written(truth))
    file = "t.xlsx" if kind is excel else "t.csv"
    Path(file).write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = run(file, "--target", "y", command="look")
    assert (code, err) == (0, ""), out + err
    words = shlex.split(out[out.index("bayesgen fit") :])[2:]
    prepared = typed(words)
    assert prepared.y.tolist() == truth["y"].tolist() and "Tag ambiguous: dates, it seems" in out
    asked = re.findall('--(missing|same|fill-down) "([^"]*)"', out[: out.index("bayesgen fit")])
    told = {value.partition("=")[0] for _, value in asked}
    assert {"Alter", "Befund"} <= told and {*wrong(prepared, truth)} <= told  # nothing is wrong in silence
    assert kind is not leak or "Diagnose one value for each class, as if copied" in out
    words += [word for option, value in asked for word in (f"--{option}", value)]
    assert wrong(typed(words), truth) == []
    code, again, err = run(*words, "--model", "nb", command="fit")
    assert (code, err) == (0, "") and "bayesgen look" not in again
    model = bg.load("model.safetensors")
    code, out, err = run("model.safetensors", file, command="predict")
    if kind not in (units_below, sum_line):  # a word among numbers is refused in a later file
        assert (code, err) == (0, "") and "new categories" not in out, out + err
    assert model.schema_.reading.fill_down == ("Station",) * (kind is merged)
    assert model.schema_.reading.encoding == "cp1252" * (kind in (cp1252, dos))
