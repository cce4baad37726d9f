"""Dates as numbers, days since 1970-01-01, from columns of dates and from text written one way; and back.

A column of text has one of `FORMATS`, of days or of months, quarters and weeks, which stand for their first day: it is
found in all of its texts together and kept with the fit, by which later rows are read. So 3/4/2024 never begins with
the day in one row and with the month in another. The times of rows, by which they are put in order, are such dates too,
or plain numbers.
"""

import datetime
import functools
import re
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import Argument, InputError, counted, named
from bayesgen.tables.columns import first_texts, frame_of, refused, to_float
from bayesgen.tables.labels import unwrapped
from bayesgen.tables.text import GAP_WORDS

YEAR_FIRST = "%Y-%m-%d"  # 2024/01/31 too
_ORDERS = {"dmy": ("%d", "%m", "%Y"), "mdy": ("%m", "%d", "%Y")}
_DAYS = (YEAR_FIRST, *(sign.join(order) for sign in "./-" for order in _ORDERS.values()))
_COMPACT = "%Y%m%d"  # a code as well, so only where a date is asked for
_PERIODS = {  # formats of days without signs, and of months, quarters and weeks
    _COMPACT: r"(?P<Y>\d{4})(?P<m>\d\d)(?P<d>\d\d)",
    "%Y-%m": r"(?P<Y>\d{4})[-/](?P<m>\d{1,2})",
    "%m/%Y": r"(?P<m>\d{1,2})[./](?P<Y>\d{4})",
    "%b %Y": r"(?P<b>[A-Za-z]{3,9})\.?[ -](?P<Y>\d{4})",
    "%Y-Q%q": r"(?P<Y>\d{4})[- ]?Q(?P<q>[1-4])",
    "Q%q %Y": r"Q(?P<q>[1-4])[- /]?(?P<Y>\d{4})",
    "%G-W%V": r"(?P<Y>\d{4})-?W(?P<V>\d\d)",
}
FORMATS = (*_DAYS, *_PERIODS)
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october")
_MONTHS = (*_MONTHS, "november", "december")
_TIME = r"(?:[T ](?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}(?:\.\d+)?))?\s*(?P<zone>Z|[+-]\d{2}:?\d{2})?)?$"
_LOCAL = re.compile(rf"(\d{{1,2}})([./-])(\d{{1,2}})\2\d{{4}}{_TIME}")
_SHORT = re.compile(rf"(\d{{1,2}})([./-])(\d{{1,2}})\2\d{{2}}{_TIME}")  # 31.12.24
_MONTH = "jan|ene|gen|f.[bv]|m.r|mrz|a[pv]r|abr|ma[iyg]|ju[lni]|giu|lug|ag?o|aug|se[pt]|o[ckt]t|nov|d.[cz]"
_NAMED = re.compile(rf"\d{{1,2}}[. -]+(de )?({_MONTH})[^\W\d_]*\.?[ -]+(de )?\d\d(\d\d)?$", re.I)  # 3. M\u00e4rz 26
_BEYOND = "is none of the calendar, which has the years 1 to 9999"
_NUMBERS = ("integer", "floating", "mixed-integer-float")  # what pandas calls them
_FIRST, _LAST = np.array(["0001-01-01", "9999-12-31"], "datetime64[D]").astype(int)
_CALENDAR = 700_000  # days from 1970 to the last year that is written as a date, 3886, and to the first, 53


@functools.cache
def pattern(form: str) -> re.Pattern:
    """Return the regular expression that matches dates of a format, those of days with a time or without."""
    if form in _PERIODS:
        return re.compile(f"{_PERIODS[form]}$")
    text = "%Y[-/]%m[-/]%d" if form == YEAR_FIRST else re.escape(form)
    for name, digits in (("Y", "4"), ("m", "1,2"), ("d", "1,2")):
        text = text.replace(f"%{name}", rf"(?P<{name}>\d{{{digits}}})")
    return re.compile(text + _TIME)


