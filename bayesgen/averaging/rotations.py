r"""Predictive densities of complete rows of many columns, from one rotation for members that differ in rho and kappa.

As in `students`, the posterior scale of a "full" covariance is A = ρU + S_g + βδδ', U = (1 - l) V + l diag V. For one
l, with U = LL' and L⁻¹ S_g L'⁻¹ = QΛQ', the rotation R = Q'L⁻¹ turns U into 1 and S_g into Λ, whatever ρ and κ are. Let
u = R (x - m_g), d = Rδ, and for one ρ

.. math:: p = \sum_j \frac{u_j^2}{\rho + \lambda_j}, \quad b = \sum_j \frac{u_j d_j}{\rho + \lambda_j}, \quad
   c = \sum_j \frac{d_j^2}{\rho + \lambda_j}, \quad h = 1 + \beta c

The posterior mean is m_g - tδ, t = κ/(κ + n_g), and by Sherman and Morrison

.. math:: |A| = |U| \, h \prod_j (\rho + \lambda_j), \quad
   (x - \mu)^\top A^{-1} (x - \mu) = p + \frac{2 t b + t^2 c - \beta b^2}{h}

So a row is turned once for each l and group. The terms in b cancel at most the part 1 - 1/h of p. Rounding of q, which
the power of a density magnifies, is larger than from a factor of A itself; so members of a large power are left to
their models.
"""

from typing import NamedTuple

import numpy as np

from bayesgen.averaging.reference import Reference
from bayesgen.models.moments import Moments
from bayesgen.numerics.pieces import blas_threads, pieces, scratch
from bayesgen.numerics.special import log_gamma_ratio

_CELLS = 1 << 17  # entries worked on at a time
_ROWS = 512  # rows worked on at a time, at most
_LARGE = 1000.0  # power from which rounding of q may move a log density by more than 1e-11
FEWEST = 24  # columns; with fewer, `quadratics` take less time


class Rotations(NamedTuple):
    """Densities under P groups of members: F rotations, for each of which there are T values of rho.

    Attributes
    ----------
    centre : array, shape (F, D, 1)
        m_g.
    rotation : array, shape (F, D, D)
        R.
    weight : array, shape (F, T, D)
        1/(ρ + λ).
    slope : array, shape (F, T, D)
        d/(ρ + λ).
    place : int array, shape (P,)
        The rotation and rho of each group of a member, among F T.
    form : array, shape (P, 1, 4)
        Coefficients of (p, b, b², 1) in q, where the log density is level - power log(1 + q).
    level, power : array, shape (P, 1)
    """

    centre: np.ndarray
    rotation: np.ndarray
    weight: np.ndarray
    slope: np.ndarray
    place: np.ndarray
    form: np.ndarray
    level: np.ndarray
    power: np.ndarray

    @classmethod
    def of_members(cls, members, statistics: Moments, reference: Reference) -> "tuple[np.ndarray, Rotations | None]":
        """Return the places of the members with full covariances and no large power, and their densities or None.

        Parameters
        ----------
        members : list of GroupsMember
        statistics : Moments
            Of the groups, (G,), with scatter matrices.
        reference : Reference
            The statistics that the priors follow.
        """
        n, mean, dim = statistics.n, reference.mean[0], statistics.mean.shape[1]
        full = [place for place, member in enumerate(members) if member.structure == "full"]
        own = np.array([m for m in full if members[m].rho + 2 + n.max() + dim < 2 * _LARGE], np.intp)
        if not len(own):
            return own, None
        rho, kappa, shrinkage = np.array([(members[m].rho, members[m].kappa, members[m].shrinkage) for m in own]).T
        (rhos, of_rho), (kinds, of_kind) = (np.unique(values, return_inverse=True) for values in (rho, shrinkage))
        V, delta = reference.covariance[0], mean - reference.centre[0]
        prior = (1 - kinds[:, None, None]) * V + kinds[:, None, None] * np.diag(np.diag(V))
        root = np.linalg.cholesky(prior)
        inverse = np.linalg.inv(root)[:, None]
        size, turned = np.linalg.eigh(inverse @ statistics.scatter @ inverse.mT)  # (kinds, groups, ...)
        rotation = turned.mT @ inverse
        spread = rhos[:, None] + size.clip(0)[:, :, None]  # (kinds, groups, rhos, D)
        d = (rotation @ delta[:, :, None])[..., 0][:, :, None]
        log_root = np.log(root.diagonal(axis1=1, axis2=2)).sum(1)[:, None, None] + 0.5 * np.log(spread).sum(3)
        place = (of_kind[:, None] * len(n) + np.arange(len(n))) * len(rhos) + of_rho[:, None]
        c, log_root = (values.reshape(-1)[place] for values in ((d * d / spread).sum(3), log_root))
        total = kappa[:, None] + n
        t, beta = kappa[:, None] / total, kappa[:, None] * n / total
        h, unit, dof = 1 + beta * c, 1 + 1 / total, rho[:, None] + 2 + n
        form = np.stack([np.ones_like(h), 2 * t / h, -beta / h, t * t * c / h], axis=-1) / unit[..., None]
        level = log_gamma_ratio(dof / 2, dim / 2) - 0.5 * (dim * np.log(np.pi * unit) + np.log(h)) - log_root
        flat = len(kinds) * len(n)
        return own, cls(
            np.tile(mean, (len(kinds), 1))[..., None],
            rotation.reshape(flat, dim, dim),
            (1 / spread).reshape(flat, -1, dim),
            (d / spread).reshape(flat, -1, dim),
            place.ravel(),
            form.reshape(-1, 1, 4),
            level.reshape(-1, 1),
            (dof + dim).reshape(-1, 1) / 2,
        )

    def log_density(self, y) -> np.ndarray:
        """Return the log density of rows (n, D), (P, n)."""
        result, dim = np.empty((len(self.place), len(y))), y.shape[1]
        with blas_threads(dim):
            for part in pieces(len(y), dim, _CELLS, _ROWS):
                count = part.stop - part.start
                terms = scratch("terms", (*self.weight.shape[:2], 4, count))
                step = max(1, _CELLS // (dim * count))
                for first in range(0, len(terms), step):
                    self._write(terms[first : first + step], y[part].T, slice(first, first + step))
                own = np.log1p((self.form @ terms.reshape(-1, 4, count)[self.place])[:, 0])
                own *= self.power
                np.subtract(self.level, own, out=result[:, part])
        return result

    def _write(self, terms, columns, some) -> None:
        """Write p, b, b² and 1 of rows (D, n) under some rotations, (f, T, 4, n)."""
        shape = len(terms), *columns.shape
        u = scratch("centred", shape)
        u = np.matmul(self.rotation[some], np.subtract(columns, self.centre[some], out=u), out=scratch("turned", shape))
        terms[:, :, 1] = self.slope[some] @ u
        np.multiply(terms[:, :, 1], terms[:, :, 1], out=terms[:, :, 2])
        u *= u
        terms[:, :, 0] = self.weight[some] @ u
        terms[:, :, 3] = 1.0
