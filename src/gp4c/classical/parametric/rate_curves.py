r"""Shapes of a rate over time, integrated in closed form.

The expected number of a row is ρ · e · e^{βᵀz} · H(a, b; g), H the integral of the shape there
(docs/maths_growth.md). A curve gives ln H with two derivatives in its one shape parameter g, and
says what its classical parameters are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gp4c.classical.visit_cells import Floats

#: arguments of hyperbolic functions below which their series are used
_SMALL = 0.05
#: earliest time, as a share of T, at which the rate of a power law is given
_EARLIEST = 1e-3
#: ln H with its first and second derivative in g
Derivatives = tuple[Floats, Floats, Floats]
#: ln ρ as a function of g where some parameter is held at a value, with two derivatives
Held = Callable[[float, float], tuple[float, float, float]]


@dataclass(frozen=True)
class Derived:
    """A classical parameter, on a scale y where its likelihood is most regular.

    Attributes
    ----------
    value : callable
        The parameter at y.
    position : callable, optional
        y at (ln ρ, g); without it y is g itself.
    held : callable, optional
        ln ρ where y is held, as a function of y and g, with two derivatives in g.
    """

    value: Callable[[float], float]
    position: Callable[[float, float], float] | None = None
    held: Held | None = None

    def at(self, level: float, g: float) -> float:
        """y at ln ρ and g."""
        return g if self.position is None else self.position(level, g)


class RateCurve(ABC):
    """A family of shapes on the time axis, of D − 1 parameters besides the level ln ρ.

    Attributes
    ----------
    limits : tuple of (float, float)
        Least and largest g, one pair for each shape parameter.
    """

    limits: ClassVar[tuple[tuple[float, float], ...]] = ()
    #: before this time nothing happens
    origin: ClassVar[float] = -np.inf

    @abstractmethod
    def log_integral(self, start: Floats, stop: Floats, g: float | Floats) -> Derivatives:
        """ln H of intervals."""

    @abstractmethod
    def log_rate(self, time: Floats, g: float | Floats) -> tuple[Floats, Floats]:
        """ln of the shape at times, and its derivative in g."""

    def derived(self, end: float) -> Mapping[str, Derived]:
        """Classical parameters by name, `end` being now."""
        return {}


@dataclass(frozen=True)
class ConstantCurve(RateCurve):
    """H = b − a."""

    def log_integral(self, start: Floats, stop: Floats, g: float | Floats) -> Derivatives:
        """ln(b − a)."""
        none = np.zeros_like(start)
        return np.log(stop - start), none, none

    def log_rate(self, time: Floats, g: float | Floats) -> tuple[Floats, Floats]:
        """0."""
        return np.zeros_like(time), np.zeros_like(time)


@dataclass(frozen=True)
class PowerCurve(RateCurve):
    """H = (b/T)^β − (a/T)^β, g = ln β, T a time of the order of the last visit.

    ρ is the expected number of events from 0 to T. The rate is ρ (β/T) (t/T)^{β−1}.
    """

    unit: float
    limits: ClassVar[tuple[tuple[float, float], ...]] = ((np.log(1e-3), np.log(1e3)),)
    origin: ClassVar[float] = 0.0

    def log_integral(self, start: Floats, stop: Floats, g: float | Floats) -> Derivatives:
        """With u = ln(b/T) and w = ln(b/a): βu + ln(1 − e^{−βw})."""
        beta = np.exp(g)
        u = np.log(stop / self.unit)
        with np.errstate(divide="ignore"):
            w = np.log(stop) - np.log(start)  # infinite from 0 on: that term vanishes
        x = np.minimum(beta * w, 700.0)
        by_beta = u + x / np.expm1(x) / beta
        by_beta_twice = -((x / (2.0 * np.sinh(x / 2.0))) ** 2) / beta**2
        value = beta * u + np.log(-np.expm1(-x))
        return value, beta * by_beta, beta * by_beta + beta**2 * by_beta_twice

    def log_rate(self, time: Floats, g: float | Floats) -> tuple[Floats, Floats]:
        """ln(β/T) + (β − 1) ln(t/T), from T/1000 on: at 0 a falling rate is infinite."""
        beta = np.exp(g)
        log_time = np.log(np.maximum(time / self.unit, _EARLIEST))
        return g - np.log(self.unit) + (beta - 1.0) * log_time, 1.0 + beta * log_time

    def derived(self, end: float) -> Mapping[str, Derived]:
        """Shape β, scale η of Λ = (t/η)^β, MTBF now 1/λ(end), growth rate 1 − β."""
        log_unit, far = float(np.log(self.unit)), float(np.log(end / self.unit))

        def scale_held(y: float, g: float) -> tuple[float, float, float]:
            level = float(np.exp(g)) * (log_unit - y)
            return level, level, level

        def mtbf_held(y: float, g: float) -> tuple[float, float, float]:
            bent = -float(np.exp(g)) * far
            return log_unit - y - g + bent + far, bent - 1.0, bent

        def mtbf(level: float, g: float) -> float:
            return log_unit - level - g - (float(np.exp(g)) - 1.0) * far

        return {
            "shape": Derived(_exp),
            "scale": Derived(_exp, lambda a, g: log_unit - a / float(np.exp(g)), scale_held),
            "mtbf": Derived(_exp, mtbf, mtbf_held),
        }


@dataclass(frozen=True)
class LogLinearCurve(RateCurve):
    """H = ∫ e^{γ(t − c)} dt, g = γ L: c and L are middle and length of the window.

    ρ is the rate at c.
    """

    middle: float
    length: float
    limits: ClassVar[tuple[tuple[float, float], ...]] = ((-60.0, 60.0),)

    def log_integral(self, start: Floats, stop: Floats, g: float | Floats) -> Derivatives:
        """With m the middle of (a, b] and x = γ(b − a)/2: γ(m − c) + ln(b − a) + ln(sinh x / x)."""
        off = ((start + stop) / 2.0 - self.middle) / self.length
        half = (stop - start) / 2.0 / self.length
        value, first, second = _log_sinhc(g * half)
        return (
            g * off + np.log(stop - start) + value, off + half * first, half**2 * second,
        )  # fmt: skip

    def log_rate(self, time: Floats, g: float | Floats) -> tuple[Floats, Floats]:
        """γ(t − c)."""
        off = (time - self.middle) / self.length
        return g * off, off

    def derived(self, end: float) -> Mapping[str, Derived]:
        """Slope γ, rate at time 0, MTBF now 1/λ(end)."""
        length, zero = self.length, self.middle / self.length
        now = (end - self.middle) / self.length
        return {
            "slope": Derived(lambda y: y / length),
            "scale": Derived(
                _exp, lambda a, g: a - g * zero, lambda y, g: (y + g * zero, zero, 0.0)
            ),
            "mtbf": Derived(
                _exp, lambda a, g: -a - g * now, lambda y, g: (-y - g * now, -now, 0.0)
            ),
        }


def _exp(y: float) -> float:
    """e^y, 0 or infinite beyond the numbers."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(y))


def _log_sinhc(x: Floats) -> Derivatives:
    """ln(sinh x / x) with derivatives coth x − 1/x and 1/x² − 1/sinh² x; by series near 0."""
    y = x * x
    near = np.abs(x) < _SMALL
    far = np.where(near, 1.0, x)
    size = np.abs(far)
    damped = np.exp(-2.0 * size)
    value = np.where(
        near, y / 6 - y**2 / 180 + y**3 / 2835, size + np.log((1.0 - damped) / (2.0 * size))
    )
    first = np.where(near, x / 3 - x * y / 45 + 2 * x * y**2 / 945, 1 / np.tanh(far) - 1 / far)
    steep = 4.0 * damped / (1.0 - damped) ** 2  # 1/sinh²
    second = np.where(near, 1 / 3 - y / 15 + 2 * y**2 / 189, 1 / far**2 - steep)
    return value, first, second
