"""Inputs and outputs of the commands: tables, estimators, and files that must not replace inputs."""

import contextlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesgen import data, decision
from bayesgen.cli import folders, formats
from bayesgen.core.errors import InputError, Note, listed, quoted
from bayesgen.files import disk, storage
from bayesgen.inference import INFERENCES
from bayesgen.sheets import files
from bayesgen.sheets.account import cleaned, read_like
from bayesgen.tables.reading import Reading


def inference(name: str):
    """Return an inference by its name, with its default settings."""
    if name not in INFERENCES:
        raise ValueError(f"no inference {name!r}; there are: {', '.join(sorted(INFERENCES))}")
    return INFERENCES[name]()


def load(path):
    """Return a saved estimator; a logistic or probit classifier is set to fill gaps, as `bayesgen fit` saves it."""
    estimator = storage.load(path)
    return estimator.set_params(missing="mean") if hasattr(estimator, "missing") else estimator


def with_classes(path: Path, estimator, what: str):
    """Return a saved estimator, or raise where it has no classes, in words that say what is asked of them."""
    if not hasattr(estimator, "classes_"):
        raise ValueError(f"{path}: {type(estimator).__name__} has no classes{what}")
    return estimator


def keep_inputs(output: Path, *inputs: str | Path | None, holds: tuple[str, Sequence[str]] | None = None) -> None:
    """Raise an error if writing would fail, or replace an input, by whatever name; called before anything is read.

    Inputs are files, built-in data sets, folders or patterns; None is nothing. ``holds`` says what the output will be,
    and how its name ends then.
    """
    if holds:
        formats.check_ending(output, *holds)
    standing = next((folder for folder in output.parents if folder.exists()), Path())
    if not standing.is_dir():
        raise ValueError(f"--output {standing}: it is a file, not a folder")
    if not output.parent.is_dir():  # it is made later, and what it will hold is free
        return
    read = [str(path) for path in inputs if path is not None]
    built_in = [data.path(path) for path in read if path in data.names() and not Path(path).is_file()]
    try:
        disk.destination(output, [*read, *built_in])
    except ValueError as error:
        raise ValueError(f"--output {error}") from None


def content(file: str, reading: Reading) -> bytes | files.Rows | None:
    """Return what to read in place of a file: the standard input, or the rows of a folder or pattern; else None."""
    return sys.stdin.buffer.read() if file == "-" else folders.joined(file, reading)


def prepared(
    file: str,
    target: str | tuple[str, ...] | None,
    model: str,
    reading: Reading,
    roles: Mapping[str, Sequence[str] | None],
    seed: int,
    batched: bool = False,
):
    """Return a table as it was read, the columns and classes to learn from, and of large files their sample, or None.

    ``batched`` says, for the account of the table, that all rows of large files are learned from besides.
    """
    summed = batched and model in ("nb", "shared", "full") and isinstance(target, str)
    large = target is not None and folders.outgrows(file, summed)
    if large and not isinstance(target, str):
        raise ValueError("--target-shares: the files are too large to be read whole; give a part of their rows")
    with warnings.catch_warnings(record=True) as told:  # of several files
        warnings.simplefilter("always")
        drawn = folders.sample(file, str(target), reading, seed) if large else None
        instead = drawn.rows if drawn else content(file, reading)
    given = {role: values or () for role, values in roles.items()}
    read, table = cleaned(file, target, model, given, reading, instead)
    if not table.X.shape[1]:
        raise InputError(Note("no column is left to learn from", *table.suspicions, *table.notes, between="; "))
    notes = ([drawn.note(batched)] if drawn else []) + [str(warning.message) for warning in told]
    return replace(read, notes=(*notes, *read.notes)), table, drawn


def columns_of_fit(estimator, file: str, reading: Reading, others: Sequence[str] = ()):
    """Return the file as it was read, with ``others`` of its columns, and the columns of the fit."""
    return read_like(estimator.schema_, file, reading, others, content(file, reading))


def classes(classifier, column):
    """Return the mask of the rows that have a class, and their classes, as the classifier names them."""
    rows = column.notna().to_numpy()
    known = {str(label): label for label in classifier.classes_.tolist()}
    return rows, [known.get(label, label) for label in column[rows]]


def losses(file: str | None, reading: Reading, classes: Sequence):
    """Return the loss of each action under each class, a DataFrame; without a file every mistake costs 1.

    The file has the classes in its first column; its separator is found by its first line. Costs that cannot be used
    are an error, before they are needed.
    """
    labels = {str(label): label for label in classes}
    if file is None:
        return pd.DataFrame(decision.zero_one(len(labels)), index=list(classes), columns=list(labels))
    read = _small_table(file, reading)
    first = read.columns[0]
    costs = read.set_index(read[first].astype(str)).drop(columns=first).rename(index=labels)
    form = "its first column holds the classes, its first line the actions, and beside them stand the costs"
    if costs.empty:
        raise ValueError(f"--loss {file}: there are no costs in it; {form}")
    numbers = costs.apply(pd.to_numeric, errors="coerce").astype(float)
    if not (good := np.isfinite(numbers.to_numpy())).all():
        row, column = np.argwhere(~good)[0]
        of = f"{quoted(costs.columns[column])} under {quoted(costs.index[row])}"
        what = "is missing" if pd.isna(value := costs.iloc[row, column]) else f"is {str(value)!r}, no number"
        raise ValueError(f"--loss {file}: the cost of {of} {what}; {form}. A forbidden action has a large cost")
    decision.act([[1 / len(classes)] * len(classes)], numbers, classes)  # where it has other classes
    return numbers


def costs(file: str | None, reading: Reading, columns: Sequence[str]) -> dict[str, float] | None:
    """Return the cost of asking for each column that a file names; None without a file."""
    if file is None:
        return None
    read = _small_table(file, reading)
    form = "its first line is column,cost; below it stand a column and a cost >= 0 in each line"
    if read.shape[1] != 2 or read.empty:
        raise ValueError(f"--cost {file}: expected two columns, got {read.shape[1]} with {len(read)} lines; {form}")
    names, numbers = read.iloc[:, 0].astype(str), np.asarray(pd.to_numeric(read.iloc[:, 1], errors="coerce"), float)
    for line, (name, number) in enumerate(zip(names, numbers, strict=True), 2):
        if name not in columns:
            raise ValueError(f"--cost {file}, line {line}: the model has no column {name!r}; it has {listed(columns)}")
        if not 0 <= number < np.inf:
            raise ValueError(f"--cost {file}, line {line}: the cost of {quoted(name)} is no number >= 0; {form}")
    if (twice := names.duplicated()).any():
        raise ValueError(f"--cost {file}: {quoted(names[twice].iloc[0])} is there twice; {form}")
    return dict(zip(names, numbers.tolist(), strict=True))


def _small_table(file: str, reading: Reading) -> Any:
    """Return a small table of numbers, whose columns the most frequent sign of its first line separates."""
    how = Reading(reading.sep, reading.decimal, reading.thousands)
    with contextlib.suppress(OSError, UnicodeDecodeError), open(file, encoding="utf-8") as opened:
        first = opened.readline()
        said = how != Reading() and how.sep in first
        if not said and (sep := max(",;\t|", key=first.count)) in first:
            how = Reading(sep, "." if sep == "," else ",")
    return files.read(file, reading=how, content=content(file, how)).table
