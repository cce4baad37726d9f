r"""Predictive densities of complete rows under many Gaussian groups at once, by matrix products.

The density of a group is level - power log(1 + q(y)), where q(y) = |W (y - m)|² is a polynomial of second degree, and P
= W'W: see `bayesgen.numerics.monomials`.

Where the columns of a group are independent, and its powers the same, the density is level - power log Π_j (1 + q_j),
where q_j = w_j² (y_j - m_j)² has the three monomials 1, y_j, y_j². It errs by rounding of at most max_j w_j² (|y| +
|m|)², times power. Since that is less than `ERROR`, Σ_j q_j is below c = `ERROR`/eps, and the product below
(1 + c/D)^D: 1e226 for the hundred columns that views have at most.

Members for which this could exceed `ERROR`, within `RADIUS` standard deviations a column, are left to their models,
and so are rows beyond.
"""

from typing import NamedTuple

import numpy as np

from bayesgen.models.gaussian import NormalInverseGamma
from bayesgen.numerics.monomials import ERROR, SMALL, longest, monomials, polynomials
from bayesgen.numerics.pieces import pieces, scratch
from bayesgen.numerics.special import log_gamma_ratio

RADIUS = 3.0  # times the root of the columns: length of the longest row, in standardised columns
_BYTES = 10**7  # of the coefficients of one fit of members
WIDEST = 64  # columns of groups with a covariance matrix; with more, whitening takes no longer, see `rotations`
_CELLS = 1 << 19  # entries worked on at a time: smaller products keep two threads waiting for each other


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
    mean, precision : array, shapes (F, D) and (D, D, F)
        m and P of the groups that have a covariance matrix.
    half_log_det : array, shape (F,)
        ½ log |P|.
    by_column : array, shape (G - F, D)
        The part of each column in the level of the other groups.
    """

    coefficients: np.ndarray
    factors: np.ndarray
    level: np.ndarray
    power: np.ndarray
    small: bool
    mean: np.ndarray
    precision: np.ndarray
    half_log_det: np.ndarray
    by_column: np.ndarray

    @classmethod
    def of_models(cls, models) -> "tuple[np.ndarray, Quadratics | None]":
        """Return the places of the models that can be quadratics, and these, or None if no model can.

        Parameters
        ----------
        models : list of NormalInverseWishart and NormalInverseGamma
            Posteriors of members, of the same number of groups.
        """
        if not models or not models[0].mean.shape[-1]:
            return np.empty(0, np.intp), None
        alone = np.array([isinstance(model, NormalInverseGamma) for model in models])
        dim = models[0].mean.shape[-1]
        joint, by_column = np.flatnonzero(~alone & (dim <= WIDEST)), np.flatnonzero(alone)
        whitened = [(models[place]._means, models[place]._whole) for place in joint]
        chosen = [own for own in zip(joint, whitened, strict=True) if _precise(*own[1])]
        apart = [(place, own) for place in by_column if (own := _factors(models[place])) is not None]
        groups = sum(len(mean) for _, (mean, _) in chosen)
        if 4 * groups * (dim + 1) * (dim + 2) > _BYTES:
            chosen = []
        if not chosen and not apart:
            return np.empty(0, np.intp), None
        mean, precision = np.empty((0, dim)), np.empty((dim, dim, 0))
        level, power = np.empty(0), np.empty(0)
        if chosen:
            mean = np.concatenate([mean for _, (mean, _) in chosen])
            parts = zip(*(own for _, (_, own) in chosen), strict=True)
            matrix, level, power = (np.concatenate(own) for own in parts)
            precision = np.ascontiguousarray((matrix.mT @ matrix).transpose(1, 2, 0))
        half = level - level_of(2 * power - dim, dim)
        factors = np.concatenate([np.empty((dim, 0, 3)), *(own[0] for _, own in apart)], axis=1)
        by_column = np.concatenate([np.empty((0, dim)), *(own[1] for _, own in apart)])
        power = np.concatenate([power, *(own[2] for _, own in apart)])[:, None]
        own = np.array([place for place, _ in (*chosen, *apart)], np.intp)
        return own, cls._of(mean, precision, half, level, factors, by_column, power)

    @classmethod
    def _of(cls, mean, precision, half, level, factors, by_column, power) -> "Quadratics":
        """Return the quadratics of groups with matrices, of some levels, and of groups without."""
        coefficients = polynomials(mean, precision)
        small = bool((power[: len(mean)] < SMALL).all())
        coefficients[:, 0] += small
        level = np.concatenate([level, by_column.sum(1)])[:, None]
        return cls(coefficients, factors, level, power, small, mean, precision, half, by_column)

    def marginal(self, columns) -> "Quadratics":
        """Return the densities of some columns (d,), the others integrated out.

        A column m leaves P by P - p p'/P_mm, p its column of P, and |P| by P_mm: a step of elimination, whose rounding
        is below that of ‖P‖, the bound that the groups were chosen by.
        """
        dim, count = self.mean.shape[1], len(self.mean)
        precision, half = self.precision.copy(), self.half_log_det.copy()
        for place in np.setdiff1d(np.arange(dim), columns):
            own = precision[place] / precision[place, place]
            half -= 0.5 * np.log(precision[place, place])
            precision -= precision[:, place, None] * own
        precision = precision[np.ix_(columns, columns)]
        power = self.power.copy()
        power[:count] -= (dim - len(columns)) / 2
        level = half + level_of(self._dof, len(columns))
        return self._of(
            self.mean[:, columns], precision, half, level, self.factors[columns], self.by_column[:, columns], power
        )

    @property
    def _dof(self) -> np.ndarray:
        """Degrees of freedom of the groups that have a covariance matrix, (F,)."""
        return 2 * self.power[: len(self.mean), 0] - self.mean.shape[1]

    def near(self, y, seen) -> tuple[np.ndarray, np.ndarray]:
        """Return rows (n, D), 0 where not ``seen``, and True for those that `log_density` takes."""
        return y, within(y)

    def log_density(self, y, seen=None) -> np.ndarray:
        """Return the log density of rows (n, D), (G, n).

        Rows may be 0 where they are not ``seen``, if no group has a covariance matrix.
        """
        result = np.empty((len(self.power), len(y)))
        joint, count = self.coefficients.shape
        for part in pieces(len(y), joint + count * (joint > 0) + self.factors[..., 0].size, _CELLS):
            columns = y[part].T
            own = scratch("quadratic", (len(result), columns.shape[1]))
            if joint:
                np.matmul(self.coefficients, monomials(columns), out=own[:joint])
                if not self.small:
                    np.log1p(own[:joint], out=own[:joint])
            if self.factors.size:
                powers = scratch("powers", (len(columns), 3, columns.shape[1]))
                powers[:, 0], powers[:, 1] = 1.0, columns
                np.multiply(columns, columns, out=powers[:, 2])
                each = scratch("factors", (*self.factors.shape[:2], columns.shape[1]))
                np.matmul(self.factors, powers, out=each)
                if seen is not None:
                    np.copyto(each, 1.0, where=~seen[part].T[:, None])
                np.multiply.reduce(each, axis=0, out=own[joint:])
            logs = own if self.small else own[joint:]
            np.log(logs, out=logs)
            own *= self.power
            np.subtract(self.level, own, out=result[:, part])
            if seen is not None:
                result[joint:, part] -= self.by_column @ ~seen[part].T
        return result


def within(y) -> np.ndarray:
    """Return True for each row (n, D) that is complete and not far out, for which `Quadratics` are exact."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (y * y).sum(1) <= RADIUS**2 * y.shape[1]


def level_of(dof, dim: int) -> np.ndarray:
    """Return the log constant of t densities of some degrees of freedom in ``dim`` columns, without |P|."""
    return log_gamma_ratio(dof / 2, dim / 2) - 0.5 * dim * np.log(np.pi)


def _factors(model):
    """Return factors (D, G, 3), levels (G, D) and powers of a model's groups; None where these would lose digits."""
    mean, width, level, power = model.columns_alike()
    square = width * width
    if power is None or (power >= SMALL).any() or not exact(square.max(1), mean, power):
        return None
    factors = np.stack([1 + square * mean * mean, -2 * square * mean, square], axis=2)
    return factors.swapaxes(0, 1), level, power


def _precise(mean, whitener) -> bool:
    """Return True if the densities of groups keep their digits as `Quadratics`."""
    return exact(np.sqrt(((whitener.matrix.mT @ whitener.matrix) ** 2).sum((1, 2))), mean, whitener.power)


def exact(norm, mean, power, error: float = ERROR) -> bool:
    """Return True if groups of some norm ‖P‖, mean and power err by no more than ``error`` within `RADIUS`."""
    return bool((longest(norm, mean, power, error) > RADIUS * mean.shape[1] ** 0.5).all())
