"""Sources of batches: files of Parquet and CSV, Arrow streams, lazy frames, iterators of tables.

A source gives jobs. A job is a part that can be read by itself on any thread, such as a row group of a Parquet file; it
has a name for messages, and yields batches small enough to stay in the cache. So memory does not grow with the rows.
"""

import abc
import contextlib
import functools
import glob
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayesgen.messages import listed, named
from bayesgen.tables.fields import column_of, kind_of
from bayesgen.tables.files import CSV, PARQUET
from bayesgen.tables.survey import Survey, kind_of_type

ROWS = 1 << 16  # of a batch: ten columns of float32 are 2.6 MB
_TABLES = 1 << 17  # of a table in memory
_CSV_BYTES = 1 << 23
_READ_BYTES = 1 << 16  # of a column of a Parquet file at a time


@contextlib.contextmanager
def told(place: str):
    """What goes wrong inside is told with the name of the place."""
    try:
        yield
    except (ValueError, OSError, TypeError, KeyError) as error:  # those of pyarrow derive from these
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{place}: {' '.join(str(error).split())}") from error


@dataclass(frozen=True)
class Job:
    """A part of a source.

    Attributes
    ----------
    place : str
        What to call it: "a.parquet, row group 3".
    read : callable () -> iterator of batches
        Reads it.
    """

    place: str
    read: Callable[[], Iterator[Any]]


class Source(abc.ABC):
    """A source of rows in batches: files, a stream, or an iterator.

    Attributes
    ----------
    again : bool
        Whether it can be read more than once.
    rows : int or None
        How many rows it has, where that is known before they are read.
    identity : list
        What tells whether it is still the same source, as far as can be told.
    """

    again: bool = True
    rows: int | None = None
    identity: Sequence = ()

    @abc.abstractmethod
    def jobs(self, columns: Sequence[str] | None = None) -> Iterator[Job]:
        """Parts in their order; ``columns`` are all that need be read."""

    def types(self, target, weight) -> Survey | None:
        """Kinds of the columns where types declare them; None where the rows must tell."""
        return None

    def declare(self, kinds: dict[str, str]) -> None:  # noqa: B027 - most sources have types
        """Take what columns without a type hold, as in `Survey.kinds`."""


