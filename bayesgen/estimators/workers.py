"""Passes over data larger than memory: all cores read and process batches, and results are summed in order."""

import contextlib
import operator
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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


@contextlib.contextmanager
def bar(what: str, total: int | None, shown: bool | None):
    """Show a progress bar with rows per second on the standard error; yield the function that advances it by rows."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, force_terminal=shown)
    if not console.is_terminal:
        yield lambda rows: None
        return

    class Rate(ProgressColumn):
        def render(self, task):
            from rich.text import Text

            return Text(f"{task.speed or 0:,.0f} rows/s")

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda rows: progress.advance(task, rows)
