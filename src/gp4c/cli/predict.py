"""``gp4c predict``: the curves of a saved fit at chosen times, as CSV."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gp4c.cli.options.covariate_options import CovariateOption, chosen_covariates, say_averages
from gp4c.cli.options.saved_fits import (
    EventTypeOption,
    FitArgument,
    check_order,
    of_event,
    open_fit,
    shown,
    time_of,
)
from gp4c.cli.outputs import OutOption, say_written, write_all

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator
    from gp4c.reporting.figures.curves import Floats


class BandKind(StrEnum):
    """What the level of a band means."""

    POINTWISE = "pointwise"
    SIMULTANEOUS = "simultaneous"


def predict(
    fit: FitArgument,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="First time; the window's start if absent."),
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="Last time; the window's end if absent."),
    ] = None,
    points: Annotated[int, typer.Option(min=2, help="Times between them, evenly spaced.")] = 101,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="TIME", help="A single time; may be repeated."),
    ] = None,
    event: EventTypeOption = None,
    covariate: CovariateOption = None,
    level: Annotated[float, typer.Option(min=0.01, max=0.999, help="Level of the bands.")] = 0.95,
    band: Annotated[
        BandKind, typer.Option(help="Level at each time, or of the whole curve.")
    ] = BandKind.POINTWISE,
    extrapolate: Annotated[
        bool, typer.Option("--extrapolate", help="Allow times outside the window.")
    ] = False,
    out: OutOption = None,
) -> None:
    """Evaluate a saved fit: rate and mean number of events at chosen times, with bands.

    Prints CSV, or writes predictions.csv into --out.

    Times are numbers, or dates such as 2024-01-31 where the data had dates.

    Example: gp4c predict results/fit.json --from 0 --to 6 --points 7

    Example: gp4c predict adjusted/fit.json --at 24 --covariate treatment=thiotepa
    """
    from gp4c.reporting.csv_tables import to_csv, with_dates, write_csv
    from gp4c.reporting.figures.curves import curves_of

    model = of_event(open_fit(fit), event)
    times = _times(model, start, stop, points, at)
    _check_window(model, times, extrapolate)
    chosen = chosen_covariates(model, covariate)
    say_averages(model, chosen)
    frame = curves_of(
        model, times, levels=(level,), kind=band.value, covariates=chosen, extrapolate=extrapolate
    ).to_frame()
    frame = with_dates(frame, model)
    if out is None:
        typer.echo(to_csv(frame), nl=False)
        return
    say_written(write_all(out, {"predictions.csv": lambda path: write_csv(frame, path)}))


def _times(
    model: PanelEstimator, start: str | None, stop: str | None, points: int, at: list[str] | None
) -> Floats:
    """Times asked for: single ones, or evenly spaced."""
    import numpy as np

    from gp4c.data.timeaxis import TimeAxis

    if at:
        return np.unique([time_of(model, text, "--at") for text in at])
    first = model.window_[0] if start is None else time_of(model, start, "--from")
    last = model.window_[1] if stop is None else time_of(model, stop, "--to")
    check_order(TimeAxis.of(model), first, last)
    return np.linspace(first, last, points)


def _check_window(model: PanelEstimator, times: Floats, extrapolate: bool) -> None:
    """Say on the command line's terms that times are outside the window."""
    from gp4c.data.timeaxis import TimeAxis
    from gp4c.exceptions import OutsideWindowError

    (low, high), axis = model.window_, TimeAxis.of(model)
    if not extrapolate and (times[0] < low or times[-1] > high):
        worst = times[0] if times[0] < low else times[-1]
        raise OutsideWindowError(
            f"time {shown(axis, worst)} is outside the observation window "
            f"[{shown(axis, low)}, {shown(axis, high)}]; --extrapolate allows it"
        )
