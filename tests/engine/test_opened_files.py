"""Files are read by their contents: compressed, in UTF-16, misnamed, damaged, from a pipe, of another kind."""

import bz2
import contextlib
import csv
import gzip
import io
import lzma
import os
import sqlite3
import threading
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import run
from pyarrow import feather
from refusals import refuses

import bayesgen as bg
from bayesgen.sheets import fields
from bayesgen.sheets.cleaning import _merged
from bayesgen.sheets.files import read
from bayesgen.sheets.sources import source_of
from bayesgen.tables.reading import Reading

NB = bg.NaiveBayesClassifier
ROWS = pd.DataFrame(
    {
        "x": np.random.default_rng(0).normal(size=200).round(3),
        "note": np.resize(["one", "two\nlines", 'with "quotes"', "with, commas", "gr\u00fcn"], 200),
        "kind": np.resize(["a", "b", "b"], 200),
    }
)
TEXT = ROWS.to_csv(index=False)


def zipped(content, names=("table.csv",)):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return file.getvalue()


PACKED = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
    "zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}
CODES = {"utf-8": "", "utf-8-sig": "", "utf-16": "", "utf-16-le": "\ufeff", "utf-16-be": "\ufeff", "utf-32": ""}


def rows_of(source):
    """All rows of a source as text."""
    batches = [batch for job in source.jobs() for batch in job.read()]
    frames = [batch.to_pandas() if isinstance(batch, pa.RecordBatch) else batch for batch in batches]
    return pd.concat(frames, ignore_index=True)


def same(path):
    """Check that a file holds the rows, read at once and in batches."""
    for found in (read(str(path)).table, rows_of(source_of(path))):
        assert found.astype(str).to_numpy().tolist() == ROWS.astype(str).to_numpy().tolist()


@pytest.mark.parametrize("name", ["table.csv", "table.csv.{}", "table.txt"])
@pytest.mark.parametrize("how", PACKED)
def test_what_is_compressed_is_read_whatever_its_name_is(how, name, tmp_path):
    path = tmp_path / name.format(how)
    path.write_bytes(PACKED[how](TEXT.encode()))
    same(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zipped], ids=["plain", "gz", "zip"])
@pytest.mark.parametrize("code", CODES)
def test_an_encoding_is_known_by_its_mark(code, pack, tmp_path):
    (tmp_path / "table.csv").write_bytes(pack((CODES[code] + TEXT).encode(code)))
    same(tmp_path / "table.csv")


def filed(path, reading):
    """Rows of a file as text, read at once and in batches."""
    return [found.astype(str) for found in (read(str(path), reading=reading).table, rows_of(source_of(path, reading)))]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zipped], ids=["plain", "gz", "zip"])
@pytest.mark.parametrize("code", ["cp1252", "latin-1", "mac-roman", "utf-16-le", "iso2022_jp_2"])
def test_an_encoding_is_read_that_is_said_and_utf_8_all_the_same(code, pack, tmp_path):
    path, reading = tmp_path / "table.csv", Reading.said(encoding=code)
    for text in (TEXT.encode(code), TEXT.encode(), TEXT.encode("utf-16")):
        path.write_bytes(pack(text))
        assert all(found.equals(ROWS.astype(str)) for found in filed(path, reading))
    for wrong in ("klingon", "hex"):
        refuses(lambda: Reading.said(encoding=wrong), f"no encoding '{wrong}'")  # noqa: B023
    path.write_bytes(pack(TEXT.encode("mac-roman").replace(b"\n", b"\x81\n")))
    refuses(lambda: read(str(path), reading=Reading.said(encoding="cp1252")), "no text in CP1252")
    if code in ("cp1252", "latin-1", "mac-roman"):
        path.write_bytes(pack(TEXT.encode(code)))
        refuses(lambda: read(str(path)), r"older Windows: give encoding='cp1252', or save it as 'CSV UTF-8'")


