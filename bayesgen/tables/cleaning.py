"""Cleaning of a table as it stands in a file: roles of its columns, and the columns and classes that a model takes.

An account of what was done to the table comes with them.
"""

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import counted, listed, named, quoted
from bayesgen.tables import dates
from bayesgen.tables.columns import is_number
from bayesgen.tables.description import Verdict, of_labels, of_whole
from bayesgen.tables.labels import copies
from bayesgen.tables.numerals import Numerals, Unread
from bayesgen.tables.reading import Reading
from bayesgen.tables.text import GAP_WORDS, alike, counts_of, numbers, tell_alike


def split(values: Iterable[str] | None, whole: Collection[str] = ()) -> list[str]:
    """Split the values of an option at commas; those that are among ``whole`` stay, commas and all."""
    parts = (part.strip() for value in values or () for part in ([value] if value in whole else value.split(",")))
    return [part for part in parts if part]


@dataclass(frozen=True)
class Roles:
    """Columns by their roles."""

    drop: tuple[str, ...] = ()  # left out
    id: tuple[str, ...] = ()  # they name the rows: left out of the model, and carried into the predictions
    categorical: tuple[str, ...] = ()  # numbers that are categories
    count: tuple[str, ...] = ()  # counts, which get a Poisson model
    bernoulli: tuple[str, ...] = ()  # 0 and 1
    log: tuple[str, ...] = ()  # positive and skewed numbers, described by their logarithm
    date: tuple[str, ...] = ()  # dates to be used as numbers of days

    @classmethod
    def said(cls, columns: Iterable[str], given: Mapping[str, Iterable[str] | None]) -> "Roles":
        """Check the roles that a user gave: column names, with commas between where there are several.

        A value that is the name of a column is that one, commas and all. Columns of the roles "group" and "order" name
        the rows, as those of "id" do.
        """
        columns, taken = list(columns), {}
        result: dict[str, tuple[str, ...]] = {field.name: () for field in fields(cls)}
        for role, values in given.items():
            result[role] = tuple(split(values, columns))
            for name in result[role]:
                if name not in columns:
                    raise ValueError(f"--{role}: no column {name!r}; there are: {named(columns)}")
                if name in taken:
                    raise ValueError(f"--{role}: the column {name!r} is named by --{taken[name]} already")
                taken[name] = role
        result["id"] += result.pop("group", ()) + result.pop("order", ())
        return cls(**result)


_IDS = 0.9  # share of distinct whole numbers from which skewed ones may be names
_FEW = 10  # a column of whole numbers with no more distinct values could also be one of categories
_UNUSABLE = {
    "dates": "dates; --date makes numbers of them",
    "numbers": "numbers as text{how}",
    "names": "an identifier, it seems: {distinct} distinct values in {seen} rows",
    "counts": "a row number, it seems: it counts the rows",
}
_IDS_TOLD = "{distinct} distinct whole numbers in {seen} rows, which may name people or things: --group or --id"
_SKEWED = 2.0  # third standardised moment of an exponential distribution


@dataclass(frozen=True)
class Prepared:
    """Columns and classes that a classifier takes, and what was done to the table."""

    X: Any  # a DataFrame
    y: Any  # class labels; None without a target
    rows: np.ndarray  # position in the table of every row that is left
    notes: tuple[str, ...]  # omissions and ambiguities
    names: Any  # a DataFrame of the columns that name the rows, with no column where there are none
    features: dict[str, str]  # families of the columns whose type does not tell them, as naive Bayes takes them

    @property
    def dates(self) -> tuple[str, ...]:
        """Columns of numbers that are days since 1970-01-01."""
        return tuple(Reading.of(self.X).dates)


