"""From a table of visits, with counts since the last visit or in total, to panel intervals."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.checks import KEPT, Problems, check_choice, plural, shown_number, some_labels
from gp4c.data.ordering import row_order
from gp4c.data.subjects import FloatArray, IndexArray, IntArray, LabelArray
from gp4c.data.tables.build_panel import (
    PanelFields,
    RowArrays,
    assemble,
    check_roles,
    duplicate_sentence,
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
from gp4c.data.tables.service import ServiceRecord, end_of_service
from gp4c.data.tables.times.date_texts import refuse_day_numbers
from gp4c.data.tables.times.time_columns import read_times
from gp4c.data.tables.usage import check_usage
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.timeaxis import Moment, Window


#: usual names of columns that say since when a subject was observed, without punctuation
_ENTRY_NAMES = (
    "entry entrydate entrytime enrolled enrolment enrollment enrolmentdate enrollmentdate "
    "randomised randomized randomisation randomization randomisationdate randdate randdt rfstdtc "
    "trtsdt baseline baselinedate installed installation commissioned inservice since"
)


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
    assumed: bool = False  # nobody said where first intervals start
    notes: tuple[str, ...] = ()

    @property
    def before(self) -> FloatArray:
        """Time of the visit before, or the subject's entry."""
        return np.where(self.first, self.entry, np.concatenate([[np.nan], self.time[:-1]]))

    @property
    def baseline(self) -> BoolArray:
        """Visits that close no interval: first ones, unless the subject had entered before."""
        return np.asarray(self.first & (np.isnan(self.entry) | (self.time == self.entry)))


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
    entry = origin if isinstance(origin, str) and origin in table.columns else None
    extra = {"exposure": exposure, "usage": usage, "end": end, "origin": entry}
    exposure = exposure if usage is None else usage
    roles = {**names, **{role: name for role, name in extra.items() if name is not None}}
    check_roles(table, roles)
    notes: tuple[str, ...] = ()
    if cumulative and missing == "drop":
        table, notes = _without_missing_totals(table, names["count"], exposure)
    problems = Problems(table.locate)
    visits, axis = _read_visits(problems, table, roles, origin, (time_unit, sort, day_first))
    notes += visits.notes
    counts = _from_totals if cumulative else partial(_since_last_visit, drop=missing == "drop")
    count, uncounted = counts(problems, table, names["count"], visits, axis)
    kept = ~visits.baseline & ~uncounted
    weight = None
    if exposure is not None:
        weight = _read_exposure(problems, table, exposure, visits, (count, kept))
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
) -> tuple[_Visits, TimeAxis]:
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
        end = end_of_service(problems, roles["end"], cells, time, index, labels)
    said = ("each subject is observed from its first visit on",) if assumed else ()
    return _Visits(rows, ordered, labels, time[rows], first, entry, end, assumed, said), axis


def _begins(visits: _Visits) -> FloatArray:
    """When each visit's subject entered: at its origin, or its first visit."""
    begin = np.where(np.isnan(visits.entry), visits.time, visits.entry)
    return np.asarray(begin[visits.first][np.cumsum(visits.first) - 1])


def _entries(visits: _Visits, axis: TimeAxis) -> ServiceRecord:
    """When subjects entered on the clock that they have in common."""
    entry = np.full(len(visits.labels), np.nan)
    entry[visits.index[visits.first]] = _begins(visits)[visits.first]
    since = axis.since_2000
    nobody = np.full(len(visits.labels), np.nan)
    return ServiceRecord(nobody, entry=entry + (since or 0.0), dated=since is not None)


def _since_entry(visits: _Visits, axis: TimeAxis) -> tuple[_Visits, TimeAxis]:
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


def _from_totals(
    problems: Problems, table: Table, name: str, visits: _Visits, axis: TimeAxis
) -> tuple[IntArray, BoolArray]:
    """Counts since the visit before, from totals, of which none may be missing."""
    nowhere = np.zeros(len(visits.rows), dtype=bool)
    totals, _ = _read_counts(problems, table, name, visits, nowhere)
    _check_order(problems, visits, axis, totals)
    return _increments(problems, visits, totals), nowhere


