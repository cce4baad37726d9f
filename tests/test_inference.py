"""Ways of inference: names, settings, seeds; what posteriors answer; gaps that no closed form covers."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import laws
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpy.random import default_rng
from numpyro.infer.util import log_density
from scipy import stats
from scipy.integrate import quad_vec
from sklearn.datasets import load_iris

from bayesgen import (
    MAP,
    ML,
    NUTS,
    Exact,
    ExactPosterior,
    GaussianDiscriminantClassifier,
    Laplace,
    NaiveBayesClassifier,
    ParameterDraws,
    PointEstimate,
    SamplerWarning,
    fit,
    program,
)
from bayesgen.inference import resolve
from bayesgen.inference.compiled import one_kernel
from bayesgen.inference.nuts import _problems
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
)
from bayesgen.posterior import distance, generator

COIN = BetaBernoulli(2.0, 3.0)
SHORT = NUTS(num_samples=40, num_warmup=50, num_chains=2)


@pytest.fixture(scope="session")
def tossed():
    return fit(COIN, [1, 0, 1], SHORT, seed=3)


def test_names():
    for name, kind in (
        ("ml", ML),
        ("map", MAP),
        ("exact", Exact),
        ("nuts", NUTS),
        ("NUTS", NUTS),
        ("laplace", Laplace),
    ):
        assert resolve(name) == kind()
    assert resolve(SHORT) is SHORT
    for wrong in ("mcmc", "", 3, None, NUTS):
        with pytest.raises(ValueError, match="inference must be one of"):
            resolve(wrong)


def test_kinds_of_posterior(tossed):
    assert isinstance(fit(COIN, [1]), ExactPosterior)
    assert isinstance(fit(COIN, [1], "ml"), PointEstimate) and isinstance(fit(COIN, [1], "map"), PointEstimate)
    assert isinstance(tossed, ParameterDraws)
    assert fit(COIN, [1]).log_evidence == pytest.approx(np.log(2 / 5))


@pytest.mark.parametrize("inference", ["ml", "map", "exact"])
def test_rows_or_statistics_or_a_tuple(inference):
    x = [1, 0, 1]
    answers = [fit(COIN, data, inference).log_predictive([0, 1]) for data in (x, (x,), COIN.statistics(x), np.array(x))]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_samples": 0}, "num_samples must be an integer >= 1, got 0"),
        ({"num_samples": 1.5}, "num_samples must be an integer"),
        ({"num_warmup": -1}, "num_warmup must be an integer >= 0"),
        ({"num_chains": 0}, "num_chains must be an integer >= 1"),
        ({"num_samples": True}, "num_samples must be an integer >= 1, got True"),
        ({"num_chains": "4"}, "num_chains must be an integer"),
        ({"target_accept": 1.0}, "target_accept must lie between 0 and 1"),
        ({"target_accept": 0}, "target_accept must lie between 0 and 1"),
    ],
)
def test_settings_of_nuts(settings, words):
    with pytest.raises(ValueError, match=words):
        NUTS(**settings)


# -- seeds


def test_the_same_seed_gives_the_same_draws(tossed):
    again = fit(COIN, [1, 0, 1], SHORT, seed=3)
    for site, values in tossed.samples.items():
        np.testing.assert_array_equal(again.samples[site], values)
    other = fit(COIN, [1, 0, 1], SHORT, seed=4)
    assert (other.samples["probability"] != tossed.samples["probability"]).all()
    chains = tossed.samples["probability"]
    assert (chains[0] != chains[1]).all()


def test_seeds_of_any_kind():
    for make in (
        lambda: 7,
        lambda: default_rng(7),
        lambda: np.random.RandomState(7),
        lambda: jax.random.PRNGKey(7),
        lambda: jax.random.key(7),
        lambda: np.int64(7),
    ):
        np.testing.assert_array_equal(generator(make()).random(3), generator(make()).random(3))
    assert generator(7).random() == generator(np.int64(7)).random()
    assert generator(jax.random.key(7)).random() == generator(jax.random.PRNGKey(7)).random()
    assert generator(jax.random.key(7)).random() != generator(jax.random.key(8)).random()
    assert generator(None).random() != generator(None).random()
    rng = default_rng(0)
    assert generator(rng) is rng


@pytest.mark.parametrize("inference", ["exact", SHORT])
def test_a_generator_moves_on(inference):
    posterior = fit(COIN, [1, 0, 1], inference, seed=0)
    rng = default_rng(0)
    first, second = (posterior.draws(rng, (1, 5))["probability"] for _ in range(2))
    assert (first != second).any()
    np.testing.assert_array_equal(posterior.draws(1, (1, 5))["probability"], posterior.draws(1, (1, 5))["probability"])


# -- posteriors


def test_shapes_of_draws(tossed):
    assert tossed.samples["probability"].shape == (2, 40)
    for posterior in (tossed, fit(COIN, [1]), fit(COIN, [1, 0], "ml")):
        assert posterior.draws(0, (3, 7))["probability"].shape == (3, 7)
        assert posterior.draws(0)["probability"].shape == (4, 1000)


def test_sampler_statistics_go_to_arviz(tossed):
    tree = tossed.to_arviz()
    stats = tree["sample_stats"]
    assert {"diverging", "acceptance_rate", "n_steps", "energy", "lp"} <= set(stats.data_vars)
    assert stats["lp"].shape == (2, 40)
    assert stats["diverging"].dtype == bool
    # lp is the log density NUTS saw: of the unconstrained latent, so the Beta density times p (1 - p).
    p = tossed.samples["probability"]
    density = 4 * np.log(p) + 4 * np.log1p(-p)  # Beta(4, 4) posterior, kernel with its Jacobian
    offset = stats["lp"].values - density
    np.testing.assert_allclose(offset, offset[0, 0], atol=1e-9)


def test_a_point_is_one_draw():
    point = fit(COIN, [1, 0, 1], "map")
    assert point.params["probability"] == pytest.approx((2 + 2 - 1) / (8 - 2))
    assert point.as_draws().samples["probability"].shape == (1, 1)
    assert (point.draws(0, (2, 3))["probability"] == point.params["probability"]).all()


def test_averages_do_not_depend_on_how_draws_and_rows_are_cut():
    """More rows than one piece holds (8192) and more draws than the first step (64), against a plain average."""
    model = NormalInverseGamma(0.0, 1.0, 3.0, 2.0)
    params = model.sample_parameters(default_rng(0), (1, 150))
    x = default_rng(1).normal(size=9000)
    got = ParameterDraws(model, params).log_predictive(x)
    density = model.log_likelihood_rows({k: v[0] for k, v in params.items()}, x)
    top = density.max(0)
    np.testing.assert_allclose(got, top + np.log(np.exp(density - top).mean(0)), atol=1e-12)


def test_no_rows_to_predict(tossed):
    assert fit(COIN, [1]).log_predictive([]).shape == (0,)
    assert tossed.log_predictive([]).shape == (0,)
    model = GaussianDiscriminant(DirichletCategorical(1.0, 2), NormalInverseWishart([0.0, 0.0], 1.0, 4.0, np.eye(2)))
    for inference in ("exact", "map"):
        posterior = fit(model, (np.zeros((3, 2)), [0, 1, 1]), inference)
        assert posterior.log_predictive(np.empty((0, 2))).shape == (0, 2)


def test_far_tails_of_draws_are_finite():
    """The maximum is taken out of exp: 1e6 standard deviations off is -5e11, not -inf or NaN."""
    model = NormalInverseGamma(0.0, 1.0, 30.0, 30.0)
    draws = ParameterDraws(model, model.sample_parameters(default_rng(0), (2, 500)))
    assert np.isfinite(draws.log_predictive([1e6, -1e8, 0.0])).all()
    exact = model.log_predictive([0.0])
    np.testing.assert_allclose(draws.log_predictive([0.0]), exact, atol=0.05)


# -- what has no closed form


PLANE = NormalInverseWishart([1.5, 2.5], 2.0, 7.0, [[16.0, 4.8], [4.8, 8.0]])
GAPPY = GaussianDiscriminant(DirichletCategorical([2.0, 1.5], 2), PLANE, columns={"gaussian": ["u", "v"]})
ROWS = np.array([[1.0, 2.0], [3.0, 4.5], [np.nan, 5.0], [0.5, 2.5], [2.0, 2.0], [4.0, 5.0]])
CLASSES = np.array([0, 1, 0, 1, 1, 0])


def test_partly_missing_rows_have_no_exact_posterior():
    with pytest.raises(ValueError, match=r"column 'u'.*partly missing.*'map' or 'nuts'"):
        fit(GAPPY, (ROWS, CLASSES))


@pytest.mark.parametrize("shared", [False, True])
def test_nuts_over_gaps_integrates_them_out(shared):
    """With one gap v the exact predictive is one integral: ∫ p(D with v, x*) dv / ∫ p(D with v) dv."""
    model = GaussianDiscriminant(GAPPY.classes, PLANE, shared=shared)
    new = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 6.0]])

    def joint(v):
        rows = np.where(np.isnan(ROWS), v, ROWS)
        statistics = model.statistics(rows, CLASSES)
        density = np.exp(model.log_evidence(statistics) + 20)
        return density * np.append(np.exp(model.update(statistics).log_predictive(new)).ravel(), 1.0)

    whole = quad_vec(lambda u: joint(2.0 + u), -np.inf, np.inf, epsrel=1e-9)[0]
    exact = (whole[:-1] / whole[-1]).reshape(3, 2)
    settings = NUTS(num_samples=1500, num_warmup=500, num_chains=2)
    found = fit(model, (ROWS, CLASSES), settings, seed=1)
    flat = {site: v.reshape(-1, *v.shape[2:]) for site, v in found.samples.items()}
    ratio = np.exp(model.log_likelihood_rows(flat, model.check(new))) / exact.T
    assert (np.abs(laws.z_scores(ratio.reshape(2, 1500, 2, 3), 1.0)) < 5).all()
    np.testing.assert_allclose(np.exp(found.log_predictive(new)), (ratio.mean(0) * exact.T).T, rtol=1e-9)


def test_evidence_of_competing_models_weighs_them():
    """exp(log evidence) sums to one over all data sets: 2^4 sequences of a coin, 3^3 of a die, with their classes."""
    coins = [COIN.log_evidence(COIN.statistics(np.array(s, float))) for s in np.ndindex(2, 2, 2, 2)]
    assert np.exp(coins).sum() == pytest.approx(1, rel=1e-13)
    die = DirichletCategorical([0.5, 1.0, 2.0])
    bayes = NaiveBayes(DirichletCategorical(1.0, 2), {"die": die, "coin": COIN})
    total = 0.0
    for d1, d2, c1, c2, t1, t2 in np.ndindex(3, 3, 2, 2, 2, 2):
        x = {"die": np.array([d1, d2]), "coin": np.array([c1, c2])}
        total += np.exp(fit(bayes, (x, [t1, t2])).log_evidence)
    assert total == pytest.approx(1, rel=1e-12)


def test_nuts_settings_reach_the_estimator():
    X, y = default_rng(0).normal(size=(20, 2)), np.repeat([0, 1], 10)
    classifier = GaussianDiscriminantClassifier(inference=SHORT, random_state=0).fit(X, y)
    assert classifier.posterior_.samples["gaussian.mean"].shape == (2, 40, 2, 2)
    again = GaussianDiscriminantClassifier(inference=SHORT, random_state=0).fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X), again.predict_proba(X))


# -- what the sampler says of itself -----------------------------------------------------------------------------------


def cliff(x):
    """A density with an edge, where the energy jumps."""
    place = numpyro.sample("place", dist.Normal(x, 1.0))
    numpyro.factor("edge", jnp.where(place > 0.5, -1e5, 0.0))


def two_peaks(x):
    """Two peaks that no trajectory joins."""
    place = numpyro.sample("place", dist.Normal(0.0, 30.0))
    numpyro.sample("x", dist.Normal(jnp.abs(place), 0.1), obs=x)


def test_divergences_and_chains_apart_are_told():
    with pytest.warns(SamplerWarning, match="diverged.*raise target_accept"):
        edged = fit(cliff, 0.0, NUTS(200, 200, 2), seed=0)
    assert edged.sample_stats["diverging"].any() and edged.samples["place"].max() < 0.5
    with pytest.warns(SamplerWarning, match="R-hat is .* far above 1.01: the chains have not met; raise num_warmup"):
        apart = fit(two_peaks, 20.0, NUTS(200, 200, 8), seed=1)
    assert len(set(np.sign(apart.samples["place"].mean(1)))) == 2
    with pytest.warns(SamplerWarning, match=r"R-hat|effective draws"):
        fit(COIN, [1, 0, 1], NUTS(30, 30, 2), seed=0)


@pytest.mark.parametrize(("apart", "words"), [(0.0, None), (0.15, "raise num_samples"), (1.0, "raise num_warmup")])
def test_chains_a_little_apart_ask_for_more_draws_and_for_nothing_else(apart, words):
    """Four chains of 400 draws whose means are ``apart``: an R-hat of 1.00, of 1.01 to 1.02, and more."""
    draws = np.random.default_rng(0).normal(size=(4, 400, 1)) + apart * np.array([-1, 1, -1, 1])[:, None, None]
    told = list(_problems(NUTS(num_samples=400), {"diverging": np.zeros(1)}, draws))
    assert len(told) == (words is not None)
    if words:
        assert words in told[0] and ("num_warmup" in told[0]) == (apart == 1.0)


@pytest.mark.filterwarnings("error")
def test_clean_data_give_no_warning():
    X, y = load_iris(return_X_y=True)
    for classifier in (GaussianDiscriminantClassifier, NaiveBayesClassifier):
        classifier(inference="nuts", random_state=0).fit(X, y)


def test_draws_of_a_conjugate_model_tell_their_distance_from_the_exact_posterior():
    found = fit(COIN, [1, 0, 1], NUTS(1000, 500, 2), seed=0)
    exact = fit(COIN, [1, 0, 1]).model
    sd = np.sqrt(exact.a * exact.b / (exact.a + exact.b + 1)) / (exact.a + exact.b)
    apart = abs(found.samples["probability"].mean() - exact.mean) / sd
    assert found.distance["probability"] == pytest.approx(apart, abs=0.08)  # 4000 exact draws: a fifth of that
    assert found.distance["probability"] < 0.2
    assert found.to_arviz().posterior.attrs["distance to exact, probability"] == found.distance["probability"]
    assert distance({"probability": found.samples["probability"] + sd}, {"probability": found.samples["probability"]})[
        "probability"
    ] == pytest.approx(1, rel=0.2)
    gaps = fit(GAPPY, (ROWS, CLASSES), SHORT, seed=0)
    assert not gaps.distance


@pytest.mark.parametrize("rows", [150, 1_000_000])
@pytest.mark.filterwarnings("ignore:NUTS")
def test_warm_up_is_not_spent_on_the_way_from_the_prior(rows):
    x = np.tile(default_rng(0).normal([1e3, -2.0], [1e-2, 30.0], (50, 2)), (rows // 50, 1))
    t = np.arange(rows) % 2
    classes, prior = DirichletCategorical(1.0, 2), NormalInverseWishart([1000.05, 0.0], 0.01, 6.0, np.diag([3e-4, 3e3]))
    model = GaussianDiscriminant(classes, prior)
    draws = NUTS(100, 0, 1)(model, (x, t), seed=0)
    assert draws.sample_stats["n_steps"].mean() < 15 and draws.sample_stats["acceptance_rate"].mean() > 0.5
    exact = model.update(model.statistics(x, t)).sample_parameters(default_rng(1), (1000,))["gaussian.mean"]
    start = draws.samples["gaussian.mean"][0, 0]
    assert (np.abs(start - exact.mean(0)) < 8 * exact.std(0)).all()


def correlated(columns=4, rows=90):
    """Rows of three classes whose covariance has condition number 100."""
    rng = default_rng(5)
    axes = np.linalg.qr(rng.normal(size=(columns, columns)))[0] * np.geomspace(1, 10, columns)
    t = np.arange(rows) % 3
    return rng.normal(size=(rows, columns)) @ axes.T + 50.0 * t[:, None], t


@pytest.mark.parametrize("shared", [False, True])
def test_whitened_coordinates_hold_the_same_posterior(shared):
    """The posterior of mapped rows under the mapped prior, mapped back, is the posterior: the same draws, exactly."""
    x, t = correlated()
    prior = NormalInverseWishart([60.0, 40.0, 50.0, 70.0], 0.1, 6.0, np.diag([3.0, 1.0, 9.0, 2.0]) + 0.5)
    model = GaussianDiscriminant(DirichletCategorical(1.0, 3), prior, shared=shared)
    statistics = model.statistics(x, t)
    sampled, sums, restore = model.whitened(statistics)
    posterior = sampled.update(sums)
    np.testing.assert_allclose(posterior.gaussian.mean, np.zeros((3, 4)), atol=1e-9)
    spread = posterior.gaussian.scale / posterior.gaussian.nu[..., None, None]
    np.testing.assert_allclose(spread, np.broadcast_to(np.eye(4), spread.shape), atol=1e-9)
    found = restore(posterior.sample_parameters(default_rng(0), (2, 3)))
    for site, values in model.update(statistics).sample_parameters(default_rng(0), (2, 3)).items():
        np.testing.assert_allclose(found[site], values, rtol=1e-8, atol=1e-8)
    before = model.update(statistics).gaussian
    volume = 0.5 * np.linalg.slogdet(before.scale / before.nu[..., None, None])[1] * np.full(3, 30.0)  # of 90 rows
    gap = float(sampled.log_evidence(sums)) - float(model.log_evidence(statistics))
    assert gap == pytest.approx(volume.sum(), rel=1e-9)


@pytest.mark.parametrize("shared", [False, True])
def test_what_nuts_samples_has_the_density_of_the_exact_posterior(shared):
    """By SciPy's densities of the exact posterior and a numerical Jacobian of the coordinates, up to one constant."""
    x, t = correlated()
    prior = NormalInverseWishart([60.0, 40.0, 50.0, 70.0], 0.1, 6.0, np.diag([3.0, 1.0, 9.0, 2.0]) + 0.5)
    model = GaussianDiscriminant(DirichletCategorical(1.0, 3), prior, shared=shared)
    sampled, sums, _ = model.whitened(model.statistics(x, t))
    posterior = sampled.update(sums).gaussian
    draws = posterior.sample_parameters(default_rng(0), (6,))
    rows, columns = np.tril_indices(4)

    def covariance(r):  # of one vector
        factor = posterior.factors({"factor": r})
        return factor @ factor.T

    def volume(r):
        step = 1e-5 * np.eye(len(r))
        slopes = [(covariance(r + e) - covariance(r - e))[rows, columns] / 2e-5 for e in step]
        return np.linalg.slogdet(slopes)[1]

    gaps = []
    for i in range(6):
        latents = {
            "gaussian.mean": draws["mean"][i],
            "gaussian.factor": draws["factor"][i],
            "classes.probability": [0.2, 0.3, 0.5],
        }
        with jax.enable_x64(True):
            own, _ = log_density(sampled.statistics_program, (sums,), {}, {k: jnp.array(v) for k, v in latents.items()})
        exact = 0.0
        for r, nu, scale in zip(np.atleast_2d(draws["factor"][i]), posterior.nu, posterior.scale, strict=True):
            exact += stats.invwishart(nu, scale).logpdf(covariance(r)) + volume(r)
        every = np.broadcast_to(np.atleast_2d(draws["factor"][i]), (3, 10))
        for mean, centre, kappa, r in zip(draws["mean"][i], posterior.mean, posterior.kappa, every, strict=True):
            exact += stats.multivariate_normal(centre, covariance(r) / kappa).logpdf(mean)
        gaps.append(float(own) - exact)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-6)  # the differences of the Jacobian


