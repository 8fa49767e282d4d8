"""How many subjects were still observed, below the curves of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.reporting.figures.dates.date_ticks import date_names, date_ticks
from gp4c.reporting.figures.plot_style import SIZE, axis_of, shown_label, style
from gp4c.reporting.words import point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

HEADING = "subjects observed"
#: times at which numbers are given, at most
_MOST_TIMES = 8
#: points from the axis down to the heading (the axis' own label is between), from line to line,
#: and from the axis' left end to the names of groups
_BELOW, _LINE, _ASIDE = 38, 13, 14
#: of a name of a group; the rest is cut
LONGEST_NAME = 14


@dataclass(frozen=True)
class ObservedNumbers:
    """Subjects of groups under observation at a few times.

    Attributes
    ----------
    times : (T,)
    numbers : dict
        Group to (T,) numbers.
    names : tuple of str
        Times as people read them.
    """

    times: Floats
    numbers: dict[str, NDArray[np.intp]]
    names: tuple[str, ...]


def observed_numbers(panels: Mapping[str, PanelCounts]) -> ObservedNumbers:
    """Count the observed subjects of each group at round times of the common window."""
    from matplotlib.ticker import MaxNLocator

    windows = [panel.window for panel in panels.values()]
    low, high = min(w[0] for w in windows), max(w[1] for w in windows)
    axis = axis_of(next(iter(panels.values())))
    if axis.has_dates:
        times = date_ticks(axis, low, high)
        names = date_names(axis.moments(times))
    else:
        locator = MaxNLocator(_MOST_TIMES - 1, steps=[1, 2, 2.5, 3, 6, 10])
        ticks = np.asarray(locator.tick_values(low, high))
        times = ticks[(ticks >= low) & (ticks <= high)]
        names = [point(time) for time in times]
    numbers = {name: n_observed(p, times) for name, p in panels.items()}
    return ObservedNumbers(times, numbers, tuple(names))


def n_observed(panel: PanelCounts, times: Floats) -> NDArray[np.intp]:
    """Subjects with an interval (start, stop] that holds each time.

    At the start of the window: those who are observed from there on.
    """
    start = np.where(panel.start <= panel.window[0], -np.inf, panel.start)
    # intervals of a subject do not overlap, so rows are subjects
    begun = np.searchsorted(np.sort(start), times, side="left")
    ended = np.searchsorted(np.sort(panel.stop), times, side="left")
    return np.asarray(begun - ended, dtype=np.intp)


def draw_observed(ax: Axes, observed: ObservedNumbers) -> None:
    """Write the numbers below the axis, a line for each group in its colour."""
    ax.set_xticks(observed.times, observed.names)
    _write(ax, 0, HEADING, "#202020", "left")
    for line, (name, numbers) in enumerate(observed.numbers.items(), start=1):
        colour = style(line - 1).colour
        _write(ax, line, shown_label(name, LONGEST_NAME), colour, "right")
        for time, number in zip(observed.times, numbers, strict=True):
            _write(ax, line, f"{number:,}", colour, "center", float(time))


def _write(
    ax: Axes, line: int, text: str, colour: str, side: str, time: float | None = None
) -> None:
    """A text below a time, or at the left end of the axis."""
    x, where = (0.0, ax.transAxes) if time is None else (time, ax.get_xaxis_transform())
    aside = -_ASIDE if side == "right" else 0
    ax.annotate(
        text, (x, 0.0), (aside, -_BELOW - _LINE * line), xycoords=where,
        textcoords="offset points", ha=side, va="top", color=colour, fontsize="small",
        annotation_clip=False,
    )  # fmt: skip


def size_with(n_groups: int) -> tuple[float, float]:
    """Inches of a figure with room for the numbers of so many groups."""
    return SIZE[0], SIZE[1] + (_LINE * (n_groups + 1) / 72 if n_groups else 0.0)
