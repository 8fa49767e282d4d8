"""Known event intensities to simulate from: the paper's, draws from the prior, and arrays.

An intensity is any callable from an array of times to an array of rates. Those defined here also
know their integral (``cumulative``) and a tight piecewise-constant bound from above
(``envelope``), which makes simulation from them exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.checks import check_window
from gp4c.data.subjects import FloatArray
from gp4c.exceptions import PanelDataError

Intensity: TypeAlias = Callable[[FloatArray], Any]
Window: TypeAlias = tuple[float, float]

#: hyper-parameters of the paper's Synthetic B and C: ln a = 1.0136, ln γ = 2 · (−0.2551), T = 60
PAPER_LENGTH_SCALE = float(np.exp(1.0136))
PAPER_VARIANCE = float(np.exp(-2 * 0.2551))
PAPER_WINDOW = (0.0, 60.0)
#: seeds of our draws of Synthetic B and C (the paper does not publish its own)
SYNTHETIC_B_SEED = 20181
SYNTHETIC_C_SEED = 20182

# A squared-exponential covariance is below 1e-16 of its variance at this many length-scales, and
# its spectral density below 1e-16 of its maximum at this many inverse length-scales.
_NEGLIGIBLE = 8.6


@runtime_checkable
class BoundedIntensity(Protocol):
    """An intensity that knows a piecewise-constant bound from above."""

    def __call__(self, time: ArrayLike) -> FloatArray:
        """Rate at each time."""
        ...

    def envelope(self, window: Window) -> tuple[FloatArray, FloatArray]:
        """Edges (n + 1,) from one end of the window to the other, and bounds (n,) between them."""
        ...


@dataclass(frozen=True)
class SquareWave:
    """Alternate between two rates, starting with `high` at time 0.

    The default is the paper's Synthetic A: 7 where ⌊t/10⌋ is even, 2 where it is odd.

    Parameters
    ----------
    high, low : float
        The two rates.
    period : float
        Length of one high and one low stretch together.
    """

    high: float = 7.0
    low: float = 2.0
    period: float = 20.0

    def __call__(self, time: ArrayLike) -> FloatArray:
        """Rate at each time."""
        half_periods = np.floor(np.asarray(time, dtype=np.float64) / (self.period / 2))
        return np.where(half_periods % 2 == 0, self.high, self.low)

    def cumulative(self, time: ArrayLike) -> FloatArray:
        """Integral of the rate from 0 to each time."""
        time = np.asarray(time, dtype=np.float64)
        periods = np.floor(time / self.period)
        rest = time - periods * self.period
        in_high = np.minimum(rest, self.period / 2)
        per_period = (self.high + self.low) * self.period / 2
        return np.asarray(periods * per_period + self.high * in_high + self.low * (rest - in_high))

    def envelope(self, window: Window) -> tuple[FloatArray, FloatArray]:
        """Edges at the jumps inside the window; between them the bound is the rate itself."""
        half = self.period / 2
        first, last = np.floor(window[0] / half) + 1, np.ceil(window[1] / half)
        jumps = np.arange(first, last) * half
        inside = jumps[(jumps > window[0]) & (jumps < window[1])]
        edges = np.concatenate([[window[0]], inside, [window[1]]])
        # the middle of a piece is clear of the rounding at its ends
        return edges, self((edges[:-1] + edges[1:]) / 2)


class _Interpolated:
    """What intensities known on a grid of times share."""

    grid: FloatArray
    values: FloatArray

    def _interpolate(self, time: ArrayLike) -> FloatArray:
        time = np.asarray(time, dtype=np.float64)
        _check_covers(self.grid, float(time.min(initial=np.inf)), float(time.max(initial=-np.inf)))
        return cast(FloatArray, np.interp(time, self.grid, self.values))

    def _knots(self, window: Window) -> FloatArray:
        """List the ends of the window and the grid points between them."""
        _check_covers(self.grid, *window)
        inside = (self.grid > window[0]) & (self.grid < window[1])
        return np.concatenate([[window[0]], self.grid[inside], [window[1]]])

    def __call__(self, time: ArrayLike) -> FloatArray:
        """Rate at each time."""
        raise NotImplementedError

    def envelope(self, window: Window) -> tuple[FloatArray, FloatArray]:
        """Edges at the grid points: a line, and its square, is highest at one of its ends."""
        edges = self._knots(window)
        rate = self(edges)
        return edges, np.maximum(rate[:-1], rate[1:])


@dataclass(frozen=True, eq=False)
class GridIntensity(_Interpolated):
    """A rate known on a grid of times, linear between them.

    Parameters
    ----------
    grid : array (n,)
        Increasing times.
    values : array (n,)
        Non-negative rates at these times.
    """

    grid: FloatArray
    values: FloatArray

    def __post_init__(self) -> None:
        _freeze_grid(self)
        if (self.values < 0).any():
            place = int(np.argmax(self.values < 0))
            raise PanelDataError(
                "an intensity must not be negative; "
                f"it is {self.values[place]:g} at time {self.grid[place]:g}"
            )

    def __call__(self, time: ArrayLike) -> FloatArray:
        """Rate at each time, by linear interpolation."""
        return self._interpolate(time)

    def cumulative(self, time: ArrayLike) -> FloatArray:
        """Integral of the rate from the grid's first point to each time, exact."""
        steps = np.diff(self.grid) * (self.values[1:] + self.values[:-1]) / 2
        at_grid = np.concatenate([[0.0], np.cumsum(steps)])
        cell, step = _locate(self.grid, time)
        rate = self(time)
        return np.asarray(at_grid[cell] + step * (self.values[cell] + rate) / 2)


