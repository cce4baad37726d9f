"""The generative classifiers: read the table, sum its statistics, run an inference, ask the posterior."""

import abc
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import Argument, InputError, listed
from bayesgen.estimators import settings, streaming
from bayesgen.estimators.additive import Additive
from bayesgen.estimators.estimator import sample, score, score_samples
from bayesgen.inference import MAP, ML, Inference, resolve
from bayesgen.inspection.data_tree import to_arviz
from bayesgen.inspection.explain import explain, terms_of_model
from bayesgen.inspection.labelling import warn_of_harm
from bayesgen.inspection.leave_one_out import leave_one_out
from bayesgen.inspection.one_model import JointOfModel
from bayesgen.inspection.probabilities import tempered, warn_of_few_draws
from bayesgen.inspection.summary import Summary
from bayesgen.models import ClassConditional, LabelNoise
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.numerics.pieces import pieces, taken
from bayesgen.numerics.sums import Grouping
from bayesgen.posterior.likelihoods import warn_of_lost
from bayesgen.posterior.posterior import Posterior
from bayesgen.tables.groups import group_codes
from bayesgen.tables.labels import (
    class_codes,
    class_labels,
    declared_classes,
    existing,
    some_labels,
    warn_of_labels,
    warn_of_weightless,
)
from bayesgen.tables.rows import fingerprint
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import numbered

_SAMPLED = 1 << 21  # parameters that `sample` draws at a time: 16 MB


def _largest(values):
    """Return the column of the largest entry of each row, the first of equal ones; 15 times as fast as argmax."""
    if len(values) < 256 * values.shape[1]:
        return values.argmax(1)
    kind = np.min_scalar_type(values.shape[1])
    best, top = np.zeros(len(values), kind), values[:, 0]
    for k, column in enumerate(values.T[1:], 1):
        np.maximum(best, (column > top) * kind.type(k), out=best)
        top = np.maximum(column, top)
    return best


