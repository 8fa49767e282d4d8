"""Damped Newton climbs to modes of the posterior, many at once.

With strong data curve and level share a banana-shaped ridge. A climb therefore moves in (ξ, l, …)
with v = e^{−P(l − l₀)/2} (ξ + b) − b, b = (m₀/k) L⁻¹1. Along l at fixed ξ, f stays as it is in the
directions that the data know, as far as they know its level (docs/maths_engine.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.engine.landscape import Derivatives, Landscape, split_level

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: least curvature of a Newton step: directions that the density hardly bends get this
_LEAST_CURVATURE = 0.3
#: least eigenvalue of −∂²/∂v∂v from which P is taken
_CONCAVE = 0.02
#: longest step, in root mean squares over coordinates, and of level and parameters
_LONGEST, _LONGEST_PARAMETER = 3.0, 1.5
#: factor of a step that failed, and failures that end a climb
_SHORTER, _MOST_FAILURES = 0.3, 12
#: share of the promised gain that a step must bring
_ARMIJO = 1e-4
#: values of numerical integrals may differ by so much from node to node
_NOISE, _NOISE_PER_SUBJECT = 0.05, 2e-4
#: least precision that a mode's Gaussian keeps
_LEAST_PRECISION = 0.05


@dataclass(frozen=True)
class Tilts:
    """P = A diag(ρ) Aᵀ of C points.

    Attributes
    ----------
    shares : (C, M)
        ρ: how much the data say along each axis, 0 to 1.
    axes : (C, M, M)
        A.
    """

    shares: Floats
    axes: Floats

    @classmethod
    def none(cls, size: int, number: int) -> Tilts:
        """P = 0."""
        return cls(np.zeros((number, size)), np.tile(np.eye(size), (number, 1, 1)))

    @property
    def trace(self) -> Floats:
        """tr P, (C,)."""
        return np.asarray(self.shares.sum(axis=1))

    def take(self, who: NDArray[np.intp]) -> Tilts:
        """Some of the points."""
        return Tilts(self.shares[who], self.axes[who])

    def apply(self, vectors: Floats) -> Floats:
        """P times vectors (C, M)."""
        return self._along_axes(vectors, self.shares)

    def stretch(self, vectors: Floats, change: Floats) -> Floats:
        """e^{−P · change / 2} times vectors (C, M)."""
        return self._along_axes(vectors, np.exp(-0.5 * change[:, None] * self.shares))

    def _along_axes(self, vectors: Floats, factors: Floats) -> Floats:
        along = (vectors[:, None, :] @ self.axes)[:, 0]
        return np.asarray((self.axes @ (factors * along)[:, :, None])[:, :, 0])


@dataclass(frozen=True)
class Mode:
    """A mode, and the Gaussian around it in (ξ, l, …).

    Attributes
    ----------
    landscape : Landscape
    u : float
    x : (D,)
    tilt : Tilts
        P of this point.
    precision, axes : (D,), (D, D)
        Eigenvalues and eigenvectors of minus the Hessian.
    log_evidence : float
        ∫ of the density near this mode, by Laplace's method.
    found : bool
        Whether this is a maximum.
    """

    landscape: Landscape
    u: float
    x: Floats
    tilt: Tilts
    precision: Floats
    axes: Floats
    log_evidence: float
    found: bool
    steps: int = field(default=0, compare=False)


def tilt(landscape: Landscape, x: Floats, u: Floats, tilts: Tilts, at: Derivatives) -> Derivatives:
    """Derivatives in (ξ, l, …) at l₀ = l; the density gains e^{−tr(P)(l − l₀)/2}."""
    m = landscape.size
    by_v = at.gradient[:, :m]
    shift = -0.5 * tilts.apply((x[:m] + landscape.constants(u)).T)  # ∂v/∂l at fixed ξ, (C, M)
    change = np.tile(np.eye(landscape.dimension), (len(u), 1, 1))
    change[:, :m, m] = shift
    hessian = change.transpose(0, 2, 1) @ at.hessian @ change
    both = 0.5 * tilts.apply(by_v)  # −∂²v/∂ξ∂l · ∇_v
    hessian[:, :m, m] -= both
    hessian[:, m, :m] -= both
    hessian[:, m, m] -= (both * shift).sum(axis=1)
    gradient = (change.transpose(0, 2, 1) @ at.gradient[:, :, None])[:, :, 0]
    gradient[:, m] -= tilts.trace / 2
    return Derivatives(at.value - tilts.trace / 2 * x[m], gradient, hessian)


def move(landscape: Landscape, x: Floats, step: Floats, tilts: Tilts, u: Floats) -> Floats:
    """Where a step in (ξ, l, …) from x leads."""
    m = landscape.size
    b = landscape.constants(u)
    moved = x + step
    moved[:m] = tilts.stretch((moved[:m] + b).T, step[m]).T - b
    return moved


@dataclass
class _Climbs:
    """The state of C climbs; arrays have them last (x, step, trial) or first."""

    x: Floats
    u: Floats
    trial: Floats
    step: Floats
    value: Floats  # in tilted coordinates
    raw: Floats
    gain: Floats  # promised by the last step, twice over
    tilts: Tilts
    tilted: Flags
    length: Floats
    failures: NDArray[np.intp]
    done: Flags
    precision: Floats
    axes: Floats

    @classmethod
    def start(cls, x: Floats, u: Floats, size: int) -> _Climbs:
        d, c = x.shape
        return cls(
            x=x.copy(), u=u, trial=x.copy(), step=np.zeros((d, c)), value=np.full(c, -np.inf),
            raw=np.full(c, -np.inf), gain=np.zeros(c), tilts=Tilts.none(size, c),
            tilted=np.zeros(c, dtype=bool), length=np.ones(c), failures=np.zeros(c, dtype=np.intp),
            done=np.zeros(c, dtype=bool), precision=np.ones((c, d)),
            axes=np.tile(np.eye(d), (c, 1, 1)),
        )  # fmt: skip


def climb(
    landscape: Landscape,
    starts: Floats,
    u: Floats,
    *,
    tol: float = 0.05,
    max_steps: int = 40,
    floor: float = -np.inf,
) -> list[Mode]:
    """Climb from each column of `starts`; ends with one free Newton step.

    Parameters
    ----------
    starts : (D, C)
    u : (C,)
    tol : float
        Stop when a step promises to gain fewer nats than half of this.
    floor : float
        Climbs that cannot reach this log evidence are given up.
    """
    m = landscape.size
    s = _Climbs.start(starts, u, m)
    steps = 0
    for steps in range(1, max_steps + 1):
        active = np.flatnonzero(~s.done)
        if not len(active):
            break
        with np.errstate(all="ignore"):
            at = landscape.derivatives(s.trial[:, active], u[active])
        tilted_value = at.value - s.tilts.take(active).trace / 2 * s.trial[m, active]
        promised = _ARMIJO * s.length[active] * s.gain[active]
        better = tilted_value > s.value[active] + promised - _noise(landscape)
        better &= np.isfinite(at.value)
        _shorten(landscape, s, active[~better])
        if better.any():
            some = Derivatives(at.value[better], at.gradient[better], at.hessian[better])
            _advance(landscape, s, active[better], some, tol, floor if steps > 1 else -np.inf)
    return _modes(landscape, s, steps)


def _noise(landscape: Landscape) -> float:
    """How much values at neighbouring points may differ by the rule of the subjects' integrals."""
    n_hard = len(landscape.task.likelihood.cells.hard)
    return _NOISE + _NOISE_PER_SUBJECT * n_hard if n_hard else 1e-9


