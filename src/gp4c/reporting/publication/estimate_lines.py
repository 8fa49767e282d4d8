"""Estimates with intervals as the lines of a table: formatted once, for every format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gp4c.data.summaries.table import Table
from gp4c.reporting.effect_rows import p_cell
from gp4c.reporting.words import estimate, percent

if TYPE_CHECKING:
    import pandas as pd

#: what stands in the place of an interval or p-value that is not defined
NONE = "–"


@dataclass(frozen=True)
class Estimate:
    """One line: a number, its interval, and what it is.

    Attributes
    ----------
    section, quantity : str
        The heading that it stands under, and its name.
    value : float
    interval : (float, float), optional
    p_value : float, optional
    certain : bool
        Whether the value has no interval to show: a number of things, or a probability.
    """

    section: str
    quantity: str
    value: float
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    certain: bool = False

    def value_text(self) -> str:
        """The number, as it is shown."""
        whole = self.certain and self.value.is_integer()
        return f"{self.value:,.0f}" if whole else estimate(self.value)

    def interval_text(self) -> str:
        """Its interval; a dash where there should be one."""
        if self.interval is None:
            return "" if self.certain else NONE
        return " to ".join(map(estimate, self.interval))

    def p_text(self) -> str:
        """Its p-value, if it has one."""
        return "" if self.p_value is None else p_cell(self.p_value)

    def text(self) -> str:
        """Number and interval in one cell."""
        interval = self.interval_text()
        return f"{self.value_text()} ({interval})" if interval else self.value_text()


def one_column(
    title: str, lines: Sequence[Estimate], level: float, notes: Iterable[str] = (),
    caption: str = "",
) -> Table:  # fmt: skip
    """A table of estimates, their intervals and, where there are any, p-values."""
    with_p = any(line.p_value is not None for line in lines)
    columns = ("", "estimate", f"{percent(level)} interval", *(["p"] if with_p else []))
    rows = [
        (line.quantity, line.value_text(), line.interval_text())
        + ((line.p_text(),) if with_p else ())
        for line in lines
    ]
    return Table(
        title, columns, _with_headings(lines, rows), tuple(notes), caption,
        _numbers({"": lines}, level),
    )  # fmt: skip


def by_group(
    title: str, groups: Mapping[str, Sequence[Estimate]], level: float,
    notes: Iterable[str] = (), caption: str = "",
) -> Table:  # fmt: skip
    """A table with a column for each group; lines that a group does not have are left open."""
    known = {
        name: {(line.section, line.quantity): line for line in lines}
        for name, lines in groups.items()
    }
    first: dict[tuple[str, str], Estimate] = {}
    for lines in groups.values():
        for line in lines:
            first.setdefault((line.section, line.quantity), line)
    order = list(dict.fromkeys(key[0] for key in first))
    keys = sorted(first, key=lambda key: order.index(key[0]))
    rows = [
        (key[1], *(each[key].text() if key in each else NONE for each in known.values()))
        for key in keys
    ]
    return Table(
        title, ("", *groups), _with_headings([first[key] for key in keys], rows),
        (*notes, f"In brackets: {percent(level)} intervals."), caption, _numbers(groups, level),
    )  # fmt: skip


def _with_headings(
    lines: Sequence[Estimate], rows: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    """Rows with the heading of each section over them."""
    found: list[tuple[str, ...]] = []
    section = ""
    for line, row in zip(lines, rows, strict=True):
        if line.section != section:
            section = line.section
            found.append((section,))
        found.append(row)
    return tuple(found)


def _numbers(groups: Mapping[str, Sequence[Estimate]], level: float) -> pd.DataFrame:
    """One row per estimate, in full."""
    import pandas as pd

    rows = []
    for name, lines in groups.items():
        for line in lines:
            low, high = (None, None) if line.interval is None else line.interval
            rows.append(
                {"group": name, "section": line.section, "quantity": line.quantity,
                 "value": line.value, "low": low, "high": high, "level": level,
                 "p_value": line.p_value}
            )  # fmt: skip
    frame = pd.DataFrame(rows).astype({"low": float, "high": float, "p_value": float})
    return frame.drop(columns="group") if list(groups) == [""] else frame
