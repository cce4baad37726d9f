r"""Numbers made ready for Gaussian members: bent towards normality within the classes, and their gaps completed.

**Bends** are those of Yeo and Johnson. With z the standardised column, a = ± log(1 + |z|) with the sign of z, and p =
λ where z >= 0, λ - 2 where z < 0,

.. math:: y = (e^{p a} - 1)/p \quad (a \text{ where } p = 0), \qquad \log |dy/dz| = (\lambda - 1) a

λ = 1 leaves the column as it is; λ = 0 takes the logarithm of its upper side. λ stays in [0, 2]: beyond, the image is
bounded, and a density on it loses mass. One λ per column serves all classes. It maximises the profile likelihood of
classes with one variance, under the prior λ ~ N(1, ½²):

.. math:: (N - K) \big(-\tfrac12 \log S(\lambda)/N + \tfrac{\lambda - 1}N \sum_i w_i a_i\big) - 2 (\lambda - 1)^2

with S the scatter within the classes, on a grid of steps of a tenth, which is finer than the uncertainty of λ.
(Yeo and Johnson 2000, *Biometrika* 87, 954-959.)

**Gaps** at fit. A full covariance and rows with gaps have no conjugate posterior. Instead a few steps of EM on the
rows estimate means μ_k and a pooled Σ, under the prior of `GaussianMember("shared", rho=D)`. The missing entries m of
each row are then completed from its class and its observed entries o,

.. math:: \hat x_m = \mu_m + \Sigma_{mo} \Sigma_{oo}^{-1} (x_o - \mu_o) = \mu_m - C P_{mo} (x_o - \mu_o), \quad
   C = \Sigma_{mm} - \Sigma_{mo} \Sigma_{oo}^{-1} \Sigma_{om} = P_{mm}^{-1}, \quad P = \Sigma^{-1}

(the forms in P invert matrices of the size of m, not of o), and its expected outer product, with C added to the scatter
of its class, enters the statistics of every member (Little and Rubin 2002, *Statistical Analysis with Missing Data*,
section 11.2). A completed entry counts as an observed one in the degrees of freedom. μ_k and Σ are learned without the
rows that are left out. The predictive of a row, left out or new, is the marginal t of its observed entries: no
completed entry of that row takes part.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayesgen.averaging.students import FAR, Reference
from bayesgen.core.program import Record
from bayesgen.models.moments import Moments, moments
from bayesgen.numerics.pieces import pieces

_FIELDS = ("location", "scale", "power")
_GRID = np.linspace(0.0, 2.0, 21)
_LEAST = 1e-200  # stands for p = 0: (e^(p a) - 1)/p is then a, its limit
_COLUMNS = 128  # bent at a time: more leave the cache


@dataclass(frozen=True, eq=False)
class YeoJohnson(Record):
    """The transformation of each column; z = (x - location)/scale.

    Attributes
    ----------
    location, scale, power : array, shape (D,)
        Mean and standard deviation of the training rows, and λ.
    """

    location: np.ndarray
    scale: np.ndarray
    power: np.ndarray

    @classmethod
    def learn(cls, x, codes, classes: int, weight, bend: bool = True, few: bool = True) -> "YeoJohnson":
        """Choose λ from rows, NaN where missing, and their classes; without ``bend``, standardise only.

        Unless columns are ``few`` the steps are of a fifth.
        """
        if x.shape[1] > _COLUMNS:
            starts = range(0, x.shape[1], _COLUMNS)
            bends = [cls.learn(x[:, i : i + _COLUMNS], codes, classes, weight, bend, False) for i in starts]
            return cls(*(np.concatenate([getattr(bend, name) for bend in bends]) for name in _FIELDS))
        seen = ~np.isnan(x)
        w = np.where(seen, weight[:, None], 0.0)
        total = w.sum(0)
        location = _over((w * np.where(seen, x, 0.0)).sum(0), total)
        z = np.where(seen, x - location, 0.0)
        variance = _over((w * z**2).sum(0), total)
        scale = np.where(variance > (1e-14 * np.abs(location)) ** 2, np.sqrt(variance), 1.0)
        if not bend:
            return cls(location, scale, np.ones(x.shape[1]))
        z /= scale
        a, below, complete = _log_size(z), _below(z), bool(seen.all())
        slope = _over((w * a).sum(0), total)
        member = np.zeros((classes, len(x)))
        member[codes, np.arange(len(x))] = weight
        count = member @ seen
        freedom = np.maximum(total - (count > 0).sum(0), 0.0)
        grid = _GRID if few else _GRID[::2]
        score = np.empty((len(grid), x.shape[1]))
        for place, power in enumerate(grid):
            y = _bend(a, below, power)
            mean = _over(member @ y, count)
            between = (count * (mean - _over((count * mean).sum(0), total)) ** 2).sum(0)
            y -= mean[codes]
            y *= y
            scatter = weight @ y if complete else (w * y).sum(0)
            # as in V, for classes of one row each have no scatter
            spread = scatter + 0.01 * _over(scatter + between, total) + 1e-300
            score[place] = freedom * (-0.5 * np.log(spread) + (power - 1) * slope) - 2 * (power - 1) ** 2
        return cls(location, scale, grid[score.argmax(0)])

    @np.errstate(over="ignore")
    def forward(self, x) -> np.ndarray:
        """Return the bent columns; infinite where they leave float64, unlike `polar`."""
        z = x - self.location
        z /= self.scale
        bent = np.flatnonzero(self.power != 1)
        if len(bent) == z.shape[1]:
            return _bend(_log_size(z), _below(z), self.power)
        z_bent = z[:, bent]
        z[:, bent] = _bend(_log_size(z_bent), _below(z_bent), self.power[bent])
        return z

    def claims(self, dim: int):
        """Yield the conditions on a transformation of ``dim`` columns; see `FittedMembers.claims`."""
        for name in _FIELDS:
            yield f"the bend of the columns has no {name} of each", getattr(self, name), (dim,)
        yield "the bend is none", (self.scale > 0).all() and (self.power >= 0).all() and (self.power <= 2).all(), None

    @np.errstate(divide="ignore")
    def polar(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Return sign and log size of the bent columns; the log size is -inf where they are 0 or missing."""
        p = np.abs(_below(x - self.location) + self.power + _LEAST)
        a = p * self._log_distance(x)
        size = a + np.log(-np.expm1(-a)) - np.log(p)
        return np.where(x < self.location, -1.0, 1.0), np.where(np.isnan(x), -np.inf, size)

    @np.errstate(over="ignore", divide="ignore")
    def _log_distance(self, x):
        """Return log(1 + |z|), also where z leaves float64."""
        away = np.abs(x - self.location)
        a = np.log1p(away / self.scale)
        if (far := np.isinf(a)).any():
            a = np.where(far, np.log(away) - np.log(self.scale), a)
        return a

    @property
    def straight(self) -> bool:
        """True if no column is bent."""
        return bool((self.power == 1).all())

    def take(self, columns) -> "YeoJohnson":
        """Return the transformation of some columns."""
        return YeoJohnson(self.location[columns], self.scale[columns], self.power[columns])

    def moments(self, statistics: Moments) -> Moments:
        """Return the moments of standardised columns, none of them bent, from the moments of the columns as given."""
        vector = statistics.vector
        scatter = statistics.scatter / (self.scale[:, None] * self.scale if vector else self.scale**2)
        n = statistics.n[:, None] if vector else statistics.n
        mean = np.where(n > 0, (statistics.mean - self.location) / self.scale, 0.0)
        return Moments(statistics.n, mean, scatter)

    def log_slope(self, x) -> np.ndarray:
        """Return the log Jacobian of each row, (n,); missing entries add 0."""
        a = np.copysign(self._log_distance(x), x - self.location)
        slopes = (self.power - 1) * a - np.log(self.scale)
        return np.where(np.isnan(x), 0.0, slopes).sum(1)

    def back(self, y) -> np.ndarray:
        """Return the columns as given, from bent ones."""
        p = np.where(y < 0, 2 - self.power, self.power)
        safe = np.where(p == 0, 1.0, p)
        a = np.where(p == 0, np.abs(y), np.log1p(safe * np.abs(y)) / safe)
        return self.location + self.scale * np.copysign(np.expm1(a), y)


