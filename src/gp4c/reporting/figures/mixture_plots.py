"""Plots of a mixture: its basis intensities, and what each subject has of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp4c.reporting.figures.plot_style import axes_or_new, legend, plain_axes, style, tint
from gp4c.reporting.figures.plots import plot_intensity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.estimators.mixtures.mixture_bases import MixtureBases

#: subjects up to which bars have gaps between them
_GAPS = 60


def plot_bases(model: MixtureBases, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
    """Draw the basis intensities, each for a subject with its mean weight, with bands.

    Parameters
    ----------
    model : GP4CMixture
    ax : Axes, optional
        Where to draw; a new figure if absent.
    level : float
        Level of the bands.
    """
    ax = axes_or_new(ax)
    shown = model.components() or {"basis 1": model}
    for index, ((name, basis), share) in enumerate(zip(shown.items(), model.shares_, strict=True)):
        plot_intensity(basis, ax, level=level, label=f"{name}: {share:.0%} of events", index=index)
    legend(ax)
    return ax


def plot_weights(model: MixtureBases, ax: Axes | None = None) -> Axes:
    """Draw the events of each subject as the model divides them among the bases.

    A bar is a subject with events; its parts are weight times exposure to the basis, which add up
    to the subject's number of events. Subjects with most of the first basis come first.

    Parameters
    ----------
    model : GP4CMixture
    ax : Axes, optional
        Where to draw; a new figure if absent.
    """
    ax = axes_or_new(ax)
    events = (model.weights_ * model.basis_expected_)[model.subject_totals_ > 0]
    share = events / events.sum(axis=1, keepdims=True)
    events = events[np.lexsort((-events.sum(axis=1), -share[:, 0].round(2)))]
    place, bottom = np.arange(1, len(events) + 1), np.zeros(len(events))
    width = 0.85 if len(events) <= _GAPS else 1.0
    for index, part in enumerate(events.T):
        colour = tint(style(index).colour, 0.75)
        ax.bar(place, part, width, bottom=bottom, color=colour, label=f"basis {index + 1}")
        bottom += part
    plain_axes(ax, "subjects with events, by their share of basis 1", "events")
    legend(ax)
    return ax
