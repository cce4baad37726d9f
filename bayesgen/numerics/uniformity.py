"""Whether ranks are uniform: an exact test by their distribution function, and the band that it does not reject."""

import functools
import math

import numpy as np
from scipy import stats
from scipy.special import gammaln


def uniformity(ranks, draws: int) -> float:
    """P value of ranks as independent uniform numbers on 0..draws: exact, by their whole distribution function.

    At each j the count of ranks below j is binomial; the statistic is the smallest of the two-sided p values over all
    j, and its own distribution follows by recursion over j. It is the test whose acceptance region is the simultaneous
    band of Säilynoja, Bürkner and Vehtari (2022, *Statistics and Computing* 32), here without simulation.

    Parameters
    ----------
    ranks : int array, shape (n,)
        The ranks.
    draws : int
        The largest rank there can be.

    Examples
    --------
    >>> uniformity(np.arange(100), 99)
    1.0
    >>> uniformity(np.full(20, 3), 99) < 1e-10
    True
    """
    ranks = np.asarray(ranks)
    below = np.bincount(ranks, minlength=draws + 1).cumsum()[:-1]
    return _p_value(len(ranks), draws, _tails(len(ranks), draws)[np.arange(draws), below].min())


def band(simulations: int, draws: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest counts of ranks below 1..draws that `uniformity` does not reject at ``level``.

    Parameters
    ----------
    simulations : int
        Number of ranks.
    draws : int
        The largest rank there can be.
    level : float
        Probability that uniform ranks leave the band anywhere.

    Returns
    -------
    low, high : int array, shape (draws,)
    """
    low, high = 1e-20, 1.0  # of the pointwise p value at the edge: p value of the whole at most, and above, the level
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _p_value(simulations, draws, middle) <= level else (low, middle)
    return _inside(simulations, draws, low)


@functools.lru_cache(maxsize=4)
def _tails(simulations, draws):
    """Two-sided p value of every count 0..simulations of ranks below 1..draws: (draws, simulations + 1)."""
    share = np.arange(1, draws + 1)[:, None] / (draws + 1)
    count = np.arange(simulations + 1)
    below, above = stats.binom.cdf(count, simulations, share), stats.binom.sf(count - 1, simulations, share)
    return np.minimum(1.0, 2 * np.minimum(below, above))


def _inside(simulations, draws, least):
    """Range of the counts whose two-sided p value is above ``least`` (to rounding) at every point."""
    inside = _tails(simulations, draws) > least * (1 + 1e-9)
    return inside.argmax(1), simulations - inside[:, ::-1].argmax(1)


@functools.lru_cache(maxsize=4096)
def _p_value(simulations, draws, least):
    """Probability that the count of uniform ranks has a two-sided p value of ``least`` or less at some point.

    The counts are a Markov chain: of the ranks that are not below j, each is j with probability 1/(draws + 1 - j).
    """
    if not (_tails(simulations, draws) > least * (1 + 1e-9)).any(1).all():
        return 1.0
    log_factorial = gammaln(np.arange(simulations + 1) + 1.0)
    old, probability = np.zeros(1, int), np.ones(1)
    for j, (low, high) in enumerate(zip(*_inside(simulations, draws, least), strict=True)):
        share = 1 / (draws + 1 - j)
        new = np.arange(low, high + 1)
        more = new - old[:, None]
        step = log_factorial[simulations - old][:, None] - log_factorial[np.maximum(more, 0)]
        step -= log_factorial[simulations - new]
        step += more * math.log(share) + (simulations - new) * math.log1p(-share)
        probability = probability @ np.where(more >= 0, np.exp(step), 0.0)
        old = new
    return min(1.0, max(0.0, 1.0 - float(probability.sum())))
