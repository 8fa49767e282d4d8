"""Options of every command that reads a table, and the reading itself."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TypeAlias, TypedDict, cast

import typer

from gp4c.cli.options.grouped import grouped
from gp4c.plain import number_or_text, printable

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

_COLUMNS = "Columns (usual names are recognised)"
_READING = "Reading"


class Clock(StrEnum):
    """What curves are over."""

    TIME = "time"
    USAGE = "usage"


FileArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Text (CSV and the like), Excel, SAS, SPSS, Stata, Parquet, Feather, JSON, DuckDB or "
        "SQLite file, - for standard input, or the name of a data set that comes with gp4c.",
    ),
]
SubjectOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Subject labels.", rich_help_panel=_COLUMNS)
]
StartOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Start of the interval.", rich_help_panel=_COLUMNS)
]
StopOption: TypeAlias = Annotated[
    str | None, typer.Option(help="End of the interval.", rich_help_panel=_COLUMNS)
]
CountOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="Events in the interval; may be repeated, a column for each type of event.",
        rich_help_panel=_COLUMNS,
    ),
]
EventOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Type of event that a row counts.", rich_help_panel=_COLUMNS)
]
TimeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--time", help="Visit times, in place of start and stop.", rich_help_panel=_COLUMNS
    ),
]
ExposureOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Units at risk, 1 if absent.", rich_help_panel=_COLUMNS)
]
UsageOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Amount of use in the interval (hours run, km): rates are per unit of it.",
        rich_help_panel=_COLUMNS,
    ),
]
EndOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--end", help="When subjects went out of service, or yes and no.", rich_help_panel=_COLUMNS
    ),
]
ClockOption: TypeAlias = Annotated[
    Clock,
    typer.Option(
        help="What curves are over: time, or each subject's usage so far.",
        rich_help_panel=_READING,
    ),
]
CumulativeOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--cumulative",
        help="The counts of a table of visits are totals since the beginning.",
        rich_help_panel=_READING,
    ),
]
SinceEntryOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--since-entry",
        help="In a table of visits, count time from each subject's first visit, or from --origin.",
        rich_help_panel=_READING,
    ),
]
OriginOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Where first intervals start in a table of visits: a time or date, a column of entry "
        "times, or 'first' for each subject's first visit. Default: 0, or 'first' with dates.",
        rich_help_panel=_READING,
    ),
]
TimeUnitOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Unit of time; dates are converted to it.", rich_help_panel=_READING),
]
WindowOption: TypeAlias = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="TIME TIME",
        help="Where the rate is defined: two times, or dates.",
        rich_help_panel=_READING,
    ),
]
DropMissingOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--drop-missing",
        help="Leave out intervals without a count or a covariate, as gaps, and subjects "
        "without a group.",
        rich_help_panel=_READING,
    ),
]
DayFirstOption: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--day-first/--month-first",
        help="Which comes first in dates such as 1/2/2024, if no row of the table tells.",
        rich_help_panel=_READING,
    ),
]
SheetOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Sheet of a workbook.", rich_help_panel=_READING)
]
TableNameOption: TypeAlias = Annotated[
    str | None, typer.Option("--table", help="Table of a database.", rich_help_panel=_READING)
]
QueryOption: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="SELECT statement for a database.", rich_help_panel=_READING),
]
DelimiterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="What separates the cells of a text file; detected if absent.",
        rich_help_panel=_READING,
    ),
]
DecimalOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Decimal mark of a text file; detected if absent.", rich_help_panel=_READING),
]
EncodingOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Encoding of a text file, such as latin-1; detected if absent.",
        rich_help_panel=_READING,
    ),
]


class Reading(TypedDict, total=False):
    """Arguments of :func:`gp4c.read_panel` besides ``missing``; those not asked for are absent."""

    subject: str
    start: str
    stop: str
    count: str | list[str]
    event: str
    time: str
    exposure: str
    usage: str
    end: str
    clock: str
    cumulative: bool
    since_entry: bool
    origin: str | float | None
    time_unit: str
    window: tuple[float | str, float | str]
    day_first: bool
    sheet: str
    table: str
    query: str
    delimiter: str
    decimal: str
    encoding: str


@dataclass(frozen=True)
class TableOptions:
    """How to read a table, as asked for on the command line."""

    subject: SubjectOption = None
    start: StartOption = None
    stop: StopOption = None
    count: CountOption = None
    event: EventOption = None
    time: TimeOption = None
    exposure: ExposureOption = None
    usage: UsageOption = None
    end: EndOption = None
    clock: ClockOption = Clock.TIME
    cumulative: CumulativeOption = False
    since_entry: SinceEntryOption = False
    origin: OriginOption = None
    time_unit: TimeUnitOption = None
    window: WindowOption = None
    drop_missing: DropMissingOption = False
    day_first: DayFirstOption = None
    sheet: SheetOption = None
    table: TableNameOption = None
    query: QueryOption = None
    delimiter: DelimiterOption = None
    decimal: DecimalOption = None
    encoding: EncodingOption = None

    def reading(self) -> Reading:
        """Return the arguments of :func:`gp4c.read_panel` that were asked for."""
        options = asdict(self)
        del options["drop_missing"]
        if self.count is not None and len(self.count) == 1:
            (options["count"],) = self.count
        options["clock"] = None if self.clock is Clock.TIME else self.clock.value
        if self.window is not None:
            options["window"] = tuple(number_or_text(time) for time in self.window)
        given = {name: value for name, value in options.items() if value is not None}
        return cast(Reading, given)

    @property
    def missing(self) -> str:
        """What to do with rows without a count."""
        return "drop" if self.drop_missing else "error"


#: gives a command every option of :class:`TableOptions`, together as ``table``
takes_table = grouped("table", TableOptions)


def read_source(source: str, table: TableOptions, say: bool = True) -> PanelCounts:
    """Read a panel from a file, standard input or the data sets that come with gp4c.

    Parameters
    ----------
    source : str
        Path, ``-`` or name of a data set; a file of that name comes first.
    table : TableOptions
        Those of a data set are its own.
    say : bool
        Print what was decided while reading, on stderr.
    """
    from gp4c.cli.guard import in_options
    from gp4c.data.datasets.bundled import list_datasets, load_dataset
    from gp4c.data.tables.readers import read_panel

    options = table.reading()
    if source != "-" and not Path(source).exists():
        if source in list_datasets():
            return _with_options(load_dataset(source), options)
        _suggest_dataset(source, list_datasets())
    if table.origin is not None:
        options["origin"] = _origin(table.origin)
    file: BinaryIO | str = sys.stdin.buffer if source == "-" else source
    panel = read_panel(file, missing=table.missing, **options)
    if say:
        for note in panel.notes:
            typer.echo(f"gp4c: note: {in_options(printable(note))}", err=True)
    return panel


def _origin(text: str) -> str | float | None:
    """Where first intervals start: a number, each subject's first visit, or a date or column."""
    return None if text == "first" else number_or_text(text)


def _suggest_dataset(source: str, known: list[str]) -> None:
    """Refuse a misspelt name of a data set with the right one."""
    from difflib import get_close_matches

    from gp4c.exceptions import PanelDataError

    near = get_close_matches(source, known, n=1, cutoff=0.75)
    if near:
        raise PanelDataError(f"there is no file {source!r}; did you mean the data set {near[0]!r}?")


def _with_options(panel: PanelCounts, options: Reading) -> PanelCounts:
    """Change the window of a data set; its columns are known."""
    from gp4c.exceptions import PanelDataError

    window = options.get("window")
    given = [name for name, value in options.items() if value and name != "window"]
    if given:
        flag = "--" + given[0].replace("_", "-")
        raise PanelDataError(f"a data set that comes with gp4c takes no {flag}")
    return panel if window is None else panel.with_window(window)
