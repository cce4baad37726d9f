"""Tables in files: the one place that reads CSV, whose fields are text, and Parquet, whose columns have types."""

import base64
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayesgen import data
from bayesgen.core.errors import Argument, Informed, InputError, Note, counted, listed, named, quoted
from bayesgen.sheets.batches import located, without_index
from bayesgen.sheets.fields import ENDINGS, Fields, opened
from bayesgen.sheets.found import as_written
from bayesgen.tables import numerals
from bayesgen.tables.arrays import LARGEST
from bayesgen.tables.arrow import compute, pa, parquet
from bayesgen.tables.columns import check_distinct, check_named, is_number
from bayesgen.tables.description import of_labels
from bayesgen.tables.reading import Reading, limit_of
from bayesgen.tables.text import among, column_of
from bayesgen.tables.units import DURATION, unit_in

Kind = Literal["text", "number", "label", "category"]
PARQUET = (".parquet", ".pq")  # how their names end
_Found = tuple[dict, dict, list[str], Reading]  # columns, the spelling of their gaps, notes, and the account
CSV = (".csv", *(f".csv{end}" for end in ENDINGS.values()))


@dataclass(frozen=True)
class Rows:
    """Rows as they stand in files."""

    table: Any  # of pyarrow: text of CSV, columns with types of Parquet
    sep: str = ""  # what separates the fields of CSV; "" of Parquet
    notes: tuple[str | Note, ...] = ()


@dataclass(frozen=True)
class TableFile:
    """A table, and an account of how it was read."""

    table: pd.DataFrame  # numbers, bools, text as objects, declared categories
    source: str  # its name in messages
    gaps: dict  # spelling of each missing entry, by column: a Series by row
    notes: tuple[str, ...] = ()  # such as categories that Parquet does not keep
    reading: Reading = Reading()  # how it was written
    doubts: tuple[str, ...] = ()  # columns that have two readings, which are left out, with the options for each


def read(
    name: str,
    kinds: Mapping[str, Kind] | None = None,
    reading: Reading | None = None,
    *,
    used: Collection[str] | None = None,
    content: bytes | Rows | None = None,
) -> TableFile:
    """Read a file, or a built-in data set where no file has that name.

    In text only an empty field is missing, and the words that ``reading`` has for a gap; in a column of numbers NA, NaN
    and null are too. The reading is what the user says of a first file, or the account of the fit for a later one.
    Where limits are read, another column, of the same name with "_limit", tells which entries are limits.

    ``kinds`` of columns are "text"; "number"; "label": text unless a Parquet file declares its type; "category": the
    same, with numbers of a Parquet file made categories. Other columns are of the kind that their fields, or Parquet
    types, show. For a later file ``used`` are the columns that the fit used: what contradicts the account is an error,
    and columns without a kind are not looked at. A file that is read already has its ``content``; that of the name "-"
    is of the standard input.
    """
    reading, later, doubted = reading or Reading(), used is not None, ()
    missing = set(reading.words)
    path, source = Path(name), name
    if not path.is_file() and name in data.names():
        path, source = data.path(name), f"{name} (built in)"
    if content is None and not path.exists():
        raise ValueError(f"{name}: no such file, nor a built-in data set; built in are: {', '.join(data.names())}")
    source = "the standard input" if name == "-" else source
    with located(source):
        rows = content if isinstance(content, Rows) else _rows(path, content, reading, later)
        texts = zip(rows.table.column_names, (c.combine_chunks() for c in rows.table.columns), strict=True)
        table, declared = (list(texts), {}) if rows.sep else _parquet(rows.table)
        rows = replace(rows, table=None)  # or all of them would be in memory twice
        check_distinct(names := [column for column, _ in table])
    of_texts = Note(*map(Argument, ("missing", "same", "blank")), between=", ")
    said = {Argument("units"): reading.units, Argument("fill_down"): reading.fill_down, of_texts: reading.meant}
    for option, column in [] if later else [(option, column) for option, all_of in said.items() for column in all_of]:
        check_named(column, names, *getattr(option, "parts", (option,)), ": ")
    if not rows.sep:
        lacks = {name: missing.union(w for w, text in said.items() if not text) for name, said in reading.meant.items()}
        typed = {n: _parquet_column(v, n in declared, lacks.get(n, missing), (kinds or {}).get(n)) for n, v in table}
        columns, gaps = ({name: found[place] for name, found in typed.items()} for place in (0, 1))
        spans = [name for name, values in table if values.dtype.kind == "m"]
        for name in spans if later else ():
            columns[name] = dict(table)[name]  # which is compared with the fit
        notes, account = list(_lost_levels(columns, declared)), Reading(units=dict.fromkeys(spans, DURATION))
        if spans:
            notes.append(f"{named(spans)}: durations taken as numbers of days")
        texts = reading.numerals() != numerals.Numerals() or any(any(said.values()) for said in reading.meant.values())
        if (texts or reading.fill_down) and not later:
            arguments = map(Argument, ("decimal", "thousands", "limits", "same", "blank", "fill_down"))
            others = Note(*arguments, between=", ")
            notes.append(Note("Parquet, whose columns have types: ", others, " are for CSV"))
    else:
        wanted: dict[str, Kind] = {name: "text" for name, _ in table} if later else {}
        wanted |= kinds or {}
        reading = replace(reading, sep=reading.sep or rows.sep)
        with located(source):
            if used is None:
                table = _without_words(table, wanted, missing)
                reading, doubts, found = _of_first(dict(table), missing, wanted, reading)
            else:
                doubts, found = (), _of_fields(dict(table), missing, wanted, reading, reading.limited(used), later)
        (columns, gaps, notes, account), doubted = found, tuple(doubts)
        signs = {name: getattr(reading, name) for name in ("sep", "thousands", "plain", "limits")}
        account = replace(account, decimal=reading.decimal or ".", **signs)
    for name in () if later else columns:
        if words := _without_far(columns, gaps, name, table):
            reading = replace(reading, meant={**reading.meant, name: {**reading.meant.get(name, {}), **words}})
            notes.append(f"{quoted(name)}: {listed(words)} taken as missing: no number is used beyond {LARGEST:g}")
    kept = ("missing", "meant", "date_order", "sheet", "encoding", "fill_down")
    account = replace(account, **{name: getattr(reading, name) for name in kept})
    index = pd.RangeIndex(len(table[0][1]) if table else 0)
    frame = pd.DataFrame({name: values.array for name, values in columns.items()}, index=index)
    return TableFile(frame, source, gaps, (*rows.notes, *notes), account, doubted)


