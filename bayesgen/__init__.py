"""Bayesian generative classifiers and the lecture models under them."""

from bayesgen import boundary, data, decision, evaluation, models
from bayesgen.classifier import GaussianDiscriminantClassifier, NaiveBayesClassifier
from bayesgen.inference import MAP, ML, NUTS, Exact, fit
from bayesgen.posterior import Closed, Draws, Point
from bayesgen.regression import LinearRegressor, LogisticClassifier, ProbitClassifier

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
    "boundary",
    "data",
    "decision",
    "evaluation",
    "fit",
    "models",
]
