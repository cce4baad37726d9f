r"""Predictive densities of rows under Gaussian members that differ in kappa, from one factorisation for all of them.

It serves where rows need factorisations of their own: rows with gaps, and rows of the fit that are left out, one
factorisation for all that leave together. Elsewhere the members are models of `bayesgen.models` (see `gaussian`), which
factorise once for all kappas and rows, or for each pattern of gaps.

The posterior scale of "full" is A = rho((1 - l) V + l diag V) + S_g + beta δδ', δ = m_g - m, beta = kappa n_g/(kappa +
n_g). The predictive is a Student-t with f = rho + 2 + n_g degrees of freedom about the posterior mean, at distance z =
(x - m_g) + kappa/(kappa + n_g) δ, with scale matrix A (kappa_n + 1)/(kappa_n f). The matrix A_0, A without beta δδ', is
the same for every kappa; one factorisation serves them all by Sherman and Morrison:

.. math:: |A| = |A_0| h, \quad z^\top A^{-1} z = z^\top A_0^{-1} z - \frac{\beta}{h} (z^\top A_0^{-1} \delta)^2, \quad
   h = 1 + \beta\, \delta^\top A_0^{-1} \delta

"shared" sums S_g + beta δδ' over the groups, and has f = rho + 2 + N. A row with missing entries has the marginal t,
with the same degrees of freedom.
"""

import functools
from itertools import groupby

import numpy as np

from bayesgen.averaging.reference import Reference
from bayesgen.averaging.warp import FAR
from bayesgen.numerics.special import log_gamma_ratio
from bayesgen.numerics.student import triangular_inverse, upper_factors

BORDER = 1e250  # large: the diagonal of what borders a matrix, and of columns that a row lacks


def log_density(members, reference: Reference, x, seen=None, at=None) -> np.ndarray:
    """Return the log predictive density of rows under every member and group.

    Parameters
    ----------
    members : sequence of GaussianMember or MixtureMember
        M members; those that differ in kappa alone stand side by side.
    reference : Reference
        Statistics for each row (B = n), for all (B = 1), or without each of B departures.
    x : array, shape (n, D)
        Rows; any number where an entry is missing.
    seen : bool array, shape (n, D), optional
        True where an entry is not missing; by default everywhere.
    at : int array, shape (n,), optional
        The departure without which each complete row is predicted: its rows share one factorisation.

    Returns
    -------
    array, shape (M, n, G)
    """
    delta = reference.mean - reference.centre[:, None]
    if at is None and seen is None and len(delta) == 1:
        at = np.zeros(len(x), np.intp)
    place = None
    if at is None:
        u = (x[:, None] - reference.mean)[:, :, None]
    else:  # the rows of a departure stand side by side, filled up with zeros
        size, order = np.bincount(at, minlength=len(delta)), np.argsort(at, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(at)) - (np.cumsum(size) - size)[at[order]]
        u = np.zeros((*delta.shape[:2], size.max(initial=0), x.shape[1]))
        u[at, :, place] = x[:, None] - reference.mean[at]
    result, start = np.empty((len(members), *u.shape[:3])), 0
    for structure, alike in groupby(members, lambda m: m.structure):
        own = list(alike)
        part = result[start : start + len(own)]
        start += len(own)
        write = {"full": _full, "shared": _shared}.get(structure, _diagonal)
        write(part, own, reference, u, delta[:, :, None], seen)
    return result[..., 0] if place is None else result.swapaxes(2, 3)[:, at, place]


