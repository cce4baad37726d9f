"""Parquet files, whose columns have types, row group by row group."""

import functools
import hashlib
import os
import struct
from typing import Any

from bayesgen.messages import listed
from bayesgen.tables.sources.arrow import check_like, declared, without_index
from bayesgen.tables.sources.base import ROWS, Job, Source, told

_READ_BYTES = 1 << 16  # of a column at a time


class ParquetFiles(Source):
    """Parquet files of one schema, row group by row group; partitions named in their paths are columns."""

    def __init__(self, dataset):
        self.fragments, self.rows, first = [], 0, None
        for fragment in dataset.get_fragments():
            with told(str(fragment.path)):
                schema, groups = fragment.physical_schema, fragment.row_groups
                first = first or (fragment.path, schema)
                check_like(schema, *first)
            self.rows += sum(group.num_rows for group in groups)
            self.fragments.append(fragment)
        self.schema = dataset.schema
        self.paths = [str(fragment.path) for fragment in self.fragments if _near(fragment)]

    def identity(self):
        """Size and time of each file, and its footer, which says where each row group begins and what it holds."""
        return [_identity(fragment) for fragment in self.fragments]

    def types(self, target, weight):
        """Kinds of the columns."""
        return declared(self.schema, target, weight)

    def jobs(self, columns=None):
        """A row group each."""
        names = without_index(self.schema) if columns is None else list(columns)
        for fragment in self.fragments:
            for group in fragment.row_groups:
                if group.num_rows:
                    place = f"{fragment.path}, row group {group.id}"
                    yield Job(place, functools.partial(self._read, fragment, group.id, names))

    def _read(self, fragment, group, names):
        import pyarrow as pa
        from pyarrow import dataset, parquet

        keys = {k: v for k, v in dataset.get_partition_keys(fragment.partition_expression).items() if k in names}
        own = [name for name in names if name not in keys]
        absent = [name for name in own if name not in fragment.physical_schema.names]
        if absent:
            raise ValueError(f"lacks the columns {listed(absent)}; it has {listed(fragment.physical_schema.names)}")
        with fragment.filesystem.open_input_file(fragment.path) as opened:
            # Of a disk a few pages of a column at a time; over a network whole columns, by few requests.
            how: dict = {"buffer_size": _READ_BYTES, "pre_buffer": False} if _near(fragment) else {}
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


def _near(fragment) -> bool:
    """Whether a file is one of this machine."""
    from pyarrow import fs

    return isinstance(fragment.filesystem, fs.LocalFileSystem)


def _identity(fragment) -> tuple[str, dict[str, Any]]:
    path = str(fragment.path)
    with told(path):
        found = fragment.filesystem.get_file_info(path)
        with fragment.filesystem.open_input_file(path) as file:
            (length,) = struct.unpack("<I", file.read_at(4, found.size - 8))
            footer = file.read_at(length, max(found.size - 8 - length, 0))
    parts = repr(([group.id for group in fragment.row_groups], str(fragment.partition_expression)))
    known = {"size": found.size, "time": found.mtime_ns, "footer": hashlib.sha256(footer).hexdigest(), "parts": parts}
    return os.path.abspath(path) if _near(fragment) else path, known


def _readable(file, group, column) -> bool:
    try:
        for _ in file.iter_batches(ROWS, row_groups=[group], columns=[column], use_threads=False):
            pass
    except (ValueError, OSError):
        return False
    return True