def far_rows(y) -> np.ndarray:
    """Return the places of bent rows with an entry beyond `FAR`; mostly the sum of squares shows that there is none."""
    flat = y.ravel()
    with np.errstate(over="ignore"):
        none = flat @ flat <= FAR**2
    return np.flatnonzero(np.zeros(0) if none else (np.abs(y) > FAR).any(1))


def _over(sum, weight):
    """Return a sum over a weight, 0 where the weight is."""
    return np.divide(sum, weight, out=np.zeros_like(weight), where=weight > 0)


def _log_size(z):
    """Return a = ± log(1 + |z|), with the sign of z."""
    a = np.abs(z)
    return np.copysign(np.log1p(a, out=a), z, out=a)


def _below(z):
    """Return 0 where z >= 0, and -2 where z < 0: by arithmetic, for `numpy.where` takes several times as long."""
    side = np.copysign(1.0, z)
    side -= 1
    return side


def _bend(a, below, power):
    """Return y from a, and p, which is λ plus ``below``."""
    p = below + power
    if (np.abs(power - 1) == 1).any():
        p += _LEAST
    y = np.multiply(p, a)
    np.expm1(y, out=y)
    y /= p
    return y


_STEPS = 6
WIDE = 100  # columns; of more each entry is completed by the mean of its class


