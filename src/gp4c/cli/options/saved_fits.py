"""A fit that was saved: opening it, and times on its axis, as numbers or dates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from gp4c.data.timeaxis import TimeAxis
    from gp4c.estimators.base import PanelEstimator

FitArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FIT.json", help="A model that gp4c fit --out saved.")
]

EventTypeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--event", help="Of a fit to several types of events: one of them; their total if absent."
    ),
]


def of_event(model: PanelEstimator, event: str | None) -> PanelEstimator:
    """The fit of one type of events, if one is named."""
    from gp4c.estimators.types.typed_answers import TypedCurves
    from gp4c.exceptions import PanelDataError

    if event is None:
        return model
    if not isinstance(model, TypedCurves) or not model.event_types_:
        raise PanelDataError(f"--event {event} needs a fit to several types of events")
    return model.of_type(event)


def open_fit(path: Path) -> PanelEstimator:
    """Read a saved fit; where a table is given instead, say how to make one."""
    from gp4c.data.datasets.bundled import list_datasets
    from gp4c.exceptions import ModelFileError
    from gp4c.files.persistence import load_model
    from gp4c.parts import load_parts

    load_parts()
    try:
        return load_model(path)
    except ModelFileError as error:
        is_table = path.suffix != ".json" and path.is_file()
        if not is_table and (path.exists() or str(path) not in list_datasets()):
            raise
        raise ModelFileError(f"{error}; {_remedy(path)}") from None


def _remedy(path: Path) -> str:
    import shlex

    fit = shlex.join(["gp4c", "fit", str(path), "--out", "DIR"])
    return f"this command takes a saved fit: `{fit}` writes DIR/fit.json"


def time_of(model: PanelEstimator, text: str, option: str) -> float:
    """A time given on the command line: a number, or a date if the data had dates.

    Parameters
    ----------
    model : fitted estimator
    text : str
        As it was given.
    option : str
        Its name, for messages.

    Returns
    -------
    float
        On the axis of the fit.
    """
    import math

    from gp4c.data.timeaxis import TimeAxis
    from gp4c.exceptions import PanelDataError

    try:
        number = float(text)
    except ValueError:
        if model.time_origin_ is None:
            unit = f" of {model.time_unit_}" if model.time_unit_ else ""
            raise PanelDataError(
                f"{option} takes a number{unit}, as the times of this fit are; found {text!r}"
            ) from None
        return TimeAxis.of(model).number(text)
    if not math.isfinite(number):
        raise PanelDataError(f"{option} takes a finite number; found {text!r}")
    return number


def shown(axis: TimeAxis, time: float) -> str:
    """A time in messages: a number, and its date where the data had dates."""
    date = axis.date(time)
    return f"{time:.6g}" if date is None else f"{time:.6g} ({date})"


def check_order(
    axis: TimeAxis, start: float, stop: float, begin: str | None = "--from", end: str = "--to"
) -> None:
    """Refuse a window that does not run forwards.

    `begin` and `end` are the options that gave it; `begin` is None where it starts at the end of
    the data.
    """
    if start < stop:
        return
    if begin is None:
        raise typer.BadParameter(
            f"{end} must be after the data, which end at {shown(axis, start)}; it is "
            f"{shown(axis, stop)}"
        )
    raise typer.BadParameter(
        f"{begin} must be before {end}; they are {shown(axis, start)} and {shown(axis, stop)}"
    )
