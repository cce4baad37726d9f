"""What a single generative classifier says of missing entries, given what is seen of their rows.

The joint density is a mixture of components: the classes of an exact posterior or of a point, each class under each of
some draws of the parameters otherwise. Given a component, a missing entry is a Student-t or takes values one can list.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayesgen.inspection.joint import Joint, Rows, SingleJoint
from bayesgen.posterior import generator

_MASS = 1e-9  # of a count that may be left out
_MOST = 1 << 16  # values of a count that are listed


@dataclass(frozen=True)
class Table:
    """A finite entry, or a count: its values (V,) and their log probabilities under each component, (S, K, V)."""

    values: np.ndarray
    log_mass: np.ndarray


@dataclass(frozen=True)
class Gap:
    """A column with missing entries.

    Attributes
    ----------
    block : str
        Its leaf.
    place : int
        Its place among the columns of the leaf.
    column : int
        Its place among the columns of the table.
    rows : int array
        Where it is missing.
    """

    block: str
    place: int
    column: int
    rows: np.ndarray


class Components:
    """The components of a single classifier.

    Parameters
    ----------
    joint : SingleJoint
    draws : int
        Draws of the parameters, where the posterior is neither exact nor a point.
    """

    def __init__(self, joint: SingleJoint, draws: int):
        posterior = joint.classifier.posterior_
        self.classifier, self.model, self.params = joint.classifier, posterior.model, None
        if posterior.kind == "point":
            self.params = posterior.draws(0, (1,))
        elif posterior.kind == "draws":
            self.params = posterior.draws(generator(joint.classifier.random_state), (draws,))
        self.count = 1 if self.params is None else len(next(iter(self.params.values())))
        self._tables: dict[tuple[str, int], Table] = {}

    def log_weight(self, rows: Rows) -> np.ndarray:
        """Log p(x, t = k | θ) of rows under every component, (S, K, n)."""
        if self.params is None:
            return self.model.log_predictive(self.classifier._shape(rows)).T[None]
        return self.model.log_likelihood_rows(self.params, rows)

    def is_number(self, block: str) -> bool:
        """Whether a leaf is of numbers."""
        return self.model.leaves[block].density_kind == "density"

    def is_label(self, block: str) -> bool:
        """Whether a leaf is of categories or bits, which have no mean."""
        return any(b.name == block and b.categories is not None for b in self.classifier.schema_.blocks) or (
            self.model.leaves[block].cardinality(0) == 2
        )

    def student(self, block: str, rows: Rows):
        """Location, scale and degrees of freedom, (S, K, n or 1, D or 1) each, of a leaf of numbers."""
        leaf, x = self.model.leaves[block], rows[block].reshape(len(rows[block]), -1)
        own = rows[block] if not leaf.event_dim else x
        if self.params is None:
            return tuple(part[None] for part in _filled(leaf.student(own)))
        return _filled(leaf.student(own, self.model.site(self.params, block)))

    def table(self, gap: Gap) -> Table:
        """Values and probabilities of a finite entry or a count, which other entries of the row do not move."""
        key = gap.block, gap.place
        if key not in self._tables:
            size = self.model.leaves[gap.block].cardinality(gap.place)
            self._tables[key] = self._listed(*key, size) if size else self._counted(*key)
        return self._tables[key]

    def _listed(self, block, place, size) -> Table:
        leaf, values = self.model.leaves[block], np.arange(size, dtype=float)
        width = int(np.prod(leaf.features)) if leaf.features else 1
        x = np.full((size, width), np.nan)
        x[:, place] = values
        x = leaf.check(x.reshape(size, *leaf.features))
        if self.params is None:
            return Table(values, leaf.log_predictive(x).reshape(size, -1).T[None])
        return Table(values, leaf.log_likelihood_rows(self.model.site(self.params, block), x))

    def _counted(self, block, place) -> Table:
        size = 64
        while True:
            table = self._listed(block, place, size)
            if np.exp(table.log_mass).sum(-1).min() > 1 - _MASS or size >= _MOST:
                return table
            size *= 4


def _filled(parts):
    """Arrays of as many axes as the first."""
    return tuple(part.reshape((1,) * (parts[0].ndim - part.ndim) + part.shape) for part in parts)


def gaps_of(schema, rows: Rows) -> Iterator[Gap]:
    """The columns that have missing entries."""
    for block in schema.blocks:
        missing = np.isnan(rows[block.name].reshape(len(rows[block.name]), -1))
        for place in np.flatnonzero(missing.any(0)):
            column = schema.columns.index(block.columns[place])
            yield Gap(block.name, int(place), column, np.flatnonzero(missing[:, place]))


def refuse_totals(joint: Joint, question: str, rows: Rows | None = None) -> None:
    """Raise where a leaf is modelled given its total; of ``rows``, where an entry is missing, and the total with it."""
    if not isinstance(joint, SingleJoint):
        return  # the averaged classifier has no such leaves
    model = joint.classifier.model_
    for name, leaf in model.leaves.items():
        if leaf.density_kind.startswith("probability given") and (rows is None or np.isnan(rows[name]).any()):
            columns = model.columns_of(name) or (name,)
            raise ValueError(
                f"{question} has no answer for {name!r} (columns such as {columns[0]!r}): its model is a "
                f"{leaf.density_kind}"
                + ("; leave these columns out of the fit" if rows is None else ", and entries are missing")
            )
