r"""Conformal test martingales: bets against the claim that values come in random order.

**Ranks.** Value x_t is ranked among the t values so far, itself among them, ties at random; if values are exchangeable
the p_t are independent and uniform (Vovk, Gammerman and Shafer 2005, *Algorithmic Learning in a Random World*, theorem
8.1). Before they are ranked, values may be changed by any rule that follows from the bag and not from its order:
`Ranks` cuts them to so many binary digits that no more than a number of distinct values are kept. **Categories** are
ordered by a hash of their text (`hashed`), and by how often they are in the bag, the rarest first (`counted`).

**Bets.** A bet is a density f on [0, 1] that is chosen before p_t is seen. With u = \|2p - 1\| the densities are

.. math:: 1 + a (p - \tfrac12), \quad 1 + a (u - \tfrac12), \quad b\,(1 - u)^{b - 1}, \quad
   \frac{r^{[p > c]}}{c + r (1 - c)}, \quad \frac{n_j + 1}{(\sum_i n_i + B)\, v_j}, \quad 1 - s + s \frac{w_k}{v_k}

for place, spread, extremes, a step, what was seen before (n_j, 1 % less with each later row, in B = 16 cells), and a
new category, in one of K = 128 cells (w_k by Bayes' rule, s = .1). Edges of cells are ranks that move up with the
values above them, so that a value stays in its cell. Half of the capital M begins in cash, and a share .003 of what is
staked is dealt anew before each row (Vovk's jumper). By Ville's inequality the nonnegative martingale M has
:math:`P(\sup_t M_t \ge 1/\alpha) \le \alpha`. The derivations are in docs/mathematics/watch.md.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from bayesgen.core.registry import saveable

_PLACE, _SPREAD = np.array([-1.9, -1.0, 1.0, 1.9]), np.array([-1.9, 1.9])  # slopes a, |a| < 2
_EXTREMES = 0.2  # power b
_CUTS, _ODDS = (np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 2), np.tile([3.0, 1 / 3], 5))
_CELLS, _SHARE, _ANEW, _BACK = 128, 0.1, 0.001, 0.001  # K, s, dealt anew, and of the way back to equal steps
_GROUPS, _FADE = 16, 0.99  # of neighbouring cells, whose ranks are counted
_STEPS = np.arange(_CELLS + 1) / _CELLS
_DEAL = np.append(np.ones(1 + len(_PLACE) + len(_SPREAD) + 1 + len(_CUTS) + 1), 4.0)  # cash first, cells last
_DEAL /= _DEAL.sum()
_STAKED = np.append(0.0, _DEAL[1:] / _DEAL[1:].sum())
_JUMP, _WAIT = 0.003, 100
_BITS = 52  # binary digits of a float64 behind the first
_ROWS = 256  # ranked at a time


def cut(values: np.ndarray, bits: int) -> np.ndarray:
    """Return finite floats with ``bits`` binary digits behind the first, cut towards zero: monotone, and nested."""
    mask = np.int64(-1 << (_BITS - bits))
    return (np.ascontiguousarray(values, np.float64).view(np.int64) & mask).view(np.float64) + 0.0  # no -0.0


def hashed(text: str) -> float:
    """Return the place of a category in the order by a hash: a float in [1, 2), of 52 binary digits."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return 1 + (int.from_bytes(digest, "big") >> 12) / 2.0**_BITS


