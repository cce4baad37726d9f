r"""Learning of an average: views on folds, exact leave-one-out, exponents, weights.

Views (bends, components, means and covariance to complete gaps) are learned without the fold of the row that is left
out; sums (moments, counts) subtract the row. One set of folds serves all views; it is always
the same for the same rows, so that a seed has no part in what is learned from them.

A row leaves by one unit of its weight, min(1, weight), so a weight of 2 is two rows, one of which stays. Where a class
has fewer than _EVEN rows for each number, one row of each other class leaves with it (`HeldOut.evenly`). A row that
belongs to a group leaves with the whole group, and no fold parts a group. The exponents to expect and the strength of
the prior on weights follow the number of rows, or (Σ w_g)²/Σ w_g² of the weights of groups. Beyond _FOLDED rows, views
are learned once, since a row moves them by no more than its share, and beyond _LEARN from a stratified sample of so
many; the statistics are sums over all rows. If leaving out all rows takes too long, exponents and weights come from a
stratified sample of rows left out, each class weighted back to its part.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayesgen.averaging import average, families, rows, stack, temper
from bayesgen.averaging.average import Average
from bayesgen.averaging.given import Given
from bayesgen.averaging.leaves import Leaves
from bayesgen.averaging.member import NOTHING
from bayesgen.averaging.rows import HeldOut, Rows
from bayesgen.averaging.training import Setting, Training
from bayesgen.numerics.pieces import one_blas_thread

FOLDS = 10
_FOLDED = 5000  # rows; of more, views are learned once and not in each fold
_LEARN = 20_000  # rows that views are learned from
_LEARN_TREES = 100_000  # rows that members learn from that are no sums
_MOST, _LEAST = 4000, 200  # rows that are left out
_DENSITIES = 1 << 25  # log densities of rows left out that are held
_EVEN = 10  # rows of a class for each column of numbers below which it matters that it lacks one
_SECONDS, _EACH, _LONGEST = 3.0, 1e-3, 15.0  # about how long leaving out may take: so long, more for each row, at most


@dataclass(frozen=True)
class LeftOut:
    """Densities of the rows left out under every member.

    Attributes
    ----------
    density : array, shape (M, n, K)
        Log p(x_i | k) without row i.
    log_prior : array, shape (n, K)
        Log of the class probabilities without row i.
    rows : Rows
        The rows.
    weight : array, shape (n,)
        Weight of each row in the score.
    least : array, shape (M,)
        The s of each member; see `temper.log_probability`.
    """

    density: np.ndarray
    log_prior: np.ndarray
    rows: Rows
    weight: np.ndarray
    least: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        """Class of each row."""
        return self.rows.codes

    @property
    def count(self) -> float:
        """The number of independent rows that these are worth."""
        return rows.effective(self.weight, self.rows.group)

    def take(self, places) -> "LeftOut":
        """Return some of the rows."""
        own = self.density[:, places], self.log_prior[places], self.rows.take(places), self.weight[places]
        return LeftOut(*own, self.least)

    def log_q(self, exponents) -> np.ndarray:
        """Return the log probability of the class of each row under every member, (M, n)."""
        return temper.log_probability_of(self.codes, self.density, self.log_prior, exponents, self.least)

    def average(self, exponents, weights) -> np.ndarray:
        """Return the average over the members, (n, K)."""
        some = weights > 0
        own = temper.log_probability(self.density[some], self.log_prior, exponents[some], self.least[some])
        return np.tensordot(weights[some], np.exp(own, out=own), 1)

    def log_score(self, probability, sharpening: float) -> np.ndarray:
        """Return the log probability of the class of each row, (n,), when probabilities (n, K) are sharpened."""
        result = temper.sharpened(probability, np.exp(self.log_prior), sharpening)
        with np.errstate(divide="ignore"):
            return np.log(self.own(result)) - np.log(result.sum(1))

    def own(self, values) -> np.ndarray:
        """Return the entries of values (..., n, K) at the class of each row, (..., n)."""
        return values[..., np.arange(len(self.codes)), self.codes]


@dataclass(frozen=True)
class Split:
    """The rows to learn from, to sum and to hold out, with their folds.

    Attributes
    ----------
    held : HeldOut
        All rows, to sum, and those of the sample that are held out.
    even : HeldOut
        The same for members of the numbers, whose classes may have to lack equally many rows.
    sample : Rows
        Rows to learn views from.
    scored : array, shape (n,)
        Weight of each row held out in the score.
    at : int array, shape (n,)
        Places of the rows held out in the data.
    out : int array, shape (n,)
        Places of the rows held out in the sample.
    fold : int array, shape (s,), or None
        Fold of each row of the sample; None where views are learned once.
    seeds : int array, shape (FOLDS + 1,)
        Seeds of the folds, and of all rows.
    """

    held: HeldOut
    even: HeldOut
    sample: Rows
    scored: np.ndarray
    at: np.ndarray
    out: np.ndarray
    fold: np.ndarray | None
    seeds: np.ndarray

    def folds(self) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Yield for each fold a mask of its rows among those held out, the places of the others, and a seed."""
        every = np.arange(len(self.sample))
        if self.fold is None:
            yield np.ones(len(self.held), bool), every, self.seeds[-1]
            return
        for j in np.unique(self.fold[self.out]):
            rest = np.flatnonzero(self.fold != j)
            yield self.fold[self.out] == j, rest if len(rest) else every, self.seeds[j]


