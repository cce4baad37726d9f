r"""Predictive densities of rows with gaps under many Gaussian groups at once, by elimination of what is missing.

The density of complete rows is level - power log(1 + q), q = (x - m)'P(x - m). A row that lacks the columns m has the
marginal density, with half an exponent less for each of them, and

.. math:: q_o = \min_{x_m} q = q - g^\top P_{mm}^{-1} g, \quad g = (P (x - m))_m, \qquad |P_o| = |P| / |P_{mm}|

whatever stands in x_m, where P_o is the precision of the columns that it has. So a Cholesky factor of the few columns
that a row lacks takes the place of a factor of all that it has; its steps are done for all groups at once.

Rounding is that of the terms that cancel. So rows are completed from the pooled covariance V of the groups, and turned
into y = L⁻¹(x - c), V = LL' and c the mean of all rows: with Y = L'PL and the mean μ of a group there, q is
(y - μ)'Y(y - μ), where rows and groups have a length of about √D, and g is (PL(y - μ))_m. Groups whose densities could
err by more than `_ERROR` within `quadratics.RADIUS` standard deviations a column are left to `students`, and so are
rows beyond.
"""

from typing import Any, NamedTuple

import numpy as np

from bayesgen.averaging.gaps import complete
from bayesgen.averaging.quadratics import exact, level_of, within
from bayesgen.averaging.reference import Reference
from bayesgen.numerics.monomials import monomials, polynomials
from bayesgen.numerics.student import triangular_inverse

_ERROR = 1e-10  # bound of the rounding of a log density, which adds all terms without their signs: it errs by 1e-12
_CELLS = 1 << 19  # entries worked on at a time
_RUN = 8  # pivots that share a logarithm: their product stays within float64


class Marginals(NamedTuple):
    """Densities of rows with gaps under F groups that have a covariance matrix.

    Attributes
    ----------
    centre : array, shape (D,)
        c.
    root : array, shape (D, D)
        L⁻¹.
    coefficients : array, shape (F, monomials)
        Of q in the turned rows.
    slopes : array, shape (D, D, F)
        The rows of PL.
    offsets : array, shape (D, F)
        -PLμ.
    pairs : array, shape (D (D + 1)/2, F)
        The upper triangles of P.
    half_log_det : array, shape (F,)
        ½ log |P|.
    dof : array, shape (F,)
        Degrees of freedom, twice the power less D.
    """

    centre: np.ndarray
    root: np.ndarray
    coefficients: np.ndarray
    slopes: np.ndarray
    offsets: np.ndarray
    pairs: np.ndarray
    half_log_det: np.ndarray
    dof: np.ndarray

    @staticmethod
    def size(groups: int, dim: int) -> int:
        """Return the bytes that one model of so many groups takes."""
        return 16 * groups * dim**2

    @classmethod
    def of_models(cls, models, reference: Reference) -> "tuple[np.ndarray, Marginals | None]":
        """Return the places of the models whose densities keep their digits, and these, or None if none does.

        Parameters
        ----------
        models : list of NormalInverseWishart
            Posteriors of members, of the same groups.
        reference : Reference
            The statistics of the groups with all rows.
        """
        V, (groups, dim) = reference.covariance[0], reference.mean[0].shape
        lower = np.linalg.cholesky(V)
        root, chosen = triangular_inverse(lower), []
        for place, model in enumerate(models):
            matrix, level, power = model._whole
            turned, mean = matrix @ lower, (model._means - reference.centre[0]) @ root.T
            Y = turned.mT @ turned
            if exact(np.sqrt((Y**2).sum((1, 2))), mean, power, _ERROR):
                chosen.append((np.full(groups, place), matrix, turned, Y, mean, level, 2 * power - dim))
        if not chosen:
            return np.empty(0, np.intp), None
        places, matrix, turned, Y, mean, level, dof = (np.concatenate(part) for part in zip(*chosen, strict=True))
        slopes = matrix.mT @ turned
        i, j = np.triu_indices(dim)
        return places[::groups], cls(
            reference.centre[0],
            root,
            polynomials(mean, Y.transpose(1, 2, 0)),
            np.ascontiguousarray(slopes.transpose(1, 2, 0)),
            -(slopes @ mean[..., None])[..., 0].T,
            np.ascontiguousarray((matrix.mT @ matrix)[:, i, j].T),
            level - level_of(dof, dim),
            dof,
        )

    def near(self, x, seen) -> tuple[np.ndarray, np.ndarray]:
        """Return rows (n, D), completed from V where not ``seen`` and turned, and True for those that are near enough.

        Of rows that lack more entries it takes less time to factorise what they have.
        """
        y = np.where(seen, x - self.centre, 0.0)
        few = (~seen).sum(1) <= y.shape[1] // 2 + 3
        own = y[few]
        for _ in complete(own, seen[few], self.root.T @ self.root):
            pass
        y[few] = own
        y = y @ self.root.T
        return y, few & within(y)

    def log_density(self, y, seen) -> np.ndarray:
        """Return the log density of turned rows (n, D) that lack what is not ``seen``, (F, n)."""
        gone = ~seen
        lost = gone.sum(1)
        order, (groups, width) = np.argsort(lost, kind="stable"), self.coefficients.shape
        result = np.empty((len(y), groups))  # rows first, as `take` brings their pivots: passes over both keep step
        cells = np.cumsum(groups * (lost[order] + 2) * (lost[order] + 3) // 2 + width) // _CELLS
        for rows in np.split(order, np.flatnonzero(np.diff(cells)) + 1):
            result[rows] = self._of_sorted(y[rows], gone[rows], lost[rows])
        return result.T

    def _of_sorted(self, y, gone, lost) -> np.ndarray:
        """Return the log density of rows, those that lack fewer entries first, (n, F)."""
        q = monomials(y.T).T @ self.coefficients.T
        (row, column), start = np.nonzero(gone), 0
        slopes, order = np.empty((len(row), q.shape[1])), np.argsort(column, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(column[order])) + 1):
            slopes[own] = y[row[own]] @ self.slopes[column[own[0]]] + self.offsets[column[own[0]]]
        for k in np.unique(lost):
            rows = slice(*np.searchsorted(lost, (k, k + 1)))
            count, entries = rows.stop - rows.start, slice(start, start + k * (rows.stop - rows.start))
            own, start = q[rows], entries.stop
            log_det = self._eliminate(
                own, column[entries].reshape(count, k).T, slopes[entries].reshape(count, k, q.shape[1])
            )
            width = y.shape[1] - k
            np.log1p(own, out=own)
            own *= -(self.dof + width) / 2
            own += self.half_log_det + level_of(self.dof, width)
            log_det *= 0.5
            own -= log_det
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
        for a, (pivot, *own) in enumerate(steps):
            for b, entry in enumerate(own[:-1], a + 1):
                steps[b] -= entry / pivot * steps[a][b - a :]
            q -= own[-1] / pivot * own[-1]
            if a % _RUN:
                pivot *= steps[a - 1][0]  # which is the product of the pivots of the run so far
            if a % _RUN == _RUN - 1 or a == k - 1:
                log_det = log_det + np.log(pivot, out=pivot)
        return log_det
