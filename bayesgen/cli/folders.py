"""Rows in several files, or in files too large to be read whole: joined, sampled, or taken batch by batch."""

import functools
import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import counted
from bayesgen.core.memory import available
from bayesgen.sheets.account import redated
from bayesgen.sheets.batches import Source, located
from bayesgen.sheets.files import CSV, PARQUET, Rows
from bayesgen.sheets.rows import arrow_of
from bayesgen.sheets.sources import CsvFiles, expanded, kinds_of, source_of
from bayesgen.sheets.survey import Survey, kind_of_type, kind_of_values
from bayesgen.tables.arrow import compute, pa
from bayesgen.tables.columns import check_named, is_number
from bayesgen.tables.dates import days
from bayesgen.tables.numerals import limits_in
from bayesgen.tables.reading import Reading

_LARGE = 1 << 26  # bytes of files that are read whole on any machine
_SUMMED = 1 << 24  # bytes of files that are read whole though sums or predictions alone are wanted, batch by batch
_SHARE = 64  # the part of the available memory that larger files may have: a table takes some ten times its file
_SAMPLED = 20_000  # rows of a sample
_FEWEST = 50  # rows of a class in it, where there are as many


def several(file: str) -> bool:
    """Return True for a folder or a pattern of files."""
    path = Path(file)
    return path.is_dir() or (glob.has_magic(file) and not path.exists())


def paths(file: str) -> Sequence[str]:
    """Return the files of a folder or a pattern; the path itself of anything else."""
    return expanded(file) if several(file) else [file]


