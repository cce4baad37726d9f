"""What people write in a cell or a field: one list of cases, and texts at random, read alike by Python and by scripts.

``python -m pytest -m slow tests/test_texts.py`` reads 20,000 texts.
"""

import math
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import run
from py_mini_racer import MiniRacer
from scorers import Scorer, scorer

import bayesgen as bg
from bayesgen.tables.dates import FORMATS, days
from bayesgen.tables.numerals import WAYS, Numerals
from bayesgen.tables.reading import Reading

POINT, COMMA = Reading(percent=()), Reading(decimal=",", percent=())
GERMAN, ENGLISH = Reading(decimal=",", thousands=".", percent=()), Reading(thousands=",", percent=())
SWISS, FRENCH = Reading(thousands="'", percent=()), Reading(decimal=",", thousands=" ", percent=())
CELSIUS = Reading(decimal=",", units={"v": "\u00b0C"}, percent=())
PERCENT = Reading(decimal=",", percent=("v",))
GAPS = Reading(missing=("?", "-"), percent=())
LIMITS = Reading(decimal=",", limits=True, percent=())
PROGRAMS = Reading(decimal=",", thousands=".", plain=("v",), percent=())
MEANT = Reading(decimal=",", meant={"v": {"999": "", "": "0", "o.B.": "0"}}, percent=())
WHOLE = {"whole": True}
CELSIUS_BESIDE = {"beside": ("\u00b0C",)}

CASES = [  # a reading, a text, what it is or words of its refusal, and what else is known
    (POINT, "1200", 1200.0, {}),
    (POINT, "1,200", "1200 or 1.2", {}),
    (POINT, "250,000", "250000 or 250", {}),
    (POINT, "1.200", 1.2, {}),
    (POINT, "1.200", "1.2 or 1200", WHOLE),
    (POINT, "37,6", "write 37.6", {}),
    (POINT, "12 345", "write 12345", {}),
    (POINT, "1,234.5", "write 1234.5", {}),
    (POINT, "1,234,567", "write 1234567", {}),
    (POINT, " -.5e-3 ", -5e-4, {}),
    (POINT, "(7.5)", -7.5, {}),
    (POINT, "7.5-", -7.5, {}),
    (POINT, "\u22127.5", -7.5, {}),
    (POINT, "5.-", "no number", {}),
    (POINT, "NA", math.nan, {}),
    (POINT, "", math.nan, {}),
    (POINT, "inf", "no number", {}),
    (POINT, "1e999", "no number", {}),
    (POINT, "0x10", "no number", {}),
    (POINT, "5 %", "a percent sign", {}),
    (POINT, "7.5 kg", "no number", {}),
    (POINT, "7.5 kg", 7.5, {"beside": ("kg",)}),
    (POINT, "<0.5", "no number", {}),
    (POINT, "?", "no number", {}),
    (COMMA, "1,200", 1.2, {}),
    (COMMA, "1,200", "1200 or 1,2", WHOLE),
    (COMMA, "1.200", "1,2 or 1200", {}),
    (COMMA, "37.6", 37.6, {}),
    (COMMA, "1.234,5", "write 1234,5", {}),
    (GERMAN, "38.000", 38000.0, {}),
    (GERMAN, "38.000", 38000.0, WHOLE),
    (GERMAN, "1,200", 1.2, {}),
    (GERMAN, "1,200", "1200 or 1,2", WHOLE),
    (GERMAN, "37,6", 37.6, {}),
    (GERMAN, "37.6", "write 37,6", {}),
    (GERMAN, "12.34.567", "no number", {}),
    (GERMAN, "1.2345", "write 1,2345", {}),
    (ENGLISH, "1,200", 1200.0, {}),
    (ENGLISH, "110,000", 110000.0, {}),
    (ENGLISH, "12,34,567", 1234567.0, {}),
    (ENGLISH, "37,6", "write 37.6", {}),
    (ENGLISH, "1.200", "1.2 or 1200", WHOLE),
    (SWISS, "1\u2019200.5", 1200.5, {}),
    (SWISS, "1'20", "no number", {}),
    (FRENCH, "12\u202f345,5", 12345.5, {}),
    (FRENCH, "5 10", "no number", {}),
    (FRENCH, "1 5", "no number", {}),
    (FRENCH, "1.234", "1,234 or 1234", {}),
    (CELSIUS, "37,6 \u00b0C", 37.6, {}),
    (CELSIUS, "37,6\u00b0C", 37.6, CELSIUS_BESIDE),
    (CELSIUS, "37,6", "has no \u00b0C", {}),
    (CELSIUS, "37,6", 37.6, CELSIUS_BESIDE),
    (CELSIUS, "99,7 \u00b0F", "no number", CELSIUS_BESIDE),
    (CELSIUS, "0", 0.0, {}),
    (PERCENT, "59,9 %", 59.9, {}),
    (PERCENT, "59,9", "has no %", {}),
    (PERCENT, "59,9", 59.9, {"beside": ("%",)}),
    (GAPS, "?", math.nan, {}),
    (GAPS, "-", math.nan, {}),
    (LIMITS, "<0,5", 0.25, {}),
    (LIMITS, "\u2264 0,5", 0.25, {}),
    (LIMITS, ">9", 9.0, {}),
    (LIMITS, "<-1", -1.0, {}),
    (PROGRAMS, "1.141", 1.141, {}),
    (PROGRAMS, "1,141", "1141 or 1.141", {}),
    (MEANT, "999", math.nan, {}),
    (MEANT, " 999,0 ", math.nan, {}),
    (MEANT, "999,5", 999.5, {}),
    (MEANT, " ", 0.0, {}),
    (MEANT, "o.B.", 0.0, {}),
    (MEANT, "__proto__", "no number", {}),
    *((way, text, "no number", {}) for way in (POINT, COMMA, GERMAN) for text in ("5 10", "1 5", "--5", "1e", "x")),
]  # fmt: skip


