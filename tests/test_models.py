"""Answers of single models: the coin of the lecture, data of any type, marginal modes."""

import numpy as np
import pytest
from scipy import stats

from bayesgen import fit
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
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
    from bayesgen.inference import ParameterDraws

    draws = ParameterDraws(BetaBernoulli(), {"probability": np.array([[1.0, 0.5]])})
    np.testing.assert_allclose(draws.log_predictive([0, 1]), np.log([0.25, 0.75]), rtol=1e-14)


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
    variance, mean = np.linspace(0.3, 6, 2401)[:, None], np.linspace(-30, 30, 301)
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
