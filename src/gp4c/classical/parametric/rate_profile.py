r"""How sure a fit of a rate is: covariances of its parameters, and profile-likelihood intervals.

A classical parameter is held by holding the shape g, or by ln ρ = u(g) and the chain rule
(docs/maths_growth.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import chdtri

from gp4c.classical.parametric.constant_rate import find_crossing
from gp4c.classical.parametric.rate_curves import Derived
from gp4c.classical.parametric.rate_fit import LawFit, RateData, Target, climb
from gp4c.classical.visit_cells import Floats

#: nats that are too few to move the end of an interval
_LEAST_GAIN = 1e-10


def covariances(data: RateData, fit: LawFit) -> tuple[Floats, Floats, Floats]:
    """Covariance of x: inverse information, sandwich over subjects, jackknife; (P, P) each.

    Parameters at a limit have none.
    """
    d, e = fit.n_rate, len(fit.psi)
    found = data.counts(fit.law, fit.effect).terms(
        data.means(fit.x), fit.x[d : d + e], fit.x[d + e :]
    )
    low, high = data.limits(fit.law, fit.effect)
    inside = np.flatnonzero((fit.x > low) & (fit.x < high))
    each = np.ix_(inside, inside)
    hessian = -(found.second @ data.weights)[each]
    curvature, axes = np.linalg.eigh(hessian)
    good = curvature > 1e-10 * max(float(curvature.max(initial=0.0)), 1e-300)
    bread = (axes[:, good] / curvature[good]) @ axes[:, good].T
    scores = found.first[inside]
    influence = bread @ scores
    leverage = np.minimum((scores * influence).sum(axis=0), 0.9)
    n = data.rows.n_subjects
    few = n / max(n - len(inside), 1)
    result = np.zeros((3, len(fit.x), len(fit.x)))
    away = influence / (1.0 - leverage)
    for k, matrix in enumerate((bread, few * influence @ influence.T, away @ away.T)):
        result[k][each] = matrix
    return result[0], result[1], result[2]


def shape_information(data: RateData, fit: LawFit) -> float:
    """Information about g per event, the level being free; 0 where g runs off to a limit."""
    low, high = data.curve.limits[0]
    if not low < fit.x[1] < high:
        return 0.0
    hessian = data.target(fit.law, fit.effect)(fit.x)[2]
    return float(hessian[0, 1] ** 2 / hessian[0, 0] - hessian[1, 1]) / data.n_events


def profile_interval_of(
    data: RateData, fit: LawFit, parameter: Derived, level: float
) -> tuple[float, float]:
    """Values of a classical parameter whose likelihood, maximised over all else, is not lower.

    A function of g is held by holding g; any other one by ln ρ = u(g), with the chain rule.
    """
    best = parameter.at(float(fit.x[0]), float(fit.x[1]) if data.curve.limits else 0.0)
    allowed = float(chdtri(1.0, 1.0 - level)) / 2.0
    low, high = (_shift(data, fit, parameter, best, allowed, sign) for sign in (-1.0, 1.0))
    return parameter.value(best + low), parameter.value(best + high)


def profile_level(data: RateData, fit: LawFit, level: float) -> tuple[float, float]:
    """Interval of ρ itself."""
    rho = Derived(lambda y: float(np.exp(y)), lambda a, g: a, lambda y, g: (y, 0.0, 0.0))
    return profile_interval_of(data, fit, rho, level)


def _shift(
    data: RateData, fit: LawFit, parameter: Derived, best: float, allowed: float, direction: float
) -> float:
    """How far from its best value y may be held."""
    every, last = np.arange(len(fit.x)), fit.x.copy()
    target = data.target(fit.law, fit.effect)

    def excess(shift: float) -> float:
        y = best + shift
        if parameter.held is None:
            low, high = data.curve.limits[0]
            if not low < y < high:
                return 1e9
            last[1] = y
            found = climb(
                data, fit.law, fit.effect, last, 1e-7, np.delete(every, 1), target, _LEAST_GAIN
            )
            last[:] = found.x  # a good guess for the next
        else:
            held = _held(target, parameter.held, y, bool(data.curve.limits))
            found = climb(
                data, fit.law, fit.effect, last, 1e-7, np.delete(every, 0), held, _LEAST_GAIN
            )
            last[1:] = found.x[1:]
        return fit.value - found.value - allowed

    return find_crossing(excess, direction)


def _held(target: Target, held: Callable[..., tuple[float, float, float]], value: float,
          has_shape: bool) -> Target:  # fmt: skip
    """The target along ln ρ = u(g): ∂_g gains ℓ_ρ u′, ∂_gg gains 2 ℓ_ρg u′ + ℓ_ρρ u′² + ℓ_ρ u″."""

    def at(x: Floats) -> tuple[float, Floats, Floats]:
        level, first, second = held(value, float(x[1]) if has_shape else 0.0)
        moved = x.copy()
        moved[0] = level
        found, gradient, hessian = target(moved)
        change = np.eye(len(x))
        if has_shape:
            change[0, 1] = first
        with np.errstate(over="ignore", invalid="ignore"):  # `climb` turns away from these
            bent = change.T @ hessian @ change
            if has_shape:
                bent[1, 1] += gradient[0] * second
            return found, change.T @ gradient, bent

    return at
