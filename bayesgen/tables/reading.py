"""The account of how a table was written, kept with the fit, by which every later table is read.

It holds the options for CSV files, each once: `bayesgen.read_table` and the command line make it of what a user says.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import Argument, InputError, quoted, shortened
from bayesgen.core.registry import saveable
from bayesgen.tables.arrow import compute, pa
from bayesgen.tables.columns import refused
from bayesgen.tables.dates import FORMATS, days, durations, reordered
from bayesgen.tables.marks import holds, joined, marks_of
from bayesgen.tables.numerals import BLANKS, Column, Numerals, readings, thousands_apart
from bayesgen.tables.text import GAP_WORDS
from bayesgen.tables.units import DURATION, undressed

_ATTRIBUTE = "bayesgen.reading"  # key of the account among the attributes of a DataFrame
_MARKS = "marks"  # key, in the account there, of the marks of its columns
_LONGEST = 10**8  # days of a duration, whose microseconds are whole numbers of 64 bits
_TELLS = "_limit"  # ends the name of a column that tells which entries of another are limits


def limit_of(column: str) -> str:
    """Return the name of the column that tells which entries of a column are limits."""
    return f"{column}{_TELLS}"


def _spellings(word: str) -> list[str]:
    """Return a word, and a whole number also as files with fractions write it."""
    whole = word.removeprefix("-").isdecimal()
    return [word, *(word + end for end in (".0", ",0", ".00", ",00") if whole)]


def _by_column(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are given, with what is said of the texts of one column, as COLUMN=TEXT, in ``meant``."""
    known: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    everywhere, meant = [], defaultdict[str, dict[str, str]](dict)
    for option in ("missing", "same", "blank"):
        for value in known.pop(option, ()):
            column, _, texts = value.rpartition("=")
            first, *_ = words = [text.strip() for text in texts.split(",")]
            if column and first:
                spelled = [""] if option == "blank" else words
                meant[column] |= dict.fromkeys(spelled, "" if option == "missing" else first)
            elif option == "missing":
                everywhere.append(value)
            else:
                raise ValueError(f"{option} takes a column and its texts, such as sex=m,M, not {value!r}")
    meant = {c: {text: other and said.get(other, other) for text, other in said.items()} for c, said in meant.items()}
    several = {"missing": tuple(everywhere), "meant": meant, "fill_down": tuple(known.get("fill_down", ()))}
    return known | several


def _against(name: str, fields: "pa.Array", entry: str, *text: str | Argument) -> InputError:
    """Return the error on an entry of a column that contradicts the others, or the account."""
    row = compute.index(compute.utf8_trim_whitespace(fields), entry.strip()).as_py()
    return refused(name, row, entry, *text)


