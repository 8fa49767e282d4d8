"""How models compare on subjects that they have not seen, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp4c.analysis.validation import score_differences
from gp4c.reporting.figures.plot_style import GREY, axes_or_new, plain_axes, safe, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_scores(
    scores: pd.DataFrame, ax: Axes | None = None, *, reference: str | None = None
) -> Axes:
    """Draw paired differences of held-out log-likelihood, best model on top.

    Dots are splits; the large marks with lines are means with two standard errors on either side.

    Parameters
    ----------
    scores : DataFrame
        From :func:`gp4c.cross_validate`.
    ax : Axes, optional
    reference : str, optional
        Model that the others are compared with; default the best.
    """
    table = score_differences(scores, reference)
    base = reference or str(table["model"].iloc[0])
    ax = axes_or_new(ax, (6.4, 1.3 + 0.42 * len(table)))
    look = style(0)
    for row, name in enumerate(table["model"]):
        each = (scores[name] - scores[base]).to_numpy()
        ax.plot(each, np.full(len(each), row), "o", color=GREY, alpha=0.5, markersize=4)
    ax.errorbar(
        table["difference"], np.arange(len(table)), xerr=2 * table["standard_error"],
        fmt="D", color=look.colour, markersize=6, linewidth=2, capsize=3,
    )  # fmt: skip
    ax.axvline(0, color="#202020", linewidth=1, linestyle=(0, (4, 3)))
    plain_axes(ax, f"held-out score (log-likelihood) per split\nrelative to {safe(base)}", "")
    ax.grid(axis="y", visible=False)
    ax.grid(axis="x", color="#e3e3e3", linewidth=0.7)
    ax.set_yticks(np.arange(len(table)), [safe(name) for name in table["model"]])
    ax.set_ylim(len(table) - 0.5, -0.5)
    return ax
