"""The averaged classifier: probabilities from many conjugate models at once, chosen by exact leave-one-out."""

import warnings

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayesgen.averaging import draws, explanation
from bayesgen.averaging.learning import Rows, learn
from bayesgen.estimators.base import Estimator
from bayesgen.numerics.checks import check_count
from bayesgen.posterior import generator
from bayesgen.tables.labels import class_codes, class_labels, existing
from bayesgen.tables.table import Table

_METHODS = ("stacking", "loo", "evidence")
_WIDEST = 2000  # numeric columns
_LARGEST = 1e150  # squares beyond leave float64


class AveragedClassifier(ClassifierMixin, Estimator):
    """The average of conjugate generative classifiers, each tempered, weighted by stacking on exact leave-one-out.

    The members differ in what they take the classes to be: Gaussians with full, shared, diagonal or shared diagonal
    covariances under priors of several strengths; mixtures of 2 to 8 of these in each class; categories that are
    independent or depend on one another; products of both for mixed tables; and the class prior alone. Numeric columns
    are bent towards normality within the classes (Yeo-Johnson). Nothing is to be tuned.

    Parameters
    ----------
    weights : {"stacking", "loo", "evidence"}, default "stacking"
        Weights of the members: those that maximise the leave-one-out log score of the average; in proportion to the
        exponential of half of each one's own leave-one-out log score; or to its evidence, untempered (Bayesian model
        averaging, over the members that have an evidence: one component a class, independent categories).
    bend : bool, default True
        Whether numeric columns are bent; all are measured in their standard deviation otherwise.
    components : bool, default True
        Whether members with several components a class take part. They cost most of the time.
    discriminative : bool, default True
        Whether penalised softmax regressions take part, where no generative member fits. They have no density of a row.
    class_concentration : float or array, shape (K,), default 1.0
        Dirichlet concentration of the class probabilities.
    priors : array, shape (K,), optional
        Class probabilities of the population to decide for. They change no member, exponent or weight: the averaged
        probability is multiplied by their ratio to the learned ones.
    unseen : {"error", "missing"}, default "error"
        What a category is that was not there at fit.
    random_state : int, RandomState or None, default 0
        Source of randomness of folds, starts of components, samples and draws. The same rows, in whatever order, give
        the same fit under the same int.

    Attributes
    ----------
    classes_ : array, shape (K,)
        Class labels.
    average_ : Average
        The members with their statistics, exponents and weights.
    members_ : list of tuple
        Of each member its components a class and `GaussianMember`, or None where it takes no numeric column; and its
        structure and strength over the categorical columns, or None.
    exponents_, weights_ : array, shape (M,)
        Exponent and weight of each member.
    scores_ : dict
        Mean log scores of rows left out, weighted: "members" (M,), each tempered; "average", under the exponents and
        weights that were chosen by these scores; "nested", under those that other rows chose; "base_rate", of the class
        prior; and "rows", how many rows were left out.

    Notes
    -----
    A row left out leaves by one unit of its weight, so that a weight of 2 is two rows. Beyond 1,000 rows (fewer of many
    columns or classes) a stratified sample is left out of all; beyond 5,000, bends and components are learned from a
    stratified sample. Missing entries are integrated out at prediction; at fit a full covariance has no conjugate
    posterior given rows with gaps, and takes expected statistics (`bayesgen.averaging.gaps`). Beyond 100 numeric
    columns the generative members take them as independent given the class, in one component; more than 2,000 are
    refused.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = AveragedClassifier().fit(X[::3], y[::3])
    >>> round(classifier.score(X[1::3], y[1::3]), 2)
    0.92
    """

    def __init__(
        self,
        weights="stacking",
        bend=True,
        components=True,
        discriminative=True,
        class_concentration=1.0,
        priors=None,
        unseen="error",
        random_state=0,
    ):
        self.weights = weights
        self.bend = bend
        self.components = components
        self.discriminative = discriminative
        self.class_concentration = class_concentration
        self.priors = priors
        self.unseen = unseen
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Learn from rows and their classes.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Numbers, bools and categories; NaN, None or NA where missing.
        y : array, shape (n,)
            Class labels.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.

        Returns
        -------
        self
        """
        for name, options in (("weights", _METHODS), ("unseen", ("error", "missing"))):
            if getattr(self, name) not in options:
                raise ValueError(f"{name} must be one of {list(options)}, got {getattr(self, name)!r}")
        with self._whole():
            table, y, weight = existing(self._table(X, reset=True), class_labels(y), sample_weight)
            self.classes_, codes = class_codes(y)
            concentration = self._concentration()
            self._learn_columns(table)
            x, c = self._arrays(table)
            weight = np.ones(len(codes)) if weight is None else weight.astype(float)
            self.average_, self.scores_ = learn(
                Rows(x, c, codes, weight),
                [len(levels) for levels in self.categories_],
                len(self.classes_),
                method=self.weights,
                bend=self.bend,
                components=self.components,
                discriminative=self.discriminative,
                concentration=concentration,
                seed=int(generator(self.random_state).integers(1 << 31)),
            )
        if len(self.classes_) > 1 and self.scores_["nested"] <= self.scores_["base_rate"]:
            warnings.warn(
                "no member predicts rows left out better than the class prior alone: the columns may say nothing of "
                "the class, or there are too few rows to tell",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _concentration(self):
        value = np.asarray(self.class_concentration, float)
        if value.shape not in ((), self.classes_.shape) or not (value > 0).all():
            raise ValueError(
                f"class_concentration must be a number > 0, or one for each of the {len(self.classes_)} classes "
                f"{self.classes_.tolist()}; got {self.class_concentration!r}"
            )
        if self.priors is not None:
            self._known(self.priors)
        return np.broadcast_to(value, self.classes_.shape).copy()

    def _known(self, priors):
        value = np.asarray(priors, float)
        if value.shape != self.classes_.shape or not (value >= 0).all() or not np.isclose(value.sum(), 1, atol=1e-6):
            raise ValueError(
                f"priors must hold one probability for each of the {len(self.classes_)} classes "
                f"{self.classes_.tolist()}, and sum to 1; got {priors!r}"
            )
        return value

    def _learn_columns(self, table: Table):
        """Divide the columns into numbers and categories; numbers that do not vary say nothing and are left out."""
        numeric = tuple(name for name in table.columns if table.family(name) == "gaussian")
        self.columns_, self.numeric_ = table.columns, numeric
        self.categorical_ = tuple(name for name in table.columns if name not in numeric)
        self.categories_ = [table.categories(name) for name in self.categorical_]
        for name, levels in zip(self.categorical_, self.categories_, strict=True):
            if not levels:
                raise ValueError(f"column {name!r} has no observed value to learn its categories from; drop it")
        if numeric:
            x = self._numbers(table)
            varies = np.fmax.reduce(x, 0) > np.fmin.reduce(x, 0)  # no entry at all compares false too
            constant = [name for name, flag in zip(numeric, varies, strict=True) if not flag]
            if varies.sum() > _WIDEST:
                raise ValueError(
                    f"X has {varies.sum()} numeric columns, and at most {_WIDEST} are taken: choose some by "
                    "sklearn.feature_selection, or project them by PCA"
                )
            if constant:
                self.numeric_ = tuple(name for name in numeric if name not in constant)
                warnings.warn(
                    f"columns {constant} hold one value or none: they say nothing of the class and are left out",
                    UserWarning,
                    stacklevel=4,
                )

    def _numbers(self, table: Table):
        if not self.numeric_:
            return np.empty((len(table), 0))
        x = np.asarray(table.numbers(self.numeric_), float)
        if not (np.fmin.reduce(x, None) < -_LARGEST or np.fmax.reduce(x, None) > _LARGEST):
            return x
        row, place = np.argwhere(np.abs(x) > _LARGEST)[0]
        value = x[row, place]
        what = "infinite; give NaN where it is missing" if np.isinf(value) else "too large; take another unit"
        raise ValueError(f"column {self.numeric_[place]!r}: value {value:g} in row {row} is {what}")

    def _arrays(self, table: Table):
        """Numbers, NaN where missing, and codes of categories, -1 where missing."""
        table, new = table.renamed(self.columns_), {} if self.unseen == "missing" else None
        codes = np.empty((len(table), len(self.categorical_)), np.intp)
        for place, (name, levels) in enumerate(zip(self.categorical_, self.categories_, strict=True)):
            own = table.codes((name,), levels, new)[:, 0].astype(float)
            codes[:, place] = np.where(np.isnan(own), -1, own)
        return self._numbers(table), codes

    def _read(self, X):
        check_is_fitted(self)
        return self._arrays(self._table(X, reset=False))

    @property
    def members_(self):
        """What each member is made of."""
        return self._fitted.names

    @property
    def weights_(self):
        """Weight of each member."""
        return self._fitted.weights

    @property
    def exponents_(self):
        """Exponent of each member."""
        return self._fitted.exponents

    @property
    def _fitted(self):
        check_is_fitted(self)
        return self.average_

    def summary(self):
        """A table of what was averaged, the heaviest member first.

        Returns
        -------
        DataFrame
            Columns "kind", "components", "covariance", "rho", "kappa", "shrinkage" (of the numbers), "categories",
            "strength", "exponent", "weight" and "log score", the mean of rows left out.
        """
        import pandas as pd

        rows = []
        for a, b in self.members_:
            softmax = a == "softmax"
            count, member = (None, None) if softmax or a is None else a
            rows.append(
                {
                    "kind": "softmax" if softmax else "base rate" if a is None and b is None else "generative",
                    "components": count,
                    "covariance": member and member.structure,
                    "rho": member and member.rho,
                    "kappa": member and member.kappa,
                    "shrinkage": member and member.shrinkage,
                    "categories": None if softmax else b and b[0],
                    "strength": b if softmax else b and b[1],
                }
            )
        frame = pd.DataFrame(rows)
        frame["exponent"], frame["weight"] = self.exponents_, self.weights_
        frame["log score"] = self.scores_["members"]
        return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)

    def predict_proba(self, X, priors=None) -> np.ndarray:
        """Probability of each class, (n, K), columns in the order of ``classes_``.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows; a missing entry is integrated out.
        priors : array, shape (K,), optional
            Class probabilities of the population to decide for; the averaged probability is multiplied by their ratio
            to those of the fit.
        """
        rows = self._read(X)
        priors = self.priors if priors is None else priors
        return self.average_.probability(*rows, None if priors is None else self._known(priors))

    def predict_log_proba(self, X, priors=None) -> np.ndarray:
        """Log probability of each class, (n, K); see `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, priors))

    def predict(self, X) -> np.ndarray:
        """Most probable class of each row; ties go to the first."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def score_samples(self, X):
        """Log density log p(x) of each row, (n,), by untempered members, stacked on log p(x, t) of rows left out."""
        return logsumexp(self._fitted.log_joint(*self._read(X)), axis=1)

    def sample(self, n_samples: int = 1):
        """Draw rows with their classes from the untempered members, stacked on log p(x, t) of rows left out.

        Parameters
        ----------
        n_samples : int, default 1
            How many rows.

        Returns
        -------
        X : DataFrame or array, shape (n_samples, columns)
            A DataFrame where the fit had column names. Columns that were left out are missing.
        y : array, shape (n_samples,)
            Class labels.
        """
        average = self._fitted
        check_count("n_samples", n_samples)
        x, c, codes = draws.rows(average, n_samples, generator(self.random_state))
        columns = dict.fromkeys(self.columns_, np.full(n_samples, np.nan)) | dict(zip(self.numeric_, x.T, strict=True))
        for name, levels, own in zip(self.categorical_, self.categories_, c.T, strict=True):
            columns[name] = np.asarray(levels)[own]
        if not hasattr(self, "feature_names_in_"):
            return np.column_stack(list(columns.values())), self.classes_[codes]
        import pandas as pd

        return pd.DataFrame(columns), self.classes_[codes]

    def predict_proba_interval(self, X, level: float = 0.9, size: int = 400) -> np.ndarray:
        """Central interval of the probability of each class over members, by weight, and draws of their parameters.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows.
        level : float, default 0.9
            Probability of the interval.
        size : int, default 400
            Draws it is taken from.

        Returns
        -------
        array, shape (n, K, 2)
            Lower and upper end.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}")
        check_count("size", size)
        probability = draws.probabilities(self._fitted, *self._read(X), size, generator(self.random_state))
        if self.priors is not None:
            probability *= self._known(self.priors) / np.exp(self.average_.log_class_prior)
            probability /= probability.sum(2, keepdims=True)
        return np.moveaxis(np.quantile(probability, [0.5 - level / 2, 0.5 + level / 2], axis=0), 0, -1)

    def explain(self, X):
        """What each column of a row adds to the log probability of each class.

        The term of a column is the average over members, by weight, of its exponent times log p(x | k) with and without
        the column, which is integrated out. Columns that say the same share their say, and averaging is no sum of
        logarithms: "remainder" is what the terms leave. Terms are centred over the classes; the difference of two
        classes is a log odds, and the softmax over classes of the sum of all terms is `predict_proba`.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows.

        Returns
        -------
        xarray.DataArray, dims (row, class, term)
            Terms "prior", the columns, "remainder".
        """
        import xarray as xr

        rows = self._read(X)
        priors = None if self.priors is None else self._known(self.priors)
        terms = explanation.terms(self.average_, *rows, priors)
        names = ["prior", *self.numeric_, *self.categorical_, "remainder"]
        labels = {"class": self.classes_.tolist(), "term": names}
        return xr.DataArray(terms, dims=("row", "class", "term"), coords=labels)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
