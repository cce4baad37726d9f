"""Newton's method for smooth convex functions: the maximum likelihood and MAP of the regressions."""

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dposv  # type: ignore[attr-defined]  # SciPy's stubs leave it out

TOLERANCE = 1e-18
CLOSE = 1e-10  # a decrement that will do: 1e-5 of a posterior standard deviation


@np.errstate(under="ignore")
def minimise(function: Callable, start, *, limit: int = 100, tolerance: float = TOLERANCE) -> tuple[np.ndarray, float]:
    """Minimise by Newton steps, halved until they descend.

    The steps do not depend on the units of the columns, and near the minimum each doubles the number of right digits:
    ten steps end at rounding where a first-order method would take thousands.

    Parameters
    ----------
    function : callable
        ``function(v)`` gives the value, ``function(v, True)`` the value, gradient g (p,) and Hessian H (p, p).
    start : array, shape (p,)
        Where to begin.
    limit : int
        Steps at most.
    tolerance : float
        Stop where the decrement is smaller; rounding may stop it before.

    Returns
    -------
    v : array, shape (p,)
        The minimum, or where the search ended.
    decrement : float
        g' H⁻¹ g there: twice what is left to descend, the squared distance to the minimum in units of the curvature.

    Examples
    --------
    >>> def function(v, derivatives=False):
    ...     value = float(np.exp(v[0]) - 2 * v[0])
    ...     return (value, np.exp(v) - 2, np.exp(v)[:, None]) if derivatives else value
    >>> v, decrement = minimise(function, [0.0])
    >>> round(float(v[0]), 12), decrement < 1e-18
    (0.69314718056, True)
    """
    v, decrement = np.asarray(start, float), np.inf
    value, gradient, hessian = function(v, True)
    for _ in range(limit):
        step = _solve(hessian, gradient)
        decrement, size = float(gradient @ step), 1.0
        rounding = 1e-13 * abs(value)
        if decrement <= tolerance:
            return (v - step if function(v - step) <= value + rounding else v), decrement
        trial, *derivatives = function(v - step, True)  # most steps are taken whole
        while trial > value - 1e-4 * size * decrement + rounding:
            size, derivatives = size / 2, []
            if size < 1e-10:  # no descent is left that rounding would show
                return v, decrement
            trial = function(v - size * step)
        v = v - size * step
        value, gradient, hessian = (trial, *derivatives) if derivatives else function(v, True)
    return v, decrement


def _solve(hessian, gradient):
    """H⁻¹ g, columns brought to one scale; where H is singular to rounding a little is added to its diagonal."""
    scale = np.sqrt(np.maximum(np.diagonal(hessian), np.finfo(float).tiny))
    hessian, ridge = hessian / scale / scale[:, None], 0.0
    while True:
        _, step, failed = dposv(hessian + ridge * np.eye(len(scale)), gradient / scale)
        if not failed:
            return step / scale
        ridge = max(10 * ridge, 1e-14)
