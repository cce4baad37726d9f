"""Engines: the ways in which densities of rows under the Gaussian members of a view are worked out, and which is taken.

An `Engine` has the log densities of some members, of the rows for which its digits are good. For rows of one kind
several engines are tried in turn, and each row is left to the first that serves it:

- **complete rows**: the models (`OfModel`), by whitening or polynomials (`bayesgen.models.normal_inverse_wishart`), all
  members of one form as one model;
- **rows with gaps** under members with a covariance matrix: which of two ways takes less time follows from how many
  rows share a pattern of gaps and how many columns they lack, see `COSTS`. Independent columns take gaps as they come.

`Engines` makes the engines of one fit when they are first asked for, and keeps what predictions need again.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bayesgen.averaging.densities import FEWEST, Engine, Marginals, OfModel, OfRow, stacked
from bayesgen.averaging.students import Reference
from bayesgen.models.moments import Moments
from bayesgen.numerics.pieces import grouped_patterns

_FEW = 16  # columns up to which the marginal model is kept where all gaps have one pattern, for the next rows
_PATTERNS = 16  # patterns of gaps in so few columns whose models are kept


class Cost(NamedTuple):
    """Microseconds of rows of one pattern of gaps, which lack k columns and have w, under 40 members of 3 classes."""

    pattern: tuple[float, float]  # once for the pattern: times 1 and w²
    row: tuple[float, float, float]  # for each row: times 1, k² and k³


COSTS = {  # `python -m benchmarks.engines` measures them
    "eliminated": Cost((0.0, 0.0), (12.0, 0.5, 0.04)),  # `Marginals`, or `OfRow` where these do not serve
    "marginal": Cost((1500.0, 10.0), (10.0, 0.0, 0.0)),  # the model of the columns that the rows have
}


def choose(sizes, lacks, dim: int) -> np.ndarray:
    """Return the name of the cheapest way, by `COSTS`, for patterns of so many rows that lack so many columns, (P,)."""
    cost = []
    for pattern, row in COSTS.values():
        once = pattern[0] + pattern[1] * (dim - lacks) ** 2
        cost.append(once + sizes * (row[0] + row[1] * lacks**2 + row[2] * lacks**3))
    if len(sizes) == 1 and dim <= _FEW:  # what is derived for one row serves the next
        cost[[*COSTS].index("marginal")] = np.zeros(1)
    return np.array([*COSTS])[np.argmin(cost, axis=0)]


class Engines:
    """The engines of the members of a fitted view, by the moments of its groups and the reference of all priors.

    ``posterior`` returns the posterior of the member at a place, a model.
    """

    def __init__(self, members, statistics: Moments, reference: Reference, posterior):
        self.members, self.statistics, self.reference, self.posterior = members, statistics, reference, posterior
        self._models: dict = {}  # by members and columns
        self._marginals: dict = {}  # by members

    def plan(self, seen, count: int, used) -> Iterator[tuple[Any, Iterable[tuple[np.ndarray, Iterable[Engine]]]]]:
        """Yield rows, and for them the places among ``used`` of members with the engines that are tried in turn.

        Rows without an entry are left out: all their densities are 1. Of ``count`` rows the entries that are there are
        ``seen`` (n, D), None where none is missing; ``used`` are the places of the members that are asked.
        """
        if seen is None or not self.statistics.vector:
            yield slice(None), self._of_models(used)
            return
        whole = seen.all(1)
        if whole.any():
            yield np.flatnonzero(whole), self._of_models(used)
        if whole.all():
            return
        kinds, order, bounds = grouped_patterns(seen[~whole])
        holes, sizes, dim = np.flatnonzero(~whole)[order], np.diff(bounds), seen.shape[1]
        marginal = (choose(sizes, dim - kinds.sum(1), dim) == "marginal") & kinds.any(1)
        for kind in np.flatnonzero(marginal):
            yield holes[bounds[kind] : bounds[kind + 1]], self._of_models(used, np.flatnonzero(kinds[kind]))
        others = np.sort(holes[~np.repeat(marginal | ~kinds.any(1), sizes)])
        if len(others):
            yield others, self._with_gaps(used)

    def _of_models(self, used, columns=None) -> list[tuple[np.ndarray, list[Engine]]]:
        return [(places, [OfModel(model, columns)]) for places, model in self.models(used, columns)]

    def _with_gaps(self, used):
        """Yield the engines of rows with gaps that few others share."""
        alone = np.array([self.members[m].diagonal for m in used])
        flat, others = np.flatnonzero(alone), np.flatnonzero(~alone)
        if len(flat):
            yield from ((flat[own], tries) for own, tries in self._of_models(used[flat]))
        for places, marginals in self.marginals(used, others):
            row_by_row = OfRow([self.members[m] for m in used[places]], self.reference)
            yield places, [row_by_row] if marginals is None else [marginals, row_by_row]

    def models(self, used, columns=None) -> list[tuple[np.ndarray, Any]]:
        """Return the posteriors of some members, and their places among ``used``: members alike as one model.

        Alike are those with a covariance matrix, and those of independent columns. Of many columns, a model whose
        groups share a matrix whitens rows once, so members of that structure stay apart. The models of some ``columns``
        are the marginal ones.
        """
        key = used.tobytes(), None if columns is None else columns.tobytes()
        if key in self._models:
            return self._models[key]
        if columns is not None:
            found = [(places, model.marginal(columns)) for places, model in self.models(used)]
            if len(self._models) > _PATTERNS or self.statistics.mean.shape[1] > _FEW:
                self._models = {key: found for key, found in self._models.items() if key[1] is None}  # without patterns
        else:
            few, kinds = self.statistics.mean.shape[1] < FEWEST, []
            for place, member in enumerate(self.members[m] for m in used):
                matrices = "full" if few or not member.shared else f"shared {place}"
                kinds.append("diagonal" if member.diagonal else matrices)
            alike = [np.flatnonzero(np.array(kinds) == kind) for kind in dict.fromkeys(kinds)]
            found = [(places, stacked([self.posterior(m) for m in used[places]])) for places in alike]
        self._models[key] = found
        return found

    def marginals(self, used, places) -> list[tuple[np.ndarray, Any]]:
        """Return `Marginals`, or None, with the places of their members, which have a matrix."""
        if (key := used.tobytes()) not in self._marginals:
            known, form = Marginals.of_models([self.posterior(m) for m in used[places]], self.reference)
            both = (places[known], form), (np.delete(places, known), None)
            self._marginals[key] = [entry for entry in both if len(entry[0])]
        return self._marginals[key]
