"""Two quasi-Newton ascents within bounds that stop after about so many evaluations.

:func:`two_metric` is the published program's, in our own lines: L-BFGS with the two-metric
projection of Gafni and Bertsekas and a backtracking line search. :func:`lbfgsb` is SciPy's, as
the package uses it for ``optimizer="vem"``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]

#: the two-metric projection: what is near a bound or no progress, and enough decrease
NEAR, ENOUGH, CURVED = 1e-6, 1e-4, 1e-10


def lbfgsb(
    function: Objective, x: Floats, low: Floats, high: Floats, evaluations: int
) -> tuple[Floats, float]:
    """Ascend by SciPy's L-BFGS-B; the best point evaluated."""
    best: list[tuple[float, Floats]] = []

    def negative(x: Floats) -> tuple[float, Floats]:
        value, gradient = function(x)
        if not best or value > best[0][0]:
            best[:] = [(value, x.copy())]
        return -value, -gradient

    options = {"maxfun": evaluations, "maxiter": evaluations, "ftol": 1e-14, "gtol": 0.0}
    bounds = np.column_stack([low, high])
    minimize(negative, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return best[0][1], best[0][0]


def two_metric(
    function: Objective, x: Floats, low: Floats, high: Floats, evaluations: int
) -> tuple[Floats, float]:
    """Ascend by L-BFGS in the variables that are free to move, each step projected on the bounds.

    The first step has length 1 in the 1-norm at most, later ones are tried in full. It stops at
    the end of the line search in which the evaluations are spent.
    """
    spent, memory = 0, Memory()

    def negative(x: Floats) -> tuple[float, Floats]:
        nonlocal spent
        spent += 1
        value, gradient = function(x)
        return -value, -gradient

    x = np.clip(x, low, high)
    f, gradient = negative(x)
    while spent <= evaluations:
        free = (x >= low + 2 * NEAR) | (gradient < 0)
        free &= (x <= high - 2 * NEAR) | (gradient > 0)
        direction = np.where(free, memory.direction(gradient, free), 0.0)
        slope = float(gradient @ direction)
        if slope > -NEAR:
            break
        longest = 1.0 if memory.steps else min(1.0, 1 / np.abs(gradient[free]).sum())
        found = backtrack(negative, x, f, gradient, direction, longest, (low, high))
        if found is None:
            break
        there, f_there, gradient_there = found
        memory.add(there - x, gradient_there - gradient)
        gained, x, f, gradient = f - f_there, there, f_there, gradient_there
        if gained < NEAR:
            break
    return x, -f


class Memory:
    """Steps and changes of the gradient that an L-BFGS direction is made of."""

    def __init__(self) -> None:
        self.steps: list[tuple[Floats, Floats]] = []
        self.scale = 1.0

    def add(self, step: Floats, change: Floats) -> None:
        """Keep a pair along which the function curves upward."""
        if step @ change > CURVED:
            self.steps.append((step, change))
            self.scale = float(step @ change / (change @ change))

    def direction(self, gradient: Floats, free: NDArray[np.bool_]) -> Floats:
        """−H·gradient by the two-loop recursion over the free variables."""
        pairs = [(s * free, y * free) for s, y in self.steps]
        pairs = [(s, y) for s, y in pairs if s @ y > CURVED]
        found, shares = -gradient * free, []
        for s, y in reversed(pairs):
            shares.append((s @ found) / (s @ y))
            found = found - shares[-1] * y
        found = self.scale * found
        for (s, y), share in zip(pairs, reversed(shares), strict=True):
            found = found + s * (share - (y @ found) / (s @ y))
        return found


def backtrack(
    function: Objective,
    x: Floats,
    f: float,
    gradient: Floats,
    direction: Floats,
    step: float,
    bounds: tuple[Floats, Floats],
) -> tuple[Floats, float, Floats] | None:
    """Shorten a step, by a cubic through both ends, until it decreases the function enough."""
    slope = float(gradient @ direction)
    while True:
        there = np.clip(x + step * direction, *bounds)
        value, slopes = function(there)
        if np.isfinite(value) and value <= f + ENOUGH * gradient @ (there - x):
            return there, value, slopes
        shorter = step / 2
        if np.isfinite(value):
            shorter = cubic_minimum(step, f, slope, value, float(slopes @ direction))
        step = float(np.clip(shorter, 1e-3 * step, 0.6 * step))
        if np.abs(step * direction).sum() < NEAR:
            return None


def cubic_minimum(step: float, f0: float, slope0: float, f1: float, slope1: float) -> float:
    """Where the cubic with these values and slopes at 0 and at `step` is least."""
    middle = slope0 + slope1 - 3 * (f1 - f0) / step
    square = middle**2 - slope0 * slope1
    if square < 0:
        return step / 2
    root = np.sqrt(square)
    return float(step - step * (slope1 + root - middle) / (slope1 - slope0 + 2 * root))
