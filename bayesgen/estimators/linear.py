"""Estimators of a target given its columns by a linear score.

They give each category a column of 0 and 1, standardise the columns, run an inference, and report coefficients on the
columns' own scale. They model p(y | x) and not x: a missing value is an error or a mean, and a row has no density.
"""

import abc
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.core import registry
from bayesgen.estimators import consistency
from bayesgen.estimators.base import Estimator
from bayesgen.inference import Inference
from bayesgen.inspection.arviz import chosen, row_labels
from bayesgen.models.moments import about_zero, centre_and_scale
from bayesgen.numerics.checks import check_flag, check_positive
from bayesgen.posterior.arviz import add_prior, log_prior, prior_samples, tree
from bayesgen.posterior.posterior import ParameterDraws, generator
from bayesgen.tables import design
from bayesgen.tables.labels import existing


@registry.earlier("LinearRegressor")
@registry.earlier("LogisticClassifier")
@registry.earlier("ProbitClassifier")
def of_earlier(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parts of a file of version 0.2.0, which knew the names of the score's columns alone, as of today."""
    parameters, fitted = parts["parameters"], parts["fitted"]
    if "schema_" in fitted:
        return parts
    schema = design.schema_of(fitted["model_"].columns)
    fitted = {**fitted, "schema_": schema, "n_features_in_": len(schema.columns)}
    if "feature_names_in_" in fitted:
        fitted["feature_names_in_"] = np.asarray(schema.columns, dtype=object)
    if "classes_" in fitted:
        parameters = {"missing": "error", "unseen": "missing", **parameters}
    return {"parameters": parameters, "fitted": fitted}


def _means(x, weight) -> np.ndarray:
    """Return the mean of each column over its finite entries, 0 where it has none."""
    seen, weight = np.isfinite(x), np.ones(len(x)) if weight is None else weight
    total = weight @ seen
    return weight @ np.where(seen, x, 0.0) / np.where(total > 0, total, 1.0)


class LinearEstimator(Estimator):
    """The base of the estimators of a target given its columns: they standardise columns and undo it."""

    prior_scale: float
    intercept_scale: float
    standardize: bool
    _fitted_names = (
        "n_features_in_",
        "schema_",
        "model_",
        "statistics_",
        "posterior_",
        "centre_",
        "scale_",
        "coef_",
        "intercept_",
    )
    _models: ClassVar[tuple[type, ...]]  # that it may have
    inference: str | Inference
    random_state: Any

    def _check_parts(self):
        consistency.check_regression(self, self._models)

    def _rows(self, X, y, sample_weight):
        """Names of the columns, and rows that exist, standardised, with their target and weights (None: all 1)."""
        self._check_settings()
        table, y, weight = existing(self._table(X, reset=True), y, sample_weight)
        self.schema_ = design.learn(table)
        x = design.read(self.schema_, table)
        x = design.filled(self.schema_, x, _means(x, weight) if self._fills else None)
        self.centre_, self.scale_ = np.zeros(x.shape[1]), np.ones(x.shape[1])
        if self.standardize:
            self.centre_, self.scale_ = self._centre_and_scale(x, weight)
        z = (x - self.centre_) / self.scale_
        return design.names(self.schema_), z, y.copy(), weight  # rows are kept: not those the user may change

    _fills = False  # True: a missing entry becomes the mean of its column
    _through_zero = False  # True: the score has no intercept

    def _centre_and_scale(self, x, weight):
        mean, deviation = centre_and_scale(x, weight)
        return about_zero(mean, deviation * (x != x[0]).any(0)) if self._through_zero else (mean, deviation)

    def _check_settings(self):
        for name in ("prior_scale", "intercept_scale"):
            check_positive(name, getattr(self, name))
        check_flag("standardize", self.standardize)

    def _read(self, X):
        if "posterior_" not in vars(self):
            check_is_fitted(self)
        x = design.read(self.schema_, self._table(X, reset=False), getattr(self, "unseen", "error"))
        x = design.filled(self.schema_, x, self.centre_ if self._fills else None)
        with np.errstate(over="ignore"):
            z = (x - self.centre_) / self.scale_
        if not np.isfinite(z).all():
            row, j = np.argwhere(~np.isfinite(z))[0]
            raise ValueError(
                f"column {self.model_.columns[j]!r}: the value {x[row, j]:g} in row {row} is too far from the rows of "
                "the fit for float64"
            )
        return z

    def _learn(self, inference, model, z, y, weight):
        self.model_ = model
        self.statistics_ = model.statistics(z, y, weight)
        self.posterior_ = inference(model, self.statistics_, seed=self.random_state)
        return self._undo(self.posterior_.mean())

    @np.errstate(under="ignore")
    def _undo(self, sites):
        """Intercept and coefficients (..., D) of the columns as they were, from those of the standardised ones."""
        coefficients = sites["coefficients"] / self.scale_
        intercept = sites["intercept"] - coefficients @ self.centre_
        rest = {"variance": sites["variance"]} if "variance" in sites else {}
        return {"intercept": intercept, "coefficients": coefficients} | rest

    def to_arviz(self, X=None, y=None, draws: int | None = None, groups: Collection[str] | None = None):
        """Return the posterior as an ArviZ `xarray.DataTree`, coefficients on the scale of the columns as given.

        Parameters
        ----------
        X, y : optional
            Rows and their target, "y", or "t" of classes, as codes. They add the groups "log_likelihood",
            "observed_data" and "posterior_predictive"; "constant_data", the columns; "log_prior", of the
            standardised columns' sites; "prior" and "prior_predictive". Rows have the labels of a frame's index.
        draws : int, optional
            How many draws of the posterior, evenly apart in each chain; default: all.
        groups : collection of str, optional
            Which of the groups as large as draws times rows to make: "log_likelihood", "posterior_predictive" and
            "prior_predictive"; default: all.
        """
        check_is_fitted(self)
        wanted = chosen(groups)
        if (X is None) != (y is None):
            raise ValueError("to_arviz() takes X and y together")
        rng, model = generator(self.random_state), self.model_
        kept = self.posterior_.as_draws(rng).thinned(draws)
        if X is None:
            return tree(replace(kept, samples=self._undo(kept.samples)))
        made, obs = self._groups(kept, X, y, rng, wanted), row_labels(X)
        given = self._read(X) * self.scale_ + self.centre_
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
        """ArviZ's groups that speak of rows and their targets, the large ones where they are ``wanted``."""
