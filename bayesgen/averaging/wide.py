r"""Gaussians of more columns than are modelled together elsewhere, exact in the coordinates that the rows span.

The members are those of `gaussians` with full or shared covariances, of one Gaussian per class. In units s of the
columns, and within the span Q of the rows, the scale of a posterior is A_g or A, a matrix of r x r, and ρ I outside:
squares are c'A⁻¹c + e²/ρ, and log-determinants log|A| + (D - r) log ρ + 2 Σ log s. Section "More columns than rows" of
`docs/mathematics/averaged.md` derives these and names all letters. Each l has a scale and a basis of its own.

A row is left out of W, S_g and m by subtraction, with weights that may be below 0 in one rank more. The scale s, like
the bends, is learned without the fold of the row. All vectors are combinations of the row and the means, so their
products under one factorisation serve every row, κ and departure. Missing entries m are integrated out: with P = A⁻¹,
o the entries that a row has, and any numbers in v_m and w_m,

.. math:: v_o^\top A_{oo}^{-1} w_o = v^\top P w - (P v)_m^\top P_{mm}^{-1} (P w)_m, \quad |A_{oo}| = |A| \, |P_{mm}|,
   \quad P = \tfrac1\rho (I - Q Q^\top) + Q (Q^\top A Q)^{-1} Q^\top

so that a factor of the few entries that a row lacks comes to one of A, which serves all rows. No eigenvalue of P is
above 1/ρ, and a missing entry counts as one of the centre: what cancels is small.
"""

import functools
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen.averaging.member import FittedMembers
from bayesgen.averaging.member_rows import HeldOut, Rows
from bayesgen.averaging.students import Reference, freedom, log_student
from bayesgen.averaging.view import WIDE, Training, View
from bayesgen.core.errors import NoClosedForm
from bayesgen.core.shapes import require_fit, shaped
from bayesgen.models.moments import Moments, moments
from bayesgen.numerics.pieces import grouped_patterns, pieces, taken
from bayesgen.numerics.special import log_gamma_ratio
from bayesgen.numerics.student_gaps import eliminator
from bayesgen.numerics.yeo_johnson import FAR, far_rows

_RANK = 1e-13  # share of the largest square below which a direction is none
_FAR = 1e7  # square of the distance to its mean from which a row is left out by summing the others anew
_CELLS = 1 << 18  # entries of matrices that are factorised at a time
_APART = 1e5  # scales by which a row may lie from the others


@dataclass(frozen=True)
class Span:
    """Coordinates of rows, in units of one scale per column."""

    centre: np.ndarray  # centre, scale: (D,): where coordinates begin, and the unit of each column
    scale: np.ndarray
    # (r, D), or None: orthonormal directions; None where there are no more columns than rows, which then are the
    # coordinates
    basis: np.ndarray | None

    @classmethod
    def of(cls, y, scale) -> "Span":
        """Return the coordinates that the rows (N, D) span.

        They begin at the row in the midst of the others, and take the directions to these at unit length, so that a
        single row far away hides no direction.
        """
        centre = y[((y - np.median(y, axis=0)) ** 2 / scale**2).sum(1).argmin()]
        if y.shape[1] <= len(y):
            return cls(centre, scale, None)
        z = (y - centre) / scale
        z /= np.sqrt((z * z).sum(1).clip(1e-300))[:, None]
        squares, vectors = np.linalg.eigh(z @ z.T)
        kept = squares > _RANK * squares[-1]
        return cls(centre, scale, (vectors[:, kept] / np.sqrt(squares[kept])).T @ z)

    def of_rows(self, y) -> tuple[np.ndarray, np.ndarray]:
        """Return the coordinates of rows, (n, r), and the squares of their distances outside the span, (n,)."""
        z = (y - self.centre) / self.scale
        if self.basis is None:
            return z, np.zeros(len(z))
        c = z @ self.basis.T
        return c, np.maximum((z * z).sum(1) - (c * c).sum(1), 0.0)


