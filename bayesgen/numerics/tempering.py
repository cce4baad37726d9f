r"""Exponents of the members, which temper their densities of the features.

A member's density of the features is raised to a power τ, and one exponent more sharpens the average p. The class prior
has none, so that a row without entries keeps it:

.. math:: q(k \mid x) \propto \pi_k \, p(x \mid k)^{\tau}, \qquad
   p_\beta(k \mid x) \propto \pi_k \left(\frac{p(k \mid x)}{\pi_k}\right)^{\beta}

Each maximises the log score of rows left out, for β under exponents and weights that other rows chose, and a log-gamma
prior of spread s and mode e^μ. The sum is concave, and Newton's method, kept within a bracket, finds the one root of
its derivative. (`docs/mathematics/averaged.md`, "Tempering" and "The average", with all formulas and sources.)
"""

import numpy as np

from bayesgen.numerics.pieces import scratch

SPREAD = 0.5  # s, the standard deviation of log τ before the rows
_SHARPENING = 1.05, 0.1  # mode and spread of β
_LEAST = 1e-300  # a probability below counts as this
_LAST = 1e-7  # relative size of the last step of Newton's method, after which the error is 1e-14
CELLS = 1 << 16  # densities worked on at a time, that they stay in the cache


def log_probability(density, log_prior, exponents, least=None) -> np.ndarray:
    """Return log (q(k | x) + s π)/(1 + s) under every member, (M, K, n): no row costs more than log(1 + 1/s) above π.

    ``density`` (M, K, n) is log p(x | k) of each member, and is written over; ``log_prior`` (K, n) or (K, 1), or of
    each member (M, K, 1), is log π; ``exponents`` and ``least`` (M,) are τ and s of each member, s by default 0.
    """
    log_q, q = _tempered(density, log_prior, exponents)
    log_q -= np.log(q.sum(1, keepdims=True))
    if least is not None and (bounded := np.flatnonzero(least)).size:
        share = least[bounded, None, None]
        log_q[bounded] = np.logaddexp(log_q[bounded], np.log(share) + log_prior) - np.log1p(share)
    return log_q


def mixture(density, log_prior, exponents, weights, least) -> np.ndarray:
    """Return the sum over members of w (q + s π)/(1 + s), (K, n), from weights (M,) and as `log_probability`."""
    _, q = _tempered(density, log_prior, exponents)
    share = weights / (1 + least)
    return np.einsum("mkn,mn->kn", q, share[:, None] / q.sum(1)) + share @ least * np.exp(log_prior)


def _tempered(density, log_prior, exponents) -> tuple[np.ndarray, np.ndarray]:
    """Return log q and q up to a term and a factor for each member and row, both (M, K, n), the largest 0 and 1."""
    density *= exponents[:, None, None]
    density += log_prior
    density -= density.max(1, keepdims=True)
    return density, np.exp(density, out=scratch("tempered", density.shape))


def _ratios(density, log_prior, codes) -> tuple[np.ndarray, np.ndarray]:
    """Return the log ratios of the other K - 1 classes to that of each row, (K - 1, M, n), and of their priors."""
    rows, classes = np.arange(len(codes)), log_prior.shape[1]
    true_density = density[:, rows, codes]
    ratio, prior = np.empty((classes - 1, *true_density.shape)), np.empty((classes - 1, 1, len(rows)))
    for place in range(classes - 1):
        other = (codes + 1 + place) % classes
        ratio[place] = density[:, rows, other] - true_density
        prior[place] = log_prior[rows, other] - log_prior[rows, codes]
    return ratio, prior


def expected_exponent(columns: int, rows: float) -> float:
    """Return the exponent to expect from D columns and N rows, e^μ."""
    return (1 + 2 * columns / rows) ** -0.5


def sharpening(probability, log_prior, codes, weight) -> float:
    """Return the exponent β of an average, from its probabilities (n, K) of rows that chose nothing else.

    The other arguments are as of `exponents`; the weights sum to the number of independent rows.
    """
    mode, spread = _SHARPENING
    evidence = np.log(np.maximum(probability, _LEAST)) - log_prior
    return float(exponents(evidence[None], log_prior, codes, weight, mode, spread=spread)[0])


def sharpened(probability, prior, exponent: float) -> np.ndarray:
    """Return sharpened probabilities, up to a factor for each row; ``prior`` are the probabilities of the classes."""
    return prior * (probability / prior) ** exponent


def exponents(density, log_prior, codes, weight, mode, start=None, spread=SPREAD) -> np.ndarray:
    """Return the exponent of every member, (M,), from leave-one-out log p(x_i | k) (M, n, K).

    ``log_prior`` (n, K) holds the log class probabilities without the row, ``codes`` and ``weight`` (n,) the class and
    weight of each row, ``mode`` (M,) the exponents e^μ to expect, where the search begins unless ``start`` is given.
    """
    mode = np.broadcast_to(np.asarray(mode, float), len(density))
    result = (mode if start is None else start).copy()
    step = max(1, CELLS // max(density[0].size, 1))
    for first in range(0, len(density), step):
        members = slice(first, first + step)
        result[members] = _newton(density[members], log_prior, codes, weight, mode[members], result[members], spread)
    return result


def _newton(density, log_prior, codes, weight, mode, tau, spread):
    """Find the exponents of several members at once by Newton's method, each within its bracket."""
    ratio, prior = _ratios(density, log_prior, codes)
    low, high = np.zeros(len(tau)), np.full(len(tau), np.inf)
    for _ in range(100):
        q = tau[:, None] * ratio
        q += prior
        top = q.max(0, initial=0.0)
        q -= top
        np.exp(q, out=q)
        q /= q.sum(0) + np.exp(-top)
        q *= ratio
        mean = q.sum(0)
        q *= ratio
        slope = (1 / tau - 1 / mode) / spread**2 - mean @ weight
        curvature = (q.sum(0) - mean * mean) @ weight + 1 / (tau * spread) ** 2
        low, high = np.where(slope > 0, tau, low), np.where(slope > 0, high, tau)
        new = tau + slope / curvature
        done = np.abs(new - tau) <= _LAST * tau
        middle = np.where(np.isinf(high), 2 * tau, (low + high) / 2)
        tau = np.where(done | ((low < new) & (new < high)), new, middle)
        if done.all():
            break
    return tau
