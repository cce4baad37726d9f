"""NUTS hot, on the same posterior: ours on statistics against NumPyro's `MCMC.run`, nutpie, PyMC and Stan on the same.

The unit is the smallest effective sample size over all latents, per second. Before the clock starts the means of every
sampler are compared with the exact posterior's. Peers that are not installed are named in the note.
"""

# ruff: noqa: B023 - a contender is called in the turn of the loop that makes it

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC
from numpyro.infer import NUTS as Kernel

from bayesgen import NUTS
from bayesgen.core import program
from bayesgen.inference.charts import charted, displacement
from bayesgen.inference.point import potential
from bayesgen.inference.whitening import whitened
from bayesgen.models.function import statistics_program
from bayesgen.posterior.compiled import fresh, one_kernel
from benchmarks.fit import as_rows, model, rows
from benchmarks.peers import ABSENT, CONTENDERS, GOALS, INSTALLED, SITES
from benchmarks.timing import Table, medians, told

CELLS = [("bernoulli", 10, 3, 1), ("vector", 4, 3, 1), ("vector", 4, 3, 100), ("vector", 10, 3, 100)]
CORRELATED = {"nutpie": 12.0, "stan": 3.0}  # goals where columns are correlated; PyMC takes many minutes there


def mixing(dim, condition):
    """A matrix that gives independent columns a covariance of a condition number."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(dim, dim)))[0]
    return np.geomspace(1, condition**0.5, dim)[:, None] * turn


def smallest(draws) -> float:
    """Smallest effective sample size over all entries of all sites, arrays (chains, draws, ...)."""
    return min(float(np.min(effective_sample_size(np.asarray(v)))) for v in draws.values())


def check(draws, exact, sites):
    """Check that means are within six standard errors of the means of exact draws."""
    for site in sites:
        mine = np.asarray(draws[site])
        error = mine.std((0, 1)) / np.sqrt(np.maximum(np.asarray(effective_sample_size(mine)), 1.0))
        z = (mine.mean((0, 1)) - exact[site].mean(0)) / np.hypot(error, exact[site].std(0) / np.sqrt(len(exact[site])))
        if not (np.abs(z) < 6).all():
            raise AssertionError(f"{site}: a mean is {np.abs(z).max():.1f} standard errors off; nothing was timed")


def plain(ours, statistics, samples, warmup):
    """A runner of NumPyro's own loop on the same statistics, chains one after the other, no bar."""

    def run():
        with program.x64():
            mcmc = MCMC(
                Kernel(partial(statistics_program, ours)),
                num_warmup=warmup,
                num_samples=samples,
                num_chains=2,
                chain_method="sequential",
                progress_bar=False,
            )
            mcmc.run(program.jax.random.PRNGKey(0), statistics)
            return {site: np.asarray(v) for site, v in mcmc.get_samples(group_by_chain=True).items()}

    return run


def leapfrogs(ours, statistics, run):
    """The bare leapfrog steps of a run, without any tree: two chains side by side, each one compiled kernel."""
    jax, count = program.jax, int(run.sample_stats["n_steps"].sum() + run.warmup.sample_stats["n_steps"].sum()) // 2
    with program.x64():
        model, sums, _ = whitened(ours, statistics)
        model, sums = fresh(model, sums)
        chart = charted(model, sums, model.start_from(sums), False, 0)
        size = len(chart[1])

        def chain(v, chart, model, sums):
            density = jax.value_and_grad(lambda v: potential(displacement(v, chart), chart[0], model, sums))

            def step(_, state):
                v, r, slope, energy = state
                r = r - 0.005 * slope
                v = v + 0.01 * r
                height, slope = density(v)
                return v, r - 0.005 * slope, slope, energy + height

            return jax.lax.fori_loop(0, count, step, (v, v, 0 * v, 0.0))

        kernel = jax.jit(one_kernel(chain)).lower(np.zeros(size), chart, model, sums).compile()

    def one(seed):
        with program.x64():
            state = kernel(np.random.default_rng(seed).standard_normal(size), chart, model, sums)
            if not np.isfinite(state[-1]):
                raise AssertionError("the bare leapfrog steps left float64; nothing was timed")

    def both():
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(one, range(2)))

    return both


