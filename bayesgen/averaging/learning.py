r"""How an average is learned: views on folds, exact leave-one-out, exponents, weights.

What is learned from rows (bends, components, what gaps are completed from) is learned without the fold of the row that
is left out; what is only summed (moments, counts) subtracts the row. One set of folds serves all views.

A row leaves by one unit of its weight, min(1, weight), so that a weight of 2 is two rows: the other stays. Beyond
_LEARN rows, views are learned from a stratified sample of so many, once, since a row moves them by no more than its
share; the statistics are of all rows. Beyond what `_affordable` allows, exponents and weights come from a stratified
sample of the rows, each class weighted back to its part.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from bayesgen.averaging import average, rows, stack, temper
from bayesgen.averaging import numbers as numbers_of
from bayesgen.averaging.average import Average
from bayesgen.averaging.categories import CategoryMembers
from bayesgen.averaging.evidence import log_evidence
from bayesgen.averaging.gaps import WIDE
from bayesgen.averaging.gaussian import GaussianMember
from bayesgen.averaging.logistic import LogisticMembers
from bayesgen.averaging.numbers import FittedView
from bayesgen.core.errors import DataError
from bayesgen.numerics.sums import finite

FOLDS = 10
_LEARN = 5000  # rows that views are learned from
_MOST = 1000  # rows that are left out
_SECONDS = 3.0  # that leaving out may take, about
_KAPPAS = (0.01, 0.1, 1.0)
COMPONENTS = (2, 3, 5, 8)


@dataclass(frozen=True)
class Rows:
    """A table as the engine takes it: numbers (NaN missing), categories (-1 missing), classes, weights."""

    x: np.ndarray
    c: np.ndarray
    codes: np.ndarray
    weight: np.ndarray

    def __len__(self):
        return len(self.codes)

    def take(self, places, weight=None) -> "Rows":
        """Some of the rows."""
        return Rows(
            self.x[places], self.c[places], self.codes[places], self.weight[places] if weight is None else weight
        )


@dataclass(frozen=True)
class LeftOut:
    """What the rows left out say of the members.

    Attributes
    ----------
    density : array, shape (M, n, K)
        Log p(x_i | k) without row i.
    log_prior : array, shape (n, K)
        Log of the class probabilities without it.
    codes, weight : array, shape (n,)
        Its class; its weight in the score.
    """

    density: np.ndarray
    log_prior: np.ndarray
    codes: np.ndarray
    weight: np.ndarray

    def take(self, places) -> "LeftOut":
        """Some of the rows."""
        return LeftOut(self.density[:, places], self.log_prior[places], self.codes[places], self.weight[places])

    def own(self, values) -> np.ndarray:
        """Of (..., n, K) the entries of each row's own class, (..., n)."""
        return values[..., np.arange(len(self.codes)), self.codes]


def members_of(dim: int, count: int) -> tuple[GaussianMember, ...]:
    """The Gaussian members of a view of ``dim`` columns with ``count`` components a class."""
    M, result = GaussianMember, []
    if 1 < dim <= WIDE:
        shrinkages, rhos, kappas = (
            ((0.1, 0.4, 1.0), (2.0, 8.0, 32.0, 128.0), _KAPPAS)
            if count == 1
            else ((0.3, 1.0), (4.0, 16.0, 64.0), (0.1,))
        )
        result += [M("full", r, k, s) for r in rhos for s in shrinkages for k in kappas]
        result += [M("shared", r, k) for r in (rhos if count == 1 else (2.0, 16.0)) for k in kappas]
    kappas = _KAPPAS if count == 1 else (0.1,)
    result += [M("diagonal", r, k) for r in ((2.0, 8.0, 32.0) if count == 1 else (4.0, 16.0)) for k in kappas]
    return (*result, *(M("shared diagonal", 2.0, k) for k in kappas))


