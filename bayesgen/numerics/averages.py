"""Averages over draws: of a density, how many draws it rests on, and how many of them are effective."""

import numpy as np

from bayesgen.numerics.pieces import CELLS, DENSITIES, split_rows


def log_mean_density(model, params, x) -> np.ndarray:
    """Log of the mean over draws of p(row, t = k | params); see `mean_density`."""
    return mean_density(model, params, x)[0]


@np.errstate(under="ignore")
def mean_density(model, params, x, *, effective: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
    """Log of the mean over draws of p(row, t = k | params): draws and rows in pieces, the maximum taken out of exp.

    Parameters
    ----------
    model : Model
        Knows `log_likelihood_rows`.
    params : mapping to arrays (S, ...)
        ParameterDraws.
    x : rows, checked
        An array, or a mapping to arrays.
    effective : bool
        Whether to give the effective number of draws too.

    Returns
    -------
    array, shape (n, K), or (n,) for a model without classes
        The log of the mean.
    array of the same shape, or None
        (Σ w)²/Σ w² of the densities w; 1 where all are 0.
    """
    count = len(next(iter(params.values())))
    parts = list(split_rows(x, 1024))
    tops, totals = [np.full(1, -np.inf)] * len(parts), [np.zeros(1)] * len(parts)
    squares = [np.zeros(1)] * len(parts)
    step, done = 16, 0
    while done < count:  # draws outside, so that what does not depend on rows is worked out once
        density_of = model.row_density({site: v[done : done + step] for site, v in params.items()})
        done += step
        for i, part in enumerate(parts):
            density = density_of(part)
            top = np.maximum(tops[i], density.max(0))
            anchor = np.where(np.isfinite(top), top, 0.0)  # exp(-inf - -inf) is NaN
            step = max(1, DENSITIES // max(density[0].size, 1)) if i == 0 else step
            totals[i] = totals[i] * np.exp(tops[i] - anchor)
            if effective:
                squares[i] = squares[i] * np.exp(2 * (tops[i] - anchor))
            few = max(1, CELLS // (4 * max(density[0].size, 1)))  # draws that stay in the cache from exp to sum
            for start in range(0, len(density), few):
                weight = density[start : start + few] - anchor
                totals[i] = totals[i] + np.exp(weight, out=weight).sum(0)
                if effective:
                    squares[i] = squares[i] + np.einsum("s...,s...->...", weight, weight)
            tops[i] = top
    with np.errstate(divide="ignore"):
        result = [np.where(np.isfinite(t), t, 0.0) + np.log(s / count) for t, s in zip(tops, totals, strict=True)]
    if not effective:
        return np.concatenate(result, axis=-1).T, None
    number = [np.divide(t * t, q, out=np.ones_like(q), where=q > 0) for t, q in zip(totals, squares, strict=True)]
    return np.concatenate(result, axis=-1).T, np.concatenate(number, axis=-1).T


def chain_efficiency(values) -> float:
    """Effective draws of a mean for each draw, 1 at most, of chains (chains, draws).

    By the initial positive sequence of autocorrelations (Geyer 1992, *Statistical Science* 7), within and between
    chains (Gelman et al. 2013, *Bayesian Data Analysis*, section 11.5).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> slow = np.repeat(rng.normal(size=(4, 100)), 10, axis=1)  # every draw ten times
    >>> round(chain_efficiency(slow), 1), round(chain_efficiency(rng.normal(size=(4, 1000))), 1)
    (0.1, 1.0)
    """
    values = np.asarray(values, float)
    count, size = values.shape[1], 1 << (2 * values.shape[1] - 1).bit_length()
    if count < 4:
        return 1.0
    z = values - values.mean(1, keepdims=True)
    covariance = np.fft.irfft(np.abs(np.fft.rfft(z, size)) ** 2, size)[:, :count].mean(0) / count
    between = values.mean(1).var(ddof=1) if len(values) > 1 else 0.0
    total = covariance[0] + between
    if not total > 0:
        return 1.0
    correlation = 1 - (covariance[0] - covariance) / total
    pairs = correlation[: count - count % 2].reshape(-1, 2).sum(1)
    end = np.argmax(pairs < 0) if (pairs < 0).any() else len(pairs)
    return float(min(1.0, 1 / max(2 * np.minimum.accumulate(pairs[:end]).sum() - 1, 1e-3)))