def _shorten(landscape: Landscape, s: _Climbs, failed: NDArray[np.intp]) -> None:
    """Try shorter steps; a start outside the support moves towards the prior's centre."""
    s.failures[failed] += 1
    s.length[failed] *= _SHORTER
    s.done[failed[s.failures[failed] > _MOST_FAILURES]] = True
    outside = failed[~np.isfinite(s.value[failed])]
    s.trial[:, outside] *= _SHORTER
    rest = failed[np.isfinite(s.value[failed])]
    step = s.length[rest] * s.step[:, rest]
    s.trial[:, rest] = move(landscape, s.x[:, rest], step, s.tilts.take(rest), s.u[rest])


def _advance(
    landscape: Landscape,
    s: _Climbs,
    who: NDArray[np.intp],
    at: Derivatives,
    tol: float,
    floor: float,
) -> None:
    """Accept the trials, and make the next Newton steps."""
    m = landscape.size
    s.x[:, who], s.raw[who], s.failures[who] = s.trial[:, who], at.value, 0
    fresh = ~s.tilted[who]
    if fresh.any():
        _choose_tilts(landscape, s, who[fresh], at.hessian[fresh])
    tilts = s.tilts.take(who)
    here = tilt(landscape, s.x[:, who], s.u[who], tilts, at)
    precision, axes = np.linalg.eigh(-here.hessian)
    used = np.maximum(np.abs(precision), _LEAST_CURVATURE)
    along = (axes.transpose(0, 2, 1) @ here.gradient[:, :, None])[:, :, 0]
    step = (axes @ (along / used)[:, :, None])[:, :, 0]
    gain = (here.gradient * step).sum(axis=1)
    s.value[who], s.gain[who] = here.value, gain
    s.precision[who], s.axes[who] = precision, axes
    size = np.sqrt((step**2).mean(axis=1))
    step *= np.minimum(1.0, _LONGEST / np.maximum(size, 1e-300))[:, None]
    most = np.abs(step[:, m:]).max(axis=1)
    step *= np.minimum(1.0, _LONGEST_PARAMETER / np.maximum(most, 1e-300))[:, None]
    s.step[:, who], s.length[who] = step.T, 1.0
    s.trial[:, who] = move(landscape, s.x[:, who], step.T, tilts, s.u[who])
    s.done[who[(gain < tol) & s.tilted[who] & (precision.min(axis=1) > 0)]] = True
    if floor > -np.inf:
        reach = at.value + 2 * gain + _laplace(np.maximum(precision, _LEAST_PRECISION))
        s.done[who[s.tilted[who] & (reach < floor)]] = True


