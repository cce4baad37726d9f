r"""Choices that rows left out make: exponents (`tempering`), and weights of the members by stacking.

The weights are those of "Stacking" and "Three priors" in `docs/mathematics/averaged.md`, at the maximum F(w) of
`bayesgen.numerics.stacking` under each of `PRIORS`. (Yao, Vehtari, Simpson and Gelman 2018, *Bayesian Analysis* 13:
when no model is true, stacking beats averaging by evidence.)
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

from bayesgen.averaging.average import Average
from bayesgen.averaging.member import CATEGORIES, NOTHING, NUMBERS
from bayesgen.averaging.member_rows import Rows
from bayesgen.numerics import folds, tempering
from bayesgen.numerics.pieces import one_blas_thread, pieces, taken
from bayesgen.numerics.special import log_mixture
from bayesgen.numerics.stacking import stack
from bayesgen.numerics.sums import by_label

_FOLDS = 5  # by which exponents and weights are scored on rows that did not choose them
_TINY = 1e-300  # a probability below counts as this
_TRUSTED = 1.5  # log odds that the average is better than the base rate, before any row is seen
# strength of each prior of the weights, by `strength`; share of outside members in it
PRIORS = (1.0, 0.1), (4.0, 0.3), (16.0, 0.6)


@dataclass(frozen=True)
class LeftOut:
    """Densities of the rows left out under every member."""

    density: np.ndarray  # (M, n, K): log p(x_i | k) without row i
    log_prior: np.ndarray  # (n, K): log of the class probabilities without row i, and without all that leaves with it
    rows: Rows  # the rows
    weight: np.ndarray  # (n,): weight of each row in the score
    least: np.ndarray  # (M,): the s of each member; see `tempering.log_probability`
    # (n, K), or None: the same as ``log_prior`` for the scores that are told; None if it is that. Where classes were
    # drawn with the rows it lacks row i alone, whose class new rows have as often: a row that leaves with one of every
    # other class makes its own no rarer, and its score is too good by (K - 1)/n (`docs/mathematics/averaged.md`). Where
    # they were chosen, it lacks no row.
    told_prior: np.ndarray | None = None
    chosen: bool = False  # True if as many rows of each class were taken as were wanted: drawing them adds no error
    late: Any = field(default_factory=lambda: slice(None))  # places of the rows whose score is told

    @property
    def told(self) -> "LeftOut":
        """The same under the class probabilities that scores are told by."""
        return self if self.told_prior is None else replace(self, log_prior=self.told_prior, told_prior=None)

    @property
    def last(self) -> "LeftOut":
        """The rows whose score is told."""
        return self.told.take(self.late)

    @property
    def codes(self) -> np.ndarray:
        """Class of each row."""
        return self.rows.codes

    @property
    def share(self) -> np.ndarray:
        """Weights of the rows that sum to 1."""
        return self.weight / self.weight.sum()

    @property
    def count(self) -> float:
        """The number of independent rows that these are worth."""
        return folds.effective(self.rows.weight if self.rows.group is None else self.weight, self.rows.group)

    def take(self, places) -> "LeftOut":
        """Return some of the rows."""
        arrays = {name: taken(getattr(self, name), places) for name in ("log_prior", "weight", "told_prior")}
        density, rows = self.density[:, places], self.rows.take(places)
        return replace(self, density=density, rows=rows, late=slice(None), **arrays)

    def log_q(self, exponents) -> np.ndarray:
        """Return the log probability of the class of each row under every member, (M, n)."""
        result, rows = np.empty(self.density.shape[:2]), np.arange(len(self.codes))
        for members in pieces(len(result), self.log_prior.size, tempering.CELLS):
            density = self.density[members].swapaxes(1, 2).copy()
            log_q = tempering.log_probability(density, self.log_prior.T, exponents[members], self.least[members])
            result[members] = log_q[:, self.codes, rows]
        return result

    def average(self, exponents, weights) -> np.ndarray:
        """Return the average over the members, (n, K)."""
        used = weights > 0
        of_members = exponents[used], weights[used], self.least[used]
        return tempering.mixture(self.density[used].swapaxes(1, 2), self.log_prior.T, *of_members).T

    def log_sharpened(self, probability, sharpening: float) -> np.ndarray:
        """Return log probabilities of the classes, (n, K), when probabilities (n, K) are sharpened."""
        result = tempering.sharpened(probability, np.exp(self.log_prior), sharpening)
        return np.log(np.maximum(result, _TINY)) - np.log(result.sum(1, keepdims=True))

    def log_score(self, probability, sharpening: float) -> np.ndarray:
        """Return the log probability of the class of each row, (n,), when probabilities (n, K) are sharpened."""
        return self.of_class(self.log_sharpened(probability, sharpening))

    def standard_error(self, log_probability) -> float:
        r"""Return the standard error of the mean log score of the rows, under log probabilities (n, K) by other rows.

        It is that of Nadeau and Bengio (2003, *Machine Learning* 52, equation 8), with the variance of the scores or
        the one that the probabilities expect, and strata where classes were chosen (`docs/mathematics/averaged.md`).
        """
        probability, share, count = np.exp(log_probability), self.share, self.count
        score, group, classes = self.of_class(log_probability), self.rows.group, probability.shape[1]
        stratum, strata = (self.codes, classes) if self.chosen else (np.zeros(len(score), np.intp), 1)
        of_stratum = np.bincount(stratum, share, strata)
        mean = np.bincount(stratum, share * score, strata) / np.where(of_stratum > 0, of_stratum, 1.0)
        apart = share * (score - mean[stratum])
        each = self.rows.weight * (count / self.rows.weight.sum())  # rows that each row is worth
        found = (each * apart**2 / share if group is None else count * by_label(group, apart) ** 2).sum()
        zero, one, square = (share @ (probability * log_probability**power) for power in (0, 1, 2))
        zero, one = (zero, one) if self.chosen else (zero.sum(), one.sum())
        expected = square.sum() - (one**2 / np.maximum(zero, _TINY)).sum()
        variance = max(found / max(count - strata, 1), expected / max(count - 1, 1))
        return float(np.sqrt((1 + _FOLDS / (_FOLDS - 1)) * variance))

    def of_class(self, values) -> np.ndarray:
        """Return the entries of values (..., n, K) at the class of each row, (..., n)."""
        return values[..., np.arange(len(self.codes)), self.codes]


class Choice(NamedTuple):
    """Choices that rows left out make."""

    exponents: np.ndarray  # (M,)
    weights: np.ndarray  # (M,)
    density_weights: np.ndarray  # (M,)
    sharpening: float
    nested: float  # mean log score of rows under exponents and weights that other rows chose
    error: float  # its standard error


@one_blas_thread()
@np.errstate(under="ignore")
def choose(average: Average, predicted: LeftOut, columns: tuple[int, int], method: str) -> tuple[Average, dict]:
    """Return the average under exponents and weights that rows choose, of so many numbers and categories; and scores.

    Weights come by ``method``, "stacking" or "evidence". The scores are those of `AveragedClassifier.scores_`.
    """
    roster, leaves = average.roster, average.leaves
    members, priors = roster.members, np.array([prior_mass(roster.members, share) for _, share in PRIORS])
    dense = roster.dense([block for block, count in zip((NUMBERS, CATEGORIES), columns, strict=True) if count])
    if method == "evidence":
        choice = by_evidence(predicted, roster.log_evidence(dense) + np.log(priors[0]))
    else:
        width = sum(columns) + (0 if leaves is None else leaves.width)
        mode = np.array([member.expected_exponent(width, predicted.count) for member in members])
        choice = by_stacking(predicted, priors, mode, members.index(NOTHING), dense)
    names = "exponents", "weights", "density_weights", "sharpening"
    chosen, last = replace(average, **dict(zip(names, choice, strict=False))), predicted.last
    scores = {
        "members": last.log_q(choice.exponents) @ last.share,
        "average": float(last.log_score(last.average(*choice[:2]), choice.sharpening) @ last.share),
        "nested": choice.nested,
        "nested_error": choice.error,
        "base_rate": float(last.of_class(last.log_prior) @ last.share),
        "rows": len(last.codes),
        "classes": "chosen" if predicted.chosen else "drawn",
    }
    return chosen.with_looseness(predicted.told, method == "stacking"), scores


def by_evidence(predicted: LeftOut, log_weight) -> Choice:
    """Weigh members, untempered, by their evidences times the prior."""
    if not np.isfinite(log_weight).any():
        raise ValueError("weights='evidence' needs members that have an evidence: give members='generative'")
    exponents, weights = np.ones(len(log_weight)), np.exp(log_weight - logsumexp(log_weight))
    predicted = predicted.last
    nested = float(log_mixture(predicted.log_q(exponents), weights) @ predicted.share)
    error = predicted.standard_error(predicted.log_sharpened(predicted.average(exponents, weights), 1.0))
    return Choice(exponents, weights, weights, 1.0, nested, error)


def by_stacking(predicted: LeftOut, priors, mode, nothing: int, dense) -> Choice:
    """Stack the tempered members, and those that are ``dense`` (M,) by their densities of classes and rows.

    ``priors`` (P, M) are the shares of each member in each prior of the weights, ``mode`` (M,) the exponents to expect,
    and ``nothing`` is the place of the base rate.
    """
    exponents, weights = _choose(predicted, priors, mode)
    joint = predicted.of_class(predicted.density[dense]) + predicted.of_class(predicted.log_prior)
    density_weights = np.zeros(len(mode))
    if dense.any():
        density_prior = priors[0, dense] * strength(predicted.count)
        density_weights[dense] = stack(joint, predicted.weight, density_prior)
    (odds, unseen, told), share = _nested(predicted, priors, mode, (exponents, weights)), predicted.share
    base = float(predicted.of_class(predicted.log_prior) @ share)
    gain = float(predicted.log_score(unseen, 1.0) @ share) - base
    weights = gated(odds @ weights, nothing, predicted.count * gain)
    sharpening = tempering.sharpening(unseen, predicted.log_prior, predicted.codes, predicted.count * share)
    last = predicted.last
    scores = last.log_sharpened(told[predicted.late], sharpening)
    nested = float(last.of_class(scores) @ last.share)
    return Choice(exponents, weights, density_weights, sharpening, nested, last.standard_error(scores))


def _choose(predicted: LeftOut, priors, mode, near=None, heavy=None):
    """Choose exponents (M,) and weights (P, M), beginning at ``near`` and ``heavy`` where given."""
    codes, weight = predicted.codes, predicted.weight
    exponents = tempering.exponents(predicted.density, predicted.log_prior, codes, weight, mode, near)
    log_q, rows = predicted.log_q(exponents), strength(predicted.count)
    start = [None] * len(priors) if heavy is None else heavy
    every = zip(PRIORS, priors, start, strict=True)
    return exponents, np.array([stack(log_q, weight, times * rows * prior, near) for (times, _), prior, near in every])


def _nested(predicted: LeftOut, priors, mode, start) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the odds of the priors, (P,), and the average of rows (n, K) under all that others chose, and as told.

    Exponents and weights are chosen by four of five folds; a prior has the odds e^score of the rows of these folds.
    """
    fold = predicted.rows.folds(_FOLDS)
    ways = 1 if predicted.told_prior is None else 2
    unseen = np.empty((ways, len(priors), *predicted.log_prior.shape))
    scores = np.zeros((len(priors), fold.max() + 1))
    for j in np.unique(fold):
        inside = fold == j
        others = predicted.take(inside if inside.all() else ~inside)
        exponents, weights = _choose(others, priors, mode, *start)
        these = predicted.take(inside)
        for found, rows in zip(unseen, (these, these.told), strict=False):
            found[:, inside] = [rows.average(exponents, weights_of_prior) for weights_of_prior in weights]
        score = np.log(np.maximum(these.of_class(unseen[0][:, inside]), _TINY))
        scores[:, j] = score @ predicted.share[inside] * predicted.count
    others = softmax(scores.sum(1, keepdims=True) - scores, axis=0)
    averages = [np.einsum("pi,pik->ik", others[:, fold], found) for found in unseen]
    return softmax(scores.sum(1)), averages[0], averages[-1]


