"""Special functions against 60 digits: both namespaces, both precisions, gradients, and the densities that use them."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import special as scipy_special

from bayesgen.numerics import special
from bayesgen.numerics.special import (
    log1p_sum_squares,
    log_beta_binomial,
    log_beta_ratio,
    log_gamma_ratio,
    log_multichoose,
    multivariate_log_gamma_ratio,
    namespace,
)

mp = mpmath.mp.clone()
mp.dps = 60
EDGES = [1e-8, 1e-4, 0.3, 0.5, 1, 1.5, 2, 3, 9.5, np.nextafter(10, 0), 10, 10.5, 100, 1e4, 1e7, 1e10, 2.0**52, 2.0**53]


def arguments(count, edges, size, seed=0):
    """Every combination of the edges, and random logarithms: ``count`` arrays."""
    rng = np.random.default_rng(seed)
    grid = np.array(np.meshgrid(*[edges] * count)).reshape(count, -1)
    return np.concatenate([grid, 10 ** rng.uniform(-8, np.log10(2.0**53), (count, size))], axis=1)


def counts():
    """Concentrations and counts."""
    a, x = arguments(2, EDGES, 200)
    return np.array([a, np.floor(x)])


def errors(values, exact, arguments, largest=0):
    """Error of each value, in units of max(1, |exact|, largest)."""
    wanted = [exact(*(mp.mpf(float(v)) for v in column)) for column in np.transpose(arguments)]
    scale = np.broadcast_to(largest, len(wanted))
    pairs = zip(np.asarray(values), wanted, scale, strict=True)
    return np.array([float(abs(mp.mpf(float(v)) - w) / max(1, abs(w), m)) for v, w, m in pairs])


def ratio(a, d):
    return mp.loggamma(a + d) - mp.loggamma(a)


def log_beta(a, b):
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def beta_ratio(a, b, x, y):
    return log_beta(a + x, b + y) - log_beta(a, b)


def beta_binomial(a, b, x, y):
    return beta_ratio(a, b, x, y) - log_beta(x + 1, y + 1) - mp.log(x + y + 1)


def multichoose(a, x):
    return ratio(a, x) - mp.loggamma(x + 1)


def tosses():
    """Beta's a and b, heads and tails: any values, and likely ones at counts up to 1e15."""
    wide = arguments(4, [1e-8, 1, 9.99, 1e6, 2.0**53], 300)
    rng, size = np.random.default_rng(1), 600
    total, share, n = 10 ** rng.uniform(0, 15, size), rng.beta(0.7, 0.7, size), np.floor(10 ** rng.uniform(0, 15, size))
    a, b = total * share + 1e-3, total * (1 - share) + 1e-3
    theta = rng.beta(a, b)
    heads = np.floor(np.clip(n * theta + rng.normal(size=size) * np.sqrt(n * theta * (1 - theta)), 0, n))
    wide[2:] = np.floor(wide[2:])
    return np.concatenate([wide, [a, b, heads, n - heads]], axis=1)


# name -> function, exact, arguments, tolerance in float64 and float32
CASES = {
    "log_gamma_ratio": (log_gamma_ratio, ratio, arguments(2, EDGES, 400), 1e-13, 1e-5),
    "log_multichoose": (log_multichoose, multichoose, counts(), 1e-13, 2e-5),
    "log_beta_ratio": (log_beta_ratio, beta_ratio, arguments(4, [1e-8, 1, 9.99, 1e6, 2.0**53], 300), 4e-13, 8e-5),
    "log_beta_binomial": (log_beta_binomial, beta_binomial, tosses(), 3e-13, 6e-5),
}


def rounding(points, tolerance, eps):
    """Bound on the rounding of ratios of beta functions, derived in `log_beta_binomial`, in units of the tolerance."""
    if len(points) < 4:
        return 0
    a, b, x, y = points.astype(float)
    return 8 * eps * (1 + np.minimum(a + b, x + y)) * np.log1p(a + b + x + y) / tolerance


@pytest.mark.parametrize("name", CASES)
def test_digits(name):
    function, exact, points, tolerance, _ = CASES[name]
    values, bound = function(*points), rounding(points, tolerance, 2.0**-52)
    assert isinstance(values, np.ndarray)
    assert errors(values, exact, points, bound).max() < tolerance
    with jax.enable_x64(True):
        traced = jax.jit(function)(*(jnp.asarray(v) for v in points))
    assert traced.dtype == np.float64
    assert errors(traced, exact, points, bound).max() < tolerance


