"""From a table of event times to event histories, and from histories to panel intervals."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypedDict

import numpy as np

from gp4c.data.checks import (
    Problems,
    check_window,
    plural,
    shown_interval,
    shown_number,
    within_rounding,
)
from gp4c.data.ordering import label_array, row_order
from gp4c.data.subjects import FloatArray, IndexArray, IntArray, LabelArray
from gp4c.data.tables.assembly.build_panel import PanelFields, split_covariates
from gp4c.data.tables.assembly.row_checks import check_roles
from gp4c.data.tables.columns import read_labels
from gp4c.data.tables.frames import Table, table_of
from gp4c.data.tables.times.time_columns import read_times
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from gp4c.data.events import RecurrentEvents
    from gp4c.data.tables.frames import IntoTable
    from gp4c.data.timeaxis import Moment, Window

#: visits of everybody, or of each subject: in a dict by label, or in a table of subject and time
Visits: TypeAlias = "ArrayLike | Mapping[Hashable, ArrayLike] | IntoTable"


class EventFields(TypedDict):
    """Arguments of ``RecurrentEvents._from_arrays``."""

    subjects: LabelArray
    subject_index: IndexArray
    time: FloatArray
    start: FloatArray
    stop: FloatArray
    window: tuple[float, float] | None
    time_unit: str | None
    time_origin: object
    covariates: pd.DataFrame | None
    notes: tuple[str, ...]


def fields_from_events(
    table: Table,
    *,
    names: dict[str, str],
    window: Window | None,
    subjects: Sequence[Hashable],
    time_unit: str | None,
    origin: Moment | None,
    day_first: bool | None = None,
) -> EventFields:
    """Validate a table with one row per event.

    Parameters
    ----------
    table : Table
    names : dict
        Columns of the roles subject and time, and of start and stop if there is no ``window``.
    window, subjects, time_unit, origin, day_first
        As in :meth:`RecurrentEvents.from_frame`.

    Returns
    -------
    dict
        Arguments of ``RecurrentEvents._from_arrays``.
    """
    if (window is None) != ("start" in names and "stop" in names):
        raise PanelDataError(
            "say when subjects were observed: window=(t0, t1), window={subject: (t0, t1)}, or "
            "start= and stop= columns"
        )
    check_roles(table, names)
    problems = Problems(table.locate)
    index, labels = read_labels(problems, names["subject"], table.columns[names["subject"]])
    times, axis = _read_event_times(problems, table, names, (time_unit, origin, day_first))
    problems.raise_any()
    covariates, notes = _subject_columns(table, names, index, times["time"])
    if window is None:
        start, stop = (
            _one_per_subject(problems, index, labels, times, names, r) for r in ("start", "stop")
        )
    else:
        # subjects that are only in the window or in ``subjects`` come after those of the table
        labels = _with_silent(labels, window, subjects)
        start, stop = _stated_windows(window, labels, axis)
        if not isinstance(window, Mapping):
            common = axis.window(window)
            times["time"] = within_rounding(common, times["time"], times["time"])[1]
        covariates = None if covariates is None else covariates.reindex(range(len(labels)))
    _check_events(problems, index, labels, times["time"], start, stop)
    problems.raise_any()
    happened = ~np.isnan(times["time"])
    return {
        "subjects": labels,
        "subject_index": index[happened],
        "time": times["time"][happened],
        "start": start,
        "stop": stop,
        "window": None if isinstance(window, Mapping) else axis.window(window),
        "time_unit": axis.unit,
        "time_origin": axis.origin,
        "covariates": covariates,
        "notes": (*table.notes, *axis.notes, *notes),
    }


def _read_event_times(
    problems: Problems,
    table: Table,
    names: dict[str, str],
    options: tuple[str | None, Moment | None, bool | None],
) -> tuple[dict[str, FloatArray], TimeAxis]:
    """Times by role, and their axis; a row without an event time is a subject without events."""
    time_unit, origin, day_first = options
    return read_times(
        problems,
        {role: table.columns[name] for role, name in names.items() if role != "subject"},
        time_unit,
        origin,
        zero="start" if "start" in names else None,
        names=names,
        optional=("time",),
        day_first=day_first,
    )


def _subject_columns(
    table: Table, names: dict[str, str], index: IndexArray, time: FloatArray
) -> tuple[pd.DataFrame | None, tuple[str, ...]]:
    """Other columns by subject; those that vary within a subject are left out, and noted."""
    rows = row_order(index, time)
    covariates, marks, notes = split_covariates(table, names, rows, index)
    if marks is not None:
        dropped = ", ".join(repr(name) for name in marks.columns)
        notes = tuple(note for note in notes if "per interval" not in note)
        notes += (f"columns that vary within subjects left out: {dropped}",)
    return covariates, notes


def _one_per_subject(
    problems: Problems,
    index: IndexArray,
    labels: LabelArray,
    times: dict[str, FloatArray],
    names: dict[str, str],
    role: str,
) -> FloatArray:
    """Start or stop of each subject, which all its rows must agree on."""
    value = np.empty(len(labels))
    value[index[::-1]] = times[role][::-1]
    problems.flag(
        times[role] != value[index],
        f"{names[role]!r} must be the same in all rows of a subject",
        lambda row: (
            f"subject {labels[index[row]]} has {shown_number(value[index[row]])} and "
            f"{shown_number(times[role][row])}"
        ),
    )
    return value


def _with_silent(
    labels: LabelArray, window: Window | None, subjects: Sequence[Hashable]
) -> LabelArray:
    """Labels of the table, then of further subjects, who have no events."""
    known = set(labels.tolist())
    named = [*(window if isinstance(window, Mapping) else ()), *subjects]
    further = [label for label in dict.fromkeys(named) if label not in known]
    return label_array([*labels.tolist(), *further]) if further else labels


def _stated_windows(
    window: Window | None, labels: LabelArray, axis: TimeAxis
) -> tuple[FloatArray, FloatArray]:
    """Start and stop of each subject from one window or from a dict of them."""
    if not isinstance(window, Mapping):
        start, stop = check_window(axis.window(window), np.inf, -np.inf)
        return np.full(len(labels), start), np.full(len(labels), stop)
    ends = np.empty((len(labels), 2))
    for k, label in enumerate(labels.tolist()):
        if label not in window:
            raise PanelDataError(f"every subject needs a window; subject {label!r} has none")
        ends[k] = check_window(axis.window(window[label]), np.inf, -np.inf)
    return ends[:, 0], ends[:, 1]


def _check_events(
    problems: Problems,
    index: IndexArray,
    labels: LabelArray,
    time: FloatArray,
    start: FloatArray,
    stop: FloatArray,
) -> None:
    """Windows must not be empty; events must lie in their subject's window."""
    first, last = start[index], stop[index]
    problems.flag(
        last <= first,
        "a subject's observation must end after it starts",
        lambda row: f"subject {labels[index[row]]} has {shown_interval(first[row], last[row])}",
    )
    problems.flag(
        (last > first) & ((time <= first) | (time > last)),
        "events must lie in their subject's observation window",
        lambda row: (
            f"subject {labels[index[row]]} has one at {shown_number(time[row])}, "
            f"outside {shown_interval(first[row], last[row])}"
        ),
    )
    rows_of_subject = np.bincount(index, minlength=len(labels))
    problems.flag(
        np.isnan(time) & (rows_of_subject[index] > 1),
        "a row without a time stands for a subject without events",
        lambda row: f"subject {labels[index[row]]} has other rows",
    )


