"""Partial pooling over classes: against the written-out program, grids, published numbers, and its two limits."""

import numpy as np
import pandas as pd
import pytest
from arviz_stats import ess
from numpyro.infer.util import log_density
from refusals import refuses
from scipy import stats
from scipy.special import softmax

import bayesgen as bg
from bayesgen.core import program
from bayesgen.inference.whitening import collapsed
from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    LogNormal,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownMean,
    NormalKnownVariance,
    Pooled,
)
from bayesgen.models.beside_constants import marked_per_class
from bayesgen.models.function import statistics_program

CLASSES = DirichletCategorical(1.5, ["a", "b", "c"])
T = np.array([0, 0, 0, 1, 1, 1, 1, 2])
RNG = np.random.default_rng(0)
REAL, GAP = RNG.normal(1.0, 1.5, (8, 2)), np.r_[True, np.zeros(7, bool)][:, None] & [False, True]
LEAVES = {
    "coins": (BetaBernoulli([1.0, 2.0], 1.5), np.where(GAP, np.nan, RNG.integers(2, size=(8, 2)))),
    "heads": (BetaBinomial(1.0, 2.0, trials=5), RNG.integers(6, size=8)),
    "dice": (DirichletCategorical([[1.0, 2.0, 0.5], [1.0, 1.0, 3.0]]), RNG.integers(3, size=(8, 2))),
    "bag": (DirichletMultinomial([1.0, 2.0, 0.5], length=4), RNG.multinomial(4, [0.2, 0.3, 0.5], 8)),
    "counts": (GammaPoisson([2.0, 1.0], 0.5), RNG.poisson(3, (8, 2))),
    "means": (NormalKnownVariance([0.0, 1.0], 2.0, [1.0, 1.5]), np.where(GAP, np.nan, REAL)),
    "variances": (NormalKnownMean([0.0, 1.0], 2.0, 1.5), REAL),
    "normals": (NormalInverseGamma([0.0, 1.0], 0.5, 2.0, 1.5), np.where(GAP, np.nan, REAL)),
    "log normal": (LogNormal(0.0, 0.5, 2.0, 1.5), np.exp(REAL[:, 0])),
}


def by_scipy(posterior, theta):
    """Log density of the parameters of the classes under their conjugate posteriors."""
    if isinstance(posterior, BetaBernoulli | BetaBinomial):
        return stats.beta(posterior.a, posterior.b).logpdf(theta["probability"]).sum()
    if isinstance(posterior, DirichletCategorical | DirichletMultinomial):
        alpha, p = (v.reshape(-1, 3) for v in (posterior.alpha, theta["probability"]))
        return sum(stats.dirichlet(a).logpdf(x) for a, x in zip(alpha, p, strict=True))
    if isinstance(posterior, GammaPoisson):
        return stats.gamma(posterior.concentration, scale=1 / posterior.rate).logpdf(theta["mean"]).sum()
    if isinstance(posterior, NormalKnownVariance):
        return stats.norm(posterior.mean, posterior.sd).logpdf(theta["mean"]).sum()
    density = stats.invgamma(posterior.alpha, scale=posterior.beta).logpdf(theta["variance"]).sum()
    if isinstance(posterior, NormalKnownMean):
        return density
    return (
        density + stats.norm(posterior.mean, np.sqrt(theta["variance"] / posterior.kappa)).logpdf(theta["mean"]).sum()
    )


ALIKE = ("heads", "bag", "variances", "log normal")  # others share their code


@pytest.mark.compiles
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in ALIKE else []) for n in LEAVES])
def test_what_nuts_samples_is_the_written_out_program_integrated(name):
    """p(population, x) = p(population, θ, x) / p(θ | population, x), at any θ; rows have gaps, and weights."""
    leaf, x = LEAVES[name]
    model = NaiveBayes(CLASSES, {"x": Pooled(leaf, scale=0.7)})
    statistics = model.statistics({"x": x}, T)
    pooled, sums = model.leaves["x"], statistics.leaves["x"]
    params = of_prior(pooled, np.random.default_rng(1))
    population = {site: v for site, v in params.items() if "centre" in site or "spread" in site}
    values = {"classes.probability": np.array([0.2, 0.5, 0.3]), **{f"x.{site}": v for site, v in params.items()}}
    own, sums_of_population, _ = collapsed(model, statistics)
    with program.x64():
        joint = float(log_density(model, ({"x": np.asarray(x, float)}, T), {}, values)[0])
        other = float(log_density(statistics_program, (own, sums_of_population), {}, values)[0])
    theta = by_scipy(pooled.given_rows(population, sums), pooled.members(params))
    np.testing.assert_allclose(other, joint - theta, rtol=1e-9)


def of_prior(pooled, rng):
    """Values of every site: any would do."""
    centre = {f"centre_{site}": v for site, v in pooled.leaf.sample_parameters(rng).items()}
    params = {**centre, **{site: rng.uniform(0.3, 0.9, pooled.features) for site in pooled.population.spreads}}
    return {**params, **pooled.given(params).for_classes(3).sample_parameters(rng)}


