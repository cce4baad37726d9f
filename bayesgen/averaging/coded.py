"""Coded members: numbers of few values are taken as categories.

Grades, numbers of children and codes are numbers of few values, and a class may lie anywhere among these: a Gaussian
knows one bump, a line one direction. A coded member takes every number of few values as a category, and the others as
numbers; the average weighs it against the members that take all as numbers. A value that no row of the fit has is
missing to it.

It has a mass of the coded columns where other members have a density, so it takes no part where one of a whole row is
needed.
"""

from dataclasses import dataclass, replace

import numpy as np

from bayesgen.averaging.categories import few_pairs
from bayesgen.averaging.composed import CATEGORIES, SOFTMAX, ComposedMember, ComposedMembers
from bayesgen.averaging.gaps import WIDE
from bayesgen.averaging.gaussian import GaussianMember
from bayesgen.averaging.rows import Rows
from bayesgen.averaging.training import Training
from bayesgen.numerics.tempering import expected_exponent

_MOST = 10  # values of a column that is coded
_ROWS = 2  # for each value: the columns of ten rows have ten values each, and are no codes
_GAUSSIANS = GaussianMember("full", 8.0, 0.1, 0.4), GaussianMember("diagonal", 8.0, 0.1)


@dataclass(frozen=True, eq=False)
class CodedMember(ComposedMember):
    """A product of a member of the numbers and one of the categories, or a softmax regression, with codes.

    Attributes
    ----------
    columns : tuple of int
        Places of the numbers that are coded, ascending.
    """

    columns: tuple[int, ...]

    @property
    def family(self) -> str:
        return "coded"

    @classmethod
    def propose(cls, rows: Rows, setting):
        """Propose codes where a number has few values, each of them in some rows."""
        most = min(_MOST, len(rows) // _ROWS)
        values = [_values(column) for column in rows.x.T] if rows.x.shape[1] <= WIDE else []
        columns = tuple(j for j, own in enumerate(values) if 2 < len(own) <= most)
        if not columns:
            return []
        levels = *rows.levels, *(len(values[j]) for j in columns)
        numbers = _GAUSSIANS if len(columns) < rows.x.shape[1] else (None,)
        categories = CATEGORIES[: 2 if few_pairs(levels, rows.classes) else 1]
        products = (cls(a, b, None, columns) for a in numbers for b in categories)
        return [(*products, cls(None, None, SOFTMAX, columns))]

    @classmethod
    def fit(cls, groups, training: Training):
        """Find the values of the columns, and fit the members to the codes."""
        return [CodedMembers.of(group, training) for group in groups]

    def expected_exponent(self, columns: int, rows: float) -> float:
        return 1.0 if self.softmax is not None else expected_exponent(columns, rows)

    def settings(self):
        return {**super().settings(), "columns": len(self.columns)}


@dataclass(frozen=True, eq=False)
class CodedMembers(ComposedMembers):
    """Members on the same codes.

    Attributes
    ----------
    columns : int array, shape (C,)
        Places of the numbers that are coded, ascending.
    values : tuple of array
        The values of each, ascending: its codes are their places.
    """

    columns: np.ndarray
    values: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, members, training: Training) -> "CodedMembers":
        """Fit members to the codes of the values that the rows have."""
        columns = np.array(members[0].columns)
        values = tuple(_values(column) for column in training.rows.x[:, columns].T)
        numbers, levels = _others(columns, training.rows.x.shape[1]), tuple(map(len, values))

        def change(rows: Rows) -> Rows:
            x, c = _coded(rows.x, rows.c, columns, values)
            return replace(rows, x=x, c=c, levels=(*rows.levels, *levels), e=None)

        return cls.on(members, training.changed(change, numbers), columns, values)

    def made(self, x, c):
        return _coded(x, c, self.columns, self.values)

    def claims(self, dim, levels, classes):
        columns = self.columns
        right = columns.ndim == 1 and columns.dtype.kind == "i" and len(columns) > 0 and (np.diff(columns) > 0).all()
        right = right and 0 <= columns[0] <= columns[-1] < dim and self.classes == classes
        yield "the coded members take no columns of this table", right, None
        values = len(self.values) == len(columns) and all(v.ndim == 1 and (np.diff(v) > 0).all() for v in self.values)
        yield "the coded members have no values of their columns", values, None
        yield from self.claims_of_parts(dim - len(columns), (*levels, *map(len, self.values)), classes)


def _values(column) -> np.ndarray:
    """Return the values of a column, ascending, without gaps."""
    return np.unique(column[~np.isnan(column)])


def _others(columns, dim: int) -> np.ndarray:
    """Return the places of the numbers that are not coded."""
    return np.setdiff1d(np.arange(dim), columns)


def _coded(x, c, columns, values) -> tuple[np.ndarray, np.ndarray]:
    """Return the other numbers, (n, D - C), and the categories with the codes after them, (n, F + C)."""
    codes = np.full((len(x), len(columns)), -1)
    for code, own, column in zip(codes.T, values, x[:, columns].T, strict=True):
        place = np.searchsorted(own, column).clip(max=len(own) - 1)
        known = own[place] == column
        code[known] = place[known]
    return x[:, _others(columns, x.shape[1])], np.concatenate([c, codes], axis=1)
