"""What rows of a table must be: columns that are there, counts, intervals that do not clash."""

from __future__ import annotations

import numpy as np

from gp4c.data.checks import KEPT, Problems, check_choice, plural, some_labels
from gp4c.data.ordering import row_order
from gp4c.data.subjects import FloatArray, IndexArray, IntArray, LabelArray
from gp4c.data.tables.columns import BoolArray, missing_cells
from gp4c.data.tables.frames import Table
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError


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
