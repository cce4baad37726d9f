"""Point estimates: maximum likelihood and the mode of the posterior, in closed form or by a search.

The search runs over the unconstrained latents; the Laplace approximation and the charts of NUTS share it.
"""

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import NoClosedForm
from bayesgen.core.memory import check_memory
from bayesgen.core.registry import saveable
from bayesgen.inference.base import register
from bayesgen.models.function import statistics_program
from bayesgen.models.model import Model, summarise
from bayesgen.numerics.pieces import one_blas_thread
from bayesgen.posterior.compiled import fresh, kept, shapes, starter
from bayesgen.posterior.posterior import PointEstimate


@dataclass(frozen=True)
class Mode:
    """A mode of a density, on one axis of L unconstrained latents."""

    origin: Any  # where the search began
    step: np.ndarray  # (L,): from there to the mode
    energy: float  # negative log density at the mode
    scale: np.ndarray  # (L,): spread of each latent in the draws that the search began at
    curvature: np.ndarray  # (L, L): hessian of the negative log density at the mode, in units of ``scale``


@one_blas_thread()
def search(energy: Callable[..., Any], model, statistics, sought: str, seed: int = 0) -> Mode:
    """Minimise ``energy(step, origin, model, statistics)``, a negative log density, from draws of `Model.start_from`.

    A trust region with the exact Hessian: posteriors here are ill-scaled (a mean is known to a thousandth of its prior
    spread), where L-BFGS needs thousands of steps and Newton a few dozen; under a separation prior on the penguins it
    was not there after 10,000, and this took 41. It stops at a Newton decrement below 1e-11: that much log density, in
    any units, is all that is left to gain.

    ``energy`` is the same function at every call, since its compiled program is kept by its name. Model and statistics
    are copies, see `bayesgen.posterior.compiled.fresh`, under `program.x64`. ``sought`` names the mode in the message
    that none was found. ``seed`` is of the draws whose median is the start: of the prior where no model is near.
    """
    from scipy.optimize import minimize

    origin, spread = starter(model, statistics, model.start_from(statistics))(seed)
    scale = np.sqrt(np.asarray(spread))
    largest = max(np.size(a) for a in (scale, *program.jax.tree_util.tree_leaves(statistics)))
    check_memory(f"a Hessian of {len(scale)} parameters", 3 * 8 * len(scale) * largest, "use 'nuts'")

    def make():
        arguments = np.zeros_like(scale), origin, model, statistics
        return program.build(functools.partial(_derivatives, energy), *arguments)

    density = kept((energy.__qualname__, *shapes(model, statistics)), make)

    @functools.lru_cache(maxsize=1)
    def at(step):
        """Return value, gradient and Hessian at a step, in units of the spread of the draws."""
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
    """Return the unconstrained latents at ``step`` from ``origin``, by site. JAX."""
    z, unravel = program.jax.flatten_util.ravel_pytree(origin)
    return unravel(z + step)


def sites(step, origin, model, statistics):
    """Return every site at ``step`` from the unconstrained point ``origin``. JAX."""
    from numpyro.infer.util import constrain_fn

    z = unraveled(step, origin)
    return constrain_fn(statistics_program, (model, statistics), {}, z, return_deterministic=True)


def potential(step, origin, model, statistics):
    """Return the negative log density of the rows and of the unconstrained latents at ``step`` from ``origin``. JAX."""
    from numpyro.infer.util import potential_energy

    return potential_energy(statistics_program, (model, statistics), {}, unraveled(step, origin))


def _derivatives(energy, step, *arguments):
    """Return value, gradient and Hessian in the step.

    A column of the Hessian is one pass of the linearised gradient; all in one batch took nine times as long (197
    latents of a separation prior), since LAPACK solves small triangular systems one by one.
    """
    jax = program.jax
    (value, gradient), change = jax.linearize(jax.value_and_grad(lambda step: energy(step, *arguments)), step)
    return value, gradient, jax.lax.map(lambda along: change(along)[1], program.jnp.eye(len(step)))


@saveable
@register("ml")
@dataclass(frozen=True)
class ML:
    """Maximum likelihood, in closed form where the model has one. A ValueError names the obstacle."""

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> PointEstimate:
        """Return the `PointEstimate` of highest likelihood."""
        return _estimate(model.ml, _unlikelihood, model, data, "maximum likelihood estimate")


@saveable
@register("map")
@dataclass(frozen=True)
class MAP:
    """Mode of the posterior density in the parameters as the model writes them: probabilities, means, (co)variances.

    In closed form where the model has one, else by Newton's method on the same log density from the prior's median.
    A mode depends on the parameters it is taken in; here no Jacobian of a transformation enters.
    """

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> PointEstimate:
        """Return the `PointEstimate` of highest posterior density."""
        return _estimate(model.map, _undensity, model, data, "posterior mode")


def _estimate(closed_form, energy, model: Model, data, sought: str) -> PointEstimate:
    """Return the estimate in closed form, or else where ``energy`` is least."""
    statistics = summarise(model, data)
    with contextlib.suppress(NoClosedForm):
        return PointEstimate(model, closed_form(statistics))
    with program.x64():
        copied, sums = fresh(model, statistics)
        mode = search(energy, copied, sums, sought)
        arguments = mode.step, mode.origin, copied, sums
        constrain = kept(("sites", *shapes(copied, sums)), lambda: program.build(sites, *arguments, once=True))
        return PointEstimate(model, constrain(*arguments))


def _undensity(step, origin, model, statistics):
    """Return the negative log density of the parameters and of the rows."""
    from numpyro.infer.util import log_density

    values = sites(step, origin, model, statistics)
    joint, _ = log_density(statistics_program, (model, statistics), {}, values)
    return -(joint + model.log_abs_det_jacobian(values))


def _unlikelihood(step, origin, model, statistics):
    """Return the negative log density of the rows."""
    from numpyro.infer.util import log_density

    values = sites(step, origin, model, statistics)
    _, trace = log_density(statistics_program, (model, statistics), {}, values)
    seen = (site for site in trace.values() if site["type"] == "sample" and site["is_observed"])
    return -sum(program.log_density(site).sum() for site in seen)
