"""NUTS on the sufficient statistics: a gradient costs the same for a hundred rows and for a million.

NumPyro's ``MCMC.run`` traces and compiles at every call, which takes seconds where sampling takes a fraction. So its
kernel runs in blocks of `BLOCK` iterations, one jitted function of (state, model, statistics): compiled once per shape,
then called from one thread a chain, for XLA releases the interpreter lock. Between blocks a bar moves, and an interrupt
keeps what is done. Nothing global is set: no device count, no flag, no precision.
"""

import contextlib
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from bayesgen import program
from bayesgen.inference.base import summarise
from bayesgen.inference.compiled import fresh, kept, shapes, starter
from bayesgen.posterior import Draws, distance, generator

BLOCK = 50  # iterations between two looks at the clock: some milliseconds
_SMALL = 1 << 16  # bytes of model and statistics that one kernel is made for; of more, it is not the calls that cost
_STEPS, _STEP = 200, 0.05  # of a start towards the mode: at most 5 standard deviations of the prior in all


class SamplerWarning(UserWarning):
    """Draws of a sampler that do not represent the posterior well; the message says what to do."""


@dataclass(frozen=True)
class NUTS:
    """The no-U-turn sampler of NumPyro, in float64, chains side by side.

    Of a conjugate model the draws come with their distance from the exact posterior (`Draws.distance`). Divergences, an
    R-hat above 1.01 and fewer than 100 effective draws a chain give a `SamplerWarning`. An interrupt (Ctrl-C) after the
    warm-up returns the draws so far, with a warning. With JAX's compilation cache on (the environment variable
    JAX_COMPILATION_CACHE_DIR) a later process does not compile again.

    Parameters
    ----------
    num_samples, num_warmup : int
        Draws kept, and draws spent on adaptation, per chain.
    num_chains : int
        Chains, each with its own key.
    target_accept : float
        Acceptance probability the step size is adapted to.
    progress : bool, optional
        Whether to show a bar over all draws; by default where the standard error is a terminal.
    """

    num_samples: int = 1000
    num_warmup: int = 1000
    num_chains: int = 4
    target_accept: float = 0.8
    progress: bool | None = None

    def __post_init__(self):
        for name, least in (("num_samples", 1), ("num_warmup", 0), ("num_chains", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"NUTS: {name} must be an integer >= {least}, got {value!r}")
        if not 0 < self.target_accept < 1:
            raise ValueError(f"NUTS: target_accept must lie between 0 and 1, got {self.target_accept!r}")

    def __call__(self, model, data, *, seed=None) -> Draws:
        """Return `Draws` of (chains, draws); the same seed gives the same draws, bit for bit, on one machine."""
        statistics = summarise(model, data)
        seeds = generator(seed).integers(2**31, size=self.num_chains)
        total, stop = self.num_warmup + self.num_samples, threading.Event()
        with _bar(self.progress, self.num_chains * total) as advance:
            with program.x64():
                begin, block = _compiled(self, model, statistics)

            def chain(seed):
                tree_map, blocks = program.jax.tree_util.tree_map, []
                with program.x64():  # of this thread alone
                    state = begin(seed)
                    for done in range(0, total, BLOCK):
                        if stop.is_set():
                            break
                        state, *results = block(state)
                        if done + BLOCK > self.num_warmup:
                            blocks.append(tree_map(np.asarray, results))
                        advance(min(BLOCK, total - done))
                if not blocks:
                    return None
                skip = self.num_warmup % BLOCK
                own = slice(skip, skip + self.num_samples)
                return tree_map(lambda *parts: np.concatenate(parts)[own], *blocks)

            with ThreadPoolExecutor(min(self.num_chains, os.cpu_count() or 1)) as threads:
                runs = [threads.submit(chain, seed) for seed in seeds]
                try:
                    chains = [run.result() for run in runs]
                except BaseException as error:
                    stop.set()
                    if not isinstance(error, KeyboardInterrupt):
                        raise
                    chains = [run.result() for run in runs]
                    if any(c is None for c in chains):
                        raise
        sites, stats, z = _stack(chains)
        count = len(z[0])
        if count < self.num_samples:
            _warn(f"interrupted: {count} of {self.num_samples} draws a chain are kept")
        for problem in _problems(self, stats, z):
            _warn(problem)
        return Draws(model, sites, stats, _distance(model, statistics, sites))


def _distance(model, statistics, sites) -> dict[str, float]:
    """How far the draws are from the exact posterior, where there is one; see `Draws`."""
    if not getattr(model, "conjugate", False):
        return {}
    try:
        exact = model.update(statistics)
    except ValueError:  # gaps under a full covariance
        return {}
    return distance(sites, exact.draw(np.random.default_rng(0), (1, 4000)))


def _stack(chains):
    """Stack the results of chains, cut to the shortest, which an interrupt leaves."""
    least = min(len(z) for *_, z in chains)
    return program.jax.tree_util.tree_map(lambda *parts: np.stack([p[:least] for p in parts]), *chains)


def _warn(problem):
    warnings.warn(f"NUTS: {problem}", SamplerWarning, stacklevel=4)


def _problems(settings: NUTS, stats, z):
    """Yield what is wrong with draws, judged by the unconstrained latents ``z`` (chains, draws, latents)."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    diverging, chains, count = int(stats["diverging"].sum()), *z.shape[:2]
    if diverging:
        yield (
            f"{diverging} of {chains * count} draws diverged: a corner of the posterior is left out; raise "
            f"target_accept (now {settings.target_accept:g}) towards 1, or give priors that keep out of it"
        )
    if count >= 4 and z.shape[2]:
        with np.errstate(invalid="ignore", divide="ignore"):
            rhat, effective = np.nanmax(split_gelman_rubin(z)), np.nanmin(effective_sample_size(z))
        longer = f"raise num_warmup (now {settings.num_warmup}) and num_samples (now {settings.num_samples})"
        if rhat > 1.01:
            yield f"R-hat is {rhat:.3f}, above 1.01: the chains have not met; {longer}"
        elif effective < 100 * chains:
            yield f"{effective:.0f} effective draws, fewer than 100 a chain: averages are rough; {longer}"


@contextlib.contextmanager
def _bar(shown: bool | None, total: int):
    """Show a bar on the standard error; gives the function that moves it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, force_terminal=shown)  # asked for, it shows in a pipe too
    if not console.is_terminal:  # a disabled bar still prints a line
        yield lambda steps: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("NUTS", total=total)
        yield lambda steps: bar.advance(task, steps)


