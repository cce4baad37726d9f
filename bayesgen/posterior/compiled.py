"""Tools of sampler and optimiser: programs compiled once per shape, and a start at the scale of draws."""

from collections import OrderedDict
from pathlib import Path

import numpy as np

from bayesgen.core import program
from bayesgen.models.function import statistics_program

_DRAWS = 100  # draws that give a start and a first scale
_BUDGET = 256 << 20  # bytes of compiled programs
# bytes that a character of a program's text takes in memory, of which JAX tells nothing: right to a fifth for samplers,
# of 20 to 40 MB a model
_BYTES = 20

_programs: OrderedDict = OrderedDict()  # what was made, and its bytes, the latest used last


def kept(kind, make):
    """Return ``make()``, kept under ``kind`` for the next call; two threads do not make it twice.

    Of the compiled programs that are kept, the ones that were not used for longest are dropped where all together take
    more memory than `_BUDGET`; the last one stays.
    """
    with program.tracing:
        if kind not in _programs:
            made = make()
            parts = made if isinstance(made, tuple) else (made,)
            _programs[kind] = made, _BYTES * sum(len(compiled.as_text() or "") for compiled in parts)
            while len(_programs) > 1 and sum(size for _, size in _programs.values()) > _BUDGET:
                _programs.popitem(last=False)
        _programs.move_to_end(kind)
        return _programs[kind][0]


def shapes(*trees) -> tuple:
    """Return the key of a compiled program: structure, shapes, types and devices of its arguments."""
    leaves, structure = program.jax.tree_util.tree_flatten(trees)
    arrays = [a if hasattr(a, "dtype") else np.asarray(a) for a in leaves]
    return structure, tuple((a.shape, a.dtype.str, getattr(a, "sharding", None)) for a in arrays)


def fresh(*trees):
    """Copy arrays: JAX remembers how a read-only one was converted, perhaps by a user's float32 program."""
    return program.jax.tree_util.tree_map(np.array, trees)


def on_accelerator() -> bool:
    """Return True where JAX's default device is no CPU: it takes many densities at a time, or stands idle."""
    return program.jax.default_backend() != "cpu"


def starter(model, statistics, near=None):
    """Return the function from a seed to the start of a chain, and the squared spread of each unconstrained latent.

    Both come from draws of the prior, or of a model ``near``. NumPy draws them exactly where the model can: to compile
    NumPyro's gamma samplers takes as long as to compile NUTS. Adaptation starts from these spreads instead of 1, and is
    not shrunk towards a fixed 1e-3, so the units of a column do not matter: with spreads of 1e-3 and 1e2 side by side a
    draw costs 124 leapfrog steps without, 7 with.
    """

    def values(seed):
        rng, size = np.random.default_rng(seed), (_DRAWS,)
        return dict(model.starting_draws(statistics, rng, size) if near is None else near.sample_parameters(rng, size))

    def make():
        return program.build(_start, np.int64(0), values(0), model, statistics, once=True)

    run = kept(("start", *shapes(model, statistics)), make)
    return lambda seed: run(np.int64(seed), values(seed), model, statistics)


def _start(seed, values, model, statistics):
    from numpyro import handlers
    from numpyro.infer.util import biject_to

    jax, jnp = program.jax, program.jnp

    def unconstrained(key, values):
        run = handlers.substitute(handlers.seed(statistics_program, key), values)
        trace = handlers.trace(run).get_trace(model, statistics)
        sites = {name: s for name, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
        return {name: biject_to(s["fn"].support).inv(s["value"]) for name, s in sites.items()}

    z = jax.vmap(unconstrained)(jax.random.split(jax.random.PRNGKey(seed), _DRAWS), values)
    ravel = jax.flatten_util.ravel_pytree
    flat = jax.vmap(lambda z: ravel(z)[0])(z)
    _, unravel = ravel(jax.tree_util.tree_map(lambda v: v[0], z))
    low, high = jnp.quantile(flat, jnp.array([0.25, 0.75]), axis=0)  # robust: a prior may have no variance
    return unravel(jnp.median(flat[:15], axis=0)), ((high - low) / 1.35) ** 2


def cache_compilation(directory) -> None:
    """Keep compiled programs in a directory, so that later processes need not compile them again.

    This is JAX's persistent compilation cache, for all of JAX in this process; any number of processes may share one
    directory. Whoever may write to it can make your process run their code.

    Parameters
    ----------
    directory : str or Path
        Directory, created if need be.

    Examples
    --------
    >>> import bayesgen
    >>> bayesgen.inference.cache_compilation("~/.cache/bayesgen")  # doctest: +SKIP
    """
    import jax
    from jax.experimental.compilation_cache.compilation_cache import reset_cache, set_cache_dir

    reset_cache()  # JAX looks for a cache at the first compilation, which may be over
    set_cache_dir(str(Path(directory).expanduser()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def one_kernel(function):
    """Return ``function`` as a call that the CPU compiler turns into one kernel, loops and all.

    Otherwise the compiler calls each fused operation by itself, which takes longer than the arithmetic on a few dozen
    numbers: a leapfrog step of naive Bayes is two to three times faster in one kernel. It makes one kernel by itself of
    loops that touch less than a kilobyte, and refuses code that calls a library or scatters. The attributes are XLA's
    own, so the caller must be ready for a JaxRuntimeError at compilation.
    """
    from jax.experimental.xla_metadata import set_xla_metadata

    def call(*arguments):
        results = program.jax.jit(function)(*arguments)
        return set_xla_metadata(results, xla_cpu_small_call="true", inlineable="false")

    return call
