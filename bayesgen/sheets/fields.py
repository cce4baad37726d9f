"""Files of tables, opened by what their first bytes say, and the fields of CSV as text.

A file is Parquet, Excel, or text in UTF-8 or UTF-16, compressed or not, whatever its name says. Others are refused,
with a way to make a table of each. A named pipe, which can be read once, is read into memory. Arrow reads CSV block by
block, eight times as fast as pandas. Pandas reads what Arrow does not, as a stream: rows that are too short, a row
longer than a block, a single column (where a blank line is a gap), and files with faults.
"""

import contextlib
import csv
import io
import itertools
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import Argument, InputError, Note, counted, listed, named
from bayesgen.sheets.excel import sheet_as_csv
from bayesgen.sheets.found import SEPARATORS, UNITS, separator
from bayesgen.tables.arrow import arrow_csv, compute, pa
from bayesgen.tables.columns import is_number
from bayesgen.tables.text import SUMS

_BYTES = 1 << 23  # of a block
_ROWS = 1 << 16  # of a piece of the stream
_HEAD = 1 << 12  # bytes that tell what a file is
_LOOK = 30  # lines among which the header is looked for
PARQUET_HEAD = b"PAR1\x15"  # of files with a footer in the clear; a header of CSV may begin with PAR1
_STREAMS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # decompressed while they are read
_STREAMS |= {b"BZh%d1AY&SY" % size: "bz2" for size in range(1, 10)}
_WHOLE = {b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip", b"PK\x05\x06": "zip"}  # decompressed at once
ENDINGS = {"gzip": ".gz", "bz2": ".bz2", "zstd": ".zst", "xz": ".xz", "zip": ".zip"}  # of names, by compression
_MARKS = {b"\xff\xfe\x00\x00": "utf-32", b"\x00\x00\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_EXCEL = "open it there and save it as 'CSV UTF-8', or pandas.read_excel(path).to_csv(...)"
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": ("an old Excel file (xls)", _EXCEL),
    b"ARROW1\x00": ("a Feather file", "pandas.read_feather(path).to_parquet('table.parquet')"),
    b"SQLite format 3\x00": ("a SQLite database", "sqlite3 -header -csv FILE 'select * from TABLE' > table.csv"),
    b"\x89HDF": ("an HDF5 or netCDF file", "export it as CSV or Parquet"),
    b"Obj\x01": ("an Avro file", "export it as CSV or Parquet"),
    b"%PDF-": ("a PDF document", "ask for the table itself, as CSV"),
    b"$FL2@(#)": ("an SPSS file", "pandas.read_spss(path).to_csv('table.csv', index=False)"),
    b"7z\xbc\xaf": ("a 7-zip archive", "unpack it"),
    b"Rar!\x1a": ("a RAR archive", "unpack it"),
}
_END = b"\x1a"  # Ctrl-Z, which ended texts of DOS
_FORMULA = '^="(.*)"$'  # ="007", which keeps Excel from making a number of it
_STARTS = re.compile(r"\W*\d(?!0\^|0?/)").match  # with a number, and not as 10^9/l and 1/min do
_JSON = re.compile(rb'(\xef\xbb\xbf)?\s*(\[\s*)?\{\s*"[^"]*"\s*:')  # an object, or a list of them


@dataclass(frozen=True)
class Opened:
    """A file that can be read from its beginning as often as one likes."""

    parquet: bool  # else text
    open: Callable[[], Any]  # begins to read it: Parquet as it is, text decompressed and in UTF-8
    compressed: str = ""  # by what, "" where it is not


def opened(path: str | Path, content: bytes | None = None, sheet: str = "", encoding: str = "") -> Opened:
    """Tell what a file is by its first bytes, and how to read it; ``content`` are its bytes if they were read.

    A ``sheet`` of an Excel file, by default the one that is not empty, is text too. An ``encoding`` is that of text
    which has no mark of one and is not UTF-8.
    """
    if content is None and not stat.S_ISREG((found := os.stat(path)).st_mode):
        if stat.S_ISDIR(found.st_mode):
            raise ValueError("this is a folder, where a file is expected")
        content = Path(path).read_bytes()  # a pipe gives its bytes once
    with open(path, "rb") if content is None else io.BytesIO(content) as file:
        head = file.read(_HEAD)

    def raw() -> Any:
        return pa.OSFile(os.fspath(path)) if content is None else pa.BufferReader(content)

    if head.startswith(PARQUET_HEAD):
        return Opened(True, raw)
    if head[4:10] == b'\0\0\0\0{"':  # a header of JSON behind its length
        raise _refusal("a saved model, or another safetensors file", "name the table that belongs to it")
    if foreign := _sign(head, _FOREIGN):
        raise _refusal(*foreign)
    if how := _sign(head, _STREAMS):
        with _damage(how), pa.CompressedInputStream(raw(), how) as stream:
            head = stream.read(_HEAD)
        return _text(head, lambda: pa.CompressedInputStream(raw(), how), how, encoding)
    if how := _sign(head, _WHOLE):

        def whole() -> Any:  # anew each time: of a folder of files at most one is in memory
            with raw() as file:
                return pa.BufferReader(_unpacked(file, how))

        if how == "zip":
            with raw() as file:
                packed = file.read()
            with _damage("zip"), zipfile.ZipFile(io.BytesIO(packed)) as archive:
                excel = any(name.startswith("xl/") for name in archive.namelist())
            if excel:
                text = sheet_as_csv(packed, sheet)
                return Opened(False, lambda: pa.BufferReader(text))
        with whole() as file:
            head = file.read(_HEAD)
        return _text(head, whole, how, encoding)
    return _text(head, raw, "", encoding)


def _text(head: bytes, raw: Callable[[], Any], compressed: str, encoding: str) -> Opened:
    """Return text in UTF-8 as it is, and text with the mark of another encoding, or of one that was said, decoded."""
    if code := _sign(head, _MARKS) or encoding:

        def decoded() -> Any:
            with _damage(compressed), raw() as file:
                content = file.read()
            try:
                text = content.decode("utf-8" if _is_utf8(content) else code)
            except UnicodeDecodeError as error:
                raise _undecoded(error, code) from None
            return pa.BufferReader(text.encode().removesuffix(_END))

        return Opened(False, decoded, compressed)
    if foreign := _sign(head, _FOREIGN | {PARQUET_HEAD: ("a compressed Parquet file", "unpack it")}):
        raise _refusal(*foreign)
    if _JSON.match(head):
        raise _refusal("JSON", "pandas.read_json(path).to_csv('table.csv', index=False); with a row a line, lines=True")
    if b"\x00" in head:
        utf16 = "it is no text, or text in UTF-16 without the mark that says so: give "
        raise InputError(utf16, Argument("encoding", "utf-16le"))
    return Opened(False, lambda: _until_end(raw()), compressed)


def _until_end(stream) -> Any:
    """Return a stream of text without the Ctrl-Z that may be its last byte."""
    held = b""

    def passed(data) -> Any:
        nonlocal held
        if not held and bytes(memoryview(data)[-1:]) != _END:
            return data  # as it is, and no copy
        text = held + data
        held = _END if text.endswith(_END) else b""
        return text.removesuffix(held)

    return pa.TransformInputStream(stream, passed)


def _is_utf8(content: bytes) -> bool:
    """Return True for UTF-8, whatever a user says: text in another encoding is none, but for some of ASCII alone."""
    with contextlib.suppress(UnicodeDecodeError):
        return not re.search(b"[\0\x1b]", content) and content.decode() is not None
    return False


def _undecoded(error: UnicodeDecodeError, code: str) -> InputError:
    """Return the error on text that is not in the encoding that it seems, or was said, to have."""
    if code != "utf-8":
        return InputError(f"byte {error.start} is no text in {code.upper()}")
    perhaps = f"its text is not UTF-8 (byte {error.start}), but perhaps that of an older Windows: give "
    return InputError(perhaps, Argument("encoding", "cp1252"), ", or save it as 'CSV UTF-8'")


def _unpacked(file, how: str) -> bytes:
    with _damage(how):
        if how == "xz":
            return lzma.decompress(file.read())
        with zipfile.ZipFile(io.BytesIO(file.read())) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
            if "content.xml" in names:
                raise _refusal("an OpenDocument file (ods)", _EXCEL)
            if len(names) != 1:
                raise ValueError(f"a zip archive of {len(names)} files, {listed(names)}: unpack it, and name one")
            return archive.read(names[0])


@contextlib.contextmanager
def _damage(how: str) -> Iterator[None]:
    """Turn whatever a decompressor raises over damaged bytes into one error; ValueErrors are errors already."""
    broken = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)
    try:
        yield
    except broken as error:  # RuntimeError: a password, or a method of compression that Python has not
        if not how:
            raise
        raise ValueError(damaged(how, error)) from error


