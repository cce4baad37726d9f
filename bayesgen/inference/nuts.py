"""NUTS on the sufficient statistics, so that a gradient costs the same for a hundred rows and for a million.

NumPyro's ``MCMC.run`` traces and compiles at every call, which takes seconds where sampling takes a fraction. So its
kernel runs in blocks of `BLOCK` iterations, one jitted function of (state, model, statistics), compiled once per shape.
Between blocks a bar moves, and an interrupt keeps the blocks that are done. Nothing global is set: no device count, no
flag, no precision.

On the CPU chains run side by side, one thread each, for XLA releases the interpreter lock. On an accelerator one
program moves them all, on a leading axis (`jax.vmap`): model and statistics stay on the device, rows that a model keeps
are read once for all chains, and only the draws come back, once a block. There every draw takes as many leapfrog steps
as the longest tree among the chains, for a chain whose tree has ended waits for the others. On two cores threads are up
to twice as fast (logistic regression on 2000 rows). Arithmetic is float64 on every device, though most are slower at
it: the energies of 1e5 rows are near 1e5, where float32 has steps of .008 and its sums err by more.
"""

import contextlib
import functools
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import warn
from bayesgen.core.registry import saveable
from bayesgen.core.statistics import Rows
from bayesgen.inference.base import SamplerWarning, distance_from_exact, exact_posterior, register, require_proper
from bayesgen.inference.charts import approach, charted, displacement, is_dense, lowered
from bayesgen.inference.point import potential, sites
from bayesgen.inference.whitening import whitened
from bayesgen.models.function import Arguments, FunctionModel
from bayesgen.models.model import Model, summarise
from bayesgen.numerics.checks import check_count, check_level
from bayesgen.numerics.draws import generator
from bayesgen.posterior.compiled import fresh, kept, on_accelerator, one_kernel, shapes, starter
from bayesgen.posterior.posterior import ParameterDraws

BLOCK = 50  # iterations between two looks at the clock: some milliseconds
_SMALL = 1 << 16  # bytes of model and statistics that one kernel is made for; of more, it is not the calls that cost
_NEARER = 20  # times that a start is moved half of the way to the origin, at most
_FEW_SITES = 5  # latent sites; of more, one kernel takes longer to compile (of 13 by 7 s) than it saves
_APART = ("custom_call", "scatter", "sort", "fft")  # operations that XLA cannot put into one kernel
_FEW = 50  # draws; so many are all rejected only where the density is wrong, even after a short warm-up


def blocks(num_warmup, target_accept, model, statistics, chains=None):
    """Return the start of chains, from their seeds, and their block of iterations, each compiled once per shape.

    So many ``chains`` have one state and one program, with a leading axis in state and results; None is a single chain
    without that axis.
    """
    jax = program.jax
    model, statistics = fresh(model, statistics)
    kernel, near = (num_warmup, target_accept), model.start_from(statistics)
    if chains and isinstance(statistics, Rows | Arguments):  # others stay on the host, where starts are drawn from them
        statistics = jax.device_put(statistics)
    arguments = jax.device_put((model, statistics)) if chains else (model, statistics)

    def begin(seed, v, *arguments):
        return _kernel(*kernel, jax.random.PRNGKey(seed), (v, None, None), *arguments)[0]

    def make():
        origin, variance = start = starter(model, statistics, near)(0)
        count, dense = len(variance), is_dense(model, near, len(variance))
        chart = origin, np.zeros((count, count) if dense else count)
        begun = jax.jit(begin).lower(np.int64(0), np.zeros(count), chart, *arguments)
        with ThreadPoolExecutor() as threads:  # the compiler releases the interpreter lock too
            parts = [begun] if dense or near is not None else [begun, lowered(*start, model, statistics)]
            starting, *others = [threads.submit(program.compiled, piece, once=True) for piece in parts]
            block = _build_block(kernel, chains, begun, chart, *arguments)
            for other in others:
                approach(other.result, model, statistics)
            return starting.result(), block

    starting, block = kept((*kernel, chains, *shapes(*arguments)), make)

    def start_one(seed):
        chart = charted(model, statistics, near, seed + 1)
        v = np.random.default_rng(seed).standard_normal(len(chart[1]))

        def at(v):
            return starting(np.int64(seed), v, chart, *arguments)

        lowest, state = at(0 * v).potential_energy, at(v)
        for _ in range(_NEARER):  # a Gaussian is v²/2 higher; where the posterior is narrower by far, begin nearer
            if state.potential_energy - lowest <= 1 + v @ v:
                break
            v = v / 2
            state = at(v)
        return state, chart

    def start(seeds):
        starts = [start_one(seed) for seed in seeds]
        return jax.tree_util.tree_map(lambda *parts: program.jnp.stack(parts), *starts) if chains else starts[0]

    def advance(state):
        state, chart = state
        state, *results = block(state, chart, *arguments)
        return (jax.block_until_ready(state), chart), results

    return start, advance


