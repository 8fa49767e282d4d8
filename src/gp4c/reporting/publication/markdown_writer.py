"""Tables as Markdown with pipes, as GitHub, Quarto and pandoc read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gp4c.plain import printable
from gp4c.reporting.publication.table_writer import TableWriter

if TYPE_CHECKING:
    from gp4c.data.summaries.table import Table

#: what Markdown would take for markup
_MARKUP = re.compile(r"([\\`*_\[\]<>&|~$#])")


class MarkdownWriter(TableWriter):
    """A pipe table."""

    suffix = ".md"

    def text(self, table: Table) -> str:
        """Title, table, notes."""
        rule = ["---:" if table.is_numeric(k) else ":---" for k in range(len(table.columns))]
        lines = [_line(list(map(_safe, table.columns))), _line(rule)]
        for row, filled in zip(table.rows, table.filled(), strict=True):
            cells = list(map(_safe, filled))
            if table.is_heading(row):
                cells[0] = f"**{cells[0]}**"
            lines.append(_line(cells))
        head = f"**{_safe(table.title)}.**" + (f" {_safe(table.caption)}" if table.caption else "")
        notes = [part for note in table.notes for part in ("", _safe(note))]
        return "\n".join([head, "", *lines, *notes, ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _safe(text: str) -> str:
    """One line of text without markup."""
    return _MARKUP.sub(r"\\\1", " ".join(printable(text).split()))
