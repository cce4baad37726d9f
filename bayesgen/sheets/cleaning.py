"""Cleaning of a table as it stands in a file: roles of its columns, and the columns and classes that a model takes.

Rules decide on each column in turn: `_reasons` leave it out, `_doubts` are told of one that is kept.
"""

import functools
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import skew

from bayesgen.core.errors import Argument, InputError, Note, counted, named, quoted
from bayesgen.tables import dates
from bayesgen.tables.columns import check_distinct, check_named, is_number
from bayesgen.tables.description import Verdict, of_labels, of_whole
from bayesgen.tables.labels import NUMBERS, class_codes
from bayesgen.tables.numerals import Numerals
from bayesgen.tables.reading import Reading
from bayesgen.tables.repeats import columns_of, repeats
from bayesgen.tables.shares import Shares, labels_or_shares, most
from bayesgen.tables.suspicions import Coded, gap_words, of_codes, of_slips, of_target, of_telling, of_twins
from bayesgen.tables.text import alike, counts_of, numbers, tell_alike


def split(values: Iterable[str] | None, whole: Collection[str] = ()) -> list[str]:
    """Split the values of an option at commas; those that are among ``whole`` stay, commas, blanks and all."""
    split_up = (map(str.strip, value.split(",")) if value not in whole else [value] for value in values or ())
    return [part for parts in split_up for part in parts if part]


@dataclass(frozen=True)
class Roles:
    """Columns by their roles."""

    drop: tuple[str, ...] = ()  # left out
    id: tuple[str, ...] = ()  # they name the rows: left out of the model, and carried into the predictions
    number: tuple[str, ...] = ()  # numbers, though they seem to number the rows
    categorical: tuple[str, ...] = ()  # numbers that are categories
    count: tuple[str, ...] = ()  # counts, which get a Poisson model
    bernoulli: tuple[str, ...] = ()  # 0 and 1
    log: tuple[str, ...] = ()  # positive and skewed numbers, described by their logarithm
    date: tuple[str, ...] = ()  # dates to be used as numbers of days
    split: tuple[str, ...] = ()  # the roles by which the user says what is held out together: group, order

    @classmethod
    def said(cls, columns: Iterable[str], given: Mapping[str, Iterable[str] | None]) -> "Roles":
        """Check the roles that a user gave: column names, with commas between where there are several.

        A value that is the name of a column is that one, commas and all. Columns of the roles "group" and "order" name
        the rows, as those of "id" do.
        """
        columns, taken = list(columns), {}
        result: dict[str, tuple[str, ...]] = {field.name: () for field in fields(cls) if field.name != "split"}
        for role, values in given.items():
            result[role] = tuple(split(values, columns))
            for name in result[role]:
                check_named(name, columns, Argument(role), ": ")
                if name in taken:
                    problem = f": the column {name!r} is named by ", Argument(taken[name]), " already"
                    raise InputError(Argument(role), *problem)
                taken[name] = role
        apart = {role: names for role in ("group", "order") if (names := result.pop(role, ()))}
        result["id"] += sum(apart.values(), ())
        return cls(**result, split=tuple(apart))


_NUMBERS_ONLY = ("gda", "full", "shared")  # models that take columns of numbers alone
_COUNTS = Note("a row number, it seems: it counts the rows; ", Argument("number"), " keeps it")
_ORDER = "ambiguous: no whole number twice, and few between them that are not there, as row numbers are: "
_NUMBERED = Note(_ORDER, Argument("drop"), "?")
_WHO = Argument("group", words="groups="), " or ", Argument("id")
_BITS = "ambiguous: only 0 and 1, taken as numbers"
_SEEM = Note("dates, it seems; written as 2024-01-31 ", Argument("date"), " reads them")
_IDS = 0.9  # share of distinct whole numbers from which skewed ones may be names
_FEW = 10  # a column of whole numbers with no more distinct values could also be one of categories
_SKEWED = 2.0  # third standardised moment of an exponential distribution


