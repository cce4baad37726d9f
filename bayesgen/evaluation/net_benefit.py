r"""Net benefit of acting on probabilities, at the odds from which on one would act.

Who acts from a probability of t on holds t/(1 - t) of a case found for the price of a false alarm. With o_i = 1 for a
case, and weights w_i, acting on the probabilities p_i is worth

.. math:: \mathrm{NB}(t) = \frac{\sum_i w_i [p_i \ge t] \big(o_i - (1 - o_i) \tfrac{t}{1 - t}\big)}{\sum_i w_i}

cases found a row, net of false alarms (Vickers and Elkin 2006, *Medical Decision Making* 26). To act on all rows has
p_i = 1, to act on none is worth 0. The band is of the rows that judged: each row, or group of rows, gets an exponential
weight (the Bayesian bootstrap, Rubin 1981, *Annals of Statistics* 9). What other rows of fit would have taught is not
in it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.decision.outcomes import Floats, column_classes, numbers, truth_and_probability
from bayesgen.decision.outcomes import weights as row_weights
from bayesgen.numerics.pieces import pieces
from bayesgen.tables.groups import group_codes

_DRAWS, _CELLS, _FEWEST = 2000, 1 << 22, 20


@dataclass(frozen=True, eq=False)
class NetBenefit:
    """Net benefit of acting on probabilities, a row, over thresholds (T,).

    Attributes
    ----------
    thresholds : array, shape (T,)
        Probabilities from which on one acts.
    model, treat_all : array, shape (T,)
        Net benefit of acting on the probabilities, and of acting on all rows; that of acting on none is 0.
    lower, upper : array, shape (T,)
        Central 90 % interval of ``model`` over the rows that judged.
    best : array, shape (T,)
        Probability that acting on the probabilities is worth more than to act on all rows, and than to act on none.
    few : bool array, shape (T,)
        True where fewer than 20 rows are acted on, or fewer than 20 are not: too few for the interval to hold.
    """

    thresholds: Floats
    model: Floats
    treat_all: Floats
    lower: Floats
    upper: Floats
    best: Floats
    few: np.ndarray


def net_benefit(
    y: ArrayLike,
    probability: ArrayLike,
    thresholds: ArrayLike | None = None,
    *,
    positive=None,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> NetBenefit:
    """Return the net benefit of acting where a class has a probability of a threshold or more.

    Parameters
    ----------
    y : array_like, shape (n,)
        True classes of rows that the classifier did not learn from: labels, or codes 0 to K - 1.
    probability : array_like or DataFrame, shape (n, K), or (n,) for two classes
        Predicted probabilities of all classes, or of the second class.
    thresholds : array_like, shape (T,), optional
        Probabilities between 0 and 1; default .01, .02, ..., .99.
    positive : label, optional
        Class of the cases; default: the second of two classes.
    weights : array_like, shape (n,), optional
        Nonnegative weights of the rows.
    groups : array_like, shape (n,), optional
        Label of what a row belongs to: the band then resamples groups.

    Examples
    --------
    >>> found = net_benefit([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8], [0.2, 0.5])
    >>> found.model, found.treat_all
    (array([0.4375, 0.25  ]), array([0.375, 0.   ]))
    """
    t, p = truth_and_probability(y, probability)
    labels = column_classes(probability, None)
    names = np.arange(p.shape[1]) if np.array_equal(t, y) else np.unique(np.asarray(y)) if labels is None else labels
    names = list(np.asarray(names).tolist())
    if positive is None and len(names) != 2:
        raise ValueError(f"positive must name the class of the cases, one of {names}")
    if positive is not None and positive not in names:
        raise ValueError(f"positive must be one of the classes {names}, got {positive!r}")
    case = 1 if positive is None else names.index(positive)
    at = np.arange(1, 100) / 100 if thresholds is None else np.atleast_1d(numbers("thresholds", thresholds))
    if at.ndim != 1 or not ((at > 0) & (at < 1)).all():
        raise ValueError("thresholds must be probabilities between 0 and 1, without these")
    w, event = row_weights(weights, len(t)), (t == case)[:, None]
    worth = np.where(event, 1.0, -at / (1 - at))
    acted = p[:, [case]] >= at
    group = group_codes(groups, len(t))
    drawn = _resampled(worth, acted, w, np.arange(len(t)) if group is None else group)
    lower, upper = np.quantile(drawn[0], [0.05, 0.95], axis=0)
    few = np.minimum(acted[w > 0].sum(0), (~acted[w > 0]).sum(0)) < _FEWEST
    model, everyone = (w @ (worth * acted) / w.sum(), w @ worth / w.sum())
    return NetBenefit(at, model, everyone, lower, upper, (drawn[0] > np.maximum(drawn[1], 0)).mean(0), few)


def _resampled(worth, acted, w, group) -> np.ndarray:
    """Return draws of the net benefit of the model and of acting on all, (2, draws, T), by weights of the groups."""
    rng, total = np.random.default_rng(0), np.zeros((_DRAWS, 2 * worth.shape[1] + 1))
    _, place = np.unique(group, return_inverse=True)
    order = np.argsort(place, kind="stable")
    sums = np.zeros((place.max() + 1, total.shape[1]))
    for piece in pieces(len(order), total.shape[1], _CELLS):
        rows = order[piece]
        values = np.concatenate([worth[rows] * acted[rows], worth[rows], np.ones((len(rows), 1))], axis=1)
        np.add.at(sums, place[rows], w[rows, None] * values)
    for piece in pieces(len(sums), _DRAWS, _CELLS):
        total += rng.standard_exponential((_DRAWS, piece.stop - piece.start)) @ sums[piece]
    return np.stack(np.split(total[:, :-1] / total[:, -1:], 2, axis=1))
