"""Sets that hold the truth: against refitting with the candidate among the rows; the rank that makes the promise."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen.inspection import predict_set
from bayesgen.models import NormalInverseGamma, NormalInverseWishart

X, Y = load_iris(return_X_y=True)
FEW = np.r_[0:150:7]
PENGUINS = bg.data.load("penguins").iloc[3:344:15].reset_index(drop=True)
SPECIES = PENGUINS.pop("species").to_numpy()
GD, NB = bg.GaussianDiscriminantClassifier, bg.NaiveBayesClassifier
CLASSIFIERS = {
    **{f"{c} {s}": GD(c, s) for c in ("full", "diagonal", "isotropic") for s in (False, True)},
    "own prior": GD("full", True, NormalInverseWishart(X.mean(0), 0.1, 6.0, np.eye(4))),
    "own prior, isotropic": GD("isotropic", True, NormalInverseGamma(X.mean(0), 0.1, 2.0, 0.5)),
    "known classes": NB(priors=[0.2, 0.3, 0.5], exponent=0.4),
    "counts": NB("poisson"),
    "bag of words": NB("multinomial"),
}


def rows_of(name):
    return np.round(X) if name in ("counts", "bag of words") else X


def by_refitting(classifier, new, rows, labels, by_class=False):
    """p-values by the definition: fit with the row under each class, and leave out each of all rows."""
    result = np.empty((len(new), len(classifier.classes_)))
    for i, k in np.ndindex(*result.shape):
        label = classifier.classes_[k]
        one = new[[i]] if isinstance(new, np.ndarray) else new.iloc[[i]]
        more = np.vstack([rows, one]) if isinstance(rows, np.ndarray) else pd.concat([rows, one], ignore_index=True)
        y = np.append(labels, label)
        left = clone(classifier).fit(more, y).leave_one_out(more, y)
        prior = np.log(
            (np.bincount(left.codes) - np.eye(result.shape[1])[left.codes] + 1) / (len(y) + result.shape[1] - 1)
        )
        if classifier.priors is not None:
            prior = np.log(np.broadcast_to(classifier.priors, left.log_joint.shape))
        joint = prior + getattr(classifier, "exponent_", 1.0) * (left.log_joint - prior)
        own = joint[np.arange(len(y)), left.codes]
        joint[np.arange(len(y)), left.codes] = -np.inf
        score = own - logsumexp(joint, axis=1)
        among = score[np.asarray(y) == label] if by_class else score
        result[i, k] = (among <= score[-1] + 1e-9 * max(1, abs(score[-1]))).mean()
    return result


@pytest.mark.parametrize(("name", "by_class"), [*((name, False) for name in CLASSIFIERS), ("full True", True)])
def test_the_p_value_is_that_of_refitting_with_the_row_under_each_class(name, by_class):
    x = rows_of(name)
    classifier = clone(CLASSIFIERS[name]).fit(x[FEW], Y[FEW])
    found = predict_set(classifier, x[[3, 106]], x[FEW], Y[FEW], 0.5, by_class=by_class)
    np.testing.assert_allclose(
        found.p_value, by_refitting(classifier, x[[3, 106]], x[FEW], Y[FEW], by_class), rtol=1e-9
    )


def test_of_mixed_columns_with_gaps():
    classifier = NB(exponent=0.7).fit(PENGUINS, SPECIES)
    new = bg.data.load("penguins").drop(columns="species").iloc[[0, 8, 11, 275]]
    assert PENGUINS.isna().any(axis=None) and new.isna().any(axis=None)
    found = predict_set(classifier, new, PENGUINS, SPECIES)
    np.testing.assert_allclose(found.p_value, by_refitting(classifier, new, PENGUINS, SPECIES), rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "by_class"), [("full False", False), ("diagonal True", True), ("known classes", False), ("counts", False)]
)
def test_the_true_class_has_every_rank_once(name, by_class):
    """Each of N rows is once the new one: their p-values are the ranks 1/N to 1, so exactly 1 - level are missed.

    No chance is in this: under the true class the N rows and their scores are the same whichever is the new one. Were a
    prior to follow the rows of the fit without the new one, they would not be.
    """
    x, rows = rows_of(name), np.arange(4, 150, 9)
    p = np.empty(len(rows))
    for i in range(len(rows)):
        others = np.delete(rows, i)
        classifier = clone(CLASSIFIERS[name]).fit(x[others], Y[others])
        p[i] = predict_set(classifier, x[rows[[i]]], x[others], Y[others], 0.5, by_class).p_value[0, Y[rows[i]]]
    for group in [rows >= 0] if not by_class else [Y[rows] == k for k in range(3)]:
        ranks = np.arange(1, group.sum() + 1) / group.sum()
        if name == "counts":  # rows that are the same tie, and count against each other
            assert (np.sort(p[group]) >= ranks - 1e-12).all()
        else:
            np.testing.assert_allclose(np.sort(p[group]), ranks, rtol=1e-12)


@pytest.mark.compiles
def test_a_wrong_model_keeps_the_promise_where_its_own_probabilities_break_it():
    """One column, there five times: naive Bayes is much too sure. New fits and new rows, 60 times."""
    rng, held, sure = np.random.default_rng(0), 0, 0
    for _ in range(60):
        y = rng.permutation(np.r_[np.arange(16) % 2, rng.integers(2)])
        x = np.repeat(rng.normal(size=(17, 1)) + y[:, None], 5, axis=1)
        classifier = NB().fit(x[:16], y[:16])
        held += predict_set(classifier, x[16:], x[:16], y[:16], 0.8).contains[0, y[16]]
        probability = classifier.predict_proba(x[16:])[0]
        sure += probability[y[16]] > 0.2 or probability[y[16]] == probability.max()
    assert held / 60 > 0.8 - 5 * np.sqrt(0.8 * 0.2 / 60)
    assert sure < held


def test_a_class_of_too_few_rows_is_in_every_set():
    rows = np.r_[0:50:2, 50:100:2, 100:108]
    classifier = GD("diagonal").fit(X[rows], Y[rows])
    with pytest.warns(
        UserWarning, match=r"level=0.9 asks for 9 known rows of a class: \[2\] have fewer, and are in every"
    ):
        few = predict_set(classifier, X[[1]], X[rows], Y[rows], 0.9, by_class=True)
    assert few.labels == [[0, 2]]  # 8 rows, where 9 are needed for 1/(8 + 1) to be 0.1 or less
    assert predict_set(classifier, X[[1]], X[rows], Y[rows], 0.9).labels == [[0]]


def test_a_level_that_so_few_rows_cannot_meet_is_warned_of():
    rows = np.r_[0:150:20]
    classifier = GD("diagonal").fit(X[rows], Y[rows])
    assert predict_set(classifier, X[[1]], X[rows], Y[rows], 1 - 1 / 9).size < 3  # 1/(8 + 1) is just small enough
    with pytest.warns(
        UserWarning, match="level=0.89 asks for 9 known rows, and there are 8: every set holds all classes"
    ):
        assert predict_set(classifier, X[[1]], X[rows], Y[rows], 0.89).size == 3
    aside = np.r_[1:150:3]
    with pytest.warns(UserWarning, match="level=0.9 asks for 9 groups of known rows, and there are 5"):
        assert predict_set(classifier, X[[2]], X[aside], Y[aside], 0.9, groups=np.arange(50) % 5).size == 3


def test_split_counts_rows_set_aside():
    fit, aside, new = np.r_[0:150:3], np.r_[1:150:3], X[2:150:30]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = bg.AveragedClassifier(members=["gaussian", "category"]).fit(X[fit], Y[fit])
    found = predict_set(classifier, new, X[aside], Y[aside])
    scores = classifier.predict_proba(X[aside])[np.arange(50), Y[aside]]
    p = classifier.predict_proba(new)
    expected = (1 + (scores[:, None, None] <= p).sum(0)) / 51
    np.testing.assert_allclose(found.p_value, expected, atol=1e-12)
    assert (found.size == found.contains.sum(1)).all()


@pytest.mark.filterwarnings("ignore:.*times as far from the middle:UserWarning")
def test_one_row_far_out_leaves_the_scores_of_the_others():
    """All but one are summed: a difference of sums would lose every digit of what a row of 1e5 leaves behind."""
    x = np.vstack([X[FEW], [[1e5, 2e5, -1e5, 1e5]]])
    y = np.append(Y[FEW], 2)
    classifier = GD("full", False, NormalInverseWishart(X.mean(0), 0.1, 6.0, np.eye(4))).fit(x, y)
    found = predict_set(classifier, X[[60]], x, y).p_value
    np.testing.assert_allclose(found, by_refitting(classifier, X[[60]], x, y), rtol=1e-12)
