"""Fits and predictions of what is larger than memory: batches are read and summed, in their order, by all cores."""

import contextlib
import hashlib
import itertools
import operator
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayesgen.models.class_conditional import ClassStatistics
from bayesgen.numerics.checks import check_count
from bayesgen.tables.files import PARQUET
from bayesgen.tables.labels import declared_classes
from bayesgen.tables.rows import RowSchema, columns_of
from bayesgen.tables.schema import Schema
from bayesgen.tables.sources import DaskParts, Job, Source, kinds_of, source_of, told
from bayesgen.tables.survey import Survey, Wanted

_KEEP_EVERY = 30.0  # seconds between two writings of a checkpoint


def in_order(jobs: Iterable[Any], work: Callable[[Any], Any], workers: int | None = None) -> Iterator[Any]:
    """Yield ``work(job)`` of every job in order; some are worked on at a time, on threads, and few wait.

    Jobs are made by the thread that asks, so reading a stream goes on while others are summed.
    """
    if workers is not None:
        check_count("workers", workers)
    workers = workers or os.cpu_count() or 1
    waiting: deque = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(work, job))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def row_schema(estimator, source: Source, target, weight, schema, classes, progress=None) -> RowSchema:
    """Return what workers need to sum the rows of a source; it is read where schema or classes are not declared."""
    labels = None if classes is None else declared_classes(classes)
    if schema is None or labels is None:
        schema, labels = _surveyed(estimator, source, target, weight, schema, labels, progress)
    own: Any = clone(estimator)
    own.classes_ = labels
    return RowSchema(schema, labels, own._template(schema), target, weight)


def _surveyed(estimator, source, target, weight, schema, labels, progress) -> tuple[Schema, np.ndarray]:
    """Schema and classes, by a pass over what has to be seen of the rows."""
    types, wanted = source.types(target, weight), []
    if schema is None and types is not None:
        schema, wanted = _learned(estimator, types)
        if labels is not None and not wanted:
            return schema, labels
    if not source.again:
        what = [*(["the classes"] if labels is None else []), *(f"the categories of {c!r}" for c in wanted)]
        raise ValueError(
            f"this source is read once, and {' and '.join(what) or 'its columns'} are not known before: declare them "
            "by classes= and schema=, or give what can be read twice, such as files or a list"
        )
    if schema is None:  # objects have to be looked at before it is known what they hold
        types = _pass(source, None, target, weight, (), progress)
        schema, wanted = _learned(estimator, types)
    if wanted or (labels is None and (types is None or not types.labels)):
        needed = None if target is None else [c for c in (*wanted, target, weight) if c is not None]
        found = _pass(source, needed, target, weight, wanted, progress)
        types = Survey(found.kinds if types is None else types.kinds, found.levels, found.labels)
    if wanted:
        schema = estimator._learn_schema(types)
    assert schema is not None
    if labels is None:
        assert types is not None
        labels = types.classes
    return schema, labels


def _learned(estimator, types: Survey) -> tuple[Schema, list[str]]:
    """Schema of columns, and of which of them the categories are still to be found."""
    probe = Wanted(types)
    return estimator._learn_schema(probe), probe.wanted


def _pass(source, needed, target, weight, wanted, progress) -> Survey:
    """Merge what all batches say of types, levels and classes."""

    def survey(job: Job):
        found = None
        with told(job.place):
            for batch in job.read():
                found = added(found, Survey.of(batch, target, weight, wanted))
        return job.place, found

    with bar("reading categories and classes", None, progress):
        total = _total(source, needed, survey)
    if total is None:
        raise ValueError("the source has no rows: at least one is needed")
    return total


def added(a, b, add=operator.add):
    """Sum of what may be None, which stands for nothing."""
    return b if a is None else a if b is None else add(a, b)


def _total(source: Source, needed, survey) -> Survey | None:
    """Merge surveys, in order; what does not fit is told with its place."""
    if isinstance(source, DaskParts):
        return source.total(survey, _merged)[1]
    result = "", None
    for found in in_order(source.jobs(needed), survey):
        result = _merged(result, found)
    return result[1]


