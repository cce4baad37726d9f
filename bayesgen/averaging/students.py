r"""Predictive densities of rows under Gaussian members that differ in kappa, from one factorisation for all of them.

It serves where each row needs a factorisation of its own: rows of the fit that are left out, and rows with gaps.
Elsewhere the members are models of `bayesgen.models` (see `gaussian`), which factorise once for all kappas and rows, or
for each pattern of gaps.

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
from typing import Any

import numpy as np

from bayesgen.averaging.reference import Reference
from bayesgen.averaging.warp import FAR
from bayesgen.numerics.special import log_gamma_ratio


def log_density(members, reference: Reference, x, seen=None) -> np.ndarray:
    """Return the log predictive density of rows under every member and group.

    Parameters
    ----------
    members : sequence of GaussianMember or MixtureMember
        M members; those that differ in kappa alone stand side by side.
    reference : Reference
        Statistics for each row (B = n), or for all (B = 1).
    x : array, shape (n, D)
        Rows; any number where an entry is missing.
    seen : bool array, shape (n, D), optional
        True where an entry is not missing; by default everywhere.

    Returns
    -------
    array, shape (M, n, G)
    """
    groups = reference.mean.shape[1]
    result = np.empty((len(members), len(x), groups))
    u = x[:, None] - reference.mean
    delta = reference.mean - reference.centre[:, None]
    if seen is not None:
        u, delta = u * seen[:, None], delta * seen[:, None]
    width = x.shape[1] if seen is None else seen.sum(1)
    start = 0
    for (structure, rho, shrinkage), alike in groupby(members, lambda m: (m.structure, m.rho, m.shrinkage)):
        kappas = [member.kappa for member in alike]
        part = result[start : start + len(kappas)]
        start += len(kappas)
        if structure == "full":
            _full(part, reference, rho, shrinkage, kappas, u, delta, width, seen)
        elif structure == "shared":
            _shared(part, reference, rho, kappas, u, delta, width, seen)
        else:
            _diagonal(part, reference, rho, kappas, u, delta, seen, structure == "shared diagonal")
    return result


def log_density_far(members, reference: Reference, sign, size, seen=None) -> np.ndarray:
    """Return the limit of `log_density` for rows with entries beyond `FAR`, given by their signs and log sizes.

    With z = s u and s that large, log(1 + z'A⁻¹z) is 2 log s + log(1 + u'A⁻¹u) to all digits. So rows are scaled down
    by s: a t of all columns falls by f + D times log s, and each t of one column by f + 1 times its own log s.

    Parameters
    ----------
    members, reference, seen
        As in `log_density`.
    sign, size : array, shape (n, D)
        Signs and log sizes, from `Warp.polar`.

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


def _full(result, reference, rho, shrinkage, kappas, u, delta, width, seen):
    prior = rho * (1 - shrinkage) * reference.covariance
    _add_diagonal(prior, rho * shrinkage * np.diagonal(reference.covariance, axis1=1, axis2=2))
    for g in range(u.shape[1]):
        n = reference.n[:, g]
        pair = np.stack(np.broadcast_arrays(u[:, g], delta[:, g]), axis=1)
        log_det, white = whiten(prior + reference.scatter_of(g), pair, seen)
        dof = rho + 2 + n
        gamma = gamma_ratio(dof, width)
        uu, ud, dd = ((white[:, a] * white[:, b]).sum(1) for a, b in ((0, 0), (0, 1), (1, 1)))
        for out, kappa in zip(result, kappas, strict=True):
            beta, b = kappa * n / (kappa + n), kappa / (kappa + n)
            h = 1 + beta * dd
            square = uu + 2 * b * ud + b * b * dd - beta / h * (ud + b * dd) ** 2
            out[:, g] = log_student(square, log_det + np.log(h), dof, kappa + n, width, gamma)


def _shared(result, reference, rho, kappas, u, delta, width, seen):
    base = reference.within.copy()
    _add_diagonal(base, rho * np.diagonal(reference.covariance, axis1=1, axis2=2))
    dof, width = (rho + 2 + reference.n.sum(1))[:, None], np.asarray(width)[..., None]
    gamma = gamma_ratio(dof, width)
    for out, kappa in zip(result, kappas, strict=True):
        n = reference.n
        root = np.sqrt(kappa * n / (kappa + n))[..., None] * delta
        z = u + (kappa / (kappa + n))[..., None] * delta
        log_det, white = whiten(base + np.swapaxes(root, 1, 2) @ root, z, seen)
        square = (white * white).sum(2)
        out[:] = log_student(square, log_det[:, None], dof, kappa + n, width, gamma)


