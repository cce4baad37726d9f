r"""Learning of an average: views on folds, exact leave-one-out, exponents, weights.

Views (bends, components, means and covariance to complete gaps) are learned without the fold of the row that is left
out; sums (moments, counts) subtract the row. One set of folds serves all views.

A row leaves by one unit of its weight, min(1, weight), so a weight of 2 is two rows, one of which stays. Beyond _LEARN
rows, views are learned once, from a stratified sample of so many, since a row moves them by no more than its share; the
statistics are sums over all rows. If leaving out all rows takes too long, exponents and weights come from a stratified
sample of rows left out, each class weighted back to its part.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayesgen.averaging import average, families, rows, stack, temper
from bayesgen.averaging.average import Average
from bayesgen.averaging.leaves import Leaves
from bayesgen.averaging.member import Product
from bayesgen.averaging.rows import Rows
from bayesgen.averaging.training import Setting, Training

FOLDS = 10
_LEARN = 5000  # rows that views are learned from
_MOST = 1000  # rows that are left out
_SECONDS = 3.0  # about how long leaving out may take


@dataclass(frozen=True)
class LeftOut:
    """Densities of the rows left out under every member.

    Attributes
    ----------
    density : array, shape (M, n, K)
        Log p(x_i | k) without row i.
    log_prior : array, shape (n, K)
        Log of the class probabilities without row i.
    codes, weight : array, shape (n,)
        Class of each row, and weight in the score.
    """

    density: np.ndarray
    log_prior: np.ndarray
    codes: np.ndarray
    weight: np.ndarray

    def take(self, places) -> "LeftOut":
        """Return some of the rows."""
        return LeftOut(self.density[:, places], self.log_prior[places], self.codes[places], self.weight[places])

    def own(self, values) -> np.ndarray:
        """Return the entries of values (..., n, K) at the class of each row, (..., n)."""
        return values[..., np.arange(len(self.codes)), self.codes]


@dataclass(frozen=True)
class Split:
    """The rows to learn from, to sum and to leave out, with their folds.

    Attributes
    ----------
    data : Rows
        All rows, to sum.
    sample : Rows
        Rows to learn views from.
    left : Rows
        Rows that are left out, some of the sample with its weights.
    removed : array, shape (n,)
        Weight that leaves with each row left out.
    scored : array, shape (n,)
        Weight of each row left out in the score.
    at : int array, shape (n,)
        Places of the rows left out in the data.
    out : int array, shape (n,)
        Places of the rows left out in the sample.
    fold : int array, shape (s,), or None
        Fold of each row of the sample; None where views are learned once.
    own_fold : int array, shape (n,)
        Fold of each row left out, for members that are learned from these rows alone.
    seeds : int array, shape (FOLDS + 1,)
        Seeds of the folds, and of all rows.
    """

    data: Rows
    sample: Rows
    left: Rows
    removed: np.ndarray
    scored: np.ndarray
    at: np.ndarray
    out: np.ndarray
    fold: np.ndarray | None
    own_fold: np.ndarray
    seeds: np.ndarray

    def folds(self) -> Iterator[tuple[np.ndarray, Rows, Any]]:
        """Yield for each fold a mask of its rows among those left out, the sample without the fold, and a seed."""
        if self.fold is None:
            yield np.ones(len(self.left), bool), self.sample, self.seeds[-1]
            return
        for j in np.unique(self.fold[self.out]):
            rest = self.fold != j
            yield self.fold[self.out] == j, self.sample.take(rest) if rest.any() else self.sample, self.seeds[j]


@np.errstate(under="ignore")
def fit_average(
    data: Rows,
    *,
    method: str,
    bend: bool,
    components: bool,
    discriminative: bool,
    concentration,
    seed: int,
    leaves: Leaves | None = None,
):
    """Learn an average.

    Parameters
    ----------
    data : Rows
        The rows, weights > 0.
    method : {"stacking", "loo", "evidence"}
        Source of the weights; see `AveragedClassifier`.
    bend, components, discriminative : bool
        Whether columns are bent, classes divided, and discriminative members take part.
    concentration : array, shape (K,)
        Dirichlet prior of the class probabilities.
    seed : int
        Seed of folds, samples and starts.
    leaves : Leaves, optional
        Leaves of the columns ``data.e``, with the statistics of all rows.

    Returns
    -------
    Average
    scores : dict
        See `AveragedClassifier.scores_`.
    """
    setting = Setting(bend, components, discriminative, method == "evidence")
    sample, places, rng = _sample(data, np.random.default_rng(seed))
    data = sample if places is None else data
    discriminative = discriminative and not setting.evidence and data.classes > 1
    wanted = [family for family in families.FAMILIES if family.generative or discriminative]
    if leaves is not None and not sample.x.shape[1] + len(sample.levels):
        wanted = []  # no column is left to the members
    groups = {family: own for family in wanted if (own := family.propose(sample, setting))}
    split = _split(data, sample, places, groups, 0.0 if leaves is None else leaves.seconds(), rng)
    whole = Training(sample, data, bend, split.seeds[-1])
    fitted = {family: family.fit(own, whole) for family, own in groups.items() if family.subtracts}
    density = {
        family: [np.empty((len(p.members), len(split.left), data.classes)) for p in own]
        for family, own in fitted.items()
    }
    by_fold = [family for family in fitted if family.folds]
    for here, rest, own_seed in split.folds() if by_fold else ():
        training = Training(rest, data, bend, own_seed)
        for family in by_fold:
            again = family.fit(groups[family], training) if len(rest) < len(sample) else fitted[family]
            _leave_out(split, here, again, density[family])
    for family in fitted:
        if not family.folds:
            _leave_out(split, np.ones(len(split.left), bool), fitted[family], density[family])
    left = split.left.take(slice(None), split.scored)
    for family in groups:
        if not family.subtracts:
            fitted[family] = family.fit(groups[family], Training(left, left, bend, split.seeds[-1]))
            density[family] = [np.zeros((len(p.members), len(left), data.classes)) for p in fitted[family]]
            for j in np.unique(split.own_fold):
                here = split.own_fold == j
                if not here.all():
                    rest = left.take(~here)
                    again = family.fit(groups[family], Training(rest, rest, bend, split.seeds[-1]))
                    _leave_out(replace(split, left=left), here, again, density[family])
    parts = [part for family in groups for part in fitted[family]]
    every = [own for family in groups for own in density[family]]
    return _weigh(split, parts, every, leaves, concentration, method)


def _sample(data: Rows, rng):
    """Return the distinct rows, or a stratified sample of many rows with their places."""
    if len(data) <= _LEARN:
        entries = [] if data.e is None else [data.e]
        columns = np.concatenate([data.x, np.where(data.c < 0, np.nan, data.c), *entries], 1)
        return data.take(*rows.distinct(columns, data.codes, data.weight)), None, rng
    places = rows.sample(data.codes, _LEARN, rng)
    sample = data.take(places)
    return data.take(places, _weighted_back(sample, data)), places, rng


def _split(data: Rows, sample: Rows, places, groups, seconds: float, rng) -> Split:
    """Choose folds and the rows to leave out, as many as time allows."""
    seeds, few = rng.integers(1 << 32, size=FOLDS + 1), places is None
    fold = rows.folds(sample.codes, FOLDS, rng) if few else None
    seconds += sum(family.seconds(group, sample) for family, own in groups.items() for group in own)
    most = min(_MOST, max(200, int(_SECONDS / max(seconds, 1e-9))))
    out = rows.sample(sample.codes, min(len(sample), most), rng) if len(sample) else np.empty(0, np.intp)
    left, at = sample.take(out), out if places is None else places[out]
    removed = np.minimum(1.0, left.weight if few else data.weight[at])
    scored = left.weight if few and len(left) == len(data) else _weighted_back(left, data)
    own_fold = rows.folds(left.codes, FOLDS // 2, rng) if fold is None else fold[out]
    return Split(data, sample, left, removed, scored, at, out, fold, own_fold, seeds)


def _leave_out(split: Split, here, fitted, density) -> None:
    """Write the log densities of some rows left out, (M, n, K) for each part."""
    at, removed, left = split.at[here], split.removed[here], split.left.take(here)

    def anew(b: int) -> Rows:
        return split.data.without(int(at[b]), float(removed[b]))

    for part, own in zip(fitted, density, strict=True):
        own[:, here] = part.left_out(left, removed, anew)


def _weighted_back(sample: Rows, data: Rows) -> np.ndarray:
    """Return weights of a sample under which each class has its share of all rows."""
    own, whole = (np.bincount(r.codes, r.weight, r.classes) for r in (sample, data))
    weight = sample.weight * (whole / np.where(own > 0, own, 1.0))[sample.codes]
    return weight * (sample.weight.sum() / weight.sum())


def _weigh(split: Split, parts, densities, leaves: Leaves | None, concentration, method):
    """Choose exponents and weights; return the average and its scores on the rows left out."""
    data, rows_left = split.data, split.left
    one = np.eye(data.classes)[rows_left.codes]
    class_weight = np.bincount(data.codes, data.weight, data.classes)
    remaining = (class_weight - split.removed[:, None] * one).clip(0) + concentration
    log_prior = np.log(remaining / remaining.sum(1, keepdims=True))
    numbers, categories, others = (
        [own for part, own in zip(parts, densities, strict=True) if part.members[0].takes == columns]
        for columns in ("numbers", "categories", "table")
    )
    density = np.concatenate([average.products(numbers, categories, len(rows_left), data.classes), *others])
    members, width = average.members_of(parts, leaves), data.x.shape[1] + data.c.shape[1]
    if leaves is not None and data.e is not None:
        own = leaves.left_out(data, split.at, split.removed)
        density, width = average.with_leaves(density, own, members, leaves), width + data.e.shape[1]
        leaves = leaves.settled()
    left = LeftOut(density, log_prior, rows_left.codes, split.scored)
    whole = average.generative(members, parts)
    prior = stack.prior_mass(members)
    expected = temper.expected_exponent(width, left.weight.sum())
    mode = np.array([expected if isinstance(member, Product) or member.generative else 1.0 for member in members])
    if method == "evidence":
        exponents = np.ones(len(members))
        log_weight = average.log_evidence(members, parts) + np.log(prior)
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
    fitted = Average(tuple(parts), class_weight, concentration, exponents, weights, density_weights, leaves=leaves)
    return fitted, scores


def _choose(left: LeftOut, prior, mode, method, near=None, heavy=None):
    """Choose exponents and weights from rows left out, beginning at ``near`` and ``heavy`` where given."""
    last, tolerance = (1e-9, 1e-7) if heavy is None else (1e-3, 1e-5)
    exponents = temper.exponents(left.density, left.log_prior, left.codes, left.weight, mode, near, last)
    log_q = left.own(temper.log_probability(left.density, left.log_prior, exponents))
    if method == "stacking":
        return exponents, stack.stack(log_q, left.weight, prior * stack.strength(left.weight.sum()), heavy, tolerance)
    # The full score would be too sure of differences that are known only up to their standard error.
    log_weight = 0.5 * log_q @ left.weight + np.log(prior)
    return exponents, np.exp(log_weight - logsumexp(log_weight))


def _nested(left: LeftOut, prior, mode, method, start) -> float:
    """Return the mean log score of rows under exponents and weights chosen by other rows, over five folds."""
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
