r"""Classes that no row tells: where the search for them begins, their order, and the evidence of their number.

**The search.** The likelihood of unlabelled rows has many maxima, and where nothing tells the classes apart each is
there K! times, with the classes renamed. A start takes K rows as seeds of the classes, or draws the probabilities r_ik
of the classes of all rows. All of them climb at once, to the end (`bayesgen.models.stacked_em`), and as many as end at
the best height are counted. Starts are compared by the lower bound of the evidence that holds for any r,

.. math:: \log p(x) \ge \log \int \exp \Big( \sum_{ik} r_{ik} \log \pi_k \, p(x_i \mid \theta_k) \Big) p(\theta, \pi) \,
   d\theta \, d\pi - \sum_{ik} r_{ik} \log r_{ik}

whose first term is the evidence of rows that count r_ik in class k, in closed form for conjugate leaves (it is the
variational bound with q(z) = r and the best q(θ, π); Beal 2003). It counts the mass about a mode, which the density at
it does not. Maximum likelihood knows no prior: its search climbs the likelihood, and ends at the highest maximum. A
start at which a class shrinks onto rows of one value, where the likelihood has no bound, counts only if there is no
other.

**The weak prior** of Gaussian columns expects the scale within classes. Of D columns that vary it takes, in K
classes, their total variance divided by K^(2/D): the volume of a class is the K-th part of that of all rows (Fraley and
Raftery 2007, *Journal of Classification* 24).

**Names.** Classes without a labelled row, under a prior that is the same for all, are named by their order: the most
frequent first, or by the mean of a column. The posterior is symmetric in them, so a draw of it may have its classes
renamed by any rule that is one for all draws; they are matched with the classes at the start (Hungarian method, as by
Stephens 2000, *Journal of the Royal Statistical Society B* 62). Densities of rows do not depend on it.

**The evidence** of few rows is exact. With g_k(S) the evidence of the rows S as class k, the prior of sizes included,

.. math:: p(x) = \sum_{S_1 \cup \dots \cup S_K} \prod_k g_k(S_k), \qquad
   f_k(S) = \sum_{T \subseteq S} g_k(T) f_{k-1}(S \setminus T)

over all divisions of the rows into K classes: 3^n terms a class instead of K^n labellings.
"""

import math
from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp, softmax, xlogy

from bayesgen.core.statistics import with_axes
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.models.classifier import ClassConditional
from bayesgen.models.model import Params
from bayesgen.models.unknown_labels import PartlyLabelled, UnknownClasses
from bayesgen.numerics.pieces import DENSITIES, pieces
from bayesgen.numerics.special import log_gamma_ratio
from bayesgen.numerics.sums import Grouping

_LEAST = 1e-8  # of the variance of a column, or of a combination of columns, that a class must keep
MOST = 12  # rows of which all divisions into classes are summed


def alike(model: ClassConditional) -> bool:
    """Return True if the prior is the same for every class."""
    classes = model.classes.mean
    return bool(np.all(classes == classes[0])) and not any(leaf.per_class for leaf in model.leaves.values())


def free(model: ClassConditional, statistics: PartlyLabelled) -> np.ndarray:
    """Return the codes of the classes that nothing tells apart, neither a label nor the prior."""
    return np.flatnonzero(statistics.classes.total() == 0) if alike(model) else np.zeros(0, np.intp)


