r"""Sums of numbers, weighted so that they tell two classes apart in parts of the rows: further columns for trees.

A tree of few leaves parts the rows, and each of its nodes, the whole table among them, gives a sum w'z of all rows. The
weights are Fisher's, a ridge regression of the class t = 0 or 1; or those of a neuron with free levels, P(t = 1) = a +
(b - a) σ(w'z - c), where the halves of the node bear it out. "Sums for trees" in `docs/mathematics/averaged.md` says
why, with formulas and measurements. One discriminant of the whole table would mix the directions of several rules; few
rows that one rule left over tell the direction of the next. (Trees that split by sums: Breiman, Friedman, Olshen and
Stone 1984, *Classification and Regression Trees*, section 5.2; by discriminants of nodes: Loh and Vanichsetakul 1988,
*JASA* 83.)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from bayesgen.averaging.member_rows import Rows
from bayesgen.core.program import Record
from bayesgen.core.shapes import shaped
from bayesgen.numerics.trees import Ranks

_BOUNDS = 0.005, 0.995  # quantiles of a column between which its entries count
_LEAVES, _SMALLEST = 4, 50  # leaves of the tree that parts the rows, and rows of a leaf
_LEAST = 25  # rows of the rarer class below which a node has no sum
_HALF = float(np.finfo(float).max) / 2  # of the distance between quantiles, at most
_RIDGE = 0.1  # of Fisher's discriminant, in variances of a column
_CUTS = 0.3, 0.6, 0.85  # quantiles of a sum at which the search for a step begins
_STEEP = 3.0  # slope of a step at first, in standard deviations of its sum
_FIRST, _THEN, _AGAIN = 8, 60, 15  # moves of the search from each, from the best of them on, and on half of the rows
_PENALTY, _CERTAIN = 0.02, 1e-4  # of w'w, over the rows; no row is surer than this
_SAME = 1e-9  # of a sum, in which rows hardly differ
_DIGITS = 5  # of the weights of a step: a search makes rounding a thousand times larger


@dataclass(frozen=True, eq=False)
class Directions(Record):
    """Weighted sums of numbers."""

    # low, span: the lower of two quantiles of each column, and the distance to the upper, in which it is measured
    low: np.ndarray = field(metadata=shaped("columns"))
    span: np.ndarray = field(metadata=shaped("columns", positive=True))
    centre: np.ndarray = field(metadata=shaped("columns"))  # mean of each, so measured
    weight: np.ndarray = field(metadata=shaped("sums columns"))

    @classmethod
    def none(cls, dim: int) -> "Directions":
        """Return no sums of so many columns."""
        return cls(np.zeros(dim), np.ones(dim), np.zeros(dim), np.empty((0, dim)))

    @classmethod
    def of(cls, rows: Rows, columns, order, turned) -> "Directions":
        """Learn sums that tell two classes apart from rows in order of content.

        A tree parts them by ``columns`` (n, P), NaN where missing, in the ``order`` (P,) by content, those ``turned``
        that are True (P,); see `Ranks.turned`.
        """
        import sklearn
        from sklearn.tree import DecisionTreeRegressor

        weight, seen, self = rows.weight / rows.weight.sum(), ~np.isnan(rows.x), cls.none(rows.x.shape[1])
        for j in np.flatnonzero(seen.any(0)):
            column = np.sort(rows.x[seen[:, j], j])
            low, high = np.quantile(column, _BOUNDS)
            low, high = (low, high) if low < high else column[[0, -1]]
            if 0 < high / 2 - low / 2 < _HALF:
                self.low[j], self.span[j] = low, high - low
        z = np.where(seen, self._measured(rows.x), 0.0)
        self.centre[:] = weight @ z / np.maximum(weight @ seen, 1e-300)
        z = np.where(seen, z - self.centre, 0.0)
        scale = np.sqrt(weight @ z**2)
        used = scale > 1e-9
        z, t = z[:, used] / scale[used], (rows.ranks == rows.ranks.max()).astype(float)
        ranks = Ranks(columns).turned(order, turned)
        tree: Any = DecisionTreeRegressor(max_leaf_nodes=_LEAVES, min_samples_leaf=_SMALLEST, random_state=0)
        with sklearn.config_context(skip_parameter_validation=True):
            tree.fit(ranks, t, rows.weight)
        nodes = tree.decision_path(ranks).toarray().T > 0
        nodes = [node for node in nodes if min(t[node].sum(), (1 - t[node]).sum()) >= _LEAST]
        if used.sum() < 2 or not nodes:
            return self
        found = np.stack([_step(z[node], t[node], weight[node]) for node in nodes])
        size = np.sqrt(weight @ (z @ found.T) ** 2)
        result = np.zeros((len(found), len(used)))
        result[:, used] = found / np.maximum(size[:, None], 1e-300) / scale[used]
        return replace(self, weight=result)

    def _measured(self, x):
        with np.errstate(over="ignore"):
            return np.clip((x - self.low) / self.span, 0.0, 1.0)

    def sums(self, x) -> np.ndarray:
        """Return the sums of rows (n, D), (n, S); NaN for a row without numbers."""
        z = self._measured(x) - self.centre
        gone = np.isnan(z)
        result = np.where(gone, 0.0, z) @ self.weight.T
        result[gone.all(1)] = np.nan
        return result

    def written(self, numbers: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the sums as entries that are derived of those of the numbers (D,); see `FittedMembers.written`."""
        said = {"of": [*numbers], "low": self.low.tolist(), "span": self.span.tolist(), "centre": self.centre.tolist()}
        return [said | {"weights": weights} for weights in self.weight.tolist()]


