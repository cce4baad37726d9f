"""Questions to a fitted classifier: how sure it is, why, and how it does without each row; its posterior for ArviZ.

Each is a function that takes the classifier; estimators have methods that call those of daily use.
"""

from bayesgen.inspection.acquisition import Acquisition, acquire
from bayesgen.inspection.arviz import to_arviz
from bayesgen.inspection.averaged import member_posteriors
from bayesgen.inspection.class_prior import ClassPrior, estimate_class_prior
from bayesgen.inspection.draw_reliability import DrawReliability, draw_reliability
from bayesgen.inspection.elpd import loo_given_x
from bayesgen.inspection.evidence import Evidence, evidence
from bayesgen.inspection.explanation import explain
from bayesgen.inspection.given_label import class_given_label
from bayesgen.inspection.importance import importance
from bayesgen.inspection.imputation import impute
from bayesgen.inspection.leave_one_out import LeaveOneOut, leave_one_out
from bayesgen.inspection.measurement import next_measurement
from bayesgen.inspection.next_label import Query, query
from bayesgen.inspection.prediction_set import PredictionSet, predict_set
from bayesgen.inspection.probabilities import probability_draws, probability_interval
from bayesgen.inspection.summary import Summary, summary
from bayesgen.inspection.tempering import best_exponent
from bayesgen.inspection.typicality import Typicality, typicality
from bayesgen.inspection.unlabelled_weight import UnlabelledWeight, unlabelled_weight

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
