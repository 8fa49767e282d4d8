"""Tables in Word: a real table, a caption that Word numbers, notes below."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gp4c.exceptions import MissingExtraError
from gp4c.plain import printable
from gp4c.reporting.publication.table_writer import TableWriter

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import Table as WordTable
    from docx.table import _Cell
    from docx.text.paragraph import Paragraph

    from gp4c.data.summaries.table import Table

#: sizes of type in points
_CELL, _NOTE = 10, 9
#: characters that fit on a line of a table; a cell of so few is not broken, such as an interval
_LINE, _UNBROKEN = 72, 16
#: thickness of lines in eighths of a point
_THICK, _THIN = 12, 6


class WordWriter(TableWriter):
    """A document with one table."""

    suffix = ".docx"

    def content(self, table: Table) -> bytes:
        """The document."""
        document = new_document(table.title)
        add_table(document, table)
        return document_bytes(document)


def has_word() -> bool:
    """Whether python-docx is there, without which no Word file can be written."""
    try:
        import docx  # noqa: F401
    except ImportError:
        return False
    return True


def check_word() -> None:
    """Without python-docx one sentence says what to install."""
    if not has_word():
        raise MissingExtraError(
            "Word files need python-docx, which is not installed: pip install 'gp4c[word]'"
        )


def new_document(title: str) -> Document:
    """An empty document."""
    check_word()
    from docx import Document

    document = Document()
    document.core_properties.title = plain(title)[:255]  # the longest that the format admits
    document.core_properties.author = "gp4c"
    return document


def add_table(document: Document, table: Table) -> None:
    """Append a table with its caption and notes."""
    from docx.shared import Pt

    if table.title:
        add_caption(document, "Table", f"{table.title}. {table.caption}".strip())
    wide = len(table.columns)
    right = [table.is_numeric(k) for k in range(wide)]
    grid = document.add_table(rows=0, cols=wide)
    if any(table.columns):
        _add_row(grid, list(table.columns), right)
    for row in table.rows:
        _add_row(grid, list(row), right)
    _rule(grid, with_head=any(table.columns))
    _widen(grid, column_shares([row for row in (table.columns, *table.rows) if len(row) == wide]))
    if not table.notes:
        document.add_paragraph()
    for note in table.notes:
        _small(document.add_paragraph(plain(note)), _NOTE).paragraph_format.space_after = Pt(2)


def add_caption(document: Document, kind: str, words: str) -> None:
    """``Table 1. Words``, with a number that Word keeps up to date; it stays with what follows."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn
    from docx.shared import RGBColor

    paragraph = document.add_paragraph(style="Caption")
    paragraph.paragraph_format.keep_with_next = kind == "Table"
    paragraph.add_run(f"{kind} ")
    number = 1 + sum(f" SEQ {kind} " in p._p.xml for p in document.paragraphs)
    field = OxmlElement("w:fldSimple")
    field.set(qn("w:instr"), f" SEQ {kind} \\* ARABIC ")
    shown = paragraph.add_run(str(number))
    field.append(shown._r)
    paragraph._p.append(field)
    paragraph.add_run(f". {plain(words)}")
    for run in (*paragraph.runs, shown):
        run.font.color.rgb = RGBColor(0, 0, 0)


def _add_row(grid: WordTable, texts: list[str], right: list[bool]) -> None:
    """Append a row; one text alone is a heading over all columns."""
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.oxml import OxmlElement
    from docx.shared import Pt

    row = grid.add_row()
    row._tr.get_or_add_trPr().append(OxmlElement("w:cantSplit"))
    is_heading = len(texts) < len(row.cells)
    if is_heading:
        row.cells[0].merge(row.cells[-1])
    for cell, text, flush in zip(row.cells, texts, right, strict=False):
        paragraph = cell.paragraphs[0]
        paragraph.add_run(plain(text)).italic = is_heading
        _small(paragraph, _CELL).paragraph_format.space_after = Pt(0)
        if flush:
            paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT


def column_shares(rows: Sequence[Sequence[str]]) -> list[float]:
    """Share of each column in the width of a table.

    Every column has room for its longest word and for short cells as a whole; what is left of the
    line goes to columns whose cells would be broken.

    Parameters
    ----------
    rows : sequence of sequences of str
        The first is the head, which may be broken at any blank.
    """
    whole = [2 + max(map(len, column)) for column in zip(*rows, strict=True)]
    word = [
        2 + max(_longest_part(cell, 0 if cell is column[0] else _UNBROKEN) for cell in column)
        for column in zip(*rows, strict=True)
    ]
    to_break = sum(whole) - sum(word)
    given = min(1.0, max(0.0, (_LINE - sum(word)) / to_break)) if to_break else 1.0
    wide = [least + given * (most - least) for least, most in zip(word, whole, strict=True)]
    return [one / sum(wide) for one in wide]


def _longest_part(cell: str, unbroken: int) -> int:
    """Characters of a cell that must stay on one line."""
    return len(cell) if len(cell) <= unbroken else max(map(len, cell.split()), default=0)


def _widen(grid: WordTable, shares: Sequence[float]) -> None:
    """Give columns their shares of the width, in the grid and in each cell, as Word wants it."""
    from docx.shared import Emu

    total = sum(column.width or 0 for column in grid.columns)
    for share, column in zip(shares, grid.columns, strict=True):
        column.width = Emu(round(share * total))
    for row in grid.rows:
        if len(row._tr.tc_lst) == len(shares):  # not a heading over all columns
            for share, cell in zip(shares, row.cells, strict=True):
                cell.width = Emu(round(share * total))


def _rule(grid: WordTable, with_head: bool) -> None:
    """Lines above and below the table and under its head, which is repeated on every page."""
    from docx.oxml import OxmlElement

    first, last = grid.rows[0], grid.rows[-1]
    if with_head:
        first._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    for row in {id(first._tr): first, id(last._tr): last}.values():
        sides = {"top": _THICK} if row is first else {}
        if row is first and with_head:
            sides["bottom"] = _THIN
        if row is last or first._tr is last._tr:
            sides["bottom"] = _THICK
        for cell in row.cells:
            _lines(cell, sides)


def _lines(cell: _Cell, sides: dict[str, int]) -> None:
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    borders = OxmlElement("w:tcBorders")
    for side, size in sides.items():
        line = OxmlElement(f"w:{side}")
        line.set(qn("w:val"), "single")
        line.set(qn("w:sz"), str(size))
        borders.append(line)
    cell._tc.get_or_add_tcPr().append(borders)


def _small(paragraph: Paragraph, points: int) -> Paragraph:
    from docx.shared import Pt

    for run in paragraph.runs:
        run.font.size = Pt(points)
    return paragraph


def plain(text: str) -> str:
    """Text without characters that XML forbids."""
    return printable(text).replace("\ufffe", "").replace("\uffff", "")


def document_bytes(document: Document) -> bytes:
    """The file; the same document gives the same bytes, so nothing in it says when it was made."""
    packed, again = io.BytesIO(), io.BytesIO()
    document.save(packed)
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(again, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name)  # dated 1980
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, old.read(name))
    return again.getvalue()
