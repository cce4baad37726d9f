"""Checks of arguments that many functions share."""

import numpy as np
from numpy.typing import NDArray

LARGEST_COUNT = 2.0**53  # float64 tells every whole number from the next up to here


def check_count(name: str, value) -> None:
    """Raise where an argument that counts something is not a whole number >= 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")


def check_flag(name: str, value) -> None:
    """Raise where an argument that is on or off is anything else: the text "false" is true to Python."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_level(name: str, value) -> None:
    """Raise where an argument is not one probability strictly between 0 and 1."""
    if isinstance(value, bool | str) or np.ndim(value) or not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")


def check_positive(name: str, value) -> None:
    """Raise where an argument is not one finite number > 0."""
    if isinstance(value, str | bytes | bool | None) or np.asarray(value).dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number, got {value!r}")
    if np.ndim(value) or not 0 < value < np.inf:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")


def check_weight(weight, count: int, name: str = "weight") -> NDArray[np.float64] | None:
    """Return the weights of ``count`` rows as floats (None stays None), or raise what is wrong with them."""
    if weight is None:
        return None
    if np.ma.is_masked(weight):
        raise ValueError(f"{name} has masked entries; give a row that does not count the weight 0")
    try:
        weight = np.asarray(weight, float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must hold numbers, got {np.asarray(weight).dtype} values") from None
    if weight.shape != (count,) or not (weight >= 0).all() or not np.isfinite(weight).all():
        raise ValueError(f"{name} must hold one finite number >= 0 for each of the {count} rows")
    if weight.sum() > LARGEST_COUNT:
        raise ValueError(f"{name} sums to {weight.sum():.3g} rows, more than float64 counts (2^53); scale it down")
    return weight
