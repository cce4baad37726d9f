"""A linear classifier on any table: a column of 0 and 1 for each category, and gaps filled with means."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import quoted
from bayesgen.tables.schema import Block, Schema
from bayesgen.tables.table import Table

_IS = " == "  # in the name of a column of 0 and 1, between its column and its category


class EncodedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that takes complete numbers alone, and a table of numbers, bools and categories with gaps.

    Each category has a column of 0 and 1, named "island == Dream", and a gap is filled with the mean of its column over
    the rows of fit. These names are all that has to be kept: `of` makes the same of a saved classifier.

    Parameters
    ----------
    classifier : LogisticClassifier or ProbitClassifier
        The classifier, unfitted.
    unseen : {"missing", "error"}
        Treatment of a category at prediction that was not there at fit.

    Attributes
    ----------
    classifier_ : LogisticClassifier or ProbitClassifier
        The fitted classifier, of the encoded columns.
    schema_ : Schema
        The columns of the table.
    """

    classifier_: Any
    schema_: Schema

    def __init__(self, classifier, unseen="missing"):
        self.classifier = classifier
        self.unseen = unseen

    @classmethod
    def of(cls, fitted) -> Self:
        """Return what takes tables for a fitted classifier of encoded columns."""
        result = cls(fitted)
        result.classifier_, result.schema_ = fitted, _schema_of(fitted.model_.columns)
        return result

    def fit(self, X, y, sample_weight=None) -> Self:
        """Learn from rows and their classes."""
        table = Table(X)
        self.schema_ = Schema.learn(table, {column: _family(table, column) for column in table.columns})
        names = _names(self.schema_)
        x = self._numbers(X)
        seen = ~np.isnan(x)
        means = np.where(seen, x, 0.0).sum(0) / seen.sum(0).clip(1)
        fresh: Any = clone(self.classifier)
        self.classifier_ = fresh.fit(_frame(np.where(seen, x, means), names), y, sample_weight)
        return self

    def _numbers(self, X) -> np.ndarray:
        """Return the encoded columns of rows, NaN where a value is missing."""
        blocks, columns = self.schema_.read(Table(X), self.unseen), {}
        for block in self.schema_.blocks:
            for column, values in zip(block.columns, np.atleast_2d(blocks[block.name].T), strict=True):
                if block.categories is None:
                    columns[column] = values[:, None]
                else:
                    levels = np.arange(len(block.categories))
                    columns[column] = np.where(np.isnan(values)[:, None], np.nan, values[:, None] == levels)
        return np.hstack([columns[column] for column in self.schema_.columns])

    def filled(self, X):
        """Return the encoded columns of rows, as the classifier within takes them."""
        check_is_fitted(self)
        x, inner = self._numbers(X), self.classifier_
        if inner.standardize:  # else its centre is 0, whatever the mean was
            x = np.where(np.isnan(x), inner.centre_, x)
        return _frame(x, inner.model_.columns) if hasattr(inner, "feature_names_in_") else x

    @property
    def classes_(self) -> np.ndarray:
        """Class labels."""
        return self.classifier_.classes_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Columns of the table."""
        return np.array(self.schema_.columns, dtype=object)

    @property
    def posterior_(self):
        """The posterior of the coefficients."""
        return self.classifier_.posterior_

    @property
    def random_state(self):
        """Source of randomness of the classifier."""
        return self.classifier_.random_state

    def predict_log_proba(self, X) -> np.ndarray:
        """Return the log probability of each class, (n, K)."""
        return self.classifier_.predict_log_proba(self.filled(X))

    def predict_proba(self, X) -> np.ndarray:
        """Return the probability of each class, (n, K)."""
        return self.classifier_.predict_proba(self.filled(X))

    def predict(self, X) -> np.ndarray:
        """Return the most probable class of each row."""
        return self.classifier_.predict(self.filled(X))

    def _read_for_draws(self, X):
        return self.classifier_._read_for_draws(self.filled(X))


def _family(table: Table, column: str) -> str:
    family = table.family(column)
    if family == "categorical" and _IS in column:
        raise ValueError(f"column {column!r} holds {_IS!r}, which stands before a category: rename it")
    return family


def _names(schema: Schema) -> tuple[str, ...]:
    """Return the names of the encoded columns."""
    levels = {column: block.categories for block in schema.blocks for column in block.columns}
    names = []
    for column in schema.columns:
        own = levels[column]
        names += [column] if own is None else [f"{column}{_IS}{level}" for level in own]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two columns would be called {quoted(twice)}: rename one of the table, or its categories")
    return tuple(names)


def _schema_of(names) -> Schema:
    """Return the schema whose encoded columns have these names."""
    levels: dict[str, list[str]] = {}
    for name in names:
        column, found, level = name.partition(_IS)
        levels.setdefault(column, []).extend([level] if found else [])
    numbers = tuple(column for column, own in levels.items() if not own)
    blocks = [Block(column, (column,), True, "categorical", tuple(own)) for column, own in levels.items() if own]
    if numbers:
        blocks.append(Block("", numbers, False, "gaussian"))
    return Schema(tuple(levels), tuple(blocks))


def _frame(x, names):
    import pandas as pd

    return pd.DataFrame(x, columns=list(names))