def test_the_byte_that_ended_files_of_dos_is_no_row(tmp_path):
    path = tmp_path / "table.csv"
    for text in (TEXT.encode() + b"\x1a", (TEXT + "\x1a").encode("utf-16")):
        path.write_bytes(text)
        same(path)
    path.write_bytes(TEXT.encode("cp1252") + b"\x1a")
    refuses(lambda: read(str(path)), "give encoding='cp1252'")
    assert all(found.equals(ROWS.astype(str)) for found in filed(path, Reading.said(encoding="cp1252")))


@pytest.mark.parametrize("how", PACKED)
def test_the_byte_that_ended_files_of_dos_is_looked_for_in_what_is_compressed(how, tmp_path, monkeypatch):
    """At whatever place of a piece it is: at its end, behind it, and within a field, where it is text."""
    inside = ROWS.assign(note=[f"{note}\x1a" if i % 3 == 0 else note for i, note in enumerate(ROWS["note"])])
    for end in (b"\x1a", b"\r\n\x1a"):
        (tmp_path / "table.csv").write_bytes(PACKED[how](TEXT.encode() + end))
        same(tmp_path / "table.csv")
        (tmp_path / "table.csv").write_bytes(PACKED[how](inside.to_csv(index=False).encode() + end))
        for size in (1 << 23, 257):
            monkeypatch.setattr(fields, "_BYTES", size)
            found = rows_of(source_of(tmp_path / "table.csv"))
            assert found["note"].tolist() == inside["note"].tolist()


def test_cells_are_filled_down_over_blocks_and_in_later_files(tmp_path, monkeypatch):
    monkeypatch.setattr(fields, "_BYTES", 128)
    ward = pd.Series(np.where(np.arange(200) % 23 == 0, [f"W{i}" for i in range(200)], " "))
    bed, filled = ward.where(ward != " ", "").str.lower(), ward.where(ward != " ").ffill()
    path, reading = tmp_path / "table.csv", Reading.said(fill_down=["ward", "bed"])
    rows = ROWS.drop(columns="note").assign(ward=ward, bed=bed, gap=bed)
    rows.to_csv(path, index=False)
    told = bg.read_table(path, "kind")[1].notes
    assert sum("it stands above empty fields" in note and "fill_down=" in note for note in told) == 2
    for found in filed(path, reading):
        assert found["ward"].tolist() == filled.tolist() and found["bed"].tolist() == filled.str.lower().tolist()
        assert not found["gap"].str.startswith("w").fillna(False)[bed == ""].any()
    table, _ = bg.read_table(path, "kind", fill_down="ward", drop=["bed", "gap"])
    model = NB().fit(table[["x", "ward"]], table["kind"])
    later, _ = bg.read_table(path, like=model)
    assert later["ward"].tolist() == filled.tolist() == table["ward"].tolist()
    p = pd.concat(model.predict_batches(path, progress=False)).filter(like="p_").to_numpy()
    np.testing.assert_allclose(p, model.predict_proba(later), atol=1e-12)
    refuses(lambda: bg.read_table(path, "kind", fill_down="wart"), "fill_down=: no column 'wart'; there are: ward")


@pytest.mark.parametrize("sparse", [0.1, 0.3, 0.45])
def test_empty_fields_by_chance_are_seldom_said_to_be_merged(sparse):
    rng, told = np.random.default_rng(0), 0
    for _ in range(400):
        words = pd.Series(rng.choice(["none", "mild", "severe", "fatal"], 100)).where(rng.random(100) < sparse)
        numbers = pd.Series(rng.integers(9, size=100)).where(words.notna()).astype("Int64")
        told += bool(_merged(words, "x")) + bool(_merged(numbers, "x"))
    assert told <= 8  # of 800


