"""Data larger than memory, in batches: fits by statistics, after a survey of what is not declared, and predictions.

`fit_batches`, `row_schema` and `predict_batches` are methods of the estimators.
"""

import bz2
import contextlib
import gzip
import lzma
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesgen.estimators.workers import added, bar, in_order, total_of
from bayesgen.files import disk
from bayesgen.sheets.batches import DaskParts, Job, Source
from bayesgen.sheets.files import PARQUET
from bayesgen.sheets.rows import RowSchema, columns_of
from bayesgen.sheets.sources import kinds_of, source_like
from bayesgen.sheets.survey import Survey
from bayesgen.tables.arrow import pa, parquet
from bayesgen.tables.learned_rows import declared_classes
from bayesgen.tables.schema import Schema


def fit_batches(
    estimator,
    source,
    target: str | None = None,
    *,
    sample_weight: str | None = None,
    schema: Schema | None = None,
    classes=None,
    missing: Sequence[str] = (),
    progress: bool | None = None,
    workers: int | None = None,
) -> Any:
    """Learn from rows that come in batches, however many: from files, a stream, a query, an iterator.

    The answer is the same as by ``fit`` on all rows at once. Memory holds a few batches. The rows are read once where
    schema and classes are declared or the types of the columns tell all; else a pass before it reads the columns
    of categories and classes. Where something goes wrong the estimator stays as it was.

    Parameters
    ----------
    source : path, Arrow stream, LazyFrame, iterable, or Dask collection
        The path of a Parquet or CSV file, a folder, a glob, or a list of paths; anything with
        ``__arrow_c_stream__``, such as tables of pyarrow, pandas and polars, and relations of DuckDB; a polars
        LazyFrame; an iterable of tables, or of tuples (X, y) or (X, y, weight). An iterator is read once, so it
        takes declared classes, and a schema where columns are categories. Of Dask a DataFrame, or a list of
        delayed tables: then the workers of the cluster sum their partitions.
    target : str
        Column of the classes; None where the source gives tuples.
    sample_weight : str, optional
        Column of row weights >= 0.
    schema : Schema, optional
        Columns and categories, such as ``schema_`` of an earlier fit; columns it does not name are not read.
    classes : array, shape (K,), optional
        Every class label there will be.
    missing : sequence of str
        Markers of a missing value in CSV files, beside an empty field and NA, NaN or null among numbers.
    progress : bool, optional
        True to show a bar with rows a second; by default where the standard error is a terminal.
    workers : int, optional
        Threads that sum; default: all cores.

    Returns
    -------
    self

    Raises
    ------
    ValueError, TypeError
        Naming file and row group (or rows) and column, where one cannot be read, is not of the schema, or holds a
        class or category that was not declared.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from bayesgen import NaiveBayesClassifier
    >>> table = pa.table({"x": [1.0, 1.4, 3.1, 2.9], "kind": ["a", "a", "b", "b"]})
    >>> NaiveBayesClassifier().fit_batches(table, "kind").predict(pa.table({"x": [3.0]}))
    array(['b'], dtype='<U1')
    """
    given = source_like(source, missing, schema)
    with estimator._whole():
        rows = _row_schema(estimator, given, target, sample_weight, schema, classes, progress)
        needed = needed_columns(rows.used.columns, target, sample_weight)
        total = total_of(given, rows.statistics, "rows", given.rows, added, needed, progress, workers)
        estimator._learn_statistics(rows.schema, total, rows.classes, True if target is not None else None)
        return estimator


def needed_columns(columns, target: str | None, weight: str | None) -> list[str] | None:
    """Return the columns of a source to read: these, target and weight; None where its batches are tuples."""
    return None if target is None else [*columns, target, *([] if weight is None else [weight])]


