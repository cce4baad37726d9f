r"""Classes that no row tells: where the search for them begins, their order, and the evidence of their number.

**The search.** The likelihood of unlabelled rows has many maxima, and where nothing tells the classes apart each is
there K! times, with the classes renamed. A start takes K rows as seeds of the classes, or draws the probabilities r_ik
of the classes of all rows. All of them climb at once, to the end (`bayesgen.models.stacked_em`), and as many as end at
the best height are counted. Starts are compared by the lower bound of the evidence that holds for any r: the evidence
of rows that count r_ik in class k, and the entropy of r (`docs/mathematics/latent-classes.md`; it is the variational
bound with q(z) = r and the best q(θ, π), Beal 2003). It counts the mass about a mode, which the density at it does not.
Maximum likelihood knows no prior: its search climbs the likelihood, and ends at the highest maximum. A start at which a
class shrinks onto rows of one value, where the likelihood has no bound, counts only if there is no other.

**Names** of classes that nothing tells apart are by their order (`ordered`). Draws are matched with the classes at the
start (Hungarian method, as by Stephens 2000), a rule that changes no density.

**Draws about a mode.** If row i counts r_ik in class k, the posterior is conjugate. With S the sums of all rows so
counted, draws are proposed from the equal mixture q of its tempered forms p(θ) exp(h η(θ)·S)/Z_h, h = 1, .7, .4 and .2,
which are conjugate too, and wider. They are weighed by

.. math:: w = \frac{p(x \mid \theta) \, p(\theta)}{q(\theta)} = \frac{p(x \mid \theta)}{\frac14 \sum_h
   \exp(h \, \eta(\theta) \cdot S) / Z_h}, \qquad Z_h = \int p(\theta) \exp(h \, \eta(\theta) \cdot S) \, d\theta

so that their mean is the evidence, and the largest weights tell where the posterior is too far from q (Pareto k). The
prior cancels. Up to six `free` classes q is the mean over all ways to rename them, so that modes may overlap (dual
importance sampling: Lee and Robert 2016, *Bayesian Analysis* 11); more of them count as if each way were a mode apart.
Modes of another kind that no proposal reaches are missed, and the estimate is too small by them.

**The evidence** of few rows is exact. With g_k(S) the evidence of the rows S as class k, the prior of sizes included,

.. math:: p(x) = \sum_{S_1 \cup \dots \cup S_K} \prod_k g_k(S_k), \qquad
   f_k(S) = \sum_{T \subseteq S} g_k(T) f_{k-1}(S \setminus T)

over all divisions of the rows into K classes: 3^n terms a class instead of K^n labellings.
"""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp, softmax, xlogy

from bayesgen.core.statistics import with_axes
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.models.classifier import ClassConditional
from bayesgen.models.leaf import untied
from bayesgen.models.model import Params
from bayesgen.models.row_em import RowEM, twin
from bayesgen.models.row_leaf import RowsByGroup
from bayesgen.models.unknown_labels import PartlyLabelled, UnknownClasses
from bayesgen.numerics.draws import pareto_shape
from bayesgen.numerics.pieces import DENSITIES, pieces
from bayesgen.numerics.special import log_gamma_ratio
from bayesgen.numerics.sums import Grouping

_LEAST = 1e-8  # of the variance of a column, or of a combination of columns, that a class must keep
_RENAMED = 6  # classes, of which all names are gone through
_HEAT = (1.0, 0.7, 0.4, 0.2)  # powers of the likelihood in the proposals of `weighted_draws`
_TRIMMED, _LEFT_OUT = 10, 0.2  # steps of trimmed k-means, and the share of rows that it leaves out
MOST = 12  # rows of which all divisions into classes are summed


def free(model: ClassConditional, statistics: PartlyLabelled) -> np.ndarray:
    """Return the codes of the classes that nothing tells apart, neither a label nor the prior."""
    prior = model.classes.mean
    alike = np.all(prior == prior[0]) and not any(leaf.per_class for leaf in model.leaves.values())
    return np.flatnonzero(statistics.classes.total() == 0) if alike else np.zeros(0, np.intp)


