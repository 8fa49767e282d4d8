"""Panels whose end points are all different, and the sums and cells made of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

import gp4c
from gp4c.data.tables.sources import ArraySource
from gp4c.large.streaming import PanelSums, Pass
from gp4c.large.summed_cells import cells_of_sums
from gp4c.model.cells import Cells
from gp4c.model.laws import EFFECTS


def irregular_frame(
    n_subjects: int = 300,
    seed: int = 0,
    gaps: bool = False,
    frailty: float | None = None,
    labels: bool = False,
) -> pd.DataFrame:
    """Five irregular intervals per subject over part of (0, 60], rate 0.25 (1 + 0.6 sin(t/7))."""
    rng = np.random.default_rng(seed)
    entry, length = rng.uniform(0, 12, n_subjects), rng.uniform(15, 48, n_subjects)
    cuts = np.cumsum(rng.dirichlet(np.ones(5), n_subjects), axis=1)
    stop = entry[:, None] + length[:, None] * cuts
    start = np.concatenate([entry[:, None], stop[:, :-1]], axis=1)
    effect = np.ones(n_subjects) if frailty is None else rng.gamma(frailty, 1 / frailty, n_subjects)
    rate = 0.25 * (1 + 0.6 * np.sin((start + stop) / 14))
    count = rng.poisson(effect[:, None] * rate * (stop - start))
    kept = np.ones(start.shape, dtype=bool)
    if gaps:
        kept[: n_subjects // 3, 2] = False
    subject = np.broadcast_to(np.arange(n_subjects)[:, None], start.shape)[kept]
    return pd.DataFrame(
        {
            "subject": [f"unit {k:05d}" for k in subject] if labels else subject,
            "start": start[kept],
            "stop": stop[kept],
            "count": count[kept],
        }
    )


def irregular_panel(**options: object) -> gp4c.PanelCounts:
    """The same as a panel."""
    return gp4c.PanelCounts.from_frame(irregular_frame(**options), window=(0.0, 60.0))  # type: ignore[arg-type]


def sums_of(panel: gp4c.PanelCounts, effect: str | None = "gamma") -> PanelSums:
    """One pass over a panel in memory."""
    source = ArraySource(panel)
    one_pass = Pass(source.window)
    for batch in source.batches():
        one_pass.add(batch)
    return one_pass.finish(effect, source.locate)


def compressed(panel: gp4c.PanelCounts, resolution: float, effect: str | None = "gamma") -> Cells:
    """Weighted intervals between nodes in place of the rows."""
    sums = sums_of(panel, effect)
    return cells_of_sums(sums.intervals, sums.subjects, panel.window, EFFECTS[effect], resolution)