def row_schema(
    estimator,
    source,
    target: str | None = None,
    *,
    sample_weight: str | None = None,
    schema=None,
    classes=None,
    missing: Sequence[str] = (),
) -> RowSchema:
    """Return what a worker needs to sum batches of a source: columns, categories, classes, model.

    The estimator stays as it is. The arguments are the same as for `fit_batches`; nothing is read if schema and
    classes are declared.

    Returns
    -------
    RowSchema
        A record that can be pickled. Its method ``sum`` gives the statistics of a batch; its attributes ``schema``
        and ``classes`` are the arguments of `fit_statistics`.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesgen import NaiveBayesClassifier
    >>> table = pd.DataFrame({"x": [1.0, 1.4, 3.1, 2.9], "kind": ["a", "a", "b", "b"]})
    >>> rows = NaiveBayesClassifier().row_schema(table, "kind")
    >>> total = rows.sum(table[:3]) + rows.sum(table[3:])
    >>> NaiveBayesClassifier().fit_statistics(rows.schema, total, rows.classes).predict(pd.DataFrame({"x": [3.0]}))
    array(['b'], dtype='<U1')
    """
    rows = source_like(source, missing, schema)
    return _row_schema(estimator, rows, target, sample_weight, schema, classes)


def _row_schema(estimator, source: Source, target, weight, schema, classes, progress=None) -> RowSchema:
    """Return the row schema by which workers sum rows; the source is read if schema or classes are not declared."""
    labels = None if classes is None else declared_classes(classes)
    schema, labels = surveyed(estimator._learn_schema, source, target, weight, schema, labels, progress)
    unfitted: Any = clone(estimator)
    unfitted.classes_ = labels
    schema = schema.of_target(target)
    return RowSchema(schema, labels, unfitted._template(schema), target, weight)


def surveyed(learn, source: Source, target, weight, schema, labels, progress) -> tuple[Schema, np.ndarray]:
    """Return schema and classes as declared, else learned by passes over the columns that they need.

    What is not declared is None; ``learn`` divides the columns. No class is declared where the target is a number.
    """
    if schema is not None:
        source.declare(kinds_of(schema))
    if labels is not None and target is not None:
        source.declare({target: "O" if any(isinstance(label, str) for label in labels) else "b"})
    if schema is not None and labels is not None:
        return schema, labels

    wanted, dates = list[str](), list[str]()  # columns whose categories or format of dates are still to be looked up

    def passed(needed) -> Survey:
        def survey(batch):
            return Survey.of(batch, target, weight, wanted, labels is None, dates)

        return total_of(source, survey, "reading categories and classes", needed=needed, progress=progress)

    def learned(types: Survey) -> Schema:
        nonlocal wanted, dates
        types.reading = source.reading
        found = learn(types)
        wanted = [c for b in found.blocks if b.leaf == "categorical" and b.categories is None for c in b.columns]
        dates = [c for c in found.dates if types.kind(c) in ("O", "") and c not in types.forms]
        return found

    types = source.types(target, weight)
    if schema is None and types is not None:
        schema = learned(types)
        if labels is not None and not wanted and not dates:
            return schema, labels
    if not source.again:
        what = [*(["the classes"] if labels is None else []), *(f"the categories of {c!r}" for c in wanted)]
        what += [f"the format of the dates in {c!r}" for c in dates]
        raise ValueError(
            f"this source is read once, and {' and '.join(what) or 'its columns'} are not known before: declare them "
            "by classes= and schema=, or give what can be read twice, such as files or a list"
        )
    if schema is None:  # the type of a column of objects shows only in its values
        schema = learned(types := passed(None))
    if types is None or wanted or dates or (labels is None and not types.labels):
        found = passed(needed_columns((*wanted, *dates), target, weight))
        types = found if types is None else replace(found, kinds=types.kinds, durations=types.durations)
        schema = learned(types) if wanted or dates else schema
    if labels is None:
        labels = types.classes
    return schema, labels


