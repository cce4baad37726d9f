r"""A leaf that keeps its rows: the log density of an entry is no product of parameters with a few sums.

.. math:: \log p(\text{rows} \mid \theta) = \sum_i w_i \log p(x_i \mid \theta_{t_i})

A Student-t, a mixture, a skewed density: their likelihood needs every row, so the statistics are the rows
(`RowsByGroup`), and a gradient of NUTS costs a pass over them. There is neither an exact
posterior nor an evidence in closed form; `Laplace` estimates the evidence. What follows from the sums of an
`ExponentialFamily` is refused by name: subtraction of rows, and rows without a label but for Student's t.
"""

import abc
import dataclasses
import functools
import math
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.core.errors import DataError
from bayesgen.core.statistics import LocationScale, Statistics
from bayesgen.models.leaf import Leaf
from bayesgen.models.model import Params
from bayesgen.numerics.pieces import DENSITIES, pieces
from bayesgen.numerics.special import namespace


@dataclasses.dataclass(frozen=True, eq=False)
class RowLeaf(Leaf):
    """A leaf whose statistics are the rows, features independent given params.

    A subclass must write `parameters`, `likelihood` and `log_density`. Maximum likelihood and the mode are found by a
    search, unless it writes `ml` and `map`. Beside these it may write what any `Leaf` may.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> import bayesgen as bg
    >>> from bayesgen.models.leaf import Hyperparameter, hyperparameter
    >>> from bayesgen.numerics.special import namespace  # NumPy, or its like of JAX
    >>> @dataclass(frozen=True, eq=False)
    ... class Cauchy(RowLeaf):
    ...     width: Hyperparameter = hyperparameter(1.0, positive=True)
    ...
    ...     def parameters(self):
    ...         return {"centre": numpyro.sample("centre", dist.Normal(0.0, self.width))}
    ...
    ...     def likelihood(self, params):
    ...         return dist.Cauchy(params["centre"], 1.0)
    ...
    ...     def log_density(self, params, x):
    ...         xp = namespace(params["centre"])
    ...         return -xp.log1p((x - params["centre"]) ** 2) - np.log(np.pi)
    >>> round(float(bg.fit(Cauchy(5.0), [1.0, 1.2, 0.9, 30.0], "map").params["centre"]), 2)
    1.04
    """

    takes_gaps: ClassVar[bool] = False  # True if `log_likelihood` and its like integrate out what vectors lack
    learns_unlabelled: ClassVar[bool] = False  # True if it has what `bayesgen.models.row_em` needs

    @abc.abstractmethod
    def log_density(self, params: Params, x) -> Any:
        """Return log p(observation | params). NumPy or JAX.

        Parameters
        ----------
        params : mapping to arrays (lead..., 1, features..., event...)
            With an axis of length 1 for the rows, after those of draws and classes.
        x : array, shape (n, features..., event...) or (lead..., n, features..., event...)
            Rows. Where an entry is missing there is another number, under NumPy 0 or NaN, whose density is not used.

        Returns
        -------
        array, shape (lead..., n, features...)
        """

    def check(self, x):
        """Return the rows, or raise; vectors must be whole, or missing as a whole, unless the leaf takes gaps."""
        x = super().check(x)
        features = x.shape[1 : x.ndim - self.event_dim]
        has_prior = any("rank" in field.metadata for field in dataclasses.fields(self))
        if len(features) != len(self.features) and has_prior:
            raise DataError(f"rows have {features} features where the model has {self.features}")
        if self.event_dim and not self.takes_gaps:
            gone = np.isnan(x)
            partly = gone.any(-1) & ~gone.all(-1)
            if partly.any():
                raise DataError(
                    f"rows are partly missing, which {type(self).__name__} does not integrate out: leave them out",
                    feature=int(gone[partly][0].argmax()),
                )
        return x

    def sum_rows(self, x, rows) -> Any:
        return RowsByGroup.of(self.check(x), rows.codes, rows.weight, rows.lead, self.event_dim == 1)

    def log_likelihood(self, params, statistics):
        params = self._beside_rows(params)
        density = self._masked(params, statistics.x, statistics.seen)
        weight = statistics.weight
        return (density * weight.reshape(*weight.shape, *[1] * (density.ndim - weight.ndim))).sum()

    def log_likelihood_rows(self, params, x) -> np.ndarray:
        params, entries = self._beside_rows(params), math.prod(x.shape[1 : x.ndim - self.event_dim])
        features = x.ndim - 1 - self.event_dim
        lead = np.broadcast_shapes(*(v.shape[: v.ndim - self._trailing(site) - 1] for site, v in params.items()))
        result = np.empty((*lead, len(x)))
        for piece in pieces(len(x), math.prod(lead) * entries, DENSITIES):
            result[..., piece] = self._of_rows(params, x[piece], features)
        return result

    def densities(self, params, x) -> Any:
        """Return `log_likelihood_rows` of rows without a part of a vector, (lead..., n), NumPy or JAX."""
        return self._of_rows(self._beside_rows(params), x, x.ndim - 1 - self.event_dim)

    def _of_rows(self, params, x, features: int):
        density = self._masked(params, x, ~namespace(x).isnan(x))
        return density.sum(tuple(range(-features, 0))) if features else density

    def _trailing(self, site: str) -> int:
        """Return the number of axes of a parameter that belong to features and event."""
        return len(self.features) + len(self.site_dims.get(site, ()))

    def _beside_rows(self, params):
        """Give each parameter an axis for the rows, before its features."""
        params, xp = self._expand(params), namespace(*params.values())
        return {site: xp.expand_dims(v, v.ndim - self._trailing(site)) for site, v in params.items()}

    def _masked(self, params, x, seen):
        """Return the log density of each observation, 0 where it is missing."""
        xp = namespace(*params.values())
        if xp is not np:  # the gradient of what is not used must be finite too
            x = xp.where(seen, x, self.likelihood(params).support.feasible_like(x))
        seen = seen.all(tuple(range(-self.event_dim, 0))) if self.event_dim else seen
        with np.errstate(invalid="ignore", divide="ignore"):
            return xp.where(seen, self.log_density(params, x), 0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class RowsByGroup(Statistics):
    """The rows of each group, for leaves that have no smaller sufficient statistic; addition appends rows.

    Groups are padded to the length M of the largest, so that the parameters of a group meet its rows by broadcasting.
    """

    keeps_rows = True

    x: np.ndarray  # (groups..., M, features..., event...): rows, 0 where an entry is missing, and where there is no row
    seen: np.ndarray  # True where there is an entry
    weight: np.ndarray  # (groups..., M): weights, 0 where there is no row
    # (P, D): of vectors: the distinct rows of ``seen``; the last is of rows that lack nothing. Else D is 0.
    patterns: np.ndarray
    pattern: np.ndarray  # (groups..., M): the pattern of each row

    @classmethod
    def of(cls, x, codes, weight, lead: tuple[int, ...], vector: bool = False) -> Self:
        """Return rows (n, features..., event...), NaN where missing, by group, less those without weight or entries.

        ``lead`` is (number of groups,), or () where all rows are of one. Patterns are kept if a row is a ``vector``.
        """
        weight = np.ones(len(x)) if weight is None else weight
        kept = (weight > 0) & ~np.isnan(x).all(tuple(range(1, x.ndim)))
        order = np.flatnonzero(kept)[np.argsort(codes[kept], kind="stable")]
        x, codes, weight = x[order], codes[order], weight[order]
        sizes = np.bincount(codes, minlength=lead[0] if lead else 1)
        place = np.arange(len(x)) - (np.cumsum(sizes) - sizes)[codes]

        def padded(rows, filler):
            result = np.full((len(sizes), int(sizes.max(initial=0)), *rows.shape[1:]), filler, rows.dtype)
            result[codes, place] = rows
            return result.reshape(*lead, *result.shape[1:])

        seen = ~np.isnan(x)
        rows = padded(np.where(seen, x, 0.0), 0.0), padded(seen, False), padded(weight, 0.0)
        seen = seen if vector else np.ones((len(x), 0), bool)
        whole = np.ones((1, seen.shape[1]), bool)
        patterns, pattern = np.unique(np.concatenate([seen, whole]), axis=0, return_inverse=True)
        return cls(*rows, patterns, padded(pattern.ravel()[:-1], len(patterns) - 1))

    @property
    def lead(self) -> tuple[int, ...]:
        """Shape of the groups."""
        return self.weight.shape[:-1]

    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows (n, ...), codes of their groups (n,) and weights (n,)."""
        there = self.weight.reshape(math.prod(self.lead), -1 if self.weight.size else 0) > 0
        x = self.x.reshape(*there.shape, *self.x.shape[self.weight.ndim :])
        seen = self.seen.reshape(x.shape)[there]
        return np.where(seen, x[there], np.nan), np.nonzero(there)[0], self.weight.reshape(there.shape)[there]

    @functools.cached_property
    def medians(self) -> tuple[np.ndarray, np.ndarray]:
        """Weighted median of each column, and spread about it, by group: (groups..., D); NaN where nothing is seen.

        The spread is the median distance over .6745, its value for a Gaussian of standard deviation 1; where it is 0 it
        is the mean distance over .7979.
        """
        x, weight = self._columns()
        centre = _median(x, weight)
        distance = np.abs(x - centre[:, None])
        spread = _spread(distance, weight)
        shape = (*self.lead, *self.x.shape[self.weight.ndim :])
        return centre.reshape(shape), spread.reshape(shape)

    @functools.cached_property
    def pooled(self) -> LocationScale:
        """Location and within-class scale of each column, by medians over all rows."""
        x, weight = self._columns()
        every, (_, _, width) = weight.reshape(1, -1, weight.shape[2]), x.shape
        with np.errstate(invalid="ignore"):
            within = np.nan_to_num(np.abs(x - _median(x, weight)[:, None])).reshape(1, -1, width)
        flat = x.reshape(1, -1, width)
        centre = np.nan_to_num(_median(flat, every))
        spread, total = _spread(within, every)[0], _spread(np.abs(flat - centre[:, None]), every)[0]
        spread = np.where(spread > 0, spread, total)
        constant = ~(spread > 8 * float(np.finfo(float).eps) * np.abs(centre[0]))
        shape = self.x.shape[self.weight.ndim :]
        values = centre[0], np.where(constant, 1.0, spread) ** 2, constant
        return LocationScale(*(value.reshape(shape) for value in values))

    def _columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return entries and their weights, (groups, M, columns)."""
        shape = math.prod(self.lead), self.weight.shape[-1], math.prod(self.x.shape[self.weight.ndim :])
        return self.x.reshape(shape), self.seen.reshape(shape) * self.weight.reshape(*shape[:2], 1)

    def _with(self, other, sign):
        if not isinstance(other, RowsByGroup) or self.lead != other.lead:
            return super()._with(other, sign)
        if sign < 0:
            raise ValueError("a leaf that keeps its rows cannot forget some of them: fit the rows that stay instead")
        x, codes, weight = (np.concatenate(parts) for parts in zip(self.flat(), other.flat(), strict=True))
        return RowsByGroup.of(x, codes, weight, self.lead, self.patterns.shape[1] > 0)

    @property
    def observed(self) -> np.ndarray:
        """True for each column that has an entry, (features...)."""
        return np.asarray(self.seen.any(tuple(range(self.weight.ndim))))

    def select(self, columns: np.ndarray) -> "RowsByGroup":
        """Return the rows with some columns, by their places."""
        x, codes, weight = self.flat()
        return RowsByGroup.of(x[:, columns], codes, weight, self.lead, self.patterns.shape[1] > 0)

    def scaled(self, factor):
        return dataclasses.replace(self, weight=self.weight * factor)


def _median(x, weight):
    """Return the weighted median of each column, (groups, columns), from arrays (groups, M, columns), or NaN."""
    order = np.argsort(np.where(weight > 0, x, np.inf), axis=1)
    x, weight = np.take_along_axis(x, order, 1), np.take_along_axis(weight, order, 1)
    if not x.shape[1]:
        return np.full((x.shape[0], x.shape[2]), np.nan)
    share = np.cumsum(weight, axis=1)
    half = share[:, -1:] / 2
    low, high = (share >= half * (1 - 1e-12)).argmax(1)[:, None], (share > half * (1 + 1e-12)).argmax(1)[:, None]
    middle = (np.take_along_axis(x, low, 1) + np.take_along_axis(x, high, 1))[:, 0] / 2
    return np.where(half[:, 0] > 0, middle, np.nan)


def _spread(distance, weight):
    """Return the spread of each column from distances, see `RowsByGroup.medians`."""
    total = weight.sum(1)
    with np.errstate(invalid="ignore"):
        mean = (weight * np.where(weight > 0, distance, 0.0)).sum(1) / np.where(total > 0, total, np.nan)
    median = _median(distance, weight) / 0.6745
    return np.where(median > 0, median, mean / 0.7979)
