"""Hyperparameters that JAX traces: conjugate algebra under jit, grad and vmap, and priors that have priors."""

from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.flatten_util import ravel_pytree
from laws import CASES
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density
from refusals import refuses
from scipy import integrate, stats
from scipy.optimize import approx_fprime

from bayesgen.core import program
from bayesgen.models import BetaBernoulli, GammaPoisson, NormalInverseGamma
from bayesgen.testing.case import asked, compiled, z_scores

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

# Slow elsewhere, but their algebra is their own; else of two lines that run the same code, one.
OWN = ("coin", "calls", "gauge", "skewed", "gaussian plane", "linear, known noise")
EXACT = [case for case in CASES if case.model.conjugate and (not case.slow or case.name in OWN)]
each = pytest.mark.parametrize("case", EXACT, ids=lambda case: case.name)


def again(model):
    """Return the model, made anew by its constructor and the constructors of its leaves."""
    inner = {}
    for field in fields(model):
        value = getattr(model, field.name)
        if isinstance(value, dict):
            inner[field.name] = {name: again(leaf) for name, leaf in value.items()}
        elif hasattr(value, "log_evidence"):
            inner[field.name] = again(value)
    return replace(model, **inner)


@each
def test_evidence_and_its_gradient(case):
    """Under jit the evidence equals NumPy's; its gradient agrees with finite differences (to their own error)."""
    model, statistics = case.model, case.model.statistics(*case.data(12))

    def evidence(model):
        return again(model).log_evidence(statistics)

    with program.x64():
        flat, unravel = ravel_pytree(jax.tree_util.tree_map(np.array, model))
        value, gradient = compiled(jax.value_and_grad(lambda v: evidence(unravel(v))), flat)(flat)
        plain = model.log_evidence(statistics)
        assert np.ndim(plain) == 0
        np.testing.assert_allclose(value, plain, rtol=1e-11)
        point = np.asarray(flat, float)
        traced = compiled(lambda v: evidence(unravel(v)), flat)  # for a single entry's step leaves a matrix lopsided
        numerical = approx_fprime(point, lambda v: float(traced(v)), 1e-6 * (1 + abs(point)))
    np.testing.assert_allclose(gradient, numerical, rtol=2e-4, atol=2e-4 * np.abs(numerical).max(initial=1))


@each
def test_predictive_of_traced_hyperparameters(case):
    """The predictive, which is the evidence of one row, is the closed form, gaps and all; a posterior's too."""
    statistics, new = case.model.statistics(*case.data(12)), case.data(8, seed=1)

    def predictive(model):
        return again(model.update(statistics)).log_predictive(asked(new))

    with program.x64():
        model = jax.tree_util.tree_map(np.array, case.model)
        traced = compiled(predictive, model)(model)
    np.testing.assert_allclose(traced, case.model.update(statistics).log_predictive(asked(new)), rtol=1e-9, atol=1e-9)


KINDS = ("coin", "gauge", "gaussian plane")  # of one number, of moments, of a matrix
few = pytest.mark.parametrize(
    "case", [pytest.param(c, marks=[pytest.mark.slow] * (c.name not in KINDS), id=c.name) for c in EXACT]
)


@few
def test_many_priors_at_once(case):
    """Evidences mapped over a stack of hyperparameters equal the single ones."""
    statistics = case.model.statistics(*case.data(12))
    other = jax.tree_util.tree_map(lambda v: 1.25 * v, case.model)
    with program.x64():
        both = jax.tree_util.tree_map(lambda a, b: np.stack([a, b]), case.model, other)
        mapped = jax.vmap(lambda model: model.log_evidence(statistics))
        values = mapped(both) if case.name == "coin" else compiled(mapped, both)(both)  # by operation compiles longest
    np.testing.assert_allclose(values, [m.log_evidence(statistics) for m in (case.model, other)], rtol=1e-11)


@few
def test_single_precision(case):
    """In a float32 program the evidence is float32, right to 1e-4 of the sum of its terms' sizes."""
    statistics = case.model.statistics(*case.data(12))
    value = compiled(lambda model: again(model).log_evidence(statistics), case.model)(case.model)
    assert value.dtype == jnp.float32
    plain = float(case.model.log_evidence(statistics))
    np.testing.assert_allclose(value, plain, atol=1e-4 * max(abs(plain), 50))


def test_known_values_are_checked_and_unknown_ones_pass():
    assert BetaBernoulli(jnp.asarray(2.0), 1).a.dtype == jnp.float32
    for wrong in (-1.0, np.inf):
        with pytest.raises(ValueError, match="BetaBernoulli: a must be"):
            BetaBernoulli(jnp.asarray(wrong), 1.0)
    assert jax.jit(lambda a: BetaBernoulli([a, 2 * a], 1.0).mean)(3.0).shape == (2,)
    refuses(lambda: jax.jit(lambda a: BetaBernoulli(a, [1.0, 1.0]).mean)(jnp.ones(3)), "do not fit together")


