"""Models of a target given its columns, and lines with Gaussian noise: statistics, densities, least squares.

**The rows of a regression.** `Discriminative` checks rows of complete columns, their names and their weights.

**Statistics of a line with Gaussian noise.** `LineStatistics` keep the weight of the rows, their mean, and a triangular
factor. With Z the weighted rows √w (x, t) about their mean, R is the upper triangular factor of Z = QR with a diagonal
>= 0. So R'R = Z'Z, but no square is formed: a column that the others determine to 1e-7 of its spread keeps nine digits
of those 1e-7 where cross-products would keep two. Σ w (t - a - xb)² = n (t̄ - a - x̄b)² + |R c|², c = (-b, 1).

Factors add: the factors of two pieces, stacked above the row √(n₁n₂/n) (mean₂ - mean₁) of Chan, Golub and LeVeque
(1983), have the factor of the whole. In this way rows are read piece by piece, each piece reduced together with the
factor of those before it. (Golub and Van Loan 2013, *Matrix Computations*, sections 5.2 and 5.3; the "tall skinny QR"
of Demmel, Grigori, Hoemmen and Langou 2012, *SIAM J. Sci. Comput.* 34.) Householder's reflections err by a few eps of
each column's own norm, whatever the units of the others, so columns need no scaling.

Let B be the factor of rows to take out. What remains has R₁'R₁ = R'(I - Q'Q)R with Q = B R⁻¹, so R₁ = L'R with
LL' = I - Q'Q. Let h < 1 be the largest eigenvalue of Q'Q, the leverage of these rows. Q errs by eps κ √h, κ the
condition of R with columns of length 1, and L by that over 1 - h: a direction in which little remains has its condition
squared after all. Where more than 1e-8 may be lost the subtraction is refused. (Stewart 1979, *J. Inst. Math. Appl.*
23; Golub and Van Loan, section 6.5.)

**Least squares.** `GaussianLine` solves them by the triangular factor, under any prior of the weights: coefficients b
with R_xx b = r_xt, and squared residuals of sum r_tt². (Golub and Van Loan 2013, section 5.3.)
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dtpqrt  # type: ignore[attr-defined]  # SciPy's stubs leave it out

from bayesgen.core import program
from bayesgen.core.errors import InputError
from bayesgen.core.program import static
from bayesgen.core.shapes import shaped
from bayesgen.core.statistics import Statistics
from bayesgen.models.gaussian import LOG_2PI
from bayesgen.models.model import Model, on_jax
from bayesgen.numerics.checks import check_flag, check_weight
from bayesgen.numerics.newton import check_rank
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.special import namespace
from bayesgen.numerics.sums import finite

_CELLS, _ROWS = 1 << 17, 1024  # largest piece: 1 MB, which stays in the cache while it is reduced
_BLOCK = 8  # reflections at once: for 1024 rows OpenBLAS then starts no threads, which would cost more
_EPS = float(np.finfo(float).eps)
_DIGITS = 1e-8  # largest relative error of taking rows out
_RANK = 1e-12  # least part of a column's spread, beside the others, that float64 distinguishes from 0
_LOST = (
    "taking these rows out would lose the digits of what is left: they are not among the rows, or hold nearly all that "
    "is known of some combination of the columns; sum the rows that stay instead"
)


class Discriminative(Model):
    """A model of a target given its columns, p(t | x, params). It does not model x, so x must be complete.

    Parameters of a score a + x b are the sites ``intercept`` and ``coefficients``. `log_likelihood_rows` is a density
    of t, so the average over posterior draws is the plain average of p(t | x, params).
    """

    columns: tuple[str, ...]

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "columns", tuple(self.columns))
        if self.columns and len(self.columns) != self.features:
            raise ValueError(f"{type(self).__name__}: {len(self.columns)} names for {self.features} columns")

    @property
    @abc.abstractmethod
    def features(self) -> int:
        """Number of columns D."""

    @abc.abstractmethod
    def likelihood(self, params, x) -> Any:
        """Return the NumPyro distribution of the targets of rows x (n, D), given one draw of the parameters."""

    @program.unique_names()
    def __call__(self, x, t=None, *, subsample_size: int | None = None):
        """Run the program row by row.

        Parameters
        ----------
        x : array, shape (n, D)
            Columns.
        t : array, shape (n,), optional
            Observed targets, of a classifier codes in 0..K-1; None draws them.
        subsample_size : int, optional
            Number of rows, chosen at random, that stand for all (NumPyro's `HMCECS`, SVI by minibatches).
        """
        if program.around():
            raise ValueError(
                f"{type(self).__name__}: a regression has rows of its own in every element of a plate; run it for each "
                "in a loop, under numpyro.handlers.scope(prefix=...), in place of the plate"
            )
        model, x = on_jax(self), program.jnp.asarray(x)
        params = model.latents()
        with program.subsampled(len(x), subsample_size) as rows:
            likelihood = model.likelihood(params, x[rows])
            with program.numpyro.plate("obs", len(x), subsample_size=subsample_size):
                seen = None if t is None else program.jnp.asarray(t)[rows]
                return program.numpyro.sample("t", likelihood, obs=seen)

    def check_columns(self, x, weight=None) -> np.ndarray:
        """Return the rows as floats (n, D), or raise."""
        x = np.asanyarray(x)  # masked entries stay masked
        if x.ndim != 2 or x.shape[1] != self.features:
            owner = type(self).__name__
            raise ValueError(f"{owner}: expected rows of {self.features} columns, (n, {self.features}), got {x.shape}")
        return complete(x, self.columns, weight)

    def check_rows(self, x, t, weight) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return columns, target and weight of the rows whose weight is not 0, or raise."""
        if np.ma.is_masked(t):
            raise ValueError("the target has masked entries; drop these rows")
        t = np.asarray(t)
        weight = check_weight(weight, len(t))
        w = np.ones(len(t)) if weight is None else weight
        if np.shape(x)[:1] != t.shape:
            raise ValueError(f"t must hold one value for each of the {len(x)} rows, got shape {t.shape}")
        x = self.check_columns(x, w)
        seen = slice(None) if w.all() else w > 0
        return x[seen], t[seen], w[seen]

    def dims(self, site: str) -> tuple[str, ...]:
        return ("feature",) if site == "coefficients" else ()

    def coords(self) -> dict[str, list]:
        return {"feature": list(self.columns)} if self.columns else {}


def not_finite(value: float, row: int = 0) -> str:
    """Return the words by which a value that is missing or infinite is refused."""
    kind = "NaN: missing" if np.isnan(value) else "infinite (inf)"
    return (
        f"the value in row {row} is {kind}; a discriminative model has no distribution of the columns to fill it from: "
        "impute it, drop the row, use a generative classifier, or a logistic, probit or ordered one with missing='mean'"
    )


def complete(x, columns, weight=None) -> np.ndarray:
    """Return rows (n, D) as floats, or raise where one of weight > 0 is not finite."""
    try:
        x = np.asarray(np.ma.filled(x.astype(float), np.nan) if np.ma.is_masked(x) else x, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"the columns must be numbers, got {np.asarray(x).dtype} values") from None
    if finite(x):
        return x
    bad = ~np.isfinite(x) if weight is None else ~np.isfinite(x) & (weight > 0)[:, None]
    if bad.any():
        row, column = np.argwhere(bad)[0]
        name = repr(columns[column]) if columns else column
        raise InputError(
            f"column {name}: {not_finite(float(x[row, column]), int(row))}",
            column=columns[column] if columns else None,
            row=int(row),
            value=x[row, column],
        )
    return x


def scores(params: Mapping, x) -> np.ndarray:
    """Return a + x b for every draw: params (lead..., D), (lead...) and x (n, D) give (lead..., n), by one product."""
    coefficients, intercept = params["coefficients"], params["intercept"]
    product = coefficients.reshape(-1, x.shape[1]) @ x.T
    return product.reshape(*intercept.shape, len(x)) + intercept[..., None]


@dataclass(frozen=True, eq=False)
class LineStatistics(Statistics):
    """Weight, mean and triangular factor of rows (x, t); see the module.

    The distance between the means of two sums is rounded to float64. Columns whose offset is large beside their spread
    are better read in one call, which subtracts the first row from all.
    """

    n: np.ndarray = field(metadata=shaped(""))  # sum of weights
    mean: np.ndarray = field(metadata=shaped("line"))  # mean of the columns and of the target; 0 where there is no row
    # R: upper triangular, with a diagonal >= 0. It is unique where it has full rank; else only R'R is.
    factor: np.ndarray = field(metadata=shaped("line line"))
    squares: np.ndarray  # (): sum of squared weights, for Kish's effective number
    decayed: bool = static(default=False)  # True if the weight of rows was lowered after they were summed

    @classmethod
    def of(cls, x, t, weight) -> "LineStatistics":
        """Return the statistics of rows x (n, D), t (n,) of weights > 0 (n,), in one pass.

        The first row is subtracted from all: a constant column is exactly 0 throughout, and an offset costs no digits.
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
                centre = np.vecdot(rows, w) / size
                rows -= centre[:, None]
                rows *= np.sqrt(w)
                step = centre - mean
                z[:, -1] = np.sqrt(n / (n + size) * size) * step
                n += size
                mean = mean + size / n * step
                factor = _reduce(factor, z.T)
        return cls(np.asarray(n), origin + mean, _positive(factor), np.asarray(np.vdot(weight, weight)))

    def scaled(self, factor):
        squares = np.asarray(self.squares * factor**2)
        return LineStatistics(np.asarray(self.n * factor), self.mean, self.factor * factor**0.5, squares, True)

    def rows(self) -> np.ndarray:
        """Return D + 2 rows of (1, x, t) with the sums of squares and products of all the rows: (D + 2, D + 2)."""
        rows = np.zeros((len(self.mean) + 1,) * 2)
        rows[0] = np.sqrt(self.n) * np.append(1.0, self.mean)
        rows[1:, 1:] = self.factor
        return rows

    def noise(self) -> np.ndarray:
        """Return the root sum of squares (D + 1,) that rounding at the mean may give a column: 8 eps √n |mean|."""
        return 8 * _EPS * np.sqrt(self.n) * np.abs(self.mean)

    def _with(self, other, sign):
        if not isinstance(other, LineStatistics) or self.mean.shape != other.mean.shape:
            return super()._with(other, sign)
        if not other.n:
            return self
        if sign < 0:
            return self.without(other)
        if not self.n:
            return other
        n, step, squares = self.n + other.n, other.mean - self.mean, np.asarray(self.squares + other.squares)
        between = np.sqrt(self.n / n * other.n) * step
        factor = _reduce(np.array(self.factor, order="F"), np.vstack([other.factor, between]))
        decayed = self.decayed or other.decayed
        return LineStatistics(np.asarray(n), self.mean + other.n / n * step, _positive(factor), squares, decayed)

    def without(self, gone, signed=False):
        """Return the statistics without the rows of ``gone``, or raise where more than 1e-8 may be lost."""
        if not gone.n:
            return self
        n, step = np.asarray(self.n - gone.n), gone.mean - self.mean
        if n < 0:
            raise ValueError(f"{float(gone.n):g} rows cannot be taken out of {float(self.n):g}")
        if not n:
            return replace(self, n=n, mean=0 * self.mean, factor=0 * self.factor, squares=np.asarray(0.0))
        squares = np.maximum(self.squares - gone.squares, 0.0)
        share = np.sqrt(self.n / n * gone.n)
        rows = np.vstack([gone.factor, share * step])
        kept, combined = _independent(self.factor)
        away = np.abs(rows - rows[:, kept] @ combined).max(0)
        if (away > _RANK * np.linalg.norm(self.factor, axis=0)).any():  # a constant column stays one
            raise ValueError(_LOST)
        factor, noise = np.zeros_like(self.factor), share * _EPS * np.abs(self.mean[kept])
        if len(kept):
            factor[kept] = _take_out(np.linalg.qr(self.factor[:, kept], mode="r"), rows[:, kept], noise) @ combined
        remaining: Any = np.linalg.qr(factor, mode="r")
        return LineStatistics(n, self.mean - gone.n / n * step, _positive(remaining), squares, self.decayed)


def _reduce(factor, rows):
    """Return the factor of an upper triangular ``factor`` above ``rows``; arrays in Fortran's order are overwritten."""
    result, _, _, _ = dtpqrt(0, min(_BLOCK, len(factor)), factor, rows, overwrite_a=1, overwrite_b=1)
    return result


def _positive(factor):
    """Return the factor with a diagonal >= 0: rows of R may change sign."""
    return factor * np.where(np.diagonal(factor) < 0, -1.0, 1.0)[:, None]


def _independent(factor) -> tuple[np.ndarray, np.ndarray]:
    """Return columns that determine the others to 1e-12 of their spread, and all columns as combinations of these.

    So the columns of 0 and 1 of a variable's categories, whose sum is 1, do not stand in the way of taking rows out.
    """
    norm = np.linalg.norm(factor, axis=0)
    norm[norm == 0] = 1.0
    pivoted: Any = qr(factor / norm, mode="r", pivoting=True)
    triangle, order = pivoted
    kept = np.sort(order[: int((np.abs(np.diagonal(triangle)) > _RANK).sum())])
    combined = np.linalg.lstsq(factor[:, kept] / norm[kept], factor / norm)[0] * norm / norm[kept][:, None]
    combined[:, kept] = np.eye(len(kept))
    return kept, combined


def _take_out(factor, rows, noise):
    """Return the factor without ``rows``, which err by ``noise``; raise ValueError where it would lose digits."""
    remainder, lost = factor, np.inf
    if np.diagonal(factor).all():
        inverse = solve_triangular(factor, np.eye(len(factor)))
        doubt = np.linalg.norm(inverse, axis=1) @ (_EPS * np.linalg.norm(factor, axis=0) + noise)  # eps κ: error of Q
        q = solve_triangular(factor, rows.T, trans=1)
        kept = np.eye(len(factor)) - q @ q.T
        share = np.linalg.eigvalsh(kept)[0]  # 1 - h: part of the squares that stays in the direction that loses most
        if share > 0:
            remainder = np.linalg.cholesky(kept).T @ factor
            lost = len(factor) * doubt * np.sqrt(1 - min(share, 1.0)) / share
    if not lost <= _DIGITS:
        raise ValueError(_LOST)
    return _positive(remainder)


@dataclass(frozen=True, eq=False)
class GaussianLine(Discriminative):
    """A line with Gaussian noise; ``params`` hold "intercept" (0 if there is none), "coefficients" and "variance"."""

    intercept: bool = static(default=True, kw_only=True)  # False: the line goes through 0

    def __post_init__(self):
        check_flag(f"{type(self).__name__}: intercept", self.intercept)
        super().__post_init__()

    def likelihood(self, params, x):
        return program.dist.Normal(params["intercept"] + x @ params["coefficients"], params["variance"] ** 0.5)

    def statistics(self, x, t, weight=None) -> Any:
        """Return the `LineStatistics` of (x, t): one pass, additive over pieces of the data, free of hyperparameters.

        Columns x (n, D) and target t (n,) have no gaps; a whole ``weight`` (n,) >= 0 is a row repeated.
        """
        x, t, w = self.check_rows(x, t, weight)
        statistics = LineStatistics.of(x, target(t), w)
        large = ~np.isfinite(statistics.factor).all(0)  # name the first: an overflow spoils the columns to its right
        if large.any():
            names = [*(f"column {name!r}" for name in self.columns or range(self.features)), "the target"]
            raise ValueError(f"{names[large.argmax()]} has values too large for float64; give it in larger units")
        return statistics

    def log_likelihood(self, params, statistics):
        """Return log p(t | x, params), -n log(2πσ²)/2 - (n (t̄ - a - x̄b)² + |R c|²)/2σ², of all rows, c = (-b, 1)."""
        n, mean, variance = statistics.n, statistics.mean, params["variance"]
        xp = namespace(params["coefficients"])
        contrast = xp.concatenate([-params["coefficients"], xp.ones(1)])
        squares = n * (mean @ contrast - params["intercept"]) ** 2 + ((statistics.factor @ contrast) ** 2).sum()
        return -0.5 * (n * (LOG_2PI + xp.log(variance)) + squares / variance)

    def check(self, x) -> Mapping[str, np.ndarray]:
        """Return rows (x, t), a pair or a mapping, as a mapping to arrays, or raise."""
        x, t = (x["x"], x["t"]) if isinstance(x, Mapping) else x
        x, t, _ = self.check_rows(x, t, None)
        return {"x": x, "t": target(t)}

    def log_likelihood_rows(self, params, x) -> np.ndarray:
        variance = params["variance"][..., None]
        return -0.5 * (LOG_2PI + np.log(variance) + (x["t"] - scores(params, x["x"])) ** 2 / variance)

    def moments_of_draws(self, params, x) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the target at rows x (n, D), over draws of the parameters (draws, ...)."""
        x = self.check_columns(x)
        weights = np.column_stack([params["intercept"], params["coefficients"]])
        rows, centre = np.column_stack([np.ones(len(x)), x]), weights.mean(0)  # intercept 0 if there is none
        spread = (weights - centre).T @ (weights - centre) / len(weights)
        return rows @ centre, ((rows @ spread) * rows).sum(1) + params["variance"].mean()

    def least_squares(self, statistics: LineStatistics) -> tuple[np.ndarray, float]:
        """Return the weights of least squares, and the root of the squared residuals; raise if not determined."""
        mean, factor = statistics.mean, statistics.factor
        if not self.intercept:
            _, factor = np.linalg.qr(self.rows_of(statistics))
        check_rank(factor[:-1, :-1], statistics.noise()[:-1], self.columns, _RANK)
        coefficients = solve_triangular(factor[:-1, :-1], factor[:-1, -1])
        if not self.intercept:
            return coefficients, abs(float(factor[-1, -1]))
        return np.append(mean[-1] - mean[:-1] @ coefficients, coefficients), float(factor[-1, -1])

    def design(self, x) -> np.ndarray:
        """Return rows z = (1, x), or x without an intercept."""
        return np.column_stack([np.ones(len(x)), x]) if self.intercept else x

    def rows_of(self, statistics: LineStatistics) -> np.ndarray:
        """Return D + 2 rows (z, t) with the sums of squares and products of all the rows."""
        rows = statistics.rows()
        return rows if self.intercept else rows[:, 1:]

    def ml(self, statistics):
        """Return least squares and the mean squared residual (divisor n); raise ValueError if not determined."""
        weights, residual = self.least_squares(statistics)
        if residual <= max(_RANK * np.linalg.norm(statistics.factor[:, -1]), statistics.noise()[-1]):
            raise ValueError(
                "maximum likelihood of the noise variance does not exist: the columns explain the target of these "
                f"{statistics.n:g} rows exactly; use 'map', 'exact' or 'nuts'"
            )
        return self.params(weights, residual**2 / statistics.n)

    def params(self, weights, variance):
        """Name the parts of weights (..., 1 + D), or (..., D) without an intercept."""
        intercept, coefficients = weights[..., 0], weights[..., 1:]
        if not self.intercept:
            intercept, coefficients = np.zeros(weights.shape[:-1]), weights
        return {"intercept": intercept, "coefficients": coefficients, "variance": np.asarray(variance)}


def target(t) -> np.ndarray:
    """Return the target as floats, or raise."""
    try:
        if np.asarray(t).dtype.kind in "cmM":  # complex numbers and dates would convert silently
            raise TypeError
        t = np.asarray(t, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"the target must be numbers, got {np.asarray(t).dtype} values") from None
    if not np.isfinite(t).all():
        raise ValueError(f"the target is NaN (missing) or inf in row {int(np.argmax(~np.isfinite(t)))}; drop the row")
    return t
