"""Plots of fitted curves: each takes Matplotlib axes (or makes them) and returns them.

Models may be given as fitted estimators or as :class:`~gp4c.reporting.figures.curves.Curves`, which
saves evaluating them again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gp4c.analysis.groups.group_draws import shown
from gp4c.data.checks import check_choice
from gp4c.exceptions import NoIntensityError
from gp4c.reporting.figures.curves import Bands, Curves, Floats, curves_of, ratio_times
from gp4c.reporting.figures.observed_numbers import draw_observed, observed_numbers
from gp4c.reporting.figures.plot_style import (
    GREY,
    LONGEST_LABEL,
    axes_or_new,
    axis_of,
    legend,
    plain_axes,
    safe,
    shown_label,
    style,
    time_axes,
)
from gp4c.reporting.words import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.analysis.comparison import Comparison
    from gp4c.analysis.groups.ratios.contrast_answers import Question
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

#: curves above which bands would hide each other
_MOST_BANDS = 3
_BAND_ALPHA = 0.2


def plot_model(
    model: PanelEstimator,
    ax: Axes | None = None,
    *,
    what: str | None = None,
    level: float = 0.95,
    panel: PanelCounts | None = None,
    label: str | None = None,
    index: int = 0,
) -> Axes:
    """Draw a fitted estimator: what ``model.plot()`` does.

    Parameters
    ----------
    model : estimator
    ax : Axes, optional
        Where to draw; a new figure if absent.
    what : {"intensity", "cumulative", "history"}, optional
        The rate if there is one, else the mean number of events.
    level, panel, label, index
        See :func:`plot_intensity`.
    """
    kinds = {"intensity": plot_intensity, "cumulative": plot_cumulative}
    chosen = what or ("cumulative" if model.is_step else "intensity")
    check_choice("what", chosen, (*kinds, "history"))
    model._check_fitted()
    if chosen not in kinds:
        return plot_history(model, ax)
    return kinds[chosen](model, ax, level=level, panel=panel, label=label, index=index)


def plot_intensity(
    model: PanelEstimator | Curves,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    panel: PanelCounts | None = None,
    label: str | None = None,
    index: int = 0,
) -> Axes:
    """Draw the event rate over time with its band.

    Parameters
    ----------
    model : estimator or Curves
        A smooth estimator; step functions have no rate.
    ax : Axes, optional
        Where to draw; a new figure if absent.
    level : float
        Level of the band.
    panel : PanelCounts, optional
        Adds a tick at each visit below the curve: where the data are.
    label : str, optional
        Name in the key.
    index : int
        Which colour and dashes, for several curves in one plot.

    Examples
    --------
    >>> import gp4c
    >>> from gp4c.reporting.figures.plots import plot_intensity
    >>> panel = gp4c.load_dataset("bladder")
    >>> model = gp4c.GP4C().fit(panel)  # doctest: +SKIP
    >>> ax = plot_intensity(model, panel=panel)  # doctest: +SKIP
    """
    curves = _as_curves(model, level)
    if curves.rate is None:
        raise NoIntensityError("a step function has no rate to draw; use plot_cumulative")
    ax = axes_or_new(ax)
    _draw_line(ax, curves, curves.rate, curves.rate_bands, level, label, index)
    time_axes(ax, curves.axis, shown_label(curves.rate_label, LONGEST_LABEL))
    return _finish(ax, curves, panel)


def plot_cumulative(
    model: PanelEstimator | Curves,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    panel: PanelCounts | None = None,
    label: str | None = None,
    index: int = 0,
) -> Axes:
    """Draw the expected number of events per subject since the window's start, with its band.

    Takes the arguments of :func:`plot_intensity`; step functions are drawn as steps.
    """
    curves = _as_curves(model, level)
    ax = axes_or_new(ax)
    _draw_line(ax, curves, curves.cumulative, curves.cumulative_bands, level, label, index)
    time_axes(ax, curves.axis, curves.cumulative_label)
    return _finish(ax, curves, panel)


def plot_groups(
    models: Mapping[str, PanelEstimator | Curves],
    ax: Axes | None = None,
    *,
    what: str = "cumulative",
    level: float = 0.95,
    bands: bool | None = None,
    title: str | None = None,
    whose: str = "",
    observed: Mapping[str, PanelCounts] | None = None,
) -> Axes:
    """Draw the curves of several groups, or of several estimators, over each other.

    Parameters
    ----------
    models : dict
        Name to fitted estimator (or Curves).
    ax : Axes, optional
    what : {"cumulative", "intensity"}
    level : float
    bands : bool, optional
        Whether to draw bands; by default up to three curves have them.
    title : str, optional
        Title of the key, e.g. the covariate that makes the groups.
    whose : str
        Whose curves they are, for the key.
    observed : dict, optional
        Group to its data: the numbers of subjects still observed are written below the axis.
    """
    shown = len(models) <= _MOST_BANDS if bands is None else bands
    with_bands = list(models) if shown else []
    note = f"{percent(level)} band{'s' if len(models) > 1 else ''}" if shown else None
    heading = ", ".join(filter(None, [title and safe(title), whose, note]))
    ax = _overlay(models, ax, what, level, with_bands, heading)
    if observed is not None:
        draw_observed(ax, observed_numbers(observed))
    return ax


def plot_estimators(
    models: Mapping[str, PanelEstimator | Curves],
    ax: Axes | None = None,
    *,
    what: str = "cumulative",
    level: float = 0.95,
) -> Axes:
    """Draw several estimators of the same data; the first, and only it, with its band."""
    first = list(models)[:1]
    heading = f"{percent(level)} band of {safe(first[0])}" if first else ""
    return _overlay(models, ax, what, level, first, heading)


def _overlay(
    models: Mapping[str, PanelEstimator | Curves],
    ax: Axes | None,
    what: str,
    level: float,
    with_bands: list[str],
    heading: str,
) -> Axes:
    """Draw curves in one plot, each with a colour and dashes of its own, and the key."""
    draw = {"cumulative": plot_cumulative, "intensity": plot_intensity}[what]
    ax = axes_or_new(ax)
    for index, (name, model) in enumerate(models.items()):
        curves = _as_curves(model, level)
        if name not in with_bands:
            curves = replace(curves, cumulative_bands={}, rate_bands={})
        draw(curves, ax, level=level, label=name, index=index)
    legend(ax, title=heading or None, title_fontsize="small", alignment="left")
    return ax


def plot_ratio(
    comparison: Comparison,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    curve: str = "rate",
    pair: tuple[Hashable, Hashable] | None = None,
    times: Floats | None = None,
    at: str = "standardised",
) -> Axes:
    """Draw the ratio of two groups over time on a logarithmic scale, with its band and 1.

    Parameters
    ----------
    comparison : Comparison
        What :func:`gp4c.compare` returns.
    ax : Axes, optional
    level : float
    curve : {"rate", "cumulative"}
        Ratio of the rates, or of the mean numbers of events.
    pair : (first, second), optional
        Which groups; needed if there are more than two. The ratio is second / first.
    times : array, optional
    at : {"standardised", "average"}
        Whose covariates the curves have in a comparison with a formula.
    """
    t = ratio_times(comparison) if times is None else np.asarray(times)
    first, second = pair or comparison.groups[:2]
    how: Question = {"curve": curve, "pair": (first, second), "at": at}
    ratio = comparison.ratio(t, **how)
    low, high = comparison.ratio_band(t, level, **how)
    ax = axes_or_new(ax)
    look = style(0)
    ax.fill_between(t, low, high, color=look.colour, alpha=_BAND_ALPHA, linewidth=0)
    ax.plot(t, ratio, color=look.colour, linewidth=2)
    ax.axhline(1.0, color="#202020", linewidth=1, linestyle=(0, (4, 3)))
    what = "rates" if curve == "rate" else "mean numbers"
    whose = covariate_words(comparison, at)
    name = f"{safe(second)} / {safe(first)}" + (f"\n{whose}" if whose else "")
    time_axes(ax, axis_of(comparison.panel), f"ratio of {what}, {name}")
    ax.set_yscale("log")
    _plain_ratio_ticks(ax, float(np.min(low)), float(np.max(high)))
    ax.set_xlim(t[0], t[-1])
    return ax


def plot_comparison(
    comparison: Comparison,
    ax: Axes | None = None,
    *,
    what: str = "cumulative",
    level: float = 0.95,
    pair: tuple[Hashable, Hashable] | None = None,
    at: str = "standardised",
) -> Axes:
    """Draw a comparison: what ``found.plot()`` does.

    Parameters
    ----------
    comparison : Comparison
    ax : Axes, optional
    what : {"cumulative", "intensity", "ratio", "rate ratio"}
        Curves of all groups with the numbers still observed below them, or a ratio of two.
    level : float
    pair : (first, second), optional
        For ratios; needed if there are more than two groups.
    at : {"standardised", "average"}
        Whose covariates the curves have in a comparison with a formula.
    """
    check_choice("what", what, ("cumulative", "intensity", "ratio", "rate ratio"))
    if what in ("ratio", "rate ratio"):
        curve = "cumulative" if what == "ratio" else "rate"
        pair = comparison._pair(pair)
        return plot_ratio(comparison, ax, level=level, curve=curve, pair=pair, at=at)
    groups = list(enumerate(comparison.groups))
    return plot_groups(
        {str(g): shown(comparison.models[g], at) for _, g in groups}, ax, what=what, level=level,
        title=comparison.by, whose=covariate_words(comparison, at),
        observed={str(g): comparison.panel[comparison.codes == k] for k, g in groups},
    )  # fmt: skip


def covariate_words(comparison: Comparison, at: str) -> str:
    """Whose covariates curves have, for a label; nothing without a formula."""
    if comparison.tested.adjustment is None:
        return ""
    return "standardised" if at == "standardised" else "at average covariates"


def plot_history(model: PanelEstimator, ax: Axes | None = None) -> Axes:
    """Draw the objective at each step of the optimiser."""
    from matplotlib.ticker import MaxNLocator

    ax = axes_or_new(ax)
    values = np.atleast_1d(model.history_)
    ax.plot(np.arange(len(values)), values, color=style(0).colour, marker="o", markersize=4)
    plain_axes(ax, "step", "objective (log probability)" if model.has_posterior else "history")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    state = "converged" if model.converged_ else "did NOT converge"
    ax.annotate(
        f"{state} after {model.n_iter_} steps", (0.98, 0.05), xycoords="axes fraction",
        ha="right", color=GREY, fontsize="small",
    )  # fmt: skip
    return ax


def _as_curves(model: PanelEstimator | Curves, level: float) -> Curves:
    return model if isinstance(model, Curves) else curves_of(model, levels=(level,))


def _draw_line(
    ax: Axes, curves: Curves, values: Floats, bands: Bands, level: float, label: str | None,
    index: int,
) -> None:  # fmt: skip
    """One curve, and its band where there is one."""
    look = style(index)
    if bands:
        low, high = bands[level] if level in bands else bands[max(bands)]
        ax.fill_between(
            curves.times, low, high, step="post" if curves.step else None,
            color=look.colour, alpha=_BAND_ALPHA, linewidth=0,
        )  # fmt: skip
    ax.plot(
        curves.times, values, drawstyle="steps-post" if curves.step else "default",
        color=look.colour, linestyle=look.dashes, linewidth=1.9,
        label=None if label is None else safe(label),
    )  # fmt: skip


def _finish(ax: Axes, curves: Curves, panel: PanelCounts | None) -> Axes:
    """Limits from zero, and a tick per visit."""
    ax.set_xlim(curves.times[0], curves.times[-1])
    ax.set_ylim(0, 1.05 * max(float(ax.dataLim.y1), 1e-300))  # room for curves drawn earlier
    if panel is not None:
        visits, times_seen = np.unique(panel.stop, return_counts=True)
        strength = np.clip(times_seen / max(times_seen.max(), 1), 0.15, 1.0)
        ax.vlines(
            visits, 0, 0.03, transform=ax.get_xaxis_transform(), color="#202020",
            alpha=strength, linewidth=0.8,
        )  # fmt: skip
        ax.annotate(
            "ticks: visits", (0.995, 0.035), xycoords="axes fraction", ha="right", va="bottom",
            fontsize="x-small", color=GREY,
        )  # fmt: skip
    return ax


def _plain_ratio_ticks(ax: Axes, low: float, high: float) -> None:
    """Ticks at ½, 1, 2, ... written as numbers, not powers of ten; closer if the range is small."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    within: tuple[float, ...] = (1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 5, 7)
    if high > 300 * low:
        within = (1,)
    steps = [m * 10.0**k for k in range(-8, 9) for m in within]
    inside = [value for value in steps if low / 1.2 <= value <= high * 1.2]
    ax.yaxis.set_major_locator(FixedLocator(inside if len(inside) > 1 else [0.5, 1.0, 2.0]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
