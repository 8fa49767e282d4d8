"""Counts and exposures of visits in order: since the last visit or in total, checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gp4c.data.checks import KEPT, Problems, plural, shown_number
from gp4c.data.subjects import FloatArray, IndexArray, IntArray, LabelArray
from gp4c.data.tables.assembly.row_checks import duplicate_sentence
from gp4c.data.tables.columns import BoolArray, missing_cells, read_counts, read_exposure
from gp4c.data.tables.frames import Table
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError

#: usual names of columns that say since when a subject was observed, without punctuation
_ENTRY_NAMES = (
    "entry entrydate entrytime enrolled enrolment enrollment enrolmentdate enrollmentdate "
    "randomised randomized randomisation randomization randomisationdate randdate randdt rfstdtc "
    "trtsdt baseline baselinedate installed installation commissioned inservice since"
)


@dataclass(frozen=True)
class Visits:
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


def without_missing_totals(
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


def from_totals(
    problems: Problems, table: Table, name: str, visits: Visits, axis: TimeAxis
) -> tuple[IntArray, BoolArray]:
    """Counts since the visit before, from totals, of which none may be missing."""
    nowhere = np.zeros(len(visits.rows), dtype=bool)
    totals, _ = _read_counts(problems, table, name, visits, nowhere)
    _check_order(problems, visits, axis, totals)
    return _increments(problems, visits, totals), nowhere


def since_last_visit(
    problems: Problems, table: Table, name: str, visits: Visits, axis: TimeAxis, *, drop: bool
) -> tuple[IntArray, BoolArray]:
    """Counts as they stand; one may be missing at a baseline visit, or anywhere if it is a gap."""
    baseline = visits.baseline
    count, uncounted = _read_counts(problems, table, name, visits, baseline | drop)
    _check_order(problems, visits, axis, count)
    _check_baseline(problems, visits, np.where(baseline, count, 0), axis, table)
    return count, uncounted


def _read_counts(
    problems: Problems, table: Table, name: str, visits: Visits, optional: BoolArray
) -> tuple[IntArray, BoolArray]:
    """Counts in the order of the visits, and a mask of visits that may and do have none."""
    column = table.columns[name]
    uncounted = np.zeros(table.n_rows, dtype=bool)
    uncounted[visits.rows] = optional
    uncounted &= missing_cells(column)
    if uncounted.any():
        column = column.astype(object).mask(uncounted, 0)
    return read_counts(problems, name, column)[visits.rows], uncounted[visits.rows]


def exposure_of_visits(
    problems: Problems,
    table: Table,
    name: str,
    visits: Visits,
    counted: tuple[IntArray, BoolArray],
) -> FloatArray:
    """Exposures in the order of the visits; those of visits that are left out do not matter."""
    count, kept = counted
    column = table.columns[name].iloc[visits.rows].reset_index(drop=True)
    if not kept.all():
        column = column.astype(object).where(kept, 1.0)
    by_visit = problems.relocated(visits.rows)
    return read_exposure(by_visit, name, column, np.where(kept, count, 0))


def _check_order(problems: Problems, visits: Visits, axis: TimeAxis, count: IntArray) -> None:
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
    problems: Problems, visits: Visits, count: IntArray, axis: TimeAxis, table: Table
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
    visits: Visits,
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


def _increments(problems: Problems, visits: Visits, count: IntArray) -> IntArray:
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
