"""Tables that the learning page reads: as `read_table` and a fitted naive Bayes read the same file, or refused."""

import csv
import io
import json
import re
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from py_mini_racer import MiniRacer

import bayesgen as bg
from bayesgen.export.wording import packaged
from bayesgen.tables.table import Table
from bayesgen.tables.text import SUMS

WAYS = [(".", ""), (".", ""), (",", ""), (",", "."), (".", ","), (".", "'"), (",", " ")]
NAMES = [
    "__proto__",
    "constructor",
    "toString",
    "</script>",
    "x\u00a0y",
    "\U0001f600",
    "\uff5e",
    "a;b,c",
    'say "x"',
    "=1+2",
    "2019",
]
WORDS = [
    "b",
    "a",
    "B",
    "\u00e4",
    "z",
    "\U0001f600",
    "\uff5e",
    "=1+2",
    "__proto__",
    "constructor",
    'q"q',
    "NA",
    "1.0",
    " a",
    "x,y;z",
    "two\nlines",
]


SIGNED = ["-0", "+5", "(7)", "8-", "\u22129", " 6 "]


def numbers(rng, n, way):
    """Return numbers as a file of the way has them."""
    decimal, thousands = way
    size, places = 10.0 ** rng.integers(-1, 6), int(rng.integers(0, 4))
    texts = [f"{v:,.{places}f}" for v in rng.normal(rng.choice([0, 3, 50]) * size, size, n)]
    return [t.translate({44: thousands, 46: decimal}) for t in texts]


def few(rng, texts, words, share):
    """Return texts with some of them words."""
    return [str(rng.choice(words)) if rng.random() < share else text for text in texts]


def levels(rng, n, words):
    return [str(w) for w in rng.choice(words, n)]


KINDS = {
    "numbers": lambda rng, n, way: numbers(rng, n, way),
    "gaps": lambda rng, n, way: few(rng, numbers(rng, n, way), ["", "NA", "nan", "#N/A"], 0.3),
    "programs": lambda rng, n, way: [repr(float(v)) for v in rng.normal(size=n)],
    "offset": lambda rng, n, way: [f"{1e9 + v:.6f}".replace(".", way[0]) for v in rng.normal(size=n)],
    "sizes": lambda rng, n, way: [f"{v * 10.0 ** rng.integers(-40, 40):.5e}" for v in rng.normal(size=n)],
    "far": lambda rng, n, way: few(rng, [repr(float(v)) for v in rng.normal(size=n)], ["1e999", "-1e200", "0"], 0.1),
    "thousandths": lambda rng, n, way: [f"{rng.integers(1, 20)}{way[0]}{rng.integers(1000):03}" for _ in range(n)],
    "points": lambda rng, n, way: [f"{rng.integers(1, 20)}.{rng.integers(1000):03}" for _ in range(n)],
    "whole": lambda rng, n, way: [str(v) for v in rng.integers(-30, 400, n)],
    "ties": lambda rng, n, way: [str(v) for v in rng.integers(0, 4, n)],
    "bits": lambda rng, n, way: [str(v) for v in rng.integers(0, 2, n)],
    "bools": lambda rng, n, way: few(rng, levels(rng, n, ["True", "False"]), ["", "true", "FALSE", "null"], 0.2),
    "signs": lambda rng, n, way: few(rng, [str(v) for v in rng.integers(2, 90, n)], SIGNED, 0.3),
    "percent": lambda rng, n, way: [f"{t}%" for t in numbers(rng, n, way)],
    "constant": lambda rng, n, way: ["7"] * n,
    "rows": lambda rng, n, way: [str(v) for v in range(1, n + 1)],
    "shuffled": lambda rng, n, way: [str(v) for v in rng.permutation(n)],
    "years": lambda rng, n, way: [str(1900 + v) for v in range(n)],
    "nothing": lambda rng, n, way: [""] * n,
    "levels": lambda rng, n, way: few(rng, levels(rng, n, WORDS[: rng.integers(2, len(WORDS))]), ["", "rare"], 0.1),
    "sparse": lambda rng, n, way: levels(rng, n, ["a"] * 30 + ["b", ""]),
    "codes": lambda rng, n, way: levels(rng, n, ["01", "1", "2", "10", "1.0"]),
    "padded": lambda rng, n, way: [f"{v:05}" for v in rng.integers(0, 60, n)],
    "twins": lambda rng, n, way: levels(rng, n, ["1", "1.0", "1.50", "1.5", "x", "-0", "0"]),
    "formula": lambda rng, n, way: levels(rng, n, ['="007"', '="01"', "x"]),
    "blank": lambda rng, n, way: few(rng, numbers(rng, n, way), ["  "], 0.05),
    "names": lambda rng, n, way: [f"P{v:03}" for v in range(n)],
    "dates": lambda rng, n, way: [f"2024-{m:02}-{d:02}" for m, d in rng.integers(1, 12, (n, 2))],
    "short dates": lambda rng, n, way: [f"{d}.{m}.24" for m, d in rng.integers(1, 12, (n, 2))],
    "clocks": lambda rng, n, way: [f"{h}:{m:02}" for h, m in rng.integers(0, 24, (n, 2))],
    "units": lambda rng, n, way: [f"{t} {rng.choice(['kg', 'kg', 'g'])}" for t in numbers(rng, n, way)],
    "flats": lambda rng, n, way: [f"{v}A" for v in rng.integers(1, 30, n)],
    "limits": lambda rng, n, way: few(rng, numbers(rng, n, way), ["<0.5"], 0.02),
    "word": lambda rng, n, way: few(rng, numbers(rng, n, way), ["?", "n.d.", "unknown"], 0.03),
    "words": lambda rng, n, way: few(rng, numbers(rng, n, way), ["low", "high"], 0.4),
    "ages": lambda rng, n, way: levels(rng, n, ["<18", "18", "19", ">19"]),
    "wide": lambda rng, n, way: [str(9007199254740993 + v) for v in rng.integers(0, 9, n)],
}  # fmt: skip
USUAL = ["numbers", "gaps", "whole", "levels", "bools", "ties", "bits", "sparse"]
LEFT_OUT = {  # which Python reads by its own rules, or by an option
    "percent", "dates", "short dates", "clocks", "wide", "units", "flats", "limits", "blank", "word", "words", "ages",
    "twins",
}  # fmt: skip
TOLD = ("numbers of two readings", "constant", "no value", "numbers of the rows", "names of the rows")


