"""Tables that are read in parts: folders and patterns of Parquet files, also on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from gp4c.cli.options.table_options import TableOptions
from gp4c.reporting.fit_result import FittedGroup

if TYPE_CHECKING:
    from distributed import Client

    from gp4c.data.tables.sources import PanelSource
    from gp4c.estimators.base import PanelEstimator

FilesArgument: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Text (CSV and the like), Excel, SAS, SPSS, Stata, Parquet, Feather, JSON, DuckDB or "
        "SQLite file, - for standard input, or the name of a data set that comes with gp4c. "
        "Several Parquet files, a folder, a pattern or an address (s3://...) are one table, read "
        "in parts.",
    ),
]
SchedulerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Dask scheduler (tcp://...) whose workers read the files.",
        rich_help_panel="Reading",
    ),
]

#: seconds to wait for a scheduler
PATIENCE = 20
#: options of a table that make sense only for a file that is read whole
_WHOLE = (
    "origin", "time", "cumulative", "since_entry", "delimiter", "decimal", "encoding", "by",
    "formula", "usage", "end", "clock", "day_first", "sheet", "table", "query", "event",
)  # fmt: skip


def in_parts(files: list[str], scheduler: str | None = None) -> bool:
    """Whether a table is read in parts: files, a folder, a pattern, an address, for a cluster."""
    if scheduler is not None or len(files) > 1:
        return True
    (file,) = files
    if "://" in file or Path(file).is_dir():
        return True
    return any(sign in file for sign in "*?[") and not Path(file).exists()


def scan_source(
    files: list[str], table: TableOptions, by: str | None, formula: str | None
) -> PanelSource:
    """Open a table that is read in parts; options that need it whole are refused."""
    from gp4c.data.tables.sources import scan_panel

    options = table.reading()
    count = options.get("count")
    if isinstance(count, list):
        raise typer.BadParameter("several --count need one file that fits in memory")
    asked = {**options, "by": by, "formula": formula}
    for name in _WHOLE:
        if asked.get(name):
            flag = name.replace("_", "-")
            raise typer.BadParameter(f"--{flag} needs one file that fits in memory")
    return scan_panel(
        files, missing=table.missing, subject=options.get("subject"), start=options.get("start"),
        stop=options.get("stop"), count=count, exposure=options.get("exposure"),
        window=options.get("window"), time_unit=options.get("time_unit"),
    )  # fmt: skip


def fit_in_parts(
    source: PanelSource, model: PanelEstimator, scheduler: str | None, say: Callable[[str], None]
) -> list[FittedGroup]:
    """Fit a model to a table that is read in parts, here or on a cluster."""
    import gp4c

    if not isinstance(model, gp4c.GP4C):
        raise typer.BadParameter("tables that are read in parts need --model gp4c or gp4cw")
    if scheduler is None:
        model.fit(source, progress=say)
    else:
        with connected(scheduler) as client:
            model.fit(source, client=client, progress=say)
    return [FittedGroup(None, None, model)]


@contextmanager
def on_cluster(scheduler: str | None) -> Iterator[None]:
    """Let everything that goes through joblib run on a cluster, if one is named."""
    if scheduler is None:
        yield
        return
    from joblib import parallel_config

    with connected(scheduler), parallel_config(backend="dask"):
        yield


def connected(scheduler: str) -> Client:
    """A client of a running scheduler."""
    from gp4c.exceptions import MissingExtraError

    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("--scheduler needs Dask: install gp4c[dask]") from None
    try:
        return Client(scheduler, timeout=PATIENCE)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"no Dask scheduler answers at {scheduler!r}: {error}") from None
