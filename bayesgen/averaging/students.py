r"""Predictive densities of rows under Gaussian groups, whose statistics have all rows, or all but those left out.

**Statistics** (`Reference`), with all rows or without one, and the prior that follows them. Groups are the classes,
or components within them. With n_g, m_g, S_g the weight, mean and scatter of group g, m is the mean of all rows, and V
the pooled covariance within groups of "More columns than rows" in `docs/mathematics/averaged.md`, with a hundredth of a
degree of freedom of the total variance of each column added to its diagonal: with a single row in each group V still
exists, and is diagonal. W is the sum of the S_g, and N the weight of all rows. What leaves is subtracted, by group
(`Moments`), or the other rows are summed anew where that loses digits.

Columns that all members take as independent need no more of S, W and V than the diagonals: `Moments` by column, which
have one axis of columns in place of two, give a `Reference` by column.

**Densities** (`log_density`) under members that differ in kappa, from one factorisation for all of them. They serve
where rows need factorisations of their own: rows with gaps, and rows of the fit that are left out, one factorisation
for all that leave together. Elsewhere the members are models of `bayesgen.models` (see `gaussians`), which factorise
once for all kappas and rows, or for each pattern of gaps.

The posterior scale of "full" is A = rho((1 - l) V + l diag V) + S_g + beta δδ', δ = m_g - m, beta = kappa n_g/(kappa +
n_g). The predictive is a Student-t with f = rho + 2 + n_g degrees of freedom about the posterior mean, at distance z =
(x - m_g) + kappa/(kappa + n_g) δ, with scale matrix A (kappa_n + 1)/(kappa_n f). The matrix A_0, A without beta δδ', is
the same for every kappa; one factorisation serves them all by Sherman and Morrison:

.. math:: |A| = |A_0| h, \quad z^\top A^{-1} z = z^\top A_0^{-1} z - \frac{\beta}{h} (z^\top A_0^{-1} \delta)^2, \quad
   h = 1 + \beta\, \delta^\top A_0^{-1} \delta

"shared" sums S_g + beta δδ' over the groups, and has f = rho + 2 + N. A row with missing entries has the marginal t,
with the same degrees of freedom.

**A row left out of many** (`log_density_without`): where all rows together are many, m and V of the prior keep it, and
one factor of A, the scale that has all rows, serves all of them. Without a weight r of a row at distance d from the
posterior mean, κ' = κ - r and A' = A - s dd', s = rκ/κ' (`docs/mathematics/averaged.md`, "Leave-one-out").
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any

import numpy as np

from bayesgen.models.moments import Moments
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.special import log_gamma_ratio
from bayesgen.numerics.student import add_diagonal, triangular_inverse, whitened
from bayesgen.numerics.yeo_johnson import FAR

_GAMMA = 0.01  # degrees of freedom that the total variance is worth in V
_WHITE = 1 << 19  # whitened entries worked on at a time
_LOST = 1e-5  # share of the squares that must be left, or five digits are gone
_WAITING = 1 << 20  # entries of matrices, and of rows beside them, that wait for each other


@dataclass(frozen=True)
class Reference:
    """Statistics of groups and the prior that follows them, without each of B rows, or with all rows (B = 1)."""

    n: np.ndarray  # (B, G): weight of each group
    mean: np.ndarray  # (B, G, D): mean of each group; the mean of all rows where it has no weight
    # (B, G, D, D): scatter of each group. Here and below matrices (D, D) are diagonals (D,) if the statistics are by
    # column.
    scatter: np.ndarray
    centre: np.ndarray  # (B, D): mean of all rows, m
    within: np.ndarray  # (B, D, D): pooled scatter within the groups, W
    covariance: np.ndarray  # (B, D, D): V

    @classmethod
    def of(cls, statistics: Moments) -> "Reference":
        """Return the reference with all rows, or of each of the B first entries of the statistics."""
        n, mean, scatter = weights(statistics), statistics.mean, statistics.scatter
        total, centre, within, squares = _totals(statistics)
        mean = np.where((n > 0)[..., None], mean, centre[..., None, :])
        covariance = _covariance(total, (n > 0).sum(-1), within, squares)
        if n.ndim == 1:
            return cls(*(a[None] for a in (n, mean, scatter, centre, within, covariance)))
        return cls(n, mean, scatter, centre, within, covariance)

    @classmethod
    def without(cls, statistics: Moments, gone: Moments, rows) -> "Reference":
        """Return the reference without the rows ``gone`` of each of B departures, which may be of several groups.

        If what leaves makes up nearly all of the squares of some column, the other rows are summed anew: ``rows(b)``
        returns the `Moments` of all rows but those of departure b.
        """
        every = zip((statistics.n, statistics.mean, statistics.scatter), (gone.n, gone.mean, gone.scatter), strict=True)
        whole = Moments(*(np.broadcast_to(a, b.shape) for a, b in every))
        remaining = whole - gone
        _, _, all_within, all_squares = _totals(statistics)
        _, _, within, squares = _totals(remaining)
        scatter = _diagonal(within, statistics)
        few = (scatter < _LOST * _diagonal(all_within, statistics)) | (squares < _LOST * all_squares)
        for b in np.flatnonzero(few.any(1)):
            anew = rows(int(b))
            remaining.n[b], remaining.mean[b], remaining.scatter[b] = anew.n, anew.mean, anew.scatter
        return cls.of(remaining)

    @classmethod
    def joined(cls, references) -> "Reference":
        """Return several references as one, one behind the other."""
        return cls(*(np.concatenate([getattr(each, field.name) for each in references]) for field in fields(cls)))

    def take(self, rows) -> "Reference":
        """Return the references of some departures, once for each row."""
        return Reference(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def variance(self) -> np.ndarray:
        """The diagonal of V, (B, D)."""
        return self._diagonal(self.covariance)

    @property
    def squares(self) -> np.ndarray:
        """The diagonal of W, (B, D)."""
        return self._diagonal(self.within)

    def _diagonal(self, matrix):
        return matrix if self.covariance.ndim == 2 else np.diagonal(matrix, axis1=-2, axis2=-1)


def weights(statistics: Moments) -> np.ndarray:
    """Return the weight of each group, (..., G), also of moments by column, which are of complete rows."""
    return statistics.n if statistics.vector else statistics.n[..., 0]


def by_column(statistics: Moments) -> Moments:
    """Return the moments of each column by itself, of groups whose rows are complete."""
    if not statistics.vector:
        return statistics
    diagonals = _diagonal(statistics.scatter, statistics)
    return Moments(np.broadcast_to(statistics.n[..., None], diagonals.shape), statistics.mean, diagonals)


def squares(statistics: Moments) -> np.ndarray:
    """Return the sums of squares of each group and column, (..., G, D)."""
    return _diagonal(statistics.scatter, statistics)


def _diagonal(matrix, statistics: Moments):
    return np.diagonal(matrix, axis1=-2, axis2=-1) if statistics.vector else matrix


def _totals(statistics: Moments):
    """Return weight and mean of all rows, pooled scatter within the groups, and total squares of each column.

    The statistics are of groups, (G, ...), or of groups in departures, (B, G, ...).
    """
    n, mean = weights(statistics), statistics.mean
    total = n.sum(-1)
    start = np.take_along_axis(mean, n.argmax(-1)[..., None, None], -2)
    share = np.divide(n, total[..., None], out=np.zeros_like(n), where=total[..., None] > 0)
    centre = (start + (share[..., None] * (mean - start)).sum(-2, keepdims=True)) * (total[..., None, None] > 0)
    within = statistics.scatter.sum(-3 if statistics.vector else -2)
    squares = _diagonal(within, statistics) + (n[..., None] * (mean - centre) ** 2).sum(-2)
    return total, centre[..., 0, :], within, squares


def freedom(total, groups):
    """Return the degrees of freedom of V from the total weight and the number of groups with any."""
    return np.maximum(total - groups, 0.0) + _GAMMA


def _covariance(total, groups, within, squares):
    """Return V from totals that may have a leading axis of rows."""
    total, groups = np.asarray(total)[..., None], np.asarray(groups)[..., None]
    f = freedom(total, groups)
    variance = np.divide(squares, total, out=np.ones_like(squares), where=total > 0)
    variance = np.where(variance > 1e-14, variance, 1.0)  # a column that does not vary: any variance serves
    if within.ndim == squares.ndim:
        return (within + _GAMMA * variance) / f
    covariance = within / f[..., None]
    diagonal = np.arange(squares.shape[-1])
    covariance[..., diagonal, diagonal] += _GAMMA * variance / f
    return covariance


def log_density(members, reference: Reference, x, seen=None, departure=None) -> np.ndarray:
    """Return the log predictive density of rows (n, D) under M members and every group, (M, n, G).

    Members that differ in kappa alone stand side by side. The reference has statistics for each row (B = n), for all
    (B = 1), or without each of B departures, of which ``departure`` (n,) is that of each complete row: its rows share
    one factorisation. Entries that are not ``seen`` (n, D) may be any number; by default all are seen.
    """
    delta = reference.mean - reference.centre[:, None]
    if departure is None and seen is None and len(delta) == 1:
        departure = np.zeros(len(x), np.intp)
    place = None
    if departure is None:
        u = (x[:, None] - reference.mean)[:, :, None]
    else:  # the rows of a departure stand side by side, filled up with zeros
        size, order = np.bincount(departure, minlength=len(delta)), np.argsort(departure, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(departure)) - (np.cumsum(size) - size)[departure[order]]
        u = np.zeros((*delta.shape[:2], size.max(initial=0), x.shape[1]))
        u[departure, :, place] = x[:, None] - reference.mean[departure]
    result, start = np.empty((len(members), *u.shape[:3])), 0
    for structure, alike in groupby(members, lambda m: m.structure):
        same = list(alike)
        density = result[start : start + len(same)]
        start += len(same)
        write = {"full": _write_full, "shared": _write_shared}.get(structure, _write_diagonal)
        write(density, same, reference, u, delta[:, :, None], seen)
    return result[..., 0] if place is None else result.swapaxes(2, 3)[:, departure, place]


class Together:
    """Densities of complete rows under several fits of the same members, worked out at once.

    Of the few rows of a fold a call of NumPy takes longer than its work. So fits without one fold after the other hand
    over their rows and references, which wait until they are many or no more come.
    """

    def __init__(self):
        self._waiting: dict[Any, list[Any]] = {}

    def add(self, members, reference: Reference, x, departure, write: Callable) -> None:
        """Take what `log_density` asks for; ``write`` is called with densities, and weights of the groups, (n, G)."""
        groups, dim = reference.mean.shape[1:]
        jobs = self._waiting.setdefault((*members, groups, dim, reference.covariance.ndim), [])
        jobs.append((members, reference, x, departure, write))
        if sum(len(job[1].n) * (dim + 2) + len(job[2]) for job in jobs) * groups * (dim + 2) > _WAITING:
            self._write(jobs)

    def finish(self) -> None:
        """Work out what still waits."""
        for jobs in self._waiting.values():
            self._write(jobs)

    def _write(self, jobs) -> None:
        if not jobs:
            return
        (members, *_), references, rows, departures, writes = zip(*jobs, strict=True)
        jobs.clear()
        before = np.cumsum([0, *(len(each.n) for each in references)])
        departure = np.concatenate([own + first for own, first in zip(departures, before, strict=False)])
        reference, stop = Reference.joined(references), 0
        density = log_density(members, reference, np.concatenate(rows), departure=departure)
        for write, x in zip(writes, rows, strict=True):
            start, stop = stop, stop + len(x)
            write(density[:, start:stop], reference.n[departure[start:stop]])


def log_density_far(members, reference: Reference, sign, size, seen=None) -> np.ndarray:
    """Return the limit of `log_density` for rows with entries beyond `FAR`, given by their signs and log sizes.

    With z = s u and s that large, log(1 + z'A⁻¹z) is 2 log s + log(1 + u'A⁻¹u) to all digits. So rows are scaled down
    by s: a t of all columns falls by f + D times log s, and each t of one column by f + 1 times its own log s.

    Signs and log sizes (n, D) come from `YeoJohnson.polar`.
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
        chosen = [members[m] for m in places]
        result[places] = log_density(chosen, reference, sign * np.exp(size - inward), seen)
        for m, member in zip(places, chosen, strict=True):
            n = reference.n.sum(1, keepdims=True) if "shared" in member.structure else reference.n
            result[m] -= (member.rho + 2 + n + joined) * fall
    return result


