"""What an estimator does whose statistics add: merge with others of its kind, and let old rows count less.

Fitted estimators that merge, forget rows, and let old rows count less: all by the algebra of their statistics.
"""

import abc
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import listed
from bayesgen.core.program import same
from bayesgen.estimators.base import Estimator
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.tables.rows import fingerprint


class Amendable(Estimator, abc.ABC):
    """An estimator that adds to others, and decays; see `bayesgen.estimators.additive`."""

    statistics_: Any

    @property
    @abc.abstractmethod
    def total_weight_(self) -> float:
        """Sum of the weights of all rows."""

    @abc.abstractmethod
    def _merged(self, other) -> Any:
        """Return a new estimator that has learned from the rows of both."""

    @abc.abstractmethod
    def _decayed(self, factor) -> None:
        """Learn from the statistics times a factor, which is checked here."""

    def __add__(self, other):
        """Return an estimator that has learned from the rows of both: of one kind, settings, columns and classes.

        Its weak priors follow all the rows, so it is what ``fit`` makes of them; ``sum(estimators)`` merges many.
        """
        return self._merged(other) if type(self) is type(other) else NotImplemented

    def __radd__(self, other):
        return self if isinstance(other, int) and other == 0 else NotImplemented  # where `sum` begins

    def decay(self, factor: float) -> Self:
        """Let all rows so far count ``factor`` times what they did: before each new batch of a stream that drifts.

        Statistics are scaled, never hyperparameters, so the prior keeps its strength. `total_weight_` and
        `effective_rows_` tell what is left. There is no evidence of rows that count in part.

        Parameters
        ----------
        factor : float
            Above 0, at most 1. With 0.5 ** (1/h) before every batch a batch counts half after h more.

        Returns
        -------
        self

        Examples
        --------
        >>> from bayesgen import LinearRegressor, NaiveBayesClassifier
        >>> classifier = NaiveBayesClassifier().partial_fit([[1.0], [1.4]], ["a", "b"], classes=["a", "b"])
        >>> classifier.decay(0.5).partial_fit([[3.1], [2.9]], ["b", "b"]).total_weight_
        3.0
        >>> line = LinearRegressor().partial_fit([[0.0], [1.0]], [1.0, 2.0])
        >>> line.decay(0.5).partial_fit([[0.0], [1.0]], [3.0, 4.0]).total_weight_
        3.0
        """
        check_is_fitted(self)
        with self._whole():
            self._decayed(factor)
        return self

    @property
    def effective_rows_(self) -> float:
        """Kish's effective number of rows, (Σw)²/Σw²: how many rows of one weight say as much."""
        return self.total_weight_**2 / float(np.sum(self.statistics_.squares))


def merge(a, b):
    """Return a classifier that has learned from the rows of both; see `GenerativeClassifier.__add__`."""
    result = clone_of_both(a, b)
    if fingerprint(a.schema_, a.classes_) != fingerprint(b.schema_, b.classes_):
        raise ValueError(
            "these classifiers have different columns, categories or classes; declare them the same at the fit, by "
            "schema= and classes= of fit_batches or classes= of partial_fit"
        )
    return _again(result, a, _sums(a) + _sums(b))


def clone_of_both(a, b) -> Any:
    """An unfitted estimator with the settings of two fitted ones; a ValueError where they differ."""
    check_is_fitted(a)
    check_is_fitted(b)
    mine, theirs = a.get_params(deep=False), b.get_params(deep=False)
    other = [name for name in mine if name != "random_state" and not _alike(mine[name], theirs[name])]
    if other:
        raise ValueError(f"these estimators differ in {listed(other)}; merge those of the same settings")
    return clone(a)


def _sums(estimator) -> ClassStatistics:
    """The statistics of a classifier, which are sums, or an error."""
    if isinstance(estimator.statistics_, PartlyLabelled):
        raise ValueError(
            "rows whose class is not known are kept, and have no sums that add: such a classifier neither merges, nor "
            "forgets rows, nor lets them decay; fit all rows anew"
        )
    return estimator.statistics_


def _alike(a, b) -> bool:
    """Whether two values of a parameter are the same."""
    if type(a) is not type(b):
        return False
    return same(a, b) if hasattr(a, "__dict__") or isinstance(a, np.ndarray | dict) else bool(a == b)


def _again(estimator, like, statistics: ClassStatistics):
    """Fit an estimator to statistics under the schema of another."""
    estimator._learn_sums(like.schema_, statistics, like.classes_, hasattr(like, "feature_names_in_"))
    return estimator


def forget(estimator, X, y, sample_weight=None):
    """Do `GenerativeClassifier.forget`."""
    part, whole = estimator._sum(X, y, sample_weight), _sums(estimator)
    signed = {name for name, leaf in estimator.model_.leaves.items() if leaf.density_kind == "density"}
    left = whole.without(part, signed)
    if not left.classes.sums.any():
        raise ValueError("no row would be left; a classifier that forgets all has nothing to stand on")
    return _again(estimator, estimator, left)


def decay(estimator, factor: float):
    """Do `GenerativeClassifier.decay`."""
    check_is_fitted(estimator)
    return _again(estimator, estimator, _sums(estimator).scaled(checked_factor(factor)))


def checked_factor(factor: float) -> float:
    """The factor of a decay, checked."""
    if isinstance(factor, bool) or not isinstance(factor, int | float | np.number) or not 0 < factor <= 1:
        raise ValueError(f"factor must be a number > 0 and <= 1, got {factor!r}")
    return float(factor)
