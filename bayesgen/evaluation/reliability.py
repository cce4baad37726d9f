"""Calibration: predicted probabilities against observed frequencies, in bins."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import betaincinv

from bayesgen.decision.losses import decide
from bayesgen.decision.outcomes import Codes, Floats, Labels, truth_and_probability, weights
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.pieces import pieces
from bayesgen.tables.groups import group_codes

_LEVELS = (0.025, 0.975)
_DRAWS = 2000  # of weights of the groups
_CELLS = 1 << 20  # entries of a table of groups and cells that is held at a time


@dataclass(frozen=True, eq=False)
class ReliabilityTable:
    """Predicted probabilities against observed frequencies, for every class and bin.

    An empty bin has count 0, and NaN for means and interval, which plots leave out.

    Attributes
    ----------
    edges : ndarray, shape (K, bins + 1)
        Edges of the bins, from 0 to 1.
    count : ndarray, shape (K, bins)
        Total weight of the rows in the bin; their number if there are no weights.
    probability, frequency : ndarray, shape (K, bins)
        Mean predicted probability of the class, and fraction of rows truly of the class.
    lower, upper : ndarray, shape (K, bins)
        The 95 % Jeffreys interval of the frequency, for independent rows: central quantiles of
        Beta(hits + 1/2, misses + 1/2), with 0 below no hits and 1 above no misses. Where rows belong to
        groups the interval resamples the groups; see `reliability_table`.
    """

    edges: Floats
    count: Floats
    probability: Floats
    frequency: Floats
    lower: Floats
    upper: Floats


def reliability_table(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    bins: int = 10,
    *,
    sample_weight: ArrayLike | None = None,
    labels: Labels | None = None,
    groups: ArrayLike | None = None,
) -> ReliabilityTable:
    """Return predicted probability and observed frequency, class by class and bin by bin.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels
        As for `bayesgen.evaluation.accuracy`, which raises the same errors.
    bins : int
        Number of bins of equal width, at least 1. A bin holds the probabilities above its lower edge and up to its
        upper edge, the first bin also those at 0.
    groups : array_like, shape (n,), optional
        Label of what a row belongs to, where rows belong together: a patient, a batch, a day. The intervals
        then resample groups in place of rows (the Bayesian bootstrap: each group has a random weight), since
        ten rows of one patient tell less than ten patients. Groups of one row have the intervals of Jeffreys.

    Examples
    --------
    >>> table = reliability_table([0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], bins=2)
    >>> table.count[1], table.frequency[1]
    (array([2., 1.]), array([0.5, 1. ]))
    """
    t, p = truth_and_probability(y_true, y_proba, labels)
    return _table(t[:, None] == np.arange(p.shape[1]), p, bins, sample_weight, group_codes(groups, len(t)))


def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    bins: int = 10,
    *,
    sample_weight: ArrayLike | None = None,
    labels: Labels | None = None,
) -> float:
    """Return the mean over rows of |frequency - mean probability| of their bin, from 0 to 1.

    The probability is that of the most probable class, and the frequency how often that class is true. It depends on
    the bins, and is not proper: always predicting the class frequencies makes it zero. That of each class follows from
    `reliability_table`, for which parameters and errors are the same.

    >>> y_proba = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]
    >>> expected_calibration_error([0, 1, 0, 1], y_proba)
    0.25
    """
    t, p = truth_and_probability(y_true, y_proba, labels)
    table = _table((decide(p) == t)[:, None], p.max(axis=1, keepdims=True), bins, sample_weight)
    gap = np.abs(table.frequency - table.probability)
    return float(np.nansum(table.count * gap) / table.count.sum())


def _table(
    event: NDArray[np.bool_], p: Floats, bins: int, sample_weight: ArrayLike | None, group: Codes | None = None
) -> ReliabilityTable:
    """Tabulate events (n, m), true or false, against their probabilities p (n, m), in m rows of bins."""
    w, m = weights(sample_weight, len(p)), p.shape[1]
    check_count("bins", bins)
    edges = np.arange(bins + 1) / bins  # linspace gives 0.30000000000000004
    cell = (np.searchsorted(edges[1:-1], p) + bins * np.arange(m)).ravel()
    weight = np.repeat(w, m)
    found = frequencies(event.ravel(), cell, m * bins, weight, None if group is None else np.repeat(group, m))
    count, frequency, lower, upper = (values.reshape(m, bins) for values in found)
    total = np.bincount(cell, weights=weight * p.ravel(), minlength=m * bins).reshape(m, bins)
    probability = total / np.where(count > 0, count, np.nan)
    return ReliabilityTable(np.tile(edges, (m, 1)), count, probability, frequency, lower, upper)


def frequencies(event, cell, cells: int, weight, group=None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the weight of the rows in each cell, the frequency of the event, and both ends of its 95 % interval.

    Rows that are independent have the interval of Jeffreys: quantiles of Beta(hits + 1/2, misses + 1/2), which is the
    distribution of the frequency where each row has an exponential weight, and half a hit and half a miss have gammas
    of shape 1/2 (the Bayesian bootstrap, Rubin 1981, *Annals of Statistics* 9, with Jeffreys' prior). Rows that belong
    together share one exponential weight, and the half hit and the half miss are of the mean size of the groups in the
    cell. An interval reaches to 0 where the event never happened, and to 1 where it always did; an empty cell has NaN.
    """
    count, hits = (np.bincount(cell, weights=v, minlength=cells) for v in (weight, weight * event))
    occupied = np.where(count > 0, count, np.nan)
    frequency = hits / occupied
    if group is None:
        low, high = (betaincinv(hits + 0.5, occupied - hits + 0.5, level) for level in _LEVELS)
    else:
        low, high = _of_groups(event, cell, cells, weight, group)
    return count, frequency, np.where(frequency == 0, 0.0, low), np.where(frequency == 1, 1.0, high)


def _of_groups(event, cell, cells, weight, group):
    """Return the ends of the interval of the frequency in each cell, from random weights of the groups."""
    rng = np.random.default_rng(0)
    seen = weight > 0
    _, place = np.unique(group[seen], return_inverse=True)
    cell_of, shape = (place, cell[seen]), (int(place.max(initial=-1)) + 1, cells)
    happened, size = (csr_array((v[seen], cell_of), shape) for v in (weight * event, weight))  # of each group, by cell
    met = np.bincount(size.indices, minlength=cells)
    hits, misses = (size.sum(0) / met.clip(1) * rng.standard_gamma(0.5, (_DRAWS, cells)) for _ in range(2))
    for piece in pieces(shape[0], max(cells, _DRAWS), _CELLS):
        drawn = rng.standard_exponential((_DRAWS, piece.stop - piece.start))
        found = drawn @ happened[piece]
        hits, misses = hits + found, misses + drawn @ size[piece] - found
    with np.errstate(invalid="ignore"):  # an empty cell
        share = hits / (hits + misses)
    return [np.where(met > 0, np.quantile(np.where(met > 0, share, 0.0), level, axis=0), np.nan) for level in _LEVELS]
