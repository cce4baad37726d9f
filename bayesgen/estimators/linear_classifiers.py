"""Logistic, softmax and probit regression as classifiers."""

import abc
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtri_exp
from sklearn.base import ClassifierMixin

from bayesgen.core import registry
from bayesgen.core.errors import listed, warn
from bayesgen.core.statistics import Rows
from bayesgen.estimators.estimator import Held, asks, decision_function, score
from bayesgen.estimators.linear import LinearEstimator, fit_classes
from bayesgen.inference import NUTS, resolve
from bayesgen.inspection.data_tree import row_groups
from bayesgen.inspection.explain import explain
from bayesgen.inspection.fitted import FittedScores
from bayesgen.models.logistic_regression import LogisticRegression, ProbitRegression
from bayesgen.models.row_classifier import RowClassifier
from bayesgen.numerics.checks import check_flag
from bayesgen.tables import design
from bayesgen.tables.findings import findings, tell
from bayesgen.tables.learned_rows import LearnedRows, declared_classes

_LONG = 500_000  # entries of the rows, of which every step of NUTS reads all


@dataclass(eq=False, repr=False)
class RowsClassifier(ClassifierMixin, LinearEstimator, abc.ABC):
    """The base of the classifiers of a linear score: logistic, probit and ordered."""

    missing: str = "error"
    unseen: str = "error"

    @property
    def _fills(self):  # type: ignore[override]
        return self.missing == "mean" and self.standardize

    def _check_settings(self):
        super()._check_settings()
        self._check_options(missing=("error", "mean"), unseen=("error", "missing"))
        if self.missing == "mean" and not self.standardize:
            raise ValueError("missing='mean' needs standardize=True, by which the mean of each column is known")

    def fit(self, X, y, sample_weight=None, classes=None, *, label_weight=None) -> Self:
        """Learn from rows and their classes.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Numbers, bools and categories.
        y : array, shape (n,), or array or DataFrame, shape (n, K)
            Class labels; or the share of each class, of raters, votes or another model, that sum to 1 in a row.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.
        classes : array, shape (K,), optional
            Every class label there can be, two or more, where ``y`` may lack some; default: the labels in ``y``. Of
            ordered classes from lowest to highest; default: their ``order``. Columns of shares are in this order, too.
        label_weight : float or array, shape (n,), optional
            How many votes the shares of a row are worth; default 1. With the number of raters it is one row a vote.
        """
        with self._whole():
            inference, order = resolve(self.inference), getattr(self, "order", None) if classes is None else classes
            rows = LearnedRows.read(self.table(X, reset=True), y, sample_weight, votes=label_weight, default=order)
            classes = self._declared(classes, y, sample_weight, () if rows.shared else rows.classes)
            rows = rows if classes is None else rows.among(classes)
            columns, z = self._standardised(rows)
            self.schema_, self.classes_ = self.schema_.of_target(y), rows.classes
            self._check_classes(classes)
            if isinstance(inference, NUTS) and z.size > _LONG:
                warn(
                    f"NUTS over {z.shape[0]} rows of {z.shape[1]} columns may take minutes; inference='map' takes "
                    "seconds, and with so many rows its probabilities are close"
                )
            row, code, votes = rows.stacked()
            kept = z[row], code.copy(), votes  # not what the user may change
            self._tell(self._learn(inference, self._model_of(columns), *kept))
            if rows.shared:
                self.statistics_ = replace(self.statistics_, decayed=True)
        self._tell_findings(rows, z)
        return self

    def fit_batches(
        self,
        source,
        target=None,
        *,
        sample_weight=None,
        schema=None,
        classes=None,
        missing=(),
        progress: bool | None = None,
        workers=None,
    ) -> Self:
        """Learn from rows that come in batches, however many, by ``inference="map"`` or ``"ml"``.

        A linear classifier has no small statistics, but the gradient and Hessian of Newton's method add over batches
        and partitions: a pass over the rows for their means and spreads, and one for each of some ten steps, after
        the passes that find what is not declared. The answer is the same as by ``fit`` on all rows; ``statistics_``
        holds none of them.

        Parameters
        ----------
        source, target, sample_weight, schema, classes, missing, progress, workers
            As for `NaiveBayesClassifier.fit_batches`, but the source is read more than once.
        """
        with self._whole():
            self._check_settings()
            options = sample_weight, schema, classes, missing, progress, workers
            inference, self.classes_, rows = fit_classes(self, source, target, *options)
            self._check_classes(classes)
            columns = design.names(self.schema_)
            self.model_ = self._model_of(columns)
            self.posterior_ = inference(self.model_, rows, seed=self.random_state)
            none = {"x": np.zeros((0, len(columns))), "t": np.zeros(0, np.intp), "weight": np.zeros(0)}
            self.statistics_ = Rows(none)
            self._tell(self._undo(self.posterior_.mean()))
        tell(findings(self.schema_, None, classes=self.classes_))
        return self

    def _model_of(self, columns) -> RowClassifier:
        """Return the model with its prior, of columns (D,) and the classes of the fit."""
        return self._model(np.full(len(columns), float(self.prior_scale)), tuple(self.classes_.tolist()), columns)

    def _declared(self, classes, y=None, sample_weight=None, found=()) -> np.ndarray | None:
        """Return the classes that the user declares; None where the labels ``y``, or names of shares, say which."""
        return None if classes is None else declared_classes(classes)

    def _check_classes(self, classes):
        if len(self.classes_) < 2:
            holds = f"y holds one class only, {listed(self.classes_)}" if classes is None else "classes holds one label"
            raise ValueError(
                f"{holds}: what tells classes apart needs two of them; name them all as "
                "fit(X, y, classes=[...]), and the prior speaks for a class without rows"
            )

    def _tell(self, sites):
        self.coef_, self.intercept_ = np.atleast_2d(sites["coefficients"]), np.atleast_1d(sites["intercept"])
        model: Any = self.model_
        if 1 < len(model.scored) < len(self.classes_):  # the pinned class
            self.coef_ = np.concatenate([self.coef_, np.zeros_like(self.coef_[:1])])
            self.intercept_ = np.append(self.intercept_, 0.0)

    def _unscaled(self, x):
        """A column of 0 and 1 is centred and not scaled: however rare the 1, its coefficient is a log odds ratio."""
        found = (x[0] == 0) | (x[0] == 1)
        found[found] = ((x[:, found] == 0) | (x[:, found] == 1)).all(0)
        return found

    @abc.abstractmethod
    def _model(self, scales, classes, columns) -> RowClassifier:
        """Build the model of some classes and columns."""

    explain = explain  # documented in `bayesgen.inspection`

    def _groups(self, draws, X, y, rng, wanted):
        return row_groups(self.fitted_, draws, X, y, rng, wanted)

    predict_proba, predict_log_proba = asks(FittedScores.predict_proba), asks(FittedScores.predict_log_proba)

    decision_function = decision_function
    predict, score = asks(FittedScores.predict), score

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "mean"
        return tags


