"""From a table of intervals to the arrays of a valid panel, every rule checked once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np

from gp4c.data.checks import (
    Problems,
    check_total,
    plural,
    resolving_window,
    within_rounding,
)
from gp4c.data.subjects import FloatArray, IndexArray, IntArray, LabelArray
from gp4c.data.tables.assembly.row_checks import (
    check_intervals,
    check_roles,
    without_missing_counts,
)
from gp4c.data.tables.columns import (
    BoolArray,
    Column,
    read_counts,
    read_exposure,
    read_labels,
)
from gp4c.data.tables.frames import Table
from gp4c.data.tables.service import ServiceRecord, end_of_service, says_yes_or_no
from gp4c.data.tables.times.time_columns import read_times
from gp4c.data.tables.usage import (
    check_usage,
    on_clock_of_usage,
    recent_usage,
    warn_of_the_other_kind,
)
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.timeaxis import Moment, Window


class RowArrays(TypedDict):
    """Checked rows: one number each per row."""

    start: FloatArray
    stop: FloatArray
    count: IntArray
    exposure: FloatArray | None


class PanelFields(TypedDict):
    """Arguments of ``PanelCounts._from_arrays``."""

    subjects: LabelArray
    subject_index: IndexArray
    start: FloatArray
    stop: FloatArray
    count: IntArray
    window: tuple[float, float] | None
    time_unit: str | None
    time_origin: object
    covariates: pd.DataFrame | None
    notes: tuple[str, ...]
    service: NotRequired[ServiceRecord | None]
    exposure: NotRequired[FloatArray | None]
    interval_covariates: NotRequired[pd.DataFrame | None]


#: names that a panel's own columns have in ``to_frame``
RESERVED = ("subject", "start", "stop", "count", "exposure")


def fields_from_intervals(
    table: Table,
    *,
    names: dict[str, str],
    exposure: str | None,
    window: Window | None,
    time_unit: str | None,
    origin: Moment | None,
    missing: str,
    usage: str | None = None,
    end: str | None = None,
    clock: str = "time",
    day_first: bool | None = None,
) -> PanelFields:
    """Validate a table with one row per subject and interval.

    Parameters
    ----------
    table : Table
    names : dict
        Columns of the roles subject, start, stop and count.
    exposure, window, time_unit, origin, missing, usage, end, clock, day_first
        As in :meth:`PanelCounts.from_frame`.

    Returns
    -------
    dict
        Arguments of ``PanelCounts._from_arrays``.
    """
    check_usage(exposure, usage, clock)
    extra = {"exposure": exposure, "usage": usage, "end": end}
    roles = {**names, **{role: name for role, name in extra.items() if name is not None}}
    check_roles(table, roles)
    table, notes = without_missing_counts(table, names["subject"], names["count"], missing)
    problems = Problems(table.locate)
    index, labels = read_labels(problems, names["subject"], table.columns[names["subject"]])
    timed = timed_columns(table, roles, ("start", "stop", "end"))
    times, axis = read_times(
        problems, timed, time_unit, origin, zero="start", names=roles, optional=("end",),
        day_first=day_first,
    )  # fmt: skip
    count = read_counts(problems, names["count"], table.columns[names["count"]])
    weight = None
    given = exposure if usage is None else usage
    if given is not None:
        weight = read_exposure(problems, given, table.columns[given], count)
    rows = (times["start"], times["stop"], count)
    order = check_intervals(problems, index, labels, rows, names, axis)
    ends = None
    if end is not None:
        cells = ends_of_rows(table.columns[end], times.pop("end", None), index, times["stop"])
        ends = end_of_service(problems, end, cells, times["stop"], index, labels, axis)
    problems.raise_any()
    return assemble(
        table,
        roles,
        (index, labels, order),
        RowArrays(start=times["start"], stop=times["stop"], count=count, exposure=weight),
        (axis, window),
        notes,
        ends,
        clock,
    )


def timed_columns(table: Table, roles: dict[str, str], among: tuple[str, ...]) -> dict[str, Column]:
    """Columns of times by role; an end of service that says yes or no is none."""
    columns = {role: table.columns[roles[role]] for role in among if role in roles}
    if "end" in columns and says_yes_or_no(columns["end"]) is not None:
        del columns["end"]
    return columns


def ends_of_rows(
    column: Column, times: FloatArray | None, index: IndexArray, stop: FloatArray
) -> FloatArray:
    """The end of service that each row states; where it says yes, the subject's last visit."""
    if times is not None:
        return times
    last = np.full(int(index.max(initial=-1)) + 2, -np.inf)
    np.maximum.at(last, index, stop)
    out = says_yes_or_no(column)
    return np.full(len(index), np.nan) if out is None else np.where(out, last[index], np.nan)


