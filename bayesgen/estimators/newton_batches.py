"""The regressions on rows in batches: by their triangular factor, or by Newton steps whose sums add."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core.errors import DataError
from bayesgen.core.statistics import DistantRows, Rows
from bayesgen.estimators.batches import surveyed
from bayesgen.estimators.workers import added, total_of
from bayesgen.inference import MAP, ML, resolve
from bayesgen.models.linear_model import LineStatistics
from bayesgen.models.moments import Moments, about_zero, moments
from bayesgen.tables import design
from bayesgen.tables.batches import Source
from bayesgen.tables.labels import class_codes, declared_classes
from bayesgen.tables.rows import distinct_labels, split
from bayesgen.tables.schema import Schema
from bayesgen.tables.sources import source_of
from bayesgen.tables.table import Table

_LARGE = "squares of the rows are too large for float64; give them in larger units"


@dataclass(frozen=True)
class _Batches:
    """Rows in batches as arrays: their source, the schema of the columns that are used, and target and weight."""

    source: Source
    schema: Schema
    target: str | None
    weight: str | None

    def total(self, work, progress, workers, add=added) -> Any:
        """Sum ``work(x, y, weight)`` over all batches, of columns of a score (n, D), NaN where missing."""
        named = self.target is not None

        def worked(batch):
            X, y, weight = split(batch, self.target, self.weight, self.schema.columns if named else None)
            if not len(y):
                return None
            x = design.read(self.schema, Table(X))
            return work(x, y, np.ones(len(x)) if weight is None else weight)

        needed = [c for c in (*self.schema.columns, self.target, self.weight) if c is not None] if named else None
        return total_of(self.source, worked, "passes over the rows", add, needed, progress, workers)


def _batches(source, target, weight, schema, labels, progress) -> tuple[Schema, np.ndarray, _Batches]:
    """Return schema and labels, found where they are not declared, and the batches read by them."""
    schema, labels = surveyed(design.learn, source, target, weight, schema, labels, progress)
    return schema, labels, _Batches(source, schema if target is None else schema.used(), target, weight)


@dataclass(frozen=True)
class _Spread:
    """Findings of a first pass: which columns hold 0 and 1 alone, moments of all, and the weight of the rows."""

    bits: np.ndarray
    moments: Moments
    weight: float

    def __add__(self, other):
        return _Spread(self.bits & other.bits, self.moments + other.moments, self.weight + other.weight)


def _numbers(y) -> np.ndarray:
    try:
        t = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise TypeError("the target must hold numbers") from None
    if not np.isfinite(t).all():
        raise ValueError(f"the target is missing or infinite in row {int((~np.isfinite(t)).argmax())}; drop it")
    return t


def standardise(estimator, mean, deviation, unscaled: Any = False) -> None:
    """Set ``centre_`` and ``scale_`` from means and deviations (D,); columns ``unscaled`` keep the scale 1."""
    estimator.centre_, estimator.scale_ = np.zeros(len(mean)), np.ones(len(mean))
    if estimator.standardize and estimator._through_zero:
        estimator.centre_, estimator.scale_ = about_zero(mean, deviation)
    elif estimator.standardize:
        varies = (deviation > 8 * np.finfo(float).eps * np.abs(mean)) & ~np.asarray(unscaled)
        estimator.centre_, estimator.scale_ = mean, np.where(varies, deviation, 1.0)


def sum_line(data, target, sample_weight, schema, missing, progress, workers) -> tuple[Schema, LineStatistics]:
    """Return the schema of the columns, and the statistics of a line's rows."""
    no_classes = np.zeros(0)
    schema, _, batches = _batches(source_of(data, missing), target, sample_weight, schema, no_classes, progress)

    def work(x, y, w):
        return LineStatistics.of(design.filled(batches.schema, x), _numbers(y), w)

    line = batches.total(work, progress, workers)
    if not np.isfinite(line.factor).all():
        raise ValueError(_LARGE)
    return schema, line


def fit_classes(estimator, data, target, sample_weight, schema, classes, missing, progress, workers):
    """Return inference, labels and rows of a linear classifier; each Newton step is a pass over the rows."""
    inference = resolve(estimator.inference)
    if not isinstance(inference, ML | MAP):
        raise ValueError(
            "a linear classifier has no small statistics: of rows in batches it learns by inference='map' or 'ml'; "
            "draws need all rows in fit"
        )
    source = source_of(data, missing)
    if not source.again:
        raise ValueError(
            "this source is read once, and Newton's method reads the rows at each step; give files, or a list"
        )
    labels = None if classes is None else declared_classes(classes)
    schema, labels, batches = _batches(source, target, sample_weight, schema, labels, progress)
    estimator.schema_, fills = schema, estimator._fills
    estimator._expect(schema.columns, target is not None)

    def spread(x, y, w):
        design.filled(batches.schema, x, 0.0 if fills else None)  # or raise
        try:
            return _Spread(((x == 0) | (x == 1)).all(0), moments(x, weight=w), w.sum())
        except DataError:
            raise ValueError(_LARGE) from None

    found = batches.total(spread, progress, workers)
    deviation = np.sqrt(found.moments.scatter / found.weight)
    if not np.isfinite(deviation).all():
        raise ValueError(_LARGE)
    standardise(estimator, found.moments.mean, deviation, found.bits)  # a 0 or 1 keeps its log odds ratio, as in fit
    centre, scale = estimator.centre_, estimator.scale_

    def read(function, add):
        def work(x, y, w):
            distinct, places = distinct_labels(y)
            codes = class_codes(distinct, labels)[1][places]
            x = design.filled(batches.schema, x, centre if fills else None)
            return function({"x": (x - centre) / scale, "t": codes, "weight": w})

        return batches.total(work, progress, workers, functools.partial(added, add=add))

    return inference, labels, DistantRows(read)


def no_rows(width: int) -> Rows:
    """Return no rows, to be kept in place of rows that stay where they are."""
    return Rows({"x": np.zeros((0, width)), "t": np.zeros(0, np.intp), "weight": np.zeros(0)})
