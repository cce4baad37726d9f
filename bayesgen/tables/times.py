"""Times of rows: the order in which they came, from numbers, dates, or text of either."""

from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import counted, named
from bayesgen.tables import dates
from bayesgen.tables.columns import frame_of
from bayesgen.tables.labels import unwrapped


def times_of(order, rows: int) -> np.ndarray:
    """Return the time of each row, (n,): datetime64[ms] of dates, else numbers.

    Parameters
    ----------
    order : array, shape (n,)
        Dates, numbers such as those of visits, or text of dates or numbers.
    rows : int
        n.

    Raises
    ------
    ValueError
        If there is not one time for each row, or one is missing or is neither a number nor a date.
    """
    if type(getattr(order, "dtype", None)).__name__ == "PeriodDtype":
        order = getattr(order, "dt", order).to_timestamp()
    order = np.asarray(unwrapped(order))
    order = order / np.timedelta64(1, "s") if order.dtype.kind == "m" else order
    if order.dtype.kind == "b":
        raise ValueError("order holds True and False, which are no times: give numbers or dates")
    if order.ndim != 1 or len(order) != rows:
        raise ValueError(f"order must hold one time for each of the {rows} rows; it has shape {order.shape}")
    found = _numbers(order)
    result = dates.moments(dates.days(order, "order")) if found is None else found
    missing = np.isnat(result) if result.dtype.kind == "M" else ~np.isfinite(result)
    if missing.any():
        raise ValueError(
            f"order has no time in {counted(int(missing.sum()), 'row')}, the first of them row {missing.argmax()}: "
            "leave such rows out, or give them a time"
        )
    return result


def _numbers(order) -> np.ndarray | None:
    """Return the times as numbers, NaN where missing; None where they are dates."""
    if order.dtype.kind in "iuf":
        return order.astype(float) if order.dtype.kind == "f" else order
    series: Any = pd.Series(order)
    if order.dtype.kind == "M" or not series.notna().any():
        return None if order.dtype.kind == "M" else np.full(len(order), np.nan)
    numbers: Any = pd.to_numeric(series.astype(object), errors="coerce") if order.dtype.kind in "OUST" else None
    if numbers is None or bool in set(map(type, series)) or (numbers.isna() & series.notna()).any():
        return None
    return numbers.to_numpy(float)


def as_text(time) -> str:
    """Write a time that `times_of` returned: a number, or a date with the time of the day where there is one."""
    if isinstance(time, int | float | np.integer | np.floating):
        return f"{time:.12g}"
    return dates.as_date(float(np.datetime64(time, "ms").astype(np.int64)) / 86_400_000)


def taken_out(X, order):
    """Return the rows without the column that ``order`` names, if it does, and the times as they were given.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        Rows.
    order : str or array
        Name of a column, or times.
    """
    if not isinstance(order, str):
        return X, order
    frame = frame_of(X)
    if frame is None or order not in frame.columns:
        there = "X is no table with names of columns" if frame is None else f"X has {named(frame.columns)}"
        raise ValueError(f"order={order!r} names no column: {there}; give a column of X, or the time of each row")
    return frame.drop(order).to_native(), frame[order].to_numpy()