def prepare(
    table: pd.DataFrame,
    target: str | None = None,
    model: str = "nb",
    gaps: Mapping[str, pd.Series] | None = None,
    roles: Roles | None = None,
    reading: Reading | None = None,
) -> Prepared:
    """Split a table into columns and classes, leaving out what ``model`` cannot use.

    Rows without a class are left out. The models "gda", "full" and "shared" take columns of numbers only, and "gda",
    whose inferences are compared, takes rows without gaps only. By
    ``gaps``, the spelling of missing entries in a file, a Series by row for each column, these are counted. The columns
    carry the account ``reading`` of how the file was written, with the formats of dates.
    """
    roles = roles or Roles()
    table = table.set_axis(table.columns.map(str), axis=1)
    if not table.columns.is_unique:
        raise ValueError(f"column {table.columns[table.columns.duplicated()][0]!r} is there twice")
    if target is not None and target not in table.columns:
        raise ValueError(f"no column {target!r}; there are: {named(table.columns)}")
    if not len(table):
        raise ValueError("the table is empty: it has columns, but no rows")
    notes, told = [], defaultdict(list)
    X, y, rows = table, None, np.arange(len(table))
    if target is not None:
        rows, lost = (np.flatnonzero(known) for known in (table[target].notna(), table[target].isna()))
        if len(lost):
            left_out = counted(len(lost), "row")
            notes.append(f"{left_out} left out: no {quoted(target)}{_spellings(gaps, [target], lost)}")
        X, y = table.iloc[rows].drop(columns=target), _labels(target, table[target].iloc[rows])
        notes += _doubts_of_classes(target, y)
    names: Any = X[list(roles.id)]
    X = X.drop(columns=[*roles.drop, *roles.id])
    features, kept, forms, looks = {}, {}, {}, {}
    said = {name for field in fields(roles) for name in getattr(roles, field.name)}
    for column, values in zip(X.columns.tolist(), (values for _, values in X.items()), strict=True):
        values, family = _as_said(values, column, roles)
        if column in roles.date:
            written = values.to_numpy(dtype=object)
            forms[column] = dates.format_of(dates.formats_of(written, column), column)
            values = pd.Series(dates.days(written, column, forms[column]), X.index)
        found = _Look.at(values, rows, column, days=column in roles.date)
        if why := _unusable(found, model, column in roles.categorical):
            told[f"left out: {why}"].append(column)
            continue
        kept[column], doubt = _of_one_type(found)
        features[column], looks[column] = family, found
        if column in said:
            continue
        if doubt:
            told[f"ambiguous: {doubt}"].append(column)
        elif model == "nb" and _skewed(found):
            whole = (found.seen % 1 == 0).all() and found.distinct >= _IDS * len(found.seen)
            ids = ", or names people or things, hardly one twice: --group or --id leaves them out" if whole else ""
            told[f"skewed, mostly small with few large values: --log takes the logarithm{ids}"].append(column)
        elif "str" in found.kinds and (groups := alike(found.seen.unique())):
            told[tell_alike(groups, found.seen.value_counts().__getitem__)].append(column)
    notes += [f"{named(columns)} {what}" for what, columns in told.items()]
    X = pd.DataFrame(kept, index=X.index)
    if not X.shape[1]:
        raise ValueError("; ".join(["no column is left to learn from", *notes]))

    codes, classes = (None, ()) if target is None else pd.factorize(y)
    copies = [column for column, found in looks.items() if codes is not None and _is_copy(found, codes, len(classes))]
    if copies:
        notes.append(f"{named(copies)} one value for each class, as if copied from {quoted(target)}: --drop, if it was")
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
            _check_classes(target, y)
    families = {column: family for column, family in features.items() if family and column in X.columns}
    written = replace(reading or Reading(), dates=forms).of_columns(X.columns)
    X = written.attached(X.reset_index(drop=True))
    return Prepared(X, y, rows, tuple(notes), names.reset_index(drop=True), families)


def _labels(target: str, column) -> np.ndarray:
    """Return class labels, or raise an error where they are none, or of one class."""
    y = np.asarray(column.tolist())
    if y.dtype.kind == "f":
        if (y % 1 != 0).any():
            raise ValueError(f"{quoted(target)} holds {len(np.unique(y))} distinct real numbers, not classes")
        y = y.astype(int)
    y = y if y.dtype.kind in "biuU" else y.astype(str)
    _check_classes(target, y)
    return y


def _as_said(values, column, roles: Roles) -> tuple[Any, str]:
    """Return a column in the role that the user gave it, and its family where the type does not tell it."""
    if column in roles.categorical:
        return values.astype("category"), ""
    if column not in (*roles.count, *roles.bernoulli, *roles.log):
        return values, ""
    seen = values.dropna()
    if not _kinds(seen) <= {"number", "bool"}:
        raise ValueError(f"column {column!r} is to hold numbers, and holds {seen.iloc[0]!r}")
    if column in roles.count:
        return values, "poisson"
    if column in roles.log:
        return values, "log1p" if (seen == 0).any() else "log"
    if not seen.isin([0, 1]).all():
        raise ValueError(f"column {column!r} is to hold 0 and 1, and holds {seen[~seen.isin([0, 1])].iloc[0]:g}")
    return values.astype("boolean" if values.isna().any() else bool), ""