def distinct_rows(statistics: PartlyLabelled) -> int:
    """Return the number of different rows of unknown class."""
    rows = np.concatenate([values.reshape(len(values), -1) for values in statistics.rows.values()], axis=1)
    return len(np.unique(np.nan_to_num(rows, nan=np.inf), axis=0))


def begun(
    model: ClassConditional, statistics: PartlyLabelled, starts: int, rng: np.random.Generator, likelihood: bool = False
) -> PartlyLabelled:
    """Return the statistics with the best of several starts, and the heights of all; see the module.

    There are ``starts`` where two classes or more are `free`; else the labels or the prior give the one that there is.
    With ``likelihood`` starts are compared by the highest likelihood near them.
    """
    simple = twin(model)
    if simple is not model:
        return _begun_by_rows(model, simple, statistics, starts, rng, "ml" if likelihood else "map")
    if len(free(model, statistics)) < 2:
        labels = softmax(model.update(statistics.recorded).log_predictive(statistics.rows), axis=1)
        return replace(statistics, start=labels)
    heights, best, labels = [], -np.inf, None
    for level, each in _ends(model, statistics, starts, rng, likelihood):
        heights.append(level)
        if labels is None or level.max() > best:
            best, labels = level.max(), each[level.argmax()].T
    return replace(statistics, start=labels, heights=np.concatenate(heights))


def _ends(model, statistics, starts, rng, likelihood):
    """Yield heights (S,) and memberships (S, K, m) where the searches from all starts end, by pieces."""
    unknown = UnknownClasses(model)
    first = unknown.stacked(statistics, "start")
    em = unknown.stacked(statistics, "ml") if likelihood else first
    for piece in pieces(starts, len(statistics.weight) * len(model.class_names), DENSITIES):
        begin = np.stack([_start(first, model, statistics, rng, number) for number in range(starts)[piece]])
        sums = em.climb(begin)[0]
        level, each = em.heights(sums)
        yield _bounded(em, sums, level) if likelihood else level, each


def _begun_by_rows(model, simple, statistics, starts, rng, way):
    """Do `begun` where a leaf keeps its rows: from a third of the starts by its ``simple`` twin, others about seeds."""
    unknown = UnknownClasses(model)
    nobody = np.full(len(statistics.weight), -1)  # knows a class
    gaussian = UnknownClasses(simple).statistics(statistics.rows, nobody, statistics.weight)
    known = dict(statistics.recorded.leaves)
    for name, sums in known.items():
        if isinstance(sums, RowsByGroup):
            x, codes, weight = sums.flat()
            count = len(model.class_names)
            known[name] = simple.leaves[name].sum_rows(x, Grouping(codes, count, weight, (count,)))
    gaussian = replace(gaussian, recorded=replace(statistics.recorded, leaves=known))
    if len(free(model, statistics)) < 2:
        return replace(statistics, start=begun(simple, gaussian, starts, rng).start)
    robust = 2 * starts // 3 if len(free(model, statistics)) == len(model.class_names) else 0
    ends = _ends(simple, gaussian, starts - robust, rng, False)
    begins = [(height, begin.T) for level, each in ends for height, begin in zip(level.round(3), each, strict=True)]
    z = _standing(model, statistics)
    for number in range(robust):
        begin = _near_seeds(z, len(model.class_names), rng, trimmed=number % 2 == 0)
        begins.append((frozenset(map(bytes, begin.T)), begin))  # the same division, whatever the names
    climbed, heights, best, labels = {}, [], -np.inf, None
    em = RowEM(unknown, statistics, way)
    for known, begin in begins:
        if known not in climbed:
            climbed[known] = _height(em, begin)
            if labels is None or climbed[known][0] > best:
                best, labels = climbed[known]
        heights.append(climbed[known][0])
    return replace(statistics, start=labels, heights=np.array(heights))


