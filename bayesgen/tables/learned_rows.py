"""The rows that a fit learns from, read once: their labels or shares of the classes, weights, groups and places."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from bayesgen.core.errors import listed
from bayesgen.numerics.pieces import taken
from bayesgen.tables import labels, shares
from bayesgen.tables.groups import group_codes
from bayesgen.tables.labels import declared_classes
from bayesgen.tables.shares import Shares
from bayesgen.tables.table import Table

__all__ = ["LearnedRows", "codes_or_none", "declared_classes", "labels_of", "ordered_classes"]


@dataclass(frozen=True, eq=False)
class LearnedRows:
    """The rows of a table whose weight is not 0, and all that a user said of each."""

    table: Table
    codes: Any  # (n,) or (n, K): the class of each row among ``classes``, -1 where not known; or its shares of them
    weight: np.ndarray | None  # (n,), or None: row weights > 0; None where each row counts once
    classes: np.ndarray  # (K,): labels
    places: Any  # (n,): positions of the rows in the user's table
    weightless: Sequence = ()  # labels that only rows of weight 0 have
    group: np.ndarray | None = None  # (n,), or None: number of the group of each row
    blocks: Mapping[str, Any] = field(default_factory=dict)  # the rows as a schema reads them, where that is done

    @classmethod
    def read(cls, table: Table, y, weight, groups=None, names=None, votes=None, *, default=None, whole=True) -> Self:
        """Read labels, or shares, weights and groups as users bring them, or raise an error that names the argument.

        Columns of shares, each worth so many ``votes``, have the classes ``names``, which labels have not, else the
        ``default``, where no DataFrame says them. A class has shares unless rows are not the ``whole`` of a fit.
        """
        y = shares.labels_or_shares(y, names, default)
        if names is not None and not isinstance(y, Shares):
            raise ValueError("classes= of fit names the columns of shares (n, K); y has one label a row")
        weight = weight if votes is None else shares.vote_weight(y, weight, votes)
        y = labels.class_labels(y)
        group = None if groups is None else group_codes(groups, len(y), weight, whole)
        table, chosen, kept, places = labels.existing(table, y, weight)
        classes, codes = labels.class_codes(chosen)
        if codes.ndim == 2 and whole:
            shares.check_all_shared(codes, classes, kept)
        lost = () if weight is None else labels.weightless(y, classes, weight)
        return cls(table, codes, kept, classes, places, lost, group)

    @classmethod
    def partly(cls, table: Table, y, sample_weight) -> Self:
        """Read labels that rows may lack, whose code is then -1."""
        known, place = labels.some_labels(y, len(table))
        table, place, weight, places = labels.existing(table, place, sample_weight)
        codes, labelled = np.full(len(place), -1), place >= 0
        classes, codes[labelled] = labels.class_codes(known[place[labelled]])
        return cls(table, codes, weight, classes, places, labels.weightless(known, classes, sample_weight))

    @classmethod
    def unclassed(cls, table: Table, y, sample_weight) -> tuple[Self, Any]:
        """Return the rows that count, of no class, and their target (n,), which has the same rows."""
        table, y, weight, places = labels.existing(table, y, sample_weight)
        return cls(table, np.zeros(len(y), np.intp), weight, np.empty(0), places), y

    def among(self, classes) -> Self:
        """Return the rows with codes among classes (K,) that are declared, or raise where a label is none of them."""
        known = classes.tolist()
        lost = [label for label in self.weightless if label not in known]
        if self.shared:
            codes = Shares(self.codes, self.classes.tolist()).among(known)
        else:
            codes = _among(self.classes, classes)[self.codes]
        return replace(self, codes=codes, classes=classes, weightless=lost)

    @property
    def shared(self) -> bool:
        """True if rows have shares of the classes."""
        return self.codes.ndim == 2

    @functools.cached_property
    def likely(self) -> np.ndarray:
        """The class of each row, (n,), or that of its largest share; where it is not known K, one class more."""
        codes = self.codes if self.codes.ndim == 1 else self.codes.argmax(1)
        return codes if codes.min(initial=0) == 0 else np.where(codes < 0, len(self.classes), codes)

    def repeated(self, times) -> Self:
        """Return each row as many times as it counts (n,), without weights."""
        rows = np.repeat(np.arange(len(times)), times)
        table, codes, group, places = self.table.rows(rows), self.codes[rows], self.group, np.asarray(self.places)[rows]
        return replace(self, table=table, codes=codes, weight=None, group=taken(group, rows), places=places)

    def stacked(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return row, class and weight of each pair of a row and a class of which it has a share."""
        return shares.stacked(self.codes, self.weight)


def codes_or_none(y, classes, rows: int) -> np.ndarray:
    """Return the code of each of so many rows among the classes, (n,), -1 where it has no label."""
    known, place = labels.some_labels(y, rows)
    return _among(known, classes)[place]


def _among(known, classes) -> np.ndarray:
    """Return the code of each label among the classes, and of no label: -1, but of one class 0."""
    return np.append(labels.class_codes(known, classes)[1], -1 if len(classes) > 1 else 0).astype(np.intp)


def labels_of(y, classes) -> np.ndarray:
    """Return labels (n,), or shares (n, K) in the order of the classes, as users bring them to a fitted classifier."""
    y = shares.labels_or_shares(y, default=classes)
    return y.among(classes.tolist()) if isinstance(y, Shares) else labels.class_labels(y)


def ordered_classes(order, found) -> np.ndarray:
    """Return classes in the order that a user gave, or raise where the labels ``found`` cannot be of them."""
    names = labels.class_labels(list(order), "the order of the classes")
    if len(set(names.tolist())) < len(names):
        raise ValueError(f"the order of the classes names a label twice: {listed(names)}")
    if len(found) and names.dtype.kind not in "biuf" and found.dtype.kind in "biuf":
        both = f"y holds the numbers {listed(found)}, and the order names {listed(names)}"
        why = "labels were encoded by the alphabet, as ensembles of scikit-learn do"
        raise ValueError(f"{both}: {why}; give y as numbers in order, and no order")
    return names
