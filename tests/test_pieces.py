"""Pieces of the data: in any order they make the whole, and a piece that fails leaves no trace."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from sklearn.base import clone
from test_sklearn import FITTED, GD, IRIS, NB, SPECIES, answer, table

from bayesgen import LinearRegressor
from bayesgen.models import DirichletCategorical


def same(a, b):
    """Compare models field by field, to 1e-12 of each array's size."""
    assert a.leaves.keys() == b.leaves.keys()
    for mine, other in [(a.classes, b.classes), *((a.leaves[name], b.leaves[name]) for name in a.leaves)]:
        assert type(mine) is type(other)
        for name, value in vars(mine).items():
            theirs = getattr(other, name)
            if isinstance(value, np.ndarray):
                np.testing.assert_allclose(value, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())
            else:
                assert value == theirs


STREAMS = [NB(), NB(inference="map"), NB(inference="ml"), NB({"rings": "poisson"}, priors=[0.2, 0.3, 0.5])]
STREAMS += [
    GD(),
    GD(shared=True),
    GD("diagonal"),
    GD("isotropic"),
    GD(inference="map"),
    GD(shared=True, inference="ml"),
]


@pytest.mark.parametrize("estimator", STREAMS, ids=str)
@pytest.mark.filterwarnings("ignore:columns .* are constant:UserWarning")
def test_pieces_make_the_whole_in_any_order(estimator):
    X, y = table()
    if isinstance(estimator, GD):  # offsets, where sums would cancel
        X = pd.DataFrame({"u": X["height"].fillna(10.0) + 1e6, "v": X["rings"].fillna(7).astype(float)})
    weight = np.random.default_rng(1).integers(0, 3, 90) + 1.0
    whole = clone(estimator).fit(X, y, sample_weight=weight)
    order = np.random.default_rng(0).permutation(90)
    if estimator.inference in ("ml", "map"):  # the first piece alone must have an estimate
        first = np.concatenate([np.flatnonzero(y == k)[:20] for k in np.unique(y)])
        order = np.concatenate([first, np.setdiff1d(order, first)])
    streamed = clone(estimator)
    for rows in np.split(order, [60, 61, 75]):
        streamed.partial_fit(X.iloc[rows], y[rows], classes=["ash", "birch", "oak"], sample_weight=weight[rows])
    same(streamed.model_, whole.model_)
    if estimator.inference == "exact":
        same(streamed.posterior_.model, whole.posterior_.model)
        assert streamed.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-12)
    np.testing.assert_allclose(streamed.predict_proba(X), whole.predict_proba(X), rtol=1e-9)


def test_gaps_come_in_pieces():
    """A full covariance keeps moments by pattern of gaps: pieces may bring new patterns."""
    X = np.where(np.random.default_rng(0).random(IRIS.shape) < 0.15, np.nan, IRIS + 1e3)
    streamed, whole = GD(inference="map"), GD(inference="map").fit(X, SPECIES)
    order = np.random.default_rng(1).permutation(150)
    for rows in np.split(order, [90, 91, 120]):
        streamed.partial_fit(X[rows], SPECIES[rows], classes=[0, 1, 2])
    one, two = (c.statistics_.leaves["gaussian"] for c in (streamed, whole))
    assert one.patterns == two.patterns
    for name in ("n", "mean", "scatter"):
        mine, theirs = getattr(one.moments, name), getattr(two.moments, name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())
    np.testing.assert_allclose(streamed.predict_proba(X), whole.predict_proba(X), rtol=1e-7, atol=1e-12)  # EM to 1e-11


def test_a_stream_goes_on_from_a_fit_and_a_fit_begins_anew():
    X, y = table()
    whole = NB().fit(X, y)
    on = NB().fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    same(on.posterior_.model, whole.posterior_.model)
    same(on.fit(X[::2], y[::2]).posterior_.model, NB().fit(X[::2], y[::2]).posterior_.model)


