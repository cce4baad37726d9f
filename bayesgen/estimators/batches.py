"""Fits of what is larger than memory: what has to be seen of the rows first, their statistics, and a checkpoint."""

import contextlib
import hashlib
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesgen.estimators.passes import added, bar, in_order
from bayesgen.models.class_statistics import ClassStatistics
from bayesgen.tables.labels import declared_classes
from bayesgen.tables.rows import RowSchema
from bayesgen.tables.schema import Schema
from bayesgen.tables.sources import DaskParts, Job, Source, kinds_of, told
from bayesgen.tables.survey import Survey, Wanted

_KEEP_EVERY = 30.0  # seconds between two writings of a checkpoint


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