@np.errstate(under="ignore")
def learn(
    data: Rows,
    levels,
    classes: int,
    *,
    method: str,
    bend: bool,
    components: bool,
    discriminative: bool,
    concentration,
    seed: int,
):
    """Learn an average.

    Parameters
    ----------
    data : Rows
        The rows, weights > 0.
    levels : int array, shape (F,)
        Categories of each categorical column.
    classes : int
        K.
    method : {"stacking", "loo", "evidence"}
        Where the weights come from.
    bend, components, discriminative : bool
        Whether columns are bent, classes divided, and discriminative members take part.
    concentration : array, shape (K,)
        Dirichlet prior of the class probabilities.
    seed : int
        Of folds, samples and starts.

    Returns
    -------
    Average
    scores : dict
        See `AveragedClassifier.scores_`.
    """
    rng = np.random.default_rng(seed)
    evidence, places = method == "evidence", np.empty(0, np.intp)
    if few := len(data) <= _LEARN:
        first, weight = rows.distinct(
            np.concatenate([data.x, np.where(data.c < 0, np.nan, data.c)], 1), data.codes, data.weight
        )
        data = data.take(first, weight)
        sample = data
    else:
        places = rows.sample(data.codes, _LEARN, rng)
        sample = data.take(places)
        sample = data.take(places, _weighted_back(sample, data, classes))
    whole_weight = np.bincount(data.codes, data.weight, classes)
    largest = np.bincount(sample.codes, minlength=classes).max()
    counts = [1, *(n for n in COMPONENTS if components and not evidence and largest >= 3 * n)]
    counts = counts[: 0 if not data.x.shape[1] else 1 if data.x.shape[1] > WIDE else None]
    gaps = not finite(data.x)
    seeds = rng.integers(1 << 32, size=FOLDS + 1)
    fold = rows.folds(sample.codes, FOLDS, rng) if few else np.zeros(len(sample), np.intp)
    dim = data.x.shape[1]

    def fit(learned, seed):
        views = numbers_of.learn(
            learned.x, learned.codes, classes, learned.weight, bend=bend, counts=counts, gaps=gaps, seed=seed
        )
        summed = numbers_of.statistics(views, data.x, data.codes, data.weight)
        result = tuple(
            FittedView(view, members_of(dim, count), own)
            for view, count, own in zip(views, counts, summed, strict=True)
        )
        if not all(view.near for view in result):
            raise DataError(
                "numeric columns hold values that are too far from all others of their column to be squared"
            )
        return result

    numbers = fit(sample, seeds[-1]) if counts else ()
    categories = CategoryMembers.of(data.c, levels, data.codes, classes, data.weight) if len(levels) else None
    out = rows.sample(sample.codes, _affordable(len(sample), numbers, dim), rng) if len(sample) else []
    left = sample.take(out)
    removed = np.minimum(1.0, left.weight if few else data.weight[places][out])

    parts = [np.empty((len(view.members), len(left), classes)) for view in numbers]
    for j in np.unique(fold[out]) if numbers else ():
        here = fold[out] == j
        at = out[here] if few else places[out[here]]

        def anew(b, at=at, removed=removed[here]):
            weight = data.weight.copy()
            weight[at[b]] -= removed[b]
            rest = data.take(weight > 0, weight[weight > 0])
            return rest.x, rest.codes, rest.weight

        fitted = fit(sample.take(fold != j), seeds[j]) if few and (fold != j).any() else numbers
        for density, view in zip(parts, fitted, strict=True):
            density[:, here] = view.leave_out(left.x[here], left.codes[here], removed[here], anew)
    second = [] if categories is None else [categories.leave_out(left.c, left.codes, removed)]
    one = np.eye(classes)[left.codes]
    remaining = (whole_weight - removed[:, None] * one).clip(0) + concentration
    log_prior = np.log(remaining / remaining.sum(1, keepdims=True))
    scored = left.weight if few and len(left) == len(data) else _weighted_back(left, data, classes)
    density = average.products(parts, second, len(left), classes)
    softmax = None
    if discriminative and not evidence and classes > 1:
        left = left.take(slice(None), scored)
        softmax, more = _discriminative(
            left, levels, classes, bend, fold[out] if few else rows.folds(left.codes, FOLDS // 2, rng)
        )
        density = np.concatenate([density, more])
    result = LeftOut(density, log_prior, left.codes, scored)
    return _weigh(result, numbers, categories, softmax, data, whole_weight, concentration, method)


def _discriminative(left: Rows, levels, classes, bend, fold):
    """Members learned from the rows that are left out, and what they say of each without its fold."""

    def fit(part):
        return LogisticMembers.of(part.x, part.c, levels, part.codes, classes, part.weight, bend)

    whole = fit(left)
    density = np.zeros((len(whole.coefficients), len(left), classes))
    for j in np.unique(fold):
        here = fold == j
        if not here.all():
            density[:, here] = fit(left.take(~here)).log_density(left.x[here], left.c[here])
    return whole, density


def _weighted_back(sample: Rows, data: Rows, classes: int) -> np.ndarray:
    """Weights of a sample in which each class has its part of all rows."""
    own, whole = (np.bincount(r.codes, r.weight, classes) for r in (sample, data))
    weight = sample.weight * (whole / np.where(own > 0, own, 1.0))[sample.codes]
    return weight * (sample.weight.sum() / weight.sum())


def _affordable(count: int, numbers, dim: int) -> int:
    """How many rows to leave out, by what one row costs: a factorisation for every group and prior covariance."""
    factorisations = sum(
        len(view.view.owner) * len({(m.rho, m.shrinkage) for m in view.members if m.structure == "full"})
        + sum(m.structure == "shared" for m in view.members)
        for view in numbers
    )
    seconds = factorisations * (3e-6 + 1.6e-10 * (dim + 2) ** 3)
    return min(count, _MOST, max(200, int(_SECONDS / max(seconds, 1e-9))))


def _weigh(left: LeftOut, numbers, categories, softmax, data, whole_weight, concentration, method):
    """Exponents, weights, and what the rows left out say of them."""
    members = average.members_of(numbers, categories, softmax)
    prior = stack.shares(average.families(members))
    expected = temper.expected(data.x.shape[1] + data.c.shape[1], left.weight.sum())
    mode = np.array([1.0 if a == stack.SOFTMAX else expected for a, _ in members])
    whole = average.generative(members, numbers, categories)
    if method == "evidence":
        exponents = np.ones(len(members))
        log_weight = log_evidence(members, numbers, categories) + np.log(prior)
        weights = np.exp(log_weight - logsumexp(log_weight))
        density_weights = weights
    else:
        exponents, weights = _choose(left, prior, mode, method)
        joint = left.own(left.density[whole]) + left.own(left.log_prior)
        density_weights = np.zeros(len(members))
        density_weights[whole] = stack.stack(joint, left.weight, prior[whole] * stack.strength(left.weight.sum()))
    log_q = left.own(temper.log_probability(left.density, left.log_prior, exponents))
    share = left.weight / left.weight.sum()
    scores = {
        "members": log_q @ share,
        "average": float(average.mixed(log_q, weights) @ share),
        "base_rate": float(left.own(left.log_prior) @ share),
        "rows": len(left.codes),
    }
    scores["nested"] = (
        scores["average"] if method == "evidence" else _nested(left, prior, mode, method, (exponents, weights))
    )
    made = Average(numbers, categories, softmax, whole_weight, concentration, exponents, weights, density_weights)
    return made, scores


def _choose(left: LeftOut, prior, mode, method, near=None, heavy=None):
    """Exponents and weights from rows left out; those of other rows, where they are known, are where to begin."""
    last, tolerance = (1e-9, 1e-7) if heavy is None else (1e-3, 1e-5)
    exponents = temper.exponents(left.density, left.log_prior, left.codes, left.weight, mode, near, last)
    log_q = left.own(temper.log_probability(left.density, left.log_prior, exponents))
    if method == "stacking":
        return exponents, stack.stack(log_q, left.weight, prior * stack.strength(left.weight.sum()), heavy, tolerance)
    # All of the score would be too sure of a difference that is known to its standard error alone.
    log_weight = 0.5 * log_q @ left.weight + np.log(prior)
    return exponents, np.exp(log_weight - logsumexp(log_weight))


def _nested(left: LeftOut, prior, mode, method, start) -> float:
    """Mean log score of rows under exponents and weights that other rows chose: cross-validated over five folds."""
    fold = np.arange(len(left.codes)) % 5
    score = np.empty(len(fold))
    for j in range(min(5, len(fold))):
        here = fold == j
        rest = left.take(~here if len(fold) > 1 else here)
        exponents, weights = _choose(rest, prior, mode, method, *start)
        part = left.take(here)
        log_q = part.own(temper.log_probability(part.density, part.log_prior, exponents))
        score[here] = average.mixed(log_q, weights)
    return float(score @ left.weight / left.weight.sum())
