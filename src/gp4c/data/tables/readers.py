"""Panels from files: CSV, gzipped CSV and Parquet."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from gp4c.data.checks import unknown_name
from gp4c.data.tables.content import (
    PER_BYTE,
    PER_CELL,
    PER_ROW,
    check_room,
    in_sentence,
    read_content,
    unzipped,
)
from gp4c.data.tables.csvfile import read_csv_table
from gp4c.data.tables.frames import Table, table_of
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.timeaxis import Moment, Window

#: usual column names of each role, in lower case without punctuation
USUAL_NAMES = {
    "subject": "subject subjectid subj id patient patientid pid unit unitid unitno serial machine "
    "device asset participant person individual case caseid usubjid",
    "start": "start tstart from begin left t0 time0 lower starttime startdate entry",
    "stop": "stop tstop to end right t1 time1 upper stoptime stopdate endtime enddate exit",
    "count": "count counts n events nevents m ncount number failures nfailures y",
    "exposure": "exposure",
}
_TIME_NAMES = ("time", "t", "visit", "month", "months", "day", "days", "week", "weeks", "date")


def read_panel(
    source: str | os.PathLike[str] | IO[str] | IO[bytes],
    *,
    subject: str | None = None,
    start: str | None = None,
    stop: str | None = None,
    count: str | Sequence[str] | None = None,
    event: str | None = None,
    exposure: str | None = None,
    usage: str | None = None,
    end: str | None = None,
    clock: str = "time",
    time: str | None = None,
    cumulative: bool = False,
    since_entry: bool = False,
    origin: Moment | None = 0.0,
    window: Window | None = None,
    time_unit: str | None = None,
    missing: str = "error",
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
) -> PanelCounts:
    r"""Read a panel from a CSV (also gzipped) or Parquet file.

    Parameters
    ----------
    source : path or file object
    subject, start, stop, count, exposure : str, optional
        Names of the columns. Without them usual names (id, from, to, n, ...) are recognised in
        any case, and ``panel.notes`` says which were used. Several columns of counts are several
        types of events.
    event : str, optional
        Column of types of events, as in :meth:`PanelCounts.from_frame`.
    usage, end, clock
        Columns of the amount of use in each interval and of the time when a subject went out of
        service, as in :meth:`PanelCounts.from_frame`; they are never recognised by name.
    time : str, optional
        For a table of visits: the column of visit times, instead of ``start`` and ``stop``.
    cumulative, since_entry, origin
        For a table of visits, as in :meth:`PanelCounts.from_visits`. In a table of intervals,
        ``origin`` may be the date that time 0 stands for.
    window, time_unit, missing
        As in :meth:`PanelCounts.from_frame`.
    delimiter : str, optional
        Default a comma, or a tab if the file's name ends in .tsv.
    decimal : str
        Decimal mark of a CSV file.
    encoding : str, optional
        Of a CSV file; default UTF-8.

    Returns
    -------
    PanelCounts

    Raises
    ------
    PanelDataError
        The file cannot be read as a table, or the table breaks a rule; rows of a CSV file are
        named by line number (header = line 1), rows of a Parquet file by position from 0.

    Examples
    --------
    >>> import io, gp4c
    >>> text = "id,from,to,n\n7,0,3,1\n7,3,5,0\n8,0,4,2\n"
    >>> gp4c.read_panel(io.StringIO(text))
    <PanelCounts: 2 subjects, 3 intervals, 3 events, window (0, 5)>
    """
    from gp4c.data.panel import PanelCounts

    given = {"subject": subject} | _one_count(count)
    given |= {"exposure": exposure} if usage is None or exposure is not None else {}
    given |= {role: name for role, name in (("usage", usage), ("end", end)) if name is not None}
    given |= {"time": time} if time is not None else {"start": start, "stop": stop}

    def label_column(header: list[str]) -> str | None:
        usual = [] if subject is not None else _recognise("subject", header)
        return usual[0] if len(usual) == 1 else subject

    table = read_table(
        source, label_column, delimiter=delimiter, decimal=decimal, encoding=encoding
    )
    names, notes = resolve_columns(table, given)
    counts: str | Sequence[str] = names.pop("count", "") or count or "count"
    if time is not None:
        panel = PanelCounts.from_visits(
            table, subject=names["subject"], time=names["time"], count=counts, event=event,
            exposure=names.get("exposure"), usage=usage, end=end, clock=clock,
            window=window, time_unit=time_unit, missing=missing,
            origin=origin, cumulative=cumulative, since_entry=since_entry,
        )  # fmt: skip
    else:
        is_number = isinstance(origin, int | float) and origin == 0
        panel = PanelCounts.from_frame(
            table, **names, count=counts, event=event, clock=clock, window=window,
            time_unit=time_unit, missing=missing, origin=None if is_number else origin,
        )  # fmt: skip
    return panel._like(notes=(*notes, *panel.notes))


def _one_count(count: str | Sequence[str] | None) -> dict[str, str | None]:
    """The role of the count, if one column has it: several names are not to be recognised."""
    return {"count": count} if count is None or isinstance(count, str) else {}


def resolve_columns(
    table: Table, given: dict[str, str | None]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Name the column of every role, from what was given or by usual names.

    Parameters
    ----------
    table : Table
    given : dict
        Role to column, None if it is to be recognised; an exposure may be absent.

    Returns
    -------
    names : dict
    notes : tuple of str
        Which columns were recognised, if their names are not those of the roles.
    """
    header = list(table.columns)
    names = {role: name for role, name in given.items() if name is not None}
    for role, name in names.items():
        table.column(name, role)
    recognised: dict[str, str] = {}
    undecided: dict[str, list[str]] = {}
    for role in (role for role, name in given.items() if name is None):
        free = [name for name in header if name not in names.values()]
        found = _recognise(role, free)
        if len(found) == 1:
            names[role] = recognised[role] = found[0]
        elif found or role != "exposure":
            undecided[role] = found
    if undecided:
        free = [name for name in header if name not in names.values()]
        raise PanelDataError("\n".join(_not_recognised(undecided, free, table.source)))
    told = [f"{name!r} as {role}" for role, name in recognised.items() if name != role]
    notes = [f"columns recognised by name: {', '.join(told)}"] if told else []
    if recognised.get("exposure") == "exposure":
        notes.append("column 'exposure' is used as exposure")
    return names, tuple(notes)