def _compiled(settings: NUTS, model, statistics):
    """Return the start of a chain, from its seed, and its block of iterations, each compiled once per shape."""
    jax = program.jax
    model, statistics = fresh(model, statistics)
    first, kernel = starter(model, statistics), (settings.num_warmup, settings.target_accept)

    def begin(key, z, variance, *arguments):
        return _kernel(*kernel, key, *_approach(key, z, variance, *arguments), *arguments)[0]

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


def _build_block(kernel, begun, *arguments):
    """Compile `_block`, its loop as one kernel where that is small, on the CPU, and the compiler can."""
    jax = program.jax

    def built(way):
        return program.build(lambda *a: _block(*kernel, way, *a), begun.out_info, *arguments)

    size = sum(a.nbytes for a in jax.tree_util.tree_leaves(arguments))
    if jax.default_backend() == "cpu" and size <= _SMALL and "custom_call" not in begun.as_text():
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            return built(program.one_kernel)
    return built(lambda loop: loop)


def _potential(model, statistics):
    from numpyro.infer.util import potential_energy

    return lambda z: potential_energy(model.story, (statistics,), {}, z)


def _approach(key, z, variance, model, statistics):
    """Move a start towards the mode: a draw from the Laplace approximation there, and its variance by latent.

    Warm-up then works where the posterior is, at its scale. From the prior, which may be hundreds of times wider, a
    discriminant of 132 latents and 10,000 rows took 33,000 leapfrog steps in its first 150 iterations, of 58,000 in
    2000; from here 1,700. Adam in units of the prior goes not far, so a density without a mode does not carry it away;
    of the curvature the diagonal is enough, which warm-up refines.
    """
    from numpyro.optim import Adam

    jax, jnp, potential = program.jax, program.jnp, _potential(model, statistics)
    origin, unravel = jax.flatten_util.ravel_pytree(z)
    sd = jnp.sqrt(variance)

    def energy(u):
        return potential(unravel(origin + sd * u))

    def climb(state, _):
        return adam.eval_and_stable_update(lambda u: (energy(u), None), state)[1], None

    def slope(axis, step):
        return jax.grad(energy)(u.at[axis].add(step))[axis]

    adam = Adam(lambda i: _STEP / 2 * (1 + jnp.cos(jnp.pi * i / _STEPS)))
    u = adam.get_params(jax.lax.scan(climb, adam.init(jnp.zeros_like(origin)), length=_STEPS)[0])
    axes, h = jnp.arange(len(u)), jnp.array([[1e-4], [-1e-4]])
    ends = jax.lax.map(lambda end: slope(*end), tuple(a.ravel() for a in jnp.broadcast_arrays(axes, h)))
    curvature = (ends[: len(u)] - ends[len(u) :]) / 2e-4
    curvature = jnp.where((curvature > 1) & (curvature < jnp.inf), curvature, 1.0)  # never wider than the prior
    u = u + jax.random.normal(key, u.shape) / jnp.sqrt(curvature)
    return unravel(origin + sd * u), variance / curvature


def _kernel(num_warmup, target_accept, key, z, variance, model, statistics):
    """Return NumPyro's NUTS state at the unconstrained point ``z``, and the function that moves it."""
    from numpyro import infer

    init, move = infer.hmc.hmc(potential_fn_gen=_potential, algo="NUTS")
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


def _block(num_warmup, target_accept, way, state, model, statistics):
    """Move a chain by `BLOCK` iterations: its state, the draws of every site, the sampler's statistics, and z."""
    from numpyro import infer

    jax = program.jax

    def loop(state, model, statistics):
        # The kernel keeps its schedule in the closure that a start makes; this start is otherwise unused.
        variance = state.adapt_state.inverse_mass_matrix
        _, move = _kernel(num_warmup, target_accept, state.rng_key, state.z, variance, model, statistics)

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
        return infer.util.constrain_fn(model.story, (statistics,), {}, z, return_deterministic=True)

    state, (z, stats) = way(loop)(state, model, statistics)
    return state, jax.vmap(constrain)(z), stats, jax.vmap(lambda z: jax.flatten_util.ravel_pytree(z)[0])(z)
