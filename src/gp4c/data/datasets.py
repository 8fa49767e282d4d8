"""Data sets that come with the package."""

from __future__ import annotations

from importlib import resources

from gp4c.data.panel import PanelCounts

_UNITS = {"nausea": "weeks", "bladder": "months", "skin": "days", "skin_full": "days"}
_WINDOWS = {"nausea": (0.0, 55.0), "bladder": (0.0, 53.0)}


def list_datasets() -> list[str]:
    """Names that :func:`load_dataset` knows."""
    return list(_UNITS)


def load_dataset(name: str, *, event: str | None = None, unit: str | None = None) -> PanelCounts:
    """Load one of the data sets of the paper."""
    import pandas as pd

    path = resources.files("gp4c.data") / "files" / f"{name}.csv"
    with path.open("rb") as file:
        table = pd.read_csv(file)
    count = "count" if event in (None, "all") else f"count_{event}"
    if unit == "paper":
        table[["start", "stop"]] /= 30
    extra = [c for c in ("count", "count_basal", "count_squamous") if c in table and c != count]
    return PanelCounts.from_frame(
        table.drop(columns=extra), count=count, window=_WINDOWS.get(name), time_unit=_UNITS[name]
    )
