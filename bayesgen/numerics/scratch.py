"""Memory to work in that is there already: fresh arrays of a megabyte cost more in page faults than what fills them."""

import math
import threading

import numpy as np
from numpy.typing import DTypeLike

_LARGEST = 1 << 26  # bytes that are kept at most
_kept = threading.local()


def scratch(name: str, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> np.ndarray:
    """An array, not cleared, that the next call of this name on this thread overwrites.

    Parameters
    ----------
    name : str
        Of the use; arrays of two names never overlap.
    shape : tuple of int
        Its shape; beyond 64 MB it is a fresh array.
    dtype : dtype
        Its type.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size > _LARGEST:
        return np.empty(shape, dtype)
    own = vars(_kept).get(name)
    if own is None or own.size < size:
        own = vars(_kept)[name] = np.empty(size, np.uint8)
    return np.ndarray(shape, dtype, own)
