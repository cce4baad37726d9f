"""Sufficient statistics: what a model keeps of the rows, and how it adds.

The log likelihood of a data set under an exponential family is ``natural(params, about) . total()``, whatever the
number of rows, so maximum likelihood, MAP, the exact posterior and NUTS all start here. Statistics of two pieces of a
data set add to those of the whole; arrays carry an optional leading axis of groups (the classes).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.program import Record

_CHUNK = 4096  # rows worked on at a time: a few hundred kB, which stay in the cache


class Statistics(Record):
    """Sufficient statistics of some rows; ``a + b`` are those of both."""

    def __add__(self, other):
        return NotImplemented  # the other side may know; else Python says which two types do not add


@dataclass(frozen=True, eq=False)
class Sums(Statistics):
    """Plain sums, for families whose T(x) needs no centre.

    Attributes
    ----------
    sums : array, shape (groups..., features..., dim T)
        Weighted sum of T(x); missing entries count nothing.
    base : array, shape ()
        Weighted sum of log h(x), the part of the log likelihood free of parameters.
    """

    sums: np.ndarray
    base: np.ndarray

    @property
    def centre(self):
        """The point T was taken about: the origin."""
        return 0.0

    def total(self):
        """Sum of T(x)."""
        return self.sums

    def __add__(self, other):
        if not isinstance(other, Sums) or self.sums.shape != other.sums.shape:
            return super().__add__(other)
        return Sums(self.sums + other.sums, self.base + other.base)


@dataclass(frozen=True, eq=False)
class Moments(Statistics):
    """Weight, mean and scatter of Gaussian features: never raw second moments, which cancel.

    Attributes
    ----------
    n : array, shape (groups..., features...), or (groups...) for vectors
        Sum of weights of the observed entries.
    mean : array, shape (groups..., features...), or (groups..., D)
        Their mean; 0 where nothing was observed.
    scatter : array, shape (groups..., features...), or (groups..., D, D)
        Sum of (weighted) squared deviations, or outer products of deviations, from the mean.
    """

    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray

    base = 0.0

    @property
    def vector(self) -> bool:
        """Whether one observation is a vector with a full scatter matrix."""
        return self.scatter.ndim > self.mean.ndim

    @property
    def centre(self):
        """The mean: about it the sum of x vanishes, so natural . total loses no digits to an offset."""
        return self.mean

    def total(self):
        """Sum of T(x) about the mean: (n, 0, scatter)."""
        xp = self.n.__array_namespace__()
        if not self.vector:
            return xp.stack([self.n, xp.zeros_like(self.n), self.scatter], axis=-1)
        rows, cols = np.triu_indices(self.mean.shape[-1])
        return xp.concatenate([self.n[..., None], xp.zeros_like(self.mean), self.scatter[..., rows, cols]], axis=-1)

    def __add__(self, other):
        """Merge by Chan, Golub and LeVeque (1983): S = S1 + S2 + n1 n2 / (n1 + n2) d d', d = mean2 - mean1."""
        if not isinstance(other, Moments) or self.scatter.shape != other.scatter.shape:
            return super().__add__(other)
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        delta = other.mean - self.mean
        between = self.n * share
        if self.vector:
            share, between = share[..., None], between[..., None, None]
            square = delta[..., :, None] * delta[..., None, :]
        else:
            square = delta * delta
        # Where one side is empty its mean is a meaningless 0; between is 0 there, and share picks the other side.
        return Moments(n, self.mean + share * delta, self.scatter + other.scatter + between * square)

    def sum_groups(self) -> "Moments":
        """Merge the leading axis of groups."""
        total = Moments(self.n[0], self.mean[0], self.scatter[0])
        for k in range(1, len(self.n)):
            total = total + Moments(self.n[k], self.mean[k], self.scatter[k])
        return total

    def pooled(self):
        """Location and within-class scale of each column, over the groups: what the weak priors follow.

        Returns
        -------
        mean, variance : array, shape (features...)
            Pooled mean; pooled within-group variance with divisor N - K, or the total variance where that is 0 or
            N <= K, or 1 where that is 0 too. K counts the groups with a row.
        constant : bool array, shape (features...)
            The columns of that last kind.
        """
        squares = np.diagonal(self.scatter, axis1=-2, axis2=-1) if self.vector else self.scatter
        n = self.n[..., None] if self.vector else self.n
        columns = Moments(np.broadcast_to(n, squares.shape), self.mean, squares)
        total = columns.sum_groups()
        present, within, noise = (columns.n > 0).sum(0), squares.sum(0), total.resolution()
        pooled = np.divide(within, total.n - present, out=np.zeros_like(within), where=total.n > present)
        overall = np.divide(total.scatter, total.n, out=np.zeros_like(within), where=total.n > 0)
        constant = (pooled <= noise) & (overall <= noise)
        variance = np.where(pooled > noise, pooled, np.where(constant, 1.0, overall))
        return total.mean, variance, constant

    def resolution(self):
        """The smallest variance float64 can tell from zero at these means: (8 eps mean)²."""
        return (8 * np.finfo(float).eps * np.abs(self.mean)) ** 2


