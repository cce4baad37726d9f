r"""Densities of rows as functions of one missing number, under the members of an average.

The predictive of a group under a member is the Student-t of `gaussian`, with f degrees of freedom, location m and scale
matrix A/(f r), r = κ_n/(κ_n + 1). Let o be the D_o entries that a row has, j one that it lacks, and A_oo = L L'. Then

.. math:: s^2 = A_{jj} - \lVert L^{-1} A_{oj} \rVert^2, \qquad
   \mu = m_j + A_{jo} A_{oo}^{-1} (x_o - m_o), \qquad \delta^2 = (x_o - m_o)^\top A_{oo}^{-1} (x_o - m_o)

.. math:: p(x_o, x_j) \propto \big(1 + r \delta^2 + r (x_j - \mu)^2/s^2\big)^{-(f + D_o + 1)/2}

So one factorisation serves all rows with the same pattern of gaps, each of their missing columns, and every value
there: a further value costs one logarithm. Diagonal members are products of such t's with D_o = 0.
"""

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from bayesgen.averaging.average import Average, product_parts
from bayesgen.averaging.member import Product
from bayesgen.averaging.students import bordered
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.special import log_gamma_ratio
from bayesgen.numerics.student import upper_factors
from bayesgen.numerics.tempering import sharpened

_ROWS = 32  # rows that border one factorisation
_CELLS = 1 << 16  # entries of matrices that are factorised at a time


@dataclass(frozen=True)
class Given:
    """Log densities of rows under C groups, as functions of one missing x_j.

    log p(x_o, x_j) = level - power log(1 + (rate (x_j - location))²).

    Attributes
    ----------
    density : array, shape (C, n)
        Log p(x_o).
    level, location, rate : array, shape (C, n, J)
        Coefficients of each of the J missing columns.
    power : array, shape (C,)
    """

    density: np.ndarray
    level: np.ndarray
    location: np.ndarray
    rate: np.ndarray
    power: np.ndarray

    def along(self, row, place, y) -> np.ndarray:
        """Return log p(x_o, x_j), (C, E, Q), at nodes y (E, Q) of E entries, by row and place among the missing."""
        z = y - self.location[:, row, place, None]
        z *= self.rate[:, row, place, None]
        z *= z
        np.log1p(z, out=z)
        z *= -self.power[:, None, None]
        z += self.level[:, row, place, None]
        return z


