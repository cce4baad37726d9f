"""Dask collections as a source: the workers of a cluster sum their partitions, and only sums travel, up a tree."""

from collections.abc import Callable, Sequence
from typing import Any

from bayesgen.tables.sources.base import Job, Source, told

_BRANCHES = 8  # of the tree of sums


class DaskParts(Source):
    """Partitions of a Dask collection, each a table or a tuple (X, y), as `dask.delayed` values.

    A partition whose worker dies is computed again by another, so the sums are what they would have been.
    """

    def __init__(self, parts: Sequence[Any]):
        self.parts = list(parts)

    def jobs(self, columns=None):
        """A partition each, computed one by one: for predictions that are wanted here."""
        for number, part in enumerate(self.parts):
            yield Job(f"partition {number}", lambda part=part: iter((part.compute(),)))

    def total(self, work: Callable[[Job], Any], add: Callable[[Any, Any], Any]) -> Any:
        """Sum ``work(job)`` of all partitions on the workers, by a tree; None where there is none."""
        from dask.base import compute
        from dask.delayed import delayed

        if not self.parts:
            return None
        values: list[Any] = [delayed(_worked)(work, i, part) for i, part in enumerate(self.parts)]
        while len(values) > 1:
            groups = [values[i : i + _BRANCHES] for i in range(0, len(values), _BRANCHES)]
            values = [delayed(_added)(add, group) for group in groups]
        return compute(values[0])[0]


def _worked(work, number: int, part):
    return work(Job(f"partition {number}", lambda: iter((part,))))


def _added(add, values):
    total = values[0]
    for value in values[1:]:
        total = add(total, value)
    return total


def parts_of(data: Any) -> DaskParts | None:
    """Partitions of a Dask DataFrame, of a tuple of Dask arrays (X, y), or of a list of delayed tables; else None."""
    if hasattr(data, "to_delayed") and hasattr(data, "map_partitions"):
        return DaskParts(data.to_delayed())
    if isinstance(data, tuple) and data and all(hasattr(a, "to_delayed") and hasattr(a, "chunks") for a in data):
        return DaskParts(_of_arrays(data))
    if isinstance(data, list) and data and all(hasattr(a, "dask") and hasattr(a, "compute") for a in data):
        return DaskParts(data)
    return None


def _of_arrays(arrays) -> list[Any]:
    """Delayed tuples of blocks of rows, cut alike."""
    from dask.delayed import delayed

    X, *others = arrays
    X = X.rechunk({1: -1})
    with told("Dask arrays"):
        if any(a.ndim != 1 or a.shape[0] != X.shape[0] for a in others):
            raise ValueError(f"expected X (n, columns) and y (n,), got the shapes {[a.shape for a in arrays]}")
    columns = [X.to_delayed()[:, 0], *(a.rechunk((X.chunks[0],)).to_delayed() for a in others)]
    return [delayed(tuple)(list(part)) for part in zip(*columns, strict=True)]
