"""Estimators of a target given its columns by a linear score, from rows in memory or in batches.

They give each category a column of 0 and 1, standardise the columns, run an inference, and report coefficients on the
columns' own scale. They model p(y | x) and not x: a missing value is an error or a mean, and a row has no density.
"""

import abc
import functools
import operator
from collections.abc import Callable, Collection
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
from bayesgen.models import linear_model
from bayesgen.models.linear_model import LineStatistics
from bayesgen.models.moments import about_zero, centre_and_scale, moments
from bayesgen.numerics.checks import check_flag, check_positive
from bayesgen.numerics.draws import generator
from bayesgen.posterior.arviz import add_prior, log_prior, prior_samples, tree
from bayesgen.posterior.posterior import ParameterDraws
from bayesgen.sheets.rows import codes_among, split, stacked
from bayesgen.sheets.sources import source_like
from bayesgen.tables import design
from bayesgen.tables.findings import ANSWERS, Finding, findings, tell
from bayesgen.tables.learned_rows import LearnedRows
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import Table

_LARGE = "squares of the rows are too large for float64; give them in larger units"


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
        self.schema_, means = design.learn(rows.table), None
        x = design.read(self.schema_, rows.table)
        if self._fills:
            means = np.ma.filled(np.ma.average(np.ma.masked_invalid(x), axis=0, weights=rows.weight), 0.0)
        x = design.filled(self.schema_, x, means)
        mean, deviation = centre_and_scale(x, rows.weight) if self.standardize else np.zeros((2, x.shape[1]))
        if self._through_zero:
            deviation = deviation * (x != x[0]).any(0)
        self._standardise(mean, deviation, self._unscaled(x))
        return design.names(self.schema_), (x - self.centre_) / self.scale_

    def _tell_findings(self, rows: LearnedRows, z) -> None:
        """Tell what the rows, also standardised (n, D), hold that may not be as meant."""
        rows, classes = replace(rows, blocks=self.schema_.read(rows.table)), getattr(self, "classes_", ())
        tell(findings(self.schema_, None, rows, classes, ANSWERS))
        if self.standardize and len(classes) and (same := np.flatnonzero((z == z[0]).all(0))).size:
            tell([Finding("constant", tuple(self.model_.columns[j] for j in same))])

    _fills = False  # True: a missing entry becomes the mean of its column
    _through_zero = False  # True: the score has no intercept

    def _unscaled(self, x) -> Any:
        """Return True for columns of rows (n, D) that are centred alone."""
        return False

    def _standardise(self, mean, deviation, unscaled: Any = False) -> None:
        """Set ``centre_`` and ``scale_`` from means and deviations (D,), 0 of constants; ``unscaled`` ones have 1."""
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


def _batches(source, target, weight, schema, labels, progress, workers) -> tuple[Schema, Any, Callable]:
    """Return schema and labels, found where they are not declared, and the function that sums over batches.

    It sums ``work(x, y, weight)``, where x are the columns of a score, (n, D), NaN where missing.
    """
    schema, labels = surveyed(design.learn, source, target, weight, schema, labels, progress)
    used = schema if target is None else schema.used()
    needed = needed_columns(used.columns, target, weight)

    def total(work, add=operator.add) -> Any:
        def worked(batch):
            X, y, w = split(batch, target, weight, None if target is None else used.columns)
            if not len(y):
                return None
            x = design.read(used, Table(X))
            return work(x, y, np.ones(len(x)) if w is None else w)

        plus = functools.partial(added, add=add)
        return total_of(source, worked, "passes over the rows", None, plus, needed, progress, workers)

    return schema, labels, total


def sum_line(data, target, sample_weight, schema, missing, progress, workers) -> tuple[Schema, LineStatistics]:
    """Return the schema of the columns, and the statistics of a line's rows."""
    source, no_classes = source_like(data, missing, schema), np.zeros(0)
    schema, _, total = _batches(source, target, sample_weight, schema, no_classes, progress, workers)
    line = total(lambda x, y, w: LineStatistics.of(design.filled(schema, x), linear_model.target(y), w))
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
    schema, labels, total = _batches(source, target, sample_weight, schema, labels, progress, workers)
    estimator.schema_, fills = schema, estimator._fills
    estimator._expect(schema.columns, target is not None)

    def spread(x, y, w):
        design.filled(schema, x, 0.0 if fills else None)  # or raise
        try:
            return estimator._unscaled(x), moments(x, weight=w), w.sum()
        except DataError:
            raise ValueError(_LARGE) from None

    unscaled, found, weight = total(spread, lambda a, b: (a[0] & b[0], a[1] + b[1], a[2] + b[2]))
    deviation = np.sqrt(found.scatter / weight)
    if not np.isfinite(deviation).all():
        raise ValueError(_LARGE)
    estimator._standardise(found.mean, deviation, unscaled)
    centre, scale = estimator.centre_, estimator.scale_

    def read(function, add):
        def work(x, y, w):
            x = design.filled(schema, x, centre if fills else None)
            row, code, votes = stacked(codes_among(y, labels), w)
            return function({"x": (x[row] - centre) / scale, "t": code, "weight": votes})

        return total(work, add)

    return inference, labels, DistantRows(read)
