"""Weakly informative priors of the hyper-parameters, in units of the data.

With the window at [0, 1] and the mean rate at 1 (docs/maths_engine.md, section 4):

* length-scale: ln a even between ln 0.03 and ln 0.6, with soft ends (a uniform variable plus
  N(0, 0.3²)): curves vary on scales between a thirtieth and about half of the window. Without
  the lower end, counts that cluster within visits are explained by spikes of the rate;
* relative variation: ln(√γ / g) ~ N(ln 0.3, 1), the standard deviation of f relative to its
  mean: it shrinks towards a constant rate.
  Beside a trend the curve does not vary at all with probability ½;
* level: ln(g² + γ) ~ N(0, 1), wide around the mean rate seen.

Parameters of the laws of counts and effects have priors of their own (`gp4c.model.laws`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Floats = NDArray[np.float64]

#: ends of the even part of ln a, and their softness
LENGTH_SCALE = (float(np.log(0.03)), float(np.log(0.6)), 0.3)
VARIATION = (float(np.log(0.3)), 1.0)
#: u that stands for a curve that does not vary: it does by less than 0.1%
STEADY = -7.0
LEVEL = (0.0, 1.0)


def normal_log_density(x: Floats, mean: Floats | float, deviation: float) -> Floats:
    """Log density of a normal variable."""
    z = (x - mean) / deviation
    return np.asarray(-0.5 * z * z - np.log(deviation) - 0.5 * np.log(2 * np.pi))


def soft_uniform_log_density(x: float, low: float, high: float, softness: float) -> float:
    """Log density of a uniform plus a normal variable.

    The density is (Φ((x − low)/s) − Φ((x − high)/s)) / (high − low); by symmetry the tail that
    is evaluated is always the accurate one.
    """
    x = min(x, low + high - x)
    log_upper = float(log_ndtr((x - low) / softness))
    log_lower = float(log_ndtr((x - high) / softness))
    return log_upper + float(np.log1p(-np.exp(log_lower - log_upper)) - np.log(high - low))
