"""Draws for ArviZ: groups, named axes, labels and attributes, as ArviZ's own converters give them.

Some groups need the model run as a program: draws of its prior, and the density of parameters under the prior. Groups
that hold data are made in `bayesgen.posterior.likelihoods`.
"""

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.core import __version__, program
from bayesgen.models.function import FunctionModel, statistics_program
from bayesgen.models.model import Model, Params, is_conjugate
from bayesgen.posterior.compiled import fresh, kept, shapes

if TYPE_CHECKING:
    from xarray import DataTree

DEEPEST = 10  # most doublings of a trajectory: NumPyro's default, which `bayesgen.NUTS` keeps
_DATA = ("observed_data", "constant_data")  # groups without chains and draws
Draws = Any  # `bayesgen.posterior.ParameterDraws`, which imports this file
Groups = Mapping[str, Mapping[str, "np.ndarray | Variable"]]


class Variable(NamedTuple):
    """An array of a group, with the names of its axes after the axes of the draws, and attributes."""

    values: np.ndarray
    dims: tuple[str, ...]
    attrs: Mapping[str, Any] = {}


def tree(draws: Draws, groups: Groups | None = None, name: str = "posterior", obs=None) -> "DataTree":
    """Return draws as an ArviZ `xarray.DataTree` with named dims and labelled coords, in the group ``name``.

    ``draws`` come without Cholesky factors; the sampler's statistics become "sample_stats", its warm-up
    "warmup_posterior" and "warmup_sample_stats". More ``groups`` map a group to variables: arrays with the axes (chain,
    draw) or (chain, draw, "obs"), in groups of data ("obs"); a `Variable` names other axes. ``obs`` are labels of the
    rows; by default they are numbered.
    """
    from xarray import DataTree

    model, groups, made = draws.model, groups or {}, {}
    # a Cholesky factor of ours repeats a covariance, and half of its entries are constant: ArviZ has no R-hat for them
    repeated = () if isinstance(model, FunctionModel) else ("cholesky",)
    drawn = {site: model.dims(site) for site in draws.samples}
    names = [*drawn, *itertools.chain(*drawn.values()), *model.coords()]
    for variables in groups.values():
        dims = (variable.dims for variable in variables.values() if isinstance(variable, Variable))
        names += [*variables, *itertools.chain(*dims)]
    safe = safe_names(names)
    labels = {safe[dim]: values for dim, values in model.coords().items()}
    for prefix, group_draws in (("", draws), ("warmup_", draws.warmup)):
        if group_draws is not None:
            kept = {site: v for site, v in group_draws.samples.items() if not site.endswith(repeated)}
            sites = {site: Variable(np.asarray(v), tuple(model.dims(site))) for site, v in kept.items()}
            run, apart = dict(group_draws.run), group_draws.distance.items()
            attrs = {f"distance to exact, {safe[site]}": d for site, d in apart} | run
            made[prefix + name] = _dataset(prefix + name, sites, labels, safe, attrs)
            if stats := _stats(group_draws.sample_stats):
                made[f"{prefix}sample_stats"] = _dataset("sample_stats", stats, {}, {}, run)
    labels |= {} if obs is None else {"obs": obs}
    for group, variables in groups.items():
        made[group] = _dataset(group, variables, labels, safe)
    result = DataTree.from_dict(made)
    result.attrs.update(_library())
    return result


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """Return distinct names that netCDF and DataTree accept, for they reserve "/" for groups.

    >>> safe_names(["km/h", "km_h", "m/s"])
    {'km_h': 'km_h', 'km/h': 'km__h', 'm/s': 'm_s'}
    """
    result = dict[str, str]()
    for name in sorted(dict.fromkeys(names), key=lambda name: "/" in name):
        spellings = (name.replace("/", "_" * count) for count in itertools.count(1))
        result[name] = next(new for new in spellings if new not in result.values())
    return result


