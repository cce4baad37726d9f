"""Groups of ArviZ that hold data, of any model: densities and predictions of rows under draws of parameters."""

import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from bayesgen.core import program
from bayesgen.core.errors import warn
from bayesgen.core.memory import check_memory
from bayesgen.models.class_program import ClassProgram
from bayesgen.models.function import FunctionModel, plates
from bayesgen.models.leaf import Leaf
from bayesgen.models.linear_model import Discriminative, scores
from bayesgen.numerics.pieces import DENSITIES, count_rows, split_rows
from bayesgen.posterior.arviz import Draws, Groups, Variable

LARGE = ("log_likelihood", "conditional_log_likelihood", "posterior_predictive", "prior_predictive")
_CODES = np.int16  # of classes: of 4000 draws and 10,000 rows int64 takes 0.3 GB


class DataGroups(NamedTuple):
    """The groups that hold data, as functions of draws of the parameters and a generator."""

    statistics: Any  # the data of a function, which samples its latents as it runs on them
    groups: Callable[[Draws, np.random.Generator], Groups]  # from draws of the posterior to the groups
    prior: Callable[[Draws, np.random.Generator], Any]  # from draws of the prior to the variables of "prior_predictive"


def data_groups(prior, data) -> DataGroups:
    """Return the groups of data as `bayesgen.fit` takes them, but no statistics, from the model before the data."""
    if isinstance(prior, FunctionModel):
        arguments = prior.check(data)
        return _alike(arguments, lambda draws, rng: _function_groups(prior, draws, arguments, rng))
    if isinstance(prior, Leaf):
        return _alike(None, lambda draws, rng: _leaf_groups(prior, draws, data, rng))
    if not isinstance(data, tuple) or len(data) != 2:
        raise ValueError(f"the rows of a {type(prior).__name__} come with a target: give to_arviz(seed, (x, t))")
    x, t = data
    if hasattr(prior, "classes"):
        x = prior.check(x)
        codes = _codes(t, len(prior.class_names if isinstance(prior, ClassProgram) else prior.classes), count_rows(x))
        made = _alike(None, lambda draws, rng: class_groups(draws, x, codes, rng))
        return made._replace(prior=_new_rows) if isinstance(prior, ClassProgram) else made
    rows = prior.check((x, t))
    return _alike(None, lambda draws, rng: target_groups(prior, draws, rows, rng))


def _alike(statistics, groups) -> DataGroups:
    """Return groups of which "prior_predictive" is the "posterior_predictive" under draws of the prior."""
    return DataGroups(statistics, groups, lambda draws, rng: groups(draws, rng)["posterior_predictive"])


def _codes(t, count: int, rows: int) -> np.ndarray:
    t = np.asarray(t)
    if t.shape != (rows,) or not np.isin(t, np.arange(count)).all():
        raise ValueError(f"t must hold the code 0..{count - 1} of the class of each of the {rows} rows")
    return t.astype(int)


def _new_rows(draws, rng) -> dict[str, Variable]:
    """Return a row of each draw, its class first."""
    t, x = draws.model.sample_rows(draws.flat, int(rng.integers(2**31)))
    lead = next(iter(draws.samples.values())).shape[:2]
    attrs = class_attrs(draws.model.class_names)
    found = {"t": Variable(t.reshape(lead), (), attrs)}
    for name, rows in x.items():
        axes = tuple(f"{name}.x_dim_{i}" for i in range(rows.ndim - 1))
        found[f"{name}.x"] = Variable(rows.reshape(*lead, *rows.shape[1:]), axes)
    return found


def target_groups(model: Discriminative, draws, rows, rng, wanted: Collection[str] = LARGE) -> dict[str, Any]:
    """Return the density and a new draw of the target of each row, where they are ``wanted``, and its columns."""
    lead, x, flat = next(iter(draws.samples.values())).shape[:2], rows["x"], draws.flat
    check_likelihoods(math.prod(lead), len(x))
    names = model.columns or [f"x{j}" for j in range(x.shape[1])]
    columns = {f"x.{name}" if name == "obs" else name: x[:, j] for j, name in enumerate(names)}
    made: dict[str, Any] = {"observed_data": {"y": rows["t"]}, "constant_data": columns}
    if "log_likelihood" in wanted:
        made["log_likelihood"] = {"y": model.log_likelihood_rows(flat, rows).reshape(*lead, -1)}
    if "posterior_predictive" in wanted:
        pointed = getattr(model, "noise", "normal") == "laplace"
        spread = np.sqrt(flat["variance"] / (2 if pointed else 1))[:, None]
        drawn = (rng.laplace if pointed else rng.normal)(scores(flat, x), spread)
        made["posterior_predictive"] = {"y": drawn.reshape(*lead, -1)}
    return made


def class_attrs(classes) -> dict:
    """Return the labels of the class codes as attributes that a file can hold."""
    return {"classes": plain(classes)}


def plain(labels) -> list:
    """Return labels as numbers or texts of one type."""
    values = [v.item() if isinstance(v, np.generic) else v for v in labels]
    kinds = {*map(type, values)}
    return values if len(kinds) == 1 and kinds <= {int, float, str} else list(map(str, values))


def check_likelihoods(draws: int, rows: int, pair: int = 18) -> None:
    """Raise if the values of every draw for every row, ``pair`` bytes each, would not fit in memory."""
    what = f"what {draws} draws say of {rows} rows"
    check_memory(what, pair * draws * rows, "give draws=1000, fewer rows, or groups= for some of it")


