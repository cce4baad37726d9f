"""The scikit-learn estimators: read the table, sum its statistics, run an inference, ask the posterior."""

import warnings
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from bayesgen.inference import named
from bayesgen.model import ExponentialFamily
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    GaussianDiscriminant,
    KnownCategorical,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    Separation,
)
from bayesgen.models.gaussian_discriminant import COVARIANCES
from bayesgen.schema import Block, Schema, Table


class _GenerativeClassifier(ClassifierMixin, BaseEstimator):
    """Shared by the estimators: a class prior, a schema, statistics free of any prior, and a posterior."""

    def fit(self, X, y, sample_weight=None):
        """Learn from rows and their classes.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing.
        y : array, shape (n,)
            Class labels.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.

        Returns
        -------
        self
        """
        inference = named(self.inference)
        validate_data(self, X, skip_check_array=True)
        table = Table(X)
        if not len(table):
            raise ValueError("X has 0 samples: there is nothing to learn from")
        y = column_or_1d(y, warn=True)
        if len(y) != len(table):
            raise ValueError(f"X has {len(table)} rows and y has {len(y)}; they must be of one length")
        if any(v is None or v != v for v in y.tolist()):
            raise ValueError("y contains missing labels; drop these rows (a class label is what is learned from)")
        check_classification_targets(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, y, ensure_non_negative=True)
        self.classes_, codes = np.unique(y, return_inverse=True)
        schema = self._learn_schema(table)
        rows = self._shape(schema.read(table))
        statistics = self._model(schema, None).statistics(rows, codes, sample_weight)
        model = self._model(schema, statistics)
        posterior = inference(model, statistics, seed=self.random_state)
        self.schema_, self.statistics_, self.model_, self.posterior_ = (schema, statistics, model, posterior)
        return self

    # What the two classifiers differ in: how columns form blocks, which model they make, which rows it takes.

    def _learn_schema(self, table) -> Schema:
        raise NotImplementedError

    def _model(self, schema, statistics):
        """Build the model; without ``statistics``, with any prior: one that only serves to sum them."""
        raise NotImplementedError

    def _shape(self, blocks):
        return blocks

    def _class_prior(self):
        labels = self.classes_.tolist()
        if self.priors is None:
            return DirichletCategorical(self.alpha, labels)
        if np.shape(self.priors) != (len(labels),):
            raise ValueError(f"priors must hold one probability for each of the {len(labels)} classes {labels}")
        return KnownCategorical(self.priors, labels)

    def _read(self, X):
        check_is_fitted(self)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._shape(self.schema_.read(Table(X), getattr(self, "unseen", "error")))

    def _log_joint(self, X) -> np.ndarray:
        return self.posterior_.log_predictive(self._read(X))

    def predict_log_proba(self, X) -> np.ndarray:
        """Log probability of each class, (n, K).

        The joint p(x, t = k | data) is averaged over the posterior first and normalised over k after. A row that every
        class gives probability 0 (a plug-in estimate can) gets the class prior, with a warning.
        """
        joint = self._log_joint(X)
        lost = np.isneginf(joint).all(1)
        if lost.any():
            warnings.warn(
                f"{lost.sum()} rows have probability 0 under every class; they get the class prior",
                UserWarning,
                stacklevel=2,
            )
            joint[lost] = self.posterior_.log_predictive(self._shape(self.schema_.nothing()))
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X) -> np.ndarray:
        """Probability of each class, (n, K), columns in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X) -> np.ndarray:
        """Most probable class of each row; ties go to the first."""
        return self.classes_[self.predict_proba(X).argmax(1)]

    def score_samples(self, X):
        """Log density log p(x) of each row, (n,): low where nothing like it was seen."""
        return logsumexp(self._log_joint(X), axis=1)

    @property
    def log_evidence_(self) -> float:
        """Log p(X, y) of the rows as a sequence under the prior, every constant kept.

        Under the "weak" priors, which follow the data, this is an empirical Bayes quantity.
        """
        check_is_fitted(self)
        if not self.model_.conjugate:
            raise AttributeError("log_evidence_ exists in closed form for conjugate priors only")
        return self.model_.log_evidence(self.statistics_)

    def to_arviz(self):
        """Draws of the posterior as an ArviZ `xarray.DataTree`; an exact posterior is drawn as chains."""
        check_is_fitted(self)
        return self.posterior_.to_arviz(self.random_state)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _warn_constant(statistics, columns):
    constant = [name for name, flag in zip(columns, statistics.pooled()[2], strict=True) if flag]
    if constant:
        warnings.warn(
            f"columns {constant} are constant: they say nothing of the class, and their weak prior takes the "
            "variance 1",
            UserWarning,
            stacklevel=4,
        )


class NaiveBayesClassifier(_GenerativeClassifier):
    """Bayesian naive Bayes over any mixture of features, with missing entries at fit and prediction.

    Parameters
    ----------
    features : str or mapping, default "auto"
        "auto" (by type: float and integer columns Gaussian, bool Bernoulli, category, object and string categorical),
        one of "gaussian", "bernoulli", "categorical", "poisson" (counts) for all, "multinomial" (all columns one bag of
        words), or a mapping from column (or tuple of columns) to a leaf such as ``BetaBernoulli(2, 2)`` or to one of
        these names; columns it leaves out are "auto". A bag of words, and heads with their tosses, are a tuple:
        ``{("cheap", "now"): "multinomial", ("heads", "tosses"): BetaBinomial(1, 1)}``. The priors are Dirichlet(1) and
        Beta(1, 1), whose predictive is Laplace smoothing, and the weak ones of `NormalInverseGamma` and `GammaPoisson`.
    alpha : float or array, shape (K,), default 1.0
        Dirichlet concentration of the class probabilities.
    priors : array, shape (K,), optional
        Known class probabilities, in place of learned ones.
    inference : {"ml", "map", "exact", "nuts"} or Inference, default "exact"
        How to learn.
    unseen : {"error", "missing"}, default "error"
        What a category is that was not there at fit.
    random_state : int, RandomState or None
        Source of randomness for NUTS and for draws.

    Attributes
    ----------
    classes_ : array
        Class labels.
    model_ : NaiveBayes
        The model with its prior.
    statistics_ : Grouped
        Sufficient statistics of the rows.
    posterior_ : Posterior
        What the inference returned.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.2], [1.2, np.nan], [3.1, 0.9], [2.9, 1.1]])
    >>> classifier = NaiveBayesClassifier().fit(X, ["a", "a", "b", "b"])
    >>> classifier.predict([[3.0, np.nan]])
    array(['b'], dtype='<U1')
    """

    def __init__(self, features="auto", alpha=1.0, priors=None, inference="exact", unseen="error", random_state=None):
        self.features = features
        self.alpha = alpha
        self.priors = priors
        self.inference = inference
        self.unseen = unseen
        self.random_state = random_state

    def _learn_schema(self, table):
        if self.unseen not in ("error", "missing"):
            raise ValueError(f"unseen must be 'error' or 'missing', got {self.unseen!r}")
        return Schema.learn(table, self.features)

    def _model(self, schema, statistics):
        leaves = {b.name: _leaf(b, statistics and statistics.leaves[b.name]) for b in schema.blocks}
        return NaiveBayes(self._class_prior(), leaves, columns={b.name: b.columns for b in schema.blocks})


def _leaf(block: Block, statistics):
    leaf, shape = block.leaf, () if block.single else (len(block.columns),)
    if isinstance(leaf, ExponentialFamily) and shape and not (leaf.event_dim or leaf.batch_shape):
        return leaf.for_classes(*shape)  # one feature's prior, repeated for each column
    if not isinstance(leaf, str):
        return leaf
    if block.leaf == "bernoulli":
        return BetaBernoulli(np.ones(shape), 1.0)
    if block.leaf == "categorical":
        return DirichletCategorical(np.ones((*shape, len(block.categories or ()))), block.categories)
    if block.leaf == "multinomial":
        return DirichletMultinomial(1.0, block.columns)
    if block.leaf == "poisson":
        ones = np.ones(shape)
        return GammaPoisson(ones, ones) if statistics is None else GammaPoisson.weak(statistics)
    if statistics is None:
        return _unit(shape)
    _warn_constant(statistics, block.columns)
    return NormalInverseGamma.weak(statistics)


class GaussianDiscriminantClassifier(_GenerativeClassifier):
    """Bayesian Gaussian discriminant analysis, with missing entries at prediction.

    Parameters
    ----------
    covariance : {"full", "diagonal", "isotropic"}, default "full"
        Structure of the covariance matrix: "full" is QDA, "diagonal" Gaussian naive Bayes.
    shared : bool, default False
        Whether the classes share it: with "full" LDA, with "isotropic" the nearest mean.
    prior : "weak" or model
        Prior on means and covariances: NormalInverseWishart (full), NormalInverseGamma (diagonal, isotropic) or
        Separation (full, diagonal; by NUTS and MAP); "weak" follows the data's own location and scale.
    alpha : float or array, shape (K,), default 1.0
        Dirichlet concentration of the class probabilities.
    priors : array, shape (K,), optional
        Known class probabilities, in place of learned ones.
    inference : {"ml", "map", "exact", "nuts"} or Inference, default "exact"
        How to learn.
    random_state : int, RandomState or None
        Source of randomness for NUTS and for draws.

    Attributes
    ----------
    classes_ : array
        Class labels.
    model_ : GaussianDiscriminant
        The model with its prior.
    statistics_ : Grouped
        Sufficient statistics of the rows.
    posterior_ : Posterior
        What the inference returned.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(GaussianDiscriminantClassifier().fit(X, y).score(X, y), 2)
    0.98
    """

    def __init__(
        self,
        covariance="full",
        shared=False,
        prior="weak",
        alpha=1.0,
        priors=None,
        inference="exact",
        random_state=None,
    ):
        self.covariance = covariance
        self.shared = shared
        self.prior = prior
        self.alpha = alpha
        self.priors = priors
        self.inference = inference
        self.random_state = random_state

    def _learn_schema(self, table):
        if self.covariance not in COVARIANCES:
            raise ValueError(f"covariance must be one of {list(COVARIANCES)}, got {self.covariance!r}")
        if isinstance(self.prior, str) and self.prior != "weak":
            raise ValueError(f"prior must be 'weak' or a model such as NormalInverseWishart(...), got {self.prior!r}")
        return Schema(table.columns, (Block("gaussian", table.columns, False, "gaussian"),))

    def _shape(self, blocks):
        return blocks["gaussian"]

    def _model(self, schema, statistics):
        columns, prior = schema.columns, self.prior
        dim, full = len(columns), self.covariance == "full"
        if isinstance(prior, Separation):
            prior = replace(prior, mean=np.broadcast_to(prior.mean, dim))
        elif not isinstance(prior, str):
            pass
        elif statistics is None:
            prior = NormalInverseWishart(np.zeros(dim), 1.0, dim, np.eye(dim)) if full else _unit(dim)
        else:
            own = statistics.leaves["gaussian"]
            _warn_constant(own, columns)
            prior = NormalInverseWishart.weak(own) if full else NormalInverseGamma.weak(own)
            if self.covariance == "isotropic":
                prior = replace(prior, beta=prior.beta.mean())
        return GaussianDiscriminant(
            self._class_prior(), prior, self.covariance, self.shared, columns={"gaussian": columns}
        )


def _unit(shape):
    return NormalInverseGamma(np.zeros(shape), 1.0, 1.0, 1.0)
