"""Round dates along an axis of time, and their names: ``Jan 2024``, ``15 Jan 2024``."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.timeaxis import MICROSECONDS, TimeAxis
from gp4c.reporting.words import point

Floats = NDArray[np.float64]
Dates = NDArray[np.datetime64]

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
#: grids of dates from fine to coarse: unit, how many of them, which one is counted from (weeks
#: begin on Mondays, years are multiples of the year 0)
_GRIDS = (
    *(("s", size, 0) for size in (1, 5, 15, 30)),
    *(("m", size, 0) for size in (1, 5, 15, 30)),
    *(("h", size, 0) for size in (1, 3, 6, 12)),
    ("D", 1, 0), ("D", 2, 0), ("D", 7, 4), ("D", 14, 4),
    *(("M", size, 0) for size in (1, 2, 3, 6)),
    *(("Y", digit * 10**zeros, -1970) for zeros in range(5) for digit in (1, 2, 5)),
)  # fmt: skip
#: widths of a date with the space beside it, in sizes of type
_WIDTHS = {"Y": 3.2, "M": 5.4, "D": 7.0, "h": 10.4, "m": 10.4, "s": 12.0}
#: width of an axis of a plot of the usual size, in sizes of type
ROOM = 38.0
#: microseconds from the origin beyond which there are no dates
_FARTHEST = 2.0**62


def date_ticks(axis: TimeAxis, low: float, high: float, room: float = ROOM) -> Floats:
    """Times of round dates from `low` to `high`, as many as have room.

    Parameters
    ----------
    axis : TimeAxis
        One that has dates.
    low, high : float
    room : float
        Width of the axis, in sizes of type.
    """
    assert axis.unit is not None
    size = MICROSECONDS[axis.unit]
    if not max(abs(low), abs(high)) * size < _FARTHEST:
        return np.zeros(0)
    first, last = axis.moments([low, high])
    for unit, step, zero in _GRIDS:
        most = max(2, int(room / _WIDTHS[unit]))
        begin, end = (_counted(moment, unit) - zero for moment in (first, last))
        if (end - begin) // step > most:
            continue
        grid = np.arange(begin // step, end // step + 1) * step + zero
        dates = grid.astype(f"datetime64[{unit}]").astype("datetime64[us]")
        dates = dates[(dates >= first) & (dates <= last)]
        if len(dates) <= most:
            break
    return np.asarray((dates - axis.moments(0.0)).astype(np.float64) / size)


def _counted(moment: np.datetime64, unit: str) -> int:
    """Whole units from 1970 to a moment."""
    return int(moment.astype(f"datetime64[{unit}]").astype(np.int64))


def date_names(dates: Dates) -> list[str]:
    """Names of dates, all of them to the year, the month, the day, the minute or the second."""
    half = np.timedelta64(500_000, "us")
    moments = (np.asarray(dates, "datetime64[us]") + half).astype("datetime64[s]")
    for unit in ("Y", "M", "D", "m"):
        if np.all(moments.astype(f"datetime64[{unit}]") == moments):
            break
    else:
        unit = "s"
    return [_name(str(moment), unit) for moment in moments]


def _name(text: str, unit: str) -> str:
    """The name of a moment that is written ``2024-01-15T14:00:00``."""
    date, _, clock = text.partition("T")
    year, month, day = date.rsplit("-", 2)
    if unit == "Y":
        return year
    name = f"{_MONTHS[int(month) - 1]} {year}"
    if unit == "M":
        return name
    name = f"{int(day)} {name}"
    return name if unit == "D" else f"{name} {clock if unit == 's' else clock[:5]}"


def time_names(axis: TimeAxis, times: ArrayLike) -> list[str]:
    """Times of the data as people read them: as dates (to the day, or the minute), or numbers."""
    values = np.asarray(times, dtype=np.float64).tolist()
    found = [axis.date(value) for value in values]
    known = [text for text in found if text is not None]
    if len(known) < len(values):
        return [point(value, 4) for value in values]
    return date_names(np.array(known, dtype="datetime64[us]"))
