"""What an estimator does whose statistics add: merge with others of its kind, and let old rows count less."""

import abc
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.estimators.base import Estimator


class Amendable(Estimator, abc.ABC):
    """An estimator that adds to others, and decays; see `bayesgen.estimators.amend`."""

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
