r"""Keep what an average needs beside its members to learn on: their sums, and scored rows.

The sums of members add and subtract under the bends, fillings, components, columns and levels of the fit; trees,
regressions and all else that is no sum stays as it is ("Learning on" in `docs/mathematics/averaged.md`).
"""

import operator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesgen.averaging.average import Average
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.scored import Scored
from bayesgen.core.shapes import shaped
from bayesgen.core.statistics import Statistics, SumStatistics
from bayesgen.models.class_program import ClassStatistics
from bayesgen.numerics.special import log_mixture

BESIDE = "of class", "of weight", "of group"  # what is kept of rows beside their blocks
_FEW = 5000  # rows that the middle of a column is learned from


@dataclass(frozen=True, eq=False)
class Stream(Statistics):
    """Sums of rows under the members of an average, the rows that are scored, and where the numbers of the fit lie."""

    rows: ClassStatistics  # of the rows by class, with the columns that have leaves of their own
    parts: tuple[tuple[Statistics, ...], ...]  # of each part of the average; () where it stays as it is
    scored: Scored
    # the middle of each number in the fit, and the largest distance from it
    middle: np.ndarray = field(metadata=shaped("columns"))
    reach: np.ndarray = field(metadata=shaped("columns", least=0))
    columns: tuple[int, int]  # how many numbers and categories there are
    # the sums of the fit, which those that learn on from copies of it have in common; None in sums of other rows
    base: Any = None
    kept: Any = None  # the rows themselves, as a file can hold them, or None
    begun: int = 0  # how many of these are of the fit
    waiting: int = 0  # rows that came since exponents and weights were chosen
    told: int = 0  # rows when it was told that members stay behind
    # marks of the first piece since the fit, of forgotten rows of the fit, and -1 of a decay: a sum may count it twice
    since: Any = field(default_factory=lambda: np.empty(0, np.int64), metadata=shaped("changes", "i"))

    @property
    def keeps_rows(self) -> bool:  # type: ignore[override]  # where the user wants it
        """True if it holds the rows."""
        return self.kept is not None

    @property
    def squares(self) -> np.ndarray:
        """Sum of the squared weights of each class, (K,)."""
        return self.rows.squares

    @classmethod
    def begin(cls, average: Average, adding, scored: Scored, rows: Rows) -> "Stream":
        """Return the sums of a fit to rows, of the parts that are ``adding`` (P,), beside those that it left out."""
        parts = tuple(part.kept if adds else () for part, adds in zip(average.parts, adding, strict=True))
        middle = np.nanmedian(rows.x[:: max(1, len(rows) // _FEW)], axis=0) if rows.x.size else rows.x.sum(0)
        reach = np.fmax.reduce(np.abs(rows.x - middle), 0, initial=0.0)
        columns = rows.x.shape[1], rows.c.shape[1]
        start = cls(_by_class(average, rows), parts, scored.latest(), middle, reach, columns)
        return replace(start, base=replace(start, scored=scored.take(slice(0)), since=None))

    def of_rows(self, average: Average, rows: Rows, scoring: bool = False) -> "Stream":
        """Return the sums of other rows, which are scored by the average if wanted."""
        parts = tuple(p.sum_more(rows) if sums else () for p, sums in zip(average.parts, self.parts, strict=True))
        scored, more = self.scored.of_more(average, rows, scoring), replace(self, base=None, begun=0, waiting=len(rows))
        since = scored.digest.sum(keepdims=True)
        return replace(more, rows=_by_class(average, rows), parts=parts, scored=scored, since=since)

    def __add__(self, other):
        more, group = None, BESIDE[2]
        if self.kept is not None:  # groups of two pieces are others, whatever their codes
            later = other.kept.take(slice(other.begun, None))
            codes = later.data[group] + 1 + self.kept.data[group].max()
            more = self.kept + replace(later, data=later.data | {group: codes})
        scored, waiting = (self.scored + other.scored).latest(), self.waiting + other.waiting
        total = replace(self._each(operator.add, other, self.rows + other.rows), scored=scored, waiting=waiting)
        if (base := other.base) is None:
            return replace(total, kept=more, since=self.since if len(self.since) else other.since)
        if len(np.intersect1d(self.since, other.since)):
            raise ValueError(
                "both averages decayed, forgot one row of the fit, or first learned one piece since the fit, and "
                "it would count twice: copy the fit before it learns on, and forget or decay when all are merged"
            )
        total = replace(total, kept=more, since=np.union1d(self.since, other.since))
        return total._each(operator.sub, base, total.rows - base.rows)

    def without(self, gone, signed=()):
        scored, early = self.scored.without(gone.scored)
        rows = self.rows.without(gone.rows, signed)
        kept = None if self.kept is None else self.kept.less(gone.kept, BESIDE[1:])
        less = replace(self, scored=scored, kept=kept, since=np.append(self.since, early))
        return less._each(lambda mine, theirs: mine.without(theirs), gone, rows)

    def scaled(self, factor):
        scored = replace(self.scored, weight=self.scored.weight * factor, share=self.scored.share * factor)
        kept, name = self.kept, BESIDE[1]
        kept = kept and replace(kept, data=kept.data | {name: factor * kept.data[name]})
        less = replace(self, scored=scored, kept=kept, since=np.union1d(self.since, [-1]))
        return less._each(lambda mine, _: mine.scaled(factor), self, self.rows.scaled(factor))

    def _each(self, change, other, rows) -> "Stream":
        parts = tuple(tuple(map(change, a, b)) for a, b in zip(self.parts, other.parts, strict=True))
        return replace(self, rows=rows, parts=parts)

    def learned(self, average: Average, model) -> Average:
        """Return the average of these sums; the leaves of ``model`` have weak priors that follow them."""
        parts = tuple(p.of_sums(sums) if sums else p for p, sums in zip(average.parts, self.parts, strict=True))
        leaves = average.leaves and replace(average.leaves, model=model, statistics=self.rows).settled()
        return replace(average, parts=parts, class_weight=self.rows.classes.sums, leaves=leaves)

    def stays(self, average: Average) -> np.ndarray:
        """Return True for each member with a factor that stays as it is, (M,)."""
        pairs = zip(average.parts, self.parts, strict=True)
        of = {id(part): part.stays if sums else np.ones(len(part.members), bool) for part, sums in pairs}
        slots = average.roster.slots
        return np.any([slot.of_members([of[id(part)] for part in slot.parts], False) for slot in slots], axis=0)

    def behind(self, average: Average) -> float:
        """Return by how many errors the members that stay gain less beside the others than on rows of the fit."""
        scored, stays = self.scored.take(np.argsort(self.scored.digest, kind="stable")), self.stays(average)
        log_q, late = scored.left_out(average).log_q(average.exponents), scored.place >= scored.first
        weights = [np.where(stays == flag, average.weights, 0.0) for flag in (True, False)]
        if not all(weight.any() for weight in weights) or min(late.sum(), (~late).sum()) < 2:
            return 0.0
        gain = np.subtract(*(log_mixture(log_q, weight / weight.sum()) for weight in weights))
        parts = gain[~late], gain[late]
        error = np.sqrt(sum(part.var(ddof=1) / len(part) for part in parts))
        return float((parts[0].mean() - parts[1].mean()) / max(error, 1e-12))


def _by_class(average: Average, rows: Rows) -> ClassStatistics:
    leaves = average.leaves and average.leaves.of_rows(rows.e, rows.codes, rows.weight).statistics
    squares = rows.count if rows.counted else np.bincount(rows.codes, rows.weight**2, rows.classes)
    return ClassStatistics(SumStatistics(rows.count, np.float64(0)), leaves.leaves if leaves else {}, squares)
