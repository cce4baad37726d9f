"""How messages list things: six of them, and how many more there are; ten thousand categories are one line too."""

from collections.abc import Iterable

import numpy as np

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
