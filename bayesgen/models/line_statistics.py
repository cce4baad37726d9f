r"""What a line with Gaussian noise keeps of its rows: their weight, their mean, and a triangular factor.

With Z the weighted rows √w (x, t) about their mean, R is the upper triangular factor of Z = QR with a diagonal >= 0: so
R'R = Z'Z, but no square is formed, and a column that the others determine to 1e-7 of its spread keeps nine digits of
those 1e-7 where cross-products would keep two. Σ w (t - a - xb)² = n (t̄ - a - x̄b)² + |R c|², c = (-b, 1).

Factors add: those of two pieces, stacked above the row √(n₁n₂/n) (mean₂ - mean₁) of Chan, Golub and LeVeque (1983),
have the factor of the whole. Rows are read piece by piece in this way, each piece reduced together with the factor of
those before it. (Golub and Van Loan 2013, *Matrix Computations*, sections 5.2 and 5.3; Demmel, Grigori, Hoemmen and
Langou 2012, *SIAM J. Sci. Comput.* 34, of the "tall skinny QR".) Householder's reflections err by a few eps of each
column's own norm, whatever the units of the others, so columns need no scaling.

Rows are taken out by way of R₁'R₁ = R'(I - Q'Q)R, Q = B R⁻¹, B the factor of what goes: R₁ = L'R with LL' = I - Q'Q.
Let h < 1 be the largest eigenvalue of Q'Q, the leverage of what goes. Q errs by eps κ √h, κ the condition of R with
columns of length 1, and L by that over 1 - h: a direction in which little remains has its condition squared after all.
Where more than 1e-8 may be lost it is refused. (Stewart 1979, *J. Inst. Math. Appl.* 23; Golub and Van Loan, section
6.5.)
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtpqrt  # type: ignore[attr-defined]  # SciPy's stubs leave it out

from bayesgen.numerics.pieces import pieces
from bayesgen.program import static
from bayesgen.statistics import Statistics

_CELLS, _ROWS = 1 << 17, 1024  # of a piece at most: 1 MB, which stays in the cache while it is reduced
_BLOCK = 8  # reflections applied at once: of 1024 rows OpenBLAS takes no threads, for which it would wait longer
_EPS = float(np.finfo(float).eps)
_DIGITS = 1e-8  # the relative error that taking rows out may leave
_LOST = (
    "taking these rows out would lose the digits of what is left: they are not among the rows, or hold nearly all that "
    "is known of some combination of the columns; sum the rows that stay instead"
)


@dataclass(frozen=True, eq=False)
class LineStatistics(Statistics):
    """Weight, mean and triangular factor of rows (x, t); see the module.

    Two sums take the distance of their means as float64 has it. Columns whose offset is large beside their spread are
    better read in one call, which sets all rows in relation to the first.

    Attributes
    ----------
    n : array, shape ()
        Sum of weights.
    mean : array, shape (D + 1,)
        Mean of the columns and of the target; 0 where there is no row.
    factor : array, shape (D + 1, D + 1)
        R: upper triangular, its diagonal >= 0. It is unique where R has full rank; else R'R is.
    squares : array, shape ()
        Sum of squared weights, for Kish's effective number.
    decayed : bool
        Whether rows were made to count less after they were summed.

    Examples
    --------
    >>> x, t = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.0, 5.0, 8.0])
    >>> whole, part = LineStatistics.of(x, t, np.ones(4)), LineStatistics.of(x[:2], t[:2], np.ones(2))
    >>> (whole.factor.T @ whole.factor).round(2)  # sums of squares and products
    array([[ 5.  , 11.5 ],
           [11.5 , 26.75]])
    >>> bool(np.allclose((part + LineStatistics.of(x[2:], t[2:], np.ones(2))).factor, whole.factor))
    True
    """

    n: np.ndarray
    mean: np.ndarray
    factor: np.ndarray
    squares: np.ndarray
    decayed: bool = static(default=False)

    @classmethod
    def of(cls, x, t, weight) -> "LineStatistics":
        """Statistics of rows x (n, D), t (n,) of weights > 0 (n,), in one pass.

        All is relative to the first row: a constant column is exactly 0 throughout, and an offset costs no digits.
        """
        width = x.shape[1] + 1
        n, mean, factor = 0.0, np.zeros(width), np.zeros((width, width), order="F")
        origin = np.append(x[0], t[0]).astype(float) if len(x) else mean
        with np.errstate(over="ignore", invalid="ignore"):
            for piece in pieces(len(x), width, _CELLS, _ROWS):
                w = weight[piece]
                z = np.empty((width, len(w) + 1))  # column by column, as LAPACK reads them
                rows = z[:, :-1]
                rows[:-1], rows[-1] = x[piece].T, t[piece]
                rows -= origin[:, None]
                size = w.sum()
                own = np.vecdot(rows, w) / size
                rows -= own[:, None]
                rows *= np.sqrt(w)
                step = own - mean
                z[:, -1] = np.sqrt(n / (n + size) * size) * step
                n += size
                mean = mean + size / n * step
                factor = _reduce(factor, z.T)
        return cls(np.asarray(n), origin + mean, _positive(factor), np.asarray(np.vdot(weight, weight)))

    def scaled(self, factor):
        """Statistics in which every row counts ``factor`` times what it did, marked as ``decayed``."""
        squares = np.asarray(self.squares * factor**2)
        return LineStatistics(np.asarray(self.n * factor), self.mean, self.factor * factor**0.5, squares, True)

    def rows(self) -> np.ndarray:
        """D + 2 rows of (1, x, t) that have the sums of squares and products of all the rows: (D + 2, D + 2)."""
        rows = np.zeros((len(self.mean) + 1,) * 2)
        rows[0] = np.sqrt(self.n) * np.append(1.0, self.mean)
        rows[1:, 1:] = self.factor
        return rows

    def noise(self) -> np.ndarray:
        """Root sum of squares (D + 1,) that rounding at the mean alone may give a column: 8 eps √n |mean|."""
        return 8 * _EPS * np.sqrt(self.n) * np.abs(self.mean)

    def _with(self, other, sign):
        if not isinstance(other, LineStatistics) or self.mean.shape != other.mean.shape:
            return super()._with(other, sign)
        if not other.n:
            return self
        if sign < 0:
            return self._without(other)
        if not self.n:
            return other
        n, step, squares = self.n + other.n, other.mean - self.mean, np.asarray(self.squares + other.squares)
        between = np.sqrt(self.n / n * other.n) * step
        factor = _reduce(np.array(self.factor, order="F"), np.vstack([other.factor, between]))
        decayed = self.decayed or other.decayed
        return LineStatistics(np.asarray(n), self.mean + other.n / n * step, _positive(factor), squares, decayed)

    def _without(self, other):
        n, step = np.asarray(self.n - other.n), other.mean - self.mean
        if n < 0:
            raise ValueError(f"{float(other.n):g} rows cannot be taken out of {float(self.n):g}")
        if not n:
            return replace(self, n=n, mean=0 * self.mean, factor=0 * self.factor, squares=np.asarray(0.0))
        squares = np.maximum(self.squares - other.squares, 0.0)
        share = np.sqrt(self.n / n * other.n)
        rows = np.vstack([other.factor, share * step])
        seen, factor = self.factor.any(0), np.zeros_like(self.factor)  # a constant column stays one
        if rows[:, ~seen].any():
            raise ValueError(_LOST)
        if seen.any():
            noise = share * _EPS * np.abs(self.mean[seen])
            factor[np.ix_(seen, seen)] = _take_out(np.linalg.qr(self.factor[:, seen], mode="r"), rows[:, seen], noise)
        return LineStatistics(n, self.mean - other.n / n * step, factor, squares, self.decayed)


def _reduce(factor, rows):
    """Triangular factor of ``rows`` below an upper triangular ``factor``; both are used up, if in Fortran's order."""
    result, _, _, _ = dtpqrt(0, min(_BLOCK, len(factor)), factor, rows, overwrite_a=1, overwrite_b=1)
    return result


def _positive(factor):
    """The factor with a diagonal >= 0; what it is of does not change with the sign of a row."""
    return factor * np.where(np.diagonal(factor) < 0, -1.0, 1.0)[:, None]


def _take_out(factor, rows, noise):
    """Factor of what is left without ``rows``, which err by ``noise``; a ValueError where it would lose digits."""
    remainder, lost = factor, np.inf
    if np.diagonal(factor).all():
        inverse = solve_triangular(factor, np.eye(len(factor)))
        doubt = np.linalg.norm(inverse, axis=1) @ (_EPS * np.linalg.norm(factor, axis=0) + noise)  # eps κ: error of Q
        q = solve_triangular(factor, rows.T, trans=1)
        rest = np.eye(len(factor)) - q @ q.T
        share = np.linalg.eigvalsh(rest)[0]  # 1 - h: what stays of the squares in the direction that loses most
        if share > 0:
            remainder = np.linalg.cholesky(rest).T @ factor
            lost = len(factor) * doubt * np.sqrt(1 - min(share, 1.0)) / share
    if not lost <= _DIGITS:
        raise ValueError(_LOST)
    return _positive(remainder)
