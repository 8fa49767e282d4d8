"""``gp4c describe``: what a table of panel counts holds, before any model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from gp4c.cli.options.table_options import FileArgument, TableOptions, read_source, takes_table
from gp4c.cli.outputs import OutOption, say_written, write_all


class Order(StrEnum):
    """Subjects from top to bottom of the picture."""

    LABEL = "label"
    FOLLOW_UP = "follow_up"
    EVENTS = "events"


@takes_table
def describe(
    file: FileArgument,
    table: TableOptions,
    order: Annotated[Order, typer.Option(help="Subjects in the picture, by ...")] = Order.LABEL,
    out: OutOption = None,
) -> None:
    """Summarise a table of panel counts and draw it.

    Prints the summary; with --out also writes panel.png and summary.csv.

    Example: gp4c describe bladder --out results
    """
    panel = read_source(file, table)
    summary = panel.summary()
    typer.echo(str(summary))
    if out is None:
        return
    from gp4c.reporting.csv_tables import write_csv
    from gp4c.reporting.figures.panel_picture import save_panel_picture

    written = write_all(
        out,
        {
            "panel.png": lambda path: save_panel_picture(panel, path, order=order.value),
            "summary.csv": lambda path: write_csv(summary.to_frame(), path),
        },
    )
    say_written(written)
