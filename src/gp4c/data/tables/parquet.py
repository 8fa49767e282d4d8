"""Parquet files as one table: a file, a folder, a pattern or a list, on any file system."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.tables.batches import RowBatch, RowReader
from gp4c.data.tables.frames import frame_rows
from gp4c.data.tables.sources import BATCH_ROWS, PanelSource
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

    from gp4c.data.tables.sources import Paths

_ENDINGS = (".parquet", ".pq", ".parq")
_WILD = "*?["


@dataclass(frozen=True)
class ParquetFiles:
    """Files on one file system, in order of their names."""

    filesystem: Any
    paths: tuple[str, ...]

    def open(self, number: int) -> ParquetFile:
        """A pyarrow.parquet.ParquetFile, or an error that names the file."""
        import pyarrow as pa
        from pyarrow import parquet

        try:
            return parquet.ParquetFile(
                self.filesystem.open_input_file(self.paths[number]), pre_buffer=True
            )
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise PanelDataError(
                f"{self.shown(number)} is not a readable Parquet file: {reason}"
            ) from None

    def shown(self, number: int) -> str:
        """A file's name, for messages."""
        return f"the file {posixpath.basename(self.paths[number])!r}"

    def header(self) -> list[str]:
        """Columns of the first file."""
        return list(self.open(0).schema_arrow.names)


def parquet_files(source: Paths) -> ParquetFiles:
    """Find the files of a path, folder, pattern or list of those."""
    from pyarrow import fs

    given = [source] if isinstance(source, str | os.PathLike) else source
    found: list[str] = []
    system: Any = None
    for item in given:
        text = os.fspath(item)
        address, options = _split_options(text)
        head, name = _split_pattern(address)
        here, base = fs.LocalFileSystem(), head
        if "://" in text:
            try:
                here, base = fs.FileSystem.from_uri(head + options)
            except (OSError, ValueError) as error:
                reason = str(error).splitlines()[0].rstrip(".")
                raise PanelDataError(f"{text!r} cannot be opened: {reason}") from None
        if system is not None and here != system:
            raise PanelDataError(f"all files must be in one place; {text!r} is in another")
        system = here
        found += _matches(system, base or ".", name, text)
    return ParquetFiles(system, tuple(found))


def _split_options(path: str) -> tuple[str, str]:
    """An address, and the options of its file system, as in ``?endpoint_override=...``."""
    found = re.search(r"\?\w+=.*$", path) if "://" in path else None
    return (path, "") if found is None else (path[: found.start()], found.group())


def _split_pattern(path: str) -> tuple[str, str]:
    """The part before the first name with a wildcard, and the rest (empty without any)."""
    parts = path.replace(os.sep, "/").split("/")
    wild = [k for k, part in enumerate(parts) if any(sign in part for sign in _WILD)]
    if not wild:
        return path, ""
    head = "/".join(parts[: wild[0]])
    return head or ("/" if path.startswith("/") else ""), "/".join(parts[wild[0] :])


def _matches(system: Any, base: str, pattern: str, shown: str) -> list[str]:
    """Parquet files below a folder, those that match a pattern, or the file itself."""
    from pyarrow import fs

    try:
        info = system.get_file_info(base)
        if info.type == fs.FileType.File and not pattern:
            return [base]
        if info.type != fs.FileType.Directory:
            raise PanelDataError(f"there is no file or folder {shown!r}")
        listed = system.get_file_info(fs.FileSelector(base, recursive=True))
    except OSError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise PanelDataError(f"{shown!r} cannot be read: {reason}") from None
    files = sorted(entry.path for entry in listed if entry.type == fs.FileType.File)
    if pattern:
        found = [path for path in files if _fits(posixpath.relpath(path, base), pattern)]
    else:
        found = [path for path in files if path.endswith(_ENDINGS)]
    if not found:
        what = "matches" if pattern else "is a Parquet file in"
        raise PanelDataError(f"no file {what} {shown!r}")
    return found


def _fits(path: str, pattern: str) -> bool:
    """Match name by name, so that ``*`` stays within one; ``**`` stands for any folders."""
    return _names_fit(path.split("/"), pattern.split("/"))


