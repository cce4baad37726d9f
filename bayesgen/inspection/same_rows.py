"""Whether two sets of statistics can be of the same rows: counts, means and scatters by column and class."""

import numpy as np

from bayesgen.messages import listed
from bayesgen.models.beta_bernoulli import BetaBernoulli
from bayesgen.models.dirichlet_categorical import Categorical
from bayesgen.models.dirichlet_multinomial import DirichletMultinomial
from bayesgen.models.gamma_poisson import Poisson
from bayesgen.models.gaps import PatternMoments
from bayesgen.moments import Moments

_PLURAL = {"count": "observed values", "mean": "means", "scatter": "sums of squares", "sum": "sums"}


def different_rows(one, other) -> str | None:
    """Where two summaries by column differ beyond rounding, in words; None where they may be of the same rows.

    Parameters
    ----------
    one, other : dict
        As `by_column` makes them. Columns, and kinds of sums, that only one of them has are left out.
    """
    for column, mine in one.items():
        theirs = other.get(column, {})
        for kind in [kind for kind in mine if kind in theirs]:
            a, b = mine[kind], theirs[kind]
            if a.shape != b.shape or (np.abs(a - b) > _rounding(kind, mine, theirs)).any():
                return f"column {column!r} has {_PLURAL[kind]} by class of {_short(a)} and {_short(b)}"
    return None


def _short(values) -> str:
    return listed(float(f"{value:.9g}") for value in values.ravel())


def _rounding(kind, *summaries):
    """How far two sums of the same rows, added in another order, may be apart."""
    value = np.maximum(*(np.abs(s[kind]) for s in summaries))
    known = next((s for s in summaries if "scatter" in s), None)
    if kind in ("count", "sum") or known is None:
        return 1e-9 * value
    n, blur = np.maximum(known["count"], 1.0), 1e-12 * np.abs(known["mean"])
    if kind == "mean":
        return blur + 1e-6 * np.sqrt(known["scatter"] / n)
    return 1e-6 * value + n * blur**2


def by_column(schema, model, statistics) -> dict[str, dict[str, np.ndarray]]:
    """What statistics say of each column that does not depend on its model, by class: arrays (K,), or (K, ...).

    Parameters
    ----------
    schema, model, statistics
        ``schema_``, ``model_`` of a fitted generative classifier, and statistics of rows under them.
    """
    result = {}
    for block in schema.blocks:
        sums = _sums(model.leaves[block.name], statistics.leaves[block.name])
        for j, column in enumerate(block.columns):
            result[column] = {kind: v if kind == "sum" and v.ndim > 2 else v[:, j] for kind, v in sums.items()}
    return result


def _sums(leaf, statistics) -> dict[str, np.ndarray]:
    """The same of all columns of a block: arrays (K, columns)."""
    if isinstance(statistics, PatternMoments):
        statistics = statistics.columns()
    if isinstance(statistics, Moments):
        mean, squares, n = statistics.mean, statistics.scatter, statistics.n
        if statistics.vector:
            squares = np.diagonal(squares, axis1=-2, axis2=-1)
        flat = [a.reshape(len(mean), -1) for a in (mean, squares)]
        n = np.broadcast_to(n.reshape(len(mean), -1), flat[0].shape)
        return {"count": n, "mean": flat[0], "scatter": flat[1]}
    total = statistics.total()
    total = total.reshape(len(total), -1, total.shape[-1])
    if isinstance(leaf, Poisson):
        return _counted(total[..., 0], total[..., 1])
    if isinstance(leaf, BetaBernoulli):
        return _counted(total.sum(-1), total[..., 1])
    if isinstance(leaf, DirichletMultinomial):
        return {"sum": total[:, 0]}
    if isinstance(leaf, Categorical):
        labels = leaf.categories
        if all(isinstance(label, int | float) for label in labels):
            return _counted(total.sum(-1), total @ np.array(labels, float))
        return {"count": total.sum(-1)}
    return {"sum": total}


def _counted(n, total):
    return {"count": n, "mean": np.divide(total, n, out=np.zeros_like(total), where=n > 0)}
