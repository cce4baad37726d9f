"""The scikit-learn estimators: read the table, sum its statistics, run an inference, ask the posterior."""

import abc
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesgen import inspection
from bayesgen.estimators import amend, batches
from bayesgen.estimators.base import Estimator, Evidence, ProbabilityDraws
from bayesgen.inference import MAP, ML, Inference, Laplace, resolve
from bayesgen.inspection.draw_reliability import warn_of_few_draws
from bayesgen.inspection.probabilities import warn_of_lost
from bayesgen.inspection.tempering import tempered
from bayesgen.inspection.unlabelled_weight import warn_of_harm
from bayesgen.models import ClassConditional, DirichletCategorical, KnownCategorical, LabelNoise
from bayesgen.models.class_conditional import ClassStatistics
from bayesgen.models.unlabelled import PartlyLabelled
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.sums import Grouping
from bayesgen.posterior import Posterior, generator
from bayesgen.tables.labels import class_codes, class_labels, declared_classes, existing, some_labels
from bayesgen.tables.messages import listed
from bayesgen.tables.rows import RowSchema, fingerprint
from bayesgen.tables.schema import GAUSSIAN, Schema
from bayesgen.tables.table import numbered

_SAMPLED = 1 << 21  # parameters that `sample` draws at a time: 16 MB
_SMALLEST = 1e-150  # what is smaller has squares that lose digits, or all of them


def _by_loo(classifier) -> list[str]:
    """What leave-one-out chooses."""
    return [name for name in ("exponent", "prior") if isinstance(v := getattr(classifier, name, 1), str) and v == "loo"]


def _sums_suffice(classifier) -> bool:
    """Whether statistics are all that a fit needs; where not, the classifier has no ``partial_fit``."""
    for name in _by_loo(classifier):
        raise AttributeError(f"{name}='loo' is chosen by leaving out rows: give all of them to fit")
    if classifier.label_noise is not None:
        raise AttributeError("rows whose label may be wrong have no sums that add: give all of them to fit")
    if classifier.unlabelled != "error":
        raise AttributeError("rows without a label have no sums that add: give all rows to fit, or unlabelled='error'")
    return True


def _of(weight, rows):
    """Weights of some rows, where there are weights."""
    return None if weight is None else weight[rows]


