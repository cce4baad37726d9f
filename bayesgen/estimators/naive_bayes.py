"""The estimator of naive Bayes: one leaf for each column, or for each block of columns of one family."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.core import registry
from bayesgen.estimators.generative import GenerativeClassifier
from bayesgen.estimators.generative_settings import class_prior
from bayesgen.inference import Inference
from bayesgen.inspection.leave_one_out import best_exponent
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    LabelNoise,
    LogNormal,
    NaiveBayes,
    NormalInverseGamma,
    ReferenceGaussian,
    ReferencePoisson,
)
from bayesgen.models.leaf import ExponentialFamily
from bayesgen.models.structures import WeakGaussian, WeakLogGaussian, WeakPoisson
from bayesgen.numerics.checks import check_positive
from bayesgen.tables.description import SPARSE_FAMILIES
from bayesgen.tables.schema import Block, Schema


@registry.estimator
class NaiveBayesClassifier(GenerativeClassifier):
    """Bayesian naive Bayes over any mixture of features, with missing entries at fit and prediction.

    Parameters
    ----------
    features : str or mapping, default "auto"
        "auto" (by type: float and integer columns Gaussian, bool Bernoulli, category, object and string categorical);
        or one name for all columns: "gaussian", "bernoulli", "categorical", "poisson" (counts), "log" (positive and
        skewed: the logarithm is Gaussian), "log1p" (the same of 1 + x, where zeros occur), "date" (as days; rows that
        are drawn or filled have dates again), "multinomial" (all columns one bag of words); or a mapping from column
        (or tuple of columns) to a leaf such as ``BetaBernoulli(2, 2)``, to one of these names, or to "drop", which
        leaves the column out. Columns that the mapping does not name are "auto". A bag of words, and heads with their
        tosses, are a tuple:
        ``{("cheap", "now"): "multinomial", ("heads", "tosses"): BetaBinomial(1, 1)}``. The priors are Dirichlet(1) and
        Beta(1, 1), whose predictive is Laplace smoothing, and the weak ones of `NormalInverseGamma`, `LogNormal` and
        `GammaPoisson`.
    prior : {"weak", "reference"}, default "weak"
        Priors of the columns whose leaf is not given. "reference" takes the improper limits of
        `bayesgen.models.reference` for Gaussian columns and counts, which need two distinct values (one count) in each
        class, and Jeffreys' Beta(1/2, 1/2) and Dirichlet(1/2) for the others. There is then no evidence and no NUTS.
    class_concentration : float or array, shape (K,), default 1.0
        Dirichlet concentration of the class probabilities.
    priors : array, shape (K,), optional
        Known class probabilities, in place of learned ones; a classifier of this kind has no ``class_weight``.
    inference : {"ml", "map", "exact", "nuts", "laplace"} or Inference, default "exact"
        Method of inference.
    unseen : {"missing", "error"}, default "missing"
        Treatment of a category at prediction that was not there at fit: integrated out, with one warning that counts
        and names such values, or refused. In ``partial_fit`` it is refused.
    exponent : float or "loo", default 1.0
        The class probabilities are in proportion to p(t = k) p(x | t = k)^exponent. Values below 1 correct naive Bayes
        for counting redundant columns more than once; "loo" chooses the exponent, under a prior, by the log score of
        exact leave-one-out, which needs all rows in one ``fit`` and ``inference="exact"``. It tempers
        ``predict_proba``, and intervals and ``explain``, which follow from it: such probabilities belong to no
        posterior and no density of x. The posterior, ``score_samples``, ``sample``, ``log_evidence_``,
        ``leave_one_out`` and ``to_arviz`` are untempered.
    unlabelled : {"error", "missing"} or label, default "error"
        Mark of rows without a label. By default they are an error; "missing" (NaN, None or NA) or a value such as -1
        marks rows to learn from by ``inference="map"``, "ml" or "nuts", with the label summed out. ``sample_weight``
        sets how much they count; without it, a fit by ML or MAP in closed form holds labelled rows out, and warns if
        unlabelled rows do harm, which takes about as long as five more fits.
    label_noise : LabelNoise, optional
        Model of wrong labels: the prior of a confusion matrix, which is learned as ``classes.confusion`` by
        ``inference="map"``, "ml" or "nuts", the true class summed out. Probabilities are of the true class. Among modes
        with classes exchanged, MAP finds the one near the labels, where chains of NUTS begin.
    random_state : int, RandomState or None
        Source of randomness for NUTS and for draws.

    Attributes
    ----------
    classes_ : array
        Class labels.
    model_ : NaiveBayes
        The model with its prior.
    statistics_ : ClassStatistics
        Sufficient statistics of the rows.
    posterior_ : Posterior
        The posterior of the parameters.
    exponent_ : float
        The exponent of the features, given or chosen.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.2], [1.2, np.nan], [3.1, 0.9], [2.9, 1.1]])
    >>> classifier = NaiveBayesClassifier().fit(X, ["a", "a", "b", "b"])
    >>> classifier.predict([[3.0, np.nan]])
    array(['b'], dtype='<U1')
    """

    _fitted_names = (*GenerativeClassifier._fitted_names, "exponent_")
    _models = (NaiveBayes,)

    def __init__(
        self,
        features: str | Mapping[Any, Any] = "auto",
        prior: str = "weak",
        class_concentration: ArrayLike = 1.0,
        priors: ArrayLike | None = None,
        inference: str | Inference = "exact",
        unseen: str = "missing",
        exponent: float | str = 1.0,
        unlabelled: Any = "error",
        label_noise: LabelNoise | None = None,
        random_state: Any = None,
    ):
        self.features = features
        self.prior = prior
        self.class_concentration = class_concentration
        self.priors = priors
        self.inference = inference
        self.unseen = unseen
        self.exponent = exponent
        self.unlabelled = unlabelled
        self.label_noise = label_noise
        self.random_state = random_state

    def _learn_schema(self, table):
        if self.unseen not in ("error", "missing"):
            raise ValueError(f"unseen must be 'error' or 'missing', got {self.unseen!r}")
        if not isinstance(self.prior, str) or self.prior not in _LEAVES:
            raise ValueError(
                f"prior must be 'weak' or 'reference' (a prior of a column is given by features=), got {self.prior!r}"
            )
        return Schema.learn(table, self.features)

    @property
    def _weak(self):
        return self.prior == "weak"

    def _template(self, schema):
        leaves = {block.name: leaf_of(block, self.prior) for block in schema.blocks}
        return NaiveBayes(class_prior(self), leaves, columns={b.name: b.columns for b in schema.blocks})

    def _temper(self, *rows):
        if self.exponent != "loo":
            if isinstance(self.exponent, str):
                raise ValueError(f"exponent must be a number > 0 or 'loo', got {self.exponent!r}")
            check_positive("exponent", self.exponent)
            self.exponent_ = float(self.exponent)
        elif not rows:
            raise ValueError("exponent='loo' is chosen by leaving out rows: give all of them to fit, or a number")
        else:
            self.exponent_ = best_exponent(self, *rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        mixed = not isinstance(self.features, str)
        tags.input_tags.categorical = tags.input_tags.string = mixed or self.features in ("auto", "categorical")
        tags.input_tags.sparse = mixed or self.features in SPARSE_FAMILIES
        tags.input_tags.positive_only = not mixed and self.features in ("poisson", "multinomial")
        return tags


def leaf_of(block: Block, prior: str = "weak") -> ExponentialFamily:
    """Return the leaf of a block of columns: the user's own, or the one of their family."""
    leaf: Any = block.leaf  # the model refuses anything else by name
    shape = () if block.single else (len(block.columns),)
    if isinstance(leaf, str):
        if leaf not in _LEAVES[prior]:
            raise ValueError(
                f"column {block.columns[0]!r}: there is no {prior} prior of {leaf!r} columns; give its leaf"
            )
        return _LEAVES[prior][leaf](block, shape)
    if isinstance(leaf, ExponentialFamily) and shape and not (leaf.event_dim or leaf.batch_shape):
        return leaf._repeated(*shape)
    return leaf