def test_correlated_columns_cost_nuts_no_more_steps():
    x, t = correlated(rows=3000)
    model = GaussianDiscriminantClassifier().fit(x, t).model_
    found = NUTS(400, 400, 2)(model, model.statistics(x, t), seed=0)
    assert found.sample_stats["n_steps"].mean() < 9  # in the coordinates of the columns 15 and more
    exact = model.update(model.statistics(x, t)).sample_parameters(default_rng(0), (4000,))
    mean, own = exact["gaussian.mean"], found.samples["gaussian.mean"]
    assert (np.abs(laws.z_scores(own, mean.mean(0), mean.var(0) / 4000)) < 5).all()


@pytest.mark.slow  # two programs over the patterns of gaps are compiled
def test_correlated_columns_with_gaps_cost_nuts_few_steps():
    x, t = correlated(rows=1000)
    x = np.where(default_rng(1).random(x.shape) < 0.05, np.nan, x)
    classifier = GaussianDiscriminantClassifier(inference=NUTS(400, 400, 2), random_state=0).fit(x, t)
    draws = classifier.posterior_
    assert draws.sample_stats["n_steps"].mean() < 9  # in the coordinates of the columns 15 and more
    again = NUTS(400, 400, 2)(classifier.model_, classifier.statistics_, seed=1)  # other chains agree
    for site in ("gaussian.mean", "gaussian.covariance"):
        one, two = draws.samples[site], again.samples[site]
        z = laws.z_scores(one, two.mean((0, 1)), two.var((0, 1)) / 200)
        assert (np.abs(z) < 5).all()