class Students:
    """The predictive t's of all groups of some numeric members.

    Parameters
    ----------
    views : tuple of FittedView or WideView
        Of those under which no row can be drawn no member is taken.
    used : bool array, shape (A,)
        The members, view by view.

    Attributes
    ----------
    places : int array
        The members used, in the order of the results: full covariances first.
    """

    def __init__(self, views, used):
        every = enumerate((view, member) for view in views for member in range(len(view.members)))
        chosen = [(place, view, member) for place, (view, member) in every if used[place] and view.drawn]
        chosen.sort(key=lambda one: one[1].members[one[2]].diagonal)
        self.places = np.array([one[0] for one in chosen], np.intp)
        mean, ratio, dof, share, full, flat, self.runs = [], [], [], [], [], [], []
        for (view, diagonal), run in groupby(chosen, lambda one: (one[1], one[1].members[one[2]].diagonal)):
            owner, members = view.view.owner, [member for _, _, member in run]
            for member in members:
                model = view.posterior(member)
                kappa = model.kappa[:, 0] if diagonal else model.kappa
                mean.append(model.mean)
                ratio.append(kappa / (kappa + 1))
                dof.append(np.broadcast_to(2 * model.alpha[:, 0] if diagonal else model.dof, len(owner)))
                scale = 2 * model.beta if diagonal else model.scale
                (flat if diagonal else full).append(np.broadcast_to(scale, (len(owner), *scale.shape[1:])))
            self.runs.append((len(members), owner))
            share.append(np.tile(view.log_share, len(members)))
        self.mean, self.dof, self.log_share = np.concatenate(mean), np.concatenate(dof), np.concatenate(share)
        self.ratio = np.concatenate(ratio)
        self._constants: dict[int, np.ndarray] = {}
        self.full = np.concatenate(full) if full else np.empty((0, *self.mean.shape[1:], self.mean.shape[1]))
        self.flat = np.concatenate(flat) if flat else np.empty((0, self.mean.shape[1]))

    def classes(self, density) -> np.ndarray:
        """Return log densities of classes, (A, K, ...), from groups times their shares, (C, ...); overwrites these."""
        classes, rest = self.runs[0][1][-1] + 1, density.shape[1:]
        result, start, stop = np.empty((len(self.places), classes, *rest)), 0, 0
        for count, owner in self.runs:
            own, part = density[stop : stop + count * len(owner)], result[start : start + count]
            start, stop = start + count, stop + count * len(owner)
            sizes = np.bincount(owner)
            if (sizes == sizes[0]).all():
                part[:] = _mixed(own.reshape(count * classes, -1, *rest)).reshape(part.shape)
                continue
            own, ends = own.reshape(count, len(owner), *rest), np.append(0, np.cumsum(sizes))
            for k, (a, b) in enumerate(pairwise(ends)):
                part[:, k] = _mixed(own[:, a:b])
        return result

    def given(self, y, seen) -> Given:
        """Return the densities of rows as functions of each missing number.

        Parameters
        ----------
        y : array, shape (n, D)
            Bent rows, any number where missing.
        seen : bool array, shape (D,)
            True for the columns that the rows have, the same in all rows.
        """
        parts = [self._full(y, seen), self._flat(y, seen)]
        density, level, *line = (np.concatenate(own) for own in zip(*parts, strict=True))
        return Given(density + self.log_share[:, None], level + self.log_share[:, None, None], *line)

    def _full(self, y, seen):
        o, m = np.flatnonzero(seen), np.flatnonzero(~seen)
        C, count, dim, gone = len(self.full), len(y), len(o), len(m)
        log_det, square, rest, location = (np.empty((C, *more)) for more in ((1,), (count,), (gone,), (count, gone)))
        bordering = min(count, _ROWS)
        for part in pieces(C, (dim + gone + bordering) ** 2, _CELLS):  # small enough to stay in the cache
            matrix, mean = self.full[part], self.mean[part, None]
            for start in range(0, count, bordering):
                rows = slice(start, start + bordering)
                z = y[rows, o] - mean[..., o]
                beside = np.concatenate([matrix[:, m[:, None], o], z], axis=1)
                root = upper_factors(bordered(matrix[:, o[:, None], o], beside))
                pull, white = root[:, :dim, dim : dim + gone], root[:, :dim, dim + gone :].mT
                square[part, rows] = (white * white).sum(2)
                location[part, rows] = mean[..., m] + white @ pull
                log_det[part, 0] = 2 * np.log(np.diagonal(root[:, :dim, :dim], axis1=1, axis2=2)).sum(1)
                rest[part] = matrix[:, m, m] - (pull * pull).sum(1)
        ratio = self.ratio[:C, None]
        inside = 1 + ratio * square
        decay = 0.5 * np.log(inside)
        density = -0.5 * log_det - (self.dof[:C, None] + dim) * decay
        level = self._constant(dim + 1)[:C, None] + density - decay
        return (
            self._constant(dim)[:C, None] + density,
            level[..., None] - 0.5 * np.log(rest)[:, None],
            location,
            np.sqrt((ratio / inside)[..., None] / rest[:, None]),
            (self.dof[:C] + dim + 1) / 2,
        )

    def _flat(self, y, seen):
        C = len(self.full)
        mean, scale, ratio = self.mean[C:, None], self.flat[:, None], self.ratio[C:, None, None]
        rate, power = np.sqrt(ratio / scale), (self.dof[C:] + 1) / 2
        constant = self._constant(1)[C:, None, None] - 0.5 * np.log(scale)
        z = (y[:, seen] - mean[..., seen]) * rate[..., seen]
        density = (constant[..., seen] - power[:, None, None] * np.log1p(z * z)).sum(2)
        level = density[..., None] + constant[..., ~seen]
        return density, level, *(np.broadcast_to(v[..., ~seen], level.shape) for v in (mean, rate)), power

    def _constant(self, width: int) -> np.ndarray:
        """Return the log normalising constant of a t of ``width`` columns, (C,): the same for all rows with so many."""
        if width not in self._constants:
            gamma = log_gamma_ratio(self.dof / 2, width / 2)
            self._constants[width] = gamma - 0.5 * width * np.log(np.pi / self.ratio)
        return self._constants[width]


