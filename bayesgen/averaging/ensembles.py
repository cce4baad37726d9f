r"""Members of trees: forests of trees on draws of the rows, and boosted trees, for classes that follow rules.

**Forests.** Each tree is grown on rows drawn with replacement within each class, or on groups of rows that belong
together. The log of the mean of its trees' shares, with half a vote for each class, less that of the class frequencies,
takes the place of log p(x | k) (`docs/mathematics/averaged.md`, "Tempering"). A row is left out by the trees that did
not draw it. A forest is underconfident, which its exponent mends.

scikit-learn grows the trees; their arrays are kept, saved without running code, and all trees are asked at once
(`Trees`). Trees see numbers and categories as the columns of one matrix: the numbers, then a category of two levels as
a number 0 or 1, one of more levels as an indicator of each level. A missing entry stays missing: each node says which
way it goes.

**Boosted trees**, from a hundred rows on, and with larger trees too from a thousand on, are sums of small trees, each
grown on what those before it got wrong. With a_k the sum of a constant and of the leaves that a row reaches in the
trees of class k,

.. math:: f_k(x) = a_k(x) - \log \sum_l e^{a_l(x)} - \log \pi_k

takes the place of log p(x | k), where π are the class frequencies. Rows are left out by folds. The least rows of a leaf
follow the rows of the fit, so that a fold can split where all rows can, or its scores would not be those of the member.
Of two classes, from a thousand rows on, the trees of little capacity also split by weighted sums of the numbers
(`directions`): a rule over a sum is then one split. Trees have no density of x, and take no part where one is needed.
"""

import functools
import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax

from bayesgen.averaging.directions import Directions
from bayesgen.averaging.member import FittedMembers, Member, Written
from bayesgen.averaging.member_rows import Rows, log_frequencies, numbered, without_entries
from bayesgen.averaging.view import WIDE
from bayesgen.core.shapes import require_fit, shaped
from bayesgen.numerics.content_order import level_counts
from bayesgen.numerics.pieces import one_openmp_thread
from bayesgen.numerics.trees import Ranks, Trees, grown_tree

_GROWN = 100, 200  # trees of a forest, fewest and most
_DRAWN = 5e3  # rows drawn by all trees, times the square root of the rows: half a second of 1,000, 15 s of 100,000
_BYTES, _NODE = 4e7, 21  # of all trees of a forest in a file, and of a node; a leaf has 4 of each class
_FEWEST, _ENOUGH = 100, 1000  # rows: from the first on trees of little capacity, from the second on of much
_WIDEST = 2000  # columns of numbers: 50 s of 1,000 rows, as they look at every column in every node
_ROUNDS, _TREES = 100, 180  # trees of a score, and of all
_EACH = 25  # rows of each round, 20 rounds at least: few rows are learned in larger steps
_LEAVES = 6, 24  # of a tree: little capacity, and much
_MOST = 255  # bins of a column, and levels of one of categories; more are taken as numbers
_LEVELS, _COMMON = 1000, 0.01  # of a category of more levels, forests ask about those of such a share of the rows
_SHARES = np.arange(1, _MOST) / _MOST
_LARGEST = float(np.finfo(float).max)
_SUMMED = 5000  # rows, and up to twice as many, from which sums are learned
_DIGITS = 9  # of a sum of numbers, whose standard deviation is 1
_ABSENT = 7.0  # log odds of a class without rows against the rarest of the others: a thousand times rarer


def together(x, c, levels, used: Any = slice(None)) -> np.ndarray:
    """Return numbers (n, D) and categories (n, F), of so many levels, as ``used`` columns of a matrix, NaN for gaps."""
    of, level = _columns(x.shape[1], levels)[:, used]
    entries = numbered(x, c)[:, of]
    return np.where((level < 0) | np.isnan(entries), entries, entries == level)


