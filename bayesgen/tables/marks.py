"""Marks of the values that a column held when it was read: hashes, which tell changed values from a part of them.

Of many distinct values those with the smallest hashes are kept. So a part of the rows is known as such, and of values
that were never read some have a hash that is as small and is not among them.
"""

from typing import Any

import numpy as np
import pandas as pd
import pandas.util

hash_array: Any = pandas.util.hash_array  # which the stubs do not declare
_MOST = 1000  # hashes of a column
_BYTES = 8  # of a hash


def marks_of(values) -> str:
    """Return the marks of a column of numbers as text.

    >>> column = pd.Series([59.9, 12.0, 7.5])
    >>> [holds(marks_of(column), part) for part in (column[1:], column / 100)]
    [True, False]
    """
    found = _hashes(values)
    return (np.empty(0, np.uint64) if found is None else found[:_MOST]).astype(">u8").tobytes().hex()


def holds(marks: str, values) -> bool:
    """Return True unless a column holds values that were not read, by its marks."""
    found, known = _hashes(values), _read(marks)
    if found is None:
        return False
    return bool(np.isin(found[found <= known[-1]] if len(known) == _MOST else found, known).all())


def joined(first: str, second: str) -> str:
    """Return the marks of the values of two columns together."""
    parts = [_read(first), _read(second)]
    whole = np.unique(np.concatenate(parts))
    for part in parts:
        whole = whole[whole <= part[-1]] if len(part) == _MOST else whole
    return whole[:_MOST].astype(">u8").tobytes().hex()


def _read(marks: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(marks), ">u8").astype(np.uint64)


def _hashes(values: Any) -> np.ndarray | None:
    """Return the hashes of the distinct numbers of a column, as 32 bits keep them, in order; None of other values."""
    try:
        with np.errstate(over="ignore"):
            numbers = values.to_numpy(dtype=float, na_value=np.nan).astype(np.float32) + np.float32(0)  # no -0
    except (TypeError, ValueError):
        return None
    return np.unique(hash_array(pd.unique(numbers[~np.isnan(numbers)])))
