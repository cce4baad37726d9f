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
from dataclasses import dataclass

import numpy as np

from bayesgen.averaging.reference import Reference
from bayesgen.core.program import Record
from bayesgen.models.moments import Moments, moments
from bayesgen.numerics.pieces import pieces, taken
from bayesgen.numerics.sums import Grouping

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
        for part in pieces(len(x), x.shape[1] ** 2):
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
        dim = x.shape[1]
        complete = np.where(seen, x, 0.0)
        rows = np.flatnonzero(~seen.all(1))
        o = seen[rows]
        if dim > WIDE:
            complete[rows] = np.where(o, complete[rows], self.mean[codes[rows]])
            own = self.covariance if self.covariance.ndim == 1 else np.diagonal(self.covariance)  # of earlier files
            return complete, Missing(rows, ~o * own)
        most = int((~o).sum(1).max(initial=0))
        places = np.argsort(o, axis=1, kind="stable")[:, :most]  # the missing columns of each row, then some others
        here = np.arange(len(rows))[:, None]
        gone = ~o[here, places]
        precision = np.linalg.inv(self.covariance)
        own = precision[places[:, :, None], places[:, None, :]] * (gone[:, :, None] & gone[:, None, :])
        own[:, np.arange(most), np.arange(most)] += ~gone
        small = np.linalg.inv(own) * (gone[:, :, None] & gone[:, None, :])
        mean = self.mean[codes[rows]]
        pull = (np.where(o, complete[rows] - mean, 0.0) @ precision)[here, places]
        guess = np.zeros_like(mean)
        guess[here, places] = (mean[here, places] - (small @ pull[:, :, None])[:, :, 0]) * gone
        complete[rows] += guess
        rest = np.zeros((len(rows), dim, dim))
        rest[here[:, :, None], places[:, :, None], places[:, None, :]] = small
        return complete, Missing(rows, rest)


@dataclass(frozen=True)
class Missing:
    """Conditional covariances of the missing entries.

    Attributes
    ----------
    rows : int array, shape (m,)
        The rows with gaps.
    covariance : array, shape (m, D, D)
        C; 0 except where both entries are missing. Its diagonals, (m, D), of more than `WIDE` columns.
    """

    rows: np.ndarray
    covariance: np.ndarray

    def moments(self, complete, group, groups: int, weight) -> Moments:
        """Return the expected moments of the rows by group."""
        result = moments(complete, group, groups, weight, vector=self.covariance.ndim == 3)
        flat = self.covariance.reshape(len(self.rows), math.prod(self.covariance.shape[1:]))
        own = taken(weight, self.rows)
        extra = Grouping(group[self.rows], groups, own, (groups,)).membership() @ flat
        return Moments(result.n, result.mean, result.scatter + extra.reshape(result.scatter.shape))
