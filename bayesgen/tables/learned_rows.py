"""The rows that a fit learns from, read once: their labels or shares of the classes, weights, groups and places."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from bayesgen.core.errors import listed
from bayesgen.numerics.pieces import taken
from bayesgen.tables import labels, shares
from bayesgen.tables.groups import group_codes
from bayesgen.tables.labels import declared_classes
from bayesgen.tables.reading import Reading
from bayesgen.tables.shares import Shares
from bayesgen.tables.table import Table

__all__ = ["LearnedRows", "codes_or_none", "declared_classes", "labels_of", "ordered_classes"]

_NONE = Reading.of(None)  # the account of a table in memory


@dataclass(frozen=True, eq=False)
class LearnedRows:
    """The rows of a table whose weight is not 0, and all that a user said of each."""

    table: Table
    codes: Any  # (n,) or (n, K): the class of each row among ``classes``, -1 where not known; or its shares of them
    weight: np.ndarray | None  # (n,), or None: row weights > 0; None where each row counts once
    classes: np.ndarray  # (K,): labels
    group: np.ndarray | None = None  # (n,), or None: number of the group of each row
    places: Any = None  # (n,): positions of the rows in the user's table
    weightless: Sequence = ()  # labels that only rows of weight 0 have
    declared: Any = None  # the classes that a user declared
    complete: bool = True  # False: rows may lack a class
    blocks: Mapping[str, Any] = field(default_factory=dict)  # the rows as a schema reads them, where that is done

    @classmethod
    def read(cls, table: Table, y, sample_weight=None, groups=None, *, whole: bool = True, **said: Any) -> Self:
        """Read labels, or shares, weights and groups as users bring them, or raise an error that names the argument.

        What is ``said``: ``names``, else ``default``, the classes of columns of shares without names; ``label_weight``;
        and ``classes``, those of the fit, or a function that returns them of labels, weights and the names of shares.
        By default labels tell the classes, and then ``names`` are of shares alone. The rows are the ``whole`` of a fit,
        or a piece, which may lack classes.
        """
        names, classes, votes = said.get("names"), said.get("classes"), said.get("label_weight")
        y = shares.labels_or_shares(y, names, said.get("default"))
        if names is not None and classes is None and not isinstance(y, Shares):
            raise ValueError("classes= of fit names the columns of shares (n, K); y has one label a row")
        given = sample_weight if votes is None else shares.vote_weight(y, sample_weight, votes)
        if callable(classes):
            classes = classes(y, given, y.names if isinstance(y, Shares) else None)
        y = labels.class_labels(y)
        group = None if groups is None else group_codes(groups, len(y), given)
        table, chosen, weight = labels.existing(table, y, given)
        declared, (classes, codes) = classes, labels.class_codes(chosen, classes)
        if whole and codes.ndim == 2:
            shares.check_all_shared(codes, classes, weight)
        if given is None:
            return cls(table, codes, None, classes, group, range(len(y)), (), declared)
        lost = labels.weightless(y, classes, given) if whole else ()
        return cls(table, codes, weight, classes, group, labels.counted_rows(len(y), given), lost, declared)

    @classmethod
    def partly(cls, table: Table, y, sample_weight, named: Callable[[np.ndarray], np.ndarray]) -> Self:
        """Read labels that some rows lack, whose code is -1; ``named`` returns the classes of the labels there are."""
        (known, place), rows = labels.some_labels(y, len(table)), len(table)
        table, place, weight = labels.existing(table, place, sample_weight)
        classes = named(known[place[place >= 0]])
        lost, places = labels.weightless(known, classes, sample_weight), labels.counted_rows(rows, sample_weight)
        codes = labels.coded(known, place, classes)
        return cls(table, codes, weight, classes, None, places, lost, complete=False)

    @classmethod
    def unclassed(cls, table: Table, y, sample_weight) -> tuple[Self, Any]:
        """Return the rows that count, of no class, and their target (n,), which has the same rows."""
        places = labels.counted_rows(len(table), sample_weight)
        table, y, weight = labels.existing(table, y, sample_weight)
        return cls(table, np.zeros(len(y), np.intp), weight, np.empty(0), None, places), y

    @property
    def accounted(self) -> bool:
        """True if they were read from a file, whose account tells of its columns."""
        return self.table.reading is not _NONE

    @functools.cached_property
    def shared(self) -> bool:
        """True if rows have shares of the classes."""
        return self.codes.ndim == 2

    @functools.cached_property
    def likely(self) -> np.ndarray:
        """The class of each row, (n,), or that of its largest share; -1 where it is not known."""
        return self.codes.argmax(1) if self.shared else self.codes

    @property
    def known(self) -> np.ndarray:
        """True for the rows whose class is known."""
        return self.likely >= 0

    @functools.cached_property
    def by_class(self) -> np.ndarray:
        """The class of each row, where the rows of unknown class are one class more."""
        if self.complete:
            return self.likely if self.shared else self.codes
        return np.where(self.known, self.likely, len(self.classes))

    def count(self, label) -> int:
        """Return the number of rows of a class."""
        return int((self.likely == self.classes.tolist().index(label)).sum())

    def take(self, rows) -> Self:
        """Return some of the rows, by their positions."""
        parts = taken(self.weight, rows), taken(self.group, rows), np.asarray(self.places)[rows]
        table, (weight, group, places) = self.table.rows(rows), parts
        return replace(self, table=table, codes=self.codes[rows], weight=weight, group=group, places=places)

    def under(self, schema) -> Self:
        """Return the rows as a schema reads them."""
        return replace(self, blocks=schema.read(self.table))

    def stacked(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return row, class and weight of each pair of a row and a class of which it has a share."""
        return shares.stacked(self.codes, self.weight) if self.shared else (slice(None), self.codes, self.weight)


def codes_or_none(y, classes, rows: int) -> np.ndarray:
    """Return the code of each of so many rows among the classes, (n,), -1 where it has no label."""
    return labels.coded(*labels.some_labels(y, rows), classes)


def labels_of(y, classes) -> np.ndarray:
    """Return labels (n,), or shares (n, K) in the order of the classes, as users bring them to a fitted classifier."""
    y = shares.labels_or_shares(y, default=classes)
    return y.among(classes.tolist()) if isinstance(y, Shares) else labels.class_labels(y)


def ordered_classes(order, y) -> np.ndarray:
    """Return classes in the order that a user gave, or raise where labels ``y`` cannot be of them."""
    names = labels.class_labels(list(order), "the order of the classes")
    if len(set(names.tolist())) < len(names):
        raise ValueError(f"the order of the classes names a label twice: {listed(names)}")
    said = not isinstance(y, Shares | None)
    if names.dtype.kind not in "biuf" and said and (found := labels.class_labels(y)).dtype.kind in "biuf":
        raise ValueError(
            f"y holds the numbers {listed(np.unique(found))}, and the order names {listed(names)}: labels were "
            "encoded by the alphabet, as ensembles of scikit-learn do; give y as numbers in order, and no order"
        )
    return names
