"""From a table of visits to panel intervals: their order, when subjects entered and left."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.checks import Problems, check_choice, plural, some_labels
from gp4c.data.ordering import row_order
from gp4c.data.subjects import FloatArray, IndexArray
from gp4c.data.tables.assembly.build_panel import (
    PanelFields,
    RowArrays,
    assemble,
    ends_of_rows,
    timed_columns,
)
from gp4c.data.tables.assembly.row_checks import check_roles
from gp4c.data.tables.assembly.visit_counts import (
    Visits,
    exposure_of_visits,
    from_totals,
    since_last_visit,
    without_missing_totals,
)
from gp4c.data.tables.columns import BoolArray, missing_cells, read_labels
from gp4c.data.tables.frames import Table
from gp4c.data.tables.service import ServiceRecord, end_of_service
from gp4c.data.tables.times.date_texts import refuse_day_numbers
from gp4c.data.tables.times.time_columns import read_times
from gp4c.data.tables.usage import check_usage
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.timeaxis import Moment, Window


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
    day_first: bool | None = None,
) -> PanelFields:
    """Validate a table with one row per subject and visit.

    Parameters
    ----------
    table : Table
    names : dict
        Columns of the roles subject, time and count.
    exposure, origin, cumulative, since_entry, sort, window, time_unit, missing, usage, end, \
    clock, day_first
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
    if isinstance(origin, str) and origin == "first" and origin not in table.columns:
        origin = None  # as the command line says it
    entry = origin if isinstance(origin, str) and origin in table.columns else None
    extra = {"exposure": exposure, "usage": usage, "end": end, "origin": entry}
    exposure = exposure if usage is None else usage
    roles = {**names, **{role: name for role, name in extra.items() if name is not None}}
    check_roles(table, roles)
    notes: tuple[str, ...] = ()
    if cumulative and missing == "drop":
        table, notes = without_missing_totals(table, names["count"], exposure)
    problems = Problems(table.locate)
    visits, axis = _read_visits(problems, table, roles, origin, (time_unit, sort, day_first))
    notes += visits.notes
    counts = from_totals if cumulative else partial(since_last_visit, drop=missing == "drop")
    count, uncounted = counts(problems, table, names["count"], visits, axis)
    kept = ~visits.baseline & ~uncounted
    weight = None
    if exposure is not None:
        weight = exposure_of_visits(problems, table, exposure, visits, (count, kept))
    problems.raise_any()
    if not kept.any():
        raise PanelDataError("no visit closes an interval with a count; nothing is left")
    left_out = _left_out(visits, uncounted & ~visits.baseline, kept)
    record = _entries(visits, axis) if since_entry else None
    if since_entry:
        visits, axis = _since_entry(visits, axis)
    arrays = RowArrays(
        start=visits.before[kept], stop=visits.time[kept], count=count[kept],
        exposure=None if weight is None else weight[kept],
    )  # fmt: skip
    return assemble(
        table.take(visits.rows[kept]), roles, (visits.index[kept], visits.labels, None), arrays,
        (axis, window), (*notes, *left_out), visits.end, clock, record,
    )  # fmt: skip


def _read_visits(
    problems: Problems,
    table: Table,
    roles: dict[str, str],
    origin: Moment | None,
    options: tuple[str | None, bool, bool | None],
) -> tuple[Visits, TimeAxis]:
    """Read labels and times and put the visits in order."""
    time_unit, sort, day_first = options
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
        day_first=day_first,
    )
    assumed = axis.origin is not None and not (date or origin is None or "origin" in roles)
    if assumed and origin != 0:
        raise PanelDataError(
            "visit times are dates, and so must be where first intervals start: pass origin=a date "
            f"or origin='column of entry dates'; found origin={origin!r}"
        )
    origin = None if assumed else origin
    time = times["time"]
    if axis.origin is None and not _is_date(origin) and origin == 0:
        refuse_day_numbers(table, roles["time"], time)
    rows = row_order(index, time) if sort else np.argsort(index, kind="stable")
    rows = np.arange(len(index)) if rows is None else rows
    ordered = index[rows]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    if "origin" in roles:
        name, entry = roles["origin"], times["origin"][rows]
        _check_constant(problems, name, table.columns[name], rows, first, entry)
    else:
        entry = np.full(len(rows), np.nan if origin is None else _finite(axis.number(origin)))
    end = None
    if "end" in roles:
        cells = ends_of_rows(table.columns[roles["end"]], times.get("end"), index, time)
        end = end_of_service(problems, roles["end"], cells, time, index, labels, axis)
    said = ("each subject is observed from its first visit on",) if assumed else ()
    return Visits(rows, ordered, labels, time[rows], first, entry, end, assumed, said), axis


def _begins(visits: Visits) -> FloatArray:
    """When each visit's subject entered: at its origin, or its first visit."""
    begin = np.where(np.isnan(visits.entry), visits.time, visits.entry)
    return np.asarray(begin[visits.first][np.cumsum(visits.first) - 1])


def _entries(visits: Visits, axis: TimeAxis) -> ServiceRecord:
    """When subjects entered on the clock that they have in common."""
    entry = np.full(len(visits.labels), np.nan)
    entry[visits.index[visits.first]] = _begins(visits)[visits.first]
    since = axis.since_2000
    nobody = np.full(len(visits.labels), np.nan)
    return ServiceRecord(nobody, entry=entry + (since or 0.0), dated=since is not None)


def _since_entry(visits: Visits, axis: TimeAxis) -> tuple[Visits, TimeAxis]:
    """Visits with time counted from each subject's entry, its first visit if no other is known."""
    begin = _begins(visits)
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


def _left_out(visits: Visits, gaps: BoolArray, kept: BoolArray) -> tuple[str, ...]:
    """Say which intervals and subjects are not in the panel."""
    notes = []
    if gaps.any():
        notes.append(f"{plural(int(gaps.sum()), 'interval')} without a count left out, as a gap")
    lost = len(visits.labels) - len(np.unique(visits.index[kept]))
    if lost:
        there = np.isin(np.arange(len(visits.labels)), visits.index[kept])
        names = some_labels(visits.labels[~there].tolist())
        notes.append(f"{plural(lost, 'subject')} without any counted interval left out: {names}")
    return tuple(notes)
