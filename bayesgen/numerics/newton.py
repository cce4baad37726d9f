"""Newton's method, searches that repeat one map, the existence of maximum likelihood, priors from an interval.

`minimise` finds the maximum likelihood and MAP of the regressions, `fixed_point` those of models with gaps by
expectation-maximisation. Maximum likelihood exists where the columns have
full rank (`check_rank`) and do not separate the classes (`check_overlap`). `beta_of_interval` and `gamma_of_interval`
return the hyperparameters of a distribution with a given central interval.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr
from scipy.linalg.lapack import dposv  # type: ignore[attr-defined]  # SciPy's stubs leave it out
from scipy.optimize import brentq, linprog
from scipy.special import betainc, expit, gammainc, gammaincinv

from bayesgen.core.errors import DataError, listed

TOLERANCE = 1e-18
CLOSE = 1e-10  # a sufficient decrement: 1e-5 of a posterior standard deviation
_STRICT = 1e-5  # share of a column's range beyond which a margin is real
_TIE = 1e-12  # share beyond which a margin on the wrong side is real too


@np.errstate(under="ignore")
def minimise(function: Callable, start, *, limit: int = 100, tolerance: float = TOLERANCE) -> tuple[np.ndarray, float]:
    """Minimise a smooth convex function by Newton steps, halved until they descend; return v (p,) and its decrement.

    The steps do not depend on the units of the columns, and near the minimum each doubles the number of correct digits:
    ten steps reach rounding error where a first-order method would take thousands.

    ``function(v)`` returns the value, ``function(v, True)`` the value, gradient g (p,) and Hessian H (p, p). The search
    takes ``limit`` steps at most, and stops where the decrement is below ``tolerance``, or where rounding stops it. The
    decrement g' H⁻¹ g is twice the remaining descent, the squared distance to the minimum in units of the curvature.
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
    """Return H⁻¹ g, with columns brought to one scale; if H is singular to rounding, add a little to its diagonal."""
    scale = np.sqrt(np.maximum(np.diagonal(hessian), np.finfo(float).tiny))
    hessian, ridge = hessian / scale / scale[:, None], 0.0
    while True:
        _, step, failed = dposv(hessian + ridge * np.eye(len(scale)), gradient / scale)
        if not failed:
            return step / scale
        ridge = max(10 * ridge, 1e-14)


def fixed_point(advance: Callable, state, tolerance: float, problem: str, limit: int = 20_000):
    """Repeat a map, such as a step of expectation-maximisation, until its argument moves no more; return that.

    ``advance(state)`` returns the next state, and the size of the step to it. The search ends within ``tolerance`` of
    the fixed point, see `reached`; after ``limit`` steps a `DataError` tells the problem.

    >>> fixed_point(lambda x: (np.sqrt(x), abs(np.sqrt(x) - x)), 2.0, 1e-10, "no end").round(9).item()
    1.0
    """
    last = np.inf
    for _ in range(limit):
        state, step = advance(state)
        if reached(step, last, tolerance):
            return state
        if np.isnan(step):
            break
        last = step
    raise DataError(problem)


def reached(step: float, last: float, tolerance: float) -> bool:
    """Return True if a search that repeats one map is within ``tolerance`` of the fixed point.

    Such a search converges at a linear rate r, the ratio of two steps; after a step s, a distance of about
    s (r + r² + ...) = s r/(1 - r) remains. A small step alone does not show that the end is near. ``last`` is the size
    of the step before, infinite at the first.
    """
    rate = step / last if step else 0.0
    return step == 0 or (0 < rate < 1 and step * rate / (1 - rate) < tolerance)


def check_rank(x, noise, columns, tolerance: float = 1e-10) -> np.ndarray:
    """Return the spread (D,) of centred columns; raise if the others or the intercept determine one.

    ``x`` holds rows (n, D) less their mean, or a triangular factor of them; ``noise`` (D,) is the root sum of squares
    that rounding alone may give a column, or its residual from the others, and ``tolerance`` the share of a column's
    spread that the others must leave unexplained. Columns without names have ().
    """

    def refuse(chosen, problem):
        names = listed(columns[j] if columns else j for j in chosen)
        raise ValueError(
            f"maximum likelihood does not exist: columns {names} are {problem}; drop them, or use 'map' or 'nuts', "
            "whose prior decides"
        )

    spread = np.sqrt((x**2).sum(0))
    if (spread <= noise).any():
        refuse(np.flatnonzero(spread <= noise), "constant")
    r, order = qr(x / spread, mode="r", pivoting=True)  # type: ignore[misc]
    diagonal = np.zeros(x.shape[1])
    diagonal[: min(x.shape)] = np.abs(np.diagonal(r))
    alone = diagonal <= np.maximum(tolerance, noise / spread)[order]
    if alone.any():
        refuse(np.sort(order[alone]), "linear combinations of the others over these rows")
    return spread


