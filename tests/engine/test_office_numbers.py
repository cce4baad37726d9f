"""Numbers as offices write them, in files, in batches and in tables: read where options say so, reported else."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from commands import fitted, predicted, run
from refusals import refuses

import bayesgen as bg
from bayesgen.cli import folders
from bayesgen.sheets.files import read
from bayesgen.tables.reading import Reading

pytestmark = pytest.mark.usefixtures("few_members")  # commands do to the average of all what they do to this one

NB = bg.NaiveBayesClassifier


# -- a table of an office


def office(rows=120, seed=0):
    """A table with its numbers as programs write them, and the text of a file with them as an office does."""
    rng = np.random.default_rng(seed)
    back = rng.random(rows) < 0.4
    table = pd.DataFrame(
        {
            "patient": [f"P{i:04}" for i in range(rows)],
            "rate": rng.normal(50 + 8 * back, 9).round(1),
            "costs": rng.normal(3000 + 900 * back, 800).round(1),
            "crp": np.exp(rng.normal(back, 1)).round(1),
            "seen": [f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(rows)],
            "result": np.where(back, "back", "home"),
        }
    )

    def written(value):
        return f"{value:,.1f}".replace(",", "T").replace(".", ",").replace("T", ".")

    text = table.assign(
        rate=[written(v) + "%" for v in table["rate"]],
        costs=list(map(written, table["costs"])),
        crp=["<0,6" if v < 0.6 else written(v) for v in table["crp"]],
    )
    limited = table["crp"] < 0.6
    table["crp"] = table["crp"].where(~limited, 0.3)
    table.insert(4, "crp_limit", limited)
    return table, text.to_csv(index=False, sep=";")


GIVEN = {"sep": ";", "decimal": ",", "thousands": ".", "limits": True, "id": "patient", "date": "seen"}
OPTIONS = ["--sep", ";", "--decimal", ",", "--thousands", "."]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "office.csv").write_text(office()[1])
    (tmp_path / "new.csv").write_text(office(20, 1)[1])
    return tmp_path


def test_a_table_is_in_python_what_it_is_on_the_command_line(folder):
    plain, _ = office()
    table, account = bg.read_table("office.csv", "result", **GIVEN)
    assert list(table) == ["rate", "costs", "crp", "crp_limit", "seen", "result"]
    for name in ("rate", "costs", "crp", "crp_limit", "result"):
        assert table[name].tolist() == plain[name].tolist()
    assert account.ids["patient"].tolist() == plain["patient"].tolist() and account.features == {"seen": "date"}
    assert account.rows.tolist() == list(range(120)) and str(account).startswith("office.csv: 120 rows\n  rate: ")
    said = ["--target", "result", "--model", "nb", "--id", "patient", "--date", "seen", "--limits"]
    out, saved = fitted(folder, "office.csv", *said, *OPTIONS)
    for note in account.notes:
        assert note in out.replace("--log", "log=")
    assert any("rate: % dropped, as in '" in note for note in account.notes)
    assert any(re.match(r"crp: \d+ limits such as '<0,6' read as numbers, below", note) for note in account.notes)
    X = table.drop(columns="result")
    own = NB(account.features).fit(X, table["result"])
    np.testing.assert_allclose(own.predict_proba(X), saved.predict_proba(X), rtol=1e-9)
    assert {c: b.leaf for b in own.schema_.blocks for c in b.columns}["crp_limit"] == "bernoulli"
    _, got = predicted(folder, "new.csv", "--id", "patient", *OPTIONS)  # the limits as at the fit
    new = office(20, 1)[0].drop(columns=["patient", "result"])
    np.testing.assert_allclose(got.filter(like="p_"), own.predict_proba(new), rtol=1e-9)


def test_new_rows_without_a_limit_and_a_table_that_tells_them_already(folder):
    said = ["--target", "result", "--model", "nb", "--drop", "patient,seen", "--limits"]
    _, saved = fitted(folder, "office.csv", *said, *OPTIONS)
    new = office(20, 1)[0].drop(columns=["patient", "seen", "result"])
    new.loc[:, "crp_limit"] = False
    for name, rows in (("plain.csv", new.drop(columns="crp_limit")), ("told.csv", new)):
        rows.assign(rate=rows["rate"].astype(str) + "%").to_csv(name, index=False)
        _, got = predicted(folder, name, "--decimal", ".")
        np.testing.assert_allclose(
            got.filter(like="p_"), saved.predict_proba(new[list(saved.schema_.columns)]), rtol=1e-9
        )


def in_parts(text, folder, count=3):
    """Write the lines of a file to several, the header above each; return the pattern of their names."""
    header, *lines = text.splitlines(keepends=True)
    folder.mkdir()
    for number, part in enumerate(np.array_split(lines, count)):
        (folder / f"{number}.csv").write_text(header + "".join(part))
    return folder / "*.csv"


@pytest.mark.parametrize("model", ["nb", "gda", pytest.param("logistic", marks=pytest.mark.compiles)])
def test_the_table_of_an_office_in_batches_is_what_it_is_in_memory(folder, monkeypatch, model):
    said = ["--target", "result", "--model", model, "--drop", "patient,seen", "--limits", *OPTIONS]
    out, whole = fitted(folder, "office.csv", *said)
    asked = ["--id", "patient", *OPTIONS, *(["--limits"] if model == "gda" else [])]  # whose columns do not tell them
    _, want = predicted(folder, "new.csv", *asked)
    parts, new = in_parts(office()[1], folder / "parts"), in_parts(office(20, 1)[1], folder / "new")
    _, joined = fitted(folder, parts, *said)
    monkeypatch.setattr(folders, "outgrows", lambda *given, summed=False: True)
    told, batches = fitted(folder, parts, *said)
    assert "a sample of 120 of 120 rows" in told
    for note in re.findall("rate: % dropped|crp: [0-9]+ limits such as '<0,6'", out):
        assert note in told
    _, got = predicted(folder, new, *asked)
    names = [name for name in want if name.startswith("p_")]
    np.testing.assert_allclose(got[names], want[names], atol=1e-5 if model == "logistic" else 1e-12)
    assert got["patient"].tolist() == want["patient"].tolist()
    if model != "logistic":  # which keeps no schema
        assert set(batches.schema_.blocks) == set(joined.schema_.blocks) == set(whole.schema_.blocks)


def test_limits_that_a_sample_might_miss_are_read(folder, monkeypatch):
    """One row of 400 has a limit, in the last of the files; a sample of 40 rows judges the columns."""
    rng = np.random.default_rng(0)
    crp = rng.lognormal(size=400).round(2) + 0.01
    frame = pd.DataFrame({"crp": crp.astype(str), "z": rng.normal(size=400).round(2), "t": np.resize(["a", "b"], 400)})
    frame.loc[399, "crp"] = "<0.5"
    parts = in_parts(frame.to_csv(index=False), folder / "parts", 4)
    given = ["--target", "t", "--model", "nb", "--limits"]
    _, want = fitted(folder, parts, *given)
    monkeypatch.setattr(folders, "outgrows", lambda *given, summed=False: True)
    monkeypatch.setattr(folders, "_SAMPLED", 40)
    monkeypatch.setattr(folders, "_FEWEST", 5)
    out, found = fitted(folder, parts, *given)
    assert "crp: 1 limit such as '<0.5' read" in out
    X = frame.assign(crp=crp, crp_limit=False)[["crp", "crp_limit", "z"]]
    X.loc[399, ["crp", "crp_limit"]] = 0.25, True
    np.testing.assert_allclose(found.predict_proba(X), want.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(found.predict_proba(X), NB().fit(X, frame["t"]).predict_proba(X), rtol=1e-9)
    _, got = predicted(folder, parts)
    np.testing.assert_allclose(got.filter(like="p_"), want.predict_proba(X), rtol=1e-9)


def test_limits_are_told_where_their_own_column_is_left_out(folder):
    said = ["--target", "result", "--model", "nb", "--drop", "patient,seen,crp", "--limits"]
    _, saved = fitted(folder, "office.csv", *said, *OPTIONS)
    new = office(20, 1)[0]
    _, got = predicted(folder, "new.csv", *OPTIONS)
    np.testing.assert_allclose(got.filter(like="p_"), saved.predict_proba(new[list(saved.schema_.columns)]), rtol=1e-9)


def test_files_of_an_office_are_compared(folder, monkeypatch):
    parts = in_parts(office()[1], folder / "parts")
    given = ["--target", "result", "--model", "nb", "--inference", "exact", "--folds", 2, "--drop", "patient,seen"]
    for large in (False, True):
        monkeypatch.setattr(folders, "outgrows", lambda *given, large=large, summed=False: large)
        code, out, err = run(parts, *given, "--limits", *OPTIONS)
        assert (code, err) == (0, "") and "exact 2 of 2" in out and re.search("crp: [0-9]+ limits such as", out)


LEFT = {
    (): [
        'numbers read as the file leaves no other way: --decimal "," --thousands "."',
        "crp left out: numbers as text, such as '<0,6'; --limits reads them",
    ],
    ("--decimal", "."): [
        "rate left out: numbers as text, such as '.*,.%'; --decimal \",\" reads them",
        "costs left out: numbers as text",
    ],
    ("--decimal", ","): [
        'costs left out: numbers as text, such as \'.*\'; --decimal "," --thousands "." reads them',
        "crp left out: numbers as text, such as '<0,6'; --limits reads them",
    ],
}


@pytest.mark.parametrize("options", LEFT, ids=len)
def test_what_is_not_read_is_told_with_an_entry_and_the_option(options, folder):
    said = ["office.csv", "--target", "result", "--sep", ";", "--model", "nb", "--date", "seen", "--id", "patient"]
    _, out, err = run(*said, *options, command="fit")
    for words in LEFT[options]:
        assert re.search(words, out + err)


def test_a_word_among_them_leaves_categories_and_is_told(tmp_path):
    rows = "\n".join(f"{'k.A.' if i % 12 == 3 else f'{i % 15}%'},{i * 0.37 % 3:.2f},{'ab'[i % 2]}" for i in range(60))
    (tmp_path / "t.csv").write_text(f"x,z,t\n{rows}\n")
    out, _ = fitted(tmp_path, tmp_path / "t.csv", "--target", "t", "--model", "nb")
    how = r"""such as '.*%' \(15 of 16 distinct values\), but for 'k.A.'; --missing "x=k.A." reads them"""
    assert re.search(f"x ambiguous: numbers as text, {how}; taken as categories", out)
    out, _ = fitted(tmp_path, tmp_path / "t.csv", "--target", "t", "--model", "nb", "--missing", "k.A.")
    assert "x: % dropped" in out and "ambiguous" not in out
    table, account = bg.read_table(tmp_path / "t.csv", "t", missing="k.A.")
    assert table["x"].isna().sum() == 5 and len(account.notes) == 2


def test_a_word_among_plain_numbers_does_not_make_names_of_them(tmp_path):
    sizes = [f"{i * 0.37:.2f}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,t", *(f"{v},{'ab'[i % 2]}" for i, v in enumerate(sizes)), "oops,a"]))
    table, account = bg.read_table(tmp_path / "t.csv", "t")
    assert table["x"].isna().sum() == 1
    assert "x: ['oops'] in 1 row taken as missing among numbers; categorical=['x'] keeps them" in account.notes
    assert bg.read_table(tmp_path / "t.csv", "t", missing="oops")[0].equals(table)
    frame = pd.read_csv(tmp_path / "t.csv")
    with pytest.warns(
        UserWarning, match=r"'x' holds numbers as text, .* but for 'oops': .*missing='x=oops'\) reads them"
    ):
        NB().fit(frame[["x"]], frame["t"])
    text = pd.DataFrame({"x": sizes, "id": [f"{i:03d}" for i in range(60)], "code": [f"A{i}" for i in range(60)]})
    with pytest.warns(UserWarning) as said:
        NB().fit(text, ["a", "b"] * 30)
    found = [re.search(r"column '(\w+)' (holds numbers|seems to name)", str(warning.message)) for warning in said]
    assert [m.groups() for m in found if m] == [
        ("x", "holds numbers"),
        ("id", "seems to name"),
        ("code", "seems to name"),
    ]


def test_what_is_said_to_be_categories_is(tmp_path):
    rows = "\n".join(f"{i % 15}%,{i * 0.37 % 3:.2f},{'ab'[i % 2]}" for i in range(60))
    (tmp_path / "t.csv").write_text(f"x,z,t\n{rows}\n")
    table, account = bg.read_table(tmp_path / "t.csv", "t", categorical="x")
    assert set(table["x"]) == {f"{i}%" for i in range(15)} and account.notes == ()


def test_names_of_rows_stay_as_written_where_their_column_has_a_comma(tmp_path):
    rows = "\n".join(f"{i}.50,{i * 0.37 % 3:.2f},{'ab'[i % 2]}" for i in range(30))
    (tmp_path / "t.csv").write_text(f'"case, visit",z,t\n{rows}\n')
    _, account = bg.read_table(tmp_path / "t.csv", "t", id="case, visit")
    assert account.ids["case, visit"].tolist() == [f"{i}.50" for i in range(30)]


def test_ways_of_writing_are_not_for_parquet(tmp_path):
    pd.DataFrame({"x": [f"{i},5" for i in range(40)], "z": np.arange(40.0) ** 0.5}).to_parquet(tmp_path / "t.parquet")
    _, account = bg.read_table(tmp_path / "t.parquet", decimal=",")
    assert any("Parquet, whose columns have types: decimal=, thousands=" in note for note in account.notes)


def test_in_a_table_in_memory_each_is_warned_of(folder):
    table = pd.read_csv("office.csv", sep=";")
    with pytest.warns(UserWarning) as said:
        NB().fit(table[["rate", "costs", "crp"]], table["result"])
    texts = [str(warning.message) for warning in said]
    for name, call in (
        ("rate", "decimal=','"),
        ("costs", "decimal=',', thousands='.'"),
        ("crp", "decimal=',', limits=True"),
    ):
        (own,) = [text for text in texts if f"column {name!r} holds numbers as text, such as '" in text]
        assert f"bayesgen.read_table(path, {call}) reads them" in own
    table, _ = bg.read_table("office.csv", "result", **GIVEN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NB({"seen": "date"}).fit(table.drop(columns="result"), table["result"])


def test_percent_in_batches_is_what_it_is_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=90).round(2), "t": np.resize(["a", "b", "b"], 90)})
    frame.assign(x=frame["x"].astype(str) + "%").to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(UserWarning, match="column 'x': % dropped, as in '0.13%'"):
        batches = NB().fit_batches(tmp_path / "t.csv", "t")
    memory = NB().fit(frame[["x"]], frame["t"])
    np.testing.assert_allclose(batches.predict_proba(frame[["x"]]), memory.predict_proba(frame[["x"]]), rtol=1e-9)
    found = pd.concat(memory.predict_batches(tmp_path / "t.csv"))
    np.testing.assert_allclose(found.filter(like="p_"), memory.predict_proba(frame[["x"]]), rtol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_a_few_limits_among_numbers_are_in_batches_what_they_are_in_memory(seed, tmp_path):
    """Limits and words in any rows, in the styles of offices, in the only column that tells how numbers are written.

    Another column may have the name of that which tells the limits.
    """
    rng = np.random.default_rng(seed)
    rows, style = int(rng.choice([40, 400])), [(".", "", ","), (",", ".", ";"), (".", ",", "\t")]
    decimal, thousands, sep = style[seed % 3]
    columns = {
        name: [f"{v:,.2f}".translate({44: thousands, 46: decimal}) for v in rng.normal(2000, 500, rows)]
        for name in (["v", "w", "v_limit"] if seed % 4 == 3 else ["v", "w"] if seed % 4 else ["v"])
    }
    for place in rng.choice(rows, int(rng.integers(1, max(3, rows // 100) + 1)), replace=False):
        odd = rng.choice(["<", "> ", "oops", "n. b."], p=[0.4, 0.2, 0.2, 0.2])
        columns["v"][place] = odd if odd[0] in "on" else odd + columns["v"][place]
    pd.DataFrame(columns).assign(y=np.resize(["a", "b"], rows)).to_csv(path := tmp_path / "t.csv", sep=sep, index=False)
    table, account = bg.read_table(path, "y")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        batches = NB().fit_batches(path, "y", progress=False)
    X = table.drop(columns="y")
    limits = "v_limit" in X and X["v_limit"].dtype == bool
    assert any("read as numbers, below a limit" in str(warning.message) for warning in told) == limits
    if seed % 4 != 3:
        assert limits == any(text[0] in "<>" for text in columns["v"]) and list(batches.schema_.columns) == list(X)
        want = NB(account.features).fit(X, table["y"]).predict_proba(X)
        np.testing.assert_allclose(batches.predict_proba(X), want, rtol=1e-10)
        again = pd.concat(batches.predict_batches(path, progress=False)).filter(like="p_")
        np.testing.assert_allclose(again, want, rtol=1e-10)
    elif any(text[0] in "<>" for text in columns["v"]):
        assert batches.schema_.block_of["v"].categories is not None


def test_points_that_may_stand_between_thousands_are_told(tmp_path):
    (tmp_path / "t.csv").write_text("x;z\n" + "1.898;0,5\n12.000;1,5\n" * 20)
    read_as_fractions = read(str(tmp_path / "t.csv"), reading=Reading(";", ","))
    assert read_as_fractions.table["x"].tolist()[:2] == [1.898, 12.0]
    assert any("x ambiguous: '1.898' has a point" in note for note in read_as_fractions.notes)
    read_as_thousands = read(str(tmp_path / "t.csv"), reading=Reading(";", ",", "."))
    assert read_as_thousands.table["x"].tolist()[:2] == [1898, 12000] and not read_as_thousands.notes


def test_the_name_of_a_column_of_limits_may_be_taken(tmp_path):
    (tmp_path / "t.csv").write_text("x,x_limit\n" + "<1,2\n2,3\n" * 20)
    with pytest.raises(ValueError, match="the limits of 'x' would be told by 'x_limit', which is there"):
        bg.read_table(tmp_path / "t.csv", limits=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"id": "nobody"}, "id=: no column 'nobody'"),
        ({"target": "nobody"}, "no column 'nobody'"),
        ({"thousands": "."}, "cannot stand both"),
        ({"sep": ","}, "one column, whose name holds ';': give sep=';'"),
        ({"drop": "rate", "id": ["rate"]}, "id=: the column 'rate' is named by drop= already"),
    ],
)
def test_read_table_refuses_in_words_of_python(arguments, words, folder):
    refuses(lambda: bg.read_table("office.csv", **{"sep": ";", **arguments}), words)


def test_a_table_without_a_target_keeps_all_rows(folder):
    table, account = bg.read_table("office.csv", **GIVEN)
    assert list(table)[-1] == "result" and len(account.rows) == 120
    table, _ = bg.read_table("penguins")
    assert len(table) == 344
