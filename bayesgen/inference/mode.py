"""The search for a mode over the unconstrained latents, which point estimates and the Laplace approximation share."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen import program
from bayesgen.inference.compiled import kept, shapes, starter
from bayesgen.numerics.memory import check_memory
from bayesgen.numerics.threads import one_blas_thread


@dataclass(frozen=True)
class Mode:
    """A mode of a density, on one axis of L unconstrained latents.

    Attributes
    ----------
    origin : mapping from site to array
        Where the search began.
    step : array, shape (L,)
        From there to the mode.
    energy : float
        Negative log density at the mode.
    scale : array, shape (L,)
        Spread of each latent in the draws that the search began at.
    curvature : array, shape (L, L)
        Hessian of the negative log density at the mode, in units of ``scale``.
    """

    origin: Any
    step: np.ndarray
    energy: float
    scale: np.ndarray
    curvature: np.ndarray


@one_blas_thread()
def search(energy: Callable[..., Any], model, statistics, sought: str, seed: int = 0) -> Mode:
    """Minimise ``energy(step, origin, model, statistics)``, a negative log density, from draws of `Model.near`.

    A trust region with the exact Hessian: posteriors here are ill-scaled (a mean is known to a thousandth of its prior
    spread), where L-BFGS needs thousands of steps and Newton a few dozen; under a separation prior on the penguins it
    was not there after 10,000, and this took 41. It stops at a Newton decrement below 1e-11: that much log density, in
    any units, is all that is left to gain.

    Parameters
    ----------
    energy : callable
        The same function at every call: what it compiles to is kept by its name.
    model, statistics
        Copies, see `bayesgen.inference.compiled.fresh`; under `program.x64`.
    sought : str
        What the mode is called where there is none.
    seed : int
        Of the draws of which the median is taken; those of the prior where no model is near.
    """
    from scipy.optimize import minimize

    origin, spread = starter(model, statistics, model.near(statistics))(seed)
    scale = np.sqrt(np.asarray(spread))
    largest = max(np.size(a) for a in (scale, *program.jax.tree_util.tree_leaves(statistics)))
    check_memory(f"a Hessian of {len(scale)} parameters", 3 * 8 * len(scale) * largest, "use 'nuts'")

    def make():
        arguments = np.zeros_like(scale), origin, model, statistics
        return program.build(functools.partial(_derivatives, energy), *arguments)

    density = kept((energy.__qualname__, *shapes(model, statistics)), make)

    @functools.lru_cache(maxsize=1)
    def at(step):
        """Value, gradient and Hessian at a step, in units of the spread of the draws."""
        value, slope, curvature = density(scale * np.array(step), origin, model, statistics)
        return float(value), scale * np.asarray(slope), np.outer(scale, scale) * np.asarray(curvature)

    def decrement(step):
        _, slope, curvature = at(tuple(step))
        if not np.linalg.eigvalsh(curvature)[0] > 0:
            return np.inf
        return slope @ np.linalg.solve(curvature, slope) / 2

    def enough(step):
        if decrement(step) < 1e-11:
            raise StopIteration

    options = {"gtol": 0.0, "maxiter": 500, "initial_trust_radius": 1.0, "max_trust_radius": 100.0}
    best = minimize(
        lambda step: at(tuple(step))[:2],
        np.zeros_like(scale),
        jac=True,
        hess=lambda step: at(tuple(step))[2],
        method="trust-exact",
        callback=enough,
        options=options,
    )
    if not decrement(best.x) < 1e-6:
        raise ValueError(f"no {sought} was found: it may not exist. Use 'nuts', or a proper prior with 'map'")
    value, _, curvature = at(tuple(best.x))
    return Mode(origin, scale * best.x, value, scale, curvature)


def unraveled(step, origin):
    """The unconstrained latents at ``step`` from ``origin``, by site. JAX."""
    z, unravel = program.jax.flatten_util.ravel_pytree(origin)
    return unravel(z + step)


def sites(step, origin, model, statistics):
    """Every site at ``step`` from the unconstrained point ``origin``. JAX."""
    from numpyro.infer.util import constrain_fn

    z = unraveled(step, origin)
    return constrain_fn(model.statistics_program, (statistics,), {}, z, return_deterministic=True)


def potential(step, origin, model, statistics):
    """Negative log density of the unconstrained latents at ``step`` from ``origin``, and of the rows. JAX."""
    from numpyro.infer.util import potential_energy

    return potential_energy(model.statistics_program, (statistics,), {}, unraveled(step, origin))


def _derivatives(energy, step, *arguments):
    """Value, gradient and Hessian in the step.

    A column of the Hessian is one pass of the linearised gradient; all in one batch took nine times as long (197
    latents of a separation prior), since LAPACK solves small triangular systems one by one.
    """
    jax = program.jax
    (value, gradient), change = jax.linearize(jax.value_and_grad(lambda step: energy(step, *arguments)), step)
    return value, gradient, jax.lax.map(lambda along: change(along)[1], program.jnp.eye(len(step)))