@dataclass(frozen=True)
class Departure:
    """The weight and vectors that leave with each row, as combinations of the row and G means, (n, ..., 1 + G)."""

    n: np.ndarray  # (n, G): weight of each group without what leaves
    lost: np.ndarray  # (n,): the a by which W and the scatter of the group of the row fall, in units of dd'
    group: np.ndarray  # (n,): the group of the row
    away: np.ndarray  # (n, 1 + G): d, from the mean of the group to the row
    delta: np.ndarray  # delta, u: (n, G, 1 + G): from the centre to each mean, and from each mean to the row
    u: np.ndarray

    @classmethod
    def of(cls, n, group, removed, rows: int) -> "Departure":
        """Return the departures of rows that take a weight out of their groups; none leaves where ``group`` is None."""
        if group is None:
            group, removed = np.zeros(rows, np.intp), np.zeros(rows)
        count, every_row = len(n), np.arange(rows)
        total, n_left = n.sum(), np.repeat(n[None], rows, axis=0)
        n_left[every_row, group] -= removed
        n_left[n_left < 1e-12 * n] = 0.0
        n_group = n_left[every_row, group]
        ratio = np.divide(removed, n_group, out=np.zeros(rows), where=n_group > 0)
        share = removed / np.maximum(total - removed, 1e-300)
        row = np.eye(1 + count)[0]
        centre = np.append(0.0, n / total) * (1 + share)[:, None] - share[:, None] * row
        mean = np.repeat(np.eye(count, 1 + count, 1)[None], rows, axis=0)
        away = row - mean[every_row, group]
        mean[every_row, group] -= ratio[:, None] * away
        mean = np.where((n_left > 0)[..., None], mean, centre[:, None])
        return cls(n_left, ratio * n[group], group, away, mean - centre[:, None], row - mean)

    def take(self, rows) -> "Departure":
        """Return some of the rows."""
        return Departure(*(array[rows] for array in vars(self).values()))


