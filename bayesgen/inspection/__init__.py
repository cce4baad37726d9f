"""Questions to a fitted classifier: how sure it is, why, and how it does without each row; its posterior for ArviZ.

Each is a function that takes the classifier; estimators have methods that call those of daily use.
"""

from bayesgen.inspection.arviz import to_arviz
from bayesgen.inspection.averaged import member_posteriors
from bayesgen.inspection.class_prior import ClassPrior, estimate_class_prior
from bayesgen.inspection.explain import Evidence, evidence, explain, importance
from bayesgen.inspection.labelling import Query, UnlabelledWeight, class_given_label, query, unlabelled_weight
from bayesgen.inspection.leave_one_out import LeaveOneOut, best_exponent, leave_one_out, loo_given_x
from bayesgen.inspection.measurement import Acquisition, acquire, next_measurement
from bayesgen.inspection.missing import impute
from bayesgen.inspection.prediction_set import PredictionSet, predict_set
from bayesgen.inspection.probabilities import DrawReliability, draw_reliability, probability_draws, probability_interval
from bayesgen.inspection.summary import Summary, summary
from bayesgen.inspection.typicality import Typicality, typicality

__all__ = [
    "Acquisition",
    "ClassPrior",
    "DrawReliability",
    "Evidence",
    "LeaveOneOut",
    "PredictionSet",
    "Query",
    "Summary",
    "Typicality",
    "UnlabelledWeight",
    "acquire",
    "best_exponent",
    "class_given_label",
    "draw_reliability",
    "estimate_class_prior",
    "evidence",
    "explain",
    "importance",
    "impute",
    "leave_one_out",
    "loo_given_x",
    "member_posteriors",
    "next_measurement",
    "predict_set",
    "probability_draws",
    "probability_interval",
    "query",
    "summary",
    "to_arviz",
    "typicality",
    "unlabelled_weight",
]
