"""Sources that are files, and the choice of a source for the data that a user gave.

The fields of CSV files are text: the kind of a column is known when all of it has been seen, or by a schema. Columns of
Parquet files have types; they are read row group by row group.
"""

import functools
import glob
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import Argument, InputError, InputWarning, Note, counted, listed, named, warn
from bayesgen.sheets.batches import ROWS, Job, Source, Tables, check_like, declared, located, parts_of, without_index
from bayesgen.sheets.fields import PARQUET_HEAD, Fields, opened
from bayesgen.sheets.files import CSV, PARQUET, declared_categories, few_words, shown
from bayesgen.sheets.survey import Survey, kind_of_values
from bayesgen.tables.arrow import compute, dataset, pa, parquet
from bayesgen.tables.columns import a_word, check_distinct, check_present, check_same, dense
from bayesgen.tables.numerals import FEW, Column, Numerals, few, read_column, words_in
from bayesgen.tables.reading import Reading, limit_of
from bayesgen.tables.text import gaps_among_numbers, matches, sampled
from bayesgen.tables.units import fits, unit_in, without_units


class CsvFiles(Source):
    """CSV files with a header, of the same columns; all is text until all of it has been seen, or a schema is given."""

    def __init__(self, paths: list[str], reading: Reading, used: Collection[str]):
        self.paths, self.missing = paths, set(reading.words)
        self._files: list[Fields] = []
        self._notes = set[tuple[str, str]]()  # those of files that were told
        for path in self.paths:
            with located(path):
                file = opened(path, None, reading.sheet, reading.encoding)
                self._files.append(Fields(file, reading.sep, reading.percent is not None, reading.fill_down))
                check_distinct(self._files[-1].names)
                check_same(self._files[-1].names, self._files[0].names, self.paths[0])
        fields, limits = self._files[0].names, reading.limited(used)
        self._told = {limit_of(name): name for name in fields if name in limits and limit_of(name) not in fields}
        self.columns = [*fields, *self._told]
        self.kinds = dict.fromkeys(self._told, "b") | dict.fromkeys(self._told.values(), "f")  # those that are known
        self.reading = replace(reading, missing=tuple(sorted(reading.missing)), sep=reading.sep or self._files[0].sep)

    def _how(self, name: str) -> Numerals:
        return replace(self.reading.numerals(name), limits=name in self._told.values())

    def _find(self) -> None:
        """Find in the first rows how numbers are written, where nobody says it, as in a file that is read whole."""
        texts = () if self.reading.decimal else self.texts(self._files[0].names)
        if (first := next((batch for job in texts for batch in job.read()), None)) is None:
            return
        table = dict(zip(first.schema.names, first.columns, strict=True))
        read = {name: read_column(fields, self.missing, how=self._how(name)).values for name, fields in table.items()}
        *_, (reading, told, doubts) = shown(table, self.missing, self.reading, few_words(read, {}))
        self.reading = replace(reading, decimal=reading.decimal or ".", meant=self.reading.meant)
        beside = [f"{column!r}: the unit {unit} dropped" for column, unit in self.reading.units.items()]
        for note in [*told, *doubts.values(), *beside]:
            parts = note.parts if isinstance(note, Note) else (note,)  # a fit in batches has no such arguments
            words = (f"{p.name} {p.value!r}" if isinstance(p, Argument) else p for p in parts if p != " left out")
            warn(InputWarning(*words))

    def declare(self, kinds):
        """Set the kinds of columns: text, or numbers and bools."""
        self.kinds |= kinds

    def types(self, target, weight):
        """Return the kinds of the columns, by a pass over all fields where they are not known."""
        if not self.kinds.keys() >= set(self.columns):
            self._survey()
        return Survey({name: self.kinds[name] for name in self.columns if name not in (target, weight)})

    def _survey(self) -> None:
        """Find the kinds of all columns by a pass over their fields, and how their numbers are written; tell it."""
        self._find()
        names, rows = self._files[0].names, 0
        kinds, odd = dict.fromkeys(names, ""), {name: Counter[str]() for name in names}
        texts: dict[str, set] = {name: set() for name in names}  # some of each column
        signs = {sign: dict[str, Any]() for sign in ("percent", "minus", "other", "fractions")}  # entries with them
        for job in self.texts(names):
            for batch in job.read():
                rows += len(batch)
                for name, fields in zip(names, batch.columns, strict=True):
                    found, before = self._kind(name, fields, self._how(name), signs, odd[name]), kinds[name]
                    kinds[name] = (before or found) if before in ("", found) or not found else "O"
                    texts[name] |= {*sampled(fields).to_pylist()} if len(texts[name]) <= FEW else set()
        for name, entries in ((name, entries) for name, entries in odd.items() if entries):
            number = few(entries.total(), rows) and len(texts[name].difference(entries)) > FEW
            number = number and kinds[name] == "f" and not any(map(unit_in, entries))
            kinds[name] = "f" if number and self._take(name, entries) else "O"
        self.kinds = kinds | self.kinds
        if self.reading.percent is None:  # else it is that of the fit, for later files
            numbers = [name for name in names if kinds[name] == "f"]
            percent, minus = (tuple(sorted(signs[sign].keys() & set(numbers))) for sign in ("percent", "minus"))
            fractions = {name: name in signs["fractions"] for name in numbers}
            self.reading = replace(self.reading, percent=percent, minus=minus, fractions=fractions)
            ways = ("% dropped, as in", "read as a number below 0:", "computed from another power of ten of its unit:")
            for sign, what in zip(signs, ways, strict=False):
                for name, entry in sorted((n, entry) for n, entry in signs[sign].items() if n in numbers):
                    warn(InputWarning(f"column {name!r}: {what} {entry!r}", column=name, value=entry))

    def _take(self, name: str, odd: Counter[str]) -> bool:
        """Take the few odd entries of a column of numbers as limits or as gaps; False if another tells limits of it."""
        pattern, tells = replace(self._how(name), limits=True).pattern, limit_of(name)
        limits = [entry for entry in odd if fits(pattern, entry)]
        words = [entry for entry in odd if entry not in limits]
        if limits and tells in self.columns:
            return False
        if limits:
            self._told[tells], self.kinds[tells] = name, "b"
            self.columns.insert(self.columns.index(name) + 1, tells)
        self.reading = replace(self.reading, meant={**self.reading.meant, name: dict.fromkeys(words, "")})
        half = f"read as numbers, below a limit > 0 as half of it; {tells!r} tells which"
        for entries, what in ((words, "taken as missing among numbers"), (limits, half)):
            if entries:
                text = f"{listed(entries)} in {counted(sum(odd[entry] for entry in entries), 'row')} {what}"
                warn(InputWarning(f"column {name!r}: {text}", column=name, value=entries))
        return True

    def _kind(self, name: str, fields, how: Numerals, signs: dict[str, dict[str, Any]], odd: Counter[str]) -> str:
        """Return the kind that fields show, numbers but for the ``odd`` ones, and note the first that has a sign."""
        try:
            column = read_column(fields, self.missing, None, how, name)
        except InputError:  # numbers in two ways of writing, which is told where they are read
            return "f"
        kind = kind_of_values(column.values) if column.values.notna().any() else ""
        text = kind != "O" or 2 * sum(words_in(sampled(fields), self.missing, how).values()) >= min(len(fields), 64)
        if not text and (words := words_in(fields, self.missing, how)):
            odd.update(words)
            how = replace(how, meant=(*how.meant, *((word, "") for word in words)))
            return self._kind(name, fields, how, signs, odd)
        if kind == "f":
            fraction = compute.any(compute.match_substring(fields, how.decimal)).as_py()
            percent = "" if column.bare else column.percent  # else an error names both where they are read
            for sign, entry in zip(signs, (percent, column.minus, column.other, fraction), strict=True):
                signs[sign] |= {name: entry} if entry and name not in signs[sign] else {}
        return kind

    def jobs(self, columns=None):
        """Yield a job for each block of a file, with typed columns."""
        names = self.columns if columns is None else list(columns)
        fields = dict.fromkeys(self._told.get(name, name) for name in names)
        for job in self.texts(list(fields)):
            yield replace(job, read=functools.partial(self._typed, job, names))

    def _typed(self, job, names: list[str]):
        for batch in job.read():
            columns = {}
            for name, fields in zip(batch.schema.names, batch.columns, strict=True):
                kind, how = self.kinds.get(name, "O"), self._how(name)
                found = read_column(fields, self.missing, "text" if kind == "O" else "number", how, name)
                columns[name] = self.reading.as_durations(found.values, name)
                if limit_of(name) in self._told:
                    columns[limit_of(name)] = found.tells
                if kind != "O":
                    self._check(name, fields, found, how)
            yield pd.DataFrame({name: columns[name] for name in names})

    def _check(self, name: str, fields, found: Column, how: Numerals) -> None:
        """Warn of what is doubtful in a column of numbers, and raise an error where an entry is none."""
        told = [*self.reading.doubts(name, fields, found, how)]
        if found.minus and self.reading.percent is not None and name not in self.reading.minus:
            told.append(f"column {name!r}: read as a number below 0: {found.minus!r}")
        if name in self.reading.changed:
            told.append(f"column {name!r}: read as it stands; the fit had other values than its file")
        for text in told:
            warn(InputWarning(text, column=name))
        if kind_of_values(found.values) not in ("f", self.kinds[name]) and found.values.notna().any():
            numbers = matches(without_units(fields, how.unit), how.pattern) | gaps_among_numbers(fields, self.missing)
            word = a_word(fields.filter(pa.array(~numbers)).to_pylist())
            raise ValueError(f"column {name!r} holds {word!r}, which is not a number")

    def texts(self, columns) -> Iterator[Job]:
        """Yield jobs for the blocks as they stand in the files, every field as text."""
        for path, fields in zip(self.paths, self._files, strict=True):
            with located(path):
                check_present(columns, fields.names)
            row, blocks = 0, fields.blocks(columns)
            while True:
                with located(f"{path}, after row {row}"):
                    block = next(blocks, None)
                for note in [note for note in fields.notes if (path, note) not in self._notes]:
                    self._notes.add((path, note))
                    said = str(note.parts[0]).removesuffix(": ") if isinstance(note, Note) else note
                    warn(InputWarning(f"{path}: {said}"))
                if block is None:
                    break
                place = f"{path}, rows {row} to {row + len(block) - 1}"
                yield Job(place, functools.partial(iter, (block,)))
                row += len(block)


