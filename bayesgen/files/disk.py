"""Files that are written whole or not at all."""

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def regular(path) -> os.stat_result | None:
    """Return the status of the regular file at a path, through links; None where nothing is there.

    Raise ValueError if anything else is there: it is neither read, which may never end, nor replaced.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise ValueError(f"{path}: this is {kind}; expected a regular file, or for saving a name that is free")
    return found


def destination(path, inputs: Iterable = ()) -> os.stat_result | None:
    """Return the status of the file that writing to a path would replace; None where the name is free.

    Called before any work, it refuses the paths that writing would refuse after it: ValueError if anything else than a
    regular file is there, or it is one of the ``inputs``, by whatever name, which are read on the way and would be
    destroyed; FileNotFoundError if its folder is not there.
    """
    found = regular(path)
    for source in inputs:
        with contextlib.suppress(OSError):  # a file that is not there is an error where it is read
            if found and os.path.samestat(found, os.stat(source)):
                raise ValueError(f"{path}: it is the file that is read, {source}; it would be lost: name another")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder; make it first", str(folder))
    return found


def check_ending(path, what: str, endings: Sequence[str]) -> None:
    """Raise ValueError unless the name of a file ends as ``what`` it will hold does, in letters of any case."""
    if (found := Path(path).suffix).lower() not in endings:
        either = " or ".join(filter(None, [", ".join(endings[:-1]), endings[-1]]))
        raise ValueError(f"{path}: {what} ends in {either}, not in {found!r}")


@contextlib.contextmanager
def alone(path) -> Iterator[None]:
    """Let no other process into such a block for a file of the same folder, where the system has locks of folders."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):  # Windows; some network file systems
            import fcntl

            number = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
            stack.callback(os.close, number)  # which ends the lock too
            fcntl.flock(number, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def writing(path, inputs: Iterable = (), private: bool = False) -> Iterator[io.RawIOBase]:
    """Give a file to write to, which is at a path, at once and as a whole, when the block ends.

    The bytes go to a file of a unique name beside it, which is made safe on the disk and then renamed. A link stays a
    link: its target is replaced. An existing file keeps its mode, and its owner where that is allowed; a new one is for
    its owner only (0600) if it is ``private``, else as the umask has it. Where the block raises, what was there stays.
    Path and ``inputs`` are as of `destination`, which is asked before the block begins.
    """
    with _staged(path, inputs, private) as staged:
        yield staged.file
        staged.finish()
        with _named(path):
            os.replace(staged.unfinished, staged.target)
    _settle(staged.target.parent)


def write_together(contents: Mapping[Path, bytes | None]) -> None:
    """Put several files in place together: each of them, or where anything fails none.

    All are whole on the disk before the first is renamed; what they replace is kept until the last has been. A file
    whose content is None is removed, where there is one.
    """
    with contextlib.ExitStack() as cleaning, contextlib.ExitStack() as undoing:
        moves: list[tuple[Path, Path, Path | None]] = []
        replaced = []
        for path, content in contents.items():
            if content is not None:
                staged = cleaning.enter_context(_staged(path))
                staged.file.write(content)
                staged.finish()
                moves.append((path, staged.target, staged.unfinished))
            elif regular(path):
                moves.append((path, path, None))
        for path, target, unfinished in moves:
            with _named(path):
                if target.exists():
                    aside = _unique(target.parent)
                    undoing.callback(_back, aside, target)
                    os.replace(target, aside)
                    replaced.append(aside)
                else:
                    undoing.callback(target.unlink, missing_ok=True)
                if unfinished is not None:
                    os.replace(unfinished, target)
        undoing.pop_all()
        for aside in replaced:
            aside.unlink()
    for folder in {target.parent for _, target, _ in moves}:
        _settle(folder)


def _back(aside: Path, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.replace(aside, target)


@dataclass(frozen=True)
class _Staged:
    """The next content of a path in a file beside it, and the status of the file that it replaces."""

    file: io.RawIOBase
    unfinished: Path
    target: Path
    found: os.stat_result | None
    path: Any

    def finish(self) -> None:
        """Make all that was written safe on the disk, with the mode and owner it is to have."""
        number = self.file.fileno()
        with _named(self.path):
            if found := self.found:
                state = os.fstat(number)
                if (state.st_uid, state.st_gid) != (found.st_uid, found.st_gid):
                    with contextlib.suppress(PermissionError):
                        os.fchown(number, found.st_uid, found.st_gid)
                if hasattr(os, "fchmod"):  # on Windows since Python 3.13, where modes say little
                    os.fchmod(number, stat.S_IMODE(found.st_mode))
            os.fsync(number)
            self.file.close()


@contextlib.contextmanager
def _staged(path, inputs: Iterable = (), private: bool = False) -> Iterator[_Staged]:
    """Make a file beside a path for its next content, and remove it after the block unless it was renamed."""
    found = destination(path, inputs)
    target = Path(os.path.realpath(path))
    unfinished = _unique(target.parent)
    with _named(path):
        made = _Whole(unfinished, 0o600 if private or found else 0o666, path)
    try:
        with made as file:
            yield _Staged(file, unfinished, target, found, path)
    finally:  # after an interrupt too
        unfinished.unlink(missing_ok=True)


class _Whole(io.FileIO):
    """A file that was not there before, whose `write` writes all of what it is given, and whose errors name a path."""

    def __init__(self, unfinished: Path, mode: int, path):
        super().__init__(unfinished, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # less the umask
        self._path = path

    def write(self, content) -> int:
        """Write all bytes of a part: to an unbuffered file the system may write fewer."""
        remaining = memoryview(content).cast("B")
        size = len(remaining)
        with _named(self._path):
            while len(remaining):
                remaining = remaining[super().write(remaining) :]
        return size


@contextlib.contextmanager
def _named(path):
    """Put the file that the user knows into errors of the system; a full disk names none."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _unique(folder: Path) -> Path:
    """Return a name for an unfinished file, of one length whatever the name of the finished one."""
    return folder / f".bayesgen-{secrets.token_hex(8)}.unfinished"


def _settle(folder: Path) -> None:
    """Make a rename safe on the disk, where folders can be: the file is whole in any case."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
