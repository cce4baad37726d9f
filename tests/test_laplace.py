"""The Laplace approximation: its evidence against closed forms, quadrature and draws of the prior; draws; messages."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import quantiles
from laws import z_scores
from numpy.random import default_rng
from refusals import refuses
from scipy import integrate, special, stats

import bayesgen as bg
from bayesgen.comparison import compare
from bayesgen.inference.laplace import _log_densities, _moments, _proposals
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    LaplaceLinearRegression,
    LinearRegression,
    LogisticRegression,
    NormalInverseWishart,
    NormalKnownVariance,
    ProbitRegression,
)
from bayesgen.numerics.draws import systematic

COIN, TOSSES = BetaBernoulli(2.0, 3.0), np.array([1.0, 1, 0, 1, 1, 0, 1])
RNG = default_rng(0)
T = np.arange(60) % 2
X = RNG.normal(size=(60, 2)) @ [[1.0, 0.8], [0.0, 0.6]] + T[:, None]
CLASSES = DirichletCategorical([2.0, 1.5], ["no", "yes"])
PRIOR = NormalInverseWishart([0.5, 0.5], 1.0, 7.0, 4 * np.eye(2))
FEW = bg.Laplace(100)


def agrees(found, expected, error=0.0):
    """The estimate is within five standard errors of a value known to ``error``, and these are small."""
    known = np.hypot(found.run["log_evidence_error"], error)
    assert known < 0.05 and found.run["pareto_k"] < 0.7
    assert abs(found.log_evidence - expected) < 5 * known + 1e-9


@pytest.fixture(scope="module")
def coin():
    return bg.fit(COIN, TOSSES, bg.Laplace(2000), seed=0)


# -- the evidence ------------------------------------------------------------------------------------------------------


@pytest.mark.compiles
def test_the_evidence_of_a_coin_is_the_closed_form(coin):
    expected = float(COIN.log_evidence(COIN.statistics(TOSSES)))
    agrees(coin, expected)
    # By hand: in the logit z the posterior is p^7 q^5/B(7, 5), mode 7/12, curvature 12 p q.
    p = 7 / 12
    log_density = 7 * np.log(p) + 5 * np.log1p(-p) - special.betaln(2, 3)
    by_hand = log_density + 0.5 * np.log(2 * np.pi / (12 * p * (1 - p)))
    assert coin.run["log_evidence_gaussian"] == pytest.approx(by_hand, abs=1e-6)
    assert abs(by_hand - expected) > 0.01  # so the weights are what makes it right


@pytest.mark.compiles
def test_a_gaussian_posterior_needs_no_weights():
    model = NormalKnownVariance(1.0, 2.0, 1.5)
    found = bg.fit(model, [1.0, 2.5, 4.0], FEW, seed=0)
    expected = float(model.log_evidence(model.statistics([1.0, 2.5, 4.0])))
    assert found.run["log_evidence_gaussian"] == pytest.approx(expected, abs=1e-9)
    assert found.log_evidence == pytest.approx(expected, abs=1e-9)


@pytest.mark.compiles
@pytest.mark.parametrize("shared", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_evidence_of_a_discriminant_is_the_closed_form(shared):
    model = GaussianDiscriminant(CLASSES, PRIOR, shared=shared)
    found = bg.fit(model, (X, T), bg.Laplace(), seed=1)
    agrees(found, float(model.log_evidence(model.statistics(X, T))))
    assert max(found.distance.values()) < 0.2  # of 1000 draws, in standard deviations; NUTS has this number too


@pytest.mark.slow
def test_the_evidence_of_a_line_is_the_closed_form():
    model = LinearRegression([0.0, 0.5, -0.5], np.diag([2.0, 1.0, 1.0]), 2.0, 1.5)
    t = X @ [1.0, -0.5] + default_rng(1).normal(size=60)
    agrees(bg.fit(model, (X, t), bg.Laplace(), seed=0), float(model.log_evidence(model.statistics(X, t))))


@pytest.mark.compiles
def test_the_evidence_of_a_logistic_regression_is_an_integral():
    model, x, t = LogisticRegression([2.0], 1.5), X[:12, :1], T[:12]

    a, b = np.meshgrid(np.linspace(-12, 12, 600), np.linspace(-12, 16, 700), indexing="ij")
    cell = (a[1, 0] - a[0, 0]) * (b[0, 1] - b[0, 0])  # the trapezoid rule, exact to rounding of what ends in 0
    density = stats.norm.pdf(a, 0, 1.5) * stats.norm.pdf(b, 0, 2.0)
    for row, label in zip(x[:, 0], t, strict=True):
        density *= special.expit((2 * label - 1) * (a + b * row))
    expected = density.sum() * cell
    found = bg.fit(model, (x, t), bg.Laplace(4000), seed=0)
    agrees(found, np.log(expected))
    new = (density * special.expit(a + 2 * b)).sum() * cell / expected
    assert abs(np.exp(found.log_predictive([[2.0]]))[0, 1] - new) < 5 * 0.5 / 4000**0.5


@pytest.mark.compiles
@pytest.mark.parametrize("name", ["softmax", pytest.param("probit", marks=pytest.mark.slow)])
def test_the_evidence_of_a_classifier_is_a_mean_over_its_prior(name):
    x, rng, size = X[:9, :1], default_rng(2), 400_000
    t = np.arange(9) % 3 if name == "softmax" else T[:9]
    if name == "softmax":
        model = LogisticRegression([1.0], 1.0, classes=(0, 1, 2))
        score = rng.normal(size=(size, 3, 1)) + rng.normal(size=(size, 3, 1)) * x[:, 0]
        log_chosen = special.log_softmax(score, axis=1)[:, t, np.arange(9)]
    else:
        model = ProbitRegression([1.0], 1.0)
        score = rng.normal(size=(size, 1)) + rng.normal(size=(size, 1)) * x[:, 0]
        log_chosen = special.log_ndtr(np.where(t == 1, score, -score))
    likelihood = np.exp(log_chosen.sum(-1))
    error = likelihood.std() / likelihood.mean() / size**0.5
    agrees(bg.fit(model, (x, t), bg.Laplace(), seed=0), np.log(likelihood.mean()), error)


@pytest.mark.compiles
def test_the_evidence_under_a_separation_prior_is_an_integral():
    """One column, one variance for both classes: means integrated out by hand, the standard deviation by quadrature."""
    prior = bg.models.SeparationPrior(0.5, 2.0, 1.5)
    settings = {"covariance": "diagonal", "shared": True, "prior": prior, "priors": [0.5, 0.5]}
    classifier = bg.GaussianDiscriminantClassifier(**settings, inference="laplace", random_state=0)
    classifier.fit(X[:, :1], T)

    def joint(sd):
        result = 2 * stats.norm.pdf(sd, 0, 1.5) * 1e50
        for k in (0, 1):
            rows = X[k == T, 0]
            covariance = sd**2 * np.eye(30) + 4.0
            result *= stats.multivariate_normal(np.full(30, 0.5), covariance).pdf(rows) * 0.5**30 * 1e8
        return result

    expected = np.log(integrate.quad(joint, 0.3, 3, epsrel=1e-9)[0]) - np.log(1e50) - 2 * np.log(1e8)
    agrees(classifier.posterior_, expected)
    assert classifier.log_evidence_ == classifier.posterior_.log_evidence
    mapped = bg.GaussianDiscriminantClassifier(**settings, inference="map").fit(X[:, :1], T)
    assert not hasattr(mapped, "log_evidence_")


@pytest.mark.slow
def test_the_evidence_with_a_gap_at_fit_is_an_integral_over_it():
    model, rows = GaussianDiscriminant(CLASSES, PRIOR), X.copy()
    rows[3, 1] = np.nan

    def evidence(v):
        return np.exp(float(model.log_evidence(model.statistics(np.where(np.isnan(rows), v, rows), T))) + 200)

    expected = np.log(integrate.quad(evidence, -15, 15, points=[X[3, 1]], epsrel=1e-9)[0]) - 200
    agrees(bg.fit(model, (rows, T), bg.Laplace(), seed=0), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", "separation"])
def test_draws_are_those_of_nuts(name):
    if name == "logistic":
        make = lambda how: bg.LogisticClassifier(inference=how, random_state=0)  # noqa: E731
    else:
        prior = bg.models.SeparationPrior([0.5, 0.5], 2.0, 1.5)
        make = lambda how: bg.GaussianDiscriminantClassifier(prior=prior, inference=how, random_state=0)  # noqa: E731
    laplace = make(bg.Laplace(4000)).fit(X, T).posterior_.samples
    sampled = make(bg.NUTS(num_samples=4000)).fit(X, T).posterior_.samples
    for site, draws in sampled.items():
        own = laplace[site].reshape(4000, -1)
        varies = own.std(0) > 0
        draws, own = draws.reshape(4, 4000, -1)[..., varies], own[:, varies]
        assert (np.abs(z_scores(draws, own.mean(0), own.var(0) / 4000)) < 5).all(), site
        np.testing.assert_allclose(own.std(0), draws.std((0, 1)), rtol=0.1)


# -- draws -------------------------------------------------------------------------------------------------------------


def test_draws_have_the_distribution_of_the_posterior(coin):
    draws = coin.samples["probability"]
    assert draws.shape == (1, 2000) and len(np.unique(draws)) == 2000
    posterior = stats.beta(7, 5)
    assert stats.kstest(draws[0], posterior.cdf).pvalue > 1e-4
    laplace = stats.norm(np.log(7 / 5), (12 * 35 / 144) ** -0.5)  # without weights, in the logit
    assert stats.kstest(special.expit(laplace.rvs(100_000, random_state=0)), posterior.cdf).pvalue < 1e-4
    lp = 7 * np.log(draws) + 5 * np.log1p(-draws) - special.betaln(2, 3)
    np.testing.assert_allclose(coin.sample_stats["lp"], lp, atol=1e-9)


SLOW = [pytest.param(name, 200, marks=pytest.mark.slow) for name in quantiles.BY_NAME]


@pytest.mark.compiles
@pytest.mark.parametrize(("name", "sets"), [("normal", 25), ("coins", 25), *SLOW])
def test_quantiles_and_evidences_pooled_over_data_sets_are_exact(name, sets):
    pooled = quantiles.BY_NAME[name].check(sets)
    count = pooled.good.sum()
    assert count > 0.8 * sets and pooled.worst < (5 if sets < 200 else 4), pooled.scores
    if sets < 200:
        assert abs(pooled.covered - 0.95) < 5 * (0.95 * 0.05 / count) ** 0.5
    else:
        assert 0.92 <= pooled.covered <= 0.98


def test_proposals_have_the_density_that_they_are_weighted_by():
    """Densities at both places, against SciPy; the share of the first Gaussian has the mean one."""
    root = np.array([[1.5, 0.0], [0.4, 0.7]])
    places = [(np.zeros(2), np.eye(2)), (np.array([0.5, -1.0]), root)]
    units, density, control = _proposals(default_rng(0), 20_002, *places)
    parts = np.arange(20_002) % 4
    expected = 0.0
    for i, (centre, own) in enumerate(places):
        laws = stats.multivariate_normal(centre, own @ own.T), stats.multivariate_t(centre, own @ own.T, df=4)
        np.testing.assert_allclose(_log_densities(units, centre, own), [law.logpdf(units) for law in laws], rtol=1e-9)
        for j, law in enumerate(laws):
            expected = expected + np.mean(parts == 2 * i + j) * law.pdf(units)
            radius = np.sort(((np.linalg.solve(own, (units - centre).T)[:, parts == 2 * i + j]) ** 2).sum(0))
            exact = stats.chi2(2) if j == 0 else stats.f(2, 4, scale=2)
            assert stats.kstest(radius, exact.cdf).pvalue > 1e-4
    np.testing.assert_allclose(np.exp(density), expected, rtol=1e-9)
    np.testing.assert_allclose(control, stats.multivariate_normal(np.zeros(2)).pdf(units) / expected, rtol=1e-9)
    assert abs(control.mean() - 1) < 5 * control.std() / len(control) ** 0.5


def test_the_second_round_goes_where_the_weights_are():
    rng, mean, covariance = default_rng(0), np.array([1.0, -0.5]), np.array([[2.0, 0.6], [0.6, 0.5]])
    units, density, _ = _proposals(rng, 20_000, (np.zeros(2), np.eye(2)))
    weight = np.exp(stats.multivariate_normal(mean, covariance).logpdf(units) - density)
    centre, root = _moments(units, weight, weight.sum() ** 2 / (weight**2).sum())
    np.testing.assert_allclose(centre, mean, atol=0.1)
    np.testing.assert_allclose(root @ root.T, covariance, atol=0.15)
    one = np.zeros(20_000)
    one[7] = 1.0  # of a single draw nothing is learned but where it is
    root = _moments(units, one, 1.0)[1]
    np.testing.assert_allclose(root @ root.T, 2 / 3 * np.eye(2), rtol=1e-9)


def test_a_draw_is_picked_as_often_as_its_weight_says():
    rng, weight = default_rng(0), np.array([0.1, 0.2, 0.3, 0.4, 5.0, 0.0])
    picked = np.array([systematic(rng, weight, 3) for _ in range(20_000)])
    times = (picked[..., None] == np.arange(6)).sum(1)
    expected = 3 * weight / weight.sum()
    assert (times >= np.floor(expected)).all() and (times <= np.ceil(expected)).all()
    np.testing.assert_allclose(times.mean(0), expected, atol=5 * 0.5 / 20_000**0.5)
    first = np.bincount(picked[:, 0], minlength=6) / len(picked)  # in random order
    np.testing.assert_allclose(first, expected / 3, atol=5 * 0.5 / 20_000**0.5)


def test_no_draw_is_picked_twice_where_none_has_the_weight_of_two():
    weight = default_rng(0).gamma(0.2, size=4000)
    picked = systematic(default_rng(1), np.minimum(weight, weight.mean()), 1000)
    assert len(np.unique(picked)) == 1000


def test_the_same_seed_gives_the_same_draws():
    one, again, other = (bg.fit(COIN, TOSSES, FEW, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.samples["probability"], again.samples["probability"])
    assert one.log_evidence == again.log_evidence != other.log_evidence


@pytest.mark.compiles
def test_a_function_of_ones_own():
    def visits(counts):
        rate = numpyro.sample("rate", dist.Gamma(3.0, 2.0))
        numpyro.deterministic("doubled", 2 * rate)
        with numpyro.plate("obs", len(counts)):
            numpyro.sample("counts", dist.Poisson(rate), obs=counts)

    counts = np.array([2, 3, 1, 4])
    found = bg.fit(visits, counts, "laplace", seed=0)
    agrees(found, float(bg.models.GammaPoisson(3.0, 2.0).log_evidence(bg.models.GammaPoisson(3, 2).statistics(counts))))
    np.testing.assert_allclose(found.samples["doubled"], 2 * found.samples["rate"])
    assert found.to_arviz().posterior.attrs["pareto_k"] == found.run["pareto_k"]


# -- what it is part of ------------------------------------------------------------------------------------------------


@pytest.mark.compiles
def test_evidences_of_discriminative_classifiers_compare(tmp_path):
    settings = {"inference": FEW, "random_state": 0}
    logistic = {columns: bg.LogisticClassifier(**settings).fit(X[:, :columns], T) for columns in (1, 2)}
    table = bg.compare_evidence(logistic)
    assert table.loc[1, "log_evidence"] == logistic[1].log_evidence_
    assert table["probability"].sum() == pytest.approx(1)
    assert logistic[1].to_arviz(X[:5, :1], T[:5])["posterior"].sizes["draw"] == 100
    logistic[1].save(tmp_path / "model.safetensors")
    again = bg.load(tmp_path / "model.safetensors")
    assert again.log_evidence_ == logistic[1].log_evidence_ and again.inference == FEW
    np.testing.assert_array_equal(again.predict_proba(X[:, :1]), logistic[1].predict_proba(X[:, :1]))
    other = bg.LogisticClassifier(**settings).fit(X[:, :1], 1 - T)
    refuses(lambda: bg.compare_evidence({"one": logistic[1], "other": other}), "classes come in another order")
    generative = bg.NaiveBayesClassifier().fit(X, T)
    with pytest.raises(ValueError, match="they differ in the modelled variables, the columns and the classes against"):
        bg.compare_evidence({"naive Bayes": generative, "logistic": logistic[1]})


@pytest.mark.compiles
def test_it_is_compared_with_the_others_by_name():
    bits = (X > 0.5).astype(bool)
    result = compare(bits, T, inferences=["exact", "laplace"], folds=2)
    assert result.difference("laplace", "exact").max() < 0.05 and not result.notes


# -- what it cannot do -------------------------------------------------------------------------------------------------


@pytest.mark.compiles
def test_a_posterior_far_from_a_gaussian_is_told():
    def heavy(x):
        place = numpyro.sample("place", dist.Cauchy(0.0, 1.0))
        numpyro.sample("x", dist.Normal(place, 100.0), obs=x)

    with pytest.warns(bg.inference.SamplerWarning, match=r"Laplace: the Pareto k .* above 0.7.*use inference='nuts'"):
        found = bg.fit(heavy, 0.0, "laplace", seed=0)
    assert found.run["pareto_k"] > 0.7


@pytest.mark.parametrize("kinds", [("laplace", "normal"), ("normal", "laplace")])
def test_a_density_with_kinks_is_refused_by_name(kinds):
    model = LaplaceLinearRegression([1.0, 1.0], noise=kinds[0], prior=kinds[1])
    with pytest.raises(TypeError, match=r"LaplaceLinearRegression with Laplace noise.*use inference='nuts'"):
        bg.fit(model, (X, X[:, 0]), "laplace")


@pytest.mark.compiles
def test_without_a_mode_there_is_an_error():
    def kink(x):
        place = numpyro.sample("place", dist.Laplace(0.0, 0.1))
        numpyro.factor("x", -0.5 * (jnp.asarray(x) - place) ** 2)
        numpyro.sample("y", dist.Normal(place, 1.0), obs=x)

    refuses(lambda: bg.fit(kink, 0.3, "laplace"), "no posterior mode was found")


def test_without_an_estimate_draws_have_no_evidence():
    with pytest.raises(AttributeError, match="inference='laplace' gives one"):
        _ = bg.fit(COIN, TOSSES).as_draws(0).log_evidence


def test_a_hessian_of_many_patterns_of_gaps_is_refused_before_it_starts():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 24))
    rows[rng.random(rows.shape) < 0.05] = np.nan
    classifier = bg.GaussianDiscriminantClassifier(inference="laplace")
    with pytest.raises(ValueError, match=r"full covariance of 24 columns whose rows have .* patterns of gaps"):
        classifier.fit(rows, np.arange(200) % 2)