def _rows(path: Path, content: bytes | None, reading: Reading, later: bool) -> Rows:
    file = opened(path, content, reading.sheet, reading.encoding)
    if not file.parquet and content is None and path.suffix.lower() in PARQUET:
        raise ValueError("not readable as Parquet: it does not begin as such a file does")
    try:
        if file.parquet:
            whole = parquet.ParquetFile(file.open(), page_checksum_verification=True)
            return Rows(whole.read().replace_schema_metadata(whole.metadata.metadata))
        fields = Fields(file, reading.sep, later, reading.fill_down)
        table = pa.Table.from_batches(fields.blocks(), pa.schema([(column, pa.string()) for column in fields.names]))
        return Rows(table, fields.sep, (*fields.notes,))
    except (ValueError, OSError) as error:
        parts = error.parts if isinstance(error, Informed) else (str(error),)
        raise InputError(f"not readable as {'Parquet' if file.parquet else 'CSV'}: ", *parts) from None


def _without_far(columns: dict, gaps: dict, name: str, table: list) -> dict[str, str]:
    """Make gaps of the numbers of a column that no model takes, such as 1e999, and return their texts, as gaps."""
    values = columns[name]
    if values.dtype.kind != "f" or not (far := (values.abs() > LARGEST).fillna(False).to_numpy(bool)).any():
        return {}
    texts = pd.Series(next(texts for column, texts in table if column == name)).astype(str).str.strip()[far]
    columns[name], gaps[name] = values.mask(far), pd.concat([gaps[name], texts]).sort_index()
    return dict.fromkeys(texts.tolist(), "")


def _without_words(table: list, kinds: Mapping, missing: set) -> list[tuple[str, "pa.Array"]]:
    """Return columns with gaps for words in rows without a class, as of sums below the others, which are left out.

    The classes stay: the account of the table tells which word stands for a gap among them.
    """
    label = next((name for name, _ in table if kinds.get(name) == "label"), None)
    if label is None or not (lost := among(compute.utf8_trim_whitespace(dict(table)[label]), {"", *missing})).any():
        return table

    def without(texts):
        return compute.if_else(compute.and_(pa.array(lost), compute.match_substring_regex(texts, r"\pL")), "", texts)

    return [(name, texts if name == label else without(texts)) for name, texts in table]