@registry.estimator
@dataclass(eq=False, repr=False)
class LogisticClassifier(RowsClassifier):
    """Bayesian logistic regression; softmax regression for more than two classes.

    Coefficients ~ Normal(0, prior_scale), intercept ~ Normal(0, intercept_scale), for columns standardised by their
    weighted mean and population standard deviation: then a shift or rescaling of a column changes no probability. A
    column of 0 and 1 is centred only: the coefficient of a rare 1 has the prior of any other log odds ratio.

    Parameters
    ----------
    prior_scale, intercept_scale : float, default 2.5
        Prior standard deviations, in log odds (per standard deviation of a column, per step from 0
        to 1 of a column of these).
    standardize : bool, default True
        True if the scales hold for standardised columns; False takes the columns as they are. Reported coefficients
        always belong to the columns as given.
    inference : {"ml", "map", "nuts", "laplace"} or Inference, default "nuts"
        Method of inference. "nuts" averages over what the data leave open, and first compiles for seconds; "laplace"
        does so by a Gaussian with importance weights, faster with many rows, and estimates ``log_evidence_``; "map"
        takes milliseconds and is surer of itself than the data warrant; "ml" is an error for separable classes, and
        for categories, whose columns sum to 1.
    missing : {"error", "mean"}, default "error"
        Treatment of a missing entry, of which the model knows nothing: refused, or filled with the mean of its column
        over the rows of the fit, at fit and at prediction. "mean" needs ``standardize=True``.
    unseen : {"error", "missing"}, default "error"
        Treatment of a category at prediction that was not there at fit: refused, or missing, with one warning that
        counts and names such values.
    random_state : int, RandomState or None
        Source of randomness for NUTS.
    symmetric : bool, default True
        With more than two classes: a vector of coefficients for every class, or the last class pinned to 0. These are
        two priors with two posteriors; see `bayesgen.models.LogisticRegression`.

    Attributes
    ----------
    classes_ : array
        Class labels.
    coef_ : array, shape (1, D) for two classes, else (K, D)
        Posterior mean, or point estimate, of the coefficients, per unit of the columns as given; for two classes those
        of the second, for a pinned class 0.
    intercept_ : array, shape (1,) or (K,)
        The same of the intercepts.
    schema_ : Schema
        Types and categories of the table's columns. Each category is one of the D columns of the score, of 0 and 1,
        with a name such as "island == Dream".
    model_, statistics_, posterior_
        The model with its prior, the rows and the posterior, all of the standardised columns.
    centre_, scale_ : array, shape (D,)
        Numbers that standardise, (x - centre_) / scale_; a column that is constant, or of 0 and 1, has scale 1.

    Examples
    --------
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["no", "no", "yes", "yes"]
    >>> LogisticClassifier(inference="map").fit(X, y).predict_proba([[2.5], [3.5]]).round(3)
    array([[0.5  , 0.5  ],
           [0.117, 0.883]])
    """

    fitted_ = Held(FittedScores, (LogisticRegression,), "intercept_")

    symmetric: bool = True

    def _model(self, scales, classes, columns):
        check_flag("symmetric", self.symmetric)
        options = {"classes": classes, "columns": columns, "symmetric": bool(self.symmetric)}
        return LogisticRegression(scales, self.intercept_scale, **options)