FIRST = """
import time, numpyro.diagnostics, numpyro.infer, numpyro.optim
from bayesgen import NUTS
from bayesgen.inference import cache_compilation
from bayesgen.models.function import statistics_program
from benchmarks.fit import as_rows, model, rows
{keep}
x, t = rows({kind!r}, 10_000, {dim}, {groups})
ours = model({family!r}, {dim}, {groups})
statistics = ours.statistics(as_rows(ours, x), t)
start = time.perf_counter()
NUTS({samples}, {warmup}, 2, progress=False)(ours, statistics, seed=0)
print(time.perf_counter() - start)
"""


def first_call(**names) -> float:
    """Seconds of the first call in a fresh process that has imported everything: compiling and sampling."""
    return float(told(FIRST.format(**names)))


def run(quick: bool = False) -> list[Table]:
    """Fill the tables."""
    note = "1e4 rows, 2 chains. The floor is the bare leapfrog steps of our run, without trees, in one compiled kernel."
    note += f" Not installed, so not compared: {', '.join(ABSENT) or 'none'}."
    table = Table("NUTS, effective draws per second", note)
    growth = Table("NUTS against rows", "Ratio: the time at 150 rows over that at more rows; 1 is no growth.")
    starts = Table(
        "NUTS, first call", "Ratio: the goal over the median of three first calls, in seconds, compiling included."
    )
    samples, warmup = (100, 200) if quick else (1000, 1000)
    sampler = NUTS(samples, warmup, 2, progress=False)
    for family, dim, groups, condition in CELLS:
        kind, cell = "gaussian" if family == "vector" else family, f"{family}, {dim} columns, {groups} classes"
        x, t = rows(kind, 10_000, dim, groups)
        if condition > 1:
            x, cell = x @ mixing(dim, condition), f"{cell}, condition number {condition}"
        with tempfile.TemporaryDirectory() as folder:
            for seconds, keep in ((3.5, ""), (1.5, f"cache_compilation({folder!r})")) if condition == 1 else ():
                own = {"family": family, "kind": kind, "dim": dim, "groups": groups, "keep": keep}
                calls = [first_call(**own, samples=samples, warmup=warmup) for _ in range(4)][1:]
                starts.add(
                    cell + (", programs kept" if keep else ""), f"{seconds} s", seconds / float(np.median(calls)), 1
                )
        ours = model(family, dim, groups)
        statistics = ours.statistics(as_rows(ours, x), t)
        exact = ours.update(statistics).sample_parameters(np.random.default_rng(0), (20_000,))
        contenders = {
            "ours": lambda: sampler(ours, statistics, seed=0).samples,
            "NumPyro MCMC.run": plain(ours, statistics, samples, warmup),
        } | {
            name: CONTENDERS[name](family, ours, statistics, samples, warmup)
            for name in INSTALLED
            if condition == 1 or name in CORRELATED
        }
        draws, once = {}, {}
        for name, call in contenders.items():
            start = perf_counter()
            draws[name] = call()
            once[name] = perf_counter() - start
        for own in draws.values():
            check(own, exact, SITES[family])
        every = contenders | {
            "floor": leapfrogs(ours, statistics, replace(sampler, keep_warmup=True)(ours, statistics, seed=0))
        }
        slow = {name for name, seconds in once.items() if seconds > 30}
        time = once | medians({n: call for n, call in every.items() if n not in slow}, 1 if quick else 3)
        rate = {name: smallest({site: own[site] for site in SITES[family]}) / time[name] for name, own in draws.items()}
        for name in (name for name in rate if name != "ours"):
            goal = GOALS.get(name, 15.0)
            goal = goal[family] if isinstance(goal, dict) else goal
            goal = CORRELATED.get(name, goal) if condition > 1 else goal
            table.add(cell, name, rate["ours"] / rate[name], goal, time["ours"] / time["floor"])
        table.note += "".join(
            f" {name} took {once[name]:.0f} s of {family}, most of it in warm-up, and was run once."
            for name in sorted(slow)
        )
    sizes = (150, 10_000) if quick else (150, 10_000, 1_000_000)
    small, every = model("vector", 4, 3), {}
    for n in sizes:
        x, t = rows("gaussian", n, 4, 3)
        grown = small.statistics(x, t)
        every[str(n)] = lambda grown=grown: sampler(small, grown, seed=0)
    time = medians(every, 1 if quick else 5)
    for n in sizes[1:]:
        growth.add(f"vector, {n} rows", "150 rows", time["150"] / time[str(n)], 1 / 1.2)
    return [table, starts, growth]
