"""L_test, MISE and time against a setting of Synthetic A: what two figures share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.paper.sections import NAMES, Floats, Lines, mean_and_error, number, table
from gp4c.paper.store import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: colour and dashes of each method, the same in all figures
LOOK = {
    "GP3": 2, "LocalEM": 1, "b=0.3": 0, "GP4C": 0, "exact": 3, "default": 2, "b=1": 5, "GP4CW": 6,
    "GP4CW honest": 3,
}  # fmt: skip


@dataclass(frozen=True)
class Trend:
    """Metrics of methods at values of a setting; `level` methods do not depend on it.

    Attributes
    ----------
    x : sequence of float
    xlabel : str
    values : dict
        Method -> metric -> (values, trials) array; one row for a method that does not depend on
        the setting.
    reference : str
        Method whose last row of L_test is subtracted, trial by trial.
    """

    x: Sequence[float]
    xlabel: str
    values: dict[str, dict[str, Floats]]
    reference: str

    def gain(self, method: str) -> Floats:
        """L_test minus the reference's on the same trial."""
        reference = self.values[self.reference]["l_test"][-1]
        return np.asarray(self.values[method]["l_test"] - reference)


def collect(records: Sequence[Record], keys: Sequence[str], method: str) -> dict[str, Floats]:
    """Metrics of one method from records of a study over a setting, (settings, trials)."""
    return {
        metric: np.array([[r["at"][key][method][metric] for r in records] for key in keys])
        for metric in ("l_test", "mise", "seconds")
    }


def draw_trend(figure: Figure, trend: Trend) -> None:
    """Three panels: L_test against the reference, MISE, time."""
    from gp4c.reporting.figures.plot_style import plain_axes

    panels = figure.subplots(1, 3)
    for method in trend.values:
        gain = trend.gain(method)
        pairs = [mean_and_error(row) for row in gain]
        middle = np.array([m for m, _ in pairs])
        error = np.nan_to_num([e for _, e in pairs])
        _series(panels[0], trend, method, middle, middle - error, middle + error)
        for ax, metric in zip(panels[1:], ("mise", "seconds"), strict=True):
            low, middle, high = np.quantile(trend.values[method][metric], [0.25, 0.5, 0.75], axis=1)
            _series(ax, trend, method, middle, low, high)
    plain_axes(panels[0], trend.xlabel, f"L_test − {NAMES[trend.reference]}")
    plain_axes(panels[1], trend.xlabel, "MISE")
    plain_axes(panels[2], trend.xlabel, "training time (CPU s)")
    panels[2].set_yscale("log")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=len(labels), frameon=False,
        fontsize="small", handlelength=3.2,
    )  # fmt: skip


def _series(ax: Axes, trend: Trend, method: str, middle: Floats, low: Floats, high: Floats) -> None:
    """One line with error bars; a level with its range if it does not depend on the setting."""
    from gp4c.reporting.figures.plot_style import style

    look = style(LOOK[method])
    options: dict[str, Any] = {"color": look.colour, "linestyle": look.dashes}
    if len(middle) == 1 < len(trend.x):
        ax.axhspan(float(low[0]), float(high[0]), color=look.colour, alpha=0.15, linewidth=0)
        ax.axhline(float(middle[0]), label=NAMES[method], **options)
        return
    # error bars side by side, so that none hides another
    step = 0.012 * (max(trend.x) - min(trend.x) or 1.0)
    x = np.asarray(trend.x) + step * (list(trend.values).index(method) - len(trend.values) / 2)
    ax.errorbar(
        x, middle, yerr=[middle - low, high - middle], capsize=2, linewidth=1.6,
        elinewidth=1, marker="o", markersize=3, label=NAMES[method], **options,
    )  # fmt: skip


def trend_table(trend: Trend) -> Lines:
    """The numbers of the figure."""
    lines: Lines = []
    titles = {"l_test": f"L_test − {NAMES[trend.reference]}", "mise": "MISE, median",
              "seconds": "T [s], median"}  # fmt: skip
    for metric, title in titles.items():
        rows = []
        for method in trend.values:
            if metric == "l_test":
                cells = [number(float(row.mean()), 1, True) for row in trend.gain(method)]
            else:
                medians = np.median(trend.values[method][metric], axis=1)
                cells = [number(float(m), 1 if metric == "mise" else 2) for m in medians]
            rows.append([NAMES[method], *(cells if len(cells) > 1 else cells * len(trend.x))])
        lines += table([title, *(f"{x:g}" for x in trend.x)], rows)
    return lines
