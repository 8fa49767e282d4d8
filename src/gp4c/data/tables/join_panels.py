"""Several panels as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Panel = TypeVar("Panel", bound="PanelCounts")


def join_panels(cls: type[Panel], parts: list[PanelCounts]) -> Panel:
    """Join panels with the same time unit and origin; see ``PanelCounts.concat``."""
    import pandas as pd

    if not parts:
        raise PanelDataError("there is no panel to join")
    if len({(part.time_unit, part.time_origin) for part in parts}) > 1:
        said = ", ".join(f"{p.time_unit!r} since {p.time_origin or 0}" for p in parts)
        raise PanelDataError(f"panels to join must agree in time unit and origin; found {said}")
    frames = [part.to_frame() for part in parts]
    exposure = None
    if any("exposure" in frame for frame in frames):
        exposure = "exposure"
        frames = [f.assign(exposure=p.exposure) for f, p in zip(frames, parts, strict=True)]
    joined = cls.from_frame(pd.concat(frames, ignore_index=True), exposure=exposure)
    low, high = zip(*(part.window for part in parts), strict=True)
    return joined._like(
        window=(min(low), max(high)),
        time_unit=parts[0].time_unit,
        time_origin=parts[0].time_origin,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )
