"""Parquet files, whose columns have types, row group by row group."""

import functools

from bayesgen.messages import listed
from bayesgen.tables.sources.arrow import check_like, declared, without_index
from bayesgen.tables.sources.base import ROWS, Job, Source, told

_READ_BYTES = 1 << 16  # of a column at a time


class ParquetFiles(Source):
    """Parquet files of one schema, row group by row group; partitions named in their paths are columns."""

    def __init__(self, dataset):
        self.fragments, self.rows, self.identity, first = [], 0, [], None
        for fragment in dataset.get_fragments():
            with told(str(fragment.path)):
                schema, groups = fragment.physical_schema, fragment.row_groups
                first = first or (fragment.path, schema)
                check_like(schema, *first)
            count = sum(group.num_rows for group in groups)
            self.rows += count
            self.identity.append([str(fragment.path), count])
            self.fragments.append(fragment)
        self.schema = dataset.schema

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
