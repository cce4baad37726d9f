r"""Statistics of groups of vectors, with all rows or without one, and the prior that follows them.

Groups are the classes, or components within them. Let n_g, m_g, S_g be the weight, mean and scatter of group g, N the
total weight and K the number of groups with any weight. The priors of all members follow

.. math:: m = \tfrac1N \sum_g n_g m_g, \quad W = \sum_g S_g, \quad T_{jj} = W_{jj} + \sum_g n_g (m_{gj} - m_j)^2, \quad
   V = \frac{W + \gamma\, \mathrm{diag}(T)/N}{\max(N - K, 0) + \gamma}

so V is the pooled within-group covariance, with a hundredth of a degree of freedom (γ) of the total variance of each
column added to its diagonal: with a single row in each group V still exists, and is diagonal.

Removing weight r of row x from group c gives, with d = x - m_c,

.. math:: n_c' = n_c - r, \quad m_c' = m_c - \tfrac{r}{n_c'} d, \quad S_c' = S_c - \tfrac{r n_c}{n_c'} d d^\top, \quad
   m' = m - \tfrac{r}{N - r}(x - m), \quad T' = T - \tfrac{r N}{N - r} (x - m)^2

(Chan, Golub and LeVeque 1983, solved for one of the two parts). If a row makes up nearly all of the squares of some
column, the subtraction loses digits, and the other rows are summed anew.

Columns that all members take as independent need no more of S, W and V than the diagonals: `Moments` by column, which
have one axis of columns in place of two, give a `Reference` by column.
"""

from dataclasses import dataclass, fields

import numpy as np

from bayesgen.models.moments import Moments

_GAMMA = 0.01  # degrees of freedom that the total variance is worth in V
_LOST = 1e-5  # share of the squares that must be left, or five digits are gone


@dataclass(frozen=True)
class Reference:
    """Statistics of groups and the prior that follows them, without each of B rows, or with all rows (B = 1).

    Attributes
    ----------
    n : array, shape (B, G)
        Weight of each group.
    mean : array, shape (B, G, D)
        Mean of each group; the mean of all rows where it has no weight.
    scatter : array, shape (B, G, D, D)
        Scatter of each group. Here and below matrices (D, D) are diagonals (D,) if the statistics are by column.
    centre : array, shape (B, D)
        Mean of all rows, m.
    within : array, shape (B, D, D)
        Pooled scatter within the groups, W.
    covariance : array, shape (B, D, D)
        V.
    """

    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray
    centre: np.ndarray
    within: np.ndarray
    covariance: np.ndarray

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
    def without(cls, statistics: Moments, x, group, removed, rows) -> "Reference":
        """Return the reference without each of some rows.

        Parameters
        ----------
        statistics : Moments
            Moments of all rows, by group.
        x : array, shape (B, D)
            The rows to leave out.
        group : int array, shape (B,)
            Their groups.
        removed : array, shape (B,)
            The weight to remove from each row.
        rows : callable
            ``rows(b)`` returns the `Moments` of all rows but row b, summed anew.
        """
        total, centre, within, squares = _totals(statistics)
        every = weights(statistics)
        n_own, left = every[group], total - removed
        rest = n_own - removed
        rest[rest < 1e-12 * n_own] = 0.0
        some, any_left = rest > 0, left > 1e-12 * total
        ratio = np.divide(removed, rest, out=np.zeros_like(rest), where=some)
        d, away = x - statistics.mean[group], x - centre
        if statistics.vector:
            outer = (ratio * n_own)[:, None, None] * (d[:, :, None] * d[:, None, :])
        else:
            outer = (ratio * n_own)[:, None] * d * d
        outer[~some] = statistics.scatter[group[~some]]
        own_mean = statistics.mean[group] - ratio[:, None] * d
        within = within - outer
        share = np.divide(removed, left, out=np.zeros_like(left), where=any_left)[:, None]
        centre = centre - share * away
        squares_left = squares - total * share * away**2
        here = np.arange(len(x))
        n, mean, scatter = (np.repeat(a[None], len(x), axis=0) for a in (every, statistics.mean, statistics.scatter))
        n[here, group], mean[here, group] = rest, own_mean
        scatter[here, group] -= outer
        scatter_left = _diagonal(within, statistics)
        few = (scatter_left < _LOST * _diagonal(within + outer, statistics)) | (squares_left < _LOST * squares)
        for b in np.flatnonzero(few.any(1)):
            anew = rows(int(b))
            _, centre[b], within[b], squares_left[b] = _totals(anew)
            n[b], mean[b], scatter[b] = weights(anew), anew.mean, anew.scatter
        mean = np.where((n > 0)[..., None], mean, centre[:, None])
        covariance = _covariance(np.where(any_left, left, 0.0), (n > 0).sum(1), within, squares_left)
        return cls(n, mean, scatter, centre, within, covariance)

    @classmethod
    def without_groups(cls, statistics: Moments, gone: Moments, rows) -> "Reference":
        """Return the reference without the rows of each of B departures, which may be of several groups.

        Parameters
        ----------
        statistics : Moments
            Moments of all rows, by group.
        gone : Moments
            Moments of the rows that leave, by departure and group, (B, G, D, D).
        rows : callable
            ``rows(b)`` returns the `Moments` of all rows but those of departure b, summed anew.
        """
        every = zip((statistics.n, statistics.mean, statistics.scatter), (gone.n, gone.mean, gone.scatter), strict=True)
        whole = Moments(*(np.broadcast_to(a, b.shape) for a, b in every))
        left = (whole - gone).without_dust(whole)
        _, _, all_within, all_squares = _totals(statistics)
        _, _, within, squares = _totals(left)
        scatter = _diagonal(within, statistics)
        few = (scatter < _LOST * _diagonal(all_within, statistics)) | (squares < _LOST * all_squares)
        for b in np.flatnonzero(few.any(1)):
            anew = rows(int(b))
            left.n[b], left.mean[b], left.scatter[b] = anew.n, anew.mean, anew.scatter
        return cls.of(left)

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

    @property
    def squares_of_groups(self) -> np.ndarray:
        """The diagonals of the scatters of all groups, (B, G, D)."""
        return self._diagonal(self.scatter)

    def _diagonal(self, matrix):
        return matrix if self.covariance.ndim == 2 else np.diagonal(matrix, axis1=-2, axis2=-1)


def weights(statistics: Moments) -> np.ndarray:
    """Return the weight of each group, (..., G), also of moments by column, which are of complete rows."""
    return statistics.n if statistics.vector else statistics.n[..., 0]


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
