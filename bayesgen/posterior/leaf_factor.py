"""A leaf as a factor: its parameters integrated out, or drawn; of the columns as they are, or bent."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayesgen.core.errors import NoClosedForm, listed
from bayesgen.models.beside_constants import BesideConstants
from bayesgen.models.leaf import Leaf, untied
from bayesgen.models.model import Params, in_full, revised
from bayesgen.numerics.pieces import DENSITIES, pieces
from bayesgen.posterior.component import Factor, Gap, gaps
from bayesgen.posterior.conditional import Conditional, Line, Listed

_MASS = 1e-9  # probability of a count that may be left out
_MOST = 1 << 16  # values of a count that are listed


@dataclass(frozen=True, eq=False)
class LeafFactor(Factor):
    """The block of one leaf in each class."""

    name: str  # name of the block
    columns: tuple[str, ...]  # names of its columns, for messages
    leaf: Leaf  # with its posterior by group where ``params`` is None
    classes_of: np.ndarray  # (g,): class of each group; mostly each class is a group
    # draws of the parameters, which are the alternatives; by default they are integrated out
    params: Params | None = None
    label: bool = False  # True if it models categories or bits, which have no mean
    shares: np.ndarray | None = None  # (g,): log probability of each group within its class
    # map of the columns to those that are modelled: ``forward`` and ``back`` of rows, ``take`` of columns. The density
    # is that of the bent columns.
    bend: Any = None
    # (g,): alternative of each group, where there are no draws; by default there is one
    alternative_of: np.ndarray | None = None

    @property
    def blocks(self) -> tuple[str, ...]:  # type: ignore[override]
        """The one block."""
        return (self.name,)

    @cached_property
    def owner(self) -> np.ndarray:  # type: ignore[override]
        """The class of each group, under one draw after the other."""
        return np.tile(self.classes_of, self._draws)

    @cached_property
    def alternative(self) -> np.ndarray:  # type: ignore[override]
        if self.alternative_of is not None:
            return self.alternative_of
        return np.repeat(np.arange(self._draws), len(self.classes_of))

    @cached_property
    def log_share(self) -> np.ndarray:  # type: ignore[override]
        """Log probability of each group within its class, 0 where it is the only one."""
        return np.zeros(len(self.owner)) if self.shares is None else np.tile(self.shares, self._draws)

    @cached_property
    def _draws(self) -> int:
        return 1 if self.params is None else len(next(iter(self.params.values())))

    @property
    def structure(self):
        """Key of factors whose posteriors may stand side by side: block, bend, family and settings."""
        leaf: Any = self.leaf
        leaf = untied(leaf)
        settings = (getattr(leaf, field.name) for field in fields(leaf) if "rank" not in field.metadata)
        return self.name, id(self.bend), type(leaf), *settings

    @classmethod
    def side_by_side(cls, factors: "Sequence[LeafFactor]", start) -> "LeafFactor":
        """Return the alternatives of factors of one structure, those of each counted from its ``start`` on."""
        leaves: Any = [factor.leaf for factor in factors]
        each = list(map(in_full, leaves))
        values = {name: np.concatenate([one[name] for one in each]) for name in each[0]}
        return replace(
            factors[0],
            leaf=revised(untied(leaves[0]), **values),
            classes_of=np.concatenate([factor.owner for factor in factors]),
            shares=np.concatenate([factor.log_share for factor in factors]),
            alternative_of=np.concatenate([s + factor.alternative for s, factor in zip(start, factors, strict=True)]),
        )

    @cached_property
    def _density(self):
        return None if self.params is None else self.leaf.row_density(self.params)

    def log_density(self, rows):
        """Return the log predictive, or the log likelihood under every draw."""
        x = self._bent(rows[self.name])
        if self._density is None:
            density = np.asarray(self.leaf.log_predictive(x)).reshape(len(x), -1).T  # type: ignore[attr-defined]
        else:
            density = self._density(x)
        shape = (*density.shape[:-2], len(self.classes_of), len(x))
        return np.broadcast_to(density, shape).reshape(len(self.owner), len(x))

    def _bent(self, x) -> np.ndarray:
        return x if self.bend is None else self.bend.forward(x)

    def fill(self, rows, group, rng):
        x, params, place = rows[self.name].copy() if self.bend is None else self._bent(rows[self.name]), None, group
        if self.params is not None:
            groups, place = np.unique(group, return_inverse=True)
            params = self.leaf.select_class(self.params, np.divmod(groups, len(self.classes_of)))
        flat = x.reshape(len(x), -1)
        gone = np.flatnonzero(np.isnan(flat).any(1))
        width = flat.shape[1] * (flat.shape[1] if self.leaf.event_dim else len(self.classes_of))
        for piece in pieces(len(gone), width, DENSITIES):
            rows_of = gone[piece]
            x[rows_of] = self.leaf.fill(x[rows_of], place[rows_of], rng, params)
        if self.bend is not None:
            x = np.where(np.isnan(rows[self.name]), self.bend.back(x), rows[self.name])
        return {self.name: x}

    def conditionals(self, rows, block) -> Iterator[tuple[Gap, Conditional]]:
        """Yield a line for each column of numbers, and a list for each of categories and counts."""
        x, student = rows[block], None
        for gap in gaps(block, x):
            if self.leaf.density_kind != "density":
                yield gap, self._list(gap.place)
                continue
            student = student or self._student(self._bent(x))
            location, spread, dof = (v[..., gap.rows, gap.place].reshape(len(self.owner), -1) for v in student)
            yield gap, Line(location, spread, dof, self._back(gap.place), self.bend is not None)

    def _back(self, place: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return the map from modelled numbers of a column to entries."""
        if self.bend is None:
            return self.leaf.back
        column = self.bend.take([place])
        return lambda z: column.back(z.reshape(-1, 1)).reshape(z.shape)

    def _student(self, x) -> list[np.ndarray]:
        """Return location, scale and degrees of freedom of a leaf of numbers, each (S, K, n, D)."""
        flat = x.reshape(len(x), -1)
        try:
            parts = np.broadcast_arrays(*self.leaf.student(flat if self.leaf.event_dim else x, self.params))
        except NoClosedForm as error:
            raise NoClosedForm(f"columns {listed(self.columns)}: {error}") from None
        return [np.broadcast_to(part, (self._draws, len(self.classes_of), *flat.shape)) for part in parts]

    def _list(self, place: int) -> Listed:
        """Return the values of a column and their probabilities, whatever the other entries of a row."""
        if isinstance(self.leaf, BesideConstants) and (always := self.leaf.known(place)) is not None:
            return Listed(np.array([always]), np.zeros((len(self.owner), 1, 1)), True)
        lists = vars(self).setdefault("_lists", dict[int, Listed]())
        if place not in lists:
            size = self.leaf.cardinality(place)
            lists[place] = self._listed(place, size) if size else self._counted(place)
        return lists[place]

    def _listed(self, place, size) -> Listed:
        values = np.arange(size, dtype=float)
        shape = self.leaf.row_shape if isinstance(self.leaf, BesideConstants) else self.leaf.features
        x = np.full((size, int(np.prod(shape))), np.nan)
        x[:, place] = values
        x = self.leaf.check(x.reshape(size, *shape))
        return Listed(values, self.log_density({self.name: x})[:, None], self.label or self.leaf.cardinality(0) == 2)

    def _counted(self, place) -> Listed:
        size = 64
        while True:
            found = self._listed(place, size)
            if np.exp(found.log_mass).sum(-1).min() > 1 - _MASS or size >= _MOST:
                return found
            size *= 4


