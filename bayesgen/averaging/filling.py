r"""Draws of missing entries under the untempered members: each row by itself, or all rows of a table together.

A row by itself takes a member m, a class k and a group g in proportion to v_m π_k p(g | k) p_m(x_o | k, g), with x_o
its observed entries. Then its missing entries come from that group, parameters integrated out: those of columns with a
joint covariance from a Student-t, those of other columns, of categories and of columns with leaves of their own from
their own predictives.

Rows together take one member and one draw of its parameters, which know all their observed entries. The member has the
probability v_m ∏_i p_m(x_o,i); of the rows of the fit, whose weights v know them, it is v_m. Gibbs' sampler
alternates: classes, groups and entries given the parameters; and the parameters given the sums of the completed rows,
added to the sums of the fit unless these are its rows. The leaves of columns, which all members share, take part: their
parameters are drawn given the observed entries alone where that posterior has a closed form.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from bayesgen.averaging import draws
from bayesgen.averaging.categories import CategoryMembers
from bayesgen.averaging.leaves import Leaves
from bayesgen.averaging.rows import Rows
from bayesgen.models.moments import moments
from bayesgen.numerics.draws import choose, rounds_apart
from bayesgen.numerics.pieces import pieces, taken

_CELLS = 1 << 20  # entries of matrices drawn at a time


@dataclass(frozen=True)
class Sums:
    """The sums that the parameters of a member follow.

    Attributes
    ----------
    classes : array, shape (K,)
        Weight of each class, with its concentration.
    view : FittedView, or None where the member takes no numbers
    place : int
        Place of the member of the numbers in the view.
    part : CategoryMembers, or None where the member takes no categories
    category : CategoryMember or None
        The member of the categories.
    leaves : Leaves or None
        The leaves of other columns.
    """

    classes: np.ndarray
    view: Any
    place: int
    part: Any
    category: Any
    leaves: Leaves | None

    @classmethod
    def of(cls, average, member) -> "Sums":
        """Return the sums of the fit."""
        view, place = (None, 0) if member.numbers is None else average.place(member.numbers)
        part = None if member.categories is None else average.place(member.categories)[0]
        classes = average.class_weight + average.concentration
        return cls(classes, view, place, part, member.categories, average.leaves)

    def of_rows(self, x, c, e, codes, group, added: bool) -> "Sums":
        """Return the sums of completed rows and their groups, ``added`` to these or in their place."""
        view, part, leaves, classes = self.view, self.part, self.leaves, self.classes
        if added:
            classes = classes + np.bincount(codes, minlength=len(classes))
        if view is not None:
            own = moments(view.view.warp.forward(x), group, len(view.view.owner), vector=not view.view.by_column)
            view = replace(view, statistics=view.statistics + own if added else own)
        if part is not None:
            own = CategoryMembers.of(c, part.levels, codes, len(classes), np.ones(len(c)))
            names = ["single"] if part.pairs is None else ["single", "pairs"]
            part = replace(part, **{n: getattr(own, n) + added * getattr(part, n) for n in names})
        if leaves is not None:
            own = leaves.of_rows(e, codes)
            leaves = replace(own, statistics=leaves.statistics + own.statistics) if added else own
        return replace(self, classes=classes, view=view, part=part, leaves=leaves)

    def integrated(self) -> "Component":
        """Return the member with its parameters integrated out."""
        posterior = log_share = tables = None
        if self.view is not None:
            posterior, log_share = self.view.posterior(self.place), self.view.log_share
        if self.part is not None:
            tables = self.part.tables(self.category)
        return Component(self, np.log(self.classes / self.classes.sum()), posterior, None, log_share, tables, None)

    def drawn(self, rng) -> "Component":
        """Return the member under a draw of its parameters."""
        posterior = params = log_share = tables = leaves = None
        if self.view is not None:
            posterior, params = draws.gaussians(self.view, self.place, (), rng)
            params, log_share = posterior._expand(params), np.log(draws.shares(self.view, (), rng))
        if self.part is not None:
            tables = next(draws.tables(self.part, self.category, 1, rng))
        if self.leaves is not None:
            leaves = self.leaves.draws(rng, ())
        return Component(self, np.log(rng.dirichlet(self.classes)), posterior, params, log_share, tables, leaves)


@dataclass(frozen=True)
class Component:
    """A member that fills rows, its parameters integrated out or drawn.

    Attributes
    ----------
    sums : Sums
    log_prior : array, shape (K,)
        Log probabilities of the classes.
    posterior : Conjugate or None
        Posterior of the groups.
    params : mapping from site to array (G, ...), or None where they are integrated out
    log_share : array, shape (G,), or None
        Log probabilities of the groups within their classes.
    tables : tuple or None
        Probabilities of levels, as `CategoryMembers.density` takes them.
    leaves : mapping from site to array (K, ...), or None
        Parameters of the leaves of other columns, where they are drawn.
    """

    sums: Sums
    log_prior: np.ndarray
    posterior: Any
    params: Any
    log_share: Any
    tables: Any
    leaves: Any

    def fill(self, x, c, e, codes, rng):
        """Draw the missing entries of rows, and their classes where ``codes`` is None.

        Returns
        -------
        x, c, e : array, shape (n, D), (n, F) and (n, E)
            Complete rows, in the columns that the member takes; the last as it was where no leaves are drawn.
        codes, group : int array, shape (n,)
            Classes, and groups within them.
        """
        view, part, y = self.sums.view, self.sums.part, None
        groups: Any = None
        if view is not None:
            y = view.view.warp.forward(x)
            model, params = self.posterior, self.params
            groups = model.log_predictive(y) if params is None else model.log_likelihood_rows(params, y).T
        if codes is None:
            score = self.log_prior + np.zeros((len(x), 1))
            score = score if view is None else score + view.mix(groups, self.log_share, 1)
            score = score if part is None else score + part.density(c, *self.tables)
            if self.leaves is not None:
                score = score + self._own.density_under({site: v[None] for site, v in self.leaves.items()}, e)[0]
            codes = choose(softmax(score, axis=1), rng)
        group = codes
        if view is not None:
            own = np.where(view.view.owner == codes[:, None], groups + self.log_share, -np.inf)
            group = choose(softmax(own, axis=1), rng)
            x = np.where(np.isnan(x), view.view.warp.back(self._numbers(y, group, rng)), x)
        if part is not None:
            (level, table), c = self.tables, c.copy()
            for i in np.flatnonzero((c < 0).any(1)):
                c[i] = part.fill(c[i], level[codes[i]], taken(table, codes[i]), rng)
        if self.leaves is not None:
            e = self._own.fill(e, codes, rng, self.leaves)
        return x, c, e, codes, group

    @property
    def _own(self) -> Leaves:
        assert self.sums.leaves is not None
        return self.sums.leaves

    def _numbers(self, y, group, rng):
        result, gone = y.copy(), np.flatnonzero(np.isnan(y).any(1))
        for piece in pieces(len(gone), self.sums.view.statistics.scatter.size, _CELLS):
            at = gone[piece]
            result[at] = self.posterior.fill(y[at], group[at], rng, self.params)
        return result


@np.errstate(under="ignore")
def by_row(average, x, c, e, codes, size: int, rng):
    """Draw the missing entries of rows ``size`` times, each row by itself.

    Parameters
    ----------
    average : Average
    x, c : array, shape (n, D) and (n, F)
    e : array, shape (n, E), or None
        Entries of the columns with leaves.
    codes : int array, shape (n,), or None
        Classes of the rows, where they are known.
    size : int
    rng : Generator

    Returns
    -------
    x, c, e : array, shape (size, n, D), (size, n, F) and (size, n, E)
        The last is None where no column has a leaf.
    """
    used, classes = average.density_weights > 0, len(average.class_weight)
    members = np.flatnonzero(used)
    log_prior = np.log(average.density_weights[used])[:, None, None] + average.log_class_prior
    filled: Any = [None if own is None else np.repeat(own[None], size, 0) for own in (x, c, e)]
    holes = np.isnan(x).any(1) | (c < 0).any(1)
    gone = np.flatnonzero(holes if e is None else holes | np.isnan(e).any(1))
    for piece in average.pieces(len(gone), used):
        own = gone[piece]
        score = average.log_density(x[own], c[own], used, taken(e, own)) + log_prior
        if codes is not None:
            score = np.where(np.arange(classes) == codes[own, None], score, -np.inf)
        weight = softmax(score.swapaxes(0, 1).reshape(len(own), -1), axis=1)
        place, t = np.divmod(choose(weight, rng, (size,)), classes)
        for m in np.unique(place):
            draw, row = np.nonzero(place == m)
            component = Sums.of(average, average.members[members[m]]).integrated()
            at = draw, own[row]
            filled[0][at], filled[1][at], *_ = component.fill(x[own[row]], c[own[row]], None, t[draw, row], rng)
        if e is not None:
            draw, row = np.divmod(np.arange(t.size), len(own))
            filled[2][draw, own[row]] = average.leaves.fill(e[own[row]], t[draw, row], rng)
    return filled


@np.errstate(under="ignore")
def together(average, x, c, e, codes, rng, fitted) -> Iterator[tuple[Any, ...]]:
    """Draw the missing entries of rows, all under one member and one draw of its parameters, again and again.

    Parameters
    ----------
    average : Average
    x, c : array, shape (n, D) and (n, F)
    e : array, shape (n, E), or None
        Entries of the columns with leaves.
    codes : int array, shape (n,), or None
        Classes of the rows, where they are known.
    rng : Generator
    fitted : int array, shape (n,), or None
        Classes of the rows at the fit, where they are its rows.
    """
    used = average.density_weights > 0
    members, score = np.flatnonzero(used), np.log(average.density_weights[used])
    for piece in average.pieces(len(x), used) if fitted is None else ():
        joint = average.log_density(x[piece], c[piece], used, taken(e, piece)) + average.log_class_prior
        if codes is None:
            score = score + np.asarray(logsumexp(joint, axis=2)).sum(1)
        else:
            score = score + np.take_along_axis(joint, codes[piece][None, :, None], 2).sum((1, 2))
    weight, chains = softmax(score), {}
    while True:
        m = members[rng.choice(len(members), p=weight)]
        if m not in chains:
            own = codes if fitted is None else fitted
            chains[m] = _gibbs(Sums.of(average, average.members[m]), x, c, e, own, rng, fitted is None)
        yield next(chains[m]).fill(x, c, e, codes, rng)[:3]


def _gibbs(sums: Sums, x, c, e, codes, rng, added: bool) -> Iterator[Component]:
    """Alternate rows given parameters and parameters given rows; yield parameters that hardly correlate."""
    closed = sums.leaves is not None and sums.leaves.has_closed_form(e)
    leaves = [] if sums.leaves is None else [closed | ~np.isnan(e)]  # gaps that are summed out slow nothing down
    seen = np.hstack([~np.isnan(x), c >= 0, *leaves])
    rounds = rounds_apart(seen, codes, sums.classes if added else 0 * sums.classes)
    component = sums.drawn(rng)
    while True:
        for _ in range(rounds):
            own_x, own_c, own_e, t, group = component.fill(x, c, e, codes, rng)
            component = sums.of_rows(own_x, own_c, e if closed else own_e, t, group, added).drawn(rng)
        yield component


@np.errstate(over="ignore", invalid="ignore")
def knows(average, x, c, e, codes) -> bool:
    """Return True if these are the rows of the fit, as the sums of their classes and columns show."""
    classes = len(average.class_weight)
    pairs = [(np.bincount(codes, minlength=classes), average.class_weight)]
    for view in average.taking("numbers")[:1]:
        if view.view.filling is None and np.isnan(x).any():
            return False
        rows = Rows(x, c, codes, np.ones(len(x)), (), classes)
        mine, theirs = view.view.sum_rows(rows), view.statistics
        pairs += [(getattr(mine, name), getattr(theirs, name)) for name in ("n", "mean", "scatter")]
    for part in average.taking("categories"):
        pairs.append((CategoryMembers.of(c, part.levels, codes, classes, np.ones(len(c))).single, part.single))
    if average.leaves is not None:
        if not average.leaves.has_closed_form(e):
            return False
        own = average.leaves.of_rows(e, codes)
        pairs += zip(own.hyperparameters(), average.leaves.hyperparameters(), strict=True)
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in pairs)
