"""Pictures: functions that draw on matplotlib Axes and return them. Matplotlib is imported when one is drawn."""

from bayesgen.plot.calibration import calibration
from bayesgen.plot.coin import beta_densities, coin
from bayesgen.plot.column import column
from bayesgen.plot.comparison import importance, models
from bayesgen.plot.evidence import evidence
from bayesgen.plot.gaussian import gaussian, mean_and_predictive, predictive_densities
from bayesgen.plot.members import members
from bayesgen.plot.prior import prior
from bayesgen.plot.probability import confusion, learning_curves, probabilities, reliability
from bayesgen.plot.regions import (
    agreement,
    along_line,
    boundaries,
    class_conditionals,
    class_probabilities,
    decision_regions,
)
from bayesgen.plot.regression import regression, squashing

__all__ = [
    "agreement",
    "along_line",
    "beta_densities",
    "boundaries",
    "calibration",
    "class_conditionals",
    "class_probabilities",
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
    "predictive_densities",
    "prior",
    "probabilities",
    "regression",
    "reliability",
    "squashing",
]
