"""One thread of the BLAS, where matrices are small."""

import contextlib
import functools
import threading

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside, _limits = 0, None

_libraries = functools.cache(ThreadpoolController)  # to look for them takes longer than a small product


_NARROW, _WIDE = 16, 64  # columns; below, pieces of rows are small enough for one; above, a second gains on idle cores


def blas_threads(dim: int):
    """Threads for products of pieces of rows with square matrices of ``dim`` columns: one, or what the BLAS takes.

    At 20 columns and 1e5 rows on busy cores two threads took twelve times the CPU time, and three times as long.
    """
    return one_blas_thread() if _NARROW < dim <= _WIDE else contextlib.nullcontext()


@contextlib.contextmanager
def one_blas_thread():
    """Let the BLAS of NumPy and SciPy use one thread inside, in any number of threads at a time.

    Two wait for each other in a loop: on busy cores a search for a mode of 197 latents took 24 s with them, 8 of CPU
    time, and 1.2 with one. The setting is the process's, so it is put back when the last has left.
    """
    global _inside, _limits
    with _lock:
        if not _inside:
            _limits = _libraries().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _limits is not None:
                _limits.restore_original_limits()