def _counted(alpha: float):
    """Return leaves of coins, dice and bags of words by family, with ``alpha`` prior counts of each outcome."""
    return {
        "bernoulli": lambda block, shape: BetaBernoulli(np.full(shape, alpha), alpha),
        "categorical": lambda block, shape: DirichletCategorical(
            np.full((*shape, len(block.categories)), alpha), block.categories
        ),
        "multinomial": lambda block, shape: DirichletMultinomial(alpha, block.columns),
    }


def _gaussian(block, shape):
    return _WEAK


_WEAK = WeakGaussian(NormalInverseGamma.weak)


def _log_gaussian(shift: float):
    return lambda block, shape: WeakLogGaussian(functools.partial(LogNormal.weak, shift=shift), shift=shift)


_LEAVES: dict[str, dict[str, Any]] = {  # by prior and family
    "weak": _counted(1.0)
    | {
        "poisson": lambda block, shape: WeakPoisson(GammaPoisson.weak),
        "gaussian": _gaussian,
        "date": _gaussian,
        "log": _log_gaussian(0.0),
        "log1p": _log_gaussian(1.0),
    },
    "reference": _counted(0.5)
    | {"poisson": lambda block, shape: ReferencePoisson()}
    | dict.fromkeys(("gaussian", "date"), lambda block, shape: ReferenceGaussian()),
}
