"""Fits to data larger than memory: a survey of the rows, where schema or classes are not declared, then statistics."""

from typing import Any

import numpy as np
from sklearn.base import clone

from bayesgen.estimators.progress import bar
from bayesgen.estimators.resuming import Checkpoint
from bayesgen.estimators.workers import added, in_order
from bayesgen.tables.batches import DaskParts, Job, Source, located
from bayesgen.tables.labels import declared_classes
from bayesgen.tables.rows import RowSchema
from bayesgen.tables.schema import Schema
from bayesgen.tables.sources import kinds_of
from bayesgen.tables.survey import Survey


def row_schema(estimator, source: Source, target, weight, schema, classes, progress=None) -> RowSchema:
    """Return the row schema by which workers sum rows; the source is read if schema or classes are not declared."""
    labels = None if classes is None else declared_classes(classes)
    schema, labels = surveyed(estimator._learn_schema, source, target, weight, schema, labels, progress)
    own: Any = clone(estimator)
    own.classes_ = labels
    return RowSchema(schema, labels, own._template(schema), target, weight)


def surveyed(learn, source: Source, target, weight, schema, labels, progress) -> tuple[Schema, np.ndarray]:
    """Return schema and classes, by passes over the columns from which they are learned where they are not declared.

    Parameters
    ----------
    learn : callable (Columns) -> Schema
        Divides the columns.
    schema : Schema or None
        The declared schema.
    labels : array or None
        The declared classes; none at all where the target is a number.
    """
    if schema is not None:
        source.declare(kinds_of(schema))
    if labels is not None and target is not None:
        source.declare({target: "O" if any(isinstance(label, str) for label in labels) else "f"})
    if schema is not None and labels is not None:
        return schema, labels
    types, wanted = source.types(target, weight), []
    if schema is None and types is not None:
        schema, wanted = _learned(learn, types)
        if labels is not None and not wanted:
            return schema, labels
    if not source.again:
        what = [*(["the classes"] if labels is None else []), *(f"the categories of {c!r}" for c in wanted)]
        raise ValueError(
            f"this source is read once, and {' and '.join(what) or 'its columns'} are not known before: declare them "
            "by classes= and schema=, or give what can be read twice, such as files or a list"
        )
    if schema is None:  # the type of a column of objects shows only in its values
        types = _pass(source, None, target, weight, (), labels is None, progress)
        schema, wanted = _learned(learn, types)
    if wanted or (labels is None and (types is None or not types.labels)):
        needed = None if target is None else [c for c in (*wanted, target, weight) if c is not None]
        found = _pass(source, needed, target, weight, wanted, labels is None, progress)
        types = Survey(found.kinds if types is None else types.kinds, found.levels, found.labels)
    if wanted:
        schema = learn(types)
    assert schema is not None
    if labels is None:
        assert types is not None
        labels = types.classes
    return schema, labels


def _learned(learn, types: Survey) -> tuple[Schema, list[str]]:
    """Return the schema of columns, and the columns whose categories are still to be looked up."""
    schema = learn(types)
    unknown = [block for block in schema.blocks if block.leaf == "categorical" and block.categories is None]
    return schema, [column for block in unknown for column in block.columns]


def _pass(source, needed, target, weight, wanted, classes: bool, progress) -> Survey:
    """Merge the types, levels and, if wanted, classes of all batches."""

    def survey(job: Job):
        found = None
        with located(job.place):
            for batch in job.read():
                found = added(found, Survey.of(batch, target, weight, wanted, classes))
        return job.place, found

    with bar("reading categories and classes", None, progress):
        total = _total(source, needed, survey)
    if total is None:
        raise ValueError("the source has no rows: at least one is needed")
    return total


def _total(source: Source, needed, survey) -> Survey | None:
    """Merge surveys in order; an error names the place."""
    if isinstance(source, DaskParts):
        return source.total(survey, _merged)[1]
    result = "", None
    for found in in_order(source.jobs(needed), survey):
        result = _merged(result, found)
    return result[1]


def _merged(a, b):
    """Merge two pairs of a place and a survey."""
    with located(b[0]):
        return b[0], added(a[1], b[1])


def fit_batches(estimator, source: Source, target, weight, schema, classes, missing, checkpoint, progress, workers):
    """Do `GenerativeClassifier.fit_batches`, where the arguments are documented."""
    if checkpoint is not None and isinstance(source, DaskParts):
        raise ValueError("checkpoint= is for what is read here; Dask computes again what a lost worker had")
    arguments = {
        "target": target,
        "sample_weight": weight,
        "schema": schema,
        "classes": None if classes is None else declared_classes(classes),
        "missing": sorted({*missing}),
    }
    kept = Checkpoint(checkpoint, estimator, source, arguments)
    if kept.total is not None:
        schema, classes = kept.schema, kept.classes
    rows = row_schema(estimator, source, target, weight, schema, classes, progress)
    needed = None if target is None else [c for c in (*rows.used.columns, target, weight) if c is not None]

    def summed(job: Job):
        total, count = None, 0
        with located(job.place):
            for batch in job.read():
                total = added(total, rows.statistics(batch))
                count += len(batch if target is not None else batch[1])
        return total, count, kept.mark(job)

    if isinstance(source, DaskParts):
        kept.add(*source.total(lambda job: summed(job)[:2], _both))
    else:
        with kept.on_the_way(rows), bar("rows", source.rows, progress) as advance:
            advance(kept.rows)
            for found, count, mark in in_order(kept.left(source.jobs(needed)), summed, workers):
                kept.add(found, count, mark)
                advance(count)
    if kept.total is None:
        raise ValueError("the source has no rows: at least one is needed")
    estimator._learn_statistics(rows.schema, kept.total, rows.classes, True if target is not None else None)
    kept.remove()
    return estimator


def _both(a, b):
    """Add two pairs of statistics and number of rows."""
    return added(a[0], b[0]), a[1] + b[1]