def _since_last_visit(
    problems: Problems, table: Table, name: str, visits: _Visits, axis: TimeAxis, *, drop: bool
) -> tuple[IntArray, BoolArray]:
    """Counts as they stand; one may be missing at a baseline visit, or anywhere if it is a gap."""
    baseline = visits.baseline
    count, uncounted = _read_counts(problems, table, name, visits, baseline | drop)
    _check_order(problems, visits, axis, count)
    _check_baseline(problems, visits, np.where(baseline, count, 0), axis, table)
    return count, uncounted


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
    table: Table,
    name: str,
    visits: _Visits,
    counted: tuple[IntArray, BoolArray],
) -> FloatArray:
    """Exposures in the order of the visits; those of visits that are left out do not matter."""
    count, kept = counted
    column = table.columns[name].iloc[visits.rows].reset_index(drop=True)
    if not kept.all():
        column = column.astype(object).where(kept, 1.0)
    by_visit = problems.relocated(visits.rows)
    return read_exposure(by_visit, name, column, np.where(kept, count, 0))


def _check_order(problems: Problems, visits: _Visits, axis: TimeAxis, count: IntArray) -> None:
    """Flag visits at the time of another, or before the subject's last visit or its entry."""
    entry, time, first = visits.entry, visits.time, visits.first
    later = ~first & (visits.index >= 0)
    same = later & (time == visits.before)
    for visit in _some(problems, same):
        who = (
            f"subject {visits.labels[visits.index[visit]]} has a visit at {axis.shown(time[visit])}"
        )
        rows = sorted(int(row) for row in visits.rows[visit - 1 : visit + 1])
        problems.add(rows, duplicate_sentence(who, count[visit - 1 : visit + 1]))
    rule = "visit times must increase within a subject"
    _flag_steps(problems, visits, later & (time < visits.before), rule, axis.shown, time)
    for visit in _some(problems, first & (time < entry)):
        problems.add(
            [int(visits.rows[visit])],
            f"visits must come after the origin {axis.shown(entry[visit])}; subject "
            f"{visits.labels[visits.index[visit]]} has one at {axis.shown(time[visit])}",
        )


def _check_baseline(
    problems: Problems, visits: _Visits, count: IntArray, axis: TimeAxis, table: Table
) -> None:
    """Flag events counted at a visit that closes no interval, and say what would give it one."""
    plain = {name: re.sub(r"[^a-z]", "", name.lower()) for name in table.columns}
    known = [name for name in plain if plain[name] in _ENTRY_NAMES.split()]
    is_dates = axis.origin is not None
    column = known[0] if known else f"column of entry {'dates' if is_dates else 'times'}"
    for visit in _some(problems, count > 0):
        who = visits.labels[visits.index[visit]]
        if np.isnan(visits.entry[visit]):
            number = plural(int(count[visit]), "event")
            what = "a date" if is_dates else "a time"
            sentence = (
                f"events at a first visit need a time since when they were counted; subject {who} "
                f"has {number} at {axis.shown(visits.time[visit])}: pass origin={what} or "
                f"origin={column!r}"
            )
        else:
            sentence = (
                "a visit that only starts the observation must have count 0; "
                f"subject {who} has {count[visit]}"
            )
        problems.add([int(visits.rows[visit])], sentence)


def _some(problems: Problems, bad: BoolArray) -> list[int]:
    """First few positions of a mask; the rest are only counted."""
    where = np.flatnonzero(bad)
    problems.hide(max(len(where) - KEPT, 0))
    return [int(k) for k in where[:KEPT]]


def _flag_steps(
    problems: Problems,
    visits: _Visits,
    bad: BoolArray,
    rule: str,
    shown: Callable[[Any], str],
    values: FloatArray | IntArray,
) -> None:
    """Record steps from one visit to the next that go the wrong way."""
    for visit in _some(problems, bad):
        problems.add(
            [int(visits.rows[visit])],
            f"{rule}; subject {visits.labels[visits.index[visit]]} goes "
            f"{shown(values[visit - 1])} → {shown(values[visit])}",
        )


def _increments(problems: Problems, visits: _Visits, count: IntArray) -> IntArray:
    """Counts since the last visit, from totals."""
    step = np.diff(count, prepend=0)
    _flag_steps(
        problems,
        visits,
        ~visits.first & (step < 0),
        "cumulative counts must not decrease within a subject",
        shown_number,
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
        there = np.isin(np.arange(len(visits.labels)), visits.index[kept])
        names = some_labels(visits.labels[~there].tolist())
        notes.append(f"{plural(lost, 'subject')} without any counted interval left out: {names}")
    return tuple(notes)
