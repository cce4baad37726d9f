"""The contract of members of an average: a family is a class of members in a file of its own.

A member is a value, such as a structure and the strength of its prior. A family proposes members for a table and fits
them. What it fits is of one of two kinds. **Factors** have a density of some blocks of columns ("numbers",
"categories"): members that have a density are products of them. **Scorers** say how probable the classes are given all
columns, and nothing of the columns: no question about rows asks them.
"""

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from bayesgen.averaging.member_rows import HeldOut, Rows, numbered
from bayesgen.averaging.students import Together
from bayesgen.averaging.view import Training
from bayesgen.core.errors import NoClosedForm, listed, named
from bayesgen.core.program import Record
from bayesgen.core.statistics import Statistics
from bayesgen.numerics.tempering import expected_exponent
from bayesgen.numerics.yeo_johnson import YeoJohnson
from bayesgen.posterior.component import Factor

BASE_RATE = "base rate"  # the product that ignores the features
LEAVES = "leaves"  # the product of the columns that have a leaf of their own, alone
NUMBERS, CATEGORIES = "numbers", "categories"  # names of the blocks
Write = Callable[[np.ndarray, Any], None]  # adds densities of all members (M, n, K), of the rows at some places (n,)


@dataclass(frozen=True)
class Setting:
    """The user's choices."""

    evidence: bool = False  # whether weights come from evidences, which only some members have
    pairs: tuple[tuple[str, Any], ...] = ()  # classifiers of the user's that are members, with their names


class Member(Record, abc.ABC):
    """One model of classes and rows, as a value: a structure and the strength of its prior.

    A family of members is a subclass in a file of its own, named in `bayesgen.averaging.families`. It is declared
    ``@dataclass(frozen=True, eq=False)``, and must write

    1. `family`, a name that members share whatever their strengths: the prior weight is even over families;
    2. `propose`, the members that suit a table, in tuples that are fitted together;
    3. `fit`, which makes a `FittedMembers` of each tuple; of `blocks`, a `FittedFactors`.
    """

    # the blocks whose density it has: each member of one block makes a product with each member of the other, and
    # leaves of other columns multiply them. () if it scores the classes alone.
    blocks: ClassVar[tuple[str, ...]] = ()
    # True if rows are left out by subtracting them from its sums: it is then fitted to all rows. Otherwise it is fitted
    # to the rows that are left out, without one fold of them after the other.
    subtracts: ClassVar[bool] = False
    # True if a family that subtracts also learns from rows something that is no sum; it learns that without a fold
    folds: ClassVar[bool] = True
    # True if it follows the rows without a model of them, so that its scores on few rows say little. Such families
    # share a prior weight that grows with the rows; see `bayesgen.averaging.weights`.
    outside: ClassVar[bool] = False
    mass: ClassVar[float] = 1.0  # prior weight of the family relative to the others

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
    def most_rows(cls, rows: Rows) -> int:
        """Return the number of rows that members which do not subtract learn from at most."""
        return len(rows)

    @classmethod
    def fit_and_leave_out(
        cls, groups: Sequence[tuple[Self, ...]], training: Training, out, fold
    ) -> "tuple[Sequence[FittedMembers], list[np.ndarray]]":
        """Fit members that do not subtract, and return log p(x_i | k) of some rows without their folds, (M, n, K) each.

        These rows stand at the places ``out`` (n,), each in a ``fold`` (n,); see `Rows.joined`.
        """
        fold = training.rows.joined(out, fold)
        folds = [inside for inside in (fold == j for j in np.unique(fold)) if len(training.rows.without(out[inside]))]
        fitted, rows = cls.fit(groups, training), training.rows.take(out)
        density = [np.zeros((len(fit.members), len(out), rows.classes)) for fit in fitted]
        together = Together()
        for inside in folds:
            predicted = rows.take(inside)
            for result, fit in zip(density, cls.fit(groups, training.without(out[inside])), strict=True):
                fit.log_density_later(predicted.x, predicted.c, adding(result, np.flatnonzero(inside)), together)
        together.finish()
        return fitted, density

    @classmethod
    def seconds(cls, group: tuple[Self, ...], rows: Rows) -> float:
        """Estimate the seconds to leave out one row; used only for families that subtract."""
        return 0.0

    def expected_exponent(self, columns: int, rows: float) -> float:
        """Return the exponent to expect of a scorer on a table of so many columns and independent rows."""
        return 1.0

    def settings(self) -> Mapping[str, Any]:
        """Return the entries of the member in a summary, by column."""
        strengths = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.family} | {name: v for name, v in strengths.items() if isinstance(v, bool | int | float)}

    @property
    def factors(self) -> "tuple[Member, ...]":
        """The member alone, the counterpart of `Product.factors`."""
        return (self,)