def _diagonal(result, reference, rho, kappas, u, delta, seen, shared):
    variance, n = reference.variance, reference.n
    squares: Any = reference.squares if shared else [reference.squares_of(g) for g in range(u.shape[1])]
    dofs = [(rho + 2 + (n.sum(1) if shared else n[:, g]))[:, None] for g in range(u.shape[1])]
    gammas = [gamma_ratio(dof, 1) for dof in dofs]
    for out, kappa in zip(result, kappas, strict=True):
        beta, b = kappa * n / (kappa + n), kappa / (kappa + n)
        scale: Any = None  # for all groups, or for one group at a time
        if shared:
            scale = rho * variance + squares + np.einsum("bg,bgj->bj", np.broadcast_to(beta, delta.shape[:2]), delta**2)
        for g in range(u.shape[1]):
            if not shared:
                scale = rho * variance + squares[g] + beta[:, g, None] * delta[:, g] ** 2
            z = u[:, g] + b[:, g, None] * delta[:, g]
            with np.errstate(over="ignore"):
                column = log_student(z * z / scale, np.log(scale), dofs[g], kappa + n[:, g, None], 1, gammas[g])
            out[:, g] = column.sum(1) if seen is None else np.where(seen, column, 0.0).sum(1)


def _add_diagonal(matrix, diagonal):
    """Add to the diagonals of matrices, in place."""
    places = np.arange(matrix.shape[-1])
    matrix[..., places, places] += diagonal


def log_student(square, log_det, dof, kappa, width, gamma):
    """Return the log density of a Student-t of scale matrix A (kappa + 1)/(kappa dof), where z'A⁻¹z = square.

    ``log_det`` is log|A|, and ``gamma`` is `gamma_ratio` of dof and width, the same for all kappas.
    """
    power = (dof + width) / 2
    level = gamma - 0.5 * width * np.log(np.pi * (kappa + 1) / kappa) - 0.5 * log_det
    return level - power * np.log1p(square * kappa / (kappa + 1))


def gamma_ratio(dof, width):
    """Return log Γ((dof + width)/2)/Γ(dof/2); single values, which recur for each group and width, are cached."""
    if np.size(dof) == np.size(width) == 1:
        return _one_gamma_ratio(float(np.ravel(dof)[0]), float(np.ravel(width)[0]))
    return log_gamma_ratio(dof / 2, width / 2)


@functools.lru_cache(maxsize=1 << 12)
def _one_gamma_ratio(dof: float, width: float) -> float:
    return float(log_gamma_ratio(dof / 2, width / 2))


def whiten(matrix, vectors, seen=None):
    """Return the log determinants of positive definite matrices L L', and L⁻¹ v of vectors v, over seen entries alone.

    Parameters
    ----------
    matrix : array, shape (B, D, D)
        One for each row, or one for all (B = 1).
    vectors : array, shape (n, R, D)
        R vectors per row, 0 in missing entries.
    seen : bool array, shape (n, D), optional
        True where an entry is not missing. Missing rows and columns of the matrix are replaced by the identity's, which
        leaves determinant and inverse of the seen block.

    Returns
    -------
    log_det : array, shape (B,) or (n,)
    white : array, shape (n, R, D)
    """
    dim, count = matrix.shape[-1], vectors.shape[1]
    if len(matrix) == 1 and seen is None:
        root = np.linalg.cholesky(matrix[0])
        inverse = np.linalg.inv(root)
        white = vectors.reshape(-1, dim) @ inverse.T  # one product for all rows
        return 2 * np.log(np.diagonal(root)).sum()[None], white.reshape(vectors.shape)
    # The factor of [[A, v'], [v, t I]] holds the whitened v below the factor of A, for any t that is large enough.
    bordered = np.zeros((len(vectors), dim + count, dim + count))
    bordered[:, :dim, :dim] = matrix
    if seen is not None:
        bordered[:, :dim, :dim] *= seen[:, :, None] & seen[:, None, :]
        _add_diagonal(bordered[:, :dim, :dim], ~seen)
    bordered[:, dim:, :dim] = vectors
    places = np.arange(dim, dim + count)
    bordered[:, places, places] = 1e250
    root = np.linalg.cholesky(bordered)
    return 2 * np.log(np.diagonal(root[:, :dim, :dim], axis1=1, axis2=2)).sum(1), root[:, dim:, :dim]
