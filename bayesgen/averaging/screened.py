"""Screened members: Gaussians, categories and a softmax regression on the columns that separate the classes best.

Columns that say nothing of the class cost every member that takes them: a full covariance, or a softmax regression,
learns noise from each. A screened member takes as many columns as it says, those of the largest log Bayes factor (see
`separation`), which are chosen anew from the rows that it is fitted to: the choice is left out with its rows, by folds.

Of the other columns it has no density, so it takes no part where one of a whole row is needed.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.averaging.categories import CategoryMember, CategoryMembers
from bayesgen.averaging.gaussian import GaussianMember
from bayesgen.averaging.member import Member, Together
from bayesgen.averaging.rows import Rows
from bayesgen.averaging.separation import best_first
from bayesgen.averaging.softmax import LogisticMembers, SoftmaxMember
from bayesgen.averaging.temper import expected_exponent
from bayesgen.averaging.training import Training
from bayesgen.averaging.views import FittedView

_FEWEST = 6  # columns of a table; of fewer, members on all of them do as well
_POWERS = (0.8, 0.6, 0.4, 0.25)  # widths are powers of the number of columns: 11, 6, 3 and 2 of 20
_WIDEST = 100  # columns of a full covariance
_LEARN = 5000  # rows to learn from
_GAUSSIANS = (
    GaussianMember("full", 8.0, 0.1, 0.4),
    GaussianMember("shared", 8.0, 0.1),
    GaussianMember("diagonal", 8.0, 0.1),
)
_CATEGORIES = CategoryMember("independent", 1.0), CategoryMember("one parent", 1.0)
_STRENGTH = 0.3  # of the softmax regression
_KINDS = ("gaussian", "category", "softmax")


@dataclass(frozen=True, eq=False)
class ScreenedMember(Member):
    """A product of a member of the numbers and one of the categories, or a softmax regression, on some columns.

    Attributes
    ----------
    columns : int
        How many columns it takes.
    gaussian : GaussianMember or None
    category : CategoryMember or None
    softmax : SoftmaxMember or None
    """

    columns: int
    gaussian: GaussianMember | None = None
    category: CategoryMember | None = None
    softmax: SoftmaxMember | None = None

    @property
    def family(self) -> str:
        """The same for all."""
        return "screened"

    @classmethod
    def propose(cls, rows: Rows, setting):
        """Propose some widths, where there are columns to choose from."""
        dim, total = rows.x.shape[1], rows.x.shape[1] + len(rows.levels)
        if total < _FEWEST:
            return []
        numbers = _GAUSSIANS if dim else (None,)
        categories = _CATEGORIES[: 1 if dim else 2] if rows.levels else (None,)
        widths = sorted({min(_WIDEST, round(total**power)) for power in _POWERS})
        softmax = SoftmaxMember(_STRENGTH)
        return [(*(cls(w, a, b) for a in numbers for b in categories), cls(w, softmax=softmax)) for w in widths]

    @classmethod
    def fit(cls, groups, training: Training):
        """Choose the columns of each width, and fit the members to them."""
        order = best_first(training)
        return [ScreenedMembers.of(group, np.sort(order[: group[0].columns]), training) for group in groups]

    @classmethod
    def fit_and_leave_out(cls, groups, training: Training, out, fold):
        """Learn from some thousand rows: more would hardly change the choice."""
        return super().fit_and_leave_out(groups, *training.at_most(_LEARN, out), fold)

    def expected_exponent(self, columns: int, rows: float) -> float:
        """Return the exponent to expect, by the columns that it takes."""
        return 1.0 if self.softmax is not None else expected_exponent(self.columns, rows)

    def settings(self):
        """Return the number of columns and the entries of the members on them."""
        own = (part for part in (self.gaussian, self.category, self.softmax) if part is not None)
        entries = {name: value for part in own for name, value in part.settings().items()}
        return entries | {"kind": "screened", "columns": self.columns}


@dataclass(frozen=True, eq=False)
class ScreenedMembers(Together):
    """Members on the same columns.

    Attributes
    ----------
    members : tuple of ScreenedMember
    chosen : int array, shape (C,)
        Places of the columns, ascending; those of categories counted from D.
    dim : int
        D, the numbers of the table.
    gaussian : FittedView or None
        The members of the numbers, if any number was chosen.
    category : CategoryMembers or None
        Those of the categories, likewise.
    softmax : LogisticMembers or None
        The softmax regressions.
    classes : int
        K.
    """

    members: tuple[ScreenedMember, ...]
    chosen: np.ndarray
    dim: int
    gaussian: FittedView | None
    category: CategoryMembers | None
    softmax: LogisticMembers | None
    classes: int

    @classmethod
    def of(cls, members, chosen, training: Training) -> "ScreenedMembers":
        """Fit members to the chosen columns."""
        dim, some = training.rows.x.shape[1], training.narrowed(chosen)
        kinds = ([getattr(member, name) for member in members] for name in _KINDS)
        numbers, categories, softmax = (tuple(dict.fromkeys(m for m in own if m is not None)) for own in kinds)
        view: Any = None
        counts = regressions = None
        if numbers and some.rows.x.shape[1]:
            (view,) = GaussianMember.fit([numbers], some)
        if categories and some.rows.levels:
            (counts,) = CategoryMember.fit([categories], some)
        if softmax:
            (regressions,) = SoftmaxMember.fit([softmax], some)
        return cls(members, chosen, dim, view, counts, regressions, training.rows.classes)

    def log_density(self, x, c, used) -> np.ndarray:
        """Return log p(x_chosen | k) of rows under some members, (m, n, K), in the units of the bent columns."""
        x, c = self._taken(x, c)
        result = np.zeros((len(used), len(x), self.classes))
        for part, places in self._parts:
            own = places[used]
            if (own >= 0).any():
                some, turn = np.unique(own[own >= 0], return_inverse=True)
                result[own >= 0] += part.log_density(x, c, some)[turn]
        return result

    def _taken(self, x, c):
        """Return the chosen columns of numbers and of categories."""
        return x[:, self.chosen[self.chosen < self.dim]], c[:, self.chosen[self.chosen >= self.dim] - self.dim]

    @functools.cached_property
    def _parts(self) -> list[tuple[Together, np.ndarray]]:
        """The fitted members of each kind, and the place of each member's among them, or -1."""
        result = []
        for name in _KINDS:
            if (part := getattr(self, name)) is not None:
                own = list(part.members)
                wanted = [getattr(member, name) for member in self.members]
                result.append((part, np.array([own.index(m) if m in own else -1 for m in wanted])))
        return result

    def claims(self, dim, levels, classes):
        """Yield the columns, and the conditions of the members on them; see `Together.claims`."""
        chosen, total = self.chosen, dim + len(levels)
        yield "the screened members are of another table", self.dim == dim and self.classes == classes, None
        right = chosen.ndim == 1 and chosen.dtype.kind == "i" and len(chosen) > 0 and (np.diff(chosen) > 0).all()
        yield "the screened members take no columns of this table", right and 0 <= chosen[0] <= chosen[-1] < total, None
        own = (chosen < dim).sum(), tuple(levels[j - dim] for j in chosen if j >= dim), classes
        for part, places in self._parts:
            yield "a screened member is none", len(part.members) > places.max(), None
            yield from part.claims(*own)