@dataclass(frozen=True, eq=False)
class SquaredGridIntensity(_Interpolated):
    """The square of a function known on a grid of times and linear between them.

    As the paper does for Synthetic B and C: interpolate f, then square.

    Parameters
    ----------
    grid : array (n,)
        Increasing times.
    values : array (n,)
        The function f at these times, of any sign; the rate is f².
    """

    grid: FloatArray
    values: FloatArray

    def __post_init__(self) -> None:
        _freeze_grid(self)

    def __call__(self, time: ArrayLike) -> FloatArray:
        """Rate at each time."""
        return np.asarray(self._interpolate(time) ** 2)

    def cumulative(self, time: ArrayLike) -> FloatArray:
        """Integral of the rate from the grid's first point to each time, exact."""
        f = self.values
        # ∫ of the square of a line over a step h from f₀ to f₁ is h (f₀² + f₀f₁ + f₁²) / 3
        steps = np.diff(self.grid) * (f[:-1] ** 2 + f[:-1] * f[1:] + f[1:] ** 2) / 3
        at_grid = np.concatenate([[0.0], np.cumsum(steps)])
        cell, step = _locate(self.grid, time)
        f0, f1 = f[cell], self._interpolate(time)
        return np.asarray(at_grid[cell] + step * (f0**2 + f0 * f1 + f1**2) / 3)


def gp_squared(
    *,
    length_scale: float = PAPER_LENGTH_SCALE,
    variance: float = PAPER_VARIANCE,
    mean: float = 0.0,
    window: Window = PAPER_WINDOW,
    n_grid: int = 3001,
    random_state: int | np.random.Generator | None = None,
) -> SquaredGridIntensity:
    r"""Draw an intensity from the prior: the square of a Gaussian process.

    .. math:: \lambda(t) = f(t)^2, \quad f \sim \mathcal{GP}(g, k), \quad
        k(t, t') = \gamma \exp\bigl(-(t - t')^2 / 2a^2\bigr)

    The draw is a sum of sines and cosines with the spectral weights of the kernel repeated at a
    distance where it is below 1e-16 of its variance: exact to rounding, and without the nearly
    singular covariance matrix of a fine grid.

    Parameters
    ----------
    length_scale, variance : float
        a and γ; by default those of the paper's Synthetic B and C.
    mean : float
        g, the mean of f.
    window : (float, float)
        Where the intensity is defined.
    n_grid : int
        Number of evenly spaced points; f is linear between them.
    random_state : int, Generator or None
        Seed of the draw.

    Returns
    -------
    SquaredGridIntensity

    Examples
    --------
    >>> from gp4c.data.simulate.intensities import gp_squared
    >>> rate = gp_squared(length_scale=5.0, variance=1.0, window=(0, 100), random_state=1)
    >>> rate([0.0, 50.0]).shape
    (2,)
    """
    window = check_window(window, np.inf, -np.inf)
    if not (length_scale > 0 and variance > 0):
        raise PanelDataError(
            "length_scale and variance must be positive; "
            f"they are {length_scale:g} and {variance:g}"
        )
    rng = np.random.default_rng(random_state)
    grid = np.linspace(*window, n_grid)
    frequency, weight = _spectrum(length_scale, variance, window[1] - window[0])
    amplitude = rng.standard_normal((2, len(frequency))) * np.sqrt(weight)
    phase = np.outer(grid - window[0], frequency)
    f = mean + np.cos(phase) @ amplitude[0] + np.sin(phase) @ amplitude[1]
    return SquaredGridIntensity(grid, f)


