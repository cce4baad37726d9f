r"""A watch over the rows that a classifier in use gets, with a stated rate of false alarms.

Each part of a row is one number: the value of a column, or the code of its category; 1 or 0 for a gap; the code of a
label; and where a classifier is asked, log p(y | x) of the label, the probability of a class, the log density log p(x).
Each part is ranked among all that came before, and M_j bets against the ranks (`bayesgen.numerics.betting`). Where rows
come in random order M_j is a martingale. Of m parts that share the level α, each alarms at

.. math:: M_j \ge \frac{m}{\alpha}, \qquad P(\text{any alarm, ever}) \le \sum_{j=1}^m \frac{\alpha}{m} = \alpha

by Ville's inequality and the union bound. Martingales of several columns have several pasts, and their mean is none
(arXiv 2402.09698): each alarms by itself. A missing value is left out of its part, since rows that have one are in
random order too, whatever decides that it is there. What the classifier says is ranked among rows that it did not learn
from.
"""

import copy
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import counted, listed, quoted
from bayesgen.core.registry import saveable
from bayesgen.files import storage
from bayesgen.inspection.leave_one_out import leave_one_out
from bayesgen.numerics.betting import Bets, Ranks
from bayesgen.numerics.checks import check_count, check_level
from bayesgen.numerics.draws import generator
from bayesgen.tables.columns import check_present
from bayesgen.tables.labels import unwrapped
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import Table

_ALONE, _ASKED = ("values", "gaps", "labels"), ("score", "shares", "density")
KINDS = (*_ALONE, *_ASKED)
_BLOCK, _POINTS = 256, 512  # rows taken at a time; points of the series at most


@saveable
@dataclass(frozen=True)
class Part:
    """A part of a row that is watched by itself."""

    kind: str  # one of KINDS
    of: str = ""  # column, or class of a share
    codes: tuple | None = None  # what codes stand for, the next one for anything new; None where the part is a number

    @property
    def name(self) -> str:
        """Return the name of the part, such as "gaps of age"."""
        return f"{self.kind} of {quoted(self.of)}" if self.of else self.kind


@saveable
@dataclass(frozen=True)
class Alarm:
    """A part that no longer comes in random order.

    Attributes
    ----------
    part : str
        Name of the part, as in the columns of `Watch.evidence`.
    row : int
        Row of the stream, counted from 0, at which the evidence was enough.
    since : int
        Row since which it seems so: an estimate, at the lowest evidence before the alarm.
    text : str
        Sentence that says so.
    """

    part: str
    row: int
    since: int
    text: str