def _merged(a, b):
    """Merge two pairs of a place and a survey."""
    with told(b[0]):
        return b[0], added(a[1], b[1])


def total_of(source: Source, work, add, needed=None, progress=None, workers=None) -> Any:
    """Sum ``work(batch)`` of all batches, by threads or by the workers of a cluster; None where there are none."""

    def worked(job: Job):
        total = None
        with told(job.place):
            for batch in job.read():
                total = add(total, work(batch))
        return total

    if isinstance(source, DaskParts):
        return source.total(worked, add)
    total = None
    with bar("passes over the rows", None, progress):
        for found in in_order(source.jobs(needed), worked, workers):
            total = add(total, found)
    return total


def fit_batches(estimator, source: Source, target, weight, schema, classes, checkpoint, progress, workers):
    """Do `GenerativeClassifier.fit_batches`, which says what the arguments are."""
    if checkpoint is not None and isinstance(source, DaskParts):
        raise ValueError("checkpoint= is for what is read here; Dask computes again what a lost worker had")
    kept = _Checkpoint(checkpoint, estimator, source)
    if kept.total is not None:
        schema, classes = kept.schema, kept.classes
    if schema is not None:
        source.declare(kinds_of(schema))
    if classes is not None and target is not None:
        source.declare({target: "O" if any(isinstance(label, str) for label in classes) else "f"})
    rows = row_schema(estimator, source, target, weight, schema, classes, progress)
    needed = None if target is None else [c for c in (*rows.used.columns, target, weight) if c is not None]

    def summed(job: Job):
        total, count = None, 0
        with told(job.place):
            for batch in job.read():
                total = added(total, rows.statistics(batch))
                count += len(batch if target is not None else batch[1])
        return total, count

    if isinstance(source, DaskParts):
        kept.add(*source.total(summed, _both))
    else:
        with kept.on_the_way(rows), bar("rows", source.rows, progress) as advance:
            advance(kept.rows)
            for found, count in in_order(itertools.islice(source.jobs(needed), kept.done, None), summed, workers):
                kept.add(found, count)
                advance(count)
    if kept.total is None:
        raise ValueError("the source has no rows: at least one is needed")
    estimator._learn_sums(rows.schema, kept.total, rows.classes, True if target is not None else None)
    kept.remove()
    return estimator


def _both(a, b):
    """Sum two pairs of statistics and a number of rows."""
    return added(a[0], b[0]), a[1] + b[1]


