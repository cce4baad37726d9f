"""Suspicions about the classes of a table, and about the columns that tell them.

They are to be looked at before a score is believed, and stand with those about single columns and about repeated rows
in one record, `Prepared.suspicions`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator

import numpy as np
import pandas as pd

from bayesgen.core.errors import Argument, Note, counted, quoted
from bayesgen.tables.findings import copies
from bayesgen.tables.text import GAP_WORDS, alike, numbers, tell_alike

_MANY, _EACH = 20, 50  # classes up to which, and rows of each from which, a target of text does not have many
_FIRST, _FEWEST = 1000, 5  # rows that are looked at before all; of a class, and of a value, that do not agree by chance


def record(suspicions: Collection[str]) -> list[str]:
    """Return the lines that tell suspicions; none where there are none."""
    return ["Look at these first:", *(Note("- ", text) for text in suspicions)] if suspicions else []


def of_target(target: str, y: np.ndarray) -> Iterator[str]:
    """Yield suspicions about class labels (n,): a sentence for each kind, which names all labels that it is about."""
    labels, counts = np.unique(y, return_counts=True)
    name, text = quoted(target), y.dtype.kind == "U"
    single = [str(label) for label in labels[counts == 1]]
    figures = not text or numbers(labels.tolist()) is not None
    if len(labels) > _MANY and (figures or len(y) < _EACH * len(labels)):
        alone = f", {len(single)} of them in one row alone" if single else ""
        yield f"{name} has {len(labels)} values in {len(y)} rows{alone}: a number or a name, perhaps, and no class"
    elif single:
        few = "such a class cannot be tested: leave it out, or join it to another"
        yield f"{name}: one row alone is of {', '.join(map(quoted, single))}; {few}"
    if not text:
        return
    signs = [label for label in labels.tolist() if not any(map(str.isalnum, label))]
    words = signs if len(labels) - len(signs) > 1 else []
    if doubt := gap_words(pd.Series(y, dtype=object), words):
        yield Note(f"{name} ambiguous: ", doubt)
    if groups := alike(labels.tolist()):
        yield f"{name} ambiguous: {tell_alike(groups, lambda label: int((y == label).sum()))}"
    values = defaultdict(list)
    for label in labels.tolist():
        if number := numbers([label]):
            values[isinstance(number[0], bool), number[0]].append(label)
    equal = [label for labels in values.values() if len(labels) > 1 for label in labels]
    if equal:
        yield f"{name} ambiguous: {equal} stand for one value, taken as classes apart"


def gap_words(values: pd.Series, signs: Collection[str] = ()) -> str:
    """Return a doubt about text: words such as NA, which are a gap to many, or ``signs`` are categories in it."""
    found = [word for word in sorted(values.unique()) if word.strip().casefold() in GAP_WORDS or word in signs]
    if not found:
        return ""
    count = counted(int(values.isin(found).sum()), "row")
    cure = Argument("missing", found if len(found) > 1 else found[0])
    return Note(f"{found} in {count}, taken as text like any other; ", cure, " makes it missing")


def of_telling(target: str, columns, codes: np.ndarray, count: int) -> Iterator[str]:
    """Yield suspicions about the columns that alone tell the class, of pairs of a name and its values (n,).

    Values are numbers or codes, none missing, and ``codes`` (n,) one of so many classes. Either each class has one
    value, or each of a few values has one class.
    """
    copied, telling, least = [], [], np.bincount(codes).min()
    for name, values in columns:
        if copies(values[:, None], codes, count):
            copied.append(quoted(name))
        elif least >= _FEWEST and _tells(values, codes):
            telling.append(quoted(name))
    if copied:
        was = f"{', '.join(copied)} one value for each class, as if copied from {quoted(target)}: "
        yield Note(was, Argument("drop"), ", if it was")
    if telling:
        alone = f"{', '.join(telling)} tells {quoted(target)} alone, one class for each value: "
        yield Note(alone, Argument("drop"), ", if that is known only after the class")


def _tells(values: np.ndarray, codes: np.ndarray) -> bool:
    """Return True if all rows of a value are of one class, and each of the values has five rows on average."""
    levels = 0
    for piece in (slice(_FIRST), slice(None)):
        place, found = pd.factorize(values[piece])
        levels, of_value = len(found), np.zeros(len(found), np.intp)
        of_value[place] = codes[piece]
        if (of_value[place] != codes[piece]).any():
            return False
    return _FEWEST * levels <= len(values)
