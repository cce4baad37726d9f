"""The engine of the averaged classifier: leave-one-out against refits, densities of many members at once."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from bayesgen.averaging import fitted_view, students
from bayesgen.averaging.categories import CategoryMembers
from bayesgen.averaging.densities import RADIUS, Marginals
from bayesgen.averaging.fitted_view import FittedView
from bayesgen.averaging.gaussians import GaussianMember
from bayesgen.averaging.member import Setting, adding
from bayesgen.averaging.member_rows import HeldOut, Rows
from bayesgen.averaging.students import Reference, Together, log_density
from bayesgen.averaging.view import Training, View
from bayesgen.models.moments import moments
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart

NONE = np.empty((0, 0), int)


def table(x, codes, weight, c=None, levels=()):
    """Rows of three classes, as members take them."""
    c = np.empty((len(x), 0), int) if c is None else c
    return Rows(x, c, codes, weight, levels, 3)


MEMBERS = GaussianMember.propose(table(np.zeros((3, 3)), np.arange(3), np.ones(3)), Setting())[0]
EVERY = np.arange(len(MEMBERS))


def vectors(n=30, dim=3, groups=3, seed=0, gaps=False):
    """Correlated rows, codes of their groups, and weights."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % groups
    x = rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim)) + 2 * codes[:, None]
    if gaps:
        x[rng.random(x.shape) < 0.25] = np.nan
    return x, codes, rng.uniform(0.3, 3.0, n)


def viewed(x, codes, weight, count=1, bend=False):
    """A view of the rows with ``count`` components a class."""
    rows = table(x, codes, weight)
    return View.learn(Training(rows, rows, bend), count)


def fit(view, x, codes, weight):
    """The view with the statistics of the rows."""
    return FittedView(view, MEMBERS, view.sum_rows(table(x, codes, weight)))


def held(rows, removed):
    """Each row held out by itself, with the weight that leaves."""
    every = HeldOut.of(rows, np.arange(len(rows)))
    return replace(every, gone=rows.take(slice(None), removed))


def without(view, x, codes, weight, removed, i):
    """The view fitted to all rows but i, whose weight falls by ``removed``."""
    rest = weight.copy()
    rest[i] -= removed
    kept = rest > 1e-12
    return fit(view, x[kept], codes[kept], rest[kept])


# -- leaving rows out


@pytest.mark.parametrize("waiting", [1 << 20, 2000, 0])
@pytest.mark.parametrize(("count", "gaps", "dim"), [(1, False, 1), (1, True, 3), (3, False, 3), (3, True, 4)])
def test_rows_of_several_folds_wait_for_each_other_and_get_what_each_fold_gives(count, gaps, dim, waiting, monkeypatch):
    monkeypatch.setattr(students, "_WAITING", waiting)
    x, codes, weight = vectors(45, dim, seed=count, gaps=gaps)
    rows, together, found, expected = table(x, codes, weight), Together(), [], []
    for fold, places in enumerate(np.array_split(np.random.default_rng(dim).permutation(len(x)), 4)):
        fitted = fit(viewed(*(np.delete(a, places, 0) for a in (x, codes, weight)), count, True), x, codes, weight)
        out = HeldOut.balanced(rows, places) if fold % 2 else HeldOut.of(rows, places)
        expected.append(fitted.loo_log_density(out))
        found.append(np.zeros_like(expected[-1]))
        fitted.leave_out(out, adding(found[-1], np.arange(len(places))), together)
        expected.append(fitted.log_density(x[places], NONE, EVERY))
        found.append(np.zeros_like(expected[-1]))
        fitted.log_density_later(x[places], NONE, adding(found[-1], np.arange(len(places))), together)
    together.finish()
    for own, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, right, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("whole", [True, False])
def test_leave_one_out_is_a_refit(count, gaps, whole, monkeypatch):
    monkeypatch.setattr(HeldOut, "others", lambda self, b: pytest.fail("nothing is lost here"))
    x, codes, weight = vectors(gaps=gaps)
    view = viewed(x, codes, weight, count, bend=True)
    fitted = fit(view, x, codes, weight)
    removed = weight if whole else np.minimum(weight, 1.0)
    left = fitted.loo_log_density(held(table(x, codes, weight), removed))
    for i in range(0, len(x), 4):
        expected = without(view, x, codes, weight, removed[i], i).log_density(x[i : i + 1], NONE, EVERY)[:, 0]
        np.testing.assert_allclose(left[:, i], expected, rtol=1e-9, atol=1e-9)


