"""From a table of visits, with counts since the last visit or in total, to panel intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.checks import SHOWN, Problems, check_choice, plural, shown_number
from gp4c.data.ordering import row_order
from gp4c.data.subjects import FloatArray, IndexArray, IntArray, LabelArray
from gp4c.data.tables.build_panel import (
    PanelFields,
    RowArrays,
    assemble,
    check_roles,
    ends_of_rows,
    timed_columns,
)
from gp4c.data.tables.columns import (
    BoolArray,
    missing_cells,
    read_counts,
    read_exposure,
    read_labels,
)
from gp4c.data.tables.frames import Table
from gp4c.data.tables.service import end_of_service
from gp4c.data.tables.usage import check_usage
from gp4c.data.timeaxis import TimeAxis, read_times
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.timeaxis import Moment, Window


@dataclass(frozen=True)
class _Visits:
    """Visits in order: subject by subject, each in the order of the table or of time."""

    rows: IndexArray  # position in the table
    index: IndexArray
    labels: LabelArray
    time: FloatArray
    first: BoolArray  # the subject's first visit
    entry: FloatArray  # where the subject's first interval starts
    end: FloatArray | None = None  # when the subject went out of service, (K,)

    @property
    def before(self) -> FloatArray:
        """Time of the visit before, or the subject's entry."""
        return np.where(self.first, self.entry, np.concatenate([[np.nan], self.time[:-1]]))


def fields_from_visits(
    table: Table,
    *,
    names: dict[str, str],
    exposure: str | None,
    origin: Moment | None,
    cumulative: bool,
    since_entry: bool,
    sort: bool,
    window: Window | None,
    time_unit: str | None,
    missing: str,
    usage: str | None = None,
    end: str | None = None,
    clock: str = "time",
) -> PanelFields:
    """Validate a table with one row per subject and visit.

    Parameters
    ----------
    table : Table
    names : dict
        Columns of the roles subject, time and count.
    exposure, origin, cumulative, since_entry, sort, window, time_unit, missing, usage, end, clock
        As in :meth:`PanelCounts.from_visits`.

    Returns
    -------
    dict
        Arguments of ``PanelCounts._from_arrays``.
    """
    check_choice("missing", missing, ("error", "drop"))
    check_usage(exposure, usage, clock)
    if since_entry and isinstance(origin, int | float) and origin == 0:
        origin = None  # the default, which would be no entry at all
    entry_column = origin if isinstance(origin, str) and origin in table.columns else None
    extra = {"exposure": exposure, "usage": usage, "end": end, "origin": entry_column}
    exposure = exposure if usage is None else usage
    roles = {**names, **{role: name for role, name in extra.items() if name is not None}}
    check_roles(table, roles)
    notes: tuple[str, ...] = ()
    if cumulative and missing == "drop":
        table, notes = _without_missing_totals(table, names["count"], exposure)
    problems = Problems(table.locate)
    visits, axis = _read_visits(problems, table, roles, origin, (time_unit, sort))
    _check_order(problems, visits)
    baseline = visits.first & (np.isnan(visits.entry) | (visits.time == visits.entry))
    if cumulative:
        totals, _ = _read_counts(problems, table, names["count"], visits, np.zeros_like(baseline))
        count, uncounted = _increments(problems, visits, totals), np.zeros_like(baseline)
    else:  # a missing count is no problem at a baseline visit or if it is a gap
        optional = baseline | (missing == "drop")
        count, uncounted = _read_counts(problems, table, names["count"], visits, optional)
        _check_baseline(problems, visits, np.where(baseline, count, 0))
    kept = ~baseline & ~uncounted
    weight = None
    if exposure is not None:
        column = table.columns[exposure].iloc[visits.rows].reset_index(drop=True)
        weight = _read_exposure(problems, exposure, column, visits, (count, kept))
    problems.raise_any()
    if not kept.any():
        raise PanelDataError("no visit closes an interval with a count; nothing is left")
    if since_entry:
        visits, axis = _since_entry(visits, axis)
    arrays = RowArrays(
        start=visits.before[kept],
        stop=visits.time[kept],
        count=count[kept],
        exposure=None if weight is None else weight[kept],
    )
    return assemble(
        table.take(visits.rows[kept]),
        roles,
        (visits.index[kept], visits.labels, None),
        arrays,
        (axis, window),
        (*notes, *_left_out(visits, uncounted & ~baseline, kept)),
        visits.end,
        clock,
    )


