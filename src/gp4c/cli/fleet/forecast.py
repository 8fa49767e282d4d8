"""``gp4c forecast``: how many events to expect in a window to come, and how many parts to stock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from gp4c.cli.options.covariate_options import CovariateOption, chosen_covariates, say_averages
from gp4c.cli.options.estimator_options import JsonOption
from gp4c.cli.options.saved_fits import (
    EventTypeOption,
    FitArgument,
    check_order,
    of_event,
    open_fit,
    time_of,
)
from gp4c.cli.outputs import OutputOptions, say_written, takes_output, write_all
from gp4c.cli.progress import working
from gp4c.plain import is_number
from gp4c.reporting.fit_result import Writer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from gp4c.data.timeaxis import TimeAxis
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.forecasts.count_forecast import Subjects
    from gp4c.estimators.forecasts.forecast_inputs import ForecastOptions
    from gp4c.estimators.forecasts.forecast_result import Forecast

#: times of the fan
_FAN_POINTS = 24
_FAN_LEVELS = (0.5, 0.8, 0.95)


class Beyond(StrEnum):
    """How the rate goes on outside the window."""

    AUTO = "auto"
    PRIOR = "prior"
    HOLD = "hold"
    TREND = "trend"


@takes_output
def forecast(
    fit: FitArgument,
    to: Annotated[str, typer.Option(metavar="TIME", help="End of the window to forecast.")],
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Its start; the end of the data if absent."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="STEP",
            help="Divide it: a length of time, or day, week, month, quarter, year.",
        ),
    ] = None,
    subjects: Annotated[
        list[str] | None,
        typer.Option(
            help="new, active (the sum of those in service), all (of everybody), or a label; may "
            "be repeated. If absent active, or new where nobody went out of service."
        ),
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="Every subject of active or all by itself.")
    ] = False,
    new_units: Annotated[int, typer.Option(min=0, help="Planned additions to active or all.")] = 0,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="When they enter; the start if absent.")
    ] = None,
    event: EventTypeOption = None,
    covariate: CovariateOption = None,
    exposure: Annotated[
        str | None,
        typer.Option(
            metavar="UNITS|last",
            help="Units at risk of each subject; if absent as last observed, 1 for a new one.",
        ),
    ] = None,
    usage: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT|last",
            help="Usage per unit of time, for fits with --usage; if absent as of late.",
        ),
    ] = None,
    service: Annotated[
        float | None,
        typer.Option(
            min=0.01, max=0.9999, help="Say how many parts are enough with this probability."
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(min=0.01, max=0.999, help="Probability of the interval.")
    ] = 0.9,
    beyond: Annotated[
        Beyond,
        typer.Option(
            help="After the data: back to the long-run rate (prior), as it was (hold), on with the "
            "trend of the fit (trend); auto says which would have served so far."
        ),
    ] = Beyond.AUTO,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    as_json: JsonOption = False,
    *,
    output: OutputOptions,
) -> None:
    """Forecast the number of events in a window, with an interval, from a saved fit.

    Prints the forecast; with --out also writes forecast.csv, a plot, and with
    --service stock.csv.

    Times are numbers, or dates such as 2024-01-31 where the data had dates.

    Example: gp4c forecast results/fit.json --from 9 --to 12

    Example: gp4c forecast fleet/fit.json --to 60 --every 1 --service 0.95
    """
    model = open_fit(fit)
    of_event(model, event)  # says what is wrong with it
    window = window_asked(model, start, to, "--to")
    dated = window.calendar is not None
    asked = _asked(model, subjects, dated=dated)
    options: ForecastOptions = {
        "level": level,
        "beyond": beyond.value,
        "random_state": seed,
        "covariates": _new_subject(model, asked, covariate),
        "exposure": amount_of(exposure, "--exposure"),
        "usage": amount_of(usage, "--usage"),
        "new_units": new_units,
        "at": at if at is None or dated else time_of(model, at, "--at"),
    }
    steps: ForecastOptions = {**options, "each": each, "every": _step(every)}
    ends = window.times(window.start), window.times(window.stop)
    with working("forecasting", quiet=as_json):
        found = ask_forecast(model, *ends, asked, event, **steps)
        typer.echo(_json(found, service) if as_json else _text(found, service))
        if output.out is None:
            return
        files = _tables(found, service, output)
        if found.draws.ndim == 1 and not isinstance(found.subjects, list):  # one sum
            files |= output.style.files(
                "forecast", lambda ax: _draw_fan(ax, model, window, asked, event, options)
            )
        else:
            files |= output.style.files("forecast", found.plot)
        written = write_all(output.out, files)
    say_written(written)


@dataclass(frozen=True)
class AskedWindow:
    """The window that a command asks about.

    Attributes
    ----------
    start, stop : float
        On the axis of the fit, or on the calendar.
    calendar : TimeAxis or None
        Where time is counted from entry and the window is given by dates.
    """

    start: float
    stop: float
    calendar: TimeAxis | None

    def times(self, numbers: ArrayLike) -> ArrayLike:
        """Times of the window as a forecast takes them: dates on the calendar, else numbers."""
        return numbers if self.calendar is None else self.calendar.moments(numbers)


def window_asked(model: PanelEstimator, start: str | None, to: str, option: str) -> AskedWindow:
    """The window, from the end of the data if no start is given.

    Where time is counted from entry, `to` may be a date.
    """
    from gp4c.data.timeaxis import TimeAxis
    from gp4c.estimators.forecasts.own_calendar import OwnCalendar

    calendar = None if is_number(to) else OwnCalendar.of(model)
    if calendar is None:
        first = float(model.window_[1]) if start is None else time_of(model, start, "--from")
        stop = time_of(model, to, option)
        check_order(TimeAxis.of(model), first, stop, None if start is None else "--from", option)
        return AskedWindow(first, stop, None)
    axis = calendar.axis
    first = calendar.end_of_record(model) if start is None else axis.number(_date(start, option))
    stop = axis.number(to)
    check_order(axis, first, stop, None if start is None else "--from", option)
    return AskedWindow(first, stop, axis)


def _date(text: str, option: str) -> str:
    """A start beside an end that is a date."""
    from gp4c.exceptions import PanelDataError

    if is_number(text):
        raise PanelDataError(f"--from must be a date as {option} is; found {text!r}")
    return text


def _new_subject(
    model: PanelEstimator, asked: Subjects, covariate: list[str] | None
) -> dict[str, object] | None:
    """Chosen covariates; the others are average for a new subject, known ones keep theirs."""
    chosen = chosen_covariates(model, covariate)
    if asked is None:
        say_averages(model, chosen)
    return chosen


def amount_of(text: str | None, option: str) -> float | str | None:
    """Units at risk, or usage per unit of time, as given."""
    from gp4c.exceptions import PanelDataError

    try:
        return text if text is None or text == "last" else float(text)
    except ValueError:
        raise PanelDataError(f"{option} takes a number or last; found {text!r}") from None


def _step(text: str | None) -> float | str | None:
    """How long the windows are: a number, or the name of a period."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def ask_forecast(
    model: PanelEstimator,
    start: ArrayLike,
    stop: ArrayLike,
    subjects: Subjects,
    event: str | None = None,
    **options: Unpack[ForecastOptions],
) -> Forecast:
    """Forecast, of one type of events if one is named; what the model cannot do is one line."""
    from gp4c.exceptions import PanelDataError

    try:
        found = model.forecast(start, stop, subjects, **options)
        return found if event is None else found.by_type[event]
    except (KeyError, ValueError) as error:
        raise PanelDataError(str(error.args[0])) from None


