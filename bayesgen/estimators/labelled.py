"""The generative classifiers whose rows all have a class: fits of a table, of its pieces, and of sums."""

import abc
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from bayesgen.core.errors import Argument, InputError, listed
from bayesgen.estimators import settings, streaming
from bayesgen.estimators.additive import Additive
from bayesgen.estimators.generative import TOLD, GenerativeClassifier
from bayesgen.models.class_program import ClassStatistics
from bayesgen.sheets.rows import fingerprint
from bayesgen.tables.learned_rows import LearnedRows, declared_classes
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import numbered

_UNKNOWN = "LatentClassClassifier(model=...) learns from rows without a label, and from labels that may be wrong"


class LabelledClassifier(GenerativeClassifier, Additive, abc.ABC):
    """A generative classifier that learns from sums of rows with a class, which add."""

    _absent: ClassVar[dict[str, str]] = {
        **GenerativeClassifier._absent,
        **dict.fromkeys(("unlabelled", "label_noise"), _UNKNOWN),
    }

    def fit(self, X, y, sample_weight=None, groups=None, *, classes=None, label_weight=None) -> Self:
        """Learn from rows and their classes, or the shares of each class.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing.
        y : array, shape (n,), or array or DataFrame, shape (n, K)
            Class labels; or the share of each class, of raters, votes or another model, that sum to 1 in a row.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.
        groups : array, shape (n,), optional
            Label of what a row belongs to, where rows belong together: a patient, a batch, a day. It matters only where
            rows are left out to choose an ``exponent="loo"``: a group then leaves as a whole.
        classes : array, shape (K,), optional
            Class of each column of shares, where ``y`` is no DataFrame whose columns are named by the classes.
        label_weight : float or array, shape (n,), optional
            How many votes the shares of a row are worth; default 1. With the number of raters it is one row a vote.
        """
        with self._whole():
            rows = LearnedRows.read(self.table(X, reset=True), y, sample_weight, groups, classes, label_weight)
            schema, self.classes_ = self._learn_schema(rows.table).of_target(y), rows.classes
            rows = replace(rows, blocks=schema.read(rows.table))
            self._learn(schema, *self._summarise(schema, rows))
            self._temper(rows)
        self._tell_findings(rows)
        return self

    @available_if(settings.sums_suffice)
    def partial_fit(self, X, y, classes=None, sample_weight=None, *, label_weight=None) -> Self:
        """Learn from more rows: pieces of the data, in any order, teach what the whole would.

        The statistics of the rows add; prior ("weak" ones follow all the rows so far) and posterior are computed anew,
        which under ML, MAP and exact costs the same after a million rows as after ten. NUTS samples again. Only one
        thread at a time may call it; a second one gets a RuntimeError.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing. The first call sets the categories, with the unused ones of a pandas
            category; or declare them by a leaf.
        y : array, shape (n,), or array or DataFrame, shape (n, K)
            Class labels, or shares of the classes; see `fit`.
        classes : array, shape (K,), optional
            Every class label there will be; needed at the first call. Columns of shares without names are in this
            order, later in that of ``classes_``.
        sample_weight, label_weight : array, shape (n,), optional
            Row weights >= 0, an integer weight is a row repeated; and votes that the shares of a row are worth.

        Examples
        --------
        >>> from bayesgen import NaiveBayesClassifier
        >>> classifier = NaiveBayesClassifier().partial_fit([[1.0], [1.4]], ["a", "a"], classes=["a", "b"])
        >>> classifier.partial_fit([[3.1], [2.9]], ["b", "b"]).predict([[3.0]])
        array(['b'], dtype='<U1')
        """
        with self._whole():
            first = not hasattr(self, "statistics_")
            rows = self._more_rows(X, y, classes, sample_weight, None, label_weight, first)
            self.classes_ = rows.classes
            schema = self._learn_schema(rows.table) if first else self.schema_.of_more()
            rows = replace(rows, blocks=schema.read(rows.table))
            template, statistics = self._summarise(schema, rows)
            self._learn(schema, template, statistics if first else self.statistics_ + statistics)
            self._temper()
        self._tell_findings(rows, () if first else TOLD.get(self, ()))
        return self

    def fit_statistics(self, schema: Schema, statistics: ClassStatistics | Literal[0], classes) -> Self:
        """Learn from statistics that were summed elsewhere: over files, processes or machines.

        Parameters
        ----------
        schema : Schema
            Schema of the tables that were summed.
        statistics : ClassStatistics
            Their sum; `row_schema` sums a piece, and pieces add by ``sum(list_of_statistics)``.
        classes : array, shape (K,)
            Class labels, in the order of their codes.

        Examples
        --------
        >>> from bayesgen import NaiveBayesClassifier
        >>> X, y = [[1.0], [1.4], [3.1], [2.9]], ["a", "a", "b", "b"]
        >>> whole = NaiveBayesClassifier().fit(X, y)
        >>> rows = NaiveBayesClassifier().row_schema([(X, y)])
        >>> halves = [rows.sum((X[:2], y[:2])), rows.sum((X[2:], y[2:]))]
        >>> again = NaiveBayesClassifier().fit_statistics(rows.schema, sum(halves), rows.classes)
        >>> bool(np.allclose(again.predict_proba(X), whole.predict_proba(X)))
        True
        """
        with self._whole():
            self._learn_statistics(schema, statistics, classes)
        return self

    fit_batches = available_if(settings.sums_suffice)(streaming.fit_batches)
    row_schema = streaming.row_schema

    @property
    def total_weight_(self):
        return float(self.fitted_.statistics_.classes.sums.sum())

    def _sums(self):
        return self.fitted_.statistics_

    def _sum_rows(self, X, y, sample_weight):
        rows = LearnedRows.read(self.table(X), y, sample_weight, default=self.classes_, whole=False)
        rows = replace(rows.among(self.classes_), blocks=self.schema_.read(rows.table))
        return self._summarise(self.schema_, rows)[1]

    def _signed(self):
        return {name for name, leaf in self.model_.leaves.items() if leaf.density_kind == "density"}

    def _check_columns(self, other):
        if fingerprint(self.schema_, self.classes_) != fingerprint(other.schema_, other.classes_):
            cure = "declare them the same at the fit, by schema= and classes= of fit_batches or classes= of partial_fit"
            raise InputError(
                "these classifiers have different columns, categories or classes: "
                f"{settings.first_difference(self, other)}; ",
                Argument("schema", self.schema_, cure),
            )

    def _learn_sums(self, sums, like):
        named = hasattr(like, "feature_names_in_")
        self._learn_statistics(like.schema_.of_more(), sums, like.classes_, named, TOLD.get(like, ()))

    def _learn_statistics(self, schema, statistics, classes, named: bool | None = None, told=()) -> None:
        """Learn from sums under a schema; columns x0, x1, ... had no names where ``named`` does not tell."""
        self.classes_ = declared_classes(classes)
        if not np.array_equal(self.classes_, np.asarray(classes)):
            raise ValueError(f"classes must be distinct labels in order, got {listed(classes)}")
        template = self._template(schema)
        settings.check_statistics(schema, statistics, self.classes_, template)
        unnamed = schema.columns == numbered(len(schema.columns))
        self._expect(schema.columns, not unnamed if named is None else named)
        self._learn(schema, template, statistics)
        self._temper()
        self._tell_findings(told=told)

    def _temper(self, rows: LearnedRows | None = None) -> None:
        """Learn the exponent of the features from the rows of fit, where there are any."""
