"""Dates on the axes of Matplotlib; what is drawn stays in the numbers of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import Formatter, Locator

from gp4c.data.timeaxis import TimeAxis
from gp4c.reporting.figures.dates.date_ticks import date_names, date_ticks

#: how many sizes of type wide Matplotlib takes a label to be
_TICK_SPACE = 3


def show_dates(ax: Axes, axis: TimeAxis) -> None:
    """Put round dates on the axis of time."""
    ax.xaxis.set_major_locator(DateTicks(axis))
    ax.xaxis.set_major_formatter(DateNames(axis))


class DateTicks(Locator):
    """Ticks at round dates, as many as have room."""

    def __init__(self, times: TimeAxis) -> None:
        self.times = times

    def __call__(self) -> Sequence[float]:
        """Ticks of what is in view."""
        axis = self.axis
        assert axis is not None  # Matplotlib sets it before it asks
        low, high = sorted(axis.get_view_interval())
        return self._ticks(float(low), float(high), _TICK_SPACE * axis.get_tick_space())

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Ticks between two times."""
        return self._ticks(*sorted((vmin, vmax)))

    def _ticks(self, low: float, high: float, *room: float) -> Sequence[float]:
        ticks: Sequence[float] = date_ticks(self.times, low, high, *room).tolist()
        return ticks


class DateNames(Formatter):
    """Names of dates, as exact as the ticks need."""

    def __init__(self, times: TimeAxis) -> None:
        self.times = times

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The name of one tick, or of a place that is pointed at."""
        return self.format_ticks([x])[0] if pos is not None else self.times.shown(x)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """The names of all ticks."""
        return date_names(self.times.moments(np.asarray(values))) if len(values) else []
