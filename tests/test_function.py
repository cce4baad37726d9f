"""A NumPyro function of a user's own, through every inference that can take it."""

import functools
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from arviz_stats import ess
from refusals import refuses
from scipy import integrate, stats

import bayesgen as bg
from bayesgen.models.function import FunctionModel

WARD = np.repeat([0, 1, 2], [4, 2, 7])
COUNTS = np.array([3, 5, 4, 2, 9, 7, 0, 1, 0, 2, 1, 0, 1])


def wards(ward, counts=None, groups=3):
    """Two levels, not conjugate: log rates of wards about a common one, counts of days given their ward's."""
    common = numpyro.sample("common", dist.Normal(0.0, 1.0))
    with numpyro.plate("ward", groups):
        log_rate = numpyro.sample("log_rate", dist.Normal(common, 0.5))
    numpyro.deterministic("rate", jnp.exp(log_rate))
    with numpyro.plate("obs", len(ward)):
        numpyro.sample("counts", dist.Poisson(jnp.exp(log_rate[ward])), obs=counts)


@pytest.mark.compiles
@pytest.mark.parametrize(
    "rate",
    [lambda x: np.nan_to_num(x).mean(), lambda x: x.mean() if x.min() > 0 else 1.0, lambda x: x[x > 0].mean()],
    ids=["NumPy", "if", "mask"],
)
def test_a_function_that_needs_the_numbers_of_a_traced_argument_is_told_what_to_write(rate):
    def model(x):
        scale = numpyro.sample("scale", dist.LogNormal())
        level = rate(x)  # here
        with numpyro.plate("obs", len(x)):
            numpyro.sample("x", dist.Exponential(level / scale), obs=x)

    x = np.array([1.0, 2.0, 4.0])
    with pytest.raises(TypeError, match=r"in line \d+: .*(?s:.*)jax.numpy in place of numpy") as found:
        bg.fit(model, x, "map")
    assert "\n" not in str(found.value) and found.value.__cause__ is None
    closed = functools.partial(lambda n, x: model(x), x=x)  # as the message says: the mode is then found
    assert np.isfinite(bg.fit(closed, (np.zeros(3),), "map").params["scale"])


@pytest.fixture(scope="module")
def sampled():
    return bg.fit(wards, (WARD, COUNTS), bg.NUTS(num_warmup=500), seed=0)


@pytest.fixture(scope="module")
def grid():
    """The posterior of the common log rate on a grid, wards integrated out one by one; and a predictive by Bayes."""
    common, z = np.linspace(-3, 4, 701), np.linspace(-6, 6, 1201)
    rate = common[:, None] + 0.5 * z
    weight = stats.norm.pdf(z) * (z[1] - z[0])

    def marginal(extra=()):
        density = stats.norm.pdf(common)
        for j in range(3):
            rows = [*COUNTS[WARD == j], *(c for k, c in extra if k == j)]
            density = density * (np.prod([stats.poisson.pmf(c, np.exp(rate)) for c in rows], axis=0) @ weight)
        return density

    return common, marginal


@pytest.mark.compiles
def test_nuts_is_the_posterior_by_quadrature(sampled, grid):
    common, marginal = grid
    density = marginal()
    density /= density.sum()
    mean = density @ common
    sd = np.sqrt(density @ (common - mean) ** 2)
    draws = sampled.samples["common"]
    count = float(ess(draws))
    assert count > 400
    assert abs((draws.mean() - mean) / (sd / np.sqrt(count))) < 5
    assert draws.std() == pytest.approx(sd, rel=0.1)


@pytest.mark.compiles
def test_the_predictive_averages_over_draws(sampled, grid):
    _, marginal = grid
    new, total = [(0, 4), (1, 0), (2, 3)], marginal().sum()
    exact = np.array([marginal([pair]).sum() / total for pair in new])
    ward, counts = np.array(new).T
    draws = stats.poisson.pmf(counts, np.exp(sampled.samples["log_rate"][..., ward]))  # (chains, draws, rows)
    effective = np.array([float(ess(draws[..., i])) for i in range(len(new))])
    assert (effective > 400).all()
    assert (np.abs(draws.mean((0, 1)) - exact) < 5 * draws.std((0, 1)) / np.sqrt(effective)).all()
    np.testing.assert_allclose(sampled.log_predictive((ward, counts)), np.log(draws.mean((0, 1))), rtol=1e-9)
    np.testing.assert_allclose(
        sampled.log_predictive({"ward": ward, "counts": counts}), sampled.log_predictive((ward, counts)), rtol=1e-12
    )


