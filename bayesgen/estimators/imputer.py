"""Imputation as a step of a pipeline."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from bayesgen.estimators.discriminant import GaussianDiscriminantClassifier
from bayesgen.inspection.missing import draw_table, impute
from bayesgen.numerics.checks import check_flag
from bayesgen.tables.learned_rows import codes_or_none
from bayesgen.tables.table import Table


@dataclass(eq=False, repr=False)
class Imputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Transformer that fills missing entries by a generative classifier; see `bayesgen.inspection.impute`.

    Parameters
    ----------
    classifier : generative or averaged classifier, optional
        The model of rows and classes; a copy is fitted. By default a Gaussian discriminant with a full covariance,
        fitted by EM (``inference="map"``), as rows have gaps. Without ``y`` all rows are of one class.
    draw : bool, default False
        True to draw the entries, as scikit-learn's ``IterativeImputer(sample_posterior=True)`` does: several
        imputers with different ``random_state`` make multiple imputations. The rows of the fit are drawn together,
        under parameters that all of them share: then what is computed from whole tables varies as it should between
        imputers, as Rubin's rules need. Their classes are drawn like those of new rows, so that who learns from the
        table sees what it will see later. Other rows are drawn one by one, given the fit.
    random_state : int, RandomState or None, default 0
        Source of randomness of the draws.

    Attributes
    ----------
    classifier_ : classifier
        The fitted copy.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    >>> pipe = make_pipeline(Imputer(), LogisticRegression(max_iter=1000)).fit(gaps, y)
    >>> bool(pipe.score(gaps, y) > 0.85)
    True
    """

    classifier: Any = None
    draw: bool = False
    random_state: Any = 0

    def fit(self, X, y=None) -> Self:
        """Fit the classifier to rows and their classes.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows, NaN where missing.
        y : array, shape (n,), optional
            Classes; by default all rows are of one class.
        """
        check_flag("draw", self.draw)
        self.classifier_: Any = clone(self._model)
        with warnings.catch_warnings():
            if y is None:
                warnings.filterwarnings("ignore", "y holds one class only")
                y = np.zeros(len(Table(X)), int)
            self.classifier_.set_params(random_state=self.random_state).fit(X, y)
        codes = codes_or_none(y, self.classifier_.classes_, 0)
        self._codes = codes if (codes >= 0).all() else None  # the classes are drawn too
        self.n_features_in_ = self.classifier_.n_features_in_
        if hasattr(self.classifier_, "feature_names_in_"):
            self.feature_names_in_ = self.classifier_.feature_names_in_
        return self

    @property
    def _model(self) -> Any:
        return GaussianDiscriminantClassifier(inference="map") if self.classifier is None else self.classifier

    def transform(self, X):
        """Return the rows without gaps, a DataFrame or an array as at fit."""
        check_is_fitted(self)
        if not self.draw:
            return impute(self.classifier_, X)
        return draw_table(self.classifier_, X, self._codes)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = replace(get_tags(self._model).input_tags, allow_nan=True, sparse=False)
        return tags
