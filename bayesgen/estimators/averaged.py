"""The averaged classifier: probabilities from many conjugate models at once, chosen by exact leave-one-out."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayesgen.averaging import columns, draws
from bayesgen.averaging.average import Average
from bayesgen.averaging.learning import fit_average
from bayesgen.averaging.leaves import Leaves
from bayesgen.averaging.rows import Rows
from bayesgen.core import registry
from bayesgen.core.errors import DataError, listed
from bayesgen.estimators import consistency
from bayesgen.estimators.base import Estimator
from bayesgen.estimators.generative_settings import warn_of_constant_columns
from bayesgen.estimators.naive_bayes import leaf_of
from bayesgen.inspection.averaged import AveragedJoint, averaged_terms, member_posteriors, members, refuse_far
from bayesgen.inspection.explain import explain
from bayesgen.models import DirichletCategorical, NaiveBayes
from bayesgen.numerics.checks import check_count, check_flag
from bayesgen.posterior.posterior import generator
from bayesgen.tables.description import SPARSE_FAMILIES
from bayesgen.tables.labels import class_codes, class_labels, existing
from bayesgen.tables.schema import Schema

_METHODS = ("stacking", "loo", "evidence")
_FROM_ROWS = (
    "bends, components, exponents and weights are learned from rows, not from sums. Of rows that no memory holds give "
    "fit a sample of thousands, stratified by class, and priors=, the frequencies of the classes"
)
_ABSENT = {  # attributes of other classifiers, and why this one lacks them
    **dict.fromkeys(("partial_fit", "fit_batches", "fit_statistics", "row_schema"), _FROM_ROWS),
    "unlabelled": "every row has a label",
    "log_evidence_": "tempered members have no joint density, and priors and bends follow the data",
}


@registry.earlier("AveragedClassifier")
def _of_earlier(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of an `AveragedClassifier` from those in a file of version 0.2.0."""
    return {"features": "auto"} | dict(parameters)


