"""Estimators whose statistics add: they learn on, merge, forget rows, and let old rows count less.

The statistics of two sets of rows together are the sum of the statistics of each. So every operation here computes
statistics and learns from them anew: a + b to merge or to learn from more rows, a - b to forget, a times a factor to
decay. Hyperparameters are never scaled: weak priors follow the rows that are left.
"""

import abc
import itertools
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from bayesgen.core.errors import listed, shortened
from bayesgen.core.program import same
from bayesgen.estimators.estimator import Estimator
from bayesgen.tables.learned_rows import LearnedRows, declared_classes


class Additive(Estimator, abc.ABC):
    """An estimator that needs no more of the rows than statistics that add.

    Subclasses write ``_sums``, ``_sum_rows``, ``_learn_sums``, ``_check_columns`` and ``total_weight_``, and
    ``partial_fit`` and ``fit_batches`` with the arguments of their kind.
    """

    statistics_: Any

    @property
    @abc.abstractmethod
    def total_weight_(self) -> float:
        """Sum of the weights of all rows."""

    @abc.abstractmethod
    def _sums(self) -> Any:
        """Return the statistics of all rows so far, of the columns as given, or raise if the fit is not of sums."""

    @abc.abstractmethod
    def _sum_rows(self, X, y, sample_weight) -> Any:
        """Return the statistics of rows under the columns of the fit, to be added to `_sums`."""

    @abc.abstractmethod
    def _learn_sums(self, sums, like) -> None:
        """Learn from statistics under the columns and classes of ``like``, a fitted estimator of this kind."""

    @abc.abstractmethod
    def _check_columns(self, other) -> None:
        """Raise ValueError if another fitted estimator has other columns, categories or classes."""

    def _signed(self) -> Any:
        """Return the names of the leaves whose sums may be negative, or False for none; see `Statistics.without`."""
        return False

    def _tell_forgotten(self, remaining, strict: bool) -> None:
        """Tell what still knows rows that leave, beside the statistics that remain, or raise if ``strict``."""

    def _more_rows(self, X, y, classes, sample_weight, groups, label_weight, first: bool) -> LearnedRows:
        """Return the rows of a piece, the ``first`` or a later one, with all classes that there will be."""
        names = getattr(self, "classes_", None) if classes is None else classes
        given: dict[str, Any] = {"votes": label_weight, "default": names, "whole": False}
        rows = LearnedRows.read(self.table(X, reset=first), y, sample_weight, groups, **given)
        if first and classes is None and not rows.shared:
            raise ValueError("classes must be given at the first call of partial_fit: every label there will be")
        declared = declared_classes(rows.classes if names is None else names)
        if not first and not np.array_equal(declared, self.classes_):
            raise ValueError(f"classes are {listed(self.classes_)} since the first call; got {listed(declared)}")
        return rows.among(declared)

    def __add__(self, other):
        """Return an estimator that has learned from the rows of both: of one kind, settings, columns and classes.

        Its weak priors follow all the rows, so it is what ``fit`` makes of them; ``sum(estimators)`` merges many. Two
        with equal statistics have learned from the same rows, it seems, and are refused.
        """
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self._sums(), other._sums()
        self._check_columns(other)
        ours, yours = self.get_params(deep=False), other.get_params(deep=False)
        alike = {name for name, a in ours.items() if type(a) is type(yours[name]) and same(a, yours[name])}
        if apart := [name for name in ours if name not in alike | {"random_state"}]:
            raise ValueError(f"these estimators differ in {listed(apart)}; merge those of the same settings")
        refuse_equal([("the first", self), ("the second", other)])
        result: Any = clone(self)
        result._learn_sums(mine + theirs, self)
        return result

    def __radd__(self, other):
        return self if isinstance(other, int) and other == 0 else NotImplemented  # where `sum` begins

    def forget(self, X, y, sample_weight=None, *, strict: bool = False) -> Self:
        """Learn as if some rows of the fit had never been there.

        The rows are taken out of the statistics. Scatters then differ from those of a fit without the rows by 1e-8 of
        themselves and of one row's variance, at most: where more digits would be lost it is an error, and the fit
        stays. So it is where the statistics show that the rows were not among those of the fit, which they do not
        always show. Weak priors and the standardisation follow the rows that remain; schema, categories and classes
        stay. This is no promise of privacy: categories and saved files may hold traces of the rows. Of an average the
        scores of the rows leave too.

        Parameters
        ----------
        X, y, sample_weight
            The rows, as at the fit.
        strict : bool, default False
            True to refuse where something that is no sum, such as bends and trees of an average, still knows rows of
            the fit; else a warning names it.

        Examples
        --------
        >>> from bayesgen import LinearRegressor, NaiveBayesClassifier
        >>> X, y = [[1.0], [1.4], [3.1], [2.9], [9.0]], ["a", "a", "b", "b", "b"]
        >>> classifier = NaiveBayesClassifier().fit(X, y).forget(X[4:], y[4:])
        >>> without = NaiveBayesClassifier().fit(X[:4], y[:4])
        >>> bool(np.allclose(classifier.predict_proba(X), without.predict_proba(X)))
        True
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.1, 4.9, 70.0]
        >>> LinearRegressor().fit(X, y).forget(X[3:], y[3:]).predict([[3.0]]).round(1)
        array([6.7])
        """
        with self._whole():
            remaining = self._sums().without(self._sum_rows(X, y, sample_weight), self._signed())
            if not remaining.squares.any():
                raise ValueError("no row would be left; an estimator that forgets all has nothing to stand on")
            self._tell_forgotten(remaining, strict)
            self._learn_sums(remaining, self)
        return self

    def decay(self, factor: float) -> Self:
        """Let all rows so far count ``factor`` times what they did: before each new batch of a stream that drifts.

        Statistics are scaled, never hyperparameters, so the prior keeps its strength. `total_weight_` and
        `effective_rows_` measure what is left. Rows that count in part have no evidence.

        Parameters
        ----------
        factor : float
            Above 0, at most 1. With 0.5 ** (1/h) before every batch a batch counts half after h more.

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
        if isinstance(factor, bool) or not isinstance(factor, int | float | np.number) or not 0 < factor <= 1:
            raise ValueError(f"factor must be a number > 0 and <= 1, got {shortened(repr(factor))}")
        with self._whole():
            remaining = self._sums().scaled(float(factor))
            if np.sum(remaining.squares) < np.finfo(float).tiny:
                raise ValueError(f"factor must leave something of the rows, and {factor:g} leaves nothing: fit anew")
            self._learn_sums(remaining, self)
        return self

    @property
    def effective_rows_(self) -> float:
        """Kish's effective number of rows, (Σw)²/Σw²: the rows of one weight that are worth as much."""
        return self.total_weight_**2 / float(np.sum(self._sums().squares))


def refuse_equal(fits: Sequence[tuple[str, Additive]]) -> None:
    """Raise ValueError where two of the named fits have equal statistics, as those of the same rows are."""
    sums = [(name, one.total_weight_, one._sums()) for name, one in fits]
    for (first, weight, a), (second, other, b) in itertools.combinations(sums, 2):
        if weight == other and same(a, b):
            raise ValueError(
                f"{first} and {second} have learned from the same rows, as their equal statistics show, and each would "
                "count twice: merge one of them. If they are other rows that agree in all sums, let one learn from the "
                "rows of the other"
            )
