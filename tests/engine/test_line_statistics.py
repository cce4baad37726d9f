"""The triangular factor of a line's rows: near-collinear columns keep their digits, however they were summed."""

from dataclasses import replace

import numpy as np
import pytest
from mpmath import matrix, mp
from refusals import refuses
from scipy import stats

from bayesgen import LinearRegressor
from bayesgen.models import LinearRegression, LinearRegressionKnownVariance
from bayesgen.models.linear_model import LineStatistics
from bayesgen.models.moments import Moments

KNOWN = LinearRegressionKnownVariance(np.zeros(4), 2.5e3 * np.eye(4), 0.1, columns=("a", "b", "c"))


@pytest.fixture(autouse=True)
def sixty_digits():
    with mp.workdps(60):
        yield


def near(apart, n=60, seed=0):
    """Rows whose third column is the first but for ``apart`` of its spread."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    x[:, 2] = x[:, 0] + apart * rng.normal(size=n)
    return x, 1 + x @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=n)


def summed(x, t, weight=None):
    return LineStatistics.of(x, t, np.ones(len(x)) if weight is None else weight)


def in_pieces(x, t, size=7):
    return sum(summed(x[i : i + size], t[i : i + size]) for i in range(0, len(x), size))


def products(statistics):
    """Sums of squares and products, of which the factor is one."""
    return statistics.factor.T @ statistics.factor


def exact_weights(x, t, penalty=0.0):
    """Minimum of |t - Zw|² + penalty |w|² to sixty digits."""
    z = matrix([[1, *row] for row in x.tolist()])
    return np.array([float(v) for v in mp.lu_solve(z.T * z + penalty * mp.eye(z.cols), z.T * matrix(t.tolist()))])


def exact_error(statistics, rows):
    """Return the error of the factor of the rows, in units of their spread in each direction: |L⁻¹R'R L⁻' - I|."""
    z = matrix(rows.tolist())
    for j in range(z.cols):
        centre = sum(z[:, j]) / z.rows
        z[:, j] = z[:, j] - centre * mp.ones(z.rows, 1)
    root, factor = mp.cholesky(z.T * z) ** -1, matrix(statistics.factor.tolist())
    return float(mp.norm(root * (factor.T * factor) * root.T - mp.eye(z.cols)))


# -- near-collinear columns --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [summed, in_pieces])
@pytest.mark.parametrize(("apart", "tolerance"), [(1e-3, 1e-12), (1e-6, 1e-9), (1e-7, 1e-8), (1e-11, 1e-4)])
def test_least_squares_of_columns_that_nearly_coincide(how, apart, tolerance):
    """The coefficients, of the size 1/apart, keep what float64 knows: eps/apart, times a few."""
    x, t = near(apart)
    np.testing.assert_allclose(KNOWN.least_squares(how(x, t))[0], exact_weights(x, t), rtol=tolerance)
    point = LinearRegressor(inference="ml").fit(x, t)
    np.testing.assert_allclose(point.coef_, exact_weights(x, t)[1:], rtol=tolerance)


@pytest.mark.parametrize("apart", [1e-6, 1e-7])
def test_posterior_of_columns_that_nearly_coincide(apart):
    """Ridge regression under a weak prior: its squares have a condition of 1/apart²."""
    x, t = near(apart)
    weak = LinearRegression(np.zeros(4), 1e9 * np.eye(4), 1.0, 1.0)
    expected = exact_weights(x, t, mp.mpf(10) ** -18)
    np.testing.assert_allclose(weak.update(weak.statistics(x, t)).mean, expected, rtol=2e-9)
    expected = exact_weights(x, t, (mp.mpf(0.1) / mp.mpf(2.5e3)) ** 2)
    np.testing.assert_allclose(KNOWN.update(KNOWN.statistics(x, t)).mean, expected, rtol=2e-9)


def test_likelihood_of_columns_that_nearly_coincide():
    """The residual of the target at the best coefficients, of the size 1e7, is not lost in the rounding of squares."""
    x, t = near(1e-7)
    weights = exact_weights(x, t)
    left = [mp.mpf(b) - mp.fdot([1, *a], weights.tolist()) for a, b in zip(x.tolist(), t.tolist(), strict=True)]
    expected = -30 * np.log(2 * np.pi * 0.01) - float(mp.fdot(left, left)) / 0.02
    params = KNOWN.params(weights, 0.01)
    assert KNOWN.log_likelihood(params, KNOWN.statistics(x, t)) == pytest.approx(expected, rel=1e-9)


def test_rank_is_refused_where_float64_ends():
    """A column is refused at 1e-12 of its spread, or at the rounding of its own offset, and named."""
    assert np.isfinite(KNOWN.ml(KNOWN.statistics(*near(1e-11)))["coefficients"]).all()
    refuses(lambda: KNOWN.ml(KNOWN.statistics(*near(1e-13))), r"columns \['[ac]'\] are linear combinations")
    x, t = near(1e-9)
    assert np.isfinite(KNOWN.ml(KNOWN.statistics(x, t))["coefficients"]).all()
    refuses(lambda: KNOWN.ml(KNOWN.statistics(x + 1e8, t)), r"columns \['[ac]'\] are linear combinations")


def test_units_of_columns_do_not_mix():
    x, t = near(1.0)
    units = np.array([1e150, 1e-150, 1e-6])
    ours = KNOWN.least_squares(summed(x * units, t * 1e90))[0][1:]
    np.testing.assert_allclose(ours * units / 1e90, exact_weights(x, t)[1:], rtol=1e-12)


# -- sums --------------------------------------------------------------------------------------------------------------


def test_many_pieces_of_rows_are_one_factorisation():
    """More rows than one piece has, an offset, a constant column, weights: LAPACK's factor of all rows at once."""
    rng = np.random.default_rng(0)
    x, weight = rng.normal([1e6, 0, 5], size=(150_000, 3)), rng.integers(1, 4, 150_000) * 0.5
    x[:, 2], t = 0.1, rng.normal(size=150_000)
    ours, rows = summed(x, t, weight), np.column_stack([x, t])
    assert (ours.factor[:, 2] == 0).all() and ours.mean[2] == 0.1
    mean = np.average(rows - rows[0], axis=0, weights=weight)
    plain = np.linalg.qr((rows - rows[0] - mean)[:, [0, 1, 3]] * np.sqrt(weight)[:, None], mode="r")
    expected = plain.T @ plain
    np.testing.assert_allclose(products(ours)[np.ix_([0, 1, 3], [0, 1, 3])], expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(ours.mean, rows[0] + mean, rtol=1e-14, atol=1e-14)
    assert ours.n == weight.sum()


def test_a_sum_leaves_its_parts_as_they_are():
    x, t = near(1.0)
    parts = [summed(x[:20], t[:20]), summed(x[20:40], t[20:40]), summed(x[40:], t[40:]), summed(x[:0], t[:0])]
    before = [(part.n.copy(), part.mean.copy(), part.factor.copy()) for part in parts]
    whole = sum(parts)
    assert all(
        same for part, old in zip(parts, before, strict=True) for same in map(np.array_equal, vars(part).values(), old)
    )
    np.testing.assert_allclose(whole.factor, summed(x, t).factor, rtol=1e-12)
    assert parts[3] + parts[0] == parts[0] == parts[0] + parts[3]
    assert sum([]) + parts[0] == parts[0]
    with pytest.raises(TypeError):
        whole + Moments(np.array(1.0), np.zeros(4), np.zeros((4, 4)))


def test_factor_is_unique_and_of_dependent_rows_its_squares_are():
    x, t = near(1.0)
    whole = summed(x, t)
    assert (np.diagonal(whole.factor) > 0).all() and (np.tril(whole.factor, -1) == 0).all()
    np.testing.assert_allclose(summed(x[::-1], t[::-1]).factor, whole.factor, rtol=1e-12, atol=1e-12)
    x[:, 0], x[:, 1] = 3.0, 2 * x[:, 2]
    np.testing.assert_allclose(products(in_pieces(x, t)), products(summed(x, t)), rtol=1e-12, atol=1e-12)


# -- taking rows out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [1.0, 1e-5])
def test_what_was_put_in_can_be_taken_out(apart):
    x, t = near(apart)
    x[:, 1] += 1e3
    left = summed(x, t) - summed(x[:9], t[:9])
    assert left.n == 51
    np.testing.assert_allclose(left.mean, np.column_stack([x, t])[9:].mean(0), rtol=1e-12)
    assert exact_error(left, np.column_stack([x, t])[9:]) < 1e-9
    empty = summed(x, t) - summed(x, t)
    assert empty == summed(x[:0], t[:0])
    x[:, 0] = 3.0
    np.testing.assert_allclose((summed(x, t) - summed(x[:9], t[:9])).factor, summed(x[9:], t[9:]).factor, atol=1e-9)


def test_rows_of_dependent_columns_can_be_taken_out():
    """A copy, and the columns of 0 and 1 of three categories, whose sum is 1."""
    x, t = near(0.0)
    x = np.column_stack([np.arange(60)[:, None] % 3 == [0, 1, 2], x])
    left = summed(x, t) - summed(x[:9], t[:9])
    np.testing.assert_allclose(products(left), products(summed(x[9:], t[9:])), rtol=1e-9, atol=1e-9)
    assert (np.tril(left.factor, -1) == 0).all()


def test_what_loses_digits_is_refused_and_what_is_given_has_them():
    """Near-collinear rows, some far out and taken away: each answer is right to 1e-8, the others are refused."""
    rng, given, bad = np.random.default_rng(1), 0, 0
    for _ in range(60):
        x, t = near(10.0 ** rng.uniform(-5, 0), n=30, seed=rng.integers(1 << 30))
        x[: (out := int(rng.integers(1, 20)))] *= 10.0 ** rng.uniform(0, 2)
        try:
            left = summed(x, t) - summed(x[:out], t[:out])
        except ValueError as error:
            assert "would lose the digits of what is left" in str(error)
            bad += 1
            continue
        given += 1
        assert exact_error(left, np.column_stack([x, t])[out:]) < 1e-8
    assert min(given, bad) > 10


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (near(1.0), [a[:57] for a in near(1.0)]),  # three rows are left of four columns
        ([a[:20] for a in near(1.0)], (near(1.0)[0][:5] + 100, near(1.0)[1][:5])),  # others
        (near(0.0), [a[:9] for a in near(1.0)]),  # others, of a column that is another's copy in all rows
    ],
    ids=["too few left", "not among them", "not dependent"],
)
def test_rows_that_cannot_be_taken_out(whole, part):
    refuses(lambda: summed(*whole) - summed(*part), "would lose the digits of what is left")


