"""Components of classes by k-means within each class; the conjugate members take the components as groups.

The centres are learned, and a row belongs to the nearest centre of its class. So the centres are learned without the
rows that are left out, and the statistics of the groups subtract these rows.
"""

import numpy as np


def fit_components(x, codes, order, weight, count: int) -> tuple[np.ndarray, np.ndarray]:
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

    Returns
    -------
    centres : array, shape (G, D)
    owner : int array, shape (G,)
        The class of each, in order.
    """
    centres = {}
    for k in order:
        own = codes == k
        centres[k] = _centres(x[own], weight[own], max(1, min(count, int(own.sum()) // 3)))
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


def _centres(x, weight, count, steps: int = 30):
    """Return the centres of Lloyd's algorithm from those of `_start`."""
    if count == 1:
        return (weight @ x / weight.sum() if len(x) else np.zeros(x.shape[1]))[None]
    near = _start(x, weight, count)
    centres = np.zeros((count, x.shape[1]))
    for _ in range(steps):
        member = np.zeros((count, len(x)))
        member[near, np.arange(len(x))] = weight
        size = member.sum(1, keepdims=True)
        centres = np.where(size > 0, (member @ x) / np.maximum(size, 1e-300), centres)
        last, near = near, _nearest(x, centres)
        if (last == near).all():
            break
    return centres


def _start(x, weight, count):
    """Return the component of each row: the one of largest sum of squares is halved along its principal direction."""
    near, parts = np.zeros(len(x), np.intp), [_halves(x, weight)]
    for j in range(1, count):
        widest = int(np.argmax([part[0] for part in parts]))
        squares, upper = parts[widest]
        if not squares > 0:
            break
        places = np.flatnonzero(near == widest)
        near[places[upper]] = j
        parts.append((0.0, None))
        for i in (widest, j):
            own = near == i
            parts[i] = _halves(x[own], weight[own])
    return near


def _halves(x, weight):
    """Return the sum of squares of rows about their mean, and the rows above the cut that takes most of it away.

    The rows are cut in two by their projections on the first principal component, where the sum of squares of the
    projections within the two parts is least.
    """
    centred = x - weight @ x / weight.sum()
    scaled = np.sqrt(weight)[:, None] * centred
    squares = float((scaled**2).sum())
    if len(x) < 2 or not squares > 0:
        return 0.0, None
    tall = len(x) > x.shape[1]
    vectors = np.linalg.eigh(scaled.T @ scaled if tall else scaled @ scaled.T)[1][:, -1]
    along = centred @ (vectors if tall else scaled.T @ vectors)
    order = np.argsort(along, kind="stable")
    total = np.cumsum(weight[order])
    moved = np.cumsum((weight * along)[order])
    between = moved[:-1] ** 2 / (total[:-1] * (total[-1] - total[:-1])) 
    cut = along[order[int(between.argmax())]]
    return squares, along > cut
