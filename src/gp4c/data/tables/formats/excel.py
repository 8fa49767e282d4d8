"""Excel and OpenDocument workbooks, read by calamine."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gp4c.data.checks import plural
from gp4c.data.tables.formats.content import PER_CELL, TableFile, check_room
from gp4c.data.tables.formats.file_format import (
    Choice,
    FileFormat,
    LabelColumn,
    chosen_part,
    missing_package,
)
from gp4c.data.tables.formats.grid import table_from_grid
from gp4c.data.tables.frames import Table
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

#: bytes of memory per byte of an unpacked sheet, and per cell between its corners. Two cells in
#: opposite corners of an Excel sheet span 17 thousand million cells
_PER_UNPACKED, _PER_SPANNED = 2, 24 + PER_CELL
_CELL = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]{1,3})(\d{1,7})"')
_OPEN_CELL = re.compile(rb"<table:table-(row|cell)\b([^>]*)>")
_REPEATED = re.compile(rb'number-(?:columns|rows)-repeated="(\d{1,12})"')
_CHUNK = 1 << 20
#: sheets shrink to a tenth or so when they are packed; beyond both of these they are no sheets
_LARGEST_RATIO, _HARMLESS = 100, 50_000_000


class Workbook(FileFormat):
    """Any workbook that calamine reads; cells that the workbook calls dates are dates."""

    title = "a workbook (Excel, OpenDocument)"
    extensions = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
    takes = ("sheet",)

    def recognises(self, file: TableFile) -> bool:
        """By the names in the archive; older workbooks by their first bytes."""
        if file.head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
            return True
        return file.head.startswith(b"PK") and any(
            name.startswith("xl/") or name == "content.xml" for name in archive_names(file.data)
        )

    def may_be(self, file: TableFile) -> bool:
        """Text is often named .xls, so that spreadsheets open it."""
        return super().may_be(file) and not file.head.isascii() and b"\0" in file.head

    def read(self, file: TableFile, choice: Choice, label_column: LabelColumn) -> Table:
        """Read one sheet: rows above the header that hold at most a title are left out."""
        if file.head.startswith(b"PK"):
            check_archive(file)
        book = _opened(file)
        name, notes = _sheet_name(file, book, choice.sheet)
        with _damage_said(file):
            sheet = book.get_sheet_by_name(name)
            rows = list(_rows(sheet))
        return table_from_grid(rows, f"sheet {name!r} of {file.shown}", notes)


def archive_names(data: bytes) -> list[str]:
    """Names of the files in a zip archive; none if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return []


def check_archive(file: TableFile) -> None:
    """Refuse a workbook that takes more memory than is free, whatever its headers promise.

    Every file in it is unpacked once, a piece at a time, and the cells that its sheets span are
    counted, since a few bytes can stand for any number of either.
    """
    unpacked = 0
    try:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            for name in archive.namelist():
                spanned = _Span()
                with archive.open(name) as packed:
                    while part := packed.read(_CHUNK):
                        unpacked += len(part)
                        _check_ratio(file, unpacked)
                        spanned.see(part)
                        check_room(
                            file.shown, _PER_UNPACKED * unpacked + _PER_SPANNED * spanned.cells
                        )
    except PanelDataError:
        raise
    except (
        zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError,
    ) as error:  # fmt: skip
        raise PanelDataError(f"{file.shown} is damaged: {error}") from None
    except RuntimeError:  # zipfile's word for a file that needs a password
        raise PanelDataError(f"{file.shown} is protected by a password; save it without") from None


def _check_ratio(file: TableFile, unpacked: int) -> None:
    """Refuse an archive that unpacks to far more than a spreadsheet would write."""
    if unpacked > max(_LARGEST_RATIO * len(file.data), _HARMLESS):
        raise PanelDataError(
            f"{file.shown} unpacks to more than {_LARGEST_RATIO} times its size, which no "
            "spreadsheet writes; save the table anew, as .xlsx or CSV"
        )


class _Span:
    """The cells that a sheet spans, from pieces of its XML."""

    def __init__(self) -> None:
        self._rows = self._columns = self._written = 0
        self._repeated = 1
        self._rest = b""

    def see(self, part: bytes) -> None:
        """Take the next piece; a tag that is cut in two waits for its other half."""
        text = self._rest + part
        whole, mark, rest = text.rpartition(b">")
        self._rest = rest[:_CHUNK]
        for column, row in _CELL.findall(whole + mark):
            number = 0
            for letter in column:
                number = 26 * number + letter - 64
            self._columns, self._rows = max(self._columns, number), max(self._rows, int(row))
        for kind, about in _OPEN_CELL.findall(whole + mark):
            times = _REPEATED.search(about)
            number = int(times[1]) if times else 1
            if kind == b"row":
                self._repeated = number
            elif b"value-type=" in about:  # rows and columns beyond the table are repeated blanks
                self._written += number * self._repeated

    @property
    def cells(self) -> int:
        """Cells between the corners (Excel) or written (OpenDocument)."""
        return self._rows * self._columns + self._written


class _damage_said:  # noqa: N801
    """Say in a sentence what calamine finds wrong."""

    def __init__(self, file: TableFile) -> None:
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        from python_calamine import CalamineError, PasswordError

        if kind is None:
            return
        if issubclass(kind, PasswordError):
            raise PanelDataError(
                f"{self._file.shown} is protected by a password; save it without"
            ) from None
        if issubclass(kind, CalamineError | OSError | ValueError):
            reason = str(error).splitlines()[0] if str(error) else kind.__name__
            raise PanelDataError(
                f"{self._file.shown} is not a readable workbook: {reason}"
            ) from None


def _opened(file: TableFile) -> CalamineWorkbook:
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise missing_package("a workbook", "python-calamine") from None
    with _damage_said(file):
        return CalamineWorkbook.from_filelike(io.BytesIO(file.data))


def _sheet_name(
    file: TableFile, book: CalamineWorkbook, given: str | None
) -> tuple[str, tuple[str, ...]]:
    """The sheet that was named, or the only one that is shown and holds something."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    sheets = [one for one in book.sheets_metadata if one.typ == SheetTypeEnum.WorkSheet]
    if given is not None:
        return chosen_part(file, "sheet", given, [one.name for one in sheets]), ()
    shown = [one.name for one in sheets if one.visible == SheetVisibleEnum.Visible]
    if len(shown) > 1:
        with _damage_said(file):
            shown = [one for one in shown if book.get_sheet_by_name(one).height]
    name = chosen_part(file, "sheet", None, shown or [one.name for one in sheets])
    others = len(sheets) - 1
    note = f"sheet {name!r} is read; {plural(others, 'other sheet')} empty or hidden"
    return name, (note,) if others else ()


def _rows(sheet: CalamineSheet) -> Iterator[tuple[int, Sequence[Any]]]:
    """Rows with their numbers in the sheet, from 1."""
    first = sheet.start[0] if sheet.start is not None else 0
    for k, cells in enumerate(sheet.to_python(skip_empty_area=True)):
        yield first + k + 1, cells
