"""Look of the plots: colours that colour-blind eyes and grey printers tell apart, plain axes."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gp4c.data.timeaxis import TimeAxis
from gp4c.plain import printable

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gp4c.data.panel import PanelCounts

#: width and height of a plot in inches: a column of a report
SIZE = (6.4, 3.9)
GREY = "#5f6368"
_LONGEST_NAME = 28
#: the same of labels of axes
LONGEST_LABEL = 60


@dataclass(frozen=True)
class LineStyle:
    """Colour and dashes of one line; dashes differ where colours do, for grey printers."""

    colour: str
    dashes: str | tuple[float, tuple[float, ...]]


#: Okabe and Ito's colours, those of most contrast on white first
STYLES = (
    LineStyle("#0072B2", "solid"),
    LineStyle("#D55E00", (0, (6, 2))),
    LineStyle("#009E73", (0, (6, 1.5, 1.2, 1.5))),
    LineStyle("#CC79A7", (0, (1.3, 1.3))),
    LineStyle("#000000", (0, (9, 2, 1.2, 2, 1.2, 2))),
    LineStyle("#E69F00", (0, (3, 1.2))),
    LineStyle("#56B4E9", (0, (10, 3))),
)


def tint(colour: str, share: float) -> tuple[float, float, float]:
    """Mix a colour with white, so that what the key shows is what the plot shows."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def style(index: int) -> LineStyle:
    """Return the style of the line with this number; they repeat after seven."""
    return STYLES[index % len(STYLES)]


def axes_or_new(ax: Axes | None, size: tuple[float, float] = SIZE) -> Axes:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def plain_axes(ax: Axes, xlabel: str, ylabel: str) -> Axes:
    """Name the axes, leave out the frame, add light lines to read values by."""
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(axis="y", color="#e3e3e3", linewidth=0.7)
    ax.set_axisbelow(True)
    return ax


def legend(ax: Axes, **options: object) -> None:
    """Add a key without a frame, with lines long enough to see their dashes."""
    ax.legend(**({"frameon": False, "handlelength": 3.2, "fontsize": "small"} | options))


def time_axes(ax: Axes, axis: TimeAxis, ylabel: str) -> Axes:
    """As :func:`plain_axes`, with time from left to right: in dates where the data have dates."""
    over_time(ax, axis)
    return plain_axes(ax, ax.get_xlabel(), ylabel)


def over_time(ax: Axes, axis: TimeAxis) -> None:
    """Name the axis of time; its ticks are round dates where the data have dates."""
    unit = shown_label(axis.unit, LONGEST_LABEL) if axis.unit else None
    ax.set_xlabel(time_label(axis, unit))
    if axis.has_dates:
        from gp4c.reporting.figures.dates.date_axis import show_dates

        show_dates(ax, axis)


def time_label(axis: TimeAxis, unit: str | None) -> str:
    """What an axis of time is called: ``date``, or ``time`` in its unit."""
    if axis.has_dates:
        return "date"
    return f"time ({unit})" if unit else "time"


def axis_of(panel: PanelCounts) -> TimeAxis:
    """The axis of time of a panel."""
    return TimeAxis(panel.time_unit, panel.time_origin)


def safe(text: object) -> str:
    """Text of a user in a plot: cut if long; a dollar sign is not mathematics.

    Matplotlib leaves out of its keys what begins with an underscore, hence the blank.
    """
    return shown_label(text, _LONGEST_NAME)


def shown_label(text: object, longest: int) -> str:
    """One line of plain text of at most so many characters, for Matplotlib."""
    name = printable(" ".join(str(text)[: 2 * longest].split("\n")))
    cut = name if len(name) <= longest else name[: longest - 1] + "…"
    return (" " + cut if cut.startswith("_") else cut).replace("$", r"\$")


@dataclass(frozen=True)
class FigureStyle:
    """How figures are written: in which formats, how large, in which size of type.

    Attributes
    ----------
    formats : tuple of str
        "png", "svg" or "pdf"; those that a command has by default if empty.
    size : (width, height), optional
        Inches; what suits the figure if absent.
    font_size : float, optional
        Points; Matplotlib's if absent.
    """

    formats: tuple[str, ...] = ()
    size: tuple[float, float] | None = None
    font_size: float | None = None

    def files(
        self,
        name: str,
        draw: Callable[[Axes], object],
        *,
        size: tuple[float, float] = SIZE,
        formats: tuple[str, ...] = ("png",),
    ) -> dict[str, Callable[[Path], object]]:
        """Files of one figure: name -> function that writes it; `size` and `formats` if not set."""

        def write(path: Path) -> None:
            save_plot(draw, path, size=self.size or size, font_size=self.font_size)

        return {f"{name}.{end}": write for end in self.formats or formats}


def save_plot(
    draw: Callable[[Axes], object],
    path: str | os.PathLike[str],
    *,
    size: tuple[float, float] = SIZE,
    dpi: int = 200,
    font_size: float | None = None,
) -> None:
    """Draw on a figure without a display and write it, whole or not at all.

    Parameters
    ----------
    draw : callable
        Takes axes and draws on them.
    path : path
        PNG, SVG or PDF, by suffix.
    size : (float, float)
        Inches.
    dpi : int
        Dots per inch of a PNG.
    font_size : float, optional
        Points of labels; keys and notes are a little smaller.
    """
    save_figure(
        lambda figure: draw(figure.subplots()), path, size=size, dpi=dpi, font_size=font_size
    )


def save_figure(
    draw: Callable[[Figure], object],
    path: str | os.PathLike[str],
    *,
    size: tuple[float, float] = SIZE,
    dpi: int = 200,
    font_size: float | None = None,
) -> None:
    """As :func:`save_plot`, for figures of several axes: `draw` takes the empty figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from gp4c.atomic import replacing

    # the same picture gives the same file: no date, no random names inside an SVG; type 42 fonts
    # stay text in a PDF, as journals ask
    points = font_size or mpl.rcParams["font.size"]
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with (
        replacing(path) as temporary, without_drawing_warnings(),
        mpl.rc_context({"svg.hashsalt": "gp4c", "pdf.fonttype": 42, "font.size": points}),
    ):  # fmt: skip
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(temporary, dpi=dpi, metadata=undated.get(temporary.suffix))


def png_of(draw: Callable[[Axes], object], size: tuple[float, float], dpi: int = 150) -> bytes:
    """A drawing as the content of a PNG file."""
    from matplotlib.figure import Figure

    figure, file = Figure(figsize=size, layout="constrained"), io.BytesIO()
    with without_drawing_warnings():
        draw(figure.add_subplot())
        figure.savefig(file, format="png", dpi=dpi)
    return file.getvalue()


@contextmanager
def without_drawing_warnings() -> Iterator[None]:
    """Keep quiet about what no user can mend.

    Labels in scripts that the font lacks are drawn as boxes, and a busy machine takes more than a
    second to place a key.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        warnings.filterwarnings("ignore", 'Creating legend with loc="best" can be slow')
        yield
