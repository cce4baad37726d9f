"""The memory there is: a request that does not fit is refused before it begins, with its size."""

import contextlib
import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def check_memory(what: str, size: int, cure: str) -> None:
    """Raise MemoryError if an array, called ``what``, of ``size`` bytes takes more than there is; say the ``cure``."""
    most = available()
    if most is not None and size > most:
        raise MemoryError(f"{what} would take {_gigabytes(size)} of memory, and there are {_gigabytes(most)}: {cure}")


def available() -> int | None:
    """Return the available memory in bytes: the lesser of the machine's and a container's limit, None if unknown."""
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
