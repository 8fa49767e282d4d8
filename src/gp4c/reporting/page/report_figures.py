"""Figures of the HTML report as plain values; its script turns them into Plotly traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gp4c.data.timeaxis import MICROSECONDS, TimeAxis
from gp4c.reporting.figures.curves import Bands, Curves, Floats
from gp4c.reporting.figures.observed_numbers import HEADING, LONGEST_NAME, ObservedNumbers
from gp4c.reporting.figures.plot_style import time_label
from gp4c.reporting.words import number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from gp4c.data.panel import PanelCounts
    from gp4c.reporting.figures.count_checks import CountCheck

#: Plotly's names of dashes, in the order of :data:`gp4c.reporting.figures.plot_style.STYLES`
_DASHES = ("solid", "dash", "dashdot", "dot", "longdashdot", "longdash", "10px,3px")
#: ticks below a curve; more would be a black line
_MOST_TICKS = 400
#: significant digits: more than anyone can see, and a fraction of the size
_DIGITS = 6


#: a figure of the page, as the script takes it from JSON
Figure: TypeAlias = dict[str, object]


def level_key(level: float) -> str:
    """Name of a level among the values of the page."""
    return f"{level:g}"


def curve_figure(
    curves: Mapping[str, Curves],
    what: str,
    panel: PanelCounts | None = None,
    observed: ObservedNumbers | None = None,
) -> Figure:
    """Rate ("rate") or mean number of events ("cumulative") of one or several groups.

    Visits of `panel` are ticks on the axis; `observed` numbers are below it.
    """
    first = next(iter(curves.values()))
    ylabel = first.cumulative_label if what == "cumulative" else first.rate_label
    series: list[Figure] = []
    for name, c in curves.items():
        values = c.cumulative if what == "cumulative" else c.rate
        bands = c.cumulative_bands if what == "cumulative" else c.rate_bands
        if values is not None:
            series.append(_series(name, c.times, values, bands, len(series)))
    rug: list[float] = []
    if panel is not None:
        visits = np.unique(panel.stop)
        rug = rounded(visits) if len(visits) <= _MOST_TICKS else []
    step = all(c.step for c in curves.values())
    below = {} if observed is None else _below(observed)
    return _over_time(first.axis, ylabel, series, step=step, rug=rug, **below)


def _below(observed: ObservedNumbers) -> Figure:
    """Numbers of observed subjects, and the ticks that they belong to."""
    times = rounded(observed.times)
    rows = [
        {"name": plain_text(_cut(name)), "numbers": numbers.tolist()}
        for name, numbers in observed.numbers.items()
    ]
    longest = max(len(_cut(name)) for name in observed.numbers)  # on the screen, not in HTML
    return {
        "ticks": times,
        "tickNames": list(observed.names),
        "observed": {"heading": HEADING, "rows": rows, "longest": longest},
    }


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def ratio_figure(name: str, times: Floats, ratio: Floats, bands: Bands, axis: TimeAxis) -> Figure:
    """Ratio of two curves on a logarithmic scale, with a line at 1."""
    low = min(float(np.min(band[0])) for band in bands.values())
    high = max(float(np.max(band[1])) for band in bands.values())
    within: tuple[float, ...] = (1,) if high > 100 * low else (1, 2, 5)
    if high < 10 * low:
        within = (1, 1.5, 2, 3, 5, 7)
    ticks = [m * 10.0**k for k in range(-6, 7) for m in within]
    ticks = [float(f"{v:g}") for v in ticks if low / 1.5 <= v <= high * 1.5]
    series = [_series(name, times, ratio, bands, 0)]
    return _over_time(axis, "ratio", series, log=True, lines=[1], yticks=ticks)


def from_zero(
    start: float, times: Floats, median: Floats, bands: Bands
) -> tuple[Floats, Floats, Bands]:
    """A fan that begins where the forecast does, with no events yet."""
    drawn = {v: (np.append(0, low), np.append(0, high)) for v, (low, high) in bands.items()}
    return np.append(start, times), np.append(0, median), drawn


def fan_figure(
    names: Sequence[str], times: Floats, medians: Sequence[Floats], bands: Sequence[Bands],
    axis: TimeAxis,
) -> Figure:  # fmt: skip
    """Forecast of the number of events up to each time."""
    series = [
        _series(name, times, median, band, k)
        for k, (name, median, band) in enumerate(zip(names, medians, bands, strict=True))
    ]
    return _over_time(axis, "number of events", series)


def rootogram_figure(check: CountCheck) -> Figure:
    """Hanging rootogram of the counts per interval."""
    k = np.arange(len(check.observed))
    top = np.sqrt(check.expected)
    return {
        "kind": "bars",
        "x": k.tolist(),
        "y": rounded(-np.sqrt(check.observed)),
        "base": rounded(top),
        "name": "counted",
        "line": rounded(top),
        "lineName": "expected",
        "markers": True,
        "texts": [
            f"{name} events: {int(seen)} intervals, {number(expected)} expected"
            for name, seen, expected in zip(
                check.classes, check.observed, check.expected, strict=True
            )
        ],
        "xlabel": "events in an interval",
        "ylabel": "√ number of intervals",
        "lines": [0],
        "ticks": k.tolist(),
        "tickNames": check.classes,
    }


def pit_figure(check: CountCheck) -> Figure:
    """PIT histogram: flat if the model is right."""
    bins = len(check.pit)
    middle = (check.edges[:-1] + check.edges[1:]) / 2
    height = rounded(check.pit * bins)
    return {
        "kind": "bars",
        "x": rounded(middle),
        "y": height,
        "base": 0,
        "width": rounded(np.diff(check.edges) * 0.96),
        "name": "counted",
        "texts": [f"{value:.2f}" for value in height],
        "xlabel": "share of expected totals below",
        "ylabel": "density",
        "lines": [1, *(round(limit, 3) for limit in check.pit_limits)],
        "range": [0, 1],
    }


def rounded(values: ArrayLike) -> list[float]:
    """Round to significant digits; what is not finite is None, which a plot leaves out."""
    return [
        float(f"{v:.{_DIGITS}g}") if np.isfinite(v) else None  # type: ignore[misc]
        for v in np.asarray(values, dtype=float).ravel().tolist()
    ]


def plain_text(text: object) -> str:
    """Text of a user for Plotly, which would take tags for markup and dollars for mathematics."""
    return escape(str(text), quote=False).replace("$", "&#36;")


def _series(name: str, x: Floats, y: Floats, bands: Bands, index: int) -> Figure:
    return {
        "name": plain_text(name),
        "x": rounded(x),
        "y": rounded(y),
        "dash": _DASHES[index % len(_DASHES)],
        "bands": {level_key(k): [rounded(low), rounded(high)] for k, (low, high) in bands.items()},
    }


def _over_time(axis: TimeAxis, ylabel: str, series: list[Figure], **more: object) -> Figure:
    """Curves over time; `dates` say which date time 0 is, and how many milliseconds a unit has."""
    dates: Figure = {}
    if axis.has_dates and axis.unit is not None:
        step = MICROSECONDS[axis.unit] / 1000
        dates = {"dates": {"origin": str(axis.moments(0.0)), "unit": axis.unit, "step": step}}
    return {
        "kind": "curves",
        **dates,
        "xlabel": plain_text(time_label(axis, axis.unit)),
        "ylabel": plain_text(ylabel),
        "series": series,
        **more,
    }
