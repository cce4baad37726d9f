"""Findings: what rows, or their sums, hold that may not be as meant, asked once for every way of learning, and told.

A `Finding` has facts: its kind, columns, rows of the user's table, values, and the argument that mends it. All words
stand in this file. What sums can tell is told from sums; the rows, where they are there, tell the rest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.core.errors import Argument, InputWarning, counted, listed, several, warn
from bayesgen.models.beside_constants import constants_of
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.column_families import FAMILIES
from bayesgen.models.moments import Moments
from bayesgen.tables import wild
from bayesgen.tables.dates import moments
from bayesgen.tables.description import Verdict, whole_within
from bayesgen.tables.repeats import likely_copies
from bayesgen.tables.text import alike, tell_alike

ANSWERS = ((0, 1),)  # whole numbers, from the first to the last, that may stand for answers
_FEWEST, _FIRST = 20, 1000  # rows: of fewer a column may agree with the labels by chance; rows looked at before all


@dataclass(frozen=True)
class Finding:
    """What was found, in facts."""

    kind: str  # key of its words: "wild", "repeats", "copy", ...
    columns: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()  # positions in the user's table, where they are known
    value: Any = None  # what was found there; of wild entries the first of them
    cure: Argument | None = None  # the argument that mends it
    more: Any = field(default=None, repr=False)  # what the words need besides

    @property
    def words(self) -> tuple[str | Argument, ...]:
        """The text in pieces, the cure among them."""
        words = _WORDS[self.kind](self)
        return words if isinstance(words, tuple) else (words,)

    def __str__(self):
        return "".join(map(str, self.words))


def tell(found: Iterable[Finding], told: set | None = None) -> None:
    """Warn of findings; of those that are ``told`` already, which grows, no more."""
    for finding in found:
        key = (finding.kind, finding.columns)
        if told is None or key not in told:
            facts = {"column": finding.columns[0] if finding.columns else None, "value": finding.value}
            row = finding.rows[0] if finding.rows else None
            warn(InputWarning(*finding.words, row=row, kind=finding.kind, **facts))
        if told is not None:
            told.add(key)


def findings(
    schema, statistics, rows=None, *, classes: Any = (), answers: Iterable = (), seen: Any = None, skip: Any = ()
) -> Iterator[Finding]:
    """Find what may not be as meant in a fit, from its sums and, where they are there, its rows.

    ``schema`` has the columns of the fit, and ``statistics`` are all that was summed, or None: its ``leaves``, where it
    has some, are looked at. ``rows`` are the `LearnedRows` that came, with their blocks; of rows that came in pieces
    there is what was ``seen``, by block. ``classes`` (K,) are the labels, none of a regression. Columns of numbers are
    told that hold one of the pairs ``answers`` alone. Kinds to ``skip`` are "constant", where no weak prior leaves such
    columns out, "wild" and "repeats".
    """
    leaves = dict(getattr(statistics, "leaves", ()))
    if len(classes) == 1:
        yield Finding("one class", value=classes)
    elif len(classes):
        yield from of_alike("y", np.asarray(classes).tolist(), None if rows is None else rows.count)
    if rows is not None and rows.weightless:
        yield Finding("weightless", value=rows.weightless)
    constant: list[str] = []
    for block in schema.blocks if "constant" not in skip else ():
        known = isinstance(block.leaf, str) and block.name in leaves
        if known and (FAMILIES[block.leaf].scaled or block.leaf in ("bernoulli", "categorical")):
            flags = np.ravel(constants_of(leaves[block.name])[0])
            constant += [name for name, flag in zip(block.columns, flags, strict=True) if flag]
    if constant:
        yield of_constant(constant, "class" if len(classes) else "target")
    exact = leaves if isinstance(statistics, ClassStatistics) else {}  # and not what priors follow
    for pair in answers:
        if columns := _pairs(schema, exact, pair, rows):
            yield of_pair(columns, pair)
    for name in _copies(schema, leaves, statistics, rows, len(classes)):
        yield Finding("copy", (name,))
    if "wild" not in skip:
        yield from _wild(schema, leaves, statistics, rows, classes, seen or {})
    if "repeats" not in skip and rows is not None and (found := likely_copies(schema, rows.blocks, rows.by_class)):
        yield Finding("repeats", value=found)


# -- what is looked for ------------------------------------------------------------------------------------------------


def of_alike(place: str, labels, count: Callable[[str], int] | None = None, columns=()) -> Iterator[Finding]:
    """Yield labels or categories that a reader takes for one, as Yes and yes; ``count`` gives the rows of each."""
    if len(labels) and (isinstance(labels[0], str) or isinstance(labels[-1], str)) and (groups := alike(labels)):
        yield Finding("alike", columns, value=groups, more=f"{place}: {tell_alike(groups, count)}")


def of_doubt(column: str, doubt: Verdict | None) -> Iterator[Finding]:
    """Yield a column that may be no feature."""
    if doubt:
        family = "categorical" if doubt.kind == "numbers" and not doubt.hardly_twice else "drop"
        yield Finding(doubt.kind, (column,), cure=Argument("features", {column: family}), more=doubt)


def of_constant(names, what: str = "class", empty: bool = False) -> Finding:
    """Return the columns that are constant, or ``empty`` some of them, and so say nothing of a class or target."""
    return Finding("constant", tuple(names), more=(" or empty" if empty else "", what))


def of_pair(columns: list[str], pair: tuple[int, int]) -> Finding:
    """Return the columns of numbers that hold a pair alone and are taken as Gaussian."""
    family = "bernoulli" if pair == (0, 1) else "categorical"
    cure = Argument("features", family, f"features=dict.fromkeys({columns}, {family!r})")
    return Finding("answers", tuple(columns), value=columns, cure=cure, more=pair)


def of_entries(entries, dates: Sequence[str] = (), kind: str = "wild", more: Any = None) -> Iterator[Finding]:
    """Yield wild entries as one finding: of each the column, value, row of the user's table or None, and distance."""
    if entries:
        shown = [str(moments([value])[0])[:10] if name in dates else f"{value:g}" for name, value, _, _ in entries]
        places = (f" in row {row}" if row is not None else "" for _, _, row, _ in entries)
        text = several(
            f"column {name!r}: value {value}{place} is {times:.3g} times as far from the middle as its others"
            for (name, _, _, times), value, place in zip(entries, shown, places, strict=True)
        )
        columns, rows = tuple(dict.fromkeys(e[0] for e in entries)), tuple(e[2] for e in entries if e[2] is not None)
        yield Finding(kind, columns, rows, float(entries[0][1]), more=(text, columns[0] in dates, more))