def possible(density, params):
    """Return log densities (draws, K, rows), with the class prior where all are log 0, as in ``predict_proba``."""
    lost = np.isneginf(density.max(1, keepdims=True))
    if not lost.any():
        return density
    warn_of_lost(lost.any(0).sum())
    with np.errstate(divide="ignore"):
        return np.where(lost, np.log(params["classes.probability"])[..., None], density)


def warn_of_lost(rows: int) -> None:
    """Warn of rows that no class can explain; under a plug-in estimate any row may become one."""
    warn(f"{rows} rows have probability 0 under every class; they get the class prior")


def class_groups(draws: Draws, x, codes, rng, wanted: Collection[str] = LARGE) -> dict[str, Any]:
    """Return ArviZ's groups of checked rows and the codes of their classes, for the draws of any classifier's model.

    The groups are those that the estimator's `to_arviz` describes: "log_likelihood", "conditional_log_likelihood" of a
    generative model, "posterior_predictive" and "observed_data"; ``wanted`` has those of the large ones to make.
    """
    flat, lead = draws.flat, next(iter(draws.samples.values())).shape[:2]
    shape = (math.prod(lead), len(codes))
    generative = isinstance(draws.model, ClassProgram)
    attrs = class_attrs(draws.model.class_names if generative else draws.model.classes)
    given = "conditional_log_likelihood" if generative else "log_likelihood"
    types = {given: float, "posterior_predictive": _CODES} | ({"log_likelihood": float} if generative else {})
    types = {group: np.dtype(of) for group, of in types.items() if group in wanted}
    check_likelihoods(*shape, sum(of.itemsize for of in types.values()))
    made, done = {group: np.empty(shape, of) for group, of in types.items()}, 0
    for rows in split_rows(x, max(1, DENSITIES // shape[0])):
        density = draws.model.log_likelihood_rows(flat, rows)  # (draws, K, rows)
        piece = slice(done, done := done + density.shape[-1])
        chosen = (slice(None), codes[piece], np.arange(density.shape[-1]))
        if generative and "log_likelihood" in made:
            made["log_likelihood"][:, piece] = density[chosen]
        density = possible(density, flat)
        if "posterior_predictive" in made:
            top = density.max(1)
            with np.errstate(under="ignore"):
                cumulative = np.exp(density - top[:, None]).cumsum(1)
            t = (rng.random(top.shape) * cumulative[:, -1] > np.moveaxis(cumulative, 1, 0)).sum(0)
            made["posterior_predictive"][:, piece] = t
        if given in made:
            made[given][:, piece] = _share(density, chosen)  # which uses the densities up
    result = {}
    for group, values in made.items():
        name = "joint" if generative and group == "log_likelihood" else "t"
        result[group] = {name: Variable(values.reshape(*lead, -1), ("obs",), attrs if values.dtype == _CODES else {})}
    return result | {"observed_data": {"t": Variable(codes, ("obs",), attrs)}}


@np.errstate(under="ignore")
def _share(density, chosen):
    """Return the log share of one class of each row, -log(1 + others/own), which is not rounded to 0 for a sure row."""
    mine = density[chosen].copy()
    density[chosen] = -np.inf
    with np.errstate(invalid="ignore"):
        odds = logsumexp(density, axis=1) - mine
    return np.where(np.isneginf(mine), -np.inf, -np.logaddexp(0.0, odds))


def _leaf_groups(model, draws, data, rng) -> Groups:
    rows = model.check(data)
    lead, shape = next(iter(draws.samples.values())).shape[:2], np.shape(rows)
    density = model.log_likelihood_rows(draws.flat, rows)
    drawn = _each(lambda key, params: model.likelihood(params).sample(key, shape[:1]), draws.flat, rng)
    axes = ("obs", *(f"x_dim_{i}" for i in range(len(shape) - 1)))
    return {
        "log_likelihood": {"x": density.reshape(*lead, -1)},
        "posterior_predictive": {"x": Variable(drawn.reshape(*lead, *shape), axes)},
        "observed_data": {"x": Variable(np.asarray(rows), axes)},
    }


def _function_groups(model, draws, arguments, rng) -> Groups:
    """Return density, new draw and observed value of each observed site, for each draw."""
    lead, around = next(iter(draws.samples.values())).shape[:2], {}

    def one(key, values):
        result = {}
        for name, site in model.observed(values, arguments).items():
            key, mine = program.jax.random.split(key)
            around[name] = plates(site)
            result[name] = site["fn"].log_prob(site["value"]), site["fn"].sample(mine), site["value"]
        return result

    found = _each(one, {name: draws.flat[name] for name, _ in model.axes}, rng)

    def variable(name, values, lead):
        axes = [f"{name}_dim_{i}" for i in range(values.ndim - 1)]
        axes[: len(around[name])] = around[name]
        return Variable(values.reshape(*lead, *values.shape[1:]), tuple(axes))

    return {
        "log_likelihood": {name: variable(name, density, lead) for name, (density, _, _) in found.items()},
        "posterior_predictive": {name: variable(name, drawn, lead) for name, (_, drawn, _) in found.items()},
        "observed_data": {name: variable(name, value[:1], ()) for name, (_, _, value) in found.items()},
    }


def _each(function, params, rng):
    """Apply a function of a key and one draw to all draws."""
    jax, params = program.jax, {site: np.array(v) for site, v in params.items()}
    with program.x64():
        key = jax.random.PRNGKey(int(rng.integers(2**31)))
        arguments = jax.random.split(key, len(next(iter(params.values())))), params
        found = program.build(
            lambda keys, params: jax.lax.map(lambda a: function(*a), (keys, params)), *arguments, once=True
        )
        return jax.tree_util.tree_map(np.asarray, found(*arguments))
