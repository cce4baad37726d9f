"""Every model is a NumPyro model function; and what importing and running do, and do not, to the process."""

import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import laws
import numpy as np
import numpyro
import pytest
from jax import random
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.inspect import get_model_relations
from numpyro.infer.util import potential_energy
from numpyro.optim import Adam

from bayesgen.models import ClassConditional
from bayesgen.models.model import on_jax

CASES = [case for case in laws.CASES if case.name != "known die"]  # with something to learn
DRAWN = [case for case in CASES if not any(map(laws.is_pair, case.parts.values()))]  # tosses are given, never drawn
ROWS = 15
# A gradient through each leaf is also one through "naive Bayes", "full", or the line with more columns.
SLOPED_AGAIN = (
    *laws.LIKE_ANOTHER,
    "coin",
    "die",
    "dice",
    "toronto",
    "normal",
    "normals",
    "gauge",
    "skewed",
    "gaussian plane",
)
# Drawing compiles longest, and draws in the shape of another line use its samplers.
DRAWN_AGAIN = (
    *laws.LIKE_ANOTHER,
    "dice",
    "gauges",
    "normals",
    "skewed from 0",
    "full shared",
    "diagonal",
    "linear through 0",
)
DRAWN_AGAIN = (*DRAWN_AGAIN, "gauge", "isotropic", "separation diagonal", "outliers")
DRAWN_AGAIN = (*DRAWN_AGAIN, "coin", "die", "toronto", "normal", "gaussian plane")  # in "naive Bayes", and in "full"


def over(cases, again=laws.LIKE_ANOTHER, second=()):
    """Cases of the default run, of the second command, and slow ones."""
    marks = {name: pytest.mark.compiles for name in second} | {name: pytest.mark.slow for name in again}
    return pytest.mark.parametrize("case", [pytest.param(c, id=c.name, marks=marks.get(c.name, ())) for c in cases])


LONG = "outliers", "linear, prior apart", "separation diagonal", "ordered, probit"  # of the second command
by_case, drawn = over(laws.CASES, second=LONG), over(DRAWN, DRAWN_AGAIN, LONG)


def floats32(data):
    """Return the data as a user gives them where JAX is in single precision."""
    return jax.tree_util.tree_map(lambda a: jnp.asarray(a, jnp.float32 if a.dtype.kind == "f" else None), data)


def unobserved(case, n):
    """Arguments of the program that leave n rows, or the n targets of a regression, to be drawn."""
    return (floats32(case.data(n))[:1], {}) if case.given else ((), {"size": n})


def row_sites(case):
    """Names and shapes of the observed sites, for n rows."""
    if case.given:
        return {"t": (ROWS,)}
    if len(case.data(1)) == 1:
        return {"x": case.data(ROWS)[0].shape}
    return {f"{part}.x": laws.block(case.data(ROWS), part).shape for part in case.parts} | {"t": (ROWS,)}


def traced(model, *args, **sizes):
    """The sites of a program that JAX has traced, not run: operation by operation its draws compile for seconds."""
    found = {}

    def run(key):
        found.update(handlers.trace(handlers.seed(model, key)).get_trace(*args, **sizes))

    jax.eval_shape(run, random.PRNGKey(1))
    return found


@pytest.mark.compiles
@drawn
def test_prior_predictive(case):
    args, sizes = unobserved(case, ROWS)
    key = random.PRNGKey(0)
    draws = laws.compiled(lambda key: Predictive(case.model, num_samples=3)(key, *args, **sizes), key)(key)
    for site, shape in row_sites(case).items():
        assert draws[site].shape == (3, *shape), site
        assert jnp.isfinite(draws[site]).all()
    for part, leaf in case.parts.items():
        rows = np.asarray(draws[f"{part}.x" if part else "x"][0])
        assert leaf.check(rows).shape == rows.shape  # what the program draws, the algebra takes


@by_case
def test_trace(case):
    """Sites are named as in the algebra, plates as promised, and the data is observed."""
    data = floats32(case.data(ROWS))
    trace = traced(case.model, *data)
    plates = {name for name, site in trace.items() if site["type"] == "plate"}
    assert "obs" in plates
    kinds = ("class", "contrast") if case.given else ("class",)  # by which a regression of several scores is sampled
    assert case.given or any(name.endswith("class") for name in plates) == (len(data) > 1)
    assert all(name == "obs" or name.endswith(kinds) or "feature" in name for name in plates), plates
    observed = {name for name, site in trace.items() if site["type"] == "sample" and site["is_observed"]}
    assert observed == set(row_sites(case))
    sites = {name for name, site in trace.items() if site["type"] in ("sample", "deterministic")}
    assert sites - observed == set(laws.parameters(case, 1))
    assert all(trace[name]["value"].dtype == jnp.float32 for name in sites - observed)  # the user's precision


