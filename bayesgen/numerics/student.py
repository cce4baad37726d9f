r"""Densities and tails of D-variate Student-t distributions, for several groups at once and for rows with gaps.

For ν degrees of freedom, centre m and scale matrix S, with ν S = c L L' and W = L⁻¹/√c,

.. math:: \log p(x) = \log \frac{\Gamma((\nu + D)/2)}{\Gamma(\nu/2)} - \frac{D}{2} \log(\pi c) - \log |L|
   - \frac{\nu + D}{2} \log(1 + |W (x - m)|^2)

Missing entries are integrated out: the observed ones have their block of S, and the same ν.

Given its d observed entries o, with δ² = (x_o - m_o)' S_oo⁻¹ (x_o - m_o), the other entries u of a row are a Student-t
with ν + d degrees of freedom about m_u + S_uo S_oo⁻¹ (x_o - m_o), whose squared scale is

.. math:: \frac{\nu + \delta^2}{\nu + d} \big(S_{uu} - S_{uo} S_{oo}^{-1} S_{ou}\big)

(Ding 2016, *The American Statistician* 70, 293-295; ν is infinite for a Gaussian.) As a vector, x_u is a Student-t of
this scale matrix. Its draw is x_u = m_u + B (x_o - m_o) + √f (e_u - B e_o), with B = S_uo S_oo⁻¹, e ~ N(0, S) a whole
row, and f = (ν + δ²)/χ²_{ν+d}, or 1 for a Gaussian: e_u - B e_o has the covariance of x_u given x_o, and none with e_o.

With the precision P = S⁻¹, worked out once for all rows, what a row lacks is eliminated: only matrices of the
columns that it lacks are factorised. With z = x - m, 0 where missing, and g = (P z)_u, e_u - B e_o = P_uu⁻¹ (P e)_u and

.. math:: B z_o = -P_{uu}^{-1} g, \quad S_{uu} - S_{uo} S_{oo}^{-1} S_{ou} = P_{uu}^{-1}, \quad
   \delta^2 = z^\top P z - g^\top P_{uu}^{-1} g, \quad |S_{oo}| = |S| \, |P_{uu}|

The rounding of δ² is that of z'Pz, so where this is large the density of a row takes a Cholesky factor of S_oo.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf  # type: ignore[attr-defined]  # SciPy's stubs leave it out

from bayesgen.numerics.pieces import (
    CELLS,
    as_columns,
    blas_threads,
    grouped_patterns,
    patterns,
    pieces,
    product_rows,
    scratch,
)
from bayesgen.numerics.special import log1p_sum_squares, log_gamma_ratio, student_tail
from bayesgen.numerics.sums import finite

_NARROW = 16  # columns of a matrix below which numpy's one call for all is quicker than LAPACK's for each
_MANY = 10_000  # entries of matrices that are inverted by blocks
_RUN, _RANGE = 32, 370.0  # columns that share a logarithm, and the largest |log| of the product of their c_j: 1e160
_ROW = 8  # entries of a matrix that are factorised in the time in which one row is eliminated
_NEAR = 1e4  # of z'Pz, twice what it adds to a log density: rounding is then below 1e-11
_SQUARED = 1e150  # distance whose square may leave float64
_APART = 1e5  # half a squared distance of centres in standard deviations: at most 1e-10 of a log density then cancels


def upper_factors(matrices) -> np.ndarray:
    """Return U with U'U = A for each positive definite matrix A of a C-contiguous array (..., D, D).

    Only the upper triangles of A and U are read and written: what stands below the diagonal has no meaning. From 16
    columns on U is written over A. With 60 columns and more this takes half the time of `numpy.linalg.cholesky`, which
    copies each matrix twice and zeroes a triangle.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite.

    Examples
    --------
    >>> upper_factors(np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 1.],
           [0., 2.]])
    """
    dim = matrices.shape[-1]
    if dim < _NARROW:
        return np.linalg.cholesky(matrices, upper=True)
    for matrix in matrices.reshape(-1, dim, dim).mT:  # LAPACK's order of entries, in which U is the lower L = U'
        if dpotrf(matrix, lower=1, clean=0, overwrite_a=1)[1]:
            raise np.linalg.LinAlgError("a matrix is not positive definite")
    return matrices


def triangular_inverse(lower) -> np.ndarray:
    """Return the inverses of lower triangular matrices (..., D, D), by blocks: exactly triangular again.

    The inverse of [[A, 0], [B, C]] is [[A⁻¹, 0], [-C⁻¹ B A⁻¹, C⁻¹]]. For thousands of matrices of ten columns it takes
    half the time of `numpy.linalg.inv`, which factorises each by itself, and leaves rounding above the diagonal.

    Examples
    --------
    >>> triangular_inverse(np.array([[2.0, 0.0], [1.0, 4.0]]))
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])
    """
    dim = lower.shape[-1]
    if dim == 1:
        return 1 / lower
    one, two = slice(dim // 2), slice(dim // 2, None)
    result = np.zeros_like(lower)
    result[..., one, one] = triangular_inverse(lower[..., one, one])
    result[..., two, two] = triangular_inverse(lower[..., two, two])
    result[..., two, one] = -result[..., two, two] @ (lower[..., two, one] @ result[..., one, one])
    return result


def _inverse(lower) -> np.ndarray:
    """Return the inverses of lower triangular matrices (..., D, D), few or many."""
    return np.linalg.inv(lower) if lower.size < _MANY else triangular_inverse(lower)


class Whitener(NamedTuple):
    """Constants of the log density of rows about their centre m: level - power log(1 + |matrix (x - m)|²).

    Attributes
    ----------
    matrix : array, shape (..., D, D)
    level, power : array, shape (...)
    """

    matrix: np.ndarray
    level: np.ndarray
    power: np.ndarray

    @classmethod
    def of(cls, root, unit, dof, dim) -> "Whitener":
        """Return the constants for ``dim`` columns, where dof times the scale matrix is unit root root'."""
        level = log_gamma_ratio(dof / 2, dim / 2) - 0.5 * dim * np.log(np.pi * unit)
        log_root = np.log(root.diagonal(axis1=-2, axis2=-1)).sum(-1)
        inverse = _inverse(root)
        return cls(inverse / np.sqrt(unit)[..., None, None], level - log_root, (dof + dim) / 2)

    @classmethod
    def of_patterns(cls, seen, scale, dof) -> "Whitener":
        """Return the constants for the columns of each pattern, ``seen`` (P, D) bools: arrays (P, groups, ...).

        If the identity replaces the rows and columns of missing entries, a matrix has the determinant and the inverse
        of the observed block; the whitened entries that are missing are then set to 0.
        """
        seen = seen[:, None].astype(float)
        both = seen[..., :, None] * seen[..., None, :]
        root = np.linalg.cholesky(scale * both + (1 - seen)[..., None] * np.eye(seen.shape[-1]))
        matrix, level, power = cls.of(root, dof, dof, seen.sum(-1))
        return cls(matrix * seen[..., None], level, power)