def table(rng):
    """Return the text of a table with a column y, and the kind of each of its columns by name."""
    n = int(rng.choice([4, 12, 40, 130, 400], p=[0.1, 0.2, 0.4, 0.2, 0.1]))
    way = WAYS[rng.integers(len(WAYS))]
    kinds = [*rng.choice(USUAL, rng.integers(1, 4)), *rng.choice([*KINDS], rng.integers(1, 5))]
    names = [str(name) for name in rng.permutation([*NAMES, *"abcdef"])[: len(kinds)]]
    columns = {name: KINDS[kind](rng, n, way) for name, kind in zip(names, kinds, strict=True)}
    y = levels(rng, n, [["u", "v"], ["0", "1", "2"], ["True", "False"], ["1,0", "2,0", "10,0"], WORDS][rng.integers(5)])
    columns["y"] = few(rng, y, [""], 0.1) if rng.random() < 0.3 else y
    sep = str(rng.choice([",", ";", "\t", "|"], p=[0.5, 0.3, 0.1, 0.1]))
    file, end = io.StringIO(), rng.choice(["\n", "\r\n"])
    quoting = csv.QUOTE_ALL if rng.random() < 0.1 else csv.QUOTE_MINIMAL
    writer = csv.writer(file, delimiter=sep, lineterminator=str(end), quoting=quoting)
    order = list(rng.permutation([*columns]))
    writer.writerow(order)
    writer.writerows(zip(*(columns[name] for name in order), strict=True))
    text = file.getvalue()
    text = text.rstrip("\r\n") if rng.random() < 0.2 else text
    return ("\ufeff" if rng.random() < 0.2 else "") + text, dict(zip(names, kinds, strict=True))


ASK = """asked.map(([text, wanted, said]) => {
  const number = (v) => (Object.is(v, -0) ? "-0" : String(v)); // which JSON does not have
  const plain = ({ values, codes, ...one }) => (
    { ...one, values: values && [...values].map(number), codes: codes && [...codes] });
  try {
    const table = readTable(text, words), { target, columns, signs } = columnsFor(table, "y", new Map(wanted), said);
    return { classes: target.classes, y: [...target.codes], columns: columns.map(plain), signs, sep: table.sep };
  } catch (error) { return { error: error.message }; }
})"""


def in_script(asked, ask=ASK):
    """Return what the script makes of texts, each with kinds that the user says and signs."""
    given = f"const asked = JSON.parse({json.dumps(json.dumps(asked))}), words = {json.dumps({'sums': SUMS})};"
    with MiniRacer() as engine:
        engine.eval(packaged("texts.js") + packaged("elements.js") + packaged("learn_table.js"))
        return json.loads(str(engine.eval(f"(() => {{{given} return JSON.stringify({ask})}})()")))


