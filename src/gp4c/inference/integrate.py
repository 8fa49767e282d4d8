"""Integration over the hyper-parameters with a small deterministic design, as INLA does.

The posterior of the length-scale is skewed and may have two modes, so ln a gets a grid; given
a, the posterior of (ln γ, g) is close to Gaussian and gets the unscented design around its
mode. Every point's weight is its actual posterior density (bound plus log prior) relative to
the Gaussian that placed it. α of a frailty stays at its conditional mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.hyper import (
    MAX_LENGTH_SCALE,
    MEAN_BOUNDS,
    VARIANCE_BOUNDS,
    LogPrior,
    Optimum,
    Problem,
    climb,
    scout_workspace,
    solve_q,
)
from gp4c.inference.signs import sign_modes
from gp4c.inference.sparse_prior import Hyper

Floats = NDArray[np.float64]

#: step of the grid in ln a
STEP = 0.35
#: log-densities this far below the best are left out
CUTOFF = 4.5
#: grid points lighter than this are represented by their mode alone
LIGHT = 0.02
#: least curvature of the log density over (ln γ, g): a flatter direction is taken to be this flat
FLAT = 0.25
#: sign patterns lighter than this are left out
LIGHT_PATTERN = 0.03
#: tolerance of q at the points of the design, in nats
E_TOL = 5e-3
_MEAN_STEP, _VARIANCE_STEP, _SHAPE_STEP = 0.03, 0.2, 0.05


@dataclass(frozen=True)
class Weighted:
    """An optimum over q and its share of the posterior."""

    optimum: Optimum
    weight: float


@dataclass(frozen=True)
class Integration:
    """The mixture over hyper-parameters, and the log evidence with them integrated out."""

    parts: list[Weighted]
    log_evidence: float


def integrate(
    problem: Problem,
    peaks: list[Optimum],
    *,
    free: tuple[bool, bool, bool, bool],
    log_prior: LogPrior,
) -> Integration:
    """Mixture over hyper-parameters and sign patterns around the given modes.

    The log evidence is that of the bound: Laplace's approximation over (ln γ, g) and ln α, the
    trapezoid rule over ln a.
    """
    ridge = _ridge(problem, peaks, free, log_prior)
    densities = np.array([point.value for point in ridge])
    widths = _trapezoid(np.log([point.hyper.length_scale for point in ridge]))
    covariances = [_conditional_covariance(problem, point, free, log_prior) for point in ridge]
    spread = np.array([np.sqrt(np.linalg.det(c)) if c.size else 1.0 for c in covariances])
    weights = widths * spread * np.exp(densities - densities.max())
    dimension = free[1] + free[2]
    log_evidence = densities.max() + np.log(weights.sum()) + dimension / 2 * np.log(2 * np.pi)
    log_evidence += shape_laplace(max(ridge, key=lambda point: point.value), log_prior)
    weights /= weights.sum()
    parts: list[Weighted] = []
    for point, covariance, weight in zip(ridge, covariances, weights, strict=True):
        design = [Weighted(point, 1.0)]
        if weight > LIGHT and covariance.size:
            design = _unscented(point, covariance, free, log_prior)
        total = sum(part.weight for part in design)
        parts += [replace(part, weight=weight * part.weight / total) for part in design]
    parts = [part for part in parts if part.weight > 1e-4]
    parts = _with_sign_patterns(problem, parts)
    total = sum(part.weight for part in parts)
    parts = [replace(part, weight=part.weight / total) for part in parts]
    return Integration(parts, float(log_evidence))


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
    lowest = np.log(problem.smallest_length_scale(problem.n_inducing))
    farthest = [round((np.log(peak.hyper.length_scale) - origin) / STEP) for peak in peaks]
    points = {0: best}
    for direction in (-1, 1):
        position, near = direction, best
        while lowest <= origin + position * STEP <= np.log(MAX_LENGTH_SCALE):
            length_scale = float(np.exp(origin + position * STEP))
            near = climb(
                problem, near.hyper.with_length_scale(length_scale), free=(False, *free[1:]),
                log_prior=log_prior, near=near.estep, size=_size(problem, near, length_scale),
                tol=10 * E_TOL, max_iter=4,
            )  # fmt: skip
            beyond = position * direction > max(direction * f for f in farthest)
            if near.value < best.value - CUTOFF and beyond:
                break
            points[position] = near
            position += direction
    kept = [points[i] for i in sorted(points)]
    return [point for point in kept if point.value > best.value - 2 * CUTOFF]


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


def _conditional_covariance(
    problem: Problem, point: Optimum, free: tuple[bool, bool, bool, bool], log_prior: LogPrior
) -> Floats:
    """Inverse negative Hessian over the free ones of (ln γ, g), by the cheap bound's gradients."""
    axes = [i for i in (1, 2) if free[i]]
    work = scout_workspace(problem, point)
    base = solve_q(work, point.hyper, point.estep, 1e-4)
    steps = {1: _VARIANCE_STEP, 2: _MEAN_STEP}
    hessian = np.zeros((len(axes), len(axes)))
    for row, axis in enumerate(axes):
        gradients = []
        for sign in (1.0, -1.0):
            vector = point.hyper.to_vector()
            vector[axis] += sign * steps[axis]
            hyper = Hyper.from_vector(vector)
            estep = solve_q(work, hyper, base, 1e-4)
            gradient = work.hyper_gradient(hyper, estep.q, estep.evaluation)
            gradients.append((gradient + log_prior(vector)[1])[axes])
        hessian[row] = (gradients[1] - gradients[0]) / (2 * steps[axis])
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    # a flat or wrongly curved direction falls back on a wide but finite spread
    return np.asarray((vectors / np.maximum(values, FLAT)) @ vectors.T)


