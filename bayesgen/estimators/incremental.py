"""Learning from rows that come in pieces: calls, sums, batches, merges; of classifiers whose statistics add."""

import abc
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import listed
from bayesgen.estimators import additive, batches
from bayesgen.estimators.additive import Amendable
from bayesgen.models import ClassConditional, LabelNoise
from bayesgen.models.class_program import ClassStatistics
from bayesgen.tables.labels import class_codes, class_labels, declared_classes, existing
from bayesgen.tables.rows import RowSchema, fingerprint
from bayesgen.tables.schema import Schema
from bayesgen.tables.sources import source_of
from bayesgen.tables.table import numbered

_DOUBTED = "rows whose label may be wrong have no sums that add: give all of them to fit"


def chosen_by_loo(classifier) -> list[str]:
    """Return the names of the parameters that leave-one-out chooses."""
    return [name for name in ("exponent", "prior") if isinstance(v := getattr(classifier, name, 1), str) and v == "loo"]


def _sums_suffice(classifier) -> bool:
    """Whether statistics are all that a fit needs; where not, the classifier has no ``partial_fit``."""
    for name in chosen_by_loo(classifier):
        raise AttributeError(f"{name}='loo' is chosen by leaving out rows: give all of them to fit")
    if classifier.label_noise is not None:
        raise AttributeError(_DOUBTED)
    if classifier.unlabelled != "error":
        raise AttributeError("rows without a label have no sums that add: give all rows to fit, or unlabelled='error'")
    return True