def of_wild(found: wild.Wild, x, names, places, dates=(), kind: str = "wild", more: Any = None) -> Iterator[Finding]:
    """Yield wild entries of numbers x (n, D) of columns ``names``, whose rows stand at ``places`` (n,), if any."""
    entries = [(names[j], x[i, j], int(places[i]), times) for i, j, times in zip(*found, strict=True)]
    yield from of_entries(entries, dates, kind, more)


def scaled(schema, leaves) -> list[tuple[Any, Any]]:
    """Return the blocks whose weak prior follows the scale of the rows, each with the location and scale."""
    known = [block for block in schema.blocks if isinstance(block.leaf, str) and block.name in leaves]
    return [(block, leaves[block.name].pooled) for block in known if FAMILIES[block.leaf].scaled]


def _pairs(schema, leaves, pair: tuple[int, int], rows) -> list[str]:
    """Return the Gaussian columns that hold a pair alone, as rows confirm where they are there.

    Of the pair a, b the sum of (x - a)(x - b) is 0. Of other whole numbers it is larger, of others 0 by chance alone.
    """
    result = []
    for block in schema.blocks:
        if block.leaf != "gaussian":
            continue
        found: Any = range(len(block.columns))
        if isinstance(sums := leaves.get(block.name), Moments) and pair[1] == pair[0] + 1:
            excess = (sums.scatter + sums.n * (sums.mean - pair[0]) * (sums.mean - pair[1])).sum(0)
            found = np.flatnonzero(~sums.pooled.constant & (np.abs(excess) <= 1e-12 * sums.n.sum(0)))
        if rows is not None and not sparse.issparse(x := rows.blocks[block.name]):
            x = x.reshape(len(x), -1)
            found = [j for j in found if whole_within(x[:, j], *pair)]
        elif sums is None:
            continue
        result += [block.columns[j] for j in found]
    return result


