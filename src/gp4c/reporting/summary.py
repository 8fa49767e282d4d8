"""What a fitted model says, in words and numbers that fit on a screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from gp4c.data.checks import unknown_name
from gp4c.data.summaries.panel_summary import TO_THE_LEFT
from gp4c.estimators.types.typed_answers import TypedCurves
from gp4c.plain import printable
from gp4c.reporting.remarks import warnings_of
from gp4c.reporting.row import FOLD, Row
from gp4c.reporting.rows.typed_rows import typed_rows
from gp4c.reporting.summary_rows import rows_of, title_of
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.estimators.base import PanelEstimator
    from gp4c.reporting.figures.curves import Curves

_WIDTH = 80
_NAME_WIDTH = 22


@dataclass(frozen=True)
class ModelSummary:
    """What was fitted to what, with what result, and what to beware of.

    Printing gives a table of at most 80 columns; notebooks show it as HTML. Rows with details of
    the computation are not printed: ``summary["posterior"]``, ``to_frame()`` and ``to_dict()`` have
    them, and HTML folds them away.

    Attributes
    ----------
    title : str
    rows : tuple of Row
        Section, quantity, text, and the numbers behind it.
    remarks : tuple of str
        What to beware of.
    """

    title: str
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()

    @property
    def plain_rows(self) -> tuple[Row, ...]:
        """Rows that are printed."""
        return tuple(row for row in self.rows if not row.detail)

    @property
    def details(self) -> tuple[Row, ...]:
        """Rows for those who know the method."""
        return tuple(row for row in self.rows if row.detail)

    def __getitem__(self, quantity: str) -> Row:
        for row in self.rows:
            if row.quantity == quantity:
                return row
        known = unknown_name(quantity, [row.quantity for row in self.rows])
        raise KeyError(f"the summary has no {quantity!r}; {known}")

    def to_frame(self) -> pd.DataFrame:
        """One row per quantity: section, quantity, value, low, high, text.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> list(model.summary().to_frame().columns)
        ['section', 'quantity', 'value', 'low', 'high', 'text']
        """
        import pandas as pd

        columns = ("section", "quantity", "value", "low", "high", "text")
        return pd.DataFrame(
            [[getattr(row, c) for c in columns] for row in self.rows], columns=columns
        )

    def to_dict(self) -> dict[str, object]:
        """The same as plain values, for JSON; what is not a finite number is None.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> model.summary().to_dict()["title"]
        'HomogeneousPoisson: constant event rate'
        """
        sections: dict[str, dict[str, object]] = {}
        for row in self.rows:
            entry = {"text": row.text} | {
                name: getattr(row, name)
                for name in ("value", "low", "high")
                if getattr(row, name) is not None
            }
            sections.setdefault(row.section, {})[row.quantity] = entry
        return {"title": self.title, **sections, "beware": list(self.remarks)}

    def __str__(self) -> str:
        return printable("\n".join(self._lines()))

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        yield from textwrap.wrap(self.title, _WIDTH)
        section = ""
        for row in self.plain_rows:
            if row.section != section:
                section = row.section
                yield from ("", section)
            yield from _wrapped(f"  {row.quantity:<{_NAME_WIDTH}}  ", row.text)
        if self.remarks:
            yield from ("", "Beware")
        for remark in self.remarks:
            yield from _wrapped("  - ", remark)

    def _repr_html_(self) -> str:
        parts = [f"<table><caption>{escape(self.title)}</caption><tbody>"]
        section = ""
        for row in self.plain_rows:
            if row.section != section:
                section = row.section
                parts.append(
                    f'<tr><th colspan="2" scope="rowgroup"{TO_THE_LEFT}>{escape(section)}</th></tr>'
                )
            parts.append(_cells(row))
        parts.append("</tbody></table>")
        if self.details:
            rows = "".join(map(_cells, self.details))
            parts.append(f"<details><summary>{FOLD}</summary><table>{rows}</table></details>")
        if self.remarks:
            items = "".join(f"<li>{escape(remark)}</li>" for remark in self.remarks)
            parts.append(f"<p><strong>Beware</strong></p><ul>{items}</ul>")
        return "".join(parts)


def summarise(
    model: PanelEstimator, *, level: float = 0.95, curves: Curves | None = None
) -> ModelSummary:
    """Summarise a fitted estimator.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of gp4c.
    level : float in (0, 1)
        Level of the bands.
    curves : Curves, optional
        The model's curves, if they have been evaluated already: saves doing it again.

    Returns
    -------
    ModelSummary
        Text; ``to_frame()`` for a table, ``to_dict()`` for JSON.

    Examples
    --------
    >>> import gp4c
    >>> from gp4c.reporting.summary import summarise
    >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
    >>> summarise(model)["converged"].text
    'yes, after 1 step'
    """
    model._check_fitted()
    if isinstance(model, TypedCurves) and model.event_types_:
        with one_blas_thread():
            return ModelSummary(title_of(model), tuple(typed_rows(model, level)))
    with one_blas_thread():
        rows = tuple(rows_of(model, level, curves))
    return ModelSummary(title_of(model), rows, tuple(warnings_of(model)))


def _cells(row: Row) -> str:
    texts = (f"<td{TO_THE_LEFT}>{escape(text)}</td>" for text in (row.quantity, row.text))
    return f"<tr>{''.join(texts)}</tr>"


def _wrapped(head: str, text: str) -> list[str]:
    """Text after its name, further lines indented to where it began."""
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head)) or [
        head.rstrip()
    ]