@registry.estimator
class AveragedClassifier(ClassifierMixin, Estimator):
    """The average of conjugate generative classifiers, each tempered, weighted by stacking on exact leave-one-out.

    The members model the classes differently: as Gaussians with full, shared, diagonal or shared diagonal covariances
    under priors of several strengths; as mixtures of 2 to 8 of these; as categories that are independent or depend on
    one another; as products of both for mixed tables; and by the class prior alone. Numeric columns are bent towards
    normality within the classes (Yeo-Johnson). Nothing needs tuning.

    A column, or a block of columns, may have a leaf of its own, which is then a factor of every generative member.

    Parameters
    ----------
    weights : {"stacking", "loo", "evidence"}, default "stacking"
        Weights of the members. "stacking" maximises the leave-one-out log score of the average; "loo" weighs each
        member by the exponential of half its own leave-one-out log score; "evidence" by its evidence, untempered
        (Bayesian model averaging, over the members that have an evidence: one component per class, independent
        categories).
    bend : bool, default True
        Whether numeric columns are bent; otherwise they are only standardised.
    components : bool, default True
        Whether members with several components per class take part. They take most of the time.
    discriminative : bool, default True
        Whether penalised softmax regressions take part, for data that no generative member fits. They have no density
        of a row.
    class_concentration : float or array, shape (K,), default 1.0
        Dirichlet concentration of the class probabilities.
    priors : array, shape (K,), optional
        Class probabilities of the population to decide for. They change no member, exponent or weight: the averaged
        probability is multiplied by their ratio to the learned ones.
    unseen : {"missing", "error"}, default "missing"
        Treatment of a category at prediction that was not there at fit: integrated out, with one warning that counts
        and names such values, or refused.
    features : str or mapping, default "auto"
        As in `NaiveBayesClassifier`: "auto", one name for all columns, or a mapping from column (or tuple of columns)
        to a name, a leaf or "drop". "gaussian" and "date" columns are numbers, and "categorical" and "bernoulli"
        columns categories, which all members take as by "auto". A column of "poisson" (counts), "log", "log1p", of
        a bag of words ("multinomial"), or with a leaf such as ``GammaPoisson(2, 1)``, conjugate and perhaps your own,
        has that leaf in every generative member: independent of other columns given the class, not bent, and tempered
        with the member. The members without a density, such as the softmax regressions, leave such columns out.
    random_state : int, RandomState or None, default 0
        Source of randomness of folds, starts of components, samples and draws. The same rows in any order give the same
        fit under the same int; another order of the columns or other names of the classes draw anew, as another int
        does.

    Attributes
    ----------
    classes_ : array, shape (K,)
        Class labels.
    schema_ : Schema
        Types and categories of the columns.
    constant_ : tuple of str
        Numeric columns that hold one value or none, and are left out; not those with a leaf of their own.
    average_ : Average
        The members with their statistics, exponents and weights.
    members_ : list of Product or Member
        A product is a tuple of a member of the numeric columns, a member of the categorical columns, each None where it
        takes no such column, and the names of the columns with leaves of their own, () where it takes none.
    exponents_, weights_ : array, shape (M,)
        Exponent and weight of each member.
    scores_ : dict
        Weighted mean log scores of rows left out: "members" (M,), each tempered; "average", under the exponents and
        weights chosen by these scores; "nested", under exponents and weights chosen by other rows; "base_rate", of the
        class prior. "rows" is the number of rows left out.

    Notes
    -----
    A row is left out by one unit of its weight, so a weight of 2 is two rows. It stays in a group of more than 1,000
    rows per column, where it would hardly be missed. Beyond 1,000 rows (fewer with many columns or classes) only a
    stratified sample is left out; beyond 5,000, bends and components are learned from a stratified sample. Missing
    entries are integrated out at prediction; at fit a full covariance has no conjugate posterior given rows with gaps,
    and takes expected statistics (`bayesgen.averaging.gaps`). Beyond 100 numeric columns the generative members take
    them as independent given the class, in one component; more than 2,000 are refused.

    There is no ``partial_fit``: bends, components, exponents and weights are learned from rows, and cannot be derived
    from sums of earlier rows. There is no ``n_jobs``: a fit takes about a second, much of it in small array operations
    that hold Python's lock; `joblib` or scikit-learn can run several fits side by side.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = AveragedClassifier().fit(X[::3], y[::3])
    >>> round(classifier.score(X[1::3], y[1::3]), 2)
    0.92

    Visits are counts, and the bill is skewed:

    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = pd.DataFrame({"age": rng.normal(50 + 5 * y, 9), "visits": rng.poisson(1 + 3 * y), "bill": rng.lognormal(y)})
    >>> classifier = AveragedClassifier(features={"visits": "poisson", "bill": "log"}).fit(X, y)
    >>> round(classifier.score(X, y), 2)
    0.92
    """

    _fitted_names = ("n_features_in_", "classes_", "schema_", "constant_", "average_", "scores_")

    def __init__(
        self,
        weights="stacking",
        bend=True,
        components=True,
        discriminative=True,
        class_concentration=1.0,
        priors=None,
        unseen="missing",
        features="auto",
        random_state=0,
    ):
        self.weights = weights
        self.bend = bend
        self.components = components
        self.discriminative = discriminative
        self.class_concentration = class_concentration
        self.priors = priors
        self.unseen = unseen
        self.features = features
        self.random_state = random_state

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name):
            if name in _ABSENT:
                raise AttributeError(f"{type(self).__name__} has no {name}: {_ABSENT[name]}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
        for name in ("bend", "components", "discriminative"):
            check_flag(name, getattr(self, name))
        with self._whole():
            table, y, weight = existing(self._table(X, reset=True), class_labels(y), sample_weight)
            self.classes_, codes = class_codes(y)
            concentration = self._concentration()
            self.schema_ = Schema.learn(table, self.features)
            blocks = self.schema_.read(table)
            self.constant_ = columns.constant(self.schema_, blocks)
            rows = Rows(
                *columns.arrays(self.schema_, blocks, self.constant_, columns.LARGEST),
                codes,
                np.ones(len(codes)) if weight is None else weight,
                tuple(columns.levels(self.schema_)),
                len(self.classes_),
                columns.entries(self.schema_, blocks),
            )
            leaves = self._learn_leaves(rows)
            try:
                with np.errstate(over="ignore", invalid="ignore"):  # values too far out, which `fit_average` refuses
                    self.average_, self.scores_ = fit_average(
                        rows,
                        method=self.weights,
                        bend=self.bend,
                        components=self.components,
                        discriminative=self.discriminative,
                        concentration=concentration,
                        seed=int(generator(self.random_state).integers(1 << 31)),
                        leaves=leaves,
                    )
            except (np.linalg.LinAlgError, DataError):
                columns.refuse_far(self.schema_, blocks)
                raise
        self._warn()
        return self

    def _learn_leaves(self, rows: Rows) -> Leaves | None:
        """Return the leaves of the columns that have their own, with their statistics; None where there are none."""
        own = columns.leaves(self.schema_)
        if rows.e is None:
            return None
        model = NaiveBayes(
            DirichletCategorical(1.0, self.classes_.tolist()),
            {block.name: leaf_of(block) for block in own},
            columns={block.name: block.columns for block in own},
        )
        single = [block.name for block in own if block.single]
        leaves = Leaves.of(model, single, rows.e, rows.codes, rows.weight)
        leaves.settled()  # or raise, before anything is learned
        warn_of_constant_columns(replace(self.schema_, blocks=own), leaves.statistics)
        return leaves

    @property
    def _leaves(self):
        leaves = self._fitted.leaves
        return {} if leaves is None else leaves.model.leaves

    def _warn(self):
        if self.constant_:
            warnings.warn(
                f"columns {listed(self.constant_)} hold one value or none: they say nothing of the class and are left "
                "out",
                UserWarning,
                stacklevel=3,
            )
        if len(self.classes_) > 1 and self.scores_["nested"] <= self.scores_["base_rate"]:
            warnings.warn(
                "no member predicts rows left out better than the class prior alone: the columns may say nothing of "
                "the class, or there are too few rows to tell",
                UserWarning,
                stacklevel=3,
            )

    def _concentration(self):
        value = np.asarray(self.class_concentration, float)
        if value.shape not in ((), self.classes_.shape) or not (value > 0).all():
            raise ValueError(
                f"class_concentration must be a number > 0, or one for each of the {len(self.classes_)} classes "
                f"{listed(self.classes_)}; got {self.class_concentration!r}"
            )
        if self.priors is not None:
            self._known(self.priors)
        return np.broadcast_to(value, self.classes_.shape).copy()

    def _known(self, priors):
        value = np.asarray(priors, float)
        if value.shape != self.classes_.shape or not (value >= 0).all() or not np.isclose(value.sum(), 1, atol=1e-6):
            raise ValueError(
                f"priors must hold one probability for each of the {len(self.classes_)} classes "
                f"{listed(self.classes_)}, and sum to 1; got {priors!r}"
            )
        return value

    def _check_parts(self):
        consistency.check_average(self)

    def _read(self, X):
        check_is_fitted(self)
        blocks = self.schema_.read(self._table(X, reset=False), self.unseen)
        x, c = columns.arrays(self.schema_, blocks, self.constant_)
        rows, e = {"numbers": x, "categories": c}, columns.entries(self.schema_, blocks)
        if self.average_.leaves is None or e is None:
            return rows
        self.average_.leaves.check(e)
        return rows | {"leaves": e}

    @property
    def members_(self):
        """The members: products of numbers and categories, and members of the whole table."""
        return self._fitted.members

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

    @property
    def posterior_(self) -> Average:
        """The average under ``priors``, or under the learned class probabilities."""
        check_is_fitted(self)
        return self._under(self.priors)

    def _under(self, priors) -> Average:
        return self.average_ if priors is None else replace(self.average_, given=self._known(priors))

    def summary(self):
        """Return a table of the members, the heaviest first.

        Returns
        -------
        DataFrame
            A row for each member, with the columns "kind" (generative, softmax, base rate), "components", "covariance",
            "rho", "kappa", "shrinkage" (of the numbers), "categories", "strength", "exponent", "weight" and "log
            score", the mean over rows left out; and "leaves", where columns have leaves of their own: their names.
        """
        check_is_fitted(self)
        return members(self)

    def _read_for_draws(self, X):
        rows = self._read(X)
        refuse_far(self, rows["numbers"], "draws of class probabilities")
        return rows

    def _density(self):
        return AveragedJoint(self)

    def _terms(self, X):
        return averaged_terms(self, X)

    def predict_proba(self, X, priors=None) -> np.ndarray:
        """Return the probability of each class, (n, K), columns in the order of ``classes_``.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows; missing entries are integrated out.
        priors : array, shape (K,), optional
            Class probabilities of the population to decide for; the averaged probability is multiplied by their ratio
            to the learned ones.
        """
        rows = self._read(X)
        return self._under(self.priors if priors is None else priors).probability(*rows.values())

    def predict_log_proba(self, X, priors=None) -> np.ndarray:
        """Return the log probability of each class, (n, K); see `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, priors))

    def predict(self, X) -> np.ndarray:
        """Return the most probable class of each row; ties go to the first."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def predict_joint_log_proba(self, X) -> np.ndarray:
        """Return log p(x, t = k), (n, K), under the untempered members, weighted by stacking on rows left out."""
        return self._fitted.log_joint(*self._read(X).values())

    @np.errstate(under="ignore")
    def score_samples(self, X):
        """Return the log density log p(x) of each row, (n,), summed over classes; see `predict_joint_log_proba`."""
        return logsumexp(self.predict_joint_log_proba(X), axis=1)

    def sample(self, n_samples: int = 1):
        """Draw rows with their classes from the untempered members, stacked on log p(x, t) of rows left out.

        Parameters
        ----------
        n_samples : int, default 1
            Number of rows.

        Returns
        -------
        X : DataFrame or array, shape (n_samples, columns)
            A DataFrame where the fit had column names. Columns that were left out of the fit are missing.
        y : array, shape (n_samples,)
            Class labels.
        """
        average = self._fitted
        check_count("n_samples", n_samples)
        rng, classes = generator(self.random_state), np.exp(average.log_class_prior)
        codes = rng.choice(len(classes), n_samples, p=classes / classes.sum())
        blocks = columns.blocks(self.schema_, *draws.rows(average, codes, rng), self.constant_)
        return self._like_fit(self.schema_.write(blocks)), self.classes_[codes]

    def explain(self, X, row: int | None = None, label=None):
        """Divide the log probabilities of rows, or the log odds of one row, into terms of the columns.

        The term of a column is the weighted average over members of exponent times the difference of log p(x | k) with
        and without the column. Redundant columns share their contribution. An average is no sum of logarithms, so the
        last term, "remainder", completes the log probability. `NaiveBayesClassifier.explain` has the arguments, and the
        explanation of one row.
        """
        return explain(self, X, row, label)

    def to_arviz(self):
        """Return draws of the parameters of each generative member of some weight, as an `xarray.DataTree`.

        A weighted average of tempered members has no single posterior, so each member has its own: the group "member 0"
        is the heaviest, and so on down to weight 0.01. Each group has the attributes "weight" and "exponent", and an
        untempered "posterior" of the means and covariances (or variances) of the classes, in the units of the bent
        columns, of the probabilities of levels and classes, and of the sites of leaves, such as "visits.rate". Softmax
        members are points and have no posterior.
        """
        check_is_fitted(self)
        return member_posteriors(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = not isinstance(self.features, str) or self.features in SPARSE_FAMILIES
        return tags
