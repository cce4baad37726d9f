"""Sources of batches: their contract, and sources that are streams, iterators of tables, or Dask collections.

A source gives jobs, parts that can be read by themselves on any thread. The partitions of a Dask collection are summed
by the workers of its cluster, and only sums travel, up a tree.
"""

import abc
import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bayesgen.core.errors import Informed, InputError, InputTypeError, named
from bayesgen.sheets.survey import Survey, kind_of_type
from bayesgen.tables.arrow import is_arrow, pa
from bayesgen.tables.columns import check_same
from bayesgen.tables.reading import Reading

ROWS = 1 << 16  # of a batch: ten columns of float32 are 2.6 MB


@contextlib.contextmanager
def located(place: str):
    """Put the name of a place before the message of an error inside the block."""
    try:
        yield
    except (ValueError, OSError, TypeError, KeyError) as error:  # those of pyarrow derive from these
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        parts = error.parts if isinstance(error, Informed) else [" ".join(str(error).split())]
        facts = {name: getattr(error, name, None) for name in ("column", "row", "value", "kind")}
        raise kind(f"{place}: ", *parts, **facts) from error


@dataclass(frozen=True)
class Job:
    """A part of a source."""

    place: str  # its name in messages: "a.parquet, row group 3"
    read: Callable[[], Iterator[Any]]  # reads it, batch by batch

    def each(self, work: Callable[[Any], Any]) -> Iterator[Any]:
        """Yield ``work(batch)`` of all batches, in order; errors name the place."""
        with located(self.place):
            yield from map(work, self.read())


class Source(abc.ABC):
    """A source of rows in batches: files, a stream, or an iterator."""

    again: bool = True  # it can be read more than once
    rows: int | None = None  # number of rows, where it is known before they are read
    paths: Sequence[str] = ()  # the files of this machine that it reads
    reading: Reading = Reading()  # how it is written, as far as that is known

    @abc.abstractmethod
    def jobs(self, columns: Sequence[str] | None = None) -> Iterator[Job]:
        """Yield the parts in order; only ``columns`` have to be read."""

    def types(self, target, weight) -> Survey | None:
        """Return the kinds of the columns if types declare them, else None: the rows must be read."""
        return None

    def declare(self, kinds: dict[str, str]) -> None:  # noqa: B027 - most sources have types
        """Set the kinds of columns without a type, as in `Survey.kinds`."""


def without_index(schema) -> list[str]:
    """Return the columns of a schema of pyarrow, without the index that pandas wrote."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in index]


def declared(schema, target, weight) -> Survey:
    """Return the kinds of the columns, without the columns of classes and weights."""
    columns = [name for name in without_index(schema) if name not in (target, weight)]
    types = {name: schema.field(name).type for name in columns}
    spans = frozenset(name for name, kind in types.items() if pa.types.is_duration(kind))
    return Survey({name: kind_of_type(kind) for name, kind in types.items()}, durations=spans)


def check_like(schema, first) -> None:
    """Raise an error if a file has other columns than the ``first``, a fragment, or one of another kind."""
    check_same(names := without_index(schema), without_index(first.physical_schema), first.path)
    for name in sorted(names):
        mine, other = schema.field(name).type, first.physical_schema.field(name).type
        if kind_of_type(mine) != kind_of_type(other) and "null" not in (mine, other):
            raise ValueError(f"column {name!r} is of the type {mine}, in {first.path} of the type {other}")


class Tables(Source):
    """Tables, or tuples (X, y), one after the other; those of an Arrow stream have types, and are cut into batches."""

    def __init__(self, begin: Callable[[], Any], again: bool, rows: int | None = None, paths=()):
        self._begin, self.again, self.rows, self.paths = begin, again, rows, paths
        self._opened: Any = None  # tables begun to see their types

    def types(self, target, weight):
        """Return the kinds that a stream declares; of tables that are read once those in the first rows, else None."""
        self._opened = opened = self._begin() if self._opened is None else self._opened
        if is_arrow(opened, "RecordBatchReader"):
            return declared(opened.schema, target, weight)
        if self.again:
            return None
        tables, seen, found = iter(opened), [], None
        while found is None and (table := next(tables, None)) is not None:
            with located(f"batch {len(seen)}"):
                found = Survey.of(table, target, weight, labelled=False)
            seen.append(table)
        self._opened = itertools.chain(seen, tables)
        return found

    def jobs(self, columns=None):
        opened, self._opened, row = self._begin() if self._opened is None else self._opened, None, 0
        if not is_arrow(opened, "RecordBatchReader"):
            yield from (Job(f"batch {number}", partial(iter, (table,))) for number, table in enumerate(opened))
            return
        if absent := [name for name in columns or () if name not in opened.schema.names]:
            raise ValueError(f"the source lacks the columns {named(absent)}; it has {named(opened.schema.names)}")
        for batch in opened:
            chosen = batch if columns is None else batch.select(list(columns))
            for start in range(0, len(batch), ROWS):  # pieces that stay in the cache
                part = chosen[start : start + ROWS]
                yield Job(f"rows {row} to {row + len(part) - 1}", partial(iter, (part,)))
                row += len(part)


_BRANCHES = 8  # of the tree of sums


class DaskParts(Source):
    """Partitions of a Dask collection, each a table or a tuple (X, y), as `dask.delayed` values.

    A partition whose worker dies is computed again by another, so the sums are what they would have been.
    """

    def __init__(self, parts: Sequence[Any]):
        self.parts = list(parts)

    def jobs(self, columns=None):
        """Yield a job for each partition, computed one by one: for predictions that are wanted here."""
        for number, part in enumerate(self.parts):
            yield Job(f"partition {number}", lambda part=part: iter((part.compute(),)))

    def total(self, work: Callable[[Job], Any], add: Callable[[Any, Any], Any]) -> Any:
        """Sum ``work(job)`` of all partitions on the workers, by a tree; None where there is none."""
        from dask import bag
        from dask.delayed import delayed

        one = delayed(lambda number, part: [work(Job(f"partition {number}", lambda: iter((part,))))])
        values = [one(number, part) for number, part in enumerate(self.parts)]
        if not values:
            return None
        total: Any = bag.from_delayed(values).fold(add, split_every=_BRANCHES)
        return total.to_delayed().compute()  # of threads, or of the cluster: a bag alone would start processes


def parts_of(data: Any) -> DaskParts | None:
    """Return the partitions of a Dask DataFrame, of Dask arrays (X, y), or of a list of delayed tables; else None."""
    if hasattr(data, "to_delayed") and hasattr(data, "map_partitions"):
        return DaskParts(data.to_delayed())
    if isinstance(data, tuple) and data and all(hasattr(a, "to_delayed") and hasattr(a, "chunks") for a in data):
        return DaskParts(_of_arrays(data))
    if isinstance(data, list) and data and all(hasattr(a, "dask") and hasattr(a, "compute") for a in data):
        return DaskParts(data)
    return None


def _of_arrays(arrays) -> list[Any]:
    from dask.delayed import delayed

    X, *others = arrays
    X = X.rechunk({1: -1})
    if any(a.ndim != 1 or a.shape[0] != X.shape[0] for a in others):
        raise ValueError(f"Dask arrays: expected X (n, columns) and y (n,), got the shapes {[a.shape for a in arrays]}")
    columns = [X.to_delayed()[:, 0], *(a.rechunk((X.chunks[0],)).to_delayed() for a in others)]
    return [delayed(tuple)(list(part)) for part in zip(*columns, strict=True)]
