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

_CELLS = 1 << 17  # entries of matrices that are factorised at a time


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
    result = np.empty((len(members), len(x), reference.mean.shape[1]))
    u = x[:, None] - _of_rows(reference.mean, at)
    delta = reference.mean - reference.centre[:, None]
    if seen is not None:
        u, delta = u * seen[:, None], delta * seen[:, None]
    width = x.shape[1] if seen is None else seen.sum(1)[:, None]
    start = 0
    for (structure, _), alike in groupby(members, lambda m: (m.structure, m.rho)):
        own = list(alike)
        part = result[start : start + len(own)]
        start += len(own)
        if structure == "full":
            _full(part, own, reference, u, delta, width, seen, at)
        elif structure == "shared":
            _shared(part, own, reference, u, delta, width, seen, at)
        else:
            _diagonal(part, own, reference, u, delta, seen, at)
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


def _of_rows(values, at):
    """Return the values of the departures (B, ...) for each row (n, ...); as they are where ``at`` is None."""
    return values if at is None else values[at]


def _full(result, members, reference, u, delta, width, seen, at):
    rho, n = members[0].rho, reference.n
    dof = rho + 2 + n
    gamma = gamma_ratio(dof, width)
    V = rho * reference.covariance
    diagonal = np.diagonal(V, axis1=1, axis2=2)
    cells = max(len(u) if at is None else len(V), 1) * (u.shape[2] + 2) ** 2
    step = max(1, _CELLS // cells)
    for start in range(0, n.shape[1], step):
        groups = slice(start, start + step)
        scatter = reference.scatter_of(groups)
        own_u, own_delta, own_n = u[:, groups], delta[:, groups], n[:, groups]
        place = 0
        for shrinkage, alike in groupby(members, lambda m: m.shrinkage):
            prior = (1 - shrinkage) * V
            _add_diagonal(prior, shrinkage * diagonal)
            log_det, white, shift = _whiten_pair(prior[:, None] + scatter, own_u, own_delta, seen, at)
            uu, dd = (white * white).sum(2), (shift * shift).sum(2)
            ud = (white * _of_rows(shift, at)).sum(2)
            for member in alike:
                kappa = member.kappa
                beta, b = kappa * own_n / (kappa + own_n), kappa / (kappa + own_n)
                h = 1 + beta * dd
                ratio, shift_b, shift_dd = (_of_rows(a, at) for a in (beta / h, b, b * dd))
                square = uu + shift_b * (2 * ud + shift_dd) - ratio * (ud + shift_dd) ** 2
                shape = dof[:, groups], kappa + own_n, width, gamma[:, groups]
                result[place, :, groups] = log_student(square, log_det + np.log(h), *shape, at)
                place += 1


def _shared(result, members, reference, u, delta, width, seen, at):
    rho, n = members[0].rho, reference.n
    base = reference.within.copy()
    _add_diagonal(base, rho * np.diagonal(reference.covariance, axis1=1, axis2=2))
    dof = (rho + 2 + n.sum(1))[:, None]
    gamma = gamma_ratio(dof, width)
    for out, member in zip(result, members, strict=True):
        kappa = member.kappa
        root = np.sqrt(kappa * n / (kappa + n))[..., None] * delta
        z = u + _of_rows((kappa / (kappa + n))[..., None] * delta, at)
        log_det, white = whiten((base + np.swapaxes(root, 1, 2) @ root)[:, None], z[:, None], seen, at)
        out[:] = log_student((white[:, 0] * white[:, 0]).sum(2), log_det, dof, kappa + n, width, gamma, at)


def _diagonal(result, members, reference, u, delta, seen, at):
    rho, n, shared = members[0].rho, reference.n[..., None], members[0].shared
    dof = rho + 2 + (n.sum(1, keepdims=True) if shared else n)
    gamma = gamma_ratio(dof, 1)
    base = rho * reference.variance[:, None] + (reference.squares[:, None] if shared else reference.squares_of_groups())
    for out, member in zip(result, members, strict=True):
        kappa = member.kappa
        more = kappa * n / (kappa + n) * delta**2
        scale = base + (more.sum(1, keepdims=True) if shared else more)
        z = u + _of_rows(kappa / (kappa + n) * delta, at)
        with np.errstate(over="ignore"):
            column = log_student(z * z / _of_rows(scale, at), np.log(scale), dof, kappa + n, 1, gamma, at)
        out[:] = (column if seen is None else np.where(seen[:, None], column, 0.0)).sum(2)


def _add_diagonal(matrix, diagonal):
    """Add to the diagonals of matrices, in place."""
    places = np.arange(matrix.shape[-1])
    matrix[..., places, places] += diagonal


def log_student(square, log_det, dof, kappa, width, gamma, at=None):
    """Return the log density of a Student-t of scale matrix A (kappa + 1)/(kappa dof), where z'A⁻¹z = square.

    ``log_det`` is log|A|, and ``gamma`` is `gamma_ratio` of dof and width, the same for all kappas. All but the squares
    are of the departures ``at`` which the rows are predicted, if any.
    """
    power, scale = (dof + width) / 2, kappa / (kappa + 1)
    level = gamma - 0.5 * width * np.log(np.pi / scale) - 0.5 * log_det
    return _of_rows(level, at) - _of_rows(power, at) * np.log1p(square * _of_rows(scale, at))


def gamma_ratio(dof, width):
    """Return log Γ((dof + width)/2)/Γ(dof/2); single values, which recur for each group and width, are cached."""
    if np.size(dof) == np.size(width) == 1:
        value = _one_gamma_ratio(float(np.ravel(dof)[0]), float(np.ravel(width)[0]))
        return np.full(np.broadcast_shapes(np.shape(dof), np.shape(width)), value)
    return log_gamma_ratio(dof / 2, width / 2)


@functools.lru_cache(maxsize=1 << 12)
def _one_gamma_ratio(dof: float, width: float) -> float:
    return float(log_gamma_ratio(dof / 2, width / 2))


def _whiten_pair(matrix, u, delta, seen, at):
    """Return log determinants, L⁻¹ u of rows, and L⁻¹ delta of rows, or of their departures; see `whiten`."""
    if at is None:
        log_det, white = whiten(matrix, np.stack(np.broadcast_arrays(u, delta), axis=2), seen)
        return log_det, white[:, :, 0], white[:, :, 1]
    every = np.concatenate([u, delta])[:, :, None]
    log_det, white = whiten(matrix, every, at=np.concatenate([at, np.arange(len(delta))]))
    return log_det, white[: len(u), :, 0], white[len(u) :, :, 0]


def whiten(matrix, vectors, seen=None, at=None):
    """Return the log determinants of positive definite matrices L L', and L⁻¹ v of vectors v, over seen entries alone.

    Parameters
    ----------
    matrix : array, shape (B, G, D, D)
        G for each row, for all (B = 1), or for each departure.
    vectors : array, shape (n, G, R, D)
        R vectors per row and matrix, 0 in missing entries.
    seen : bool array, shape (n, D), optional
        True where an entry is not missing. Missing rows and columns of the matrix are replaced by the identity's, which
        leaves determinant and inverse of the seen block.
    at : int array, shape (n,), optional
        The departure of each complete row.

    Returns
    -------
    log_det : array, shape (B, G) or (n, G)
    white : array, shape (n, G, R, D)
    """
    (count, dim), shape = vectors.shape[2:], vectors.shape
    if at is not None:  # the vectors of a departure stand side by side, filled up with zeros
        size, order = np.bincount(at, minlength=len(matrix)), np.argsort(at, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(at)) - (np.cumsum(size) - size)[at[order]]
        together = np.zeros((len(matrix), shape[1], size.max(), count, dim))
        together[at, :, place] = vectors
        log_det, white = whiten(matrix, together.reshape(*together.shape[:2], -1, dim))
        return log_det, white.reshape(together.shape)[at, :, place]
    if seen is None and (len(matrix) == 1 or count > dim):
        root = np.linalg.cholesky(matrix)
        log_det = 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
        if len(matrix) > 1:
            return log_det, np.linalg.solve(root, vectors.swapaxes(2, 3)).swapaxes(2, 3)
        by_group = vectors.swapaxes(0, 1)  # one product for all rows
        white = by_group.reshape(shape[1], -1, dim) @ np.linalg.inv(root[0]).swapaxes(1, 2)
        return log_det, white.reshape(by_group.shape).swapaxes(0, 1)
    # The factor of [[A, v'], [v, t I]] holds the whitened v below the factor of A, for any t that is large enough.
    bordered = np.zeros((*shape[:2], dim + count, dim + count))
    own = bordered[..., :dim, :dim]
    own[:] = matrix
    if seen is not None:
        own *= (seen[:, :, None] & seen[:, None, :])[:, None]
        _add_diagonal(own, ~seen[:, None])
    bordered[..., dim:, :dim] = vectors
    places = np.arange(dim, dim + count)
    bordered[..., places, places] = 1e250
    root = np.linalg.cholesky(bordered)
    return 2 * np.log(np.diagonal(root[..., :dim, :dim], axis1=-2, axis2=-1)).sum(-1), root[..., dim:, :dim]
