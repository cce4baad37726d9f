r"""Net benefit: what it is worth to act on probabilities, as one cost is varied.

An action a on a row of class k costs L_ka. Acting takes the action a_i of least expected cost under the probabilities
p_i of row i; with weights w_i it is worth, a row, as much as it saves against one action b that all rows get,

.. math:: \mathrm{NB} = \frac{\sum_i w_i \, (L_{k_i b} - L_{k_i a_i})}{\sum_i w_i}

**Two classes.** Who acts from a probability of t on holds t/(1 - t) of a case found for the price of a false alarm. So
to act on a case costs -1, on any other row t/(1 - t), to act on none costs 0, and against none NB(t) is the cases found
a row, net of false alarms (Vickers and Elkin 2006, *Medical Decision Making* 26). **Any losses.** One entry of L takes
the values to be tried, and b is the best single action.

**The band** is of the rows that judged: each row, or group of rows, gets an exponential weight (the Bayesian bootstrap,
Rubin 1981, *Annals of Statistics* 9), and one more row is spread evenly over all pairs of action and class, in gammas
of shape 1/(A K) (Perks 1947): without it twenty rows that hold no false alarm would say that there is never one. Of
probabilities out of fold it is the band of the rows, not of other rows to learn from.

Of one fitted model there is a band without any judge: draws p_s of the probabilities stand in place of the classes,

.. math:: \mathrm{NB}_s = \frac{\sum_i w_i \sum_k p_{sik} \, (L_{kb} - L_{k a_i})}{\sum_i w_i}

It is as right as the model is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesgen.core.errors import several
from bayesgen.decision import outcomes
from bayesgen.decision.outcomes import Floats, Labels, numbers
from bayesgen.numerics.pieces import pieces
from bayesgen.tables.groups import group_codes

_DRAWS, _CELLS, _FEWEST = 2000, 1 << 22, 20


@dataclass(frozen=True, eq=False)
class NetBenefit:
    """Worth of acting on probabilities, a row, as a threshold or a cost is varied (T,).

    Attributes
    ----------
    varied, unit : str
        Name of what is varied, and of the unit of the worth.
    thresholds : array, shape (T,)
        Probabilities from which on one acts, or the costs tried.
    model : array, shape (T,)
        Worth of acting on the probabilities.
    single : dict from str to array, shape (T,)
        Worth of each single action for all rows: "none" and "all", or the actions of the losses.
    lower, upper : array, shape (T,)
        Central 90 % interval of ``model``.
    best : array, shape (T,)
        Probability that acting on the probabilities is worth more than each single action.
    few : bool array, shape (T,)
        True where fewer than 20 rows (or groups) get a second action: too few for interval and probability to hold.
    """

    varied: str
    unit: str
    thresholds: Floats
    model: Floats
    single: dict[str, Floats]
    lower: Floats
    upper: Floats
    best: Floats
    few: np.ndarray

    def sentence(self, threshold: float) -> str:
        """Tell what acting is worth in 100 rows, at the value of ``thresholds`` next to the one given."""
        t, names = int(np.abs(self.thresholds - threshold).argmin()), [repr(name) for name in self.single]
        others = several(f"{name!r} for all {100 * worth[t]:.1f}" for name, worth in self.single.items())
        told = f"In 100 rows, at a {self.varied} of {self.thresholds[t]:g}, acting on the model gives"
        told += f" {100 * self.model[t]:.1f} ({self.unit}; "
        if self.few[t]:
            return f"{told}too few rows are treated differently to say how sure this is), {others}."
        chance = "above 0.99" if self.best[t] > 0.99 else "below 0.01" if self.best[t] < 0.01 else f"{self.best[t]:.2f}"
        beaten = f"both {' and '.join(names)}" if len(names) == 2 else f"each of {several(names)}"
        band = f"90 % interval {100 * self.lower[t]:.1f} to {100 * self.upper[t]:.1f}"
        return f"{told}{band}), {others}. The probability that acting on the model beats {beaten} is {chance}."


def net_benefit(
    y: ArrayLike,
    probability: ArrayLike,
    thresholds: ArrayLike | None = None,
    *,
    positive=None,
    loss: ArrayLike | pd.DataFrame | None = None,
    vary: Sequence | None = None,
    labels: Labels | None = None,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> NetBenefit:
    """Return what it is worth to act on probabilities, over the thresholds of a class or the values of a cost.

    Parameters
    ----------
    y : array_like, shape (n,) or (S, n, K)
        True classes of rows that the classifier did not learn from: labels, or codes 0 to K - 1. Or draws of the class
        probabilities of one fitted model, as of its ``predict_proba_draws``: the band is then the model's.
    probability : array_like or DataFrame, shape (n, K), or (n,) for two classes
        Predicted probabilities of all classes, or of the class of the cases; with ``loss`` of the second class.
    thresholds : array_like, shape (T,), optional
        Probabilities between 0 and 1, default .01, .02, ..., .99; with ``loss`` the costs to try.
    positive : label, optional
        Class of the cases; default: the second of two classes.
    loss : array_like or DataFrame, shape (K, A), optional
        Cost of each action under each class, as of `bayesgen.decision.decide`, in place of a class of the cases.
    vary : (label, action), optional
        Class and action whose entry of ``loss`` takes the values of ``thresholds``; codes where there are no names.
    labels : sequence, shape (K,), optional
        Classes in the order of the columns, where ``y`` is draws or may lack one.
    weights : array_like, shape (n,), optional
        Nonnegative weights of the rows.
    groups : array_like, shape (n,), optional
        Label of what a row belongs to: the band then resamples groups.

    Examples
    --------
    >>> found = net_benefit([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8], [0.2, 0.5])
    >>> found.model, found.single["all"]
    (array([0.4375, 0.25  ]), array([0.375, 0.   ]))
    >>> loss = [[0, 1], [5, 0]]  # to overlook a case costs 5, or 20
    >>> net_benefit([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8], [5, 20], loss=loss, vary=(1, 0)).model
    array([0.25, 0.  ])
    """
    drawn, p = np.ndim(y) == 3, outcomes.both_columns(probability)
    if drawn:
        outcome, classes = numbers("y", y), outcomes.column_classes(probability, labels)
        if outcome.shape[1:] != p.shape or not len(outcome) or groups is not None:
            raise ValueError(
                f"y must hold draws of all {p.shape[1]} class probabilities of the {len(p)} rows, (draws, rows, "
                f"classes), without groups; got shape {outcome.shape}"
            )
        classes = list(range(p.shape[1]) if classes is None else classes)
    else:
        outcome = outcomes.truth_and_probability(y, probability, labels)[0]
        classes = outcomes.named_classes(y, outcome, probability, labels, p.shape[1])
    w = outcomes.weights(weights, len(p))
    if loss is None:
        case = outcomes.case_of(positive, classes)
        p = outcomes.for_case(p, probability, case)
        value = np.arange(1, 100) / 100 if thresholds is None else np.atleast_1d(numbers("thresholds", thresholds))
        if value.ndim != 1 or not value.size or not ((value > 0) & (value < 1)).all():
            raise ValueError("thresholds must be probabilities between 0 and 1, without these")
        worth = np.zeros((len(value), len(classes), 2))
        worth[:, :, 1] = -(value / (1 - value))[:, None]
        worth[:, case, 1] = 1.0
        action, names = (p[:, [case]] >= value).astype(int), ("none", "all")
        varied, unit = f"threshold probability of {str(classes[case])!r}", "cases found, net of false alarms"
    else:
        worth, names, varied = _varied(loss, vary, thresholds, positive, classes)
        value, unit = np.atleast_1d(np.asarray(thresholds, float)), "cost saved against the best single action"
        action = np.stack([(p @ table).argmax(1) for table in worth], axis=1)
    if drawn:
        total, few = _by_draws(outcome, worth, action, w), np.zeros(len(value), bool)
        total = np.concatenate([total.mean(0, keepdims=True), total])
    else:
        total, few = _by_rows(outcome, worth, action, w, group_codes(groups, len(p)))
    weight = total[:, len(value) :].sum(1, keepdims=True)
    share, model = total[:, len(value) :] / weight, total[:, : len(value)] / weight
    single = np.einsum("sk,tka->sta", share, worth)
    against = np.zeros(len(value), int) if loss is None else single[0].argmax(1)
    zero = single[:, np.arange(len(value)), against]
    model, single = model - zero, single - zero[..., None]
    lower, upper = np.quantile(model[1:], [0.05, 0.95], axis=0)
    best = (model[1:] > single[1:].max(2)).mean(0)
    alike = dict(zip(names, single[0].T, strict=True))
    return NetBenefit(varied, unit, value, model[0], alike, lower, upper, best, few)


def _varied(loss, vary, values, positive, classes):
    """Return minus the losses with one entry varied, (T, K, A), the names of the actions, and what is varied."""
    if positive is not None or vary is None or values is None or len(vary) != 2:
        raise ValueError("with loss, vary names a class and an action, thresholds the costs to try; leave positive out")
    matrix, actions = outcomes.aligned_loss(loss, classes, len(classes))
    if actions is None:
        actions = classes if matrix.shape[1] == len(classes) else range(matrix.shape[1])
    actions, costs = [str(action) for action in actions], np.atleast_1d(numbers("thresholds", values))
    if costs.ndim != 1 or not costs.size or not np.isfinite(costs).all():
        raise ValueError("thresholds must be finite costs, in one row")
    known = [str(label) for label in classes], actions
    for name, among in zip(vary, known, strict=True):
        if str(name) not in among:
            raise ValueError(f"vary must name a class of {known[0]} and an action of {known[1]}, got {tuple(vary)!r}")
    truth, action = (among.index(str(name)) for name, among in zip(vary, known, strict=True))
    worth = np.repeat(-matrix[None], len(costs), axis=0)
    worth[:, truth, action] = -costs
    return worth, actions, f"cost of {actions[action]!r} where {known[0][truth]!r} is true"


def _entries(worth, action, code) -> Floats:
    """Return for each row the worth of its actions (n, T) under its class (n,), and beside it its class, (n, T + K)."""
    across = np.arange(len(worth))
    return np.concatenate([worth[across, code[:, None], action], np.eye(worth.shape[1])[code]], axis=1)


def _by_draws(outcome, worth, action, w) -> Floats:
    """Return sums of `_entries` under draws of the class probabilities (S, n, K), (S, T + K)."""
    total: Floats = np.zeros((len(outcome), worth.shape[0] + worth.shape[1]))
    for piece in pieces(len(w), max(total.shape), _CELLS):
        for k in range(worth.shape[1]):
            entries = _entries(worth, action[piece], np.full(piece.stop - piece.start, k))
            total += (outcome[:, piece, k] * w[piece]) @ entries
    return total


def _by_rows(code, worth, action, w, group) -> tuple[Floats, np.ndarray]:
    """Return sums of `_entries` over rows, then under random weights of rows or groups, (1 + S, T + K); and ``few``."""
    rng, (_, classes, actions) = np.random.default_rng(0), worth.shape
    seen = w > 0
    code, action, w = code[seen], action[seen], w[seen]
    place = np.arange(len(w)) if group is None else np.unique(group[seen], return_inverse=True)[1]
    order, width = np.argsort(place, kind="stable"), worth.shape[0] + classes
    sums = np.zeros((place.max() + 1, width))
    for piece in pieces(len(order), width, _CELLS):
        rows = order[piece]
        np.add.at(sums, place[rows], w[rows, None] * _entries(worth, action[rows], code[rows]))
    begin = np.searchsorted(place[order], np.arange(len(sums)))
    met = [np.logical_or.reduceat(action[order] == a, begin).sum(0) for a in range(actions)]
    everywhere = np.repeat(np.arange(actions), classes)[:, None]
    spread = _entries(worth, everywhere, np.tile(np.arange(classes), actions)) * w.sum() / len(sums)
    total = rng.standard_gamma(1 / len(spread), (_DRAWS, len(spread))) @ spread
    for piece in pieces(len(sums), _DRAWS, _CELLS):
        total += rng.standard_exponential((_DRAWS, piece.stop - piece.start)) @ sums[piece]
    few = np.sort(met, axis=0)[-2] < _FEWEST if actions > 1 else np.ones(worth.shape[0], bool)
    return np.concatenate([sums.sum(0, keepdims=True), total]), few