class ColumnProducts(NamedTuple):
    """Constants of log Π_j (1 + (w_j d_j)²) over independent columns, d their distances from a mean, by group.

    With c_j = 1/w_j² it is the logarithm of Π (c_j + d_j²)/Π c_j: a pass over the entries less than with w_j d_j, and
    one logarithm for a run of columns whose products stay within float64. The rounding of c_j cancels. Rounding moves
    it by 1e-15, which a power of a million turns into 1e-9: for larger powers there is `log_product`.

    Attributes
    ----------
    floor : array, shape (groups, D, 1)
        c_j.
    runs : list of slice
    unit : array, shape (groups, runs)
        1 over the products of c_j.
    """

    floor: np.ndarray
    runs: list
    unit: np.ndarray

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, width) -> "ColumnProducts":
        """Return the constants where the widths are w (groups, D)."""
        floor, runs, start, total = width[..., None] ** -2.0, [], 0, 0.0
        for place, size in enumerate(np.abs(np.log(floor[..., 0])).max(0).tolist()):
            total += size
            if place > start and (total > _RANGE or place == start + _RUN):
                runs.append(slice(start, place))
                start, total = place, size
        runs.append(slice(start, width.shape[1]))
        return cls(floor, runs, np.stack([1 / np.multiply.reduce(floor[:, run, 0], 1) for run in runs], axis=1))

    def log(self, d) -> np.ndarray:
        """Return the logarithms (groups, n) from distances (groups, D, n), overwritten; not finite if far away."""
        d *= d
        d += self.floor
        result = np.zeros((len(d), d.shape[2]))
        for run, unit in zip(self.runs, self.unit.T, strict=True):
            product = np.multiply.reduce(d[:, run], axis=1)
            product *= unit[:, None]
            result += np.log(product, out=product)
        return result