def _spectrum(length_scale: float, variance: float, length: float) -> tuple[FloatArray, FloatArray]:
    r"""Frequencies ω and weights w with k(d) = Σ w cos(ω d) for distances up to `length`.

    The Fourier series of the kernel repeated with period L = `length` + 8.6 a has the weights
    (√(2π) a γ / L) e^{−a²ω²/2} at ω = 2πj/L (Poisson's summation formula), doubled for j > 0.
    """
    period = length + _NEGLIGIBLE * length_scale
    n_terms = int(np.ceil(_NEGLIGIBLE * period / (2 * np.pi * length_scale)))
    frequency = np.arange(n_terms + 1, dtype=np.float64) * (2 * np.pi / period)
    weight = np.sqrt(2 * np.pi) * length_scale * variance / period
    weights = weight * np.exp(-((length_scale * frequency) ** 2) / 2)
    weights[1:] *= 2
    return frequency, weights


def square_wave() -> SquareWave:
    """Build the paper's Synthetic A: 7 and 2 in turn, period 20."""
    return SquareWave()


def synthetic_b() -> SquaredGridIntensity:
    """Draw our Synthetic B: the paper's prior with seed 20181 (its own draw is not published)."""
    return gp_squared(random_state=SYNTHETIC_B_SEED)


def synthetic_c() -> SquaredGridIntensity:
    """Draw our Synthetic C: the paper's prior with seed 20182 (its own draw is not published)."""
    return gp_squared(random_state=SYNTHETIC_C_SEED)


#: the intensities that ``simulate_panel`` knows by name
NAMED: dict[str, Callable[[], Intensity]] = {
    "square_wave": square_wave,
    "synthetic_a": square_wave,
    "synthetic_b": synthetic_b,
    "synthetic_c": synthetic_c,
}


def as_intensity(intensity: object, window: Window) -> Intensity:
    """Turn a name, a callable, an array or a pair (times, rates) into a callable.

    An array is the rate on an even grid over the window, a pair its times and rates.
    """
    if isinstance(intensity, str):
        return _by_name(intensity)
    if callable(intensity):
        return intensity
    if isinstance(intensity, tuple) and len(intensity) == 2 and np.ndim(intensity[0]) == 1:
        return GridIntensity(np.asarray(intensity[0]), np.asarray(intensity[1]))
    values = np.asarray(intensity)
    if values.ndim == 0:
        values = np.full(2, values)
    return GridIntensity(np.linspace(*window, len(values)), values)


def _by_name(name: str) -> Intensity:
    if name not in NAMED:
        known = ", ".join(repr(known) for known in NAMED)
        raise PanelDataError(f"there is no intensity {name!r}; the named ones are {known}")
    return NAMED[name]()


def _freeze_grid(intensity: _Interpolated) -> None:
    """Check a grid and its values once and store them read-only."""
    grid = np.array(intensity.grid, dtype=np.float64)
    values = np.array(intensity.values, dtype=np.float64)
    if grid.ndim != 1 or grid.shape != values.shape or len(grid) < 2:
        raise PanelDataError(
            "an intensity on a grid needs at least two times and as many values; "
            f"the shapes are {grid.shape} and {values.shape}"
        )
    if not (np.isfinite(grid).all() and (np.diff(grid) > 0).all()):
        raise PanelDataError("the times of an intensity on a grid must be finite and increase")
    if not np.isfinite(values).all():
        place = int(np.argmin(np.isfinite(values)))
        raise PanelDataError(
            f"an intensity must be finite; it is {values[place]:g} at time {grid[place]:g}"
        )
    for name, array in (("grid", grid), ("values", values)):
        array.flags.writeable = False
        object.__setattr__(intensity, name, array)


def _check_covers(grid: FloatArray, start: float, stop: float) -> None:
    """Refuse times outside the grid; NaN is left to the caller to find in the result."""
    if start < grid[0] or stop > grid[-1]:
        raise PanelDataError(
            f"this intensity is known on [{grid[0]:g}, {grid[-1]:g}] only; "
            f"it was asked for on [{start:g}, {stop:g}]"
        )


def _locate(grid: FloatArray, time: ArrayLike) -> tuple[NDArray[np.intp], FloatArray]:
    """Cell of the grid that holds each time, and the distance from the cell's left end."""
    time = np.asarray(time, dtype=np.float64)
    cell = np.clip(np.searchsorted(grid, time, side="right") - 1, 0, len(grid) - 2)
    return cell, time - grid[cell]
