"""Simulation-based calibration: right posteriors pass, wrong ones do not, and the test itself is exact."""

import itertools
from dataclasses import dataclass, replace

import calibrate
import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats
from test_own_leaf import GammaExponential

from bayesgen import NUTS, Exact
from bayesgen.inference import ParameterDraws
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GammaPoisson,
    GaussianDiscriminant,
    KnownCategorical,
    LinearRegression,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownVariance,
)
from bayesgen.numerics.draws import band, uniformity
from bayesgen.plot import calibration
from bayesgen.testing import check_calibration

LEVEL = 1e-3  # at which a right posterior fails once in a thousand seeds; these have theirs

# -- posteriors that are right


# Worlds like another: the slow tests have them, and `python tests/calibrate.py exact` with more simulations.
AGAIN = ("gaussian space", "gaussian line", "counts with gaps", "heads of six", "gauges")
AGAIN += ("counts", "chain", "weather stations", "normals", "dice", "skewed from 0", "linear regression through 0")
AGAIN += (
    "full, weak prior, missing rows",
    "full shared, missing rows",
    "diagonal shared, with gaps",
    "isotropic shared, with gaps",
)
AGAIN += ("naive Bayes with gaps", "normals with gaps", "dice with gaps", "naive Bayes of counts", "bag of words")


@pytest.mark.parametrize(
    "world", [pytest.param(w, id=w.name, marks=[pytest.mark.slow] * (w.name in AGAIN)) for w in calibrate.EXACT]
)
def test_exact_posteriors_are_calibrated(world):
    result = world.check(100)
    assert result.ok(LEVEL), str(result)
    assert (result.simulations, result.draws, result.effective, result.divergent) == (100, 99, np.inf, 0)


def test_a_leaf_of_ones_own_is_calibrated():
    result = check_calibration(GammaExponential([2.0, 3.0], 1.5), 8, missing=calibrate.gaps(2)[:8], seed=0)
    assert result.ok(LEVEL), str(result)
    assert list(result.ranks) == ["rate[0]", "rate[1]", "log_likelihood"]


@pytest.mark.compiles
def test_nuts_is_calibrated():
    world = calibrate.SAMPLED[0]  # all of them: `python tests/calibrate.py nuts`
    result = world.check(20, calibrate.SAMPLER, draws=49)
    assert result.ok(LEVEL) and result.effective > 49, str(result)


# -- posteriors that are wrong


class Forgetful(NormalInverseGamma):
    """Forgets to add the rows to kappa."""

    def update(self, statistics):
        return replace(super().update(statistics), kappa=self.kappa)


class Overcounting(NormalInverseWishart):
    """Counts the degrees of freedom of a mean that it knows anyway."""

    def update(self, statistics):
        right = super().update(statistics)
        return replace(right, nu=right.nu + 3)


class Improper(BetaBernoulli):
    """Learns as if the prior were Beta(0, 0)."""

    def update(self, statistics):
        zeros, ones = np.moveaxis(statistics.total(), -1, 0)
        return BetaBernoulli(ones + 1e-9, zeros + 1e-9)


class GapsAreZeros(GammaPoisson):
    """Takes a missing count for no event."""

    def statistics(self, x, group=None, groups=None, weight=None):
        return super().statistics(np.nan_to_num(x), group, groups, weight)


@dataclass(frozen=True)
class Narrow:
    """A sampler whose draws are too close to their mean."""

    share: float

    def __call__(self, model, data, *, seed=None):
        sites = Exact()(model, data).draws(seed, (1, 500))
        mean = {site: v.mean((0, 1)) for site, v in sites.items()}
        return ParameterDraws(model, {site: mean[site] + self.share * (v - mean[site]) for site, v in sites.items()})


FLAT = DirichletCategorical(1.0, 2)
WRONG = {
    "update without kappa": (Forgetful(1.0, 1.0, 3.0, 2.0), "exact", None),
    "degrees of freedom": (Overcounting([0.0, 1.0], 1.0, 4.0, np.eye(2)), "exact", None),
    "no prior": (Improper(2.0, 3.0), "exact", None),
    "gaps as zeros": (GapsAreZeros(2.0, 0.5), "exact", calibrate.gaps(share=0.5)[:4]),
    "one leaf of several": (
        NaiveBayes(FLAT, {"right": BetaBernoulli(1, 1), "wrong": Improper(2.0, 3.0)}), "exact", None
    ),
    "narrow draws": (NormalKnownVariance(1.0, 2.0, 1.5), Narrow(0.6), None),
    "wide draws": (NormalKnownVariance(1.0, 2.0, 1.5), Narrow(1.6), None),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.compiles] * (k in ("gaps as zeros", "wide draws"))) for k in WRONG]
)
def test_a_wrong_posterior_fails(kind):
    model, inference, missing = WRONG[kind]
    result = check_calibration(model, 4, inference, missing=missing, seed=0)
    assert not result.ok(LEVEL), str(result)


