"""Refusals of a fitted classifier, and of one that is not fitted yet."""

import numpy as np
import pandas as pd
import pytest
from refusals import CLASSIFIER, GD, INF, NB, X, Y, refuses

from bayesgen import models

pytestmark = pytest.mark.usefixtures("no_sampling")

NAMED = NB().fit(X.assign(c=list("pqpqpqpq")), Y)
TABLE = X.assign(c=list("pqpqpqpq"))
MANY = models.DirichletCategorical(1.0, range(10000))
WIDE = pd.DataFrame(np.zeros((8, 10000)))
LIFE = {
    "not fitted": (lambda: NB().predict(X), ValueError, "not fitted"),
    "not fitted, probabilities": (lambda: GD().predict_proba(X), ValueError, "not fitted"),
    "not fitted, evidence": (lambda: GD().log_evidence_, (ValueError, AttributeError), "not fitted|log_evidence_"),
    "not fitted, sample": (lambda: NB().sample(3), ValueError, "not fitted"),
    "not fitted, save": (lambda: NB().save("nowhere.safetensors"), ValueError, "not fitted"),
    "not fitted, ArviZ": (lambda: NB().to_arviz(), ValueError, "not fitted"),
    "columns in another order": (lambda: NAMED.predict(TABLE[["v", "u", "c"]]), ValueError, "same order"),
    "a column less": (lambda: NAMED.predict(TABLE[["u", "v"]]), ValueError, "now missing:\n- c"),
    "a column more": (lambda: NAMED.predict(TABLE.assign(w=1)), ValueError, "unseen at fit time:\n- w"),
    "another width": (
        lambda: GD().fit(X.to_numpy(), Y).predict(np.zeros((1, 3))),
        ValueError,
        "3 features, but .* expecting 2",
    ),
    "new category": (
        lambda: NB(unseen="error").fit(TABLE, Y).predict(TABLE.assign(c="r")),
        ValueError,
        "column 'c': 'r' in row 0 is not one",
    ),
    "one category beside ten thousand": (
        lambda: NB({"c": MANY}, unseen="error").fit(TABLE.assign(c=1), Y).predict(TABLE.assign(c="r")),
        ValueError,
        r"'r' in row 0 is not one of the categories \[0, 1, 2, 3, 4, 5\] and 9994 more; declare",
    ),
    "one class beside ten thousand": (
        lambda: GD().partial_fit(X, Y, classes=[f"k{i:04}" for i in range(10000)]),
        ValueError,
        r"labels \['a', 'b'\], .* classes \['k0000', .*'k0005'\] and 9994 more: declare",
    ),
    "priors of ten thousand classes": (
        lambda: NB(priors=[1.0]).partial_fit(X, [0] * 8, classes=range(10000)),
        ValueError,
        r"classes \[0, 1, 2, 3, 4, 5\] and 9994 more$",
    ),
    "a column of ten thousand": (
        lambda: NB({"w": "gaussian"}).fit(WIDE, Y),
        ValueError,
        r"does not have; it has \['0', '1', '2', '3', '4', '5'\] and 9994 more$",
    ),
    "infinite at prediction": (lambda: NAMED.predict(TABLE.assign(u=INF)), ValueError, "column 'u'.*infinite"),
    "infinite vector at prediction": (lambda: CLASSIFIER.predict(X.assign(u=-INF)), ValueError, "column 'u'.*infinite"),
    "word at prediction": (lambda: CLASSIFIER.predict(X.assign(u="x")), ValueError, "column 'u' holds 'x'"),
    "no rows at prediction": (lambda: CLASSIFIER.predict(X[:0]), ValueError, "0 samples"),
    "other priors of another length": (
        lambda: CLASSIFIER.predict_proba(X, priors=[1.0]),
        ValueError,
        "one probability for each",
    ),
    "other priors of sum 2": (lambda: CLASSIFIER.predict_proba(X, priors=[1.0, 1.0]), ValueError, "sum to 1"),
    "no sample": (lambda: CLASSIFIER.sample(0), ValueError, "n_samples must be a whole number"),
    "half a sample": (lambda: CLASSIFIER.sample(1.5), ValueError, "n_samples must be a whole number"),
    "classes not declared": (lambda: GD().partial_fit(X, Y), ValueError, "classes must be given at the first call"),
    "a class that was not declared": (
        lambda: GD().partial_fit(X, Y, classes=["a", "c"]),
        ValueError,
        r"labels \['b'\]",
    ),
    "declared classes with a gap": (lambda: GD().partial_fit(X, Y, classes=["a", "b", None]), ValueError, "missing"),
    "declared classes of two types": (
        lambda: GD().partial_fit(X, Y, classes=np.array(["a", "b", 1], object)),
        TypeError,
        "mixes labels",
    ),
    "declared classes in a table": (
        lambda: GD().partial_fit(X, Y, classes=[["a", "b"], ["a", "b"]]),
        ValueError,
        "1d array",
    ),
    "other classes later": (
        lambda: GD().partial_fit(X, Y, classes=["a", "b"]).partial_fit(X, Y, classes=["a"]),
        ValueError,
        "since the first call",
    ),
    "a new class later": (
        lambda: GD().partial_fit(X, Y, classes=["a", "b"]).partial_fit(X[:1], ["z"]),
        ValueError,
        r"\['z'\]",
    ),
    "a new column later": (
        lambda: GD().partial_fit(X, Y, classes=["a", "b"]).partial_fit(TABLE, Y),
        ValueError,
        "unseen at fit time",
    ),
    "evidence of a separation": (
        lambda: GD(prior=models.SeparationPrior(), covariance="diagonal", inference="map").fit(X, Y).log_evidence_,
        AttributeError,
        "no closed form here",
    ),
    "a leaf in grid search": (lambda: NB().set_params(depth=3), ValueError, "has no parameter 'depth'"),
}


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.compiles] * (k == "evidence of a separation")) for k in LIFE]
)
def test_life_refuses(kind):
    refuses(*LIFE[kind])