class GenerativeClassifier(ClassifierMixin, Evidence, ProbabilityDraws, Estimator):
    """Shared by the estimators: a class prior, a schema, statistics free of any prior, and a posterior."""

    class_concentration: ArrayLike
    priors: ArrayLike | None
    unlabelled: Any
    label_noise: LabelNoise | None
    inference: str | Inference
    random_state: Any
    classes_: np.ndarray
    schema_: Schema
    statistics_: ClassStatistics
    model_: ClassConditional
    posterior_: Posterior

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Refuse ``class_weight`` with a word on what there is instead; `__init__` only keeps its arguments."""
        if "class_weight" in settings:
            raise TypeError(
                f"{cls.__name__} has no class_weight: give the probabilities of the classes by priors=, to the "
                "classifier or to predict_proba, and what each mistake costs to bayesgen.decision.decide"
            )
        return super().__new__(cls)

    def fit(self, X, y, sample_weight=None) -> Self:
        """Learn from rows and their classes.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing.
        y : array, shape (n,)
            Class labels; some may be missing where ``unlabelled`` says how they are marked.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.

        Returns
        -------
        self
        """
        with self._whole():
            labels, place = some_labels(y, self.unlabelled)
            own = labels if place is None else place
            table, own, weight = existing(self._table(X, reset=True), own, sample_weight)
            schema = self._learn_schema(table)
            known = np.ones(len(own), bool) if place is None else own >= 0
            self.classes_, codes = class_codes(own if place is None else labels[own[known]])
            labelled, weights = (table, weight) if known.all() else (table.rows(known), _of(weight, known))
            template, statistics = self._summarise(schema, labelled, codes, weights)
            template = self._strengthened(template, statistics, labelled, codes, weights)
            if self.label_noise is not None:
                template = replace(template, confusion=self._confusion())
                told = np.full(len(known), -1)
                told[known] = codes
                rows = self._shape(schema.read(table))
                statistics = PartlyLabelled.of(template, statistics, rows, weight, told)
            elif not known.all():
                rows = self._shape(schema.read(table.rows(~known)))
                statistics = PartlyLabelled.of(template, statistics, rows, _of(weight, ~known))
            self._learn(schema, template, statistics)
            self._temper(X, labels, sample_weight)
        by_em = isinstance(resolve(self.inference), ML | MAP) and self.model_.conjugate
        if by_em and sample_weight is None and self.label_noise is None and not known.all():
            warn_of_harm(self, X, y)
        return self

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
            Their sum; pieces add by ``sum(list_of_statistics)``, see `summarise`.
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
        >>> halves = [whole.summarise(X[rows], y[rows]) for rows in (slice(2), slice(2, 4))]
        >>> again = NaiveBayesClassifier().fit_statistics(whole.schema_, sum(halves), whole.classes_)
        >>> bool(np.allclose(again.predict_proba(X), whole.predict_proba(X)))
        True
        """
        if self.label_noise is not None:
            raise ValueError("rows whose label may be wrong have no sums that add: give all of them to fit")
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
            same source goes on from there. It is removed at the end. A source without files must give the same batches
            again.
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
        rows, how = batches.source_of(source, missing), (checkpoint, progress, workers)
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
        """Return what a worker needs to `bayesgen.summarise` batches of a source: columns, categories, classes, model.

        The estimator stays as it is. The arguments are those of `fit_batches`; nothing is read where schema and classes
        are declared.
        """
        return batches.row_schema(self, batches.source_of(source, missing), target, sample_weight, schema, classes)

    def summarise(self, X, y, sample_weight=None) -> ClassStatistics:
        """Sum the sufficient statistics of rows under the schema and classes of the fit, which stays as it is.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing.
        y : array, shape (n,)
            Class labels.
        sample_weight : array, shape (n,), optional
            Row weights >= 0.
        """
        check_is_fitted(self)
        table, y, weight = existing(self._table(X, reset=False), class_labels(y), sample_weight)
        _, codes = class_codes(y, self.classes_)
        return self._summarise(self.schema_, table, codes, weight)[1]

    def __add__(self, other):
        """Return a classifier that has learned from the rows of both: of one kind, settings, schema and classes.

        Its weak priors follow all the rows, so it is what ``fit`` makes of them; ``sum(classifiers)`` merges many.
        """
        return amend.merge(self, other) if type(self) is type(other) else NotImplemented

    def __radd__(self, other):
        return self if isinstance(other, int) and other == 0 else NotImplemented  # where `sum` begins

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
            return amend.forget(self, X, y, sample_weight)

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
        >>> from bayesgen import NaiveBayesClassifier
        >>> classifier = NaiveBayesClassifier().partial_fit([[1.0], [1.4]], ["a", "b"], classes=["a", "b"])
        >>> classifier.decay(0.5).partial_fit([[3.1], [2.9]], ["b", "b"]).total_weight_
        3.0
        """
        with self._whole():
            return amend.decay(self, factor)

    @property
    def total_weight_(self) -> float:
        """Sum of the weights of all rows."""
        check_is_fitted(self)
        return float(self.statistics_.classes.sums.sum())

    @property
    def effective_rows_(self) -> float:
        """Kish's effective number of rows, (Σw)²/Σw²: how many rows of one weight say as much."""
        check_is_fitted(self)
        return self.total_weight_**2 / float(self.statistics_.squares.sum())

    def _summarise(self, schema, table, codes, weight):
        """The model without its weak priors, and statistics of some rows."""
        template = self._template(schema)
        rows = Grouping(codes, len(self.classes_), weight, (len(self.classes_),))
        statistics = template.sum_rows(template.blocks(self._shape(schema.read(table))), rows)
        return template, statistics.under(fingerprint(schema, self.classes_))

    def _learn_sums(self, schema, statistics, classes, named: bool | None = None) -> None:
        """Learn from sums under a schema; columns x0, x1, ... had no names where ``named`` does not tell."""
        self.classes_ = declared_classes(classes)
        if not np.array_equal(self.classes_, np.asarray(classes)):
            raise ValueError(f"classes must be distinct labels in order, got {listed(classes)}")
        if not isinstance(statistics, ClassStatistics):
            raise TypeError(
                f"statistics must be those that `summarise` returns, or a sum of them; got {statistics!r:.100}"
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

    def _learn(self, schema, template, statistics):
        inference = resolve(self.inference)
        self._warn_constant(schema, statistics)
        model = template.settled(statistics)
        posterior = inference(model, statistics, seed=self.random_state)
        self.schema_, self.statistics_, self.model_, self.posterior_ = (schema, statistics, model, posterior)

    # What the two classifiers differ in: how columns form blocks, which model they make, which rows it takes, and
    # whether the strength of priors, or an exponent of the features, is learned from rows.

    exponent_ = 1.0

    def _strengthened(self, template, statistics, table, codes, weight):
        """The model with priors whose strength the rows of fit choose, where one is asked for."""
        return template

    def _temper(self, *rows) -> None:
        """Learn the exponent of the features from the rows of fit, where there are any."""

    @abc.abstractmethod
    def _learn_schema(self, table) -> Schema:
        """Divide the columns of a table into blocks."""

    @abc.abstractmethod
    def _template(self, schema) -> ClassConditional:
        """Build the model; priors that follow the data are left to come, see `WeakPrior`."""

    def _shape(self, blocks):
        return blocks

    def _class_prior(self):
        labels = self.classes_.tolist()
        if self.priors is not None:
            return self._known(self.priors)
        try:
            return DirichletCategorical(self.class_concentration, labels)
        except (TypeError, ValueError) as error:
            raise type(error)(f"class_concentration: {error}") from None

    def _confusion(self) -> DirichletCategorical:
        """The prior of the confusion matrix."""
        if not isinstance(self.label_noise, LabelNoise):
            raise TypeError(f"label_noise must be a LabelNoise such as LabelNoise(rate=0.1), got {self.label_noise!r}")
        for name in _by_loo(self):
            raise ValueError(f"{name}='loo' is chosen by labels that must be right: give a value, or no label_noise")
        if isinstance(resolve(self.inference), Laplace):
            raise ValueError(
                "inference='laplace' begins its search at the prior, and may find a mode with the classes exchanged: "
                "with label_noise use 'map', which begins at the labels"
            )
        return self.label_noise.confusion(self.classes_.tolist())

    def _known(self, priors):
        labels = self.classes_.tolist()
        if np.shape(priors) != (len(labels),):
            raise ValueError(f"priors must hold one probability for each of the {len(labels)} classes {listed(labels)}")
        try:
            return KnownCategorical(priors, labels)
        except (TypeError, ValueError) as error:
            raise type(error)(f"priors: {error}") from None

    def _read(self, X):
        if "posterior_" not in vars(self):
            check_is_fitted(self)
        return self._shape(self.schema_.read(self._table(X, reset=False), getattr(self, "unseen", "error")))

    def predict_log_proba(self, X, priors=None) -> np.ndarray:
        """Log probability of each class, (n, K); see `predict_proba`."""
        joint = self._joint(X, priors)
        with np.errstate(under="ignore"):
            return joint - np.log(np.exp(joint).sum(1))[:, None]

    def predict_proba(self, X, priors=None) -> np.ndarray:
        """Probability of each class, (n, K), columns in the order of ``classes_``.

        The joint p(x, t = k | data) is averaged over the posterior first and normalised over k after. A row that every
        class gives probability 0 (a plug-in estimate can) gets the class prior, with a warning.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows; a missing entry is integrated out.
        priors : array, shape (K,), optional
            Class probabilities of the population to decide for, where they are not those of the data; the fit stays as
            it is.
        """
        joint = self._joint(X, priors)
        with np.errstate(under="ignore"):
            for piece in pieces(*joint.shape):
                part = joint[piece]
                np.exp(part, out=part)
                part /= part.sum(1)[:, None]
        return joint

    def _joint(self, X, priors) -> np.ndarray:
        """Log p(x, t = k | data), (n, K), less that of the most probable class."""
        rows, posterior = self._read(X), self.posterior_
        if priors is not None:
            posterior = posterior.with_class_prior(self._known(priors))
        joint, effective = posterior.log_predictive_with_effective(rows)
        if effective is not None:
            warn_of_few_draws(joint, effective, posterior.model.conjugate, 4)
        if self.exponent_ != 1:
            prior = posterior.log_predictive(self._shape(self.schema_.nothing()))
            joint = tempered(joint, prior, self.exponent_)
        count = 0
        for piece in pieces(*joint.shape):  # that stay in the cache
            part = joint[piece]
            top = part.max(1)
            if np.isneginf(top).any():
                lost = np.isneginf(top)
                count += int(lost.sum())
                part[lost] = posterior.log_predictive(self._shape(self.schema_.nothing()))
                top = part.max(1)
            part -= top[:, None]
        if count:
            warn_of_lost(count, 4)
        return joint

    def predict(self, X) -> np.ndarray:
        """Most probable class of each row; ties go to the first."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def predict_joint_log_proba(self, X) -> np.ndarray:
        """Log p(x, t = k | data) of each row and class, (n, K); its log sum over k is `score_samples`."""
        rows = self._read(X)
        return self.posterior_.log_predictive(rows)

    @np.errstate(under="ignore")
    def score_samples(self, X):
        """Log density log p(x) of each row, (n,): low where nothing like it was seen."""
        return logsumexp(self.predict_joint_log_proba(X), axis=1)

    def sample(self, n_samples: int = 1):
        """Draw rows with their classes from the posterior predictive, each from a draw of the posterior of its own.

        Parameters
        ----------
        n_samples : int, default 1
            How many rows.

        Returns
        -------
        X : DataFrame or array, shape (n_samples, columns)
            A DataFrame where the fit had column names.
        y : array, shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        rng = generator(self.random_state)
        width, parts = sum(v.size for v in self.posterior_.draws(0, (1,)).values()), []
        for piece in pieces(n_samples, width, _SAMPLED, n_samples):
            params = self.posterior_.draws(rng, (piece.stop - piece.start,))
            parts.append(self.model_.sample_rows(params, int(rng.integers(2**31))))
        codes = np.concatenate([t for t, _ in parts])
        rows = {name: np.concatenate([x[name] for _, x in parts]) for name in parts[0][1]}
        return self._like_fit(self.schema_.write(rows)), self.classes_[codes]

    def summary(self) -> inspection.Summary:
        """What was learned, by column and class, as a table for the screen, a frame or a paper; see `Summary`."""
        return inspection.Summary.of(self)

    def _repr_mimebundle_(self, **kwargs):
        """What a notebook shows: the settings, and once fitted what was learned."""
        shown = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown and hasattr(self, "posterior_"):
            shown["text/html"] += self.summary()._repr_html_()
        return shown

    def explain(self, X):
        """What each column of a row says for each class, as terms that add; see `inspection.explain`."""
        return inspection.explain(self, X)

    def leave_one_out(self, X, y, sample_weight=None) -> inspection.LeaveOneOut:
        """Predictions of each row of the fit had it not been there; see `inspection.leave_one_out`."""
        return inspection.leave_one_out(self, X, y, sample_weight)

    def to_arviz(self, X=None, y=None, columns: bool = False, draws: int | None = None):
        """Return the posterior, and what it says of rows, as an ArviZ `xarray.DataTree`; see `inspection.to_arviz`."""
        return inspection.to_arviz(self, X, y, columns, draws)

    def _warn_constant(self, schema, statistics):
        for block in schema.blocks:
            if block.leaf not in GAUSSIAN or not self._weak:
                continue
            pooled = statistics.leaves[block.name].pooled
            flags = np.ravel(pooled.constant)
            size, variance = np.abs(np.ravel(pooled.mean)), np.ravel(pooled.variance)
            tiny = (flags & (size > 0) & (size < _SMALLEST)) | (variance < _SMALLEST**2)
            if tiny.any():
                raise ValueError(
                    f"columns {listed(np.array(block.columns)[tiny])}: squares of values below {_SMALLEST:g} lose "
                    "their digits in float64; give them in smaller units"
                )
            constant = [name for name, flag in zip(block.columns, flags, strict=True) if flag]
            if constant:
                warnings.warn(
                    f"columns {listed(constant)} are constant: they say nothing of the class, and their weak "
                    "prior takes the variance 1",
                    UserWarning,
                    stacklevel=4,
                )

    _weak = True  # whether Gaussian columns have priors that follow the data

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
