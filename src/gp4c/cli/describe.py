"""``gp4c describe``: what a table of panel counts holds, before any model."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gp4c.cli.options.estimator_options import JsonOption
from gp4c.cli.options.table_options import FileArgument, TableOptions, read_source, takes_table
from gp4c.cli.outputs import OutOption, say_written, write_all
from gp4c.reporting.fit_result import Writer

if TYPE_CHECKING:
    import pandas as pd


class Order(StrEnum):
    """Subjects from top to bottom of the picture."""

    LABEL = "label"
    FOLLOW_UP = "follow_up"
    EVENTS = "events"


@takes_table
def describe(
    file: FileArgument,
    table: TableOptions,
    by: Annotated[
        str | None, typer.Option(help="Describe each group of subjects of this column.")
    ] = None,
    order: Annotated[Order, typer.Option(help="Subjects in the picture, by ...")] = Order.LABEL,
    as_json: JsonOption = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print the result as CSV instead of text.")
    ] = False,
    out: OutOption = None,
) -> None:
    """Summarise a table of panel counts and draw it.

    Prints the summary, or with --by a table of the groups.
    With --out also writes panel.png and summary.csv, with --by also table.csv.

    Example: gp4c describe bladder --by treatment --out results
    """
    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv exclude each other")
    panel = read_source(file, table)
    summary = panel.summary()
    shown = summary if by is None else panel.table(by)
    if as_json:
        notes = summary.remarks if by is None else panel.table(by).notes
        typer.echo(_json(shown.to_frame(), shown.title, notes))
    elif as_csv:
        from gp4c.reporting.csv_tables import to_csv

        typer.echo(to_csv(shown.to_frame()), nl=False)
    else:
        typer.echo(str(shown))
    if out is None:
        return
    from gp4c.reporting.csv_tables import write_csv
    from gp4c.reporting.figures.panel_picture import save_panel_picture

    files: dict[str, Writer] = {
        "panel.png": lambda path: save_panel_picture(panel, path, order=order.value),
        "summary.csv": lambda path: write_csv(summary.to_frame(), path),
    }
    if by is not None:
        files["table.csv"] = lambda path: write_csv(shown.to_frame(), path)
    say_written(write_all(out, files))


def _json(frame: pd.DataFrame, title: str, remarks: tuple[str, ...]) -> str:
    """Rows for programs; what is not defined is null."""
    import json

    rows = json.loads(frame.to_json(orient="records", double_precision=15))
    return json.dumps({"title": title, "rows": rows, "notes": remarks}, indent=2)