def _write_full(result, members, reference, u, delta, seen):
    n, V, width = reference.n[:, :, None], reference.covariance, _width(u, seen)
    diagonal = np.diagonal(V, axis1=1, axis2=2)
    shift = np.broadcast_to(delta, (len(u), *delta.shape[1:]))
    vectors, place = np.concatenate([u, shift], axis=2), 0
    for rho, alike in groupby(members, lambda m: m.rho):
        dof = rho + 2 + n
        gamma = log_gamma_ratio(dof / 2, width / 2)
        for shrinkage, kappas in groupby(alike, lambda m: m.shrinkage):
            prior = (rho * (1 - shrinkage)) * V
            add_diagonal(prior, (rho * shrinkage) * diagonal)
            log_det, white = whitened(prior[:, None] + reference.scatter, vectors, seen)
            white, shift = white[:, :, :-1], white[:, :, -1:]
            uu, ud, dd = np.vecdot(white, white), np.vecdot(white, shift), np.vecdot(shift, shift)
            kappa = np.array([member.kappa for member in kappas])[:, None, None, None]
            b = kappa / (kappa + n)
            h = 1 + b * n * dd
            square = uu + b * (2 * ud + b * dd) - b * n / h * (ud + b * dd) ** 2
            log_dets = log_det[..., None] + np.log(h)
            result[place : place + len(kappa)] = log_student(square, log_dets, dof, kappa + n, width, gamma)
            place += len(kappa)


