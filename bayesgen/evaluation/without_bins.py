r"""Calibration of an event without bins: a line in log odds, and a curve that only has to rise.

**The line.** With o_i = 1 where the event happened and p_i its probability, logistic regression on the log odds

.. math:: P(o_i = 1) = \sigma(a + b \operatorname{logit} p_i)

has slope b = 1 and intercept a = 0 where the probabilities are right (Cox 1958, *Biometrika* 45); b < 1 says that they
are too extreme. Calibration in the large is a where b is held at 1: above 0 the event is more frequent than was said.
Intervals are of the sandwich H⁻¹ (Σ_g s_g s_g') H⁻¹ with H the curvature and s_g the score of a row, or of a group.

**The curve** is the isotonic regression of o on p (CORP: Dimitriadis, Gneiting and Jordan 2021, *PNAS* 118): the best
frequencies that rise with p, in which nothing is to be chosen. Its band is where 90 % of such curves would be if the
probabilities were right: rows have their outcomes drawn from p_i anew, and rows of a group keep what they have in
common, p_i + ξ_g (o_i - p_i) with one random sign ξ_g for all of them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression
from scipy.special import expit

from bayesgen.decision.outcomes import Floats, Labels, case_of, for_case, named_classes, truth_and_probability
from bayesgen.decision.outcomes import weights as row_weights
from bayesgen.numerics.newton import minimise
from bayesgen.tables.groups import group_codes

_NORMAL, _DRAWS, _PLACES = 1.959963984540054, 500, 1000  # of a 95 % interval; outcomes drawn; places of the band


class Estimate(NamedTuple):
    """An estimate and both ends of its 95 % interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class CalibrationLine:
    """Slope and intercept of the log odds of an event on those that were said; right are 1 and 0.

    Attributes
    ----------
    slope, intercept : Estimate
        Of the line through both; a slope below 1 says that probabilities are too extreme.
    in_the_large : Estimate
        Intercept where the slope is 1: above 0 the event is more frequent than was said.
    """

    slope: Estimate
    intercept: Estimate
    in_the_large: Estimate


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Frequency of an event over its probability, without bins.

    Attributes
    ----------
    probability, frequency : array, shape (m,)
        Distinct probabilities in order, and the isotonic regression of the event at each.
    lower, upper : array, shape (m,)
        Where 90 % of such curves are at each probability, if the probabilities are right.
    """

    probability: Floats
    frequency: Floats
    lower: Floats
    upper: Floats


def calibration_line(
    y: ArrayLike,
    probability: ArrayLike,
    *,
    positive=None,
    labels: Labels | None = None,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> CalibrationLine:
    """Return calibration slope, intercept and calibration in the large of a class, each with its 95 % interval.

    Parameters
    ----------
    y : array_like, shape (n,)
        True classes of rows that the classifier did not learn from: labels, or codes 0 to K - 1.
    probability : array_like or DataFrame, shape (n, K), or (n,) for two classes
        Predicted probabilities of all classes, or of the class of the cases.
    positive : label, optional
        Class of the cases; default: the second of two classes.
    labels, weights, groups : optional
        As for `bayesgen.evaluation.net_benefit`; intervals are over groups where there are any.

    Raises
    ------
    ValueError
        If a probability is 0 or 1, or if cases have all the highest probabilities or none: there is no such line.

    Examples
    --------
    >>> said = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> round(calibration_line([0, 0, 1, 0, 1, 0, 1, 1], said).slope.value, 2)
    1.07
    """
    event, p, w, group = _event(y, probability, positive, labels, weights, groups)
    if (certain := np.flatnonzero((p <= 0) | (p >= 1))).size:
        which = f"{certain.size} rows do not, first row {certain[0]}"
        raise ValueError(f"probability must lie between 0 and 1 to have log odds; {which}")
    x = np.log(p) - np.log1p(-p)
    cases, others = x[(w > 0) & event], x[(w > 0) & ~event]
    if not (len(cases) and len(others) and cases.min() < others.max() and others.min() < cases.max()):
        raise ValueError("y and probability have no calibration line: probabilities separate the cases from the others")
    both = _logistic(np.stack([np.ones_like(x), x], axis=1), 0.0, event, w, group)
    return CalibrationLine(both[1], both[0], _logistic(np.ones((len(x), 1)), x, event, w, group)[0])


def reliability_curve(
    y: ArrayLike,
    probability: ArrayLike,
    *,
    positive=None,
    labels: Labels | None = None,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> ReliabilityCurve:
    """Return the frequency of a class over its probability as a curve that rises, without bins, and a band.

    Parameters
    ----------
    y, probability, positive, labels, weights, groups
        As for `calibration_line`; probabilities may be 0 and 1.

    Examples
    --------
    >>> reliability_curve([0, 1, 0, 1], [0.1, 0.3, 0.4, 0.8]).frequency
    array([0. , 0.5, 0.5, 1. ])
    """
    event, p, w, group = _event(y, probability, positive, labels, weights, groups)
    event, p, w = event[w > 0], p[w > 0], w[w > 0]
    said, place = np.unique(p, return_inverse=True)
    weight, rng = np.bincount(place, w), np.random.default_rng(0)
    shown = np.unique(np.linspace(0, len(said) - 1, _PLACES).astype(int))

    def rising(outcome) -> Floats:
        return isotonic_regression(np.bincount(place, w * outcome) / weight, weights=weight).x

    if group is None:
        drawn = [rising(rng.random(len(p)) < p)[shown] for _ in range(_DRAWS)]
    else:
        sign = rng.choice([-1.0, 1.0], (_DRAWS, group.max() + 1))
        drawn = [rising(p + row[group] * (event - p))[shown] for row in sign]
    ends = np.quantile(drawn, [0.05, 0.95], axis=0).clip(0, 1)
    lower, upper = (np.interp(said, said[shown], end) for end in ends)
    return ReliabilityCurve(said, rising(event), lower, upper)


def _event(y, probability, positive, labels, weights, groups):
    """Return where an event happened (n,), its probability and weight, and the group of each row of weight, or None."""
    code, p = truth_and_probability(y, probability, labels)
    case = case_of(positive, named_classes(y, code, probability, labels, p.shape[1]))
    w = row_weights(weights, len(p))
    return code == case, for_case(p, probability, case)[:, case], w, group_codes(groups, len(p), w)


def _logistic(design, offset, event, w, group) -> list[Estimate]:
    """Return the coefficients of a logistic regression without a prior, with their intervals."""

    def cost(v, curved: bool = False):
        score = design @ v + offset
        value = w @ (np.logaddexp(0, score) - event * score)
        if not curved:
            return value
        p = expit(score)
        return value, design.T @ (w * (p - event)), (design.T * (w * p * (1 - p))) @ design

    found, _ = minimise(cost, np.zeros(design.shape[1]))
    inverse = np.linalg.inv(cost(found, True)[2])
    score = ((w * (event - expit(design @ found + offset)))[:, None] * design)[w > 0]
    if group is not None:
        score = np.stack([np.bincount(group, column) for column in score.T], axis=1)
    error = _NORMAL * np.sqrt(np.diag(inverse @ score.T @ score @ inverse))
    return [Estimate(*map(float, one)) for one in zip(found, found - error, found + error, strict=True)]
