"""A table to publish: texts that were formatted once, and the numbers behind them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from textwrap import fill
from typing import TYPE_CHECKING

from gp4c.plain import printable

if TYPE_CHECKING:
    import os

    import pandas as pd

_WIDTH = 80
#: how a cell of numbers begins: a digit, a sign, a bound, a dash for what is not defined, or p
_NUMBER = re.compile(r"[\d+\-−<>–∞]|not defined|p [<=]|above|below")


@dataclass(frozen=True, eq=False)
class Table:
    """A table to publish.

    Printing shows it; notebooks show it as HTML; :meth:`save` writes it as HTML, LaTeX, Word,
    Markdown or CSV. All but CSV show the same texts. CSV holds the numbers in full.

    Attributes
    ----------
    title : str
        What the table is about, without a number.
    columns : tuple of str
        Heads of the columns.
    rows : tuple of tuple of str
        Cells as they are shown. A row of one cell is a heading over the rows that follow it.
    notes : tuple of str
        Sentences that stand below the table.
    caption : str
        A sentence that stands after the title.
    numbers : pandas.DataFrame, optional
        The numbers behind the texts; the texts themselves if absent.

    Examples
    --------
    >>> import gp4c
    >>> table = gp4c.load_dataset("bladder").table(by="treatment")
    >>> table.columns
    ('', 'placebo', 'thiotepa', 'all')
    >>> table.rows[0]
    ('subjects', '47', '38', '85')
    >>> table.save("table1.docx")  # doctest: +SKIP
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    caption: str = ""
    numbers: pd.DataFrame | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file, whole or not at all.

        Parameters
        ----------
        path : path
            Its suffix chooses the format: ``.docx`` (Word), ``.tex``, ``.html``, ``.md`` or
            ``.csv``. Word needs the extra ``word``: ``pip install gp4c[word]``.

        Examples
        --------
        >>> import gp4c
        >>> table = gp4c.load_dataset("bladder").table(by="treatment")
        >>> table.save("table1.tex")  # doctest: +SKIP
        """
        from gp4c.atomic import replacing

        content = import_module("gp4c.reporting.publication").writer_for(path).content(self)
        with replacing(path) as temporary:
            temporary.write_bytes(content)

    def to_frame(self) -> pd.DataFrame:
        """The numbers in full, as a data frame.

        Examples
        --------
        >>> import gp4c
        >>> frame = gp4c.load_dataset("bladder").table(by="treatment").to_frame()
        >>> list(frame.columns)
        ['quantity', 'statistic', 'placebo', 'thiotepa', 'all']
        """
        import pandas as pd

        if self.numbers is not None:
            return self.numbers.copy()
        return pd.DataFrame(self.filled(), columns=list(self.columns))

    def to_html(self) -> str:
        """The table as a fragment of HTML, every text escaped.

        Examples
        --------
        >>> import gp4c
        >>> gp4c.load_dataset("bladder").table().to_html()[:30]
        '<table><caption><strong>Panel.'
        """
        return self._text(".html")

    def to_latex(self) -> str:
        r"""The table in LaTeX; it needs the package ``booktabs``.

        Examples
        --------
        >>> import gp4c
        >>> print(gp4c.load_dataset("bladder").table().to_latex().splitlines()[1])
        \begin{table}
        """
        return self._text(".tex")

    def to_markdown(self) -> str:
        """The table in Markdown, with pipes.

        Examples
        --------
        >>> import gp4c
        >>> print(gp4c.load_dataset("bladder").table().to_markdown().splitlines()[4])
        | subjects | 85 |
        """
        return self._text(".md")

    def _text(self, suffix: str) -> str:
        text: str = import_module("gp4c.reporting.publication").WRITERS[suffix].text(self)
        return text

    def filled(self) -> list[list[str]]:
        """Rows of one length: headings have empty cells after them.

        :meta private:
        """
        return [[*row, *[""] * (len(self.columns) - len(row))] for row in self.rows]

    def is_heading(self, row: tuple[str, ...]) -> bool:
        """Whether a row is a heading over others.

        :meta private:
        """
        return len(row) == 1 < len(self.columns)

    def is_numeric(self, column: int) -> bool:
        """Whether the cells of a column are numbers, which stand flush right.

        :meta private:
        """
        cells = [row[column] for row in self.rows if column < len(row) and row[column]]
        return column > 0 and all(_NUMBER.match(cell) for cell in cells)

    def __str__(self) -> str:
        inset = "  " if any(map(self.is_heading, self.rows)) else ""
        lines = [self.columns]
        lines += [r if self.is_heading(r) else (inset + r[0], *r[1:]) for r in self.rows]
        whole = [line for line in lines if len(line) == len(self.columns)]
        widths = [max(map(len, cells)) for cells in zip(*whole, strict=True)]
        pads = [str.rjust if self.is_numeric(k) else str.ljust for k in range(len(widths))]
        shown = [
            "  " + "  ".join(pad(cell, w) for pad, cell, w in zip(pads, line, widths, strict=False))
            for line in lines  # a heading is one cell, which may run over the columns beside it
        ]
        said = [fill(self.caption, _WIDTH)] if self.caption else []
        notes = (fill(f"Note: {note}", _WIDTH, subsequent_indent="  ") for note in self.notes)
        return printable("\n".join([self.title, *said, *map(str.rstrip, shown), *notes]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_html()
