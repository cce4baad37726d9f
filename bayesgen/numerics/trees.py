"""Decision trees as arrays: grown by scikit-learn on ranks, saved without running code, and walked all at once.

A missing entry stays missing: each node says which way it goes.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesgen.core.program import Record
from bayesgen.core.shapes import require_fit, shaped
from bayesgen.numerics.pieces import pieces

_ASIDE = 1e-6  # a threshold lies beside the middle of two values, where a rounded value may lie: units move no row
_LARGEST = float(np.finfo(float).max)
_CELLS = 1 << 16  # pairs of a row and a tree that walk at a time, in the cache with their nodes
_TOGETHER = 4  # steps that all of them walk before those at a leaf rest, which costs as much as a step


def grown_tree(x, shares, weight, features: int, seed: int) -> Any:
    """Return a full-grown regression tree of scikit-learn's, what an estimator has as ``tree_``.

    Columns ``x`` (n, P) of rows with a ``weight`` (n,) are float32, NaN where missing; each node looks at so many
    ``features`` of them, drawn by the ``seed``. Squares about the means of indicators of the classes, ``shares``
    (n, K), are Gini's impurity.
    """
    import sklearn
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(max_features=features, random_state=seed)
    with sklearn.config_context(skip_parameter_validation=True):
        return tree.fit(x, shares, weight).tree_


class Ranks:
    """Columns z (n, P) as the ranks of their values, which stand for numbers of any size in the float32 of trees."""

    def __init__(self, z):
        self.values, self.rank = [], np.full(z.shape, np.nan, np.float32)
        for j, column in enumerate(z.T):
            seen = ~np.isnan(column)
            values, place = np.unique(column[seen], return_inverse=True)
            self.values.append(values)
            self.rank[seen, j] = place

    def turned(self, columns, turned) -> np.ndarray:
        """Return the ranks of columns (P,), those to turn, (P,), from the last to the first."""
        last = np.array([len(self.values[j]) - 1 for j in columns], np.float32)
        return np.where(turned, last - self.rank[:, columns], self.rank[:, columns])

    def back(self, column, rank, turned) -> np.ndarray:
        """Return thresholds (nodes,) in units of the columns, beyond all numbers where an infinite rank parts gaps."""
        result, aside = np.empty(len(rank)), rank + _ASIDE
        for j in np.unique(column):
            nodes, last = column == j, len(self.values[j]) - 1
            place = np.where(turned[nodes], last - aside[nodes], aside[nodes])
            inside = np.interp(place, np.arange(last + 1), self.values[j])
            result[nodes] = np.where(np.isinf(place), np.copysign(_LARGEST, place), inside)
        return result


@dataclass(frozen=True, eq=False)
class Trees(Record):
    """Trees of numbers."""

    root: np.ndarray = field(metadata=shaped("trees", "i"))  # where each tree begins: a node, or -1 - l for leaf l
    column: np.ndarray = field(metadata=shaped("nodes", places="features"))  # the column that each node looks at
    threshold: np.ndarray = field(metadata=shaped("nodes"))  # a value up to it goes left
    gap: np.ndarray = field(metadata=shaped("nodes", "i", least=0))  # 0 if a missing entry goes left, 1 if right
    # where left and right lead, as ``root`` does; a node leads to later nodes alone
    child: np.ndarray = field(metadata=shaped("nodes 2", "i"))
    leaf: np.ndarray = field(metadata=shaped("leaves values"))  # what each leaf says

    @classmethod
    def of(cls, trees: Sequence[Any], leaf, ranks: Ranks, order, turned) -> "Trees":
        """Return scikit-learn's trees (``tree_`` of estimators), which were fitted to ``ranks``.

        ``leaf`` (nodes, V) is what a node of all trees says if it is a leaf. In place j the trees saw the column
        ``order[j]``, its ranks from the last to the first where ``turned[j]``.
        """
        count = np.array([tree.node_count for tree in trees])
        first = np.cumsum(count) - count
        names = "children_left", "children_right", "feature", "threshold", "missing_go_to_left"
        left, right, seen, rank, gap_left = (np.concatenate([getattr(t, name) for t in trees]) for name in names)
        inner, base = left >= 0, np.repeat(first, count)
        place = np.where(inner, np.cumsum(inner, dtype=int) - 1, -np.cumsum(~inner, dtype=int)).astype(np.int32)
        column, turn = order[seen[inner]].astype(np.int32), turned[seen[inner]]
        child = place[np.column_stack([left + base, right + base])[inner]]
        child = np.where(turn[:, None], child[:, ::-1], child)
        gap = 1 - gap_left[inner].astype(np.int8)
        threshold = ranks.back(column, rank[inner], turn)
        return cls(place[first], column, threshold, np.where(turn, 1 - gap, gap), child, leaf[~inner])

    @functools.cached_property
    def _steps(self) -> tuple[np.ndarray, ...]:
        """Columns, thresholds and children of nodes and leaves, (N + L,), (N + L,), (2N + 2L,), and roots, (T,).

        Leaf l is node N + l, and leads to itself. A gap is never above a threshold, so it goes left: a node that sends
        gaps right has left and right changed over, and looks at the column with its sign changed. Place 2j is column j,
        and 2j + 1 the same with its sign changed.
        """
        nodes, leaves = len(self.column), len(self.leaf)
        turned, leaf = self.gap == 1, np.arange(nodes, nodes + leaves)
        with np.errstate(over="ignore"):  # beyond the largest number is minus infinity, as it should be
            next_below = np.nextafter(-self.threshold, -np.inf)
        threshold = np.where(turned, next_below, self.threshold)  # x <= t is -x > the next below -t
        child = np.where(turned[:, None], self.child[:, ::-1], self.child).ravel()
        return (
            np.concatenate([2 * self.column + turned, np.zeros(leaves, int)]).astype(np.intp),
            np.concatenate([threshold, np.full(leaves, np.inf)]),
            np.concatenate([np.where(child < 0, nodes - 1 - child, child), leaf.repeat(2)]).astype(np.intp),
            np.where(self.root < 0, nodes - 1 - self.root, self.root).astype(np.intp),
        )

    def leaves(self, z) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield pieces of rows (n, P), each with the leaves (m, T) that its rows reach in all trees."""
        column, threshold, child, root = self._steps
        count, nodes = len(root), len(self.column)
        take = functools.partial(np.take, mode="clip")  # no place is beyond the end, and none need be looked for
        for batch in pieces(len(z), count, _CELLS):
            both = np.stack([z[batch], -z[batch]], axis=2)
            flat, place = both.ravel(), np.tile(root, len(both))
            walking = np.flatnonzero(place < nodes)
            node, start = place[walking], walking // count * both[0].size
            while len(walking):
                target, value, limit = np.empty_like(node), np.empty(len(node)), np.empty(len(node))
                right = np.empty(len(node), bool)
                for _ in range(_TOGETHER):
                    take(column, node, out=target)
                    target += start
                    np.greater(take(flat, target, out=value), take(threshold, node, out=limit), out=right)
                    node += node
                    node += right
                    take(child, node, out=target)
                    node, target = target, node
                place[walking] = node
                on = np.flatnonzero(node < nodes)
                walking, node, start = walking[on], node[on], start[on]
            yield batch, (place - nodes).reshape(-1, count)

    def written(self) -> dict[str, Any]:
        """Return the trees as plain arrays: nodes lead to later ones, or to -1 - l, l the place of a distinct leaf.

        Beside them stand "counts", the numbers of trees, of nodes and of all entries of leaves.
        """
        leaf, place = np.unique(self.leaf, axis=0, return_inverse=True)
        root, child = (np.where(to < 0, -1 - place.ravel()[(-1 - to).clip(0)], to) for to in (self.root, self.child))
        return {
            "root": root,
            "column": self.column,
            "threshold": self.threshold,
            "gap": self.gap,
            "child": child,
            "leaf": leaf,
            "counts": [len(root), len(child), leaf.size],
        }

    def fits(self, sizes):
        """Require children behind their nodes, and both ways of a gap; see `check_shapes`."""
        nodes, leaves, later = len(self.column), len(self.leaf), np.arange(len(self.column))[:, None] < self.child
        within = all(((targets >= -leaves) & (targets < nodes)).all() for targets in (self.root, self.child))
        within = len(self.root) > 0 and within and (self.gap <= 1).all()
        require_fit(within and (later | (self.child < 0)).all(), "the trees lead nowhere")
        return sizes
