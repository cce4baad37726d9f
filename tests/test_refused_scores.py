"""Refusals of decisions and scores."""

import functools

import numpy as np
import pytest
from refusals import CLASSIFIER, COUNTS, GD, NAN, NB, X, Y, put, refuses

import bayesgen as bg
from bayesgen import decision, evaluation, models

pytestmark = pytest.mark.usefixtures("no_sampling")

P = [[0.5, 0.5], [0.2, 0.8]]
LC = functools.partial(bg.LatentClassClassifier, "discriminant")


SCORES = {
    "percent": (lambda: decision.decide([[50, 50]]), "every row summing to 1"),
    "masked probabilities": (lambda: decision.decide(np.ma.masked_array(P, mask=np.eye(2))), "masked entries"),
    "masked truth": (
        lambda: evaluation.accuracy(np.ma.masked_array([0, 1], mask=[0, 1]), P),
        "y_true contains missing labels",
    ),
    "complex probability": (lambda: decision.decide([[1j, 1 - 1j]]), "array of numbers", TypeError),
    "evidences of rescaled rows": (
        lambda: bg.compare_evidence({"one": CLASSIFIER, "two": NB().fit(2 * X, Y)}),
        "of different rows; column 'u' has means by class of",
    ),
    "evidences of other gaps": (
        lambda: bg.compare_evidence({"one": CLASSIFIER, "two": NB().fit(X.mask(X > 8), Y)}),
        r"column 'u' has observed values by class of \[4.0, 4.0\] and \[3.0, 3.0\]",
    ),
    "evidences of other counts": (
        lambda: bg.compare_evidence({"one": NB("poisson").fit(COUNTS, Y), "two": NB("categorical").fit(COUNTS + 1, Y)}),
        "column 'u' has means by class",
    ),
    "left out of moved rows": (lambda: CLASSIFIER.leave_one_out(X + 0.5, Y), "rows of the fit: column 'u'"),
    "left out of other labels": (lambda: CLASSIFIER.leave_one_out(X, np.roll(Y, 1)), "rows of the fit: column 'u'"),
    "left out of fewer rows": (lambda: CLASSIFIER.leave_one_out(X[:-1], Y[:-1]), "must be the rows of the fit"),
    "left out of a point": (lambda: GD(inference="ml").fit(X, Y).leave_one_out(X, Y), "needs inference='exact'"),
    "rows without classes to ArviZ": (lambda: CLASSIFIER.to_arviz(X), "X and y together"),
    "other classes to ArviZ": (lambda: CLASSIFIER.to_arviz(X[:2], ["a", "z"]), "labels"),
    "draws beyond memory": (
        lambda: CLASSIFIER.predict_proba_draws(X, 10**12),
        "of 8 rows' probabilities of 2 classes would take 128000 GB of memory, and there are .*: take fewer draws",
        MemoryError,
    ),
    "reference prior of too few rows": (
        lambda: GD(prior="reference").fit(X[:4], Y[:4]),
        "class 'a'.*2 columns need more rows than 2 in each class",
    ),
    "shared reference prior of too few rows": (
        lambda: GD(prior="reference", shared=True).fit(X[:3], Y[:3]),
        "class 'a'.*as many rows beyond one in each class",
    ),
    "reference prior of a constant column": (
        lambda: GD(prior="reference").fit(X.assign(v=1.0), Y),
        "class 'a', column 'v': .*stays improper here: no two distinct values",
    ),
    "reference prior of dependent columns": (
        lambda: GD(prior="reference", shared=True).fit(X.assign(v=2 * X["u"]), Y),
        "linearly dependent",
    ),
    "reference prior of one value": (
        lambda: NB(prior="reference").fit(X.assign(u=[1.0, 2.0] * 4), Y),
        "class 'a', column 'u': .*fewer than two distinct values",
    ),
    "reference prior of rows with gaps": (
        lambda: GD(prior="reference").fit(put(NAN), Y),
        "column 'v': rows are partly missing: the reference prior",
    ),
    "evidence of a reference prior": (
        lambda: GD(prior="reference").fit(X, Y).log_evidence_,
        "improper: it has no evidence",
        AttributeError,
    ),
    "NUTS under a reference prior": (
        lambda: GD(prior="reference", inference="nuts").fit(X, Y),
        "this one is improper: use 'exact' or 'map'",
    ),
    "a prior of naive Bayes by another name": (
        lambda: NB(prior="jeffreys").fit(X, Y),
        "prior must be 'weak' or 'reference'",
    ),
    "draws of an improper prior": (
        lambda: models.HaldaneBernoulli().sample_parameters(np.random.default_rng(0)),
        "HaldaneBernoulli is improper: it has no draws",
    ),
    "evidence of an improper prior": (
        lambda: bg.fit(models.ReferenceGaussian(), [1.0, 2.0]).log_evidence,
        "ReferenceGaussian is improper: it has no evidence",
    ),
    "a coin that fell on one side": (
        lambda: bg.fit(models.HaldaneBernoulli(), [1, 1]),
        "Haldane's prior needs a one and a zero",
    ),
    "a query of a point": (
        lambda: bg.inspection.next_labels(GD(inference="ml").fit(X, Y), X),
        "it needs inference='exact' or 'nuts'",
    ),
    "a query of no rows": (lambda: bg.inspection.next_labels(CLASSIFIER, X, 0), "n must be a whole number >= 1"),
    "a query of more rows than there are": (
        lambda: bg.inspection.next_labels(CLASSIFIER, X, 9),
        "n must be at most the 8 rows of X, got 9",
    ),
    "a query of half a draw": (lambda: bg.inspection.next_labels(CLASSIFIER, X, size=0.5), "size must be a whole"),
    "a query before a fit": (lambda: bg.inspection.next_labels(GD(), X), "not fitted"),
    "no label, unannounced": (
        lambda: GD(inference="map").fit(X, [*Y[:7], None]),
        "y contains missing labels; .* learn from them too by LatentClassClassifier",
    ),
    "a mark of no label": (lambda: GD(unlabelled=-1), "has no unlabelled: LatentClassClassifier", TypeError),
    "no label and a gap": (lambda: LC().fit(put(NAN), [0, 1, 0, NAN, 0, 1, 0, 1]), "rows without a label have gaps"),
    "the weight of rows that all have a label": (
        lambda: bg.inspection.unlabelled_weight(LC(), X, Y),
        "every row of y has a label",
    ),
    "the weight beside one label": (
        lambda: bg.inspection.unlabelled_weight(LC(), X, [0, 1, 0, 0, NAN, 0, 0, 0]),
        "a class has one label only",
    ),
    "a negative weight of rows without a label": (
        lambda: bg.inspection.unlabelled_weight(LC(), X, [0, 1, 0, 1, NAN, 0, 1, 0], [-1]),
        "weights must hold one finite number >= 0",
    ),
    "reliability of no draws": (lambda: bg.inspection.draw_reliability(CLASSIFIER, X), "inference='nuts'"),
}


@pytest.mark.parametrize("kind", SCORES)
def test_scores_refuse(kind):
    refuses(*SCORES[kind])
