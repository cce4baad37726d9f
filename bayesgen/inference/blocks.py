"""The compiled half of NUTS: the start of a chain, and a block of its iterations.

NumPyro's ``MCMC.run`` traces and compiles at every call, which takes seconds where sampling takes a fraction. So its
kernel runs in blocks of `BLOCK` iterations, one jitted function of (state, model, statistics): compiled once per shape,
then called from one thread a chain, for XLA releases the interpreter lock.
"""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bayesgen import program
from bayesgen.inference.charts import approach, charted, displacement, is_dense, lowered, may_correlate
from bayesgen.inference.compiled import fresh, kept, one_kernel, over_devices, shapes, starter
from bayesgen.inference.mode import potential, sites

BLOCK = 50  # iterations between two looks at the clock: some milliseconds
_SMALL = 1 << 16  # bytes of model and statistics that one kernel is made for; of more, it is not the calls that cost
_NEARER = 20  # times that a start is moved half of the way to the origin, at most
_FEW = 5  # latent sites; of more, one kernel takes longer to compile (of 13 by 7 s) than it saves
_APART = ("custom_call", "scatter", "sort", "fft", "sharding")  # what XLA cannot put into one kernel, as known


def blocks(num_warmup, target_accept, model, statistics, shard_rows=False):
    """Return the start of a chain, from its seed, and its block of iterations, each compiled once per shape."""
    jax = program.jax
    model, statistics = fresh(model, statistics)
    statistics = over_devices(statistics) if shard_rows else statistics
    kernel, near = (num_warmup, target_accept), model.near(statistics)
    correlated = may_correlate(model, near)

    def begin(*arguments):
        return _kernel(*kernel, *arguments)[0]

    def make():
        origin, variance = start = starter(model, statistics, near)(0)
        count, dense = len(variance), is_dense(correlated, len(variance))
        chart, key = (origin, np.zeros((count, count) if dense else count)), jax.random.PRNGKey(0)
        begun = jax.jit(begin).lower(key, np.zeros(count), chart, model, statistics)
        with ThreadPoolExecutor() as threads:  # the compiler releases the interpreter lock too
            parts = [begun] if dense or near is not None else [begun, lowered(*start, model, statistics)]
            starting, *others = [threads.submit(program.compiled, part, once=True) for part in parts]
            block = _build_block(kernel, begun, chart, model, statistics)
            for other in others:
                approach(other.result, model, statistics)
            return starting.result(), block

    starting, block = kept((*kernel, *shapes(model, statistics)), make)

    def start(seed):
        chart = charted(model, statistics, near, correlated, seed + 1)
        v = np.random.default_rng(seed).standard_normal(len(chart[1]))

        def at(v):
            return starting(jax.random.PRNGKey(seed), v, chart, model, statistics)

        lowest, state = at(0 * v).potential_energy, at(v)
        for _ in range(_NEARER):  # a Gaussian is v²/2 higher; where the posterior is narrower by far, begin nearer
            if state.potential_energy - lowest <= 1 + v @ v:
                break
            v = v / 2
            state = at(v)
        return state, chart

    def advance(state):
        state, chart = state
        state, *results = block(state, chart, model, statistics)
        return (state, chart), *results

    return start, advance


def _build_block(kernel, begun, *arguments) -> Any:
    """Compile `_block`, its loop as one kernel where that is small and simple, on the CPU, and the compiler can."""
    jax = program.jax

    def built(way):
        return program.build(lambda *a: _block(kernel, way, *a), begun.out_info, *arguments)

    (origin, _), *rows = arguments
    small = sum(a.nbytes for a in jax.tree_util.tree_leaves(rows)) <= _SMALL and len(origin) <= _FEW
    if small and jax.default_backend() == "cpu" and not any(name in begun.as_text() for name in _APART):
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            return built(one_kernel)
    return built(lambda loop: loop)


def _potential(chart, model, statistics):
    origin, _ = chart
    return lambda v: potential(displacement(v, chart), origin, model, statistics)


def _kernel(num_warmup, target_accept, key, v, chart, model, statistics):
    """Return NumPyro's NUTS state at the coordinates ``v`` of a chart, and the function that moves it."""
    from numpyro.infer import hmc

    init, move = hmc.hmc(potential_fn_gen=_potential, algo="NUTS")
    state = init(
        v,
        num_warmup,
        inverse_mass_matrix=program.jnp.ones_like(v),
        regularize_mass_matrix=False,
        target_accept_prob=target_accept,
        model_args=(chart, model, statistics),
        rng_key=key,
    )
    return state, lambda state: move(state, (chart, model, statistics))


def _block(kernel: tuple[int, float], way, state, chart, model, statistics):
    """Move a chain by `BLOCK` iterations: its state, the draws of every site, the sampler's statistics, and z."""
    jax, (origin, _) = program.jax, chart

    def loop(state, chart, model, statistics):
        # The kernel keeps its schedule in the closure that a start makes; this start is otherwise unused.
        _, move = _kernel(*kernel, state.rng_key, state.z, chart, model, statistics)

        def step(state, _):
            state = move(state)
            stats = {
                "diverging": state.diverging,
                "acceptance_rate": state.accept_prob,
                "n_steps": state.num_steps,
                "step_size": state.adapt_state.step_size,
                "energy": state.energy,
                "lp": -state.potential_energy,
            }
            return state, (state.z, stats)

        return jax.lax.scan(step, state, length=BLOCK)

    def at(v):
        step = displacement(v, chart)
        z, _ = jax.flatten_util.ravel_pytree(origin)
        return sites(step, origin, model, statistics), z + step

    state, (v, stats) = way(loop)(state, chart, model, statistics)
    values, z = jax.vmap(at)(v)
    return state, values, stats, z
