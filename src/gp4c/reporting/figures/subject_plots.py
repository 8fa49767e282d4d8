"""Plots of single subjects, and of counts to come."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError
from gp4c.reporting.figures.curves import Floats
from gp4c.reporting.figures.plot_style import (
    axes_or_new,
    axis_of,
    legend,
    safe,
    style,
    time_axes,
    tint,
)
from gp4c.reporting.words import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

#: share of the colour in the intervals of a fan, from the widest
_FAN_TINTS = (0.18, 0.36, 0.55, 0.7)


def plot_subject(
    model: PanelEstimator, panel: PanelCounts, subject: Hashable, ax: Axes | None = None
) -> Axes:
    """Draw a subject's counted events beside what the model expects of it.

    Counts add up over the subject's own intervals; the expectation is the fitted rate over the
    same intervals times the subject's exposure and, where the model has them, its effect and the
    factor of its covariates.

    Parameters
    ----------
    model : estimator
        Fitted to `panel`.
    panel : PanelCounts
    subject : label
    ax : Axes, optional
    """
    position = np.flatnonzero(panel.subjects == subject)
    if len(position) == 0:
        raise PanelDataError(f"there is no subject {subject!r} in the panel")
    panel = model._adjusted(panel)
    rows = panel.subject_index == position[0]
    effect = _effect_of(model, panel, int(position[0]))
    expected = (
        effect * panel.exposure[rows] * model.expected_counts(panel.start[rows], panel.stop[rows])
    )
    ends = np.append(panel.start[rows][0], panel.stop[rows])
    ax = axes_or_new(ax)
    seen, fitted = style(4), style(0)
    ax.plot(
        ends, _running_sum(panel.count[rows]), drawstyle="steps-post", color=seen.colour,
        linewidth=1.2, marker="o", markersize=3, clip_on=False, label="counted",
    )  # fmt: skip
    ax.plot(ends, _running_sum(expected), color=fitted.colour, linewidth=1.8, label="expected")
    time_axes(ax, axis_of(panel), "events")
    ax.set_title(f"subject {safe(subject)}", fontsize="small", loc="left")
    ax.set_xlim(*panel.window)
    ax.set_ylim(bottom=0)
    return ax


def plot_subjects(
    model: PanelEstimator,
    panel: PanelCounts,
    subjects: Sequence[Hashable] | None = None,
    *,
    most: int = 9,
) -> list[Axes]:
    """Draw :func:`plot_subject` for several subjects, in a grid on one scale.

    Parameters
    ----------
    model : estimator
        Fitted to `panel`.
    panel : PanelCounts
    subjects : sequence of labels, optional
        By default those with most events.
    most : int
        How many of these.
    """
    import matplotlib.pyplot as plt

    if subjects is None:
        totals = np.bincount(panel.subject_index, weights=panel.count, minlength=panel.n_subjects)
        subjects = panel.subjects[np.argsort(-totals, kind="stable")[:most]].tolist()
    columns = min(3, len(subjects))
    rows = -(-len(subjects) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(2.6 * columns + 0.4, 1.9 * rows + 0.4), sharex=True, sharey=True,
        squeeze=False, layout="constrained",
    )  # fmt: skip
    axes = list(grid.ravel())
    for ax, subject in zip(axes, subjects, strict=False):
        plot_subject(model, panel, subject, ax)
        ax.label_outer()
    for ax in axes[len(subjects) :]:
        figure.delaxes(ax)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False,
        fontsize="small",
    )  # fmt: skip
    return axes[: len(subjects)]


def plot_fan(
    times: Floats,
    quantiles: Mapping[float, Floats],
    ax: Axes | None = None,
    *,
    history: tuple[Floats, Floats] | None = None,
    time_unit: str | None = None,
    time_origin: str | None = None,
    ylabel: str = "number of events",
) -> Axes:
    """Draw a forecast as a fan: the median, and intervals that widen with time.

    Parameters
    ----------
    times : (T,) array
    quantiles : dict
        Probability to values (T,); symmetric pairs become intervals, 0.5 the line.
    ax : Axes, optional
    history : (times, values), optional
        What was seen before the forecast.
    time_unit : str, optional
    time_origin : str, optional
        The date of time 0, if times were dates.
    ylabel : str
    """
    ax = axes_or_new(ax)
    look = style(0)
    lower = sorted(p for p in quantiles if p < 0.5)
    for depth, p in enumerate(lower):
        upper = next(q for q in quantiles if abs(q - (1 - p)) < 1e-9)
        ax.fill_between(
            times, quantiles[p], quantiles[upper],
            color=tint(look.colour, _FAN_TINTS[min(depth, len(_FAN_TINTS) - 1)]), linewidth=0,
            label=f"{percent(round(1 - 2 * p, 10))} interval",
        )  # fmt: skip
    if 0.5 in quantiles:
        ax.plot(times, quantiles[0.5], color=look.colour, linewidth=2, label="median")
    if history is not None:
        ax.plot(*history, color="#202020", linewidth=1.5, label="counted")
        ax.axvline(times[0], color="#202020", linewidth=0.8, linestyle=(0, (2, 2)))
    time_axes(ax, TimeAxis(time_unit, time_origin), safe(ylabel))
    legend(ax, loc="upper left")
    return ax


def _running_sum(values: Any) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])


def _effect_of(model: PanelEstimator, panel: PanelCounts, position: int) -> float:
    effects = model.subject_effects_
    if effects is None:
        return 1.0
    if len(effects) != panel.n_subjects:
        raise PanelDataError(
            f"the model was fitted to {len(effects)} subjects, the panel has {panel.n_subjects}: "
            "pass the panel it was fitted to"
        )
    return float(effects[position])