def _possible(text: str) -> frozenset[str]:
    """Return the formats in which a text may be a date: of 3/4/2024 two, of 13/4/2024 one, of a word none."""
    if pattern(YEAR_FIRST).match(text):
        return frozenset([YEAR_FIRST])
    if not (local := _LOCAL.match(text)):
        return frozenset(form for form in _PERIODS if _parts(text, form) is not None)
    forms = [form for form in _DAYS if form[2] == local[2] and form != YEAR_FIRST]
    second = {form: int(local[3 if form[1] == "d" else 1]) for form in forms}  # the month in each
    return frozenset(form for form, month in second.items() if month <= 12) or frozenset(forms)


def _parts(text: str, form: str) -> dict[str, str] | None:
    """Return the year, month and day of a text, and its time, by their letters; None where it is not of the format."""
    if (found := pattern(form).match(text)) is None:
        return None
    usual = {"m": "1", "d": "1", "H": "0", "M": "0", "S": "0", "zone": "Z"}
    parts = usual | {name: value for name, value in found.groupdict().items() if value is not None}
    if "b" in parts:
        months = [place for place, name in enumerate(_MONTHS, 1) if name.startswith(parts["b"].lower())]
        if len(months) != 1:
            return None
        parts["m"] = str(months[0])
    if "q" in parts:
        parts["m"] = str(3 * int(parts["q"]) - 2)
    if "V" in parts:
        try:
            first = datetime.date.fromisocalendar(int(parts["Y"]), int(parts["V"]), 1)
        except ValueError:
            return None
        parts |= {"Y": str(first.year), "m": str(first.month), "d": str(first.day)}
    return parts if form not in _PERIODS or (1 <= int(parts["m"]) <= 12 and 1 <= int(parts["d"]) <= 31) else None


def written(texts) -> bool:
    """Return True if all texts are dates: 2024-01-31, 31.01.2024, 31/01/2024 or 01/31/2024, with a time or not.

    So are months, quarters and weeks: 2024-01, Jan 2024, 2024-Q1, 2024-W05. Of the distinct values of a column the
    first thousand are looked at.

    >>> written(["2024-01-31", "2024-02-01 12:30"]), written(["31.1.2024"]), written(["1-800-2024"])
    (True, True, False)
    """
    texts = first_texts(texts)  # a column of dates is written one way throughout
    return bool(texts) and all(_possible(text) - {_COMPACT} for text in texts)


def seem(texts) -> bool:
    """Return True if all texts are dates that are not read, it seems: 31.12.24, 01 Apr 26, 3. M\u00e4rz 2026."""
    texts = first_texts(texts)
    return bool(texts) and all(_SHORT.match(text.strip()) or _NAMED.match(text.strip()) for text in texts)


def formats_of(values, column: str) -> frozenset[str]:
    """Return the formats in which all texts of a column can be read; all formats where it holds no text.

    Raise `InputError`, which names column and rows, where a text is no date, or two contradict each other.

    >>> formats_of(np.array(["3/4/2024", "13/4/2024"], dtype=object), "seen")
    frozenset({'%d/%m/%Y'})
    """
    _, distinct, rows = _distinct(values)
    found, seen = frozenset(FORMATS), dict[frozenset[str], int]()
    for place, text in enumerate(distinct):
        if not isinstance(text, str):
            continue
        if not (forms := _possible(text.strip())):
            raise _no_date(text, column, rows[place])
        if not found & forms:
            other = next(place for known, place in seen.items() if not known & forms)
            ways = f"{distinct[other]!r} in row {rows[other]} and {text!r} in row {rows[place]}"
            problem = f"column {column!r} writes dates in two ways: {ways}; write all of them as 2024-01-31"
            raise InputError(problem, column=column, row=rows[place], value=text)
        found, seen[forms] = found & forms, seen.get(forms, place)
    return found


def _distinct(values) -> tuple[np.ndarray, Any, list[int]]:
    """Return the code of each value, -1 where missing, the distinct values, and the first row of each.

    Beside dates, as beside numbers, words such as NA are gaps.
    """
    values = np.asarray(values, dtype=object)
    codes, distinct = pd.factorize(values)
    gaps = [isinstance(value, str) and value.strip().casefold() in GAP_WORDS for value in distinct]
    if any(gaps):
        gone: Any = None
        codes, distinct = pd.factorize(np.where(np.append(gaps, True)[codes], gone, values))
    known = np.flatnonzero(codes >= 0)
    return codes, distinct, known[np.unique(codes[known], return_index=True)[1]].tolist()


