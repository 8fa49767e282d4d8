"""The funnel plot: events of units against what was expected of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.reporting.figures.plot_style import (
    GREY,
    axes_or_new,
    legend,
    plain_axes,
    shown_label,
    style,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]

#: probabilities between the lines of the funnel
FUNNEL = (0.95, 0.998)
#: units that are named, and points of each line
_NAMED, _POINTS = 5, 60
#: a unit is marked from this probability on
LIKELY = 0.5


def plot_funnel(
    model: PanelEstimator, ranking: pd.DataFrame | None = None, ax: Axes | None = None
) -> Axes:
    """Draw events over expected events of each unit, against the expected number.

    Between the lines lie 95% and 99.8% of units that are all alike, under the fitted law of counts.
    Units that are likely among the worst are marked, the first few named.

    Parameters
    ----------
    model : fitted estimator
    ranking : DataFrame, optional
        From :meth:`unit_ranking`; made if absent.
    ax : Axes, optional
    """
    table = model.unit_ranking() if ranking is None else ranking
    expected, events = (table[name].to_numpy(dtype=float) for name in ("expected", "events"))
    ax, look = axes_or_new(ax), style(0)
    grid = np.geomspace(max(expected.min(), 1e-3), expected.max() * 1.05, _POINTS)
    for share, dash in zip(FUNNEL, ((0, (4, 2)), (0, (1, 2))), strict=True):
        low, high = funnel_limits(model, grid, share)
        for edge, label in ((low, None), (high, f"{100 * share:g}% of equal units")):
            ax.plot(grid, edge / grid, color=GREY, linewidth=1, linestyle=dash, label=label)
    ax.axhline(1, color=GREY, linewidth=1)
    bad = table["probability"].to_numpy() >= LIKELY
    ratio = events / np.maximum(expected, 1e-300)
    ax.plot(expected[~bad], ratio[~bad], "o", color=look.colour, alpha=0.5, markersize=4)
    if bad.any():
        ax.plot(expected[bad], ratio[bad], "D", color=style(1).colour, markersize=5,
                label="likely among the worst")  # fmt: skip
    for k in np.flatnonzero(bad)[:_NAMED]:
        ax.annotate(shown_label(table["subject"].iloc[k], 16), (expected[k], ratio[k]),
                    xytext=(4, 3), textcoords="offset points", fontsize="small")  # fmt: skip
    plain_axes(ax, "events expected of an average unit", "events / expected")
    ax.set_ylim(0, 1.2 * max(float(ratio.max()), 2.0))
    legend(ax)
    return ax


def funnel_limits(
    model: PanelEstimator, expected: Floats, share: float
) -> tuple[Floats, Floats]:  # fmt: skip
    """Ends of the equal-tailed interval of a count with these means, under the law of the fit."""
    law, theta = model.count_law_, model.law_parameters_[:, None]
    tail = (1 - share) / 2
    spread = float(np.ravel(law.dispersion(theta))[0])
    most = int(np.ceil(expected.max() + 10 * np.sqrt(spread * expected.max()) + 10 * spread + 10))
    counts = np.arange(most + 1, dtype=np.float64)
    below = law.cdf(counts[:, None], expected[None, :], theta)
    low, high = ((below < p).sum(axis=0).astype(float) for p in (tail, 1 - tail))
    return low, high