@dataclass(frozen=True, eq=False)
class WideView(FittedMembers):
    """Full and shared Gaussians of many columns."""

    keeps_rows: ClassVar = True

    view: View  # bends, and what gaps at fit are completed from
    members: tuple[Any, ...]  # members of one l side by side, and among these those that differ in kappa alone
    scale: np.ndarray = field(metadata=shaped("shrinkages columns", positive=True))  # s of each l, ascending
    # the rows of the fit, bent and completed: their span holds the members' scatters
    y: np.ndarray = field(metadata=shaped("rows columns"))
    codes: np.ndarray = field(metadata=shaped("rows", places="classes"))  # their classes
    weight: np.ndarray = field(metadata=shaped("rows", positive=True))  # their weights

    @property
    def bend(self):
        return self.view.warp

    @classmethod
    def fit(cls, members, training: Training) -> "WideView":
        """Learn bends and scales from the rows to learn from, and take the rows to sum."""
        classes, dim = training.rows.classes, training.rows.x.shape[1]
        view = View(training.warp, training.filling, np.zeros((classes, dim)), np.arange(classes), True)
        levels = np.unique([member.shrinkage for member in members])
        y, scale = view.completed(training.summed)[0], _scales(view, training.rows, levels)
        if (np.abs(y - y.mean(0)) > _APART * scale[0]).any():  # a row left out, in whose units others have no digits
            scale = _scales(view, training.summed, levels)
        return cls(view, members, scale, y, training.summed.codes, training.summed.weight)

    @functools.cached_property
    def spans(self) -> list[tuple[Span, Moments]]:
        """The coordinates under each l, and the moments of the classes there."""
        result = []
        for scale in self.scale:
            span = Span.of(self.y, scale)
            result.append((span, self._moments(span, self.y, self.codes, self.weight)))
        return result

    def _moments(self, span: Span, y, codes, weight) -> Moments:
        return moments(span.of_rows(y)[0], codes, self.view.classes, weight, vector=True)

    def fits(self, sizes):
        """Require a group for each class, and a scale for each shrinkage; see `check_shapes`."""
        require_fit(len(self.view.owner) == sizes["classes"], "the wide Gaussians have other classes")
        require_fit(len(self.scale) == len({member.shrinkage for member in self.members}), "a shrinkage has no scale")
        require_fit(all(m.proper and not m.diagonal for m in self.members), "a member is none")
        return sizes

    def written(self, numbers, categories):
        """Raise: the coordinates hold the rows of the fit."""
        raise NoClosedForm(
            f"its Gaussians of {len(numbers)} columns hold the rows of the fit; choose at most {WIDE} numeric columns"
        )

    def log_density(self, x, c, used) -> np.ndarray:
        result = np.empty((len(used), len(x), self.view.classes))
        for batch in pieces(len(x), x.shape[1]):
            result[:, batch] = self._of_rows(x[batch], used)
        return result

    def _of_rows(self, x, used) -> np.ndarray:
        y, seen = self.view.read(x)
        far = far_rows(y)
        if not len(far):
            return self._density(y, seen, used)
        sign, size = self.view.warp.polar(x[far])
        beyond = np.maximum(size - np.log(FAR), 0.0).max(1)[:, None]
        y[far] = sign * np.exp(size - beyond)
        result = self._density(y, seen, used)
        width = np.full(len(far), y.shape[1]) if seen is None else seen[far].sum(1)
        n = np.bincount(self.codes, self.weight, self.view.classes)
        for density, m in zip(result, used, strict=True):  # as in `students.log_density_far`
            dof = self.members[m].rho + 2 + (n.sum() if self.members[m].shared else n)
            density[far] -= (dof + width[:, None]) * beyond
        return result

    def loo_log_density(self, held: HeldOut) -> np.ndarray:
        (y, seen), used = self.view.read(held.rows.x), np.arange(len(self.members))
        result = np.empty((len(used), len(y), self.view.classes))
        anew = np.ones(len(y), bool)
        if held.single:
            whole, _ = self.view.completed(held.gone)
            anew = self._far(whole, held.gone.codes)
            near = np.flatnonzero(~anew)
            gone = held.gone.codes[near], held.gone.weight[near]
            result[:, near] = self._density(whole[near], taken(seen, near), used, *gone)
        for b in np.unique(held.without[anew]):
            predicted, others = np.flatnonzero(held.without == b), held.others(b)
            if not len(others):
                result[:, predicted] = 0.0
                continue
            table = self.view.completed(others)[0], others.codes, others.weight
            sums = [self._moments(span, *table) for span, _ in self.spans]
            result[:, predicted] = self._density(y[predicted], taken(seen, predicted), used, sums=sums)
        return result

    def _far(self, y, codes) -> np.ndarray:
        """Return True for rows so far from the mean of their group that taking them out would lose digits."""
        result = np.zeros(len(y), bool)
        for span, sums in self.spans:
            away = span.of_rows(y)[0] - sums.mean[codes]
            free = freedom(sums.n.sum() - 1, (sums.n > 0).sum())
            result |= (away * away).sum(1) * (1 + 1 / free) > _FAR
        return result

    def _density(self, y, seen, used, group=None, removed=None, sums=None) -> np.ndarray:
        """Return log densities, (m, n, K), without some weight of each row in its group, where these are given."""
        result = np.empty((len(used), len(y), self.view.classes))
        levels, start = np.unique([member.shrinkage for member in self.members]), 0
        for shrinkage, alike in groupby([self.members[m] for m in used], lambda m: m.shrinkage):
            members, place = list(alike), int(np.searchsorted(levels, shrinkage))
            span, sums_of_span = self.spans[place]
            sums_of_span = sums_of_span if sums is None else sums[place]
            departure = Departure.of(sums_of_span.n, group, removed, len(y))
            rows = Coordinates.of(span, y, seen, sums_of_span.mean)
            result[start : start + len(members)] = _densities(members, sums_of_span, departure, rows)
            start += len(members)
        return result