@drawn
def test_condition(case):
    params = {k: jnp.asarray(v[0], jnp.float32) for k, v in laws.parameters(case, 1).items()}
    conditioned = handlers.condition(case.model, params)
    args, sizes = unobserved(case, 4)
    trace = traced(conditioned, *args, **sizes)
    for name, value in params.items():
        if trace[name]["type"] == "sample":
            np.testing.assert_array_equal(trace[name]["value"], value)


@over(laws.CASES, SLOPED_AGAIN, (*LONG, "chain", "full", "full shared", "diagonal", "isotropic"))
def test_gradients_are_finite_where_values_are_missing(case):
    """A NaN masked after `log_prob` leaves a NaN gradient; replaced before, it does not."""
    data = floats32(case.data(ROWS, "entries"))
    values = {k: jnp.asarray(v[0], jnp.float32) for k, v in laws.parameters(case, 1).items()}

    def slope_at(values):
        sites = laws.sample_sites(on_jax(case.model), values).items()
        z = {name: biject_to(site["fn"].support).inv(site["value"]) for name, site in sites}
        return jax.grad(lambda z: potential_energy(case.model, data, {}, z))(z)

    slope = laws.compiled(slope_at, values)(values)
    assert all(jnp.isfinite(g).all() for g in jax.tree_util.tree_leaves(slope))


@by_case
def test_render(case):
    graph = numpyro.render_model(case.model, model_args=floats32(case.data(ROWS)))
    for site in row_sites(case):
        assert site in graph.source


@pytest.mark.parametrize("case", [c for c in laws.CASES if isinstance(c.model, ClassConditional)], ids=lambda c: c.name)
def test_plates_are_those_of_the_lectures(case):
    """Parameters of each class stand in the plate of the classes, shared ones outside, rows in "obs"."""
    found = get_model_relations(case.model, floats32(case.data(ROWS)))
    inside = {"obs": set(), "class": set()}
    for plate, sites in found["plate_sample"].items():
        name = plate.rpartition(".")[2].partition("__CLONE")[0]  # of plates that cross one is drawn twice
        inside.setdefault(name, set()).update(sites)
    rows = set(found["observed"])
    parameters = {site for site in found["sample_sample"] if site not in rows and not site.startswith("classes.")}
    assert inside["obs"] == rows
    assert inside["class"] == {site for site in parameters if "class" in case.model.dims(site)}


MCMC_CASES = [
    "coin",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("die", "normal", "full shared", "gaussian plane")),
    pytest.param("isotropic", marks=pytest.mark.slow),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("naive Bayes", "separation")),
]


@pytest.fixture(scope="session", params=MCMC_CASES)
def mcmc(request):
    """A user's own MCMC, in the user's precision."""
    case = next(case for case in laws.CASES if case.name == request.param)
    sampler = MCMC(NUTS(case.model), num_warmup=200, num_samples=300, progress_bar=False)
    sampler.run(random.PRNGKey(0), *floats32(case.data(25)))
    return case, sampler.get_samples()


@pytest.mark.compiles
def test_mcmc(mcmc):
    """`MCMC(NUTS(model)).run(key, *data)`; the means agree with our own NUTS within its noise, and in float32."""
    case, samples = mcmc
    assert samples.keys() == laws.parameters(case, 1).keys()
    assert all(v.dtype == jnp.float32 for v in samples.values())
    if not case.model.conjugate:
        return
    exact = case.model.update(case.model.statistics(*case.data(25))).sample_parameters(case.rng, (5000,))
    for site, values in exact.items():
        # 300 draws with at least 50 effective ones: five standard errors are 0.7 standard deviations.
        assert (np.abs(samples[site].mean(0) - values.mean(0)) <= 0.7 * values.std(0) + 1e-4).all(), site


@pytest.mark.compiles
def test_posterior_predictive(mcmc):
    case, samples = mcmc
    draws = Predictive(case.model, samples)(random.PRNGKey(1), size=ROWS)
    for site, shape in row_sites(case).items():
        assert draws[site].shape == (300, *shape)


@pytest.mark.compiles
@pytest.mark.parametrize("name", ["coin", *(pytest.param(n, marks=pytest.mark.slow) for n in ("naive Bayes", "full"))])
def test_svi(name):
    case = next(case for case in laws.CASES if case.name == name)
    guide = AutoNormal(case.model)
    svi = SVI(case.model, guide, Adam(0.02), Trace_ELBO())
    result = svi.run(random.PRNGKey(0), 300, *floats32(case.data(25)), progress_bar=False)
    assert np.isfinite(result.losses).all()
    assert result.losses[-50:].mean() < result.losses[:50].mean()
    median = guide.median(result.params)
    assert median.keys() <= laws.parameters(case, 1).keys()


