"""A leaf: the model of one feature, or of a block of features of one kind.

Its NumPyro program is in `bayesgen.models.leaf_program`. `Leaf` adds the rows, as classifiers, inferences and questions
ask for them. There are two kinds: an `ExponentialFamily` needs only sums of its rows, and is a `ConjugateFamily` where
its posterior has a closed form; a `bayesgen.models.row_leaf.RowLeaf` keeps the rows.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from bayesgen.core import program
from bayesgen.core.errors import DataError, NoClosedForm, first
from bayesgen.core.statistics import Statistics, SumStatistics, with_axes
from bayesgen.models.kinds import Density
from bayesgen.models.leaf_program import LeafProgram
from bayesgen.models.model import Conjugate, Hyperparameter, Params, hyperparameter, in_full, revised
from bayesgen.numerics.checks import dense_rows, require, sparse_rows
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.special import namespace
from bayesgen.numerics.sums import Grouping, finite

__all__ = [
    "ConjugateFamily",
    "DataError",
    "ExponentialFamily",
    "Hyperparameter",
    "Leaf",
    "first",
    "hyperparameter",
    "log_or_floor",
    "over_rows",
    "require",
]  # everything that a user's own leaf needs

LOG_ZERO = -1e290  # a finite stand-in for log 0, so that 0 * log 0 = 0 in a matrix product
INFINITE = "is infinite; replace it, or give NaN where the value is missing"


@dataclasses.dataclass(frozen=True, eq=False)
class Leaf(LeafProgram):
    """A leaf: the model of one feature, or of a block of features of one kind, within a class.

    Axes are written ``...`` in front: draws, then groups (classes), then features; ``event_dim`` trailing axes are one
    observation. Features are independent given the parameters, unless a leaf says otherwise. A subclass must write
    `parameters`, `likelihood`, `sum_rows`, `log_likelihood` and `log_likelihood_rows`: an `ExponentialFamily` and a
    `bayesgen.models.row_leaf.RowLeaf` have the last three. It may write

    - `check`;
    - `density`, by which NumPy draws rows, and an export writes them, or at least `draw`;
    - `ml`, `map` and `tail_probability`;
    - for summaries, `quantities`, `prior_of` and `summaries`;
    - for questions about missing entries, `cardinality` of a finite feature; without a `density` `student` of a numeric
      one, and `fill` where features depend on each other, or share parameters;
    - where its columns in a table are no numbers, `read_columns`, `write_columns`, `column_kinds` and `for_table`.

    Parameters
    ----------
    per_class : bool, keyword
        True if hyperparameters carry a leading axis of classes; a classifier's posterior sets it in its leaves.
    names : tuple, keyword, optional
        Columns that the hyperparameters are of, in their order: those of the Series, DataFrames or mappings that were
        given. A classifier puts the hyperparameters in the order of its columns.
    """

    density_kind: ClassVar[str] = "density"  # kind of p(x); evidences compare where it is the same
    _takes_sparse: ClassVar[bool] = False  # True if rows may be a sparse array (n, columns)
    _column_kind: ClassVar[str] = "f"  # what its columns hold in a file: "f" numbers, "b" 0 and 1 or bools, "O" text

    def check(self, x) -> Any:
        """Return the rows as an array, NaN where missing, or raise.

        Sparse rows stay sparse, in CSR, where the leaf takes them.
        """
        x = self._shaped(x)
        if not finite(x):
            require(x, lambda entries: ~np.isinf(entries), INFINITE)
        return x

    def _shaped(self, x) -> Any:
        """Do the first half of `check`, which checks types and shapes but not the entries."""
        owner, takes = type(self).__name__, self._takes_sparse
        x = sparse_rows(x, owner, takes) if sparse.issparse(x) else dense_rows(x, owner, 1 + self.event_dim)
        shape: Any = x.shape
        features = shape[1 : x.ndim - self.event_dim]
        expected = self.batch_shape
        expected = expected[len(expected) - len(features) :]
        if (
            expected != features
            and len(expected) == len(features)
            and any(a not in (1, b) for a, b in zip(expected, features, strict=True))
        ):
            raise DataError(f"rows have {features} features where the model has {expected}")
        return x

    def _missing(self, x) -> np.ndarray:
        """Return a mask of missing entries, (n, features...): NaN scalars, and vectors that are all NaN."""
        missing = np.isnan(x)
        return missing.all(tuple(range(-self.event_dim, 0))) if self.event_dim else missing

    def statistics(self, x, group=None, groups: int | None = None, weight=None) -> Any:
        """Return what the leaf keeps of rows, by group: one pass, additive over pieces of the data.

        Parameters
        ----------
        x : array, shape (n, features..., event...)
            Rows; NaN is missing and does not count.
        group : int array, shape (n,), optional
            Class code of each row, in 0..groups-1.
        groups : int, optional
            Number of classes; needed with ``group``.
        weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.
        """
        x = self._shaped(x)
        return self.sum_rows(x, Grouping.of(x.shape[0], group, groups, weight))

    @abc.abstractmethod
    def sum_rows(self, x, rows: Grouping) -> Any:
        """Do `statistics` under a grouping that is already checked; check the entries here."""

    def with_prior(self, statistics: Statistics) -> "Leaf":
        """Return itself: only a `bayesgen.models.structures.WeakPrior` waits for rows."""
        return self

    def _modelled(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of its columns that have parameters."""
        return columns

    def draw(self, params: Params, rng: np.random.Generator) -> np.ndarray:
        """Draw one observation for each leading index of ``params``: array (lead..., features..., event...)."""
        try:
            return self.density(params).draw(rng)
        except NoClosedForm:
            with program.x64():
                key = program.jax.random.PRNGKey(int(rng.integers(2**31)))
                traced = {site: program.jnp.asarray(np.array(v)) for site, v in params.items()}
                return np.asarray(self.likelihood(traced).sample(key))

    def fill(self, x, group, rng: np.random.Generator, params: Any = None) -> np.ndarray:
        """Draw the missing entries of rows given the observed ones.

        Parameters
        ----------
        x : array, shape (n, features...)
            Rows, NaN where missing.
        group : int array, shape (n,)
            Place of each row along the leading axis of ``params``, or of the hyperparameters.
        rng : Generator
        params : mapping to arrays (groups, ...), optional
            Parameters. Without them the posterior's are integrated out.
        """
        said = self._said(params)
        if said is not None and said.joint:
            return said.fill(x, group, rng)
        if params is None:
            raise NoClosedForm(f"{type(self).__name__} has no posterior in closed form, from which entries are drawn")
        return self._fill_apart(x, group, rng, params)

    def _fill_apart(self, x, group, rng, params) -> np.ndarray:
        """Draw the missing entries of rows under the parameters at their places, whatever else a row holds."""
        return np.where(np.isnan(x), self.draw(self.select_class(params, group), rng), x)

    def cardinality(self, feature: int) -> int | None:
        """Return the number of values 0, 1, ... of a feature; None for real numbers and unbounded counts."""
        return None

    def student(self, x, params: Params | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return location, scale and degrees of freedom of missing numbers, given the observed entries of their rows.

        Parameters
        ----------
        x : array, shape (n, D)
            Rows, NaN where missing.
        params : mapping to arrays (lead..., ...), optional
            Parameters. Without them the posterior's are integrated out, and ``lead`` is its classes.

        Returns
        -------
        three arrays that broadcast to (lead..., n, D)
            A Student-t for each missing entry, or for the numbers that `back` maps to it; a Gaussian where the degrees
            of freedom are infinite.
        """
        said = self.density(params) if self.conjugate or params is not None else Leaf.density(self)
        return said.student(x)

    def back(self, z) -> np.ndarray:
        """Map numbers on the scale of `student` to the scale of the feature; by default the two are one."""
        return z

    def density(self, params: Any = None) -> Density:
        """Return the density of a row as a kind and arrays (lead..., features...): what draws, gaps and programs read.

        It is that given parameters (lead..., ...). Without them the posterior's are integrated out, and ``lead`` is its
        classes.
        """
        raise NoClosedForm(f"{type(self).__name__} does not say of which kind its density is: write density()")

    def _said(self, params: Params | None = None) -> Any:
        """Return `density`, or None where the leaf does not say it."""
        try:
            return self.density(params) if self.conjugate or params is not None else None
        except NoClosedForm:
            return None

    def summaries(self, total) -> dict[str, np.ndarray]:
        """Return sums of rows by column, under no model, from the sums of T(x), (K, columns, dim T).

        They are "count" and "mean", (K, columns), which show gaps and by which rows are known again, or else "sum".
        """
        return {"sum": total}

    def quantities(self, params: Params, column: int, labels=None) -> dict[str, np.ndarray]:
        """Return what a summary shows of one column, by class, (K,): parameters by name, and a variance as "sd".

        Parameters
        ----------
        params : mapping to arrays (K, ...)
            Means of the parameters.
        column : int
        labels : sequence, optional
            Labels of the categories.
        """
        if "covariance" in params:
            covariance = np.broadcast_to(params["covariance"], (len(params["mean"]), *params["covariance"].shape[-2:]))
            return {"mean": params["mean"][:, column], "sd": np.sqrt(covariance[:, column, column])}
        found = {site: np.asarray(v)[:, column] if np.ndim(v) == 2 else v for site, v in params.items()}
        if "variance" in found:
            found = {"mean": found["mean"], "sd": np.sqrt(found["variance"])}
        return {name: v for name, v in found.items() if np.ndim(v) == 1}

    def prior_of(self, column: int) -> str:
        """Return the prior of one column, in short."""
        if self.event_dim or self.batch_shape[-1:] == ():
            return program.short(self)
        place, axis = column if self.batch_shape[-1] > 1 else 0, len(self.batch_shape) - 1
        one = {name: np.take(np.asarray(value), place, axis) for name, value in in_full(self).items()}
        return program.short(revised(self, **one))

    def tail_probability(self, x) -> np.ndarray:
        """Return P(p(new) <= p(row)) for a new row with the same gaps, parameters integrated out: (n, groups...)."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for the tail of its predictive density")

    # -- columns of a table, which has the methods `numbers`, `codes`, `labels` and `categories` -----------------------

    def for_table(self, columns: tuple[str, ...], table) -> "Leaf":
        """Return the leaf that learns from these columns of a table, or raise where it cannot."""
        return self

    def column_kinds(self, count: int) -> list[str]:
        """Return the kind of each of ``count`` columns, as ``_column_kind`` writes it."""
        return [self._column_kind] * count

    def read_columns(self, table, columns: tuple[str, ...], unseen: dict | None = None) -> Any:
        """Return the rows that columns of a table hold, (n, columns), NaN where missing.

        A label that was not there at fit is an error; where ``unseen`` is given it is missing, and counted there by
        column and label.
        """
        return table.numbers(columns)

    def write_columns(self, rows) -> Iterable[np.ndarray]:
        """Return the columns, each (n,), that rows stand for: the inverse of `read_columns`."""
        return rows.reshape(len(rows), -1).T

    def for_classes(self, groups: int) -> Self:
        """Return the model with its hyperparameters repeated along a leading axis of classes."""
        return dataclasses.replace(self, **in_full(self, groups), per_class=True)

    def repeated(self, columns: int) -> Self:
        """Return the prior of one feature as the prior of several columns."""
        return dataclasses.replace(self.for_classes(columns), per_class=False)