def _skewed(found: "_Look") -> bool:
    """Return True if numbers are skewed, and their logarithms much less so."""
    if found.values.dtype.kind not in "iuf" or len(found.seen) <= _FEW:
        return False
    seen = np.asarray(found.seen, float)
    if not (seen >= 0).all() or found.distinct <= 2:
        return False
    before, after = (_third_moment(v) for v in (seen, np.log1p(seen) if (seen == 0).any() else np.log(seen)))
    return before > _SKEWED and abs(after) < before / 2


def _is_copy(found: "_Look", codes, count: int) -> bool:
    """Return True if each of so many classes has one value of its own in a column, and the column no gap."""
    if len(found.seen) < len(found.values):
        return False
    values = found.seen if isinstance(found.seen, np.ndarray) else pd.factorize(found.values)[0]
    return bool(copies(values[:, None], codes, count))


def _third_moment(values) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        z = (values - values.mean()) / values.std()
        return float((z**3).mean())


@dataclass(frozen=True)
class _Look:
    """A look at a column: its values, those that are there, their kinds, and the verdict on them."""

    values: Any
    seen: Any  # numbers as an array
    kinds: set[str]
    verdict: Verdict | None

    @functools.cached_property
    def distinct(self) -> int:
        """The number of values that differ: it takes longer than all else."""
        return len(pd.unique(self.seen))

    @property
    def constant(self) -> bool:
        """True if all values are one."""
        values = self.seen
        return bool((values == values[0]).all()) if isinstance(values, np.ndarray) else self.distinct == 1

    @classmethod
    def at(cls, values, rows, column: str, days: bool) -> "_Look":
        verdict = None
        if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf":
            seen = values.to_numpy()
            if values.dtype.kind == "f" and (gaps := np.isnan(seen)).any():
                seen = seen[~gaps]
            kinds = {"number"} if len(seen) else set[str]()
        else:
            seen = values.dropna()
            kinds = _kinds(seen)
        if kinds == {"str"} and not hasattr(values, "cat"):
            verdict = of_labels(seen.unique(), len(seen))
        elif values.dtype.kind in "iuf" and len(seen) == len(rows) > _FEW and (np.floor(seen) == seen).all():
            verdict = None if days else of_whole(np.asarray(seen), rows, column)  # a row a day counts no rows
        return cls(values, seen, kinds, verdict)


def _unusable(found: _Look, model, categorical: bool) -> str | None:
    """Return the reason why a model cannot use a column, which may be said to be categorical; None if it can."""
    values, kinds, verdict = found.seen, found.kinds, found.verdict
    if not kinds:
        return "no observed value"
    if kinds <= {"date", "datetime", "Timestamp"}:
        return _UNUSABLE["dates"]
    if not kinds <= {"number", "bool", "str"}:
        return f"values of type {named(sorted(kinds))}, neither numbers nor categories"
    if found.constant and not (verdict and verdict.kind in ("dates", "numbers")):
        return f"constant, always {np.asarray(values, object)[0]}"
    as_text = verdict is not None and verdict.kind == "numbers" and (categorical or _categories(verdict))
    if verdict and verdict.kind != "ids" and not as_text:
        return _UNUSABLE[verdict.kind].format(**vars(verdict), how=how_read(verdict.unread))
    if model in ("gda", "full", "shared") and (kinds != {"number"} or hasattr(found.values, "cat")):
        return f"not numbers, and {model} takes numbers only"
    return None


def _categories(verdict: Verdict) -> bool:
    """Return True if numbers as text may be categories all the same: beside a word or a unit, or as programs write."""
    found = verdict.unread
    odd = found is not None and (found.word is not None or not found.how or is_number(found.entry))
    return odd and not verdict.hardly_twice


def how_read(found: Unread | None, otherwise: Numerals | None = None) -> str:
    """Return an entry that is a number as offices write it, and the options that read it, beside those given."""
    if found is None:
        return ""
    if not found.how:
        return f", such as {found.example()}, with a unit, which no option takes away"
    ways = (" ".join(f"--{a.name}" + _value(a.value) for a in w) for w in found.cures(otherwise))
    cure = " or ".join(filter(None, ways))
    return f", such as {found.example()}" + (f"; {cure} reads them" if cure else "")


