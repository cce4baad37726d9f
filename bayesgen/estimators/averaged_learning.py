"""Learning on of the averaged classifier: more rows, rows to forget, decay, and sums of fits.

Members that are sums follow all rows; others stay as they are. Exponents and weights are chosen by rows that were
scored before they were learned ("Learning on" in `docs/mathematics/averaged.md`).
"""

import abc
from dataclasses import replace
from typing import Any, Self

import numpy as np

from bayesgen.averaging.average import Average
from bayesgen.averaging.stream import BESIDE, Stream
from bayesgen.averaging.weights import choose
from bayesgen.core.errors import counted, warn
from bayesgen.core.registry import fitted_of
from bayesgen.core.statistics import Rows as KeptRows
from bayesgen.estimators import averaged_settings
from bayesgen.estimators.additive import Additive
from bayesgen.tables import arrays
from bayesgen.tables.findings import Finding, tell
from bayesgen.tables.learned_rows import LearnedRows
from bayesgen.tables.table import Table

_DUE = 0.2  # of the rows that are known, by Kish's number: so many new ones choose exponents and weights anew
_ERRORS = 2  # by which members that stay may fall behind before it is told
_FEWEST = 10  # rows of a first piece: of fewer, bends, members and weights would be chosen for good by next to nothing
_FAR = 300  # times as far from the middle as all rows of the fit lies a wild entry; see `bayesgen.tables.wild`