def test_declared_categories_may_come_later():
    first, later = pd.DataFrame({"c": ["u", "v"]}), pd.DataFrame({"c": ["w", "u"]})
    with pytest.raises(ValueError, match=r"column 'c': 'w' in row 0 is not one of the categories.*first fit"):
        NB().fit(first, [0, 1]).partial_fit(later, [0, 1])
    levels = pd.CategoricalDtype(["u", "v", "w"])
    by_type = NB().partial_fit(first.astype(levels), [0, 1], classes=[0, 1]).partial_fit(later.astype(levels), [0, 1])
    leaf = NB({"c": DirichletCategorical(1.0, ["u", "v", "w"])})
    by_leaf = leaf.partial_fit(first, [0, 1], classes=[0, 1]).partial_fit(later, [0, 1])
    whole = NB().fit(pd.concat([first, later]), [0, 1, 0, 1])
    for classifier in (by_type, by_leaf):
        np.testing.assert_allclose(classifier.predict_proba(first), whole.predict_proba(first), rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"y": ["ash", "elm"]}, r"labels \['elm'\], which are not among the classes \['ash', 'birch', 'oak'\]"),
        ({"classes": ["ash", "oak"]}, r"classes are \['ash', 'birch', 'oak'\] since the first call"),
        ({"X": table()[0][["soil"]][:2]}, "now missing"),
        ({"X": table()[0][:2].assign(soil="peat")}, "column 'soil': 'peat' in row 0 is not one of the categories"),
        ({"X": table()[0][:2].assign(height=np.inf)}, "column 'height'.*infinite"),
        ({"y": ["ash"]}, "X has 2 rows and y has 1"),
        ({"sample_weight": [1.0, -1.0]}, "sample_weight must hold one finite number >= 0"),
        ({"y": [None, "ash"]}, "missing labels"),
    ],
)
def test_a_piece_that_fails_leaves_no_trace(arguments, words):
    X, y = table()
    classifier = NB().fit(X, y)
    before, state = classifier.predict_proba(X), vars(classifier).copy()
    refuses(lambda: classifier.partial_fit(**({"X": X[:2], "y": y[:2]} | arguments)), words)
    assert vars(classifier) == state
    np.testing.assert_array_equal(classifier.predict_proba(X), before)


@pytest.mark.parametrize(("estimator", "X", "y"), FITTED)
def test_a_refit_that_fails_leaves_the_fit_before(estimator, X, y):
    fitted = clone(estimator).fit(X, y)
    before = answer(fitted, X)
    wrong = np.full((4, 7), np.inf)
    for broken in (wrong, np.ones((4, 7), dtype=object), pd.DataFrame(wrong).rename(columns=str)):
        with pytest.raises((ValueError, TypeError)):
            fitted.fit(broken, [0, 0, 1, 1], sample_weight=[1, 1, 1, -1])
        refuses(lambda: clone(fitted).set_params(inference="mcmc").fit(X, y), "inference must be")
        np.testing.assert_array_equal(answer(fitted, X), before)
    fitted.set_params(inference="mcmc")
    refuses(lambda: fitted.fit(X[:50], y[:50]), "inference must be")
    np.testing.assert_array_equal(answer(fitted, X), before)


# -- threads


class Slow:
    """Rows whose reading waits until it may end."""

    def __init__(self, rows):
        self.rows, self.begun, self.may_end = rows, threading.Event(), threading.Event()

    def __array__(self, dtype=None, copy=None):
        self.begun.set()
        assert self.may_end.wait(20)
        return np.array(self.rows, dtype)


@pytest.mark.parametrize("estimator", [NB(), GD(), LinearRegressor(), NB(inference="map")], ids=str)
@pytest.mark.parametrize("first", [True, False])
def test_a_second_thread_is_refused_while_one_learns(estimator, first):
    """The rows of one of the two would be lost; the first goes on, and afterwards the second may."""
    X, y = np.array([[0.0], [1.0], [2.5], [3.0]]), np.array([0, 1, 0, 1])
    classes = {} if isinstance(estimator, LinearRegressor) else {"classes": [0, 1]}
    estimator, slow = clone(estimator), Slow(X)
    if not first:
        estimator.partial_fit(X, y, **classes)
    with ThreadPoolExecutor() as threads:
        learning = threads.submit(estimator.partial_fit, slow, y, **classes)
        assert slow.begun.wait(20)
        for change in (estimator.partial_fit, estimator.fit):
            with pytest.raises(RuntimeError, match=r"another thread .* one thread at a time .* sum\(estimators\)"):
                change(X, y)
        slow.may_end.set()
        learning.result()
    assert estimator.partial_fit(X, y).total_weight_ == (8 if first else 12)


def test_of_many_threads_no_row_is_lost_in_silence():
    """Rows that were not refused were learned."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), np.arange(2000) % 2
    classifier = GD().partial_fit(X, y, classes=[0, 1])

    def learn(_):
        try:
            classifier.partial_fit(X, y)
        except RuntimeError:
            return 0
        return len(y)

    with ThreadPoolExecutor(8) as threads:
        learned = sum(threads.map(learn, range(64)))
    assert classifier.total_weight_ == len(y) + learned
