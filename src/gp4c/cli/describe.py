"""``gp4c describe``: what a table of panel counts holds, before any model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from gp4c.cli.outputs import OutOption, say_written, write_all
from gp4c.cli.tables import (
    CountOption,
    CumulativeOption,
    DecimalOption,
    DelimiterOption,
    DropMissingOption,
    EncodingOption,
    ExposureOption,
    FileArgument,
    OriginOption,
    StartOption,
    StopOption,
    SubjectOption,
    TimeOption,
    TimeUnitOption,
    WindowOption,
    read_source,
)


class Order(StrEnum):
    """Subjects from top to bottom of the picture."""

    LABEL = "label"
    FOLLOW_UP = "follow_up"
    EVENTS = "events"


def describe(
    file: FileArgument,
    subject: SubjectOption = None,
    start: StartOption = None,
    stop: StopOption = None,
    count: CountOption = None,
    time: TimeOption = None,
    exposure: ExposureOption = None,
    cumulative: CumulativeOption = False,
    origin: OriginOption = None,
    time_unit: TimeUnitOption = None,
    window: WindowOption = None,
    drop_missing: DropMissingOption = False,
    delimiter: DelimiterOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
    order: Annotated[Order, typer.Option(help="Subjects in the picture, by ...")] = Order.LABEL,
    out: OutOption = None,
) -> None:
    """Summarise a table of panel counts and draw it.

    Prints the summary; with --out also writes panel.png and summary.csv.

    Example: gp4c describe bladder --out results
    """
    panel = read_source(
        file,
        subject=subject,
        start=start,
        stop=stop,
        count=count,
        time=time,
        exposure=exposure,
        cumulative=cumulative,
        time_unit=time_unit,
        window=window,
        drop_missing=drop_missing,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        origin=origin,
    )
    summary = panel.summary()
    typer.echo(str(summary))
    if out is None:
        return
    from gp4c.reporting.panel_picture import save_panel_picture
    from gp4c.reporting.tables import write_csv

    written = write_all(
        out,
        {
            "panel.png": lambda path: save_panel_picture(panel, path, order=order.value),
            "summary.csv": lambda path: write_csv(summary.to_frame(), path),
        },
    )
    say_written(written)
