"""The estimator of Gaussian discriminant analysis: each row is one vector, with a covariance of some structure."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from bayesgen.core import registry
from bayesgen.estimators.generative import GenerativeClassifier
from bayesgen.estimators.generative_settings import class_prior
from bayesgen.inference import Exact, Inference, named
from bayesgen.inspection import prior_by_loo
from bayesgen.inspection.boundary import mean_scores
from bayesgen.models import GaussianDiscriminant, LabelNoise, SeparationPrior
from bayesgen.models.model import Hyperparameters
from bayesgen.models.structures import structure
from bayesgen.numerics.sums import Grouping
from bayesgen.tables.schema import Block, Schema


@registry.estimator
class GaussianDiscriminantClassifier(GenerativeClassifier):
    """Bayesian Gaussian discriminant analysis, with missing entries at prediction.

    Parameters
    ----------
    covariance : {"full", "diagonal", "isotropic"}, default "full"
        Structure of the covariance matrix: "full" is QDA, "diagonal" Gaussian naive Bayes.
    shared : bool, default False
        Whether the classes share one covariance: "full" is then LDA, "isotropic" the nearest mean.
    prior : "weak", "loo", "reference" or model
        Prior on means and covariances: NormalInverseWishart (full), NormalInverseGamma (diagonal, isotropic) or
        SeparationPrior (full, diagonal; by NUTS, Laplace and MAP). "weak" follows the location and scale of the data;
        so does "loo" (full, diagonal; complete rows in one ``fit``), with a strength chosen by exact leave-one-out, see
        `bayesgen.inspection.prior_by_loo`. "reference" is the improper limit whose predictive densities are the
        classical ones of QDA and LDA (`bayesgen.models.reference`), for more rows than columns, with no evidence, NUTS
        or Laplace.
    class_concentration : float or array, shape (K,), default 1.0
        Dirichlet concentration of the class probabilities.
    priors : array, shape (K,), optional
        Known class probabilities, in place of learned ones; a classifier of this kind has no ``class_weight``.
    inference : {"ml", "map", "exact", "nuts", "laplace"} or Inference, default "exact"
        Method of inference.
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
    model_ : GaussianDiscriminant
        The model with its prior.
    statistics_ : ClassStatistics
        Sufficient statistics of the rows.
    posterior_ : Posterior
        The posterior of the parameters.
    coef_ : array, shape (1, D) for two classes, else (K, D)
        With ``shared=True`` alone: posterior mean, or point estimate, of the weights Σ⁻¹μ_k of the linear scores; with
        two classes, the second less the first.
    intercept_ : array, shape (1,) or (K,)
        The same for log π_k - ½ μ_k'Σ⁻¹μ_k. The class probabilities average over the posterior, and are not a softmax
        of these scores; see `bayesgen.inspection.boundary.mean_scores`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(GaussianDiscriminantClassifier().fit(X, y).score(X, y), 2)
    0.98
    """

    _models = (GaussianDiscriminant,)

    def __init__(
        self,
        covariance: str = "full",
        shared: bool = False,
        prior: str | Hyperparameters = "weak",
        class_concentration: ArrayLike = 1.0,
        priors: ArrayLike | None = None,
        inference: str | Inference = "exact",
        unlabelled: Any = "error",
        label_noise: LabelNoise | None = None,
        random_state: Any = None,
    ):
        self.covariance = covariance
        self.shared = shared
        self.prior = prior
        self.class_concentration = class_concentration
        self.priors = priors
        self.inference = inference
        self.unlabelled = unlabelled
        self.label_noise = label_noise
        self.random_state = random_state

    @property
    def coef_(self) -> np.ndarray:
        """Mean weights of the linear scores."""
        return self._linear[0]

    @property
    def intercept_(self) -> np.ndarray:
        """Mean intercepts of the linear scores."""
        return self._linear[1]

    @property
    def _linear(self):
        check_is_fitted(self)
        model: Any = self.model_
        if not model.shared:
            raise AttributeError("coef_ and intercept_ are those of linear scores: there are none without shared=True")
        parts = mean_scores(self.posterior_, seed=self.random_state)
        return [part[1:] - part[:1] if len(part) == 2 else part for part in parts]

    def decision_function(self, X) -> np.ndarray:
        """Return scores whose largest marks the predicted class, in the shapes of scikit-learn's linear classifiers.

        For two classes the log odds of the second, (n,); else log probabilities, (n, K).
        """
        log_p = self.predict_log_proba(X)
        return log_p[:, 1] - log_p[:, 0] if log_p.shape[1] == 2 else log_p

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        exact = isinstance(named(self.inference), Exact)  # no exact posterior with gaps under a full covariance
        tags.input_tags.allow_nan = not (self._by_rows or (exact and self.covariance == "full"))
        return tags

    def _learn_schema(self, table):
        structure(self.covariance)
        if isinstance(self.prior, str) and self.prior not in ("weak", "loo", "reference"):
            raise ValueError(
                "prior must be 'weak', 'loo', 'reference' or a model such as NormalInverseWishart(...), got "
                f"{self.prior!r}"
            )
        if self._by_rows:
            prior_by_loo.candidates(self.covariance, bool(self.shared))
        if table.sparse:
            raise TypeError(f"X is sparse, and {type(self).__name__} takes dense rows: give X.toarray()")
        return Schema(table.columns, (Block("gaussian", table.columns, False, "gaussian"),), library=table.library)

    def _as_model_takes(self, blocks):
        return blocks["gaussian"]

    @property
    def _weak(self):
        return isinstance(self.prior, str) and self.prior != "reference"

    @property
    def _by_rows(self):
        """True if leave-one-out chooses the strength of the prior."""
        return isinstance(self.prior, str) and self.prior == "loo"

    def _template(self, schema):
        columns, prior, own = schema.columns, self.prior, structure(self.covariance)
        if isinstance(prior, SeparationPrior):
            prior = replace(prior, mean=np.broadcast_to(prior.mean, len(columns)))
        elif isinstance(prior, str) and prior == "reference":
            prior = own.reference_leaf(bool(self.shared))
        elif self._weak:
            prior = own.template(bool(self.shared))
        classes = class_prior(self)
        return GaussianDiscriminant(classes, prior, self.covariance, self.shared, columns={"gaussian": columns})

    def _choose_prior(self, template, statistics, table, codes, weight, group):
        if not self._by_rows:
            return template
        own = Grouping(codes, len(self.classes_), weight, (len(self.classes_),))
        x = table.numbers(table.columns)
        log_class = np.log(template.classes.update(statistics.classes).mean)
        prior = prior_by_loo.best_prior(log_class, x, own, self.covariance, bool(self.shared), group)
        return GaussianDiscriminant(template.classes, prior, self.covariance, self.shared, columns=template.columns)

    def _temper(self, *rows):
        if not rows and self._by_rows:
            raise ValueError("prior='loo' is chosen by leaving out rows: give all of them to fit, or a prior")
