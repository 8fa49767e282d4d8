"""The best of the bound's several optima in the hyper-parameters.

A grid of length-scales is profiled roughly: each point has a value and a slope, so that maxima
between points are seen. From the best few the search climbs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.curvature import expected_curvature
from gp4c.inference.variational.estep import Anderson, EStep, e_step
from gp4c.inference.variational.hyper import (
    MAX_LENGTH_SCALE,
    SKETCH,
    Climb,
    Optimum,
    Problem,
    free_coordinates,
    limits,
    solve_q,
)
from gp4c.model.sparse_prior import Hyper

Floats = NDArray[np.float64]

#: nats behind the best at which an end of the profile is given up
HOPELESS = 20.0
#: nats behind the best at which a local maximum of the profile is not climbed from
UNPROMISING = 6.0
#: tolerance (nats) of an E-step of the profile; least gain for which another step is taken
ROUGH, ROUGH_GAIN = 0.01, 0.2
#: nats behind the best at which a rough climb is given up
CLOSE = 0.5
#: longest step in (ln a, ln γ, g, ln α) of the profile
ROUGH_RADIUS = np.array([0.0, 1.0, 0.3, 1.0])


def search(
    problem: Problem,
    *,
    mean: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
    n_climbs: int = 3,
) -> Optimum:
    """Profile the length-scale, and climb from its best local maxima; the highest end.

    Parameters
    ----------
    mean : float, optional
        Fix g at this value; None learns it.
    n_climbs : int
        Most local maxima of the profile to climb from.
    """
    free = free_coordinates(problem, mean)
    starts = starting_points(profile(problem, free, mean))[:n_climbs]
    routes = [
        Climb(problem, start.hyper, free=free, near=start.estep, size=start.work.size)
        for start in starts
    ]
    sketches = [route.to(max(SKETCH, tol), max_iter).value for route in routes]
    ends = []
    for route, value in zip(routes, sketches, strict=True):
        if value > max(sketches) - CLOSE:
            end = route.to(tol, max_iter)
            if problem.size_for(end.hyper.length_scale) > route.size:
                end = finished(problem, end, free=free, tol=tol, max_iter=max_iter)
            ends.append(end)
    return max(ends, key=lambda end: end.value)


def finished(
    problem: Problem,
    start: Optimum,
    *,
    free: tuple[bool, bool, bool, bool],
    tol: float,
    max_iter: int,
) -> Optimum:
    """Climb from an optimum, again with more inducing inputs where it led beyond its resolution."""
    size = max(start.work.size, problem.size_for(start.hyper.length_scale))
    route = Climb(problem, start.hyper, free=free, near=start.estep, size=size)
    found = route.to(tol, max_iter)
    if problem.size_for(found.hyper.length_scale) <= size:
        return found
    return finished(problem, found, free=free, tol=tol, max_iter=max_iter)


def length_scale_grid(problem: Problem, ratio: float = 1.6) -> tuple[list[float], list[float]]:
    """Length-scales to profile: from a tenth of the window downwards, and upwards from there."""
    lowest = problem.smallest_length_scale(problem.n_inducing)
    middle = max(0.1, lowest)
    down = [middle]
    while down[-1] > lowest * 1.05:
        down.append(max(down[-1] / ratio, lowest))
    up = [middle * ratio]
    while up[-1] * ratio < MAX_LENGTH_SCALE / 1.2:
        up.append(up[-1] * ratio)
    return down, up


def profile(
    problem: Problem, free: tuple[bool, bool, bool, bool], mean: float | None
) -> list[RoughPoint]:
    """Rough optima over (γ, g, α) along a grid of length-scales, longest first.

    From the middle of the grid towards both ends, each point started from its neighbour; an end
    is given up once it is far behind. A dear count term leaves it to its cheap stand-in to find
    (γ, g, α), and ranks. The cheap one is the looser the shorter the length-scale, so
    that a longer one which is behind by it would be behind by the exact one too.
    """
    scout, mask = problem.scout(), np.array((False, *free[1:]))
    sides = length_scale_grid(problem)
    middle = sides[0][0]
    guess = Hyper(middle, 0.1, 0.95 if mean is None else mean, problem.first_shape)
    memory = Anderson(scout.size_for(middle))
    found: dict[float, RoughPoint] = {}
    best = best_rough = -np.inf
    for side in sides:
        near = found[middle].optimum if found else None
        behind = 0
        for length_scale in side:
            start = guess.with_length_scale(length_scale)
            if near is not None:
                variance = float(np.clip(near.hyper.variance, 0.05, 0.5))
                start = replace(start, variance=variance, shape=near.hyper.shape)
            rough = rough_climb(
                scout, start, near.estep if near else None, mask,
                memory=memory, hopeless=best - HOPELESS,
            )  # fmt: skip
            near = rough.optimum
            best_rough = max(best_rough, rough.value)
            behind_by_any = length_scale > middle and rough.value < best_rough - UNPROMISING
            judged = scout is not problem and not behind_by_any
            found[length_scale] = _judged(problem, rough) if judged else rough
            best = max(best, found[length_scale].value)
            behind = behind + 1 if found[length_scale].value < best - HOPELESS else 0
            if behind == 2 or found[length_scale].value < best - 3 * HOPELESS:
                break
    return [found[length_scale] for length_scale in sorted(found, reverse=True)]


@dataclass(frozen=True)
class RoughPoint:
    """A point of the profile: a rough optimum over (γ, g, α), and what the model there predicts.

    `value` and `slope` are the profile's value and derivative by ln a, corrected for the steps
    in (γ, g, α) that were not taken.
    """

    optimum: Optimum
    value: float
    slope: float


def rough_climb(
    problem: Problem,
    hyper: Hyper,
    near: EStep | None,
    mask: NDArray[np.bool_],
    *,
    size: int | None = None,
    memory: Anderson | None = None,
    hopeless: float = -np.inf,
) -> RoughPoint:
    """A few Newton steps in the free ones of (γ, g, α) with the expected curvature."""
    work, estep = problem.workspace(hyper.length_scale, size), near
    best: RoughPoint | None = None
    for last in (False, False, True):
        estep = solve_q(work, hyper, estep, ROUGH, memory=memory)
        vector = hyper.to_vector()
        here = Optimum(hyper, work, estep, (), False)
        if best is not None and here.value < best.optimum.value:
            return best
        gradient = work.hyper_gradient(hyper, estep.q, estep.evaluation)
        curvature = expected_curvature(work, hyper, estep.q)
        A = curvature[np.ix_(mask, mask)]
        step = np.linalg.solve(A, gradient[mask])
        along = float(gradient[0] - curvature[0, mask] @ step)
        step = np.clip(step, -ROUGH_RADIUS[mask], ROUGH_RADIUS[mask])
        gain = float(gradient[mask] @ step - step @ A @ step / 2)
        best = RoughPoint(here, here.value + min(gain, ROUGH_GAIN), along)
        if gain < ROUGH_GAIN or last or here.value + 2 * gain < hopeless:
            return best
        vector[mask] = np.clip(vector[mask] + step, *limits(problem, hyper)[mask].T)
        hyper = replace(Hyper.from_vector(vector), length_scale=hyper.length_scale)
    raise AssertionError("the last round returns")


def _judged(problem: Problem, rough: RoughPoint) -> RoughPoint:
    """The scout's find with a few steps of the problem's own bound."""
    found = rough.optimum
    work = problem.workspace(found.hyper.length_scale, found.work.size)
    estep = e_step(work, found.hyper, found.estep.q, 0.1, 5)
    better = replace(found, work=work, estep=estep)
    return replace(rough, optimum=better, value=rough.value + better.value - found.value)


def starting_points(points: list[RoughPoint]) -> list[Optimum]:
    """Points from which to climb, best first: one for each local maximum of the profile.

    They come longest length-scale first. Between two points whose slopes point at each
    other there is a maximum, which may well be higher than both: the cubic through values and
    slopes says where.
    """
    found = []
    for long, short in itertools.pairwise(points):
        if short.slope > 0 > long.slope:
            value, share = _cubic_maximum(short, long)
            near = (long if share > 0.5 else short).optimum
            between = short.optimum.hyper.length_scale ** (1 - share) * (
                long.optimum.hyper.length_scale**share
            )
            found.append((value, replace(near, hyper=near.hyper.with_length_scale(between)), near))
    values = np.array([-np.inf, *(r.value for r in points), -np.inf])
    peaks = (values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])
    used = [near for _, _, near in found]
    found += [
        (r.value, r.optimum, r.optimum)
        for r, peak in zip(points, peaks, strict=True)
        if peak and all(r.optimum is not near for near in used)
    ]
    top = max(value for value, _, _ in found)
    found.sort(key=lambda item: -item[0])
    return [start for value, start, _ in found if value > top - UNPROMISING]


def _cubic_maximum(short: RoughPoint, long: RoughPoint) -> tuple[float, float]:
    """Largest value of the cubic between two points of the profile, and its share of the way."""
    width = np.log(long.optimum.hyper.length_scale / short.optimum.hyper.length_scale)
    t = np.linspace(0.0, 1.0, 41)
    values = (
        (2 * t**3 - 3 * t**2 + 1) * short.value + (3 * t**2 - 2 * t**3) * long.value
        + width * (t * (1 - t) ** 2 * short.slope - t**2 * (1 - t) * long.slope)
    )  # fmt: skip
    top = int(np.argmax(values))
    return float(values[top]), float(t[top])
