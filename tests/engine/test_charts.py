"""Coordinates that NUTS moves in: whitened rows, and the chart that the mode gives; where there is none."""

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

from bayesgen import NUTS, GaussianDiscriminantClassifier, fit
from bayesgen.inference.whitening import whitened
from bayesgen.models import DirichletCategorical, GaussianDiscriminant, NormalInverseWishart
from bayesgen.models.function import statistics_program


@pytest.mark.compiles
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
    sampled, sums, restore = whitened(model, statistics)
    posterior = sampled.update(sums)
    leaf = posterior.gaussian.leaf
    np.testing.assert_allclose(leaf.mean, np.zeros((3, 4)), atol=1e-9)
    spread = leaf.scale / leaf.nu[..., None, None]
    np.testing.assert_allclose(spread, np.broadcast_to(np.eye(4), spread.shape), atol=1e-9)
    found = restore(posterior.sample_parameters(default_rng(0), (2, 3)))
    for site, values in model.update(statistics).sample_parameters(default_rng(0), (2, 3)).items():
        np.testing.assert_allclose(found[site], values, rtol=1e-8, atol=1e-8)
    before = model.update(statistics).gaussian
    volume = 0.5 * np.linalg.slogdet(before.scale / before.nu[..., None, None])[1] * np.full(3, 30.0)  # of 90 rows
    own, given = sums.leaves["gaussian"], statistics.leaves["gaussian"]
    gap = float(sampled.gaussian.leaf.log_evidence(own)) - float(model.gaussian.log_evidence(given))
    assert gap == pytest.approx(volume.sum(), rel=1e-9)


@pytest.mark.compiles
@pytest.mark.parametrize("shared", [False, True])
def test_what_nuts_samples_has_the_density_of_the_exact_posterior(shared):
    """By SciPy's densities of the exact posterior and a numerical Jacobian of the coordinates, up to one constant."""
    x, t = correlated()
    prior = NormalInverseWishart([60.0, 40.0, 50.0, 70.0], 0.1, 6.0, np.diag([3.0, 1.0, 9.0, 2.0]) + 0.5)
    model = GaussianDiscriminant(DirichletCategorical(1.0, 3), prior, shared=shared)
    sampled, sums, _ = whitened(model, model.statistics(x, t))
    posterior = sampled.update(sums).gaussian
    leaf = posterior.leaf
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
            "gaussian.offset": draws["offset"][i],
            "gaussian.factor": draws["factor"][i],
            "classes.log_gamma": [0.2, 0.3, 0.5],
        }
        with jax.enable_x64(True):
            own, _ = log_density(statistics_program, (sampled, sums), {}, {k: jnp.array(v) for k, v in latents.items()})
        exact = 0.0
        for r, nu, scale in zip(np.atleast_2d(draws["factor"][i]), leaf.nu, leaf.scale, strict=True):
            exact += stats.invwishart(nu, scale).logpdf(covariance(r)) + volume(r)
        exact += stats.norm.logpdf(draws["offset"][i]).sum()
        gaps.append(float(own) - exact)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-6)  # the differences of the Jacobian


@pytest.mark.compiles
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


@pytest.mark.compiles
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
    """The curvature at the mode comes from the prior, a hundred times wider than the posterior, exp(-Σ z⁴/4)."""
    z = numpyro.sample("z", dist.Normal(0.0, 100.0).expand([2]).to_event(1))
    numpyro.factor("density", -((z - y) ** 4).sum() / 4)


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("density", "variance"),
    [(edge_at_mode, 2.0), pytest.param(flat_mode, 0.675978, marks=pytest.mark.slow)],  # 2 Γ(3/4)/Γ(1/4)
)
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


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:NUTS")
def test_a_density_without_a_mode_is_sampled_all_the_same():
    found = fit(funnel, (np.array([8.0, -3.0, 7.0]),), NUTS(400, 200, 1), seed=0)
    assert found.sample_stats["diverging"].mean() < 0.3
    assert np.isfinite(found.samples["place"]).all() and len(np.unique(found.samples["scale"])) > 100
