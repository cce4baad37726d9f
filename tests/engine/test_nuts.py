"""The sampler's own record, and its runs: one kernel, blocks, an interrupt, the bar, several devices."""

import os
import signal
import threading
from collections import OrderedDict

import jax
import jax.numpy as jnp
import laws
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from sklearn.datasets import load_iris
from test_inference import CLASSES, COIN, GAPPY, ROWS, SHORT

from bayesgen import (
    NUTS,
    GaussianDiscriminantClassifier,
    LinearRegressor,
    LogisticClassifier,
    NaiveBayesClassifier,
    ProbitClassifier,
    fit,
)
from bayesgen.core import program
from bayesgen.inference import SamplerWarning
from bayesgen.inference.nuts import _problems, blocks
from bayesgen.models import DirichletCategorical, GaussianDiscriminant, SeparationPrior
from bayesgen.posterior import compiled
from bayesgen.posterior.compiled import one_kernel
from bayesgen.posterior.posterior import distance


def cliff(x):
    """A density with an edge, where the energy jumps."""
    place = numpyro.sample("place", dist.Normal(x, 1.0))
    numpyro.factor("edge", jnp.where(place > 0.5, -1e5, 0.0))


def two_peaks(x):
    """Two peaks that no trajectory joins."""
    place = numpyro.sample("place", dist.Normal(0.0, 30.0))
    numpyro.sample("x", dist.Normal(jnp.abs(place), 0.1), obs=x)


PLUGGED = OrderedDict()  # programs of the tests that have an accelerator


@pytest.fixture
def accelerator(monkeypatch):
    """Return the function that makes this a machine with an accelerator, as far as we ask JAX."""

    def plugged():
        monkeypatch.setattr(compiled, "_programs", PLUGGED)
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")

    return plugged


@pytest.mark.compiles
def test_divergences_and_chains_apart_are_told():
    with pytest.warns(SamplerWarning, match="diverged.*raise target_accept"):
        edged = fit(cliff, 0.0, NUTS(200, 200, 2), seed=0)
    assert edged.sample_stats["diverging"].any() and edged.samples["place"].max() < 0.5
    with pytest.warns(SamplerWarning, match="R-hat is .* far above 1.01: the chains have not met; raise num_warmup"):
        apart = fit(two_peaks, 20.0, NUTS(200, 200, 8), seed=1)
    assert len(set(np.sign(apart.samples["place"].mean(1)))) == 2
    with pytest.warns(SamplerWarning, match=r"R-hat|effective draws"):
        fit(COIN, [1, 0, 1], NUTS(30, 50, 2), seed=0)


@pytest.mark.parametrize(("apart", "words"), [(0.0, None), (0.15, "raise num_samples"), (1.0, "raise num_warmup")])
def test_chains_a_little_apart_ask_for_more_draws_and_for_nothing_else(apart, words):
    """Four chains of 400 draws whose means are ``apart``: an R-hat of 1.00, of 1.01 to 1.02, and more."""
    draws = np.random.default_rng(0).normal(size=(4, 400, 1)) + apart * np.array([-1, 1, -1, 1])[:, None, None]
    told = list(_problems(NUTS(num_samples=400), {"diverging": np.zeros(1)}, draws))
    assert len(told) == (words is not None)
    if words:
        assert words in told[0] and ("num_warmup" in told[0]) == (apart == 1.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "classifier",
    [
        pytest.param(NaiveBayesClassifier, marks=pytest.mark.compiles),
        pytest.param(GaussianDiscriminantClassifier, marks=pytest.mark.slow),
    ],
)
def test_clean_data_give_no_warning(classifier):
    X, y = load_iris(return_X_y=True)
    classifier(inference="nuts", random_state=0).fit(X, y)