def test_more_rows_than_there_are_cannot_be_taken_out():
    x, t = near(1.0)
    refuses(lambda: summed(x[:9], t[:9]) - summed(x, t), "60 rows cannot be taken out of 9")
    constant = np.full((9, 3), 2.0)
    refuses(lambda: summed(constant, t[:9]) - summed(x[:3], t[:3]), "would lose the digits")


# -- far away ----------------------------------------------------------------------------------------------------------


def test_columns_too_large_are_named():
    x, t = near(1.0)
    assert np.isfinite(KNOWN.statistics(x * 1e300, t).factor).all()
    with pytest.raises(ValueError, match="column 'b' has values too large for float64; give it in larger units"):
        KNOWN.statistics(np.clip(x, -1.5, 1.5) * [1, 1e308, 1], t)
    refuses(lambda: KNOWN.statistics(x, np.where(np.arange(60) % 2, 1e308, -1e308)), "the target has values too large")


def test_predictive_of_rows_far_out():
    """Squares beyond 1e308 do not enter: with x of 1e200 the target's scale is 1e200 times a coefficient's."""
    far = np.array([[1e200, 0.0, 0.0]])
    unknown = LinearRegression(np.zeros(4), 2.0 * np.eye(4), 1.5, 0.8)
    scale = 2e200 * (0.8 / 1.5) ** 0.5
    for t in (0.0, 3e200, 1e280):
        expected = stats.t(3).logpdf(0.0) - np.log(scale) - 2 * np.log1p((min(t / scale, 1e100)) ** 2 / 3)
        if t == 1e280:
            expected = stats.t(3).logpdf(0.0) - np.log(scale) - 2 * (2 * np.log(t / scale) - np.log(3))
        np.testing.assert_allclose(unknown.log_predictive((far, [t])), expected, rtol=1e-12)
    expected = stats.norm(scale=2.5e203).logpdf(3e203)
    np.testing.assert_allclose(KNOWN.log_predictive((far, [3e203])), expected, rtol=1e-12)


