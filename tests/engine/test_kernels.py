"""The fast passes over the rows give what the plain formulas give: any dtype, missing entries, weights, sparse rows."""

import numpy as np
import pytest
from refusals import refuses
from scipy import sparse, stats
from scipy.special import gammaln, logsumexp
from threadpoolctl import threadpool_info

from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    GaussianDiscriminant,
    KnownCategorical,
    NormalInverseGamma,
    NormalInverseWishart,
)
from bayesgen.models.leaf import ExponentialFamily
from bayesgen.models.moments import moments
from bayesgen.numerics.draws import log_mean_density
from bayesgen.numerics.pieces import one_blas_thread
from bayesgen.numerics.special import log_gamma_ratio
from bayesgen.numerics.student_gaps import conditional_student, log_density_with_gaps

N, D, K = 20_000, 5, 3  # several pieces
NAN = np.nan


def rows(kind, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "gaussian":
        return rng.normal(3, 20, (N, D)).astype(dtype)
    high = {"bernoulli": 2, "categorical": 4, "poisson": 12, "multinomial": 12}[kind]
    return rng.integers(high, size=(N, D)).astype(dtype)


def groups(seed=1):
    return np.random.default_rng(seed).choice(K, N, p=[0.7, 0.299, 0.001])


def weights(seed=2):
    return np.random.default_rng(seed).integers(0, 3, N) * 0.5


def gaps(x, seed=3):
    x = x.copy()
    x[np.random.default_rng(seed).random(x.shape) < 0.1] = NAN
    return x


LEAVES = {
    "bernoulli": BetaBernoulli(np.ones(D), 2.0),
    "categorical": DirichletCategorical(np.ones((D, 4)), 4),
    "poisson": GammaPoisson(np.ones(D), 0.5),
    "multinomial": DirichletMultinomial(np.linspace(0.5, 2, D)),
}
CASES = [
    (kind, dtype, missing, weighted)
    for kind in ("gaussian", *LEAVES)
    for dtype in ("float64", "float32", "int64", "uint8", "bool")
    for missing in (False, True)
    for weighted in (False, True)
    if not (missing and dtype[0] != "f") and not (dtype == "bool" and kind != "bernoulli")
]


def data(kind, dtype, missing, weighted):
    x = rows(kind, "float64")
    x = np.abs(x).astype(dtype) if kind == "gaussian" and dtype == "uint8" else x.astype(dtype)
    if missing and kind == "multinomial":
        x[::7] = NAN
    elif missing:
        x = gaps(x)
    return x, groups(), weights() if weighted else None


def plain_moments(x, group, weight, vector):
    """Two passes, a group at a time."""
    x = x.astype(float)
    w = np.ones(len(x)) if weight is None else weight
    result = []
    for k in range(K):
        own, v = x[(group == k) & (w > 0)], w[(group == k) & (w > 0)]
        if vector:
            seen = ~np.isnan(own).any(1)
            own, v = own[seen], v[seen]
            mean = np.average(own, axis=0, weights=v)
            result.append((v.sum(), mean, (v[:, None] * (own - mean)).T @ (own - mean)))
        else:
            v = np.where(np.isnan(own), 0, v[:, None])
            mean = np.nansum(v * own, 0) / v.sum(0)
            result.append((v.sum(0), mean, np.nansum(v * (own - mean) ** 2, 0)))
    return [np.stack(part) for part in zip(*result, strict=True)]


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize(("kind", "dtype", "missing", "weighted"), [c for c in CASES if c[0] == "gaussian"])
def test_moments(kind, dtype, missing, weighted, vector):
    x, group, weight = data(kind, dtype, missing, weighted)
    got = moments(x, group, K, weight, vector=vector)
    for mine, theirs in zip((got.n, got.mean, got.scatter), plain_moments(x, group, weight, vector), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-11 * np.abs(theirs).max())


@pytest.mark.parametrize("vector", [False, True])
def test_moments_of_hard_columns(vector):
    """An offset of 1e8 spreads, a trend, a column constant by class, an outlier in the first row."""
    rng, group = np.random.default_rng(0), groups()
    x = rng.normal(size=(N, 5))
    x[:, 0] += 1e8
    x[:, 1] = np.linspace(0, 1e6, N) + x[:, 1]
    x[:, 2] = np.array([0.1, 1e7 / 3, -7e-9])[group]
    x[0, 3] = 1e9
    x[:, 4] = 1 / 3
    got = moments(x, group, K, vector=vector)
    scatter = np.diagonal(got.scatter, axis1=1, axis2=2) if vector else got.scatter
    exact = plain_moments(x.astype(np.longdouble).astype(float), group, None, False)[2]
    assert (scatter[:, [2, 4]] == 0).all()
    np.testing.assert_array_equal(got.mean[:, [2, 4]], np.stack([x[group == k][0, [2, 4]] for k in range(K)]))
    np.testing.assert_allclose(scatter[:, [0, 1, 3]], exact[:, [0, 1, 3]], rtol=1e-9)
    two = moments(x[:777], group[:777], K, vector=vector) + moments(x[777:], group[777:], K, vector=vector)
    np.testing.assert_allclose(two.scatter, got.scatter, rtol=1e-9, atol=1e-9 * np.abs(got.scatter).max())


def test_moments_where_an_entry_is_first_seen_late():
    x, group = gaps(rows("gaussian", "float64")), groups()
    x[:15_000, 1] = NAN
    x[group == 2] = NAN
    got = moments(x, group, K)
    assert (got.n[2] == 0).all() and (got.mean[2] == 0).all() and (got.scatter[2] == 0).all()
    for k in range(2):
        own = x[group == k]
        np.testing.assert_allclose(got.mean[k], np.nanmean(own, 0), rtol=1e-12)
        np.testing.assert_allclose(got.scatter[k], np.nanvar(own, 0) * (~np.isnan(own)).sum(0), rtol=1e-12)


@pytest.mark.parametrize(("kind", "dtype", "missing", "weighted"), [c for c in CASES if c[0] != "gaussian"])
def test_sums(kind, dtype, missing, weighted):
    """The fast sums against the sum of T(x), which every family has."""
    x, group, weight = data(kind, dtype, missing, weighted)
    for leaf, args in [(LEAVES[kind], (x, group, K, weight)), (LEAVES[kind], (x, None, None, weight))]:
        got, plain = leaf.statistics(*args), ExponentialFamily.statistics(leaf, args[0].astype(float), *args[1:])
        assert got.sums.shape == plain.sums.shape
        np.testing.assert_allclose(got.sums, plain.sums, rtol=1e-13)
        np.testing.assert_allclose(got.base, plain.base, rtol=1e-12)


@pytest.mark.parametrize("count", [K, 12])
@pytest.mark.parametrize("kind", ["bernoulli", "categorical"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_do_not_depend_on_how_rows_stand_in_memory(kind, count, weighted):
    x, group, weight = data(kind, "float64", True, weighted)
    group = (group + np.arange(N)) % count
    plain = ExponentialFamily.statistics(LEAVES[kind], x, group, count, weight)
    for own in (x, np.asfortranarray(x)):
        got = LEAVES[kind].statistics(own, group, count, weight)
        np.testing.assert_allclose(got.sums, plain.sums, rtol=1e-13)


@pytest.mark.parametrize("vector", [False, True])
def test_merged_groups_are_all_rows(vector):
    x, group = rows("gaussian", "float64"), groups() * 2  # groups 1 and 3 are empty
    x[:, 0] += 1e8
    x[:, 1] = 1 / 3
    got, plain = moments(x, group, 5, vector=vector).sum_groups(), moments(x, vector=vector)
    np.testing.assert_allclose(got.n, plain.n)
    np.testing.assert_allclose(got.mean, plain.mean, rtol=1e-14)
    np.testing.assert_allclose(got.scatter, plain.scatter, rtol=1e-9, atol=1e-9 * np.abs(plain.scatter).max())
    assert got.mean[1] == 1 / 3 and np.ravel(np.diagonal(got.scatter) if vector else got.scatter)[1] == 0


def posterior(kind):
    x, group, _ = data(kind, "float64", False, False)
    return LEAVES[kind].update(LEAVES[kind].statistics(x, group, K))


def plain_log_predictive(kind, leaf, x):
    """By SciPy, an entry at a time, (n, K)."""
    x = x.astype(float)[:, None]
    if kind == "multinomial":
        n, known = np.nan_to_num(x).sum(-1), ~np.isnan(x).any(-1)
        x, total = np.nan_to_num(x), leaf.alpha.sum(-1)
        ways = gammaln(leaf.alpha + x) - gammaln(leaf.alpha) - gammaln(x + 1)
        return known * (gammaln(n + 1) + gammaln(total) - gammaln(total + n) + ways.sum(-1))
    if kind == "bernoulli":
        terms = stats.bernoulli(leaf.mean).logpmf(np.nan_to_num(x))
    elif kind == "categorical":
        codes = np.nan_to_num(x).astype(int)
        terms = np.log(np.take_along_axis(np.broadcast_to(leaf.mean, (len(x), K, D, 4)), codes[..., None], -1)[..., 0])
    else:
        terms = stats.nbinom(leaf.concentration, leaf.rate / (leaf.rate + 1)).logpmf(np.nan_to_num(x))
    return np.where(np.isnan(x), 0, terms).sum(-1)


@pytest.mark.parametrize(
    ("kind", "dtype", "missing", "weighted"), [c for c in CASES if c[0] != "gaussian" and not c[3]]
)
def test_predictive_of_counts(kind, dtype, missing, weighted):
    x, leaf = data(kind, dtype, missing, weighted)[0], posterior(kind)
    got = leaf.log_predictive(x)
    assert got.shape == (N, K)
    np.testing.assert_allclose(got, plain_log_predictive(kind, leaf, x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(leaf.log_predictive(x[:2]), got[:2], rtol=1e-10)  # few rows go another way


@pytest.mark.parametrize("count", [3, 6])
def test_predictive_of_categories_under_few_and_many_classes(count):
    x, group, _ = data("categorical", "float64", True, False)
    group = (group + np.arange(N)) % count
    leaf = LEAVES["categorical"].update(LEAVES["categorical"].statistics(x, group, count))
    codes, table = np.nan_to_num(x).astype(int), np.log(leaf.mean)  # (classes, D, V)
    plain = np.where(np.isnan(x), 0.0, table[:, np.arange(D), codes]).sum(-1).T
    for own in (x, np.asfortranarray(x)):
        np.testing.assert_allclose(leaf.log_predictive(own), plain, rtol=1e-12)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("dim", [1, 5, 40])
def test_student_naive_bayes(dim, uneven, missing):
    rng = np.random.default_rng(0)
    leaf = NormalInverseGamma(
        rng.normal(size=(K, dim)),
        rng.uniform(1, 4, (K, dim)),
        rng.uniform(1, 2e5, (K, dim)) if uneven else np.array([[2.0], [60.0], [3e5]]),
        rng.uniform(1, 4, (K, dim)),
    )
    x = rng.normal(0, 3, (3000, dim))
    x[0] = 1e25  # where a product of factors overflows
    x = gaps(x) if missing else x
    terms = stats.t(2 * leaf.alpha, leaf.mean, np.sqrt(leaf.squared_scale)).logpdf(x[:, None])
    plain = np.where(np.isnan(x[:, None]), 0, terms).sum(-1)
    np.testing.assert_allclose(leaf.log_predictive(x), plain, rtol=1e-11, atol=1e-9)
    refuses(lambda: leaf.log_predictive(np.where(np.arange(3000)[:, None] == 5, np.inf, x)), "infinite")


@pytest.mark.parametrize("alpha", [2.5, 9e5])
@pytest.mark.parametrize("scale", [0, 30, 150])
def test_columns_share_a_logarithm_whatever_their_scales(scale, alpha):
    rng = np.random.default_rng(0)
    u, width = rng.uniform(0, 10 / alpha, (500, 70)), 10.0 ** rng.uniform(-scale, scale, 70)
    leaf = NormalInverseGamma(np.zeros(70), 1.0, alpha, width**-2 / 4)
    level = 70 * (log_gamma_ratio(alpha, 0.5) - 0.5 * np.log(np.pi)) + np.log(width).sum()
    plain = level - (alpha + 0.5) * np.log1p(u).sum(1)
    np.testing.assert_allclose(leaf.log_predictive(np.sqrt(u) / width), plain, rtol=1e-13, atol=5e-15 * alpha)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dim", [1, 4, 12])
def test_student_vectors(dim, missing):
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(K, dim, dim))
    leaf = NormalInverseWishart(
        1e6 + rng.normal(size=(K, dim)), [1.0, 5, 9], dim + np.array([1.0, 50, 1e5]), mix @ mix.mT + np.eye(dim)
    )
    x = 1e6 + rng.normal(size=(3000, dim))
    if missing:
        x[:200] = gaps(x[:200])
    got = leaf.log_predictive(x)
    for k in range(K):
        for i in range(0, 400 if missing else 3000, 7):
            seen = ~np.isnan(x[i])
            if not seen.any():
                assert got[i, k] == 0
                continue
            scale, gap = leaf.predictive_scale[k][np.ix_(seen, seen)], (x[i] - leaf.mean[k])[seen]
            square = gap @ np.linalg.solve(scale, gap)
            dof, size = leaf.dof[k], seen.sum()
            plain = gammaln((dof + size) / 2) - gammaln(dof / 2) - 0.5 * np.linalg.slogdet(np.pi * dof * scale)[1]
            np.testing.assert_allclose(got[i, k], plain - (dof + size) / 2 * np.log1p(square / dof), atol=2e-8)


def exact_square(matrix, z):
    """Return z' A⁻¹ z of rows z in extended precision, by elimination."""
    A, z, square = matrix.astype(np.longdouble), z.astype(np.longdouble), 0
    for j in range(len(A)):
        square = square + z[:, j] ** 2 / A[j, j]
        z = z - z[:, j, None] / A[j, j] * A[j]
        A = A - np.outer(A[:, j], A[j]) / A[j, j]
    return square


def test_rows_that_lack_unlike_entries_have_the_marginals_and_conditionals_of_what_they_have():
    rng, dim, count = np.random.default_rng(3), 9, 60
    root, mean, dof = rng.normal(size=(4, dim, dim)), rng.normal(size=(4, dim)), np.array([2.5, 7.0, 40.0, 900.0])
    scale = root @ root.mT / dim + 0.01 * np.eye(dim)
    x = rng.normal(scale=2, size=(count, dim))
    x[rng.random(x.shape) < rng.choice([0.1, 0.3, 0.9], (count, 1))] = NAN
    x[0], x[1, 0], x[2] = NAN, 1e5, rng.normal(size=dim)
    density, found = log_density_with_gaps(x, mean, scale, dof), conditional_student(x, mean, scale, dof)
    for i, row in enumerate(x):
        seen, gone = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        for g in range(4):
            block, across, z = scale[g][np.ix_(seen, seen)], scale[g][np.ix_(seen, gone)], row[seen] - mean[g, seen]
            straight = stats.multivariate_t(mean[g, seen], block, dof[g]).logpdf(row[seen]) if len(seen) else 0.0
            np.testing.assert_allclose(density[g, i], straight, rtol=1e-9, atol=1e-9)
            weights, distance = np.linalg.solve(block, across), z @ np.linalg.solve(block, z)
            square = np.diag(scale[g])[gone] - (across * weights).sum(0)
            location, spread, freedom = (value[g, i] for value in found)
            np.testing.assert_allclose(location[gone], mean[g, gone] + z @ weights, rtol=1e-9, atol=1e-9)
            widened = np.sqrt(square * (dof[g] + distance) / (dof[g] + len(seen)))
            np.testing.assert_allclose(spread[gone], widened, rtol=1e-8)
            assert freedom[0] == dof[g] + len(seen) and np.isnan(location[seen]).all()


def test_a_row_whose_squares_leave_float64_has_a_conditional():
    x, eye = np.array([[1e170, 1.0, NAN], [-1e200, NAN, NAN]]), np.eye(3)[None]
    location, spread, _ = conditional_student(x, np.zeros((1, 3)), eye + 0.5 * (1 - eye), np.array([4.0]))
    np.testing.assert_allclose([location[0, 0, 2], location[0, 1, 1]], [1e170 / 3, -5e199])
    np.testing.assert_allclose(spread[0, 0, 2], np.sqrt((1 - 1 / 3) / 6 * 4 / 3) * 1e170)


@pytest.mark.parametrize("apart", [1.0, 1e4])
@pytest.mark.parametrize("condition", [1.0, 1e4, 1e12])
@pytest.mark.parametrize("dof", [5.0, 1e6])
def test_monomials_of_many_groups_keep_the_digits_of_whitening(dof, condition, apart):
    rng = np.random.default_rng(0)
    groups, dim = 9, 6
    axes = np.linalg.qr(rng.normal(size=(dim, dim)))[0] * np.geomspace(1, condition**-0.5, dim)
    mix = axes @ rng.uniform(0.3, 3, (groups, dim, 1)) * rng.normal(size=(groups, 1, dim)) + axes
    mean = 1e3 + apart * rng.normal(size=(groups, dim)) @ axes.T
    leaf = NormalInverseWishart(mean, np.full(groups, 3.0), np.full(groups, dof + dim - 1), dof * (mix @ mix.mT))
    x = (mean + (axes @ rng.normal(size=(400, groups, dim, 1)))[..., 0]).reshape(-1, dim)
    x = np.concatenate([x, x[:50] * 1e9, x[:50] * 1e160])
    near = slice(3500)  # in one piece
    got = leaf.log_predictive(x)
    whitened = np.concatenate([leaf.log_predictive(own) for own in np.split(x, 10)])  # too few rows for monomials
    assert (leaf._quadratic is None) == (apart > 1)  # classes far apart would cost digits
    assert np.isfinite(got).all()
    np.testing.assert_array_equal(got[-50:], whitened[-50:])
    for k in range(groups):
        square = exact_square(leaf.predictive_scale[k] * leaf.dof[k], x[near] - mean[k])
        plain = leaf.log_predictive(mean[k][None])[0, k] - 0.5 * (leaf.dof[k] + dim) * np.log1p(square)
        error, least = (np.abs(own[near, k] - plain).max() for own in (got, whitened))
        assert error <= 4 * max(least, 4e-12)


# -- sparse rows -------------------------------------------------------------------------------------------------------


def test_certain_bits():
    """A bit against a probability of 0 or 1 has log density -inf, and the others keep their digits."""
    leaf, p = BetaBernoulli(np.ones(3), 1.0), np.array([[0.0, 1.0, 0.3]])
    x = np.array([[0, 1, 1], [1, 1, 1], [0, 0, 1], [NAN, NAN, 0]])
    plain = [np.log(0.3), -np.inf, -np.inf, np.log(0.7)]
    for rows in (x, sparse.csr_array(x)):
        np.testing.assert_allclose(leaf.log_likelihood_rows({"probability": p}, rows), [plain], rtol=1e-15)


def test_known_probabilities_may_be_zero():
    leaf = KnownCategorical([0.0, 1.0, 0.0])
    np.testing.assert_array_equal(leaf.log_predictive([0, 1, NAN]), [-np.inf, 0, 0])


# -- the average over draws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_average_over_draws(missing, shared):
    """Log of the mean over draws of the Gaussian density, by triangular solves; far rows too."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(1e5, 1, (300, 3)), np.arange(300) % 3
    model = GaussianDiscriminant(
        DirichletCategorical(1.0, 3), NormalInverseWishart([1e5] * 3, 0.1, 5, np.eye(3)), shared=shared
    )
    params = model.update(model.statistics(x, t)).sample_parameters(rng, (700,))
    new = np.concatenate([rng.normal(1e5, 2, (3000, 3)), 1e5 + rng.normal(0, 1e4, (20, 3))])
    new = gaps(new) if missing else new
    got = log_mean_density(model, params, {"gaussian": new})
    for i in [*range(0, 3000, 97), *range(3000, 3020)]:
        seen = np.flatnonzero(~np.isnan(new[i]))
        mean, sigma = params["gaussian.mean"][:, :, seen], params["gaussian.covariance"]
        sigma = (sigma[:, None] if shared else sigma)[:, :, seen[:, None], seen]
        root = np.linalg.cholesky(sigma)
        z = np.linalg.solve(np.broadcast_to(root, (700, 3, *root.shape[2:])), (new[i, seen] - mean)[..., None])[..., 0]
        log_det = np.log(np.diagonal(root, axis1=2, axis2=3)).sum(-1)
        density = -0.5 * (z * z).sum(-1) - log_det - 0.5 * len(seen) * np.log(2 * np.pi)
        plain = logsumexp(density + np.log(params["classes.probability"]), axis=0) - np.log(700)
        np.testing.assert_allclose(got[i], plain, rtol=1e-9, atol=1e-9)


def test_average_over_draws_of_one_row_or_none():
    model = GaussianDiscriminant(DirichletCategorical(1.0, 2), NormalInverseWishart([0.0], 0.1, 5, np.eye(1)))
    params = model.sample_parameters(np.random.default_rng(0), (50,))
    for n in (0, 1):
        assert log_mean_density(model, params, model.check(np.zeros((n, 1)))).shape == (n, 2)


@pytest.mark.parametrize("count", [3, 5])  # in products with their members, and one by one; two are empty
@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("kind", ["plain", "weighted", "gaps", "float32", "far"])
def test_rows_that_stand_column_by_column_have_the_same_moments(kind, vector, count):
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=(20_000, 3)), rng.integers(4, size=20_000) % 3
    weight = rng.uniform(0, 2, 20_000) * (rng.random(20_000) < 0.9) if kind == "weighted" else None
    x[rng.random(x.shape) < 0.001] = np.nan if kind == "gaps" else 0.0
    x = x.astype(np.float32) if kind == "float32" else x + 1e9 if kind == "far" else x
    by_row = moments(x, group, count, weight, vector=vector)
    by_column = moments(np.asfortranarray(x), group, count, weight, vector=vector)
    np.testing.assert_allclose(by_column.n, by_row.n, rtol=1e-13)
    np.testing.assert_allclose(by_column.mean, by_row.mean, rtol=1e-12, atol=1e-12)
    scale = 1e-12 * np.abs(by_row.scatter).max()
    np.testing.assert_allclose(by_column.scatter, by_row.scatter, rtol=1e-7 if kind == "far" else 1e-11, atol=scale)


def test_the_threads_of_the_blas_come_back_when_the_last_has_left():
    def threads():
        return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}

    before, one, other = threads(), one_blas_thread(), one_blas_thread()
    with one:
        other.__enter__()
        assert threads() == {1}
    assert threads() == {1}
    other.__exit__(None, None, None)
    assert threads() == before


def test_no_rows_are_filled():
    leaf = NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2))
    assert leaf.fill(np.empty((0, 2)), np.empty(0, int), np.random.default_rng(0)).shape == (0, 2)
