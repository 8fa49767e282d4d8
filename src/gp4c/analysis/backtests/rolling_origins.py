"""Rolling origins: what was known when, and what came after.

Where time is counted from each subject's entry and the entries are known, origins are on the clock
that the subjects share: nothing that happened later is known at an origin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import few_digits, plural
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RollingOrigins:
    """The times that forecasts of a panel are made at.

    Attributes
    ----------
    panel : PanelCounts
    horizon : float
        How far ahead forecasts go.
    number : int
        Of origins: a horizon apart, the last one a horizon before the end.
    """

    panel: PanelCounts
    horizon: float
    number: int

    def __post_init__(self) -> None:
        if not (np.isfinite(self.horizon) and self.horizon > 0):
            raise PanelDataError(
                f"horizon must be a positive length of time; found {self.horizon!r}"
            )
        if self.number < 1:
            raise PanelDataError(f"n_origins must be at least 1; found {self.number!r}")
        if not np.any(self._seen_at <= self.times[0]):
            raise PanelDataError(
                f"{plural(self.number, 'origin')} of {few_digits(self.horizon)} each leave nothing "
                f"to learn from: no interval ends by {self.shown(self.times[0])}"
            )

    @property
    def axis(self) -> TimeAxis:
        """The clock that the origins are on."""
        panel, record = self.panel, self.panel.service
        if record is None or record.entry is None:
            return TimeAxis(panel.time_unit, panel.time_origin)
        return TimeAxis(panel.time_unit, "2000-01-01" if record.dated else None)

    def shown(self, time: float) -> str:
        """A time on the clock of the origins: a date, or a number."""
        return self.axis.date(time) or few_digits(time)

    @cached_property
    def times(self) -> Floats:
        """The origins, in order."""
        last = float(self._seen_at.max())
        return np.asarray(last - self.horizon * np.arange(self.number, 0, -1))

    @cached_property
    def _seen_at(self) -> Floats:
        """When each count became known, on the clock of the origins."""
        stop, entries = np.asarray(self.panel.stop), self._entries
        return stop if entries is None else stop + entries[self.panel.subject_index]

    @property
    def _entries(self) -> Floats | None:
        """When subjects entered, where time is counted from that."""
        record = self.panel.service
        return None if record is None or record.entry is None else np.asarray(record.entry)

    def split(self, origin: float) -> tuple[PanelCounts, PanelCounts]:
        """What was known at an origin, and what came within the horizon."""
        end = origin + self.horizon * (1 + 1e-12)
        known = self._seen_at <= origin
        came = ~known & (self._seen_at <= end)
        if not came.any():
            raise PanelDataError(
                f"no interval ends between {self.shown(origin)} and {self.shown(end)}: "
                "choose a longer horizon"
            )
        panel = self.panel
        seen, entries = _rows(panel, known), self._entries
        high = float(origin) if entries is None else float(seen.stop.max())
        return seen._like(window=(panel.window[0], high)), _rows(panel, came)


def _rows(panel: PanelCounts, chosen: NDArray[np.bool_]) -> PanelCounts:
    """A panel of some rows; who went out of service is not known at an origin."""
    kept, index = np.unique(panel.subject_index[chosen], return_inverse=True)
    between, record = panel._interval_covariates, panel.service
    if record is not None:
        record = replace(record.take(kept), end=np.full(len(kept), np.nan), usage_rate=None)
    return panel._like(
        subjects=panel.subjects[kept],
        subject_index=index.astype(np.intp).reshape(-1),
        start=panel.start[chosen],
        stop=panel.stop[chosen],
        count=panel.count[chosen],
        exposure=panel.exposure[chosen],
        service=record,
        _covariates=None if panel._covariates is None else panel._covariates.iloc[kept],
        _interval_covariates=None if between is None else between.iloc[np.flatnonzero(chosen)],
    )
