"""Folds and samples of rows by class, and the number of independent rows that weights are worth."""

import numpy as np

from bayesgen.numerics.sums import by_label

_WHOLE = 1e-9  # relative distance from a whole number within which a weight is one


def folds(codes, count: int, seed: int = 0) -> np.ndarray:
    """Return the fold of each row, (n,), by a shuffle that is the same for a seed; each class is dealt out evenly."""
    result = np.empty(len(codes), np.intp)
    order = np.random.default_rng(seed).permutation(len(codes))
    result[order[np.argsort(codes[order], kind="stable")]] = np.arange(len(codes)) % min(count, len(codes))
    return result


def times(weight) -> np.ndarray | None:
    """Return how often each row is there by its weight (n,), or None: weights that are not all whole say no such thing.

    >>> times(np.array([1.0, 3.0])), times(np.array([0.5, 3.0]))
    (array([1, 3]), None)
    """
    whole = np.rint(weight)
    return whole.astype(np.int64) if (np.abs(weight - whole) <= _WHOLE * whole).all() else None


def sample(codes, size: int, rng, times=None) -> np.ndarray:
    """Draw places of rows without replacement: equally many from each class, or all rows of a smaller class.

    A row that is there several ``times`` (n,) is drawn up to so often, as if it were written out.
    """
    times = np.ones(len(codes), np.int64) if times is None else times
    if size >= times.sum():
        return np.repeat(np.arange(len(codes)), times)
    order = np.argsort(codes.astype(np.min_scalar_type(codes.max())), kind="stable")
    end, count = np.cumsum(times[order]), np.bincount(codes, times).astype(np.int64)
    first, remaining, chosen = np.cumsum(count) - count, size, []
    for turn, k in enumerate(np.argsort(count, kind="stable")):
        take = min(count[k], remaining // (len(count) - turn))
        remaining -= take
        chosen.append(first[k] + rng.choice(count[k], take, replace=False, shuffle=False))
    return np.sort(order[np.searchsorted(end, np.concatenate(chosen), side="right")])


def effective(weight, group=None) -> float:
    """Return how many rows some rows are worth, (Σ w)²/Σ w² of their weights, or of those of groups (Kish 1965)."""
    total = weight if group is None else by_label(group, weight)
    return float(total.sum() ** 2 / (total**2).sum())