def log_product(u) -> np.ndarray:
    """Return log Π_j (1 + u_j) over the first axis of ``u`` (features, n) >= 0, small, which is overwritten.

    Factors are combined two by two as e + u + e u, which keeps the digits that 1 + u loses. Far away the product
    overflows, and so does the result.
    """
    count = len(u)
    for _ in range(5):
        half = count // 2
        e, other = u[:half], u[count - half : count]
        both = e * other
        e += other
        e += both
        count -= half
    return np.log1p(u[:count]).sum(0)


@np.errstate(under="ignore")
def write_log_density(result, x, mean, whitener: Whitener, bounds=None) -> None:
    """Write the log density of rows (n, D), 0 where missing, about means (groups, D) to ``result`` (groups, n).

    The constants are by group; with ``bounds`` (P + 1,), the starts of the rows of each of P patterns of gaps, they are
    by pattern and group.
    """
    dim, mean = x.shape[1], mean[:, :, None]
    pattern = np.zeros(0, int) if bounds is None else np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    with blas_threads(dim):
        for piece in pieces(len(x), mean.size, 1 << 17, product_rows(dim * dim)):
            columns, shape = as_columns(x[piece]), (*mean.shape[:2], piece.stop - piece.start)
            z = np.subtract(columns, mean, out=scratch("centred", shape))
            white = scratch("whitened", shape)
            if bounds is None:
                np.matmul(whitener.matrix, z, out=white)
                level, power = whitener.level[:, None], whitener.power[:, None]
            else:
                of, ends = pattern[piece], bounds - piece.start
                for p in range(of[0], of[-1] + 1):
                    run = slice(max(ends[p], 0), ends[p + 1])
                    np.matmul(whitener.matrix[p], z[..., run], out=white[..., run])
                level, power = whitener.level.T.take(of, 1), whitener.power.T.take(of, 1)
            result[:, piece] = level - power * log1p_sum_squares(white, 1)


class SharedWhitener(NamedTuple):
    """Constants of the log density of rows where the scale matrices of all groups differ by factors only.

    Let z = matrix (x - centre), and a = matrix (m - centre) for a group whose own matrix W is √r times ``matrix``. Then
    1 + |W (x - m)|² = r |z|² - 2 r a'z + r |a|² + 1: rows are whitened once, whatever the number of groups. Here
    ``matrix`` is the inverse of a root of the scale matrices without their factors, which are 1/r.

    Attributes
    ----------
    centre : array, shape (D,)
    matrix : array, shape (D, D)
    products : array, shape (groups, D + 2)
        Coefficients of (z, |z|², 1).
    level : array, shape (groups, 1)
    power : array, shape (1,)
    """

    centre: np.ndarray
    matrix: np.ndarray
    products: np.ndarray
    level: np.ndarray
    power: np.ndarray

    @classmethod
    def of(cls, mean, root, unit, dof) -> "SharedWhitener | None":
        """Return the constants where dof (1,) times a group's scale matrix is its unit (groups, 1) times root root'.

        It is None where centres far apart would cost digits.
        """
        dim, matrix, power = mean.shape[1], np.linalg.inv(root), (dof + mean.shape[1]) / 2
        centre, ratio = mean.sum(0) / len(mean), 1 / unit
        a = (mean - centre) @ matrix.T
        square = (a * a).sum(1, keepdims=True) * ratio
        if not (power * square < _APART).all():
            return None
        products = np.concatenate([-2 * ratio * a, ratio, square + 1], axis=1)
        level = log_gamma_ratio(dof / 2, dim / 2) - np.log(root.diagonal()).sum() - 0.5 * dim * np.log(np.pi * unit)
        return cls(centre, matrix, products, level, power)


