"""Dates that have lost their format: numbers of days, as Excel, SAS, Stata and R count them."""

from __future__ import annotations

import re
from datetime import date, timedelta

import numpy as np

from gp4c.data.subjects import FloatArray
from gp4c.data.tables.frames import Table
from gp4c.exceptions import PanelDataError

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