def joined(factors: Sequence[Factor], choice) -> tuple[list[Factor], np.ndarray]:
    """Make one factor of all posteriors of one structure, which are worked out at once, and revise the choice of it.

    ``choice`` (M, F) is that of `Components`: of the factors of one block a member takes one.
    """
    alike: dict[Any, list[int]] = {}
    for f, factor in enumerate(factors):
        key = factor.structure if isinstance(factor, LeafFactor) and factor.params is None else f
        alike.setdefault(key, []).append(f)
    result, columns = [], []
    for places in alike.values():
        start = np.cumsum([0, *(factors[f].alternatives for f in places)])[:-1]
        columns.append(np.where(choice[:, places] >= 0, choice[:, places] + start, -1).max(1))
        same: Any = [factors[f] for f in places]
        result.append(LeafFactor.side_by_side(same, start) if len(same) > 1 else same[0])
    return result, np.stack(columns, axis=1) if columns else choice


def leaf_factors(model, labels, params: Params | None = None, before: str = "") -> list[LeafFactor]:
    """Return a factor for each leaf of a classifier's model.

    The model has its posterior, where the parameters are integrated out; else ``params`` are S draws of them, (S, K,
    ...). ``labels`` are the names of the leaves that model categories; ``before`` stands before the name of a leaf in
    that of its block.
    """
    classes, factors = np.arange(len(model.class_names)), []
    for name, leaf in model.leaves.items():
        drawn = None if params is None else model.site(params, name)
        factors.append(LeafFactor(before + name, model.columns_of(name), leaf, classes, drawn, name in labels))
    return factors