class LearnsOn(Additive):
    """An average that learns on after its fit."""

    average_: Average
    stream_: Stream
    scores_: dict[str, Any]
    schema_: Any
    constant_: Any
    members_: list[Any]
    weights: str
    wild: str
    keep_rows: bool

    @abc.abstractmethod
    def _learn(self, learned: LearnedRows) -> list[Finding]:
        """Learn from the rows of a fit."""

    def partial_fit(self, X, y, classes=None, sample_weight=None, groups=None, *, label_weight=None) -> Self:
        """Learn from more rows; the first call is a fit.

        The members with a density are sums, and become what they were from all rows so far under the bends,
        components, columns and fillings of the fit. Trees, regressions and classifiers of your own stay as they are:
        ``summary()`` says as of which row. Before they are learned, the rows are predicted by every member; exponents
        and weights are chosen anew by these and the rows that the fit left out, whenever a fifth of all are new.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing. The first call sets categories and columns that are constant.
        y : array, shape (n,), or array or DataFrame, shape (n, K)
            Class labels, or shares of the classes; see `fit`.
        classes : array, shape (K,), optional
            Every class label there will be; needed at the first call, unless ``fit`` came before.
        sample_weight, groups, label_weight : array, shape (n,), optional
            As in `fit`; all rows of a group come in one piece.

        Raises
        ------
        ValueError
            For a first piece of fewer than 10 rows, for a class or category that is new, and for an entry 300 times as
            far from the middle of its column as all rows of the fit, unless ``wild="keep"``. Nothing is learned then.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bayesgen import AveragedClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = AveragedClassifier(members=["gaussian"]).partial_fit(X[::3], y[::3], classes=[0, 1, 2])
        >>> classifier.partial_fit(X[1::3], y[1::3]).total_weight_
        100.0
        """
        with self._whole():
            if first := not hasattr(self, "average_"):
                averaged_settings.check_settings(self)
            learned, found = self._more_rows(X, y, classes, sample_weight, groups, label_weight, first), []
            if first and len(learned.codes) < _FEWEST:
                raise ValueError(
                    f"the first piece has {len(learned.codes)} rows, and bends and members are chosen by it for good: "
                    f"join it with the next until it has at least {_FEWEST}, better hundreds"
                )
            if first:
                found, self.schema_ = self._learn(learned), self.schema_.of_target(y)
            else:
                self._learn_sums(self._sums() + self._sums_of(learned, scoring=True), self)
        tell(found)
        return self

    def refit(self) -> Self:
        """Fit anew to all rows so far, which ``keep_rows=True`` keeps: bends, components, trees and all else.

        Categories and classes stay those of the first fit.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bayesgen import AveragedClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = AveragedClassifier(members=["gaussian"], keep_rows=True).fit(X[::3], y[::3])
        >>> classifier.partial_fit(X[1::3], y[1::3]).refit().total_weight_
        100.0
        """
        if self._sums().kept is None:
            raise ValueError("refit() needs the rows, which keep_rows=True keeps from the fit on: fit() to all rows")
        with self._whole():
            found = self._learn(self._kept())
        tell(found)
        return self

    def _kept(self) -> LearnedRows:
        data = dict(self.stream_.kept.data)
        codes, weight, group = (data.pop(name) for name in BESIDE)
        weight, group = None if (weight == 1).all() else weight, None if len(set(group)) == len(group) else group
        table = Table(np.zeros((len(codes), 1)))  # whose blocks are read already
        return LearnedRows(table, codes, weight, self.classes_, np.arange(len(codes)), group=group, blocks=data)

    def _sum_rows(self, X, y, sample_weight):
        return self._sums_of(self._more_rows(X, y, None, sample_weight, None, None, False))

    def _sums_of(self, learned: LearnedRows, scoring: bool = False) -> Stream:
        """Return the sums of rows, which are scored if wanted, or raise where they cannot be learned from."""
        stream = self._sums()
        learned, _, counted = averaged_settings.written_out(learned)
        learned = replace(learned, blocks=self.schema_.of_more().read(learned.table))
        rows = averaged_settings.as_members_take(self, learned, counted)
        away = np.abs(rows.x - stream.middle)
        for row, place in np.argwhere(away > _FAR * stream.reach)[:1] if self.wild == "complete" else ():
            raise ValueError(
                f"column {arrays.numbers(self.schema_, self.constant_)[place]!r}: value {rows.x[row, place]:g} in row "
                f"{np.asarray(learned.places)[row]} is {away[row, place] / stream.reach[place]:.0f} times as far from "
                "the middle as all rows of the fit: mend it, leave the row out, or keep such entries by wild='keep'"
            )
        row, code, votes = learned.stacked()
        sums = stream.of_rows(self.average_, replace(rows.take(row, votes), codes=code), scoring)
        return replace(sums, kept=kept(learned) if self.keep_rows else None)

    def _learn_sums(self, sums, like) -> None:
        """Learn from sums; choose exponents and weights anew where rows left, fits were merged, or many rows came."""
        vars(self).update({name: value for name, value in vars(like).items() if name[-1] == "_" != name[0]})
        if len(sums.kept or ()) < len(like.stream_.kept or ()):  # where rows are kept, nothing knows those that left
            self.stream_ = sums
            self._learn(self._kept())
            return
        fewer = 0 < len(sums.scored) < len(like.stream_.scored) or self is not like
        model = self.average_.leaves and averaged_settings.leaf_models(self)
        average, scores, behind = sums.learned(self.average_, model), {}, False
        known = average.class_weight.sum() ** 2 / sums.squares.sum()
        if fewer or self.weights == "evidence" or sums.waiting >= _DUE * known:
            behind = not sums.told and sums.behind(average) > _ERRORS  # said once: later, each time that rows double
            average, scores = choose(average, sums.scored.left_out(average), sums.columns, self.weights)
            sums = replace(sums, waiting=0)
        stays, first, rows = sums.stays(average), sums.scored.first, sums.scored.rows
        names = [*dict.fromkeys(m.family for m, flag in zip(self.members_, stays, strict=True) if flag)]
        if names and rows >= 2 * max(first, sums.told):
            why = f"{rows} rows came by now"
        else:
            why = "on rows that came later they gain less beside the others, by more than two errors" * behind
        if why:
            sums = replace(sums, told=rows)
            cure = "refit() renews" if self.keep_rows else "a fit to all rows, or to the latest, renews"
            warn(f"members {', '.join(names)} are as of the first {first} rows, and {why}: {cure} them")
        self.average_, self.scores_ = average, self.scores_ | scores | {"as of": np.where(stays, first, rows)}
        self.stream_, self.schema_ = sums, self.schema_.of_more()

    def _tell_forgotten(self, remaining, strict):
        """Name what was learned from rows of the fit and is no sum."""
        names = {"bends": self.average_.bend is not None and (self.average_.bend.power != 1).any()}
        names |= {"components": any("components" in member.family for member in self.members_)}
        names |= {m.family: stays for m, stays in zip(self.members_, remaining.stays(self.average_), strict=True)}
        knowing = ", ".join(name for name, knows in names.items() if knows)
        early = len(remaining.since) - len(self.stream_.since)
        if early and knowing and not self.keep_rows:
            text = f"{counted(early, 'row')} may be of the fit, which {knowing} still know"
            if strict:
                raise ValueError(f"{text}: fit anew the rows that stay")
            warn(f"{text}: where nothing may, fit anew the rows that stay")

    @property
    def total_weight_(self) -> float:
        return float(self.fitted_.average_.class_weight.sum())

    def _sums(self):
        fitted_of(self)  # or raise
        if "stream_" not in vars(self):
            raise ValueError("this average was saved before averages learned on: fit it anew, then it does")
        return self.stream_

    def _signed(self):
        leaves = {} if self.average_.leaves is None else self.average_.leaves.model.leaves
        return {name for name, leaf in leaves.items() if leaf.density_kind == "density"}

    def _check_columns(self, other) -> None:
        if not np.array_equal(self.stream_.scored.key, other.stream_.scored.key):
            raise ValueError(
                "these averages were fitted apart, and their bends, members and levels differ: let each learn on from "
                "a copy of one fit, by copy.deepcopy or a file of it, or fit one to the rows of both"
            )


def kept(learned: LearnedRows) -> KeptRows:
    """Return the rows by block, with class, weight and group, as a file can hold them."""
    n = len(learned.codes)
    weight = np.ones(n) if learned.weight is None else learned.weight
    group = np.arange(n) if learned.group is None else learned.group
    beside = dict(zip(BESIDE, (learned.codes, weight, group), strict=True))
    return KeptRows({name: arrays.made_dense(block) for name, block in learned.blocks.items()} | beside)