def assemble(
    table: Table,
    roles: dict[str, str],
    subjects: tuple[IndexArray, LabelArray, IndexArray | None],
    arrays: RowArrays,
    frame: tuple[TimeAxis, Window | None],
    notes: tuple[str, ...],
    ends: FloatArray | None = None,
    clock: str = "time",
    entries: ServiceRecord | None = None,
) -> PanelFields:
    """Sort checked rows, divide the other columns by level, and set the window."""
    axis, given_window = frame
    window = axis.window(given_window) if clock == "time" else None
    start, stop = within_rounding(window, arrays["start"], arrays["stop"])
    arrays = {**arrays, "start": start, "stop": stop}
    resolving_window(window, start, stop, table.locate)
    check_total(arrays["count"])
    index, labels, order = subjects
    arrays, service = _with_service(roles, subjects, arrays, ends)
    if entries is not None:
        known = entries if service is None else service
        service = replace(known, entry=entries.entry, dated=entries.dated)
    rows, more_notes = _without_zero_exposure(order, arrays["exposure"])
    notes = (*table.notes, *axis.notes, *notes, *more_notes)
    subject_level, interval_level, said = split_covariates(table, roles, rows, index)
    if rows is not None:
        weight, index = arrays["exposure"], index[rows]
        arrays = RowArrays(
            start=arrays["start"][rows], stop=arrays["stop"][rows], count=arrays["count"][rows],
            exposure=None if weight is None else weight[rows],
        )  # fmt: skip
    present = np.flatnonzero(np.bincount(index, minlength=len(labels)))
    if len(present) < len(labels):
        index, labels = np.searchsorted(present, index), labels[present]
        service = None if service is None else service.take(present)
    fields: PanelFields = {
        **arrays,
        "service": service,
        "subjects": labels,
        "subject_index": index,
        "window": window,
        "time_unit": axis.unit,
        "time_origin": axis.origin,
        "covariates": subject_level,
        "interval_covariates": interval_level,
        "notes": (*notes, *said),
    }
    return fields if clock == "time" else on_clock_of_usage(fields, given_window)


def _with_service(
    roles: dict[str, str],
    subjects: tuple[IndexArray, LabelArray, IndexArray | None],
    arrays: RowArrays,
    ends: FloatArray | None,
) -> tuple[RowArrays, ServiceRecord | None]:
    """Exposures as units at risk, and what is known of the service of the subjects."""
    index, labels, order = subjects
    given, length = arrays["exposure"], arrays["stop"] - arrays["start"]
    usage = roles.get("usage")
    if given is not None:
        name = usage or roles["exposure"]
        warn_of_the_other_kind(name, given, length, index, is_usage=usage is not None)
    if usage is None or given is None:
        return arrays, None if ends is None else ServiceRecord(ends)
    ends = np.full(len(labels), np.nan) if ends is None else ends
    rows = np.arange(len(index)) if order is None else order
    ordered = (index[rows], arrays["start"][rows], arrays["stop"][rows], given[rows])
    rate = recent_usage(*ordered, len(labels))
    return {**arrays, "exposure": given / length}, ServiceRecord(ends, rate, usage)


def _without_zero_exposure(
    rows: IndexArray | None, weight: FloatArray | None
) -> tuple[IndexArray | None, tuple[str, ...]]:
    """Rows in order (None: as they are) but those of zero exposure, which are gaps."""
    if weight is None or (weight > 0).all():
        return rows, ()
    rows = np.arange(len(weight)) if rows is None else rows
    kept = rows[weight[rows] > 0]
    if not len(kept):
        raise PanelDataError("the table has no interval with a positive exposure")
    left_out = plural(len(rows) - len(kept), "interval")
    return kept, (f"{left_out} with zero exposure left out, as a gap",)


def split_covariates(
    table: Table, roles: dict[str, str], rows: IndexArray | None, index: IndexArray
) -> tuple[pd.DataFrame | None, pd.DataFrame | None, tuple[str, ...]]:
    """Divide the other columns into those of subjects and those that vary within a subject.

    Returns
    -------
    subject_level : frame with one row per subject, or None
    interval_level : frame with one row per interval, or None
    notes : tuple of str
    """
    import pandas as pd

    ordered = index if rows is None else index[rows]
    same = ordered[1:] == ordered[:-1]
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    by_subject: dict[str, pd.Series[Any]] = {}
    by_interval: dict[str, pd.Series[Any]] = {}
    notes = []
    for name in table.columns:
        if name in roles.values():
            continue
        column = table.labelled(name)
        values = column if rows is None else column.iloc[rows]
        kept = name if name not in (*RESERVED, *roles) else f"{name}_column"
        if kept != name:
            notes.append(f"column {name!r} is not used as {name}: kept as covariate {kept!r}")
        if (code := _code_in(values)) is not None:
            notes.append(
                f"column {name!r} has codes with leading zeros, such as {code}: a category"
            )
        changed = np.flatnonzero(_changes(values) & same)
        if len(changed):
            by_interval[kept] = values.reset_index(drop=True)
            pair = changed[0] + np.arange(2)
            place = table.locate((pair if rows is None else rows[pair]).tolist())
            notes.append(_varies(name, values.iloc[pair].tolist(), place))
        else:
            by_subject[kept] = values.iloc[first].reset_index(drop=True)
    return (
        pd.DataFrame(by_subject) if by_subject else None,
        pd.DataFrame(by_interval) if by_interval else None,
        tuple(notes),
    )


def _varies(name: str, pair: list[object], place: str) -> str:
    """A column that changes within a subject, with the first change: it may be a mistake."""
    before, after = pair
    return (
        f"column {name!r} varies within subjects, such as {before!r}, then {after!r} ({place}): "
        "kept per interval"
    )


def _code_in(values: pd.Series[Any]) -> str | None:
    """A whole number with leading zeros, if a column of text has one."""
    import pandas as pd

    if pd.api.types.infer_dtype(values, skipna=True) != "string":
        return None
    different = pd.Series(list({cell for cell in values if isinstance(cell, str)}), dtype="string")
    codes = different[different.str.fullmatch(r"0\d+")]
    return str(codes.min()) if len(codes) else None


def _changes(values: pd.Series[Any]) -> BoolArray:
    """Mask of the rows that differ from the row before; missing equals missing."""
    import pandas as pd

    try:
        code = pd.factorize(values)[0]
    except TypeError:  # cells that cannot be hashed, such as lists
        code = pd.factorize(values.astype(str))[0]
    changed: BoolArray = code[1:] != code[:-1]
    return changed