def fields_between_visits(events: RecurrentEvents, visits: Visits) -> PanelFields:
    """Intervals between visits and the number of events in them.

    Parameters
    ----------
    events : RecurrentEvents
    visits
        As in :meth:`RecurrentEvents.to_panel`.

    Returns
    -------
    dict
        Arguments of ``PanelCounts._from_arrays``.
    """
    owner, time = _visit_times(events, visits)
    order = row_order(owner, time)
    if order is not None:
        owner, time = owner[order], time[order]
    new = np.concatenate([[True], (owner[1:] != owner[:-1]) | (time[1:] != time[:-1])])
    owner, time = owner[new[: len(owner)]], time[new[: len(time)]]
    if not len(owner):
        raise PanelDataError("no visit lies in the observation window of any subject")
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    start = np.where(first, events.start[owner], np.concatenate([[0.0], time[:-1]]))
    seen = _events_until(events, owner, time)
    before = np.where(first, 0, np.concatenate([[0], seen[:-1]]))
    present, index = np.unique(owner, return_inverse=True)
    lost = events.n_subjects - len(present)
    notes = (f"{plural(lost, 'subject')} without a visit left out",) if lost else ()
    covariates = events._covariates
    return {
        "subjects": events.subjects[present],
        "subject_index": index,
        "start": start,
        "stop": time,
        "count": seen - before,
        "window": events.window,
        "time_unit": events.time_unit,
        "time_origin": events.time_origin,
        "covariates": None if covariates is None else covariates.iloc[present],
        "notes": (*events.notes, *notes),
    }