def log_density_far(members, reference: Reference, sign, size, seen=None) -> np.ndarray:
    """Return the limit of `log_density` for rows with entries beyond `FAR`, given by their signs and log sizes.

    With z = s u and s that large, log(1 + z'A⁻¹z) is 2 log s + log(1 + u'A⁻¹u) to all digits. So rows are scaled down
    by s: a t of all columns falls by f + D times log s, and each t of one column by f + 1 times its own log s.

    Parameters
    ----------
    members, reference, seen
        As in `log_density`.
    sign, size : array, shape (n, D)
        Signs and log sizes, from `YeoJohnson.polar`.

    Returns
    -------
    array, shape (M, n, G)
    """
    beyond = np.maximum(size - np.log(FAR), 0.0)
    farthest = beyond.max(1, keepdims=True)
    width = np.full(len(size), size.shape[1]) if seen is None else seen.sum(1)
    alone = np.array(["diagonal" in member.structure for member in members])
    result = np.empty((len(members), len(size), reference.mean.shape[1]))
    for places, inward, fall, joined in (
        (np.flatnonzero(~alone), farthest, farthest, width[:, None]),
        (np.flatnonzero(alone), beyond, beyond.sum(1, keepdims=True), 1),
    ):
        own = [members[m] for m in places]
        result[places] = log_density(own, reference, sign * np.exp(size - inward), seen)
        for m, member in zip(places, own, strict=True):
            n = reference.n.sum(1, keepdims=True) if "shared" in member.structure else reference.n
            result[m] -= (member.rho + 2 + n + joined) * fall
    return result


def _full(result, members, reference, u, delta, seen):
    n, V, width = reference.n[:, :, None], reference.covariance, _width(u, seen)
    diagonal = np.diagonal(V, axis1=1, axis2=2)
    shift = np.broadcast_to(delta, (len(u), *delta.shape[1:]))
    bordered = _Bordered(reference.scatter, np.concatenate([u, shift], axis=2), seen)
    place = 0
    for rho, alike in groupby(members, lambda m: m.rho):
        dof = rho + 2 + n
        gamma = gamma_ratio(dof, width)
        for shrinkage, own in groupby(alike, lambda m: m.shrinkage):
            prior = (rho * (1 - shrinkage)) * V
            _add_diagonal(prior, (rho * shrinkage) * diagonal)
            log_det, white = bordered.whiten(prior[:, None])
            white, shift = white[:, :, :-1], white[:, :, -1:]
            uu, ud, dd = np.vecdot(white, white), np.vecdot(white, shift), np.vecdot(shift, shift)
            kappa = np.array([member.kappa for member in own])[:, None, None, None]
            b = kappa / (kappa + n)
            h = 1 + b * n * dd
            square = uu + b * (2 * ud + b * dd) - b * n / h * (ud + b * dd) ** 2
            log_dets = log_det[..., None] + np.log(h)
            result[place : place + len(kappa)] = log_student(square, log_dets, dof, kappa + n, width, gamma)
            place += len(kappa)


def _shared(result, members, reference, u, delta, seen):
    n, width, base = reference.n[:, :, None], _width(u, seen), reference.within
    diagonal, many = np.diagonal(reference.covariance, axis1=1, axis2=2), u.shape[1] * u.shape[2]
    for out, member in zip(result, members, strict=True):
        kappa, dof = member.kappa, member.rho + 2 + n.sum(1, keepdims=True)
        b = (kappa / (kappa + n))[..., None]
        root = (np.sqrt(b * n[..., None]) * delta)[:, :, 0]
        prior = root.mT @ root
        _add_diagonal(prior, member.rho * diagonal)
        bordered = _Bordered(base[:, None], (u + b * delta).reshape(len(u), 1, many, -1), seen)
        log_det, white = bordered.whiten(prior[:, None])
        square = np.vecdot(white, white).reshape(u.shape[:3])
        out[:] = log_student(square, log_det[..., None], dof, kappa + n, width, gamma_ratio(dof, width))


def _diagonal(result, members, reference, u, delta, seen):
    n, shared = reference.n[:, :, None, None], members[0].shared
    squares = reference.squares[:, None] if shared else reference.squares_of_groups
    for out, member in zip(result, members, strict=True):
        b, dof = member.kappa / (member.kappa + n), member.rho + 2 + (n.sum(1, keepdims=True) if shared else n)
        more = b * n * delta**2
        scale = (member.rho * reference.variance[:, None] + squares)[:, :, None]
        scale = scale + (more.sum(1, keepdims=True) if shared else more)
        z = u + b * delta
        with np.errstate(over="ignore"):
            column = log_student(z * z / scale, np.log(scale), dof, member.kappa + n, 1, gamma_ratio(dof, 1))
        out[:] = (column if seen is None else np.where(seen[:, None, None], column, 0.0)).sum(3)