def _write_shared(result, members, reference, u, delta, seen):
    n, width, base = reference.n[:, :, None], _width(u, seen), reference.within
    diagonal, many = np.diagonal(reference.covariance, axis1=1, axis2=2), u.shape[1] * u.shape[2]
    for out, member in zip(result, members, strict=True):
        kappa, dof = member.kappa, member.rho + 2 + n.sum(1, keepdims=True)
        b = (kappa / (kappa + n))[..., None]
        root = (np.sqrt(b * n[..., None]) * delta)[:, :, 0]
        prior = root.mT @ root
        add_diagonal(prior, member.rho * diagonal)
        vectors = (u + b * delta).reshape(len(u), 1, many, -1)
        log_det, white = whitened((prior + base)[:, None], vectors, seen)
        square = np.vecdot(white, white).reshape(u.shape[:3])
        out[:] = log_student(square, log_det[..., None], dof, kappa + n, width, log_gamma_ratio(dof / 2, width / 2))


def _write_diagonal(result, members, reference, u, delta, seen):
    n, shared = reference.n[:, :, None, None], members[0].shared
    squares = reference.squares[:, None] if shared else reference._diagonal(reference.scatter)
    for out, member in zip(result, members, strict=True):
        b, dof = member.kappa / (member.kappa + n), member.rho + 2 + (n.sum(1, keepdims=True) if shared else n)
        more = b * n * delta**2
        scale = (member.rho * reference.variance[:, None] + squares)[:, :, None]
        scale = scale + (more.sum(1, keepdims=True) if shared else more)
        z = u + b * delta
        with np.errstate(over="ignore"):
            column = log_student(z * z / scale, np.log(scale), dof, member.kappa + n, 1, log_gamma_ratio(dof / 2, 0.5))
        out[:] = (column if seen is None else np.where(seen[:, None, None], column, 0.0)).sum(3)


