"""Folds and samples of rows by class, and the number of independent rows that weights are worth."""

import numpy as np

from bayesgen.numerics.sums import by_label


def folds(codes, count: int, seed: int = 0) -> np.ndarray:
    """Return the fold of each row, (n,), by a shuffle that is the same for a seed; each class is dealt out evenly."""
    result = np.empty(len(codes), np.intp)
    order = np.random.default_rng(seed).permutation(len(codes))
    result[order[np.argsort(codes[order], kind="stable")]] = np.arange(len(codes)) % min(count, len(codes))
    return result


def sample(codes, size: int, rng) -> np.ndarray:
    """Draw places of rows without replacement: equally many from each class, or all rows of a smaller class."""
    if size >= len(codes):
        return np.arange(len(codes))
    order = np.argsort(codes.astype(np.min_scalar_type(codes.max())), kind="stable")
    count = np.bincount(codes)
    first, remaining, chosen = np.cumsum(count) - count, size, []
    for turn, k in enumerate(np.argsort(count, kind="stable")):
        take = min(count[k], remaining // (len(count) - turn))
        remaining -= take
        chosen.append(order[first[k] + rng.choice(count[k], take, replace=False, shuffle=False)])
    return np.sort(np.concatenate(chosen))


def effective(weight, group=None) -> float:
    """Return how many rows some rows are worth: their weight, or (Σ w_g)²/Σ w_g² of the weights w_g of groups."""
    if group is None:
        return float(weight.sum())
    total = by_label(group, weight)
    return float(total.sum() ** 2 / (total**2).sum())
