"""Write a file whole or not at all, whatever happens to the process or the machine.

The content goes to a temporary file in the same folder, is forced to the disk, and takes the
target's name in one step of the file system; then the folder is forced to the disk. A process that
is killed leaves the old file or none, and perhaps a hidden temporary file that no reader takes for
a result and that the next write of the same target removes: the kernel drops a dead writer's lock.
"""

from __future__ import annotations

import os
import secrets
import signal
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: leftovers of killed processes stay, hidden
    fcntl = None  # type: ignore[assignment]

#: permissions of a new file, less those that the user's mask takes away
_NEW_FILE = 0o666
#: between the target's name and the random part of a temporary name
_MARK = ".gp4c-"
#: longest part of the target's name in a temporary name (names have at most 255 bytes)
_LONGEST_STEM = 40


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it replaces `path`, on failure it goes.

    A reader, or a process killed half-way, sees the old file or the new one, never a part.
    The temporary name keeps the suffix, since plotting libraries choose the format by it. An
    existing file keeps its permissions, a link its place: the file that it points to is replaced.
    """
    with replacing_all([path]) as (temporary,):
        yield temporary


@contextmanager
def replacing_all(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[Path]]:
    """Give a temporary path for each of several files; on success all take their places.

    All are complete on the disk before the first takes its name, and Ctrl-C has to wait until
    the last has: what is left to chance is a kill, or a full stop of the machine, in between.
    """
    targets = [Path(os.path.realpath(path)) for path in paths]
    with ExitStack() as stack:
        written = [stack.enter_context(_temporary(target)) for target in targets]
        yield written
        moves = [move for move in zip(written, targets, strict=True) if move[0] != move[1]]
        for temporary, target in moves:
            _finish(temporary, target)
        with uninterrupted():
            for temporary, target in moves:
                temporary.replace(target)
        for folder in {target.parent for _, target in moves}:
            _sync_folder(folder)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` atomically, in UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait for the end of a few steps that belong together."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield  # not Python's to handle; signals reach the main thread only
        return
    waiting: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            signal.raise_signal(signal.SIGINT)


# -- temporary files -------------------------------------------------------------------------------


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """An empty file beside the target, locked while this process lives; gone in the end.

    A target that is itself a temporary file is written as it is: whoever made it moves it.
    """
    if target.name.startswith(".") and _MARK in target.name:
        yield target
        return
    _remove_abandoned(target)
    temporary, handle = _create(target)
    try:
        yield temporary
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
        if handle is not None:
            os.close(handle)


def _create(target: Path) -> tuple[Path, int | None]:
    """Make and lock a temporary file; one that a cleaner catches before the lock is given up."""
    while True:
        name = f"{_prefix(target)}{secrets.token_hex(6)}{target.suffix}"
        temporary = target.parent / name
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, _NEW_FILE)
        if fcntl is not None:
            _locks(handle)
            if temporary.exists():
                return temporary, handle
        os.close(handle)
        if fcntl is None:
            return temporary, None


def _finish(temporary: Path, target: Path) -> None:
    """Force a complete temporary file to the disk, with the permissions of the one it replaces."""
    with suppress(FileNotFoundError):
        temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    with temporary.open("rb+") as written:
        os.fsync(written.fileno())


def _remove_abandoned(target: Path) -> None:
    """Remove what killed writers of the same target left behind."""
    prefix = _prefix(target)
    with suppress(OSError):
        for name in os.listdir(target.parent):
            if name.startswith(prefix) and name.endswith(target.suffix):
                _remove_unlocked(target.parent / name)


def _remove_unlocked(path: Path) -> None:
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR)
        try:
            if _locks(handle):
                path.unlink()
        finally:
            os.close(handle)


def _prefix(target: Path) -> str:
    return f".{target.stem[:_LONGEST_STEM]}{_MARK}"


def _locks(handle: int) -> bool:
    """Lock a file for this process; False if another holds it, or if there are no locks here."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Force a folder's list of names to the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
