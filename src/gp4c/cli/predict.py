"""``gp4c predict``: the curves of a saved fit at chosen times, as CSV."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from gp4c.cli.covariates import CovariateOption, chosen_covariates, say_averages
from gp4c.cli.outputs import OutOption, say_written, write_all

if TYPE_CHECKING:
    from gp4c.reporting.curves import Floats

FitArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FIT.json", help="A model that gp4c fit --out saved.")
]


class BandKind(StrEnum):
    """What the level of a band means."""

    POINTWISE = "pointwise"
    SIMULTANEOUS = "simultaneous"


def predict(
    fit: FitArgument,
    start: Annotated[
        float | None, typer.Option("--from", help="First time; the window's start if absent.")
    ] = None,
    stop: Annotated[
        float | None, typer.Option("--to", help="Last time; the window's end if absent.")
    ] = None,
    points: Annotated[int, typer.Option(min=2, help="Times between them, evenly spaced.")] = 101,
    at: Annotated[
        list[float] | None, typer.Option("--at", help="A single time; may be repeated.")
    ] = None,
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

    Example: gp4c predict results/fit.json --from 0 --to 6 --points 7

    Example: gp4c predict adjusted/fit.json --at 24 --covariate treatment=thiotepa
    """
    from gp4c.models.persistence import load_model
    from gp4c.reporting.curves import curves_of
    from gp4c.reporting.tables import to_csv, write_csv

    model = load_model(fit)
    times = _times(model, start, stop, points, at)
    _check_window(model, times, extrapolate)
    chosen = chosen_covariates(model, covariate)
    say_averages(model, chosen)
    frame = curves_of(
        model, times, levels=(level,), kind=band.value, covariates=chosen, extrapolate=extrapolate
    ).to_frame()
    if out is None:
        typer.echo(to_csv(frame), nl=False)
        return
    say_written(write_all(out, {"predictions.csv": lambda path: write_csv(frame, path)}))


def _times(
    model: Any, start: float | None, stop: float | None, points: int, at: list[float] | None
) -> Floats:
    """Times asked for: single ones, or evenly spaced."""
    import numpy as np

    if at:
        return np.unique(np.asarray(at, dtype=float))
    first = model.window_[0] if start is None else start
    last = model.window_[1] if stop is None else stop
    if not first < last:
        raise typer.BadParameter(f"--from must be before --to; they are {first:g} and {last:g}")
    return np.linspace(first, last, points)


def _check_window(model: Any, times: Floats, extrapolate: bool) -> None:
    """Say on the command line's terms that times are outside the window."""
    from gp4c.exceptions import OutsideWindowError

    low, high = model.window_
    if not extrapolate and (times[0] < low or times[-1] > high):
        worst = times[0] if times[0] < low else times[-1]
        raise OutsideWindowError(
            f"time {worst:g} is outside the observation window [{low:g}, {high:g}]; "
            "--extrapolate allows it"
        )
