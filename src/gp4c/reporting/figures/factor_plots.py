"""Plots of the factors of a rate: the season of a cycle, ratios that change over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.timeaxis import TimeAxis
from gp4c.reporting.figures.plot_style import GREY, axes_or_new, plain_axes, style, time_axes, tint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.estimators.regression.factors.effects_over_time import EffectsOverTime
    from gp4c.estimators.regression.factors.factor_model import FactorModel

#: letters of a month or weekday on the axis
_SHORT = 3
#: points of a curve
_POINTS = 100


def plot_season(model: FactorModel, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
    """Draw the season's factor in each part of the cycle, with its interval.

    Parameters
    ----------
    model : fitted GP4C with a season
    ax : Axes, optional
        Where to draw; a new figure if absent.
    level : float
        Level of the intervals.
    """
    ax, look = axes_or_new(ax), style(0)
    table = model.season_table(level)
    place = np.arange(len(table)) + 0.5
    low, factor, high = (table[name].to_numpy(dtype=float) for name in ("low", "factor", "high"))
    ax.axhline(1, color=GREY, linewidth=1)
    ax.fill_between(place, low, high, color=tint(look.colour, 0.25), linewidth=0)
    ax.plot(place, factor, color=look.colour, marker="o", markersize=4)
    ax.set_xticks(place, [str(name)[:_SHORT] for name in table["part"]])
    ax.set_yscale("log")
    ticks = [tick for tick in (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 4, 10) if _near(tick, low, high)]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    plain_axes(ax, "", "factor of the rate")
    return ax


def plot_ratio(
    model: EffectsOverTime, name: str, ax: Axes | None = None, *, level: float = 0.95
) -> Axes:
    """Draw a rate ratio over time with its pointwise and its simultaneous band.

    Parameters
    ----------
    model : fitted GP4C with ``over_time()`` in its formula
    name : str
        The covariate, or one of its columns.
    ax : Axes, optional
        Where to draw; a new figure if absent.
    level : float
        Level of the bands.
    """
    ax, look = axes_or_new(ax), style(0)
    times = np.linspace(*model.window_, _POINTS)
    for kind, shade in (("simultaneous", 0.12), ("pointwise", 0.3)):
        low, high = model.effect_over_time_band(name, times, level, kind)
        ax.fill_between(times, low, high, color=tint(look.colour, shade), linewidth=0)
    ax.plot(times, model.effect_over_time(name, times), color=look.colour)
    ax.axhline(1, color=GREY, linewidth=1)
    ax.set_yscale("log")
    time_axes(ax, TimeAxis.of(model), "rate ratio")
    return ax


def _near(tick: float, low: np.ndarray, high: np.ndarray) -> bool:
    """Whether a tick is among the values shown, or 1."""
    return tick == 1 or bool(low.min() <= tick <= high.max())
