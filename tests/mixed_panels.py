"""Panels whose subjects are combinations of an early and a late course, with known weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

WINDOW = (0.0, 10.0)


def courses(t: Floats) -> Floats:
    """Rates of the two bases at times, (2, T): falling from the start, and a peak at 7."""
    return np.stack([1.2 * np.exp(-t / 2.5), np.exp(-0.5 * ((t - 7.0) / 1.2) ** 2)])


def two_courses(
    seed: int, n_subjects: int, visits: int = 8, pure: bool = False
) -> tuple[PanelCounts, Floats]:
    """A panel, and the weights of its subjects (K, 2).

    Weights are gamma variables with shape 0.7 and mean 2; `pure` subjects have one course each.
    """
    rng = np.random.default_rng(seed)
    weights = 2.0 * rng.gamma(0.7, 1 / 0.7, (n_subjects, 2))
    if pure:
        weights[np.arange(n_subjects), rng.integers(0, 2, n_subjects)] = 0.0
    grid = np.linspace(*WINDOW, 2001)
    steps = (courses(grid)[:, 1:] + courses(grid)[:, :-1]) / 2 * np.diff(grid)
    running = np.concatenate([np.zeros((2, 1)), np.cumsum(steps, axis=1)], axis=1)
    rows = []
    for subject in range(n_subjects):
        inner = np.unique(np.round(rng.uniform(0.2, 9.8, visits - 1), 1))
        ends = np.concatenate([[0.0], inner, [10.0]])
        mass = np.diff([np.interp(ends, grid, one) for one in running], axis=1)
        counts = rng.poisson(weights[subject] @ mass)
        rows += [(subject, a, b, int(n)) for a, b, n in zip(ends, ends[1:], counts, strict=False)]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    names = ("subject", "start", "stop", "count")
    return PanelCounts.from_frame(dict(zip(names, columns, strict=True)), window=WINDOW), weights
