"""CSV files, whose fields are text: what a column holds is known when all of it has been seen, or by a schema."""

import functools
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bayesgen.tables.fields import column_of, kind_of
from bayesgen.tables.sources.arrow import check_like
from bayesgen.tables.sources.base import Job, Source, told
from bayesgen.tables.survey import Survey

_BYTES = 1 << 23  # of a block
_END = 1 << 16  # bytes of either end of a file, which tell it from others


class CsvFiles(Source):
    """CSV files with a header, of the same columns; all is text until all of it has been seen, or a schema is given."""

    def __init__(self, paths: Sequence[str], missing: Sequence[str] = ()):
        from pyarrow import csv

        self.paths, self.missing, first = list(paths), set(missing), None
        self.kinds: dict[str, str] = {}  # of the columns, as far as they are known
        for path in self.paths:
            with told(path):
                with csv.open_csv(path, csv.ReadOptions(block_size=_BYTES), *self._options(None)) as reader:
                    schema = reader.schema
                twice = [name for name in schema.names if schema.names.count(name) > 1]
                if twice:
                    raise ValueError(f"the column {twice[0]!r} is there twice; rename one")
                first = first or (path, schema)
                check_like(schema, *first)
        assert first is not None
        self.columns = first[1].names

    def _options(self, columns):
        import pyarrow as pa
        from pyarrow import csv

        text = {name: pa.string() for name in columns or ()}
        how: Any = {"include_columns": columns} if columns else {}
        convert = csv.ConvertOptions(column_types=text, strings_can_be_null=False, **how)
        return csv.ParseOptions(newlines_in_values=False), convert

    def identity(self):
        """Size and time of each file, and a digest of its two ends."""
        return [_identity(path) for path in self.paths]

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
            yield replace(job, read=functools.partial(self._typed, job))

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
                reader = csv.open_csv(path, csv.ReadOptions(block_size=_BYTES), *self._options(columns))
            with reader:
                while True:
                    with told(f"{path}, after row {row}"):
                        batch = next(reader, None)
                    if batch is None:
                        break
                    if len(batch):
                        place = f"{path}, rows {row} to {row + len(batch) - 1}"
                        yield Job(place, functools.partial(iter, (batch,)), functools.partial(str, len(batch)))
                        row += len(batch)


def kinds_of(schema) -> dict[str, str]:
    """What the columns of a schema hold: text where their categories are text and for dates, else numbers."""
    kinds = {}
    for block in schema.blocks:
        text = block.categories is not None and all(isinstance(c, str) for c in block.categories)
        kinds |= dict.fromkeys(block.columns, "O" if text else "f")
    return kinds | dict.fromkeys(schema.dates, "O")


def _identity(path: str) -> tuple[str, dict[str, Any]]:
    with told(path), open(path, "rb") as file:
        found, digest = os.fstat(file.fileno()), hashlib.sha256(file.read(_END))
        file.seek(max(found.st_size - _END, 0))
        digest.update(file.read(_END))
    known = {"size": found.st_size, "time": found.st_mtime_ns, "beginning and end": digest.hexdigest()}
    return os.path.abspath(path), known


def _is_text(field: str, missing) -> bool:
    import pyarrow as pa

    return kind_of(pa.array([field], pa.string()), missing) == "O"