def kinds_of(schema) -> dict[str, str]:
    """Return the kinds of the columns of a schema: "O" for text, "f" for numbers, "b" for what may be bools too."""
    kinds, reading = {column: kind for block in schema.blocks for column, kind in block.kinds.items()}, schema.reading
    return kinds | {c: "f" if c in reading.days and not form else "O" for c, form in reading.dates.items()}


_READ_BYTES = 1 << 16  # of a column at a time


class ParquetFiles(Source):
    """Parquet files of one schema, row group by row group; partitions named in their paths are columns."""

    def __init__(self, files):
        self.fragments, self.schema, self.rows = list(files.get_fragments()), files.schema, 0
        self._categories: set[str] = set()
        for fragment in self.fragments:
            with located(str(fragment.path)):
                check_like(fragment.physical_schema, self.fragments[0])
                stored = fragment.physical_schema.with_metadata(fragment.metadata.metadata)
                self._categories |= declared_categories(stored).keys()
            self.rows += sum(group.num_rows for group in fragment.row_groups)
        self.paths = [str(fragment.path) for fragment in self.fragments if _near(fragment)]

    def types(self, target, weight):
        found = declared(self.schema, target, weight)
        return replace(found, kinds=found.kinds | dict.fromkeys(found.kinds.keys() & self._categories, "O"))

    def jobs(self, columns=None):
        names = without_index(self.schema) if columns is None else list(columns)
        for fragment in self.fragments:
            for group in fragment.row_groups:
                if group.num_rows:
                    place = f"{fragment.path}, row group {group.id}"
                    yield Job(place, functools.partial(self._read, fragment, group.id, names))

    def _read(self, fragment, group, names):
        keys = {k: v for k, v in dataset.get_partition_keys(fragment.partition_expression).items() if k in names}
        stored = [name for name in names if name not in keys]
        check_present(stored, fragment.physical_schema.names)
        with fragment.filesystem.open_input_file(fragment.path) as opened:
            # Of a disk a few pages of a column at a time; over a network whole columns, by few requests.
            how: dict = {"buffer_size": _READ_BYTES, "pre_buffer": False} if _near(fragment) else {}
            file = parquet.ParquetFile(opened, metadata=fragment.metadata, page_checksum_verification=True, **how)
            try:
                for batch in file.iter_batches(ROWS, row_groups=[group], columns=stored, use_threads=False):
                    for name, value in keys.items():
                        column = pa.repeat(pa.scalar(value, self.schema.field(name).type), len(batch))
                        batch = batch.append_column(name, column)
                    yield batch.select(names)
            except (ValueError, OSError) as error:
                broken = [name for name in stored if not _readable(file, group, name)]
                raise ValueError(f"columns {listed(broken)} cannot be read: {error}") from error


