"""What was forecast from rolling origins beside what came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.checks import check_choice
from gp4c.data.timeaxis import TimeAxis
from gp4c.reporting.figures.dates.date_ticks import time_names
from gp4c.reporting.figures.plot_style import GREY, axes_or_new, legend, plain_axes, safe, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.analysis.backtests.backtest import Backtest

#: bins of the PIT
_BINS = 10


def plot_backtest(found: Backtest, ax: Axes | None = None, *, what: str = "total") -> Axes:
    """Draw totals with intervals beside what came, or the PIT of subjects' counts.

    Parameters
    ----------
    found : Backtest
    ax : Axes, optional
    what : {"total", "pit"}
        "pit": flat at 1 if forecasts are right, higher at the ends if intervals are too narrow.
    """
    check_choice("what", what, ("total", "pit"))
    ax = axes_or_new(ax)
    return _totals(found, ax) if what == "total" else _pit(found, ax)


def _totals(found: Backtest, ax: Axes) -> Axes:
    table = found.to_frame()
    table = table[table["of"] == "total"]
    names = list(table["model"].unique())
    axis = TimeAxis(found.time_unit, found.time_origin)
    for k, name in enumerate(names):
        rows, look = table[table["model"] == name], style(k)
        shift = 0.6 * ((k + 0.5) / len(names) - 0.5)
        place = np.arange(len(rows)) + shift
        ax.vlines(place, rows["low"], rows["high"], color=look.colour, linewidth=3, alpha=0.5)
        ax.plot(place, rows["mean"], "D", color=look.colour, markersize=4, label=safe(name))
    rows = table[table["model"] == names[0]]
    ax.plot(np.arange(len(rows)), rows["events"], "_", color="#202020", markersize=22,
            markeredgewidth=2, label="came")  # fmt: skip
    labels = time_names(axis, rows["origin"].to_numpy(dtype=float))
    ax.set_xticks(np.arange(len(rows)), labels, rotation=30, ha="right")
    unit = "" if axis.has_dates or not axis.unit else f" ({axis.unit})"
    ahead = f"{found.horizon:g}" + (f" {axis.unit}" if axis.unit else "")
    plain_axes(ax, f"forecast made at{safe(unit)}", f"events in the next {safe(ahead)}")
    ax.set_ylim(bottom=0)
    legend(ax)
    return ax


def _pit(found: Backtest, ax: Axes) -> Axes:
    edges = np.linspace(0, 1, _BINS + 1)
    for k, name in enumerate(found.to_frame()["model"].unique()):
        look = style(k)
        ax.stairs(found.pit(name, n_bins=_BINS), edges, color=look.colour, linewidth=2,
                  linestyle=look.dashes, label=safe(name))  # fmt: skip
    ax.axhline(1, color=GREY, linewidth=1)
    plain_axes(ax, "share of expected counts below the observed one", "density")
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)
    legend(ax)
    return ax
