r"""Predictive densities of complete rows under many Gaussian groups at once, by matrix products.

The density of a group is level - power log(1 + q(y)), where q(y) = |W (y - m)|² is a polynomial of second degree: its
coefficients times the products y_i y_j, the entries y_j, and 1. So rows under all members and groups are one product of
the coefficients with these 1 + D + D(D + 1)/2 monomials, where whitening takes D² multiplications, and several passes
over D entries, for each group. With P = W'W the terms that cancel are at most ‖P‖ (|y| + |m|)², and the density errs by
their rounding times power.

Where the columns of a group are independent, and its powers the same, the density is level - power log Π_j (1 + q_j),
where q_j = w_j² (y_j - m_j)² has the three monomials 1, y_j, y_j². It errs by rounding of at most max_j w_j² (|y| +
|m|)², times power.

Members for which this could exceed `_ERROR`, within `RADIUS` standard deviations a column, are left to their models,
and so are rows beyond.
"""

from typing import NamedTuple

import numpy as np

from bayesgen.models.gaussian import NormalInverseGamma
from bayesgen.numerics.pieces import pieces, scratch
from bayesgen.numerics.student import Whitener

RADIUS = 3.0  # times the root of the columns: length of the longest row, in standardised columns
_ERROR = 4e-12  # of a log density; a probability moves by a quarter of it at most
_BYTES = 10**7  # of the coefficients of one fit of members
_WIDE = 64  # columns; with more, whitening takes no longer, see `rotations`
_LARGE = 1000.0  # power from which a logarithm of 1 + q has too few digits
_CELLS = 1 << 17  # entries worked on at a time


class Quadratics(NamedTuple):
    """Densities of groups as functions of the monomials of a row.

    Attributes
    ----------
    coefficients : array, shape (F, monomials)
        Of the F groups that have a covariance matrix.
    factors : array, shape (D, G - F, 3)
        Coefficients of 1, y_j and y_j² in 1 + q_j, of the other groups.
    level, power : array, shape (G, 1)
    small : bool
        True if no power is large: the coefficient of the monomial 1 is then that of 1 + q.
    """

    coefficients: np.ndarray
    factors: np.ndarray
    level: np.ndarray
    power: np.ndarray
    small: bool

    @classmethod
    def of_models(cls, models, columns=None) -> "tuple[np.ndarray, Quadratics | None]":
        """Return the places of the models that can be quadratics, and these, or None if no model can.

        Parameters
        ----------
        models : list of NormalInverseWishart and NormalInverseGamma
            Posteriors of members, of the same number of groups.
        columns : int array, shape (d,), optional
            The columns of which the densities are wanted; by default all.
        """
        if not models or not 0 < models[0].mean.shape[-1] <= _WIDE:
            return np.empty(0, np.intp), None
        alone = np.array([isinstance(model, NormalInverseGamma) for model in models])
        joint, by_column = np.flatnonzero(~alone), np.flatnonzero(alone)
        whitened = _whitened([models[place] for place in joint], columns)
        chosen = [own for own in zip(joint, whitened, strict=True) if _precise(*own[1])]
        apart = [(place, own) for place in by_column if (own := _factors(models[place], columns)) is not None]
        dim = models[0].mean.shape[-1] if columns is None else len(columns)
        groups = sum(len(mean) for _, (mean, _) in chosen)
        if 4 * groups * (dim + 1) * (dim + 2) > _BYTES:
            chosen = []
        if not chosen and not apart:
            return np.empty(0, np.intp), None
        coefficients, level, power = _polynomials(dim, [own for _, own in chosen])
        small = bool((power < _LARGE).all())
        coefficients[:, 0] += small
        factors = [np.empty((dim, 0, 3)), *(own[0] for _, own in apart)]
        level, power = (
            np.concatenate([first, *(own[i] for _, own in apart)])[:, None] for i, first in ((1, level), (2, power))
        )
        own = np.array([place for place, _ in (*chosen, *apart)], np.intp)
        return own, cls(coefficients, np.concatenate(factors, axis=1), level, power, small)

    def log_density(self, y) -> np.ndarray:
        """Return the log density of rows (n, D), (G, n)."""
        result = np.empty((len(self.power), len(y)))
        dim, (joint, count) = y.shape[1], self.coefficients.shape
        for part in pieces(len(y), joint + count + self.factors[..., 0].size, _CELLS):
            monomials = _monomials(y[part].T)
            own = scratch("quadratic", (len(result), monomials.shape[1]))
            np.matmul(self.coefficients, monomials, out=own[:joint])
            if joint and not self.small:
                np.log1p(own[:joint], out=own[:joint])
            if self.factors.size:
                columns = monomials[1 : dim + 1]
                powers = np.stack([np.ones_like(columns), columns, columns * columns], axis=1)
                each = scratch("factors", (*self.factors.shape[:2], len(monomials[0])))
                np.multiply.reduce(np.matmul(self.factors, powers, out=each), axis=0, out=own[joint:])
            logs = own if self.small else own[joint:]
            np.log(logs, out=logs)
            own *= self.power
            np.subtract(self.level, own, out=result[:, part])
        return result


