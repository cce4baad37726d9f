"""Sources that are files, and the choice of a source for the data that a user gave.

The fields of CSV files are text: the kind of a column is known when all of it has been seen, or by a schema. Columns of
Parquet files have types; they are read row group by row group.
"""

import contextlib
import functools
import glob
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import InputError, InputWarning, listed, named, warn
from bayesgen.tables.arrow import compute, pa
from bayesgen.tables.batches import (
    ROWS,
    TABLES,
    Job,
    Source,
    Stream,
    Tables,
    check_like,
    declared,
    located,
    parts_of,
    without_index,
)
from bayesgen.tables.columns import check_distinct, check_present, check_same, dense
from bayesgen.tables.fields import PARQUET_HEAD, Fields, opened
from bayesgen.tables.files import CSV, PARQUET, declared_categories
from bayesgen.tables.found import as_written
from bayesgen.tables.numerals import Numerals, office_column, read_column
from bayesgen.tables.reading import Reading, limit_of
from bayesgen.tables.survey import Survey
from bayesgen.tables.text import kind_of


class CsvFiles(Source):
    """CSV files with a header, of the same columns; all is text until all of it has been seen, or a schema is given."""

    def __init__(self, paths: list[str], reading: Reading, used: Collection[str]):
        self.paths, self.missing, limits = paths, set(reading.words), reading.limited(used)
        self.reading = replace(reading, missing=tuple(sorted(reading.missing)))
        self._files: list[Fields] = []
        self._notes = set[tuple[str, str]]()  # those of files that were told
        for path in self.paths:
            with located(path):
                self._files.append(Fields(opened(path, None, reading.sheet), reading.sep, reading.percent is not None))
                names = self._files[-1].names
                check_distinct(names)
                check_same(names, self._files[0].names, self.paths[0])
        fields = self._files[0].names
        self._told = {limit_of(name): name for name in fields if name in limits and limit_of(name) not in fields}
        self.columns = [*fields, *self._told]
        self.kinds = dict.fromkeys(self._told, "b") | dict.fromkeys(self._told.values(), "f")  # those that are known
        self.reading = replace(self.reading, sep=reading.sep or self._files[0].sep)
        self._how = self._ways(fields)

    def _ways(self, columns: Iterable[str]) -> dict[str, Numerals]:
        limited = set(self._told.values())
        return {name: replace(self.reading.numerals(name), limits=name in limited) for name in columns}

    def _find(self) -> None:
        """Find in the first rows how numbers are written, where nobody says it, as in a file that is read whole."""
        if self.reading.decimal:
            return
        first = next((batch for job in self._texts(self._how) for batch in job.read()), None)
        if first is None:
            return
        table = {name: first.column(name) for name in self._how}
        self.reading, told, doubts = as_written(table, self.missing, self.reading, self.reading.sep)
        self.reading = replace(self.reading, decimal=self.reading.decimal or ".")
        self._how = self._ways(self._how)
        beside = [f"{column!r}: the unit {unit} dropped" for column, unit in self.reading.units.items()]
        for note in [*told, *(doubt.replace(" left out", "") for doubt in doubts.values()), *beside]:
            warn(InputWarning(note.replace("--", "")))

    def declare(self, kinds):
        """Set the kinds of columns: text, or numbers and bools."""
        self.kinds |= kinds

    def types(self, target, weight):
        """Return the kinds of the columns, by a pass over all fields where they are not known."""
        if not self.kinds.keys() >= set(self.columns):
            self.kinds = self._survey() | self.kinds
        return Survey({name: self.kinds[name] for name in self.columns if name not in (target, weight)})

    def _survey(self) -> dict[str, str]:
        self._find()
        kinds: dict[str, str] = dict.fromkeys(self._how, "")
        percent, minus, fractions = set[str](), set[str](), dict[str, bool]()
        for job in self._texts(self._how):
            with located(job.place):
                for batch in job.read():
                    for name in kinds:
                        fields, before = batch.column(name), kinds[name]
                        found = self._kind(fields, name, percent, minus)
                        kinds[name] = (before or found) if before in ("", found) or not found else "O"
                        if found == "f":
                            sign = compute.match_substring(fields, self._how[name].decimal)
                            fractions[name] = fractions.get(name, False) or bool(compute.any(sign).as_py())
        if self.reading.percent is not None:  # that of the fit, for later files
            return kinds
        numbers = {name for name, kind in kinds.items() if kind == "f"}
        fractions = {name: one for name, one in fractions.items() if name in numbers}
        signs = {"percent": tuple(sorted(percent & numbers)), "minus": tuple(sorted(minus & numbers))}
        self.reading = replace(self.reading, fractions=fractions, **signs)
        return kinds

    def _kind(self, fields, name: str, percent: set[str], minus: set[str]) -> str:
        found, how = kind_of(fields, self.missing), self._how[name]
        if found != "O":
            return found
        column = (read_column if how.unit else office_column)(fields, self.missing, "number", how)
        if column is None or column.values.dtype.kind not in "iuf":
            return found
        for entry, found_in in ((column.percent, percent), (column.minus, minus)):
            if entry:
                found_in.add(name)
        percents = column.percent if not column.bare and self.reading.percent is None else ""
        for entry, what in ((percents, "% dropped, as in"), (column.minus, "read as a number below 0:")):
            if entry:
                warn(InputWarning(f"column {name!r}: {what} {entry!r}", column=name, value=entry))
        return "f"

    def jobs(self, columns=None):
        """Yield a job for each block of a file, with typed columns."""
        names = self.columns if columns is None else list(columns)
        fields = dict.fromkeys(self._told.get(name, name) for name in names)
        for job in self._texts(list(fields)):
            yield replace(job, read=functools.partial(self._typed, job, names))

    def _typed(self, job, names: list[str]):
        for batch in job.read():
            columns = {}
            for name in batch.schema.names:
                kind = "text" if self.kinds.get(name, "O") == "O" else "number"
                fields = batch.column(name)
                found = read_column(fields, self.missing, kind, self._how[name], name)
                columns[name] = self.reading.as_durations(found.values, name)
                if kind == "number":
                    told = [*self.reading.doubts(name, fields, found, self._how[name])]
                    if found.minus and self.reading.percent is not None and name not in self.reading.minus:
                        told.append(f"column {name!r}: read as a number below 0: {found.minus!r}")
                    if name in self.reading.changed:
                        told.append(f"column {name!r}: read as it stands; the fit had other values than its file")
                    for text in told:
                        warn(InputWarning(text, column=name))
                if (tells := limit_of(name)) in self._told:
                    columns[tells] = found.tells
                odd = "bO" if self.kinds.get(name) == "f" else "O"
                if kind == "number" and found.values.dtype.kind in odd and found.values.notna().any():
                    wrong = [field for field in fields.to_pylist() if self._is_text(field, name)]
                    raise ValueError(f"column {name!r} holds {[*wrong, 'True and False'][0]!r}, which is not a number")
            yield pd.DataFrame({name: columns[name] for name in names})

    def _is_text(self, field: str, name: str) -> bool:
        with contextlib.suppress(InputError):  # a number, but not written as was said
            values = read_column(pa.array([field]), self.missing, "number", self._how[name]).values
            return values.dtype.kind == "O" and bool(values.notna().any())
        return True

    def _texts(self, columns) -> Iterator[Job]:
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
                    warn(InputWarning(f"{path}: {note.partition(': --')[0]}"))
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

    def __init__(self, dataset):
        self.fragments, self.rows, first = [], 0, None
        self._categories: set[str] = set()
        for fragment in dataset.get_fragments():
            with located(str(fragment.path)):
                schema, groups = fragment.physical_schema, fragment.row_groups
                first = first or (fragment.path, schema)
                check_like(schema, *first)
                self._categories |= declared_categories(fragment.metadata.metadata).keys()
            self.rows += sum(group.num_rows for group in groups)
            self.fragments.append(fragment)
        self.schema = dataset.schema
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
        from pyarrow import dataset, parquet

        keys = {k: v for k, v in dataset.get_partition_keys(fragment.partition_expression).items() if k in names}
        stored = [name for name in names if name not in keys]
        check_present(stored, fragment.physical_schema.names)
        with fragment.filesystem.open_input_file(fragment.path) as opened:
            # Of a disk a few pages of a column at a time; over a network whole columns, by few requests.
            how: dict = {"buffer_size": _READ_BYTES, "pre_buffer": False} if _near(fragment) else {}
            file = parquet.ParquetFile(opened, metadata=fragment.metadata, page_checksum_verification=True, **how)
            batches = file.iter_batches(ROWS, row_groups=[group], columns=stored, use_threads=False)
            try:
                for batch in batches:
                    for name, value in keys.items():
                        column = pa.repeat(pa.scalar(value, self.schema.field(name).type), len(batch))
                        batch = batch.append_column(name, column)
                    for name in self._categories.intersection(stored):
                        batch = batch.set_column(*_category(batch, name))
                    yield batch.select(names)
            except (ValueError, OSError) as error:
                broken = [name for name in stored if not _readable(file, group, name)]
                raise ValueError(f"columns {listed(broken)} cannot be read: {error}") from error


