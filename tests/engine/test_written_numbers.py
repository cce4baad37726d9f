"""Numbers as offices write them, a column at a time, and fields of a file, whose type no place of theirs tells."""

import re
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engine.test_office_numbers import NB
from refusals import refuses

import bayesgen as bg
from bayesgen.sheets.files import read
from bayesgen.tables.numerals import Numerals, read_column, unread
from bayesgen.tables.text import column_of


def column(texts, **how):
    return read_column(pa.array(texts), how=Numerals(**how))


READ = {  # texts, how they are written, what they are; None where they stay text
    "percent and an unsaid comma": (["59,9%", "60%"], {}, None),
    "whole thousands": (["1.898", "12.000"], {"decimal": ",", "thousands": "."}, [1898, 12000]),
    "groups of three alone": (["1.89,7", "12"], {"decimal": ",", "thousands": "."}, None),
    "limits": (["<0.5", "0.7", "> 9", "\u2264 2", ">=3"], {"limits": True}, [0.25, 0.7, 9, 1, 3]),
    "limits of whole numbers": (["<5", "7", "8"], {"limits": True}, [2.5, 7, 8]),
    "unsaid limits": (["<0.5", "0.7"], {}, None),
    "all of it": (["<1.898,5 %", "12"], {"decimal": ",", "thousands": ".", "limits": True}, [949.25, 12]),
    "exponents": (["1,5e3", "2E-1"], {"decimal": ","}, [1500, 0.2]),
    "codes": (["007%", "12%"], {}, None),
    "a word": (["59.9%", "60%", "pending"], {}, None),
    "dates": (["1.2.2024", "31.12.2024"], {"decimal": ",", "thousands": "."}, None),
    "gaps": (["59.9%", "", "NA", "n/a"], {}, [59.9, np.nan, np.nan, np.nan]),
    "gaps alone": (["", "", ""], {"decimal": ",", "thousands": "."}, None),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_numbers_are_read_as_they_are_said_to_be_written(case):
    texts, how, values = READ[case]
    found = column(texts, **how)
    if values is None:
        assert found.values.dtype.kind == "O" and found.percent == "" and found.limited is None
    else:
        np.testing.assert_allclose(found.values.to_numpy(dtype=float, na_value=np.nan), values, rtol=1e-15)
    assert bool(found.percent) == (values is not None and any("%" in text for text in texts))
    if how.get("limits") and values is not None:
        assert found.limited is not None
        assert found.limited.tolist() == [bool(re.match("[<>\u2264]", text)) for text in texts]


@pytest.mark.parametrize("odd", ["12.5", "0.5", "500.00", "4.0000"])
def test_no_way_is_taken_but_the_one_that_was_said(odd, tmp_path):
    rows = [f"{40 + i}.{100 + i};a" if i % 2 else f"{1 + i}.{100 + i};b" for i in range(40)]
    path = tmp_path / "t.csv"
    path.write_text("pop;t\n" + "\n".join(rows) + "\n")
    table, _ = bg.read_table(path, "t", **(how := {"sep": ";", "decimal": ",", "thousands": "."}))
    assert table["pop"].iloc[0] == 1100
    classifier = NB().fit(table[["pop"]], table["t"])
    path.write_text("pop;t\n" + "\n".join(rows) + f"\n{odd};b\n")
    words = f"column 'pop': '{re.escape(odd)}' in row 40 is no number with a point between thousands"
    for call in (
        lambda: bg.read_table(path, "t", **how),
        lambda: bg.read_table(path, like=classifier),
        lambda: [*classifier.predict_batches(path, progress=False)],
    ):
        refuses(call, words)


@pytest.mark.parametrize("odd", ["1_000", "\u0664\u0660", "\uff11\uff12", "1" + 6400 * " " + "x"])
def test_what_only_python_takes_for_a_number_is_text(odd, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x;z;t\n" + "".join(f"{i}.5;{i % 7};{'ab'[i % 2]}\n" for i in range(40)))
    table, _ = bg.read_table(path, "t", sep=";")
    classifier = NB().fit(table[["x", "z"]], table["t"])
    path.write_text(path.read_text() + f"{odd};3;a\n")
    start = time.process_time()
    _, account = bg.read_table(path, "t", sep=";")
    assert "taken as missing among numbers" in str(account) and time.process_time() - start < 1
    refuses(lambda: bg.read_table(path, like=classifier), "column 'x'")


def test_text_is_left_as_it_is_where_it_is_said_to_be_text():
    found = read_column(pa.array(["1,5", "59%"]), (), "text", Numerals(","))
    assert found.values.tolist() == ["1,5", "59%"]


@pytest.mark.parametrize("seed", range(5))
def test_what_was_written_is_read_back(seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=300) * 10.0 ** rng.integers(-3, 9, 300), 4)
    for decimal, thousands in ((",", "."), (".", ","), (".", "'"), (",", " "), (",", "")):
        texts = [f"{v:,.4f}".replace(",", "T").replace(".", decimal).replace("T", thousands) for v in values]
        texts = [text + rng.choice(["", "%", " %"]) for text in texts]
        found = column(texts, decimal=decimal, thousands=thousands)
        np.testing.assert_array_equal(found.values.to_numpy(dtype=float), values)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"decimal": ";"}, "stands a point or a comma, not ';'"),
        ({"thousands": "x"}, "between thousands stands one of . , ' and a blank, not 'x'"),
        ({"thousands": "."}, "'.' cannot stand both .* give the decimal sign ','"),
        ({"decimal": ",", "thousands": ","}, "',' cannot stand both .* give the decimal sign '.'"),
    ],
)
def test_ways_that_nobody_writes_are_refused(how, words):
    refuses(lambda: Numerals(**how), words)


