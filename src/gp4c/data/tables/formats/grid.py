"""Rows of cells as a table: where its header is, and what its columns hold."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.checks import LARGEST_EXACT, plural
from gp4c.data.tables.frames import Table
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.tables.columns import Column

#: rows above a header that may hold a title or remarks
_ABOVE = 20


def table_from_grid(
    rows: Sequence[tuple[int, Sequence[object]]], source: str, notes: tuple[str, ...] = ()
) -> Table:
    """A table from numbered rows of cells, blank cells being None or "".

    Parameters
    ----------
    rows : sequence of (number, cells)
        Numbers as the user sees them.
    source : str
        For messages.
    notes : tuple of str

    Returns
    -------
    Table
        Blank rows and columns are left out; rows are named by their numbers.
    """
    filled = [(number, cells) for number, cells in rows if any(not is_blank(c) for c in cells)]
    if not filled:
        raise PanelDataError(f"{source} is empty; it needs a header and at least one row")
    above = header_position([[not is_blank(c) for c in cells] for _, cells in filled])
    if above:
        notes += (f"{plural(above, 'row')} above the header left out",)
    (header_row, header), body = filled[above], filled[above + 1 :]
    if not body:
        raise PanelDataError(f"{source} is empty; it needs a header and at least one row")
    names = ["" if is_blank(cell) else _name(cell) for cell in header]
    _check_names(names, source, header_row)
    columns: dict[str, Column] = {}
    for k, name in enumerate(names):
        cells = [row[k] if k < len(row) else None for _, row in body]
        if name:
            columns[name] = column_of(cells)
        elif not all(is_blank(cell) for cell in cells):
            notes += ("a column without a name was left out",)
    numbers = [number for number, _ in body]

    def locate(positions: Sequence[int]) -> str:
        named = " and ".join(str(numbers[position]) for position in positions)
        return f"row{'s' * (len(positions) > 1)} {named} of the sheet"

    return Table(columns, len(body), locate, source, tuple(dict.fromkeys(notes)))


def header_position(filled: Sequence[Sequence[bool]]) -> int:
    """Number of rows above the header: those with at most half as many cells as the table is wide.

    Parameters
    ----------
    filled : sequence of sequences of bool
        Which cells of each row hold something; rows without any are left out.
    """
    width = int(np.median([sum(row) for row in filled[: 10 * _ABOVE]]))
    for k, row in enumerate(filled[:_ABOVE]):
        if 2 * sum(row) > width:
            return k
    return 0


def is_blank(cell: object) -> bool:
    """Whether a cell holds nothing, or nothing but spaces."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def column_of(cells: Sequence[object]) -> Column:
    """Cells of one column: whole numbers, numbers, dates, durations, or whatever they are."""
    import pandas as pd

    values = [None if is_blank(cell) else _plain(cell) for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int} and None not in values:
        return pd.Series(values, dtype=object).infer_objects()
    if kinds <= {int, float} and all(abs(value or 0) <= LARGEST_EXACT for value in values):
        return whole_numbers(pd.Series(values, dtype=np.float64))
    if kinds and kinds <= {dt.date, dt.datetime, pd.Timestamp}:
        zones = any(isinstance(v, dt.datetime) and v.tzinfo is not None for v in values)
        return pd.to_datetime(pd.Series(values, dtype=object), errors="coerce", utc=zones)
    if kinds and kinds <= {dt.timedelta, pd.Timedelta}:
        return pd.to_timedelta(pd.Series(values, dtype=object))
    if kinds == {bool} and None not in values:
        return pd.Series(values, dtype=bool)
    return pd.Series(values, dtype=str if kinds == {str} else object)


def whole_numbers(column: Column) -> Column:
    """A column of floats as integers if that is what it holds, for files that know only floats."""
    values = column.to_numpy(dtype=np.float64)
    if not len(values) or not np.all(np.isfinite(values) & (np.abs(values) <= LARGEST_EXACT)):
        return column
    return column.astype(np.int64) if bool(np.all(values == np.floor(values))) else column


def _plain(value: Any) -> Any:
    """A number of Python: decimals as floats, whole floats as integers (7, not 7.0)."""
    if isinstance(value, Decimal | np.floating):
        value = float(value)
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _name(cell: object) -> str:
    return str(_plain(cell)).strip()


def _check_names(names: list[str], source: str, row: int) -> None:
    """A header has names, and they differ."""
    present = [name for name in names if name]
    if len(present) == 1:
        raise PanelDataError(f"{source} has a single column {present[0][:60]!r}; is it a table?")
    if all(name.replace(".", "", 1).lstrip("-").isdigit() for name in present):
        listed = ", ".join(present[:8])
        raise PanelDataError(
            f"the first row must hold column names; found numbers {listed} (row {row})"
        )
    twice = [name for name in dict.fromkeys(present) if present.count(name) > 1]
    if twice:
        raise PanelDataError(f"column names must differ; {twice[0]!r} occurs twice (row {row})")