@np.errstate(all="ignore")
def write_shared_log_density(result, x, whitener: SharedWhitener) -> bool:
    """Write the log density of rows (n, D) to ``result`` (groups, n); return False if a square left float64."""
    dim, (groups, count) = x.shape[1], result.shape
    with blas_threads(dim):
        for piece in pieces(count, groups + 3 * dim, 1 << 17, product_rows(dim * dim)):
            columns = as_columns(x[piece])
            centred = np.subtract(columns, whitener.centre[:, None], out=scratch("centred", columns.shape))
            white = scratch("whitened", (dim + 2, len(columns.T)))
            z = np.matmul(whitener.matrix, centred, out=white[:dim])
            np.multiply(z, z, out=centred).sum(0, out=white[dim])
            white[dim + 1] = 1.0
            distance = np.log(whitener.products @ white)
            distance *= whitener.power
            np.subtract(whitener.level, distance, out=result[:, piece])
    return finite(result)


class Eliminated(NamedTuple):
    """Rows that lack as many entries u, which are eliminated from z'Pz under every group.

    Attributes
    ----------
    rows : int array, shape (n,)
        Places of the rows.
    gone : int array, shape (n, k)
        Columns that each lacks.
    kind : int array, shape (n,)
        The pattern of gaps of each.
    whiten : array, shape (groups, patterns, k, k)
        W, lower triangular, with W'W = P_uu⁻¹.
    unit : array, shape (groups, n), or 1
        Unit of the distances z, where their squares would leave float64.
    white : array, shape (groups, n, k)
        W g in this unit.
    whole : array, shape (groups, n)
        z'Pz in the square of this unit.
    """

    rows: np.ndarray
    gone: np.ndarray
    kind: np.ndarray
    whiten: np.ndarray
    unit: Any
    white: np.ndarray
    whole: np.ndarray

    @property
    def square(self) -> np.ndarray:
        """δ² in the square of the unit, (groups, n)."""
        return (self.whole - np.einsum("gnk,gnk->gn", self.white, self.white)).clip(0)

    @classmethod
    def of(cls, x, mean, precision) -> "Iterator[Eliminated]":
        """Yield rows (n, D), NaN where missing, some that lack as many entries at a time."""
        kinds, order, bounds = grouped_patterns(~np.isnan(x))
        lost, kind_of = (~kinds).sum(1), np.repeat(np.arange(len(kinds)), np.diff(bounds))
        for k in np.unique(lost):
            alike = np.flatnonzero(lost[kind_of] == k)
            step = max(1, CELLS // (len(mean) * max(x.shape[1], k * k)))
            for first in range(0, len(alike), step):
                chosen = alike[first : first + step]
                numbers, kind = np.unique(kind_of[chosen], return_inverse=True)
                columns, rows = np.nonzero(~kinds[numbers])[1].reshape(len(numbers), k), order[chosen]
                z, unit = x[rows] - mean[:, None], 1.0
                np.copyto(z, 0.0, where=np.isnan(z))
                if not (np.abs(z) < _SQUARED).all():
                    unit = np.abs(z).max(-1, initial=1.0)
                    z /= unit[..., None]
                with blas_threads(x.shape[1]):
                    turned = z @ precision
                whiten = _inverse(np.linalg.cholesky(precision[:, columns[:, :, None], columns[:, None]]))
                slopes = turned[:, np.arange(len(rows))[:, None], columns[kind]]
                white = np.einsum("gnij,gnj->gni", whiten[:, kind], slopes)
                whole = np.einsum("gnd,gnd->gn", z, turned)
                yield cls(rows, columns[kind], kind, whiten, unit, white, whole)


def log_density_with_gaps(x, mean, scale, dof) -> np.ndarray:
    """Return the log density of rows (n, D), NaN where missing, under every group, (groups, n)."""
    missing, dim, result = np.isnan(x), x.shape[1], np.empty((len(mean), len(x)))
    kinds, order, bounds = grouped_patterns(~missing)
    if _ROW * len(x) < dim * dim * (len(kinds) - 1):
        places = np.flatnonzero(~_write_eliminated(result, x, mean, scale, dof))
        if not len(places):
            return result
        kinds, order, bounds = grouped_patterns(~missing[places])
        order = places[order]
    rows = x.take(order, 0)
    np.copyto(rows, 0.0, where=missing.take(order, 0))
    density = np.empty((len(mean), len(order)))
    for these in pieces(len(kinds), mean.size * dim):
        ends = bounds[these.start : these.stop + 1]
        run, whitener = slice(ends[0], ends[-1]), Whitener.of_patterns(kinds[these], scale, dof)
        write_log_density(density[:, run], rows[run], mean, whitener, ends - ends[0])
    for k in range(len(density)):
        result[k, order] = density[k]
    return result


@np.errstate(over="ignore", invalid="ignore")
def _write_eliminated(result, x, mean, scale, dof) -> np.ndarray:
    """Write the log density of rows that lack at most half of their entries, and return True for those not far out."""
    few, near = np.flatnonzero(2 * np.isnan(x).sum(1) <= x.shape[1]), np.zeros(len(x), bool)
    inverse = _inverse(np.linalg.cholesky(scale))
    log_root = -np.log(inverse.diagonal(axis1=1, axis2=2)).sum(1)
    for lack in Eliminated.of(x[few], mean, inverse.mT @ inverse):
        rows, seen = few[lack.rows], x.shape[1] - lack.gone.shape[1]
        log_det = log_root[:, None] - np.log(lack.whiten.diagonal(axis1=2, axis2=3)).sum(2)[:, lack.kind]
        level = log_gamma_ratio(dof / 2, seen / 2) - 0.5 * seen * np.log(np.pi * dof)
        half, square = (dof + seen) / 2, lack.square * lack.unit**2
        result[:, rows] = level[:, None] - log_det - half[:, None] * np.log1p(square / dof[:, None])
        near[rows] = ((1 + seen / dof)[:, None] * lack.whole * lack.unit**2 < _NEAR).all(0)
    return near


def tail_with_gaps(x, mean, scale, dof) -> np.ndarray:
    """Return P(p(new) <= p(row)) for a new row with the gaps of each row (n, D), NaN where missing, shape (groups, n).

    With δ² = (x - m)' S⁻¹ (x - m) over the d observed entries, δ²/d ~ F(d, dof); 1 if none is observed.
    """
    result = np.ones((len(mean), len(x)))
    for seen, rows in patterns(~np.isnan(x)):
        if len(seen):
            observed = np.isin(np.arange(x.shape[1]), seen)
            matrix = Whitener.of_patterns(observed[None], scale, dof).matrix[0][:, *np.ix_(seen, seen)]
            z = matrix @ (x[np.ix_(rows, seen)] - mean[:, None, seen]).mT
            with np.errstate(over="ignore"):
                square = (z * z).sum(1)
            result[:, rows] = student_tail(square, len(seen), dof[:, None])
    return result


def conditional_student(x, mean, scale, dof):
    """Return the Student-t of each missing entry of rows (n, D), given the observed entries of its row.

    It takes means (..., D), scale matrices (..., D, D), which are covariances where ``dof`` (...) is infinite, and
    returns centre and scale (..., n, D), NaN where an entry is observed, and degrees of freedom (..., n, 1).
    """
    lead, dim = mean.shape[:-1], x.shape[1]
    mean, dof = mean.reshape(-1, dim), np.broadcast_to(dof, lead).reshape(-1, 1)
    inverse = _inverse(np.linalg.cholesky(scale.reshape(-1, dim, dim)))
    location, spread = np.full((2, len(mean), *x.shape), np.nan)
    freedom = dof + (~np.isnan(x)).sum(1)
    for lack in Eliminated.of(x, mean, inverse.mT @ inverse):
        places = slice(None), lack.rows[:, None], lack.gone
        moved = np.einsum("gnji,gnj->gni", lack.whiten[:, lack.kind], lack.white)
        location[places] = mean[:, lack.gone] - np.expand_dims(lack.unit, -1) * moved
        factor = _widening(lack.unit * np.sqrt(lack.square), dof, freedom[:, lack.rows])
        spread[places] = np.sqrt((lack.whiten**2).sum(-2))[:, lack.kind] * factor[..., None]
    return location.reshape(*lead, *x.shape), spread.reshape(*lead, *x.shape), freedom.reshape(*lead, -1, 1)


def _widening(distance, dof, freedom):
    """Return √((ν + δ²)/(ν + d)) from δ, ν and ν + d, and 1 where ν is infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(dof), 1.0, np.hypot(np.sqrt(dof), distance) / np.sqrt(freedom))


def complete(away, seen, precision) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Write into rows of mean 0 the conditional means of their missing entries, -C P_mo x_o.

    Parameters
    ----------
    away, seen : array, shape (n, D)
        Rows, 0 where missing; True where not missing.
    precision : array, shape (D, D)
        P.

    Yields
    ------
    rows, columns, covariance : array, shape (m,), (m, k), (m, k, k)
        The rows that lack k entries, the columns of these, and their conditional covariances C.
    """
    lost = (~seen).sum(1)
    for k in np.unique(lost[lost > 0]):
        rows = np.flatnonzero(lost == k)
        columns = np.nonzero(~seen[rows])[1].reshape(-1, k)
        covariance = np.linalg.inv(precision[columns[:, :, None], columns[:, None]])
        pull = np.take_along_axis(away[rows] @ precision, columns, 1)
        away[rows[:, None], columns] = -(covariance @ pull[:, :, None])[:, :, 0]
        yield rows, columns, covariance


def fill_student(x, group, mean, scale, dof, rng) -> np.ndarray:
    """Draw the missing entries of rows (n, D), each a Student-t or Gaussian vector, given the observed ones.

    Row i has the distribution ``group[i]`` of G, with means (G, D), scale matrices (G, D, D), which are covariances
    where degrees of freedom (G,) are infinite.
    """
    result, missing, dof = x.copy(), np.isnan(x), np.broadcast_to(dof, len(mean))[group]
    noise, chance, freedom = np.empty_like(x), np.ones(len(x)), dof + (~missing).sum(1)
    for _, rows in patterns(~missing):
        noise[rows] = rng.standard_normal((len(rows), x.shape[1]))
        if not np.isinf(dof[rows]).all():
            chance[rows] = rng.chisquare(freedom[rows])
    z = np.where(missing, 0.0, x - mean[group])
    unit = np.abs(z).max(1, initial=1.0)
    z /= unit[:, None]
    used, place = np.unique(group, return_inverse=True)
    root = np.linalg.cholesky(scale[used])
    inverse = _inverse(root)
    precision, turned = inverse.mT @ inverse, np.empty((*x.shape, 2))
    for g, rows in enumerate(np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])):
        noise[rows] = noise[rows] @ root[g].T
        turned[rows, :, 0], turned[rows, :, 1] = z[rows] @ precision[g], noise[rows] @ precision[g]
    lost, whole = missing.sum(1), np.einsum("nd,nd->n", z, turned[..., 0])
    with np.errstate(invalid="ignore"):
        factor = np.where(np.isinf(dof), 1.0, np.sqrt(freedom / chance))
    for k in np.unique(lost[lost > 0]):
        alike = np.flatnonzero(lost == k)
        for piece in pieces(len(alike), k * k):
            rows = alike[piece]
            gone = np.nonzero(missing[rows])[1].reshape(-1, k)
            slopes, moved = turned[rows[:, None], gone], np.stack([z[rows], noise[rows]], axis=2)
            if k < x.shape[1]:
                block = precision[place[rows][:, None, None], gone[:, :, None], gone[:, None]]
                moved = np.linalg.solve(block, slopes)
            square = whole[rows] - (slopes[..., 0] * moved[..., 0]).sum(1)
            spread = factor[rows] * _widening(unit[rows] * np.sqrt(square.clip(0)), dof[rows], freedom[rows])
            moved = spread[:, None] * moved[..., 1] - unit[rows][:, None] * moved[..., 0]
            result[rows[:, None], gone] = mean[group[rows][:, None], gone] + moved
    return result
