"""Text with delimiters between cells: CSV and its relatives."""

from __future__ import annotations

from gp4c.data.checks import plural
from gp4c.data.tables.formats.content import PER_BYTE, PER_ROW, TableFile, check_room
from gp4c.data.tables.formats.csvfile import as_utf8, read_csv_table
from gp4c.data.tables.formats.file_format import Choice, FileFormat, LabelColumn
from gp4c.data.tables.formats.text_layout import Layout, found_encoding, found_layout, with_tabs
from gp4c.data.tables.frames import Table
from gp4c.exceptions import PanelDataError


class DelimitedText(FileFormat):
    """A file of text; whatever is no other kind of file."""

    title = "a text file (CSV)"
    extensions = (".csv", ".tsv", ".tab", ".txt", ".dat", "")
    takes = ("delimiter", "decimal", "encoding")

    def read(self, file: TableFile, choice: Choice, label_column: LabelColumn) -> Table:
        """Find the layout and parse."""
        _check_marks(choice.delimiter, choice.decimal)
        check_room(file.shown, PER_BYTE * len(file.data) + PER_ROW * file.data.count(b"\n"))
        encoding = choice.encoding or found_encoding(file.data, file.shown)
        data = as_utf8(file.data, file.shown, encoding)
        usual = "\t" if file.extension in (".tsv", ".tab") else ","
        sample = data[: 1 << 20].decode(errors="ignore")
        layout = found_layout(sample, choice.delimiter, choice.decimal, usual)
        if layout.by_spaces:
            data = with_tabs(data.decode()).encode()
        table = read_csv_table(data, file.shown, layout, label_column=label_column)
        return table.with_notes(*self._notes(layout, encoding, choice))

    def _notes(self, layout: Layout, encoding: str, choice: Choice) -> list[str]:
        expected = Layout(choice.delimiter or ",", choice.decimal or ".")
        told = Layout(
            "," if layout.delimiter == expected.delimiter else layout.delimiter,
            "." if layout.decimal == expected.decimal else layout.decimal,
            layout.by_spaces,
        )
        found = told.note("utf-8" if choice.encoding else encoding)
        above = f"{plural(layout.above, 'line')} above the header left out"
        return [note for note in (found, above if layout.above else None) if note]


def _check_marks(delimiter: str | None, decimal: str | None) -> None:
    """Delimiter and decimal mark must be different single characters."""
    for name, mark in (("delimiter", delimiter), ("decimal", decimal)):
        if mark is not None and (not isinstance(mark, str) or len(mark) != 1):
            raise PanelDataError(f"{name} must be a single character; found {mark!r}")
    if delimiter is not None and delimiter == decimal:
        raise PanelDataError(f"delimiter and decimal must differ; both are {decimal!r}")
