r"""Trends: factors of the rate that go one way.

The logarithm of a trend is w · ¾ x(t) with one coefficient. x is 0 in the middle of the window and
1 at its end, so that the log rate changes by N(0, ¾²) from the middle to the end: by a factor
between 1/4.3 and 4.3 with 95% of the prior, whatever the unit of time.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gp4c.data.timeaxis import MICROSECONDS
from gp4c.exceptions import PanelDataError
from gp4c.model.modulation.modulator import Modulator
from gp4c.plain import singular

Floats = NDArray[np.float64]

#: prior deviation of the change of the log rate from the middle of the window to its end
HALF_CHANGE = 0.75
#: panels shrink by this factor towards the time 0 of a power, so many times: ∫ t^-0.6 from 0 errs
#: by less than 1e-3
_GRADE, _GRADES = 4.0, 12
#: least time at which the rate of a power is shown, in windows
_LEAST_SHOWN = 0.002
#: periods that a growth may be told per, the longest first
_PERIODS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")

#: every trend that can be asked for by name; a trend joins by being defined
TRENDS: dict[str, type[Trend]] = {}


@dataclass(frozen=True)
class Trend(Modulator):
    """A factor with one coefficient, on the clock of the curve.

    Subclasses with a `name` register themselves in `TRENDS`.

    Attributes
    ----------
    window : (t0, t1)
        In the user's time.
    """

    window: tuple[float, float]

    #: the rate follows its trend and nothing else, or deviates from it: neither is favoured
    alone = 0.5
    #: what it is called in sentences
    title: ClassVar[str]
    #: what its coefficient is called
    symbol: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            TRENDS[cls.name] = cls

    def over(self, window: tuple[float, float]) -> Self:
        """The same trend over another window."""
        return replace(self, window=window)

    @property
    def suits(self) -> bool:
        """Whether the window allows this trend."""
        return True

    def check(self) -> None:
        """Raise where the window does not allow this trend."""

    @property
    def size(self) -> int:
        """One coefficient."""
        return 1

    @property
    def method(self) -> str:
        """The trend, and what the curve is beside it."""
        return (
            f"The rate is the product of this curve and a {self.title}, whose coefficient was "
            "estimated together with the curve."
        )

    def features(self, x: Floats, inputs: Floats, goes_on: bool) -> Floats:
        """¾ x(t), (Q, 1)."""
        low, high = self.window
        inside = x if goes_on else np.clip(x, 0.0, 1.0)
        return np.asarray(HALF_CHANGE * self.shape(low + (high - low) * inside))[:, None]

    @abstractmethod
    def shape(self, times: Floats) -> Floats:
        """x(t) at times of the user: 0 in the middle of the window, 1 at its end."""

    @abstractmethod
    def coefficients(self, w: Floats) -> Floats:
        """The coefficient in the user's units, of each draw."""

    @abstractmethod
    def words(self, ends: Floats, unit: str | None, level: float) -> str:
        """A sentence about the coefficient, from its median and the ends of its interval."""


@dataclass(frozen=True)
class LogLinearTrend(Trend):
    """The rate grows by the same share in equal times: exp(c t)."""

    name = "loglinear"
    title = "log-linear trend"
    symbol = "growth of the log rate"

    def shape(self, times: Floats) -> Floats:
        """2 (t − middle) / length."""
        low, high = self.window
        return np.asarray((2 * times - low - high) / (high - low))

    def coefficients(self, w: Floats) -> Floats:
        """c, per unit of time."""
        return np.asarray(HALF_CHANGE * w * 2 / (self.window[1] - self.window[0]))

    def words(self, ends: Floats, unit: str | None, level: float) -> str:
        """As a growth per year, or the longest period that the window holds."""
        scale, period = self._period(unit)
        middle, low, high = (np.expm1(value * scale) for value in ends)
        verb = "grows" if middle >= 0 else "falls"
        if middle < 0:
            middle, low, high = -middle, -high, -low
        return (
            f"the rate {verb} by {_percent(middle)} {period} "
            f"({level:.0%}: {_percent(low)} to {_percent(high)})"
        )

    def _period(self, unit: str | None) -> tuple[float, str]:
        """Length of the longest period in the window, in the unit of time, and its name."""
        if unit not in MICROSECONDS:
            return 1.0, f"per {singular(unit)}" if unit else "per unit of time"
        length = (self.window[1] - self.window[0]) * MICROSECONDS[unit]
        for name in _PERIODS:
            if MICROSECONDS[name] <= length:
                return MICROSECONDS[name] / MICROSECONDS[unit], f"a {singular(name)}"
        return 1.0, f"a {singular(unit)}"


@dataclass(frozen=True)
class PowerTrend(Trend):
    """The rate is proportional to a power of time, t^(b − 1): Crow's law of growth."""

    name = "power"
    title = "power-law trend"
    symbol = "exponent of the mean"

    @property
    def suits(self) -> bool:
        """Powers need times from 0 on."""
        return self.window[0] >= 0

    def check(self) -> None:
        """Say so where they do not have them."""
        if not self.suits:
            raise PanelDataError(
                f"a power trend needs times from 0 on; the window starts at {self.window[0]:g}: "
                "count time from entry, or use trend='loglinear'"
            )

    def shape(self, times: Floats) -> Floats:
        """ln(t / middle) / ln(end / middle)."""
        low, high = self.window
        middle = 0.5 * (low + high)
        return np.asarray(np.log(np.maximum(times, 1e-12 * high) / middle) / np.log(high / middle))

    def coefficients(self, w: Floats) -> Floats:
        """b; the mean number of events grows like t^b."""
        low, high = self.window
        return np.asarray(1.0 + HALF_CHANGE * w / np.log(2 * high / (low + high)))

    def shown(self, x: Floats) -> Floats:
        """At time 0 a power is 0 or infinite: the rate is shown a 500th of the window later."""
        begin, end = self.window
        return np.maximum(x, -begin / (end - begin) + _LEAST_SHOWN)

    def edges(self, low: float, high: float) -> Floats:
        """Shorter and shorter panels towards time 0, where a power is steep."""
        begin, end = self.window
        zero = -begin / (end - begin)
        edges = zero + (1.0 - zero) * _GRADE ** -np.arange(_GRADES + 1.0)
        return np.asarray(edges[(edges > low) & (edges < high)])

    def words(self, ends: Floats, unit: str | None, level: float) -> str:
        """As the exponent b, and what it means."""
        middle, low, high = ends
        way = "grows" if middle >= 1 else "falls"
        return (
            f"the rate {way} with time: the mean number of events is proportional to time to the "
            f"power {middle:.2f} ({level:.0%}: {low:.2f} to {high:.2f}; 1 is no trend)"
        )


def _percent(share: float) -> str:
    """A share in per cent: two digits, or whole ones."""
    return f"{100 * share:.2g}%" if abs(share) < 0.995 else f"{100 * share:,.0f}%"
