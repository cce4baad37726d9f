r"""Student-t vectors that lack entries: densities, tails, conditionals and draws of what is missing.

Missing entries are integrated out: the observed ones have their block of S, and the same ν. Given its d observed
entries o, at the squared distance δ² = (x_o - m_o)' S_oo⁻¹ (x_o - m_o), the other entries u of a row are a Student-t
with ν + d degrees of freedom, whose squared scale is in `docs/mathematics/student-t.md` (Ding 2016, *The American
Statistician* 70, 293-295; ν is infinite for a Gaussian). Its draw is x_u = m_u + B (x_o - m_o) + √f (e_u - B e_o), with
B = S_uo S_oo⁻¹, e ~ N(0, S) a whole row, and f = (ν + δ²)/χ²_{ν+d}, or 1 for a Gaussian: e_u - B e_o has the covariance
of x_u given x_o, and none with e_o.

With the precision P = S⁻¹, worked out once for all rows, what a row lacks is eliminated: only matrices of the
columns that it lacks are factorised. With z = x - m, 0 where missing, and g = (P z)_u, e_u - B e_o = P_uu⁻¹ (P e)_u and

.. math:: B z_o = -P_{uu}^{-1} g, \quad S_{uu} - S_{uo} S_{oo}^{-1} S_{ou} = P_{uu}^{-1}, \quad
   \delta^2 = z^\top P z - g^\top P_{uu}^{-1} g, \quad |S_{oo}| = |S| \, |P_{uu}|

The rounding of δ² is that of z'Pz, so where this is large the density of a row takes a Cholesky factor of S_oo.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bayesgen.numerics.pieces import CELLS, blas_threads, grouped_patterns, patterns, pieces
from bayesgen.numerics.special import log_gamma_ratio, student_tail
from bayesgen.numerics.student import Whitener, inverse_of, write_log_density

_NEAR = 1e4  # of z'Pz, twice what it adds to a log density: rounding is then below 1e-11
_SQUARED = 1e150  # distance whose square may leave float64
_ROW = 8  # entries of a matrix that are factorised in the time in which one row is eliminated


def eliminator(precision, gone, group: Any = ...) -> np.ndarray:
    """Return W, lower triangular, with W'W = P_uu⁻¹ for the columns ``gone`` (m, k) that rows lack, (..., m, k, k).

    ``group`` (m, 1, 1) chooses one of the precisions (groups, D, D) for each; by default all are taken.
    """
    return inverse_of(np.linalg.cholesky(precision[group, gone[:, :, None], gone[:, None]]))


class Eliminated(NamedTuple):
    """Rows that lack as many entries u, which are eliminated from z'Pz under every group."""

    rows: np.ndarray  # (n,): places of the rows
    gone: np.ndarray  # (n, k): columns that each lacks
    kind: np.ndarray  # (n,): the pattern of gaps of each
    whiten: np.ndarray  # (groups, patterns, k, k): W, lower triangular, with W'W = P_uu⁻¹
    unit: Any  # (groups, n), or 1: unit of the distances z, where their squares would leave float64
    white: np.ndarray  # (groups, n, k): W g in this unit
    whole: np.ndarray  # (groups, n): z'Pz in the square of this unit

    @property
    def square(self) -> np.ndarray:
        """δ² in the square of the unit, (groups, n)."""
        return (self.whole - np.einsum("gnk,gnk->gn", self.white, self.white)).clip(0)

    @classmethod
    def of(cls, x, mean, precision) -> "Iterator[Eliminated]":
        """Yield rows (n, D), NaN where missing, some that lack as many entries at a time."""
        kinds, order, bounds = grouped_patterns(~np.isnan(x))
        lost, kind_of = (~kinds).sum(1), np.repeat(np.arange(len(kinds)), np.diff(bounds))
        for k in np.unique(lost):
            alike = np.flatnonzero(lost[kind_of] == k)
            step = max(1, CELLS // (len(mean) * max(x.shape[1], k * k)))
            for first in range(0, len(alike), step):
                chosen = alike[first : first + step]
                numbers, kind = np.unique(kind_of[chosen], return_inverse=True)
                columns, rows = np.nonzero(~kinds[numbers])[1].reshape(len(numbers), k), order[chosen]
                z, unit = x[rows] - mean[:, None], 1.0
                np.copyto(z, 0.0, where=np.isnan(z))
                if not (np.abs(z) < _SQUARED).all():
                    unit = np.abs(z).max(-1, initial=1.0)
                    z /= unit[..., None]
                with blas_threads(x.shape[1]):
                    turned = z @ precision
                whiten = eliminator(precision, columns)
                slopes = turned[:, np.arange(len(rows))[:, None], columns[kind]]
                white = np.einsum("gnij,gnj->gni", whiten[:, kind], slopes)
                whole = np.einsum("gnd,gnd->gn", z, turned)
                yield cls(rows, columns[kind], kind, whiten, unit, white, whole)


def log_density_with_gaps(x, mean, scale, dof) -> np.ndarray:
    """Return the log density of rows (n, D), NaN where missing, under every group, (groups, n)."""
    missing, dim, result = np.isnan(x), x.shape[1], np.empty((len(mean), len(x)))
    kinds, order, bounds = grouped_patterns(~missing)
    if _ROW * len(x) < dim * dim * (len(kinds) - 1):
        places = np.flatnonzero(~_write_eliminated(result, x, mean, scale, dof))
        if not len(places):
            return result
        kinds, order, bounds = grouped_patterns(~missing[places])
        order = places[order]
    rows = x.take(order, 0)
    np.copyto(rows, 0.0, where=missing.take(order, 0))
    density = np.empty((len(mean), len(order)))
    for these in pieces(len(kinds), mean.size * dim):
        ends = bounds[these.start : these.stop + 1]
        run, whitener = slice(ends[0], ends[-1]), Whitener.of_patterns(kinds[these], scale, dof)
        write_log_density(density[:, run], rows[run], mean, whitener, ends - ends[0])
    for k in range(len(density)):
        result[k, order] = density[k]
    return result


@np.errstate(over="ignore", invalid="ignore")
def _write_eliminated(result, x, mean, scale, dof) -> np.ndarray:
    """Write the log density of rows that lack at most half of their entries, and return True for those not far out."""
    few, near = np.flatnonzero(2 * np.isnan(x).sum(1) <= x.shape[1]), np.zeros(len(x), bool)
    inverse = inverse_of(np.linalg.cholesky(scale))
    log_root = -np.log(inverse.diagonal(axis1=1, axis2=2)).sum(1)
    for lack in Eliminated.of(x[few], mean, inverse.mT @ inverse):
        rows, seen = few[lack.rows], x.shape[1] - lack.gone.shape[1]
        log_det = log_root[:, None] - np.log(lack.whiten.diagonal(axis1=2, axis2=3)).sum(2)[:, lack.kind]
        level = log_gamma_ratio(dof / 2, seen / 2) - 0.5 * seen * np.log(np.pi * dof)
        half, square = (dof + seen) / 2, lack.square * lack.unit**2
        result[:, rows] = level[:, None] - log_det - half[:, None] * np.log1p(square / dof[:, None])
        near[rows] = ((1 + seen / dof)[:, None] * lack.whole * lack.unit**2 < _NEAR).all(0)
    return near


def tail_with_gaps(x, mean, scale, dof) -> np.ndarray:
    """Return P(p(new) <= p(row)) for a new row with the gaps of each row (n, D), NaN where missing, shape (groups, n).

    With δ² = (x - m)' S⁻¹ (x - m) over the d observed entries, δ²/d ~ F(d, dof); 1 if none is observed.
    """
    result = np.ones((len(mean), len(x)))
    for seen, rows in patterns(~np.isnan(x)):
        if len(seen):
            matrix = inverse_of(np.linalg.cholesky(dof[:, None, None] * scale[:, seen[:, None], seen]))
            z = matrix @ (x[np.ix_(rows, seen)] - mean[:, None, seen]).mT
            with np.errstate(over="ignore"):
                square = (z * z).sum(1)
            result[:, rows] = student_tail(square, len(seen), dof[:, None])
    return result


def conditional_student(x, mean, scale, dof):
    """Return the Student-t of each missing entry of rows (n, D), given the observed entries of its row.

    It takes means (..., D), scale matrices (..., D, D), which are covariances where ``dof`` (...) is infinite, and
    returns centre and scale (..., n, D), NaN where an entry is observed, and degrees of freedom (..., n, 1).
    """
    lead, dim = mean.shape[:-1], x.shape[1]
    mean, dof = mean.reshape(-1, dim), np.broadcast_to(dof, lead).reshape(-1, 1)
    inverse = inverse_of(np.linalg.cholesky(scale.reshape(-1, dim, dim)))
    location, spread = np.full((2, len(mean), *x.shape), np.nan)
    freedom = dof + (~np.isnan(x)).sum(1)
    for lack in Eliminated.of(x, mean, inverse.mT @ inverse):
        places = slice(None), lack.rows[:, None], lack.gone
        moved = np.einsum("gnji,gnj->gni", lack.whiten[:, lack.kind], lack.white)
        location[places] = mean[:, lack.gone] - np.expand_dims(lack.unit, -1) * moved
        factor = _widening(lack.unit * np.sqrt(lack.square), dof, freedom[:, lack.rows])
        spread[places] = np.sqrt((lack.whiten**2).sum(-2))[:, lack.kind] * factor[..., None]
    return location.reshape(*lead, *x.shape), spread.reshape(*lead, *x.shape), freedom.reshape(*lead, -1, 1)


def _widening(distance, dof, freedom):
    """Return √((ν + δ²)/(ν + d)) from δ, ν and ν + d, and 1 where ν is infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(dof), 1.0, np.hypot(np.sqrt(dof), distance) / np.sqrt(freedom))


def complete(away, seen, precision) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Write into rows of mean 0 the conditional means of their missing entries.

    Rows ``away`` (n, D) are 0 where they are not ``seen``, and ``precision`` (D, D) is P. Yield m rows that lack k
    entries, the columns (m, k) of these, and their conditional covariances, (m, k, k).
    """
    lost = (~seen).sum(1)
    for k in np.unique(lost[lost > 0]):
        rows = np.flatnonzero(lost == k)
        columns = np.nonzero(~seen[rows])[1].reshape(-1, k)
        whiten = eliminator(precision, columns)
        covariance = whiten.mT @ whiten
        pull = np.take_along_axis(away[rows] @ precision, columns, 1)
        away[rows[:, None], columns] = -(covariance @ pull[:, :, None])[:, :, 0]
        yield rows, columns, covariance


def fill_student(x, group, mean, scale, dof, rng) -> np.ndarray:
    """Draw the missing entries of rows (n, D), each a Student-t or Gaussian vector, given the observed ones.

    Row i has the distribution ``group[i]`` of G, with means (G, D), scale matrices (G, D, D), which are covariances
    where degrees of freedom (G,) are infinite.
    """
    result, missing, dof = x.copy(), np.isnan(x), np.broadcast_to(dof, len(mean))[group]
    noise, chance, freedom = np.empty_like(x), np.ones(len(x)), dof + (~missing).sum(1)
    for _, rows in patterns(~missing):
        noise[rows] = rng.standard_normal((len(rows), x.shape[1]))
        if not np.isinf(dof[rows]).all():
            chance[rows] = rng.chisquare(freedom[rows])
    z = np.where(missing, 0.0, x - mean[group])
    unit = np.abs(z).max(1, initial=1.0)
    z /= unit[:, None]
    used, place = np.unique(group, return_inverse=True)
    inverse = inverse_of(np.linalg.cholesky(scale[used]))
    precision, turned = inverse.mT @ inverse, np.empty((*x.shape, 2))
    for g in range(len(used)):
        rows = np.flatnonzero(place == g)
        turned[rows, :, 0], turned[rows, :, 1] = z[rows] @ precision[g], noise[rows] @ inverse[g]
    lost, whole = missing.sum(1), np.einsum("ij,ij->i", z, turned[..., 0])
    with np.errstate(invalid="ignore"):
        factor = np.where(np.isinf(dof), 1.0, np.sqrt(freedom / chance))
    for k in np.unique(lost[lost > 0]):
        alike = np.flatnonzero(lost == k)
        for piece in pieces(len(alike), k * k):
            rows = alike[piece]
            gone = np.nonzero(missing[rows])[1].reshape(-1, k)
            whiten = eliminator(precision, gone, place[rows][:, None, None])
            white, noisy = np.moveaxis(whiten @ turned[rows[:, None], gone], 2, 0)
            square = whole[rows] - (white * white).sum(1)
            spread = factor[rows] * _widening(unit[rows] * np.sqrt(square.clip(0)), dof[rows], freedom[rows])
            moved = (spread[:, None] * noisy - unit[rows][:, None] * white)[:, None] @ whiten
            result[rows[:, None], gone] = mean[group[rows][:, None], gone] + moved[:, 0]
    return result