def _read_visits(
    problems: Problems,
    table: Table,
    roles: dict[str, str],
    origin: Moment | None,
    options: tuple[str | None, bool],
) -> tuple[_Visits, TimeAxis]:
    """Read labels and times and put the visits in order."""
    time_unit, sort = options
    index, labels = read_labels(problems, roles["subject"], table.columns[roles["subject"]])
    columns = timed_columns(table, roles, ("time", "origin", "end"))
    date = origin if _is_date(origin) and "origin" not in roles else None
    times, axis = read_times(
        problems,
        columns,
        time_unit,
        date,
        zero="origin" if "origin" in roles else None,
        names=roles,
        optional=("end",),
    )
    if axis.origin is not None and not (date or origin is None or "origin" in roles):
        raise PanelDataError(
            "visit times are dates, so say where a subject's first interval starts: origin=a date, "
            "origin='column of entry dates', or origin=None for each subject's first visit; "
            "since_entry=True counts time from there instead of from the earliest date; "
            f"found origin={origin!r}"
        )
    time = times["time"]
    rows = row_order(index, time) if sort else np.argsort(index, kind="stable")
    rows = np.arange(len(index)) if rows is None else rows
    ordered = index[rows]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    if "origin" in roles:
        entry = times["origin"][rows]
        _check_constant(
            problems, roles["origin"], table.columns[roles["origin"]], rows, first, entry
        )
    else:
        entry = np.full(len(rows), np.nan if origin is None else _finite(axis.number(origin)))
    end = None
    if "end" in roles:
        cells = ends_of_rows(table.columns[roles["end"]], times.get("end"), index, time)
        end = end_of_service(problems, roles["end"], cells, time, index, labels)
    return _Visits(rows, ordered, labels, time[rows], first, entry, end), axis


def _since_entry(visits: _Visits, axis: TimeAxis) -> tuple[_Visits, TimeAxis]:
    """Visits with time counted from each subject's entry, its first visit if no other is known."""
    begin = np.where(np.isnan(visits.entry), visits.time, visits.entry)
    begin = begin[visits.first][np.cumsum(visits.first) - 1]
    own = begin[visits.first]
    end = None if visits.end is None else visits.end - own
    shifted = replace(visits, time=visits.time - begin, entry=np.zeros_like(begin), end=end)
    entry = "first visit" if np.isnan(visits.entry).all() else "entry"
    note = f"time is counted from each subject's {entry}" + (
        f" in {axis.unit}" if axis.unit else ""
    )
    return shifted, TimeAxis(axis.unit, None, (note,))


def _finite(origin: float) -> float:
    """Check an origin given as a number."""
    if not np.isfinite(origin):
        raise PanelDataError(f"origin must be finite; found {origin}")
    return origin


def _is_date(origin: Moment | None) -> bool:
    """Whether an origin was given as a date rather than as a number."""
    return origin is not None and not isinstance(origin, int | float | np.number)


def _check_constant(
    problems: Problems,
    name: str,
    column: pd.Series[Any],
    rows: IndexArray,
    first: BoolArray,
    entry: FloatArray,
) -> None:
    """The entry of a subject must be the same in all its rows."""
    moved = np.zeros(len(rows), dtype=bool)
    moved[rows[1:]] = ~first[1:] & (entry[1:] != entry[:-1])
    problems.flag(
        moved & ~missing_cells(column),
        f"{name!r} must be the same in all rows of a subject",
        lambda row: f"found another one, {column.iloc[row]}",
    )