@dataclass(frozen=True, eq=False)
class Filling(Record):
    """Class means and a pooled covariance, from which missing entries are completed.

    Attributes
    ----------
    mean : array, shape (K, D)
        Mean of each class.
    covariance : array, shape (D, D)
        Pooled covariance within the classes; its diagonal, (D,), of more than `WIDE` columns.
    """

    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def learn(cls, x, seen, codes, classes: int, weight) -> "Filling":
        """Estimate means and covariance by EM, started from the moments of each column alone."""
        w = np.where(seen, weight[:, None], 0.0)
        x = np.where(seen, x, 0.0)
        total = w.sum(0)
        overall = np.divide((w * x).sum(0), total, out=np.zeros(x.shape[1]), where=total > 0)
        member = np.zeros((classes, len(x)))
        member[codes, np.arange(len(x))] = 1.0
        mean = (member @ (w * (x - overall))) / (member @ w + 0.01) + overall
        squares = (w * (x - mean[codes]) ** 2).sum(0)
        variance = np.divide(squares, total, out=np.ones_like(squares), where=squares > 0)
        if x.shape[1] > WIDE:
            return cls(mean, variance)
        filling = cls(mean, np.diag(variance))
        for _ in range(_STEPS):
            filling = filling._step(x, seen, codes, classes, weight)
        return filling

    def _step(self, x, seen, codes, classes, weight):
        statistics = moments(x[:0], codes[:0], classes, vector=True)
        for batch in pieces(len(x), cells(seen)):
            complete, missing = self.complete(x[batch], seen[batch], codes[batch])
            statistics = statistics + missing.moments(complete, codes[batch], classes, weight[batch])
        reference, dim = Reference.of(statistics), x.shape[1]
        freedom = max(statistics.n.sum() - (statistics.n > 0).sum(), 0.0) + dim
        covariance = (reference.within[0] + dim * np.diag(np.diag(reference.covariance[0]))) / freedom
        return Filling(reference.mean[0], covariance)

    def complete(self, x, seen, codes) -> "tuple[np.ndarray, Missing]":
        """Return the completed rows, and the covariances of their missing entries.

        Parameters
        ----------
        x, seen : array, shape (n, D)
            Rows, any number where missing; True where not missing.
        codes : int array, shape (n,)
            Classes.
        """
        dim, mean = x.shape[1], self.mean[codes]
        if dim > WIDE:
            rows, columns = np.nonzero(~seen)
            return np.where(seen, x, mean), Missing(rows, columns, self.covariance[columns], (dim,))
        away = np.where(seen, x - mean, 0.0)
        entries = [(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))]
        for rows, columns, covariance in complete(away, seen, np.linalg.inv(self.covariance)):
            places = columns[:, :, None] * dim + columns[:, None]
            entries.append((np.repeat(rows, columns.shape[1] ** 2), places.ravel(), covariance.ravel()))
        rows, places, covariance = map(np.concatenate, zip(*entries, strict=True))
        return np.where(seen, x, mean + away), Missing(rows, places, covariance, (dim, dim))


def complete(away, seen, precision) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Write into rows of mean 0 the conditional means of their missing entries, -C P_mo x_o.

    Parameters
    ----------
    away, seen : array, shape (n, D)
        Rows, 0 where missing; True where not missing.
    precision : array, shape (D, D)
        P.

    Yields
    ------
    rows, columns, covariance : array, shape (m,), (m, k), (m, k, k)
        The rows that lack k entries, the columns of these, and their conditional covariances C.
    """
    lost = (~seen).sum(1)
    for k in np.unique(lost[lost > 0]):
        rows = np.flatnonzero(lost == k)
        columns = np.nonzero(~seen[rows])[1].reshape(-1, k)
        covariance = np.linalg.inv(precision[columns[:, :, None], columns[:, None]])
        pull = np.take_along_axis(away[rows] @ precision, columns, 1)
        away[rows[:, None], columns] = -(covariance @ pull[:, :, None])[:, :, 0]
        yield rows, columns, covariance


def cells(seen) -> int:
    """Return the entries that one completed row takes with the covariances of its gaps, at most."""
    dim = seen.shape[1]
    return dim if dim > WIDE else dim + int((~seen).sum(1).max(initial=0)) ** 2


@dataclass(frozen=True)
class Missing:
    """Conditional covariances C of the missing entries of rows, one by one.

    Attributes
    ----------
    rows : int array, shape (E,)
        The row of each entry of C.
    places : int array, shape (E,)
        Its place in a matrix (D, D), row by row; its column, of the diagonals of more than `WIDE` columns.
    covariance : array, shape (E,)
        The entry.
    shape : tuple of int
        (D, D), or (D,) of diagonals.
    """

    rows: np.ndarray
    places: np.ndarray
    covariance: np.ndarray
    shape: tuple[int, ...]

    def take(self, rows) -> "Missing":
        """Return those of some rows, at increasing places, numbered anew."""
        place = np.searchsorted(rows, self.rows)
        kept = np.flatnonzero(np.take(rows, place, mode="clip") == self.rows) if len(rows) else np.empty(0, np.intp)
        return Missing(place[kept], self.places[kept], self.covariance[kept], self.shape)

    def moments(self, complete, group, groups: int, weight) -> Moments:
        """Return the expected moments of the rows by group."""
        result, size = moments(complete, group, groups, weight, vector=len(self.shape) == 2), math.prod(self.shape)
        covariance = self.covariance if weight is None else self.covariance * weight[self.rows]
        extra = np.bincount(group[self.rows] * size + self.places, covariance, groups * size)
        return Moments(result.n, result.mean, result.scatter + extra.reshape(result.scatter.shape))
