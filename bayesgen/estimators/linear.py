"""Estimators of a target given its columns by a linear score, from rows in memory or in batches.

They give each category a column of 0 and 1, standardise the columns, run an inference, and report coefficients on the
columns' own scale. They model p(y | x) and not x: a missing value is an error or a mean, and a row has no density.
"""

import abc
import functools
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen.core.errors import DataError
from bayesgen.core.statistics import DistantRows
from bayesgen.estimators.estimator import Estimator
from bayesgen.estimators.streaming import needed_columns, surveyed
from bayesgen.estimators.workers import added, total_of
from bayesgen.inference import MAP, ML, Inference, resolve
from bayesgen.inspection.data_tree import chosen, row_labels
from bayesgen.models.linear_model import LineStatistics
from bayesgen.models.moments import Moments, about_zero, centre_and_scale, moments
from bayesgen.numerics.checks import check_flag, check_positive
from bayesgen.numerics.draws import generator
from bayesgen.posterior.arviz import add_prior, log_prior, prior_samples, tree
from bayesgen.posterior.posterior import ParameterDraws
from bayesgen.sheets.batches import Source
from bayesgen.sheets.rows import codes_among, split, stacked
from bayesgen.sheets.sources import source_like
from bayesgen.tables import design
from bayesgen.tables.findings import ANSWERS, Finding, findings, tell
from bayesgen.tables.learned_rows import LearnedRows
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import Table

_LARGE = "squares of the rows are too large for float64; give them in larger units"


def _means(x, weight) -> np.ndarray:
    """Return the mean of each column over its finite entries, 0 where it has none."""
    seen, weight = np.isfinite(x), np.ones(len(x)) if weight is None else weight
    total = weight @ seen
    return weight @ np.where(seen, x, 0.0) / np.where(total > 0, total, 1.0)


@dataclass(eq=False, repr=False)
class LinearEstimator(Estimator):
    """The base of the estimators of a target given its columns: they standardise columns and undo it."""

    prior_scale: float = 2.5
    intercept_scale: float = 2.5
    standardize: bool = True
    inference: str | Inference = "nuts"
    random_state: Any = None

    def _standardised(self, rows: LearnedRows) -> tuple[tuple[str, ...], np.ndarray]:
        """Return names of the columns of the score, and the rows, standardised (n, D)."""
        self._check_settings()
        table, weight = rows.table, rows.weight
        self.schema_ = design.learn(table)
        x = design.read(self.schema_, table)
        x = design.filled(self.schema_, x, _means(x, weight) if self._fills else None)
        self.centre_, self.scale_ = np.zeros(x.shape[1]), np.ones(x.shape[1])
        if self.standardize:
            self.centre_, self.scale_ = self._centre_and_scale(x, weight)
        z = (x - self.centre_) / self.scale_
        return design.names(self.schema_), z

    def _tell_findings(self, rows: LearnedRows, z) -> None:
        """Tell what the rows, also standardised (n, D), hold that may not be as meant."""
        rows, classes = replace(rows, blocks=self.schema_.read(rows.table)), getattr(self, "classes_", ())
        tell(findings(self.schema_, None, rows, classes, ANSWERS))
        if self.standardize and len(classes) and (same := np.flatnonzero((z == z[0]).all(0))).size:
            tell([Finding("constant", tuple(self.model_.columns[j] for j in same))])

    _fills = False  # True: a missing entry becomes the mean of its column
    _through_zero = False  # True: the score has no intercept

    def _centre_and_scale(self, x, weight):
        mean, deviation = centre_and_scale(x, weight)
        return about_zero(mean, deviation * (x != x[0]).any(0)) if self._through_zero else (mean, deviation)

    def _standardise(self, mean, deviation, unscaled: Any = False) -> None:
        """Set ``centre_`` and ``scale_`` from means and deviations (D,); columns ``unscaled`` keep the scale 1."""
        self.centre_, self.scale_ = np.zeros(len(mean)), np.ones(len(mean))
        if self.standardize and self._through_zero:
            self.centre_, self.scale_ = about_zero(mean, deviation)
        elif self.standardize:
            varies = (deviation > 8 * np.finfo(float).eps * np.abs(mean)) & ~np.asarray(unscaled)
            self.centre_, self.scale_ = mean, np.where(varies, deviation, 1.0)

    def _check_settings(self):
        for name in ("prior_scale", "intercept_scale"):
            check_positive(name, getattr(self, name))
        check_flag("standardize", self.standardize)

    def _learn(self, inference, model, z, y, weight):
        self.model_ = model
        self.statistics_ = model.statistics(z, y, weight)
        self.posterior_ = inference(model, self.statistics_, seed=self.random_state)
        return self._undo(self.posterior_.mean())

    @np.errstate(under="ignore")
    def _undo(self, sites):
        """Return intercept and coefficients (..., D) of the columns as given, from those for the standardised ones."""
        coefficients = sites["coefficients"] / self.scale_
        intercept = sites["intercept"] - coefficients @ self.centre_
        noise = {"variance": sites["variance"]} if "variance" in sites else {}
        return {"intercept": intercept, "coefficients": coefficients} | noise

    def to_arviz(self, X=None, y=None, draws: int | None = None, groups: Collection[str] | None = None):
        """Return the posterior as an ArviZ `xarray.DataTree`, coefficients on the scale of the columns as given.

        Parameters
        ----------
        X, y : optional
            Rows and their target, "y", or "t" of classes, as codes. They add the groups "log_likelihood",
            "observed_data" and "posterior_predictive"; "constant_data", the columns; "log_prior", of the
            standardised columns' sites; "prior" and "prior_predictive". Rows have the labels of a frame's index.
        draws : int, optional
            Number of draws of the posterior, evenly apart in each chain; default: all.
        groups : collection of str, optional
            The groups to make among those as large as draws times rows: "log_likelihood", "posterior_predictive" and
            "prior_predictive"; default: all.
        """
        held, wanted = self.fitted_, chosen(X, y, groups)
        rng, model = generator(self.random_state), held.model_
        kept = held.posterior_.as_draws(rng).thinned(draws)
        if X is None:
            return tree(replace(kept, samples=self._undo(kept.samples)))
        made, obs = self._groups(kept, X, y, rng, wanted), row_labels(X)
        given = held.read(X) * self.scale_ + self.centre_
        columns = {f"x.{c}" if c == "obs" else c: given[:, j] for j, c in enumerate(model.columns)}
        more = {"log_prior": log_prior(model, kept), "constant_data": columns}
        result = tree(replace(kept, samples=self._undo(kept.samples)), made | more, obs=obs)
        before, new = ParameterDraws(model, prior_samples(model, rng, kept.samples)), {}
        if "prior_predictive" in wanted:
            drawn = self._groups(before, X, y, rng, ("posterior_predictive",))
            new["prior_predictive"] = drawn["posterior_predictive"]
        add_prior(result, replace(before, samples=self._undo(before.samples)), new, obs)
        return result

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags

    @abc.abstractmethod
    def _groups(self, draws, X, y, rng, wanted) -> dict[str, dict[str, np.ndarray]]:
        """Return ArviZ's groups of rows and their targets, the large ones where they are ``wanted``."""


