"""How a file of text is laid out: encoding, delimiter and decimal mark, found by what parses."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass, replace

from gp4c.data.tables.formats.grid import header_position
from gp4c.exceptions import PanelDataError

#: text that is tried with every delimiter, in characters
_SAMPLE = 1 << 18
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # begins like that of UTF-16
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: the superset of latin-1 that spreadsheets of western countries write
_WESTERN = "cp1252"
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
#: marks of Windows-1252 between letters, as other code pages have accents; apostrophes are usual
_MARK_IN_WORD = re.compile(rb"[A-Za-z][\x80\x82-\x89\x8b\x91\x93-\x99\x9b][A-Za-z]")
_COMMA_NUMBER = re.compile(r"[-+]?\d*,\d+")
_POINT_NUMBER = re.compile(r"[-+]?\d*\.\d+")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")


@dataclass(frozen=True)
class Layout:
    """How cells are marked off.

    Attributes
    ----------
    delimiter, decimal : str
    by_spaces : bool
        Cells are separated by any number of spaces; `delimiter` is a tab after :func:`with_tabs`.
    above : int
        Rows above the header, which hold a title or remarks.
    """

    delimiter: str = ","
    decimal: str = "."
    by_spaces: bool = False
    above: int = 0

    def note(self, encoding: str) -> str | None:
        """Say what was found, unless it is what everybody expects."""
        said = []
        if self.by_spaces:
            said.append("cells are separated by spaces")
        elif self.delimiter != ",":
            said.append(f"cells are separated by {_DELIMITERS[self.delimiter]}")
        if self.decimal != ".":
            said.append("decimals are marked by commas")
        if encoding == _WESTERN:
            said.append("the text is not UTF-8 and was read as Windows-1252 (latin-1)")
        elif encoding != "utf-8":
            said.append(f"the text is {encoding.upper()}")
        return f"layout found by what parses: {'; '.join(said)}" if said else None


def found_encoding(data: bytes, source: str) -> str:
    """The encoding of a text: by its byte order mark, or UTF-8 if that parses, or Windows-1252."""
    for mark, name in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return name
    sample = data[:100_000]
    if b"\0" in sample:
        wide = _wide_encoding(sample)
        if wide is None:
            raise PanelDataError(f"{source} is not a table: it holds binary data, not text")
        return wide
    if data.isascii() or _decodes(data, "utf-8"):
        return "utf-8"
    strange = _CONTROL.search(sample) or _MARK_IN_WORD.search(sample)
    if _decodes(data, _WESTERN) and not strange:
        return _WESTERN
    return "utf-8"  # whose error says which byte is not allowed


def _wide_encoding(sample: bytes) -> str | None:
    """UTF-16 without its mark: nearly every second byte of western text is zero, no other one."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    enough = max(10, 0.2 * len(sample))
    if max(even, odd) < enough or min(even, odd) > 0:
        return None
    return "utf-16-le" if odd else "utf-16-be"


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeError:
        return False
    return True


def found_layout(text: str, delimiter: str | None, decimal: str | None, usual: str) -> Layout:
    """The delimiter and decimal mark with which a text is a table.

    A delimiter fits if the header and most rows have the same number of cells, two at least. Of
    those that fit, the one on which most rows agree is taken, then the one with most columns;
    spaces only if nothing else fits.

    Parameters
    ----------
    text : str
        The beginning of the file is enough.
    delimiter, decimal : str, optional
        As far as the user says.
    usual : str
        The delimiter to take if none fits.
    """
    lines = text[:_SAMPLE].splitlines(keepends=True)
    sample = "".join(lines[:-1] if len(text) > _SAMPLE and len(lines) > 1 else lines)
    if delimiter is not None:
        tried = {delimiter: _rows(sample, delimiter)}
    else:
        tried = {mark: _rows(sample, mark) for mark in _DELIMITERS}
    fits = {mark: fit for mark, rows in tried.items() if (fit := _fit(rows)) is not None}
    if fits:
        best = max(fits, key=lambda mark: fits[mark][:2])
        layout = Layout(best, above=fits[best][2])
        rows = tried[best]
    elif delimiter is None and (found := _fit(_rows_by_spaces(sample))) is not None:
        layout = Layout("\t", by_spaces=True, above=found[2])
        rows = _rows_by_spaces(sample)
    else:
        layout, rows = Layout(delimiter or usual), tried.get(delimiter or usual, [])
    return replace(layout, decimal=decimal or _decimal(rows, layout.delimiter))


def with_tabs(text: str) -> str:
    """Text with its runs of spaces as tabs, line by line; names of rows get an empty header."""
    lines = [_split(line) for line in text.splitlines()]
    filled = [cells for cells in lines if cells]
    if len(filled) > 1 and len(filled[0]) + 1 == len(filled[1]):
        filled[0].insert(0, "")
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    for cells in lines:
        writer.writerow(cells)
    return out.getvalue()


def _rows(sample: str, delimiter: str) -> list[list[str]]:
    try:
        rows = list(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter))
    except (csv.Error, TypeError):
        return []
    return [row for row in rows if any(cell.strip() for cell in row)]


def _split(line: str) -> list[str]:
    """Cells of a line between spaces; quotes keep spaces."""
    try:
        found = next(csv.reader([line.strip()], delimiter=" ", skipinitialspace=True), [])
    except csv.Error:
        return line.split()
    return [cell for cell in found if cell]


def _rows_by_spaces(sample: str) -> list[list[str]]:
    rows = [cells for line in sample.splitlines() if (cells := _split(line))]
    if len(rows) > 1 and len(rows[0]) + 1 == len(rows[1]):  # R writes names of rows without header
        rows[0].insert(0, "")
    return rows


def _fit(rows: list[list[str]]) -> tuple[float, int, int] | None:
    """Share of rows as wide as the header, their width, and the rows above; None without fit."""
    if not rows:
        return None
    above = header_position([[bool(cell.strip()) for cell in row] for row in rows])
    widths = Counter(len(row) for row in rows[above:])
    width = len(rows[above])
    agree = widths[width] / sum(widths.values())
    return (agree, width, above) if width >= 2 and agree >= 0.5 else None


def _decimal(rows: list[list[str]], delimiter: str) -> str:
    """A comma if numbers have commas and none a point; thousands in groups are no decimals."""
    cells = [cell.strip() for row in rows[1:] for cell in row]
    commas = [cell for cell in cells if _COMMA_NUMBER.fullmatch(cell)]
    if not commas or any(_POINT_NUMBER.fullmatch(cell) for cell in cells):
        return "."
    grouped = all(_GROUPED.fullmatch(cell) for cell in commas)
    return "." if grouped and delimiter == "," else ","
