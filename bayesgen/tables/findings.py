"""Findings: what rows, or their sums, hold that may not be as meant, asked once for every way of learning, and told.

A `Finding` has facts, and `WORDS` the words of each kind. What sums can tell is told from sums; the rows, where they
are there, tell the rest.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.core.errors import Argument, InputWarning, Note, counted, listed, several, warn
from bayesgen.models.beside_constants import constants_of
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.column_families import FAMILIES
from bayesgen.models.moments import Moments
from bayesgen.tables import wild
from bayesgen.tables.dates import moments
from bayesgen.tables.description import Verdict
from bayesgen.tables.reading import Reading
from bayesgen.tables.repeats import likely_copies
from bayesgen.tables.text import alike, tell_alike

ANSWERS = {"bits": (0, 1, "bernoulli"), "answers": (1, 10, "categorical")}  # whole numbers, first to last, and a family
_NO_FILE = Reading.of(None)
_FEWEST, _FIRST = 20, 1000  # rows: of fewer a column may agree with the labels by chance; rows looked at before all

_DOUBTS = {
    "dates": "holds dates as text, which would be categories",
    "durations": "holds durations, which are taken as numbers of days",
    "numbers": "holds numbers as text",
    "names": "seems to name the rows, with {distinct} distinct values in {seen} rows; names say nothing",
    "counts": "seems to number the rows, which says nothing of new rows",
    "numbered": "holds no number twice and few gaps between them, as numbers of rows do",
    "ids": "seems to name people or things, by {distinct} distinct whole numbers in {seen} rows: groups= takes them",
}
WORDS = {kind: f"column {{columns[0]!r}} {words}{{more}}" for kind, words in _DOUBTS.items()} | {
    "one class": "y holds one class only, {value}: every row will get it with certainty",
    "alike": "{text}; spell them alike, if they are one",
    "weightless": "all rows of the labels {value} in y have weight 0: they are no classes of this fit",
    "constant": "columns {names} are constant: they hold one value or none, say nothing of the class, and are left out",
    "bits": "numbers 0 and 1 alone are taken as Gaussian; where they stand for no and yes, give {cure}",
    "answers": "whole numbers from 1 to 10 alone are taken as Gaussian; where they stand for answers, give {cure}",
    "copy": "column {columns[0]!r} has one value for each class, as if copied from y; drop it, unless it will be known "
    "of new rows before their class is",
    "wild": "{text}: it is learned from as it is, and moves what is said of other rows. Mend it or give NaN{right}",
    "wild completed": "{text}: it is taken as missing, and what its class and row let expect stands for it{given}. "
    "Mend it or give NaN{right}",
    "wild kept": "{text}: it is learned from as it is, as wild='keep' asks",
    "repeats": "{value}: if they are copies of one measurement, its probabilities are too sure; X.drop_duplicates() "
    "leaves one of each",
    "repeats left out": "{cure}",
    "undivided": "all rows of {value} are of one group: left out with it, nothing is known of the class, and how well "
    "it is told apart in new groups cannot be judged",
    "naming": "column {columns[0]!r} seems to name what rows belong to: {rows} rows share {count} values, and rows of "
    "one value share the class much more often than chance. If new rows are of new ones, drop the column and fit with "
    "{cure}: scores and probabilities are too sure otherwise",
    "filled": "numeric columns are many and have gaps: for the full and shared covariances these are filled by the "
    "means of their class. At prediction they are integrated out",
    "nothing gained": "no member predicts rows left out better than the class prior alone: the columns may say nothing "
    "of the class, or there are too few rows to tell",
    "shrunk": "in {shrunk} of {starts} starts a class shrank onto rows of nearly one value, where the likelihood grows "
    "without bound. This is the best of the other starts, and another random_state may give another: use {cure}, whose "
    "prior keeps variances from 0",
    "unseen": "{text}. {cure} refuses them",
}


@dataclass(frozen=True)
class Finding:
    """A record of facts: what was found, and where."""

    kind: str  # key of its words: "wild", "repeats", "copy", ...
    columns: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()  # positions in the user's table, where they are known
    value: Any = None  # what was found there; of wild entries the first of them
    cure: Argument | Note | None = None  # the argument that mends it
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)  # what the words name besides

    @property
    def words(self) -> list[str | Argument]:
        """The text in pieces, the cure among them."""
        value = listed(self.value) if isinstance(self.value, list | tuple) else self.value
        known = {"columns": self.columns, "names": listed(self.columns), "value": value, **self.facts}
        first, *others = (text.format(**known) for text in WORDS[self.kind].split("{cure}"))
        return [first, *(part for text in others for part in (self.cure or "", text))]


def tell(found: Iterable[Finding], told: Collection = ()) -> set:
    """Warn of findings, but of those that are ``told`` already; return what is told now, by kind and columns."""
    result = set(told)
    for finding in found:
        if (key := (finding.kind, finding.columns)) not in told:
            column, row = (next(iter(places), None) for places in (finding.columns, finding.rows))
            warn(InputWarning(*finding.words, column=column, row=row, value=finding.value, kind=finding.kind))
        result.add(key)
    return result


def findings(schema, statistics, rows: Any = None, classes: Any = (), skip: Collection = ()) -> Iterator[Finding]:
    """Find what may not be as meant in a fit, from its sums and, where they are there, its rows.

    ``schema`` has the columns of the fit, and ``statistics`` are all that was summed: its ``leaves``, where it has
    some, are looked at. ``rows`` are the `LearnedRows` that came, with their blocks, and ``classes`` (K,) the labels,
    none of a regression. Kinds to ``skip`` are not looked for.
    """
    leaves: Any = getattr(statistics, "leaves", {})
    answers = rows is None or rows.table.reading is _NO_FILE  # else its account tells of them
    exact = leaves if isinstance(statistics, ClassStatistics) else {}  # and not what priors follow
    if len(classes) == 1:
        yield Finding("one class", value=list(classes))
    elif len(classes):
        labels = np.asarray(classes).tolist()
        count = None if rows is None else lambda label: int((rows.likely == labels.index(label)).sum())
        yield from of_alike("y", labels, count)
    if rows is not None and rows.weightless:
        yield Finding("weightless", value=rows.weightless)
    constant: list[str] = []
    for block in schema.blocks if len(classes) and "constant" not in skip else ():
        known = isinstance(block.leaf, str) and block.name in leaves
        if known and (FAMILIES[block.leaf].scaled or block.leaf in ("bernoulli", "categorical")):
            sums = leaves[block.name]
            flags = np.ravel(sums.pooled.constant if FAMILIES[block.leaf].scaled else constants_of(sums)[0])
            constant += [name for name, flag in zip(block.columns, flags, strict=True) if flag]
    if constant:
        yield Finding("constant", tuple(constant))
    for kind, (first, last, family) in ANSWERS.items():
        if answers and kind not in skip and (columns := [*_within(schema, exact, rows, first, last)]):
            cure = Argument("features", family, f"features=dict.fromkeys({columns}, {family!r})")
            yield Finding(kind, tuple(columns), value=columns, cure=cure)
    for name in _copies(schema, exact, statistics, rows, len(classes)) if len(classes) > 1 else ():
        yield Finding("copy", (name,))
    if "wild" not in skip:
        yield from _wild(schema, exact, statistics, rows, classes)
    if rows is not None and len(classes) and "repeats" not in skip:
        found = likely_copies(schema, rows.blocks, rows.likely)
        yield from [Finding("repeats", value=found)] if found else []


# -- what is looked for ------------------------------------------------------------------------------------------------


def of_alike(place: str, labels, count: Callable[[str], int] | None = None, columns=()) -> Iterator[Finding]:
    """Yield labels or categories that a reader takes for one, as Yes and yes; ``count`` gives the rows of each."""
    if len(labels) and (isinstance(labels[0], str) or isinstance(labels[-1], str)) and (groups := alike(labels)):
        yield Finding("alike", columns, value=groups, facts={"text": f"{place}: {tell_alike(groups, count)}"})


def of_doubt(column: str, doubt: Verdict | None) -> Iterator[Finding]:
    """Yield a column that may be no feature."""
    if doubt:
        more = ""  # an entry that is a number as offices write it, and how to read the file
        if (found := doubt.unread) is not None:
            ways = [f"bayesgen.read_table({', '.join(['path', *map(str, way)])})" for way in found.cures(column)]
            cure = "take the unit away" if found.unit else f"{' or '.join(ways)} reads them" if ways else "mend it"
            more = f", such as {found.example()}: {cure}"
        family = "categorical" if doubt.kind == "numbers" and not doubt.hardly_twice else "drop"
        date = f", or features={{{column!r}: 'date'}} for the number of days" if doubt.kind == "dates" else ""
        more += f"; drop it, or give features={{{column!r}: {family!r}}}{date} where the classifier takes features"
        yield Finding(doubt.kind, (column,), facts={**vars(doubt), "more": more})


def of_unseen(new: Mapping[str, Mapping[Any, int]]) -> Finding:
    """Return the rows of each category that was not there at the fit, by column."""
    counts = {column: sum(values.values()) for column, values in new.items()}
    columns = [f"column {c!r}: {listed(v)} in {counted(counts[c], 'row')}" for c, v in new.items()]
    text = f"{counted(sum(counts.values()), 'value')} taken as missing, of categories that were not there at fit: "
    return Finding("unseen", value=new, cure=Argument("unseen", "error"), facts={"text": text + several(columns, "; ")})


def of_wild(found: wild.Wild, x, names, places, dates: Sequence[str] = (), kind="wild", given=()) -> Iterator[Finding]:
    """Yield wild entries of numbers x (n, D) of columns ``names``, whose rows stand at ``places`` (n,), if any."""
    entries = [(names[j], x[i, j], int(places[i]), times) for i, j, times in zip(*found, strict=True)]
    if entries:
        text = several(
            f"column {name!r}: value {str(moments([value])[0])[:10] if name in dates else f'{value:g}'} in row {row} "
            f"is {times:.3g} times as far from the middle as its others"
            for name, value, row, times in entries
        )
        columns, rows = tuple(dict.fromkeys(e[0] for e in entries)), tuple(e[2] for e in entries)
        yield _far(text, columns, entries[0][1], dates, rows, kind, given)


def _far(text: str, columns, value, dates=(), rows=(), kind="wild", given=()) -> Finding:
    """Return wild entries: the first ``value``, the members that are ``given`` the rows as they are, a cure."""
    kept = f" (members={listed(given)}, classifiers of your own, learn from it as it is)" if given else ""
    keep = "" if kind == "wild" else "wild='keep', or "
    right = "" if columns[0] in dates else f"; if it is right, give {keep}the logarithm or the ranks of the column"
    return Finding(kind, columns, rows, float(value), facts={"text": text, "given": kept, "right": right})


def _within(schema, leaves, rows, first: int, last: int) -> Iterator[str]:
    """Yield the Gaussian columns that hold two or more whole numbers from first to last alone.

    Of two numbers a, b the sum of (x - a)(x - b) is 0. Of other whole numbers it is larger, of others 0 by chance.
    """
    edges: Any = {} if rows is None else rows.table.edges
    held = {c for c, (low, high) in edges.items() if first <= low < high <= last}.intersection(schema.whole)
    for block in schema.blocks:
        if block.leaf != "gaussian":
            continue
        if rows is not None:
            yield from [column for column in block.columns if column in held]
        elif isinstance(sums := leaves.get(block.name), Moments) and last == first + 1:
            excess = (sums.scatter + sums.n * (sums.mean - first) * (sums.mean - last)).sum(0)
            none = ~sums.pooled.constant & (np.abs(excess) <= 1e-12 * sums.n.sum(0))
            yield from [block.columns[j] for j in np.flatnonzero(none)]


def _copies(schema, leaves, statistics, rows, count: int) -> Iterator[str]:
    """Yield the columns with one value in each class, in each another, and no gap: as if copied from the labels."""
    sizes: Any = statistics.classes.sums if isinstance(statistics, ClassStatistics) else None
    if (sizes.sum() if sizes is not None else (rows.likely < count).sum() if rows is not None else 0) < _FEWEST:
        return
    for block in schema.blocks:
        sums, width = leaves.get(block.name), len(block.columns)
        if isinstance(sums, Moments):
            if sums.scatter.any(0).all():  # of vectors, too, no scatter is 0
                continue
            m = wild.by_column(sums)
            n, values, same = m.n.reshape(count, width), m.mean.reshape(count, width), ~m.scatter.any(0).reshape(width)
        elif sums is not None and block.leaf in ("categorical", "bernoulli"):
            sides = sums.sums.reshape(count, width, -1)
            n, values = sides.sum(2), sides.argmax(2)
            same = (sides.max(2) == n).all(0)
        elif rows is None or sparse.issparse(x := rows.blocks[block.name]):
            continue
        else:
            known = rows.likely < count
            x = x.reshape(len(x), -1)[known]
            if x.shape[1] == width:  # the symbols of a sequence are no columns
                yield from [block.columns[j] for j in copies(x, rows.likely[known], count)]
            continue
        for j in np.flatnonzero(same):
            if (n[:, j] >= (1 - 1e-9) * np.asarray(sizes)).all() and len(np.unique(values[:, j])) == count:
                yield block.columns[j]


def copies(values, codes, count: int) -> list[int]:
    """Return which columns (n, columns) hold one number of its own for each of so many classes; NaN where missing."""
    columns = np.arange(values.shape[1])
    for piece in (slice(_FIRST), slice(None)):  # few columns need more than a look at the first rows
        rows, group = values[piece].take(columns, 1), codes[piece]
        value = np.full((count, len(columns)), np.nan)
        value[group] = rows
        columns = columns[(rows == value.take(group, 0)).all(0)]
        if not len(columns):
            break
    return [j for j in columns.tolist() if len(np.unique(values[:, j])) == count]


def _wild(schema, leaves, statistics, rows, classes) -> Iterator[Finding]:
    """Yield the wild entries of columns of Gaussians: of the rows that came, or as the moments of rows alone tell."""
    once = bool(leaves) and np.array_equal(statistics.classes.sums, statistics.squares)  # each row counts once
    these = once and rows is not None and statistics.classes.sums.sum() == len(rows.codes)
    for block in schema.blocks:
        if block.leaf not in ("gaussian", "date"):
            continue
        sums: Any = m if isinstance(m := leaves.get(block.name), Moments) else None
        if rows is not None and not sparse.issparse(x := rows.blocks[block.name]):
            x, known, names = x.reshape(len(x), -1), rows.table.edges, block.columns
            edges = np.stack([known[c] for c in names], 1) if known.keys() >= {*names} else None
            if len((found := wild.find(x, rows.likely, sums if these else None, edges)).row):
                yield from of_wild(found, x, block.columns, rows.places, schema.dates)
        elif rows is None and sums is not None and once and len(classes) > 1:
            for j, k, value, times in wild.by_moments(sums):
                name = block.columns[j]
                like = f"mean and spread of class {classes[k]!r} are those of values as in other classes"
                far = f"beside few near {value:g}, {times:.3g} times as far from the middle"
                yield _far(f"column {name!r}: {like}, {far}", (name,), value, schema.dates)
