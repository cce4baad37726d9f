"""Rows that belong together: the groups that a user gives, and columns that look as if they named groups."""

import re

import numpy as np
import pandas as pd

from bayesgen.tables.labels import unwrapped

_MANY = 20  # levels from which a column may name things; five under a name such as patient_id
NAMES = re.compile(
    r"(^|[^a-z])(id|ids|key|patient|subject|person|animal|plot|batch|site|ward)([^a-z]|$)|[a-z]Id$", re.I
)
_SHUFFLES, _Z = 20, 5.0


def group_codes(groups, rows: int, weight=None, whole: bool = True) -> np.ndarray | None:
    """Return the group of each row whose weight is not 0 as whole numbers; a row without a group is one by itself.

    Groups are the labels that the user gave, NaN, None or NA where a row stands alone; weights come from `existing`.
    One group alone is refused, unless rows are not the ``whole`` of a fit.
    """
    if groups is None:
        return None
    groups = np.asarray(unwrapped(groups))
    if groups.ndim != 1 or len(groups) != rows:
        raise ValueError(f"groups must hold one label for each of the {rows} rows; it has shape {groups.shape}")
    try:
        codes, found = pd.factorize(groups)
    except TypeError as error:
        raise TypeError(f"groups must hold labels, such as names of patients: {error}") from None
    alone = codes < 0
    codes[alone] = len(found) + np.arange(alone.sum())
    if weight is not None:
        codes = codes[np.asarray(weight, float) > 0]
    if whole and rows > 1 and len(codes) and (codes == codes[0]).all():
        cure = "give each row the label of what it belongs to, or no groups where rows are independent"
        raise ValueError(f"groups holds one group only, and leaving it out leaves no row; {cure}")
    return codes


def undivided(classes, codes, group) -> np.ndarray:
    """Return the classes (K,) all of whose rows, of codes (n,), are of one group (n,)."""
    first = np.full(len(classes), -1)
    first[codes] = group
    alone = np.ones(len(first), bool)
    alone[codes[group != first[codes]]] = False
    return classes[alone]


def naming(name: str, values, codes) -> int:
    """Return how many groups of rows a column names, if rows of one share a class more often than chance; else 0.

    The classes are shuffled to see how often two rows of one value agree by chance. In a column of numbers rows of one
    value must also agree more often than rows of neighbouring values: an age tells the class as well as the next age
    does, the number of a patient does not. Values are whole numbers, NaN where missing, or codes of categories, -1
    where missing; ``codes`` are the classes.
    """
    labels = values.dtype.kind in "iu"
    seen = values >= 0 if labels else ~np.isnan(values)
    values, codes = values[seen], codes[seen]
    if not len(values) or not (labels or (values == np.floor(values)).all()):
        return 0
    _, place = np.unique(values, return_inverse=True)
    levels = int(place.max()) + 1
    if levels < (5 if NAMES.search(str(name)) else _MANY) or 2 * levels > len(values):
        return 0
    rng = np.random.default_rng(0)
    within = _agreement(place, codes)[0]
    chance = np.array([_agreement(place, rng.permutation(codes))[0] for _ in range(_SHUFFLES)])
    if within - chance.mean() < _Z * chance.std(ddof=1) or within - chance.mean() < 0.5 * (1 - chance.mean()):
        return 0
    beside = _agreement(place, codes)[1]
    return 0 if not labels and within - beside < 0.5 * (1 - chance.mean()) else levels


def _agreement(place, codes) -> tuple[float, float]:
    """Return how often two rows of one value have one class, and two rows of neighbouring values."""
    count = np.zeros((int(place.max()) + 1, int(codes.max()) + 1))
    np.add.at(count, (place, codes), 1.0)
    total = count.sum(1)
    pairs, apart = (total * (total - 1)).sum(), total[1:] @ total[:-1]
    same, between = (count * (count - 1)).sum(), (count[1:] * count[:-1]).sum()
    return (float(same / pairs) if pairs else 0.0), (float(between / apart) if apart else 0.0)
