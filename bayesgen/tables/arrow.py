"""Arrow, imported where a file or a stream is read and nowhere else: of 170 MB, a fit in memory uses nothing."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import dataset, fs, parquet

    compute: Any  # its functions are made while it is imported: no type checker knows them
else:

    class _Late:
        """A module that is imported at the first look at one of its names."""

        def __init__(self, name):
            self._name = name

        def __getattr__(self, name):
            try:
                return getattr(importlib.import_module(self._name), name)
            except ModuleNotFoundError as error:  # where what only predicts was installed
                text = "files and streams are read by pyarrow, which is not installed: pip install pyarrow"
                raise ModuleNotFoundError(text, name=error.name) from None

    _PARTS = ("compute", "csv", "dataset", "fs", "parquet")
    pa, compute, arrow_csv, dataset, fs, parquet = map(_Late, ("pyarrow", *map("pyarrow.{}".format, _PARTS)))


def is_arrow(value: Any, *kinds: str) -> bool:
    """Return True for a value of one of these classes of pyarrow; where nobody imported it there is none.

    >>> is_arrow([1.0, 2.0], "Array", "ChunkedArray")
    False
    """
    there = sys.modules.get("pyarrow")
    return there is not None and isinstance(value, tuple(getattr(there, kind) for kind in kinds))