def _near(fragment) -> bool:
    return fragment.filesystem.type_name == "local"


def _readable(file, group, column) -> bool:
    try:
        return file.read_row_group(group, [column], use_threads=False) is not None
    except (ValueError, OSError):
        return False


def source_of(data: Any, reading: Reading | None = None, used: Collection[str] = ()) -> Source:
    """Return the source of batches for what a user gave: data of any kind that `fit_batches` takes.

    CSV files are written as ``reading`` says; limits are read in columns that a fit ``used``, see `Reading.limited`.
    """
    source: Any = data
    if isinstance(data, Source):
        return data
    if (parts := parts_of(data)) is not None:
        return parts
    paths = data if isinstance(data, list | tuple) else [data]
    if paths and all(isinstance(one, str | os.PathLike) for one in paths):
        return _files([os.fspath(one) for one in paths], reading or Reading(), used)
    if isinstance(data, dataset.FileSystemDataset) and isinstance(source.format, dataset.ParquetFileFormat):
        return ParquetFiles(data)
    if isinstance(data, dataset.Dataset):
        return Tables(lambda: source.scanner(batch_size=ROWS).to_reader(), True, paths=getattr(data, "files", ()))
    if hasattr(data, "collect_batches") and hasattr(data, "collect_schema"):  # a LazyFrame of polars
        return Tables(functools.partial(_of_lazy, data), True)
    if isinstance(data, pd.DataFrame):
        try:
            source = pa.Table.from_pandas(dense(data))
        except pa.ArrowException:  # a column holds values of several types, which Arrow has not
            return Tables(lambda: [dense(data)], True)
    if hasattr(source, "__arrow_c_stream__"):
        again, rows = not isinstance(data, pa.RecordBatchReader), len(source) if hasattr(source, "__len__") else None
        return Tables(lambda: pa.RecordBatchReader.from_stream(source), again, rows)
    if isinstance(data, Iterable) and not isinstance(data, np.ndarray | dict | bytes):
        return Tables(lambda: data, iter(data) is not data)
    known = "the path of Parquet or CSV files, an Arrow stream, a polars LazyFrame, or an iterator of tables"
    raise TypeError(f"cannot read batches of a {type(data).__name__}: give {known}")


