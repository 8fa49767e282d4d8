"""The axis of time: numbers in one stated unit, and the dates that they stand for."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.checks import shown_number
from gp4c.data.subjects import FloatArray
from gp4c.data.tables.times.date_texts import OrderEvidence, as_iso, both_readings
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd

#: a time as users give it: a number, or a date in any form
Moment: TypeAlias = "float | str | dt.date | np.datetime64"
Window: TypeAlias = "tuple[Moment, Moment]"

#: microseconds per unit; a month is a twelfth of 365.25 days
MICROSECONDS = {
    "seconds": 1e6,
    "minutes": 60e6,
    "hours": 3600e6,
    "days": 86400e6,
    "weeks": 7 * 86400e6,
    "months": 365.25 / 12 * 86400e6,
    "years": 365.25 * 86400e6,
}
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
#: units that need the time of the day
_SHORT = ("seconds", "minutes", "hours")


def known_unit(time_unit: str) -> str:
    """Return the plural name of a unit that dates can be converted to."""
    name = str(time_unit).strip().lower()
    for unit in MICROSECONDS:
        if name in (unit, unit[:-1]):
            return unit
    raise PanelDataError(
        f"times given as dates need a time_unit out of {', '.join(MICROSECONDS)}; "
        f"found {time_unit!r}"
    )


class HasTimeAxis(Protocol):
    """A fitted model, as far as its time axis goes."""

    time_unit_: str | None
    time_origin_: str | None


@dataclass(frozen=True)
class TimeAxis:
    """How the table's times became numbers; `day_first` is the order in dates such as 1/2/2024."""

    unit: str | None = None
    origin: pd.Timestamp | np.datetime64 | str | None = None
    notes: tuple[str, ...] = ()
    day_first: bool | None = None

    @classmethod
    def of(cls, model: HasTimeAxis) -> TimeAxis:
        """The axis of the data that a model was fitted to."""
        return cls(model.time_unit_, model.time_origin_)

    def number(self, value: Moment) -> float:
        """Convert one time given by the user, on the same axis."""
        if isinstance(value, str | dt.date | np.datetime64):
            if self.origin is None or self.unit not in MICROSECONDS:
                raise PanelDataError(f"the data's times are numbers, not dates; found {value!r}")
            since = as_moment(value, self.day_first) - as_moment(self.origin)
            return float(since / np.timedelta64(1, "us")) / MICROSECONDS[self.unit]
        try:
            return float(value)
        except (TypeError, ValueError):
            raise PanelDataError(f"a time must be a number or a date; found {value!r}") from None

    def numbers(self, times: ArrayLike) -> FloatArray:
        """Convert times given by the user, numbers or dates, in an array of their own shape."""
        cells = np.asarray(times)
        if cells.dtype.kind not in "OUM":
            return cells.astype(np.float64)
        plain = cells.astype(object) if cells.dtype.kind == "U" else cells
        numbers = [self.number(cell) for cell in plain.ravel()]
        return np.array(numbers, dtype=np.float64).reshape(cells.shape)

    def date(self, value: float) -> str | None:
        """A time as a date (with the minute for short units); None if times were no dates."""
        if self.origin is None or self.unit not in MICROSECONDS:
            return None
        shift = round(float(value) * MICROSECONDS[self.unit])
        step, half = ("m", 30_000_000) if self.unit in _SHORT else ("D", 43_200_000_000)
        moment = int(as_moment(self.origin).astype(np.int64)) + shift + half
        if abs(moment) >= 2**63:
            return None
        return str(np.datetime64(moment, "us").astype(f"datetime64[{step}]")).replace("T", " ")

    def moments(self, values: ArrayLike) -> NDArray[np.datetime64]:
        """Times as dates, to the microsecond; for an axis that has dates."""
        assert self.origin is not None
        assert self.unit is not None
        since = np.rint(np.asarray(values, dtype=np.float64) * MICROSECONDS[self.unit])
        return as_moment(self.origin) + since.astype(np.int64).astype("timedelta64[us]")

    def shown(self, value: float) -> str:
        """A time for messages: a date (with the minute unless it is midnight), or a number."""
        whole = self.date(value)
        if whole is None or self.unit is None:
            return shown_number(value)
        if self.unit in _SHORT or self.number(whole) == value:
            return whole
        return TimeAxis("minutes", self.origin).date(
            float(value) * MICROSECONDS[self.unit] / MICROSECONDS["minutes"]
        ) or shown_number(value)

    def shown_interval(self, start: float, stop: float) -> str:
        """An interval for messages."""
        return f"({self.shown(start)}, {self.shown(stop)}]"

    @property
    def since_2000(self) -> float | None:
        """Time 0 counted from 2000-01-01, in the unit; None if times were no dates."""
        if self.origin is None or self.unit not in MICROSECONDS:
            return None
        since = as_moment(self.origin) - np.datetime64("2000-01-01", "us")
        return float(since / np.timedelta64(1, "us")) / MICROSECONDS[self.unit]

    @property
    def has_dates(self) -> bool:
        """Whether times are those of the calendar."""
        return self.origin is not None and self.unit in MICROSECONDS

    def window(self, window: Window | None) -> tuple[float, float] | None:
        """Convert a window given by the user."""
        if window is None:
            return None
        try:
            low, high = window
        except (TypeError, ValueError):
            raise PanelDataError(
                f"the window must be two times (t0, t1); found {window!r}"
            ) from None
        return self.number(low), self.number(high)


def as_moment(value: Moment, day_first: bool | None = None) -> np.datetime64:
    """Read a date or timestamp, time zones converted to UTC."""
    import pandas as pd

    if isinstance(value, str) and day_first is None and (text := OrderEvidence.of([value]).open):
        raise PanelDataError(f"a date must have one meaning; {both_readings(text)}")
    read: Any = as_iso(value, True if day_first is None else day_first)
    if read == value and day_first is None:
        read = as_iso(value, False)  # 1/31/2024 has one meaning
    try:
        moment: Any = pd.Timestamp(read)
    except (TypeError, ValueError):
        moment = pd.NaT
    if moment is pd.NaT or (isinstance(read, str) and not _ISO.match(read)):
        raise PanelDataError(f"not a date: {value!r}; dates are written year-month-day")
    if moment.tzinfo is not None:
        moment = moment.tz_convert("UTC").tz_localize(None)
    microseconds: np.datetime64 = moment.to_numpy().astype("datetime64[us]")
    return microseconds
