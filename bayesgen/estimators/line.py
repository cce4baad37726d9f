"""What a linear regression learns from sums of rows: batches, more rows, merging, forgetting and decay."""

import abc
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesgen.estimators import amend, distant
from bayesgen.estimators.amendable import Amendable
from bayesgen.messages import listed
from bayesgen.models.line_statistics import LineStatistics


class SummedLine(Amendable):
    """The statistics of a line with Gaussian noise add and subtract, so that a fitted regression does too.

    All of it takes ``noise="normal"`` and ``prior="normal"``, whose statistics are small. A regression that was fitted
    to standardised rows learns from those of the columns as given, and standardises anew.
    """

    noise: Any
    prior: Any
    model_: Any
    statistics_: LineStatistics
    centre_: np.ndarray
    scale_: np.ndarray

    @abc.abstractmethod
    def fit(self, X, y, sample_weight=None) -> Self:
        """Learn from rows and their target."""

    @abc.abstractmethod
    def _check_settings(self) -> None:
        """Raise what is wrong with the settings."""

    @abc.abstractmethod
    def _sum(self, X, y, sample_weight) -> LineStatistics:
        """Statistics of rows with the columns of the fit, as they are given."""

    @abc.abstractmethod
    def _settle(self, columns, line: LineStatistics) -> None:
        """Learn from standardised statistics."""

    def fit_batches(
        self, source, target=None, *, sample_weight=None, missing=(), progress: bool | None = None, workers=None
    ):
        """Learn from rows that come in batches, however many, in one pass: the answer is that of ``fit`` on all rows.

        It takes ``noise="normal"`` and ``prior="normal"``, whose statistics are small.

        Parameters
        ----------
        source, target, sample_weight, missing, progress, workers
            As for `NaiveBayesClassifier.fit_batches`; all columns beside target and weight are numbers.

        Returns
        -------
        self

        Examples
        --------
        >>> import pandas as pd
        >>> from bayesgen import LinearRegressor
        >>> rows = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [1.0, 3.1, 4.9, 7.0]})
        >>> LinearRegressor().fit_batches([rows[:2], rows[2:]], "y").predict(pd.DataFrame({"x": [4.0]})).round(1)
        array([8.8])
        """
        with self._whole():
            self._check_settings()
            self._check_sums()
            self._learn_sums(*distant.fit_line(self, source, target, sample_weight, missing, progress, workers))
        return self

    @available_if(lambda self: self.noise == self.prior == "normal")
    def partial_fit(self, X, y, sample_weight=None) -> Self:
        """Learn from further rows: the answer is that of ``fit`` on these and all before.

        Parameters
        ----------
        X, y, sample_weight
            As for ``fit``.

        Returns
        -------
        self
        """
        if not hasattr(self, "posterior_"):
            return self.fit(X, y, sample_weight)
        with self._whole():
            self._learn_sums(self.model_.columns, self._given() + self._sum(X, y, sample_weight))
        return self

    def _merged(self, other):
        result: Any = amend.clone_of_both(self, other)
        self._check_sums()
        if self.model_.columns != other.model_.columns:
            raise ValueError(
                f"these regressions have different columns: {listed(self.model_.columns)} and "
                f"{listed(other.model_.columns)}"
            )
        result._expect(self.model_.columns, hasattr(self, "feature_names_in_"))
        result._learn_sums(self.model_.columns, self._given() + other._given())
        return result

    def _decayed(self, factor) -> None:
        self._check_sums()
        self._learn_sums(self.model_.columns, self._given().scaled(amend.checked_factor(factor)))

    def forget(self, X, y, sample_weight=None) -> Self:
        """Learn as if some rows of the fit had never been there, to 1e-8; refused where that would lose digits.

        What is standardised and the priors follow the rows that are left. That rows were among those of the fit cannot
        always be seen. This is no promise of privacy.

        Parameters
        ----------
        X, y, sample_weight
            The rows, as at the fit.

        Returns
        -------
        self

        Examples
        --------
        >>> from bayesgen import LinearRegressor
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.1, 4.9, 70.0]
        >>> LinearRegressor().fit(X, y).forget(X[3:], y[3:]).predict([[3.0]]).round(1)
        array([6.7])
        """
        check_is_fitted(self)
        with self._whole():
            self._check_sums()
            left = self._given() - self._sum(X, y, sample_weight)
            if not left.n:
                raise ValueError("no row would be left; a regression that forgets all has nothing to stand on")
            self._learn_sums(self.model_.columns, left)
        return self

    @property
    def total_weight_(self) -> float:
        """Sum of the weights of all rows."""
        check_is_fitted(self)
        self._check_sums()
        return float(self.statistics_.n)

    def _check_sums(self):
        if not self.noise == self.prior == "normal":
            raise ValueError("Laplace noise or prior has no small statistics: give all rows to fit")

    def _given(self) -> LineStatistics:
        """Statistics of the columns as they were given."""
        line, scale, centre = self.statistics_, np.append(self.scale_, 1.0), np.append(self.centre_, 0.0)
        return replace(line, mean=line.mean * scale + centre, factor=line.factor * scale)

    def _learn_sums(self, columns, given: LineStatistics) -> None:
        self._settle(columns, distant.standardised(self, given))


def scale_of_noise(variance, mean, intercept: bool, stacklevel: int) -> float:
    """Variance of y, about 0 without an intercept, for the prior of the noise; 1, with a warning, where it is 0."""
    if not intercept:
        variance, mean = variance + mean**2, 0.0
    if variance > (8 * np.finfo(float).eps * np.abs(mean)) ** 2:
        return float(variance)
    warnings.warn("y is constant: the prior of the noise variance takes the scale 1", UserWarning, stacklevel)
    return 1.0
