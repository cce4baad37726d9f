"""The contract of what is averaged: a member is a value, a family is a class of them, and a family is one file."""

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from bayesgen.averaging.rows import Rows
from bayesgen.averaging.training import Setting, Training
from bayesgen.core.program import Record

BASE_RATE = "base rate"  # the product that says nothing of the features


class Member(Record, abc.ABC):
    """One way to tell classes from rows, as a value: what it takes the rows to be, and how strong its prior is.

    A family of members is a subclass in a file of its own, named in `bayesgen.averaging.families`. It is declared
    ``@dataclass(frozen=True, eq=False)``. Members that share nothing derive from `SingleMember`, which asks for less.
    All others must write

    1. `family`, a name that members share whatever their strengths: the prior weight is even over families;
    2. `propose`, the members that suit a table, in tuples that are fitted together;
    3. `fit`, which makes a `Together` of each tuple: what is kept of the rows, and the densities.

    Attributes
    ----------
    takes : {"table", "numbers", "categories"}
        The columns it says something of. Every member of the numbers, which are seen through a `FittedView`, makes a
        product with each of the categories, which are counted as `CategoryMembers`.
    generative : bool
        Whether it has a density of these columns given the class, so that questions about p(x, t) may use it.
    subtracts : bool
        Whether rows are left out of its sums: it is then fitted to all rows. Otherwise it is fitted to the rows that
        are left out, without one fold of them after the other.
    folds : bool
        Of a family that subtracts, whether it learns from rows something that is no sum besides, without their fold.
    mass : float
        Prior weight of the family beside the others.
    """

    takes: ClassVar[Literal["table", "numbers", "categories"]] = "table"
    generative: ClassVar[bool] = False
    subtracts: ClassVar[bool] = False
    folds: ClassVar[bool] = True
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
    def fit(cls, groups: Sequence[tuple[Self, ...]], training: Training) -> "Sequence[Together]":
        """Fit the proposed tuples of members."""

    @classmethod
    def seconds(cls, group: tuple[Self, ...], rows: Rows) -> float:
        """Return about how long it takes to leave out one row; it is asked of families that subtract."""
        return 0.0

    def settings(self) -> Mapping[str, Any]:
        """Return what a summary says of the member, by column."""
        strengths = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.family} | {name: v for name, v in strengths.items() if isinstance(v, bool | int | float)}


class Together(Record, abc.ABC):
    """Members of a family fitted to the same rows: what is kept of the rows, and what the members say of others."""

    members: tuple[Any, ...]

    @abc.abstractmethod
    def log_density(self, x, c, used) -> np.ndarray:
        """Return log p(x | k) of rows under some members, shape (m, n, K), up to a number of each row.

        Of members that have no density it is log p(k | x) less the log frequency of the class, and 0 where nothing is
        seen of a row.

        Parameters
        ----------
        x : array, shape (n, D)
            Numbers, NaN where missing.
        c : int array, shape (n, F)
            Categories, -1 where missing.
        used : int array, shape (m,)
            Places of the members.
        """

    def left_out(self, rows: Rows, removed, anew: Callable[[int], Rows]) -> np.ndarray:
        """Return log p(x_i | k) of rows of the fit without themselves under all members, (M, n, K).

        By default these are rows of a fold, and the fit was without them.

        Parameters
        ----------
        rows : Rows
        removed : array, shape (n,)
            The weight to take out of each.
        anew : callable
            ``anew(i)`` gives all rows but row i.
        """
        return self.log_density(rows.x, rows.c, np.arange(len(self.members)))

    def along(self, x, c, row, column, values) -> np.ndarray:
        """Return log p(x, v | k) of all members, (M, K, E, Q), with values (E, Q) for some missing numbers.

        Of members that take the whole table; the numbers are given by their rows and columns (E,).
        """
        each = values.shape[1]
        filled = np.repeat(x[row], each, axis=0)
        filled[np.arange(len(filled)), np.repeat(column, each)] = values.ravel()
        density = self.log_density(filled, np.repeat(c[row], each, axis=0), np.arange(len(self.members)))
        return density.swapaxes(1, 2).reshape(len(self.members), -1, *values.shape)

    def claims(self, dim: int, levels: tuple[int, ...], classes: int) -> Iterator[tuple[str, Any, Any]]:
        """Yield what must hold of a fit to so many numbers, categories and classes, where it comes from a file.

        Yields
        ------
        problem : str
            What is wrong where it does not hold.
        value : bool or array
            Whether it holds; or numbers,
        shape : tuple of int, or None
            which have this shape.
        """
        yield from ()

    def log_evidence(self) -> np.ndarray:
        """Return log p(x | t) of all rows under every member, (M,); -inf of members that have no evidence."""
        return np.full(len(self.members), -np.inf)

    def __getstate__(self):
        return {field.name: getattr(self, field.name) for field in fields(self)}  # what is derived is derived again


class Product(NamedTuple):
    """A member of the numbers, or none, with one of the categories, or none."""

    numbers: Any
    categories: Any

    @property
    def family(self) -> str:
        """Names of the families, whatever the strengths."""
        return " x ".join(part.family for part in self if part is not None) or BASE_RATE

    @property
    def mass(self) -> float:
        """Prior weight of the family: a fifth of the base rate."""
        return 0.2 if self == (None, None) else 1.0

    def settings(self) -> Mapping[str, Any]:
        """Return what a summary says of both."""
        kind = {"kind": BASE_RATE if self == (None, None) else "generative"}
        return {name: v for part in self if part is not None for name, v in part.settings().items()} | kind


class SingleMember(Member):
    """A member that is fitted by itself.

    A subclass must write `family`, `propose`, `settle` and `log_density`.
    """

    @abc.abstractmethod
    def settle(self, rows: Rows) -> Self:
        """Return the same member with what prediction needs, learned from rows and their classes."""

    @abc.abstractmethod
    def log_density(self, x, c) -> np.ndarray:
        """Return log p(x | k) of a settled member, (n, K); see `Together.log_density`."""

    @classmethod
    def fit(cls, groups, training):
        """Settle one after the other."""
        return [Alone(tuple(member.settle(training.rows) for member in group)) for group in groups]


@dataclass(frozen=True, eq=False)
class Alone(Together):
    """Members that share nothing.

    Attributes
    ----------
    members : tuple of SingleMember
        Settled.
    """

    members: tuple[SingleMember, ...]

    def log_density(self, x, c, used) -> np.ndarray:
        """Ask one after the other."""
        result = np.stack([self.members[m].log_density(x, c) for m in used])
        result[:, np.isnan(x).all(1) & (c < 0).all(1)] = 0.0
        return result