def prior_mass(members, share: float) -> np.ndarray:
    """Return the shares a_m of the prior, (M,): in proportion to the mass of each family, and even within it.

    Outside members have the ``share`` together. Where a flexible member is right in all folds of few rows, scores
    cannot tell that it is wrong elsewhere: in 40 rows of mushrooms it took all of the weight, and cost .9.
    """
    families = [member.family for member in members]
    _, first, place, count = np.unique(families, return_index=True, return_inverse=True, return_counts=True)
    mass, outside = np.array([members[i].mass for i in first]), np.array([members[i].outside for i in first])
    share = share if outside.any() else 0.0
    for group, total in ((outside, share), (~outside, 1 - share)):
        mass[group] *= total / mass[group].sum() if group.any() else 1.0
    return (mass / mass.sum() / count)[place]


def strength(rows: float) -> float:
    """Return c, the number of rows that the weakest prior of the weights is worth."""
    return max(1.0, 50 / rows)


def gated(weights, alone: int, gain: float) -> np.ndarray:
    """Return weights (M,) that trust the average by the score it gained on rows that did not choose its weights.

    The average keeps the share σ(gain + 1.5), as `docs/mathematics/averaged.md` derives. The base rate, ``alone`` at
    its place, gets what the others lose; the gain is a log score summed over independent rows.
    """
    trust = expit(gain + _TRUSTED)
    result = trust * weights
    result[alone] += 1 - trust
    return result