class _Checkpoint:
    """The sum so far, in a file where one is asked for."""

    def __init__(self, path, estimator, source: Source):
        self.path = None if path is None else Path(path)
        self.total: ClassStatistics | None = None
        self.schema, self.classes, self.done, self.rows, self._written = None, None, 0, 0, time.monotonic()
        settings = repr(sorted((k, repr(v)) for k, v in estimator.get_params(deep=False).items()))
        self._of = {
            "estimator": type(estimator).__name__,
            "settings": hashlib.sha256(settings.encode()).hexdigest(),
            "source": [list(part) for part in source.identity],
        }
        if self.path is not None and self.path.exists():
            from bayesgen.files import checkpoint

            found = checkpoint.read(self.path)
            if any(found.get(name) != value for name, value in self._of.items()):
                raise ValueError(
                    f"{path}: this checkpoint is of other files, or of a classifier with other settings; remove it to "
                    "begin anew"
                )
            self.total, self.schema, self.classes = found["total"], found["schema"], found["classes"]
            self.done, self.rows = found["done"], found["rows"]

    def add(self, found: ClassStatistics | None, rows: int) -> None:
        """Add the statistics of the next part."""
        self.total = added(self.total, found)
        self.done, self.rows = self.done + 1, self.rows + rows
        if self.path is not None and time.monotonic() - self._written > _KEEP_EVERY:
            self._write()

    @contextlib.contextmanager
    def on_the_way(self, rows: RowSchema):
        """Keep what there is where something goes wrong."""
        self.schema, self.classes = rows.schema, rows.classes
        try:
            yield
        except BaseException:
            if self.path is not None and self.total is not None:
                self._write()
            raise

    def _write(self) -> None:
        from bayesgen.files import checkpoint

        values = {name: getattr(self, name) for name in ("total", "schema", "classes", "done", "rows")}
        checkpoint.write(self.path, self._of | values)
        self._written = time.monotonic()

    def remove(self) -> None:
        """All was read: there is nothing to go on from."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def predict_batches(estimator, data, output, missing, progress, workers) -> Any:
    """Do `Estimator.predict_batches`, which says what the arguments are."""
    check_is_fitted(estimator)
    schema = getattr(estimator, "schema_", None)
    columns = list(schema.columns if schema else estimator.model_.columns)
    named = hasattr(estimator, "feature_names_in_")
    source = source_of(data, [*missing, *(schema.missing if schema else ())])
    if isinstance(source, DaskParts) and hasattr(data, "map_partitions"):
        return data.map_partitions(_of_partition, estimator, columns, named, meta=_none(estimator))
    source.declare(kinds_of(schema) if schema else dict.fromkeys(columns, "f"))

    def predicted(job: Job):
        with told(job.place):
            found = [predictions(estimator, columns_of(batch, columns, named)) for batch in job.read() if len(batch)]
        return found

    def numbered():
        row = 0
        with bar("rows", source.rows, progress) as advance:
            for found in in_order(source.jobs(columns), predicted, workers):
                for frame in found:
                    frame.insert(0, "row", np.arange(row, row + len(frame)))
                    row += len(frame)
                    advance(len(frame))
                    yield frame

    return numbered() if output is None else _written(numbered(), Path(output))


def predictions(estimator, X):
    """What an estimator says of rows: class and probabilities, or mean and standard deviation, as a DataFrame."""
    import pandas as pd

    if not hasattr(estimator, "predict_proba"):
        mean, sd = estimator.predict(X, return_std=True)
        return pd.DataFrame({"prediction": mean, "sd": sd})
    probability, classes = estimator.predict_proba(X), estimator.classes_
    columns = {f"p_{c}": p for c, p in zip(classes.tolist(), probability.T, strict=True)}
    return pd.DataFrame({"class": classes[probability.argmax(1)]} | columns)


def _of_partition(frame, estimator, columns, named):
    """Predictions of a partition of a Dask DataFrame, with its index."""
    if not len(frame):
        return _none(estimator)
    return predictions(estimator, columns_of(frame, columns, named)).set_index(frame.index)


def _none(estimator):
    """Predictions of no row."""
    import pandas as pd

    names = ["prediction", "sd"]
    if hasattr(estimator, "classes_"):
        names = ["class", *(f"p_{c}" for c in estimator.classes_.tolist())]
    empty = pd.DataFrame({name: np.empty(0) for name in names})
    return empty.astype({"class": pd.Series(estimator.classes_[:1]).dtype}) if "class" in names else empty


def _written(frames, path: Path) -> int:
    """Write frames to a Parquet or CSV file, batch by batch; it is there as a whole or not at all. How many rows."""
    import pyarrow as pa
    from pyarrow import parquet

    kind = path.suffix.lower()
    if kind not in (*PARQUET, ".csv"):
        raise ValueError(f"{path}: give a name that ends in .parquet or .csv")
    unfinished, writer, count = path.with_name(f".{path.name}.unfinished"), None, 0
    try:
        with unfinished.open("wb") as file:
            for frame in frames:
                if kind == ".csv":
                    frame.to_csv(file, index=False, header=not count)
                else:
                    table = pa.Table.from_pandas(frame, preserve_index=False)
                    writer = writer or parquet.ParquetWriter(file, table.schema)
                    writer.write_table(table)
                count += len(frame)
            if writer is not None:
                writer.close()
        if not count:
            raise ValueError("the source has no rows: there is nothing to predict")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


@contextlib.contextmanager
def bar(what: str, total: int | None, shown: bool | None):
    """Show a bar with rows a second on the standard error; gives the function that moves it by some rows."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, force_terminal=shown)
    if not console.is_terminal:
        yield lambda rows: None
        return

    class Rate(ProgressColumn):
        def render(self, task):
            from rich.text import Text

            return Text(f"{task.speed or 0:,.0f} rows/s")

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda rows: progress.advance(task, rows)