def steep(y):
    """A Gaussian posterior of correlation .9999: mean 0, covariance COVARIANCE, whatever y."""
    z = numpyro.sample("z", dist.Normal(0.0, 1e3).expand([2]).to_event(1))
    numpyro.factor("density", dist.MultivariateNormal(0.0, COVARIANCE).log_prob(z - y))


COVARIANCE = np.array([[1.0, 0.9999 * 30], [0.9999 * 30, 900.0]])


def test_correlated_latents_cost_nuts_no_more_steps():
    found = fit(steep, (np.array([5.0, -3.0]),), NUTS(1000, 300, 2), seed=0)
    assert found.sample_stats["n_steps"].mean() < 4  # with scales alone 60
    z = found.samples["z"]
    assert (np.abs(laws.z_scores(z, [5.0, -3.0])) < 5).all()
    own = (z - [5.0, -3.0]) @ np.linalg.inv(np.linalg.cholesky(COVARIANCE)).T
    products = np.stack([own[..., 0] ** 2, own[..., 1] ** 2, own[..., 0] * own[..., 1]], -1)
    assert (np.abs(laws.z_scores(products, [1.0, 1.0, 0.0])) < 5).all()


def edge_at_mode(y):
    """The mode stands where the gradient jumps, so that Newton's method does not end: Laplace(y, 1), twice."""
    z = numpyro.sample("z", dist.Normal(0.0, 1e3).expand([2]).to_event(1))
    numpyro.factor("density", dist.Laplace(y, 1.0).log_prob(z).sum())