class Reader:
    """A script that reads texts of a column v as an account says that its file was written."""

    def __init__(self, engine):
        X = pd.DataFrame({"v": [0.5, 1.5, 2.5, 3.5], "d": pd.date_range("2024-01-31", periods=4)})
        self.scorer = Scorer(bg.NaiveBayesClassifier({"d": "date"}).fit(X, list("abab")), engine)

    def numbers(self, asked):
        """Return a number, None for a gap, or the words of the refusal, of texts under their readings."""
        given = []
        for reading, text, known in asked:
            about = {"kind": "number", "name": "v", "limits": reading.limits, "bare": "v" in reading.bare}
            about["unit"] = "%" if "v" in reading.percent else reading.units.get("v", "")
            about |= {"programs": True} if "v" in reading.plain else {}
            about |= {"fraction": False} if known.get("whole") else {}
            about |= {"meant": dict(reading.numerals("v").meant)}
            signs = {"decimal": reading.decimal, "thousands": reading.thousands, "missing": reading.missing}
            given.append([about, text, signs, list(known.get("beside", ()))])
        read = "try { return valueOf(...one); } catch (e) { return e.message.slice(0, -1); }"  # without the full stop
        return self.scorer.ask(f"asked.map((one) => {{ {read} }})", asked=given)


@pytest.fixture(scope="module")
def reader():
    with MiniRacer() as engine:
        yield Reader(engine)


def in_python(reading, text, known):
    """Return the number, None for a gap, or the words of the refusal."""
    try:
        value = reading.number(text, "v", known.get("beside", ()), known.get("whole", False), reading.limits)
    except ValueError as error:
        return str(error).partition(": ")[2]
    return None if np.isnan(value) else value