class Members:
    """Some members of an average, for densities along missing entries.

    Parameters
    ----------
    average : Average
    used : bool array, shape (M,)
        True for the members to use.
    """

    def __init__(self, average: Average, used):
        soft = np.array([not isinstance(member, Product) for member in average.members])
        numbers, categories, others = (average.taking(columns) for columns in ("numbers", "categories", "table"))
        counts = sum(len(part.members) for part in numbers), sum(len(part.members) for part in categories)
        pair = np.flatnonzero(used & ~soft)
        number, self.category = product_parts(*counts, pair)  # the last of each kind is none
        asked = np.isin(np.arange(counts[0]), number)
        drawn = np.array([part.drawn for part in numbers for _ in part.members], bool)
        self.students = Students(numbers, asked) if (asked & drawn).any() else None
        order = np.empty(0, np.intp) if self.students is None else self.students.places
        self.still, start = [], 0  # parts of the numbers without lines, and the members asked
        for part in numbers:
            own = np.flatnonzero(asked[start : start + len(part.members)])
            if len(own) and not part.drawn:
                self.still.append((part, own))
                order = np.append(order, start + own)
            start += len(part.members)
        place = np.full(len(asked) + 1, -1)
        place[order] = np.arange(len(order))
        self.number, self.soft = place[number], np.flatnonzero(used[soft])
        order = np.concatenate([pair, np.flatnonzero(used & soft)])
        self.categorical: Any = categories[0] if categories else None
        self.warp: Any = numbers[0].view.warp if numbers else None
        self.others = others
        self.average, self.exponents, self.least = average, average.exponents[order], average.least[order]
        self.weights = average.weights[order] / (1 + self.least)
        self.density_weights, self.carries = average.density_weights[order], average.carries[order]

    def probability(self, density) -> np.ndarray:
        """Return p(k | x), (K, ...), from log p(x | k) under the members, (M, K, ...)."""
        log_prior = self.average.log_class_prior
        q = density * _first(self.exponents, density)
        q += _first(log_prior, density[0])
        q -= q.max(1, keepdims=True)
        np.exp(q, out=q)
        q /= q.sum(1, keepdims=True)
        prior = np.exp(log_prior)
        result = np.tensordot(self.weights, q, 1)
        result += _first(self.weights @ self.least * prior, result)
        result = sharpened(result, _first(prior, result), self.average.sharpening)
        if self.average.given is not None:
            result *= _first(self.average.given / prior, result)
        return result / result.sum(0)

    def log_joint(self, density) -> np.ndarray:
        """Return log p(x, k) under the untempered members, (K, ...), without the Jacobian of the bends."""
        with np.errstate(divide="ignore"):
            joint = _mixed((density + _first(np.log(self.density_weights), density))[None])[0]
        return joint + _first(self.average.log_class_prior, joint)


