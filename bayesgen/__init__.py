"""Bayesian generative classifiers and the lecture models under them."""

import importlib
from typing import TYPE_CHECKING

from bayesgen.core import __version__

if TYPE_CHECKING:
    from bayesgen import data, decision, evaluation, inference, inspection, models, plot, testing
    from bayesgen.comparison import compare_classes, compare_evidence, compare_models
    from bayesgen.estimators.averaged import AveragedClassifier
    from bayesgen.estimators.discriminant import GaussianDiscriminantClassifier
    from bayesgen.estimators.imputer import Imputer
    from bayesgen.estimators.latent import LatentClassClassifier
    from bayesgen.estimators.linear_classifiers import LogisticClassifier, ProbitClassifier
    from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
    from bayesgen.estimators.ordered import OrderedClassifier
    from bayesgen.estimators.regression import LinearRegressor
    from bayesgen.export.plain_program import program
    from bayesgen.files.storage import load
    from bayesgen.inference import MAP, ML, NUTS, Exact, Laplace, Memberships, fit
    from bayesgen.sheets.account import read_table

__all__ = [
    "MAP",
    "ML",
    "NUTS",
    "AveragedClassifier",
    "Exact",
    "GaussianDiscriminantClassifier",
    "Imputer",
    "Laplace",
    "LatentClassClassifier",
    "LinearRegressor",
    "LogisticClassifier",
    "Memberships",
    "NaiveBayesClassifier",
    "OrderedClassifier",
    "ProbitClassifier",
    "__version__",
    "compare_classes",
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
    "program",
    "read_table",
    "testing",
]


_HOMES = {  # the module of each name; a room is its own
    "AveragedClassifier": "estimators.averaged",
    "GaussianDiscriminantClassifier": "estimators.discriminant",
    "Imputer": "estimators.imputer",
    "LatentClassClassifier": "estimators.latent",
    "LinearRegressor": "estimators.regression",
    "LogisticClassifier": "estimators.linear_classifiers",
    "NaiveBayesClassifier": "estimators.naive_bayes",
    "OrderedClassifier": "estimators.ordered",
    "ProbitClassifier": "estimators.linear_classifiers",
    "compare_classes": "comparison",
    "compare_evidence": "comparison",
    "compare_models": "comparison",
    "load": "files.storage",
    "program": "export.plain_program",
    "read_table": "sheets.account",
} | dict.fromkeys(("MAP", "ML", "NUTS", "Exact", "Laplace", "Memberships", "fit"), "inference")


def __getattr__(name: str):
    """Import a public name when it is first used; with `load`, every estimator that a file may name."""
    if name not in __all__:
        import difflib

        near = [] if name.startswith("_") else difflib.get_close_matches(name, __all__, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"module 'bayesgen' has no attribute {name!r}{hint}")
    if name in _HOMES:
        # scikit-learn imports thirty deep. Behind a dozen calls more, its loops run at the edge of a page of the stack,
        # which each call makes and frees: from here, they take .07 s less.
        importlib.import_module("sklearn.base")
    if name == "load":
        for home in _HOMES.values():
            if home.startswith("estimators."):
                importlib.import_module(f"bayesgen.{home}")
    module = importlib.import_module(f"bayesgen.{_HOMES.get(name, name)}")
    globals()[name] = value = getattr(module, name) if name in _HOMES else module
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
