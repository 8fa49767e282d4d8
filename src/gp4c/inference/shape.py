"""The shape α of a gamma frailty given the curve: its mode, and the integral over it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gp4c.inference.hyper import SHAPE_BOUNDS, LogPrior, Optimum

#: step in ln α of the difference that gives the curvature
STEP = 0.05
#: least curvature of the log density in ln α, most Newton steps and their longest
LEAST_CURVATURE, NEWTON_STEPS, LONGEST = 1e-2, 8, 0.7


def _slope(at: Optimum, log_prior: LogPrior) -> Callable[[float], float]:
    """∂/∂ln α of the log density as a function of ln α, the curve as it is."""
    exposure, evaluation = at.work.likelihood.exposure, at.estep.evaluation
    second_moment = evaluation.mean**2 + evaluation.variance

    def slope(log_shape: float) -> float:
        vector = at.hyper.to_vector()
        vector[3] = log_shape
        by_data = exposure.shape_gradient(second_moment, float(np.exp(log_shape)))
        return by_data + float(log_prior(vector)[1][3])

    return slope


def shape_laplace(at: Optimum, log_prior: LogPrior) -> float:
    """Log of Laplace's integral over ln α relative to the density at its mode; 0 without one."""
    if not np.isfinite(at.hyper.shape):
        return 0.0
    slope, here = _slope(at, log_prior), float(np.log(at.hyper.shape))
    curvature = (slope(here - STEP) - slope(here + STEP)) / (2 * STEP)
    return float(0.5 * np.log(2 * np.pi / max(curvature, LEAST_CURVATURE)))


def shape_mode(at: Optimum, log_prior: LogPrior) -> float:
    """The most probable α for the curve as it is, by Newton's method in ln α."""
    slope, here = _slope(at, log_prior), float(np.log(at.hyper.shape))
    low, high = np.log(SHAPE_BOUNDS)
    for _ in range(NEWTON_STEPS):
        curvature = (slope(here - STEP) - slope(here + STEP)) / (2 * STEP)
        move = float(np.clip(slope(here) / max(curvature, 0.5), -LONGEST, LONGEST))
        here = float(np.clip(here + move, low, high))
        if abs(move) < STEP / 5:
            break
    return float(np.exp(here))
