"""Bytes of a file, a stream or a packed file: never more of them than memory can hold."""

from __future__ import annotations

import difflib
import gzip
import io
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from gp4c.exceptions import NotEnoughMemoryError, PanelDataError
from gp4c.memory import available_memory, in_words

#: bytes read at once
_CHUNK = 1 << 24
#: peak of memory when a table is read: bytes per byte of text, per row and per cell. Measured on
#: tables of 1.5 million rows with four to six columns, within 25%; see tests/trust/test_memory.py
PER_BYTE, PER_ROW, PER_CELL = 4, 140, 16


def read_content(source: str | os.PathLike[str] | IO[str] | IO[bytes]) -> tuple[bytes, str]:
    """Bytes and name of a path or file object."""
    if not isinstance(source, str | os.PathLike) and hasattr(source, "read"):
        name = getattr(source, "name", "")
        name = os.path.basename(name) if isinstance(name, str) else ""
        return _bounded(source.read, in_sentence(name)), name
    if not isinstance(source, str | os.PathLike):
        raise PanelDataError(
            f"read_panel takes a path or a file object; found {type(source).__name__} "
            "(PanelCounts.from_frame takes a dataframe)"
        )
    path = Path(source)
    try:
        with path.open("rb") as file:
            check_room(in_sentence(path.name), PER_BYTE * os.fstat(file.fileno()).st_size)
            return _bounded(file.read, in_sentence(path.name)), path.name
    except FileNotFoundError:
        raise PanelDataError(f"there is no file {str(path)!r}{_near_file(path)}") from None
    except IsADirectoryError:
        raise PanelDataError(f"{str(path)!r} is a directory, not a file") from None
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


def in_sentence(name: str) -> str:
    """A file's name for messages."""
    return f"the file {name!r}" if name else "the file"


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
