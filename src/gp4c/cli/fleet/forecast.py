"""``gp4c forecast``: how many events to expect in a window to come, and how many parts to stock."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

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
from gp4c.reporting.fit_result import Writer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.data.timeaxis import TimeAxis
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
    first, stop, calendar = window_asked(model, start, to, "--to")
    asked = _asked(model, subjects, dated=calendar is not None)
    options: dict[str, Any] = {"level": level, "beyond": beyond.value, "random_state": seed}
    options["covariates"] = _new_subject(model, asked, covariate)
    options["exposure"] = amount_of(exposure, "--exposure")
    if event is not None:
        options["event"] = event
    options["usage"] = amount_of(usage, "--usage")
    options["new_units"] = new_units
    options["at"] = at if at is None or calendar is not None else time_of(model, at, "--at")
    with working("forecasting", quiet=as_json):
        found = ask_forecast(model, first, stop, asked, each=each, every=_step(every), **options)
        typer.echo(_json(found, service) if as_json else _text(found, service))
        if output.out is None:
            return
        written = write_all(output.out, _writers(model, found, options, service, output))
    say_written(written)


def window_asked(
    model: Any, start: str | None, to: str, option: str
) -> tuple[Any, Any, TimeAxis | None]:
    """The window, from the end of the data if no start is given.

    Where time is counted from entry, `to` may be a date: the ends are dates then, and the axis of
    the calendar is given too.
    """
    from gp4c.data.timeaxis import TimeAxis
    from gp4c.estimators.forecasts.own_calendar import OwnCalendar

    calendar = None if _is_number(to) else OwnCalendar.of(model)
    if calendar is None:
        first = float(model.window_[1]) if start is None else time_of(model, start, "--from")
        stop = time_of(model, to, option)
        check_order(TimeAxis.of(model), first, stop, None if start is None else "--from", option)
        return first, stop, None
    axis = calendar.axis
    first = calendar.end_of_record(model) if start is None else axis.number(_date(start, option))
    stop = axis.number(to)
    check_order(axis, first, stop, None if start is None else "--from", option)
    return *axis.moments([first, stop]), axis


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _date(text: str, option: str) -> str:
    """A start beside an end that is a date."""
    from gp4c.exceptions import PanelDataError

    if _is_number(text):
        raise PanelDataError(f"--from must be a date as {option} is; found {text!r}")
    return text


def _new_subject(model: Any, asked: Any, covariate: list[str] | None) -> dict[str, Any] | None:
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


def ask_forecast(model: Any, start: Any, stop: Any, subjects: Any, **options: Any) -> Forecast:
    """Forecast; what the model cannot do is said in one line."""
    from gp4c.exceptions import PanelDataError

    try:
        found: Forecast = model.forecast(start, stop, subjects, **options)
        return found
    except (KeyError, ValueError) as error:
        raise PanelDataError(str(error.args[0])) from None


def _asked(model: Any, subjects: list[str] | None, *, dated: bool) -> Any:
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


def _writers(
    model: Any, found: Forecast, options: dict[str, Any], service: float | None,
    output: OutputOptions,
) -> dict[str, Writer]:  # fmt: skip
    from gp4c.reporting.csv_tables import write_csv

    files: dict[str, Writer] = {"forecast.csv": lambda path: write_csv(found.to_frame(), path)}
    if service is not None:
        files["stock.csv"] = lambda path: write_csv(found.stock(service), path)
    files |= output.table_files(forecast=found.table)
    one_sum = found.draws.ndim == 1 and not isinstance(found.subjects, list)
    draw = (lambda ax: _draw_fan(ax, model, found, options)) if one_sum else found.plot
    return files | output.style.files("forecast", draw)


def _draw_fan(ax: Axes, model: Any, found: Forecast, options: dict[str, Any]) -> None:
    """The number of events from the start to each time."""
    import numpy as np

    from gp4c.data.timeaxis import TimeAxis
    from gp4c.reporting.figures.subject_plots import plot_fan

    axis = TimeAxis(found.time_unit, found.time_origin)
    window = float(found.start[0]), float(found.stop[0])
    dated = axis.origin != TimeAxis.of(model).origin
    start, stop = axis.moments(window) if dated else window
    times, many = fan(model, start, stop, found.subjects, **options)
    tails = {p for v in _FAN_LEVELS for p in ((1 - v) / 2, (1 + v) / 2)} | {0.5}
    quantiles = {round(p, 6): np.append(0, many.quantile(p)) for p in tails}
    times = np.append(window[0], times)  # with no events yet
    whose = {None: "a new subject", "active": "those in service"}
    label = f"events of {whose.get(found.subjects, 'all subjects')}"  # type: ignore[arg-type]
    plot_fan(
        times, quantiles, ax, time_unit=found.time_unit, time_origin=found.time_origin,
        ylabel=label,
    )  # fmt: skip


def fan(model: Any, start: float, stop: float, asked: Any, **options: Any) -> tuple[Any, Forecast]:
    """Forecasts from `start` to each of a row of times, jointly, with the times as numbers."""
    import numpy as np

    times = start + (stop - start) * np.arange(1, _FAN_POINTS + 1) / _FAN_POINTS
    found = ask_forecast(model, np.full_like(times, start), times, asked, **options)
    return found.stop, found
