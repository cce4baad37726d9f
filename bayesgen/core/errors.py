"""Errors, and the wording of their messages.

A `DataError` holds the indices of class and column, so that a caller can put the user's own names in their place.
Messages list at most six items and count the rest: ten thousand categories still make one line.
"""

from collections.abc import Iterable

import numpy as np


class NoClosedForm(Exception):
    """A model has no closed form for a result; an inference may find it in another way."""


class DataError(ValueError):
    """A value that a model cannot take, with the indices of its class and column; `with_names` gives their names."""

    def __init__(self, problem: str, *, group: int | None = None, feature: int | None = None):
        self.problem, self.group, self.feature = problem, group, feature
        super().__init__(_told(None if group is None else str(group), "feature", feature, problem))

    def with_names(self, classes=(), columns=()) -> ValueError:
        """Return the same error with the names of class and column in place of their indices."""
        group = None
        if self.group is not None:
            group = repr(classes[self.group] if len(classes) else self.group)
        if not len(columns) or (len(columns) > 1 and self.feature is None):
            return ValueError(_told(group, "column", None, self.problem))
        feature = self.feature or 0  # a block with a single name keeps the index of the feature
        name = repr(columns[feature]) if feature < len(columns) else f"{columns[0]!r}, feature {feature}"
        return ValueError(_told(group, "column", name, self.problem))


def _told(group: str | None, kind: str, feature, problem: str) -> str:
    place = [] if group is None else [f"class {group}"]
    if feature is not None:
        place.append(f"{kind} {feature}")
    return f"{', '.join(place)}: {problem}" if place else problem


def first(bad) -> dict[str, int]:
    """Return the indices where ``bad`` (groups, features...) is first true, as arguments of `DataError`."""
    index = np.argwhere(np.atleast_1d(bad))[0]
    place = {"group": int(index[0])}
    if len(index) > 1:
        place["feature"] = int(index[-1])
    return place


MOST = 6
_LONGEST = 60  # characters of one label


def listed(items: Iterable) -> str:
    """Return labels as Python writes them: ``['a', 'b']``, or ``['a', 'b', 'c', 'd', 'e', 'f'] and 4 more``.

    Parameters
    ----------
    items : iterable
        Labels, names or numbers, NumPy scalars included.
    """
    items = list(items)
    plain = [item.item() if isinstance(item, np.generic) else item for item in items[:MOST]]
    return f"[{', '.join(_short(repr(item)) for item in plain)}]{_more(items)}"


def named(names: Iterable) -> str:
    """Join names for a sentence, in quotes where a blank or a comma would blur the end of one.

    Parameters
    ----------
    names : iterable of str
        Columns, labels or classes.
    """
    return several(_short(quoted(name)) for name in names)


def several(texts: Iterable[str], between: str = ", ") -> str:
    """Join the first six texts and count the rest: ``a, b, c, d, e, f and 4 more``."""
    texts = list(texts)
    return between.join(texts[:MOST]) + _more(texts)


def quoted(name) -> str:
    """Return a name, in quotes where it is empty or holds a blank or a comma."""
    name = str(name)
    plain = name and not any(sign.isspace() or sign == "," for sign in name)
    return name if plain else repr(name)


def counted(n, what: str) -> str:
    """Return a number with its noun: 1 row, 2 rows."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _more(items) -> str:
    return f" and {len(items) - MOST} more" if len(items) > MOST else ""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