def _without_missing_totals(
    table: Table, name: str, exposure: str | None
) -> tuple[Table, tuple[str, ...]]:
    """Leave out visits without a total, so that the intervals around them become one."""
    empty = missing_cells(table.columns[name])
    if not empty.any():
        return table, ()
    if empty.all():
        raise PanelDataError(f"{name!r} is missing in every row; nothing is left")
    if exposure is not None:
        row = int(np.flatnonzero(empty)[0])
        raise PanelDataError(
            "intervals around a visit without a total cannot be joined if they have exposures; "
            f"{name!r} is missing ({table.locate([row])})"
        )
    note = f"{plural(int(empty.sum()), 'visit')} without a total left out; their intervals joined"
    return table.take(np.flatnonzero(~empty)), (note,)


def _read_counts(
    problems: Problems, table: Table, name: str, visits: _Visits, optional: BoolArray
) -> tuple[IntArray, BoolArray]:
    """Counts in the order of the visits, and a mask of visits that may and do have none."""
    column = table.columns[name]
    uncounted = np.zeros(table.n_rows, dtype=bool)
    uncounted[visits.rows] = optional
    uncounted &= missing_cells(column)
    if uncounted.any():
        column = column.astype(object).mask(uncounted, 0)
    return read_counts(problems, name, column)[visits.rows], uncounted[visits.rows]


def _read_exposure(
    problems: Problems,
    name: str,
    column: pd.Series[Any],
    visits: _Visits,
    counted: tuple[IntArray, BoolArray],
) -> FloatArray:
    """Exposures in the order of the visits; those of visits that are left out do not matter."""
    count, kept = counted
    if not kept.all():
        column = column.astype(object).where(kept, 1.0)
    by_visit = problems.relocated(visits.rows)
    return read_exposure(by_visit, name, column, np.where(kept, count, 0))


def _check_order(problems: Problems, visits: _Visits) -> None:
    """Flag visits that come before the subject's last visit or its entry."""
    entry, time, first = visits.entry, visits.time, visits.first
    backward = ~first & (time <= visits.before) & (visits.index >= 0)
    _flag_steps(problems, visits, backward, "visit times must increase within a subject", time)
    for visit in _some(problems, first & (time < entry)):
        problems.add(
            [int(visits.rows[visit])],
            f"visits must come after the origin {shown_number(entry[visit])}; subject "
            f"{visits.labels[visits.index[visit]]} has one at {shown_number(time[visit])}",
        )


def _check_baseline(problems: Problems, visits: _Visits, count: IntArray) -> None:
    """Flag events counted at a visit that closes no interval."""
    for visit in _some(problems, count > 0):
        problems.add(
            [int(visits.rows[visit])],
            "a visit that only starts the observation must have count 0; subject "
            f"{visits.labels[visits.index[visit]]} has {count[visit]}",
        )


def _some(problems: Problems, bad: BoolArray) -> list[int]:
    """First few positions of a mask; the rest are only counted."""
    where = np.flatnonzero(bad)
    problems.hide(max(len(where) - SHOWN, 0))
    return [int(k) for k in where[:SHOWN]]


def _flag_steps(
    problems: Problems, visits: _Visits, bad: BoolArray, rule: str, values: Any
) -> None:
    """Record steps from one visit to the next that go the wrong way."""
    for visit in _some(problems, bad):
        problems.add(
            [int(visits.rows[visit])],
            f"{rule}; subject {visits.labels[visits.index[visit]]} goes "
            f"{shown_number(values[visit - 1])} → {shown_number(values[visit])}",
        )


def _increments(problems: Problems, visits: _Visits, count: IntArray) -> IntArray:
    """Counts since the last visit, from totals."""
    step = np.diff(count, prepend=0)
    _flag_steps(
        problems,
        visits,
        ~visits.first & (step < 0),
        "cumulative counts must not decrease within a subject",
        count,
    )
    return np.where(visits.first, count, step)


def _left_out(visits: _Visits, gaps: BoolArray, kept: BoolArray) -> tuple[str, ...]:
    """Say which intervals and subjects are not in the panel."""
    notes = []
    if gaps.any():
        notes.append(f"{plural(int(gaps.sum()), 'interval')} without a count left out, as a gap")
    lost = len(visits.labels) - len(np.unique(visits.index[kept]))
    if lost:
        notes.append(f"{plural(lost, 'subject')} without any counted interval left out")
    return tuple(notes)
