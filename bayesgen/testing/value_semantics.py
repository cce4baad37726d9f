"""A model is a value to Python and to JAX, and its draws have names to ArviZ."""

import copy
import pickle
from typing import Any

import jax
import numpy as np
from numpyro.infer.util import log_density

from bayesgen.core import program
from bayesgen.inference import fit
from bayesgen.models import ClassConditional
from bayesgen.posterior import ParameterDraws
from bayesgen.testing.case import compiled, one, parameters, require, same, sampled


def is_a_pytree(case):
    """A model is a value: it survives JAX, pickle and copy, compares and hashes by value, and JAX maps over it."""
    model = case.model
    statistics = model.statistics(*case.data(10, "entries"))
    for value in (model, statistics):
        leaves, structure = jax.tree_util.tree_flatten(value)
        for again in (structure.unflatten(leaves), pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            require(again == value and hash(again) == hash(value), f"{again} and {value} differ, or their hashes do")
            same(again, value, 0)
        changed = structure.unflatten([leaf + 0.5 for leaf in leaves])
        require(changed != value and value != 1, f"{value} equals {changed}, or 1")
    values = sampled(model, one(parameters(case, 1)))
    other = jax.tree_util.tree_map(lambda v: 1.25 * v, model)
    both = jax.tree_util.tree_map(lambda a, b: np.stack([a, b]), model, other)

    def density(model):
        return log_density(model.latents, (), {}, values)[0]

    with program.x64():
        single, mapped = compiled(density, model), compiled(jax.vmap(density), both)
        np.testing.assert_allclose(mapped(both), [single(model), single(other)], rtol=1e-12)


def draws_have_named_dims(case):
    """Draws go to ArviZ with as many names as axes, labels as long as the axes, and come back as they were."""
    if case.model.conjugate:
        posterior: Any = fit(case.model, case.model.statistics(*case.data(12)), "exact")
    else:
        posterior = ParameterDraws(case.model, {site: v[None] for site, v in parameters(case, 5).items()})
    tree: Any = posterior.to_arviz(0)
    draws = posterior.draws(0) if case.model.conjugate else posterior.samples
    for site, values in draws.items():
        if site.endswith("cholesky"):  # its constant zeros have no R-hat: the covariance says it all
            require(site not in tree["posterior"], f"{site} is in the tree")
            continue
        array = tree["posterior"][site]
        require(array.dims[:2] == ("chain", "draw"), f"{site} has the axes {array.dims}, not chain and draw first")
        np.testing.assert_array_equal(array.values, values)
        if isinstance(case.model, ClassConditional) and "class" in array.dims:
            labels = list(array.coords["class"].values), list(case.model.class_names)
            require(labels[0] == labels[1], f"{site} has the classes {labels[0]}, not {labels[1]}")
