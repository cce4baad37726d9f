"""Passes over data larger than memory: all cores read and process batches, and results are summed in order."""

import operator
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bayesgen.estimators.progress import bar
from bayesgen.numerics.checks import check_count
from bayesgen.tables.batches import DaskParts, Job, Source, located


def in_order(jobs: Iterable[Any], work: Callable[[Any], Any], workers: int | None = None) -> Iterator[Any]:
    """Yield ``work(job)`` for every job in order; several threads work at a time, and few jobs wait.

    The calling thread makes the jobs, so it goes on reading a stream while others are summed.
    """
    if workers is not None:
        check_count("workers", workers)
    workers = workers or os.cpu_count() or 1
    waiting: deque = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(work, job))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def total_of(source: Source, work, add, needed=None, progress=None, workers=None) -> Any:
    """Sum ``work(batch)`` over all batches, on threads or on the workers of a cluster; None if there is no batch."""

    def worked(job: Job):
        total = None
        with located(job.place):
            for batch in job.read():
                total = add(total, work(batch))
        return total

    if isinstance(source, DaskParts):
        return source.total(worked, add)
    total = None
    with bar("passes over the rows", None, progress):
        for found in in_order(source.jobs(needed), worked, workers):
            total = add(total, found)
    return total


def added(a, b, add=operator.add):
    """Add two values, either of which may be None for nothing."""
    return b if a is None else a if b is None else add(a, b)
