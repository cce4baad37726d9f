r"""Expectation-maximisation where a leaf keeps its rows: Student's t without labels.

A row counts r_ik in class k under the current parameters, as in `bayesgen.models.unknown_labels`. Then every leaf with
sums takes the closed form of its class, and every Student's t a step of ECME (`bayesgen.models.ecme`) with w_i r_ik as
the weights of the rows: its precisions û_ik are those of the row in class k. Each of the two raises the expected log
density, so the density never falls (a generalised EM; Peel and McLachlan 2000, *Statistics and Computing* 10). The
search ends when neither a membership nor a parameter, in standard units, is farther than 1e-9 from its limit, the one
that compares starts at 1e-6.

It begins at memberships, of three kinds in turn (`docs/mathematics/student-t.md`). A third are those of the mixture
that has the Gaussian of each Student's t (`twin`), each class with a covariance of its own, for one that they share
would be that of the outliers. The others are the rows nearest to seeds among the rows, in units of the median distance
from the median: half of them after trimmed k-means, which leaves the farthest fifth of the rows out, half as they are
drawn. Where labels tell a class, all are of the first kind. The starts are compared by the likelihood where they end,
and each counts by its own end.
"""

from typing import Any

import numpy as np

from bayesgen.core.errors import DataError, listed
from bayesgen.models.beside_constants import BesideConstants
from bayesgen.models.classifier import ClassConditional, GaussianDiscriminant
from bayesgen.models.model import Params
from bayesgen.models.student_t import StudentT
from bayesgen.numerics.newton import fixed_point


def twin(model: ClassConditional) -> Any:
    """Return the classifier with the Gaussian of each Student's t, or itself where it has none."""
    leaves = {name: leaf.gaussian if isinstance(leaf, StudentT) else leaf for name, leaf in model.leaves.items()}
    for name, leaf in leaves.items():
        if isinstance(leaf, BesideConstants) and isinstance(leaf.leaf, StudentT):
            columns = model.columns_of(name) or (name,)
            constant = listed(column for j, column in enumerate(columns) if j not in leaf.kept)
            raise DataError(
                f"columns {constant} hold one value: a Student's t without labels learns nothing there, leave them out"
            )
    if leaves == model.leaves:
        return model
    if isinstance(model, GaussianDiscriminant):
        return GaussianDiscriminant(model.classes, leaves["gaussian"], "full", columns=model.columns)
    return model.with_leaves(model.classes, leaves)


class RowEM:
    """The steps for `UnknownClasses` and their `PartlyLabelled` statistics; ``way``, "map" or "ml", is maximised."""

    def __init__(self, unknown, statistics, way: str):
        self.unknown, self.statistics, self.way = unknown, statistics, way

    def begun(self, labels) -> Params:
        """Return parameters for rows that count in each class by probabilities (m, K): the medians of a Student's t."""
        model = self.unknown.whole
        sums = self.statistics.expected(model, labels)

        def first(name, leaf):
            if isinstance(leaf, StudentT):
                return leaf.begun(sums.leaves[name], self.way)
            return getattr(leaf, self.way)(sums.leaves[name])

        return model.join(getattr(model.classes, self.way)(sums.classes), model.leafwise(first))

    def step(self, state: tuple[Params, np.ndarray]):
        """Return parameters and memberships after a step, and its size."""
        (params, before), model = state, self.unknown.whole
        sums, sizes = self.statistics.expected(model, before), [0.0]

        def better(name, leaf):
            if not isinstance(leaf, StudentT):
                return getattr(leaf, self.way)(sums.leaves[name])
            found, size = leaf.advanced(model.site(params, name), sums.leaves[name], self.way)
            sizes.append(size)
            return found

        params = model.join(getattr(model.classes, self.way)(sums.classes), model.leafwise(better))
        labels = self.unknown.labels(params, self.statistics)
        return (params, labels), max(*sizes, float(np.abs(labels - before).max(initial=0.0)))

    def climb(self, labels, tolerance: float = 1e-9) -> Params:
        """Return the parameters at the end of the search from memberships (m, K), or raise."""
        params = self.begun(labels)
        state = params, self.unknown.labels(params, self.statistics)
        problem = "no maximum was reached over the unknown classes; use 'nuts', give dof=, or fewer classes"
        return fixed_point(self.step, state, tolerance, problem)[0]