def _scales(view: View, rows: Rows, levels) -> np.ndarray:
    reference = Reference.of(view.sum_rows(rows))
    within = reference.squares[0] / freedom(reference.n[0].sum(), (reference.n[0] > 0).sum())
    return np.sqrt(reference.variance[0] - (1 - levels)[:, None] * within)


@dataclass(frozen=True)
class Coordinates:
    """Rows in the coordinates of a span, beside the means of G groups."""

    span: Span
    c: np.ndarray  # (n, r): Q'x of the rows, in units of the columns, 0 where an entry is missing
    square: np.ndarray  # (n,): their squares
    seen: np.ndarray | None  # (n, D), or None: True where an entry is not missing
    mean: np.ndarray  # (G, r): coordinates of the means

    @classmethod
    def of(cls, span: Span, y, seen, mean) -> "Coordinates":
        """Return rows (n, D)."""
        z = (y - span.centre) / span.scale
        if seen is not None:
            z = np.where(seen, z, 0.0)
        return cls(span, z if span.basis is None else z @ span.basis.T, (z * z).sum(1), seen, mean)

    def take(self, places) -> "Coordinates":
        """Return some of the rows."""
        return Coordinates(self.span, self.c[places], self.square[places], taken(self.seen, places), self.mean)

    @property
    def width(self) -> np.ndarray:
        """Number of columns that the rows have, () or (n, 1)."""
        return np.array(len(self.span.scale)) if self.seen is None else self.seen.sum(1)[:, None]

    @functools.cached_property
    def log_scale(self):
        """Sum of log s over these."""
        log_scale = np.log(self.span.scale)
        return log_scale.sum() if self.seen is None else self.seen @ log_scale

    @functools.cached_property
    def gaps(self) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
        """The columns of Q' (u, r) that some row lacks, and patterns of gaps.

        Patterns of the same number k of entries and R of rows stand together: their rows (p, R), and the places of what
        these lack among the u columns (p, k).
        """
        seen = np.asarray(self.seen)
        columns, parts = np.flatnonzero(~seen.all(0)), []
        kinds, order, bounds = grouped_patterns(seen[:, columns])
        lost, size = (~kinds).sum(1), np.diff(bounds)
        for k, count in np.unique(np.stack([lost, size], axis=1)[lost > 0], axis=0):
            alike = np.flatnonzero((lost == k) & (size == count))
            for batch in np.split(alike, np.arange(0, len(alike), max(1, _CELLS // k**2))[1:]):
                rows = order[bounds[batch][:, None] + np.arange(count)]
                parts.append((rows, np.nonzero(~kinds[batch])[1].reshape(-1, k)))
        basis = np.eye(len(self.span.scale)) if self.span.basis is None else self.span.basis
        return basis[:, columns].T, parts

    def products(self, matrix, rho) -> tuple[np.ndarray, np.ndarray]:
        """Return log|A_oo| (n,) and the products v'A_oo⁻¹w of each row and the means, (n, 1 + G, 1 + G).

        A is ``matrix`` within the span and ρ I outside.
        """
        count, rank, dim = len(self.c), len(matrix), len(self.span.scale)
        root = np.linalg.cholesky(matrix)
        white = solve_triangular(root, np.concatenate([self.c, self.mean]).T, lower=True, check_finite=False).T
        row, means = white[:count], white[count:]
        outside = np.maximum(self.square - (self.c * self.c).sum(1), 0.0) if dim > rank else 0.0
        square, across = (row * row).sum(1) + outside / rho, row @ means.T
        between = np.repeat((means @ means.T)[None], count, axis=0)
        log_det = np.full(count, 2 * np.log(np.diagonal(root)).sum() + (dim - rank) * np.log(rho)) + 2 * self.log_scale
        for rows, m, precision, slope, slopes in self._missing(root, row, means, rho):
            whiten = eliminator(precision, m)
            a, b = slope[rows[:, :, None], m[:, None]] @ whiten.mT, slopes[:, m].swapaxes(0, 1) @ whiten.mT
            square[rows] -= (a * a).sum(2)
            across[rows] -= a @ b.mT
            between[rows] -= (b @ b.mT)[:, None]
            log_det[rows] -= 2 * np.log(np.diagonal(whiten, axis1=1, axis2=2)).sum(1)[:, None]
        result = np.empty((count, 1 + len(means), 1 + len(means)))
        result[:, 0, 0], result[:, 0, 1:], result[:, 1:, 0], result[:, 1:, 1:] = square, across, across, between
        return log_det, result

    def _missing(self, root, row, means, rho):
        """Yield rows that lack entries, the places of these entries, and there P and its products with rows and means.

        ``root`` is the factor of A within the span, and ``row`` and ``means`` are whitened by it.
        """
        if self.seen is None:
            return
        basis, parts = self.gaps
        white = solve_triangular(root, basis.T, lower=True, check_finite=False)
        precision, slope, slopes = white.T @ white, row @ white, means @ white
        if basis.shape[1] < len(self.span.scale):
            precision += (np.eye(len(basis)) - basis @ basis.T) / rho
            slope -= self.c @ basis.T / rho
        for rows, m in parts:
            yield rows, m, precision, slope, slopes


def _densities(members, sums: Moments, departure: Departure, rows: Coordinates) -> np.ndarray:
    result = np.empty((len(members), *departure.n.shape))
    free, start = freedom(departure.n.sum(1), (departure.n > 0).sum(1)).round(9), 0
    within, groups = sums.scatter.sum(0), np.arange(len(sums.n))
    for (shared, rho, shrinkage), alike in groupby(members, lambda m: (m.shared, m.rho, m.shrinkage)):
        kappas = [member.kappa for member in alike]
        density_of_kappas = result[start : start + len(kappas)]
        start += len(kappas)
        for value in [0.0] if shared else np.unique(free):  # one, but where weights differ
            places = np.flatnonzero(shared | (free == value))
            chosen, gone = (rows if len(places) == len(free) else rows.take(places)), departure.take(places)
            factor = 1.0 if shared else rho * (1 - shrinkage) / value
            base = rho * np.eye(len(within)) + factor * within
            for groups_alike in [groups] if shared else groups[:, None]:
                log_det, products = chosen.products(base if shared else base + sums.scatter[groups_alike[0]], rho)
                lost = gone.lost * (factor + (not shared) * (gone.group == groups_alike[0]))
                density = _students(kappas, rho, shared, groups_alike, gone, lost, log_det, products, chosen.width)
                density_of_kappas[:, places[:, None], groups_alike] = density
    return result


def _students(kappas, rho, shared, groups, gone: Departure, lost, log_det, products, width) -> np.ndarray:
    """Return log densities of some groups under the kappas, (m, n, g), by Woodbury from one factorisation."""
    n, delta, u = gone.n[:, groups], gone.delta[:, groups], gone.u[:, groups]
    known, total = 1 + len(groups), gone.n.sum(1, keepdims=True)
    dof = rho + 2 + (total if shared else n)
    gamma = log_gamma_ratio(dof / 2, width / 2)
    result: Any = np.empty((len(kappas), *n.shape))
    for out, kappa in zip(result, kappas, strict=True):
        b = kappa / (kappa + n)
        vectors = np.concatenate([gone.away[:, None], delta, u + b[..., None] * delta], axis=1)
        gram = vectors @ products @ vectors.swapaxes(1, 2)
        weight = np.concatenate([-lost[:, None], n * b], axis=1)[:, :, None]
        square = np.diagonal(gram, axis1=1, axis2=2)[:, known:]
        update = np.eye(known) + weight * gram[:, :known, :known]
        across = gram[:, :known, known:]
        square = square - (across * np.linalg.solve(update, weight * across)).sum(1)
        log_dets = (log_det + np.linalg.slogdet(update)[1])[:, None]
        out[:] = log_student(square, log_dets, dof, kappa + n, width, gamma)
    return result