ROLES = {"number": "number", "category": "categorical", "bool": "bernoulli", "count": "count", "unused": "drop"}
KIND = {"bernoulli": "bool", "poisson": "count"}


def assert_alike(path, text, there):
    """Hold what the script made of a table against Python's by the roles that it says, and return the columns used."""
    path.write_bytes(text.encode())
    roles: Any = {
        role: [one["name"] for one in there["columns"] if one["kind"] == kind] for kind, role in ROLES.items()
    }
    used = {one["name"]: one for one in there["columns"] if one["kind"] != "unused"}
    if not used or len(there["classes"]) < 2:
        return {}
    signs: Any = {name: there["signs"][name] for name in ("decimal", "thousands")}
    with warnings.catch_warnings(action="ignore"):
        read, account = bg.read_table(path, "y", sep=there["sep"], **signs, **roles)
        X, y = read.drop(columns="y"), read["y"]
        classifier = bg.NaiveBayesClassifier(account.features).fit(X, y)
    schema: Any = classifier.schema_
    rows, codes = schema.read(Table(X)), np.array(there["y"])
    assert there["classes"] == classifier.classes_.tolist()
    assert np.array_equal(np.flatnonzero(codes >= 0), account.rows)
    assert np.array_equal(codes[codes >= 0], np.searchsorted(classifier.classes_, y.to_numpy(str)))
    assert {*used} == {*schema.columns}
    for block, place, name in [(b, *column) for b in schema.blocks for column in enumerate(b.columns)]:
        one, values = used[name], np.asarray(rows[block.name], float)
        values = values if block.single else values[:, place]
        assert one["kind"] == ("category" if block.categories is not None else KIND.get(str(block.leaf), "number"))
        found = np.array(one["values"] or one["codes"], float)[codes >= 0]
        if one["kind"] == "category":
            assert one["categories"] == list(block.categories or ()), name
            found = np.where(found == -1, np.nan, found)
        elif one["kind"] != "bool":
            meant = dict(schema.reading.numerals(name).meant)  # texts of numbers too far out, which are gaps
            assert one["by"] == schema.texts_of(name) | ({"meant": meant} if meant else {})
        assert np.array_equal(found, values, equal_nan=True), name
        assert np.array_equal(np.signbit(found[found == 0]), np.signbit(values[values == 0])), name
    return used


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_tables_at_random_are_read_as_python_reads_them(count, tmp_path):
    rng = np.random.default_rng(count)
    tables = [table(rng) for _ in range(count)]
    left, used, refused = Counter(), Counter(), Counter()
    for (text, kinds), there in zip(tables, in_script([(text, [], {}) for text, _ in tables]), strict=True):
        if "error" in there:
            refused[there["error"].rpartition(": ")[0]] += 1
            continue
        found = assert_alike(tmp_path / "t.csv", text, there)
        used.update(str(kinds[name]) for name in found)
        unused = {one["name"]: one["told"] for one in there["columns"] if one["kind"] == "unused"}
        why = {name: next((t for t in TOLD if told.startswith(t)), str(kinds[name])) for name, told in unused.items()}
        left.update(why.values())
    print(f"{count} tables; used: {dict(used)}; left out: {dict(left)}; refused: {dict(refused)}")
    usual = sum(number for kind, number in left.items() if kind not in LEFT_OUT and kind not in TOLD)
    assert usual <= 2 + used.total() / 100, left
    assert left[TOLD[0]] < used.total() / 5
    assert refused.total() - refused["cells hold formulas"] <= 1 + count / 100


def test_kinds_that_a_user_says_are_those_of_python(tmp_path):
    """Columns of codes as categories or numbers, row numbers kept, counts, and 0 and 1 as True and False."""
    rng, asked, kept = np.random.default_rng(3), [], Counter()
    for _ in range(24):
        n, way = 40, WAYS[rng.integers(len(WAYS))]
        columns = {kind: KINDS[kind](rng, n, way) for kind in ("numbers", "levels", "gaps")}
        said = dict(
            number=["padded", "rows", "bools", "gaps"],
            category=["ties", "codes", "bits", "numbers", "dates", "flats", "ages"],
            count=["ties", "whole"],
            bool=["bits", "bools"],
        )
        wanted = [(f"{kind}-{one}", kind, one) for kind, some in said.items() for one in rng.choice(some, 1)]
        columns |= {name: KINDS[one](rng, n, way) for name, _, one in wanted} | {"y": levels(rng, n, ["u", "v", ""])}
        asked.append(
            (pd.DataFrame(columns).to_csv(index=False, sep=";"), [(name, kind) for name, kind, _ in wanted], {})
        )
    for (text, wanted, _), there in zip(asked, in_script(asked), strict=True):
        used = assert_alike(tmp_path / "t.csv", text, there)
        kept.update(kind for name, kind in wanted if name in used)
    assert min(kept.values()) > 10, kept