def _category(batch, name: str) -> tuple[int, str, Any]:
    """Return the place and the name of a column of a batch, and its values as categories, sorted if made here."""
    place = batch.schema.get_field_index(name)
    values = batch.column(place)
    if not pa.types.is_dictionary(values.type):
        coded = values.dictionary_encode()
        order = np.argsort(coded.dictionary.to_numpy(zero_copy_only=False), kind="stable")
        ranks = pa.array(np.argsort(order), pa.int32())
        values = pa.DictionaryArray.from_arrays(ranks.take(coded.indices), coded.dictionary.take(pa.array(order)))
    return place, name, values


def _near(fragment) -> bool:
    """Return True if a file is on this machine."""
    from pyarrow import fs

    return isinstance(fragment.filesystem, fs.LocalFileSystem)


def _readable(file, group, column) -> bool:
    try:
        for _ in file.iter_batches(ROWS, row_groups=[group], columns=[column], use_threads=False):
            pass
    except (ValueError, OSError):
        return False
    return True


def source_of(data: Any, reading: Reading | None = None, used: Collection[str] = ()) -> Source:
    """Return the source of batches for what a user gave: data of any kind that `fit_batches` takes.

    CSV files are written as ``reading`` says; limits are read in columns that a fit ``used``, see `Reading.limited`.
    """
    csv = reading or Reading(), used
    if isinstance(data, Source):
        return data
    if isinstance(data, str | os.PathLike):
        return _files([os.fspath(data)], *csv)
    source: Any = data
    if (parts := parts_of(data)) is not None:
        return parts
    if isinstance(data, list | tuple) and data and all(isinstance(one, str | os.PathLike) for one in data):
        return _files([os.fspath(one) for one in data], *csv)
    from pyarrow import dataset

    if isinstance(data, dataset.FileSystemDataset) and isinstance(source.format, dataset.ParquetFileFormat):
        return ParquetFiles(data)
    if isinstance(data, dataset.Dataset):
        return Stream(lambda: source.scanner(batch_size=TABLES).to_reader(), True, paths=getattr(data, "files", ()))
    if isinstance(data, pa.RecordBatchReader):
        return Stream(lambda: data, False)
    if hasattr(data, "collect_batches") and hasattr(data, "collect_schema"):  # a LazyFrame of polars
        return Stream(functools.partial(_of_lazy, data), True)
    if isinstance(data, pd.DataFrame):
        data = dense(data)
        try:
            table = pa.Table.from_pandas(data)
        except pa.ArrowException:  # a column holds values of several types, which Arrow has not
            return Tables([data])
        return Stream(table.to_reader, True, len(table))
    if hasattr(data, "__arrow_c_stream__"):
        rows = len(data) if hasattr(data, "__len__") else None
        return Stream(lambda: pa.RecordBatchReader.from_stream(data), True, rows)
    if isinstance(data, Iterable) and not isinstance(data, np.ndarray | dict | bytes):
        return Tables(data)
    raise TypeError(
        f"cannot read batches of a {type(data).__name__}: give the path of Parquet or CSV files, an Arrow stream, a "
        "polars LazyFrame, or an iterator of tables"
    )


