"""From trials to figures: means by peer and cell, ratios to a peer on the same panels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .panels import CELLS, Cell
from .roster import OURS

Floats = NDArray[np.float64]

#: what is measured of a trial
MEASURES = (
    "rate_error", "rate_coverage", "sum_error", "sum_coverage", "score", "cpu", "memory",
)  # fmt: skip
COLUMNS = ("rate", "law", "events", "trial", "peer", *MEASURES)


def of_cell(trials: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    """Rows of one cell."""
    same = [trials[name] == value for name, value in zip(Cell._fields, cell, strict=True)]
    return trials[np.logical_and.reduce(same)]


def rows(trials: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """One row for each cell and peer; values that a peer does not give are None."""
    found = {}
    for cell in CELLS:
        part = of_cell(trials, cell)
        for peer in dict.fromkeys(part["peer"]):
            name = f"{cell.rate}, {cell.law}, {cell.events:g}: {peer}"
            found[name] = {**cell._asdict(), **figures(part, peer)}
    return found


def by_peer(trials: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Figures over the cells with waves; errors in units of the number of events, squared."""
    waves = trials[trials["rate"] == "wavy"]
    waves = waves.assign(
        rate_error=waves["rate_error"] / waves["events"] ** 2,
        sum_error=waves["sum_error"] / waves["events"] ** 2,
    )
    return {peer: figures(waves, peer) for peer in dict.fromkeys(waves["peer"])}


def figures(part: pd.DataFrame, peer: str) -> dict[str, Any]:
    """Means of one peer, and how it stands to gp4c on the panels that both were given."""
    key = list(COLUMNS[:4])
    own = part[part["peer"] == peer].set_index(key)
    ours = part[part["peer"] == OURS].set_index(key)
    both = own.join(ours.add_suffix("_ours"), how="inner")
    found: dict[str, Any] = {"peer": peer, "trials": len(own)}
    found |= {name: _mean(own[name]) for name in MEASURES}
    for name in ("rate_error", "sum_error"):
        pairs = both[[f"{name}_ours", name]].to_numpy()
        found[f"{name}_ratio"] = _ratio(pairs) if np.isfinite(pairs).all() else None
    found["cpu_ratio"] = float(both["cpu_ours"].mean() / both["cpu"].mean())
    found["score_gain"] = _mean_and_error((both["score_ours"] - both["score"]).to_numpy())
    return found


def _mean(values: pd.Series[float]) -> float | None:
    return float(values.mean()) if values.notna().all() else None


def _mean_and_error(values: Floats) -> list[float] | None:
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    return [float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))]


def _ratio(pairs: Floats) -> list[float] | None:
    """Ratio of the means of two columns, with its jackknife error."""
    n = len(pairs)
    if n < 2:
        return None
    means = (pairs.sum(axis=0) - pairs) / (n - 1)
    ratios = means[:, 0] / means[:, 1]
    error = np.sqrt((n - 1) * ratios.var())
    return [float(pairs[:, 0].mean() / pairs[:, 1].mean()), float(error)]
