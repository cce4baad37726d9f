"""Point estimates: maximum likelihood and the mode of the posterior."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen import program
from bayesgen.errors import NoClosedForm
from bayesgen.inference.base import register, summarise
from bayesgen.inference.compiled import fresh, kept, shapes, starter
from bayesgen.model import Model
from bayesgen.posterior import PointEstimate


@register("ml")
@dataclass(frozen=True)
class ML:
    """Maximum likelihood, in closed form where the model has one. A ValueError names what stands against it."""

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> PointEstimate:
        """Return the `PointEstimate` of highest likelihood."""
        statistics = summarise(model, data)
        try:
            return PointEstimate(model, model.ml(statistics))
        except NoClosedForm:
            return PointEstimate(model, _maximise(model, statistics, False))


@register("map")
@dataclass(frozen=True)
class MAP:
    """Mode of the posterior density in the parameters as the model writes them: probabilities, means, (co)variances.

    In closed form where the model has one, else by Newton's method on the same log density from the prior's median.
    A mode depends on the parameters it is taken in; here no Jacobian of a transformation enters.
    """

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> PointEstimate:
        """Return the `PointEstimate` of highest posterior density."""
        statistics = summarise(model, data)
        try:
            return PointEstimate(model, model.map(statistics))
        except NoClosedForm:
            return PointEstimate(model, _maximise(model, statistics, True))


def _maximise(model, statistics, with_prior: bool):
    """Maximise over the unconstrained latents, scaled by their spread under the prior; returns every site.

    A trust region with the exact Hessian: posteriors here are ill-scaled (a mean is known to a thousandth of its prior
    spread), where L-BFGS needs thousands of steps and Newton a few dozen. It stops at a Newton decrement below 1e-11:
    that much log density, in any units, is all that is left to gain.
    """
    from scipy.optimize import minimize

    with program.x64():
        model, statistics = fresh(model, statistics)
        origin, spread = starter(model, statistics)(0)
        scale = np.sqrt(np.asarray(spread))

        def make():
            arguments = np.zeros_like(scale), origin, model, statistics
            density = program.build(lambda *a: _derivatives(with_prior, *a), *arguments)
            return density, program.build(_sites, *arguments, once=True)

        density, sites = kept(("point", with_prior, *shapes(model, statistics)), make)

        @functools.lru_cache(maxsize=1)
        def at(step):
            """Value, gradient and Hessian at a step, in units of the prior's spread."""
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
            kind = "posterior mode" if with_prior else "maximum likelihood estimate"
            raise ValueError(f"no {kind} was found: it may not exist. Use 'nuts', or a proper prior with 'map'")
        found = sites(scale * best.x, origin, model, statistics)
        return {name: np.asarray(value) for name, value in found.items()}


def _sites(step, origin, model, statistics):
    """Every site at ``step`` from the unconstrained point ``origin``."""
    from numpyro.infer.util import constrain_fn

    z, unravel = program.jax.flatten_util.ravel_pytree(origin)
    return constrain_fn(model.statistics_program, (statistics,), {}, unravel(z + step), return_deterministic=True)


def _derivatives(with_prior, *arguments):
    """Negative log density, its gradient and its Hessian in the step: one program, as it is compiling that costs."""

    def slope(step):
        value, gradient = program.jax.value_and_grad(_negative_log_density)(step, *arguments[1:], with_prior)
        return gradient, (value, gradient)

    curvature, (value, gradient) = program.jax.jacfwd(slope, has_aux=True)(arguments[0])
    return value, gradient, curvature


def _negative_log_density(step, origin, model, statistics, with_prior):
    from numpyro.infer.util import log_density

    sites = _sites(step, origin, model, statistics)
    joint, trace = log_density(model.statistics_program, (statistics,), {}, sites)
    if with_prior:
        return -(joint + model.log_abs_det_jacobian(sites))
    seen = (s for s in trace.values() if s["type"] == "sample" and s["is_observed"])
    return -sum((s["fn"].log_prob(s["value"]) * (1.0 if s["scale"] is None else s["scale"])).sum() for s in seen)