@saveable
@dataclass(frozen=True)
class Reading:
    """How a table was written that was learned from: what its numbers, dates and gaps look like, and no value of a row.

    The kinds of the columns are those of the schema. Of a table in memory, whose numbers are numbers, nothing has to be
    kept but the formats of dates.
    """

    sep: str = ","  # what separates the fields of a CSV file; "" where the file is to tell
    decimal: str = "."  # decimal, thousands: signs in its numbers, as in `Numerals`; "" where the file is to tell
    thousands: str = ""
    plain: tuple[str, ...] = ()  # columns whose numbers are written as programs write them all the same
    units: Mapping[str, str] = field(default_factory=dict)  # columns whose numbers stand beside a unit
    bare: tuple[str, ...] = ()  # those of them whose unit was said, so that it may be absent
    limits: bool = False  # True if limits of detection such as <0.5 were read
    missing: tuple[str, ...] = ()  # words for a gap, beside an empty field
    # by column, texts that mean another: "" for a gap, and by "" what an empty field means
    meant: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # columns whose numbers had a percent sign; None where none was looked for, as in a table in memory
    percent: tuple[str, ...] | None = None
    minus: tuple[str, ...] = ()  # columns with numbers below 0 in brackets, or with the sign behind them
    # columns of numbers of a CSV file: True where some number was written with a fraction
    fractions: Mapping[str, bool] = field(default_factory=dict)
    # columns that are days since 1970-01-01: read from dates, shown and given back as dates. Each with the format of
    # its dates, "" where they were no text.
    dates: Mapping[str, str] = field(default_factory=dict)
    sheet: str = ""  # of an Excel file, where it was said
    encoding: str = ""  # of text that is not UTF-8, where it was said
    fill_down: tuple[str, ...] = ()  # columns of a file whose empty fields mean what stands above, as in merged cells
    date_order: str = ""  # dmy, mdy or ymd, where it was said
    days: tuple[str, ...] = ()  # those of them that came as such numbers, so that later numbers may be days too
    # columns that the fit had in other values than the file: nothing else is known of them
    changed: tuple[str, ...] = ()
    # columns that came as durations, and are numbers of days, in the unit `DURATION`: later numbers are refused there
    spans: tuple[str, ...] = ()

    def __post_init__(self):
        self.numerals()
        if self.date_order not in ("", "dmy", "mdy", "ymd"):
            raise ValueError(f"the order of a date is one of dmy, mdy and ymd, not {self.date_order!r}")
        try:
            bytes(4).decode(self.encoding or "utf-8")
        except LookupError:
            raise ValueError(f"there is no encoding {self.encoding!r}; cp1252 and utf-16le are two") from None
        if unknown := [form for form in self.dates.values() if form not in ("", *FORMATS)]:
            raise ValueError(f"dates are written in one of {FORMATS}, not as {unknown[0]!r}")

    @property
    def words(self) -> tuple[str, ...]:
        """The words for a gap in all columns, beside an empty field, in all their spellings."""
        return tuple(itertools.chain.from_iterable(map(_spellings, self.missing)))

    def numerals(self, column: str | None = None) -> Numerals:
        """Return the way in which the numbers of a column are written, or those of the file."""
        unit, meant = ("", {}) if column is None else (self.units.get(column, ""), self.meant.get(column, {}))
        texts = tuple((text, other) for word, other in meant.items() for text in _spellings(word))
        signs = (".", "") if column in self.plain else (self.decimal or ".", self.thousands)
        return Numerals(*signs, self.limits, unit, texts)

    @classmethod
    def said(cls, **options: Any) -> "Reading":
        """Return the account of a first file by the options that a user gives, those that are not None."""
        known = _by_column(options)
        finds = {"sep": ""} | ({} if "thousands" in known else {"decimal": ""})
        return replace(cls(), **{**finds, "bare": tuple(known.get("units", ())), **known})

    def given(self, **options: Any) -> "Reading":
        """Return the account for a later file that is written otherwise, as the options say that are not None.

        Words for a gap, and columns to fill down, are added to those of the fit. A sign that would stand both between
        thousands and before the fraction is left to the one that is given. What is said of signs is not doubted:
        nothing is compared with the fractions of the fit.

        >>> other = Reading(";", ",", ".").given(decimal=".", thousands=None)
        >>> other.sep, other.decimal, other.thousands
        (';', '.', '')
        """
        known = _by_column(options)
        known["meant"] = {**self.meant, **{c: {**self.meant.get(c, {}), **m} for c, m in known["meant"].items()}}
        for name in ("missing", "fill_down"):
            known[name] = tuple(dict.fromkeys([*known[name], *getattr(self, name)]))
        if "units" in known:
            known["bare"] = tuple(dict.fromkeys([*self.bare, *known["units"]]))
            known["units"] = {**self.units, **known["units"]}
        if order := known.get("date_order"):
            known["dates"] = {column: reordered(form, order) for column, form in self.dates.items()}
        if {"decimal", "thousands"} & known.keys():
            signs = {"decimal": self.decimal, "thousands": self.thousands} | known
            if signs["decimal"] == signs["thousands"] and "thousands" not in known:
                known["thousands"] = ""
            elif signs["decimal"] == signs["thousands"] and "decimal" not in known:
                known["decimal"] = "," if signs["thousands"] == "." else "."
            known |= {"fractions": {}, "plain": ()}
        return replace(self, **known)

    def number(self, text: str, column: str, beside: Iterable[str] = (), whole: bool = False, limits=False) -> float:
        """Return the number that one text means in a column of numbers, NaN for a gap, as of a later file.

        Units that stand ``beside`` it need not be in the text. ``whole`` tells that the fit had whole numbers alone,
        where its account does not; with ``limits`` a text may be one. Scripts and pages read in the same way
        (`bayesgen/export/texts.js`). Raise `InputError`, which says what to write, where it is none, or one of two.

        >>> Reading(decimal=",").number("1,2", "dose"), Reading().number("37.6 \u00b0C", "heat", ["\u00b0C"])
        (1.2, 37.6)
        """
        meant, beside = dict(self.numerals(column).meant), list(beside)
        text = meant.get(text.strip(BLANKS), text.strip(BLANKS))
        if not text or text in self.words or text.lower() in GAP_WORDS:
            return np.nan
        percent, unit, number = column in (self.percent or ()), self.units.get(column, ""), text
        for one in filter(None, [*beside, unit]):
            number = undressed(pa.array([number], pa.string()), one)[0].as_py()
        how = replace(self.numerals(column), limits=limits, unit="")
        value = how.value(number, self.fractions.get(column, False if whole else None))
        bare = "%" not in text if percent else unit and column not in self.bare and number == text
        if bare and not beside and any(map(text.__contains__, "123456789")):
            why = f"has no {'%' if percent else unit}, which the numbers of the fit have"
        elif "%" in number and not percent:
            why = "has a percent sign, and the numbers of the fit have none"
        elif value is not None and np.isfinite(value):
            return value
        elif len(found := readings(number, how)) > 1:
            why = f"is {' or '.join(found)}? Write {' or '.join(found)}"
        else:
            why = f"is no number here: write {found[0] if found else f'1234{how.decimal}5'}"
        raise InputError(f"column {column!r}: {shortened(text)} {why}", column=column, value=text)

    def limited(self, used: Iterable[str]) -> list[str]:
        """Return the columns of a later file in which limits are read: those whose limits another one tells, or all."""
        used = list(used)
        told = [column.removesuffix(_TELLS) for column in used if column.endswith(_TELLS)]
        return [*told, *(used if self.limits else ())]

    def days_of(self, values, column: str) -> np.ndarray:
        """Return the values of a column of dates as days since 1970-01-01, (n,), read as those of the fit."""
        return days(values, column, self.dates[column], column in self.days)

    def in_days(self, column: str) -> bool:
        """Return True for a column of durations, which are read as numbers of days."""
        return self.units.get(column) == DURATION

    def as_durations(self, values: pd.Series, column: str) -> pd.Series:
        """Return the numbers of days of a later file's column as durations, where the fit had durations."""
        if column not in self.spans or values.dtype.kind not in "iuf":
            return values
        if (far := values.abs() > _LONGEST).any():
            row = int(far.argmax())
            raise refused(column, row, values.iloc[row], f"is no duration of less than {_LONGEST:,} days")
        return pd.Series(durations(values), index=values.index)

    def of_columns(self, columns: Collection[str]) -> "Reading":
        """Return the account of some columns."""
        chosen = set(columns)
        percent = None if self.percent is None else tuple(c for c in self.percent if c in chosen)
        several = ("minus", "changed", "plain", "bare", "spans")
        lists = {name: tuple(c for c in getattr(self, name) if c in chosen) for name in several}
        named = ("fractions", "dates", "units", "meant")
        maps = {n: {c: v for c, v in getattr(self, n).items() if c in chosen} for n in named}
        return replace(self, percent=percent, **lists, **maps)

    def without(self, changed: Collection[str]) -> "Reading":
        """Return the account of a table of which some columns were changed after it was read."""
        if not changed:
            return self
        known = {*self.fractions, *self.dates, *(self.percent or ()), *self.changed, *self.units, *self.meant}
        kept = self.of_columns(known.difference(changed))
        return replace(kept, changed=tuple(sorted({*kept.changed, *changed})))

    def doubts(self, name: str, fields: "pa.Array", column: Column, how: Numerals) -> Iterator[str]:
        """Yield what is doubtful in a column of a file, which ``how`` says how to read, ``fields`` as text.

        Raise `InputError`, which names column, row and value, where it contradicts the account.
        """
        if column.values.dtype.kind not in "iuf":
            return
        unit = self.units.get(name, "") if name not in self.bare else ""
        if unit and column.bare and column.unit:
            text = f"has no {how.unit}, and {column.unit!r} has it: write all in one way, or give "
            raise _against(name, fields, column.bare, text, Argument("units", {name: how.unit}))
        if column.bare and not how.unit:
            text = f"has no percent sign, and {column.percent!r} has one: write all in one way"
            raise _against(name, fields, column.bare, text)
        percent = self.percent is not None and name in self.percent
        if name in self.changed:
            return
        if self.percent is not None and column.percent and not percent:
            raise _against(name, fields, column.percent, "has a percent sign, where the fit had numbers without")
        unlike = percent and not column.percent
        lacks = unit and (self.percent is not None or unit == DURATION) and not column.unit
        told = (text for text in fields.to_pylist() if text and any(sign in "123456789" for sign in text))
        bare = next(told, None) if unlike or lacks else None
        if bare and unlike:
            raise _against(name, fields, bare, "has no percent sign, which the numbers of the fit have")
        if bare and lacks:
            text = f"has no {unit}, which the numbers of the fit have: if they are in {unit}, give "
            raise _against(name, fields, bare, text, Argument("units", {name: unit}))
        if column.apart and self.decimal == ",":
            cures = [Argument("decimal", "."), " for a fraction, ", Argument("thousands", "."), " for thousands"]
            text = f"is {' or '.join(readings(column.apart, how))}, and the fit had decimal commas: give "
            raise _against(name, fields, column.apart, text, *cures)
        fraction = self.fractions.get(name)
        for sign in ".," if fraction is not None else "":
            if not (entry := thousands_apart(fields, sign)):
                continue
            if not fraction and sign != how.thousands:
                cures = [Argument("thousands", sign), " for thousands, ", Argument("decimal", sign), " for a fraction"]
                raise _against(name, fields, entry, "seems a fraction, and the fit had whole numbers: give ", *cures)
            whole = not compute.any(compute.match_substring(fields, how.decimal)).as_py()
            if fraction and sign == how.thousands and whole:
                yield f"{quoted(name)} ambiguous: {entry!r} was read as thousands, and the fit had fractions there"

    def check_percent(self, other: "Reading", columns: Iterable[str]) -> None:
        """Raise `InputError` where a later table dropped percent signs in other columns than that of the fit."""
        if self.percent is None or other.percent is None or self.percent == other.percent:
            return
        for column in (c for c in columns if c in self.fractions and c in other.fractions):
            if (column in self.percent) != (column in other.percent):
                had, has = ("had", "no") if column in self.percent else ("had no", "some")
                text = f"column {column!r}: the fit {had} percent signs, and this table has {has}; write all in one way"
                raise InputError(text, column=column)

    def attached(self, frame: Any) -> Any:
        """Return a pandas DataFrame that carries the account, for a fit to keep."""
        told = {*self.fractions, *self.dates, *(self.percent or ()), *self.minus, *self.units}
        marks = {name: marks_of(frame[name]) for name in frame.columns if name in told}
        known = {name: value for name, value in asdict(self).items() if value is not None}
        frame.attrs[_ATTRIBUTE] = _Kept(known | {_MARKS: marks})
        return frame

    @classmethod
    def of(cls, rows: Any) -> "Reading":
        """Return the account that a DataFrame carries; of anything else, and of another shape of it, an empty one."""
        if not isinstance(attributes := getattr(rows, "attrs", None), Mapping) or _ATTRIBUTE not in attributes:
            return _PLAIN
        try:
            found = {name: value for name, value in attributes[_ATTRIBUTE].items() if name != _MARKS}
            fields: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in found.items()}  # of JSON
            if all(isinstance(v, type(getattr(_FULL, name))) for name, v in fields.items()):
                return cls(**fields)
        except (AttributeError, TypeError, ValueError):
            pass
        return _PLAIN