def _standing(model, statistics) -> np.ndarray:
    """Return the columns of Student's t (m, D), less their medians, in units of the median distance from these."""
    students = [name for name in model.leaves if name not in statistics.terms]
    z = np.concatenate([statistics.rows[name].reshape(len(statistics.weight), -1) for name in students], axis=1)
    z = z - np.nanmedian(z, axis=0)
    spread = np.nanmedian(np.abs(z), axis=0)
    return z / np.where(spread > 0, spread, np.where(z == z, np.abs(z), 0.0).max(0).clip(1e-300))


def _near_seeds(z, classes: int, rng, trimmed: bool) -> np.ndarray:
    """Return memberships (m, K), each row in the class of the centre nearest to it: of rows that are drawn as seeds.

    ``trimmed``, the centres move to the means of their rows, a fifth of all rows left out that are farthest from any
    (trimmed k-means: Cuesta-Albertos, Gordaliza and Matrán 1997, *Annals of Statistics* 25).
    """
    centres = z[rng.choice(len(z), classes, replace=len(z) < classes)]
    for _ in range(_TRIMMED if trimmed else 0):
        away = _squares(z, centres)
        near, kept = away.argmin(1), away.min(1) <= np.quantile(away.min(1), 1 - _LEFT_OUT)
        for k in range(classes):
            rows = kept & (near == k)
            centres[k] = _mean(z[rows]) if rows.any() else z[rng.choice(np.flatnonzero(kept))]
    return np.eye(classes)[_squares(z, centres).argmin(1)]


def _mean(z):
    """Return the mean of rows without their gaps, 0, the median, where a column has nothing else."""
    seen = ~np.isnan(z)
    return np.where(seen, z, 0.0).sum(0) / np.maximum(seen.sum(0), 1)


def _squares(z, centres):
    """Return the mean squared distance of each row from each centre, (m, K), over the entries that both have."""
    apart = z[:, None] - centres
    seen = ~np.isnan(apart)
    return np.where(seen, apart**2, 0.0).sum(-1) / np.maximum(seen.sum(-1), 1)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # of a class that shrinks without bound
