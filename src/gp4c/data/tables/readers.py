"""Panels from files of every kind, and what is recognised in them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict, Unpack

from gp4c.data.tables.formats.content import Stream, TableFile
from gp4c.data.tables.formats.databases import Connection, read_connection
from gp4c.data.tables.formats.file_format import Choice, LabelColumn, read_file
from gp4c.data.tables.frames import Table, is_frame, table_of
from gp4c.data.tables.recognition import (
    Recognised,
    looks_like_visits,
    recognise_columns,
    resolve_columns,
    usual_columns,
)
from gp4c.exceptions import PanelDataError, RowProblem

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts
    from gp4c.data.tables.frames import IntoTable
    from gp4c.data.timeaxis import Moment, Window

    #: what is read: a file, a stream, a connection to a database, or a table in memory
    Readable = str | os.PathLike[str] | Stream | Connection | IntoTable

#: rows of a table that :func:`recognise_table` shows
PREVIEW = 8


@dataclass(frozen=True)
class _Options:
    """Arguments of :func:`read_panel`."""

    subject: str | None = None
    start: str | None = None
    stop: str | None = None
    count: str | Sequence[str] | None = None
    event: str | None = None
    exposure: str | None = None
    usage: str | None = None
    end: str | None = None
    clock: str = "time"
    time: str | None = None
    cumulative: bool = False
    since_entry: bool = False
    origin: Moment | None = 0.0
    window: Window | None = None
    time_unit: str | None = None
    missing: str = "error"
    day_first: bool | None = None
    choice: Choice = field(default_factory=Choice)

    def roles(self, header: list[str]) -> dict[str, str | None]:
        """Columns by role as given, None where one is to be recognised."""
        given: dict[str, str | None] = {"subject": self.subject}
        if self.count is None or isinstance(self.count, str):
            given["count"] = self.count  # several are not to be recognised
        if self.usage is None or self.exposure is not None:
            given["exposure"] = self.exposure
        extra = (("usage", self.usage), ("end", self.end))
        given |= {role: name for role, name in extra if name is not None}
        times = {"start": self.start, "stop": self.stop}
        is_visits = self.time is not None or looks_like_visits(header, given | times)
        return given | ({"time": self.time} if is_visits else times)

    def label_column(self, header: list[str]) -> str | None:
        """Which column holds the subject labels."""
        usual = [] if self.subject is not None else usual_columns("subject", header)
        return usual[0] if len(usual) == 1 else self.subject


class PanelOptions(TypedDict, total=False):
    """Arguments of :func:`read_panel`, all of them optional."""

    subject: str | None
    start: str | None
    stop: str | None
    count: str | Sequence[str] | None
    event: str | None
    exposure: str | None
    usage: str | None
    end: str | None
    clock: str
    time: str | None
    cumulative: bool
    since_entry: bool
    origin: Moment | None
    window: Window | None
    time_unit: str | None
    missing: str
    day_first: bool | None
    sheet: str | None
    table: str | None
    query: str | None
    delimiter: str | None
    decimal: str | None
    encoding: str | None


def read_panel(
    source: Readable,
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
    day_first: bool | None = None,
    sheet: str | None = None,
    table: str | None = None,
    query: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> PanelCounts:
    r"""Read a panel from a file of any kind, a database or a data frame.

    Text (CSV and its relatives), Excel and OpenDocument workbooks, data sets of SAS, SPSS and
    Stata, Parquet, Feather, JSON lines, DuckDB and SQLite are known by their content; any of them
    may be gzipped.

    Parameters
    ----------
    source : path, file object, connection to a database, or dataframe
        A connection, as Python's database interface (PEP 249) has it, needs a `query`. Data
        frames of pandas, polars, pyarrow and others will do, and so will a dict of arrays.
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
        Recognised by usual names (date, month, ...) in a table without a column of stops.
    cumulative, since_entry, origin
        For a table of visits, as in :meth:`PanelCounts.from_visits`. In a table of intervals,
        ``origin`` may be the date that time 0 stands for.
    window, time_unit, missing, day_first
        As in :meth:`PanelCounts.from_frame`.
    sheet : str, optional
        Of a workbook; needed if several sheets hold something.
    table, query : str, optional
        Of a database: the name of a table or view, or a single SELECT statement. The file is
        opened for reading only.
    delimiter, decimal, encoding : str, optional
        Of a text file. By default they are found together by what parses, and ``panel.notes`` has
        what was found.

    Returns
    -------
    PanelCounts

    Raises
    ------
    PanelDataError
        The file cannot be read as a table, or the table breaks a rule. Rows are named as the user
        sees them: lines of a text, rows of a sheet, observations of SAS, positions from 0 in a
        Parquet file. The first bad rows are in the message, more of them in ``problems``.

    Examples
    --------
    >>> import io, gp4c
    >>> text = "id,from,to,n\n7,0,3,1\n7,3,5,0\n8,0,4,2\n"
    >>> gp4c.read_panel(io.StringIO(text))
    <PanelCounts: 2 subjects, 3 intervals, 3 events, window (0, 5)>
    """
    options = _Options(
        subject, start, stop, count, event, exposure, usage, end, clock, time, cumulative,
        since_entry, origin, window, time_unit, missing, day_first,
        Choice(sheet, table, query, delimiter, decimal, encoding),
    )  # fmt: skip
    return _panel(read_table(source, options.label_column, options.choice), options)


@dataclass(frozen=True)
class TableRecognition:
    """What a table holds and what is wrong with it, for whoever shows it to a user.

    Attributes
    ----------
    columns : tuple of str
        All columns of the table.
    n_rows : int
    names : dict
        Columns by role (subject, count, start and stop or time, exposure), as far as they were
        given or recognised.
    undecided : dict
        Roles without a column: the columns that may be it, none or several.
    is_visits : bool
        One row per visit; else one per interval.
    preview : DataFrame
        The first rows.
    titles : dict
        What columns are called at length, in files of SAS, SPSS and Stata.
    notes : tuple of str
        What was decided: layout, columns recognised, order of day and month.
    problems : tuple of RowProblem
        What is wrong, each with its rows (positions from 0, none if it is the whole table).
    panel : PanelCounts or None
        The panel, if nothing is wrong.
    """

    columns: tuple[str, ...]
    n_rows: int
    names: dict[str, str]
    undecided: dict[str, list[str]]
    is_visits: bool
    preview: pd.DataFrame
    titles: Mapping[str, str]
    notes: tuple[str, ...]
    problems: tuple[RowProblem, ...]
    panel: PanelCounts | None


def recognise_table(source: Readable, **options: Unpack[PanelOptions]) -> TableRecognition:
    r"""Read a file as :func:`read_panel` does, and say what was recognised instead of failing.

    Parameters
    ----------
    source, **options
        As in :func:`read_panel`.

    Returns
    -------
    TableRecognition

    Raises
    ------
    PanelDataError
        There is no table in the file at all.

    Examples
    --------
    >>> import io
    >>> from gp4c.data.tables.readers import recognise_table
    >>> found = recognise_table(io.StringIO("id,date,n\n1,2024-01-31,0\n1,2024-02-29,-1\n"))
    >>> found.names
    {'subject': 'id', 'count': 'n', 'time': 'date'}
    >>> print(found.problems[0])
    'n' must not be negative; found -1 (line 3)
    """
    import pandas as pd

    given = dict(options)
    choice = Choice(**{name: given.pop(name, None) for name in Choice.__dataclass_fields__})  # type: ignore[arg-type]
    asked = _Options(**given, choice=choice)  # type: ignore[arg-type]
    table = read_table(source, asked.label_column, choice)
    header = list(table.columns)
    roles = {role: name for role, name in asked.roles(header).items() if name in (None, *header)}
    found: Recognised = recognise_columns(header, roles)
    panel: PanelCounts | None = None
    problems: tuple[RowProblem, ...] = ()
    try:
        panel = _panel(table, asked)
    except PanelDataError as error:
        problems = error.problems or tuple(RowProblem(line) for line in str(error).splitlines())
    return TableRecognition(
        columns=tuple(header),
        n_rows=table.n_rows,
        names=found.names,
        undecided=found.undecided,
        is_visits="time" in roles,
        preview=pd.DataFrame({name: table.columns[name].head(PREVIEW) for name in header}),
        titles=table.titles,
        notes=(*table.notes, *found.notes) if panel is None else panel.notes,
        problems=problems,
        panel=panel,
    )


def read_table(source: Readable, label_column: LabelColumn, choice: Choice | None = None) -> Table:
    """Read a file of any kind, the result of a query, or a data frame as a table."""
    choice = choice or Choice()
    if isinstance(source, str | os.PathLike):
        return read_file(TableFile(source), choice, label_column)
    if is_frame(source):  # before streams: a column called "read" would look like one
        for name in choice.given():
            raise PanelDataError(f"a data frame takes no {name}=...; that is for files")
        return table_of(source)
    if isinstance(source, Stream):
        return read_file(TableFile(source), choice, label_column)
    if isinstance(source, Connection):
        return read_connection(source, choice)
    raise PanelDataError(
        f"read_panel takes a path, a file object, a connection to a database or a data frame; "
        f"found {type(source).__name__}"
    )


def _refuse_for_intervals(options: _Options, names: Mapping[str, str]) -> None:
    """Complain about what is asked of visits only: it would change nothing, and unnoticed."""
    asked = [name for name in ("cumulative", "since_entry") if getattr(options, name)]
    if asked:
        raise PanelDataError(
            f"{asked[0]}=True needs a table of visits, and this one has intervals from "
            f"{names['start']!r} to {names['stop']!r}; name a column of visits with time=..."
        )


def _panel(table: Table, options: _Options) -> PanelCounts:
    """Name the columns of a table and build its panel."""
    from gp4c.data.panel import PanelCounts

    names, notes = resolve_columns(table, options.roles(list(table.columns)))
    counts: str | Sequence[str] = names.pop("count", "") or options.count or "count"
    if "time" in names:
        panel = PanelCounts.from_visits(
            table, subject=names["subject"], time=names["time"], count=counts, event=options.event,
            exposure=names.get("exposure"), usage=options.usage, end=options.end,
            clock=options.clock, window=options.window, time_unit=options.time_unit,
            missing=options.missing, origin=options.origin, cumulative=options.cumulative,
            since_entry=options.since_entry, day_first=options.day_first,
        )  # fmt: skip
    else:
        _refuse_for_intervals(options, names)
        origin = options.origin
        is_number = isinstance(origin, int | float) and origin == 0
        panel = PanelCounts.from_frame(
            table, subject=names["subject"], start=names["start"], stop=names["stop"],
            count=counts, event=options.event, exposure=names.get("exposure"), usage=options.usage,
            end=options.end, clock=options.clock, window=options.window,
            time_unit=options.time_unit, missing=options.missing,
            origin=None if is_number else origin, day_first=options.day_first,
        )  # fmt: skip
    return panel._like(notes=(*notes, *panel.notes))
