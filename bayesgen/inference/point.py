"""Point estimates: maximum likelihood and the mode of the posterior."""

import functools
from dataclasses import dataclass

import numpy as np

from bayesgen import program
from bayesgen.inference.base import summarise
from bayesgen.model import NoClosedForm
from bayesgen.posterior import Point


@dataclass(frozen=True)
class ML:
    """Maximum likelihood, in closed form where the model has one. A ValueError names what stands against it."""

    def __call__(self, model, data, *, seed=None) -> Point:
        """Return the `Point` of highest likelihood."""
        statistics = summarise(model, data)
        try:
            return Point.at(model, model.ml(statistics))
        except NoClosedForm:
            return Point.at(model, _maximise(model, statistics, False))


@dataclass(frozen=True)
class MAP:
    """Mode of the posterior density in the parameters as the model writes them: probabilities, means, (co)variances.

    In closed form where the model has one, else by Newton's method on the same log density from the prior's median.
    A mode depends on the parameters it is taken in; here no Jacobian of a transformation enters.
    """

    def __call__(self, model, data, *, seed=None) -> Point:
        """Return the `Point` of highest posterior density."""
        statistics = summarise(model, data)
        try:
            return Point.at(model, model.map(statistics))
        except NoClosedForm:
            return Point.at(model, _maximise(model, statistics, True))


def _maximise(model, statistics, with_prior: bool):
    """Maximise over the unconstrained latents, scaled by their spread under the prior; returns every site.

    A trust region with the exact Hessian: posteriors here are ill-scaled (a mean is known to a thousandth of its prior
    spread), where L-BFGS needs thousands of steps and Newton a few dozen. It stops at a Newton decrement below 1e-11:
    that much log density, in any units, is all that is left to gain.
    """
    from scipy.optimize import minimize

    from bayesgen.inference.nuts import start

    jax = program.jax
    with program.x64():
        model, statistics = jax.tree_util.tree_map(np.array, (model, statistics))  # as in NUTS
        z, spread = start(jax.random.PRNGKey(0), model, statistics)
        z, unravel = jax.flatten_util.ravel_pytree(z)
        z, scale = np.asarray(z), np.sqrt(np.asarray(spread))
        evaluate, curve, constrain = _programs()

        def objective(step):
            value, slope = evaluate(z + scale * step, unravel, model, statistics, with_prior)
            return float(value), scale * np.asarray(slope)

        def hessian(step):
            return np.outer(scale, scale) * np.asarray(curve(z + scale * step, unravel, model, statistics, with_prior))

        def decrement(step):
            slope, curvature = objective(step)[1], hessian(step)
            if not np.linalg.eigvalsh(curvature)[0] > 0:
                return np.inf
            return slope @ np.linalg.solve(curvature, slope) / 2

        def enough(step):
            if decrement(step) < 1e-11:
                raise StopIteration

        options = {"gtol": 0.0, "maxiter": 500, "initial_trust_radius": 1.0, "max_trust_radius": 100.0}
        best = minimize(
            objective, np.zeros_like(z), jac=True, hess=hessian, method="trust-exact", callback=enough, options=options
        )
        if not decrement(best.x) < 1e-6:
            kind = "posterior mode" if with_prior else "maximum likelihood estimate"
            raise ValueError(f"no {kind} was found: it may not exist. Use 'nuts', or a proper prior with 'map'")
        sites = constrain(unravel(z + scale * best.x), model, statistics)
        return {name: np.asarray(value) for name, value in sites.items()}


@functools.cache
def _programs():
    """Return the compiled negative log density with its gradient, its Hessian, and the map to sites."""
    jax = program.jax
    slope = jax.jit(jax.value_and_grad(_negative_log_density), static_argnums=(1, 4))
    return slope, jax.jit(jax.hessian(_negative_log_density), static_argnums=(1, 4)), jax.jit(_constrain)


def _constrain(z, model, statistics):
    from numpyro.infer.util import constrain_fn

    return constrain_fn(model.story, (statistics,), {}, z, return_deterministic=True)


def _negative_log_density(z, unravel, model, statistics, with_prior):
    from numpyro.infer.util import log_density

    sites = _constrain(unravel(z), model, statistics)
    joint, trace = log_density(model.story, (statistics,), {}, sites)
    if with_prior:
        return -(joint + model.log_volume(sites))
    seen = (s for s in trace.values() if s["type"] == "sample" and s["is_observed"])
    return -sum((s["fn"].log_prob(s["value"]) * (1.0 if s["scale"] is None else s["scale"])).sum() for s in seen)
