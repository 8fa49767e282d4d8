"""Tables that are read in parts: folders and patterns of Parquet files, also on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from gp4c.cli.estimators import FittedGroup
from gp4c.cli.tables import TableOptions

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
_WHOLE = ("origin", "time", "cumulative", "delimiter", "decimal", "encoding", "by", "formula")


def in_parts(file: str, scheduler: str | None = None) -> bool:
    """Whether a table is read in parts: a folder, a pattern, an address, or for a cluster."""
    if scheduler is not None or "://" in file or Path(file).is_dir():
        return True
    return any(sign in file for sign in "*?[") and not Path(file).exists()


def scan_source(file: str, table: TableOptions, **more: Any) -> Any:
    """Open a table that is read in parts; options that need it whole are refused."""
    from gp4c.data.sources import scan_panel

    options = table.reading() | more
    for name in _WHOLE:
        if options.pop(name, None):
            flag = name.replace("_", "-")
            raise typer.BadParameter(f"--{flag} needs one file that fits in memory")
    return scan_panel(file, missing=table.missing, **options)


def fit_in_parts(
    source: Any, model: Any, scheduler: str | None, say: Callable[[str], None]
) -> list[FittedGroup]:
    """Fit a model to a table that is read in parts, here or on a cluster."""
    import gp4c
    from gp4c.models.big import fit_large

    if not isinstance(model, gp4c.GP4C):
        raise typer.BadParameter("tables that are read in parts need --model gp4c or gp4cw")
    if scheduler is None:
        fit_large(model, source, say=say)
    else:
        with _connected(scheduler) as client:
            fit_large(model, source, client=client, say=say)
    return [FittedGroup(None, None, model)]


def _connected(scheduler: str) -> Any:
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