def _of_first(
    table: dict, missing: set, kinds: Mapping, said: Reading, few: Mapping[str, numerals.Unread] | None = None
) -> tuple[Reading, Collection[str], _Found]:
    """Return how a first file is written, the doubts about columns, and what `_of_fields` returns.

    A column of numbers but for ``few`` entries has a gap for each of these that is no limit.
    """
    likely = {name: texts for name, texts in table.items() if kinds.get(name) in (None, "number")}
    words, limits, (reading, told, doubts) = shown(likely, missing, said, few or {})
    kept = {name: texts for name, texts in table.items() if name not in doubts or kinds.get(name)}
    columns, gaps, notes, account = _of_fields(kept, missing, kinds, reading, reading.limits or limits, False)
    texts = {name for name, values in columns.items() if values.dtype.kind not in "iuf"}
    read = {name: unread for name, unread in (few or {}).items() if name not in texts}
    if (few is None and (read := few_words(columns, kinds))) or read.keys() != (few or {}).keys():
        return _of_first(table, missing, kinds, said, read)
    for name in reading.bare:
        if kinds.get(name) is None and name in texts:
            raise numerals.without_unit(name, table[name], missing, reading.numerals(name))
    for name in filter(gaps.__contains__, words):
        rows = counted(int(gaps[name].isin(words[name]).sum()), "row")
        gone = f"{quoted(name)}: {listed(words[name])} in {rows} taken as missing among numbers; "
        told.append(Note(gone, Argument("categorical", [name]), " keeps them"))
    return reading, doubts.values(), (columns, gaps, [*told, *notes], account)


def shown(table: Mapping, missing: set, said: Reading, few: Mapping[str, numerals.Unread]):
    """Return the words among ``few`` entries, by column, the columns of limits, and `as_written` of all others."""
    words = {name: dict.fromkeys(unread.words, "") for name, unread in few.items() if unread.words}
    limits = [name for name, unread in few.items() if unread.how[0].limits]
    reading = replace(said, meant={**said.meant, **words})
    numbers = {name: reading.numerals(name).meaning(texts) for name, texts in table.items()}
    numbers |= {n: compute.replace_substring_regex(numbers[n], rf"^\s*{numerals.LIMIT}", "") for n in limits}
    return words, limits, as_written(numbers, missing, reading, reading.sep)


def few_words(columns: Mapping[str, pd.Series], kinds: Mapping) -> dict[str, numerals.Unread]:
    """Return how columns of text would be read that are numbers but for a hundredth of their entries, or three."""
    found = {}
    for name, values in columns.items():
        seen = values.dropna()
        if name in kinds or values.dtype.kind in "iufb" or not (verdict := of_labels(seen.unique(), len(seen))):
            continue
        if (how := verdict.unread) and how.share[0] > numerals.FEW and not any(map(unit_in, how.words)):
            odd = seen.isin(how.words) | seen.str.contains(numerals.LIMIT)
            found |= {name: how} if numerals.few(odd.sum(), len(seen)) else {}
    return found


def _of_fields(table: dict, missing: set, kinds: Mapping, reading: Reading, limits, later: bool) -> _Found:
    """Return the columns that text stands for, the spelling of their gaps, what there is to tell, and the account."""
    like = reading if later else Reading()
    columns, gaps, notes, percent, minus, units, doubts = {}, {}, [], {}, {}, {}, []
    fractions: dict[str, bool] = {}
    for name, fields in table.items():
        how = reading.numerals(name)
        kind = "text" if kinds.get(name) in ("label", "category") else kinds.get(name)
        wanted = limits is True or (limits is not False and name in limits and limit_of(name) not in table)
        how = replace(how, limits=wanted)
        found = numerals.read_column(fields, missing, kind, how, name)
        columns[name], gaps[name] = found.values, found.gaps
        percent |= {name: found.percent} if found.percent else {}
        minus |= {name: found.minus} if found.minus else {}
        units |= {name: found.unit} if found.unit else {}
        notes += _told(name, found, how, like)
        doubts += like.doubts(name, fields, found, how)
        if found.values.dtype.kind in "iuf":
            fractions[name] = bool(compute.any(compute.match_substring(fields, how.decimal)).as_py())
        if found.limited is None and (limits is True or not wanted):
            continue
        if limit_of(name) in table:
            raise ValueError(f"the limits of {name!r} would be told by {limit_of(name)!r}, which is there already")
        columns[limit_of(name)], gaps[limit_of(name)] = pd.Series(found.tells), pd.Series([], dtype=object)
    if doubts and not any(numerals.proves(table[name], reading.numerals(name)) for name in fractions):
        notes += doubts
    if new := [name for name in minus if name not in like.minus]:
        notes.insert(0, f"{named(new)}: read as numbers below 0, such as {minus[new[0]]!r}")
    if percent and like.percent is None:
        notes.insert(0, f"{named(percent)}: % dropped, as in {next(iter(percent.values()))!r}")
    clocks = [name for name in units if reading.units[name] == DURATION]
    beside = [name for name in units if name not in clocks]
    for what, names in (("the unit dropped", beside), ("durations read as days, hours before the colon", clocks)):
        if new := [name for name in names if name not in like.units]:
            notes.insert(0, f"{named(new)}: {what}, as in {units[new[0]]!r}")
    known = {name: unit for name, unit in reading.units.items() if later or name in fractions}
    bare = tuple(name for name in reading.bare if name in known)
    account = Reading(percent=tuple(percent), minus=tuple(minus), fractions=fractions, units=known, bare=bare)
    return columns, gaps, notes, account


