"""Power of a trial over the number of subjects, or over the ratio of rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.planning.rate_ratio_formula import formula_power
from gp4c.reporting.figures.plot_style import GREY, axes_or_new, legend, plain_axes, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.analysis.planning.power_plan import PowerPlan, PowerRow

Floats = NDArray[np.float64]
_POINTS = 100


def plot_power(plan: PowerPlan, ax: Axes | None = None) -> Axes:
    """Draw simulated power with 95% intervals, and the negative-binomial formula as a line.

    The axis is the ratio where there are several ratios and one size, else the size: one line
    for each ratio then.

    Parameters
    ----------
    plan : PowerPlan
        What :func:`gp4c.power` returns.
    ax : Axes, optional
        Where to draw; a new figure if absent.
    """
    ax = axes_or_new(ax)
    ratios = sorted({row.ratio for row in plan.rows})
    sizes = sorted({row.n_first for row in plan.rows})
    if len(ratios) > 1 and len(sizes) == 1:
        grid = np.linspace(ratios[0], ratios[-1], _POINTS)
        line = [formula_power(plan.design, sizes[0], float(r), plan.alpha) for r in grid]
        ax.plot(grid, line, color=GREY, linestyle=(0, (4, 3)), label="formula")
        _points(ax, [row.ratio for row in plan.rows], list(plan.rows), 0, "simulated")
        plain_axes(ax, "ratio of event rates", f"power, {sizes[0]} subjects in the first arm")
    else:
        _over_sizes(ax, plan, ratios, sizes)
    if plan.target is not None:
        ax.axhline(plan.target, color="#202020", linewidth=1, linestyle=(0, (1, 2)))
    ax.set_ylim(0, 1.02)
    legend(ax)
    return ax


def _over_sizes(ax: Axes, plan: PowerPlan, ratios: list[float], sizes: list[int]) -> None:
    """One line and one set of points for each ratio."""
    grid = np.linspace(max(0.5 * sizes[0], 2.0), 1.25 * sizes[-1], _POINTS)
    for index, ratio in enumerate(ratios):
        look = style(index)
        line = [formula_power(plan.design, float(n), ratio, plan.alpha) for n in grid]
        name = f"formula, ratio {ratio:g}"
        ax.plot(grid, line, color=look.colour, linestyle=look.dashes, linewidth=1.2, label=name)
        rows = [row for row in plan.rows if row.ratio == ratio]
        name = f"simulated, ratio {ratio:g}"
        _points(ax, [row.n_first for row in rows], rows, index, name)
    arm = "per arm" if plan.design.allocation == 1 else "in the first arm"
    plain_axes(ax, f"subjects {arm}", "power")
    if plan.chosen is not None and plan.target is not None:
        ax.axvline(plan.rows[plan.chosen].n_first, color="#202020", linewidth=0.8)


def _points(
    ax: Axes, x: list[float] | list[int], rows: list[PowerRow], index: int, name: str
) -> None:
    y = np.array([row.power for row in rows])
    error = 1.96 * np.array([row.error for row in rows])
    ax.errorbar(
        x, y, _bars(y, error), fmt="o", color=style(index).colour, markersize=5, capsize=3,
        label=name,
    )  # fmt: skip


def _bars(power: Floats, error: Floats) -> Floats:
    """Lengths of the bars below and above, which end at 0 and 1."""
    return np.stack([np.minimum(error, power), np.minimum(error, 1 - power)])
