"""Pictures of latent classes: their curves, who belongs to them, and the panel sorted by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import check_choice
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError
from gp4c.reporting.figures.curves import N_POINTS
from gp4c.reporting.figures.panel_picture import figure_size, plot_panel
from gp4c.reporting.figures.plot_style import (
    LONGEST_LABEL,
    axes_or_new,
    legend,
    plain_axes,
    shown_label,
    style,
    time_axes,
)
from gp4c.reporting.words import per, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.mixtures.classes.gp4c_classes import GP4CClasses

Indices = NDArray[np.intp]

#: strength of the bands, width of the strip of classes beside a panel picture
_BAND_ALPHA, _STRIP = 0.18, 0.025


def class_name(model: GP4CClasses, label: int) -> str:
    """A class in a key: ``class 0 (62%)``."""
    return f"class {label} ({percent(round(float(model.shares_[label]), 2))})"


def plot_classes(
    model: GP4CClasses, ax: Axes | None = None, *, what: str = "rate", level: float = 0.95
) -> Axes:
    """Draw the curve of every class with its band, shares in the key.

    Parameters
    ----------
    model : GP4CClasses
    ax : Axes, optional
        Where to draw; a new figure if absent.
    what : {"rate", "cumulative"}
    level : float
        Level of the bands.
    """
    check_choice("what", what, ("rate", "cumulative"))
    model._check_fitted()
    ax, times = axes_or_new(ax), np.linspace(*model.window_, N_POINTS)
    for c in range(model.n_classes_):
        look = style(c)
        if what == "rate":
            curve, band = (
                model.intensity(times, label=c),
                model.intensity_band(times, level, label=c),
            )
        else:
            curve = model.cumulative(times, label=c)
            band = model.cumulative_band(times, level, label=c)
        ax.fill_between(times, *band, color=look.colour, alpha=_BAND_ALPHA, linewidth=0)
        ax.plot(
            times, curve, color=look.colour, linestyle=look.dashes, label=class_name(model, c)
        )  # fmt: skip
    unit = per(model.time_unit_, model.usage_)
    words = f"events {unit}" if what == "rate" else "mean number of events"
    time_axes(ax, TimeAxis.of(model), shown_label(words, LONGEST_LABEL))
    ax.set_xlim(*model.window_)
    ax.set_ylim(bottom=0)
    legend(ax)
    return ax


def plot_membership(model: GP4CClasses, ax: Axes | None = None) -> Axes:
    """Draw the membership probabilities of every subject as a stacked bar, sorted by class."""
    model._check_fitted()
    ax = axes_or_new(ax)
    order = class_order(model)
    place, bottom = np.arange(len(order)), np.zeros(len(order))
    for c in range(model.n_classes_):
        height = model.membership_[order, c]
        ax.bar(
            place, height, 1.0, bottom, color=style(c).colour, label=class_name(model, c),
            linewidth=0,
        )  # fmt: skip
        bottom = bottom + height
    plain_axes(ax, f"subjects ({len(order)}), by class", "probability of the class")
    ax.set_xlim(-0.5, len(order) - 0.5)
    ax.set_ylim(0, 1)
    ax.set_xticks([])
    legend(ax)
    return ax


def plot_class_panel(model: GP4CClasses, panel: PanelCounts, ax: Axes | None = None) -> Axes:
    """Draw the panel with its subjects sorted by class, the surest first; a strip says which.

    Parameters
    ----------
    model : GP4CClasses
    panel : PanelCounts
        The panel of the fit.
    ax : Axes, optional
    """
    model._check_fitted()
    place = {label: k for k, label in enumerate(panel.subjects.tolist())}
    if set(place) != set(model.subjects_.tolist()):
        raise PanelDataError("the panel must have the subjects of the fit")
    order = class_order(model)
    rows = np.array([place[label] for label in model.subjects_[order].tolist()], dtype=np.intp)
    ax = axes_or_new(ax, figure_size(panel))
    plot_panel(panel, ax, order=rows)
    labels = model.membership_.argmax(axis=1)[order]
    low, high = panel.window
    width = _STRIP * (high - low)
    ax.set_xlim(low - 1.6 * width, high)
    for c in np.unique(labels).tolist():
        where = np.flatnonzero(labels == c)
        ax.axhspan(
            where[0] - 0.5, where[-1] + 0.5, xmin=0.0, xmax=_STRIP, color=style(c).colour,
            linewidth=0, label=class_name(model, c),
        )  # fmt: skip
    key: Any = ax.legend(loc="upper left", bbox_to_anchor=(0.0, 1.08), ncols=3, frameon=False)
    key.set_in_layout(True)
    return ax


def class_order(model: GP4CClasses) -> Indices:
    """Subjects by their most probable class, the surest of each class first."""
    return np.lexsort((-model.membership_.max(axis=1), model.membership_.argmax(axis=1)))
