r"""Learning of an average in five stages: propose members, split rows, fit, leave rows out, weigh.

Views (bends, components, means and covariance to complete gaps) are learned without the fold of the row that is left
out; sums (moments, counts) subtract the row. One set of folds serves all views; it is always the same for the same
rows, so that a seed has no part in what is learned from them.

`docs/mathematics/averaged.md` says what leaves with a row, and what rows with weights are worth. Where a class has
fewer than _EVEN rows for each number, one row of each other class leaves with it (`HeldOut.balanced`). A row that
belongs to a group leaves with the whole group, and no fold parts a group. Beyond _FOLDED rows, views are learned once,
since a row moves them by no more than its share, and beyond _LEARN from a stratified sample of so many; the statistics
are sums over all rows. If leaving out all rows takes too long, exponents and weights come from a stratified sample of
rows left out, each class weighted back to its part.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from bayesgen.averaging.average import Average, Roster
from bayesgen.averaging.families import worthwhile
from bayesgen.averaging.leaves import ColumnModels
from bayesgen.averaging.member import CATEGORIES, NUMBERS, FittedMembers, Member, Setting, adding, name_of
from bayesgen.averaging.member_rows import HeldOut, Rows, weighted_back
from bayesgen.averaging.outside import Given
from bayesgen.averaging.scored import Scored
from bayesgen.averaging.stream import Stream
from bayesgen.averaging.students import Together
from bayesgen.averaging.view import Training
from bayesgen.averaging.weights import LeftOut, choose
from bayesgen.numerics import folds
from bayesgen.numerics.pieces import one_blas_thread

FOLDS = 10
_HALF = 1000  # rows, from which on half as many folds do
_FOLDED = 5000  # rows; of more, views are learned once and not in each fold
_LEARN = 20_000  # rows that views are learned from
_LEARN_TREES = 100_000  # rows that members learn from that are no sums
_MOST, _LEAST = 2000, 200  # rows that are left out
_DENSITIES = 1 << 25  # log densities of rows left out that are held
_EVEN = 10  # rows of a class for each column of numbers below which it matters that it lacks one
_EQUAL = 0.01  # how rarely drawn classes are so equal in size that they are taken as chosen
_SECONDS, _EACH, _LONGEST = 3.0, 1e-3, 15.0  # about how long leaving out may take: so long, more for each row, at most


@dataclass(frozen=True)
class Sample:
    """The rows to learn from."""

    rows: Rows  # the rows in order of content, or a stratified sample of many
    summed: Rows  # the rows to sum: the same, or all of many
    places: np.ndarray  # (s,): their places in the table
    few: bool  # True if the sample are all rows

    @classmethod
    def of(cls, data: Rows, rng) -> "Sample":
        """Choose the rows to learn from."""
        if len(data) <= _FOLDED and not data.counted:
            places = data.by_content()
            rows = data.take(places)
            return cls(rows, rows, places, True)
        places = _drawn(data, _LEARN, rng)
        sample = data.units(places)
        return cls(sample.take(slice(None), weighted_back(sample, data)), data, places, False)


def _drawn(data: Rows, size: int, rng) -> np.ndarray:
    """Draw places of rows, stratified by class; a row that is there several times by its weight may come as often."""
    return folds.sample(data.ranks, size, rng, folds.times(data.weight) if data.counted else None)


class Proposal(NamedTuple):
    """Members of one family, in tuples that are fitted together."""

    family: type[Member]
    groups: Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Split:
    """The rows to learn from, to sum and to hold out, with their folds."""

    held: HeldOut  # all rows, to sum, and those of the sample that are held out
    even: HeldOut  # the same for members of the numbers, whose classes may have to lack equally many rows
    drawn: bool  # True if the rows of each class are as many as sampling made them; see `as_drawn`
    sample: Rows  # rows to learn views from
    scored: np.ndarray  # (n,): weight of each row held out in the score
    out: np.ndarray  # (n,): places of the rows held out in the sample
    fold: np.ndarray | None  # (s,), or None: fold of each row of the sample; None where views are learned once
    seeds: np.ndarray  # (FOLDS + 1,): seeds of the folds, and of all rows
    learned: Rows  # rows for the members that are no sums to learn from, in order of content
    places: np.ndarray  # (m,): their places in the table
    # learned_out, learned_fold: (n,): places of the rows held out among these, and their folds
    learned_out: np.ndarray
    learned_fold: np.ndarray

    def folds(self) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Yield for each fold a mask of its rows among those held out, the places of the others, and a seed."""
        every = np.arange(len(self.sample))
        if self.fold is None:
            yield np.ones(len(self.held), bool), every, self.seeds[-1]
            return
        for j in np.unique(self.fold[self.out]):
            others = np.flatnonzero(self.fold != j)
            yield self.fold[self.out] == j, others if len(others) else every, self.seeds[j]

    def leaving(self, family: type[Member]) -> HeldOut:
        """Return the rows held out, as they leave the sums of a family."""
        return self.even if NUMBERS in family.blocks else self.held