def _discriminant(z, t, weight) -> np.ndarray:
    """Return the weights of the sum of columns (n, D) that tells apart classes (n,) of rows with weights (n,)."""
    weight = weight / weight.sum()
    z, t = z - weight @ z, t - weight @ t
    return np.linalg.solve((z * weight[:, None]).T @ z + _RIDGE * np.eye(z.shape[1]), z.T @ (weight * t))


def _step(z, t, weight) -> np.ndarray:
    """Return the weights of a step in a sum, where halves of the rows bear it out, else those of a discriminant."""
    line, share = _discriminant(z, t, weight), weight / weight.sum()
    if np.ptp(z @ line) < _SAME:
        return line
    spread, starts = _spread(z @ line, share), []
    along = z @ line / spread
    for cut in np.quantile(along, _CUTS):
        levels = [np.average(t[side], weights=share[side]) for side in (along <= cut, along > cut) if side.any()]
        starts.append(np.array([_STEEP, _STEEP * cut, *logit(np.clip(levels[:1] + levels[-1:], 0.01, 0.99))]))
    found = [_climbed(z, t, share, np.append(start[0] * (line / spread), start[1:]), _FIRST) for start in starts]
    best = int(np.argmax([share @ _log_likelihood(z, t, neuron) for neuron in found]))
    neuron, gain = _climbed(z, t, share, found[best], _THEN), np.zeros(len(z))
    halves = [slice(0, None, 2), slice(1, None, 2)]
    for fit, other in (halves, halves[::-1]):
        along = z @ _discriminant(z[fit], t[fit], weight[fit])[:, None]
        along /= _spread(along[:, 0], share) or 1.0
        for columns, start, sign in ((z, neuron, 1), (along, starts[best], -1)):
            learned = _climbed(columns[fit], t[fit], share[fit], start, _AGAIN)
            gain[other] += sign * _log_likelihood(columns[other], t[other], learned)
    w = neuron[:-3]
    if share @ gain <= 0 or not np.isfinite(neuron).all() or not w.any():
        return line
    return np.round(w / np.abs(w).max(), _DIGITS)


def _spread(column, share) -> float:
    return float(np.sqrt(share @ (column - share @ column) ** 2))


def _log_likelihood(z, t, neuron) -> np.ndarray:
    """Return log P(t | z) of rows, (n,), under w, c and the log odds of a and b, (D + 3,)."""
    *w, c, low, high = neuron
    p = expit(low) + (expit(high) - expit(low)) * expit(z @ w - c)
    return np.log(np.where(t == 1, p, 1 - p).clip(_CERTAIN))


def _climbed(z, t, share, start, steps: int) -> np.ndarray:
    """Return w, c and the log odds of a and b, (D + 3,), after some moves towards more likelihood."""
    share, dim, sign, ridge = share / share.sum(), z.shape[1], 2 * t - 1, _PENALTY / len(z)

    def loss(free):
        w, (low, high) = free[:dim], expit(free[dim + 1 :])
        step = expit(z @ w - free[dim])
        p = low + (high - low) * step  # of t = 1
        p = np.maximum(np.where(t == 1, p, 1 - p), _CERTAIN)
        slope = -share * sign / p
        inner = (high - low) * slope * step * (1 - step)
        high_slope, whole = slope @ step, slope.sum()
        levels = (whole - high_slope) * low * (1 - low), high_slope * high * (1 - high)
        value = ridge * (w @ w) - share @ np.log(p)
        return value, np.concatenate([inner @ z + 2 * ridge * w, [-inner.sum(), *levels]])

    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
