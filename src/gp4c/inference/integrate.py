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
    scout_workspace,
    solve_q,
)
from gp4c.inference.importance import log_evidence
from gp4c.inference.response import frailty_response
from gp4c.inference.search import rough_climb
from gp4c.inference.shape import shape_laplace, shape_mode
from gp4c.inference.signs import competing, shares
from gp4c.inference.variational import Gaussian

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
#: sign patterns lighter than this are left out
LIGHT_PATTERN = 0.01
#: most nats by which another pattern may beat the one that the search has settled on
MOST_GAIN = 5.0
#: tolerance, in nats, of q at the points of the design
E_TOL = 0.03
#: most evaluations for q at a point of the design: its weight does not rest on q's being optimal
E_STEPS = 6
#: gain in the level, in nats, for which q is solved again
LEVEL_GAIN = 0.1
#: points heavier than this get a grid of levels where there are frailties; most steps to a side
HEAVY, MAX_LEVELS = 0.1, 8
#: least curvature of the log density in the level, about that of its prior
LEVEL_CURVATURE = 1.0


@dataclass(frozen=True)
class Weighted:
    """An optimum over q, its share of the posterior, and what one sd of the level adds to v."""

    optimum: Optimum
    weight: float
    shift: Floats | None = None


@dataclass(frozen=True)
class Integration:
    """The mixture over hyper-parameters, and the log evidence with them integrated out."""

    parts: list[Weighted]
    log_evidence: float


@dataclass(frozen=True)
class _Point:
    """An optimum at one (a, s), and the log density there with the level integrated out.

    `bare` is the log density at the optimum's own level.
    """

    optimum: Optimum
    log_density: float
    shift: Floats | None = None
    deviation: float = 0.0
    bare: float = 0.0


def integrate(
    problem: Problem,
    peaks: list[Optimum],
    *,
    free: tuple[bool, bool, bool, bool],
    log_prior: LogPrior,
) -> Integration:
    """Mixture over hyper-parameters and sign patterns around the given modes."""
    ridge = _ridge(problem, peaks, free, log_prior)
    widths = _trapezoid(np.log([point.hyper.length_scale for point in ridge]))
    points: list[_Point] = []
    best = -np.inf
    order = np.argsort([-mode.value for mode in ridge], kind="stable")  # the best sets the scale
    for mode, width in ((ridge[i], widths[i]) for i in order):
        across, step = _across(mode, free, log_prior, best)
        best = max([best, *(point.log_density for point in across)])
        cell = np.log(width * step)
        points += [replace(point, log_density=point.log_density + cell) for point in across]
    at_best = shape_laplace(max(ridge, key=lambda point: point.value), log_prior)
    heaviest = max(points, key=lambda point: point.log_density)
    if problem.effect == "gamma" and free[2]:
        points = _with_levels(points, log_prior, at_best)
    weights, total = _normalised(points)
    parts = [Weighted(p.optimum, float(w), p.shift) for p, w in zip(points, weights, strict=True)]
    parts = [part for part in parts if part.weight > LIGHT]
    weight = sum(part.weight for part in parts)
    parts = [replace(part, weight=part.weight / weight) for part in parts]
    parts, gain = with_sign_patterns(problem, parts, heaviest.optimum, heaviest.deviation)
    return Integration(parts, total + at_best + gain)


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
    """Weights of the trapezoid rule on increasing points; 1 for a single one."""
    if len(x) == 1:
        return np.ones(1)
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
        curvature = _level_curvature(there, q)
        gain = rise**2 / (2 * curvature)
        if gain < LEVEL_GAIN or last:
            bare = _density(there, log_prior)
            density = bare + min(gain, 1.0) + float(np.log(2 * np.pi / curvature)) / 2
            deviation = float(curvature**-0.5)
            shift = _level_shift(there, q, deviation)
            return _Point(there, density, shift, deviation, bare)
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


def _level_shift(at: Optimum, q: Gaussian, deviation: float) -> Floats:
    """Change of v that moves f as its posterior mean moves when l rises by `deviation`.

    At fixed s a rise of l scales the prior of f; the posterior follows by S(m + g L⁻¹1/2√γ).
    """
    prior, hyper = at.work.prior, at.hyper
    constant = prior.inverse_factor.sum(axis=1) * hyper.mean / (2 * np.sqrt(hyper.variance))
    return np.asarray(deviation * (q.covariance @ (q.mean + constant)))


def level_spread(at: Optimum) -> tuple[float, Floats]:
    """Standard deviation of the level l at an optimum, and what it adds to v."""
    q = frailty_response(at)
    deviation = _level_curvature(at, q) ** -0.5
    return deviation, _level_shift(at, q, deviation)


def _level_curvature(at: Optimum, q: Gaussian) -> float:
    """Curvature of the log density in the level."""
    _, up = Coordinates(at.hyper, True).direction(at.hyper)
    return max(float(up @ expected_curvature(at.work, at.hyper, q) @ up), LEVEL_CURVATURE)


def with_sign_patterns(
    problem: Problem, parts: list[Weighted], at: Optimum, deviation: float = 0.0
) -> tuple[list[Weighted], float]:
    """Give other sign patterns of f their share of the mixture; ln of what they add to it.

    Their evidence is found at one optimum, whose hyper-parameters stand for those patterns, with
    the deviation of the level there; the first pattern keeps all its parts.
    """
    patterns = competing(at.work, at.hyper, at.estep, scout_workspace(problem, at))
    if not patterns:
        return parts, 0.0
    modes = [replace(at, estep=pattern.estep) for pattern in patterns]
    evidence = np.array([log_evidence(mode) for mode in modes]) - log_evidence(at)
    found = shares(patterns, np.exp(np.minimum(evidence, MOST_GAIN)))
    mixed = [replace(part, weight=found.first * part.weight) for part in parts]
    for mode, share in zip(modes, found.others, strict=True):
        if share > LIGHT_PATTERN:
            shift = _level_shift(mode, frailty_response(mode), deviation) if deviation else None
            mixed.append(Weighted(mode, float(share), shift))
    total = sum(part.weight for part in mixed)
    return [replace(part, weight=part.weight / total) for part in mixed], found.log_total
