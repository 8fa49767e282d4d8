"""Dates where time is counted from entry: on a day each subject is at its own age."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.checks import few_digits, plural
from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.timeaxis import MICROSECONDS, TimeAxis
from gp4c.estimators.forecasts.joint_counts import Asked
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OwnCalendar:
    """The calendar behind a clock that counts from each subject's entry.

    Attributes
    ----------
    axis : TimeAxis
        Time since the day of the first entry.
    offset : float
        That day, since 2000-01-01.
    """

    axis: TimeAxis
    offset: float

    @classmethod
    def of(cls, model: PanelEstimator) -> OwnCalendar | None:
        """That of a fit to data with dated entries; None of others."""
        record = None if model.histories_ is None else model.histories_.service
        if record is None or record.entry is None or not record.dated or not len(record.entry):
            return None
        if model.time_unit_ not in MICROSECONDS:
            return None
        since_2000 = TimeAxis(model.time_unit_, "2000-01-01")
        per_day = MICROSECONDS["days"] / MICROSECONDS[model.time_unit_]
        days = int(np.floor(float(record.entry.min()) / per_day + 1e-6))
        origin = str(np.datetime64("2000-01-01") + np.timedelta64(days, "D"))
        return cls(TimeAxis(model.time_unit_, origin), since_2000.number(origin))

    @classmethod
    def asked_of(cls, model: PanelEstimator, *times: ArrayLike) -> OwnCalendar | None:
        """The calendar if times are dates and the model counts from entry."""
        dated = [are_dates(one) for one in times]
        calendar = cls.of(model) if any(dated) else None
        if calendar is not None and not all(dated):
            raise PanelDataError(
                "start and stop must be both dates or both times since entry; found "
                + " and ".join(repr(one) for one in times)
            )
        return calendar

    def entries(self, known: SubjectHistories) -> Floats:
        """When subjects entered, on this calendar, (K,)."""
        if known.service is None or known.service.entry is None:
            raise PanelDataError(
                "the panel given as history= does not say when its subjects entered: read it with "
                "since_entry=True"
            )
        return np.asarray(known.service.entry - self.offset)

    def end_of_record(self, model: PanelEstimator) -> float:
        """When the last subject was last seen, on this calendar."""
        known = model.histories_
        assert known is not None
        return float((known.span_stop + self.entries(known)[known.span_subject]).max())


def are_dates(times: ArrayLike) -> bool:
    """Whether times of the user are dates: any of them, where there are several."""
    cells = np.asarray(times)
    if cells.dtype.kind != "O":
        return cells.dtype.kind in "UM"
    return any(isinstance(cell, str | dt.date | np.datetime64) for cell in cells.ravel())


def at_ages(asked: Asked, entry: Floats) -> Asked:
    """Windows of the calendar as windows of each subject's age; nothing before its entry."""
    since = entry[asked.subject]
    start, stop = (np.maximum(t - since, 0.0) for t in (asked.start, asked.stop))
    return replace(asked, start=start, stop=stop)


def age_words(
    model: PanelEstimator, known: SubjectHistories | None, asked: Asked, own: bool
) -> str:
    """At which age or usage subjects are, where that is what time is."""
    record = None if known is None else known.service
    if known is None or record is None or (record.entry is None and not record.by_usage):
        return ""
    low, high = few_digits(asked.start.min()), few_digits(asked.stop.max())
    ages = f"{low} to {high}" + (f" {model.time_unit_}" if model.time_unit_ else "")
    if own:
        return f"Each subject is at its own age on these dates, {ages} since its entry."
    n = len(known.subjects)
    if n == 1:
        return ""
    if record.by_usage:
        return f"Time is usage: all {plural(n, 'subject')} are put at the same usage, {ages}."
    said = f"Times are counted from entry: all {plural(n, 'subject')} are put at the same age, "
    remedy = "; dates put each at its own." if OwnCalendar.of(model) is not None else "."
    return f"{said}{ages}{remedy}"
