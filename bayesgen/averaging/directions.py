r"""Sums of numbers, weighted so that they tell two classes apart in parts of the rows: further columns for trees.

Trees follow a rule over one column after another, and need many of them for a rule over a sum, such as a bill of which
every charge is a column. A tree of few leaves parts the rows. In each of its nodes A, the whole table among them, let z
be the numbers, standardised over all rows, and t = 0 or 1 the class. The weights of a sum are

.. math:: w_A = (\Sigma_A + \lambda I)^{-1} \sigma_A

with Σ_A the covariance of z, and σ_A that of z and t, of the rows in A: Fisher's discriminant, which is a ridge
regression of t. The sum w_A'z is a column of all rows, not of those in A alone. One discriminant of the whole table
mixes the directions of several rules; few rows that one rule left over tell the direction of the next.

Numbers enter between two quantiles, so that no far entry decides a sum, and a missing one as the mean. (Trees that
split by sums: Breiman, Friedman, Olshen and Stone 1984, *Classification and Regression Trees*, section 5.2; by
discriminants of nodes: Loh and Vanichsetakul 1988, *JASA* 83.)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesgen.averaging.member_rows import Rows
from bayesgen.core.program import Record
from bayesgen.core.shapes import shaped
from bayesgen.numerics.trees import Ranks

_BOUNDS = 0.005, 0.995  # quantiles of a column between which its entries count
_LEAVES, _SMALLEST = 4, 50  # leaves of the tree that parts the rows, and rows of a leaf
_LEAST = 25  # distinct rows of the rarer class below which a node has no sum
_HALF = float(np.finfo(float).max) / 2  # of the distance between quantiles, at most
_RIDGE = 0.1  # λ, in variances of a column


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
        """Learn sums that tell two classes apart.

        Parameters
        ----------
        rows : Rows
            Distinct rows, in order of content.
        columns : array, shape (n, P)
            The columns by which a tree parts the rows, NaN where missing.
        order : int array, shape (P,)
            The columns in order by content.
        turned : bool array, shape (P,)
            True for those that are turned; see `Ranks.turned`.
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
        found = np.stack([_discriminant(z[node], t[node], weight[node]) for node in nodes])
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