def _without_index(schema) -> list[str]:
    """Columns of a schema of pyarrow, less those that pandas wrote for the index of a frame."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in index]


def _kinds(schema, target, weight) -> dict[str, str]:
    columns = [name for name in _without_index(schema) if name not in (target, weight)]
    return {name: kind_of_type(schema.field(name).type) for name in columns}


class ParquetFiles(Source):
    """Parquet files of one schema, row group by row group; partitions named in their paths are columns."""

    def __init__(self, dataset):
        self.fragments, self.rows, self.identity, first = [], 0, [], None
        for fragment in dataset.get_fragments():
            with told(str(fragment.path)):
                schema, groups = fragment.physical_schema, fragment.row_groups
                first = first or (fragment.path, schema)
                _check_like(schema, *first)
            count = sum(group.num_rows for group in groups)
            self.rows += count
            self.identity.append([str(fragment.path), count])
            self.fragments.append(fragment)
        self.schema = dataset.schema

    def types(self, target, weight):
        """Kinds of the columns."""
        return Survey(_kinds(self.schema, target, weight))

    def jobs(self, columns=None):
        """A row group each."""
        names = _without_index(self.schema) if columns is None else list(columns)
        for fragment in self.fragments:
            for group in fragment.row_groups:
                if group.num_rows:
                    place = f"{fragment.path}, row group {group.id}"
                    yield Job(place, functools.partial(self._read, fragment, group.id, names))

    def _read(self, fragment, group, names):
        import pyarrow as pa
        from pyarrow import dataset, fs, parquet

        keys = {k: v for k, v in dataset.get_partition_keys(fragment.partition_expression).items() if k in names}
        own = [name for name in names if name not in keys]
        absent = [name for name in own if name not in fragment.physical_schema.names]
        if absent:
            raise ValueError(f"lacks the columns {listed(absent)}; it has {listed(fragment.physical_schema.names)}")
        with fragment.filesystem.open_input_file(fragment.path) as opened:
            # Of a disk a few pages of a column at a time; over a network whole columns, by few requests.
            near = isinstance(fragment.filesystem, fs.LocalFileSystem)
            how: dict = {"buffer_size": _READ_BYTES, "pre_buffer": False} if near else {}
            file = parquet.ParquetFile(opened, metadata=fragment.metadata, **how)
            batches = file.iter_batches(ROWS, row_groups=[group], columns=own, use_threads=False)
            try:
                for batch in batches:
                    for name, value in keys.items():
                        column = pa.repeat(pa.scalar(value, self.schema.field(name).type), len(batch))
                        batch = batch.append_column(name, column)
                    yield batch.select(names)
            except (ValueError, OSError) as error:
                broken = [name for name in own if not _readable(file, group, name)]
                raise ValueError(f"columns {listed(broken)} cannot be read: {error}") from error


def _readable(file, group, column) -> bool:
    try:
        for _ in file.iter_batches(ROWS, row_groups=[group], columns=[column], use_threads=False):
            pass
    except (ValueError, OSError):
        return False
    return True


def _check_like(schema, path, first) -> None:
    """Raise where a file has other columns than the first, or one of another kind."""
    here, there = (set(_without_index(s)) for s in (schema, first))
    if here != there:
        raise ValueError(
            f"its columns are not those of {path}: it lacks {listed(sorted(there - here))} and has besides "
            f"{listed(sorted(here - there))}"
        )
    for name in sorted(here):
        mine, other = schema.field(name).type, first.field(name).type
        if mine != other and kind_of_type(mine) != kind_of_type(other) and "null" not in (mine, other):
            raise ValueError(f"column {name!r} is of the type {mine}, in {path} of the type {other}")


class CsvFiles(Source):
    """CSV files with a header, of the same columns; all is text until all of it has been seen, or a schema is given."""

    def __init__(self, paths: Sequence[str], missing: Sequence[str] = ()):
        from pyarrow import csv

        self.paths, self.missing, self.identity, first = list(paths), set(missing), [], None
        self.kinds: dict[str, str] = {}  # of the columns, as far as they are known
        for path in self.paths:
            with told(path):
                with csv.open_csv(path, csv.ReadOptions(block_size=_CSV_BYTES), *self._options(None)) as reader:
                    schema = reader.schema
                twice = [name for name in schema.names if schema.names.count(name) > 1]
                if twice:
                    raise ValueError(f"the column {twice[0]!r} is there twice; rename one")
                first = first or (path, schema)
                _check_like(schema, *first)
            self.identity.append([path, os.path.getsize(path)])
        assert first is not None
        self.columns = first[1].names

    def _options(self, columns):
        import pyarrow as pa
        from pyarrow import csv

        text = {name: pa.string() for name in columns or ()}
        how: Any = {"include_columns": columns} if columns else {}
        convert = csv.ConvertOptions(column_types=text, strings_can_be_null=False, **how)
        return csv.ParseOptions(newlines_in_values=False), convert

    def declare(self, kinds):
        """Take what columns hold: text, or numbers and bools."""
        self.kinds |= kinds

    def types(self, target, weight):
        """Kinds of the columns, by a pass over all fields where they are not known."""
        if not self.kinds.keys() >= set(self.columns):
            self.kinds = self._survey() | self.kinds
        return Survey({name: self.kinds[name] for name in self.columns if name not in (target, weight)})

    def _survey(self) -> dict[str, str]:
        kinds: dict[str, str] = dict.fromkeys(self.columns, "")
        for job in self._texts(self.columns):
            with told(job.place):
                for batch in job.read():
                    for name in self.columns:
                        found, before = kind_of(batch.column(name), self.missing), kinds[name]
                        kinds[name] = (before or found) if before in ("", found) or not found else "O"
        return kinds

    def jobs(self, columns=None):
        """A block of a file each, with the columns of their types."""
        for job in self._texts(list(columns) if columns is not None else self.columns):
            yield Job(job.place, functools.partial(self._typed, job))

    def _typed(self, job):
        import pandas as pd

        for batch in job.read():
            columns = {}
            for name in batch.schema.names:
                kind = "text" if self.kinds.get(name, "O") == "O" else "number"
                fields = pd.Series(batch.column(name).to_numpy(zero_copy_only=False), dtype=object)
                columns[name] = column_of(fields, self.missing, kind)[0]
                if kind == "number" and columns[name].dtype.kind == "O" and columns[name].notna().any():
                    wrong = [field for field in fields if _is_text(field, self.missing)][:1] or ["True and False"]
                    raise ValueError(f"column {name!r} holds {wrong[0]!r}, which is not a number")
            yield pd.DataFrame(columns)

    def _texts(self, columns) -> Iterator[Job]:
        """Blocks as they stand in the files, every field as text."""
        from pyarrow import csv

        for path in self.paths:
            row = 0
            with told(path):
                reader = csv.open_csv(path, csv.ReadOptions(block_size=_CSV_BYTES), *self._options(columns))
            with reader:
                while True:
                    with told(f"{path}, after row {row}"):
                        batch = next(reader, None)
                    if batch is None:
                        break
                    if len(batch):
                        place = f"{path}, rows {row} to {row + len(batch) - 1}"
                        yield Job(place, functools.partial(iter, (batch,)))
                        row += len(batch)


def kinds_of(schema) -> dict[str, str]:
    """What the columns of a schema hold: text where their categories are text and for dates, else numbers."""
    kinds = {}
    for block in schema.blocks:
        text = block.categories is not None and all(isinstance(c, str) for c in block.categories)
        kinds |= dict.fromkeys(block.columns, "O" if text else "f")
    return kinds | dict.fromkeys(schema.dates, "O")


def _is_text(field: str, missing) -> bool:
    import pyarrow as pa

    return kind_of(pa.array([field], pa.string()), missing) == "O"


class Stream(Source):
    """Record batches of pyarrow from a stream, one after the other."""

    def __init__(self, begin: Callable[[], Any], again: bool, rows: int | None = None):
        self._begin, self.again, self.rows = begin, again, rows
        self._opened: Any = None  # a reading begun to see the types

    def types(self, target, weight):
        """Kinds of the columns."""
        self._opened = self._opened or self._begin()
        return Survey(_kinds(self._opened.schema, target, weight))

    def jobs(self, columns=None):
        """A record batch each."""
        stream, self._opened = self._opened or self._begin(), None
        names, row = _without_index(stream.schema) if columns is None else list(columns), 0
        absent = [name for name in names if name not in stream.schema.names]
        if absent:
            raise ValueError(f"the source lacks the columns {named(absent)}; it has {named(stream.schema.names)}")
        for batch in stream:
            batch = batch.select(names)
            for start in range(0, len(batch), _TABLES):
                part = batch[start : start + _TABLES]
                yield Job(f"rows {row} to {row + len(part) - 1}", functools.partial(_pieces, part))
                row += len(part)


def _pieces(batch):
    """Yield a record batch in pieces that stay in the cache."""
    for start in range(0, len(batch), ROWS):
        yield batch[start : start + ROWS]


class Tables(Source):
    """Tables, or tuples (X, y), from an iterable."""

    def __init__(self, tables: Iterable[Any]):
        self._tables = tables
        self.again = iter(tables) is not tables

    def types(self, target, weight):
        """Kinds of the columns of the first rows, where there is no reading them twice."""
        if self.again:
            return None
        tables, seen, found = iter(self._tables), [], None
        for table in tables:
            seen.append(table)
            with told(f"batch {len(seen) - 1}"):
                found = Survey.of(table, target, weight)
            if found is not None:
                break
        self._tables = itertools.chain(seen, tables)
        return found

    def jobs(self, columns=None):
        """A table each."""
        for number, table in enumerate(self._tables):
            yield Job(f"batch {number}", functools.partial(iter, (table,)))


def source_of(data: Any, missing: Sequence[str] = ()) -> Source:
    """Return the batches of what a user gave.

    Parameters
    ----------
    data : path, glob, folder, or list of paths; object with ``__arrow_c_stream__``; polars LazyFrame; iterable
        See `fit_batches`.
    missing : sequence of str
        What is missing in a CSV file, beside an empty field.

    Raises
    ------
    ValueError, TypeError
        If it is nothing of that kind; if files have different columns, or one cannot be read.
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, str | os.PathLike):
        return _files([os.fspath(data)], missing)
    source: Any = data
    if "dask" in sys.modules:  # nobody has a collection of it otherwise
        from bayesgen.tables.dask import parts_of

        if (parts := parts_of(data)) is not None:
            return parts
    if isinstance(data, list | tuple) and data and all(isinstance(one, str | os.PathLike) for one in data):
        return _files([os.fspath(one) for one in data], missing)
    import pyarrow as pa
    from pyarrow import dataset

    if isinstance(data, dataset.FileSystemDataset) and isinstance(source.format, dataset.ParquetFileFormat):
        return ParquetFiles(data)
    if isinstance(data, dataset.Dataset):
        return Stream(lambda: source.scanner(batch_size=_TABLES).to_reader(), True)
    if isinstance(data, pa.RecordBatchReader):
        return Stream(lambda: data, False)
    if hasattr(data, "collect_batches") and hasattr(data, "collect_schema"):  # a LazyFrame of polars
        return Stream(functools.partial(_of_lazy, data), True)
    if hasattr(data, "__arrow_c_stream__"):
        rows = len(data) if hasattr(data, "__len__") else None
        return Stream(lambda: pa.RecordBatchReader.from_stream(data), True, rows)
    if isinstance(data, Iterable) and not isinstance(data, np.ndarray | dict | bytes):
        return Tables(data)
    raise TypeError(
        f"cannot read batches of a {type(data).__name__}: give the path of Parquet or CSV files, an Arrow stream, a "
        "polars LazyFrame, or an iterator of tables"
    )


