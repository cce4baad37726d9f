"""The common parts of every table: interleaved timing, a table of ratios, the floor.

Times of two contenders are comparable only where they are taken alternately on the same data: other work of the
machine then hits both. Each cell is the ratio of the medians, and the table says whether it meets its goal.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np


def medians(contenders: dict[str, Callable], repeats: int = 5, calls: int = 1, clock=perf_counter) -> dict[str, float]:
    """Median seconds of each contender, called in turn ``repeats`` times after one turn that is not counted.

    A turn is so many ``calls``; ``clock`` may be `time.process_time`, the seconds that cores worked for this process.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats + 1):
        for name, run in contenders.items():
            start = clock()
            for _ in range(calls):
                run()
            if turn:
                times[name].append((clock() - start) / calls)
    return {name: statistics.median(own) for name, own in times.items()}


def agree(what: str, ours, theirs, tolerance: float) -> None:
    """Stop where two answers that must be equal are not; called before anything is timed."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    error = np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())
    if not error <= tolerance:
        raise AssertionError(f"{what}: the answers differ by {error:.2g}, more than {tolerance:g}; nothing was timed")


def fresh(code: str) -> float:
    """Seconds a fresh process takes to run ``code``."""
    start = perf_counter()
    told(code)
    return perf_counter() - start


def told(code: str) -> str:
    """Return the output of a fresh process; modules that it imports are compiled already, as in installed packages."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return run.stdout


@dataclass
class Table:
    """Rows of one comparison.

    Attributes
    ----------
    title, note : str
        What is compared, and what the reader should know of it.
    """

    title: str
    note: str = ""
    rows: list[tuple[str, str, float, float | None, float | None]] = field(default_factory=list)

    def add(self, cell: str, peer: str, ratio: float, goal: float | None, floor: float | None = None) -> None:
        """Add a cell: how many times faster than ``peer``, its goal, and our time as a multiple of the floor."""
        self.rows.append((cell, peer, ratio, goal, floor))
        print("  ", *self._columns(self.rows[-1]), sep="  ", flush=True)

    @staticmethod
    def _columns(row) -> list[str]:
        cell, peer, ratio, goal, floor = row
        met = "" if goal is None else "yes" if ratio >= goal else "**no**"
        return [
            cell,
            peer,
            f"{ratio:.2g}x" if ratio < 10 else f"{ratio:.0f}x",
            "" if goal is None else f"{goal:g}x",
            met,
            "" if floor is None else f"{floor:.2g}",
        ]

    def markdown(self) -> str:
        """The table as Markdown."""
        head = ["cell", "against", "ratio", "goal", "met", "times the floor"]
        lines = [f"## {self.title}", "", self.note, "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        lines += ["| " + " | ".join(self._columns(row)) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"
