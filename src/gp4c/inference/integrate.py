"""Integration over the hyper-parameters with a small deterministic design, as INLA does.

With few events the posterior of the hyper-parameters is wide and skewed, so that a design around
its mode misses much of it. In the coordinates of their prior it has a simple shape: the
length-scale ln a and the relative variation s = ln(√γ/g) get a grid whose steps follow the
curvature; the level l = ln(g² + γ), which the data always know, is put at its conditional mode
and its spread is added to the covariance of q (docs/maths.md, section 10). Every point's weight
is its posterior density, from the evidence by importance sampling. α of a frailty stays at its
conditional mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.coordinates import Coordinates
from gp4c.inference.curvature import expected_curvature
from gp4c.inference.estep import Anderson
from gp4c.inference.hyper import (
    MAX_LENGTH_SCALE,
    LogPrior,
    Optimum,
    Problem,
    solve_q,
)
from gp4c.inference.importance import log_evidence
from gp4c.inference.parts import Weighted, level_curvature
from gp4c.inference.patterns import Turns
from gp4c.inference.response import frailty_response
from gp4c.inference.search import rough_climb
from gp4c.inference.shape import shape_laplace, shape_mode
from gp4c.inference.signs import crosses

Floats = NDArray[np.float64]

#: steps of the grids, in standard deviations of the posterior: the trapezoid rule errs by
#: 2 exp(−2π²/step²), 3e-5 of a Gaussian's mass
STEP = 1.3
#: shortest and longest steps in ln a and in s
LENGTH_STEPS, VARIATION_STEPS = (0.12, 0.55), (0.2, 0.9)
#: length-scales this far below the best, by the bound, are left out
CUTOFF = 4.5
#: a grid of s or of levels ends with the first point this far below the best: beyond it nearly
#: all are light
TAIL = 3.5
#: a length-scale whose mode is this far below the best is represented by that mode alone
SIDE = 2.5
#: points lighter than this are left out
LIGHT = 2e-3
#: nats that sign patterns add at which their number is found at more than one point
MANY_PATTERNS = 1.0
#: a point shows the effect of one coordinate if the other differs by less of what this one does
PROBE_SLACK = 0.5
#: tolerance, in nats, of q at the points of the design
E_TOL = 0.03
#: most evaluations for q at a point of the design: its weight does not rest on q's being optimal
E_STEPS = 6
#: gain in the level, in nats, for which q is solved again
LEVEL_GAIN = 0.1
#: points heavier than this get a grid of levels where there are frailties; most steps to a side
HEAVY, MAX_LEVELS = 0.1, 8


@dataclass(frozen=True)
class Integration:
    """The mixture over hyper-parameters, and the log evidence with them integrated out."""

    parts: list[Weighted]
    log_evidence: float


@dataclass(frozen=True)
class _Point:
    """An optimum at one (a, s), and the log density there with the level integrated out.

    `deviation` is that of the level, `bare` the log density at its mode.
    """

    optimum: Optimum
    log_density: float
    deviation: float = 0.0
    bare: float = 0.0


def integrate(
    problem: Problem,
    peaks: list[Optimum],
    *,
    free: tuple[bool, bool, bool, bool],
    log_prior: LogPrior,
) -> Integration:
    """Mixture over hyper-parameters and sign patterns around the given modes.

    An f that stays on one side of zero and one that crosses it have hyper-parameters of their own
    and a design each.
    """
    side = crosses(max(peaks, key=lambda peak: peak.value).estep.evaluation)
    alike = [peak for peak in peaks if crosses(peak.estep.evaluation) == side]
    rivals = [peak for peak in peaks if crosses(peak.estep.evaluation) != side]
    found = [_around(problem, family, free, log_prior) for family in (alike, rivals) if family]
    total = float(logsumexp([family.log_evidence for family in found]))
    shares = [float(np.exp(family.log_evidence - total)) for family in found]
    parts = [
        replace(part, weight=share * part.weight)
        for family, share in zip(found, shares, strict=True)
        for part in (family.parts if share > LIGHT else [])
    ]
    weight = sum(part.weight for part in parts)
    return Integration([replace(part, weight=part.weight / weight) for part in parts], total)


def _around(
    problem: Problem,
    peaks: list[Optimum],
    free: tuple[bool, bool, bool, bool],
    log_prior: LogPrior,
) -> Integration:
    """Mixture around modes with one sign pattern."""
    ridge = _ridge(problem, peaks, free, log_prior)
    points = _design(ridge, free, log_prior)
    at_best = shape_laplace(max(ridge, key=lambda point: point.value), log_prior)
    heaviest = max(points, key=lambda point: point.log_density)
    turns = Turns.at(problem, heaviest.optimum)
    points = _with_turns(problem, points, heaviest, turns)
    if problem.effect == "gamma" and free[2]:
        points = _with_levels(points, log_prior, at_best)
    weights, total = _normalised(points)
    pairs = zip(points, weights, strict=True)
    parts = [Weighted(point.optimum, float(weight), point.deviation) for point, weight in pairs]
    at = Weighted(heaviest.optimum, 1.0, heaviest.deviation)
    return Integration(turns.mixed(_heavy(parts), at), total + at_best + turns.log_total)


def _heavy(parts: list[Weighted]) -> list[Weighted]:
    """Parts that are not negligible, with weights that sum to one."""
    kept = [part for part in parts if part.weight > LIGHT]
    total = sum(part.weight for part in kept)
    return [replace(part, weight=part.weight / total) for part in kept]


def _design(
    ridge: list[Optimum], free: tuple[bool, bool, bool, bool], log_prior: LogPrior
) -> list[_Point]:
    """Points on and beside the ridge, with the logarithm of their cell in their density."""
    widths = _trapezoid(np.log([point.hyper.length_scale for point in ridge]))
    if len(ridge) == 1:  # Laplace's integral over ln a
        only = ridge[0]
        curvature = expected_curvature(only.work, only.hyper, only.estep.q)[0, 0]
        widths = np.sqrt(2 * np.pi / curvature) * np.ones(1)
    points: list[_Point] = []
    best = -np.inf
    order = np.argsort([-mode.value for mode in ridge], kind="stable")  # the best sets the scale
    for mode, width in ((ridge[i], widths[i]) for i in order):
        across, step = _across(mode, free, log_prior, best)
        best = max([best, *(point.log_density for point in across)])
        cell = np.log(width * step)
        points += [replace(point, log_density=point.log_density + cell) for point in across]
    return points


def _with_turns(
    problem: Problem, points: list[_Point], heaviest: _Point, turns: Turns
) -> list[_Point]:
    """Points with the evidence of all sign patterns, relative to that at the heaviest.

    Shorter length-scales and smaller means have more patterns. Where there are many, their number
    is found at two more points and taken to be log-linear in (ln a, s).
    """
    if turns.log_total < MANY_PATTERNS:
        return points
    place = np.array([_place(point) for point in points])
    origin = _place(heaviest)
    weights, _ = _normalised(points)
    apart, aways, rises = np.abs(place - origin), [], []
    for axis in (0, 1):
        alone = apart[:, 1 - axis] <= PROBE_SLACK * apart[:, axis]
        chance = np.where(alone, weights * apart[:, axis], 0.0)
        probe = int(np.argmax(chance))
        if chance[probe] > 0:
            rises.append(Turns.at(problem, points[probe].optimum).log_total - turns.log_total)
            aways.append(place[probe] - origin)
    slope = np.linalg.pinv(np.reshape(aways, (-1, 2))) @ np.array(rises)
    gains = np.clip((place - origin) @ slope, -turns.log_total, turns.log_total)
    return [
        replace(point, log_density=point.log_density + float(gain))
        for point, gain in zip(points, gains, strict=True)
    ]


def _place(point: _Point) -> Floats:
    """(ln a, s) of a point."""
    hyper = point.optimum.hyper
    s, _ = Coordinates(hyper, hyper.mean > 0).of(hyper)
    return np.array([np.log(hyper.length_scale), s])


def _ridge(
    problem: Problem,
    peaks: list[Optimum],
    free: tuple[bool, bool, bool, bool],
    log_prior: LogPrior,
) -> list[Optimum]:
    """Optima over (γ, g, α) along a grid in ln a that covers all peaks, increasing in a."""
    best = max(peaks, key=lambda peak: peak.value)
    origin = np.log(best.hyper.length_scale)
    step = _step(expected_curvature(best.work, best.hyper, best.estep.q)[0, 0], LENGTH_STEPS)
    mask = np.array((False, *free[1:]))
    lowest = np.log(problem.smallest_length_scale(problem.n_inducing))
    farthest = [round((np.log(peak.hyper.length_scale) - origin) / step) for peak in peaks]
    points = {0: best}
    for direction in (-1, 1):
        position, near = direction, best
        while lowest <= origin + position * step <= np.log(MAX_LENGTH_SCALE):
            length_scale = float(np.exp(origin + position * step))
            near = rough_climb(
                problem, near.hyper.with_length_scale(length_scale), near.estep, mask, log_prior,
                size=_size(problem, near, length_scale),
            ).optimum  # fmt: skip
            beyond = position * direction > max(direction * f for f in farthest)
            if near.value < best.value - CUTOFF and beyond:
                break
            points[position] = near
            position += direction
    kept = [points[i] for i in sorted(points)]
    return [point for point in kept if point.value > best.value - 2 * CUTOFF]


def _step(curvature: float, limits: tuple[float, float]) -> float:
    """Step of a grid for a density with this curvature of its logarithm."""
    return float(np.clip(STEP / np.sqrt(curvature), *limits))


def _size(problem: Problem, near: Optimum, length_scale: float) -> int:
    """Keep the number of inducing inputs while it still resolves the kernel: warm starts fit."""
    needed = problem.size_for(length_scale)
    return near.work.size if needed <= near.work.size else needed


def _trapezoid(x: Floats) -> Floats:
    """Weights of the trapezoid rule on increasing points."""
    gaps = np.diff(x)
    return np.concatenate([gaps[:1], gaps[1:] + gaps[:-1], gaps[-1:]]) / 2


def _across(
    mode: Optimum, free: tuple[bool, bool, bool, bool], log_prior: LogPrior, best: float
) -> tuple[list[_Point], float]:
    """Points along s at one length-scale, from the mode outwards while they matter; the step."""
    coordinates = Coordinates(mode.hyper, free[2])
    centre, _ = coordinates.of(mode.hyper)
    along, _ = coordinates.direction(mode.hyper)
    curvature = float(along @ expected_curvature(mode.work, mode.hyper, mode.estep.q) @ along)
    step = _step(curvature, VARIATION_STEPS)
    memory = Anderson(mode.work.size)
    first = _settled(mode, coordinates, centre, log_prior, memory)
    if first is None:
        return [_Point(mode, log_evidence(mode) + mode.log_prior)], step
    if first.log_density < best - SIDE:
        return [first], float(np.sqrt(2 * np.pi / curvature))

    def settle(near: Optimum, s: float) -> _Point | None:
        return _settled(near, coordinates, s, log_prior, memory)

    return _outwards(first, centre, step, settle, best), step


def _outwards(
    first: _Point,
    centre: float,
    step: float,
    settle: Callable[[Optimum, float], _Point | None],
    best: float = -np.inf,
    most: float = np.inf,
) -> list[_Point]:
    """Points on a grid around `first` while they matter, each started from its neighbour."""
    points, best = [first], max(best, first.log_density)
    for direction in (-1.0, 1.0):
        near, position = first, 1
        while position <= most:
            there = settle(near.optimum, centre + direction * position * step)
            if there is None:
                break
            points.append(there)
            best = max(best, there.log_density)
            if there.log_density < best - TAIL:
                break
            near, position = there, position + 1
    return points


def _settled(
    near: Optimum, coordinates: Coordinates, s: float, log_prior: LogPrior, memory: Anderson
) -> _Point | None:
    """The optimum at s with the level at its conditional mode, by Newton's method."""
    _, level = coordinates.of(near.hyper)
    estep = near.estep
    for last in (False, False, True):
        hyper = coordinates.hyper(s, level)
        if hyper is None:
            return None
        estep = solve_q(near.work, hyper, estep, E_TOL, E_STEPS, memory)
        value, slope = log_prior(hyper.to_vector())
        there = replace(near, hyper=hyper, estep=estep, log_prior=value)
        if not coordinates.free_mean:
            return _Point(there, log_evidence(there) + value)
        _, up = coordinates.direction(hyper)
        gradient = near.work.hyper_gradient(hyper, estep.q, estep.evaluation, False) + slope
        rise = float(np.nan_to_num(gradient) @ up) + 0.5  # of ln g, the Jacobian's
        q = frailty_response(there)  # frailties make the level less certain than the bound says
        curvature = level_curvature(there, q)
        gain = rise**2 / (2 * curvature)
        if gain < LEVEL_GAIN or last:
            top = _density(there, log_prior) + min(gain, 1.0)
            density = top + float(np.log(2 * np.pi / curvature)) / 2
            return _Point(there, density, float(curvature**-0.5), top)
        level += float(np.clip(rise / curvature, -1.0, 1.0))
    raise AssertionError("the last round returns")