@dataclass(frozen=True)
class Fit:
    """Members of one family fitted to all rows, and their densities of the rows held out."""

    proposal: Proposal
    parts: Sequence[FittedMembers]  # the fitted members
    learned: int  # number of rows that they learned from
    # (M, n, K), or None: log p(x_i | k) without row i, an array for each part; None until rows are left out of sums
    density: Sequence[np.ndarray] | None = None


@one_blas_thread()
@np.errstate(under="ignore")
def fit_average(
    data: Rows,
    *,
    method: str,
    bend: bool,
    families: Sequence[type[Member]],
    pairs: tuple[tuple[str, Any], ...] = (),
    given: Given | None = None,
    leaves: ColumnModels | None = None,
    concentration,
    seed: int,
    stage: Callable[[int, int, str], None] = lambda done, total, text: None,
):
    """Return an average learned of rows of weights > 0, its scores, as `AveragedClassifier.scores_`, and its `Stream`.

    Weights come by ``method``, "stacking" or "evidence"; members are of some ``families``, and classifiers of the
    user's, ``pairs`` of names and estimators, which learn from the rows as ``given``. ``leaves`` are those of the
    columns ``data.e``, with the statistics of all rows; the ``concentration`` (K,) is that of the class probabilities.
    The seed is of folds, samples and starts; ``stage(done, total, text)`` is called before each stage of the work.
    """
    rng = np.random.default_rng(seed)
    sample = Sample.of(data.ungrouped(), rng)
    proposals = propose(sample.rows, families, Setting(method == "evidence", pairs))
    split = split_rows(sample, proposals, leaves, rng)
    tell = _announced(proposals, split, stage)
    whole = Training(sample.rows, sample.summed, bend, split.seeds[-1])
    fits = fit(proposals, split, whole, given, tell)
    fits = leave_out(fits, split, whole, tell)
    next(tell)
    result, scores, (density, predicted) = weigh(fits, split, leaves, concentration, method)
    learned = {member: fit.learned for fit in fits for fitted in fit.parts for member in fitted.members}
    learned = [min([learned[m] for m in member.factors], default=len(sample.rows)) for member in result.members]
    adding = [fit.proposal.family.subtracts or fit.learned == len(sample.summed) for fit in fits for _ in fit.parts]
    scored = Scored.of(density, predicted, int(data.weight.sum()) if data.counted else len(data))
    return result, scores | {"learned": np.array(learned)}, Stream.begin(result, adding, scored, data)


def _announced(proposals: Sequence[Proposal], split: Split, stage) -> Iterator[None]:
    sums = any(family.subtracts and family.folds for family, _ in proposals)
    texts = ["sums of all rows"]
    texts += [f"members {name_of(family)!r}" for family, _ in proposals if not family.subtracts]
    count = len(list(split.folds())) if sums else 0
    texts += [*(f"fold {j} of {count}" for j in range(1, count + 1)), "exponents and weights"]
    return (stage(done, len(texts), text) for done, text in enumerate(texts))


# -- stage 1: propose --------------------------------------------------------------------------------------------------


def propose(sample: Rows, families: Sequence[type[Member]], setting: Setting) -> list[Proposal]:
    """Return the members that suit the rows, of each family that the user wants."""
    if not sample.x.shape[1] + len(sample.levels):
        return []  # no column is left to the members: the class prior, or the leaves, say all
    classify = not setting.evidence and sample.classes > 1  # members that are no densities
    wanted = [family for family in worthwhile(families, sample) if family.blocks or classify]
    every = (Proposal(family, family.propose(sample, setting)) for family in wanted)
    return [proposal for proposal in every if proposal.groups]


