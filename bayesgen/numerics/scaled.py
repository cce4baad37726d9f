"""Sums of squares beyond 1e154, where a square alone overflows."""

import numpy as np

from bayesgen import program
from bayesgen.numerics.special import namespace


def log1p_sum_squares(z, axis: int | tuple[int, ...] = -1):
    """Log(1 + Σ z²) over an axis: the far end of a Student-t, where it falls off like a power of log z.

    With c = max(1, max |z|) it is 2 log c + log(1/c² + Σ (z/c)²), in which nothing overflows; NumPy takes this way for
    those sums alone that did.

    Parameters
    ----------
    z : array
        Distances, in units of the scale.
    axis : int or tuple of int, default -1
        What to sum over; () for nothing.

    Returns
    -------
    array
        NaN where an entry is, inf where one is infinite.

    Examples
    --------
    >>> log1p_sum_squares(np.array([[3.0, 4.0], [1e300, 0.0]])).round(3)  # log 26, 600 log 10
    array([   3.258, 1381.551])
    """
    if namespace(z) is not np:
        return _scaled(z, axis)
    with np.errstate(over="ignore", under="ignore"):
        result = np.asarray(np.log1p(np.square(z).sum(axis)))
        if np.isinf(result).any():
            far = np.isinf(result)
            result[far] = np.asarray(_scaled(z, axis))[far]
    return result


def _scaled(z, axis):
    xp = namespace(z)
    size = abs(z).max(axis, keepdims=True, initial=1.0)
    size = xp.where(xp.isinf(size), 1.0, size)
    if xp is not np:
        size = program.jax.lax.stop_gradient(size)  # the value does not depend on it
    parts, level = z / size, xp.squeeze(size, axis)
    return 2 * xp.log(level) + xp.log1p((parts * parts).sum(axis) + ((1 / level) ** 2 - 1))
