r"""A constant rate of events that come in bursts, with and without gamma frailty.

The parameters are x = (ln ρ, ln α, ln φ); the likelihood and its derivatives are those of
:mod:`gp4c.classical.marginal_counts`. No bursts (φ = 0) and no frailty (α = ∞) are infinitely far
away on these scales, so that each simpler law is fitted by itself, and a richer one is kept only
if it is better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from gp4c.classical.constant_rate import (
    RateFit,
    Totals,
    exact_interval,
    find_crossing,
    fit_rate_and_frailty,
)
from gp4c.classical.marginal_counts import MarginalCounts, RateRows
from gp4c.classical.visit_cells import Floats, Indices
from gp4c.model.laws import LAWS

#: values at which α and φ are held: a frailty variance of 10⁻⁶ and a dispersion of 1.0001 would
#: take 10⁸ visits to be told from none; the other ends are far beyond any data
_SHAPES, _EXCESSES = (1e-6, 1e6), (1e-4, 1e8)
#: nats by which a richer law must be better: rounding of sums over large counts
_BETTER = 1e-4
#: longest Newton step in the logarithm of a parameter
_LONGEST = 1.5
#: bursts from which a search begins where the data give no hint
_SOME_BURSTS = 0.5
#: which entries of x are free
_RATE, _SHAPE, _EXCESS = 0, 1, 2

#: value, gradient (3,) and Hessian (3, 3) at x
Target = Callable[[Floats], tuple[float, Floats, Floats]]


@dataclass(frozen=True)
class BurstFit:
    """Rate, frailty variance and φ at the maximum, with the trace of the log-likelihood."""

    rate: float
    variance: float
    excess: float
    residual: float
    history: Floats

    @property
    def value(self) -> float:
        """Log-likelihood at the maximum, without Σ ln m!."""
        return float(self.history[-1])


@dataclass(frozen=True, eq=False)
class BurstRate:
    """The likelihood of a constant rate with bursts; subjects with multiplicities, (K,)."""

    rows: RateRows
    weights: Floats
    effect: str | None

    @property
    def totals(self) -> Totals:
        """What the law without bursts needs."""
        events = self.rows.by_subject(self.rows.count)
        return Totals(events, self.rows.time_at_risk, self.weights)

    @property
    def n_events(self) -> float:
        """All events."""
        return self.totals.n_events

    def target(self) -> Target:
        """ln p with gradient and Hessian; an infinite ln α stands for no frailty."""
        counts = MarginalCounts(self.rows, LAWS["bursts"])

        def at(x: Floats) -> tuple[float, Floats, Floats]:
            found = counts.terms(float(np.exp(x[0])), float(np.exp(x[1])), x[2:])
            return (
                float(self.weights @ found.value),
                found.first @ self.weights,
                found.second @ self.weights,
            )

        return at


def fit_rate_with_bursts(data: BurstRate, tol: float = 1e-10) -> BurstFit:
    """Maximise over rate, frailty variance (with an effect) and φ.

    Parameters
    ----------
    data : BurstRate
    tol : float
        Bound on the scores in log rate, ln α and ln φ, per event.
    """
    plain = _without_bursts(data, tol)
    if plain.rate == 0.0:
        return plain
    target, scale = data.target(), data.n_events
    start = np.array([np.log(plain.rate), np.inf, np.log(_SOME_BURSTS)])
    bursts = _climb(target, start, np.array([_RATE, _EXCESS]), tol, scale)
    candidates = [plain, bursts]
    if data.effect is not None:
        every = np.array([_RATE, _SHAPE, _EXCESS])
        # where differences between subjects are taken for frailty, and where for bursts
        for variance, excess in ((max(plain.variance, 0.1), _SOME_BURSTS), (0.3, bursts.excess)):
            start = np.log(np.array([plain.rate, 1.0 / variance, max(excess, 0.1)]))
            candidates.append(_climb(target, start, every, tol, scale))
    best = candidates[0]
    for found in candidates[1:]:
        if found.value > best.value + _BETTER:
            best = found
    return best


def profile_burst_interval(data: BurstRate, fit: BurstFit, level: float) -> tuple[float, float]:
    """Rates whose likelihood, maximised over frailty and φ, is not significantly lower.

    As :func:`gp4c.classical.constant_rate.profile_interval`, which it is without bursts.
    """
    if data.n_events == 0.0:
        return exact_interval(0.0, float(data.weights @ data.rows.time_at_risk), level)
    allowed = float(chdtri(1.0, 1.0 - level)) / 2.0
    target, scale = data.target(), data.n_events
    shape = np.inf if data.effect is None else 1.0 / max(fit.variance, 1e-3)
    first = np.log(np.array([fit.rate, shape, max(fit.excess, 1e-2)]))
    free = np.array([_EXCESS] if data.effect is None else [_SHAPE, _EXCESS])

    def one_end(direction: float) -> float:
        last = first.copy()

        def excess(shift: float) -> float:
            last[0] = first[0] + shift
            found = _climb(target, last, free, 1e-7, scale)
            last[free] = _position(found)[free]  # a good guess for the next
            return fit.value - found.value - allowed

        return fit.rate * float(np.exp(find_crossing(excess, direction)))

    return one_end(-1.0), one_end(1.0)


def _without_bursts(data: BurstRate, tol: float) -> BurstFit:
    """The maximum at φ = 0, on the scale of the others."""
    totals = data.totals
    if data.effect is None:
        rate = totals.pooled_rate
        found = RateFit(rate, 0.0, 0.0, np.array([totals.log_likelihood(rate, 0.0)]))
    else:
        found = fit_rate_and_frailty(totals, tol)
    rows = data.rows
    constant = float(data.weights[rows.subject] @ (rows.count * np.log(rows.time)))
    return BurstFit(found.rate, found.variance, 0.0, found.residual, found.history + constant)


def _climb(
    target: Target, start: Floats, free: Indices, tol: float, scale: float, max_iter: int = 200
) -> BurstFit:
    """Newton steps in the free parameters, uphill along every axis of the Hessian."""
    low = np.array([-np.inf, np.log(_SHAPES[0]), np.log(_EXCESSES[0])])
    high = np.array([np.inf, np.log(_SHAPES[1]), np.log(_EXCESSES[1])])
    x = start.copy()
    x[free] = np.clip(x[free], low[free], high[free])
    value, gradient, hessian = target(x)
    history = [value]
    residual = np.inf
    for _ in range(max_iter):
        outward = ((x <= low) & (gradient < 0)) | ((x >= high) & (gradient > 0))
        inside = free[~outward[free]]
        residual = float(np.abs(gradient[inside]).max(initial=0.0)) / scale
        if residual <= tol:
            break
        moved = _step(gradient[inside], hessian[np.ix_(inside, inside)])
        new = x.copy()
        for _ in range(30):
            new[inside] = np.clip(x[inside] + moved, low[inside], high[inside])
            found = target(new)
            if found[0] >= value - 1e-12 * abs(value):
                break
            moved = moved / 2.0
        else:  # nothing better in reach of rounding
            break
        x, (value, gradient, hessian) = new, found
        history.append(value)
    rate, shape, excess = np.exp(x)
    trace = np.maximum.accumulate(np.asarray(history))
    return BurstFit(float(rate), float(1.0 / shape), float(excess), residual, trace)


def _step(gradient: Floats, hessian: Floats) -> Floats:
    """A Newton step that climbs where the surface bends upwards too, of bounded length."""
    curvature, axes = np.linalg.eigh(-hessian)
    along = axes.T @ gradient
    least = 1e-12 * float(np.abs(curvature).max(initial=1.0))
    step = axes @ (along / np.maximum(np.abs(curvature), least))
    return np.asarray(step * min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300)))


def _position(fit: BurstFit) -> Floats:
    """x of a fit with bursts."""
    shape = 1.0 / fit.variance if fit.variance > 0.0 else np.inf
    return np.asarray(np.log(np.array([fit.rate, shape, fit.excess])))
