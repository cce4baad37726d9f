"""An interval holds its probability, has a width, and holds the true probability of simulated rows as often as it says.

``python tests/test_intervals.py`` writes docs/reliability/intervals.csv, of 12 fits of the default average a cell.
"""

import itertools
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, log_softmax, logsumexp, softmax
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import bayesgen as bg
from bayesgen.inspection.probabilities import shifted, shortest

TABLE = Path(__file__).parents[1] / "docs" / "reliability" / "intervals.csv"


# -- the shift -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("classes", "draws", "spread"), [(2, 1000, 1), (2, 20, 20), (3, 1000, 30), (7, 50, 5)])
def test_draws_shifted_on_the_log_odds_have_the_mean_and_keep_their_distances(classes, draws, spread, rows=40):
    rng = np.random.default_rng(classes)
    log_q = log_softmax(rng.normal(size=(draws, rows, classes)) * spread + rng.normal(size=(rows, classes)), axis=2)
    log_p = log_softmax(rng.normal(size=(rows, classes)) * rng.choice([1, 5, 30], (rows, 1)), axis=1)
    moved = shifted(log_q, np.exp(log_p))
    np.testing.assert_allclose(np.log(moved.mean(0)), log_p, rtol=0, atol=1e-9)
    with np.errstate(divide="ignore"):
        shift = np.log(moved) - log_q
    shift -= shift[..., :1]
    known = np.isfinite(shift).all(2) & (moved > 1e-290).all(2)  # smaller ones have few digits
    assert known.mean() > 0.5
    for row in range(rows):
        assert np.ptp(shift[known[:, row], row], axis=0).max(initial=0) < 1e-8  # one shift for all draws


@pytest.mark.parametrize("tiny", [1e-15, 1e-100, 1e-250])
def test_shifts_reach_the_rarest_classes_and_leave_out_the_impossible(tiny):
    rng = np.random.default_rng(0)
    log_q = log_softmax(rng.normal(size=(500, 3, 3)) * 4, axis=2)
    log_q[0, :, 2] = -np.inf  # one draw that rules a class out
    mean = np.array([[1 - tiny, tiny, 0.0], [0.0, 1.0, 0.0], [0.2, 0.7, 0.1]])
    moved = shifted(log_q, mean)
    np.testing.assert_allclose(moved.mean(0), mean, rtol=1e-9)
    interval = shortest(moved, mean, 0.9)
    assert ((interval[..., 0] <= mean) & (mean <= interval[..., 1])).all()
    assert (moved[:, :2, 2] == 0).all() and (moved[0, 2, 2] < 1e-250) and interval[0, 1, 0] < interval[0, 1, 1]


def test_the_shortest_interval_is_the_shortest_of_all_that_hold_the_mean():
    rng = np.random.default_rng(1)
    drawn = expit(rng.normal(size=(41, 30, 2)) * 3)
    mean = drawn.mean(0)
    found = shortest(drawn, mean, 0.8)
    for row, k in itertools.product(range(30), range(2)):
        values, p = drawn[:, row, k], mean[row, k]
        pairs = [(a, b) for a in values for b in values if a <= p <= b and ((a <= values) & (values <= b)).sum() >= 33]
        assert np.diff(found[row, k])[0] == pytest.approx(min(b - a for a, b in pairs), rel=1e-12)


# -- every probability lies within its interval ------------------------------------------------------------------------


def numbers(load, n=40, seed=0):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order[:n]], y[order[:n]], X[order[n : n + 60]]


def answers(classes=2, n=60, columns=6, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, 2 * n)
    share = rng.dirichlet(np.ones(3), (classes, columns))
    X = [[rng.choice(list("xyz"), p=share[k, j]) for j in range(columns)] for k in y]
    table = pd.DataFrame(X).add_prefix("q")
    return table[:n], y[:n], table[n:]


def gaps():
    X, y, new = numbers(load_wine, 60)
    return X, y, np.where(np.random.default_rng(2).random(new.shape) < 0.4, np.nan, new)


