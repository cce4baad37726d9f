"""Files that are written whole or not at all."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def regular(path) -> os.stat_result | None:
    """What is known of the regular file at a path, through links; None where nothing is there.

    Raises
    ------
    ValueError
        If anything else is there: it is neither read, which may never end, nor replaced.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise ValueError(f"{path}: this is {kind}; expected a regular file, or for saving a name that is free")
    return found


def write(path, parts: Iterable[bytes], private: bool = False) -> None:
    """Put a file at a path, at once and as a whole; whatever goes wrong before leaves what was there.

    The bytes go to a file of a unique name beside it, which is made safe on the disk and then renamed. A link stays a
    link: its target is replaced. An existing file keeps its mode, and its owner where that is allowed.

    Parameters
    ----------
    path : str or Path
        A regular file, or a name that is free.
    parts : iterable of bytes
        The content.
    private : bool
        Whether a new file is for its owner only (0600), rather than as the umask has it.
    """
    found = regular(path)
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder; make it first", str(target.parent))
    unfinished, number = _create(target.parent, 0o600 if private or found else 0o666)
    try:
        with os.fdopen(number, "wb") as file:
            for part in parts:
                file.write(part)
            if found:
                _like(number, found)
            file.flush()
            os.fsync(number)
        os.replace(unfinished, target)
    except BaseException as error:  # an interrupt too
        unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # what the user knows, which a full disk does not name
        raise
    _settle(target.parent)


def _create(folder: Path, mode: int) -> tuple[Path, int]:
    """Make a file that was not there before, so that it is ours to remove; its mode feels the umask."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    while True:
        path = folder / f".bayesgen-{secrets.token_hex(8)}.unfinished"
        with contextlib.suppress(FileExistsError):
            return path, os.open(path, flags, mode)


def _like(number: int, found: os.stat_result) -> None:
    """Give an open file the owner, where allowed, and the mode of another."""
    own = os.fstat(number)
    if (own.st_uid, own.st_gid) != (found.st_uid, found.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(number, found.st_uid, found.st_gid)
    if hasattr(os, "fchmod"):  # on Windows since Python 3.13, where modes say little
        os.fchmod(number, stat.S_IMODE(found.st_mode))


def _settle(folder: Path) -> None:
    """Make a rename safe on the disk, where folders can be: the file is whole in any case."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
