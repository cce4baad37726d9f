"""What single models must give: numbers known from elsewhere, hard values, errors."""

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad

from bayesgen import fit
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    KnownCategorical,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownVariance,
)

NAN, INF = np.nan, np.inf
TWO = DirichletCategorical(1.0, 2)


def evidence(model, *data):
    return model.log_evidence(model.statistics(*data))


def learn(model, *data):
    return model.update(model.statistics(*data))


# -- the coin ----------------------------------------------------------------------------------------------------------


def toss(heads, tails):
    return np.repeat([1, 0], [heads, tails])


@pytest.mark.parametrize(
    ("heads", "tails", "ml", "mean", "mode"), [(2, 0, 1.0, 4 / 6, 3 / 4), (55, 45, 0.55, 57 / 104, 56 / 102)]
)
def test_the_coin_of_the_lecture(heads, tails, ml, mean, mode):
    coin = BetaBernoulli(a=2, b=2)
    assert fit(coin, toss(heads, tails), "ml").params["probability"] == pytest.approx(ml, rel=1e-15)
    assert fit(coin, toss(heads, tails), "map").params["probability"] == pytest.approx(mode, rel=1e-15)
    exact = fit(coin, toss(heads, tails), "exact")
    assert np.exp(exact.log_predictive([1])) == pytest.approx(mean, rel=1e-14)
    assert np.exp(exact.log_predictive([0])) == pytest.approx(1 - mean, rel=1e-14)


def test_a_tail_after_two_heads():
    assert fit(BetaBernoulli(), [1, 1], "ml").log_predictive([0, 1]).tolist() == [-INF, 0]
    np.testing.assert_allclose(fit(BetaBernoulli(), [1, 1]).log_predictive([0]), np.log(1 / 4), rtol=1e-15)
    for a, b in [(1, 1), (2, 3), (0.1, 7)]:
        got = fit(BetaBernoulli(a, b), [1, 1]).log_predictive([0])
        np.testing.assert_allclose(got, np.log(b / (2 + a + b)), rtol=1e-15)


def test_boundary_modes():
    assert fit(BetaBernoulli(), [1, 1], "map").params["probability"] == 1  # equal to 1: on the boundary, allowed
    assert BetaBernoulli().mode()["probability"] == 0.5  # flat: documented
    np.testing.assert_array_equal(DirichletCategorical(1.0, 4).mode()["probability"], 0.25)
    np.testing.assert_allclose(
        fit(DirichletCategorical(1.0, 3), [0, 0, 1], "map").params["probability"], [2 / 3, 1 / 3, 0]
    )


def test_a_certain_coin_gives_no_nan():
    point = fit(BetaBernoulli([1.0, 1.0], 1.0), [[1, 0], [1, 1]], "ml")
    with np.errstate(divide="ignore"):
        expected = np.log([0.5, 0.5, 0.0, 0.5, 0.0])
    np.testing.assert_allclose(point.log_predictive([[1, 0], [1, 1], [0, 1], [NAN, 0], [0, NAN]]), expected)


def test_monte_carlo_of_certain_and_uncertain_draws():
    """A draw of probability 0 averages as 0, not as NaN: half the draws say the tail is impossible."""
    from bayesgen import ParameterDraws

    draws = ParameterDraws(BetaBernoulli(), {"probability": np.array([[1.0, 0.5]])})
    np.testing.assert_allclose(draws.log_predictive([0, 1]), np.log([0.25, 0.75]), rtol=1e-14)


# -- evidence and predictive by integration ----------------------------------------------------------------------------

X = np.array([1.3, 2.9, 0.4, 3.3])


def test_coin_by_integration():
    coin, x = BetaBernoulli(1.7, 3.1), [1, 0, 0, 1, 0]
    whole = quad(lambda p: stats.beta(1.7, 3.1).pdf(p) * p**2 * (1 - p) ** 3, 0, 1)[0]
    assert evidence(coin, x) == pytest.approx(np.log(whole), rel=1e-9)


def test_die_by_integration():
    die, x = DirichletCategorical([1.7, 3.1, 2.2]), [0, 2, 2, 1]
    prior = stats.dirichlet([1.7, 3.1, 2.2])

    def density(q, p):
        rest = 1 - p - q
        return prior.pdf([p, q, rest]) * p * q * rest**2 if rest > 0 else 0.0

    whole = dblquad(density, 0, 1, 0, lambda p: 1 - p, epsabs=1e-12)[0]
    assert evidence(die, x) == pytest.approx(np.log(whole), rel=1e-8)


