r"""Predictive densities of rows under many Gaussian groups at once, by matrix products.

**Marginals**, of rows with gaps: what is missing is eliminated. The density of complete rows is level - power
log(1 + q), q = (x - m)'P(x - m), a polynomial (`bayesgen.numerics.monomials`). A row that lacks the columns m has the
marginal density, with half an exponent less for each of them, and

.. math:: q_o = \min_{x_m} q = q - g^\top P_{mm}^{-1} g, \quad g = (P (x - m))_m, \qquad |P_o| = |P| / |P_{mm}|

whatever stands in x_m, where P_o is the precision of the columns that it has. So a Cholesky factor of the few columns
that a row lacks takes the place of a factor of all that it has; its steps are done for all groups at once. Rounding is
that of the terms that cancel. So rows are completed from the pooled covariance V of the groups, and turned into
y = L⁻¹(x - c), V = LL' and c the mean of all rows: with Y = L'PL and the mean μ of a group there, q is
(y - μ)'Y(y - μ), where rows and groups have a length of about √D, and g is (PL(y - μ))_m. Groups whose densities could
err by more than `_ERROR` within `RADIUS` standard deviations a column are left to `students`, and so are rows beyond.
"""

import abc
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from bayesgen.averaging.students import Reference, log_density
from bayesgen.models.leaf import untied
from bayesgen.models.model import revised
from bayesgen.models.normal_inverse_wishart import log_predictive_of
from bayesgen.numerics.monomials import longest, monomials, polynomials
from bayesgen.numerics.pieces import pieces, taken
from bayesgen.numerics.special import log_gamma_ratio
from bayesgen.numerics.student import triangular_inverse
from bayesgen.numerics.student_gaps import complete

RADIUS = 3.0  # times the root of the columns: length of the longest row, in standardised columns
_CELLS = 1 << 19  # entries worked on at a time: smaller products keep two threads waiting for each other
MATRICES = 1 << 18  # entries of matrices that are factorised at a time, that they stay in the cache
FEWEST = 24  # columns; with fewer, models take less time
_ERROR = 1e-10  # bound of the rounding of a log density, which adds all terms without their signs: it errs by 1e-12
_RUN = 8  # pivots that share a logarithm: their product stays within float64


