"""Tables in files: the one place that reads CSV, whose fields are text, and Parquet, whose columns have types."""

import base64
import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from bayesgen.core.errors import counted, listed, quoted
from bayesgen.tables.batches import located
from bayesgen.tables.fields import Fields
from bayesgen.tables.numerals import Column, Numerals, read_column
from bayesgen.tables.opening import ENDINGS, Opened, opened
from bayesgen.tables.text import column_of

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["text", "number", "label", "category"]
PARQUET = (".parquet", ".pq")  # how their names end
CSV = (".csv", *(f".csv{end}" for end in ENDINGS.values()))


@dataclass(frozen=True)
class TableFile:
    """A table, and an account of how it was read.

    Attributes
    ----------
    table : DataFrame
        Its columns: numbers, bools, text as objects, declared categories.
    source : str
        Its name in messages.
    path : Path
        The file.
    gaps : dict
        Spelling of each missing entry, by column: a Series by row.
    notes : tuple of str
        Losses, such as categories that Parquet does not keep.
    """

    table: "pd.DataFrame"
    source: str
    path: Path
    gaps: dict
    notes: tuple[str, ...] = ()


def read(
    name: str,
    missing: Collection[str] = (),
    kinds: Mapping[str, Kind] | None = None,
    *,
    sep: str = ",",
    decimal: str = ".",
    thousands: str = "",
    limits: bool | Collection[str] = False,
    content: bytes | None = None,
) -> TableFile:
    """Read a file, or a built-in data set where no file has that name.

    In text only an empty field is missing, and what ``missing`` names; in a column of numbers NA, NaN and null are too.

    Parameters
    ----------
    name : str
        A CSV or Parquet file, or a built-in data set.
    missing : collection of str
        Words for a gap, beside an empty field.
    kinds : mapping from column to kind, optional
        "text"; "number"; "label": text unless a Parquet file declares its type; "category": the same, with numbers of
        a Parquet file made categories. Of columns left out the fields, or the Parquet types, tell.
    sep : str, default ","
        Separator of the fields in a line of CSV.
    decimal, thousands
        Signs before the fraction and between the thousands of a number in CSV, see `Numerals`.
    limits : bool or collection of str
        True to read <0.5 in columns of numbers of CSV, or the columns in which to; see `Numerals`. Another column, of
        the same name with "_limit", tells which entries are limits.
    content : bytes, optional
        Content of the file, where it is read already, as from the standard input.

    Raises
    ------
    ValueError
        If there is no such file, or it cannot be read, or a column is there twice.
    """
    import pyarrow as pa

    from bayesgen import data

    how = Numerals(decimal, thousands, bool(limits))
    path, source = Path(name), name
    if not path.is_file() and name in data.names():
        path, source = data.path(name), f"{name} (built in)"
    if content is None and not path.exists():
        raise ValueError(f"{name}: no such file, nor a built-in data set; built in are: {', '.join(data.names())}")
    source = "the standard input" if content is not None else source
    declared: dict[str, int | None] = {}
    with located(source):
        file = opened(path, content)
        if not file.parquet and content is None and path.suffix.lower() in PARQUET:
            raise ValueError("not readable as Parquet: it does not begin as such a file does, with PAR1")
        try:
            if file.parquet:
                table, declared = _parquet(file.open())
            else:
                fields = Fields(file, sep)
                schema = pa.schema([(column, pa.string()) for column in fields.names])
                whole = pa.Table.from_batches(fields.blocks(), schema)
                table = [(column, whole.column(place).combine_chunks()) for place, column in enumerate(fields.names)]
        except (ValueError, OSError) as error:
            raise ValueError(f"not readable as {'Parquet' if file.parquet else 'CSV'}: {error}") from None
    twice = [column for column, count in Counter(column for column, _ in table).items() if count > 1]
    if twice:
        raise ValueError(f"{name}: the column {twice[0]!r} is there twice; rename one")
    columns, gaps, missing, kinds, told = {}, {}, set(missing), kinds or {}, _Told()
    names = {column for column, _ in table}
    for column, fields in table:
        kind = kinds.get(column)
        if file.parquet:
            columns[column], gaps[column] = _parquet_column(fields, column in declared, missing, kind)
            continue
        wanted = limits is True or (limits is not False and column in limits and limit_of(column) not in names)
        own = how if wanted else replace(how, limits=False)
        found = read_column(fields, missing, "text" if kind in ("label", "category") else kind, own)
        columns[column], gaps[column] = found.values, found.gaps
        told.add(column, found)
        if found.limited is not None or (wanted and limits is not True):
            _put_limits(columns, gaps, column, found, names)
    rows = len(table[0][1]) if table else 0
    notes = [*told, *_lost_levels(columns, declared), *([] if content is not None else _misnamed(path, file))]
    return TableFile(_frame(columns, rows), source, path, gaps, tuple(notes))


