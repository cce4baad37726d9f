r"""Densities and tails of D-variate Student-t distributions, for several groups at once.

For ν degrees of freedom, centre m and scale matrix S, with ν S = c L L' and W = L⁻¹/√c,

.. math:: \log p(x) = \log \frac{\Gamma((\nu + D)/2)}{\Gamma(\nu/2)} - \frac{D}{2} \log(\pi c) - \log |L|
   - \frac{\nu + D}{2} \log(1 + |W (x - m)|^2)
"""

from typing import NamedTuple

import numpy as np

from bayesgen.numerics.pieces import as_columns, blas_threads, pieces, product_rows, scratch
from bayesgen.numerics.special import log1p_sum_squares, log_gamma_ratio, namespace
from bayesgen.numerics.sums import finite

_MANY = 10_000  # entries of matrices that are inverted by blocks
_APART = 1e5  # half a squared distance of centres in standard deviations: at most 1e-10 of a log density then cancels


def triangular_inverse(lower) -> np.ndarray:
    """Return the inverses of lower triangular matrices (..., D, D), by blocks: exactly triangular again.

    The inverse of [[A, 0], [B, C]] is [[A⁻¹, 0], [-C⁻¹ B A⁻¹, C⁻¹]]. For thousands of matrices of ten columns it takes
    half the time of `numpy.linalg.inv`, which factorises each by itself, and leaves rounding above the diagonal.
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


def inverse_of(lower) -> np.ndarray:
    """Return the inverses of lower triangular matrices (..., D, D), few or many."""
    return np.linalg.inv(lower) if lower.size < _MANY else triangular_inverse(lower)


def seen_root(matrix, seen, unit=1.0):
    """Return the Cholesky factors of the blocks of matrices (..., D, D) that are ``seen`` (..., D). NumPy or JAX.

    Rows and columns of missing entries are those of ``unit`` times the identity: with 1 a matrix has the determinant of
    its block, and the inverse, beside ones.
    """
    xp = namespace(matrix)
    seen = xp.asarray(seen).astype(matrix.dtype)
    apart = (unit * (1 - seen))[..., None] * np.eye(seen.shape[-1])
    return xp.linalg.cholesky(matrix * (seen[..., :, None] * seen[..., None, :]) + apart)


def whitened(matrix, vectors, seen=None) -> tuple[np.ndarray, np.ndarray]:
    """Return log determinants of matrices A = LL' (B, G, D, D), (B, G), and L⁻¹ v of vectors v (B, G, R, D).

    Of entries that are not ``seen`` (B, D) both know nothing: there L⁻¹ v is 0, whatever v is.
    """
    if seen is None:
        root = np.linalg.cholesky(matrix)
    else:
        root, vectors = seen_root(matrix, seen[:, None]), vectors * seen[:, None, None]
    return 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(-1), vectors @ triangular_inverse(root).mT


def add_diagonal(matrix, diagonal):
    """Add to the diagonals of matrices, in place."""
    places = np.arange(matrix.shape[-1])
    matrix[..., places, places] += diagonal


def regression(covariance, seen) -> np.ndarray:
    """Return R that takes what is seen of rows about their means to completed rows, by pattern ``seen`` (..., D).

    R is the identity for what is seen, and B = Σ_mo Σ_oo⁻¹ from it to what is missing, by `seen_root`. The conditional
    covariance of what is missing, Σ_mm - B Σ_om, is that of Σ - R Σ, whose other entries are 0.
    """
    white = inverse_of(seen_root(covariance, seen)) * seen[..., :, None]
    return np.where(seen[..., :, None], np.eye(seen.shape[-1]), covariance @ (white.mT @ white))


class Whitener(NamedTuple):
    """Constants of the log density of rows about their centre m: level - power log(1 + |matrix (x - m)|²)."""

    matrix: np.ndarray  # (..., D, D)
    level: np.ndarray  # (...)
    power: np.ndarray  # (...)

    @classmethod
    def of(cls, root, unit, dof, dim) -> "Whitener":
        """Return the constants for ``dim`` columns, where dof times the scale matrix is unit root root'."""
        level = log_gamma_ratio(dof / 2, dim / 2) - 0.5 * dim * np.log(np.pi * unit)
        log_root = np.log(root.diagonal(axis1=-2, axis2=-1)).sum(-1)
        inverse = inverse_of(root)
        return cls(inverse / np.sqrt(unit)[..., None, None], level - log_root, (dof + dim) / 2)

    @classmethod
    def of_patterns(cls, seen, scale, dof) -> "Whitener":
        """Return constants (P, groups, ...) of patterns ``seen`` (P, D), by `seen_root`; gaps are whitened to 0."""
        seen = seen[:, None]
        matrix, level, power = cls.of(seen_root(scale, seen), dof, dof, seen.sum(-1))
        return cls(matrix * seen[..., None], level, power)


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
    """

    centre: np.ndarray  # (D,)
    matrix: np.ndarray  # (D, D)
    products: np.ndarray  # (groups, D + 2): coefficients of (z, |z|², 1)
    level: np.ndarray  # (groups, 1)
    power: np.ndarray  # (1,)

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