def flat_mode(y):
    """The curvature at the mode is that of the prior, a hundred times wider than the posterior, exp(-Σ z⁴/4)."""
    z = numpyro.sample("z", dist.Normal(0.0, 100.0).expand([2]).to_event(1))
    numpyro.factor("density", -((z - y) ** 4).sum() / 4)


@pytest.mark.parametrize(("density", "variance"), [(edge_at_mode, 2.0), (flat_mode, 0.675978)])  # 2 Γ(3/4)/Γ(1/4)
def test_a_mode_that_says_nothing_of_scales_does_no_harm(density, variance):
    found = fit(density, (np.array([1.0, -1.0]),), NUTS(1000, 300, 2), seed=0)
    centred = found.samples["z"] - [1.0, -1.0]
    assert (np.abs(laws.z_scores(centred, 0.0)) < 5).all()
    assert (np.abs(laws.z_scores(centred**2, variance)) < 5).all()
    assert found.sample_stats["n_steps"].mean() < 10


def funnel(y):
    """Has no mode: the density grows without bound where the scale of the places goes to 0."""
    scale = numpyro.sample("scale", dist.HalfCauchy(5.0))
    place = numpyro.sample("place", dist.Normal(0.0, scale).expand([3]).to_event(1))
    numpyro.factor("density", dist.Normal(y, 10.0).log_prob(place).sum())


