"""Random numbers: their source, choices by weight, averages over draws and their tails, uniformity of ranks.

A mean density comes with the number of draws it rests on, and a chain with the share of its draws that are effective.
The tail of importance weights shows if an average rests on a few draws. Ranks are tested for uniformity, exactly, by
their distribution function, and pictures show the band that the test does not reject.
"""

import functools
import math

import numpy as np
from scipy import stats
from scipy.special import gammaln

from bayesgen.numerics.pieces import CELLS, DENSITIES, split_rows

LARGEST_K = 0.7  # Pareto k of weights above which they do not show what the draws miss
_LEFT = 0.01  # correlation of successive draws that is taken as none
_MOST = 500  # rounds between them


def generator(seed) -> np.random.Generator:
    """Return a NumPy generator from a seed: None, int, Generator, RandomState or JAX key."""
    if isinstance(seed, np.random.RandomState):
        seed = seed.randint(2**31)
    elif hasattr(seed, "dtype") and "key" in str(seed.dtype):  # a typed JAX key
        from bayesgen.core import program

        seed = program.jax.random.key_data(seed)
    if isinstance(seed, np.random.Generator | None):
        return np.random.default_rng(seed)
    words = np.asarray(seed)  # an int, or the words of a JAX key
    if words.dtype.kind not in "iu" or (words < 0).any():
        raise ValueError(f"a seed is None, an int >= 0, a Generator, a RandomState or a JAX key; got {seed!r}")
    return np.random.default_rng(seed if words.ndim == 0 else words.ravel().astype(np.uint32))


def log_mean_density(model, params, x) -> np.ndarray:
    """Return the log of the mean over draws of p(row, t = k | params); see `mean_density`."""
    return mean_density(model, params, x)[0]


