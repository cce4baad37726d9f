"""Rows that agree are rows: laws over tables of few values whose truth is known, and over weights of every kind.

``python tests/engine/test_rows_that_agree.py`` writes docs/reliability/rows-that-agree.csv, of 40 fits a kind.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from bayesgen import AveragedClassifier, NaiveBayesClassifier
from bayesgen.averaging import learning
from bayesgen.tables.repeats import columns_of, repeats

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

TABLE = Path(__file__).parents[2] / "docs" / "reliability" / "rows-that-agree.csv"
NEW = 4000


def cells(rng, rows):
    """Two columns of few whole numbers; each cell has a probability of its own."""
    sizes = rng.integers(3, 13, 2)
    share = rng.beta(1, 1, sizes)
    place = rng.integers(sizes, size=(rows, 2))
    return pd.DataFrame(place.astype(float), columns=["shop", "product"]), share[tuple(place.T)]


def named_cells(rng, rows):
    """The same as categories."""
    X, p = cells(rng, rows)
    return X.astype(int).astype(str), p


def symptoms(rng, rows):
    """Six to twelve answers of yes and no, independent among the ill and the others: naive Bayes is the truth."""
    count, ill = rng.integers(6, 13), rng.random(rows) < 0.35
    often, seldom = rng.uniform(0.3, 0.8, count), rng.uniform(0.02, 0.3, count)
    yes = rng.random((rows, count)) < np.where(ill[:, None], often, seldom)
    odds = np.log(0.35 / 0.65) + np.where(yes, np.log(often / seldom), np.log((1 - often) / (1 - seldom))).sum(1)
    return pd.DataFrame(np.where(yes, "yes", "no")).add_prefix("s"), expit(odds), ill


def likert(rng, rows):
    """Six to twelve answers from 1 to 5 that depend on one trait, and a tenth of people who answer all alike."""
    count, trait = rng.integers(6, 13), rng.normal(size=rows)
    answers = np.clip(
        np.round(3 + trait[:, None] * rng.uniform(0.5, 1.5, count) + 0.7 * rng.normal(size=(rows, count))), 1, 5
    )
    alike = rng.random(rows) < 0.1
    answers[alike] = rng.integers(1, 6, alike.sum())[:, None]
    return pd.DataFrame(answers).add_prefix("q"), expit(answers[:, :3].sum(1) - 9)


def counts(rng, rows):
    """Two to four counts, Poisson within the classes."""
    count, y = rng.integers(2, 5), rng.random(rows) < 0.4
    first, second = rng.uniform(0.3, 3, (2, count))
    x = rng.poisson(np.where(y[:, None], first, second))
    odds = np.log(0.4 / 0.6) + (x * np.log(first / second) - first + second).sum(1)
    return pd.DataFrame(x.astype(float)).add_prefix("n"), expit(odds), y


KINDS = (cells, named_cells, symptoms, likert, counts)


def drawn(kind, seed, rows, noise=False):
    """Rows, classes, and the true probability of the second, of a table and of new rows."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    X, p, *y = kind(rng, rows + NEW)
    y = y[0] if y else rng.random(rows + NEW) < p
    X = X.assign(noise=rng.normal(size=len(X))) if noise else X
    y = np.where(y, "yes", "no")
    return (X[:rows], y[:rows]), (X[rows:], y[rows:]), p[rows:]


def score(classifier, X, y):
    """The mean log score of rows, and its standard error."""
    p = classifier.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(classifier.classes_, y)]
    return p.mean(), p.std() / np.sqrt(len(p))


def fits(kind, count, **settings):
    """Return of each fit the score told, its error, the score and its error, that of naive Bayes, and of the truth."""
    result = []
    for seed in range(count):
        rows = (100, 250, 600, 1200)[seed % 4]
        (X, y), (new, truth), p = drawn(kind, seed, rows, noise=seed % 8 > 3)
        classifier = AveragedClassifier(**settings).fit(X, y)
        told, (found, error) = classifier.scores_, score(classifier, new, truth)
        simple, _ = score(NaiveBayesClassifier().fit(X, y), new, truth)
        best = np.log(np.where(truth == "yes", p, 1 - p).clip(1e-300)).mean()
        result.append((told["nested"], told["nested_error"], found, error, simple, best))
    return pd.DataFrame(result, columns=["told", "told_error", "score", "error", "naive", "best"])