class _Told(list):
    """Notes on numbers that were not written as programs write them."""

    def add(self, name: str, column: Column) -> None:
        """Note what was done to a column."""
        if column.percent:
            self.append(f"{quoted(name)}: % dropped, as in {column.percent!r}")
        if column.limited is not None:
            count = counted(int(column.limited.sum()), "limit")
            self.append(
                f"{quoted(name)}: {count} such as {column.limit!r} read as numbers, below a limit as half of it; "
                f"{quoted(limit_of(name))} tells which"
            )
        if column.apart:
            self.append(
                f"{quoted(name)} ambiguous: {column.apart!r} has a point, which was read as a comma would be; "
                "--thousands '.' reads it as standing between thousands"
            )


def limit_of(column: str) -> str:
    """Return the name of the column that tells which entries of a column are limits."""
    return f"{column}_limit"


def _put_limits(columns: dict, gaps: dict, column: str, found: Column, others) -> None:
    """Put the column that tells which entries are limits beside its own."""
    import pandas as pd

    if (name := limit_of(column)) in others:
        raise ValueError(f"the limits of the column {column!r} would be told by {name!r}, which is there already")
    limited = np.zeros(len(found.values), bool) if found.limited is None else found.limited
    columns[name], gaps[name] = pd.Series(limited), pd.Series([], dtype=object)


def _misnamed(path: Path, file: Opened):
    """Yield what the name of a file does not say of its content."""
    if file.parquet and path.suffix.lower() not in PARQUET:
        yield "Parquet, which its name does not say"
    if file.compressed and path.suffix.lower() != ENDINGS[file.compressed]:
        yield f"compressed by {file.compressed}, which its name does not say"


def _frame(columns, rows):
    import pandas as pd

    return pd.DataFrame(columns, index=pd.RangeIndex(rows))


def _parquet(path) -> tuple["list[tuple[str, pd.Series]]", dict[str, int | None]]:
    """Return the typed columns, and the columns declared as categories with their number where the file has it."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import parquet

    whole = {getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")() for name in _WHOLE}
    file = parquet.ParquetFile(path, page_checksum_verification=True)
    table, metadata = file.read(), file.metadata.metadata or {}
    names = table.column_names
    pandas = json.loads(metadata.get(b"pandas", b"{}"))
    index = {name for name in pandas.get("index_columns", []) if isinstance(name, str)}
    table = table.rename_columns([str(place) for place in range(len(names))]).replace_schema_metadata()
    frame = table.to_pandas(types_mapper=(whole | {pa.bool_(): pd.BooleanDtype()}).get)
    kept = [place for place, name in enumerate(names) if name not in index]
    return [(names[place], frame.iloc[:, place]) for place in kept], declared_categories(metadata)


def declared_categories(metadata: Mapping[bytes, bytes] | None) -> dict[str, int | None]:
    """Return the columns that the metadata of a Parquet file declares as categories, with their number where it has it.

    Parquet itself has dictionaries of text alone: a category of whole numbers is a column of whole numbers.
    """
    import pyarrow as pa

    metadata, declared = metadata or {}, {}
    if b"ARROW:schema" in metadata:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(metadata[b"ARROW:schema"])))
        declared = {field.name: None for field in schema if pa.types.is_dictionary(field.type)}
    for column in json.loads(metadata.get(b"pandas", b"{}")).get("columns", []):
        if column.get("pandas_type") == "categorical" and column.get("metadata"):
            declared[column["field_name"]] = column["metadata"].get("num_categories")
    return declared


_WHOLE = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")  # that keep 2^53 + 1 beside a gap


def _parquet_column(column, declared: bool, missing: set, kind: Kind | None) -> tuple["pd.Series", "pd.Series"]:
    """Return a column of a Parquet file, and the spelling of its gaps."""
    import pandas as pd

    categories = isinstance(column.dtype, pd.CategoricalDtype)
    gone = column.isna().to_numpy(dtype=bool)
    if kind == "text":
        return column_of(column.astype(object).map(str).where(~gone, ""), missing, "text")
    holds = "" if categories else pd.api.types.infer_dtype(column, skipna=True)
    if holds == "decimal":
        column = column.astype(float)
    if holds == "string" and not declared:
        return column_of(column.astype(object).where(~gone, ""), missing, "number" if kind == "number" else "text")
    numbers = column.dtype.kind in "iuf"
    if not categories and (declared or (kind == "category" and column.dtype.kind in "iufb")):
        column, categories = column.astype("category"), True
    texts = column.astype(object).map(str)
    named = texts.isin(missing).to_numpy() & ~gone
    if numbers:
        named |= column.isin([float(word) for word in missing if _is_number(word)]).to_numpy(dtype=bool) & ~gone
    spelled = texts.where(named, "")[gone | named]
    column = column.mask(named) if named.any() else column
    if not (gone | named).any() and column.dtype.kind in "iub" and not categories:
        column = column.astype(column.dtype.name.lower().replace("boolean", "bool"))
    return column, spelled


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _lost_levels(columns, declared):
    """Yield the declared categories that Parquet did not keep: without a row, and of other types than text."""
    for name, count in declared.items():
        levels = columns[name].cat.categories if name in columns and hasattr(columns[name], "cat") else []
        if count is not None and len(levels) < count:
            yield (
                f"{quoted(name)}: {counted(count - len(levels), 'declared level')} not in the file, which keeps those "
                f"without a row for text alone; there are {listed(levels)}"
            )