class GenerativeClassifier(ClassifierMixin, Additive):
    """Base of the generative classifiers: a class prior, a schema, statistics free of any prior, and a posterior."""

    class_concentration: ArrayLike
    priors: ArrayLike | None
    inference: str | Inference
    random_state: Any
    unlabelled: Any
    label_noise: LabelNoise | None
    classes_: np.ndarray
    model_: ClassConditional
    posterior_: Posterior
    _fitted_names = ("n_features_in_", "model_", "statistics_", "posterior_", "classes_", "schema_")
    _models: ClassVar[tuple[type, ...]]  # that it may have

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse ``class_weight`` with a word on what there is instead; `__init__` only keeps its arguments."""
        if "class_weight" in options:
            raise TypeError(
                f"{cls.__name__} has no class_weight: give the probabilities of the classes by priors=, to the "
                "classifier or to predict_proba, and what each mistake costs to bayesgen.decision.decide"
            )
        return super().__new__(cls)

    def fit(self, X, y, sample_weight=None, groups=None) -> Self:
        """Learn from rows and their classes.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing.
        y : array, shape (n,)
            Class labels; some may be missing where ``unlabelled`` says how they are marked.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.
        groups : array, shape (n,), optional
            Label of what a row belongs to, where rows belong together: a patient, a batch, a day. It matters only where
            rows are left out to choose an ``exponent="loo"``: a group then leaves as a whole.
        """
        with self._whole():
            labels, place = some_labels(y, self.unlabelled)
            place = np.arange(len(labels)) if place is None else place
            group_codes(groups, len(place), sample_weight)  # or raise
            table, place, weight = existing(self._table(X, reset=True), place, sample_weight)
            schema, known = self._learn_schema(table), place >= 0
            partly = not known.all()
            self.classes_, codes = class_codes(labels[place[known]])
            warn_of_weightless(labels, self.classes_, sample_weight)
            labelled, weights = table, weight
            if partly:
                labelled, weights = table.rows(known), taken(weight, known)
            blocks = schema.read(labelled)
            template, statistics = self._summarise(schema, blocks, codes, weights)
            if self.label_noise is not None:
                template = replace(template, confusion=settings.confusion_prior(self))
                given = np.full(len(known), -1)
                given[known] = codes
                rows = self._as_model_takes(schema.read(table))
                statistics = PartlyLabelled.of(template, statistics, rows, weight, given)
            elif partly:
                rows = self._as_model_takes(schema.read(table.rows(~known)))
                statistics = PartlyLabelled.of(template, statistics, rows, taken(weight, ~known))
            self._learn(schema, template, statistics)
            self._temper(X, labels, sample_weight, groups)
        warn_of_labels(self.classes_, codes, schema, blocks)
        unasked = partly and sample_weight is None and self.label_noise is None and self.model_.conjugate
        if unasked and isinstance(resolve(self.inference), ML | MAP):
            warn_of_harm(self, X, y)
        return self

    @available_if(settings.sums_suffice)
    def partial_fit(self, X, y, classes=None, sample_weight=None) -> Self:
        """Learn from more rows: pieces of the data, in any order, teach what the whole would.

        The statistics of the rows add; prior ("weak" ones follow all the rows so far) and posterior are computed anew,
        which under ML, MAP and exact costs the same after a million rows as after ten. NUTS samples again. Only one
        thread at a time may call it; a second one gets a RuntimeError.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing. The first call sets the categories, with the unused ones of a pandas
            category; or declare them by a leaf.
        y : array, shape (n,)
            Class labels.
        classes : array, shape (K,), optional
            Every class label there will be; needed at the first call.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.

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
            template, statistics = self._summarise(schema, schema.read(table), codes, weight)
            self._learn(schema, template, statistics if first else self.statistics_ + statistics)
            self._temper()
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
        if self.label_noise is not None:
            raise ValueError(settings.DOUBTED)
        with self._whole():
            self._learn_statistics(schema, statistics, classes)
        return self

    fit_batches = available_if(settings.sums_suffice)(streaming.fit_batches)
    row_schema = streaming.row_schema

    @property
    def total_weight_(self):
        check_is_fitted(self)
        return float(self.statistics_.classes.sums.sum())

    def _sums(self):
        if isinstance(self.statistics_, PartlyLabelled):
            raise ValueError(
                "rows whose class is not known are kept, and have no sums that add: such a classifier neither merges, "
                "nor forgets rows, nor lets them decay; fit all rows anew"
            )
        return self.statistics_

    def _sum_rows(self, X, y, sample_weight):
        table, y, weight = existing(self._table(X, reset=False), class_labels(y), sample_weight)
        _, codes = class_codes(y, self.classes_)
        return self._summarise(self.schema_, self.schema_.read(table), codes, weight)[1]

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
        self._learn_statistics(like.schema_, sums, like.classes_, hasattr(like, "feature_names_in_"))

    def _summarise(self, schema, blocks, codes, weight):
        """Return the model without its weak priors, and the statistics of some rows."""
        template = self._template(schema)
        rows = Grouping(codes, len(self.classes_), weight, (len(self.classes_),))
        blocks = template.blocks(self._as_model_takes(blocks))
        return template, template.sum_rows(blocks, rows, fingerprint(schema, self.classes_))

    def _learn(self, schema, template, statistics):
        inference = resolve(self.inference)
        model = template.with_prior(statistics)
        if self._weak:
            settings.warn_of_constant_columns(schema, statistics)
        posterior = inference(model, statistics, seed=self.random_state)
        self.schema_, self.statistics_, self.model_, self.posterior_ = (schema, statistics, model, posterior)

    def _learn_statistics(self, schema, statistics, classes, named: bool | None = None) -> None:
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

    # The two classifiers differ in schema and model, in the rows that the model takes, and in what rows choose: the
    # strength of priors, or an exponent of the features.

    _weak = True  # False if no Gaussian column has a prior that follows the data

    @abc.abstractmethod
    def _learn_schema(self, table) -> Schema:
        """Divide the columns of a table into blocks."""

    @abc.abstractmethod
    def _template(self, schema) -> ClassConditional:
        """Return the model; priors that follow the data are left to come, see `WeakPrior`."""

    def _known(self, priors):
        """Return known class probabilities, checked."""
        return settings.known_classes(priors, self.classes_)

    def _temper(self, *rows) -> None:
        """Learn the exponent of the features from the rows of fit, where there are any."""

    def _as_model_takes(self, blocks) -> Any:
        """Return the blocks of rows in the form that the model takes."""
        return blocks

    def _check_parts(self):
        from bayesgen.estimators import consistency  # with all of the average, which only files need

        consistency.check_generative(self, self._models)

    def _density(self):
        return JointOfModel(self)

    def _terms(self, X):
        return terms_of_model(self, X)

    @property
    def _leaves(self):
        return self.model_.leaves

    def _read(self, X):
        if "posterior_" not in vars(self):
            check_is_fitted(self)
        return self._as_model_takes(self.schema_.read(self._table(X, reset=False), getattr(self, "unseen", "error")))

    def predict_log_proba(self, X, priors=None) -> np.ndarray:
        """Return the log probability of each class, (n, K); see `predict_proba`."""
        joint = self._joint(X, priors)
        with np.errstate(under="ignore"):
            return joint - np.log(np.exp(joint).sum(1))[:, None]

    def predict_proba(self, X, priors=None) -> np.ndarray:
        """Return the probability of each class, (n, K), columns in the order of ``classes_``.

        The joint p(x, t = k | data) is averaged over the posterior first and normalised over k after. A row that every
        class gives probability 0 (a plug-in estimate can) gets the class prior, with a warning.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows; a missing entry is integrated out.
        priors : array, shape (K,), or mapping or Series from class to float, optional
            Class probabilities of the population to decide for, where it is another than the data come from; the fit
            stays as it is.
        """
        joint = self._joint(X, priors)
        with np.errstate(under="ignore"):
            for piece in pieces(*joint.shape):
                np.exp(joint[piece], out=joint[piece])
                joint[piece] /= joint[piece].sum(1)[:, None]
        return joint

    def _joint(self, X, priors) -> np.ndarray:
        """Return log p(x, t = k | data), (n, K), less the largest of each row."""
        rows, posterior = self._read(X), self.posterior_
        if priors is not None:
            posterior = posterior.with_class_prior(self._known(priors))
        joint, effective = posterior.log_predictive_with_effective(rows)
        if effective is not None:
            warn_of_few_draws(joint, effective, posterior.model.conjugate)
        exponent = getattr(self, "exponent_", 1.0)
        if exponent != 1:
            joint = tempered(joint, posterior.log_class_prior, exponent)
        count = 0
        for piece in pieces(*joint.shape):  # that stay in the cache
            rows_joint = joint[piece]
            top = rows_joint.max(1)
            if not top.min() > -np.inf:
                lost = np.isneginf(top)
                count += int(lost.sum())
                rows_joint[lost] = posterior.log_class_prior
                top = rows_joint.max(1)
            rows_joint -= top[:, None]
        if count:
            warn_of_lost(count)
        return joint

    def predict(self, X) -> np.ndarray:
        """Return the most probable class of each row; ties go to the first."""
        best = _largest(self._joint(X, None))
        return self.classes_[best]

    def predict_joint_log_proba(self, X) -> np.ndarray:
        """Return log p(x, t = k | data) of each row and class, (n, K); its log sum over k is `score_samples`."""
        rows = self._read(X)
        return self.posterior_.log_predictive(rows)

    def _draw(self, count, rng):
        width, parts = sum(v.size for v in self.posterior_.draws(0, (1,)).values()), []
        for piece in pieces(count, width, _SAMPLED, count):
            params = self.posterior_.draws(rng, (piece.stop - piece.start,))
            parts.append(self.model_.sample_rows(params, int(rng.integers(2**31))))
        rows = {name: np.concatenate([x[name] for _, x in parts]) for name in parts[0][1]}
        return rows, np.concatenate([t for t, _ in parts])

    sample, score, score_samples = sample, score, score_samples

    def summary(self) -> Summary:
        """Return what was learned, by column and class, as a table for the screen, a frame or a paper.

        Examples
        --------
        >>> from bayesgen import NaiveBayesClassifier
        >>> X, y = [[1.0, 0.0], [1.4, 0.5], [3.1, 0.1], [2.9, 0.6]], ["a", "a", "b", "b"]
        >>> learned = NaiveBayesClassifier().fit(X, y).summary()
        >>> learned.to_frame().loc[("x0", "mean")].round(2).to_dict()
        {'a': 1.2, 'b': 3.0}
        """
        return Summary.of(self)

    def _repr_mimebundle_(self, **kwargs):
        """Return the notebook view: the settings, and once fitted the summary."""
        shown = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown and hasattr(self, "posterior_"):
            shown["text/html"] += self.summary()._repr_html_()
        return shown

    explain, leave_one_out, to_arviz = explain, leave_one_out, to_arviz  # documented in `bayesgen.inspection`

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
