"""The joint density of rows and classes under one generative model, with draws of rows and of missing entries.

Given a class, and a draw of the parameters where the posterior is draws, a missing number is a Student-t. Integrals
over it cut the line at quantiles of every class, and take two points of Gauss and Legendre in each piece.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse, stats
from scipy.special import log_softmax, logsumexp, softmax

from bayesgen.core.errors import NoClosedForm
from bayesgen.inspection.leave_one_out import check_rows
from bayesgen.inspection.missing import FEWEST, Components, Joint, gaps_of, warn_of_few
from bayesgen.inspection.probabilities import tempered
from bayesgen.models.gaussian import LOG_2PI
from bayesgen.models.model import Params
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.numerics.checks import check_memory
from bayesgen.numerics.draws import choose, rounds_apart
from bayesgen.numerics.pieces import CELLS, DENSITIES, count_rows, pieces, select_rows, taken
from bayesgen.numerics.special import log_gamma_ratio

_DRAWS, _FEWER = 500, 100  # draws of the parameters, where the posterior is draws: for means, and for values of entries
_SQUARE = 1e300  # largest square of a distance: a node that is farther from every class still has class probabilities
_LEVELS = np.array([1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.12, 0.22, 0.35])
_CUTS = np.concatenate([_LEVELS, [0.5], 1 - _LEVELS[::-1]])  # quantiles of each class at which the line is cut


class SingleJoint(Joint):
    """The joint density of columns and class under one generative model, untempered."""

    def __init__(self, classifier):
        self.classifier, even = classifier, np.full(len(classifier.classes_), 1 / len(classifier.classes_))
        self.posterior = classifier.posterior_.with_class_prior(classifier._known(even))
        self.log_prior = classifier.posterior_.log_class_prior

    def read(self, X):
        """Return the rows by leaf; sparse ones are made dense."""
        rows = self.posterior.model.check(self.classifier._read(X))
        cells = sum(float(np.prod(v.shape)) for v in rows.values() if sparse.issparse(v))
        check_memory("the rows of a sparse matrix, made dense,", int(8 * cells), "give fewer rows at a time")
        return {name: np.asarray(v.toarray() if sparse.issparse(v) else v, float) for name, v in rows.items()}

    def log_density(self, rows):
        """Return the log density of the posterior predictive."""
        return self.posterior.log_predictive(self.classifier._as_model_takes(rows)) + np.log(len(self.log_prior))

    def draw(self, count, rng):
        """Draw rows leaf by leaf."""
        model, params, classes = self.posterior.model, self.posterior.draws(rng, (count,)), len(self.log_prior)
        drawn = {name: leaf.draw(model.site(params, name), rng) for name, leaf in model.leaves.items()}
        drawn = {name: np.asarray(v, float).swapaxes(0, 1) for name, v in drawn.items()}
        return {name: v.reshape(classes * count, *v.shape[2:]) for name, v in drawn.items()}

    def tails(self, rows):
        """Return the tail probabilities of a model with one leaf and an exact posterior; else None."""
        leaves = self.posterior.model.leaves
        if self.posterior.kind != "exact" or len(leaves) > 1:
            return None
        ((name, leaf),) = leaves.items()
        try:
            return leaf.tail_probability(rows[name]).reshape(-1, len(self.log_prior))
        except NoClosedForm:
            return None

    def blocks(self, rows):
        """Return the rows unchanged: leaves are blocks."""
        return rows

    def totals(self):
        """Return the leaves of counts given their total."""
        return totals_of(self.classifier.model_)

    def expected(self, rows, codes):
        """Fill in means over classes, and over draws of the parameters where there is no formula."""
        components, schema = Components.of(self, _DRAWS), self.classifier.schema_
        result = {name: v.copy() for name, v in rows.items()}
        flat = {name: v.reshape(len(v), -1) for name, v in result.items()}
        width = components.count * len(self.log_prior) * max(v.shape[1] for v in flat.values())
        incomplete = np.flatnonzero(sum(np.isnan(v).any(1) for v in flat.values()))
        for piece in pieces(len(incomplete), width, DENSITIES):
            own = incomplete[piece]
            part = select_rows(rows, own)
            weight = softmax(components.log_weight(part, taken(codes, own)), axis=(0, 1))
            for gap, values in expectations(components, schema, part, weight):
                flat[gap.block][own[gap.rows], gap.place] = values
        return result

    def filled(self, rows, codes, draws, rng):
        """Choose a component for each row by what it has, then draw what it lacks, leaf by leaf."""
        components, effective = Components.of(self), np.full(count_rows(rows), np.inf)
        tables = [{name: v.copy() for name, v in rows.items()} for _ in range(draws)]
        incomplete = np.flatnonzero(sum(np.isnan(v.reshape(len(v), -1)).any(1) for v in rows.values()))
        for piece in pieces(len(incomplete), components.count * len(self.log_prior), DENSITIES):
            own = incomplete[piece]
            part = select_rows(rows, own)
            weight = softmax(components.log_weight(part, taken(codes, own)), axis=(0, 1))
            effective[own] = 1 / (weight.sum(1) ** 2).sum(0)
            place = choose(weight.reshape(-1, len(own)).T, rng, (draws,))
            again = select_rows(part, np.tile(np.arange(len(own)), draws))
            for name, drawn in components.fill(again, place.ravel(), rng).items():
                for table, one in zip(tables, np.split(drawn, draws), strict=True):
                    table[name][own] = one
        if self.classifier.posterior_.kind == "draws":
            effective *= self.classifier.posterior_.as_draws().efficiency
            few = f"values of {(effective < FEWEST).sum()} of {len(effective)} rows"
            warn_of_few(effective, few, self)
        yield from tables

    def filled_together(self, rows, codes, draws, rng, fitted):
        """Draw parameters that know all rows, then classes and entries given them."""
        params = shared_parameters(self, rows, codes, fitted, rng)
        for _ in range(draws):
            yield complete(self, next(params), rows, codes, rng)[0]

    def knows(self, rows, codes):
        """Compare the statistics of the rows with those of the fit."""
        classifier, statistics = self.classifier, self.classifier.statistics_
        if isinstance(statistics, PartlyLabelled):
            return False
        try:
            check_rows(classifier, statistics, classifier.model_.statistics(classifier._as_model_takes(rows), codes))
        except ValueError:
            return False
        return True

    def measured(self, rows):
        """Take the values of categories and counts, and nodes on the line of a number; see the module."""
        classifier, components = self.classifier, Components.of(self, _FEWER)
        prior = self.log_prior[:, None]
        width = components.count * len(prior) * 2 * len(_CUTS) * len(prior)

        exponent = getattr(classifier, "exponent_", 1.0)

        def log_probability(log_joint):
            return log_softmax(tempered(log_joint, prior.reshape(-1, *[1] * (log_joint.ndim - 1)), exponent), axis=0)

        for piece in pieces(count_rows(rows), width, 2 * CELLS):
            part = select_rows(rows, piece)
            score = components.log_weight(part)
            now, students = log_probability(logsumexp(score, axis=0)), {}
            for gap in gaps_of(classifier.schema_, part):
                log_joint, log_width = along(components, gap, part, score, students)
                weight = softmax(np.asarray(logsumexp(log_joint, axis=0)) + log_width, axis=1)
                yield (piece.start + gap.rows, gap.column), now[:, gap.rows], log_probability(log_joint), weight


def totals_of(model):
    """Return the leaves of counts given their total: a column of each, and the name of its density."""
    given = {name: leaf.density_kind for name, leaf in model.leaves.items()}
    given = {name: kind for name, kind in given.items() if kind.startswith("probability given")}
    return {name: ((*model.columns_of(name), name)[0], kind) for name, kind in given.items()}


def expectations(components, schema, rows, weight):
    """Yield the columns of rows with missing entries, and what to fill in: means, or modes of labels.

    Parameters
    ----------
    components : Components
    schema : Schema
        Its blocks are those of the components.
    rows : mapping from block to array (n, ...)
    weight : array, shape (S, K, n)
        Probability of each component given the observed entries.
    """
    numbers = {}
    for gap in gaps_of(schema, rows):
        if components.is_number(gap.block):
            if gap.block not in numbers:
                location = components.student(gap.block, rows)[0]
                mean = np.einsum("skn,skn...->n...", weight, location + 0 * weight[..., None])
                numbers[gap.block] = components.model.leaves[gap.block].back(mean)
            yield gap, numbers[gap.block][gap.rows, gap.place]
        else:
            table = components.table(gap)
            chance = np.einsum("skn,skv->nv", weight[..., gap.rows], np.exp(table.log_mass))
            label = components.is_label(gap.block)
            yield gap, table.values[chance.argmax(1)] if label else chance @ table.values / chance.sum(1)


def along(components, gap, rows, score, students) -> tuple[Any, Any]:
    """Return log p(x_o, v, k) at possible values v of the entries of a gap, (K, n, Q), and the log width of each node.

    Parameters
    ----------
    components : Components
    gap : Gap
    rows : mapping from block to array (n, ...)
    score : array, shape (S, K, n)
        Log p(x_o, k | θ).
    students : dict
        Student-t's of the blocks of numbers that were asked for, which are kept here.
    """
    own: Any = score[..., gap.rows]
    if not components.is_number(gap.block):
        return _summed(own[..., None] + components.table(gap).log_mass[:, :, None]), 0.0
    if gap.block not in students:
        students[gap.block] = components.student(gap.block, rows)
    values = (_at(v, gap) for v in students[gap.block])
    return _along(own, *np.broadcast_arrays(*values))


def _at(value, gap):
    """Return the entries (S, K, rows) of an array (S, K, n or 1, D or 1) at the rows and column of a gap."""
    value = value[..., gap.place if value.shape[-1] > 1 else 0]
    return value[..., gap.rows if value.shape[-1] > 1 else np.zeros_like(gap.rows)]


def _summed(log_joint):
    """Average over draws, from (S, K, ...) to (K, ...), up to a constant."""
    return log_joint[0] if len(log_joint) == 1 else logsumexp(log_joint, axis=0)


def _along(score, location, spread, dof):
    """Do `along` for an entry that is a Student-t given each component: all arguments have the shape (S, K, n)."""
    kinds, place = np.unique(dof, return_inverse=True)
    some = slice(None, None, max(1, len(score) // 3))  # a few of many draws suffice to cut the line
    quantiles = stats.t.ppf(_CUTS, kinds[:, None])[place.reshape(dof.shape)[some]]
    cuts = location[some][..., None] + spread[some][..., None] * quantiles
    cuts = np.sort(np.moveaxis(cuts, 2, 0).reshape(dof.shape[-1], -1), axis=1)
    half, middle = np.diff(cuts, axis=1) / 2, (cuts[:, 1:] + cuts[:, :-1]) / 2
    v = np.concatenate([middle - half / np.sqrt(3), middle + half / np.sqrt(3)], axis=1)
    with np.errstate(divide="ignore"):
        log_width = np.log(np.concatenate([half, half], axis=1))
    finite = np.where(np.isinf(kinds), 1.0, kinds)
    level = np.where(np.isinf(kinds), -0.5 * LOG_2PI, log_gamma_ratio(finite / 2, 0.5) - 0.5 * np.log(np.pi * finite))
    z = (v - location[..., None]) / spread[..., None]
    with np.errstate(over="ignore"):
        z *= z
    np.minimum(z, _SQUARE, out=z)
    if np.isinf(kinds).all():
        z *= -0.5
    else:
        nu = dof[..., None]
        z /= nu
        np.log1p(z, out=z)
        z *= -0.5 * (nu + 1)
    z += (level[place].reshape(dof.shape) - np.log(spread) + score)[..., None]
    return _summed(z), log_width


def complete(joint, params: Params, rows, codes, rng):
    """Return rows with missing entries drawn under one draw of the parameters, and their classes, drawn if unknown."""
    components, place = Components(joint, params), codes
    if place is None:
        place = np.empty(count_rows(rows), np.intp)
        for piece in pieces(len(place), len(joint.log_prior), DENSITIES):
            score = components.log_weight(select_rows(rows, piece))[0]
            place[piece] = choose(np.exp(score - score.max(0)).T, rng)
    return components.fill(rows, place, rng), place


def shared_parameters(joint, rows, codes, fitted, rng) -> Iterator[Params]:
    """Yield draws of the parameters, arrays (1, ...), given the fit and the observed entries of rows, without end.

    Parameters
    ----------
    joint : SingleJoint
    rows : mapping from name to array
    codes : int array, shape (n,), optional
        Classes of the rows, where they are known.
    fitted : int array, shape (n,), optional
        Classes of the rows at the fit, where they are its rows.
    rng : Generator
    """
    posterior, prior = joint.classifier.posterior_, joint.classifier.model_
    start = posterior.draws(rng, (1,))
    if posterior.kind == "exact" and fitted is None:
        known = joint.classifier.statistics_.classes.total()
        yield from _gibbs(joint, posterior.model, start, rows, codes, known, rng)
    if posterior.kind == "point" and fitted is not None and prior.conjugate:
        yield from _gibbs(joint, prior, start, rows, fitted, np.zeros(len(joint.log_prior)), rng)
    draws, weight = None, None
    if posterior.kind == "draws" and fitted is None:
        draws = posterior.as_draws()
        weight = _weight(joint, draws, rows, codes)
    while True:
        if draws is None:
            yield posterior.draws(rng, (1,))
        else:
            yield {site: v[choose(weight, rng)] for site, v in draws.flat.items()}


def _weight(joint, draws, rows, codes) -> np.ndarray:
    """Return the probability of each draw given the observed entries of all rows, (1, S)."""
    components, total = Components(joint, draws.flat), 0.0
    for piece in pieces(count_rows(rows), components.count * len(joint.log_prior), DENSITIES):
        score = components.log_weight(select_rows(rows, piece), taken(codes, piece))
        total = total + np.logaddexp.reduce(score, axis=1).sum(-1)
    weight = np.exp(total - np.max(total))
    weight /= weight.sum()
    warn_of_few(np.array([draws.efficiency / (weight**2).sum()]), "the tables", joint)
    return weight[None]


def _gibbs(joint, prior, params: Params, rows, codes, known, rng) -> Iterator[Params]:
    """Alternate rows given parameters and parameters given rows; yield draws that hardly correlate.

    It begins with some parameters, arrays (1, ...); the prior has learned from ``known`` rows of each class, (K,), but
    from none of these. Rows and codes are as in `shared_parameters`.
    """
    take, flat = joint.classifier._as_model_takes, [v.reshape(len(v), -1) for v in rows.values()]
    nothing = np.zeros(len(flat[0]), np.intp)
    statistics = prior.statistics(take(rows), nothing if codes is None else codes)
    closed = prior.has_closed_form(statistics)
    if closed and codes is not None:
        posterior = prior.update(statistics)
        while True:
            yield posterior.sample_parameters(rng, (1,))
    rounds = rounds_apart(~np.isnan(np.hstack(flat)), codes, known)
    while True:
        for _ in range(rounds):
            completed, t = complete(joint, params, rows, codes, rng)
            statistics = prior.statistics(take(rows if closed else completed), t)
            params = prior.update(statistics).sample_parameters(rng, (1,))
        yield params
