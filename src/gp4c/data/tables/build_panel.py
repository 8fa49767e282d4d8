"""From a table of intervals to the arrays of a valid panel: every rule is checked here, once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np

from gp4c.data.checks import (
    KEPT,
    Problems,
    check_choice,
    check_total,
    plural,
    resolving_window,
    some_labels,
    within_rounding,
)
from gp4c.data.ordering import row_order
from gp4c.data.subjects import FloatArray, IndexArray, IntArray, LabelArray
from gp4c.data.tables.columns import (
    BoolArray,
    Column,
    missing_cells,
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
        ends = end_of_service(problems, end, cells, times["stop"], index, labels)
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


def check_roles(table: Table, roles: dict[str, str]) -> None:
    """Every column must be there, and serve one purpose only."""
    for role, name in roles.items():
        table.column(name, role)
    taken: dict[str, str] = {}
    for role, name in roles.items():
        if name in taken:
            raise PanelDataError(f"column {name!r} cannot be both {taken[name]} and {role}")
        taken[name] = role


def without_missing_counts(
    table: Table, subject: str, count: str, missing: str
) -> tuple[Table, tuple[str, ...]]:
    """Leave out rows without a count if ``missing="drop"``, and say how many."""
    check_choice("missing", missing, ("error", "drop"))
    empty = missing_cells(table.columns[count]) if missing == "drop" else np.zeros(1, dtype=bool)
    if not empty.any():
        return table, ()
    if empty.all():
        raise PanelDataError(f"{count!r} is missing in every row; nothing is left")
    kept = table.take(np.flatnonzero(~empty))
    there = set(kept.columns[subject].dropna())
    lost = [
        label for label in table.columns[subject].dropna().unique().tolist() if label not in there
    ]
    names = f"{plural(len(lost), 'subject')} without any count: {some_labels(lost)}"
    also = f", and with them {names}" if lost else ""
    note = f"{plural(int(empty.sum()), 'interval')} without a count left out, as a gap{also}"
    return kept, (note,)


def check_intervals(
    problems: Problems,
    index: IndexArray,
    labels: LabelArray,
    arrays: tuple[FloatArray, FloatArray, IntArray],
    names: dict[str, str],
    axis: TimeAxis,
) -> IndexArray | None:
    """Intervals must not be empty, and those of one subject must not overlap or repeat.

    Parameters
    ----------
    problems : Problems
    index, labels
        Subjects.
    arrays : start, stop, count
    names : dict
        Columns by role.
    axis : TimeAxis
        Writes times as the user did.

    Returns
    -------
    order : (n_rows,) array or None
        Rows by subject and start; None if they are so already. Of use if there is no problem.
    """
    start, stop, count = arrays
    finite = np.isfinite(start) & np.isfinite(stop)
    problems.flag(
        finite & (stop <= start),
        f"{names['stop']!r} must be greater than {names['start']!r}",
        lambda row: f"found {axis.shown_interval(arrays[0][row], arrays[1][row])}",
    )
    usable = finite & (stop > start) & (index >= 0)
    rows = np.arange(len(index)) if usable.all() else np.flatnonzero(usable)
    if len(rows) < len(index):
        index, start, stop, count = index[rows], start[rows], stop[rows], count[rows]
    order = row_order(index, start)
    if _clashes(index, start, stop, order).any():
        order = np.lexsort((stop, start, index))
        pairs = np.flatnonzero(_clashes(index, start, stop, order))
        problems.hide(max(len(pairs) - KEPT, 0))
        for pair in pairs[:KEPT].tolist():
            two = order[pair : pair + 2]
            found = (start[two], stop[two], count[two])
            sentence = _clash_sentence(labels[index[two[0]]], found, axis)
            problems.add(sorted(rows[two].tolist()), sentence)
    return order


def _clash_sentence(
    label: object, arrays: tuple[FloatArray, FloatArray, IntArray], axis: TimeAxis
) -> str:
    """Say how two intervals of a subject clash."""
    start, stop, count = arrays
    one, two = (axis.shown_interval(a, b) for a, b in zip(start, stop, strict=True))
    if start[0] != start[1] or stop[0] != stop[1]:
        return f"intervals of one subject must not overlap; subject {label} has {one} and {two}"
    return duplicate_sentence(f"subject {label} has {one}", count)


def duplicate_sentence(found: str, count: IntArray) -> str:
    """Say that two rows are duplicates, or that they disagree."""
    if count[0] == count[1]:
        return f"duplicate rows must be left out; {found} with count {count[0]} twice"
    return (
        "duplicate rows with different counts must be put right; "
        f"{found} with counts {count[0]} and {count[1]}"
    )


def _clashes(
    index: IndexArray, start: FloatArray, stop: FloatArray, order: IndexArray | None
) -> BoolArray:
    """Mask of neighbours, in order, that belong to one subject and overlap."""
    if order is not None:
        index, start, stop = index[order], start[order], stop[order]
    clash: BoolArray = (index[1:] == index[:-1]) & (start[1:] < stop[:-1])
    return clash


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
        if bool(np.any(_changes(values) & same)):
            by_interval[kept] = values.reset_index(drop=True)
            notes.append(f"column {name!r} varies within subjects: kept per interval")
        else:
            by_subject[kept] = values.iloc[first].reset_index(drop=True)
    return (
        pd.DataFrame(by_subject) if by_subject else None,
        pd.DataFrame(by_interval) if by_interval else None,
        tuple(notes),
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
