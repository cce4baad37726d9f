"""Bars on the standard error that show how far a long call has come."""

import contextlib
from time import perf_counter

_PATIENCE = 2.0  # seconds that nobody needs to be told about


def _terminal(shown: bool | None):
    """Return the console of the standard error, or None where no bar belongs."""
    from rich.console import Console

    console = Console(stderr=True, force_terminal=shown)
    return console if console.is_terminal else None


@contextlib.contextmanager
def bar(what: str, total: int | None, shown: bool | None):
    """Show a progress bar with rows per second on the standard error; yield the function that advances it by rows."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

    console = _terminal(shown)
    if console is None:
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


@contextlib.contextmanager
def stages(what: str, shown: bool | None):
    """Show a bar once the work has taken two seconds; a quick call never waits for the import of Rich.

    The function that it yields takes the number of stages done, their total, and the name of the next.
    """
    start, task, line = perf_counter(), None, contextlib.ExitStack()

    def stage(done: int, total: int, text: str) -> None:
        nonlocal task, shown
        if shown is False or perf_counter() - start < _PATIENCE:
            return
        if task is None:
            from rich.progress import Progress

            console = _terminal(shown)
            if console is None:
                shown = False
                return
            progress = line.enter_context(Progress(console=console, transient=True))
            task = progress, progress.add_task(what)
        progress, place = task
        progress.update(place, completed=done, total=total, description=f"{what}: {text}")

    with line:
        yield stage