def _copies(schema, leaves, statistics, rows, count: int) -> Iterator[str]:
    """Yield the columns with one value in each class, in each another, and no gap: as if copied from the labels."""
    sizes = statistics.classes.sums if isinstance(statistics, ClassStatistics) else None
    number = sizes.sum() if sizes is not None else 0 if rows is None else rows.known.sum()
    if count < 2 or number < _FEWEST:
        return
    for block in schema.blocks:
        sums, width = leaves.get(block.name), len(block.columns)
        if sizes is not None and isinstance(sums, Moments):
            if sums.scatter.any(0).all():  # of vectors, too, no scatter is 0
                continue
            m = wild.by_column(sums)
            n, values, scatter = (v.reshape(count, width) for v in (m.n, m.mean, m.scatter))
            same = ~scatter.any(0)
        elif sizes is not None and block.leaf in ("categorical", "bernoulli"):
            sides = sums.sums.reshape(count, width, -1)
            n, values = sides.sum(2), sides.argmax(2)
            same = (sides.max(2) == n).all(0)
        elif rows is None or sparse.issparse(x := rows.blocks[block.name]):
            continue
        else:
            x = x.reshape(len(x), -1)[rows.known]
            if x.shape[1] == width:  # the symbols of a sequence are no columns
                yield from (block.columns[j] for j in copies(x, rows.likely[rows.known], count))
            continue
        for j in np.flatnonzero(same):
            if (n[:, j] >= (1 - 1e-9) * sizes).all() and len(np.unique(values[:, j])) == count:
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


def _wild(schema, leaves, statistics, rows, classes, seen: Mapping[str, wild.Seen]) -> Iterator[Finding]:
    """Yield the wild entries of columns of Gaussians: of rows, of those that were seen, or as moments alone tell."""
    summed = isinstance(statistics, ClassStatistics)
    these = summed and rows is not None and rows.weight is None and statistics.classes.sums.sum() == len(rows.codes)
    for block in wild.numeric(schema):
        sums, found = leaves.get(block.name), []
        moments = sums if isinstance(sums, Moments) else None
        if rows is not None and not sparse.issparse(x := rows.blocks[block.name]):
            x = x.reshape(len(x), -1)
            far = wild.find(x, rows.by_class, moments if these else None)
            found = [*of_wild(far, x, block.columns, rows.places, schema.dates)] if len(far.row) else []
        elif block.name in seen and moments is not None:
            entries = [(block.columns[j], value, None, times) for j, value, times in seen[block.name].wild(moments)]
            found = [*of_entries(entries, schema.dates)]
        alone = not found and not these and block.name not in seen  # rows that count once, and moments alone are left
        if alone and moments is not None and summed and np.array_equal(statistics.classes.sums, statistics.squares):
            for j, k, value, times in wild.by_moments(moments):
                text = _by_moments(column := block.columns[j], classes[k], value, times)
                found.append(Finding("wild", (column,), value=value, more=(text, column in schema.dates, None)))
        yield from found
        if moments is not None:
            vars(moments).pop("edges", None)  # they were there for this look


# -- words -------------------------------------------------------------------------------------------------------------

_DOUBTS = {
    "dates": "holds dates as text, which would be categories",
    "durations": "holds durations, which are taken as numbers of days",
    "numbers": "holds numbers as text",
    "names": "seems to name the rows, with {distinct} distinct values in {seen} rows; names say nothing",
    "counts": "seems to number the rows, which says nothing of new rows",
    "numbered": "holds no number twice and few gaps between them, as numbers of rows do",
    "ids": "seems to name people or things, by {distinct} distinct whole numbers in {seen} rows: groups= takes them",
}


def _of_doubt(finding: Finding):
    (column,), doubt = finding.columns, finding.more
    date = f", or features={{{column!r}: 'date'}} for the number of days" if doubt.kind == "dates" else ""
    said = _DOUBTS[doubt.kind].format(**vars(doubt))
    read = ""  # an entry that is a number as offices write it, and how to read the file
    if (found := doubt.unread) is not None:
        ways = (f"bayesgen.read_table({', '.join(['path', *map(str, arguments)])})" for arguments in found.cures())
        cure = "take the unit away" if found.unit else f"{' or '.join(ways)} reads them"
        read = f", such as {found.example()}: {cure}"
    return f"column {column!r} {said}{read}; drop it, or give {finding.cure}{date} where the classifier takes features"


