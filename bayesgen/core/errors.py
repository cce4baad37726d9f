"""Errors that carry what is needed to say them in the user's own names.

How messages list things: six of them, and how many more there are; ten thousand categories are one line too.
"""

from collections.abc import Iterable

import numpy as np


class NoClosedForm(Exception):
    """A model has no formula for what was asked; an inference may have another way."""


class DataError(ValueError):
    """A value that a model cannot take, placed by index; a model that knows names says it again with them."""

    def __init__(self, problem: str, *, group: int | None = None, feature: int | None = None):
        self.problem, self.group, self.feature = problem, group, feature
        super().__init__(_told(None if group is None else str(group), "feature", feature, problem))

    def with_names(self, classes=(), columns=()) -> ValueError:
        """The same error with the names of class and column in place of their numbers."""
        group = None
        if self.group is not None:
            group = repr(classes[self.group] if len(classes) else self.group)
        if not len(columns) or (len(columns) > 1 and self.feature is None):
            return ValueError(_told(group, "column", None, self.problem))
        feature = self.feature or 0  # within a block that goes by one name its number stays a number
        name = repr(columns[feature]) if feature < len(columns) else f"{columns[0]!r}, feature {feature}"
        return ValueError(_told(group, "column", name, self.problem))


def _told(group: str | None, kind: str, feature, problem: str) -> str:
    place = [] if group is None else [f"class {group}"]
    if feature is not None:
        place.append(f"{kind} {feature}")
    return f"{', '.join(place)}: {problem}" if place else problem


def first(bad) -> dict[str, int]:
    """Where ``bad`` (groups, features...) is first true, as arguments of `DataError`."""
    index = np.argwhere(np.atleast_1d(bad))[0]
    place = {"group": int(index[0])}
    if len(index) > 1:
        place["feature"] = int(index[-1])
    return place


MOST = 6
_LONGEST = 60  # characters of one label


def listed(items: Iterable) -> str:
    """Labels as Python writes them: ``['a', 'b']``, or ``['a', 'b', 'c', 'd', 'e', 'f'] and 4 more``.

    Parameters
    ----------
    items : iterable
        Labels, names or numbers, of NumPy too.
    """
    items = list(items)
    plain = [item.item() if isinstance(item, np.generic) else item for item in items[:MOST]]
    return f"[{', '.join(_short(repr(item)) for item in plain)}]{_more(items)}"


def named(names: Iterable) -> str:
    """Names as a sentence holds them, in quotes where a blank or a comma would blur where one ends.

    Parameters
    ----------
    names : iterable of str
        Columns, labels or classes.
    """
    return several(_short(quoted(name)) for name in names)


def several(texts: Iterable[str], between: str = ", ") -> str:
    """Texts as they are, the first six: ``a, b, c, d, e, f and 4 more``."""
    texts = list(texts)
    return between.join(texts[:MOST]) + _more(texts)


def quoted(name) -> str:
    """A name, in quotes where it is empty or holds a blank or a comma."""
    name = str(name)
    plain = name and not any(sign.isspace() or sign == "," for sign in name)
    return name if plain else repr(name)


def counted(n, what: str) -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _more(items) -> str:
    return f" and {len(items) - MOST} more" if len(items) > MOST else ""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