class ExponentialFamily(Leaf):
    """A leaf: log p(x | params) = natural_parameters(params) . T(x) + log h(x), features independent given params.

    Sums of T(x) and log h(x) are all that is kept of rows. A subclass must write, in this order, `parameters`,
    `likelihood`, `sufficient_statistic` and `natural_parameters`. Beside what any `Leaf` may write, it may write
    `log_base_measure`, and `sum_rows` where there is a faster way than by T(x).
    """

    @abc.abstractmethod
    def sufficient_statistic(self, x, about: Any = 0.0) -> np.ndarray:
        """Return T(x) of each entry, which contains a 1: (n, features..., event...) -> (n, features..., dim T)."""

    @abc.abstractmethod
    def natural_parameters(self, params: Params, about: Any = 0.0) -> Any:
        """Return the natural parameters η of T(x), with the log partition: (..., features..., dim T). NumPy or JAX."""

    def log_base_measure(self, x) -> np.ndarray:
        """Return the log base measure log h(x) of each entry, (n, features...)."""
        return np.zeros(x.shape[: x.ndim - self.event_dim])

    def sum_rows(self, x, rows: Grouping) -> Any:
        x = self.check(x)
        result: Any = 0
        for piece in pieces(max(len(x), 1), math.prod(x.shape[1:])):
            entries, grouping = x[piece], rows[piece]
            gone = self._missing(entries)
            with np.errstate(invalid="ignore"):
                terms = np.where(gone[..., None], 0.0, self.sufficient_statistic(entries))
                base = grouping.total(np.where(gone, 0.0, self.log_base_measure(entries)))
            total = grouping.sum(terms.reshape(len(entries), math.prod(terms.shape[1:])))
            result += SumStatistics(total.reshape(*rows.lead, *terms.shape[1:]), np.float64(base))
        return result

    def log_likelihood(self, params: Params, statistics):
        """Return log p(all rows | params) = natural_parameters . total + log h, without the rows. NumPy or JAX."""
        return (self.natural_parameters(params, statistics.centre) * statistics.total()).sum() + statistics.base

    def log_likelihood_rows(self, params: Params, x) -> np.ndarray:
        """Return log p(row | params) for every row and every leading index of ``params``, missing entries left out.

        Parameters (lead..., features..., event...), where ``lead`` is (draws,) or (draws, classes), and rows
        (n, features..., event...) give an array (lead..., n).
        """
        return self._product(params, x)

    def _product(self, params: Params, x, about: Any = 0.0) -> np.ndarray:
        """Do `log_likelihood_rows` as one matrix product of natural parameters with T(x, about)."""
        missing = self._missing(x)
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            rows, base = self.sufficient_statistic(x, about), self.log_base_measure(x)
        if missing.any():
            rows, base = np.where(missing[..., None], 0.0, rows), np.where(missing, 0.0, base)
        eta = self.natural_parameters(params, about)
        lead = eta.shape[: eta.ndim - rows.ndim + 1]
        result = eta.reshape(math.prod(lead), -1) @ rows.reshape(len(x), math.prod(rows.shape[1:])).T
        result += base.reshape(len(x), math.prod(base.shape[1:])).sum(1)
        result[result < LOG_ZERO / 2] = -np.inf
        return result.reshape(*lead, len(x))

    def _kept(self, key, make) -> Any:
        """Return ``make()``, kept for the next call of this key."""
        kept = vars(self).setdefault("_known", {})
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def _groups(self, x) -> tuple[int, ...]:
        """Return the axes of the hyperparameters in front of the features of rows ``x``."""
        return self.batch_shape[: max(len(self.batch_shape) - (x.ndim - 1 - self.event_dim), 0)]


