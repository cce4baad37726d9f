"""Evaluation of class probabilities against the true classes.

`log_loss`, `brier_score` and, of ordered classes, `ranked_probability_score` are the means of the proper losses of
`bayesgen.decision`: the true probabilities alone minimise their expectation. `accuracy` looks at the most probable
class only, and `realised_loss` at the decisions that follow from the probabilities and a loss matrix.

Probabilities are calibrated if events of probability 0.7 happen in 70 % of the cases: `reliability_table` shows this,
`expected_calibration_error` measures it; `calibration_line` and `reliability_curve` do so without bins. `net_benefit`
says what it is worth to act on the probabilities.

All take the arguments of scikit-learn's metrics. `sklearn.metrics.make_scorer` accepts all that return a number, with
``response_method="predict_proba"``. Two numbers differ from scikit-learn's on purpose. Its log loss replaces a
probability of 0 by 2e-16, so that a certain error costs 36 nats; here it costs infinity. Its Brier score of two classes
is half of this one unless ``scale_by_half=False``.
"""

from bayesgen.evaluation.net_benefit import NetBenefit, net_benefit
from bayesgen.evaluation.reliability import ReliabilityTable, expected_calibration_error, reliability_table
from bayesgen.evaluation.scores import (
    accuracy,
    brier_score,
    log_loss,
    ranked_probability_score,
    realised_loss,
    scaled_brier_score,
)
from bayesgen.evaluation.without_bins import CalibrationLine, ReliabilityCurve, calibration_line, reliability_curve

__all__ = [
    "CalibrationLine",
    "NetBenefit",
    "ReliabilityCurve",
    "ReliabilityTable",
    "accuracy",
    "brier_score",
    "calibration_line",
    "expected_calibration_error",
    "log_loss",
    "net_benefit",
    "ranked_probability_score",
    "realised_loss",
    "reliability_curve",
    "reliability_table",
    "scaled_brier_score",
]