@dataclass(frozen=True)
class Prepared:
    """Columns and classes that a classifier takes, and what was done to the table."""

    X: Any  # a DataFrame
    y: Any  # class labels; None without a target
    rows: np.ndarray  # position in the table of every row that is left
    # what to look at before a score is believed: columns that number the rows, hold 0 and 1 alone or tell the class,
    # repeated rows, odd classes; every one of them is named
    suspicions: tuple[str, ...]
    notes: tuple[str, ...]  # other omissions and ambiguities
    names: Any  # a DataFrame of the columns that name the rows, with no column where there are none
    features: dict[str, str]  # families of the columns whose type does not tell them, as naive Bayes takes them
    copies: np.ndarray | None  # (n,), or None: which rows are copies of one, where repeated rows are copies

    @property
    def sizes(self) -> dict[str, float]:
        """Number of rows of each class, or the sum of its shares."""
        classes, codes = class_codes(self.y)
        counts = np.bincount(codes) if codes.ndim == 1 else codes.sum(0)
        return dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True))

    @property
    def dates(self) -> tuple[str, ...]:
        """Columns of numbers that are days since 1970-01-01."""
        return tuple(Reading.of(self.X).dates)


def prepare(
    table: pd.DataFrame,
    target: str | tuple[str, ...] | None = None,
    model: str = "nb",
    gaps: Mapping[str, pd.Series] | None = None,
    roles: Roles | None = None,
    reading: Reading | None = None,
    doubts: Collection[str] = (),
) -> Prepared:
    """Split a table into columns and classes, leaving out what ``model`` cannot use.

    A ``target`` of several columns has the share of a class in each. Rows without a class are left out. The models
    "gda", "full" and "shared" take columns of numbers only, and "gda", whose inferences are compared, takes rows
    without gaps only. By ``gaps``, the spelling of missing entries in a file, a Series by row for each column, these
    are counted. The columns carry the account ``reading`` of how the file was written, with the formats of dates.
    ``doubts`` are told first: of columns that were left out, so that none need be left.
    """
    roles = roles or Roles()
    table = table.set_axis(table.columns.map(str), axis=1)
    check_distinct(table.columns)
    label, targets = (target, [target]) if isinstance(target, str) else (None, list(target or ()))
    for column in targets:
        check_named(column, table.columns)
    if not len(table):
        raise ValueError("the table is empty: it has columns, but no rows")
    suspicions, notes, X, y, rows = [*doubts], list[str](), table, None, np.arange(len(table))
    if targets:
        of: Any = table[targets]
        known = of.notna().any(axis=1).to_numpy()
        rows, lost = np.flatnonzero(known), np.flatnonzero(~known)
        if len(lost):
            left_out = counted(len(lost), "row")
            above = _merged(of[label], label) if label else ""
            notes.append(Note(f"{left_out} left out: no {named(targets)}{_spellings(gaps, targets, lost)}", above))
        X = table.iloc[rows].drop(columns=targets)
        if label is None:
            y = _shares(of, rows, reading)
        else:
            y = _labels(label, table[label].iloc[rows])
            suspicions += of_target(label, y)
    names: Any = X[list(roles.id)]
    X = X.drop(columns=[*roles.drop, *roles.id])
    told, kept, forms = defaultdict(list), dict[str, _Look](), {}
    for column, values in X.items():
        look, form = _in_its_role(values, str(column), rows, roles, reading or Reading())
        if form is not None:
            forms[look.name] = form
        if why := next(_reasons(look, model), ""):
            told[Note("left out: ", why)].append(look.name)
            continue
        kept[look.name] = look
        if not look.role and (doubt := next(_doubts(look, model), "")):
            told[doubt].append(look.name)
    for what, columns in _by_cure(told).items():
        if what == _BITS and model not in _NUMBERS_ONLY:
            cure = Argument("bernoulli", columns if len(columns) > 1 else columns[0])
            what = Note(what, ": ", cure, " has them as True and False")
        if what.startswith((f"left out: {_COUNTS}", _NUMBERED, _BITS)):
            suspicions.append(Note(f"{', '.join(map(quoted, columns))} ", what))
        else:
            notes.append(Note(f"{named(columns)} ", what))
    plain = ((name, look.seen) for name, look in kept.items() if look.plain and look.role not in ("date", "bernoulli"))
    slips = (one for name, look in kept.items() for one in of_slips(name, look.texts.value_counts().to_dict()))
    codes = of_codes((name, np.asarray(values, float)) for name, values in plain)
    suspicions[len(doubts) : len(doubts)] = [*codes, *slips]
    X = pd.DataFrame({column: look.usable for column, look in kept.items()}, index=X.index)
    if doubts and not X.shape[1]:
        return Prepared(X, y, rows, tuple(suspicions), tuple(notes), names.reset_index(drop=True), {}, None)
    if not X.shape[1]:
        raise InputError(Note("no column is left to learn from", *suspicions, *notes, between="; "))

    coded = {column: look.coded for column, look in kept.items()}
    if label is not None:
        suspicions += of_telling(label, coded, *pd.factorize(y))
    suspicions += of_twins(coded)
    missing = X.isna().to_numpy()
    spelled = _spellings(gaps, X.columns, rows)
    if missing.any() and model != "gda":
        done = "filled with the means of their columns" if model == "logistic" else "integrated out"
        notes.append(f"{counted(missing.sum(), 'missing value')} {done}{spelled}")
    elif missing.any():
        whole = ~missing.any(1)
        notes.append(f"{counted((~whole).sum(), 'row')} left out: gda compares on rows without gaps{spelled}")
        X, rows, names = X[whole], rows[whole], names[whole]
        if y is not None:
            y = y[whole]
        if label is not None:
            _check_classes(label, y)
    repeated = repeats(columns_of(X), np.zeros(len(X)) if y is None else most(class_codes(y)[1]))
    if repeated:
        suspicions.append(repeated.told(_WHO[0], roles.split))
    families = {column: look.family for column, look in kept.items() if look.family}
    written = replace(reading or Reading(), dates=forms).of_columns(X.columns)
    X = written.attached(X.reset_index(drop=True))
    names = names.reset_index(drop=True)
    return Prepared(X, y, rows, tuple(suspicions), tuple(notes), names, families, repeated.copies)