def _choose_tilts(landscape: Landscape, s: _Climbs, who: NDArray[np.intp], hessian: Floats) -> None:
    """P = ρ (I − Σ + Σggᵀ Σ / τ²), ρ = Jτ², as soon as the density is concave in v.

    Σ is the covariance of v at fixed l, g the gradient of the log number of expected events and
    τ² = gᵀΣg its variance; J is what the data say of that number.
    """
    m = landscape.size
    values, axes = np.linalg.eigh(-hessian[:, :m, :m])
    concave = values.min(axis=1) > _CONCAVE
    known, axes = who[concave], axes[concave]
    covariance = (axes / values[concave][:, None, :]) @ axes.transpose(0, 2, 1)
    g = landscape.height_slopes(s.x[:, known], s.u[known])
    along = (covariance @ g[:, :, None])[:, :, 0]
    variance = np.maximum((g * along).sum(axis=1), 1e-300)
    of_prior = landscape.task.level_prior(s.u[known])[1] ** -2
    information = np.maximum(-hessian[concave][:, m, m] - of_prior, 0.0)
    share = np.clip(information * variance, 0.0, 1.0)[:, None, None]
    of_shape = along[:, :, None] * along[:, None, :] / variance[:, None, None]
    shares, turned = np.linalg.eigh(share * (np.eye(m) - covariance + of_shape))
    s.tilts.shares[known], s.tilts.axes[known] = np.clip(shares, 0.0, 1.0), turned
    s.tilted[known] = True


def _laplace(precision: Floats) -> Floats:
    """½ D ln 2π − ½ ln|precision|."""
    n = precision.shape[-1]
    return np.asarray(0.5 * n * np.log(2 * np.pi) - 0.5 * np.log(precision).sum(axis=-1))


def _modes(landscape: Landscape, s: _Climbs, steps: int) -> list[Mode]:
    """The modes reached, each after its last free step."""
    m = landscape.size
    close = (s.gain < 1.0) & s.tilted & np.isfinite(s.value)
    x = np.where(close, s.trial, s.x)
    value = s.raw + np.where(close, 0.5 * s.gain, 0.0) + s.tilts.trace / 2 * (x[m] - s.x[m])
    result = []
    for c in range(x.shape[1]):
        found = bool(s.tilted[c] and s.precision[c].min() > 0 and np.isfinite(value[c]))
        precision = np.maximum(s.precision[c], _LEAST_PRECISION)
        evidence = float(value[c] + _laplace(precision)) if np.isfinite(value[c]) else -np.inf
        result.append(
            Mode(
                landscape,
                float(s.u[c]),
                x[:, c].copy(),
                s.tilts.take(np.array([c])),
                precision,
                s.axes[c],
                evidence,
                found,
                steps,
            )
        )
    return result


def carried_over(mode: Mode, landscape: Landscape, u: float) -> Floats:
    """Where the curve of a mode is under another length-scale and u, as a start there."""
    old = mode.landscape
    m = landscape.size
    x = np.zeros(landscape.dimension)
    x[m:] = mode.x[old.size :]
    k, _ = split_level(np.array(u))
    old_k, old_mean = split_level(np.array(mode.u))
    if old.size == m and old.log_length == landscape.log_length:
        x[:m] = mode.x[:m] * (old_k / k)
        return x
    curve = old_mean + old_k * (old.prior.features(landscape.prior.inducing) @ mode.x[: old.size])
    _, mean = split_level(np.array(u))
    x[:m] = landscape.prior.inverse_factor @ ((curve - mean) / k)
    size = float(np.sqrt((x[:m] ** 2).mean()))
    x[:m] *= min(
        1.0, _LONGEST / max(size, 1e-300)
    )  # a rough curve is not likely under a smooth prior
    return x
