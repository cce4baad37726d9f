"""Tables read from files as the command line reads them, with an account of what was made of each column."""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import InputError, Note, counted, named
from bayesgen.sheets import files
from bayesgen.sheets.cleaning import Prepared, Roles, prepare, split
from bayesgen.sheets.sources import kinds_of
from bayesgen.tables.columns import check_named, is_number
from bayesgen.tables.dates import moments
from bayesgen.tables.numerals import unread
from bayesgen.tables.reading import Reading
from bayesgen.tables.suspicions import record

_READ_AS = {"categorical": "category", **dict.fromkeys(("bernoulli", "count", "log", "number"), "number")}
_READ_AS |= dict.fromkeys(("drop", "id", "group", "order", "date"), "text")


@dataclass(frozen=True, eq=False)
class Account:
    """An account of a table that was read: what was left out, what was converted, and what is in doubt.

    Attributes
    ----------
    source : str
        The file.
    rows : int array, shape (n,)
        Position of each row of the table among the rows of the file, from 0; lines of sums and units are no rows.
    ids : DataFrame
        The columns that name the rows, with no column where there are none.
    features : dict from column to str
        Families of the columns whose type does not tell them, for ``NaiveBayesClassifier(features)``.
    notes : tuple of str
        One sentence on each thing that was done; ``str(account)`` has them in lines.
    suspicions : tuple of str
        Those of the notes to look at before a score is believed: columns that number the rows, hold 0 and 1 alone or
        tell the class, rows that repeat another, odd classes. Each names all that it is about.
    """

    source: str
    rows: np.ndarray
    ids: pd.DataFrame
    features: dict[str, str]
    notes: tuple[str, ...]
    suspicions: tuple[str, ...] = ()

    def __str__(self):
        others = [note for note in self.notes if note not in self.suspicions]
        return "\n  ".join([f"{self.source}: {counted(len(self.rows), 'row')}", *others, *record(self.suspicions)])


