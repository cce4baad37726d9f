"""What the discriminative estimators share: standardise, run an inference, tell coefficients on the columns' own scale.

They model p(y | x) and have nothing to say of x: a missing value is an error, and there is no density of a row.
"""

import abc
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.estimators.base import Estimator, Evidence
from bayesgen.inference import Inference
from bayesgen.inspection.arviz import chosen
from bayesgen.inspection.columns import row_labels
from bayesgen.inspection.prior import add_prior, log_prior, prior_draws
from bayesgen.models.discriminative import complete
from bayesgen.moments import about_zero, centre_and_scale
from bayesgen.numerics.checks import check_flag, check_positive
from bayesgen.posterior import generator
from bayesgen.tables.labels import existing
from bayesgen.tree import tree


class Discriminative(Evidence, Estimator):
    """Shared by the estimators: reading, standardising, and undoing it."""

    prior_scale: float
    intercept_scale: float
    standardize: bool
    inference: str | Inference
    random_state: Any

    def _rows(self, X, y, sample_weight):
        """Names of the columns, and rows that exist, standardised, with their target and weights (None: all 1)."""
        self._check_settings()
        columns, x, y, weight = self._existing(X, y, sample_weight, reset=True)
        self.centre_, self.scale_ = np.zeros(x.shape[1]), np.ones(x.shape[1])
        if self.standardize:
            self.centre_, self.scale_ = self._centre_and_scale(x, weight)
        z = (x - self.centre_) / self.scale_
        return columns, z, y.copy(), weight  # rows are kept: not those the user may change

    def _existing(self, X, y, sample_weight, reset: bool):
        """Names of the columns, and rows that exist, as numbers, with their target and weights."""
        table, y, weight = existing(self._table(X, reset=reset), y, sample_weight)
        return table.columns, complete(self._numbers(table), table.columns), y, weight

    intercept = True

    def _centre_and_scale(self, x, weight):
        mean, deviation = centre_and_scale(x, weight)
        return (mean, deviation) if self.intercept else about_zero(mean, deviation * (x != x[0]).any(0))

    def _check_settings(self):
        for name in ("prior_scale", "intercept_scale"):
            check_positive(name, getattr(self, name))
        check_flag("standardize", self.standardize)

    def _numbers(self, table):
        if table.sparse:
            raise TypeError(f"X is sparse, and {type(self).__name__} takes dense rows: give X.toarray()")
        return table.numbers(table.columns)

    def _read(self, X):
        check_is_fitted(self)
        columns = self.model_.columns
        x = complete(self._numbers(self._table(X, reset=False).renamed(columns)), columns)
        with np.errstate(over="ignore"):
            z = (x - self.centre_) / self.scale_
        if not np.isfinite(z).all():
            row, column = np.argwhere(~np.isfinite(z))[0]
            raise ValueError(
                f"column {columns[column]!r}: the value {x[row, column]:g} in row {row} is too far from the rows of "
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
        before, new = prior_draws(model, rng, kept.samples), {}
        if "prior_predictive" in wanted:
            drawn = self._groups(before, X, y, rng, ("posterior_predictive",))
            new["prior_predictive"] = drawn["posterior_predictive"]
        add_prior(result, replace(before, samples=self._undo(before.samples)), new, obs)
        return result

    @abc.abstractmethod
    def _groups(self, draws, X, y, rng, wanted) -> dict[str, dict[str, np.ndarray]]:
        """ArviZ's groups that speak of rows and their targets, the large ones where they are ``wanted``."""