def source_like(data: Any, missing: Sequence[str], schema) -> Source:
    """Return the source of batches for data to be read as the table of a schema was written, where there is one."""
    if schema is None:
        return source_of(data, Reading.said(missing=tuple(missing)))
    found, reading = source_of(data, schema.reading.given(missing=missing), schema.used().columns), schema.reading
    typed = found.types(None, None) if isinstance(found, ParquetFiles) else Survey({})
    for column, kind in typed.kinds.items():
        if kind in ("b", "f") and reading.in_days(column) and column not in typed.durations:
            raise ValueError(f"column {column!r} holds numbers, and the fit had durations there")
    return found


def _of_lazy(frame):
    schema = pa.RecordBatchReader.from_stream(frame.collect_schema().to_frame(eager=True)).schema
    parts = frame.collect_batches(chunk_size=ROWS, maintain_order=True)
    batches = (batch for table in parts for batch in table.to_arrow().cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _files(names: list[str], *csv: Any) -> Source:
    if len(names) == 1 and "://" in names[0]:
        return ParquetFiles(dataset.dataset(names[0], format="parquet", partitioning="hive"))
    found = [path for name in names for path in expanded(name)]
    paths = [path for path in found if _is_parquet(path)]
    if paths and len(paths) < len(found):
        raise ValueError(f"files of several formats: {named(found)}; give those of one")
    if paths:
        with located(paths[0]):
            base = names[0] if len(names) == 1 and os.path.isdir(names[0]) else None
            options: Any = {"format": "parquet", "partitioning": "hive", "partition_base_dir": base}
            files = dataset.dataset(paths, **options)
        return ParquetFiles(files)
    return CsvFiles(found, *csv)


def expanded(name: str) -> list[str]:
    """Return the files of a path, a folder or a glob, in order."""
    if os.path.isdir(name):
        inside = [str(path) for path in sorted(Path(name).rglob("*")) if path.is_file() and path.name[0] not in "._"]
        found = [path for path in inside if path.lower().endswith(PARQUET)]
        found = found or [path for path in inside if path.lower().endswith(CSV)]
    else:
        found = [name] if os.path.isfile(name) else sorted(glob.glob(name, recursive=True))
    if not found:
        raise ValueError(f"{name}: no such file, nor a folder or pattern of Parquet or CSV files")
    return found


def _is_parquet(path: str) -> bool:
    if path.lower().endswith(PARQUET):
        return True
    with located(path), open(path, "rb") as file:
        return file.read(len(PARQUET_HEAD)) == PARQUET_HEAD