def test_the_list_of_cases_is_read_by_python_and_by_scripts(reader):
    found = reader.numbers([(reading, text, known) for reading, text, _, known in CASES])
    for (reading, text, expected, known), there in zip(CASES, found, strict=True):
        for what in (in_python(reading, text, known), there):
            if isinstance(expected, str):
                assert isinstance(what, str) and expected in what, (reading, text, what)
            else:
                assert what == (None if np.isnan(expected) else expected), (reading, text, what)
        if isinstance(expected, str):  # in the same words
            assert in_python(reading, text, known) == there


def test_the_grammar_is_written_twice_in_the_same_signs(reader):
    ways = [{"decimal": way.decimal, "thousands": way.thousands, "limits": limits} for way in WAYS for limits in (0, 1)]
    found = reader.scorer.ask("ways.map(numeralPattern)", ways=ways)
    own = [Numerals(w["decimal"], w["thousands"], bool(w["limits"])).pattern for w in ways]
    assert found == own


UNITS = ["\u00b0C", "mg/l", "%", "$", "h."]
SIGNS = [
    *"0123456789",
    *"0123456789",
    *".,.,-+()% eE'",
    "\u2019",
    "\u00a0",
    "\u202f",
    "\u2212",
    "\u2013",
    "<",
    "\u2264",
    *UNITS,
]


def accounts(rng, count):
    """Yield accounts of files, and what else is known of a column."""
    for _ in range(count):
        way = WAYS[rng.integers(len(WAYS))]
        unit = {"v": str(rng.choice([u for u in UNITS if u != "%"]))} if rng.random() < 0.2 else {}
        percent = ("v",) if not unit and rng.random() < 0.1 else ()
        plain = ("v",) if rng.random() < 0.05 else ()
        known = {"whole": bool(rng.random() < 0.4), "beside": [str(rng.choice(UNITS))] if rng.random() < 0.1 else []}
        bare, limits = ("v",) if unit and rng.random() < 0.3 else (), bool(rng.random() < 0.2)
        yield Reading(",", way.decimal, way.thousands, plain, unit, bare, limits, percent=percent), known


def text_of(rng, reading):
    """Return a text: a number as an office writes it, mostly the one of the account, or signs at random."""
    if rng.random() < 0.1:
        return "".join(rng.choice(SIGNS, rng.integers(0, 9)))
    if rng.random() < 0.1:
        return f"{rng.integers(1, 1000)}{rng.choice(['.', ','])}{rng.integers(0, 1000):03}"
    way = reading.numerals() if rng.random() < 0.6 else WAYS[rng.integers(len(WAYS))]
    value = rng.choice([rng.normal(0, 10.0 ** rng.integers(0, 8)), float(rng.integers(0, 2_000_000))])
    text = f"{value:,.{rng.integers(0, 5)}f}".translate({44: way.thousands, 46: way.decimal})
    if rng.random() < 0.1:
        text = f"{value:.{rng.integers(0, 5)}e}".replace(".", way.decimal)
    place = rng.integers(len(text) + 1)
    if rng.random() < 0.15:
        text = text[:place] + rng.choice(SIGNS) + text[place + rng.integers(0, 2) :]
    unit = "%" if "v" in reading.percent else reading.units.get("v", "")
    unit = unit if rng.random() < 0.9 else rng.choice(UNITS)
    text = rng.choice([f"{text} {unit}", text + unit, f"{unit} {text}"]).strip() if unit else text
    return str(
        rng.choice([f"({text})", f"{text}-", f" {text}", f"<{text}", f"-{text}"]) if rng.random() < 0.2 else text
    )


