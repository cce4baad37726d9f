"""The order of a table by its content, which names, units, signs and the order given do not change.

The order by content (`Order`) is found so: a column of numbers is known by its share of variance between the
classes, the size of its skewness and its kurtosis, which its units do not change, and is turned so that its skewness is
not negative; a column of categories by its number of levels, its association with the classes and the concentration of
its levels; a class by its weight, by its means of the columns in their order, and by the concentration of its levels; a
level by its weight, and by those in the classes. Sums over the classes are rounded, since their last digits depend on
the order of the classes. What agrees in all these stays in the order in which it is given, a symmetric column as it is.
"""

from typing import NamedTuple

import numpy as np

_DIGITS = 9  # sums over the classes are rounded: their last digits depend on the order of the classes


class Order(NamedTuple):
    """Order of a table by content."""

    columns: np.ndarray  # (D + F,): places of the columns, numbers first, those of categories counted from D
    classes: np.ndarray  # (K,): the place of each class in their order
    sign: np.ndarray  # (D,): -1 for numbers that are turned, else 1
    levels: tuple[np.ndarray, ...]  # the place of each level of a column of categories in their order

    @property
    def signs(self) -> np.ndarray:
        """-1 for numbers, and for categories of two levels, that are turned, else 1, (D + F,)."""
        return np.append(self.sign, [-1.0 if len(places) == 2 and places[0] == 1 else 1.0 for places in self.levels])

    def applied(self, x, c) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers with their signs, and categories by the places of their levels, -1 where missing."""
        places = [np.append(order, -1)[column] for order, column in zip(self.levels, c.T, strict=True)]
        return x * self.sign, np.stack(places, axis=1) if places else c


def sorted_rows(columns, codes) -> np.ndarray:
    """Return the order of rows (n,) by class and entries; of rows that agree the first comes first.

    ``columns`` (n, C) are numbers and codes of categories, NaN where missing; beside them classes (n,). A gap comes
    before every number, whatever the units; -0 is 0.
    """
    return np.lexsort([*np.where(np.isnan(columns), -np.inf, columns + 0.0).T[::-1], codes])


@np.errstate(all="ignore")
def by_content(x, c, codes, weight, classes: int, levels: tuple[int, ...]) -> Order:
    """Return the order of columns, classes, signs and levels.

    Rows have numbers ``x`` (n, D), NaN where missing, categories ``c`` (n, F) of ``levels`` each, -1 where missing, and
    classes 0..K-1 and weights, (n,).
    """
    member = np.zeros((classes, len(codes)))
    member[codes, np.arange(len(codes))] = weight
    numbers, mean, sign = _numbers(x, weight, member)
    counts = [level_counts(codes, column, weight, classes, count) for count, column in zip(levels, c.T, strict=True)]
    categories, shares = _categories(counts, classes)
    first, second = _sorted(numbers), _sorted(categories)
    rank = _places([member.sum(1), *mean[:, first].T, *shares[:, second].T])
    by_class = np.argsort(rank)
    places = tuple(_places([count.sum(0), *count[by_class]]) for count in counts)
    return Order(np.concatenate([first, x.shape[1] + second]), rank, sign, places)


def level_counts(codes, column, weight, classes: int, levels: int) -> np.ndarray:
    """Return the weight of each class at each level of a column, (K, L)."""
    place = codes * (levels + 1) + column + 1  # 0 for a gap
    return np.bincount(place, weight, classes * (levels + 1)).reshape(classes, -1)[:, 1:]


def _sorted(keys) -> np.ndarray:
    """Return the order by the first key, among equals by the next, and so on."""
    return np.lexsort(np.round(np.asarray(keys)[::-1], _DIGITS))


def _places(keys) -> np.ndarray:
    return np.argsort(_sorted(keys))


def _numbers(x, weight, member):
    """Return keys of columns of numbers, (3, D), means of the classes in standard deviations, (K, D), and signs."""
    seen = ~np.isnan(x)
    w = weight[:, None] * seen
    total = w.sum(0)
    z = np.where(seen, x - (w * np.where(seen, x, 0.0)).sum(0) / total, 0.0)
    z /= np.sqrt((w * z**2).sum(0) / total)
    count = member @ seen
    mean = (member @ z) / count
    between = np.where(count > 0, count * mean**2, 0.0).sum(0) / total
    skewness = (w * z**3).sum(0) / total
    sign = np.where(np.round(skewness, _DIGITS) < 0, -1.0, 1.0)
    return np.stack([between, np.abs(skewness), (w * z**4).sum(0) / total]), mean * sign, sign


def _categories(counts, classes: int):
    """Return the keys of columns of categories, (3, F), and the concentration of the levels in each class, (K, F)."""
    keys, concentration = np.zeros((3, len(counts))), np.zeros((classes, len(counts)))
    for j, count in enumerate(counts):
        by_class, by_level, total = count.sum(1), count.sum(0), count.sum()
        shares = np.divide(count**2, np.outer(by_class, by_level), out=np.zeros_like(count), where=count > 0)
        keys[:, j] = (by_level > 0).sum(), shares.sum(), (by_level**2).sum() / total**2
        concentration[:, j] = shares.sum(1)
    return keys, concentration
