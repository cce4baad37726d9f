"""Bayesian generative classifiers and the lecture models under them."""

import importlib
from typing import TYPE_CHECKING

from bayesgen.core.interrupt import ends_the_command

with ends_the_command():
    from bayesgen import data, decision, evaluation, inference, inspection, models
    from bayesgen.comparison import compare_evidence, compare_models
    from bayesgen.comparison.calibration import check_calibration
    from bayesgen.core import __version__
    from bayesgen.estimators.averaged import AveragedClassifier
    from bayesgen.estimators.discriminant import GaussianDiscriminantClassifier
    from bayesgen.estimators.imputer import Imputer
    from bayesgen.estimators.linear_classifiers import LogisticClassifier, ProbitClassifier
    from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
    from bayesgen.estimators.regression import LinearRegressor
    from bayesgen.files.storage import load
    from bayesgen.inference import MAP, ML, NUTS, Exact, Laplace, fit
    from bayesgen.tables.account import read_table

if TYPE_CHECKING:
    from bayesgen import plot

__all__ = [
    "MAP",
    "ML",
    "NUTS",
    "AveragedClassifier",
    "Exact",
    "GaussianDiscriminantClassifier",
    "Imputer",
    "Laplace",
    "LinearRegressor",
    "LogisticClassifier",
    "NaiveBayesClassifier",
    "ProbitClassifier",
    "__version__",
    "check_calibration",
    "compare_evidence",
    "compare_models",
    "data",
    "decision",
    "evaluation",
    "fit",
    "inference",
    "inspection",
    "load",
    "models",
    "plot",
    "read_table",
]


def __getattr__(name: str):
    """Import the pictures when they are first used."""
    if name == "plot":
        return importlib.import_module("bayesgen.plot")
    raise AttributeError(f"module 'bayesgen' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