def form_of(values, column: str, order: str = "") -> str:
    """Return the format in which all texts of a column are read, as `format_of` does, by the order that a user gave.

    Where the day is the month in every date the order makes no difference. Raise `InputError` where a text contradicts
    the order.

    >>> form_of(np.array(["3/4/2024", "5/6/2024"], dtype=object), "seen", "mdy")
    '%m/%d/%Y'
    """
    forms = formats_of(values, column)
    if len(forms) == len(FORMATS) or (not order and len(forms) == 1):
        return format_of(forms, column)
    _, distinct, rows = _distinct(values)
    texts = [(text.strip(), row) for text, row in zip(distinct, rows, strict=True) if isinstance(text, str)]
    if order and not forms.isdisjoint((*_DAYS, _COMPACT)):
        wanted = frozenset(form for form in (*_DAYS, _COMPACT) if _order(form) == order)
        if not forms & wanted:
            text, row = next((text, row) for text, row in texts if not _possible(text) & wanted)
            raise refused(column, row, text, f"is not written in the order {order}")
        forms = forms & wanted
    return format_of(forms, column, _doubtful(text for text, _ in texts))


def _doubtful(texts: Iterable[str]) -> str:
    """Return the first date whose day and month differ, and may change places; "" where there is none."""
    local = ((text, _LOCAL.match(text)) for text in texts)
    return next((text for text, found in local if found and int(found[1]) != int(found[3])), "")


def _order(form: str) -> str:
    return "ymd" if form in (YEAR_FIRST, _COMPACT) else "dmy" if form[1] == "d" else "mdy"


def reordered(form: str, order: str) -> str:
    """Return the format of days, with the same sign, in another order; other formats as they are."""
    if form not in _DAYS or form == YEAR_FIRST or not order:
        return form
    return form[2].join(_ORDERS[order]) if order in _ORDERS else YEAR_FIRST


def format_of(forms: Collection[str], column: str, example: str = "") -> str:
    """Return the one format that a column is read in, by those that are possible; "" where it has no text.

    With points the day comes first where nothing tells, and it may where no ``example`` has two readings. Raise
    ValueError, which names it, where nothing tells otherwise.
    """
    if len(forms) == len(FORMATS):
        return ""
    if len(forms) > 1 and "%d.%m.%Y" not in forms and example:
        cure = Argument("date_order", "dmy", "read_table(path, date_order='dmy')")
        what = f"column {column!r}: nothing tells whether dates such as {example} begin with the day or with the month"
        raise InputError(what, "; give ", cure, " or mdy, or write dates as 2024-01-31", column=column, value=example)
    return next(form for form in FORMATS if form in forms)


def days(values, column: str, form: str = "", numbers: bool = True) -> np.ndarray:
    """Return days since 1970-01-01, (n,), with the time of the day as a fraction and NaN where missing.

    Values are dates, text, or where ``numbers`` is true such days already. Text is read in the format ``form`` of the
    fit; where it is written in none of that kind, or the fit had no text, in the format that it shows itself.

    Raise ValueError, which names column and row, where a value is no date of the years 1 to 9999 or contradicts the
    format, and where nothing tells whether 03/04/2024 begins with the day or with the month.

    >>> days(np.array(["31/01/2024", None, "02/02/2024"], dtype=object), "seen")
    array([19753.,    nan, 19755.])
    >>> days(np.array(["02/03/2024"], dtype=object), "seen", "%m/%d/%Y")
    array([19756.])
    """
    values = np.asarray(values)
    if values.dtype.kind in "iuf" or pd.api.types.infer_dtype(values, skipna=True) in _NUMBERS:
        result = values.astype(float) if values.dtype.kind in "iuf" else to_float(values, column)
        if not numbers and not np.isnan(result).all():
            row = int(np.argmin(np.isnan(result)))
            raise _no_date(float(result[row]), column, row, "is a number, where the fit had dates")
        return result
    if values.dtype.kind == "M":
        return _of_moments(values, column, range(len(values)))
    codes, distinct, rows = _distinct(values)
    result = np.full(len(distinct) + 1, np.nan)
    texts = [place for place, value in enumerate(distinct) if isinstance(value, str)]
    if texts:
        forms, stripped = formats_of(values, column), [distinct[place].strip() for place in texts]
        where = [rows[place] for place in texts]
        form = form if form in forms else _found_anew(form, forms, stripped, where, column)
        result[texts] = _of_texts(stripped, form, column, where)
    typed = sorted(set(range(len(distinct))).difference(texts))
    if typed:
        where, naive = [rows[place] for place in typed], []
        for value, row in zip(distinct[typed], where, strict=True):
            if not isinstance(value, datetime.date | np.datetime64):
                raise _no_date(value, column, row)
            if isinstance(value, datetime.datetime) and (shift := value.utcoffset()) is not None:
                value = value.replace(tzinfo=None) - shift
            naive.append(value)
        result[typed] = _of_moments(np.array(naive, dtype="datetime64[us]"), column, where)
    return result[codes]


