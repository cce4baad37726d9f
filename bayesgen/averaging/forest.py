r"""Forest members: trees on draws of the rows, for classes that begin at a threshold or follow rules.

Each tree is grown on rows drawn with replacement within each class, or on groups of rows that belong together.
Identical rows are one row, with the sum of their weights. With q the mean over k trees of the shares of the classes in
the leaf that a row reaches,

.. math:: f_k(x) = \log \frac{k\, q_k(x) + 1/2}{k + K/2} - \log \pi_k

takes the place of log p(x | k), where π are the class frequencies. A row is left out by the trees that did not draw it.
A forest is underconfident, which its exponent mends. It has no density of x, and takes no part where one is needed.

scikit-learn grows the trees; their arrays are kept, saved without running code, and all trees are asked at once
(`Trees`). Trees see numbers and categories as the columns of one matrix: the numbers, then a category of two levels as
a number 0 or 1, one of more levels as an indicator of each level. A missing entry stays missing: each node says which
way it goes.
"""

import functools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from bayesgen.averaging.member import FittedMembers, Member
from bayesgen.averaging.member_rows import Order, Rows, log_frequencies, without_entries
from bayesgen.core.program import Record
from bayesgen.numerics.pieces import pieces

_TREES = 100, 200  # fewest and most
_DRAWN = 5e3  # rows drawn by all trees, times the square root of the rows: half a second of 1,000, 15 s of 100,000
_BYTES = 4e7  # bytes of all trees in a file
_ASIDE = 1e-6  # a threshold lies beside the middle of two values, where a rounded value may lie: units move no row
_LARGEST = float(np.finfo(float).max)
_CELLS = 1 << 16  # pairs of a row and a tree that walk at a time, in the cache with their nodes
_TOGETHER = 4  # steps that all of them walk before those at a leaf rest, which costs as much as a step


def together(x, c, levels) -> np.ndarray:
    """Return numbers (n, D) and categories (n, F), of so many levels each, as one matrix, NaN where missing."""
    parts = [x]
    for column, count in zip(c.T, levels, strict=True):
        values = [1] if count <= 2 else range(count)
        parts += [np.where(column < 0, np.nan, column == value)[:, None] for value in values]
    return np.concatenate(parts, axis=1)


def width(dim: int, levels) -> int:
    """Return the number of columns of the matrix of `together`."""
    return int(_widths(dim, levels).sum())