def _names_fit(names: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not names
    first, *rest = patterns
    if first == "**":
        return any(_names_fit(names[k:], rest) for k in range(len(names) + 1))
    return bool(names) and fnmatch.fnmatchcase(names[0], first) and _names_fit(names[1:], rest)


class ParquetSource(PanelSource):
    """Rows of Parquet files, read in batches; rows are named by file and position in it."""

    def __init__(
        self,
        files: ParquetFiles,
        reader: RowReader,
        window: Any,
        batch_rows: int = BATCH_ROWS,
        **options: Any,
    ) -> None:
        super().__init__(reader, window, **options)
        self.files, self._batch_rows = files, batch_rows

    def batches(self) -> Iterator[RowBatch]:
        """Read the files one after the other.

        :meta private:
        """
        first = 0
        for number, size in enumerate(self._sizes):
            yield from self.file_batches(number, first)
            first += size

    def file_batches(self, number: int, first: int = 0) -> Iterator[RowBatch]:
        """Read one file; `first` is the number of its first row in the whole source."""
        import pyarrow as pa

        file, shown = self._file(number), self.files.shown(number)
        offset = 0
        try:
            for table in _ahead(file, self.reader.columns, self._batch_rows):
                for part in _slices(table, self._batch_rows):
                    yield self.reader.read(part, _in_file(shown, offset), first + offset)
                    offset += part.num_rows
        except (pa.ArrowException, OSError) as error:
            raise PanelDataError(f"{shown} is damaged: {str(error).splitlines()[0]}") from None

    @cached_property
    def _sizes(self) -> list[int]:
        """Rows of each file."""
        return [self.files.open(k).metadata.num_rows for k in range(len(self.files.paths))]

    @property
    def n_rows(self) -> int:
        """Number of rows, from the ends of the files."""
        return sum(self._sizes)

    def _file(self, number: int) -> Any:
        file, shown = self.files.open(number), self.files.shown(number)
        for role, name in self.reader.names.items():
            if name not in file.schema_arrow.names:
                raise PanelDataError(f"{shown} has no column {name!r} (for {role})")
        return file

    def locate(self, rows: Sequence[int]) -> str:
        """Name rows by file and position.

        :meta private:
        """
        sizes = self._sizes
        ends = np.cumsum(sizes)
        number = [int(np.searchsorted(ends, row, side="right")) for row in rows]
        return " and ".join(
            f"row {row - (ends[k] - sizes[k])} of {self.files.shown(k)}"
            for row, k in zip(rows, number, strict=True)
        )

    def _find_window(self) -> tuple[float, float]:
        """From the statistics that writers leave in the files; by reading if there are none."""
        found = [self._extremes(number) for number in range(len(self.files.paths))]
        known = [pair for pair in found if pair is not None]
        if len(known) < len(found):
            return super()._find_window()
        return min(low for low, _ in known), max(high for _, high in known)

    def _extremes(self, number: int) -> tuple[float, float] | None:
        metadata, names = self._file(number).metadata, self.reader.names
        low, high = np.inf, -np.inf
        where = {metadata.schema.column(k).path: k for k in range(metadata.num_columns)}
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            one, two = (
                row_group.column(where[names[role]]).statistics for role in ("start", "stop")
            )
            if not (one and two and one.has_min_max and two.has_min_max):
                return None
            if not isinstance(one.min, int | float) or not isinstance(two.max, int | float):
                return None
            low, high = min(low, float(one.min)), max(high, float(two.max))
        return (low, high) if low < high else None


def _ahead(file: Any, columns: list[str], batch_rows: int) -> Iterator[Any]:
    """Several row groups at a time, the next ones read while the last are worked on."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as reader:
        waiting = None
        for groups in _row_groups(file.metadata, batch_rows):
            reading = reader.submit(file.read_row_groups, groups, columns)
            if waiting is not None:
                yield waiting.result()
            waiting = reading
        if waiting is not None:
            yield waiting.result()


def _row_groups(metadata: Any, batch_rows: int) -> Iterator[list[int]]:
    """Numbers of consecutive row groups of about so many rows together."""
    together: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        size = metadata.row_group(group).num_rows
        if together and rows + size > batch_rows:
            yield together
            together, rows = [], 0
        together.append(group)
        rows += size
    if together:
        yield together


def _slices(table: Any, batch_rows: int) -> Iterator[Any]:
    """Parts of a table of at most so many rows."""
    for i in range(0, table.num_rows, batch_rows):
        yield table.slice(i, batch_rows)


def _in_file(shown: str, offset: int) -> Any:
    def locate(rows: Sequence[int]) -> str:
        return f"{frame_rows([row + offset for row in rows])} of {shown}"

    return locate