def _of_moments(values: np.ndarray, column: str, rows) -> np.ndarray:
    count = values.astype("datetime64[us]").astype(np.int64) / 86_400_000_000
    result = np.where(np.isnat(values), np.nan, count)
    if (beyond := (result < _FIRST) | (result >= _LAST + 1)).any():
        place = int(beyond.argmax())
        raise _no_date(values[place], column, rows[place], _BEYOND)
    return result


def _found_anew(form: str, forms, texts: list[str], rows: list[int], column: str) -> str:
    """Return the format of texts of which some are not of the fit's, or raise where they contradict that."""
    if form and form != YEAR_FIRST and any(one[2] == form[2] and one != YEAR_FIRST for one in forms):
        place = next(i for i, text in enumerate(texts) if form not in _possible(text))
        first = f"does not begin with the {'day' if form[1] == 'd' else 'month'}, as the dates of the fit do"
        raise refused(column, rows[place], texts[place], f"{first}; write dates as 2024-01-31")
    return format_of(forms, column, _doubtful(texts))


def _of_texts(texts: list[str], form: str, column: str, rows) -> np.ndarray:
    found = pd.DataFrame([_parts(text, form) for text in texts])
    y, m, d, hour, minute = (found[name].astype(int).to_numpy() for name in ("Y", "m", "d", "H", "M"))
    second = found["S"].astype(float).to_numpy()
    month = ((y - 1970) * 12 + m - 1).astype("datetime64[M]")
    first, following = (one.astype("datetime64[D]").astype(int) for one in (month, month + np.timedelta64(1, "M")))
    late = (hour > 23) | (minute > 59) | (second >= 61)
    wrong = (y < 1) | (m < 1) | (m > 12) | (d < 1) | (d > following - first) | late
    if wrong.any():
        place = int(wrong.argmax())
        raise _no_date(texts[place], column, rows[place], _BEYOND)
    zones = found["zone"].str.replace("Z", "+0000").str.replace(":", "")
    shift = np.array([int(zone[:1] + "1") * (int(zone[1:3]) * 60 + int(zone[3:])) for zone in zones])
    return first + d - 1 + ((hour * 60 + minute - shift) * 60 + second) / 86_400


def _no_date(value, column: str, row: int, why: str = "is none") -> InputError:
    if isinstance(value, str) and _SHORT.match(value.strip()):
        why = "has a year of two digits, which may be of any century"
    text = f"column {column!r} is to hold dates, and {value!r} in row {row} {why}; write dates as 2024-01-31"
    return InputError(text, column=column, row=row, value=value)


