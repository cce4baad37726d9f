r"""How far each member is to be trusted: the exponent of its features.

The predictive of a wrong model is too sure of itself: naive Bayes counts correlated columns twice, a full covariance
trusts a few rows. A member's probabilities are those of its features to the power τ, the class prior left whole, so that
a row without entries keeps the prior:

.. math:: q(k \mid x) \propto \pi_k \, p(x \mid k)^{\tau}

From leave-one-out densities f_ik = log p(x_i | k), τ maximises the concave

.. math:: \sum_i w_i \log q(t_i \mid x_i) + (u - e^u)/s^2, \quad u = \log \tau - \mu, \quad s = \tfrac12,
   \quad \mu = -\tfrac12 \log(1 + 2D/N)

whose second part, a log-gamma density in u with its mode at 0, expects less of many columns from few rows. In τ it is
log τ - τ e^{-μ} and so concave like the first: Newton's method, kept within a bracket, finds the one root of

.. math:: \sum_i w_i \big(f_{i t_i} - \mathrm{E}_{q} f_i\big) + (1/\tau - e^{-\mu})/s^2, \quad \text{of derivative} \quad
   -\sum_i w_i \mathrm{Var}_q f_i - 1/(\tau s)^2.
"""

import numpy as np

_SPREAD = 0.5
_CELLS = 1 << 18  # densities worked on at a time


def log_probability(density, log_prior, exponents) -> np.ndarray:
    """Log q(k | x) of every member.

    Parameters
    ----------
    density : array, shape (M, n, K)
        Log p(x | k).
    log_prior : array, shape (n, K) or (K,)
        Log of the class probabilities.
    exponents : array, shape (M,)
    """
    joint = exponents[:, None, None] * density
    joint += log_prior
    joint -= joint.max(2, keepdims=True)
    joint -= np.log(np.exp(joint).sum(2, keepdims=True))
    return joint


def expected(columns: int, rows: float) -> float:
    """The exponent to expect of D columns and N rows, e^μ."""
    return (1 + 2 * columns / rows) ** -0.5


def exponents(density, log_prior, codes, weight, mode: float, start=None) -> np.ndarray:
    """The exponent of every member.

    Parameters
    ----------
    density : array, shape (M, n, K)
        Leave-one-out log p(x_i | k).
    log_prior : array, shape (n, K)
        Log of the class probabilities without the row.
    codes : int array, shape (n,)
        The class of each row.
    weight : array, shape (n,)
        Its weight.
    mode : float
        The exponent to expect.
    start : array, shape (M,), optional
        Where to begin; by default at the mode.

    Returns
    -------
    array, shape (M,)
    """
    result = np.full(len(density), mode) if start is None else start.copy()
    step = max(1, _CELLS // max(density[0].size, 1))
    for first in range(0, len(density), step):
        part = slice(first, first + step)
        result[part] = _newton(density[part], log_prior, codes, weight, mode, result[part])
    return result


def _newton(density, log_prior, codes, weight, mode, tau):
    """Newton's method for several members at once, each within its bracket."""
    own = density[:, np.arange(len(codes)), codes]
    low, high = np.zeros(len(tau)), np.full(len(tau), np.inf)
    for _ in range(100):
        q = np.exp(log_probability(density, log_prior, tau))
        mean = (q * density).sum(2)
        slope = (own - mean) @ weight + (1 / tau - 1 / mode) / _SPREAD**2
        q *= (density - mean[..., None]) ** 2
        curvature = q.sum(2) @ weight + 1 / (tau * _SPREAD) ** 2
        low, high = np.where(slope > 0, tau, low), np.where(slope > 0, high, tau)
        new = tau + slope / curvature
        middle = np.where(np.isinf(high), 2 * tau, (low + high) / 2)
        new = np.where((low < new) & (new < high), new, middle)
        done, tau = np.abs(new - tau) <= 1e-9 * tau, new
        if done.all():
            break
    return tau