class Rows:
    """Rows that have the same numbers, under some members.

    Parameters
    ----------
    members : Members
    x, c : array, shape (n, D) and (n, F)
        Numbers, NaN where missing, in the same columns of all rows; categories, -1 where missing.
    e : array, shape (n, E), optional
        Entries of the columns with leaves, NaN where missing.
    """

    def __init__(self, members: Members, x, c, e=None):
        self.members, self.x, self.c, self.e = members, x, c, e
        leaves = members.average.leaves
        self.leaf = np.zeros(1) if leaves is None or e is None else leaves.log_density(e).T
        self.categories, self.softmax = self._others(x, c)
        seen = ~np.isnan(x[0])
        self.place = np.cumsum(~seen) - 1  # place of a column among the missing ones
        self.given = None
        if members.students is not None:
            self.given = members.students.given(members.warp.forward(x), seen)
        self.still = [part.log_density(x, c, own).swapaxes(1, 2) for part, own in members.still]

    def here(self) -> np.ndarray:
        """Return log p(x | k) under the members, shape (M, K, n)."""
        groups = None if self.given is None else self.given.density.copy()
        return self._density(groups, self.still, self.categories, self.softmax, self.leaf, (len(self.x),))

    def with_leaf(self, row, more) -> np.ndarray:
        """Return log p(x, v | k), (M, K, E, Q), from the log densities of values v of a leaf's entries, (K, E, Q)."""
        return self.here()[:, :, row, None] + np.where(_first(self.members.carries, more[None]), more, 0.0)

    def along(self, row, column, values, y) -> np.ndarray:
        """Return log p(x, v | k), (M, K, E, Q), at nodes v (E, Q) of missing numbers, by their rows and columns.

        ``values`` holds the nodes in the units of the columns, ``y`` the bent nodes; the density is of y.
        """
        groups = None if self.given is None else self.given.along(row, self.place[column], y)
        softmax = self.softmax
        if len(self.members.soft):
            some = [part.along(self.x, self.c, row, column, values) for part in self.members.others]
            softmax = np.concatenate(some)
        still = [part.along(self.x, self.c, row, column, values)[own] for part, own in self.members.still]
        return self._density(groups, still, self.categories[:, :, row, None], softmax, self._leaf(row), y.shape)

    def levels(self, row, column: int) -> np.ndarray:
        """Return log p(x, v | k) at all levels v of a missing category, (M, K, E, V)."""
        count = int(self.members.categorical.levels[column])
        c = np.repeat(self.c[row], count, axis=0)
        c[:, column] = np.tile(np.arange(count), len(row))
        parts = self._others(np.repeat(self.x[row], count, axis=0), c)
        categories, softmax = (part.reshape(*part.shape[:2], len(row), count) for part in parts)
        groups = None if self.given is None else self.given.density[:, row, None]
        still = [own[:, :, row, None] for own in self.still]
        return self._density(groups, still, categories, softmax, self._leaf(row), (len(row), count))

    def _leaf(self, row):
        """Return the log densities of the leaves of some rows, to be added to those along an entry."""
        return self.leaf if self.leaf.ndim == 1 else self.leaf[:, row, None]

    def _others(self, x, c):
        """Return log p(x | k) under the members of categories and none, (B + 1, K, n), and of the table, (S, K, n)."""
        members = self.members
        categories = softmax = np.zeros((1, len(members.average.class_weight), len(x)))
        if members.categorical is not None:
            categories = np.concatenate([_every(members.categorical, x, c), categories])
        if len(members.soft):
            softmax = np.concatenate([_every(part, x, c) for part in members.others])
        return categories, softmax

    def _density(self, groups, still, categories, softmax, leaf, shape):
        members = self.members
        result = np.zeros((len(members.exponents), categories.shape[1], *shape))
        pairs, some = result[: len(members.number)], members.number >= 0
        if groups is not None and members.students is not None:
            still = [members.students.classes(groups), *still]
        at = members.number[some]
        for own in still:
            here = (at >= 0) & (at < len(own))
            pairs[np.flatnonzero(some)[here]] = own[at[here]]
            at = at - len(own)
        if len(categories) > 1:
            pairs += categories[members.category]
        if len(members.soft):
            result[len(pairs) :] = softmax[members.soft]
        if members.average.leaves is not None:
            result += np.where(_first(members.carries, result), leaf, 0.0)
        return result


def _mixed(density):
    """Return the log of the sum over the second axis of densities given by their logs, (B, C, ...); overwrites them."""
    if density.shape[1] == 1:
        return density[:, 0]
    top = density.max(1)
    density -= top[:, None]
    total = np.exp(density, out=density).sum(1)
    np.log(total, out=total)
    total += top
    return total


def _every(part, x, c):
    """Return log p(x | k) of rows under all members of a part, (M, K, n)."""
    return part.log_density(x, c, np.arange(len(part.members))).swapaxes(1, 2)


def _first(vector, array):
    """Return a vector along the first axis of an array."""
    return vector.reshape(-1, *[1] * (array.ndim - 1))