def changed_after(rows: Any) -> tuple[str, ...]:
    """Return the columns of a DataFrame that hold values which were not read with the account that it carries."""
    if Reading.of(rows) is _PLAIN:
        return ()
    marks = rows.attrs[_ATTRIBUTE].get(_MARKS)
    marks = marks if isinstance(marks, Mapping) else {}
    there = {str(name): rows[name] for name in rows.columns if str(name) in marks}
    return tuple(name for name, kept in marks.items() if name in there and not holds(kept, there[name]))


class _Kept(dict):
    """An account among the attributes of a DataFrame, which pandas copies for each column that is taken out.

    Where rows of two tables are joined, pandas keeps the account of the first if it equals that of the second. Two are
    equal if the files were written alike, and both then come to hold what the columns of either held.
    """

    def __deepcopy__(self, memo):
        """Return itself: it changes only where rows are joined."""
        return self

    def __eq__(self, other: object) -> bool:
        """Return True for the account of a file that was written alike, and join the columns of both."""
        apart = ("fractions", "minus", _MARKS)
        if not isinstance(other, _Kept) or any(self[n] != other.get(n) for n in self if n not in apart):
            return False
        known = {"minus": tuple(dict.fromkeys([*self["minus"], *other["minus"]]))}
        for name, join in (("fractions", max), (_MARKS, joined)):
            mine, theirs = self[name], other[name]
            known[name] = mine | theirs | {c: join(mine[c], theirs[c]) for c in mine.keys() & theirs.keys()}
        self.update(known)
        other.update(known)
        return True


_PLAIN, _FULL = Reading(), Reading(percent=())
