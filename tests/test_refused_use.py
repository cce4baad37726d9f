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
    "not fitted": (lambda: NB().predict(X), "not fitted"),
    "not fitted, probabilities": (lambda: GD().predict_proba(X), "not fitted"),
    "not fitted, evidence": (lambda: GD().log_evidence_, "not fitted|log_evidence_", (ValueError, AttributeError)),
    "not fitted, sample": (lambda: NB().sample(3), "not fitted"),
    "not fitted, save": (lambda: NB().save("nowhere.safetensors"), "not fitted"),
    "not fitted, ArviZ": (lambda: NB().to_arviz(), "not fitted"),
    "columns in another order": (lambda: NAMED.predict(TABLE[["v", "u", "c"]]), "same order"),
    "a column less": (lambda: NAMED.predict(TABLE[["u", "v"]]), "now missing:\n- c"),
    "a column more": (lambda: NAMED.predict(TABLE.assign(w=1)), "unseen at fit time:\n- w"),
    "another width": (lambda: GD().fit(X.to_numpy(), Y).predict(np.zeros((1, 3))), "3 features, but .* expecting 2"),
    "one axis at prediction": (lambda: CLASSIFIER.predict(np.arange(2.0)), "Reshape your data"),
    "new category": (
        lambda: NB(unseen="error").fit(TABLE, Y).predict(TABLE.assign(c="r")),
        "column 'c': 'r' in row 0 is not one",
    ),
    "one category beside ten thousand": (
        lambda: NB({"c": MANY}, unseen="error").fit(TABLE.assign(c=1), Y).predict(TABLE.assign(c="r")),
        r"'r' in row 0 is not one of the categories \[0, 1, 2, 3, 4, 5\] and 9994 more; declare",
    ),
    "one class beside ten thousand": (
        lambda: GD().partial_fit(X, Y, classes=[f"k{i:04}" for i in range(10000)]),
        r"labels \['a', 'b'\], .* classes \['k0000', .*'k0005'\] and 9994 more: declare",
    ),
    "priors of ten thousand classes": (
        lambda: NB(priors=[1.0]).partial_fit(X, [0] * 8, classes=range(10000)),
        r"classes \[0, 1, 2, 3, 4, 5\] and 9994 more$",
    ),
    "a column of ten thousand": (
        lambda: NB({"w": "gaussian"}).fit(WIDE, Y),
        r"does not have; it has \['0', '1', '2', '3', '4', '5'\] and 9994 more$",
    ),
    "infinite at prediction": (lambda: NAMED.predict(TABLE.assign(u=INF)), "column 'u'.*infinite"),
    "infinite vector at prediction": (lambda: CLASSIFIER.predict(X.assign(u=-INF)), "column 'u'.*infinite"),
    "word at prediction": (lambda: CLASSIFIER.predict(X.assign(u="x")), "column 'u' holds 'x'"),
    "no rows at prediction": (lambda: CLASSIFIER.predict(X[:0]), "0 samples"),
    "other priors of another length": (lambda: CLASSIFIER.predict_proba(X, priors=[1.0]), "one probability for each"),
    "other priors of sum 2": (lambda: CLASSIFIER.predict_proba(X, priors=[1.0, 1.0]), "sum to 1"),
    "no sample": (lambda: CLASSIFIER.sample(0), "n_samples must be a whole number"),
    "half a sample": (lambda: CLASSIFIER.sample(1.5), "n_samples must be a whole number"),
    "classes not declared": (lambda: GD().partial_fit(X, Y), "classes must be given at the first call"),
    "a class that was not declared": (lambda: GD().partial_fit(X, Y, classes=["a", "c"]), r"labels \['b'\]"),
    "declared classes with a gap": (lambda: GD().partial_fit(X, Y, classes=["a", "b", None]), "missing"),
    "declared classes of two types": (
        lambda: GD().partial_fit(X, Y, classes=np.array(["a", "b", 1], object)),
        "mixes labels",
        TypeError,
    ),
    "declared classes in a table": (lambda: GD().partial_fit(X, Y, classes=[["a", "b"], ["a", "b"]]), "1d array"),
    "evidence of a separation": (
        lambda: GD(prior=models.SeparationPrior(), covariance="diagonal", inference="map").fit(X, Y).log_evidence_,
        "no closed form here",
        AttributeError,
    ),
    "a leaf in grid search": (lambda: NB().set_params(depth=3), "has no parameter 'depth'"),
}


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.compiles] * (k == "evidence of a separation")) for k in LIFE]
)
def test_life_refuses(kind):
    refuses(*LIFE[kind])
