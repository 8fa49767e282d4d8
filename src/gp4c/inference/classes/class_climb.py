"""Damped Newton climbs to modes of the density of classes.

As for a single curve (`inference/engine/climb.py`), steps are made in (ξ, l, …), with
v = e^{−P(l − l₀)/2} (ξ + b) − b for every class with a P of its own: curve and level of a class
share a ridge that bends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.classes.class_landscape import ClassLandscape, Derivative

Floats = NDArray[np.float64]

#: least curvature of a Newton step, and least eigenvalue of −∂²/∂v∂v from which P is taken
_LEAST_CURVATURE, _CONCAVE = 0.3, 0.02
#: longest step, in root mean squares over coordinates, and of level, shares and parameters
_LONGEST, _LONGEST_PARAMETER = 3.0, 1.5
#: factor of a step that failed, and failures that end a climb
_SHORTER, _MOST_FAILURES = 0.3, 8
#: share of the promised gain that a step must bring
_ARMIJO = 1e-4
#: numerical integrals may differ by so much from node to node, and per subject
_NOISE, _NOISE_PER_SUBJECT = 0.05, 2e-4
#: least precision that a mode's Gaussian keeps
_LEAST_PRECISION = 0.1


@dataclass(frozen=True)
class ClassTilts:
    """P of every class: symmetric matrices with eigenvalues from 0 to 1."""

    shares: Floats  # (C, M)
    axes: Floats  # (C, M, M)

    @classmethod
    def none(cls, space: ClassLandscape) -> ClassTilts:
        """P = 0."""
        c, m = space.n_classes, space.size
        return cls(np.zeros((c, m)), np.tile(np.eye(m), (c, 1, 1)))

    @property
    def trace(self) -> Floats:
        """tr P, (C,)."""
        return np.asarray(self.shares.sum(axis=1))

    def matrix(self, label: int) -> Floats:
        """P of one class."""
        return np.asarray((self.axes[label] * self.shares[label]) @ self.axes[label].T)

    def stretched(self, label: int, values: Floats, change: Floats) -> Floats:
        """e^{−P · change / 2} times each column of values (M, S)."""
        axes, shares = self.axes[label], self.shares[label][:, None]
        return np.asarray(axes @ (np.exp(-0.5 * shares * change) * (axes.T @ values)))


@dataclass(frozen=True)
class ClassMode:
    """A mode and the Gaussian around it in (ξ, l, …).

    Attributes
    ----------
    space : ClassLandscape
    x : (D,)
    tilts : ClassTilts
    precision, axes : (D,), (D, D)
        Eigenvalues and eigenvectors of minus the Hessian.
    membership : (K, C)
    log_evidence : float
        ∫ of the density near this mode, by Laplace's method.
    found : bool
        Whether this is a maximum.
    steps : int
    """

    space: ClassLandscape
    x: Floats
    tilts: ClassTilts
    precision: Floats
    axes: Floats
    membership: Floats
    log_evidence: float
    found: bool
    steps: int


def constants(space: ClassLandscape) -> Floats:
    """b = (m₀/k) L⁻¹1, (M, 1)."""
    return space.land.constants(np.array([space.u]))


def moved(space: ClassLandscape, x: Floats, step: Floats, tilts: ClassTilts) -> Floats:
    """Where steps (D, S) in (ξ, l, …) from x (D, S) lead."""
    b, result = constants(space), x + step
    for c in space.labels:
        first = c * space.block
        rows = slice(first, first + space.size)
        change = step[first + space.size]
        result[rows] = tilts.stretched(c, result[rows] + b, change) - b
    return np.asarray(result)


def climb_classes(
    space: ClassLandscape,
    start: Floats,
    *,
    given: Floats | None = None,
    tol: float = 0.05,
    max_steps: int = 40,
) -> ClassMode:
    """Climb from a point.

    Parameters
    ----------
    start : (D,)
    given : (K, C), optional
        Memberships that are held fixed.
    tol : float
        Stop when a step promises to gain fewer nats than half of this.
    """
    x, tilts, tilted = start.copy(), ClassTilts.none(space), False
    at, steps, gain = _derivatives(space, x, given), 0, np.inf
    precision, axes, step = np.ones(len(x)), np.eye(len(x)), np.zeros(len(x))
    while steps < max_steps:
        steps += 1
        if not tilted and (chosen := _choose_tilts(space, x, at)) is not None:
            tilts, tilted = chosen, True
        here = _tilt(space, x, tilts, at)
        precision, axes = np.linalg.eigh(-here.hessian)
        step, gain = _newton(space, here, precision, axes)
        if gain < tol and (tilted or given is not None):
            break
        trial = _searched(space, x, step, gain, tilts, here.value, given)
        if trial is None:
            break
        x, at = trial
    found = bool(tilted and precision.min() > 0 and gain <= 1.0)
    free, last = (max(gain, 0.0) / 2, step) if found else (0.0, np.zeros_like(x))
    used = np.maximum(precision, _LEAST_PRECISION)
    laplace = 0.5 * len(x) * np.log(2 * np.pi) - 0.5 * float(np.log(used).sum())
    evidence = at.value + free + laplace if np.isfinite(at.value) else -np.inf
    if found:  # a last, free step: the density there is known to second order
        x = moved(space, x[:, None], last[:, None], tilts)[:, 0]
    return ClassMode(space, x, tilts, used, axes, at.membership, evidence, found, steps)


def _derivatives(space: ClassLandscape, x: Floats, given: Floats | None) -> Derivative:
    with np.errstate(all="ignore"):
        at = space.derivatives(x, given=given)
    if np.isfinite(at.value) and np.isfinite(at.gradient).all() and np.isfinite(at.hessian).all():
        return at
    n = len(x)
    return Derivative(-np.inf, np.zeros(n), -np.eye(n), np.nan_to_num(at.membership))


def _newton(
    space: ClassLandscape, here: Derivative, precision: Floats, axes: Floats
) -> tuple[Floats, float]:
    """The next step, no longer than allowed, and twice the gain that it promises."""
    used = np.maximum(np.abs(precision), _LEAST_CURVATURE)
    step = axes @ ((axes.T @ here.gradient) / used)
    gain = float(here.gradient @ step)
    size = float(np.sqrt((step**2).mean()))
    step *= min(1.0, _LONGEST / max(size, 1e-300))
    most = float(np.abs(step[space.tail_rows]).max())
    return step * min(1.0, _LONGEST_PARAMETER / max(most, 1e-300)), gain


def _searched(
    space: ClassLandscape,
    x: Floats,
    step: Floats,
    gain: float,
    tilts: ClassTilts,
    value: float,
    given: Floats | None,
) -> tuple[Floats, Derivative] | None:
    """The first of shorter and shorter steps that gains; None if none does."""
    hard = len(space.data.counts.cells.hard)
    noise = _NOISE + _NOISE_PER_SUBJECT * hard if hard else 1e-9
    length = 1.0
    for _ in range(_MOST_FAILURES):
        trial = moved(space, x[:, None], length * step[:, None], tilts)[:, 0]
        at = _derivatives(space, trial, given)
        reached = at.value - float(tilts.trace / 2 @ trial[space.levels()])
        if reached > value + _ARMIJO * length * gain - noise:
            return trial, at
        length *= _SHORTER
    return None


def _choose_tilts(space: ClassLandscape, x: Floats, at: Derivative) -> ClassTilts | None:
    """P = ρ (I − Σ + Σggᵀ Σ / τ²) of every class, as soon as the density is concave in each v.

    Σ is the covariance of v at fixed l, g the gradient of the log number of expected events and
    τ² = gᵀΣg its variance; ρ is what the data say of that number, times τ².
    """
    m, u, shares, axes = space.size, np.array([space.u]), [], []
    for c in space.labels:
        first = c * space.block
        values, vectors = np.linalg.eigh(-at.hessian[first : first + m, first : first + m])
        if values.min() <= _CONCAVE:
            return None
        covariance = (vectors / values) @ vectors.T
        g = space.land.height_slopes(space.single(x, c)[:, None], u)[0]
        along = covariance @ g
        variance = max(float(g @ along), 1e-300)
        known = max(float(-at.hessian[first + m, first + m]) - 1.0, 0.0)
        share = float(np.clip(known * variance, 0.0, 1.0))
        p = share * (np.eye(m) - covariance + np.outer(along, along) / variance)
        found, turned = np.linalg.eigh(p)
        shares.append(np.clip(found, 0.0, 1.0))
        axes.append(turned)
    return ClassTilts(np.array(shares), np.array(axes))


def _tilt(space: ClassLandscape, x: Floats, tilts: ClassTilts, at: Derivative) -> Derivative:
    """Derivatives in (ξ, l, …) at l₀ = l; the density gains e^{−Σ tr(P)(l − l₀)/2}."""
    b, m = constants(space)[:, 0], space.size
    change, more = np.eye(space.dimension), np.zeros((space.dimension, space.dimension))
    for c in space.labels:
        first = c * space.block
        rows, level, p = np.arange(first, first + m), first + m, tilts.matrix(c)
        shift = -0.5 * p @ (x[rows] + b)  # ∂v/∂l at fixed ξ
        change[rows, level] = shift
        both = 0.5 * p @ at.gradient[rows]  # −∂²v/∂ξ∂l · ∇_v
        more[rows, level] -= both
        more[level, rows] -= both
        more[level, level] -= both @ shift
    hessian = change.T @ at.hessian @ change + more
    gradient = change.T @ at.gradient
    levels = space.levels()
    gradient[levels] -= tilts.trace / 2
    value = at.value - float(tilts.trace / 2 @ x[levels])
    return Derivative(value, gradient, hessian, at.membership)