@pytest.mark.parametrize("count", [600, pytest.param(20_000, marks=pytest.mark.slow)])
def test_texts_at_random_are_the_same_number_or_refused_in_the_same_words(reader, count):
    rng = np.random.default_rng(count)
    asked = [(reading, text_of(rng, reading), known) for reading, known in accounts(rng, count)]
    found, numbers, two = reader.numbers(asked), 0, 0
    for (reading, text, known), there in zip(asked, found, strict=True):
        here = in_python(reading, text, known)
        refused = [isinstance(one, str) and re.sub("Write.*|write.*", "", one) for one in (here, there)]
        assert refused[0] == refused[1] if refused[0] else here == there, (reading, text, known, here, there)
        numbers += isinstance(here, float)
        two += isinstance(here, str) and "?" in here
    print(f"{count} texts: {numbers} numbers, {two} of two readings, {count - numbers - two} refused or gaps")
    assert numbers > 2 * count / 5 and two > count / 50


def test_a_text_alone_is_what_a_file_of_it_is(tmp_path):
    """`predict` reads a later file by the same grammar, whose column has one entry."""
    plain = bg.NaiveBayesClassifier("gaussian").fit(pd.DataFrame({"v": [0.5, 1.5, 2.5, 3.5]}), list("abab"))
    rng = np.random.default_rng(1)
    asked = [(reading, text, known) for reading, text, _, known in CASES]
    asked += [(reading, text_of(rng, reading), known) for reading, known in accounts(rng, 200)]
    numbers = 0
    for reading, text, _ in asked:
        plain.schema_ = replace(plain.schema_, reading=replace(reading, sep=";"), whole=())
        (tmp_path / "v.csv").write_text(pd.DataFrame({"v": [text], "w": [1]}).to_csv(sep=";", index=False))
        here = in_python(reading, text, {})
        try:
            there = float(bg.read_table(tmp_path / "v.csv", like=plain)[0]["v"][0])
        except ValueError:
            there = None
        if isinstance(here, float) and here == here:
            assert there == here, (reading, text, here, there)
            numbers += 1
        else:  # an infinite number is refused later, with the row
            assert there is None or not np.isfinite(there), (reading, text, here, there)
    assert numbers > len(asked) / 4


LANGUAGES = [
    "en",
    "de",
    "fr",
    "de-CH",
    "en-IN",
    "hi",
    "ar",
    "fa",
    "sv",
    "pl",
    "es",
    "pt-BR",
    "nb",
    "et",
    "he",
    "zh",
    "en-ZA",
]


def test_what_is_shown_is_read_again(reader):
    """In every language and by the signs of every file, of any size, in columns of whole numbers too."""
    rng = np.random.default_rng(0)
    sizes = [10.0**power for power in range(-12, 22)]
    values = [0.0, 1.234, 12.34, 1234.0, 123456.0, -0.5, 1.2, 1e300, 1e-300]
    values += [float(rng.normal(0, size)) for size in sizes for _ in range(3)]
    columns = [
        {"kind": "number", "name": "v"} | known
        for known in ({}, {"fraction": True}, {"fraction": False}, {"programs": True})
    ]
    ways = "[...languages.map((one) => signsOf(one)), ...files.map((one) => ({ ...one, missing: [], language: 'en' }))]"
    files = [{"decimal": way.decimal, "thousands": way.thousands} for way in WAYS]
    text = f"""{ways}.flatMap((signs) => columns.flatMap((column) => values.map((value) => {{
        const text = written(column, value, signs);
        return [text, valueOf(column, text, signs), Number(value.toPrecision(4)), signs.decimal];
    }})))"""
    found = reader.scorer.ask(text, languages=LANGUAGES, files=files, columns=columns, values=values)
    assert len(found) == (len(LANGUAGES) + len(WAYS)) * len(columns) * len(values)
    for text, again, value, _ in found:
        assert again == value, (text, again, value)
    shown = reader.scorer.ask("languages.map((one) => grouped(38000.5, signsOf(one), {}))", languages=LANGUAGES)
    assert shown[:4] == ["38,000.5", "38.000,5", "38\u202f000,5", "38\u2019000.5"]


