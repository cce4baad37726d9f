"""The estimator of Gaussian discriminant analysis: each row is one vector, with a covariance of some structure."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.averaging.gaussian import GaussianMember
from bayesgen.averaging.rows import HeldOut, Rows, effective, sample
from bayesgen.averaging.view import View
from bayesgen.averaging.views import FittedView
from bayesgen.averaging.warp import Warp
from bayesgen.core import registry
from bayesgen.estimators.generative import GenerativeClassifier
from bayesgen.estimators.settings import class_prior
from bayesgen.inference import Exact, Inference, named
from bayesgen.inspection.boundary import mean_scores
from bayesgen.models import GaussianDiscriminant, LabelNoise, SeparationPrior
from bayesgen.models.model import Hyperparameters
from bayesgen.models.moments import grouped_moments
from bayesgen.models.structures import structure
from bayesgen.numerics.pieces import taken
from bayesgen.numerics.sums import Grouping
from bayesgen.tables.schema import Block, Schema


@registry.estimator
@dataclass(eq=False, repr=False)
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
        so does "loo" (full, diagonal; complete rows in one ``fit``), with a strength chosen by exact leave-one-out.
        "reference" is the improper limit whose predictive densities are the classical ones of QDA and LDA
        (`bayesgen.models.reference`), for more rows than columns, with no evidence, NUTS or Laplace.
    class_concentration : float or array, shape (K,), default 1.0
        Dirichlet concentration of the class probabilities.
    priors : array, shape (K,), optional
        Known class probabilities, in place of learned ones; a classifier of this kind has no ``class_weight``.
    inference : {"ml", "map", "exact", "nuts", "laplace"} or Inference, default "exact"
        Method of inference.
    unlabelled : {"error", "missing"} or label, default "error"
        Mark of rows without a label, from which "map", "ml" and "nuts" can learn; see `NaiveBayesClassifier`.
    label_noise : LabelNoise, optional
        Model of wrong labels, for "map", "ml" and "nuts"; see `NaiveBayesClassifier`.
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

    covariance: str = "full"
    shared: bool = False
    prior: str | Hyperparameters = "weak"
    class_concentration: ArrayLike = 1.0
    priors: ArrayLike | None = None
    inference: str | Inference = "exact"
    unlabelled: Any = "error"
    label_noise: LabelNoise | None = None
    random_state: Any = None

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
            candidates(self.covariance, bool(self.shared))
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
        """Return True if leave-one-out chooses the strength of the prior."""
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
        prior = best_prior(log_class, x, own, self.covariance, bool(self.shared), group)
        return GaussianDiscriminant(template.classes, prior, self.covariance, self.shared, columns=template.columns)

    def _temper(self, *rows):
        if not rows and self._by_rows:
            raise ValueError("prior='loo' is chosen by leaving out rows: give all of them to fit, or a prior")


_MOST = 1000  # rows that are left out to choose the strength of a prior


def candidates(covariance: str, shared: bool) -> list[GaussianMember]:
    """Return the strengths to choose from: rho, kappa, and for full covariances the shrinkage towards the diagonal."""
    if covariance not in ("full", "diagonal"):
        raise ValueError(f"prior='loo' is for covariance='full' and 'diagonal', got {covariance!r}")
    name = {"full": ("full", "shared"), "diagonal": ("diagonal", "shared diagonal")}[covariance][shared]
    shrinkages = (0.1, 0.4, 1.0) if name == "full" else (1.0,)
    rhos, kappas = (2.0, 8.0, 32.0, 128.0), (0.01, 0.1, 1.0)
    return [GaussianMember(name, rho, kappa, s) for rho in rhos for s in shrinkages for kappa in kappas]


def best_prior(log_class, x, rows: Grouping, covariance: str, shared: bool, group=None):
    """Return the prior of the strength that leave-one-out chooses, an average of all strengths.

    Each strength has a log score: it predicts the classes of rows left out. Where rows are few, the best strength is
    best by chance as much as by merit: taken alone it did worse than the weak prior in 9 of 10 cells of wine, breast
    cancer and iris. So log rho and log kappa are averaged under weights in proportion to the exponential of half the
    score of each strength; that did as well as the weak prior, and a little better where columns are many.

    The priors follow the pooled covariance and the mean of the rows (`bayesgen.averaging.reference`), and are worked
    out anew without each row, which leaves by one unit of its weight, or with its whole group. If there are more than
    1,000 rows, a stratified sample is left out, each class weighted back to its part.

    Parameters
    ----------
    log_class : array, shape (K,)
        Log of the class probabilities.
    x, rows, group : array (n, D), Grouping, int array (n,) or None
        Complete rows, their classes and weights, and their groups.
    """
    x, codes = np.asarray(x, float), rows.codes
    if np.isnan(x).any():
        raise ValueError("prior='loo' needs complete rows at fit")
    weight = np.ones(len(x)) if rows.weight is None else rows.weight
    statistics = grouped_moments(x, rows, vector=True)
    warp = Warp.learn(x, codes, len(log_class), weight, bend=False)
    view = View(warp, None, np.zeros_like(statistics.mean), np.arange(len(log_class)))
    fitted = FittedView(view, tuple(candidates(covariance, shared)), warp.moments(statistics))
    places = sample(codes, _MOST, np.random.default_rng(0))
    table = Rows(x, np.empty((len(x), 0), np.intp), codes, weight, (), len(log_class), group)
    own, chosen = codes[places], weight[places]
    density = fitted.left_out(HeldOut.of(table, places))
    score = log_softmax(density + log_class, axis=2)[:, np.arange(len(own)), own]
    share = statistics.n / np.bincount(own, chosen, len(log_class)).clip(1e-300)
    scored = chosen * share[own]
    worth = effective(scored, taken(group, places)) / scored.sum()
    member = mean_strength(fitted.members, score @ scored * worth)
    prior: Any = member.prior(fitted.reference)._untied()
    mean = warp.location + warp.scale * prior.mean
    if member.diagonal:
        return replace(prior, mean=mean, beta=prior.beta * warp.scale**2)
    return replace(prior, mean=mean, scale=prior.scale * np.outer(warp.scale, warp.scale))


def mean_strength(members, score) -> GaussianMember:
    """Average members of one structure, with weights in proportion to the exponential of half their log scores."""
    weights = softmax(np.asarray(score) / 2)
    rho, kappa = (float(np.exp(weights @ np.log([getattr(m, name) for m in members]))) for name in ("rho", "kappa"))
    shrinkage = min(1.0, float(weights @ np.array([m.shrinkage for m in members])))
    return GaussianMember(members[0].structure, rho, kappa, shrinkage)