def read_table(
    path: "str | os.PathLike[str]",
    target: str | None = None,
    *,
    drop: str | Collection[str] = (),
    id: str | Collection[str] = (),
    number: str | Collection[str] = (),
    categorical: str | Collection[str] = (),
    count: str | Collection[str] = (),
    bernoulli: str | Collection[str] = (),
    log: str | Collection[str] = (),
    date: str | Collection[str] = (),
    missing: str | Collection[str] = (),
    same: str | Collection[str] = (),
    blank: str | Collection[str] = (),
    sep: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    limits: bool | None = None,
    units: Mapping[str, str] | None = None,
    date_order: str | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    fill_down: str | Collection[str] = (),
    like: Any = None,
) -> tuple[pd.DataFrame, Account]:
    r"""Read a CSV, Excel or Parquet file as the command line does, with its options and its account of the columns.

    Columns of text that name the rows, row numbers, constants and dates that are not asked for are left out, and all
    that is done is told. Percent signs are dropped; a gap is an empty field, and in a column of numbers NA, NaN and
    null too.

    Parameters
    ----------
    path : str or Path
        A file, compressed or not, in UTF-8 or UTF-16; a named pipe; or the name of a built-in data set.
    target : str, optional
        Column of the classes: its labels stay the text that stands there, and rows without one are left out.
    drop : str or collection of str
        Columns to leave out.
    id : str or collection of str
        Columns that name the rows: left out of the table, and kept in the account.
    number : str or collection of str
        Columns of numbers to keep, though they seem to number the rows.
    categorical, count, bernoulli, log : str or collection of str
        Columns of numbers that are categories; counts; 0 or 1; positive and skewed.
    date : str or collection of str
        Columns of dates to be used as numbers of days since 1970-01-01; months, quarters and weeks (2024-01, Jan 2024,
        2024-Q1, 2024-W05) are their first day.
    missing : str or collection of str
        Words for a gap, beside an empty field; ``"age=999,-9"`` has those of one column.
    same : str or collection of str
        Texts of a column that mean one, the first of them: ``"sex=m,M,male"``.
    blank : str or collection of str
        What an empty field of a column means: ``"tick=no"``.
    sep : str, optional
        What separates the fields of a line: by default that of , ; | and tab which alone gives every row as many
        fields, else a comma.
    decimal : {".", ","}, optional
        Sign before the fraction of a number. Where neither this nor ``thousands`` is given, both are taken from the
        file if it leaves one reading; else they are a point and none.
    thousands : {"", ".", ",", "'", " "}, optional
        Sign between the thousands of a number.
    limits : bool, default False
        True to read limits of detection as numbers: <0.5 as half of 0.5, and >9 as 9. A column of the same name with
        "_limit", of True and False, tells which entries are limits.
    units : mapping from column to str, optional
        What stands beside the numbers of a column, such as ``{"price": "€"}``, and is taken away; numbers without it
        are in this unit too. Where each number of a column has the same of the usual units it needs no word.
    date_order : {"dmy", "mdy", "ymd"}, optional
        Order of day, month and year in dates, where nothing in their column tells it.
    sheet : str, optional
        Sheet of an Excel file, by default the one that is not empty. Such files need the extra ``excel``.
    encoding : str, optional
        Encoding of text that is not UTF-8, such as ``"cp1252"`` of an older Windows.
    fill_down : str or collection of str
        Columns of merged cells, whose empty fields mean what stands above them.
    like : fitted estimator, optional
        Read a later file as the table of its fit: the same columns, written in the same way unless an argument says
        otherwise; all rows, and no roles of columns but ``id``.

    Returns
    -------
    table : pandas.DataFrame
        The columns to learn from, and the target as the last one. For a fit it carries an account of how the file was
        written, by which later files are read.
    account : Account
        What was done; ``print(account)`` tells it.

    Raises
    ------
    ValueError
        If there is no such file or column, or the file cannot be read; if nothing is left to learn from, or the target
        holds no two classes; with ``like``, if an entry contradicts the account of the fit.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import bayesgen as bg
    >>> lines = ["patient;rate;dose;result"] + [f"P{i};{10 + i},5%;1.{200 + i},5;{'ab'[i % 2]}" for i in range(12)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "clinic.csv"
    ...     _ = path.write_text("\n".join(lines))
    ...     table, account = bg.read_table(path, "result", id="patient", sep=";", decimal=",", thousands=".")
    >>> table.head(2)
       rate    dose result
    0  10.5  1200.5      a
    1  11.5  1201.5      b
    >>> account.notes
    ("rate: % dropped, as in '10,5%'",)
    >>> classifier = bg.NaiveBayesClassifier(account.features).fit(table[["rate", "dose"]], table["result"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "later.csv"
    ...     _ = path.write_text("dose;rate\n1.205,5;11,5%\n")
    ...     later, _ = bg.read_table(path, like=classifier)
    >>> later
       rate    dose
    0  11.5  1205.5
    """
    given = dict(drop=drop, id=id, number=number, categorical=categorical, count=count, bernoulli=bernoulli)
    given = {role: _several(columns) for role, columns in {**given, "log": log, "date": date}.items()}
    several = dict(missing=missing, same=same, blank=blank, fill_down=fill_down)
    options: dict[str, Any] = dict(sep=sep, decimal=decimal, thousands=thousands, limits=limits, units=units)
    options |= dict(date_order=date_order, sheet=sheet, encoding=encoding)
    options |= {option: _several(texts) for option, texts in several.items()}
    if like is not None and (said := [role for role, columns in given.items() if columns and role != "id"]):
        raise ValueError(f"{said[0]}= is of a fit; with like= the columns are those of the fit")
    if like is not None:
        return _later(os.fspath(path), target, like.schema_, given["id"], like.schema_.reading.given(**options))
    read, prepared = cleaned(os.fspath(path), target, "nb", given, Reading.said(**options))
    table = prepared.X if target is None else prepared.X.assign(**{target: prepared.y})
    features = prepared.features | dict.fromkeys(prepared.dates, "date")
    notes = (*prepared.suspicions, *read.notes, *prepared.notes)
    return table, Account(read.source, prepared.rows, prepared.names, features, notes, prepared.suspicions)