def _height(em, labels):
    """Return the likelihood where a search from memberships (m, K) ends, -inf where it has no end, and those there."""
    try:
        params = em.climb(labels, 1e-6)
    except (ValueError, np.linalg.LinAlgError):
        return -np.inf, labels
    height = -np.inf if shrunk(em.unknown.model, params) else float(em.unknown.log_likelihood(params, em.statistics))
    return height, em.unknown.labels(params, em.statistics)


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
        found = model.leaves[name].select_class(model.site(params, name), ...)
        if "mean" not in found or not found.keys() & {"variance", "covariance"}:
            continue
        mean = found["mean"].reshape(len(share), -1)
        matrix = found.get("covariance")
        if matrix is None:
            matrix = found["variance"].reshape(mean.shape)[:, :, None] * np.eye(mean.shape[1])
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


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Draws of the parameters about a mode, with importance weights; see the module."""

    params: Params  # draws of the proposal
    log_weight: np.ndarray  # (draws,): log of p(rows, θ) / q(θ)

    @property
    def weight(self) -> np.ndarray:
        """The weights, which sum to 1."""
        return softmax(self.log_weight)

    @property
    def log_evidence(self) -> float:
        """Log of the evidence: the mean of the weights."""
        return float(logsumexp(self.log_weight) - np.log(len(self.log_weight)))

    @property
    def error(self) -> float:
        """Standard error of `log_evidence`."""
        return float(np.sqrt(np.maximum((self.weight**2).sum() - 1 / len(self.log_weight), 0.0)))

    @property
    def pareto_k(self) -> float:
        """Shape of the largest weights; above 0.7 they do not show what the proposals miss."""
        return float(pareto_shape(self.log_weight))


@np.errstate(under="ignore")
def weighted_draws(
    model: ClassConditional, statistics: PartlyLabelled, rng: np.random.Generator, count: int = 4000, confusion=None
) -> WeightedDraws:
    """Draw parameters about the mode of the start from tempered conjugate posteriors, and weigh them.

    ``confusion`` is the prior of the confusion matrix, where labels may be wrong; the draws have one, too.
    """
    if not model.conjugate:
        raise ValueError(
            "about a point estimate of a Student's t there are no draws in closed form: fit with inference='laplace' "
            "or 'nuts'; of rows left out take arviz_stats.loo(classifier.to_arviz(X))"
        )
    unknown = UnknownClasses(model, confusion)
    em, labels = unknown.stacked(statistics, "start"), statistics.start
    if labels is None:
        labels = unknown.labels(unknown.map(statistics), statistics)
    sums, _ = em.climb(em.summed(labels.T[None]))
    each = -(-count // len(_HEAT))
    parts = [unknown.whole.update(em.complete(heat * sums[0])).sample_parameters(rng, (each,)) for heat in _HEAT]
    params = {site: np.concatenate([part[site] for part in parts]) for site in parts[0]}
    eta = em.natural(params, (each * len(_HEAT), len(model.class_names)))
    fit = eta @ sums[0].T  # (draws, K, K): η of a class with the sums of another
    lone, every = free(model, statistics), np.arange(eta.shape[1])
    several = list(itertools.permutations(lone)) if len(lone) <= _RENAMED else [tuple(lone)]
    heats, proposal = np.array(_HEAT), np.full((len(_HEAT), len(eta)), -np.inf)
    for order in several:
        place = every.copy()
        place[lone] = order
        proposal = np.logaddexp(proposal, heats[:, None] * fit[:, place, every].sum(1))
    proposal = logsumexp(proposal - em.evidences(heats[:, None, None] * sums)[:, None], axis=0)
    proposal -= np.log(len(_HEAT)) + math.lgamma(len(lone) + 1)
    level = [em.expected(eta[piece])[1] for piece in pieces(len(eta), len(em.weight) * eta.shape[1], DENSITIES)]
    log_weight = np.concatenate(level) + (eta * em.known).sum((1, 2)) - proposal
    if confusion is None:
        recorded: Any = statistics.recorded.leaves
        log_weight += sum(float(kept.base) for kept in recorded.values())
    return WeightedDraws(params, log_weight)


def ordered(model: ClassConditional, statistics: PartlyLabelled, values=None) -> PartlyLabelled:
    """Return the statistics with the `free` classes of the start in order.

    Of ``values`` (m,), numbers of a column, NaN where missing, the lowest mean comes first. With ``values`` (m, C),
    probabilities of other classes, class k is the one that agrees best with their class k, over all classes at once;
    classes without a partner come last. By default the most frequent class is the first.
    """
    lone, labels = free(model, statistics), statistics.start * statistics.weight[:, None]
    if values is None:
        key = -labels.sum(0)
    elif values.ndim == 2:
        mine, theirs = linear_sum_assignment(-labels[:, lone].T @ values)
        key = np.full(labels.shape[1], np.inf)
        key[lone[mine]] = theirs
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
    shared = not model.conjugate or any(untied(leaf) != leaf for leaf in model.leaves.values())
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
    found, subsets = each[:, 0], [sets[(sets & members) == sets] for members in sets]  # rows are bits of whole numbers
    for of_class in each.T[1:]:
        before = found
        found = np.array([logsumexp(of_class[t] + before[s ^ t]) for s, t in zip(sets, subsets, strict=True)])
    return float(found[-1] + base)


def _sizes(classes, sizes) -> np.ndarray:
    """Return the log prior of the sizes of all classes as a term of each, (sets, K)."""
    if isinstance(classes, DirichletCategorical):
        total = log_gamma_ratio(classes.alpha.sum(), float(sizes.max()))
        return log_gamma_ratio(classes.alpha, sizes[:, None]) - total / len(classes.alpha)
    return xlogy(sizes[:, None], classes.mean)
