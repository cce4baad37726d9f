"""Posteriors of classifiers for ArviZ: parameters, likelihoods and predictives of rows, classes and columns."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import listed
from bayesgen.core.registry import fitted_of
from bayesgen.models.beside_constants import of_all
from bayesgen.models.markov_chain import MarkovChain
from bayesgen.models.model import Params
from bayesgen.numerics.draws import generator
from bayesgen.numerics.pieces import count_rows
from bayesgen.posterior.arviz import Variable, add_prior, log_prior, prior_samples, tree
from bayesgen.posterior.likelihoods import LARGE, class_attrs, class_groups, plain
from bayesgen.posterior.posterior import ParameterDraws
from bayesgen.tables.labels import codes_of
from bayesgen.tables.reading import Reading

_TAKEN = {"t", "y", "obs", "chain", "draw", "sample"}  # names that groups of a tree have already


def row_labels(X) -> np.ndarray | None:
    """Return the index of a frame if it identifies the rows and a file can hold it; else None."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or not getattr(index, "is_unique", False) or getattr(index, "nlevels", 1) > 1:
        return None
    labels = np.asarray(index)
    if labels.dtype.kind == "O":
        return labels.astype(str) if all(isinstance(v, str) for v in labels.tolist()) else None
    return labels if labels.dtype.kind in "iufUM" else None


def columns_of(schema, blocks: Mapping[str, np.ndarray], lead=()) -> dict[str, Variable]:
    """Return columns by name from arrays by block, with axes ``lead`` before the rows; categories as their codes."""
    found = {}
    for block in schema.blocks:
        values = np.asarray(blocks[block.name])
        values = values.reshape(*lead, values.shape[len(lead)], len(block.columns))
        attrs = {} if block.categories is None else {"categories": plain(block.categories)}
        for j, column in enumerate(block.columns):
            found[column] = Variable(values[..., j], ("obs",), attrs)
    return {f"x.{c}" if c in _TAKEN else c: found[c] for c in schema.columns}


def replicate(model, params: Params, codes, seed: int) -> dict[str, np.ndarray]:
    """Draw blocks (draws, rows, ...): a table of the given classes, (rows,) or (draws, rows), for each draw of θ."""
    jax = program.jax

    def tables(key, params, codes):
        def table(given):
            key, leaves, t = given
            keys = dict(zip(model.leaves, jax.random.split(key, len(model.leaves)), strict=True))
            classes = {name: leaf.select_class(model.site(leaves, name), t) for name, leaf in model.leaves.items()}
            leaves = model.leaves.items()
            return {name: of_all(leaf, leaf.likelihood(classes[name]).sample(keys[name])) for name, leaf in leaves}

        return jax.lax.map(table, (jax.random.split(key, len(codes)), params, codes))

    count = len(next(iter(params.values())))
    with program.x64():
        codes = np.ascontiguousarray(np.broadcast_to(codes, (count, np.shape(codes)[-1])))
        arguments = jax.random.PRNGKey(seed), {site: np.array(v) for site, v in params.items()}, codes
        drawn = program.build(tables, *arguments, once=True)(*arguments)
        return {name: np.asarray(v) for name, v in drawn.items()}