def assert_groups_leave(view, rows):
    x, codes, weight = rows.x, rows.codes, rows.weight
    left = fit(view, x, codes, weight).loo_log_density(HeldOut.of(rows, np.arange(len(x))))
    for own in (rows.group == g for g in np.unique(rows.group)):
        refit = fit(view, x[~own], codes[~own], weight[~own])
        np.testing.assert_allclose(left[:, own], refit.log_density(x[own], NONE, EVERY), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("gaps", [False, True])
def test_leaving_out_a_group_is_a_refit(count, gaps):
    x, codes, weight = vectors(gaps=gaps)
    group = np.random.default_rng(3).integers(0, 9, len(x))  # most hold rows of all classes
    rows = replace(table(x, codes, weight), group=group)
    assert_groups_leave(viewed(x, codes, weight, count, bend=True), rows)


def test_a_group_that_holds_a_class_or_the_spread_leaves_too():
    x, codes, weight = vectors()
    x[codes == 2, 0] += 1e7  # nearly all squares of the column come from the class
    group = np.where(codes == 2, 0, 1 + np.arange(len(x)) % 5)
    assert_groups_leave(viewed(x, codes, weight), replace(table(x, codes, weight), group=group))


@pytest.mark.parametrize("count", [1, 3])
def test_a_row_leaves_with_one_row_of_each_other_class_as_in_a_refit(count):
    x, codes, weight = vectors(25)
    codes = np.repeat([0, 1, 2], [12, 8, 5])
    view = viewed(x, codes, weight, count)
    even = HeldOut.balanced(table(x, codes, weight), np.arange(25))
    left = fit(view, x, codes, weight).loo_log_density(even)
    for i in range(25):
        own = even.gone_with == even.without[i]
        assert i in even.places[own] and sorted(codes[even.places[own]]) == [0, 1, 2]
        kept = np.delete(np.arange(25), even.places[own])
        expected = fit(view, x[kept], codes[kept], weight[kept]).log_density(x[i : i + 1], NONE, EVERY)[:, 0]
        np.testing.assert_allclose(left[:, i], expected, rtol=1e-9, atol=1e-9)


def test_a_row_that_classes_share_leaves_whole_with_one_of_each_other_class_as_in_a_refit():
    """Rows 0 to 23 have two classes each, of shares .75 and .25; each departure takes one of each largest share."""
    x, largest, _ = vectors(24)
    group, shares = np.repeat(np.arange(24), 2), np.tile([0.75, 0.25], 24)
    codes = np.column_stack([largest, (largest + 1) % 3]).ravel()
    rows = replace(table(x[group], codes, shares), group=group, shared=True)
    view = viewed(x[group], codes, shares)
    even = HeldOut.balanced(rows, np.arange(48))
    left = fit(view, rows.x, codes, shares).loo_log_density(even)
    for i in range(48):
        gone = even.places[even.gone_with == even.without[i]]
        assert i in gone and len(gone) == 6 and sorted(largest[np.unique(group[gone])]) == [0, 1, 2]
        kept = np.delete(np.arange(48), gone)
        refit = fit(view, rows.x[kept], codes[kept], shares[kept])
        expected = refit.log_density(rows.x[i : i + 1], NONE, EVERY)[:, 0]
        np.testing.assert_allclose(left[:, i], expected, rtol=1e-9, atol=1e-9)


def test_of_a_row_that_counts_as_several_one_leaves():
    x, codes, _ = vectors()
    times = np.random.default_rng(2).integers(1, 5, len(x)).astype(float)
    view, rows = viewed(x, codes, times), replace(table(x, codes, times), counted=True)
    left = fit(view, x, codes, times).loo_log_density(HeldOut.of(rows, np.arange(len(x))))
    for i in range(0, len(x), 4):
        expected = without(view, x, codes, times, 1.0, i).log_density(x[i : i + 1], NONE, EVERY)[:, 0]
        np.testing.assert_allclose(left[:, i], expected, rtol=1e-9, atol=1e-9)


def test_rows_of_equal_classes_leave_with_rows_of_their_fold():
    x, codes, weight = vectors(30)
    fold = np.arange(30) // 3 % 5
    even = HeldOut.balanced(table(x, codes, weight), np.arange(30), fold)
    assert len(even.gone_with) == 30 and (fold[even.places] == fold[even.places[:10]][even.gone_with]).all()


def test_a_class_of_one_row_leaves_only_when_it_is_predicted():
    x, codes, _ = vectors(13)
    codes = np.where(np.arange(13) == 5, 2, codes % 2)
    even = HeldOut.balanced(table(x, codes, np.ones(13)), np.arange(13))
    assert np.flatnonzero(even.places == 5).size == 1 and even.gone_with[even.places == 5] == even.without[5]
    some = even.take(np.arange(13) < 4)
    assert len(some) == 4 and [*np.bincount(some.gone.codes, minlength=2)[:2]] == [len(set(some.without))] * 2


def test_groups_of_one_row_are_rows():
    x, codes, weight = vectors(gaps=True)
    rows = table(x, codes, weight)
    fitted = fit(viewed(x, codes, weight), x, codes, weight)
    alone = fitted.loo_log_density(held(rows, weight))
    grouped = fitted.loo_log_density(HeldOut.of(replace(rows, group=np.arange(len(x))[::-1]), np.arange(len(x))))
    np.testing.assert_allclose(grouped, alone, rtol=0.02)  # what completed entries add to the scatter leaves too


@pytest.mark.parametrize("count", [1, 3])
def test_of_many_rows_one_leaves_its_group_and_the_prior_keeps_it(count, monkeypatch):
    x, codes, weight = vectors(60)
    rows = table(x, codes, weight)
    fitted = fit(viewed(x, codes, weight, count, bend=True), x, codes, weight)
    exact = fitted.loo_log_density(held(rows, np.minimum(weight, 1.0)))
    monkeypatch.setattr(fitted_view, "_SETTLED", 0)
    left = fitted.loo_log_density(held(rows, np.minimum(weight, 1.0)))
    for i in range(0, len(x), 7):
        rest = weight.copy()
        rest[i] -= min(weight[i], 1.0)
        kept = rest > 0
        statistics = fitted.view.sum_rows(table(x[kept], codes[kept], rest[kept]))
        y, n = fitted.view.warp.forward(x[i : i + 1]), students.weights(statistics) + 1
        share = n / np.bincount(fitted.view.owner, n)[fitted.view.owner]
        for m, member in enumerate(MEMBERS):
            if member.diagonal:
                np.testing.assert_allclose(left[m, i], exact[m, i], rtol=1e-12)
                continue
            density = member.prior(fitted.reference).update(statistics).log_predictive(y)[0]
            expected = [logsumexp(density[own], b=share[own]) for own in np.equal.outer(range(3), fitted.view.owner)]
            np.testing.assert_allclose(left[m, i], expected, rtol=1e-9)


def test_leaving_out_a_class_of_one_row_leaves_its_prior():
    x, codes, weight = vectors(13)
    codes = np.where(np.arange(13) == 5, 2, codes % 2)
    view = viewed(x, codes, weight)
    left = fit(view, x, codes, weight).loo_log_density(held(table(x, codes, weight), weight))
    expected = without(view, x, codes, weight, weight[5], 5).log_density(x[5:6], NONE, EVERY)[:, 0]
    np.testing.assert_allclose(left[:, 5], expected, rtol=1e-9, atol=1e-9)
    assert np.isfinite(left).all()


def test_where_subtraction_loses_digits_the_rows_are_summed_anew(monkeypatch):
    x, codes, weight = vectors()
    x[7] = 1e7  # makes up all the squares there are
    view = viewed(x, codes, weight)
    fitted, called = fit(view, x, codes, weight), []
    monkeypatch.setattr(HeldOut, "others", lambda self, b, made=HeldOut.others: called.append(b) or made(self, b))
    left = fitted.loo_log_density(held(table(x, codes, weight), weight))
    expected = without(view, x, codes, weight, weight[7], 7).log_density(x[7:8], NONE, EVERY)[:, 0]
    np.testing.assert_allclose(left[:, 7], expected, rtol=1e-9)
    assert called == [7]


@pytest.mark.parametrize(("columns", "groups"), [(1, None), (4, None), (3, 7)])
def test_leaving_out_rows_or_groups_of_categories_is_a_refit(columns, groups):
    rng = np.random.default_rng(0)
    levels = np.array([2, 3, 4, 2])[:columns]
    x = np.stack([rng.integers(-1, n, 40) for n in levels], axis=1)
    codes, weight = np.arange(40) % 3, rng.uniform(0.3, 2.0, 40)
    rows = table(np.empty((40, 0)), codes, weight, x, tuple(levels))
    group = np.arange(40) if groups is None else rng.integers(0, groups, 40)
    out = held(rows, weight) if groups is None else HeldOut.of(replace(rows, group=group), np.arange(40))
    left = CategoryMembers.of(x, levels, codes, 3, weight).loo_log_density(out)
    for own in (group == g for g in np.unique(group)):
        rest = CategoryMembers.of(x[~own], levels, codes[~own], 3, weight[~own])
        expected = rest.log_density(None, x[own], np.arange(len(rest.members)))
        np.testing.assert_allclose(left[:, own], expected, rtol=1e-9, atol=1e-9)


# -- the members


@pytest.mark.parametrize("gaps", [False, True])
def test_one_factorisation_for_all_kappas_is_the_predictive_of_the_models(gaps):
    x, codes, weight = vectors()
    rows = vectors(60, seed=1, gaps=gaps)[0]
    fitted = fit(viewed(x, codes, weight), x, codes, weight)
    y, seen = fitted.view.read(rows)
    found = log_density(MEMBERS, fitted.reference, y, seen)
    for place, own in enumerate(found):
        expected = fitted.posterior(place).log_predictive(np.where(np.isnan(rows), np.nan, y))
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seen", [[0], [1, 2], [0, 1, 2]])
@pytest.mark.parametrize("count", [1, 2])
def test_rows_that_all_lack_the_same_are_complete_rows_of_fewer_columns(count, seen):
    x, codes, weight = vectors()
    fitted = fit(viewed(x, codes, weight, count), x, codes, weight)
    rows = np.full_like(x[:20], np.nan)
    rows[:, seen] = x[:20, seen]
    rows[0, seen] *= 1e3  # not near
    y, some = fitted.view.read(rows)[0], EVERY
    alone = fit(fitted.view, x, codes, weight)  # asked for all patterns of gaps, one after the other
    for other in ([0], [1], [2], [0, 1], [0, 2]):
        lacking = np.full_like(x[:9], np.nan)
        lacking[:, other] = x[:9, other]
        alone.log_density(lacking, NONE, some)
    found = fitted.log_density(rows, NONE, some)
    np.testing.assert_array_equal(alone.log_density(rows, NONE, some), found)
    owner, n = fitted.view.owner, fitted.statistics.n + 1
    for own, place in zip(found, some, strict=True):
        density = fitted.posterior(place).log_predictive(np.where(np.isnan(rows), np.nan, y)) + np.log(n)
        expected = [logsumexp(density[:, owner == k], axis=1) - np.log(n[owner == k].sum()) for k in range(3)]
        np.testing.assert_allclose(own, np.transpose(expected), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weight, narrow", [(1.0, 1.0), (1e4, 1.0), (1.0, 1e-3), (1e4, 1e-7)])
@pytest.mark.parametrize("count", [1, 2])
def test_many_groups_in_one_product_keep_their_digits(count, weight, narrow, monkeypatch):
    x, codes, _ = vectors(60, 4, seed=3)
    x[:, 3] = x[:, 0] + narrow * x[:, 3]  # nearly the same as another
    weights = np.full(60, weight)
    view = viewed(x, codes, weights, count)
    rng = np.random.default_rng(5)
    rows = np.concatenate([x, x[:5] * 40, np.where(rng.random((9, 4)) < 0.3, np.nan, x[:9])])
    found = fit(view, x, codes, weights)
    some = np.array([0, 3, 5, 20, 25, 28, 34, 38, 39])
    every = found.log_density(rows, NONE, some)
    models = found.engines.models(some)
    assert sorted(place for places, _ in models for place in places) == [*range(len(some))]
    assert sum(isinstance(model, NormalInverseWishart) for _, model in models) == 1
    assert len(models) == 2
    alone = found.log_density(rows[:1], NONE, some)
    np.testing.assert_allclose(alone, every[:, :1], rtol=0, atol=1e-12)
    monkeypatch.setattr(NormalInverseWishart, "_quadratic", None)  # whitens, group by group
    plain = fit(view, x, codes, weights).log_density(rows, NONE, some)
    np.testing.assert_allclose(every, plain, rtol=1e-9, atol=1e-9)  # rows far out and with gaps among them
    near = RADIUS**2 * 4 >= (found.view.read(x)[0] ** 2).sum(1)
    assert near.mean() > 0.8
    every, plain = every[:, : len(x)][:, near], plain[:, : len(x)][:, near]
    np.testing.assert_allclose(every, plain, rtol=1e-14, atol=4e-12)
    q, p = (np.exp(v - logsumexp(v, axis=2, keepdims=True)) for v in (every, plain))
    np.testing.assert_allclose(q, p, rtol=0, atol=1e-12)


@pytest.mark.parametrize("columns", [4, 9, pytest.param(40, marks=pytest.mark.compiles)])
@pytest.mark.parametrize("count", [1, 2])
def test_what_rows_lack_is_eliminated_for_all_groups_at_once(count, columns):
    x, codes, weight = vectors(300, columns, seed=5)
    x[:, 1] = x[:, 0] + 0.01 * x[:, 1]  # nearly the same as another: the means given the seen entries may be far out
    view, some = viewed(x, codes, weight, count), np.array([0, 1, 3, 6, 9, 16, 17, 27, 33])
    new = np.where(np.random.default_rng(6).random(x.shape) < 0.4, np.nan, x)
    new[0], new[1, 1:], new[2, 1:], new[2, 0] = np.nan, np.nan, np.nan, 1e4  # nothing, one entry, one that is far out
    fitted = fit(view, x, codes, weight)
    kind = np.flatnonzero([not fitted.members[m].diagonal for m in some])
    served = next(places for places, form in fitted.engines.marginals(some, kind) if form is not None)
    assert len(served) > 4
    found = fitted.log_density(new, NONE, some)
    np.testing.assert_allclose(found[:, 0], 0.0, atol=1e-14)
    alone = [fitted.log_density(row, NONE, some) for row in new[:, None]]
    np.testing.assert_allclose(np.concatenate(alone, axis=1), found, rtol=1e-13, atol=4e-12)
    y = np.where(np.isnan(new), np.nan, fitted.view.read(new)[0])
    plain = np.array([fitted.posterior(m).log_predictive(y) for m in some])  # a factor of the block of each pattern
    np.testing.assert_allclose(found, fitted.mix(plain, fitted.log_share, 2), rtol=1e-13, atol=4e-12)


def test_marginals_are_those_of_scipy():
    x, codes, weight = vectors(200, 12, seed=8)
    fitted, rng = fit(viewed(x, codes, weight, 1), x, codes, weight), np.random.default_rng(9)
    models = [fitted.posterior(m) for m in (0, 13)]
    places, form = Marginals.of_models(models, fitted.reference)
    seen = rng.random(x.shape) > np.linspace(0.05, 0.5, len(x))[:, None]
    y = fitted.view.read(x)[0]
    served, found = form.log_density(y, seen)
    rows = np.flatnonzero(served & seen.any(1))
    assert len(rows) > 150 and places.tolist() == [0, 1]
    found = found.reshape(2, 3, -1)[:, :, seen.any(1)[served]]
    for model, density in zip(models, found, strict=True):
        shape, dof = model.predictive_scale, np.broadcast_to(model.dof, 3)
        for k, one in np.ndindex(3, len(rows)):
            some = np.flatnonzero(seen[rows[one]])
            block = np.broadcast_to(shape, (3, 12, 12))[k][np.ix_(some, some)]
            expected = stats.multivariate_t.logpdf(y[rows[one], some], model.mean[k, some], block, df=dof[k])
            np.testing.assert_allclose(density[k, one], expected, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("columns, rows", [(24, 60), (70, 60), (30, 400)])
@pytest.mark.parametrize("count", [1, 2])
def test_a_row_of_many_columns_has_its_density_among_others(count, columns, rows):
    x, codes, _ = vectors(rows, columns, seed=4)
    x[:, 1] = x[:, 0] + 1e-3 * x[:, 1]  # nearly the same as another
    x[:, 2] = 1e6 + 1e3 * x[:, 2]
    weight = np.ones(rows)
    fitted = fit(viewed(x, codes, weight, count), x, codes, weight)
    some = np.array([0, 1, 3, 6, 9, 16, 17, 27, 33])  # ragged: not every kappa of every rho
    every = fitted.log_density(x, NONE, some)
    one = np.concatenate([fitted.log_density(x[i : i + 1], NONE, some) for i in range(0, rows, 7)], axis=1)
    np.testing.assert_allclose(one, every[:, ::7], rtol=1e-12, atol=4e-12)


@pytest.mark.parametrize("count", [1, 3])
def test_members_of_one_structure_are_one_model(count):
    x, codes, weight = vectors()
    fitted = fit(viewed(x, codes, weight, count), x, codes, weight)
    rows, some = vectors(60, seed=1)[0], EVERY[::3]
    found = fitted.log_density(rows, NONE, some)
    owner, n = fitted.view.owner, fitted.statistics.n + 1
    for own, place in zip(found, some, strict=True):
        density = np.exp(fitted.posterior(place).log_predictive(fitted.view.read(rows)[0])) * n
        expected = [density[:, owner == k].sum(1) / n[owner == k].sum() for k in range(3)]
        np.testing.assert_allclose(np.exp(own), np.transpose(expected), rtol=1e-9)


def test_a_gap_leaves_the_marginal_and_a_density_integrates_to_one():
    x, codes, weight = vectors(dim=2)
    reference = Reference.of(moments(x, codes, 3, weight, vector=True))
    grid = np.sinh(np.linspace(-14, 14, 3001))
    for member in (GaussianMember("full", 8.0, 0.1, 0.4), GaussianMember("shared", 8.0, 0.1)):
        row = np.array([[1.3, 0.0]])
        seen = np.array([[True, False]])
        marginal = log_density([member], reference, row, seen)[0, 0]
        line = np.column_stack([np.full(len(grid), 1.3), grid])
        joint = np.exp(log_density([member], reference, line)[0])
        np.testing.assert_allclose(np.exp(marginal), integrate.simpson(joint, grid, axis=0), rtol=1e-6)
        whole = np.exp(
            log_density([member], reference, np.column_stack([grid, 0 * grid]), np.repeat(seen, len(grid), 0))[0]
        )
        np.testing.assert_allclose(integrate.simpson(whole, grid, axis=0), 1.0, rtol=1e-6)


def test_densities_of_categories_sum_to_one_and_gaps_are_summed_over():
    rng = np.random.default_rng(1)
    levels = np.array([2, 3, 2])
    x = np.stack([rng.integers(-1, n, 50) for n in levels], axis=1)
    members = CategoryMembers.of(x, levels, np.arange(50) % 2, 2, rng.uniform(0.5, 2, 50))
    every = np.stack(np.meshgrid(*map(np.arange, levels), indexing="ij"), -1).reshape(-1, 3)
    both = np.arange(4)
    density = np.exp(members.log_density(None, every, both))
    np.testing.assert_allclose(density[:2].sum(1), 1.0)
    gap = np.exp(members.log_density(None, np.array([[-1, 2, 0], [0, 2, 0], [1, 2, 0]]), both))
    np.testing.assert_allclose(gap[:2, 0], gap[:2, 1] + gap[:2, 2])
