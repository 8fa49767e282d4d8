"""Maximisation of a smooth, slightly noisy function of a handful of variables in a box.

General quasi-Newton codes waste evaluations here: each one is a whole E-step, the scale of the
variables is known (logarithms and a mean near one), and values carry the E-step's tolerance as
noise. This one is dense BFGS with a bounded step, and stops on the predicted gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ValueAndGradient = Callable[[Floats], tuple[float, Floats]]


@dataclass(frozen=True)
class Ascent:
    """Where a climb ended, its accepted values, and whether the predicted gain fell below tol.

    `inverse` approximates the inverse of the negative Hessian there.
    """

    x: Floats
    path: tuple[float, ...]
    converged: bool
    inverse: Floats


def maximise(
    function: ValueAndGradient,
    start: Floats,
    bounds: Floats,
    *,
    tol: float,
    max_iter: int,
    radius: float = 0.7,
    inverse: Floats | None = None,
) -> Ascent:
    """Climb from `start`; the accepted values never decrease.

    Parameters
    ----------
    function
        Returns value and gradient.
    bounds : (n, 2)
    tol : float
        Stop when the quadratic model predicts a gain below this.
    radius : float
        Longest step, in any coordinate.
    inverse : (n, n), optional
        First guess at the inverse of the negative Hessian.
    """
    low, high = bounds.T
    x = np.clip(start, low, high)
    value, gradient = function(x)
    inverse, path = np.eye(len(x)) / 10.0 if inverse is None else inverse, [value]
    for _ in range(max_iter):
        step = _inner_step(inverse, gradient, x, bounds, radius)
        if gradient @ step / 2 < tol:
            return Ascent(x, tuple(path), True, inverse)
        move = _line_search(function, x, step, value, gradient, low, high, tol)
        if move is None:  # no gain above the noise: as far as the E-step's tolerance allows
            return Ascent(x, tuple(path), bool(gradient @ step < 1e3 * tol), inverse)
        new_x, new_value, new_gradient = move
        inverse = _bfgs(inverse, new_x - x, gradient - new_gradient)
        x, value, gradient = new_x, new_value, new_gradient
        path.append(value)
    return Ascent(x, tuple(path), False, inverse)


def _inner_step(
    inverse: Floats, gradient: Floats, x: Floats, bounds: Floats, radius: float
) -> Floats:
    """The quasi-Newton step in the coordinates that neither slope nor step drives out of the box.

    Without the others it is an ascent, which a step that is cut off at a bound need not be.
    """
    low, high = bounds.T
    free = ~(((x <= low) & (gradient < 0)) | ((x >= high) & (gradient > 0)))
    while True:
        step = _newton_step(inverse, gradient, free, radius)
        outward = ((x <= low) & (step < 0)) | ((x >= high) & (step > 0))
        if not outward.any():
            return step
        free &= ~outward


def _newton_step(
    inverse: Floats, gradient: Floats, free: NDArray[np.bool_], radius: float
) -> Floats:
    """Maximum of the quadratic model over the free coordinates, the others held fast.

    The inverse of a block of the Hessian is a Schur complement of the inverse: its own block
    would let the others move along, and step too far.
    """
    step, held = np.zeros_like(gradient), ~free
    block = inverse[np.ix_(free, free)]
    if held.any():
        across = inverse[np.ix_(held, free)]
        block = block - across.T @ np.linalg.solve(inverse[np.ix_(held, held)], across)
    step[free] = block @ gradient[free]
    longest = np.abs(step).max(initial=0.0)
    return step * min(1.0, radius / longest) if longest > 0 else step


def _line_search(
    function: ValueAndGradient,
    x: Floats,
    step: Floats,
    value: float,
    gradient: Floats,
    low: Floats,
    high: Floats,
    tol: float,
) -> tuple[Floats, float, Floats] | None:
    """Shorten the step by the parabola through value, slope and new value until it gains.

    A step that bounds cut off may lead downhill; then it ends at the first bound it meets.
    """
    length = 1.0
    for _ in range(8):
        there = np.clip(x + length * step, low, high)
        slope = float(gradient @ (there - x))
        if slope < tol:
            inside, there = _to_first_bound(x, step, low, high)
            if inside >= length:  # nothing left to gain above the noise
                return None
            length, slope = inside, float(gradient @ (there - x))
        new_value, new_gradient = function(there)
        if new_value >= value + 1e-4 * slope and slope > 0:
            return there, new_value, new_gradient
        curvature = 2 * (slope - (new_value - value)) if np.isfinite(new_value) else np.inf
        length *= float(np.clip(slope / curvature if curvature > 0 else 0.1, 0.1, 0.5))
    return None


def _to_first_bound(x: Floats, step: Floats, low: Floats, high: Floats) -> tuple[float, Floats]:
    """How much of a step there is up to the first bound, and the point on it."""
    bound = np.where(step > 0, high, low)
    room = np.full_like(x, np.inf)
    np.divide(bound - x, step, out=room, where=step != 0)
    length = float(room.min())
    there = x + length * step if np.isfinite(length) else x
    return length, np.where(room == length, bound, np.clip(there, low, high))


def _bfgs(inverse: Floats, step: Floats, change: Floats) -> Floats:
    """Update the inverse of the negative Hessian; skip where the curvature is not negative."""
    along = float(step @ change)
    if along <= 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(change)):
        return inverse
    left = np.eye(len(step)) - np.outer(step, change) / along
    return np.asarray(left @ inverse @ left.T + np.outer(step, step) / along)
