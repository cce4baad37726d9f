"""The tail of importance weights: whether an average over draws rests on a few of them."""

import numpy as np


@np.errstate(under="ignore")
def pareto_shape(log_weight, efficiency: float = 1.0) -> np.ndarray:
    """Shape k of a generalised Pareto distribution, fitted to the largest weights.

    The weights' mean converges like that of a distribution with 1/k moments: an average over draws can be trusted below
    k = 0.7 (Vehtari, Simpson, Gelman, Yao and Gabry 2024, *Journal of Machine Learning Research* 25). The tail is the
    largest min(S/5, 3 sqrt(S/efficiency)) of S weights; the fit is that of Zhang and Stephens (2009, *Technometrics*
    51), drawn to 1/2 as by ten weights.

    Parameters
    ----------
    log_weight : array, shape (S, ...)
        Log weights, up to a constant.
    efficiency : float, default 1
        Effective draws for each draw.

    Returns
    -------
    array, shape (...)
        NaN where the tail has fewer than five different weights.

    Examples
    --------
    >>> log_weight = 0.5 * np.random.default_rng(0).exponential(size=4000)  # weights are Pareto, k = 0.5
    >>> bool(abs(pareto_shape(log_weight) - 0.5) < 0.2)
    True
    """
    log_weight = np.asarray(log_weight, float)
    count, rest = len(log_weight), log_weight.shape[1:]
    size = int(min(count / 5, 3 * (count / efficiency) ** 0.5))
    if size < 5:
        return np.full(rest, np.nan)
    largest = np.sort(np.partition(log_weight.reshape(count, -1), count - size - 1, axis=0)[-size - 1 :], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # of weights that are all 0, or all one
        largest = np.exp(largest - largest[-1])
        return _shape((largest[1:] - largest[0]).T).reshape(rest)


def _shape(x) -> np.ndarray:
    """Shape of the distribution of excesses (..., n), sorted."""
    n = x.shape[-1]
    steps = np.arange(1, 31 + int(n**0.5))
    quartile = x[..., int(n / 4 + 0.5) - 1, None]
    good = (quartile > 0) & np.isfinite(x).all(-1, keepdims=True)
    largest, quartile = np.where(good, x[..., -1:], 1.0), np.where(good, quartile, 1.0)
    b = 1 / largest + (1 - np.sqrt((30 + int(n**0.5)) / (steps - 0.5))) / (3 * quartile)
    k = np.log1p(-b[..., None] * x[..., None, :]).mean(-1)
    profile = n * (np.log(-b / k) - k - 1)
    weight = np.exp(profile - profile.max(-1, keepdims=True))
    b = (b * weight).sum(-1) / weight.sum(-1)
    k = np.log1p(-b[..., None] * x).mean(-1)
    return np.where(good[..., 0], (n * k + 5) / (n + 10), np.nan)