@pytest.mark.filterwarnings("ignore:NUTS")
def test_a_density_without_a_mode_is_sampled_all_the_same():
    found = fit(funnel, (np.array([8.0, -3.0, 7.0]),), NUTS(400, 200, 1), seed=0)
    assert found.sample_stats["diverging"].mean() < 0.3
    assert np.isfinite(found.samples["place"]).all() and len(np.unique(found.samples["scale"])) > 100


def test_one_kernel_computes_the_same():
    def loop(x, y):
        return jax.lax.scan(lambda c, _: ((c := jnp.sin(c) * jnp.sum(y) + c[::-1], c.sum())), x, length=50)

    with jax.enable_x64(True):
        x, y = np.linspace(0, 1, 7), np.linspace(-1, 1.1, 5)
        whole, plain = (program.build(f, x, y)(x, y) for f in (one_kernel(loop), loop))
    for a, b in zip(whole, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_what_cannot_be_one_kernel_is_sampled_all_the_same():
    place = np.array([0, 2, 1, 2])

    def scattered(y=None):
        mean = numpyro.sample("mean", dist.Normal(0, 1).expand([3]).to_event(1))
        total = jnp.zeros(3).at[place].add(jnp.ones(4)) * mean  # the gradient scatters, which XLA has no kernel for
        with numpyro.plate("obs", 3):
            numpyro.sample("y", dist.Normal(total, 1.0), obs=y)

    draws = fit(scattered, (np.array([1.0, 1.0, 2.0]),), NUTS(500, 200, 2), seed=0)
    np.testing.assert_allclose(draws.samples["mean"].mean((0, 1)), [0.5, 0.5, 0.8], atol=0.15)


@pytest.mark.parametrize(("warmup", "samples"), [(0, 1), (30, 45), (50, 50), (70, 99), (100, 7)])
def test_blocks_leave_no_seam(warmup, samples):
    """Whatever the number of draws, they are the first of a longer run."""
    short = fit(COIN, [1, 0, 1], NUTS(samples, warmup, 2), seed=3)
    longer = fit(COIN, [1, 0, 1], NUTS(samples + 60, warmup, 2), seed=3)
    assert short.samples["probability"].shape == (2, samples)
    for name, values in (short.samples | short.sample_stats).items():
        np.testing.assert_array_equal(values, (longer.samples | longer.sample_stats)[name][:, :samples])


def test_an_interrupt_keeps_the_draws_so_far():
    fit(COIN, [1], NUTS(50, 50, 2), seed=0)  # compiled
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    alarm = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    try:
        alarm.start()
        with pytest.warns(SamplerWarning, match=r"interrupted: \d+ of 10000000 draws"):
            found = fit(COIN, [1], NUTS(10_000_000, 50, 2), seed=0)
    finally:
        alarm.cancel()
        signal.signal(signal.SIGINT, before)
    draws = found.samples["probability"]
    assert 0 < draws.shape[1] < 10_000_000 and draws.shape[1] % 50 == 0
    np.testing.assert_array_equal(draws, fit(COIN, [1], NUTS(draws.shape[1], 50, 2), seed=0).samples["probability"])


def test_the_bar_goes_to_the_standard_error(capfd, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    fit(COIN, [1], NUTS(50, 50, 2, progress=True), seed=0)
    shown = capfd.readouterr()
    assert "NUTS" in shown.err and not shown.out
    fit(COIN, [1], NUTS(50, 50, 2, progress=False), seed=0)
    assert not any(capfd.readouterr())


@pytest.mark.slow  # each compiles in a process of its own
@pytest.mark.parametrize("case", ["logistic", "softmax", "probit", "laplace noise"])
def test_rows_laid_over_four_devices_give_the_draws_of_one(case):
    devices = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    subprocess.run([sys.executable, Path(__file__).with_name("sharded.py"), case], check=True, env=devices)