@pytest.mark.compiles
def test_draws_of_a_conjugate_model_tell_their_distance_from_the_exact_posterior():
    found = fit(COIN, [1, 0, 1], NUTS(1000, 50, 2), seed=0)  # the program of SHORT
    exact = fit(COIN, [1, 0, 1]).model
    sd = np.sqrt(exact.a * exact.b / (exact.a + exact.b + 1)) / (exact.a + exact.b)
    apart = abs(found.samples["probability"].mean() - exact.mean) / sd
    assert found.distance["probability"] == pytest.approx(apart, abs=0.08)  # 4000 exact draws: a fifth of that
    assert found.distance["probability"] < 0.2
    assert found.to_arviz().posterior.attrs["distance to exact, probability"] == found.distance["probability"]
    assert distance({"probability": found.samples["probability"] + sd}, {"probability": found.samples["probability"]})[
        "probability"
    ] == pytest.approx(1, rel=0.2)


@pytest.mark.slow
def test_draws_of_a_model_without_an_exact_posterior_have_no_distance():
    assert not fit(GAPPY, (ROWS, CLASSES), SHORT, seed=0).distance


def test_one_kernel_computes_the_same():
    def loop(x, y):
        return jax.lax.scan(lambda c, _: ((c := jnp.sin(c) * jnp.sum(y) + c[::-1], c.sum())), x, length=50)

    with jax.enable_x64(True):
        x, y = np.linspace(0, 1, 7), np.linspace(-1, 1.1, 5)
        whole, plain = (program.build(f, x, y)(x, y) for f in (one_kernel(loop), loop))
    for a, b in zip(whole, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.compiles
def test_what_cannot_be_one_kernel_is_sampled_all_the_same():
    place = np.array([0, 2, 1, 2])

    def scattered(y=None):
        mean = numpyro.sample("mean", dist.Normal(0, 1).expand([3]).to_event(1))
        total = jnp.zeros(3).at[place].add(jnp.ones(4)) * mean  # the gradient scatters, which XLA has no kernel for
        with numpyro.plate("obs", 3):
            numpyro.sample("y", dist.Normal(total, 1.0), obs=y)

    draws = fit(scattered, (np.array([1.0, 1.0, 2.0]),), NUTS(500, 200, 2), seed=0)
    np.testing.assert_allclose(draws.samples["mean"].mean((0, 1)), [0.5, 0.5, 0.8], atol=0.15)


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("warmup", "samples"),
    [(0, 1), *(pytest.param(*own, marks=pytest.mark.slow) for own in ((30, 45), (50, 50), (70, 99), (100, 7)))],
)
def test_blocks_leave_no_seam(warmup, samples):
    """Whatever the number of draws, they are the first of a longer run."""
    short = fit(COIN, [1, 0, 1], NUTS(samples, warmup, 2), seed=3)
    longer = fit(COIN, [1, 0, 1], NUTS(samples + 60, warmup, 2), seed=3)
    assert short.samples["probability"].shape == (2, samples)
    for name, values in (short.samples | short.sample_stats).items():
        np.testing.assert_array_equal(values, (longer.samples | longer.sample_stats)[name][:, :samples])


@pytest.mark.compiles
@pytest.mark.parametrize("side_by_side", [False, True])
def test_an_interrupt_keeps_the_draws_so_far(side_by_side, accelerator):
    if side_by_side:
        accelerator()
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


# -- one program for all chains, as on an accelerator

X = np.random.default_rng(0).normal(size=(90, 3))
SCORE = X[:, 0] + np.random.default_rng(1).logistic(size=90)
GAPS = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-1, 1])
SEPARATED = GaussianDiscriminant(DirichletCategorical(1.0, 2), SeparationPrior([0.0] * 3, 3.0, 2.0))


def line(x, y):
    """A user's own function."""
    slope = numpyro.sample("slope", dist.Normal(0.0, 5.0))
    noise = numpyro.sample("noise", dist.HalfNormal(3.0))
    with numpyro.plate("obs", len(y)):
        numpyro.sample("y", dist.Normal(slope * x, noise), obs=y)