def within(y) -> np.ndarray:
    """Return True for each row (n, D) that is complete and not far out, for which the densities here are exact."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (y * y).sum(1) <= RADIUS**2 * y.shape[1]


def level_of(dof, dim: int) -> np.ndarray:
    """Return the log constant of t densities of some degrees of freedom in ``dim`` columns, without |P|."""
    return log_gamma_ratio(dof / 2, dim / 2) - 0.5 * dim * np.log(np.pi)


def exact(norm, mean, power, error: float) -> bool:
    """Return True if groups of some norm ‖P‖, mean and power err by no more than ``error`` within `RADIUS`."""
    return bool((longest(norm, mean, power, error) > RADIUS * mean.shape[1] ** 0.5).all())


class Engine(abc.ABC):
    """Log densities of bent rows under groups of members, exact to 1e-10 for the rows that it serves."""

    @abc.abstractmethod
    def log_density(self, y, seen) -> tuple[np.ndarray | None, np.ndarray]:
        """Return which rows it serves, (n,), None for all, and the log density of these, by member and group, (P G, s).

        Entries of the rows y (n, D) that are not ``seen`` (n, D) have no part in the answer; None: all are seen.
        """


@dataclass(frozen=True)
class OfModel(Engine):
    """A model of the bent rows: its predictive density."""

    model: Any  # the posteriors of members alike, as one model with an axis of members
    columns: np.ndarray | None = None  # the only columns that the rows have, where it is a marginal model

    def log_density(self, y, seen):
        if self.columns is not None:
            y = y[:, self.columns]
        elif seen is not None:
            y = np.where(seen, y, np.nan)
        return None, log_predictive_of(self.model, y)


@dataclass(frozen=True)
class OfRow(Engine):
    """A factorisation for each row, which serves every kappa; see `bayesgen.averaging.students`."""

    members: list  # those that differ in kappa alone stand side by side
    reference: Reference

    def log_density(self, y, seen):
        groups, dim = self.reference.mean.shape[1:]
        result = np.empty((len(self.members), groups, len(y)))
        for batch in pieces(len(y), groups * (dim + 2) ** 2, MATRICES):
            density = log_density(self.members, self.reference, y[batch], taken(seen, batch))
            result[:, :, batch] = density.swapaxes(1, 2)
        return None, result.reshape(-1, len(y))


@dataclass(frozen=True)
class Marginals(Engine):
    """Densities of rows with gaps under F groups that have a covariance matrix."""

    centre: np.ndarray  # (D,): c
    root: np.ndarray  # (D, D): L⁻¹
    coefficients: np.ndarray  # (F, monomials): of q in the turned rows
    slopes: np.ndarray  # (D, D, F): the rows of PL
    offsets: np.ndarray  # (D, F): -PLμ
    pairs: np.ndarray  # (D (D + 1)/2, F): the upper triangles of P
    half_log_det: np.ndarray  # (F,): ½ log |P|
    dof: np.ndarray  # (F,): degrees of freedom, twice the power less D

    @classmethod
    def of_models(cls, models, reference: Reference) -> "tuple[np.ndarray, Marginals | None]":
        """Return the places of the models whose densities keep their digits, and these, or None if none does.

        The models are `NormalInverseWishart` posteriors of members, of the same groups as the reference of all rows.
        """
        lower, dim = np.linalg.cholesky(reference.covariance[0]), reference.mean.shape[-1]
        root, (i, j), served, found = triangular_inverse(lower), np.triu_indices(dim), [], []
        for place, model in enumerate(models):
            matrix, level, power = model.whitener
            turned, mean = matrix @ lower, (model.density().flat[0] - reference.centre[0]) @ root.T
            Y, dof = turned.mT @ turned, 2 * power - dim
            if exact(np.sqrt((Y**2).sum((1, 2))), mean, power, _ERROR):
                slopes, pairs, half = matrix.mT @ turned, (matrix.mT @ matrix)[:, i, j].T, level - level_of(dof, dim)
                offsets, coefficients = -(slopes @ mean[..., None])[..., 0].T, polynomials(mean, Y.transpose(1, 2, 0))
                served.append(place)
                found.append((coefficients.T, slopes.transpose(1, 2, 0), offsets, pairs, half, dof))
        if not found:
            return np.empty(0, np.intp), None
        coefficients, *others = (np.concatenate(arrays, axis=-1) for arrays in zip(*found, strict=True))
        return np.array(served), cls(reference.centre[0], root, np.ascontiguousarray(coefficients.T), *others)

    def log_density(self, y, seen):
        """Serve rows that are near and lack up to half of their columns: of others it costs less to factorise all."""
        served = (~seen).sum(1) <= y.shape[1] // 2 + 3
        y, gone = np.where(seen, y - self.centre, 0.0)[served], ~seen[served]
        for _ in complete(y, ~gone, self.root.T @ self.root):  # from V
            pass
        y = y @ self.root.T
        near = within(y)
        served[served], y, gone = near, y[near], gone[near]
        lost = gone.sum(1)
        order, (groups, width) = np.argsort(lost, kind="stable"), self.coefficients.shape
        result = np.empty((len(y), groups))  # rows first, as `take` brings their pivots: passes over both keep step
        cells = np.cumsum(groups * (lost[order] + 2) * (lost[order] + 3) // 2 + width) // _CELLS
        for rows in np.split(order, np.flatnonzero(np.diff(cells)) + 1) if len(y) else ():
            result[rows] = self._of_sorted(y[rows], gone[rows], lost[rows])
        return served, result.T

    def _of_sorted(self, y, gone, lost) -> np.ndarray:
        """Return the log density of rows, those that lack fewer entries first, (n, F)."""
        q = monomials(y.T).T @ self.coefficients.T
        (row, column), start = np.nonzero(gone), 0
        slopes, order = np.empty((len(row), q.shape[1])), np.argsort(column, kind="stable")
        for entries in np.split(order, np.flatnonzero(np.diff(column[order])) + 1):
            slopes[entries] = y[row[entries]] @ self.slopes[column[entries[0]]] + self.offsets[column[entries[0]]]
        for k in np.unique(lost):
            rows = slice(*np.searchsorted(lost, (k, k + 1)))
            count, entries = rows.stop - rows.start, slice(start, start + k * (rows.stop - rows.start))
            values, start = q[rows], entries.stop
            log_det = self._eliminate(
                values, column[entries].reshape(count, k).T, slopes[entries].reshape(count, k, q.shape[1])
            )
            width = y.shape[1] - k
            np.log1p(values, out=values)
            values *= -(self.dof + width) / 2
            values += self.half_log_det + level_of(self.dof, width)
            log_det *= 0.5
            values -= log_det
        return q

    def _eliminate(self, q, m, slopes) -> np.ndarray:
        """Subtract from the q of rows what their missing entries m (k, n) add, and return log |P_mm|, (n, F)."""
        k, dim = len(m), len(self.centre)
        first, steps = m * (2 * dim - 1 - m) // 2, []  # the place of (m, 0) among the pairs
        for a in range(k):
            step = np.empty((k - a + 1, *q.shape))
            np.take(self.pairs, first[a] + m[a:], axis=0, out=step[:-1], mode="clip")
            step[-1] = slopes[:, a]
            steps.append(step)
        log_det: Any = 0.0
        for a, (pivot, *others) in enumerate(steps):
            for b, entry in enumerate(others[:-1], a + 1):
                steps[b] -= entry / pivot * steps[a][b - a :]
            q -= others[-1] / pivot * others[-1]
            if a % _RUN:
                pivot *= steps[a - 1][0]  # which is the product of the pivots of the run so far
            if a % _RUN == _RUN - 1 or a == k - 1:
                log_det = log_det + np.log(pivot, out=pivot)
        return log_det


def stacked(models):
    """Return models of one kind as one model with a leading axis of models; a single one as it is."""
    if len(models) == 1:
        return models[0]
    names = [field.name for field in fields(models[0]) if "rank" in field.metadata]
    each = ((name, np.broadcast_arrays(*(getattr(model, name) for model in models))) for name in names)
    return revised(untied(models[0]), **{name: np.stack(arrays) for name, arrays in each})
