r"""Gamma frailty with mean 1, integrated out.

A subject with N events and cumulative exposure L = ∫ of its rate has, given its frailty γ,
likelihood ∝ γ^N e^{-γL}. With γ ~ Gamma(shape 1/v, rate 1/v), mean 1 and variance v,

.. math::
    \log E\,\gamma^N e^{-\gamma L}
    = \sum_{k<N} \log(1 + k v) - (1/v + N) \log(1 + v L) ,

which is −L at v = 0 (no frailty). The variance is used rather than the shape α = 1/v, so that
"no overdispersion" is the ordinary point v = 0. Every function keeps its digits as v → 0.
:class:`gp4c.model.laws.effects.GammaEffect` has the same integral for many α at once, with second
derivatives; it cancels as v → 0, which the prior of ln α keeps it away from.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

Floats = NDArray[np.float64]

#: from this shape on, Stirling's series (seven terms) is exact to rounding and does not cancel
_STIRLING_SHAPE = 30.0
#: arguments below which log(1 + x) − x is taken from its series
_SMALL = 0.05
#: frailty variances looked at before the best one is refined
_VARIANCES = np.concatenate([[0.0], np.logspace(-10, 10, 81)])


def log_marginal(variance: float, events: Floats, exposure: Floats) -> Floats:
    """Log marginal likelihood of each subject given its events N and exposure L, (K,)."""
    if variance == 0.0:
        return -exposure
    hazard = np.log1p(variance * exposure)
    return _log_rising(variance, events) - events * hazard - hazard / variance


def frailty_mean(variance: float, events: Floats, exposure: Floats) -> Floats:
    """Posterior mean of each subject's frailty, (α + N) / (α + L), (K,)."""
    return (1.0 + variance * events) / (1.0 + variance * exposure)


def variance_score(variance: float, events: Floats, exposure: Floats) -> Floats:
    """Derivative of :func:`log_marginal` in the variance, (K,).

    At 0 it is ((N − L)² − N) / 2: positive on average where counts vary more than Poisson.
    """
    y = variance * exposure
    small = y < _SMALL
    held = np.where(small, exposure, 0.0)
    slope = held**2 * _log1p_remainder(np.where(small, y, 0.0)) + held * (held - events) / (1 + y)
    if not np.all(small):  # the same expression where the terms above would cancel
        direct = np.log1p(y) / variance**2 - (1.0 / variance + events) * exposure / (1.0 + y)
        slope = np.where(small, slope, direct)
    return _rising_slope(variance, events) + slope


def best_variance(events: Floats, exposure: Floats, weights: Floats) -> float:
    r"""Maximum-likelihood frailty variance for given exposures; 0 if there is no overdispersion.

    The best of a wide grid, refined to a root of the score between its neighbours.

    Parameters
    ----------
    events, exposure, weights : (K,)
        Events, cumulative exposure and multiplicity of each subject.
    """

    def score(variance: float) -> float:
        return float(weights @ variance_score(variance, events, exposure))

    values = [float(weights @ log_marginal(v, events, exposure)) for v in _VARIANCES]
    best = int(np.argmax(values))
    if best == 0 and score(0.0) <= 0.0:
        return 0.0
    low = 0.0 if best <= 1 else float(_VARIANCES[best - 1])
    high = float(_VARIANCES[min(best + 1, len(_VARIANCES) - 1)])
    if score(low) <= 0.0 or score(high) >= 0.0:  # a local maximum at the end of the grid
        return float(_VARIANCES[best])
    return _root(score, low, high)


def refine_variance(variance: float, events: Floats, exposure: Floats, weights: Floats) -> float:
    """Root of the score nearest above or below a good guess; the full search if there is none."""
    if variance <= 0.0:
        return best_variance(events, exposure, weights)

    def score(value: float) -> float:
        return float(weights @ variance_score(value, events, exposure))

    factor = 1.02
    for _ in range(6):
        low, high = variance / factor, variance * factor
        if score(low) > 0.0 > score(high):
            return _root(score, low, high)
        factor **= 2
    return best_variance(events, exposure, weights)


def _root(score: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq  # loads slowly, and most fits need none of it

    return float(brentq(score, low, high, xtol=1e-300, rtol=1e-15, maxiter=200))


def _log_rising(variance: float, events: Floats) -> Floats:
    """Σ_{k<N} log(1 + k v)."""
    shape = 1.0 / variance
    if shape < _STIRLING_SHAPE:
        return np.asarray(
            gammaln(shape + events) - gammaln(shape) + events * np.log(variance), dtype=np.float64
        )
    x = variance * events
    return np.asarray(
        events * x * _log1p_remainder(x)
        + (events - 0.5) * np.log1p(x)
        + _stirling(shape + events)
        - _stirling(shape),
        dtype=np.float64,
    )


def _rising_slope(variance: float, events: Floats) -> Floats:
    """Σ_{k<N} k / (1 + k v), the derivative of the sum above."""
    shape = 1.0 / variance if variance > 0.0 else np.inf
    if shape < _STIRLING_SHAPE:
        gained = digamma(shape + events) - digamma(shape)
        return np.asarray(shape * (events - shape * gained), dtype=np.float64)
    x = variance * events
    main = -(events**2) * _log1p_remainder(x) - 0.5 * events / (1.0 + x)
    return np.asarray(main - _stirling_slope(variance, x), dtype=np.float64)


def _stirling(z: Floats | float) -> Floats:
    """Remainder of Stirling's series for log Γ(z)."""
    w = (1.0 / np.asarray(z)) ** 2
    return np.asarray((1 / 12 - w * (1 / 360 - w * (1 / 1260 - w / 1680))) / z, dtype=np.float64)


def _stirling_slope(variance: float, x: Floats) -> Floats:
    r"""a² Σ_j B_2j / 2j · (a^{-2j} − (a + N)^{-2j}) with a = 1/v, without cancelling.

    (a + N)^{-2j} = a^{-2j} (1 + x)^{-2j} with x = vN.
    """
    total = np.zeros_like(x)
    for j, coefficient in ((1, 1 / 12), (2, -1 / 120), (3, 1 / 252), (4, -1 / 240)):
        total += coefficient * variance ** (2 * j - 2) * -np.expm1(-2 * j * np.log1p(x))
    return total


def _log1p_remainder(x: Floats) -> Floats:
    """(log(1 + x) − x) / x², which is −1/2 at 0; by its series where the difference cancels."""
    small = np.abs(x) < _SMALL
    near, far = np.where(small, x, 0.0), np.where(small, 1.0, x)
    series = np.zeros_like(near)
    for k in range(14, 1, -1):
        series = series * near + (-1.0) ** (k - 1) / k
    return np.where(small, series, (np.log1p(far) - far) / far**2)
