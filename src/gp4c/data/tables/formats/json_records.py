"""JSON: one object per line, or a list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from gp4c.data.tables.formats.content import PER_BYTE, TableFile, check_room
from gp4c.data.tables.formats.csvfile import as_utf8
from gp4c.data.tables.formats.file_format import Choice, FileFormat, LabelColumn
from gp4c.data.tables.formats.grid import column_of
from gp4c.data.tables.frames import Table
from gp4c.exceptions import PanelDataError


class JsonRecords(FileFormat):
    """JSON lines, or a list of objects; a key that an object lacks is a missing cell."""

    title = "a JSON file"
    extensions = (".jsonl", ".ndjson", ".json")
    takes = ("encoding",)

    def recognises(self, file: TableFile) -> bool:
        """By the first mark of the text."""
        start = file.head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return start.startswith((b'{"', b"{ ", b"[{")) or start.startswith((b"{\n", b"[\n"))

    def read(self, file: TableFile, choice: Choice, label_column: LabelColumn) -> Table:
        """Read one row per object."""
        check_room(file.shown, 4 * PER_BYTE * len(file.data))
        text = as_utf8(file.data, file.shown, choice.encoding).decode()
        is_list = text.lstrip().startswith("[")
        records = _listed(text, file.shown) if is_list else _by_line(text, file.shown)
        columns: dict[str, list[Any]] = {}
        places: list[int] = []
        for place, record in records:
            for name in record:
                columns.setdefault(name, [None] * len(places))
            for name, cells in columns.items():
                cells.append(_cell(record.get(name), name, place, is_list))
            places.append(place)
        if not places or not columns:
            raise PanelDataError(f"{file.shown} is empty; it needs at least one row")

        def locate(rows: Sequence[int]) -> str:
            word = "object" if is_list else "line"
            numbers = " and ".join(str(places[row]) for row in rows)
            return f"{word}{'s' * (len(rows) > 1)} {numbers}"

        kept = {name: column_of(cells) for name, cells in columns.items()}
        return Table(kept, len(places), locate, file.shown)


def _by_line(text: str, source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects with their line numbers."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, _object(json.loads(line))
            except (ValueError, RecursionError) as error:
                reason = str(error).partition(":")[0]
                raise PanelDataError(
                    f"{source} must have one JSON object per line; {reason} (line {number})"
                ) from None


def _listed(text: str, source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects of a list, numbered from 1."""
    try:
        for number, record in enumerate(json.loads(text), start=1):
            yield number, _object(record)
    except (ValueError, RecursionError) as error:
        raise PanelDataError(f"{source} must be a list of JSON objects; {error}") from None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"found {json.dumps(value)[:40]}")
    return value


def _cell(value: Any, name: str, place: int, is_list: bool) -> Any:
    if isinstance(value, dict | list):
        where = f"{'object' if is_list else 'line'} {place}"
        text = json.dumps(value)
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        raise PanelDataError(
            f"{name!r} must hold plain values, one JSON object per row of the table; "
            f"found {shown} ({where})"
        )
    return value
