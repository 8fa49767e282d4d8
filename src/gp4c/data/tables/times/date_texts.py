"""Dates as SAS, R, Excel and people write them; the order of day and month; days as numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from gp4c.data.subjects import FloatArray
from gp4c.data.tables.frames import Table
from gp4c.exceptions import PanelDataError

#: months by their first letters in English, and in German where they differ
_MONTHS = {
    "jan": 1, "feb": 2, "mar": 3, "mrz": 3, "mär": 3, "apr": 4, "may": 5, "mai": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "okt": 10, "nov": 11, "dec": 12, "dez": 12,
}  # fmt: skip
_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
#: a time of day after a date; SAS has a colon between them
_TIME = r"(?:[T :,]+(?P<h>\d{1,2}):(?P<m>\d\d)(?::(?P<s>\d\d)(?:\.\d+)?)?\s*(?P<half>[AaPp][Mm])?)?"
_YEAR = r"(?P<y>\d{4}|\d{2})"
_YEAR_FIRST = re.compile(r"(?P<y>\d{4})([-/.])(?P<b>\d{1,2})\2(?P<a>\d{1,2})" + _TIME, re.ASCII)
_NUMBERS = re.compile(
    r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)" + _YEAR + _TIME, re.ASCII
)
_DAY_NAME = re.compile(r"(?P<a>\d{1,2})[-. ]*(?P<name>[^\W\d_]{3,9})[-. ,]*" + _YEAR + _TIME)
_NAME_DAY = re.compile(r"(?P<name>[^\W\d_]{3,9})\.? +(?P<a>\d{1,2}),? +(?P<y>\d{4})" + _TIME)
#: first year of two digits that is one of the last century, as in R and Python
_LAST_CENTURY = 69
#: ends and parts of column names that say that the cells are dates, without punctuation
_SAYS_DATE = re.compile(r"date|datum|dtc?$")
#: day 0 of each program; Excel counts a 29 February 1900 that never was
_DAY_0 = {
    "as Excel counts": date(1899, 12, 30),
    "as SAS and Stata do": date(1960, 1, 1),
    "as R does": date(1970, 1, 1),
}
#: days that are dates of our time for one of them, from 1927 (Excel) to 2064 (R)
_FIRST, _LAST = 10_000, 60_000


@dataclass(frozen=True)
class WrittenDate:
    """A date as written.

    Attributes
    ----------
    year : int
    first, second : int
        Day and month, or month and day if they are `swappable`.
    time : str
        ISO text of the time of day, with its T; "" without one.
    swappable : bool
        Another country would read day for month.
    short_year : bool
        The year has two digits.
    """

    year: int
    first: int
    second: int
    time: str
    swappable: bool
    short_year: bool

    def iso(self, day_first: bool | None) -> str | None:
        """ISO text; None if it is no day of the calendar or, without an order, undecided."""
        day, month = self.first, self.second
        if self.swappable and self.first != self.second:
            if day_first is None:
                return None
            day, month = (day, month) if day_first else (month, day)
        try:
            return date(self.year, month, day).isoformat() + self.time
        except ValueError:
            return None


def written_date(text: str) -> WrittenDate | None:
    """Read a text as a date in any form but ISO; None if it is none."""
    text = text.strip()
    if found := _YEAR_FIRST.fullmatch(text):
        return _written(found, int(found["b"]), False)
    if found := _NUMBERS.fullmatch(text):
        return _written(found, int(found["b"]), found["mark"] != ".")
    if found := _DAY_NAME.fullmatch(text) or _NAME_DAY.fullmatch(text):
        name = found["name"].lower()
        month = _MONTHS.get(name[:3])
        return None if month is None else _written(found, month, False)
    return None


def _written(found: re.Match[str], month: int, swappable: bool) -> WrittenDate | None:
    year, short = int(found["y"]), len(found["y"]) == 2
    if short:
        year += 1900 if year >= _LAST_CENTURY else 2000
    time = _time(found)
    return (
        None if time is None else WrittenDate(year, int(found["a"]), month, time, swappable, short)
    )


def _time(found: re.Match[str]) -> str | None:
    """ISO text of the time of day; None if there is no such time."""
    if found["h"] is None:
        return ""
    hour, minute, second = int(found["h"]), int(found["m"]), int(found["s"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (found["half"].lower() == "pm")
    return f"T{hour:02}:{minute:02}:{second:02}" if hour < 24 and minute < 60 > second else None


def as_iso(cell: object, day_first: bool | None) -> object:
    """A text that is a date as ISO text; everything else as it is."""
    found = written_date(cell) if isinstance(cell, str) else None
    iso = None if found is None else found.iso(day_first)
    return cell if iso is None else iso


@dataclass(frozen=True)
class OrderEvidence:
    """What texts say about the order of day and month: an example of each kind, None without one.

    Attributes
    ----------
    day, month : str
        A text that has the day first, the month first: the other way there is no such day.
    open : str
        A text that is a day in either order, and another one.
    short_year : str
        A text whose year has two digits.
    """

    day: str | None = None
    month: str | None = None
    open: str | None = None
    short_year: str | None = None

    @classmethod
    def of(cls, texts: Iterable[object]) -> OrderEvidence:
        """Look at all texts."""
        kept: dict[str, str] = {}
        for text in texts:
            found = written_date(text) if isinstance(text, str) else None
            if found is None:
                continue
            if found.short_year:
                kept.setdefault("short_year", str(text))
            if found.swappable and found.first != found.second:
                as_day, as_month = found.iso(True), found.iso(False)
                kind = "open" if as_day and as_month else "day" if as_day else "month"
                if as_day or as_month:
                    kept.setdefault(kind, str(text))
        return cls(**kept)


def both_readings(text: str) -> str:
    """Say what a text means with the day first and with the month first."""
    found = written_date(text)
    assert found is not None
    day, month = found.first, found.second
    return (
        f"{text!r} is {day} {_NAMES[month - 1]} {found.year} with the day first and "
        f"{month} {_NAMES[day - 1]} {found.year} with the month first"
    )


def refuse_day_numbers(table: Table, name: str, time: FloatArray) -> None:
    """Refuse visit times that are surely dates, counted in days since nobody knows when.

    Read as times since 0, the time before a first visit would be a century without events.

    Parameters
    ----------
    table : Table
    name : str
        Column of the visit times.
    time : (n,) array
        NaN where a cell is no number.
    """
    if not _SAYS_DATE.search(re.sub(r"[^a-z]", "", name.lower())) or np.isnan(time).all():
        return
    first, last = np.nanmin(time), np.nanmax(time)
    if not (_FIRST <= first <= last <= _LAST and last - first < first):
        return
    row = int(np.nanargmin(time))
    days = int(time[row])
    readings = ", ".join(f"{zero + timedelta(days)} {who}" for who, zero in _DAY_0.items())
    raise PanelDataError(
        f"{name!r} must hold dates; {days} is a number of days: {readings}; write dates, or pass "
        f"origin=None if time starts at each subject's first visit ({table.locate([row])})"
    )
