"""The panel picture: one row per subject, one rectangle per interval, colour = count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.subjects import FloatArray, IndexArray, IntArray
from gp4c.exceptions import PanelDataError
from gp4c.reporting.figures.plot_style import (
    axes_or_new,
    axis_of,
    over_time,
    save_plot,
    shown_label,
)

if TYPE_CHECKING:
    import os

    from matplotlib.axes import Axes
    from matplotlib.colors import BoundaryNorm, ListedColormap

    from gp4c.data.panel import PanelCounts

#: zero has a colour of its own, off the scale of the positive counts
ZERO_COLOUR = "#e9e9e6"
# Counts up to here have one colour each.
_LARGEST_SINGLE = 9
# Most classes of counts that eyes and the colour bar can tell apart.
_MOST_CLASSES = 11
# Lightest part of the colour map that also differs from the grey of zero when printed in grey.
_LIGHTEST = 0.18
# Inches per tick label of the subjects; rows above which there is no space between them, and
# above which there is not even a line.
_LABEL_HEIGHT = 0.17
_CLOSE, _DENSE = 40, 120
_KEY_HEIGHT = 3.2
_LONGEST_LABEL = 18
_ORDERS = {"label": "", "follow_up": ", longest follow-up first", "events": ", most events first"}


def plot_panel(
    panel: PanelCounts,
    ax: Axes | None = None,
    *,
    order: str | IndexArray = "label",
    cmap: str = "viridis_r",
    colorbar: bool = True,
) -> Axes:
    """Draw a panel: a row per subject, a rectangle per interval, coloured by its count.

    Zero is grey, more events are darker. Small counts have a colour each, large ones share
    colours in classes of growing width. Time without observation stays white.

    Parameters
    ----------
    panel : PanelCounts
        The data.
    ax : Axes, optional
        Where to draw; a new figure of fitting size if absent.
    order : {"label", "follow_up", "events"} or array
        Subjects from top to bottom: by label, by the end of their follow-up (longest first), by
        their number of events (most first), or in the order of the positions given.
    cmap : str
        Matplotlib colour map for the positive counts.
    colorbar : bool
        Whether to add the key of colours.

    Returns
    -------
    Axes
        The axes drawn on; ``ax.figure.savefig("panel.png")`` saves the picture.

    Examples
    --------
    >>> import gp4c
    >>> from gp4c.reporting.figures.panel_picture import plot_panel
    >>> ax = plot_panel(gp4c.load_dataset("bladder"))  # doctest: +SKIP
    """
    ax = axes_or_new(ax, figure_size(panel))
    row = subject_rows(panel, order)
    largest = int(panel.count.max())
    classes = count_classes(largest)
    colours, norm = _colours(classes, cmap)
    _draw_rectangles(ax, panel, row, colours, norm)
    _label_axes(ax, panel, row, order)
    if colorbar:
        _add_key(ax, class_labels(classes, largest), colours)
    return ax


def save_panel_picture(
    panel: PanelCounts, path: str | os.PathLike[str], *, dpi: int = 160, order: str = "label",
    cmap: str = "viridis_r", colorbar: bool = True, size: tuple[float, float] | None = None,
    font_size: float | None = None,
) -> None:  # fmt: skip
    """Draw a panel into a file without a display; the suffix says the format.

    Parameters
    ----------
    panel : PanelCounts
        The data.
    path : path
        PNG, SVG or PDF; written whole or not at all.
    dpi : int
        Dots per inch of a PNG.
    order, cmap, colorbar
        See :func:`plot_panel`.
    size : (width, height), optional
        Inches; what suits the number of subjects if absent.
    font_size : float, optional
        Points.
    """
    save_plot(
        lambda ax: plot_panel(panel, ax, order=order, cmap=cmap, colorbar=colorbar), path,
        size=size or figure_size(panel), dpi=dpi, font_size=font_size,
    )  # fmt: skip


def figure_size(panel: PanelCounts) -> tuple[float, float]:
    """Width and height in inches that suit the number of subjects."""
    return 7.5, float(np.clip(1.2 + 0.25 * panel.n_subjects, 2.4, 8.5))


def subject_rows(panel: PanelCounts, order: str | IndexArray) -> IndexArray:
    """Row of each subject, 0 on top (n_subjects,)."""
    label = np.arange(panel.n_subjects)
    if not isinstance(order, str):
        return np.argsort(order)
    if order == "label":
        return label
    if order == "follow_up":
        key: FloatArray = np.zeros(panel.n_subjects)
        np.maximum.at(key, panel.subject_index, panel.stop - panel.window[0])
    elif order == "events":
        key = np.zeros(panel.n_subjects)
        np.add.at(key, panel.subject_index, panel.count)
    else:
        raise PanelDataError(f"order must be 'label', 'follow_up' or 'events'; it is {order!r}")
    row = np.empty(panel.n_subjects, dtype=np.intp)
    row[np.argsort(-key, kind="stable")] = label
    return row


def count_classes(largest: int) -> IntArray:
    """First count of each class of counts with one colour: 0, 1, 2, ... up to `largest`.

    Single counts while they are few; then 1, 2, 5, 10, 20, 50, ...; then 1, 3, 10, 30, ...;
    then powers of ten, and every other one.
    """
    if largest <= _LARGEST_SINGLE:
        return np.arange(largest + 1)
    decades = 10 ** np.arange(len(str(largest)))
    for steps in ((1, 2, 5), (1, 3), (1,)):
        firsts = np.outer(decades, steps).ravel()
        classes = np.concatenate([[0], firsts[firsts <= largest]])
        if len(classes) <= _MOST_CLASSES:
            return classes
    return np.concatenate([[0], decades[::2]])


def class_labels(classes: IntArray, largest: int) -> list[str]:
    """Names of the classes: ``0``, ``1``, ``2–4``, ..., the last up to the largest count."""
    last = np.append(classes[1:] - 1, largest)
    return [
        f"{first:,}" if first == stop else f"{first:,}–{stop:,}"
        for first, stop in zip(classes.tolist(), last.tolist(), strict=True)
    ]


def label_step(n_subjects: int, height: float) -> int:
    """Every how many subjects to label, in steps of 1, 2, 5, 10, ..., on `height` inches."""
    room = max(height / _LABEL_HEIGHT, 1.0)
    step, factors = 1, (2.0, 2.5, 2.0)
    for k in range(60):
        if n_subjects / step <= room:
            break
        step = round(step * factors[k % 3])
    return step


def _colours(classes: IntArray, cmap: str) -> tuple[ListedColormap, BoundaryNorm]:
    """One colour per class, grey for zero."""
    import matplotlib
    from matplotlib.colors import BoundaryNorm, ListedColormap

    scale = matplotlib.colormaps[cmap](np.linspace(_LIGHTEST, 1.0, max(len(classes) - 1, 1)))
    colours = ListedColormap([ZERO_COLOUR, *scale[: len(classes) - 1].tolist()])
    edges = np.append(classes - 0.5, np.inf if len(classes) > 1 else 0.5)
    return colours, BoundaryNorm(np.minimum(edges, 1e300), colours.N)


def _draw_rectangles(
    ax: Axes, panel: PanelCounts, row: IndexArray, colours: ListedColormap, norm: BoundaryNorm
) -> None:
    """Draw all rectangles as one collection, with white lines between neighbours."""
    from matplotlib.collections import LineCollection, PolyCollection

    dense = panel.n_subjects > _DENSE
    half = 0.5 if panel.n_subjects > _CLOSE else 0.4
    y = row[panel.subject_index].astype(np.float64)
    rectangles = PolyCollection(
        _corners(panel.start, panel.stop, y - half, y + half),
        array=panel.count.astype(np.float64),
        cmap=colours,
        norm=norm,
        edgecolors="none" if dense else "white",
        linewidths=0.8 if panel.n_subjects <= _CLOSE else 0.6,
    )
    ax.add_collection(rectangles)
    if dense:  # lines between rows would leave nothing of the rows
        after = np.flatnonzero(np.diff(panel.subject_index) == 0) + 1
        ends = [np.stack([panel.start, y + side], axis=1)[after] for side in (-half, half)]
        ax.add_collection(LineCollection(list(np.stack(ends, axis=1)), colors="white", lw=0.3))


def _corners(left: FloatArray, right: FloatArray, low: FloatArray, high: FloatArray) -> Any:
    """Corners of rectangles (n, 4, 2)."""
    x = np.stack([left, right, right, left], axis=1)
    y = np.stack([low, low, high, high], axis=1)
    return np.stack([x, y], axis=2)


def _label_axes(ax: Axes, panel: PanelCounts, row: IndexArray, order: str | IndexArray) -> None:
    """Time below, subjects at the left: as many labels as there is room for."""
    ax.set_xlim(*panel.window)
    ax.set_ylim(panel.n_subjects - 0.4, -0.6)
    over_time(ax, axis_of(panel))
    height = ax.get_window_extent().height / ax.figure.dpi
    step = label_step(panel.n_subjects, float(height))
    on_row = np.argsort(row)
    # every fifth, tenth, ... row, counted as people do; labels out of order only if all are there
    name = order if isinstance(order, str) else ""
    labelled = step == 1 or name == "label"
    shown = np.arange(step - 1, panel.n_subjects, step) if labelled else np.arange(0)
    ax.set_yticks(shown, [_short(panel.subjects[on_row[k]]) for k in shown], fontsize="small")
    ax.set_ylabel(f"subject{f' ({panel.n_subjects})' if step > 1 else ''}{_ORDERS.get(name, '')}")
    ax.tick_params(axis="y", length=0 if step == 1 else 2)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def _short(label: object) -> str:
    """Text of a label, cut if it is long; a dollar sign is not mathematics."""
    return shown_label(label, _LONGEST_LABEL)


def _add_key(ax: Axes, labels: list[str], colours: ListedColormap) -> None:
    """Colour bar with one field per class."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm

    position = np.arange(len(labels) + 1)
    figure: Any = ax.figure
    height = ax.get_window_extent().height / figure.dpi
    bar = figure.colorbar(
        ScalarMappable(BoundaryNorm(position, colours.N), colours),
        ax=ax,
        ticks=position[:-1] + 0.5,
        shrink=min(1.0, _KEY_HEIGHT / float(height)),
        aspect=18,
        pad=0.02,
    )
    bar.minorticks_off()
    bar.ax.set_yticklabels(labels, fontsize="small")
    bar.ax.tick_params(length=0)
    bar.outline.set_visible(False)
    bar.set_label("events in the interval")
