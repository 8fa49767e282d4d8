"""Numbers, units and levels as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gp4c.data.timeaxis import TimeAxis
from gp4c.plain import per as per
from gp4c.plain import singular


def number(value: float, digits: int = 3) -> str:
    """Write a number to a few significant digits, without exponents where they can be avoided."""
    if math.isnan(value):
        return "not defined"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value != 0 and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits - 1}e}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def estimate(value: float, digits: int = 3) -> str:
    """Write an estimate to a fixed number of significant digits: ``12.0``, not ``12``."""
    plain = number(value, digits)
    wanted = 1e-4 <= abs(value) < 10 ** (digits - 1)
    return f"{value:#.{digits}g}".rstrip(".") if wanted else plain


def duration(value: float, unit: str | None, digits: int = 2) -> str:
    """Write a length of time: ``6.2 months``."""
    text = number(value, digits)
    if not unit:
        return f"{text} units of time"
    return f"{text} {singular(unit) if text == '1' else unit}"


def point(value: float, digits: int = 3) -> str:
    """Write a point on the axis of time: as an amount, but the year 1963 is not 1,963."""
    if 1000 <= abs(value) < 1e9:
        return f"{value:.1f}".removesuffix(".0")
    return number(value, digits).replace(",", "")


def moment(value: float, unit: str | None) -> str:
    """Write a point in time: ``53 months``, ``time 53`` without a unit, a year of the calendar."""
    if unit == "years" and 1000 <= value < 10_000:
        return point(value)
    return f"{point(value)} {unit}" if unit else f"time {point(value)}"


def when(value: float, axis: TimeAxis) -> str:
    """Write a point in time as a date where the data have dates, else as :func:`moment`."""
    return axis.date(value) or moment(value, axis.unit)


def span(start: float, stop: float, axis: TimeAxis) -> str:
    """Write a stretch of time: ``3 to 6 months``, or from date to date."""
    return f"{axis.date(start) or point(start)} to {when(stop, axis)}"


def window_span(start: float, stop: float, axis: TimeAxis) -> str:
    """Write an observation window: dates first, with the times that they stand for."""
    times, unit = f"{point(start, 4)} to {point(stop, 4)}", axis.unit
    first, last = axis.date(start), axis.date(stop)
    if first is None or last is None:
        return f"{times} {unit or '(unit of time not stated)'}"
    return f"{first} to {last} ({unit} {times})"


def percent(level: float) -> str:
    """Write a level: ``95%``, ``99.5%``."""
    return f"{100 * level:.4g}%"


def listed(items: Sequence[str]) -> str:
    """Join words: ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"