def _width(u, seen):
    """Return the number of columns that rows have, all of them or those that are seen, (B, 1, 1)."""
    return u.shape[3] if seen is None else seen.sum(1)[:, None, None]


def _add_diagonal(matrix, diagonal):
    """Add to the diagonals of matrices, in place."""
    places = np.arange(matrix.shape[-1])
    matrix[..., places, places] += diagonal


def log_student(square, log_det, dof, kappa, width, gamma):
    """Return the log density of a Student-t of scale matrix A (kappa + 1)/(kappa dof), where z'A⁻¹z = square.

    ``log_det`` is log|A|, and ``gamma`` is `gamma_ratio` of dof and width, the same for all kappas.
    """
    scale = kappa / (kappa + 1)
    level = gamma - 0.5 * width * np.log(np.pi / scale) - 0.5 * log_det
    return level - (dof + width) / 2 * np.log1p(square * scale)


def gamma_ratio(dof, width):
    """Return log Γ((dof + width)/2)/Γ(dof/2); single values, which recur for each group and width, are cached."""
    if np.size(dof) == np.size(width) == 1:
        value = _one_gamma_ratio(float(np.ravel(dof)[0]), float(np.ravel(width)[0]))
        return np.full(np.broadcast_shapes(np.shape(dof), np.shape(width)), value)
    return log_gamma_ratio(dof / 2, width / 2)


@functools.lru_cache(maxsize=1 << 12)
def _one_gamma_ratio(dof: float, width: float) -> float:
    return float(log_gamma_ratio(dof / 2, width / 2))


def bordered(matrix, vectors):
    """Return matrices A, (..., D, D), with vectors (..., R, D) beside them: upper halves, (..., D + R, D + R).

    The factor of [[A, v], [v', t I]] holds U'⁻¹ v beside U, the factor of A, for any t that is large enough.
    """
    *batch, count, dim = vectors.shape
    result = np.zeros((*batch, dim + count, dim + count))
    result[..., :dim, :dim] = matrix
    result[..., :dim, dim:] = vectors.mT
    border = range(dim, dim + count)
    result[..., border, border] = BORDER
    return result


class _Bordered:
    """Positive definite matrices A = U'U bordered by vectors v, so that one factorisation whitens them.

    See `bordered`. More vectors than columns, none of them with gaps, are whitened by themselves.

    Parameters
    ----------
    fixed : array, shape (B, G, D, D)
        The part that all A have in common.
    vectors : array, shape (B, G, R, D)
        R vectors for each matrix, any numbers in missing entries.
    seen : bool array, shape (B, D), or None
        True where an entry is not missing. A missing column gets a diagonal entry so large that its row of U vanishes
        beside it, and its entries of U'⁻¹ v are 0 to all digits: the others are those of the seen block.
    """

    def __init__(self, fixed, vectors, seen):
        *_, count, self.dim = vectors.shape
        beside = seen is None and count > self.dim
        self.vectors, self.seen = vectors if beside else None, True if seen is None else seen[:, None]
        self.fixed = fixed if beside else bordered(fixed, vectors)
        if seen is not None:
            _add_diagonal(self.fixed[..., : self.dim, : self.dim], BORDER * ~self.seen)
        self.matrix = np.empty_like(self.fixed)
        self.rest = np.zeros_like(self.fixed[:, :1])

    def whiten(self, rest):
        """Return the log determinants of A, ``rest`` (B, 1, D, D) and what is fixed, (B, G), and U'⁻¹ v, (B, G, R, D).

        The next call may write over U'⁻¹ v.
        """
        dim = self.dim
        np.copyto(self.rest[..., :dim, :dim], rest)
        root = upper_factors(np.add(self.rest, self.fixed, out=self.matrix))
        log_det = 2 * np.log(np.diagonal(root[..., :dim, :dim], axis1=-2, axis2=-1)).sum(-1, where=self.seen)
        if self.vectors is None:
            return log_det, root[..., :dim, dim:].mT
        return log_det, self.vectors @ triangular_inverse(root.mT).mT
