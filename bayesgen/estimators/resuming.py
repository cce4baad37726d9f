"""A checkpoint of a long fit: a file of the sums so far, and of digests that identify the fit."""

import contextlib
import hashlib
import itertools
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from bayesgen.core.statistics import Statistics
from bayesgen.estimators.workers import added
from bayesgen.files import disk, storage
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.gaps import PatternMoments
from bayesgen.tables.batches import Job, Source
from bayesgen.tables.labels import declared_classes
from bayesgen.tables.rows import RowSchema, nothing
from bayesgen.tables.schema import Schema

_KEEP_EVERY = 30.0  # seconds between two writes
_AFTER = ("inference", "random_state")  # settings that act after the sums and change none
_ANEW = "give the same again, or delete the checkpoint to begin anew"
_SUMS = {"total": ClassStatistics, "done": int, "rows": int, "marks": str}
_KEPT = {"of": dict, "schema": Schema, "classes": np.ndarray, **_SUMS}


class _Sums(NamedTuple):
    """The sums over a source so far, as one value, so that no interrupt leaves it half updated."""

    total: ClassStatistics | None = None
    done: int = 0
    rows: int = 0
    marks: str = ""


class Checkpoint:
    """The sums so far of a fit of an estimator to a source, kept in a file if a path is given.

    ``arguments`` are the arguments of the fit that change a sum, by name. A file of another fit is refused with the
    differences; so is one that is damaged or no checkpoint. ``schema`` and ``classes`` are as in the file, or None.
    """

    def __init__(self, path, estimator, source: Source, arguments: Mapping[str, Any]):
        self.path = None if path is None else Path(path)
        self.schema, self.classes, self._sums, self._written = None, None, _Sums(), time.monotonic()
        self._there = False  # True once the file belongs to this fit
        if self.path is None:
            return
        settings = {k: v for k, v in estimator.get_params(deep=False).items() if k not in _AFTER}
        self._of = {
            "estimator": type(estimator).__name__,
            "settings": {name: storage.digest(value, name) for name, value in settings.items()},
            "arguments": {name: storage.digest(value, name) for name, value in arguments.items()},
            "source": [[name, known] for name, known in source.identity()],
        }
        if disk.destination(self.path, source.paths) is None:
            return
        found = storage.read_checkpoint(self.path, _own_leaves(settings, arguments))
        self._refuse(found.keys() != _KEPT.keys(), "its parts are not those of a checkpoint")
        for name, kind in _KEPT.items():
            self._refuse(type(found[name]) is not kind, f"{name} is a {type(found[name]).__name__}")
        if changed := list(_changes(found["of"], self._of)):
            raise ValueError(f"{self.path}: this checkpoint is of another fit: {'; '.join(changed)}; {_ANEW}")
        self._refuse(found["done"] < 1 or found["rows"] < 0, "it counts less than nothing")
        self._check(estimator, found["schema"], found["classes"], found["total"], arguments)
        self.schema, self.classes, self._there = found["schema"], found["classes"], True
        self._sums = _Sums(*(found[name] for name in _SUMS))

    @property
    def total(self) -> ClassStatistics | None:
        """The sum so far; None if nothing was summed."""
        return self._sums.total

    @property
    def rows(self) -> int:
        """Number of rows summed so far."""
        return self._sums.rows

    def mark(self, job: Job) -> str:
        """Return the mark of a part, or "" if no file is kept."""
        return "" if self.path is None else job.mark()

    def remaining(self, jobs: Iterator[Job]) -> Iterator[Job]:
        """Return the jobs still to be summed; raise a ValueError if the jobs before are not those already summed."""
        count, marks = 0, ""
        for job in itertools.islice(jobs, self._sums.done):
            count, marks = count + 1, _after(marks, self.mark(job))
        if count < self._sums.done:
            raise ValueError(f"{self.path}: this checkpoint has summed {self._sums.done} parts of {count}; {_ANEW}")
        if marks != self._sums.marks:
            raise ValueError(
                f"{self.path}: this checkpoint is of another source: its first {count} parts are not those that were "
                f"summed; {_ANEW}"
            )
        return jobs

    def add(self, found: ClassStatistics | None, rows: int, mark: str = "") -> None:
        """Add the statistics of the next part."""
        before = self._sums
        total, marks = added(before.total, found), _after(before.marks, mark)
        self._sums = _Sums(total, before.done + 1, before.rows + rows, marks)
        if self.path is not None and total is not None and time.monotonic() - self._written > _KEEP_EVERY:
            self._write()

    @contextlib.contextmanager
    def on_the_way(self, rows: RowSchema):
        """Write the sums so far if an exception, or an interrupt, ends the fit."""
        self.schema, self.classes = rows.schema, rows.classes
        try:
            yield
        except BaseException:
            if self.path is not None and self.total is not None:
                self._write()
            raise

    def remove(self) -> None:
        """Delete the file of this fit, which is complete."""
        if self.path is not None and self._there:
            Path(os.path.realpath(self.path)).unlink(missing_ok=True)

    def _write(self) -> None:
        known = {"of": self._of, "schema": self.schema, "classes": self.classes}
        storage.write_checkpoint(self.path, known | self._sums._asdict())
        self._written, self._there = time.monotonic(), True

    def _refuse(self, wrong: bool, why: str) -> None:
        if wrong:
            raise ValueError(f"{self.path}: this is no checkpoint of bayesgen: {why}; {_ANEW}")

    def _check(self, estimator, schema, classes, total, arguments) -> None:
        """Raise if the shapes of the sums do not follow from schema and classes, as in a forged file."""
        self._refuse(classes.ndim != 1, "classes are no list of labels")
        try:
            rows = row_schema_of(estimator, schema, declared_classes(classes), arguments["target"])
            right = np.array_equal(rows.classes, classes) and total.schema == rows.fingerprint
            right = right and _alike(total, nothing(rows))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
            raise ValueError(f"{self.path}: this is no checkpoint of bayesgen: {error!r:.300}; {_ANEW}") from error
        self._refuse(not right, "its sums are not those of its columns and classes")


