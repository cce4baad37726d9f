"""The choice of the row to label next: against the information worked out on a grid of the parameters."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import entr
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen.inspection import next_labels

X, Y = load_iris(return_X_y=True)
COINS = np.array([[1, 0], [1, 1], [0, 1], [1, 0], [0, 0], [0, 1], [0, 1]], bool)
FACES = np.array([0, 0, 0, 0, 1, 1, 1])
NEW = np.array([[1, 0], [0, 0], [1, 1], [0, 1]], bool)
GRID = (np.arange(24) + 0.5) / 24


def coin_information(rows):
    """I(labels; θ | x) of two coins in each of two classes, by summing over a grid of their four probabilities."""
    counts = [[(COINS[FACES == k, j] == v).sum() for v in (True, False)] for k in (0, 1) for j in (0, 1)]
    weights = [stats.beta(1 + a, 1 + b).pdf(GRID) for a, b in counts]
    weight = np.einsum("a,b,c,d->abcd", *weights).ravel()
    theta = np.stack(np.meshgrid(*[GRID] * 4, indexing="ij")).reshape(2, 2, -1)  # class, column
    joint = [0.5 * np.prod([theta[:, j] if row[j] else 1 - theta[:, j] for j in (0, 1)], axis=0) for row in rows]
    for own in joint:
        weight = weight * own.sum(0)
    weight /= weight.sum()
    share = [own / own.sum(0) for own in joint]  # p(t | x, θ), (2, θ)
    labels = np.stack(
        [np.prod([s[k] for s, k in zip(share, labels, strict=True)], axis=0) for labels in np.ndindex(*[2] * len(rows))]
    )
    known = sum(weight @ entr(s).sum(0) for s in share)
    return entr(labels @ weight).sum() - known


def coins(exponent=1.0):
    return bg.NaiveBayesClassifier("bernoulli", priors=[0.5, 0.5], exponent=exponent, random_state=0).fit(COINS, FACES)


def test_the_information_is_that_of_a_grid():
    found = next_labels(coins(), NEW, 3, size=20_000)
    alone = [coin_information(NEW[[i]]) for i in range(4)]
    assert found.rows[0] == np.argmax(alone)
    for count in (1, 2, 3):
        assert found.information[count - 1] == pytest.approx(coin_information(NEW[found.rows[:count]]), abs=0.01)
    pairs = [coin_information(NEW[[found.rows[0], i]]) for i in range(4) if i != found.rows[0]]
    assert found.information[1] == pytest.approx(max(pairs), abs=0.01)
    assert (found.effective < 20_000).all()


def test_labellings_that_are_drawn_say_the_same(monkeypatch):
    exact = next_labels(coins(), NEW[[0, 1, 2, 3, 0, 1]], 6, size=2000)
    monkeypatch.setattr("bayesgen.inspection.labelling._LABELLINGS", 32)
    drawn = next_labels(coins(), NEW[[0, 1, 2, 3, 0, 1]], 6, size=2000)
    np.testing.assert_array_equal(drawn.rows[:4], exact.rows[:4])
    np.testing.assert_allclose(drawn.information, exact.information, atol=0.05)


def test_a_batch_does_not_repeat_itself():
    """The second pick is no copy among many copies of the best row and one of the second best."""
    classifier = coins()
    alone = [next_labels(classifier, NEW[[i]], size=5000).information[0] for i in range(4)]
    best, other = np.argsort(alone)[[-1, -2]]
    rows = np.concatenate([np.repeat(NEW[[best]], 5, axis=0), NEW[[other]]])
    assert list(next_labels(classifier, rows, 2, size=5000).rows) in ([0, 5], [5, 0])


@pytest.mark.parametrize("classifier", [
    *(bg.GaussianDiscriminantClassifier(c, s) for c in ("full", "diagonal", "isotropic") for s in (False, True)),
    bg.AveragedClassifier(members=["gaussian"]), bg.NaiveBayesClassifier(exponent=0.5)])  # fmt: skip
def test_what_lies_between_the_classes_tells_more_than_what_lies_in_them(classifier):
    classifier.set_params(random_state=0).fit(X[50::12, 2:], Y[50::12])
    centres = [X[50:100, 2:].mean(0), X[100:, 2:].mean(0)]
    found = next_labels(classifier, [*centres, np.mean(centres, axis=0)], 3, size=500)
    if not hasattr(classifier, "average_"):  # its members differ in more than where the classes meet
        assert found.rows[0] == 2
    assert (found.information > 0).all() and (np.diff(found.information) > -0.02).all()