def in_order(order: Order) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of the matrix of `together` in order by content, (P,), and True for those to turn, (P,)."""
    places = [np.arange(1)] * len(order.sign) + [
        level_places if len(level_places) > 2 else np.arange(1) for level_places in order.levels
    ]
    turned = order.signs < 0
    first = np.cumsum([0, *map(len, places)])
    columns = np.concatenate([first[j] + np.argsort(places[j]) for j in order.columns])
    return columns, np.concatenate([np.full(len(places[j]), turned[j]) for j in order.columns])


def _widths(dim: int, levels) -> np.ndarray:
    """Return how many columns of the matrix stand for each number and category, (D + F,)."""
    return np.array([1] * dim + [1 if count <= 2 else count for count in levels], int)


class Ranks:
    """Columns as the ranks of their values, which stand for numbers of any size in the float32 of scikit-learn's trees.

    Parameters
    ----------
    z : array, shape (n, P)
        Columns, NaN where missing.
    """

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
        """Return the thresholds in units of the columns, (nodes,), from columns and ranks, perhaps turned.

        A node that parts gaps from all numbers has an infinite rank, and a threshold beyond all numbers.
        """
        result, aside = np.empty(len(rank)), rank + _ASIDE
        for j in np.unique(column):
            nodes, last = column == j, len(self.values[j]) - 1
            place = np.where(turned[nodes], last - aside[nodes], aside[nodes])
            inside = np.interp(place, np.arange(last + 1), self.values[j])
            result[nodes] = np.where(np.isinf(place), np.copysign(_LARGEST, place), inside)
        return result


@dataclass(frozen=True, eq=False)
class Trees(Record):
    """Trees of numbers.

    Attributes
    ----------
    root : int array, shape (T,)
        Where each tree begins: a node, or -1 - l for leaf l.
    column : int array, shape (N,)
        The column that each node looks at.
    threshold : array, shape (N,)
        A value up to it goes left.
    gap : int array, shape (N,)
        0 if a missing entry goes left, 1 if right.
    child : int array, shape (N, 2)
        Where left and right lead, as ``root`` does; a node leads to later nodes alone.
    leaf : array, shape (L, V)
        What each leaf says.
    """

    root: np.ndarray
    column: np.ndarray
    threshold: np.ndarray
    gap: np.ndarray
    child: np.ndarray
    leaf: np.ndarray

    @classmethod
    def joined(cls, trees: Sequence["Trees"]) -> "Trees":
        """Return the trees of several records as one record."""
        nodes = np.cumsum([0, *(len(tree.column) for tree in trees)])
        leaves = np.cumsum([0, *(len(tree.leaf) for tree in trees)])

        def moved(name):
            every = zip((getattr(tree, name) for tree in trees), nodes, leaves, strict=False)
            parts = [np.where(target < 0, target - leaf, target + node) for target, node, leaf in every]
            return np.concatenate(parts).astype(np.int32)

        column, threshold, gap, leaf = (
            np.concatenate([getattr(tree, name) for tree in trees]) for name in ("column", "threshold", "gap", "leaf")
        )
        return cls(moved("root"), column, threshold, gap, moved("child"), leaf)

    @classmethod
    def of(cls, tree: Any, leaf, ranks: Ranks, order, turned) -> "Trees":
        """Return a tree of scikit-learn's, which was fitted to ranks.

        Parameters
        ----------
        tree : sklearn.tree._tree.Tree
            The tree, as the attribute ``tree_`` of an estimator.
        leaf : array, shape (nodes, V)
            What a node says if it is a leaf.
        ranks : Ranks
            The columns.
        order : int array, shape (P,)
            The column that the tree saw in each place.
        turned : bool array, shape (P,)
            True where it saw the ranks from the last to the first.
        """
        inner = tree.children_left >= 0
        place = np.where(inner, np.cumsum(inner) - 1, -np.cumsum(~inner)).astype(np.int32)
        column, turn = order[tree.feature[inner]].astype(np.int32), turned[tree.feature[inner]]
        child = place[np.column_stack([tree.children_left[inner], tree.children_right[inner]])]
        child = np.where(turn[:, None], child[:, ::-1], child)
        gap = 1 - np.asarray(tree.missing_go_to_left)[inner].astype(np.int8)
        threshold = ranks.back(column, tree.threshold[inner], turn)
        return cls(place[:1], column, threshold, np.where(turn, 1 - gap, gap), child, np.asarray(leaf)[~inner])

    @property
    def nbytes(self) -> int:
        """Size of the arrays."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

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

    def claims(self, columns: int, values: int) -> Iterator[tuple[str, Any, Any]]:
        """Yield the conditions of trees of so many columns and values; see `FittedMembers`."""
        arrays = self.root, self.column, self.gap, self.child
        whole = all(isinstance(array, np.ndarray) and array.dtype.kind == "i" for array in arrays)
        yield "the trees do not lead by places", whole, None
        nodes, leaves = len(self.column), len(self.leaf)
        sizes = self.child.shape == (nodes, 2) and self.gap.shape == self.column.shape == (nodes,)
        yield "the trees have nodes without children", sizes and self.root.ndim == 1 and len(self.root) > 0, None
        yield "the trees have other thresholds than nodes", self.threshold, (nodes,)
        yield "the trees have leaves of another width", self.leaf, (leaves, values)
        later = (self.child < 0) | (self.child > np.arange(nodes)[:, None])
        within = all(((targets >= -leaves) & (targets < nodes)).all() for targets in (self.root, self.child))
        yield "the trees lead nowhere", within and later.all(), None
        asked = ((self.column >= 0) & (self.column < columns)).all() and ((self.gap == 0) | (self.gap == 1)).all()
        yield f"the trees ask for other columns than {columns}", asked, None


@dataclass(frozen=True, eq=False)
class ForestMember(Member):
    """A random forest of full-grown trees."""

    outside: ClassVar = True

    @property
    def family(self) -> str:
        return "forest"

    @classmethod
    def propose(cls, rows: Rows, setting):
        """Propose one forest, for any table."""
        return [(cls(),)]

    @classmethod
    def fit(cls, groups, training):
        return [grown(training.rows, training.seed)[0] for _ in groups]

    @classmethod
    def fit_and_leave_out(cls, groups, training, out, fold):
        """Grow the trees, and ask those that did not draw a row."""
        every = [grown(training.rows, training.seed) for _ in groups]
        rows = training.rows.take(out)
        return [forest for forest, _ in every], [
            forest.shares(rows.x, rows.c, ~drawn[:, out].T) for forest, drawn in every
        ]


