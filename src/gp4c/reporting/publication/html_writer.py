"""Tables as HTML: a fragment for notebooks and pages, or a file that loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from gp4c.plain import printable
from gp4c.reporting.publication.table_writer import TableWriter

if TYPE_CHECKING:
    from gp4c.data.summaries.table import Table

_STYLE = """
body { font: 16px/1.5 Georgia, "Times New Roman", serif; margin: 2rem; color: #111; background: #fff; }
table { border-collapse: collapse; border-top: 2px solid #111; border-bottom: 2px solid #111; }
caption { text-align: left; padding-bottom: .5rem; }
th, td { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; font-weight: normal; }
thead th { border-bottom: 1px solid #111; vertical-align: bottom; }
tbody th[scope=rowgroup] { font-style: italic; padding-top: .5rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.note { font-size: .88rem; max-width: 42rem; margin: .4rem 0 0; }
"""  # noqa: E501


class HtmlWriter(TableWriter):
    """A table element with heads that screen readers announce."""

    suffix = ".html"

    def text(self, table: Table) -> str:
        """The table and its notes."""
        return "".join(_parts(table))

    def content(self, table: Table) -> bytes:
        """A page of its own."""
        page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_safe(table.title)}</title>
<style>{_STYLE}</style>
</head>
<body>
{self.text(table)}
</body>
</html>
"""
        return page.encode()


def _parts(table: Table) -> Iterator[str]:
    caption = f" {_safe(table.caption)}" if table.caption else ""
    yield f"<table><caption><strong>{_safe(table.title)}.</strong>{caption}</caption>"
    right = [' class="number"' if table.is_numeric(k) else "" for k in range(len(table.columns))]
    heads = zip(right, table.columns, strict=True)
    names = "".join(f'<th scope="col"{mark}>{_safe(name)}</th>' for mark, name in heads)
    yield f"<thead><tr>{names}</tr></thead><tbody>"
    for row in table.rows:
        if table.is_heading(row):
            wide = len(table.columns)
            yield f'<tr><th scope="rowgroup" colspan="{wide}">{_safe(row[0])}</th></tr>'
        else:
            yield f"<tr>{_cells(row, right)}</tr>"
    yield "</tbody></table>"
    yield from (f'<p class="note">{_safe(note)}</p>' for note in table.notes)


def _cells(row: Sequence[str], right: Sequence[str]) -> str:
    others = zip(right[1:], row[1:], strict=True)
    cells = "".join(f"<td{mark}>{_safe(cell)}</td>" for mark, cell in others)
    return f'<th scope="row">{_safe(row[0])}</th>{cells}'


def _safe(text: str) -> str:
    return escape(printable(text))