AVERAGE, NAIVE, DISCRIMINANT = bg.AveragedClassifier, bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
TABLES = {
    "average, iris": (AVERAGE(), numbers(load_iris)),
    "average, wine with gaps": (AVERAGE(), gaps()),
    "average, answers": (AVERAGE(), answers()),
    "average, four classes": (AVERAGE(), answers(4, 90)),
    "average, generative": (AVERAGE(members="generative"), numbers(load_breast_cancer, 100)),
    "average, other classes": (AVERAGE(priors=[0.9, 0.09, 0.01]), numbers(load_iris)),
    "average by evidence": (AVERAGE(weights="evidence", members="generative"), numbers(load_wine)),
    "forests alone": (AVERAGE(members=["forest"]), numbers(load_breast_cancer)),
    "softmax and boosted trees": (AVERAGE(members=["softmax", "boosted"]), numbers(load_breast_cancer, 120)),
    "naive Bayes, thirty columns": (NAIVE(), numbers(load_breast_cancer)),
    "naive Bayes, tempered": (NAIVE(exponent=0.3), numbers(load_wine)),
    "naive Bayes, answers": (NAIVE(), answers(3)),
    "naive Bayes, other classes": (NAIVE(priors=[1e-9, 1 - 1e-9]), answers()),
    "naive Bayes, a class ruled out": (NAIVE(priors=[0.5, 0.5, 0.0]), numbers(load_iris)),
    "discriminant, few rows": (DISCRIMINANT(), numbers(load_wine, 20)),
    "discriminant, shared": (DISCRIMINANT(shared=True), numbers(load_iris)),
    "discriminant, gaps": (DISCRIMINANT(), gaps()),
    "latent classes": (bg.LatentClassClassifier(classes=2, inference="laplace"), (answers()[0], None, answers()[2])),
    "logistic": (bg.LogisticClassifier(inference="laplace"), numbers(load_breast_cancer, 80)),
    "ordered": (bg.OrderedClassifier(inference="laplace", order=[0, 1, 2]), numbers(load_iris)),
    "NUTS": (NAIVE(inference=bg.NUTS(200, 200, 2)), numbers(load_iris)),
}


SLOW = {"logistic", "ordered", "NUTS", "latent classes", "average, wine with gaps", "average, generative"}
MARKED = [pytest.param(name, marks=[pytest.mark.compiles] if name in SLOW else []) for name in TABLES]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MARKED)
def test_every_probability_lies_within_its_interval(name):
    classifier, (X, y, new) = TABLES[name]
    classifier = classifier.set_params(random_state=0).fit(X, y)
    p = classifier.predict_proba(new)
    for level, size in ((0.9, 1000), (0.5, 40)):
        interval = classifier.predict_proba_interval(new, level=level, size=size)
        low, high = np.moveaxis(interval, -1, 0)
        rounding = 1e-15 * p
        assert ((low - rounding <= p) & (p <= high + rounding)).all()
        assert (0 <= low).all() and (high <= 1).all()
        assert (low < high)[(p > 0) & (p < 1 - 1e-14)].all()
    k = p[0].argmax()
    said = classifier.explain(new, row=0) if name != "latent classes" else None
    assert said is None or said.interval == tuple(classifier.predict_proba_interval(new[:1])[0, k])


# -- the spread of members whose parameters cannot be drawn ------------------------------------------------------------


