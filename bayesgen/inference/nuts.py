"""NUTS on the sufficient statistics: a gradient costs the same for a hundred rows and for a million.

NumPyro's ``MCMC.run`` traces and compiles at every call, which takes seconds where sampling takes a fraction. So the
whole run of one chain is one jitted function of (key, model, statistics): compiled once per shape, then called from one
thread a chain, for XLA releases the interpreter lock. Nothing global is set: no device count, no flag, no precision.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from bayesgen import program
from bayesgen.inference.base import summarise
from bayesgen.posterior import Draws, generator

_STATS = {  # NumPyro's name -> ArviZ's
    "diverging": "diverging",
    "accept_prob": "acceptance_rate",
    "num_steps": "n_steps",
    "energy": "energy",
    "potential_energy": "lp",
}


@dataclass(frozen=True)
class NUTS:
    """The no-U-turn sampler of NumPyro, in float64, chains side by side.

    Parameters
    ----------
    num_samples, num_warmup : int
        Draws kept, and draws spent on adaptation, per chain.
    num_chains : int
        Chains, each with its own key.
    target_accept : float
        Acceptance probability the step size is adapted to.
    """

    num_samples: int = 1000
    num_warmup: int = 1000
    num_chains: int = 4
    target_accept: float = 0.8

    def __post_init__(self):
        for name, least in (("num_samples", 1), ("num_warmup", 0), ("num_chains", 1)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"NUTS: {name} must be an integer >= {least}, got {value!r}")
        if not 0 < self.target_accept < 1:
            raise ValueError(f"NUTS: target_accept must lie between 0 and 1, got {self.target_accept!r}")

    def __call__(self, model, data, *, seed=None) -> Draws:
        """Return `Draws` of (chains, draws); the same seed gives the same draws, bit for bit, on one machine."""
        statistics = summarise(model, data)
        seeds = generator(seed).integers(2**31, size=self.num_chains)
        with program.x64():
            run = _compiled(self, model, statistics)
        with ThreadPoolExecutor(min(self.num_chains, os.cpu_count() or 1)) as threads:
            chains = list(threads.map(run, seeds))
        sites, stats = ({name: np.stack([c[i][name] for c in chains]) for name in chains[0][i]} for i in (0, 1))
        stats = {_STATS[name]: value for name, value in stats.items()}
        return Draws(model, sites, stats | {"lp": -stats["lp"]})


_lock = threading.Lock()
_programs: dict = {}


def _compiled(settings: NUTS, model, statistics):
    """Return the run of one chain from its seed, compiled once per shape; chains are not to compile it twice."""
    jax = program.jax
    key = jax.random.PRNGKey(0)
    # Copies: JAX remembers the conversion of a read-only array, and a user's float32 program may have asked for one.
    model, statistics = jax.tree_util.tree_map(np.array, (model, statistics))
    leaves, structure = jax.tree_util.tree_flatten((model, statistics))
    shapes = tuple((np.shape(a), np.asarray(a).dtype.str) for a in leaves)
    kind = (settings.num_warmup, settings.num_samples, settings.target_accept, structure, shapes)
    with _lock:
        if kind not in _programs:
            # The start is cheap to run and dear to optimise: samplers of every prior, used once.
            cheap = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
            begin = jax.jit(start, compiler_options=cheap).lower(key, model, statistics).compile()
            chain = jax.jit(_chain, static_argnums=0)
            chain = chain.lower(settings, key, *begin(key, model, statistics), model, statistics).compile()
            _programs[kind] = begin, chain
        begin, chain = _programs[kind]

    def run(seed):
        with program.x64():  # of this thread alone
            first, second = jax.random.split(jax.random.PRNGKey(seed))
            result = chain(second, *begin(first, model, statistics), model, statistics)
            return jax.tree_util.tree_map(np.asarray, result)

    return run


def _chain(settings: NUTS, key, z, scale, model, statistics):
    """Run one chain from the unconstrained point ``z``; returns draws and sampler statistics."""
    from numpyro import infer

    kernel = infer.NUTS(
        potential_fn=lambda z: infer.util.potential_energy(model.story, (statistics,), {}, z),
        inverse_mass_matrix=scale,
        regularize_mass_matrix=False,
        target_accept_prob=settings.target_accept,
    )
    mcmc = infer.MCMC(kernel, num_warmup=settings.num_warmup, num_samples=settings.num_samples, progress_bar=False)
    mcmc.run(key, init_params=z, extra_fields=tuple(_STATS))

    def constrain(z):
        return infer.util.constrain_fn(model.story, (statistics,), {}, z, return_deterministic=True)

    return program.jax.vmap(constrain)(mcmc.get_samples()), mcmc.get_extra_fields()


def start(key, model, statistics, draws=100):
    """Where a chain starts, and the squared spread of every unconstrained latent, both from draws of the prior.

    Adaptation starts from these spreads instead of 1, and is not shrunk towards a fixed 1e-3, so that the units of a
    column do not matter: with spreads of 1e-3 and 1e2 side by side a draw costs 124 leapfrog steps without, 7 with.
    """
    from numpyro import handlers, infer

    jax, jnp = program.jax, program.jnp

    def unconstrained(key):
        trace = handlers.trace(handlers.seed(model.story, key)).get_trace(statistics)
        sites = {name: s for name, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
        return {name: infer.util.biject_to(s["fn"].support).inv(s["value"]) for name, s in sites.items()}

    values = jax.vmap(unconstrained)(jax.random.split(key, draws))
    ravel = jax.flatten_util.ravel_pytree
    flat = jax.vmap(lambda z: ravel(z)[0])(values)
    _, unravel = ravel(jax.tree_util.tree_map(lambda v: v[0], values))
    low, high = jnp.quantile(flat, jnp.array([0.25, 0.75]), axis=0)  # robust: a prior may have no variance
    return unravel(jnp.median(flat[:15], axis=0)), ((high - low) / 1.35) ** 2
