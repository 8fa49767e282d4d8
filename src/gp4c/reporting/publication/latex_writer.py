r"""Tables in LaTeX, for ``\input``: booktabs, and longtable where a page is too short."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gp4c.plain import printable
from gp4c.reporting.publication.table_writer import TableWriter

if TYPE_CHECKING:
    from gp4c.data.summaries.table import Table

#: rows that fit on a page
_ONE_PAGE = 40
#: what LaTeX obeys, joins, or lacks in plain fonts; a bracket or star may follow the end of a row
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "^": r"\textasciicircum{}", "_": r"\_", "~": r"\textasciitilde{}", "%": r"\%",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}", "'": r"\textquotesingle{}", "[": "{[}", "]": "{]}", "*": "{*}",
    "-": "-{}", "–": "--", "−": "$-$", "∞": r"$\infty$", "×": r"$\times$", "√": r"$\surd$",
    "≤": r"$\leq$", "≥": r"$\geq$", "±": r"$\pm$", "…": r"\dots{}",
}  # fmt: skip
# a hyphen by itself is left alone; two in a row would be joined
_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)).replace(r"\-", "-(?=-)"))


class LatexWriter(TableWriter):
    """A table environment with caption and label."""

    suffix = ".tex"

    def text(self, table: Table) -> str:
        """The environment; a comment says which packages it needs."""
        long = len(table.rows) > _ONE_PAGE
        return "\n".join([*(_long(table) if long else _short(table)), ""])


def _short(table: Table) -> Iterator[str]:
    yield "% \\usepackage[T1]{fontenc}\\usepackage{booktabs}"
    yield r"\begin{table}"
    yield r"\centering"
    yield _caption(table)
    yield f"\\begin{{tabular}}{{{_columns(table)}}}"
    yield from (r"\toprule", _row(table.columns), r"\midrule")
    yield from _body(table)
    yield from (r"\bottomrule", r"\end{tabular}")
    if table.notes:
        yield r"\par\medskip\begin{minipage}{\linewidth}\footnotesize"
        yield "\\par\n".join(map(latex, table.notes))
        yield r"\end{minipage}"
    yield r"\end{table}"


def _long(table: Table) -> Iterator[str]:
    yield "% \\usepackage[T1]{fontenc}\\usepackage{booktabs,longtable}"
    yield f"\\begin{{longtable}}{{{_columns(table)}}}"
    yield _caption(table) + r" \\"
    head = (r"\toprule", _row(table.columns), r"\midrule")
    yield from (*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endlastfoot")
    yield from _body(table)
    yield r"\end{longtable}"
    if table.notes:
        yield "{\\footnotesize\\noindent\n" + "\\par\\noindent\n".join(map(latex, table.notes))
        yield r"\par}"


def _caption(table: Table) -> str:
    words = f"{latex(table.title)}. {latex(table.caption)}".strip()
    name = "-".join(re.findall("[a-z0-9]+", table.title.lower())) or "gp4c"
    return f"\\caption{{{words}}}\\label{{tab:{name}}}"


def _columns(table: Table) -> str:
    return "".join("r" if table.is_numeric(k) else "l" for k in range(len(table.columns)))


def _body(table: Table) -> Iterator[str]:
    for row in table.rows:
        if table.is_heading(row):
            wide = f"\\multicolumn{{{len(table.columns)}}}{{l}}"
            yield f"{wide}{{\\textit{{{latex(row[0])}}}}} \\\\"
        else:
            yield _row(row)


def _row(cells: Sequence[str]) -> str:
    return f"{' & '.join(map(latex, cells))} \\\\"


def latex(text: str) -> str:
    r"""Plain text for LaTeX: ``50% & more`` is ``50\% \& more``."""
    return _SPECIAL.sub(lambda found: _LATEX[found[0]], " ".join(printable(text).split()))