HINTS = {  # texts, arguments that read them (for each way), the entry that is shown, the word
    "a comma": (["10,6", "3"], ["decimal=','"], "10,6", None),
    "percent": (["10.6%", "3%"], [""], "10.6%", None),
    "points": (["1.898,7", "3,5"], ["decimal=',', thousands='.'"], "1.898,7", None),
    "either": (["1,898", "12,345"], ["decimal=','", "thousands=','"], "1,898", None),
    "commas": (["1,898,000", "12,345"], ["thousands=','"], "1,898,000", None),
    "limits": (["<0.5", *map(str, range(20))], ["limits=True"], "<0.5", None),
    "a word": (["pending", *(f"{i}%" for i in range(20))], ["missing='x=pending'"], "0%", "pending"),
    "few words": (["<18", "18-65", ">65"], None, "", None),
    "few limits": (["<5", "5", ">5"], None, "", None),
    "plain": (["1.5", "2"], None, "", None),
    "words": (["red", "blue"], None, "", None),
    "codes": ([f"A{i}" for i in range(30)], None, "", None),
    "half": (["1,5", "a"], None, "", None),
    "nothing": ([], None, "", None),
}


@pytest.mark.parametrize("case", HINTS)
def test_a_column_of_text_that_would_be_numbers_is_known(case):
    texts, ways, entry, word = HINTS[case]
    found = unread(texts)
    if ways is None:
        assert found is None
    else:
        assert found is not None
        assert [", ".join(map(str, way)) for way in found.cures("x")] == ways
        assert (found.entry, next(iter(found.words), None)) == (entry, word)


TELLING = {  # a field among many whole numbers -> what the column is, and what that field is
    "7": ("i", 7),
    "+5": ("i", 5),
    " 6 ": ("i", 6),
    "1.5": ("f", 1.5),
    "1e3": ("f", 1000.0),
    "18446744073709551615": ("u", 2**64 - 1),
    "99999999999999999999": ("f", 1e20),
    "007": ("text", "007"),
    "-01": ("text", "-01"),
    "0x1F": ("text", "0x1F"),
    "1_000": ("text", "1_000"),
    "x": ("text", "x"),
    "NA": ("gap", None),
    "": ("gap", None),
}


@pytest.mark.parametrize("place", (0, 17, 500, 999))
@pytest.mark.parametrize("field", TELLING)
def test_one_field_among_many_tells_the_type(field, place):
    fields = [str(i % 50 + 1) for i in range(1000)]
    fields[place] = field
    kind, value = TELLING[field]
    column, gaps = column_of(pd.Series(fields, dtype=object))
    rest = [v for i, v in enumerate(column.tolist()) if i != place]
    if kind == "text":
        assert column.tolist() == fields and not len(gaps)
    elif kind == "gap":
        assert column.dtype == "Int64" and column.isna().to_numpy().nonzero()[0].tolist() == [place]
        assert gaps.to_dict() == {place: field} and rest == [i % 50 + 1 for i in range(1000) if i != place]
    else:
        assert column.dtype.kind == kind and column[place] == value and not len(gaps)
        assert rest == [i % 50 + 1 for i in range(1000) if i != place]


def test_numbers_with_a_fraction_among_leading_zeros_and_hexadecimals():
    fields = [f"{0.25 * i}" for i in range(400)]
    assert column_of(pd.Series(fields))[0].tolist() == [0.25 * i for i in range(400)]
    for field, text in (("00.5", True), ("0x1", True), ("-0.5", False), ("0", False)):
        column, _ = column_of(pd.Series([*fields, field, "0.125"]))
        assert (column.iloc[400] == field) if text else (column.iloc[400] == float(field))
    assert column_of(pd.Series([*fields, "00.5"]), kind="number")[0].iloc[400] == 0.5


def test_arrow_and_pandas_read_the_same_file(tmp_path):
    """Quotes, a line break in a field, a byte order mark; a row too short goes to pandas."""
    path = tmp_path / "t.csv"
    text = 'n,"a b",z\r\n1.5,"x, ""y""","two\r\nlines"\r\n,é,01\r\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    found = read(str(path))
    plain = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert list(found.table) == list(plain) == ["n", "a b", "z"]
    np.testing.assert_array_equal(found.table["n"], [1.5, np.nan])
    assert found.table[["a b", "z"]].to_numpy().tolist() == plain[["a b", "z"]].to_numpy().tolist()
    path.write_bytes(text.encode() + b"2\r\n")
    assert read(str(path)).table["n"].tolist()[::2] == [1.5, 2.0]


def test_text_that_is_not_utf8_far_down_says_so(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"size,colour\n" + b"1,blue\n" * 100_000 + "2,grün\n".encode("latin-1"))
    refuses(lambda: read(str(path)), "not UTF-8")


@pytest.mark.parametrize("fields", [["1", "2", "-999"], ["1.5", "2.25", "-999"], ["1.0", "-999", "3"]])
def test_a_number_that_means_a_gap_is_one_among_plain_numbers(fields):
    column, gaps = column_of(pd.Series(fields), {"-999"})
    assert column.isna().tolist() == [field == "-999" for field in fields] and gaps.tolist() == ["-999"]