@np.errstate(under="ignore")
def mean_density(model, params, x) -> tuple[np.ndarray, np.ndarray]:
    """Return the log of the mean over draws of p(row, t = k | params), by log-sum-exp over pieces of draws and rows.

    ``params`` are S draws, arrays (S, ...); ``x`` are checked rows. The mean is an array (n, K), or (n,) for a model
    without classes; beside it stands the effective number of draws: (Σ w)²/Σ w² of the densities w, 1 where all are 0.
    """
    count = len(next(iter(params.values())))
    parts = list(split_rows(x, 1024))
    tops, totals = [np.full(1, -np.inf)] * len(parts), [np.zeros(1)] * len(parts)
    squares = [np.zeros(1)] * len(parts)
    step, done = 16, 0
    while done < count:  # draws in the outer loop, so that terms without rows are computed once
        density_of = model.row_density({site: v[done : done + step] for site, v in params.items()})
        done += step
        for i, rows in enumerate(parts):
            density = density_of(rows)
            top = np.maximum(tops[i], density.max(0))
            anchor = np.where(np.isfinite(top), top, 0.0)  # exp(-inf - -inf) is NaN
            step = max(1, DENSITIES // max(density[0].size, 1)) if i == 0 else step
            totals[i] = totals[i] * np.exp(tops[i] - anchor)
            squares[i] = squares[i] * np.exp(2 * (tops[i] - anchor))
            few = max(1, CELLS // (4 * max(density[0].size, 1)))  # draws that stay in the cache from exp to sum
            for start in range(0, len(density), few):
                weight = density[start : start + few] - anchor
                totals[i] = totals[i] + np.exp(weight, out=weight).sum(0)
                squares[i] = squares[i] + np.einsum("s...,s...->...", weight, weight)
            tops[i] = top
    with np.errstate(divide="ignore"):
        result = [np.where(np.isfinite(t), t, 0.0) + np.log(s / count) for t, s in zip(tops, totals, strict=True)]
    number = [np.divide(t * t, q, out=np.ones_like(q), where=q > 0) for t, q in zip(totals, squares, strict=True)]
    return np.concatenate(result, axis=-1).T, np.concatenate(number, axis=-1).T


def choose(weights, rng, size: tuple[int, ...] = ()) -> np.ndarray:
    """Draw places in each row of ``weights`` (n, G), with probability in proportion to the weights: (*size, n)."""
    cumulative = np.cumsum(weights, axis=1)
    height = rng.random((*size, len(weights))) * cumulative[:, -1]
    if not size:
        return (height[:, None] > cumulative[:, :-1]).sum(1)
    places = [np.searchsorted(bounds, height[..., i]) for i, bounds in enumerate(cumulative[:, :-1])]
    return np.stack(places, -1) if places else np.zeros(height.shape, np.intp)


def systematic(rng, weight, count: int) -> np.ndarray:
    """Return places of ``count`` draws in random order, each as often as its weight says, rounded up or down."""
    order = rng.permutation(len(weight))
    upto = weight[order].cumsum()
    places = np.searchsorted(upto / upto[-1], (rng.random() + np.arange(count)) / count, side="right")
    return rng.permutation(order[np.minimum(places, len(weight) - 1)])


def rounds_apart(seen, codes, known) -> int:
    """Return the rounds of Gibbs' sampler, of rows and parameters in turn, after which draws hardly correlate.

    In a round the correlation falls by at least the part of the information that is missing: the largest part of the
    rows of a class, over pairs of columns, that lack one of the two; all rows lack all where ``codes`` is None, as
    classes are not known. ``seen`` (n, D) is False where an entry is missing; ``known`` (K,) other rows lack nothing.

    >>> rounds_apart(np.zeros((100, 1), bool), np.zeros(100, int), np.array([20.0]))  # 100 of 120 are missing
    26
    """
    if codes is None:
        missing = len(seen) / (len(seen) + known.sum())
    else:
        groups = ((seen[codes == k].astype(float), known[k]) for k in np.unique(codes))
        missing = max((1 - ((mask.T @ mask).min() + n) / (len(mask) + n) for mask, n in groups), default=0.0)
    return math.ceil(math.log(_LEFT) / math.log(min(max(missing, _LEFT), _LEFT ** (1 / _MOST))))


def chain_efficiency(values) -> float:
    """Return the effective number of draws of a mean per draw, at most 1, for chains (chains, draws).

    It sums the initial positive sequence of autocorrelations (Geyer 1992, *Statistical Science* 7), within and between
    chains (Gelman et al. 2013, *Bayesian Data Analysis*, section 11.5).

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


@np.errstate(under="ignore")
def pareto_shape(log_weight, efficiency: float = 1.0) -> np.ndarray:
    """Return the shape k of a generalised Pareto distribution fitted to the largest weights.

    The mean of the weights converges as if their distribution had 1/k moments: an average over draws can be trusted
    below k = 0.7 (Vehtari, Simpson, Gelman, Yao and Gabry 2024, *Journal of Machine Learning Research* 25). The tail is
    the largest min(S/5, 3 sqrt(S/efficiency)) of S weights. The fit follows Zhang and Stephens (2009, *Technometrics*
    51), shrunk to 1/2 as by ten weights. Log weights (S, ...) give an array (...), NaN where the tail has fewer than
    five different weights. ``efficiency`` is the number of effective draws for each draw.
    """
    log_weight = np.asarray(log_weight, float)
    count, shape = len(log_weight), log_weight.shape[1:]
    size = int(min(count / 5, 3 * (count / efficiency) ** 0.5))
    if size < 5:
        return np.full(shape, np.nan)
    largest = np.sort(np.partition(log_weight.reshape(count, -1), count - size - 1, axis=0)[-size - 1 :], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # where all weights are 0, or all are equal
        largest = np.exp(largest - largest[-1])
        return _shape((largest[1:] - largest[0]).T).reshape(shape)


def _shape(x) -> np.ndarray:
    """Return the Pareto shape of sorted excesses (..., n)."""
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


def uniformity(ranks, draws: int) -> float:
    """Return the exact p value of ranks as independent uniform numbers on 0..draws, by their distribution function.

    At each j the count of ranks below j is binomial. The statistic is the smallest of the two-sided p values over all
    j, and its own distribution follows by recursion over j. The acceptance region of the test is the simultaneous band
    of Säilynoja, Bürkner and Vehtari (2022, *Statistics and Computing* 32), here without simulation.
    """
    ranks = np.asarray(ranks)
    below = np.bincount(ranks, minlength=draws + 1).cumsum()[:-1]
    return _p_value(len(ranks), draws, _tails(len(ranks), draws)[np.arange(draws), below].min())


def band(simulations: int, draws: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and largest counts of ranks below 1..draws that `uniformity` accepts, (draws,) each.

    ``simulations`` uniform ranks leave the band somewhere with the probability ``level``.
    """
    low, high = 1e-20, 1.0  # brackets the pointwise p value at which the overall p value passes the level
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _p_value(simulations, draws, middle) <= level else (low, middle)
    return _inside(simulations, draws, low)


@functools.lru_cache(maxsize=4)
def _tails(simulations, draws):
    """Return the two-sided p value of every count 0..simulations of ranks below 1..draws, (draws, simulations + 1)."""
    share = np.arange(1, draws + 1)[:, None] / (draws + 1)
    count = np.arange(simulations + 1)
    below, above = stats.binom.cdf(count, simulations, share), stats.binom.sf(count - 1, simulations, share)
    return np.minimum(1.0, 2 * np.minimum(below, above))


def _inside(simulations, draws, least):
    """Return, at every point, the range of counts whose two-sided p value is above ``least`` (to rounding)."""
    inside = _tails(simulations, draws) > least * (1 + 1e-9)
    return inside.argmax(1), simulations - inside[:, ::-1].argmax(1)


@functools.lru_cache(maxsize=4096)
def _p_value(simulations, draws, least):
    """Return the probability that uniform ranks have a two-sided p value of ``least`` or less at some point.

    The counts are a Markov chain: each rank that is not below j equals j with probability 1/(draws + 1 - j).
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


def log_gammas(rng, shape_parameter, size) -> np.ndarray:
    """Draw logarithms of Gamma(shape, 1) by Marsaglia and Tsang's boost: G(a) = G(a + 1) U^(1/a).

    Gamma draws of a small shape a leave float64, one in e^(708 a) of them; their logarithms do not.
    """
    return np.log(rng.standard_gamma(shape_parameter + 1, size)) + np.log1p(-rng.random(size)) / shape_parameter