@one_blas_thread()
@np.errstate(under="ignore")
def fit_average(
    data: Rows,
    *,
    method: str,
    bend: bool,
    members: Any = "all",
    given: Given | None = None,
    leaves: Leaves | None = None,
    concentration,
    seed: int,
    jobs: int | None = None,
    stage: Callable[[int, int, str], None] = lambda done, total, text: None,
):
    """Learn an average.

    Parameters
    ----------
    data : Rows
        The rows, weights > 0.
    method : {"stacking", "evidence"}
        Source of the weights; see `AveragedClassifier`.
    bend : bool
        Whether columns are bent.
    members : str or list
        The families, and the user's own classifiers; see `AveragedClassifier`.
    given : Given, optional
        The rows as the user gave them, for classifiers of the user's.
    concentration : array, shape (K,)
        Dirichlet prior of the class probabilities.
    seed : int
        Seed of folds, samples and starts.
    leaves : Leaves, optional
        Leaves of the columns ``data.e``, with the statistics of all rows.
    jobs : int, optional
        Classifiers of the user's that are fitted side by side.
    stage : callable, optional
        Called as ``stage(done, total, text)`` before each stage of the work.

    Returns
    -------
    Average
    scores : dict
        See `AveragedClassifier.scores_`.
    """
    setting = Setting(method == "evidence", families.pairs(members))
    sample, places, which, rng = _sample(data, np.random.default_rng(seed))
    data = sample if places is None else data
    others = not setting.evidence and data.classes > 1  # members that are no densities
    wanted = [family for family in families.chosen(members) if family.generative or others]
    if not sample.x.shape[1] + len(sample.levels):
        wanted = []  # no column is left to the members: the class prior, or the leaves, say all
    groups = {family: own for family in wanted if (own := family.propose(sample, setting))}
    split = _split(data, sample, places, groups, 0.0 if leaves is None else leaves.seconds(), rng)
    whole = Training(sample, data, bend, split.seeds[-1])
    apart = [family for family in groups if not family.subtracts]
    folds = list(split.folds()) if any(family.subtracts and family.folds for family in groups) else []
    stages = ["sums of all rows", *(f"fold {j} of {len(folds)}" for j, _ in enumerate(folds, 1))]
    stages += [*(f"members {families.name_of(family)!r}" for family in apart), "exponents and weights"]
    tell = (stage(done, len(stages), text) for done, text in enumerate(stages))
    next(tell)
    fitted = {family: family.fit(own, whole) for family, own in groups.items() if family.subtracts}
    density = {
        family: [np.empty((len(p.members), len(split.held), data.classes)) for p in own]
        for family, own in fitted.items()
    }
    by_fold = [family for family in fitted if family.folds]
    for here, rest, own_seed in folds:
        next(tell)
        training = whole.on(rest, own_seed)
        for family in by_fold:
            again = family.fit(groups[family], training) if len(rest) < len(sample) else fitted[family]
            _leave_out(split, family, here, again, density)
    for family in fitted:
        if not family.folds:
            _leave_out(split, family, np.ones(len(split.held), bool), fitted[family], density)
    learned, which, out, fold = _learned(split, which, rng)
    repeats = 1 - len(learned) / max((which >= 0).sum(), 1)
    given = None if given is None else replace(given, which=which).rows(np.arange(len(learned)))
    bends = whole.bends if learned is sample else {}
    training = Training(learned, learned, bend, split.seeds[-1], given, bends, jobs=jobs)
    count = dict.fromkeys(groups, len(sample))
    for family in apart:
        next(tell)
        some, places = training.at_most(family.most_rows(learned), out)
        count[family] = len(some.rows)
        fitted[family], density[family] = family.fit_and_leave_out(groups[family], some, places, fold)
    next(tell)
    parts = [part for family in groups for part in fitted[family]]
    every = [own for family in groups for own in density[family]]
    result, scores = _weigh(split, parts, every, leaves, concentration, method)
    own = [count[family] for family in apart for part in fitted[family] for _ in part.members]
    learned_from = np.array([len(sample)] * (len(result.members) - len(own)) + own)
    return result, scores | {"learned": learned_from, "repeats": float(repeats)}


