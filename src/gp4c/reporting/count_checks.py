"""Do the counts look like the model's? Rootogram and PIT histogram of the counts per interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.reporting.curves import Floats
from gp4c.reporting.plot_style import GREY, axes_or_new, legend, plain_axes, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.data.panel import PanelCounts

#: counts from here on are one class in the rootogram
_MOST_CLASSES = 12


@dataclass(frozen=True, eq=False)
class CountCheck:
    """Counts of the intervals against the law that the fitted model gives each of them.

    The law of a count is Poisson with the fitted mean of its interval, or, with gamma frailty,
    negative binomial (each interval on its own, the frailty of its subject unknown). The fitted
    curve is plugged in, so its own uncertainty is not part of the law.

    Attributes
    ----------
    observed, expected : (C,) arrays
        Intervals with count 0, 1, ..., C − 2, and with C − 1 or more.
    edges : (B + 1,) array
    pit : (B,) array
        Share of the probability integral transform in each bin, 1/B for each if the model is
        right (the non-randomised form of Czado, Gneiting and Held, Biometrics 2009).
    n_intervals : int
    """

    observed: Floats
    expected: Floats
    edges: Floats
    pit: Floats
    n_intervals: int


def check_counts(model: Any, panel: PanelCounts, *, n_bins: int = 10) -> CountCheck:
    """Compare the counts of a panel with what a fitted model expects of them.

    Parameters
    ----------
    model : estimator
    panel : PanelCounts
        Within the model's window.
    n_bins : int
        Bins of the PIT histogram.
    """
    mean = panel.exposure * np.asarray(model.expected_counts(panel.start, panel.stop))
    law = _law(np.maximum(mean, 1e-12), model.frailty_shape_)
    below, upto = law.cdf(panel.count - 1), law.cdf(panel.count)
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    width = np.maximum(upto - below, 1e-300)[:, None]
    filled = np.clip((edges - below[:, None]) / width, 0.0, 1.0).mean(axis=0)
    classes = int(min(max(panel.count.max(), 3), _MOST_CLASSES)) + 1
    expected = np.array([law.pmf(k).sum() for k in range(classes - 1)])
    return CountCheck(
        observed=np.bincount(np.minimum(panel.count, classes - 1), minlength=classes).astype(float),
        expected=np.append(expected, panel.n_intervals - expected.sum()),
        edges=edges,
        pit=np.diff(filled),
        n_intervals=panel.n_intervals,
    )


def _law(mean: Floats, shape: float) -> Any:
    from scipy.stats import nbinom, poisson

    return nbinom(shape, shape / (shape + mean)) if np.isfinite(shape) else poisson(mean)


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
    names = [str(i) for i in k[:-1]] + [f"{k[-1]}+"]
    plain_axes(ax, "events in an interval", "√ number of intervals")
    ax.set_xticks(k, names)
    legend(ax)
    return ax


def plot_pit(check: CountCheck, ax: Axes | None = None) -> Axes:
    """Draw the PIT histogram: flat if the model is right, U-shaped if counts vary more.

    The dotted lines hold 95% of a bin's height if the intervals were independent.
    """
    ax = axes_or_new(ax)
    bins = len(check.pit)
    ax.bar(
        check.edges[:-1], check.pit * bins, width=np.diff(check.edges), align="edge",
        color="#9fc3dc", edgecolor="white",
    )  # fmt: skip
    spread = 1.96 * np.sqrt((bins - 1) / check.n_intervals)
    ax.axhline(1, color=style(1).colour, linewidth=1.6)
    for height in (1 - spread, 1 + spread):
        ax.axhline(height, color=GREY, linewidth=1, linestyle=(0, (2, 2)))
    plain_axes(ax, "probability integral transform", "density")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, max(1.6, 1.1 * float(check.pit.max()) * bins))
    return ax
