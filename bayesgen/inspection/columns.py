"""The columns of a classifier's rows as numbers for ArviZ: as they are, and drawn anew from the classes of the rows."""

from collections.abc import Mapping

import numpy as np

from bayesgen import program
from bayesgen.model import Params
from bayesgen.tree import Variable

_TAKEN = {"t", "y", "obs", "chain", "draw", "sample"}  # names that groups of a tree have already


def row_labels(X) -> np.ndarray | None:
    """Labels of the rows: the index of a frame where it tells rows apart, and a file can hold it; else None."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or not getattr(index, "is_unique", False) or getattr(index, "nlevels", 1) > 1:
        return None
    labels = np.asarray(index)
    if labels.dtype.kind == "O":
        return labels.astype(str) if all(isinstance(v, str) for v in labels.tolist()) else None
    return labels if labels.dtype.kind in "iufUM" else None


def class_attrs(classes) -> dict:
    """What tells the labels of class codes, as attributes that a file can hold."""
    return {"classes": _plain(classes)}


def columns_of(schema, blocks: Mapping[str, np.ndarray], lead=()) -> dict[str, Variable]:
    """Columns by name from arrays by block, with axes ``lead`` before that of the rows; categories as their codes."""
    found = {}
    for block in schema.blocks:
        values = np.asarray(blocks[block.name])
        values = values.reshape(*lead, values.shape[len(lead)], len(block.columns))
        attrs = {} if block.categories is None else {"categories": _plain(block.categories)}
        for j, column in enumerate(block.columns):
            found[column] = Variable(values[..., j], ("obs",), attrs)
    return {f"x.{c}" if c in _TAKEN else c: found[c] for c in schema.columns}


def replicate(model, params: Params, codes, seed: int) -> dict[str, np.ndarray]:
    """Draw rows of the given classes, a whole table for each draw of the parameters: blocks (draws, rows, ...).

    Parameters
    ----------
    model : ClassConditional
        The classifier's model.
    params : mapping to arrays (draws, ...)
        Its parameters.
    codes : int array, shape (rows,) or (draws, rows)
        Classes of the rows.
    seed : int
        Source of randomness.
    """
    jax = program.jax

    def tables(key, params, codes):
        def table(given):
            key, own, t = given
            keys = dict(zip(model.leaves, jax.random.split(key, len(model.leaves)), strict=True))
            classes = {name: leaf.select_class(model.site(own, name), t) for name, leaf in model.leaves.items()}
            return {name: leaf.likelihood(classes[name]).sample(keys[name]) for name, leaf in model.leaves.items()}

        return jax.lax.map(table, (jax.random.split(key, len(codes)), params, codes))

    count = len(next(iter(params.values())))
    with program.x64():
        codes = np.ascontiguousarray(np.broadcast_to(codes, (count, np.shape(codes)[-1])))
        arguments = jax.random.PRNGKey(seed), {site: np.array(v) for site, v in params.items()}, codes
        drawn = program.build(tables, *arguments, once=True)(*arguments)
        return {name: np.asarray(v) for name, v in drawn.items()}


def _plain(labels) -> list:
    values = [v.item() if isinstance(v, np.generic) else v for v in labels]
    return (
        values
        if len({type(v) for v in values} & {int, float, str}) == 1 == len({*map(type, values)})
        else list(map(str, values))
    )
