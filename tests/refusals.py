"""Bad input: its parts, and a check that an error of the right type refuses it and names the fault."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg

NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
LINE, LOGIT, PROBIT = bg.LinearRegressor, bg.LogisticClassifier, bg.ProbitClassifier
NAN, INF = np.nan, np.inf


def refuses(call, words, error=ValueError):
    with pytest.raises(error, match=words) as caught:
        call()
    # Errors of linear algebra, HDF5 or JAX are ValueErrors too, and say nothing to a user.
    assert type(caught.value).__module__.split(".")[0] in ("builtins", "bayesgen", "sklearn", "narwhals")


def refuses_parts(average, kind, change, words, path):
    """Save an averaged classifier whose parts of a kind have other fields, and check that its file is refused."""
    parts = [replace(p, **change(p)) if isinstance(p, kind) else p for p in average.average_.parts]
    broken = copy.copy(average)
    broken.average_ = replace(average.average_, parts=tuple(parts))
    broken.save(path)
    refuses(lambda: bg.load(path), words)


X = pd.DataFrame({"u": np.arange(8.0) ** 1.2, "v": [1.0, 3.0, 2.0, 5.0, 4.0, 7.0, 6.0, 9.0]})
Y = np.array(["a", "b"] * 4)
COUNTS = X.round()
CLASSIFIER = GD().fit(X, Y)


def put(value, column="v", row=3, dtype=None):
    """The table with one bad entry."""
    table = X.astype({column: dtype or object})
    table.loc[row, column] = value
    return table.astype({column: dtype or (float if isinstance(value, float) else object)})


def case(estimator, table, words, y=Y, weight=None, error=ValueError):
    """One fit that is refused, and how."""
    return estimator, table, y, weight, error, words
