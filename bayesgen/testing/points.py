"""Point estimates are maxima: of the likelihood, and of likelihood times prior density."""

from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.distributions import biject_to
from numpyro.infer.util import constrain_fn
from scipy.optimize import approx_fprime, minimize

from bayesgen.core import program
from bayesgen.inference import fit
from bayesgen.testing.case import close, compiled, program_log_prior, require, same, sample_sites


def ml_maximises(case):
    """Maximum likelihood maximises the likelihood."""
    for statistics in _statistics_with_gaps(case):
        found: Any = fit(case.model, statistics, "ml")
        _is_maximum(case, found.params, lambda params, s=statistics: float(case.model.log_likelihood(params, s)))


def map_maximises(case):
    """MAP maximises likelihood times prior density: `Case.log_prior`, else the density of the program's sites."""
    log_prior = case.log_prior or program_log_prior(case)
    for statistics in _statistics_with_gaps(case):
        found: Any = fit(case.model, statistics, "map")

        def objective(params, statistics=statistics):
            return float(case.model.log_likelihood(params, statistics)) + log_prior(params)

        _is_maximum(case, found.params, objective)


def _statistics_with_gaps(case):
    """Statistics of rows with gaps; of vectors both missing as a whole and in part."""
    vectors = any(leaf.event_dim for leaf in case.parts.values())
    return [case.model.statistics(*case.data(40, gaps)) for gaps in (["rows", "entries"] if vectors else ["rows"])]


def _is_maximum(case, point, objective):
    """No step, large or small, is an improvement; the slope is zero; and a search from elsewhere ends there."""
    best, constrain = unconstrain(case.model, point)

    def f(vector):
        try:
            return objective(constrain(vector))
        except np.linalg.LinAlgError:  # a search that strays to where a covariance is singular to rounding
            return -1e10

    top, rng = f(best), case.rng
    again = constrain(best)
    same(again, {site: np.asarray(point[site]) for site in again}, 1e-9)
    rounding = (1e-8 if case.kinked else 1e-11) * (1 + abs(top))
    for size in (1.0, 0.1, 1e-2, 1e-3):
        for _ in range(10):
            step = size * rng.standard_normal(best.shape)
            gain = f(best + step) - top
            require(gain < rounding, f"a step of {step} from the unconstrained {best} gains {gain:g}")
    if case.kinked:
        return
    # Central differences of step 1e-4 have an error of about 1e-8 times third derivatives of order n = 40.
    slope = [(f(best + e) - f(best - e)) / 2e-4 for e in 1e-4 * np.eye(len(best))]
    close(slope, 0, 1e-7, "the slope at the estimate", 1e-4)
    if len(best) <= 6:
        start = best + 0.5 * rng.standard_normal(best.shape)
        found = minimize(lambda v: -f(v), start, jac=lambda v: -np.asarray(approx_fprime(v, f, 1e-6)), method="BFGS")
        close(-found.fun, top, 1e-7, "the maximum by a search, and the estimate's")
        close(found.x, best, 1e-7, "where a search ends, and the estimate", 2e-3)


def unconstrain(model, params):
    """The sampled sites of ``params`` as one unconstrained vector, and the way back from it to every site."""
    params = {site: np.asarray(v, float) for site, v in params.items()}

    def values(params):
        return {name: site["value"] for name, site in sample_sites(model, params).items()}

    def free(params):
        sites = sample_sites(model, params).items()
        return {name: biject_to(site["fn"].support).inv(site["value"]) for name, site in sites}

    with program.x64():
        if jax.eval_shape(values, params).keys() <= params.keys():
            vector, unravel = ravel_pytree(compiled(free, params)(params))
            latents, how = model.latents, {"return_deterministic": True}
            back = compiled(lambda v: constrain_fn(latents, (), {}, unravel(v), **how), vector)
        else:  # the program samples contrasts of the parameters, which are free
            vector, unravel = ravel_pytree(params)
            back = compiled(unravel, vector)

    def constrain(vector):
        with program.x64():
            return {site: np.asarray(v) for site, v in back(vector).items()}

    return np.asarray(vector), constrain
