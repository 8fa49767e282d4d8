"""Tables with several types of events: a column of types, or a column of counts for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.checks import Problems
from gp4c.data.ordering import label_array, label_order, natural_key
from gp4c.data.panel import PanelCounts
from gp4c.data.subjects import IndexArray
from gp4c.data.tables.assembly.build_panel import PanelFields
from gp4c.data.tables.columns import missing_cells
from gp4c.data.tables.frames import Table
from gp4c.data.types.typed_panel import TypedPanel, differing_interval
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd

Names = dict[str, str]
Build = Callable[[Table, Names], PanelFields]


class SubjectOfType(tuple[Any, str]):
    """A subject and a type of event: what must not have two counts at a time."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self[0]} ({self[1]})"


def typed_panel(
    table: Table,
    names: Names,
    counts: str | Sequence[str],
    event: str | None,
    missing: str,
    build: Build,
) -> TypedPanel:
    """Panel with types from a table of intervals or visits.

    Parameters
    ----------
    table : Table
    names : dict
        Columns of the roles but for the count.
    counts : str or sequence of str
        The column of counts; or one column per type.
    event : str or None
        The column of types, with one column of counts.
    missing : {"error", "drop"}
        "drop": an interval may lack a type, which was not counted there.
    build : callable
        Makes a panel of a table and its columns; here of pairs of subject and type.
    """
    if isinstance(counts, str):
        table, types, kind, count = _by_column(table, counts, event)
    else:
        table, types, kind, count = _by_counts(table, list(counts), event)
    subject = table.column(names["subject"], "subject")
    _refuse_missing(table, names["subject"], "must label the subject")
    pairs = [SubjectOfType((k, types[e])) for k, e in zip(subject.tolist(), kind, strict=True)]
    table = _with_column(table, names["subject"], pairs)
    rows = PanelCounts._from_arrays(**build(table, {**names, "count": count}))
    panel = TypedPanel.of(_divided(rows, types), rows.notes)
    differ = differing_interval(panel)
    if differ is not None and missing != "drop":
        raise PanelDataError(
            f"each interval needs a count of every type; {differ}: write 0 if none was seen, or "
            "pass missing='drop' if that type was not counted there"
        )
    return panel


def _by_column(
    table: Table, count: str, event: str | None
) -> tuple[Table, list[str], IndexArray, str]:
    """Rows that say which type they count."""
    import pandas as pd

    assert event is not None
    if event == count:
        raise PanelDataError(f"column {event!r} cannot be both count and event")
    column = table.column(event, "event")
    _refuse_missing(table, event, "must name the type of the events")
    codes, labels = pd.factorize(column)
    order = sorted(range(len(labels)), key=lambda k: natural_key(labels[k]))
    rank = np.argsort(np.asarray(order, dtype=np.intp))
    rest = {name: values for name, values in table.columns.items() if name != event}
    types = [str(labels[k]) for k in order]
    return replace(table, columns=rest), types, rank[codes], count


def _by_counts(
    table: Table, counts: list[str], event: str | None
) -> tuple[Table, list[str], IndexArray, str]:
    """Rows that count every type: one copy of the table per type."""
    import pandas as pd

    if event is not None:
        raise PanelDataError(
            f"event={event!r} goes with one column of counts; found count={counts!r}"
        )
    if len(set(counts)) < len(counts) or not counts:
        raise PanelDataError(f"the columns of counts must differ; found count={counts!r}")
    columns = [table.column(name, "count") for name in counts]
    values = pd.concat(columns, ignore_index=True)
    rows = np.tile(np.arange(table.n_rows), len(counts))
    rest = {name: column for name, column in table.columns.items() if name not in counts}
    name = " or ".join(counts)
    long = replace(table, columns=rest).take(rows)
    long = replace(long, columns={**long.columns, name: values})
    return long, counts, np.repeat(np.arange(len(counts)), table.n_rows), name


def _refuse_missing(table: Table, name: str, rule: str) -> None:
    problems = Problems(table.locate)
    empty = missing_cells(table.columns[name])
    problems.flag(empty, f"{name!r} {rule}", lambda row: "the cell is missing")
    problems.raise_any()


def _with_column(table: Table, name: str, values: list[SubjectOfType]) -> Table:
    import pandas as pd

    column: pd.Series[Any] = pd.Series(np.fromiter(values, dtype=object, count=len(values)))
    return replace(table, columns={**table.columns, name: column})


def _divided(rows: PanelCounts, types: list[str]) -> dict[str, PanelCounts]:
    """The rows of each type as a panel of its own, types without rows left out."""
    pairs = rows.subjects.tolist()
    kind = np.array([types.index(pair[1]) for pair in pairs])
    labels = label_array([pair[0] for pair in pairs])
    result = {}
    for e, name in enumerate(types):
        who = np.flatnonzero(kind == e)
        if len(who):
            who = who[label_order(labels[who])]
            result[name] = rows._take(who)._like(subjects=labels[who], notes=())
    return result