# -- a prior with a prior ----------------------------------------------------------------------------------------------

HEADS, TOSSES = np.array([1, 3, 2, 8, 9, 4, 6, 2]), np.array([5, 6, 10, 9, 12, 7, 8, 11])
COINS = BetaBernoulli().statistics(
    np.concatenate([np.arange(n) < h for h, n in zip(HEADS, TOSSES, strict=True)]).astype(float),
    np.repeat(np.arange(8), TOSSES),
    8,
)


def collapsed(coins=COINS):
    a = numpyro.sample("a", dist.Gamma(2.0, 0.5))
    b = numpyro.sample("b", dist.Gamma(2.0, 0.5))
    numpyro.factor("coins", BetaBernoulli(a, b).log_evidence(coins))


def whole():
    a = numpyro.sample("a", dist.Gamma(2.0, 0.5))
    b = numpyro.sample("b", dist.Gamma(2.0, 0.5))
    with numpyro.plate("coin", 8):
        probability = numpyro.sample("probability", dist.Beta(a, b))
        numpyro.sample("heads", dist.Binomial(TOSSES, probability), obs=HEADS)


@pytest.mark.parametrize("double", [False, True], ids=["float32", "float64"])
def test_a_collapsed_hierarchy_has_the_density_of_the_whole_integrated(double):
    """Against quadrature over each coin's probability; the sequences' evidence leaves the binomial coefficients out."""
    a, b = 2.5, 1.7
    prior = stats.gamma(2, scale=2)
    ways = sum(np.log(stats.binom.pmf(h, n, 0.5)) + n * np.log(2) for h, n in zip(HEADS, TOSSES, strict=True))
    exact = prior.logpdf(a) + prior.logpdf(b) - ways
    for h, n in zip(HEADS, TOSSES, strict=True):
        pdf = stats.beta(a, b).pdf
        exact += np.log(integrate.quad(lambda p, h=h, n=n, pdf=pdf: stats.binom.pmf(h, n, p) * pdf(p), 0, 1)[0])
    with program.x64() if double else jax.enable_x64(False):
        density = jax.jit(lambda a, b: log_density(collapsed, (), {}, {"a": a, "b": b})[0])(a, b)
    assert density == pytest.approx(exact, rel=1e-9 if double else 1e-5)


@pytest.mark.slow
def test_a_collapsed_hierarchy_samples_the_same_posterior():
    """NUTS on the two hyperparameters alone, and on them with all eight probabilities: |z| < 5."""
    draws = []
    for run, seed in ((collapsed, 0), (whole, 1)):
        chains = MCMC(NUTS(run), num_warmup=500, num_samples=2000, num_chains=2, progress_bar=False)
        chains.run(jax.random.PRNGKey(seed))
        sites = chains.get_samples(group_by_chain=True)
        draws.append(np.log(np.stack([np.asarray(sites["a"], float), np.asarray(sites["b"], float)], -1)))
    other = draws[1].mean((0, 1))
    noise = draws[1].var((0, 1)) / 400  # no fewer effective draws than that, which z_scores checks of the first
    assert (np.abs(z_scores(draws[0], other, noise)) < 5).all()


@pytest.mark.parametrize(
    ("prior", "rows"),
    [
        (lambda v: GammaPoisson(jnp.exp(v[0]), jnp.exp(v[1])), [3.0, 0.0, 5.0, 2.0, 1.0, 4.0]),
        (lambda v: NormalInverseGamma(v[0], 1.0, 2.0, jnp.exp(v[1])), [1.2, 0.4, 2.2, 1.9]),
    ],
    ids=["counts", "numbers"],
)
def test_empirical_bayes_by_gradient_climbs(prior, rows):
    """A few steps up the gradient of the evidence raise it, by what the gradient promises."""
    with program.x64():
        statistics = prior(np.zeros(2)).statistics(rows)
        climb = jax.jit(jax.value_and_grad(lambda v: prior(v).log_evidence(statistics)))
        v, start = jnp.zeros(2), climb(jnp.zeros(2))[0]
        for _ in range(50):
            v = v + 0.05 * climb(v)[1]
        (end, slope), (_, steep) = climb(v), climb(jnp.zeros(2))
        start, end, slope, steep = (np.asarray(value) for value in (start, end, slope, steep))
    assert end > start + 0.1
    assert np.linalg.norm(slope) < np.linalg.norm(steep)