def _of_lazy(frame):
    """The batches of a LazyFrame as a reader of record batches."""
    import pyarrow as pa

    schema = pa.RecordBatchReader.from_stream(frame.collect_schema().to_frame(eager=True)).schema
    parts = frame.collect_batches(chunk_size=_TABLES, maintain_order=True)
    batches = (batch for part in parts for batch in part.to_arrow().cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _files(names: list[str], missing) -> Source:
    """Files of one format from paths, folders and globs."""
    from pyarrow import dataset

    if len(names) == 1 and "://" in names[0]:
        return ParquetFiles(dataset.dataset(names[0], format="parquet", partitioning="hive"))
    found = [path for name in names for path in _expanded(name)]
    parquet = [path for path in found if path.lower().endswith(PARQUET)]
    if parquet and len(parquet) < len(found):
        raise ValueError(f"files of several formats: {named(found)}; give those of one")
    if parquet:
        with told(parquet[0]):
            base = names[0] if len(names) == 1 and os.path.isdir(names[0]) else None
            how: Any = {"format": "parquet", "partitioning": "hive", "partition_base_dir": base}
            files = dataset.dataset(parquet, **how)
        return ParquetFiles(files)
    return CsvFiles(found, missing)


def _expanded(name: str) -> list[str]:
    """Files of a path, a folder or a glob, in order."""
    if os.path.isdir(name):
        inside = [str(path) for path in sorted(Path(name).rglob("*")) if path.is_file() and path.name[0] not in "._"]
        found = [path for path in inside if path.lower().endswith(PARQUET)]
        found = found or [path for path in inside if path.lower().endswith(CSV)]
    else:
        found = [name] if os.path.isfile(name) else sorted(glob.glob(name, recursive=True))
    if not found:
        raise ValueError(f"{name}: no such file, nor a folder or pattern of Parquet or CSV files")
    unknown = [path for path in found if not path.lower().endswith((*PARQUET, *CSV))]
    if unknown:
        raise ValueError(f"{unknown[0]}: neither Parquet ({', '.join(PARQUET)}) nor CSV ({', '.join(CSV)}) by its name")
    return found