def _asked(model: PanelEstimator, subjects: list[str] | None, *, dated: bool) -> Subjects:
    """Turn texts into None (a new subject), "active", "all" or labels, which may be numbers.

    `dated` says that times since entry are asked about by date.
    """
    from gp4c.estimators.forecasts.fleet_inputs import default_subjects, known_histories

    if not subjects:
        return default_subjects(model, None) or ("active" if dated else None)
    if subjects == ["new"]:
        return None
    if subjects in (["all"], ["active"]):
        return subjects[0]
    histories = known_histories(model)
    labels = model.subjects_ if histories is None or model.event_types_ else histories.subjects
    known = {str(label): label for label in labels.tolist()}
    return [known.get(text, text) for text in subjects]


def _text(found: Forecast, service: float | None) -> str:
    """The forecast in at most 80 columns."""
    import textwrap

    text = _in_options(str(found))
    if service is not None:
        text += f"\n{_stock_text(found, service)}"
    return "\n".join(
        line if len(line) <= 80 else "\n".join(textwrap.wrap(line, 80)) for line in text.split("\n")
    )


def _stock_text(found: Forecast, service: float) -> str:
    """How many parts are enough, in a sentence or a short table."""
    from gp4c.estimators.forecasts.forecast_result import SHOWN_ROWS

    table = found.stock(service)
    chance = f"with probability {100 * service:g}%"
    if len(table) == 1:
        return f"{table['stock'].iloc[0]} parts are enough {chance}."
    if found.time_origin is not None:
        table = table.drop(columns=["start", "stop"])
    totals = table[table["subject"] == "total"].tail(1) if len(table) > SHOWN_ROWS else table[:0]
    shown = table.head(SHOWN_ROWS).to_string(index=False, float_format=lambda x: f"{x:.4g}")
    lines = [f"Parts that are enough {chance}:", shown]
    if len(totals):
        lines.append(f"… and {len(table) - SHOWN_ROWS:,} more rows: --out writes all of them")
        lines.append(f"In all {totals['stock'].iloc[0]} parts are enough {chance}.")
    return "\n".join(lines)