@dataclass(frozen=True, eq=False)
class Rows(Statistics):
    """The rows themselves, for models that have no smaller sufficient statistic; adding appends.

    Attributes
    ----------
    data : dict from name to array (n, ...)
        What the model's `log_likelihood` reads, checked; a "weight" (n,) among them where rows are weighted.
    """

    data: dict[str, np.ndarray]

    def __add__(self, other):
        if not isinstance(other, Rows) or self.data.keys() != other.data.keys():
            return super().__add__(other)
        return Rows({name: np.concatenate([a, other.data[name]]) for name, a in self.data.items()})


def moments(x, group=None, groups=None, weight=None, *, vector=False) -> Moments:
    """Accumulate `Moments` of the rows of ``x`` in one pass, two-pass exact within cache-sized chunks, merged by Chan.

    Parameters
    ----------
    x : array, shape (n, features...), or (n, D) with ``vector``
        NaN is missing: an entry where features are scalars, a whole row (all entries) where they are vectors.
    group : int array, shape (n,), optional
        Class code of each row.
    groups : int, optional
        Number of groups; needed with ``group``.
    weight : array, shape (n,), optional
        Row weights >= 0.
    vector : bool
        Keep the full scatter matrix.
    """
    features = x.shape[1:]
    columns = x.reshape(len(x), math.prod(features))
    codes = np.zeros(len(x), np.intp) if group is None else group
    count = groups or 1
    total: list[Any] = [None] * count
    for start in range(0, len(x), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        order = np.argsort(codes[chunk], kind="stable")
        bounds = np.searchsorted(codes[chunk][order], np.arange(count + 1))
        for k in np.flatnonzero(np.diff(bounds)):
            rows = order[bounds[k] : bounds[k + 1]]
            piece = _segment(columns[chunk][rows], None if weight is None else weight[chunk][rows], vector)
            total[k] = piece if total[k] is None else total[k] + piece
    dim = columns.shape[1]
    empty = Moments(np.zeros(() if vector else dim), np.zeros(dim), np.zeros((dim, dim) if vector else dim))
    total = [piece or empty for piece in total]
    lead = () if group is None else (count,)
    n, mean, scatter = (np.stack([getattr(p, name) for p in total]) for name in ("n", "mean", "scatter"))
    if vector:
        return Moments(n.reshape(lead), mean.reshape(lead + features), scatter.reshape(*lead, dim, dim))
    return Moments(*(a.reshape(lead + features) for a in (n, mean, scatter)))


def _segment(z, weight, vector) -> Moments:
    """Moments of some rows of one group; ``z`` (rows, columns) is a fresh copy."""
    z = z.astype(float, copy=False)
    w = np.ones((len(z), 1))
    if weight is not None:  # a row of weight 0 does not exist, nor does what is written in it
        z, w = z[weight > 0], weight[weight > 0, None]
    missing = np.isnan(z)
    if vector:
        missing = missing.any(1, keepdims=True)
    if missing.any():
        w = np.where(missing, 0.0, w)
        z = np.where(missing, 0.0, z)
    seen = w > 0
    # About the first entry seen a constant column is exactly 0, so that rounding leaves it no false spread.
    pilot = np.take_along_axis(z, seen.argmax(0)[None], 0)[0] if len(z) else np.zeros(z.shape[1])
    z = (z - pilot) * seen
    n = np.broadcast_to(w.sum(0), (1,) if vector else z.shape[1:])
    offset = np.divide((w * z).sum(0), n, out=np.zeros(z.shape[1]), where=n > 0)
    z = (z - offset) * seen
    scatter = z.T @ (w * z) if vector else np.einsum("ij,ij->j", z, w * z)
    return Moments(n.reshape(()) if vector else n, pilot + offset, scatter)


def group_sum(rows, group=None, groups=None):
    """Sum ``rows`` (n, ...) over the rows of each group: (groups, ...), or (...) without groups."""
    if group is None:
        return rows.sum(0)
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    onehot = sparse.csc_array((np.ones(len(flat)), group, np.arange(len(flat) + 1)), shape=(groups, len(flat)))
    return (onehot @ flat).reshape(groups, *rows.shape[1:])


def patterns(observed):
    """Group rows by which entries they have: yields (column indices, row indices) for each pattern in ``observed``."""
    if observed.all():
        yield np.arange(observed.shape[1]), np.arange(len(observed))
        return
    kinds, inverse = np.unique(observed, axis=0, return_inverse=True)
    for i, kind in enumerate(kinds):
        yield np.flatnonzero(kind), np.flatnonzero(inverse == i)