def test_student_t_of_a_great_many_rows():
    """With 2e12 degrees of freedom log Γ(a + ½) - log Γ(a) is not a difference of numbers of the size 1e13."""
    sure = LinearRegression(np.zeros(2), 1e-9 * np.eye(2), 1e12, 1e12)
    expected = stats.norm.logpdf([0.0, 1.5])
    np.testing.assert_allclose(sure.log_predictive((np.zeros((2, 1)), [0.0, 1.5])), expected, rtol=1e-11)
    rows = sure.statistics(np.zeros((1, 1)), np.zeros(1))
    np.testing.assert_allclose(sure.log_evidence(rows), expected[0], rtol=1e-11)


# -- in files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": np.zeros(3)}, r"LineStatistics.mean are not finite numbers of the shape \(line\), line = 4"),
        ({"factor": np.zeros((4, 3))}, "LineStatistics.factor are not finite"),
        ({"n": np.array(np.nan)}, "LineStatistics.n are not finite"),
    ],
)
def test_what_a_file_says_of_rows_fits_the_columns(change, message):
    model = LinearRegressor().fit(*near(1.0))
    LinearRegressor.fitted_.check(model)
    model.statistics_ = replace(model.statistics_, **change)
    refuses(lambda: LinearRegressor.fitted_.check(model), message)
    model.statistics_ = Moments(np.array(1.0), np.zeros(4), np.zeros((4, 4)))
    refuses(lambda: LinearRegressor.fitted_.check(model), "statistics_ are Moments")
