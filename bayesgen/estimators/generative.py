"""The generative classifiers: read the table, sum its statistics, run an inference, ask the posterior."""

import warnings
from collections.abc import Collection
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import listed
from bayesgen.estimators import consistency
from bayesgen.estimators.base import Evidence, ProbabilityDraws
from bayesgen.estimators.incremental import Incremental, chosen_by_loo
from bayesgen.inference import MAP, ML, Inference, Laplace, resolve
from bayesgen.inspection.arviz import to_arviz
from bayesgen.inspection.explain import explain
from bayesgen.inspection.labelling import warn_of_harm
from bayesgen.inspection.leave_one_out import LeaveOneOut, leave_one_out, tempered
from bayesgen.inspection.probabilities import warn_of_few_draws, warn_of_lost
from bayesgen.inspection.summary import Summary
from bayesgen.models import ClassConditional, DirichletCategorical, KnownCategorical, LabelNoise
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.sums import Grouping
from bayesgen.posterior.posterior import Posterior, generator
from bayesgen.tables.labels import class_codes, existing, some_labels
from bayesgen.tables.rows import fingerprint
from bayesgen.tables.schema import GAUSSIAN

_SAMPLED = 1 << 21  # parameters that `sample` draws at a time: 16 MB
_SMALLEST = 1e-150  # what is smaller has squares that lose digits, or all of them


def _of(weight, rows):
    """Weights of some rows, where there are weights."""
    return None if weight is None else weight[rows]


def _largest(values):
    """Column of the largest entry of each row, of equal ones the first; of many rows 15 times as fast as argmax."""
    if len(values) < 256 * values.shape[1]:
        return values.argmax(1)
    kind = np.min_scalar_type(values.shape[1])
    best, top = np.zeros(len(values), kind), values[:, 0]
    for k, own in enumerate(values.T[1:], 1):
        np.maximum(best, (own > top) * kind.type(k), out=best)
        top = np.maximum(own, top)
    return best


