r"""Rows scored by members that had not learned from them: left out of the fit, or later ones before they were learned.

Of at most 2,000 rows, the latest, the log densities under the members of each part are kept, as float32: from these
exponents and weights are chosen. The rows themselves are not kept. A row is found again by a digest of its entries and
class, under a key that follows from the fit ("Learning on" in `docs/mathematics/averaged.md`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from bayesgen.averaging.average import Average
from bayesgen.averaging.member_rows import Rows, numbered
from bayesgen.averaging.weights import LeftOut
from bayesgen.core.program import Record
from bayesgen.core.shapes import shaped
from bayesgen.numerics.folds import effective
from bayesgen.numerics.pieces import one_blas_thread, taken

_MOST, _LEAST = 2000, 200  # rows that are kept, but for memory
_CELLS = 1 << 23  # log densities that are kept
_EACH = "log_prior", "told_prior", "codes", "weight", "share", "group", "digest", "place"  # with an entry a row


@dataclass(frozen=True, eq=False)
class Scored(Record):
    """Rows and their densities under the members of an average."""

    key: np.ndarray = field(metadata=shaped("key", "i"))  # of the digests; by it copies of one fit know each other
    # log p(x_i | k) under every member of every part, one part behind the other, and the leaves, if there are any
    density: np.ndarray = field(metadata=shaped("factors scored classes"))
    log_prior: np.ndarray = field(metadata=shaped("scored classes"))  # log class probabilities before the row
    told_prior: np.ndarray = field(metadata=shaped("scored classes"))  # those under which the score is told
    codes: np.ndarray = field(metadata=shaped("scored", places="classes"))
    weight: np.ndarray = field(metadata=shaped("scored", positive=True))  # of the row
    share: np.ndarray = field(metadata=shaped("scored", positive=True))  # its weight in the score
    group: np.ndarray = field(metadata=shaped("scored", "i"))  # what leaves together
    digest: np.ndarray = field(metadata=shaped("scored", "i"))
    place: np.ndarray = field(metadata=shaped("scored"))  # rows that came before it; those of the fit in any order
    first: int  # rows of the fit
    rows: int  # all rows that came
    chosen: bool = False  # True if the classes of the fit were chosen

    @classmethod
    def of(cls, density: Sequence[Any], predicted: LeftOut, rows: int) -> "Scored":
        """Return the rows that a fit to so many left out; the key is a digest of their densities and classes."""
        seal = b"".join(values.tobytes() for values in (*density, predicted.log_prior, predicted.codes))
        key = np.frombuffer(hashlib.blake2b(seal, digest_size=16).digest(), np.uint8).astype(np.int64)
        these, told, digest = predicted.rows, predicted.told_prior, digests(predicted.rows, key)
        place = np.argsort(np.argsort(digest, kind="stable")) * (rows / max(1, len(digest)))
        group = np.arange(len(digest)) if these.group is None else these.group
        prior = predicted.log_prior
        each = prior, prior if told is None else told, these.codes, these.weight, predicted.weight, group, digest, place
        return cls(key, _short(density, prior.shape), *each, rows, rows, predicted.chosen)

    @one_blas_thread()
    @np.errstate(under="ignore")
    def of_more(self, average: Average, rows: Rows, scoring: bool) -> "Scored":
        """Return rows that come after these, scored, if wanted, by an average that has not learned from them."""
        digest, every = digests(rows, self.key), len(rows)
        if scoring:  # some of many, as if drawn
            chosen = np.argsort(digest, kind="stable")[:_MOST]
            rows, digest = rows.take(chosen), digest[chosen]
        prior, order = np.tile(average.log_class_prior, (len(rows), 1)), np.arange(len(rows))
        each = (part.log_density(rows.x, rows.c, np.arange(len(part.members))) for part in average.parts)
        leaf = [] if average.leaves is None else [average.leaves.log_density(rows.e)]
        density = _short([*chain.from_iterable(each), *leaf], prior.shape) if scoring else np.zeros((1, len(rows), 1))
        group, place = order if rows.group is None else rows.group, self.rows + order * (every / max(1, len(rows)))
        of_rows = prior, prior, rows.codes, rows.weight, rows.weight, group, digest, place
        return Scored(self.key, density, *of_rows, 0, every)

    def __len__(self):
        return len(self.codes)

    def take(self, places) -> "Scored":
        """Return some of the rows."""
        of_rows = {name: taken(getattr(self, name), places) for name in _EACH}
        return replace(self, density=self.density[:, places], **of_rows)

    def __add__(self, other: "Scored") -> "Scored":
        """Return these rows and more, or those that another that began with the same fit has scored since, in turn."""
        rows, mine, theirs = self.rows + other.rows - other.first, self, other
        if other.first:
            both = np.isin(self.digest, other.digest[other.place < self.first])
            mine = self._stretched(rows).take((self.place >= self.first) | both)
            theirs = other._stretched(rows).take(other.place >= self.first)
        theirs = replace(theirs, group=1 + mine.group.max(initial=-1) + theirs.group)
        of_rows = {name: np.concatenate([getattr(mine, name), getattr(theirs, name)]) for name in _EACH}
        density = np.concatenate([mine.density, theirs.density], axis=1)
        return replace(mine, density=density, **of_rows, rows=rows)

    def _stretched(self, rows: int) -> "Scored":
        late = (self.place - self.first) * ((rows - self.first) / max(1, self.rows - self.first))
        return replace(self, place=np.where(late < 0, self.place, self.first + late))

    def latest(self) -> "Scored":
        """Return the rows that are kept, in the order in which they came."""
        most = min(_MOST, max(_LEAST, _CELLS // max(1, len(self.density) * self.log_prior.shape[1])))
        return self.take(np.lexsort([self.digest, self.place])[-most:])

    def without(self, gone: "Scored") -> tuple["Scored", np.ndarray]:
        """Return these rows without others, each once, and the digests of those that may not have come later."""
        lost, early = np.zeros(len(self), bool), np.zeros(len(gone), bool)
        for row, digest in enumerate(gone.digest):
            found = np.flatnonzero((self.digest == digest) & ~lost)[-1:]
            lost[found] = True
            early[row] = not (self.place[found] >= self.first).any()
        return self.take(~lost), gone.digest[early]

    def left_out(self, average: Average) -> LeftOut:
        """Return the rows as choices take them, by digest; the score of those of the last half of all rows is told."""
        these, (n, classes) = self.take(np.argsort(self.digest, kind="stable")), self.log_prior.shape
        stops = np.cumsum([len(part.members) for part in average.parts])
        of_part = dict(zip(map(id, average.parts), np.split(these.density, stops), strict=False))
        leaf = None if average.leaves is None else these.density[-1].astype(float)
        density = average.roster.combined((n, classes), lambda part: of_part[id(part)], leaf)
        group = these.group if len(np.unique(these.group)) < n else None
        share = these.share * np.maximum(these.place, self.first) / self.rows  # early rows met smaller fits
        rows = Rows(np.empty((n, 0)), np.empty((n, 0), np.intp), these.codes, share, (), classes, group)
        late = np.flatnonzero(these.place >= self.rows / 2) if self.rows > self.first else slice(None)
        chosen, least = self.chosen and self.rows == self.first, average.roster.least
        share = share * (effective(share) / share.sum())
        return LeftOut(density, these.log_prior, rows, share, least, these.told_prior, chosen, late)


def digests(rows: Rows, key) -> np.ndarray:
    """Return a digest of the entries and the class of each row, (n,), under a key."""
    table = np.column_stack([numbered(rows.x, rows.c), *([] if rows.e is None else [rows.e]), rows.codes]) + 0.0
    table[np.isnan(table)] = np.nan  # of one kind
    secret = np.asarray(key, np.uint8).tobytes()
    each = (hashlib.blake2b(row.tobytes(), digest_size=8, key=secret).digest() for row in table)
    return np.frombuffer(b"".join(each), np.int64)


def _short(density, shape: tuple[int, int]) -> np.ndarray:
    """Return log densities as float32, which holds those of entries however far away as 1e30."""
    return np.clip(np.reshape(density, (len(density), *shape)), -1e30, 1e30).astype(np.float32)
