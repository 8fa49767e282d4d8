"""A forecast as a picture: windows in a row, subjects in a column, or one law."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.timeaxis import TimeAxis
from gp4c.reporting.figures.dates.date_ticks import time_names
from gp4c.reporting.figures.plot_style import (
    axes_or_new,
    legend,
    plain_axes,
    safe,
    shown_label,
    style,
    tint,
)
from gp4c.reporting.words import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.estimators.forecasts.forecast_result import Forecast

#: most subjects that have a row
_MOST = 40


def plot_forecast(forecast: Forecast, ax: Axes | None = None) -> Axes:
    """Draw a forecast.

    Several windows: means with intervals, side by side; of many subjects the total. Several
    subjects in one window: a row for each, highest mean on top. One of each: the probability of
    each number of events.

    Parameters
    ----------
    forecast : Forecast
    ax : Axes, optional
    """
    if forecast.draws.ndim == 1:
        return _law(forecast, ax)
    by_subject = isinstance(forecast.subjects, list)
    if forecast.draws.ndim == 2 and by_subject and (forecast.pairs or len(forecast.start) == 1):
        return _subjects(forecast, ax)
    return _windows(forecast if forecast.draws.ndim == 2 else forecast.total(), ax)


def _law(forecast: Forecast, ax: Axes | None) -> Axes:
    """Probabilities of the numbers of events of one cell."""
    ax, look = axes_or_new(ax), style(0)
    values, times = np.unique(forecast.draws, return_counts=True)
    low, high = forecast.interval
    inside = (values >= low) & (values <= high)
    share = times / len(forecast.draws)
    ax.bar(values[inside], share[inside], color=look.colour, width=1, edgecolor="white",
           linewidth=0.3, label=f"{percent(forecast.level)} interval")  # fmt: skip
    ax.bar(values[~inside], share[~inside], color=tint(look.colour, 0.4), width=1,
           edgecolor="white", linewidth=0.3)  # fmt: skip
    plain_axes(ax, "number of events", "probability")
    legend(ax)
    return ax


def _windows(forecast: Forecast, ax: Axes | None) -> Axes:
    """Mean and interval of each window."""
    ax, look = axes_or_new(ax), style(0)
    place, mean = np.arange(len(forecast.start)), np.ravel(forecast.mean)
    low, high = (np.ravel(end) for end in forecast.interval)
    ax.vlines(place, low, high, color=tint(look.colour, 0.5), linewidth=6,
              label=f"{percent(forecast.level)} interval")  # fmt: skip
    ax.plot(place, mean, "D", color=look.colour, markersize=5, label="expected")
    axis = TimeAxis(forecast.time_unit, forecast.time_origin)
    names = time_names(axis, forecast.start)
    shown = place[:: max(1, len(place) // 12)]
    ax.set_xticks(shown, [names[k] for k in shown], rotation=30, ha="right")
    unit = "" if axis.has_dates or not axis.unit else f" ({axis.unit})"
    plain_axes(ax, f"window from{safe(unit)}", "events in the window")
    ax.set_ylim(bottom=0)
    legend(ax, loc="lower left")
    return ax


def _subjects(forecast: Forecast, ax: Axes | None) -> Axes:
    """Mean and interval of each subject."""
    assert isinstance(forecast.subjects, list)
    order = np.argsort(-np.asarray(forecast.mean), kind="stable")[:_MOST]
    ax, look = axes_or_new(ax, (6.4, 1.4 + 0.22 * len(order))), style(0)
    low, high = (np.asarray(end)[order] for end in forecast.interval)
    rows = np.arange(len(order))
    ax.hlines(rows, low, high, color=tint(look.colour, 0.5), linewidth=4,
              label=f"{percent(forecast.level)} interval")  # fmt: skip
    ax.plot(np.asarray(forecast.mean)[order], rows, "D", color=look.colour, markersize=4,
            label="expected")  # fmt: skip
    plain_axes(ax, "number of events", "")
    ax.grid(axis="y", visible=False)
    ax.set_yticks(rows, [shown_label(forecast.subjects[k], 24) for k in order])
    ax.set_ylim(len(order) - 0.5, -0.5)
    hidden = len(forecast.subjects) - len(order)
    if hidden:
        ax.set_xlabel(f"number of events (and {hidden:,} more subjects with fewer)")
    legend(ax, loc="lower right")
    return ax
