"""Streams of record batches, and iterators of tables."""

import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bayesgen.messages import named
from bayesgen.tables.sources.arrow import declared, without_index
from bayesgen.tables.sources.base import ROWS, Job, Source, told
from bayesgen.tables.survey import Survey

TABLES = 1 << 17  # rows of a table in memory


class Stream(Source):
    """Record batches of pyarrow from a stream, one after the other."""

    def __init__(self, begin: Callable[[], Any], again: bool, rows: int | None = None, paths: Sequence[str] = ()):
        self._begin, self.again, self.rows, self.paths = begin, again, rows, paths
        self._opened: Any = None  # a reading begun to see the types

    def types(self, target, weight):
        """Kinds of the columns."""
        self._opened = self._opened or self._begin()
        return declared(self._opened.schema, target, weight)

    def jobs(self, columns=None):
        """A record batch each."""
        stream, self._opened = self._opened or self._begin(), None
        names, row = without_index(stream.schema) if columns is None else list(columns), 0
        absent = [name for name in names if name not in stream.schema.names]
        if absent:
            raise ValueError(f"the source lacks the columns {named(absent)}; it has {named(stream.schema.names)}")
        for batch in stream:
            batch = batch.select(names)
            for start in range(0, len(batch), TABLES):
                part = batch[start : start + TABLES]
                place = f"rows {row} to {row + len(part) - 1}"
                yield Job(place, functools.partial(_pieces, part), functools.partial(_mark, part))
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
            yield Job(f"batch {number}", functools.partial(iter, (table,)), functools.partial(_mark, table))


def _mark(batch) -> str:
    """Digest of all that a batch holds."""
    import joblib
    import pyarrow as pa

    if isinstance(batch, tuple):
        return "-".join(map(_mark, batch))
    try:
        table = pa.table(batch) if isinstance(batch, dict) or hasattr(batch, "__arrow_c_stream__") else None
    except (pa.ArrowException, TypeError):  # a column of pandas that holds values of several types
        table = None
    if isinstance(batch, pa.RecordBatch):
        table = pa.Table.from_batches([batch])
    if table is None:
        return str(joblib.hash(batch))
    digest = hashlib.sha256()
    for part in table.to_batches(ROWS):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:  # with the categories, which no batch alone has
            stream.write_batch(part)
        digest.update(sink.getvalue())
    return digest.hexdigest()