def damaged(how: str, error) -> str:
    """Return the message on a file that cannot be decompressed."""
    return f"compressed by {how}, and damaged, or cut off before its end: {error}"


def _refusal(what: str, cure: str) -> ValueError:
    return ValueError(f"this is {what} by its first bytes, neither CSV nor Parquet: {cure}")


def _sign(head: bytes, signs: dict[bytes, Any]) -> Any:
    return next((value for sign, value in signs.items() if head.startswith(sign)), None)


class Fields:
    """The fields of one file, all of them text; ``names`` is its header, with names for columns that have none.

    Where no separator ``sep`` is said, ``self.sep`` is that which the file leaves no choice of. Lines above the header,
    rows that repeat it, a row of units below it, sums and footnotes are left out, and told in ``self.notes``.

    Raise ValueError if the file is empty, is no text in UTF-8, or seems to have another separator, which is taken
    where ``found`` is true. An empty field of the columns ``down`` means what stands above, as in merged cells.
    """

    def __init__(self, file: Opened, sep: str, found: bool = False, down: Collection[str] = ()):
        if len(sep) > 1:
            raise ValueError(f"a separator is one character, such as ';' or a tab, not {sep!r}")
        self._file, self.sep, self._skip, self._found, self._down = file, sep, 0, found, down
        self.notes: list[str] = []
        self._above, self._written = self._header()
        self.names = [re.sub(_FORMULA, r"\1", name) or f"Unnamed: {p}" for p, name in enumerate(self._written)]

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield record batches of the rows below the header, by default with all columns."""
        names = self.names if columns is None else list(columns)
        places = list(range(len(names))) if columns is None else [self.names.index(name) for name in names]
        header, row, above, wide = 1, 0, dict[str, Any](), sorted({0, *places})  # the first one tells sums
        with self._named_faults():
            for batch in self._rows(wide):
                if len(batch) > header:
                    rows = batch[header:] if row else self._without_units(batch[header:])
                    rows = self._without_headers(rows, [self._written[place] for place in wide], row)
                    rows = self._without_sums(rows, row)
                    row += len(rows)
                    found = [rows.columns[wide.index(place)] for place in places]
                    for place, (name, texts) in enumerate(zip(names, found, strict=True)):
                        if compute.any(compute.starts_with(texts, '="')).as_py():
                            found[place] = compute.replace_substring_regex(texts, _FORMULA, r"\1")
                        if name in self._down:
                            found[place], above[name] = _filled_down(found[place], above.get(name))
                    yield pa.RecordBatch.from_arrays(found, names)
                header = 0 if len(batch) else header

    def _without_headers(self, batch, written: list[str], row: int):
        """Return the rows of a batch, which begins at a ``row``, without those that repeat the header."""
        if len(written) < 2:
            return batch
        again: Any = None
        for name, fields in zip(written, batch.columns, strict=True):
            same = compute.equal(fields, name)
            again = same if again is None else compute.and_(again, same)
            if not compute.any(again).as_py():
                return batch
        count = counted(compute.sum(again).as_py(), "row")
        first = row + compute.index(again, True).as_py()
        self.notes.append(f"{count} left out: the header {named(written)} again, first behind row {first - 1}")
        return batch.filter(compute.invert(again))

    def _without_units(self, batch):
        """Return the first rows without one of units: words, one or more of them a unit, above all that are numbers."""
        pairs = [[text.strip() for text in fields[:2].to_pylist()] for fields in batch.columns]
        above = [first for first, *second in pairs if second and _STARTS(second[0])]
        units = [text for text in above if text.strip("()[]") in UNITS or re.match(r"[(\[].*[)\]]$|%$", text)]
        if not units or any(map(_STARTS, above)):  # with a number
            return batch
        self.notes.append(f"1 row of units below the header left out, with {units[0]!r}")
        return batch[1:]

    def _without_sums(self, batch, row: int):
        """Return the rows of a batch, which begins at a ``row``, without sums and footnotes.

        Their first field that is filled says so, the others are empty or hold a number, and one or more is empty.
        """
        begins, blank = False, True
        for fields in batch.columns:
            begins = compute.or_(begins, compute.and_(blank, compute.match_substring_regex(fields, SUMS)))
            blank = compute.and_(blank, compute.equal(compute.utf8_trim_whitespace(fields), ""))
            if not compute.any(blank).as_py():
                break
        places = np.flatnonzero(begins)
        lines = [[text for text in line.values() if text.strip()] for line in batch.take(pa.array(places)).to_pylist()]
        if not lines or any(len(line) == batch.num_columns for line in lines):
            return batch
        if any(not re.search(r"\d", text) for line in lines for text in line[1:]):
            return batch
        told = f"{counted(len(lines), 'row')} left out: sums, it seems, such as {lines[0][0]!r}"
        self.notes.append(f"{told} behind row {row + int(places[0]) - 1}")
        return batch.filter(compute.invert(begins))

    def _lines(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(self._file.open(), "utf-8-sig", newline="")

    def _header(self) -> tuple[int, list[str]]:
        """Return the number of blank lines at the beginning, and the fields of the header.

        Above it a line such as ``sep=;`` may tell the separator, as it does to Excel: it wins, and is skipped.
        """
        with self._named_faults(), self._lines() as text:
            first = text.readline()
            if told := re.match(r'"?sep=(.)"?\s*$', first, re.I | re.S):
                self.sep, self._skip, first = told[1], 1, ""
            if not self.sep and (found := separator(self._lines)) != ",":
                sign = "a tab" if found == "\t" else repr(found)
                self.notes.append(Note(f"fields apart by {sign} alone: ", Argument("sep", found)))
                self.sep = found
            self.sep = self.sep or ","
            rows = csv.reader(itertools.chain([first] if first else [], text), delimiter=self.sep)
            look, faults = list[tuple[int, list[str]]](), list[csv.Error]()
            try:
                for above, row in enumerate(rows):
                    if len(row) > 1 or (row and row[0].strip()):
                        look.append((above if not look else rows.line_num, row))
                    if len(look) == _LOOK:
                        break
            except csv.Error as error:  # of a row that others than Python may read
                faults = [error]
        if faults and not look:
            raise ValueError(f"its first line is no header: {faults[0]}")
        if not look:
            raise ValueError("the file is empty")
        titles, (above, row) = _titles(look), look[0]
        other = max(SEPARATORS, key=row[0].count)
        if len(row) == 1 and other in row[0] and other != self.sep and row[0][:1] != "#":
            if self._found:
                self.sep = other
                return self._header()
            if other != ",":
                raise InputError(f"one column, whose name holds {other!r}: give ", Argument("sep", other))
        if titles:
            first = ", ".join(filter(None, row))
            self.notes.append(f"{counted(titles, 'line')} above the header left out, first {first!r}")
            self._skip, above, row = self._skip + look[titles][0] - 1, 0, look[titles][1]
        return above, row

    def _rows(self, places: list[int]) -> Iterator[Any]:
        """Yield record batches of some columns, the header among the rows."""
        read = 0
        if len(self.names) > 1:
            with contextlib.suppress(pa.ArrowInvalid):  # a block that cannot be cut: the stream goes on behind it
                for block in self._by_arrow(places):
                    yield block
                    read += len(block)
                return
        for batch in self._by_pandas(places):
            yield batch[read:]
            read = max(read - len(batch), 0)

    def _by_arrow(self, places: list[int]) -> Iterator[Any]:
        names = [str(place) for place in range(len(self.names))]
        reading = arrow_csv.ReadOptions(block_size=_BYTES, column_names=names, skip_rows=self._skip)
        parsing = arrow_csv.ParseOptions(delimiter=self.sep, newlines_in_values=True)
        kinds, wanted = dict.fromkeys(names, pa.string()), [names[place] for place in places]
        converting = arrow_csv.ConvertOptions(column_types=kinds, include_columns=wanted)
        with arrow_csv.open_csv(self._file.open(), reading, parsing, converting) as blocks:
            yield from blocks

    def _by_pandas(self, places: list[int]) -> Iterator[Any]:
        """Yield what pandas reads, in pieces, the header as a row: pandas would rename a name that is there twice."""
        how: dict = {"header": None, "dtype": str, "na_filter": False, "encoding": "utf-8-sig", "sep": self.sep}
        how |= {"skiprows": self._skip}
        if len(self.names) == 1:  # where a blank line is a row
            how |= {"skip_blank_lines": False, "skiprows": self._skip + self._above}
        with self._file.open() as file:
            source = io.BytesIO(file.read()) if self._file.compressed else file  # pandas hides the errors of a stream
            reading: Any = pd.read_csv(source, **how, chunksize=_ROWS)  # by the stubs it is a DataFrame
            with reading as pieces:
                for piece in pieces:
                    if piece.shape[1] != len(self.names):
                        raise ValueError(f"{piece.shape[1]} fields in a row, where the header has {len(self.names)}")
                    texts = [pa.array(piece.iloc[:, place], pa.string(), from_pandas=True) for place in places]
                    yield pa.RecordBatch.from_arrays([text.fill_null("") for text in texts], list(map(str, places)))

    @contextlib.contextmanager
    def _named_faults(self) -> Iterator[None]:
        """Raise an error that names the fault of a file, in place of that of a decoder or a decompressor."""
        try:
            yield
        except pd.errors.ParserError as error:
            if not (found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))):
                raise
            expected, line, seen = found.groups()
            header = f"where the header has {expected}: {named(self._written)}"
            raise ValueError(f"line {line} has {seen} fields, {header}") from None
        except UnicodeDecodeError as error:
            raise _undecoded(error, "utf-8") from None
        except OSError as error:
            if not self._file.compressed:
                raise
            raise ValueError(damaged(self._file.compressed, error)) from error


def _filled_down(fields: "pa.Array", above: str | None) -> tuple["pa.Array", str | None]:
    """Return fields with the one before in place of an empty one, the first of which is ``above``, and the last."""
    blank = compute.equal(compute.utf8_trim_whitespace(fields), "")
    known = pa.concat_arrays([pa.array([above], fields.type), compute.if_else(blank, None, fields)])
    filled = compute.fill_null_forward(known)
    return compute.fill_null(filled[1:], ""), filled[-1].as_py()


def _titles(look: list[tuple[int, list[str]]]) -> int:
    """Return the number of lines above the header: with fewer than half as many filled fields as the fullest of all.

    The line below them is a header where its fields are distinct words.
    """
    filled = [[field for field in row if field.strip()] for _, row in look]
    widest = max(map(len, filled))
    titles = next(place for place, row in enumerate(filled) if 2 * len(row) >= widest)
    header = filled[titles]
    return titles if len({*header}) == len(header) and not any(map(is_number, header)) else 0