def fitted(make, x, y, **settings):
    return lambda nuts, seed: make(inference=nuts, random_state=seed, **settings).fit(x, y).posterior_


SIDE_BY_SIDE = {
    "coin": lambda nuts, seed: fit(COIN, [1, 0, 1], nuts, seed=seed),
    "logistic": fitted(LogisticClassifier, X, TWO),
    "naive Bayes": fitted(NaiveBayesClassifier, X, THREE),
    "discriminant": fitted(GaussianDiscriminantClassifier, X, THREE),
    "gaps": fitted(GaussianDiscriminantClassifier, GAPS, THREE),
    "softmax": fitted(LogisticClassifier, X, THREE),
    "probit": fitted(ProbitClassifier, X, TWO),
    "laplace noise": fitted(LinearRegressor, X, SCORE, noise="laplace"),
    "separation": lambda nuts, seed: fit(SEPARATED, (X, TWO), nuts, seed=seed),
    "own": lambda nuts, seed: fit(line, (X[:, 0], SCORE), nuts, seed=seed),
}


@pytest.mark.compiles
@pytest.mark.parametrize(
    "case", [name if name == "coin" else pytest.param(name, marks=pytest.mark.slow) for name in SIDE_BY_SIDE]
)
@pytest.mark.filterwarnings("ignore:NUTS")
def test_one_program_for_all_chains_gives_the_draws_of_a_thread_each(case, accelerator):
    sample, sampler = SIDE_BY_SIDE[case], NUTS(400, 200, 3, keep_warmup=True)
    apart = sample(sampler, 0)
    accelerator()
    together, other = sample(sampler, 0), sample(sampler, 1)
    assert together.samples.keys() == apart.samples.keys()
    steps = (run.warmup.sample_stats["n_steps"][:, :10] for run in (apart, together))
    np.testing.assert_array_equal(*steps)
    for site, draws in apart.samples.items():  # rounding grows along a chain
        first = (run.warmup.samples[site][:, :10] for run in (apart, together))
        np.testing.assert_allclose(*first, rtol=1e-6, atol=1e-6)
        assert draws.shape == together.samples[site].shape
        varies = draws.std((0, 1)) > 1e-9
        mine, own = draws[..., varies], other.samples[site][..., varies]
        assert (np.abs(laws.z_scores(own, mine.mean((0, 1)), mine.var((0, 1)) / 200)) < 5).all(), site


@pytest.mark.compiles
def test_one_program_reads_nothing_from_the_host_between_blocks(accelerator):
    accelerator()
    fitted = LogisticClassifier(inference=NUTS(400, 200, 3, keep_warmup=True), random_state=0).fit(X, TWO)
    with program.x64():
        begin, block = blocks(200, 0.8, fitted.model_, fitted.statistics_, 3)
        state = begin([0, 1, 2])
        with jax.transfer_guard_host_to_device("disallow_explicit"):
            state, (sites, _, z) = block(state)
    assert sites["coefficients"].shape == (3, 50, 3) and z.shape == (3, 50, 4) and z.dtype == np.float64


@pytest.mark.compiles
def test_one_chain_in_one_program_leaves_no_seam(accelerator):
    accelerator()
    short, longer = (fit(COIN, [1, 0, 1], NUTS(n, 30, 1), seed=3).samples["probability"] for n in (45, 105))
    assert short.shape == (1, 45)
    np.testing.assert_array_equal(short, longer[:, :45])


def test_a_compiler_that_lacks_an_option_is_given_the_others():
    class Lowered:
        def compile(self, compiler_options):
            if "xla_cpu_use_fusion_emitters" in compiler_options:
                raise program.jax.errors.JaxRuntimeError(
                    "INVALID_ARGUMENT: No such compile option: 'xla_cpu_use_fusion_emitters'"
                )
            return compiler_options

    assert program.compiled(Lowered()) == {"xla_cpu_experimental_ynn_fusion_type": ""}
