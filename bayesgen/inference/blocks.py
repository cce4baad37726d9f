"""The compiled half of NUTS: where a chain starts, and a block of its iterations.

NumPyro's ``MCMC.run`` traces and compiles at every call, which takes seconds where sampling takes a fraction. So its
kernel runs in blocks of `BLOCK` iterations, one jitted function of (state, model, statistics): compiled once per shape,
then called from one thread a chain, for XLA releases the interpreter lock.
"""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bayesgen import program
from bayesgen.inference.compiled import fresh, kept, one_kernel, shapes, starter

BLOCK = 50  # iterations between two looks at the clock: some milliseconds
_SMALL = 1 << 16  # bytes of model and statistics that one kernel is made for; of more, it is not the calls that cost
_FEW = 5  # latent sites; of more, one kernel takes longer to compile (of 13 by 7 s) than it saves
_APART = ("custom_call", "scatter", "sort", "fft")  # what XLA cannot put into one kernel, as far as is known
_STEPS, _STEP = 200, 0.05  # of a start towards the mode: at most 5 standard deviations of the prior in all


def blocks(num_warmup, target_accept, model, statistics):
    """Return the start of a chain, from its seed, and its block of iterations, each compiled once per shape."""
    jax = program.jax
    model, statistics = fresh(model, statistics)
    first, kernel = starter(model, statistics), (num_warmup, target_accept)

    def begin(key, z, variance, *arguments):
        own, key = jax.random.split(key)
        return _kernel(*kernel, key, *_approach(own, z, variance, *arguments), *arguments)[0]

    def make():
        begun = jax.jit(begin).lower(jax.random.PRNGKey(0), *first(0), model, statistics)
        with ThreadPoolExecutor() as threads:  # the compiler releases the interpreter lock too
            starting = threads.submit(program.compiled, begun, once=True)
            block = _build_block(kernel, begun, model, statistics)
            return starting.result(), block

    starting, block = kept((*kernel, *shapes(model, statistics)), make)
    return (
        lambda seed: starting(jax.random.PRNGKey(seed), *first(seed + 1), model, statistics),
        lambda state: block(state, model, statistics),
    )


def _build_block(kernel, begun, *arguments) -> Any:
    """Compile `_block`, its loop as one kernel where that is small and simple, on the CPU, and the compiler can."""
    jax = program.jax

    def built(way):
        return program.build(lambda *a: _block(kernel, way, *a), begun.out_info, *arguments)

    small = sum(a.nbytes for a in jax.tree_util.tree_leaves(arguments)) <= _SMALL and len(begun.out_info.z) <= _FEW
    if small and jax.default_backend() == "cpu" and not any(name in begun.as_text() for name in _APART):
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            return built(one_kernel)
    return built(lambda loop: loop)


def _potential(model, statistics):
    from numpyro.infer.util import potential_energy

    return lambda z: potential_energy(model.statistics_program, (statistics,), {}, z)


def _approach(key, z, variance, model, statistics):
    """Move a start towards the mode: a draw from the Laplace approximation there, and its variance by latent.

    Warm-up then works where the posterior is, at its scale. From the prior, which may be hundreds of times wider, a
    discriminant of 132 latents and 10,000 rows took 33,000 leapfrog steps in its first 150 iterations, of 58,000 in
    2000; from here 1,700. Adam, in units of the prior, does not go far, so a density without a mode does not carry it
    away. Of the curvature the diagonal is enough, which warm-up refines.
    """
    from numpyro.optim import Adam

    jax, jnp, potential = program.jax, program.jnp, _potential(model, statistics)
    origin, unravel = jax.flatten_util.ravel_pytree(z)
    sd = jnp.sqrt(variance)

    def energy(u):
        return potential(unravel(origin + sd * u))

    def climb(state, _):
        return adam.eval_and_stable_update(lambda u: (energy(u), None), state)[1], None

    def slope(end):
        axis, step = end
        along = axes == axis
        return jnp.vdot(jax.grad(energy)(u + step * along), along)

    adam = Adam(lambda i: _STEP / 2 * (1 + jnp.cos(jnp.pi * i / _STEPS)))
    u = adam.get_params(jax.lax.scan(climb, adam.init(jnp.zeros_like(origin)), length=_STEPS)[0])
    axes, h = jnp.arange(len(u)), jnp.array([[1e-4], [-1e-4]])
    ends = jax.lax.map(slope, tuple(a.ravel() for a in jnp.broadcast_arrays(axes, h)))
    curvature = (ends[: len(u)] - ends[len(u) :]) / 2e-4
    curvature = jnp.where((curvature > 1) & (curvature < jnp.inf), curvature, 1.0)  # never wider than the prior
    u = u + jax.random.normal(key, u.shape) / jnp.sqrt(curvature)
    return unravel(origin + sd * u), variance / curvature


def _kernel(num_warmup, target_accept, key, z, variance, model, statistics):
    """Return NumPyro's NUTS state at the unconstrained point ``z``, and the function that moves it."""
    from numpyro.infer import hmc

    init, move = hmc.hmc(potential_fn_gen=_potential, algo="NUTS")
    state = init(
        z,
        num_warmup,
        inverse_mass_matrix=variance,
        regularize_mass_matrix=False,
        target_accept_prob=target_accept,
        model_args=(model, statistics),
        rng_key=key,
    )
    return state, lambda state: move(state, (model, statistics))


def _block(kernel: tuple[int, float], way, state, model, statistics):
    """Move a chain by `BLOCK` iterations: its state, the draws of every site, the sampler's statistics, and z."""
    from numpyro.infer.util import constrain_fn

    jax = program.jax

    def loop(state, model, statistics):
        # The kernel keeps its schedule in the closure that a start makes; this start is otherwise unused.
        variance = state.adapt_state.inverse_mass_matrix
        _, move = _kernel(*kernel, state.rng_key, state.z, variance, model, statistics)

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

    def constrain(z):
        return constrain_fn(model.statistics_program, (statistics,), {}, z, return_deterministic=True)

    state, (z, stats) = way(loop)(state, model, statistics)
    return state, jax.vmap(constrain)(z), stats, jax.vmap(lambda z: jax.flatten_util.ravel_pytree(z)[0])(z)
