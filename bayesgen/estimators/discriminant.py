"""The estimator of Gaussian discriminant analysis: each row is one vector, with a covariance of some structure."""

from dataclasses import dataclass, replace

import numpy as np

from bayesgen.core import registry
from bayesgen.estimators.estimator import Held, decision_function
from bayesgen.estimators.labelled import LabelledClassifier
from bayesgen.estimators.settings import class_prior
from bayesgen.inference import Exact, named
from bayesgen.inspection.boundary import mean_scores
from bayesgen.inspection.one_model import FittedModel
from bayesgen.models import GaussianDiscriminant, SeparationPrior
from bayesgen.models.model import Hyperparameters
from bayesgen.models.structures import structure
from bayesgen.tables.schema import Block, Schema


@registry.estimator
@dataclass(eq=False, repr=False)
class GaussianDiscriminantClassifier(LabelledClassifier):
    """Bayesian Gaussian discriminant analysis, with missing entries at prediction.

    Parameters
    ----------
    covariance : {"full", "diagonal", "isotropic", "student"}, default "full"
        Structure of the covariance matrix: "full" is QDA, "diagonal" Gaussian naive Bayes. "student" is full, with the
        tails of Student's t, so that outliers do little harm, for "nuts", "map", "ml" and "laplace".
    shared : bool, default False
        True for one covariance of all classes: "full" is then LDA, "isotropic" the nearest mean.
    prior : "weak", "reference" or model
        Prior on means and covariances: NormalInverseWishart (full), NormalInverseGamma (diagonal, isotropic) or
        SeparationPrior (full, diagonal; by NUTS, Laplace and MAP), StudentT (student). "weak" follows the location and
        scale of the data. "reference" is the improper limit whose predictive densities are the classical ones of QDA
        and LDA (`bayesgen.models.reference`), for more rows than columns, with no evidence, NUTS or Laplace.
    class_concentration, priors, inference, random_state
        As for `NaiveBayesClassifier`.

    Attributes
    ----------
    classes_, model_, statistics_, posterior_
        As for `NaiveBayesClassifier`.
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

    fitted_ = Held(FittedModel, (GaussianDiscriminant,))

    covariance: str = "full"
    shared: bool = False
    prior: str | Hyperparameters = "weak"

    coef_ = property(lambda self: self._linear[0], doc="Mean weights of the linear scores.")
    intercept_ = property(lambda self: self._linear[1], doc="Mean intercepts of the linear scores.")

    @property
    def _linear(self):
        held = self.fitted_
        if not held.model_.linear:
            raise AttributeError("coef_ and intercept_ are those of linear scores: of Gaussians with shared=True")
        scores = mean_scores(held.posterior_, seed=self.random_state)
        return [of_class[1:] - of_class[:1] if len(of_class) == 2 else of_class for of_class in scores]

    decision_function = decision_function

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        exact = isinstance(named(self.inference), Exact)  # no exact posterior with gaps under a full covariance
        tags.input_tags.allow_nan = not (exact and self.covariance == "full")
        return tags

    def _learn_schema(self, table):
        structure(self.covariance)
        if isinstance(self.prior, str) and self.prior not in ("weak", "reference"):
            raise ValueError(
                f"prior must be 'weak', 'reference' or a model such as NormalInverseWishart(...), got {self.prior!r}"
            )
        if table.sparse:
            raise TypeError(f"X is sparse, and {type(self).__name__} takes dense rows: give X.toarray()")
        blocks = (Block("gaussian", table.columns, False, "gaussian"),)
        return Schema(table.columns, blocks, library=table.library).as_written(table)

    @property
    def _weak(self):
        return isinstance(self.prior, str) and self.prior != "reference"

    def _template(self, schema):
        columns, prior, form = schema.columns, self.prior, structure(self.covariance)
        if isinstance(prior, Hyperparameters):
            prior = prior.for_columns(columns)
        if isinstance(prior, SeparationPrior):
            prior = replace(prior, mean=np.broadcast_to(prior.mean, len(columns)))
        elif isinstance(prior, str) and prior == "reference":
            prior = form.reference_leaf(bool(self.shared))
        elif self._weak:
            prior = form.template(bool(self.shared))
        classes = class_prior(self, self.priors)
        return GaussianDiscriminant(classes, prior, self.covariance, self.shared, columns={"gaussian": columns})
