"""Rows with class and weight in one table, as files and engines hold them, and their sums by workers."""

import functools
import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen.core.errors import quoted
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.classifier import ClassConditional
from bayesgen.numerics.checks import check_weight
from bayesgen.numerics.pieces import select_rows
from bayesgen.numerics.sums import Grouping
from bayesgen.tables.arrow import is_arrow, pa
from bayesgen.tables.columns import check_present, frame_of
from bayesgen.tables.labels import class_codes, class_labels
from bayesgen.tables.schema import Schema
from bayesgen.tables.shares import Shares, labels_or_shares, stacked
from bayesgen.tables.table import Table


def fingerprint(schema: Schema, classes) -> str:
    """Return a digest of a schema: columns, families and categories of their blocks, and classes, all in order."""
    parts = ["\x1f".join(schema.columns), *map(repr, np.asarray(classes).tolist())]
    for block in schema.blocks:
        leaf = block.leaf if isinstance(block.leaf, str) else type(block.leaf).__name__
        columns = "" if block.columns == schema.columns else "\x1f".join(block.columns)
        levels = block.categories if block.categories is not None else getattr(block.leaf, "groups", None)
        parts += [block.name, columns, leaf, repr(block.single), repr(levels)]
    return hashlib.sha256("\x1e".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class RowSchema:
    """All that a worker needs to sum a batch of rows, and no more: it can be pickled, and holds no row.

    Attributes
    ----------
    schema : Schema
        The columns of the features.
    classes : array, shape (K,)
        Class labels, in the order of their codes.
    template : ClassConditional
        The model whose statistics are summed, its weak priors still to come.
    target, weight : str or None
        The columns of classes and weights; None where batches are tuples (X, y) or (X, y, weight).
    """

    schema: Schema
    classes: np.ndarray
    template: ClassConditional
    target: str | None = None
    weight: str | None = None

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest that the statistics of this schema carry."""
        return fingerprint(self.schema, self.classes)

    @functools.cached_property
    def used(self) -> Schema:
        """Schema without the columns that are left out, which are not read."""
        return self.schema.used()

    def statistics(self, batch) -> ClassStatistics | None:
        """Return the statistics of a batch of rows; None where it has no row."""
        schema = self.used if self.target is not None else self.schema
        X, labels, weight = split(batch, self.target, self.weight, schema.columns)
        if not len(labels):
            return None
        codes = codes_among(labels, self.classes)
        row, code, votes = stacked(codes, weight)
        rows = Grouping(code, len(self.classes), votes, (len(self.classes),))
        if codes.ndim == 2:
            return replace(self._summed(schema, X, rows, row), decayed=True)
        return self._summed(schema, X, rows)

    def sum(self, batch) -> ClassStatistics:
        """Sum the sufficient statistics of a batch of rows, as each worker of a cluster does.

        Statistics add, by ``+`` or ``sum``, in any order and any tree; ``classifier.fit_statistics(rows.schema, total,
        rows.classes)`` learns from their total.

        Parameters
        ----------
        batch : table or tuple
            Rows, with the columns of the features, of the class and of the weight if there is one: a table of pandas,
            polars or pyarrow, or a mapping from column to values. Or (X, y) or (X, y, weight), if there is no target.

        Returns
        -------
        ClassStatistics
            Their size does not depend on the number of rows; zero if the batch has none.
        """
        found = self.statistics(batch)
        return nothing(self) if found is None else found

    def _summed(self, schema, X, rows: Grouping, places: Any = slice(None)) -> ClassStatistics:
        blocks = select_rows(schema.read(Table(X).renamed(schema.columns)), places)
        by_leaf = {name: blocks[name] for name in self.template.leaves}
        return self.template.sum_rows(by_leaf, rows, self.fingerprint)


def nothing(schema: RowSchema) -> ClassStatistics:
    """Return the statistics of no row, which change no sum."""
    count = len(schema.classes)
    blocks = {name: rows[:0] for name, rows in schema.schema.nothing().items()}
    rows = Grouping(np.zeros(0, np.intp), count, None, (count,))
    return schema.template.sum_rows(blocks, rows, schema.fingerprint)


def arrow_of(batch) -> Any:
    """Convert a record batch or a mapping of columns to a pyarrow Table; None for anything else."""
    if is_arrow(batch, "RecordBatch"):
        batch = pa.Table.from_batches([batch])
    if isinstance(batch, dict):
        batch = pa.table(batch)
    if not is_arrow(batch, "Table"):
        return None
    for place, column in enumerate(batch.schema):
        if pa.types.is_string_view(column.type):  # few functions of pyarrow take views
            batch = batch.set_column(place, column.name, batch.column(place).cast(pa.large_string()))
    return batch


def split(batch, target: str | None, weight: str | None, columns=None):
    """Divide a batch into X, labels and weights (None: all 1); rows of weight 0 are left out, unread.

    X has the ``columns``, by default all but the classes (``target``) and the weights.
    """
    if target is None:
        if not isinstance(batch, tuple) or not 2 <= len(batch) <= 3:
            raise TypeError(f"name the column of the classes, target=; got a {type(batch).__name__} and no target")
        X, y, *weights = batch
        y = np.asarray(y) if isinstance(y, list | tuple) else y
        if not weights or weights[0] is None:
            return X, y, None
        w = _weights(weights[0], len(y), "sample_weight")
        return (X, y, w) if (w > 0).all() else (Table(X).rows(w > 0).native, y[w > 0], w[w > 0])
    frame: Any = _frame(batch)
    if frame is None:
        wanted = f"a table with the column {target!r}, such as a pandas, polars or pyarrow one"
        cure = "give arrays as tuples (X, y), and no target"
        raise TypeError(f"a batch is {wanted}, got a {type(batch).__name__}; {cure}")
    native = {str(name): name for name in frame.columns}
    wanted = [name for name in native if name not in (target, weight)] if columns is None else list(columns)
    check_present([name for name in (target, weight, *wanted) if name is not None], native)
    w = None if weight is None else _weights(frame.get_column(native[weight]).to_numpy(), len(frame), weight)
    if w is not None and not (w > 0).all():
        frame, w = frame[np.flatnonzero(w > 0)], w[w > 0]
    return frame.select([native[name] for name in wanted]).to_native(), frame.get_column(native[target]).to_native(), w


def _frame(batch) -> Any:
    table = arrow_of(batch)
    return frame_of(batch if table is None else table)


def columns_of(batch, columns, named: bool) -> Any:
    """Select columns of a batch: as a table, or as an array where the fit had no names; arrays stay as they are."""
    if (frame := _frame(batch)) is None:
        return batch
    native = {str(name): name for name in frame.columns}
    check_present(columns, native)
    chosen = frame.select([native[name] for name in columns])
    return chosen.to_native() if named else Table(chosen.to_native()).numbers(columns)


def _weights(values, count: int, name: str) -> np.ndarray:
    weight = check_weight(values, count, f"the weight {quoted(name)}")
    assert weight is not None
    return weight


def codes_among(labels, classes) -> np.ndarray:
    """Return the code of each label among the classes, (n,), or the shares of these, (n, K)."""
    if isinstance(labels := labels_or_shares(labels, default=classes), Shares):
        return labels.among(classes.tolist())
    distinct, places = distinct_labels(labels)
    return places if np.array_equal(distinct, classes) else class_codes(distinct, classes)[1][places]


def distinct_labels(labels) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, checked, and the place of each row's label; text of pyarrow is never unpacked."""
    if not is_arrow(labels, "ChunkedArray", "Array") or labels.null_count:
        return class_codes(class_labels(labels_or_shares(labels)))
    if is_arrow(labels, "ChunkedArray"):
        labels = labels.combine_chunks()
    if pa.types.is_integer(labels.type) or pa.types.is_boolean(labels.type):
        return class_codes(class_labels(labels.to_numpy(zero_copy_only=False)))
    coded: Any = labels if is_arrow(labels, "DictionaryArray") else labels.dictionary_encode()
    used, places = class_codes(coded.indices.to_numpy())
    values = coded.dictionary.take(pa.array(used)).to_numpy(zero_copy_only=False)
    return class_labels(np.repeat(values, 3))[::3], places  # of labels that differ one and all scikit-learn warns