@pytest.mark.parametrize("name", LEAVES)
def test_the_limits_are_one_leaf_for_all_and_each_class_by_itself(name):
    leaf, x = LEAVES[name]
    pooled = Pooled(leaf)
    grouped, one = leaf.statistics(x, T, 3), leaf.statistics(x)
    centre = leaf.sample_parameters(np.random.default_rng(2))
    params = {f"centre_{site}": v for site, v in centre.items()}

    def evidence(spread):
        spreads = dict.fromkeys(pooled.population.spreads, np.full(pooled.features, spread))
        return float(pooled.given({**params, **spreads}).log_evidence(grouped))

    np.testing.assert_allclose(evidence(1e-6), leaf.log_likelihood(centre, one), rtol=1e-6)  # all share the centre
    if "variance" not in name and name not in ("normals", "log normal"):  # there ML may not exist
        far = pooled.given({**params, "spread": np.full(pooled.features, 1e6)}).update(grouped).expected()
        for site, ml in leaf.ml(grouped).items():
            np.testing.assert_allclose(far[site], ml, rtol=1e-6, atol=1e-6)


EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


@pytest.fixture(scope="module")
def schools():
    """Eight schools (Rubin 1981) as classes of one row: its weight is its precision, in units of a noise of 1."""
    X = pd.DataFrame({"effect": EFFECTS})
    leaf = Pooled(NormalKnownVariance(mean=0.0, sd=5.0, noise_sd=1.0), scale=5.0)
    nuts = bg.NUTS(num_samples=2000, num_warmup=300, num_chains=1)
    classifier = bg.NaiveBayesClassifier({"effect": leaf}, inference=nuts, random_state=0)
    return classifier.fit(X, list("ABCDEFGH"), sample_weight=ERRORS**-2.0), X


def test_eight_schools_are_those_of_a_grid_and_of_posteriordb(schools):
    samples = schools[0].posterior_.samples
    mu, log_tau = (v.ravel() for v in np.meshgrid(np.linspace(-25, 35, 121), np.linspace(-6, 7, 521)))
    tau = np.exp(log_tau)
    density = stats.norm(0, 5).logpdf(mu) + stats.halfcauchy(0, 5).logpdf(tau) + log_tau
    density += stats.norm(mu[:, None], np.hypot(tau[:, None], ERRORS)).logpdf(EFFECTS).sum(1)
    p, shrunk = softmax(density), 1 / (1 + (tau[:, None] / ERRORS) ** 2)
    np.testing.assert_allclose([p @ mu, np.minimum(tau, 80) @ p], [4.41, 3.58], atol=0.05)  # posteriordb
    exact = {
        "effect.centre_mean": p @ mu,
        "effect.mean": p @ (shrunk * mu[:, None] + (1 - shrunk) * EFFECTS),
        "effect.spread": p @ np.log(tau),
    }
    for site, mean in exact.items():
        draws = np.log(samples[site]) if site == "effect.spread" else samples[site]
        error = draws.std((0, 1)) / np.sqrt(ess(draws, chain_axis=0, draw_axis=1))
        assert (np.abs(draws.mean((0, 1)) - mean) < 5 * error).all(), site


def test_an_estimator_with_a_pooled_leaf_does_what_others_do(schools, tmp_path):
    classifier, X = schools
    rows = pd.concat([X, pd.DataFrame({"effect": [np.nan]})])
    probability = classifier.predict_proba(rows)
    np.testing.assert_allclose(probability[8], np.exp(classifier.posterior_.log_class_prior), rtol=1e-9)
    classifier.save(tmp_path / "schools.bayesgen")
    np.testing.assert_array_equal(bg.load(tmp_path / "schools.bayesgen").predict_proba(rows), probability)
    posterior = classifier.to_arviz()["posterior"]
    assert posterior["effect.mean"].dims == ("chain", "draw", "class")
    assert posterior["effect.spread"].dims == posterior["effect.centre_mean"].dims == ("chain", "draw")
    means = classifier.summary().to_frame().loc[("effect", "mean")]
    np.testing.assert_allclose(means, posterior["effect.mean"].mean(("chain", "draw")), rtol=1e-9)
    assert list(bg.inspection.impute(classifier, rows)["effect"].isna()) == [False] * 9


@pytest.mark.slow
def test_nuts_on_the_population_is_calibrated():
    leaves = {"bit": Pooled(BetaBernoulli(2.0, 1.5), 0.8), "size": Pooled(NormalInverseGamma(1.0, 1.0, 4.0, 5.0), 0.5)}
    nuts = bg.NUTS(num_samples=300, num_warmup=300, num_chains=1)
    result = bg.testing.check_calibration(NaiveBayes(CLASSES, leaves), 15, nuts, simulations=100, draws=49, seed=0)
    assert result.ok(1e-3), str(result)


def test_what_is_no_population_is_refused():
    with pytest.raises(TypeError, match=r"leaf must be a BetaBernoulli, .*got NormalInverseWishart"):
        Pooled(NormalInverseWishart([0.0, 0.0], 1.0, 4.0, np.eye(2)))
    refuses(lambda: Pooled(BetaBernoulli(1, 1), scale=-1), "scale must be positive, got -1")
    with pytest.raises(ValueError, match=r"scale has the shape \(3,\), the leaf \(2,\)"):
        Pooled(BetaBernoulli([1.0, 1.0], 1), scale=[1.0, 1.0, 1.0])
    coin = BetaBernoulli(1, 1)
    refuses(lambda: Pooled(marked_per_class(coin.update(coin.statistics([0, 1], [0, 1], 2)))), "leaf is a posterior")
    model = NaiveBayes(CLASSES, {"x": Pooled(coin)})
    with pytest.raises(ValueError, match=r"Pooled\(BetaBernoulli\) has no posterior mode.*'nuts' or 'laplace'"):
        bg.fit(model, ({"x": T % 2}, T), "map")
    for part, data in ((model, ({"x": T % 2}, T)), (Pooled(coin), T % 2)):
        with pytest.raises(TypeError, match=r"no exact posterior.*; use inference='nuts' or 'laplace'"):
            bg.fit(part, data)