@pytest.mark.compiles
@pytest.mark.parametrize("name", CASES)
def test_single_precision(name):
    function, exact, points, _, tolerance = CASES[name]
    points = points[:, ::8].astype(np.float32)
    values = jax.jit(function)(*points * jnp.ones((), jnp.float32))
    assert values.dtype == np.float32
    assert errors(values, exact, points, rounding(points, tolerance, 2.0**-23)).max() < tolerance


def test_a_step_down():
    a, share = arguments(2, EDGES, 300)
    end = a * (share / share.max()) ** 0.2
    d = end - a
    a, d = (v[(d < 0) & (a + d > 0)] for v in (a, d))
    assert errors(log_gamma_ratio(a, d), ratio, [a, d]).max() < 1e-13


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_gradients(dtype, tolerance):
    points = arguments(2, EDGES, 300).astype(dtype)
    a, d = points.astype(float)
    largest = np.maximum(abs(scipy_special.digamma(a)), abs(scipy_special.digamma(a + d)))
    with jax.enable_x64(dtype == np.float64):
        gradient = jax.jit(jax.vmap(jax.grad(log_gamma_ratio, (0, 1))))
        by_a, by_d = gradient(*(jnp.asarray(v) for v in points))
    assert errors(by_a, lambda a, d: mp.psi(0, a + d) - mp.psi(0, a), points, largest).max() < tolerance
    assert errors(by_d, lambda a, d: mp.psi(0, a + d), points, largest).max() < tolerance


def test_gradient_at_no_step():
    with jax.enable_x64(True):
        for a in (0.5, 20.0):
            by_a, by_d = jax.jit(jax.grad(log_gamma_ratio, (0, 1)))(a, 0.0)
            assert by_a == pytest.approx(0, abs=1e-14)
            assert by_d == pytest.approx(scipy_special.digamma(a), rel=1e-14)


@pytest.mark.compiles
@pytest.mark.parametrize(("function", "exact"), [(log_beta_ratio, beta_ratio), (log_beta_binomial, beta_binomial)])
def test_gradients_of_beta(function, exact):
    points = tosses()[:, ::14]
    a, b, x, y = points
    largest = abs(scipy_special.digamma([a, b, a + b, a + b + x + y])).max(0)
    with jax.enable_x64(True):
        by_a, by_b = jax.jit(jax.vmap(jax.grad(function, (0, 1))))(*(jnp.asarray(v) for v in points))

    def slope(a, b, x, y):
        return mp.psi(0, a + x) - mp.psi(0, a + b + x + y) - mp.psi(0, a) + mp.psi(0, a + b)

    assert errors(by_a, slope, points, largest).max() < 1e-12
    assert errors(by_b, lambda a, b, x, y: slope(b, a, y, x), points, largest).max() < 1e-12


def test_no_data_is_exactly_certain():
    a = np.array(EDGES)
    assert (log_gamma_ratio(a, 0.0) == 0).all()
    assert (log_beta_ratio(a, a[:, None], 0.0, 0.0) == 0).all()
    assert (log_beta_binomial(a, a[:, None], 0.0, 0.0) == 0).all()


@pytest.mark.parametrize("n", [1e10, 1e12, 1e15])
def test_student_t_predictive(n):
    """A density with n rows behind it, which two log-gammas missed by 6e-7, 2e-3 and 0.9."""
    z = np.array([0.0, 0.5, 3.0, 40.0])
    value = log_gamma_ratio(n / 2, 0.5) - 0.5 * np.log(np.pi * n) - (n + 1) / 2 * np.log1p(z**2 / n)
    m = mp.mpf(n)
    for own, at in zip(value, z, strict=True):
        exact = ratio(m / 2, mp.mpf(0.5)) - mp.log(mp.pi * m) / 2 - (m + 1) / 2 * mp.log1p(mp.mpf(at) ** 2 / m)
        assert abs(own - exact) < 1e-12 * max(1, abs(exact))


@pytest.mark.parametrize("nu", [4.0, 30.5, 1e10, 2.0**52])
def test_multivariate_log_gamma_ratio(nu):
    def exact(nu, d, dim):
        return mp.fsum(ratio((nu - j) / 2, d / 2) for j in range(dim))

    for d in (1.0, 7.5, 1e9):
        wanted = exact(mp.mpf(nu), mp.mpf(d), 4)
        assert abs(multivariate_log_gamma_ratio(nu, d, 4) - wanted) < 1e-13 * max(1, abs(wanted))
        with jax.enable_x64(True):
            traced = jax.jit(multivariate_log_gamma_ratio, static_argnums=2)(jnp.full((2, 3), nu), jnp.full(3, d), 4)
        assert traced.shape == (2, 3)
        assert np.allclose(traced, float(wanted), rtol=1e-13)


