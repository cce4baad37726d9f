r"""Forest members: trees on draws of the rows, for classes that begin at a threshold or follow rules.

Each tree is grown on rows drawn with replacement within each class, or on groups of rows that belong together.
Identical rows are one row, with the sum of their weights. With q the mean over k trees of the shares of the classes in
the leaf that a row reaches,

.. math:: f_k(x) = \log \frac{k\, q_k(x) + 1/2}{k + K/2} - \log \pi_k

takes the place of log p(x | k), where π are the class frequencies. A row is left out by the trees that did not draw it.
A forest is underconfident, which its exponent mends. It has no density of x, and takes no part where one is needed.
"""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesgen.averaging.member import Member, Together
from bayesgen.averaging.rows import Rows, log_frequencies, without_entries
from bayesgen.averaging.trees import Ranks, Trees, in_order, together, width

_TREES = 100, 200  # fewest and most
_DRAWN = 1e4  # rows drawn by all trees, times the square root of the rows: 1 s of 1,000, 30 s of 100,000
_BYTES = 4e7  # bytes of all trees in a file


@dataclass(frozen=True, eq=False)
class ForestMember(Member):
    """A random forest of full-grown trees."""

    outside: ClassVar = True

    @property
    def family(self) -> str:
        """Always the same."""
        return "forest"

    @classmethod
    def propose(cls, rows: Rows, setting):
        """Propose one forest, for any table."""
        return [(cls(),)]

    @classmethod
    def fit(cls, groups, training):
        """Grow the trees."""
        return [grown(training.rows, training.seed)[0] for _ in groups]

    @classmethod
    def fit_and_leave_out(cls, groups, training, out, fold):
        """Grow the trees, and ask those that did not draw a row."""
        every = [grown(training.rows, training.seed) for _ in groups]
        left = training.rows.take(out)
        return [part for part, _ in every], [part.shares(left.x, left.c, ~drawn[:, out].T) for part, drawn in every]


@dataclass(frozen=True, eq=False)
class ForestMembers(Together):
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
        """Half a row for each class."""
        return 0.5 * len(self.log_prior) / self.rows

    def claims(self, dim, levels, classes):
        """Yield the categories and the shapes of the arrays; see `Together.claims`."""
        yield "the forest has other categories than schema_", self.levels.tolist() == list(levels), None
        yield "the forest has no rows", self.rows > 0, None
        yield f"the forest has no log_prior of {classes}", self.log_prior, (classes,)
        yield from self.trees.claims(width(dim, levels), classes)

    def log_density(self, x, c, used) -> np.ndarray:
        """Return f_k of rows, (m, n, K); 0 for a row without entries."""
        return self.shares(x, c)[: len(used)]

    def shares(self, x, c, asked=None) -> np.ndarray:
        """Return f_k of rows, (1, n, K), by the trees that are asked about each, (n, T), or by all; 0 if by none."""
        votes, classes = np.empty((len(x), len(self.log_prior))), len(self.log_prior)
        for part, leaves in self.trees.leaves(together(x, c, self.levels)):
            for k, share in enumerate(np.ascontiguousarray(self.trees.leaf.T)):
                own = share[leaves].astype(float)
                votes[part, k] = (own if asked is None else own * asked[part]).sum(1)
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
        for own in places:
            if len(own) == 1:  # else no tree would be without it
                times[own] = rng.random() < share
            elif len(own):
                np.add.at(times, own[rng.integers(len(own), size=max(1, round(share * len(own))))], 1.0)
        times = times[unit]
        here = np.flatnonzero(times)
        if not len(here):
            here, times = np.arange(len(rows)), np.ones(len(rows))
        # Checks of parameters would take longer than a tree of few rows.
        tree = DecisionTreeClassifier(max_features="sqrt", random_state=int(rng.integers(1 << 31)))
        with sklearn.config_context(skip_parameter_validation=True), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes")  # many, of few rows that a tree drew
            tree.fit(seen[here], rows.codes[here], times[here] * rows.weight[here], check_input=gaps)
        shares = np.zeros((tree.tree_.node_count, classes), np.float32)
        shares[:, tree.classes_] = tree.tree_.value[:, 0]
        trees.append(Trees.of(tree.tree_, shares, ranks, order, turned))
        drawn.append(times > 0)
        size += trees[-1].nbytes
    return ForestMembers(Trees.joined(trees), levels, log_prior, len(rows)), np.array(drawn)
