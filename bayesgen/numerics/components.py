"""Components of classes by k-means, from halves along principal components: nothing is drawn.

The largest part of a class is cut in two where the squares within the two halves of its projections are least, until
there are as many parts as asked for; then Lloyd's algorithm moves rows to the nearest centre of their class.
"""

import numpy as np

_STEPS = 30  # of Lloyd's algorithm, at most


def fit_components(x, codes, classes: int, weight, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres (G, D) of the components of every class, and the class (G,) of each, in order.

    There are ``count`` of each of K ``classes``; fewer where it has fewer than three rows, or one distinct row, for
    each. Rows ``x`` (n, D) are complete, in comparable units, of classes ``codes`` (n,) and of weights (n,).
    """
    centres = []
    for k in range(classes):
        of_class = codes == k
        centres.append(_centres(x[of_class], weight[of_class], max(1, min(count, int(of_class.sum()) // 3))))
    return np.concatenate(centres), np.repeat(range(classes), [len(centres_of_class) for centres_of_class in centres])


def nearest_group(x, codes, centres, owner) -> np.ndarray:
    """Return the nearest component of each row among the components of its class."""
    if len(owner) == owner[-1] + 1:
        return codes
    result = np.empty(len(x), np.intp)
    ends = np.searchsorted(codes, np.arange(owner[-1] + 2)) if (codes[1:] >= codes[:-1]).all() else None
    first = np.searchsorted(owner, np.arange(owner[-1] + 2))
    for k in range(owner[-1] + 1):
        of_class = np.flatnonzero(codes == k) if ends is None else slice(ends[k], ends[k + 1])
        result[of_class] = _nearest(x[of_class], centres[first[k] : first[k + 1]]) + first[k]
    return result


def _nearest(x, centres):
    return ((-2 * centres) @ x.T + (centres**2).sum(1)[:, None]).argmin(0)


def _centres(x, weight, count):
    """Return the centres to which Lloyd's algorithm comes from the components of `_halved`."""
    if count == 1:
        return (weight @ x / weight.sum() if len(x) else np.zeros(x.shape[1]))[None]
    near = _halved(x, weight, count)
    centres = np.zeros((near.max() + 1, x.shape[1]))
    for _ in range(_STEPS):
        member = np.zeros((len(centres), len(x)))
        member[near, np.arange(len(x))] = weight
        size = member.sum(1, keepdims=True)
        centres = np.where(size > 0, (member @ x) / np.maximum(size, 1e-300), centres)
        last, near = near, _nearest(x, centres)
        if (last == near).all():
            break
    return centres


def _halved(x, weight, count):
    """Return the component of each row: the one of the largest sum of squares is cut in two until there are ``count``.

    Nothing is drawn, so folds, which share most rows, share the components too, where k-means from random starts would
    end in others. (Su and Dy 2007, *Intelligent Data Analysis* 11, 319-338, cut at the mean.)
    """
    near, halves = np.zeros(len(x), np.intp), [_halves(x, weight)]
    for k in range(1, count):
        widest = max(range(k), key=lambda j: halves[j][0])
        squares, above = halves[widest]
        if not squares > 0:
            break
        near[np.flatnonzero(near == widest)[above]] = k
        if k + 1 == count:  # no cut follows, which would ask for its halves
            break
        cut = (near == j for j in (widest, k))
        halves[widest], new = (_halves(x[part], weight[part]) for part in cut)
        halves.append(new)
    return near


def _halves(x, weight):
    """Return the sum of squares about the mean, and the rows to cut off along the first principal component."""
    centred = x - weight @ x / weight.sum()
    scaled = np.sqrt(weight)[:, None] * centred
    tall = len(x) > x.shape[1]
    vector = np.linalg.eigh(scaled.T @ scaled if tall else scaled @ scaled.T)[1][:, -1]
    along = centred @ (vector if tall else scaled.T @ vector)
    order = np.argsort(along, kind="stable")
    apart = np.diff(along[order]) > 0
    if not apart.any():
        return 0.0, None
    total, moved = np.cumsum(weight[order]), np.cumsum((weight * along)[order])
    between = moved[:-1] ** 2 / (total[:-1] * (total[-1] - total[:-1]))
    return float((scaled**2).sum()), along > along[order[np.where(apart, between, -1.0).argmax()]]
