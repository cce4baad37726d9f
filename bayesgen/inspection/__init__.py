"""Questions to a fitted classifier: how sure it is, why, and how it does without each row; its posterior for ArviZ.

Each is a function that takes the classifier; estimators have methods that call those of daily use.
"""

from bayesgen.inspection.arviz import to_arviz
from bayesgen.inspection.elpd import loo_given_x
from bayesgen.inspection.explanation import explain
from bayesgen.inspection.leave_one_out import LeaveOneOut, leave_one_out
from bayesgen.inspection.probabilities import probability_draws, probability_interval

__all__ = [
    "LeaveOneOut",
    "explain",
    "leave_one_out",
    "loo_given_x",
    "probability_draws",
    "probability_interval",
    "to_arviz",
]