@dataclass(frozen=True, eq=False)
class ForestMembers(FittedMembers):
    """A random forest.

    Attributes
    ----------
    trees : Trees
        The trees; a leaf has the shares of the classes.
    levels : int array, shape (F,)
        Number of categories of each categorical column.
    log_prior : array, shape (K,)
        Log class frequencies.
    rows : int
        Distinct rows that the trees were grown on.
    """

    trees: Trees
    levels: np.ndarray
    log_prior: np.ndarray
    rows: int

    @property
    def members(self) -> tuple[ForestMember, ...]:  # type: ignore[override]  # always the same
        """The one member."""
        return (ForestMember(),)

    @property
    def least(self) -> float:
        return 0.5 * len(self.log_prior) / self.rows

    def claims(self, dim, levels, classes):
        yield "the forest has other categories than schema_", self.levels.tolist() == list(levels), None
        yield "the forest has no rows", self.rows > 0, None
        yield f"the forest has no log_prior of {classes}", self.log_prior, (classes,)
        yield from self.trees.claims(width(dim, levels), classes)

    def log_density(self, x, c, used) -> np.ndarray:
        return self.shares(x, c)[: len(used)]

    def shares(self, x, c, asked=None) -> np.ndarray:
        """Return f_k of rows, (1, n, K), by the trees that are asked about each, (n, T), or by all; 0 if by none."""
        votes, classes = np.empty((len(x), len(self.log_prior))), len(self.log_prior)
        for batch, leaves in self.trees.leaves(together(x, c, self.levels)):
            for k, share in enumerate(np.ascontiguousarray(self.trees.leaf.T)):
                votes_of_class = share[leaves].astype(float)
                votes[batch, k] = (votes_of_class if asked is None else votes_of_class * asked[batch]).sum(1)
        count = np.full(len(x), len(self.trees.root)) if asked is None else asked.sum(1)
        result = np.log((votes + 0.5) / (count[:, None] + 0.5 * classes)) - self.log_prior
        result[(count == 0) | without_entries(x, c)] = 0.0
        return result[None]


def grown(rows: Rows, seed):
    """Return a forest grown on distinct rows, and which rows each tree drew, (T, n)."""
    import sklearn
    from sklearn.tree import DecisionTreeClassifier

    rng, classes, levels = np.random.default_rng(seed), rows.classes, np.asarray(rows.levels, int)
    ranks = Ranks(together(rows.x, rows.c, levels))
    log_prior = log_frequencies(rows.codes, rows.weight, classes)
    total = _DRAWN * len(rows) ** 0.5
    most = int(np.clip(total / len(rows), *_TREES))
    share = min(1.0, total / most / len(rows))
    trees, drawn, size = [], [], 0
    unit, codes = rows.units()
    places = [np.flatnonzero(codes == k) for k in np.argsort(rows.order.classes)]
    order, turned = in_order(rows.order)
    seen = ranks.turned(order, turned)
    gaps = bool(np.isnan(seen).any())
    while len(trees) < most and size < _BYTES:
        times = np.zeros(len(codes))
        for members in places:
            if len(members) == 1:  # else no tree would be without it
                times[members] = rng.random() < share
            elif len(members):
                np.add.at(times, members[rng.integers(len(members), size=max(1, round(share * len(members))))], 1.0)
        times = times[unit]
        grown_on = np.flatnonzero(times)
        if not len(grown_on):
            grown_on, times = np.arange(len(rows)), np.ones(len(rows))
        # Checks of parameters would take longer than a tree of few rows.
        tree = DecisionTreeClassifier(max_features="sqrt", random_state=int(rng.integers(1 << 31)))
        with sklearn.config_context(skip_parameter_validation=True), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes")  # many, of few rows that a tree drew
            tree.fit(seen[grown_on], rows.codes[grown_on], times[grown_on] * rows.weight[grown_on], check_input=gaps)
        shares = np.zeros((tree.tree_.node_count, classes), np.float32)
        shares[:, tree.classes_] = tree.tree_.value[:, 0]
        trees.append(Trees.of(tree.tree_, shares, ranks, order, turned))
        drawn.append(times > 0)
        size += trees[-1].nbytes
    return ForestMembers(Trees.joined(trees), levels, log_prior, len(rows)), np.array(drawn)
