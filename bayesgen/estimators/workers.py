"""Passes over what is larger than memory: batches are read and worked on by all cores, and summed in their order."""

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
    """Yield ``work(job)`` of every job in order; some are worked on at a time, on threads, and few wait.

    Jobs are made by the thread that asks, so reading a stream goes on while others are summed.
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
    """Sum ``work(batch)`` of all batches, by threads or by the workers of a cluster; None where there are none."""

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
    """Sum of what may be None, which stands for nothing."""
    return b if a is None else a if b is None else add(a, b)


@contextlib.contextmanager
def bar(what: str, total: int | None, shown: bool | None):
    """Show a bar with rows a second on the standard error; gives the function that moves it by some rows."""
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
