"""Gaussians of many columns in the coordinates that rows span: equal to the same members with whole matrices."""

import numpy as np
import pytest
from scipy.stats import multivariate_t

from bayesgen.averaging.gaussian import KAPPAS, GaussianMember
from bayesgen.averaging.rows import HeldOut, Rows
from bayesgen.averaging.training import Training
from bayesgen.averaging.views import FittedView
from bayesgen.averaging.wide import WideView

MEMBERS = tuple(
    GaussianMember(structure, rho, kappa, shrinkage)
    for structure, shrinkage in (("full", 0.1), ("full", 0.4), ("full", 1.0), ("shared", 1.0))
    for rho in (2.0, 32.0)
    for kappa in KAPPAS
)
EVERY = np.arange(len(MEMBERS))


def table(n=15, dim=40, classes=3, seed=0, gaps=0.0, weights=False, groups=None):
    rng = np.random.default_rng(seed)
    codes = np.sort(np.arange(n) % classes)
    x = rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim)) + rng.normal(size=(classes, dim))[codes] * 3
    x[rng.random(x.shape) < gaps] = np.nan
    weight = rng.choice([0.5, 1.0, 2.0], n) if weights else np.ones(n)
    group = None if groups is None else rng.integers(groups, size=n)
    return Rows(x, np.empty((n, 0), int), codes, weight, (), classes, group)


def both(training):
    return WideView.fit(MEMBERS, training), FittedView.fit(MEMBERS, training, 1, np.random.default_rng(0))


@pytest.mark.parametrize("n", [15, 60])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_new_rows_have_the_density_of_whole_matrices(n, gaps):
    rows = table(n, weights=True)
    new = table(20, seed=1, gaps=gaps).x
    new[0], new[1, :3] = np.nan, [1e120, -1e90, 3e110]
    wide, whole = both(Training(rows, rows))
    expected = whole.log_density(new, rows.c, EVERY)
    np.testing.assert_allclose(wide.log_density(new, rows.c, EVERY), expected, rtol=1e-9, atol=1e-9)


def test_the_density_is_that_of_scipy():
    rows = table()
    wide, whole = both(Training(rows, rows, bend=False))
    y = wide.view.warp.forward(table(4, seed=1).x)
    found = wide.log_density(wide.view.warp.back(y), rows.c, EVERY)
    for m in range(len(MEMBERS)):
        own = whole.posterior(m)
        for g in range(3):
            k, dof, scale = own.kappa[g], np.ravel(own.dof)[g % np.size(own.dof)], own.scale[g % len(own.scale)]
            density = multivariate_t(own.mean[g], scale * (k + 1) / (k * dof), dof).logpdf(y)
            np.testing.assert_allclose(found[m, :, g], density, rtol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"weights": True}, {"groups": 6}, {"n": 60}, {"classes": 8}])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_row_leaves_by_subtraction_as_if_it_had_not_been_there(settings, gaps):
    for i in range(0, 60 if "n" in settings else 15, 7):
        rows = table(**settings)
        rows.x[i, ::3] = np.nan if gaps else rows.x[i, ::3]
        held = HeldOut.of(rows, [i])
        rest = held.rest(0)  # the scale is learned without the row, like the bends
        left = WideView.fit(MEMBERS, Training(rest, rows)).left_out(held)
        anew = both(Training(rest, rest))[1].log_density(held.rows.x, held.rows.c, EVERY)
        np.testing.assert_allclose(left, anew, rtol=1e-9, atol=1e-9)


def test_a_row_that_holds_all_of_the_spread_leaves_without_loss_of_digits():
    rows = table()
    rows.x[7] *= 1e7
    held = HeldOut.of(rows, [7])
    rest = held.rest(0)
    left = WideView.fit(MEMBERS, Training(rest, rows, bend=False)).left_out(held)
    anew = both(Training(rest, rest, bend=False))[1].log_density(held.rows.x, held.rows.c, EVERY)
    np.testing.assert_allclose(left, anew, rtol=1e-9)
