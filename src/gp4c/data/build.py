"""From a table of intervals to a valid panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.checks import check_window
from gp4c.data.frames import Table

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts


def panel_from_intervals(
    cls: type[PanelCounts],
    table: Table,
    *,
    names: dict[str, str],
    exposure: str | None,
    window: Any,
    time_unit: str | None,
    origin: Any,
    missing: str,
) -> Any:
    import pandas as pd

    cols = {role: table.column(name, role) for role, name in names.items()}
    codes, labels = pd.factorize(cols["subject"])
    start = cols["start"].to_numpy(dtype=float)
    stop = cols["stop"].to_numpy(dtype=float)
    count = cols["count"].to_numpy(dtype=np.int64)
    used = set(names.values()) | {exposure}
    rest = pd.DataFrame({k: v for k, v in table.columns.items() if k not in used})
    first = np.unique(codes, return_index=True)[1]
    return cls._from_arrays(
        np.asarray(labels, dtype=object if not pd.api.types.is_numeric_dtype(labels) else None),
        codes,
        start,
        stop,
        count,
        None if exposure is None else table.column(exposure).to_numpy(dtype=float),
        None if window is None else check_window(window, start.min(), stop.max()),
        time_unit,
        rest.iloc[first],
    )
