"""What weighted draws say of a quantity: medians, and intervals with equal tails."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.posterior.quantiles import weighted_quantiles

Floats = NDArray[np.float64]


def equal_tails(level: float) -> list[float]:
    """Probabilities below the ends of an interval with equal tails."""
    return [(1 - level) / 2, (1 + level) / 2]


def credible_interval(values: Floats, weights: Floats, level: float) -> tuple[float, float]:
    """Interval with equal tails of a quantity (S,) with a value in each draw."""
    low, high = weighted_quantiles(values[None], weights, np.array(equal_tails(level)))[:, 0]
    return float(low), float(high)


def medians(params: Floats, weights: Floats) -> Floats:
    """Medians of parameters (P, S) over the draws, (P,)."""
    if not len(params):
        return np.zeros(0)
    return np.asarray(weighted_quantiles(params, weights, np.array([0.5]))[0])
