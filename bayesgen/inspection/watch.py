r"""A watch over the rows that a classifier in use gets, with a stated rate of false alarms.

Each part of a row is one number: the value of a column, or the place of its category by a hash of the text; again the
category, by how often it came; 1 or 0 for a gap; the place of a label; and where a classifier is asked, log p(y | x) of
the label, the probability of a class, the log density log p(x). Each part is ranked among all that came before, and M_j
bets against the ranks (`bayesgen.numerics.betting`). Where rows come in random order M_j is a martingale. Of m parts
that share the level α, each alarms at

.. math:: M_j \ge \frac{m}{\alpha}, \qquad P(\text{any alarm, ever}) \le \sum_{j=1}^m \frac{\alpha}{m} = \alpha

by Ville's inequality and the union bound. A missing value is left out of its part, since rows that have one are in
random order too, whatever decides that it is there. What the classifier says is ranked among rows that it did not learn
from. While all values of a part are tied its evidence is taken for none. `docs/mathematics/watch.md` says why each part
alarms by itself, and why known categories have no part in the ranks.
"""

import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayesgen.core.errors import counted, listed
from bayesgen.core.registry import fitted_of, saveable
from bayesgen.files import storage
from bayesgen.inspection import watch_parts
from bayesgen.inspection.leave_one_out import leave_one_out
from bayesgen.inspection.watch_parts import ALONE, ASKED, KINDS, Part
from bayesgen.numerics.betting import Bets, Ranks, cut
from bayesgen.numerics.checks import check_count, check_level
from bayesgen.numerics.draws import generator
from bayesgen.tables.columns import check_present, factorize
from bayesgen.tables.labels import unwrapped
from bayesgen.tables.table import Table