def begun(
    model: ClassConditional, statistics: PartlyLabelled, starts: int, rng: np.random.Generator, likelihood: bool = False
) -> PartlyLabelled:
    """Return the statistics with the best of several starts, and the heights of all; see the module.

    There are ``starts`` where two classes or more are `free`; else the labels or the prior give the one that there is.
    With ``likelihood`` starts are compared by the highest likelihood near them.
    """
    unknown = UnknownClasses(model)
    if len(free(model, statistics)) < 2:
        labels = softmax(model.update(statistics.recorded).log_predictive(statistics.rows), axis=1)
        return replace(statistics, start=labels)
    first = unknown.stacked(statistics, "start")
    em = unknown.stacked(statistics, "ml") if likelihood else first
    heights, best, labels = [], -np.inf, None
    for piece in pieces(starts, len(statistics.weight) * len(model.class_names), DENSITIES):
        begin = np.stack([_start(first, model, statistics, rng, number) for number in range(starts)[piece]])
        sums = em.climb(begin)[0]
        level, each = em.heights(sums)
        if likelihood:
            level = _bounded(em, sums, level)
        heights.append(level)
        if labels is None or level.max() > best:
            best, labels = level.max(), each[level.argmax()].T
    return replace(statistics, start=labels, heights=np.concatenate(heights))


def _bounded(em, sums, level):
    """Return heights (S,), -inf for the starts above the best one at which no class has `shrunk`."""
    order = np.argsort(-level)
    for place, start in enumerate(order):
        if level[start] > -np.inf and shrunk(em.model, em.parameters(sums[start])) is None:
            level[order[:place]] = -np.inf
            break
    return level


def shrunk(model: ClassConditional, params: Params) -> tuple[int, str] | None:
    """Return the class and the column in which the variance of a class is next to none of that of all rows, or None."""
    share = params[f"{model.CLASSES}.probability"][:, None]
    for name in model.leaves:
        found = model.site(params, name)
        if "mean" not in found or not found.keys() & {"variance", "covariance"}:
            continue
        mean = found["mean"].reshape(len(share), -1)
        if "covariance" in found:
            matrix = np.broadcast_to(found["covariance"], (*mean.shape, mean.shape[1]))
        else:
            variance = found["variance"]
            variance = variance if variance.ndim and variance.shape[-1] == mean.shape[1] else variance[..., None]
            matrix = np.broadcast_to(variance, mean.shape)[:, :, None] * np.eye(mean.shape[1])
        between = (share * (mean - (share * mean).sum(0)) ** 2).sum(0)
        total = np.sqrt(between + (share * np.diagonal(matrix, axis1=1, axis2=2)).sum(0))
        size, direction = np.linalg.eigh(matrix / np.where(total > 0, total * total[:, None], 1.0))
        if (size[:, 0] < _LEAST).any():
            k = int(size[:, 0].argmin())
            return k, (model.columns_of(name) or (name,))[int(np.abs(direction[k, :, 0]).argmax())]
    return None


def reached(heights: np.ndarray) -> int:
    """Return the number of starts whose search ended at the best height of all, up to a thousandth."""
    return int((heights >= heights.max() - 1e-3).sum())


def _start(em, model, statistics, rng, number):
    """Return sums (K, Q) of rows whose classes are drawn, or follow from a row drawn for each `free` class."""
    count, classes, lone = len(statistics.base), len(model.class_names), free(model, statistics)
    if number % 2:
        return em.summed(rng.dirichlet(np.ones(classes), count).T[None])[0]
    seeds = rng.choice(count, size=len(lone), replace=count < len(lone), p=statistics.weight / statistics.weight.sum())
    sums = em.known.copy()
    sums[lone] += em.terms[seeds]
    return em.summed(em.expected(em.maximised(sums)[None])[0])[0]


def bound(model: ClassConditional, statistics: PartlyLabelled, labels: np.ndarray) -> float:
    """Return the lower bound of the log evidence at probabilities (m, K) of the classes of rows; see the module."""
    entropy = -(statistics.weight[:, None] * xlogy(labels, labels)).sum()
    return float(model.log_evidence(statistics.expected(model, labels)) + entropy)