class Incremental(Amendable, abc.ABC):
    """What a classifier does whose fit needs no more of the rows than statistics that add."""

    unlabelled: Any
    label_noise: LabelNoise | None
    classes_: np.ndarray
    schema_: Schema
    statistics_: ClassStatistics

    @abc.abstractmethod
    def _learn_schema(self, table) -> Schema:
        """Divide the columns of a table into blocks."""

    @abc.abstractmethod
    def _template(self, schema) -> ClassConditional:
        """Build the model; priors that follow the data are left to come, see `WeakPrior`."""

    @abc.abstractmethod
    def _summarise(self, schema, table, codes, weight) -> tuple[ClassConditional, ClassStatistics]:
        """The model without its weak priors, and statistics of some rows."""

    @abc.abstractmethod
    def _learn(self, schema, template, statistics) -> None:
        """Learn from statistics."""

    @abc.abstractmethod
    def _temper(self, *rows) -> None:
        """Learn the exponent of the features from the rows of fit, where there are any."""

    @available_if(_sums_suffice)
    def partial_fit(self, X, y, classes=None, sample_weight=None) -> Self:
        """Learn from more rows: pieces of the data, in any order, teach what the whole would.

        The statistics of the rows add; prior ("weak" ones follow all the rows so far) and posterior are computed anew,
        which under ML, MAP and exact costs the same after a million rows as after ten. NUTS samples again.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing. Categories are those of the first call, with the unused ones of a pandas
            category; or declare them by a leaf.
        y : array, shape (n,)
            Class labels.
        classes : array, shape (K,), optional
            Every class label there will be; needed at the first call.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.

        Returns
        -------
        self

        Examples
        --------
        >>> from bayesgen import NaiveBayesClassifier
        >>> classifier = NaiveBayesClassifier().partial_fit([[1.0], [1.4]], ["a", "a"], classes=["a", "b"])
        >>> classifier.partial_fit([[3.1], [2.9]], ["b", "b"]).predict([[3.0]])
        array(['b'], dtype='<U1')
        """
        with self._whole():
            first = not hasattr(self, "statistics_")
            table, y, weight = existing(self._table(X, reset=first), class_labels(y), sample_weight)
            if first and classes is None:
                raise ValueError("classes must be given at the first call of partial_fit: every label there will be")
            if first:
                self.classes_ = declared_classes(classes)
            elif classes is not None and not np.array_equal(declared_classes(classes), self.classes_):
                raise ValueError(f"classes are {listed(self.classes_)} since the first call; got {listed(classes)}")
            _, codes = class_codes(y, self.classes_)
            schema = self._learn_schema(table) if first else self.schema_
            template, statistics = self._summarise(schema, table, codes, weight)
            self._learn(schema, template, statistics if first else self.statistics_ + statistics)
            self._temper()
        return self

    def fit_statistics(self, schema: Schema, statistics: ClassStatistics | Literal[0], classes) -> Self:
        """Learn from statistics that were summed elsewhere: over files, processes or machines.

        Parameters
        ----------
        schema : Schema
            Of the tables that were summed.
        statistics : ClassStatistics
            Their sum; `row_schema` sums a piece, and pieces add by ``sum(list_of_statistics)``.
        classes : array, shape (K,)
            Class labels, in the order of their codes.

        Returns
        -------
        self

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
        if self.label_noise is not None:
            raise ValueError(_DOUBTED)
        with self._whole():
            self._learn_sums(schema, statistics, classes)
        return self

    @available_if(_sums_suffice)
    def fit_batches(
        self,
        source,
        target: str | None = None,
        *,
        sample_weight: str | None = None,
        schema: Schema | None = None,
        classes=None,
        missing: Sequence[str] = (),
        checkpoint=None,
        progress: bool | None = None,
        workers: int | None = None,
    ) -> Self:
        """Learn from rows that come in batches, however many: from files, a stream, a query, an iterator.

        The answer is that of ``fit`` on all rows at once. Memory holds a few batches. The rows are read once where
        schema and classes are declared or the types of the columns tell all; else a pass before it reads the columns
        of categories and classes. Where something goes wrong the estimator stays as it was.

        Parameters
        ----------
        source : path, Arrow stream, LazyFrame, iterable, or Dask collection
            The path of a Parquet or CSV file, a folder, a glob, or a list of paths; anything with
            ``__arrow_c_stream__``, such as tables of pyarrow, pandas and polars, and relations of DuckDB; a polars
            LazyFrame; an iterable of tables, or of tuples (X, y) or (X, y, weight). An iterator is read once, so it
            takes declared classes, and a schema where columns are categories. Of Dask a DataFrame, or a list of
            delayed tables: then the workers of the cluster sum their partitions.
        target : str
            Column of the classes; None where the source gives tuples.
        sample_weight : str, optional
            Column of row weights >= 0.
        schema : Schema, optional
            Of columns and categories, such as ``schema_`` of an earlier fit; columns it does not name are not read.
        classes : array, shape (K,), optional
            Every class label there will be.
        missing : sequence of str
            What is missing in CSV files, beside an empty field and NA, NaN or null among numbers.
        checkpoint : path, optional
            File to keep in what was summed, every half minute and where the reading breaks off; the next call with the
            same source and arguments goes on from there. Where anything is not the same that changes a sum (a setting,
            an argument, the list of files, a file's size, time, footer or ends, a batch of a source without files) the
            checkpoint is refused. It is removed at the end.
        progress : bool, optional
            Whether to show a bar with rows a second; by default where the standard error is a terminal.
        workers : int, optional
            Threads that sum; default: all cores.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Naming file and row group (or rows) and column, where one cannot be read, is not of the schema, or holds a
            class or category that was not declared.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from bayesgen import NaiveBayesClassifier
        >>> table = pa.table({"x": [1.0, 1.4, 3.1, 2.9], "kind": ["a", "a", "b", "b"]})
        >>> NaiveBayesClassifier().fit_batches(table, "kind").predict(pa.table({"x": [3.0]}))
        array(['b'], dtype='<U1')
        """
        rows, how = source_of(source, missing), (missing, checkpoint, progress, workers)
        with self._whole():
            return batches.fit_batches(self, rows, target, sample_weight, schema, classes, *how)

    def row_schema(
        self,
        source,
        target: str | None = None,
        *,
        sample_weight: str | None = None,
        schema=None,
        classes=None,
        missing: Sequence[str] = (),
    ) -> RowSchema:
        """Return what a worker needs to sum batches of a source: columns, categories, classes, model.

        The estimator stays as it is. The arguments are the same as for `fit_batches`; nothing is read if schema and
        classes are declared.

        Returns
        -------
        RowSchema
            A record that can be pickled. Its method ``sum`` gives the statistics of a batch; its attributes ``schema``
            and ``classes`` are the arguments of `fit_statistics`.

        Examples
        --------
        >>> import pandas as pd
        >>> from bayesgen import NaiveBayesClassifier
        >>> table = pd.DataFrame({"x": [1.0, 1.4, 3.1, 2.9], "kind": ["a", "a", "b", "b"]})
        >>> rows = NaiveBayesClassifier().row_schema(table, "kind")
        >>> total = rows.sum(table[:3]) + rows.sum(table[3:])
        >>> NaiveBayesClassifier().fit_statistics(rows.schema, total, rows.classes).predict(pd.DataFrame({"x": [3.0]}))
        array(['b'], dtype='<U1')
        """
        return batches.row_schema(self, source_of(source, missing), target, sample_weight, schema, classes)

    def _sum(self, X, y, sample_weight=None) -> ClassStatistics:
        """Sum the sufficient statistics of rows under the schema and classes of the fit."""
        table, y, weight = existing(self._table(X, reset=False), class_labels(y), sample_weight)
        _, codes = class_codes(y, self.classes_)
        return self._summarise(self.schema_, table, codes, weight)[1]

    def _merged(self, other):
        return additive.merge(self, other)

    def _decayed(self, factor) -> None:
        additive.decay(self, factor)

    def forget(self, X, y, sample_weight=None) -> Self:
        """Learn as if some rows of the fit had never been there.

        Statistics are those without the rows, scatters to 1e-8 of themselves and one row's variance; where digits would
        be lost, or the rows are seen not to be among those of the fit, it is refused and the fit kept. That rows were
        among them cannot always be seen. Weak priors follow what is left; schema, categories and classes stay. This is
        no promise of privacy: categories and saved files may tell of what was there.

        Parameters
        ----------
        X, y, sample_weight
            The rows, as at the fit.

        Returns
        -------
        self

        Examples
        --------
        >>> from bayesgen import NaiveBayesClassifier
        >>> X, y = [[1.0], [1.4], [3.1], [2.9], [9.0]], ["a", "a", "b", "b", "b"]
        >>> classifier = NaiveBayesClassifier().fit(X, y).forget(X[4:], y[4:])
        >>> without = NaiveBayesClassifier().fit(X[:4], y[:4])
        >>> bool(np.allclose(classifier.predict_proba(X), without.predict_proba(X)))
        True
        """
        check_is_fitted(self)
        with self._whole():
            return additive.forget(self, X, y, sample_weight)

    @property
    def total_weight_(self) -> float:
        """Sum of the weights of all rows."""
        check_is_fitted(self)
        return float(self.statistics_.classes.sums.sum())

    def _learn_sums(self, schema, statistics, classes, named: bool | None = None) -> None:
        """Learn from sums under a schema; columns x0, x1, ... had no names where ``named`` does not tell."""
        self.classes_ = declared_classes(classes)
        if not np.array_equal(self.classes_, np.asarray(classes)):
            raise ValueError(f"classes must be distinct labels in order, got {listed(classes)}")
        if not isinstance(statistics, ClassStatistics):
            raise TypeError(
                f"statistics must come from row_schema(...).sum(batch), or be a sum of such; got {statistics!r:.100}"
            )
        template = self._template(schema)
        if statistics.leaves.keys() != template.leaves.keys():
            raise ValueError(
                f"statistics hold the blocks {listed(statistics.leaves)}, the schema {listed(template.leaves)}: "
                "they are of different tables"
            )
        if len(statistics.classes.sums) != len(self.classes_):
            raise ValueError(f"statistics are of {len(statistics.classes.sums)} classes, not {len(self.classes_)}")
        if statistics.schema not in ("", fingerprint(schema, self.classes_)):
            raise ValueError(
                "statistics were summed under another schema: columns, categories or classes are not the same, or "
                "come in another order"
            )
        unnamed = schema.columns == numbered(len(schema.columns))
        self._expect(schema.columns, not unnamed if named is None else named)
        self._learn(schema, template, statistics)
        self._temper()
