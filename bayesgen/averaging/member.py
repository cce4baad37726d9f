"""The contract of members of an average: a member is a value, a family is a class of members in a file of its own."""

import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from bayesgen.averaging.rows import HeldOut, Rows, without_entries
from bayesgen.averaging.training import Setting, Training
from bayesgen.averaging.warp import YeoJohnson
from bayesgen.core.errors import named
from bayesgen.core.program import Record
from bayesgen.numerics.tempering import expected_exponent
from bayesgen.posterior.component import Factor

BASE_RATE = "base rate"  # the product that ignores the features
LEAVES = "leaves"  # the product of the columns that have a leaf of their own, alone


class Member(Record, abc.ABC):
    """One model of classes and rows, as a value: a structure and the strength of its prior.

    A family of members is a subclass in a file of its own, named in `bayesgen.averaging.families`. It is declared
    ``@dataclass(frozen=True, eq=False)``. Members that share nothing derive from `SingleMember`, which needs less.
    All others must write

    1. `family`, a name that members share whatever their strengths: the prior weight is even over families;
    2. `propose`, the members that suit a table, in tuples that are fitted together;
    3. `fit`, which makes a `FittedMembers` of each tuple: the statistics of the rows, and the densities.

    Attributes
    ----------
    takes : {"table", "numbers", "categories"}
        The columns it models. Every member of the numbers, which are seen through a view, makes a product with
        each of the categories, which are counted as `CategoryMembers`.
    generative : bool
        True if it has a density of these columns given the class, so that questions about p(x, t) may use it, and
        leaves of other columns multiply it.
    subtracts : bool
        True if rows are left out by subtracting them from its sums: it is then fitted to all rows. Otherwise it is
        fitted to the rows that are left out, without one fold of them after the other.
    folds : bool
        True if a family that subtracts also learns from rows something that is no sum; it learns that without a fold.
    outside : bool
        True if it follows the rows without a model of them, so that its scores on few rows say little. Such families
        share a prior weight that grows with the rows; see `bayesgen.averaging.weights`.
    mass : float
        Prior weight of the family relative to the others.
    """

    takes: ClassVar[Literal["table", "numbers", "categories"]] = "table"
    generative: ClassVar[bool] = False
    subtracts: ClassVar[bool] = False
    folds: ClassVar[bool] = True
    outside: ClassVar[bool] = False
    mass: ClassVar[float] = 1.0

    @property
    @abc.abstractmethod
    def family(self) -> str:
        """Name of the structure, whatever the strengths."""

    @classmethod
    @abc.abstractmethod
    def propose(cls, rows: Rows, setting: Setting) -> Sequence[tuple[Self, ...]]:
        """Return the members for a table, in tuples that are fitted together; none where it has no such columns."""

    @classmethod
    @abc.abstractmethod
    def fit(cls, groups: Sequence[tuple[Self, ...]], training: Training) -> "Sequence[FittedMembers]":
        """Fit the proposed tuples of members."""

    @classmethod
    def fit_each(
        cls, groups: Sequence[tuple[Self, ...]], trainings: Iterable[Training]
    ) -> "Iterable[Sequence[FittedMembers]]":
        """Yield what `fit` makes of each of several trainings."""
        return (cls.fit(groups, training) for training in trainings)

    @classmethod
    def most_rows(cls, rows: Rows) -> int:
        """Return the number of distinct rows that members which do not subtract learn from at most."""
        return len(rows)

    @classmethod
    def fit_and_leave_out(
        cls, groups: Sequence[tuple[Self, ...]], training: Training, out, fold
    ) -> "tuple[Sequence[FittedMembers], list[np.ndarray]]":
        """Fit members that do not subtract, and return log p(x_i | k) of some rows without their folds, (M, n, K) each.

        Parameters
        ----------
        groups : sequence of tuple
            The proposed members.
        training : Training
            Distinct rows, of which the weight is the sum over those that are identical.
        out : int array, shape (n,)
            Places of the rows that are left out.
        fold : int array, shape (n,)
            The fold of each.
        """
        folds = [here for here in (fold == j for j in np.unique(fold)) if not here.all()]
        every = iter(cls.fit_each(groups, chain([training], (training.without(out[here]) for here in folds))))
        fitted, left = next(every), training.rows.take(out)
        density = [np.zeros((len(part.members), len(out), left.classes)) for part in fitted]
        for here, parts in zip(folds, every, strict=True):
            some = left.take(here)
            for own, part in zip(density, parts, strict=True):
                own[:, here] = part.log_density(some.x, some.c, np.arange(len(part.members)))
        return fitted, density

    @classmethod
    def seconds(cls, group: tuple[Self, ...], rows: Rows) -> float:
        """Estimate the seconds to leave out one row; used only for families that subtract."""
        return 0.0

    def expected_exponent(self, columns: int, rows: float) -> float:
        """Return the exponent to expect of the member on a table of so many columns and independent rows."""
        return expected_exponent(columns, rows) if self.generative else 1.0

    def settings(self) -> Mapping[str, Any]:
        """Return the entries of the member in a summary, by column."""
        strengths = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.family} | {name: v for name, v in strengths.items() if isinstance(v, bool | int | float)}


