"""Bytes of a file, a stream or a packed file: never more of them than memory can hold."""

from __future__ import annotations

import difflib
import gzip
import io
import os
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from gp4c.exceptions import NotEnoughMemoryError, PanelDataError
from gp4c.memory import available_memory, in_words

#: bytes read at once
_CHUNK = 1 << 24
#: bytes by which a kind of file is known
_HEAD = 1 << 12
_GZIP = b"\x1f\x8b"
#: peak of memory when a table is read: bytes per byte of text, per row and per cell. Measured on
#: tables of 1.5 million rows with four to six columns, within 25%; see tests/trust/test_memory.py
PER_BYTE, PER_ROW, PER_CELL = 4, 140, 16


@runtime_checkable
class Stream(Protocol):
    """Something open that gives text or bytes."""

    def read(self, size: int = -1, /) -> str | bytes:
        """So many characters or bytes; none at the end."""


class TableFile:
    """A file, packed or not, or a stream: its first bytes at once, the rest when it is asked for.

    Attributes
    ----------
    name : str
        As given, without folders; "" if a stream has none.
    shown : str
        The name in a sentence.
    path : Path or None
        Where it is, if it is a plain file that is not packed.
    head : bytes
        The first bytes of its content, unpacked.
    """

    def __init__(self, source: str | os.PathLike[str] | Stream) -> None:
        self.path: Path | None = None
        self._data: bytes | None = None
        if isinstance(source, str | os.PathLike):
            self._open(Path(source))
        else:
            name = getattr(source, "name", "")
            self.name = os.path.basename(name) if isinstance(name, str) else ""
            self._take(_bounded(source.read, self.shown))

    @property
    def shown(self) -> str:
        """The name in a sentence."""
        return f"the file {self.name!r}" if self.name else "the file"

    @property
    def data(self) -> bytes:
        """The whole content, as far as memory has room for it as a table."""
        if self._data is None:
            assert self.path is not None
            with _said(self.path), self.path.open("rb") as file:
                check_room(self.shown, PER_BYTE * os.fstat(file.fileno()).st_size)
                self._data = _bounded(file.read, self.shown)
        return self._data

    @property
    def extension(self) -> str:
        """The end of the name, in lower case: ``.csv`` of ``visits.CSV.gz``."""
        name = self.name.lower()
        return os.path.splitext(name.removesuffix(".gz"))[1]

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """A path to the content; what is not a plain file is written to a folder for the while."""
        if self.path is not None:
            yield self.path.resolve()
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table"
            path.write_bytes(self.data)
            yield path

    def _open(self, path: Path) -> None:
        self.name = path.name
        with _said(path), path.open("rb") as file:
            about = os.fstat(file.fileno())
            self.head = file.read(_HEAD) if stat.S_ISREG(about.st_mode) else b""
            if self.head and not self.head.startswith(_GZIP):
                self.path = path
                return
            check_room(self.shown, PER_BYTE * about.st_size)
            self._take(self.head + _bounded(file.read, self.shown))

    def _take(self, data: bytes) -> None:
        self._data = unzipped(data, self.shown) if data.startswith(_GZIP) else data
        self.head = self._data[:_HEAD]


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """Say in a sentence why a file cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise PanelDataError(f"there is no file {str(path)!r}{_near_file(path)}") from None
    except IsADirectoryError:
        raise PanelDataError(f"{str(path)!r} is a directory, not a file") from None
    except PanelDataError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PanelDataError(f"the file {str(path)!r} cannot be read: {reason}") from None


def unzipped(data: bytes, source: str) -> bytes:
    """What a gzipped file holds; a few bytes may stand for more than there is room for."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _bounded(file.read, source)
    except (EOFError, OSError, zlib.error) as error:
        raise PanelDataError(f"{source} is damaged: {error}") from None


def check_room(source: str, needed: int) -> None:
    """Refuse a table that takes more memory to read than is free."""
    there = available_memory()
    if there is not None and needed > there:
        raise too_large(source, f"about {in_words(needed)}", there)


def too_large(source: str, needed: str, there: int | None) -> NotEnoughMemoryError:
    """Say that a table does not fit in memory, and what would help."""
    free = "" if there is None else f", and {in_words(there)} are free"
    return NotEnoughMemoryError(
        f"{source} would take {needed} of memory to read{free}: write the table as Parquet files, "
        "which gp4c.scan_panel reads in parts"
    )


def _bounded(read: Callable[[int], Any], source: str) -> bytes:
    """Everything that a stream gives, as long as there is room for reading it as a table."""
    there = available_memory()
    parts: list[bytes] = []
    size = 0
    try:
        while part := read(_CHUNK):
            parts.append(part.encode() if isinstance(part, str) else bytes(part))
            size += len(parts[-1])
            if there is not None and PER_BYTE * size > there:
                raise too_large(source, f"more than {in_words(PER_BYTE * size)}", there)
        return b"".join(parts)
    except MemoryError as error:
        if isinstance(error, NotEnoughMemoryError):
            raise
        raise too_large(source, f"more than {in_words(PER_BYTE * size)}", there) from None


def _near_file(path: Path) -> str:
    """Suggest a file of similar name beside one that is not there."""
    try:
        near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1)
    except OSError:
        return f"; there is no directory {str(path.parent)!r} either"
    return f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""
