"""Suspicions about the classes of a table, and about the columns that tell them.

They are to be looked at before a score is believed, and stand with those about single columns and about repeated rows
in one record, `Prepared.suspicions`.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayesgen.core.errors import Argument, Note, counted, listed, quoted
from bayesgen.tables.findings import copies
from bayesgen.tables.text import GAP_WORDS, alike, numbers, slips, tell_alike

_MANY, _EACH = 20, 50  # classes up to which, and rows of each from which, a target of text does not have many
_CODES = (-8, -9, *(sign * code for code in (98, 99, 998, 999, 9998, 9999, 99999) for sign in (-1, 1)))  # for a gap
_LEAST = 0.02  # of the range of a column: its tail is not taken for shorter
_FIRST, _LOOK = 1000, 5000  # rows that are looked at before all, and in place of all
_FEWEST = 5  # rows of a value, on average, and distinct values of a tail
_EITHER = 20  # rows of the classes that a column tells, or of all others if fewer, from which it is told
_TELLS = 0.05  # share of the rows beyond these that it tells wrong at most
_OTHERS = 0.1  # share of the rows of a class that all others tell wrong at least
_COLUMNS = 20  # that predict together, and categories of each
_CHANCE = 30.0  # entropy of a column, in nats, from which none equals it by chance


def gap_codes(values: np.ndarray) -> list[float]:
    r"""Return the numbers at the ends of a column (n,) that seem codes for a missing answer, such as -999 and 99.

    Above an exponential tail of mean s, k numbers lie beyond a gap g with the probability exp(-k g/s) (Renyi 1953). By
    the excesses e_1, ..., e_m of the :math:`\sqrt n` farthest others, under the prior 1/s, it is the Pareto tail
    :math:`(1 + k g / \sum e_i)^{-m}`, which has to be below 1e-4, with k up to 3. A usual code need be there once; any
    other twice, and farther from the others than these from each other. 0 is none.

    >>> gap_codes(np.array([*range(20, 90), -99, 999])), gap_codes(np.array([*range(20, 60), 61, 61]))
    ([-99.0, 999.0], [])
    """
    found, known = list[float](), np.asarray(values, float)
    known = known[np.isfinite(known)]
    plain = known[~np.isin(known, _CODES)]
    for side in (-1, 1):
        x, inner = side * known, side * plain
        others = x[x <= inner.max(initial=-np.inf)]
        if not (listed := len(others) < len(x)):
            others, inner = x[x < x.max(initial=-np.inf)], inner[inner < x.max(initial=-np.inf)]
        beyond, codes = len(x) - len(others), np.unique(x[x > others.max(initial=-np.inf)])
        if len(np.unique(inner[:_FIRST])) < _FEWEST or 2 * beyond > len(x) or 0 in codes:
            continue
        tail = np.sort(np.partition(others, -(count := math.isqrt(len(others))))[-count:])
        gap, excess = codes[0] - tail[-1], np.maximum(tail[1:] - tail[0], _LEAST * np.ptp(inner)).sum()
        apart = listed or (beyond > 1 and gap > np.ptp(inner))
        if apart and (count - 1) * np.log1p(min(beyond, 3) * gap / excess) > -np.log(1e-4):
            found += (side * codes).tolist()
    return found


def of_codes(columns) -> Iterator[str]:
    """Yield suspicions about codes for a missing answer, of pairs of a name and its numbers (n,)."""
    for name, values in columns:
        for code in gap_codes(values):
            apart = f"{counted(int((values == code).sum()), 'row')} lies apart, as codes for missing answers do: "
            yield Note(f"{quoted(name)} {code:.15g} in {apart}", Argument("missing", f"{name}={code:.15g}"))


def of_slips(name: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield suspicions about rare texts of a column that seem slips of frequent ones, by the rows of each."""
    for often, rare in slips({t: n for t, n in counts.items() if not {*",="} & {*t}}).items():
        few = counted(sum(counts[text] for text in rare), "row")
        was = f"{quoted(name)} {listed(rare)} in {few}, perhaps {often!r}, which has {counts[often]}: "
        yield Note(was, Argument("same", f"{name}={','.join([often, *rare])}"))


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
    yield from of_slips(target, dict(zip(labels.tolist(), counts.tolist(), strict=True)))
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


class Coded(NamedTuple):
    """A column of numbers, or of codes of categories, whose order says nothing."""

    values: np.ndarray  # (n,), NaN where missing
    ordered: bool