def _by_moments(column: str, label, value: float, times: float) -> str:
    return (
        f"column {column!r}: mean and spread of class {label!r} are those of values as in other classes, beside few "
        f"near {value:g}, {times:.3g} times as far from the middle as others spread"
    )


def _of_wild(finding: Finding):
    text, date, _ = finding.more
    cure = "" if date else "; if it is right, give the logarithm or the ranks of the column"
    return f"{text}: it is learned from as it is, and moves what is said of other rows. Mend it or give NaN{cure}"


def _of_completed(finding: Finding):
    text, date, given = finding.more
    done = "it is taken as missing, and what its class and row let expect stands for it"
    done += f" (members={listed(given)}, classifiers of your own, learn from it as it is)" if given else ""
    cure = "" if date else "; if it is right, give wild='keep', or the logarithm or the ranks of the column"
    return f"{text}: {done}. Mend it or give NaN{cure}"


def _of_answers(finding: Finding):
    first, last = finding.more
    bits = finding.more == (0, 1)
    numbers = "numbers 0 and 1" if bits else f"whole numbers from {first} to {last}"
    stand = "no and yes" if bits else "answers"
    return f"{numbers} alone are taken as Gaussian; where they stand for {stand}, give ", finding.cure


def _of_unseen(finding: Finding):
    counts = {column: sum(values.values()) for column, values in finding.value.items()}
    columns = [f"column {c!r}: {listed(v)} in {counted(counts[c], 'row')}" for c, v in finding.value.items()]
    text = f"{counted(sum(counts.values()), 'value')} taken as missing, of categories that were not there at fit: "
    return f"{text}{several(columns, '; ')}. ", finding.cure, " refuses them"


_WORDS: dict[str, Callable[[Finding], Any]] = {
    **dict.fromkeys(_DOUBTS, _of_doubt),
    "one class": lambda f: f"y holds one class only, {listed(f.value)}: every row will get it with certainty",
    "alike": lambda f: f"{f.more}; spell them alike, if they are one",
    "weightless": lambda f: (
        f"all rows of the labels {listed(f.value)} in y have weight 0: they are no classes of this fit"
    ),
    "constant": lambda f: (
        f"columns {listed(f.columns)} are constant{f.more[0]}: they say nothing of the {f.more[1]}, and are left out"
    ),
    "answers": _of_answers,
    "copy": lambda f: (
        f"column {f.columns[0]!r} has one value for each class, as if copied from y; drop it, unless it will be known "
        "of new rows before their class is"
    ),
    "wild": _of_wild,
    "wild completed": _of_completed,
    "wild kept": lambda f: f"{f.more[0]}: it is learned from as it is, as wild='keep' asks",
    "repeats": lambda f: (
        f"{f.value}: if they are copies of one measurement, its probabilities are too sure; X.drop_duplicates() leaves "
        "one of each"
    ),
    "repeats left out": lambda f: f.value.told().parts,
    "undivided": lambda f: (
        f"all rows of {listed(f.value)} are of one group: left out with it, nothing is known of the class, and how "
        "well it is told apart in new groups cannot be judged"
    ),
    "naming": lambda f: (
        f"column {f.columns[0]!r} seems to name what rows belong to: {f.more[0]} rows share {f.more[1]} values, and "
        "rows of one value share the class much more often than chance. If new rows are of new ones, drop the column "
        "and fit with ",
        f.cure,
        ": scores and probabilities are too sure otherwise",
    ),
    "filled": lambda f: (
        "numeric columns are many and have gaps: for the full and shared covariances these are filled by the means of "
        "their class. At prediction they are integrated out"
    ),
    "nothing gained": lambda f: (
        "no member predicts rows left out better than the class prior alone: the columns may say nothing of the class, "
        "or there are too few rows to tell"
    ),
    "shrunk": lambda f: (
        f"in {f.value[0]} of {f.value[1]} starts a class shrank onto rows of nearly one value, where the likelihood "
        "grows without bound. This is the best of the other starts, and another random_state may give another: use ",
        f.cure,
        ", whose prior keeps variances from 0",
    ),
    "unseen": _of_unseen,
}
