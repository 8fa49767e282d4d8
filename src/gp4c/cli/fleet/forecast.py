"""``gp4c forecast``: how many events to expect in a window to come."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from gp4c.cli.options.covariate_options import CovariateOption, chosen_covariates, say_averages
from gp4c.cli.options.estimator_options import JsonOption
from gp4c.cli.options.saved_fits import FitArgument, check_order, open_fit, time_of
from gp4c.cli.outputs import OutOption, Writer, say_written, write_all
from gp4c.cli.progress import working

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from gp4c.estimators.base import Floats, PanelEstimator
    from gp4c.estimators.forecasts.count_forecast import Forecast, ForecastOptions, Subjects

#: times of the fan
_FAN_POINTS = 24
_FAN_LEVELS = (0.5, 0.8, 0.95)


class Beyond(StrEnum):
    """How the rate goes on outside the window."""

    PRIOR = "prior"
    HOLD = "hold"


def forecast(
    fit: FitArgument,
    to: Annotated[str, typer.Option(metavar="TIME", help="End of the window to forecast.")],
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Its start; the end of the data if absent."),
    ] = None,
    subjects: Annotated[
        list[str] | None,
        typer.Option(help="new, all (their sum), or a label; may be repeated."),
    ] = None,
    covariate: CovariateOption = None,
    exposure: Annotated[
        str | None,
        typer.Option(
            metavar="UNITS|last",
            help="Units at risk of each subject; if absent as last observed, 1 for a new one.",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(min=0.01, max=0.999, help="Probability of the interval.")
    ] = 0.9,
    beyond: Annotated[
        Beyond, typer.Option(help="After the data: back to the long-run rate, or as it was.")
    ] = Beyond.PRIOR,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    as_json: JsonOption = False,
    out: OutOption = None,
) -> None:
    """Forecast the number of events in a window, with an interval, from a saved fit.

    Prints the forecast; with --out also writes forecast.csv and a fan plot.

    Times are numbers, or dates such as 2024-01-31 where the data had dates.

    Example: gp4c forecast results/fit.json --from 9 --to 12

    Example: gp4c forecast adjusted/fit.json --to 60 --covariate treatment=thiotepa
    """
    model = open_fit(fit)
    first = float(model.window_[1]) if start is None else time_of(model, start, "--from")
    stop = time_of(model, to, "--to")
    check_order(model, first, stop)
    asked = _asked(model, subjects)
    options: ForecastOptions = {"beyond": beyond.value, "random_state": seed}
    options["covariates"] = _new_subject(model, asked, covariate)
    options["exposure"] = exposure_of(model, asked, exposure)
    with working("forecasting", quiet=as_json):
        found = ask_forecast(model, first, stop, asked, level, **options)
        typer.echo(_json(found) if as_json else _text(found))
        if out is None:
            return
        written = write_all(out, _writers(model, first, stop, asked, found, level, options))
    say_written(written)


def _new_subject(
    model: PanelEstimator, asked: Subjects, covariate: list[str] | None
) -> dict[str, object] | None:
    """Covariates of a new subject; known ones keep their own."""
    chosen = chosen_covariates(model, covariate)
    if asked is None:
        say_averages(model, chosen)
    elif chosen is not None:
        raise typer.BadParameter("--covariate is for a new subject; those of the fit keep theirs")
    return chosen


def exposure_of(model: PanelEstimator, asked: Subjects, text: str | None) -> float | str:
    """Units at risk: as asked, else those that known subjects had last."""
    from gp4c.exceptions import PanelDataError

    if text is None:
        kept = model.histories_
        known = asked is not None and kept is not None and len(kept.span_stop)
        return "last" if known else 1.0
    try:
        return text if text == "last" else float(text)
    except ValueError:
        raise PanelDataError(f"--exposure takes a number or last; found {text!r}") from None


def ask_forecast(
    model: PanelEstimator,
    start: ArrayLike,
    stop: ArrayLike,
    subjects: Subjects,
    level: float = 0.9,
    **options: Unpack[ForecastOptions],
) -> Forecast:
    """Forecast; what the model cannot do is said in one line."""
    from gp4c.estimators.forecasts.count_forecast import forecast as forecast_counts
    from gp4c.exceptions import PanelDataError

    try:
        return forecast_counts(model, start, stop, subjects, level, **options)
    except (KeyError, ValueError) as error:
        raise PanelDataError(str(error.args[0])) from None


def _asked(model: PanelEstimator, subjects: list[str] | None) -> Subjects:
    """Turn texts into None (a new subject), "all" or labels of the fit, which may be numbers."""
    if not subjects or subjects == ["new"]:
        return None
    if subjects == ["all"]:
        return "all"
    known = {str(label): label for label in model.subjects_.tolist()}
    return [known.get(text, text) for text in subjects]


def _text(found: Forecast) -> str:
    """The forecast in at most 80 columns."""
    import textwrap

    return "\n".join(
        line if len(line) <= 80 else "\n".join(textwrap.wrap(line, 80))
        for line in _in_options(str(found)).split("\n")
    )


def _json(found: Forecast) -> str:
    import json

    from gp4c import __version__

    rows = json.loads(found.to_frame().to_json(orient="records", double_precision=15))
    document = {"gp4c": __version__, "forecasts": rows, "note": _in_options(found.note)}
    return json.dumps(document, indent=2)


def _in_options(text: str) -> str:
    return text.replace('beyond="hold"', "--beyond hold")


def _writers(
    model: PanelEstimator,
    start: float,
    stop: float,
    asked: Subjects,
    found: Forecast,
    level: float,
    options: ForecastOptions,
) -> dict[str, Writer]:
    from gp4c.reporting.csv_tables import write_csv

    files: dict[str, Writer] = {"forecast.csv": lambda path: write_csv(found.to_frame(), path)}
    if not isinstance(asked, list):
        files["forecast.png"] = lambda path: _draw_fan(
            path, model, start, stop, asked, level, options
        )
    return files


def _draw_fan(
    path: Path,
    model: PanelEstimator,
    start: float,
    stop: float,
    asked: Subjects,
    level: float,
    options: ForecastOptions,
) -> None:
    """The number of events from the start to each time."""
    import numpy as np

    from gp4c.data.timeaxis import TimeAxis
    from gp4c.reporting.figures.plot_style import save_plot
    from gp4c.reporting.figures.subject_plots import plot_fan

    times, found = fan(model, start, stop, asked, level, **options)
    tails = {p for v in _FAN_LEVELS for p in ((1 - v) / 2, (1 + v) / 2)} | {0.5}
    quantiles = {round(p, 6): np.append(0, found.quantile(p)) for p in tails}
    times = np.append(start, times)  # with no events yet
    label = "events of a new subject" if asked is None else "events of all subjects"
    save_plot(
        lambda ax: plot_fan(times, quantiles, ax, time_unit=TimeAxis.of(model).words, ylabel=label),
        path,
    )


def fan(
    model: PanelEstimator,
    start: float,
    stop: float,
    asked: Subjects,
    level: float = 0.9,
    **options: Unpack[ForecastOptions],
) -> tuple[Floats, Forecast]:
    """Forecasts from `start` to each of a row of times, jointly."""
    import numpy as np

    times = np.linspace(start, stop, _FAN_POINTS + 1)[1:]
    return times, ask_forecast(model, np.full_like(times, start), times, asked, level, **options)
