"""What a source of batches is: it gives jobs, parts that can be read by themselves on any thread."""

import abc
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bayesgen.tables.survey import Survey

ROWS = 1 << 16  # of a batch: ten columns of float32 are 2.6 MB


@contextlib.contextmanager
def told(place: str):
    """What goes wrong inside is told with the name of the place."""
    try:
        yield
    except (ValueError, OSError, TypeError, KeyError) as error:  # those of pyarrow derive from these
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{place}: {' '.join(str(error).split())}") from error


def _unmarked() -> str:
    return ""


@dataclass(frozen=True)
class Job:
    """A part of a source.

    Attributes
    ----------
    place : str
        What to call it: "a.parquet, row group 3".
    read : callable () -> iterator of batches
        Reads it.
    mark : callable () -> str
        What tells whether it is still the same part, beside what the identity of the source says.
    """

    place: str
    read: Callable[[], Iterator[Any]]
    mark: Callable[[], str] = _unmarked


class Source(abc.ABC):
    """A source of rows in batches: files, a stream, or an iterator.

    Attributes
    ----------
    again : bool
        Whether it can be read more than once.
    rows : int or None
        How many rows it has, where that is known before they are read.
    paths : sequence of str
        The files of this machine that it reads.
    """

    again: bool = True
    rows: int | None = None
    paths: Sequence[str] = ()

    @abc.abstractmethod
    def jobs(self, columns: Sequence[str] | None = None) -> Iterator[Job]:
        """Parts in their order; ``columns`` are all that need be read."""

    def types(self, target, weight) -> Survey | None:
        """Kinds of the columns where types declare them; None where the rows must tell."""
        return None

    def identity(self) -> list[tuple[str, dict[str, Any]]]:
        """What tells whether it is still the same source: its files in order, with what is known of each."""
        return []

    def declare(self, kinds: dict[str, str]) -> None:  # noqa: B027 - most sources have types
        """Take what columns without a type hold, as in `Survey.kinds`."""