def test_blocks_broadcast():
    a, d = np.linspace(0.5, 40, 30)[:, None, None], np.linspace(0, 9, 40 * 30).reshape(40, 30)
    values = log_gamma_ratio(a, d)
    assert values.shape == (30, 40, 30)
    assert np.array_equal(values[7], log_gamma_ratio(a[7], d))
    assert log_gamma_ratio(a[:, :, 0], np.ones((1, 0))).shape == (30, 0)


def test_missing_and_integers():
    assert np.isnan(log_gamma_ratio(3.0, np.nan))
    assert np.isnan(log_beta_binomial(3.0, 2.0, np.nan, 1.0))
    assert log_multichoose(2, np.uint8(255)) == pytest.approx(np.log(256), rel=1e-15)
    assert log_gamma_ratio(jnp.asarray(3), 2).dtype == np.float32


@pytest.mark.compiles
def test_under_the_strictest_settings():
    with np.errstate(all="raise"):
        for function, _, points, *_ in CASES.values():
            assert np.isfinite(function(*points)).all()
        assert log1p_sum_squares(np.array([1e300, 1e-300])) == pytest.approx(600 * np.log(10), rel=1e-15)
    with jax.disable_jit(), jax.numpy_rank_promotion("raise"):
        assert log_gamma_ratio(jnp.ones((3, 1)), jnp.ones(2)).shape == (3, 2)
        assert log_beta_binomial(jnp.ones(3), 2.0, np.ones((2, 3)), 1).shape == (2, 3)
        assert multivariate_log_gamma_ratio(jnp.full((2, 3), 9.0), jnp.ones(3), 4).shape == (2, 3)
        assert log1p_sum_squares(jnp.ones((3, 2))).shape == (3,)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e153, 1e154, 1e300])
def test_sums_of_squares(scale):
    z = np.array([[3.0, -4.0, 0.5], [0.0, 0.0, 0.0], [1e-8, 1.0, 0.1]]) * scale
    wanted = [float(mp.log1p(mp.fsum(mp.mpf(float(v)) ** 2 for v in row))) for row in z]
    assert np.allclose(log1p_sum_squares(z), wanted, rtol=1e-15, atol=0)
    assert np.allclose(log1p_sum_squares(z.T, axis=0), wanted, rtol=1e-15, atol=0)
    single = [float(mp.log1p(mp.mpf(float(v)) ** 2)) for v in z[:, 1]]
    assert np.allclose(log1p_sum_squares(z[:, 1], axis=()), single, rtol=1e-15, atol=0)
    with jax.enable_x64(True):
        assert np.allclose(jax.jit(log1p_sum_squares)(jnp.asarray(z)), wanted, rtol=1e-14, atol=0)
        assert np.allclose(
            jax.jit(lambda z: log1p_sum_squares(z, ()))(jnp.asarray(z[:, 1])), single, rtol=1e-14, atol=0
        )
        slope = jax.jit(jax.grad(log1p_sum_squares))(jnp.asarray(z[0]))
        exact = [2 * mp.mpf(v) / (1 + mp.fsum(mp.mpf(w) ** 2 for w in z[0].tolist())) for v in z[0].tolist()]
        assert np.allclose(slope, [float(v) for v in exact], rtol=1e-14, atol=0)


def test_squares_of_nothing_missing_and_infinite():
    z = np.array([[np.nan, 1e300], [np.inf, 1.0], [2.0, 1.0]])
    for value in (log1p_sum_squares(z), log1p_sum_squares(jnp.asarray(np.clip(z, None, 1e30)).at[1, 0].set(jnp.inf))):
        assert np.isnan(value[0]) and value[1] == np.inf and value[2] == pytest.approx(np.log(6))
    assert (log1p_sum_squares(np.ones((3, 0))) == 0).all()


def test_the_table():
    x = np.array([0.5, 3.0])
    for name in ("gammaln", "log_ndtr"):
        assert np.array_equal(getattr(special, name)(x), getattr(scipy_special, name)(x))
        with jax.enable_x64(True):
            assert np.allclose(getattr(special, name)(jnp.asarray(x)), getattr(scipy_special, name)(x), rtol=1e-13)
    assert special.xlogy(0.0, 0.0) == 0
    assert special.xlogy(jnp.zeros(()), 0.0) == 0
    assert namespace(x, 1.0, None) is np
    assert namespace(x, jnp.ones(2)) is jnp
    assert jax.jit(lambda a: a + (namespace(a) is jnp))(1) == 2
