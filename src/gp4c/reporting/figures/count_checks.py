"""Do the counts look like the model's? Rootogram of intervals, PIT histogram of subjects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gp4c.analysis.diagnostics import pit, rootogram
from gp4c.reporting.figures.curves import Floats
from gp4c.reporting.figures.plot_style import GREY, axes_or_new, legend, plain_axes, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

#: counts from here on are one class in the rootogram
_MOST_CLASSES = 12


@dataclass(frozen=True, eq=False)
class CountCheck:
    """Counts against the laws that the fitted model gives them (:mod:`gp4c.analysis.diagnostics`).

    Attributes
    ----------
    observed, expected : (C,) arrays
        Intervals with count 0, 1, ..., C − 2, and with C − 1 or more.
    edges : (B + 1,) array
    pit : (B,) array
        Share of the probability integral transform of the subjects' totals in each bin, 1/B for
        each if the model is right. Not randomised: the transform of a subject is spread evenly
        between P(N < n) and P(N ≤ n) (Czado, Gneiting and Held, Biometrics 2009).
    n_subjects : int
    """

    observed: Floats
    expected: Floats
    edges: Floats
    pit: Floats
    n_subjects: int

    @property
    def classes(self) -> list[str]:
        """Names of the classes of counts: 0, 1, ... and "5+"."""
        last = len(self.observed) - 1
        return [*map(str, range(last)), f"{last}+"]

    @property
    def pit_limits(self) -> tuple[float, float]:
        """Density between which 95% of the bins lie if the model is right."""
        bins = len(self.pit)
        spread = 1.96 * float(np.sqrt((bins - 1) / self.n_subjects))
        return max(1 - spread, 0.0), 1 + spread


def check_counts(model: PanelEstimator, panel: PanelCounts, *, n_bins: int = 10) -> CountCheck:
    """Compare the counts of a panel with what a fitted model expects of them.

    Parameters
    ----------
    model : estimator
    panel : PanelCounts
        Within the model's window.
    n_bins : int
        Bins of the PIT histogram.
    """
    transform = pit(model, panel, per="subject")
    lower, upper = (transform[name].to_numpy()[:, None] for name in ("lower", "upper"))
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    filled = np.clip((edges - lower) / np.maximum(upper - lower, 1e-300), 0.0, 1.0).mean(axis=0)
    largest = int(np.clip(panel.count.max(), 3, _MOST_CLASSES)) - 1
    frequency = rootogram(model, panel, largest=largest)
    return CountCheck(
        observed=frequency["observed"].to_numpy(dtype=float),
        expected=np.maximum(frequency["expected"].to_numpy(dtype=float), 0.0),
        edges=edges,
        pit=np.diff(filled),
        n_subjects=panel.n_subjects,
    )


def plot_rootogram(check: CountCheck, ax: Axes | None = None) -> Axes:
    """Draw the hanging rootogram: bars hang from the expected frequencies and should end at 0.

    The scale is of square roots, on which deviations of all classes weigh alike.
    """
    ax = axes_or_new(ax)
    k = np.arange(len(check.observed))
    top = np.sqrt(check.expected)
    ax.bar(k, -np.sqrt(check.observed), bottom=top, width=0.8, color="#9fc3dc", label="counted")
    ax.plot(k, top, color=style(1).colour, marker="o", markersize=4, label="expected")
    ax.axhline(0, color="#202020", linewidth=1)
    plain_axes(ax, "events in an interval", "√ number of intervals")
    ax.set_xticks(k, check.classes)
    legend(ax)
    return ax


def plot_pit(check: CountCheck, ax: Axes | None = None) -> Axes:
    """Draw the PIT histogram: flat if the model is right, U-shaped if subjects vary more.

    The dotted lines hold 95% of the bars if the model is right.
    """
    ax = axes_or_new(ax)
    bins = len(check.pit)
    ax.bar(
        check.edges[:-1], check.pit * bins, width=np.diff(check.edges), align="edge",
        color="#9fc3dc", edgecolor="white",
    )  # fmt: skip
    ax.axhline(1, color=style(1).colour, linewidth=1.6)
    for height in check.pit_limits:
        ax.axhline(height, color=GREY, linewidth=1, linestyle=(0, (2, 2)))
    plain_axes(ax, "share of expected totals below", "density")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.1 * max(check.pit_limits[1], float(check.pit.max()) * bins))
    return ax
