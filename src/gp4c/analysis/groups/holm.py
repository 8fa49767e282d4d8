"""Holm's adjustment for several comparisons, of p-values and of intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def holm(p_values: Floats) -> Floats:
    """Holm's step-down adjustment: the i-th smallest of m times m − i + 1, never decreasing."""
    order = np.argsort(p_values)
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def holm_levels(p_values: Floats, alpha: float) -> Floats:
    """Levels of intervals that agree with the adjusted p-values.

    The i-th smallest p-value is compared with α / (m − i + 1) until one, the j-th, is larger; all
    further ones are kept. So the interval of the i-th has the level 1 − α / (m − min(i, j) + 1): it
    leaves out the hypothesis if and only if the adjusted p-value is at most α.
    """
    order = np.argsort(p_values)
    shares = np.arange(len(p_values), 0, -1)
    above = np.flatnonzero(p_values[order] * shares > alpha * (1 + 1e-9))
    first_kept = above[0] if len(above) else len(p_values) - 1
    levels = np.empty(len(p_values))
    levels[order] = 1 - alpha / shares[np.minimum(np.arange(len(p_values)), first_kept)]
    return levels