def _with_levels(points: list[_Point], log_prior: LogPrior, at_best: float) -> list[_Point]:
    """Give the heavy points a grid of levels instead of a Gaussian spread.

    With frailties the level is uncertain and its posterior skewed: a few frail subjects that were
    not seen make a higher level with a smaller α, so that α follows the level.
    """
    weights, _ = _normalised(points)
    spread: list[_Point] = []
    for point, weight in zip(points, weights, strict=True):
        heavy = weight > HEAVY and point.deviation > 0
        spread += _levels(point, log_prior, at_best) if heavy else [point]
    return spread


def _levels(point: _Point, log_prior: LogPrior, at_best: float) -> list[_Point]:
    """Points along the level from that of `point` outwards; their sum stands for it."""
    _, origin = Coordinates(point.optimum.hyper, True).of(point.optimum.hyper)
    memory = Anderson(point.optimum.work.size)

    def settle(near: Optimum, level: float) -> _Point | None:
        return _at_level(near, level, log_prior, memory)

    step = STEP * point.deviation
    first = _with_best_shape(point.optimum, log_prior)
    found = _outwards(first, origin, step, settle, most=MAX_LEVELS)
    # the point's cell in (ln a, s) is in its density, Laplace's integral over the level is not
    laplace = np.log(2 * np.pi) / 2 + np.log(point.deviation)
    cell = point.log_density - laplace - point.bare
    offset = cell + np.log(step) - at_best
    return [replace(there, log_density=there.log_density + offset) for there in found]


