r"""A leaf that keeps its rows: the log density of an entry is no product of parameters with a few sums.

.. math:: \log p(\text{rows} \mid \theta) = \sum_i w_i \log p(x_i \mid \theta_{t_i})

A Student-t, a mixture, a skewed density: their likelihood needs every row, so the statistics are the rows
(`bayesgen.core.statistics.RowsByGroup`), and a gradient of NUTS costs a pass over them. There is neither an exact
posterior nor an evidence in closed form; `Laplace` estimates the evidence. What follows from the sums of an
`ExponentialFamily` is refused by name: rows without a label, subtraction of rows.
"""

import abc
import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from bayesgen.core.errors import DataError
from bayesgen.core.statistics import RowsByGroup
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
        if len(features) != len(self.features) and self._has_prior:
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

    @property
    def _has_prior(self) -> bool:
        return any("rank" in field.metadata for field in dataclasses.fields(self))

    def sum_rows(self, x, rows) -> Any:
        """Keep the rows by group, under a grouping that is already checked; check the entries here."""
        return RowsByGroup.of(self.check(x), rows.codes, rows.weight, rows.lead, self.event_dim == 1)

    def log_likelihood(self, params, statistics):
        """Return the weighted sum of log p(row | params) over all rows. NumPy or JAX."""
        params = self._beside_rows(params)
        density = self._masked(params, statistics.x, statistics.seen)
        weight = statistics.weight
        return (density * weight.reshape(*weight.shape, *[1] * (density.ndim - weight.ndim))).sum()

    def log_likelihood_rows(self, params, x) -> np.ndarray:
        """Return log p(row | params) for every row and every leading index of ``params``: (lead..., n)."""
        params, entries = self._beside_rows(params), math.prod(x.shape[1 : x.ndim - self.event_dim])
        features = x.ndim - 1 - self.event_dim
        lead = np.broadcast_shapes(*(v.shape[: v.ndim - self._trailing(site) - 1] for site, v in params.items()))
        result = np.empty((*lead, len(x)))
        for piece in pieces(len(x), math.prod(lead) * entries, DENSITIES):
            density = self._masked(params, x[piece], ~np.isnan(x[piece]))
            result[..., piece] = density.sum(tuple(range(-features, 0))) if features else density
        return result

    def _trailing(self, site: str) -> int:
        """Return the number of axes of a parameter that belong to features and event."""
        return len(self.features) + len(self.site_dims.get(site, ()))

    def _beside_rows(self, params):
        """Give each parameter an axis for the rows, before its features."""
        xp = namespace(*params.values())
        return {site: xp.expand_dims(v, v.ndim - self._trailing(site)) for site, v in params.items()}

    def _masked(self, params, x, seen):
        """Return the log density of each observation, 0 where it is missing."""
        xp = namespace(*params.values())
        if xp is not np:  # the gradient of what is not used must be finite too
            x = xp.where(seen, x, self.likelihood(params).support.feasible_like(x))
        seen = seen.all(tuple(range(-self.event_dim, 0))) if self.event_dim else seen
        with np.errstate(invalid="ignore", divide="ignore"):
            return xp.where(seen, self.log_density(params, x), 0.0)
