"""Questions to a fitted classifier that are refused, and to one that is not fitted yet."""

import numpy as np
import pandas as pd
import pytest
from refusals import CLASSIFIER, COUNTS, GD, INF, LOGIT, NAN, NB, X, Y, refuses

import bayesgen as bg
from bayesgen import decision, inspection, models

pytestmark = pytest.mark.usefixtures("no_sampling")


def fitted(make=GD):
    return make().fit(X, Y)


def discriminative():
    return LOGIT(inference="map").fit(X, Y)


QUESTIONS = {
    "shares before a fit": (lambda: inspection.estimate_class_prior(GD(), X), "not fitted"),
    "shares by a discriminative model": (
        lambda: inspection.estimate_class_prior(discriminative(), X),
        "needs a generative classifier",
    ),
    "no prior of shares": (
        lambda: inspection.estimate_class_prior(fitted(), X, concentration=0.0),
        "concentration must be a finite number > 0",
    ),
    "no draws of shares": (lambda: inspection.estimate_class_prior(fitted(), X, draws=0), "draws must be"),
    "shares of no rows": (lambda: inspection.estimate_class_prior(fitted(), X[:0]), "0 row|0 sample|no row"),
    "next measurement of a discriminative model": (
        lambda: inspection.next_measurement(discriminative(), X),
        "needs a generative classifier",
    ),
    "cost of a column that is not there": (
        lambda: inspection.next_measurement(fitted(), X, cost={"w": 1.0}),
        "cost names the columns 'w'.*it has 'u', 'v'|cost names the columns",
    ),
    "cost of three columns": (
        lambda: inspection.next_measurement(fitted(), X, cost=[1.0, 1.0, 1.0]),
        "one for each of the 2 columns",
    ),
    "typicality as it is returned": (
        lambda: decision.decide(
            fitted().predict_proba(X), typicality=inspection.typicality(fitted(), X), none_of_these=0.01
        ),
        "give .overall",
        TypeError,
    ),
    "squares of the average below float64": (
        lambda: bg.AveragedClassifier().fit(X * 1e-170, Y),
        r"columns \['u', 'v'\]: squares of values below 1e-150",
    ),
    "a row of no class": (lambda: bg.AveragedClassifier().fit(X, [None, *Y[1:]]), "y contains missing labels"),
    "cost below zero": (lambda: inspection.next_measurement(fitted(), X, cost=-1.0), "finite and >= 0"),
    "cost of NaN": (lambda: inspection.next_measurement(fitted(), X, cost={"u": NAN}), "finite and >= 0"),
    "cost in words": (
        lambda: inspection.next_measurement(fitted(), X, cost="much"),
        "cost must be a number",
        TypeError,
    ),
    "loss of three classes": (
        lambda: inspection.next_measurement(fitted(), X, loss=np.eye(3)),
        "a row for each true class",
    ),
    "a bag to measure": (
        lambda: inspection.next_measurement(NB("multinomial").fit(COUNTS, Y), COUNTS.mask(COUNTS >= 0)),
        "columns such as 'u'.*entries are missing",
    ),
    "gaps of a discriminative model": (lambda: inspection.impute(discriminative(), X), "needs a generative classifier"),
    "half a table of draws": (lambda: inspection.impute(fitted(), X, draws=0.5), "draws must be"),
    "classes of other rows": (lambda: inspection.impute(fitted(), X, Y[:3]), "X has 8 rows and y has 3"),
    "classes not of the fit": (lambda: inspection.impute(fitted(), X, ["c"] * 8), "'c'"),
    "a missing bag": (
        lambda: inspection.impute(NB("multinomial").fit(COUNTS, Y), COUNTS.mask(COUNTS >= 0)),
        "columns such as 'u'.*probability given the total, and entries are missing",
    ),
    "an imputer half on": (lambda: bg.Imputer(draw="yes").fit(X, Y), "draw must be True or False", TypeError),
    "typicality by a discriminative model": (
        lambda: inspection.typicality(discriminative(), X),
        "needs a generative classifier",
    ),
    "typicality without draws": (lambda: inspection.typicality(fitted(), X, 0), "draws must be"),
    "typicality of a bag": (
        lambda: inspection.typicality(NB("multinomial").fit(COUNTS, Y), COUNTS),
        "columns such as 'u'.*probability given the total",
    ),
    "none of these without typicality": (
        lambda: decision.decide([[0.5, 0.5]], none_of_these=0.1),
        "typicality and none_of_these go together",
    ),
    "typicality of classes": (
        lambda: decision.decide([[0.5, 0.5]], typicality=[[0.5, 0.5]], none_of_these=0.1),
        "give .overall",
    ),
    "a level of nothing": (
        lambda: decision.decide([[0.5, 0.5]], typicality=[0.5], none_of_these=0.0),
        "none_of_these must lie between 0 and 1",
    ),
    "a level of all": (
        lambda: decision.decide([[0.5, 0.5]], typicality=[0.5], none_of_these=1),
        "none_of_these must lie between 0 and 1",
    ),
    "interval beyond certainty": (
        lambda: inspection.estimate_class_prior(fitted(), X, draws=5).interval(1.0),
        "level must lie between 0 and 1",
    ),
}


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.filterwarnings("ignore:.*rows without labels")
def test_a_question_is_refused(kind):
    refuses(*QUESTIONS[kind])


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
