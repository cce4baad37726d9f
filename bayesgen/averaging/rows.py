"""Rows as members take them: distinct rows in sorted order, folds, and samples.

Folds and starts of k-means are drawn over the distinct rows in sorted order, so that neither the order of the rows, nor
the units of the columns, nor the way a weight is written (2, or two rows) changes a fit.
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Rows:
    """A table with its classes.

    Attributes
    ----------
    x : array, shape (n, D)
        Numbers, NaN where missing.
    c : int array, shape (n, F)
        Categories, -1 where missing.
    codes : int array, shape (n,)
        Classes.
    weight : array, shape (n,)
        Weights > 0.
    levels : tuple of int
        Number of categories of each of the F columns.
    classes : int
        K.
    e : array, shape (n, E), or None
        Entries of the columns that have a leaf of their own, NaN where missing; None if there are none.
    """

    x: np.ndarray
    c: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    levels: tuple[int, ...]
    classes: int
    e: np.ndarray | None = None

    def __len__(self):
        return len(self.codes)

    def take(self, places, weight=None) -> "Rows":
        """Return some of the rows."""
        weight, e = self.weight[places] if weight is None else weight, taken(self.e, places)
        return replace(self, x=self.x[places], c=self.c[places], codes=self.codes[places], weight=weight, e=e)

    def without(self, place: int, removed: float) -> "Rows":
        """Return all rows, one of them with weight ``removed`` less, and without it if none is left."""
        weight = self.weight.copy()
        weight[place] -= removed
        return self.take(weight > 0, weight[weight > 0])


def taken(e, places):
    """Return some rows of entries (n, E), or None where there are none."""
    return None if e is None else e[places]


def distinct(columns, codes, weight):
    """Return the places of the distinct rows, sorted by class and entries, and the sum of weights of each.

    Parameters
    ----------
    columns : array, shape (n, C)
        Numbers and codes of categories, NaN where missing.
    codes : int array, shape (n,)
        Classes.
    weight : array, shape (n,)
        Weights.

    Returns
    -------
    first : int array, shape (m,)
    total : array, shape (m,)
    """
    # A gap comes before every number, whatever the units; -0 is 0.
    keys = [codes, *np.where(np.isnan(columns), -np.inf, columns + 0.0).T]
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(codes), bool)
    new[:1] = True
    for key in keys:
        in_order = key[order]
        new[1:] |= in_order[1:] != in_order[:-1]
    return order[new], np.add.reduceat(weight[order], np.flatnonzero(new))


def folds(codes, count: int, rng) -> np.ndarray:
    """Return the fold of each row, (n,); the rows of each class are dealt out evenly."""
    result = np.empty(len(codes), np.intp)
    order = rng.permutation(len(codes))
    result[order[np.argsort(codes[order], kind="stable")]] = np.arange(len(codes)) % min(count, len(codes))
    return result


def sample(codes, size: int, rng) -> np.ndarray:
    """Draw places of rows without replacement: equally many from each class, or all rows of a smaller class."""
    if size >= len(codes):
        return np.arange(len(codes))
    order = np.argsort(codes.astype(np.min_scalar_type(codes.max())), kind="stable")
    count = np.bincount(codes)
    first, left, chosen = np.cumsum(count) - count, size, []
    for turn, k in enumerate(np.argsort(count, kind="stable")):
        take = min(count[k], left // (len(count) - turn))
        left -= take
        chosen.append(order[first[k] + rng.choice(count[k], take, replace=False, shuffle=False)])
    return np.sort(np.concatenate(chosen))
