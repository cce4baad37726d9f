"""Priors in an expert's words: their prior predictive has the mean and the spread that were guessed."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from refusals import refuses
from scipy import integrate, stats

from bayesgen import plot
from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    LogNormal,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownMean,
    NormalKnownVariance,
)

LEAVES = {
    "normal": NormalInverseGamma.from_guess(mean=120, sd=10, rows=20),
    "log": LogNormal.from_guess(median=1000, factor=3, rows=30),
    "counts": GammaPoisson.from_guess(mean=3, rows=2),
    "coin": BetaBernoulli.from_guess(0.2, rows=10),
    "die": DirichletCategorical([2.0, 1.0, 1.0], ["u", "v", "w"]),
}


def test_draws_have_what_was_guessed():
    rng = np.random.default_rng(0)
    draws = {name: leaf.sample_parameters(rng, (40_000,)) for name, leaf in LEAVES.items()}
    values = rng.normal(draws["normal"]["mean"], np.sqrt(draws["normal"]["variance"]))
    assert values.mean() == pytest.approx(120, abs=0.3)
    assert np.sqrt(draws["normal"]["variance"].mean()) == pytest.approx(10, rel=0.02)
    values = np.exp(rng.normal(draws["log"]["mean"], np.sqrt(draws["log"]["variance"])))
    assert np.median(values) == pytest.approx(1000, rel=0.05)
    within = (values > 1000 / 3) & (values < 3000)
    assert within.mean() == pytest.approx(0.68, abs=0.03)
    assert draws["counts"]["mean"].mean() == pytest.approx(3, rel=0.02)
    assert draws["coin"]["probability"].mean() == pytest.approx(0.2, rel=0.02)


@pytest.mark.parametrize("name", LEAVES)
def test_the_picture_has_nearly_all_of_the_predictive(name):
    ax = plot.prior(LEAVES[name], ax=Figure().subplots())
    if ax.patches:
        total = sum(bar.get_height() for bar in ax.patches)
    else:
        x, density = ax.lines[0].get_data()
        total = np.trapezoid(density, x)
    assert 0.95 < total < 1.001


def test_a_block_of_columns_is_refused():
    refuses(lambda: plot.prior(BetaBernoulli([1.0, 2.0], 1.0), ax=Figure().subplots()), "covers more")


def moments(leaf, far=400.0):
    """Mean and variance of the next value, by quadrature of the prior predictive."""

    def density(x):
        return float(np.exp(leaf.log_predictive(np.array([x]))[0]))

    def mean_of(f):
        return sum(integrate.quad(lambda x: f(x) * density(x), *ends, limit=200)[0] for ends in ((-far, 50), (50, far)))

    assert mean_of(lambda x: 1.0) == pytest.approx(1, abs=1e-4)
    mean = mean_of(lambda x: x)
    return mean, mean_of(lambda x: (x - mean) ** 2)


@pytest.mark.parametrize(
    ("cls", "inflation"), [(NormalInverseGamma, 1 + 1 / 30), (NormalKnownVariance, 1 + 1 / 30), (NormalKnownMean, 1.0)]
)
def test_the_next_number_has_the_mean_and_spread_that_were_guessed(cls, inflation):
    """A mean that is worth n rows is uncertain by sd²/n, which the next value has besides."""
    mean, variance = moments(cls.from_guess(mean=50, sd=8, rows=30))
    assert mean == pytest.approx(50, rel=1e-3)
    assert variance == pytest.approx(8**2 * inflation, rel=1e-3)


def test_the_next_count_has_the_mean_that_was_guessed():
    x = np.arange(200)
    for leaf in (GammaPoisson.from_guess(mean=3, rows=2), GammaPoisson.from_interval(2, 4.2)):
        p = np.exp(leaf.log_predictive(x.astype(float)))
        assert p.sum() == pytest.approx(1)
        assert x @ p == pytest.approx(float(leaf.mean))
    tosses = np.column_stack([np.arange(8.0), np.full(8, 7.0)])
    leaf = BetaBinomial.from_guess(0.2, rows=10)
    assert np.arange(8) @ np.exp(leaf.log_predictive(tosses[:, None] if leaf.batch_shape else tosses)) == pytest.approx(
        1.4
    )


@pytest.mark.parametrize("cls", [DirichletCategorical, DirichletMultinomial])
def test_the_next_category_or_word_is_as_probable_as_was_guessed(cls):
    leaf = cls.from_guess({"u": 0.5, "v": 0.2, "w": 0.3}, rows=10)
    assert list(leaf.categories) == ["u", "v", "w"]
    rows = np.arange(3.0) if cls is DirichletCategorical else np.eye(3)
    np.testing.assert_allclose(np.exp(leaf.log_predictive(rows)), [0.5, 0.2, 0.3])
    spread = leaf.sample_parameters(np.random.default_rng(0), (40_000,))["probability"].var(0)
    np.testing.assert_allclose(spread, np.array([0.25, 0.16, 0.21]) / 11, rtol=0.05)
    refuses(lambda: cls.from_guess({"u": 0.5, "v": 0.4}, rows=1), "must add up to 1, not")


def test_of_several_columns_each_alone_is_guessed_as_by_itself():
    several = NormalInverseWishart.from_guess([120, 80], [10, 5], rows=20, correlation=[[1, 0.6], [0.6, 1]])
    x = np.linspace(50, 170, 7)
    for j, (mean, sd) in enumerate([(120, 10), (80, 5)]):
        alone = NormalInverseGamma.from_guess(mean, sd, rows=20)
        rows = np.full((7, 2), np.nan)
        rows[:, j] = x
        np.testing.assert_allclose(several.log_predictive(rows), alone.log_predictive(x), rtol=1e-12)
    draws = several.sample_parameters(np.random.default_rng(0), (20_000,))["covariance"].mean(0)
    np.testing.assert_allclose(draws, [[100, 30], [30, 25]], rtol=0.02)


@pytest.mark.parametrize(
    ("low", "high", "mass"), [(0.1, 0.3, 0.9), (0.4, 0.6, 0.5), (1e-4, 0.02, 0.95), (0.9, 0.999, 0.8)]
)
@pytest.mark.parametrize("cls", [BetaBernoulli, BetaBinomial])
def test_an_interval_of_a_probability_holds_what_was_said(cls, low, high, mass):
    leaf = cls.from_interval(low, high, mass)
    density = stats.beta(float(leaf.a), float(leaf.b)).pdf
    assert integrate.quad(density, low, high)[0] == pytest.approx(mass, rel=1e-6)
    assert integrate.quad(density, high, 1, limit=200)[0] == pytest.approx((1 - mass) / 2, rel=1e-5)


@pytest.mark.parametrize(("low", "high", "mass"), [(1, 5, 0.5), (100, 130, 0.9), (0.01, 3, 0.9)])
def test_an_interval_of_a_mean_count_holds_what_was_said(low, high, mass):
    leaf = GammaPoisson.from_interval(low, high, mass)
    density = stats.gamma(float(leaf.concentration), scale=1 / float(leaf.rate)).pdf
    assert integrate.quad(density, low, high)[0] == pytest.approx(mass, rel=1e-6)
    assert integrate.quad(density, high, np.inf)[0] == pytest.approx((1 - mass) / 2, rel=1e-5)


@pytest.mark.parametrize(
    ("cls", "given", "words"),
    [
        (BetaBernoulli, (0.3, 0.1), "in order and between 0 and 1, got 0.3 and 0.1"),
        (BetaBernoulli, (0.3, 1.0), "in order and between 0 and 1"),
        (GammaPoisson, (0, 3), "in order and between 0 and infinity"),
        (GammaPoisson, (1, 3, 90), "mass must be between 0 and 1, got 90"),
        (BetaBernoulli, (0.5, 0.5000001), "no prior is so wide or so narrow"),
    ],
)
def test_what_is_no_interval_is_refused(cls, given, words):
    refuses(lambda: cls.from_interval(*given), words)
