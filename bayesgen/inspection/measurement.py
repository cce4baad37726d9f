r"""Which measurement to take next: the value of knowing a missing entry before deciding.

With l(a; x) = Σ_k p(k | x) L_ka the expected loss of action a, and a(x_o) the best one now,

.. math:: V_j = \mathrm{E}\big[l(a(x_o); x_o, x_j) - \min_a l(a; x_o, x_j)\big], \qquad
   x_j \sim p(x_j \mid x_o) = \sum_k p(k \mid x_o)\, p(x_j \mid k, x_o)

is what is expected to be saved (Raiffa and Schlaifer 1961, *Applied Statistical Decision Theory*). No term of the mean
is negative, tempered probabilities or not. Where the action is to report the class probabilities and the loss is their
negative logarithm, V_j is the expected Kullback-Leibler divergence of the report now from the one then: the mutual
information of class and entry, if nothing is tempered.

Sums run over categories and counts. For a number, whose density given each class is a Student-t, the line is cut at
quantiles of every class, and each piece takes two points of Gauss and Legendre.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import log_softmax, logsumexp, softmax

from bayesgen.averaging import columns, missing
from bayesgen.averaging.along import Members, Rows
from bayesgen.core.errors import listed
from bayesgen.decision.outcomes import aligned_loss
from bayesgen.inspection.averaged import refuse_far
from bayesgen.inspection.leave_one_out import tempered
from bayesgen.inspection.missing import Components, SingleJoint, gaps_of, joint_of, refuse_totals
from bayesgen.models.gaussian import LOG_2PI
from bayesgen.numerics.pieces import CELLS, count_rows, pieces, select_rows
from bayesgen.numerics.special import log_gamma_ratio

_DRAWS = 100  # of the parameters, where the posterior is draws
_LEVELS = np.array([1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.12, 0.22, 0.35])
_CUTS = np.concatenate([_LEVELS, [0.5], 1 - _LEVELS[::-1]])  # quantiles of each class at which the line is cut
_SHARE = 0.995  # of the weight of an average that is asked
_LEAST = 1e-15  # of the weight of a line: nodes of less add nothing to a sum


@np.errstate(under="ignore")
def next_measurement(classifier, X, loss: ArrayLike | None = None, cost: Any = None):
    """Value of knowing each missing entry of each row, less what it costs.

    Gaps are taken as ignorable. The value is of one entry alone: two that say something only together may both be
    worth nothing, and a greedy search misses them.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        How an entry is distributed its untempered densities say, what one would decide its `predict_proba`. A sampled
        posterior is asked by 100 of its draws, an average by the members that have 99.5 % of the weight.
    X : DataFrame or array, shape (n, columns)
        Rows; what may be measured is missing.
    loss : array_like or DataFrame, shape (K, A), optional
        Losses of actions as of `bayesgen.decision.decide`; the index of a DataFrame holds the classes.
        Without, the loss is the entropy of the class probabilities, in nats.
    cost : float, mapping from column to float, or array of shape (columns,), optional
        What measuring costs, in the unit of the loss; 0 for columns that a mapping does not name.

    Returns
    -------
    DataFrame or array, shape (n, columns)
        NaN where an entry is known. Before costs no value is negative; measure the largest, as long as it is above 0.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier().fit(X, y)
    >>> next_measurement(classifier, [[6.0, np.nan, np.nan, np.nan]]).round(2)
    array([[ nan, 0.12, 0.53, 0.59]])
    """
    joint = joint_of(classifier, "next_measurement()")
    classes = classifier.classes_.tolist()
    losses = None if loss is None else aligned_loss(loss, classes, len(classes))[0]
    names = classifier.schema_.columns
    costs, rows = costs_of(names, cost), joint.read(X)
    result = np.full((count_rows(rows), len(names)), np.nan)
    (_of_single if isinstance(joint, SingleJoint) else _of_average)(joint, rows, losses, result)
    result -= costs
    if not hasattr(classifier, "feature_names_in_"):
        return result
    import pandas as pd

    return pd.DataFrame(result, columns=list(names), index=X.index if isinstance(X, pd.DataFrame) else None)


def costs_of(names, cost) -> np.ndarray:
    """The cost of each column, (columns,), from what a user gave."""
    if isinstance(cost, Mapping):
        absent = [name for name in cost if name not in names]
        if absent:
            raise ValueError(f"cost names the columns {listed(absent)}, which X does not have; it has {listed(names)}")
        cost = [cost.get(name, 0.0) for name in names]
    try:
        costs = np.asarray(0.0 if cost is None else cost, float)
    except (TypeError, ValueError):
        raise TypeError(
            f"cost must be a number, one a column, or a mapping from column to number; got {cost!r}"
        ) from None
    if costs.shape not in ((), (len(names),)):
        raise ValueError(f"cost must be a number, or one for each of the {len(names)} columns; got shape {costs.shape}")
    if not (np.isfinite(costs) & (costs >= 0)).all():
        raise ValueError("cost must be finite and >= 0")
    return np.broadcast_to(costs, (len(names),))


def _saved(now, then, weight, losses):
    """What is expected to be saved, (n,): log probabilities of classes now (K, n), then (K, n, Q), of weight (n, Q)."""
    with np.errstate(under="ignore"):
        probability = np.exp(then)
    if losses is None:
        with np.errstate(invalid="ignore"):  # -inf less -inf
            terms = np.where(probability > 0, probability * (then - now[..., None]), 0.0)
        return np.maximum((weight * terms.sum(0)).sum(1), 0.0)  # rounding may leave -1e-17
    action = (losses.T @ np.exp(now)).argmin(0)
    expected = np.tensordot(losses.T, probability, 1)
    chosen = np.take_along_axis(expected, action[None, :, None], 0)[0]
    return (weight * (chosen - expected.min(0))).sum(1)


# -- one model -------------------------------------------------------------------------------------------------------


def _of_single(joint, rows, losses, result):
    classifier, components = joint.classifier, Components(joint, _DRAWS)
    refuse_totals(joint, "next_measurement()", rows)
    prior, exponent = joint.log_prior[:, None], getattr(classifier, "exponent_", 1.0)
    width = components.count * len(prior) * 2 * len(_CUTS) * len(prior)

    def log_probability(log_joint):
        return log_softmax(tempered(log_joint, prior.reshape(-1, *[1] * (log_joint.ndim - 1)), exponent), axis=0)

    for piece in pieces(len(result), width, 2 * CELLS):
        part = select_rows(rows, piece)
        score = components.log_weight(part)
        score[..., np.isneginf(score).all((0, 1))] = prior  # a plug-in estimate may rule out a row
        now, students = log_probability(logsumexp(score, axis=0)), {}
        for gap in gaps_of(classifier.schema_, part):
            own = score[..., gap.rows]
            if components.is_number(gap.block):
                if gap.block not in students:
                    students[gap.block] = components.student(gap.block, part)
                values = (_at(v, gap, len(now[0])) for v in students[gap.block])
                log_joint, log_width = _along(own, *np.broadcast_arrays(*values))
            else:
                log_joint, log_width = _summed(own[..., None] + components.table(gap).log_mass[:, :, None]), 0.0
            weight = softmax(np.asarray(logsumexp(log_joint, axis=0)) + log_width, axis=1)
            result[piece][gap.rows, gap.column] = _saved(now[:, gap.rows], log_probability(log_joint), weight, losses)


def _at(value, gap, count):
    """Of an array (S, K, n or 1, D or 1) the rows and column of a gap, (S, K, rows)."""
    value = value[..., gap.place if value.shape[-1] > 1 else 0]
    return (
        value[..., gap.rows]
        if value.shape[-1] == count and count > 1
        else np.broadcast_to(value, (*value.shape[:-1], len(gap.rows)))
    )


def _summed(log_joint):
    """Average over draws, (S, K, ...) to (K, ...), up to a number."""
    return log_joint[0] if len(log_joint) == 1 else logsumexp(log_joint, axis=0)


def _along(score, location, spread, dof):
    """Log p(x_o, v, k) at nodes v, (K, n, Q), and the log width of each node (n, Q).

    Parameters
    ----------
    score : array, shape (S, K, n)
        Log p(x_o, k | θ).
    location, spread, dof : array, shape (S, K, n)
        Of the entry given each component.
    """
    kinds, place = np.unique(dof, return_inverse=True)
    some = slice(None, None, max(1, len(score) // 3))  # of many draws a few say where the line is to be cut
    quantiles = stats.t.ppf(_CUTS, kinds[:, None])[place.reshape(dof.shape)[some]]
    cuts = location[some][..., None] + spread[some][..., None] * quantiles
    cuts = np.sort(np.moveaxis(cuts, 2, 0).reshape(dof.shape[-1], -1), axis=1)
    half, middle = np.diff(cuts, axis=1) / 2, (cuts[:, 1:] + cuts[:, :-1]) / 2
    v = np.concatenate([middle - half / np.sqrt(3), middle + half / np.sqrt(3)], axis=1)
    with np.errstate(divide="ignore"):
        log_width = np.log(np.concatenate([half, half], axis=1))
    finite = np.where(np.isinf(kinds), 1.0, kinds)
    level = np.where(np.isinf(kinds), -0.5 * LOG_2PI, log_gamma_ratio(finite / 2, 0.5) - 0.5 * np.log(np.pi * finite))
    z = (v - location[..., None]) / spread[..., None]
    z *= z
    if np.isinf(kinds).all():
        z *= -0.5
    else:
        nu = dof[..., None]
        z /= nu
        np.log1p(z, out=z)
        z *= -0.5 * (nu + 1)
    z += (level[place].reshape(dof.shape) - np.log(spread) + score)[..., None]
    return _summed(z), log_width


# -- the average -----------------------------------------------------------------------------------------------------


def _of_average(joint, rows, losses, result):
    classifier, schema = joint.classifier, joint.classifier.schema_
    (x, c), average = joint.arrays(rows), _heaviest(joint.average)
    refuse_far(classifier, x, "next_measurement()")
    priors = None if classifier.priors is None else classifier._known(classifier.priors)
    names = columns.numbers(schema, classifier.constant_) + columns.categories(schema)
    places, ends = np.array([schema.columns.index(name) for name in names]), missing.reach(average)
    chance, answer = (Members(average, weights > 0) for weights in (average.density_weights, average.weights))

    def saved(now, then, weight):
        with np.errstate(divide="ignore"):
            return _saved(np.log(now), np.log(then), weight, losses)

    for own, part, gaps in missing.entries(answer, x, c):
        likely, now = Rows(chance, part.x, part.c), answer.probability(part.here(), priors)
        for row, column in gaps:
            values, y, log_joint = missing.grid(likely, row, column, ends)
            weight = missing.mass(y, log_joint).sum(0)
            heavy = np.argsort(-weight, axis=1)[:, : (weight > _LEAST).sum(1).max()]
            values, y, weight = (np.take_along_axis(nodes, heavy, 1) for nodes in (values, y, weight))
            then = answer.probability(part.along(row, column, values, y), priors)
            result[own[row], places[column]] = saved(now[:, row], then, weight)
        for j in range(c.shape[1]):
            row = np.flatnonzero(part.c[:, j] < 0)
            if len(row):
                weight = softmax(logsumexp(chance.log_joint(likely.levels(row, j)), axis=0), axis=1)
                then = answer.probability(part.levels(row, j), priors)
                result[own[row], places[x.shape[1] + j]] = saved(now[:, row], then, weight)
    for name in classifier.constant_:  # left out of the fit: they say nothing of the class
        result[:, schema.columns.index(name)] = 0.0


def _heaviest(average):
    """The average of the members that have nearly all of the weight, of classes and of densities."""

    def kept(weights):
        order = np.argsort(-weights, kind="stable")
        some = order[: 1 + np.searchsorted(np.cumsum(weights[order]), _SHARE)]
        result = np.zeros_like(weights)
        result[some] = weights[some]
        return result / result.sum()

    return replace(average, weights=kept(average.weights), density_weights=kept(average.density_weights))
