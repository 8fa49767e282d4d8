"""Quantiles of distributions whose distribution function is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, ndtr

Floats = NDArray[np.float64]


def solve_quantiles(
    cdf: Callable[[Floats], Floats], low: Floats, high: Floats, levels: Floats
) -> Floats:
    """Invert an increasing function of (levels, points) by bisection and secants.

    Parameters
    ----------
    cdf
        Takes and returns arrays of shape (levels, points).
    low, high : (points,)
        Brackets.
    levels : (levels,)
        Probabilities.

    Returns
    -------
    (levels, points)
        To about 1e-13 of the bracket, or of the value where that is smaller.
    """
    target = levels[:, None]
    left = np.broadcast_to(low, (len(levels), len(low))).copy()
    right = np.broadcast_to(high, left.shape).copy()
    f_left, f_right = cdf(left) - target, cdf(right) - target
    for step in range(200):
        width = right - left
        if np.all(width <= 1e-14 * np.abs(right)):
            break
        middle = (left + right) / 2
        if step % 3:  # regula falsi between bisections, kept off the ends
            with np.errstate(divide="ignore", invalid="ignore"):
                guess = left - f_left * width / (f_right - f_left)
            inside = (guess > left + 1e-3 * width) & (guess < right - 1e-3 * width)
            middle = np.where(inside, guess, middle)
        f_middle = cdf(middle) - target
        below = f_middle < 0
        left, f_left = np.where(below, middle, left), np.where(below, f_middle, f_left)
        right, f_right = np.where(below, right, middle), np.where(below, f_right, f_middle)
    return np.asarray((left + right) / 2)


def simultaneous_level(draws: Floats, level: float) -> float:
    """Pointwise level whose equal-tailed band holds whole curves with probability `level`.

    Each curve is as extreme as its most extreme point, by rank among the draws there; the level
    is the quantile of that.

    Parameters
    ----------
    draws : (S, T)
        Joint draws of a curve at T points.
    """
    size = len(draws)
    ranks = np.argsort(np.argsort(draws, axis=0, kind="stable"), axis=0)
    extremeness = np.abs(2 * (ranks + 0.5) / size - 1).max(axis=1)
    return float(max(np.quantile(extremeness, level), level))


def shifted_gamma_cdf(x: Floats, mean: Floats, variance: Floats, third: Floats) -> Floats:
    """Distribution function of the shifted gamma variable with these three cumulants.

    Pearson's approximation to a quadratic form in Gaussians: exact for one central χ² variable,
    and normal in the limit of no skewness. κ₃ > 0 for every such form.
    """
    deviation = np.sqrt(np.maximum(variance, 1e-200))
    z = (x - mean) / deviation
    skewness = np.maximum(third, 0.0) / np.maximum(deviation**3, 1e-300)
    nearly_normal = skewness < 1e-4
    shape = 4.0 / np.where(nearly_normal, 1.0, skewness) ** 2
    argument = np.maximum(shape + z * np.sqrt(shape), 0.0)
    return np.asarray(np.where(nearly_normal, ndtr(z), gammainc(shape, argument)))
