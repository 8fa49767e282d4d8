"""Quantiles of weighted draws, and of distributions whose distribution function is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]

#: what the level of a band is the probability of: each time by itself, or the whole curve
BAND_KINDS = ("pointwise", "simultaneous")
#: draws of the sample, and c: the sample fails to enclose one quantile in 300
_SAMPLE, _DEVIATIONS = 1000, 3.0


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


def quadratic_form_cdf(x: Floats, mean: Floats, variance: Floats, third: Floats) -> Floats:
    """Approximate distribution function of a positive quadratic form in Gaussians.

    Jensen and Solomon's (1972): with θ₁ = κ₁, θ₂ = κ₂/2, θ₃ = κ₃/8 and h = 1 − 2θ₁θ₃/3θ₂², the
    power (Q/θ₁)ʰ is nearly normal with mean 1 + θ₂h(h − 1)/θ₁² and standard deviation
    |h| √(2θ₂)/θ₁. It uses the exact first three cumulants and keeps to positive values; h = 1/3
    is Wilson and Hilferty's cube root for χ².
    """
    scale = np.where(mean > 0, mean, 1.0)
    spread = np.maximum(variance, 1e-30 * scale**2) / (2 * scale**2)  # θ₂/θ₁²
    skew = np.maximum(third, 0.0) / (8 * scale**3)  # θ₃/θ₁³
    h = 1 - 2 * skew / (3 * spread**2)
    h = np.where(np.abs(h) < 1e-3, 1e-3, np.clip(h, -5.0, 5.0))
    centre = 1 + spread * h * (h - 1)
    with np.errstate(divide="ignore", over="ignore"):
        power = (np.maximum(x, 0.0) / scale) ** h
    inside = ndtr((power - centre) / (h * np.sqrt(2 * spread)))
    return np.asarray(np.where(mean > 0, inside, 1.0))  # an empty form is 0


def weighted_quantiles(values: Floats, weights: Floats, levels: Floats) -> Floats:
    r"""Quantiles of each row of values under the weights of its columns, (levels, rows).

    Linear between the points (½w₁, x₁), (w₁ + ½w₂, x₂), … of the sorted row.

    Notes
    -----
    Not all draws are sorted. With n of them taken in proportion to their weights, the order
    statistics of ranks :math:`np \pm c\sqrt{np(1-p)}` enclose the p-quantile but for a small
    chance. The draws between these two, sorted, and the weight below them give it exactly. Where
    they turn out not to enclose it, the whole row is sorted.
    """
    result = np.empty((len(levels), len(values)))
    targets = levels * weights.sum()
    low, high = _enclosing(values, weights, levels)
    for i, row in enumerate(values):
        found = [
            _between(row, weights, target, least, most)
            for target, least, most in zip(targets, low[i], high[i], strict=True)
        ]
        result[:, i] = _of_all(row, weights, targets) if None in found else found
    return result


def _enclosing(values: Floats, weights: Floats, levels: Floats) -> tuple[Floats, Floats]:
    """Values that are likely to enclose the quantiles: (rows, levels) each."""
    if values.shape[1] <= 2 * _SAMPLE:
        whole = np.full((len(values), len(levels)), np.inf)
        return -whole, whole
    ends = np.cumsum(weights)
    who = np.searchsorted(ends, (np.arange(_SAMPLE) + 0.5) / _SAMPLE * ends[-1])
    ranked = np.empty((len(values), _SAMPLE + 2))
    ranked[:, 0], ranked[:, -1] = -np.inf, np.inf
    ranked[:, 1:-1] = np.sort(values[:, np.minimum(who, len(weights) - 1)], axis=1)
    margin = _DEVIATIONS * np.sqrt(_SAMPLE * levels * (1 - levels)) + 1.0
    first = np.maximum(np.floor(_SAMPLE * levels - margin), 0).astype(np.intp)
    last = np.minimum(np.ceil(_SAMPLE * levels + margin), _SAMPLE + 1).astype(np.intp)
    return ranked[:, first], ranked[:, last]


def _between(row: Floats, weights: Floats, target: float, low: float, high: float) -> float | None:
    """The quantile of a row if it is among the draws from `low` to `high`; else None."""
    some = np.flatnonzero((row >= low) & (row <= high))
    some = some[np.argsort(row[some])]
    inside = weights[some]
    positions = np.cumsum(inside) - inside / 2 + (row < low) @ weights
    at = int(positions.searchsorted(target))
    if at == 0 or at == len(some):  # an end of the row, too, is left to the sorted row
        return None
    share = (target - positions[at - 1]) / (positions[at] - positions[at - 1])
    return float((1 - share) * row[some[at - 1]] + share * row[some[at]])


def _of_all(row: Floats, weights: Floats, targets: Floats) -> Floats:
    """Quantiles of a row from all its draws."""
    order = np.argsort(row)
    positions = np.cumsum(weights[order]) - weights[order] / 2
    return np.asarray(np.interp(targets, positions, row[order]))