def _dataset(group, variables, labels, safe, attrs=None):
    from arviz_base import dict_to_dataset

    lead = 0 if group in _DATA else 2
    values, dims, notes = {}, {}, {}
    for name, variable in variables.items():
        if not isinstance(variable, Variable):
            variable = Variable(variable, ("obs",)[: np.ndim(variable) - lead])
        safe_name = safe.get(name, name)
        values[safe_name], notes[safe_name] = variable.values, variable.attrs
        if variable.dims:
            dims[safe_name] = [safe.get(dim, dim) for dim in variable.dims]
    options: dict[str, Any] = {"sample_dims": []} if lead == 0 else {}
    result = dict_to_dataset(values, attrs=_library() | (attrs or {}), coords=labels, dims=dims, **options)
    for name, note in notes.items():
        result[name].attrs.update(note)
    return result


def _library() -> dict[str, str]:
    return {"inference_library": "bayesgen", "inference_library_version": __version__}


def _stats(stats) -> dict[str, np.ndarray]:
    """Return the sampler's statistics with the depth d of each trajectory, which has up to 2^d - 1 steps."""
    if "n_steps" not in stats:
        return dict(stats)
    steps = np.asarray(stats["n_steps"])
    depth = np.floor(np.log2(np.maximum(steps, 1))).astype(int) + 1
    return {**stats, "tree_depth": depth, "reached_max_tree_depth": steps >= 2**DEEPEST - 1}


def log_prior(model: Model, draws: Draws, data=None) -> dict[str, np.ndarray]:
    """Return log p(site) of each sampled site, for each draw, (chains, draws), which ArviZ's `psense` scales.

    It is the density in the sampled coordinates (for a covariance, its Cholesky factor); as for any program, a power of
    it depends on these coordinates. Empty where the draws lack a sampled site, as the draws of a point estimate do.
    A function samples its latents as it runs on its ``data``.
    """
    flat = {site: np.array(v) for site, v in draws.flat.items()}

    def density(model, data, values):
        trace = program.traced(program.handlers.substitute(_seeded(model, data, 0), values))
        latent = {n: s for n, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
        if not latent.keys() <= values.keys():
            return {}
        return {name: program.log_density(site).sum() for name, site in latent.items()}

    def all_draws(model, data, flat):
        return program.jax.vmap(lambda values: density(model, data, values))(flat)

    found = _run("log prior", all_draws, model, data, flat)
    lead = next(iter(draws.samples.values())).shape[:2]
    return {site: np.asarray(v).reshape(lead) for site, v in found.items()}


def prior_samples(model: Model, rng: np.random.Generator, sites, data=None) -> Params:
    """Draw the named sites of the prior a thousand times, as one chain: exactly, or by running the program forward."""
    if is_conjugate(model):
        return model.sample_parameters(rng, (1, 1000))

    def values(model, data, keys):
        def one(key):
            trace = program.traced(_seeded(model, data, key))
            return {n: s["value"] for n, s in trace.items() if s["type"] != "plate" and not s.get("is_observed", False)}

        return program.jax.vmap(one)(keys)

    with program.x64():
        keys = program.jax.random.split(program.jax.random.PRNGKey(int(rng.integers(2**31))), 1000)
    found = _run("prior", values, model, data, keys)
    return {site: np.asarray(v)[None] for site, v in found.items() if site in sites}


def add_prior(result, draws: Draws, predictive: Groups | None = None, obs=None) -> None:
    """Put the groups "prior" and "prior_predictive" into a tree."""
    for group, node in tree(draws, predictive, "prior", obs).children.items():
        result[group] = node


def _seeded(model, data, key):
    """Return the part of a program that samples its latents; for a function, the whole program on its data."""
    run = model.latents if data is None else lambda: statistics_program(model, data)
    return program.handlers.seed(run, key)


def _run(kind, function, model, data, argument):
    with program.x64():
        arguments = *fresh(model, data), argument
        return kept((kind, *shapes(*arguments)), lambda: program.build(function, *arguments, once=True))(*arguments)
