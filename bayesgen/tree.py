"""Draws as ArviZ takes them: groups, named axes, labels and attributes, as ArviZ's own converters give them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from xarray import DataTree

    from bayesgen.posterior import ParameterDraws

DEEPEST = 10  # doublings of a trajectory: NumPyro's own limit, which `bayesgen.NUTS` leaves as it is
_DATA = ("observed_data", "constant_data")  # groups without chains and draws


class Variable(NamedTuple):
    """An array of a group, with names of its axes behind those of the draws, and attributes."""

    values: np.ndarray
    dims: tuple[str, ...]
    attrs: Mapping[str, Any] = {}


Groups = Mapping[str, Mapping[str, "np.ndarray | Variable"]]


def tree(draws: "ParameterDraws", groups: Groups | None = None, name: str = "posterior", obs=None) -> "DataTree":
    """Return draws as an ArviZ `xarray.DataTree`, named dims and labelled coords, in the group ``name``.

    Parameters
    ----------
    draws : ParameterDraws
        The draws; what the sampler said of them becomes "sample_stats", its warm-up "warmup_posterior" and
        "warmup_sample_stats".
    groups : mapping from group to variables, optional
        More groups. Arrays have the axes (chain, draw), or (chain, draw, "obs"), in groups of data ("obs"); of others
        a `Variable` names the axes.
    name : str
        Group of the draws.
    obs : array, optional
        Labels of the rows; by default they are numbered.
    """
    from xarray import DataTree

    model, made = draws.model, {}
    labels = {safe(dim): values for dim, values in model.coords().items()}
    for prefix, own in (("", draws), ("warmup_", draws.warmup)):
        if own is not None:
            sites = {site: Variable(np.asarray(v), tuple(model.dims(site))) for site, v in own.samples.items()}
            attrs = {f"distance to exact, {safe(site)}": d for site, d in own.distance.items()} | dict(own.run)
            made[prefix + name] = _dataset(prefix + name, sites, labels, attrs)
            if own.sample_stats:
                made[f"{prefix}sample_stats"] = _dataset("sample_stats", _stats(own.sample_stats), {}, dict(own.run))
    labels |= {} if obs is None else {"obs": obs}
    for group, variables in (groups or {}).items():
        made[group] = _dataset(group, variables, labels)
    result = DataTree.from_dict(made)
    result.attrs.update(_library())
    return result


def safe(name: str) -> str:
    """A name as netCDF and DataTree take it: they keep "/" for groups."""
    return name.replace("/", "_")


def _dataset(group, variables, labels, attrs=None):
    from arviz_base import dict_to_dataset

    lead = 0 if group in _DATA else 2
    values, dims, notes = {}, {}, {}
    for name, variable in variables.items():
        if not isinstance(variable, Variable):
            variable = Variable(variable, ("obs",)[: np.ndim(variable) - lead])
        values[safe(name)], notes[safe(name)] = variable.values, variable.attrs
        if variable.dims:
            dims[safe(name)] = [safe(dim) for dim in variable.dims]
    options: dict[str, Any] = {"sample_dims": []} if lead == 0 else {}
    result = dict_to_dataset(values, attrs=_library() | (attrs or {}), coords=labels, dims=dims, **options)
    for name, own in notes.items():
        result[name].attrs.update(own)
    return result


def _library() -> dict[str, str]:
    import bayesgen

    return {"inference_library": "bayesgen", "inference_library_version": bayesgen.__version__}


def _stats(stats) -> dict[str, np.ndarray]:
    """What the sampler said, with the depth of each trajectory: of 2^d - 1 steps it is d, whole or cut short."""
    if "n_steps" not in stats:
        return dict(stats)
    steps = np.asarray(stats["n_steps"])
    depth = np.floor(np.log2(np.maximum(steps, 1))).astype(int) + 1
    return {**stats, "tree_depth": depth, "reached_max_tree_depth": steps >= 2**DEEPEST - 1}