def _columns(dim: int, levels) -> np.ndarray:
    """Return what each column of the matrix is of, numbers first, and its level or -1, (2, P); of two the second."""
    each = [range(-1, 0)] * dim + [range(1, 2) if count <= 2 else range(count) for count in levels]
    return np.stack(
        [np.repeat(np.arange(len(each)), [*map(len, each)]), np.array([i for shown in each for i in shown], int)]
    )


def asked_about(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns of the matrix that trees ask about, (U,), their order by content, and which to turn.

    Of a category of many levels they ask about the common ones, by rows of all classes: of thousands most are too rare
    for a split, and a matrix of all is large.
    """
    dim, order = rows.x.shape[1], rows.order
    of, level = _columns(dim, rows.levels)
    common = np.ones(len(of), bool)
    for j in np.flatnonzero(np.array(rows.levels) > _LEVELS):
        weight = level_counts(rows.codes, rows.c[:, j], rows.weight, rows.classes, rows.levels[j]).sum(0)
        common[of == dim + j] = weight >= _COMMON * rows.weight.sum()
    common[: int(not common.any())] = True  # trees ask about something
    place = np.array([0 if i < 0 else order.levels[j - dim][i] for j, i in zip(of, level, strict=True)])
    columns = np.lexsort([place, np.argsort(order.columns)[of]])
    columns, used = columns[common[columns]], np.flatnonzero(common)
    return used, np.searchsorted(used, columns), (order.signs < 0)[of[columns]]


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
        (forest, drawn), rows = grown(training.rows, training.seed), training.rows.take(out)
        return [forest], [forest.shares(rows.x, rows.c, ~drawn[:, out].T)]


@dataclass(frozen=True, eq=False)
class ForestMembers(FittedMembers):
    """A random forest."""

    trees: Trees  # the trees; a leaf has the shares of the classes
    # categories of each categorical column
    levels: np.ndarray = field(metadata=shaped("categories", same="levels of each"))
    log_prior: np.ndarray = field(metadata=shaped("classes"))  # log class frequencies
    rows: int  # rows that the trees were grown on

    @property
    def members(self) -> tuple[ForestMember, ...]:  # type: ignore[override]  # always the same
        """The one member."""
        return (ForestMember(),)

    @property
    def least(self) -> float:
        return 0.5 * len(self.log_prior) / self.rows

    def fits(self, sizes):
        """Return the sizes of the trees; see `check_shapes`."""
        require_fit(self.rows > 0, "the forest has no rows")
        return {"features": _columns(sizes["columns"], self.levels).shape[1], "values": sizes["classes"]}

    def written(self, numbers, categories):
        every = [*numbers, *categories]
        columns = _columns(len(numbers), self.levels).T.tolist()
        shown = [every[j] if level < 0 else {"of": every[j], "level": level} for j, level in columns]
        said = {"kind": "forest", "columns": shown, "log_prior": self.log_prior.tolist()}
        return [Written(said | self.trees.written(), np.zeros(1, int))]

    def log_density(self, x, c, used) -> np.ndarray:
        return self.shares(x, c)[: len(used)]

    def shares(self, x, c, asked=None) -> np.ndarray:
        """Return f_k of rows, (1, n, K), by the trees that are asked about each, (n, T), or by all; 0 if by none."""
        votes, classes = np.empty((len(x), len(self.log_prior))), len(self.log_prior)
        trees, used = self._narrowed
        for batch, leaves in trees.leaves(together(x, c, self.levels, used)):
            for k, share in enumerate(np.ascontiguousarray(self.trees.leaf.T)):
                votes_of_class = share[leaves].astype(float)
                votes[batch, k] = (votes_of_class if asked is None else votes_of_class * asked[batch]).sum(1)
        count = np.full(len(x), len(self.trees.root)) if asked is None else asked.sum(1)
        result = np.log((votes + 0.5) / (count[:, None] + 0.5 * classes)) - self.log_prior
        result[(count == 0) | without_entries(x, c)] = 0.0
        return result[None]

    @functools.cached_property
    def _narrowed(self) -> tuple[Trees, np.ndarray]:
        """The trees as they ask about the columns of the matrix that they use, and the places of these."""
        used, column = np.unique(self.trees.column, return_inverse=True)
        return replace(self.trees, column=column), used


def grown(rows: Rows, seed):
    """Return a forest grown on rows, and which of them each tree drew, (T, n)."""
    rng, classes, levels = np.random.default_rng(seed), rows.classes, np.asarray(rows.levels, int)
    used, order, turned = asked_about(rows)
    ranks = Ranks(together(rows.x, rows.c, levels, used))
    log_prior = log_frequencies(rows.codes, rows.weight, classes)
    total = _DRAWN * len(rows) ** 0.5
    most = int(np.clip(total / len(rows), *_GROWN))
    share = min(1.0, total / most / len(rows))
    trees, drawn, size = [], [], 0
    unit, codes = rows.departing()
    places = [np.flatnonzero(codes == k) for k in np.argsort(rows.order.classes)]
    seen = ranks.turned(order, turned)
    member, features = np.eye(classes)[rows.codes], max(1, int(seen.shape[1] ** 0.5))
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
        drawn_now = seen[grown_on], member[grown_on], times[grown_on] * rows.weight[grown_on]
        trees.append(grown_tree(*drawn_now, features, int(rng.integers(1 << 31))))
        drawn.append(times > 0)
        size += _NODE * (trees[-1].node_count // 2) + 4 * classes * (trees[-1].node_count // 2 + 1)
    shares = np.concatenate([tree.value[:, :, 0] for tree in trees]).astype(np.float32)
    found = Trees.of(trees, shares, ranks, order, turned)
    found = replace(found, column=used[found.column].astype(np.int32))
    return ForestMembers(found, levels, log_prior, len(rows)), np.array(drawn)


@dataclass(frozen=True, eq=False)
class BoostedMember(Member):
    """Boosted trees."""

    outside: ClassVar = True

    leaves: int  # most leaves of a tree
    sums: bool = False  # True if the trees also see weighted sums of the numbers; see `directions`

    @property
    def family(self) -> str:
        return "boosted"

    @classmethod
    def propose(cls, rows: Rows, setting):
        """Propose one capacity or two, where rows are enough, columns not too many, and every fold has two classes.

        Few rows tell steps over columns (if this, then that) as well as many do: one tree of 6 leaves after the other
        finds them in 150 rows, where a forest, whose trees see some of the columns, does not.
        """
        enough = rows.worth >= _FEWEST and (np.bincount(rows.codes) > 1).sum() > 1
        if not enough or rows.x.shape[1] > _WIDEST:
            return []
        if rows.worth < _ENOUGH:
            return [(cls(_LEAVES[0]),)]
        sums = rows.classes == 2 and 2 <= rows.x.shape[1] <= WIDE
        return [(cls(_LEAVES[0], sums), cls(_LEAVES[1]))]

    @classmethod
    def fit(cls, groups, training):
        return [BoostedMembers.of(group, training.rows) for group in groups]


@dataclass(frozen=True, eq=False)
class BoostedMembers(FittedMembers):
    """Boosted trees of several capacities."""

    members: tuple[BoostedMember, ...]  # the capacities
    trees: tuple[Trees, ...]  # the trees of each, round by round; a leaf has what it adds
    sums: Directions  # the sums that some of them see behind the numbers and categories
    # the class to which each adds; of two one score says all
    score: np.ndarray = field(metadata=shaped("trees", places="classes"))
    start: np.ndarray = field(metadata=shaped("classes"))  # what the trees add to
    log_prior: np.ndarray = field(metadata=shaped("classes"))  # log class frequencies
    rows: int  # rows that the trees were grown on

    @classmethod
    def of(cls, members, rows: Rows) -> "BoostedMembers":
        """Grow the trees by scikit-learn's HistGradientBoostingClassifier."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        log_prior, present = log_frequencies(rows.codes, rows.weight, rows.classes), np.unique(rows.codes)
        scored = present[1:] if len(present) == 2 else present
        rounds = int(np.clip(min(_TREES // len(scored), rows.worth // _EACH), 20, _ROUNDS))
        columns, sign = rows.order.columns, rows.order.signs
        z, trees, start = numbered(rows.x, rows.c) * sign, [], log_prior
        dim = rows.x.shape[1]
        levels = [np.array([], int)] * dim + [np.unique(column[column >= 0]) for column in rows.c.T]
        sets = np.array([2 < len(values) <= _MOST for values in levels])
        order = np.concatenate([columns[sets[columns]], columns[~sets[columns]]])  # scikit-learn puts categories first
        sums = Directions.none(dim)
        if any(member.sums for member in members):
            few = rows if len(rows) < 2 * _SUMMED else rows.take(slice(None, None, len(rows) // _SUMMED))
            used, *by_content = asked_about(few)
            sums = Directions.of(few, together(few.x, few.c, few.levels, used), *by_content)
        more = len(sums.weight)
        # Rounded, since the last digits of a sum depend on the order of its terms.
        z = np.concatenate([z, np.round(sums.sums(rows.x), _DIGITS)], axis=1)
        sets, sign = np.append(sets, np.zeros(more, bool)), np.append(sign, np.ones(more))
        levels += [np.array([], int)] * more
        with_sums = np.append(order, np.arange(z.shape[1] - more, z.shape[1]))
        edges = [_edges(column) for column in z.T]
        binned = z.copy()  # scikit-learn takes five times as long to find bins of rows with weights
        for j in np.flatnonzero(~sets):
            binned[:, j] = np.where(np.isnan(z[:, j]), np.nan, np.searchsorted(edges[j], z[:, j]))
        for member in members:
            seen = with_sums if member.sums else order
            settings: dict[str, Any] = {
                "learning_rate": min(0.3, 9 / rounds),
                "max_iter": rounds,
                "max_leaf_nodes": member.leaves,
                "min_samples_leaf": int(np.clip(rows.worth / 15, 5, 20) / rows.each),
                "early_stopping": False,
                "categorical_features": np.arange(sets.sum()) if sets.any() else None,
            }
            model: Any = HistGradientBoostingClassifier(**settings, random_state=0)
            with one_openmp_thread():  # more threads cost more than they gain in trees this small
                model.fit(binned[:, seen], rows.codes, None if (rows.weight == 1).all() else rows.weight)
            start = np.full(rows.classes, -np.inf)
            start[present], start[scored] = 0.0, model._baseline_prediction.ravel()
            start = np.maximum(start, start[present].min() - _ABSENT)
            trees.append(_arrays([tree for both in model._predictors for tree in both], seen, levels, edges, sign))
        return cls(members, tuple(trees), sums, np.tile(scored, rounds), start, log_prior, len(rows))

    @property
    def least(self) -> float:
        return 0.5 * len(self.log_prior) / self.rows

    def fits(self, sizes):
        """Return the sizes of the trees, as many of each member as there are scores; see `check_shapes`."""
        require_fit(len(self.trees) == len(self.members) and self.rows > 0, "the boosted members have other trees")
        features = sizes["columns"] + sizes["categories"] + len(self.sums.weight)
        return sizes | {"features": features, "values": 1, "trees": len(self.score)}

    def written(self, numbers, categories):
        columns = [*numbers, *categories, *self.sums.written(numbers)]
        common = {"kind": "boosted", "columns": columns, "log_prior": self.log_prior.tolist()}
        common |= {"start": self.start.tolist(), "score": self.score}
        places = np.arange(len(self.members))
        return [Written.of(common | trees.written(), places == m) for m, trees in enumerate(self.trees)]

    def log_density(self, x, c, used) -> np.ndarray:
        z = np.concatenate([numbered(x, c), self.sums.sums(x)], axis=1)
        result = np.empty((len(used), len(x), len(self.start)))
        adds = np.eye(len(self.start))[self.score]
        for score, m in zip(result, used, strict=True):
            for batch, leaves in self.trees[m].leaves(z):
                score[batch] = self.trees[m].leaf[leaves, 0] @ adds
        result = log_softmax(result + self.start, axis=2) - self.log_prior
        result[:, without_entries(x, c)] = 0.0
        return result


def _edges(column) -> np.ndarray:
    """Return the edges of at most 255 bins of a column, NaN where missing: midpoints, of many values by quantiles."""
    seen = column[~np.isnan(column)]
    values = np.unique(seen)
    middle = values[:-1] + (values[1:] / 2 - values[:-1] / 2)
    if len(values) <= _MOST:
        return middle
    places = np.searchsorted(values, np.quantile(seen, _SHARES), side="right") - 1
    return middle[np.unique(np.minimum(places, len(middle) - 1))]


def _arrays(trees, order, levels, edges, sign) -> Trees:
    """Return trees of scikit-learn's, each a TreePredictor, as trees that split by thresholds alone.

    A node that sends a set of levels left becomes a chain of nodes, one for each run of levels on the same side: chains
    of one node share their subtrees. They saw columns in an ``order`` (P,), those with a ``sign`` of -1 turned; of each
    column ``levels`` are those of its categories, as scikit-learn numbers them, and ``edges`` those of its bins.
    """
    root, column, threshold, gaps, child, leaf = ([] for _ in range(6))
    for tree in trees:
        nodes, sets, chains = tree.nodes, tree.raw_left_cat_bitsets, {}
        for i in np.flatnonzero(nodes["is_leaf"] == 0):
            gap, j = 1 - int(nodes["missing_go_to_left"][i]), order[nodes["feature_idx"][i]]
            if not nodes["is_categorical"][i]:
                cut = nodes["num_threshold"][i]
                end = edges[j][int(cut)] if cut < len(edges[j]) else _LARGEST  # the largest: gaps from all numbers
                turned = int(sign[j] < 0)  # -x <= t is not x <= the next below -t
                chains[i] = [(max(math.nextafter(-end, -math.inf), -_LARGEST) if turned else end, turned)], gap
                continue
            seen, code = levels[j], np.arange(len(levels[j]))
            goes_left = sets[nodes["bitset_idx"][i]][code // 32] >> (code % 32) & 1
            side = np.full(seen.max() + 1, gap)  # a level that was not there goes with the gaps
            side[seen] = 1 - goes_left
            ends = np.flatnonzero(np.diff(side))
            chains[i] = [(end + 0.5, side[end]) for end in ends] or [(seen.max(), side[0])], gap
        leaves = np.flatnonzero(nodes["is_leaf"])
        place: dict[Any, int] = {i: -1 - number for number, i in enumerate(leaves, len(leaf))}
        first = len(column) + np.cumsum([0, *(len(chain) for chain, _ in chains.values())])
        place |= {i: int(node) for i, node in zip(chains, first, strict=False)}
        for i, (chain, gap) in chains.items():
            target = place[nodes["left"][i]], place[nodes["right"][i]]
            for turn, (end, side) in enumerate(chain, 1):
                last = target[1 - side] if turn == len(chain) else place[i] + turn
                column.append(order[nodes["feature_idx"][i]])
                threshold.append(end)
                gaps.append(int(side != gap))
                child.append((target[side], last))
        root.append(place[0])
        leaf.extend(nodes["value"][leaves])
    return Trees(
        np.array(root, np.int32),
        np.array(column, np.int32),
        np.array(threshold, float),
        np.array(gaps, np.int8),
        np.array(child, np.int32).reshape(-1, 2),
        np.array(leaf, float)[:, None],
    )
