"""The fields of CSV files as text: the one reader, for tables in memory and for batches.

Arrow reads what it can, block by block and eight times as fast as pandas, which reads the rest as a stream: rows that
are too short, a row longer than a block, a single column (where a blank line is a gap), and files with faults.
"""

import contextlib
import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import csv as arrow_csv

from bayesgen.tables.opening import Opened, damaged

_BYTES = 1 << 23  # of a block
_ROWS = 1 << 16  # of a piece of the stream


class Fields:
    """The fields of one file, all of them text.

    Parameters
    ----------
    file : Opened
        Text.
    sep : str
        What separates the fields of a line.

    Attributes
    ----------
    names : list of str
        The header, with names for columns that have none.

    Raises
    ------
    ValueError
        If the file is empty, is no text in UTF-8, or seems to have another separator.
    """

    def __init__(self, file: Opened, sep: str = ","):
        if len(sep) != 1:
            raise ValueError(f"a separator is one character, such as ';' or a tab, not {sep!r}")
        self._file, self._sep = file, sep
        self._above, header = self._header()
        if len(header) == 1 and (others := [other for other in ";\t|" if other != sep and other in header[0]]):
            given = "tab" if others[0] == "\t" else repr(others[0])
            raise ValueError(f"one column, whose name holds {others[0]!r}: give --sep {given}")
        self.names = [name or f"Unnamed: {place}" for place, name in enumerate(header)]

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield record batches of the rows below the header, of all columns or of some."""
        names = self.names if columns is None else list(columns)
        places = list(range(len(names))) if columns is None else [self.names.index(name) for name in names]
        header = 1
        with self._told():
            for part in self._rows(places):
                if len(part) > header:
                    yield pa.RecordBatch.from_arrays(part[header:].columns, names)
                header = 0 if len(part) else header

    def _header(self) -> tuple[int, list[str]]:
        """Return the number of blank lines at the beginning, and the fields of the line below them."""
        with self._told(), self._file.open() as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
            try:
                for above, row in enumerate(csv.reader(text, delimiter=self._sep)):
                    if len(row) > 1 or (row and row[0].strip()):
                        return above, row
            except csv.Error as error:
                raise ValueError(f"its first line is no header: {error}") from None
        raise ValueError("the file is empty")

    def _rows(self, places: list[int]) -> Iterator[Any]:
        """Yield record batches of some columns, the header among the rows."""
        read = 0
        if len(self.names) > 1:
            with contextlib.suppress(pa.ArrowInvalid):  # a block that cannot be cut: the stream goes on behind it
                for block in self._by_arrow(places):
                    yield block
                    read += len(block)
                return
        for part in self._by_pandas(places):
            yield part[read:]
            read = max(read - len(part), 0)

    def _by_arrow(self, places: list[int]) -> Iterator[Any]:
        names = [str(place) for place in range(len(self.names))]
        reading = arrow_csv.open_csv(
            self._file.open(),
            arrow_csv.ReadOptions(block_size=_BYTES, column_names=names),
            arrow_csv.ParseOptions(delimiter=self._sep, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), include_columns=[names[place] for place in places]
            ),
        )
        with reading as blocks:
            yield from blocks

    def _by_pandas(self, places: list[int]) -> Iterator[Any]:
        """Yield pieces of a stream; the header is a row, since pandas would rename a name that is there twice."""
        how: dict = {"header": None, "dtype": str, "na_filter": False, "encoding": "utf-8-sig", "sep": self._sep}
        if len(self.names) == 1:  # where a blank line is a row
            how |= {"skip_blank_lines": False, "skiprows": self._above}
        with self._file.open() as file:
            source = io.BytesIO(file.read()) if self._file.compressed else file  # pandas hides the errors of a stream
            reading: Any = pd.read_csv(source, **how, chunksize=_ROWS)  # by the stubs it is a DataFrame
            with reading as pieces:
                for piece in pieces:
                    if piece.shape[1] != len(self.names):
                        raise ValueError(f"{piece.shape[1]} fields in a row, where the header has {len(self.names)}")
                    texts = [pa.array(piece.iloc[:, place], pa.string(), from_pandas=True) for place in places]
                    yield pa.RecordBatch.from_arrays([text.fill_null("") for text in texts], list(map(str, places)))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Say what is wrong with a file in place of what a decoder or a decompressor says."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise ValueError(
                f"its text is not UTF-8 (byte {error.start}), but perhaps that of an older Windows: save it as "
                "'CSV UTF-8', or convert it by iconv -f windows-1252 -t utf-8"
            ) from None
        except OSError as error:
            if not self._file.compressed:
                raise
            raise ValueError(damaged(self._file.compressed, error)) from error
