r"""Statistics of groups of vectors as they are without a row, and the prior that follows them.

Groups are the classes, or components within them. With n_g, m_g, S_g the weight, mean and scatter of group g, N their
total weight and K the number of groups that have any, the priors of all members follow

.. math:: m = \tfrac1N \sum_g n_g m_g, \quad W = \sum_g S_g, \quad T_{jj} = W_{jj} + \sum_g n_g (m_{gj} - m_j)^2, \quad
   V = \frac{W + \gamma\, \mathrm{diag}(T)/N}{\max(N - K, 0) + \gamma}

so V is the pooled within-group covariance, its diagonal never below a hundredth of a degree of freedom (γ) of the
column's own total variance: it exists with a single row in each group, and is diagonal then.

Without weight r of row x in group c, with d = x - m_c,

.. math:: n_c' = n_c - r, \quad m_c' = m_c - \tfrac{r}{n_c'} d, \quad S_c' = S_c - \tfrac{r n_c}{n_c'} d d^\top, \quad
   m' = m - \tfrac{r}{N - r}(x - m), \quad T' = T - \tfrac{r N}{N - r} (x - m)^2

(Chan, Golub and LeVeque 1983, solved for one of the two parts). Where a row makes up all but a small part of some
column's squares the subtraction loses digits, and the other rows are summed anew.
"""

from dataclasses import dataclass

import numpy as np

from bayesgen.models.moments import Moments

_GAMMA = 0.01  # degrees of freedom that the total variance is worth in V
_LOST = 1e-5  # of the squares must be left, or five digits are gone


@dataclass(frozen=True)
class Reference:
    """Statistics of groups with the prior that follows them, for each of B rows; B = 1 where all rows share them.

    Attributes
    ----------
    n : array, shape (B, G)
        Weight of each group.
    mean : array, shape (B, G, D)
        Its mean; the mean of all rows where it has no weight.
    scatter : array, shape (G, D, D)
        Scatter of each group with all its rows.
    own : int array, shape (B,), or None
        The group that row b was taken out of.
    own_scatter : array, shape (B, D, D), or None
        The scatter of that group without the row.
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
    own: np.ndarray | None
    own_scatter: np.ndarray | None
    centre: np.ndarray
    within: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, statistics: Moments) -> "Reference":
        """All the rows."""
        n, mean, scatter = statistics.n, statistics.mean, statistics.scatter
        total, centre, within, squares = _totals(statistics)
        mean = np.where((n > 0)[:, None], mean, centre)
        covariance = _covariance(total, (n > 0).sum(), within, squares)
        return cls(n[None], mean[None], scatter, None, None, centre[None], within[None], covariance[None])

    @classmethod
    def without(cls, statistics: Moments, x, group, removed, rows) -> "Reference":
        """Each of some rows left out.

        Parameters
        ----------
        statistics : Moments
            Of all rows, by group.
        x : array, shape (B, D)
            The rows to leave out.
        group : int array, shape (B,)
            Their groups.
        removed : array, shape (B,)
            The weight to take out of each.
        rows : callable
            ``rows(b)`` gives the `Moments` of all rows but row b, summed anew.
        """
        total, centre, within, squares = _totals(statistics)
        n_own, left = statistics.n[group], total - removed
        rest = n_own - removed
        rest[rest < 1e-12 * n_own] = 0.0
        some, any_left = rest > 0, left > 1e-12 * total
        ratio = np.divide(removed, rest, out=np.zeros_like(rest), where=some)
        d, away = x - statistics.mean[group], x - centre
        outer = (ratio * n_own)[:, None, None] * (d[:, :, None] * d[:, None, :])
        outer[~some] = statistics.scatter[group[~some]]
        own_scatter = statistics.scatter[group] - outer
        own_mean = statistics.mean[group] - ratio[:, None] * d
        within = within - outer
        share = np.divide(removed, left, out=np.zeros_like(left), where=any_left)[:, None]
        centre = centre - share * away
        squares_left = squares - total * share * away**2
        here = np.arange(len(x))
        n = np.repeat(statistics.n[None], len(x), axis=0)
        n[here, group] = rest
        mean = np.repeat(statistics.mean[None], len(x), axis=0)
        mean[here, group] = own_mean
        scatter_left = np.diagonal(within, axis1=1, axis2=2)
        few = (scatter_left < _LOST * np.diagonal(within + outer, axis1=1, axis2=2)) | (squares_left < _LOST * squares)
        for b in np.flatnonzero(few.any(1)):
            anew = rows(b)
            _, centre[b], within[b], squares_left[b] = _totals(anew)
            n[b], mean[b], own_scatter[b] = anew.n, anew.mean, anew.scatter[group[b]]
        mean = np.where((n > 0)[..., None], mean, centre[:, None])
        covariance = _covariance(np.where(any_left, left, 0.0), (n > 0).sum(1), within, squares_left)
        return cls(n, mean, statistics.scatter, group, own_scatter, centre, within, covariance)

    def scatter_of(self, g: int) -> np.ndarray:
        """Scatter of group g without the rows, (B, D, D), or (1, D, D) where no row left it."""
        if self.own is None or self.own_scatter is None or not (own := self.own == g).any():
            return self.scatter[g][None]
        result = np.repeat(self.scatter[g][None], len(own), axis=0)
        result[own] = self.own_scatter[own]
        return result


def _totals(statistics: Moments):
    """Weight and mean of all rows, pooled scatter within the groups, and each column's total squares."""
    n, total = statistics.n, statistics.n.sum()
    start = statistics.mean[n.argmax()]
    centre = start + (n @ (statistics.mean - start)) / total if total > 0 else np.zeros_like(start)
    within = statistics.scatter.sum(0)
    squares = np.diagonal(within) + n @ (statistics.mean - centre) ** 2
    return total, centre, within, squares


def _covariance(total, groups, within, squares):
    """V, from what may have a leading axis of rows."""
    total, groups = np.asarray(total)[..., None], np.asarray(groups)[..., None]
    freedom = np.maximum(total - groups, 0.0) + _GAMMA
    variance = np.divide(squares, total, out=np.ones_like(squares), where=total > 0)
    variance = np.where(variance > 1e-14, variance, 1.0)  # a column that does not vary: any variance serves
    covariance = within / freedom[..., None]
    diagonal = np.arange(squares.shape[-1])
    covariance[..., diagonal, diagonal] += _GAMMA * variance / freedom
    return covariance