_BLOCK, _POINTS = 256, 512  # rows taken at a time; points of the series at most
_VERSION = 2  # of the state: 1 had ranks of categories by those of the known rows


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
        What to watch: "values", "rarity" (how often the category of a row came among all rows), "gaps", "labels", and
        what the classifier says: "score" (log probability of the label), "shares" (probabilities of the classes),
        "density". Default: all that there are; each part has the same share of the level.
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
        fitted, settings = fitted_of(classifier), (parts, level, distinct, random_state)
        self._begin(classifier, fitted.schema_, getattr(fitted, "classes_", ()), *settings)
        self._start(np.empty((0, len(self.parts))))

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
            parts = ALONE
        if classifier is not None:
            watch = cls(classifier, parts=parts, level=level, distinct=distinct, random_state=random_state)
        else:
            watch, labels = object.__new__(cls), np.asarray(unwrapped([] if y is None else y))
            classes = np.unique(labels[~pd.isna(labels)])
            watch._begin(None, watch_parts.schema_of(Table(X)), classes, parts, level, distinct, random_state)
        watch._start(watch._numbers(X, y, left_out))
        return watch

    def _begin(self, classifier, schema, classes, kinds, level, distinct, random_state) -> None:
        check_level("level", level)
        check_count("distinct", distinct)
        if unknown := [kind for kind in kinds or () if kind not in KINDS]:
            raise ValueError(f"parts must be among {list(KINDS)}, got {listed(unknown)}")
        self.classifier: Any = None
        self._key: str | None = None
        if classifier is not None:  # new categories are missing to it: the values of the column tell of these
            self.classifier = replace(fitted_of(classifier), unseen="missing")
            self._key = storage.fingerprint(classifier)
        self.schema, self.classes, self._stored = schema, np.asarray(classes), None
        self._names: dict[float, Any] = {}  # labels by their places
        self._rng = generator(random_state).spawn(1)[0]  # for ties; rows drawn with the seed share no number with it
        self.level, self.distinct, self.rows, self.spent = float(level), int(distinct), 0, float(level)
        self.parts = tuple(part for part in self._possible() if part.kind in (KINDS if kinds is None else kinds))
        if not self.parts:
            raise ValueError(f"parts={list(kinds or ())}: there is nothing to watch of these without a classifier")

    def _possible(self):
        for block in self.schema.blocks:
            for column in block.columns:
                if block.categories is not None:
                    yield from (Part(kind, column, True) for kind in ("values", "rarity"))
                elif block.kinds[column] != "O":
                    yield Part("values", column)
                yield Part("gaps", column)
        if len(self.classes):
            names = tuple(self.classes.tolist())
            yield Part("labels", categorical=True)
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
            watched = dict.fromkeys(part.of for part in self.parts if part.kind in ALONE and part.of)
            check_present(list(watched), table.columns)
        table = table.renamed(self.schema.columns if table.names is None else table.columns, self.schema.reading)
        codes = self._codes(y, len(table))
        said = self._said(X, y, codes, left_out)
        result = np.empty((len(table), len(self.parts)))
        for j, part in enumerate(self.parts):
            if part.name in said:
                result[:, j] = said[part.name]
            elif part.kind == "labels":
                result[:, j] = np.nan if y is None else self._places(np.asarray(unwrapped(y), dtype=object), "y")
            elif part.kind == "gaps":
                result[:, j] = pd.isna(table.labels(part.of))
            elif part.categorical:
                result[:, j] = self._places(table.labels(part.of), part.of)
            else:
                result[:, j] = watch_parts.numbers_of(table, part.of)
            if np.isinf(result[:, j]).any() and part.kind == "values":
                raise ValueError(f"column {part.of!r} holds an infinite value; give NaN where it is missing")
        return np.where(np.isinf(result), np.sign(result) * np.finfo(float).max, result)  # a log score of -inf

    def _places(self, values, column: str) -> np.ndarray:
        """Return the place of each category in the order by a hash, (n,), NaN where missing; keep the names of some."""
        codes, distinct = factorize(values, column)
        places = np.array([*map(watch_parts.place_of, distinct), np.nan])  # the last for the missing, of code -1
        for place, label in zip(places[:-1].tolist(), distinct, strict=True):
            if len(self._names) < self.distinct:
                self._names.setdefault(place, label)
        return places[codes]

    def _codes(self, y, n: int) -> np.ndarray:
        """Return the code of each label among the classes, (n,): NaN where there is none, and K for a new class."""
        if y is None:
            return np.full(n, np.nan)
        y = np.asarray(unwrapped(y), dtype=object)
        if y.shape != (n,):
            raise ValueError(f"y must have shape ({n},), one label a row, or NaN where it is not known; got {y.shape}")
        place = {label: code for code, label in enumerate(self.classes.tolist())}
        return np.where(pd.isna(y), np.nan, [place.get(label, len(place)) for label in y.tolist()])

    def _said(self, X, y, codes, left_out: bool) -> dict[str, np.ndarray]:
        """Return what the classifier says of rows, by name of the part: arrays (n,)."""
        kinds = {part.kind for part in self.parts} & set(ASKED)
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
        """Begin to bet, with numbers (n, parts) of rows that are known already."""
        none = np.array([], np.uint64)
        self._batches = watch_parts.with_batch(none, known, True) if len(known) else none
        values = [v[~np.isnan(v)] for v in known.T]
        ranks = [Ranks.of(v, self.distinct, p.kind == "rarity") for v, p in zip(values, self.parts, strict=True)]
        self._ranks, m = ranks, len(self.parts)
        self._bets = Bets.start(m, np.array([len(v) for v in values]))
        self._varied = np.zeros(m, bool)
        self._low, self._since = np.zeros(m), np.full(m, self.rows)
        self._sums, self._sums_at_low = np.zeros((m, 3)), np.zeros((m, 3))
        self._counts_at_low = [one.without(np.empty(0)) for one in ranks]
        self._series, self._times, self._stride = np.empty((0, m)), np.empty(0, np.int64), 1
        self.alarms: list[Alarm] = []

    def update(self, X, y=None, *, again: bool | None = None) -> list[Alarm]:
        """Take up rows that came, in their order; return the alarms that they raise.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            One row or many, with the columns of the fit.
        y : array, shape (n,), optional
            Their labels, NaN or None where one is not known. Where labels come later than their rows, a watch with
            ``parts=["labels", "score"]`` takes both when they are there.
        again : bool, optional
            True to take rows that came before as a whole, known ones among them, in the same order; False to refuse
            them. By default they are refused where they are no chance: where their order is one of a million. The last
            4,096 batches are remembered.

        Raises
        ------
        ValueError
            If the rows came before, or cannot be read; no row is taken then.
        """
        before, values = len(self.alarms), self._numbers(X, y)
        self._batches = watch_parts.with_batch(self._batches, values, again)
        for start in range(0, len(values), _BLOCK):
            self._take(values[start : start + _BLOCK])
        return self.alarms[before:]

    def _take(self, values) -> None:
        """Take up a block of rows as numbers (n, parts)."""
        live, p, varied = ~np.isnan(values), np.full(values.shape, np.nan), np.zeros(values.shape, bool)
        ties = self._rng.random(values.shape)
        for j, ranks in enumerate(self._ranks):
            there = live[:, j]
            p[there, j], varied[there, j] = ranks.rank(values[there, j], ties[there, j])
        varied = np.logical_or.accumulate(np.vstack([self._varied, varied]))
        self._varied, begins, path = varied[-1], np.diff(varied, axis=0), np.where(varied[1:], self._bets.take(p), 0.0)
        terms = np.where(live, [p, np.abs(2 * p - 1), live], 0.0).transpose(1, 2, 0)
        sums = np.cumsum(np.concatenate([self._sums[None], terms]), 0)  # before each row, and after the last
        hits = path >= np.log(len(self.parts) / self.level)
        alarmed = {alarm.part for alarm in self.alarms}
        for j, part in enumerate(self.parts):
            if part.name in alarmed:
                continue
            stop = int(hits[:, j].argmax()) if hits[:, j].any() else len(path)
            if stop and path[:stop, j].min() < self._low[j]:
                lowest = int(path[:stop, j].argmin())
                first = lowest + (not begins[lowest, j])  # row of a change after it, or the first at which values vary
                self._low[j], self._since[j] = path[lowest, j], self.rows + first
                self._sums_at_low[j], self._counts_at_low[j] = sums[first, j], self._ranks[j].without(values[first:, j])
            if stop < len(path):
                told = self._told(j, sums[stop + 1, j] - self._sums_at_low[j], values[stop + 1 :, j])
                cure = "; forget() the rows learned since, decay() before more, or refit()" * (part.kind == "score")
                text = f"since about row {self._since[j]} {told}{cure}"
                self.alarms.append(Alarm(part.name, self.rows + stop, int(self._since[j]), text))
        self._sums, times = sums[-1], np.append(self._times, self.rows + np.arange(len(path)))
        while (kept := times % self._stride == 0).sum() > _POINTS:
            self._stride *= 2
        self._times, self._series = times[kept], np.vstack([self._series, path])[kept]
        self.rows += len(path)

    def _told(self, j: int, sums, later) -> str:
        """Say how a part changed, by the sums over its ranks since then, and its values but for ``later`` ones."""
        part, bits = self.parts[j], self._ranks[j].bits
        if part.kind != "gaps" and not part.categorical:
            return watch_parts.of_numbers(part, sums, part.of in self.schema.dates)
        places, total = self._ranks[j].without(later)
        keys, counts = self._counts_at_low[j]
        before = np.zeros_like(total)
        np.add.at(before, np.searchsorted(places, cut(keys, bits)), counts)
        if part.kind == "rarity":
            return watch_parts.of_rarity(part, sums, before, total - before)
        names = dict(zip(cut(np.array([*self._names]), bits).tolist(), self._names.values(), strict=True))
        known = [repr(names[place]) if place in names else "a category" for place in places.tolist()]
        return watch_parts.of_shares(part, known, before, total - before)

    @property
    def threshold(self) -> float:
        """Return the evidence at which a part alarms, as log10 of its martingale."""
        return float(np.log10(len(self.parts) / self.level))

    @property
    def evidence(self) -> pd.DataFrame:
        """Return log10 of the martingale of each part over the rows, at 512 of them at most and after the last."""
        last = np.where(self._varied, self._bets.log_capital, 0.0)
        times, series = np.append(self._times, self.rows - 1), np.vstack([self._series, last])
        frame = pd.DataFrame(series / np.log(10), times, [part.name for part in self.parts]).rename_axis("row")
        return frame.loc[~frame.index.duplicated(keep="last")] if self.rows else frame.iloc[:0]

    def restart(self, X=None, y=None) -> None:
        """Forget all rows and alarms, and begin anew among known rows, as in `from_rows`; the level is spent again."""
        self.spent += self.level
        self._start(np.empty((0, len(self.parts))) if X is None else self._numbers(X, y))

    def __repr__(self):
        state = f"in alarm: {'; '.join(alarm.text for alarm in self.alarms)}" if self.alarms else "no alarm"
        return f"Watch({counted(len(self.parts), 'part')}, {counted(self.rows, 'row')}, {state})"

    def save(self, path) -> None:
        """Write the watch with the state of its generator: to load it and go on is to go on.

        The file holds counts of values, which are data of people: it is for its owner only. A file that is not as this
        watch read or wrote it last holds rows that it does not know, as of another process: it is not replaced.

        Raises
        ------
        ValueError
            If the file was written by another since; nothing is written then.
        """
        values = {name: v for name, v in vars(self).items() if name not in ("classifier", "_rng", "_stored")}
        values |= {"generator": self._rng.bit_generator.state}
        self._stored = storage.write_state(path, "watch", values, _VERSION, self._stored)

    @classmethod
    def load(cls, path, classifier=None) -> "Watch":
        """Read a watch that `save` wrote; ``classifier`` is the one that it asks, where it asks one."""
        watch = object.__new__(cls)
        values, watch._stored = storage.read_state(path, "watch", _VERSION)
        watch._rng, watch.classifier = np.random.default_rng(), None
        watch._rng.bit_generator.state = values.pop("generator")
        vars(watch).update(values)
        if watch._key is not None:
            if classifier is None or storage.fingerprint(classifier) != watch._key:
                raise ValueError(f"{path}: this watch goes on with the classifier that it began with: give that one")
            watch.classifier = replace(fitted_of(classifier), unseen="missing")
        return watch
