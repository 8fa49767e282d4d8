"""The report in Word: the texts, tables and figures of the page."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from gp4c.data.summaries.table import Table
from gp4c.reporting.page.drawn_figures import figure_png
from gp4c.reporting.page.page_reader import Block, blocks_of
from gp4c.reporting.page.report_figures import level_key
from gp4c.reporting.publication.word_writer import (
    add_caption,
    add_table,
    document_bytes,
    new_document,
    plain,
)
from gp4c.reporting.words import percent

if TYPE_CHECKING:
    from docx.document import Document

    from gp4c.reporting.page.html_report import Report

#: inches of pictures
_WIDTH = 6.0


def report_docx(report: Report) -> bytes:
    """The report as a Word document; its figures have bands of the report's level."""
    document, level = new_document(report.title), percent(report.level)
    document.add_heading(plain(report.title), 0)
    parts = [blocks_of(report.header(), level)]
    for section in report.sections():
        parts.append([Block("heading", section.heading), *blocks_of(section.html, level)])
    for block in (block for part in parts for block in part):
        _add(document, block, report)
    return document_bytes(document)


def _add(document: Document, block: Block, report: Report) -> None:
    """Append one block."""
    if block.kind == "plot":
        png = figure_png(report.figures[block.text], level_key(report.level))
        _add_picture(document, png)
    elif block.kind == "picture":
        _add_picture(document, block.png)
    elif block.kind == "table":
        add_table(document, _table(block))
    elif block.kind == "caption":
        add_caption(document, "Figure", block.text)
    elif block.kind in ("heading", "subheading"):
        document.add_heading(plain(block.text), 1 if block.kind == "heading" else 2)
    elif block.text:
        style = {"item": "List Bullet", "code": "No Spacing"}.get(block.kind)
        document.add_paragraph(plain(block.text), style=style)


def _add_picture(document: Document, png: bytes) -> None:
    from docx.shared import Inches

    document.add_picture(io.BytesIO(png), width=Inches(_WIDTH))
    document.paragraphs[-1].paragraph_format.keep_with_next = True


def _table(block: Block) -> Table:
    """A table of the page; one without heads of columns has none in Word either."""
    wide = max(map(len, [block.head, *block.rows]))
    head = block.head or [""] * wide
    return Table(block.text, tuple(head), tuple(map(tuple, block.rows)))
