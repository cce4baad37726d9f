r"""Predictive densities of complete rows under many Gaussian groups at once, as one matrix product.

The density of a group is level - power log(1 + q(y)), where q(y) = |W (y - m)|² is a polynomial of second degree: its
coefficients times the products y_i y_j, the entries y_j, and 1. So rows under all members and groups are one product of
the coefficients with these 1 + D + D(D + 1)/2 monomials, where whitening takes D² multiplications, and several passes
over D entries, for each group. With P = W'W the terms that cancel are at most ‖P‖ (|y| + |m|)², and the density errs by
their rounding times power. Members for which this could exceed `_ERROR`, within `RADIUS` standard deviations a column,
are left to their models, and so are rows beyond.
"""

from typing import NamedTuple

import numpy as np

from bayesgen.numerics.pieces import pieces, scratch
from bayesgen.numerics.student import Whitener

RADIUS = 3.0  # times the root of the columns: length of the longest row, in standardised columns
_ERROR = 4e-12  # of a log density; a probability moves by a quarter of it at most
_BYTES = 10**7  # of the coefficients of one fit of members
_WIDE = 64  # columns; with more, whitening takes no longer
_LARGE = 1000.0  # power from which a logarithm of 1 + q has too few digits
_CELLS = 1 << 17  # entries worked on at a time


class Quadratics(NamedTuple):
    """Densities of groups as functions of the monomials of a row.

    Attributes
    ----------
    coefficients : array, shape (groups, monomials)
    level, power : array, shape (groups, 1)
    small : bool
        True if no power is large: the coefficient of the monomial 1 is then that of 1 + q.
    """

    coefficients: np.ndarray
    level: np.ndarray
    power: np.ndarray
    small: bool

    @classmethod
    def of_models(cls, places, models, columns=None) -> "tuple[np.ndarray, Quadratics | None]":
        """Return the places of the members that can be quadratics, and these.

        Parameters
        ----------
        places : list of int
            Where the members belong.
        models : list of NormalInverseWishart
            Their posteriors, of G groups each.
        columns : int array, shape (d,), optional
            The columns of which the densities are wanted; by default all.
        """
        dim = models[0].mean.shape[-1] if models else 0
        whitened = _whitened(models, columns) if 0 < dim <= _WIDE else ()
        chosen = [own for own in zip(places, whitened, strict=False) if _precise(*own[1])]
        none = np.empty(0, np.intp), None
        if not chosen:
            return none
        mean = np.concatenate([mean for _, (mean, _) in chosen])
        matrix, level, power = (np.concatenate(own) for own in zip(*(own for _, (_, own) in chosen), strict=True))
        dim = mean.shape[1]
        if 4 * len(mean) * (dim + 1) * (dim + 2) > _BYTES:
            return none
        precision = matrix.mT @ matrix
        linear = (precision @ mean[..., None])[..., 0]
        i, j = np.triu_indices(dim)
        small = bool((power < _LARGE).all())
        constant = (linear * mean).sum(1) + small
        pairs = precision[:, i, j] * np.where(i == j, 1.0, 2.0)
        coefficients = np.hstack([constant[:, None], -2 * linear, pairs])
        return np.array([place for place, _ in chosen]), cls(coefficients, level[:, None], power[:, None], small)

    def log_density(self, y) -> np.ndarray:
        """Return the log density of rows (n, D), (groups, n)."""
        result = np.empty((len(self.power), len(y)))
        for part in pieces(len(y), sum(self.coefficients.shape), _CELLS):
            monomials = _monomials(y[part].T)
            own = np.matmul(self.coefficients, monomials, out=scratch("quadratic", (len(result), monomials.shape[1])))
            np.log(own, out=own) if self.small else np.log1p(own, out=own)
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


def _whitened(models, columns) -> list[tuple[np.ndarray, Whitener]]:
    """Return the means (G, d) and the whitener of the groups of each model, for all columns or some."""
    if columns is None:
        return [(model._means, model._whole) for model in models]
    mean, scale, dof = (np.stack(own) for own in zip(*(model._flat for model in models), strict=True))
    root = np.linalg.cholesky(scale[..., columns[:, None], columns])
    whitener = zip(*Whitener.of(root, dof, dof, len(columns)), strict=True)
    return [(m[:, columns], Whitener(*own)) for m, own in zip(mean, whitener, strict=True)]


def _precise(mean, whitener) -> bool:
    """Return True if the densities of groups keep their digits as `Quadratics`."""
    norm = np.sqrt(((whitener.matrix.mT @ whitener.matrix) ** 2).sum((1, 2)))
    longest = RADIUS * mean.shape[1] ** 0.5 + np.sqrt((mean * mean).sum(1))
    return bool((np.finfo(float).eps * whitener.power * norm * longest**2 < _ERROR).all())