@registry.estimator
@dataclass(eq=False, repr=False)
class ProbitClassifier(RowsClassifier):
    """Bayesian probit regression of two classes: P(second class) = Φ(intercept + x coefficients).

    Parameters
    ----------
    prior_scale, intercept_scale : float, default 2.5
        Prior standard deviations, in units of the latent noise (per standard deviation of a column, per step from 0
        to 1 of a column of these).
    standardize, inference, missing, unseen, random_state
        As for `LogisticClassifier`.

    Attributes
    ----------
    coef_, intercept_ : array, shape (1, D) and (1,)
        Posterior mean, or point estimate, per unit of the columns as given.
    classes_, schema_, model_, statistics_, posterior_, centre_, scale_
        As for `LogisticClassifier`; there are two classes.

    Examples
    --------
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["no", "no", "yes", "yes"]
    >>> ProbitClassifier(inference="map").fit(X, y).predict_proba([[2.5], [3.5]]).round(3)
    array([[0.5  , 0.5  ],
           [0.036, 0.964]])
    """

    fitted_ = Held(FittedScores, (ProbitRegression,), "intercept_")

    def _model(self, scales, classes, columns):
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y holds "
                f"{len(classes)} classes; use LogisticClassifier"
            )
        return ProbitRegression(scales, self.intercept_scale, classes=classes, columns=columns)

    def decision_function(self, X) -> np.ndarray:
        """Return the score Φ⁻¹(p) of the averaged probability of the second class, (n,): positive where it is likelier.

        For a point estimate this is intercept + x coefficients.
        """
        log_p = self.predict_log_proba(X)
        first = log_p[:, 0] < log_p[:, 1]  # the smaller of the two has the digits
        score = ndtri_exp(np.where(first, log_p[:, 0], log_p[:, 1]))
        return np.where(first, -score, score)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