class Watch:
    """Watch over rows that come one after the other: in ``level`` of all streams without a change it alarms, at most.

    The promise holds for rows in random order (exchangeable), those of `from_rows` among them, up to the first alarm.
    Where the order carries something, such as a season or a patient's rows that follow each other, an alarm tells it.
    After an alarm the watch stays in alarm until `restart`, which spends the level again. It keeps, and saves, counts
    of values: these are data of people.

    Parameters
    ----------
    classifier : fitted classifier
        What knows the columns and classes, and is asked about each row.
    parts : collection of str, optional
        What to watch: "values", "gaps", "labels", and what the classifier says: "score" (log probability of the label),
        "shares" (probabilities of the classes), "density". Default: all that there are; each part has the same share of
        the level.
    level : float, default 0.05
        Probability at most that there is ever an alarm without a change.
    distinct : int, default 4096
        Distinct values of a part that are kept at most: where more come, all lose binary digits.
    random_state : int, Generator, RandomState or None, default 0
        Seed of the order of ties.

    Attributes
    ----------
    alarms : list of Alarm
        The first alarm of each part.
    rows : int
        Number of rows that came.
    spent : float
        Probability at most of a false alarm so far, over all restarts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> known = pd.DataFrame({"creatinine": rng.normal(size=200), "age": rng.normal(60, 9, size=200)})
    >>> watch = Watch.from_rows(known)
    >>> watch.update(pd.DataFrame({"creatinine": rng.normal(size=100), "age": rng.normal(60, 9, size=100)}))
    []
    >>> later = pd.DataFrame({"creatinine": 1.5 + rng.normal(size=100), "age": rng.normal(60, 9, size=100)})
    >>> print(watch.update(later)[0].text)
    since about row 104 'creatinine' is higher than before
    """

    def __init__(
        self,
        classifier,
        *,
        parts: Collection[str] | None = None,
        level: float = 0.05,
        distinct: int = 4096,
        random_state=0,
    ):
        check_is_fitted(classifier)
        self._begin(classifier, classifier.schema_, getattr(classifier, "classes_", ()), parts, level, distinct)
        self._rng = _for_ties(random_state)
        self._start([np.empty(0)] * len(self.parts))

    @classmethod
    def from_rows(
        cls,
        X,
        y=None,
        classifier=None,
        *,
        left_out: bool = False,
        parts: Collection[str] | None = None,
        level: float = 0.05,
        distinct: int = 4096,
        random_state=0,
    ) -> "Watch":
        """Return a watch that knows some rows already, among which those of the stream are ranked.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Known rows, in any order.
        y : array, shape (n,), optional
            Their labels.
        classifier : fitted classifier, optional
            What is asked about all rows, and has not learned from X; without one columns and labels are watched.
        left_out : bool, default False
            True if X and y are the rows of the classifier's fit, by exact inference. What it says is then watched only
            where ``parts`` names it: ranked among its predictions of each row from all others, without a promise.
        parts, level, distinct, random_state
            As for `Watch`.
        """
        if left_out and parts is None:
            parts = _ALONE
        if classifier is not None:
            watch = cls(classifier, parts=parts, level=level, distinct=distinct, random_state=random_state)
        else:
            watch, labels = object.__new__(cls), np.asarray(unwrapped([] if y is None else y))
            classes = np.unique(labels[~pd.isna(labels)])
            watch._begin(None, Schema.learn(Table(X), "auto"), classes, parts, level, distinct)
            watch._rng = _for_ties(random_state)
        watch._start(watch._numbers(X, y, left_out).T)
        return watch

    def _begin(self, classifier, schema, classes, kinds, level, distinct) -> None:
        check_level("level", level)
        check_count("distinct", distinct)
        if unknown := [kind for kind in kinds or () if kind not in KINDS]:
            raise ValueError(f"parts must be among {list(KINDS)}, got {listed(unknown)}")
        self.classifier: Any = None
        self._key: str | None = None
        if classifier is not None:
            self._ask(classifier)
            self._key = storage.fingerprint(classifier)
        self.schema, self.classes = schema, np.asarray(classes)
        self.level, self.distinct, self.rows, self.spent = float(level), int(distinct), 0, float(level)
        self.parts = tuple(part for part in self._possible() if part.kind in (KINDS if kinds is None else kinds))
        if not self.parts:
            raise ValueError(f"parts={list(kinds or ())}: there is nothing to watch of these without a classifier")

    def _ask(self, classifier) -> None:
        """Keep a classifier to ask, which takes new categories as missing: the values of the column tell of these."""
        self.classifier = copy.copy(classifier)
        if hasattr(classifier, "unseen"):
            self.classifier.set_params(unseen="missing")

    def _possible(self):
        """Yield the parts that there are."""
        for block in self.schema.blocks:
            for column in block.columns:
                if block.categories is not None:
                    yield Part("values", column, tuple(block.categories))
                elif block.kinds[column] != "O":
                    yield Part("values", column)
                yield Part("gaps", column, ("there", "missing"))
        if len(self.classes):
            names = tuple(self.classes.tolist())
            yield Part("labels", codes=names)
            if self.classifier is not None:
                yield Part("score")
                yield from (Part("shares", str(k)) for k in (names[1:] if len(names) == 2 else names))
        if hasattr(self.classifier, "score_samples"):
            yield Part("density")

    def _numbers(self, X, y, left_out: bool = False) -> np.ndarray:
        """Return the number of each part of each row, (n, parts), NaN where there is none."""
        table = Table(X)
        if table.sparse:
            raise TypeError("X is sparse, where a gap cannot be told from a 0: give X.toarray()")
        if table.names is not None:
            watched = dict.fromkeys(part.of for part in self.parts if part.kind in ("values", "gaps"))
            check_present(list(watched), table.columns)
        table = table.renamed(self.schema.columns if table.names is None else table.columns, self.schema.reading)
        codes = self._codes(y, len(table))
        said = self._said(X, y, codes, left_out)
        result = np.empty((len(table), len(self.parts)))
        for j, part in enumerate(self.parts):
            if part.name in said:
                result[:, j] = said[part.name]
            elif part.kind == "labels":
                result[:, j] = codes
            elif part.kind == "gaps":
                result[:, j] = pd.isna(table.labels(part.of))
            elif part.codes is None:
                result[:, j] = np.asarray(table.numbers((part.of,))).reshape(len(table))
            else:
                code, lost = table.codes((part.of,), part.codes, {})[:, 0], pd.isna(table.labels(part.of))
                result[:, j] = np.where(np.isnan(code) & ~lost, len(part.codes), code)  # a category that is new
            if np.isinf(result[:, j]).any() and part.kind == "values":
                raise ValueError(f"column {part.of!r} holds an infinite value; give NaN where it is missing")
        return np.where(np.isinf(result), np.sign(result) * np.finfo(float).max, result)  # a log score of -inf

    def _codes(self, y, n: int) -> np.ndarray:
        """Return the code of each label, (n,): NaN where there is none, and K for a class that is new."""
        if y is None:
            return np.full(n, np.nan)
        y = np.asarray(unwrapped(y), dtype=object)
        if y.shape != (n,):
            raise ValueError(f"y must have shape ({n},), one label a row, or NaN where it is not known; got {y.shape}")
        place = {label: code for code, label in enumerate(self.classes.tolist())}
        return np.array(
            [np.nan if lost else place.get(v, len(place)) for v, lost in zip(y.tolist(), pd.isna(y), strict=True)]
        )

    def _said(self, X, y, codes, left_out: bool) -> dict[str, np.ndarray]:
        """Return what the classifier says of rows, by name of the part: arrays (n,)."""
        kinds = {part.kind for part in self.parts} & set(_ASKED)
        if not kinds:
            return {}
        known = codes < len(self.classes)
        place = np.where(known, codes, 0).astype(np.intp)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*taken as missing, of categories")
            if left_out:
                joint: Any = leave_one_out(self.classifier, X, y).log_joint
            elif "density" in kinds:
                joint = self.classifier.predict_joint_log_proba(X)
            else:
                joint = self.classifier.predict_log_proba(X)
        density: Any = logsumexp(joint, axis=1)
        log_p = joint - density[:, None]
        score = np.where(known, log_p[np.arange(len(log_p)), place], np.nan)
        shares = {Part("shares", str(k)).name: np.exp(column) for k, column in zip(self.classes, log_p.T, strict=True)}
        return {"score": score, "density": density, **shares}

    def _start(self, known) -> None:
        """Begin to bet, with numbers of each part (parts, n) that are known already."""
        known = [v[~np.isnan(v)] for v in known]
        self._ranks = [Ranks.of(v, self.distinct) for v in known]
        self._bets = Bets.start(len(self.parts))
        self._low, self._since = np.zeros(len(self.parts)), np.full(len(self.parts), self.rows)
        self._sums = [self._sum(part, v, np.empty(0)) for part, v in zip(self.parts, known, strict=True)]
        self._sums_at_low = [sums.copy() for sums in self._sums]
        self._series, self._times, self._stride = np.empty((0, len(self.parts))), np.empty(0, np.int64), 1
        self.alarms: list[Alarm] = []

    @staticmethod
    def _sum(part: Part, values, ranks) -> np.ndarray:
        """Return the sums of p and of abs(2p - 1), the number of ranks, and how often each code came."""
        counts = [] if part.codes is None else np.bincount(values.astype(np.intp), minlength=len(part.codes) + 1)
        return np.array([ranks.sum(), np.abs(2 * ranks - 1).sum(), len(ranks), *counts])

    def update(self, X, y=None) -> list[Alarm]:
        """Take up rows that came, in their order; return the alarms that they raise.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            One row or many, with the columns of the fit.
        y : array, shape (n,), optional
            Their labels, NaN or None where one is not known. Where labels come later than their rows, a watch with
            ``parts=["labels", "score"]`` takes both when they are there.
        """
        before, values = len(self.alarms), self._numbers(X, y)
        for start in range(0, len(values), _BLOCK):
            self._take(values[start : start + _BLOCK])
        return self.alarms[before:]

    def _take(self, values) -> None:
        """Take up a block of rows as numbers (n, parts)."""
        live, p = ~np.isnan(values), np.full(values.shape, np.nan)
        ties = self._rng.random(values.shape)
        for j, ranks in enumerate(self._ranks):
            p[live[:, j], j] = ranks.rank(values[live[:, j], j], ties[live[:, j], j])
        path = self._bets.take(p)
        enough = np.log(len(self.parts) / self.level)
        crossed = {alarm.part for alarm in self.alarms}
        for j, part in enumerate(self.parts):
            hit = path[:, j] >= enough
            stop = int(hit.argmax()) if hit.any() else len(path)

            def summed(begin, end, j=j, part=part):
                there = live[begin:end, j]
                return self._sum(part, values[begin:end, j][there], p[begin:end, j][there])

            if part.name not in crossed:
                if stop and path[:stop, j].min() < self._low[j]:
                    place = int(path[:stop, j].argmin())
                    self._low[j], self._since[j] = path[place, j], self.rows + place + 1
                    self._sums_at_low[j] = self._sums[j] + summed(0, place + 1)
                if hit.any():
                    after = self._sums[j] + summed(0, stop + 1) - self._sums_at_low[j]
                    text = f"since about row {self._since[j]} {_words(part, self._sums_at_low[j], after)}"
                    self.alarms.append(Alarm(part.name, self.rows + stop, int(self._since[j]), text))
            self._sums[j] = self._sums[j] + summed(0, len(path))
        self._record(path)
        self.rows += len(path)

    def _record(self, path) -> None:
        """Keep a point of the series every so many rows, half as often whenever there are too many."""
        times = self.rows + np.arange(len(path))
        kept = times % self._stride == 0
        self._times, self._series = np.append(self._times, times[kept]), np.vstack([self._series, path[kept]])
        while len(self._times) > _POINTS:
            self._stride *= 2
            kept = self._times % self._stride == 0
            self._times, self._series = self._times[kept], self._series[kept]

    @property
    def threshold(self) -> float:
        """Return the evidence at which a part alarms, as log10 of its martingale."""
        return float(np.log10(len(self.parts) / self.level))

    @property
    def evidence(self) -> pd.DataFrame:
        """Return log10 of the martingale of each part over the rows, at 512 of them at most and after the last."""
        times, series = np.append(self._times, self.rows - 1), np.vstack([self._series, self._bets.log_capital])
        frame = pd.DataFrame(series / np.log(10), times, [part.name for part in self.parts]).rename_axis("row")
        return frame.loc[~frame.index.duplicated(keep="last")] if self.rows else frame.iloc[:0]

    def restart(self, X=None, y=None) -> None:
        """Forget all rows and alarms, and begin anew among known rows, as in `from_rows`; the level is spent again."""
        self.spent += self.level
        self._start([np.empty(0)] * len(self.parts) if X is None else self._numbers(X, y).T)

    def __repr__(self):
        state = f"in alarm: {'; '.join(alarm.text for alarm in self.alarms)}" if self.alarms else "no alarm"
        return f"Watch({counted(len(self.parts), 'part')}, {counted(self.rows, 'row')}, {state})"

    def save(self, path) -> None:
        """Write the watch with the state of its generator: to load it and go on is to go on.

        The file holds counts of values, which are data of people: it is for its owner only.
        """
        values = {name: value for name, value in vars(self).items() if name not in ("classifier", "_rng")}
        storage.write_state(path, "watch", values | {"generator": self._rng.bit_generator.state})

    @classmethod
    def load(cls, path, classifier=None) -> "Watch":
        """Read a watch that `save` wrote; ``classifier`` is the one that it asks, where it asks one."""
        values, watch = storage.read_state(path, "watch"), object.__new__(cls)
        watch._rng, watch.classifier = np.random.default_rng(), None
        watch._rng.bit_generator.state = values.pop("generator")
        vars(watch).update(values)
        if watch._key is not None:
            if classifier is None or storage.fingerprint(classifier) != watch._key:
                raise ValueError(f"{path}: this watch goes on with the classifier that it began with: give that one")
            watch._ask(classifier)
        return watch