def _build_block(kernel, chains, begun, chart, *rows) -> Any:
    """Compile `_block`, its loop as one kernel where that is small and simple, on the CPU, and the compiler can."""
    jax, state, (origin, _) = program.jax, begun.out_info, chart
    plain = functools.partial(_block, kernel, lambda loop: loop)
    if chains:
        every = jax.tree_util.tree_map(lambda a: jax.ShapeDtypeStruct((chains, *a.shape), a.dtype), (state, chart))
        return program.build(jax.vmap(plain, (0, 0, None, None)), *every, *rows)
    small = sum(a.nbytes for a in jax.tree_util.tree_leaves(rows)) <= _SMALL and len(origin) <= _FEW_SITES
    if small and not on_accelerator() and not any(name in begun.as_text() for name in _APART):
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            return program.build(functools.partial(_block, kernel, one_kernel), state, chart, *rows)
    return program.build(plain, state, chart, *rows)


def _potential(chart, model, statistics):
    origin, _ = chart
    return lambda v: potential(displacement(v, chart), origin, model, statistics)


def _kernel(num_warmup, target_accept, key, place, chart, model, statistics):
    """Return NUTS's state at a ``place``, v with potential and gradient or None, and the function that moves it."""
    from numpyro.infer import hmc
    from numpyro.infer.util import ParamInfo

    init, move = hmc.hmc(potential_fn_gen=_potential, algo="NUTS")
    state = init(
        ParamInfo(*place),
        num_warmup,
        inverse_mass_matrix=program.jnp.ones_like(place[0]),
        regularize_mass_matrix=False,
        target_accept_prob=target_accept,
        model_args=(chart, model, statistics),
        rng_key=key,
    )
    return state, lambda state: move(state, (chart, model, statistics))


def _block(kernel: tuple[int, float], way, state, chart, model, statistics):
    """Move a chain by `BLOCK` iterations; return its state, draws of every site, the sampler's statistics, and z."""
    jax, (origin, _) = program.jax, chart

    def loop(state, chart, model, statistics):
        # The kernel keeps its schedule in the closure that a start makes; this start is otherwise unused.
        place = state.z, state.potential_energy, state.z_grad
        _, move = _kernel(*kernel, state.rng_key, place, chart, model, statistics)

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


@saveable
@register("nuts")
@dataclass(frozen=True)
class NUTS:
    """The no-U-turn sampler of NumPyro, in float64, chains side by side; on an accelerator, where JAX sees one.

    A chain of a conjugate model starts at draws of its exact posterior, others near the mode, at the scale of the
    posterior there; warm-up adapts that scale by latent. Conjugate leaves are sampled in logarithms of their gammas,
    where vague priors do not under- or overflow; a posterior with a gamma shape below .02 is refused by name.
    Correlation costs no more steps: where there is no exact posterior, as for rows with gaps, up to 200 latents move in
    coordinates given by the curvature at the mode; full covariances under a normal-inverse-Wishart prior are sampled
    for rows mapped to no correlation, and mapped back (`bayesgen.inference.whitening`). Draws of a conjugate model come
    with their distance from the exact posterior (`ParameterDraws.distance`).
    Divergences, an R-hat above 1.01 and fewer than 100 effective draws a chain give a `SamplerWarning`. An interrupt
    (Ctrl-C) after the warm-up returns the draws so far, with a warning. The first fit of a shape compiles for some
    seconds; after `bayesgen.inference.cache_compilation` a later process need not.

    Parameters
    ----------
    num_samples, num_warmup : int
        Draws kept, and draws spent on adaptation, per chain.
    num_chains : int
        Chains, each with its own key.
    target_accept : float
        Acceptance probability the step size is adapted to.
    progress : bool, optional
        If True, show a bar over all draws; by default where the standard error is a terminal.
    keep_warmup : bool, default False
        If True, keep the draws of the warm-up too; ArviZ then has them as "warmup_posterior".
    """

    num_samples: int = 1000
    num_warmup: int = 1000
    num_chains: int = 4
    target_accept: float = 0.8
    progress: bool | None = None
    keep_warmup: bool = False

    def __post_init__(self):
        for name, least in (("num_samples", 1), ("num_warmup", 0), ("num_chains", 1)):
            check_count(f"NUTS: {name}", getattr(self, name), least)
        check_level("NUTS: target_accept", self.target_accept)

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> ParameterDraws:
        """Return draws (chains, draws, ...); the same seed gives the same draws, bit for bit, on one machine."""
        require_proper(model, "NUTS")
        statistics, begun = summarise(model, data), time.perf_counter()
        seeds = generator(seed).integers(2**31, size=self.num_chains)
        total, stop, tree_map = self.num_warmup + self.num_samples, threading.Event(), program.jax.tree_util.tree_map
        with _bar(self.progress, self.num_chains * total) as advance:
            with program.x64():
                sampled, sums, restore = whitened(model, statistics)
                together = on_accelerator()
                chains = self.num_chains if together else None
                begin, block = blocks(self.num_warmup, self.target_accept, sampled, sums, chains)

            def moved(seeds) -> Any:
                blocks = []
                with program.x64():  # of this thread alone
                    state = begin(seeds)
                    for done in range(0, total, BLOCK):
                        if stop.is_set():
                            break
                        state, results = block(state)
                        if self.keep_warmup or done + BLOCK > self.num_warmup:
                            blocks.append(tree_map(np.asarray, results))
                        advance(len(seeds) * min(BLOCK, total - done))
                skip = self.num_warmup if self.keep_warmup else self.num_warmup % BLOCK
                if len(blocks) * BLOCK <= skip:
                    return None
                kept = slice(0 if self.keep_warmup else skip, skip + self.num_samples)
                if not together:
                    blocks = tree_map(lambda v: v[None], blocks)
                return tree_map(lambda *parts: np.concatenate(parts, axis=1)[:, kept], *blocks)

            with ThreadPoolExecutor(min(self.num_chains, os.cpu_count() or 1)) as threads:
                runs = [threads.submit(moved, key) for key in ([seeds] if together else seeds[:, None])]
                try:
                    parts = [run.result() for run in runs]
                except BaseException as error:
                    stop.set()
                    if not isinstance(error, KeyboardInterrupt):
                        raise
                    parts = [run.result() for run in runs]
                    if any(values is None for values in parts):
                        raise
        run = {"sampling_time": time.perf_counter() - begun, "tuning_steps": self.num_warmup}
        least, warmup = min(z.shape[1] for *_, z in parts), None  # an interrupt leaves chains of unlike lengths
        sites, stats, z = tree_map(lambda *chains: np.concatenate([v[:, :least] for v in chains]), *parts)
        sites = restore(sites)
        _require_draws(model, statistics, sites, stats, z)
        if self.keep_warmup:
            early, late = slice(self.num_warmup), slice(self.num_warmup, None)
            before, told = ({k: v[:, early] for k, v in values.items()} for values in (sites, stats))
            warmup = ParameterDraws(model, before, told) if self.num_warmup else None
            sites, stats, z = tree_map(lambda v: v[:, late], (sites, stats, z))
        for problem in _problems(self, stats, z):
            warn(f"NUTS: {problem}", SamplerWarning)
        return ParameterDraws(model, sites, stats, distance_from_exact(model, statistics, sites), run, warmup)