def _at_level(near: Optimum, level: float, log_prior: LogPrior, memory: Anderson) -> _Point | None:
    """The optimum at another level, with α at its conditional mode there."""
    coordinates = Coordinates(near.hyper, True)
    s, _ = coordinates.of(near.hyper)
    hyper = coordinates.hyper(s, level)
    if hyper is None:
        return None
    estep = solve_q(near.work, hyper, near.estep, E_TOL, E_STEPS, memory)
    return _with_best_shape(replace(near, hyper=hyper, estep=estep), log_prior)


def _with_best_shape(at: Optimum, log_prior: LogPrior) -> _Point:
    """With α at its conditional mode: q hardly depends on α, the evidence needs no optimal q."""
    hyper = replace(at.hyper, shape=shape_mode(at, log_prior))
    there = replace(at, hyper=hyper, log_prior=log_prior(hyper.to_vector())[0])
    return _Point(there, _density(there, log_prior) + shape_laplace(there, log_prior))


def _density(at: Optimum, log_prior: LogPrior) -> float:
    """Log density in (ln a, s, l): evidence, prior and the Jacobian g."""
    return log_evidence(at) + log_prior(at.hyper.to_vector())[0] + float(np.log(at.hyper.mean))


def _normalised(points: list[_Point]) -> tuple[Floats, float]:
    """Weights of points, and the logarithm of their sum."""
    densities = np.array([point.log_density for point in points])
    total = float(logsumexp(densities))
    return np.exp(densities - total), total