def check_overlap(x, t, classes, columns) -> None:
    """Raise ValueError if linear scores of the columns (n, D), scaled to about 1, separate the classes, up to ties.

    Classes are separated if there are b_1..b_K, b_K = 0, with z_i'(b_t - b_k) >= 0 for every row i of class t and every
    k != t, and > 0 for one of them (Albert and Anderson 1984, *Biometrika* 71). Linear programming maximises the sum of
    these margins over -1 <= b <= 1 (Konis 2007); it is 0 if the classes overlap. An overlap within 1e-12 of the spread
    is a tie.
    """
    count, z = len(classes), np.column_stack([np.ones(len(x)), x])
    blocks, rows = [], []
    for code in range(count):
        for other in range(count):
            if code != other:
                mine = z[t == code]
                line: list = [sparse.csr_array((len(mine), z.shape[1]))] * count
                line[code], line[other] = sparse.csr_array(mine), sparse.csr_array(-mine)
                blocks.append(line[:-1])
                rows.append(np.full(len(mine), code))
    margins, rows = sparse.block_array(blocks, format="csr"), np.concatenate(rows)
    if not (_margins(margins) > _STRICT).any():
        return
    what = "a combination of the columns separates the classes"
    for label_code, label in enumerate(classes):
        mine, others = x[t == label_code], x[t != label_code]
        if len(mine) and len(others):
            alone = np.flatnonzero((mine.min(0) >= others.max(0)) | (mine.max(0) <= others.min(0)))
            if len(alone):
                name = repr(columns[alone[0]]) if columns else alone[0]
                what = f"column {name} alone separates class {label!r} from the others"
                break
    raise ValueError(
        f"maximum likelihood does not exist: {what}, so that the coefficients would grow without end; use 'map' "
        "or 'nuts', whose prior keeps them finite"
    )


def check_ordered_overlap(x, t, count: int) -> None:
    """Raise ValueError if a linear score of the columns (n, D), with cut points, separates ``count`` ordered classes.

    The likelihood grows without end along (c, b) if c_t - x b >= 0 and x b - c_{t-1} >= 0 for every row, and > 0 for
    one of them: no row leaves its interval, and one moves further in. The sum of these margins is maximised as in
    `check_overlap`.
    """
    places = np.arange(count - 1)
    upper: Any = sparse.hstack([sparse.csr_array(1.0 * (t[:, None] == places)), sparse.csr_array(-x)], format="csr")
    lower: Any = sparse.hstack([sparse.csr_array(-1.0 * (t[:, None] - 1 == places)), sparse.csr_array(x)], format="csr")
    margins = sparse.vstack([upper[t < count - 1], lower[t > 0]], format="csr")
    if (_margins(margins) > _STRICT).any():
        raise ValueError(
            "maximum likelihood does not exist: a combination of the columns separates the ordered classes, so that "
            "the coefficients would grow without end; use 'map' or 'nuts', whose prior keeps them finite"
        )


def _margins(constraints) -> np.ndarray:
    """Return the margins C b >= 0 with the largest sum, b in [-1, 1], accurate to `_TIE`; all 0 if that fails.

    linprog keeps constraints to 1e-7 only, so their violation is scaled up and solved again as a step from there
    (iterative refinement: Gleixner, Steffy and Wolter 2016, *INFORMS Journal on Computing* 28).
    """
    total, b, scale = constraints.sum(0), np.zeros(constraints.shape[1]), 1.0
    for _ in range(5):
        bounds = np.column_stack([-1 - b, 1 - b]) * scale
        step = linprog(-total, A_ub=-constraints, b_ub=scale * (constraints @ b), bounds=bounds, method="highs")
        if step.status != 0:
            break
        b = b + step.x / scale
        beyond = -(constraints @ b).min()
        if beyond <= _TIE:
            return constraints @ b
        scale = min(0.01 / beyond, 1e4 * scale)
    return np.zeros(constraints.shape[0])


def _tail(low: float, high: float, mass: float, most: float) -> float:
    """Return the mass on either side of the interval; raise ValueError if it is no interval."""
    if not 0 < low < high < most:
        between = "0 and 1" if most == 1 else "0 and infinity"
        raise ValueError(f"low and high must be in order and between {between}, got {low} and {high}")
    if not 0 < mass < 1:
        raise ValueError(f"mass must be between 0 and 1, got {mass}")
    return (1 - mass) / 2


def _root(excess, low: float, high: float) -> float:
    """Return the root of ``excess``, the logarithm of a strength between some 3e-4 and 7e10 rows."""
    if excess(-8) * excess(25) > 0:
        raise ValueError(f"no prior is so wide or so narrow: low {low}, high {high}")
    found: Any = brentq(excess, -8, 25, xtol=1e-13)
    return float(found)


def beta_of_interval(low: float, high: float, mass: float) -> tuple[float, float]:
    """Return the Beta(a, b) with as much mass below ``low`` as above ``high``, and ``mass`` between.

    For each total a + b one mean has the right mass below ``low``; the mass above ``high`` falls with the total.
    """
    tail = _tail(low, high, mass, 1.0)

    def with_total(log_total):
        total = np.exp(log_total)
        logit: Any = brentq(lambda z: betainc(total * expit(z), total * expit(-z), low) - tail, -40, 40, xtol=1e-14)
        return total * expit(logit), total * expit(-logit)

    a, b = with_total(_root(lambda z: betainc(*with_total(z), high) - (1 - tail), low, high))
    return float(a), float(b)


def gamma_of_interval(low: float, high: float, mass: float) -> tuple[float, float]:
    """Return the Gamma(concentration, rate) with as much mass below ``low`` as above ``high``, and ``mass`` between.

    For each concentration one rate has the right mass below ``low``; then the mass above ``high`` falls with it.
    """
    tail = _tail(low, high, mass, np.inf)

    def rate(concentration):
        return gammaincinv(concentration, tail) / low

    def excess(log_concentration):
        concentration = np.exp(log_concentration)
        return gammainc(concentration, rate(concentration) * high) - (1 - tail)

    concentration = np.exp(_root(excess, low, high))
    return float(concentration), float(rate(concentration))
