r"""Charts, in which a chain moves: coordinates v with latents z = origin + root v, so that v is near N(0, I).

The L latents are unconstrained (logarithms of positive parameters, and so on). With H the Hessian of -log p(x, z) at
the mode, origin the mode and root = H^(-1/2), a Gaussian posterior has independent standard normal v, however its
latents correlate, and NUTS needs few steps. It is a dense mass matrix H (Neal 2011, *Handbook of Markov Chain Monte
Carlo*, section 5.4.1) without the draws that it takes to learn one; warm-up refines the scale of each v.
"""

import contextlib

import numpy as np

from bayesgen.core import program
from bayesgen.inference.point import potential, search, unraveled
from bayesgen.numerics.pieces import one_blas_thread
from bayesgen.posterior.compiled import kept, on_accelerator, shapes, starter

_DENSE = 200  # latents; with more, to look for the mode may take longer than it saves
_FLATTEST = 1e-3  # curvature in units of the prior; a search may end in a funnel without a mode, where it is negative
_AT_ONCE = 16  # gradients on an accelerator, which a single one leaves idle
_STEPS, _STEP = 200, 0.05  # of a start towards the mode: at most 5 standard deviations of the prior in all


def displacement(v, chart):
    """Return the step root v (L,) from the origin of a chart (origin, root) to its coordinates ``v``."""
    _, root = chart
    return root @ v if root.ndim == 2 else root * v


def is_dense(model, near, count: int) -> bool:
    """Return True if the root of a model's chart of ``count`` latents is a matrix (L, L), not the scales (L,) alone.

    Where there is an exact posterior, latents do not correlate, or are `whitened`, and chains begin at the scales of
    its draws; where another model is ``near``, at the scales of draws from that.
    """
    return model.smooth and near is None and count <= _DENSE


@one_blas_thread()
def charted(model, statistics, near, seed: int):
    """Return origin and root of a chart, from draws of a model ``near``, or by a search from draws of the prior.

    Where it is not dense (`is_dense`) the root is the scales of the latents; where it is but no mode is found, it is a
    diagonal matrix of these. Every chain searches from its own seed: where there are several modes, chains then end in
    different ones, and R-hat shows it; from one shared mode they would all agree.
    """
    start = starter(model, statistics, near)(seed)
    if near is not None:
        return start[0], np.sqrt(start[1])
    dense = is_dense(model, near, len(start[1]))
    if dense:
        with contextlib.suppress(ValueError, MemoryError):
            mode = search(potential, model, statistics, "mode", seed)
            values, vectors = np.linalg.eigh(mode.curvature)
            if values.min() > _FLATTEST:
                # Symmetric in units of the prior: latents that do not correlate keep coordinates of their own.
                return unraveled(mode.step, mode.origin), mode.scale[:, None] * (vectors / np.sqrt(values)) @ vectors.T
    arguments = *start, model, statistics
    origin, root = approach(lambda: program.compiled(lowered(*arguments), once=True), model, statistics)(*arguments)
    return origin, np.diag(root) if dense else root


def approach(make, model, statistics):
    """Return the compiled program `_approach`, made by ``make()`` at the first call for these shapes."""
    return kept(("approach", *shapes(model, statistics)), make)


def lowered(*arguments):
    """Lower the program `_approach` of a start, model and statistics, to be compiled."""
    return program.jax.jit(_approach).lower(*arguments)


def _approach(z, variance, model, statistics):
    """Move a start towards the mode; return the end, and the scale of each latent by the curvature there.

    Warm-up then works where the posterior is, at its scale. From the prior, which may be hundreds of times wider, a
    discriminant of 132 latents and 10,000 rows took 33,000 leapfrog steps in its first 150 iterations, of 58,000 in
    2000; from here 1,700. Adam, in units of the prior, does not go far, so a density without a mode does not carry it
    away. The diagonal of the curvature is enough, which warm-up refines.
    """
    from numpyro.optim import Adam

    jax, jnp = program.jax, program.jnp
    sd = jnp.sqrt(variance)

    def at(u):
        return potential(sd * u, z, model, statistics)

    def climb(state, _):
        return adam.eval_and_stable_update(lambda u: (at(u), None), state)[1], None

    def slope(end):
        axis, step = end
        along = axes == axis
        return jnp.vdot(jax.grad(at)(u + step * along), along)

    adam = Adam(lambda i: _STEP / 2 * (1 + jnp.cos(jnp.pi * i / _STEPS)))
    u = adam.get_params(jax.lax.scan(climb, adam.init(jnp.zeros_like(sd)), length=_STEPS)[0])
    axes, h = jnp.arange(len(u)), jnp.array([[1e-4], [-1e-4]])
    every = tuple(a.ravel() for a in jnp.broadcast_arrays(axes, h))
    ends = jax.lax.map(slope, every, batch_size=_AT_ONCE if on_accelerator() else None)
    curvature = (ends[: len(u)] - ends[len(u) :]) / 2e-4
    curvature = jnp.where((curvature > 1) & (curvature < jnp.inf), curvature, 1.0)  # never wider than the prior
    return unraveled(sd * u, z), sd / jnp.sqrt(curvature)
