"""Format of CSV files, as the options of the commands give it."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple


class Csv(NamedTuple):
    """Format of a CSV file: the separator of its columns, and how its numbers are written."""

    sep: str = ","
    decimal: str = "."
    thousands: str = ""
    limits: bool | Sequence[str] = False

    def options(self) -> dict[str, Any]:
        """Return the arguments of the reader of files."""
        return self._asdict() | {"sep": self._separator}

    def source(self, file: str, missing: Sequence[str] = (), limits: Collection[str] = ()):
        """Return the source of batches for a file, folder or pattern; ``limits`` are columns in which they are read."""
        from bayesgen.tables.sources import source_of

        return source_of(file, missing, self._separator, self.numerals(), limits)

    def limits_among(self, used: Collection[str]) -> list[str]:
        """Return the columns in which limits are read: where columns that are used tell them, or in all of these."""
        from bayesgen.tables.files import limited

        return [*limited(used), *(used if self.limits else ())]

    def numerals(self):
        """Return the way in which numbers are written, limits aside."""
        from bayesgen.tables.numerals import Numerals

        return Numerals(self.decimal, self.thousands)

    @property
    def _separator(self) -> str:
        return {"tab": "\t", "\\t": "\t"}.get(self.sep, self.sep)