def _by_cure(told: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return what is told of columns, those that one option reads in one line, with the entry of the first of them."""
    lines: dict[Any, tuple[str, list[str]]] = {}
    for what, columns in told.items():
        cure = [str(part) for part in getattr(what, "parts", ()) if isinstance(part, Argument)]
        numbers = cure and "numbers as text" in what
        lines.setdefault((what.partition(",")[0], *cure) if numbers else what, (what, []))[1].extend(columns)
    return dict(lines.values())


def _in_its_role(values, column: str, rows, roles: Roles, reading: Reading) -> tuple["_Look", str | None]:
    """Return a look at a column in the role that the user gave it, and the format of dates that are to be numbers."""
    role = next((field.name for field in fields(roles) if column in getattr(roles, field.name)), "")
    family, form = "", None
    if role == "categorical":
        values = values.astype("category")
    elif role == "date":
        dated = values.to_numpy(dtype=object)
        form = dates.form_of(dated, column, reading.date_order)
        values = pd.Series(dates.days(dated, column, form), values.index)
    elif role:
        seen = values.dropna()
        if not _kinds(seen) <= {"number", "bool"}:
            raise ValueError(f"column {column!r} is to hold numbers, and holds {seen.iloc[0]!r}")
        if role == "bernoulli":
            if not seen.isin([0, 1]).all():
                odd = seen[~seen.isin([0, 1])].iloc[0]
                raise ValueError(f"column {column!r} is to hold 0 and 1, and holds {odd:g}")
            values = values.astype("boolean" if values.isna().any() else bool)
        elif role != "number":
            family = "poisson" if role == "count" else "log1p" if (seen == 0).any() else "log"
    return _Look.of(values, column, rows, reading.numerals(), role, family), form


@dataclass(frozen=True)
class _Look:
    """A column in the role that the user gave it, and what the rules ask of it."""

    name: str
    values: Any
    seen: Any  # those that are there; numbers as an array
    kinds: set[str]  # "number", "bool", "str", or the names of other types
    verdict: Verdict | None
    how: Numerals  # in which the numbers of its file were read
    role: str  # "" where the user gave none
    family: str  # where the type does not tell it

    @functools.cached_property
    def distinct(self) -> int:
        """The number of values that differ: it takes longer than all else."""
        return len(pd.unique(self.seen))

    @property
    def constant(self) -> bool:
        """True if all values are one."""
        values = self.seen
        return bool((values == values[0]).all()) if isinstance(values, np.ndarray) else self.distinct == 1

    @property
    def plain(self) -> bool:
        """True if all values are numbers, and no type declares that they are categories."""
        return self.kinds == {"number"} and not hasattr(self.values, "cat")

    @functools.cached_property
    def texts(self) -> Any:
        """The values as text, where they are to be categories that no type declares; else none."""
        as_text = not hasattr(self.values, "cat") and self.kinds not in ({"number"}, {"bool"})
        return self.seen.astype(object).map(str) if as_text else pd.Series(dtype=object)

    @property
    def coded(self) -> Coded:
        """Its numbers, or the code of each value, for what is suspicious in it."""
        if self.plain:
            return Coded(self.values.to_numpy(float, na_value=np.nan), True)
        codes = pd.factorize(self.values)[0]
        return Coded(np.where(codes < 0, np.nan, codes), False)

    @property
    def usable(self) -> Any:
        """The column of one type, as models take it."""
        if len(self.texts):
            return self.texts.reindex(self.values.index)
        return pd.to_numeric(self.values) if self.plain and self.values.dtype.kind not in "iuf" else self.values

    @classmethod
    def of(cls, values, name: str, rows, how: Numerals, role: str = "", family: str = "") -> "_Look":
        """Look at a column, some ``rows`` of a table, whose values are in their role."""
        seen, verdict = values.dropna(), None
        kinds = _kinds(seen)
        if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf":
            seen = seen.to_numpy()
        if kinds == {"str"} and not hasattr(values, "cat"):
            verdict = of_labels(seen.unique(), len(seen))
        elif values.dtype.kind in "iuf" and len(seen) > _FEW and (np.floor(seen) == seen).all():
            there = rows[values.notna().to_numpy(bool)]
            verdict = None if role else of_whole(np.asarray(seen), there, name)  # a row a day counts no rows
        return cls(name, values, seen, kinds, verdict, how, role, family)


def _reasons(look: _Look, model: str) -> Iterator[str]:
    """Yield the reasons to leave a column out, by a rule each: the first is told."""
    kinds, verdict = look.kinds, look.verdict
    found = verdict.kind if verdict else ""
    if not kinds:
        yield "no observed value"
    if kinds <= {"date", "datetime", "Timestamp"} or found == "dates":
        yield Note("dates; ", Argument("date"), " makes numbers of them")
    if not kinds <= {"number", "bool", "str"}:
        yield f"values of type {named(sorted(kinds))}, neither numbers nor categories"
    if look.constant and found != "numbers":
        yield f"constant, always {np.asarray(look.seen, object)[0]}"
    if verdict and verdict.unread and found == "numbers" and not _may_be_categories(verdict):
        yield Note("numbers as text", verdict.unread.advice(look.name, look.how))
    if found == "names" and dates.seem(look.texts.unique()):
        yield _SEEM
    if verdict and found == "names":
        seen = f"an identifier, it seems: {verdict.distinct} distinct values in {verdict.seen} rows"
        yield Note(seen, _merged(look.values, look.name))
    if found == "counts":
        yield _COUNTS
    if model in _NUMBERS_ONLY and not look.plain:
        yield f"not numbers, and {model} takes numbers only"


def _doubts(look: _Look, model: str) -> Iterator[str]:
    """Yield the doubts about a column that is kept, by a rule each: the first is told where the user gave no role."""
    verdict, texts = look.verdict, look.texts
    if merged := _merged(look.values, look.name):
        yield Note("ambiguous: missing mostly", merged)
    if verdict and verdict.kind == "ids":
        seen = f"{verdict.distinct} distinct whole numbers in {verdict.seen} rows"
        yield Note(f"ambiguous: {seen}, which may name people or things: ", *_WHO)
    if verdict and verdict.kind == "numbered":
        yield _NUMBERED
    if look.plain and np.isin(np.asarray(look.seen, float), (0, 1)).all() and look.distinct == 2:
        yield _BITS
    elif look.plain and _whole(look.seen) and look.distinct <= _FEW:
        yield Note("ambiguous: few distinct whole numbers; ", Argument("categorical"), " makes categories")
    if verdict and verdict.unread:
        how = verdict.unread.advice(look.name, look.how)
        yield Note("ambiguous: numbers as text", how, "; taken as categories")
    if dates.seem(texts.unique()):
        yield Note("ambiguous: ", _SEEM, "; taken as categories")
    numbers: Any = pd.to_numeric(texts, errors="coerce")  # a Series of a Series, which the stubs do not say
    words = texts[numbers.isna()]
    if 2 * len(words) < len(texts):
        but = f"but for {words.iloc[0]!r}" if len(words) else "written as text"
        yield f"ambiguous: numbers {but}, taken as categories"
    if gap := gap_words(texts):
        yield Note("ambiguous: ", gap)
    if model == "nb" and _skewed(look):
        note = Note("skewed, mostly small with few large values: ", Argument("log"), " takes the logarithm")
        if _whole(look.seen) and look.distinct >= _IDS * len(look.seen):
            note = Note(note, ", or names people or things, hardly one twice: ", *_WHO, " leaves them out")
        yield note
    if "str" in look.kinds and (groups := alike(look.seen.unique())):
        yield tell_alike(groups, look.seen.value_counts().__getitem__)


def _may_be_categories(verdict: Verdict) -> bool:
    """Return True if numbers as text may be categories all the same: beside a word or unit, or as programs write."""
    found = verdict.unread
    odd = found is not None and not found.unit and (bool(found.words) or is_number(found.entry))
    return odd and not verdict.hardly_twice


def _merged(values: pd.Series, column: str) -> Note:
    """Return what fills a column of text, or of whole numbers that rise, if its cells seem merged; else an empty note.

    Its first field is filled, half of all and more are empty, and no value is there twice.
    """
    seen = values.dropna()
    order = values.dtype.kind not in "iuf" or (values.dtype.kind != "f" and seen.is_monotonic_increasing)
    if not 1 < len(seen) <= len(values) / 2 or pd.isna(values.iloc[0]) or not seen.is_unique or not order:
        return Note("")
    return Note("; it stands above empty fields, as in merged cells: ", Argument("fill_down", column), " fills them")


def _whole(values) -> bool:
    with np.errstate(invalid="ignore"):  # of infinite values
        return bool((values % 1 == 0).all())


def _skewed(look: _Look) -> bool:
    if look.values.dtype.kind not in "iuf" or len(look.seen) <= _FEW:
        return False
    seen = np.asarray(look.seen, float)
    if not (seen >= 0).all() or look.distinct <= 2:
        return False
    with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # SciPy's, of values that lie close together
        before, after = (skew(v) for v in (seen, np.log1p(seen) if (seen == 0).any() else np.log(seen)))
    return before > _SKEWED and abs(after) < before / 2


def _labels(target: str, column) -> np.ndarray:
    y = np.asarray(column.tolist())
    y = y if y.dtype.kind in "biufU" else y.astype(str)
    y = y.astype(int) if y.dtype.kind == "f" and (y % 1 == 0).all() else y
    _check_classes(target, y)
    found: list[Any] = np.unique(y).tolist()
    found = (numbers(found) or []) if y.dtype.kind == "U" else found
    if any(isinstance(number, float) and number % 1 for number in found):
        raise ValueError(f"{quoted(target)} holds {len(found)} {NUMBERS}")
    return y


def _shares(columns: pd.DataFrame, rows: np.ndarray, reading: Reading | None) -> Shares:
    """Return the shares of classes, a column each, of some rows; those written with percent signs as fractions."""
    for name, values in columns.items():
        if values.dtype.kind not in "iufb":
            odd = next(value for value in values.dropna() if not isinstance(value, int | float))
            raise ValueError(f"column {name!r} is to hold shares of a class, and holds {odd!r}")
    values, percent = columns.to_numpy(float, True, np.nan), set(reading.percent or ()) if reading else set()
    values = values / 100 if percent.issuperset(columns) else values
    values[np.setdiff1d(np.arange(len(values)), rows)] = 1 / values.shape[1]  # so that errors name rows of the file
    return labels_or_shares(pd.DataFrame(values, columns=columns.columns))[rows]


def _kinds(values) -> set[str]:
    if values.dtype.kind in "iufb" and len(values):
        return {"bool"} if values.dtype.kind == "b" else {"number"}
    names = {type(v).__name__ for v in values.tolist()}
    return {"number" if name in ("int", "float") else name for name in names}


def _spellings(gaps, columns, rows) -> str:
    """Count the spellings of gaps in some columns and rows, in brackets; "" where none is known."""
    found = [gaps[column] for column in columns if column in gaps and len(gaps[column])] if gaps else []
    spelled = [word for series in found for word in series[series.index.isin(rows)]]
    return f" ({counts_of(spelled)})" if spelled else ""


def _check_classes(target, y):
    if not len(y):
        raise ValueError(f"no row is left: all lack {quoted(target)} or, for gda, a number")
    if (y == y[0]).all():
        only = f"{y[0]}, in the {counted(len(y), 'row')} that can be used"
        raise ValueError(f"{quoted(target)} holds one class only, {only}")