def ordered(model: ClassConditional, statistics: PartlyLabelled, values=None) -> PartlyLabelled:
    """Return the statistics with the `free` classes of the start in order.

    Of ``values`` (m,), numbers of a column, NaN where missing, the lowest mean comes first. With ``values`` (m, C),
    probabilities of other classes, class k is the one that agrees best with their class k, over all classes at once;
    classes without a partner come last. By default the most frequent class is the first.
    """
    lone, labels = free(model, statistics), statistics.start * statistics.weight[:, None]
    if np.ndim(values) == 2:
        mine, theirs = linear_sum_assignment(-labels[:, lone].T @ values)
        key = np.full(labels.shape[1], np.inf)
        key[lone[mine]] = theirs
    elif values is None:
        key = -labels.sum(0)
    else:
        seen = ~np.isnan(values)
        key = (labels[seen] * values[seen, None]).sum(0) / labels[seen].sum(0).clip(1e-300)
    place = np.arange(labels.shape[1])
    place[lone] = lone[np.argsort(key[lone], kind="stable")]
    return replace(statistics, start=statistics.start[:, place])


def matched(model: ClassConditional, statistics: PartlyLabelled, samples: Params) -> dict[str, np.ndarray]:
    """Return draws (chains, draws, K, ...) with the `free` classes of each draw matched with those of the start."""
    lone = free(model, statistics)
    lead = next(iter(samples.values())).shape[:2]
    flat = {site: v.reshape(-1, *v.shape[2:]) for site, v in samples.items()}
    draws, classes = math.prod(lead), len(model.class_names)
    place = np.tile(np.arange(classes), (draws, 1))
    target = (statistics.start * statistics.weight[:, None])[:, lone]
    for piece in pieces(draws, classes * len(target), DENSITIES):
        joint = model.log_likelihood_rows({site: v[piece] for site, v in flat.items()}, statistics.rows)
        agreement = target.T @ np.swapaxes(softmax(joint, axis=1)[:, lone], 1, 2)
        for order, gain in zip(place[piece], agreement, strict=True):
            order[lone] = lone[linear_sum_assignment(-gain)[1]]
    rows = np.arange(draws)[:, None]
    by_class = {site for site in flat if model.dims(site)[:1] == ("class",)}
    return {s: (v[rows, place] if s in by_class else v).reshape(samples[s].shape) for s, v in flat.items()}


def log_evidence(model: ClassConditional, statistics: PartlyLabelled) -> float | None:
    """Return log p(rows), summed over all divisions into classes.

    Return None for more rows than `MOST`, with labels or weights, and where the classes share a parameter.
    """
    count, classes = len(statistics.base), len(model.class_names)
    shared = any(leaf.untied() != leaf for leaf in model.leaves.values())
    if shared or count > MOST or statistics.classes.total().any() or (statistics.weight != 1).any():
        return None
    sets = np.arange(1 << count)
    member, row = np.nonzero(sets[:, None] >> np.arange(count) & 1)
    sizes = np.bincount(member, minlength=len(sets))
    each = _sizes(model.classes, sizes)  # (sets, K)
    for name, leaf in model.leaves.items():
        rows = statistics.rows[name]
        sums = leaf.sum_rows(rows[row], Grouping(member, len(sets), None, (len(sets),)))
        groups = (classes,) if leaf.per_class else ()
        terms = leaf.log_evidence_terms(with_axes(sums, len(groups)))
        each = each + terms.reshape(len(sets), *(groups or (1,)), -1).sum(-1)
    base = sum(leaf.sum_rows(statistics.rows[n], Grouping.of(count)).base for n, leaf in model.leaves.items())
    found = each[:, 0]
    for of_class in each.T[1:]:
        before = found
        found = np.array([logsumexp(of_class[t] + before[s ^ t]) for s, t in _subsets(sets)])
    return float(found[-1] + base)


def _subsets(sets):
    """Yield every set of rows with all its subsets, as bits of whole numbers."""
    return ((members, sets[(sets & members) == sets]) for members in sets)


def _sizes(classes, sizes) -> np.ndarray:
    """Return the log prior of the sizes of all classes as a term of each, (sets, K)."""
    if isinstance(classes, DirichletCategorical):
        total = log_gamma_ratio(classes.alpha.sum(), float(sizes.max()))
        return log_gamma_ratio(classes.alpha, sizes[:, None]) - total / len(classes.alpha)
    return xlogy(sizes[:, None], classes.mean)
