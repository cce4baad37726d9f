"""What the text of a file says: numbers, True and False, gaps, or plain text. Arrow reads the distinct fields."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesgen.tables.messages import MOST

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Kind = Literal["text", "number"]

GAP_WORDS = frozenset(("na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none"))  # beside numbers, in any case
_NUMBER = r"^(?i)[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity)$"
_WHOLE = r"^[+-]?[0-9]+$"
_PADDED = r"^[+-]?0[0-9]"  # 01 and 1 are two codes and one number
_BOOLS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}


def column_of(fields: "pd.Series", missing=(), kind: Kind | None = None) -> tuple["pd.Series", "pd.Series"]:
    """What a column of text holds, and how each of its gaps was spelled.

    Parameters
    ----------
    fields : Series of str
        The fields as they stand in the file.
    missing : collection of str
        What is missing beside an empty field.
    kind : {"text", "number"}, optional
        What the column is; by default numbers (or bools) where all fields are, and text where one is not. Beside
        numbers NA, NaN, null and the like are gaps. Leading zeros are those of a code, unless ``kind`` is "number".
    """
    import pandas as pd
    import pyarrow as pa

    compute = _functions()

    whole = pa.array(fields, pa.large_string(), from_pandas=True)
    whole = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    if kind != "text" and not missing and (plain := _floats(whole, kind == "number")) is not None:
        return pd.Series(plain), pd.Series([], index=pd.RangeIndex(0), dtype=object)
    encoded = whole.dictionary_encode()
    codes, distinct = encoded.indices.to_numpy(), encoded.dictionary
    words = distinct.to_numpy(zero_copy_only=False)
    gone = _among(distinct, {"", *missing})
    parsed = None
    if kind != "text":
        trimmed = compute.utf8_trim_whitespace(distinct)
        gaps = gone | _among(compute.utf8_lower(trimmed), GAP_WORDS)
        parsed = _parsed(trimmed.filter(pa.array(~gaps)), padded=kind == "number")
        gone = gone if parsed is None else gaps
    lost = np.flatnonzero(gone[codes])
    spelled = pd.Series(words[codes[lost]], index=lost, dtype=object)
    if parsed is None:
        values: Any = np.where(gone, None, words)
    else:
        values = np.full(len(gone), np.nan if parsed.dtype.kind == "f" else 0, dtype=parsed.dtype)
        values[~gone] = parsed
        if len(lost) and parsed.dtype.kind != "f":
            nullable = pd.arrays.BooleanArray if parsed.dtype.kind == "b" else pd.arrays.IntegerArray
            values = nullable(values, gone)
    return pd.Series(values.take(codes)), spelled


def kind_of(fields, missing=()) -> str:
    """What some fields of a column say it holds: "b" bools, "f" numbers, "O" text; "" where all may be gaps.

    Parameters
    ----------
    fields : Array of str of pyarrow
        As they stand in the file.
    missing : collection of str
        What is missing beside an empty field.
    """
    import pyarrow as pa

    compute = _functions()
    distinct = compute.utf8_trim_whitespace(compute.unique(fields).cast(pa.large_string()))
    gaps = _among(distinct, {"", *missing}) | _among(compute.utf8_lower(distinct), GAP_WORDS)
    parsed = _parsed(distinct.filter(pa.array(~gaps)), padded=False)
    if gaps.all():
        return ""
    return "O" if parsed is None else "b" if parsed.dtype.kind == "b" else "f"


def _floats(fields: "pa.Array", padded: bool) -> np.ndarray | None:
    """Floats, where all fields are such, none a gap and some with a fraction: the fast way; else None."""
    import pyarrow as pa

    compute = _functions()

    try:
        values = fields.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    if np.isnan(values).any() or (values == np.floor(values)).all():
        return None
    if not padded and compute.any(compute.match_substring_regex(fields, _PADDED)).as_py():
        return None
    return values


def numbers(fields: list[str]) -> list | None:
    """The bools or numbers that text stands for, leading zeros or not; None where some is neither."""
    import pyarrow as pa

    parsed = _parsed(pa.array(fields, pa.large_string()), padded=True)
    return None if parsed is None else parsed.tolist()


def counts_of(spelled) -> str:
    """How often gaps were spelled in which way: ``11 empty, 8 'NA'``."""
    counts = Counter(spelled).most_common()
    shown = [f"{n} {repr(field) if field else 'empty'}" for field, n in counts[:MOST]]
    rest = sum(n for _, n in counts[MOST:])
    return ", ".join([*shown, f"{rest} in other ways"] if rest else shown)


def _functions() -> Any:
    """Arrow's functions of columns: it makes them while it is imported, so that no type checker knows their names."""
    from pyarrow import compute

    return compute


def _among(fields: "pa.Array", words) -> np.ndarray:
    import pyarrow as pa

    compute = _functions()

    found = compute.is_in(fields, value_set=pa.array(sorted(words), fields.type))
    return found.to_numpy(zero_copy_only=False).astype(bool)


def _parsed(fields: "pa.Array", padded: bool) -> np.ndarray | None:
    """Bools, integers or floats, each as near as its type comes; None where some field is text, or nothing tells."""
    import pyarrow as pa

    compute = _functions()

    if not len(fields):
        return np.empty(0) if padded else None
    if _among(fields, _BOOLS).all():
        return np.array([_BOOLS[field] for field in fields.to_pylist()])

    def match(pattern):
        return compute.match_substring_regex(fields, pattern).to_numpy(zero_copy_only=False)

    if not match(_NUMBER).all() or (not padded and match(_PADDED).any()):
        return None
    for kind in (pa.int64(), pa.uint64()) if match(_WHOLE).all() else ():
        try:
            return compute.replace_substring_regex(fields, r"^\+", "").cast(kind).to_numpy()
        except pa.ArrowInvalid:  # beyond 64 bits
            continue
    try:
        return fields.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:  # Python reads what Arrow does not: +1.5, and 1e999 as infinite
        return np.array([float(field) for field in fields.to_pylist()])
