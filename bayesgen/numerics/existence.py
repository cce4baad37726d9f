"""Whether maximum likelihood exists in a regression: rank of the columns, and separation of classes."""

import numpy as np
from scipy import sparse
from scipy.linalg import qr
from scipy.optimize import linprog

_STRICT = 1e-5  # of a column's range: a margin beyond this is real
_TIE = 1e-12  # and one beyond this on the wrong side too


def check_rank(x, noise, columns, tolerance: float = 1e-10) -> np.ndarray:
    """Return the spread (D,) of centred columns, or raise for those that the others or the intercept determine.

    Parameters
    ----------
    x : array, shape (n, D)
        Rows about their mean, or a triangular factor of them.
    noise : array, shape (D,)
        Root sum of squares that rounding alone may give a column, or leave of it beside the others.
    columns : tuple of str
        Names of the columns, or () where they have none.
    tolerance : float
        Share of a column's spread that the others must leave of it.

    Examples
    --------
    >>> check_rank(np.array([[-1.0, -2.0], [0.0, 0.0], [1.0, 2.0]]), 0.0, ("a", "b"))
    Traceback (most recent call last):
    ValueError: maximum likelihood does not exist: columns ['b'] are linear combinations of the others...
    """

    def refuse(chosen, problem):
        names = [columns[j] if columns else int(j) for j in chosen]
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        raise ValueError(
            f"maximum likelihood does not exist: columns {names[:6]}{more} are {problem}; drop them, or use 'map' or "
            "'nuts', whose prior decides"
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
    """Raise where linear scores of the columns separate the classes, wholly or up to ties.

    Parameters
    ----------
    x : array, shape (n, D)
        Rows, scaled to about 1.
    t : int array, shape (n,)
        Class codes.
    classes, columns : tuple
        Labels of the classes, names of the columns.

    Notes
    -----
    They do where there are b_1..b_K, b_K = 0, with z_i'(b_t - b_k) >= 0 for every row i of class t and every k != t,
    and > 0 for one of them (Albert and Anderson 1984). Linear programming maximises the sum of these margins over
    -1 <= b <= 1 (Konis 2007); it is 0 where the classes overlap. An overlap within 1e-12 of the spread is a tie.
    """
    count, z = len(classes), np.column_stack([np.ones(len(x)), x])
    blocks, rows = [], []
    for own in range(count):
        for other in range(count):
            if own != other:
                mine = z[t == own]
                line: list = [sparse.csr_array((len(mine), z.shape[1]))] * count
                line[own], line[other] = sparse.csr_array(mine), sparse.csr_array(-mine)
                blocks.append(line[:-1])
                rows.append(np.full(len(mine), own))
    margins, rows = sparse.block_array(blocks, format="csr"), np.concatenate(rows)
    if not (_margins(margins) > _STRICT).any():
        return
    what = "a combination of the columns separates the classes"
    for code, label in enumerate(classes):
        mine, rest = x[t == code], x[t != code]
        if len(mine) and len(rest):
            alone = np.flatnonzero((mine.min(0) >= rest.max(0)) | (mine.max(0) <= rest.min(0)))
            if len(alone):
                name = repr(columns[alone[0]]) if columns else alone[0]
                what = f"column {name} alone separates class {label!r} from the others"
                break
    raise ValueError(
        f"maximum likelihood does not exist: {what}, so that the coefficients would grow without end; use 'map' "
        "or 'nuts', whose prior keeps them finite"
    )


def _margins(constraints) -> np.ndarray:
    """Margins C b >= 0 of the b in [-1, 1] of the largest sum, kept to `_TIE`; all 0 where they cannot be.

    linprog keeps constraints to 1e-7 only, so what it oversteps is enlarged and solved again, as a step from there
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