def test_a_wrong_likelihood_shows_in_the_log_likelihood_alone():
    """The posterior is the prior, data unheard: parameters rank uniformly, only the test quantity notices."""

    class Deaf(BetaBernoulli):
        def update(self, statistics):
            return self

    result = check_calibration(Deaf(2.0, 3.0), 10, simulations=200, seed=0)
    assert result.p_values["probability"] > 0.01 and result.p_values["log_likelihood"] < 1e-6


# -- the test itself


def test_the_p_value_is_exact():
    """Against all outcomes of three ranks in 0..2, with SciPy's binomial test at each point."""
    outcomes = list(itertools.product(range(3), repeat=3))
    tails = [min(1.0, *(2 * min(stats.binom.cdf(c, 3, q), stats.binom.sf(c - 1, 3, q))
                        for q, c in ((1 / 3, ranks.count(0)), (2 / 3, 3 - ranks.count(2)))))
             for ranks in outcomes]  # fmt: skip
    for ranks, tail in zip(outcomes, tails, strict=True):
        share = np.mean([other <= tail * (1 + 1e-9) for other in tails])
        assert uniformity(ranks, 2) == pytest.approx(share, abs=1e-12)


def test_uniform_ranks_leave_the_band_as_often_as_they_may():
    rng = np.random.default_rng(0)
    low, high = band(80, 19, 0.2)
    out = []
    for _ in range(2000):
        ranks = rng.integers(20, size=80)
        below = np.bincount(ranks, minlength=20).cumsum()[:-1]
        out.append(bool(((below < low) | (below > high)).any()))
        assert out[-1] == (uniformity(ranks, 19) <= 0.2)
    assert 0.14 < np.mean(out) < 0.23  # at most 0.2, and a little less as counts are whole


def test_holm_takes_the_number_of_tests_into_account():
    result = calibrate.EXACT[2].check(100)
    least = sorted(result.p_values.values())
    assert result.p_value == min(1.0, len(least) * least[0])
    assert list(result.adjusted.values()) == sorted(result.adjusted.values())
    assert result.adjusted.keys() == result.p_values.keys()
    assert f"{result.p_value:.2g}" in str(result)


# -- behaviour


@pytest.mark.compiles
def test_the_seed_decides():
    one, same, other = (check_calibration(BetaBernoulli(2, 3), 10, simulations=30, seed=s).ranks for s in (1, 1, 2))
    assert all((one[name] == same[name]).all() for name in one)
    assert any((one[name] != other[name]).any() for name in one)


@pytest.mark.compiles
def test_slow_chains_run_for_longer():
    sampler = NUTS(num_samples=60, num_warmup=100, num_chains=1)
    result = check_calibration(BetaBernoulli(2, 3), 10, sampler, simulations=3, draws=49, seed=0)
    assert result.effective >= 49


@pytest.mark.compiles
def test_a_curve_leaves_the_band_where_the_posterior_is_wrong():
    with mpl.rc_context({"backend": "agg"}):
        from matplotlib.figure import Figure

        for model, wrong in ((BetaBernoulli(2, 3), False), (WRONG["no prior"][0], True)):
            result = check_calibration(model, 4, seed=0)
            ax = calibration(result, ax=Figure().add_subplot())
            assert result.ok() is not wrong
            assert (ax.get_legend() is not None) is wrong
            lines = [line for line in ax.lines if len(line.get_xdata()) == 101]
            assert len(lines) == len(result.ranks)
            assert all(abs(line.get_ydata()[[0, -1]]).max() < 1e-12 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"model": "beta"}, TypeError, "model must be a model"),
        ({"size": 0}, ValueError, "size must be a whole number >= 1, got 0"),
        ({"simulations": 2.5}, ValueError, "simulations must be a whole number"),
        ({"draws": -1}, ValueError, "draws must be a whole number"),
        ({"inference": "mcmc"}, ValueError, "inference must be one of"),
        ({"inference": "map"}, TypeError, "MAP gives a point, not a posterior"),
        ({"model": KnownCategorical([0.5, 0.5])}, ValueError, "nothing to learn"),
        ({"missing": [True]}, ValueError, r"missing must have the shape of the rows, \(5,\)"),
        (
            {"model": LinearRegression(mean=[0, 0], factor=np.eye(2))},
            TypeError,
            "no distribution of its columns: give simulate=",
        ),
        (
            {"model": GaussianDiscriminant(FLAT, NormalInverseWishart([0, 0], 1, 4, np.eye(2))),
             "missing": np.eye(5, 2)},
            ValueError,
            "partly missing.*no exact posterior",
        ),
    ],
)  # fmt: skip
def test_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        check_calibration(**{"model": BetaBernoulli(1, 1), "size": 5, "simulations": 5} | arguments)