def _sample(data: Rows, rng):
    """Return the distinct rows and which each row is, or a stratified sample of many rows with their places."""
    if len(data) <= _FOLDED:
        own, which = data.distinct()
        return own, None, which, rng
    places = rows.sample(data.ranks, _LEARN, rng)
    sample = data.take(places)
    return sample.take(slice(None), rows.weighted_back(sample, data)), places, None, rng


def _learned(split: Split, which, rng) -> tuple[Rows, np.ndarray, np.ndarray, np.ndarray]:
    """Return distinct rows to learn from, which each row is, the places of the rows left out, and their folds."""
    if split.fold is not None:
        return split.sample, which, split.out, split.fold[split.out]
    data, at = split.held.data, split.at
    places = np.arange(len(data))
    if len(places) > _LEARN_TREES:
        places = np.union1d(rows.sample(data.ranks, _LEARN_TREES, rng), at)
        at = np.searchsorted(places, at)
    some = data.take(places)
    learned, own = some.take(slice(None), rows.weighted_back(some, data)).distinct()
    which = np.full(len(data), -1)
    which[places] = own
    out, turn = np.unique(own[at], return_inverse=True)
    return learned, which, own[at], learned.take(out).folds(FOLDS // 2)[turn]


def _split(data: Rows, sample: Rows, places, groups, seconds: float, rng) -> Split:
    """Choose folds and the rows to leave out, as many as time allows."""
    seeds, few = rng.integers(1 << 32, size=FOLDS + 1), places is None
    fold = sample.folds(FOLDS) if few else None
    seconds += sum(family.seconds(group, sample) for family, own in groups.items() for group in own)
    most = _most_left_out(data, groups, seconds)
    at = np.arange(len(sample)) if places is None else places
    out = rows.sample(sample.ranks, min(len(sample), most), rng) if len(sample) else np.empty(0, np.intp)
    held, left = HeldOut.of(data, at[out]), sample.take(out)
    even, smallest = held, np.bincount(data.codes, data.weight, data.classes).min()
    if data.group is None and data.classes > 1 and smallest < _EVEN * data.x.shape[1]:
        even = HeldOut.evenly(data, at[out], None if fold is None else fold[out])
    scored = left.weight if few and len(left) == len(data) else rows.weighted_back(left, data)
    return Split(held, even, sample, scored, at[out], out, fold, seeds)


def _most_left_out(data: Rows, groups, seconds: float) -> int:
    """Return how many rows may be left out, by the ``seconds`` that each takes and the memory of its densities."""
    count = {name: 1 for name in ("numbers", "categories", "table")}
    for family, own in groups.items():
        count[family.takes] += sum(map(len, own))
    fit = _DENSITIES // (data.classes * (count["numbers"] * count["categories"] + count["table"]))
    done = min(_SECONDS + _EACH * len(data), _LONGEST) / max(seconds, 1e-9)
    return min(_MOST, max(_LEAST, int(min(fit, done))))


def _leave_out(split: Split, family, here, fitted, density) -> None:
    """Write the log densities of some rows held out, (M, n, K) for each part of a family."""
    some = (split.even if family.takes == "numbers" else split.held).take(here)
    for part, own in zip(fitted, density[family], strict=True):
        own[:, here] = part.left_out(some)


def _weigh(split: Split, parts, densities, leaves: Leaves | None, concentration, method):
    """Choose exponents and weights; return the average and its scores on the rows left out."""
    held = split.held
    data, even, rows_left = held.data, split.even, held.rows
    class_weight = np.bincount(data.codes, data.weight, data.classes)
    leaving = even.sums(even.gone.weight[:, None] * np.eye(data.classes)[even.gone.codes])
    remaining = (class_weight - leaving[even.at]).clip(0) + concentration
    log_prior = np.log(remaining / remaining.sum(1, keepdims=True))
    numbers, categories, others = (
        [own for part, own in zip(parts, densities, strict=True) if part.members[0].takes == columns]
        for columns in ("numbers", "categories", "table")
    )
    density = np.concatenate([average.products(numbers, categories, len(rows_left), data.classes), *others])
    members, width = average.members_of(parts, leaves), data.x.shape[1] + data.c.shape[1]
    least = average.least(parts, leaves)
    if leaves is not None and data.e is not None:
        density = average.with_leaves(density, leaves.left_out(held), members, leaves)
        width += data.e.shape[1]
        leaves = leaves.settled()
    left = LeftOut(density, log_prior, rows_left, split.scored, least)
    whole = average.generative(members, parts, data.x.shape[1], data.c.shape[1])
    prior = stack.prior_mass(members, rows.effective(data.weight, data.group))
    mode = np.array([member.expected_exponent(width, left.count) for member in members])
    if method == "evidence":
        exponents = np.ones(len(members))
        log_weight = average.log_evidence(members, parts, whole) + np.log(prior)
        if not np.isfinite(log_weight).any():
            raise ValueError("weights='evidence' needs members that have an evidence: give members='generative'")
        weights = np.exp(log_weight - logsumexp(log_weight))
        density_weights = weights
    else:
        exponents, weights = _choose(left, prior, mode)
        joint = left.own(left.density[whole]) + left.own(left.log_prior)
        density_weights = np.zeros(len(members))
        if whole.any():
            density_weights[whole] = stack.stack(joint, left.weight, prior[whole] * stack.strength(left.count))
    log_q = left.log_q(exponents)
    share = left.weight / left.weight.sum()
    base = float(left.own(left.log_prior) @ share)
    if method == "evidence":
        nested, sharpening = float(average.mixed(log_q, weights) @ share), 1.0
    else:
        unseen = _nested(left, prior, mode, (exponents, weights))
        gain = float(left.log_score(unseen, 1.0) @ share) - base
        weights = stack.gated(weights, members.index(NOTHING), left.count * gain)
        sharpening = temper.sharpening(unseen, left.log_prior, left.codes, left.count * share)
        nested = float(left.log_score(unseen, sharpening) @ share)
    scores = {
        "members": log_q @ share,
        "average": float(left.log_score(left.average(exponents, weights), sharpening) @ share),
        "nested": nested,
        "base_rate": base,
        "rows": len(left.codes),
    }
    fitted = Average(
        tuple(parts), class_weight, concentration, exponents, weights, density_weights, sharpening, leaves=leaves
    )
    return fitted, scores


def _choose(left: LeftOut, prior, mode, near=None, heavy=None):
    """Choose exponents and weights from rows left out, beginning at ``near`` and ``heavy`` where given."""
    exponents = temper.exponents(left.density, left.log_prior, left.codes, left.weight, mode, near)
    prior = prior * stack.strength(left.count)
    return exponents, stack.stack(left.log_q(exponents), left.weight, prior, heavy)


def _nested(left: LeftOut, prior, mode, start) -> np.ndarray:
    """Return the average of rows (n, K) under exponents and weights chosen by other rows, over five folds."""
    fold = left.rows.folds(5)
    result = np.empty(left.log_prior.shape)
    for j in np.unique(fold):
        here = fold == j
        rest = left.take(here if here.all() else ~here)
        exponents, weights = _choose(rest, prior, mode, *start)
        result[here] = left.take(here).average(exponents, weights)
    return result