def test_toronto():
    """Twenty degrees yesterday: what is the mean of this season, and what will tomorrow be?"""
    prior, x = NormalKnownVariance(mean=18.0, sd=4.0, noise_sd=3.0), np.array([20.0, 25.0, 16.0])

    def density(mean):
        return stats.norm(18, 4).pdf(mean) * stats.norm(mean, 3).pdf(x).prod()

    def integral(f):
        return quad(lambda m: f(m) * density(m), -40, 80, points=[18, 20], epsabs=1e-15, epsrel=1e-11)[0]

    whole = integral(lambda m: 1.0)
    mean = integral(lambda m: m) / whole
    sd = np.sqrt(integral(lambda m: (m - mean) ** 2) / whole)
    posterior = learn(prior, x)
    assert evidence(prior, x) == pytest.approx(np.log(whole), rel=1e-9)
    assert (posterior.mean, posterior.sd) == pytest.approx((mean, sd), rel=1e-9)
    tomorrow = integral(lambda m: stats.norm(m, 3).pdf(24.0)) / whole
    assert np.exp(posterior.log_predictive([24.0]))[0] == pytest.approx(tomorrow, rel=1e-9)
    # The predictive is wider than the posterior, by the noise of one day: 3² + sd².
    assert np.exp(posterior.log_predictive([mean]))[0] == pytest.approx(stats.norm(0, np.hypot(3, sd)).pdf(0), rel=1e-9)


def test_normal_by_integration():
    """The trapezoid rule in (log variance, standardised mean), where the integrand dies away on all sides."""
    prior = NormalInverseGamma(mean=1.0, kappa=0.7, alpha=2.5, beta=1.8)
    variance = np.exp(np.linspace(-8, 12, 2001))[:, None]

    def integral(rows):
        u = np.linspace(-12, 12, 601)
        mean = np.mean(rows) + np.sqrt(variance) * u
        density = stats.invgamma(2.5, scale=1.8).pdf(variance) * stats.norm(1.0, np.sqrt(variance / 0.7)).pdf(mean)
        for row in rows:
            density = density * stats.norm(mean, np.sqrt(variance)).pdf(row)
        return (density * variance**1.5).sum() * 0.01 * (u[1] - u[0])

    whole = integral(X)
    assert evidence(prior, X) == pytest.approx(np.log(whole), rel=1e-9)
    new = np.exp(learn(prior, X).log_predictive([5.0]))[0]
    assert new == pytest.approx(integral(np.append(X, 5.0)) / whole, rel=1e-9)


def tied_t(x, t, mean, kappa, alpha, beta):
    """Log density of Gaussian columns under one variance ~ InvGamma(alpha, beta): one big Student-t of all entries."""
    same = np.equal.outer(t, t)
    shape = np.eye(len(x)) + same / kappa
    shape = beta / alpha * np.kron(shape, np.eye(x.shape[1]))
    return stats.multivariate_t(np.tile(mean, len(x)), shape, df=2 * alpha).logpdf(x.ravel())


