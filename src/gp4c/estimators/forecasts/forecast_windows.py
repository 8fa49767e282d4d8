"""The windows of a forecast: one, several, or one divided into steps; and the axis they are on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.forecasts.forecast_inputs import windows
from gp4c.estimators.forecasts.forecast_layout import Step, consecutive
from gp4c.estimators.forecasts.own_calendar import OwnCalendar

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Windows:
    """The windows asked for, and whether an array of them was."""

    start: Floats
    stop: Floats
    several: bool
    axis: TimeAxis
    own: OwnCalendar | None = None
    divided: bool = False

    @classmethod
    def of(
        cls, model: PanelEstimator, start: ArrayLike, stop: ArrayLike, every: Step | None
    ) -> Windows:
        """Read windows; dates where time is counted from entry are on the calendar."""
        own = OwnCalendar.asked_of(model, start, stop)
        axis = TimeAxis.of(model) if own is None else own.axis
        first, last = windows(axis, start, stop)
        if every is None:
            return cls(first, last, np.ndim(start) > 0 or np.ndim(stop) > 0, axis, own)
        if len(first) > 1:
            raise ValueError("every= divides one window; start and stop must be single times")
        first, last = consecutive(axis, float(first[0]), float(last[0]), every)
        return cls(first, last, True, axis, own, divided=True)

    @property
    def begin(self) -> float:
        """When the first of them begins."""
        return float(self.start.min())

    def since(self, known: SubjectHistories | None) -> Floats | float:
        """When the own times of subjects begin on the axis of the windows."""
        return 0.0 if self.own is None or known is None else self.own.entries(known)
