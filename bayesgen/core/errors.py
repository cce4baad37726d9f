"""Errors and warnings that know their facts, and the wording of their messages.

An error has attributes for the column, row and value that it is about, and for the arguments that its text advises. A
caller reads those, never the text: to put the user's own names in place of indices, or a command's options in place of
arguments. Messages list at most six items and count the rest: ten thousand categories still make one line.
"""

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST = 6  # items of a list in a message
_LONGEST = 60  # characters of one label


class NoClosedForm(Exception):
    """A model has no closed form for a result; an inference may find it in another way."""


@dataclass(frozen=True)
class Argument:
    """An argument that a message advises, such as ``inference='map'``, or without a value ``inference=``.

    One without a name is advice as a whole, a `Note`, which a caller may leave out.
    """

    name: str  # name, value: the argument
    value: Any = None
    words: str = ""  # its wording in the message; default: as Python writes it

    def __str__(self):
        return self.words or f"{self.name}={'' if self.value is None else repr(self.value)}"


class Note(str):
    """A text in pieces, as Python words the arguments that it advises; in ``parts`` these stand for themselves."""

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument, between: str = "") -> "Note":
        """Join the pieces, and those of notes among them, with a text ``between`` each two."""
        result = super().__new__(cls, between.join(map(str, parts)))
        apart = [(between,) * bool(between) + tuple(getattr(part, "parts", (part,))) for part in parts]
        result.parts = sum(apart, ())[bool(between) :]
        return result


class Informed(Exception):
    """Base of the errors and warnings whose facts are attributes.

    They are the ``column`` by name, the ``row`` by position, the ``value`` or values that cannot be taken, and the
    ``kind`` of the values. In ``parts``, the text in pieces, an advised `Argument` stands for itself.
    """

    def __init__(self, *parts: str | Argument, column=None, row=None, value=None, kind=None):
        text = Note(*parts)
        self.parts, self.column, self.row, self.value, self.kind = text.parts, column, row, value, kind
        super().__init__(str(text))


class InputError(Informed, ValueError):
    """A value that cannot be taken."""


class InputTypeError(Informed, TypeError):
    """A type that cannot be taken."""


class InputWarning(Informed, UserWarning):
    """Input that is taken in a way that the user may not have meant."""


def warn(warning: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's program: the first, from here upwards, that is not of this package."""
    depth, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("bayesgen", "contextlib", "numpy"):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(warning, category, stacklevel=depth)


class DataError(InputError):
    """A value that a model cannot take, with the indices of its class and column; `with_names` gives their names.

    The ``problem`` is the text in pieces, without the place; ``facts`` are those of `Informed`.
    """

    def __init__(self, *problem: str | Argument, group: int | None = None, feature: int | None = None, **facts):
        super().__init__(_place(None if group is None else str(group), "feature", feature), *problem, **facts)
        self.problem, self.group, self.feature = "".join(map(str, problem)), group, feature

    def with_names(self, classes=(), columns=()) -> InputError:
        """Return the same error with the names of class and column in place of their indices."""
        group = None
        if self.group is not None:
            group = repr(classes[self.group] if len(classes) else self.group)
        name = column = None
        if len(columns) == 1 or (len(columns) and self.feature is not None):
            feature = self.feature or 0  # a block with a single name keeps the index of the feature
            column = columns[feature] if feature < len(columns) else columns[0]
            name = repr(column) if feature < len(columns) else f"{column!r}, feature {feature}"
        place, problem = _place(group, "column", name), self.parts[1:]
        return InputError(place, *problem, column=column, row=self.row, value=self.value, kind=self.kind)


def _place(group: str | None, kind: str, feature) -> str:
    """Return the beginning of a message, such as ``"class 'a', column 'x': "``."""
    place = [] if group is None else [f"class {group}"]
    if feature is not None:
        place.append(f"{kind} {feature}")
    return f"{', '.join(place)}: " if place else ""


def first(bad) -> dict[str, int]:
    """Return the indices where ``bad`` (groups, features...) is first true, as arguments of `DataError`."""
    index = np.argwhere(np.atleast_1d(bad))[0]
    place = {"group": int(index[0])}
    if len(index) > 1:
        place["feature"] = int(index[-1])
    return place


def refuse_where(bad, *problem: str | Argument) -> None:
    """Raise a `DataError` for the first class and column where ``bad`` (groups, features...) is true."""
    if np.any(bad):
        raise DataError(*problem, **(first(bad) if np.ndim(bad) else {}))


def listed(items: Iterable) -> str:
    """Return labels as Python writes them: ``['a', 'b']``, or ``['a', 'b', 'c', 'd', 'e', 'f'] and 4 more``."""
    items = list(items)
    plain = [item.item() if isinstance(item, np.generic) else item for item in items[:MOST]]
    return f"[{', '.join(shortened(repr(item)) for item in plain)}]{_more(items)}"


def named(names: Iterable) -> str:
    """Join names for a sentence, in quotes where a blank or a comma would blur the end of one."""
    return several(shortened(quoted(name)) for name in names)


def several(texts: Iterable[str], between: str = ", ") -> str:
    """Join the first six texts and count the rest: ``a, b, c, d, e, f and 4 more``; a seventh stands in full."""
    texts = list(texts)
    if len(texts) == MOST + 1:  # which takes no more room than its count
        return between.join(texts)
    return between.join(texts[:MOST]) + _more(texts)


def quoted(name) -> str:
    """Return a name, in quotes where it is empty, holds a blank or a comma, or what is not seen, which is escaped."""
    name = str(name)
    plain = name and name.isprintable() and not any(sign in " ," for sign in name)
    return name if plain else repr(name)


def counted(n, what: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(2, "row"), counted(2, "class")
    ('1 row', '2 rows', '2 classes')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}{'es' if what.endswith('s') else 's'}"


def _more(items) -> str:
    return f" and {len(items) - MOST} more" if len(items) > MOST else ""


def shortened(text: str) -> str:
    """Return a text, cut off where it is too long for a line of several."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