@saveable
@dataclass
class Ranks:
    """Counts of the values seen so far, among which later ones are ranked."""

    most: int  # largest number of distinct values that are kept
    counted: bool  # True to rank values by how often they were seen, the rarest first
    keys: np.ndarray  # (m,): distinct values in order, cut to ``bits``
    counts: np.ndarray  # (m,): how often each was seen
    bits: int = _BITS  # binary digits kept behind the first

    @classmethod
    def of(cls, values: np.ndarray, most: int, counted: bool = False) -> "Ranks":
        """Return the counts of values (n,), in any order."""
        found = cls(most, counted, *np.unique(cut(values, _BITS), return_counts=True))
        found._coarsen()
        return found

    def without(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct values, and how often each was seen but for these ones, seen too; NaN is none."""
        counts = self.counts.copy()
        np.subtract.at(counts, np.searchsorted(self.keys, cut(values[~np.isnan(values)], self.bits)), 1)
        return self.keys[counts > 0], counts[counts > 0]

    def _coarsen(self) -> None:
        """Drop binary digits until there are few enough distinct values."""
        while len(self.keys) > self.most and self.bits:
            self.bits -= 1
            self.keys, place = np.unique(cut(self.keys, self.bits), return_inverse=True)
            self.counts = np.bincount(place, weights=self.counts).astype(np.int64)

    def rank(self, values: np.ndarray, ties: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add values (n,) one after the other; return the smoothed rank of each among all so far, by uniform ``ties``.

        Return also (n,) where not all so far are tied: elsewhere the rank tells nothing.
        """
        ranks, varied, start = np.empty(len(values)), np.empty(len(values), bool), 0
        while start < len(values):
            block = cut(values[start : start + _ROWS], self.bits)
            found, first = np.unique(block, return_index=True)
            new = np.sort(first[~np.isin(found, self.keys)])
            room = max(self.most - len(self.keys), 0)
            if self.bits and len(new) > room:  # up to the row that asks for fewer digits, or this row alone
                block = block[: new[room] or 1]
            stop = start + len(block)
            ranks[start:stop], varied[start:stop] = self._add(block, ties[start:stop])
            start = stop
        return ranks, varied

    def _add(self, block, ties) -> tuple[np.ndarray, np.ndarray]:
        """Count a block (b,); return the ranks, each among all counted before and the earlier ones of the block."""
        keys = np.unique(block)
        new = keys[~np.isin(keys, self.keys)]
        places = np.searchsorted(self.keys, new)
        self.keys, self.counts = np.insert(self.keys, places, new), np.insert(self.counts, places, 0)
        self._coarsen()
        block = cut(block, self.bits)
        place, below = np.searchsorted(self.keys, block), np.append(0, np.cumsum(self.counts))
        so_far = below[-1] + np.arange(1, len(block) + 1)
        if self.counted:
            less, same = np.array([self._rarer(one) for one in place]).T
        else:
            earlier = np.tri(len(block), dtype=bool)  # and itself
            less = below[place] + ((block < block[:, None]) & earlier).sum(1)
            same = self.counts[place] + ((block == block[:, None]) & earlier).sum(1)
            np.add.at(self.counts, place, 1)
        return (less + ties * same) / so_far, same < so_far

    def _rarer(self, place: int) -> tuple[int, int]:
        """Count one more of a distinct value; return the numbers of values that are rarer, and just as rare."""
        self.counts[place] += 1
        counts = self.counts[self.counts <= self.counts[place]]
        total, same = int(counts.sum()), int(counts[counts == self.counts[place]].sum())
        return total - same, same


@saveable
@dataclass
class Bets:
    """Capital of martingales, and how it is staked."""

    known: np.ndarray  # (m,): number of values that the first one is ranked among, without itself
    log_capital: np.ndarray  # (m,): log of the capital M of each martingale
    stakes: np.ndarray  # (m, bets): share of the capital in cash and on each bet
    cells: np.ndarray  # (m, cells): probability w of each cell
    edges: np.ndarray  # (m, cells + 1): ranks e between the cells, the first of them 0
    seen: np.ndarray  # (m, groups): earlier ranks in each group of cells, later ones with more weight
    rows: np.ndarray  # (m,): number of ranks that each has bet on

    @classmethod
    def start(cls, m: int, known: np.ndarray | int = 0) -> "Bets":
        """Return ``m`` martingales before their first bet."""
        known = np.broadcast_to(np.asarray(known, np.int64), m).copy()
        stakes, cells = np.tile(0.5 * _STAKED, (m, 1)), np.full((m, _CELLS), 1 / _CELLS)
        stakes[:, 0] = 0.5
        edges = (known[:, None] + 1) * _STEPS
        return cls(known, np.zeros(m), stakes, cells, edges, np.zeros((m, _GROUPS)), np.zeros(m, np.int64))

    def take(self, p: np.ndarray) -> np.ndarray:
        """Bet on ranks (n, m), row by row, NaN where there is none; return the log capital after each row, (n, m)."""
        live = ~np.isnan(p)
        rows = self.rows + np.cumsum(live, 0) - live
        density = self._densities(np.where(live, p, 0.5), live)
        waiting, jump = 0.5 * live / (_WAIT + rows), _JUMP * live
        stakes, totals = self.stakes, np.empty(p.shape)
        for t in range(len(p)):
            density[t, :, -2:] = self._on_cells(p[t], live[t], self.known + rows[t] + 1)
            cash = stakes[:, 0]
            staked, dealt = cash * waiting[t], jump[t] * (1 - cash)
            new = stakes * (1 - jump[t])[:, None] + dealt[:, None] * _DEAL + staked[:, None] * _STAKED
            new[:, 0] = cash - staked + dealt * _DEAL[0]
            new *= density[t]
            totals[t] = new.sum(1)
            stakes = new / totals[t][:, None]
        path = self.log_capital + np.cumsum(np.log(totals), 0)
        self.stakes, self.rows, self.log_capital = stakes, self.rows + live.sum(0), path[-1]
        return path

    def _densities(self, p, live) -> np.ndarray:
        """Return the density of cash and of each bet at ranks (n, m), (n, m, bets): 1 where nothing is ``live``.

        That of the cells, the last, is 1: it follows row by row.
        """
        u, p = np.abs(2 * p - 1)[..., None], p[..., None]
        found = [
            np.ones_like(p),
            1 + (p - 0.5) * _PLACE,
            1 + (u - 0.5) * _SPREAD,
            _EXTREMES * np.maximum(1 - u, 1e-12) ** (_EXTREMES - 1),
            np.where(p > _CUTS, _ODDS, 1.0) / (_CUTS + _ODDS * (1 - _CUTS)),
            np.ones((*p.shape[:2], 2)),
        ]
        return np.where(live[..., None], np.concatenate(found, axis=2), 1.0)

    def _on_cells(self, p, live, t) -> np.ndarray:
        """Return the densities at ranks p (m,) among t values of the bets on groups of cells and on cells, (m, 2).

        Both learn from the ranks that are ``live``.
        """
        rank, every, one = np.where(live, t * p, np.inf)[:, None], np.arange(len(p)), live[:, None]
        above = rank < self.edges
        cell = np.minimum(_CELLS - above.sum(1), _CELLS - 1)
        group, size = cell // (_CELLS // _GROUPS), _CELLS // _GROUPS
        width = self.edges[every, cell + 1] - self.edges[every, cell]
        widths = self.edges[every, (group + 1) * size] - self.edges[every, group * size]
        often = (self.seen[every, group] + 1) / (self.seen.sum(1) + _GROUPS)
        self.seen *= np.where(one, _FADE, 1.0)
        self.seen[every, group] += live
        self.cells += _ANEW * one * (1 / _CELLS - self.cells)
        won = _SHARE * live * self.cells[every, cell] * t / width
        density = 1 - _SHARE * live + won
        self.cells *= 1 - _SHARE * one
        self.cells[every, cell] += won
        self.cells /= density[:, None]
        self.edges += above
        self.edges += _BACK * one * ((t + 1)[:, None] * _STEPS - self.edges)
        return np.column_stack([np.where(live, often * t / widths, 1.0), density])
