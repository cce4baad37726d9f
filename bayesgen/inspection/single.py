"""A posterior and its data for ArviZ where there is no estimator: a single feature, or a user's NumPyro function."""

import numpy as np

from bayesgen import program
from bayesgen.inspection.prior import add_prior, log_prior, prior_draws
from bayesgen.leaf import ExponentialFamily
from bayesgen.models.function import FunctionModel
from bayesgen.posterior import ParameterDraws
from bayesgen.tree import Groups, Variable, tree


def with_data(draws: ParameterDraws, prior, data, rng):
    """Return draws as an ArviZ `xarray.DataTree` with the groups that speak of data; see `Posterior.to_arviz`."""
    if isinstance(prior, FunctionModel):
        statistics = groups_of = prior.check(data)
    elif isinstance(prior, ExponentialFamily):
        statistics, groups_of = None, data
    else:
        raise TypeError(
            f"rows of a {type(prior).__name__} come with classes: to_arviz(X, y) of its estimator takes them"
        )
    own = _function_groups if isinstance(prior, FunctionModel) else _leaf_groups
    groups = own(prior, draws, groups_of, rng)
    result = tree(draws, {**groups, "log_prior": log_prior(prior, draws, statistics)})
    before = prior_draws(prior, rng, draws.samples, statistics)
    predictive = own(prior, before, groups_of, rng)["posterior_predictive"]
    add_prior(result, before, {"prior_predictive": predictive})
    return result


def _leaf_groups(model, draws, data, rng) -> Groups:
    rows = model.check(data)
    lead, shape = next(iter(draws.samples.values())).shape[:2], np.shape(rows)
    density = model.log_likelihood_rows(draws.flat, rows)
    drawn = _each(lambda key, own: model.likelihood(own).sample(key, shape[:1]), draws.flat, rng)
    axes = ("obs", *(f"x_dim_{i}" for i in range(len(shape) - 1)))
    return {
        "log_likelihood": {"x": density.reshape(*lead, -1)},
        "posterior_predictive": {"x": Variable(drawn.reshape(*lead, *shape), axes)},
        "observed_data": {"x": Variable(np.asarray(rows), axes)},
    }


def _function_groups(model, draws, arguments, rng) -> Groups:
    """What each observed site says of each draw: its density where it was, and a value drawn anew."""
    lead, plates = next(iter(draws.samples.values())).shape[:2], {}

    def one(key, values):
        result = {}
        for name, dims, site in model.observed(values, arguments):
            key, own = program.jax.random.split(key)
            plates[name] = dims
            result[name] = site["fn"].log_prob(site["value"]), site["fn"].sample(own), site["value"]
        return result

    found = _each(one, {name: draws.flat[name] for name, _ in model.axes}, rng)

    def variable(name, values, lead):
        axes = [f"{name}_dim_{i}" for i in range(values.ndim - 1)]
        axes[: len(plates[name])] = plates[name]
        return Variable(values.reshape(*lead, *values.shape[1:]), tuple(axes))

    return {
        "log_likelihood": {name: variable(name, density, lead) for name, (density, _, _) in found.items()},
        "posterior_predictive": {name: variable(name, drawn, lead) for name, (_, drawn, _) in found.items()},
        "observed_data": {name: variable(name, value[:1], ()) for name, (_, _, value) in found.items()},
    }


def _each(function, params, rng):
    """What a function of a key and one draw gives, for all draws."""
    jax, params = program.jax, {site: np.array(v) for site, v in params.items()}
    with program.x64():
        key = jax.random.PRNGKey(int(rng.integers(2**31)))
        arguments = jax.random.split(key, len(next(iter(params.values())))), params
        found = program.build(
            lambda keys, params: jax.lax.map(lambda a: function(*a), (keys, params)), *arguments, once=True
        )
        return jax.tree_util.tree_map(np.asarray, found(*arguments))
