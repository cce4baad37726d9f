"""Averages of weighted rows, and of so many rows that none need be left out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen.averaging.member_rows import HeldOut, Rows

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers


def noise(weight):
    """Rows of three classes that tell nothing of them, and their weights."""
    y = np.r_[np.zeros(20, int), np.ones(19, int), np.full(18, 2)]
    return np.random.default_rng(0).normal(size=(57, 6)), y, np.full(57, weight)


@pytest.mark.parametrize("weight", [1 / 60, 0.05, 0.1, 1.0])
def test_every_row_leaves_the_fit_that_predicts_it(weight):
    x, y, weights = noise(weight)
    rows = Rows(x, np.empty((57, 0), np.intp), y, weights, (), 3)
    held = HeldOut.balanced(rows, np.arange(57))
    for i, departure in enumerate(held.without):
        assert i in held.places[held.gone_with == departure]


@pytest.mark.parametrize("weight", [1 / 57, 0.1])
def test_weights_may_sum_to_one(weight):
    x, y, weights = noise(weight)
    fitted = bg.AveragedClassifier(members=["gaussian"]).fit(x, y, sample_weight=weights)
    assert fitted.scores_["nested"] < fitted.scores_["base_rate"] + 0.01  # noise tells nothing
    np.testing.assert_allclose(fitted.predict_proba(x).sum(1), 1.0)


@pytest.mark.parametrize("weight", [1e9, 1e13])
def test_rows_of_any_weight_choose_members(weight):
    X, y = load_iris(return_X_y=True)
    X += np.random.default_rng(0).normal(0, 0.01, X.shape)  # then the equations for 1e13 were singular
    fitted = bg.AveragedClassifier(members="generative").fit(X, y, sample_weight=np.full(150, weight))
    assert fitted.weights_.sum() == pytest.approx(1.0)
    assert fitted.scores_["base_rate"] + 0.2 < fitted.scores_["average"] < 0


def test_gaps_where_groups_are_so_heavy_that_no_row_is_left_out():
    rng, y = np.random.default_rng(0), np.arange(60) % 3
    X = pd.DataFrame({"age": rng.normal(size=60) + y, "town": rng.choice(list("abc"), 60)})
    X.loc[::10, "age"] = np.nan
    fitted = bg.AveragedClassifier(members="generative").fit(X, y, sample_weight=np.full(60, 1000.0))
    assert np.isfinite(fitted.predict_proba(X)).all()


def test_many_small_classes_bring_no_warnings():
    y = np.repeat(np.arange(30), 2)
    X = np.random.default_rng(0).normal(size=(60, 4)) + y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bg.AveragedClassifier().fit(X, y)