def to_arviz(
    classifier, X=None, y=None, columns: bool = False, draws: int | None = None, groups: Collection[str] | None = None
):
    """Return the posterior as an ArviZ `xarray.DataTree`; an exact one is drawn, as chains.

    Parameters
    ----------
    X, y : optional
        Rows and their classes. They add the groups "log_likelihood" ("joint": log p(x_i, t_i | θ), from which
        ``loo``, ``compare`` and ``psense`` take their weights), "conditional_log_likelihood" ("t": log p(t_i | x_i,
        θ), which `bayesgen.inspection.loo_given_x` takes beside it), "observed_data" and "posterior_predictive"
        ("t": codes drawn given x_i, their labels in its attribute "classes"), "log_prior" (of every site), "prior"
        and "prior_predictive" (a row of each draw; none of these three if the prior is improper). Rows have the
        labels of a frame's index.
    columns : bool, default False
        True to add the columns to "observed_data" and "posterior_predictive", for predictive checks: drawn anew
        given t_i, as large as "log_likelihood" for every column; and a whole table for each draw to
        "prior_predictive". Categories are codes, labelled by the attribute "categories".
    draws : int, optional
        Number of draws of the posterior, evenly apart in each chain; default: all. Each draw and row take 18 bytes:
        4000 draws and 10,000 rows 0.7 GB.
    groups : collection of str, optional
        The groups to make among those that may be large: "log_likelihood", "conditional_log_likelihood",
        "posterior_predictive" and "prior_predictive"; default: all. The others are always there.
    """
    classifier = fitted_of(classifier)
    wanted = chosen(X, y, groups)
    if classifier.posterior_.integrated:
        classifier.posterior_.check_draws(4000)
    if X is None:
        return tree(classifier.posterior_.as_draws(generator(classifier.random_state)).thinned(draws))
    rng, model, schema = generator(classifier.random_state), classifier.model_, classifier.schema_
    posterior = classifier.posterior_.as_draws(rng).thinned(draws)
    made = row_groups(classifier, posterior, X, y, rng, wanted)
    obs, labels, codes = row_labels(X), class_attrs(classifier.classes_), made["observed_data"]["t"].values
    chains = [b.columns[0] for b in schema.blocks if isinstance(model.leaves[b.name], MarkovChain)]
    if columns and chains:
        raise ValueError(f"columns {listed(chains)} hold sequences of any length, which are no columns: columns=False")
    if columns:
        made["observed_data"] |= columns_of(schema, schema.read(classifier.table(X)))
    if columns and "posterior_predictive" in wanted:
        lead = next(iter(posterior.samples.values())).shape[:2]
        drawn = replicate(model, posterior.flat, codes, int(rng.integers(2**31)))
        drawn = {name: v.reshape(*lead, *v.shape[1:]) for name, v in drawn.items()}
        made["posterior_predictive"] |= columns_of(schema, drawn, lead)
    if not model.proper:
        return tree(posterior, made, obs=obs)
    result = tree(posterior, made | {"log_prior": log_prior(model, posterior)}, obs=obs)
    before = ParameterDraws(model, prior_samples(model, rng, posterior.samples))
    if "prior_predictive" not in wanted:
        add_prior(result, before, {}, obs)
        return result
    if columns:
        share = before.flat[f"{model.CLASSES}.probability"].cumsum(-1)[..., :-1, None]
        t = (rng.random((share.shape[0], 1, len(codes))) > share).sum(1)
        x = replicate(model, before.flat, t, int(rng.integers(2**31)))
        new = columns_of(schema, {name: v[None] for name, v in x.items()}, (1, len(t)))
    else:
        t, x = model.sample_rows(before.flat, int(rng.integers(2**31)))
        schema = replace(schema, reading=Reading())  # ArviZ draws numbers: dates are days, as in the other groups
        new = {name: Variable(v[None], ()) for name, v in schema.write(x).items()}
    target = {"t": Variable(t[None], ("obs",)[: t.ndim - 1], labels)}
    add_prior(result, before, {"prior_predictive": new | target}, obs)
    return result


def chosen(X, y, groups: Collection[str] | None) -> Collection[str]:
    """Return the large groups to make, by default all; raise an error for another group, and for X or y alone."""
    if (X is None) != (y is None):
        raise ValueError("to_arviz() takes X and y together: give both, or neither")
    if groups is None:
        return LARGE
    if isinstance(groups, str) or not set(groups) <= set(LARGE):
        raise ValueError(f"groups must be some of {list(LARGE)}, got {groups!r}")
    return groups


def row_groups(classifier, draws: ParameterDraws, X, y, rng, wanted: Collection[str] = LARGE) -> dict[str, Any]:
    """Return ArviZ's groups of rows and their classes, for any classifier; see `GenerativeClassifier.to_arviz`."""
    x = draws.model.check(classifier.read(X))
    return class_groups(draws, x, codes_of(y, classifier.classes_, count_rows(x)), rng, wanted)