def outgrows(file: str, summed: bool = False) -> bool:
    """Return True if files are too large to be read whole, or to be ``summed`` or predicted but batch by batch."""
    found = paths(file) if several(file) or file.lower().endswith((*CSV, *PARQUET)) else []
    most = max(_LARGE, (available() or 0) // _SHARE)
    size = sum(Path(one).stat().st_size for one in found if Path(one).is_file())
    return size > (min(most, _SUMMED) if summed else most)


def joined(file: str, reading: Reading) -> Rows | None:
    """Return the rows of a folder or a pattern, as those of one file; None for anything else."""
    if not several(file):
        return None
    source = source_of(file, reading)
    return _rows(source, [*_tables(source)])


def _tables(source: Source) -> Iterator[Any]:
    """Yield the rows of files, piece by piece: the fields of CSV as they stand there, columns of Parquet with types."""
    for job in source.texts(source.columns) if isinstance(source, CsvFiles) else source.jobs():
        yield from job.each(arrow_of)


def _rows(source: Source, tables) -> Rows:
    if not tables:
        raise ValueError("the files have columns, but no rows")
    whole = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    return Rows(whole, source.reading.sep if isinstance(source, CsvFiles) else "")


def _without_gaps(table, missing: Sequence[str]):
    """Return a table of pyarrow without what ``missing`` names, and without empty text."""
    words, numbers = pa.array(missing, pa.string()), [float(word) for word in missing if is_number(word)]
    for place, (name, values) in enumerate(zip(table.column_names, table.columns, strict=True)):
        kind, looked, among = kind_of_type(values.type), values, words
        if kind == "O":
            among = pa.array(["", *missing])
        elif kind == "f" and not pa.types.is_duration(values.type):
            looked, among = values.cast(pa.float64()) if numbers else values, pa.array(numbers, pa.float64())
        elif missing:
            looked = pa.array(map(str, values.to_pylist()))
        if len(among) and compute.any(found := compute.is_in(looked, value_set=among)).as_py():
            table = table.set_column(place, name, compute.if_else(found, None, values))
    return table


def _frame(batch, missing: Sequence[str]):
    return batch if hasattr(batch, "iloc") else _without_gaps(arrow_of(batch), missing).to_pandas()


@dataclass(frozen=True)
class Sample:
    """A sample of the rows of large files, stratified by class."""

    file: str
    target: str
    rows: Rows
    classes: tuple  # those of all files, in the order of ``counts``
    codes: np.ndarray  # place of the class of each row in ``counts``
    counts: np.ndarray  # rows of each class in all files, (K,)
    without: int  # rows without a class, which are not among them

    def note(self, all_learned: bool) -> str:
        """Return the note that these rows are a sample, and that all rows are learned from besides, where they are."""
        classless = f"; {counted(self.without, 'row')} without a class left out" if self.without else ""
        learned = "; all of them are learned from, in batches" if all_learned else ""
        drawn = f"a sample of {len(self.codes)} of {self.counts.sum()} rows, stratified by class"
        return f"the files are large: these are {drawn}{learned}{classless}"

    def priors(self, labels, rows) -> np.ndarray:
        """Return the frequencies, in all files, of the classes that these rows of the sample have."""
        of = self.codes[rows]
        found = np.array([self.counts[of[(labels == label).argmax()]] for label in np.unique(labels)], float)
        return found / found.sum()


def sample(file: str, target: str, reading: Reading, seed: int) -> Sample:
    """Draw a sample of rows from all files in one pass, in memory that does not grow with them.

    Each class has its share of the rows, and some rows at least. Every row has a random number, and the rows with the
    smallest numbers of each class are kept. Where limits of detection are read, the first row with a limit in a column
    is kept too, so that the sample shows which columns hold some.
    """
    source, rng = source_of(file, reading), np.random.default_rng(seed)
    unlimited = set(source.columns) if reading.limits and isinstance(source, CsvFiles) else set()
    names, counts, without, pool, most = dict[Any, int](), np.zeros(0, int), 0, [], 2 * _SAMPLED
    largest = np.zeros(0)  # key of each class above which no row is kept
    for table in _tables(source):
        check_named(target, table.column_names)
        labels: Any = table.column(target).combine_chunks()
        labels = reading.numerals(target).meaning(labels) if isinstance(source, CsvFiles) else labels
        codes = _codes(labels, names, reading.missing)
        counts = np.pad(counts, (0, len(names) - len(counts))) + np.bincount(codes[codes >= 0], minlength=len(names))
        without += int((codes < 0).sum())
        largest = np.pad(largest, (0, len(names) - len(largest)), constant_values=np.inf)
        keys = rng.random(len(codes))
        for column in unlimited.copy():
            limits = limits_in(table.column(column), reading.numerals())
            if len(held := np.flatnonzero(limits & (codes >= 0))):
                keys[held[0]] = -1.0
                unlimited.remove(column)
        kept = np.flatnonzero((codes >= 0) & (keys < np.append(largest, 0.0)[codes]))
        pool.append((table.take(kept), codes[kept], keys[kept]))
        if sum(len(group) for _, group, _ in pool) > most:
            enough = np.maximum(np.ceil(2 * _SAMPLED * counts / counts.sum()), 4 * _FEWEST).astype(int)
            pool = [_fewest(pool, enough)]  # the share of a class in the sample is half of it, or falls
            most = 2 * len(pool[0][1]) + 2 * _SAMPLED
            np.maximum.at(key := np.zeros(len(names)), pool[0][1], pool[0][2])
            largest = np.where(np.bincount(pool[0][1], minlength=len(names)) == enough, key, largest)
    if not names:
        raise ValueError(f"no row is left: all lack {target}")
    share = np.round(_SAMPLED * counts / counts.sum()).astype(int)
    table, codes, _ = _fewest(pool, np.maximum(share, np.minimum(counts, _FEWEST)))
    return Sample(file, target, _rows(source, [table]), tuple(names), codes, counts, without)


def _codes(labels, names: dict[Any, int], missing: Sequence[str]) -> np.ndarray:
    """Return the code of each label, -1 where it is missing; labels that are not among ``names`` get the next codes."""
    coded: Any = labels if isinstance(labels, pa.DictionaryArray) else labels.dictionary_encode()
    places = coded.indices.fill_null(-1).to_numpy()
    distinct, codes = coded.dictionary.to_pylist(), np.full(len(coded.dictionary) + 1, -1)
    for place in np.flatnonzero(np.bincount(places[places >= 0])).tolist():
        label = distinct[place]
        if label is not None and label == label and str(label) not in ("", *missing):
            codes[place] = names.setdefault(label, len(names))
    return codes[places]


def _fewest(pool, most):
    """Return the rows of a pool with the smallest numbers of each class, at most so many, in their order."""
    table = pa.concat_tables([table for table, _, _ in pool], promote_options="permissive")
    codes, keys = (np.concatenate([kept[place] for kept in pool]) for place in (1, 2))
    kept = np.flatnonzero(pd.Series(keys).groupby(codes).rank("first").to_numpy() <= most[codes])
    return table.take(kept), codes[kept], keys[kept]


def batches(file: str, estimator, others: Sequence[str], reading: Reading, work: Callable[[Any, Any], Any]):
    """Yield ``work(X, frame)`` for all rows of large files in order: the columns of the fit, and others beside them."""
    schema = estimator.schema_
    used = schema.used().columns
    source = source_of(file, reading, used)
    source.declare(kinds_of(schema) | dict.fromkeys(others, "O"))
    for job in source.jobs(list(dict.fromkeys([*used, *others]))):  # a file may be all of the rows
        for frame in job.each(functools.partial(_frame, missing=reading.missing)):
            with located(job.place):
                yield work(redated(frame.reindex(columns=list(schema.columns)), schema, reading), frame)


class Cleaned(Source):
    """All rows of large files, with the columns that were kept of a sample of them, each of the type it had there.

    X are the columns of the sample, as `bayesgen.sheets.cleaning` made them, with the account of how it was written.
    Rows without a class are left out.
    """

    def __init__(self, file: str, target: str, X):
        self.reading = Reading.of(X)
        self._source, self._target, self._X = source_of(file, replace(self.reading, fractions={}), X.columns), target, X
        self._dates, self._missing = self.reading.dates, self.reading.missing
        known = {c: X[c].cat.categories if hasattr(X[c], "cat") else X[c] for c in X}
        kinds = {c: "O" if c in self._dates else kind_of_values(values) for c, values in known.items()}
        self._source.declare(kinds | {target: "O"})
        self.paths = self._source.paths

    def types(self, target, weight):
        return Survey({c: "f" if c in self._dates else kind_of_values(values) for c, values in self._X.items()})

    def jobs(self, columns=None):
        """Yield the parts of the files, with the columns of the classifier and the classes."""
        names = [name for name in (*self._X, self._target) if columns is None or name in columns]
        for job in self._source.jobs(names):
            yield replace(job, read=functools.partial(self._cleaned, job))

    def _cleaned(self, job):
        for batch in job.read():
            frame = _frame(batch, self._missing)
            frame = frame[frame[self._target].notna().to_numpy()]
            X = {column: self._typed(frame[column], column) for column in self._X if column in frame}
            yield frame.assign(**X)

    def _typed(self, values, column):
        if column in self._dates:
            return days(values.to_numpy(dtype=object), column, self._dates[column])
        known = self._X[column]
        if kind_of_values(known) == "b":
            return values.astype("boolean")
        if hasattr(values, "cat") or hasattr(known, "cat") or known.dtype.kind in "iuf":
            return values
        return values.astype(object).where(values.isna(), values.astype(str))