def _json(found: Forecast, service: float | None) -> str:
    import json

    from gp4c import __version__
    from gp4c.reporting.csv_tables import json_rows

    document: dict[str, object] = {
        "gp4c": __version__,
        "forecasts": json_rows(found.to_frame()),
        "note": _in_options(found.note),
    }
    if service is not None:
        document |= {"service": service, "stock": json_rows(found.stock(service))}
    return json.dumps(document, indent=2)


def _in_options(text: str) -> str:
    for argument, option in (
        ('beyond="hold"', "--beyond hold"),
        ('beyond="prior"', "--beyond prior"),
        ('beyond="trend"', "--beyond trend"),
        ('subjects="active"', "--subjects active"),
        ('subjects="all"', "--subjects all"),
        ("to_frame() has all of them", "--out writes all of them"),
    ):
        text = text.replace(argument, option)
    return text


def _tables(found: Forecast, service: float | None, output: OutputOptions) -> dict[str, Writer]:
    """The forecast as tables, by file."""
    from gp4c.reporting.csv_tables import write_csv

    files: dict[str, Writer] = {"forecast.csv": lambda path: write_csv(found.to_frame(), path)}
    if service is not None:
        files["stock.csv"] = lambda path: write_csv(found.stock(service), path)
    return files | output.table_files(forecast=found.table)


def _draw_fan(
    ax: Axes, model: PanelEstimator, window: AskedWindow, asked: Subjects, event: str | None,
    options: ForecastOptions,
) -> None:  # fmt: skip
    """The number of events from the start to each time."""
    import numpy as np

    from gp4c.reporting.figures.subject_plots import plot_fan

    many = fan(model, window, asked, event, **options)
    tails = {p for v in _FAN_LEVELS for p in ((1 - v) / 2, (1 + v) / 2)} | {0.5}
    quantiles = {round(p, 6): np.append(0, many.quantile(p)) for p in tails}
    times = np.append(window.start, many.stop)  # with no events yet
    whose = "those in service" if asked == "active" else "all subjects"
    plot_fan(
        times, quantiles, ax, time_unit=many.time_unit, time_origin=many.time_origin,
        ylabel=f"events of {'a new subject' if asked is None else whose}",
    )  # fmt: skip


def fan(
    model: PanelEstimator,
    window: AskedWindow,
    asked: Subjects,
    event: str | None = None,
    **options: Unpack[ForecastOptions],
) -> Forecast:
    """Forecasts from the start of a window to each of a row of times in it, jointly."""
    import numpy as np

    length = window.stop - window.start
    stops = window.start + length * np.arange(1, _FAN_POINTS + 1) / _FAN_POINTS
    starts = np.full_like(stops, window.start)
    return ask_forecast(model, window.times(starts), window.times(stops), asked, event, **options)
