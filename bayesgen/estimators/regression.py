"""The estimator of linear regression, learned from rows, or from sums of rows in batches."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from bayesgen.core import registry
from bayesgen.core.errors import DataError, listed, warn
from bayesgen.estimators.additive import Additive
from bayesgen.estimators.estimator import Held
from bayesgen.estimators.linear import LinearEstimator, sum_line
from bayesgen.inference import Inference, resolve
from bayesgen.inspection.fitted import FittedRegression
from bayesgen.models.laplace_regression import LaplaceLinearRegression
from bayesgen.models.linear_model import LineStatistics
from bayesgen.models.linear_regression import LinearRegression, SemiConjugateLinearRegression
from bayesgen.models.moments import moments
from bayesgen.numerics.checks import check_flag
from bayesgen.posterior.likelihoods import target_groups
from bayesgen.tables import design
from bayesgen.tables.learned_rows import LearnedRows


def scale_of_noise(variance, mean, intercept: bool) -> float:
    """Return the variance of y, about 0 without an intercept, for the noise's prior; 1, with a warning, if it is 0."""
    if not intercept:
        variance, mean = variance + mean**2, 0.0
    if variance > (8 * np.finfo(float).eps * np.abs(mean)) ** 2:
        return float(variance)
    if mean != 0 == mean**2:
        raise ValueError("y: squares of the rows are too small for float64; give it in smaller units")
    warn("y is constant: the prior of the noise variance takes the scale 1")
    return 1.0


