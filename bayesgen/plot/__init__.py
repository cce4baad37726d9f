"""Pictures: functions that draw on matplotlib Axes and return them. Matplotlib is imported by the first one drawn."""

from bayesgen.plot.bayes_nets import bayes_net, net
from bayesgen.plot.classes import class_numbers, class_profiles
from bayesgen.plot.lectures import (
    beta_densities,
    coin,
    gaussian,
    mean_and_predictive,
    predictive_densities,
    prior,
    regression,
    squashing,
)
from bayesgen.plot.probability import (
    calibration,
    calibration_over_time,
    confusion,
    learning_curves,
    probabilities,
    reliability,
    running_score,
)
from bayesgen.plot.questions import column, evidence, importance, members, models
from bayesgen.plot.regions import (
    agreement,
    along_line,
    boundaries,
    class_conditionals,
    class_probabilities,
    decision_regions,
)
from bayesgen.plot.use import net_benefit, watch

__all__ = [
    "agreement",
    "along_line",
    "bayes_net",
    "beta_densities",
    "boundaries",
    "calibration",
    "calibration_over_time",
    "class_conditionals",
    "class_numbers",
    "class_probabilities",
    "class_profiles",
    "coin",
    "column",
    "confusion",
    "decision_regions",
    "evidence",
    "gaussian",
    "importance",
    "learning_curves",
    "mean_and_predictive",
    "members",
    "models",
    "net",
    "net_benefit",
    "predictive_densities",
    "prior",
    "probabilities",
    "regression",
    "reliability",
    "running_score",
    "squashing",
    "watch",
]