def _require_draws(model, statistics, sites, stats, z) -> None:
    """Raise where draws are not finite, or a chain never moved."""
    exact = exact_posterior(model, statistics) is not None
    advice = "use 'exact'" if exact else "give priors that keep to what float64 can hold, or scale the data"
    parts = {"their log density": stats["lp"], "their coordinates": z}
    if not isinstance(model, FunctionModel):  # whose deterministic sites may be anything
        parts |= {f"site {name!r}": values for name, values in sites.items()}
    for name, values in parts.items():
        if not np.isfinite(values).all():
            raise ValueError(f"NUTS: draws are not finite ({name}); {advice}")
    still = _still(z)
    if z.shape[1] >= _FEW and still.any():
        raise ValueError(
            f"NUTS: {still.sum()} of {len(z)} chains never moved: where they began the density is not finite, or as "
            f"good as 0 next to it; {advice}"
        )


def _still(z):
    """Return True for each chain whose latents ``z`` (chains, draws, latents) never moved, if there are any latents."""
    return (z == z[:, :1]).all((1, 2)) & (z.shape[2] > 0)


def _problems(settings: NUTS, stats, z):
    """Yield each problem of the draws, judged by the unconstrained latents ``z`` (chains, draws, latents)."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    diverging, chains, count = int(stats["diverging"].sum()), *z.shape[:2]
    if count < settings.num_samples:
        yield f"interrupted: {count} of {settings.num_samples} draws a chain are kept"
    if diverging:
        yield (
            f"{diverging} of {chains * count} draws diverged: a corner of the posterior is left out; raise "
            f"target_accept (now {settings.target_accept:g}) towards 1, or give priors that keep out of it"
        )
    longer = f"raise num_warmup (now {settings.num_warmup}) and num_samples (now {settings.num_samples})"
    if count >= 4 and (still := _still(z)).any():  # such a chain has no R-hat
        yield f"{still.sum()} of {chains} chains did not move in {count} draws: the warm-up was too short; {longer}"
    elif count >= 4 and z.shape[2]:
        with np.errstate(invalid="ignore", divide="ignore"):
            rhat, effective = np.nanmax(split_gelman_rubin(z)), np.nanmin(effective_sample_size(z))
        if rhat > 1.02:
            yield f"R-hat is {rhat:.3f}, far above 1.01: the chains have not met; {longer}"
        elif rhat > 1.01:  # as the noise of some hundred draws can make it
            few = "a little above 1.01: the draws are too few to tell that the chains agree"
            yield f"R-hat is {rhat:.3f}, {few}; raise num_samples (now {settings.num_samples})"
        elif effective < 100 * chains:
            yield f"{effective:.0f} effective draws, fewer than 100 a chain: averages are rough; {longer}"


@contextlib.contextmanager
def _bar(shown: bool | None, total: int):
    """Show a bar on the standard error; yield the function that moves it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, force_terminal=shown)  # asked for, it shows in a pipe too
    if not console.is_terminal:  # a disabled bar still prints a line
        yield lambda steps: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("NUTS", total=total)
        yield lambda steps: bar.advance(task, steps)
