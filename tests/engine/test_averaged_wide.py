"""Gaussians of many columns in the coordinates that rows span: equal to the same members with whole matrices."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refuses, refuses_parts
from scipy import sparse
from scipy.special import softmax as shares
from scipy.stats import multivariate_t
from sklearn.base import clone

from bayesgen import AveragedClassifier, inspection, load
from bayesgen.averaging import softmax
from bayesgen.averaging.fitted_view import FittedView
from bayesgen.averaging.gaussians import KAPPAS, GaussianMember
from bayesgen.averaging.member_rows import HeldOut, Rows
from bayesgen.averaging.softmax import SoftmaxMember
from bayesgen.averaging.view import Training
from bayesgen.averaging.wide import WideView
from bayesgen.core import memory

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

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
    return WideView.fit(MEMBERS, training), FittedView.fit(MEMBERS, training, 1)


@pytest.mark.parametrize("n", [15, 60])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_new_rows_have_the_density_of_whole_matrices(n, gaps):
    rows = table(n, weights=True)
    new = table(20, seed=1, gaps=gaps).x
    new[0], new[1, :3] = np.nan, [1e120, -1e90, 3e110]
    new[4:9, np.isnan(new[3])] = np.nan  # rows that lack the same, but one that lacks an entry more
    new[8, 0] = np.nan
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
        rest = held.others(0)  # the scale is learned without the row, like the bends
        left = WideView.fit(MEMBERS, Training(rest, rows)).loo_log_density(held)
        anew = both(Training(rest, rest))[1].log_density(held.rows.x, held.rows.c, EVERY)
        np.testing.assert_allclose(left, anew, rtol=1e-9, atol=1e-9)


def test_a_row_that_holds_all_of_the_spread_leaves_without_loss_of_digits():
    rows = table()
    rows.x[7] *= 1e3
    held = HeldOut.of(rows, [7])
    rest = held.others(0)
    left = WideView.fit(MEMBERS, Training(rest, rows, bend=False)).loo_log_density(held)
    anew = both(Training(rest, rest, bend=False))[1].log_density(held.rows.x, held.rows.c, EVERY)
    np.testing.assert_allclose(left, anew, rtol=1e-9)


# -- as members of an average


def wide_table(n=36, dim=110, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, dim)) + (rng.normal(size=(3, dim)) * (np.arange(dim) < 40))[y], y


@pytest.fixture(scope="module")
def fitted():
    X, y = wide_table()
    return AveragedClassifier(members=["gaussian", "softmax"]).fit(X[:30], y[:30])


def test_wide_gaussians_take_part_and_answer_questions(fitted, tmp_path):
    X, y = wide_table()
    table = fitted.summary()
    assert {"full", "shared", "diagonal", "shared diagonal"} <= {*table["covariance"].dropna()}
    assert table.loc[table["covariance"].isin(["full", "shared"]), "weight"].sum() > 0.3
    assert fitted.score(X[30:], y[30:]) == 1
    fitted.save(tmp_path / "wide.safetensors")
    assert (tmp_path / "wide.safetensors").stat().st_mode & 0o777 == 0o600  # it holds the rows
    np.testing.assert_array_equal(load(tmp_path / "wide.safetensors").predict_proba(X), fitted.predict_proba(X))
    gone = X[30:32].copy()
    gone[0], gone[1, 5] = np.nan, np.nan
    probability = fitted.predict_proba(gone)
    np.testing.assert_allclose(probability[0], 1 / 3, rtol=1e-9)  # a row without entries has the class prior
    assert np.isfinite(inspection.impute(fitted, gone)).all() and fitted.sample(3)[0].shape == (3, 110)
    assert fitted.predict_proba_interval(X[30:]).shape == (6, 3, 2)
    assert np.nanmax(inspection.next_measurement(fitted, gone[1:])) >= 0
    families = {own.attrs.get("family") for own in fitted.to_arviz().children.values()}
    assert not families & {"full", "shared"}  # their parameters are too many to be drawn


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda part: {"weight": part.weight[1:]}, r"WideView\.weight are not finite"),
        (lambda part: {"codes": part.codes + 1}, r"WideView\.codes are no places"),
        (lambda part: {"scale": 0 * part.scale}, r"WideView\.scale have entries"),
        (lambda part: {"view": replace(part.view, owner=part.view.owner[1:])}, "other classes"),
    ],
)
def test_a_file_of_wide_gaussians_that_do_not_fit_is_refused(fitted, tmp_path, change, words):
    refuses_parts(fitted, WideView, change, words, tmp_path / "wide.safetensors")


def test_order_of_columns_and_names_of_classes_change_nothing(fitted):
    X, y = wide_table()
    other = np.random.default_rng(1).permutation(110)
    again = AveragedClassifier(members=["gaussian", "softmax"]).fit(X[:30][::-1, other], 2 - y[:30][::-1])
    np.testing.assert_allclose(again.predict_proba(X[:, other])[:, ::-1], fitted.predict_proba(X), rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")
@pytest.mark.filterwarnings("ignore:.*(rows|by weight) repeat another:UserWarning")
def test_a_weight_of_two_is_two_rows_and_a_group_leaves_as_a_whole():
    X, y = wide_table(24, 120)
    weight = 1 + np.arange(24) % 2
    base = AveragedClassifier(members=["gaussian"])
    twice = clone(base).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).predict_proba(X)
    np.testing.assert_allclose(clone(base).fit(X, y, weight).predict_proba(X), twice, atol=1e-8)
    siblings = np.repeat(X[:12], 2, axis=0) + 1e-3 * np.random.default_rng(0).normal(size=X.shape)
    labels = np.random.default_rng(1).permutation(np.arange(12) % 2)
    grouped = clone(base).fit(siblings, np.repeat(labels, 2), groups=np.arange(24) // 2)
    alone = clone(base).fit(siblings, np.repeat(labels, 2))
    assert alone.scores_["nested"] > grouped.scores_["nested"] + 0.1  # a sibling tells the class of a row


@pytest.mark.parametrize("classes", [2, 3])
def test_softmax_members_of_many_levels_are_those_at_which_the_penalised_likelihood_is_flat(classes, monkeypatch):
    rng = np.random.default_rng(classes)
    n, levels, members = 400, (300, 40), (SoftmaxMember(0.1), SoftmaxMember(10.0))
    codes, weight = np.arange(n) % classes, rng.uniform(0.5, 2.0, n)
    c = np.column_stack([rng.integers(-1, count, n) for count in levels])
    rows = Rows(rng.normal(size=(n, 2)) + codes[:, None], c, codes, weight, levels, classes)
    asked = []
    told = SimpleNamespace(**vars(sparse) | {"csr_array": lambda z: asked.append(z.shape) or sparse.csr_array(z)})
    monkeypatch.setattr(softmax, "sparse", told)
    (fitted,) = SoftmaxMember.fit([members], Training(rows, rows))
    assert asked == [(n, 1 + 2)]  # the matrix of all levels is never dense
    hot = [(c[:, j, None] == np.arange(count)).astype(float) for j, count in enumerate(levels)]
    z = np.concatenate([np.ones((n, 1)), (fitted.warp.forward(rows.x) - fitted.centre) / fitted.scale, *hot], axis=1)
    for member, b in zip(members, fitted.coefficients, strict=True):
        penalty = np.where(np.arange(z.shape[1]) == 0, 0.01, 1 / member.strength)
        wrong = weight[:, None] * (shares(z @ b.T, axis=1) - np.eye(classes)[codes])
        assert np.abs(wrong.T @ z + b * penalty).max() < 1e-3 * weight.sum() / n
    expected = np.log(shares(z @ np.swapaxes(fitted.coefficients, 1, 2), axis=2)) - fitted.log_prior
    np.testing.assert_allclose(fitted.log_density(rows.x, c, np.arange(2)), expected, atol=1e-11)


def test_softmax_members_are_the_same_in_the_span_of_the_rows(monkeypatch):
    X, y = wide_table()
    rows = Rows(X, np.empty((36, 0), int), y, np.ones(36), (), 3)
    (own,) = SoftmaxMember.fit(SoftmaxMember.propose(rows, None), Training(rows, rows))
    monkeypatch.setattr(softmax, "WIDE", 110)
    (whole,) = SoftmaxMember.fit(SoftmaxMember.propose(rows, None), Training(rows, rows))
    new = wide_table(seed=1)[0]
    found, expected = (part.log_density(new, rows.c, np.arange(5)) for part in (own, whole))
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert own.coefficients.shape == whole.coefficients.shape == (5, 3, 111)


def test_a_table_that_memory_does_not_hold_is_refused_first(monkeypatch):
    X, y = wide_table()
    monkeypatch.setattr(memory, "available", lambda: 10**6)
    refuses(lambda: AveragedClassifier().fit(X, y), r"36 rows of 110 numeric columns would take .* of memory")


def test_thousands_of_columns():
    X, y = wide_table(20, 3000)
    classifier = AveragedClassifier(members=["gaussian"]).fit(X, y)
    assert classifier.scores_["nested"] > classifier.scores_["base_rate"]


FAR = np.where(np.arange(12)[:, None] == 0, 1e12, 1.0)


@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")
@pytest.mark.filterwarnings("ignore:.*as far from the middle:UserWarning")
@pytest.mark.parametrize(
    ("rows", "y", "settings"),
    [
        (slice(2), [0, 1], {}),
        (slice(3), [0, 1, 1], {}),
        (slice(12), [0] * 11 + [1], {}),
        (np.repeat([0, 1], 6), np.arange(12) % 2, {}),
        (FAR, np.arange(12) % 2, {}),
        (FAR, np.arange(12) % 2, {"bend": False}),
        (slice(12), np.arange(12) % 2, {"weights": "evidence"}),
    ],
    ids=["two rows", "three rows", "a class of one row", "repeats", "a row far away", "and no bends", "evidence"],
)
def test_any_wide_table(rows, y, settings):
    X = np.random.default_rng(0).normal(size=(12, 130))
    X = X * rows if rows is FAR else X[rows]
    classifier = AveragedClassifier(members=["gaussian"], **settings).fit(X, y)
    new = np.random.default_rng(1).normal(size=(3, 130))
    new[0, :9] = 1e200
    for some in (X, new):
        np.testing.assert_allclose(classifier.predict_proba(some).sum(1), 1)
    assert np.isfinite(classifier.scores_["nested"])