def name_of(family: type[Member]) -> str:
    """Return the name by which a user chooses a family: that of its class, in short."""
    return family.__name__.removesuffix("Member").lower()


class Product(NamedTuple):
    """A product of members with a density, of different blocks, and of leaves."""

    factors: tuple[Any, ...]  # the members, that of the numbers first; () for the base rate
    # names of the columns (and blocks that are one observation) with leaves of their own: all of them, or none
    leaves: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """Names of the families, whatever the strengths."""
        return " x ".join(member.family for member in self.factors) or (LEAVES if self.leaves else BASE_RATE)

    @property
    def outside(self) -> bool:
        """False, since every factor has a model of the rows."""
        return False

    @property
    def mass(self) -> float:
        """Prior weight of the family: 1, and a fifth for the base rate."""
        return 0.2 if self == NOTHING else 1.0

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks that its members model."""
        return tuple(block for member in self.factors for block in member.blocks)

    def expected_exponent(self, columns: int, rows: float) -> float:
        """Return the exponent to expect of a density of so many columns."""
        return expected_exponent(columns, rows)

    def settings(self) -> Mapping[str, Any]:
        """Return the entries of the members and leaves in a summary."""
        kind = {"kind": BASE_RATE if self == NOTHING else "generative"}
        leaves = {LEAVES: named(self.leaves)} if self.leaves else {}
        return {name: v for member in self.factors for name, v in member.settings().items()} | leaves | kind


NOTHING = Product(())  # the base rate


def table_sizes(dim: int, levels: Sequence[int], classes: int) -> dict[str, Any]:
    """Return the lengths of the axes that what is learned from a table may have; see `check_shapes`."""
    sizes = {"columns": dim, "categories": len(levels), "levels": sum(levels), "classes": classes}
    return sizes | {"levels of each": levels}


class Written(NamedTuple):
    """A factor as plain arrays."""

    said: dict[str, Any]  # its kind, columns and arrays
    takes: np.ndarray  # (M,): the alternative that each member takes, -1 for none

    @classmethod
    def of(cls, said: dict[str, Any], taking) -> "Written":
        """Return a factor with an alternative for each of the members that are ``taking`` one, (M,), in their order."""
        return cls(said, np.where(taking, np.cumsum(taking) - 1, -1))


def bent_entries(numbers: Sequence[Any], warp: YeoJohnson) -> list[dict[str, Any]]:
    """Return the entries that bends derive of numbers (D,); see `FittedMembers.written`."""
    bends = np.stack([warp.location, warp.scale, warp.power], axis=1).tolist()
    return [{"of": entry, "bend": bend} for entry, bend in zip(numbers, bends, strict=True)]


def adding(result, places) -> Write:
    """Return a function that adds densities to a ``result`` (M, N, K), of rows at ``places`` (n,) of it."""

    def write(density, rows):
        result[:, places[rows]] += density

    return write


class FittedMembers(Record, abc.ABC):
    """Members of a family fitted to the same rows: the statistics of these rows, and densities or scores of others.

    A subclass must write `log_density`, and have `members`. One that has a density of rows is a `FittedFactors`. Its
    arrays are fields that say their shapes (`bayesgen.core.shapes`), by which files are checked.
    """

    keeps_rows: ClassVar[bool] = False  # True: only its owner may read a file of them
    generates: ClassVar[bool] = False  # True if the members are factors, which questions about rows ask
    drawn: ClassVar[bool] = False  # True if their parameters can be drawn; other members are points

    members: tuple[Any, ...]

    @abc.abstractmethod
    def log_density(self, x, c, used) -> np.ndarray:
        """Return log p(x | k) of rows under the members at places ``used`` (m,), (m, n, K), up to a constant for each.

        Rows have numbers ``x`` (n, D), NaN where missing, and categories ``c`` (n, F), -1 where missing. Scorers return
        log p(k | x) less the log frequency of the class, and 0 for a row without entries.
        """

    def loo_log_density(self, held: HeldOut) -> np.ndarray:
        """Return log p(x_i | k) of rows held out, each without the rows that leave with it, (M, n, K).

        By default the rows are a fold that the fit did not see.
        """
        return self.log_density(held.rows.x, held.rows.c, np.arange(len(self.members)))

    def leave_out(self, held: HeldOut, write: Write, together: Together) -> None:
        """Hand `loo_log_density` to ``write``, now or when ``together`` finishes."""
        write(self.loo_log_density(held), slice(None))

    def log_density_later(self, x, c, write: Write, together: Together) -> None:
        """Hand `log_density` under all members to ``write``, now or when ``together`` finishes, perhaps in parts."""
        write(self.log_density(x, c, np.arange(len(self.members))), slice(None))

    @property
    def least(self) -> float:
        """The s by which tempered probabilities q become (q + s π)/(1 + s); K/(2n) adds half a row for each class."""
        return 0.0

    @property
    def bend(self) -> YeoJohnson | None:
        """The bends of the numbers, `Training.warp`, if it has a density of numbers; else None."""
        return None

    @property
    def kept(self) -> tuple[Statistics, ...]:
        """The sums of the rows, which add; () where members know their rows by what is no sum."""
        return ()

    def sum_more(self, rows: Rows) -> tuple[Statistics, ...]:
        """Return such sums of other rows, under what was learned of the rows of the fit."""
        return ()

    def of_sums(self, sums: Sequence[Any]) -> Self:
        """Return the members with other sums."""
        return self

    @property
    def stays(self) -> np.ndarray:
        """True for each member that more sums leave as it is, (M,)."""
        return np.full(len(self.members), not self.kept)

    def log_evidence(self) -> np.ndarray:
        """Return log p(x | t) of all rows under every member, (M,); -inf for members without an evidence."""
        return np.full(len(self.members), -np.inf)

    def leaves(self, place: int, categories: Sequence[str]) -> dict[str, Any]:
        """Return a member as leaves with their priors, of "numbers" and of categories by name; {} if it is none."""
        return {}

    def written(self, numbers: Sequence[Any], categories: Sequence[Any]) -> list[Written]:
        """Return `log_density` as factors of plain arrays, for programs without Python (`bayesgen.export`).

        A factor has a "kind", an array for each of its names, and "columns", the entries that it looks at: those given
        of ``numbers`` (D,) and ``categories`` (F,), or what is derived of one, such as {"of": entry, "bend": [location,
        scale, power]}, {"of": entry, "values": [...]}, the place among some values, {"of": entry, "level": l}, 1 at a
        category, or {"of": [...], "low": [...], "span": [...], "centre": [...], "weights": [...]}, a weighted sum of
        entries. Kinds are those of `bayesgen.models.kinds`, the arrays with an axis of alternatives in front, and

        - "vector" and "gaussian" with a "view", moments of groups, in place of location and scale: they follow from
          these and the "strengths" (rho, kappa, shrinkage) of each alternative, as `gaussians` says;
        - "list" with "sizes", the number of values of each column;
        - "parents": ``level`` (K, L), ``pairs`` (K, L, L) and "strengths", as `categories` says;
        - "softmax", "forest" and "boosted", which are scores.
        """
        names = listed(dict.fromkeys(member.family for member in self.members))
        raise NoClosedForm(f"its members {names} do not say how they are written down: write written()")


class FittedFactors(FittedMembers):
    """Members with a density of their blocks: a `Factor` each, which answers every question about rows.

    A subclass must write `factor`, and have `members`, and `bend` if it models numbers.
    """

    generates: ClassVar[bool] = True

    @abc.abstractmethod
    def factor(self, place: int) -> Factor:
        """Return a member as a factor, its parameters integrated out.

        Its blocks are "numbers" (n, D) and "categories" (n, F), codes as floats: those of the family. The density of
        numbers is that of the bent numbers, `bend`.
        """

    @functools.cached_property
    def _factors(self) -> dict[int, Factor]:
        return {}

    def log_density(self, x, c, used):
        rows, result = {NUMBERS: x, CATEGORIES: numbered(x[:, :0], c)}, []
        for place in map(int, used):
            if place not in self._factors:
                self._factors[place] = self.factor(place)
            factor = self._factors[place]
            result.append(factor.by_class(factor.log_density(rows))[0].T)
        return np.stack(result)

    def learned(self, rows, group, added: bool) -> Self:
        """Return the fit that complete rows in their groups would give, ``added`` to this one or in its place.

        By default the fit stays.
        """
        return self

    # -- under draws of the parameters, where these are ``drawn`` -----------------------------------------------------

    def drawn_factor(self, place: int, rng) -> Factor:
        """Return a member as a factor under a draw of its parameters; by default they are integrated out."""
        return self.factor(place)

    def parameters(self, place: int, size: tuple[int, ...], rng) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Draw the parameters of a member, in units of the bent columns: dims and values (*size, ...) by name."""
        return {}

    def density_of_draws(self, place: int, x, c, size: int, rng) -> np.ndarray:
        """Return log p(x | k, θ) of rows under draws of the parameters of a member, (size, n, K)."""
        return np.repeat(self.log_density(x, c, [place]), size, axis=0)
