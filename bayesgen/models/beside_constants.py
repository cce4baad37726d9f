r"""Columns that are constant over all rows of the fit, beside a leaf of the columns that vary.

A weak prior takes its scale from the rows, and a column of one value has none. Nor do rows tell of categories that were
never seen: under Dirichlet(1) the one that all rows have would be more probable in classes of more rows.
So such a column has no parameters: it is a point mass at its value c_j, the same in every class,

.. math:: p(x \mid k) = p(x_{\text{varying}} \mid k) \prod_j \delta(x_j, c_j), \qquad \delta(x, c) = 1
   \text{ where } x = c \text{, else } 0

a probability, not a density. At c_j the factor is 1: it adds 0 to evidences and to scores. A draw of it, and a missing
entry, is c_j. Another value has probability 0 in every class, so the class probabilities are 0/0 there; their limit,
for N(c_j, ε²) in every class and ε to 0, are those of the other columns, and the typicality of the row is 0. So the
density skips the column whatever its entry is, and `possible` says where the point mass is 0.

A leaf without a column that varies keeps the parameters of its first, as one that is missing in every row.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from bayesgen.core.errors import DataError
from bayesgen.core.program import static
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.leaf import ExponentialFamily, Leaf, untied
from bayesgen.models.model import of_part, revised
from bayesgen.numerics.special import namespace

_SAME = 1e-12  # relative distance of two numbers that are the same but for rounding, and a scale that stands for 0


@dataclass(frozen=True, eq=False)
class BesideConstants(ExponentialFamily):
    """A leaf of some columns, beside columns that are constant; it takes rows and statistics of all."""

    family: Any  # the family of the leaf without a prior: it checks and sums rows of all columns
    leaf: Any  # model of the columns that vary, prior or posterior
    constant: np.ndarray  # (D,): value of each on the scale that the leaf models; NaN where it has no entry, or varies
    kept: tuple[int, ...] = static()  # places of the columns that vary

    @classmethod
    def of(cls, family, make, statistics) -> Leaf:
        """Return the leaf that ``make`` gives of the statistics of the columns that vary, beside the others."""
        constant, value = constants_of(statistics)
        if not constant.any():
            return make(statistics)
        wide, kept = constant.ndim > 0, tuple(np.flatnonzero(~constant).tolist())
        part = statistics.select(np.array(kept or (0,))) if wide else statistics
        return cls(family, make(part if kept else part.scaled(0.0)), np.atleast_1d(value), kept)

    # -- rows, statistics and parameters of all columns, and of those that vary ----------------------------------------

    @cached_property
    def _places(self) -> np.ndarray:
        return np.array(self.kept or (0,))

    @property
    def _wide(self) -> bool:
        """True if rows have an axis of columns."""
        return bool(self.leaf.features or self.leaf.event_dim)

    def _rows(self, x):
        x = x[..., self._places] if self._wide else x
        return x if self.kept else x * np.nan

    def varying(self, statistics):
        """Return the statistics of the columns that vary."""
        statistics = statistics.select(self._places) if self._wide else statistics
        return statistics if self.kept else statistics.scaled(0.0)

    def whole(self, values, constant: Any = None):
        """Return values of the columns that vary, on their last axis, as values of all; by default of rows."""
        xp, fill = namespace(values), self.leaf.back(self.constant) if constant is None else constant
        fill = np.broadcast_to(fill, self.constant.shape)
        if not self._wide:
            return xp.zeros_like(values) + fill[0]
        one, columns = xp.zeros_like(values[..., 0]), range(len(fill))
        return xp.stack(
            [values[..., self.kept.index(j)] if j in self.kept else one + fill[j] for j in columns], axis=-1
        )

    def possible(self, x) -> np.ndarray:
        """Return False for each row (n,) that has another value in a constant column."""
        value = np.delete(self.leaf.back(self.constant), list(self.kept))
        x = np.delete(x.reshape(len(x), -1), list(self.kept), axis=1)
        return ~(np.abs(x - value) > _SAME * np.abs(value)).any(1)

    def constants(self, columns) -> dict[str, float]:
        """Return the value of each constant column by its name."""
        value = self.leaf.back(self.constant).tolist()
        return {name: value[j] for j, name in enumerate(columns) if j not in self.kept}

    def _modelled(self, columns):
        return tuple(columns[j] for j in self._places)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of the features of a row: all columns, where `features` are those that have parameters."""
        return self.constant.shape if self._wide else ()

    def known(self, place) -> float | None:
        """Return the value that a column always has, None where it varies."""
        return None if place in self.kept else float(self.leaf.back(self.constant)[place])

    def cardinality(self, feature):
        return self.leaf.cardinality(self.kept.index(feature)) if feature in self.kept else self.leaf.cardinality(0)

    def _ask(self, method: str, *given):
        """Return what the leaf answers; a `DataError` gets the place among all columns."""
        try:
            return getattr(self.leaf, method)(*given)
        except DataError as error:
            if error.feature is not None:
                error.feature = int(self._places[error.feature])
            raise

    def _with(self, leaf) -> Self:
        return self if leaf is self.leaf else replace(self, leaf=leaf, per_class=leaf.per_class)

    # -- the program ---------------------------------------------------------------------------------------------------

    batch_shape = of_part("leaf", "batch_shape")
    event_dim = of_part("leaf", "event_dim")
    site_dims = of_part("leaf", "site_dims")
    conjugate = of_part("leaf", "conjugate")
    bounded = of_part("leaf", "bounded")
    density_kind = of_part("leaf", "density_kind")
    parameters = of_part("leaf", "parameters")
    likelihood = of_part("leaf", "likelihood")
    select_class = of_part("leaf", "select_class")
    dims = of_part("leaf", "dims")
    coords = of_part("leaf", "coords")
    log_abs_det_jacobian = of_part("leaf", "log_abs_det_jacobian")

    def latents(self, groups=None, name=""):
        return self.leaf.latents(groups, name)

    def _density_of(self, params, x=None):
        return self.leaf._density_of(params, x if x is None else self._rows(x))

    # -- statistics, densities and the algebra -------------------------------------------------------------------------

    check = of_part("family", "check")
    _shaped = of_part("family", "_shaped")
    _missing = of_part("family", "_missing")
    sum_rows = of_part("family", "sum_rows")
    sufficient_statistic = of_part("family", "sufficient_statistic")
    log_base_measure = of_part("family", "log_base_measure")
    summaries = of_part("family", "summaries")
    sample_parameters = of_part("leaf", "sample_parameters")
    mode = of_part("leaf", "mode")
    expected = of_part("leaf", "expected")

    def log_likelihood(self, params, statistics):
        return self.leaf.log_likelihood(params, self.varying(statistics))

    def log_likelihood_rows(self, params, x):
        return self.leaf.log_likelihood_rows(params, self._rows(x))

    def row_density(self, params):
        density = self.leaf.row_density(params)
        return lambda x: density(self._rows(x))

    def has_closed_form(self, statistics) -> bool:
        """Return True if the leaf takes the statistics of the columns that vary."""
        return self.leaf.has_closed_form(self.varying(statistics))

    def update(self, statistics) -> Self:
        """Return the posterior of the columns that vary, beside the constant ones."""
        return self._with(self._ask("update", self.varying(statistics)))

    def log_evidence(self, statistics):
        """Return the log evidence of the columns that vary."""
        return self.leaf.log_evidence(self.varying(statistics))

    def log_evidence_terms(self, statistics):
        """Return the log evidence of each group and feature, 0 for a constant one."""
        terms = self.leaf.log_evidence_terms(self.varying(statistics))
        return self.whole(terms, 0.0) if self.leaf.features else terms

    def log_predictive(self, x):
        """Return the log predictive of the columns that vary."""
        return self.leaf.log_predictive(self._rows(self.check(x)))

    def start_from(self, statistics) -> Any:
        found = self.leaf.start_from(self.varying(statistics))
        return None if found is None else self._with(found)

    def starting_draws(self, statistics, rng, size):
        return self.leaf.starting_draws(self.varying(statistics), rng, size)

    def ml(self, statistics):
        return self._ask("ml" if self.kept else "map", self.varying(statistics))  # of no row there is no ml

    def map(self, statistics):
        return self._ask("map", self.varying(statistics))

    def tail_probability(self, x):
        tail = self.leaf.tail_probability(self._rows(self.check(x)))
        return np.where(self.possible(x).reshape(-1, *[1] * (tail.ndim - 1)), tail, 0.0)

    # -- draws, and missing entries ------------------------------------------------------------------------------------

    def draw(self, params, rng):
        return self.whole(self.leaf.draw(params, rng))

    def fill(self, x, group, rng, params=None):
        filled = self.whole(self.leaf.fill(self._rows(x), group, rng, params))
        return np.where(np.isnan(x), filled, x)

    def student(self, x, params=None):
        """Return location, scale and degrees of freedom; of a constant column its value, as good as certain."""
        location, scale, dof = np.broadcast_arrays(*self.leaf.student(self._rows(x), params))
        shape = (*location.shape[:-1], len(self.constant))
        result = np.broadcast_to(self.constant, shape).copy(), np.empty(shape), np.full(shape, np.inf)
        result[1][...] = np.where(self.constant == 0, 1e-150, _SAME * np.abs(self.constant))
        for whole, part in zip(result, (location, scale, dof), strict=True):
            whole[..., list(self.kept)] = part[..., : len(self.kept)]
        return result

    back = of_part("leaf", "back")

    def density(self, params=None):
        """Return the density of the columns that vary, their places, and the values of the others."""
        constant = self.leaf.back(self.constant)
        others = {j: float(constant[j]) for j in range(len(constant)) if j not in self.kept}
        return replace(self.leaf.density(params), kept=self.kept, constant=others)

    # -- classes -------------------------------------------------------------------------------------------------------

    def for_classes(self, groups):
        return self._with(self.leaf.for_classes(groups))

    # -- a leaf that is an exponential family --------------------------------------------------------------------------

    def natural_parameters(self, params, about=0.0):
        """Return the natural parameters of T(x) of all columns, 0 in constant ones."""
        if not self._wide:
            return self.leaf.natural_parameters(params, about) * bool(self.kept)
        about = about[..., self._places] if np.ndim(about) else about
        eta = self.leaf.natural_parameters(params, about) * bool(self.kept)
        if not self.event_dim:
            return self.whole(eta.mT, 0.0).mT
        return eta[..., self._entries] * (self._entries >= 0)

    @cached_property
    def _entries(self) -> np.ndarray:
        """Place of each entry of T of all columns, (1, z, z_i z_j for i <= j), among those that vary; -1 for none."""
        dim, rank = len(self.constant), {j: place for place, j in enumerate(self._places.tolist())}
        pairs = {p: i for i, p in enumerate(zip(*(a.tolist() for a in np.triu_indices(len(rank))), strict=True))}
        products = (
            pairs.get((rank.get(i, -1), rank.get(j, -1)), -1) for i, j in zip(*np.triu_indices(dim), strict=True)
        )
        after = [place + 1 + len(rank) if place >= 0 else -1 for place in products]
        return np.array([0, *(rank[j] + 1 if j in rank else -1 for j in range(dim)), *after])