def test_parquet_is_known_by_its_first_bytes(tmp_path):
    ROWS.to_parquet(tmp_path / "table.csv", index=False)
    same(tmp_path / "table.csv")
    (tmp_path / "table.parquet").write_text(TEXT)
    with pytest.raises(ValueError, match=r"table\.parquet: not readable as Parquet: it does not begin as such a file"):
        read(str(tmp_path / "table.parquet"))


DAMAGE = {
    "cut in the middle": lambda content: content[: len(content) // 2],
    "cut near its end": lambda content: content[:-6],
    "cut at its beginning": lambda content: content[:12],
    "changed": lambda content: content[: len(content) // 2] + b"\0\xff\0" * 3 + content[len(content) // 2 + 9 :],
}


@pytest.mark.parametrize("named", [True, False], ids=["named", "misnamed"])
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("how", PACKED)
def test_what_is_compressed_and_damaged_is_one_sentence(how, damage, named, tmp_path):
    path = tmp_path / ("table.csv." + how if named else "table.csv")
    path.write_bytes(DAMAGE[damage](PACKED[how](TEXT.encode() * 20)))
    words = "compressed by .*, and damaged, or cut off before its end: "
    refuses(lambda: read(str(path)), words)
    refuses(lambda: rows_of(source_of(path)), words)
    if damage == "cut in the middle":
        for command in ("fit", "compare"):
            code, out, err = run(path, "--target", "kind", command=command)
            assert (code, out) == (2, "") and f"Error: {path}: " in err and "cut off before its end" in err


def sqlite(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        ROWS.to_sql("rows", database)


FOREIGN = {
    "xlsx": (lambda path: path.write_bytes(zipped(b"", ["[Content_Types].xml", "xl/workbook.xml"])), "an Excel file"),
    "ods": (lambda path: path.write_bytes(zipped(b"", ["mimetype", "content.xml"])), "an OpenDocument file"),
    "xls": (lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)), "an old Excel file"),
    "JSON": (lambda path: path.write_text('[{"x": 1.5, "t": "a"}]'), "JSON"),
    "JSON, a row a line": (lambda path: path.write_text('{"x": 1.5, "t": "a"}'), "JSON"),
    "feather": (lambda path: feather.write_feather(ROWS, str(path)), "a Feather file"),
    "sqlite": (sqlite, "a SQLite database"),
    "netCDF": (lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(600)), "an HDF5 or netCDF file"),
    "a model": (lambda path: NB().fit(ROWS[["x"]], ROWS["kind"]).save(path), "a saved model"),
    "gz of a feather": (lambda path: path.write_bytes(gzip.compress(b"ARROW1\0\0" * 99)), "a Feather file"),
    "several files": (lambda path: path.write_bytes(zipped(b"x", ["a.csv", "b.csv"])), "a zip archive of 2 files"),
    "UTF-16 without a mark": (lambda path: path.write_bytes(TEXT.encode("utf-16-le")), "UTF-16 without the mark"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_files_of_other_kinds_are_named_with_what_to_do(kind, tmp_path):
    make, words = FOREIGN[kind]
    make(path := tmp_path / "table.csv")
    for reading in (read, source_of):
        with pytest.raises(ValueError, match=rf"table\.csv: .*{words}.*: .+"):
            reading(str(path))
    code, _, err = run(path, "--target", "kind", command="fit")
    assert code == 2 and words in err


@pytest.mark.parametrize("name", ["PAR1", "BZh9", "ORC", "ARROW1", "%PDF", "Rar!", "PK", "Obj", "SQLite"])
def test_a_header_may_begin_as_the_files_of_others_do(name, tmp_path):
    (tmp_path / "table.csv").write_text(TEXT.replace("x,", f"{name},", 1))
    assert list(read(str(tmp_path / "table.csv")).table) == [name, "note", "kind"]
    assert source_of(tmp_path / "table.csv").columns == [name, "note", "kind"]


def test_a_folder_is_no_table(tmp_path):
    refuses(lambda: read(str(tmp_path)), "this is a folder, where a file is expected")


@pytest.mark.compiles
def test_a_named_pipe_is_read_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("rows")
    for content in (TEXT.encode(), gzip.compress(TEXT.encode()), b"x,note,kind\n1,a\n" + TEXT.encode()[12:]):
        writer = threading.Thread(target=Path("rows").write_bytes, args=(content,))
        writer.start()
        found = read("rows").table
        writer.join()
        assert len(found) >= 200 and list(found) == ["x", "note", "kind"]
    writer = threading.Thread(target=Path("rows").write_bytes, args=(TEXT.encode(),))
    writer.start()
    code, out, err = run("rows", "--target", "kind", "--drop", "note", command="fit")
    writer.join()
    assert (code, err) == (0, "") and "200 rows, 3 columns; 200 rows used" in out


# -- quoted line ends, and blocks


def test_a_quoted_line_end_at_the_end_of_a_block_is_no_row(tmp_path):
    line = '{},"two\nlines","and\n\nmore",b\n'
    text = "x,y,z,kind\n" + "".join(line.format(i) for i in range(500_000))
    (tmp_path / "rows.csv").write_text(text)  # 14 MB, two blocks
    found = [batch for job in source_of(tmp_path / "rows.csv").jobs(["x", "y", "z"]) for batch in job.read()]
    assert len(found) == 2 and sum(map(len, found)) == 500_000
    assert all(
        (batch[name] == text).all() for batch in found for name, text in (("y", "two\nlines"), ("z", "and\n\nmore"))
    )


WRITTEN = {
    "quoted line ends": TEXT,
    "CRLF": TEXT.replace("\n", "\r\n"),
    "short rows": "x,note,kind\n" + "1,a\n2,b,c\n\n3\n" * 60,
    "a stray quote": "x,note,kind\n" + '1,5" pipe,a\n' * 90,
    "one column": "x\n" + "1\n\n2\n" * 70,
    "one column below blank lines": "\n\nx\n" + "1\n\n2\n" * 70,
    "a row longer than a block": "x,note,kind\n" + "1,b,c\n" * 30 + '2,"' + "a,\n" * 300 + '",c\n' + "3,b,c\n" * 30,
    "a header alone": "x,note,kind\n",
    "names that are missing": ",x,\n" + "1,2,3\n" * 50,
}


@pytest.mark.parametrize("size", [64, 257, 1 << 23])
@pytest.mark.parametrize("case", WRITTEN)
def test_memory_and_batches_read_the_same_fields(case, size, tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_bytes(WRITTEN[case].encode())
    whole = read(str(tmp_path / "rows.csv")).table
    monkeypatch.setattr(fields, "_BYTES", size)
    monkeypatch.setattr(fields, "_ROWS", size)
    lines = list(csv.reader(io.StringIO(WRITTEN[case].lstrip("\n"), newline="")))
    width = len(lines[0])
    rows = [[*line, *[""] * (width - len(line))] for line in lines[1:] if line or width == 1]
    for source in (source_of(tmp_path / "rows.csv"), source_of([tmp_path / "rows.csv"])):
        source.declare(dict.fromkeys(whole.columns, "O"))
        parts = [batch for job in source.jobs() for batch in job.read()]
        assert sum(map(len, parts)) == len(whole) == len(rows)
        if len(rows):
            found = pd.concat(parts).astype(object).where(lambda values: values.notna(), "")
            assert found.to_numpy().tolist() == rows
    again = read(str(tmp_path / "rows.csv")).table
    pd.testing.assert_frame_equal(again, whole)


def test_a_quote_that_is_never_closed_is_told(tmp_path):
    (tmp_path / "rows.csv").write_text('x,note,kind\n1,"a,b\n' + "2,b,c\n" * 50)
    for reading in (read, lambda path: rows_of(source_of(path))):
        with pytest.raises(ValueError, match=r"rows\.csv.*EOF inside string"):
            reading(str(tmp_path / "rows.csv"))
