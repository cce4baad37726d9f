r"""Conformal test martingales: bets against the claim that values come in random order.

**Ranks.** Let :math:`x_1, x_2, \ldots` be exchangeable, and let x_t be ranked among the t values so far, itself among
them, ties at random:

.. math:: p_t = \frac{\#\{i \le t : x_i < x_t\} + U_t\, \#\{i \le t : x_i = x_t\}}{t}, \qquad
   U_t \sim \mathrm{Uniform}(0, 1)

Given the bag of the first t values, whose order says nothing, x_t is each of them with probability 1/t, so p_t is
uniform. Given the bag and x_t, the bag of the first t - 1 values is known, and p_{t-1} is uniform in turn. By this
induction p_1, p_2, ... are independent and uniform (Vovk, Gammerman and Shafer 2005, *Algorithmic Learning in a Random
World*, theorem 8.1). Before they are ranked, values may be changed by any rule that follows from the bag and not from
its order. `Ranks` cuts them to so many binary digits that no more than a number of distinct values are kept. Few digits
follow from more, so the bag at the digits that are kept is always known, and memory is bounded.

**Bets.** A bet is a density f on [0, 1] that is chosen before p_t is seen. Capital staked on it is multiplied by
f(p_t); since :math:`\int f = 1` its expectation stays. With u = \|2p - 1\| the densities are

.. math:: 1 + a (p - \tfrac12), \quad 1 + a (u - \tfrac12), \quad b\,(1 - u)^{b - 1}, \quad
   \frac{r^{[p > c]}}{c + r (1 - c)}, \quad \frac{n_j + 1}{\sum_i n_i + B} B

for place, spread, extremes, a step at c where the odds change by r, and what was seen before: n_j are the earlier ranks
in the j-th of B = 10 equal bins, each weighing 1 % less with every later one. Capital M begins at 1, half of it in
cash. Before each row a share J = .003 of what is staked is dealt anew evenly over cash and bets (Vovk's jumper), and
before the t-th a share 1/(2(100 + t)) of the cash is staked. So some :math:`\tfrac12 (1 + t/100)^{-1/2}` stays in cash,
and a change after t rows without one costs a factor of order :math:`t^{3/2}`; without cash it would cost a constant
share a row.

All bets on a series of p know its own past alone, so their sum M is a nonnegative martingale, and by Ville's inequality
:math:`P(\sup_t M_t \ge 1/\alpha) \le \alpha`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import lfilter

from bayesgen.core.registry import saveable

_PLACE, _SPREAD = np.array([-1.9, -1.0, 1.0, 1.9]), np.array([-1.9, 1.9])  # slopes a, |a| < 2
_EXTREMES = 0.2  # power b
_CUTS, _ODDS = (np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 2), np.tile([3.0, 1 / 3], 5))
_BINS, _FADE = 10, 0.99
_COUNT = 1 + len(_PLACE) + len(_SPREAD) + 1 + len(_CUTS) + 1  # of stakes, cash first and what was seen last
_JUMP, _WAIT = 0.003, 100
_BITS = 52  # binary digits of a float64 behind the first
_ROWS = 256  # ranked at a time


def cut(values: np.ndarray, bits: int) -> np.ndarray:
    """Return finite floats with ``bits`` binary digits behind the first, cut towards zero: monotone, and nested."""
    mask = np.int64(-1 << (_BITS - bits))
    return (np.ascontiguousarray(values, np.float64).view(np.int64) & mask).view(np.float64) + 0.0  # no -0.0


@saveable
@dataclass
class Ranks:
    """Counts of the values seen so far, among which later ones are ranked."""

    most: int  # largest number of distinct values that are kept
    keys: np.ndarray  # (m,): distinct values in order, cut to ``bits``
    counts: np.ndarray  # (m,): how often each was seen
    bits: int = _BITS  # binary digits kept behind the first

    @classmethod
    def of(cls, values: np.ndarray, most: int) -> "Ranks":
        """Return the counts of values (n,), in any order."""
        found = cls(most, *np.unique(cut(values, _BITS), return_counts=True))
        found._coarsen()
        return found

    def _coarsen(self) -> None:
        """Drop binary digits until there are few enough distinct values."""
        while len(self.keys) > self.most and self.bits:
            self.bits -= 1
            self.keys, place = np.unique(cut(self.keys, self.bits), return_inverse=True)
            self.counts = np.bincount(place, weights=self.counts).astype(np.int64)

    def rank(self, values: np.ndarray, ties: np.ndarray) -> np.ndarray:
        """Add values (n,) one after the other; return the smoothed rank p of each when it came, by uniform ``ties``."""
        ranks, start = np.empty(len(values)), 0
        while start < len(values):
            block = cut(values[start : start + _ROWS], self.bits)
            found, first = np.unique(block, return_index=True)
            new = np.sort(first[~np.isin(found, self.keys)])
            room = max(self.most - len(self.keys), 0)
            if self.bits and len(new) > room:  # up to the row that asks for fewer digits, or this row alone
                block = block[: new[room] or 1]
            stop = start + len(block)
            ranks[start:stop] = self._add(block, ties[start:stop])
            start = stop
        return ranks

    def _add(self, block, ties) -> np.ndarray:
        """Count a block (b,); return the ranks, each among all counted before and the earlier ones of the block."""
        keys = np.unique(block)
        new = keys[~np.isin(keys, self.keys)]
        places = np.searchsorted(self.keys, new)
        self.keys, self.counts = np.insert(self.keys, places, new), np.insert(self.counts, places, 0)
        self._coarsen()
        block = cut(block, self.bits)
        place, below = np.searchsorted(self.keys, block), np.append(0, np.cumsum(self.counts))
        earlier = np.tri(len(block), dtype=bool)  # and itself
        less = below[place] + ((block < block[:, None]) & earlier).sum(1)
        same = self.counts[place] + ((block == block[:, None]) & earlier).sum(1)
        np.add.at(self.counts, place, 1)
        return (less + ties * same) / (below[-1] + np.arange(1, len(block) + 1))


@saveable
@dataclass
class Bets:
    """Capital of martingales, and how it is staked."""

    log_capital: np.ndarray  # (m,): log of the capital M of each martingale
    stakes: np.ndarray  # (m, bets): share of the capital in cash and on each bet
    seen: np.ndarray  # (m, bins): earlier ranks in each bin, later ones with more weight
    rows: np.ndarray  # (m,): number of ranks that each has bet on

    @classmethod
    def start(cls, m: int) -> "Bets":
        """Return ``m`` martingales before their first bet."""
        stakes = np.full((m, _COUNT), 0.5 / (_COUNT - 1))
        stakes[:, 0] = 0.5
        return cls(np.zeros(m), stakes, np.zeros((m, _BINS)), np.zeros(m, np.int64))

    def take(self, p: np.ndarray) -> np.ndarray:
        """Bet on ranks (n, m), row by row, NaN where there is none; return the log capital after each row, (n, m)."""
        live = ~np.isnan(p)
        rows = self.rows + np.cumsum(live, 0) - live
        density = self._densities(np.where(live, p, 0.5), live)
        waiting, jump = 0.5 * live / (_WAIT + rows), _JUMP * live
        stakes, totals = self.stakes, np.empty(p.shape)
        for t in range(len(p)):
            cash = stakes[:, 0]
            staked, even = cash * waiting[t], jump[t] * (1 - cash) / _COUNT
            new = stakes * (1 - jump[t])[:, None] + (even + staked / (_COUNT - 1))[:, None]
            new[:, 0] = cash - staked + even
            new *= density[t]
            totals[t] = new.sum(1)
            stakes = new / totals[t][:, None]
        path = self.log_capital + np.cumsum(np.log(totals), 0)
        self.stakes, self.rows, self.log_capital = stakes, self.rows + live.sum(0), path[-1]
        return path

    def _densities(self, p, live) -> np.ndarray:
        """Return the density of cash and of each bet at ranks (n, m), (n, m, bets): 1 where nothing is ``live``."""
        u, p = np.abs(2 * p - 1)[..., None], p[..., None]
        found = [
            np.ones_like(p),
            1 + (p - 0.5) * _PLACE,
            1 + (u - 0.5) * _SPREAD,
            _EXTREMES * np.maximum(1 - u, 1e-12) ** (_EXTREMES - 1),
            np.where(p > _CUTS, _ODDS, 1.0) / (_CUTS + _ODDS * (1 - _CUTS)),
            self._seen_before(p[..., 0], live)[..., None],
        ]
        return np.where(live[..., None], np.concatenate(found, axis=2), 1.0)

    def _seen_before(self, p, live) -> np.ndarray:
        """Return the density of the bins that earlier ranks were in, and count these ranks too."""
        bins, result = np.minimum((p * _BINS).astype(np.intp), _BINS - 1), np.ones(p.shape)
        for j in range(p.shape[1]):
            which = bins[live[:, j], j]
            came = np.vstack([self.seen[j], np.eye(_BINS)[which]])
            seen: Any = lfilter([1.0], [1.0, -_FADE], came, axis=0)  # seen_t = .99 seen_{t-1} + came_t
            before = seen[:-1]
            result[live[:, j], j] = _BINS * (before[np.arange(len(which)), which] + 1) / (before.sum(1) + _BINS)
            self.seen[j] = seen[-1]
        return result