def _value(value) -> str:
    """Return the value of an option as a shell takes it, behind a blank: words with commas between."""
    return "" if value is True else f" {','.join(value)!r}" if isinstance(value, list) else f" {value!r}"


def _of_one_type(found: _Look) -> tuple[Any, str]:
    """Return a usable column of one type, and a doubt about the type, "" for none."""
    column, values = found.values, found.seen
    if hasattr(column, "cat"):  # declared: its levels stay, those without a row too
        return column, ""
    if found.kinds == {"number"}:
        if found.verdict is not None:
            return column, _IDS_TOLD.format(**vars(found.verdict))
        with np.errstate(invalid="ignore"):  # of infinite values
            few = bool((values % 1 == 0).all()) and found.distinct <= _FEW
        column = column if column.dtype.kind in "iuf" else pd.to_numeric(column)
        return column, "few distinct whole numbers; --categorical makes categories" if few else ""
    if found.kinds == {"bool"}:
        return column, ""
    values = values.astype(object).map(str)
    if found.verdict is not None and (how := found.verdict.unread) is not None:
        return values.reindex(column.index), f"numbers as text{how_read(how)}; taken as categories"
    numbers: Any = pd.to_numeric(values, errors="coerce")  # a Series of a Series, which the stubs do not say
    words = values[numbers.isna()]
    but = f"but for {words.iloc[0]!r}" if len(words) else "written as text"
    doubt = f"numbers {but}, taken as categories" if len(words) < 0.5 * len(values) else _gap_words(values)
    return values.reindex(column.index), doubt


def _kinds(values) -> set[str]:
    """Return the kinds of observed values: "number", "bool", "str", or the names of other types."""
    if values.dtype.kind in "iufb" and len(values):
        return {"bool"} if values.dtype.kind == "b" else {"number"}
    names = {type(v).__name__ for v in values.tolist()}
    return {"number" if name in ("int", "float") else name for name in names}


def _gap_words(values) -> str:
    """Return a doubt about text: words such as NA, which some write for a gap, are categories in it."""
    found = [word for word in sorted(values.unique()) if word.strip().casefold() in GAP_WORDS]
    count = int(values.isin(found).sum())
    cure = f"--missing {','.join(found)!r} makes it missing"
    what = f"{listed(found)} in {counted(count, 'row')}, taken as text like any other; {cure}"
    return what if found else ""


def _spellings(gaps, columns, rows) -> str:
    """Count the spellings of gaps in some columns and rows, in brackets; "" where none is known."""
    found = [gaps[column] for column in columns if column in gaps and len(gaps[column])] if gaps else []
    spelled = [word for series in found for word in series[series.index.isin(rows)]]
    return f" ({counts_of(spelled)})" if spelled else ""


def _doubts_of_classes(target, y):
    """Yield doubts about classes that are text."""
    if y.dtype.kind != "U":
        return
    if doubt := _gap_words(pd.Series(y, dtype=object)):
        yield f"{quoted(target)} ambiguous: {doubt}"
    if groups := alike(np.unique(y).tolist()):
        yield f"{quoted(target)} ambiguous: {tell_alike(groups, lambda label: int((y == label).sum()))}"
    values = defaultdict(list)
    for label in np.unique(y).tolist():
        if number := numbers([label]):
            values[isinstance(number[0], bool), number[0]].append(label)
    equal = [label for labels in values.values() if len(labels) > 1 for label in labels]
    if equal:
        yield f"{quoted(target)} ambiguous: {listed(equal)} stand for one value, taken as classes apart"


def _check_classes(target, y):
    if not len(y):
        raise ValueError(f"no row is left: all lack {quoted(target)} or, for gda, a number")
    if (y == y[0]).all():
        raise ValueError(
            f"{quoted(target)} holds one class only, {y[0]}, in the {counted(len(y), 'row')} that can be used"
        )
    if y.dtype.kind == "U":
        found = numbers(np.unique(y).tolist()) or []
        if any(isinstance(number, float) and number % 1 for number in found):
            raise ValueError(f"{quoted(target)} holds {len(found)} distinct real numbers, not classes")
