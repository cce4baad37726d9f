"""Questions to a fitted classifier that are no methods of it; each is a function that takes the classifier.

The estimators answer the questions of daily use themselves: `explain`, `leave_one_out`, `summary`, `to_arviz`,
`predict_proba_draws`, `predict_proba_interval`. The module `boundary` has the decision boundaries of Gaussian classes.
"""

from bayesgen.inspection import boundary
from bayesgen.inspection.bivariate_residuals import bivariate_residuals
from bayesgen.inspection.class_prior import estimate_class_prior
from bayesgen.inspection.explain import importance
from bayesgen.inspection.labelling import class_given_label, next_labels, unlabelled_weight
from bayesgen.inspection.leave_one_out import loo_given_x, predict_in_order
from bayesgen.inspection.measurement import next_measurement
from bayesgen.inspection.missing import impute
from bayesgen.inspection.probabilities import draw_reliability
from bayesgen.inspection.typicality import typicality
from bayesgen.inspection.watch import Watch

__all__ = [
    "Watch",
    "bivariate_residuals",
    "boundary",
    "class_given_label",
    "draw_reliability",
    "estimate_class_prior",
    "importance",
    "impute",
    "loo_given_x",
    "next_labels",
    "next_measurement",
    "predict_in_order",
    "typicality",
    "unlabelled_weight",
]


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