# -- rows in batches: a triangular factor, or Newton steps whose sums add ----------------------------------------------


@dataclass(frozen=True)
class _Batches:
    """Rows in batches as arrays: their source, the schema of the columns that are used, and target and weight."""

    source: Source
    schema: Schema
    target: str | None
    weight: str | None

    def total(self, work, progress, workers, add=added) -> Any:
        """Sum ``work(x, y, weight)`` over all batches; x are the columns of a score, (n, D), NaN where missing."""
        named = self.target is not None

        def worked(batch):
            X, y, weight = split(batch, self.target, self.weight, self.schema.columns if named else None)
            if not len(y):
                return None
            x = design.read(self.schema, Table(X))
            return work(x, y, np.ones(len(x)) if weight is None else weight)

        needed = needed_columns(self.schema.columns, self.target, self.weight)
        return total_of(self.source, worked, "passes over the rows", None, add, needed, progress, workers)


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


def sum_line(data, target, sample_weight, schema, missing, progress, workers) -> tuple[Schema, LineStatistics]:
    """Return the schema of the columns, and the statistics of a line's rows."""
    no_classes = np.zeros(0)
    schema, _, batches = _batches(
        source_like(data, missing, schema), target, sample_weight, schema, no_classes, progress
    )

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
    source = source_like(data, missing, schema)
    if not source.again:
        raise ValueError(
            "this source is read once, and Newton's method reads the rows at each step; give files, or a list"
        )
    labels = estimator._declared(classes)
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
    estimator._standardise(found.moments.mean, deviation, found.bits)  # a 0 or 1 keeps its log odds ratio, as in fit
    centre, scale = estimator.centre_, estimator.scale_

    def read(function, add):
        def work(x, y, w):
            x = design.filled(batches.schema, x, centre if fills else None)
            row, code, votes = stacked(codes_among(y, labels), w)
            return function({"x": (x[row] - centre) / scale, "t": code, "weight": votes})

        return batches.total(work, progress, workers, functools.partial(added, add=add))

    return inference, labels, DistantRows(read)