# -- stage 2: split ----------------------------------------------------------------------------------------------------


def split_rows(sample: Sample, proposals: Sequence[Proposal], leaves: ColumnModels | None, rng) -> Split:
    """Choose folds and the rows to leave out, as many as time allows."""
    learn, data, few = sample.rows, sample.summed, sample.few
    seeds = rng.integers(1 << 32, size=FOLDS + 1)
    fold = learn.folds(FOLDS if learn.worth < _HALF else FOLDS // 2) if few else None
    seconds = 0.0 if leaves is None else leaves.seconds()
    seconds += sum(family.seconds(group, learn) for family, groups in proposals for group in groups)
    places = np.arange(len(learn)) if few else sample.places
    most = min(len(learn), _most_left_out(data, proposals, seconds))
    out = folds.sample(learn.ranks, most, rng) if len(learn) else np.empty(0, np.intp)
    held, predicted = HeldOut.of(data, places[out]), learn.take(out)
    even, count = held, data.count
    if (data.group is None or data.shared) and data.classes > 1:
        worth = count if data.counted else count**2 / np.bincount(data.codes, data.weight**2, data.classes)
        if worth.min() < _EVEN * data.x.shape[1]:
            even = HeldOut.balanced(data, places[out], None if fold is None else fold[out])
    drawn = as_drawn(count if data.counted else count * (data.worth / count.sum()))
    scored = predicted.weight if few and len(predicted) == len(data) else weighted_back(predicted, data)
    scored = scored * (predicted.worth / scored.sum())
    if fold is not None:
        return Split(held, even, drawn, learn, scored, out, fold, seeds, learn, sample.places, out, fold[out])
    return Split(held, even, drawn, learn, scored, out, fold, seeds, *_for_trees(data, places[out], rng))


def as_drawn(count) -> bool:
    r"""Return True unless classes of weights (K,) are more equal than drawing rows makes them.

    Of rows drawn from K classes that are equally frequent, Σ (n_k - n/K)²/(n/K) is χ² of K - 1 degrees; other
    frequencies make it larger. Below its 1 % point as many rows of each class were taken as were wanted.
    """
    mean = count.mean()
    return len(count) < 2 or ((count - mean) ** 2).sum() / mean >= chi2.ppf(_EQUAL, len(count) - 1)


def _most_left_out(data: Rows, proposals: Sequence[Proposal], seconds: float) -> int:
    """Return how many rows may be left out, by the ``seconds`` that each takes and the memory of its densities."""
    count: dict[tuple[str, ...], int] = {(NUMBERS,): 1, (CATEGORIES,): 1, (): 1}
    for family, groups in proposals:
        blocks = family.blocks if family.blocks in count else ()
        count[blocks] += sum(map(len, groups))
    fit = _DENSITIES // (data.classes * (count[NUMBERS,] * count[CATEGORIES,] + count[()]))
    rows = data.weight.sum() if data.counted else len(data)
    done = min(_SECONDS + _EACH * rows, _LONGEST) / max(seconds, 1e-9)
    return min(_MOST, max(_LEAST, int(min(fit, done))))


def _for_trees(data: Rows, out, rng) -> tuple[Rows, np.ndarray, np.ndarray, np.ndarray]:
    """Return rows of many in order of content, their places, and among them those of the rows held out, and folds."""
    times = np.bincount(_drawn(data, _LEARN_TREES, rng), minlength=len(data))
    times = np.maximum(times, np.bincount(out, minlength=len(data)))
    places = np.repeat(np.arange(len(data)), times)
    place_out = (np.cumsum(times) - times)[out] + np.arange(len(out)) - np.searchsorted(out, out)
    sample = data.units(places)
    sample = sample.take(slice(None), weighted_back(sample, data))
    order = sample.by_content()
    learned, rank = sample.take(order), np.argsort(order)
    held, turn = np.unique(rank[place_out], return_inverse=True)
    return learned, places[order], rank[place_out], learned.take(held).folds(FOLDS // 2)[turn]


# -- stage 3: fit ------------------------------------------------------------------------------------------------------


def fit(proposals: Sequence[Proposal], split: Split, whole: Training, given: Given | None, tell) -> list[Fit]:
    """Fit each family to all rows; those that are no sums leave rows out as they are fitted."""
    next(tell)
    summed = [Fit(p, p.family.fit(p.groups, whole), len(split.sample)) for p in proposals if p.family.subtracts]
    as_given = None if given is None else given.rows(split.places)
    bends = whole.bends if split.learned is split.sample else {}
    training = Training(split.learned, split.learned, whole.bend, whole.seed, as_given, bends)
    return summed + [_learn(p, split, training, tell) for p in proposals if not p.family.subtracts]


def _learn(proposal: Proposal, split: Split, training: Training, tell) -> Fit:
    next(tell)
    family, groups = proposal
    few, places = training.at_most(family.most_rows(split.learned), split.learned_out)
    parts, density = family.fit_and_leave_out(groups, few, places, split.learned_fold)
    return Fit(proposal, parts, len(few.rows), density)


# -- stage 4: leave out ------------------------------------------------------------------------------------------------


def leave_out(fits: Sequence[Fit], split: Split, whole: Training, tell) -> list[Fit]:
    """Return the fits with the log densities of the rows held out, which leave the sums; views leave out a fold."""
    shape = len(split.held), split.held.data.classes
    summed = [
        replace(fit, density=[np.zeros((len(fitted.members), *shape)) for fitted in fit.parts])
        for fit in fits
        if fit.density is None
    ]
    views, together = [fit for fit in summed if fit.proposal.family.folds], Together()
    for predicted, others, seed in split.folds() if views else ():
        next(tell)
        training = whole.on(others, seed)
        for fit in views:
            family, groups = fit.proposal
            again = family.fit(groups, training) if len(others) < len(split.sample) else fit.parts
            _write_left_out(fit, split, predicted, again, together)
    for fit in summed:
        if not fit.proposal.family.folds:
            _write_left_out(fit, split, np.ones(len(split.held), bool), fit.parts, together)
    together.finish()
    return summed + [fit for fit in fits if fit.density is not None]


def _write_left_out(fit: Fit, split: Split, predicted, parts, together: Together) -> None:
    held = split.leaving(fit.proposal.family).take(predicted)
    for fitted, density in zip(parts, fit.density or (), strict=True):
        fitted.leave_out(held, adding(density, np.flatnonzero(predicted)), together)


# -- stage 5: weigh ----------------------------------------------------------------------------------------------------


def weigh(fits: Sequence[Fit], split: Split, leaves: ColumnModels | None, concentration, method):
    """Choose exponents and weights; return the average, its scores, and what `_left_out` returns."""
    data, parts = split.held.data, tuple(chain.from_iterable(fit.parts for fit in fits))
    roster = Roster.of(parts, leaves)
    density, predicted = _left_out(fits, split, roster, leaves, concentration)
    leaves = leaves if leaves is None or data.e is None else leaves.settled()
    nothing = np.zeros(len(roster.members))
    average = Average(parts, data.count, concentration, nothing, nothing, nothing, leaves=leaves)
    average, scores = choose(average, predicted, (data.x.shape[1], data.c.shape[1]), method)
    return average.with_spread(predicted.told), scores, (density, predicted)


def _left_out(fits: Sequence[Fit], split: Split, roster: Roster, leaves: ColumnModels | None, concentration):
    """Return densities of the rows held out under the members of the parts and the leaves, and under all members."""
    held, data = split.held, split.held.data
    log_prior = split.even.log_class_prior(concentration)
    told_prior = _told_prior(split, concentration)
    found = [pair for fit in fits for pair in zip(fit.parts, fit.density or (), strict=True)]

    def density_of(fitted):
        return next(density for each, density in found if each is fitted)

    leaf = None if leaves is None or data.e is None else leaves.loo_log_density(held)
    density = roster.combined((len(held), data.classes), density_of, leaf)
    every = [*chain.from_iterable(density for _, density in found), *([] if leaf is None else [leaf])]
    return every, LeftOut(density, log_prior, held.rows, split.scored, roster.least, told_prior, not split.drawn)


def _told_prior(split: Split, concentration) -> np.ndarray | None:
    """Return the log class probabilities under which scores are told, (n, K); None where they are those of the choices.

    "Which class probabilities a score is told under" in `docs/mathematics/averaged.md` says why.
    """
    alone = split.even is split.held
    if alone == split.drawn:
        return None
    if split.drawn:
        return split.held.log_class_prior(concentration)
    count = split.held.data.count + concentration
    return np.tile(np.log(count / count.sum()), (len(split.held), 1))
