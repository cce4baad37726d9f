"""Long work: passes over data larger than memory on all cores, and bars that show how far a call has come."""

import contextlib
import functools
import operator
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

from bayesgen.numerics.checks import check_count
from bayesgen.sheets.batches import DaskParts, Job, Source, located

_PATIENCE = 2.0  # seconds without a bar of stages


def in_order(jobs: Iterable[Any], work: Callable[[Any], Any], workers: int | None = None) -> Iterator[Any]:
    """Yield ``work(job)`` for every job in order; several threads work at a time, and few jobs wait.

    The calling thread makes the jobs, so it goes on reading a stream while others are summed.
    """
    if workers is not None:
        check_count("workers", workers)
    workers = workers or os.cpu_count() or 1
    waiting: deque = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        for job in jobs:
            waiting.append(pool.submit(work, job))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # without waiting: a generator that nobody reads to its end may be closed on one of these threads
        pool.shutdown(wait=False, cancel_futures=True)


def added(a, b, add=operator.add):
    """Add two values, either of which may be None for nothing."""
    return b if a is None else a if b is None else add(a, b)


def total_of(source: Source, work, what: str, rows=None, add=added, needed=None, progress=None, workers=None) -> Any:
    """Sum ``work(batch)`` over all batches, on threads or on the workers of a cluster.

    Errors name the place of the batch. Beside the bar, which counts as many ``rows``, stands ``what``.
    """

    def worked(job: Job):
        total, count = None, 0
        with located(job.place):
            for batch in job.read():
                total = add(total, work(batch))
                count += len(batch[1] if isinstance(batch, tuple) else batch)
        return job.place, total, count

    def both(a, b):
        with located(b[0]):
            return b[0], add(a[1], b[1]), b[2]

    total: Any = None
    if isinstance(source, DaskParts):
        total = source.total(worked, both)
    else:
        with bar(what, rows, progress) as advance:
            for found in in_order(source.jobs(needed), worked, workers):
                total = added(total, found, both)
                advance(found[2])
    if total is None or total[1] is None:
        raise ValueError("the source has no rows: at least one is needed")
    return total[1]


@contextlib.contextmanager
def bar(what: str, total: int | None, shown: bool | None):
    """Show a bar with rows per second on the standard error; yield the function that advances it by rows."""
    done, start = 0, perf_counter()
    with stages(what, shown, 0.0) as stage:

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            stage(done, total, f"{done:,}, {done / (perf_counter() - start):,.0f} rows/s")

        yield advance


@contextlib.contextmanager
def stages(what: str, shown: bool | None, patience: float | None = None):
    """Show a bar once the work has taken two seconds, or so many; a quick call never waits for the import of Rich.

    The function that it yields takes the number of stages done, their total, and the name of the next.
    """
    start, update = perf_counter(), None

    def stage(done: int, total: int | None, text: str) -> None:
        nonlocal update, shown
        if shown is False or perf_counter() - start < (_PATIENCE if patience is None else patience):
            return
        if update is None:
            from rich.console import Console
            from rich.progress import Progress

            console = Console(stderr=True, force_terminal=shown)
            if not console.is_terminal:
                shown = False
                return
            progress = line.enter_context(Progress(console=console, transient=True))
            update = functools.partial(progress.update, progress.add_task(what, total=None))
        update(completed=done, total=total, description=f"{what}: {text}")

    with contextlib.ExitStack() as line:
        yield stage