class GenerativeClassifier(ClassifierMixin, Evidence, ProbabilityDraws, Incremental):
    """Shared by the estimators: a class prior, a schema, statistics free of any prior, and a posterior."""

    class_concentration: ArrayLike
    priors: ArrayLike | None
    inference: str | Inference
    random_state: Any
    model_: ClassConditional
    posterior_: Posterior
    _fitted_names = ("n_features_in_", "model_", "statistics_", "posterior_", "classes_", "schema_")
    _models: ClassVar[tuple[type, ...]]  # that it may have

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
            partly = not known.all()
            self.classes_, codes = class_codes(own if place is None else labels[own[known]])
            labelled, weights = (table.rows(known), _of(weight, known)) if partly else (table, weight)
            template, statistics = self._summarise(schema, labelled, codes, weights)
            template = self._strengthened(template, statistics, labelled, codes, weights)
            if self.label_noise is not None:
                template = replace(template, confusion=self._confusion())
                told = np.full(len(known), -1)
                told[known] = codes
                rows = self._shape(schema.read(table))
                statistics = PartlyLabelled.of(template, statistics, rows, weight, told)
            elif partly:
                rows = self._shape(schema.read(table.rows(~known)))
                statistics = PartlyLabelled.of(template, statistics, rows, _of(weight, ~known))
            self._learn(schema, template, statistics)
            self._temper(X, labels, sample_weight)
        unasked = partly and sample_weight is None and self.label_noise is None and self.model_.conjugate
        if unasked and isinstance(resolve(self.inference), ML | MAP):
            warn_of_harm(self, X, y)
        return self

    def _summarise(self, schema, table, codes, weight):
        """The model without its weak priors, and statistics of some rows."""
        template = self._template(schema)
        rows = Grouping(codes, len(self.classes_), weight, (len(self.classes_),))
        statistics = template.sum_rows(template.blocks(self._shape(schema.read(table))), rows)
        return template, statistics.under(fingerprint(schema, self.classes_))

    def _learn(self, schema, template, statistics):
        inference = resolve(self.inference)
        model = template.settled(statistics)
        self._warn_constant(schema, statistics)
        posterior = inference(model, statistics, seed=self.random_state)
        self.schema_, self.statistics_, self.model_, self.posterior_ = (schema, statistics, model, posterior)

    # What the two classifiers differ in, beside schema and model: which rows the model takes, and whether the strength
    # of priors, or an exponent of the features, is learned from rows.

    exponent_ = 1.0

    def _strengthened(self, template, statistics, table, codes, weight):
        """The model with priors whose strength the rows of fit choose, where one is asked for."""
        return template

    def _temper(self, *rows) -> None:
        """Learn the exponent of the features from the rows of fit, where there are any."""

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
        for name in chosen_by_loo(self):
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

    def _check_parts(self):
        consistency.check_generative(self, self._models)

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
            if not top.min() > -np.inf:
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
        best = _largest(self._joint(X, None))
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
            A DataFrame where the fit had column names; dates are of the type datetime64, in UTC.
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
        """What a notebook shows: the settings, and once fitted what was learned."""
        shown = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown and hasattr(self, "posterior_"):
            shown["text/html"] += self.summary()._repr_html_()
        return shown

    def explain(self, X, row: int | None = None, label=None) -> Any:
        """Divide the log probabilities of rows, or the log odds of one row, into terms of the columns.

        For all rows and classes: in naive Bayes the term of a column is log p(x_j | t = k, data), averaged over the
        posterior; a block that is one observation (a bag of words, heads with tosses) has one term, under its name. In
        a Gaussian discriminant with a shared covariance the term is w_kj (x_j - m_j) under the posterior mean of the
        weights, m the mean of the rows of fit, and the first term holds the score at m. Terms are centred over the
        classes: 0 says nothing, and a missing column says 0. The difference of two classes is a log odds.

        For one row and class: the term of a column is the log odds with its value, less the log odds without it. In
        naive Bayes with two classes that is the log Bayes factor. Elsewhere columns may hold the same information, so
        the order in which they become known matters: each term is the mean over two orders, from the first column of
        the fit to the last and back, with a column missing until it is known. The terms sum to the log odds exactly,
        also under a full covariance. A word of a bag counts 0 until it is known; tosses are known from the beginning,
        and add 0.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows. Without ``row``, a Gaussian discriminant needs them complete.
        row : int, optional
            Place of the row to explain, 0 for the first; default: all rows, for all classes.
        label : object, optional
            Class whose odds the row explains; default: its most probable class.

        Returns
        -------
        xarray.DataArray, dims (row, class, term), or RowEvidence
            Terms "prior", then the columns. In naive Bayes the softmax over classes of their sum is `predict_proba`
            (by draws, up to their noise). With ``row`` its class, probability and interval, prior log odds, terms and
            values, which `bayesgen.plot.evidence` draws.

        Examples
        --------
        >>> from bayesgen import NaiveBayesClassifier
        >>> X, y = [[0.0, 1.0], [0.2, 0.0], [1.0, 1.1], [1.2, 0.1]], ["a", "a", "b", "b"]
        >>> classifier = NaiveBayesClassifier().fit(X, y)
        >>> terms = classifier.explain([[1.3, 0.5]])
        >>> (terms.sel({"class": "b"}) - terms.sel({"class": "a"}))[0].round(2).to_series().to_dict()
        {'prior': 0.0, 'x0': 6.07, 'x1': -0.01}
        >>> evidence = classifier.explain([[1.3, 0.5]], row=0)
        >>> evidence.label, {column: round(term, 2) for column, term in evidence.terms.items()}
        ('b', {'x0': 6.07, 'x1': -0.01})
        """
        return explain(self, X, row, label)

    def leave_one_out(self, X, y, sample_weight=None) -> LeaveOneOut:
        """Predict each row of the fit from all other rows, exactly; needs ``inference="exact"``.

        The statistics of all other rows are added, by halves of halves, and nothing is subtracted: an outlying row
        loses no digits. The hyperparameters stay those of the full fit ("weak" ones follow the data), and nothing is
        sampled. A row of weight w is taken out whole.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit.

        Returns
        -------
        LeaveOneOut
            Log densities, probabilities and expected log predictive densities of the rows left out.

        Raises
        ------
        ValueError
            If the rows are not those of the fit, as counts, means and sums of squares by class and column show.

        Examples
        --------
        >>> from bayesgen import NaiveBayesClassifier
        >>> X, y = [[1.0], [1.4], [3.1], [2.9]], ["a", "a", "b", "b"]
        >>> NaiveBayesClassifier().fit(X, y).leave_one_out(X, y).probability[:, 0].round(2)
        array([1.  , 0.99, 0.  , 0.01])
        """
        return leave_one_out(self, X, y, sample_weight)

    def to_arviz(
        self, X=None, y=None, columns: bool = False, draws: int | None = None, groups: Collection[str] | None = None
    ):
        """Return the posterior as an ArviZ `xarray.DataTree`; an exact one is drawn, as chains.

        Parameters
        ----------
        X, y : optional
            Rows and their classes. They add the groups "log_likelihood" ("joint": log p(x_i, t_i | θ), from which
            ``loo``, ``compare`` and ``psense`` take their weights), "conditional_log_likelihood" ("t": log p(t_i | x_i,
            θ), which `bayesgen.inspection.loo_given_x` takes beside it), "observed_data" and "posterior_predictive"
            ("t": codes drawn given x_i, their labels in its attribute "classes"), "log_prior" (of every site), "prior"
            and "prior_predictive" (a row of each draw; none of these three if the prior is improper). Rows have the
            labels of a frame's index. If labels may be wrong (``label_noise``), "t" is the given label; in
            "prior_predictive" it is the class.
        columns : bool, default False
            True to add the columns to "observed_data" and "posterior_predictive", for predictive checks: drawn anew
            given t_i, as large as "log_likelihood" for every column; and a whole table for each draw to
            "prior_predictive". Categories are codes, labelled by the attribute "categories".
        draws : int, optional
            Number of draws of the posterior, evenly apart in each chain; default: all. Each draw and row take 18 bytes:
            4000 draws and 10,000 rows 0.7 GB.
        groups : collection of str, optional
            The groups to make among those that may be large: "log_likelihood", "conditional_log_likelihood",
            "posterior_predictive" and "prior_predictive"; default: all. The others are always there.
        """
        return to_arviz(self, X, y, columns, draws, groups)

    def _warn_constant(self, schema, statistics):
        for block in schema.blocks:
            if block.leaf not in GAUSSIAN or not self._weak:
                continue
            pooled = statistics.leaves[block.name].pooled
            if not (pooled.constant.any() or (pooled.variance < _SMALLEST**2).any()):
                continue
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