def test_names_with_commas_and_blanks_keep_their_roles(tmp_path):
    text = ' x," x,y",y,"y,x"\n' + "".join(f"{i % 5}.5,{'pq'[i % 2]},{'uvw'[i % 3]},{i}/24\n" for i in range(30))
    (there,) = in_script([(text, [], {})])
    assert [*assert_alike(tmp_path / "t.csv", text, there)] == [" x", " x,y"]


def test_numbers_of_two_readings_are_asked_for(tmp_path):
    text = "n;a;y\n" + "".join(f"{i},100;{'pqq'[i % 3]};{'uv'[i % 2]}\n" for i in range(101, 125))
    before, *after = in_script([(text, [], said) for said in ({}, *SIGNS)])
    assert before["columns"][0]["told"] == "numbers of two readings: say which sign stands before the fraction."
    assert [*assert_alike(tmp_path / "t.csv", text, before)] == ["a"]
    for said, there in zip(SIGNS, after, strict=True):
        assert [*assert_alike(tmp_path / "t.csv", text, there)] == ["n", "a"]
        assert there["columns"][0]["values"][0] == ("101.1" if said["decimal"] == "," else "101100")


SIGNS = [{"decimal": ",", "thousands": "", "doubtful": []}, {"decimal": ".", "thousands": ",", "doubtful": []}]
ROWS = "a,b\n" + "1.5,x\n2.5,y\n" * 9


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "two columns"),
        ("a\n1\n", "two columns"),
        ("a,b\n", "no rows"),
        ("sales of 2024\n\n" + ROWS, "two columns|as many cells"),
        ("sep=;\n" + ROWS, "two columns|as many cells"),
        (ROWS + "1\n", "as many cells"),
        (ROWS + "a,b\n", "again below"),
        (ROWS.replace("a,b", "a,a"), '"a" twice'),
        (ROWS.replace("a,b", "a,"), "name every column"),
        (ROWS.replace("a,b", "1,2"), "name every column"),
        (ROWS.replace("a,b", "a,b\nkg,"), "has units"),
        (ROWS.replace("a,b", "a,b\n(m),(n)"), "has units"),
        (ROWS + "Summe,\n", "sums or a note"),
        (ROWS + '"open,\n', "as many cells"),
        ('="x",b\n1.5,x\n2.5,y\n', "formulas"),
        (ROWS + "\0,\n", "no text in UTF-8"),
        ('[{"a": 1, "b": 2}]', "JSON"),
    ],
)  # fmt: skip
def test_what_is_no_simple_table_is_refused_in_one_sentence(text, why):
    (found,) = in_script([(text, [], {})])
    assert re.search(why, found["error"])
    assert found["error"].endswith("`bayesgen look` reads it.")


def test_tables_too_large_are_refused_before_they_are_read():
    texts = [
        "a,b\n" + "1,2\n" * 20_001,
        ",".join(map(str, range(201))) + "\n" + "1," * 200 + "1\n",
        "a,b\n" + "x" * 20_000_001,
    ]
    for found in in_script([(text, [], {}) for text in texts]):
        assert "`bayesgen fit`" in found["error"]


@pytest.mark.parametrize("labels", [["a", ""], ["1.5", "2.5"], [""]])
def test_a_target_without_classes_is_refused(labels):
    (found,) = in_script([("x,y\n" + "".join(f"{i},{labels[i % len(labels)]}\n" for i in range(9)), [], {})])
    assert re.search("constant|numbers, and a class is one of few|no value", found["error"])


def test_cells_are_those_of_the_module_csv():
    """Quotes, separators and ends of lines in cells, and cells that are empty at an end."""
    rng, signs = np.random.default_rng(0), [*'ab ",;\t', "\n", "\r\n", "\u00e4"]
    tables = [
        [["".join(rng.choice(signs, rng.integers(0, 5))) for _ in range(3)] for _ in range(4)] for _ in range(200)
    ]
    asked = []
    for rows in tables:
        file = io.StringIO()
        csv.writer(file, delimiter=";", lineterminator=str(rng.choice(["\n", "\r\n"]))).writerows(rows)
        asked.append(file.getvalue().removesuffix("\r\n").removesuffix("\n"))
    assert in_script(asked, "asked.map((text) => cellsOf(text, ';'))") == tables