def constants_of(statistics) -> tuple[np.ndarray, np.ndarray]:
    """Return True for each feature (features...) with one value or none, and the value, NaN where there is none.

    Of counts of categories (groups, features..., V) the value is the code of the one category that was seen; a feature
    that was never seen is no constant, since all of its categories may come.
    """
    if not isinstance(statistics, SumStatistics):
        pooled = statistics.pooled
        there = pooled.constant & statistics.observed if pooled.constant.any() else False
        return pooled.constant, np.where(there, pooled.mean, np.nan)
    seen = statistics.sums.sum(0) > 0
    constant = (seen.sum(-1) == 1) & (seen.shape[-1] > 1)
    return constant, np.where(constant, seen.argmax(-1), np.nan)


@untied.register
def _(leaf: BesideConstants) -> BesideConstants:
    return leaf._with(untied(leaf.leaf))


def marked_per_class(leaf: Any) -> Any:
    """Return the same leaf with ``per_class`` set: its hyperparameters lead with the axis of classes."""
    if isinstance(leaf, BesideConstants):
        return leaf._with(marked_per_class(leaf.leaf))
    return leaf if leaf.per_class else revised(leaf, per_class=True)


def of_all(leaf: Leaf, values, constant: Any = None):
    """Return values of the columns of a leaf that vary as values of all of them, see `BesideConstants.whole`."""
    return leaf.whole(values, constant) if isinstance(leaf, BesideConstants) else values


def varying(leaf: Leaf, columns: tuple) -> tuple[Any, tuple]:
    """Return the leaf of those of its columns that vary, and these columns: all of them where none is constant."""
    if not isinstance(leaf, BesideConstants):
        return leaf, columns
    return leaf.leaf, leaf._modelled(columns) if leaf.kept else ()
