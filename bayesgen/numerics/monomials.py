r"""Student-t densities of complete rows under many groups at once, by one product with the monomials of a row.

The log density of a group is level - power log(1 + q(y)), where q(y) = |W (y - m)|² is a polynomial of second degree:
its coefficients times the products y_i y_j, the entries y_j, and 1. So rows under all groups are one product of the
coefficients with these 1 + D + D(D + 1)/2 monomials, where whitening takes D² multiplications, and several passes over
D entries, for each group. With P = W'W the terms that cancel are at most ‖P‖ (|y| + |m|)², and the density errs by
their rounding times power. Rows whose density could err by more than `ERROR` are left to whitening.
"""

from typing import Any, NamedTuple

import numpy as np

from bayesgen.numerics.pieces import as_columns, one_blas_thread, pieces, scratch
from bayesgen.numerics.student import Whitener, write_log_density

ERROR = 4e-12  # of a log density; a probability moves by a quarter of it at most
SMALL = 1000.0  # power from which a logarithm of 1 + q has too few digits
_EPS = np.finfo(float).eps
_NEAR = 6.0  # times the root of the columns: a row farther from its mean, in standard deviations, is rare


def monomials(columns) -> np.ndarray:
    """Return 1, the columns (D, n), and their products y_i y_j, i <= j, (monomials, n)."""
    dim, count = columns.shape
    result = scratch("monomials", (1 + dim + dim * (dim + 1) // 2, count))
    result[0], result[1 : 1 + dim] = 1.0, columns
    entries, start = result[1 : 1 + dim], 1 + dim
    for i in range(dim):
        np.multiply(entries[i], entries[i:], out=result[start : start + dim - i])
        start += dim - i
    return result


def polynomials(mean, precision) -> np.ndarray:
    """Return the coefficients of q = (y - m)'P(y - m) of each group, (G, monomials), from m (G, D), P (D, D, G)."""
    linear = np.einsum("ijf,fj->fi", precision, mean)
    i, j = np.triu_indices(mean.shape[1])
    pairs = precision[i, j].T * np.where(i == j, 1.0, 2.0)
    return np.hstack([(linear * mean).sum(1)[:, None], -2 * linear, pairs])


def longest(norm, mean, power, error: float = ERROR) -> np.ndarray:
    """Return the length of a row up to which each group of some ‖P‖, mean and power errs by no more than ``error``."""
    return np.sqrt(error / (_EPS * power * norm)) - np.sqrt((mean * mean).sum(1))


class Quadratic(NamedTuple):
    """Constants of the densities of groups in y = root (x - centre), where rows have a variance of about 1."""

    centre: np.ndarray  # (D,)
    root: np.ndarray  # (D, D)
    coefficients: np.ndarray  # (G, monomials): of 1 + q if ``small``, else of q
    level: np.ndarray  # (G, 1)
    power: np.ndarray  # (G, 1)
    small: bool  # True if no power is large
    longest: float  # the length up to which rows are near enough

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, mean, whitener: Whitener) -> "Quadratic | None":
        """Return the constants for means (G, D); None where whitening is faster, or many rows would be too far."""
        groups, dim = mean.shape
        if 2 * groups < dim:
            return None
        matrix, level, power = whitener
        centre = mean.sum(0) / groups
        root: Any = np.linalg.qr((np.sqrt(power / groups)[:, None, None] * matrix).reshape(-1, dim), mode="r")
        if not (np.isfinite(root).all() and root.diagonal().all()):
            return None
        relative, m = matrix @ np.linalg.inv(root), (mean - centre) @ root.T
        precision = relative.mT @ relative
        reach = longest(np.sqrt((precision**2).sum((1, 2))), m, power).min()
        if not reach > np.sqrt((m * m).sum(1)).max() + _NEAR * dim**0.5:
            return None
        coefficients, small = polynomials(m, precision.transpose(1, 2, 0)), bool((power < SMALL).all())
        coefficients[:, 0] += small
        return cls(centre, root, coefficients, level[:, None], power[:, None], small, float(reach))


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def write_quadratic_log_density(result, x, form: Quadratic, mean, whitener: Whitener) -> None:
    """Write the log density of rows (n, D) to ``result`` (G, n); pieces with a row that is too far are whitened."""
    with one_blas_thread():
        for piece in pieces(len(x), sum(form.coefficients.shape), 1 << 17):
            columns = as_columns(x[piece])
            centred = np.subtract(columns, form.centre[:, None], out=scratch("centred", columns.shape))
            y = np.matmul(form.root, centred, out=scratch("whitened", columns.shape))
            if not np.multiply(y, y, out=centred).sum(0).max() < form.longest**2:
                write_log_density(result[:, piece], x[piece], mean, whitener)
                continue
            square = np.matmul(form.coefficients, monomials(y), out=scratch("quadratic", (len(result), y.shape[1])))
            (np.log if form.small else np.log1p)(square, out=square)
            square *= form.power
            np.subtract(form.level, square, out=result[:, piece])
