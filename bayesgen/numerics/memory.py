"""What fits in memory: a request that cannot is refused before it is begun, with its size."""

import contextlib
import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def check_memory(what: str, size: int, cure: str) -> None:
    """Raise where an array would take more than there is.

    Parameters
    ----------
    what : str
        What it is, as the message begins.
    size : int
        Bytes.
    cure : str
        What to do about it, as the message ends.

    Examples
    --------
    >>> check_memory("a table", 10**18, "ask for less")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    MemoryError: a table would take 1000000000 GB of memory, and there are ... GB: ask for less
    """
    most = available()
    if most is not None and size > most:
        raise MemoryError(f"{what} would take {_gigabytes(size)} of memory, and there are {_gigabytes(most)}: {cure}")


def available() -> int | None:
    """Bytes that can be had, as far as the system says: what is free of the machine's, and a container's limit."""
    found = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]))
    for limit in _LIMITS:
        with contextlib.suppress(OSError, ValueError):  # "max" is no number
            found.append(int(Path(limit).read_text()))
    if not found:
        with contextlib.suppress(AttributeError, OSError, ValueError):  # elsewhere than on POSIX
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)


def _gigabytes(size: int) -> str:
    value = size / 1e9
    return f"{value:.0f} GB" if value >= 10 else f"{value:.2g} GB"
