"""Relative variation and level: the coordinates in which the prior of (γ, g) is simple."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.hyper import MEAN_BOUNDS, VARIANCE_BOUNDS
from gp4c.inference.sparse_prior import Hyper

Floats = NDArray[np.float64]


class Coordinates:
    """(s, l) = (ln √γ/g, ln(g² + γ)); for a fixed mean s = ln γ alone, and l is not used.

    |∂(ln γ, g)/∂(s, l)| = g.
    """

    def __init__(self, hyper: Hyper, free_mean: bool):
        self.base, self.free_mean = hyper, free_mean

    def of(self, hyper: Hyper) -> tuple[float, float]:
        """Coordinates of these hyper-parameters."""
        if not self.free_mean:
            return float(np.log(hyper.variance)), 0.0
        ratio = np.sqrt(hyper.variance) / hyper.mean
        return float(np.log(ratio)), float(np.log(hyper.mean**2 + hyper.variance))

    def hyper(self, s: float, level: float) -> Hyper | None:
        """The hyper-parameters there; None outside their limits."""
        if not self.free_mean:
            there = replace(self.base, variance=float(np.exp(s)))
        else:
            mean_square = np.exp(level) / (1 + np.exp(2 * s))
            variance = float(mean_square * np.exp(2 * s))
            there = replace(self.base, variance=variance, mean=float(np.sqrt(mean_square)))
        inside = VARIANCE_BOUNDS[0] < there.variance < VARIANCE_BOUNDS[1]
        inside &= not self.free_mean or MEAN_BOUNDS[0] < there.mean < MEAN_BOUNDS[1]
        return there if inside else None

    def direction(self, hyper: Hyper) -> tuple[Floats, Floats]:
        """∂(ln a, ln γ, g, ln α)/∂s and /∂l."""
        if not self.free_mean:
            return np.array([0.0, 1.0, 0.0, 0.0]), np.zeros(4)
        share = hyper.variance / (hyper.variance + hyper.mean**2)
        along = np.array([0.0, 2 * (1 - share), -hyper.mean * share, 0.0])
        return along, np.array([0.0, 1.0, hyper.mean / 2, 0.0])