def holds(frame):
    """True where the score that is told is that of new rows, within 1.64 errors of both."""
    return (frame.told - frame.score).abs() <= 1.64 * np.hypot(frame.told_error, frame.error)


# -- a row is a row ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:no member predicts")
@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_predicted_as_they_are_and_no_better_is_told(kind):
    frame = fits(kind, 4, members=["generative"])
    assert (frame.score > frame.naive - 0.03).all()
    assert ((frame.told - frame.score) < 2.6 * np.hypot(frame.told_error, frame.error)).all()


@pytest.mark.filterwarnings("ignore:no member predicts")
@pytest.mark.parametrize(("limit", "rows"), [("small", 90), ("small", 110), ("_HALF", 300), ("_FOLDED", 300)])
def test_counts_as_weights_are_rows_written_out(limit, rows, monkeypatch):
    """On both sides of numbers of rows that decide: boosted trees from 100 on, folds from 1,000, views from 5,000."""
    (X, y), (new, _), _ = drawn(named_cells, 3, rows)
    table = X.assign(y=y).groupby([*X, "y"]).size().reset_index(name="n")
    written = table.loc[table.index.repeat(table.n)]
    for below in (False, True) if limit != "small" else (False,):
        if limit != "small":
            monkeypatch.setattr(learning, limit, 299 if below else 301)
        of_counts = AveragedClassifier().fit(table[[*X]], table.y, table.n.astype(float))
        of_rows = AveragedClassifier().fit(written[[*X]], written.y)
        np.testing.assert_allclose(of_counts.predict_proba(new), of_rows.predict_proba(new), atol=1e-10)
        assert of_counts.scores_["nested"] == pytest.approx(of_rows.scores_["nested"], abs=1e-10)


def test_more_rows_by_weight_than_are_written_out_leave_one_by_one():
    """Of three million people in eight cells one leaves at a time, as of three thousand."""
    X = pd.DataFrame({"dose": [0.0, 1.0, 2.0, 3.0] * 2, "sex": list("ffffmmmm")})
    share = np.array([0.1, 0.3, 0.5, 0.9, 0.2, 0.3, 0.4, 0.6])
    rows, y = pd.concat([X, X]), np.repeat(["yes", "no"], 8)
    for people in (3e3, 3e6):
        weight = np.concatenate([share, 1 - share]) * people / 8
        classifier = AveragedClassifier(members=["generative", "forest"]).fit(rows, y, np.rint(weight))
        assert classifier.average_.class_weight.sum() == people
        np.testing.assert_allclose(classifier.predict_proba(X)[:, 1], share, atol=0.05)
        expected = -(share * np.log(share) + (1 - share) * np.log(1 - share)).mean()
        assert -classifier.scores_["nested"] == pytest.approx(expected, abs=3 * classifier.scores_["nested_error"])


def test_a_forest_grows_on_rows_and_asks_those_that_did_not_draw_a_row():
    (X, y), (new, truth), p = drawn(cells, 1, 1200)
    classifier = AveragedClassifier(members=["forest"]).fit(X, y)
    found, _ = score(classifier, new, truth)
    assert found > np.log(np.where(truth == "yes", p, 1 - p)).mean() - 0.05
    assert abs(classifier.scores_["nested"] - found) < 3 * classifier.scores_["nested_error"]


# -- copies ------------------------------------------------------------------------------------------------------------


def found(X, y):
    """What is found of rows that repeat another."""
    return repeats(columns_of(X), np.unique(y, return_inverse=True)[1])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_agree_are_no_copies(kind):
    """Nothing is told of 60 tables a kind, of 60 to 2,000 rows."""
    tables = (drawn(kind, seed, (60, 150, 300, 1000, 2000)[seed % 5])[0] for seed in range(60))
    assert not [str(what) for what in (found(X, y) for X, y in tables) if what]