class ConjugateFamily(ExponentialFamily, Conjugate):
    """A leaf with a conjugate prior: prior, posterior and both predictives are one class.

    In addition to the methods of an `ExponentialFamily`, a subclass must write `update`, `log_evidence_terms` and
    `sample_parameters`. It may write `predictive`, `mode`, and `log_predictive` where there is a faster way than the
    evidence of single rows.
    """

    @abc.abstractmethod
    def log_evidence_terms(self, statistics) -> Any:
        """Return the log evidence of each group and feature, without the base measure; broadcast over leading axes."""

    def log_evidence(self, statistics) -> Any:
        """Return log p(rows as a sequence) under this prior, every constant kept, summed over groups and features."""
        return self.log_evidence_terms(statistics).sum() + statistics.base

    def log_predictive(self, x) -> Any:
        """Return log p(row) with the parameters integrated out, (n, groups...), summed over the observed features."""
        return self._fast_predictive(x) if self._concrete else self._row_evidence(x)

    def _fast_predictive(self, x) -> Any:
        """Return `log_predictive` of NumPy hyperparameters, where there is a faster way than by `_row_evidence`."""
        return self._row_evidence(x)

    def _row_evidence(self, x) -> Any:
        """Return `log_predictive` as the evidence of single rows, which needs no formula of its own."""
        x = np.asarray(self.check(x), float)
        missing = self._missing(x)
        features = x.ndim - 1 - self.event_dim
        groups = self._groups(x)
        each = self.sum_rows(x, Grouping(np.arange(len(x)), len(x), None, (len(x),)))
        terms = untied(self).log_evidence_terms(with_axes(each, len(groups)))
        axes = tuple(range(-features, 0))
        with np.errstate(invalid="ignore"):
            base = np.where(missing, 0.0, self.log_base_measure(x))
        base = base.sum(tuple(range(1, base.ndim)))
        return (terms.sum(axes) if axes else terms) + base.reshape(-1, *[1] * len(groups))

    def fill(self, x, group, rng, params=None):
        """Draw the missing entries of rows; without ``params`` under parameters that are drawn for each row.

        That is exact where a missing entry and the observed ones have independent parameters.
        """
        if params is not None or getattr(self._said(), "joint", False):
            return super().fill(x, group, rng, params)
        return self._fill_apart(x, (np.arange(len(x)), group), rng, self.sample_parameters(rng, (len(x),)))


@functools.singledispatch
def untied(leaf: Any) -> Any:
    """Return a posterior with nothing shared between classes, since one row updates one class."""
    return leaf


def log_or_floor(p):
    """Return log p, or the finite `LOG_ZERO` where p is 0, with a gradient that is finite too. NumPy or JAX."""
    xp = namespace(p)
    return xp.where(p > 0, xp.log(xp.where(p > 0, p, 1.0)), LOG_ZERO)


def count_and_mean(n, total) -> dict[str, np.ndarray]:
    """Return the `Leaf.summaries` of counts and sums, each (K, columns)."""
    return {"count": n, "mean": np.divide(total, n, out=np.zeros_like(total), where=n > 0)}


def over_rows(value, groups, x):
    """Broadcast a hyperparameter to every group and every entry of a row of ``x``, (groups, entries)."""
    shape = (*groups, *x.shape[1:])
    value = value if value.shape == shape else np.broadcast_to(value, shape)
    return value.reshape(math.prod(groups), math.prod(x.shape[1:]))
