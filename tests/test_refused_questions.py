"""Questions to a fitted classifier that are refused."""

import numpy as np
import pytest
from refusals import COUNTS, GD, LOGIT, NAN, NB, X, Y, refuses

import bayesgen as bg
from bayesgen import decision, inspection

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
