r"""A leaf that is pooled over groups of rows within each class: patients, plots, batches.

.. math:: c_k \sim \pi, \quad s_k \sim \mathrm{HalfCauchy}(s_0), \qquad \theta_{kj} \mid c_k, s_k \sim
   p(\theta \mid c_k, s_k^{-2}), \qquad x_i \mid t_i = k, g_i = j, \theta \sim p(x \mid \theta_{kj})

Each class k has a population of its own, of groups j = 1, 2, ...; centre, spread and their priors are those of
`bayesgen.models.population`. Everything is conditional on the groups g_i: which group a row is of carries no
information about its class.

A row of a group that the fit did not see is as uncertain as groups differ, where a leaf without groups takes many rows
of few groups for as many independent ones; a row of a known group has the density of θ_kj
(`docs/mathematics/pooling.md`).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import DataError, NoClosedForm
from bayesgen.core.program import Record, static
from bayesgen.models.categorical import label_array, labels
from bayesgen.models.model import Hyperparameter, hyperparameter, revised
from bayesgen.models.population import Populated
from bayesgen.numerics.checks import refuse_first
from bayesgen.numerics.sums import Grouping

_SHOWN = 4  # groups whose labels are shown


@dataclass(frozen=True, eq=False)
class PooledGroups(Populated):
    """A leaf whose rows come in groups, such as patients: the groups of a class are drawn from its population.

    An observation is the values of a row and, last, its group: among the features of a classifier
    ``{("dose", "patient"): PooledGroups(leaf)}``. A posterior comes by ``inference="nuts"`` or "laplace". A group that
    was not there at fit, or is missing, is a new one: it is integrated out.

    Parameters
    ----------
    leaf : conjugate leaf
        Model of the values given the group. Its prior is that of the centre of each class; see `Pooled`.
    scale : float or array, shape (features...)
        Scale s_0 > 0 of the prior of the spread, without units; see `Pooled`.
    groups : int or sequence, optional
        The number of groups, or their labels in the order of the codes 0, 1, ... that rows hold. A classifier learns
        them from its table where they are not given.

    Examples
    --------
    >>> import bayesgen as bg
    >>> from bayesgen.models import NormalKnownVariance, PooledGroups
    >>> rows = [[4.1, 0], [4.3, 0], [6.0, 1], [6.2, 1], [7.1, 2], [7.2, 2]]  # a value, and the group of each row
    >>> leaf = PooledGroups(NormalKnownVariance(mean=5.0, sd=5.0, noise_sd=1.0), scale=0.5, groups=3)
    >>> posterior = bg.fit(leaf, rows, "laplace", seed=0)
    >>> known, new = np.exp(posterior.log_predictive([[4.2, 0], [4.2, np.nan]]))
    >>> bool(0.25 < known < 0.3), bool(0.12 < new < 0.16)  # a new group is less certain
    (True, True)
    """

    leaf: Any
    scale: Hyperparameter = hyperparameter(1.0, positive=True)
    groups: Any = static(default=None)

    event_dim = 1
    group_columns = 1  # how many of its last columns in a table tell the group of a row

    def __post_init__(self):
        super().__post_init__()
        if self.groups is not None:
            object.__setattr__(self, "groups", labels(type(self).__name__, self.groups))
        if self.leaf.event_dim and self.columns_of_leaf:
            raise ValueError(f"PooledGroups: a {type(self.leaf).__name__} must be of one feature, not of several")

    def __repr__(self):
        if self.groups is None or self.count <= _SHOWN:
            return Record.__repr__(self)
        return Record.__repr__(revised(self, groups=self.count))

    @property
    def batch_shape(self):  # type: ignore[override]
        """(): the values of a row and its group are one observation."""
        return ()

    @property
    def coded(self) -> bool:
        """True if the values are codes of categories."""
        return self.leaf.event_dim == 0 and self.categories is not None

    @property
    def count(self) -> int:
        """The number of groups."""
        if self.groups is None:
            raise ValueError("PooledGroups: give groups=, their number or their labels")
        return len(self.groups)

    # -- the program -------------------------------------------------------------------------------------------------

    def sample_population(self, groups=None, name=""):
        """Sample centre and spreads of each feature and class."""
        with program.axes([*self._classes(f"{name}population", groups), *self._columns(name)]):
            return self._population()

    def given_rows(self, params, statistics):
        return self.given(params, 1).update(statistics)

    def parameters(self):
        """Sample the population, as of a single class."""
        return self._population()

    def latents(self, groups=None, name=""):
        """Sample the population of each class, and the parameters of each group given it."""
        params = self.sample_population(groups, name)
        axes = [*self._classes(f"{name}class", groups), (f"{name}group", self.count), *self._columns(name)]
        with program.axes(axes):
            return {**params, **self.given(params, 1).parameters()}

    def _classes(self, label, groups):
        return [] if groups is None else [(label, groups)]

    def _columns(self, name):
        return [(f"{name}value", size) for size in self.columns_of_leaf]

    def likelihood(self, params):
        raise TypeError("PooledGroups: groups are a column, so rows cannot be drawn in a program")

    def _density_of(self, params, x=None):
        """Return the density of the values, given the groups, which must be known."""
        if x is None:
            return self.likelihood(params)
        jnp = program.jnp
        x = x if program.is_abstract(x) else np.asarray(x, float)
        if not program.is_abstract(x) and np.isnan(x[..., -1]).any():
            raise ValueError("PooledGroups: in a program every row must tell its group, 0, 1, ...")
        of_rows = {}
        for site, value in self.members(params).items():
            wide = len(self.columns_of_leaf) + len(self.site_dims.get(site, ()))
            value, code = jnp.asarray(value), jnp.asarray(x[..., -1], int).reshape((*x.shape[:-1], *[1] * (1 + wide)))
            axes = max(value.ndim, code.ndim)  # of all rows, of each, or of each class that is enumerated
            value, code = (a.reshape((*[1] * (axes - a.ndim), *a.shape)) for a in (value, code))
            of_rows[site] = jnp.take_along_axis(value, code, axis=-1 - wide).squeeze(-1 - wide)
        density, values = self.leaf._density_of(of_rows, jnp.asarray(self._values(x)))
        return density.to_event(len(self.columns_of_leaf)), values

    # -- names -------------------------------------------------------------------------------------------------------

    def dims(self, site, *, grouped=False):
        axes = ("class",) * grouped + ("group",) * self.of_member(site) + ("value",) * len(self.columns_of_leaf)
        return axes + tuple(self.site_dims.get(site, ()))

    def coords(self):
        return {**self.leaf.coords(), "group": list(self.groups or ())}

    def for_columns(self, columns):
        """Return the model of these columns, the last of which tells the group."""
        several = len(columns) > 2 and not (self.leaf.event_dim or self.columns_of_leaf)
        widened = replace(self, leaf=self.leaf.repeated(len(columns) - 1)) if several else self
        return super(PooledGroups, widened).for_columns(columns[:-1])

    def for_table(self, columns, table):
        """Return the leaf with the labels in its last column as groups, unless they were declared; or raise."""
        if len(columns) < 2:
            raise ValueError(
                "PooledGroups takes a tuple of columns, the last of which names the group, as in "
                f"{(*columns, 'patient')}"
            )
        if self.groups is not None:
            return self
        groups = table.categories(columns[-1])
        if not groups:
            what = "are not known before the rows are read" if groups is None else "are all missing"
            raise ValueError(
                f"the groups of column {columns[-1]!r} {what}: declare them, PooledGroups(leaf, groups=[...])"
            )
        return replace(self, groups=groups)

    def column_kinds(self, count):
        """Return the kinds of the leaf's columns, and that of the labels of the groups."""
        kinds = [_kind(self.categories)] * (count - 1) if self.coded else self.leaf.column_kinds(count - 1)
        return [*kinds, _kind(self.groups)]

    def read_columns(self, table, columns, unseen=None):
        """Return the values, and the code of their group; one that was not there at fit is NaN, or an error."""
        *names, group = columns
        values = table.codes(names, self.categories, unseen) if self.coded else table.numbers(tuple(names))
        return np.column_stack([values, table.codes((group,), self.groups, None if unseen is None else {})])

    def write_columns(self, rows):
        """Return the columns of the values and of the labels of the groups, None where missing."""
        values, codes = rows[:, :-1], np.nan_to_num(rows[:, -1], nan=-1).astype(int)
        values = label_array(self.categories)[values.astype(np.intp)] if self.coded else values
        return [*values.T, label_array((*self.groups, None))[codes]]

    # -- rows --------------------------------------------------------------------------------------------------------

    def _values(self, x):
        """Return the values of rows (n, values + 1) as the leaf takes them."""
        return x[..., :-1] if self.leaf.event_dim or self.columns_of_leaf else x[..., 0]

    def check(self, x):
        """Return rows of values that the leaf takes and a group 0, 1, ..., NaN where missing or new, or raise."""
        x = self._shaped(x).astype(float, copy=False)
        if x.shape[1] < 2 or (not self.leaf.event_dim and x.shape[1] != 1 + max(1, *self.columns_of_leaf, 0)):
            raise DataError(f"expected the values of {type(self.leaf).__name__} and a group, got {x.shape[1]} columns")
        self.leaf.check(self._values(x))
        code = x[:, -1:]
        bad = (code == code) & ((code < 0) | (code >= self.count) | (code != np.floor(code)))
        if bad.any():
            place = np.pad(bad, [(0, 0), (x.shape[1] - 1, 0)])
            refuse_first(x, place, f"is not the code 0..{self.count - 1} of a group")
        return x

    def _missing(self, x):
        return np.isnan(x[..., :-1]).all(-1)

    def sum_rows(self, x, rows):
        x = self.check(x)
        if np.isnan(x[:, -1]).any():
            raise DataError(
                f"row {np.isnan(x[:, -1]).argmax()} does not tell its group, which rows to learn from must",
                feature=x.shape[1] - 1,
            )
        codes = rows.codes * self.count + x[:, -1].astype(np.intp)
        within = Grouping(codes, rows.count * self.count, rows.weight, (*rows.lead, self.count))
        return self.leaf.sum_rows(self.leaf._shaped(self._values(x)), within)

    def log_likelihood(self, params, statistics):
        return self.leaf.log_likelihood(self.members(params), statistics)

    def log_likelihood_rows(self, params, x):
        """Return log p(row | params) of each class; a new group is integrated out under its population."""
        first = next(site for site in params if not self.of_member(site))
        wide = len(self.columns_of_leaf) + len(self.site_dims.get(first, ()))
        lead = params[first].shape[: params[first].ndim - wide]
        values, code = self._values(x), x[:, -1]
        result = np.empty((*lead, len(x)))
        if (new := np.isnan(code)).any():
            result[..., new] = np.moveaxis(self.given(params).log_predictive(values[new]), 0, -1)
        for group in np.unique(code[~new]).astype(int):
            of_group = {site: v.take(group, axis=len(lead)) for site, v in self.members(params).items()}
            result[..., code == group] = self.leaf.log_likelihood_rows(of_group, values[code == group])
        return result

    def draw(self, params, rng):
        """Draw rows of new groups, whose label is missing."""
        values = np.asarray(self.leaf.draw(self.given(params).sample_parameters(rng), rng), float)
        values = values if self.leaf.event_dim or self.columns_of_leaf else values[..., None]
        return np.concatenate([values, np.full((*values.shape[:-1], 1), np.nan)], axis=-1)

    def density(self, params=None):
        """Raise: missing entries are integrated out, but neither drawn nor predicted."""
        raise NoClosedForm("PooledGroups does not say how missing values follow from the others of their group")

    def fill(self, x, group, rng, params=None) -> Any:
        return self.density(params)

    def shown(self, params):
        """Return the centre of each class."""
        return self.centre(params)

    def ml(self, statistics):
        """Raise: a likelihood has no population, and so no new group."""
        raise ValueError(
            "PooledGroups has no maximum likelihood: a likelihood has no population, from which a new group could "
            "come; use inference='nuts' or 'laplace'"
        )


def _kind(labels: tuple) -> str:
    """Return what a column of labels holds in a file: text where some label is one, else numbers or bools."""
    return "O" if any(isinstance(label, str) for label in labels) else "b"