def test_dates_are_the_same_day_or_refused(reader):
    rng, forms = np.random.default_rng(0), ["", *FORMATS]
    asked = [["2023-02-31", ""], ["2024-02-29", ""], ["31.04.2024", "%d.%m.%Y"], ["2026-W53", ""], ["2024-W53", ""]]
    for _ in range(600):
        year, month, day = rng.integers(1990, 2040), rng.integers(1, 14), rng.integers(1, 33)
        date = pd.Timestamp(int(year), int(min(month, 12)), int(min(day, 28)))
        texts = [
            f"{year}-{month:02}-{day:02}",
            f"{day}.{month}.{year}",
            f"{month:02}/{day:02}/{year}",
            f"{day}-{month}-{year}",
        ]
        texts += [
            f"{year}-{month:02}",
            f"{month}/{year}",
            f"{date:%B %Y}",
            f"{date:%b. %Y}",
            f"{year}-Q{month % 5}",
            f"Q{month % 5} {year}",
        ]
        texts += [f"{year}-W{day * 2:02}", f"{year}{month:02}{day:02}", f"{date:%A}", f"{day}.{month}.{year % 100}"]
        text = rng.choice(texts) + rng.choice(["", "", "", " 12:30", "T24:00", " 9:05:06.5", "T12:30Z", " 12:30+02:00"])
        asked.append([str(text), str(rng.choice(forms))])
    found = reader.scorer.ask("asked.map(([text, form]) => daysOfDate(text, { form }))", asked=asked)
    known = 0
    for (text, form), there in zip(asked, found, strict=True):
        try:
            here = days(np.array([text], object), "v", form)[0]
        except ValueError:
            here = None
        assert (here is None) == (there in (None, "NaN")) and (here is None or abs(here - there) < 1e-9), (
            text,
            form,
            here,
            there,
        )
        known += here is not None
    assert known > 150


def clinic(rows=120):
    """The text of a file as an office writes it, and the table of it."""
    rng = np.random.default_rng(3)
    sick = rng.random(rows) < 0.4

    def german(value, places):
        return f"{value:,.{places}f}".translate({44: ".", 46: ","})

    heat, ferritin, rate = rng.normal(37 + sick, 0.6), np.exp(rng.normal(6 + sick, 1)), rng.random(rows) * 100
    lines = ["Nr;Fieber;Ferritin;Rate;CRP;Aufnahme;Geschlecht;Sepsis"]
    for i in range(rows):
        crp = rng.gamma(2.0)
        day = pd.Timestamp("2024-01-01") + pd.Timedelta(days=int(rng.integers(400)))
        lines.append(";".join([
            f"P{i:03}", f"{german(heat[i], 1)} \u00b0C", german(ferritin[i], 0), f"{german(rate[i], 1)} %",
            "<0,5" if crp < 0.5 else german(crp, 2), f"{day:%d.%m.%Y}", "mw"[int(rng.integers(2))],
            "ja" if sick[i] else "nein",
        ]))  # fmt: skip
    return "\n".join(lines) + "\n"