@pytest.mark.compiles
def test_map_is_the_mode_in_the_sites_own_space():
    def spread(x):
        sd = numpyro.sample("sd", dist.LogNormal(0.0, 1.0))
        numpyro.sample("x", dist.Normal(0.0, sd).expand([3]).to_event(1), obs=x)

    x = np.array([0.5, -1.0, 2.0])
    grid = np.linspace(0.3, 3.0, 2_701)
    for _ in range(2):  # steps of 1e-3, and of 1e-6 about the best of them
        density = stats.lognorm.logpdf(grid, 1.0) + stats.norm.logpdf(x[:, None], 0, grid).sum(0)
        best = grid[density.argmax()]
        grid = best + 1e-6 * np.arange(-1500, 1501)
    assert bg.fit(spread, x, "map").params["sd"] == pytest.approx(best, abs=2e-6)
    assert bg.fit(spread, x, "ml").params["sd"] == pytest.approx(np.sqrt((x**2).mean()), rel=1e-6)


def test_draws_have_named_axes(sampled):
    posterior = sampled.to_arviz().posterior
    assert posterior["log_rate"].dims == ("chain", "draw", "ward")
    assert set(posterior.data_vars) == {"common", "log_rate", "rate"}
    np.testing.assert_allclose(posterior["rate"], np.exp(posterior["log_rate"]))


def test_the_same_seed_gives_the_same_draws(sampled):
    again = bg.fit(wards, (WARD, COUNTS), bg.NUTS(num_warmup=500), seed=0)
    np.testing.assert_array_equal(again.samples["common"], sampled.samples["common"])


@pytest.mark.compiles
def test_what_cannot_be_fitted_is_said():
    def mixture(x):
        z = numpyro.sample("z", dist.Bernoulli(0.5))
        numpyro.sample("x", dist.Normal(z, 1.0), obs=x)

    def blind(x):
        numpyro.sample("mean", dist.Normal(0.0, 1.0))

    def fixed(x):
        numpyro.sample("x", dist.Normal(0.0, 1.0), obs=x)

    def plain(x):
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        numpyro.sample("x", dist.Normal(mean, 1.0).expand([len(x)]).to_event(1), obs=x)

    def local(x):
        with numpyro.plate("obs", len(x)):
            mean = numpyro.sample("own", dist.Normal(0.0, 1.0))
            numpyro.sample("x", dist.Normal(mean, 1.0), obs=x)

    def improper(x):
        mean = numpyro.sample("mean", dist.ImproperUniform(dist.constraints.real, (), ()))
        numpyro.sample("x", dist.Normal(mean, 1.0), obs=x)

    x = np.array([0.1, 0.2])
    refuses(lambda: bg.fit(improper, 0.3, "map"), "proper prior")
    for inference in ("map", "nuts", "ml"):
        with pytest.raises(ValueError, match="'z' is discrete"):
            bg.fit(mixture, 0.3, inference)
    refuses(lambda: bg.fit(blind, x, "map"), "blind observes nothing")
    refuses(lambda: bg.fit(fixed, x, "map"), "fixed samples no latent")
    refuses(lambda: bg.fit(plain, x), "no exact posterior", TypeError)
    refuses(lambda: bg.fit(plain, x, "map").log_predictive(x), "plate named 'obs'")
    refuses(lambda: bg.fit(local, x, "map").log_predictive(x), r"'own'.*belong to the rows of the fit")
    refuses(lambda: bg.fit(plain, ["a", "b"], "map"), "holds <U1 values", TypeError)
    refuses(lambda: bg.fit("plain", x, "map"), "NumPyro model function", TypeError)


def test_an_integral_checks_the_quadrature_of_these_tests(grid):
    common, marginal = grid

    def inner(m):
        result = stats.norm.pdf(m)
        for j in range(3):
            rows = COUNTS[WARD == j]
            integrand = lambda r, rows=rows: stats.norm.pdf(r, m, 0.5) * stats.poisson.pmf(rows, np.exp(r)).prod()  # noqa: E731
            result *= integrate.quad(integrand, m - 4, m + 4, epsabs=1e-14)[0]
        return result

    density = marginal()
    for i in (300, 380, 450):
        assert density[i] == pytest.approx(inner(common[i]), rel=1e-6)


def test_functions_are_traced_one_at_a_time():
    """NumPyro's handlers are one stack for all threads, on which two traces would mix their sites."""
    with ThreadPoolExecutor(4) as threads:
        sites = list(threads.map(lambda _: FunctionModel.of(wards, (WARD, COUNTS))[0].axes, range(60)))
    assert set(sites) == {(("common", ()), ("log_rate", ("ward",)))}
