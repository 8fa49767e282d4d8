"""Weakly informative priors of the hyper-parameters, in units of the data.

With the window at [0, 1] and the mean rate at 1 (docs/maths.md, section 10):

* length-scale: ln a even between ln 0.03 and ln 0.6, with soft ends (a uniform variable plus
  N(0, 0.3²)): curves vary on scales between a thirtieth and about half of the window. Without
  the lower end, counts that cluster within visits are explained by spikes of the rate;
* relative variation: ln(√γ / g) ~ N(ln 0.3, 1), the standard deviation of f relative to its
  mean: it shrinks towards a constant rate;
* level: ln(g² + γ) ~ N(0, 1), wide around the mean rate seen;
* frailty: ln α ~ N(0, 2²).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Floats = NDArray[np.float64]

#: ends of the even part of ln a, and their softness
LENGTH_SCALE = (float(np.log(0.03)), float(np.log(0.6)), 0.3)
VARIATION = (float(np.log(0.3)), 1.0)
LEVEL = (0.0, 1.0)
SHAPE = (0.0, 2.0)
#: below this a mean is counted as zero, where the relative variation is not defined
_TINY_MEAN = 1e-3


def weak_prior(vector: Floats) -> tuple[float, Floats]:
    """Log density in the coordinates (ln a, ln γ, g, ln α), and its gradient.

    With u = ln(√γ/g) and l = ln(g² + γ), |∂(u, l)/∂(ln γ, g)| = 1/g. A prior mean fixed at zero
    leaves the level γ alone. An infinite α (no frailty) has no prior.
    """
    log_a, log_gamma, g, log_alpha = vector
    gradient = np.zeros(4)
    value, gradient[0] = _soft_uniform(log_a, *LENGTH_SCALE)
    gamma = np.exp(log_gamma)
    level = g * g + gamma
    log_level, by_level = _normal(np.log(level), *LEVEL)
    value += log_level
    gradient[1] += by_level * gamma / level
    gradient[2] += by_level * 2 * g / level
    if g > _TINY_MEAN:
        variation, by_variation = _normal(log_gamma / 2 - np.log(g), *VARIATION)
        value += variation - np.log(g)
        gradient[1] += by_variation / 2
        gradient[2] -= (by_variation + 1) / g
    if np.isfinite(log_alpha):
        shape, gradient[3] = _normal(log_alpha, *SHAPE)
        value += shape
    return float(value), gradient


def _normal(x: float, mean: float, deviation: float) -> tuple[float, float]:
    """Log density of a normal variable and its derivative."""
    z = (x - mean) / deviation
    return -0.5 * z * z - np.log(deviation) - 0.5 * np.log(2 * np.pi), -z / deviation


def _soft_uniform(x: float, low: float, high: float, softness: float) -> tuple[float, float]:
    """Log density of a uniform plus a normal variable, and its derivative.

    The density is (Φ((x − low)/s) − Φ((x − high)/s)) / (high − low); by symmetry the tail that
    is evaluated is always the accurate one.
    """
    middle = (low + high) / 2
    if x > middle:
        value, slope = _soft_uniform(2 * middle - x, low, high, softness)
        return value, -slope
    upper, lower = (x - low) / softness, (x - high) / softness
    log_upper = float(log_ndtr(upper))
    log_mass = log_upper + float(np.log1p(-np.exp(log_ndtr(lower) - log_upper)))
    log_peaks = -0.5 * np.array([upper, lower]) ** 2 - 0.5 * np.log(2 * np.pi)
    rise, fall = np.exp(log_peaks - log_mass)
    return log_mass - float(np.log(high - low)), float((rise - fall) / softness)
