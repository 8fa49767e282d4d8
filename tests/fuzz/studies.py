"""Panels with covariates, types of events, exact times beside counts, or rows in parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import gp4c

from .panels import ORIGINS, UNITS, random_panel, smooth_panels

CENTRES = ["north", "south", "east"]


def study_table(
    rng: np.random.Generator, subjects: int, visits: int, *, level: float, unit: float = 1.0,
    origin: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Rows with two arms, three centres, a dose for each subject and a load for each interval."""
    panel = random_panel(rng, subjects, visits, unit=unit, origin=origin, level=level)
    table = panel.to_frame()[["subject", "start", "stop", "count"]]
    who = table["subject"].to_numpy(dtype=int)
    table["arm"] = np.array(["a", "b"])[who % 2]
    table["centre"] = np.array(CENTRES)[who // 2 % 3]
    table["dose"] = np.round(rng.gamma(3.0, 1.0, subjects) + 0.1, 3)[who]
    table["load"] = np.round(rng.normal(size=len(table)), 3)
    return table


@st.composite
def study_tables(draw: st.DrawFn, most_rows: int = 30) -> pd.DataFrame:
    """Studies of all sizes up to `most_rows`, in any unit, with any number of events."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    subjects = draw(st.integers(2, 10))
    return study_table(
        rng, subjects, draw(st.integers(1, max(1, most_rows // subjects))),
        level=10.0 ** draw(st.integers(-1, 2)), unit=draw(UNITS), origin=draw(ORIGINS),
    )  # fmt: skip


def covariate_panels() -> st.SearchStrategy[gp4c.PanelCounts]:
    """Panels whose subjects and intervals have covariates."""
    return study_tables().map(gp4c.PanelCounts.from_frame)


def with_types(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The table with a second count beside the first, now and then of no events at all."""
    rng = np.random.default_rng(seed)
    other = rng.poisson(0.5 * table["count"] + (0.0 if seed % 5 == 0 else 0.3))
    return table.assign(other=other)


@st.composite
def typed_panels(draw: st.DrawFn) -> gp4c.PanelCounts:
    """Panels with two types of events."""
    table = with_types(draw(study_tables(20)), draw(st.integers(0, 99)))
    return gp4c.PanelCounts.from_frame(table, count=["count", "other"])


@dataclass(frozen=True)
class Both:
    """A panel, and subjects whose event times are known, on the same axis of time."""

    panel: gp4c.PanelCounts
    events: gp4c.RecurrentEvents

    @property
    def window(self) -> tuple[float, float]:
        """What both cover."""
        one, two = self.panel.window, self.events.window
        return min(one[0], two[0]), max(one[1], two[1])


@st.composite
def panels_and_events(draw: st.DrawFn) -> Both:
    """Counts and exact times whose windows overlap."""
    panel = draw(smooth_panels(20))
    low, high = panel.window
    shares = draw(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8, unique=True))
    times = [low + share * (high - low) for share in sorted(shares)]
    table = pd.DataFrame({"subject": [f"e{k % 3}" for k in range(len(times))], "time": times})
    return Both(panel, gp4c.RecurrentEvents.from_frame(table, window=panel.window))


@dataclass(frozen=True)
class Parts:
    """Rows that are read in parts; the panel is what they are."""

    panel: gp4c.PanelCounts
    size: int

    @property
    def window(self) -> tuple[float, float]:
        """Of the panel."""
        return self.panel.window

    def source(self) -> Any:
        """The rows as frames of some size; the window is known beforehand."""
        table = self.panel.to_frame()
        frames = [table[k : k + self.size] for k in range(0, len(table), self.size)]
        return gp4c.scan_panel(frames, window=self.panel.window)


@st.composite
def sources(draw: st.DrawFn) -> Parts:
    """Panels in frames of a few rows."""
    return Parts(draw(smooth_panels(40)), draw(st.integers(1, 20)))


# -- the same data in another guise ----------------------------------------------------------------


def reordered(data: Any) -> Any:
    """The same rows in another order, their subjects under other names in the same order."""
    if isinstance(data, Both):
        return replace(data, panel=reordered(data.panel))
    table = data.to_frame()
    names = {label: f"renamed {k:06d}" for k, label in enumerate(data.subjects)}
    table["subject"] = [names[label] for label in table["subject"]]
    return rebuilt(data, table.sample(frac=1.0, random_state=len(table)), data.window)


def in_another_unit(data: Any, factor: float) -> Any:
    """The same with times, and what is per unit of time, in another unit."""
    if isinstance(data, Both):
        return Both(in_another_unit(data.panel, factor), in_another_unit(data.events, factor))
    table = data.to_frame()
    for name in ("start", "stop", "time"):
        if name in table:
            table[name] *= factor
    return rebuilt(data, table, tuple(factor * end for end in data.window))


def rebuilt(data: Any, table: pd.DataFrame, window: Any) -> Any:
    """Data of the same kind from a table."""
    if isinstance(data, gp4c.RecurrentEvents):
        return gp4c.RecurrentEvents.from_frame(table, start="start", stop="stop")
    types = getattr(data, "event_types", None)
    options = {"event": "event"} if types else {}
    exposure = "exposure" if "exposure" in table else None
    return gp4c.PanelCounts.from_frame(table, window=window, exposure=exposure, **options)