def _unscented(
    point: Optimum,
    covariance: Floats,
    free: tuple[bool, bool, bool, bool],
    log_prior: LogPrior,
) -> list[Weighted]:
    """Centre and ±√(d + 1) standard deviations along each axis, weighted by their density."""
    axes = [i for i in (1, 2) if free[i]]
    d = len(axes)
    radius, outer = np.sqrt(d + 1.0), 1 / (2 * (d + 1.0))
    design = [Weighted(point, 1 / (d + 1.0))]
    root = np.linalg.cholesky(covariance)
    for column in root.T:
        for sign in (1.0, -1.0):
            vector = point.hyper.to_vector()
            vector[axes] += sign * radius * column
            if not _inside(vector):
                continue
            hyper = Hyper.from_vector(vector)
            estep = solve_q(point.work, hyper, point.estep, E_TOL)
            there = replace(point, hyper=hyper, estep=estep, log_prior=log_prior(vector)[0])
            # importance weight: true density over the Gaussian's, exp(−radius²/2) at this point
            excess = np.clip(there.value - point.value + radius**2 / 2, -5.0, 2.0)
            design.append(Weighted(there, outer * float(np.exp(excess))))
    return design


def _inside(vector: Floats) -> bool:
    low, high = np.log(VARIANCE_BOUNDS)
    return bool(low < vector[1] < high and MEAN_BOUNDS[0] <= vector[2] < MEAN_BOUNDS[1])


def _with_sign_patterns(problem: Problem, parts: list[Weighted]) -> list[Weighted]:
    """Give other sign patterns of f their share of the mixture.

    The shares are found at the heaviest part, which also stands for those patterns; the main
    pattern keeps all its parts.
    """
    heaviest = max(parts, key=lambda part: part.weight).optimum
    scout = scout_workspace(problem, heaviest)
    modes, shares = sign_modes(heaviest.work, scout, heaviest.hyper, heaviest.estep, 2e-2, 8)
    main = sum(s for m, s in zip(modes, shares, strict=True) if m is heaviest.estep)
    others = [
        Weighted(replace(heaviest, estep=mode), float(share))
        for mode, share in zip(modes, shares, strict=True)
        if mode is not heaviest.estep and share > LIGHT_PATTERN
    ]
    return [replace(part, weight=float(main) * part.weight) for part in parts] + others