def test_variances_that_are_shared_make_one_student_t():
    """Who shares a variance is jointly t distributed: SciPy's density of all entries at once, per structure."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(2.0, 1.5, (7, 3)), np.array([0, 1, 1, 0, 0, 1, 0])
    mean, kappa, alpha, beta = np.array([1.0, 2.0, 3.0]), 0.7, 2.5, 1.8
    prior = NormalInverseGamma(mean, kappa, alpha, beta)
    classes = evidence(TWO, t)
    parts = [t == 0, t == 1]
    columns = [[j] for j in range(3)]
    blocks = {
        ("diagonal", False): [(rows, cols) for rows in parts for cols in columns],
        ("diagonal", True): [(slice(None), cols) for cols in columns],
        ("isotropic", False): [(rows, [0, 1, 2]) for rows in parts],
        ("isotropic", True): [(slice(None), [0, 1, 2])],
    }
    for (covariance, shared), pieces in blocks.items():
        model = GaussianDiscriminant(TWO, prior, covariance, shared)
        by_scipy = sum(tied_t(x[r][:, c], t[r], mean[c], kappa, alpha, beta) for r, c in pieces)
        assert evidence(model, x, t) == pytest.approx(classes + by_scipy, rel=1e-11), (covariance, shared)


def test_a_line_is_a_plane_of_one_column():
    """At D = 1 the inverse Wishart is an inverse gamma: nu = 2 alpha, scale = 2 beta."""
    line = NormalInverseGamma(mean=1.0, kappa=0.7, alpha=2.5, beta=1.8)
    plane = NormalInverseWishart([1.0], 0.7, 5.0, [[3.6]])
    assert evidence(plane, X[:, None]) == pytest.approx(evidence(line, X), rel=1e-13)
    one, two = learn(line, X), learn(plane, X[:, None])
    new = np.array([-3.0, 1.0, 50.0])
    np.testing.assert_allclose(two.log_predictive(new[:, None]), one.log_predictive(new), rtol=1e-13)
    assert two.mode()["covariance"].item() == pytest.approx(one.mode()["variance"], rel=1e-13)


def test_plane_by_the_chain_rule():
    """The evidence of a vector model is that of column 1 times that of column 2 given column 1, both one-dimensional.

    Under IW(nu, Psi): Σ_11 ~ IW(nu - 1, Psi_11); the regression of column 2 on 1 is conjugate, and SciPy's Student-t
    gives its evidence: x2 | x1 ~ t with a mean linear in x1.
    """
    rng = np.random.default_rng(1)
    x = rng.normal(size=(6, 2)) @ [[1.0, 0.5], [0.0, 0.8]] + [1.0, 2.0]
    nu, kappa, scale, mean = 5.0, 0.7, np.array([[2.0, 0.6], [0.6, 1.5]]), np.array([0.5, 1.5])
    # Column 1: one-dimensional, nu - 1 degrees of freedom.
    first = evidence(NormalInverseGamma(mean[0], kappa, (nu - 1) / 2, scale[0, 0] / 2), x[:, 0])
    # Column 2 given column 1: s² ~ IG(nu/2, Psi_22.1/2), slope | s² ~ N(Psi_21/Psi_11, s²/Psi_11),
    # intercept | slope, s² ~ N(m_2 - slope m_1, s²/kappa).
    slope, rest = scale[1, 0] / scale[0, 0], scale[1, 1] - scale[1, 0] ** 2 / scale[0, 0]
    z = x[:, 0] - mean[0]
    shape = np.eye(6) + np.ones((6, 6)) / kappa + np.outer(z, z) / scale[0, 0]
    second = stats.multivariate_t(mean[1] + slope * z, rest / nu * shape, df=nu).logpdf(x[:, 1])
    prior = NormalInverseWishart(mean, kappa, nu, scale)
    assert evidence(prior, x) == pytest.approx(first + second, rel=1e-12)


def test_shared_covariance_by_the_chain_rule():
    """The same with a mean per class under one covariance."""
    rng = np.random.default_rng(2)
    t = np.array([0, 1, 1, 0, 1, 1, 0])
    x = rng.normal(size=(7, 2)) @ [[1.0, 0.5], [0.0, 0.8]] + t[:, None]
    nu, kappa, scale, mean = 5.0, 0.7, np.array([[2.0, 0.6], [0.6, 1.5]]), np.array([0.5, 1.5])
    same = np.eye(7) + np.equal.outer(t, t) / kappa
    z = x[:, 0] - mean[0]
    slope, rest = scale[1, 0] / scale[0, 0], scale[1, 1] - scale[1, 0] ** 2 / scale[0, 0]
    first = stats.multivariate_t(np.full(7, mean[0]), scale[0, 0] / (nu - 1) * same, df=nu - 1).logpdf(x[:, 0])
    shape = rest / nu * (same + np.outer(z, z) / scale[0, 0])
    second = stats.multivariate_t(mean[1] + slope * z, shape, df=nu).logpdf(x[:, 1])
    model = GaussianDiscriminant(TWO, NormalInverseWishart(mean, kappa, nu, scale), shared=True)
    assert evidence(model, x, t) == pytest.approx(evidence(TWO, t) + first + second, rel=1e-12)


# -- hard values, against 60 digits ------------------------------------------------------------------------------------

MP = mpmath.mp.clone()
MP.dps = 60
RNG = np.random.default_rng(3)
BITS = RNG.random(100_000) < 0.3
CODES = RNG.integers(0, 3, 100_000)
FAR = RNG.normal(1e8, 1.0, 100_000)
FAR2 = RNG.multivariate_normal([1e8, -3e7], [[1.0, 0.9], [0.9, 1.0]], 2000)


def mp_dirichlet(alpha, counts):
    alpha = [MP.mpf(float(a)) for a in alpha]
    total, n = sum(alpha), int(sum(counts))
    rising = sum(MP.loggamma(a + int(c)) - MP.loggamma(a) for a, c in zip(alpha, counts, strict=True))
    return rising - MP.loggamma(total + n) + MP.loggamma(total)


def mp_known(x, mean, sd, noise):
    """Completing the square from exact raw sums."""
    mean, sd, noise = MP.mpf(mean), MP.mpf(sd), MP.mpf(noise)
    n, s1, s2 = len(x), MP.fsum(map(MP.mpf, x.tolist())), MP.fsum(MP.mpf(v) ** 2 for v in x.tolist())
    precision = 1 / sd**2 + n / noise**2
    centre = (mean / sd**2 + s1 / noise**2) / precision
    exponent = mean**2 / sd**2 + s2 / noise**2 - precision * centre**2
    return -n * MP.log(2 * MP.pi * noise**2) / 2 - MP.log(sd**2 * precision) / 2 - exponent / 2


def mp_normal(x, mean, kappa, alpha, beta):
    mean, kappa, alpha, beta = map(MP.mpf, (mean, kappa, alpha, beta))
    n, s1, s2 = len(x), MP.fsum(map(MP.mpf, x.tolist())), MP.fsum(MP.mpf(v) ** 2 for v in x.tolist())
    centre = (kappa * mean + s1) / (kappa + n)
    beta_n = beta + (s2 + kappa * mean**2 - (kappa + n) * centre**2) / 2
    alpha_n = alpha + MP.mpf(n) / 2
    gammas = MP.loggamma(alpha_n) - MP.loggamma(alpha) + alpha * MP.log(beta) - alpha_n * MP.log(beta_n)
    return gammas + MP.log(kappa / (kappa + n)) / 2 - MP.mpf(n) / 2 * MP.log(2 * MP.pi)


def mp_plane(x, mean, kappa, nu, scale):
    kappa, nu, n = MP.mpf(kappa), MP.mpf(nu), len(x)
    rows = [MP.matrix(row) for row in x.tolist()]
    mean = MP.matrix(list(mean))
    s1, s2 = MP.zeros(2, 1), MP.zeros(2, 2)
    for row in rows:
        s1, s2 = s1 + row, s2 + row * row.T
    centre = (kappa * mean + s1) / (kappa + n)
    scale = MP.matrix(scale)
    scale_n = scale + s2 + kappa * mean * mean.T - (kappa + n) * centre * centre.T
    nu_n = nu + n

    def log_gamma_2(a):
        return MP.loggamma(a) + MP.loggamma(a - MP.mpf(1) / 2)

    return (
        -n * MP.log(MP.pi)
        + MP.log(kappa / (kappa + n))
        + nu / 2 * MP.log(MP.det(scale))
        - nu_n / 2 * MP.log(MP.det(scale_n))
        + log_gamma_2(nu_n / 2)
        - log_gamma_2(nu / 2)
    )


HARD = {
    "coin, tiny prior": (
        BetaBernoulli(1e-3, 1e-3), BITS, [1],
        lambda x: mp_dirichlet([1e-3, 1e-3], [x.sum(), (~np.asarray(x, bool)).sum()]),
    ),
    "coin, all heads": (
        BetaBernoulli(1e-3, 1e-3), np.ones(100_000), [1.0], lambda x: mp_dirichlet([1e-3, 1e-3], [len(x), 0])
    ),
    "die, tiny prior": (
        DirichletCategorical(1e-3, 4), CODES, [3], lambda x: mp_dirichlet([1e-3] * 4, np.bincount(x, minlength=4))
    ),
    "toronto, far away": (
        NormalKnownVariance(1e8, 10.0, 1.0), FAR, [1e8 + 4.0], lambda x: mp_known(x, 1e8, 10, 1)
    ),
    "normal, far away": (
        NormalInverseGamma(1e8, 1e-3, 1e-3, 1e-3), FAR, [1e8 + 4.0], lambda x: mp_normal(x, 1e8, 1e-3, 1e-3, 1e-3)
    ),
    "normal, prior far from the data": (
        NormalInverseGamma(0.0, 1e-3, 1e-3, 1e-3), FAR[:50], [1e8], lambda x: mp_normal(x, 0, 1e-3, 1e-3, 1e-3)
    ),
    "normal, few rows": (
        NormalInverseGamma(1e8, 1e-3, 1e-3, 1e-3), FAR[:2], [1e8 - 900.0], lambda x: mp_normal(x, 1e8, 1e-3, 1e-3, 1e-3)
    ),
    "plane, far away": (
        NormalInverseWishart([1e8, -3e7], 1e-3, 1.001, 1e-3 * np.eye(2)), FAR2, [[1e8 + 3.0, -3e7 - 3.0]],
        lambda x: mp_plane(x, [1e8, -3e7], 1e-3, 1.001, [[1e-3, 0], [0, 1e-3]]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
def test_hard_values(name):
    """Nine digits of evidence and predictive: tiny priors, 1e5 rows, unit spread at an offset of 1e8.

    A mean near 1e8 is a double and so known to one unit in the last place, 1.5e-8: what such a step does to the
    log predictive is allowed on top.
    """
    model, x, new, exact = HARD[name]
    new = np.asarray(new, x.dtype)
    whole = exact(x)
    assert evidence(model, x) == pytest.approx(float(whole), rel=1e-9)
    posterior = learn(model, x)
    ratio = float(exact(np.concatenate([x, new])) - whole)
    step = 0.0
    if x.dtype == float:
        for sign in np.ndindex((2,) * new.size):
            moved = np.nextafter(new, np.where(np.reshape(sign, new.shape), np.inf, -np.inf))
            step = max(
                step,
                abs(posterior.log_predictive(moved)[0] - posterior.log_predictive(new)[0]) if new[0].max() > 1 else 0,
            )
    assert posterior.log_predictive(new)[0] == pytest.approx(ratio, rel=1e-9, abs=1e-9 * abs(ratio) + step + 1e-15)


def test_merging_far_away_pieces_keeps_the_digits():
    prior = NormalInverseGamma(1e8, 1.0, 1.0, 1.0)
    whole = prior.statistics(FAR)
    pieces = [prior.statistics(piece) for piece in np.array_split(FAR, 97)]
    total = pieces[0]
    for piece in pieces[1:]:
        total = total + piece
    exact = FAR.astype(np.longdouble)
    scatter = float(((exact - exact.mean()) ** 2).sum())
    # Chan's merge needs the means, known to 1.5e-8 of a standard deviation; raw second moments would lose all digits.
    assert whole.scatter == pytest.approx(scatter, rel=1e-9)
    assert total.scatter == pytest.approx(scatter, rel=1e-9)


# -- what data may look like -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, int, np.float32, object])
def test_bits_of_any_type(dtype):
    coin, x = BetaBernoulli([2.0, 3.0], 1.0), np.array([[1, 0], [0, 0], [1, 1]])
    assert coin.statistics(x.astype(dtype)) == coin.statistics(x.astype(float))
    np.testing.assert_array_equal(coin.log_predictive(x.astype(dtype)), coin.log_predictive(x.astype(float)))


def test_counts_do_not_overflow_small_integers():
    assert learn(BetaBernoulli(), np.ones(1000, np.int8)).a == 1001
    assert learn(BetaBernoulli(), np.ones(1000, bool)).a == 1001
    assert learn(DirichletCategorical(1.0, 3), np.full(1000, 2, np.uint8)).alpha[2] == 1001
    assert learn(NormalInverseGamma(0.0, 1.0, 1.0, 1.0), np.full(1000, 200, np.uint8)).mean == pytest.approx(
        200, rel=1e-2
    )


def test_a_float32_column_is_read_as_it_is():
    x = np.random.default_rng(0).normal(100, 1, 50).astype(np.float32)
    prior = NormalInverseGamma(0.0, 1.0, 1.0, 1.0)
    assert evidence(prior, x) == evidence(prior, x.astype(float))


def test_the_rows_given_are_not_changed():
    x = np.random.default_rng(0).normal(size=(20, 2))
    x[3, 1] = NAN
    before, weight = x.copy(), np.arange(20.0)
    for model in (
        NormalInverseGamma([0.0, 0.0], 1.0, 1.0, 1.0),
        NormalInverseWishart([0.0, 0.0], 1.0, 3.0, np.eye(2)),
        NormalKnownVariance([0.0, 0.0], 1.0, 1.0),
    ):
        model.statistics(x, weight=weight)
        model.log_predictive(x)
    np.testing.assert_array_equal(x, before)


def test_hyperparameters_are_copied_and_frozen():
    mean = np.zeros(2)
    model = NormalInverseWishart(mean, 1.0, 3.0, np.eye(2))
    mean[0] = 7
    assert model.mean[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        model.mean[0] = 7
    with pytest.raises(AttributeError):
        model.mean = mean


# -- errors ------------------------------------------------------------------------------------------------------------

EYE = np.eye(2)
HYPERPARAMETERS = [
    (BetaBernoulli, (-1, 1), ValueError, "BetaBernoulli: a must be positive, got -1"),
    (BetaBernoulli, (1, 0), ValueError, "b must be positive, got 0"),
    (BetaBernoulli, (NAN, 1), ValueError, "a must be finite"),
    (BetaBernoulli, (INF, 1), ValueError, "a must be finite"),
    (BetaBernoulli, ("x", 1), TypeError, "a must be a number"),
    (BetaBernoulli, (None, 1), ValueError, "a must be finite"),
    (BetaBernoulli, ([1, 2], [1, 2, 3]), ValueError, "BetaBernoulli: the shapes of"),
    (DirichletCategorical, (1.0,), ValueError, "give categories="),
    (DirichletCategorical, ([1, 0],), ValueError, "alpha must be positive"),
    (DirichletCategorical, ([1, NAN],), ValueError, "alpha must be finite"),
    (DirichletCategorical, ([1, 1], 3), ValueError, "2 entries for 3 categories"),
    (DirichletCategorical, (1.0, ["a", "a"]), ValueError, "distinct"),
    (DirichletCategorical, (1.0, []), ValueError, "one or more"),
    (DirichletCategorical, (1.0, 0), ValueError, "one or more"),
    (KnownCategorical, ([0.5, 0.6],), ValueError, "sum to 1"),
    (KnownCategorical, ([1.5, -0.5],), ValueError, ">= 0"),
    (KnownCategorical, ([0.5, 0.5], ["a"]), ValueError, "categories"),
    (KnownCategorical, (0.5,), ValueError, "at least 1 axes"),
    (NormalKnownVariance, (0, 0, 1), ValueError, "sd must be positive"),
    (NormalKnownVariance, (0, 1, -1), ValueError, "noise_sd must be positive"),
    (NormalKnownVariance, (INF, 1, 1), ValueError, "mean must be finite"),
    (NormalInverseGamma, (0, 0, 1, 1), ValueError, "kappa must be positive"),
    (NormalInverseGamma, (0, 1, -2, 1), ValueError, "alpha must be positive, got -2"),
    (NormalInverseGamma, (0, 1, 1, 0), ValueError, "beta must be positive"),
    (NormalInverseGamma, ([0, 0], 1, 1, [1, 1, 1]), ValueError, "NormalInverseGamma: the shapes of"),
    (NormalInverseWishart, (0.0, 1, 3, EYE), ValueError, "mean must have at least 1 axes"),
    (NormalInverseWishart, ([0, 0], -1, 3, EYE), ValueError, "kappa must be positive"),
    (NormalInverseWishart, ([0, 0], 1, 1, EYE), ValueError, "nu must exceed D - 1 = 1, got 1"),
    (NormalInverseWishart, ([0, 0], 1, 3, np.eye(3)), ValueError, r"scale must end in shape \(2, 2\)"),
    (NormalInverseWishart, ([0, 0], 1, 3, [1, 1]), ValueError, "scale must have at least 2 axes"),
    (NormalInverseWishart, ([0, 0], 1, 3, [[1, 2], [2, 1]]), ValueError, "positive definite"),
    (NormalInverseWishart, ([0, 0], 1, 3, [[1, 1], [1, 1]]), ValueError, "positive definite"),
    (NormalInverseWishart, ([0, 0], 1, 3, [[1, 0.5], [0, 1]]), ValueError, "symmetric"),
    (NormalInverseWishart, ([0, 0], 1, 3, [[1, NAN], [NAN, 1]]), ValueError, "scale must be finite"),
    (NaiveBayes, (BetaBernoulli(), {}), TypeError, "classes must be"),
    (NaiveBayes, (TWO, {"x": 3}), TypeError, "'x' must be a model of a feature"),
    (NaiveBayes, (TWO, {"classes": BetaBernoulli()}), ValueError, "names the class prior"),
    (GaussianDiscriminant, (TWO, BetaBernoulli()), TypeError, "takes a NormalInverseWishart"),
    (
        GaussianDiscriminant,
        (TWO, NormalInverseWishart([0.0], 1, 2, [[1]]), "round"),
        ValueError,
        "covariance must be one",
    ),
]


@pytest.mark.parametrize(("model", "arguments", "kind", "words"), HYPERPARAMETERS)
def test_hyperparameter_errors(model, arguments, kind, words):
    with pytest.raises(kind, match=words):
        model(*arguments)


COIN, DIE, LINE = BetaBernoulli(), DirichletCategorical(1.0, 3), NormalInverseGamma(0.0, 1.0, 1.0, 1.0)
PLANE = NormalInverseWishart([0.0, 0.0], 1.0, 3.0, EYE)
BAYES = NaiveBayes(TWO, {"bit": COIN, "line": LINE})
DISCRIMINANT = GaussianDiscriminant(TWO, PLANE)
ROWS = [
    (COIN, ([0, 2],), ValueError, "value 2 in row 1 is not 0 or 1"),
    (COIN, ([0.5],), ValueError, "not 0 or 1"),
    (COIN, (["a"],), TypeError, "takes numbers"),
    (COIN, (1.0,), ValueError, "array of rows"),
    (DIE, ([0, 3],), ValueError, r"value 3 in row 1 is not a category code 0\.\.2"),
    (DIE, ([-1],), ValueError, "not a category code"),
    (DIE, ([0.5],), ValueError, "not a category code"),
    (LINE, ([1.0, INF],), ValueError, "value inf in row 1 is infinite"),
    (LINE, ([1j],), TypeError, "takes numbers"),
    (PLANE, ([[1.0, -INF]],), ValueError, "feature 1: value -inf in row 0 is infinite"),
    (PLANE, ([[1.0, 2.0, 3.0]],), ValueError, "3 entries where the prior mean has 2"),
    (PLANE, ([1.0, 2.0],), ValueError, "array of rows"),
    (
        BAYES,
        ({"bit": [0, 1], "line": [0.0, 1.0]}, [0, 2]),
        ValueError,
        r"value 2 in row 1 is not a category code 0\.\.1",
    ),
    (BAYES, ({"bit": [0, 1], "line": [0.0]}, [0, 1]), ValueError, "one length"),
    (BAYES, ({"bit": [0, 1]}, [0, 1]), ValueError, r"lacks the features \['line'\]"),
    (BAYES, ([[0, 1]], [0, 1]), TypeError, "mapping from feature to array"),
    (BAYES, ({"bit": [0, 5], "line": [0.0, 1.0]}, [0, 1]), ValueError, "'bit'.*value 5 in row 1"),
    (BAYES, ({"bit": [0, 1], "line": [0.0, 1.0]}, [0, NAN]), ValueError, "t is missing in row 1"),
    (LINE, (np.array(["2020-01-01"], "datetime64[D]"),), TypeError, "takes numbers"),
    (LINE, (["1.5"],), TypeError, "takes numbers"),
    (DISCRIMINANT, ([[1.0, INF]], [0]), ValueError, "column 'gaussian', feature 1: value inf in row 0 is infinite"),
]


@pytest.mark.parametrize(("model", "rows", "kind", "words"), ROWS)
def test_row_errors(model, rows, kind, words):
    with pytest.raises(kind, match=words):
        model.statistics(*rows)


@pytest.mark.parametrize("weight", [[1.0], [1.0, -1.0], [1.0, NAN], [1.0, INF], [[1.0], [1.0]]])
@pytest.mark.parametrize("model", [BAYES, COIN], ids=["classifier", "leaf"])
def test_weight_errors(model, weight):
    rows = ({"bit": [0, 1], "line": [0.0, 1.0]}, [0, 1]) if model is BAYES else ([0, 1],)
    with pytest.raises(ValueError, match="weight"):
        model.statistics(*rows, weight=np.array(weight))


NO_ML = [
    (COIN, ([NAN, NAN],), "no observed value"),
    (DIE, ([NAN],), "no observed value"),
    (LINE, ([1.0],), "fewer than two distinct values"),
    (LINE, ([1e8, 1e8, 1e8],), "fewer than two distinct values"),
    (LINE, ([NAN],), "no observed value"),
    (PLANE, ([[0.0, 0.0], [1.0, 2.0]],), "1 degrees of freedom .* for 2 columns"),
    (PLANE, ([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]],), "feature 1.*no two distinct values"),
    (PLANE, ([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 6.0]],), "linearly dependent"),
    (GaussianDiscriminant(TWO, PLANE), ([[0.0, 1.0], [1.0, 1.5], [2.0, 0.0], [5.0, 5.0]], [0, 0, 0, 1]), "class 1"),
    (GaussianDiscriminant(TWO, PLANE, shared=True), ([[0.0, 1.0], [1.0, 1.5], [5.0, 5.0]], [0, 0, 1]),
     "maximum likelihood"),
    (GaussianDiscriminant(
        DirichletCategorical(1.0, ["a", "b"]), NormalInverseGamma([0.0, 0.0], 1.0, 1.0, 1.0), "diagonal",
        columns={"gaussian": ["u", "v"]}),
     ([[0.0, 1.0], [1.0, 1.5], [2.0, 7.0], [5.0, 7.0]], [0, 0, 1, 1]), "class 'b', column 'v'"),
    (BAYES, ({"bit": [0, 1], "line": [0.0, 1.0]}, [0, 1]), "class 0, column 'line'"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "rows", "words"), NO_ML)
def test_where_maximum_likelihood_does_not_exist(model, rows, words):
    with pytest.raises(ValueError, match=words):
        fit(model, rows, "ml")


def test_where_it_does_exist_at_the_edge():
    """Sharing lends what one class lacks: one row in a class is enough once the variance is pooled."""
    x, t = np.array([[0.0, 1.0], [1.0, 1.5], [0.2, 3.0], [5.0, 5.0]]), [0, 0, 0, 1]
    for prior, covariance in ((PLANE, "full"), (NormalInverseGamma([0.0, 0.0], 1.0, 1.0, 1.0), "diagonal")):
        point = fit(GaussianDiscriminant(TWO, prior, covariance, shared=True), (x, t), "ml").params
        np.testing.assert_allclose(point["gaussian.mean"][1], [5, 5])
    round_prior = NormalInverseGamma([0.0, 0.0], 1.0, 1.0, 1.0)
    point = fit(
        GaussianDiscriminant(TWO, round_prior, "isotropic"),
        ([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0], [5.0, 6.0]], [0, 0, 1, 1]),
        "ml",
    )
    np.testing.assert_allclose(point.params["gaussian.variance"], [0.5, 0.125])  # sum of squares / (n D)
    point = fit(BAYES, ({"bit": [0, 1, 1, 1], "line": [0.0, 1.0, 2.0, 5.0]}, [0, 0, 1, 1]), "ml").params
    np.testing.assert_allclose(point["bit.probability"], [0.5, 1.0])  # an unsmoothed 1 is legitimate


@pytest.mark.parametrize(
    ("model", "rows"),
    [(BetaBernoulli(0.5, 2.0), [0, 0]), (DirichletCategorical([0.5, 1.0]), [1]), (BetaBernoulli(0.5, 0.5), [1])],
)
def test_where_map_does_not_exist(model, rows):
    with pytest.raises(ValueError, match="no mode"):
        fit(model, rows, "map")
    fit(model, rows, "exact")


# -- marginal modes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tied", [("class",), *(pytest.param(t, marks=pytest.mark.slow) for t in ((), ("class", "feature")))]
)
def test_the_marginal_mode_of_a_variance_is_that_with_the_means_integrated_out(tied):
    """By the trapezoid rule over each mean, of the density that SciPy writes."""
    x, t = np.array([[0.0, 1.0], [1.5, 2.0], [4.0, 3.5], [2.5, 3.0], [3.0, 7.0]]), np.array([0, 0, 1, 1, 1])
    shared = "class" in tied
    prior = NormalInverseGamma([1.0, 2.0], [1.5, 0.7], *([4.0, 6.0] if "feature" in tied else [[4.0, 5.0], [6.0, 5.0]]))
    model = GaussianDiscriminant(
        DirichletCategorical(1.0, 2), prior, "isotropic" if "feature" in tied else "diagonal", shared
    )
    found = model.update(model.statistics(x, t)).gaussian.marginal_mode()["variance"]
    variance, mean = np.linspace(0.3, 6, 2401)[:, None], np.linspace(-40, 40, 4001)
    alpha, beta = (np.broadcast_to(a, 2) for a in (prior.alpha, prior.beta))
    log = {}
    for k, j in np.ndindex(2, 2):
        key = (0 if shared else k, 0 if "feature" in tied else j)
        density = stats.norm.logpdf(mean, prior.mean[j], np.sqrt(variance / prior.kappa[j]))
        density = density + sum(stats.norm.logpdf(v, mean, np.sqrt(variance)) for v in x[t == k, j])
        start = log.get(key, stats.invgamma.logpdf(variance[:, 0], alpha[j], scale=beta[j]))
        log[key] = start + np.log(np.exp(density).sum(1))
    for (k, j), density in log.items():
        value = found if found.ndim == 0 else found[j] if shared else found[k, j]
        assert variance[density.argmax(), 0] == pytest.approx(float(value), abs=0.003)


def test_the_marginal_mode_of_a_covariance():
    """Its inverse-Wishart density by SciPy falls in every direction from it; of one column it is the variance's."""
    posterior = NormalInverseWishart([1.0, 2.0], 2.0, 7.0, [[8.0, 2.4], [2.4, 4.0]])
    mode = posterior.marginal_mode()["covariance"]
    top = stats.invwishart(7.0, posterior.scale).logpdf(mode)
    for step in (np.eye(2), np.diag([1.0, 0.0]), np.diag([0.0, 1.0]), np.array([[0.0, 1.0], [1.0, 0.0]])):
        for sign in (-1, 1):
            assert stats.invwishart(7.0, posterior.scale).logpdf(mode + sign * 1e-3 * step) < top
    assert (np.linalg.eigvalsh(mode - posterior.mode()["covariance"]) > 0).all()
    line, gamma = NormalInverseWishart([1.0], 2.0, 7.0, [[8.0]]), NormalInverseGamma(1.0, 2.0, 3.5, 4.0)
    assert line.marginal_mode()["covariance"].item() == pytest.approx(float(gamma.marginal_mode()["variance"]))


def test_gap_patterns_at_once_are_those_one_by_one():
    """Each by the model of the columns it has: rare patterns, frequent ones, rows without anything; 40 columns."""
    rng = np.random.default_rng(8)
    for dim, share, n in ((5, 0.1, 600), (40, 0.05, 300)):
        x = rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim)) + 1e3
        code = rng.integers(3, size=n)
        prior = NormalInverseWishart(np.zeros(dim), 0.1, dim + 2.0, np.eye(dim))
        posterior = prior.update(prior.statistics(x, code, 3))
        x[rng.random(x.shape) < share] = np.nan
        x[7] = np.nan
        x[8, : dim - 1], x[8, dim - 1] = np.nan, 1e200
        expected = np.zeros((n, 3))
        for i, row in enumerate(x):
            seen = np.flatnonzero(~np.isnan(row))
            if len(seen):
                expected[i] = posterior.marginal(seen).log_predictive(row[None, seen])[0]
        before = x.copy()
        np.testing.assert_allclose(posterior.log_predictive(x), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(x, before)
