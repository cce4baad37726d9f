"""Which source reads what a user gave: paths, Arrow streams, lazy frames, collections of Dask, iterators of tables."""

import functools
import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesgen.messages import named
from bayesgen.tables.files import CSV, PARQUET
from bayesgen.tables.sources.base import Source, told
from bayesgen.tables.sources.csv import CsvFiles
from bayesgen.tables.sources.dask import parts_of
from bayesgen.tables.sources.parquet import ParquetFiles
from bayesgen.tables.sources.streams import TABLES, Stream, Tables


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
    if (parts := parts_of(data)) is not None:
        return parts
    if isinstance(data, list | tuple) and data and all(isinstance(one, str | os.PathLike) for one in data):
        return _files([os.fspath(one) for one in data], missing)
    import pyarrow as pa
    from pyarrow import dataset

    if isinstance(data, dataset.FileSystemDataset) and isinstance(source.format, dataset.ParquetFileFormat):
        return ParquetFiles(data)
    if isinstance(data, dataset.Dataset):
        return Stream(lambda: source.scanner(batch_size=TABLES).to_reader(), True, paths=getattr(data, "files", ()))
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
    parts = frame.collect_batches(chunk_size=TABLES, maintain_order=True)
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