def _recognise(role: str, header: list[str]) -> list[str]:
    """Return the columns with a usual name for the role; the role's own name decides."""
    usual = USUAL_NAMES[role].split()
    plain = {name: re.sub(r"[^a-z0-9]", "", name.lower()) for name in header}
    found = [name for name in header if plain[name] in usual]
    exact = [name for name in found if plain[name] == role]
    return exact if len(exact) == 1 else found


def _not_recognised(undecided: dict[str, list[str]], free: list[str], source: str) -> Iterator[str]:
    """Say which roles no column or several have a usual name for, all at once, and what helps."""
    for role, found in undecided.items():
        if found:
            listed = " and ".join(repr(name) for name in found)
            yield f"{source} has {listed}: say which is the {role}, with {role}=..."
    roles = [role for role in USUAL_NAMES if undecided.get(role) == []]
    if not roles:
        return
    asked = ", ".join(f"{role}=..." for role in roles)
    which = "which it is" if len(roles) == 1 else "which they are"
    missing = f"{source} has no column that looks like the {' or the '.join(roles)}"
    visits = [name for name in free if name.lower() in _TIME_NAMES]
    if {"start", "stop"} & set(roles) and visits:
        hint = f"for a table of visits pass time={visits[0]!r}, else"
    else:
        hint = unknown_name(roles[0] if len(roles) == 1 else "", free) + ";"
    if {"start", "stop"} <= set(roles) and not visits:
        asked += " (in a table of visits time=... in place of start and stop)"
    yield f"{missing}; {hint} say {which} with {asked}"


def read_table(
    source: str | os.PathLike[str] | IO[str] | IO[bytes],
    label_column: Callable[[list[str]], str | None],
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
) -> Table:
    """Read any supported file as a table; see :func:`read_panel` for the options."""
    data, name = read_content(source)
    shown = in_sentence(name)
    if data[:2] == b"\x1f\x8b":
        data = unzipped(data, shown)
    if data[:4] == b"PAR1" or name.lower().endswith((".parquet", ".pq")):
        return _read_parquet(data, shown)
    if data[:2] == b"PK":
        raise PanelDataError(f"{shown} is a zip archive or Excel workbook; save the table as CSV")
    if delimiter is None:
        delimiter = "\t" if name.lower().endswith((".tsv", ".tsv.gz", ".tab")) else ","
    check_room(shown, PER_BYTE * len(data) + PER_ROW * data.count(b"\n"))
    return read_csv_table(
        data,
        shown,
        label_column=label_column,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
    )


def _read_parquet(data: bytes, source: str) -> Table:
    """Read a Parquet file; index columns that pandas stored without a name are left out."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        _check_parquet_room(parquet.ParquetFile(io.BytesIO(data)).metadata, source)
        content = parquet.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise PanelDataError(f"{source} is not a readable Parquet file: {reason}") from None
    kept = [name for name in content.column_names if not name.startswith("__index_level_")]
    if not content.num_rows:
        raise PanelDataError(f"{source} is empty; it needs at least one row")
    table = table_of(content.select(kept))
    return Table(table.columns, table.n_rows, table.locate, source)


def _check_parquet_room(metadata: Any, source: str) -> None:
    """Repeated values take next to no room in the file, but they do in memory."""
    groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
    unpacked = 2 * sum(max(group.total_byte_size, 0) for group in groups)
    cells = metadata.num_rows * metadata.num_columns
    check_room(source, PER_ROW * metadata.num_rows + PER_CELL * cells + unpacked)