def source_like(data: Any, missing: Sequence[str], schema) -> Source:
    """Return the source of batches for data to be read as the table of a schema was written, where there is one."""
    if schema is None:
        return source_of(data, Reading.said(missing=tuple(missing)))
    found, reading = source_of(data, schema.reading.given(missing=missing), schema.used().columns), schema.reading
    typed = found.types(None, None) if isinstance(found, ParquetFiles) else Survey({})
    for column, kind in typed.kinds.items():
        if kind in ("b", "f") and reading.in_days(column) and column not in typed.spans:
            raise ValueError(f"column {column!r} holds numbers, and the fit had durations there")
    return found


def _of_lazy(frame):
    """Return the batches of a LazyFrame as a reader of record batches."""
    schema = pa.RecordBatchReader.from_stream(frame.collect_schema().to_frame(eager=True)).schema
    parts = frame.collect_batches(chunk_size=TABLES, maintain_order=True)
    batches = (batch for table in parts for batch in table.to_arrow().cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _files(names: list[str], *csv: Any) -> Source:
    """Return the source for files of one format, from paths, folders and globs."""
    from pyarrow import dataset

    if len(names) == 1 and "://" in names[0]:
        return ParquetFiles(dataset.dataset(names[0], format="parquet", partitioning="hive"))
    found = [path for name in names for path in expanded(name)]
    parquet = [path for path in found if _is_parquet(path)]
    if parquet and len(parquet) < len(found):
        raise ValueError(f"files of several formats: {named(found)}; give those of one")
    if parquet:
        with located(parquet[0]):
            base = names[0] if len(names) == 1 and os.path.isdir(names[0]) else None
            options: Any = {"format": "parquet", "partitioning": "hive", "partition_base_dir": base}
            files = dataset.dataset(parquet, **options)
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
    """Return True for Parquet by its name, or by its first bytes."""
    if path.lower().endswith(PARQUET):
        return True
    with located(path), open(path, "rb") as file:
        return file.read(len(PARQUET_HEAD)) == PARQUET_HEAD
