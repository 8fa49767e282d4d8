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

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.curvature import expected_curvature
from gp4c.inference.estep import Anderson
from gp4c.inference.hyper import (
    MAX_LENGTH_SCALE,
    MEAN_BOUNDS,
    VARIANCE_BOUNDS,
    LogPrior,
    Optimum,
    Problem,
    climb,
    solve_q,
)
from gp4c.inference.importance import log_evidence
from gp4c.inference.signs import sign_modes
from gp4c.inference.sparse_prior import Hyper

Floats = NDArray[np.float64]

#: steps of the grids, in standard deviations of the posterior: the trapezoid rule errs by
#: 2 exp(−2π²/step²), 3e-5 of a Gaussian's mass
STEP = 1.3
#: shortest and longest steps in ln a and in s
LENGTH_STEPS, VARIATION_STEPS = (0.12, 0.55), (0.2, 0.9)
#: log-densities this far below the best are left out
CUTOFF = 4.5
#: a length-scale whose mode is this far below the best is represented by that mode alone
SIDE = 2.5
#: points lighter than this are left out
LIGHT = 2e-3
#: sign patterns lighter than this are left out
LIGHT_PATTERN = 0.01
#: tolerance, in nats, of q at the points of the design and of the modes along the ridge
E_TOL, RIDGE_TOL = 0.03, 0.05
#: most evaluations for q at a point of the design: its weight does not rest on q's being optimal
E_STEPS = 6
#: gain in the level, in nats, for which q is solved again
LEVEL_GAIN = 0.1
_SHAPE_STEP = 0.05


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
    """An optimum at one (a, s), and the log density there with the level integrated out."""

    optimum: Optimum
    log_density: float
    shift: Floats | None = None


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
    densities = np.array([point.log_density for point in points])
    weights = np.exp(densities - densities.max())
    total = densities.max() + np.log(weights.sum())
    total += shape_laplace(max(ridge, key=lambda point: point.value), log_prior)
    weights /= weights.sum()
    parts = [Weighted(p.optimum, float(w), p.shift) for p, w in zip(points, weights, strict=True)]
    parts = _with_sign_patterns([part for part in parts if part.weight > LIGHT])
    weight = sum(part.weight for part in parts)
    parts = [replace(part, weight=part.weight / weight) for part in parts]
    return Integration(parts, float(total))


def shape_laplace(at: Optimum, log_prior: LogPrior) -> float:
    """Log of Laplace's integral over ln α relative to the density at its mode; 0 without one."""
    if not np.isfinite(at.hyper.shape):
        return 0.0
    exposure, evaluation = at.work.likelihood.exposure, at.estep.evaluation
    second_moment = evaluation.mean**2 + evaluation.variance

    def slope(step: float) -> float:
        vector = at.hyper.to_vector()
        vector[3] += step
        return exposure.shape_gradient(second_moment, float(np.exp(vector[3]))) + float(
            log_prior(vector)[1][3]
        )

    curvature = (slope(-_SHAPE_STEP) - slope(_SHAPE_STEP)) / (2 * _SHAPE_STEP)
    return float(0.5 * np.log(2 * np.pi / max(curvature, 1e-2)))


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
    lowest = np.log(problem.smallest_length_scale(problem.n_inducing))
    farthest = [round((np.log(peak.hyper.length_scale) - origin) / step) for peak in peaks]
    points = {0: best}
    for direction in (-1, 1):
        position, near = direction, best
        while lowest <= origin + position * step <= np.log(MAX_LENGTH_SCALE):
            length_scale = float(np.exp(origin + position * step))
            near = climb(
                problem, near.hyper.with_length_scale(length_scale), free=(False, *free[1:]),
                log_prior=log_prior, near=near.estep, size=_size(problem, near, length_scale),
                tol=RIDGE_TOL, max_iter=4,
            )  # fmt: skip
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


class _Coordinates:
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


def _across(
    mode: Optimum, free: tuple[bool, bool, bool, bool], log_prior: LogPrior, best: float
) -> tuple[list[_Point], float]:
    """Points along s at one length-scale, from the mode outwards while they matter; the step."""
    coordinates = _Coordinates(mode.hyper, free[2])
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
    points, best = [first], max(best, first.log_density)
    for direction in (-1.0, 1.0):
        near, position = first, 1
        while True:
            s = centre + direction * position * step
            there = _settled(near.optimum, coordinates, s, log_prior, memory)
            if there is None:
                break
            points.append(there)
            best = max(best, there.log_density)
            if there.log_density < best - CUTOFF:
                break
            near, position = there, position + 1
    return points, step


def _settled(
    near: Optimum, coordinates: _Coordinates, s: float, log_prior: LogPrior, memory: Anderson
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
        curvature = float(up @ expected_curvature(near.work, hyper, estep.q) @ up)
        gain = rise**2 / (2 * curvature)
        if gain < LEVEL_GAIN or last:
            spread = np.log(2 * np.pi / curvature) / 2
            density = log_evidence(there) + value + np.log(hyper.mean) + spread + min(gain, 1.0)
            shift = _level_shift(there, coordinates.hyper(s, level + curvature**-0.5))
            return _Point(there, float(density), shift)
        level += float(np.clip(rise / curvature, -1.0, 1.0))
    raise AssertionError("the last round returns")


def _level_shift(at: Optimum, higher: Hyper | None) -> Floats | None:
    """Change of v that moves f as the posterior mean of f moves when the level is higher.

    The sites of the likelihood stay, so that q at the other level is a linear solve.
    """
    moved = None if higher is None else at.work.from_sites(higher, at.estep.evaluation.sites())
    if moved is None or higher is None:
        return None
    prior = at.work.prior

    def at_inducing(hyper: Hyper, mean: Floats) -> Floats:
        return np.asarray(hyper.mean + np.sqrt(hyper.variance) * (prior.factor @ mean))

    change = at_inducing(higher, moved.mean) - at_inducing(at.hyper, at.estep.q.mean)
    return np.asarray(prior.inverse_factor @ change / np.sqrt(at.hyper.variance))


def _with_sign_patterns(parts: list[Weighted]) -> list[Weighted]:
    """Give other sign patterns of f their share of the mixture.

    Their evidence is found at the heaviest part, which also stands for those patterns; the main
    pattern keeps all its parts.
    """
    heaviest = max(parts, key=lambda part: part.weight)
    at = heaviest.optimum
    modes = [replace(at, estep=mode) for mode in sign_modes(at.work, at.hyper, at.estep)]
    evidence = np.array([log_evidence(mode) for mode in modes])
    shares = np.exp(evidence - evidence.max())
    shares /= shares.sum()
    main = sum(s for m, s in zip(modes, shares, strict=True) if m.estep is at.estep)
    others = [
        replace(heaviest, optimum=mode, weight=float(share))
        for mode, share in zip(modes, shares, strict=True)
        if mode.estep is not at.estep and share > LIGHT_PATTERN
    ]
    return [replace(part, weight=float(main) * part.weight) for part in parts] + others
