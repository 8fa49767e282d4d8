"""The figures of a page on paper: Matplotlib draws what the page's script draws on the screen."""

from __future__ import annotations

import io
from collections.abc import Mapping
from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.timeaxis import TimeAxis
from gp4c.reporting.figures.observed_numbers import ObservedNumbers, draw_observed, size_with
from gp4c.reporting.figures.plot_style import (
    LONGEST_LABEL,
    SIZE,
    legend,
    over_time,
    plain_axes,
    safe,
    shown_label,
    style,
    tint,
    without_drawing_warnings,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: a figure of the page, as its script takes it; see :mod:`gp4c.reporting.page.report_figures`
Values = Mapping[str, Any]

_INK = "#202020"
_DPI = 200


def figure_png(values: Values, level: str) -> bytes:
    """A figure as a PNG file, with bands of one level."""
    from matplotlib.figure import Figure

    observed = values.get("observed")
    figure = Figure(figsize=size_with(len(observed["rows"])) if observed else SIZE,
                    layout="constrained")  # fmt: skip
    file = io.BytesIO()
    with without_drawing_warnings():
        draw_figure(values, level, figure.subplots())
        figure.savefig(file, format="png", dpi=_DPI)
    return file.getvalue()


def draw_figure(values: Values, level: str, ax: Axes) -> Axes:
    """Draw a figure of the page on axes."""
    plain_axes(ax, _label(values["xlabel"]), _label(values["ylabel"]))
    if values.get("dates"):
        over_time(ax, TimeAxis(values["dates"]["unit"], values["dates"]["origin"]))
    (_bars if values["kind"] == "bars" else _curves)(values, level, ax)
    for y in values.get("lines", ()):
        ax.axhline(y, color=_INK, linewidth=1, linestyle=(0, (4, 3)))
    if values.get("ticks") is not None and not values.get("observed"):
        ax.set_xticks(values["ticks"], values["tickNames"])
    if values.get("range"):
        ax.set_xlim(*values["range"])
    return ax


def _curves(values: Values, level: str, ax: Axes) -> None:
    stepwise = bool(values.get("step"))
    drawn = "steps-post" if stepwise else "default"
    for index, series in enumerate(values["series"]):
        look, x = style(index), _numbers(series["x"])
        if level in series["bands"]:
            low, high = map(_numbers, series["bands"][level])
            ax.fill_between(x, low, high, step="post" if stepwise else None, color=look.colour,
                            alpha=0.2, linewidth=0)  # fmt: skip
        ax.plot(x, _numbers(series["y"]), color=look.colour, linestyle=look.dashes, linewidth=1.9,
                drawstyle=drawn, label=safe(unescape(series["name"])))  # fmt: skip
        ax.set_xlim(x[0], x[-1])
    if values.get("log"):
        _logarithmic(ax, values["yticks"])
    else:
        ax.set_ylim(0, 1.05 * max(float(ax.dataLim.y1), 1e-300))
    for x in values.get("rug", ()):
        ax.axvline(x, 0, 0.025, color=_INK, linewidth=0.8, alpha=0.55)
    if len(values["series"]) > 1:
        legend(ax)
    if values.get("observed"):
        rows = values["observed"]["rows"]
        numbers = {unescape(row["name"]): np.array(row["numbers"]) for row in rows}
        draw_observed(
            ax, ObservedNumbers(np.array(values["ticks"]), numbers, tuple(values["tickNames"]))
        )


def _logarithmic(ax: Axes, ticks: list[float]) -> None:
    from matplotlib.ticker import NullLocator

    ax.set_yscale("log")
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])


def _bars(values: Values, level: str, ax: Axes) -> None:
    look, x = style(0), _numbers(values["x"])
    width = values.get("width", 0.9)
    ax.bar(x, _numbers(values["y"]), width=width, bottom=values["base"],
           color=tint(look.colour, 0.55), label=values["name"])  # fmt: skip
    if values.get("line"):
        ax.plot(x, _numbers(values["line"]), color=style(1).colour, linewidth=1.9, marker="o",
                markersize=4, label=values["lineName"])  # fmt: skip
        legend(ax)


def _numbers(values: list[float | None]) -> Any:
    """Values of a figure; what is missing is not drawn."""
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def _label(text: str) -> str:
    return shown_label(unescape(text), LONGEST_LABEL)
