"""Bayesian generative classifiers and the lecture models under them."""

from bayesgen import data, decision, evaluation, models
from bayesgen.comparison import compare_evidence, compare_models
from bayesgen.comparison.calibration import check_calibration
from bayesgen.core import __version__
from bayesgen.estimators.averaged import AveragedClassifier
from bayesgen.estimators.discriminant import GaussianDiscriminantClassifier
from bayesgen.estimators.imputer import Imputer
from bayesgen.estimators.linear import LogisticClassifier, ProbitClassifier
from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
from bayesgen.estimators.regression import LinearRegressor
from bayesgen.files.storage import load
from bayesgen.inference import MAP, ML, NUTS, Exact, Laplace, SamplerWarning, fit
from bayesgen.inspection import boundary
from bayesgen.posterior.compiled import cache_compilation
from bayesgen.posterior.posterior import ExactPosterior, ParameterDraws, PointEstimate
from bayesgen.tables.rows import RowSchema, summarise

__all__ = [
    "MAP",
    "ML",
    "NUTS",
    "AveragedClassifier",
    "Exact",
    "ExactPosterior",
    "GaussianDiscriminantClassifier",
    "Imputer",
    "Laplace",
    "LinearRegressor",
    "LogisticClassifier",
    "NaiveBayesClassifier",
    "ParameterDraws",
    "PointEstimate",
    "ProbitClassifier",
    "RowSchema",
    "SamplerWarning",
    "__version__",
    "boundary",
    "cache_compilation",
    "check_calibration",
    "compare_evidence",
    "compare_models",
    "data",
    "decision",
    "evaluation",
    "fit",
    "load",
    "models",
    "summarise",
]
