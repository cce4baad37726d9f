"""Dates as numbers, days since 1970-01-01, from columns of dates and from text written one way; and back.

The times of rows, by which they are put in order, are such dates too, or plain numbers.
"""

import re
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import counted, named
from bayesgen.tables.columns import first_texts, frame_of, to_float
from bayesgen.tables.labels import unwrapped

_TIME = r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?)?"
_ISO = re.compile(rf"(\d{{4}})[-/](\d{{1,2}})[-/](\d{{1,2}}){_TIME}$")
_LOCAL = re.compile(rf"(\d{{1,2}})([./-])(\d{{1,2}})\2(\d{{4}}){_TIME}$")
_NUMBERS = ("integer", "floating", "mixed-integer-float")  # what pandas calls them
_FIRST, _LAST = np.array(["0001-01-01", "9999-12-31"], "datetime64[D]").astype(int)
_CALENDAR = 700_000  # days from 1970 to the last year that is written as a date, 3886, and to the first, 53


def written(texts) -> bool:
    """Return True if all texts are dates: 2024-01-31, 31.01.2024, 31/01/2024 or 01/31/2024, with a time or not.

    Of the distinct values of a column the first thousand are looked at.

    >>> written(["2024-01-31", "2024-02-01 12:30"]), written(["31.1.2024"]), written(["1-800-2024"])
    (True, True, False)
    """
    texts = first_texts(texts)  # a column of dates is written one way throughout
    return bool(texts) and all(map(_is_date, texts))


def _is_date(text: str) -> bool:
    return bool(_ISO.match(text) or _LOCAL.match(text))


def days(values, column: str) -> np.ndarray:
    """Return days since 1970-01-01, (n,), with the time of the day as a fraction and NaN where missing.

    Values are dates, text, or numbers, which are such days already. Raise ValueError, which names the column, where a
    value is no date, or nothing tells whether 03/04/2024 begins with the day or with the month.

    >>> days(np.array(["31/01/2024", None, "02/02/2024"], dtype=object), "seen")
    array([19753.,    nan, 19755.])
    """
    values = np.asarray(values)
    if values.dtype.kind in "iuf":
        return values.astype(float)
    if pd.api.types.infer_dtype(values, skipna=True) in _NUMBERS:  # pandas takes them for nanoseconds
        return to_float(values, column)
    series = pd.Series(values)
    texts = [text for text in series.dropna().unique() if isinstance(text, str)]
    options: dict = {"utc": True}
    if texts:
        series = series.where(series.isna(), series.astype(str).str.strip())
        options |= _format([text.strip() for text in texts], column)
    try:
        moments = pd.to_datetime(series, **options)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"column {column!r} is to hold dates: {str(error).splitlines()[0]}") from None
    return ((moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).to_numpy(dtype=float)


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


def _format(texts, column) -> dict:
    """Return the options with which pandas reads the texts of one column."""
    strange = next((text for text in texts if not _is_date(text)), None)
    if strange is not None:
        raise ValueError(f"column {column!r} is to hold dates, and {strange!r} is none; write it as 2024-01-31")
    found = [local for text in texts if (local := _LOCAL.match(text))]
    if not found:
        return {"format": "ISO8601"} if all("/" not in text for text in texts) else {"format": "mixed"}
    if len(found) < len(texts):
        raise ValueError(f"column {column!r} writes dates in two ways: {found[0].string!r} and as 2024-01-31")
    first, second = (max(int(match[place]) for match in found) for place in (1, 3))
    if first <= 12 and second <= 12 and found[0][2] != ".":
        raise ValueError(
            f"column {column!r}: nothing tells whether {found[0].string!r} begins with the day or with the month; "
            "write dates as 2024-01-31"
        )
    return {"format": "mixed", "dayfirst": found[0][2] == "." or first > 12}


def times_of(order, rows: int) -> np.ndarray:
    """Return the time of each row, (n,): datetime64[ms] of dates, else numbers; of text, what it stands for.

    Raise ValueError unless there is one time for each of the ``rows``, and each is a number or a date.
    """
    if type(getattr(order, "dtype", None)).__name__ == "PeriodDtype":
        order = getattr(order, "dt", order).to_timestamp()
    order = np.asarray(unwrapped(order))
    order = order / np.timedelta64(1, "s") if order.dtype.kind == "m" else order
    if order.dtype.kind == "b":
        raise ValueError("order holds True and False, which are no times: give numbers or dates")
    if order.ndim != 1 or len(order) != rows:
        raise ValueError(f"order must hold one time for each of the {rows} rows; it has shape {order.shape}")
    found = _as_numbers(order)
    result = moments(days(order, "order")) if found is None else found
    missing = np.isnat(result) if result.dtype.kind == "M" else ~np.isfinite(result)
    if missing.any():
        raise ValueError(
            f"order has no time in {counted(int(missing.sum()), 'row')}, the first of them row {missing.argmax()}: "
            "leave such rows out, or give them a time"
        )
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
    """Return rows and times: if ``order`` names a column, X without it and its values, else both as they are."""
    if not isinstance(order, str):
        return X, order
    frame = frame_of(X)
    if frame is None or order not in frame.columns:
        there = "X is no table with names of columns" if frame is None else f"X has {named(frame.columns)}"
        raise ValueError(f"order={order!r} names no column: {there}; give a column of X, or the time of each row")
    return frame.drop(order).to_native(), frame[order].to_numpy()
