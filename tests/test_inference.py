"""Ways of inference: names, settings, seeds; what posteriors answer; gaps that no closed form covers."""

import jax
import laws
import numpy as np
import pytest
from numpy.random import default_rng
from refusals import refuses
from scipy.integrate import quad_vec

from bayesgen import MAP, ML, NUTS, Exact, Laplace, NaiveBayesClassifier, fit
from bayesgen.inference import resolve
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
)
from bayesgen.posterior import ExactPosterior, ParameterDraws, PointEstimate, generator

COIN = BetaBernoulli(2.0, 3.0)
SHORT = NUTS(num_samples=40, num_warmup=50, num_chains=2)


@pytest.fixture(scope="session")
def tossed():
    return fit(COIN, [1, 0, 1], SHORT, seed=3)


def test_names():
    names = {"ml": ML, "map": MAP, "exact": Exact, "nuts": NUTS, "NUTS": NUTS, "laplace": Laplace}
    for name, kind in names.items():
        assert resolve(name) == kind()
    assert resolve(SHORT) is SHORT
    for wrong in ("mcmc", "", 3, None, NUTS):
        with pytest.raises(ValueError, match="inference must be one of"):
            resolve(wrong)


@pytest.mark.compiles
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
    refuses(lambda: fit(GAPPY, (ROWS, CLASSES)), r"column 'u'.*partly missing.*'map' or 'nuts'")


@pytest.mark.compiles
@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=pytest.mark.slow)])
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
    settings = NUTS(num_samples=600, num_warmup=300, num_chains=2)
    found = fit(model, (ROWS, CLASSES), settings, seed=1)
    flat = {site: v.reshape(-1, *v.shape[2:]) for site, v in found.samples.items()}
    ratio = np.exp(model.log_likelihood_rows(flat, model.check(new))) / exact.T
    assert (np.abs(laws.z_scores(ratio.reshape(2, 600, 2, 3), 1.0)) < 5).all()
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


@pytest.mark.compiles
def test_nuts_settings_reach_the_estimator():
    X, y = default_rng(0).random((20, 2)) < 0.5, np.repeat([0, 1], 10)
    classifier = NaiveBayesClassifier(inference=SHORT, random_state=0).fit(X, y)
    assert classifier.posterior_.samples["bernoulli.probability"].shape == (2, 40, 2, 2)
    again = NaiveBayesClassifier(inference=SHORT, random_state=0).fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X), again.predict_proba(X))
