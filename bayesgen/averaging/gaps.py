r"""Gaps at fit under full covariances: expected statistics, given the class means and one pooled covariance.

A full covariance and rows with gaps have no conjugate posterior. Instead a few steps of EM on the rows estimate means
μ_k and a pooled Σ, under the prior of `GaussianMember("shared", rho=D)`. The missing entries m of each row are then
completed from its class and its observed entries o,

.. math:: \hat x_m = \mu_m + \Sigma_{mo} \Sigma_{oo}^{-1} (x_o - \mu_o) = \mu_m - C P_{mo} (x_o - \mu_o), \quad
   C = \Sigma_{mm} - \Sigma_{mo} \Sigma_{oo}^{-1} \Sigma_{om} = P_{mm}^{-1}, \quad P = \Sigma^{-1}

(the forms in P invert matrices of the size of m, not of o), and its expected outer product, with C added to the scatter
of its class, enters the statistics of every member (Little and Rubin 2002, *Statistical Analysis with Missing Data*,
section 11.2). A completed entry counts as an observed one in the degrees of freedom. μ_k and Σ are learned without the
rows that are left out. The predictive of a row, left out or new, is the marginal t of its observed entries: no
completed entry of that row takes part.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayesgen.averaging.reference import Reference
from bayesgen.core.program import Record
from bayesgen.models.moments import Moments, moments
from bayesgen.numerics.pieces import pieces

_STEPS = 6
WIDE = 100  # columns; of more each entry is completed by the mean of its class


@dataclass(frozen=True, eq=False)
class Filling(Record):
    """Class means and a pooled covariance, from which missing entries are completed.

    Attributes
    ----------
    mean : array, shape (K, D)
        Mean of each class.
    covariance : array, shape (D, D)
        Pooled covariance within the classes; its diagonal, (D,), of more than `WIDE` columns.
    """

    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def learn(cls, x, seen, codes, classes: int, weight) -> "Filling":
        """Estimate means and covariance by EM, started from the moments of each column alone."""
        w = np.where(seen, weight[:, None], 0.0)
        x = np.where(seen, x, 0.0)
        total = w.sum(0)
        overall = np.divide((w * x).sum(0), total, out=np.zeros(x.shape[1]), where=total > 0)
        member = np.zeros((classes, len(x)))
        member[codes, np.arange(len(x))] = 1.0
        mean = (member @ (w * (x - overall))) / (member @ w + 0.01) + overall
        squares = (w * (x - mean[codes]) ** 2).sum(0)
        variance = np.divide(squares, total, out=np.ones_like(squares), where=squares > 0)
        if x.shape[1] > WIDE:
            return cls(mean, variance)
        filling = cls(mean, np.diag(variance))
        for _ in range(_STEPS):
            filling = filling._step(x, seen, codes, classes, weight)
        return filling

    def _step(self, x, seen, codes, classes, weight):
        statistics = moments(x[:0], codes[:0], classes, vector=True)
        for part in pieces(len(x), cells(seen)):
            complete, missing = self.complete(x[part], seen[part], codes[part])
            statistics = statistics + missing.moments(complete, codes[part], classes, weight[part])
        reference, dim = Reference.of(statistics), x.shape[1]
        freedom = max(statistics.n.sum() - (statistics.n > 0).sum(), 0.0) + dim
        covariance = (reference.within[0] + dim * np.diag(np.diag(reference.covariance[0]))) / freedom
        return Filling(reference.mean[0], covariance)

    def complete(self, x, seen, codes) -> "tuple[np.ndarray, Missing]":
        """Return the completed rows, and the covariances of their missing entries.

        Parameters
        ----------
        x, seen : array, shape (n, D)
            Rows, any number where missing; True where not missing.
        codes : int array, shape (n,)
            Classes.
        """
        dim, mean = x.shape[1], self.mean[codes]
        if dim > WIDE:
            rows, columns = np.nonzero(~seen)
            return np.where(seen, x, mean), Missing(rows, columns, self.covariance[columns], (dim,))
        away = np.where(seen, x - mean, 0.0)
        entries = [(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))]
        for rows, columns, covariance in complete(away, seen, np.linalg.inv(self.covariance)):
            places = columns[:, :, None] * dim + columns[:, None]
            entries.append((np.repeat(rows, columns.shape[1] ** 2), places.ravel(), covariance.ravel()))
        rows, places, covariance = map(np.concatenate, zip(*entries, strict=True))
        return np.where(seen, x, mean + away), Missing(rows, places, covariance, (dim, dim))


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


def cells(seen) -> int:
    """Return the entries that one completed row takes with the covariances of its gaps, at most."""
    dim = seen.shape[1]
    return dim if dim > WIDE else dim + int((~seen).sum(1).max(initial=0)) ** 2


@dataclass(frozen=True)
class Missing:
    """Conditional covariances C of the missing entries of rows, one by one.

    Attributes
    ----------
    rows : int array, shape (E,)
        The row of each entry of C.
    places : int array, shape (E,)
        Its place in a matrix (D, D), row by row; its column, of the diagonals of more than `WIDE` columns.
    covariance : array, shape (E,)
        The entry.
    shape : tuple of int
        (D, D), or (D,) of diagonals.
    """

    rows: np.ndarray
    places: np.ndarray
    covariance: np.ndarray
    shape: tuple[int, ...]

    def take(self, rows) -> "Missing":
        """Return those of some rows, at increasing places, numbered anew."""
        place = np.searchsorted(rows, self.rows)
        own = np.flatnonzero(np.take(rows, place, mode="clip") == self.rows) if len(rows) else np.empty(0, np.intp)
        return Missing(place[own], self.places[own], self.covariance[own], self.shape)

    def moments(self, complete, group, groups: int, weight) -> Moments:
        """Return the expected moments of the rows by group."""
        result, size = moments(complete, group, groups, weight, vector=len(self.shape) == 2), math.prod(self.shape)
        own = self.covariance if weight is None else self.covariance * weight[self.rows]
        extra = np.bincount(group[self.rows] * size + self.places, own, groups * size)
        return Moments(result.n, result.mean, result.scatter + extra.reshape(result.scatter.shape))
