"""Pareto smoothing of importance weights (Vehtari, Simpson, Gelman, Yao and Gabry 2024)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: fewest weights in a tail that is fitted
_LEAST_TAIL = 5


def pareto_smoothed(log_weights: Floats) -> tuple[Floats, float]:
    """Log weights whose largest are replaced by quantiles of a fitted Pareto tail, and k̂.

    k̂ above 0.7 says that the draws do not cover the posterior.
    """
    n = len(log_weights)
    finite = np.isfinite(log_weights)
    size = int(min(0.2 * n, 3.0 * np.sqrt(n)))
    if finite.sum() < 5 * _LEAST_TAIL or size < _LEAST_TAIL:
        return log_weights, np.inf if finite.sum() < 2 else 0.0
    top = log_weights.max()
    order = np.argsort(log_weights)
    tail, cut = order[-size:], log_weights[order[-size - 1]]
    excess = np.exp(log_weights[tail] - top) - np.exp(cut - top)
    if not excess[-1] > 0:  # all weights are the same
        return log_weights, -np.inf
    k, scale = _fit_pareto(np.maximum(excess, 1e-300))
    share = (np.arange(size) + 0.5) / size
    with np.errstate(over="ignore"):  # a hopeless tail: its quantiles end at the largest weight
        quantiles = scale * (
            -np.log1p(-share) if abs(k) < 1e-9 else np.expm1(-k * np.log1p(-share)) / k
        )
    smoothed = log_weights.copy()
    smoothed[tail] = np.minimum(np.log(quantiles + np.exp(cut - top)) + top, top)
    return smoothed, float(k)


def _fit_pareto(x: Floats) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto law (Zhang and Stephens 2009), x increasing.

    The posterior mean over a grid of profile likelihoods; k is shrunk to ½ by ten observations.
    """
    n = len(x)
    points = 30 + int(np.sqrt(n))
    quartile = x[int(n / 4 + 0.5) - 1]
    grid = 1 - np.sqrt(points / (np.arange(points) + 0.5))
    theta = grid / (3 * quartile) + 1 / x[-1]
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    log_profile = n * (np.log(-theta / k) - k - 1)
    weight = np.exp(log_profile - log_profile.max())
    best = float(theta @ weight / weight.sum())
    shape = float(np.log1p(-best * x).mean())
    scale = -shape / best
    return (n * shape + 5.0) / (n + 10.0), scale
