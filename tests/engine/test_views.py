"""Views of numeric columns: bends, components, completed rows, the order of rows."""

import numpy as np
from engine.test_leave_one_out_engine import vectors

from bayesgen.averaging.view import Filling
from bayesgen.numerics import content_order, folds
from bayesgen.numerics.components import fit_components, nearest_group
from bayesgen.numerics.yeo_johnson import YeoJohnson


def test_warps_are_increasing_and_their_slopes_are_derivatives():
    x = np.random.default_rng(0).normal(size=(40, 21)) * 3
    warp = YeoJohnson(np.zeros(21), np.full(21, 1.5), np.linspace(0, 2, 21))
    step = 1e-6
    slope = (warp.forward(x + step) - warp.forward(x - step)) / (2 * step)
    assert (slope > 0).all()
    np.testing.assert_allclose(warp.log_slope(x), np.log(slope).sum(1), atol=1e-5)
    np.testing.assert_allclose(warp.back(warp.forward(x)), x, atol=1e-10)


def test_a_skewed_column_is_straightened_and_a_normal_one_left():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.exp(rng.normal(size=400)), rng.normal(size=400)])
    power = YeoJohnson.learn(x, np.arange(400) % 2, 2, np.ones(400)).power
    assert power[0] < 0.3 and abs(power[1] - 1) < 0.35
    assert YeoJohnson.learn(x[:1], np.zeros(1, int), 2, np.ones(1)).power.tolist() == [1.0, 1.0]


def test_components_find_what_is_apart():
    rng = np.random.default_rng(0)
    middle = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    x = np.repeat(middle, 20, 0) + rng.normal(size=(60, 2))
    centres, owner = fit_components(x, np.zeros(60, int), 2, np.ones(60), 3)
    assert owner.tolist() == [0, 0, 0, 1]
    assert np.abs(centres[:3, None] - middle).max(2).min(0).max() < 1
    assert len(set(nearest_group(x, np.zeros(60, int), centres, owner))) == 3


def test_completed_entries_have_the_conditional_mean_and_covariance():
    x, codes, weight = vectors(60)
    filling = Filling.learn(x, np.ones(x.shape, bool), codes, 3, weight)
    seen = np.array([[True, False, False]])
    complete, missing = filling.complete(x[:1], seen, codes[:1])
    S, mu = filling.covariance, filling.mean[codes[0]]
    np.testing.assert_allclose(complete[0, 1:], mu[1:] + S[1:, 0] / S[0, 0] * (x[0, 0] - mu[0]))
    extra = missing.moments(complete, codes[:1], 3, np.array([2.0])).scatter[codes[0]]
    np.testing.assert_allclose(extra[1:, 1:], 2 * (S[1:, 1:] - np.outer(S[1:, 0], S[0, 1:]) / S[0, 0]))
    assert not extra[0].any()


def test_rows_come_in_an_order_of_their_own():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (40, 2)).astype(float)
    x[3, 0] = np.nan
    codes, weight = rng.integers(0, 2, 40), rng.uniform(0.5, 2, 40)
    rows = np.column_stack([codes, np.where(np.isnan(x), -1.0, x), weight])
    order = rng.permutation(40)
    first, again = (
        content_order.sorted_rows(np.column_stack([x, weight])[o], codes[o]) for o in (np.arange(40), order)
    )
    np.testing.assert_array_equal(rows[first], rows[order][again])
    assert rows[first].tolist() == sorted(rows.tolist())  # a gap comes first


def test_a_sample_takes_of_each_class_as_many_as_of_any():
    codes = np.repeat([0, 1, 2], [5, 100, 300])
    places = folds.sample(codes, 105, np.random.default_rng(0))
    assert np.bincount(codes[places]).tolist() == [5, 50, 50] and len(set(places)) == 105
    fold = folds.folds(codes, 10)
    counts = np.array([np.bincount(fold[codes == k], minlength=10) for k in range(3)])
    assert (np.ptp(counts, axis=1) <= 1).all()