def _told(name: str, column: numerals.Column, how: numerals.Numerals, like: Reading) -> Iterator[str]:
    """Yield notes on numbers that are written otherwise than programs write them, or otherwise than at the fit."""
    if column.limited is not None and not like.limits:
        count = counted(int(column.limited.sum()), "limit")
        told = f"read as numbers, below a limit > 0 as half of it; {quoted(limit_of(name))} tells which"
        yield f"{quoted(name)}: {count} such as {column.limit!r} {told}"
    if column.other and name not in like.units:
        yield f"{quoted(name)}: other powers of ten computed in {how.unit}, such as {column.other!r}"
    if name in like.changed:
        yield f"{quoted(name)}: read as it stands; the fit had other values than its file, so change it likewise"
    if column.apart:
        point = f"{quoted(name)} ambiguous: {column.apart!r} has a point, which was read as a comma would be; "
        yield Note(point, Argument("thousands", "."), " reads it as standing between thousands")


def _parquet(table) -> tuple[list[tuple[str, pd.Series]], dict[str, int | None]]:
    """Return the typed columns, and the number of levels of each that is declared as categories, None if not told."""
    whole = {getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")() for name in _WHOLE}
    schema, names = table.schema, table.column_names
    table = table.rename_columns([str(place) for place in range(len(names))]).replace_schema_metadata()
    frame = table.to_pandas(types_mapper=(whole | {pa.bool_(): pd.BooleanDtype()}).get)
    kept = set(without_index(schema))
    return [(n, frame.iloc[:, p]) for p, n in enumerate(names) if n in kept], declared_categories(schema)


def declared_categories(schema) -> dict[str, int | None]:
    """Return the columns that the schema of a Parquet file declares as categories, with their number where it has it.

    Parquet itself has dictionaries of text alone: a category of whole numbers is a column of whole numbers.
    """
    stored = (schema.metadata or {}).get(b"ARROW:schema")
    typed = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored))) if stored else schema
    declared: dict[str, int | None] = {field.name: None for field in typed if pa.types.is_dictionary(field.type)}
    for column in (schema.pandas_metadata or {}).get("columns", []):
        if column.get("pandas_type") == "categorical" and column.get("metadata"):
            declared[column["field_name"]] = column["metadata"].get("num_categories")
    return declared


_WHOLE = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")  # that keep 2^53 + 1 beside a gap


def _parquet_column(column, declared: bool, missing: set, kind: Kind | None) -> tuple[pd.Series, pd.Series]:
    categories = isinstance(column.dtype, pd.CategoricalDtype)
    gone = column.isna().to_numpy(dtype=bool)
    if kind == "text":
        return column_of(column.astype(object).map(str).where(~gone, ""), missing, "text")
    holds = "" if categories else pd.api.types.infer_dtype(column, skipna=True)
    if holds == "decimal":
        column = column.astype(float)
    if column.dtype.kind == "m":
        column = column / pd.Timedelta(days=1)
    if holds == "string" and not declared:
        return column_of(column.astype(object).where(~gone, ""), missing, "number" if kind == "number" else "text")
    named = named_gaps(column, missing) & ~gone
    if not categories and (declared or (kind == "category" and column.dtype.kind in "iufb")):
        column, categories = column.astype("category"), True
    spelled = column[gone | named].astype(object).map(str).where(named[gone | named], "")
    column = column.mask(named) if named.any() else column
    if not (gone | named).any() and column.dtype.kind in "iub" and not categories:
        column = column.astype(column.dtype.name.lower().replace("boolean", "bool"))
    return column, spelled


def named_gaps(column: pd.Series, missing: Collection[str]) -> np.ndarray:
    """Return the mask of the entries of a typed column that words for a gap name; numbers are compared as numbers."""
    if column.dtype.kind in "iuf":
        return column.isin([float(word) for word in missing if is_number(word)]).to_numpy(dtype=bool)
    return column.astype(object).map(str).isin(missing).to_numpy()


def _lost_levels(columns, declared):
    """Yield the declared categories that Parquet did not keep: without a row, and of other types than text."""
    for name, count in declared.items():
        levels = columns[name].cat.categories if name in columns and hasattr(columns[name], "cat") else []
        if count is not None and len(levels) < count:
            lost = f"{counted(count - len(levels), 'declared level')} not in the file"
            kept = f"which keeps those without a row for text alone; there are {listed(levels)}"
            yield f"{quoted(name)}: {lost}, {kept}"