def _for_ties(seed) -> np.random.Generator:
    """Return a generator of a seed that shares no number with the one that rows may have been drawn with."""
    return generator(seed).spawn(1)[0]


def _words(part: Part, before: np.ndarray, since: np.ndarray) -> str:
    """Say what changed in a part, by its sums (see `Watch._sum`) before and since."""
    higher, wider = (since[i] / max(since[2], 1) - 0.5 for i in (0, 1))
    if part.codes is not None:
        shares = [counts[3:] / max(counts[3:].sum(), 1) for counts in (before, since)]
        change = shares[1] - shares[0]
        k = len(part.codes) if since[-1] and not before[-1] else int(np.abs(change).argmax())
        k = 1 if part.kind == "gaps" else k
        rows = [f"{share[k]:.0%} of {n[3:].sum():.0f} rows" for share, n in zip(shares, (before, since), strict=True)]
        counts = f"{rows[1]}, {rows[0]} before"
        if part.kind == "gaps":
            return f"{part.of!r} is missing {'more' if change[1] > 0 else 'less'} often than before: {counts}"
        what = part.codes[k] if k < len(part.codes) else "a label" if part.kind == "labels" else "a category"
        new = "" if k < len(part.codes) else " that is new"
        of = "class" if part.kind == "labels" else f"{part.of!r}:"
        return f"{of} {what!r}{new} is {'more' if change[k] > 0 else 'less'} frequent than before: {counts}"
    spread = abs(wider) > abs(higher) + 0.05
    more = wider > 0 if spread else higher > 0
    how = ("more spread out" if more else "less spread out") if spread else "higher" if more else "lower"
    subject = {
        "score": "the log score of the labels",
        "density": "the density of the rows",
        "shares": f"the probability of {part.of!r}",
    }
    return f"{subject.get(part.kind, repr(part.of))} is {how} than before"