@pytest.mark.parametrize("how", ["all", "half", "noise"])
def test_copies_beside_a_continuous_column_are_found(how):
    for seed in range(20):
        rows = (40, 100, 300, 1000)[seed % 4]
        (X, y), _, _ = drawn(KINDS[seed % len(KINDS)], seed, rows)
        rng = np.random.default_rng(seed)
        X = X.assign(weight=rng.normal(60, 9, rows))
        chosen = rng.permutation(rows)[: rows // 2] if how == "half" else np.arange(rows)
        twice = pd.concat([X, X.iloc[chosen]], ignore_index=True)
        if how == "noise":
            twice["weight"] *= 1 + 1e-6 * 9 / 60 * rng.normal(size=len(twice))
        copies = found(twice, np.append(y, y[chosen])).copies
        assert (copies[rows:] == copies[chosen]).all()


# -- weights -----------------------------------------------------------------------------------------------------------


def balanced(rng, y, p):
    """scikit-learn's weights, under which both classes weigh the same."""
    return 0.5 / np.bincount(y)[y] * len(y)


def log_normal(rng, y, p):
    """Weights that say nothing of row or class."""
    return rng.lognormal(0, 0.8, len(y))


def inverse_probability(rng, y, p):
    """Weights of rows of which some were more likely to be sampled."""
    return 1 / np.clip(expit(2 * rng.normal(size=len(y))), 0.1, 1)


WEIGHTS = (balanced, log_normal, inverse_probability)


def weighted(kind, seed, factor=1.0, **settings):
    """Return the score told of rows with weights, its error, the score of new rows, weighted alike, and its error."""
    rng = np.random.default_rng([WEIGHTS.index(kind), seed])
    rows = (60, 120, 240, 400)[seed % 4]
    y = (rng.random(rows + NEW) < (0.15 if kind is balanced else 0.4)).astype(int)
    X = pd.DataFrame({"x": rng.normal(y), "z": rng.normal(-y, 1.5), "w": rng.normal(size=len(y))})
    w, v = kind(rng, y[:rows], None), kind(rng, y[rows:], None)
    classifier = AveragedClassifier(**settings).fit(X[:rows], y[:rows], factor * w)
    p = classifier.predict_log_proba(X[rows:])[np.arange(NEW), y[rows:]]
    found = np.average(p, weights=v)
    error = np.sqrt((v**2 * (p - found) ** 2).sum()) / v.sum()
    return classifier.scores_["nested"], classifier.scores_["nested_error"], found, error


COLUMNS = ["told", "told_error", "score", "error"]


@pytest.mark.filterwarnings("ignore:no member predicts")
@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_row_of_any_weight_does_not_predict_itself(kind):
    frame = pd.DataFrame([weighted(kind, seed, members=["gaussian"]) for seed in range(8)], columns=COLUMNS)
    assert holds(frame).sum() >= 5 and (frame.told - frame.score).mean() < 0.06


@pytest.mark.filterwarnings("ignore:no member predicts")
def test_weights_times_a_number_say_the_same_of_the_score():
    once, much = (weighted(log_normal, 2, factor, members=["forest"]) for factor in (1.0, 1000.7))
    np.testing.assert_allclose(once[:2], much[:2], rtol=0.02)  # the class prior is the surer, the more rows weigh


# -- the long forms ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_the_score_that_is_told_is_that_of_new_rows(kind):
    frame = fits(kind, 40)
    assert holds(frame).mean() >= 0.78
    if kind is symptoms:
        assert (frame.score - frame.naive).mean() > -0.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WEIGHTS)
def test_the_score_that_is_told_under_weights_is_that_of_new_rows(kind):
    frame = pd.DataFrame([weighted(kind, seed) for seed in range(40)], columns=COLUMNS)
    assert holds(frame).mean() >= 0.85


def main(count: int) -> None:
    """Write a line for each kind of table and of weights."""
    lines = []
    for kind in (*KINDS, *WEIGHTS):
        frame = fits(kind, count) if kind in KINDS else None
        if frame is None:
            frame = pd.DataFrame([weighted(kind, seed) for seed in range(count)], columns=COLUMNS)
        line = {"rows or weights": kind.__name__.replace("_", " "), "fits": count}
        line |= {"told": -frame.told.mean(), "new rows": -frame.score.mean()}
        if "naive" in frame:
            line |= {"naive Bayes": -frame.naive.mean(), "truth": -frame.best.mean()}
        lines.append(line | {"within 1.64 errors": f"{holds(frame).mean():.0%}"})
        pd.DataFrame(lines).round(3).to_csv(TABLE, index=False)
        print(lines[-1], flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if sys.argv[1:] else 40)
