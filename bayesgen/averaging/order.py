"""Order of columns and classes by their content, in which folds, samples and starts of searches are drawn.

The same table with its columns in another order, or its classes under other names, then draws the same folds and
starts. A column of numbers is known by its share of variance between the classes, its skewness and its kurtosis, which
its units do not change; a column of categories by its number of levels, its association with the classes and the
concentration of its levels; a class by its weight, and by its means of the columns in their order. Sums over the
classes are rounded, since their last digits depend on the order of the classes. Columns, or classes, that agree in all
these stay in the order in which they are given.
"""

import numpy as np

_DIGITS = 9


@np.errstate(all="ignore")
def by_content(x, c, codes, weight, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of the columns, numbers first, and the place of each class in the order of the classes.

    Parameters
    ----------
    x : array, shape (n, D)
        Numbers, NaN where missing.
    c : int array, shape (n, F)
        Categories, -1 where missing.
    codes : int array, shape (n,)
        Classes.
    weight : array, shape (n,)
        Weights.
    classes : int
        K.

    Returns
    -------
    columns : int array, shape (D + F,)
        Places of the columns, those of categories counted from D.
    rank : int array, shape (K,)
    """
    member = np.zeros((classes, len(codes)))
    member[codes, np.arange(len(codes))] = weight
    numbers, mean = _numbers(x, weight, member)
    categories, level = _categories(c, member)
    first, second = _sorted(numbers), _sorted(categories)
    keys = [member.sum(1), *mean[:, first].T, *level[:, second].T]
    rank = np.empty(classes, np.intp)
    rank[_sorted(keys)] = np.arange(classes)
    return np.concatenate([first, x.shape[1] + second]), rank


def _sorted(keys) -> np.ndarray:
    """Return the order by the first key, among equals by the next, and so on."""
    return np.lexsort(np.round(np.asarray(keys)[::-1], _DIGITS))


def _numbers(x, weight, member):
    """Return the keys of columns of numbers, (3, D), and the means of the classes in standard deviations, (K, D)."""
    seen = ~np.isnan(x)
    w = weight[:, None] * seen
    total = w.sum(0)
    z = np.where(seen, x - (w * np.where(seen, x, 0.0)).sum(0) / total, 0.0)
    z /= np.sqrt((w * z**2).sum(0) / total)
    count = member @ seen
    mean = (member @ z) / count
    between = np.where(count > 0, count * mean**2, 0.0).sum(0) / total
    return np.stack([between, (w * z**3).sum(0) / total, (w * z**4).sum(0) / total]), mean


def _categories(c, member):
    """Return the keys of columns of categories, (3, F), and the mean code of each class, (K, F)."""
    keys, level = np.zeros((3, c.shape[1])), np.zeros((len(member), c.shape[1]))
    for j, column in enumerate(c.T):
        count = member @ (column[:, None] == np.arange(column.max(initial=0) + 1))
        by_class, by_level, total = count.sum(1), count.sum(0), count.sum()
        shares = np.divide(count**2, np.outer(by_class, by_level), out=np.zeros_like(count), where=count > 0)
        keys[:, j] = (by_level > 0).sum(), shares.sum(), (by_level**2).sum() / total**2
        level[:, j] = count @ np.arange(count.shape[1]) / by_class
    return keys, level
