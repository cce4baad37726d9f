"""Components of classes by k-means within each class; the conjugate members take the components as groups.

The centres are learned, and a row belongs to the nearest centre of its class. So the centres are learned without the
rows that are left out, and the statistics of the groups subtract these rows.
"""

import numpy as np


def fit_components(x, codes, order, weight, count: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Find the centres of the components of every class.

    Parameters
    ----------
    x : array, shape (n, D)
        Complete rows, in comparable units.
    codes : int array, shape (n,)
        Classes.
    order : int array, shape (K,)
        The classes in the order in which their components are drawn.
    weight : array, shape (n,)
        Weights.
    count : int
        Components per class; fewer where it has fewer than three rows for each.
    rng : Generator
        Source of the starts of the search.

    Returns
    -------
    centres : array, shape (G, D)
    owner : int array, shape (G,)
        The class of each, in order.
    """
    centres = {}
    for k in order:
        own = codes == k
        centres[k] = _centres(x[own], weight[own], max(1, min(count, int(own.sum()) // 3)), rng)
    classes = range(len(order))
    return np.concatenate([centres[k] for k in classes]), np.repeat(classes, [len(centres[k]) for k in classes])


def assign(x, codes, centres, owner) -> np.ndarray:
    """Return the nearest component of each row among the components of its class."""
    if len(owner) == owner[-1] + 1:
        return codes
    result = np.empty(len(x), np.intp)
    ends = np.searchsorted(codes, np.arange(owner[-1] + 2)) if (codes[1:] >= codes[:-1]).all() else None
    first = np.searchsorted(owner, np.arange(owner[-1] + 2))
    for k in range(owner[-1] + 1):
        own = np.flatnonzero(codes == k) if ends is None else slice(ends[k], ends[k + 1])
        result[own] = _nearest(x[own], centres[first[k] : first[k + 1]]) + first[k]
    return result


def _nearest(x, centres):
    """Return the nearest centre of each row, the first in a tie; for few centres, one by one is faster than argmin."""
    result = np.zeros(len(x), np.intp)
    if len(centres) > 1:
        least, *others = (-2 * centres) @ x.T + (centres**2).sum(1)[:, None]
        for j, square in enumerate(others, 1):
            nearer = square < least
            result[nearer] = j
            np.minimum(least, square, out=least)
    return result


def _centres(x, weight, count, rng, tries: int = 3, steps: int = 30):
    """Return the best of a few runs of Lloyd's algorithm, each from centres drawn far apart (k-means++)."""
    if count == 1:
        return (weight @ x / weight.sum() if len(x) else np.zeros(x.shape[1]))[None]
    best, least = None, np.inf
    for _ in range(tries):
        centres = _start(x, weight, count, rng)
        near = None
        for _ in range(steps):
            last, near = near, _nearest(x, centres)
            if last is not None and (last == near).all():
                break
            member = np.zeros((count, len(x)))
            member[near, np.arange(len(x))] = weight
            size = member.sum(1, keepdims=True)
            centres = np.where(size > 0, (member @ x) / np.maximum(size, 1e-300), centres)
        cost = weight @ ((x - centres[near]) ** 2).sum(1)
        if cost < least * (1 - 1e-9):
            best, least = centres, cost
    return best


def _start(x, weight, count, rng):
    chance, chosen = weight, []
    squares = np.full(len(x), np.inf)
    for _ in range(count):
        cumulative = np.cumsum(chance)
        place = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        chosen.append(x[min(place, len(x) - 1)])
        squares = np.minimum(squares, ((x - chosen[-1]) ** 2).sum(1))
        chance = weight * squares if squares.any() else weight
    return np.array(chosen)