def _visit_times(events: RecurrentEvents, visits: Visits) -> tuple[IndexArray, FloatArray]:
    """Subject and time of every visit after a subject's start and up to its stop."""
    if isinstance(visits, Mapping) or hasattr(visits, "columns"):
        owner, time = _own_visits(events, visits)
        outside = (time < events.start[owner]) | (time > events.stop[owner])
        if outside.any():
            k = int(np.flatnonzero(outside)[0])
            own = owner[k]
            raise PanelDataError(
                "visits must lie in their subject's observation window; subject "
                f"{events.subjects[own]} has one at {shown_number(time[k])}, outside "
                f"{shown_interval(events.start[own], events.stop[own])}"
            )
    else:
        common = np.unique(np.asarray(visits, dtype=np.float64))
        if common.ndim != 1 or not np.isfinite(common).all():
            raise PanelDataError("visits must be finite times")
        owner = np.repeat(np.arange(events.n_subjects), len(common))
        time = np.tile(common, events.n_subjects)
    inside = (time > events.start[owner]) & (time <= events.stop[owner])
    return owner[inside], time[inside]


def _own_visits(events: RecurrentEvents, visits: Visits) -> tuple[IndexArray, FloatArray]:
    """Subject and time of visits given by subject, in a dict or a table."""
    position = {label: k for k, label in enumerate(events.subjects.tolist())}
    if isinstance(visits, Mapping):
        labels = [label for label, times in visits.items() for _ in np.atleast_1d(times)]
        times = [np.atleast_1d(np.asarray(t, dtype=np.float64)) for t in visits.values()]
        time = np.concatenate([np.empty(0), *times])
    else:
        table = table_of(visits)  # type: ignore[arg-type]
        labels = table.column("subject").tolist()
        time = table.column("time").to_numpy(dtype=np.float64)
    unknown = [label for label in dict.fromkeys(labels) if label not in position]
    if unknown:
        raise PanelDataError(f"visits of unknown subject {unknown[0]!r}")
    if not np.isfinite(time).all():
        raise PanelDataError("visits must be finite times")
    return np.array([position[label] for label in labels], dtype=np.intp), time


def _events_until(events: RecurrentEvents, owner: IndexArray, time: FloatArray) -> IntArray:
    """Number of events of the visited subject up to and including each visit."""
    is_visit = np.repeat([False, True], [events.n_events, len(time)])
    who = np.concatenate([events.subject_index, owner])
    when = np.concatenate([events.time, time])
    order = np.lexsort((is_visit, when, who))  # at equal times the event comes first
    so_far = np.empty(len(order), dtype=np.int64)
    so_far[order] = np.cumsum(~is_visit[order])
    earlier_subjects = np.searchsorted(events.subject_index, owner, side="left")
    return so_far[events.n_events :] - earlier_subjects