def _later(name: str, target: str | None, schema, ids: list[str], reading: Reading):
    used = schema.used().columns
    others = [*ids, *([] if target is None else [target])]
    read, X = read_like(schema, name, reading, others)
    X = X[list(used)].copy()
    for column in schema.reading.days:
        values: Any = X[column]
        X[column] = schema.reading.days_of(values.to_numpy(dtype=object), column)
    table = read.reading.attached(X if target is None else X.assign(**{target: read.table[target]}))
    names: Any = read.table[ids]
    return table, Account(read.source, np.arange(len(X)), names, {}, tuple(read.notes))


def read_like(
    schema, name: str, reading: Reading, others: Collection[str] = (), content: bytes | files.Rows | None = None
) -> tuple[files.TableFile, pd.DataFrame]:
    """Return a later file as it was read, with ``others`` of its columns, and the columns of the schema of a fit.

    Text categories and dates are text; ``reading`` and ``content`` are as in `files.read`. Raise ValueError, which
    names the column and mostly the row and its entry, where numbers are none.
    """
    used = schema.used().columns
    kinds: dict[str, Any] = {column: "text" if kind == "O" else "number" for column, kind in kinds_of(schema).items()}
    kinds |= dict.fromkeys(others, "text")
    read = files.read(name, kinds, reading, used=used, content=content)
    if absent := [column for column in used if column not in read.table.columns]:
        raise ValueError(f"{name}: lacks the columns {named(absent)} of the fit; it has {named(read.table.columns)}")
    if not len(read.table):
        raise ValueError(f"{name}: it has columns, but no rows")
    for column in others:
        check_named(column, read.table.columns)
    X = redated(read.table.reindex(columns=list(schema.columns)), schema, reading)  # one left out may be absent
    numeric = [c for b in schema.blocks if b.categories is None for c, kind in b.kinds.items() if kind != "O"]
    for column in numeric:
        seen = X[column].dropna()
        if schema.reading.in_days(column) and not read.reading.in_days(column) and X[column].dtype.kind in "iuf":
            raise ValueError(f"column {column!r} holds numbers, and the fit had durations there")
        X[column] = schema.reading.as_durations(X[column], column)
        numbers = X[column].dtype.kind in "iufm" or (X[column].dtype.kind == "b" and column in schema.bools)
        if numbers or column in schema.dates or not len(seen):
            continue
        if found := unread(seen.astype(str).unique()):
            how, unit = read.reading.numerals(), reading.units.get(column, found.unit)
            if found.unit and found.unit != unit:
                raise ValueError(f"column {column!r}: {found.entry!r} is not in {unit}, as the fit is; convert it")
            raise InputError(*Note(f"column {column!r} holds numbers as text", found.advice(column, how)).parts)
        words = ((row, value) for row, value in seen.items() if not (isinstance(value, str) and is_number(value)))
        row, word = next(words, (seen.index[0], seen.iloc[0]))
        raise ValueError(f"column {column!r}: {str(word)!r} in row {row} is no number, and the fit had numbers there")
    return read, X


def redated(X: pd.DataFrame, schema, reading: Reading) -> pd.DataFrame:
    """Return rows with dates in place of text, where these are said to be written in another order than at the fit."""
    others = [c for c, form in reading.dates.items() if form != schema.reading.dates.get(c) and c in X]
    return X.assign(**{c: moments(reading.days_of(X[c].to_numpy(dtype=object), c)) for c in others})


def cleaned(
    name: str,
    target: str | tuple[str, ...] | None,
    model: str,
    roles: Mapping[str, Iterable[str]],
    reading: Reading,
    content: bytes | files.Rows | None = None,
) -> tuple[files.TableFile, Prepared]:
    """Return a file as it was read, as `files.read` does, and the columns and classes of it, as `prepare` does."""
    of_roles = [(kind, roles.get(role, ())) for role, kind in _READ_AS.items()]
    kinds: dict[str, Any] = {column: kind for kind, values in of_roles for column in split(values)}
    kinds |= {column: kind for kind, values in of_roles for column in values}  # a name with commas, blanks and all
    kinds |= {target: "label"} if isinstance(target, str) else dict.fromkeys(target or (), "number")
    read = files.read(name, kinds, reading, content=content)
    targets = _several(target or ())
    features = [column for column in read.table.columns if column not in targets]
    return read, prepare(read.table, target, model, read.gaps, Roles.said(features, roles), read.reading, read.doubts)


def _several(names: str | Collection[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
