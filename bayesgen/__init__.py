"""Bayesian generative classifiers and the lecture models under them."""

from bayesgen import boundary, data, decision, evaluation, models
from bayesgen.calibration import check_calibration
from bayesgen.classifier import GaussianDiscriminantClassifier, NaiveBayesClassifier
from bayesgen.evaluation import compare_evidence
from bayesgen.inference import MAP, ML, NUTS, Exact, SamplerWarning, fit
from bayesgen.posterior import Closed, Draws, Point
from bayesgen.program import keep_programs
from bayesgen.regression import LinearRegressor, LogisticClassifier, ProbitClassifier
from bayesgen.storage import load

__version__ = "0.1.0"

__all__ = [
    "MAP",
    "ML",
    "NUTS",
    "Closed",
    "Draws",
    "Exact",
    "GaussianDiscriminantClassifier",
    "LinearRegressor",
    "LogisticClassifier",
    "NaiveBayesClassifier",
    "Point",
    "ProbitClassifier",
    "SamplerWarning",
    "boundary",
    "check_calibration",
    "compare_evidence",
    "data",
    "decision",
    "evaluation",
    "fit",
    "keep_programs",
    "load",
    "models",
]
