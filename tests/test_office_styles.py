"""Files as offices write them, read at the first or second try: what a file tells by itself, what it leaves open."""

import datetime
import io
import re
import warnings

import commands
import numpy as np
import pandas as pd
import pytest
from offices import excel, run, written
from refusals import refuses
from rich.console import Console

import bayesgen as bg
from bayesgen.cli.report import terminal
from bayesgen.sheets import fields
from bayesgen.tables.reading import Reading

NB = bg.NaiveBayesClassifier
NAN = float("nan")


WAYS = {  # texts, what they are, and the options without which they are not read
    "decimal comma": (["1,5", "2,25", "3,75", "0,5"], [1.5, 2.25, 3.75, 0.5], {}),
    "points between thousands": (["1.898,7", "12.345,0", "3.210,5"], [1898.7, 12345, 3210.5], {}),
    "commas between thousands": (["1,898.7", "12,345.0", "3,210.5"], [1898.7, 12345, 3210.5], {}),
    "blanks between thousands": (["1 898,7", "12\u202f345,0", "3 210,5"], [1898.7, 12345, 3210.5], {}),
    "apostrophes between thousands": (["1'898.7", "12'345.0", "3\u2019210.5"], [1898.7, 12345, 3210.5], {}),
    "percent": (["59.9 %", "12 %", "7.5%", "100 %"], [59.9, 12, 7.5, 100], {}),
    "a limit, half of it": (["<0.5", "1.5", "2.5", "0.7"], [0.25, 1.5, 2.5, 0.7], {"limits": True}),
    "lakhs": (["7,37,712", "12,34,567.5", "1,08,934", "934"], [737712, 1234567.5, 108934, 934], {}),
    "dollars": (["$1,050.50", "-$2.25", "($3.75)", "$10.00"], [1050.5, -2.25, -3.75, 10], {}),
    "euro": (["1.001,50 €", "-2,25 €", "3,75\u00a0€", "10,00 €"], [1001.5, -2.25, 3.75, 10], {}),
    "words for a gap": (["1.5", "n/a", "2.5", "-"], [1.5, NAN, 2.5, NAN], {"missing": ["-"]}),
    "a question mark": (["1.5", "?", "2.5", "3"], [1.5, NAN, 2.5, 3], {"missing": ["?"]}),
    "days with points": (["31.12.2020", "01.02.2021", "15.03.2021"], [18627, 18659, 18701], {"date": "v"}),
    "days of programs": (["2020-12-31", "2021-02-01", "2021-03-15"], [18627, 18659, 18701], {"date": "v"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_column_is_read_as_an_office_writes_it(way, tmp_path):
    texts, want, options = WAYS[way]
    path = written(tmp_path, {"v": texts})
    plain, account = bg.read_table(path)
    read = "v" in plain and plain["v"].dtype.kind in "iuf"
    assert read == (not options) and account.notes  # else it is told
    table, _ = bg.read_table(path, "y", **options)
    np.testing.assert_allclose(table["v"], np.resize(want, 60), rtol=1e-12)
    model = NB().fit(table[["v", "w"]], table["y"])
    later, _ = bg.read_table(path, like=model)
    np.testing.assert_array_equal(later["v"], table["v"])
    batches = pd.concat(model.predict_batches(path, progress=False)).filter(like="p_")
    np.testing.assert_allclose(batches, model.predict_proba(later), rtol=1e-9)


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_the_separator_is_taken_where_one_sign_alone_divides_the_rows(tmp_path, sep):
    remarks = ["well", "so, so", "a;b", "5 | 6", 'quoted "x", y\nand more']
    path = written(tmp_path, {"v": [f"{i / 7:.3f}" for i in range(60)], "remark": remarks}, sep)
    table, account = bg.read_table(path, "y")
    assert list(table) == ["v", "remark", "w", "y"] and len(table) == 60
    assert any("--sep" in note or "sep=" in note for note in account.notes) == (sep != ",")
    model = NB().fit(table[["v", "w"]], table["y"])
    assert model.schema_.reading.sep == sep
    assert len(pd.concat(model.predict_batches(path, progress=False))) == 60


def test_where_two_signs_divide_the_rows_a_comma_does_or_the_user_says(tmp_path):
    lines = ["a;b|y", *(f"{i}.5;{i % 7}|{'uv'[i % 2]}" for i in range(40))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    refuses(lambda: bg.read_table(tmp_path / "t.csv"), r"one column, whose name holds '.*': give sep=")
    (tmp_path / "t.csv").write_text("\n".join(line.replace(";", ",") for line in lines))
    assert list(bg.read_table(tmp_path / "t.csv")[0]) == ["a", "b|y"]


def test_a_limit_may_be_a_gap_instead(tmp_path):
    table, _ = bg.read_table(written(tmp_path, {"v": WAYS["a limit, half of it"][0]}), missing="<0.5")
    np.testing.assert_array_equal(table["v"], np.resize([NAN, 1.5, 2.5, 0.7], 60))


def test_batches_find_what_a_file_that_is_read_whole_shows(tmp_path):
    euros = [f"{1 + i % 7}.{100 + 13 * i % 900},{i % 10}0 €" for i in range(60)]
    path = written(tmp_path, {"v": euros, "x": [f"{i % 11},{i % 7}" for i in range(60)]})
    table, _ = bg.read_table(path, "y")
    whole = NB().fit(table[["v", "x", "w"]], table["y"])
    told = "apart by ';'|decimal ',' thousands '.', but for w, which programs wrote|'v': the unit € dropped"
    with pytest.warns(UserWarning, match=told) as found:
        model = NB().fit_batches(path, "y", progress=False)
    assert len(found) == 3 and model.schema_.reading == whole.schema_.reading
    rows = table[["v", "x", "w"]]
    np.testing.assert_allclose(model.predict_proba(rows), whole.predict_proba(rows), atol=1e-12)


TWO_READINGS = [  # columns in which nothing tells which of two readings is meant
    {"v": ["1,898", "12,345", "3,210"]},
    {"v": ["1.898", "12.345"], "x": ["1,5", "2,25"]},
    {"v": ["1,898.5", "12,345.0"], "x": ["1,5", "2,25"]},
    {"v": ["1.898,5", "12.345,0"], "x": ["46.458", "1.234", "12.5", "7.001"]},
    {"v": ["48 123 456 789", "48 987 654 321"]},
    {"v": ["12 kg", "13 lb", "15 kg"]},
    {"v": ["12 kg", "13", "15 kg"]},
    {"v": ["12A", "13A", "15A"]},
]


@pytest.mark.parametrize("columns", TWO_READINGS, ids=lambda columns: columns["v"][0])
def test_nothing_is_taken_that_has_two_readings(tmp_path, columns):
    table, account = bg.read_table(written(tmp_path, columns))
    assert "v" not in table or table["v"].dtype.kind not in "iuf"
    others = [note for note in account.notes if "no other way" in note or "unit dropped" in note]
    assert not others or table["x"].tolist()[:2] == [1.5, 2.25]  # the other column has one


DOUBTFUL = {  # columns in a file of ;, beside another, and what they are: None where both readings remain
    "points": (["1.141", "665", "2.204"], None, None),
    "commas": (["1,141", "665", "2,204"], None, None),
    "points beside points": (["1.141", "2.204"], ["37.6", "38.1"], [1.141, 2.204]),
    "commas beside points": (["1,141", "2,204"], ["37.6", "38.1"], None),
    "points beside commas": (["1.141", "2.204"], ["37,6", "38,1"], [1141, 2204]),
    "commas beside commas": (["1,141", "2,204"], ["37,6", "38,1"], [1.141, 2.204]),
    "two decimals": (["1.141", "1.14", "2.204"], None, [1.141, 1.14, 2.204]),
    "below 1": (["1,141", "0,141", "2,204"], None, [1.141, 0.141, 2.204]),
    "thousands without a sign": (["1.141", "1141", "2.204"], None, [1.141, 1141, 2.204]),
    "the same with commas": (["1,141", "1141", "2,204"], None, [1.141, 1141, 2.204]),
    "whole numbers beside grouped ones": (["12.141", "1141", "22.204"], ["37,6", "38,1"], [12141, 1141, 22204]),
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_a_column_of_two_readings_is_left_out_and_told_first_with_an_option_for_each(tmp_path, case):
    texts, beside, expected = DOUBTFUL[case]
    rows = 60
    columns = {"v": np.resize(texts, rows), "y": np.resize(["a", "b", "b"], rows)[::-1]}
    columns |= {"w": np.resize(beside, rows)} if beside else {}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", sep=";", index=False)
    table, account = bg.read_table(tmp_path / "t.csv", "y")
    assert beside is None or table["w"][0] in (37.6, "37.6")
    if expected is not None:
        assert table["v"].tolist()[: len(texts)] == expected and not any("two ways" in note for note in account.notes)
        return
    assert "v" not in table and account.suspicions[0].startswith("v left out: '1") and "two ways" in account.notes[0]
    assert "Look at these first" in str(account)
    found = re.findall(r"as ([\d.]+) by ((?:\w+='.' ?)+)", account.notes[0])
    assert {float(value) for value, _ in found} == {1141.0, 1.141}
    for value, options in found:  # each of which reads the column so
        again, _ = bg.read_table(tmp_path / "t.csv", "y", **dict(re.findall(r"(\w+)='(.)'", options)))
        assert again["v"][0] == float(value)
    with pytest.raises(ValueError, match="no column is left"):
        cleaned_by_command(tmp_path, columns)


def cleaned_by_command(folder, columns):
    """Fit the first column by the command, which needs one."""
    pd.DataFrame(columns)[["v", "y"]].to_csv(folder / "one.csv", sep=";", index=False)
    code, _, err = commands.run(folder / "one.csv", "--target", "y", command="fit")
    if code:
        raise ValueError(err)


def test_points_in_a_file_of_commas_are_of_fractions(tmp_path):
    pd.DataFrame({"v": ["1.141", "2.204", "665"] * 20, "y": list("abb") * 20}).to_csv(tmp_path / "t.csv", index=False)
    assert bg.read_table(tmp_path / "t.csv", "y")[0]["v"].tolist()[:2] == [1.141, 2.204]


@pytest.mark.parametrize("said", [{}, {"decimal": ",", "thousands": "."}], ids=["found", "said"])
def test_a_column_that_a_program_wrote_is_read_beside_those_of_an_office(tmp_path, said):
    path = written(tmp_path, {"v": WAYS["points between thousands"][0]})
    table, account = bg.read_table(path, "y", **said)
    assert "w, which programs wrote" in str(account)
    assert abs(table["w"]).max() < 4
    model = NB().fit(table[["v", "w"]], table["y"])
    assert model.schema_.reading.plain == ("w",)
    pd.testing.assert_frame_equal(bg.read_table(path, like=model)[0], table[["v", "w"]])


def test_lines_above_the_header_and_headers_among_the_rows_are_left_out(tmp_path):
    path = written(tmp_path, {"v": WAYS["euro"][0]})
    want = bg.read_table(path, "y")[0]
    lines = path.read_text().splitlines()
    again = "\n".join(["Report of 2024", "", *lines[:31], lines[0], *lines[31:]])
    path.write_text(again)
    table, account = bg.read_table(path, "y")
    pd.testing.assert_frame_equal(table, want)
    assert "1 line above the header left out, first 'Report of 2024'" in account.notes
    assert "1 row left out: the header v, w, y again, first behind row 29" in account.notes
    model = NB().fit(table[["v", "w"]], table["y"])
    assert len(bg.read_table(path, like=model)[0]) == 60
    with pytest.warns(UserWarning, match="the header v, w again"), pytest.warns(UserWarning, match="above the header"):
        assert len(pd.concat(model.predict_batches(path, progress=False))) == 60


def test_words_in_rows_without_a_class_spoil_no_column(tmp_path):
    """A line of units below the header, a sum below the rows, and a separator behind each line."""
    path = written(tmp_path, {"v": ["1,5", "2,25", "1.203,75"], "n": ["3", "5"]})
    want, lines = bg.read_table(path, "y")[0], path.read_text().splitlines()
    path.write_text("\n".join(f"{line};" for line in (lines[0], "kg;Stk;;", *lines[1:], "Summe;Summe 240;;")))
    table, account = bg.read_table(path, "y")
    pd.testing.assert_frame_equal(table, want, check_dtype=False)  # whole numbers beside gaps
    assert "1 row of units below the header left out, with 'kg'" in account.notes and account.rows[0] == 0
    assert "1 row left out: sums, it seems, such as 'Summe' behind row 59" in account.notes
    path.write_text("\n".join((*lines, "Summe;Summe 240;;none")))
    table, account = bg.read_table(path, "y", missing="none")
    pd.testing.assert_frame_equal(table, want, check_dtype=False)
    assert "1 row left out: no y (1 'none')" in account.notes


def test_sums_and_units_are_left_out_of_later_files_too(tmp_path):
    """Two sums, a row of units and a footnote, of a column that names the rows; a class "total" with a gap is a row."""
    path = tmp_path / "t.csv"
    lines = [f"P{i:02};{30 + i * 7 % 11},{i % 10};{'AB'[i % 2]};{'ab'[i % 3 == 0]}" for i in range(60)]
    path.write_text("\n".join(["id;v;w;y", *lines]))
    table, _ = bg.read_table(path, "y")
    model = NB().fit(table[["v", "w"]], table["y"])
    want = model.predict_proba(table[["v", "w"]])
    odd = [
        "id;v;w;y",
        ";(\u00b0C);;",
        *lines[:20],
        "Zwischensumme 1;650,1;;",
        *lines[20:],
        "Summe;2200;;31",
        "Quelle: X;;;",
    ]
    path.write_text("\n".join(odd))
    assert len(bg.read_table(path, "y")[0]) == len(bg.read_table(path, like=model)[0]) == 60
    np.testing.assert_array_equal(model.predict_proba(bg.read_table(path, like=model)[0]), want)
    with pytest.warns(UserWarning, match="sums, it seems"), pytest.warns(UserWarning, match="row of units"):
        found = pd.concat(model.predict_batches(path, progress=False))
    np.testing.assert_allclose(found[["p_a", "p_b"]], want, rtol=1e-12)
    path.write_text("id;v;w\ntotal;31,5;\nsum;32,5;A\n")
    assert len(bg.read_table(path, like=model)[0]) == 2


FORMS = ["{d:02}.{m:02}.24"]
FORMS += ["{d:02} Apr 26", "{d}. M\u00e4rz 2026", "{d} f\u00e9vr. 2026", "{d} de mayo de 2026", "{d} giugno 26"]


@pytest.mark.parametrize("form", FORMS)
def test_dates_that_are_not_read_are_told(tmp_path, form):
    path = written(tmp_path, {"v": [form.format(d=i % 4 + 1, m=i % 6 + 1) for i in range(60)]})
    assert "v ambiguous: dates, it seems" in str(bg.read_table(path, "y")[1])


@pytest.mark.compiles
def test_what_was_found_is_filled_into_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, {"v": [f"{i % 23},{i % 10} €" for i in range(60)]})
    text = path.read_text().replace(".", ",")
    path.write_text(text)
    code, out = run("compare", path, "--target", "y", "--inference", "exact", "--folds", 2, "--no-importance")
    assert code == 0 and '--sep ";" --decimal ,' in out[out.index("To save") :]
    table, _ = bg.read_table(path, "y")
    account = NB().fit(table[["v", "w"]], table["y"]).schema_.reading
    assert (account.sep, account.decimal, account.units) == (";", ",", {"v": "€"})
    said = Reading.said(sep=";", decimal=",", units={"v": "€"})
    assert said.numerals("v").unit == "€" and said.numerals("w").unit == ""


def cells(count=60):
    """The cells of a sheet: a title, a header, numbers, sums as text, days, durations, words and a class."""
    rng, day = np.random.default_rng(0), datetime.datetime(2024, 1, 1)
    rows = [["Report of 2024"], [], ["size", "sum", "seen", "took", "name", "y"]]
    for i, size in enumerate(rng.normal(size=count).round(3).tolist()):
        took = datetime.timedelta(minutes=17 * (i % 7) + 5)
        rows.append(
            [size, f"{1 + i}.{100 + i},5 €", day + i * datetime.timedelta(1), took, "NA"[: i % 3], "uvv"[i % 3]]
        )
    rows[10][0] = None
    return rows


def test_a_sheet_of_excel_is_read_as_csv_is(tmp_path):
    rows = cells()
    path = excel(tmp_path / "book.xlsx", empty=[], Data=[*rows, rows[2]])
    table, account = bg.read_table(path, "y", date="seen")
    assert len(table) == 60 and list(table) == ["size", "sum", "seen", "took", "name", "y"]
    np.testing.assert_array_equal(table["size"], [np.nan if row[0] is None else row[0] for row in rows[3:]])
    np.testing.assert_array_equal(table["sum"], [1000 * (1 + i) + 100 + i + 0.5 for i in range(60)])
    np.testing.assert_array_equal(table["seen"], 19723 + np.arange(60))
    np.testing.assert_allclose(table["took"], [row[3].total_seconds() / 86400 for row in rows[3:]], rtol=1e-12)
    assert {*table["name"].dropna()} == {"N", "NA"}
    for words in ("Report of 2024", "header size, sum", "unit dropped", "programs wrote", "durations read as days"):
        assert words in str(account)
    model = NB(account.features).fit(table.drop(columns="y"), table["y"])
    later = excel(tmp_path / "later.xlsx", Data=rows)
    pd.testing.assert_frame_equal(bg.read_table(later, like=model)[0], table.drop(columns="y"))
    with pytest.warns(UserWarning, match="size, sum, seen, took, name again"), pytest.warns(UserWarning, match="above"):
        batches = pd.concat(model.predict_batches(path, progress=False)).filter(like="p_")
    np.testing.assert_allclose(batches, model.predict_proba(table.drop(columns="y")), rtol=1e-9)


def test_a_sheet_is_named_where_there_are_several(tmp_path):
    path = excel(tmp_path / "book.xlsx", A=cells(), B=cells(30))
    refuses(lambda: bg.read_table(path, "y"), r"several sheets, \['A', 'B'\]: give sheet='A' or another")
    assert len(bg.read_table(path, "y", sheet="B")[0]) == 30
    code, out = run("fit", path, "--target", "y", "--sheet", "C", "--model", "nb")
    assert code == 2 and "without a sheet 'C'; it has ['A', 'B']" in out
    code, _ = run("fit", path, "--target", "y", "--sheet", "A", "--model", "nb", "--output", tmp_path / "m.safetensors")
    assert code == 0
    assert run("predict", tmp_path / "m.safetensors", path, "--output", tmp_path / "p.csv")[0] == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == 60
    (tmp_path / "cut.xlsx").write_bytes(path.read_bytes()[:-40])
    refuses(lambda: bg.read_table(tmp_path / "cut.xlsx", "y"), "damaged")


def office_file(kind, tmp_path):
    """Write a file of an office: a table of 60 rows with two numbers and a class, in its way; return its path."""
    rng = np.random.default_rng(5)
    price, size, y = 10 ** rng.uniform(2, 5, 60), rng.normal(0, 30, 60).round(1), np.resize(["yes", "no", "no"], 60)
    price[:2] = 12345.25, 1020.5

    def number(value, thousands, decimal, digits=2):
        return f"{value:,.{digits}f}".replace(",", "T").replace(".", decimal).replace("T", thousands)

    comma, accounts = (lambda v: number(v, "", ",", 1)), (lambda v: f"({-v})" if v < 0 else str(v))
    ways = {  # separator, the two columns, how the file is encoded, lines above it
        "Germany": (";", lambda v: number(v, ".", ",") + " €", lambda v: number(v, ".", ",", 1), "utf-8-sig", ""),
        "Switzerland": ("\t", lambda v: "CHF " + number(v, "'", "."), str, "utf-16", ""),
        "United States": (",", lambda v: "$" + number(v, ",", "."), accounts, "utf-8", ""),
        "France": (";", lambda v: number(v, "\u202f", ","), comma, "utf-8", "Export 2024\n\n"),
        "laboratory": ("|", lambda v: f"{v:.1f} mg/l", lambda v: f"{abs(v):.1f} %", "utf-8", "# by us\n"),
        "timesheet": (",", lambda v: f"{int(v) % 24}:{int(v) % 60:02}", lambda v: f"{v} h", "utf-8", ""),
        "limits": (",", lambda v: "<500.0" if v < 500 else f"{v:.1f}", str, "utf-8", ""),
        "dates": (";", lambda v: f"{int(v) % 28 + 1}.{int(v) % 12 + 1}.2024", comma, "utf-8", ""),
        "own unit": (",", lambda v: f"{v:.2f} Stk", str, "utf-8", ""),
    }
    if kind == "Excel":
        rows = [[float(p), f"{s:.1f} kg", c] for p, s, c in zip(price, size, y, strict=True)]
        return excel(tmp_path / "book.xlsx", Data=[["Report"], ["price", "size", "kind"], *rows])
    sep, first, second, encoding, above = ways[kind]
    frame = pd.DataFrame({"price": map(first, price.tolist()), "size": map(second, size.tolist()), "kind": y})
    text = above + frame.to_csv(index=False, sep=sep)
    (tmp_path / "office.csv").write_bytes(text.encode(encoding))
    return tmp_path / "office.csv"


OFFICES = {  # what the first try says is to be given at the second; none where the first is enough
    **dict.fromkeys(["Germany", "Switzerland", "United States", "France", "laboratory", "timesheet", "Excel"], ()),
    "limits": ("--limits",),
    "dates": ("--date", "price"),
    "own unit": ("--unit", "price=Stk"),
}


@pytest.mark.parametrize("kind", OFFICES)
def test_ten_offices_come_to_a_comparison_at_the_first_or_second_try(kind, tmp_path):
    words = ["--target", "kind", "--model", "nb", "--inference", "exact", "--no-importance"]
    given = [office_file(kind, tmp_path), *words]
    code, out = run("compare", *given)
    second = OFFICES[kind]
    if second:
        assert "price left out" in out and f"{' '.join(second[:1])} " in out
        code, out = run("compare", *given, *second)
    assert code == 0 and "left out: numbers" not in out and "price left out" not in out and "size left out" not in out
    assert "exact 5 of 5" in out


def test_columns_that_one_option_reads_share_a_line(tmp_path):
    columns = {name: [f"{i % 50 + shift},{i % 7}" for i in range(60)] for shift, name in enumerate(("v", "x", "z"))}
    _, account = bg.read_table(written(tmp_path, columns), "y", decimal=".")
    assert "v, x, z left out: numbers as text, such as '0,0'; decimal=',' reads them" in account.notes


def test_a_table_of_six_classes_fits_a_hundred_columns():
    out = Console(width=100, file=io.StringIO())
    names = [f"{kind} of the {place}" for kind in ("penguin", "kingfisher") for place in ("north", "south", "islands")]
    terminal.tell(out, "class", {name: {other: "1234" for other in names} for name in names})
    lines = out.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 100 and sum(line.count("1234") for line in lines) == 36
    assert max(line.count("1234") for line in lines) == 6  # side by side


def test_few_words_among_numbers_are_told_in_batches_as_in_memory(tmp_path, monkeypatch):
    """Blocks of few rows: a word may stand in any of them, and the first rows tell nothing of it."""
    monkeypatch.setattr(fields, "_BYTES", 1 << 10)
    rng = np.random.default_rng(5)
    for case in range(40):
        rows, words = int(rng.choice([150, 900])), int(rng.integers(0, 14))
        columns = {
            "fine": [f"{v:.2f}" for v in rng.normal(size=rows)],
            "whole": [str(v) for v in rng.integers(0, 90, rows)],
            "level": rng.choice(["1", "2", "3"], rows).tolist(),
            "code": [f"{v:03}" for v in rng.integers(0, 90, rows)],
        }
        for texts in columns.values():
            for place in rng.choice(rows, words, replace=False):
                texts[place] = str(rng.choice(["oops", "k. A.", "#NV", "12 x"]))
        y = np.resize(["u", "v", "v"], rows)
        pd.DataFrame(columns).assign(y=y).to_csv(path := tmp_path / "t.csv", index=False)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            batches = NB().fit_batches(path, "y", progress=False).schema_
        table, account = bg.read_table(path, "y")
        for name in columns:
            number = name in table and table[name].dtype.kind in "iuf"
            assert (batches.block_of[name].categories is None) == number, (case, name, words)
            if number and table[name].isna().any():
                assert any(f"column {name!r}: [" in str(one.message) and "missing" in str(one.message) for one in told)
                assert any(note.startswith(f"{name}: [") for note in account.notes)


def test_numbers_in_brackets_in_the_first_row_are_no_units(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"({40 + i % 7}.{100 + i},4{i % 10});{i % 9},5 %;{'ab'[i % 3 == 0]}" for i in range(40)]
    path.write_text("\n".join(["v;w;y", *lines]))
    assert len(bg.read_table(path, "y")[0]) == 40
    path.write_text("\n".join(["v;w;y", "(10^9/l);%;", *lines]))
    assert len(bg.read_table(path, "y")[0]) == 40


def test_dates_of_one_row_each_are_told_as_dates_and_an_initial_of_its_word(tmp_path):
    path = tmp_path / "t.csv"
    words = ["m", "M", "m\u00e4nnlich", "w"]
    lines = [f"{i % 28 + 1}. M\u00e4rz {2000 + i};{words[i % 4]};{i % 7};{'ab'[i % 3 == 0]}" for i in range(60)]
    path.write_text("\n".join(["day;sex;v;y", *lines]))
    table, account = bg.read_table(path, "y", same=["sex=m,M", "sex=m\u00e4nnlich,m"])
    assert sorted(table["sex"].unique()) == ["m\u00e4nnlich", "w"]
    assert "day left out: dates, it seems; written as 2024-01-31 date= reads them" in account.notes
    told = bg.read_table(path, "y", same="sex=m,M")[1].suspicions
    assert "sex ['m'] in 30 rows, perhaps 'm\u00e4nnlich', which has 15: same='sex=m\u00e4nnlich,m'" in told
