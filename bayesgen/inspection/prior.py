"""The prior of any model, run as a program: draws of its parameters, and the density of parameters under it."""

import numpy as np

from bayesgen import program
from bayesgen.inference.compiled import fresh, kept, shapes
from bayesgen.model import Model, Params, is_conjugate
from bayesgen.posterior import ParameterDraws
from bayesgen.tree import Groups, tree

DRAWS = 1000  # of the prior


def log_prior(model: Model, draws: ParameterDraws, data=None) -> dict[str, np.ndarray]:
    """Log p(site) of each site that the program samples, for each draw, (chains, draws): what `psense` scales.

    It is the density in the coordinates that are sampled (of a covariance those of its Cholesky factor); a power of it
    depends on these, as it does for any program. Empty where the draws do not hold every sampled site, as those of a
    point estimate.

    Parameters
    ----------
    model : Model
        The prior.
    draws : ParameterDraws
        Of its sites.
    data : Statistics, optional
        What a function samples its latents beside.
    """
    flat = {site: np.array(v) for site, v in draws.flat.items()}

    def density(model, data, values):
        trace = _trace(program.handlers.substitute(_seeded(model, data, 0), values))
        own = {n: s for n, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
        if not own.keys() <= values.keys():
            return {}
        return {
            n: (s["fn"].log_prob(s["value"]) * (1.0 if s["scale"] is None else s["scale"])).sum()
            for n, s in own.items()
        }

    def all_draws(model, data, flat):
        return program.jax.vmap(lambda values: density(model, data, values))(flat)

    found = _run("log prior", all_draws, model, data, flat)
    lead = next(iter(draws.samples.values())).shape[:2]
    return {site: np.asarray(v).reshape(lead) for site, v in found.items()}


def prior_draws(model: Model, rng: np.random.Generator, sites, data=None, size: int = DRAWS) -> ParameterDraws:
    """Draws of the prior as one chain: exact ones, or by running the program forward, of the sites that are named."""
    if is_conjugate(model):
        return ParameterDraws(model, model.sample_parameters(rng, (1, size)))

    def values(model, data, keys):
        def one(key):
            trace = _trace(_seeded(model, data, key))
            return {n: s["value"] for n, s in trace.items() if s["type"] != "plate" and not s.get("is_observed", False)}

        return program.jax.vmap(one)(keys)

    with program.x64():
        keys = program.jax.random.split(program.jax.random.PRNGKey(int(rng.integers(2**31))), size)
    found = _run("prior", values, model, data, keys)
    return ParameterDraws(model, {site: np.asarray(v)[None] for site, v in found.items() if site in sites})


def add_prior(result, draws: ParameterDraws, predictive: Groups | None = None, obs=None) -> None:
    """Put the groups "prior" and "prior_predictive" into a tree."""
    for group, own in tree(draws, predictive, "prior", obs).children.items():
        result[group] = own


def _seeded(model, data, key):
    """The half of a program that samples its latents; of a function the whole, on its data."""
    run = model.latents if data is None else lambda: model.statistics_program(data)
    return program.handlers.seed(run, key)


def _trace(run) -> Params:
    with program.tracing:
        return program.handlers.trace(run).get_trace()


def _run(kind, function, model, data, argument):
    with program.x64():
        arguments = *fresh(model, data), argument
        return kept((kind, *shapes(*arguments)), lambda: program.build(function, *arguments, once=True))(*arguments)
