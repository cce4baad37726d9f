"""Members composed of members of other families, on a table that is made of the table of the fit.

The table has fewer columns (`screened`), or columns of other kinds (`coded`). A member is the product of a member of
the numbers and one of the categories of that table, or a softmax regression on it.
"""

import abc
import functools
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayesgen.averaging.categories import CategoryMember, CategoryMembers
from bayesgen.averaging.gaussian import GaussianMember
from bayesgen.averaging.member import FittedMembers, Member
from bayesgen.averaging.softmax import LogisticMembers, SoftmaxMember
from bayesgen.averaging.training import Training
from bayesgen.averaging.views import FittedView

_LEARN = 5000  # rows to learn from
CATEGORIES = CategoryMember("independent", 1.0), CategoryMember("one parent", 1.0)
SOFTMAX = SoftmaxMember(0.3)
_KINDS = ("gaussian", "category", "softmax")


@dataclass(frozen=True, eq=False)
class ComposedMember(Member):
    """A product of a member of the numbers and one of the categories, or a softmax regression.

    Attributes
    ----------
    gaussian : GaussianMember or None
    category : CategoryMember or None
    softmax : SoftmaxMember or None
    """

    gaussian: GaussianMember | None
    category: CategoryMember | None
    softmax: SoftmaxMember | None

    @classmethod
    def most_rows(cls, rows):
        """Return some thousand: more would hardly change what is made of the table."""
        return _LEARN

    def settings(self):
        own = (part for part in (self.gaussian, self.category, self.softmax) if part is not None)
        return {name: value for part in own for name, value in part.settings().items()} | {"kind": self.family}


@dataclass(frozen=True, eq=False)
class ComposedMembers(FittedMembers):
    """Composed members on the same table.

    Attributes
    ----------
    members : tuple of ComposedMember
    classes : int
        K.
    gaussian : FittedView or None
        The members of the numbers, if the table has any.
    category : CategoryMembers or None
        Those of the categories, likewise.
    softmax : LogisticMembers or None
        The softmax regressions.
    """

    members: tuple[Any, ...]
    classes: int
    gaussian: FittedView | None
    category: CategoryMembers | None
    softmax: LogisticMembers | None

    @classmethod
    def on(cls, members, table: Training, *made) -> Self:
        """Fit members to the table that is made, and keep what makes it."""
        kinds = ([getattr(member, name) for member in members] for name in _KINDS)
        numbers, categories, softmax = (tuple(dict.fromkeys(m for m in own if m is not None)) for own in kinds)
        view: Any = None
        counts = regressions = None
        if numbers and table.rows.x.shape[1]:
            (view,) = GaussianMember.fit([numbers], table)
        if categories and table.rows.levels:
            (counts,) = CategoryMember.fit([categories], table)
        if softmax:
            (regressions,) = SoftmaxMember.fit([softmax], table)
        return cls(members, table.rows.classes, view, counts, regressions, *made)

    @abc.abstractmethod
    def made(self, x, c) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers and categories of rows of the table that is made."""

    def log_density(self, x, c, used) -> np.ndarray:
        """Return log p(row | k) on the table that is made, under some members, in the units of the bent columns."""
        x, c = self.made(x, c)
        result = np.zeros((len(used), len(x), self.classes))
        for part, places in self._parts:
            own = places[used]
            if (own >= 0).any():
                some, turn = np.unique(own[own >= 0], return_inverse=True)
                result[own >= 0] += part.log_density(x, c, some)[turn]
        return result

    @functools.cached_property
    def _parts(self) -> list[tuple[FittedMembers, np.ndarray]]:
        """The fitted members of each kind, and the place of each member's among them, or -1."""
        result = []
        for name in _KINDS:
            if (part := getattr(self, name)) is not None:
                own = list(part.members)
                wanted = [getattr(member, name) for member in self.members]
                result.append((part, np.array([own.index(m) if m in own else -1 for m in wanted])))
        return result

    def claims_of_parts(self, dim: int, levels, classes: int):
        """Yield the conditions of the members, given the table that is made; see `FittedMembers.claims`."""
        for part, places in self._parts:
            yield "a composed member is none", len(part.members) > places.max(), None
            yield from part.claims(dim, levels, classes)