def _width(u, seen):
    return u.shape[3] if seen is None else seen.sum(1)[:, None, None]


def log_student(square, log_det, dof, kappa, width, gamma):
    """Return the log density of a Student-t of scale matrix A (kappa + 1)/(kappa dof), where z'A⁻¹z = square.

    ``log_det`` is log|A|, and ``gamma`` is log Γ((dof + width)/2)/Γ(dof/2), the same for all kappas.
    """
    scale = kappa / (kappa + 1)
    level = gamma - 0.5 * width * np.log(np.pi / scale) - 0.5 * log_det
    return level - (dof + width) / 2 * np.log1p(square * scale)


def log_density_without(posteriors, x, group, removed) -> np.ndarray:
    """Return the log density of rows x (n, D) of the fit under each group, (M, n, G), each without its own part.

    The weight ``removed`` (n,) leaves with each in its ``group`` (n,). The M ``posteriors`` have all rows; all of them
    share their matrices, or none does.
    """
    names, (every, dim) = ("mean", "kappa", "nu", "scale"), x.shape
    mean, kappa, nu, scale = (np.stack([getattr(model, name) for model in posteriors]) for name in names)
    root = np.linalg.cholesky(scale)
    log_det = 2 * np.log(np.diagonal(root, axis1=2, axis2=3)).sum(2)
    white, dof = triangular_inverse(root), nu - dim + 1
    result, shared = np.empty((*kappa.shape, every)), posteriors[0].shared
    for batch in pieces(every, mean.size, _WHITE):
        home, rows, r = group[batch], np.arange(batch.stop - batch.start), removed[batch]
        z = (x[batch] - mean[:, :, None]) @ white.mT
        square, at_home = np.vecdot(z, z), z[:, home, rows]
        inside = np.equal.outer(np.arange(kappa.shape[1]), home)
        kappa_left = kappa[..., None] - r * inside
        growth = kappa[:, home] / (kappa[:, home] - r)
        h = 1 - r * growth * np.vecdot(at_home, at_home)
        if shared:
            cross, touched = np.vecdot(z, at_home[:, None]), np.ones_like(inside)
        else:
            cross, touched = square, inside
        square += np.where(touched, (r * growth / h)[:, None] * cross**2, 0.0)
        square *= np.where(inside, growth[:, None] ** 2, 1.0)
        log_dets = log_det[..., None] + np.where(touched, np.log(h)[:, None], 0.0)
        dof_left = dof[..., None] - r * touched
        gamma = log_gamma_ratio(dof_left / 2, dim / 2)
        result[..., batch] = log_student(square, log_dets, dof_left, kappa_left, dim, gamma)
    return result.swapaxes(1, 2)
