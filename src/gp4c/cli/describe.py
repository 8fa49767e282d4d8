"""``gp4c describe``: what a table of panel counts holds, before any model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gp4c.cli.options.estimator_options import JsonOption, with_covariates
from gp4c.cli.options.table_options import FileArgument, TableOptions, read_source, takes_table
from gp4c.cli.outputs import OutputOptions, say_written, takes_output, write_all
from gp4c.reporting.fit_result import Writer

if TYPE_CHECKING:
    import pandas as pd


class Order(StrEnum):
    """Subjects from top to bottom of the picture."""

    LABEL = "label"
    FOLLOW_UP = "follow_up"
    EVENTS = "events"


@takes_table
@takes_output
def describe(
    file: FileArgument,
    table: TableOptions,
    by: Annotated[
        str | None, typer.Option(help="Describe each group of subjects of this column.")
    ] = None,
    reference: Annotated[str | None, typer.Option(help="Group of --by that stands first.")] = None,
    order: Annotated[Order, typer.Option(help="Subjects in the picture, by ...")] = Order.LABEL,
    as_json: JsonOption = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print the result as CSV instead of text.")
    ] = False,
    *,
    output: OutputOptions,
) -> None:
    """Summarise a table of panel counts and draw it.

    Prints the summary, or with --by a table of the groups.
    With --out also writes panel.png and summary.csv, with --by also table.csv,
    and with --tables a table to publish.

    Example: gp4c describe bladder --by treatment --out results
    """
    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv exclude each other")
    if reference is not None and by is None:
        raise typer.BadParameter("--reference names a group: it goes with --by")
    from gp4c.data.summaries.panel_summary import PanelSummary

    panel = read_source(file, table, say=as_csv or by is not None)
    panel = with_covariates(panel, None, table.drop_missing, (by,))
    summary = panel.summary()
    shown = summary if by is None else panel.table(by, reference=reference)
    if as_json:
        notes = summary.remarks if isinstance(shown, PanelSummary) else shown.notes
        typer.echo(_json(shown.to_frame(), shown.title, notes))
    elif as_csv:
        from gp4c.reporting.csv_tables import to_csv

        typer.echo(to_csv(shown.to_frame()), nl=False)
    else:
        typer.echo(str(shown))
    if output.out is None:
        return
    from gp4c.reporting.csv_tables import write_csv
    from gp4c.reporting.figures.panel_picture import save_panel_picture

    style = output.style

    def picture(path: Path) -> None:
        save_panel_picture(
            panel, path, order=order.value, size=style.size, font_size=style.font_size
        )  # fmt: skip

    files: dict[str, Writer] = {f"panel.{end}": picture for end in style.formats or ("png",)}
    files["summary.csv"] = lambda path: write_csv(summary.to_frame(), path)
    files |= output.table_files(data=lambda: panel.table(by, reference=reference))
    if by is not None:
        files["table.csv"] = lambda path: write_csv(shown.to_frame(), path)
    say_written(write_all(output.out, files))


def _json(frame: pd.DataFrame, title: str, remarks: tuple[str, ...]) -> str:
    """Rows for programs; what is not defined is null."""
    import json

    from gp4c.reporting.csv_tables import json_rows

    document = {"title": title, "rows": json_rows(frame), "notes": remarks}
    return json.dumps(document, indent=2)