def row_schema_of(estimator, schema: Schema, classes, target, weight=None) -> RowSchema:
    """Return the `RowSchema` by which workers sum rows for an estimator; the estimator stays as it is."""
    unfitted: Any = clone(estimator)
    unfitted.classes_ = classes
    return RowSchema(schema, classes, unfitted._template(schema), target, weight)


def _after(marks: str, mark: str) -> str:
    """Return the digest of the marks so far and the next one, which depends on their order."""
    return hashlib.sha256(f"{marks} {mark}".encode()).hexdigest()


def _own_leaves(settings, arguments) -> dict[str, type]:
    """Return the classes of leaves given to the fit, by name: a checkpoint may name these user classes."""
    features, schema = settings.get("features"), arguments["schema"]
    leaves = [*(features.values() if isinstance(features, Mapping) else ())]
    leaves += [block.leaf for block in schema.blocks] if isinstance(schema, Schema) else []
    return {type(leaf).__name__: type(leaf) for leaf in leaves if is_dataclass(leaf)}


def _changes(before, now) -> Iterator[str]:
    """Yield the differences between the fit of a checkpoint and this one."""
    if before.get("estimator") != now["estimator"]:
        yield f"of a {before.get('estimator')}, not a {now['estimator']}"
        return
    for kind, word in (("settings", "the classifier's"), ("arguments", "the argument")):
        was = before.get(kind)
        for name, digest in now[kind].items():
            if not isinstance(was, dict) or was.get(name) != digest:
                yield f"{word} {name}= is another"
    was, files = before.get("source"), now["source"]
    if was == files:
        return
    try:
        earlier, later = [name for name, _ in was], [name for name, _ in files]
        yield from (f"it read {name}, which is not read now" for name in earlier if name not in later)
        yield from (f"it did not read {name}" for name in later if name not in earlier)
        if {*earlier} != {*later}:
            return
        if earlier != later:
            yield "the files come in another order"
            return
        for (name, known), (_, found) in zip(was, files, strict=True):
            if other := [what for what, value in found.items() if known.get(what) != value]:
                yield f"{name} has changed ({', '.join(other)})"
    except (TypeError, ValueError, AttributeError):
        yield "the source is another"


def _alike(found: Any, like: Any) -> bool:
    """Return True if statistics are finite, with the types and shapes of others; patterns of gaps may differ."""
    if isinstance(found, PatternMoments):
        width, known = like.mean.shape[-1], found.patterns
        named = all(len(pattern) == width and set(pattern) <= {"0", "1"} for pattern in known)
        many = len(known) == len(set(known)) == len(found.moments.n) > 0
        return named and many and all(_alike(of_pattern, like) for of_pattern in found.by_pattern().values())
    if isinstance(like, Statistics):
        names = [field.name for field in fields(like)]
        return type(found) is type(like) and all(_alike(getattr(found, n), getattr(like, n)) for n in names)
    if isinstance(like, dict):
        return found.keys() == like.keys() and all(_alike(found[name], value) for name, value in like.items())
    if isinstance(like, str | bool):
        return found == like
    return np.shape(found) == np.shape(like) and bool(np.isfinite(found).all())
