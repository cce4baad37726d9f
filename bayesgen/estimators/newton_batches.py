"""The regressions on rows in batches: by their triangular factor, or by Newton steps whose sums add."""

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen.core.errors import listed
from bayesgen.core.statistics import DistantRows, Rows
from bayesgen.estimators.workers import added, total_of
from bayesgen.inference import MAP, ML, resolve
from bayesgen.models.linear_model import LineStatistics, complete
from bayesgen.models.moments import about_zero
from bayesgen.tables.batches import Source
from bayesgen.tables.labels import class_codes, declared_classes
from bayesgen.tables.rows import distinct_labels, split
from bayesgen.tables.sources import source_of
from bayesgen.tables.table import Table


@dataclass(frozen=True)
class _Columns:
    """Findings of a first pass: names of columns, which hold 0 and 1 alone, labels of classes, and the rows' factor."""

    names: tuple[str, ...]
    bits: np.ndarray
    labels: frozenset
    line: LineStatistics

    def __add__(self, other):
        if self.names != other.names:
            raise ValueError(f"its columns are {listed(other.names)}, where they were {listed(self.names)} before")
        return _Columns(self.names, self.bits & other.bits, self.labels | other.labels, self.line + other.line)


@dataclass(frozen=True)
class BatchColumns:
    """The columns to take from each batch as arrays: the target, the weight and the others by name."""

    target: str | None
    weight: str | None
    names: tuple[str, ...] | None = None

    def rows(self, batch) -> tuple[tuple[str, ...], np.ndarray, Any, np.ndarray]:
        """Return names, numbers (n, D), target and weights (n,) of a batch."""
        X, y, weight = split(batch, self.target, self.weight, self.names)
        if not len(y):
            return self.names or (), np.zeros((0, 0)), y, np.zeros(0)
        table = Table(X)
        if table.sparse:
            raise TypeError("X is sparse, and the regressions take dense rows: give X.toarray()")
        names = self.names or table.columns
        x = complete(table.numbers(table.columns), names)
        return names, x, y, np.ones(len(x)) if weight is None else weight


def survey(source: Source, taken: BatchColumns, classes: bool, progress, workers) -> _Columns:
    """Return columns, classes and the factor of all rows, in one pass; without classes the factor has the target."""

    def work(batch):
        names, x, y, w = taken.rows(batch)
        if not len(x):
            return None
        labels = frozenset(distinct_labels(y)[0].tolist()) if classes else frozenset()
        t = np.zeros(len(x)) if classes else _numbers(y)
        return _Columns(names, ((x == 0) | (x == 1)).all(0), labels, LineStatistics.of(x, t, w))

    found = total_of(source, work, added, None, progress, workers)
    if found is None:
        raise ValueError("the source has no rows: at least one is needed")
    if not np.isfinite(found.line.factor).all():
        raise ValueError("squares of the rows are too large for float64; give them in larger units")
    return found


def _numbers(y) -> np.ndarray:
    try:
        t = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise TypeError("the target must hold numbers") from None
    if not np.isfinite(t).all():
        raise ValueError(f"the target is missing or infinite in row {int((~np.isfinite(t)).argmax())}; drop it")
    return t


def standardised(estimator, line: LineStatistics, unscaled: Any = False) -> LineStatistics:
    """Set ``centre_`` and ``scale_`` from the factor of all rows; return the factor of the standardised ones.

    Columns that are ``unscaled`` keep the scale 1.
    """
    width = len(line.mean) - 1
    centre, scale = np.zeros(width), np.ones(width)
    if estimator.standardize:
        centre, deviation = line.mean[:-1], np.sqrt((line.factor[:, :-1] ** 2).sum(0) / line.n)
        if not estimator._through_zero:
            seen = deviation > 8 * np.finfo(float).eps * np.abs(centre)
            scale = np.where(seen & ~np.asarray(unscaled), deviation, 1.0)
        else:
            centre, scale = about_zero(centre, deviation)
    estimator.centre_, estimator.scale_ = centre, scale
    divide = np.append(scale, 1.0)
    return replace(line, mean=(line.mean - np.append(centre, 0.0)) / divide, factor=line.factor / divide)


def sum_line(data, target, sample_weight, missing, progress, workers) -> tuple[tuple[str, ...], LineStatistics]:
    """Return the names of the columns, and the statistics of a line's rows."""
    found = survey(source_of(data, missing), BatchColumns(target, sample_weight), False, progress, workers)
    return found.names, found.line


def fit_classes(estimator, data, target, sample_weight, classes, missing, progress, workers):
    """Return inference, labels, columns and rows of a linear classifier; each Newton step is a pass over the rows."""
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
    found = survey(source, BatchColumns(target, sample_weight), True, progress, workers)
    labels = declared_classes(list(found.labels) if classes is None else classes)
    standardised(estimator, found.line, found.bits)  # a 0 or 1 keeps its log odds ratio, as in fit
    taken, centre, scale = BatchColumns(target, sample_weight, found.names), estimator.centre_, estimator.scale_
    if target is None:
        taken = BatchColumns(None, None)

    def read(function, add):
        def work(batch):
            _, x, y, w = taken.rows(batch)
            if not len(x):
                return None
            distinct, places = distinct_labels(y)
            codes = class_codes(distinct, labels)[1][places]
            return function({"x": (x - centre) / scale, "t": codes, "weight": w})

        return total_of(source, work, functools.partial(added, add=add), None, progress, workers)

    estimator._expect(found.names, target is not None)
    return inference, labels, found.names, DistantRows(read)


def no_rows(width: int) -> Rows:
    """Return no rows, to be kept in place of rows that stay where they are."""
    return Rows({"x": np.zeros((0, width)), "t": np.zeros(0, np.intp), "weight": np.zeros(0)})