def test_the_spread_of_a_regression_is_that_of_its_laplace_approximation():
    """A row's label moves its log odds by their variance, which the second derivatives give besides."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 4))
    y = (rng.random(150) < expit(x @ [1.0, -0.7, 0.4, 0.0])).astype(int)
    average = bg.AveragedClassifier(members=["softmax"], bend=False, random_state=0).fit(x, y).average_
    (fitted,) = (part for part in average.parts if len(part.members) > 1)
    z = (x - fitted.centre) / fitted.scale
    z = np.column_stack([np.ones(150), z])
    place = len(fitted.members) // 2  # the prior variance 1 of a coefficient
    p = softmax(z @ fitted.coefficients[place].T, axis=1)[:, 1]
    strength = fitted.members[place].strength
    # of two classes b_1 = -b_0: the log odds have coefficients 2 b_1, of prior variance 2 C
    precision = z.T @ (z * (p * (1 - p))[:, None]) + np.diag([0.005, *[0.5 / strength] * 4])
    variance = np.einsum("ni,ij,nj->n", z, np.linalg.inv(precision), z)
    expected = np.sqrt(np.average(variance, weights=p * (1 - p)) / 2)  # log odds are the difference of two
    members = average.members
    found = average.spread[members.index(fitted.members[place])]
    assert found == pytest.approx(expected, rel=0.25)


def test_spreads_are_saved(tmp_path):
    X, y, new = numbers(load_iris)
    classifier = AVERAGE(random_state=0).fit(X, y)
    classifier.save(tmp_path / "iris.safetensors")
    again = bg.load(tmp_path / "iris.safetensors")
    np.testing.assert_array_equal(again.predict_proba_interval(new), classifier.predict_proba_interval(new))


# -- the truth ---------------------------------------------------------------------------------------------------------


def gaussian(rng, classes=2, columns=3, shared=False):
    mean, shares = rng.normal(size=(classes, columns)) * 0.9, rng.dirichlet(np.full(classes, 8.0))
    root = rng.normal(size=(classes, columns, columns)) * 0.4 + np.eye(columns)
    root = np.broadcast_to(root[:1], root.shape) if shared else root

    def draw(n):
        y = rng.choice(classes, n, p=shares)
        return mean[y] + np.einsum("nij,nj->ni", root[y], rng.normal(size=(n, columns))), y

    def truth(x):
        z = np.einsum("kij,nkj->nki", np.linalg.inv(root), x[:, None] - mean)
        return softmax(np.log(shares) - np.linalg.slogdet(root)[1] - 0.5 * (z**2).sum(2), axis=1)

    return draw, truth


def mixture(rng, classes=2, columns=2):
    mean, size = rng.normal(size=(classes, 2, columns)) * 1.5, rng.uniform(0.5, 1.0, (classes, 2))
    part, shares = rng.dirichlet([4, 4], classes), rng.dirichlet(np.full(classes, 8.0))

    def draw(n):
        y = rng.choice(classes, n, p=shares)
        c = (rng.random(n) > part[y, 0]).astype(int)
        return mean[y, c] + size[y, c, None] * rng.normal(size=(n, columns)), y

    def truth(x):
        square = ((x[:, None, None] - mean) ** 2).sum(3) / size**2
        return softmax(np.log(shares) + logsumexp(np.log(part) - columns * np.log(size) - square / 2, axis=2), axis=1)

    return draw, truth


def categories(rng, classes=2, columns=5):
    share, shares = rng.dirichlet(np.full(3, 1.5), (classes, columns)), rng.dirichlet(np.full(classes, 8.0))

    def draw(n):
        y = rng.choice(classes, n, p=shares)
        return (rng.random((n, columns, 1)) > share[y].cumsum(2)).sum(2), y

    def truth(x):
        return softmax(np.log(shares) + np.log(share[:, np.arange(columns), x]).sum(2).T, axis=1)

    return draw, truth


def logistic(rng, columns=8):
    weights, intercept = np.r_[rng.normal(size=3) * 1.2, np.zeros(columns - 3)], rng.normal() * 0.5

    def truth(x):
        return softmax(np.column_stack([np.zeros(len(x)), intercept + x @ weights]), axis=1)

    def draw(n):
        x = rng.normal(size=(n, columns))
        return x, (rng.random(n) < truth(x)[:, 1]).astype(int)

    return draw, truth


KINDS = {
    "Gaussian classes": gaussian,
    "three classes, one covariance": lambda rng: gaussian(rng, 3, 4, True),
    "mixtures": mixture,
    "categories": categories,
    "logistic, five of eight columns noise": logistic,
}


def held(kind, n, seed, classifier=AVERAGE, new=100):
    """Return shares of probabilities: the truth within the interval, within .001 of it, p without; and the width."""
    rng = np.random.default_rng([seed, n, len(kind)])
    draw, truth = KINDS[kind](rng)
    x, y = draw(n)
    while np.bincount(y, minlength=len(truth(x)[0])).min() < 2:
        x, y = draw(n)
    t, _ = draw(new)

    def frame(values):
        table = pd.DataFrame(values).add_prefix("x")
        return table.map("c{}".format) if kind == "categories" else table

    fitted = classifier(random_state=0).fit(frame(x), y)
    p, expected = fitted.predict_proba(frame(t)), truth(t)
    low, high = np.moveaxis(fitted.predict_proba_interval(frame(t)), -1, 0)
    near = [(low - off <= expected) & (expected <= high + off) for off in (0, 1e-3)]
    return [*(v.mean() for v in near), ((p < low - 1e-12) | (p > high + 1e-12)).mean(), (high - low).mean()]


@pytest.mark.filterwarnings("ignore")
def test_intervals_hold_the_true_probability_of_simulated_rows():
    """Of one fit in five the share is below .7, so the mean of four may be two standard errors of .08 below .85."""
    found = np.array([held(kind, 100, 0) for kind in list(KINDS)[:4]])
    assert found[:, 1].mean() >= 0.85 - 2 * 0.08 and not found[:, 2].any()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_the_true_probability_of_each_kind(kind):
    found = np.array([held(kind, n, seed) for n in (40, 100, 200, 400) for seed in range(12)])
    assert found[:, 1].mean() >= 0.85 and not found[:, 2].any()


def main(fits=12) -> None:
    """Write the table."""
    rows = []
    for kind, n in itertools.product(KINDS, (40, 100, 200, 400)):
        exact, near, outside, width = np.mean([held(kind, n, seed) for seed in range(fits)], axis=0)
        figures = {"hold the truth": f"{exact:.0%}", "to .001": f"{near:.0%}", "without p": f"{outside:.0%}"}
        rows.append({"truth": kind, "rows": n, "fits": fits} | figures | {"mean width": round(width, 3)})
        pd.DataFrame(rows).to_csv(TABLE, index=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*map(int, sys.argv[1:]))