def _monomials(columns) -> np.ndarray:
    """Return 1, the columns (D, n), and their products y_i y_j, i <= j, (monomials, n)."""
    dim, count = columns.shape
    result = scratch("monomials", (1 + dim + dim * (dim + 1) // 2, count))
    result[0], result[1 : 1 + dim] = 1.0, columns
    own, start = result[1 : 1 + dim], 1 + dim
    for i in range(dim):
        np.multiply(own[i], own[i:], out=result[start : start + dim - i])
        start += dim - i
    return result


def within(y) -> np.ndarray:
    """Return True for each row (n, D) that is complete and not far out, for which `Quadratics` are exact."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (y * y).sum(1) <= RADIUS**2 * y.shape[1]


def _polynomials(dim: int, whitened):
    """Return coefficients of the monomials in q, levels and powers of the groups of whitened models."""
    if not whitened:
        return np.empty((0, 1 + dim + dim * (dim + 1) // 2)), np.empty(0), np.empty(0)
    mean = np.concatenate([mean for mean, _ in whitened])
    matrix, level, power = (np.concatenate(own) for own in zip(*(own for _, own in whitened), strict=True))
    precision = matrix.mT @ matrix
    linear = (precision @ mean[..., None])[..., 0]
    i, j = np.triu_indices(dim)
    pairs = precision[:, i, j] * np.where(i == j, 1.0, 2.0)
    return np.hstack([(linear * mean).sum(1)[:, None], -2 * linear, pairs]), level, power


def _factors(model, columns):
    """Return factors (d, G, 3), levels and powers of the groups of a model, or None where these would lose digits."""
    own = model if columns is None else model.marginal(columns)
    mean, width, level, power = own.columns_alike()
    square = width * width
    if power is None or (power >= _LARGE).any() or not _exact(square.max(1), mean, power):
        return None
    factors = np.stack([1 + square * mean * mean, -2 * square * mean, square], axis=2)
    return factors.swapaxes(0, 1), level, power


def _whitened(models, columns) -> list[tuple[np.ndarray, Whitener]]:
    """Return the means (G, d) and the whitener of the groups of each model, for all columns or some."""
    if columns is None or not models:
        return [(model._means, model._whole) for model in models]
    mean, scale, dof = (np.stack(own) for own in zip(*(model._flat for model in models), strict=True))
    root = np.linalg.cholesky(scale[..., columns[:, None], columns])
    whitener = zip(*Whitener.of(root, dof, dof, len(columns)), strict=True)
    return [(m[:, columns], Whitener(*own)) for m, own in zip(mean, whitener, strict=True)]


def _precise(mean, whitener) -> bool:
    """Return True if the densities of groups keep their digits as `Quadratics`."""
    return _exact(np.sqrt(((whitener.matrix.mT @ whitener.matrix) ** 2).sum((1, 2))), mean, whitener.power)


def _exact(norm, mean, power) -> bool:
    """Return True if groups of some norm ‖P‖, mean and power keep their digits within `RADIUS`."""
    longest = RADIUS * mean.shape[1] ** 0.5 + np.sqrt((mean * mean).sum(1))
    return bool((np.finfo(float).eps * power * norm * longest**2 < _ERROR).all())
