"""Unfitted classifiers for a comparison, each with the rows in a form that it can take.

A note records each change of the rows: columns that a Gaussian cannot describe are left out, and gaps that a model
cannot handle are imputed from the rows of fit. The levels of categories come from all rows, since a fold may lack some.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from bayesgen.core.errors import named
from bayesgen.estimators.averaged import AveragedClassifier
from bayesgen.estimators.discriminant import GaussianDiscriminantClassifier
from bayesgen.estimators.linear_classifiers import LogisticClassifier
from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
from bayesgen.models import DirichletCategorical
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import Table

MODELS = ("nb", "gda")  # models whose inferences are compared
DISCRIMINANTS = {"gda": False, "full": False, "shared": True}  # by name: do the classes share the covariance?
_WIDEST = 100  # columns of which gaps are integrated out: each pattern of gaps has a covariance of what is there
GAPS = "gaps integrated out at the mode of the posterior (map): with gaps the exact one has no closed form"


@dataclass(frozen=True)
class Candidate:
    """An unfitted classifier, with the rows it takes and a note on how they were changed."""

    classifier: Any
    rows: Any
    note: str = ""


class _Parts:
    """A table split into numbers, NaN where missing, and categories with all their levels."""

    def __init__(self, X, features):
        self.X, self.features, table = X, features, Table(X)
        self.numeric = [name for name in table.columns if table.family(name) == "gaussian"]
        self.other = [name for name in table.columns if name not in self.numeric]
        columns: dict[str, Any] = {name: np.asarray(table.numbers((name,)), float)[:, 0] for name in self.numeric}
        for name in self.other:
            levels = table.categories(name)
            code = np.asarray(table.codes((name,), levels), float)[:, 0]
            columns[name] = pd.Categorical.from_codes(np.where(np.isnan(code), -1, code).astype(int), list(levels))
        self.frame = pd.DataFrame({name: columns[name] for name in table.columns})
        self.frame.attrs = dict(getattr(X, "attrs", {}))  # how the file was read, whose account tells doubts


def estimator(X, model: str = "nb", inference: Any = "exact", seed: Any = 0, features: Any = None):
    """Return the unfitted classifier to compare, with the categories of all rows of ``X``, not of a fold.

    Of naive Bayes ``features`` names families of columns.
    """
    if model in DISCRIMINANTS:
        return GaussianDiscriminantClassifier(shared=DISCRIMINANTS[model], inference=inference, random_state=seed)
    if model != "nb":
        raise ValueError(f"model must be one of nb, {', '.join(DISCRIMINANTS)}; got {model!r}")
    leaves: dict[str, Any] = {
        column: DirichletCategorical(np.ones(len(block.categories)), block.categories)
        for block in Schema.learn(Table(X), features or "auto").blocks
        if block.categories
        for column in block.columns
    }
    return NaiveBayesClassifier({**(features or {}), **leaves} or "auto", inference=inference, random_state=seed)


def _discriminant(parts: _Parts, seed, shared: bool) -> Candidate:
    if not parts.numeric:
        raise ValueError("it takes numbers only, and there are none")
    rows, notes = parts.frame[parts.numeric], []
    model: Any = GaussianDiscriminantClassifier(shared=shared, random_state=seed)
    if parts.other:
        notes.append(f"numbers only, {named(parts.other)} left out")
    if rows.isna().to_numpy().any() and len(parts.numeric) <= _WIDEST:
        notes.append(GAPS)
        model.set_params(inference="map")
    elif rows.isna().to_numpy().any():
        notes.append(f"gaps filled with the means of the columns, of which there are more than {_WIDEST}")
        model = make_pipeline(SimpleImputer(keep_empty_features=True), model)
    return Candidate(model, rows, "; ".join(notes))


def _logistic(parts: _Parts, seed) -> Candidate:
    note = "gaps filled with the means of the columns" if parts.frame.isna().to_numpy().any() else ""
    return Candidate(LogisticClassifier(inference="map", missing="mean", random_state=seed), parts.frame, note)


CANDIDATES: dict[str, Callable[[_Parts, Any], Candidate]] = {
    "base rate": lambda parts, seed: Candidate(DummyClassifier(strategy="prior"), np.zeros((len(parts.frame), 1))),
    "naive Bayes": lambda parts, seed: Candidate(estimator(parts.X, seed=seed, features=parts.features), parts.X),
    "shared": functools.partial(_discriminant, shared=True),
    "full": functools.partial(_discriminant, shared=False),
    "averaged": lambda parts, seed: Candidate(
        AveragedClassifier(features=parts.features or "auto", random_state=seed, progress=False), parts.frame
    ),
    "logistic": _logistic,
}


def candidates(X, models, seed, features=None) -> tuple[dict[str, Candidate], dict[str, str]]:
    """Return candidates by name, and, if ``models`` is None, why some are left out; arguments as `compare_models`."""
    if models is not None and not len(models):
        raise ValueError("models must name at least one model")
    if models is not None and hasattr(models, "items"):
        result = {str(name): c if isinstance(c, Candidate) else Candidate(c, X) for name, c in models.items()}
        if unfit := [name for name, c in result.items() if not isinstance(c.classifier, BaseEstimator)]:
            raise ValueError(f"models: {unfit[0]!r} is no scikit-learn estimator, but {result[unfit[0]].classifier!r}")
        return result, {}
    names = list(CANDIDATES) if models is None else [models] if isinstance(models, str) else list(models)
    if unknown := [name for name in names if name not in CANDIDATES]:
        raise ValueError(f"no model {unknown[0]!r}; there are: {', '.join(CANDIDATES)}")
    parts, result, without = _Parts(X, features), {}, {}
    for name in names:
        try:
            result[name] = CANDIDATES[name](parts, seed)
        except ValueError as error:
            if models is not None:
                raise ValueError(f"{name}: {error}") from None
            without[name] = str(error)
    return result, without
