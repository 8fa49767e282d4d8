"""Options of every command that reads a table, and the reading itself."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, TypeAlias, TypedDict, get_type_hints

import typer

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.timeaxis import Window

_COLUMNS = "Columns (usual names are recognised)"
_READING = "Reading"

FileArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV (also gzipped) or Parquet file, - for standard input, "
        "or the name of a data set that comes with gp4c.",
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
    str | None, typer.Option(help="Events in the interval.", rich_help_panel=_COLUMNS)
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
CumulativeOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--cumulative",
        help="With --time: counts are totals since the beginning.",
        rich_help_panel=_READING,
    ),
]
SinceEntryOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--since-entry",
        help="With --time: count time from each subject's first visit, or from --origin.",
        rich_help_panel=_READING,
    ),
]
OriginOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="With --time: where first intervals start. A time or date, 0 if absent; a column of "
        "entry times; or first, for each subject's first visit.",
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
        help="Leave out intervals without a count or a covariate, as gaps.",
        rich_help_panel=_READING,
    ),
]
DelimiterOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Between cells of a CSV file.", rich_help_panel=_READING)
]
DecimalOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Decimal mark of a CSV file, a point if absent.", rich_help_panel=_READING),
]
EncodingOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Of a CSV file, UTF-8 if absent; e.g. latin-1.", rich_help_panel=_READING),
]


class Reading(TypedDict):
    """Arguments that :func:`gp4c.read_panel` and :func:`gp4c.scan_panel` both take."""

    subject: str | None
    start: str | None
    stop: str | None
    count: str | None
    exposure: str | None
    time_unit: str | None
    window: Window | None
    missing: str


@dataclass(frozen=True)
class TableOptions:
    """How to read a table, as asked for on the command line."""

    subject: SubjectOption = None
    start: StartOption = None
    stop: StopOption = None
    count: CountOption = None
    time: TimeOption = None
    exposure: ExposureOption = None
    cumulative: CumulativeOption = False
    since_entry: SinceEntryOption = False
    origin: OriginOption = None
    time_unit: TimeUnitOption = None
    window: WindowOption = None
    drop_missing: DropMissingOption = False
    delimiter: DelimiterOption = None
    decimal: DecimalOption = None
    encoding: EncodingOption = None

    def reading(self) -> Reading:
        """Return what every table is read with, whole or in parts."""
        return {
            "subject": self.subject, "start": self.start, "stop": self.stop, "count": self.count,
            "exposure": self.exposure, "time_unit": self.time_unit, "window": self.times(),
            "missing": "drop" if self.drop_missing else "error",
        }  # fmt: skip

    def times(self) -> Window | None:
        """The window, its ends as numbers where they are such."""
        if self.window is None:
            return None
        first, last = self.window
        return _number_or_text(first), _number_or_text(last)

    def given(self) -> list[str]:
        """Names of the options that were used, in their order."""
        return [name for name, value in asdict(self).items() if value]


def takes_table(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every option of :class:`TableOptions`, after its first argument.

    The command itself takes them together, as ``table``.
    """
    names = [field.name for field in fields(TableOptions)]
    types = get_type_hints(TableOptions, include_extras=True)
    own_types = get_type_hints(command, include_extras=True)
    first, *others = (
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=own_types[p.name])
        for p in inspect.signature(command).parameters.values()
        if p.name != "table"
    )
    added = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
            annotation=types[field.name],
        )
        for field in fields(TableOptions)
    ]  # fmt: skip

    options: Callable[..., TableOptions] = TableOptions  # typer has checked the values

    @functools.wraps(command)
    def run(**given: object) -> None:
        table = options(**{name: given.pop(name) for name in names})
        command(table=table, **given)

    signature = inspect.Signature([first, *added, *others])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run


def read_source(source: str, table: TableOptions) -> PanelCounts:
    """Read a panel from a file, standard input or the data sets that come with gp4c.

    Parameters
    ----------
    source : str
        Path, ``-`` or name of a data set; a file of that name comes first.
    table : TableOptions
        Those of a data set are its own.
    """
    from gp4c.data.datasets.bundled import list_datasets, load_dataset
    from gp4c.data.tables.readers import read_panel

    if source != "-" and not Path(source).exists():
        if source in list_datasets():
            return _with_options(load_dataset(source), table)
        _suggest_dataset(source, list_datasets())
    file: str | IO[bytes] = sys.stdin.buffer if source == "-" else source
    return read_panel(
        file, time=table.time, cumulative=table.cumulative, since_entry=table.since_entry,
        origin=_origin(table.origin), delimiter=table.delimiter,
        decimal="." if table.decimal is None else table.decimal, encoding=table.encoding,
        **table.reading(),
    )  # fmt: skip


def _origin(text: str | None) -> str | float | None:
    """Where first intervals start: a number, each subject's first visit, or a date or column."""
    if text is None:
        return 0.0
    return None if text == "first" else _number_or_text(text)


def _number_or_text(text: str) -> float | str:
    """A time: a number, else what may be a date."""
    try:
        return float(text)
    except ValueError:
        return text


def _suggest_dataset(source: str, known: list[str]) -> None:
    """Refuse a misspelt name of a data set with the right one."""
    from difflib import get_close_matches

    from gp4c.exceptions import PanelDataError

    near = get_close_matches(source, known, n=1, cutoff=0.75)
    if near:
        raise PanelDataError(f"there is no file {source!r}; did you mean the data set {near[0]!r}?")


def _with_options(panel: PanelCounts, table: TableOptions) -> PanelCounts:
    """Change the window of a data set; its columns are known, and no count is missing."""
    from gp4c.exceptions import PanelDataError

    for name in table.given():
        if name not in ("window", "drop_missing"):
            flag = "--" + name.replace("_", "-")
            raise PanelDataError(f"a data set that comes with gp4c takes no {flag}")
    window = table.times()
    return panel if window is None else panel.with_window(window)