def test_rows_pasted_from_the_file_of_the_fit_are_answered_as_in_python(tmp_path, paged):
    (tmp_path / "t.csv").write_text(clinic())
    options = {"id": "Nr", "date": "Aufnahme", "decimal": ",", "thousands": ".", "limits": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table, account = bg.read_table(tmp_path / "t.csv", "Sepsis", **options)
        classifier = bg.NaiveBayesClassifier(account.features).fit(table.drop(columns="Sepsis"), table["Sepsis"])
    assert classifier.schema_.reading.units == {"Fieber": "\u00b0C"}
    p = classifier.predict_proba(table.drop(columns="Sepsis"))
    page = paged(classifier)
    for text in (clinic(), clinic().replace(";", "\t")):
        status, lines = page.pasted(text)
        assert status == "Answered: 120."
        found = np.array([[float(cell.replace(",", ".")) for cell in line[4:6]] for line in lines[1:]])
        assert np.abs(found - p).max() < 1e-11
    with scorer(classifier) as made:
        names, *rows = [line.split(";") for line in clinic().splitlines()]
        rows = [dict(zip(names, row, strict=True)) for row in rows]
        assert np.abs(np.array(made.ask("rows.map((row) => predictProba(parse(row)))", rows=rows)) - p).max() < 1e-12


def answers(rows=90):
    """Return a file in which a sex is spelled in five ways, a tick or nothing is an answer, and 999 an unknown age."""
    rng = np.random.default_rng(0)
    sick = rng.random(rows) < 0.5
    sex = rng.choice(["m", "M", "w", "W ", "weiblich"], rows)
    age = np.where(rng.random(rows) < 0.1, "999", (50 + 8 * rng.normal(size=rows)).round().astype(int).astype(str))
    tick = np.where(rng.random(rows) < 0.3 + 0.3 * sick, "x", "")
    label = np.where(sick, rng.choice(["ja", "Ja"], rows), "nein")
    return pd.DataFrame({"sex": sex, "age": age, "tick": tick, "y": label})


def test_of_a_parquet_file_gaps_of_a_column_alone_are_said(tmp_path):
    answers().astype({"age": int}).to_parquet(tmp_path / "t.parquet")
    table, account = bg.read_table(tmp_path / "t.parquet", "y", missing="age=999", same="sex=m,M")
    assert table["age"].isna().sum() == (answers()["age"] == "999").sum() > 0 and "M" in set(table["sex"])
    assert "same" in str(account)


def test_the_user_says_what_texts_of_a_column_mean(tmp_path, monkeypatch, paged):
    monkeypatch.chdir(tmp_path)
    rows = answers()
    rows.to_csv("t.csv", index=False)
    meant = {"sex": {"M": "m", "W ": "w", "weiblich": "w"}, "age": {"999": ""}, "tick": {"": "no"}, "y": {"Ja": "ja"}}
    rows.replace(meant).to_csv("plain.csv", index=False)
    cures = ["--missing", "age=999,-9", "--same", "sex=m,M", "--same", "sex=w,W,weiblich", "--blank", "tick=no"]
    cures += ["--same", "y=ja,Ja"]
    for file, said in (("t", cures), ("plain", [])):
        learn = (f"{file}.csv", "--target", "y", "--model", "nb", *said, "--output", f"{file}.safetensors")
        assert run(*learn, command="fit")[::2] == (0, "")
        ask = (f"{file}.safetensors", f"{file}.csv", "--output", f"{file}-p.csv")
        assert run(*ask, command="predict")[::2] == (0, "")
    assert Path("t-p.csv").read_bytes() == Path("plain-p.csv").read_bytes()
    classifier, plain = bg.load("t.safetensors"), bg.load("plain.safetensors")
    p = plain.predict_proba(bg.read_table("plain.csv", like=plain)[0])
    classifier.predict_batches("t.csv", "batches.parquet")
    assert np.abs(pd.read_parquet("batches.parquet")[["p_ja", "p_nein"]].to_numpy() - p).max() < 1e-12
    status, lines = paged(classifier).pasted(rows.to_csv(index=False))
    found = [[float(cell) for cell in line[3:5]] for line in lines[1:]]
    assert status == f"Answered: {len(rows)}." and np.abs(np.array(found) - p).max() < 1e-11
    with scorer(classifier) as made:
        got = made.ask("rows.map((row) => predictProba(parse(row)))", rows=rows.to_dict("records"))
        assert np.abs(np.array(got) - p).max() < 1e-12
    for option, value, words in (
        ("--same", "sex", "sex=m,M"),
        ("--blank", "=no", "sex=m,M"),
        ("--missing", "agee=9", "'agee'"),
    ):
        code, _, err = run("t.csv", "--target", "y", option, value, command="fit")
        assert code == 2 and words in err