class FittedMembers(Record, abc.ABC):
    """Members of a family fitted to the same rows: the statistics of these rows, and densities of others."""

    keeps_rows: ClassVar[bool] = False  # True: only its owner may read a file of them
    drawn: ClassVar[bool] = False  # True if their parameters can be drawn, for `draws`; other members are points

    members: tuple[Any, ...]

    @abc.abstractmethod
    def log_density(self, x, c, used) -> np.ndarray:
        """Return log p(x | k) of rows under some members, shape (m, n, K), up to a constant for each row.

        Members without a density return log p(k | x) less the log frequency of the class, and 0 for a row without
        entries.

        Parameters
        ----------
        x : array, shape (n, D)
            Numbers, NaN where missing.
        c : int array, shape (n, F)
            Categories, -1 where missing.
        used : int array, shape (m,)
            Places of the members.
        """

    def loo_log_density(self, held: HeldOut) -> np.ndarray:
        """Return log p(x_i | k) of rows held out, each without the rows that leave with it, (M, n, K).

        By default the rows are a fold that the fit did not see.
        """
        return self.log_density(held.rows.x, held.rows.c, np.arange(len(self.members)))

    # -- for questions about rows and missing entries -----------------------------------------------------------------

    @property
    def bend(self) -> YeoJohnson | None:
        """The bends of the numbers, `Training.warp`, if the density is that of the bent numbers; else None."""
        return None

    @property
    def generates(self) -> bool:
        """True if the members are factors of the density of rows."""
        return type(self).factor is not FittedMembers.factor

    def factor(self, place: int) -> Factor | None:
        """Return a member as a factor, its parameters integrated out; None where it has no part in the density of rows.

        Its blocks are "numbers" (n, D) and "categories" (n, F), codes as floats: those that the member takes. The
        density is that of the bent numbers if that of any other member is.
        """
        return None

    def drawn_factor(self, place: int, rng) -> Factor | None:
        """Return a member as a factor under a draw of its parameters; by default they are integrated out."""
        return self.factor(place)

    def learned(self, rows, group, added: bool) -> Self:
        """Return the fit that complete rows in their groups would give, ``added`` to this one or in its place.

        By default the fit stays.
        """
        return self

    def sums(self, x, c, codes) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """Return pairs of a sum over some rows and over the rows of the fit, by which they are compared, or None."""
        return None

    def claims(self, dim: int, levels: tuple[int, ...], classes: int) -> Iterator[tuple[str, Any, Any]]:
        """Yield the conditions that a fit read from a file must meet, given its numbers, categories and classes.

        Yields
        ------
        problem : str
            The message if the condition fails.
        value : bool or array
            True if the condition holds; or an array to check.
        shape : tuple of int, or None
            The shape that the array must have.
        """
        yield from ()

    @property
    def least(self) -> float:
        """The s by which tempered probabilities q become (q + s π)/(1 + s); K/(2n) adds half a row for each class."""
        return 0.0

    def log_evidence(self) -> np.ndarray:
        """Return log p(x | t) of all rows under every member, (M,); -inf for members without an evidence."""
        return np.full(len(self.members), -np.inf)


class Product(NamedTuple):
    """A product of a member of the numbers, or none, a member of the categories, or none, and leaves.

    Attributes
    ----------
    numbers, categories : Member or None
    leaves : tuple of str
        Names of the columns (and blocks that are one observation) with leaves of their own: all of them, or none.
    """

    numbers: Any
    categories: Any
    leaves: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """Names of the families, whatever the strengths."""
        alone = LEAVES if self.leaves else BASE_RATE
        return " x ".join(part.family for part in self[:2] if part is not None) or alone

    @property
    def outside(self) -> bool:
        """Never: every member has a model of the rows."""
        return False

    @property
    def mass(self) -> float:
        """Prior weight of the family: 1, and a fifth for the base rate."""
        return 0.2 if self == NOTHING else 1.0

    def expected_exponent(self, columns: int, rows: float) -> float:
        """Return the exponent to expect of a density of so many columns."""
        return expected_exponent(columns, rows)

    def settings(self) -> Mapping[str, Any]:
        """Return the entries of the members and leaves in a summary."""
        kind = {"kind": BASE_RATE if self == NOTHING else "generative"}
        leaves = {LEAVES: named(self.leaves)} if self.leaves else {}
        return {name: v for part in self[:2] if part is not None for name, v in part.settings().items()} | leaves | kind


NOTHING = Product(None, None)  # the base rate


class SingleMember(Member):
    """A member that is fitted by itself.

    A subclass must write `family`, `propose`, `settle` and `log_density`.
    """

    @abc.abstractmethod
    def settle(self, rows: Rows) -> Self:
        """Return the member fitted to rows and their classes, ready to predict."""

    @abc.abstractmethod
    def log_density(self, x, c) -> np.ndarray:
        """Return log p(x | k) under the settled member, (n, K); see `FittedMembers.log_density`."""

    @classmethod
    def fit(cls, groups, training):
        """Settle the members one by one."""
        return [Independent(tuple(member.settle(training.rows) for member in group)) for group in groups]


@dataclass(frozen=True, eq=False)
class Independent(FittedMembers):
    """Members that share nothing.

    Attributes
    ----------
    members : tuple of SingleMember
        Settled members.
    """

    members: tuple[SingleMember, ...]

    def log_density(self, x, c, used) -> np.ndarray:
        """Stack the log densities of the members."""
        result = np.stack([self.members[m].log_density(x, c) for m in used])
        result[:, without_entries(x, c)] = 0.0
        return result