def of_telling(target: str, columns: Mapping[str, Coded], codes: np.ndarray, classes: Collection) -> Iterator[str]:
    """Yield suspicions about the columns that alone tell the class, of which ``codes`` (n,) has that of each row.

    Each class has one value; or one class is told by the values, the order or the gaps of a column, with few errors,
    and by all other columns together with many.
    """
    count = len(classes)
    if copied := [name for name, column in columns.items() if copies(column.values[:, None], codes, count)]:
        was = f"{', '.join(map(quoted, copied))} one value for each class, as if copied from {quoted(target)}: "
        yield Note(was, Argument("drop"), ", if it was")
    places = np.unique(np.linspace(0, len(codes) - 1, _LOOK).astype(np.intp))
    of_class = codes[places, None] == np.arange(count)
    least = np.minimum(of_class.sum(0), (~of_class).sum(0))
    rows = {name: Coded(c.values[places], c.ordered) for name, c in columns.items() if name not in copied}
    tells = {name: _wrong(one, of_class) <= _TELLS * np.maximum(least - _EITHER, 0) for name, one in rows.items()}
    first = slice(1 if count == 2 else None)  # of two classes the other is told by the same
    tells = {name: told for name, told in tells.items() if least[first][told[first]].sum() >= _EITHER}
    if tells:
        hard = _wrong_together([one for name, one in rows.items() if name not in tells], of_class) >= _OTHERS * least
        if names := [quoted(name) for name, told in tells.items() if (told & hard).any()]:
            alone = f"{', '.join(names)} tells {quoted(target)} alone, far better than all others together: "
            yield Note(alone, Argument("drop"), ", if that is known only after the class")


def _wrong(column: Coded, of_class: np.ndarray) -> np.ndarray:
    """Return how many rows are wrong by the best rule of a column for each of the classes (n, K) against the others.

    A rule is a threshold, or a choice for each of few values, and either with the gaps on one side.
    """
    level, values = pd.factorize(column.values, sort=True)
    of, others = (np.zeros((len(values) + 1, of_class.shape[1]), int) for _ in range(2))  # the gaps come last
    np.add.at(of, level, of_class)
    np.add.at(others, level, ~of_class)
    gaps, each = np.minimum(of, others)[-1], np.minimum(of, others).sum(0)
    above = of[:-1].sum(0) + np.cumsum(others[:-1] - of[:-1], 0)  # where the class is above each value
    ends = np.minimum(above, len(level) - (level < 0).sum() - above).min(0, initial=len(level))
    few = _FEWEST * len(values) <= len(level)
    return np.minimum(ends + gaps if column.ordered else len(level), each if few else len(level))


def _wrong_together(columns: Collection[Coded], of_class: np.ndarray) -> np.ndarray:
    """Return how many rows are wrong by the best threshold of a sum over columns, the least squares of each class.

    Summed are ranks, their squares and gaps of numbers, and the levels of categories. Since it was fitted to the rows
    the number is raised as in generalised cross-validation (Craven and Wahba 1979, *Numerische Mathematik* 31, 377).
    """
    parts = [np.ones(len(of_class))]
    for values, ordered in list(columns)[:_COLUMNS]:
        rank = pd.Series(values).rank(pct=True).fillna(0.5).to_numpy()
        parts += [rank, rank**2, np.isnan(values)] if ordered else [values == level for level in range(_COLUMNS)]
    design = np.column_stack(parts).astype(float)
    weights, _, rank, _ = np.linalg.lstsq(design, of_class.astype(float), rcond=1e-9)
    sums, share = design @ weights, min(rank / len(design), 0.9)
    wrong = [_wrong(Coded(s, True), k[:, None]) for s, k in zip(sums.T, of_class.T, strict=True)]
    return np.concatenate(wrong) / (1 - share) ** 2


def of_twins(columns: Mapping[str, Coded]) -> Iterator[str]:
    """Yield suspicions about columns that hold the same but for a change that keeps or turns the order of values."""
    known = dict[bytes, str]()
    for name, column in columns.items():
        first = Coded(column.values[:_FIRST], column.ordered)
        twin = known.setdefault(mark, name) if (mark := _order(first)) else name
        if twin != name and _order(columns[twin]) == _order(column):
            same = f"{quoted(name)} holds the same as {quoted(twin)}, perhaps in another unit: "
            yield Note(same, Argument("drop"), " one of them")


def _order(column: Coded) -> bytes:
    """Return the order of the values of a column, or the rows of each category; nothing where chance may repeat it."""
    codes, values = pd.factorize(column.values, sort=column.ordered)
    share = np.bincount(codes + 1) / max(len(codes), 1)
    if -len(codes) * (share * np.log(np.where(share > 0, share, 1))).sum() < _CHANCE:
        return b""
    turned = np.where(codes < 0, codes, len(values) - 1 - codes) if column.ordered else codes
    return min(codes.tobytes(), turned.tobytes()) + bytes([column.ordered])