def moments(days) -> np.ndarray:
    """Convert days since 1970-01-01 to moments, datetime64[ms] (n,), in UTC: the inverse of `days`.

    Days that are NaN, or outside the years 1 to 9999 of Python's calendar, give NaT.

    >>> moments([19753.0, 19753.5, float("nan")])
    array(['2024-01-31T00:00:00.000', '2024-01-31T12:00:00.000',
           'NaT'], dtype='datetime64[ms]')
    """
    days = np.asarray(days, float)
    known = (days >= _FIRST) & (days <= _LAST)
    milliseconds = np.rint(np.where(known, days, 0.0) * 86_400_000).astype(np.int64)
    return np.where(known, milliseconds.astype("datetime64[ms]"), np.datetime64("NaT", "ms"))


def durations(days) -> np.ndarray:
    """Convert numbers of days to durations, timedelta64[us] (n,); NaN gives NaT.

    >>> durations([1.5, float("nan")])
    array([129600000000,        'NaT'], dtype='timedelta64[us]')
    """
    days = np.asarray(days, float)
    known = np.isfinite(days)
    microseconds = np.rint(np.where(known, days, 0.0) * 86_400_000_000).astype(np.int64)
    return np.where(known, microseconds.astype("timedelta64[us]"), np.timedelta64("NaT", "us"))


def as_date(day: float) -> str:
    """Write days since 1970-01-01 as a date, with the time where there is one; beyond the years 53 to 3886 as a number.

    >>> as_date(19753.0), as_date(19753.520833333332), as_date(float("nan"))
    ('2024-01-31', '2024-01-31 12:30', 'missing')
    """
    if np.isnan(day):
        return "missing"
    if abs(day) > _CALENDAR:
        return f"{day:g} days since 1970-01-01"
    moment = str(np.datetime64(round(day * 86400), "s")).replace("T", " ")
    return moment.removesuffix(":00").removesuffix(" 00:00")


def times_of(order, rows: int) -> np.ndarray:
    """Return the time of each row, (n,): datetime64[ms] of dates, else numbers; of text, what it stands for.

    Raise ValueError unless there is one time for each of the ``rows``, and each is a number or a date.
    """
    if type(getattr(order, "dtype", None)).__name__ == "PeriodDtype":
        order = getattr(order, "dt", order).to_timestamp()
    name = getattr(order, "name", None) or "order"
    order = np.asarray(unwrapped(order))
    order = order / np.timedelta64(1, "s") if order.dtype.kind == "m" else order
    if order.dtype.kind == "b":
        raise ValueError("order holds True and False, which are no times: give numbers or dates")
    if order.ndim != 1 or len(order) != rows:
        raise ValueError(f"order must hold one time for each of the {rows} rows; it has shape {order.shape}")
    found = _as_numbers(order)
    result = moments(days(order, str(name))) if found is None else found
    missing = np.isnat(result) if result.dtype.kind == "M" else ~np.isfinite(result)
    if missing.any():
        first = f"the first of them row {missing.argmax()}: leave such rows out, or give them a time"
        raise ValueError(f"order has no time in {counted(int(missing.sum()), 'row')}, {first}")
    return result


def _as_numbers(order) -> np.ndarray | None:
    """Return the times as numbers, NaN where missing; None where they are dates."""
    if order.dtype.kind in "iuf":
        return order.astype(float) if order.dtype.kind == "f" else order
    series: Any = pd.Series(order, dtype=object)
    if order.dtype.kind not in "OUST" or bool in set(map(type, series)):
        return None
    numbers: Any = pd.to_numeric(series, errors="coerce")
    if (numbers.isna() & series.notna()).any():
        return None
    return numbers.to_numpy(float)


def as_text(time) -> str:
    """Write a time that `times_of` returned: a number, or a date with the time of the day where there is one."""
    if isinstance(time, int | float | np.integer | np.floating):
        return f"{time:.12g}"
    return as_date(float(np.datetime64(time, "ms").astype(np.int64)) / 86_400_000)


def taken_out(X, order):
    """Return the rows and their times: where ``order`` names a column of X, X without it, and its values."""
    if not isinstance(order, str):
        return X, order
    frame = frame_of(X)
    if frame is None or order not in frame.columns:
        there = "X is no table with names of columns" if frame is None else f"X has {named(frame.columns)}"
        raise ValueError(f"order={order!r} names no column: {there}; give a column of X, or the time of each row")
    return frame.drop(order).to_native(), frame[order].to_numpy()
