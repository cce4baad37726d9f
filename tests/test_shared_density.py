"""Densities of classes that share a covariance, whose rows are whitened once, against each class's own by SciPy."""

import numpy as np
import pytest
from scipy.stats import multivariate_t

from bayesgen import GaussianDiscriminantClassifier


def fitted(apart, seed=0, groups=3, dim=4, offset=0.0):
    rng = np.random.default_rng(seed)
    t = np.arange(60) % groups
    x = rng.normal(size=(60, dim)) @ rng.normal(size=(dim, dim)) + apart * rng.normal(size=(groups, dim))[t] + offset
    model = GaussianDiscriminantClassifier(shared=True).fit(x, t)
    return x, model.posterior_.model.leaves["gaussian"]


@pytest.mark.parametrize("apart", [0.0, 3.0, 100.0, 1e5])  # classes so far apart that digits would cancel, too
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_density_is_that_of_each_class_by_itself(apart, offset):
    x, leaf = fitted(apart, offset=offset)
    each = [
        multivariate_t(m, s, df=v).logpdf(x)
        for m, s, v in zip(
            leaf.mean, np.broadcast_to(leaf.predictive_scale, (3, 4, 4)), leaf.dof * np.ones(3), strict=True
        )
    ]
    np.testing.assert_allclose(leaf.log_predictive(x), np.stack(each, 1), rtol=0, atol=1e-7 * (1 + 1e-6 * apart))


@pytest.mark.parametrize("far", [1e20, 1e155, 1e300])
def test_rows_whose_squares_leave_float64_have_a_density_beside_rows_that_do_not(far):
    x, leaf = fitted(3.0)
    both = leaf.log_predictive(np.vstack([x, np.full((1, 4), far)]))
    np.testing.assert_allclose(both[:-1], leaf.log_predictive(x), rtol=1e-12)
    # Far out the density falls off like |x|^-(dof + D).
    nearer = leaf.log_predictive(np.full((1, 4), far / 10))
    np.testing.assert_allclose(nearer[0] - both[-1], (leaf.dof[0] + 4) * np.log(10), rtol=1e-9)