def predict_batches(
    estimator, source, output=None, *, missing=(), progress: bool | None = None, workers: int | None = None
):
    """Predict rows that come in batches, however many, in memory that does not grow with them.

    Parameters
    ----------
    source : path, Arrow stream, LazyFrame, iterable or Dask DataFrame
        As for ``fit_batches``; columns that the fit did not know are not read.
    output : path, optional
        A Parquet or CSV file to write, by its suffix, or .gz, .bz2, .xz, .zst, .zip of CSV; it is there at once and
        as a whole when all is written, as by ``save``. A file of that name is replaced, if it is not one of those
        that are read.
    missing : sequence of str
        Markers of a missing value in CSV files, beside an empty field and NA, NaN or null among numbers.
    progress : bool, optional
        True to show a bar with rows a second; by default where the standard error is a terminal.
    workers : int, optional
        Threads; default: all cores.

    Returns
    -------
    iterator of DataFrame, or int
        In the order of the rows: "row", "class" and "p_" with each class, or "prediction" and "sd" of a regression;
        with ``output`` how many rows were written. Of a Dask DataFrame without ``output`` a Dask DataFrame of the
        same index.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesgen import NaiveBayesClassifier
    >>> X = pd.DataFrame({"x": [1.0, 1.4, 3.1, 2.9]})
    >>> classifier = NaiveBayesClassifier().fit(X, ["a", "a", "b", "b"])
    >>> for batch in classifier.predict_batches([X[:2], X[2:]]):
    ...     print(batch["class"].tolist())
    ['a', 'a']
    ['b', 'b']
    """
    schema, named = estimator.fitted_.schema_, hasattr(estimator, "feature_names_in_")
    columns, rows = list(schema.columns), source_like(source, missing, schema)

    def ask(batch):
        return predictions(estimator, columns_of(batch, columns, named))

    if isinstance(rows, DaskParts) and hasattr(source, "map_partitions") and output is None:
        return source.map_partitions(lambda part: ask(part).set_index(part.index), meta=predictions(estimator, ()))
    rows.declare(kinds_of(schema))

    def predicted(job: Job):
        return [frame for frame in job.each(ask) if len(frame)]

    def frames():
        with bar("rows", rows.rows, progress) as advance:
            for found in in_order(rows.jobs(columns), predicted, workers):
                for frame in found:
                    advance(len(frame))
                    yield frame

    return numbered(frames()) if output is None else _written(frames(), Path(output), rows.paths)


def numbered(frames: Iterable[Any]) -> Iterator[Any]:
    """Yield frames with a column of row numbers before the others, which goes on from frame to frame."""
    row = 0
    for frame in frames:
        frame.insert(0, "row", np.arange(row, row + len(frame)))
        row += len(frame)
        yield frame


def predictions(estimator, X):
    """Return class and probabilities of rows, or mean and standard deviation, as a DataFrame."""
    import pandas as pd

    if not hasattr(estimator, "predict_proba"):
        mean, sd = estimator.predict(X, return_std=True) if len(X) else np.empty((2, 0))
        return pd.DataFrame({"prediction": mean, "sd": sd})
    classes = estimator.classes_
    probability = estimator.predict_proba(X) if len(X) else np.empty((0, len(classes)))
    columns = {f"p_{c}": p for c, p in zip(classes.tolist(), probability.T, strict=True)}
    return pd.DataFrame({"class": pd.Series(classes).array[probability.argmax(1)]} | columns)


def _written(frames, path: Path, inputs: Iterable) -> int:
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path}: give a name that ends in {' or '.join(ENDINGS)}")
    with disk.writing(path, inputs) as file:
        if not (count := write(frames, file, path)[0]):
            raise ValueError("the source has no rows: there is nothing to predict")
        return count


# Of each of these formats several members, one after the other, are one file.
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
_COMPRESS[".zst"] = lambda data: pa.compress(data, codec="zstd", asbytes=True)
ENDINGS = (*PARQUET, ".csv", *_COMPRESS, ".zip")  # of their names


def write(frames: Iterable[Any], file, path: Path) -> tuple[int, list[str]]:
    """Write frames below each other to an open file, with row numbers, as its name says; return rows and columns."""
    count, columns, suffix = 0, list[str](), path.suffix.lower()
    with contextlib.ExitStack() as closing:
        writer: Any = None
        for frame in numbered(frames):
            if suffix in PARQUET:
                table = pa.Table.from_pandas(frame, preserve_index=False)
                writer = writer or closing.enter_context(parquet.ParquetWriter(file, table.schema))
                writer.write_table(table)
            else:
                if suffix == ".zip" and writer is None:
                    inside = closing.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED))
                    writer = closing.enter_context(inside.open(path.stem, "w", force_zip64=True))
                text = frame.to_csv(index=False, header=not count).encode()
                (writer or file).write(_COMPRESS.get(suffix, bytes)(text))
            count, columns = count + len(frame), list(frame.columns)
    return count, columns