# -- precision, and a clean process


def run(code):
    """Run code in a fresh process, warnings as errors; returns its output."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:NUTS", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.compiles
def test_programs_are_kept_for_later_processes(tmp_path):
    code = f"""
        import jax.numpy as jnp
        import bayesgen as bg

        jnp.arange(3).sum()  # something was compiled before
        bg.inference.cache_compilation({str(tmp_path)!r})
        bg.fit(bg.models.BetaBernoulli(2, 2), [1, 1, 0], bg.Laplace(20), seed=0)
    """
    run(code)
    kept = {path.name for path in tmp_path.iterdir() if path.name.endswith("-cache")}
    assert kept
    run(code)
    assert {path.name for path in tmp_path.iterdir() if path.name.endswith("-cache")} == kept


@pytest.mark.compiles
def test_a_process_in_which_a_user_has_jax_in_single_precision():
    """JAX loaded by the user first, a model built, then jit over it: the class is a pytree by then, and JAX as before.

    Neither poisons the other in one process, whichever comes first, nor in threads. JAX remembers a read-only array as
    first converted: a part of a model in a user's own program is such a use, and so is a user's own MCMC. The x64 scope
    is of one thread: two fits side by side, a float32 computation between them.
    """
    out = run("""
        import jax, numpyro
        before = dict(jax.config.values), numpyro.__version__, jax.default_backend(), jax.device_count()
        from bayesgen.models import BetaBernoulli, NaiveBayes, DirichletCategorical

        coin = BetaBernoulli([2.0, 3.0], 1.0)
        assert float(jax.jit(lambda m: (m.a / (m.a + m.b)).sum())(coin)) > 1.41
        bayes = NaiveBayes(DirichletCategorical(1.0, ["a", "b"]), {"x": coin})
        assert len(jax.tree_util.tree_leaves(bayes)) == 3
        assert jax.tree_util.tree_map(lambda v: v, bayes) == bayes

        import bayesgen
        from bayesgen.core import program
        bayesgen.fit(BetaBernoulli(), [0, 1], bayesgen.NUTS(10, 10, 1), seed=0)
        assert (dict(jax.config.values), numpyro.__version__, jax.default_backend(), jax.device_count()) == before

        import threading
        import numpy as np, jax.numpy as jnp, numpyro.distributions as dist
        from jax import random
        from numpyro.infer import MCMC, NUTS
        from numpyro.infer.util import log_density
        from bayesgen.models import NormalKnownVariance  # a gamma's sampler compiles for long

        x = np.random.default_rng(0).normal(size=(30, 2))

        # the predictive, and then our sampler
        model = NormalKnownVariance([0.0, 1.0], 1.0, 2.0)

        def own(x):
            numpyro.sample("shift", dist.Normal())
            with numpyro.plate("rows", 30):
                numpyro.sample("x", model.predictive().to_event(1), obs=x)

        assert log_density(own, (jnp.asarray(x),), {}, {"shift": jnp.zeros(())})[0].dtype == jnp.float32
        assert bayesgen.fit(model, x, bayesgen.NUTS(10, 300, 1), seed=0).samples["mean"].dtype == float

        # a user's sampler, ours, and the user's density
        model = NormalKnownVariance([0.0, 0.0], 1.0, 1.0)
        mcmc = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
        mcmc.run(random.PRNGKey(0), jnp.asarray(x))
        assert {v.dtype.name for v in mcmc.get_samples().values()} == {"float32"}
        draws = bayesgen.fit(model, x, bayesgen.NUTS(400, 300, 2), seed=0)
        assert {v.dtype.name for v in draws.samples.values()} == {"float64"}
        assert log_density(model, (jnp.asarray(x),), {}, {"mean": jnp.zeros(2)})[0].dtype == jnp.float32
        assert not jax.config.jax_enable_x64 and jnp.zeros(1).dtype == jnp.float32
        exact = bayesgen.fit(model, x).log_predictive(x)
        print(np.abs(np.exp(draws.log_predictive(x)) - np.exp(exact)).max())

        # threads
        found = {}

        def work(name, model, x):
            found[name] = bayesgen.fit(model, x, bayesgen.NUTS(50, 50, 2), seed=0).samples

        threads = [
            threading.Thread(target=work, args=("coin", BetaBernoulli(), [0, 1, 1])),
            threading.Thread(target=work, args=("line", NormalKnownVariance(0.0, 1.0, 2.0), [0.1, 1.0])),
        ]
        for thread in threads:
            thread.start()
        seen = {jnp.ones(2).dtype.name for _ in range(1000)}
        for thread in threads:
            thread.join()
        assert seen == {"float32"}
        assert {v.dtype.name for sites in found.values() for v in sites.values()} == {"float64"}
    """)
    assert float(out) < 0.02
