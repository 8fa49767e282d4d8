"""Columns of numbers, dates or durations, as numbers on one axis of time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import LARGEST_SIZE, Problems
from gp4c.data.subjects import FloatArray
from gp4c.data.tables.columns import (
    BoolArray,
    Numbers,
    check_cells,
    missing_cells,
    parse_numbers,
    shown_cell,
)
from gp4c.data.tables.times.date_texts import OrderEvidence, as_iso, both_readings
from gp4c.data.timeaxis import MICROSECONDS, TimeAxis, as_moment, known_unit
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.tables.columns import Column
    from gp4c.data.timeaxis import Moment

#: whole numbers that may be dates, written year, month, day without a mark
_FIRST_COMPACT, _LAST_COMPACT = 19000101, 21001231


@dataclass(frozen=True)
class _Cells:
    """One column: kind "number", "date" or "duration"; microseconds for the latter two."""

    kind: str
    values: FloatArray | NDArray[np.int64]
    missing: BoolArray
    unreadable: BoolArray
    too_large: BoolArray

    @property
    def empty(self) -> bool:
        """Whether there is no time at all."""
        return bool((self.missing | self.unreadable).all())


def _parse(column: Column, day_first: bool | None = None) -> _Cells:
    """Read one column of times; text and objects are numbers or dates, whichever fits more."""
    import pandas as pd

    kind = pd.api.types
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if kind.is_datetime64_any_dtype(column.dtype):
        return _dates(column, column.isna().to_numpy(dtype=bool))
    if kind.is_timedelta64_dtype(column.dtype):
        return _durations(column)
    numbers = parse_numbers(column)
    as_numbers = _Cells(
        "number", numbers.values, numbers.missing, numbers.unreadable, numbers.too_large
    )
    if not numbers.unreadable.any() or kind.is_bool_dtype(column.dtype):
        compact = _compact_dates(numbers)
        return as_numbers if compact is None else _dates(compact, numbers.missing)
    missing = missing_cells(column)
    cells = column.astype(object)
    datelike = cells.map(lambda cell: isinstance(cell, str | dt.date)).to_numpy(dtype=bool)
    texts = cells.where(datelike & ~missing, None)
    as_dates = _dates(_parse_iso(texts), missing)
    if as_dates.unreadable.any():
        iso = {cell: as_iso(cell, day_first) for cell in texts.dropna().unique()}
        as_dates = _dates(_parse_iso(texts.map(iso)), missing)
    return as_dates if as_dates.unreadable.sum() < as_numbers.unreadable.sum() else as_numbers


def _compact_dates(numbers: Numbers) -> Column | None:
    """Dates from whole numbers such as 20240131, if every one is a day; else None."""
    import pandas as pd

    values = numbers.values[~numbers.missing]
    if not len(values) or values.min() < _FIRST_COMPACT or values.max() > _LAST_COMPACT:
        return None
    if np.any(values != np.floor(values)):
        return None
    texts = pd.Series(numbers.values).map(lambda value: f"{value:.0f}", na_action="ignore")
    found = pd.to_datetime(texts, format="%Y%m%d", errors="coerce")
    return None if bool((found.isna().to_numpy() & ~numbers.missing).any()) else found


def _parse_iso(texts: Column) -> Column:
    """Dates and ISO texts as UTC timestamps, NaT where a cell is neither."""
    import pandas as pd

    try:
        return pd.to_datetime(texts, errors="coerce", format="ISO8601", utc=True)
    except (TypeError, ValueError, OverflowError):
        return pd.Series(pd.NaT, index=texts.index)


def _dates(column: Column, missing: BoolArray) -> _Cells:
    if getattr(column.dtype, "tz", None) is not None or "tz=" in str(column.dtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    moments = column.to_numpy(dtype="datetime64[us]", na_value=np.datetime64("NaT", "us"))
    bad = np.isnat(moments)
    none = np.zeros(len(column), dtype=bool)
    return _Cells("date", moments.view(np.int64), missing, bad & ~missing, none)


def _durations(column: Column) -> _Cells:
    spans = column.to_numpy(dtype="timedelta64[us]", na_value=np.timedelta64("NaT", "us"))
    missing = np.isnat(spans)
    none = np.zeros(len(column), dtype=bool)
    return _Cells("duration", spans.view(np.int64), missing, none, none)


def read_times(
    problems: Problems,
    columns: Mapping[str, Column],
    time_unit: str | None,
    origin: Moment | None = None,
    zero: str | None = None,
    names: Mapping[str, str] | None = None,
    optional: Collection[str] = (),
    day_first: bool | None = None,
) -> tuple[dict[str, FloatArray], TimeAxis]:
    """Read columns of times on one axis.

    Parameters
    ----------
    problems : Problems
        Collects cells that are missing or no time.
    columns : mapping of str to Series
        Columns by role.
    time_unit : str, optional
        Any text for numbers; for dates a known unit, "days" if absent.
    origin : date, optional
        Time 0 of dates.
    zero : str, optional
        Role whose earliest date is time 0 if no origin is given; default any.
    names : mapping of str to str, optional
        Column name of each role, for messages.
    optional : collection of str
        Roles whose cells may be missing.
    day_first : bool, optional
        The order in dates such as 1/2/2024; without it the columns together must tell.

    Returns
    -------
    times : dict of float arrays
        NaN where a cell was flagged.
    axis : TimeAxis
    """
    named = {role if names is None else names[role]: column for role, column in columns.items()}
    day_first, said = _order_of_days(problems, named, day_first)
    cells = {name: _parse(column, day_first) for name, column in columns.items()}
    axis = _axis(cells, time_unit, origin, zero, day_first)
    axis = replace(axis, notes=(*said, *axis.notes))
    times = {name: _on_axis(cell, axis) for name, cell in cells.items()}
    for role, cell in cells.items():
        name = role if names is None else names[role]
        missing = cell.missing & (role not in optional)
        read = Numbers(times[role], missing, cell.unreadable, cell.too_large)
        check_cells(problems, name, columns[role], read, "a number or a date")
        problems.flag(
            cell.too_large,
            f"{name!r} must be at most 2^53 in size, or rounding would move it",
            partial(shown_cell, columns[role]),
        )
        problems.flag(
            np.isfinite(times[role]) & (np.abs(times[role]) > LARGEST_SIZE) & ~cell.too_large,
            f"{name!r} must be at most {LARGEST_SIZE:g} in size",
            partial(shown_cell, columns[role]),
        )
    return times, axis


def _order_of_days(
    problems: Problems, columns: Mapping[str, Column], given: bool | None
) -> tuple[bool | None, list[str]]:
    """Whether days come first in dates such as 1/2/2024, by all columns, and what to say of it."""
    import pandas as pd

    found: dict[str, tuple[str, str]] = {}
    for name, column in columns.items():
        texts = column.dtype == object or pd.api.types.is_string_dtype(column.dtype)
        if not texts and not isinstance(column.dtype, pd.CategoricalDtype):
            continue
        evidence = OrderEvidence.of(column.dropna().unique())
        for kind in ("day", "month", "open", "short_year"):
            if (text := getattr(evidence, kind)) is not None:
                found.setdefault(kind, (name, text))
    notes = []
    if "short_year" in found:
        notes.append("years of two digits: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068")
    if given is not None:
        return given, notes
    if "day" in found and "month" in found:
        (one, first), (two, second) = found["day"], found["month"]
        rows = [_row_of(columns[one], first), _row_of(columns[two], second)]
        problems.fail(
            rows,
            f"dates must have one order of day and month; {first!r} in {one!r} has the day first, "
            f"{second!r} in {two!r} the month",
        )
    if "day" in found or "month" in found:
        is_day = "day" in found
        name, text = found["day" if is_day else "month"]
        order = "day/month/year" if is_day else "month/day/year"
        return is_day, [f"dates are {order}: {text!r} in {name!r} has no other meaning", *notes]
    if "open" in found:
        name, text = found["open"]
        problems.fail(
            [_row_of(columns[name], text)],
            f"the dates in {name!r} can be read in two ways, and no row tells which: "
            f"{both_readings(text)}; pass day_first=True or day_first=False",
        )
    return None, notes


def _row_of(column: Column, text: str) -> int:
    """The first row with a text."""
    return int(np.flatnonzero(column.astype(object).to_numpy() == text)[0])


def _axis(
    cells: Mapping[str, _Cells],
    time_unit: str | None,
    origin: Moment | None,
    zero: str | None,
    day_first: bool | None = None,
) -> TimeAxis:
    """Choose the axis; numbers, dates and durations do not mix."""
    kinds = {cell.kind for cell in cells.values() if not cell.empty} or {"number"}
    if len(kinds) > 1:
        said = ", ".join(f"{name!r} holds {cell.kind}s" for name, cell in cells.items())
        raise PanelDataError(f"times must be all numbers, all dates or all durations; {said}")
    kind = kinds.pop()
    if kind != "date" and origin is not None:
        raise PanelDataError(f"origin is for times given as dates; found {origin!r}")
    if kind == "number":
        return TimeAxis(None if time_unit is None else str(time_unit))
    axis = _calendar_axis(
        kind, cells, time_unit, None if origin is None else as_moment(origin, day_first), zero
    )
    return replace(axis, day_first=day_first)


def _on_axis(cell: _Cells, axis: TimeAxis) -> FloatArray:
    """Times as floats, NaN where the cell is no time."""
    if cell.empty:
        return np.full(len(cell.values), np.nan)
    if cell.kind == "number" or axis.unit is None:
        return cell.values.astype(np.float64)
    shift = 0 if axis.origin is None else int(as_moment(axis.origin).astype(np.int64))
    values = (cell.values - shift) / MICROSECONDS[axis.unit]
    return np.where(cell.missing | cell.unreadable, np.nan, values)


def _calendar_axis(
    kind: str,
    cells: Mapping[str, _Cells],
    time_unit: str | None,
    origin: np.datetime64 | None,
    zero: str | None,
) -> TimeAxis:
    """Choose unit and origin for dates or durations, and say so."""
    import pandas as pd

    unit = known_unit("days" if time_unit is None else time_unit)
    if kind == "duration":
        note = f"durations were converted to {unit}"
        return TimeAxis(unit, None, (note,) if time_unit is None else ())
    if origin is not None:
        moment = origin
    else:
        chosen = [cell for name, cell in cells.items() if zero in (None, name)]
        earliest = [
            int(cell.values[~(cell.missing | cell.unreadable)].min())
            for cell in chosen
            if not cell.empty
        ]
        moment = np.datetime64(min(earliest, default=0), "us")
    stamp = pd.Timestamp(moment)
    day = stamp.date().isoformat() if stamp == stamp.normalize() else stamp.isoformat(sep=" ")
    return TimeAxis(unit, stamp, (f"dates were converted to {unit} since {day}",))
