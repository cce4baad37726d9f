"""Ctrl-C while the command line imports the package, which takes seconds; only Python modules are imported here."""

import contextlib
import os
import signal
import sys
from pathlib import Path

EXIT_CODE = 130  # what a shell expects of a command that Ctrl-C ended


@contextlib.contextmanager
def ends_the_command():
    """Let Ctrl-C end the command line at once, with exit code 130 and no traceback; in other programs change nothing.

    A KeyboardInterrupt cannot be caught around imports: while a compiled module is imported it turns into other errors.
    """
    script_or_module = sys.orig_argv[-len(sys.argv) :][:1]  # `sys.argv[0]` changes while a module is found
    words = [Path(word.removeprefix("-m")).stem.removesuffix("-script") for word in script_or_module]
    before = signal.getsignal(signal.SIGINT)
    if words != ["bayesgen"] or before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_CODE))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