@registry.estimator
@dataclass(eq=False, repr=False)
class LinearRegressor(RegressorMixin, LinearEstimator, Additive):
    """Bayesian linear regression: exact under the normal-inverse-gamma prior, or robust, or a lasso.

    Standardised columns z = (x - mean)/sd, with the weighted population sd, have coefficients
    β_j | σ² ~ N(0, prior_scale² σ²), the intercept ~ N(mean(y), intercept_scale² σ²), and σ² ~ InvGamma(1, var(y)):
    predictions follow a shift or rescaling of a column or of y. With ``standardize=False`` the columns are taken as
    they are, with the intercept ~ N(0, intercept_scale² σ²). Without an intercept nothing is centred: columns are
    divided by their root mean square, and σ² ~ InvGamma(1, mean of y²).

    Parameters
    ----------
    prior_scale, intercept_scale : float, default 2.5
        Prior standard deviations (``prior="laplace"``: the scale) in units of the noise sd. The posterior mean is ridge
        regression of the standardised columns with penalty 1/prior_scale².
    standardize : bool, default True
        True if the scales refer to standardised columns; reported coefficients always refer to the columns as given.
    intercept : bool, default True
        True for a line with an intercept; False for a line through 0.
    scale_with_noise : bool, default True
        True for prior standard deviations in units of the noise sd. If False, they are in units of y, and the
        priors of coefficients and noise are independent: there is no exact posterior, so take ``inference="nuts"``,
        "map" or "laplace", with noise and prior "normal".
    noise, prior : {"normal", "laplace"}, default "normal"
        Distribution of the noise (Laplace: robust against outliers) and of the coefficients (Laplace: with "map" the
        lasso). Only normal with normal has an exact posterior; with Laplace take ``inference="map"`` or ``"nuts"``.
    inference : {"ml", "map", "exact", "nuts", "laplace"} or Inference, default "exact"
        Method of inference.
    random_state : int, RandomState or None
        Source of randomness for NUTS and for draws.

    Attributes
    ----------
    coef_ : array, shape (D,)
        Posterior mean, or point estimate, of the coefficients, in y per unit of the columns as given.
    intercept_ : float
        The same for the intercept.
    variance_ : float
        The same for the noise variance.
    schema_, model_, statistics_, posterior_, centre_, scale_
        As for `LogisticClassifier`; the statistics are sums, and a column of 0 and 1 has the scale of any other.

    Examples
    --------
    Basis expansion is a pipeline; the model stays linear in its coefficients:

    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> x = np.linspace(-1, 1, 21)[:, None]
    >>> y = 1 + 2 * x[:, 0] - 3 * x[:, 0] ** 2
    >>> curve = make_pipeline(PolynomialFeatures(2, include_bias=False), LinearRegressor(prior_scale=100)).fit(x, y)
    >>> curve.predict([[0.5]]).round(2)
    array([1.25])
    """

    _models = LinearRegression, SemiConjugateLinearRegression, LaplaceLinearRegression
    fitted_ = Held(FittedRegression, _models, "intercept_", "variance_")

    inference: str | Inference = "exact"
    noise: str = "normal"
    prior: str = "normal"
    intercept: bool = True
    scale_with_noise: bool = True

    def fit(self, X, y, sample_weight=None) -> Self:
        """Learn from rows and their target.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Numbers, bools and categories, none missing.
        y : array, shape (n,)
            Target.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.
        """
        with self._whole():
            inference = resolve(self.inference)
            rows, y = LearnedRows.unclassed(self.table(X, reset=True), self._target(y), sample_weight)
            columns, z = self._standardised(rows)
            y, weight = y.copy(), rows.weight  # kept: not what the user may change
            try:
                target = moments(y[:, None], weight=weight)
            except DataError as error:
                raise ValueError(f"y: {error.problem}") from None
            location = target.mean[0] if self.standardize and self.intercept else 0.0
            beta = scale_of_noise(target.scatter[0] / target.n[0], target.mean[0], self.intercept)
            self._tell(self._learn(inference, self._model(columns, location, beta), z, y, weight))
        self._tell_findings(rows, z)
        return self

    def fit_batches(
        self,
        source,
        target=None,
        *,
        sample_weight=None,
        schema=None,
        missing=(),
        progress: bool | None = None,
        workers=None,
    ) -> Self:
        """Learn from any number of rows in batches, with the same result as ``fit`` on all rows.

        The rows are read once where a schema is declared or the types of the columns tell all; else passes before it
        find the columns and their categories. It takes ``noise="normal"`` and ``prior="normal"``, whose statistics are
        small.

        Parameters
        ----------
        source, target, sample_weight, schema, missing, progress, workers
            As in `NaiveBayesClassifier.fit_batches`.

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
            schema, line = sum_line(source, target, sample_weight, schema, missing, progress, workers)
            self._learn_line(line, schema, target is not None)
        return self

    @available_if(lambda self: self.noise == self.prior == "normal")
    def partial_fit(self, X, y, sample_weight=None) -> Self:
        """Learn from further rows, given as to ``fit``, with the same result as ``fit`` on these and all rows before.

        Only one thread at a time may call it; a second one gets a RuntimeError.
        """
        with self._whole():
            if not hasattr(self, "posterior_"):
                return self.fit(X, y, sample_weight)
            self._learn_sums(self._sums() + self._sum_rows(X, y, sample_weight), self)
        return self

    @property
    def total_weight_(self):
        self._check_sums()
        return float(self.fitted_.statistics_.n)

    @property
    def _through_zero(self):  # type: ignore[override]
        return not self.intercept

    def _check_settings(self):
        super()._check_settings()
        check_flag("intercept", self.intercept)
        check_flag("scale_with_noise", self.scale_with_noise)

    def _model(self, columns, location, beta):
        """Return the model with its prior, whose intercept has the mean ``location``, and the noise the scale beta."""
        scales, mean = np.full(len(columns), float(self.prior_scale)), np.zeros(len(columns))
        if not self.noise == self.prior == "normal":
            if not self.scale_with_noise:
                raise ValueError("scale_with_noise=False takes normal noise and a normal prior")
            kinds = {"noise": self.noise, "prior": self.prior, "columns": columns, "intercept": self.intercept}
            return LaplaceLinearRegression(scales, self.intercept_scale, location, 1.0, beta, **kinds)
        if self.intercept:
            scales, mean = np.append(self.intercept_scale, scales), np.append(location, mean)
        kind = LinearRegression if self.scale_with_noise else SemiConjugateLinearRegression
        return kind(mean, np.diag(scales), 1.0, beta, columns=columns, intercept=self.intercept)

    def _tell(self, sites):
        self.coef_, self.intercept_ = sites["coefficients"], float(sites["intercept"])
        self.variance_ = float(sites["variance"])

    def _target(self, y):
        """Return the target as floats, checked."""
        if np.ma.is_masked(y):
            raise ValueError("y has masked entries; drop these rows")
        y = column_or_1d(y, warn=True)
        if y.dtype.kind in "mM":  # dates would become numbers
            raise TypeError(f"y must hold numbers, got {y.dtype}")
        if y.dtype.kind in "OSU":
            try:
                y = y.astype(float)
            except (TypeError, ValueError, OverflowError) as error:
                raise ValueError(f"y must hold numbers: {error}") from None
        return check_array(y, ensure_2d=False, dtype=float, input_name="y")  # pyright: ignore[reportArgumentType]  # no stubs

    def _check_sums(self):
        if not self.noise == self.prior == "normal":
            raise ValueError("Laplace noise or prior has no small statistics: give all rows to fit")

    def _sums(self) -> LineStatistics:
        self._check_sums()
        line, scale, centre = self.fitted_.statistics_, np.append(self.scale_, 1.0), np.append(self.centre_, 0.0)
        return replace(line, mean=line.mean * scale + centre, factor=line.factor * scale)

    def _sum_rows(self, X, y, sample_weight):
        rows, y = LearnedRows.unclassed(self.table(X), self._target(y), sample_weight)
        x = design.filled(self.schema_, design.read(self.schema_, rows.table))
        return LineStatistics.of(x, y, np.ones(len(y)) if rows.weight is None else rows.weight)

    def _check_columns(self, other):
        mine, theirs = self.model_.columns, other.model_.columns
        if mine != theirs:
            raise ValueError(f"these regressions have different columns: {listed(mine)} and {listed(theirs)}")

    def _learn_sums(self, sums, like):
        self._learn_line(sums, like.schema_, hasattr(like, "feature_names_in_"))

    def _learn_line(self, given: LineStatistics, schema, named: bool):
        """Standardise the statistics of columns as given, and learn from them."""
        self._expect(schema.columns, named)
        self.schema_, columns = schema, design.names(schema)
        deviation = np.sqrt((given.factor[:, :-1] ** 2).sum(0) / given.n)
        self._standardise(given.mean[:-1], deviation)
        centre, scale = np.append(self.centre_, 0.0), np.append(self.scale_, 1.0)
        line = replace(given, mean=(given.mean - centre) / scale, factor=given.factor / scale)
        variance = (line.factor[:, -1] ** 2).sum() / line.n
        beta = scale_of_noise(variance, line.mean[-1], self.intercept)
        self.model_, self.statistics_ = self._model(columns, line.mean[-1] if self.standardize else 0.0, beta), line
        self.posterior_ = resolve(self.inference)(self.model_, line, seed=self.random_state)
        self._tell(self._undo(self.posterior_.mean()))

    def predict(self, X, return_std=False):
        """Return the predictive mean of each row, (n,); with ``return_std`` also its sd, noise included."""
        held = self.fitted_
        mean, variance = held.posterior_.predictive_moments(held.read(X))
        return (mean, np.sqrt(variance)) if return_std else mean

    def _groups(self, draws, X, y, rng, wanted):
        rows = self.model_.check((self.fitted_.read(X), column_or_1d(y)))
        return target_groups(self.model_, draws, rows, rng, wanted)
